package receiver

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/spool"
	"github.com/edihub/edihub/internal/store"
)

// part is the MIME part that a partner signs.
func part(payload string) []byte {
	return []byte("Content-Type: application/edifact\r\nContent-Disposition: attachment; filename=\"orders.edi\"\r\n\r\n" + payload)
}

// TestOpenSSLAsPartner has OpenSSL sign and encrypt a message and verify the signed MDN.
func TestOpenSSLAsPartner(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	dir := t.TempDir()
	cert, key := acmeID().files(t)
	hubCert, _ := hubID().files(t)

	signedPart := part(orders)
	content := writeFile(t, dir, "part", signedPart)
	sig := openssl(t, "cms", "-sign", "-binary", "-md", "sha256", "-in", content, "-signer", cert, "-inkey", key, "-outform", "DER")
	var entity bytes.Buffer
	entity.WriteString("Content-Type: multipart/signed; protocol=\"application/pkcs7-signature\"; micalg=sha-256; boundary=\"XX\"\r\n\r\n--XX\r\n")
	entity.Write(signedPart)
	entity.WriteString("\r\n--XX\r\nContent-Type: application/pkcs7-signature\r\nContent-Transfer-Encoding: binary\r\n\r\n")
	entity.Write(sig)
	entity.WriteString("\r\n--XX--\r\n")
	plain := writeFile(t, dir, "entity", entity.Bytes())
	wire := openssl(t, "cms", "-encrypt", "-binary", "-aes-256-cbc", "-in", plain, "-outform", "DER", hubCert)

	a := h.post(wire, append(from("ACME AS2", "<1@acme>"), "Content-Type: application/pkcs7-mime; smime-type=enveloped-data", askMDN, askSigned)...)
	m := a.mdn(t, true)
	wantDisposition(t, m, "processed")
	if m.OriginalMessageID != "<1@acme>" || m.MIC != mic256(signedPart) || m.From != "OURCO" || m.To != "ACME AS2" {
		t.Errorf("MDN %+v", m)
	}

	// OpenSSL splits nothing, so the two halves of the MDN are cut out by hand.
	boundary := a.header.Get("Content-Type")
	boundary = strings.Trim(boundary[strings.Index(boundary, "boundary=")+len("boundary="):], `"`)
	parts := bytes.Split(a.body, []byte("--"+boundary))
	report := bytes.TrimSuffix(bytes.TrimPrefix(parts[1], []byte("\r\n")), []byte("\r\n"))
	_, p7s, _ := bytes.Cut(parts[2], []byte("\r\n\r\n"))
	sigFile := writeFile(t, dir, "mdn.p7s", []byte("-----BEGIN CMS-----\n"+strings.ReplaceAll(strings.TrimSpace(string(p7s)), "\r", "")+"\n-----END CMS-----\n"))
	reportFile := writeFile(t, dir, "report", report)
	got := openssl(t, "cms", "-verify", "-binary", "-inform", "PEM", "-in", sigFile, "-content", reportFile, "-noverify", "-nointern", "-certfile", hubCert)
	if !bytes.Equal(got, report) {
		t.Error("OpenSSL verified other bytes than the report")
	}

	tr := h.only()
	if tr.State != store.StateAccepted || tr.Connection != "acme-as2" || tr.Own != "hub" || tr.From != "ACME AS2" || tr.To != "OURCO" ||
		tr.MessageID != "<1@acme>" || tr.FileName != "orders.edi" || tr.Media != "application/edifact" || !tr.Signed || !tr.Encrypted ||
		tr.MIC != mic256(signedPart)+", sha-256" || tr.Size != int64(len(orders)) || tr.WireSize != int64(len(wire)) ||
		tr.Source != "127.0.0.1" || tr.Transport != "as2" || tr.At.IsZero() {
		t.Errorf("transmission %s %s %q", tr.State, tr.Code, tr.Detail)
	}
	if string(h.st.body(tr.Content)) != orders || !bytes.Equal(h.st.body(tr.Wire), wire) {
		t.Error("content or wire are not what was sent")
	}
	_, stored, err := ParseAnswer(tr.Answer)
	check(t, err)
	if !bytes.Equal(stored, a.body) {
		t.Error("the stored MDN is not the one that was sent")
	}
	if h.seen.last() != "acme-as2 accepted" {
		t.Errorf("observer: %q", h.seen.last())
	}
	h.nothingLeft()
}

func TestReceiptsAsAskedFor(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		fields []string
		check  func(t *testing.T, a answer)
	}{
		{"none", nil, func(t *testing.T, a answer) {
			if a.status != 200 || len(a.body) != 0 {
				t.Errorf("status %d, body %q; want an empty 200", a.status, a.body)
			}
		}},
		{"unsigned, MIC all the same", []string{askMDN}, func(t *testing.T, a answer) {
			m := a.mdn(t, false)
			wantDisposition(t, m, "processed")
			if m.MIC != mic256([]byte(orders)) || m.MICAlg != "sha-256" {
				t.Errorf("MIC %q, %q", m.MIC, m.MICAlg)
			}
		}},
		{"signed, first algorithm that we know, in the sender's spelling", []string{askMDN,
			"Disposition-Notification-Options: signed-receipt-micalg=optional,md5,SHA512,sha1; signed-receipt-protocol=optional,pkcs7-signature"}, func(t *testing.T, a answer) {
			m := a.mdn(t, true)
			if m.MICAlg != "SHA512" {
				t.Errorf("algorithm %q", m.MICAlg)
			}
		}},
		{"asynchronous, answered at once all the same", []string{askMDN, askSigned, "Receipt-Delivery-Option: http://127.0.0.1:1/mdn"}, func(t *testing.T, a answer) {
			wantDisposition(t, a.mdn(t, true), "processed")
		}},
		{"id echoed byte for byte", []string{askMDN, "Message-ID: no-brackets at all"}, func(t *testing.T, a answer) {
			if m := a.mdn(t, false); m.OriginalMessageID != "no-brackets at all" {
				t.Errorf("Original-Message-ID %q", m.OriginalMessageID)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, nil)
			fields := []string{fromBeta, toUs, "Content-Type: application/edifact"}
			if !strings.Contains(strings.Join(tc.fields, "\n"), "Message-ID") {
				fields = append(fields, "Message-ID: <1@beta>")
			}
			tc.check(t, h.post([]byte(orders), append(fields, tc.fields...)...))
			tr := h.only()
			if tr.State != store.StateAccepted || string(h.st.body(tr.Content)) != orders || tr.Wire != tr.Content {
				t.Errorf("transmission %s %s %q", tr.State, tr.Code, tr.Detail)
			}
		})
	}
}

func TestPathMDNTakesMessagesToo(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	a, err := h.try(PathMDN, strings.NewReader(orders), append(from("BETA", "<1@beta>"), "Content-Type: application/edifact", askMDN)...)
	check(t, err)
	wantDisposition(t, a.mdn(t, false), "processed")
}

func TestAsynchronousMDNIsRefusedWithoutAnMDN(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	report := "--R\r\nContent-Type: message/disposition-notification\r\n\r\nDisposition: automatic-action/MDN-sent-automatically; processed\r\n\r\n--R--\r\n"
	a := h.post([]byte(report), append(from("BETA", "<mdn@beta>"), askMDN, `Content-Type: multipart/report; report-type=disposition-notification; boundary="R"`)...)
	if a.status != http.StatusUnprocessableEntity || strings.Contains(string(a.body), "Disposition") {
		t.Errorf("status %d, body %q", a.status, a.body)
	}
	if tr := h.only(); tr.State != store.StateRefused || tr.Code != CodeAsyncMDN || string(h.st.body(tr.Wire)) != report {
		t.Errorf("transmission %s %s %q", tr.State, tr.Code, tr.Detail)
	}
}

func TestWhatIsNoAS2Message(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	for _, tc := range []struct {
		name, method, path string
		fields             []string
		status             int
		says               string
	}{
		{"GET", http.MethodGet, Path, nil, 405, "POST"},
		{"HEAD", http.MethodHead, Path, nil, 405, ""},
		{"other path", http.MethodPost, "/", nil, 404, "/as2"},
		{"no headers", http.MethodPost, Path, nil, 400, "AS2-From"},
		{"no Message-ID", http.MethodPost, Path, []string{fromBeta, toUs}, 400, "Message-ID"},
		{"two AS2-From", http.MethodPost, Path, []string{fromBeta, fromAcme, toUs, "Message-ID: <1@x>"}, 400, "AS2-From"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req, err := http.NewRequest(tc.method, h.url+tc.path, strings.NewReader("x"))
			check(t, err)
			for _, f := range tc.fields {
				name, value, _ := strings.Cut(f, ": ")
				req.Header[name] = append(req.Header[name], value)
			}
			resp, err := h.client.Do(req)
			check(t, err)
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			check(t, err)
			if resp.StatusCode != tc.status || !strings.Contains(string(body), tc.says) || strings.Count(string(body), "\n") > 1 {
				t.Errorf("status %d, body %q", resp.StatusCode, body)
			}
			if resp.Header.Get("Location") != "" {
				t.Error("a redirect")
			}
		})
	}
	if n := len(h.st.all()); n != 0 {
		t.Errorf("%d transmissions are kept", n)
	}
}

func TestUnknownPairStoresNothing(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	texts := map[string]bool{}
	for _, names := range [][]string{
		{"AS2-From: NOBODY", toUs}, {fromBeta, "AS2-To: SOMEBODY"}, {"AS2-From: beta", toUs}, {"AS2-From: OURCO", "AS2-To: BETA"},
	} {
		fields := append([]string{"Message-ID: <1@x>", "Content-Type: application/edifact"}, names...)
		if a := h.post([]byte(orders), fields...); a.status != http.StatusForbidden {
			t.Errorf("%v: status %d, want 403", names, a.status)
		}
		a := h.post([]byte(orders), append(fields, askMDN, askSigned)...)
		m := a.mdn(t, false)
		wantDisposition(t, m, "processed/error: authentication-failed")
		texts[m.Text[strings.Index(m.Text, "Reason"):]] = true
		if h.seen.last() != " unknown_pair" {
			t.Errorf("observer %q", h.seen.last())
		}
	}
	if len(texts) != 1 {
		t.Errorf("the text depends on the names: %v", texts)
	}
	if n := len(h.st.all()); n != 0 {
		t.Errorf("%d transmissions are kept", n)
	}
	h.nothingLeft()
}

// endless is a body that never ends by itself.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read += int64(len(p))
	return len(p), nil
}

// TestJudgedBeforeTheBody refuses what the headers alone show without a look at the body.
func TestJudgedBeforeTheBody(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	s := New(Options{Pipeline: h.st, Store: h.st, Spool: h.sp, Meter: spool.NewMeter(spool.Limits{PerPartner: 4000})})
	for name, tc := range map[string]struct {
		from, coding string
		length       int64
		status       int
	}{
		"unknown pair":     {"NOBODY", "", 1000, http.StatusForbidden},
		"too large":        {"GAMMA", "", 5000, http.StatusRequestEntityTooLarge},
		"content coding":   {"GAMMA", "gzip", 1000, http.StatusUnsupportedMediaType},
		"no room for this": {"GAMMA", "", 4050, http.StatusTooManyRequests},
	} {
		t.Run(name, func(t *testing.T) {
			body := &endless{}
			r := httptest.NewRequest(http.MethodPost, Path, body)
			r.ContentLength = tc.length
			for name, v := range map[string]string{"AS2-From": tc.from, "AS2-To": "OURCO", "Message-ID": "<1@x>", "Content-Encoding": tc.coding} {
				r.Header.Set(name, v)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != tc.status || body.read != 0 {
				t.Errorf("status %d after %d bytes of the body, want %d", w.Code, body.read, tc.status)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil) // GAMMA may send 4096 bytes
	big := bytes.Repeat([]byte("x"), 5000)
	for name, body := range map[string]io.Reader{
		"Content-Length":   bytes.NewReader(big),
		"chunked":          io.MultiReader(bytes.NewReader(big)),
		"chunked, endless": io.LimitReader(&endless{}, 64<<20),
	} {
		t.Run(name, func(t *testing.T) {
			a, err := h.try(Path, body, append(from("GAMMA", "<1@gamma>"), "Content-Type: application/edifact", askMDN)...)
			if err != nil {
				// The server may close before an endless body is written; then the record is the answer.
				if name != "chunked, endless" {
					t.Fatal(err)
				}
			} else if a.status != http.StatusRequestEntityTooLarge || !strings.Contains(string(a.body), "4096") {
				t.Errorf("status %d, body %q", a.status, a.body)
			}
			if tr := h.newest(); tr.State != store.StateRefused || tr.Code != CodeTooLarge || !tr.Wire.IsZero() {
				t.Errorf("transmission %s %s %q", tr.State, tr.Code, tr.Detail)
			}
		})
	}
	if a := h.post(bytes.Repeat([]byte("x"), 4096), append(from("GAMMA", "<2@gamma>"), "Content-Type: application/edifact", askMDN)...); a.status != 200 {
		t.Errorf("the limit itself: status %d", a.status)
	}
	h.nothingLeft()
}

func TestContentCoding(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	a := h.post([]byte(orders), append(from("BETA", "<1@beta>"), askMDN, "Content-Encoding: gzip")...)
	if a.status != http.StatusUnsupportedMediaType {
		t.Errorf("status %d", a.status)
	}
	if tr := h.only(); tr.Code != CodeContentCoding || tr.State != store.StateRefused {
		t.Errorf("transmission %s %s %q", tr.State, tr.Code, tr.Detail)
	}
	if a := h.post([]byte(orders), append(from("BETA", "<1@beta>"), "Content-Encoding: identity")...); a.status != 200 {
		t.Errorf("identity: status %d", a.status)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	ok, okFields := sent(t, acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil)
	// A message that is signed only, for its MIME structure.
	signed, signedFields := sent(t, betaID(), "BETA", "<1@beta>", []byte(orders), func(o *as2.BuildOptions) { o.Encrypt = nil })
	enveloped := "Content-Type: application/pkcs7-mime; smime-type=enveloped-data"
	acme := slices.Clip(append(from("ACME AS2", "<1@acme>"), askMDN, askSigned))
	for _, tc := range []struct {
		name        string
		body        []byte
		fields      []string
		disposition string
		code, state string
		status      int // where no MDN is asked for
	}{
		{"empty body", nil, append(acme, enveloped), "processed/error: unexpected-processing-error", CodeEmpty, store.StateRefused, 400},
		{"garbage", []byte("\x30\x82garbage"), append(acme, enveloped), "processed/error: decryption-failed", as2.CodeDecryption, store.StateRefused, 400},
		{"cut ciphertext", ok[:len(ok)/2], okFields, "processed/error: decryption-failed", as2.CodeDecryption, store.StateRefused, 400},
		{"not encrypted", []byte(orders), append(acme, "Content-Type: application/edifact"), "processed/error: insufficient-message-security", as2.CodeNotEncrypted, store.StateQuarantined, 403},
		{"cut MIME", signed[:len(signed)-30], signedFields, "", "", store.StateRefused, 0},
		{"MIME without a boundary", []byte(orders), append(from("BETA", "<1@beta>"), askMDN, askSigned, "Content-Type: multipart/signed; boundary=nowhere"),
			"processed/error: unexpected-processing-error", as2.CodeMIME, store.StateRefused, 400},
		{"MIC algorithm that is required and not known", []byte(orders), append(from("BETA", "<1@beta>"), askMDN, "Content-Type: application/edifact",
			"Disposition-Notification-Options: signed-receipt-protocol=required, pkcs7-signature; signed-receipt-micalg=required, md5"),
			"failed/Failure: unsupported MIC-algorithms", as2.CodeMICAlgorithm, store.StateRefused, 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, nil)
			a := h.post(tc.body, tc.fields...)
			m := a.mdn(t, true)
			if tc.disposition != "" {
				wantDisposition(t, m, tc.disposition)
			}
			if m.Outcome != as2.Negative {
				t.Errorf("outcome %v", m.Outcome)
			}
			tr := h.only()
			if tr.State != tc.state || tc.code != "" && tr.Code != tc.code || tr.Code == "" || tr.Detail == "" {
				t.Errorf("transmission %s %s %q", tr.State, tr.Code, tr.Detail)
			}
			if !bytes.Equal(h.st.body(tr.Wire), tc.body) || !tr.Content.IsZero() {
				t.Error("the wire is not kept as it was, or content was")
			}
			if len(tc.body) > 0 && !strings.HasPrefix(tr.WireHead, "Content-Type: ") {
				t.Errorf("the wire is kept without the head that it needs: %q", tr.WireHead)
			}
			if _, stored, err := ParseAnswer(tr.Answer); err != nil || !bytes.Equal(stored, a.body) {
				t.Errorf("the MDN is not kept: %v", err)
			}
			if h.st.acceptedCount() != 0 {
				t.Error("accepted")
			}
			var unasked []string
			for _, f := range tc.fields {
				if !strings.HasPrefix(f, "Disposition-Notification") {
					unasked = append(unasked, f)
				}
			}
			if a := h.post(tc.body, unasked...); tc.status != 0 && tc.code != as2.CodeMICAlgorithm && a.status != tc.status {
				t.Errorf("without an MDN: status %d, want %d", a.status, tc.status)
			}
			h.nothingLeft()
		})
	}
}

func TestEmptyPayload(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	m := h.send(acmeID(), "ACME AS2", "<1@acme>", nil, nil).mdn(t, true)
	wantDisposition(t, m, "processed/error: unexpected-processing-error")
	if tr := h.only(); tr.Code != CodeEmpty || !tr.Signed || tr.State != store.StateRefused {
		t.Errorf("transmission %s %s %q", tr.State, tr.Code, tr.Detail)
	}
	// Encrypted and not signed, an empty content looks like every other broken ciphertext.
	empty := h.send(acmeID(), "GAMMA", "<1@gamma>", nil, func(o *as2.BuildOptions) { o.Sign = nil; o.Receipt.Signed = false }).mdn(t, false)
	garbage := h.post([]byte("\x30\x82garbage"), append(from("GAMMA", "<1@gamma>"), askMDN, "Content-Type: application/pkcs7-mime; smime-type=enveloped-data")...).mdn(t, false)
	wantDisposition(t, empty, "processed/error: decryption-failed")
	if empty.Text != garbage.Text || empty.Disposition != garbage.Disposition || empty.MIC != garbage.MIC {
		t.Errorf("two answers:\n%+v\n%+v", empty, garbage)
	}
}

func TestRepeatGetsTheSameBytes(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	first := h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil)
	first.mdn(t, true)
	for _, id := range []string{"<1@acme>", "1@acme"} {
		again, fields := sent(t, acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil) // encrypted anew
		for i, f := range fields {
			if strings.HasPrefix(f, "Message-ID: ") {
				fields[i] = "Message-ID: " + id
			}
		}
		a := h.post(again, fields...)
		if a.status != 200 || !bytes.Equal(a.body, first.body) {
			t.Errorf("%s: another answer to the repeat", id)
		}
		for _, name := range []string{"Content-Type", "Date", "Message-Id", "As2-From", "As2-To"} {
			if a.header.Get(name) != first.header.Get(name) {
				t.Errorf("%s: %q, first %q", name, a.header.Get(name), first.header.Get(name))
			}
		}
	}
	all := h.st.all()
	if h.st.acceptedCount() != 1 || len(all) != 3 || all[1].State != store.StateRepeated || all[1].Code != CodeRepeat || !strings.Contains(all[1].Detail, all[0].ID.String()) || !all[1].Wire.IsZero() {
		t.Errorf("accepted %d, kept %+v", h.st.acceptedCount(), all[1:])
	}
	if h.seen.count("acme-as2 repeated") != 2 {
		t.Errorf("observer %v", h.seen.seen)
	}
}

func TestRepeatThatAsksForTheMDNLater(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	fields := append(from("BETA", "<1@beta>"), "Content-Type: application/edifact")
	if a := h.post([]byte(orders), fields...); a.status != 200 || len(a.body) != 0 {
		t.Fatalf("first: %d %q", a.status, a.body)
	}
	wantDisposition(t, h.post([]byte(orders), append(fields, askMDN)...).mdn(t, false), "processed")
	if h.st.acceptedCount() != 1 {
		t.Errorf("accepted %d times", h.st.acceptedCount())
	}
}

func TestSameIDWithOtherContentIsHeld(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil).mdn(t, true)
	other := strings.Replace(orders, "4711", "4712", 1)
	m := h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(other), nil).mdn(t, true)
	wantDisposition(t, m, "processed/error: duplicate-document")
	tr := h.newest()
	if tr.State != store.StateHeld || tr.Code != as2.CodeDuplicate || string(h.st.body(tr.Content)) != other || tr.Wire.IsZero() {
		t.Errorf("transmission %s %s %q", tr.State, tr.Code, tr.Detail)
	}
	// The same file under another name is another signed part: its MIC is not that of the stored MDN.
	m = h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), func(o *as2.BuildOptions) { o.Filename = "x.edi" }).mdn(t, true)
	wantDisposition(t, m, "processed/error: duplicate-document")
	if h.st.acceptedCount() != 1 {
		t.Errorf("accepted %d", h.st.acceptedCount())
	}
}

func TestSameMIC(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"x, sha-256", "x, SHA256", true}, {"x, sha-256", "y, sha256", false}, {"x, sha1", "y, sha256", true}, {"", "y, sha256", true},
	} {
		if got := sameMIC(tc.a, tc.b); got != tc.want {
			t.Errorf("sameMIC(%q, %q) = %v", tc.a, tc.b, got)
		}
	}
}

// TestRepeatWhileTheFirstIsInWork posts the same message again while the first one is inside the
// accepting transaction.
func TestRepeatWhileTheFirstIsInWork(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	inside, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	h.st.accepting = func() {
		once.Do(func() {
			close(inside)
			<-goOn
		})
	}
	answers := make(chan answer, 2)
	bodies, fields := [2][]byte{}, [2][]string{}
	for i := range bodies {
		bodies[i], fields[i] = sent(t, acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil)
	}
	post := func(i int) {
		a, err := h.try(Path, bytes.NewReader(bodies[i]), fields[i]...)
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}
	go post(0)
	<-inside
	go post(1)
	select {
	case a := <-answers:
		t.Fatalf("an answer before the first commit: %d %q", a.status, a.body)
	default:
	}
	close(goOn)
	one, two := <-answers, <-answers
	one.mdn(t, true)
	if !bytes.Equal(one.body, two.body) {
		t.Error("two different answers")
	}
	if h.st.acceptedCount() != 1 {
		t.Errorf("accepted %d times", h.st.acceptedCount())
	}
}

// TestRepeatWhoseFirstIsNotCommittedYet is the same between two nodes: the key is taken, and the
// transmission cannot be seen.
func TestRepeatWhoseFirstIsNotCommittedYet(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil).mdn(t, true)
	h.st.set(func() { h.st.hidden = true })
	a := h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil)
	if a.status != 503 || a.header.Get("Retry-After") == "" || strings.Contains(string(a.body), "isposition") {
		t.Errorf("status %d, body %q", a.status, a.body)
	}
	h.st.set(func() { h.st.hidden = false })
	h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil).mdn(t, true)
}

func TestStoreUnavailable(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(m *memoryStore, err error){
		"staging":   func(m *memoryStore, err error) { m.failStage = err },
		"accepting": func(m *memoryStore, err error) { m.failAccept = err },
	} {
		for _, failure := range []error{store.ErrUnavailable, errors.New("anything else")} {
			t.Run(name+", "+failure.Error(), func(t *testing.T) {
				t.Parallel()
				h := newHub(t, nil)
				h.st.set(func() { set(h.st, failure) })
				a := h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil)
				if a.status != 503 || a.header.Get("Retry-After") != "30" || strings.Contains(string(a.body), "isposition") {
					t.Errorf("status %d, body %q", a.status, a.body)
				}
				if h.seen.last() != "acme-as2 unavailable" || len(h.st.all()) != 0 {
					t.Errorf("observer %q, kept %d", h.seen.last(), len(h.st.all()))
				}
				h.st.set(func() { set(h.st, nil) })
				wantDisposition(t, h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil).mdn(t, true), "processed")
				h.nothingLeft()
			})
		}
	}
}

func TestRefusalThatCannotBeKeptIsNotTold(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	h.st.set(func() { h.st.failKeep = store.ErrUnavailable })
	if a := h.send(stranger(), "ACME AS2", "<1@acme>", []byte(orders), nil); a.status != 503 {
		t.Errorf("status %d, want 503", a.status)
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	free := int64(0)
	var mu sync.Mutex
	h := newHub(t, func(h *hub, o *Options) {
		var err error
		o.Spool, err = spool.New(h.spoolDir, spool.Options{MinFree: 1 << 30, Free: func(string) (int64, error) {
			mu.Lock()
			defer mu.Unlock()
			return free, nil
		}})
		check(t, err)
	})
	if a := h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil); a.status != 503 || a.header.Get("Retry-After") == "" || len(h.st.all()) != 0 {
		t.Errorf("status %d, body %q", a.status, a.body)
	}
	mu.Lock()
	free = 2 << 30
	mu.Unlock()
	h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil).mdn(t, true)
}

func TestBytesInFlight(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		limits spool.Limits
		status int
	}{
		{"partner", spool.Limits{PerPartner: 100}, 429},
		{"source", spool.Limits{PerSource: 100}, 429},
		{"in all", spool.Limits{Total: 100}, 503},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, func(_ *hub, o *Options) { o.Meter = spool.NewMeter(tc.limits) })
			fields := append(from("BETA", "<1@beta>"), "Content-Type: application/edifact", askMDN)
			for name, body := range map[string]io.Reader{
				"Content-Length": strings.NewReader(orders + orders),
				"chunked":        io.MultiReader(strings.NewReader(orders + orders)),
			} {
				a, err := h.try(Path, body, fields...)
				check(t, err)
				if a.status != tc.status || a.header.Get("Retry-After") == "" {
					t.Errorf("%s: status %d, want %d", name, a.status, tc.status)
				}
			}
			if h.seen.count("beta-as2 busy") != 2 || len(h.st.all()) != 0 {
				t.Errorf("observer %v, kept %d", h.seen.seen, len(h.st.all()))
			}
			h.nothingLeft()
		})
	}
}

func TestMDNLeavesAfterTheCommit(t *testing.T) {
	t.Parallel()
	var points []string
	var committed int
	var h *hub
	h = newHub(t, func(_ *hub, o *Options) {
		o.Probe = func(point string) {
			points = append(points, point)
			if point == "before-mdn" {
				committed = h.st.acceptedCount()
			}
		}
	})
	h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil).mdn(t, true)
	h.drained()
	if committed != 1 || strings.Join(points, " ") != "before-mdn after-mdn" {
		t.Errorf("%d accepted at the point before the MDN; points %v", committed, points)
	}
}

// TestSenderGoesAwayAfterTheBody cuts the connection where the message is whole: the repeat must
// get the MDN of the first.
func TestSenderGoesAwayAfterTheBody(t *testing.T) {
	t.Parallel()
	inside, goOn := make(chan struct{}), make(chan struct{})
	h := newHub(t, func(h *hub, _ *Options) { h.seen.more = make(chan struct{}, 10) })
	var once sync.Once
	h.st.accepting = func() {
		once.Do(func() {
			close(inside)
			<-goOn
		})
	}
	body, fields := sent(t, acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil)
	conn, err := net.Dial("tcp", h.addr)
	check(t, err)
	_, err = fmt.Fprintf(conn, "POST /as2 HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n\r\n", len(body), strings.Join(fields, "\r\n"))
	check(t, err)
	_, err = conn.Write(body)
	check(t, err)
	<-inside
	check(t, conn.Close())
	close(goOn)
	<-h.seen.more
	first := h.only()
	a := h.post(body, fields...)
	a.mdn(t, true)
	if _, stored, err := ParseAnswer(first.Answer); err != nil || !bytes.Equal(a.body, stored) || h.st.acceptedCount() != 1 {
		t.Errorf("accepted %d times, %v", h.st.acceptedCount(), err)
	}
}

func TestBodyThatEndsEarlyLeavesNothing(t *testing.T) {
	t.Parallel()
	h := newHub(t, func(h *hub, _ *Options) { h.seen.more = make(chan struct{}, 10) })
	conn, err := net.Dial("tcp", h.addr)
	check(t, err)
	_, err = fmt.Fprintf(conn, "POST /as2 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n%s\r\n\r\nhalf of it", strings.Join(from("BETA", "<1@beta>"), "\r\n"))
	check(t, err)
	check(t, conn.Close())
	<-h.seen.more
	if h.seen.last() != "beta-as2 cut_off" || len(h.st.all()) != 0 {
		t.Errorf("observer %q, kept %d", h.seen.last(), len(h.st.all()))
	}
}

func TestSlowBodyIsCut(t *testing.T) {
	t.Parallel()
	h := newHub(t, func(_ *hub, o *Options) {
		o.Limits.RateWindow = 100 * time.Millisecond
		o.Limits.MinBodyRate = 1000
	})
	conn, err := net.Dial("tcp", h.addr)
	check(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /as2 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n%s\r\n\r\nand then nothing", strings.Join(from("BETA", "<1@beta>"), "\r\n"))
	check(t, err)
	check(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	got, err := io.ReadAll(conn)
	check(t, err)
	if !strings.HasPrefix(string(got), "HTTP/1.1 408 ") || h.seen.last() != "beta-as2 too_slow" {
		t.Errorf("answer %q, observer %q", got, h.seen.last())
	}
	h.nothingLeft()
}

// TestSteadyBodyIsNotCut sends more than the rate asks for over several windows.
func TestSteadyBodyIsNotCut(t *testing.T) {
	t.Parallel()
	h := newHub(t, func(_ *hub, o *Options) {
		o.Limits.RateWindow = 500 * time.Millisecond
		o.Limits.MinBodyRate = 10
	})
	pr, pw := io.Pipe()
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for range 8 {
			<-tick.C
			if _, err := pw.Write([]byte("ten bytes.")); err != nil {
				return
			}
		}
		_ = pw.Close() // Always nil.
	}()
	a, err := h.try(Path, pr, append(from("BETA", "<1@beta>"), "Content-Type: application/edifact", askMDN)...)
	check(t, err)
	wantDisposition(t, a.mdn(t, false), "processed")
}

func TestSlowHeadersAreCut(t *testing.T) {
	t.Parallel()
	srv := Server(http.NotFoundHandler(), ServerOptions{HeaderTimeout: 50 * time.Millisecond})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	defer func() {
		_ = srv.Close()
		<-done
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	check(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("POST /as2 HTTP/1.1\r\nHost:"))
	check(t, err)
	check(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("the connection was not closed: %v", err)
	}
}

func TestServerDefaults(t *testing.T) {
	t.Parallel()
	s := Server(http.NotFoundHandler(), ServerOptions{Addr: "127.0.0.1:0", TLS: &tls.Config{MinVersion: tls.VersionTLS12}})
	if s.ReadHeaderTimeout != 10*time.Second || s.IdleTimeout != time.Minute || s.MaxHeaderBytes != 64<<10 || s.Protocols.HTTP2() || s.TLSConfig == nil || s.Addr == "" {
		t.Errorf("server %+v", s)
	}
}

func TestSourceOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"192.0.2.1:99": "192.0.2.1", "[::ffff:192.0.2.1]:99": "192.0.2.1", "[2001:db8:1:2:3::4]:99": "2001:db8:1:2::/64", "[fe80::1%eth0]:1": "fe80::/64", "odd": "odd", "host:1": "host",
	} {
		if got := sourceOf(in); got != want {
			t.Errorf("sourceOf(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	b := budget{limits: Limits{KeptRows: 3, KeptBodies: 2, KeptBytes: 100, KeptSize: 60}.withDefaults()}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i, tc := range []struct {
		size int64
		at   time.Duration
		conn string
		want bool
	}{
		{61, 0, "a", false}, {60, 0, "a", true}, {41, 0, "a", false}, {40, 0, "a", true}, {1, 0, "a", false}, {1, 0, "b", true},
		{1, 59 * time.Minute, "a", false}, {1, time.Hour, "a", true},
	} {
		if got := b.body(tc.conn, now.Add(tc.at), tc.size); got != tc.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
	for i, want := range []bool{true, true, true, false} {
		if got := b.row("c", now); got != want {
			t.Errorf("row %d: %v", i, got)
		}
	}
}

// TestKeptBodiesAreBounded sends garbage under a partner's name beyond what is kept of it.
func TestKeptBodiesAreBounded(t *testing.T) {
	t.Parallel()
	h := newHub(t, func(_ *hub, o *Options) { o.Limits.KeptBodies, o.Limits.KeptRows = 2, 4 })
	for i := range 6 {
		m := h.post([]byte(orders), append(from("ACME AS2", "<g"+itoa(int64(i))+"@acme>"), askMDN, "Content-Type: application/edifact")...).mdn(t, false)
		wantDisposition(t, m, "processed/error: insufficient-message-security")
	}
	all := h.st.all()
	if len(all) != 4 {
		t.Fatalf("%d rows, want 4", len(all))
	}
	for i, tr := range all {
		if tr.Wire.IsZero() != (i >= 2) || (len(tr.Answer) == 0) != (i >= 2) {
			t.Errorf("row %d: wire %q, %d bytes of answer", i, tr.Wire, len(tr.Answer))
		}
	}
	wantDisposition(t, h.send(acmeID(), "ACME AS2", "<good@acme>", []byte(orders), nil).mdn(t, true), "processed")
}

func TestParseAnswer(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "A: b", "A b\r\n\r\n"} {
		if _, _, err := ParseAnswer([]byte(bad)); !errors.Is(err, ErrAnswer) {
			t.Errorf("ParseAnswer(%q) = %v", bad, err)
		}
	}
	h, body, err := ParseAnswer([]byte("AS2-From: x\r\nA: 1\r\nA: 2\r\n\r\nbody\r\n\r\nmore"))
	check(t, err)
	if h["AS2-From"][0] != "x" || len(h["A"]) != 2 || string(body) != "body\r\n\r\nmore" {
		t.Errorf("%v %q", h, body)
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte("A: b\r\n\r\nbody"))
	f.Add([]byte("\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, body, err := ParseAnswer(b)
		if err != nil && !errors.Is(err, ErrAnswer) {
			t.Fatal(err)
		}
		if err == nil && !bytes.HasSuffix(b, body) {
			t.Error("the body is not the end of the answer")
		}
	})
}

func TestSpoolDirectoryIsEmpty(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	big := bytes.Repeat([]byte("UNH+1+ORDERS:D:96A:UN'\r\n"), 40000) // beyond what stays in memory
	wantDisposition(t, h.send(acmeID(), "ACME AS2", "<1@acme>", big, nil).mdn(t, true), "processed")
	if got := h.st.body(h.only().Content); !bytes.Equal(got, big) {
		t.Error("another content")
	}
	if left, err := filepath.Glob(filepath.Join(h.spoolDir, "*")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	h.nothingLeft()
}
