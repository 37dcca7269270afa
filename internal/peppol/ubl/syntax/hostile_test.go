package syntax

import (
	"strings"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/peppol/ubl"
)

// TestManySiblings shows that what many children must know of their parent is not found anew for
// each of them: the square of their number would take minutes.
func TestManySiblings(t *testing.T) {
	t.Parallel()
	const many = 50_000
	for name, content := range map[string]string{
		"reasons":    in(strings.Repeat(`<cbc:AllowanceChargeReasonCode>95</cbc:AllowanceChargeReasonCode>`, many)+`<cbc:ChargeIndicator>false</cbc:ChargeIndicator>`, "cac:AllowanceCharge"),
		"references": in(strings.Repeat(`<cbc:ID schemeID="AAA">1</cbc:ID>`, many)+`<cbc:DocumentTypeCode>130</cbc:DocumentTypeCode>`, "cac:DocumentReference"),
		"prices":     in(strings.Repeat(`<cbc:Amount currencyID="EUR">1.234</cbc:Amount>`, many), "cac:Price"),
		"payees":     strings.Repeat(`<cac:PayeeParty><cac:PartyName><cbc:Name>a</cbc:Name></cac:PartyName></cac:PayeeParty>`, many),
		"schemes":    strings.Repeat(tax, many),
		"payments":   strings.Repeat(`<cac:PaymentMeans><cbc:PaymentMeansCode>30</cbc:PaymentMeansCode></cac:PaymentMeans>`, many),
	} {
		var p ubl.Parser
		tree, err := p.Parse([]byte(document("Invoice", content)), ubl.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		Check(tree, func(*Rule, ubl.Node, string) {})
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("%s: %v", name, d)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(document("Invoice", goodLine)))
	f.Add([]byte(document("CreditNote", `<cac:PayeeParty><cac:PartyName><cbc:Name><cbc:Name>.</cbc:Name></cbc:Name></cac:PartyName></cac:PayeeParty><cbc:Note>#</cbc:Note><x:Amount xmlns:x="urn:x">.</x:Amount>`)))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var p ubl.Parser
		tree, err := p.Parse(doc, ubl.Limits{})
		if err != nil {
			return
		}
		Check(tree, func(r *Rule, n ubl.Node, actual string) {
			if r.ID == "" || n < ubl.Root || n >= tree.Len() || tree.Path(n) == "" {
				t.Fatalf("%+v at %d with %q", r, n, actual)
			}
		})
	})
}
