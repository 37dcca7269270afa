package x12

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/edihub/edihub/internal/edi"
)

// EnvelopeOptions say what an interchange around unchanged transaction sets looks like.
type EnvelopeOptions struct {
	Version    string         // ISA12: 5 digits; default "00401"
	Sender     edi.Party      // ISA05 of 2 characters, ISA06 of 1 to 15
	Receiver   edi.Party      // ISA07, ISA08: likewise
	ControlRef string         // ISA13: 1 to 9 digits, padded with zeros to 9
	Time       time.Time      // ISA09, ISA10, GS04, GS05, in the time's own zone; must be set
	Test       bool           // ISA15 = T, else P
	AckRequest bool           // ISA14 = 1
	Groups     []GroupOptions // 1 to 99,999
	Original   edi.Delimiters // those of the sets' bytes, from their interchange; all zero: * > ~
	Delimiters edi.Delimiters // those wanted; zero fields follow Original
	LineBreak  string         // written after each segment of the envelope: "", "\n" or "\r\n"

	AuthorizationQualifier string         // ISA01, 2 characters; default "00"
	Authorization          string         // ISA02, at most 10 characters
	SecurityQualifier      string         // ISA03, 2 characters; default "00"
	Security               string         // ISA04, at most 10 characters
	Standards              string         // ISA11 where it is no repetition separator; default "U"
	Usage                  string         // ISA15: "P", "T" or "I"; default by Test
	Zone                   *time.Location // the zone of dates and times; nil leaves that of Time
	// Basic narrows values to the basic character set (X12.6 §3.3.1): capital letters, digits and
	// some special characters. Without it they are printable ASCII.
	Basic bool
}

// GroupOptions describe one functional group.
type GroupOptions struct {
	FunctionID string // GS01, that of the sets: 2 characters
	Sender     string // GS02: 2 to 15 characters; default the interchange sender
	Receiver   string // GS03: 2 to 15 characters; default the interchange receiver
	ControlRef string // GS06: 1 to 9 digits
	Version    string // GS08, that of the sets: 1 to 12 characters
	Sets       int    // number of transaction sets in the group: 1 to 999,999
	Agency     string // GS07: "X" or "T"; default "X"
}

// ErrDelimiters is inside each *DelimiterError.
var ErrDelimiters = errors.New("the delimiters differ from those of the transaction sets, which are copied unchanged")

// DelimiterError says that a delimiter is wanted that the sets' bytes do not have. The caller may
// leave the delimiters to the original, or refuse the route.
type DelimiterError struct {
	Delimiter        string // "element", "component", …
	Wanted, Original byte
}

// Error implements error.
func (e *DelimiterError) Error() string {
	return fmt.Sprintf("the %s delimiter wanted is %q, that of the transaction sets %q: %v", e.Delimiter, e.Wanted, e.Original, ErrDelimiters)
}

// Unwrap returns ErrDelimiters.
func (e *DelimiterError) Unwrap() error { return ErrDelimiters }

// ValueError says that a value cannot stand in an envelope.
type ValueError struct {
	Field  string // "ISA06 sender id", …
	Value  string
	Reason string
}

// Error implements error.
func (e *ValueError) Error() string { return fmt.Sprintf("%s %q %s", e.Field, e.Value, e.Reason) }

// Envelope is what stands around the sets: Header, then for each group its Open, its sets and
// its Close, then Trailer.
type Envelope struct {
	Header  []byte
	Groups  []GroupEnvelope
	Trailer []byte
}

// GroupEnvelope is the GS and GE of one group.
type GroupEnvelope struct{ Open, Close []byte }

// WriteEnvelope returns the envelope of a new interchange. The sets stand in it as they were
// read, ST to SE with its terminator, one behind the other; CR and LF may stand between them.
//
// The sets' bytes are not changed, so that their delimiters hold: wanting another one gives a
// *DelimiterError. ISA11 is the repetition separator of the original from version 00402 on and
// "U" where it has none, which readers take as "none"; an older version is refused for sets that
// have one, and so are sets with a release character (ISX). A value that is too long, too short,
// not printable ASCII, or holds a delimiter gives a *ValueError: X12 cannot release it.
func WriteEnvelope(o EnvelopeOptions) (Envelope, error) {
	if n := len(o.Groups); n < 1 || n > maxGroups {
		return Envelope{}, &ValueError{"number of groups", strconv.Itoa(n), "is not between 1 and 99999"}
	}
	w, header, err := openEnvelope(&o)
	if err != nil {
		return Envelope{}, err
	}
	env := Envelope{Header: header}
	for _, g := range o.Groups {
		env.Groups = append(env.Groups, w.group(&o, g))
	}
	env.Trailer = w.iea(&o, len(o.Groups))
	if w.err != nil {
		return Envelope{}, w.err
	}
	return env, nil
}

// maxGroups is the largest IEA01, maxSets the largest GE01.
const (
	maxGroups = 99_999
	maxSets   = 999_999
)

// openEnvelope writes the ISA.
func openEnvelope(o *EnvelopeOptions) (*writer, []byte, error) {
	if o.Version == "" {
		o.Version = "00401"
	}
	if o.Zone != nil && !o.Time.IsZero() {
		o.Time = o.Time.In(o.Zone)
	}
	w := &writer{lineBreak: o.LineBreak, basic: o.Basic}
	var err error
	if w.d, err = delimiters(*o); err != nil {
		return nil, nil, err
	}
	switch {
	case o.Time.IsZero():
		return nil, nil, &ValueError{"time", "", "is not set"}
	case o.LineBreak != "" && o.LineBreak != "\n" && o.LineBreak != "\r\n":
		return nil, nil, &ValueError{"line break", o.LineBreak, "is not LF or CR LF"}
	}
	return w, w.isa(o), w.err
}

// isaRef is ISA13 and IEA02.
func (w *writer) isaRef(o *EnvelopeOptions) string {
	ref := w.digits("ISA13 control reference", o.ControlRef)
	return strings.Repeat("0", max(0, 9-len(ref))) + ref
}

func (w *writer) iea(o *EnvelopeOptions, groups int) []byte {
	return w.segment("IEA", strconv.Itoa(groups), w.isaRef(o))
}

// delimiters are those of the original, if nothing else is wanted and the version can have them.
func delimiters(o EnvelopeOptions) (edi.Delimiters, error) {
	d := o.Original
	if d == (edi.Delimiters{}) {
		d = edi.Delimiters{Element: '*', Component: '>', Segment: '~'}
	}
	want := o.Delimiters
	for _, c := range []struct {
		name           string
		wanted, actual byte
	}{
		{"component", want.Component, d.Component}, {"element", want.Element, d.Element}, {"release", want.Release, d.Release},
		{"repetition", want.Repetition, d.Repetition}, {"segment", want.Segment, d.Segment},
	} {
		if c.wanted != 0 && c.wanted != c.actual {
			return d, &DelimiterError{c.name, c.wanted, c.actual}
		}
	}
	if len(o.Version) != 5 || !allDigits(o.Version) {
		return d, &ValueError{"ISA12 version", o.Version, "is not 5 digits"}
	}
	if d.Repetition != 0 && o.Version < "00402" {
		return d, &ValueError{"ISA12 version", o.Version, "has no repetition separator, which the transaction sets may use; name 00402 or later"}
	}
	if d.Release != 0 {
		return d, &ValueError{"release character", string([]byte{d.Release}), "of the transaction sets needs an ISX, which is not written"}
	}
	seen := ""
	for i, c := range []byte{d.Component, d.Element, d.Segment, d.Repetition} {
		if c == 0 && i == 3 {
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
	lineBreak string
	basic     bool
	err       error
}

func (w *writer) segment(tag string, elements ...string) []byte {
	out := []byte(tag)
	for _, e := range elements {
		out = append(append(out, w.d.Element), e...)
	}
	return append(append(out, w.d.Segment), w.lineBreak...)
}

// isa writes the ISA with its fixed widths (X12.5 ISA).
func (w *writer) isa(o *EnvelopeOptions) []byte {
	repetition := w.choice("ISA11 standards identifier", o.Standards, "U")
	if w.d.Repetition != 0 {
		repetition = string([]byte{w.d.Repetition})
	}
	request, usage := "0", "P"
	if o.AckRequest {
		request = "1"
	}
	if o.Test {
		usage = "T"
	}
	usage = w.choice("ISA15 usage", o.Usage, usage)
	if strings.IndexAny(usage, "PTI") != 0 {
		w.fail("ISA15 usage", usage, "is not P, T or I")
	}
	fixed := func(field, v string, least, most int) string {
		return fmt.Sprintf("%-*s", most, w.value(field, v, least, most))
	}
	qualifier := func(field, v string) string {
		if v == "" {
			v = "00"
		}
		return w.value(field, v, 2, 2)
	}
	return w.segment("ISA",
		qualifier("ISA01 authorization qualifier", o.AuthorizationQualifier), fixed("ISA02 authorization", o.Authorization, 0, 10),
		qualifier("ISA03 security qualifier", o.SecurityQualifier), fixed("ISA04 security", o.Security, 0, 10),
		w.value("ISA05 sender qualifier", o.Sender.Qualifier, 2, 2), fixed("ISA06 sender id", o.Sender.ID, 1, 15),
		w.value("ISA07 receiver qualifier", o.Receiver.Qualifier, 2, 2), fixed("ISA08 receiver id", o.Receiver.ID, 1, 15),
		o.Time.Format("060102"), o.Time.Format("1504"), repetition, o.Version, w.isaRef(o),
		request, usage, string([]byte{w.d.Component}))
}

// choice is a value of one letter with its default.
func (w *writer) choice(field, v, otherwise string) string {
	if v == "" {
		return otherwise
	}
	if v < "A" || v > "Z" || len(v) != 1 {
		w.fail(field, v, "is not one capital letter")
	}
	return v
}

func (w *writer) group(o *EnvelopeOptions, g GroupOptions) GroupEnvelope {
	if g.Sender == "" {
		g.Sender = o.Sender.ID
	}
	if g.Receiver == "" {
		g.Receiver = o.Receiver.ID
	}
	if g.Sets < 1 || g.Sets > maxSets {
		w.fail("number of sets", strconv.Itoa(g.Sets), "is not between 1 and 999999")
	}
	day := "20060102"
	if g.Version < "004" { // GS04 has six digits before 004010.
		day = "060102"
	}
	ref := w.digits("GS06 control reference", g.ControlRef)
	return GroupEnvelope{
		Open: w.segment("GS", w.value("GS01 functional identifier", g.FunctionID, 2, 2),
			w.value("GS02 sender", g.Sender, 2, 15), w.value("GS03 receiver", g.Receiver, 2, 15),
			o.Time.Format(day), o.Time.Format("1504"), ref, w.choice("GS07 agency", g.Agency, "X"), w.value("GS08 version", g.Version, 1, 12)),
		Close: w.segment("GE", strconv.Itoa(g.Sets), ref),
	}
}

func (w *writer) fail(field, v, reason string) {
	if w.err == nil {
		w.err = &ValueError{field, v, reason}
	}
}

// value checks a value: printable ASCII without delimiters, of a length.
func (w *writer) value(field, v string, least, most int) string {
	v = strings.TrimRight(v, " ")
	if len(v) < least || len(v) > most {
		w.fail(field, v, fmt.Sprintf("has %d characters, not %d to %d", len(v), least, most))
	}
	for i := range len(v) {
		switch c := v[i]; {
		case c < ' ' || c > '~':
			w.fail(field, v, fmt.Sprintf("has the character %q, which is not printable ASCII", c))
		case w.basic && !basic(c):
			w.fail(field, v, fmt.Sprintf("has the character %q, which is not in the basic character set", c))
		case c == w.d.Element || c == w.d.Component || c == w.d.Segment || c == w.d.Repetition:
			w.fail(field, v, fmt.Sprintf("has the delimiter %q, which X12 cannot release", c))
		}
	}
	return v
}

func (w *writer) digits(field, v string) string {
	if len(v) < 1 || len(v) > 9 || !allDigits(v) {
		w.fail(field, v, "is not 1 to 9 digits")
	}
	return v
}

func allDigits(v string) bool {
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' {
			return false
		}
	}
	return true
}

// basic reports whether the basic character set has a character (X12.6 §3.3.1).
func basic(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(" !\"&'()*+,-./:;?=", c) >= 0
}
