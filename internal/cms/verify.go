package cms

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/edihub/edihub/internal/edi"
)

// maxCertificates is how many embedded certificates are looked at. They only help to select
// among the trusted ones, so what is beyond does no harm.
const maxCertificates = 32

// VerifyDetached verifies a SignedData (RFC 5652 §5; BER or DER) over content, all of it. There
// must be at least one SignerInfo, and every SignerInfo must verify with one of certs. Only these
// are trusted, as they are: no chain, no validity period and no key usage is looked at. Embedded
// certificates only help to find the one of certs with the same key, where a partner renewed a
// certificate but kept its key.
//
// Errors: ErrNoSigner, ErrSignature, ErrUnsupported, ErrMalformed, ErrLimit, and those of content,
// wrapped.
func VerifyDetached(sig []byte, content edi.Source, certs []*x509.Certificate, p Policy) (SignatureInfo, error) {
	p = p.withDefaults()
	var info SignatureInfo
	if content == nil {
		return info, errors.New("verify: no content")
	}
	sd := &signedData{policy: p, info: &info}
	// A copy of the content inside the signature proves nothing about the content beside it, so
	// it is passed over.
	if err := sd.read(newBERBytes(sig, p), func() func([]byte) error { return discard }); err != nil {
		return info, fmt.Errorf("verify: %w", err)
	}
	wanted := make([]Digest, 0, len(sd.signers))
	for i := range sd.signers {
		wanted = append(wanted, sd.signers[i].digest)
	}
	d := newDigester(wanted)
	r := io.NewSectionReader(content, 0, content.Size())
	buf := make([]byte, min(bufferSize, max(content.Size(), 1)))
	for end := false; !end; {
		var n int
		var err error
		if n, end, err = readFull(r, buf); err != nil {
			return info, fmt.Errorf("verify: %w", err)
		}
		d.write(buf[:n])
	}
	if d.total != content.Size() {
		return info, fmt.Errorf("verify: content ends at byte %d of %d: %w", d.total, content.Size(), io.ErrUnexpectedEOF)
	}
	if err := sd.verify(d, certs); err != nil {
		return info, fmt.Errorf("verify: %w", err)
	}
	return info, nil
}

// VerifyAttached reads a SignedData from r to its end, streams the content that it holds to w and
// verifies it as VerifyDetached does. What was written to w must not be used unless the error is
// nil. The digests are computed on the way, so each signer's digest must be announced in
// digestAlgorithms (RFC 5652 §5.1).
func VerifyAttached(r io.Reader, w io.Writer, certs []*x509.Certificate, p Policy) (SignatureInfo, error) {
	p = p.withDefaults()
	var info SignatureInfo
	br := newBERReader(r, p)
	sd := &signedData{policy: p, info: &info}
	var d *digester
	err := sd.read(br, func() func([]byte) error {
		d = newDigester(sd.announced)
		return func(b []byte) error {
			if d.total+int64(len(b)) > p.MaxDecoded {
				return br.beyond("content", p.MaxDecoded)
			}
			d.write(b)
			if _, err := w.Write(b); err != nil {
				return &ioError{fmt.Errorf("write the content: %w", err)}
			}
			return nil
		}
	})
	if err != nil {
		return info, fmt.Errorf("verify: %w", err)
	}
	if d == nil {
		return info, fmt.Errorf("verify: %w: the signature holds no content", ErrMalformed)
	}
	if err := sd.verify(d, certs); err != nil {
		return info, fmt.Errorf("verify: %w", err)
	}
	return info, nil
}

// signedData is what is kept of a SignedData.
type signedData struct {
	policy       Policy
	info         *SignatureInfo
	announced    []Digest
	certificates [][]byte
	signers      []signerInfo
}

// signerInfo is a SignerInfo (RFC 5652 §5.3), not yet verified.
type signerInfo struct {
	der        []byte
	id         certID
	digestOID  string
	digest     Digest // "" if unknown
	attributes []byte // content of signedAttrs; nil if absent
	algorithm  algorithm
	signature  []byte
}

// read parses the structure. content is called once the digest algorithms are known, and only if
// there is content; it returns where the content goes.
func (sd *signedData) read(br *berReader, content func() func([]byte) error) error {
	if err := openContentInfo(br, oidSignedData); err != nil {
		return err
	}
	e, err := br.want(classUniversal, 2, "version")
	if err != nil {
		return err
	}
	if err := br.skip(e); err != nil {
		return err
	}
	if err := sd.readDigestAlgorithms(br); err != nil {
		return err
	}
	if err := br.open(classUniversal, tagSequence, "encapContentInfo"); err != nil {
		return err
	}
	if sd.info.ContentType, err = captureOID(br, "encapsulated content type"); err != nil {
		return err
	}
	e, more, err := br.next()
	if err != nil {
		return err
	}
	if more {
		if err := readEncapsulated(br, e, content()); err != nil {
			return err
		}
	}
	if err := sd.readCertificates(br); err != nil {
		return err
	}
	if sd.info.Trailing, err = closeContentInfo(br, sd.policy); err != nil {
		return err
	}
	if len(sd.signers) == 0 {
		return fmt.Errorf("%w: there is no signer", ErrNoSigner)
	}
	sd.info.Digest = sd.signers[0].digest
	return nil
}

func (sd *signedData) readDigestAlgorithms(br *berReader) error {
	if err := br.open(classUniversal, tagSet, "digestAlgorithms"); err != nil {
		return err
	}
	for {
		e, more, err := br.next()
		if err != nil || !more {
			return err
		}
		der, err := br.capture(e)
		if err != nil {
			return err
		}
		s := cryptobyte.String(der)
		a, ok := readAlgorithm(&s)
		if !ok {
			return br.malformed("bad digestAlgorithm")
		}
		if d, known := digestOIDs[a.oid]; known && !slices.Contains(sd.announced, d) {
			sd.announced = append(sd.announced, d)
		}
	}
}

// readEncapsulated reads eContent ([0] EXPLICIT OCTET STRING) and leaves encapContentInfo.
func readEncapsulated(br *berReader, e element, sink func([]byte) error) error {
	if !e.is(classContext, 0) {
		return br.malformed("an element behind the content type")
	}
	if err := br.enter(e); err != nil {
		return err
	}
	inner, err := br.want(classUniversal, tagOctetString, "content")
	if err != nil {
		return err
	}
	if err := br.octets(inner, sink); err != nil {
		return err
	}
	if err := br.leave(); err != nil {
		return err
	}
	return br.leave()
}

// readCertificates reads certificates and signerInfos and passes over revocation lists.
func (sd *signedData) readCertificates(br *berReader) error {
	for {
		e, more, err := br.next()
		switch {
		case err != nil:
			return err
		case more && e.is(classContext, 0):
			err = sd.readCertificateSet(br, e)
		case more && e.is(classContext, 1):
			err = br.skip(e)
		case more && e.is(classUniversal, tagSet):
			return sd.readSigners(br, e)
		default:
			err = br.malformed("no signerInfos")
		}
		if err != nil {
			return err
		}
	}
}

func (sd *signedData) readCertificateSet(br *berReader, set element) error {
	if err := br.enter(set); err != nil {
		return err
	}
	for {
		e, more, err := br.next()
		if err != nil || !more {
			return err
		}
		if !e.is(classUniversal, tagSequence) || len(sd.certificates) == maxCertificates {
			err = br.skip(e)
		} else {
			var der []byte
			der, err = br.capture(e)
			sd.certificates = append(sd.certificates, der)
		}
		if err != nil {
			return err
		}
	}
}

func (sd *signedData) readSigners(br *berReader, set element) error {
	if err := br.enter(set); err != nil {
		return err
	}
	for {
		e, more, err := br.next()
		if err != nil || !more {
			return err
		}
		if len(sd.signers) == sd.policy.MaxSigners {
			return br.beyond("number of signers", int64(sd.policy.MaxSigners))
		}
		der, err := br.capture(e)
		if err != nil {
			return err
		}
		si, ok := parseSignerInfo(der)
		if !ok {
			return br.malformed("bad SignerInfo")
		}
		// A SET holds each value once: who repeats a signer wants it counted twice.
		for i := range sd.signers {
			if bytes.Equal(sd.signers[i].der, der) {
				return br.malformed("a repeated SignerInfo")
			}
		}
		sd.signers = append(sd.signers, si)
	}
}

func parseSignerInfo(der []byte) (si signerInfo, ok bool) {
	si.der = der
	s := cryptobyte.String(der)
	var seq, attributes, signature cryptobyte.String
	if !s.ReadASN1(&seq, cbasn1.SEQUENCE) || !seq.SkipASN1(cbasn1.INTEGER) {
		return si, false
	}
	if si.id, ok = readCertID(&seq); !ok {
		return si, false
	}
	a, ok := readAlgorithm(&seq)
	if !ok {
		return si, false
	}
	si.digestOID, si.digest = a.oid, digestOIDs[a.oid]
	constructed := func(n uint8) cbasn1.Tag { return cbasn1.Tag(n).ContextSpecific().Constructed() }
	var present bool
	if !seq.ReadOptionalASN1(&attributes, &present, constructed(0)) {
		return si, false
	}
	if present {
		if attributes.Empty() {
			// RFC 5652 §5.3: there must be at least one.
			return si, false
		}
		si.attributes = attributes
	}
	if si.algorithm, ok = readAlgorithm(&seq); !ok || !seq.ReadASN1(&signature, cbasn1.OCTET_STRING) {
		return si, false
	}
	si.signature = signature
	// Unsigned attributes prove nothing.
	return si, seq.SkipOptionalASN1(constructed(1)) && seq.Empty()
}

// digester hashes content with several digests at once and remembers how it starts.
type digester struct {
	digests []Digest
	hashes  []hash.Hash
	sums    [][]byte
	prefix  []byte
	total   int64
}

func newDigester(wanted []Digest) *digester {
	d := &digester{prefix: make([]byte, 0, 64)}
	for _, w := range wanted {
		if w.Hash() != 0 && !slices.Contains(d.digests, w) {
			d.digests = append(d.digests, w)
			d.hashes = append(d.hashes, w.Hash().New())
		}
	}
	return d
}

func (d *digester) write(b []byte) {
	for _, h := range d.hashes {
		h.Write(b)
	}
	if free := cap(d.prefix) - len(d.prefix); free > 0 {
		d.prefix = append(d.prefix, b[:min(free, len(b))]...)
	}
	d.total += int64(len(b))
}

// sum returns the digest of the content, or nil if it was not computed.
func (d *digester) sum(w Digest) []byte {
	if d.sums == nil {
		for _, h := range d.hashes {
			d.sums = append(d.sums, h.Sum(nil))
		}
	}
	if i := slices.Index(d.digests, w); i >= 0 {
		return d.sums[i]
	}
	return nil
}

// verify checks every signer.
func (sd *signedData) verify(d *digester, certs []*x509.Certificate) error {
	sd.info.Bytes = d.total
	for i := range sd.signers {
		details, err := sd.verifySigner(&sd.signers[i], d, certs)
		sd.info.Signers = append(sd.info.Signers, details)
		if err != nil {
			return fmt.Errorf("signer %d of %d: %w", i+1, len(sd.signers), err)
		}
	}
	return nil
}

func (sd *signedData) verifySigner(si *signerInfo, d *digester, certs []*x509.Certificate) (SignerDetails, error) {
	details := SignerDetails{Digest: si.digest}
	if si.digest == "" || !sd.policy.allowsDigest(si.digest) {
		return details, fmt.Errorf("digest %s: %w", si.digestOID, ErrUnsupported)
	}
	candidates := sd.candidates(si.id, certs)
	if len(candidates) == 0 {
		return details, ErrNoSigner
	}
	if details.ContentDigest = d.sum(si.digest); details.ContentDigest == nil {
		return details, fmt.Errorf("%w: digest %s was not announced", ErrSignature, si.digest)
	}
	signed := [][]byte{details.ContentDigest}
	if si.attributes != nil {
		sorted, received, err := sd.checkAttributes(si, &details)
		if err != nil {
			return details, err
		}
		signed = [][]byte{sum(si.digest, sorted)}
		if !bytes.Equal(sorted, received) {
			// Some products sign the attributes in the order they write them. It is the same set.
			signed = append(signed, sum(si.digest, received))
		}
	} else if err := sd.checkBare(d); err != nil {
		return details, err
	}
	err := ErrNoSigner
	for _, c := range candidates {
		for _, digest := range signed {
			if details.Algorithm, err = verifySignature(c, si, digest, sd.policy); err == nil {
				details.Certificate = c
				return details, nil
			}
		}
	}
	return details, err
}

// candidates returns the trusted certificates that a SignerInfo may mean.
func (sd *signedData) candidates(id certID, certs []*x509.Certificate) []*x509.Certificate {
	var found []*x509.Certificate
	for _, c := range certs {
		if c != nil && id.matches(c) {
			found = append(found, c)
		}
	}
	if len(found) > 0 {
		return found
	}
	for _, der := range sd.certificates {
		embedded, err := x509.ParseCertificate(der)
		if err != nil || !id.matches(embedded) {
			continue
		}
		for _, c := range certs {
			if c != nil && sameKey(c, embedded) && !slices.Contains(found, c) {
				found = append(found, c)
			}
		}
	}
	return found
}

// checkBare guards a signature without signed attributes. It is only allowed over id-data
// (RFC 5652 §5.3), and never over the attributes of another signature: who cuts the attributes
// off and presents them as content would own a valid signature over content nobody signed.
func (sd *signedData) checkBare(d *digester) error {
	if sd.info.ContentType != oidData {
		return fmt.Errorf("%w: content type %s without signed attributes", ErrSignature, sd.info.ContentType)
	}
	if len(d.prefix) > 0 && d.prefix[0] == 0x31 && bytes.Contains(d.prefix, []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x09")) {
		return fmt.Errorf("%w: the content is a set of signed attributes", ErrSignature)
	}
	return nil
}

// checkAttributes checks content-type and message-digest (RFC 5652 §5.3, §11.1, §11.2) and
// returns the attributes as SET OF, in the order of DER and as received.
func (sd *signedData) checkAttributes(si *signerInfo, details *SignerDetails) (sorted, received []byte, err error) {
	s := cryptobyte.String(si.attributes)
	seen := make(map[string]bool, 8)
	var all [][]byte
	for !s.Empty() {
		var whole, attribute, values, value cryptobyte.String
		var tag cbasn1.Tag
		if !s.ReadASN1Element(&whole, cbasn1.SEQUENCE) {
			return nil, nil, fmt.Errorf("%w: bad signed attribute", ErrMalformed)
		}
		all = append(all, whole)
		if !whole.ReadASN1(&attribute, cbasn1.SEQUENCE) {
			return nil, nil, fmt.Errorf("%w: bad signed attribute", ErrMalformed)
		}
		name, ok := readOID(&attribute)
		if !ok || !attribute.ReadASN1(&values, cbasn1.SET) || !attribute.Empty() {
			return nil, nil, fmt.Errorf("%w: bad signed attribute", ErrMalformed)
		}
		if name != oidContentType && name != oidMessageDigest && name != oidSigningTime {
			continue
		}
		if seen[name] || !values.ReadAnyASN1Element(&value, &tag) || !values.Empty() {
			return nil, nil, fmt.Errorf("%w: signed attribute %s must be there once with one value", ErrMalformed, name)
		}
		seen[name] = true
		if err := sd.checkAttribute(name, value, details); err != nil {
			return nil, nil, err
		}
	}
	if !seen[oidContentType] || !seen[oidMessageDigest] {
		return nil, nil, fmt.Errorf("%w: no content-type or no message-digest among the signed attributes", ErrSignature)
	}
	return setOf(0x31, all), element1(0x31, si.attributes), nil
}

func (sd *signedData) checkAttribute(name string, value cryptobyte.String, details *SignerDetails) error {
	switch name {
	case oidContentType:
		typ, ok := readOID(&value)
		if !ok {
			return fmt.Errorf("%w: bad content-type attribute", ErrMalformed)
		}
		if typ != sd.info.ContentType {
			return fmt.Errorf("%w: signed as content type %s, presented as %s", ErrSignature, typ, sd.info.ContentType)
		}
	case oidMessageDigest:
		var digest cryptobyte.String
		if !value.ReadASN1(&digest, cbasn1.OCTET_STRING) {
			return fmt.Errorf("%w: bad message-digest attribute", ErrMalformed)
		}
		if !bytes.Equal(digest, details.ContentDigest) {
			return fmt.Errorf("%w: the message digest differs", ErrSignature)
		}
	case oidSigningTime:
		// It is only reported, so a time that cannot be read is no reason to refuse.
		details.SigningTime = readTime(value)
	}
	return nil
}

func readTime(s cryptobyte.String) time.Time {
	var t time.Time
	ok := false
	switch {
	case s.PeekASN1Tag(cbasn1.UTCTime):
		ok = s.ReadASN1UTCTime(&t)
	case s.PeekASN1Tag(cbasn1.GeneralizedTime):
		ok = s.ReadASN1GeneralizedTime(&t)
	}
	if !ok {
		return time.Time{}
	}
	return t.UTC()
}

func sum(d Digest, b []byte) []byte {
	h := d.Hash().New()
	h.Write(b)
	return h.Sum(nil)
}

// verifySignature verifies one signature value with the key of one certificate. The algorithm may
// be given as that of the key alone, as key and digest, or, as some products do, as the digest
// alone; whatever digest it names must be the signer's digest, so that neither can be swapped.
func verifySignature(c *x509.Certificate, si *signerInfo, digest []byte, p Policy) (scheme string, err error) {
	a := si.algorithm
	named, known := signatureOIDs[a.oid]
	if d, bare := digestOIDs[a.oid]; bare {
		named.digest, known = d, true
	}
	switch {
	case known && named.digest != si.digest:
		return "", fmt.Errorf("%w: signature algorithm and digest algorithm name different digests", ErrSignature)
	case !known && a.oid != oidRSA && a.oid != oidPSS && a.oid != oidECKey:
		return "", fmt.Errorf("signature algorithm %s: %w", a.oid, ErrUnsupported)
	}
	switch key := c.PublicKey.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < p.MinRSABits {
			return "", fmt.Errorf("RSA key of %d bits, at least %d are wanted: %w", key.N.BitLen(), p.MinRSABits, ErrUnsupported)
		}
		return verifyRSA(key, si, digest, named.scheme)
	case *ecdsa.PublicKey:
		if a.oid == oidRSA || a.oid == oidPSS || named.scheme == schemePKCS1 {
			return schemeECDSA, fmt.Errorf("%w: an RSA algorithm with an elliptic curve key", ErrSignature)
		}
		if !ecdsa.VerifyASN1(key, digest, si.signature) {
			return schemeECDSA, ErrSignature
		}
		return schemeECDSA, nil
	default:
		return "", fmt.Errorf("key of type %T: %w", key, ErrUnsupported)
	}
}

func verifyRSA(key *rsa.PublicKey, si *signerInfo, digest []byte, scheme string) (string, error) {
	switch {
	case si.algorithm.oid == oidPSS:
		opts, err := parsePSS(si.algorithm.params, si.digest)
		if err != nil {
			return schemePSS, err
		}
		if rsa.VerifyPSS(key, opts.Hash, digest, si.signature, opts) != nil {
			return schemePSS, ErrSignature
		}
		return schemePSS, nil
	case si.algorithm.oid == oidECKey || scheme == schemeECDSA:
		return schemePKCS1, fmt.Errorf("%w: an elliptic curve algorithm with an RSA key", ErrSignature)
	}
	if rsa.VerifyPKCS1v15(key, si.digest.Hash(), digest, si.signature) != nil {
		return schemePKCS1, ErrSignature
	}
	return schemePKCS1, nil
}

// parsePSS reads RSASSA-PSS-params (RFC 4055 §3.1). The hash must be the signer's digest; the
// mask function must use the same one, which is all that crypto/rsa can do.
func parsePSS(params cryptobyte.String, want Digest) (*rsa.PSSOptions, error) {
	bad := fmt.Errorf("%w: bad RSASSA-PSS parameters", ErrMalformed)
	hashed, masked, salt := SHA1, SHA1, 20
	var seq, field cryptobyte.String
	var present bool
	context := func(n uint8) cbasn1.Tag { return cbasn1.Tag(n).ContextSpecific().Constructed() }
	if !params.ReadASN1(&seq, cbasn1.SEQUENCE) || !params.Empty() {
		return nil, bad
	}
	if !seq.ReadOptionalASN1(&field, &present, context(0)) {
		return nil, bad
	}
	if present {
		a, ok := readAlgorithm(&field)
		if !ok {
			return nil, bad
		}
		hashed = digestOIDs[a.oid]
	}
	if !seq.ReadOptionalASN1(&field, &present, context(1)) {
		return nil, bad
	}
	if present {
		mgf, ok := readAlgorithm(&field)
		a, inner := readAlgorithm(&mgf.params)
		if !ok || !inner || mgf.oid != oidMGF1 {
			return nil, bad
		}
		masked = digestOIDs[a.oid]
	}
	if !seq.ReadOptionalASN1(&field, &present, context(2)) {
		return nil, bad
	}
	if present && (!field.ReadASN1Integer(&salt) || salt < 0) {
		return nil, bad
	}
	if hashed != want {
		return nil, fmt.Errorf("%w: RSASSA-PSS and the digest algorithm name different digests", ErrSignature)
	}
	if masked != hashed {
		return nil, fmt.Errorf("RSASSA-PSS with a mask of another digest: %w", ErrUnsupported)
	}
	if salt == 0 {
		// Zero means "find out" to crypto/rsa; a salt is part of what the signer declares.
		return nil, fmt.Errorf("RSASSA-PSS without salt: %w", ErrUnsupported)
	}
	return &rsa.PSSOptions{SaltLength: salt, Hash: want.Hash()}, nil
}
