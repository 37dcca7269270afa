package as2

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/edi"
)

func buildOptions() BuildOptions {
	return BuildOptions{
		From: "ACME AS2", To: "OURCO", MessageID: "7@acme", ContentType: "application/edifact",
		Filename: "Bestellung ä.edi", UserAgent: "edihub/1", At: testTime,
		Receipt: ReceiptRequest{Wanted: true, Signed: true, MICAlgs: []string{"sha256", "sha1"}},
	}
}

// What we sign and encrypt OpenSSL opens, and it finds the payload byte for byte.
func TestBuildOpenedByOpenSSL(t *testing.T) {
	t.Parallel()
	ciphers := []cms.Cipher{cms.TripleDES, cms.AES128CBC, cms.AES192CBC, cms.AES256CBC}
	digests := []cms.Digest{cms.SHA1, cms.SHA256, cms.SHA384, cms.SHA512}
	n := 0
	for name, payload := range payloads() {
		o := buildOptions()
		o.Cipher = ciphers[n%4]
		o.Sign = acme().signer()
		o.Sign.Digest = digests[n%4]
		o.Encrypt = hub().certs()
		n++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out, err := Build(bytes.NewReader(payload), o)
			check(t, err)
			cert, key := hub().files(t, dir)
			entity := openssl(t, "cms", "-decrypt", "-binary", "-inform", "DER", "-in", writeFile(t, dir, "body", content(t, out.Body)), "-recip", cert, "-inkey", key)
			head, body, ok := bytes.Cut(entity, []byte("\r\n\r\n"))
			if !ok || !bytes.HasPrefix(head, []byte("Content-Type: multipart/signed;")) {
				t.Fatalf("the entity begins %q", head)
			}
			boundary := string(body[2:bytes.IndexByte(body, '\r')])
			chunks := bytes.Split(body, []byte("--"+boundary))
			if len(chunks) != 4 {
				t.Fatalf("%d chunks", len(chunks))
			}
			part := bytes.TrimSuffix(bytes.TrimPrefix(chunks[1], []byte("\r\n")), []byte("\r\n"))
			_, encoded, _ := bytes.Cut(chunks[2], []byte("\r\n\r\n"))
			sig, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(string(encoded), "\r\n", ""))
			check(t, err)
			signer, _ := acme().files(t, dir)
			verified := openssl(t, "cms", "-verify", "-binary", "-inform", "DER", "-in", writeFile(t, dir, "sig", sig),
				"-content", writeFile(t, dir, "content", part), "-CAfile", signer, "-purpose", "any")
			_, got, _ := bytes.Cut(verified, []byte("\r\n\r\n"))
			if !bytes.Equal(got, payload) {
				t.Errorf("OpenSSL found %q, want %q", got, payload)
			}
			for _, d := range digests {
				if want := micHash(d.Hash(), part); out.MIC(string(d)) != want {
					t.Errorf("MIC %s is %s, want %s", d, out.MIC(string(d)), want)
				}
			}
			check(t, out.Close())
		})
	}
}

// What we build we open, in every combination, and both sides have the same MIC.
func TestBuildAndOpen(t *testing.T) {
	t.Parallel()
	scratch := &counted{dir: t.TempDir()}
	payload := []byte("UNB+UNOA:3+A+B+261130:1200+1'\nUNZ+0+1'")
	for _, signed := range []bool{false, true} {
		for _, encrypted := range []bool{false, true} {
			o := buildOptions()
			o.Scratch, o.MemoryLimit = scratch.new, 1
			if signed {
				o.Sign = acme().signer()
			}
			if encrypted {
				o.Encrypt = hub().certs()
			}
			out, err := Build(bytes.NewReader(payload), o)
			check(t, err)
			in := received(t, out)
			opened, err := Open(in, demand(signed, encrypted))
			check(t, err)
			if got := content(t, opened.Payload); !bytes.Equal(got, payload) || opened.Signed != signed || opened.Encrypted != encrypted {
				t.Errorf("signed %v, encrypted %v: %q", signed, encrypted, got)
			}
			if opened.Filename.Safe != "Bestellung ä.edi" || opened.ContentType != "application/edifact" {
				t.Errorf("signed %v, encrypted %v: %+v, %s", signed, encrypted, opened.Filename, opened.ContentType)
			}
			if opened.MICAlg != "sha256" || opened.MIC != out.MIC("SHA-256") {
				t.Errorf("signed %v, encrypted %v: MIC %s %s, sent %s", signed, encrypted, opened.MIC, opened.MICAlg, out.MIC("sha256"))
			}
			later, err := MICOf(bytes.NewReader(payload), o, "sha-1")
			check(t, err)
			if later == "" || later != out.MIC("sha1") {
				t.Errorf("signed %v, encrypted %v: MICOf %s, MIC %s", signed, encrypted, later, out.MIC("sha1"))
			}
			if in.Headers.From != "ACME AS2" || in.Headers.MessageID != "<7@acme>" || !in.Headers.WantsSigned() || in.Headers.WantsAsync() {
				t.Errorf("%+v", in.Headers)
			}
			check(t, opened.Close())
			check(t, out.Close())
			check(t, out.Close())
		}
	}
	if scratch.open.Load() != 0 || scratch.made.Load() != 2 {
		t.Errorf("%d scratch files of %d are left", scratch.open.Load(), scratch.made.Load())
	}
}

func TestBuildHeader(t *testing.T) {
	t.Parallel()
	o := buildOptions()
	o.Encrypt = hub().certs()
	o.Subject = "Gr\u00fc\u00dfe\r\nX: y"
	o.Receipt.AsyncURL = "https://acme.example/as2/mdn?x=y"
	out, err := Build(bytes.NewReader([]byte("x")), o)
	check(t, err)
	want := map[string]string{
		"AS2-Version": "1.0", "AS2-From": `"ACME AS2"`, "AS2-To": "OURCO", "Message-ID": "<7@acme>",
		"Date": "Mon, 30 Nov 2026 12:00:00 GMT", "Subject": "Gr??e  X: y", "MIME-Version": "1.0", "User-Agent": "edihub/1",
		"Content-Type":                     `application/pkcs7-mime; smime-type=enveloped-data; name="smime.p7m"`,
		"Content-Transfer-Encoding":        "binary",
		"Content-Disposition":              `attachment; filename="smime.p7m"`,
		"Disposition-Notification-To":      `"ACME AS2"`,
		"Disposition-Notification-Options": "signed-receipt-protocol=optional, pkcs7-signature; signed-receipt-micalg=optional, sha256, sha1",
		"Receipt-Delivery-Option":          "https://acme.example/as2/mdn?x=y",
	}
	for k, v := range want {
		if got := out.Header[k]; len(got) != 1 || got[0] != v {
			t.Errorf("%s is %q, want %q", k, got, v)
		}
	}
	if len(out.Header) != len(want) {
		t.Errorf("more headers than expected: %v", out.Header)
	}
	// The body is raw whatever its header.
	if b := content(t, out.Body); b[0] != derSequence {
		t.Errorf("the body begins with %#x", b[0])
	}
	// On the wire every header is one line.
	var wire bytes.Buffer
	check(t, out.Header.Write(&wire))
	if n := strings.Count(wire.String(), "\r\n"); n != len(want) {
		t.Errorf("%d lines for %d headers:\n%s", n, len(want), wire.String())
	}
	plain, err := Build(bytes.NewReader([]byte("x")), BuildOptions{From: "A", To: "B", MessageID: "1", At: testTime})
	check(t, err)
	for _, k := range []string{"Disposition-Notification-To", "Receipt-Delivery-Option", "Content-Disposition", "Content-Length", "Transfer-Encoding"} {
		if _, there := plain.Header[k]; there {
			t.Errorf("%s was not asked for", k)
		}
	}
	if plain.Header["Content-Type"][0] != "application/octet-stream" {
		t.Errorf("%v", plain.Header)
	}
}

// The same delivery has the same inner part at any time; another Message-ID changes the frame only.
func TestBuildIsDeterministic(t *testing.T) {
	t.Parallel()
	payload := bytes.NewReader([]byte("UNB\r\n"))
	o := buildOptions()
	o.Sign = acme().signer()
	first, err := Build(payload, o)
	check(t, err)
	again, err := Build(payload, o)
	check(t, err)
	if !bytes.Equal(content(t, first.Body), content(t, again.Body)) {
		t.Error("the same signed message has other bytes")
	}
	o.At = o.At.AddDate(0, 0, 1)
	o.Encrypt = hub().certs()
	later, err := Build(payload, o)
	check(t, err)
	if later.MIC("sha1") != first.MIC("sha1") || first.MIC("sha1") == "" || first.MIC("md5") != "" {
		t.Error("the MIC depends on the time or the encryption")
	}
	if b := boundaryOf("<7@acme>", "signed"); b != boundaryOf("7@acme", "signed") || b == boundaryOf("8@acme", "signed") || checkBoundary(b) != nil {
		t.Errorf("the boundary %q", b)
	}
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	weak := &cms.Signer{Certificate: acme().cert, Key: acme().key, Digest: "md5"}
	for name, change := range map[string]func(*BuildOptions){
		"no sender":           func(o *BuildOptions) { o.From = "" },
		"long name":           func(o *BuildOptions) { o.To = strings.Repeat("x", 129) },
		"no id":               func(o *BuildOptions) { o.MessageID = "<>" },
		"line in the id":      func(o *BuildOptions) { o.MessageID = "a\r\nX: y" },
		"line in the type":    func(o *BuildOptions) { o.ContentType = "a/b\r\nX: y" },
		"line in the address": func(o *BuildOptions) { o.Receipt.AsyncURL = "http://a\r\nX: y" },
		"line in an alg":      func(o *BuildOptions) { o.Receipt.MICAlgs = []string{"sha1\r\nX: y"} },
		"unknown digest":      func(o *BuildOptions) { o.Sign = weak },
		"unknown cipher":      func(o *BuildOptions) { o.Encrypt = hub().certs(); o.Cipher = "rot13" },
		"no scratch": func(o *BuildOptions) {
			o.Encrypt, o.MemoryLimit = hub().certs(), 1
			o.Scratch = func() (edi.Scratch, error) { return nil, errDisk }
		},
	} {
		o := buildOptions()
		change(&o)
		if out, err := Build(bytes.NewReader([]byte("x")), o); err == nil {
			t.Errorf("%s: %v", name, out.Header)
		}
	}
	// A file name never makes a header of its own.
	o := buildOptions()
	o.Filename = "a\"; x=\"y\r\nX: y.edi"
	out, err := Build(bytes.NewReader([]byte("x")), o)
	check(t, err)
	if d := out.Header["Content-Disposition"][0]; d != `attachment; filename="a_; x=_yX_ y.edi"` {
		t.Errorf("%s", d)
	}
}

func TestJoinedSource(t *testing.T) {
	t.Parallel()
	j := join(strings.NewReader("ab"), strings.NewReader(""), strings.NewReader("cdefg"), strings.NewReader("h"))
	check(t, iotest.TestReader(io.NewSectionReader(j, 0, j.Size()), []byte("abcdefgh")))
	for from := range int64(9) {
		for n := range 10 {
			b := make([]byte, n)
			got, err := j.ReadAt(b, from)
			want := "abcdefgh"[from:min(8, int(from)+n)]
			if string(b[:got]) != want || errors.Is(err, io.EOF) != (got < n) {
				t.Errorf("%d bytes at %d: %q, %v", n, from, b[:got], err)
			}
		}
	}
	if _, err := join(short{}).ReadAt(make([]byte, 10), 0); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a source that lost its end: %v", err)
	}
}

// short is a source that says it is longer than it is.
type short struct{}

func (short) Size() int64 { return 10 }

func (short) ReadAt(b []byte, off int64) (int, error) {
	return strings.NewReader("abc").ReadAt(b, off)
}

// The keys that we write are found by Value and, once they travelled, by net/http.
func TestHeaderKeys(t *testing.T) {
	t.Parallel()
	h := http.Header{"AS2-From": {"A"}, "As2-To": {"B"}}
	if Value(h, "as2-from") != "A" || Value(h, "AS2-TO") != "B" || Value(h, "X") != "" {
		t.Errorf("%v", h)
	}
}

// OpenSSL's own S/MIME messages, headers and all, as a simple partner would post them.
func TestOpenOpenSSLSMIME(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	part := signedPart([]byte("UNB\nUNZ\n"))
	cert, key := acme().files(t, dir)
	to, _ := hub().files(t, dir)
	in := writeFile(t, dir, "part", part)
	for _, tool := range []string{"smime", "cms"} {
		signed := openssl(t, tool, "-sign", "-binary", "-md", "sha256", "-signer", cert, "-inkey", key, "-in", in)
		both := openssl(t, tool, "-encrypt", "-binary", "-aes256", "-in", writeFile(t, dir, tool, signed), to)
		for form, message := range map[string][]byte{"signed": signed, "both": both} {
			head, bodyAt, err := readHeader(bytes.NewReader(message), Limits{}.withDefaults())
			check(t, err)
			m := head.mime()
			o, err := Open(inbound(m.ContentType, m.TransferEncoding, message[bodyAt:]), demand(true, form == "both"))
			if err != nil {
				t.Errorf("%s, %s: %v", tool, form, err)
				continue
			}
			if got := content(t, o.Payload); string(got) != "UNB\nUNZ\n" || o.MIC != mic256(part) {
				t.Errorf("%s, %s: %q, MIC %s", tool, form, got, o.MIC)
			}
		}
	}
}
