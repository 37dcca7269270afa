package route

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edifact"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/store"
)

// carriage is how the messages' bytes stand in a new envelope. They are those of the original,
// unless the route names other delimiters for X12.
type carriage struct {
	delimiters edi.Delimiters // of the bytes as they leave
	translate  []byte         // of store.Piece
}

// TextError says that the bytes of a message would mean something else in the envelope that the
// route asks for.
type TextError struct {
	Position int   // of the message in its interchange, from 1
	Offset   int64 // of the byte in the file
	Reason   string
}

// Error implements error.
func (e *TextError) Error() string {
	return fmt.Sprintf("message %d, byte %d: %s", e.Position, e.Offset, e.Reason)
}

// readError is a failure to read what the store has; it passes.
type readError struct{ err error }

func (e *readError) Error() string { return "read the messages: " + e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// syntax of the new envelope.
func (b *batch) syntax() string {
	if s := b.dest.route.EDIFACT.Syntax; s != "" {
		return s
	}
	return b.ic.Envelope.Version
}

// version of the new envelope, ISA12.
func (b *batch) version() string {
	if v := b.dest.route.X12.Version; v != "" {
		return v
	}
	return b.ic.Envelope.Version
}

// carry decides how the messages' bytes go along, and reads them where that depends on what they
// hold.
func (b *batch) carry() error {
	b.carried = carriage{delimiters: b.ic.Envelope.Delimiters}
	if r := b.dest.route; r.EDIFACT.Syntax == "" && r.X12 == (partner.X12Writing{}) {
		return nil // as the original
	}
	if b.ic.Envelope.Standard == edi.X12 {
		return b.carryX12()
	}
	return b.carryEDIFACT()
}

// carryEDIFACT: the bytes are copied unchanged, so a route may name another syntax only where they
// mean the same in it.
func (b *batch) carryEDIFACT() error {
	from, _, _ := strings.Cut(b.ic.Envelope.Version, ":")
	to, version, _ := strings.Cut(b.syntax(), ":")
	d := &b.carried.delimiters
	s := scan{release: d.Release}
	if edifact.Charset(from) != edifact.Charset(to) || (from != to && to == "UNOA") {
		for c := range 256 {
			if !sameIn(from, to, byte(c)) {
				s.refuse(byte(c), fmt.Sprintf("0x%02X is not the same character in %s as in %s, or not in it at all; name a syntax that has it, or none to keep that of the original", c, to, from))
			}
		}
		s.allow(d.Component, d.Element, d.Segment, d.Release, d.Repetition, '\r', '\n')
	}
	if version != "" && version < "4" && d.Repetition != 0 { // ISO 9735-1 §8.2, from syntax version 4 on
		s.refuseBare(d.Repetition, "the repetition separator is used, which syntax version "+version+" does not have; name version 4")
		d.Repetition = 0
	}
	return b.read(&s)
}

// sameIn reports whether a byte is the same character in two syntax levels.
func sameIn(from, to string, c byte) bool {
	if c < 0x80 {
		return c >= ' ' && edifact.Carries(to, c)
	}
	// ISO 646 has no such character. Who says UNOA or UNOB and sends one means the Latin letters
	// of ISO 8859-1 in practice.
	return (from == "UNOA" || from == "UNOB") && to == "UNOC"
}

// carryX12 replaces delimiters where the route names others. X12 cannot release a delimiter, so
// no text may hold a new one.
func (b *batch) carryX12() error {
	w, was := b.dest.route.X12, b.ic.Envelope.Delimiters
	d := &b.carried.delimiters
	for _, p := range []struct {
		to   *byte
		want string
	}{{&d.Element, w.Element}, {&d.Component, w.Component}, {&d.Segment, w.Segment}} {
		if p.want != "" {
			*p.to = p.want[0]
		}
	}
	s := scan{}
	if d.Repetition != 0 && b.version() < "00402" { // X12.5 ISA11, a standards identifier before 00402
		s.refuseBare(d.Repetition, "the repetition separator is used, which ISA version "+b.version()+" does not have; name 00402 or later")
		d.Repetition = 0
	}
	for _, p := range []struct {
		name     string
		was, now byte
	}{{"element", was.Element, d.Element}, {"component", was.Component, d.Component}, {"segment", was.Segment, d.Segment}} {
		if p.was == p.now {
			continue
		}
		b.carried.translate = append(b.carried.translate, p.was, p.now)
		if p.now != was.Element && p.now != was.Component && p.now != was.Segment {
			s.refuse(p.now, fmt.Sprintf("the text holds %q, which the route names as the %s delimiter and X12 cannot release; name another", p.now, p.name))
		}
	}
	if len(b.carried.translate) > 0 {
		s.element, s.segment = was.Element, was.Segment
	}
	return b.read(&s)
}

// scan looks for bytes that may not be there.
type scan struct {
	reasons [256]string // why a byte is refused, wherever it stands
	bare    [256]string // why it is refused where it is not released
	release byte
	active  bool
	// Set where delimiters are replaced: BIN segments hold bytes that are none.
	element, segment byte
}

func (s *scan) refuse(c byte, reason string)     { s.reasons[c], s.active = reason, true }
func (s *scan) refuseBare(c byte, reason string) { s.bare[c], s.active = reason, true }

func (s *scan) allow(cs ...byte) {
	for _, c := range cs {
		s.reasons[c] = ""
	}
}

// read runs the scan over the messages; it reads nothing where nothing is refused.
func (b *batch) read(s *scan) error {
	if !s.active && s.segment == 0 {
		return nil
	}
	body, err := b.task.Open(b.ic.Body)
	if err != nil {
		return &readError{err}
	}
	defer body.Close() //nolint:errcheck // Nothing was written.
	for _, m := range b.messages {
		if err := s.message(body, m); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) message(body io.ReaderAt, m *store.Message) error {
	r := io.NewSectionReader(body, m.Envelope.Offset, m.Envelope.Length)
	buf := make([]byte, min(64<<10, m.Envelope.Length))
	at, released, tag := m.Envelope.Offset, false, make([]byte, 0, 4)
	for {
		n, err := r.Read(buf)
		for _, c := range buf[:n] {
			reason := s.reasons[c]
			if !released && reason == "" {
				reason = s.bare[c]
			}
			if s.segment != 0 && reason == "" {
				tag = s.tag(tag, c)
				if string(tag) == "BIN"+string([]byte{s.element}) {
					reason = "a BIN segment holds bytes that are no text, so its delimiters cannot be replaced; route it without naming delimiters"
				}
			}
			if reason != "" {
				return &TextError{Position: m.Envelope.Position, Offset: at, Reason: reason}
			}
			released = !released && s.release != 0 && c == s.release
			at++
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &readError{err}
		}
	}
}

// tag gathers the first characters of a segment.
func (s *scan) tag(tag []byte, c byte) []byte {
	switch {
	case c == s.segment:
		return tag[:0]
	case len(tag) == 0 && (c == '\r' || c == '\n'):
		return tag
	case len(tag) < cap(tag):
		return append(tag, c)
	}
	return tag
}
