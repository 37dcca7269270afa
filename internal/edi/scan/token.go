package scan

import (
	"bytes"

	"github.com/edihub/edihub/internal/edi"
)

// Kind says by which separator a token begins.
type Kind uint8

// The kinds. The tag is the first token and counts as an element.
const (
	Element Kind = iota
	Component
	Repetition
)

// Token is the span of one value inside a segment.
type Token struct {
	Start, End uint32 // bytes from the start of the segment
	Kind       Kind
	Released   bool // a release character is inside: use Unescape
}

// AppendTokens appends the tokens of one segment to dst, the tag first. The segment comes
// without its terminator. Scanner.NextTokens is faster for many.
func AppendTokens(dst []Token, raw []byte, d edi.Delimiters) []Token {
	start := uint32(0)
	kind := Element
	rel := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		var next Kind
		switch {
		case c == d.Release && d.Release != 0:
			rel = true
			i++
			continue
		case c == d.Element:
			next = Element
		case c == d.Component && d.Component != 0:
			next = Component
		case c == d.Repetition && d.Repetition != 0:
			next = Repetition
		default:
			continue
		}
		dst = append(dst, Token{Start: start, End: uint32(i), Kind: kind, Released: rel})
		start, kind, rel = uint32(i+1), next, false
	}
	return append(dst, Token{Start: start, End: uint32(len(raw)), Kind: kind, Released: rel}) //nolint:gosec // G115: as above.
}

// Classes of bytes. A separator has 1 + the Kind that it begins.
const (
	classData       = 0
	classTerminator = 8
	classRelease    = 9
)

// classes returns the class of each byte.
func classes(d edi.Delimiters) (class [256]uint8) {
	class[d.Repetition] = 1 + uint8(Repetition)
	class[d.Component] = 1 + uint8(Component)
	class[d.Element] = 1 + uint8(Element)
	class[d.Release] = classRelease
	class[0] = classData // zero means that there is no such delimiter
	class[d.Segment] = classTerminator
	return class
}

// initialTokens is the room for the tokens of a segment; it grows with the segments.
const initialTokens = 64

// NextTokens is Next with the tokens of the segment, the tag first. Both are valid until the
// next call.
func (s *Scanner) NextTokens() (*Segment, []Token, error) {
	head := s.Head()
	if len(head) == 0 || s.binary != NoBinary && (head[0] == 'B' || len(head) > 2 && string(head[:3]) == "UNO") {
		return s.slowTokens()
	}
	if s.tokens == nil {
		s.tokens = make([]Token, initialTokens)
	}
	if n := s.walk(head); n > 0 {
		return &s.seg, s.tokens[:n], nil
	}
	return s.slowTokens()
}

// slowTokens takes a segment that is not buffered as a whole or carries binary data.
func (s *Scanner) slowTokens() (*Segment, []Token, error) {
	seg, err := s.Next()
	if err != nil {
		return nil, nil, err
	}
	s.tokens = AppendTokens(s.tokens[:0], seg.Raw, s.delim)
	tokens := s.tokens
	s.tokens = s.tokens[:cap(s.tokens)]
	return seg, tokens, nil
}

// walk takes the segment that data begins with and returns the number of its tokens, or 0 when
// it does not end there.
func (s *Scanner) walk(data []byte) int {
	class := &s.class
	tokens := s.tokens
	n := 0
	start, kind, rel := uint32(0), Element, false
	for i := 0; i < len(data); i++ {
		c := class[data[i]]
		if c == classData {
			continue
		}
		if c == classRelease {
			rel = true
			i++
			continue
		}
		if n >= len(tokens) {
			tokens = append(tokens, make([]Token, len(tokens))...)
			s.tokens = tokens
		}
		t := &tokens[n]
		t.Start, t.End, t.Kind, t.Released = start, uint32(i), kind, rel
		n++
		if c == classTerminator {
			if i > s.maxSegment {
				return 0
			}
			s.take(i)
			return n
		}
		start, kind, rel = uint32(i+1), Kind(c-1), false
	}
	return 0
}

// take makes the next n bytes the segment; its terminator follows them.
func (s *Scanner) take(n int) {
	seg := &s.seg
	seg.Offset = s.base + int64(s.pos)
	seg.Raw = s.buf[s.pos : s.pos+n : s.pos+n]
	seg.End = seg.Offset + int64(n) + 1
	seg.Terminated = true
	seg.Indented, s.indented = s.indented, false
	seg.Binary, seg.BinaryError, seg.BinaryElement = 0, "", 0
	s.pos += n + 1
}

// Unescape returns the value without its release characters. The result shares raw where there
// are none.
func Unescape(raw []byte, release byte) []byte {
	if release == 0 || bytes.IndexByte(raw, release) < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] == release && i+1 < len(raw) {
			i++
		}
		out = append(out, raw[i])
	}
	return out
}
