package as2

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/edi"
)

// defaultMemoryLimit is up to which size an encrypted body is built in memory, in bytes.
const defaultMemoryLimit = 256 << 10

// BuildOptions describe a message to be sent.
type BuildOptions struct {
	From, To    string // AS2 names, unquoted
	MessageID   string // with or without angle brackets; it is sent with them
	Subject     string // default "EDI message"
	ContentType string // of the payload; default application/octet-stream
	Filename    string // of the payload; empty: none is sent
	UserAgent   string
	At          time.Time // for Date and the signing time

	Sign    *cms.Signer         // nil: not signed
	Encrypt []*x509.Certificate // empty: not encrypted
	Cipher  cms.Cipher          // default aes256-cbc

	Receipt ReceiptRequest

	Scratch     edi.NewScratch // for encrypted bodies beyond MemoryLimit; nil: memory
	MemoryLimit int64          // bytes; default 256 KiB
}

// ReceiptRequest says which MDN is asked for.
type ReceiptRequest struct {
	Wanted   bool
	To       string   // Disposition-Notification-To; default our AS2 name
	AsyncURL string   // where an asynchronous MDN is to be posted; empty: synchronous
	Signed   bool     // ask for a signed one
	MICAlgs  []string // as they are to be spelled; default sha-256
}

// Outbound is a message ready to be sent. Body can be read any number of times: every retry sends
// the same bytes. Its length is Body.Size(); send it as the Content-Length and not chunked. The
// Payload it was built of must stay readable until Close.
type Outbound struct {
	Header http.Header // keys spelled as the standards do, not canonical; no length
	Body   edi.Source

	covered edi.Source
	mics    map[cms.Digest]string
	scratch edi.Scratch
}

// Close gives back scratch space.
func (o *Outbound) Close() error {
	if o.scratch == nil {
		return nil
	}
	err := o.scratch.Close()
	o.scratch = nil
	return err
}

// MIC returns the MIC in an algorithm of any spelling, or "" where the algorithm is not supported
// or the payload cannot be read. It is not safe for concurrent use.
func (o *Outbound) MIC(alg string) string {
	d, err := cms.ParseDigest(alg)
	if err != nil {
		return ""
	}
	if sum, ok := o.mics[d]; ok {
		return sum
	}
	sum, err := micOf(alg, reader(o.covered))
	if err != nil {
		return ""
	}
	if o.mics == nil {
		o.mics = make(map[cms.Digest]string)
	}
	o.mics[d] = sum
	return sum
}

// MICOf returns the MIC that a message built with these options has, without signing or
// encrypting anything, for an MDN that comes when the message itself is gone. Of Sign and Encrypt
// it matters only whether they are set.
func MICOf(p edi.Source, o BuildOptions, alg string) (string, error) {
	if err := o.check(); err != nil {
		return "", err
	}
	return micOf(alg, reader(o.covered(p)))
}

// covered is what the MIC is computed over (RFC 4130 §7.3.1): the inner part with its headers, or
// the payload alone where the message is neither signed nor encrypted.
func (o BuildOptions) covered(p edi.Source) edi.Source {
	if o.Sign == nil && len(o.Encrypt) == 0 {
		return p
	}
	return o.inner(p)
}

// inner is the MIME part of the payload. It depends on nothing but the payload, its media type
// and its file name, so that its bytes and the MIC are the same for every retry.
func (o BuildOptions) inner(p edi.Source) edi.Source {
	head := "Content-Type: " + o.contentType() + "\r\nContent-Transfer-Encoding: binary\r\n"
	if o.Filename != "" {
		head += "Content-Disposition: " + dispositionHeader(o.Filename) + "\r\n"
	}
	return join(bytes.NewReader([]byte(head+"\r\n")), p)
}

func (o BuildOptions) contentType() string {
	if o.ContentType == "" {
		return "application/octet-stream"
	}
	return o.ContentType
}

func (o BuildOptions) check() error {
	for _, name := range []string{o.From, o.To} {
		if _, err := UnquoteName(QuoteName(name)); err != nil {
			return fmt.Errorf("build AS2 message: AS2 name %q %w", name, err)
		}
	}
	if err := checkMessageID(BracketMessageID(o.MessageID)); err != nil {
		return fmt.Errorf("build AS2 message: %w", err)
	}
	for _, v := range append([]string{o.ContentType, o.Receipt.To, o.Receipt.AsyncURL}, o.Receipt.MICAlgs...) {
		if asciiLine(v) != v {
			return fmt.Errorf("build AS2 message: %q is not one line of ASCII", v)
		}
	}
	return nil
}

// Build makes an AS2 message of a payload: signed, then encrypted, each where asked for.
func Build(p edi.Source, o BuildOptions) (*Outbound, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	out := &Outbound{covered: o.covered(p)}
	m := MIMEHeaders{ContentType: o.contentType(), TransferEncoding: "binary"}
	if o.Filename != "" {
		m.ContentDisposition = dispositionHeader(o.Filename)
	}
	out.Body = p
	if o.Sign != nil {
		body, contentType, err := o.sign(p)
		if err != nil {
			return nil, fmt.Errorf("build AS2 message: sign: %w", err)
		}
		out.Body = body
		m = MIMEHeaders{ContentType: contentType}
	}
	if len(o.Encrypt) > 0 {
		content := o.inner(p)
		if o.Sign != nil {
			content = join(bytes.NewReader([]byte("Content-Type: "+m.ContentType+"\r\n\r\n")), out.Body)
		}
		if err := o.encrypt(out, content); err != nil {
			return nil, errors.Join(fmt.Errorf("build AS2 message: encrypt: %w", err), out.Close())
		}
		m = MIMEHeaders{
			ContentType:        `application/pkcs7-mime; smime-type=enveloped-data; name="smime.p7m"`,
			TransferEncoding:   "binary",
			ContentDisposition: `attachment; filename="smime.p7m"`,
		}
	}
	out.Header = o.header(m)
	return out, nil
}

// sign wraps the payload in multipart/signed.
func (o BuildOptions) sign(p edi.Source) (edi.Source, string, error) {
	inner := o.inner(p)
	der, err := cms.SignDetached(reader(inner), *o.Sign, o.At)
	if err != nil {
		return nil, "", err
	}
	boundary := boundaryOf(o.MessageID, "signed")
	d := o.Sign.Digest
	if d == "" {
		d = cms.SHA256
	}
	body := join(bytes.NewReader([]byte("--"+boundary+"\r\n")), inner, bytes.NewReader(signatureTail(boundary, der)))
	return body, signedContentType(boundary, micName(d)), nil
}

func (o BuildOptions) encrypt(out *Outbound, content edi.Source) error {
	limit := o.MemoryLimit
	if limit <= 0 {
		limit = defaultMemoryLimit
	}
	newScratch := o.Scratch
	if newScratch == nil || content.Size() <= limit {
		newScratch = newMemory
	}
	s, err := newScratch()
	if err != nil {
		return fmt.Errorf("scratch space: %w", err)
	}
	out.scratch = s
	c := o.Cipher
	if c == "" {
		c = cms.AES256CBC
	}
	if err := cms.Encrypt(s, reader(content), content.Size(), o.Encrypt, c); err != nil {
		return err
	}
	out.Body = s
	return nil
}

func (o BuildOptions) header(m MIMEHeaders) http.Header {
	subject := o.Subject
	if subject == "" {
		subject = "EDI message"
	}
	h := http.Header{
		"AS2-Version":  {version},
		"AS2-From":     {QuoteName(o.From)},
		"AS2-To":       {QuoteName(o.To)},
		"Message-ID":   {BracketMessageID(o.MessageID)},
		"Date":         {o.At.UTC().Format(http.TimeFormat)},
		"Subject":      {asciiLine(subject)},
		"MIME-Version": {"1.0"},
		"Content-Type": {m.ContentType},
	}
	if m.TransferEncoding != "" {
		h["Content-Transfer-Encoding"] = []string{m.TransferEncoding}
	}
	if m.ContentDisposition != "" {
		h["Content-Disposition"] = []string{m.ContentDisposition}
	}
	if o.UserAgent != "" {
		h["User-Agent"] = []string{asciiLine(o.UserAgent)}
	}
	if o.Receipt.Wanted {
		o.Receipt.ask(h, o.From)
	}
	return h
}

// ask adds the headers that ask for an MDN (RFC 4130 §7.3).
func (r ReceiptRequest) ask(h http.Header, from string) {
	to := r.To
	if to == "" {
		to = QuoteName(from)
	}
	h["Disposition-Notification-To"] = []string{to}
	if r.Signed {
		algs := r.MICAlgs
		if len(algs) == 0 {
			algs = []string{micName(cms.SHA256)}
		}
		h["Disposition-Notification-Options"] = []string{
			"signed-receipt-protocol=optional, pkcs7-signature; signed-receipt-micalg=optional, " + strings.Join(algs, ", "),
		}
	}
	if r.AsyncURL != "" {
		h["Receipt-Delivery-Option"] = []string{r.AsyncURL}
	}
}

// joined is several Sources one after the other.
type joined struct {
	parts []edi.Source
	size  int64
}

func join(parts ...edi.Source) edi.Source {
	j := &joined{parts: parts}
	for _, p := range parts {
		j.size += p.Size()
	}
	return j
}

// Size implements edi.Source.
func (j *joined) Size() int64 { return j.size }

// ReadAt implements edi.Source.
func (j *joined) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("as2: negative offset")
	}
	done := 0
	for _, p := range j.parts {
		if off >= p.Size() {
			off -= p.Size()
			continue
		}
		want := int(min(int64(len(b)-done), p.Size()-off))
		n, err := p.ReadAt(b[done:done+want], off)
		done += n
		if n < want {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // the part is shorter than it said
			}
			return done, err
		}
		if done == len(b) {
			return done, nil
		}
		off = 0
	}
	if done < len(b) {
		return done, io.EOF
	}
	return done, nil
}
