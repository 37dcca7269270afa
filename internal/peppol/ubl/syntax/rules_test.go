package syntax

import (
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/edi"
)

const tax = `<cac:PartyTaxScheme><cbc:CompanyID>1</cbc:CompanyID><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:PartyTaxScheme>`

// in wraps content into elements, outermost first.
func in(content string, names ...string) string {
	for i := len(names) - 1; i >= 0; i-- {
		content = "<" + names[i] + ">" + content + "</" + names[i] + ">"
	}
	return content
}

// twice repeats the innermost of the elements of a path.
func twice(path string) string {
	names := strings.Split(path, "/")
	last := "<" + names[len(names)-1] + ">x</" + names[len(names)-1] + ">"
	return in(last+last, names[:len(names)-1]...)
}

// TestRules breaks each rule whose test is code or a count, and shows a document that is nearly
// the same and keeps it. No rule is left out.
func TestRules(t *testing.T) {
	t.Parallel()
	seller := func(c string) string { return in(c, "cac:AccountingSupplierParty", "cac:Party") }
	buyer := func(c string) string { return in(c, "cac:AccountingCustomerParty", "cac:Party") }
	other := strings.Replace(tax, "VAT", "FC", 1)
	named := seller(`<cac:PartyLegalEntity><cbc:RegistrationName>Seller</cbc:RegistrationName></cac:PartyLegalEntity>`)
	payee := func(name, more string) string {
		return named + in(`<cac:PartyName><cbc:Name>`+name+`</cbc:Name></cac:PartyName>`+more, "cac:PayeeParty")
	}
	doc130 := func(c string) string {
		return in(`<cbc:ID>1</cbc:ID><cbc:DocumentTypeCode>130</cbc:DocumentTypeCode>`+c, "cac:AdditionalDocumentReference")
	}
	reason := func(indicator, reasons string) string {
		return in(`<cbc:ChargeIndicator>`+indicator+`</cbc:ChargeIndicator>`+reasons, "cac:AllowanceCharge")
	}
	line := func(c string) string { return in(c, "cac:InvoiceLine") }
	attr := func(element, a, value string) string {
		return `<` + element + ` ` + a + `="` + value + `">1</` + element + `>`
	}
	text := func(path, value string) string { return strings.Replace(element(path), ">x<", ">"+value+"<", 1) }
	item := `<cac:Item><cac:ClassifiedTaxCategory/></cac:Item>`
	seen := map[string]bool{}
	const reasonTwice = `<cbc:AllowanceChargeReason>a</cbc:AllowanceChargeReason><cbc:AllowanceChargeReason>b</cbc:AllowanceChargeReason>`
	for _, c := range []struct{ rule, bad, good string }{
		{"UBL-SR-01", twice("cac:ContractDocumentReference/cbc:ID"), element("cac:ContractDocumentReference/cbc:ID")},
		{"UBL-SR-02", twice("cac:ReceiptDocumentReference/cbc:ID"), element("cac:ReceiptDocumentReference/cbc:ID")},
		{"UBL-SR-03", twice("cac:DespatchDocumentReference/cbc:ID"), element("cac:DespatchDocumentReference/cbc:ID")},
		{"UBL-SR-04", doc130("") + doc130(""), doc130("") + element("cac:AdditionalDocumentReference/cbc:ID")},
		{"UBL-SR-05", twice("cac:PaymentTerms/cbc:Note"), element("cac:PaymentTerms/cbc:Note")},
		{"UBL-SR-06", twice("cac:BillingReference/cac:InvoiceDocumentReference"), element("cac:BillingReference/cac:InvoiceDocumentReference")},
		{"UBL-SR-07", element("cac:BillingReference/cac:InvoiceDocumentReference"), element("cac:BillingReference/cac:InvoiceDocumentReference/cbc:ID")},
		{"UBL-SR-08", twice("cac:InvoicePeriod"), element("cac:InvoicePeriod")},
		{"UBL-SR-09", seller(twice("cac:PartyLegalEntity/cbc:RegistrationName")), buyer(twice("cac:PartyLegalEntity/cbc:RegistrationName"))},
		{"UBL-SR-10", seller(twice("cac:PartyName/cbc:Name")), buyer(twice("cac:PartyName/cbc:Name"))},
		{"UBL-SR-11", seller(twice("cac:PartyLegalEntity/cbc:CompanyID")), buyer(twice("cac:PartyLegalEntity/cbc:CompanyID"))},
		{"UBL-SR-12", seller(tax + strings.Replace(tax, "VAT", "vat", 1)), seller(tax + other)},
		{"UBL-SR-13", seller(other + in(`<cbc:CompanyID>2</cbc:CompanyID><cac:TaxScheme/>`, "cac:PartyTaxScheme")), seller(tax + other)},
		{"UBL-SR-14", seller(twice("cac:PartyLegalEntity/cbc:CompanyLegalForm")), seller(element("cac:PartyLegalEntity/cbc:CompanyLegalForm"))},
		{"UBL-SR-15", buyer(twice("cac:PartyLegalEntity/cbc:RegistrationName")), seller(twice("cac:PartyLegalEntity/cbc:RegistrationName"))},
		{"UBL-SR-16", buyer(twice("cac:PartyIdentification/cbc:ID")), seller(twice("cac:PartyIdentification/cbc:ID"))},
		{"UBL-SR-17", buyer(twice("cac:PartyLegalEntity/cbc:CompanyID")), seller(twice("cac:PartyLegalEntity/cbc:CompanyID"))},
		{"UBL-SR-18", buyer(tax + tax), seller(tax + tax)},
		{"UBL-SR-19", payee("Seller", ""), payee("Factor", "")},
		{"UBL-SR-19", element("cac:PayeeParty/cac:PartyName/cbc:Name"), payee("Factor", "")},
		{"UBL-SR-19", payee("Factor", element("cac:PartyName/cbc:Name")), payee("Factor", "")},
		{"UBL-SR-20", payee("Factor", twice("cac:PartyIdentification/cbc:ID")), payee("Factor", in(attr("cbc:ID", "schemeID", "sepa")+"<cbc:ID>2</cbc:ID>", "cac:PartyIdentification"))},
		{"UBL-SR-21", payee("Factor", twice("cac:PartyLegalEntity/cbc:CompanyID")), payee("Factor", element("cac:PartyLegalEntity/cbc:CompanyID"))},
		{"UBL-SR-22", twice("cac:TaxRepresentativeParty/cac:PartyName/cbc:Name"), element("cac:TaxRepresentativeParty/cac:PartyName/cbc:Name")},
		{"UBL-SR-23", twice("cac:TaxRepresentativeParty/cac:PartyTaxScheme/cbc:CompanyID"), element("cac:TaxRepresentativeParty/cac:PartyTaxScheme/cbc:CompanyID")},
		{"UBL-SR-24", twice("cac:Delivery"), element("cac:Delivery")},
		{"UBL-SR-25", twice("cac:Delivery/cac:DeliveryParty/cac:PartyName/cbc:Name"), element("cac:Delivery/cac:DeliveryParty/cac:PartyName/cbc:Name")},
		{"UBL-SR-26", twice("cac:PaymentMeans/cbc:PaymentID"), element("cac:PaymentMeans/cbc:PaymentID")},
		{"UBL-SR-27", twice("cac:PaymentMeans/cbc:PaymentMeansCode"), element("cac:PaymentMeans/cbc:PaymentMeansCode")},
		{"UBL-SR-28", twice("cac:PaymentMeans/cac:PaymentMandate/cbc:ID"), element("cac:PaymentMeans/cac:PaymentMandate/cbc:ID")},
		{"UBL-SR-29", seller(in(attr("cbc:ID", "schemeID", "SEPA")+attr("cbc:ID", "schemeID", "sepa"), "cac:PartyIdentification")), seller(in(attr("cbc:ID", "schemeID", "SEPA")+attr("cbc:ID", "schemeID", "0088"), "cac:PartyIdentification"))},
		{"UBL-SR-30", reason(" false ", reasonTwice), reason("true", reasonTwice)},
		{"UBL-SR-30", reason("0", reasonTwice), reason("0", "<cbc:AllowanceChargeReason>a</cbc:AllowanceChargeReason>")},
		{"UBL-SR-31", reason("1", reasonTwice), reason("false", reasonTwice)},
		{"UBL-SR-31", reason("true", reasonTwice), reason("neither", reasonTwice)},
		{"UBL-SR-32", twice("cac:TaxTotal/cac:TaxSubtotal/cac:TaxCategory/cbc:TaxExemptionReason"), element("cac:TaxTotal/cac:TaxSubtotal/cac:TaxCategory/cbc:TaxExemptionReason")},
		{"UBL-SR-33", twice("cac:AdditionalDocumentReference/cbc:DocumentDescription"), element("cac:AdditionalDocumentReference/cbc:DocumentDescription")},
		{"UBL-SR-34", line(item + twice("cbc:Note")), line(item + element("cbc:Note"))},
		{"UBL-SR-35", line(twice("cac:OrderLineReference/cbc:LineID")), line(element("cac:OrderLineReference/cbc:LineID"))},
		{"UBL-SR-36", line(twice("cac:InvoicePeriod")), line(element("cac:InvoicePeriod"))},
		{"UBL-SR-37", line(twice("cac:Price/cac:AllowanceCharge/cbc:Amount")), line(element("cac:Price/cac:AllowanceCharge/cbc:Amount"))},
		{"UBL-SR-39", twice("cac:ProjectReference/cbc:ID"), element("cac:ProjectReference/cbc:ID")},
		{"UBL-SR-40", buyer(twice("cac:PartyName/cbc:Name")), seller(twice("cac:PartyName/cbc:Name"))},
		{"UBL-SR-42", seller(tax + tax + other), seller(tax + other)},
		{"UBL-SR-43", element("cac:AdditionalDocumentReference/cbc:DocumentTypeCode"), doc130("")},
		{"UBL-SR-43", element("cac:AdditionalDocumentReference/cbc:ID/@schemeID"), element("cac:AdditionalDocumentReference/cbc:ID")},
		{"UBL-SR-43", text("cac:AdditionalDocumentReference/cbc:DocumentTypeCode", "50"), doc130("")},
		{"UBL-SR-44", text("cac:PaymentMeans/cbc:PaymentID", "1") + text("cac:PaymentMeans/cbc:PaymentID", "2"), text("cac:PaymentMeans/cbc:PaymentID", "1") + text("cac:PaymentMeans/cbc:PaymentID", "1")},
		{"UBL-SR-45", twice("cac:PaymentMeans/cbc:PaymentDueDate"), element("cac:PaymentMeans/cbc:PaymentDueDate")},
		{"UBL-SR-46", element("cac:PaymentMeans/cbc:PaymentMeansCode/@name") + element("cac:PaymentMeans/cbc:PaymentMeansCode/@name"), element("cac:PaymentMeans/cbc:PaymentMeansCode") + element("cac:PaymentMeans/cbc:PaymentMeansCode/@name")},
		{"UBL-SR-47", text("cac:PaymentMeans/cbc:PaymentMeansCode", "30") + text("cac:PaymentMeans/cbc:PaymentMeansCode", "58"), text("cac:PaymentMeans/cbc:PaymentMeansCode", "30") + text("cac:PaymentMeans/cbc:PaymentMeansCode", "30")},
		{"UBL-SR-48", line(""), line(item)},
		{"UBL-SR-48", line(item + item), line(item)},
		{"UBL-SR-49", twice("cac:InvoicePeriod/cbc:DescriptionCode"), line(twice("cac:InvoicePeriod/cbc:DescriptionCode"))},
		{"UBL-SR-50", line(twice("cac:Item/cbc:Description")), line(element("cac:Item/cbc:Description"))},
		{"UBL-SR-51", seller(twice("cac:PostalAddress/cac:AddressLine")), seller(element("cac:PostalAddress/cac:AddressLine"))},
		{"UBL-SR-52", line(twice("cac:DocumentReference")), line(element("cac:DocumentReference"))},
		{"UBL-SR-53", element("cac:PartyTaxScheme/cbc:CompanyID"), tax},
		{"UBL-SR-53", element("cac:PartyTaxScheme/cac:TaxScheme/cbc:ID"), tax},
		{"UBL-SR-54", twice("cac:PaymentMeans/cac:CardAccount"), element("cac:PaymentMeans/cac:CardAccount")},
		{"UBL-SR-55", twice("cac:PaymentMeans/cac:PaymentMandate"), element("cac:PaymentMeans/cac:PaymentMandate")},
		{"UBL-SR-56", twice("cac:OriginatorDocumentReference/cbc:ID"), element("cac:OriginatorDocumentReference/cbc:ID")},

		{"UBL-DT-01", text("cac:LegalMonetaryTotal/cbc:PayableAmount", "25.000"), text("cac:LegalMonetaryTotal/cbc:PayableAmount", "25.00")},
		{"UBL-DT-01", text("cac:LegalMonetaryTotal/cbc:PayableAmount", "25.00 "), text("cac:Price/cbc:PriceAmount", "25.0000")},
		{"UBL-DT-01", `<x:FeeAmount xmlns:x="urn:x">1.999</x:FeeAmount>`, `<x:Fee xmlns:x="urn:x">1.999</x:Fee>`},
		{"UBL-DT-01", in(`<cbc:Amount>1.999</cbc:Amount>`, "cac:Price"), in(`<cbc:Amount>1.999</cbc:Amount>`, "cac:Price", "cac:AllowanceCharge")},
		{"UBL-DT-06", element("cbc:EmbeddedDocumentBinaryObject/@filename"), element("cbc:EmbeddedDocumentBinaryObject/@mimeCode")},
		{"UBL-DT-07", element("cbc:EmbeddedDocumentBinaryObject/@mimeCode"), element("cbc:EmbeddedDocumentBinaryObject/@filename")},
		{"UBL-DT-07", `<x:BinaryObject xmlns:x="urn:x"/>`, `<x:BinaryObjects xmlns:x="urn:x"/>`},
		{"UBL-DT-18", element("cbc:ID/@name"), element("cac:PaymentMeans/cbc:PaymentMeansCode/@name")},

		{"UBL-CR-002", text("cbc:UBLVersionID", "2.0"), text("cbc:UBLVersionID", "2.1")},
		{"UBL-CR-412", element("cac:PaymentMeans/cbc:PaymentDueDate"), ""},
		{"UBL-CR-652", element("cac:Clause/cac:PartyTaxScheme/cbc:CompanyID/@schemeID"), element("cac:PartyTaxScheme/cbc:CompanyID")},
		{"UBL-CR-660", element("cac:Country/cbc:IdentificationCode/@listID"), element("cac:OriginCountry/cbc:IdentificationCode/@listID")},
		{"UBL-CR-662", element("cac:AllowanceCharge/cbc:AllowanceChargeReasonCode/@listID"), element("cac:AllowanceCharge/cbc:AllowanceChargeReasonCode")},
		{"UBL-CR-664", element("cac:FinancialInstitution"), ""},
		{"UBL-CR-665", element("cac:AdditionalDocumentReference/cbc:ID/@schemeID"), in(attr("cbc:ID", "schemeID", "AAA")+"<cbc:DocumentTypeCode>130</cbc:DocumentTypeCode>", "cac:AdditionalDocumentReference")},
		{"UBL-CR-666", doc130(`<cac:Attachment/>`), element("cac:AdditionalDocumentReference/cac:Attachment")},
		{"UBL-CR-667", line(element("cac:Item/cac:BuyersItemIdentification/cbc:ID/@schemeID")), line(element("cac:Item/cac:StandardItemIdentification/cbc:ID/@schemeID"))},
		{"UBL-CR-668", line(element("cac:Item/cac:SellersItemIdentification/cbc:ID/@schemeID")), line(element("cac:Item/cac:BuyersItemIdentification/cbc:ID/@schemeID"))},
		{"UBL-CR-669", element("cac:Price/cac:AllowanceCharge/cbc:AllowanceChargeReasonCode"), element("cac:AllowanceCharge/cbc:AllowanceChargeReasonCode")},
		{"UBL-CR-670", element("cac:Price/cac:AllowanceCharge/cbc:AllowanceChargeReason"), element("cac:AllowanceCharge/cbc:AllowanceChargeReason")},
		{"UBL-CR-671", element("cac:Price/cac:AllowanceCharge/cbc:MultiplierFactorNumeric"), element("cac:AllowanceCharge/cbc:MultiplierFactorNumeric")},
		{"UBL-CR-673", doc130(`<cbc:DocumentDescription>x</cbc:DocumentDescription>`), element("cac:AdditionalDocumentReference/cbc:DocumentDescription")},
		{"UBL-CR-674", element("cac:CardAccount/cbc:PrimaryAccountNumberID/@schemeID"), element("cac:CardAccount/cbc:PrimaryAccountNumberID")},
		{"UBL-CR-675", element("cac:CardAccount/cbc:NetworkID/@schemeID"), element("cbc:NetworkID/@schemeID")},
		{"UBL-CR-676", element("cac:PaymentMandate/cbc:ID/@schemeID"), element("cac:PaymentMandate/cac:PayerFinancialAccount/cbc:ID/@schemeID")},
		{"UBL-CR-677", element("cac:PaymentMandate/cac:PayerFinancialAccount/cbc:ID/@schemeID"), element("cac:PayerFinancialAccount/cbc:ID/@schemeID")},
		{"UBL-CR-678", element("cac:TaxCategory/cbc:ID/@schemeID"), element("cac:TaxCategory/cac:TaxScheme/cbc:ID/@schemeID")},
		{"UBL-CR-679", element("cac:ClassifiedTaxCategory/cbc:ID/@schemeID"), element("cac:TaxCategory/cbc:ID/@schemeID")},
		{"UBL-CR-680", element("cac:PaymentMeans/cac:PayerFinancialAccount"), element("cac:PaymentMeans/cac:PaymentMandate/cac:PayerFinancialAccount")},

		{"BR-CL-01", text("cbc:InvoiceTypeCode", "381"), text("cbc:InvoiceTypeCode", " 380 ")},
		{"BR-CL-01", text("cbc:CreditNoteTypeCode", "380"), text("cbc:CreditNoteTypeCode", "381")},
		{"BR-CL-03", element("cbc:TaxAmount"), attr("cbc:TaxAmount", "currencyID", "EUR")},
		{"BR-CL-03", attr("cbc:PriceAmount", "currencyID", "EURO"), attr("cbc:TransactionCurrencyTaxAmount", "currencyID", "EURO")},
		{"BR-CL-04", text("cbc:DocumentCurrencyCode", "eur"), text("cbc:DocumentCurrencyCode", "EUR")},
		{"BR-CL-05", text("cbc:TaxCurrencyCode", ""), text("cbc:TaxCurrencyCode", "SEK")},
		{"BR-CL-06", text("cac:InvoicePeriod/cbc:DescriptionCode", "4"), text("cac:InvoicePeriod/cbc:DescriptionCode", "432")},
		{"BR-CL-07", in(attr("cbc:ID", "schemeID", "nope")+"<cbc:DocumentTypeCode>130</cbc:DocumentTypeCode>", "cac:DocumentReference"), in(attr("cbc:ID", "schemeID", "nope"), "cac:DocumentReference")},
		{"BR-CL-08", text("cbc:Note", "#QQQ#text"), text("cbc:Note", "#AAI#text")},
		{"BR-CL-08", text("cbc:Note", "a #äöü# b"), text("cbc:Note", "item #7, colour #12")},
		{"BR-CL-10", buyer(in(attr("cbc:ID", "schemeID", "SEPA"), "cac:PartyIdentification")), seller(in(attr("cbc:ID", "schemeID", "SEPA"), "cac:PartyIdentification"))},
		{"BR-CL-10", seller(in(attr("cbc:ID", "schemeID", "9999"), "cac:PartyIdentification")), seller(in(attr("cbc:ID", "schemeID", "0088"), "cac:PartyIdentification"))},
		{"BR-CL-11", in(attr("cbc:CompanyID", "schemeID", "9999"), "cac:PartyLegalEntity"), in(attr("cbc:CompanyID", "schemeID", "0192"), "cac:PartyLegalEntity")},
		{"BR-CL-13", in(attr("cbc:ItemClassificationCode", "listID", "nope"), "cac:CommodityClassification"), in(attr("cbc:ItemClassificationCode", "listID", "STI"), "cac:CommodityClassification")},
		{"BR-CL-14", text("cac:Country/cbc:IdentificationCode", "no"), text("cac:Country/cbc:IdentificationCode", "NO")},
		{"BR-CL-15", text("cac:OriginCountry/cbc:IdentificationCode", "N O"), text("cac:OriginCountry/cbc:IdentificationCode", "NO")},
		{"BR-CL-16", text("cac:PaymentMeans/cbc:PaymentMeansCode", "99"), text("cac:PaymentMeans/cbc:PaymentMeansCode", "ZZZ")},
		{"BR-CL-17", text("cac:TaxCategory/cbc:ID", "X"), text("cac:TaxCategory/cbc:ID", "S")},
		{"BR-CL-18", text("cac:ClassifiedTaxCategory/cbc:ID", "s"), text("cac:ClassifiedTaxCategory/cbc:ID", "S")},
		{"BR-CL-19", reason("false", "<cbc:AllowanceChargeReasonCode>FC</cbc:AllowanceChargeReasonCode>"), reason("false", "<cbc:AllowanceChargeReasonCode>95</cbc:AllowanceChargeReasonCode>")},
		{"BR-CL-20", reason("true", "<cbc:AllowanceChargeReasonCode>95</cbc:AllowanceChargeReasonCode>"), reason("true", "<cbc:AllowanceChargeReasonCode>FC</cbc:AllowanceChargeReasonCode>")},
		{"BR-CL-21", in(attr("cbc:ID", "schemeID", "GTIN"), "cac:StandardItemIdentification"), in(attr("cbc:ID", "schemeID", "0160"), "cac:StandardItemIdentification")},
		{"BR-CL-22", text("cbc:TaxExemptionReasonCode", "VATEX-XX"), text("cbc:TaxExemptionReasonCode", "vatex-eu-ae")},
		{"BR-CL-23", attr("cbc:InvoicedQuantity", "unitCode", "RO"), attr("cbc:InvoicedQuantity", "unitCode", "XRO")},
		{"BR-CL-24", attr("cbc:EmbeddedDocumentBinaryObject", "mimeCode", "application/PDF"), attr("cbc:EmbeddedDocumentBinaryObject", "mimeCode", "application/pdf")},
		{"BR-CL-25", attr("cbc:EndpointID", "schemeID", "ZZ"), attr("cbc:EndpointID", "schemeID", "0192")},
		{"BR-CL-26", in(attr("cbc:ID", "schemeID", "EAN"), "cac:DeliveryLocation"), in(attr("cbc:ID", "schemeID", "0088"), "cac:DeliveryLocation")},
	} {
		if got := fired(t, document("Invoice", c.bad)); got[c.rule] == 0 {
			t.Errorf("%s is kept by %s", c.rule, c.bad)
		}
		if got := fired(t, document("Invoice", c.good)); got[c.rule] != 0 {
			t.Errorf("%s is broken by %s", c.rule, c.good)
		}
		seen[c.rule] = true
	}
	for name, rule := range map[string]string{
		"schemeName": "UBL-DT-08", "schemeAgencyName": "UBL-DT-09", "schemeDataURI": "UBL-DT-10", "schemeURI": "UBL-DT-11", "format": "UBL-DT-12",
		"unitCodeListIdentifier": "UBL-DT-13", "unitCodeListAgencyIdentifier": "UBL-DT-14", "unitCodeListAgencyName": "UBL-DT-15",
		"listAgencyName": "UBL-DT-16", "listName": "UBL-DT-17", "languageID": "UBL-DT-19", "listURI": "UBL-DT-20", "listSchemeURI": "UBL-DT-21",
		"languageLocaleID": "UBL-DT-22", "uri": "UBL-DT-23", "currencyCodeListVersionID": "UBL-DT-24", "characterSetCode": "UBL-DT-25",
		"encodingCode": "UBL-DT-26", "schemeAgencyID": "UBL-DT-27", "listAgencyID": "UBL-DT-28", "unitCodeListID": "UBL-CR-663",
	} {
		if got := fired(t, document("Invoice", attr("cbc:Note", name, "1")+line(attr("cbc:ID", name, "1")))); got[rule] != 1 {
			t.Errorf("%s: reported %d times", rule, got[rule])
		}
		if got := fired(t, document("Invoice", `<cbc:Note xmlns:x="urn:x" x:`+name+`="1"/>`)); got[rule] != 0 {
			t.Errorf("%s: reported for an attribute of another namespace", rule)
		}
		seen[rule] = true
	}
	for i, r := range Rules() {
		if i < fixedCount && !seen[r.ID] {
			t.Errorf("%s has no test", r.ID)
		}
		if want := r.ID[:7] == "UBL-CR-" && r.ID != "UBL-CR-666" && r.ID != "UBL-CR-673" || r.ID[:7] == "UBL-DT-" && r.ID > "UBL-DT-07"; want != (r.Severity == edi.Warning) {
			t.Errorf("%s is %s", r.ID, r.Severity)
		}
		if r.index != i || r.Message == "" || strings.ContainsAny(r.Message, "\n") || !strings.HasSuffix(r.Message, ".") {
			t.Errorf("%s at %d: %q", r.ID, r.index, r.Message)
		}
	}
	if n := len(Rules()); n != 779 {
		t.Errorf("%d rules", n)
	}
}

// TestCreditNote shows the two rules that tell credit notes apart.
func TestCreditNote(t *testing.T) {
	t.Parallel()
	got := fired(t, document("CreditNote", `<cac:PaymentMeans><cbc:PaymentDueDate>2026-01-01</cbc:PaymentDueDate></cac:PaymentMeans>`+
		`<cac:AdditionalDocumentReference><cbc:ID>1</cbc:ID><cbc:DocumentTypeCode>50</cbc:DocumentTypeCode></cac:AdditionalDocumentReference>`))
	if len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
