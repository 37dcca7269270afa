package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const output = `goos: linux
pkg: example.com/hub/scan
cpu: a processor
BenchmarkTokenise/INVOIC-2  10  1000000 ns/op  500.00 MB/s  2.000 x-reference  66 B/op  3 allocs/op
BenchmarkTokenise/850-2  10  2000000 ns/op  250.00 MB/s  66 B/op  3 allocs/op
pkg: example.com/hub/as2
BenchmarkOpen  1  3000000 ns/op  7 B/op  1 allocs/op
--- BENCH: BenchmarkOpen
PASS
`

func TestParse(t *testing.T) {
	t.Parallel()
	got, rest, err := parse(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	want := []result{
		{"example.com/hub/scan", "BenchmarkTokenise/INVOIC", map[string]float64{"ns/op": 1e6, "MB/s": 500, "x-reference": 2, "B/op": 66, "allocs/op": 3}},
		{"example.com/hub/scan", "BenchmarkTokenise/850", map[string]float64{"ns/op": 2e6, "MB/s": 250, "B/op": 66, "allocs/op": 3}},
		{"example.com/hub/as2", "BenchmarkOpen", map[string]float64{"ns/op": 3e6, "B/op": 7, "allocs/op": 1}},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(result{})); d != "" {
		t.Error(d)
	}
	if !strings.Contains(rest, "--- BENCH") || strings.Contains(rest, "ns/op") {
		t.Errorf("the rest is %q", rest)
	}
	if _, _, err := parse(strings.NewReader("BenchmarkX 1 fast ns/op")); err == nil {
		t.Error("a value that is no number was taken")
	}
}

func TestTableHasTheRatios(t *testing.T) {
	t.Parallel()
	results, _, err := parse(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := table(&b, results, yardstick{hash: 1000, sign: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for i, want := range [][]string{
		1: {"scan", "BenchmarkTokenise/INVOIC", "1ms", "500.0", "0.50", "2.00", "66", "3"},
		2: {"scan", "BenchmarkTokenise/850", "2ms", "250.0", "0.25", "66", "3"},
		3: {"as2", "BenchmarkOpen", "3ms", "3.00", "7", "1"},
	} {
		if want == nil {
			continue
		}
		if d := cmp.Diff(want, strings.Fields(lines[i])); d != "" {
			t.Error(d)
		}
	}
	if !strings.Contains(b.String(), "SHA-256 1000 MB/s") || !strings.Contains(b.String(), "3 benchmarks") {
		t.Errorf("the yardstick is missing:\n%s", b.String())
	}
}

func TestYardstick(t *testing.T) {
	t.Parallel()
	y, err := measureYardstick()
	if err != nil || y.hash <= 0 || y.sign <= 0 {
		t.Errorf("%+v, %v", y, err)
	}
	if got, want := (yardstick{2, 4}).mean(yardstick{4, 6}), (yardstick{3, 5}); got != want {
		t.Errorf("the mean is %+v", got)
	}
}
