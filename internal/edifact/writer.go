package edifact

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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
// released. A value that is too long, empty where it must not be, or outside the character set
// gives a *ValueError: all values must be printable ASCII, and those of UNOA and UNOB of the
// smaller sets of ISO 9735 annex A.
func WriteEnvelope(o EnvelopeOptions) (header, trailer []byte, err error) {
	if o.Syntax == "" {
		o.Syntax = "UNOC:3"
	}
	w := writer{}
	identifier, version, err := syntax(o.Syntax)
	if err != nil {
		return nil, nil, err
	}
	w.level = identifier
	if w.d, err = delimiters(o, version); err != nil {
		return nil, nil, err
	}
	const maxMessages = 999_999
	switch {
	case o.Messages < 1 || o.Messages > maxMessages:
		return nil, nil, &ValueError{"number of messages", strconv.Itoa(o.Messages), "is not between 1 and 999999"}
	case o.Time.IsZero():
		return nil, nil, &ValueError{"time", "", "is not set"}
	case o.LineBreak != "" && o.LineBreak != "\n" && o.LineBreak != "\r\n":
		return nil, nil, &ValueError{"line break", o.LineBreak, "is not LF or CR LF"}
	}
	if o.UNA || w.needsUNA(version) {
		w.una()
		w.out = append(w.out, o.LineBreak...)
	}
	w.unb(o, identifier, version)
	if w.err != nil {
		return nil, nil, w.err
	}
	header = slices.Concat(w.out, []byte(o.LineBreak))
	w.out = nil
	w.raw("UNZ")
	w.element(strconv.Itoa(o.Messages))
	w.element(w.value("control reference", o.ControlRef, 1, 14))
	w.out = append(w.out, w.d.Segment)
	return header, append(w.out, o.LineBreak...), w.err
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
func delimiters(o EnvelopeOptions, version int) (edi.Delimiters, error) {
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
	d     edi.Delimiters
	level string
	out   []byte
	err   error
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

func (w *writer) unb(o EnvelopeOptions, identifier string, version int) {
	w.raw("UNB")
	w.element(identifier, strconv.Itoa(version))
	w.element(w.value("sender id", o.Sender.ID, 1, 35), w.value("sender qualifier", o.Sender.Qualifier, 0, 4))
	w.element(w.value("receiver id", o.Receiver.ID, 1, 35), w.value("receiver qualifier", o.Receiver.Qualifier, 0, 4))
	day := "060102"
	if version >= 4 { // 0017 has eight digits in syntax 4.
		day = "20060102"
	}
	w.element(o.Time.Format(day), o.Time.Format("1504"))
	w.element(w.value("control reference", o.ControlRef, 1, 14))
	flag := func(on bool) string {
		if on {
			return "1"
		}
		return ""
	}
	rest := []string{"", "", "", flag(o.AckRequest), "", flag(o.Test)} // S005, 0026, 0029, 0031, 0032, 0035
	for len(rest) > 0 && rest[len(rest)-1] == "" {
		rest = rest[:len(rest)-1]
	}
	for _, v := range rest {
		w.element(v)
	}
	w.out = append(w.out, w.d.Segment)
}

// value checks a value and releases the delimiters in it.
func (w *writer) value(field, v string, least, most int) string {
	fail := func(reason string) string {
		if w.err == nil {
			w.err = &ValueError{field, v, reason}
		}
		return ""
	}
	v = strings.TrimRight(v, " ")
	if len(v) < least || len(v) > most {
		return fail(fmt.Sprintf("has %d characters, not %d to %d", len(v), least, most))
	}
	var b strings.Builder
	for i := range len(v) {
		c := v[i]
		if !w.carries(c) {
			return fail(fmt.Sprintf("has the character %q, which %s cannot carry", c, w.level))
		}
		if c == w.d.Element || c == w.d.Component || c == w.d.Segment || c == w.d.Repetition || c == w.d.Release {
			if w.d.Release == 0 {
				return fail(fmt.Sprintf("has the delimiter %q, and there is no release character", c))
			}
			b.WriteByte(w.d.Release)
		}
		b.WriteByte(c)
	}
	return b.String()
}

// carries reports whether a value of the envelope may hold a character.
func (w *writer) carries(c byte) bool { return Carries(w.level, c) }

// Carries reports whether a syntax level ("UNOA") has a printable ASCII character (ISO 9735-1
// annex A). All levels but UNOA and UNOB have all of them; other characters are not looked at.
func Carries(level string, c byte) bool {
	switch {
	case c < ' ' || c > '~':
		return false
	case level != "UNOA" && level != "UNOB":
		return true
	case c >= 'a' && c <= 'z':
		return level == "UNOB"
	case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return strings.IndexByte(" .,-()/='+:?!\"%&*;<>", c) >= 0
}
