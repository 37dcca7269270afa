package edifact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/scan/scantest"
)

func open(r io.Reader) edi.Splitter { return NewSplitter(r, Limits{}) }

const (
	unb  = "UNB+UNOA:3+ALPHA:ZZ+BETA:ZZ+260301:1200+R1'"
	head = "BGM+220+PO1+9'DTM+137:20260301:102'"
	body = "NAD+BY+5412345000013::9'LIN+1++4000862141404:EN'QTY+21:5'UNS+S'"
)

// one returns an interchange of one ORDERS with a given body and segment count.
func one(body string, n int) string {
	return unb + "UNH+1+ORDERS:D:96A:UN'" + head + body + fmt.Sprintf("UNT+%d+1'UNZ+1+R1'", n)
}

// cases are inputs with what must come out: counts of interchanges, groups, messages and
// segments, the rules of the findings, and the delimiters of the last interchange.
var cases = []struct {
	name, in             string
	ics, groups, msgs    int
	segments             int
	rules                []string
	version, receiver    string
	repetition, segment  byte
	messageSegments, una int
}{
	{name: "plain", in: one(body, 8), ics: 1, msgs: 1, segments: 10, messageSegments: 8},
	{name: "E01 released release character before a terminator", in: one("FTX+AAI+++WHY??'"+body, 9), ics: 1, msgs: 1, segments: 11, messageSegments: 9},
	{name: "released terminator", in: one("FTX+AAI+++WHY?'S'"+body, 9), ics: 1, msgs: 1, segments: 11},
	{name: "three release characters and a terminator", in: one("FTX+AAI+++A???'B'"+body, 9), ics: 1, msgs: 1, segments: 11},
	{name: "E02 header tag in data", in: one("FTX+AAI+++UNB'UNBOUND+1'NAD+BY+UNB::9'LIN+1'UNS+S'", 9), ics: 1, msgs: 1, segments: 11},
	{
		name: "E05 interchanges with delimiters of their own", in: one(body, 8) + "\r\n" + "UNA;*,! ~" + "UNB*UNOC;3*A*B*260301;1200*X~UNH*1*INVOIC;D;01B;UN~UNT*2*1~UNZ*1*X~\n",
		ics: 2, msgs: 2, segments: 14, segment: '~', version: "UNOC:3", receiver: "B",
	},
	{name: "E05 a UNA holds for one interchange", in: "UNA:*.? 'UNB*UNOA:3*A*B*260301:1200*X'UNZ*0*X'" + one(body, 8), ics: 2, msgs: 1, segments: 12, segment: '\''},
	{name: "E07 leading zeros in counts", in: unb + "UNH+1+ORDERS:D:96A:UN'UNT+0002+1'UNZ+00001+ R1 '", ics: 1, msgs: 1, segments: 4},
	{name: "E08 wrong count in UNT", in: one(body, 11), ics: 1, msgs: 1, segments: 10, rules: []string{"EDI-UNT-COUNT"}},
	{
		name: "E09 UNZ counts messages", in: unb + "UNH+1+ORDERS:D:96A:UN'" + head + body + "UNT+8+1'UNH+2+ORDERS:D:96A:UN'" + head + body + "UNT+8+2'UNZ+2+R1'",
		ics: 1, msgs: 2, segments: 18,
	},
	{name: "E10 segment without elements", in: unb + "UNH+1+PAORES:93:1:IA'" + head + "ODI'UNS+S'UNT+6+1'UNZ+1+R1'", ics: 1, msgs: 1, segments: 8},
	{name: "E11 line breaks in and between segments", in: strings.ReplaceAll(one("FTX+AAI+++FIRST LINE#SECOND'"+body, 9), "'", "'\r\n"), ics: 1, msgs: 1, segments: 11},
	{name: "E13 tag of another standard", in: one("END+2+X?, Y'UNS+S'", 6), ics: 1, msgs: 1, segments: 8},
	{name: "E14 bytes beyond ASCII", in: "UNB+UNOC:3+A+B+260301:1200+R1'UNH+1+ORDERS:D:96A:UN'NAD+BY+1::9++S\xfcd Lager'UNT+3+1'UNZ+1+R1'", ics: 1, msgs: 1, segments: 5},
	{name: "byte order mark and blanks", in: "\xef\xbb\xbf \r\n" + one(body, 8), ics: 1, msgs: 1, segments: 10, rules: []string{"w:EDI-BOM", "w:EDI-LEADING-SPACE"}},
	{name: "UNA on a line of its own", in: "UNA:+.? '\r\n" + one(body, 8), ics: 1, msgs: 1, segments: 10, una: 1},
	{name: "release character switched off", in: "UNA:+.  'UNB+UNOA:3+A+B+260301:1200+X'UNH+1+ORDERS:D:96A:UN'FTX+AAI+++WHY?'UNT+3+1'UNZ+1+X'", ics: 1, msgs: 1, segments: 5},
	{name: "syntax 4 repetition by default", in: "UNB+UNOC:4+A+B+20260301:1200+X'UNZ+0+X'", ics: 1, segments: 2, repetition: '*', version: "UNOC:4"},
	{name: "syntax 4 repetition by UNA", in: "UNA:+.?|'UNB+UNOC:4+A+B+20260301:1200+X'UNZ+0+X'", ics: 1, segments: 2, repetition: '|'},
	{name: "syntax 4 repetition switched off", in: "UNA:+.? 'UNB+UNOC:4+A+B+20260301:1200+X'UNZ+0+X'", ics: 1, segments: 2},
	{name: "syntax 3 has no repetition", in: "UNA:+.?*'UNB+UNOC:3+A+B+260301:1200+X'UNZ+0+X'", ics: 1, segments: 2},
	{name: "level B separators", in: strings.NewReplacer("+", "\x1d", ":", "\x1f", "'", "\x1c").Replace("UNB+UNOB:1+A+B:ZZ+260301:1200+X'UNH+1+ORDERS:D:96A:UN'FTX+A+++WHY?'UNT+3+1'UNZ+1+X'"), ics: 1, msgs: 1, segments: 5, segment: 0x1c, receiver: "B"},
	{
		name: "groups", in: unb + "UNG+ORDERS+S+R+260301:1200+7+UN+D:96A'UNH+1+ORDERS:D:96A:UN'UNT+2+1'UNH+2+ORDERS:D:96A:UN'UNT+2+2'UNE+2+7'UNG+INVOIC+S+R+260301:1200+8+UN+D:96A'UNH+3+INVOIC:D:96A:UN'UNT+2+3'UNE+1+8'UNZ+2+R1'",
		ics: 1, groups: 2, msgs: 3, segments: 12,
	},
	{name: "count and reference of UNE and UNZ", in: unb + "UNG+ORDERS+S+R+260301:1200+7+UN+D:96A'UNH+1+ORDERS:D:96A:UN'UNT+2+2'UNE+2+8'UNZ+2+R2'", ics: 1, groups: 1, msgs: 1, segments: 6, rules: []string{"EDI-UNT-REF", "EDI-UNE-COUNT", "EDI-UNE-REF", "EDI-UNZ-COUNT", "EDI-UNZ-REF"}},
	{name: "count that is no number", in: unb + "UNZ+none+R1'", ics: 1, segments: 2, rules: []string{"EDI-UNZ-COUNT"}},
	{name: "message cut off by the next", in: unb + "UNH+1+ORDERS:D:96A:UN'BGM+220'UNH+2+ORDERS:D:96A:UN'UNT+2+2'UNZ+2+R1'", ics: 1, msgs: 2, segments: 6, rules: []string{"EDI-UNT-MISSING"}},
	{name: "interchange cut off by the next", in: unb + "UNH+1+ORDERS:D:96A:UN'UNT+2+1'" + one(body, 8), ics: 2, msgs: 2, segments: 13, rules: []string{"EDI-NO-TRAILER"}},
	{name: "interchange cut off by a UNA", in: unb + "UNH+1+ORDERS:D:96A:UN'UNA;*,! ~UNB*UNOC;3*A*B*260301;1200*X~UNZ*0*X~", ics: 2, msgs: 1, segments: 4, rules: []string{"EDI-UNT-MISSING", "EDI-NO-TRAILER"}},
	{name: "group cut off by UNZ", in: unb + "UNG+ORDERS+S+R+260301:1200+7+UN+D:96A'UNH+1+ORDERS:D:96A:UN'UNT+2+1'UNZ+1+R1'", ics: 1, groups: 1, msgs: 1, segments: 5, rules: []string{"EDI-UNE-MISSING"}},
	{name: "no trailer", in: unb + "UNH+1+ORDERS:D:96A:UN'", ics: 1, msgs: 1, segments: 2, rules: []string{"EDI-UNT-MISSING", "EDI-NO-TRAILER"}},
	{name: "no terminator", in: strings.TrimSuffix(one(body, 8), "'"), ics: 1, msgs: 1, segments: 10, rules: []string{"EDI-NO-TERMINATOR"}},
	{name: "stray trailers", in: unb + "UNT+1+1'UNE+1+1'UNP+0+1'UNZ+0+R1'", ics: 1, segments: 5, rules: []string{"EDI-UNT-STRAY", "EDI-UNE-STRAY", "EDI-UNP-STRAY"}},
	{name: "segment outside a message", in: unb + "BGM+220'UNH+1+ORDERS:D:96A:UN'UNT+2+1'UNZ+1+R1'", ics: 1, msgs: 1, segments: 5, rules: []string{"EDI-SEGMENT-OUTSIDE"}},
	{name: "message without interchange", in: "UNH+1+ORDERS:D:96A:UN'UNT+2+1'", ics: 1, msgs: 1, segments: 2, rules: []string{"EDI-DATA-OUTSIDE"}},
	{name: "data behind an interchange", in: one(body, 8) + "\r\nrubbish", ics: 2, msgs: 1, segments: 11, rules: []string{"EDI-DATA-OUTSIDE", "EDI-NO-TERMINATOR"}},
	{name: "padding behind an interchange", in: one(body, 8) + "\r\n\x1a\x00", ics: 1, msgs: 1, segments: 10, rules: []string{"w:EDI-PADDING"}},
	{name: "indented and empty segments", in: unb + "\n  UNH+1+ORDERS:D:96A:UN''\n\tUNT+2+1'\nUNZ+1+R1'", ics: 1, msgs: 1, segments: 4, rules: []string{"w:EDI-INDENT", "w:EDI-EMPTY-SEGMENT"}},
	{name: "UNA with eight bytes", in: "UNA:+.?'" + one(body, 8), ics: 1, msgs: 1, segments: 10, rules: []string{"EDI-UNA"}, una: 1},
	{name: "UNA with a delimiter twice", in: "UNA++.? '" + one(body, 8), ics: 1, msgs: 1, segments: 10, rules: []string{"EDI-UNA"}, una: 1},
	{name: "UNB with another separator", in: "UNB*UNOA:3*A*B*260301:1200*X'UNZ*0*X'", ics: 1, segments: 2, rules: []string{"EDI-UNB-SEPARATOR"}, receiver: "B"},
	{name: "message between groups", in: unb + "UNG+ORDERS+S+R+260301:1200+7+UN+D:96A'UNE+0+7'UNH+1+ORDERS:D:96A:UN'UNT+2+1'UNZ+1+R1'", ics: 1, groups: 1, msgs: 1, segments: 6, rules: []string{"EDI-UNH-OUTSIDE-GROUP"}},
	{name: "group behind messages", in: unb + "UNH+1+ORDERS:D:96A:UN'UNT+2+1'UNG+ORDERS+S+R+260301:1200+7+UN+D:96A'UNE+0+7'UNZ+1+R1'", ics: 1, groups: 1, msgs: 1, segments: 6, rules: []string{"EDI-UNG-MIXED"}},
	{name: "E15 package of a wrong length", in: unb + "UNO+P1+1+1+13'A'B+UNZ+C??'\r\nUNP+13+P1'UNZ+1+R1'", ics: 1, msgs: 1, segments: 6, rules: []string{"EDI-UNO-LENGTH", "EDI-SEGMENT-OUTSIDE", "EDI-SEGMENT-OUTSIDE"}},
	{name: "E15 package of the right length", in: unb + "UNO+P1+1+1+10'A'B+UNZ'C?UNP+10+P1'UNZ+1+R1'", ics: 1, msgs: 1, segments: 4},
	{name: "package and its trailer differ", in: unb + "UNO+P1+1+1+3'A'BUNP+4+P2'UNZ+1+R1'", ics: 1, msgs: 1, segments: 4, rules: []string{"EDI-UNP-COUNT", "EDI-UNP-REF"}},
	{name: "package without a length", in: unb + "UNO+P1+1+1+x'UNP+0+P1'UNZ+1+R1'", ics: 1, msgs: 1, segments: 4, rules: []string{"EDI-UNO-LENGTH"}},
	{name: "empty file", in: "", ics: 0},
	{name: "blank file", in: "\r\n \r\n", ics: 0},
	{name: "a UNA alone", in: "UNA:+.? '", ics: 1, segments: 0, rules: []string{"EDI-DATA-OUTSIDE"}},
}

func TestSplitter(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := strings.ReplaceAll(c.in, "#", "\r\n")
			events, err := scantest.Collect(open(strings.NewReader(in)))
			if err != nil {
				t.Fatal(err)
			}
			scantest.Check(t, []byte(in), events)
			ics, groups, msgs, segments := 0, 0, 0, 0
			var last edi.Interchange
			for _, ev := range events {
				if ev.Kind == edi.InterchangeEnd {
					last = *ev.Interchange
					ics++
					groups += last.Groups
					msgs += last.Messages
					segments += last.Segments
				}
				if ev.Kind == edi.MessageEnd && c.messageSegments > 0 && ev.Message.Segments != c.messageSegments {
					t.Errorf("message of %d segments, want %d", ev.Message.Segments, c.messageSegments)
				}
			}
			if ics != c.ics || groups != c.groups || msgs != c.msgs || segments != c.segments {
				t.Errorf("got %d interchanges, %d groups, %d messages, %d segments; want %d, %d, %d, %d", ics, groups, msgs, segments, c.ics, c.groups, c.msgs, c.segments)
			}
			if c.rules == nil {
				c.rules = []string{}
			}
			if diff := cmp.Diff(c.rules, scantest.Rules(events)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if c.version != "" && last.Version != c.version || c.receiver != "" && last.Receiver.ID != c.receiver {
				t.Errorf("last interchange %q for %q", last.Version, last.Receiver.ID)
			}
			if c.segment != 0 && last.Delimiters.Segment != c.segment || last.Delimiters.Repetition != c.repetition || last.ServiceUNA != (c.una > 0) && c.una > 0 {
				t.Errorf("delimiters %+v, UNA %v", last.Delimiters, last.ServiceUNA)
			}
		})
	}
}

func TestChunksAndTruncations(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			scantest.Chunks(t, []byte(c.in), open)
			scantest.Truncations(t, []byte(c.in), open)
		})
	}
}

func TestEnvelopeValues(t *testing.T) {
	t.Parallel()
	in := "UNA:+,? '\r\nUNB+UNOC:3+4012345000009:14+B?+C :ZZ+260301:1200+REF?'1++ORDERS++1++1'" +
		"UNG+ORDERS+GS:14+GR+260301:1200+G7+UN+D:96A'UNH+M1+ORDERS:D:96A:UN:EAN008'BGM+220+PO77:2+5'DTM+137:20260301:102'RFF+ON:X9'NAD+BY+5412345000013::9'UNT+6+M1'" +
		"UNH+M2+DESADV:D:96A:UN'BGM+351+D1+9'RFF+ON:PO77'NAD+BY+++BUYER LTD'LIN+1'RFF+ON:OTHER'UNT+7+M2'UNE+2+G7'UNZ+1+REF?'1'"
	events, err := scantest.Collect(open(strings.NewReader(in)))
	if err != nil {
		t.Fatal(err)
	}
	if rules := scantest.Rules(events); len(rules) > 0 {
		t.Errorf("findings %v", rules)
	}
	ic := events[0].Interchange
	want := edi.Interchange{
		Standard: edi.EDIFACT, Sender: edi.Party{Qualifier: "14", ID: "4012345000009"}, Receiver: edi.Party{Qualifier: "ZZ", ID: "B+C"},
		ControlRef: "REF'1", Version: "UNOC:3", Charset: "ISO 8859-1", Test: true, AckRequest: true, Segments: 1,
		Delimiters: edi.Delimiters{Component: ':', Element: '+', Decimal: ',', Release: '?', Segment: '\''},
		Header:     []byte(in[:9] + in[11:strings.Index(in, "UNG")]), ServiceUNA: true,
	}
	if diff := cmp.Diff(want, *ic); diff != "" {
		t.Errorf("interchange (-want +got):\n%s", diff)
	}
	end := events[len(events)-1].Interchange
	if end.Length != int64(len(in)) || !end.TrailerSeen || end.Segments != 17 {
		t.Errorf("end of interchange %+v", end)
	}
	group := events[1].Group
	if group.FunctionID != "ORDERS" || group.Sender != "GS" || group.Receiver != "GR" || group.ControlRef != "G7" || group.Version != "D:96A" ||
		string(group.Header) != "UNG+ORDERS+GS:14+GR+260301:1200+G7+UN+D:96A'" {
		t.Errorf("group %+v", group)
	}
	first, second := events[2].Message, events[3].Message
	for _, c := range []struct {
		got  *edi.Message
		want edi.Message
	}{
		{first, edi.Message{Type: "ORDERS", Version: "D:96A:UN", Association: "EAN008", Ref: "M1", Segments: 6, Document: edi.Document{Number: "PO77", Version: "2", Function: "5", OrderNo: "PO77", Buyer: "5412345000013", Date: "20260301"}}},
		{second, edi.Message{Type: "DESADV", Version: "D:96A:UN", Ref: "M2", Segments: 7, Document: edi.Document{Number: "D1", Function: "9", OrderNo: "PO77", Buyer: "BUYER LTD"}}},
	} {
		raw := in[c.got.Offset : c.got.Offset+c.got.Length]
		if !strings.HasPrefix(raw, "UNH+"+c.want.Ref) || !strings.HasSuffix(raw, "+"+c.want.Ref+"'") {
			t.Errorf("range of message %s is %q", c.want.Ref, raw)
		}
		c.want.FunctionID, c.want.Group = "ORDERS", 1
		c.want.Position, c.want.Offset, c.want.Length = c.got.Position, c.got.Offset, c.got.Length
		if diff := cmp.Diff(c.want, *c.got); diff != "" {
			t.Errorf("message (-want +got):\n%s", diff)
		}
	}
}

func TestFindingPosition(t *testing.T) {
	t.Parallel()
	in := one(body, 11)
	events, err := scantest.Collect(open(strings.NewReader(in)))
	if err != nil {
		t.Fatal(err)
	}
	got := events[1].Message.Findings[0]
	if got.Segment != "UNT" || got.Position.Segment != 8 || got.Element != 1 || got.Offset != int64(strings.Index(in, "UNT")) || got.Actual != "11" || got.Expected != "8" {
		t.Errorf("finding %+v", got)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	msg := "UNH+1+ORDERS:D:96A:UN'UNT+2+1'"
	for _, c := range []struct {
		name, in string
		l        Limits
	}{
		{"max_segment_bytes", unb + "UNH+1+" + strings.Repeat("X", 200) + "'", Limits{MaxSegmentBytes: 100}},
		{"max_segment_bytes", unb + "UNH+1+" + strings.Repeat("X", 200), Limits{MaxSegmentBytes: 100}},
		{"max_segments", unb + msg + msg, Limits{MaxSegments: 4}},
		{"max_messages", unb + msg + msg, Limits{MaxMessages: 1}},
		{"max_groups", unb + strings.Repeat("UNG+ORDERS+S+R+260301:1200+7+UN+D:96A'UNE+0+7'", 2), Limits{MaxGroups: 1}},
		{"max_interchanges", strings.Repeat(unb+"UNZ+0+R1'", 3), Limits{MaxInterchanges: 2}},
	} {
		sp := NewSplitter(strings.NewReader(c.in), c.l)
		_, err := scantest.Collect(sp)
		var limit *edi.LimitError
		if !errors.As(err, &limit) || limit.Limit != c.name || limit.Offset <= 0 {
			t.Errorf("%s: got %v", c.name, err)
		}
		if _, again := sp.Next(); !errors.Is(again, err) {
			t.Errorf("%s: the next call says %v", c.name, again)
		}
	}
}

func TestFindingsAreCapped(t *testing.T) {
	t.Parallel()
	in := unb + strings.Repeat("BGM+1'", 10) + "UNZ+0+R1'"
	events, err := scantest.Collect(NewSplitter(strings.NewReader(in), Limits{MaxFindings: 3}))
	if err != nil {
		t.Fatal(err)
	}
	fs := events[len(events)-1].Interchange.Findings
	if len(fs) != 4 || fs[3].Rule != "EDI-FINDINGS-LIMIT" || fs[3].Severity != edi.Fatal || fs[3].Actual != "10" {
		t.Errorf("findings %+v", fs)
	}
}

var errBroken = errors.New("broken")

func TestReadErrorIsNotAnEnd(t *testing.T) {
	t.Parallel()
	in := one(body, 8)
	for i := range len(in) {
		r := io.MultiReader(strings.NewReader(in[:i]), errReader{})
		if _, err := scantest.Collect(open(r)); !errors.Is(err, errBroken) {
			t.Fatalf("cut at %d: got %v", i, err)
		}
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errBroken }

// batch is a reader over an interchange of n messages that never holds it.
type batch struct {
	n, next int
	part    []byte
}

func (b *batch) Read(p []byte) (int, error) {
	if len(b.part) == 0 {
		switch {
		case b.next == 0:
			b.part = []byte(unb)
		case b.next <= b.n:
			b.part = fmt.Appendf(nil, "UNH+%d+ORDERS:D:96A:UN'%s%sUNT+8+%d'\r\n", b.next, head, body, b.next)
		case b.next == b.n+1:
			b.part = fmt.Appendf(nil, "UNZ+%d+R1'", b.n)
		default:
			return 0, io.EOF
		}
		b.next++
	}
	n := copy(p, b.part)
	b.part = b.part[n:]
	return n, nil
}

func TestMemoryIsBounded(t *testing.T) {
	const messages = 50_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	sp := open(&batch{n: messages})
	seen, peak := 0, uint64(0)
	for {
		ev, err := sp.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == edi.MessageEnd {
			if seen++; seen%10_000 == 0 {
				peak = max(peak, heap())
			}
		}
		if ev.Kind == edi.InterchangeEnd && edi.HasFatal(ev.Interchange.Findings) {
			t.Errorf("findings %v", ev.Interchange.Findings)
		}
	}
	if seen != messages {
		t.Errorf("%d messages", seen)
	}
	const most = 4 << 20
	if peak > before+most {
		t.Errorf("the heap grew from %d to %d bytes", before, peak)
	}
}

func TestSniff(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{
		"UNA:+.? '": true, "UNB+UNOA:3": true, "\xef\xbb\xbf\r\n UNB+": true, "UNB\x1dUNOB": true,
		"UNH+1": false, "UNB": false, "UNBOUND": false, "ISA*00*": false, "": false, "<Invoice": false,
	} {
		if got := Sniff([]byte(in)); got != want {
			t.Errorf("Sniff(%q) = %v", in, got)
		}
	}
}

func FuzzEDIFACT(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := Limits{MaxSegmentBytes: 4096, MaxFindings: 5}
		events, err := scantest.Collect(NewSplitter(bytes.NewReader(data), l))
		var limit *edi.LimitError
		if err != nil && !errors.As(err, &limit) {
			t.Fatal(err)
		}
		if err == nil {
			scantest.Check(t, data, events)
		}
		halves := io.MultiReader(bytes.NewReader(data[:len(data)/2]), bytes.NewReader(data[len(data)/2:]))
		if diff := cmp.Diff(scantest.Dump(events, err), scantest.Dump(scantest.Collect(NewSplitter(halves, l)))); diff != "" {
			t.Errorf("the input in two halves reads otherwise:\n%s", diff)
		}
	})
}

// BenchmarkSplit splits interchanges of many small messages and of messages of about 10 kB.
func BenchmarkSplit(b *testing.B) {
	for _, c := range []struct {
		name            string
		messages, lines int
	}{{"200B", 50_000, 0}, {"10kB", 1_000, 130}} {
		b.Run(c.name, func(b *testing.B) {
			var data bytes.Buffer
			data.WriteString(unb)
			for m := range c.messages {
				fmt.Fprintf(&data, "UNH+%d+INVOIC:D:96A:UN'%s", m, head)
				for l := range c.lines {
					fmt.Fprintf(&data, "LIN+%d++4000862141404:EN'QTY+47:%d:PCE'MOA+203:%d.15'", l, l*7, l*31)
				}
				fmt.Fprintf(&data, "UNS+S'UNT+%d+%d'", 5+3*c.lines, m)
			}
			fmt.Fprintf(&data, "UNZ+%d+R1'", c.messages)
			b.SetBytes(int64(data.Len()))
			b.ReportAllocs()
			for b.Loop() {
				sp := open(bytes.NewReader(data.Bytes()))
				for {
					ev, err := sp.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil || ev.Kind == edi.InterchangeEnd && edi.HasFatal(ev.Interchange.Findings) {
						b.Fatal(err, ev.Interchange.Findings)
					}
				}
			}
		})
	}
}
