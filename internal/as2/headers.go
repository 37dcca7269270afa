package as2

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/edihub/edihub/internal/edi"
)

// The longest AS2 name and Message-ID that are read, in bytes.
const (
	MaxName      = 128 // RFC 4130 §6.2
	MaxMessageID = 998 // RFC 5322 §2.1.1
)

// HeaderError says that a request cannot be taken for an AS2 message. It is answered with 400.
type HeaderError struct {
	Field   string // name of the header
	Problem string // what is wrong and what to send instead
}

// Error implements error.
func (e *HeaderError) Error() string { return "header " + e.Field + ": " + e.Problem }

// Headers are the headers of an AS2 message or MDN.
type Headers struct {
	From, To   string // AS2 names, unquoted; compared exactly
	Version    string // AS2-Version; "1.0" if absent (RFC 4130 §6.1)
	MessageID  string // byte for byte, with or without angle brackets
	Subject    string
	Date       string
	UserAgent  string
	MIME       MIMEHeaders
	ReceiptTo  string // Disposition-Notification-To; empty: no MDN is asked for
	ReceiptURL string // Receipt-Delivery-Option; where an asynchronous MDN goes
	Options    ReceiptOptions
}

// MIMEHeaders are the headers of an HTTP request that describe its body.
type MIMEHeaders struct {
	ContentType        string
	TransferEncoding   string // Content-Transfer-Encoding
	ContentDisposition string
}

// WantsMDN reports whether the sender asks for an MDN.
func (h Headers) WantsMDN() bool { return h.ReceiptTo != "" }

// WantsAsync reports whether the MDN is to be posted to ReceiptURL.
func (h Headers) WantsAsync() bool { return h.WantsMDN() && h.ReceiptURL != "" }

// WantsSigned reports whether the MDN is to be signed.
func (h Headers) WantsSigned() bool { return h.WantsMDN() && h.Options.Signed }

// ReceiptOptions is Disposition-Notification-Options (RFC 4130 §7.3).
type ReceiptOptions struct {
	Signed           bool     // a signed MDN is asked for
	ProtocolRequired bool     // signed-receipt-protocol=required
	Protocols        []string // as spelled
	MICRequired      bool     // signed-receipt-micalg=required
	MICAlgs          []string // as spelled, in the order of preference
}

// MICAlg returns the first algorithm of the list that we support, as the sender spells it, or "".
func (o ReceiptOptions) MICAlg() string {
	for _, a := range o.MICAlgs {
		if SupportedMIC(a) {
			return a
		}
	}
	return ""
}

// Refusal returns why the receipt that is asked for cannot be given, or nil. Only what is
// required is refused (RFC 4130 §7.3).
func (o ReceiptOptions) Refusal() *Refusal {
	if o.MICRequired && len(o.MICAlgs) > 0 && o.MICAlg() == "" {
		return refuse(UnsupportedMICAlgorithms, CodeMICAlgorithm,
			"None of the MIC algorithms of signed-receipt-micalg is supported. Ask for sha-256, sha-384, sha-512 or sha1.", nil)
	}
	if o.ProtocolRequired && !slices.ContainsFunc(o.Protocols, isReceiptProtocol) {
		return refuse(UnsupportedFormat, CodeReceiptProtocol,
			"The protocol of signed-receipt-protocol is not supported. Ask for pkcs7-signature.", nil)
	}
	return nil
}

func isReceiptProtocol(s string) bool {
	switch strings.ToLower(s) {
	case "pkcs7-signature", "x-pkcs7-signature", "application/pkcs7-signature", "application/x-pkcs7-signature":
		return true
	}
	return false
}

// Values returns the values of a header whatever the case of its name. The keys of the maps of
// this package are not canonical ("AS2-From"), so http.Header.Get does not find them.
func Values(h http.Header, name string) []string {
	var out []string
	for k, vs := range h {
		if strings.EqualFold(k, name) {
			out = append(out, vs...)
		}
	}
	return out
}

// Value returns the only value of a header whatever the case of its name, or "" where there is
// none. Where there are several it returns one of them; use Values when that matters.
func Value(h http.Header, name string) string {
	if vs := Values(h, name); len(vs) > 0 {
		return vs[0]
	}
	return ""
}

// ParseHeaders reads the headers of an AS2 message. Its errors are *HeaderError.
//
// A header that stands more than once and differs is refused where it names a party, the message
// or its form, because two readers could then see two messages. Headers about the receipt are read
// leniently: a broken one never leaves the sender without an answer.
func ParseHeaders(h http.Header) (Headers, error) {
	var out Headers
	var err error
	if out.From, err = nameHeader(h, "AS2-From"); err != nil {
		return Headers{}, err
	}
	if out.To, err = nameHeader(h, "AS2-To"); err != nil {
		return Headers{}, err
	}
	if out.MessageID, err = single(h, "Message-ID"); err != nil {
		return Headers{}, err
	}
	if err := checkMessageID(out.MessageID); err != nil {
		return Headers{}, err
	}
	if out.MIME, err = parseMIMEHeaders(h); err != nil {
		return Headers{}, err
	}
	if out.Version, err = single(h, "AS2-Version"); err != nil {
		return Headers{}, err
	}
	if out.Version == "" {
		out.Version = "1.0"
	}
	out.Subject = printable(Value(h, "Subject"))
	out.Date = printable(Value(h, "Date"))
	out.UserAgent = printable(Value(h, "User-Agent"))
	out.ReceiptTo = strings.Trim(printable(Value(h, "Disposition-Notification-To")), " \t")
	if out.ReceiptURL, err = single(h, "Receipt-Delivery-Option"); err != nil {
		return Headers{}, err
	}
	out.Options = ParseReceiptOptions(strings.Join(Values(h, "Disposition-Notification-Options"), "; "))
	return out, nil
}

func parseMIMEHeaders(h http.Header) (MIMEHeaders, error) {
	var m MIMEHeaders
	var err error
	if m.ContentType, err = single(h, "Content-Type"); err != nil {
		return m, err
	}
	if m.TransferEncoding, err = single(h, "Content-Transfer-Encoding"); err != nil {
		return m, err
	}
	m.ContentDisposition, err = single(h, "Content-Disposition")
	return m, err
}

// single returns the value of a header that must not stand twice with different values.
func single(h http.Header, name string) (string, error) {
	vs := Values(h, name)
	if len(vs) == 0 {
		return "", nil
	}
	for _, v := range vs[1:] {
		if v != vs[0] {
			return "", &HeaderError{Field: name, Problem: "stands more than once with different values; send it once"}
		}
	}
	if i := strings.IndexFunc(vs[0], isControl); i >= 0 {
		return "", &HeaderError{Field: name, Problem: fmt.Sprintf("holds a control character at position %d; remove it", i+1)}
	}
	return strings.Trim(vs[0], " \t"), nil
}

func nameHeader(h http.Header, field string) (string, error) {
	v, err := single(h, field)
	if err != nil {
		return "", err
	}
	if v == "" {
		return "", &HeaderError{Field: field, Problem: "is missing; send the AS2 name (RFC 4130 §6.2)"}
	}
	name, err := UnquoteName(v)
	if err != nil {
		return "", &HeaderError{Field: field, Problem: err.Error()}
	}
	return name, nil
}

// UnquoteName reads an AS2 name as it stands in a header (RFC 4130 §6.2). Names with blanks that
// are not quoted are accepted, because some senders write them so.
func UnquoteName(v string) (string, error) {
	name := v
	if strings.HasPrefix(v, `"`) {
		var b strings.Builder
		closed := false
		for i := 1; i < len(v); i++ {
			switch {
			case v[i] == '\\' && i+1 < len(v):
				i++
				b.WriteByte(v[i])
			case v[i] == '"' && i == len(v)-1:
				closed = true
			case v[i] == '"' || v[i] == '\\':
				return "", fmt.Errorf("has a %q inside the quotes at position %d; put a backslash before it", v[i], i+1)
			default:
				b.WriteByte(v[i])
			}
		}
		if !closed {
			return "", errors.New("has no closing quote")
		}
		name = b.String()
	}
	if name == "" {
		return "", errors.New("is an empty AS2 name")
	}
	if len(name) > MaxName {
		return "", fmt.Errorf("is longer than %d characters", MaxName)
	}
	for i := range len(name) {
		if name[i] < ' ' || name[i] > '~' {
			return "", fmt.Errorf("holds a byte that is not printable ASCII at position %d", i+1)
		}
	}
	return name, nil
}

// QuoteName writes an AS2 name for a header: quoted where it holds a blank, a quote or a
// backslash (RFC 4130 §6.2). The name must be printable ASCII, as UnquoteName checks.
func QuoteName(name string) string {
	if name != "" && !strings.ContainsAny(name, ` "\`) {
		return name
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
}

func checkMessageID(id string) error {
	switch {
	case NormalizeMessageID(id) == "":
		return &HeaderError{Field: "Message-ID", Problem: "is missing or empty; send a unique id in angle brackets"}
	case len(id) > MaxMessageID:
		return &HeaderError{Field: "Message-ID", Problem: fmt.Sprintf("is longer than %d characters", MaxMessageID)}
	}
	for i := range len(id) {
		if id[i] < ' ' || id[i] > '~' {
			return &HeaderError{Field: "Message-ID", Problem: fmt.Sprintf("holds a byte that is not printable ASCII at position %d", i+1)}
		}
	}
	return nil
}

// NormalizeMessageID returns the form in which Message-IDs are compared: without surrounding
// blanks and angle brackets, whichever of them are there. What is inside is compared exactly.
func NormalizeMessageID(id string) string {
	id = strings.Trim(id, " \t\r\n")
	id = strings.TrimPrefix(id, "<")
	id = strings.TrimSuffix(id, ">")
	return strings.Trim(id, " \t")
}

// BracketMessageID returns the id in angle brackets, as we send it.
func BracketMessageID(id string) string { return "<" + NormalizeMessageID(id) + ">" }

// ParseReceiptOptions reads Disposition-Notification-Options: parameters by name, in any order
// and case. A missing importance counts as optional, unknown parameters are passed over.
func ParseReceiptOptions(v string) ReceiptOptions {
	var o ReceiptOptions
	protocolSeen := false
	if strings.Count(v, `"`)%2 == 1 {
		v = strings.ReplaceAll(v, `"`, "") // a quote that never closes must not hide what follows
	}
	for _, param := range splitUnquoted(v, ';') {
		name, value, ok := strings.Cut(param, "=")
		if !ok {
			continue
		}
		required := false
		var values []string
		for i, item := range splitUnquoted(value, ',') {
			item = strings.Trim(item, " \t\r\n\"")
			switch {
			case i == 0 && strings.EqualFold(item, "required"):
				required = true
			case i == 0 && strings.EqualFold(item, "optional"):
			case item != "":
				values = append(values, printable(item))
			}
		}
		switch strings.ToLower(strings.Trim(name, " \t\r\n\"")) {
		case "signed-receipt-protocol":
			protocolSeen = true
			o.ProtocolRequired = o.ProtocolRequired || required
			o.Protocols = append(o.Protocols, values...)
		case "signed-receipt-micalg":
			o.MICRequired = o.MICRequired || required
			o.MICAlgs = append(o.MICAlgs, values...)
		}
	}
	// A micalg without a protocol still asks for a signed receipt; there is only one protocol.
	o.Signed = slices.ContainsFunc(o.Protocols, isReceiptProtocol) || !protocolSeen && len(o.MICAlgs) > 0
	return o
}

// splitUnquoted splits at sep outside of double quotes.
func splitUnquoted(s string, sep byte) []string {
	var out []string
	quoted, start := false, 0
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
		case s[i] == '"':
			quoted = !quoted
		case !quoted && s[i] == sep:
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// printable drops control characters, so that a value can be logged, stored and echoed.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if isControl(r) {
			return -1
		}
		return r
	}, s)
	return strings.ToValidUTF8(s, "\uFFFD")
}

// IsMDN reports whether a request is a disposition notification and not a message: its content,
// or what its signature covers, is multipart/report. It reads no more than the first headers.
func IsMDN(m MIMEHeaders, body edi.Source) bool {
	mt, params, err := parseMediaType(m.ContentType)
	if err != nil {
		return false
	}
	if mt == "multipart/report" {
		return true
	}
	if mt != "multipart/signed" {
		return false
	}
	limits := Limits{}.withDefaults()
	window := section(body, 0, min(body.Size(), int64(2*limits.HeaderBytes)))
	first, ok := firstPart(window, params["boundary"])
	if !ok {
		return false
	}
	head, _, err := readHeader(first, limits)
	if err != nil {
		return false
	}
	mt, _, err = parseMediaType(head.get("Content-Type"))
	return err == nil && mt == "multipart/report"
}
