package cms

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// bufferSize is the size of every read and write buffer of the package, in bytes.
const bufferSize = 32 << 10

// Identifier octets (X.690 §8.1.2).
const (
	classUniversal = 0x00
	classContext   = 0x80

	tagEndOfContents = 0
	tagOctetString   = 4
	tagOID           = 6
	tagSequence      = 16
	tagSet           = 17
)

// ioError marks an error of the caller's reader or writer: it is the caller's own trouble and
// never says anything about the message.
type ioError struct{ err error }

func (e *ioError) Error() string { return e.err.Error() }
func (e *ioError) Unwrap() error { return e.err }

// element is the header of a BER element. Its content is still unread.
type element struct {
	ident       [6]byte // the identifier octets as they stand
	identLen    int
	class       byte
	constructed bool
	tag         uint32
	length      int64 // -1: indefinite
}

func (e *element) is(class byte, tag uint32) bool { return e.class == class && e.tag == tag }

// frame is a constructed element that the reader is inside of.
type frame struct {
	end        int64 // offset behind the content; of an indefinite one, the nearest known bound
	indefinite bool
}

// berReader pulls BER elements (X.690 §8) from a stream. It holds one buffer and a stack of
// frames that is bounded by the depth limit; nothing in it recurses, and every byte is looked at
// once. Lengths are only believed as far as the enclosing element goes.
type berReader struct {
	src      io.Reader // nil: buf already holds everything
	buf      []byte
	pos, end int
	base     int64 // offset of buf[0] in the stream
	frames   []frame
	maxDepth int
	budget   int64 // bytes that may still be captured
	held     int64 // the budget at the start
}

func newBERReader(r io.Reader, p Policy) *berReader {
	return &berReader{src: r, buf: make([]byte, bufferSize), maxDepth: p.MaxDepth, budget: p.MaxStructure, held: p.MaxStructure}
}

func newBERBytes(b []byte, p Policy) *berReader {
	return &berReader{buf: b, end: len(b), maxDepth: p.MaxDepth, budget: p.MaxStructure, held: p.MaxStructure}
}

func (r *berReader) offset() int64 { return r.base + int64(r.pos) }

func (r *berReader) malformed(what string) error {
	return fmt.Errorf("%w: %s at byte %d", ErrMalformed, what, r.offset())
}

func (r *berReader) beyond(what string, limit int64) error {
	return fmt.Errorf("%w: %s exceeds %d at byte %d", ErrLimit, what, limit, r.offset())
}

// fill makes at least one unread byte available, or returns io.EOF.
func (r *berReader) fill() error {
	if r.pos < r.end {
		return nil
	}
	if r.src == nil {
		return io.EOF
	}
	r.base += int64(r.end)
	r.pos, r.end = 0, 0
	for range 100 {
		n, err := r.src.Read(r.buf)
		if n > 0 {
			r.end = n
			return nil
		}
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		if err != nil {
			return &ioError{fmt.Errorf("read the message: %w", err)}
		}
	}
	return &ioError{fmt.Errorf("read the message: %w", io.ErrNoProgress)}
}

func (r *berReader) readByte() (byte, error) {
	if err := r.fill(); err != nil {
		return 0, r.truncated(err)
	}
	b := r.buf[r.pos]
	r.pos++
	return b, nil
}

func (r *berReader) truncated(err error) error {
	if errors.Is(err, io.EOF) {
		return r.malformed("the data ends inside an element")
	}
	return err
}

func (r *berReader) bound() frame {
	if len(r.frames) == 0 {
		return frame{end: math.MaxInt64}
	}
	return r.frames[len(r.frames)-1]
}

// next reads the header of the next element of the current frame. At the end of the frame it
// leaves it and returns more == false. The caller must consume the content of what it gets, by
// enter, capture, skip or octets.
func (r *berReader) next() (e element, more bool, err error) {
	f := r.bound()
	if !f.indefinite && r.offset() == f.end && len(r.frames) > 0 {
		r.frames = r.frames[:len(r.frames)-1]
		return element{}, false, nil
	}
	if e, err = r.header(); err != nil {
		return element{}, false, err
	}
	if r.offset() > f.end {
		return element{}, false, r.malformed("an element header crosses the end of its container")
	}
	if e.is(classUniversal, tagEndOfContents) {
		if !f.indefinite || e.constructed || e.length != 0 {
			return element{}, false, r.malformed("end-of-contents where none belongs")
		}
		r.frames = r.frames[:len(r.frames)-1]
		return element{}, false, nil
	}
	if e.length > f.end-r.offset() {
		return element{}, false, r.malformed("an element is longer than its container")
	}
	return e, true, nil
}

// header reads identifier and length octets (X.690 §8.1.2, §8.1.3).
func (r *berReader) header() (element, error) {
	var e element
	b, err := r.readByte()
	if err != nil {
		return e, err
	}
	e.ident[0], e.identLen = b, 1
	e.class, e.constructed, e.tag = b&0xc0, b&0x20 != 0, uint32(b&0x1f)
	if e.tag == 0x1f {
		e.tag = 0
		for more := true; more; {
			if b, err = r.readByte(); err != nil {
				return e, err
			}
			if e.identLen == len(e.ident)-1 {
				return e, r.malformed("a tag number is too large")
			}
			e.ident[e.identLen] = b
			e.identLen++
			e.tag = e.tag<<7 | uint32(b&0x7f)
			more = b&0x80 != 0
		}
	}
	if b, err = r.readByte(); err != nil {
		return e, err
	}
	switch {
	case b < 0x80:
		e.length = int64(b)
	case b == 0x80:
		if !e.constructed {
			return e, r.malformed("a primitive element of indefinite length")
		}
		e.length = -1
	case b > 0x88:
		return e, r.malformed("a length of more than eight octets")
	default:
		for range b & 0x7f {
			if b, err = r.readByte(); err != nil {
				return e, err
			}
			if e.length > math.MaxInt64>>8 {
				return e, r.malformed("a length beyond 63 bits")
			}
			e.length = e.length<<8 | int64(b)
		}
	}
	return e, nil
}

// enter steps into a constructed element.
func (r *berReader) enter(e element) error {
	if !e.constructed {
		return r.malformed("a primitive element where a constructed one belongs")
	}
	if len(r.frames) >= r.maxDepth {
		return r.beyond("nesting depth", int64(r.maxDepth))
	}
	f := frame{end: r.bound().end, indefinite: e.length < 0}
	if !f.indefinite {
		f.end = r.offset() + e.length
	}
	r.frames = append(r.frames, f)
	return nil
}

// leave ends the current frame, in which nothing more may stand.
func (r *berReader) leave() error {
	_, more, err := r.next()
	if err == nil && more {
		err = r.malformed("an element where its container should end")
	}
	return err
}

// want reads the header of the next element, which must be there and have this tag.
func (r *berReader) want(class byte, tag uint32, what string) (element, error) {
	e, more, err := r.next()
	if err != nil {
		return e, err
	}
	if !more || !e.is(class, tag) {
		return e, r.malformed("no " + what)
	}
	return e, nil
}

// open is want and enter.
func (r *berReader) open(class byte, tag uint32, what string) error {
	e, err := r.want(class, tag, what)
	if err != nil {
		return err
	}
	return r.enter(e)
}

// chunks hands n bytes to sink in pieces of the buffer. The pieces are only valid in the call.
func (r *berReader) chunks(n int64, sink func([]byte) error) error {
	for n > 0 {
		if err := r.fill(); err != nil {
			return r.truncated(err)
		}
		k := int(min(n, int64(r.end-r.pos)))
		piece := r.buf[r.pos : r.pos+k]
		r.pos += k
		n -= int64(k)
		if err := sink(piece); err != nil {
			return err
		}
	}
	return nil
}

func discard([]byte) error { return nil }

// skip passes over the content of an element.
func (r *berReader) skip(e element) error {
	if !e.constructed {
		return r.chunks(e.length, discard)
	}
	outer := len(r.frames)
	if err := r.enter(e); err != nil {
		return err
	}
	for len(r.frames) > outer {
		e, more, err := r.next()
		switch {
		case err != nil:
			return err
		case !more:
		case e.constructed:
			err = r.enter(e)
		default:
			err = r.chunks(e.length, discard)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// octets hands the content of an OCTET STRING to sink, put together from its segments if it is
// constructed (X.690 §8.7). The tag of e itself may be an implicit one.
func (r *berReader) octets(e element, sink func([]byte) error) error {
	if !e.constructed {
		return r.chunks(e.length, sink)
	}
	outer := len(r.frames)
	if err := r.enter(e); err != nil {
		return err
	}
	for len(r.frames) > outer {
		e, more, err := r.next()
		switch {
		case err != nil:
			return err
		case !more:
		case !e.is(classUniversal, tagOctetString):
			return r.malformed("a segment that is no OCTET STRING")
		case e.constructed:
			err = r.enter(e)
		default:
			err = r.chunks(e.length, sink)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// capture returns an element with its content, rewritten with definite, minimal lengths and
// primitive OCTET STRINGs. What came in DER comes out unchanged. The bytes count against the
// structure budget before they are held.
func (r *berReader) capture(e element) ([]byte, error) {
	type level struct {
		e       element
		content []byte
	}
	var done []byte
	stack := make([]level, 0, 8)
	stack = append(stack, level{e: e})
	if e.constructed {
		if err := r.enter(e); err != nil {
			return nil, err
		}
	} else if err := r.hold(e.length, &stack[0].content); err != nil {
		return nil, err
	}
	for {
		top := &stack[len(stack)-1]
		if top.e.constructed {
			child, more, err := r.next()
			if err != nil {
				return nil, err
			}
			if more {
				stack = append(stack, level{e: child})
				if child.constructed {
					err = r.enter(child)
				} else {
					err = r.hold(child.length, &stack[len(stack)-1].content)
				}
				if err != nil {
					return nil, err
				}
				continue
			}
		}
		l := *top
		stack = stack[:len(stack)-1]
		var parent *level
		if len(stack) > 0 {
			parent = &stack[len(stack)-1]
		}
		if parent == nil {
			return appendElement(done, &l.e, l.content), nil
		}
		if parent.e.constructed && parent.e.is(classUniversal, tagOctetString) {
			if !l.e.is(classUniversal, tagOctetString) {
				return nil, r.malformed("a segment that is no OCTET STRING")
			}
			parent.content = append(parent.content, l.content...)
			continue
		}
		parent.content = appendElement(parent.content, &l.e, l.content)
	}
}

// hold reads n bytes into memory, piece by piece: a length that lies costs no more memory than
// there is data.
func (r *berReader) hold(n int64, into *[]byte) error {
	// The header counts too, so that a million empty elements are not free.
	if r.budget -= 2; n > r.budget || r.budget < 0 {
		return r.beyond("structure held in memory", r.held)
	}
	r.budget -= n
	if n <= int64(r.end-r.pos) {
		*into = make([]byte, 0, n)
	}
	return r.chunks(n, func(p []byte) error {
		*into = append(*into, p...)
		return nil
	})
}

// appendElement writes an element in DER. A constructed OCTET STRING becomes a primitive one.
func appendElement(dst []byte, e *element, content []byte) []byte {
	if e.is(classUniversal, tagOctetString) {
		dst = append(dst, tagOctetString)
	} else {
		dst = append(dst, e.ident[:e.identLen]...)
	}
	return append(appendLength(dst, int64(len(content))), content...)
}

// appendLength writes definite length octets in the fewest bytes (X.690 §10.1).
func appendLength(dst []byte, n int64) []byte {
	if n < 0x80 {
		return append(dst, byte(n)) //nolint:gosec // G115: below 128.
	}
	size := 0
	for v := n; v > 0; v >>= 8 {
		size++
	}
	dst = append(dst, 0x80|byte(size))
	for i := size - 1; i >= 0; i-- {
		dst = append(dst, byte(n>>(8*i))) //nolint:gosec // G115: one octet of it is wanted.
	}
	return dst
}

// trailing counts what stands behind the outer structure, up to the limit.
func (r *berReader) trailing(limit int64) (int64, error) {
	var n int64
	for {
		err := r.fill()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		n += int64(r.end - r.pos)
		r.pos = r.end
		if n > limit {
			return n, r.beyond("data behind the message", limit)
		}
	}
}
