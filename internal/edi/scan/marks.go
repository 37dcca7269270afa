package scan

import "bytes"

// byteOrderMark is that of UTF-8, which some programs put before a file.
var byteOrderMark = []byte("\xef\xbb\xbf")

// TrimMarks cuts a byte order mark and white space, in either order, off the beginning of a file.
func TrimMarks(prefix []byte) []byte {
	b := bytes.TrimLeft(bytes.TrimPrefix(prefix, byteOrderMark), " \t\r\n")
	return bytes.TrimLeft(bytes.TrimPrefix(b, byteOrderMark), " \t\r\n")
}

// SkipMarks passes what may stand before an interchange, and tells what there was.
func (s *Scanner) SkipMarks() (blank, mark bool) {
	for {
		before := s.Offset()
		head := s.Head()
		blank = blank || s.Offset() > before
		if !bytes.HasPrefix(head, byteOrderMark) {
			return blank, mark
		}
		mark = true
		s.Discard(int64(len(byteOrderMark)))
	}
}
