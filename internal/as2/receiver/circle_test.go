package receiver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/as2/sender"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/endpoint/dial"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/pipeline/send"
	"github.com/edihub/edihub/internal/store"
)

// TestSenderToReceiver has our sender, as ACME, send to our receiver: every way of securing that
// both can do, and the answer of one is the proof of the other.
func TestSenderToReceiver(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	dir := t.TempDir()
	for name, b := range map[string][]byte{"acme.pem": acmeID().certPEM, "acme.key": acmeID().keyPEM, "hub.pem": hubID().certPEM} {
		check(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	d := dial.New(dial.Options{})
	defer d.Close()
	out := sender.New(sender.Options{Dial: d, Spool: h.sp})
	id := edi.NewID(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for i, tc := range []struct {
		settings string
		status   send.Status
		code     string
	}{
		{"", send.Delivered, ""},
		{"sign: sha512, encrypt: aes128-cbc", send.Delivered, ""},
		{"encrypt: none", send.Failed, "MDN_INSUFFICIENT_MESSAGE_SECURITY"},
		{"sign: none", send.Failed, "MDN_INSUFFICIENT_MESSAGE_SECURITY"},
		{"mdn: {mode: none}", send.Delivered, ""},
	} {
		settings := tc.settings
		if settings != "" {
			settings = ", " + settings
		}
		reg, err := partner.Parse([]byte(fmt.Sprintf(`
own:
  - {id: me, as2: {id: "ACME AS2", keys: [{cert: acme.pem, key: acme.key, use: [sign, decrypt]}]}}
connections:
  - {id: them, as2: {id: OURCO, own: me, url: "%s/as2"%s}, certificates: [{file: hub.pem, use: [sign, encrypt]}]}
partners:
  - {id: them, connections: [them]}
`, h.url, settings)), dir, partner.LoadOptions{})
		check(t, err)
		delivery := &send.Delivery{
			ID: id, MessageID: fmt.Sprintf("<circle-%d@edihub>", i), Connection: reg.Connection("them"), Own: reg.Own("me"),
			Payload: strings.NewReader(orders), Standard: edi.EDIFACT, Media: "application/EDIFACT", Type: "ORDERS",
		}
		for range 2 {
			res := out.Send(t.Context(), delivery)
			if res.Status != tc.status || res.Code != tc.code {
				t.Errorf("%q: status %d, code %q, %s", tc.settings, res.Status, res.Code, res.Detail)
			}
		}
		tr := h.st.all()[2*i]
		if (tr.State == store.StateAccepted) != (tc.status == send.Delivered) {
			t.Errorf("%q: kept as %s %s", tc.settings, tr.State, tr.Code)
		}
		if tr.State == store.StateAccepted && h.newest().State != store.StateRepeated {
			t.Errorf("%q: the second is %s", tc.settings, h.newest().State)
		}
	}
	if h.st.acceptedCount() != 3 {
		t.Errorf("accepted %d", h.st.acceptedCount())
	}
	d.Close()
	h.nothingLeft()
}

// sink takes everything and keeps nothing, so that a benchmark measures the receiver.
type sink struct{ *memoryStore }

func (sink) StageBody(_ context.Context, src edi.Source) (*store.Body, error) {
	_, err := io.Copy(io.Discard, io.NewSectionReader(src, 0, src.Size()))
	return &store.Body{Size: src.Size()}, err
}

// Accept takes everything, repeats too.
func (sink) Accept(context.Context, *pipeline.Arrival) error { return nil }

// BenchmarkReceive is one message of 10 KB, signed and encrypted with RSA-2048, and its signed MDN,
// over loopback without a store.
func BenchmarkReceive(b *testing.B) {
	h := newHub(b, func(h *hub, o *Options) {
		s := sink{h.st}
		o.Pipeline, o.Store = s, s
	})
	body, fields := sent(b, acmeID(), "ACME AS2", "<1@acme>", bytes.Repeat([]byte("0123456789"), 1024), nil)
	b.ResetTimer()
	for b.Loop() {
		if a := h.post(body, fields...); a.status != http.StatusOK {
			b.Fatalf("status %d", a.status)
		}
	}
}
