package peppol

import (
	"strconv"
	"strings"
	"testing"
)

// TestManyOfEverything judges documents in which something stands ten thousand times where a
// few are usual. What takes the square of that number would not end within the time of the test.
func TestManyOfEverything(t *testing.T) {
	t.Parallel()
	const n = 10_000
	whole := string(base(t).bytes())
	for name, c := range map[string]struct{ at, add string }{
		"prices":            {"<cac:Price>", `<cac:Price><cbc:PriceAmount currencyID="EUR">1</cbc:PriceAmount><cbc:BaseQuantity unitCode="EA">1</cbc:BaseQuantity></cac:Price>`},
		"price allowances":  {`<cbc:PriceAmount currencyID="EUR">40.00`, `<cac:AllowanceCharge><cbc:ChargeIndicator>false</cbc:ChargeIndicator></cac:AllowanceCharge>`},
		"currencies":        {"<cbc:DocumentCurrencyCode>", `<cbc:DocumentCurrencyCode>#</cbc:DocumentCurrencyCode><cbc:TaxCurrencyCode>#</cbc:TaxCurrencyCode>`},
		"tax totals":        {"<cac:TaxTotal>", `<cac:TaxTotal><cbc:TaxAmount currencyID="#">1</cbc:TaxAmount></cac:TaxTotal>`},
		"tax amounts":       {"<cac:TaxTotal>", `<cac:TaxTotal><cbc:TaxAmount currencyID="#">1</cbc:TaxAmount></cac:TaxTotal>`},
		"subtotals":         {"<cac:TaxSubtotal>", `<cac:TaxSubtotal><cbc:TaxableAmount currencyID="EUR">1</cbc:TaxableAmount><cac:TaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>#</cbc:Percent><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:TaxCategory></cac:TaxSubtotal>`},
		"categories":        {"<cac:ClassifiedTaxCategory>", `<cac:ClassifiedTaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>#</cbc:Percent></cac:ClassifiedTaxCategory>`},
		"sellers":           {"<cac:AccountingSupplierParty>", `<cac:AccountingSupplierParty><cac:Party><cac:PartyName><cbc:Name>#</cbc:Name></cac:PartyName></cac:Party></cac:AccountingSupplierParty>`},
		"names":             {"<cac:PartyName>", `<cac:PartyName><cbc:Name>#</cbc:Name></cac:PartyName>`},
		"payees":            {"<cac:PayeeParty>", `<cac:PayeeParty><cac:PartyName><cbc:Name>#</cbc:Name></cac:PartyName></cac:PayeeParty>`},
		"tax registrations": {"<cbc:CompanyID>FR12345678901", `<cbc:CompanyID schemeID="0088">#</cbc:CompanyID>`},
		"attachments":       {"<cac:AdditionalDocumentReference>", `<cac:AdditionalDocumentReference><cbc:ID>#</cbc:ID></cac:AdditionalDocumentReference>`},
		"malformed amounts": {"<cac:InvoiceLine>", `<cac:InvoiceLine><cbc:LineExtensionAmount currencyID="EUR">x#</cbc:LineExtensionAmount></cac:InvoiceLine>`},
		"malformed rates":   {"<cac:AllowanceCharge>", `<cac:AllowanceCharge><cbc:ChargeIndicator>maybe</cbc:ChargeIndicator></cac:AllowanceCharge>`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after, ok := strings.Cut(whole, c.at)
			if !ok {
				t.Fatalf("no %s", c.at)
			}
			var b strings.Builder
			b.WriteString(before)
			for i := range n {
				b.WriteString(strings.ReplaceAll(c.add, "#", strconv.Itoa(i)))
			}
			b.WriteString(c.at + after)
			v := both(t, []byte(b.String()))
			if len(v.Findings) > 20*DefaultPerRule {
				t.Errorf("%d findings, %d omitted", len(v.Findings), v.Omitted)
			}
		})
	}
}
