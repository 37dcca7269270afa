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

// Classes of the bytes that are delimiters: the Kind that a separator begins; the terminator
// begins an element, the tag.
const (
	classTerminator = 1<<7 | uint8(Element)
	classRelease    = 1 << 6
	kindMask        = 3
)

// classes returns the class of each delimiter. Zero means that there is no such delimiter.
func classes(d edi.Delimiters) (class [256]uint8) {
	class[d.Repetition] = uint8(Repetition)
	class[d.Component] = uint8(Component)
	class[d.Element] = uint8(Element)
	class[d.Release] = classRelease
	class[0] = 0
	class[d.Segment] = classTerminator
	return class
}

// batch holds the tokens of the segments that end inside a window of the buffer. Tokenising many
// segments in one loop costs no mispredicted branch for the end of each.
type batch struct {
	class   [256]uint8
	needles needles
	mask    [windowBytes / 8]uint8  // where delimiters stand in the window
	marks   [windowBytes + 8]uint16 // the same as places
	ends    [windowBytes]end        // of the segments
	tokens  [windowBytes + 1]Token  // of all segments, from their first byte each

	next   int // the segment to hand out next
	count  int // how many there are
	window int // place of the window in the buffer
	start  int // place of the next segment in the buffer
	token  int // index of its first token
}

// end is the place of a terminator in the window, and the index of the token before it.
type end uint64

func (e end) at() int    { return int(uint32(e)) } //nolint:gosec // G115: the lower half is meant.
func (e end) token() int { return int(e >> 32) }   //nolint:gosec // G115: at most 31 bits.

// NextTokens is Next with the tokens of the segment, the tag first. Both are valid until the
// next call.
func (s *Scanner) NextTokens() (*Segment, []Token, error) {
	b := s.batch
	if b == nil || b.next >= b.count || s.pos != b.start || s.buf[s.pos] <= ' ' {
		if !s.prepare() {
			return s.slowTokens()
		}
		b = s.batch
	}
	e := b.ends[b.next]
	n := b.window + e.at() - s.pos
	if n > s.maxSegment || s.binary != NoBinary && s.carries(s.buf[s.pos:s.pos+n]) {
		return s.slowTokens()
	}
	tokens := b.tokens[b.token : e.token()+1]
	b.next++
	b.token = e.token() + 1
	s.take(n)
	b.start = s.pos
	return &s.seg, tokens, nil
}

// carries reports whether a segment may hold a length of binary data.
func (s *Scanner) carries(raw []byte) bool {
	if len(raw) < 3 {
		return false
	}
	switch raw[0] {
	case 'B':
		return raw[1] == 'I' && raw[2] == 'N' || raw[1] == 'D' && raw[2] == 'S'
	case 'U':
		return raw[1] == 'N' && raw[2] == 'O'
	}
	return false
}

// slowTokens takes a segment that is not buffered as a whole or carries binary data.
func (s *Scanner) slowTokens() (*Segment, []Token, error) {
	seg, err := s.Next()
	if err != nil {
		return nil, nil, err
	}
	s.tokens = AppendTokens(s.tokens[:0], seg.Raw, s.delim)
	return seg, s.tokens, nil
}

// prepare skips white space and sees to it that the batch begins with the segment at the read
// position. It reports false when that does not end inside a window.
func (s *Scanner) prepare() bool {
	if len(s.Head()) == 0 || s.oddSpace {
		return false
	}
	if s.batch == nil {
		s.batch = &batch{class: classes(s.delim), needles: newNeedles(s.delim)}
	}
	b := s.batch
	for b.next < b.count && b.window+b.ends[b.next].at() < s.pos { // the terminator is white space too
		b.token, b.start = b.ends[b.next].token()+1, b.window+b.ends[b.next].at()+1
		b.next++
	}
	if b.next >= b.count || s.pos < b.start {
		s.tokenise()
		return b.count > 0
	}
	if skipped := uint32(s.pos - b.start); skipped > 0 { //nolint:gosec // G115: a window is small.
		tokens := b.tokens[b.token : b.ends[b.next].token()+1]
		for i := range tokens {
			tokens[i].Start -= skipped
			tokens[i].End -= skipped
		}
		tokens[0].Start = 0
		b.start = s.pos
	}
	return true
}

// forget drops the batch: the bytes behind it have moved, or other delimiters hold.
func (s *Scanner) forget() {
	if s.batch != nil {
		s.batch.next, s.batch.count = 0, 0
	}
}

// tokenise fills the batch from the read position on.
func (s *Scanner) tokenise() {
	b := s.batch
	data := s.buf[s.pos:min(s.end, s.pos+windowBytes)]
	blocks := (len(data) + blockBytes - 1) / blockBytes
	findDelimiters(&b.mask[0], &data[0], blocks, &b.needles)
	used := (len(data) + 7) / 8
	if left := len(data) % 8; left > 0 { // what stands behind the end is not data
		b.mask[used-1] &= 1<<left - 1
	}
	n := flatten(&b.marks, b.mask[:used])
	if s.delim.Release != 0 && bytes.IndexByte(data, s.delim.Release) >= 0 {
		b.walkReleased(data, b.marks[:n])
	} else {
		b.walk((*[windowBytes]byte)(s.buf[s.pos:s.pos+windowBytes]), n)
	}
	b.next, b.token, b.start, b.window = 0, 0, s.pos, s.pos
}

// walk makes the tokens of a window without release characters. Nothing in the loop branches on
// what a delimiter is, because nobody can guess that.
func (b *batch) walk(data *[windowBytes]byte, n int) {
	b.tokens[0] = Token{}
	segments, segment := 0, 0
	for n, mark := range b.marks[:n] {
		n &= windowBytes - 1
		i := int(mark) & (windowBytes - 1)
		c := int(int8(b.class[data[i]]))                  //nolint:gosec // G115: a terminator is negative.
		b.tokens[n].End = uint32(i - segment)             //nolint:gosec // G115: a window is small.
		b.ends[segments&(windowBytes-1)] = end(i | n<<32) //nolint:gosec // G115: a window is small.
		closed := c >> 7                                  // all ones at a terminator
		segments -= closed
		i++
		segment += (i - segment) & closed
		t := &b.tokens[n+1]
		t.Start = uint32(i - segment)                //nolint:gosec // G115: a window is small.
		t.Kind, t.Released = Kind(c&kindMask), false //nolint:gosec // G115: two bits.
	}
	b.count = segments
}

// walkReleased is walk for a window that holds release characters. One takes the meaning of what
// follows it, of another one too (ISO 9735-1 §8).
func (b *batch) walkReleased(data []byte, marks []uint16) {
	n, segments, segment, start, kind, rel, literal := 0, 0, 0, 0, Element, false, -1
	for _, mark := range marks {
		i := int(mark)
		if i == literal {
			continue
		}
		c := b.class[data[i]]
		if c == classRelease {
			rel, literal = true, i+1
			continue
		}
		b.tokens[n] = Token{Start: uint32(start - segment), End: uint32(i - segment), Kind: kind, Released: rel} //nolint:gosec // G115: a window is small.
		start, kind, rel = i+1, Kind(c&kindMask), false
		if c == classTerminator {
			b.ends[segments] = end(i | n<<32) //nolint:gosec // G115: a window is small.
			segments++
			segment = start
		}
		n++
	}
	b.count = segments
}

// take makes the next n bytes the segment; its terminator follows them.
func (s *Scanner) take(n int) {
	seg := &s.seg
	seg.Offset = s.base + int64(s.pos)
	seg.Raw = s.buf[s.pos : s.pos+n : s.pos+n]
	seg.End = seg.Offset + int64(n) + 1
	seg.Terminated = true
	if s.special { // the segment before was not as plain as this one
		s.special = false
		seg.Indented, seg.Binary, seg.BinaryError, seg.BinaryElement = false, 0, "", 0
	}
	if s.indented {
		seg.Indented, s.indented, s.special = true, false, true
	}
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
