package ubl

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/edihub/edihub/internal/edi"
)

// Parser makes trees. It keeps its arrays for the next document; a Parser is for one goroutine at
// a time.
type Parser struct {
	tree     Tree
	l        Limits
	open     []frame
	bindings []scopeBinding
	decls    []attr // namespace declarations of the start tag in hand
	prefixed bool   // an attribute of the start tag in hand has a prefix
}

// frame is an element that is open.
type frame struct {
	node     Node
	nameFrom uint32
	nameEnd  uint32
	content  uint32 // behind the start tag
	bindings int32  // in scope around the element
	dirty    bool   // the content is not a plain span
	text     bool   // text other than white space stands in it
}

// space is a namespace of UBL, or none, or another one.
type space uint8

const (
	noSpace space = iota
	otherSpace
	invoiceSpace
	creditNoteSpace
	extensionSpace
	aggregateSpace
	basicSpace
	instanceSpace
)

const instanceNamespace = "http://www.w3.org/2001/XMLSchema-instance"

const extensionNamespace = "urn:oasis:names:specification:ubl:schema:xsd:CommonExtensionComponents-2"

// scopeBinding is a namespace declaration in scope: spans of prefix and URI.
type scopeBinding struct {
	packed     uint64 // the prefix, if it has at most seven bytes
	prefixFrom uint32
	prefixLen  uint16
	extra      bool // the URI is in Tree.extra
	space      space
	from, to   uint32
}

// Classes of bytes, so that the loops look each byte up once.
const (
	textStop  = 1 << iota // ends a run of plain text
	nameByte              // ASCII that may stand in a name
	valueStop             // ends a run of plain attribute value
	blank
)

var classes = func() (t [256]uint8) {
	for c := range 256 {
		b := byte(c)
		if c < ' ' && b != '\t' && b != '\n' || b == '<' || b == '&' || b == ']' {
			t[c] |= textStop
		}
		if c < ' ' || b == '<' || b == '&' || b == '"' || b == '\'' {
			t[c] |= valueStop
		}
		if b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == ':' || b == '-' || b == '.' {
			t[c] |= nameByte
		}
		if isSpace(b) {
			t[c] |= blank
		}
	}
	return t
}()

// Parse reads a whole document. It returns ErrNotUBL for another root, and *XMLError for XML that
// is not acceptable, with an *edi.LimitError inside where a limit is the reason. The tree belongs
// to the parser until its next call; it refers to doc, which must not be changed meanwhile.
func (p *Parser) Parse(doc []byte, l Limits) (*Tree, error) {
	p.l = l.withDefaults()
	p.l.MaxName = min(p.l.MaxName, math.MaxUint16)
	p.l.MaxAttributes = min(p.l.MaxAttributes, math.MaxUint16)
	p.prefixed = false
	t := &p.tree
	t.src, t.extra = doc, t.extra[:0]
	t.nodes = append(t.nodes[:0], node{})
	t.attrs, t.lines, t.ordinals = t.attrs[:0], t.lines[:0], t.ordinals[:0]
	t.steps = 0
	p.open, p.bindings = p.open[:0], p.bindings[:0]
	if most := min(p.l.MaxBytes, math.MaxUint32/2); int64(len(doc)) > most {
		return nil, p.limit(0, "max_bytes", most)
	}
	if err := p.document(); err != nil {
		return nil, fmt.Errorf("reading UBL: %w", err)
	}
	return t, nil
}

// Release forgets the document, so that a parser that waits for the next one does not hold it.
func (p *Parser) Release() {
	const keep = 1 << 20
	p.tree.src = nil
	if cap(p.tree.extra) > keep {
		p.tree.extra = nil
	}
}

// document reads prolog, root element and what follows.
func (p *Parser) document() error {
	src := p.tree.src
	i, err := p.prolog()
	if err != nil {
		return err
	}
	// What stands behind a bad byte is not looked at, so that the first error is the one told.
	if bad := badUTF8(src); bad >= 0 {
		p.tree.src = src[:bad]
		err := p.elements(i)
		p.tree.src = src
		if err != nil && !isTruncated(err) {
			return err
		}
		if src[bad] == 0xef && bytes.HasPrefix(src[bad:], []byte("\xef\xbf")) {
			return p.fail(bad, "CHARACTER", "the character is not allowed in XML", "remove it")
		}
		return p.fail(bad, "ENCODING", "the bytes here are not UTF-8", "write the document in UTF-8")
	}
	return p.elements(i)
}

// badUTF8 returns the place of the first bytes that are not UTF-8 or that are U+FFFE or U+FFFF,
// else -1.
func badUTF8(b []byte) int {
	for i := 0; i < len(b); {
		for i+8 <= len(b) && binary.LittleEndian.Uint64(b[i:])&0x8080808080808080 == 0 {
			i += 8
		}
		if i == len(b) {
			break
		}
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 || r == 0xfffe || r == 0xffff {
			return i
		}
		i += n
	}
	return -1
}

// elements reads from i to the end of the document.
func (p *Parser) elements(i int) error {
	src := p.tree.src
	for {
		next, err := p.content(i)
		if err != nil {
			return err
		}
		if i = next; i == len(src) {
			break
		}
		// src[i] is a "<".
		if i+1 == len(src) {
			return p.truncated(i + 1)
		}
		switch src[i+1] {
		case '/':
			i, err = p.endTag(i)
		case '!', '?':
			i, err = p.markup(i)
		default:
			i, err = p.startTag(i)
		}
		if err != nil {
			return err
		}
	}
	if len(p.open) > 0 {
		return p.truncated(len(src))
	}
	if len(p.tree.nodes) == 1 {
		return p.fail(len(src), "EMPTY", "the document has no root element", "send an XML document")
	}
	return nil
}

// content passes text up to the next "<" or the end.
func (p *Parser) content(i int) (int, error) {
	src := p.tree.src
	start := i
	for i < len(src) && (src[i] == '\n' || src[i] == ' ' || src[i] == '\t') {
		i++
	}
	if i < len(src) && src[i] == '<' {
		return i, nil
	}
	for {
		for i < len(src) && classes[src[i]]&textStop == 0 {
			i++
		}
		if i == len(src) || src[i] == '<' {
			break
		}
		n, err := p.special(i)
		if err != nil {
			return 0, err
		}
		i += n
	}
	if i-start > p.l.MaxText {
		return 0, p.limit(i, "max_text", int64(p.l.MaxText))
	}
	if len(p.open) > 0 {
		f := &p.open[len(p.open)-1]
		f.text = f.text || !allSpace(src[start:i])
		return i, nil
	}
	for at := start; at < i; at++ {
		if !isSpace(src[at]) {
			return 0, p.fail(at, "OUTSIDE", "text stands outside the root element", "remove it")
		}
	}
	return i, nil
}

func allSpace(b []byte) bool {
	for _, c := range b {
		if !isSpace(c) {
			return false
		}
	}
	return true
}

// special passes something in text that needs a second look, and returns its length.
func (p *Parser) special(i int) (int, error) {
	src := p.tree.src
	switch c := src[i]; {
	case c == ']':
		if bytes.HasPrefix(src[i:], []byte("]]>")) {
			return 0, p.fail(i, "TEXT", "]]> stands in text", "write ]]&gt;")
		}
		return 1, nil
	case c == '\r':
		p.setDirty()
		return 1, nil
	case c == '&':
		_, n := reference(src[i:])
		if n == 0 {
			return 0, p.fail(i, "REFERENCE", "the reference after & is not one of amp, lt, gt, apos, quot or a character number", "write &amp; where an ampersand is meant")
		}
		if len(p.open) == 0 {
			return 0, p.fail(i, "OUTSIDE", "text stands outside the root element", "remove it")
		}
		p.setDirty()
		return n, nil
	}
	return 0, p.control(i)
}

func (p *Parser) setDirty() {
	if len(p.open) > 0 {
		p.open[len(p.open)-1].dirty = true
	}
}

// plain checks characters that stand in no text: comments, instructions, CDATA sections.
func (p *Parser) plain(from, to int) error {
	for i, c := range p.tree.src[from:to] {
		if c < ' ' && !isSpace(c) {
			return p.control(from + i)
		}
	}
	return nil
}

func (p *Parser) control(i int) error {
	return p.fail(i, "CHARACTER", fmt.Sprintf("a control character (byte %d) is not allowed in XML", p.tree.src[i]), "remove it")
}

// endTag closes the innermost element.
func (p *Parser) endTag(i int) (int, error) {
	src := p.tree.src
	n := len(p.open)
	if n > 0 {
		f := &p.open[n-1]
		end := i + 2 + int(f.nameEnd-f.nameFrom)
		if end < len(src) && string(src[i+2:end]) == string(src[f.nameFrom:f.nameEnd]) {
			for end < len(src) && isSpace(src[end]) {
				end++
			}
			if end < len(src) && src[end] == '>' {
				p.close(f, i)
				return end + 1, nil
			}
		}
	}
	if bytes.IndexByte(src[i:], '>') < 0 {
		return 0, p.truncated(len(src))
	}
	return 0, p.fail(i, "END-TAG", "the end tag does not close the element that is open", "close the elements in the order in which they were opened, with the same prefix")
}

// close ends the element of a frame whose content ends at i.
func (p *Parser) close(f *frame, i int) {
	t := &p.tree
	x := &t.nodes[f.node]
	x.end = Node(len(t.nodes))
	x.textEnd = uint32(i)
	switch {
	case x.end > f.node+1:
		if f.text {
			x.flags |= mixedContent
		}
	case f.dirty:
		x.flags |= textInExtra
		x.text = uint32(len(t.extra))
		t.extra = decode(t.extra, t.src[f.content:i])
		x.textEnd = uint32(len(t.extra))
	default:
		x.text = f.content
	}
	if int(f.bindings) < len(p.bindings) {
		p.bindings = p.bindings[:f.bindings]
	}
	p.open = p.open[:len(p.open)-1]
}

// startTag reads a start tag and opens its element.
func (p *Parser) startTag(i int) (int, error) {
	t := &p.tree
	src := t.src
	if len(p.open) == 0 && len(t.nodes) > 1 {
		return 0, p.fail(i, "OUTSIDE", "an element stands after the root element", "send one document in a file")
	}
	from := i + 1
	end := nameEnd(src, from)
	firstAttr, scope := len(t.attrs), len(p.bindings)
	j := end
	if j < len(src) && src[j] != '>' && src[j] != '/' {
		if end == from {
			return 0, p.badName(src[from:], from)
		}
		var err error
		if j, err = p.attributes(j); err != nil {
			return 0, err
		}
	}
	empty := false
	if j < len(src) && src[j] == '/' {
		empty = true
		j++
	}
	if j >= len(src) {
		return 0, p.truncated(len(src))
	}
	if src[j] != '>' {
		return 0, p.badName(nil, j)
	}
	if len(t.nodes) > p.l.MaxElements {
		return 0, p.limit(i, "max_elements", int64(p.l.MaxElements))
	}
	if len(p.open) == p.l.MaxDepth {
		return 0, p.limit(i, "max_depth", int64(p.l.MaxDepth))
	}
	if len(p.decls) > 0 {
		if err := p.declare(); err != nil {
			return 0, err
		}
	}
	kind, err := p.kindOf(from, end)
	if err != nil {
		return 0, err
	}
	if err := p.checkAttributes(firstAttr); err != nil {
		return 0, err
	}
	n := Node(len(t.nodes))
	x := node{kind: kind, offset: uint32(i), nameEnd: uint32(end), attr: uint32(firstAttr), attrs: uint16(len(t.attrs) - firstAttr)}
	if len(p.open) > 0 {
		x.parent = p.open[len(p.open)-1].node
	} else if kind != Invoice && kind != CreditNote {
		return 0, fmt.Errorf("root element %q: %w", src[from:end], ErrNotUBL)
	}
	t.nodes = append(t.nodes, x)
	p.open = append(p.open, frame{node: n, nameFrom: uint32(from), nameEnd: uint32(end), content: uint32(j + 1), bindings: int32(scope)})
	if empty {
		p.close(&p.open[len(p.open)-1], j+1)
	}
	return j + 1, nil
}

// nameEnd returns the end of the bytes from i on that may stand in a name.
func nameEnd(src []byte, i int) int {
	from := i
	for i < len(src) && classes[src[i]]&nameByte != 0 {
		i++
	}
	if i < len(src) && src[i] >= utf8.RuneSelf {
		return from + nameLength(src[from:])
	}
	return i
}

// kindOf says what the element of a name is under the declarations in force. A name that is in
// the table and has a declared prefix needs no further check.
func (p *Parser) kindOf(from, end int) (Kind, error) {
	name := p.tree.src[from:end]
	prefix, local := splitName(name)
	if packed, ok := packPrefix(prefix); ok {
		for i := len(p.bindings) - 1; i >= 0; i-- {
			if b := &p.bindings[i]; b.packed == packed {
				if k := kindNamed(b.space, local); k != Foreign {
					return k, nil
				}
				break
			}
		}
	}
	if err := p.badName(name, from); err != nil {
		return 0, err
	}
	b, ok := p.lookup(prefix)
	if !ok {
		return 0, p.fail(from, "PREFIX", "the prefix of the element is not declared", "declare it with xmlns")
	}
	return kindNamed(b.space, local), nil
}

// splitName splits a name behind its first colon. Nearly all prefixes have three letters.
func splitName(name []byte) (prefix, local []byte) {
	if len(name) > 4 && name[3] == ':' && name[0] != ':' && name[1] != ':' && name[2] != ':' {
		return name[:3], name[4:]
	}
	return split(name)
}

// packPrefix makes a number of a prefix of at most seven bytes; that of the empty one is 0.
func packPrefix(prefix []byte) (packed uint64, ok bool) {
	if len(prefix) > 7 {
		return 0, false
	}
	for _, c := range prefix {
		packed = packed<<8 | uint64(c)
	}
	return packed, true
}

// tableSize is a power of two, well above the number of kinds.
const tableSize = 4096

// kindTable holds the kinds by namespace and local name, in open addressing.
var kindTable = func() (t [tableSize]Kind) {
	if 3*int(kindCount) > tableSize {
		panic("the table of kinds is too small")
	}
	for k := Invoice; k < kindCount; k++ {
		s, local := spaceOfKind(k)
		i := nameHash(s, []byte(local))
		for t[i] != Foreign {
			i = (i + 1) % tableSize
		}
		t[i] = k
	}
	return t
}()

// kindParts are namespace and local name of each kind.
var kindParts = func() (t [kindCount]struct {
	space space
	local string
},
) {
	for k := Invoice; k < kindCount; k++ {
		t[k].space, t[k].local = spaceOfKind(k)
	}
	return t
}()

func spaceOfKind(k Kind) (space, string) {
	prefix, local, _ := strings.Cut(kindNames[k], ":")
	switch prefix {
	case "Invoice":
		return invoiceSpace, prefix
	case "CreditNote":
		return creditNoteSpace, prefix
	case "ext":
		return extensionSpace, local
	case "cac":
		return aggregateSpace, local
	}
	return basicSpace, local
}

// nameHash mixes beginning, end and length of a local name with its namespace.
func nameHash(s space, b []byte) uint32 {
	var x, y uint64
	switch n := len(b); {
	case n >= 8:
		x, y = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		x, y = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		x, y = uint64(b[0])<<8|uint64(b[n/2]), uint64(b[n-1])
	}
	h := (x^uint64(len(b))<<56)*0x9e3779b97f4a7c15 + (y^uint64(s))*0xc2b2ae3d27d4eb4f
	return uint32((h ^ h>>29) * 0x9e3779b97f4a7c15 >> 52)
}

// kindNamed finds the kind of a name.
func kindNamed(s space, local []byte) Kind {
	if s < invoiceSpace || s > basicSpace {
		return Foreign
	}
	for i := nameHash(s, local); ; i = (i + 1) % tableSize {
		k := kindTable[i]
		if k == Foreign || kindParts[k].local == string(local) && kindParts[k].space == s {
			return k
		}
	}
}

// badName checks a name (Namespaces in XML 1.0 §4) and its length.
func (p *Parser) badName(name []byte, at int) error {
	if len(name) > p.l.MaxName {
		return p.limit(at, "max_name", int64(p.l.MaxName))
	}
	i := bytes.IndexByte(name, ':')
	if len(name) == 0 || i == 0 || i == len(name)-1 || nameLength(name) != len(name) ||
		i > 0 && (bytes.IndexByte(name[i+1:], ':') >= 0 || nameLength(name[i+1:]) != len(name)-i-1) {
		return p.fail(at, "NAME", "the name of an element or attribute is malformed", "begin it with a letter, with at most one prefix and colon")
	}
	return nil
}

// fail makes an error at a place.
func (p *Parser) fail(at int, rule, reason, remedy string) error {
	before := p.tree.src[:at]
	return &XMLError{
		Rule: "UBL-XML-" + rule, Line: 1 + bytes.Count(before, []byte{'\n'}), Column: at - bytes.LastIndexByte(before, '\n'),
		Offset: int64(at), Reason: reason, Remedy: remedy,
	}
}

func (p *Parser) truncated(at int) error {
	return p.fail(at, "TRUNCATED", "the document ends before its root element is closed", "send the whole document")
}

func isTruncated(err error) bool {
	e, ok := err.(*XMLError) //nolint:errorlint // our own error, straight from fail
	return ok && (e.Rule == "UBL-XML-TRUNCATED" || e.Rule == "UBL-XML-EMPTY")
}

func (p *Parser) limit(at int, name string, most int64) error {
	err := p.fail(at, "LIMIT", fmt.Sprintf("the document is beyond the limit %s of %d", name, most), "send a smaller document or ask for a higher limit")
	err.(*XMLError).Cause = &edi.LimitError{Limit: name, Max: most, Offset: int64(at)} //nolint:errorlint,forcetypeassert // fail makes nothing else
	return err
}
