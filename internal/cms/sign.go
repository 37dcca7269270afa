package cms

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/crypto/cryptobyte"
)

// SignDetached reads content to its end and returns a SignedData in a ContentInfo, in DER, that
// does not hold it (RFC 5652 §5, RFC 8551 §3.5.3). The signed attributes are content-type,
// message-digest, signing-time (at, to the second) and SMIMECapabilities.
// Errors: ErrUnsupported for a key or digest that is not ours; those of content and key, wrapped.
func SignDetached(content io.Reader, s Signer, at time.Time) ([]byte, error) {
	s, err := s.check()
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	h := s.Digest.Hash().New()
	buf := make([]byte, bufferSize)
	for end := false; !end; {
		var n int
		if n, end, err = readFull(content, buf); err != nil {
			return nil, fmt.Errorf("sign: %w", err)
		}
		h.Write(buf[:n])
	}
	info, err := s.info(h.Sum(nil), at)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	tail := s.tail(info)
	return sequence(element1(tagOID, oidBytes(oidSignedData)), element1(0xa0, sequence(
		s.head(), sequence(element1(tagOID, oidBytes(oidData))), tail))), nil
}

// SignAttached reads content and writes a SignedData that holds it (application/pkcs7-mime with
// smime-type=signed-data). With size >= 0, content must give exactly that many bytes, and with
// an RSA key the output has definite lengths; otherwise it has indefinite ones. What was written
// before an error is of no use.
func SignAttached(w io.Writer, content io.Reader, size int64, s Signer, at time.Time) error {
	s, err := s.check()
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	if err := s.attached(w, content, size, at); err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	return nil
}

func (s Signer) attached(w io.Writer, content io.Reader, size int64, at time.Time) error {
	h := s.Digest.Hash().New()
	head := &nested{indefinite: size < 0}
	var tailLength int64
	if public, ok := s.Key.Public().(*rsa.PublicKey); ok && size >= 0 {
		// The length of an RSA signature is known before it is made.
		attributes := s.attributes(make([]byte, h.Size()), at)
		tailLength = int64(len(s.tail(s.assemble(attributes, make([]byte, public.Size())))))
	} else {
		head.indefinite = true
	}
	head.add(0x30, element1(tagOID, oidBytes(oidSignedData)))
	head.add(0xa0, nil)
	head.add(0x30, s.head())
	head.add(0x30, element1(tagOID, oidBytes(oidData)))
	head.add(0xa0, nil)
	if err := writeAll(w, head.bytes(contentTag(tagOctetString, head.indefinite), size, 0, 0, tailLength)); err != nil {
		return err
	}
	buf := make([]byte, bufferSize)
	var total int64
	for end := false; !end; {
		var n int
		var err error
		if n, end, err = readFull(content, buf); err != nil {
			return err
		}
		total += int64(n)
		if err := checkSize(total, size, end); err != nil {
			return err
		}
		h.Write(buf[:n])
		if head.indefinite && n > 0 {
			if err := writeAll(w, appendLength([]byte{tagOctetString}, int64(n))); err != nil {
				return err
			}
		}
		if err := writeAll(w, buf[:n]); err != nil {
			return err
		}
	}
	info, err := s.info(h.Sum(nil), at)
	if err != nil {
		return err
	}
	tail := s.tail(info)
	if head.indefinite {
		// Octet string, [0] and EncapsulatedContentInfo end here; the rest behind the signers.
		closing := bytes.Repeat([]byte(endOfContents), 3)
		tail = append(append(closing, tail...), closing...)
	}
	return writeAll(w, tail)
}

func writeAll(w io.Writer, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("write the message: %w", err)
	}
	return nil
}

// check completes the signer and refuses one that cannot sign.
func (s Signer) check() (Signer, error) {
	if s.Certificate == nil || s.Key == nil {
		return s, errors.New("no certificate or no key")
	}
	if s.Digest == "" {
		s.Digest = SHA256
	}
	if s.Digest.Hash() == 0 {
		return s, fmt.Errorf("digest %q: %w", s.Digest, ErrUnsupported)
	}
	switch key := s.Key.Public().(type) {
	case *rsa.PublicKey:
		if !key.Equal(s.Certificate.PublicKey) {
			return s, errors.New("the key does not belong to the certificate")
		}
	case *ecdsa.PublicKey:
		if !key.Equal(s.Certificate.PublicKey) {
			return s, errors.New("the key does not belong to the certificate")
		}
	default:
		return s, fmt.Errorf("signing key of type %T: %w", key, ErrUnsupported)
	}
	return s, nil
}

// head is the start of SignedData: version 1 and digestAlgorithms. The parameters of a digest are
// absent (RFC 5754 §2).
func (s Signer) head() []byte {
	return append([]byte{2, 1, 1}, element1(0x31, s.digestAlgorithm())...)
}

func (s Signer) digestAlgorithm() []byte { return algorithmDER(digestOID(s.Digest), nil) }

// tail is the rest of SignedData behind the content: certificates and the one SignerInfo.
func (s Signer) tail(info []byte) []byte {
	certs := [][]byte{s.Certificate.Raw}
	for _, c := range s.Chain {
		if c != nil && !slices.ContainsFunc(certs, func(b []byte) bool { return bytes.Equal(b, c.Raw) }) {
			certs = append(certs, c.Raw)
		}
	}
	return append(setOf(0xa0, certs), element1(0x31, info)...)
}

// info makes the SignerInfo (RFC 5652 §5.3) for content with this digest.
func (s Signer) info(contentDigest []byte, at time.Time) ([]byte, error) {
	attributes := s.attributes(contentDigest, at)
	h := s.Digest.Hash().New()
	h.Write(element1(0x31, attributes)) // RFC 5652 §5.4: signed under the tag of SET OF.
	signature, err := s.Key.Sign(rand.Reader, h.Sum(nil), crypto.SignerOpts(s.Digest.Hash()))
	if err != nil {
		return nil, fmt.Errorf("use the signing key: %w", err)
	}
	return s.assemble(attributes, signature), nil
}

func (s Signer) assemble(attributes, signature []byte) []byte {
	// rsaEncryption rather than sha256WithRSAEncryption: old products know only this one
	// (RFC 3370 §3.2).
	signing := algorithmDER(oidRSA, []byte{5, 0})
	if _, ok := s.Key.Public().(*ecdsa.PublicKey); ok {
		for o, a := range signatureOIDs {
			if a.scheme == schemeECDSA && a.digest == s.Digest {
				signing = algorithmDER(o, nil)
			}
		}
	}
	return sequence([]byte{2, 1, 1}, issuerAndSerial(s.Certificate), s.digestAlgorithm(),
		element1(0xa0, attributes), signing, element1(tagOctetString, signature))
}

// attributes returns the signed attributes in the order of DER, without an outer header.
func (s Signer) attributes(contentDigest []byte, at time.Time) []byte {
	attribute := func(dotted string, value []byte) []byte {
		return sequence(element1(tagOID, oidBytes(dotted)), element1(0x31, value))
	}
	var capabilities [][]byte // RFC 8551 §2.5.2, best first.
	for _, spec := range cipherSpecs {
		capabilities = append(capabilities, algorithmDER(spec.oid, nil))
	}
	return bytes.Join(sortedSet([][]byte{
		attribute(oidContentType, element1(tagOID, oidBytes(oidData))),
		attribute(oidSigningTime, timeDER(at)),
		attribute(oidMessageDigest, element1(tagOctetString, contentDigest)),
		attribute(oidSMIMECapability, sequence(capabilities...)),
	}), nil)
}

// sortedSet returns the elements in the order of DER, without touching the slice.
func sortedSet(elements [][]byte) [][]byte {
	sorted := slices.Clone(elements)
	slices.SortFunc(sorted, bytes.Compare)
	return sorted
}

// timeDER writes a Time: UTCTime up to 2049, then GeneralizedTime (RFC 5652 §11.3).
func timeDER(at time.Time) []byte {
	at = at.UTC().Truncate(time.Second)
	var b cryptobyte.Builder
	if at.Year() >= 1950 && at.Year() < 2050 {
		b.AddASN1UTCTime(at)
	} else {
		b.AddASN1GeneralizedTime(at)
	}
	out, err := b.Bytes()
	if err != nil {
		// Years beyond four digits cannot be written; the zero of UTCTime stands in for them.
		return element1(23, []byte("700101000000Z"))
	}
	return out
}

// sameKey reports whether both hold the same public key.
func sameKey(a, b *x509.Certificate) bool {
	return len(a.RawSubjectPublicKeyInfo) > 0 && bytes.Equal(a.RawSubjectPublicKeyInfo, b.RawSubjectPublicKeyInfo)
}
