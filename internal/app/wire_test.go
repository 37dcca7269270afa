package app_test

import (
	"bytes"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/app/hubtest"
	"github.com/edihub/edihub/internal/as2"
)

// TestWireOpensAgain: what the API shows of a transmission is enough to open what travelled and to
// prove its signature again, in each way of wrapping.
func TestWireOpensAgain(t *testing.T) {
	t.Parallel()
	h := routeHub(t, "split: messages", "  - {match: {}, to: erp}\n")
	api, seen := h.API(), map[string]bool{}
	original := file(t, "edifact/orders-one.edi")
	for _, m := range []hubtest.Message{
		{Unencrypted: true}, {Unsigned: true}, {}, {Unsigned: true, Unencrypted: true},
	} {
		m.From, m.Payload, m.UnsignedMDN = "ACME", original, true
		h.Send(m).Disposition(t, false, "processed")
		h.Settle()
		tr := api.List("transmissions")[0]
		head := http.Header{"As2-From": {"ACME"}, "As2-To": {"HUB"}, "Message-Id": {tr.Text("message_id")}, "As2-Version": {"1.0"}}
		for line := range strings.SplitSeq(tr.Text("wire_head"), "\r\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				head.Add(name, value)
			}
		}
		if wrapped := !m.Unsigned || !m.Unencrypted; wrapped != (tr.Text("wire_head") != "") {
			t.Errorf("%+v: wire_head is %q", m, tr.Text("wire_head"))
		}
		if head.Get("Content-Type") == "" {
			head.Set("Content-Type", tr.Text("media"))
		}
		headers, err := as2.ParseHeaders(head)
		if err != nil {
			t.Fatal(err)
		}
		opened, err := as2.Open(as2.Inbound{Headers: headers, Body: bytes.NewReader(api.Payload("transmissions", tr.Text("id"), "wire"))}, as2.OpenOptions{
			Decrypt: h.Own().Recipients(), Verify: []*x509.Certificate{h.Identity("ACME").Certificate}, RequireSigned: !m.Unsigned, RequireEncrypted: !m.Unencrypted,
		})
		if err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		got, err := io.ReadAll(io.NewSectionReader(opened.Payload, 0, opened.Payload.Size()))
		if err != nil || !bytes.Equal(got, original) || opened.Signed == m.Unsigned || opened.Encrypted == m.Unencrypted {
			t.Errorf("%+v: signed %v, encrypted %v, %q %v", m, opened.Signed, opened.Encrypted, got, err)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
		seen[tr.Text("id")] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d transmissions", len(seen))
	}
}
