package cms

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des" //nolint:gosec // G502: partners still send Triple DES; Policy.Ciphers decides.
	"crypto/rand"
	"crypto/rsa"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// Decrypt reads an EnvelopedData in a ContentInfo (RFC 5652 §6; BER or DER, definite or indefinite
// lengths) from r to its end and streams the plaintext to w, with one of keys. The plaintext must
// not be used unless the error is nil: until the last byte was read it may be random bytes.
//
// Errors: ErrMalformed, ErrUnsupported or ErrLimit before the recipients were read; from then on
// the bare ErrDecryption for whatever goes wrong, with two exceptions that depend on nothing
// secret: ErrLimit, which measures what is in clear (length of the ciphertext, nesting, number of
// recipients), and an error of r or w, wrapped. Therefore w must be a plain sink such as a file: a
// writer that judges the plaintext as it comes would give its judgement away.
//
// Timing: after the recipients, the work depends on the length and the outer structure of the
// message only, which its sender knows. A content key that does not unwrap is replaced by a random
// one, made beforehand, and the whole content is decrypted with it (RFC 3218 §2.3.2); the padding
// is looked at once, in constant time, after everything else; both failures meet in one place.
// Without a recipient of ours no key is used at all: whom a message names is in clear.
// Bad padding is no error of its own anywhere, and w gets one write in both cases.
func Decrypt(r io.Reader, w io.Writer, keys []Recipient, p Policy) (EnvelopeInfo, error) {
	p = p.withDefaults()
	var info EnvelopeInfo
	br := newBERReader(r, p)
	if err := openContentInfo(br, oidEnvelopedData); err != nil {
		return info, fmt.Errorf("enveloped data: %w", err)
	}
	if err := skipToRecipients(br); err != nil {
		return info, fmt.Errorf("enveloped data: %w", err)
	}
	transport, err := readRecipients(br, keys, p, &info)
	if err == nil && transport == nil {
		err = ErrDecryption
	}
	if err == nil {
		err = decryptContent(br, w, transport, p, &info)
	}
	return info, oneAnswer(err)
}

// oneAnswer hides what went wrong with an encrypted message.
func oneAnswer(err error) error {
	var outside *ioError
	if err == nil || errors.As(err, &outside) || errors.Is(err, ErrLimit) {
		return err
	}
	return ErrDecryption
}

// openContentInfo steps into the content of a ContentInfo of the wanted type (RFC 5652 §3), which
// leaves the reader inside three frames: ContentInfo, [0], and the content's SEQUENCE.
func openContentInfo(br *berReader, wanted string) error {
	if err := br.open(classUniversal, tagSequence, "ContentInfo"); err != nil {
		return err
	}
	typ, err := captureOID(br, "content type")
	if err != nil {
		return err
	}
	if typ != wanted {
		return fmt.Errorf("content type %s: %w", typ, ErrUnsupported)
	}
	if err := br.open(classContext, 0, "content"); err != nil {
		return err
	}
	return br.open(classUniversal, tagSequence, "content structure")
}

// closeContentInfo leaves the frames of openContentInfo and counts what follows.
func closeContentInfo(br *berReader, p Policy) (trailing int64, err error) {
	for range 3 {
		if err := br.leave(); err != nil {
			return 0, err
		}
	}
	return br.trailing(p.MaxTrailing)
}

func captureOID(br *berReader, what string) (string, error) {
	e, err := br.want(classUniversal, tagOID, what)
	if err != nil {
		return "", err
	}
	b, err := br.capture(e)
	if err != nil {
		return "", err
	}
	s := cryptobyte.String(b)
	o, ok := readOID(&s)
	if !ok {
		return "", br.malformed("bad object identifier of " + what)
	}
	return o, nil
}

func captureAlgorithm(br *berReader, what string) (algorithm, error) {
	e, err := br.want(classUniversal, tagSequence, what)
	if err != nil {
		return algorithm{}, err
	}
	b, err := br.capture(e)
	if err != nil {
		return algorithm{}, err
	}
	s := cryptobyte.String(b)
	a, ok := readAlgorithm(&s)
	if !ok {
		return a, br.malformed("bad " + what)
	}
	return a, nil
}

// skipToRecipients passes the version and the originatorInfo, and enters the recipientInfos.
func skipToRecipients(br *berReader) error {
	e, err := br.want(classUniversal, 2, "version")
	if err != nil {
		return err
	}
	if err := br.skip(e); err != nil {
		return err
	}
	e, more, err := br.next()
	if err != nil {
		return err
	}
	if more && e.is(classContext, 0) {
		if err := br.skip(e); err != nil {
			return err
		}
		e, more, err = br.next()
		if err != nil {
			return err
		}
	}
	if !more || !e.is(classUniversal, tagSet) {
		return br.malformed("no recipientInfos")
	}
	return br.enter(e)
}

// keyTransport is a wrapped content key and the key of ours that opens it.
type keyTransport struct {
	key       crypto.Decrypter
	encrypted []byte
	oaep      *rsa.OAEPOptions // nil: PKCS #1 v1.5
	failed    bool             // no key can come or came of it; looked at when all is done
}

// readRecipients looks through the RecipientInfos to their end and returns the first that one of
// keys can open, or nil.
func readRecipients(br *berReader, keys []Recipient, p Policy, info *EnvelopeInfo) (*keyTransport, error) {
	var found *keyTransport
	for {
		e, more, err := br.next()
		if err != nil || !more {
			return found, err
		}
		if info.Recipients++; info.Recipients > p.MaxRecipients {
			return nil, br.beyond("number of recipients", int64(p.MaxRecipients))
		}
		if found != nil || !e.is(classUniversal, tagSequence) {
			// Key agreement, passwords and the like are [1] to [4] (RFC 5652 §6.2).
			if err := br.skip(e); err != nil {
				return nil, err
			}
			continue
		}
		der, err := br.capture(e)
		if err != nil {
			return nil, err
		}
		id, alg, encrypted, ok := parseKeyTransport(der)
		if !ok {
			return nil, br.malformed("bad KeyTransRecipientInfo")
		}
		for _, k := range keys {
			if k.Certificate == nil || k.Key == nil || !id.matches(k.Certificate) {
				continue
			}
			info.Recipient = k.Certificate
			found = newKeyTransport(k.Key, alg, encrypted, info)
			break
		}
	}
}

// parseKeyTransport reads a KeyTransRecipientInfo (RFC 5652 §6.2.1).
func parseKeyTransport(der []byte) (id certID, alg algorithm, encrypted []byte, ok bool) {
	s := cryptobyte.String(der)
	var seq, key cryptobyte.String
	if !s.ReadASN1(&seq, cbasn1.SEQUENCE) || !seq.SkipASN1(cbasn1.INTEGER) {
		return id, alg, nil, false
	}
	if id, ok = readCertID(&seq); !ok {
		return id, alg, nil, false
	}
	if alg, ok = readAlgorithm(&seq); !ok {
		return id, alg, nil, false
	}
	ok = seq.ReadASN1(&key, cbasn1.OCTET_STRING) && seq.Empty()
	return id, alg, key, ok
}

func newKeyTransport(key crypto.Decrypter, alg algorithm, encrypted []byte, info *EnvelopeInfo) *keyTransport {
	t := &keyTransport{key: key, encrypted: encrypted}
	info.KeyTransport = alg.oid
	switch alg.oid {
	case oidRSA:
		// The parameters ought to be NULL (RFC 3370 §4.2.1); what else stands there is of no use.
		info.KeyTransport = "rsa-pkcs1v15"
	case oidOAEP:
		info.KeyTransport = "rsa-oaep"
		opts, ok := parseOAEP(alg.params)
		t.oaep, t.failed = opts, !ok
	default:
		t.failed = true
	}
	return t
}

// parseOAEP reads RSAES-OAEP-params (RFC 4055 §4.1). The hash and the hash of the mask function
// are independent: Java and OpenSSL make SHA-256 with a mask of SHA-1.
func parseOAEP(params cryptobyte.String) (*rsa.OAEPOptions, bool) {
	opts := &rsa.OAEPOptions{Hash: crypto.SHA1, MGFHash: crypto.SHA1}
	if (algorithm{params: params}).noParams() {
		return opts, true
	}
	var seq, field cryptobyte.String
	var present bool
	if !params.ReadASN1(&seq, cbasn1.SEQUENCE) || !params.Empty() {
		return nil, false
	}
	context := func(n uint8) cbasn1.Tag { return cbasn1.Tag(n).ContextSpecific().Constructed() }
	if !seq.ReadOptionalASN1(&field, &present, context(0)) {
		return nil, false
	}
	if present {
		a, ok := readAlgorithm(&field)
		if opts.Hash = oaepHashes[a.oid]; !ok || opts.Hash == 0 {
			return nil, false
		}
	}
	if !seq.ReadOptionalASN1(&field, &present, context(1)) {
		return nil, false
	}
	if present {
		mgf, ok := readAlgorithm(&field)
		if !ok || mgf.oid != oidMGF1 {
			return nil, false
		}
		a, ok := readAlgorithm(&mgf.params)
		if opts.MGFHash = oaepHashes[a.oid]; !ok || opts.MGFHash == 0 {
			return nil, false
		}
	}
	if !seq.ReadOptionalASN1(&field, &present, context(2)) {
		return nil, false
	}
	if present {
		source, ok := readAlgorithm(&field)
		var label cryptobyte.String
		if !ok || source.oid != oidPSpecified || !source.params.ReadASN1(&label, cbasn1.OCTET_STRING) {
			return nil, false
		}
		opts.Label = label
	}
	return opts, seq.Empty()
}

// unwrap returns a content key of n bytes. Whatever goes wrong, it returns a random key and says
// nothing. For PKCS #1 v1.5 an *rsa.PrivateKey itself selects between the two in constant time
// (rsa.DecryptPKCS1v15SessionKey); for OAEP it compares in constant time and gives one error,
// which takes the same path on. The random key is made in every case, before the private key is
// used.
func (t *keyTransport) unwrap(n int) []byte {
	random := make([]byte, n)
	_, _ = rand.Read(random) // Never fails: crypto/rand ends the process instead.
	if t.failed {
		return random
	}
	var opts crypto.DecrypterOpts = &rsa.PKCS1v15DecryptOptions{SessionKeyLen: n} //nolint:staticcheck // SA1019: what partners send; the length makes it safe, see above.
	if t.oaep != nil {
		opts = t.oaep
	}
	key, err := t.key.Decrypt(rand.Reader, t.encrypted, opts)
	if err != nil || len(key) != n {
		// A random key would pass the padding check once in 256 times; this one must not.
		t.failed = true
		return random
	}
	return key
}

// decryptContent reads the EncryptedContentInfo and what follows it (RFC 5652 §6.1).
func decryptContent(br *berReader, w io.Writer, t *keyTransport, p Policy, info *EnvelopeInfo) error {
	if err := br.open(classUniversal, tagSequence, "encryptedContentInfo"); err != nil {
		return err
	}
	var err error
	if info.ContentType, err = captureOID(br, "encrypted content type"); err != nil {
		return err
	}
	alg, err := captureAlgorithm(br, "contentEncryptionAlgorithm")
	if err != nil {
		return err
	}
	// An unknown cipher may end here: its name is in clear and says nothing about the key.
	d, err := newDecrypter(alg, t, p, info)
	if err != nil {
		return err
	}
	d.w = w
	e, err := br.want(classContext, 0, "encrypted content")
	if err != nil {
		return err
	}
	limit := p.MaxDecoded + int64(d.mode.BlockSize())
	err = br.octets(e, func(b []byte) error {
		if d.read += int64(len(b)); d.read > limit {
			return br.beyond("content", p.MaxDecoded)
		}
		return d.write(b)
	})
	if err != nil {
		return err
	}
	if err := br.leave(); err != nil {
		return err
	}
	if info.Trailing, err = finishEnvelope(br, p); err != nil {
		return err
	}
	good, err := d.finish()
	if err != nil {
		return err
	}
	if good != 1 || t.failed {
		return ErrDecryption
	}
	info.Bytes = d.written
	return nil
}

// finishEnvelope passes the unprotected attributes and leaves the envelope.
func finishEnvelope(br *berReader, p Policy) (int64, error) {
	e, more, err := br.next()
	if err != nil {
		return 0, err
	}
	if more {
		if !e.is(classContext, 1) {
			return 0, br.malformed("an element behind the encrypted content")
		}
		if err := br.skip(e); err != nil {
			return 0, err
		}
		if err := br.leave(); err != nil {
			return 0, err
		}
	}
	// The EnvelopedData is left already; [0] and ContentInfo remain.
	for range 2 {
		if err := br.leave(); err != nil {
			return 0, err
		}
	}
	return br.trailing(p.MaxTrailing)
}

// cbcDecrypter decrypts a stream in CBC mode and strips the padding (RFC 5652 §6.3) at its end.
type cbcDecrypter struct {
	mode    cipher.BlockMode
	w       io.Writer
	buf     []byte // ciphertext; the last block always waits here until the end is known
	n       int
	read    int64
	written int64
}

func newDecrypter(alg algorithm, t *keyTransport, p Policy, info *EnvelopeInfo) (*cbcDecrypter, error) {
	info.Algorithm = alg.oid
	for _, spec := range cipherSpecs {
		if spec.oid != alg.oid {
			continue
		}
		info.Cipher = spec.cipher
		var iv cryptobyte.String
		if !p.allowsCipher(spec.cipher) {
			return nil, fmt.Errorf("cipher %s: %w", spec.cipher, ErrUnsupported)
		}
		if !alg.params.ReadASN1(&iv, cbasn1.OCTET_STRING) || len(iv) != spec.ivLength {
			return nil, fmt.Errorf("initialisation vector: %w", ErrMalformed)
		}
		block, err := newBlock(spec.cipher, t.unwrap(spec.keyBytes))
		if err != nil {
			return nil, err
		}
		return &cbcDecrypter{mode: cipher.NewCBCDecrypter(block, iv), buf: make([]byte, bufferSize)}, nil
	}
	return nil, fmt.Errorf("content cipher %s: %w", alg.oid, ErrUnsupported)
}

func newBlock(c Cipher, key []byte) (cipher.Block, error) {
	if c == TripleDES {
		return des.NewTripleDESCipher(key) //nolint:gosec // G405: see the import.
	}
	return aes.NewCipher(key)
}

func (d *cbcDecrypter) write(p []byte) error {
	for len(p) > 0 {
		if d.n == len(d.buf) {
			// More follows, so this is not the end, and the buffer is whole blocks.
			d.mode.CryptBlocks(d.buf, d.buf)
			if err := d.emit(d.buf); err != nil {
				return err
			}
			d.n = 0
		}
		k := copy(d.buf[d.n:], p)
		d.n += k
		p = p[k:]
	}
	return nil
}

// finish decrypts what is left and returns 1 if length and padding are right, else 0. The padding
// takes the same steps whatever its bytes are; on failure the last block is not written.
func (d *cbcDecrypter) finish() (good int, err error) {
	size := d.mode.BlockSize()
	whole := d.n - d.n%size
	if whole == 0 || whole != d.n {
		// The length is the sender's own and no secret.
		return 0, nil
	}
	rest := d.buf[:whole]
	d.mode.CryptBlocks(rest, rest)
	last := rest[whole-size:]
	pad := int(last[size-1])
	good = subtle.ConstantTimeLessOrEq(1, pad) & subtle.ConstantTimeLessOrEq(pad, size)
	for i := range size {
		// Byte i from the end must equal pad where i < pad.
		inside := subtle.ConstantTimeLessOrEq(i+1, pad)
		equal := subtle.ConstantTimeByteEq(last[size-1-i], byte(pad)) //nolint:gosec // G115: it was read from one octet.
		good &= equal | (1 ^ inside)
	}
	keep := subtle.ConstantTimeSelect(good, size-pad, 0)
	return good, d.emit(rest[:whole-size+keep])
}

func (d *cbcDecrypter) emit(b []byte) error {
	n, err := d.w.Write(b)
	d.written += int64(n)
	if err != nil {
		return &ioError{fmt.Errorf("write the plaintext: %w", err)}
	}
	return nil
}
