package receiver

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/store"
)

const evil = "UNB+UNOA:3+EVIL+5412345000020:14+261130:1200+6'\r\nUNZ+0+6'\r\n"

// boundaryMark delimits the parts of the messages that are made here.
const boundaryMark = "XX"

const signedType = `multipart/signed; protocol="application/pkcs7-signature"; micalg=sha-256; boundary="` + boundaryMark + `"`

// signature is a detached signature as a MIME part.
func signature(t testing.TB, who identity, content []byte) []byte {
	t.Helper()
	der, err := cms.SignDetached(bytes.NewReader(content), *who.signer(), time.Now())
	check(t, err)
	return []byte("Content-Type: application/pkcs7-signature\r\nContent-Transfer-Encoding: base64\r\n\r\n" + base64.StdEncoding.EncodeToString(der))
}

func multipart(mark string, parts ...[]byte) []byte {
	var b bytes.Buffer
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\r\n%s\r\n", mark, p)
	}
	b.WriteString("--" + mark + "--\r\n")
	return b.Bytes()
}

func entityOf(contentType string, body []byte) []byte {
	return append([]byte("Content-Type: "+contentType+"\r\n\r\n"), body...)
}

// encrypted encrypts an entity for us: anybody can.
func encrypted(t testing.TB, entity []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	check(t, cms.Encrypt(&b, bytes.NewReader(entity), int64(len(entity)), []*x509.Certificate{hubID().cert}, cms.AES256CBC))
	return b.Bytes()
}

const envelopedType = "application/pkcs7-mime; smime-type=enveloped-data"

// forgery is a message of an attacker, who knows the names, our certificate, and one message of
// the partner with its signature.
type forgery struct {
	name string
	// make returns the entity inside the envelope (or the body itself with plain).
	make  func(t *testing.T) (contentType string, body []byte)
	plain bool // it goes without an envelope
}

// forgeries are ways to get evil content in with a good signature of acme over other content, or
// with a signature of somebody else.
func forgeries() []forgery {
	good := func(t *testing.T) (content, sig []byte) {
		c := part(orders)
		return c, signature(t, acmeID(), c)
	}
	bad := part(evil)
	return []forgery{
		{name: "content before the signed part", make: func(t *testing.T) (string, []byte) {
			c, s := good(t)
			return signedType, multipart(boundaryMark, bad, c, s)
		}},
		{name: "content behind the signed part", make: func(t *testing.T) (string, []byte) {
			c, s := good(t)
			return signedType, multipart(boundaryMark, c, bad, s)
		}},
		{name: "content in place of the signed part", make: func(t *testing.T) (string, []byte) {
			_, s := good(t)
			return signedType, multipart(boundaryMark, bad, s)
		}},
		{name: "signature first", make: func(t *testing.T) (string, []byte) {
			_, s := good(t)
			return signedType, multipart(boundaryMark, s, bad)
		}},
		{name: "signed message inside multipart/mixed", make: func(t *testing.T) (string, []byte) {
			c, s := good(t)
			return `multipart/mixed; boundary="MM"`, multipart("MM", bad, entityOf(signedType, multipart(boundaryMark, c, s)))
		}},
		{name: "signed message inside multipart/signed of a stranger", make: func(t *testing.T) (string, []byte) {
			c, s := good(t)
			inner := entityOf(strings.ReplaceAll(signedType, boundaryMark, "YY"), multipart("YY", c, s))
			outer := entityOf(`multipart/mixed; boundary="MM"`, multipart("MM", bad, inner))
			return signedType, multipart(boundaryMark, outer, signature(t, stranger(), outer))
		}},
		{name: "signature dropped", make: func(*testing.T) (string, []byte) {
			return "application/edifact", []byte(evil)
		}},
		{name: "empty signature", make: func(*testing.T) (string, []byte) {
			return signedType, multipart(boundaryMark, bad, []byte("Content-Type: application/pkcs7-signature\r\n\r\n"))
		}},
		{name: "SignedData without a signer", make: func(t *testing.T) (string, []byte) {
			// SignedData, version 1, no digests, id-data, no signers (RFC 5652 §5.1).
			der := []byte{0x30, 0x1a, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02, 0xa0, 0x0d,
				0x30, 0x0b, 0x02, 0x01, 0x01, 0x31, 0x00, 0x30, 0x02, 0x06, 0x00, 0x31, 0x00}
			return signedType, multipart(boundaryMark, bad, []byte("Content-Type: application/pkcs7-signature\r\nContent-Transfer-Encoding: base64\r\n\r\n"+base64.StdEncoding.EncodeToString(der)))
		}},
		{name: "a second boundary parameter", make: func(t *testing.T) (string, []byte) {
			c, s := good(t)
			body := append(multipart("ZZ", bad, s), multipart(boundaryMark, c, s)...)
			return signedType + `; boundary="ZZ"`, body
		}},
		{name: "one byte more in the content", make: func(t *testing.T) (string, []byte) {
			c, s := good(t)
			return signedType, multipart(boundaryMark, append(bytes.Clone(c), '!'), s)
		}},
		{name: "header of the signed part changed", make: func(t *testing.T) (string, []byte) {
			c, s := good(t)
			return signedType, multipart(boundaryMark, bytes.Replace(c, []byte("orders.edi"), []byte("..\\evil.exe"), 1), s)
		}},
		{name: "attached signature of a stranger", make: func(t *testing.T) (string, []byte) {
			dir := t.TempDir()
			cert, key := stranger().files(t)
			der := openssl(t, "cms", "-sign", "-nodetach", "-binary", "-in", writeFile(t, dir, "c", bad), "-signer", cert, "-inkey", key, "-outform", "DER")
			return "application/pkcs7-mime; smime-type=signed-data", der
		}},
		{name: "a stranger's key", make: func(t *testing.T) (string, []byte) {
			return signedType, multipart(boundaryMark, bad, signature(t, stranger(), bad))
		}},
		{name: "another partner's key", make: func(t *testing.T) (string, []byte) {
			return signedType, multipart(boundaryMark, bad, signature(t, betaID(), bad))
		}},
		{name: "our own key", make: func(t *testing.T) (string, []byte) {
			return signedType, multipart(boundaryMark, bad, signature(t, hubID(), bad))
		}},
		{name: "a partner's signer beside a stranger's", make: func(t *testing.T) (string, []byte) {
			dir := t.TempDir()
			content := writeFile(t, dir, "c", part(orders))
			cert, key := acmeID().files(t)
			cert2, key2 := stranger().files(t)
			der := openssl(t, "cms", "-sign", "-binary", "-in", content, "-signer", cert, "-inkey", key, "-signer", cert2, "-inkey", key2, "-outform", "DER")
			return signedType, multipart(boundaryMark, part(orders), []byte("Content-Type: application/pkcs7-signature\r\nContent-Transfer-Encoding: base64\r\n\r\n"+base64.StdEncoding.EncodeToString(der)))
		}},
		{name: "signed and not encrypted", plain: true, make: func(t *testing.T) (string, []byte) {
			c, s := good(t)
			return signedType, multipart(boundaryMark, c, s)
		}},
	}
}

// TestForgedMessages sends each forgery under acme's name and id, before and after acme's own
// message with that id.
func TestForgedMessages(t *testing.T) {
	t.Parallel()
	for _, f := range forgeries() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, nil)
			contentType, body := f.make(t)
			if !f.plain {
				contentType, body = envelopedType, encrypted(t, entityOf(contentType, body))
			}
			fields := append(from("ACME AS2", "<1@acme>"), "Content-Type: "+contentType, askMDN, askSigned)
			forged := func() {
				t.Helper()
				before := h.st.acceptedCount()
				if m := h.post(body, fields...).mdn(t, true); m.Outcome != as2.Negative {
					t.Fatalf("Disposition %q", m.Disposition)
				}
				if h.st.acceptedCount() != before {
					t.Fatal("accepted")
				}
				tr := h.newest()
				if tr.State != store.StateRefused && tr.State != store.StateQuarantined || tr.Code == "" || !tr.Content.IsZero() {
					t.Fatalf("kept as %s %s", tr.State, tr.Code)
				}
			}
			forged()
			good := h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil)
			wantDisposition(t, good.mdn(t, true), "processed")
			if got := string(h.st.body(h.newest().Content)); got != orders {
				t.Errorf("content %q", got)
			}
			forged()
			again := h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil)
			if !bytes.Equal(again.body, good.body) {
				t.Error("the repeat got another answer")
			}
			h.nothingLeft()
		})
	}
}

// TestReplayWithOtherContent lets the partner's own key sign other content: it is
// held, and the first one still stands.
func TestReplayWithOtherContent(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	good := h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil)
	good.mdn(t, true)
	wantDisposition(t, h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(evil), nil).mdn(t, true), "processed/error: duplicate-document")
	if tr := h.newest(); tr.State != store.StateHeld || tr.Code != as2.CodeDuplicate {
		t.Errorf("kept as %s %s", tr.State, tr.Code)
	}
	if again := h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil); !bytes.Equal(again.body, good.body) || h.st.acceptedCount() != 1 {
		t.Error("the first does not stand")
	}
}

// TestCapturedMessageUnderAnotherName sends acme's signed content as BETA: a certificate counts
// for its own record only.
func TestCapturedMessageUnderAnotherName(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	body, fields := sent(t, acmeID(), "BETA", "<1@beta>", []byte(orders), nil)
	m := h.post(body, fields...).mdn(t, true)
	wantDisposition(t, m, "processed/error: authentication-failed")
	if h.st.acceptedCount() != 0 {
		t.Error("accepted")
	}
}

// TestPreambleAndEpilogueGoNowhere wraps a good signed message in text that nobody signed.
func TestPreambleAndEpilogueGoNowhere(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	c := part(orders)
	body := slices.Concat([]byte(evil+"\r\n"), multipart(boundaryMark, c, signature(t, betaID(), c)), []byte(evil))
	m := h.post(body, append(from("BETA", "<1@beta>"), askMDN, "Content-Type: "+signedType)...).mdn(t, false)
	wantDisposition(t, m, "processed")
	if tr := h.only(); string(h.st.body(tr.Content)) != orders || tr.MIC != mic256(c)+", sha-256" {
		t.Error("other bytes than those that were signed went on")
	}
}

// TestOneAnswerInsideAnEnvelope damages an encrypted message in many ways: every answer says the
// same, so that nobody can ask questions about the plaintext.
func TestOneAnswerInsideAnEnvelope(t *testing.T) {
	t.Parallel()
	h := newHub(t, func(_ *hub, o *Options) { o.Limits.KeptBodies = 1000 })
	entity := entityOf("application/edifact", []byte(strings.Repeat(orders, 3)))
	good := encrypted(t, entity)
	ciphertext := len(entity)/16*16 + 16 // bytes, with the padding
	answers := map[string]int{}
	tries := map[string][]byte{
		"wrong key":          nil,
		"no media type":      encrypted(t, []byte("no header at all")),
		"bad multipart":      encrypted(t, entityOf(signedType, []byte("no boundary"))),
		"compressed inside":  encrypted(t, entityOf("application/pkcs7-mime; smime-type=compressed-data", []byte("x"))),
		"encrypted twice":    encrypted(t, entityOf(envelopedType, encrypted(t, part(orders)))),
		"empty":              encrypted(t, nil),
		"empty payload":      encrypted(t, entityOf("application/edifact", nil)),
		"cut":                good[:len(good)-7],
		"cut in the content": good[:len(good)-16],
		"more behind":        append(bytes.Clone(good[:len(good)-1]), good[len(good)-33:]...),
	}
	var b bytes.Buffer
	check(t, cms.Encrypt(&b, strings.NewReader(orders), int64(len(orders)), []*x509.Certificate{stranger().cert}, cms.AES256CBC))
	tries["wrong key"] = b.Bytes()
	// The last two blocks: the padding. The first block of the content: its media type.
	for _, at := range []int{1, 5, 16, 17, 31, ciphertext, ciphertext - 7} {
		damaged := bytes.Clone(good)
		damaged[len(good)-at] ^= 0x41
		tries[fmt.Sprintf("byte %d from the end", at)] = damaged
	}
	n := 0
	for name, body := range tries {
		m := h.post(body, append(from("GAMMA", fmt.Sprintf("<%d@gamma>", n)), askMDN, "Content-Type: "+envelopedType)...).mdn(t, false)
		n++
		if m.Outcome == as2.Positive && strings.HasPrefix(name, "byte") {
			// A changed block in the middle of unsigned content is content. It cannot be told from it.
			continue
		}
		answers[m.Disposition+m.MIC+m.Text[strings.Index(m.Text, "Reason"):]]++
	}
	if len(answers) != 1 {
		t.Errorf("%d different answers: %v", len(answers), answers)
	}
	for a := range answers {
		if !strings.Contains(a, "decryption-failed") {
			t.Errorf("answer %q", a)
		}
	}
}

// TestUploadsThatNeverEnd announces 50 times 2 GiB under a known name, sends a little of it and
// breaks off: nothing of it stays, and a message of another partner goes through meanwhile.
func TestUploadsThatNeverEnd(t *testing.T) {
	t.Parallel()
	const uploads = 50
	h := newHub(t, func(h *hub, _ *Options) { h.seen.more = make(chan struct{}, 4*uploads) })
	conns := make([]net.Conn, uploads)
	head := "POST /as2 HTTP/1.1\r\nHost: x\r\nContent-Length: 2147483648\r\nContent-Type: " + envelopedType + "\r\n" + strings.Join(from("ACME AS2", "<big@acme>"), "\r\n") + "\r\n\r\n"
	var wg sync.WaitGroup
	for i := range conns {
		c, err := net.Dial("tcp", h.addr)
		check(t, err)
		conns[i] = c
		wg.Go(func() {
			if _, err := io.WriteString(c, head); err != nil {
				t.Error(err)
			}
			// Beyond what stays in memory, so that there is a file.
			if _, err := c.Write(bytes.Repeat([]byte{0x30}, 600<<10)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	m := h.send(betaID(), "BETA", "<1@beta>", []byte(orders), nil).mdn(t, true)
	wantDisposition(t, m, "processed")
	<-h.seen.more
	wantDisposition(t, h.send(acmeID(), "ACME AS2", "<1@acme>", []byte(orders), nil).mdn(t, true), "processed")
	<-h.seen.more
	for _, c := range conns {
		check(t, c.Close())
	}
	for range conns {
		<-h.seen.more // each upload came to its end
	}
	if n := h.seen.count("acme-as2 cut_off"); n != uploads {
		t.Errorf("%d of %d uploads ended as cut off: %v", n, uploads, h.seen.seen)
	}
	h.nothingLeft()
	if h.st.acceptedCount() != 2 || len(h.st.all()) != 2 {
		t.Errorf("accepted %d, kept %d", h.st.acceptedCount(), len(h.st.all()))
	}
}

// TestOtherHeadersAreOtherContent signs the same file twice with another Content-ID: the MIC of
// the stored MDN would not be that of the second message.
func TestOtherHeadersAreOtherContent(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	for i, want := range []string{"processed", "processed/error: duplicate-document"} {
		c := fmt.Appendf(nil, "Content-Type: application/edifact\r\nContent-ID: <%d>\r\n\r\n%s", i, orders)
		body := multipart(boundaryMark, c, signature(t, betaID(), c))
		m := h.post(body, append(from("BETA", "<1@beta>"), askMDN, "Content-Type: "+signedType)...).mdn(t, false)
		wantDisposition(t, m, want)
		if m.MIC != mic256(c) {
			t.Errorf("MIC %q, want %q", m.MIC, mic256(c))
		}
	}
	if h.st.acceptedCount() != 1 {
		t.Errorf("accepted %d", h.st.acceptedCount())
	}
}
