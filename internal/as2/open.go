package as2

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/edi"
)

// Inbound is a message as it arrived.
type Inbound struct {
	Headers Headers
	Body    edi.Source // the body of the request, after its transfer coding
}

// OpenOptions say with what a message is opened and what is demanded of it. Only the certificates
// of the partner's record are trusted; those inside a message are not.
type OpenOptions struct {
	Decrypt          []cms.Recipient     // our keys that are valid now
	Verify           []*x509.Certificate // the partner's certificates that are valid now
	RequireSigned    bool
	RequireEncrypted bool
	Policy           cms.Policy
	Limits           Limits
	Scratch          edi.NewScratch // where decrypted content goes; nil: memory
}

// Opened is a message that was accepted. Close gives back its scratch space.
type Opened struct {
	// Payload is the content of the one file that the message carries. Where the message is
	// signed it is the body of exactly the bytes that the signature covers.
	Payload     edi.Source
	ContentType string // as it stands, of the payload
	Filename    Filename
	Signed      bool
	Encrypted   bool
	SignerCert  *x509.Certificate // of the partner's record; nil if not signed
	Digest      cms.Digest        // of the signature; empty if not signed
	Cipher      cms.Cipher        // empty if not encrypted
	MIC         string            // base64, RFC 4130 §7.3.1
	MICAlg      string            // as the sender spells it
	Notes       []string          // leniencies that were needed, for the log

	scratch []edi.Scratch
}

// Close removes the scratch space; the Payload cannot be read afterwards.
func (o *Opened) Close() error {
	var errs []error
	for _, s := range o.scratch {
		errs = append(errs, s.Close())
	}
	o.scratch = nil
	return errors.Join(errs...)
}

// Open undoes encryption and signature and finds the payload. The layers that AS2 knows are
// encrypted over signed over one file, each of the first two optional (RFC 4130 §4); everything
// else is refused. An error that is a *Refusal is the sender's fault and goes into the MDN; any
// other error is ours and says nothing about the message.
//
// Compressed content (RFC 5402) is refused as an unsupported format.
func Open(in Inbound, o OpenOptions) (*Opened, error) {
	if in.Headers.WantsMDN() {
		if r := in.Headers.Options.Refusal(); r != nil {
			return nil, r
		}
	}
	if o.Scratch == nil {
		o.Scratch = newMemory
	}
	op := &opener{o: o, limits: o.Limits.withDefaults(), opened: &Opened{}}
	err := op.entity(in.Headers.MIME, in.Body, in.Body)
	if err == nil {
		err = op.mic(in.Headers.Options)
	}
	if err != nil {
		err = errors.Join(err, op.opened.Close())
		var r *Refusal
		if errors.As(err, &r) {
			return nil, r
		}
		return nil, fmt.Errorf("open AS2 message: %w", err)
	}
	return op.opened, nil
}

type opener struct {
	o       OpenOptions
	limits  Limits
	opened  *Opened
	depth   int
	covered edi.Source // what the MIC is computed over
}

// refusal hides what is wrong inside an encrypted message until a signature vouches for it.
func (op *opener) refusal(r *Refusal) error {
	if op.opened.Encrypted && !op.opened.Signed {
		return errEncrypted(r)
	}
	return r
}

// mimeError turns an error of the MIME reader into a refusal; a failed read stays an error of ours.
func (op *opener) mimeError(err error) error {
	switch {
	case errors.Is(err, errMIMELimit):
		return op.refusal(refuse(UnexpectedProcessingError, CodeMIMELimit, "The MIME structure is beyond a limit: "+err.Error()+".", err))
	case errors.Is(err, errMIME):
		return op.refusal(refuse(UnexpectedProcessingError, CodeMIME, "The MIME structure cannot be read: "+err.Error()+".", err))
	}
	return err
}

func (op *opener) scratch() (*watched, error) {
	s, err := op.o.Scratch()
	if err != nil {
		return nil, fmt.Errorf("scratch space: %w", err)
	}
	op.opened.scratch = append(op.opened.scratch, s)
	return &watched{Scratch: s}, nil
}

// entity opens one MIME entity. whole is the entity with its headers, as far as these travelled
// with it, and body what follows them.
func (op *opener) entity(m MIMEHeaders, whole, body edi.Source) error {
	op.depth++
	if op.depth > op.limits.Depth {
		return op.mimeError(beyond("layers", op.limits.Depth))
	}
	mt, params, err := parseMediaType(m.ContentType)
	if err != nil {
		return op.mimeError(err)
	}
	if op.opened.Encrypted && !op.opened.Signed && !knownTopLevel(mt) {
		return errEncrypted(malformed("the decrypted content has no known media type"))
	}
	switch {
	case mt == "multipart/signed":
		return op.signed(m, params, body)
	case mt == "application/pkcs7-mime" || mt == "application/x-pkcs7-mime":
		return op.pkcs7(params, body)
	case mt == "application/pkcs7-signature" || mt == "application/x-pkcs7-signature":
		return op.refusal(refuse(UnsupportedFormat, CodeFormat,
			"The content is a signature without what it signs. Send multipart/signed.", nil))
	case strings.HasPrefix(mt, "multipart/"):
		return op.refusal(refuse(UnsupportedFormat, CodeMultipart,
			"The content is "+mt+". Send one file in each message.", nil))
	}
	return op.leaf(m, whole, body)
}

// knownTopLevel reports whether a media type begins with a registered top-level type (RFC 6838
// §4.2). It is asked of decrypted content: someone who changes the first block of a ciphertext
// can hardly turn one type into another known one, so that changed messages keep their one answer.
func knownTopLevel(mt string) bool {
	top, sub, ok := strings.Cut(mt, "/")
	if !ok || sub == "" {
		return false
	}
	switch top {
	case "application", "audio", "font", "image", "message", "model", "multipart", "text", "video":
		return true
	}
	return false
}

func (op *opener) leaf(m MIMEHeaders, whole, body edi.Source) error {
	if err := op.demands(); err != nil {
		return err
	}
	if op.o.RequireSigned && !op.opened.Signed {
		return refuse(InsufficientMessageSecurity, CodeNotSigned, "The message is not signed. Sign it.", nil)
	}
	switch {
	case op.opened.Signed: // signed set it
	case op.opened.Encrypted:
		op.covered = whole
	default:
		op.covered = body
	}
	payload, note, err := op.decodeTransfer(body, m.TransferEncoding)
	if err != nil {
		return err
	}
	if note != "" {
		op.opened.Notes = append(op.opened.Notes, note)
	}
	op.opened.Payload = payload
	op.opened.ContentType = printable(m.ContentType)
	op.opened.Filename = filenameOf(m)
	return nil
}

// demands checks that a message is encrypted where that is required.
func (op *opener) demands() error {
	if op.o.RequireEncrypted && !op.opened.Encrypted {
		return refuse(InsufficientMessageSecurity, CodeNotEncrypted, "The message is not encrypted. Encrypt it for our certificate.", nil)
	}
	return nil
}

func (op *opener) nested(what string) error {
	return op.refusal(refuse(UnsupportedFormat, CodeNesting,
		what+". Send one file, sign it once, then encrypt it once.", nil))
}

// pkcs7 opens application/pkcs7-mime. What it is the content says, not the smime-type.
func (op *opener) pkcs7(params map[string]string, body edi.Source) error {
	src := &watchedSource{Source: body}
	content, err := rawCMS(src)
	if err != nil {
		return err
	}
	prefix := make([]byte, 64)
	n, err := io.ReadFull(content, prefix)
	if src.err != nil {
		return src.err
	}
	kind := ""
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		kind = cms.IsCMS(prefix[:n])
	}
	switch kind {
	case "enveloped":
		return op.enveloped(body)
	case "signed":
		return op.opaque(body)
	case "compressed":
		return op.refusal(refuse(UnsupportedFormat, CodeCompressed,
			"Compressed messages are not supported. Turn compression off for this partner.", nil))
	}
	if strings.EqualFold(params["smime-type"], "signed-data") {
		return op.refusal(refuse(AuthenticationFailed, CodeAuthentication, "The signed-data cannot be read.", nil))
	}
	return errEncrypted(malformed("the content is not a known CMS structure"))
}

// enveloped decrypts EnvelopedData.
func (op *opener) enveloped(body edi.Source) error {
	switch {
	case op.opened.Signed:
		return op.nested("The message is encrypted inside a signature")
	case op.opened.Encrypted:
		return op.nested("The message is encrypted twice")
	}
	out, err := op.scratch()
	if err != nil {
		return err
	}
	src := &watchedSource{Source: body}
	content, err := rawCMS(src)
	if err != nil {
		return err
	}
	info, err := cms.Decrypt(content, out, op.o.Decrypt, op.o.Policy)
	if local := errors.Join(src.err, out.err); local != nil {
		return local
	}
	if err != nil {
		return errEncrypted(err)
	}
	op.opened.Encrypted = true
	op.opened.Cipher = info.Cipher
	return op.inner(out.Scratch)
}

// inner opens an entity that stands with its headers in src.
func (op *opener) inner(src edi.Source) error {
	head, bodyAt, err := readHeader(src, op.limits)
	if err != nil {
		return op.mimeError(err)
	}
	return op.entity(head.mime(), src, section(src, bodyAt, src.Size()))
}

// opaque verifies SignedData that holds its content (RFC 8551 §3.5.2).
func (op *opener) opaque(body edi.Source) error {
	if op.opened.Signed {
		return op.nested("The message is signed twice")
	}
	if err := op.demands(); err != nil {
		return err
	}
	out, err := op.scratch()
	if err != nil {
		return err
	}
	src := &watchedSource{Source: body}
	content, err := rawCMS(src)
	if err != nil {
		return err
	}
	info, err := cms.VerifyAttached(content, out, op.o.Verify, op.o.Policy)
	if local := errors.Join(src.err, out.err); local != nil {
		return local
	}
	if err != nil {
		return op.signatureError(err)
	}
	return op.verified(out.Scratch, info)
}

// signed verifies multipart/signed (RFC 1847 §2.1). What goes on is the range that was verified;
// preamble, epilogue and everything else of the body is never looked at again.
func (op *opener) signed(m MIMEHeaders, params map[string]string, body edi.Source) error {
	if op.opened.Signed {
		return op.nested("The message is signed twice")
	}
	if err := op.demands(); err != nil {
		return err
	}
	if p, ok := params["protocol"]; ok && !isReceiptProtocol(p) {
		return op.refusal(refuse(UnsupportedFormat, CodeFormat,
			"The signature protocol is not supported. Use application/pkcs7-signature.", nil))
	}
	src := &watchedSource{Source: body}
	halves, err := splitSigned(src, params["boundary"], op.limits)
	if err == nil && halves == nil && strings.EqualFold(m.TransferEncoding, "base64") {
		// Some senders encode the body of the request as a whole.
		decoded, _, derr := op.decodeTransfer(body, m.TransferEncoding)
		if derr != nil {
			return derr
		}
		src = &watchedSource{Source: decoded}
		halves, err = splitSigned(src, params["boundary"], op.limits)
	}
	if src.err != nil {
		return src.err
	}
	if err == nil && halves == nil {
		err = malformed("the boundary of multipart/signed never occurs in its body")
	}
	if err != nil {
		return op.structureError(err)
	}
	if op.opened.Encrypted {
		// Whoever appends blocks to a ciphertext makes an epilogue; if it were passed over, the
		// answer would tell whether its padding is good.
		if blank, err := onlyBlank(src, halves.end); err != nil || !blank {
			if src.err != nil {
				return src.err
			}
			return errEncrypted(malformed("text behind the closing boundary of an encrypted message"))
		}
	}
	content, info, note, err := verifyRanges(src, halves, op.o.Verify, op.o.Policy)
	if src.err != nil {
		return src.err
	}
	if err != nil {
		return op.signatureError(err)
	}
	if note != "" {
		op.opened.Notes = append(op.opened.Notes, note)
	}
	return op.verified(content, info)
}

// verified goes on with what a signature covers.
func (op *opener) verified(content edi.Source, info cms.SignatureInfo) error {
	op.opened.Signed = true
	op.opened.Digest = info.Digest
	if len(info.Signers) > 0 {
		op.opened.SignerCert = info.Signers[0].Certificate
	}
	op.covered = content
	return op.inner(content)
}

func (op *opener) structureError(err error) error {
	var s *signedError
	if errors.As(err, &s) {
		return op.refusal(refuse(s.modifier, CodeSignedStructure, s.text, err))
	}
	return op.mimeError(err)
}

// signatureError says in the words of the MDN why a signature does not hold. A signature that
// cannot even be read is a structure error, and as such hidden inside an encrypted message.
func (op *opener) signatureError(err error) error {
	switch {
	case errors.Is(err, cms.ErrNoSigner):
		return refuse(AuthenticationFailed, CodeAuthentication,
			"The message is not signed with a certificate that we have on record for this AS2 name. Send us your certificate.", err)
	case errors.Is(err, cms.ErrSignature):
		return refuse(IntegrityCheckFailed, CodeIntegrity,
			"The signature does not match the content. It was changed on its way, or another key signed it.", err)
	case errors.Is(err, cms.ErrUnsupported):
		return refuse(AuthenticationFailed, CodeAuthentication,
			"The signature uses an algorithm that is not accepted. Sign with RSA and SHA-256.", err)
	case errors.Is(err, cms.ErrLimit):
		return op.refusal(refuse(UnexpectedProcessingError, CodeMIMELimit, "The signature is beyond a limit.", err))
	}
	return op.refusal(refuse(AuthenticationFailed, CodeAuthentication, "The signature cannot be read.", err))
}

// mic computes the MIC over the bytes that RFC 4130 §7.3.1 names, as they travelled.
func (op *opener) mic(asked ReceiptOptions) error {
	alg := asked.MICAlg()
	if alg == "" {
		d := cms.SHA256
		if op.opened.Signed && op.opened.Digest != "" {
			d = op.opened.Digest
		}
		alg = micName(d)
	}
	sum, err := micOf(alg, reader(op.covered))
	if err != nil {
		return fmt.Errorf("MIC: %w", err)
	}
	op.opened.MIC, op.opened.MICAlg = sum, alg
	return nil
}

// micOf returns the base64 digest of what it reads.
func micOf(alg string, r io.Reader) (string, error) {
	d, err := cms.ParseDigest(alg)
	if err != nil {
		return "", err
	}
	h := d.Hash().New()
	// A small buffer: most messages are smaller than the one that Copy would make and clear.
	if _, err := io.CopyBuffer(h, r, make([]byte, 8<<10)); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(h.Sum(nil)), nil
}
