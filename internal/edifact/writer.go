package edifact

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/edihub/edihub/internal/edi"
)

// EnvelopeOptions say what an interchange around unchanged messages looks like.
type EnvelopeOptions struct {
	Syntax     string         // S001: identifier and version 1 to 4; default "UNOC:3"
	Sender     edi.Party      // S002: 0004 of 1 to 35 characters, 0007 of at most 4
	Receiver   edi.Party      // S003: likewise
	ControlRef string         // 0020: 1 to 14 characters
	Time       time.Time      // S004, written in the time's own zone; must be set
	Test       bool           // 0035 = 1
	AckRequest bool           // 0031 = 1
	Messages   int            // how many messages stand between header and trailer, 1 to 999,999
	UNA        bool           // write a UNA; one is written anyway where the delimiters need it
	Original   edi.Delimiters // those of the messages' bytes, from their interchange; all zero: the default ones
	Delimiters edi.Delimiters // those wanted; zero fields follow Original
	LineBreak  string         // written after UNA, UNB and UNZ: "", "\n" or "\r\n"

	SenderRouting     string         // S002 0008, at most 14 characters
	SenderSub         string         // S002 0042, at most 35 characters, syntax 4
	ReceiverRouting   string         // S003 0014, at most 14 characters
	ReceiverSub       string         // S003 0046, at most 35 characters, syntax 4
	Password          string         // S005 0022, at most 14 characters
	PasswordQualifier string         // S005 0025, none or 2 characters, only with a password
	ApplicationRef    string         // 0026, at most 14 characters
	Priority          string         // 0029, none or 1 letter
	Agreement         string         // 0032, at most 35 characters
	Zone              *time.Location // the zone of S004; nil leaves that of Time

	// quoted says that all values are bytes of the character set already.
	quoted bool
}

// ErrDelimiters is inside each *DelimiterError.
var ErrDelimiters = errors.New("the delimiters differ from those of the messages, which are copied unchanged")

// DelimiterError says that a delimiter is wanted that the messages' bytes do not have. The caller
// may leave the delimiters to the original, or refuse the route.
type DelimiterError struct {
	Delimiter        string // "element", "component", …
	Wanted, Original byte
}

// Error implements error.
func (e *DelimiterError) Error() string {
	return fmt.Sprintf("the %s delimiter wanted is %q, that of the messages %q: %v", e.Delimiter, e.Wanted, e.Original, ErrDelimiters)
}

// Unwrap returns ErrDelimiters.
func (e *DelimiterError) Unwrap() error { return ErrDelimiters }

// ValueError says that a value cannot stand in an envelope.
type ValueError struct {
	Field  string // "sender id", …
	Value  string
	Reason string
}

// Error implements error.
func (e *ValueError) Error() string { return fmt.Sprintf("%s %q %s", e.Field, e.Value, e.Reason) }

// WriteEnvelope returns the bytes before and behind the messages of a new interchange: a UNA
// where one is needed, the UNB, and the UNZ. The messages stand between them as they were read,
// UNH to UNT with its terminator, one behind the other; CR and LF may stand between them. Groups
// are not written.
//
// The messages' bytes are not changed, so that their delimiters hold: wanting another one gives
// a *DelimiterError. A syntax below 4 is refused for messages with a repetition separator. Where
// a syntax 4 interchange holds messages without one, its UNA says so. Delimiters in values are
// released. Values are UTF-8 text and are written in the character set of the syntax identifier
// (ISO 9735-1 annex A). One that is too long, empty where it must not be, or has a character that
// the set does not have gives a *ValueError; nothing is ever replaced by another character.
func WriteEnvelope(o EnvelopeOptions) (header, trailer []byte, err error) {
	w, err := openEnvelope(&o)
	if err != nil {
		return nil, nil, err
	}
	header, w.out = w.out, nil
	w.unz(&o, o.Messages)
	return header, w.out, w.err
}

// openEnvelope writes the header of an interchange.
func openEnvelope(o *EnvelopeOptions) (*writer, error) {
	if o.Syntax == "" {
		o.Syntax = "UNOC:3"
	}
	w := &writer{quoted: o.quoted, lineBreak: o.LineBreak}
	identifier, version, err := syntax(o.Syntax)
	if err != nil {
		return nil, err
	}
	w.level, w.version = identifier, version
	if w.d, err = delimiters(o, version); err != nil {
		return nil, err
	}
	switch {
	case o.Time.IsZero():
		return nil, &ValueError{"time", "", "is not set"}
	case o.LineBreak != "" && o.LineBreak != "\n" && o.LineBreak != "\r\n":
		return nil, &ValueError{"line break", o.LineBreak, "is not LF or CR LF"}
	case o.Messages < 1 || o.Messages > maxMessages:
		return nil, &ValueError{"number of messages", strconv.Itoa(o.Messages), "is not between 1 and 999999"}
	}
	if o.UNA || w.needsUNA(version) {
		w.una()
		w.out = append(w.out, o.LineBreak...)
	}
	w.unb(o, identifier, version)
	return w, w.err
}

// maxMessages is the largest 0036.
const maxMessages = 999_999

func (w *writer) unz(o *EnvelopeOptions, messages int) {
	w.raw("UNZ")
	w.element(strconv.Itoa(messages))
	w.element(w.value("control reference", o.ControlRef, 1, 14))
	w.endSegment()
}

// endSegment writes the terminator, and the line break behind it.
func (w *writer) endSegment() {
	w.out = append(w.out, w.d.Segment)
	w.out = append(w.out, w.lineBreak...)
}

// syntax splits "UNOC:3".
func syntax(s string) (identifier string, version int, err error) {
	identifier, v, _ := strings.Cut(s, ":")
	version, e := strconv.Atoi(v)
	if e != nil || version < 1 || version > 4 || Charset(identifier) == "" {
		return "", 0, &ValueError{"syntax", s, `is not a syntax identifier and version such as "UNOC:3"`}
	}
	if identifier == "UNOX" || identifier == "UNOY" {
		return "", 0, &ValueError{"syntax", s, "needs more than one byte a character, which is not written"}
	}
	return identifier, version, nil
}

// delimiters are those of the original, if nothing else is wanted and the syntax can have them.
func delimiters(o *EnvelopeOptions, version int) (edi.Delimiters, error) {
	d := o.Original
	if d == (edi.Delimiters{}) {
		d = defaults()
		if version >= 4 {
			d.Repetition = '*'
		}
	}
	if d.Decimal == 0 {
		d.Decimal = '.'
	}
	want := o.Delimiters
	for _, c := range []struct {
		name           string
		wanted, actual byte
	}{
		{"component", want.Component, d.Component}, {"element", want.Element, d.Element}, {"decimal", want.Decimal, d.Decimal},
		{"release", want.Release, d.Release}, {"repetition", want.Repetition, d.Repetition}, {"segment", want.Segment, d.Segment},
	} {
		if c.wanted != 0 && c.wanted != c.actual {
			return d, &DelimiterError{c.name, c.wanted, c.actual}
		}
	}
	if version < 4 && d.Repetition != 0 {
		return d, &ValueError{"syntax", o.Syntax, "has no repetition separator, which the messages use; name a syntax of version 4"}
	}
	seen := ""
	for _, c := range []byte{d.Component, d.Element, d.Segment, d.Release, d.Repetition} {
		if c == 0 && len(seen) >= 3 {
			continue
		}
		if !plausible(c) || strings.IndexByte(seen, c) >= 0 {
			return d, &ValueError{"delimiter", string([]byte{c}), "is given twice or is no special character"}
		}
		seen += string([]byte{c})
	}
	return d, nil
}

// writer builds segments and keeps the first error.
type writer struct {
	d         edi.Delimiters
	level     string
	version   int
	lineBreak string
	quoted    bool
	out       []byte
	err       error
}

// needsUNA reports whether a reader would take other delimiters without one.
func (w *writer) needsUNA(version int) bool {
	d := defaults()
	if version >= 4 {
		d.Repetition = '*'
	}
	return w.d != d
}

func (w *writer) una() {
	used := func(c byte) byte {
		if c == 0 {
			return ' '
		}
		return c
	}
	w.raw("UNA")
	w.out = append(w.out, w.d.Component, w.d.Element, w.d.Decimal, used(w.d.Release), used(w.d.Repetition), w.d.Segment)
}

func (w *writer) raw(s string) { w.out = append(w.out, s...) }

// element writes an element separator and components that are released already.
func (w *writer) element(components ...string) {
	for len(components) > 1 && components[len(components)-1] == "" {
		components = components[:len(components)-1]
	}
	w.out = append(w.out, w.d.Element)
	for i, c := range components {
		if i > 0 {
			w.out = append(w.out, w.d.Component)
		}
		w.raw(c)
	}
}

func (w *writer) unb(o *EnvelopeOptions, identifier string, version int) {
	sender := []string{w.value("sender id", o.Sender.ID, 1, 35), w.value("sender qualifier", o.Sender.Qualifier, 0, 4), w.value("sender routing", o.SenderRouting, 0, 14)}
	receiver := []string{w.value("receiver id", o.Receiver.ID, 1, 35), w.value("receiver qualifier", o.Receiver.Qualifier, 0, 4), w.value("receiver routing", o.ReceiverRouting, 0, 14)}
	day := "060102"
	if version >= 4 { // 0017 has eight digits in syntax 4.
		day = "20060102"
		sender = append(sender, w.value("sender sub-identification", o.SenderSub, 0, 35))
		receiver = append(receiver, w.value("receiver sub-identification", o.ReceiverSub, 0, 35))
	} else if o.SenderSub+o.ReceiverSub != "" {
		w.fail("sub-identification", o.SenderSub+o.ReceiverSub, "needs syntax version 4")
	}
	at := o.Time
	if o.Zone != nil {
		at = at.In(o.Zone)
	}
	flag := func(on bool) string {
		if on {
			return "1"
		}
		return ""
	}
	if n := len(o.PasswordQualifier); n != 0 && (n != 2 || o.Password == "") {
		w.fail("password qualifier", o.PasswordQualifier, "is not 2 characters beside a password")
	}
	if p := o.Priority; p != "" && (p < "A" || p > "Z" || len(p) != 1) {
		w.fail("priority", p, "is not one capital letter")
	}
	w.segment("UNB", []string{identifier, strconv.Itoa(version)}, sender, receiver, []string{at.Format(day), at.Format("1504")},
		[]string{w.value("control reference", o.ControlRef, 1, 14)},
		[]string{w.value("password", o.Password, 0, 14), w.value("password qualifier", o.PasswordQualifier, 0, 2)},
		[]string{w.value("application reference", o.ApplicationRef, 0, 14)}, []string{o.Priority}, []string{flag(o.AckRequest)},
		[]string{w.value("agreement", o.Agreement, 0, 35)}, []string{flag(o.Test)})
}

// segment writes a whole segment of values that are released already. What is empty at its end
// is left out.
func (w *writer) segment(tag string, elements ...[]string) {
	for len(elements) > 0 && strings.Join(elements[len(elements)-1], "") == "" {
		elements = elements[:len(elements)-1]
	}
	w.raw(tag)
	for _, e := range elements {
		w.element(e...)
	}
	w.endSegment()
}

func (w *writer) fail(field, v, reason string) {
	if w.err == nil {
		w.err = &ValueError{field, v, reason}
	}
}

// value checks a value, brings it into the character set and releases the delimiters in it.
func (w *writer) value(field, v string, least, most int) string {
	v = strings.TrimRight(v, " ")
	n := len(v)
	if !w.quoted {
		n = utf8.RuneCountInString(v)
		b, bad := encode(w.level, v)
		if bad != "" {
			w.fail(field, v, fmt.Sprintf("has the character %q, which %s cannot carry", bad, w.level))
			return ""
		}
		v = b
	}
	if n < least || n > most {
		w.fail(field, v, fmt.Sprintf("has %d characters, not %d to %d", n, least, most))
		return ""
	}
	out, bad := w.release(v)
	switch bad {
	case 0:
		return out
	case w.d.Element, w.d.Component, w.d.Segment, w.d.Repetition:
		w.fail(field, v, fmt.Sprintf("has the delimiter %q, and there is no release character", bad))
	default:
		w.fail(field, v, fmt.Sprintf("has the character %q, which %s cannot carry", bad, w.level))
	}
	return ""
}

// release puts the release character before delimiters. bad is the first byte that cannot be
// written.
func (w *writer) release(v string) (out string, bad byte) {
	set := levelCharset(w.level)
	var b strings.Builder
	for i := range len(v) {
		c := v[i]
		delimiter := c == w.d.Element || c == w.d.Component || c == w.d.Segment || c == w.d.Repetition && c != 0 || c == w.d.Release && c != 0
		switch {
		case !set.Allows(c), delimiter && w.d.Release == 0:
			return "", c
		case delimiter:
			b.WriteByte(w.d.Release)
		}
		b.WriteByte(c)
	}
	return b.String(), 0
}

// Carries reports whether a syntax level ("UNOA") has a printable ASCII character (ISO 9735-1
// annex A). All levels but UNOA and UNOB have all of them; other characters are not looked at.
func Carries(level string, c byte) bool {
	set := levelCharset(level)
	return c >= ' ' && c <= '~' && (set == nil || set.Allows(c))
}
