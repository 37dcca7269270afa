package edifact

import (
	"fmt"
	"strconv"
)

// Writer writes a whole interchange segment by segment: header and trailers, counts and
// references, release characters and the character set are its business. Values are UTF-8 text.
// The first error stops it and comes from Close: a *ValueError, or a *DelimiterError. It is not
// safe for concurrent use.
type Writer struct {
	w        *writer
	o        EnvelopeOptions
	messages int
	segments int // of the open message; 0 outside of one
	ref      string
}

// NewWriter begins an interchange. Messages and Original of the options are not used: messages
// are counted, and Delimiters are free, those of the syntax version where they are zero.
func NewWriter(o EnvelopeOptions) (*Writer, error) {
	if o.Syntax == "" {
		o.Syntax = "UNOC:3"
	}
	_, version, err := syntax(o.Syntax)
	if err != nil {
		return nil, err
	}
	d := defaults()
	if version >= 4 {
		d.Repetition = '*'
	}
	for _, x := range []struct {
		to   *byte
		want byte
	}{
		{&d.Component, o.Delimiters.Component}, {&d.Element, o.Delimiters.Element}, {&d.Decimal, o.Delimiters.Decimal},
		{&d.Release, o.Delimiters.Release}, {&d.Repetition, o.Delimiters.Repetition}, {&d.Segment, o.Delimiters.Segment},
	} {
		if x.want != 0 {
			*x.to = x.want
		}
	}
	o.Original, o.Delimiters, o.Messages = d, d, 1
	return newWriter(o)
}

// newWriter begins an interchange with the delimiters of Original, as they are.
func newWriter(o EnvelopeOptions) (*Writer, error) {
	o.Messages = 1
	w, err := openEnvelope(&o)
	if err != nil {
		return nil, err
	}
	return &Writer{w: w, o: o}, nil
}

// Begin opens a message: UNH with its reference 0062 and the components of S009, such as
// "ORDERS", "D", "96A", "UN".
func (w *Writer) Begin(ref string, identifier ...string) {
	const least = 4 // S009: 0065, 0052, 0054 and 0051 are mandatory.
	switch {
	case w.segments > 0:
		w.w.fail("message", ref, "begins inside another one")
	case w.messages >= maxMessages:
		w.w.fail("number of messages", strconv.Itoa(w.messages+1), "is not between 1 and 999999")
	case len(identifier) < least:
		w.w.fail("message identifier", fmt.Sprint(identifier), "has not its four components")
	}
	w.messages++
	w.segments, w.ref = 0, w.w.value("message reference", ref, 1, 14)
	w.put("UNH", []string{w.ref}, w.values(identifier))
}

// Segment writes a segment of the open message: its elements, each with its components. Empty
// ones at the end are left out.
func (w *Writer) Segment(tag string, elements ...[]string) {
	if w.segments == 0 {
		w.w.fail("segment", tag, "stands outside a message")
	}
	if len(tag) != 3 || !capitals(tag) {
		w.w.fail("segment tag", tag, "is not three capital letters or digits")
	}
	out := make([][]string, len(elements))
	for i, e := range elements {
		out[i] = w.values(e)
	}
	w.put(tag, out...)
}

// End closes the open message with its UNT.
func (w *Writer) End() {
	if w.segments == 0 {
		w.w.fail("UNT", "", "closes no message")
	}
	w.put("UNT", []string{strconv.Itoa(w.segments + 1)}, []string{w.ref})
	w.segments = 0
}

// Close writes the UNZ and returns the interchange.
func (w *Writer) Close() ([]byte, error) {
	switch {
	case w.segments > 0:
		w.w.fail("message", w.ref, "is not closed")
	case w.messages == 0:
		w.w.fail("number of messages", "0", "is not between 1 and 999999")
	}
	w.w.unz(&w.o, w.messages)
	if w.w.err != nil {
		return nil, w.w.err
	}
	return w.w.out, nil
}

func (w *Writer) put(tag string, elements ...[]string) {
	w.segments++
	w.w.segment(tag, elements...)
}

// maxValue is more than any data element of a directory has.
const maxValue = 1 << 16

func (w *Writer) values(in []string) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = w.w.value("value", v, 0, maxValue)
	}
	return out
}

func capitals(s string) bool {
	for i := range len(s) {
		if (s[i] < 'A' || s[i] > 'Z') && (s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return true
}
