// Package structure judges whether a document is built as UBL 2.1 says: which elements stand
// where, in which order and how often, which attributes they have, and whether their values are
// of the right type. The tables are those of the package ubl.
package structure

import (
	"strings"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/peppol/ubl"
)

// Rule is one rule. Its message tells the sender what to change.
type Rule struct {
	ID       string
	Severity edi.Severity
	Message  string
}

// The rules, by their place in rules.
const (
	unknown = iota
	order
	repeated
	missing
	content
	value
	attribute
	attributeMissing
)

var rules = [...]Rule{
	unknown:          {"UBL-STRUCT-UNKNOWN", edi.Fatal, "UBL 2.1 does not know this element here; check its name, its namespace and the element that it stands in."},
	order:            {"UBL-STRUCT-ORDER", edi.Fatal, "The element stands in the wrong place; write the elements in the order of UBL 2.1."},
	repeated:         {"UBL-STRUCT-REPEATED", edi.Fatal, "The element stands more often than UBL 2.1 allows; keep one."},
	missing:          {"UBL-STRUCT-MISSING", edi.Fatal, "A mandatory element is missing; add it."},
	content:          {"UBL-STRUCT-CONTENT", edi.Fatal, "Text and elements are mixed; an element holds either a value or other elements."},
	value:            {"UBL-STRUCT-VALUE", edi.Fatal, "The value is not of the type that UBL 2.1 asks for here."},
	attribute:        {"UBL-STRUCT-ATTRIBUTE", edi.Fatal, "UBL 2.1 does not know this attribute here; leave it out."},
	attributeMissing: {"UBL-STRUCT-ATTRIBUTE-MISSING", edi.Fatal, "A mandatory attribute is missing; add it."},
}

// Rules returns all rules; the caller must not change them.
func Rules() []Rule { return rules[:] }

// Emit takes a rule that does not hold, the element where, what stands there and what is
// expected. The strings belong to the document, like those of ubl.Tree.
type Emit func(r *Rule, n ubl.Node, actual, expected string)

// Check judges a document and calls emit for each finding in document order. What stands inside
// of ext:ExtensionContent and of elements that UBL does not know is not judged.
func Check(t *ubl.Tree, emit Emit) {
	c := checker{t: t, emit: emit}
	c.walk(ubl.Root, t.Kind(ubl.Root))
}

type checker struct {
	t    *ubl.Tree
	emit Emit
}

func (c *checker) fail(rule int, n ubl.Node, actual, expected string) {
	c.emit(&rules[rule], n, actual, expected)
}

// walk judges an element of a known kind and what is in it.
func (c *checker) walk(n ubl.Node, kind ubl.Kind) {
	typ := ubl.TypeOf(kind)
	c.attributes(n, typ)
	children := typ.Children()
	switch {
	case typ == ubl.AnyType:
		c.extension(n)
	case children == nil:
		c.simple(n, typ)
	default:
		c.aggregate(n, children)
	}
}

// extension judges ext:ExtensionContent: it holds one element of another namespace.
func (c *checker) extension(n ubl.Node) {
	if c.t.First(n) == ubl.None {
		c.fail(missing, n, "", "an element of a namespace of your own")
	}
}

// aggregate judges the children of an element. Where one stands out of its order, only that is
// reported, and not that it is missing where it belongs.
func (c *checker) aggregate(n ubl.Node, allowed []ubl.Child) {
	t := c.t
	if t.Mixed(n) || t.First(n) == ubl.None && !blank(t.Text(n)) {
		c.fail(content, n, strings.TrimSpace(t.Text(n)), "elements only")
	}
	at, count := 0, 0 // the place in allowed, and how often its element stood
	for child, end := n+1, t.End(n); child < end; child = t.End(child) {
		kind := t.Kind(child)
		to := place(allowed, at, kind)
		switch {
		case to < 0:
			if place(allowed, 0, kind) < 0 {
				c.fail(unknown, child, t.RawName(child), "")
				continue
			}
			c.fail(order, child, kind.String(), "before "+allowed[at].Kind.String())
		case to == at:
			if count++; count == 2 && !allowed[at].Many {
				c.fail(repeated, child, kind.String(), "")
			}
		default:
			c.skipped(n, allowed, at, to, count)
			at, count = to, 1
		}
		c.walk(child, kind)
	}
	c.skipped(n, allowed, at, len(allowed), count)
}

// place finds an element among those allowed from a place on, or returns -1.
func place(allowed []ubl.Child, from int, kind ubl.Kind) int {
	if kind == ubl.Foreign {
		return -1
	}
	for i := from; i < len(allowed); i++ {
		if allowed[i].Kind == kind {
			return i
		}
	}
	return -1
}

// skipped reports the mandatory elements between two places that stand nowhere.
func (c *checker) skipped(n ubl.Node, allowed []ubl.Child, at, to, count int) {
	if count > 0 {
		at++
	}
	for ; at < to; at++ {
		if a := &allowed[at]; a.Required && c.t.Child(n, a.Kind) == ubl.None {
			c.fail(missing, n, "", a.Kind.String())
		}
	}
}

func set(names ...ubl.AttrName) (m uint64) {
	for _, n := range names {
		m |= 1 << n
	}
	return m
}

// allowedAttributes are the attributes of the value types (CCTS 2.01 §8).
var allowedAttributes = [...]uint64{
	ubl.AmountType: set(ubl.CurrencyID, ubl.CurrencyCodeListVersionID),
	ubl.BinaryType: set(ubl.Format, ubl.MimeCode, ubl.EncodingCode, ubl.CharacterSetCode, ubl.URI, ubl.Filename),
	ubl.CodeType: set(ubl.ListID, ubl.ListAgencyID, ubl.ListAgencyName, ubl.ListName, ubl.ListVersionID, ubl.NameAttr, ubl.LanguageID,
		ubl.ListURI, ubl.ListSchemeURI),
	ubl.IdentifierType: set(ubl.SchemeID, ubl.SchemeName, ubl.SchemeAgencyID, ubl.SchemeAgencyName, ubl.SchemeVersionID, ubl.SchemeDataURI, ubl.SchemeURI),
	ubl.MeasureType:    set(ubl.UnitCode, ubl.UnitCodeListVersionID),
	ubl.NumericType:    set(ubl.Format),
	ubl.QuantityType:   set(ubl.UnitCode, ubl.UnitCodeListID, ubl.UnitCodeListAgencyID, ubl.UnitCodeListAgencyName),
	ubl.TextType:       set(ubl.LanguageID, ubl.LanguageLocaleID),
}

// attributes judges the attributes of an element.
func (c *checker) attributes(n ubl.Node, typ ubl.Type) {
	count := c.t.Attrs(n)
	if count > 0 {
		allowed := uint64(1) << ubl.SchemaInstance
		if int(typ) < len(allowedAttributes) {
			allowed |= allowedAttributes[typ]
		}
		for i := range count {
			if name := c.t.AttrNameAt(n, i); allowed&(1<<name) == 0 {
				_, raw, _ := c.t.AttrAt(n, i)
				c.fail(attribute, n, raw, "")
			}
		}
	}
	var need ubl.AttrName
	switch typ {
	case ubl.AmountType:
		need = ubl.CurrencyID
	case ubl.BinaryType:
		need = ubl.MimeCode
	case ubl.MeasureType:
		need = ubl.UnitCode
	default:
		return
	}
	if _, ok := c.t.Attr(n, need); !ok {
		c.fail(attributeMissing, n, "", need.String())
	}
}
