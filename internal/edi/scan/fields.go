package scan

import "github.com/edihub/edihub/internal/edi"

// Fields gives the elements and components of a segment by number. It serves the few segments
// whose values a reader needs; a validator walks the tokens itself.
type Fields struct {
	d      edi.Delimiters
	raw    []byte
	tokens []Token
}

// Reset splits another segment.
func (f *Fields) Reset(raw []byte, d edi.Delimiters) {
	f.d, f.raw = d, raw
	f.tokens = AppendTokens(f.tokens[:0], raw, d)
}

// Bytes returns the component of an element, both from 1, in its first repetition, without
// release characters. It is empty when it is not there. It may share the segment's bytes.
func (f *Fields) Bytes(element, component int) []byte {
	e, c, r := 0, 1, 1
	for i, t := range f.tokens {
		switch {
		case i == 0:
		case t.Kind == Element:
			if e++; e > element {
				return nil
			}
			c, r = 1, 1
		case t.Kind == Component:
			c++
		case t.Kind == Repetition:
			r++
			c = 1
		}
		if i > 0 && e == element && c == component && r == 1 {
			v := f.raw[t.Start:t.End]
			if t.Released {
				return Unescape(v, f.d.Release)
			}
			return v
		}
	}
	return nil
}

// Whole returns an element from 1 as it stands, with separators of components and repetitions,
// but without release characters.
func (f *Fields) Whole(element int) []byte {
	e, from := 0, -1
	to := len(f.raw)
	rel := false
	for i, t := range f.tokens {
		if i > 0 && t.Kind == Element {
			if e++; e == element {
				from = int(t.Start)
			} else if e > element {
				to = int(t.Start) - 1
				break
			}
		}
		rel = rel || t.Released
	}
	if from < 0 {
		return nil
	}
	if rel {
		return Unescape(f.raw[from:to], f.d.Release)
	}
	return f.raw[from:to]
}

// String is Bytes as a string.
func (f *Fields) String(element, component int) string { return string(f.Bytes(element, component)) }

// Elements is the number of elements, without the tag.
func (f *Fields) Elements() int {
	n := -1
	for _, t := range f.tokens {
		if t.Kind == Element {
			n++
		}
	}
	return n
}
