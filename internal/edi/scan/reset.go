package scan

import "io"

// Reset makes the scanner read another input, as New does, with the buffers that it has. Limits
// and delimiters are set anew. A reader of many small inputs needs no memory for each this way.
func (s *Scanner) Reset(r io.Reader, base int64, l Limits, binary Binary) {
	l = l.WithDefaults()
	*s = Scanner{r: r, base: base, maxSegment: l.MaxSegmentBytes, maxBinary: l.MaxBinaryBytes, binary: binary, buf: s.buf, tokens: s.tokens}
}
