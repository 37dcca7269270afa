package receiver

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// The real ones are what the small interfaces ask for.
var (
	_ Pipeline = (*pipeline.Pipeline)(nil)
	_ Store    = store.Store(nil)
)

// TestRequestsAtTheSameTime lets one partner hold all requests that he may have.
func TestRequestsAtTheSameTime(t *testing.T) {
	t.Parallel()
	h := newHub(t, func(_ *hub, o *Options) { o.Limits.Requests = 8 }) // 2 for a partner, 4 for a source
	hold := func(name string) *io.PipeWriter {
		pr, pw := io.Pipe()
		go func() {
			// It is cut off in the end.
			_, _ = h.try(Path, pr, append(from(name, "<h@x>"), "Content-Type: application/edifact")...)
		}()
		// The handler reads its body: it has its seat.
		if _, err := pw.Write(make([]byte, 128<<10)); err != nil {
			t.Error(err)
		}
		return pw
	}
	fields := func(name string) []string {
		return append(from(name, "<1@x>"), "Content-Type: application/edifact", askMDN)
	}
	held := []*io.PipeWriter{hold("BETA"), hold("BETA")}
	await(t, func() bool { return h.meter.Used() > 3*64<<10 }) // more than one of them can hold
	if a := h.post([]byte(orders), fields("BETA")...); a.status != http.StatusTooManyRequests {
		t.Errorf("the partner's third: status %d, want 429", a.status)
	}
	wantDisposition(t, h.post([]byte("x"), fields("GAMMA")...).mdn(t, false), "processed/error: insufficient-message-security")
	for _, pw := range held {
		check(t, pw.CloseWithError(io.ErrUnexpectedEOF))
	}
	await(t, func() bool { return h.seen.count("beta-as2 cut_off") == 2 })
	wantDisposition(t, h.post([]byte(orders), fields("BETA")...).mdn(t, false), "processed")
	h.nothingLeft()
}

// await waits for a condition that others bring about.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("it did not come about")
		}
	}
}

// TestBodyHasAnEnd sends fast enough for ever.
func TestBodyHasAnEnd(t *testing.T) {
	t.Parallel()
	h := newHub(t, func(_ *hub, o *Options) {
		o.Limits.RateWindow, o.Limits.MinBodyRate, o.Limits.BodyTimeout = 200*time.Millisecond, 1, 300*time.Millisecond
	})
	conn, err := net.Dial("tcp", h.addr)
	check(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /as2 HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n%s\r\n\r\n", strings.Join(from("BETA", "<1@beta>"), "\r\n"))
	check(t, err)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	got := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(conn) // It may end in a reset, with the answer before it.
		got <- b
	}()
	for {
		select {
		case b := <-got:
			if len(b) > 0 && !strings.HasPrefix(string(b), "HTTP/1.1 408 ") {
				t.Errorf("answer %q", b)
			}
			if h.seen.last() != "beta-as2 too_slow" {
				t.Errorf("observer %q", h.seen.last())
			}
			return
		case <-tick.C:
			_, _ = conn.Write([]byte("more"))
		}
	}
}

// TestLogHoldsNoPayload accepts, refuses and repeats messages and looks at what was logged.
func TestLogHoldsNoPayload(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.DebugLevel)
	h := newHub(t, func(_ *hub, o *Options) { o.Log = zap.New(core) })
	secret := strings.Replace(orders, "4711", "SECRET4711", 1)
	h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(secret), nil).mdn(t, true)
	h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(secret), nil).mdn(t, true)
	h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(secret+"!"), nil).mdn(t, true)
	h.send(stranger(), "ACME AS2", "<2@acme>", []byte(secret), nil).mdn(t, true)
	h.post([]byte(secret), append(from("ACME AS2", "<3@acme>"), askMDN, "Content-Type: application/edifact")...).mdn(t, false)
	h.drained()
	var results []string
	for _, e := range logs.All() {
		fields := e.ContextMap()
		if strings.Contains(fmt.Sprint(e.Message, fields), "SECRET") {
			t.Errorf("payload in the log: %v", fields)
		}
		if e.Message == "as2_received" {
			results = append(results, fmt.Sprint(fields["result"]))
			if fields["id"] == "" || fields["message_id"] == "" || fields["connection"] != "acme-as2" {
				t.Errorf("event %v", fields)
			}
		}
	}
	if got := strings.Join(results, " "); got != "accepted repeated held refused quarantined" {
		t.Errorf("events %q", got)
	}
}

// TestDetailNamesWhatWeLack refuses for a reason of our own records.
func TestDetailNamesWhatWeLack(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	x := &exchange{receiver: New(Options{Pipeline: h.st, Store: h.st, Spool: h.sp}).(*receiver), at: time.Now(),
		own: &partner.Own{ID: "hub"}, conn: &partner.Connection{ID: "acme-as2"}}
	for modifier, says := range map[string]string{as2.DecryptionFailed: "use decrypt", as2.AuthenticationFailed: "use sign", as2.IntegrityCheckFailed: "TEXT"} {
		if got := x.detail(&as2.Refusal{Modifier: modifier, Text: "TEXT" + strings.Repeat(".", 10)}); !strings.Contains(got, says) {
			t.Errorf("%s: detail %q", modifier, got)
		}
	}
	if got := x.detail(&as2.Refusal{Text: strings.Repeat("ä", 1000)}); len(got) > 500 {
		t.Errorf("%d bytes", len(got))
	}
}

// TestCertificatesFollowTheRecord takes the old and the new certificate of a partner who changes
// over, and not one that is only for encryption.
func TestCertificatesFollowTheRecord(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	c := h.st.reg.Connection("acme-as2")
	c.Certificates = []partner.Certificate{
		{Certificate: acmeID().cert, Use: []partner.Use{partner.UseSign}},
		{Certificate: betaID().cert, Use: []partner.Use{partner.UseSign}},
		{Certificate: stranger().cert, Use: []partner.Use{partner.UseEncrypt}},
	}
	wantDisposition(t, h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil).mdn(t, true), "processed")
	wantDisposition(t, h.send(betaID(), "ACME AS2", "<2@acme>", []byte(orders), nil).mdn(t, true), "processed")
	wantDisposition(t, h.send(stranger(), "ACME AS2", "<3@acme>", []byte(orders), nil).mdn(t, true), "processed/error: authentication-failed")
}

// FuzzReceive posts anything under the name of a partner who must sign and encrypt: nothing of it
// is ever accepted, and every answer is a refusal.
func FuzzReceive(f *testing.F) {
	var b bytes.Buffer
	entity := entityOf(signedType, multipart(boundaryMark, part(orders), []byte("Content-Type: application/pkcs7-signature\r\n\r\n0")))
	if err := cms.Encrypt(&b, bytes.NewReader(entity), int64(len(entity)), []*x509.Certificate{hubID().cert}, cms.AES256CBC); err != nil {
		f.Fatal(err)
	}
	f.Add(envelopedType, b.Bytes())
	f.Add(envelopedType, b.Bytes()[:b.Len()/2])
	f.Add(signedType, entity)
	f.Add("application/edifact", []byte(orders))
	f.Add(`multipart/report; boundary="R"`, []byte("--R--"))
	f.Add("multipart/", []byte("x"))
	f.Add("", []byte{})
	h := newHub(f, nil)
	handler := New(Options{Pipeline: h.st, Store: h.st, Spool: h.sp})
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body))
		for name, v := range map[string]string{"AS2-From": `"ACME AS2"`, "AS2-To": "OURCO", "Message-ID": "<1@acme>", "Content-Type": contentType, "Disposition-Notification-To": "x"} {
			r.Header.Set(name, v)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if h.st.acceptedCount() != 0 {
			t.Fatal("accepted")
		}
		switch {
		case w.Code == http.StatusOK:
			m, err := as2.ParseMDN(w.Header(), w.Body.Bytes(), nil, false)
			if err != nil || m.Outcome != as2.Negative {
				t.Fatalf("MDN %+v, %v", m, err)
			}
		case w.Code < 400 || w.Code >= 500:
			t.Fatalf("status %d, body %q", w.Code, w.Body.String())
		}
	})
}

// TestPanicTellsNoPayload has the hub panic with a piece of the message as its value: the sender
// gets no answer and sends again, and the log has the type of the value and not the value.
func TestPanicTellsNoPayload(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.DebugLevel)
	var n atomic.Int64
	h := newHub(t, func(_ *hub, o *Options) {
		o.Log = zap.New(core)
		o.Probe = func(string) {
			if n.Add(1) == 1 {
				panic("near BGM+220+4711")
			}
		}
	})
	body, fields := sent(t, acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil)
	if a, err := h.try(Path, bytes.NewReader(body), fields...); err == nil {
		t.Fatalf("an answer: HTTP %d", a.status)
	}
	wantDisposition(t, h.post(body, fields...).mdn(t, true), "processed")
	if h.st.acceptedCount() != 1 {
		t.Errorf("accepted %d", h.st.acceptedCount())
	}
	h.nothingLeft()
	seen := logs.FilterMessage("as2_panic").All()
	if len(seen) != 1 || seen[0].ContextMap()["panic"] != "string" {
		t.Errorf("log %v", seen)
	}
	for _, e := range logs.All() {
		if strings.Contains(e.Message+fmt.Sprint(e.ContextMap()), "4711") {
			t.Errorf("the log tells the value of the panic: %v", e)
		}
	}
}
