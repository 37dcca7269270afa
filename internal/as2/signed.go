package as2

import (
	"crypto/x509"
	"errors"
	"io"
	"strings"

	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/edi"
)

// signedError says that multipart/signed does not have the two parts that it must have.
type signedError struct{ modifier, text string }

func (e *signedError) Error() string { return e.text }

// halves are the two parts of multipart/signed.
type halves struct {
	content   part
	signature []byte // DER
	end       int64  // behind the closing boundary line
}

// splitSigned cuts multipart/signed into content and signature (RFC 1847 §2.1). It returns nil
// where the boundary does not occur at all.
func splitSigned(src edi.Source, boundary string, l Limits) (*halves, error) {
	m, err := splitMultipart(src, boundary, l.Parts)
	if err != nil {
		return nil, err
	}
	if len(m.delims) == 0 {
		return nil, nil
	}
	if !m.closed {
		return nil, malformed("the closing boundary of multipart/signed is missing; the message was cut off")
	}
	parts := m.parts()
	switch {
	case len(parts) < 2:
		return nil, &signedError{AuthenticationFailed, "multipart/signed has no signature part. Send the content and its signature."}
	case len(parts) > 2:
		return nil, &signedError{IntegrityCheckFailed, "multipart/signed has more than two parts, and a signature covers only one. Send one file in each message."}
	}
	at := parts[1]
	sigPart := section(src, at.from, at.to)
	head, bodyAt, err := readHeader(sigPart, l)
	if err != nil {
		return nil, err
	}
	mt, _, err := parseMediaType(head.get("Content-Type"))
	if err != nil {
		return nil, err
	}
	if mt != "application/pkcs7-signature" && mt != "application/x-pkcs7-signature" {
		return nil, &signedError{AuthenticationFailed, "The second part of multipart/signed is not application/pkcs7-signature."}
	}
	if sigPart.Size()-bodyAt > int64(l.Signature) {
		return nil, beyond("bytes of signature", l.Signature)
	}
	r, err := rawCMS(section(sigPart, bodyAt, sigPart.Size()))
	if err != nil {
		return nil, err
	}
	der, err := io.ReadAll(r)
	if err != nil || len(der) == 0 {
		return nil, &signedError{AuthenticationFailed, "The signature part is neither base64 nor binary."}
	}
	return &halves{content: parts[0], signature: der, end: m.delims[len(m.delims)-1].after}, nil
}

// verifyRanges verifies the signature over the content part as RFC 2046 §5.1.1 cuts it, and, where
// the digest differs, over the two ranges that some senders sign instead: with the line break that
// belongs to the delimiter, or without the last one of the content. Each is a range of what
// travelled. It returns the range that the signature covers.
func verifyRanges(src edi.Source, h *halves, certs []*x509.Certificate, p cms.Policy) (edi.Source, cms.SignatureInfo, string, error) {
	content := section(src, h.content.from, h.content.to)
	info, err := cms.VerifyDetached(h.signature, content, certs, p)
	if err == nil || !errors.Is(err, cms.ErrSignature) {
		return content, info, "", err
	}
	try := func(to int64, note string) (edi.Source, cms.SignatureInfo, string, bool) {
		if to <= h.content.from || to == h.content.to {
			return nil, cms.SignatureInfo{}, "", false
		}
		other := section(src, h.content.from, to)
		info, err := cms.VerifyDetached(h.signature, other, certs, p)
		return other, info, note, err == nil
	}
	if c, i, note, ok := try(h.content.withBreak, "the signature covers the line break in front of the boundary"); ok {
		return c, i, note, nil
	}
	shorter, err2 := withoutBreak(src, h.content)
	if err2 != nil {
		return nil, info, "", err2
	}
	if c, i, note, ok := try(shorter, "the signature does not cover the last line break of the content"); ok {
		return c, i, note, nil
	}
	return nil, info, "", err
}

// withoutBreak returns where the content ends when its last line break is left out.
func withoutBreak(src edi.Source, p part) (int64, error) {
	n := min(2, p.to-p.from)
	tail := make([]byte, n)
	if _, err := readAt(src, tail, p.to-n); err != nil {
		return 0, err
	}
	switch {
	case strings.HasSuffix(string(tail), "\r\n"):
		return p.to - 2, nil
	case strings.HasSuffix(string(tail), "\n"):
		return p.to - 1, nil
	}
	return p.to, nil
}
