// Package edifact reads and writes the envelopes of UN/EDIFACT interchanges (ISO 9735): it splits
// a file into interchanges, groups and messages, and puts messages into a new envelope.
package edifact

import (
	"bytes"
	"errors"
	"io"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/scan"
)

// Limits bound what the splitter takes from one file; zero fields are the defaults.
type Limits = scan.Limits

// Sniff reports whether a file that begins with prefix looks like EDIFACT: a UNA, or a UNB
// followed by a byte that can be an element separator, after a byte order mark or white space if
// need be.
func Sniff(prefix []byte) bool {
	b := scan.TrimMarks(prefix)
	switch {
	case len(b) < 4:
		return false
	case string(b[:3]) == "UNA":
		return plausible(b[3])
	}
	return string(b[:3]) == "UNB" && plausible(b[3])
}

// Find returns the place of the first UNA or UNB in data that begins an interchange beyond doubt:
// a UNB with a syntax identifier of the UN, or a UNA with a UNB behind it. -1 means that there is
// none.
func Find(data []byte) int {
	for i := 0; ; i++ {
		j := bytes.Index(data[i:], []byte("UN"))
		if j < 0 {
			return -1
		}
		i += j
		rest := data[i:]
		switch {
		case i > 0 && !plausible(data[i-1]) && data[i-1] != ' ' && data[i-1] != 0:
		case len(rest) > 3 && rest[2] == 'A' && afterUNA(rest) > 0:
			return i
		case len(rest) > 8 && rest[2] == 'B' && plausible(rest[3]) && string(rest[4:7]) == "UNO":
			return i
		}
	}
}

// plausible reports whether c can be a delimiter: neither a letter, a digit nor a blank.
func plausible(c byte) bool {
	switch {
	case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c == ' ', c == 0:
		return false
	}
	return true
}

// defaults are the delimiters of level A without a UNA (ISO 9735-1 §7). Syntax 4 adds the
// repetition separator "*".
func defaults() edi.Delimiters {
	return edi.Delimiters{Component: ':', Element: '+', Decimal: '.', Release: '?', Segment: '\''}
}

// levelB are the delimiters of level B of syntax 1 to 3 (ISO 9735 §4): IS1, IS3, IS4.
func levelB() edi.Delimiters {
	return edi.Delimiters{Component: 0x1f, Element: 0x1d, Decimal: '.', Segment: 0x1c}
}

// splitter implements edi.Splitter.
type splitter struct {
	sc    *scan.Scanner
	books *scan.Books
	f     scan.Fields
	d     edi.Delimiters
	err   error

	started  bool // the first interchange was begun
	bom      bool // a byte order mark stood before the next interchange
	blank    bool // white space stood before the first interchange
	indented bool
	empty    int64 // place of the first segment without a tag, plus one
	looking  bool  // the open message may still tell what it is called
	wrapped  bool  // line breaks stand inside of segments

	visit scan.Visitor
}

// NewSplitter returns a splitter over r. Content that stands outside an interchange comes as an
// interchange without Header that has the fatal finding EDI-DATA-OUTSIDE; messages in it come
// too. An object between UNO and UNP comes as a message of type "UNO". Messages carry the begin
// snapshot of their interchange and, where there is one, of their group.
func NewSplitter(r io.Reader, l Limits) edi.Splitter {
	return &splitter{
		sc:    scan.New(r, 0, l, scan.UNOPackage),
		books: scan.NewBooks(scan.Names{Open: "UNB", Close: "UNZ", GroupOpen: "UNG", GroupClose: "UNE", MsgOpen: "UNH", MsgClose: "UNT"}, l),
		d:     defaults(),
	}
}

// Walk reads a file as a splitter does and calls visit for each segment, UNA included. It
// reports whether all envelopes are good. Its error is that of a failed read, or *edi.LimitError.
func Walk(r io.Reader, l Limits, visit func(*scan.Visit)) (good bool, err error) {
	s, _ := NewSplitter(r, l).(*splitter)
	s.visit = visit
	return scan.Walk(s)
}

// Next implements edi.Splitter.
func (s *splitter) Next() (edi.Event, error) {
	for {
		if ev, ok := s.books.Event(); ok {
			return ev, nil
		}
		if s.err != nil {
			return edi.Event{}, s.err
		}
		s.err = s.step()
	}
}

// plain are the segments that open, close and carry nothing special.
var plain = scan.NewPlain("U", "N")

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
	if head[0] == 'U' || !s.books.Open() {
		switch header := s.header(head); {
		case header && s.books.Open():
			at := s.sc.Offset()
			s.remarks()
			s.books.CutInterchange(string(head[:3]), scan.At{Offset: at, End: at})
			return nil
		case header:
			return s.begin()
		case !s.books.Open():
			if err := s.beginHeadless(); err != nil || !s.books.Open() {
				return err
			}
		}
	}
	if s.books.MessageOpen() && !s.looking && !s.wrapped && s.visit == nil && !s.books.PackageOpen() {
		if n, end := s.sc.SkipPlain(plain, s.books.Room()); n > 0 {
			s.books.Plain(n, end)
			return nil
		}
	}
	seg, err := s.sc.Next()
	if errors.Is(err, io.EOF) { // a UNA alone
		return nil
	}
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

// is reports whether a segment has this tag. A tag may carry explicit nesting in components.
func (s *splitter) is(raw []byte, tag string) bool {
	n := len(tag)
	return len(raw) >= n && string(raw[:n]) == tag && (len(raw) == n || raw[n] == s.d.Element || raw[n] == s.d.Component)
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
	if len(raw) < 3 || raw[0] != 'U' || raw[1] != 'N' {
		s.visit.Segment(seg, s.books.Depth(), s.d)
		if !seg.Terminated {
			s.books.Unterminated(s.tag(raw), at)
		}
		return s.data(seg, at)
	}
	cut := s.glued(seg)
	if cut > 0 {
		s.sc.Cut(cut)
		raw, at.End = seg.Raw, seg.End
	} else if !seg.Terminated {
		s.books.Unterminated(s.tag(raw), at)
	}
	s.visit.Segment(seg, s.depth(raw), s.d)
	opens := s.is(raw, "UNH") || s.is(raw, "UNG")
	if cut > 0 && !opens {
		s.books.NoTerminator(s.tag(raw), at, false)
	}
	err := s.service(seg, raw, at)
	if cut > 0 && opens {
		s.books.NoTerminator(s.tag(raw), at, true)
	}
	return err
}

// service books a service segment; raw is the segment without line breaks where it is wrapped.
func (s *splitter) service(seg *scan.Segment, raw []byte, at scan.At) error {
	switch {
	case s.is(raw, "UNH"):
		return s.openMessage(raw, at)
	case s.is(raw, "UNT"):
		return s.books.CloseMessage(s.trailer("UNT", raw, at))
	case s.is(raw, "UNG"):
		return s.openGroup(raw, at)
	case s.is(raw, "UNE"):
		return s.books.CloseGroup(s.trailer("UNE", raw, at))
	case s.is(raw, "UNZ"):
		return s.closeInterchange(raw, at)
	case s.is(raw, "UNO"):
		return s.openPackage(seg, at)
	case s.is(raw, "UNP"):
		return s.books.ClosePackage(s.trailer("UNP", raw, at))
	}
	return s.data(seg, at)
}

// depth is how deep a service segment stands.
func (s *splitter) depth(raw []byte) int {
	groups := 0
	if s.books.GroupOpen() {
		groups = 1
	}
	switch {
	case s.is(raw, "UNZ"):
		return 0
	case s.is(raw, "UNG"), s.is(raw, "UNE"):
		return 1
	case s.is(raw, "UNH"), s.is(raw, "UNT"), s.is(raw, "UNO"), s.is(raw, "UNP"):
		return 1 + groups
	}
	return s.books.Depth()
}

// glued returns the length of a service segment that ends at a line break behind which another
// service segment stands: its terminator is missing. 0 means that it is whole. Without this the
// neighbour of a message with such a trailer would be lost.
func (s *splitter) glued(seg *scan.Segment) int {
	raw := seg.Raw
	i := bytes.IndexAny(raw, "\r\n")
	if i < 0 || seg.Binary > 0 || s.wrapped {
		return 0
	}
	rest := bytes.TrimLeft(raw[i:], "\r\n\t ")
	if len(rest) < 4 || rest[0] != 'U' || rest[1] != 'N' {
		return 0
	}
	switch rest[2] {
	case 'H', 'T', 'G', 'E', 'Z', 'O', 'P':
		if rest[3] == s.d.Element {
			return i
		}
	case 'A', 'B':
		if Find(rest) == 0 || rest[2] == 'A' && plausible(rest[3]) {
			return i
		}
	}
	return 0
}

// tag is the tag of a segment, for a report.
func (s *splitter) tag(raw []byte) string {
	for i, c := range raw {
		if c == s.d.Element || c == s.d.Component {
			raw = raw[:i]
			break
		}
	}
	return scan.Clip(raw)
}

func (s *splitter) trailer(tag string, raw []byte, at scan.At) scan.Trailer {
	s.f.Reset(raw, s.d)
	// The values outlive the segment's bytes: looking behind a UNZ may move them.
	return scan.Trailer{Tag: tag, Count: bytes.Clone(s.f.Bytes(1, 1)), Ref: bytes.Clone(s.f.Bytes(2, 1)), At: at}
}

func (s *splitter) closeInterchange(raw []byte, at scan.At) error {
	t := s.trailer("UNZ", raw, at)
	s.remarks()
	if s.padding() {
		s.books.AddInterchange(edi.Finding{
			Rule: "EDI-PADDING", Severity: edi.Warning, Position: edi.Position{Offset: at.End},
			Message: "NUL or SUB bytes stand behind the UNZ and were skipped; end the file with the UNZ",
		})
	}
	return s.books.CloseInterchange(t)
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

// data books a segment that opens and closes nothing.
func (s *splitter) data(seg *scan.Segment, at scan.At) error {
	err := s.books.Segment(at)
	if !s.books.MessageOpen() || s.books.PackageOpen() {
		if !s.books.Headless() {
			s.books.Outside(s.tag(seg.Raw), at)
		}
		return err
	}
	if s.looking {
		s.look(seg.Raw)
	}
	return err
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
