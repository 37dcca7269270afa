package as2

import (
	"bytes"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net/http"
	"strings"

	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/edi"
)

// What is wrong with an MDN; test with errors.Is.
var (
	ErrMDNMalformed = errors.New("not a readable disposition notification")
	ErrMDNUnsigned  = errors.New("the MDN is not signed although a signed one was asked for")
	ErrMDNSignature = errors.New("the signature of the MDN is not this partner's, or does not match")
	ErrMDNOther     = errors.New("the MDN answers another message")
	ErrMDNMIC       = errors.New("the MIC of the MDN is not that of what we sent")
)

// NegativeMDN is the error of a message that the partner says it did not accept.
type NegativeMDN struct {
	Disposition string // as it stands
	Modifier    string // for example "decryption-failed"; empty if none stands there
	Text        string // what the MDN tells people, at most 2,000 bytes
}

// Error implements error.
func (e *NegativeMDN) Error() string { return "the partner refused the message: " + e.Disposition }

// Outcome is what a Disposition means for the sender.
type Outcome int

// The outcomes. A warning is an acceptance.
const (
	Negative Outcome = iota
	Positive
	PositiveWithWarning
)

// MDN is a disposition notification that was read. Every field comes from the bytes that its
// signature covers, except From, To and MessageID, which are headers of the transport.
type MDN struct {
	From, To          string // AS2 names, unquoted; empty where absent or unreadable
	MessageID         string // of the MDN itself
	OriginalMessageID string
	OriginalRecipient string
	FinalRecipient    string
	ReportingUA       string
	Disposition       string
	Outcome           Outcome
	Modifier          string // what stands behind error, failure or warning
	MIC               string // base64
	MICAlg            string // as spelled; empty if not named
	Text              string // for people, at most 2,000 bytes
	Signed            bool
	Signer            *x509.Certificate // of the partner's record; nil if not signed
	Notes             []string          // leniencies that were needed
}

// maxMDNText is how much of the text for people is kept, in bytes.
const maxMDNText = 2000

// ParseMDN reads an MDN with the zero Policy; see ParseMDNWith.
func ParseMDN(h http.Header, body []byte, verify []*x509.Certificate, requireSigned bool) (*MDN, error) {
	return ParseMDNWith(h, body, verify, requireSigned, cms.Policy{})
}

// ParseMDNWith reads an MDN from the header and body of a response or request. It is lenient about
// spelling and strict about proof: the report is looked for only inside the bytes that the
// signature covers, and every signer must be in verify. A signature is checked also where none was
// asked for, unless there is no certificate at all to check it with: then the MDN counts as
// unsigned. The caller limits the length of body. Errors wrap ErrMDNMalformed, ErrMDNUnsigned or
// ErrMDNSignature. Whether it is an answer to a certain message says Check.
func ParseMDNWith(h http.Header, body []byte, verify []*x509.Certificate, requireSigned bool, p cms.Policy) (*MDN, error) {
	r := mdnReader{verify: verify, required: requireSigned, policy: p, limits: Limits{}.withDefaults()}
	m, err := parseMIMEHeaders(h)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMDNMalformed, err)
	}
	r.mdn.From, _ = UnquoteName(strings.Trim(Value(h, "AS2-From"), " \t"))
	r.mdn.To, _ = UnquoteName(strings.Trim(Value(h, "AS2-To"), " \t"))
	r.mdn.MessageID = printable(Value(h, "Message-ID"))
	if err := r.entity(m, bytes.NewReader(body)); err != nil {
		for _, known := range []error{ErrMDNMalformed, ErrMDNUnsigned, ErrMDNSignature} {
			if errors.Is(err, known) {
				return nil, err
			}
		}
		return nil, fmt.Errorf("%w: %w", ErrMDNMalformed, err)
	}
	return &r.mdn, nil
}

type mdnReader struct {
	verify   []*x509.Certificate
	required bool
	policy   cms.Policy
	limits   Limits
	mdn      MDN
	inner    bool // inside a signature, verified or not
}

func (r *mdnReader) entity(m MIMEHeaders, body edi.Source) error {
	mt, params, err := parseMediaType(m.ContentType)
	if err != nil {
		return err
	}
	switch {
	case mt == "multipart/report":
		if r.required && !r.mdn.Signed {
			return ErrMDNUnsigned
		}
		return r.report(params["boundary"], body)
	case r.inner:
	case mt == "multipart/signed":
		return r.signed(params["boundary"], body)
	case mt == "application/pkcs7-mime" || mt == "application/x-pkcs7-mime":
		return r.opaque(body)
	}
	return malformed("the content is %q and not multipart/report", printable(mt))
}

func (r *mdnReader) signed(boundary string, body edi.Source) error {
	h, err := splitSigned(body, boundary, r.limits)
	if err != nil {
		var s *signedError
		if errors.As(err, &s) {
			return fmt.Errorf("%w: %w", ErrMDNSignature, err)
		}
		return err
	}
	if h == nil {
		return malformed("the boundary of multipart/signed never occurs in its body")
	}
	if len(r.verify) == 0 && !r.required {
		return r.unverified(section(body, h.content.from, h.content.to))
	}
	content, info, note, err := verifyRanges(body, h, r.verify, r.policy)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMDNSignature, err)
	}
	if note != "" {
		r.mdn.Notes = append(r.mdn.Notes, note)
	}
	return r.verified(content, info)
}

func (r *mdnReader) opaque(body edi.Source) error {
	in, err := rawCMS(body)
	if err != nil {
		return err
	}
	out := &memory{}
	info, err := cms.VerifyAttached(in, out, r.verify, r.policy)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMDNSignature, err)
	}
	return r.verified(out, info)
}

func (r *mdnReader) verified(content edi.Source, info cms.SignatureInfo) error {
	r.mdn.Signed = true
	if len(info.Signers) > 0 {
		r.mdn.Signer = info.Signers[0].Certificate
	}
	return r.descend(content)
}

func (r *mdnReader) unverified(content edi.Source) error {
	r.mdn.Notes = append(r.mdn.Notes, "the signature was not checked, there is no certificate to check it with")
	return r.descend(content)
}

func (r *mdnReader) descend(content edi.Source) error {
	r.inner = true
	head, bodyAt, err := readHeader(content, r.limits)
	if err != nil {
		return err
	}
	return r.entity(head.mime(), section(content, bodyAt, content.Size()))
}

// report reads the parts of multipart/report.
func (r *mdnReader) report(boundary string, body edi.Source) error {
	m, err := splitMultipart(body, boundary, r.limits.Parts)
	if err != nil {
		return err
	}
	if !m.closed {
		return malformed("the closing boundary of multipart/report is missing; the MDN was cut off")
	}
	seen := false
	for _, p := range m.parts() {
		src := section(body, p.from, p.to)
		head, bodyAt, err := readHeader(src, r.limits)
		if err != nil {
			return err
		}
		mt, _, err := parseMediaType(head.get("Content-Type"))
		if err != nil {
			return err
		}
		isText := (mt == "text/plain" || mt == "") && r.mdn.Text == ""
		if mt != "message/disposition-notification" && !isText {
			continue
		}
		content, err := decodeSmall(section(src, bodyAt, src.Size()), head.get("Content-Transfer-Encoding"), r.limits.HeaderBytes)
		if err != nil {
			return err
		}
		if isText {
			r.mdn.Text = shorten(content)
			continue
		}
		if seen {
			return malformed("two disposition notifications in one report")
		}
		seen = true
		if err := r.fields(content); err != nil {
			return err
		}
	}
	if !seen {
		return malformed("the report has no message/disposition-notification")
	}
	return nil
}

// fields reads the fields for programs (RFC 8098 §3.1). Empty lines between them are passed over.
func (r *mdnReader) fields(content []byte) error {
	var block []byte
	for line := range bytes.Lines(content) {
		if len(bytes.TrimRight(line, "\r\n")) > 0 {
			block = append(block, line...)
		}
	}
	h, err := parseFields(block, r.limits)
	if err != nil {
		return err
	}
	m := &r.mdn
	for _, f := range []struct {
		name string
		to   *string
	}{
		{"Original-Message-ID", &m.OriginalMessageID},
		{"Original-Recipient", &m.OriginalRecipient},
		{"Final-Recipient", &m.FinalRecipient},
		{"Reporting-UA", &m.ReportingUA},
		{"Disposition", &m.Disposition},
		{"Received-Content-MIC", &m.MIC},
	} {
		if h.count(f.name) > 1 {
			return malformed("%s stands more than once", f.name)
		}
		*f.to = printable(h.get(f.name))
	}
	if m.Disposition == "" {
		return malformed("the report has no Disposition")
	}
	m.Outcome, m.Modifier = ClassifyDisposition(m.Disposition)
	m.MIC, m.MICAlg, _ = strings.Cut(m.MIC, ",")
	m.MIC = strings.Trim(m.MIC, " \t\"")
	m.MICAlg = strings.Trim(m.MICAlg, " \t\"")
	return nil
}

// ClassifyDisposition says what the value of a Disposition field means (RFC 8098 §3.2.6, RFC 4130
// §7.5). Only "processed" is an acceptance, alone or with a warning; whatever is not understood
// is negative, because a delivery must not be believed in by mistake.
func ClassifyDisposition(v string) (o Outcome, modifier string) {
	_, typ, ok := strings.Cut(v, ";")
	if !ok {
		typ = v // the mode is missing
	}
	typ = strings.Trim(typ, " \t")
	word, rest := typ, ""
	if i := strings.IndexAny(typ, "/:,; \t"); i >= 0 {
		word, rest = typ[:i], strings.Trim(typ[i:], "/:,; \t")
	}
	kind, text, _ := strings.Cut(rest, ":")
	kind = strings.ToLower(strings.Trim(kind, " \t"))
	text = strings.Trim(text, " \t")
	if !strings.EqualFold(word, "processed") {
		if text == "" {
			text = rest
		}
		return Negative, text
	}
	switch kind {
	case "":
		return Positive, ""
	case "warning":
		return PositiveWithWarning, text
	}
	if text == "" {
		text = rest
	}
	return Negative, text
}

// MatchMIC reports whether the MDN carries the MIC of what was sent. mic returns our own for an
// algorithm in any spelling, "" where it is not known. A missing algorithm is told by the length.
func MatchMIC(m *MDN, mic func(alg string) string) bool {
	got, err := base64.StdEncoding.DecodeString(m.MIC)
	if err != nil || len(got) == 0 {
		return false
	}
	alg := m.MICAlg
	if alg == "" {
		for _, d := range []cms.Digest{cms.SHA1, cms.SHA256, cms.SHA384, cms.SHA512} {
			if d.Hash().Size() == len(got) {
				alg = string(d)
			}
		}
	}
	d, err := cms.ParseDigest(alg)
	if err != nil {
		return false
	}
	ours, err := base64.StdEncoding.DecodeString(mic(string(d)))
	if err != nil || len(ours) == 0 {
		return false
	}
	return subtle.ConstantTimeCompare(got, ours) == 1
}

// Check says whether the MDN proves that the message with that id was accepted as we sent it: nil
// where it does, *NegativeMDN where the partner refused the message, else an error that wraps
// ErrMDNOther or ErrMDNMIC.
func (m *MDN) Check(messageID string, mic func(alg string) string) error {
	if NormalizeMessageID(m.OriginalMessageID) != NormalizeMessageID(messageID) || NormalizeMessageID(messageID) == "" {
		return fmt.Errorf("%w: it names %q", ErrMDNOther, m.OriginalMessageID)
	}
	if m.Outcome == Negative {
		return &NegativeMDN{Disposition: m.Disposition, Modifier: m.Modifier, Text: m.Text}
	}
	if !MatchMIC(m, mic) {
		return fmt.Errorf("%w: it has %q, %q", ErrMDNMIC, m.MIC, m.MICAlg)
	}
	return nil
}

// decodeSmall reads a short part and undoes its transfer encoding.
func decodeSmall(src edi.Source, encoding string, limit int) ([]byte, error) {
	if src.Size() > int64(limit) {
		return nil, beyond("bytes in a part of the report", limit)
	}
	raw, err := io.ReadAll(reader(src))
	if err != nil {
		return nil, err
	}
	var decoded []byte
	switch strings.ToLower(encoding) {
	case "base64":
		decoded, err = io.ReadAll(base64Reader(bytes.NewReader(raw)))
	case "quoted-printable":
		decoded, err = io.ReadAll(quotedprintable.NewReader(bytes.NewReader(raw)))
	default:
		return raw, nil
	}
	if err != nil {
		return raw, nil //nolint:nilerr // Some senders announce an encoding and do not use it.
	}
	return decoded, nil
}

func shorten(b []byte) string {
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if isControl(r) && r != '\n' {
			return -1
		}
		return r
	}, s)
	s = strings.Trim(s, " \t\n")
	if len(s) > maxMDNText {
		s = strings.ToValidUTF8(s[:maxMDNText], "")
	}
	return s
}
