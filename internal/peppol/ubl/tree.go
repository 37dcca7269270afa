package ubl

import (
	"bytes"
	"strconv"
	"unsafe"
)

// Kind says what an element is: one of the constants, or Foreign.
type Kind uint16

// Foreign is the kind of every element that UBL 2.1 does not know in an Invoice or CreditNote.
const Foreign Kind = 0

// String returns the name with the usual prefix, as locations show it: "cac:InvoiceLine".
func (k Kind) String() string {
	if k < kindCount && k != Foreign {
		return kindNames[k]
	}
	return "foreign"
}

// AttrName says what an attribute is: one of the constants, or ForeignAttr.
type AttrName uint8

// The attributes of UBL 2.1; they have no namespace.
const (
	ForeignAttr AttrName = iota // every other attribute
	CharacterSetCode
	CurrencyCodeListVersionID
	CurrencyID
	EncodingCode
	Filename
	Format
	LanguageID
	LanguageLocaleID
	ListAgencyID
	ListAgencyName
	ListID
	ListName
	ListSchemeURI
	ListURI
	ListVersionID
	MimeCode
	NameAttr
	SchemeAgencyID
	SchemeAgencyName
	SchemeDataURI
	SchemeID
	SchemeName
	SchemeURI
	SchemeVersionID
	UnitCode
	UnitCodeListAgencyID
	UnitCodeListAgencyIdentifier // not of UBL, but rules speak of it
	UnitCodeListAgencyName
	UnitCodeListID
	UnitCodeListIdentifier // not of UBL, but rules speak of it
	UnitCodeListVersionID
	URI
	SchemaInstance // every attribute of the namespace of schema instances, such as xsi:schemaLocation

	attrCount
)

var attrNames = [attrCount]string{
	CharacterSetCode: "characterSetCode", CurrencyCodeListVersionID: "currencyCodeListVersionID", CurrencyID: "currencyID",
	EncodingCode: "encodingCode", Filename: "filename", Format: "format", LanguageID: "languageID", LanguageLocaleID: "languageLocaleID",
	ListAgencyID: "listAgencyID", ListAgencyName: "listAgencyName", ListID: "listID", ListName: "listName", ListSchemeURI: "listSchemeURI",
	ListURI: "listURI", ListVersionID: "listVersionID", MimeCode: "mimeCode", NameAttr: "name", SchemeAgencyID: "schemeAgencyID",
	SchemeAgencyName: "schemeAgencyName", SchemeDataURI: "schemeDataURI", SchemeID: "schemeID", SchemeName: "schemeName",
	SchemeURI: "schemeURI", SchemeVersionID: "schemeVersionID", UnitCode: "unitCode", UnitCodeListAgencyID: "unitCodeListAgencyID",
	UnitCodeListAgencyIdentifier: "unitCodeListAgencyIdentifier", UnitCodeListAgencyName: "unitCodeListAgencyName",
	UnitCodeListID: "unitCodeListID", UnitCodeListIdentifier: "unitCodeListIdentifier", UnitCodeListVersionID: "unitCodeListVersionID", URI: "uri",
	SchemaInstance: "xsi:*",
}

// String returns the name of the attribute.
func (a AttrName) String() string {
	if a < attrCount && a != ForeignAttr {
		return attrNames[a]
	}
	return "foreign"
}

// Node is an element of a Tree: its place in document order, from 1. 0 is no element.
type Node int32

// None is no element.
const None Node = 0

// Root is the document element.
const Root Node = 1

// Flags of a node.
const (
	textInExtra  = 1 << iota // the text is in Tree.extra, because it is not a span of the document
	mixedContent             // text stands beside child elements
)

// node is an element in the arena. Its descendants follow it directly.
type node struct {
	kind    Kind
	attrs   uint16
	flags   uint8
	parent  Node
	end     Node   // the first node behind the last descendant
	offset  uint32 // of the "<"
	nameEnd uint32
	text    uint32 // content of an element without children: a span of the document or of extra
	textEnd uint32 // with children: the place of the end tag
	attr    uint32 // index of the first attribute
}

// attr is an attribute in the arena.
type attr struct {
	name     AttrName
	extra    bool // the value is in Tree.extra
	nameLen  uint16
	nameFrom uint32
	from, to uint32
}

// Tree is a document. The strings that it hands out are parts of the document's bytes: they are
// valid until Parser reads the next document and as long as the bytes are not changed.
type Tree struct {
	src   []byte
	extra []byte // texts that had references, CDATA sections, comments or carriage returns
	nodes []node // nodes[0] is none
	attrs []attr

	lines    []uint32 // line feeds before each block of the document; made when a line is asked for
	steps    int      // over siblings, for the paths asked for until now
	ordinals []int32  // position among the siblings of one name; made when steps are too many
}

// lineBlock is the distance of the entries of Tree.lines.
const lineBlock = 4096

// Len returns the number of nodes and 1: the nodes are 1 … Len-1 in document order.
func (t *Tree) Len() Node { return Node(len(t.nodes)) }

// Kind returns what an element is.
func (t *Tree) Kind(n Node) Kind { return t.nodes[n].kind }

// Parent returns the parent, None for the root.
func (t *Tree) Parent(n Node) Node { return t.nodes[n].parent }

// End returns the first node behind the descendants of n: the descendants are n+1 … End-1.
func (t *Tree) End(n Node) Node { return t.nodes[n].end }

// First returns the first child element or None.
func (t *Tree) First(n Node) Node {
	if t.nodes[n].end > n+1 {
		return n + 1
	}
	return None
}

// Next returns the next sibling element or None.
func (t *Tree) Next(n Node) Node {
	if e := t.nodes[n].end; e < t.nodes[t.nodes[n].parent].end {
		return e
	}
	return None
}

// Child returns the first child of a kind or None.
func (t *Tree) Child(n Node, k Kind) Node {
	for c, end := n+1, t.nodes[n].end; c < end; c = t.nodes[c].end {
		if t.nodes[c].kind == k {
			return c
		}
	}
	return None
}

// Count returns the number of children of a kind.
func (t *Tree) Count(n Node, k Kind) int {
	count := 0
	for c, end := n+1, t.nodes[n].end; c < end; c = t.nodes[c].end {
		if t.nodes[c].kind == k {
			count++
		}
	}
	return count
}

// Within reports whether an ancestor of n is of the kind.
func (t *Tree) Within(n Node, k Kind) bool {
	for n = t.nodes[n].parent; n != None; n = t.nodes[n].parent {
		if t.nodes[n].kind == k {
			return true
		}
	}
	return false
}

// Mixed reports whether text other than white space stands beside the children of n.
func (t *Tree) Mixed(n Node) bool { return t.nodes[n].flags&mixedContent != 0 }

// Text returns the string value: all text in the element and below it, as it stands.
func (t *Tree) Text(n Node) string {
	x := &t.nodes[n]
	switch {
	case x.end > n+1:
		return t.deepText(n)
	case x.flags&textInExtra != 0:
		return view(t.extra[x.text:x.textEnd])
	}
	return view(t.src[x.text:x.textEnd])
}

// deepText puts the texts below an element with children together. Rules ask for it only where
// such an element is not allowed to have children.
func (t *Tree) deepText(n Node) string {
	var out []byte
	i := int(t.nodes[n].offset)
	from, last := i, int(t.nodes[n].textEnd)
	for i < last {
		switch {
		case t.src[i] != '<':
			i++
		case t.src[i+1] == '!' || t.src[i+1] == '?':
			i += markupLength(t.src[i:])
		default:
			out = decode(out, t.src[from:i])
			i += tagLength(t.src[i:])
			from = i
		}
	}
	return view(decode(out, t.src[from:last]))
}

// Attr returns the value of an attribute and whether it is there.
func (t *Tree) Attr(n Node, name AttrName) (string, bool) {
	x := &t.nodes[n]
	for i := range t.attrs[x.attr : x.attr+uint32(x.attrs)] {
		if a := &t.attrs[x.attr+uint32(i)]; a.name == name {
			return t.attrValue(a), true
		}
	}
	return "", false
}

// Attrs returns the number of attributes, namespace declarations apart.
func (t *Tree) Attrs(n Node) int { return int(t.nodes[n].attrs) }

// AttrAt returns the i-th attribute, from 0: what it is, its name as it stands, and its value.
func (t *Tree) AttrAt(n Node, i int) (kind AttrName, name, value string) {
	a := &t.attrs[t.nodes[n].attr+uint32(i)]
	return a.name, view(t.src[a.nameFrom : a.nameFrom+uint32(a.nameLen)]), t.attrValue(a)
}

// AttrNameAt returns what the i-th attribute is, from 0.
func (t *Tree) AttrNameAt(n Node, i int) AttrName { return t.attrs[t.nodes[n].attr+uint32(i)].name }

func (t *Tree) attrValue(a *attr) string {
	if a.extra {
		return view(t.extra[a.from:a.to])
	}
	return view(t.src[a.from:a.to])
}

// view returns bytes as a string without copying them.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// RawName returns the name as it stands in the document, with its prefix.
func (t *Tree) RawName(n Node) string { return view(t.src[t.nodes[n].offset+1 : t.nodes[n].nameEnd]) }

// Offset returns the place of the start tag in bytes from the start of the document.
func (t *Tree) Offset(n Node) int64 { return int64(t.nodes[n].offset) }

// Line returns the line of the start tag, from 1. The first call walks through the document.
func (t *Tree) Line(n Node) int {
	if len(t.lines) == 0 {
		count := uint32(0)
		for from := 0; from < len(t.src); from += lineBlock {
			t.lines = append(t.lines, count)
			count += uint32(bytes.Count(t.src[from:min(len(t.src), from+lineBlock)], []byte{'\n'}))
		}
	}
	at := int(t.nodes[n].offset)
	block := at / lineBlock
	return 1 + int(t.lines[block]) + bytes.Count(t.src[block*lineBlock:at], []byte{'\n'})
}

// Path returns an XPath with the usual prefixes and positions:
// "/Invoice/cac:InvoiceLine[2]/cbc:ID[1]". Many calls take no longer than a walk through the
// document and what the paths themselves take.
func (t *Tree) Path(n Node) string {
	var room [256]byte
	return string(t.appendPath(room[:0], n))
}

// ordinal returns the position among the siblings of the same name, from 1. The first paths are
// counted out; when that took as many steps as the document has nodes, all nodes are numbered.
func (t *Tree) ordinal(n Node) int64 {
	if len(t.ordinals) == 0 && t.steps > len(t.nodes) {
		t.number()
	}
	if len(t.ordinals) > 0 {
		return int64(t.ordinals[n])
	}
	count := int64(1)
	for c := t.nodes[n].parent + 1; c < n; c = t.nodes[c].end {
		t.steps++
		if t.nodes[c].kind == t.nodes[n].kind && (t.nodes[c].kind != Foreign || t.RawName(c) == t.RawName(n)) {
			count++
		}
	}
	return count
}

func (t *Tree) appendPath(b []byte, n Node) []byte {
	if p := t.nodes[n].parent; p != None {
		b = t.appendPath(b, p)
	}
	b = append(b, '/')
	if k := t.nodes[n].kind; k != Foreign {
		b = append(b, kindNames[k]...)
	} else {
		b = append(b, t.RawName(n)...)
	}
	if n != Root {
		b = append(b, '[')
		b = strconv.AppendInt(b, t.ordinal(n), 10)
		b = append(b, ']')
	}
	return b
}

// siblings counts the elements of one name below a parent.
type siblings struct {
	parent Node
	count  int32
}

func (s *siblings) next(parent Node) int32 {
	if s.parent != parent {
		*s = siblings{parent: parent}
	}
	s.count++
	return s.count
}

// number gives each node its position among the siblings of its name. On one level the nodes of
// one parent stand together, so that one counter for each level and name is enough.
func (t *Tree) number() {
	type name struct {
		level int
		name  string
	}
	var levels [][]siblings // by kind
	foreign := map[name]*siblings{}
	t.ordinals = append(t.ordinals[:0], make([]int32, len(t.nodes))...)
	var open []Node
	for n := Root; n < t.Len(); n++ {
		x := &t.nodes[n]
		for len(open) > 0 && open[len(open)-1] != x.parent {
			open = open[:len(open)-1]
		}
		level := len(open)
		open = append(open, n)
		if x.kind == Foreign {
			k := name{level, t.RawName(n)}
			if foreign[k] == nil {
				foreign[k] = &siblings{}
			}
			t.ordinals[n] = foreign[k].next(x.parent)
			continue
		}
		for len(levels) <= level {
			levels = append(levels, make([]siblings, kindCount))
		}
		t.ordinals[n] = levels[level][x.kind].next(x.parent)
	}
}
