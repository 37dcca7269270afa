package syntax

import (
	"strings"
	"unicode/utf8"

	"github.com/edihub/edihub/internal/peppol/ubl"
)

// Emit takes a rule that does not hold, the element where, and the value that stands there, if a
// value is the reason. The string belongs to the document, like those of ubl.Tree.
type Emit func(r *Rule, n ubl.Node, actual string)

// Check judges a document and calls emit for each finding, in document order; a rule about the
// document as a whole is reported once, where it is first seen to fail.
func Check(t *ubl.Tree, emit Emit) {
	b := theBook()
	c := checker{t: t, rules: b.rules, paths: b.paths, emit: emit}
	c.walk(ubl.Root, 1, 0)
}

// checker is one judgement.
type checker struct {
	t     *ubl.Tree
	rules []Rule
	paths *paths
	emit  Emit
	done  [16]uint64 // rules about the document that were reported

	counts  [len(counted)]uint8
	objects int      // identifiers of the invoiced object
	vat     [3]int   // tax registrations: see sellerVAT
	sepa    int      // creditor identifiers
	payment ubl.Node // the first cbc:PaymentID
	means   ubl.Node // the first cbc:PaymentMeansCode
	sellers map[ubl.Node]names
}

// Places in checker.vat.
const (
	sellerVAT = iota
	sellerTax
	buyerVAT
)

// once reports a rule about the document.
func (c *checker) once(rule int, n ubl.Node, actual string) {
	if bit := uint64(1) << (rule % 64); c.done[rule/64]&bit == 0 {
		c.done[rule/64] |= bit
		c.emit(&c.rules[rule], n, actual)
	}
}

func (c *checker) fail(rule int, n ubl.Node, actual string) { c.emit(&c.rules[rule], n, actual) }

// most reports a rule when something stands more than once.
func (c *checker) most(rule int, n ubl.Node, count int) {
	if count > 1 {
		c.fail(rule, n, "")
	}
}

// scope is what an element must know of those around it. It is found once for each of them: to
// look it up from every child would take the square of the children's number.
type scope uint8

const (
	inAllowance  scope = 1 << iota // the parent is an allowance
	inCharge                       // the parent is a charge
	inObject                       // the parent refers to the invoiced object
	inDiscounted                   // a price around has a discount; holds for all below

	ofParent = inAllowance | inCharge | inObject
)

// around returns the scope for the children of an element.
func (c *checker) around(n ubl.Node, kind ubl.Kind, s scope) scope {
	s &^= ofParent
	switch kind {
	case ubl.CacAllowanceCharge:
		switch c.indicator(n) {
		case allowance:
			s |= inAllowance
		case charge:
			s |= inCharge
		}
	case ubl.CacAdditionalDocumentReference, ubl.CacDocumentReference:
		if c.has(n, ubl.CbcDocumentTypeCode, invoicedObject) {
			s |= inObject
		}
	case ubl.CacPrice:
		if c.t.Child(n, ubl.CacAllowanceCharge) != ubl.None {
			s |= inDiscounted
		}
	}
	return s
}

// walk judges an element and what is in it.
func (c *checker) walk(n ubl.Node, at uint16, s scope) {
	kind := c.t.Kind(n)
	if at != 0 {
		c.path(n, &c.paths.states[at])
	}
	if c.t.Attrs(n) > 0 {
		c.attributes(n, kind)
	}
	if d := duties[kind]; d != 0 {
		c.element(n, kind, d, s)
	}
	end := c.t.End(n)
	if end == n+1 {
		return
	}
	s = c.around(n, kind, s)
	for child := n + 1; child < end; child = c.t.End(child) {
		c.walk(child, c.paths.child(at, c.t.Kind(child)), s)
	}
}

// path judges an element that is on the path of a rule.
func (c *checker) path(n ubl.Node, s *state) {
	if s.element >= 0 {
		c.once(s.element, n, "")
	}
	if s.attribute >= 0 {
		if v, ok := c.t.Attr(n, s.name); ok {
			c.once(s.attribute, n, v)
		}
	}
	if s.counter == 0 {
		return
	}
	if s.counts != ubl.ForeignAttr {
		if _, ok := c.t.Attr(n, s.counts); !ok {
			return
		}
	}
	if count := &c.counts[s.counter-1]; *count < 2 {
		if *count++; *count == 2 {
			c.once(counted[s.counter-1].rule, n, "")
		}
	}
}

// attributeRules are attributes that may stand nowhere, with their rule.
var attributeRules = func() (t [256]uint8) {
	for name, rule := range map[ubl.AttrName]int{
		ubl.SchemeName: dt08, ubl.SchemeAgencyName: dt09, ubl.SchemeDataURI: dt10, ubl.SchemeURI: dt11, ubl.Format: dt12,
		ubl.UnitCodeListIdentifier: dt13, ubl.UnitCodeListAgencyIdentifier: dt14, ubl.UnitCodeListAgencyName: dt15, ubl.ListAgencyName: dt16,
		ubl.ListName: dt17, ubl.LanguageID: dt19, ubl.ListURI: dt20, ubl.ListSchemeURI: dt21, ubl.LanguageLocaleID: dt22, ubl.URI: dt23,
		ubl.CurrencyCodeListVersionID: dt24, ubl.CharacterSetCode: dt25, ubl.EncodingCode: dt26, ubl.SchemeAgencyID: dt27, ubl.ListAgencyID: dt28,
		ubl.UnitCodeListID: cr663,
	} {
		t[name] = uint8(rule)
	}
	return t
}()

// attributes judges the attributes of an element by their names.
func (c *checker) attributes(n ubl.Node, kind ubl.Kind) {
	for i := range c.t.Attrs(n) {
		name := c.t.AttrNameAt(n, i)
		if rule := attributeRules[name]; rule != 0 {
			_, _, v := c.t.AttrAt(n, i)
			c.once(int(rule), n, v)
		}
		if name == ubl.NameAttr && kind != ubl.CbcPaymentMeansCode {
			_, _, v := c.t.AttrAt(n, i)
			c.once(dt18, n, v)
		}
	}
}

// duty says which rules are about a kind.
type duty uint8

const (
	amountDuty duty = 1 << iota // UBL-DT-01
	currencyDuty
	binaryDuty
	aggregateDuty
	valueDuty
	foreignDuty
)

var duties = func() (t [2048]duty) {
	t[ubl.Foreign] = foreignDuty
	for k := range ubl.Kinds() {
		name := k.String()
		if strings.HasSuffix(name, "Amount") && !strings.HasSuffix(name, "PriceAmount") {
			t[k] |= amountDuty
		}
		if strings.HasSuffix(name, "BinaryObject") {
			t[k] |= binaryDuty
		}
	}
	for _, k := range []ubl.Kind{
		ubl.CbcAmount, ubl.CbcBaseAmount, ubl.CbcPriceAmount, ubl.CbcTaxAmount, ubl.CbcTaxableAmount, ubl.CbcLineExtensionAmount, ubl.CbcTaxExclusiveAmount,
		ubl.CbcTaxInclusiveAmount, ubl.CbcAllowanceTotalAmount, ubl.CbcChargeTotalAmount, ubl.CbcPrepaidAmount, ubl.CbcPayableRoundingAmount, ubl.CbcPayableAmount,
	} {
		t[k] |= currencyDuty
	}
	for _, k := range []ubl.Kind{
		ubl.CacPostalAddress, ubl.CacAddress, ubl.CacParty, ubl.CacAdditionalDocumentReference, ubl.CacDelivery, ubl.CacAllowanceCharge, ubl.CacPartyTaxScheme,
		ubl.CacInvoiceLine, ubl.CacCreditNoteLine, ubl.CacPayeeParty, ubl.CacPaymentMeans, ubl.CacBillingReference, ubl.CacTaxRepresentativeParty,
		ubl.CacTaxSubtotal, ubl.CacFinancialInstitution, ubl.CacPayerFinancialAccount, ubl.Invoice, ubl.CreditNote,
	} {
		t[k] |= aggregateDuty
	}
	for _, k := range []ubl.Kind{
		ubl.CbcID, ubl.CbcCompanyID, ubl.CbcIdentificationCode, ubl.CbcAllowanceChargeReasonCode, ubl.CbcAllowanceChargeReason, ubl.CbcMultiplierFactorNumeric,
		ubl.CbcPaymentID, ubl.CbcPaymentMeansCode, ubl.CbcPrimaryAccountNumberID, ubl.CbcNetworkID, ubl.CbcInvoiceTypeCode, ubl.CbcCreditNoteTypeCode,
		ubl.CbcDocumentCurrencyCode, ubl.CbcTaxCurrencyCode, ubl.CbcDescriptionCode, ubl.CbcItemClassificationCode, ubl.CbcTaxExemptionReasonCode,
		ubl.CbcInvoicedQuantity, ubl.CbcCreditedQuantity, ubl.CbcBaseQuantity, ubl.CbcEmbeddedDocumentBinaryObject, ubl.CbcEndpointID, ubl.CbcNote,
	} {
		t[k] |= valueDuty
	}
	return t
}()

// element judges an element by its kind.
func (c *checker) element(n ubl.Node, kind ubl.Kind, d duty, s scope) {
	if d&amountDuty != 0 {
		c.decimals(n, s)
	}
	if d&binaryDuty != 0 {
		c.binary(n)
	}
	if d&currencyDuty != 0 {
		c.currency(n)
	}
	if d&aggregateDuty != 0 {
		c.aggregate(n, kind)
	}
	if d&valueDuty != 0 {
		c.value(n, kind, s)
	}
	if d&foreignDuty != 0 {
		// These rules look at the end of the name as it stands, whatever its namespace.
		name := c.t.RawName(n)
		if strings.HasSuffix(name, "Amount") && !strings.HasSuffix(name, "PriceAmount") {
			c.decimals(n, s)
		} else if strings.HasSuffix(name, "BinaryObject") {
			c.binary(n)
		}
	}
}

// decimals judges UBL-DT-01, which does not hold below a price that has a discount.
func (c *checker) decimals(n ubl.Node, s scope) {
	if s&inDiscounted != 0 {
		return
	}
	text := c.t.Text(n)
	point := strings.IndexByte(text, '.')
	if point < 0 || len(text)-point-1 <= 2 || utf8.RuneCountInString(text[point+1:]) <= 2 {
		return
	}
	c.fail(dt01, n, text)
}

func (c *checker) binary(n ubl.Node) {
	if _, ok := c.t.Attr(n, ubl.MimeCode); !ok {
		c.fail(dt06, n, "")
	}
	if _, ok := c.t.Attr(n, ubl.Filename); !ok {
		c.fail(dt07, n, "")
	}
}

// below counts the elements at a path of kinds below n.
func (c *checker) below(n ubl.Node, path ...ubl.Kind) int {
	count := 0
	for child, end := n+1, c.t.End(n); child < end; child = c.t.End(child) {
		if c.t.Kind(child) != path[0] {
			continue
		}
		if len(path) == 1 {
			count++
		} else {
			count += c.below(child, path[1:]...)
		}
	}
	return count
}

// has reports whether a child of a kind has a value.
func (c *checker) has(n ubl.Node, kind ubl.Kind, value string) bool {
	for child, end := n+1, c.t.End(n); child < end; child = c.t.End(child) {
		if c.t.Kind(child) == kind && c.t.Text(child) == value {
			return true
		}
	}
	return false
}
