package scan

import (
	"github.com/edihub/edihub/internal/edi"
)

// blockBytes is how many bytes are looked at in one step; windowBytes is how many are tokenised
// in one go: few enough for mask and tokens to stay in the first-level cache until they are used.
// A buffer has a window of room behind its end, so that the last one may be read as a whole.
const (
	blockBytes  = 64
	windowBytes = 1024
)

// needles are the delimiters, each in all 16 bytes of a vector. A delimiter that is not used
// repeats the terminator.
type needles [5][16]byte

func newNeedles(d edi.Delimiters) (n needles) {
	for i, c := range [...]byte{d.Segment, d.Element, d.Component, d.Repetition, d.Release} {
		if c == 0 {
			c = d.Segment
		}
		for j := range n[i] {
			n[i][j] = c
		}
	}
	return n
}

// findPortable is findDelimiters for machines without a version of their own.
func findPortable(mask, src []byte, n *needles) {
	var is [256]uint8
	for i := range n {
		is[n[i][0]] = 1
	}
	for i := range mask {
		v := src[8*i : 8*i+8]
		mask[i] = is[v[0]] | is[v[1]]<<1 | is[v[2]]<<2 | is[v[3]]<<3 | is[v[4]]<<4 | is[v[5]]<<5 | is[v[6]]<<6 | is[v[7]]<<7
	}
}

// placesOfByte are the places of the bits of a byte, four to a word, and their number.
type placesOfByte struct {
	low, high uint64
	count     int
	_         int // a power of two is quicker to index
}

// places are those of each byte.
var places = func() (t [256]placesOfByte) {
	for b := range t {
		n := 0
		for bit := range uint64(8) {
			if b>>bit&1 == 0 {
				continue
			}
			if n < 4 {
				t[b].low |= bit << (16 * n)
			} else {
				t[b].high |= bit << (16 * (n - 4))
			}
			n++
		}
		t[b].count = n
	}
	return t
}()

// flatten writes the places of the bits of a mask, in ascending order, and returns their number.
// It writes eight places for each byte and steps on by as many as hold, so that no branch
// depends on the data.
func flatten(marks *[windowBytes + 8]uint16, mask []uint8) int {
	const ones = 0x0001_0001_0001_0001
	n, base := 0, uint64(0)
	for _, b := range mask {
		p := &places[b]
		m := marks[n&(windowBytes-1):][:8]
		low, high := p.low+base, p.high+base
		m[0], m[1], m[2], m[3] = uint16(low), uint16(low>>16), uint16(low>>32), uint16(low>>48)     //nolint:gosec // G115: the lowest 16 bits are meant.
		m[4], m[5], m[6], m[7] = uint16(high), uint16(high>>16), uint16(high>>32), uint16(high>>48) //nolint:gosec // G115: as above.
		n += p.count
		base += 8 * ones
	}
	return n
}
