package partner

import (
	"crypto/x509"
	"slices"
	"time"
)

// active reports whether a time lies in [from, until); a zero bound is open.
func active(now, from, until time.Time) bool {
	return (from.IsZero() || !now.Before(from)) && (until.IsZero() || now.Before(until))
}

// has reports whether a use is among the uses; an empty list has all.
func has(uses []Use, u Use) bool { return len(uses) == 0 || slices.Contains(uses, u) }

// ActiveAt reports whether the key is used at that time.
func (k *Key) ActiveAt(now time.Time) bool { return active(now, k.From, k.Until) }

// ActiveAt reports whether the certificate is used at that time.
func (c *Certificate) ActiveAt(now time.Time) bool { return active(now, c.From, c.Until) }

// SigningKey returns the newest key that signs at that time, nil when there is none.
func (o *Own) SigningKey(now time.Time) *Key {
	if keys := o.keys(now, UseSign); len(keys) > 0 {
		return keys[0]
	}
	return nil
}

// DecryptKeys returns all keys that decrypt at that time, the newest first: partners change
// over to a new certificate when they like.
func (o *Own) DecryptKeys(now time.Time) []*Key { return o.keys(now, UseDecrypt) }

// TLSKey returns the newest key for a client's side of TLS, nil when there is none. Only a key
// that names the use counts.
func (o *Own) TLSKey(now time.Time) *Key {
	for _, k := range o.keys(now, UseTLS) {
		if slices.Contains(k.Use, UseTLS) {
			return k
		}
	}
	return nil
}

func (o *Own) keys(now time.Time, u Use) []*Key {
	var out []*Key
	for i := range o.Keys {
		if k := &o.Keys[i]; has(k.Use, u) && k.ActiveAt(now) {
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(a, b *Key) int {
		return newer(a.From, b.From, a.Certificate, b.Certificate)
	})
	return out
}

// VerifyCerts returns the certificates that prove a signature at that time, the newest first:
// only those that the record marks for signing.
func (c *Connection) VerifyCerts(now time.Time) []*x509.Certificate { return c.certs(now, UseSign) }

// EncryptCert returns the newest certificate to encrypt for at that time, nil when there is none.
func (c *Connection) EncryptCert(now time.Time) *x509.Certificate {
	if certs := c.certs(now, UseEncrypt); len(certs) > 0 {
		return certs[0]
	}
	return nil
}

// TLSCerts returns the certificates that a TLS peer may show at that time, the newest first:
// empty means that the system's roots decide. Only those that name the use count.
func (c *Connection) TLSCerts(now time.Time) []*x509.Certificate {
	var out []*x509.Certificate
	for i := range c.Certificates {
		if r := &c.Certificates[i]; slices.Contains(r.Use, UseTLS) && r.ActiveAt(now) {
			out = append(out, r.Certificate)
		}
	}
	slices.SortStableFunc(out, func(a, b *x509.Certificate) int { return b.NotBefore.Compare(a.NotBefore) })
	return out
}

func (c *Connection) certs(now time.Time, u Use) []*x509.Certificate {
	var records []*Certificate
	for i := range c.Certificates {
		if r := &c.Certificates[i]; has(r.Use, u) && r.ActiveAt(now) {
			records = append(records, r)
		}
	}
	slices.SortStableFunc(records, func(a, b *Certificate) int {
		return newer(a.From, b.From, a.Certificate, b.Certificate)
	})
	out := make([]*x509.Certificate, len(records))
	for i, r := range records {
		out[i] = r.Certificate
	}
	return out
}

// newer orders by the start in the record, then by the certificate's own, the newest first.
func newer(a, b time.Time, ca, cb *x509.Certificate) int {
	if d := b.Compare(a); d != 0 {
		return d
	}
	return cb.NotBefore.Compare(ca.NotBefore)
}
