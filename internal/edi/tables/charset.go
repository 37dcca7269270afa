package tables

import "unicode/utf8"

// Charset says which bytes may stand in values. It is immutable.
type Charset struct {
	// Name is what findings call it.
	Name string
	// UTF8 says that characters are UTF-8 sequences.
	UTF8 bool
	bad  [256]bool
}

// NewCharset returns a character set of bytes. allowed tells which ones may stand in values.
func NewCharset(name string, allowed func(c byte) bool) *Charset {
	s := &Charset{Name: name}
	for i := range 256 {
		s.bad[i] = !allowed(byte(i)) //nolint:gosec // G115: below 256.
	}
	return s
}

// NewUTF8 returns the character set of UTF-8 text without control characters.
func NewUTF8(name string) *Charset {
	s := NewCharset(name, func(c byte) bool { return c >= ' ' && c != 0x7f })
	s.UTF8 = true
	return s
}

// Allows reports whether a byte may stand in values.
func (s *Charset) Allows(c byte) bool { return !s.bad[c] }

// with returns the table in which delimiters are allowed too.
func (s *Charset) with(delimiters ...byte) [256]bool {
	bad := s.bad
	for _, c := range delimiters {
		if c != 0 {
			bad[c] = false
		}
	}
	return bad
}

// good reports whether all of b may stand in a segment.
func (r *run) good(b []byte) bool {
	for _, c := range b {
		if r.bad[c] {
			return false
		}
	}
	return !r.utf8 || utf8.Valid(b)
}
