package partner

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/edihub/edihub/internal/config"
)

// maxPEM is the largest certificate or key file in bytes.
const maxPEM = 1 << 20

// certPlace is one certificate or key of ours with its place, for warnings.
type certPlace struct {
	object      string // "own hub" or "connection acme-as2"
	keyFile     string // of a key of ours
	place       config.Place
	certificate *x509.Certificate
	from, until time.Time
	use         []Use
}

// keyOwner is the record that a public key belongs to.
type keyOwner struct {
	record any // *Own or *Connection
	what   string
	ours   bool
}

// content reads a value that names a file, or is PEM itself; path is empty then.
func content(o *config.Object, key string) (data []byte, path string, ok bool) {
	text := o.Required(key, map[string]string{"file": "acme-2026.pem", "cert": "keys/ourco-2026.pem", "key": "keys/ourco-2026.key"}[key])
	if text == "" {
		return nil, "", false
	}
	if strings.HasPrefix(strings.TrimSpace(text), "-----BEGIN") {
		return []byte(text), "", true
	}
	path = o.File(key, "")
	data, err := config.ReadFile(path, maxPEM)
	if err != nil {
		o.Fail(key, err.Error(), "name a readable file; paths are relative to the file that names them")
		return nil, "", false
	}
	return data, path, true
}

// parseCertificate takes PEM or DER. Of a chain it takes the one that is no authority: only
// the party's own certificate is trusted.
func parseCertificate(data []byte) (*x509.Certificate, error) {
	var certs []*x509.Certificate
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("the certificate does not parse: %w", err)
		}
		certs = append(certs, c)
	}
	if len(certs) == 0 && !bytes.Contains(data, []byte("-----BEGIN")) {
		if c, err := x509.ParseCertificate(data); err == nil {
			return c, nil
		}
	}
	if len(certs) > 1 {
		certs = slices.DeleteFunc(certs, func(c *x509.Certificate) bool { return c.IsCA })
	}
	switch len(certs) {
	case 0:
		return nil, errors.New("no certificate is in it")
	case 1:
		return certs[0], nil
	}
	return nil, fmt.Errorf("%d certificates are in it", len(certs))
}

// parseKey takes PKCS #8, PKCS #1 or SEC 1 in PEM. Its errors hold nothing of the key.
func parseKey(data []byte) (crypto.Signer, error) {
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("no private key is in it")
		}
		var key any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			if block.Headers["DEK-Info"] != "" {
				return nil, errors.New("the private key is encrypted")
			}
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return nil, errors.New("the private key is encrypted")
		default:
			continue
		}
		if err != nil {
			return nil, errors.New("the private key does not parse")
		}
		switch k := key.(type) {
		case *rsa.PrivateKey:
			return k, nil
		case *ecdsa.PrivateKey:
			return k, nil
		}
		return nil, fmt.Errorf("a key of type %T is not used for AS2", key)
	}
}

// key reads one entry of own.as2.keys.
func (b *builder) key(o *config.Object, own *Own) (Key, bool) {
	certData, _, okCert := content(o, "cert")
	keyData, path, okKey := content(o, "key")
	k := Key{From: o.Day("from", false), Until: o.Day("until", true), Use: uses(o, UseSign, UseDecrypt, UseTLS)}
	o.Close()
	if !okCert || !okKey {
		return Key{}, false
	}
	cert, err := parseCertificate(certData)
	if err != nil {
		o.Fail("cert", err.Error(), "name a PEM or DER file with one certificate")
		return Key{}, false
	}
	private, err := parseKey(keyData)
	if err != nil {
		o.Fail("key", err.Error(), "name a PEM file with one unencrypted private key (PKCS #8), readable by the hub alone")
		return Key{}, false
	}
	public, ok := private.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(cert.PublicKey) {
		o.Fail("key", "the private key does not belong to the certificate", "name the two files of one pair")
		return Key{}, false
	}
	if _, isRSA := private.(*rsa.PrivateKey); !isRSA && slices.Contains(k.Use, UseDecrypt) {
		o.Fail("use", "only an RSA key can decrypt", "use an RSA key, or take decrypt out of use")
		return Key{}, false
	}
	k.Certificate, k.Private = cert, private
	k.From, k.Until = bounds(o, k.From, k.Until, cert)
	b.claimKey(o.Place("cert"), cert, keyOwner{record: own, what: fmt.Sprintf("our own identity %q", own.ID), ours: true})
	b.places.certificates = append(b.places.certificates, certPlace{
		object: "own " + own.ID, keyFile: path, place: o.Place("cert"),
		certificate: cert, from: k.From, until: k.Until, use: k.Use,
	})
	return k, true
}

// certificate reads one entry of connection.certificates.
func (b *builder) certificate(o *config.Object, c *Connection) (Certificate, bool) {
	data, _, ok := content(o, "file")
	out := Certificate{From: o.Day("from", false), Until: o.Day("until", true), Use: uses(o, UseSign, UseEncrypt, UseTLS)}
	o.Close()
	if !ok {
		return Certificate{}, false
	}
	if bytes.Contains(data, []byte("PRIVATE KEY-----")) {
		o.Fail("file", "a private key is in it", "a partner gives only a certificate; ask for a new one when the key was theirs")
		return Certificate{}, false
	}
	cert, err := parseCertificate(data)
	if err != nil {
		o.Fail("file", err.Error(), "name a PEM or DER file with the partner's one certificate")
		return Certificate{}, false
	}
	if _, isRSA := cert.PublicKey.(*rsa.PublicKey); !isRSA && slices.Contains(out.Use, UseEncrypt) {
		o.Fail("use", "it is only possible to encrypt for an RSA certificate", "ask the partner for an RSA certificate, or take encrypt out of use")
		return Certificate{}, false
	}
	out.Certificate = cert
	out.From, out.Until = bounds(o, out.From, out.Until, cert)
	b.claimKey(o.Place("file"), cert, keyOwner{record: c, what: fmt.Sprintf("connection %q", c.ID)})
	b.places.certificates = append(b.places.certificates, certPlace{
		object: "connection " + c.ID, place: o.Place("file"),
		certificate: cert, from: out.From, until: out.Until, use: out.Use,
	})
	return out, true
}

// uses reads what a certificate is for; an absent or empty list is all.
func uses(o *config.Object, allowed ...Use) []Use {
	words := make([]string, len(allowed))
	for i, u := range allowed {
		words[i] = string(u)
	}
	var out []Use
	for _, w := range o.Choices("use", nil, words...) {
		out = append(out, Use(w))
	}
	return out
}

// bounds fills in what the record leaves open from the certificate. What the record says holds,
// so that an operator can go on with a certificate that a partner forgot to renew.
func bounds(o *config.Object, from, until time.Time, cert *x509.Certificate) (start, end time.Time) {
	if from.IsZero() {
		from = cert.NotBefore
	}
	if until.IsZero() {
		until = cert.NotAfter
	}
	if !from.Before(until) {
		o.Fail("until", fmt.Sprintf("the time ends (%s) before it begins (%s)", until.Format(time.DateOnly), from.Format(time.DateOnly)), "change from or until")
	}
	return from, until
}

// claimKey refuses a public key that another record has: whoever holds it could speak for both.
// The key is compared, not the certificate, because the same key in a new certificate signs alike.
func (b *builder) claimKey(p config.Place, cert *x509.Certificate, owner keyOwner) {
	b.feed(cert.Raw)
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	first, taken := b.publicKeys[sum]
	switch {
	case !taken:
		if b.publicKeys == nil {
			b.publicKeys = make(map[[32]byte]keyOwner)
		}
		b.publicKeys[sum] = owner
	case first.record == owner.record:
	case first.ours && !owner.ours:
		b.fail(p, "this is a certificate of "+first.what, "name the partner's own certificate")
	default:
		b.fail(p, "the certificate (or its key) is in "+first.what+" too", "each record needs a certificate of its own; partners that share one can share one connection")
	}
}

// readableByOthers reports whether others than the owner may read a key file.
func readableByOthers(path string) bool {
	if path == "" {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&0o077 != 0
}
