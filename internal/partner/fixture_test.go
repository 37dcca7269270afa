package partner

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/config"
)

// today is the moment that the tests take as now.
func today() time.Time { return time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC) }

func date(s string) time.Time {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return t
}

// keyFiles makes the files of the fixture once: RSA keys take time.
var keyFiles = sync.OnceValues(func() (map[string][]byte, error) { //nolint:gochecknoglobals // immutable once made.
	files := make(map[string][]byte)
	for _, name := range []string{"hub", "hub2", "acme", "beta"} {
		cert, key, err := GenerateKey(name, 2048, date("2026-01-01"), date("2028-01-01"))
		if err != nil {
			return nil, err
		}
		files[name+".pem"], files[name+".key"] = cert, key
	}
	short, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // G403: the test wants a weak one.
	if err != nil {
		return nil, err
	}
	files["short.pem"], err = selfSigned(short, "short", date("2026-01-01"), date("2028-01-01"), false)
	if err != nil {
		return nil, err
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if files["curve.pem"], err = selfSigned(curve, "curve", date("2026-01-01"), date("2028-01-01"), false); err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(curve)
	if err != nil {
		return nil, err
	}
	files["curve.key"] = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	// The key of acme in further certificates of other times.
	block, _ := pem.Decode(files["acme.key"])
	acme, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	for name, span := range map[string][2]string{"acme-old.pem": {"2024-01-01", "2026-01-31"}, "acme-soon.pem": {"2026-01-01", "2026-06-25"}, "acme-next.pem": {"2026-06-01", "2029-01-01"}} {
		if files[name], err = selfSigned(acme, name, date(span[0]), date(span[1]), false); err != nil {
			return nil, err
		}
	}
	authority, err := selfSigned(curve, "authority", date("2026-01-01"), date("2028-01-01"), true)
	if err != nil {
		return nil, err
	}
	files["chain.pem"] = append(append([]byte{}, files["acme.pem"]...), authority...)
	files["two.pem"] = append(append([]byte{}, files["acme.pem"]...), files["beta.pem"]...)
	block, _ = pem.Decode(files["acme.pem"])
	files["acme.der"] = block.Bytes
	files["locked.key"] = pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{1}})
	files["broken.key"] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte{1}})
	files["text.txt"] = []byte("hello\n")
	files["hmac.key"] = []byte("C4N4RY\n")
	return files, nil
})

func selfSigned(key any, name string, from, until time.Time, authority bool) ([]byte, error) {
	template := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until, IsCA: authority, BasicConstraintsValid: true}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("no signer")
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// keyFolder makes a directory with all key files.
func keyFolder(t testing.TB) string {
	t.Helper()
	files, err := keyFiles()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// parse reads a document that must be good.
func parse(t *testing.T, yaml string) *Registry {
	t.Helper()
	r, err := Parse([]byte(yaml), keyFolder(t), LoadOptions{Now: today()})
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return r
}

// refuse reads a document that must be refused, and returns the problems.
func refuse(t *testing.T, yaml string, o LoadOptions) config.Problems {
	t.Helper()
	_, err := Parse([]byte(yaml), keyFolder(t), o)
	var ps config.Problems
	if !errors.As(err, &ps) || len(ps) == 0 {
		t.Fatalf("want config.Problems, got %v", err)
	}
	return ps
}

func mustContain(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("missing %q in:\n%s", p, text)
		}
	}
}

// secured are an own identity and a connection that sign and encrypt.
const secured = `
own:
  - {id: hub, as2: {id: OURCO, keys: [{cert: hub.pem, key: hub.key}]}, identifiers: ["edifact:14:5412345000020", "x12:ZZ:OURCO"]}
connections:
  - {id: acme-as2, as2: {id: "ACME AS2", url: "https://acme.example/as2"}, certificates: [{file: acme.pem}]}
  - {id: erp-files, directory: {out: erp/in, in: erp/out}}
partners:
  - {id: acme, connections: [acme-as2], identifiers: ["edifact:14:5412345000013", "x12:ZZ:ACME"]}
  - {id: erp, connections: [erp-files]}
routes:
  - {match: {to: hub}, to: erp, envelope: keep}
  - {match: {from: erp}, to: acme}
`
