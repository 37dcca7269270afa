package cms

import (
	"bytes"
	"crypto"
	"crypto/sha1" //nolint:gosec // G505: RFC 5280 §4.2.1.2 makes key identifiers with SHA-1.
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"strings"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// Object identifiers in dotted form, as ReadASN1ObjectIdentifier prints them.
const (
	oidData          = "1.2.840.113549.1.7.1"
	oidSignedData    = "1.2.840.113549.1.7.2"
	oidEnvelopedData = "1.2.840.113549.1.7.3"

	oidContentType     = "1.2.840.113549.1.9.3"
	oidMessageDigest   = "1.2.840.113549.1.9.4"
	oidSigningTime     = "1.2.840.113549.1.9.5"
	oidSMIMECapability = "1.2.840.113549.1.9.15"

	oidRSA        = "1.2.840.113549.1.1.1"
	oidOAEP       = "1.2.840.113549.1.1.7"
	oidMGF1       = "1.2.840.113549.1.1.8"
	oidPSpecified = "1.2.840.113549.1.1.9"
	oidPSS        = "1.2.840.113549.1.1.10"
	oidECKey      = "1.2.840.10045.2.1"
)

// digestOIDs are the message digests (RFC 3370 §2, RFC 5754 §2).
var digestOIDs = map[string]Digest{
	"1.3.14.3.2.26":          SHA1,
	"2.16.840.1.101.3.4.2.1": SHA256,
	"2.16.840.1.101.3.4.2.2": SHA384,
	"2.16.840.1.101.3.4.2.3": SHA512,
}

// oaepHashes are the hashes that RSAES-OAEP may name (RFC 4055 §2.1).
var oaepHashes = map[string]crypto.Hash{
	"1.3.14.3.2.26":          crypto.SHA1,
	"2.16.840.1.101.3.4.2.4": crypto.SHA224,
	"2.16.840.1.101.3.4.2.1": crypto.SHA256,
	"2.16.840.1.101.3.4.2.2": crypto.SHA384,
	"2.16.840.1.101.3.4.2.3": crypto.SHA512,
	"2.16.840.1.101.3.4.2.5": crypto.SHA512_224,
	"2.16.840.1.101.3.4.2.6": crypto.SHA512_256,
}

// signatureOIDs are the algorithms that name a digest (RFC 5754 §3, OIW for the last).
var signatureOIDs = map[string]struct {
	digest Digest
	scheme string
}{
	"1.2.840.113549.1.1.5":  {SHA1, schemePKCS1},
	"1.2.840.113549.1.1.11": {SHA256, schemePKCS1},
	"1.2.840.113549.1.1.12": {SHA384, schemePKCS1},
	"1.2.840.113549.1.1.13": {SHA512, schemePKCS1},
	"1.3.14.3.2.29":         {SHA1, schemePKCS1},
	"1.2.840.10045.4.1":     {SHA1, schemeECDSA},
	"1.2.840.10045.4.3.2":   {SHA256, schemeECDSA},
	"1.2.840.10045.4.3.3":   {SHA384, schemeECDSA},
	"1.2.840.10045.4.3.4":   {SHA512, schemeECDSA},
}

// The signature schemes by the names that SignerDetails.Algorithm reports.
const (
	schemePKCS1 = "rsa-pkcs1v15"
	schemePSS   = "rsa-pss"
	schemeECDSA = "ecdsa"
)

// cipherSpecs are the content ciphers; all take a block-sized IV as OCTET STRING parameter.
var cipherSpecs = []struct {
	cipher             Cipher
	oid                string
	keyBytes, ivLength int
}{
	{AES256CBC, "2.16.840.1.101.3.4.1.42", 32, 16},
	{AES192CBC, "2.16.840.1.101.3.4.1.22", 24, 16},
	{AES128CBC, "2.16.840.1.101.3.4.1.2", 16, 16},
	{TripleDES, "1.2.840.113549.3.7", 24, 8},
}

// oid turns one of the constants above into its value; it is never handed anything else.
func oid(dotted string) asn1.ObjectIdentifier {
	var out asn1.ObjectIdentifier
	for part := range strings.SplitSeq(dotted, ".") {
		n := 0
		for _, c := range []byte(part) {
			n = n*10 + int(c-'0')
		}
		out = append(out, n)
	}
	return out
}

func digestOID(d Digest) string {
	for o, x := range digestOIDs {
		if x == d {
			return o
		}
	}
	return ""
}

// algorithm is an AlgorithmIdentifier (RFC 5280 §4.1.1.2).
type algorithm struct {
	oid    string
	params cryptobyte.String // empty: absent
}

// noParams reports absent or NULL parameters, which mean the same wherever both are seen.
func (a algorithm) noParams() bool {
	return len(a.params) == 0 || bytes.Equal(a.params, []byte{5, 0})
}

func readOID(s *cryptobyte.String) (string, bool) {
	var o asn1.ObjectIdentifier
	if !s.ReadASN1ObjectIdentifier(&o) {
		return "", false
	}
	return o.String(), true
}

func readAlgorithm(s *cryptobyte.String) (a algorithm, ok bool) {
	var seq cryptobyte.String
	if !s.ReadASN1(&seq, cbasn1.SEQUENCE) {
		return a, false
	}
	if a.oid, ok = readOID(&seq); !ok {
		return a, false
	}
	if seq.Empty() {
		return a, true
	}
	var tag cbasn1.Tag
	return a, seq.ReadAnyASN1Element(&a.params, &tag) && seq.Empty()
}

// certID names a certificate inside a message: by issuer and serial number, or by the subject
// key identifier (RFC 5652 §5.3, §6.2.1).
type certID struct {
	issuer []byte // DER of the Name
	serial *big.Int
	keyID  []byte
}

func readCertID(s *cryptobyte.String) (id certID, ok bool) {
	if s.PeekASN1Tag(cbasn1.SEQUENCE) {
		var seq, issuer, serial cryptobyte.String
		if !s.ReadASN1(&seq, cbasn1.SEQUENCE) ||
			!seq.ReadASN1Element(&issuer, cbasn1.SEQUENCE) ||
			!seq.ReadASN1(&serial, cbasn1.INTEGER) || len(serial) == 0 || !seq.Empty() {
			return id, false
		}
		id.issuer, id.serial = issuer, twosComplement(serial)
		return id, true
	}
	var keyID cryptobyte.String
	if !s.ReadASN1(&keyID, cbasn1.Tag(0).ContextSpecific()) || len(keyID) == 0 {
		return id, false
	}
	id.keyID = keyID
	return id, true
}

// twosComplement reads an INTEGER that need not be minimal: some issuers pad serial numbers.
func twosComplement(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
	}
	return n
}

func (id certID) matches(c *x509.Certificate) bool {
	if id.keyID != nil {
		return bytes.Equal(id.keyID, c.SubjectKeyId) || bytes.Equal(id.keyID, keyHash(c))
	}
	return c.SerialNumber != nil && id.serial.Cmp(c.SerialNumber) == 0 && sameName(id.issuer, c.RawIssuer)
}

// keyHash is the key identifier of a certificate that does not carry one (RFC 5280 §4.2.1.2 (1)).
func keyHash(c *x509.Certificate) []byte {
	spki := cryptobyte.String(c.RawSubjectPublicKeyInfo)
	var seq, alg cryptobyte.String
	var key asn1.BitString
	if !spki.ReadASN1(&seq, cbasn1.SEQUENCE) || !seq.ReadASN1(&alg, cbasn1.SEQUENCE) || !seq.ReadASN1BitString(&key) {
		return nil
	}
	sum := sha1.Sum(key.Bytes) //nolint:gosec // G401: an identifier, not a security measure.
	return sum[:]
}

// sameName compares names by bytes, and failing that by their text without regard to case and
// blanks (RFC 5280 §7.1): some products re-encode the strings of a name when they copy it. Only
// certificates that are trusted already are compared, so a loose match lets nobody in.
func sameName(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y pkix.RDNSequence
	if rest, err := asn1.Unmarshal(a, &x); err != nil || len(rest) > 0 {
		return false
	}
	if rest, err := asn1.Unmarshal(b, &y); err != nil || len(rest) > 0 {
		return false
	}
	fold := func(n pkix.RDNSequence) string { return strings.Join(strings.Fields(n.String()), " ") }
	return len(x) > 0 && strings.EqualFold(fold(x), fold(y))
}

// IsCMS looks at the first bytes of a body and names the CMS content type that starts there:
// "enveloped", "signed" or "compressed"; "" if none does. 32 bytes are enough. It is for bodies
// whose headers lie about their encoding (a base64 header before raw DER).
func IsCMS(prefix []byte) string {
	// SEQUENCE, length in any form, then the OBJECT IDENTIFIER.
	if len(prefix) < 2 || prefix[0] != 0x30 {
		return ""
	}
	skip := 2
	if prefix[1] > 0x80 {
		skip += int(prefix[1] & 0x7f)
	}
	if skip >= len(prefix) {
		return ""
	}
	rest := prefix[skip:]
	for name, der := range map[string]string{
		"enveloped":  "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x03",
		"signed":     "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02",
		"compressed": "\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x09",
	} {
		if bytes.HasPrefix(rest, []byte(der)) {
			return name
		}
	}
	return ""
}
