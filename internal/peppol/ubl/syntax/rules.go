// Package syntax judges the rules of EN 16931 that are about UBL itself, and not about the
// invoice's meaning: elements and attributes that are left unused (UBL-CR, UBL-DT), how often
// something may stand (UBL-SR), and values that come from code lists (BR-CL).
package syntax

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/peppol/ubl"
)

// Rule is one rule.
type Rule struct {
	ID       string
	Severity edi.Severity
	Terms    []string // BT and BG terms of EN 16931-1
	Message  string   // what is wrong and what to change
	index    int
}

// The rules whose test is code or a count, by their place in fixed.
const (
	sr01 = iota
	sr02
	sr03
	sr04
	sr05
	sr06
	sr07
	sr08
	sr09
	sr10
	sr11
	sr12
	sr13
	sr14
	sr15
	sr16
	sr17
	sr18
	sr19
	sr20
	sr21
	sr22
	sr23
	sr24
	sr25
	sr26
	sr27
	sr28
	sr29
	sr30
	sr31
	sr32
	sr33
	sr34
	sr35
	sr36
	sr37
	sr39
	sr40
	sr42
	sr43
	sr44
	sr45
	sr46
	sr47
	sr48
	sr49
	sr50
	sr51
	sr52
	sr53
	sr54
	sr55
	sr56
	dt01
	dt06
	dt07
	dt08
	dt09
	dt10
	dt11
	dt12
	dt13
	dt14
	dt15
	dt16
	dt17
	dt18
	dt19
	dt20
	dt21
	dt22
	dt23
	dt24
	dt25
	dt26
	dt27
	dt28
	cr002
	cr412
	cr652
	cr660
	cr662
	cr663
	cr664
	cr665
	cr666
	cr667
	cr668
	cr669
	cr670
	cr671
	cr673
	cr674
	cr675
	cr676
	cr677
	cr678
	cr679
	cr680
	cl01
	cl03
	cl04
	cl05
	cl06
	cl07
	cl08
	cl10
	cl11
	cl13
	cl14
	cl15
	cl16
	cl17
	cl18
	cl19
	cl20
	cl21
	cl22
	cl23
	cl24
	cl25
	cl26

	fixedCount
)

// fixed are id, terms and message of those rules. Only unused elements and attributes are
// warnings, apart from two; see severity.
var fixed = [fixedCount][3]string{
	sr01: {"UBL-SR-01", "BT-12", "The contract is referred to more than once; keep one cac:ContractDocumentReference/cbc:ID."},
	sr02: {"UBL-SR-02", "BT-15", "The receiving advice is referred to more than once; keep one cac:ReceiptDocumentReference/cbc:ID."},
	sr03: {"UBL-SR-03", "BT-16", "The despatch advice is referred to more than once; keep one cac:DespatchDocumentReference/cbc:ID."},
	sr04: {"UBL-SR-04", "BT-18", "The invoiced object stands more than once; keep one cac:AdditionalDocumentReference of type 130."},
	sr05: {"UBL-SR-05", "BT-20", "The payment terms stand more than once; put them into one cac:PaymentTerms/cbc:Note."},
	sr06: {"UBL-SR-06", "BG-3", "A preceding invoice reference names more than one invoice; write one cac:BillingReference for each."},
	sr07: {"UBL-SR-07", "BT-25", "A preceding invoice reference has no invoice number; add cac:InvoiceDocumentReference/cbc:ID."},
	sr08: {"UBL-SR-08", "BG-14", "The invoicing period stands more than once; keep one cac:InvoicePeriod."},
	sr09: {"UBL-SR-09", "BT-27", "The seller's name stands more than once; keep one cbc:RegistrationName."},
	sr10: {"UBL-SR-10", "BT-28", "The seller's trading name stands more than once; keep one cac:PartyName/cbc:Name."},
	sr11: {"UBL-SR-11", "BT-30", "The seller's legal registration stands more than once; keep one cac:PartyLegalEntity/cbc:CompanyID."},
	sr12: {"UBL-SR-12", "BT-31", "The seller's VAT identifier stands more than once; keep one cac:PartyTaxScheme with the scheme VAT."},
	sr13: {"UBL-SR-13", "BT-32", "The seller's tax registration stands more than once; keep one cac:PartyTaxScheme with a scheme other than VAT."},
	sr14: {"UBL-SR-14", "BT-33", "The seller's additional legal information stands more than once; keep one cbc:CompanyLegalForm."},
	sr15: {"UBL-SR-15", "BT-44", "The buyer's name stands more than once; keep one cbc:RegistrationName."},
	sr16: {"UBL-SR-16", "BT-46", "The buyer's identifier stands more than once; keep one cac:PartyIdentification/cbc:ID."},
	sr17: {"UBL-SR-17", "BT-47", "The buyer's legal registration stands more than once; keep one cac:PartyLegalEntity/cbc:CompanyID."},
	sr18: {"UBL-SR-18", "BT-48", "The buyer's VAT identifier stands more than once; keep one cac:PartyTaxScheme with the scheme VAT."},
	sr19: {"UBL-SR-19", "BT-59", "The payee must have one name, and one other than the seller's; leave cac:PayeeParty out when the seller is paid."},
	sr20: {"UBL-SR-20", "BT-60", "The payee may have one identifier, and must have a name other than the seller's; leave cac:PayeeParty out when the seller is paid."},
	sr21: {"UBL-SR-21", "BT-61", "The payee may have one legal registration, and must have a name other than the seller's; leave cac:PayeeParty out when the seller is paid."},
	sr22: {"UBL-SR-22", "BT-62", "The tax representative's name stands more than once; keep one cac:PartyName/cbc:Name."},
	sr23: {"UBL-SR-23", "BT-63", "The tax representative's VAT identifier stands more than once; keep one cac:PartyTaxScheme/cbc:CompanyID."},
	sr24: {"UBL-SR-24", "BG-13", "The delivery stands more than once; keep one cac:Delivery."},
	sr25: {"UBL-SR-25", "BT-70", "The name of the party delivered to stands more than once; keep one cac:DeliveryParty/cac:PartyName/cbc:Name."},
	sr26: {"UBL-SR-26", "BT-83", "The remittance information stands more than once; keep one cbc:PaymentID in cac:PaymentMeans."},
	sr27: {"UBL-SR-27", "BT-81", "The payment means code stands more than once in cac:PaymentMeans; keep one cbc:PaymentMeansCode."},
	sr28: {"UBL-SR-28", "BT-89", "The mandate reference stands more than once; keep one cac:PaymentMandate/cbc:ID."},
	sr29: {"UBL-SR-29", "BT-90", "The bank assigned creditor identifier stands more than once; keep one cac:PartyIdentification/cbc:ID with the scheme SEPA."},
	sr30: {"UBL-SR-30", "BT-97 BT-139", "The allowance has more than one reason; keep one cbc:AllowanceChargeReason."},
	sr31: {"UBL-SR-31", "BT-104 BT-144", "The charge has more than one reason; keep one cbc:AllowanceChargeReason."},
	sr32: {"UBL-SR-32", "BT-120", "The VAT exemption reason stands more than once; keep one cbc:TaxExemptionReason."},
	sr33: {"UBL-SR-33", "BT-123", "The supporting document has more than one description; keep one cbc:DocumentDescription."},
	sr34: {"UBL-SR-34", "BT-127", "The line has more than one note; keep one cbc:Note."},
	sr35: {"UBL-SR-35", "BT-132", "The line refers to more than one purchase order line; keep one cac:OrderLineReference/cbc:LineID."},
	sr36: {"UBL-SR-36", "BG-26", "The line has more than one period; keep one cac:InvoicePeriod."},
	sr37: {"UBL-SR-37", "BT-147", "The price has more than one discount; keep one cac:Price/cac:AllowanceCharge/cbc:Amount."},
	sr39: {"UBL-SR-39", "BT-11", "The project is referred to more than once; keep one cac:ProjectReference/cbc:ID."},
	sr40: {"UBL-SR-40", "BT-45", "The buyer's trading name stands more than once; keep one cac:PartyName/cbc:Name."},
	sr42: {"UBL-SR-42", "BT-31 BT-32", "The seller has more than two tax registrations; keep one with the scheme VAT and one with another scheme."},
	sr43: {"UBL-SR-43", "BT-18 BT-122", "A scheme or a document type stands at a document reference that is no invoiced object; write cbc:DocumentTypeCode 130, or leave both out."},
	sr44: {"UBL-SR-44", "BT-83", "The payments have different remittance information; write the same cbc:PaymentID in each cac:PaymentMeans."},
	sr45: {"UBL-SR-45", "BT-9", "The due date stands more than once; keep one cac:PaymentMeans/cbc:PaymentDueDate."},
	sr46: {"UBL-SR-46", "BT-82", "The text of the payment means stands more than once; keep one name attribute at cbc:PaymentMeansCode."},
	sr47: {"UBL-SR-47", "BT-81", "The payments have different payment means codes; write the same cbc:PaymentMeansCode in each cac:PaymentMeans."},
	sr48: {"UBL-SR-48", "BT-151", "A line must have one VAT category; write one cac:Item/cac:ClassifiedTaxCategory."},
	sr49: {"UBL-SR-49", "BT-8", "The tax point date code stands more than once; keep one cac:InvoicePeriod/cbc:DescriptionCode."},
	sr50: {"UBL-SR-50", "BT-154", "The item has more than one description; put it into one cbc:Description."},
	sr51: {"UBL-SR-51", "BT-162 BT-163 BT-164 BT-165", "The address has more than one additional line; keep one cac:AddressLine."},
	sr52: {"UBL-SR-52", "BT-128", "The line refers to more than one object; keep one cac:DocumentReference."},
	sr53: {"UBL-SR-53", "BT-31 BT-32 BT-48 BT-63", "A tax registration lacks its identifier or its scheme; write both cbc:CompanyID and cac:TaxScheme/cbc:ID."},
	sr54: {"UBL-SR-54", "BG-18", "The payment card stands more than once; keep one cac:CardAccount."},
	sr55: {"UBL-SR-55", "BG-19", "The direct debit mandate stands more than once; keep one cac:PaymentMandate."},
	sr56: {"UBL-SR-56", "BT-17", "The tender or lot is referred to more than once; keep one cac:OriginatorDocumentReference/cbc:ID."},

	dt01: {"UBL-DT-01", "", "An amount has more than two decimals; round it, and write no more than two digits behind the point."},
	dt06: {"UBL-DT-06", "BT-125", "An attached document has no media type; add the attribute mimeCode."},
	dt07: {"UBL-DT-07", "BT-125", "An attached document has no file name; add the attribute filename."},
	dt08: unusedAttribute("UBL-DT-08", "schemeName"),
	dt09: unusedAttribute("UBL-DT-09", "schemeAgencyName"),
	dt10: unusedAttribute("UBL-DT-10", "schemeDataURI"),
	dt11: unusedAttribute("UBL-DT-11", "schemeURI"),
	dt12: unusedAttribute("UBL-DT-12", "format"),
	dt13: unusedAttribute("UBL-DT-13", "unitCodeListIdentifier"),
	dt14: unusedAttribute("UBL-DT-14", "unitCodeListAgencyIdentifier"),
	dt15: unusedAttribute("UBL-DT-15", "unitCodeListAgencyName"),
	dt16: unusedAttribute("UBL-DT-16", "listAgencyName"),
	dt17: unusedAttribute("UBL-DT-17", "listName"),
	dt18: {"UBL-DT-18", "", "An EN 16931 invoice uses the attribute name at cbc:PaymentMeansCode only; leave it out elsewhere."},
	dt19: unusedAttribute("UBL-DT-19", "languageID"),
	dt20: unusedAttribute("UBL-DT-20", "listURI"),
	dt21: unusedAttribute("UBL-DT-21", "listSchemeURI"),
	dt22: unusedAttribute("UBL-DT-22", "languageLocaleID"),
	dt23: unusedAttribute("UBL-DT-23", "uri"),
	dt24: unusedAttribute("UBL-DT-24", "currencyCodeListVersionID"),
	dt25: unusedAttribute("UBL-DT-25", "characterSetCode"),
	dt26: unusedAttribute("UBL-DT-26", "encodingCode"),
	dt27: unusedAttribute("UBL-DT-27", "schemeAgencyID"),
	dt28: unusedAttribute("UBL-DT-28", "listAgencyID"),

	cr002: {"UBL-CR-002", "", "An EN 16931 invoice names no UBL version other than 2.1; write 2.1 or leave cbc:UBLVersionID out."},
	cr412: unused("UBL-CR-412", "cac:PaymentMeans/cbc:PaymentDueDate"),
	cr652: unused("UBL-CR-652", "cac:PartyTaxScheme/cbc:CompanyID/@schemeID"),
	cr660: unused("UBL-CR-660", "cac:Country/cbc:IdentificationCode/@listID"),
	cr662: unused("UBL-CR-662", "cbc:AllowanceChargeReasonCode/@listID"),
	cr663: unusedAttribute("UBL-CR-663", "unitCodeListID"),
	cr664: unused("UBL-CR-664", "cac:FinancialInstitution"),
	cr665: {"UBL-CR-665", "", "Only the reference to an invoiced object has a scheme; leave schemeID out, or write cbc:DocumentTypeCode 130."},
	cr666: {"UBL-CR-666", "BT-18", "The reference to an invoiced object has no attachment; leave cac:Attachment out, or the cbc:DocumentTypeCode 130."},
	cr667: unused("UBL-CR-667", "cac:BuyersItemIdentification/cbc:ID/@schemeID"),
	cr668: unused("UBL-CR-668", "cac:SellersItemIdentification/cbc:ID/@schemeID"),
	cr669: unused("UBL-CR-669", "cac:Price/cac:AllowanceCharge/cbc:AllowanceChargeReasonCode"),
	cr670: unused("UBL-CR-670", "cac:Price/cac:AllowanceCharge/cbc:AllowanceChargeReason"),
	cr671: unused("UBL-CR-671", "cac:Price/cac:AllowanceCharge/cbc:MultiplierFactorNumeric"),
	cr673: {"UBL-CR-673", "BT-18", "The reference to an invoiced object has no description; leave cbc:DocumentDescription out, or the cbc:DocumentTypeCode 130."},
	cr674: unused("UBL-CR-674", "cbc:PrimaryAccountNumberID/@schemeID"),
	cr675: unused("UBL-CR-675", "cac:CardAccount/cbc:NetworkID/@schemeID"),
	cr676: unused("UBL-CR-676", "cac:PaymentMandate/cbc:ID/@schemeID"),
	cr677: unused("UBL-CR-677", "cac:PaymentMandate/cac:PayerFinancialAccount/cbc:ID/@schemeID"),
	cr678: unused("UBL-CR-678", "cac:TaxCategory/cbc:ID/@schemeID"),
	cr679: unused("UBL-CR-679", "cac:ClassifiedTaxCategory/cbc:ID/@schemeID"),
	cr680: unused("UBL-CR-680", "cac:PaymentMeans/cac:PayerFinancialAccount"),

	cl01: {"BR-CL-01", "BT-3", "The document type is none of UNTDID 1001 that EN 16931 allows for this kind of document; write for example 380 in an invoice, 381 in a credit note."},
	cl03: {"BR-CL-03", "BT-5 BT-6", "The currency of the amount is no code of ISO 4217; write for example currencyID=\"EUR\"."},
	cl04: {"BR-CL-04", "BT-5", "The invoice currency is no code of ISO 4217; write for example EUR."},
	cl05: {"BR-CL-05", "BT-6", "The VAT accounting currency is no code of ISO 4217; write for example EUR."},
	cl06: {"BR-CL-06", "BT-8", "The tax point date code is none of UNTDID 2005 that EN 16931 allows; write 3, 35 or 432."},
	cl07: {"BR-CL-07", "BT-18 BT-128", "The scheme of the invoiced object is no code of UNTDID 1153; write one of them in schemeID, or leave it out."},
	cl08: {"BR-CL-08", "BT-21", "The note begins with a subject that is no code of UNTDID 4451; write one of them between the two #, or no # at all."},
	cl10: {"BR-CL-10", "BT-29 BT-46 BT-60 BT-90", "The scheme of the party identifier is no code of ISO/IEC 6523; write for example schemeID=\"0088\" (SEPA is for the seller and the payee only)."},
	cl11: {"BR-CL-11", "BT-30 BT-47 BT-61", "The scheme of the legal registration is no code of ISO/IEC 6523; write for example schemeID=\"0088\", or leave it out."},
	cl13: {"BR-CL-13", "BT-158", "The scheme of the item classification is no code of UNTDID 7143; write for example listID=\"STI\"."},
	cl14: {"BR-CL-14", "BT-40 BT-55 BT-69 BT-80", "The country is no code of ISO 3166-1; write its two capital letters."},
	cl15: {"BR-CL-15", "BT-159", "The item's country of origin is no code of ISO 3166-1; write its two capital letters."},
	cl16: {"BR-CL-16", "BT-81", "The payment means is no code of UNTDID 4461; write for example 30 for a credit transfer."},
	cl17: {"BR-CL-17", "BT-95 BT-102 BT-118", "The VAT category is none of UNTDID 5305 that EN 16931 allows; write AE, L, M, E, S, Z, G, O, K or B."},
	cl18: {"BR-CL-18", "BT-151", "The VAT category of the item is none of UNTDID 5305 that EN 16931 allows; write AE, L, M, E, S, Z, G, O, K or B."},
	cl19: {"BR-CL-19", "BT-98 BT-140", "The reason code of the allowance is none of UNTDID 5189 that EN 16931 allows; write one of them, for example 95."},
	cl20: {"BR-CL-20", "BT-105 BT-145", "The reason code of the charge is no code of UNTDID 7161; write one of them, for example FC."},
	cl21: {"BR-CL-21", "BT-157", "The scheme of the item's standard identifier is no code of ISO/IEC 6523; write for example schemeID=\"0160\"."},
	cl22: {"BR-CL-22", "BT-121", "The VAT exemption reason is no code of the VATEX list; write one of them, for example VATEX-EU-AE."},
	cl23: {"BR-CL-23", "BT-130 BT-150", "The unit is no code of UN/ECE Recommendations 20 and 21; write for example unitCode=\"C62\", and packages with an X before the code."},
	cl24: {"BR-CL-24", "BT-125", "The media type of the attachment is not allowed; attach a PDF, PNG, JPEG, CSV, XLSX or ODS file and name its type in mimeCode."},
	cl25: {"BR-CL-25", "BT-34 BT-49", "The scheme of the electronic address is not in the EAS list; write for example schemeID=\"0088\"."},
	cl26: {"BR-CL-26", "BT-71", "The scheme of the delivery location is no code of ISO/IEC 6523; write for example schemeID=\"0088\", or leave it out."},
}

func unused(id, path string) [3]string {
	if element, attribute, ok := strings.Cut(path, "/@"); ok {
		return [3]string{id, "", "An EN 16931 invoice has no " + attribute + " at " + element + "; leave the attribute out."}
	}
	return [3]string{id, "", "An EN 16931 invoice does not use " + path + "; leave the element out."}
}

func unusedAttribute(id, name string) [3]string {
	return [3]string{id, "", "An EN 16931 invoice does not use the attribute " + name + "; leave it out."}
}

// severity of a rule: unused elements and attributes are warnings, except where the reference to
// an invoiced object is concerned (UBL-CR-666, UBL-CR-673).
func severity(i int) edi.Severity {
	if i >= fixedCount || i >= dt08 && i <= cr680 && i != cr666 && i != cr673 {
		return edi.Warning
	}
	return edi.Fatal
}

//go:embed unused.txt
var unusedText string

// unusedPaths are rule and path of each line of unused.txt.
func unusedPaths() [][2]string {
	var out [][2]string
	for line := range strings.Lines(unusedText) {
		if f := strings.Fields(line); len(f) == 2 && f[0] != "#" {
			out = append(out, [2]string{f[0], f[1]})
		}
	}
	return out
}

// book is all rules and the paths from the document element that some of them are about.
type book struct {
	rules []Rule
	paths *paths
}

var theBook = sync.OnceValue(func() *book {
	b := &book{paths: newPaths()}
	for i, f := range fixed {
		b.rules = append(b.rules, Rule{ID: f[0], Severity: severity(i), Terms: strings.Fields(f[1]), Message: f[2], index: i})
	}
	for i, c := range counted {
		b.paths.add(c.path, func(s *state, a ubl.AttrName) { s.counter, s.counts = i+1, a })
	}
	for _, u := range unusedPaths() {
		f := unused(u[0], u[1])
		i := len(b.rules)
		b.rules = append(b.rules, Rule{ID: u[0], Severity: severity(i), Message: f[2], index: i})
		b.paths.add(u[1], func(s *state, a ubl.AttrName) {
			if a != ubl.ForeignAttr {
				s.attribute, s.name = i, a
			} else {
				s.element = i
			}
		})
	}
	b.paths.pack()
	return b
})

// Rules returns all rules; the caller must not change them.
func Rules() []Rule { return theBook().rules }
