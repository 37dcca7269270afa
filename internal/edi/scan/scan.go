// Package scan is what the readers of EDIFACT and X12 share: it cuts bytes into segments and
// segments into spans, and keeps the books of open interchanges, groups and messages. Which tag
// opens or closes what, and what its elements mean, is the business of the readers above it.
package scan

import (
	"bytes"
	"errors"
	"io"

	"github.com/edihub/edihub/internal/edi"
)

// Defaults of the limits; a zero field of Limits means the default.
const (
	DefaultMaxSegmentBytes  = 1 << 20
	DefaultMaxBinaryBytes   = 1 << 30
	DefaultMaxSegments      = 5_000_000
	DefaultMaxMessages      = 1_000_000
	DefaultMaxGroups        = 100_000
	DefaultMaxInterchanges  = 100_000
	DefaultMaxFindings      = 100
	initialBuffer           = 64 << 10
	headBytes               = 160 // more than an ISA, a UNA with its UNB tag, or the head of a BIN
	maxEmptyReads           = 100
	maxBinaryHead           = 64
	maxBinaryLengthInDigits = 15
)

// Limits bound what a reader takes from one file. Zero means the default.
type Limits struct {
	// MaxSegmentBytes is the largest segment, and with it the largest buffer, in bytes.
	// Default 1 MiB. Binary data in BIN, BDS and between UNO and UNP does not count.
	MaxSegmentBytes int
	// MaxBinaryBytes is the largest length, in bytes, that a BIN, BDS or UNO may state.
	// Default 1 GiB. A larger one is a finding and the data is read as segments.
	MaxBinaryBytes int64
	// MaxSegments is the largest number of segments of one interchange. Default 5,000,000.
	MaxSegments int
	// MaxMessages is the largest number of messages of one interchange. Default 1,000,000.
	MaxMessages int
	// MaxGroups is the largest number of groups of one interchange. Default 100,000.
	MaxGroups int
	// MaxInterchanges is the largest number of interchanges of a file. Default 100,000.
	MaxInterchanges int
	// MaxFindings is the largest number of findings that one message, group or interchange
	// keeps. Default 100. The last one then says how many were left out.
	MaxFindings int
}

// WithDefaults returns the limits with the default in each field that is zero or negative.
func (l Limits) WithDefaults() Limits {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.MaxSegmentBytes, DefaultMaxSegmentBytes)
	def(&l.MaxSegments, DefaultMaxSegments)
	def(&l.MaxMessages, DefaultMaxMessages)
	def(&l.MaxGroups, DefaultMaxGroups)
	def(&l.MaxInterchanges, DefaultMaxInterchanges)
	def(&l.MaxFindings, DefaultMaxFindings)
	if l.MaxBinaryBytes <= 0 {
		l.MaxBinaryBytes = DefaultMaxBinaryBytes
	}
	return l
}

// BinaryError says why a stated length of binary data was not believed.
type BinaryError string

// The reasons. The empty one means that there was nothing wrong.
const (
	BinaryNotNumber BinaryError = "not a number"
	BinaryTooLarge  BinaryError = "larger than the limit"
	BinaryMismatch  BinaryError = "no segment ends after that many bytes"
)

// Segment is one segment of a Scanner. It is valid until the next call.
type Segment struct {
	// Raw is the segment without its terminator: a part of the scanner's buffer. Of a BIN or BDS whose length was believed it is
	// the part before the binary data.
	Raw []byte
	// Offset is the place of the first byte in the input, End the place after the terminator.
	Offset, End int64
	// Terminated is false when the input ended before the terminator came.
	Terminated bool
	// Indented is true when blanks or tabs stood before the segment.
	Indented bool
	// Binary is the number of bytes of binary data inside this segment (BIN, BDS) or behind it
	// (UNO).
	Binary int64
	// BinaryError says why a length was not believed; the data was then read as segments.
	BinaryError BinaryError
	// BinaryElement is the element that holds the length, from 1; 0 where there is none.
	BinaryElement int
}

// Binary says which segments carry a length of binary data.
type Binary int

// The kinds of binary segments.
const (
	NoBinary   Binary = iota
	BINAndBDS         // X12: the data is the last element of the segment itself
	UNOPackage        // EDIFACT: the data stands between UNO and UNP
)

// Scanner reads segments from an io.Reader. Its memory is bounded by the largest segment.
type Scanner struct {
	r          io.Reader
	buf        []byte
	pos, end   int
	base       int64 // place of buf[0] in the input
	err        error
	maxSegment int
	maxBinary  int64
	binary     Binary
	delim      edi.Delimiters
	seg        Segment
	indented   bool   // blanks or tabs stand before the next segment
	special    bool   // seg may hold more than its bytes and place
	oddSpace   bool   // white space is a repetition separator or release character
	batch      *batch // nil until tokens are asked for
	tokens     []Token
}

// New returns a Scanner of r. base is the place of r's first byte in the file that offsets are
// counted in.
func New(r io.Reader, base int64, l Limits, binary Binary) *Scanner {
	l = l.WithDefaults()
	return &Scanner{r: r, base: base, maxSegment: l.MaxSegmentBytes, maxBinary: l.MaxBinaryBytes, binary: binary}
}

// SetDelimiters sets the delimiters for the segments to come.
func (s *Scanner) SetDelimiters(d edi.Delimiters) {
	s.delim = d
	if s.batch != nil {
		s.batch.class, s.batch.needles = classes(d), newNeedles(d)
	}
	s.oddSpace = isBlank(d.Repetition) || isBlank(d.Release)
	s.forget()
}

// Offset is the place of the next unread byte.
func (s *Scanner) Offset() int64 { return s.base + int64(s.pos) }

// Err is the error that ended the input: nil as long as it lasts, io.EOF at its regular end.
func (s *Scanner) Err() error { return s.err }

// fill reads until n bytes are buffered or the input ends. It reports whether n bytes are there.
func (s *Scanner) fill(n int) bool {
	if s.end-s.pos >= n {
		return true
	}
	if s.err != nil {
		return false
	}
	if s.pos > 0 {
		copy(s.buf, s.buf[s.pos:s.end])
		s.base += int64(s.pos)
		s.end -= s.pos
		s.pos = 0
		s.forget()
	}
	if n > len(s.buf) {
		size := max(2*len(s.buf), s.firstBuffer())
		for size < n {
			size *= 2
		}
		buf := make([]byte, size, size+windowBytes)
		copy(buf, s.buf[:s.end])
		s.buf = buf
	}
	for empty := 0; s.end < n; {
		m, err := s.r.Read(s.buf[s.end:])
		s.end += m
		switch {
		case err != nil:
			s.err = err
			return s.end >= n
		case m > 0:
			empty = 0
		default:
			if empty++; empty > maxEmptyReads {
				s.err = io.ErrNoProgress
				return false
			}
		}
	}
	return true
}

// firstBuffer is the size of the first buffer: a small message in memory needs no large one.
func (s *Scanner) firstBuffer() int {
	if r, ok := s.r.(interface{ Len() int }); ok && len(s.buf) == 0 {
		return min(r.Len()+headBytes, initialBuffer)
	}
	return initialBuffer
}

// Peek returns the next n bytes, or fewer where the input ends. They stay unread.
func (s *Scanner) Peek(n int) []byte {
	s.fill(n)
	return s.buf[s.pos:min(s.pos+n, s.end)]
}

// Discard drops n bytes and returns how many there were.
func (s *Scanner) Discard(n int64) int64 {
	done := int64(0)
	s.indented = false
	s.forget()
	for done < n {
		if s.pos == s.end && !s.fill(1) {
			break
		}
		step := min(int64(s.end-s.pos), n-done)
		s.pos += int(step)
		done += step
	}
	return done
}

// isSpace reports whether c may be skipped before a segment. A delimiter never is: X12 may use
// a tab or a line feed as one.
func (s *Scanner) isSpace(c byte) bool {
	return isBlank(c) && c != s.delim.Element && c != s.delim.Component
}

func isBlank(c byte) bool { return c == '\r' || c == '\n' || c == ' ' || c == '\t' }

// Head skips white space and returns what is buffered of the next segment and beyond it: at
// least 160 bytes unless the input ends before, nothing at its end.
func (s *Scanner) Head() []byte {
	if s.end-s.pos < headBytes {
		s.fill(headBytes)
	}
	if s.pos < s.end && s.buf[s.pos] > ' ' {
		return s.buf[s.pos:s.end]
	}
	return s.headSlow()
}

func (s *Scanner) headSlow() []byte {
	for {
		for s.pos < s.end && s.isSpace(s.buf[s.pos]) {
			if c := s.buf[s.pos]; c == ' ' || c == '\t' {
				s.indented = true
			}
			s.pos++
		}
		if s.end-s.pos >= headBytes || !s.fill(headBytes) && (s.pos == s.end || !s.isSpace(s.buf[s.pos])) {
			return s.buf[s.pos:s.end]
		}
	}
}

// Next returns the next segment. White space before it is skipped. It returns io.EOF at the end
// of the input, the error of a failed read, or *edi.LimitError where a segment is too long.
func (s *Scanner) Next() (*Segment, error) {
	s.forget()
	head := s.Head()
	if len(head) == 0 {
		if s.err != nil {
			return nil, s.err
		}
		return nil, io.EOF
	}
	seg := &s.seg
	s.special = true
	seg.Offset = s.Offset()
	seg.Indented, s.indented = s.indented, false
	seg.Binary, seg.BinaryError, seg.BinaryElement = 0, "", 0
	if s.binary != NoBinary {
		if c := head[0]; c == 'B' && s.binary == BINAndBDS {
			if done, err := s.embedded(head); done || err != nil {
				return seg, err
			}
		}
	}
	if err := s.terminated(0); err != nil {
		return nil, err
	}
	if s.binary == UNOPackage && seg.Terminated && len(seg.Raw) > 4 && string(seg.Raw[:3]) == "UNO" && seg.Raw[3] == s.delim.Element {
		if err := s.packaged(); err != nil {
			return nil, err
		}
	}
	return seg, nil
}

// Plain says which segments a reader need not see: those whose first two bytes are not both in
// its sets.
type Plain struct{ first, second [256]bool }

// NewPlain returns the Plain that keeps the segments whose first byte is in first and whose
// second is in second.
func NewPlain(first, second string) *Plain {
	var p Plain
	for _, c := range []byte(first) {
		p.first[c] = true
	}
	for _, c := range []byte(second) {
		p.second[c] = true
	}
	return &p
}

// SkipPlain passes at most n segments that p does not keep, as long as they are buffered as a
// whole, not empty and not indented. It returns how many there were, and the place behind the
// last one. The rest is Next's affair, limits included.
func (s *Scanner) SkipPlain(p *Plain, n int) (int, int64) {
	count, end := 0, s.pos
	data, terminator, release := s.buf[:s.end], s.delim.Segment, s.delim.Release
	if isBlank(terminator) { // white space would hide empty segments
		return 0, s.base + int64(end)
	}
	for pos := end; count < n; count++ {
		for pos < len(data) && (data[pos] == '\n' || data[pos] == '\r') && s.isSpace(data[pos]) {
			pos++
		}
		if pos+1 >= len(data) || data[pos] <= ' ' || p.first[data[pos]] && p.second[data[pos+1]] {
			break
		}
		i := bytes.IndexByte(data[pos:], terminator)
		for i > 0 && release != 0 && data[pos+i-1] == release && odd(data[pos:pos+i], release) {
			j := bytes.IndexByte(data[pos+i+1:], terminator)
			if i += 1 + j; j < 0 {
				i = -1
			}
		}
		if i <= 0 || i > s.maxSegment {
			break
		}
		pos += i + 1
		end = pos
	}
	if count > 0 {
		s.pos = end
		s.forget()
	}
	return count, s.base + int64(end)
}

// Cut ends the segment that Next returned last after n of its bytes: what stands behind them is
// read again. It serves a reader that finds another segment inside, where a terminator is
// missing. The segment must not have binary data, and nothing may have been read since.
func (s *Scanner) Cut(n int) {
	seg := &s.seg
	s.pos -= int(seg.End-seg.Offset) - n
	s.forget()
	seg.Raw = seg.Raw[:n]
	seg.End = seg.Offset + int64(n)
	seg.Terminated = false
}

// terminated finds the terminator from `from` bytes behind the read position on and takes the
// segment.
func (s *Scanner) terminated(from int) error {
	seg := &s.seg
	for {
		n := s.findEnd(from)
		if n >= 0 {
			if n > s.maxSegment {
				return &edi.LimitError{Limit: "max_segment_bytes", Max: int64(s.maxSegment), Offset: seg.Offset}
			}
			seg.Raw = s.buf[s.pos : s.pos+n : s.pos+n]
			seg.Terminated = true
			s.pos += n + 1
			seg.End = s.base + int64(s.pos)
			return nil
		}
		have := s.end - s.pos
		if have > s.maxSegment {
			return &edi.LimitError{Limit: "max_segment_bytes", Max: int64(s.maxSegment), Offset: seg.Offset}
		}
		from = have
		if !s.fill(have + 1) {
			break
		}
	}
	if !errors.Is(s.err, io.EOF) {
		return s.err
	}
	seg.Raw = s.buf[s.pos:s.end:s.end]
	seg.Terminated = false
	s.pos = s.end
	seg.End = s.base + int64(s.pos)
	return nil
}

// findEnd returns the distance from the read position to the terminator, looking from `from`
// bytes behind it on; -1 when it is not buffered. A terminator is released when the run of
// release characters before it has an odd length (ISO 9735-1 §8: counted from the left each
// pair is one literal release character).
func (s *Scanner) findEnd(from int) int {
	data := s.buf[s.pos:s.end]
	for {
		i := bytes.IndexByte(data[from:], s.delim.Segment)
		if i < 0 {
			return -1
		}
		i += from
		if rel := s.delim.Release; rel == 0 || i == 0 || data[i-1] != rel || !odd(data[:i], rel) {
			return i
		}
		from = i + 1
	}
}

// odd reports whether data ends with an odd number of release characters.
func odd(data []byte, rel byte) bool {
	n := 0
	for i := len(data) - 1; i >= 0 && data[i] == rel; i-- {
		n++
	}
	return n&1 == 1
}

// embedded handles BIN and BDS (X12.6: BIN01, BDS02 hold the length in bytes of the element
// behind them). It reports whether the segment was taken.
func (s *Scanner) embedded(head []byte) (bool, error) {
	var at int // elements before the length
	switch {
	case len(head) < 5 || head[3] != s.delim.Element:
		return false, nil
	case string(head[:3]) == "BIN":
		at = 1
	case string(head[:3]) == "BDS":
		at = 2
	default:
		return false, nil
	}
	seg := &s.seg
	start := 4
	for i := 1; i < at; i++ {
		j := bytes.IndexByte(head[start:min(len(head), maxBinaryHead)], s.delim.Element)
		if j < 0 {
			return false, nil
		}
		start += j + 1
	}
	stop := bytes.IndexByte(head[start:min(len(head), start+maxBinaryHead)], s.delim.Element)
	if stop < 0 {
		return false, nil
	}
	stop += start
	if i := bytes.IndexByte(head[:stop], s.delim.Segment); i >= 0 {
		return false, nil // the segment ends before its data
	}
	seg.BinaryElement = at
	n, why := s.length(head[start:stop])
	if why != "" {
		seg.BinaryError = why
		return false, nil
	}
	return s.skipEmbedded(stop+1, n)
}

// skipEmbedded takes a segment whose head of h bytes is followed by n bytes of data and the
// terminator. Data that fits the buffer is looked at before it is believed; larger data is
// passed by and judged by what stands behind it.
func (s *Scanner) skipEmbedded(h int, n int64) (bool, error) {
	seg := &s.seg
	if n <= int64(s.maxSegment) {
		all := h + int(n)
		if !s.fill(all+1) || s.buf[s.pos+all] != s.delim.Segment {
			seg.BinaryError = BinaryMismatch
			return false, nil
		}
		seg.Raw = s.buf[s.pos : s.pos+h : s.pos+h]
		seg.Binary = n
		seg.Terminated = true
		s.pos += all + 1
		seg.End = s.base + int64(s.pos)
		return true, nil
	}
	headCopy := bytes.Clone(s.buf[s.pos : s.pos+h])
	s.pos += h
	if s.Discard(n) < n && !errors.Is(s.err, io.EOF) {
		return true, s.err
	}
	seg.Binary = n
	if next := s.Peek(1); len(next) == 0 || next[0] != s.delim.Segment {
		seg.BinaryError = BinaryMismatch
	}
	if err := s.terminated(0); err != nil {
		return true, err
	}
	seg.Raw = headCopy
	return true, nil
}

// packaged passes the object behind a UNO (ISO 9735-8: the fourth element's first component is
// its length in octets).
func (s *Scanner) packaged() error {
	seg := &s.seg
	value, ok := nth(seg.Raw, s.delim, 4)
	if !ok {
		return nil
	}
	seg.BinaryElement = 4
	n, why := s.length(value)
	if why != "" {
		seg.BinaryError = why
		return nil
	}
	const trailer = 3
	if n <= int64(s.maxSegment) {
		// Filling may move the buffer, and the raw segment with it.
		raw := bytes.Clone(seg.Raw)
		seg.Raw = raw
		s.fill(int(n) + trailer)
		if rest := s.buf[s.pos:s.end]; int64(len(rest)) < n || !startsUNP(rest[n:]) {
			seg.BinaryError = BinaryMismatch
			return nil
		}
		s.pos += int(n)
		seg.Binary = n
		return nil
	}
	seg.Raw = bytes.Clone(seg.Raw)
	if s.Discard(n) < n && !errors.Is(s.err, io.EOF) {
		return s.err
	}
	seg.Binary = n
	if !startsUNP(s.Peek(trailer)) {
		seg.BinaryError = BinaryMismatch
	}
	return nil
}

func startsUNP(b []byte) bool { return len(b) >= 3 && string(b[:3]) == "UNP" }

// length reads a length of binary data.
func (s *Scanner) length(b []byte) (int64, BinaryError) {
	b = bytes.Trim(b, " ")
	if len(b) == 0 {
		return 0, BinaryNotNumber
	}
	var n int64
	for i, c := range b {
		if c < '0' || c > '9' {
			return 0, BinaryNotNumber
		}
		if i >= maxBinaryLengthInDigits {
			return 0, BinaryTooLarge
		}
		n = n*10 + int64(c-'0')
	}
	if n > s.maxBinary {
		return 0, BinaryTooLarge
	}
	return n, ""
}

// nth returns the first component of the nth element, from 1.
func nth(raw []byte, d edi.Delimiters, n int) ([]byte, bool) {
	var room [32]Token
	for _, e := range AppendTokens(room[:0], raw, d) {
		if e.Kind == Element {
			if n == 0 {
				return raw[e.Start:e.End], e.End > e.Start
			}
			n--
		}
	}
	return nil, false
}
