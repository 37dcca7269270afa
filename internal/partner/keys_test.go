package partner

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func names(certs []*x509.Certificate) string {
	out := make([]string, len(certs))
	for i, c := range certs {
		out[i] = c.Subject.CommonName
	}
	return strings.Join(out, " ")
}

func TestCertificatesByTimeAndUse(t *testing.T) {
	t.Parallel()
	yaml := change(t, "certificates: [{file: acme.pem}]", `certificates: [{file: acme.pem, until: 2026-06-30, use: [sign, encrypt]},
    {file: acme-next.pem, from: 2026-06-10, use: [sign]}, {file: acme-next.pem, from: 2026-06-20, use: [encrypt, tls]}, {file: curve.pem, use: [tls]}]`)
	c := parse(t, yaml).Connection("acme-as2")
	for _, tc := range []struct {
		at                   time.Time
		verify, encrypt, tls string
	}{
		{date("2025-12-31"), "", "", ""},
		{date("2026-01-01"), "acme", "acme", "curve"},
		{date("2026-06-09"), "acme", "acme", "curve"},
		{date("2026-06-10"), "acme-next.pem acme", "acme", "curve"},
		{date("2026-06-20"), "acme-next.pem acme", "acme-next.pem", "acme-next.pem curve"},
		{date("2026-06-30").Add(day - time.Second), "acme-next.pem acme", "acme-next.pem", "acme-next.pem curve"},
		{date("2026-07-01"), "acme-next.pem", "acme-next.pem", "acme-next.pem curve"},
		{date("2029-01-02"), "", "", ""},
	} {
		encrypt := ""
		if e := c.EncryptCert(tc.at); e != nil {
			encrypt = e.Subject.CommonName
		}
		if v, s := names(c.VerifyCerts(tc.at)), names(c.TLSCerts(tc.at)); v != tc.verify || encrypt != tc.encrypt || s != tc.tls {
			t.Errorf("%s: verify %q, encrypt %q, tls %q", tc.at.Format(time.DateOnly), v, encrypt, s)
		}
	}
}

func TestOwnKeysByTimeAndUse(t *testing.T) {
	t.Parallel()
	yaml := change(t, "keys: [{cert: hub.pem, key: hub.key}]", `keys: [{cert: hub.pem, key: hub.key, until: 2026-07-31}, {cert: hub2.pem, key: hub2.key, from: 2026-07-01},
    {cert: curve.pem, key: curve.key, from: 2026-08-01, use: [sign, tls]}]`)
	own := parse(t, yaml).Own("hub")
	for _, tc := range []struct {
		at           time.Time
		sign, decode string
	}{
		{date("2025-01-01"), "", ""},
		{date("2026-06-30"), "hub", "hub"},
		{date("2026-07-15"), "hub2", "hub2 hub"},
		{date("2026-08-01"), "curve", "hub2"},
		{date("2028-01-02"), "", ""},
	} {
		sign := ""
		if k := own.SigningKey(tc.at); k != nil {
			sign = k.Certificate.Subject.CommonName
		}
		var decode []*x509.Certificate
		for _, k := range own.DecryptKeys(tc.at) {
			decode = append(decode, k.Certificate)
		}
		if sign != tc.sign || names(decode) != tc.decode {
			t.Errorf("%s: sign %q, decrypt %q", tc.at.Format(time.DateOnly), sign, names(decode))
		}
	}
	if k := own.TLSKey(date("2026-07-15")); k != nil {
		t.Error("a key that does not name tls is used for it")
	}
	if k := own.TLSKey(date("2026-09-15")); k == nil || k.Certificate.Subject.CommonName != "curve" {
		t.Errorf("%v", k)
	}
}

func TestWhatTheRecordSaysHolds(t *testing.T) {
	t.Parallel()
	// The certificate ended in January; the record goes on with it, and says so.
	r := parse(t, change(t, "file: acme.pem", "file: acme-old.pem, until: 2026-12-31"))
	if c := r.Connection("acme-as2").EncryptCert(today()); c == nil {
		t.Error("the record's time does not hold")
	}
	if !hasWarning(r.Warnings(), WarnCertOverdue, "connection acme-as2") {
		t.Errorf("%v", r.Warnings())
	}
	// Without bounds in the record the certificate's own hold.
	r = parse(t, change(t, "file: acme.pem", "file: acme-old.pem"))
	if c := r.Connection("acme-as2").EncryptCert(today()); c != nil {
		t.Error("an expired certificate is used")
	}
	if !hasWarning(r.Warnings(), WarnCertInactive, "connection acme-as2") {
		t.Errorf("%v", r.Warnings())
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	const as2 = `url: "https://acme.example/as2"`
	files := "directory: {out: erp/in, in: erp/out}"
	for name, tc := range map[string]struct {
		yaml, code, object string
		want               []string
	}{
		"require nothing":      {change(t, as2, as2+", require: []"), WarnRequireNothing, "connection acme-as2", []string{"neither signed nor encrypted", "require: [signed, encrypted]"}},
		"require signed":       {change(t, as2, as2+", require: [signed]"), WarnRequireWeak, "connection acme-as2", []string{"not encrypted"}},
		"require encrypted":    {change(t, as2, as2+", require: [encrypted]"), WarnRequireWeak, "connection acme-as2", []string{"not signed"}},
		"sign none":            {change(t, as2, as2+", sign: none"), WarnSignNone, "connection acme-as2", nil},
		"sign sha1":            {change(t, as2, as2+", sign: sha1"), WarnSignWeak, "connection acme-as2", nil},
		"encrypt none":         {change(t, as2, as2+", encrypt: none"), WarnEncryptNone, "connection acme-as2", nil},
		"encrypt 3des":         {change(t, as2, as2+", encrypt: 3des"), WarnEncryptWeak, "connection acme-as2", nil},
		"mdn none":             {change(t, as2, as2+", mdn: {mode: none}"), WarnMDNNone, "connection acme-as2", []string{"only proof"}},
		"mdn unsigned":         {change(t, as2, as2+", mdn: {signed: false}"), WarnMDNUnsigned, "connection acme-as2", nil},
		"plain url":            {change(t, "https://acme", "http://acme"), WarnURLPlain, "connection acme-as2", nil},
		"no hmac":              {change(t, files, "http: {url: 'https://erp.example'}"), WarnNoHMAC, "connection erp-files", nil},
		"name without id":      {change(t, files, "directory: {out: erp/in, name: '{type}.edi'}"), WarnFileNameRepeats, "connection erp-files", nil},
		"unused connection":    {change(t, "  - {id: erp-files", "  - {id: spare, directory: {in: spare}}\n  - {id: erp-files"), WarnConnectionUnbound, "connection spare", nil},
		"short key":            {change(t, "certificates: [", "certificates: [{file: short.pem, use: [sign]}, "), WarnKeyShort, "connection acme-as2", []string{"1024 bits"}},
		"certificate ends":     {change(t, "file: acme.pem", "file: acme-soon.pem"), WarnCertExpires, "connection acme-as2", []string{"sign, encrypt: it ends on 2026-06-25, in 9 days"}},
		"own key ends":         {change(t, "key: hub.key", "key: hub.key, until: 2026-06-20"), WarnCertExpires, "own hub", []string{"sign, decrypt: it ends on 2026-06-21, in 5 days", "edihub keygen"}},
		"not yet in use":       {change(t, "file: acme.pem", "file: acme.pem, from: 2026-07-01"), WarnCertInactive, "connection acme-as2", []string{"none is in use before 2026-07-01"}},
		"partner without way":  {change(t, "routes:\n  - {match: {to: hub}, to: erp, envelope: keep}\n  - {match: {from: erp}, to: acme}\n", "routes: [{match: {from: erp}, to: erp}]\n"), WarnNoRoute, "partner acme", nil},
		"route out of reach":   {change(t, "routes:\n", "routes:\n  - {match: {}, to: erp}\n"), WarnRouteUnreachable, "route 3", []string{"route 1 matches all"}},
		"shadowed by wildcard": {change(t, "match: {to: hub}, to: erp, envelope: keep}", "match: {document: 'x12:*'}, to: erp}\n  - {match: {from: acme, document: ['x12:850', 'x12:8*']}, to: erp}"), WarnRouteUnreachable, "route 2", nil},
		"shadowed agreement":   {secured + "agreements: [{match: {from: [acme, erp]}}, {match: {from: acme, to: hub}}]\n", WarnAgreementShadowed, "agreement 2", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ws := parse(t, tc.yaml).Warnings()
			for _, w := range ws {
				if w.Code == tc.code && w.Object == tc.object {
					mustContain(t, w.String(), tc.want...)
					if w.Line == 0 || w.Remedy == "" {
						t.Errorf("no line or remedy: %+v", w)
					}
					return
				}
			}
			t.Errorf("no %s about %s in %v", tc.code, tc.object, ws)
		})
	}
}

func TestGoodFileHasNoWarnings(t *testing.T) {
	t.Parallel()
	for name, yaml := range map[string]string{
		"secured":         secured,
		"successor":       change(t, "{file: acme.pem}", "{file: acme-soon.pem}, {file: acme-next.pem}"),
		"old one remains": change(t, "{file: acme.pem}", "{file: acme-old.pem}, {file: acme.pem}"),
		"draft":           change(t, "partners:\n", "partners:\n  - {id: new, status: draft}\n") + "  - {match: {to: new}, to: erp}\n",
		"other documents": change(t, "match: {to: hub}", "match: {document: 'x12:850', to: hub}") + "  - {match: {document: 'x12:*', to: hub}, to: erp}\n",
	} {
		if ws := parse(t, yaml).Warnings(); len(ws) != 0 {
			t.Errorf("%s: %v", name, ws)
		}
	}
}

func TestExpiryIsAskedForAgain(t *testing.T) {
	t.Parallel()
	r := parse(t, secured)
	if ws := r.ExpiryWarnings(today()); len(ws) != 0 {
		t.Errorf("%v", ws)
	}
	ws := r.ExpiryWarnings(date("2027-12-25"))
	if len(ws) != 2 || !hasWarning(ws, WarnCertExpires, "own hub") || !hasWarning(ws, WarnCertExpires, "connection acme-as2") {
		t.Errorf("%v", ws)
	}
	if ws = r.ExpiryWarnings(date("2028-02-01")); !hasWarning(ws, WarnCertInactive, "own hub") {
		t.Errorf("%v", ws)
	}
}

func TestLargeKeysOfOursAreSlow(t *testing.T) {
	t.Parallel()
	large := &x509.Certificate{PublicKey: &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 4095), E: 65537}}
	b := &builder{registry: Empty()}
	b.warnKey(certPlace{object: "connection acme", certificate: large})
	if ws := b.registry.Warnings(); len(ws) != 0 {
		t.Errorf("a partner's key costs us nothing: %v", ws)
	}
	b.warnKey(certPlace{object: "own hub", certificate: large})
	if !hasWarning(b.registry.Warnings(), WarnKeyLarge, "own hub") {
		t.Errorf("%v", b.registry.Warnings())
	}
}

func TestKeyFilesThatOthersMayRead(t *testing.T) {
	t.Parallel()
	dir := keyFolder(t)
	if err := os.Chmod(filepath.Join(dir, "hub.key"), 0o644); err != nil { //nolint:gosec // G302: the point of the test.
		t.Fatal(err)
	}
	r, err := Parse([]byte(secured), dir, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !hasWarning(r.Warnings(), WarnKeyReadable, "own hub") {
		t.Errorf("%v", r.Warnings())
	}
}

func TestNoViewHoldsASecret(t *testing.T) {
	t.Parallel()
	r := parse(t, contract)
	files, err := keyFiles()
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(files["hub.key"])
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key, ok := private.(*rsa.PrivateKey)
	if !ok {
		t.Fatalf("%T", private)
	}
	data, err := json.Marshal(r.Public())
	if err != nil {
		t.Fatal(err)
	}
	c := r.Connection("erp-http")
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]string{
		"public": string(data), "record": string(raw), "print": fmt.Sprintf("%v %+v %#v %s", r.Public(), *c.HTTP, *c.HTTP, *c.HTTP), "warnings": fmt.Sprint(r.Warnings()),
	} {
		for _, secret := range []string{"C4N4RY", "PRIVATE KEY", key.D.String(), key.D.Text(16), key.Primes[0].String()} {
			if strings.Contains(out, secret) {
				t.Errorf("%s holds a secret", name)
			}
		}
	}
	mustContain(t, string(data), `"hmac_key":"***"`, `"fingerprint":"`, `"subject":"CN=acme"`, `"bits":2048`, `"until":"2027-02-01T00:00:00Z"`)
	// A pasted private key never comes back in a problem.
	inline, err := json.Marshal(string(files["hub2.key"]))
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Split(string(files["hub2.key"]), "\n")[1]
	for _, yaml := range []string{change(t, "key: hub.key", "key: "+string(inline)), change(t, "file: acme.pem", "file: "+string(inline)), change(t, "key: hub.key", "keyy: "+string(inline))} {
		if ps := refuse(t, yaml, LoadOptions{}); strings.Contains(ps.Error(), body) {
			t.Errorf("the key is in the problem")
		}
	}
}

func TestGenerateKey(t *testing.T) {
	t.Parallel()
	from, until := date("2026-01-01"), date("2028-01-01")
	certPEM, keyPEM, err := GenerateKey("OURCO", 2048, from, until)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if c.Subject.CommonName != "OURCO" || !c.NotBefore.Equal(from) || !c.NotAfter.Equal(until) || c.IsCA {
		t.Errorf("%v %v %v", c.Subject, c.NotBefore, c.NotAfter)
	}
	if c.KeyUsage != x509.KeyUsageDigitalSignature|x509.KeyUsageKeyEncipherment|x509.KeyUsageDataEncipherment {
		t.Errorf("key usage %b", c.KeyUsage)
	}
	if err := c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature); err != nil {
		t.Errorf("not self-signed: %v", err)
	}
	if c.SerialNumber.Sign() <= 0 || len(c.SerialNumber.Bytes()) > 20 {
		t.Errorf("serial %v", c.SerialNumber)
	}
	other, _, err := GenerateKey("OURCO", 2048, from, until)
	if err != nil || bytes.Equal(other, certPEM) {
		t.Error("two keys are alike")
	}
	for name, f := range map[string]func() error{
		"no name": func() error { _, _, err := GenerateKey("", 2048, from, until); return err },
		"short":   func() error { _, _, err := GenerateKey("x", 1024, from, until); return err },
		"long":    func() error { _, _, err := GenerateKey("x", 16384, from, until); return err },
		"times":   func() error { _, _, err := GenerateKey("x", 2048, until, from); return err },
	} {
		if f() == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestHolderSwapsUnderReaders(t *testing.T) {
	t.Parallel()
	var zero Holder
	if zero.Current() == nil || len(zero.Current().Owns()) != 0 {
		t.Error("the zero holder is not empty")
	}
	a := parse(t, secured)
	b := a.WithVersion(a.Version() + 1)
	h := NewHolder(a)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	started := make(chan struct{}, 4)
	for range 4 {
		wg.Go(func() {
			started <- struct{}{}
			for ctx.Err() == nil {
				r := h.Current()
				if r != a && r != b {
					t.Error("a registry that nobody put in")
					return
				}
				if _, ok := r.Route(RouteQuery{From: "erp", Document: "x12:850"}); !ok {
					t.Error("no route")
					return
				}
			}
		})
	}
	for range 4 {
		<-started
	}
	for range 500 {
		if got := h.Swap(b); got != a {
			t.Error("Swap returned another registry")
		}
		if got := h.Swap(a); got != b {
			t.Error("Swap returned another registry")
		}
	}
	cancel()
	wg.Wait()
}
