package scan

import (
	"errors"
	"io"

	"github.com/edihub/edihub/internal/edi"
)

// Visit is one segment as a reader meets it, for those who show or copy a file. Raw is valid
// until the visit ends.
type Visit struct {
	Raw        []byte // without terminator; of a binary segment the part before the data
	Offset     int64
	End        int64 // place after the terminator
	Terminated bool
	Binary     int64 // bytes of binary data inside the segment or, with UNO, behind it
	Depth      int   // 0 for the envelope, 1 inside it, 2 inside a group; one more inside a message
	Delimiters edi.Delimiters
}

// Visitor is told of each segment; the zero Visitor of none.
type Visitor func(*Visit)

// Segment tells of a segment.
func (v Visitor) Segment(seg *Segment, depth int, d edi.Delimiters) {
	if v != nil {
		v(&Visit{
			Raw: seg.Raw, Offset: seg.Offset, End: seg.End, Terminated: seg.Terminated, Binary: seg.Binary, Depth: depth, Delimiters: d,
		})
	}
}

// Header tells of a UNA or ISA, which need not be whole.
func (v Visitor) Header(b []byte, offset int64, d edi.Delimiters) {
	seg := Segment{Raw: b, Offset: offset, End: offset + int64(len(b))}
	if n := len(b) - 1; b[n] == d.Segment {
		seg.Raw, seg.Terminated = b[:n], true
	}
	v.Segment(&seg, 0, d)
}

// Walk runs a splitter to its end and reports whether all envelopes are good. The error is that of
// a failed read, or *edi.LimitError.
func Walk(s edi.Splitter) (good bool, err error) {
	good = true
	for {
		ev, err := s.Next()
		switch {
		case errors.Is(err, io.EOF):
			return good, nil
		case err != nil:
			return false, err
		case ev.Kind == edi.MessageEnd:
			good = good && !edi.HasFatal(ev.Message.Findings)
		case ev.Kind == edi.GroupEnd:
			good = good && !edi.HasFatal(ev.Group.Findings)
		case ev.Kind == edi.InterchangeEnd:
			good = good && !edi.HasFatal(ev.Interchange.Findings)
		}
	}
}

// Each calls f with each segment of one message, without its terminator, until f fails. The error
// is f's, that of a failed read, or *edi.LimitError.
func Each(r io.Reader, d edi.Delimiters, f func(raw []byte) error) error {
	sc := New(r, 0, Limits{}, NoBinary)
	sc.SetDelimiters(d)
	for {
		seg, err := sc.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(seg.Raw); err != nil {
			return err
		}
	}
}
