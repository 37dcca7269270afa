package cms

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// party is somebody with a key and a self-signed certificate, also as PEM files for openssl.
type party struct {
	key      crypto.Signer
	cert     *x509.Certificate
	keyFile  string
	certFile string
}

// The parties of all tests; TestMain makes them and nothing changes them.
var own, partner, attacker, partnerEC party

var signingTime = time.Date(2026, 11, 30, 12, 34, 56, 0, time.UTC)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "cms")
	if err != nil {
		panic(err)
	}
	var wg sync.WaitGroup
	for i, p := range []*party{&own, &partner, &attacker} {
		wg.Go(func() {
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			if err != nil {
				panic(err)
			}
			*p = newParty(dir, key, fmt.Sprintf("party %d", i), int64(1000+i), nil)
		})
	}
	wg.Wait()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	partnerEC = newParty(dir, key, "party EC", 2000, nil)
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// newParty makes a self-signed certificate; keyID nil lets x509 choose one.
func newParty(dir string, key crypto.Signer, name string, serial int64, keyID []byte) party {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name, Organization: []string{"EDI Test"}},
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
		IsCA:     true, BasicConstraintsValid: true, SubjectKeyId: keyID,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	base := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
	p := party{key: key, cert: cert, keyFile: base + ".key", certFile: base + ".pem"}
	for file, block := range map[string]*pem.Block{p.keyFile: {Type: "PRIVATE KEY", Bytes: pkcs8}, p.certFile: {Type: "CERTIFICATE", Bytes: der}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			panic(err)
		}
	}
	return p
}

func (p party) recipient() Recipient {
	return Recipient{Certificate: p.cert, Key: p.key.(crypto.Decrypter)}
}

func (p party) signer(d Digest) Signer { return Signer{Certificate: p.cert, Key: p.key, Digest: d} }

func certs(ps ...party) (out []*x509.Certificate) {
	for _, p := range ps {
		out = append(out, p.cert)
	}
	return out
}

// sample returns n bytes with every byte value, bare LF and CRLF among them.
func sample(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i/251)
	}
	copy(b, "UNB+UNOA:3+A+B'\r\nUNZ+0+1'\n")
	return b[:n]
}

func encrypted(t testing.TB, content []byte, c Cipher, definite bool, to ...party) []byte {
	t.Helper()
	size := int64(-1)
	if definite {
		size = int64(len(content))
	}
	var out bytes.Buffer
	if err := Encrypt(&out, bytes.NewReader(content), size, certs(to...), c); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func decrypted(t testing.TB, der []byte, p Policy, keys ...Recipient) ([]byte, EnvelopeInfo) {
	t.Helper()
	var out bytes.Buffer
	info, err := Decrypt(bytes.NewReader(der), &out, keys, p)
	if err != nil {
		t.Fatal(err)
	}
	if info.Bytes != int64(out.Len()) {
		t.Errorf("Bytes = %d, written were %d", info.Bytes, out.Len())
	}
	return out.Bytes(), info
}

var allCiphers = []Cipher{TripleDES, AES128CBC, AES192CBC, AES256CBC}

var allDigests = []Digest{SHA1, SHA256, SHA384, SHA512}

func TestEncryptDecrypt(t *testing.T) {
	t.Parallel()
	sizes := []int{0, 1, 7, 8, 15, 16, 17, 255, bufferSize - 17, bufferSize - 16, bufferSize - 15, bufferSize, bufferSize + 1, 3*bufferSize + 5}
	for _, c := range allCiphers {
		for _, definite := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s definite=%t", c, definite), func(t *testing.T) {
				t.Parallel()
				for _, n := range sizes {
					content := sample(n)
					got, info := decrypted(t, encrypted(t, content, c, definite, partner, own), Policy{}, own.recipient())
					if !bytes.Equal(got, content) {
						t.Fatalf("%d bytes come back as %d other ones", n, len(got))
					}
					if info.Cipher != c || info.Recipient != own.cert || info.Recipients != 2 || info.KeyTransport != "rsa-pkcs1v15" ||
						info.ContentType != oidData || info.Trailing != 0 {
						t.Errorf("info = %+v", info)
					}
				}
			})
		}
	}
}

func TestEncryptRefuses(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk full")
	content := func() io.Reader { return bytes.NewReader(sample(100)) }
	tests := []struct {
		name string
		err  error
		want error
		text string
	}{
		{"unknown cipher", Encrypt(io.Discard, content(), 100, certs(own), "rc2"), ErrUnsupported, ""},
		{"elliptic curve", Encrypt(io.Discard, content(), 100, certs(partnerEC), AES256CBC), ErrUnsupported, "no RSA key"},
		{"nobody", Encrypt(io.Discard, content(), 100, nil, AES256CBC), nil, "no recipient"},
		{"short content", Encrypt(io.Discard, content(), 101, certs(own), AES256CBC), nil, "announced were 101"},
		{"long content", Encrypt(io.Discard, content(), 99, certs(own), AES256CBC), nil, "announced were 99"},
		{"broken source", Encrypt(io.Discard, io.MultiReader(content(), failing{io.ErrUnexpectedEOF}), -1, certs(own), AES256CBC), io.ErrUnexpectedEOF, "read the content"},
		{"broken sink", Encrypt(failing{broken}, content(), -1, certs(own), AES256CBC), broken, "write the message"},
	}
	for _, tt := range tests {
		if tt.err == nil || tt.want != nil && !errors.Is(tt.err, tt.want) || !strings.Contains(tt.err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, tt.err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestSignVerify(t *testing.T) {
	t.Parallel()
	for _, p := range []party{partner, partnerEC} {
		for _, d := range allDigests {
			for _, n := range []int{0, 1, 1000, 2*bufferSize + 3} {
				content := sample(n)
				sig, err := SignDetached(bytes.NewReader(content), p.signer(d), signingTime)
				if err != nil {
					t.Fatal(err)
				}
				info, err := VerifyDetached(sig, bytes.NewReader(content), certs(own, p), Policy{})
				if err != nil {
					t.Fatalf("%s %d: %v", d, n, err)
				}
				if s := info.Signers[0]; info.Digest != d || s.Digest != d || s.Certificate != p.cert || !s.SigningTime.Equal(signingTime) ||
					!bytes.Equal(s.ContentDigest, sum(d, content)) || info.Bytes != int64(n) || len(info.Signers) != 1 {
					t.Errorf("info = %+v", info)
				}
				for _, size := range []int64{int64(n), -1} {
					var message, out bytes.Buffer
					if err := SignAttached(&message, bytes.NewReader(content), size, p.signer(d), signingTime); err != nil {
						t.Fatal(err)
					}
					definite := size >= 0 && p.cert == partner.cert
					if (message.Bytes()[1] != 0x80) != definite {
						t.Errorf("second byte %#x, definite lengths: %t", message.Bytes()[1], definite)
					}
					info, err := VerifyAttached(&message, &out, certs(p), Policy{})
					if err != nil {
						t.Fatalf("%s %d size %d: %v", d, n, size, err)
					}
					if !bytes.Equal(out.Bytes(), content) || info.Bytes != int64(n) || info.Trailing != 0 {
						t.Errorf("%d bytes, info = %+v", out.Len(), info)
					}
				}
			}
		}
	}
}

func TestSignRefuses(t *testing.T) {
	t.Parallel()
	sign := func(s Signer, r io.Reader) error {
		_, err := SignDetached(r, s, signingTime)
		return err
	}
	content := bytes.NewReader(nil)
	foreign := partner.signer(SHA256)
	foreign.Key = attacker.key
	tests := []struct {
		name string
		err  error
		want error
		text string
	}{
		{"no key", sign(Signer{Certificate: own.cert}, content), nil, "no key"},
		{"foreign key", sign(foreign, content), nil, "does not belong"},
		{"unknown digest", sign(own.signer("md5"), content), ErrUnsupported, "md5"},
		{"broken source", sign(own.signer(""), failing{io.ErrUnexpectedEOF}), io.ErrUnexpectedEOF, ""},
		{"wrong size", SignAttached(io.Discard, bytes.NewReader(sample(5)), 6, own.signer(""), signingTime), nil, "announced were 6"},
	}
	for _, tt := range tests {
		if tt.err == nil || tt.want != nil && !errors.Is(tt.err, tt.want) || !strings.Contains(tt.err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, tt.err)
		}
	}
}

func TestSigningTimeForms(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2049, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC)} {
		sig, err := SignDetached(strings.NewReader("x"), partner.signer(SHA256), at)
		if err != nil {
			t.Fatal(err)
		}
		info, err := VerifyDetached(sig, strings.NewReader("x"), certs(partner), Policy{})
		if err != nil || !info.Signers[0].SigningTime.Equal(at) {
			t.Errorf("%s: %v, %+v", at, err, info)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Digest{"sha1": SHA1, "SHA-1": SHA1, "sha-256": SHA256, "SHA256": SHA256, "Sha-384": SHA384, "sha_512": SHA512, "md5": "", "": "", "sha-224": ""} {
		if got, err := ParseDigest(name); got != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, ErrUnsupported) {
			t.Errorf("ParseDigest(%q) = %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]Cipher{"3DES": TripleDES, "des-EDE3-cbc": TripleDES, "AES128_CBC": AES128CBC, "aes-192-cbc": AES192CBC, "aes256-cbc": AES256CBC, "rc2": "", "aes256-gcm": ""} {
		if got, err := ParseCipher(name); got != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, ErrUnsupported) {
			t.Errorf("ParseCipher(%q) = %q, %v", name, got, err)
		}
	}
	if Digest("md5").Hash() != 0 || SHA384.Hash() != crypto.SHA384 {
		t.Error("Hash is wrong")
	}
}

func TestIsCMS(t *testing.T) {
	t.Parallel()
	sig, err := SignDetached(strings.NewReader("x"), partner.signer(SHA256), signingTime)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		prefix []byte
		want   string
	}{
		{encrypted(t, sample(10), AES256CBC, true, own), "enveloped"},
		{encrypted(t, sample(10), AES256CBC, false, own)[:32], "enveloped"},
		{sig[:32], "signed"},
		{[]byte("\x30\x80\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x09\xa0"), "compressed"},
		{[]byte("MIAGCSqGSIb3DQEHA6CA"), ""},
		{[]byte("0"), ""}, {[]byte("0\x88"), ""}, {[]byte("0\x03\x06\x01\x2a"), ""}, {nil, ""},
	}
	for _, tt := range tests {
		if got := IsCMS(tt.prefix); got != tt.want {
			t.Errorf("IsCMS(% x) = %q, want %q", tt.prefix[:min(16, len(tt.prefix))], got, tt.want)
		}
	}
}

// repeated is n bytes of content that needs no memory.
type repeated struct{ left int64 }

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := int(min(r.left, int64(len(p))))
	clear(p[:n])
	r.left -= int64(n)
	return n, nil
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) { c.n += int64(len(p)); return len(p), nil }

// TestMemory streams 64 MiB through every direction and bounds what is allocated in total, not
// only what is live. It does not run in parallel, so nobody else allocates meanwhile.
func TestMemory(t *testing.T) {
	const size, bound = 64 << 20, 4 << 20
	measure := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	through := func(write func(io.Writer) error, read func(io.Reader) error) {
		r, w := io.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = w.CloseWithError(write(w))
		}()
		if err := read(r); err != nil {
			t.Error(err)
		}
		_ = r.Close()
		<-done
	}
	for _, announced := range []int64{size, -1} {
		var out counter
		used := measure(func() {
			through(func(w io.Writer) error {
				return Encrypt(w, &repeated{size}, announced, certs(own), AES256CBC)
			}, func(r io.Reader) error {
				_, err := Decrypt(r, &out, []Recipient{own.recipient()}, Policy{})
				return err
			})
		})
		if out.n != size || used > bound {
			t.Errorf("encrypt and decrypt, size %d: %d bytes came out, %d were allocated", announced, out.n, used)
		}
		out.n = 0
		used = measure(func() {
			through(func(w io.Writer) error {
				return SignAttached(w, &repeated{size}, announced, partner.signer(SHA256), signingTime)
			}, func(r io.Reader) error {
				_, err := VerifyAttached(r, &out, certs(partner), Policy{})
				return err
			})
		})
		if out.n != size || used > bound {
			t.Errorf("sign and verify, size %d: %d bytes came out, %d were allocated", announced, out.n, used)
		}
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}
