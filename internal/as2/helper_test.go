package as2

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/edi"
)

var testTime = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// identity is a key with its self-signed certificate.
type identity struct {
	name string
	key  *rsa.PrivateKey
	cert *x509.Certificate
}

func newIdentity(name string, bits int, serial int64) identity {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    testTime.AddDate(-1, 0, 0),
		NotAfter:     testTime.AddDate(10, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return identity{name, key, cert}
}

func (i identity) signer() *cms.Signer {
	return &cms.Signer{Certificate: i.cert, Key: i.key, Digest: cms.SHA256}
}

func (i identity) recipients() []cms.Recipient {
	return []cms.Recipient{{Certificate: i.cert, Key: i.key}}
}

func (i identity) certs() []*x509.Certificate { return []*x509.Certificate{i.cert} }

// files writes certificate and key as PEM for OpenSSL.
func (i identity) files(t testing.TB, dir string) (cert, key string) {
	t.Helper()
	pkcs8, err := x509.MarshalPKCS8PrivateKey(i.key)
	check(t, err)
	cert, key = filepath.Join(dir, i.name+".pem"), filepath.Join(dir, i.name+".key")
	check(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.cert.Raw}), 0o600))
	check(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	return cert, key
}

var (
	hub      = sync.OnceValue(func() identity { return newIdentity("hub", 2048, 1) })
	acme     = sync.OnceValue(func() identity { return newIdentity("acme", 2048, 2) })
	attacker = sync.OnceValue(func() identity { return newIdentity("attacker", 2048, 3) })
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// openssl runs OpenSSL and returns its standard output.
func openssl(t testing.TB, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath("openssl")
	if err != nil {
		t.Fatal("these tests need the openssl command; install it (Debian: apt-get install openssl; Alpine: apk add openssl; macOS: brew install openssl)")
	}
	cmd := exec.Command(path, args...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		t.Fatalf("openssl %s: %v\n%s", strings.Join(args, " "), err, problem.String())
	}
	return out.Bytes()
}

func writeFile(t testing.TB, dir, name string, b []byte) string {
	t.Helper()
	p := filepath.Join(dir, name)
	check(t, os.WriteFile(p, b, 0o600))
	return p
}

func mic256(b []byte) string {
	sum := sha256.Sum256(b)
	return base64.StdEncoding.EncodeToString(sum[:])
}

func micHash(h crypto.Hash, b []byte) string {
	x := h.New()
	x.Write(b)
	return base64.StdEncoding.EncodeToString(x.Sum(nil))
}

// inbound makes a received message of a body and its MIME headers.
func inbound(contentType, encoding string, body []byte) Inbound {
	return Inbound{
		Headers: Headers{
			From: "ACME AS2", To: "OURCO", MessageID: "<1@acme>", ReceiptTo: "edi@acme",
			MIME: MIMEHeaders{ContentType: contentType, TransferEncoding: encoding},
		},
		Body: bytes.NewReader(body),
	}
}

// received turns a built message into what its receiver has.
func received(t testing.TB, o *Outbound) Inbound {
	t.Helper()
	h, err := ParseHeaders(o.Header)
	check(t, err)
	return Inbound{Headers: h, Body: o.Body}
}

func content(t testing.TB, s edi.Source) []byte {
	t.Helper()
	b := make([]byte, s.Size())
	n, err := readAt(s, b, 0)
	check(t, err)
	if n != len(b) {
		t.Fatalf("read %d of %d bytes", n, len(b))
	}
	return b
}

// payloads are the byte classes that other products stumbled over.
func payloads() map[string][]byte {
	high := make([]byte, 0, 300)
	for c := 0x80; c <= 0xff; c++ {
		high = append(high, byte(c))
	}
	return map[string][]byte{
		"LF":               []byte("UNB+UNOA:3+A+B+261130:1200+1'\nUNZ+0+1'\n"),
		"LF, no end":       []byte("UNB+UNOA:3+A+B+261130:1200+1'\nUNZ+0+1'"),
		"CRLF":             []byte("ISA*00*\r\nIEA*0*1~\r\n"),
		"CRLF, no end":     []byte("ISA*00*\r\nIEA*0*1~"),
		"mixed":            []byte("a\r\nb\nc\rd\n\r\n"),
		"NUL":              []byte("a\x00b\x00\x00\r\n"),
		"high":             high,
		"high, end":        append(bytes.Clone(high), '\n'),
		"blank at the end": []byte("a \t\r\n \r\n\r\n"),
		"boundary-like":    []byte("--\r\n--=_\r\n--=_signed_0--\r\n"),
		"empty":            {},
	}
}

// signedPart is the MIME part that our test messages sign.
func signedPart(payload []byte) []byte {
	return append([]byte("Content-Type: application/edifact\r\nContent-Disposition: attachment; filename=\"a.edi\"\r\n\r\n"), payload...)
}

// sign makes a detached signature.
func sign(t testing.TB, who identity, part []byte) []byte {
	t.Helper()
	der, err := cms.SignDetached(bytes.NewReader(part), *who.signer(), testTime)
	check(t, err)
	return der
}

const testBoundary = "BOUND"

const multipartSigned = `multipart/signed; protocol="application/pkcs7-signature"; micalg=sha-256; boundary="` + testBoundary + `"`

// wrap puts parts between boundaries, as they are.
func wrap(boundary string, parts ...[]byte) []byte {
	var b bytes.Buffer
	for _, p := range parts {
		b.WriteString("--" + boundary + "\r\n")
		b.Write(p)
		b.WriteString("\r\n")
	}
	b.WriteString("--" + boundary + "--\r\n")
	return b.Bytes()
}

func sigPart(der []byte) []byte {
	return []byte("Content-Type: application/pkcs7-signature; name=smime.p7s\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
		base64.StdEncoding.EncodeToString(der))
}

// encryptFor makes EnvelopedData of an entity.
func encryptFor(t testing.TB, who identity, entity []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	check(t, cms.Encrypt(&b, bytes.NewReader(entity), int64(len(entity)), who.certs(), cms.AES128CBC))
	return b.Bytes()
}

const envelopedType = "application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m"

// counted is a place for scratch that knows what is still open.
type counted struct {
	dir  string // files there; empty: memory
	open atomic.Int64
	made atomic.Int64
}

func (c *counted) new() (edi.Scratch, error) {
	c.open.Add(1)
	c.made.Add(1)
	if c.dir == "" {
		return &countedScratch{Scratch: &memory{}, c: c}, nil
	}
	f, err := os.CreateTemp(c.dir, "scratch")
	if err != nil {
		return nil, err
	}
	return &countedScratch{Scratch: &fileScratch{File: f}, c: c}, nil
}

type countedScratch struct {
	edi.Scratch
	c *counted
}

func (s *countedScratch) Close() error {
	s.c.open.Add(-1)
	return s.Scratch.Close()
}

type fileScratch struct {
	*os.File
	n int64
}

func (f *fileScratch) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.n += int64(n)
	return n, err
}

func (f *fileScratch) Size() int64 { return f.n }

func (f *fileScratch) Close() error {
	return errors.Join(f.File.Close(), os.Remove(f.Name()))
}

func httpHeader(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = append(h[pairs[i]], pairs[i+1])
	}
	return h
}
