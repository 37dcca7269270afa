package tables_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/scan"
	"github.com/edihub/edihub/internal/edi/tables"
	"github.com/edihub/edihub/internal/edifact"
	"github.com/edihub/edihub/internal/x12"
)

// invoice writes an INVOIC of about n bytes and 24 bytes a segment; n of 0 is a small one.
func invoice(number, n int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "UNH+%d+INVOIC:D:96A:UN:EAN008'BGM+380+INV%07d+9'DTM+137:20260301:102'NAD+BY+5412345000013::9'NAD+SU+4012345000009::9++M?'Leod Ltd'CUX+2:EUR:4'", number, number)
	segments := 6
	for line := 1; b.Len() < n; line++ {
		fmt.Fprintf(&b, "LIN+%d++4000862%06d:EN'IMD+F++:::GARDEN CHAIR OF OAK %d'QTY+47:%d:PCE'", line, line*7919%1000000, line, line*13%900+1)
		fmt.Fprintf(&b, "MOA+203:%d.%02d'PRI+AAA:%d.25:::1:PCE'RFF+ON:PO%09d:%d'TAX+7+VAT+++:::19.00+S'", line*7919%100000, line%100, line%5000, line*31, line)
		segments += 7
		if line%3 == 0 {
			fmt.Fprintf(&b, "ALC+A++++DI:::YEARLY BONUS'PCD+3:%d.5'", line%40)
			segments += 2
		}
	}
	fmt.Fprintf(&b, "UNS+S'MOA+77:%d.40'MOA+124:19.00'UNT+%d+%d'", number, segments+4, number)
	return b.Bytes()
}

// order850 writes an 850 of about n bytes and 30 bytes a segment.
func order850(number, n int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "ST*850*%09d~BEG*00*SA*PO%07d**20260301~REF*DP*MERCHANDISE DEPT %d~DTM*002*20260315~N1*BY*NORTHERN STORES INC*92*%05d~N3*1200 HARBOUR ROAD SUITE 4~N4*PORTLAND*ME*04101*US~", number, number, number%90, number%99999)
	segments := 7
	lines := 0
	for ; b.Len() < n; lines++ {
		fmt.Fprintf(&b, "PO1*%d*%d*EA*%d.25**UP*0040086%05d*VN*W-%d~PID*F****GARDEN CHAIR OF OAK NO %d~", lines+1, lines*13%900+1, lines%5000, lines*7919%100000, lines*31, lines)
		segments += 2
		if lines%2 == 0 {
			fmt.Fprintf(&b, "PO4*%d*1*CA*PLT*G*%d.5*LB~REF*IA*%012d~", lines%99+1, lines%900, lines)
			segments += 2
		}
		if lines%3 == 0 {
			fmt.Fprintf(&b, "SDQ*EA*92*00%03d*%d*00%03d*%d~", lines%999, lines%90+1, lines%997, lines%80+1)
			segments++
		}
	}
	fmt.Fprintf(&b, "CTT*%d~SE*%d*%09d~", lines, segments+2, number)
	return b.Bytes()
}

type benchCase struct {
	name  string
	make  func(number, n int) []byte
	d     edi.Delimiters
	check func(b testing.TB, data []byte, d edi.Delimiters) []edi.Finding
}

func benchCases() []benchCase {
	return []benchCase{
		{"INVOIC", invoice, edifactDelimiters, func(b testing.TB, data []byte, d edi.Delimiters) []edi.Finding {
			found, err := edifact.Check(b.Context(), bytes.NewReader(data), d, &edifact.CheckOptions{Version: "UNOC:3"})
			if err != nil {
				b.Fatal(err)
			}
			return found
		}},
		{"850", order850, x12Delimiters, func(b testing.TB, data []byte, d edi.Delimiters) []edi.Finding {
			found, err := x12.Check(b.Context(), bytes.NewReader(data), d, &x12.CheckOptions{Version: "004010"})
			if err != nil {
				b.Fatal(err)
			}
			return found
		}},
	}
}

// BenchmarkCheck reports the speed of the whole check of 52 MB in messages of 7 kB, one core, and
// of one message of 10 kB. The reference counts the terminators of the same bytes.
func BenchmarkCheck(b *testing.B) {
	const size, each = 52_000_000, 7_000
	for _, c := range benchCases() {
		b.Run(c.name, func(b *testing.B) {
			var messages [][]byte
			var all []byte
			for n := 1; len(all) < size; n++ {
				m := c.make(n, each)
				messages = append(messages, m)
				all = append(all, m...)
			}
			if found := c.check(b, messages[0], c.d); len(found) > 0 {
				b.Fatalf("%+v", found)
			}
			segments := bytes.Count(all, []byte{c.d.Segment})
			b.SetBytes(int64(len(all)))
			b.ReportAllocs()
			best, reference := time.Duration(1<<62), time.Duration(1<<62)
			cpu := time.Duration(1 << 62)
			for b.Loop() {
				begin, used := time.Now(), cpuTime(b)
				for _, m := range messages {
					if len(c.check(b, m, c.d)) > 0 {
						b.Fatal("a finding in a valid message")
					}
				}
				best = min(best, time.Since(begin))
				cpu = min(cpu, cpuTime(b)-used)
				b.StopTimer()
				begin = time.Now()
				bytes.Count(all, []byte{c.d.Segment})
				reference = min(reference, time.Since(begin))
				b.StartTimer()
			}
			b.ReportMetric(float64(len(all))/best.Seconds()/1e6, "best-MB/s")
			b.ReportMetric(float64(len(all))/cpu.Seconds()/1e6, "cpu-MB/s")
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(segments), "cpu-ns/segment")
			b.ReportMetric(float64(len(all))/reference.Seconds()/1e9, "count-GB/s")
		})
		b.Run(c.name+"-10kB", func(b *testing.B) {
			m := c.make(1, 10_000)
			b.SetBytes(int64(len(m)))
			b.ReportAllocs()
			for b.Loop() {
				c.check(b, m, c.d)
			}
		})
	}
}

// cpuTime is what the process has used so far: other programs on the machine do not count.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestNoAllocationPerSegment: a long message needs no more memory than a short one.
func TestNoAllocationPerSegment(t *testing.T) {
	for _, c := range benchCases() {
		short, long := c.make(1, 1000), c.make(1, 1_000_000)
		count := func(m []byte) float64 {
			return testing.AllocsPerRun(5, func() {
				if found := c.check(t, m, c.d); len(found) > 0 {
					t.Errorf("%+v", found)
				}
			})
		}
		if a, b := count(short), count(long); b > a+20 {
			t.Errorf("%s: %v allocations for 1 kB, %v for 1 MB", c.name, a, b)
		}
	}
}

// TestReset: a scanner that was used before reads like a new one.
func TestReset(t *testing.T) {
	t.Parallel()
	sc := scan.New(bytes.NewReader([]byte("A+1'B")), 0, scan.Limits{}, scan.NoBinary)
	sc.SetDelimiters(edifactDelimiters)
	for {
		if _, _, err := sc.NextTokens(); errors.Is(err, io.EOF) {
			break
		}
	}
	sc.Reset(bytes.NewReader([]byte("C*2~")), 7, scan.Limits{}, scan.BINAndBDS)
	sc.SetDelimiters(x12Delimiters)
	seg, tokens, err := sc.NextTokens()
	if err != nil || string(seg.Raw) != "C*2" || seg.Offset != 7 || len(tokens) != 2 || !seg.Terminated {
		t.Errorf("%+v %v %v", seg, tokens, err)
	}
}

// BenchmarkFirstUse reports what the first message of a type costs: reading its directory and
// making its table.
func BenchmarkFirstUse(b *testing.B) {
	text, err := os.ReadFile("../../edifact/tables/d20b.tbl")
	if err != nil {
		b.Fatal(err)
	}
	service := directory(b, edifact.Library(), "service.4")
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := tables.Read(string(text)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("compile", func(b *testing.B) {
		d := directory(b, edifact.Library(), "D.20B")
		for b.Loop() {
			if _, err := d.Compile("ORDERS", service); err != nil {
				b.Fatal(err)
			}
		}
	})
}
