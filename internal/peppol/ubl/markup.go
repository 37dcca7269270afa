package ubl

import (
	"bytes"
	"unicode/utf8"
)

// prolog checks the encoding, passes byte order mark and XML declaration, and returns the place
// behind them.
func (p *Parser) prolog() (int, error) {
	b := p.tree.src
	i := 0
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		i = 3
	case len(b) > 1 && (b[0] == 0xfe && b[1] == 0xff || b[0] == 0xff && b[1] == 0xfe || b[0] == 0 || b[1] == 0):
		return 0, p.fail(0, "ENCODING", "the document is not encoded in UTF-8", "write it in UTF-8")
	}
	if !bytes.HasPrefix(b[i:], []byte("<?xml")) || len(b) < i+6 || !isSpace(b[i+5]) {
		return i, nil
	}
	n := bytes.Index(b[i:], []byte("?>"))
	if n < 0 {
		return 0, p.truncated(len(b))
	}
	if rule, reason, remedy := judgeDeclaration(b[i+5 : i+n]); rule != "" {
		return 0, p.fail(i, rule, reason, remedy)
	}
	return i + n + 2, nil
}

// markup passes a comment, CDATA section or processing instruction at i.
func (p *Parser) markup(i int) (int, error) {
	src := p.tree.src
	switch b := src[i:]; {
	case bytes.HasPrefix(b, []byte("<!--")):
		return p.comment(i)
	case bytes.HasPrefix(b, []byte("<![CDATA[")):
		return p.section(i)
	case b[1] == '?':
		return p.instruction(i)
	case bytes.HasPrefix(b, []byte("<!DOCTYPE")):
		return 0, p.fail(i, "DTD", "the document has a document type declaration", "remove it: entities and external files are not read")
	case len(b) < len("<![CDATA[") && bytes.IndexByte(b, '>') < 0:
		return 0, p.truncated(len(src))
	}
	return 0, p.fail(i, "MARKUP", "the markup after < is not known", "write &lt; where a less-than sign is meant")
}

func (p *Parser) comment(i int) (int, error) {
	src := p.tree.src
	n := bytes.Index(src[i+4:], []byte("--"))
	if n < 0 || i+4+n+2 == len(src) {
		return 0, p.truncated(len(src))
	}
	end := i + 4 + n
	if src[end+2] != '>' {
		return 0, p.fail(end, "COMMENT", "two hyphens stand inside a comment", "remove the comment or one of the hyphens")
	}
	if n > p.l.MaxText {
		return 0, p.limit(end, "max_text", int64(p.l.MaxText))
	}
	p.setDirty()
	return end + 3, p.plain(i+4, end)
}

func (p *Parser) section(i int) (int, error) {
	src := p.tree.src
	if len(p.open) == 0 {
		return 0, p.fail(i, "OUTSIDE", "a CDATA section stands outside the root element", "remove it")
	}
	n := bytes.Index(src[i+9:], []byte("]]>"))
	if n < 0 {
		return 0, p.truncated(len(src))
	}
	end := i + 9 + n
	if n > p.l.MaxText {
		return 0, p.limit(end, "max_text", int64(p.l.MaxText))
	}
	f := &p.open[len(p.open)-1]
	f.dirty = true
	f.text = f.text || !allSpace(src[i+9:end])
	return end + 3, p.plain(i+9, end)
}

func (p *Parser) instruction(i int) (int, error) {
	src := p.tree.src
	n := bytes.Index(src[i+2:], []byte("?>"))
	if n < 0 {
		return 0, p.truncated(len(src))
	}
	if n > maxTag {
		return 0, p.limit(i, "max_text", maxTag)
	}
	b := src[i+2 : i+2+n]
	size := nameLength(b)
	target := b[:size]
	if size == 0 || bytes.IndexByte(target, ':') >= 0 || size < len(b) && !isSpace(b[size]) {
		return 0, p.fail(i, "INSTRUCTION", "the target of a processing instruction is not a name", "remove the instruction")
	}
	if bytes.EqualFold(target, []byte("xml")) {
		return 0, p.fail(i, "DECLARATION", "an XML declaration stands inside the document", "write it only at the very beginning")
	}
	p.setDirty()
	return i + 2 + n + 2, p.plain(i+2, i+2+n)
}

// decode appends the character data of checked content without child elements: references
// resolved, CDATA sections unwrapped, comments and instructions left out, line ends normalised
// (XML 1.0 §2.11).
func decode(out, b []byte) []byte {
	for i := 0; i < len(b); {
		from := i
		for i < len(b) && b[i] != '&' && b[i] != '<' && b[i] != '\r' {
			i++
		}
		out = append(out, b[from:i]...)
		if i == len(b) {
			break
		}
		switch b[i] {
		case '&':
			r, n := reference(b[i:])
			out = utf8.AppendRune(out, r)
			i += n
		case '\r':
			if i++; i == len(b) || b[i] != '\n' {
				out = append(out, '\n')
			}
		default:
			n := markupLength(b[i:])
			if bytes.HasPrefix(b[i:], []byte("<![CDATA[")) {
				out = appendLines(out, b[i+9:i+n-3])
			}
			i += n
		}
	}
	return out
}

// appendLines appends text with its line ends normalised.
func appendLines(out, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, '\r')
		if i < 0 {
			return append(out, b...)
		}
		out = append(out, b[:i]...)
		if b = b[i+1:]; len(b) == 0 || b[0] != '\n' {
			out = append(out, '\n')
		}
	}
}

// markupLength is the length of the comment, CDATA section or instruction that b begins with.
func markupLength(b []byte) int {
	opener, closer := "<?", "?>"
	switch {
	case bytes.HasPrefix(b, []byte("<!--")):
		opener, closer = "<!--", "-->"
	case bytes.HasPrefix(b, []byte("<![CDATA[")):
		opener, closer = "<![CDATA[", "]]>"
	}
	return len(opener) + bytes.Index(b[len(opener):], []byte(closer)) + len(closer)
}

// tagLength is the length of the checked tag that b begins with.
func tagLength(b []byte) int {
	for i := 1; ; i++ {
		switch c := b[i]; c {
		case '"', '\'':
			i += 1 + bytes.IndexByte(b[i+1:], c)
		case '>':
			return i + 1
		}
	}
}
