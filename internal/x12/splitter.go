// Package x12 reads and writes the envelopes of ASC X12 interchanges (X12.5, X12.6): it splits a
// file into interchanges, functional groups and transaction sets, and puts transaction sets into
// a new envelope.
package x12

import (
	"bytes"
	"io"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/scan"
)

// Limits bound what the splitter takes from one file; zero fields are the defaults.
type Limits = scan.Limits

// isaLength is the length of an ISA with its terminator: each element has a fixed width
// (X12.5 ISA).
const isaLength = 106

// isaSeparators are the places of the element separators in an ISA.
var isaSeparators = [16]int{3, 6, 17, 20, 31, 34, 50, 53, 69, 76, 81, 83, 89, 99, 101, 103}

// Sniff reports whether a file that begins with prefix looks like X12: an ISA, after a byte
// order mark or white space if need be, followed by a byte that can be an element separator.
func Sniff(prefix []byte) bool {
	b := scan.TrimMarks(prefix)
	return len(b) >= 4 && string(b[:3]) == "ISA" && plausible(b[3])
}

// plausible reports whether c can be a delimiter: neither a letter, a digit nor a blank.
func plausible(c byte) bool {
	switch {
	case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c == ' ', c == 0:
		return false
	}
	return true
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
	looking  bool  // the open set may still tell what it is called
	wrapped  bool  // line breaks stand inside of segments

	visit scan.Visitor
}

// NewSplitter returns a splitter over r. Content that stands outside an interchange comes as an
// interchange without Header that has the fatal finding EDI-DATA-OUTSIDE; sets in it come too.
// Messages carry the begin snapshot of their interchange and, where there is one, of their group.
func NewSplitter(r io.Reader, l Limits) edi.Splitter {
	return &splitter{
		sc: scan.New(r, 0, l, scan.BINAndBDS),
		books: scan.NewBooks(scan.Names{
			Open: "ISA", Close: "IEA", GroupOpen: "GS", GroupClose: "GE", MsgOpen: "ST", MsgClose: "SE", GroupsRequired: true,
		}, l),
		d: edi.Delimiters{Element: '*', Component: '>', Segment: '~'},
	}
}

// Walk reads a file as a splitter does and calls visit for each segment. It
// reports whether all envelopes are good. Its error is that of a failed read, or *edi.LimitError.
func Walk(r io.Reader, l Limits, visit func(*scan.Visit)) (good bool, err error) {
	s, _ := NewSplitter(r, l).(*splitter)
	s.visit = visit
	return scan.Walk(s)
}

// Find returns the place of the first ISA of fixed width in data; -1 when there is none.
func Find(data []byte) int {
	for i := 0; ; i++ {
		j := bytes.Index(data[i:], []byte("ISA"))
		if j < 0 {
			return -1
		}
		i += j
		if len(data)-i > 3 && plausible(data[i+3]) && fixedWidth(data[i:]) {
			return i
		}
	}
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
