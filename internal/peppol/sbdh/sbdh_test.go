package sbdh

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/peppol/ubl"
)

func invoice(typeCode string) string {
	return `<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2" xmlns:cac="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2" xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2">` +
		`<cbc:CustomizationID>urn:example:custom</cbc:CustomizationID><cbc:ProfileID>urn:example:process</cbc:ProfileID><cbc:ID>1</cbc:ID><cbc:InvoiceTypeCode>` + typeCode + `</cbc:InvoiceTypeCode>` +
		`<cac:AccountingSupplierParty><cac:Party><cbc:EndpointID schemeID="0088">7300010000001</cbc:EndpointID></cac:Party></cac:AccountingSupplierParty>` +
		`<cac:AccountingCustomerParty><cac:Party><cbc:EndpointID schemeID="9930">DE1</cbc:EndpointID></cac:Party></cac:AccountingCustomerParty></Invoice>`
}

func facts(t *testing.T, doc string) *Facts {
	t.Helper()
	f, err := Read([]byte(doc), ubl.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestThereAndBack(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{"plain": "", "declared": "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"} {
		doc := invoice("380")
		want := facts(t, doc).Header("uuid-1", "2026-10-01T12:00:00Z", "FR")
		whole, err := want.Wrap([]byte(before + doc))
		if err != nil {
			t.Fatal(err)
		}
		h, from, to, err := Unwrap(whole)
		if err != nil {
			t.Fatal(err)
		}
		if *h != *want {
			t.Errorf("%s: header %+v, want %+v", name, h, want)
		}
		if got := string(whole[from:to]); got != doc {
			t.Errorf("%s: payload %q", name, got)
		}
		if fs := h.Check(facts(t, string(whole[from:to]))); len(fs) != 0 {
			t.Errorf("%s: findings %v", name, fs)
		}
	}
}

func TestHeaderOfTheDocument(t *testing.T) {
	t.Parallel()
	h := facts(t, invoice("380")).Header("i", "2026-10-01T12:00:00Z", "")
	if h.DocumentID != "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2::Invoice##urn:example:custom::2.1" || h.Type != "Invoice" || h.ProcessID != "urn:example:process" {
		t.Errorf("header %+v", h)
	}
	seller, buyer := edi.Party{Qualifier: "0088", ID: "7300010000001"}, edi.Party{Qualifier: "9930", ID: "DE1"}
	for code, want := range map[string]edi.Party{"380": seller, "381": seller, "389": buyer, "261": buyer} {
		if sender, _ := facts(t, invoice(code)).Parties(); sender != want {
			t.Errorf("type %s is sent by %v", code, sender)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	f := facts(t, invoice("380"))
	for rule, change := range map[string]func(*Header){
		"SBDH-SENDER":   func(h *Header) { h.Sender.ID = "7300010000002" },
		"SBDH-RECEIVER": func(h *Header) { h.Receiver.Qualifier = "0088" },
		"SBDH-DOCUMENT": func(h *Header) { h.DocumentID += ".1" },
		"SBDH-PROCESS":  func(h *Header) { h.ProcessID = "" },
		"SBDH-STANDARD": func(h *Header) { h.Standard = "" },
		"SBDH-TYPE":     func(h *Header) { h.Type = "CreditNote" },
		"":              func(h *Header) { h.Receiver.ID = "de1" }, // capitals do not matter
	} {
		h := f.Header("i", "2026-10-01T12:00:00Z", "")
		change(h)
		fs := h.Check(f)
		if rule == "" && len(fs) == 0 {
			continue
		}
		if len(fs) != 1 || fs[0].Rule != rule || fs[0].Severity != edi.Fatal || fs[0].Actual == fs[0].Expected {
			t.Errorf("%s: findings %+v", rule, fs)
		}
	}
}

func TestUnwrapRefuses(t *testing.T) {
	t.Parallel()
	whole, err := facts(t, invoice("380")).Header("i", "2026-10-01T12:00:00Z", "").Wrap([]byte(invoice("380")))
	if err != nil {
		t.Fatal(err)
	}
	s := string(whole)
	for name, doc := range map[string]string{
		"cut in the header":  s[:300],
		"cut in the payload": s[:len(s)-60],
		"something behind":   s + "<!-- x -->",
		"no payload":         strings.Replace(s, invoice("380"), "", 1),
		"no header":          `<StandardBusinessDocument xmlns="` + Namespace + `"><Invoice/></StandardBusinessDocument>`,
		"a long header":      strings.Replace(s, "<HeaderVersion>", "<HeaderVersion>"+strings.Repeat(" ", maxHeader), 1),
	} {
		var bad *Error
		if _, _, _, err := Unwrap([]byte(doc)); !errors.As(err, &bad) || bad.Finding().Rule != "SBDH-FORM" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, doc := range []string{"", "UNB+", invoice("380"), "<!DOCTYPE x><x/>", `<StandardBusinessDocument xmlns="urn:other"/>`} {
		if _, _, _, err := Unwrap([]byte(doc)); !errors.Is(err, ErrNone) {
			t.Errorf("%.20q: %v", doc, err)
		}
	}
	if _, err := (&Header{}).Wrap(nil); !errors.Is(err, ErrIncomplete) {
		t.Errorf("error %v", err)
	}
	h := facts(t, invoice("380")).Header("i", "yesterday", "")
	if _, err := h.Wrap([]byte(invoice("380"))); err == nil {
		t.Error("a header without a time was written")
	}
}

func FuzzUnwrap(f *testing.F) {
	f.Add([]byte(`<a:StandardBusinessDocument xmlns:a="` + Namespace + `"><a:StandardBusinessDocumentHeader><a:Sender><a:Identifier>0088:1</a:Identifier></a:Sender></a:StandardBusinessDocumentHeader><x/></a:StandardBusinessDocument>`))
	f.Add([]byte("<x/>"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		_, from, to, err := Unwrap(doc)
		if err == nil && (from >= to || to > len(doc) || doc[from] != '<' || !bytes.Contains(doc[to:], []byte("StandardBusinessDocument"))) {
			t.Errorf("payload %d to %d of %d", from, to, len(doc))
		}
	})
}
