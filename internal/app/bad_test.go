package app_test

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/app/hubtest"
	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/store"
)

// ubl is the beginning and the end of an invoice from ACME to GLOBEX, with something in between.
func ubl(prolog, number, middle string) []byte {
	party := func(role, id string) string {
		return `<cac:Accounting` + role + `Party><cac:Party><cbc:EndpointID schemeID="0088">` + id + `</cbc:EndpointID></cac:Party></cac:Accounting` + role + `Party>`
	}
	return []byte(`<?xml version="1.0" encoding="UTF-8"?>` + prolog + `<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2" xmlns:cac="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2" xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"><cbc:ID>` + number + `</cbc:ID><cbc:IssueDate>2026-11-30</cbc:IssueDate><cbc:InvoiceTypeCode>380</cbc:InvoiceTypeCode>` +
		party("Supplier", "ACME") + party("Customer", "GLOBEX") + middle + `</Invoice>`)
}

// badInput is something that must not come through, and what must become of it.
type badInput struct {
	name string
	make func(t *testing.T, h *hubtest.Hub, id string) *hubtest.Request

	status      int    // HTTP; 0: 200
	disposition string // of the MDN; empty: there is none
	unsigned    bool   // the MDN
	positive    bool   // what came was readable; the rest is about the documents

	transmission string // "state CODE"; empty: none is kept
	interchange  string // "state CODE"; empty: there is none
	messages     string // states with codes of its messages, sorted
	dead         string // "stage CODE"
}

func badInputs() []badInput {
	from := func(m hubtest.Message) func(*testing.T, *hubtest.Hub, string) *hubtest.Request {
		return func(_ *testing.T, h *hubtest.Hub, id string) *hubtest.Request {
			m := m
			m.MessageID = id
			return h.Message(m)
		}
	}
	acme := func(payload []byte, media string) func(*testing.T, *hubtest.Hub, string) *hubtest.Request {
		return from(hubtest.Message{From: "ACME", Payload: payload, Media: media})
	}
	changed := func(m hubtest.Message, change func(r *hubtest.Request)) func(*testing.T, *hubtest.Hub, string) *hubtest.Request {
		return func(_ *testing.T, h *hubtest.Hub, id string) *hubtest.Request {
			m := m
			m.MessageID = id
			r := h.Message(m)
			change(r)
			return r
		}
	}
	evil := edifactOrder("ACME", "GLOBEX", 900, evilMark)
	plainBeta := hubtest.Message{From: "BETA", Payload: edifactOrder("BETA", "GLOBEX", 900, evilMark), Unencrypted: true}
	two := bytes.Replace(edifactOrder("ACME", "GLOBEX", 901, evilMark), []byte("UNZ+1+"), []byte("UNH+2+ORDERS:D:96A:UN'BGM+220+"+evilMark+"2+9'UNT+3+2'UNZ+2+"), 1)
	const positive = "processed"
	return []badInput{
		{name: "envelope cut off", make: changed(hubtest.Message{From: "ACME", Payload: evil}, func(r *hubtest.Request) { r.Body = r.Body[:len(r.Body)-40] }),
			disposition: "processed/error: decryption-failed", transmission: "refused DECRYPTION_FAILED"},
		{name: "MIME cut off", make: changed(plainBeta, func(r *hubtest.Request) { r.Body = r.Body[:len(r.Body)/2] }),
			disposition: "processed/error: unexpected-processing-error", transmission: "refused MIME_MALFORMED"},
		{name: "MIME without its last boundary", make: changed(plainBeta, func(r *hubtest.Request) { r.Body = r.Body[:bytes.LastIndex(r.Body, []byte("--"))-40] }),
			disposition: "processed/error: unexpected-processing-error", transmission: "refused MIME_MALFORMED"},
		{name: "encrypted for somebody else", make: func(t *testing.T, h *hubtest.Hub, id string) *hubtest.Request {
			var b bytes.Buffer
			if err := cms.Encrypt(&b, bytes.NewReader(evil), int64(len(evil)), []*x509.Certificate{h.Identity("STRANGER").Certificate}, cms.AES256CBC); err != nil {
				t.Fatal(err)
			}
			return &hubtest.Request{Header: as2Header("ACME", id, envelopedType), Body: b.Bytes()}
		}, disposition: "processed/error: decryption-failed", transmission: "refused DECRYPTION_FAILED"},
		{name: "signed by somebody else", make: func(_ *testing.T, h *hubtest.Hub, id string) *hubtest.Request {
			return h.Message(hubtest.Message{From: "ACME", MessageID: id, Payload: evil, Signer: h.Identity("STRANGER")})
		}, disposition: "processed/error: authentication-failed", transmission: "refused AUTHENTICATION_FAILED"},
		{name: "changed after it was signed", make: changed(plainBeta, func(r *hubtest.Request) { r.Body = bytes.Replace(r.Body, []byte("QTY+21:5"), []byte("QTY+21:9"), 1) }),
			disposition: "processed/error: integrity-check-failed", transmission: "refused INTEGRITY_CHECK_FAILED"},
		{name: "not signed", make: from(hubtest.Message{From: "ACME", Payload: evil, Unsigned: true}),
			disposition: "processed/error: insufficient-message-security", transmission: "quarantined NOT_SIGNED"},
		{name: "not encrypted", make: from(hubtest.Message{From: "ACME", Payload: evil, Unencrypted: true}),
			disposition: "processed/error: insufficient-message-security", transmission: "quarantined NOT_ENCRYPTED"},
		{name: "unknown partner", make: changed(hubtest.Message{From: "ACME", Payload: evil}, func(r *hubtest.Request) { r.Header["AS2-From"] = []string{"NOBODY"} }),
			disposition: "processed/error: authentication-failed", unsigned: true},
		{name: "unknown partner who wants no MDN", make: changed(hubtest.Message{From: "ACME", Payload: evil, NoMDN: true}, func(r *hubtest.Request) { r.Header["AS2-From"] = []string{"NOBODY"} }),
			status: http.StatusForbidden},
		{name: "for somebody else", make: changed(hubtest.Message{From: "ACME", Payload: evil}, func(r *hubtest.Request) { r.Header["AS2-To"] = []string{"GLOBEX"} }),
			disposition: "processed/error: authentication-failed", unsigned: true},
		{name: "empty body", make: changed(hubtest.Message{From: "ACME", Payload: evil}, func(r *hubtest.Request) { r.Body = nil }),
			disposition: "processed/error: unexpected-processing-error", transmission: "refused EMPTY_PAYLOAD"},
		{name: "empty file", make: acme(nil, ""), disposition: "processed/error: unexpected-processing-error", transmission: "refused EMPTY_PAYLOAD"},
		{name: "larger than allowed", make: from(hubtest.Message{From: "GAMMA", Payload: bytes.Repeat([]byte(evilMark), 20<<10)}),
			status: http.StatusRequestEntityTooLarge, transmission: "refused MESSAGE_TOO_LARGE"},
		{name: "larger than allowed and untold", make: changed(hubtest.Message{From: "GAMMA", Payload: bytes.Repeat([]byte(evilMark), 20<<10)}, func(r *hubtest.Request) { r.Chunked = true }),
			status: http.StatusRequestEntityTooLarge, transmission: "refused MESSAGE_TOO_LARGE"},
		{name: "a content coding", make: changed(hubtest.Message{From: "ACME", Payload: evil}, func(r *hubtest.Request) { r.Header.Set("Content-Encoding", "gzip") }),
			status: http.StatusUnsupportedMediaType, transmission: "refused CONTENT_CODING"},
		{name: "no AS2 headers", make: changed(hubtest.Message{From: "ACME", Payload: evil}, func(r *hubtest.Request) { r.Header = http.Header{"Content-Type": {"application/edifact"}} }),
			status: http.StatusBadRequest},
		{name: "another path", make: changed(hubtest.Message{From: "ACME", Payload: evil}, func(r *hubtest.Request) { r.Path = "/as2/other" }),
			status: http.StatusNotFound},

		{name: "in another's name", make: acme(edifactOrder("BETA", "GLOBEX", 902, evilMark), ""), disposition: positive, positive: true,
			transmission: "accepted", interchange: "dead SENDER_NOT_ON_CONNECTION", dead: "parser SENDER_NOT_ON_CONNECTION"},
		{name: "garbage", make: acme([]byte("\x00\xff\x01 "+evilMark+" \x80\x81"), ""), disposition: positive, positive: true,
			transmission: "accepted", interchange: "dead UNKNOWN_CONTENT", dead: "parser UNKNOWN_CONTENT"},
		{name: "UNB and nothing else", make: acme([]byte("UNB+UNOC:3"), ""), disposition: positive, positive: true,
			transmission: "accepted", interchange: "dead SENDER_NOT_ON_CONNECTION", dead: "parser SENDER_NOT_ON_CONNECTION"},
		{name: "no UNZ", make: acme(evil[:bytes.Index(evil, []byte("UNZ+"))], ""), disposition: positive, positive: true,
			transmission: "accepted", interchange: "rejected ENVELOPE_INVALID", messages: "rejected ENVELOPE_INVALID"},
		{name: "cut off in the second message", make: acme(two[:bytes.Index(two, []byte(evilMark+"2"))], ""), disposition: positive, positive: true,
			transmission: "accepted", interchange: "rejected ENVELOPE_INVALID", messages: "rejected ENVELOPE_INVALID, rejected MESSAGE_INVALID"},
		{name: "wrong count in UNZ", make: acme(bytes.Replace(evil, []byte("UNZ+1+"), []byte("UNZ+3+"), 1), ""), disposition: positive, positive: true,
			transmission: "accepted", interchange: "rejected ENVELOPE_INVALID", messages: "rejected ENVELOPE_INVALID"},
		{name: "no IEA", make: acme(bytes.Split(x12Order("ACME", "GLOBEX", 900, evilMark), []byte("IEA"))[0], "application/EDI-X12"), disposition: positive, positive: true,
			transmission: "accepted", interchange: "rejected ENVELOPE_INVALID", messages: "rejected ENVELOPE_INVALID"},
		{name: "wrong count in SE", make: acme(bytes.Replace(x12Order("ACME", "GLOBEX", 901, evilMark), []byte("SE*5*"), []byte("SE*6*"), 1), "application/EDI-X12"), disposition: positive, positive: true,
			transmission: "accepted", interchange: "rejected MESSAGE_INVALID", messages: "rejected MESSAGE_INVALID"},
		{name: "XML with an entity", make: acme(ubl(`<!DOCTYPE Invoice [<!ENTITY x SYSTEM "file:///etc/passwd">]>`, evilMark, "<cbc:Note>&x;</cbc:Note>"), "application/xml"), disposition: positive, positive: true,
			transmission: "accepted", interchange: "dead UNKNOWN_CONTENT", dead: "parser UNKNOWN_CONTENT"},
		{name: "XML with a billion laughs", make: acme(ubl(`<!DOCTYPE Invoice [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>`, evilMark, "<cbc:Note>&c;</cbc:Note>"), "application/xml"), disposition: positive, positive: true,
			transmission: "accepted", interchange: "dead UNKNOWN_CONTENT", dead: "parser UNKNOWN_CONTENT"},
		{name: "XML with an undeclared entity", make: acme(ubl("", evilMark, "<cbc:Note>&x;</cbc:Note>"), "application/xml"), disposition: positive, positive: true,
			transmission: "accepted", interchange: "rejected MESSAGE_INVALID", messages: "rejected MESSAGE_INVALID"},
		{name: "XML of 10,000 levels", make: acme(ubl("", evilMark, strings.Repeat("<cac:X>", 10_000)+strings.Repeat("</cac:X>", 10_000)), "application/xml"), disposition: positive, positive: true,
			transmission: "accepted", interchange: "rejected MESSAGE_INVALID", messages: "rejected MESSAGE_INVALID"},
		{name: "XML cut off", make: acme(ubl("", evilMark, "")[:600], "application/xml"), disposition: positive, positive: true,
			transmission: "accepted", interchange: "rejected MESSAGE_INVALID", messages: "rejected MESSAGE_INVALID"},
		{name: "unknown receiver", make: acme(edifactOrder("ACME", "NOBODY", 903, evilMark), ""), disposition: positive, positive: true,
			transmission: "accepted", interchange: "split", messages: "dead NO_ROUTE", dead: "router NO_ROUTE"},
	}
}

// TestBadInput posts what must not come through, each on its own, with a good message behind it.
func TestBadInput(t *testing.T) {
	t.Parallel()
	// One bad letter of an operator's kind blocks the lane of its sender by policy; that is not
	// what is looked at here.
	h := newWorld(t, func(o *hubtest.Options) {
		o.Records = strings.Replace(world, "{match: {}, acks", "{match: {}, on_poison: skip, acks", 1)
	})
	api := h.API()
	words := func(o hubtest.Object) string { return strings.TrimSpace(o.Text("state") + " " + o.Text("code")) }
	for i, tc := range badInputs() {
		t.Run(tc.name, func(t *testing.T) {
			id := fmt.Sprintf("<bad-%d@partner>", i)
			kept, letters := len(api.List("transmissions")), len(api.List("deadletters"))
			a := h.Post(tc.make(t, h, id))
			if tc.status == 0 {
				tc.status = http.StatusOK
			}
			switch {
			case a.Status != tc.status:
				t.Fatalf("HTTP %d, want %d: %s", a.Status, tc.status, a.Body)
			case tc.positive:
				a.Positive(t)
			case tc.disposition != "":
				a.Disposition(t, !tc.unsigned, tc.disposition)
			case a.MDN != nil:
				t.Fatalf("an MDN %+v", a.MDN)
			}
			h.Settle()
			ts := transmissions(h, id)
			if tc.transmission == "" {
				if n := len(api.List("transmissions")); n != kept {
					t.Fatalf("%d transmissions more are kept", n-kept)
				}
			} else if len(ts) != 1 || words(ts[0]) != tc.transmission {
				t.Fatalf("transmissions %v, want %s", ts, tc.transmission)
			}
			if len(ts) > 0 {
				ics := api.List("interchanges?transmission=" + ts[0].Text("id"))
				got := ""
				if len(ics) == 1 {
					got = words(ics[0])
					if strings.HasPrefix(got, store.StateRejected) && ics[0].Text("findings") == "[]" && tc.messages == "" {
						t.Errorf("rejected without a finding: %v", ics[0])
					}
				}
				if len(ics) > 1 || got != tc.interchange {
					t.Errorf("interchange %q, want %q: %v", got, tc.interchange, ics)
				}
				var ms []string
				for _, m := range api.List("messages?transmission=" + ts[0].Text("id")) {
					ms = append(ms, words(m))
				}
				slices.Sort(ms)
				if got := strings.Join(ms, ", "); got != tc.messages {
					t.Errorf("messages %q, want %q", got, tc.messages)
				}
			}
			if dead := api.List("deadletters"); tc.dead == "" && len(dead) != letters || tc.dead != "" && (len(dead) != letters+1 || dead[0].Text("stage")+" "+dead[0].Text("code") != tc.dead) {
				t.Errorf("%d dead letters, the newest %v, want %q", len(dead), dead[:min(1, len(dead))], tc.dead)
			}
			if n := holding(h, evilMark); n != 0 {
				t.Errorf("%d deliveries", n)
			}
			number := fmt.Sprintf("BEHIND-%d-", i)
			h.Send(hubtest.Message{From: "ACME", Payload: edifactOrder("ACME", "GLOBEX", i+1, number)}).Positive(t)
			h.Settle()
			if holding(h, number) != 1 {
				t.Error("the message behind it was not delivered")
			}
		})
	}
	freeLanes(t, h)
}
