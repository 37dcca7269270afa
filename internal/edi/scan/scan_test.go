package scan

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edihub/edihub/internal/edi"
)

// tokenTexts returns the values of tokens with a mark for the kind before each: "+", ":" or "*".
func tokenTexts(raw []byte, tokens []Token, release byte) []string {
	var out []string
	for _, t := range tokens {
		mark := map[Kind]string{Element: "+", Component: ":", Repetition: "*"}[t.Kind]
		v := raw[t.Start:t.End]
		if t.Released {
			v = Unescape(v, release)
		}
		out = append(out, mark+string(v))
	}
	return out
}

func TestTokens(t *testing.T) {
	t.Parallel()
	four := edifactDelimiters
	four.Repetition = '*'
	for _, c := range []struct {
		name, in string
		d        edi.Delimiters
		want     []string
	}{
		{"tag alone", "ODI", edifactDelimiters, []string{"+ODI"}},
		{"elements and components", "NAD+BY+1::9++X", edifactDelimiters, []string{"+NAD", "+BY", "+1", ":", ":9", "+", "+X"}},
		{"E01 released release character", "FTX+WHY??", edifactDelimiters, []string{"+FTX", "+WHY?"}},
		{"released separators", "FTX+A?+B:C?:D??:E", edifactDelimiters, []string{"+FTX", "+A+B", ":C:D?", ":E"}},
		{"E11 line break in a value", "FTX+FIRST\r\nSECOND", edifactDelimiters, []string{"+FTX", "+FIRST\r\nSECOND"}},
		{"repetition", "CIN+A:1*B:2+C", four, []string{"+CIN", "+A", ":1", "*B", ":2", "+C"}},
		{"no repetition below syntax 4", "FTX+A*B", edifactDelimiters, []string{"+FTX", "+A*B"}},
		{"E04 capital U is data", "REF*IA*UNIT-U1>X", x12Delimiters, []string{"+REF", "+IA", "+UNIT-U1", ":X"}},
		{"empty elements at the end", "A***", x12Delimiters, []string{"+A", "+", "+", "+"}},
	} {
		raw := []byte(c.in)
		if diff := cmp.Diff(c.want, tokenTexts(raw, AppendTokens(nil, raw, c.d), c.d.Release)); diff != "" {
			t.Errorf("%s: AppendTokens (-want +got):\n%s", c.name, diff)
		}
		sc := New(strings.NewReader(c.in+string([]byte{c.d.Segment})), 0, Limits{}, NoBinary)
		sc.SetDelimiters(c.d)
		seg, tokens, err := sc.NextTokens()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, tokenTexts(seg.Raw, tokens, c.d.Release)); diff != "" {
			t.Errorf("%s: NextTokens (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	d := edifactDelimiters
	d.Repetition = '*'
	var f Fields
	f.Reset([]byte("CIN+A:1*B:2+C?+D:E++"), d)
	for _, c := range []struct {
		element, component int
		want               string
	}{{1, 1, "A"}, {1, 2, "1"}, {1, 3, ""}, {2, 1, "C+D"}, {2, 2, "E"}, {3, 1, ""}, {9, 1, ""}} {
		if got := f.String(c.element, c.component); got != c.want {
			t.Errorf("element %d component %d is %q", c.element, c.component, got)
		}
	}
	if got := string(f.Whole(1)); got != "A:1*B:2" {
		t.Errorf("whole element 1 is %q", got)
	}
	if got := string(f.Whole(2)); got != "C+D:E" {
		t.Errorf("whole element 2 is %q", got)
	}
	if f.Whole(5) != nil || f.Elements() != 4 {
		t.Errorf("%d elements", f.Elements())
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{"0": 0, "1": 1, "00012": 12, " 7 ": 7, "0000000000000000000000005": 5, "": -1, "x": -1, "1.0": -1, "-1": -1, "9999999999999999999": -1} {
		n, ok := number([]byte(in))
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("number(%q) = %d", in, n)
		}
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestStuckReader(t *testing.T) {
	t.Parallel()
	if _, err := New(stuck{}, 0, Limits{}, NoBinary).Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v", err)
	}
}

func TestNoAllocationPerSegment(t *testing.T) {
	data := bench850(1 << 20)
	allocations := testing.AllocsPerRun(3, func() {
		if tokenise(t, data, x12Delimiters) == 0 {
			t.Error("no tokens")
		}
	})
	if allocations > 20 {
		t.Errorf("%v allocations for a megabyte", allocations)
	}
}

func FuzzTokens(f *testing.F) {
	f.Add([]byte("FTX+A?+B:C*D'X?'Y'"))
	f.Add([]byte("UNO+1+1+1+3'''''"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := edifactDelimiters
		d.Repetition = '*'
		plain, fast := New(bytes.NewReader(data), 0, Limits{MaxSegmentBytes: 512}, UNOPackage), New(bytes.NewReader(data), 0, Limits{MaxSegmentBytes: 512}, UNOPackage)
		plain.SetDelimiters(d)
		fast.SetDelimiters(d)
		end := int64(0)
		for {
			a, errA := plain.Next()
			b, tokens, errB := fast.NextTokens()
			if (errA == nil) != (errB == nil) {
				t.Fatalf("%v and %v", errA, errB)
			}
			if errA != nil {
				return
			}
			if !cmp.Equal(a, b) || !cmp.Equal(AppendTokens(nil, a.Raw, d), tokens) {
				t.Fatalf("%+v and %+v, tokens %v", a, b, tokens)
			}
			if a.Offset < end || a.End <= a.Offset || a.End > int64(len(data)) {
				t.Fatalf("range %d to %d after %d", a.Offset, a.End, end)
			}
			end = a.End
		}
	})
}
