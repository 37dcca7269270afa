package scan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/edihub/edihub/internal/edi"
)

// ragged reads pieces of random length, empty ones among them.
type ragged struct {
	data []byte
	r    *rand.Rand
	most int
}

func (r *ragged) Read(b []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), r.r.IntN(r.most+1))], r.data)
	r.data = r.data[n:]
	return n, nil
}

// TestNextTokensEqualsNext compares both ways over inputs that cross buffer and windows in many
// places, however the bytes arrive.
func TestNextTokensEqualsNext(t *testing.T) {
	t.Parallel()
	lines := func(b []byte, end, by string) []byte { return bytes.ReplaceAll(b, []byte(end), []byte(by)) }
	odd := edifactDelimiters
	odd.Repetition = '\t'
	lf := x12Delimiters
	lf.Segment = '\n'
	for _, c := range []struct {
		name   string
		data   []byte
		d      edi.Delimiters
		binary Binary
	}{
		{"INVOIC", benchInvoic(66 << 10), edifactDelimiters, UNOPackage},
		{"INVOIC in lines", lines(benchInvoic(9<<10), "'", "'\r\n"), edifactDelimiters, UNOPackage},
		{"indented", lines(benchInvoic(9<<10), "'", "'\n \t"), edifactDelimiters, UNOPackage},
		{"released", []byte(strings.Repeat("FTX+AAI+++A?+B??:C?'D'NAD+BY+??'IMD+F++:::???:X'", 500)), edifactDelimiters, NoBinary},
		{"repetition by tab", lines(benchInvoic(5<<10), "MOA", "\tMOA\t"), odd, NoBinary},
		{"850", append(bench850(9<<10), "ST*275*1~BIN*5*~~*A~~SE*3*1~BDS*A*x*B~"...), x12Delimiters, BINAndBDS},
		{"850 in lines", lines(bench850(9<<10), "~", "\r\n"), lf, BINAndBDS},
		{"empty segments", []byte(strings.Repeat("A''BB'''\nC+'", 1500)), edifactDelimiters, NoBinary},
		{"one long segment", []byte("FTX+" + strings.Repeat("A?'B:", 12_000) + "'X'"), edifactDelimiters, NoBinary},
		{"no terminator", []byte("FTX+A:B+C"), edifactDelimiters, NoBinary},
		{"only delimiters", []byte(strings.Repeat("+:'", 500)), edifactDelimiters, NoBinary},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := segmentsOf(t, c.data, bytes.NewReader(c.data), c.d, c.binary, false)
			random := rand.New(rand.NewPCG(1, uint64(len(c.data))))
			for name, r := range map[string]io.Reader{
				"whole": bytes.NewReader(c.data), "halves": iotest.HalfReader(bytes.NewReader(c.data)),
				"bytes": iotest.OneByteReader(bytes.NewReader(c.data)), "ragged": &ragged{c.data, random, 7}, "blocks": &ragged{c.data, random, 5000},
			} {
				got := segmentsOf(t, c.data, r, c.d, c.binary, true)
				for i := range min(len(want), len(got)) {
					if got[i] != want[i] {
						t.Fatalf("%s: segment %d is\n%s, want\n%s", name, i, got[i], want[i])
					}
				}
				if len(got) != len(want) {
					t.Fatalf("%s: %d segments, want %d", name, len(got), len(want))
				}
			}
		})
	}
}

// segmentsOf prints what a scanner says, with tokens by NextTokens or by AppendTokens.
func segmentsOf(t *testing.T, data []byte, r io.Reader, d edi.Delimiters, binary Binary, fast bool) []string {
	t.Helper()
	const base = 7
	sc := New(r, base, Limits{}, binary)
	sc.SetDelimiters(d)
	var out []string
	for {
		var seg *Segment
		var tokens []Token
		var err error
		if fast {
			seg, tokens, err = sc.NextTokens()
		} else if seg, err = sc.Next(); err == nil {
			tokens = AppendTokens(nil, seg.Raw, d)
		}
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if at := seg.Offset - base; !bytes.HasPrefix(data[at:], seg.Raw) {
			t.Fatalf("segment %d does not stand at %d", len(out), at)
		}
		line := *seg
		line.Raw = nil
		out = append(out, fmt.Sprintf("%q %+v %v", seg.Raw, line, tokens))
	}
}

// TestMixedCalls takes segments by turns with and without tokens, skips bytes and changes the
// delimiters in between.
func TestMixedCalls(t *testing.T) {
	t.Parallel()
	sc := New(strings.NewReader("A+1'B+2'xyC+3'D*4~E*5>6~  F*7~"), 0, Limits{}, NoBinary)
	sc.SetDelimiters(edifactDelimiters)
	next := func(tokens bool) string {
		if !tokens {
			seg, err := sc.Next()
			if err != nil {
				t.Fatal(err)
			}
			return string(seg.Raw)
		}
		seg, got, err := sc.NextTokens()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(tokenTexts(seg.Raw, got, 0), "")
	}
	got := []string{next(true), next(false)}
	sc.Discard(2)
	got = append(got, next(true))
	sc.SetDelimiters(x12Delimiters)
	got = append(got, next(true))
	if head := string(sc.Head()); !strings.HasPrefix(head, "E*5") {
		t.Errorf("head %q", head)
	}
	got = append(got, next(true))
	sc.Head()
	got = append(got, next(true))
	if diff := cmp.Diff([]string{"+A+1", "B+2", "+C+3", "+D+4", "+E+5:6", "+F+7"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFindDelimiters compares the machine's way with the portable one, and the places with the
// bits.
func TestFindDelimiters(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 5))
	src := make([]byte, windowBytes)
	for range 200 {
		for i := range src {
			src[i] = byte(random.IntN(256))
		}
		n := newNeedles(edi.Delimiters{Segment: src[0], Element: src[1], Component: src[2], Release: byte(random.IntN(2)) * src[3]})
		blocks := 1 + random.IntN(windowBytes/blockBytes)
		want, got := make([]byte, windowBytes/8), make([]byte, windowBytes/8)
		findPortable(want[:blocks*blockBytes/8], src, &n)
		findDelimiters(&got[0], &src[0], blocks, &n)
		if !bytes.Equal(want, got) {
			t.Fatalf("needles %v: %x, want %x", n, got, want)
		}
		var marks [windowBytes + 8]uint16
		count, k := flatten(&marks, got), 0
		for i := range windowBytes {
			if got[i/8]>>(i%8)&1 == 1 {
				if k >= count || int(marks[k]) != i {
					t.Fatalf("place %d is %d, want %d", k, marks[k], i)
				}
				k++
			}
		}
		if k != count {
			t.Fatalf("%d places, want %d", count, k)
		}
	}
}
