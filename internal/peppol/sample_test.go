package peppol

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
)

// element is a node of a document that tests build and change.
type elem struct {
	name  string
	attrs []xml.Attr
	text  string
	kids  []*elem
	up    *elem
}

// read makes elements of XML with the prefixes that stand there.
func read(t testing.TB, s string) *elem {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(s))
	top := &elem{}
	at := top
	for {
		token, err := d.RawToken()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, s)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &elem{name: qualified(token.Name), up: at, attrs: append([]xml.Attr(nil), token.Attr...)}
			at.kids = append(at.kids, e)
			at = e
		case xml.EndElement:
			at = at.up
		case xml.CharData:
			if s := string(token); strings.TrimSpace(s) != "" || len(at.kids) == 0 && !strings.Contains(s, "\n") {
				at.text += s
			}
		}
	}
	return top.kids[0]
}

func qualified(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	return n.Space + ":" + n.Local
}

// find returns the element of a path: names with an index from 1 behind them where it is not 1.
// "*" is the document element.
func (e *elem) find(t testing.TB, path string) *elem {
	t.Helper()
	if path == "*" {
		return e
	}
	for step := range strings.SplitSeq(path, "/") {
		name, index, _ := strings.Cut(strings.TrimSuffix(step, "]"), "[")
		n := 1
		if index != "" {
			n, _ = strconv.Atoi(index)
		}
		var next *elem
		for _, k := range e.kids {
			if k.name == name {
				if n--; n == 0 {
					next = k
				}
			}
		}
		if next == nil {
			t.Fatalf("no %s in %s", step, path)
		}
		e = next
	}
	return e
}

// edit changes the document: "path=text", "path@attr=value", "-path", "-path@attr", "+path <xml/>"
// for a further child, ">path <xml/>" for a sibling behind, "2path" for the same once more.
func (e *elem) edit(t testing.TB, edits ...string) *elem {
	t.Helper()
	for _, s := range edits {
		switch {
		case s == "":
		case s[0] == '-':
			path, attr, isAttr := strings.Cut(s[1:], "@")
			x := e.find(t, path)
			if isAttr {
				x.attrs = without(x.attrs, attr)
				break
			}
			x.up.kids = append([]*elem(nil), removed(x.up.kids, x)...)
		case s[0] == '+' || s[0] == '>':
			path, fragment, _ := strings.Cut(s[1:], " ")
			x, y := e.find(t, path), read(t, fragment)
			if s[0] == '+' {
				y.up = x
				x.kids = append(x.kids, y)
				break
			}
			y.up = x.up
			x.up.kids = inserted(x.up.kids, x, y)
		case s[0] == '2':
			x := e.find(t, s[1:])
			x.up.kids = inserted(x.up.kids, x, x.clone(x.up))
		default:
			path, value, _ := strings.Cut(s, "=")
			path, attr, isAttr := strings.Cut(path, "@")
			x := e.find(t, path)
			if isAttr {
				x.attrs = append(without(x.attrs, attr), xml.Attr{Name: xml.Name{Local: attr}, Value: value})
				break
			}
			x.text = value
		}
	}
	return e
}

func without(attrs []xml.Attr, name string) []xml.Attr {
	var out []xml.Attr
	for _, a := range attrs {
		if qualified(a.Name) != name {
			out = append(out, a)
		}
	}
	return out
}

func removed(kids []*elem, x *elem) []*elem {
	var out []*elem
	for _, k := range kids {
		if k != x {
			out = append(out, k)
		}
	}
	return out
}

func inserted(kids []*elem, behind, x *elem) []*elem {
	var out []*elem
	for _, k := range kids {
		out = append(out, k)
		if k == behind {
			out = append(out, x)
		}
	}
	return out
}

func (e *elem) clone(up *elem) *elem {
	c := &elem{name: e.name, attrs: append([]xml.Attr(nil), e.attrs...), text: e.text, up: up}
	for _, k := range e.kids {
		c.kids = append(c.kids, k.clone(c))
	}
	return c
}

// bytes writes the document.
func (e *elem) bytes() []byte {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
	e.write(&b, "")
	return []byte(b.String())
}

func (e *elem) write(b *strings.Builder, indent string) {
	b.WriteString(indent + "<" + e.name)
	for _, a := range e.attrs {
		b.WriteString(" " + qualified(a.Name) + "=\"")
		_ = xml.EscapeText(b, []byte(a.Value))
		b.WriteString("\"")
	}
	if len(e.kids) == 0 {
		b.WriteString(">")
		_ = xml.EscapeText(b, []byte(e.text))
		b.WriteString("</" + e.name + ">\n")
		return
	}
	b.WriteString(">\n")
	for _, k := range e.kids {
		k.write(b, indent+"    ")
	}
	b.WriteString(indent + "</" + e.name + ">\n")
}

const namespaces = ` xmlns:cac="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2" xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"`

// base is a valid invoice between a French seller and a Belgian buyer with two lines, an
// allowance, a charge, a payee, a delivery and an attachment.
func base(t testing.TB) *elem { return read(t, baseXML) }

// creditNote is base as a credit note.
func creditNote(t testing.TB) *elem {
	s := strings.NewReplacer(
		"<Invoice xmlns=\"urn:oasis:names:specification:ubl:schema:xsd:Invoice-2\"", "<CreditNote xmlns=\"urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2\"",
		"</Invoice>", "</CreditNote>", "cac:InvoiceLine", "cac:CreditNoteLine", "cbc:InvoicedQuantity", "cbc:CreditedQuantity",
		"<cbc:InvoiceTypeCode>380</cbc:InvoiceTypeCode>", "<cbc:CreditNoteTypeCode>381</cbc:CreditNoteTypeCode>", "<cbc:DueDate>2026-10-31</cbc:DueDate>", "",
	).Replace(baseXML)
	return read(t, s)
}

// manyLines is base with n lines.
func manyLines(t testing.TB, n int) *elem {
	d := base(t)
	line := d.find(t, "cac:InvoiceLine")
	d.edit(t, "-cac:InvoiceLine[2]", "-cac:AllowanceCharge", "-cac:AllowanceCharge")
	for i := 2; i <= n; i++ {
		c := line.clone(d)
		c.edit(t, "cbc:ID="+strconv.Itoa(i))
		d.kids = append(d.kids, c)
	}
	money := func(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
	net := n * 40000
	tax := net / 5
	return d.edit(t,
		"cac:TaxTotal/cbc:TaxAmount="+money(tax), "cac:TaxTotal/cac:TaxSubtotal/cbc:TaxableAmount="+money(net), "cac:TaxTotal/cac:TaxSubtotal/cbc:TaxAmount="+money(tax),
		"cac:LegalMonetaryTotal/cbc:LineExtensionAmount="+money(net), "cac:LegalMonetaryTotal/cbc:TaxExclusiveAmount="+money(net),
		"cac:LegalMonetaryTotal/cbc:TaxInclusiveAmount="+money(net+tax), "cac:LegalMonetaryTotal/cbc:PayableAmount="+money(net+tax-10000),
		"-cac:LegalMonetaryTotal/cbc:AllowanceTotalAmount", "-cac:LegalMonetaryTotal/cbc:ChargeTotalAmount",
	)
}

const baseXML = `<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"` + namespaces + `>
<cbc:CustomizationID>urn:cen.eu:en16931:2017#compliant#urn:fdc:peppol.eu:2017:poacc:billing:3.0</cbc:CustomizationID>
<cbc:ProfileID>urn:fdc:peppol.eu:2017:poacc:billing:01:1.0</cbc:ProfileID>
<cbc:ID>2026-4711</cbc:ID>
<cbc:IssueDate>2026-10-01</cbc:IssueDate>
<cbc:DueDate>2026-10-31</cbc:DueDate>
<cbc:InvoiceTypeCode>380</cbc:InvoiceTypeCode>
<cbc:Note>Delivered in two parts.</cbc:Note>
<cbc:DocumentCurrencyCode>EUR</cbc:DocumentCurrencyCode>
<cbc:AccountingCost>4025:123:4343</cbc:AccountingCost>
<cbc:BuyerReference>cost centre 7</cbc:BuyerReference>
<cac:InvoicePeriod><cbc:StartDate>2026-09-01</cbc:StartDate><cbc:EndDate>2026-09-30</cbc:EndDate></cac:InvoicePeriod>
<cac:OrderReference><cbc:ID>PO-1</cbc:ID></cac:OrderReference>
<cac:BillingReference><cac:InvoiceDocumentReference><cbc:ID>2026-4000</cbc:ID><cbc:IssueDate>2026-09-01</cbc:IssueDate></cac:InvoiceDocumentReference></cac:BillingReference>
<cac:AdditionalDocumentReference><cbc:ID>timesheet</cbc:ID><cbc:DocumentDescription>Hours of September</cbc:DocumentDescription>
<cac:Attachment><cbc:EmbeddedDocumentBinaryObject mimeCode="text/csv" filename="hours.csv">aG91cnMK</cbc:EmbeddedDocumentBinaryObject></cac:Attachment></cac:AdditionalDocumentReference>
<cac:AccountingSupplierParty><cac:Party>
<cbc:EndpointID schemeID="0088">7300010000001</cbc:EndpointID>
<cac:PartyIdentification><cbc:ID>S-99</cbc:ID></cac:PartyIdentification>
<cac:PartyName><cbc:Name>Moulin</cbc:Name></cac:PartyName>
<cac:PostalAddress><cbc:StreetName>Rue du Moulin 1</cbc:StreetName><cbc:CityName>Lyon</cbc:CityName><cbc:PostalZone>69001</cbc:PostalZone><cac:Country><cbc:IdentificationCode>FR</cbc:IdentificationCode></cac:Country></cac:PostalAddress>
<cac:PartyTaxScheme><cbc:CompanyID>FR12345678901</cbc:CompanyID><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:PartyTaxScheme>
<cac:PartyLegalEntity><cbc:RegistrationName>Moulin SA</cbc:RegistrationName><cbc:CompanyID schemeID="0002">123456789</cbc:CompanyID></cac:PartyLegalEntity>
<cac:Contact><cbc:Name>Anne</cbc:Name><cbc:Telephone>+33 4 1234</cbc:Telephone><cbc:ElectronicMail>anne@moulin.example</cbc:ElectronicMail></cac:Contact>
</cac:Party></cac:AccountingSupplierParty>
<cac:AccountingCustomerParty><cac:Party>
<cbc:EndpointID schemeID="0208">0123456749</cbc:EndpointID>
<cac:PartyIdentification><cbc:ID>B-1</cbc:ID></cac:PartyIdentification>
<cac:PartyName><cbc:Name>Bakkerij</cbc:Name></cac:PartyName>
<cac:PostalAddress><cbc:StreetName>Kaai 2</cbc:StreetName><cbc:CityName>Gent</cbc:CityName><cbc:PostalZone>9000</cbc:PostalZone><cac:Country><cbc:IdentificationCode>BE</cbc:IdentificationCode></cac:Country></cac:PostalAddress>
<cac:PartyTaxScheme><cbc:CompanyID>BE0123456749</cbc:CompanyID><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:PartyTaxScheme>
<cac:PartyLegalEntity><cbc:RegistrationName>Bakkerij NV</cbc:RegistrationName><cbc:CompanyID>0123456749</cbc:CompanyID></cac:PartyLegalEntity>
</cac:Party></cac:AccountingCustomerParty>
<cac:PayeeParty><cac:PartyName><cbc:Name>Factor</cbc:Name></cac:PartyName></cac:PayeeParty>
<cac:TaxRepresentativeParty><cac:PartyName><cbc:Name>Agent</cbc:Name></cac:PartyName>
<cac:PostalAddress><cbc:StreetName>Rue 3</cbc:StreetName><cbc:CityName>Paris</cbc:CityName><cbc:PostalZone>75001</cbc:PostalZone><cac:Country><cbc:IdentificationCode>FR</cbc:IdentificationCode></cac:Country></cac:PostalAddress>
<cac:PartyTaxScheme><cbc:CompanyID>FR98765432109</cbc:CompanyID><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:PartyTaxScheme></cac:TaxRepresentativeParty>
<cac:Delivery><cbc:ActualDeliveryDate>2026-09-15</cbc:ActualDeliveryDate><cac:DeliveryLocation><cac:Address><cbc:CityName>Gent</cbc:CityName><cbc:PostalZone>9000</cbc:PostalZone><cac:Country><cbc:IdentificationCode>BE</cbc:IdentificationCode></cac:Country></cac:Address></cac:DeliveryLocation></cac:Delivery>
<cac:PaymentMeans><cbc:PaymentMeansCode>30</cbc:PaymentMeansCode><cbc:PaymentID>RF18</cbc:PaymentID><cac:PayeeFinancialAccount><cbc:ID>FR7630006000011234567890189</cbc:ID><cac:FinancialInstitutionBranch><cbc:ID>AGRIFRPP</cbc:ID></cac:FinancialInstitutionBranch></cac:PayeeFinancialAccount></cac:PaymentMeans>
<cac:PaymentTerms><cbc:Note>30 days net</cbc:Note></cac:PaymentTerms>
<cac:AllowanceCharge><cbc:ChargeIndicator>false</cbc:ChargeIndicator><cbc:AllowanceChargeReasonCode>95</cbc:AllowanceChargeReasonCode><cbc:AllowanceChargeReason>Discount</cbc:AllowanceChargeReason><cbc:MultiplierFactorNumeric>10</cbc:MultiplierFactorNumeric><cbc:Amount currencyID="EUR">100.00</cbc:Amount><cbc:BaseAmount currencyID="EUR">1000.00</cbc:BaseAmount><cac:TaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>20</cbc:Percent><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:TaxCategory></cac:AllowanceCharge>
<cac:AllowanceCharge><cbc:ChargeIndicator>true</cbc:ChargeIndicator><cbc:AllowanceChargeReasonCode>FC</cbc:AllowanceChargeReasonCode><cbc:AllowanceChargeReason>Freight</cbc:AllowanceChargeReason><cbc:MultiplierFactorNumeric>5</cbc:MultiplierFactorNumeric><cbc:Amount currencyID="EUR">50.00</cbc:Amount><cbc:BaseAmount currencyID="EUR">1000.00</cbc:BaseAmount><cac:TaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>20</cbc:Percent><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:TaxCategory></cac:AllowanceCharge>
<cac:TaxTotal><cbc:TaxAmount currencyID="EUR">190.00</cbc:TaxAmount><cac:TaxSubtotal><cbc:TaxableAmount currencyID="EUR">950.00</cbc:TaxableAmount><cbc:TaxAmount currencyID="EUR">190.00</cbc:TaxAmount><cac:TaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>20</cbc:Percent><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:TaxCategory></cac:TaxSubtotal></cac:TaxTotal>
<cac:LegalMonetaryTotal><cbc:LineExtensionAmount currencyID="EUR">1000.00</cbc:LineExtensionAmount><cbc:TaxExclusiveAmount currencyID="EUR">950.00</cbc:TaxExclusiveAmount><cbc:TaxInclusiveAmount currencyID="EUR">1140.00</cbc:TaxInclusiveAmount><cbc:AllowanceTotalAmount currencyID="EUR">100.00</cbc:AllowanceTotalAmount><cbc:ChargeTotalAmount currencyID="EUR">50.00</cbc:ChargeTotalAmount><cbc:PrepaidAmount currencyID="EUR">100.00</cbc:PrepaidAmount><cbc:PayableAmount currencyID="EUR">1040.00</cbc:PayableAmount></cac:LegalMonetaryTotal>
<cac:InvoiceLine><cbc:ID>1</cbc:ID><cbc:Note>As agreed</cbc:Note><cbc:InvoicedQuantity unitCode="HUR">10</cbc:InvoicedQuantity><cbc:LineExtensionAmount currencyID="EUR">400.00</cbc:LineExtensionAmount><cbc:AccountingCost>77</cbc:AccountingCost>
<cac:InvoicePeriod><cbc:StartDate>2026-09-02</cbc:StartDate><cbc:EndDate>2026-09-29</cbc:EndDate></cac:InvoicePeriod>
<cac:OrderLineReference><cbc:LineID>1</cbc:LineID></cac:OrderLineReference>
<cac:DocumentReference><cbc:ID schemeID="ABZ">AB-1</cbc:ID><cbc:DocumentTypeCode>130</cbc:DocumentTypeCode></cac:DocumentReference>
<cac:AllowanceCharge><cbc:ChargeIndicator>false</cbc:ChargeIndicator><cbc:AllowanceChargeReasonCode>95</cbc:AllowanceChargeReasonCode><cbc:AllowanceChargeReason>Rebate</cbc:AllowanceChargeReason><cbc:MultiplierFactorNumeric>10</cbc:MultiplierFactorNumeric><cbc:Amount currencyID="EUR">40.00</cbc:Amount><cbc:BaseAmount currencyID="EUR">400.00</cbc:BaseAmount></cac:AllowanceCharge>
<cac:AllowanceCharge><cbc:ChargeIndicator>true</cbc:ChargeIndicator><cbc:AllowanceChargeReasonCode>FC</cbc:AllowanceChargeReasonCode><cbc:AllowanceChargeReason>Travel</cbc:AllowanceChargeReason><cbc:MultiplierFactorNumeric>10</cbc:MultiplierFactorNumeric><cbc:Amount currencyID="EUR">40.00</cbc:Amount><cbc:BaseAmount currencyID="EUR">400.00</cbc:BaseAmount></cac:AllowanceCharge>
<cac:Item><cbc:Description>Milling of wheat</cbc:Description><cbc:Name>Milling</cbc:Name><cac:StandardItemIdentification><cbc:ID schemeID="0160">07300010000001</cbc:ID></cac:StandardItemIdentification><cac:OriginCountry><cbc:IdentificationCode>FR</cbc:IdentificationCode></cac:OriginCountry><cac:CommodityClassification><cbc:ItemClassificationCode listID="STH">4000</cbc:ItemClassificationCode></cac:CommodityClassification><cac:ClassifiedTaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>20.0</cbc:Percent><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:ClassifiedTaxCategory><cac:AdditionalItemProperty><cbc:Name>Grade</cbc:Name><cbc:Value>fine</cbc:Value></cac:AdditionalItemProperty></cac:Item>
<cac:Price><cbc:PriceAmount currencyID="EUR">40.00</cbc:PriceAmount><cbc:BaseQuantity unitCode="HUR">1</cbc:BaseQuantity><cac:AllowanceCharge><cbc:ChargeIndicator>false</cbc:ChargeIndicator><cbc:Amount currencyID="EUR">2.00</cbc:Amount><cbc:BaseAmount currencyID="EUR">42.00</cbc:BaseAmount></cac:AllowanceCharge></cac:Price></cac:InvoiceLine>
<cac:InvoiceLine><cbc:ID>2</cbc:ID><cbc:InvoicedQuantity unitCode="KGM">300</cbc:InvoicedQuantity><cbc:LineExtensionAmount currencyID="EUR">600.00</cbc:LineExtensionAmount>
<cac:Item><cbc:Name>Flour</cbc:Name><cac:ClassifiedTaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>20</cbc:Percent><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:ClassifiedTaxCategory></cac:Item>
<cac:Price><cbc:PriceAmount currencyID="EUR">20.00</cbc:PriceAmount><cbc:BaseQuantity unitCode="KGM">10</cbc:BaseQuantity></cac:Price></cac:InvoiceLine>
</Invoice>`

func both(t testing.TB, doc []byte) *Verdict {
	t.Helper()
	v, err := Validate(doc, Options{Sets: Sets(), Exactly: true})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestBasesAreValid(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]*elem{"invoice": base(t), "credit note": creditNote(t), "lines": manyLines(t, 50)} {
		for _, f := range both(t, d.bytes()).Findings {
			t.Errorf("%s: %s at %s: %s (%s, %s)", name, f.Rule, f.Location, f.Message, f.Actual, f.Expected)
		}
	}
}
