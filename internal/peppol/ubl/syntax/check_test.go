package syntax

import (
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/peppol/ubl"
)

const (
	namespace = "urn:oasis:names:specification:ubl:schema:xsd:"
	goodLine  = `
  <cac:InvoiceLine>
    <cbc:ID>1</cbc:ID>
    <cbc:InvoicedQuantity unitCode="C62">7</cbc:InvoicedQuantity>
    <cbc:LineExtensionAmount currencyID="EUR">2800.00</cbc:LineExtensionAmount>
    <cac:OrderLineReference><cbc:LineID>3</cbc:LineID></cac:OrderLineReference>
    <cac:AllowanceCharge><cbc:ChargeIndicator>false</cbc:ChargeIndicator><cbc:AllowanceChargeReasonCode>95</cbc:AllowanceChargeReasonCode><cbc:AllowanceChargeReason>Discount</cbc:AllowanceChargeReason><cbc:Amount currencyID="EUR">1</cbc:Amount></cac:AllowanceCharge>
    <cac:Item>
      <cbc:Description>Folding chair</cbc:Description>
      <cbc:Name>Chair</cbc:Name>
      <cac:StandardItemIdentification><cbc:ID schemeID="0160">07300010000001</cbc:ID></cac:StandardItemIdentification>
      <cac:OriginCountry><cbc:IdentificationCode>NO</cbc:IdentificationCode></cac:OriginCountry>
      <cac:CommodityClassification><cbc:ItemClassificationCode listID="STI">09348023</cbc:ItemClassificationCode></cac:CommodityClassification>
      <cac:ClassifiedTaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>25</cbc:Percent><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:ClassifiedTaxCategory>
    </cac:Item>
    <cac:Price><cbc:PriceAmount currencyID="EUR">400.1234</cbc:PriceAmount><cbc:BaseQuantity unitCode="C62">1</cbc:BaseQuantity></cac:Price>
  </cac:InvoiceLine>`
)

// document returns a document with the content.
func document(root, content string) string {
	return `<` + root + ` xmlns="` + namespace + root + `-2" xmlns:cac="` + namespace + `CommonAggregateComponents-2" xmlns:cbc="` + namespace +
		`CommonBasicComponents-2" xmlns:ext="` + namespace + `CommonExtensionComponents-2">` + content + `</` + root + `>`
}

// fired returns the rules that a document breaks.
func fired(t *testing.T, doc string) map[string]int {
	t.Helper()
	var p ubl.Parser
	tree, err := p.Parse([]byte(doc), ubl.Limits{})
	if err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	got := map[string]int{}
	Check(tree, func(r *Rule, n ubl.Node, _ string) {
		if n <= ubl.None || n >= tree.Len() {
			t.Errorf("%s at node %d", r.ID, n)
		}
		got[r.ID]++
	})
	return got
}

// element writes nested elements for a path, with a value or an attribute at its end.
func element(path string) string {
	path, attribute, _ := strings.Cut(path, "/@")
	names := strings.Split(path, "/")
	var b strings.Builder
	for i, n := range names {
		b.WriteString("<" + n)
		if i == len(names)-1 && attribute != "" {
			b.WriteString(" " + attribute + `="x"`)
		}
		b.WriteString(">")
	}
	b.WriteString("x")
	for i := range names {
		b.WriteString("</" + names[len(names)-1-i] + ">")
	}
	return b.String()
}

// TestUnused breaks each of the rules about unused elements and attributes in turn, and shows that
// the same element elsewhere breaks none.
func TestUnused(t *testing.T) {
	t.Parallel()
	paths := unusedPaths()
	if len(paths) < 650 {
		t.Fatalf("%d paths", len(paths))
	}
	for _, p := range paths {
		for _, root := range []string{"Invoice", "CreditNote"} {
			path := strings.Replace(p[1], "{line}", "cac:"+root+"Line", 1)
			got := fired(t, document(root, element(path)+element(path)))
			if got[p[0]] != 1 {
				t.Errorf("%s: %s in %s is reported %d times", p[0], path, root, got[p[0]])
			}
			if got := fired(t, document(root, element("cac:Clause/"+path))); got[p[0]] != 0 {
				t.Errorf("%s: reported for %s inside of cac:Clause", p[0], path)
			}
		}
	}
}
