package cms

import (
	"bytes"
	"crypto"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"testing"
)

// The fuzzers use fixed keys, because each of their processes makes its own seeds: a corpus must
// mean the same in all of them.

// fixedKey unwraps whatever it is given to the first bytes of a fixed key.
type fixedKey struct{}

func (fixedKey) Public() crypto.PublicKey { return nil }

func (fixedKey) Decrypt(_ io.Reader, encrypted []byte, _ crypto.DecrypterOpts) ([]byte, error) {
	if len(encrypted) > 32 {
		return nil, errors.New("not the right length")
	}
	return bytes.Repeat([]byte{7}, len(encrypted)), nil
}

func fixedSigner(tb testing.TB) party {
	tb.Helper()
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{1}, 32))
	if err != nil {
		tb.Fatal(err)
	}
	return party{key: key, cert: &x509.Certificate{
		PublicKey: key.Public(), SubjectKeyId: []byte("key id"), SerialNumber: big.NewInt(5), RawIssuer: sequence(),
	}}
}

func FuzzDecrypt(f *testing.F) {
	iv := bytes.Repeat([]byte{9}, 16)
	for i, spec := range cipherSpecs {
		block, err := newBlock(spec.cipher, bytes.Repeat([]byte{7}, spec.keyBytes))
		if err != nil {
			f.Fatal(err)
		}
		var content bytes.Buffer
		d := &cbcEncrypter{w: &content, mode: cipher.NewCBCEncrypter(block, iv[:spec.ivLength]), buf: make([]byte, bufferSize)}
		if err := d.content(bytes.NewReader(sample(40)), 40); err != nil {
			f.Fatal(err)
		}
		transport := algorithmDER(oidRSA, []byte{5, 0})
		if i%2 == 1 {
			transport = algorithmDER(oidOAEP, sequence(element1(0xa0, algorithmDER(digestOID(SHA256), nil)),
				element1(0xa1, algorithmDER(oidMGF1, algorithmDER(digestOID(SHA1), nil)))))
		}
		der := envelope(element1(0x31, sequence([]byte{2, 1, 2}, element1(0x80, []byte("key id")), transport, element1(tagOctetString, make([]byte, spec.keyBytes)))),
			algorithmDER(spec.oid, element1(tagOctetString, iv[:spec.ivLength])), element1(0x80, content.Bytes()))
		if _, err := Decrypt(bytes.NewReader(der), io.Discard, []Recipient{{&x509.Certificate{SubjectKeyId: []byte("key id")}, fixedKey{}}}, Policy{}); err != nil {
			f.Fatal("a seed is wrong: ", err)
		}
		f.Add(der)
		f.Add(indefinite(f, der))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		var out bytes.Buffer
		keys := []Recipient{{&x509.Certificate{SubjectKeyId: []byte("key id")}, fixedKey{}}}
		info, err := Decrypt(bytes.NewReader(message), &out, keys, Policy{MaxDecoded: 1 << 20})
		switch {
		case err == nil:
			if info.Recipient == nil || info.Cipher == "" || info.Bytes != int64(out.Len()) {
				t.Errorf("%d bytes, info = %+v", out.Len(), info)
			}
		case err == ErrDecryption: //nolint:errorlint // The bare value is what is promised.
		case info.Recipient != nil && !errors.Is(err, ErrLimit):
			t.Errorf("behind our recipient: %v", err)
		case !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrLimit):
			t.Errorf("unpromised error %v", err)
		}
	})
}

// addSignatures adds seeds and returns the trusted certificate.
func addSignatures(f *testing.F, content []byte) []*x509.Certificate {
	signer := fixedSigner(f)
	algorithm := algorithmDER("1.2.840.10045.4.3.2", nil)
	for _, spec := range []signerSpec{{}, {bare: true}, {sid: element1(0x80, []byte("key id"))}} {
		spec.by, spec.content, spec.algorithm = signer, signedContent, algorithm
		if spec.sid == nil {
			spec.sid = sequence(sequence(), []byte{2, 1, 5})
		}
		si := spec.der(f)
		der := message(content, nil, si)
		if _, err := VerifyDetached(der, bytes.NewReader(signedContent), certs(signer), Policy{}); err != nil {
			f.Fatal("a seed is wrong: ", err)
		}
		f.Add(der)
		f.Add(indefinite(f, der))
		f.Add(message(content, nil, si, si))
	}
	return certs(signer)
}

func checkFuzzed(t *testing.T, info SignatureInfo, err error, trusted []*x509.Certificate, content []byte) {
	t.Helper()
	if err != nil {
		if !errors.Is(err, ErrSignature) && !errors.Is(err, ErrNoSigner) && !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrLimit) {
			t.Errorf("unpromised error %v", err)
		}
		return
	}
	// Nothing but this content was ever signed with the key.
	if len(info.Signers) == 0 || !bytes.Equal(content, signedContent) {
		t.Errorf("taken: %q, %+v", content, info)
	}
	for _, s := range info.Signers {
		if s.Certificate != trusted[0] || !bytes.Equal(s.ContentDigest, sum(s.Digest, content)) {
			t.Errorf("signer %+v", s)
		}
	}
}

func FuzzVerifyDetached(f *testing.F) {
	trusted := addSignatures(f, nil)
	f.Fuzz(func(t *testing.T, sig []byte) {
		info, err := VerifyDetached(sig, bytes.NewReader(signedContent), trusted, Policy{})
		checkFuzzed(t, info, err, trusted, signedContent)
		info, err = VerifyDetached(sig, bytes.NewReader([]byte("never signed")), trusted, Policy{})
		checkFuzzed(t, info, err, trusted, []byte("never signed"))
	})
}

func FuzzVerifyAttached(f *testing.F) {
	trusted := addSignatures(f, signedContent)
	f.Fuzz(func(t *testing.T, message []byte) {
		var out bytes.Buffer
		info, err := VerifyAttached(bytes.NewReader(message), &out, trusted, Policy{})
		checkFuzzed(t, info, err, trusted, out.Bytes())
	})
}
