package x12

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/scan"
	"github.com/edihub/edihub/internal/edi/scan/scantest"
)

func open(r io.Reader) edi.Splitter { return NewSplitter(r, Limits{}) }

const (
	isa00401 = "ISA*00*          *00*          *ZZ*ALPHA          *ZZ*BETA           *260301*1200*U*00401*000000001*0*T*>~"
	gs       = "GS*PO*ALPHA*BETA*20260301*1200*7*X*004010~"
	set      = "ST*850*0001~BEG*00*SA*PO77**20260301~PO1*1*5*EA*9.25**VN*W-1~SE*4*0001~"
	tail     = "GE*1*7~IEA*1*000000001~"
	whole    = isa00401 + gs + set + tail
)

// version returns an ISA with another ISA11 and ISA12.
func version(repetition, version string) string {
	return strings.Replace(isa00401, "*U*00401*", "*"+repetition+"*"+version+"*", 1)
}

// cases are inputs with what must come out: counts of interchanges, groups, sets and segments,
// the rules of the findings, and the delimiters of the last interchange.
var cases = []struct {
	name, in            string
	ics, groups, sets   int
	segments            int
	rules               []string
	segment, repetition byte
	release             byte
	control             string
}{
	{name: "plain", in: whole, ics: 1, groups: 1, sets: 1, segments: 8, segment: '~', control: "000000001"},
	{name: "E02 header tag in data", in: isa00401 + gs + "ST*850*0001~BEG*00*SA*PO77**20260301~N1*BT*ISAAC CLARISA*92*ISA~ISAX*1~SE*5*0001~" + tail, ics: 1, groups: 1, sets: 1, segments: 9},
	{name: "E03 line feed as terminator", in: strings.ReplaceAll(whole, "~", "\n"), ics: 1, groups: 1, sets: 1, segments: 8, segment: '\n'},
	{name: "E03 carriage return as terminator", in: strings.ReplaceAll(whole, "~", "\r\n"), ics: 1, groups: 1, sets: 1, segments: 8, segment: '\r'},
	{name: "terminator of the upper half", in: strings.ReplaceAll(whole, "~", "\x85"), ics: 1, groups: 1, sets: 1, segments: 8, segment: 0x85},
	{name: "tilde and line breaks", in: strings.ReplaceAll(whole, "~", "~\r\n"), ics: 1, groups: 1, sets: 1, segments: 8, segment: '~'},
	{name: "E04 no repetition separator before 00402", in: version("^", "00401") + gs + set + tail, ics: 1, groups: 1, sets: 1, segments: 8},
	{name: "repetition separator from 00402", in: version("^", "00402") + gs + set + tail, ics: 1, groups: 1, sets: 1, segments: 8, repetition: '^'},
	{name: "a letter is no repetition separator", in: version("U", "00501") + gs + set + tail, ics: 1, groups: 1, sets: 1, segments: 8},
	{name: "ISX names a release character", in: version("^", "00704") + "ISX*\\~" + gs + "ST*850*0001~REF*IA*A\\~B~SE*3*0001~" + tail, ics: 1, groups: 1, sets: 1, segments: 8, repetition: '^', release: '\\'},
	{
		name: "E05 interchanges with delimiters of their own",
		in:   whole + "\r\n" + strings.NewReplacer("*", "|", ">", "^", "~", "!", "000000001", "000000002").Replace(whole),
		ics:  2, groups: 2, sets: 2, segments: 16, segment: '!', control: "000000002",
	},
	{name: "E07 leading zeros in counts", in: isa00401 + gs + strings.Replace(set, "SE*4", "SE*00004", 1) + "GE*000001*7~IEA*00001*000000001~", ics: 1, groups: 1, sets: 1, segments: 8},
	{name: "leading zeros in references count", in: isa00401 + gs + set + "GE*1*07~IEA*1*1~", ics: 1, groups: 1, sets: 1, segments: 8, rules: []string{"EDI-GE-REF", "EDI-IEA-REF"}},
	{name: "E08 wrong count in SE", in: isa00401 + gs + strings.Replace(set, "SE*4", "SE*11", 1) + tail, ics: 1, groups: 1, sets: 1, segments: 8, rules: []string{"EDI-SE-COUNT"}},
	{name: "wrong counts everywhere", in: isa00401 + gs + strings.Replace(set, "SE*4*0001", "SE*x*2", 1) + "GE*2*7~IEA**000000001~", ics: 1, groups: 1, sets: 1, segments: 8, rules: []string{"EDI-SE-COUNT", "EDI-SE-REF", "EDI-GE-COUNT", "EDI-IEA-COUNT"}},
	{name: "E15 binary data", in: isa00401 + gs + "ST*275*0001~BGN*11*1*20260301~BIN*8*A~B*C:D\n~SE*4*0001~" + tail, ics: 1, groups: 1, sets: 1, segments: 8},
	{name: "E15 binary data in BDS", in: isa00401 + gs + "ST*275*0001~BDS*ASC*5*~SE*~~SE*3*0001~" + tail, ics: 1, groups: 1, sets: 1, segments: 7},
	{name: "E15 length that is no number", in: isa00401 + gs + "ST*275*0001~BIN*8a*ABCDEFGH~SE*3*0001~" + tail, ics: 1, groups: 1, sets: 1, segments: 7, rules: []string{"EDI-BIN-LENGTH"}},
	{name: "E15 length too large", in: isa00401 + gs + "ST*275*0001~BIN*9999*ABCDEFGH~SE*3*0001~" + tail, ics: 1, groups: 1, sets: 1, segments: 7, rules: []string{"EDI-BIN-LENGTH"}},
	{name: "BIN without data", in: isa00401 + gs + "ST*275*0001~BIN*8~SE*3*0001~" + tail, ics: 1, groups: 1, sets: 1, segments: 7},
	{name: "TA1 alone", in: isa00401 + "TA1*000000050*260301*1200*A*000~IEA*0*000000001~", ics: 1, segments: 3},
	{name: "TA1 before a group", in: isa00401 + "TA1*000000050*260301*1200*A*000~" + gs + set + tail, ics: 1, groups: 1, sets: 1, segments: 9},
	{name: "groups and sets", in: isa00401 + gs + set + strings.ReplaceAll(set, "0001", "0002") + "GE*2*7~" + strings.Replace(gs, "*7*", "*8*", 1) + set + "GE*1*8~IEA*2*000000001~", ics: 1, groups: 2, sets: 3, segments: 18},
	{name: "security segments of a group", in: isa00401 + gs + "S3S*1~" + set + "S3E*1~" + tail, ics: 1, groups: 1, sets: 1, segments: 10},
	{name: "ISA without fixed widths", in: strings.Replace(whole, "ALPHA          ", "ALPHA", 1), ics: 1, groups: 1, sets: 1, segments: 8, rules: []string{"EDI-ISA-WIDTH"}, control: "000000001"},
	{name: "ISA with too few elements", in: "ISA*00*ALPHA~IEA*0*1~", ics: 1, segments: 2, rules: []string{"EDI-ISA-WIDTH", "EDI-IEA-REF"}},
	{name: "terminator that is a letter", in: strings.Replace(isa00401, ">~", ">G", 1) + "S*PO~", ics: 1, segments: 2, rules: []string{"EDI-ISA-DELIMITER", "EDI-NO-TERMINATOR", "EDI-SEGMENT-OUTSIDE", "EDI-NO-TRAILER"}},
	{name: "component separator like the element separator", in: strings.Replace(isa00401, ">~", "*~", 1) + "IEA*0*000000001~", ics: 1, segments: 2, rules: []string{"EDI-ISA-WIDTH", "EDI-ISA-DELIMITER"}},
	{name: "no IEA", in: strings.TrimSuffix(whole, "IEA*1*000000001~"), ics: 1, groups: 1, sets: 1, segments: 7, rules: []string{"EDI-NO-TRAILER"}},
	{name: "no GE", in: strings.Replace(whole, "GE*1*7~", "", 1), ics: 1, groups: 1, sets: 1, segments: 7, rules: []string{"EDI-GE-MISSING"}},
	{name: "no SE", in: isa00401 + gs + "ST*850*0001~BEG*00~" + tail, ics: 1, groups: 1, sets: 1, segments: 6, rules: []string{"EDI-SE-MISSING"}},
	{name: "set cut off by the next", in: isa00401 + gs + "ST*850*0009~BEG*00~" + set + "GE*2*7~IEA*1*000000001~", ics: 1, groups: 1, sets: 2, segments: 10, rules: []string{"EDI-SE-MISSING"}},
	{name: "group cut off by the next", in: isa00401 + gs + set + gs + set + "GE*1*7~IEA*2*000000001~", ics: 1, groups: 2, sets: 2, segments: 13, rules: []string{"EDI-GE-MISSING", "w:EDI-GS-DUPLICATE"}},
	{name: "interchange cut off by one with other delimiters", in: isa00401 + gs + set + strings.NewReplacer("*", "|", "~", "!").Replace(whole), ics: 2, groups: 2, sets: 2, segments: 14, rules: []string{"EDI-GE-MISSING", "EDI-NO-TRAILER", "w:EDI-ISA-DUPLICATE"}},
	{name: "GE without GS", in: isa00401 + "GE*1*7~IEA*0*000000001~", ics: 1, segments: 3, rules: []string{"EDI-GE-STRAY"}},
	{name: "SE without ST", in: isa00401 + gs + "SE*1*1~GE*0*7~IEA*1*000000001~", ics: 1, groups: 1, segments: 5, rules: []string{"EDI-SE-STRAY"}},
	{name: "set outside a group", in: isa00401 + set + "IEA*0*000000001~", ics: 1, sets: 1, segments: 6, rules: []string{"EDI-ST-OUTSIDE-GROUP"}},
	{name: "segment outside a set", in: isa00401 + gs + "REF*1*2~" + set + tail, ics: 1, groups: 1, sets: 1, segments: 9, rules: []string{"EDI-SEGMENT-OUTSIDE"}},
	{name: "no terminator at the end", in: strings.TrimSuffix(whole, "~"), ics: 1, groups: 1, sets: 1, segments: 8, rules: []string{"EDI-NO-TERMINATOR"}},
	{name: "set without interchange", in: set, ics: 1, sets: 1, segments: 4, rules: []string{"EDI-DATA-OUTSIDE"}},
	{name: "data behind an interchange", in: whole + "\n1r\n", ics: 2, groups: 1, sets: 1, segments: 9, rules: []string{"EDI-DATA-OUTSIDE", "EDI-NO-TERMINATOR"}},
	{name: "padding behind an interchange", in: whole + "\n\x00\x1a", ics: 1, groups: 1, sets: 1, segments: 8, rules: []string{"w:EDI-PADDING"}},
	{name: "byte order mark, blanks, indentation", in: "\xef\xbb\xbf\n" + strings.ReplaceAll(whole, "~", "~\r\n\t "), ics: 1, groups: 1, sets: 1, segments: 8, rules: []string{"w:EDI-BOM", "w:EDI-LEADING-SPACE", "w:EDI-INDENT"}},
	{name: "empty segments", in: strings.Replace(whole, "~BEG", "~~BEG", 1), ics: 1, groups: 1, sets: 1, segments: 8, rules: []string{"w:EDI-EMPTY-SEGMENT"}},
	{name: "control number of a set twice", in: isa00401 + gs + set + set + "GE*2*7~IEA*1*000000001~", ics: 1, groups: 1, sets: 2, segments: 12, rules: []string{"w:EDI-ST-DUPLICATE"}},
	{name: "wrapped at 80 columns", in: whole[:80] + "\r\n" + whole[80:160] + "\r\n" + whole[160:], ics: 1, groups: 1, sets: 1, segments: 8, rules: []string{"EDI-ISA-WIDTH", "EDI-WRAPPED"}, control: "000000001"},
	{name: "text before an interchange", in: "Dear partner,\nit's our order:\n" + whole, ics: 2, groups: 1, sets: 1, segments: 8, rules: []string{"EDI-DATA-OUTSIDE"}},
	{name: "text between interchanges", in: whole + "\n--- next ~ one ---\n" + strings.ReplaceAll(whole, "000000001", "000000002"), ics: 3, groups: 2, sets: 2, segments: 16, rules: []string{"EDI-DATA-OUTSIDE"}},
	{name: "SE without terminator keeps its neighbour", in: isa00401 + gs + "ST*850*1~SE*2*1\nST*850*2~SE*2*2~GE*2*7~IEA*1*000000001~", ics: 1, groups: 1, sets: 2, segments: 8, rules: []string{"EDI-NO-TERMINATOR"}},
	{name: "IEA without terminator keeps its neighbour", in: strings.TrimSuffix(whole, "~") + "\r\n" + strings.ReplaceAll(whole, "000000001", "000000002"), ics: 2, groups: 2, sets: 2, segments: 16, rules: []string{"EDI-NO-TERMINATOR"}},
	{name: "empty file", in: ""},
}

func TestSplitter(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			events, err := scantest.Collect(open(strings.NewReader(c.in)))
			if err != nil {
				t.Fatal(err)
			}
			scantest.Check(t, []byte(c.in), events)
			ics, groups, sets, segments := 0, 0, 0, 0
			var last edi.Interchange
			for _, ev := range events {
				if ev.Kind == edi.InterchangeEnd {
					last = *ev.Interchange
					ics++
					groups += last.Groups
					sets += last.Messages
					segments += last.Segments
				}
			}
			if ics != c.ics || groups != c.groups || sets != c.sets || segments != c.segments {
				t.Errorf("got %d interchanges, %d groups, %d sets, %d segments; want %d, %d, %d, %d", ics, groups, sets, segments, c.ics, c.groups, c.sets, c.segments)
			}
			if c.rules == nil {
				c.rules = []string{}
			}
			if diff := cmp.Diff(c.rules, scantest.Rules(events)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			d := last.Delimiters
			if c.segment != 0 && d.Segment != c.segment || d.Repetition != c.repetition || d.Release != c.release || c.control != "" && last.ControlRef != c.control {
				t.Errorf("delimiters %+v, reference %q", d, last.ControlRef)
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
	in := strings.Replace(isa00401, "*0*T*", "*1*P*", 1) + "GS*SH*SNDR *RCVR*20260301*1200*7*X*004010~" +
		"ST*856*0001~BSN*00*SHIP1*20260301*1200~HL*1**S~N1*BY*BUYER LTD*92*B-1~HL*2*1*O~PRF*PO77***20260201~SE*7*0001~" +
		"ST*850*0002*005010X1~BEG*06*SA*PO77**20260301~N1*BY*BUYER LTD~SE*4*0002~" +
		"ST*810*3~BIG*20260301*INV1*20260201*PO77****00~SE*3*3~" +
		"ST*860*4~BCH*04*SA*PO77**2*20260228~SE*3*4~GE*4*7~IEA*1*000000001~"
	events, err := scantest.Collect(open(strings.NewReader(in)))
	if err != nil {
		t.Fatal(err)
	}
	if rules := scantest.Rules(events); len(rules) > 0 {
		t.Errorf("findings %v", rules)
	}
	want := edi.Interchange{
		Standard: edi.X12, Sender: edi.Party{Qualifier: "ZZ", ID: "ALPHA"}, Receiver: edi.Party{Qualifier: "ZZ", ID: "BETA"},
		ControlRef: "000000001", Version: "00401", AckRequest: true, Segments: 1,
		Delimiters: edi.Delimiters{Element: '*', Component: '>', Segment: '~'}, Header: []byte(in[:106]),
	}
	if diff := cmp.Diff(want, *events[0].Interchange); diff != "" {
		t.Errorf("interchange (-want +got):\n%s", diff)
	}
	g := events[1].Group
	if g.FunctionID != "SH" || g.Sender != "SNDR" || g.Receiver != "RCVR" || g.ControlRef != "7" || g.Version != "004010" || string(g.Header) != "GS*SH*SNDR *RCVR*20260301*1200*7*X*004010~" {
		t.Errorf("group %+v", g)
	}
	for i, w := range []edi.Message{
		{Type: "856", Version: "004010", Ref: "0001", Segments: 7, Document: edi.Document{Number: "SHIP1", Function: "00", Date: "20260301", OrderNo: "PO77", Buyer: "B-1"}},
		{Type: "850", Version: "005010X1", Ref: "0002", Segments: 4, Document: edi.Document{Number: "PO77", Function: "06", Date: "20260301", OrderNo: "PO77", Buyer: "BUYER LTD"}},
		{Type: "810", Version: "004010", Ref: "3", Segments: 3, Document: edi.Document{Number: "INV1", Function: "00", Date: "20260301", OrderNo: "PO77"}},
		{Type: "860", Version: "004010", Ref: "4", Segments: 3, Document: edi.Document{Number: "PO77", Function: "04", Version: "2", Date: "20260228", OrderNo: "PO77"}},
	} {
		m := events[2+i].Message
		raw := in[m.Offset : m.Offset+m.Length]
		if !strings.HasPrefix(raw, "ST*"+w.Type) || !strings.HasSuffix(raw, "*"+w.Ref+"~") {
			t.Errorf("range of set %s is %q", w.Ref, raw)
		}
		w.Position, w.Group, w.FunctionID, w.Offset, w.Length = i+1, 1, "SH", m.Offset, m.Length
		if diff := cmp.Diff(w, *m); diff != "" {
			t.Errorf("set (-want +got):\n%s", diff)
		}
	}
}

// TestLargeBinary passes binary data beyond the largest segment without holding it.
func TestLargeBinary(t *testing.T) {
	t.Parallel()
	data := strings.Repeat("~SE*1*1~IEA*1*1", 1000)
	for _, c := range []struct {
		length int
		rules  []string
	}{{len(data), []string{}}, {len(data) - 4, []string{"EDI-BIN-LENGTH"}}} {
		in := isa00401 + gs + fmt.Sprintf("ST*275*0001~BIN*%d*%s~SE*3*0001~", c.length, data) + tail
		events, err := scantest.Collect(NewSplitter(strings.NewReader(in), Limits{MaxSegmentBytes: 128}))
		if err != nil {
			t.Fatal(err)
		}
		scantest.Check(t, []byte(in), events)
		if diff := cmp.Diff(c.rules, scantest.Rules(events)); diff != "" {
			t.Errorf("length %d, findings (-want +got):\n%s", c.length, diff)
		}
	}
	in := isa00401 + gs + "ST*275*0001~BIN*8*ABCDEFGH~SE*3*0001~" + tail
	events, err := scantest.Collect(NewSplitter(strings.NewReader(in), Limits{MaxBinaryBytes: 7}))
	if got := scantest.Rules(events); err != nil || len(got) != 1 || got[0] != "EDI-BIN-LENGTH" {
		t.Errorf("beyond the limit: %v, %v", got, err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		l        Limits
	}{
		{"max_segment_bytes", isa00401 + gs + "ST*850*" + strings.Repeat("1", 200) + "~", Limits{MaxSegmentBytes: 100}},
		{"max_segments", whole, Limits{MaxSegments: 5}},
		{"max_messages", isa00401 + gs + set + set, Limits{MaxMessages: 1}},
		{"max_groups", isa00401 + gs + "GE*0*7~" + gs, Limits{MaxGroups: 1}},
		{"max_interchanges", whole + whole, Limits{MaxInterchanges: 1}},
	} {
		_, err := scantest.Collect(NewSplitter(strings.NewReader(c.in), c.l))
		var limit *edi.LimitError
		if !errors.As(err, &limit) || limit.Limit != c.name {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

func TestSniff(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{
		"ISA*00*": true, "\xef\xbb\xbf ISA|": true, "ISA\t": true, "ISA": false, "ISAAC": false, "ISA 00": false, "UNB+": false, "": false,
	} {
		if got := Sniff([]byte(in)); got != want {
			t.Errorf("Sniff(%q) = %v", in, got)
		}
	}
}

func FuzzX12(f *testing.F) {
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
		seed := uint64(len(data))
		for _, c := range data {
			seed = seed*31 + uint64(c)
		}
		scantest.Ragged(t, data, seed, func(r io.Reader) edi.Splitter { return NewSplitter(r, l) })
		scantest.Identity(t, data, func(r io.Reader, visit func(*scan.Visit)) (bool, error) { return Walk(r, l, visit) })
	})
}

// TestIdentity writes every case again from its tokens.
func TestIdentity(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		scantest.Identity(t, []byte(c.in), func(r io.Reader, visit func(*scan.Visit)) (bool, error) { return Walk(r, Limits{}, visit) })
		scantest.Ragged(t, []byte(c.in), 1, open)
	}
}

// endless repeats a piece of content and counts what was taken of it.
type endless struct {
	head  string
	piece []byte
	left  int64
	taken int64
}

func (e *endless) Read(b []byte) (int, error) {
	if len(e.head) > 0 {
		n := copy(b, e.head)
		e.head = e.head[n:]
		return n, nil
	}
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(b) && e.left > 0 {
		k := copy(b[n:min(int64(len(b)), int64(n)+e.left)], e.piece)
		n += k
		e.left -= int64(k)
	}
	e.taken += int64(n)
	return n, nil
}

// TestHostile reads what is no interchange, or one that never ends: one clear answer, and no more
// work than the limits allow.
func TestHostile(t *testing.T) {
	t.Parallel()
	const gigabyte = 1 << 30
	for _, c := range []struct {
		name, head, piece string
		rule              string // of the first finding; empty: a limit
	}{
		{"a segment of a gigabyte", isa00401 + gs + "ST*850*0001~REF*IA*", "A", ""},
		{"NUL bytes", "", "\x00", ""},
		{"text without an end", "", "Dear partner, please find our order. ", ""},
		{"XML", "<?xml version=\"1.0\"?>", "<a>b</a>", ""},
		{"wrong terminator", strings.Replace(isa00401, ">~", ">!", 1), "GS*PO~ST*850~", ""},
		{"lines of text", "", "about ~ 5 lines\n", "EDI-DATA-OUTSIDE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := &endless{head: c.head, piece: bytes.Repeat([]byte(c.piece), 1+(1<<14)/len(c.piece)), left: gigabyte}
			if c.rule != "" {
				r.left = 1 << 20
			}
			events, err := scantest.Collect(open(r))
			var limit *edi.LimitError
			if c.rule == "" {
				if !errors.As(err, &limit) || limit.Limit != "max_segment_bytes" || limit.Offset > 4096 {
					t.Fatalf("got %v", err)
				}
				if most := int64(8 << 20); r.taken > most {
					t.Errorf("read %d bytes before it gave up", r.taken)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			rules := scantest.Rules(events)
			if len(rules) == 0 || rules[0] != c.rule || len(rules) > 3 {
				t.Errorf("findings %v", rules)
			}
		})
	}
}

// BenchmarkSplit splits an interchange of sets of about 10 kB.
func BenchmarkSplit(b *testing.B) {
	const sets, lines = 1_000, 170
	var data bytes.Buffer
	data.WriteString(isa00401 + gs)
	for range sets {
		data.WriteString("ST*850*0001~BEG*00*SA*PO77**20260301~")
		for range lines {
			data.WriteString("PO1*1*5*EA*9.25**VN*W-1~PID*F****GARDEN CHAIR OAK NO 7~")
		}
		fmt.Fprintf(&data, "SE*%d*0001~", 3+2*lines)
	}
	fmt.Fprintf(&data, "GE*%d*7~IEA*1*000000001~", sets)
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
}
