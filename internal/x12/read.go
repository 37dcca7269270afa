package x12

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/scan"
)

// plain are the segments that open, close and carry nothing special.
var plain = scan.NewPlain("SGIB", "TESID")

// step reads one segment, or opens or ends an interchange.
func (s *splitter) step() error {
	if !s.books.Open() {
		blank, mark := s.sc.SkipMarks()
		s.blank, s.bom = s.blank || blank && !s.started, s.bom || mark
	}
	head := s.sc.Head()
	if len(head) == 0 {
		return s.atEnd()
	}
	if head[0] == 'I' || !s.books.Open() {
		switch header := s.header(head); {
		case header && s.books.Open():
			at := s.sc.Offset()
			s.remarks()
			s.books.CutInterchange("ISA", scan.At{Offset: at, End: at})
			return nil
		case header:
			return s.begin()
		case !s.books.Open():
			if err := s.beginHeadless(); err != nil || !s.books.Open() {
				return err
			}
		}
	}
	if s.books.MessageOpen() && !s.looking && !s.wrapped && s.visit == nil {
		if n, end := s.sc.SkipPlain(plain, s.books.Room()); n > 0 {
			s.books.Plain(n, end)
			return nil
		}
	}
	seg, err := s.sc.Next()
	if err != nil {
		return err
	}
	s.indented = s.indented || seg.Indented
	return s.segment(seg)
}

// atEnd ends what is open when the input is over.
func (s *splitter) atEnd() error {
	if err := s.sc.Err(); !errors.Is(err, io.EOF) {
		return err
	}
	if !s.books.Open() {
		return io.EOF
	}
	at := s.sc.Offset()
	s.remarks()
	s.books.CutInterchange("", scan.At{Offset: at, End: at})
	return nil
}

// header reports whether an ISA begins here. Inside an interchange that is so when the running
// element separator follows the tag, or when the whole ISA has its fixed width with another one:
// data that merely begins with the letters is neither.
func (s *splitter) header(head []byte) bool {
	if len(head) < 4 || string(head[:3]) != "ISA" {
		return false
	}
	if !s.books.Open() || s.books.Headless() {
		return plausible(head[3])
	}
	return head[3] == s.d.Element || plausible(head[3]) && fixedWidth(head)
}

// fixedWidth reports whether an ISA has each element separator at its place and no other one.
func fixedWidth(head []byte) bool {
	if len(head) < isaLength {
		return false
	}
	for _, at := range isaSeparators {
		if head[at] != head[3] {
			return false
		}
	}
	return bytes.Count(head[:isaLength-1], head[3:4]) == len(isaSeparators)
}

// isa is what an ISA says.
type isa struct {
	raw     []byte // with its terminator
	fields  [16]string
	d       edi.Delimiters
	reasons []edi.Finding
}

// looseISA is how far an ISA without fixed widths may reach, in bytes.
const looseISA = 512

// readISA takes the ISA that begins here, strictly or else by counting separators.
func (s *splitter) readISA() isa {
	at := s.sc.Offset()
	b := s.sc.Peek(looseISA)
	h := isa{d: edi.Delimiters{Element: b[3]}}
	end := isaLength
	if !fixedWidth(b) {
		end = looseEnd(b)
		h.reasons = append(h.reasons, edi.Finding{
			Rule: "EDI-ISA-WIDTH", Severity: edi.Fatal, Segment: "ISA", Position: edi.Position{Offset: at},
			Message: "the ISA has not its fixed width of 106 bytes with the terminator; pad each element with blanks to its length",
		})
	}
	if end == 0 {
		return s.brokenISA(h)
	}
	h.raw = bytes.Clone(b[:end])
	h.d.Component = b[end-2]
	h.d.Segment = b[end-1]
	for i, v := range bytes.SplitN(h.raw[:end-1], h.raw[3:4], 17)[1:] {
		h.fields[i] = string(scan.Unwrap(v))
	}
	s.sc.Discard(int64(end))
	h.checkDelimiters(at)
	return h
}

// looseEnd is the length of an ISA with its terminator found by its 16 separators; 0 when they
// or the two bytes behind them are not there.
func looseEnd(b []byte) int {
	seen := 0
	for i, c := range b {
		if c != b[3] {
			continue
		}
		if seen++; seen == len(isaSeparators) {
			if i+2 < len(b) {
				return i + 3
			}
			return 0
		}
	}
	return 0
}

// brokenISA takes an ISA that has too few elements, up to what looks like a terminator.
func (s *splitter) brokenISA(h isa) isa {
	b := s.sc.Peek(looseISA)
	h.d.Component, h.d.Segment = '>', '~'
	if bytes.IndexByte(b, '~') < 0 {
		h.d.Segment = '\n'
	}
	end := bytes.IndexByte(b, h.d.Segment) + 1
	if end == 0 {
		end = len(b)
	}
	h.raw = bytes.Clone(b[:end])
	values := bytes.Split(bytes.TrimRight(h.raw, "~\r\n"), h.raw[3:4])[1:]
	for i := 0; i < len(values) && i < len(h.fields); i++ {
		h.fields[i] = string(values[i])
	}
	s.sc.Discard(int64(end))
	return h
}

func (h *isa) checkDelimiters(at int64) {
	bad := func(element int, c byte, what string) {
		h.reasons = append(h.reasons, edi.Finding{
			Rule: "EDI-ISA-DELIMITER", Severity: edi.Fatal, Segment: "ISA", Position: edi.Position{Element: element, Offset: at},
			Actual: scan.Clip([]byte{c}), Message: what + "; choose three different bytes that are no letter, digit or blank",
		})
	}
	if !plausible(h.d.Component) || h.d.Component == h.d.Element {
		bad(16, h.d.Component, "the component separator in ISA16 cannot be told from data or from the element separator")
	}
	if !plausible(h.d.Segment) || h.d.Segment == h.d.Element || h.d.Segment == h.d.Component {
		bad(0, h.d.Segment, "the byte after ISA16 cannot be the segment terminator")
	}
	// X12.5 ISA11: the standards identifier before 00402, the repetition separator from then on.
	if v := h.fields[11]; v >= "00402" && len(v) == 5 && len(h.fields[10]) == 1 {
		if c := h.fields[10][0]; plausible(c) && c != h.d.Element && c != h.d.Component && c != h.d.Segment {
			h.d.Repetition = c
		}
	}
}

// begin opens the interchange whose ISA comes next.
func (s *splitter) begin() error {
	offset := s.sc.Offset()
	h := s.readISA()
	s.d = h.d
	s.sc.SetDelimiters(s.d)
	value := func(n int) string { return strings.Trim(h.fields[n-1], " \r\n") }
	ic := edi.Interchange{
		Standard:   edi.X12,
		Sender:     edi.Party{Qualifier: value(5), ID: value(6)},
		Receiver:   edi.Party{Qualifier: value(7), ID: value(8)},
		ControlRef: h.fields[12],
		Version:    value(12),
		AckRequest: value(14) == "1",
		Test:       value(15) == "T",
		Offset:     offset,
		Header:     h.raw,
	}
	found := append(s.before(offset), h.reasons...)
	wrapped := scan.Wrapped("ISA", h.raw[:len(h.raw)-1], offset)
	s.wrapped = len(wrapped) > 0
	found = append(found, wrapped...)
	segments := 1
	var isx *scan.Segment
	at := scan.At{Offset: offset, End: s.sc.Offset()}
	// X12.5 ISX: from 007040 on it may follow the ISA; ISX01 is the release character.
	if head := s.sc.Head(); ic.Version >= "00704" && len(head) > 4 && string(head[:3]) == "ISX" && head[3] == s.d.Element {
		seg, err := s.sc.Next()
		if err != nil {
			return err
		}
		if len(seg.Raw) > 4 && plausible(seg.Raw[4]) && seg.Raw[4] != s.d.Element {
			s.d.Release = seg.Raw[4]
			s.sc.SetDelimiters(s.d)
		}
		segments++
		at.End = seg.End
		isx = seg
	}
	ic.Delimiters = s.d
	s.visit.Header(h.raw, offset, s.d)
	if isx != nil {
		s.visit.Segment(isx, 0, s.d)
	}
	if err := s.books.OpenInterchange(ic, at, false, found...); err != nil {
		return err
	}
	if segments > 1 {
		return s.books.Segment(at)
	}
	return nil
}

// before returns the remarks on what stood before an interchange.
func (s *splitter) before(at int64) []edi.Finding {
	var found []edi.Finding
	remark := func(rule, message string) {
		found = append(found, edi.Finding{Rule: rule, Severity: edi.Warning, Position: edi.Position{Offset: at}, Message: message})
	}
	if s.bom {
		remark("EDI-BOM", "a byte order mark stands before the ISA and was skipped; write the file without it")
	}
	if s.blank {
		remark("EDI-LEADING-SPACE", "white space stands before the first ISA and was skipped; begin the file with the ISA")
	}
	s.started, s.bom, s.blank, s.indented, s.empty = true, false, false, false, 0
	return found
}

// lookAhead is how many bytes of a text are searched for an interchange behind it.
const lookAhead = 4096

// ahead is the distance to an interchange that begins behind a text which is no set; 0 when there
// is none.
func (s *splitter) ahead() int {
	text := s.sc.Peek(lookAhead)
	n := Find(text)
	if n <= 0 || bytes.Contains(text[:n], []byte{'S', 'T', s.d.Element}) {
		return 0
	}
	return n
}

// beginHeadless opens an interchange without header over what stands outside any.
func (s *splitter) beginHeadless() error {
	at := s.sc.Offset()
	found := append(s.before(at), edi.Finding{
		Rule: "EDI-DATA-OUTSIDE", Severity: edi.Fatal, Position: edi.Position{Offset: at},
		Message: "the data here stands outside an interchange; put it between an ISA and its IEA or remove it",
	})
	if n := s.ahead(); n > 0 {
		s.sc.Discard(int64(n))
		end := scan.At{Offset: at, End: s.sc.Offset()}
		if err := s.books.OpenInterchange(edi.Interchange{Standard: edi.X12, Offset: at, Delimiters: s.d}, end, true, found...); err != nil {
			return err
		}
		s.books.CutInterchange("ISA", end)
		return nil
	}
	s.d.Release, s.d.Repetition = 0, 0
	s.sc.SetDelimiters(s.d)
	return s.books.OpenInterchange(edi.Interchange{Standard: edi.X12, Offset: at, Delimiters: s.d}, scan.At{Offset: at, End: at}, true, found...)
}

// remarks adds the leniencies that an interchange needed.
func (s *splitter) remarks() {
	if s.indented {
		s.books.AddInterchange(edi.Finding{
			Rule: "EDI-INDENT", Severity: edi.Warning,
			Message: "blanks or tabs stand before segments and were skipped; send segments without indentation",
		})
	}
	if s.empty > 0 {
		s.books.AddInterchange(edi.Finding{
			Rule: "EDI-EMPTY-SEGMENT", Severity: edi.Warning, Position: edi.Position{Offset: s.empty - 1},
			Message: "a terminator follows a terminator; the empty segment was skipped; remove it",
		})
	}
}

// padding passes NUL and SUB bytes that some systems write behind a file.
func (s *splitter) padding() bool {
	found := false
	for {
		head := s.sc.Head()
		if len(head) == 0 || head[0] != 0 && head[0] != 0x1a {
			return found
		}
		found = true
		s.sc.Discard(1)
	}
}

// is reports whether a segment has this tag.
func (s *splitter) is(raw []byte, tag string) bool {
	n := len(tag)
	return len(raw) >= n && string(raw[:n]) == tag && (len(raw) == n || raw[n] == s.d.Element)
}

// segment books one segment.
func (s *splitter) segment(seg *scan.Segment) error {
	raw := seg.Raw
	at := scan.At{Offset: seg.Offset, End: seg.End}
	if len(raw) == 0 {
		if s.empty == 0 {
			s.empty = at.Offset + 1
		}
		return nil
	}
	if s.wrapped {
		raw = scan.Unwrap(raw)
	}
	cut := s.glued(seg)
	if cut > 0 {
		s.sc.Cut(cut)
		raw, at.End = seg.Raw, seg.End
	} else if !seg.Terminated {
		s.books.Unterminated(s.tag(raw), at)
	}
	if s.visit != nil {
		s.visit.Segment(seg, s.depth(raw), s.d)
	}
	if cut == 0 {
		return s.book(seg, raw, at)
	}
	opens := s.is(raw, "ST") || s.is(raw, "GS")
	if !opens {
		s.books.NoTerminator(s.tag(raw), at, false)
	}
	err := s.book(seg, raw, at)
	if opens {
		s.books.NoTerminator(s.tag(raw), at, true)
	}
	return err
}

// book books a segment by its tag; raw is the segment without line breaks where it is wrapped.
func (s *splitter) book(seg *scan.Segment, raw []byte, at scan.At) error {
	if len(raw) == 0 {
		return s.data(seg, at)
	}
	switch raw[0] {
	case 'S':
		switch {
		case s.is(raw, "ST"):
			return s.openSet(raw, at)
		case s.is(raw, "SE"):
			return s.books.CloseMessage(s.trailer("SE", raw, at))
		}
	case 'G':
		switch {
		case s.is(raw, "GS"):
			return s.openGroup(raw, at)
		case s.is(raw, "GE"):
			return s.books.CloseGroup(s.trailer("GE", raw, at))
		}
	case 'I':
		if s.is(raw, "IEA") {
			t := s.trailer("IEA", raw, at)
			s.remarks()
			if s.padding() {
				s.books.AddInterchange(edi.Finding{
					Rule: "EDI-PADDING", Severity: edi.Warning, Position: edi.Position{Offset: at.End},
					Message: "NUL or SUB bytes stand behind the IEA and were skipped; end the file with the IEA",
				})
			}
			return s.books.CloseInterchange(t)
		}
	}
	return s.data(seg, at)
}

// service reports whether a segment opens or closes something.
func (s *splitter) service(raw []byte) bool {
	for _, tag := range [...]string{"ST", "SE", "GS", "GE", "IEA"} {
		if s.is(raw, tag) {
			return true
		}
	}
	return false
}

// depth is how deep a segment stands.
func (s *splitter) depth(raw []byte) int {
	switch {
	case s.is(raw, "IEA"):
		return 0
	case s.is(raw, "GS"), s.is(raw, "GE"):
		return 1
	case s.is(raw, "ST"), s.is(raw, "SE"):
		return 2
	}
	return s.books.Depth()
}

// glued returns the length of a service segment that ends at a line break behind which another
// service segment stands: its terminator is missing. 0 means that it is whole. Without this the
// neighbour of a set with such a trailer would be lost.
func (s *splitter) glued(seg *scan.Segment) int {
	raw := seg.Raw
	if c := raw[0]; c != 'S' && c != 'G' && c != 'I' || seg.Binary > 0 || !s.service(raw) {
		return 0
	}
	i := bytes.IndexAny(raw, "\r\n")
	if i < 0 || s.wrapped {
		return 0
	}
	rest := bytes.TrimLeft(raw[i:], "\r\n\t ")
	if s.service(rest) && len(rest) > 3 || len(rest) > 3 && string(rest[:3]) == "ISA" && plausible(rest[3]) {
		return i
	}
	return 0
}

// tag is the tag of a segment, for a report.
func (s *splitter) tag(raw []byte) string {
	if i := bytes.IndexByte(raw, s.d.Element); i >= 0 {
		raw = raw[:i]
	}
	return scan.Clip(raw)
}

func (s *splitter) trailer(tag string, raw []byte, at scan.At) scan.Trailer {
	s.f.Reset(raw, s.d)
	// The values outlive the segment's bytes: looking behind an IEA may move them.
	return scan.Trailer{Tag: tag, Count: bytes.Clone(s.element(1)), Ref: bytes.Clone(s.element(2)), At: at}
}

// element returns a whole element: separators of components inside belong to it.
func (s *splitter) element(n int) []byte { return s.f.Whole(n) }

func (s *splitter) openGroup(raw []byte, at scan.At) error {
	s.f.Reset(raw, s.d)
	header := make([]byte, len(raw), len(raw)+1)
	copy(header, raw)
	return s.books.OpenGroup(edi.Group{
		FunctionID: strings.TrimRight(string(s.element(1)), " "),
		Sender:     strings.TrimRight(string(s.element(2)), " "),
		Receiver:   strings.TrimRight(string(s.element(3)), " "),
		ControlRef: strings.Trim(string(s.element(6)), " "),
		Version:    strings.TrimRight(string(s.element(8)), " "),
		Header:     append(header, s.d.Segment),
	}, at)
}

func (s *splitter) openSet(raw []byte, at scan.At) error {
	s.f.Reset(raw, s.d)
	m := edi.Message{
		Type:    strings.TrimRight(string(s.element(1)), " "),
		Ref:     strings.Trim(string(s.element(2)), " "),
		Version: strings.TrimRight(string(s.element(3)), " "),
	}
	if err := s.books.OpenMessage(m, at); err != nil {
		return err
	}
	if m.Version == "" {
		s.books.Message().Version = s.books.Group().Version
	}
	s.looking = true
	return nil
}

// data books a segment that opens and closes nothing.
func (s *splitter) data(seg *scan.Segment, at scan.At) error {
	err := s.books.Segment(at)
	if !s.books.MessageOpen() {
		if !s.books.Headless() && !s.betweenSets(seg.Raw) {
			s.books.Outside(s.tag(seg.Raw), at)
		}
		return err
	}
	if seg.BinaryError != "" {
		s.books.BadLength(s.tag(seg.Raw), seg)
	}
	if s.looking {
		s.look(seg.Raw)
	}
	return err
}

// betweenSets reports whether a segment may stand outside a transaction set: the ones of the
// interchange level before any group, and the security segments of a group (X12.5, X12.58).
func (s *splitter) betweenSets(raw []byte) bool {
	tags := []string{"TA1", "TA3", "ISB", "ISE", "ISX"}
	if s.books.GroupOpen() {
		tags = []string{"S1S", "S1E", "S3S", "S3E", "SVA"}
	}
	for _, tag := range tags {
		if s.is(raw, tag) {
			return true
		}
	}
	return false
}
