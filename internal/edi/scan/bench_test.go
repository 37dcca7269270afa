package scan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/edihub/edihub/internal/edi"
)

var (
	edifactDelimiters = edi.Delimiters{Component: ':', Element: '+', Decimal: '.', Release: '?', Segment: '\''}
	x12Delimiters     = edi.Delimiters{Component: '>', Element: '*', Segment: '~'}
)

// values makes values of irregular length; the same ones in each run.
type values struct{ r *rand.Rand }

func newValues() values { return values{rand.New(rand.NewPCG(7, 11))} }

// digits returns a number of 1 to most digits.
func (v values) digits(most int) string {
	n := 1 + v.r.IntN(most)
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + v.r.IntN(10))
	}
	return string(b)
}

// words returns a text of at most `most` characters.
func (v values) words(most int) string {
	list := []string{"GARDEN", "OAK", "CHAIR", "OF", "STEEL", "TABLE", "NO", "OUTDOOR", "SET", "A"}
	text := list[v.r.IntN(len(list))]
	for {
		next := text + " " + list[v.r.IntN(len(list))]
		if len(next) > most || v.r.IntN(4) == 0 {
			return text
		}
		text = next
	}
}

// benchInvoic writes INVOIC messages with segments of about 24 bytes and no line breaks.
func benchInvoic(size int) []byte {
	v := newValues()
	var b bytes.Buffer
	b.WriteString("UNB+UNOC:3+4012345000009:14+5412345000013:14+260301:1200+R1'")
	for m := 1; b.Len() < size; m++ {
		fmt.Fprintf(&b, "UNH+%d+INVOIC:D:96A:UN:EAN008'BGM+380+INV%07d+9'DTM+137:20260301:102'NAD+BY+5412345000013::9'NAD+SU+4012345000009::9++M?'Leod Ltd'CUX+2:EUR:4'", m, m)
		lines := 20 + v.r.IntN(30)
		n := 6
		for l := 1; l <= lines; l++ {
			fmt.Fprintf(&b, "LIN+%d++4000862%06d:EN'IMD+F++:::%s'QTY+47:%s:PCE'", l, v.r.IntN(1000000), v.words(35), v.digits(4))
			fmt.Fprintf(&b, "MOA+203:%s.%02d'PRI+AAA:%s.25:::1:PCE'TAX+7+VAT+++:::19.00+S'", v.digits(6), l, v.digits(4))
			n += 6
			if v.r.IntN(2) == 0 {
				fmt.Fprintf(&b, "RFF+ON:PO%s:%d'DTM+171:2026%02d15:102'", v.digits(9), l, l%12+1)
				n += 2
			}
			if v.r.IntN(3) == 0 {
				fmt.Fprintf(&b, "FTX+AAI+++%s:%s'ALC+A++++DI:::%s'PCD+3:%s.5'", v.words(40), v.words(50), v.words(20), v.digits(2))
				n += 3
			}
		}
		fmt.Fprintf(&b, "UNS+S'MOA+77:%s.40'MOA+124:19.00'UNT+%d+%d'", v.digits(6), n+4, m)
	}
	b.WriteString("UNZ+1+R1'")
	return b.Bytes()
}

// bench850 writes 850 sets with segments of about 30 bytes and no line breaks.
func bench850(size int) []byte {
	v := newValues()
	var b bytes.Buffer
	for m := 1; b.Len() < size; m++ {
		fmt.Fprintf(&b, "ST*850*%09d~BEG*00*SA*PO%07d**20260301~REF*DP*MERCHANDISE DEPT %d~DTM*002*20260315~N1*BY*NORTHERN STORES INC*92*%05d~N3*1200 HARBOUR ROAD SUITE 4~N4*PORTLAND*ME*04101*US~", m, m, m%90, m%99999)
		lines, n := 50+v.r.IntN(40), 7
		for l := 1; l <= lines; l++ {
			fmt.Fprintf(&b, "PO1*%d*%s*EA*%s.25**UP*0040086%05d*VN*W-%s~PID*F****%s~", l, v.digits(4), v.digits(4), v.r.IntN(100000), v.digits(6), v.words(60))
			n += 2
			if v.r.IntN(2) == 0 {
				fmt.Fprintf(&b, "PO4*%d*1*CA*PLT*G*%s.5*LB~REF*IA*%s~", l, v.digits(4), v.digits(12))
				n += 2
			}
			if v.r.IntN(3) == 0 {
				fmt.Fprintf(&b, "SDQ*EA*92*00%s*%d*00%s*%s~", v.digits(3), l, v.digits(3), v.digits(3))
				n++
			}
		}
		fmt.Fprintf(&b, "CTT*%d~SE*%d*%09d~", lines, n+2, m)
	}
	return b.Bytes()
}

// reference is a plain one-pass splitter with a look-up per byte that checks nothing. It returns
// the number of spans.
func reference(data []byte, d edi.Delimiters, spans []Token) int {
	var class [256]uint8
	class[d.Element], class[d.Component], class[d.Segment] = 1, 2, 3
	if d.Release != 0 {
		class[d.Release] = 4
	}
	total, start := 0, 0
	n := 0
	for i := 0; i < len(data); i++ {
		switch class[data[i]] {
		case 0:
			continue
		case 4:
			i++
			continue
		case 3:
			spans[n] = Token{Start: uint32(start), End: uint32(i)}
			total += n + 1
			n = 0
		default:
			spans[n] = Token{Start: uint32(start), End: uint32(i)}
			n++
		}
		start = i + 1
	}
	return total
}

// tokenise reads all segments and splits each into tokens; it returns the number of tokens.
func tokenise(tb testing.TB, data []byte, d edi.Delimiters) int {
	sc := New(bytes.NewReader(data), 0, Limits{}, NoBinary)
	sc.SetDelimiters(d)
	total := 0
	for {
		_, tokens, err := sc.NextTokens()
		if errors.Is(err, io.EOF) {
			return total
		}
		if err != nil {
			tb.Fatal(err)
		}
		total += len(tokens)
	}
}

// best is the best of the runs of one thing that is measured, in processor time, which says
// more than a clock on a machine that does other work too.
type best time.Duration

func (m *best) run(f func()) {
	begin := processorTime()
	f()
	*m = min(*m, best(processorTime()-begin))
}

func processorTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

func (m best) mbPerSecond(n int) float64 { return float64(n) / time.Duration(m).Seconds() / 1e6 }

// BenchmarkTokenise reports the speed of segments and tokens together over 52 MB, the best of
// the runs, beside three references that are measured in turn with it: a plain splitter that
// checks nothing, counting the terminators (what memory and vector units allow), and
// encoding/json over an eighth of the bytes as an array of segments.
func BenchmarkTokenise(b *testing.B) {
	const size = 52 << 20
	for _, c := range []struct {
		name string
		make func(int) []byte
		d    edi.Delimiters
	}{{"INVOIC", benchInvoic, edifactDelimiters}, {"850", bench850, x12Delimiters}} {
		b.Run(c.name, func(b *testing.B) {
			data := c.make(size)
			text, err := json.Marshal(strings.Split(string(data[:size/8]), string([]byte{c.d.Segment})))
			if err != nil {
				b.Fatal(err)
			}
			spans := make([]Token, 4096)
			segments := 0
			mine, plain, count, valid := best(1<<62), best(1<<62), best(1<<62), best(1<<62)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				mine.run(func() { tokenise(b, data, c.d) })
				b.StopTimer()
				plain.run(func() {
					if reference(data, c.d, spans) == 0 {
						b.Fatal("no spans")
					}
				})
				count.run(func() { segments = bytes.Count(data, []byte{c.d.Segment}) })
				valid.run(func() {
					if !json.Valid(text) {
						b.Fatal("no JSON")
					}
				})
				b.StartTimer()
			}
			b.StopTimer()
			b.ReportMetric(mine.mbPerSecond(len(data)), "best-MB/s")
			b.ReportMetric(plain.mbPerSecond(len(data)), "plain-MB/s")
			b.ReportMetric(count.mbPerSecond(len(data)), "count-MB/s")
			b.ReportMetric(valid.mbPerSecond(len(text)), "json-MB/s")
			b.ReportMetric(float64(plain)/float64(mine), "x-plain")
			b.ReportMetric(float64(len(data))/float64(segments), "B/segment")
		})
	}
}
