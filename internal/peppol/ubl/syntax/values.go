package syntax

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/edihub/edihub/internal/peppol/codes"
	"github.com/edihub/edihub/internal/peppol/ubl"
)

// code reports a rule when a value is not in a list. White space at its ends does not count.
func (c *checker) code(rule int, n ubl.Node, value string, list *codes.List) {
	if !list.Has(trim(value)) {
		c.fail(rule, n, value)
	}
}

// scheme reports a rule when an attribute is there and not in a list.
func (c *checker) scheme(rule int, n ubl.Node, name ubl.AttrName, list *codes.List) {
	if v, ok := c.t.Attr(n, name); ok {
		c.code(rule, n, v, list)
	}
}

// currency judges BR-CL-03; an amount without a currency has none of the list.
func (c *checker) currency(n ubl.Node) {
	v, _ := c.t.Attr(n, ubl.CurrencyID)
	c.code(cl03, n, v, codes.Currencies)
}

// forbid reports a rule about the document when an attribute is there.
func (c *checker) forbid(rule int, n ubl.Node, name ubl.AttrName) {
	if v, ok := c.t.Attr(n, name); ok {
		c.once(rule, n, v)
	}
}

// value judges an element with a value.
func (c *checker) value(n ubl.Node, kind ubl.Kind, s scope) {
	t := c.t
	parent := t.Parent(n)
	switch in := t.Kind(parent); kind {
	case ubl.CbcID:
		c.identifier(n, parent, in, s)
	case ubl.CbcCompanyID:
		switch in {
		case ubl.CacPartyLegalEntity:
			c.scheme(cl11, n, ubl.SchemeID, codes.IdentifierSchemes)
		case ubl.CacPartyTaxScheme:
			c.forbid(cr652, n, ubl.SchemeID)
		}
	case ubl.CbcIdentificationCode:
		switch in {
		case ubl.CacCountry:
			c.forbid(cr660, n, ubl.ListID)
			c.code(cl14, n, t.Text(n), codes.Countries)
		case ubl.CacOriginCountry:
			c.code(cl15, n, t.Text(n), codes.Countries)
		}
	case ubl.CbcAllowanceChargeReasonCode, ubl.CbcAllowanceChargeReason, ubl.CbcMultiplierFactorNumeric:
		c.allowanceCharge(n, kind, parent, s)
	case ubl.CbcPaymentID:
		c.different(sr44, &c.payment, n)
	case ubl.CbcPaymentMeansCode:
		c.different(sr47, &c.means, n)
		if in == ubl.CacPaymentMeans {
			c.code(cl16, n, t.Text(n), codes.PaymentMeans)
		}
	case ubl.CbcPrimaryAccountNumberID:
		c.forbid(cr674, n, ubl.SchemeID)
	case ubl.CbcNetworkID:
		if in == ubl.CacCardAccount {
			c.forbid(cr675, n, ubl.SchemeID)
		}
	case ubl.CbcInvoiceTypeCode:
		c.code(cl01, n, t.Text(n), codes.InvoiceTypes)
	case ubl.CbcCreditNoteTypeCode:
		c.code(cl01, n, t.Text(n), codes.CreditNoteTypes)
	case ubl.CbcDocumentCurrencyCode:
		c.code(cl04, n, t.Text(n), codes.Currencies)
	case ubl.CbcTaxCurrencyCode:
		c.code(cl05, n, t.Text(n), codes.Currencies)
	case ubl.CbcDescriptionCode:
		if in == ubl.CacInvoicePeriod {
			c.code(cl06, n, t.Text(n), codes.TaxPointDates)
		}
	case ubl.CbcItemClassificationCode:
		if in == ubl.CacCommodityClassification {
			c.scheme(cl13, n, ubl.ListID, codes.Classifications)
		}
	case ubl.CbcTaxExemptionReasonCode:
		if v := t.Text(n); !codes.VATExemptions.Has(trim(strings.ToUpper(v))) {
			c.fail(cl22, n, v)
		}
	case ubl.CbcInvoicedQuantity, ubl.CbcCreditedQuantity, ubl.CbcBaseQuantity:
		c.scheme(cl23, n, ubl.UnitCode, codes.Units)
	case ubl.CbcEmbeddedDocumentBinaryObject:
		if v, ok := t.Attr(n, ubl.MimeCode); ok && !codes.MediaTypes.Has(v) {
			c.fail(cl24, n, v)
		}
	case ubl.CbcEndpointID:
		c.scheme(cl25, n, ubl.SchemeID, codes.EndpointSchemes)
	case ubl.CbcNote:
		if parent == ubl.Root {
			c.note(n)
		}
	}
}

// identifier judges a cbc:ID by the element that it stands in.
func (c *checker) identifier(n, parent ubl.Node, in ubl.Kind, s scope) {
	switch in {
	case ubl.CacPartyIdentification:
		if v, ok := c.t.Attr(n, ubl.SchemeID); ok {
			c.partyScheme(n, v)
		}
	case ubl.CacAdditionalDocumentReference, ubl.CacDocumentReference:
		if s&inObject != 0 {
			c.scheme(cl07, n, ubl.SchemeID, codes.References)
		}
	case ubl.CacBuyersItemIdentification:
		c.forbid(cr667, n, ubl.SchemeID)
	case ubl.CacSellersItemIdentification:
		c.forbid(cr668, n, ubl.SchemeID)
	case ubl.CacStandardItemIdentification:
		c.scheme(cl21, n, ubl.SchemeID, codes.IdentifierSchemes)
	case ubl.CacDeliveryLocation:
		c.scheme(cl26, n, ubl.SchemeID, codes.IdentifierSchemes)
	case ubl.CacPaymentMandate:
		c.forbid(cr676, n, ubl.SchemeID)
	case ubl.CacPayerFinancialAccount:
		if c.t.Kind(c.t.Parent(parent)) == ubl.CacPaymentMandate {
			c.forbid(cr677, n, ubl.SchemeID)
		}
	case ubl.CacTaxCategory:
		c.forbid(cr678, n, ubl.SchemeID)
		c.code(cl17, n, c.t.Text(n), codes.VATCategories)
	case ubl.CacClassifiedTaxCategory:
		c.forbid(cr679, n, ubl.SchemeID)
		c.code(cl18, n, c.t.Text(n), codes.VATCategories)
	}
}

// partyScheme judges the scheme of a party's identifier. SEPA is no code of the list, but that of
// the creditor identifier of seller and payee (BT-90).
func (c *checker) partyScheme(n ubl.Node, scheme string) {
	if strings.EqualFold(scheme, "SEPA") {
		if c.sepa++; c.sepa > 1 {
			c.once(sr29, n, "")
		}
	}
	v := trim(scheme)
	if !codes.IdentifierSchemes.Has(v) && (v != "SEPA" || !c.t.Within(n, ubl.CacAccountingSupplierParty) && !c.t.Within(n, ubl.CacPayeeParty)) {
		c.fail(cl10, n, scheme)
	}
}

// allowanceCharge judges what an allowance or charge says about its reason.
func (c *checker) allowanceCharge(n ubl.Node, kind ubl.Kind, parent ubl.Node, s scope) {
	t := c.t
	if kind == ubl.CbcAllowanceChargeReasonCode {
		c.forbid(cr662, n, ubl.ListID)
	}
	if t.Kind(parent) != ubl.CacAllowanceCharge {
		return
	}
	if t.Kind(t.Parent(parent)) == ubl.CacPrice {
		switch kind {
		case ubl.CbcAllowanceChargeReasonCode:
			c.once(cr669, n, "")
		case ubl.CbcAllowanceChargeReason:
			c.once(cr670, n, "")
		default:
			c.once(cr671, n, "")
		}
	}
	if kind != ubl.CbcAllowanceChargeReasonCode {
		return
	}
	switch {
	case s&inAllowance != 0:
		c.code(cl19, n, t.Text(n), codes.AllowanceReasons)
	case s&inCharge != 0:
		c.code(cl20, n, t.Text(n), codes.ChargeReasons)
	}
}

// different reports a rule when a value is not that of the first element of its kind.
func (c *checker) different(rule int, first *ubl.Node, n ubl.Node) {
	if *first == ubl.None {
		*first = n
	} else if v := c.t.Text(n); v != c.t.Text(*first) {
		c.once(rule, n, v)
	}
}

// subjects are the codes of the list of note subjects in one text, between blanks.
var subjects = sync.OnceValue(func() string { return " " + strings.Join(codes.NoteSubjects.Codes(), " ") + " " })

// note judges BR-CL-08: what stands between the first two # of a note is taken for a subject when
// it has three characters. The reference looks for them in the text of the list, so that the end
// of a code with a blank passes too.
func (c *checker) note(n ubl.Node) {
	_, after, ok := strings.Cut(c.t.Text(n), "#")
	if !ok {
		return
	}
	subject, _, ok := strings.Cut(after, "#")
	if ok && utf8.RuneCountInString(subject) == 3 && !strings.Contains(subjects(), subject) {
		c.fail(cl08, n, subject)
	}
}
