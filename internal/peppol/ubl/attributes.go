package ubl

import (
	"bytes"
	"math"
	"unicode/utf8"
)

// attributes reads the attributes of a start tag from i on and returns the place of its ">" or
// "/". Namespace declarations go to p.decls, the others into the tree.
func (p *Parser) attributes(i int) (int, error) {
	t := &p.tree
	src := t.src
	p.decls, p.prefixed = p.decls[:0], false
	first := len(t.attrs)
	for {
		at := i
		for i < len(src) && classes[src[i]]&blank != 0 {
			i++
		}
		if i == len(src) {
			return 0, p.truncated(i)
		}
		if src[i] == '>' || src[i] == '/' {
			return i, nil
		}
		if i == at {
			return 0, p.fail(i, "TAG", "something stands behind a name or value without a blank", "separate attributes by blanks")
		}
		a := attr{nameFrom: uint32(i)}
		end := nameEnd(src, i)
		if a.name = attrNamed(src[i:end]); a.name == ForeignAttr {
			if src[i] == '<' {
				return 0, p.fail(i, "TAG", "a less-than sign stands inside a tag", "write &lt; or close the tag before it")
			}
			if err := p.badName(src[i:end], i); err != nil {
				return 0, err
			}
		}
		a.nameLen = uint16(min(end-i, math.MaxUint16))
		value, err := p.equals(i, end)
		if err != nil {
			return 0, err
		}
		if i, err = p.value(value, &a); err != nil {
			return 0, err
		}
		if len(t.attrs)-first+len(p.decls) == p.l.MaxAttributes {
			return 0, p.limit(i, "max_attributes", int64(p.l.MaxAttributes))
		}
		if a.name == ForeignAttr && p.isDeclaration(&a) {
			p.decls = append(p.decls, a)
		} else {
			t.attrs = append(t.attrs, a)
		}
	}
}

// equals passes the equals sign behind an attribute's name and returns the place of the quote.
func (p *Parser) equals(name, i int) (int, error) {
	src := p.tree.src
	for i < len(src) && isSpace(src[i]) {
		i++
	}
	if i == len(src) {
		return 0, p.truncated(i)
	}
	if src[i] != '=' {
		return 0, p.fail(name, "ATTRIBUTE", "the attribute has no value", `write name="value"`)
	}
	for i++; i < len(src) && isSpace(src[i]); i++ {
	}
	if i == len(src) {
		return 0, p.truncated(i)
	}
	if src[i] != '"' && src[i] != '\'' {
		return 0, p.fail(name, "ATTRIBUTE", "the value of the attribute has no quotes", `write name="value"`)
	}
	return i, nil
}

// value reads the quoted value at i into a and returns the place behind it. Values with
// references or white space other than blanks are normalised (XML 1.0 §3.3.3).
func (p *Parser) value(i int, a *attr) (int, error) {
	src := p.tree.src
	quote := src[i]
	i++
	from, plain := i, true
	for {
		for i < len(src) && classes[src[i]]&valueStop == 0 {
			i++
		}
		if i == len(src) {
			return 0, p.truncated(i)
		}
		switch c := src[i]; {
		case c == quote:
			if i-from > maxTag {
				return 0, p.limit(i, "max_tag", maxTag)
			}
			a.from, a.to = uint32(from), uint32(i)
			if !plain {
				a.extra = true
				a.from = uint32(len(p.tree.extra))
				p.tree.extra = normalise(p.tree.extra, src[from:i])
				a.to = uint32(len(p.tree.extra))
			}
			return i + 1, nil
		case c == '"' || c == '\'':
			i++
		case c == '<':
			return 0, p.fail(i, "TAG", "a less-than sign stands inside a tag", "write &lt; or close the tag before it")
		case c == '&':
			_, n := reference(src[i:])
			if n == 0 {
				return 0, p.fail(i, "REFERENCE", "the reference after & is not one of amp, lt, gt, apos, quot or a character number", "write &amp; where an ampersand is meant")
			}
			plain = false
			i += n
		case isSpace(c):
			plain = false
			i++
		default:
			return 0, p.control(i)
		}
	}
}

// normalise appends a checked attribute value.
func normalise(out, b []byte) []byte {
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '&':
			r, n := reference(b[i:])
			out = utf8.AppendRune(out, r)
			i += n
		case isSpace(c):
			if c == '\r' && i+1 < len(b) && b[i+1] == '\n' {
				i++
			}
			out = append(out, ' ')
			i++
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

// attrNamed says what an attribute of a name is.
func attrNamed(name []byte) AttrName {
	if len(name) < len("uri") || len(name) > len("unitCodeListAgencyIdentifier") {
		return ForeignAttr
	}
	switch string(name) {
	case "currencyID":
		return CurrencyID
	case "schemeID":
		return SchemeID
	case "unitCode":
		return UnitCode
	case "listID":
		return ListID
	case "name":
		return NameAttr
	case "mimeCode":
		return MimeCode
	case "filename":
		return Filename
	case "listVersionID":
		return ListVersionID
	}
	for a := CharacterSetCode; a < SchemaInstance; a++ {
		if attrNames[a] == string(name) {
			return a
		}
	}
	return ForeignAttr
}

func (p *Parser) attrText(a *attr) []byte {
	if a.extra {
		return p.tree.extra[a.from:a.to]
	}
	return p.tree.src[a.from:a.to]
}

func (p *Parser) attrRaw(a *attr) []byte {
	return p.tree.src[a.nameFrom : a.nameFrom+uint32(a.nameLen)]
}

// isDeclaration tells namespace declarations, and notes prefixes.
func (p *Parser) isDeclaration(a *attr) bool {
	raw := p.attrRaw(a)
	if string(raw) == "xmlns" {
		return true
	}
	prefix, _ := split(raw)
	if prefix != nil {
		p.prefixed = true
	}
	return string(prefix) == "xmlns"
}

// declare takes the namespace declarations of the start tag (Namespaces in XML 1.0 §2, §5).
func (p *Parser) declare() error {
	scope := len(p.bindings)
	for i := range p.decls {
		a := &p.decls[i]
		raw, uri := p.attrRaw(a), p.attrText(a)
		_, name := split(raw)
		if string(raw) == "xmlns" {
			name = nil
		}
		at := int(a.nameFrom)
		if string(name) == "xmlns" || (string(name) == "xml") != (string(uri) == xmlNamespace) || string(uri) == xmlnsNamespace || name != nil && len(uri) == 0 {
			return p.fail(at, "NAMESPACE", "the namespace declaration "+string(raw)+" is not allowed", "bind a prefix of your own to a namespace of your own")
		}
		b := scopeBinding{prefixFrom: uint32(at + len(raw) - len(name)), prefixLen: uint16(len(name)), extra: a.extra, from: a.from, to: a.to, space: spaceOf(uri)}
		var ok bool
		if b.packed, ok = packPrefix(name); !ok {
			b.packed = math.MaxUint64 // no packed prefix is as large
		}
		for _, other := range p.bindings[scope:] {
			if bytes.Equal(p.prefixOf(other), name) {
				return p.fail(at, "DUPLICATE-ATTRIBUTE", "the attribute "+string(raw)+" is given twice", "remove one of them")
			}
		}
		if n := p.l.MaxAttributes * 4; len(p.bindings) >= n {
			return p.limit(at, "max_namespaces", int64(n))
		}
		p.bindings = append(p.bindings, b)
	}
	p.decls = p.decls[:0]
	return nil
}

func spaceOf(uri []byte) space {
	switch string(uri) {
	case "":
		return noSpace
	case invoiceNamespace:
		return invoiceSpace
	case creditNoteNamespace:
		return creditNoteSpace
	case extensionNamespace:
		return extensionSpace
	case aggregateNamespace:
		return aggregateSpace
	case basicNamespace:
		return basicSpace
	case instanceNamespace:
		return instanceSpace
	}
	return otherSpace
}

func (p *Parser) prefixOf(b scopeBinding) []byte {
	return p.tree.src[b.prefixFrom : b.prefixFrom+uint32(b.prefixLen)]
}

func (p *Parser) uriOf(b scopeBinding) []byte {
	if b.extra {
		return p.tree.extra[b.from:b.to]
	}
	return p.tree.src[b.from:b.to]
}

// lookup resolves a prefix; the empty one without a declaration is no namespace.
func (p *Parser) lookup(prefix []byte) (scopeBinding, bool) {
	for i := len(p.bindings) - 1; i >= 0; i-- {
		if b := p.bindings[i]; bytes.Equal(p.prefixOf(b), prefix) {
			return b, true
		}
	}
	switch string(prefix) {
	case "":
		return scopeBinding{space: noSpace}, true
	case "xml":
		return scopeBinding{space: otherSpace}, true
	}
	return scopeBinding{}, false
}

// checkAttributes resolves the prefixes of attributes and looks for one that is given twice
// (Namespaces in XML 1.0 §6.3).
func (p *Parser) checkAttributes(first int) error {
	attrs := p.tree.attrs[first:]
	if len(attrs) < 2 && !p.prefixed {
		return nil
	}
	var seen uint64
	instance := false
	for i := range attrs {
		a := &attrs[i]
		if a.name != ForeignAttr {
			if seen&(1<<a.name) != 0 {
				return p.twice(a)
			}
			seen |= 1 << a.name
			continue
		}
		prefix, local := split(p.attrRaw(a))
		var uri []byte
		if prefix != nil {
			b, ok := p.lookup(prefix)
			if !ok {
				return p.fail(int(a.nameFrom), "PREFIX", "the prefix of the attribute "+string(p.attrRaw(a))+" is not declared", "declare it with xmlns")
			}
			uri = p.uriOf(b)
			instance = instance || b.space == instanceSpace
			if string(prefix) == "xml" {
				uri = []byte(xmlNamespace)
			}
		}
		for j := range i {
			if o := &attrs[j]; o.name == ForeignAttr && p.same(o, uri, local) {
				return p.twice(a)
			}
		}
	}
	if instance {
		p.markInstance(attrs)
	}
	return nil
}

// markInstance gives the attributes of the namespace of schema instances their name.
func (p *Parser) markInstance(attrs []attr) {
	for i := range attrs {
		if prefix, _ := split(p.attrRaw(&attrs[i])); prefix != nil {
			if b, _ := p.lookup(prefix); b.space == instanceSpace {
				attrs[i].name = SchemaInstance
			}
		}
	}
}

// same reports whether an attribute has a namespace and local name.
func (p *Parser) same(o *attr, uri, local []byte) bool {
	prefix, name := split(p.attrRaw(o))
	if !bytes.Equal(name, local) {
		return false
	}
	if prefix == nil {
		return uri == nil
	}
	if string(prefix) == "xml" {
		return string(uri) == xmlNamespace
	}
	b, _ := p.lookup(prefix)
	return uri != nil && bytes.Equal(p.uriOf(b), uri)
}

func (p *Parser) twice(a *attr) error {
	return p.fail(int(a.nameFrom), "DUPLICATE-ATTRIBUTE", "the attribute "+string(p.attrRaw(a))+" is given twice", "remove one of them")
}
