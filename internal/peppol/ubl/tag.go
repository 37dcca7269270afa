package ubl

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// tagEnd returns the distance to the ">" of the tag at the read position. Quotes may hold a ">".
func (x *xmlReader) tagEnd() (int, error) {
	quote := byte(0)
	for i := 1; ; i++ {
		if i >= x.end-x.pos && !x.fill(i+1) {
			return 0, x.fail(i, "TRUNCATED", "the document ends inside a tag", "send the whole document")
		}
		if i > maxTag {
			return 0, x.limit("max_tag", maxTag)
		}
		switch c := x.buf[x.pos+i]; {
		case c == '<':
			return 0, x.fail(i, "TAG", "a less-than sign stands inside a tag", "write &lt; or close the tag before it")
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return i, nil
		}
	}
}

// endTag closes the innermost element.
func (x *xmlReader) endTag() error {
	n, err := x.tagEnd()
	if err != nil {
		return err
	}
	name := bytes.TrimRight(x.buf[x.pos+2:x.pos+n], " \t\r\n")
	if x.depth == 0 || string(name) != string(x.names[x.nameStart():]) {
		return x.fail(0, "END-TAG", "the end tag does not close the element that is open", "close the elements in the order in which they were opened, with the same prefix")
	}
	x.pos += n + 1
	x.pop()
	return nil
}

func (x *xmlReader) nameStart() int {
	if len(x.nameEnds) < 2 {
		return 0
	}
	return x.nameEnds[len(x.nameEnds)-2]
}

// pop leaves the innermost element.
func (x *xmlReader) pop() {
	x.names = x.names[:x.nameStart()]
	x.nameEnds = x.nameEnds[:len(x.nameEnds)-1]
	for n := len(x.bindings); n > 0 && x.bindings[n-1].depth == x.depth; n-- {
		x.bindings = x.bindings[:n-1]
	}
	x.depth--
}

// startTag reads a start tag with its attributes and resolves their namespaces.
func (x *xmlReader) startTag() error {
	if x.depth == 0 && x.rooted {
		return x.fail(0, "OUTSIDE", "an element stands after the root element", "send one document in a file")
	}
	n, err := x.tagEnd()
	if err != nil {
		return err
	}
	b := x.buf[x.pos : x.pos+n]
	x.empty = b[len(b)-1] == '/'
	if x.empty {
		b = b[:len(b)-1]
	}
	size := nameLength(b[1:])
	qname := b[1 : 1+size]
	if err := x.checkName(qname, 1); err != nil {
		return err
	}
	if x.elements++; x.elements > x.l.MaxElements {
		return x.limit("max_elements", int64(x.l.MaxElements))
	}
	if x.depth++; x.depth > x.l.MaxDepth {
		return x.limit("max_depth", int64(x.l.MaxDepth))
	}
	x.rooted = true
	if err := x.attributes(b, 1+size); err != nil {
		return err
	}
	if err := x.resolve(qname); err != nil {
		return err
	}
	x.names = append(x.names, qname...)
	x.nameEnds = append(x.nameEnds, len(x.names))
	x.pos += n + 1
	return nil
}

// checkName checks a name against Namespaces in XML 1.0 §4: at most one colon, not at an end.
func (x *xmlReader) checkName(name []byte, at int) error {
	if len(name) > x.l.MaxName {
		return x.limit("max_name", int64(x.l.MaxName))
	}
	i := bytes.IndexByte(name, ':')
	if len(name) == 0 || i == 0 || i == len(name)-1 || i > 0 && (bytes.IndexByte(name[i+1:], ':') >= 0 || nameLength(name[i+1:]) != len(name)-i-1) {
		return x.fail(at, "NAME", "the name of an element or attribute is malformed", "begin it with a letter, with at most one prefix and colon")
	}
	return nil
}

// attributes reads the attributes of a start tag from b[i:] on.
func (x *xmlReader) attributes(b []byte, i int) error {
	x.attrs = x.attrs[:0]
	x.values = x.values[:0]
	for {
		from := i
		for i < len(b) && isSpace(b[i]) {
			i++
		}
		if i == len(b) {
			return nil
		}
		if i == from {
			return x.fail(i, "TAG", "something stands behind a name or value without a blank", "separate attributes by blanks")
		}
		size := nameLength(b[i:])
		name := b[i : i+size]
		if err := x.checkName(name, i); err != nil {
			return err
		}
		at := i
		for i += size; i < len(b) && isSpace(b[i]); i++ {
		}
		if i == len(b) || b[i] != '=' {
			return x.fail(at, "ATTRIBUTE", "the attribute has no value", `write name="value"`)
		}
		for i++; i < len(b) && isSpace(b[i]); i++ {
		}
		if i == len(b) || b[i] != '"' && b[i] != '\'' {
			return x.fail(at, "ATTRIBUTE", "the value of the attribute has no quotes", `write name="value"`)
		}
		stop := bytes.IndexByte(b[i+1:], b[i])
		if stop < 0 {
			return x.fail(at, "ATTRIBUTE", "the value of the attribute has no closing quote", `write name="value"`)
		}
		stop += i + 1
		value, err := x.attributeValue(b, i+1, stop)
		if err != nil {
			return err
		}
		if len(x.attrs) == x.l.MaxAttributes {
			return x.limit("max_attributes", int64(x.l.MaxAttributes))
		}
		x.attrs = append(x.attrs, attribute{qname: name, value: value})
		i = stop + 1
	}
}

// attributeValue checks and normalises the value b[from:to] (XML 1.0 §3.3.3).
func (x *xmlReader) attributeValue(b []byte, from, to int) ([]byte, error) {
	simple := true
	for _, c := range b[from:to] {
		if c < ' ' || c == '&' || c >= utf8.RuneSelf {
			simple = false
			break
		}
	}
	if simple {
		return b[from:to], nil
	}
	// A value that has grown before may move: the ones taken keep the old room.
	start := len(x.values)
	for i := from; i < to; {
		switch c := b[i]; {
		case c == '&':
			r, n := reference(b[i:to])
			if n == 0 {
				return nil, x.fail(i, "REFERENCE", "the reference after & is not one of amp, lt, gt, apos, quot or a character number", "write &amp; where an ampersand is meant")
			}
			x.values = utf8.AppendRune(x.values, r)
			i += n
		case isSpace(c):
			if c == '\r' && i+1 < to && b[i+1] == '\n' {
				i++
			}
			x.values = append(x.values, ' ')
			i++
		default:
			n, err := x.character(b[:to], i)
			if err != nil {
				return nil, err
			}
			x.values = append(x.values, b[i:i+n]...)
			i += n
		}
	}
	return x.values[start:len(x.values):len(x.values)], nil
}

// resolve applies the namespace declarations of the tag, then resolves element and attributes
// (Namespaces in XML 1.0 §2, §5, §6.3).
func (x *xmlReader) resolve(qname []byte) error {
	for _, a := range x.attrs {
		if err := x.declare(a); err != nil {
			return err
		}
	}
	prefix, local := split(qname)
	space, ok := x.lookup(prefix)
	if !ok || string(prefix) == "xmlns" {
		return x.fail(1, "PREFIX", "the prefix of the element is not declared", "declare it with xmlns")
	}
	x.space, x.local = space, local
	for i := range x.attrs {
		a := &x.attrs[i]
		prefix, a.local = split(a.qname)
		if len(prefix) > 0 {
			if a.space, ok = x.lookup(prefix); !ok {
				return x.fail(1, "PREFIX", "the prefix of the attribute "+string(a.qname)+" is not declared", "declare it with xmlns")
			}
		}
		for j := range i {
			if o := &x.attrs[j]; bytes.Equal(o.local, a.local) && bytes.Equal(o.space, a.space) && (len(a.space) > 0 || bytes.Equal(o.qname, a.qname)) {
				return x.fail(1, "DUPLICATE-ATTRIBUTE", "the attribute "+string(a.qname)+" is given twice", "remove one of them")
			}
		}
	}
	return nil
}

// declare takes a namespace declaration; other attributes are left alone.
func (x *xmlReader) declare(a attribute) error {
	prefix, local := split(a.qname)
	name := ""
	switch {
	case string(a.qname) == "xmlns":
	case string(prefix) == "xmlns":
		name = string(local)
	default:
		return nil
	}
	uri := string(a.value)
	if name == "xmlns" || (name == "xml") != (uri == xmlNamespace) || uri == xmlnsNamespace || name != "" && uri == "" {
		return x.fail(1, "NAMESPACE", "the namespace declaration "+string(a.qname)+" is not allowed", "bind a prefix of your own to a namespace of your own")
	}
	if n := len(x.bindings); n >= x.l.MaxAttributes*4 {
		return x.limit("max_namespaces", int64(x.l.MaxAttributes*4))
	}
	x.bindings = append(x.bindings, binding{prefix: name, uri: []byte(uri), depth: x.depth})
	return nil
}

// lookup resolves a prefix; the empty one without a declaration is no namespace.
func (x *xmlReader) lookup(prefix []byte) ([]byte, bool) {
	for _, v := range slices.Backward(x.bindings) {
		if v.prefix == string(prefix) {
			return v.uri, true
		}
	}
	switch string(prefix) {
	case "":
		return nil, true
	case "xml":
		return []byte(xmlNamespace), true
	case "xmlns":
		return []byte(xmlnsNamespace), true
	}
	return nil, false
}

func split(qname []byte) (prefix, local []byte) {
	if before, after, ok := bytes.Cut(qname, []byte{':'}); ok {
		return before, after
	}
	return nil, qname
}

// nameLength is the length of the Name that b begins with (XML 1.0 §2.3, fifth edition).
func nameLength(b []byte) int {
	i := 0
	for i < len(b) {
		c := b[i]
		if c < utf8.RuneSelf {
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == ':' || i > 0 && (c >= '0' && c <= '9' || c == '-' || c == '.') {
				i++
				continue
			}
			return i
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 || !nameRune(r, i == 0) {
			return i
		}
		i += n
	}
	return i
}

// nameRunes are the ranges of NameStartChar above ASCII, and then those only inside a name.
var nameRunes = [][2]rune{
	{0xc0, 0xd6}, {0xd8, 0xf6}, {0xf8, 0x2ff}, {0x370, 0x37d}, {0x37f, 0x1fff}, {0x200c, 0x200d}, {0x2070, 0x218f},
	{0x2c00, 0x2fef}, {0x3001, 0xd7ff}, {0xf900, 0xfdcf}, {0xfdf0, 0xfffd}, {0x10000, 0xeffff},
	{0xb7, 0xb7}, {0x300, 0x36f}, {0x203f, 0x2040},
}

func nameRune(r rune, first bool) bool {
	const inside = 3
	list := nameRunes
	if first {
		list = list[:len(list)-inside]
	}
	for _, span := range list {
		if r >= span[0] && r <= span[1] {
			return true
		}
	}
	return false
}
