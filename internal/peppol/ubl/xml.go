package ubl

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/edihub/edihub/internal/edi"
)

// The limits' defaults and the ones that are not settable.
const (
	defaultMaxBytes      = 256 << 20
	defaultMaxDepth      = 100
	defaultMaxAttributes = 100
	defaultMaxText       = 64 << 20
	defaultMaxElements   = 5_000_000
	defaultMaxName       = 256
	maxTag               = 1 << 20 // bytes of one start tag
	lookAhead            = 64      // more than any reference, CDATA opener or character needs
	xmlBuffer            = 32 << 10
	xmlNamespace         = "http://www.w3.org/XML/1998/namespace"
	xmlnsNamespace       = "http://www.w3.org/2000/xmlns/"
)

// tokenKind tells the tokens of an xmlReader apart.
type tokenKind int

const (
	startToken tokenKind = iota + 1
	endToken
)

// attribute of a start tag with its namespace resolved. The values are valid until the next
// token.
type attribute struct {
	space, local, qname, value []byte
}

// binding is a namespace declaration in scope.
type binding struct {
	prefix string
	uri    []byte
	depth  int
}

// xmlReader is a pull reader of namespace-well-formed XML 1.0 in UTF-8. It refuses document type
// declarations, and with them all entities but the five predefined ones. Memory is bounded by
// the largest tag and by the text that is collected.
type xmlReader struct {
	r    io.Reader
	l    Limits
	buf  []byte
	pos  int
	end  int
	base int64 // place of buf[0]
	err  error

	line      int   // lines before buf[0], from 1
	lineStart int64 // place of the line's first byte

	depth    int
	elements int
	rooted   bool // the root was opened
	empty    bool // the last start tag was an empty element
	names    []byte
	nameEnds []int
	bindings []binding

	space, local []byte // of the last start tag
	attrs        []attribute
	values       []byte // room for attribute values with references

	collect bool // keep the text that follows
	text    []byte
	run     int64 // bytes of the text between two tags
}

func newXMLReader(r io.Reader, l Limits) *xmlReader {
	return &xmlReader{r: r, l: l.withDefaults(), line: 1, buf: make([]byte, xmlBuffer)}
}

func (l Limits) withDefaults() Limits {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.MaxDepth, defaultMaxDepth)
	def(&l.MaxAttributes, defaultMaxAttributes)
	def(&l.MaxText, defaultMaxText)
	def(&l.MaxElements, defaultMaxElements)
	def(&l.MaxName, defaultMaxName)
	if l.MaxBytes <= 0 {
		l.MaxBytes = defaultMaxBytes
	}
	return l
}

// fill reads until n bytes are buffered; it reports whether they are.
func (x *xmlReader) fill(n int) bool {
	if x.end-x.pos >= n {
		return true
	}
	if x.err != nil {
		return false
	}
	x.shift()
	if n > len(x.buf) {
		buf := make([]byte, max(2*len(x.buf), n))
		copy(buf, x.buf[:x.end])
		x.buf = buf
	}
	for empty := 0; x.end < n; {
		m, err := x.r.Read(x.buf[x.end:])
		x.end += m
		if err != nil {
			x.err = err
			return x.end >= n
		}
		if m == 0 {
			if empty++; empty > 100 {
				x.err = io.ErrNoProgress
				return false
			}
		}
	}
	return true
}

// shift drops what was read and counts its lines.
func (x *xmlReader) shift() {
	used := x.buf[:x.pos]
	x.line += bytes.Count(used, []byte{'\n'})
	if i := bytes.LastIndexByte(used, '\n'); i >= 0 {
		x.lineStart = x.base + int64(i) + 1
	}
	copy(x.buf, x.buf[x.pos:x.end])
	x.base += int64(x.pos)
	x.end -= x.pos
	x.pos = 0
}

// fail makes an error at a distance from the read position. A failed read comes first: what
// looks wrong may be what is missing.
func (x *xmlReader) fail(distance int, rule, reason, remedy string) error {
	if x.err != nil && !errors.Is(x.err, io.EOF) {
		return x.err
	}
	at := min(x.pos+max(distance, 0), x.end)
	used := x.buf[:at]
	e := &XMLError{Rule: "UBL-XML-" + rule, Line: x.line + bytes.Count(used, []byte{'\n'}), Offset: x.base + int64(at), Reason: reason, Remedy: remedy}
	start := x.lineStart
	if i := bytes.LastIndexByte(used, '\n'); i >= 0 {
		start = x.base + int64(i) + 1
	}
	e.Column = int(e.Offset-start) + 1
	return e
}

func (x *xmlReader) limit(name string, most int64) error {
	err := x.fail(0, "LIMIT", "the document is beyond the limit "+name+" of "+strconv.FormatInt(most, 10), "send a smaller document or ask for a higher limit")
	var e *XMLError
	if errors.As(err, &e) {
		e.Cause = &edi.LimitError{Limit: name, Max: most, Offset: e.Offset}
	}
	return err
}

// next returns the next start or end tag, or io.EOF behind a whole document. Text on the way is
// checked, and kept while collect is set.
func (x *xmlReader) next() (tokenKind, error) {
	if x.empty {
		x.empty = false
		x.pop()
		return endToken, nil
	}
	x.run = 0
	for {
		if x.base+int64(x.end) > x.l.MaxBytes {
			return 0, x.limit("max_bytes", x.l.MaxBytes)
		}
		if x.base == 0 && x.pos == 0 {
			if err := x.prolog(); err != nil {
				return 0, err
			}
		}
		if err := x.characters(); err != nil {
			return 0, err
		}
		if !x.fill(2) {
			return 0, x.atEnd()
		}
		var err error
		switch x.buf[x.pos+1] {
		case '!':
			err = x.declaration()
		case '?':
			err = x.instruction()
		case '/':
			return endToken, x.endTag()
		default:
			return startToken, x.startTag()
		}
		if err != nil {
			return 0, err
		}
	}
}

// atEnd judges the end of the input.
func (x *xmlReader) atEnd() error {
	if x.err != nil && !errors.Is(x.err, io.EOF) {
		return x.err
	}
	if x.end > x.pos || x.depth > 0 {
		return x.fail(x.end-x.pos, "TRUNCATED", "the document ends before its root element is closed", "send the whole document")
	}
	if !x.rooted {
		return x.fail(0, "EMPTY", "the document has no root element", "send an XML document")
	}
	return io.EOF
}

// prolog checks the encoding and reads the XML declaration.
func (x *xmlReader) prolog() error {
	x.fill(lookAhead)
	b := x.buf[x.pos:x.end]
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		x.pos += 3
		b = b[3:]
	case len(b) > 1 && (b[0] == 0xfe && b[1] == 0xff || b[0] == 0xff && b[1] == 0xfe || b[0] == 0 || b[1] == 0):
		return x.fail(0, "ENCODING", "the document is not encoded in UTF-8", "write it in UTF-8")
	}
	if !bytes.HasPrefix(b, []byte("<?xml")) || len(b) < 6 || !isSpace(b[5]) {
		return nil
	}
	n, err := x.find("?>", maxTag, "XML declaration")
	if err != nil {
		return err
	}
	if rule, reason, remedy := judgeDeclaration(x.buf[x.pos+5 : x.pos+n]); rule != "" {
		return x.fail(0, rule, reason, remedy)
	}
	x.pos += n + 2
	return nil
}

// judgeDeclaration checks version, encoding and standalone, in this order (XML 1.0 §2.8), and
// returns what is wrong.
func judgeDeclaration(b []byte) (rule, reason, remedy string) {
	const (
		badRule, bad, mend = "DECLARATION", "the XML declaration is malformed", `begin the document with <?xml version="1.0" encoding="UTF-8"?>`
	)
	stage := 0
	for {
		rest := bytes.TrimLeft(b, " \t\r\n")
		if len(rest) == 0 {
			break
		}
		if len(rest) == len(b) {
			return badRule, bad, mend
		}
		name, after, ok := bytes.Cut(rest, []byte{'='})
		after = bytes.TrimLeft(after, " \t\r\n")
		if !ok || len(after) < 2 || after[0] != '"' && after[0] != '\'' {
			return badRule, bad, mend
		}
		value, tail, ok := bytes.Cut(after[1:], after[:1])
		if !ok {
			return badRule, bad, mend
		}
		switch string(bytes.TrimRight(name, " \t\r\n")) {
		case "version":
			if stage != 0 || string(value) != "1.0" {
				return badRule, bad, mend
			}
			stage = 1
		case "encoding":
			if stage != 1 {
				return badRule, bad, mend
			}
			if !bytes.EqualFold(value, []byte("UTF-8")) && !bytes.EqualFold(value, []byte("US-ASCII")) {
				return "ENCODING", "the document says that it is not encoded in UTF-8", "write it in UTF-8"
			}
			stage = 2
		case "standalone":
			if stage == 0 || stage == 3 || string(value) != "yes" && string(value) != "no" {
				return badRule, bad, mend
			}
			stage = 3
		default:
			return badRule, bad, mend
		}
		b = tail
	}
	if stage == 0 {
		return badRule, bad, mend
	}
	return "", "", ""
}

// find returns the distance to `what`, which must come within `most` bytes.
func (x *xmlReader) find(what string, most int, of string) (int, error) {
	from := 0
	for {
		if i := bytes.Index(x.buf[x.pos+from:x.end], []byte(what)); i >= 0 {
			return from + i, nil
		}
		have := x.end - x.pos
		if have > most {
			return 0, x.limit("max_text", int64(most))
		}
		from = max(0, have-len(what)+1)
		if !x.fill(have + 1) {
			return 0, x.fail(have, "TRUNCATED", "the document ends inside a "+of, "send the whole document")
		}
	}
}

// declaration handles what begins with "<!".
func (x *xmlReader) declaration() error {
	x.fill(lookAhead)
	b := x.buf[x.pos:x.end]
	switch {
	case bytes.HasPrefix(b, []byte("<!--")):
		x.pos += 4
		n, err := x.find("--", x.l.MaxText, "comment")
		if err != nil {
			return err
		}
		if !x.fill(n+3) || x.buf[x.pos+n+2] != '>' {
			return x.fail(n, "COMMENT", "two hyphens stand inside a comment", "remove the comment or one of the hyphens")
		}
		if err := x.plain(x.buf[x.pos : x.pos+n]); err != nil {
			return err
		}
		x.pos += n + 3
		return nil
	case bytes.HasPrefix(b, []byte("<![CDATA[")):
		if x.depth == 0 {
			return x.fail(0, "OUTSIDE", "a CDATA section stands outside the root element", "remove it")
		}
		x.pos += 9
		n, err := x.find("]]>", x.l.MaxText, "CDATA section")
		if err != nil {
			return err
		}
		if err := x.plain(x.buf[x.pos : x.pos+n]); err != nil {
			return err
		}
		if x.run += int64(n); x.run > int64(x.l.MaxText) {
			return x.limit("max_text", int64(x.l.MaxText))
		}
		if x.collect {
			x.text = append(x.text, x.buf[x.pos:x.pos+n]...)
		}
		x.pos += n + 3
		return nil
	case bytes.HasPrefix(b, []byte("<!DOCTYPE")):
		return x.fail(0, "DTD", "the document has a document type declaration", "remove it: entities and external files are not read")
	}
	return x.fail(0, "MARKUP", "the markup after < is not known", "write &lt; where a less-than sign is meant")
}

// instruction passes a processing instruction.
func (x *xmlReader) instruction() error {
	x.pos += 2
	n, err := x.find("?>", maxTag, "processing instruction")
	if err != nil {
		return err
	}
	b := x.buf[x.pos : x.pos+n]
	name := nameLength(b)
	target := b[:name]
	if name == 0 || bytes.IndexByte(target, ':') >= 0 || name < len(b) && !isSpace(b[name]) {
		return x.fail(0, "INSTRUCTION", "the target of a processing instruction is not a name", "remove the instruction")
	}
	if bytes.EqualFold(target, []byte("xml")) {
		return x.fail(0, "DECLARATION", "an XML declaration stands inside the document", "write it only at the very beginning")
	}
	if err := x.plain(b); err != nil {
		return err
	}
	x.pos += n + 2
	return nil
}

// plain checks the characters of a part of the buffer that holds no markup.
func (x *xmlReader) plain(b []byte) error {
	for i := 0; i < len(b); {
		if b[i] >= ' ' && b[i] < utf8.RuneSelf {
			i++
			continue
		}
		n, err := x.character(b, i)
		if err != nil {
			return err
		}
		i += n
	}
	return nil
}

// character checks the character at b[i], where b begins at the read position.
func (x *xmlReader) character(b []byte, i int) (int, error) {
	c := b[i]
	if c < utf8.RuneSelf {
		if c < ' ' && !isSpace(c) {
			return 0, x.fail(i, "CHARACTER", "a control character (byte "+strconv.Itoa(int(c))+") is not allowed in XML", "remove it")
		}
		return 1, nil
	}
	r, n := utf8.DecodeRune(b[i:])
	if r == utf8.RuneError && n == 1 {
		return 0, x.fail(i, "ENCODING", "the bytes here are not UTF-8", "write the document in UTF-8")
	}
	if r == 0xfffe || r == 0xffff {
		return 0, x.fail(i, "CHARACTER", "the character is not allowed in XML", "remove it")
	}
	return n, nil
}

// plainText marks the bytes that need no second look in text.
var plainText = func() (t [256]bool) {
	for c := range 128 {
		t[c] = c >= ' ' && c != '<' && c != '&' && c != ']' || c == '\t' || c == '\n'
	}
	return t
}()

// characters reads text up to the next tag or the end of the input.
func (x *xmlReader) characters() error {
	for {
		i := bytes.IndexByte(x.buf[x.pos:x.end], '<')
		stop := i
		if i < 0 {
			have := x.end - x.pos
			if x.err == nil && have <= lookAhead {
				x.fill(have + 1)
				if have < x.end-x.pos || x.err == nil {
					continue
				}
			}
			stop = have
			if x.err == nil {
				stop = have - lookAhead
			}
		}
		n, err := x.chunk(stop)
		if err != nil {
			return err
		}
		x.pos += n
		if x.run += int64(n); x.run > int64(x.l.MaxText) {
			return x.limit("max_text", int64(x.l.MaxText))
		}
		if x.base+int64(x.pos) > x.l.MaxBytes {
			return x.limit("max_bytes", x.l.MaxBytes)
		}
		if i >= 0 || x.err != nil && x.pos == x.end {
			return nil
		}
	}
}

// chunk checks text up to `stop` and returns how much was taken: an item that begins before
// `stop` is taken as a whole.
func (x *xmlReader) chunk(stop int) (int, error) {
	b := x.buf[x.pos:x.end]
	i := 0
	for i < stop {
		from := i
		for i < stop && plainText[b[i]] {
			i++
		}
		if err := x.keep(b[from:i], from); err != nil {
			return 0, err
		}
		if i >= stop {
			break
		}
		from = i
		switch b[i] {
		case '&':
			r, n := reference(b[i:])
			if n == 0 {
				return 0, x.fail(i, "REFERENCE", "the reference after & is not one of amp, lt, gt, apos, quot or a character number", "write &amp; where an ampersand is meant")
			}
			i += n
			if x.depth == 0 {
				return 0, x.outside(from)
			}
			if x.collect {
				x.text = utf8.AppendRune(x.text, r)
			}
		case ']':
			if bytes.HasPrefix(b[i:], []byte("]]>")) {
				return 0, x.fail(i, "TEXT", "]]> stands in text", "write ]]&gt;")
			}
			i++
			if err := x.keep(b[from:i], from); err != nil {
				return 0, err
			}
		case '\r': // XML 1.0 §2.11: line ends become one line feed.
			i++
			if x.collect && (i == len(b) || b[i] != '\n') {
				x.text = append(x.text, '\n')
			}
		default:
			n, err := x.character(b, i)
			if err != nil {
				return 0, err
			}
			i += n
			if err := x.keep(b[from:i], from); err != nil {
				return 0, err
			}
		}
	}
	return i, nil
}

func (x *xmlReader) outside(at int) error {
	return x.fail(at, "OUTSIDE", "text stands outside the root element", "remove it")
}

// keep takes checked text: outside the root only white space may stand.
func (x *xmlReader) keep(b []byte, at int) error {
	if x.depth == 0 {
		for i, c := range b {
			if !isSpace(c) {
				return x.outside(at + i)
			}
		}
	}
	if x.collect {
		x.text = append(x.text, b...)
	}
	return nil
}

// reference reads a reference at the beginning of b and returns its character and length; the
// length is 0 when it is none.
func reference(b []byte) (rune, int) {
	end := bytes.IndexByte(b[:min(len(b), lookAhead/2)], ';')
	if end < 2 {
		return 0, 0
	}
	name := b[1:end]
	switch string(name) {
	case "amp":
		return '&', end + 1
	case "lt":
		return '<', end + 1
	case "gt":
		return '>', end + 1
	case "apos":
		return '\'', end + 1
	case "quot":
		return '"', end + 1
	}
	if name[0] != '#' || len(name) < 2 {
		return 0, 0
	}
	digits, radix := name[1:], 10
	if digits[0] == 'x' {
		digits, radix = digits[1:], 16
	}
	if len(digits) == 0 || digits[0] == '+' || digits[0] == '-' {
		return 0, 0
	}
	n, err := strconv.ParseUint(string(digits), radix, 32)
	if err != nil || n > utf8.MaxRune || n >= 0xd800 && n < 0xe000 || n == 0xfffe || n == 0xffff || n < ' ' && n != '\t' && n != '\n' && n != '\r' {
		return 0, 0
	}
	return rune(n), end + 1
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
