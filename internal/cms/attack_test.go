package cms

import (
	"bytes"
	"crypto"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // G505: key identifiers are made with it.
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"io"
	"slices"
	"testing"
)

// signerSpec builds a SignerInfo by hand; what is zero is what an honest signer writes.
type signerSpec struct {
	by         party
	digest     Digest
	content    []byte
	sid        []byte
	digestAlg  []byte
	algorithm  []byte
	attributes [][]byte // in the order written; nil: content-type and message-digest
	bare       bool
	signed     []byte // what is hashed and signed, if not the attributes or the content
	unsigned   []byte
}

func attribute(dotted string, values ...[]byte) []byte {
	return sequence(element1(tagOID, oidBytes(dotted)), element1(0x31, values...))
}

func typeAttribute(dotted string) []byte {
	return attribute(oidContentType, element1(tagOID, oidBytes(dotted)))
}

func digestAttribute(d Digest, content []byte) []byte {
	return attribute(oidMessageDigest, element1(tagOctetString, sum(d, content)))
}

func (s signerSpec) der(t testing.TB) []byte {
	t.Helper()
	if s.by.key == nil {
		s.by = partner
	}
	if s.digest == "" {
		s.digest = SHA256
	}
	if s.sid == nil {
		s.sid = issuerAndSerial(s.by.cert)
	}
	if s.digestAlg == nil {
		s.digestAlg = algorithmDER(digestOID(s.digest), nil)
	}
	if s.algorithm == nil {
		s.algorithm = algorithmDER(oidRSA, []byte{5, 0})
	}
	if s.attributes == nil {
		s.attributes = [][]byte{typeAttribute(oidData), digestAttribute(s.digest, s.content)}
	}
	attributes := element1(0xa0, s.attributes...)
	if s.signed == nil {
		if s.signed = s.content; !s.bare {
			s.signed = element1(0x31, s.attributes...)
		}
	}
	if s.bare {
		attributes = nil
	}
	signature, err := s.by.key.Sign(rand.Reader, sum(s.digest, s.signed), s.digest.Hash())
	if err != nil {
		t.Fatal(err)
	}
	return sequence([]byte{2, 1, 1}, s.sid, s.digestAlg, attributes, s.algorithm, element1(tagOctetString, signature), s.unsigned)
}

// message puts a SignedData together. content nil: detached.
func message(content []byte, embedded []*x509.Certificate, signers ...[]byte) []byte {
	return messageOf(oidData, allDigests, content, embedded, signers...)
}

func messageOf(contentType string, announced []Digest, content []byte, embedded []*x509.Certificate, signers ...[]byte) []byte {
	var algorithms, certificates, econtent []byte
	for _, d := range announced {
		algorithms = append(algorithms, algorithmDER(digestOID(d), nil)...)
	}
	for _, c := range embedded {
		certificates = append(certificates, c.Raw...)
	}
	if certificates != nil {
		certificates = element1(0xa0, certificates)
	}
	if content != nil {
		econtent = element1(0xa0, element1(tagOctetString, content))
	}
	return wrap(oidSignedData, sequence([]byte{2, 1, 1}, element1(0x31, algorithms),
		sequence(element1(tagOID, oidBytes(contentType)), econtent), certificates, element1(0x31, signers...)))
}

func wrap(dotted string, content []byte) []byte {
	return sequence(element1(tagOID, oidBytes(dotted)), element1(0xa0, content))
}

// verifyAttached verifies a message that holds its content.
func verifyAttached(der []byte, trusted ...party) (SignatureInfo, error) {
	return VerifyAttached(bytes.NewReader(der), io.Discard, certs(trusted...), Policy{})
}

var signedContent = []byte("Content-Type: application/edifact\r\n\r\nUNA:+.? 'UNB+UNOA:3+A+B'\n")

func TestVerifyAccepts(t *testing.T) {
	t.Parallel()
	c := signedContent
	null := []byte{5, 0}
	attributes := [][]byte{digestAttribute(SHA256, c), typeAttribute(oidData)}               // Not in the order of DER.
	keySHA1 := sha1.Sum(x509.MarshalPKCS1PublicKey(partner.cert.PublicKey.(*rsa.PublicKey))) //nolint:gosec // G401: RFC 5280 §4.2.1.2.
	renewed := newParty(t.TempDir(), partner.key, "party 1", 77, nil)
	otherCase := newParty(t.TempDir(), partner.key, "PARTY  1", 1001, nil)
	tests := []struct {
		name     string
		spec     signerSpec
		embedded []*x509.Certificate
	}{
		{"plain", signerSpec{}, nil},
		{"rsaEncryption without parameters", signerSpec{algorithm: algorithmDER(oidRSA, nil)}, nil},
		{"sha256WithRSAEncryption, NULL", signerSpec{algorithm: algorithmDER("1.2.840.113549.1.1.11", null)}, nil},
		{"sha256WithRSAEncryption, absent", signerSpec{algorithm: algorithmDER("1.2.840.113549.1.1.11", nil)}, nil},
		{"digest as signature algorithm, NULL", signerSpec{algorithm: algorithmDER(digestOID(SHA256), null)}, nil},
		{"digest as signature algorithm, absent", signerSpec{algorithm: algorithmDER(digestOID(SHA256), nil)}, nil},
		{"sha1 as signature algorithm", signerSpec{digest: SHA1, algorithm: algorithmDER(digestOID(SHA1), null)}, nil},
		{"sha1WithRSA of OIW", signerSpec{digest: SHA1, algorithm: algorithmDER("1.3.14.3.2.29", null)}, nil},
		{"digest algorithm with NULL", signerSpec{digestAlg: algorithmDER(digestOID(SHA256), null)}, nil},
		{"key identifier", signerSpec{sid: element1(0x80, partner.cert.SubjectKeyId)}, nil},
		{"hash of the key as identifier", signerSpec{sid: element1(0x80, keySHA1[:])}, nil},
		{"no attributes", signerSpec{bare: true}, nil},
		{"attributes signed as received", signerSpec{attributes: attributes}, nil},
		{"attributes signed in order, sent unordered", signerSpec{attributes: attributes, signed: setOf(0x31, attributes)}, nil},
		{"unsigned attributes", signerSpec{unsigned: element1(0xa1, typeAttribute(oidSignedData))}, nil},
		{"signing time that is none", signerSpec{attributes: append([][]byte{attribute(oidSigningTime, element1(23, []byte("soon")))}, attributes...)}, nil},
		{"renewed certificate, same key", signerSpec{sid: issuerAndSerial(renewed.cert)}, certs(attacker, renewed)},
		{"issuer written in other letters", signerSpec{sid: issuerAndSerial(otherCase.cert)}, nil},
		{"foreign certificate embedded", signerSpec{}, certs(attacker)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.spec.content = c
			si := tt.spec.der(t)
			info, err := VerifyDetached(message(nil, tt.embedded, si), bytes.NewReader(c), certs(own, partner), Policy{})
			if err != nil || info.Signers[0].Certificate != partner.cert {
				t.Errorf("detached: %v, %+v", err, info)
			}
			attached := message(c, tt.embedded, si)
			for form, der := range map[string][]byte{"DER": attached, "BER": indefinite(t, attached)} {
				if info, err := verifyAttached(der, own, partner); err != nil || info.Signers[0].Certificate != partner.cert {
					t.Errorf("attached, %s: %v, %+v", form, err, info)
				}
			}
			// Content that is also inside does not stand in for the content beside it.
			if _, err := VerifyDetached(attached, bytes.NewReader(c), certs(partner), Policy{}); err != nil {
				t.Errorf("content twice: %v", err)
			}
			_, err = VerifyDetached(attached, bytes.NewReader([]byte("other")), certs(partner), Policy{})
			wantError(t, err, ErrSignature)
		})
	}
}

// indefinite rewrites DER with indefinite lengths everywhere and OCTET STRINGs in segments of
// three bytes, except inside primitive elements.
func indefinite(t testing.TB, der []byte) []byte {
	t.Helper()
	var out []byte
	for len(der) > 0 {
		var v asn1.RawValue
		rest, err := asn1.Unmarshal(der, &v)
		if err != nil {
			t.Fatal(err)
		}
		der = rest
		switch {
		case v.IsCompound:
			out = append(append(append(out, v.FullBytes[0], 0x80), indefinite(t, v.Bytes)...), 0, 0)
		case v.Class == asn1.ClassUniversal && v.Tag == asn1.TagOctetString:
			out = append(out, 0x24, 0x80)
			for segment := range slices.Chunk(v.Bytes, 3) {
				out = append(out, element1(tagOctetString, segment)...)
			}
			out = append(out, 0, 0)
		default:
			out = append(out, v.FullBytes...)
		}
	}
	return out
}

// openEnded gives the outermost element, which has two length octets, an indefinite length and
// leaves off the end of its contents.
func openEnded(der []byte) []byte { return append([]byte{0x30, 0x80}, der[4:]...) }

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	c := signedContent
	good := signerSpec{content: c}.der(t)
	claims := newParty(t.TempDir(), attacker.key, "party 1", 1001, partner.cert.SubjectKeyId)
	if !bytes.Equal(claims.cert.RawIssuer, partner.cert.RawIssuer) || claims.cert.SerialNumber.Cmp(partner.cert.SerialNumber) != 0 {
		t.Fatal("the attacker's certificate does not claim the partner's name")
	}
	byAttacker := func(s signerSpec) signerSpec { s.by, s.content = attacker, c; return s }
	swapped := bytes.Replace(good, digestAttribute(SHA256, c), digestAttribute(SHA256, []byte("evil")), 1)
	shaSwapped := bytes.Replace(good, algorithmDER(digestOID(SHA256), nil), algorithmDER(digestOID(SHA512), nil), 1)
	flipped := bytes.Clone(good)
	flipped[len(flipped)-1] ^= 1
	spec := func(attributes ...[]byte) []byte { return signerSpec{content: c, attributes: attributes}.der(t) }
	typ, dig := typeAttribute(oidData), digestAttribute(SHA256, c)
	// The attributes of an honest signature, presented as content of one without attributes.
	honest := element1(0x31, typ, dig)
	cut := signerSpec{bare: true, content: honest}.der(t)
	tests := []struct {
		name string
		der  []byte
		want error
	}{
		{"other content", message([]byte("other"), nil, good), ErrSignature},
		{"signature flipped", message(c, nil, flipped), ErrSignature},
		{"message digest swapped", message(c, nil, swapped), ErrSignature},
		{"message digest swapped with the content", message([]byte("evil"), nil, swapped), ErrSignature},
		{"digest algorithm swapped", message(c, nil, shaSwapped), ErrSignature},
		{"digest algorithm and signature algorithm differ", message(c, nil, signerSpec{content: c, algorithm: algorithmDER("1.2.840.113549.1.1.13", nil)}.der(t)), ErrSignature},
		{"digest not announced", messageOf(oidData, []Digest{SHA1}, c, nil, good), ErrSignature},
		{"nothing announced", messageOf(oidData, nil, c, nil, good), ErrSignature},
		{"content type swapped", messageOf(oidEnvelopedData, allDigests, c, nil, good), ErrSignature},
		{"content type without attributes", messageOf(oidEnvelopedData, allDigests, c, nil, signerSpec{content: c, bare: true}.der(t)), ErrSignature},
		{"attributes cut off and presented as content", message(honest, nil, cut), ErrSignature},
		{"no signer", message(c, certs(partner)), ErrNoSigner},
		{"attacker", message(c, nil, byAttacker(signerSpec{}).der(t)), ErrNoSigner},
		{"attacker with certificate", message(c, certs(attacker), byAttacker(signerSpec{}).der(t)), ErrNoSigner},
		{"attacker claims issuer and serial", message(c, nil, byAttacker(signerSpec{sid: issuerAndSerial(partner.cert)}).der(t)), ErrSignature},
		{"attacker claims issuer and serial with certificate", message(c, certs(claims), byAttacker(signerSpec{sid: issuerAndSerial(claims.cert)}).der(t)), ErrSignature},
		{"attacker claims the key identifier", message(c, certs(claims), byAttacker(signerSpec{sid: element1(0x80, partner.cert.SubjectKeyId)}).der(t)), ErrSignature},
		{"attacker with both certificates", message(c, certs(partner, attacker), byAttacker(signerSpec{}).der(t)), ErrNoSigner},
		{"good and foreign", message(c, nil, good, byAttacker(signerSpec{}).der(t)), ErrNoSigner},
		{"foreign and good", message(c, certs(attacker), byAttacker(signerSpec{}).der(t), good), ErrNoSigner},
		{"good and bad", message(c, nil, good, flipped), ErrSignature},
		{"bad and good", message(c, nil, flipped, good), ErrSignature},
		{"the same signer twice", message(c, nil, good, good), ErrMalformed},
		{"signer inside a sequence", message(c, nil, sequence(good)), ErrMalformed},
		{"signer inside a set", message(c, nil, element1(0x31, good)), ErrMalformed},
		{"signer only in unsigned attributes", message(c, nil, byAttacker(signerSpec{unsigned: element1(0xa1, attribute("1.2.840.113549.1.9.6", good))}).der(t)), ErrNoSigner},
		{"two sets of signers", wrap(oidSignedData, sequence([]byte{2, 1, 1}, element1(0x31, algorithmDER(digestOID(SHA256), nil)),
			sequence(element1(tagOID, oidBytes(oidData)), element1(0xa0, element1(tagOctetString, c))), element1(0x31, good), element1(0x31, good))), ErrMalformed},
		{"signed data in signed data", message(message(c, nil, good), nil, good), ErrSignature},
		{"too many signers", message(c, nil, slices.Collect(func(yield func([]byte) bool) {
			for i := range DefaultMaxSigners + 1 {
				if !yield(append(bytes.Clone(good[:len(good)-1]), byte(i))) {
					return
				}
			}
		})...), ErrLimit},
		{"no message digest", message(c, nil, spec(typ)), ErrSignature},
		{"no content type", message(c, nil, spec(dig)), ErrSignature},
		{"message digest twice", message(c, nil, spec(typ, dig, dig)), ErrMalformed},
		{"content type twice", message(c, nil, spec(typ, typ, dig)), ErrMalformed},
		{"two message digests", message(c, nil, spec(typ, attribute(oidMessageDigest, element1(4, sum(SHA256, []byte("evil"))), element1(4, sum(SHA256, c))))), ErrMalformed},
		{"message digest without value", message(c, nil, spec(typ, attribute(oidMessageDigest))), ErrMalformed},
		{"empty message digest", message(c, nil, spec(typ, attribute(oidMessageDigest, []byte{4, 0}))), ErrSignature},
		{"empty attributes", message(c, nil, spec([]byte{})), ErrMalformed},
		{"md5", message(c, nil, signerSpec{content: c, digestAlg: algorithmDER("1.2.840.113549.2.5", nil)}.der(t)), ErrUnsupported},
		{"unknown signature algorithm", message(c, nil, signerSpec{content: c, algorithm: algorithmDER("1.3.101.112", nil)}.der(t)), ErrUnsupported},
		{"partner's issuer, other serial", message(c, nil, signerSpec{content: c, sid: sequence(partner.cert.RawIssuer, []byte{2, 1, 9})}.der(t)), ErrNoSigner},
		{"partner's serial, other issuer", message(c, nil, signerSpec{content: c, sid: sequence(attacker.cert.RawIssuer, []byte{2, 2, 1001 >> 8, 1001 & 0xff})}.der(t)), ErrNoSigner},
		{"other key identifier", message(c, nil, signerSpec{content: c, sid: element1(0x80, []byte("key id"))}.der(t)), ErrNoSigner},
		{"end of contents that has content", append(openEnded(message(c, nil, good)), 0, 1, 0), ErrMalformed},
		{"constructed end of contents", append(openEnded(message(c, nil, good)), 0x20, 0), ErrMalformed},
		{"length of 64 bits that reads as indefinite", append(append([]byte{0x30, 0x88}, bytes.Repeat([]byte{0xff}, 8)...), append(openEnded(message(c, nil, good))[2:], 0, 0)...), ErrMalformed},
		{"elliptic curve algorithm, RSA key", message(c, nil, signerSpec{content: c, algorithm: algorithmDER(oidECKey, nil)}.der(t)), ErrSignature},
		{"PSS without parameters", message(c, nil, signerSpec{content: c, algorithm: algorithmDER(oidPSS, nil)}.der(t)), ErrMalformed},
		{"detached where content belongs", message(nil, nil, good), ErrMalformed},
		{"enveloped data", encrypted(t, c, AES256CBC, true, own), ErrUnsupported},
		{"text", []byte("UNA:+.? 'UNB+UNOA:3"), ErrMalformed},
		{"nothing", nil, ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := verifyAttached(tt.der, partner)
			wantError(t, err, tt.want)
			if err == nil {
				return
			}
			// The same through the other door, with the content that was really signed.
			if _, err := VerifyDetached(tt.der, bytes.NewReader([]byte("never signed")), certs(partner), Policy{}); err == nil {
				t.Error("VerifyDetached takes it")
			}
		})
	}
}

func TestVerifyDetachedRefuses(t *testing.T) {
	t.Parallel()
	c := signedContent
	good := signerSpec{content: c}.der(t)
	bare := signerSpec{content: c, bare: true}.der(t)
	claims := newParty(t.TempDir(), attacker.key, "party 1", 1001, partner.cert.SubjectKeyId)
	ec := signerSpec{by: partnerEC, content: c, sid: issuerAndSerial(partner.cert)}.der(t)
	tests := []struct {
		name    string
		der     []byte
		content []byte
		trusted []*x509.Certificate
		policy  Policy
		want    error
	}{
		{"a byte more", message(nil, nil, good), append(bytes.Clone(c), 0), certs(partner), Policy{}, ErrSignature},
		{"a byte less", message(nil, nil, good), c[:len(c)-1], certs(partner), Policy{}, ErrSignature},
		{"bare, a byte less", message(nil, nil, bare), c[:len(c)-1], certs(partner), Policy{}, ErrSignature},
		{"no content", message(nil, nil, good), nil, certs(partner), Policy{}, ErrSignature},
		{"nobody trusted", message(nil, certs(partner), good), c, nil, Policy{}, ErrNoSigner},
		{"nil certificates", message(nil, certs(partner), good), c, []*x509.Certificate{nil}, Policy{}, ErrNoSigner},
		{"somebody else trusted", message(nil, certs(partner), good), c, certs(own, attacker), Policy{}, ErrNoSigner},
		{"same name trusted, other key", message(nil, certs(partner), good), c, certs(claims), Policy{}, ErrSignature},
		{"elliptic curve signature, RSA key", message(nil, nil, ec), c, certs(partner), Policy{}, ErrSignature},
		{"RSA signature, elliptic curve key", message(nil, nil, signerSpec{content: c, sid: issuerAndSerial(partnerEC.cert)}.der(t)), c, certs(partnerEC), Policy{}, ErrSignature},
		{"digest refused", message(nil, nil, good), c, certs(partner), Policy{Digests: []Digest{SHA512}}, ErrUnsupported},
		{"key too small", message(nil, nil, good), c, certs(partner), Policy{MinRSABits: 3072}, ErrUnsupported},
		{"structure too large", message(nil, certs(partner), good), c, certs(partner), Policy{MaxStructure: 500}, ErrLimit},
		{"too much behind", append(message(nil, nil, good), make([]byte, 11)...), c, certs(partner), Policy{MaxTrailing: 10}, ErrLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := VerifyDetached(tt.der, bytes.NewReader(tt.content), tt.trusted, tt.policy)
			wantError(t, err, tt.want)
		})
	}
	if _, err := VerifyDetached(message(nil, nil, good), nil, certs(partner), Policy{}); err == nil {
		t.Error("nil content is taken")
	}
	broken := errors.New("disk error")
	if _, err := VerifyDetached(message(nil, nil, good), brokenSource{broken}, certs(partner), Policy{}); !errors.Is(err, broken) || errors.Is(err, ErrSignature) {
		t.Errorf("broken source: %v", err)
	}
	if _, err := VerifyDetached(message(nil, nil, good), brokenSource{io.EOF}, certs(partner), Policy{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("short source: %v", err)
	}
}

type brokenSource struct{ err error }

func (s brokenSource) ReadAt([]byte, int64) (int, error) { return 0, s.err }
func (s brokenSource) Size() int64                       { return 10 }

// TestPSSParameters swaps what RSASSA-PSS declares.
func TestPSSParameters(t *testing.T) {
	t.Parallel()
	c := signedContent
	context := func(n byte, value []byte) []byte { return element1(0xa0|n, value) }
	params := func(hash, mask Digest, salt byte) []byte {
		return algorithmDER(oidPSS, sequence(context(0, algorithmDER(digestOID(hash), nil)),
			context(1, algorithmDER(oidMGF1, algorithmDER(digestOID(mask), nil))), context(2, []byte{2, 1, salt})))
	}
	tests := []struct {
		algorithm []byte
		want      error
	}{
		{params(SHA256, SHA256, 32), nil},
		{params(SHA256, SHA256, 20), ErrSignature},
		{params(SHA256, SHA256, 0), ErrUnsupported},
		{params(SHA256, SHA1, 32), ErrUnsupported},
		{params(SHA512, SHA512, 32), ErrSignature},
		{params(SHA256, SHA256, 0xff), ErrMalformed},
		{algorithmDER(oidPSS, sequence()), ErrSignature},
	}
	for i, tt := range tests {
		attributes := [][]byte{typeAttribute(oidData), digestAttribute(SHA256, c)}
		signature, err := partner.key.Sign(rand.Reader, sum(SHA256, element1(0x31, attributes...)), &rsa.PSSOptions{SaltLength: 32, Hash: crypto.SHA256})
		if err != nil {
			t.Fatal(err)
		}
		si := sequence([]byte{2, 1, 1}, issuerAndSerial(partner.cert), algorithmDER(digestOID(SHA256), nil), element1(0xa0, attributes...),
			tt.algorithm, element1(tagOctetString, signature))
		if _, err := VerifyDetached(message(nil, nil, si), bytes.NewReader(c), certs(partner), Policy{}); !errors.Is(err, tt.want) {
			t.Errorf("case %d: %v, want %v", i, err, tt.want)
		}
	}
}

// counted counts the private key operations.
type counted struct {
	crypto.Decrypter
	n *int
}

func (c counted) Decrypt(r io.Reader, b []byte, opts crypto.DecrypterOpts) ([]byte, error) {
	*c.n++
	return c.Decrypter.Decrypt(r, b, opts)
}

// envelope builds an EnvelopedData by hand.
func envelope(recipients []byte, alg, content []byte) []byte {
	return wrap(oidEnvelopedData, sequence([]byte{2, 1, 0}, recipients,
		sequence(element1(tagOID, oidBytes(oidData)), alg, content)))
}

// TestDecryptOneAnswer checks that whatever is wrong behind the recipients gives the bare
// ErrDecryption, after one use of the private key and with the whole content decrypted where the
// structure let it.
func TestDecryptOneAnswer(t *testing.T) {
	t.Parallel()
	key, iv := bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{9}, 16)
	aes256 := algorithmDER("2.16.840.1.101.3.4.1.42", element1(tagOctetString, iv))
	recipients := func(key []byte) []byte {
		der, err := recipientInfos(certs(own), key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	transport := func(alg, encrypted []byte) []byte {
		return element1(0x31, sequence([]byte{2, 1, 0}, issuerAndSerial(own.cert), alg, element1(tagOctetString, encrypted)))
	}
	// block encrypts one block of text and a last block with this end.
	blocks := func(end ...byte) []byte {
		plain := append(bytes.Repeat([]byte{'A'}, 32-len(end)), end...)
		b, err := newBlock(AES256CBC, key)
		if err != nil {
			t.Fatal(err)
		}
		cipher.NewCBCEncrypter(b, iv).CryptBlocks(plain, plain)
		return element1(0x80, plain)
	}
	oaep := func(hash string) []byte {
		return algorithmDER(oidOAEP, sequence(element1(0xa0, algorithmDER(hash, nil))))
	}
	noise := bytes.Repeat([]byte{0x5a}, 256)
	tests := []struct {
		name  string
		der   []byte
		whole bool // the content is decrypted to its end
		// A random key is used and nobody can know, so the end may look right by chance.
		chance bool
	}{
		{"pad 0", envelope(recipients(key), aes256, blocks(0)), true, false},
		{"pad 17", envelope(recipients(key), aes256, blocks(bytes.Repeat([]byte{17}, 17)...)), true, false},
		{"pad 255", envelope(recipients(key), aes256, blocks(255)), true, false},
		{"pad 2, other byte wrong", envelope(recipients(key), aes256, blocks(1, 2)), true, false},
		{"pad 16, first byte wrong", envelope(recipients(key), aes256, blocks(append([]byte{15}, bytes.Repeat([]byte{16}, 15)...)...)), true, false},
		{"key of 16 bytes", envelope(recipients(key[:16]), aes256, blocks(1)), true, true},
		{"key of 24 bytes", envelope(recipients(key[:24]), aes256, blocks(1)), true, true},
		{"empty key", envelope(recipients(nil), aes256, blocks(1)), true, true},
		{"other key", envelope(recipients(bytes.Repeat([]byte{8}, 32)), aes256, blocks(bytes.Repeat([]byte{3}, 3)...)), true, false},
		{"PKCS #1 padding broken", envelope(transport(algorithmDER(oidRSA, []byte{5, 0}), noise), aes256, blocks(1)), true, true},
		{"encrypted key too short", envelope(transport(algorithmDER(oidRSA, nil), noise[:100]), aes256, blocks(1)), true, true},
		{"encrypted key too long", envelope(transport(algorithmDER(oidRSA, nil), append([]byte{1}, noise...)), aes256, blocks(1)), true, true},
		{"encrypted key empty", envelope(transport(algorithmDER(oidRSA, nil), nil), aes256, blocks(1)), true, true},
		{"encrypted key above the modulus", envelope(transport(algorithmDER(oidRSA, nil), bytes.Repeat([]byte{0xff}, 256)), aes256, blocks(1)), true, true},
		{"OAEP broken", envelope(transport(oaep("1.3.14.3.2.26"), noise), aes256, blocks(1)), true, false},
		{"OAEP with an unknown hash", envelope(transport(oaep("1.2.840.113549.2.5"), noise), aes256, blocks(1)), true, false},
		{"unknown key transport", envelope(transport(algorithmDER("1.2.3.4", nil), noise), aes256, blocks(1)), true, false},
		{"no whole block", envelope(recipients(key), aes256, element1(0x80, make([]byte, 33))), false, false},
		{"no block", envelope(recipients(key), aes256, element1(0x80)), false, false},
		{"no content", envelope(recipients(key), aes256, nil), false, false},
		{"unknown cipher", envelope(recipients(key), algorithmDER("1.2.840.113549.3.2", element1(4, iv)), blocks(1)), false, false},
		{"vector too short", envelope(recipients(key), algorithmDER("2.16.840.1.101.3.4.1.42", element1(4, iv[:8])), blocks(1)), false, false},
		{"no vector", envelope(recipients(key), algorithmDER("2.16.840.1.101.3.4.1.42", nil), blocks(1)), false, false},
		{"element behind the content", envelope(recipients(key), aes256, append(blocks(1), 5, 0)), false, false},
		{"truncated", envelope(recipients(key), aes256, blocks(1))[:420], false, false},
		{"broken recipient behind ours", envelope(element1(0x31, recipients(key)[4:], []byte{0x30, 1, 0}), aes256, blocks(1)), false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var uses int
			var out counter
			var err error
			// The random key that stands in for one behind broken PKCS #1 padding makes good padding
			// once in 256 times, so those cases may be tried again.
			for range 5 {
				uses, out.n = 0, 0
				k := Recipient{Certificate: own.cert, Key: counted{own.key.(crypto.Decrypter), &uses}}
				if _, err = Decrypt(bytes.NewReader(tt.der), &out, []Recipient{k}, Policy{}); err != nil || !tt.chance {
					break
				}
			}
			if err != ErrDecryption { //nolint:errorlint // The bare value is what is promised.
				t.Errorf("error %v", err)
			}
			if tt.whole && out.n < 16 {
				t.Errorf("only %d bytes were decrypted", out.n)
			}
			if uses > 1 {
				t.Errorf("%d uses of the private key", uses)
			}
		})
	}
	// Where it is known that there is no key, chance must not help: 1000 random keys would.
	mute := Recipient{Certificate: own.cert, Key: muteKey{}}
	for name, alg := range map[string][]byte{
		"unknown transport": algorithmDER("1.2.3.4", nil), "unknown hash": oaep("1.2.840.113549.2.5"), "key fails": oaep("1.3.14.3.2.26"),
	} {
		der := envelope(transport(alg, noise), aes256, blocks(1))
		for range 1000 {
			if _, err := Decrypt(bytes.NewReader(der), io.Discard, []Recipient{mute}, Policy{}); err != ErrDecryption { //nolint:errorlint // The bare value is what is promised.
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	// The same builders with nothing wrong, or the cases above would prove nothing.
	for _, pad := range []int{1, 15, 16} {
		var out counter
		der := envelope(recipients(key), aes256, blocks(bytes.Repeat([]byte{byte(pad)}, pad)...))
		if _, err := Decrypt(bytes.NewReader(der), &out, []Recipient{own.recipient()}, Policy{}); err != nil || out.n != int64(32-pad) {
			t.Errorf("pad %d: %d bytes, %v", pad, out.n, err)
		}
	}
}

// muteKey opens nothing.
type muteKey struct{}

func (muteKey) Public() crypto.PublicKey { return nil }

func (muteKey) Decrypt(io.Reader, []byte, crypto.DecrypterOpts) ([]byte, error) {
	return nil, rsa.ErrDecryption
}

func TestDecryptRefuses(t *testing.T) {
	t.Parallel()
	good := encrypted(t, sample(1000), AES256CBC, false, own)
	broken := errors.New("disk full")
	keys := []Recipient{own.recipient()}
	decrypt := func(r io.Reader, w io.Writer, keys []Recipient, p Policy) error {
		_, err := Decrypt(r, w, keys, p)
		return err
	}
	tests := []struct {
		name string
		err  error
		want error
	}{
		{"no key", decrypt(bytes.NewReader(good), io.Discard, nil, Policy{}), ErrDecryption},
		{"other key", decrypt(bytes.NewReader(good), io.Discard, []Recipient{attacker.recipient(), {}}, Policy{}), ErrDecryption},
		{"cipher refused", decrypt(bytes.NewReader(good), io.Discard, keys, Policy{Ciphers: []Cipher{AES128CBC}}), ErrDecryption},
		{"too much content", decrypt(bytes.NewReader(good), io.Discard, keys, Policy{MaxDecoded: 900}), ErrLimit},
		{"too many recipients", decrypt(bytes.NewReader(encrypted(t, nil, AES256CBC, true, own, partner)), io.Discard, keys, Policy{MaxRecipients: 1}), ErrLimit},
		{"too deep", decrypt(bytes.NewReader(good), io.Discard, keys, Policy{MaxDepth: 2}), ErrLimit},
		{"broken source", decrypt(io.MultiReader(bytes.NewReader(good[:700]), failing{broken}), io.Discard, keys, Policy{}), broken},
		{"broken sink", decrypt(bytes.NewReader(good), failing{broken}, keys, Policy{}), broken},
		{"signed data", decrypt(bytes.NewReader(message(nil, nil)), io.Discard, keys, Policy{}), ErrUnsupported},
		{"text", decrypt(bytes.NewReader([]byte("Content-Type: text/plain")), io.Discard, keys, Policy{}), ErrMalformed},
	}
	for _, tt := range tests {
		wantError(t, tt.err, tt.want)
		if errors.Is(tt.want, ErrDecryption) && tt.err != ErrDecryption { //nolint:errorlint // The bare value is what is promised.
			t.Errorf("%s: %v is not bare", tt.name, tt.err)
		}
	}
}

func TestVerifyAttachedLimit(t *testing.T) {
	t.Parallel()
	c := signedContent
	der := message(c, nil, signerSpec{content: c}.der(t))
	var out counter
	_, err := VerifyAttached(bytes.NewReader(der), &out, certs(partner), Policy{MaxDecoded: int64(len(c)) - 1})
	wantError(t, err, ErrLimit)
	if _, err := VerifyAttached(bytes.NewReader(der), &out, certs(partner), Policy{MaxDecoded: int64(len(c))}); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	broken := errors.New("disk full")
	_, err = VerifyAttached(bytes.NewReader(der), failing{broken}, certs(partner), Policy{})
	wantError(t, err, broken)
}

func TestTrailing(t *testing.T) {
	t.Parallel()
	der := append(encrypted(t, sample(100), AES256CBC, true, own), "\r\n"...)
	if _, info := decrypted(t, der, Policy{}, own.recipient()); info.Trailing != 2 {
		t.Errorf("enveloped: %+v", info)
	}
	c := signedContent
	info, err := verifyAttached(append(message(c, nil, signerSpec{content: c}.der(t)), "\r\n\r\n"...), partner)
	if err != nil || info.Trailing != 4 {
		t.Errorf("signed: %v, %+v", err, info)
	}
}

// TestTruncated cuts messages at every byte. None may be taken, none may panic.
func TestTruncated(t *testing.T) {
	t.Parallel()
	c := signedContent
	si := signerSpec{content: c}.der(t)
	attached, detached := message(c, certs(partner), si), message(nil, certs(partner), si)
	for _, der := range [][]byte{attached, indefinite(t, attached)} {
		for i := range der {
			if _, err := verifyAttached(der[:i], partner); !errors.Is(err, ErrMalformed) {
				t.Fatalf("attached, cut at %d of %d: %v", i, len(der), err)
			}
		}
	}
	for _, der := range [][]byte{detached, indefinite(t, detached)} {
		for i := range der {
			if _, err := VerifyDetached(der[:i], bytes.NewReader(c), certs(partner), Policy{}); !errors.Is(err, ErrMalformed) {
				t.Fatalf("detached, cut at %d of %d: %v", i, len(der), err)
			}
		}
	}
	for _, definite := range []bool{true, false} {
		der := encrypted(t, sample(50), AES256CBC, definite, own)
		for i := range der {
			_, err := Decrypt(bytes.NewReader(der[:i]), io.Discard, []Recipient{own.recipient()}, Policy{})
			if !errors.Is(err, ErrMalformed) && err != ErrDecryption { //nolint:errorlint // The bare value is what is promised.
				t.Fatalf("enveloped, cut at %d of %d: %v", i, len(der), err)
			}
		}
	}
}

// TestFlipped changes every byte of messages. Errors must be among those that are promised, and
// what is taken must still be the partner's word on this very content.
func TestFlipped(t *testing.T) {
	t.Parallel()
	promised := func(err error) bool {
		return errors.Is(err, ErrSignature) || errors.Is(err, ErrNoSigner) || errors.Is(err, ErrUnsupported) || errors.Is(err, ErrMalformed) || errors.Is(err, ErrLimit)
	}
	c := signedContent
	der := message(c, nil, signerSpec{content: c}.der(t))
	for i := range der {
		for _, mask := range []byte{0x01, 0x20, 0x80, 0xff} {
			der[i] ^= mask
			var out bytes.Buffer
			info, err := VerifyAttached(bytes.NewReader(der), &out, certs(own, partner), Policy{})
			if err != nil && !promised(err) {
				t.Errorf("byte %d ^ %#x: %v", i, mask, err)
			}
			if err == nil && (!bytes.Equal(out.Bytes(), c) || len(info.Signers) != 1 || info.Signers[0].Certificate != partner.cert) {
				t.Errorf("byte %d ^ %#x is taken: %q, %+v", i, mask, out.Bytes(), info)
			}
			der[i] ^= mask
		}
	}
	env := encrypted(t, sample(50), AES256CBC, true, own)
	sealed := bytes.Index(env, oidBytes(oidRSA))  // From here on everything is behind our recipient.
	wrapped := sealed + len(oidBytes(oidRSA)) + 6 // The RSA block; every 16th byte of it will do.
	for i := range env {
		if i > wrapped && i < wrapped+256 && i%16 != 0 {
			continue
		}
		env[i] ^= 0x01
		_, err := Decrypt(bytes.NewReader(env), io.Discard, []Recipient{own.recipient()}, Policy{})
		switch {
		case err == nil || err == ErrDecryption: //nolint:errorlint // The bare value is what is promised.
		case i < sealed && promised(err):
		case errors.Is(err, ErrMalformed) && i < bytes.Index(env, oidBytes(oidData)):
			// A recipient that cannot be read is not known to be ours yet.
		default:
			t.Errorf("byte %d: %v", i, err)
		}
		env[i] ^= 0x01
	}
}

func TestHostileStructures(t *testing.T) {
	t.Parallel()
	start := func(dotted string) []byte {
		return append(append([]byte{0x30, 0x80}, element1(tagOID, oidBytes(dotted))...), 0xa0, 0x80, 0x30, 0x80)
	}
	deep := bytes.Repeat([]byte{0x30, 0x80}, 1<<20)
	deepStrings := bytes.Repeat([]byte{0x24, 0x80}, 1<<20)
	signed := append(start(oidSignedData), 2, 1, 1)
	withContent := append(append(append(bytes.Clone(signed), 0x31, 0, 0x30, 0x80), element1(tagOID, oidBytes(oidData))...), 0xa0, 0x80)
	tests := []struct {
		name string
		der  []byte
		want error
	}{
		{"nothing but nesting", deep, ErrMalformed},
		{"nested digest algorithms", append(append(bytes.Clone(signed), 0x31, 0x80), deep...), ErrLimit},
		{"nested content", append(bytes.Clone(withContent), deepStrings...), ErrLimit},
		{"length of 127 octets", append(bytes.Clone(signed), 0x31, 0xff), ErrMalformed},
		{"length of nine octets", append(bytes.Clone(signed), 0x31, 0x89, 1, 0, 0, 0, 0, 0, 0, 0, 0), ErrMalformed},
		{"length of 64 bits", append(bytes.Clone(signed), 0x31, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), ErrMalformed},
		{"length of 63 bits, structure", append(bytes.Clone(signed), 0x31, 0x80, 4, 0x88, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), ErrMalformed},
		{"length of 62 bits, structure", append(bytes.Clone(signed), 0x31, 0x80, 4, 0x88, 0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), ErrLimit},
		{"length of 62 bits, content", append(bytes.Clone(withContent), 4, 0x88, 0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), ErrMalformed},
		{"element longer than its container", append(bytes.Clone(signed), 0x31, 2, 0x30, 1), ErrMalformed},
		{"header across the end of its container", append(bytes.Clone(signed), 0x31, 1, 0x30, 0, 0), ErrMalformed},
		{"primitive of indefinite length", append(bytes.Clone(withContent), 4, 0x80), ErrMalformed},
		{"stray end-of-contents", append(bytes.Clone(signed), 0x31, 2, 0, 0), ErrMalformed},
		{"end-of-contents with content", append(bytes.Clone(signed), 0, 1, 0), ErrMalformed},
		{"segment that is no string", append(bytes.Clone(withContent), 0x24, 0x80, 0x0c, 1, 'x'), ErrMalformed},
		{"huge tag number", append(bytes.Clone(signed), 0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0), ErrMalformed},
		{"a million empty digest algorithms", append(append(bytes.Clone(signed), 0x31, 0x80), bytes.Repeat(sequence(element1(tagOID, oidBytes(oidData))), 1<<18)...), ErrLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := verifyAttached(tt.der, partner)
			wantError(t, err, tt.want)
			if _, err := VerifyDetached(tt.der, bytes.NewReader(nil), certs(partner), Policy{}); err == nil {
				t.Error("VerifyDetached takes it")
			}
		})
	}
	envelopeStart := append(start(oidEnvelopedData), 2, 1, 0)
	for name, der := range map[string][]byte{
		"nested originator": append(append(bytes.Clone(envelopeStart), 0xa0, 0x80), deep...),
		"nested recipient":  append(append(bytes.Clone(envelopeStart), 0x31, 0x80), deep...),
	} {
		_, err := Decrypt(bytes.NewReader(der), io.Discard, []Recipient{own.recipient()}, Policy{})
		if !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestManySegments feeds content in the smallest segments, one byte and empty ones: the work must
// stay in proportion to the bytes.
func TestManySegments(t *testing.T) {
	t.Parallel()
	c := bytes.Repeat([]byte("x"), 100_000)
	var segments []byte
	for _, b := range c {
		segments = append(segments, 4, 1, b, 4, 0, 0x24, 0x80, 0, 0)
	}
	inner := append(append([]byte{0x24, 0x80}, segments...), 0, 0)
	der := wrap(oidSignedData, sequence([]byte{2, 1, 1}, element1(0x31, algorithmDER(digestOID(SHA256), nil)),
		sequence(element1(tagOID, oidBytes(oidData)), element1(0xa0, inner)), element1(0x31, signerSpec{content: c}.der(t))))
	var out bytes.Buffer
	if _, err := VerifyAttached(bytes.NewReader(der), &out, certs(partner), Policy{}); err != nil || !bytes.Equal(out.Bytes(), c) {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}

// TestOneByteReads gives the reader one byte at a time, so that every boundary is crossed.
func TestOneByteReads(t *testing.T) {
	t.Parallel()
	content := sample(500)
	var out bytes.Buffer
	if _, err := Decrypt(slow{bytes.NewReader(encrypted(t, content, AES256CBC, false, own))}, &out, []Recipient{own.recipient()}, Policy{}); err != nil || !bytes.Equal(out.Bytes(), content) {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}

type slow struct{ io.Reader }

func (s slow) Read(p []byte) (int, error) { return s.Reader.Read(p[:min(1, len(p))]) }
