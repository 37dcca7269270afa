package as2

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/edihub/edihub/internal/edi"
)

// errMIME is wrapped by everything that is wrong with the form of a MIME entity.
var errMIME = errors.New("malformed MIME")

// errMIMELimit is wrapped where an entity is beyond one of Limits.
var errMIMELimit = errors.New("MIME limit exceeded")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errMIME, fmt.Sprintf(format, args...))
}

func beyond(what string, limit int) error {
	return fmt.Errorf("%w: more than %d %s", errMIMELimit, limit, what)
}

// field is one header field, unfolded.
type field struct{ name, value string }

// header is the header block of a MIME entity.
type header []field

// get returns the value of the first field of that name, in any case, or "".
func (h header) get(name string) string {
	for _, f := range h {
		if strings.EqualFold(f.name, name) {
			return f.value
		}
	}
	return ""
}

func (h header) count(name string) int {
	n := 0
	for _, f := range h {
		if strings.EqualFold(f.name, name) {
			n++
		}
	}
	return n
}

func (h header) mime() MIMEHeaders {
	return MIMEHeaders{
		ContentType:        h.get("Content-Type"),
		TransferEncoding:   h.get("Content-Transfer-Encoding"),
		ContentDisposition: h.get("Content-Disposition"),
	}
}

// readHeader reads the header block at the start of an entity and returns it with the offset of
// the body. Lines end in CRLF or LF. A block without the empty line that ends it is malformed: the
// entity was cut off.
func readHeader(src edi.Source, l Limits) (header, int64, error) {
	block, bodyAt, err := headerBlock(src, l)
	if err != nil {
		return nil, 0, err
	}
	h, err := parseFields(block, l)
	if err != nil {
		return nil, 0, err
	}
	// Two readers could take different ones.
	for _, name := range []string{"Content-Type", "Content-Transfer-Encoding", "Content-Disposition"} {
		if h.count(name) > 1 {
			return nil, 0, malformed("%s stands more than once", name)
		}
	}
	return h, bodyAt, nil
}

// headerBlock returns the bytes up to the empty line, without it, and where the body begins.
func headerBlock(src edi.Source, l Limits) ([]byte, int64, error) {
	const step = 1 << 10
	buf := make([]byte, 0, step)
	for {
		n := min(cap(buf), l.HeaderBytes+4)
		got, err := readAt(src, buf[:n], 0)
		if err != nil {
			return nil, 0, err
		}
		buf = buf[:got]
		if end, body, ok := emptyLine(buf); ok {
			if end > l.HeaderBytes {
				return nil, 0, beyond("bytes of headers", l.HeaderBytes)
			}
			return buf[:end], int64(body), nil
		}
		if got < n {
			return nil, 0, malformed("the headers have no end")
		}
		if n == l.HeaderBytes+4 {
			return nil, 0, beyond("bytes of headers", l.HeaderBytes)
		}
		buf = make([]byte, 0, cap(buf)*4)
	}
}

// emptyLine finds the first empty line: end is where the last header line ends (with its line
// break), body is what follows the empty line.
func emptyLine(b []byte) (end, body int, ok bool) {
	for at := 0; at < len(b); {
		switch {
		case b[at] == '\n':
			return at, at + 1, true
		case b[at] == '\r' && at+1 < len(b) && b[at+1] == '\n':
			return at, at + 2, true
		}
		nl := bytes.IndexByte(b[at:], '\n')
		if nl < 0 {
			return 0, 0, false
		}
		at += nl + 1
	}
	return 0, 0, false
}

// parseFields reads header lines; a line that begins with a blank or a tab continues the one
// before (RFC 5322 §2.2.3).
func parseFields(block []byte, l Limits) (header, error) {
	var h header
	for len(block) > 0 {
		line := block
		if nl := bytes.IndexByte(block, '\n'); nl >= 0 {
			line, block = block[:nl], block[nl+1:]
		} else {
			block = nil
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if i := bytes.IndexAny(line, "\x00\r"); i >= 0 {
			return nil, malformed("a control character in the headers")
		}
		if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
			if len(h) == 0 {
				return nil, malformed("the headers begin with a continuation line")
			}
			last := &h[len(h)-1]
			last.value = strings.TrimRight(last.value, " \t") + " " + strings.Trim(string(line), " \t")
			continue
		}
		name, value, ok := strings.Cut(string(line), ":")
		name = strings.TrimRight(name, " \t")
		if !ok || !isToken(name) {
			return nil, malformed("a header line is not \"name: value\"")
		}
		if len(h) == l.HeaderFields {
			return nil, beyond("header fields", l.HeaderFields)
		}
		h = append(h, field{name, strings.Trim(value, " \t")})
	}
	return h, nil
}

func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || c == ':' {
			return false
		}
	}
	return s != ""
}

// readAt fills b from off as far as src goes.
func readAt(src edi.Source, b []byte, off int64) (int, error) {
	n, err := src.ReadAt(b, off)
	if errors.Is(err, io.EOF) || n == len(b) {
		err = nil
	}
	if err == nil && n < len(b) && off+int64(n) < src.Size() {
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

// delimiter is one boundary line of a multipart body.
type delimiter struct {
	before int64 // where the line break in front of it begins; that break belongs to it
	line   int64 // where its two hyphens begin
	after  int64 // where the next line begins
	final  bool
}

// multipart is a multipart body cut at its delimiters.
type multipart struct {
	delims []delimiter
	closed bool // the last delimiter is the closing one
}

// part is the byte range of one body part, with and without the line break that belongs to the
// delimiter behind it.
type part struct{ from, to, withBreak int64 }

func (m multipart) parts() []part {
	var out []part
	for i := 1; i < len(m.delims); i++ {
		from := m.delims[i-1].after
		out = append(out, part{
			from:      from,
			to:        max(from, m.delims[i].before), // an empty part shares its line break with the delimiter
			withBreak: max(from, m.delims[i].line),
		})
	}
	return out
}

// maxPadding is the most blanks behind a boundary that are looked at (RFC 2046 §5.1.1 allows
// transport padding).
const maxPadding = 256

// splitMultipart finds the delimiter lines of a multipart body in one pass with a fixed buffer.
// It stops behind the closing one. Nothing is required of the preamble and the epilogue.
func splitMultipart(src edi.Source, boundary string, maxParts int) (multipart, error) {
	var m multipart
	if err := checkBoundary(boundary); err != nil {
		return m, err
	}
	pattern := []byte("\n--" + boundary)
	buf := make([]byte, min(64<<10, src.Size()+2*maxPadding))
	// The buffer starts with a line break of its own, since a delimiter may be the first line.
	buf[0] = '\n'
	filled, base := 1, int64(-1) // base is the offset of buf[0] in src
	next := int64(0)
	for {
		n, err := readAt(src, buf[filled:], next)
		if err != nil {
			return m, err
		}
		filled += n
		next += int64(n)
		eof := next >= src.Size()
		from := 0
		for {
			i := bytes.Index(buf[from:filled], pattern)
			if i < 0 {
				// Keep what may be the start of a delimiter, and the CR before it.
				from = max(from, filled-len(pattern)-1)
				break
			}
			at := from + i
			if !eof && filled-at < len(pattern)+maxPadding+4 {
				from = max(at-1, 0)
				break
			}
			if d, ok := readDelimiter(buf[:filled], at, len(pattern), base); ok {
				if len(m.delims) > maxParts {
					return m, beyond("parts", maxParts)
				}
				m.delims = append(m.delims, d)
				if d.final {
					m.closed = true
					return m, nil
				}
			}
			from = at + 1
		}
		if eof {
			return m, nil
		}
		// A delimiter that waits for its line end was kept whole, so this always makes room.
		copy(buf, buf[from:filled])
		base += int64(from)
		filled -= from
	}
}

// readDelimiter reads the delimiter whose line break is at buf[at]; patternLen counts that break,
// the hyphens and the boundary.
func readDelimiter(buf []byte, at, patternLen int, base int64) (delimiter, bool) {
	d := delimiter{before: max(base+int64(at), 0), line: base + int64(at) + 1}
	if at > 0 && buf[at-1] == '\r' {
		d.before--
	}
	rest := buf[at+patternLen:]
	used := 0
	if bytes.HasPrefix(rest, []byte("--")) {
		d.final = true
		used = 2
	}
	for used < len(rest) && (rest[used] == ' ' || rest[used] == '\t') {
		used++
	}
	switch {
	case used > maxPadding:
		return d, false
	case used == len(rest): // the end of the content
	case rest[used] == '\n':
		used++
	case rest[used] == '\r' && used+1 < len(rest) && rest[used+1] == '\n':
		used += 2
	case rest[used] == '\r' && used+1 == len(rest):
		used++
	default:
		return d, false // a longer word that only begins like the boundary
	}
	d.after = base + int64(at+patternLen+used)
	return d, true
}

// checkBoundary is lenient in length, because some senders go beyond the 70 characters of RFC
// 2046 §5.1.1.
func checkBoundary(b string) error {
	if b == "" || len(b) > 200 {
		return malformed("the multipart Content-Type has no usable boundary")
	}
	for i := range len(b) {
		if b[i] < ' ' || b[i] > '~' {
			return malformed("the boundary holds a byte that is not printable ASCII")
		}
	}
	if strings.HasSuffix(b, " ") {
		return malformed("the boundary ends in a blank")
	}
	return nil
}

// firstPart returns the range of the first part as far as src holds it, for a look at its headers.
func firstPart(src edi.Source, boundary string) (edi.Source, bool) {
	m, err := splitMultipart(src, boundary, 1)
	if err != nil && !errors.Is(err, errMIMELimit) || len(m.delims) == 0 || m.delims[0].final {
		return nil, false
	}
	return section(src, m.delims[0].after, src.Size()), true
}

// onlyBlank reports whether a range holds nothing but blanks and line breaks.
func onlyBlank(src edi.Source, from int64) (bool, error) {
	r := section(src, from, src.Size())
	buf := make([]byte, 4<<10)
	for {
		n, err := r.Read(buf)
		if len(bytes.Trim(buf[:n], " \t\r\n")) > 0 {
			return false, nil
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// parseMediaType reads a Content-Type or Content-Disposition: the value in lower case and its
// parameters by name in lower case (RFC 2045 §5.1). Blanks, comments at the end and a missing
// closing quote of the last parameter are forgiven; a parameter that stands twice is not, because
// two readers could take different ones. Continuations of RFC 2231 keep their names.
func parseMediaType(v string) (string, map[string]string, error) {
	items := splitUnquoted(v, ';')
	value := strings.ToLower(strings.Trim(items[0], " \t\r\n"))
	if value == "" {
		return "", map[string]string{}, nil
	}
	if strings.ContainsAny(value, "\" \t,=") {
		return "", nil, malformed("%q is not a media type", printable(value))
	}
	params := make(map[string]string)
	for _, item := range items[1:] {
		name, val, ok := strings.Cut(item, "=")
		name = strings.ToLower(strings.Trim(name, " \t\r\n"))
		if !ok || name == "" {
			continue
		}
		if _, twice := params[name]; twice {
			return "", nil, malformed("the parameter %q stands more than once", printable(name))
		}
		params[name] = unquote(strings.Trim(val, " \t\r\n"))
	}
	return value, params, nil
}

func unquote(s string) string {
	if !strings.HasPrefix(s, `"`) {
		if i := strings.IndexAny(s, " \t"); i >= 0 && strings.HasPrefix(strings.TrimLeft(s[i:], " \t"), "(") {
			return s[:i] // a comment
		}
		return s
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++ // a backslash before anything else is one that a careless sender left in a path
			b.WriteByte(s[i])
		case s[i] == '"':
			return b.String()
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
