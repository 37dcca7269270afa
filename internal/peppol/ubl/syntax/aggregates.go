package syntax

import (
	"strings"

	"github.com/edihub/edihub/internal/peppol/ubl"
)

// invoicedObject is the document type code that makes a document reference one to the invoiced
// object (BT-18).
const invoicedObject = "130"

// aggregate judges an element with children.
func (c *checker) aggregate(n ubl.Node, kind ubl.Kind) {
	t := c.t
	switch kind {
	case ubl.CacPostalAddress, ubl.CacAddress:
		c.most(sr51, n, t.Count(n, ubl.CacAddressLine))
	case ubl.CacParty:
		if t.Kind(t.Parent(n)) == ubl.CacAccountingSupplierParty && t.Count(n, ubl.CacPartyTaxScheme) > 2 {
			c.fail(sr42, n, "")
		}
	case ubl.CacAdditionalDocumentReference:
		c.reference(n)
	case ubl.CacDelivery:
		c.most(sr25, n, c.below(n, ubl.CacDeliveryParty, ubl.CacPartyName, ubl.CbcName))
	case ubl.CacAllowanceCharge:
		if t.Count(n, ubl.CbcAllowanceChargeReason) > 1 {
			switch c.indicator(n) {
			case allowance:
				c.fail(sr30, n, "")
			case charge:
				c.fail(sr31, n, "")
			}
		}
	case ubl.CacPartyTaxScheme:
		c.taxScheme(n)
	case ubl.CacInvoiceLine, ubl.CacCreditNoteLine:
		c.line(n)
	case ubl.CacPayeeParty:
		c.payee(n)
	case ubl.CacPaymentMeans:
		c.most(sr26, n, t.Count(n, ubl.CbcPaymentID))
		c.most(sr27, n, t.Count(n, ubl.CbcPaymentMeansCode))
		c.most(sr28, n, c.below(n, ubl.CacPaymentMandate, ubl.CbcID))
		if t.Kind(t.Parent(n)) == ubl.Invoice && t.Parent(n) == ubl.Root {
			if due := t.Child(n, ubl.CbcPaymentDueDate); due != ubl.None {
				c.once(cr412, due, "")
			}
		}
	case ubl.CacBillingReference:
		c.most(sr06, n, t.Count(n, ubl.CacInvoiceDocumentReference))
		if c.below(n, ubl.CacInvoiceDocumentReference, ubl.CbcID) == 0 {
			c.fail(sr07, n, "")
		}
	case ubl.CacTaxRepresentativeParty:
		c.most(sr22, n, c.below(n, ubl.CacPartyName, ubl.CbcName))
		c.most(sr23, n, c.below(n, ubl.CacPartyTaxScheme, ubl.CbcCompanyID))
	case ubl.CacTaxSubtotal:
		c.most(sr32, n, c.below(n, ubl.CacTaxCategory, ubl.CbcTaxExemptionReason))
	case ubl.CacFinancialInstitution:
		c.once(cr664, n, "")
	case ubl.CacPayerFinancialAccount:
		if t.Kind(t.Parent(n)) == ubl.CacPaymentMeans {
			c.once(cr680, n, "")
		}
	case ubl.Invoice, ubl.CreditNote:
		if v := t.Child(n, ubl.CbcUBLVersionID); n == ubl.Root && v != ubl.None && !c.has(n, ubl.CbcUBLVersionID, "2.1") {
			c.once(cr002, v, t.Text(v))
		}
	}
}

// reference judges a reference to an additional document.
func (c *checker) reference(n ubl.Node) {
	t := c.t
	c.most(sr33, n, t.Count(n, ubl.CbcDocumentDescription))
	object, typed, other := false, false, false
	credit := false
	scheme := ubl.None
	for child, end := n+1, t.End(n); child < end; child = t.End(child) {
		switch t.Kind(child) {
		case ubl.CbcDocumentTypeCode:
			typed = true
			switch t.Text(child) {
			case invoicedObject:
				object = true
			case "50":
				credit, other = true, true
			default:
				other = true
			}
		case ubl.CbcID:
			if _, ok := t.Attr(child, ubl.SchemeID); ok && scheme == ubl.None {
				scheme = child
			}
		}
	}
	if object {
		if a := t.Child(n, ubl.CacAttachment); a != ubl.None {
			c.once(cr666, a, "")
		}
		if d := t.Child(n, ubl.CbcDocumentDescription); d != ubl.None {
			c.once(cr673, d, "")
		}
		if t.Parent(n) == ubl.Root {
			if c.objects += t.Count(n, ubl.CbcID); c.objects > 1 {
				c.once(sr04, n, "")
			}
		}
	}
	if scheme != ubl.None && (other || !typed) {
		v, _ := t.Attr(scheme, ubl.SchemeID)
		c.once(cr665, scheme, v)
	}
	credit = credit && t.Kind(ubl.Root) == ubl.CreditNote
	if !object && !credit && (typed || scheme != ubl.None) {
		c.fail(sr43, n, "")
	}
}

// The meanings of cbc:ChargeIndicator.
type direction int

const (
	unclear direction = iota
	allowance
	charge
)

// indicator reads cbc:ChargeIndicator as xs:boolean. What is none is reported with the values of
// the model; here it is unclear, and the rules about allowances and charges say nothing.
func (c *checker) indicator(n ubl.Node) direction {
	found := unclear
	for child, end := n+1, c.t.End(n); child < end; child = c.t.End(child) {
		if c.t.Kind(child) != ubl.CbcChargeIndicator {
			continue
		}
		switch trim(c.t.Text(child)) {
		case "false", "0":
			return allowance
		case "true", "1":
			found = charge
		}
	}
	return found
}

// taxScheme judges a tax registration.
func (c *checker) taxScheme(n ubl.Node) {
	t := c.t
	ids := t.Count(n, ubl.CbcCompanyID)
	if ids == 0 || c.below(n, ubl.CacTaxScheme, ubl.CbcID) == 0 {
		c.fail(sr53, n, "")
	}
	party := t.Parent(n)
	role := t.Parent(party)
	if t.Kind(party) != ubl.CacParty || t.Parent(role) != ubl.Root {
		return
	}
	vat, tax := c.schemes(n)
	add := func(which, rule int) {
		if c.vat[which] += ids; c.vat[which] > 1 {
			c.once(rule, n, "")
		}
	}
	switch t.Kind(role) {
	case ubl.CacAccountingSupplierParty:
		if vat {
			add(sellerVAT, sr12)
		}
		if tax {
			add(sellerTax, sr13)
		}
	case ubl.CacAccountingCustomerParty:
		if vat {
			add(buyerVAT, sr18)
		}
	}
}

// schemes reports whether a tax registration has a scheme that is VAT, and one that is not; a
// scheme without an identifier is not VAT.
func (c *checker) schemes(n ubl.Node) (vat, other bool) {
	for child, end := n+1, c.t.End(n); child < end; child = c.t.End(child) {
		if c.t.Kind(child) != ubl.CacTaxScheme {
			continue
		}
		if id := c.t.Child(child, ubl.CbcID); id != ubl.None && strings.EqualFold(c.t.Text(id), "VAT") {
			vat = true
		} else {
			other = true
		}
	}
	return vat, other
}

// line judges a line of an invoice or credit note.
func (c *checker) line(n ubl.Node) {
	var notes, periods, documents, categories, descriptions, orders, discounts int
	t := c.t
	for child, end := n+1, t.End(n); child < end; child = t.End(child) {
		switch t.Kind(child) {
		case ubl.CbcNote:
			notes++
		case ubl.CacInvoicePeriod:
			periods++
		case ubl.CacDocumentReference:
			documents++
		case ubl.CacOrderLineReference:
			orders += t.Count(child, ubl.CbcLineID)
		case ubl.CacItem:
			categories += t.Count(child, ubl.CacClassifiedTaxCategory)
			descriptions += t.Count(child, ubl.CbcDescription)
		case ubl.CacPrice:
			discounts += c.below(child, ubl.CacAllowanceCharge, ubl.CbcAmount)
		}
	}
	c.most(sr34, n, notes)
	c.most(sr35, n, orders)
	c.most(sr36, n, periods)
	c.most(sr37, n, discounts)
	if categories != 1 {
		c.fail(sr48, n, "")
	}
	c.most(sr50, n, descriptions)
	c.most(sr52, n, documents)
}

// names are the first of some names, and whether there are others than it.
type names struct {
	first  string
	count  int
	others bool
}

func (s *names) add(name string) {
	if s.count++; s.count == 1 {
		s.first = name
	}
	s.others = s.others || name != s.first
}

// differ reports whether a name of one differs from a name of the other.
func (s *names) differ(o *names) bool {
	return s.count > 0 && o.count > 0 && (s.others || o.others || s.first != o.first)
}

// payee judges the payee, whose name must differ from that of the seller.
func (c *checker) payee(n ubl.Node) {
	t := c.t
	var own names
	ids := 0
	for child, end := n+1, t.End(n); child < end; child = t.End(child) {
		switch t.Kind(child) {
		case ubl.CacPartyName:
			c.collect(&own, child, ubl.CbcName)
		case ubl.CacPartyIdentification:
			for id, end := child+1, t.End(child); id < end; id = t.End(id) {
				if t.Kind(id) == ubl.CbcID && !c.isSEPA(id) {
					ids++
				}
			}
		}
	}
	seller := c.sellerOf(t.Parent(n))
	differs := own.differ(&seller)
	if own.count > 1 || !differs {
		c.fail(sr19, n, "")
	}
	if ids > 1 || !differs {
		c.fail(sr20, n, "")
	}
	if c.below(n, ubl.CacPartyLegalEntity, ubl.CbcCompanyID) > 1 || !differs {
		c.fail(sr21, n, "")
	}
}

// sellerOf returns the names of the sellers in an element, which are looked for once.
func (c *checker) sellerOf(n ubl.Node) names {
	s, ok := c.sellers[n]
	if !ok {
		c.collect(&s, n, ubl.CacAccountingSupplierParty, ubl.CacParty, ubl.CacPartyLegalEntity, ubl.CbcRegistrationName)
		if c.sellers == nil {
			c.sellers = map[ubl.Node]names{}
		}
		c.sellers[n] = s
	}
	return s
}

// collect takes the texts of the elements at a path of kinds below n.
func (c *checker) collect(to *names, n ubl.Node, path ...ubl.Kind) {
	for child, end := n+1, c.t.End(n); child < end; child = c.t.End(child) {
		if c.t.Kind(child) != path[0] {
			continue
		}
		if len(path) == 1 {
			to.add(c.t.Text(child))
		} else {
			c.collect(to, child, path[1:]...)
		}
	}
}

func (c *checker) isSEPA(id ubl.Node) bool {
	scheme, _ := c.t.Attr(id, ubl.SchemeID)
	return strings.EqualFold(scheme, "SEPA")
}

// trim takes the white space of XML off both ends. Nearly always there is none.
func trim(s string) string {
	for len(s) > 0 && blank(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && blank(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
