package sender

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/pipeline/send"
)

// report is a positive MDN as a MIME entity without a signature.
func report(original, mic string) string {
	return "Content-Type: multipart/report; report-type=disposition-notification; boundary=\"R\"\r\n\r\n" +
		"--R\r\nContent-Type: message/disposition-notification\r\n\r\n" +
		"Original-Message-ID: " + original + "\r\nDisposition: automatic-action/MDN-sent-automatically; processed\r\n" +
		"Received-Content-MIC: " + mic + "\r\n\r\n--R--\r\n"
}

func signatureOf(t testing.TB, who identity, content string) string {
	t.Helper()
	der, err := cms.SignDetached(strings.NewReader(content), *who.signer(), time.Now())
	if err != nil {
		t.Error(err)
	}
	return "Content-Type: application/pkcs7-signature\r\nContent-Transfer-Encoding: base64\r\n\r\n" + base64.StdEncoding.EncodeToString(der)
}

const signedMDN = `multipart/signed; protocol="application/pkcs7-signature"; micalg=sha-256; boundary="S"`

func multipart(parts ...string) []byte {
	return []byte("--S\r\n" + strings.Join(parts, "\r\n--S\r\n") + "\r\n--S--\r\n")
}

// ourMIC is what a partner who can open the message would put into his MDN.
func ourMIC(t testing.TB, r request) string {
	t.Helper()
	_, o, err := open(r)
	if err != nil {
		t.Error(err)
		return ""
	}
	return o.MIC + ", " + o.MICAlg
}

// TestForgedMDNs answers a message with receipts that prove nothing. None of them is believed, the
// code says why, and the real MDN counts afterwards, for the same Message-ID.
func TestForgedMDNs(t *testing.T) {
	t.Parallel()
	with := func(h http.Header, contentType string) http.Header {
		h["Content-Type"] = []string{contentType}
		return h
	}
	for _, tc := range []struct {
		name   string
		answer func(t *testing.T, r request) (http.Header, []byte)
		status send.Status
		code   string
	}{
		{"not signed", func(t *testing.T, r request) (http.Header, []byte) {
			return mdnFor(t, r, func(p *as2.MDNParams) { p.Signer = nil })
		}, send.Unknown, CodeUnsigned},
		{"a stranger's key", func(t *testing.T, r request) (http.Header, []byte) {
			return mdnFor(t, r, func(p *as2.MDNParams) { p.Signer = stranger().signer() })
		}, send.Unknown, CodeSignature},
		{"our own key", func(t *testing.T, r request) (http.Header, []byte) {
			return mdnFor(t, r, func(p *as2.MDNParams) { p.Signer = hubID().signer() })
		}, send.Unknown, CodeSignature},
		{"changed after signing", func(t *testing.T, r request) (http.Header, []byte) {
			h, body := mdnFor(t, r, func(p *as2.MDNParams) { p.Refusal = as2.RefuseDuplicate() })
			return h, bytes.Replace(body, []byte("processed/error: duplicate-document"), []byte("processed"), 1)
		}, send.Unknown, CodeSignature},
		{"for another message", func(t *testing.T, r request) (http.Header, []byte) {
			return mdnFor(t, r, func(p *as2.MDNParams) { p.Answers.MessageID = "<other@edihub>" })
		}, send.Unknown, CodeOther},
		{"for no message", func(t *testing.T, r request) (http.Header, []byte) {
			c := report("", ourMIC(t, r))
			return with(http.Header{}, signedMDN), multipart(c, signatureOf(t, acmeID(), c))
		}, send.Unknown, CodeOther},
		{"another MIC", func(t *testing.T, r request) (http.Header, []byte) {
			return mdnFor(t, r, func(p *as2.MDNParams) { p.MIC = base64.StdEncoding.EncodeToString(make([]byte, 32)) })
		}, send.Failed, CodeMIC},
		{"no MIC", func(t *testing.T, _ request) (http.Header, []byte) {
			c := report(messageID, "")
			return with(http.Header{}, signedMDN), multipart(c, signatureOf(t, acmeID(), c))
		}, send.Failed, CodeMIC},
		{"MIC in an algorithm nobody knows", func(t *testing.T, _ request) (http.Header, []byte) {
			c := report(messageID, "AAAA, md2")
			return with(http.Header{}, signedMDN), multipart(c, signatureOf(t, acmeID(), c))
		}, send.Failed, CodeMIC},
		{"a positive one before the signed negative one", func(t *testing.T, r request) (http.Header, []byte) {
			c := strings.Replace(report(messageID, ourMIC(t, r)), "; processed", "; processed/error: decryption-failed", 1)
			return with(http.Header{}, signedMDN), multipart(report(messageID, ourMIC(t, r)), c, signatureOf(t, acmeID(), c))
		}, send.Unknown, CodeSignature},
		{"a positive one in the preamble of a signed negative one", func(t *testing.T, r request) (http.Header, []byte) {
			c := strings.Replace(report(messageID, ourMIC(t, r)), "; processed", "; processed/error: decryption-failed", 1)
			return with(http.Header{}, signedMDN), append([]byte(report(messageID, ourMIC(t, r))), multipart(c, signatureOf(t, acmeID(), c))...)
		}, send.Failed, "MDN_DECRYPTION_FAILED"},
		{"two reports in one signature", func(t *testing.T, r request) (http.Header, []byte) {
			part := "Content-Type: message/disposition-notification\r\n\r\nOriginal-Message-ID: " + messageID + "\r\nDisposition: x; processed\r\nReceived-Content-MIC: " + ourMIC(t, r) + "\r\n\r\n"
			c := "Content-Type: multipart/report; boundary=\"R\"\r\n\r\n--R\r\n" + part + "--R\r\n" + part + "--R--\r\n"
			return with(http.Header{}, signedMDN), multipart(c, signatureOf(t, acmeID(), c))
		}, send.Unknown, CodeMalformed},
		{"our own message back", func(_ *testing.T, r request) (http.Header, []byte) {
			return http.Header{"Content-Type": r.header["Content-Type"]}, r.body
		}, send.Unknown, ""},
		{"nothing", func(*testing.T, request) (http.Header, []byte) { return nil, nil }, send.Unknown, CodeMissing},
		{"a web page", func(*testing.T, request) (http.Header, []byte) {
			return http.Header{"Content-Type": {"text/html"}}, []byte("<html>Welcome</html>")
		}, send.Unknown, CodeMalformed},
		{"endless", func(*testing.T, request) (http.Header, []byte) {
			return http.Header{"Content-Type": {"text/html"}}, make([]byte, 1<<20)
		}, send.Unknown, CodeTooLarge},
		{"a negative one", func(t *testing.T, r request) (http.Header, []byte) {
			return mdnFor(t, r, func(p *as2.MDNParams) { p.Refusal = as2.RefuseDuplicate() })
		}, send.Failed, "MDN_DUPLICATE_DOCUMENT"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			n := 0
			p := newPeer(t, func(w http.ResponseWriter, r request) {
				n++
				if n == 1 {
					h, body := tc.answer(t, r)
					write(w, h, body)
					return
				}
				good(t)(w, r)
			})
			r := newRig(t, p.url, "", nil)
			res := r.send()
			if tc.code == "" {
				tc.code = res.Code
			}
			want(t, res, tc.status, tc.code)
			if !strings.HasPrefix(res.Code, "MDN_") {
				t.Errorf("code %q", res.Code)
			}
			want(t, r.send(), send.Delivered, "")
		})
	}
}

// TestMDNThatNeedsNoSignature is the same where the record asks for none: the MIC still counts.
func TestMDNThatNeedsNoSignature(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(p *as2.MDNParams)
		status send.Status
		code   string
	}{
		{"good", func(*as2.MDNParams) {}, send.Delivered, ""},
		{"signed all the same", func(p *as2.MDNParams) { p.Signer = acmeID().signer() }, send.Delivered, ""},
		{"signed by a stranger", func(p *as2.MDNParams) { p.Signer = stranger().signer() }, send.Unknown, CodeSignature},
		{"another MIC", func(p *as2.MDNParams) { p.MIC = "AAAA" }, send.Unknown, CodeMIC},
		{"from another", func(p *as2.MDNParams) { p.Answers.To = "OTHER" }, send.Unknown, CodePartner},
		{"for another message", func(p *as2.MDNParams) { p.Answers.MessageID = "<x@y>" }, send.Unknown, CodeOther},
		{"without brackets", func(p *as2.MDNParams) { p.Answers.MessageID = strings.Trim(messageID, "<>") }, send.Delivered, ""},
		{"with a warning", func(p *as2.MDNParams) { p.Warning = "late" }, send.Delivered, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, func(w http.ResponseWriter, r request) {
				h, body := mdnFor(t, r, tc.change)
				write(w, h, body)
			})
			want(t, newRig(t, p.url, "mdn: {signed: false}", nil).send(), tc.status, tc.code)
		})
	}
}

// TestUnsignedRefusalIsTold has the partner refuse without a signature, as one does who does not
// know our names: it proves nothing, but a person is told.
func TestUnsignedRefusalIsTold(t *testing.T) {
	t.Parallel()
	p := newPeer(t, func(w http.ResponseWriter, r request) {
		h, body := mdnFor(t, r, func(p *as2.MDNParams) { p.Signer, p.Refusal = nil, as2.RefusePair() })
		write(w, h, body)
	})
	res := newRig(t, p.url, "", nil).send()
	want(t, res, send.Unknown, CodeUnsigned)
	if !strings.Contains(res.Detail, "authentication-failed") || len(res.Evidence) == 0 {
		t.Errorf("detail %q, evidence %d bytes", res.Detail, len(res.Evidence))
	}
}

// TestMDNOfTheDayBefore replays a good MDN of another delivery.
func TestMDNOfTheDayBefore(t *testing.T) {
	t.Parallel()
	var old http.Header
	var oldBody []byte
	p := newPeer(t, func(w http.ResponseWriter, r request) {
		if old == nil {
			old, oldBody = mdnFor(t, r, nil)
		}
		write(w, old, oldBody)
	})
	r := newRig(t, p.url, "", nil)
	want(t, r.send(), send.Delivered, "")
	d := r.delivery([]byte(invoice))
	d.MessageID = "<0195-2@edihub>"
	want(t, r.endpoint.Send(t.Context(), d), send.Unknown, CodeOther)
}

// TestMDNInSHA1 has the partner name another algorithm than the one that was asked for.
func TestMDNInSHA1(t *testing.T) {
	t.Parallel()
	p := newPeer(t, func(w http.ResponseWriter, r request) {
		h, o, err := open(r)
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(io.NewSectionReader(o.Payload, 0, o.Payload.Size()))
		if err != nil || string(body) != invoice {
			t.Error("payload")
		}
		h.Options = as2.ParseReceiptOptions("signed-receipt-micalg=optional, SHA-1")
		o, err = as2.Open(as2.Inbound{Headers: h, Body: bytes.NewReader(r.body)}, as2.OpenOptions{
			Decrypt: []cms.Recipient{{Certificate: acmeID().cert, Key: acmeID().key}}, Verify: hubCerts(),
		})
		if err != nil {
			t.Error(err)
			return
		}
		header, mdn := mdnFor(t, r, func(p *as2.MDNParams) { p.MIC, p.MICAlg = o.MIC, o.MICAlg })
		write(w, header, mdn)
	})
	res := newRig(t, p.url, "", nil).send()
	want(t, res, send.Delivered, "")
	if !strings.HasSuffix(res.MIC, ", SHA-1") {
		t.Errorf("MIC %q", res.MIC)
	}
}
