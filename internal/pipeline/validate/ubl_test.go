package validate_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/pipeline/validate"
	"github.com/edihub/edihub/internal/store"
)

const records = `
own:
  - {id: hub, identifiers: ["peppol:9930:HUB"]}
connections:
  - {id: acme-http, http: {url: "http://127.0.0.1:1/"}}
partners:
  - {id: acme, connections: [acme-http], identifiers: ["peppol:9930:ACME"]}
agreements:
  - {match: {from: acme}, %s}
routes:
  - {match: {document: "ubl:*"}, to: acme, envelope: none}
`

// invoice is an invoice of one line; gross is its total with VAT, which must be 120.00.
func invoice(customization, gross string) string {
	party := func(role, id string) string {
		return fmt.Sprintf(`<cac:Accounting%sParty><cac:Party><cbc:EndpointID schemeID="9930">%s</cbc:EndpointID><cac:PostalAddress><cac:Country><cbc:IdentificationCode>FR</cbc:IdentificationCode></cac:Country></cac:PostalAddress><cac:PartyTaxScheme><cbc:CompanyID>FR1</cbc:CompanyID><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:PartyTaxScheme><cac:PartyLegalEntity><cbc:RegistrationName>%s</cbc:RegistrationName></cac:PartyLegalEntity></cac:Party></cac:Accounting%sParty>`, role, id, id, role)
	}
	return `<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2" xmlns:cac="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2" xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2">` +
		`<cbc:CustomizationID>` + customization + `</cbc:CustomizationID><cbc:ProfileID>urn:fdc:peppol.eu:2017:poacc:billing:01:1.0</cbc:ProfileID><cbc:ID>1</cbc:ID><cbc:IssueDate>2026-10-01</cbc:IssueDate><cbc:InvoiceTypeCode>380</cbc:InvoiceTypeCode><cbc:DocumentCurrencyCode>EUR</cbc:DocumentCurrencyCode><cbc:BuyerReference>x</cbc:BuyerReference>` +
		party("Supplier", "ACME") + party("Customer", "HUB") +
		`<cac:TaxTotal><cbc:TaxAmount currencyID="EUR">20.00</cbc:TaxAmount><cac:TaxSubtotal><cbc:TaxableAmount currencyID="EUR">100.00</cbc:TaxableAmount><cbc:TaxAmount currencyID="EUR">20.00</cbc:TaxAmount><cac:TaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>20</cbc:Percent><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:TaxCategory></cac:TaxSubtotal></cac:TaxTotal>` +
		`<cac:LegalMonetaryTotal><cbc:LineExtensionAmount currencyID="EUR">100.00</cbc:LineExtensionAmount><cbc:TaxExclusiveAmount currencyID="EUR">100.00</cbc:TaxExclusiveAmount><cbc:TaxInclusiveAmount currencyID="EUR">` + gross + `</cbc:TaxInclusiveAmount><cbc:PayableAmount currencyID="EUR">` + gross + `</cbc:PayableAmount></cac:LegalMonetaryTotal>` +
		`<cac:InvoiceLine><cbc:ID>1</cbc:ID><cbc:InvoicedQuantity unitCode="EA">1</cbc:InvoicedQuantity><cbc:LineExtensionAmount currencyID="EUR">100.00</cbc:LineExtensionAmount><cac:Item><cbc:Name>Thing</cbc:Name><cac:ClassifiedTaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>20</cbc:Percent><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:ClassifiedTaxCategory></cac:Item><cac:Price><cbc:PriceAmount currencyID="EUR">100.00</cbc:PriceAmount></cac:Price></cac:InvoiceLine></Invoice>`
}

const bis = "urn:cen.eu:en16931:2017#compliant#urn:fdc:peppol.eu:2017:poacc:billing:3.0"

type body struct{ *bytes.Reader }

func (body) Close() error { return nil }

// judge runs the validator stage over a document under an agreement.
func judge(t *testing.T, agreement, doc string) *pipeline.Outcome {
	t.Helper()
	at := time.Date(2026, 10, 2, 12, 0, 0, 0, time.UTC)
	reg, err := partner.Parse([]byte(fmt.Sprintf(records, agreement)), t.TempDir(), partner.LoadOptions{Now: at})
	if err != nil {
		t.Fatal(err)
	}
	env := edi.Interchange{Standard: edi.UBL, Length: int64(len(doc))}
	env.Sender, env.Receiver = edi.Party{Qualifier: "9930", ID: "ACME"}, edi.Party{Qualifier: "9930", ID: "HUB"}
	ic := &store.Interchange{ID: edi.NewID(at), From: "acme", To: "hub", Envelope: env, At: at}
	m := &store.Message{ID: edi.NewID(at), Interchange: ic.ID, Standard: edi.UBL, From: "acme", To: "hub", At: at}
	m.Envelope = edi.Message{Position: 1, Type: "Invoice", Length: int64(len(doc))}
	stage := validate.New(map[edi.Standard][]validate.Checker{edi.UBL: {validate.UBL{}}})
	return stage.Handle(context.Background(), &pipeline.Task{
		Stage: store.Validator, Kind: store.KindMessage, ID: m.ID, Interchange: ic, Message: m, Registry: reg, Now: at,
		Open: func(store.Ref) (store.BodySource, error) { return body{bytes.NewReader([]byte(doc))}, nil },
	})
}

func TestUBLUnderAgreements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agreement, doc string
		verdict        pipeline.Verdict
		code           string
		rules          string // "rule severity" of the findings, sorted
	}{
		"valid":                  {"", invoice(bis, "120.00"), pipeline.Done, "", ""},
		"rejected":               {"on_invalid: reject", invoice(bis, "121.00"), pipeline.Done, validate.CodeInvalid, "BR-CO-15 fatal"},
		"held":                   {"on_invalid: hold", invoice(bis, "121.00"), pipeline.Hold, validate.CodeInvalid, "BR-CO-15 fatal"},
		"delivered all the same": {"on_invalid: deliver", invoice(bis, "121.00"), pipeline.Done, "", "BR-CO-15 fatal"},
		"only a warning":         {"validate: {severity: {BR-CO-15: warning}}", invoice(bis, "121.00"), pipeline.Done, "", "BR-CO-15 warning"},
		"switched off":           {"validate: {severity: {BR-CO-15: off}}", invoice(bis, "121.00"), pipeline.Done, "", ""},
		"envelope only":          {"validate: {level: envelope}", invoice(bis, "121.00"), pipeline.Done, "", ""},
		"no rules":               {"validate: {rules: []}", invoice(bis, "121.00"), pipeline.Done, "", ""},
		"core document":          {"", invoice("urn:cen.eu:en16931:2017", "120.00"), pipeline.Done, "", ""},
		"unknown document":       {"", invoice("urn:example:1", "120.00"), pipeline.Done, "", "CUSTOMIZATION_UNKNOWN warning"},
		"unknown is refused":     {"validate: {severity: {CUSTOMIZATION_UNKNOWN: fatal}}", invoice("urn:example:1", "120.00"), pipeline.Done, validate.CodeInvalid, "CUSTOMIZATION_UNKNOWN fatal"},
		"core set only":          {"validate: {rules: [en16931]}", strings.Replace(invoice(bis, "120.00"), "<cbc:BuyerReference>x</cbc:BuyerReference>", "", 1), pipeline.Done, "", ""},
		"one set and its base":   {"validate: {rules: [peppol]}", invoice(bis, "121.00"), pipeline.Done, validate.CodeInvalid, "BR-CO-15 fatal"},
		"every set":              {"validate: {rules: [auto]}", strings.Replace(invoice(bis, "120.00"), "<cbc:BuyerReference>x</cbc:BuyerReference>", "", 1), pipeline.Done, validate.CodeInvalid, "PEPPOL-EN16931-R003 fatal"},
		"structure alone":        {"validate: {rules: [ubl]}", strings.Replace(invoice(bis, "121.00"), "<cbc:ID>1</cbc:ID>", "", 1), pipeline.Done, validate.CodeInvalid, "UBL-STRUCT-MISSING fatal"},
		"cut off":                {"", invoice(bis, "120.00")[:900], pipeline.Done, validate.CodeInvalid, "UBL-XML-TRUNCATED fatal"},
		"another document":       {"", "<Order/>", pipeline.Done, validate.CodeInvalid, "UBL-XML-ROOT fatal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := judge(t, c.agreement, c.doc)
			if out.Verdict != c.verdict || len(out.Write.SaveMessages) != 1 {
				t.Fatalf("verdict %v %s (%s)", out.Verdict, out.Code, out.Detail)
			}
			m := out.Write.SaveMessages[0]
			var rules []string
			for _, f := range m.Findings {
				rules = append(rules, f.Rule+" "+string(f.Severity))
			}
			slices.Sort(rules)
			if got := strings.Join(rules, ", "); m.Code != c.code || got != c.rules {
				t.Errorf("code %q, findings %q; want %q, %q", m.Code, got, c.code, c.rules)
			}
			if emits := len(out.Emit); (emits == 1) != (c.code == "") {
				t.Errorf("%d emissions", emits)
			}
		})
	}
}
