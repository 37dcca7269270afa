package peppol

import (
	"strings"
	"testing"
)

// places that many mutants change.
const (
	seller   = "cac:AccountingSupplierParty/cac:Party/"
	buyer    = "cac:AccountingCustomerParty/cac:Party/"
	payeeOf  = "cac:PayeeParty/"
	agent    = "cac:TaxRepresentativeParty/"
	low      = "cac:AllowanceCharge/"
	high     = "cac:AllowanceCharge[2]/"
	lineOne  = "cac:InvoiceLine/"
	lineTwo  = "cac:InvoiceLine[2]/"
	lineLow  = lineOne + "cac:AllowanceCharge/"
	lineHigh = lineOne + "cac:AllowanceCharge[2]/"
	total    = "cac:LegalMonetaryTotal/"
	part     = "cac:TaxTotal/cac:TaxSubtotal/"
	pay      = "cac:PaymentMeans/"
	attached = "cac:AdditionalDocumentReference/"
	vatID    = "<cac:PartyTaxScheme" + namespaces + "><cbc:CompanyID>%</cbc:CompanyID><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:PartyTaxScheme>"
	taxID    = "<cac:PartyTaxScheme" + namespaces + "><cbc:CompanyID>%</cbc:CompanyID><cac:TaxScheme><cbc:ID>TAX</cbc:ID></cac:TaxScheme></cac:PartyTaxScheme>"
)

func with(fragment, value string) string { return strings.Replace(fragment, "%", value, 1) }

// variant is a valid document: base or creditNote with changes.
type variant struct {
	credit bool
	edits  []string
}

// zero makes base a document of a category without tax.
func zero(code string) []string {
	edits := []string{part + "cbc:TaxAmount=0.00", "cac:TaxTotal/cbc:TaxAmount=0.00", total + "cbc:TaxInclusiveAmount=950.00", total + "cbc:PayableAmount=850.00"}
	return append(edits, categorised(code, "0")...)
}

// categorised puts another category and rate wherever base has one.
func categorised(code, rate string) []string {
	var edits []string
	for _, p := range []string{low + "cac:TaxCategory/", high + "cac:TaxCategory/", part + "cac:TaxCategory/", lineOne + "cac:Item/cac:ClassifiedTaxCategory/", lineTwo + "cac:Item/cac:ClassifiedTaxCategory/"} {
		edits = append(edits, p+"cbc:ID="+code, p+"cbc:Percent="+rate)
	}
	return edits
}

func exemption(text string) string {
	return ">" + part + "cac:TaxCategory/cbc:Percent <cbc:TaxExemptionReason" + namespaces + ">" + text + "</cbc:TaxExemptionReason>"
}

// in puts both parties into a country.
func in(country, vatSeller, vatBuyer string) []string {
	return []string{
		seller + "cac:PostalAddress/cac:Country/cbc:IdentificationCode=" + country, buyer + "cac:PostalAddress/cac:Country/cbc:IdentificationCode=" + country,
		seller + "cac:PartyTaxScheme/cbc:CompanyID=" + vatSeller, buyer + "cac:PartyTaxScheme/cbc:CompanyID=" + vatBuyer,
	}
}

func document130(description, id string) string {
	return ">" + attached[:len(attached)-1] + " <cac:AdditionalDocumentReference" + namespaces + "><cbc:ID>" + id + "</cbc:ID><cbc:DocumentDescription>" + description + "</cbc:DocumentDescription></cac:AdditionalDocumentReference>"
}

// variants are the valid documents that the mutants start from, by name. Each must be without a
// finding.
func variants() map[string]variant {
	join := func(lists ...[]string) []string {
		var all []string
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	anyRate := func(code string) []string { return categorised(code, "20") }
	greekNumber := "cbc:ID=123456783|01/10/2026|1|1.1|A|7"
	return map[string]variant{
		"":       {},
		"credit": {credit: true},
		"Z":      {edits: zero("Z")},
		"E":      {edits: append(zero("E"), exemption("exempt"))},
		"AE":     {edits: append(zero("AE"), exemption("reverse charge"))},
		"IC":     {edits: append(zero("K"), exemption("intra-community"))},
		"G":      {edits: append(zero("G"), exemption("export"))},
		"S":      {},
		"AF":     {edits: anyRate("L")},
		"AG":     {edits: anyRate("M")},
		"O": {edits: join(zero("O"), []string{exemption("not subject"),
			"-" + low + "cac:TaxCategory/cbc:Percent", "-" + high + "cac:TaxCategory/cbc:Percent", "-" + part + "cac:TaxCategory/cbc:Percent",
			"-" + lineOne + "cac:Item/cac:ClassifiedTaxCategory/cbc:Percent", "-" + lineTwo + "cac:Item/cac:ClassifiedTaxCategory/cbc:Percent",
			"-" + seller + "cac:PartyTaxScheme", "-" + buyer + "cac:PartyTaxScheme", "-cac:TaxRepresentativeParty"})},
		"SEK": {edits: []string{
			">cbc:DocumentCurrencyCode <cbc:TaxCurrencyCode" + namespaces + ">SEK</cbc:TaxCurrencyCode>",
			">cac:TaxTotal <cac:TaxTotal" + namespaces + "><cbc:TaxAmount currencyID=\"SEK\">2000.00</cbc:TaxAmount></cac:TaxTotal>"}},
		"debit": {edits: []string{pay + "cbc:PaymentMeansCode=59", "-" + pay + "cac:PayeeFinancialAccount",
			"+cac:PaymentMeans <cac:PaymentMandate" + namespaces + "><cbc:ID>M1</cbc:ID><cac:PayerFinancialAccount><cbc:ID>DE89370400440532013000</cbc:ID></cac:PayerFinancialAccount></cac:PaymentMandate>"}},
		"card": {edits: []string{pay + "cbc:PaymentMeansCode=48", "-" + pay + "cac:PayeeFinancialAccount",
			"+cac:PaymentMeans <cac:CardAccount" + namespaces + "><cbc:PrimaryAccountNumberID>1234561234</cbc:PrimaryAccountNumberID><cbc:NetworkID>x</cbc:NetworkID></cac:CardAccount>"}},
		"NO": {edits: join(in("NO", "NO974760673MVA", "NO974760673MVA"), []string{">" + seller + "cac:PartyTaxScheme " + with(taxID, "Foretaksregisteret"), "-cac:TaxRepresentativeParty"})},
		"DK": {edits: join(in("DK", "DK12345678", "DK12345678"), []string{
			seller + "cac:PartyLegalEntity/cbc:CompanyID=12345678", seller + "cac:PartyLegalEntity/cbc:CompanyID@schemeID=0184",
			buyer + "cac:PartyLegalEntity/cbc:CompanyID=12345678", buyer + "cac:PartyLegalEntity/cbc:CompanyID@schemeID=0184",
			seller + "cac:PartyIdentification/cbc:ID@schemeID=0060", buyer + "cac:PartyIdentification/cbc:ID@schemeID=0060", pay + "cbc:PaymentMeansCode=58"})},
		"IT": {edits: join(in("IT", "IT12345678901", "IT12345678901"), []string{">" + seller + "cac:PartyTaxScheme " + with(taxID, "RSSMRA85T10A562S")})},
		"SE": {edits: join(in("SE", "SE556036079301", "SE556036079301"), categorised("S", "25"), []string{
			seller + "cac:PartyLegalEntity/cbc:CompanyID=5560360793", "-" + seller + "cac:PartyLegalEntity/cbc:CompanyID@schemeID", ">" + seller + "cac:PartyTaxScheme " + with(taxID, "Godkänd för F-skatt"),
			part + "cbc:TaxAmount=237.50", "cac:TaxTotal/cbc:TaxAmount=237.50", total + "cbc:TaxInclusiveAmount=1187.50", total + "cbc:PayableAmount=1087.50",
			pay + "cac:PayeeFinancialAccount/cbc:ID=1234567", pay + "cac:PayeeFinancialAccount/cac:FinancialInstitutionBranch/cbc:ID=SE:BANKGIRO"})},
		"NL": {edits: join(in("NL", "NL123456789B01", "NL123456789B01"), []string{
			seller + "cac:PartyLegalEntity/cbc:CompanyID=12345678", seller + "cac:PartyLegalEntity/cbc:CompanyID@schemeID=0106",
			buyer + "cac:PartyLegalEntity/cbc:CompanyID=12345678901234567890", buyer + "cac:PartyLegalEntity/cbc:CompanyID@schemeID=0190",
			agent + "cac:PostalAddress/cac:Country/cbc:IdentificationCode=NL"})},
		"DE": {edits: join(in("DE", "DE123456789", "DE123456789"), []string{pay + "cac:PayeeFinancialAccount/cbc:ID=DE89370400440532013000", pay + "cbc:PaymentMeansCode=58"})},
		"GR": {edits: join(in("GR", "EL123456783", "EL123456783"), []string{greekNumber,
			seller + "cbc:EndpointID=123456783", seller + "cbc:EndpointID@schemeID=9933", buyer + "cbc:EndpointID=123456783", buyer + "cbc:EndpointID@schemeID=9933",
			document130("##M.AR.K##", "400001"), ">cac:AdditionalDocumentReference <cac:AdditionalDocumentReference" + namespaces + "><cbc:ID>1</cbc:ID><cbc:DocumentDescription>##INVOICE|URL##</cbc:DocumentDescription><cac:Attachment><cac:ExternalReference><cbc:URI>https://example.com</cbc:URI></cac:ExternalReference></cac:Attachment></cac:AdditionalDocumentReference>"})},
		"IS": {edits: join(in("IS", "IS12345", "IS12345"), []string{
			seller + "cac:PartyLegalEntity/cbc:CompanyID@schemeID=0196", buyer + "cac:PartyLegalEntity/cbc:CompanyID@schemeID=0196",
			pay + "cbc:PaymentMeansCode=42", pay + "cac:PayeeFinancialAccount/cbc:ID=123456789012", document130("EINDAGI", "2026-11-15")})},
	}
}

func (v variant) build(t testing.TB) *elem {
	t.Helper()
	edits := v.edits
	d := base(t)
	if v.credit {
		d = creditNote(t)
	}
	return d.edit(t, edits...)
}

// mutant breaks one rule of a valid document.
type mutant struct {
	of    string // name of the variant
	edits []string
}

func m(edits ...string) mutant            { return mutant{edits: edits} }
func of(v string, edits ...string) mutant { return mutant{v, edits} }
func same(r map[string]mutant, x mutant, ids ...string) {
	for _, id := range ids {
		r[id] = x
	}
}

// mutants has one document for each rule about the model that a document can break.
func mutants() map[string]mutant {
	r := map[string]mutant{}
	vatMutants(r)
	coreMutants(r)
	bisMutants(r)
	nationalMutants(r)
	return r
}

func vatMutants(r map[string]mutant) {
	rates := map[string]string{"S": "0", "AF": "-1", "AG": "-1"}
	for _, f := range vatFamilies() {
		id := func(n string) string { return "BR-" + f.id + "-" + n }
		r[id("01")] = of(f.id, part+"cac:TaxCategory/cbc:ID=X")
		unknown := of(f.id, "-"+seller+"cac:PartyTaxScheme", "-cac:TaxRepresentativeParty")
		rate := func(path string) mutant {
			if v, ok := rates[f.id]; ok {
				return of(f.id, path+"cbc:Percent="+v)
			}
			return of(f.id, path+"cbc:Percent=5")
		}
		if f.id == "O" {
			unknown = of(f.id, ">"+seller+"cac:PostalAddress "+with(vatID, "FR1"))
			rate = func(path string) mutant {
				return of(f.id, ">"+path+"cbc:ID <cbc:Percent"+namespaces+">0</cbc:Percent>")
			}
		}
		same(r, unknown, id("02"), id("03"), id("04"))
		r[id("05")] = rate(lineTwo + "cac:Item/cac:ClassifiedTaxCategory/")
		r[id("06")] = rate(low + "cac:TaxCategory/")
		r[id("07")] = rate(high + "cac:TaxCategory/")
		r[id("08")] = of(f.id, part+"cbc:TaxableAmount=948.00")
		r[id("09")] = of(f.id, part+"cbc:TaxAmount=7.00")
		if f.reason {
			r[id("10")] = of(f.id, "-"+part+"cac:TaxCategory/cbc:TaxExemptionReason")
		} else {
			r[id("10")] = of(f.id, exemption("none"))
		}
	}
	r["BR-IC-11"] = of("IC", "-cac:Delivery/cbc:ActualDeliveryDate", "-cac:InvoicePeriod")
	r["BR-IC-12"] = of("IC", "-cac:Delivery/cac:DeliveryLocation")
	r["BR-O-11"] = of("O", "2cac:TaxTotal/cac:TaxSubtotal", "cac:TaxTotal/cac:TaxSubtotal[2]/cac:TaxCategory/cbc:ID=E")
	r["BR-O-12"] = of("O", lineTwo+"cac:Item/cac:ClassifiedTaxCategory/cbc:ID=E")
	r["BR-O-13"] = of("O", low+"cac:TaxCategory/cbc:ID=E")
	r["BR-O-14"] = of("O", high+"cac:TaxCategory/cbc:ID=E")
	same(r, m(lineTwo+"cac:Item/cac:ClassifiedTaxCategory/cbc:ID=B"), "BR-B-01", "BR-B-02")
}

func coreMutants(r map[string]mutant) {
	r["BR-01"] = m("cbc:CustomizationID= ")
	r["BR-02"] = m("-cbc:ID")
	r["BR-03"] = m("-cbc:IssueDate")
	r["BR-04"] = m("-cbc:InvoiceTypeCode")
	r["BR-05"] = m("-cbc:DocumentCurrencyCode")
	r["BR-06"] = m("-" + seller + "cac:PartyLegalEntity/cbc:RegistrationName")
	r["BR-07"] = m(buyer + "cac:PartyLegalEntity/cbc:RegistrationName= ")
	r["BR-08"] = m("-" + seller + "cac:PostalAddress")
	r["BR-09"] = m("-" + seller + "cac:PostalAddress/cac:Country")
	r["BR-10"] = m("-" + buyer + "cac:PostalAddress")
	r["BR-11"] = m("-" + buyer + "cac:PostalAddress/cac:Country")
	r["BR-12"] = m("-" + total + "cbc:LineExtensionAmount")
	r["BR-13"] = m("-" + total + "cbc:TaxExclusiveAmount")
	r["BR-14"] = m("-" + total + "cbc:TaxInclusiveAmount")
	r["BR-15"] = m("-" + total + "cbc:PayableAmount")
	r["BR-16"] = m("-cac:InvoiceLine", "-cac:InvoiceLine")
	r["BR-17"] = m(payeeOf + "cac:PartyName/cbc:Name=Moulin")
	r["BR-18"] = m("-" + agent + "cac:PartyName")
	r["BR-19"] = m("-" + agent + "cac:PostalAddress")
	r["BR-20"] = m("-" + agent + "cac:PostalAddress/cac:Country")
	r["BR-21"] = m("-" + lineOne + "cbc:ID")
	r["BR-22"] = m("-" + lineOne + "cbc:InvoicedQuantity")
	r["BR-23"] = m("-" + lineOne + "cbc:InvoicedQuantity@unitCode")
	r["BR-24"] = m("-" + lineOne + "cbc:LineExtensionAmount")
	r["BR-25"] = m("-" + lineOne + "cac:Item/cbc:Name")
	r["BR-26"] = m("-" + lineOne + "cac:Price/cbc:PriceAmount")
	r["BR-27"] = m(lineOne + "cac:Price/cbc:PriceAmount=-40.00")
	r["BR-28"] = m(lineOne + "cac:Price/cac:AllowanceCharge/cbc:BaseAmount=-42.00")
	r["BR-29"] = m("cac:InvoicePeriod/cbc:EndDate=2026-08-31")
	r["BR-30"] = m(lineOne + "cac:InvoicePeriod/cbc:EndDate=2026-09-01")
	r["BR-31"] = m("-" + low + "cbc:Amount")
	r["BR-32"] = m("-" + low + "cac:TaxCategory")
	same(r, m("-"+low+"cbc:AllowanceChargeReason", "-"+low+"cbc:AllowanceChargeReasonCode"), "BR-33", "BR-CO-21")
	r["BR-36"] = m("-" + high + "cbc:Amount")
	r["BR-37"] = m(high + "cac:TaxCategory/cac:TaxScheme/cbc:ID=GST")
	same(r, m("-"+high+"cbc:AllowanceChargeReason", "-"+high+"cbc:AllowanceChargeReasonCode"), "BR-38", "BR-CO-22")
	r["BR-41"] = m("-" + lineLow + "cbc:Amount")
	same(r, m("-"+lineLow+"cbc:AllowanceChargeReason", "-"+lineLow+"cbc:AllowanceChargeReasonCode"), "BR-42", "BR-CO-23")
	r["BR-43"] = m("-" + lineHigh + "cbc:Amount")
	same(r, m("-"+lineHigh+"cbc:AllowanceChargeReason", "-"+lineHigh+"cbc:AllowanceChargeReasonCode"), "BR-44", "BR-CO-24")
	r["BR-45"] = m("-" + part + "cbc:TaxableAmount")
	r["BR-46"] = m("-" + part + "cbc:TaxAmount")
	r["BR-47"] = m("-" + part + "cac:TaxCategory/cbc:ID")
	r["BR-48"] = m("-" + part + "cac:TaxCategory/cbc:Percent")
	r["BR-49"] = m("-" + pay + "cbc:PaymentMeansCode")
	r["BR-50"] = m(pay + "cac:PayeeFinancialAccount/cbc:ID= ")
	r["BR-51"] = of("card", pay+"cac:CardAccount/cbc:PrimaryAccountNumberID=1234567890123456")
	r["BR-52"] = m("-" + attached + "cbc:ID")
	r["BR-53"] = of("SEK", "cbc:TaxCurrencyCode=NOK")
	r["BR-54"] = m("-" + lineOne + "cac:Item/cac:AdditionalItemProperty/cbc:Value")
	r["BR-55"] = m("-cac:BillingReference/cac:InvoiceDocumentReference/cbc:ID")
	r["BR-56"] = m("-" + agent + "cac:PartyTaxScheme")
	r["BR-57"] = m("-cac:Delivery/cac:DeliveryLocation/cac:Address/cac:Country")
	r["BR-61"] = m("-" + pay + "cac:PayeeFinancialAccount")
	r["BR-62"] = m("-" + seller + "cbc:EndpointID@schemeID")
	r["BR-63"] = m("-" + buyer + "cbc:EndpointID@schemeID")
	r["BR-64"] = m("-" + lineOne + "cac:Item/cac:StandardItemIdentification/cbc:ID@schemeID")
	r["BR-65"] = m("-" + lineOne + "cac:Item/cac:CommodityClassification/cbc:ItemClassificationCode@listID")
	r["BR-CO-03"] = m(">cbc:InvoiceTypeCode <cbc:TaxPointDate"+namespaces+">2026-10-01</cbc:TaxPointDate>", "+cac:InvoicePeriod <cbc:DescriptionCode"+namespaces+">3</cbc:DescriptionCode>")
	r["BR-CO-04"] = m("-" + lineTwo + "cac:Item/cac:ClassifiedTaxCategory")
	r["BR-CO-09"] = m(seller + "cac:PartyTaxScheme/cbc:CompanyID=QQ123")
	r["BR-CO-10"] = m(total + "cbc:LineExtensionAmount=1000.01")
	r["BR-CO-11"] = m(total + "cbc:AllowanceTotalAmount=100.01")
	r["BR-CO-12"] = m("-" + total + "cbc:ChargeTotalAmount")
	r["BR-CO-13"] = m(total + "cbc:TaxExclusiveAmount=950.01")
	r["BR-CO-14"] = m("cac:TaxTotal/cbc:TaxAmount=190.01")
	r["BR-CO-15"] = m(total + "cbc:TaxInclusiveAmount=1140.01")
	r["BR-CO-16"] = m(total + "cbc:PayableAmount=1040.01")
	r["BR-CO-17"] = m(part + "cbc:TaxAmount=191.00")
	r["BR-CO-18"] = m("-cac:TaxTotal/cac:TaxSubtotal")
	r["BR-CO-19"] = m("-cac:InvoicePeriod/cbc:StartDate", "-cac:InvoicePeriod/cbc:EndDate")
	r["BR-CO-20"] = m("-"+lineOne+"cac:InvoicePeriod/cbc:StartDate", "-"+lineOne+"cac:InvoicePeriod/cbc:EndDate")
	r["BR-CO-26"] = m("-"+seller+"cac:PartyTaxScheme", "-"+seller+"cac:PartyIdentification", "-"+seller+"cac:PartyLegalEntity/cbc:CompanyID")
	for id, path := range map[string]string{
		"01": low + "cbc:Amount", "02": low + "cbc:BaseAmount", "05": high + "cbc:Amount", "06": high + "cbc:BaseAmount",
		"09": total + "cbc:LineExtensionAmount", "10": total + "cbc:AllowanceTotalAmount", "11": total + "cbc:ChargeTotalAmount",
		"12": total + "cbc:TaxExclusiveAmount", "14": total + "cbc:TaxInclusiveAmount", "16": total + "cbc:PrepaidAmount", "18": total + "cbc:PayableAmount",
		"19": part + "cbc:TaxableAmount", "20": part + "cbc:TaxAmount", "23": lineTwo + "cbc:LineExtensionAmount",
		"24": lineLow + "cbc:Amount", "25": lineLow + "cbc:BaseAmount", "27": lineHigh + "cbc:Amount", "28": lineHigh + "cbc:BaseAmount",
	} {
		r["BR-DEC-"+id] = m(path + "=25.000")
	}
	r["BR-DEC-17"] = m(">" + total + "cbc:PrepaidAmount <cbc:PayableRoundingAmount" + namespaces + " currencyID=\"EUR\">0.000</cbc:PayableRoundingAmount>")
}

func bisMutants(r map[string]mutant) {
	const id = "PEPPOL-EN16931-"
	r[id+"R001"] = m("-cbc:ProfileID")
	r[id+"R002"] = m("2cbc:Note")
	r[id+"R003"] = m("-cbc:BuyerReference", "-cac:OrderReference")
	r[id+"R004"] = m("cbc:CustomizationID=" + billing + "::2.1")
	r[id+"R005"] = m(">cbc:DocumentCurrencyCode <cbc:TaxCurrencyCode" + namespaces + ">EUR</cbc:TaxCurrencyCode>")
	r[id+"R007"] = m("cbc:ProfileID=urn:fdc:peppol.eu:2017:poacc:billing:99:1.0")
	r[id+"R008"] = m("cbc:Note=")
	r[id+"R010"] = m("-" + buyer + "cbc:EndpointID")
	r[id+"R020"] = m("-" + seller + "cbc:EndpointID")
	r[id+"R040"] = m(low + "cbc:Amount=100.03")
	r[id+"R041"] = m("-" + low + "cbc:BaseAmount")
	r[id+"R042"] = m("-" + high + "cbc:MultiplierFactorNumeric")
	r[id+"R043"] = m(high + "cbc:ChargeIndicator=1")
	r[id+"R044"] = m(lineOne + "cac:Price/cac:AllowanceCharge/cbc:ChargeIndicator=true")
	r[id+"R046"] = m(lineOne + "cac:Price/cac:AllowanceCharge/cbc:Amount=2.01")
	r[id+"R051"] = m(lineTwo + "cbc:LineExtensionAmount@currencyID=SEK")
	r[id+"R053"] = m("2cac:TaxTotal")
	r[id+"R054"] = m(">cac:TaxTotal <cac:TaxTotal" + namespaces + "><cbc:TaxAmount currencyID=\"EUR\">190.00</cbc:TaxAmount></cac:TaxTotal>")
	r[id+"R055"] = of("SEK", "cac:TaxTotal[2]/cbc:TaxAmount=-2000.00")
	r[id+"R061"] = of("debit", "-"+pay+"cac:PaymentMandate/cbc:ID")
	r[id+"R080"] = of("credit", attached+"cbc:ID=P1", ">"+attached+"cbc:ID <cbc:DocumentTypeCode"+namespaces+">50</cbc:DocumentTypeCode>", "2cac:AdditionalDocumentReference")
	r[id+"R100"] = m("2" + lineOne + "cac:DocumentReference")
	r[id+"R101"] = m(lineOne + "cac:DocumentReference/cbc:DocumentTypeCode=131")
	r[id+"R110"] = m(lineOne + "cac:InvoicePeriod/cbc:StartDate=2026-08-31")
	r[id+"R111"] = m(lineOne + "cac:InvoicePeriod/cbc:EndDate=2026-10-01")
	r[id+"R120"] = m(lineTwo + "cbc:LineExtensionAmount=600.03")
	r[id+"R121"] = m(lineTwo + "cac:Price/cbc:BaseQuantity=0")
	r[id+"R130"] = m(lineTwo + "cac:Price/cbc:BaseQuantity@unitCode=EA")
	r[id+"CL001"] = m(attached + "cac:Attachment/cbc:EmbeddedDocumentBinaryObject@mimeCode=text/plain")
	r[id+"CL002"] = m(low + "cbc:AllowanceChargeReasonCode=FC")
	r[id+"CL003"] = m(high + "cbc:AllowanceChargeReasonCode=95")
	r[id+"CL006"] = m("+cac:InvoicePeriod <cbc:DescriptionCode" + namespaces + ">36</cbc:DescriptionCode>")
	r[id+"CL007"] = m(lineTwo + "cbc:LineExtensionAmount@currencyID=XYZ")
	r[id+"CL008"] = m(seller + "cbc:EndpointID@schemeID=0001")
	r[id+"F001"] = m("cbc:DueDate=2026-02-30")
	r[id+"P0100"] = m("cbc:InvoiceTypeCode=381")
	r[id+"P0101"] = of("credit", "cbc:CreditNoteTypeCode=380")
	r[id+"P0112"] = m("cbc:InvoiceTypeCode=384")
	for n, code := range map[string]string{"P0104": "G", "P0105": "O", "P0106": "IC", "P0107": "AE", "P0108": "D", "P0109": "F", "P0110": "I", "P0111": "J"} {
		r[id+n] = m(">" + part + "cac:TaxCategory/cbc:Percent <cbc:TaxExemptionReasonCode" + namespaces + ">vatex-eu-" + strings.ToLower(code) + "</cbc:TaxExemptionReasonCode>")
	}
	for n, x := range map[string]struct{ scheme, value string }{
		"R040": {"0088", "7300010000002"}, "R041": {"0192", "974760674"}, "R042": {"0184", "DK1234567"}, "R043": {"0208", "0123456740"},
		"R044": {"0201", "ABC-12"}, "R045": {"0210", "RSSMRA85T10A562"}, "R046": {"9907", "1234567890"}, "R047": {"0211", "IT12345678901"},
		"R049": {"0007", "5560360794"}, "R050": {"0151", "51824753557"}, "R052": {"0096", "123456789"}, "R053": {"0198", "12345678"},
		"R054": {"0106", "1234567"}, "R055": {"0190", "123"}, "R056-1": {"9944", "NL123456789B1"}, "R057": {"0217", "12345678901"},
	} {
		r["PEPPOL-COMMON-"+n] = m(seller+"cbc:EndpointID="+x.value, seller+"cbc:EndpointID@schemeID="+x.scheme)
	}
	r["PEPPOL-COMMON-R056-2"] = m(buyer + "cac:PartyTaxScheme/cbc:CompanyID=NL123")
}

func nationalMutants(r map[string]mutant) {
	r["NO-R-001"] = of("NO", seller+"cac:PartyTaxScheme/cbc:CompanyID=NO974760674MVA")
	r["NO-R-002"] = of("NO", "-"+seller+"cac:PartyTaxScheme[2]")
	r["DK-R-002"] = of("DK", "-"+seller+"cac:PartyLegalEntity/cbc:CompanyID")
	r["DK-R-003"] = of("DK", lineOne+"cac:Item/cac:CommodityClassification/cbc:ItemClassificationCode@listID=TST")
	r["DK-R-004"] = of("DK", low+"cbc:AllowanceChargeReasonCode=ZZZ")
	r["DK-R-005"] = of("DK", pay+"cbc:PaymentMeansCode=30")
	r["DK-R-006"] = of("DK", pay+"cbc:PaymentMeansCode=42", "-"+pay+"cac:PayeeFinancialAccount/cac:FinancialInstitutionBranch")
	r["DK-R-007"] = of("DK", pay+"cbc:PaymentMeansCode=49")
	r["DK-R-008"] = of("DK", pay+"cbc:PaymentMeansCode=50", pay+"cbc:PaymentID=71#1")
	r["DK-R-009"] = of("DK", pay+"cbc:PaymentMeansCode=50", pay+"cbc:PaymentID=04#1")
	r["DK-R-010"] = of("DK", pay+"cbc:PaymentMeansCode=93", pay+"cbc:PaymentID=01#1")
	r["DK-R-011"] = of("DK", pay+"cbc:PaymentMeansCode=93", pay+"cbc:PaymentID=71#1")
	r["DK-R-013"] = of("DK", "-"+buyer+"cac:PartyIdentification/cbc:ID@schemeID")
	r["DK-R-014"] = of("DK", seller+"cac:PartyLegalEntity/cbc:CompanyID@schemeID=0088")
	r["DK-R-016"] = of("credit", seller+"cac:PostalAddress/cac:Country/cbc:IdentificationCode=DK", buyer+"cac:PostalAddress/cac:Country/cbc:IdentificationCode=DK", total+"cbc:PayableAmount=-1040.00")
	r["DK-R-017"] = of("DK", buyer+"cac:PartyLegalEntity/cbc:CompanyID@schemeID=0088")
	r["IT-R-001"] = of("IT", seller+"cac:PartyTaxScheme[2]/cbc:CompanyID=short")
	r["IT-R-002"] = of("IT", "-"+seller+"cac:PostalAddress/cbc:StreetName")
	r["IT-R-003"] = of("IT", "-"+seller+"cac:PostalAddress/cbc:CityName")
	r["IT-R-004"] = of("IT", "-"+seller+"cac:PostalAddress/cbc:PostalZone")
	r["SE-R-001"] = of("SE", seller+"cac:PartyTaxScheme/cbc:CompanyID=SE5560360793")
	r["SE-R-002"] = of("SE", seller+"cac:PartyTaxScheme/cbc:CompanyID=SE5560360793XX")
	r["SE-R-003"] = of("SE", seller+"cac:PartyLegalEntity/cbc:CompanyID=556036-079")
	r["SE-R-004"] = of("SE", seller+"cac:PartyLegalEntity/cbc:CompanyID=556036079")
	r["SE-R-005"] = of("SE", seller+"cac:PartyTaxScheme[2]/cbc:CompanyID=F-skatt")
	r["SE-R-006"] = of("SE", lineOne+"cac:Item/cac:ClassifiedTaxCategory/cbc:Percent=20")
	const account, branch = pay + "cac:PayeeFinancialAccount/cbc:ID=", pay + "cac:PayeeFinancialAccount/cac:FinancialInstitutionBranch/cbc:ID="
	r["SE-R-007"] = of("SE", branch+"SE:PLUSGIRO", account+"12-34")
	r["SE-R-008"] = of("SE", account+"123-4567")
	r["SE-R-009"] = of("SE", account+"123456")
	r["SE-R-010"] = of("SE", branch+"SE:PLUSGIRO", account+"123456789")
	r["SE-R-011"] = of("SE", pay+"cbc:PaymentMeansCode=50")
	r["SE-R-012"] = of("SE", pay+"cbc:PaymentMeansCode=31")
	r["SE-R-013"] = of("SE", seller+"cac:PartyLegalEntity/cbc:CompanyID=5560360794")
	number := func(s string) mutant { return of("GR", "cbc:ID="+s) }
	r["GR-R-001-1"] = number("123456783|01/10/2026|1|1.1|A")
	r["GR-R-001-2"] = number("123456789|01/10/2026|1|1.1|A|7")
	r["GR-R-001-3"] = number("123456783|02/10/2026|1|1.1|A|7")
	r["GR-R-001-4"] = number("123456783|01/10/2026|x|1.1|A|7")
	r["GR-R-001-5"] = number("123456783|01/10/2026|1|9.9|A|7")
	r["GR-R-001-6"] = number("123456783|01/10/2026|1|1.1||7")
	r["GR-R-001-7"] = number("123456783|01/10/2026|1|1.1|A|")
	r["GR-R-002"] = of("GR", "-"+seller+"cac:PartyName")
	same(r, of("GR", seller+"cac:PartyTaxScheme/cbc:CompanyID=EL123456789"), "GR-R-003", "GR-S-011")
	r["GR-R-004-1"] = of("GR", "-cac:AdditionalDocumentReference[3]")
	r["GR-R-004-2"] = of("GR", "cac:AdditionalDocumentReference[3]/cbc:ID=0")
	r["GR-R-005"] = of("GR", "-"+buyer+"cac:PartyName")
	r["GR-R-006"] = of("GR", buyer+"cac:PartyTaxScheme/cbc:CompanyID=EL123456789")
	r["GR-R-008-2"] = of("GR", "2cac:AdditionalDocumentReference[2]")
	r["GR-S-008-1"] = of("GR", "-cac:AdditionalDocumentReference[2]")
	r["GR-R-008-3"] = of("GR", "-cac:AdditionalDocumentReference[2]/cac:Attachment")
	r["GR-R-009"] = of("GR", seller+"cbc:EndpointID=123456789")
	r["GR-R-010"] = of("GR", buyer+"cbc:EndpointID@schemeID=9930")
	r["IS-R-001"] = of("IS", "cbc:InvoiceTypeCode=393")
	r["IS-R-002"] = of("IS", "-"+seller+"cac:PartyLegalEntity/cbc:CompanyID")
	r["IS-R-003"] = of("IS", "-"+seller+"cac:PostalAddress/cbc:StreetName")
	r["IS-R-004"] = of("IS", buyer+"cac:PartyLegalEntity/cbc:CompanyID@schemeID=0195")
	r["IS-R-005"] = of("IS", "-"+buyer+"cac:PostalAddress/cbc:PostalZone")
	r["IS-R-006"] = of("IS", pay+"cbc:PaymentMeansCode=9", account+"1")
	r["IS-R-007"] = of("IS", account+"1")
	r["IS-R-008"] = of("IS", "cac:AdditionalDocumentReference[2]/cbc:ID=15.11.2026")
	r["IS-R-009"] = of("IS", "-cbc:DueDate")
	r["IS-R-010"] = of("IS", "cbc:DueDate=2026-11-16")
	r["NL-R-001"] = of("credit", seller+"cac:PostalAddress/cac:Country/cbc:IdentificationCode=NL", "-cac:BillingReference")
	r["NL-R-002"] = of("NL", "-"+seller+"cac:PostalAddress/cbc:StreetName")
	r["NL-R-003"] = of("NL", seller+"cac:PartyLegalEntity/cbc:CompanyID@schemeID=0002")
	r["NL-R-004"] = of("NL", "-"+buyer+"cac:PostalAddress/cbc:CityName")
	r["NL-R-005"] = of("NL", buyer+"cac:PartyLegalEntity/cbc:CompanyID@schemeID=0002")
	r["NL-R-006"] = of("NL", "-"+agent+"cac:PostalAddress/cbc:PostalZone")
	r["NL-R-007"] = of("NL", "-cac:PaymentMeans")
	r["NL-R-008"] = of("NL", pay+"cbc:PaymentMeansCode=31")
	r["NL-R-009"] = of("NL", "-cac:OrderReference")
	germanMutants(r)
}

func germanMutants(r map[string]mutant) {
	contact := seller + "cac:Contact/"
	r["DE-R-001"] = of("DE", "-cac:PaymentMeans")
	r["DE-R-002"] = of("DE", "-"+seller+"cac:Contact")
	r["DE-R-003"] = of("DE", "-"+seller+"cac:PostalAddress/cbc:CityName")
	r["DE-R-004"] = of("DE", "-"+seller+"cac:PostalAddress/cbc:PostalZone")
	r["DE-R-005"] = of("DE", "-"+contact+"cbc:Name")
	r["DE-R-006"] = of("DE", "-"+contact+"cbc:Telephone")
	r["DE-R-007"] = of("DE", "-"+contact+"cbc:ElectronicMail")
	r["DE-R-008"] = of("DE", "-"+buyer+"cac:PostalAddress/cbc:CityName")
	r["DE-R-009"] = of("DE", "-"+buyer+"cac:PostalAddress/cbc:PostalZone")
	r["DE-R-010"] = of("DE", "-cac:Delivery/cac:DeliveryLocation/cac:Address/cbc:CityName")
	r["DE-R-011"] = of("DE", "-cac:Delivery/cac:DeliveryLocation/cac:Address/cbc:PostalZone")
	r["DE-R-014"] = of("DE", "-"+part+"cac:TaxCategory/cbc:Percent")
	r["DE-R-015"] = of("DE", "-cbc:BuyerReference")
	r["DE-R-016"] = of("DE", "-"+seller+"cac:PartyTaxScheme", "-cac:TaxRepresentativeParty")
	r["DE-R-017"] = of("DE", "cbc:InvoiceTypeCode=393")
	r["DE-R-018"] = of("DE", "cac:PaymentTerms/cbc:Note=#SKONTO#TAGE=14#PROZENT=2.00#")
	r["DE-R-019"] = of("DE", pay+"cac:PayeeFinancialAccount/cbc:ID=DE88370400440532013000")
	debit := func(edits ...string) mutant {
		return of("DE", append(append([]string{}, variants()["debit"].edits...), edits...)...)
	}
	r["DE-R-020"] = debit(pay + "cac:PaymentMandate/cac:PayerFinancialAccount/cbc:ID=DE88370400440532013000")
	r["DE-R-022"] = of("DE", "2cac:AdditionalDocumentReference")
	r["DE-R-023-1"] = of("DE", "-"+pay+"cac:PayeeFinancialAccount")
	r["DE-R-023-2"] = of("DE", variants()["card"].edits[2])
	r["DE-R-024-1"] = of("DE", pay+"cbc:PaymentMeansCode=48")
	r["DE-R-024-2"] = r["DE-R-024-1"]
	r["DE-R-025-1"] = of("DE", pay+"cbc:PaymentMeansCode=59")
	r["DE-R-025-2"] = r["DE-R-025-1"]
	r["DE-R-026"] = of("DE", "cbc:InvoiceTypeCode=384", "-cac:BillingReference")
	r["DE-R-027"] = of("DE", contact+"cbc:Telephone=12")
	r["DE-R-028"] = of("DE", contact+"cbc:ElectronicMail=anne@moulin")
	r["DE-R-030"] = debit()
	r["DE-R-031"] = debit("-" + pay + "cac:PaymentMandate/cac:PayerFinancialAccount")
	r["DE-R-T02"] = of("DE", "+"+attached+"cac:Attachment <cac:ExternalReference"+namespaces+"><cbc:URI>file</cbc:URI></cac:ExternalReference>")
}

// neverFails are rules whose published form no document can break.
var neverFails = map[string]bool{"BR-CO-05": true, "BR-CO-06": true, "BR-CO-07": true, "BR-CO-08": true, "BR-DEC-13": true, "BR-DEC-15": true}

// TestRules breaks each rule about the model once: it must hold for the document before the
// change and fail for the one after.
func TestRules(t *testing.T) {
	t.Parallel()
	vs, ms := variants(), mutants()
	for name, v := range vs {
		t.Run("valid "+name, func(t *testing.T) {
			t.Parallel()
			for _, f := range both(t, v.build(t).bytes()).Findings {
				t.Errorf("%s at %s: %s (%s, %s)", f.Rule, f.Location, f.Message, f.Actual, f.Expected)
			}
		})
	}
	for _, s := range Sets() {
		for i := range s.Rules {
			u := &s.Rules[i]
			x, ok := ms[u.ID]
			if ok == neverFails[u.ID] {
				t.Errorf("%s: there must be a document that breaks it, or it must be among those that none can break", u.ID)
			}
			if !ok {
				continue
			}
			t.Run(u.ID, func(t *testing.T) {
				t.Parallel()
				v := both(t, vs[x.of].build(t).edit(t, x.edits...).bytes())
				for _, f := range v.Findings {
					if f.Rule != u.ID {
						continue
					}
					if f.Severity != u.Severity || f.Ruleset != s.ID || f.Message != u.Message || f.Location == "" || f.Line == 0 {
						t.Errorf("finding %+v", f)
					}
					return
				}
				t.Errorf("not reported; findings %v", v.Findings)
			})
		}
	}
}
