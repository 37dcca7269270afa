package x12

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Writer writes a whole interchange segment by segment: envelopes, counts and references are its
// business. Values are ASCII text without delimiters, because X12 cannot release them. The first
// error stops it and comes from Close: a *ValueError. It is not safe for concurrent use.
type Writer struct {
	w        *writer
	o        EnvelopeOptions
	out      []byte
	groups   int
	group    *GroupOptions
	body     bytes.Buffer // of the open group
	ref      string       // ST02 of the open set
	segments int          // of the open set; 0 outside of one
}

// NewWriter begins an interchange. Groups and Original of the options are not used; Delimiters
// are free, and those that are zero are * > ~.
func NewWriter(o EnvelopeOptions) (*Writer, error) {
	d := o.Delimiters
	for _, x := range []struct {
		to        *byte
		otherwise byte
	}{{&d.Element, '*'}, {&d.Component, '>'}, {&d.Segment, '~'}} {
		if *x.to == 0 {
			*x.to = x.otherwise
		}
	}
	d.Decimal = 0
	o.Original, o.Delimiters = d, d
	w, header, err := openEnvelope(&o)
	if err != nil {
		return nil, err
	}
	return &Writer{w: w, o: o, out: header}, nil
}

// Interchange writes a segment of the interchange level, such as TA1, before any group.
func (w *Writer) Interchange(tag string, elements ...string) {
	if w.groups > 0 || w.group != nil {
		w.w.fail("segment", tag, "stands not before the groups")
	}
	w.out = append(w.out, w.w.segment(tag, w.values(elements)...)...)
}

// Group opens a functional group and closes the one before. Sets is counted.
func (w *Writer) Group(g GroupOptions) {
	w.closeGroup()
	g.Sets = 0
	w.group = &g
}

func (w *Writer) closeGroup() {
	if w.segments > 0 {
		w.w.fail("transaction set", w.ref, "is not closed")
	}
	if w.group == nil {
		return
	}
	if w.groups++; w.groups > maxGroups {
		w.w.fail("number of groups", strconv.Itoa(w.groups), "is not between 1 and 99999")
	}
	env := w.w.group(&w.o, *w.group)
	w.out = append(w.out, env.Open...)
	w.out = append(w.out, w.body.Bytes()...)
	w.out = append(w.out, env.Close...)
	w.body.Reset()
	w.group = nil
}

// Begin opens a transaction set: ST01 of 3 characters, ST02 of 4 to 9, and ST03 where it is not
// empty.
func (w *Writer) Begin(typ, ref, implementation string) {
	switch {
	case w.group == nil:
		w.w.fail("transaction set", ref, "stands outside a functional group")
		return
	case w.segments > 0:
		w.w.fail("transaction set", ref, "begins inside another one")
	}
	w.group.Sets++
	w.segments, w.ref = 0, w.w.value("ST02 control reference", ref, 4, 9)
	w.put("ST", w.w.value("ST01 transaction set", typ, 3, 3), w.ref, w.w.value("ST03 implementation", implementation, 0, 35))
}

// Segment writes a segment of the open set. Empty elements at the end are left out. An element of
// several components is written by Composite.
func (w *Writer) Segment(tag string, elements ...string) {
	if w.segments == 0 {
		w.w.fail("segment", tag, "stands outside a transaction set")
	}
	if len(tag) < 2 || len(tag) > 3 || strings.ContainsFunc(tag, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) {
		w.w.fail("segment tag", tag, "is not two or three capital letters or digits")
	}
	w.put(tag, w.values(elements)...)
}

// composite marks the separators that Composite writes between components. No value can hold it.
const composite = "\x00"

// Composite is an element of several components for Segment.
func Composite(components ...string) string {
	for len(components) > 0 && components[len(components)-1] == "" {
		components = components[:len(components)-1]
	}
	return strings.Join(components, composite)
}

func (w *Writer) put(tag string, elements ...string) {
	for len(elements) > 0 && elements[len(elements)-1] == "" {
		elements = elements[:len(elements)-1]
	}
	w.segments++
	w.body.Write(w.w.segment(tag, elements...))
}

// maxValue is more than any data element but binary ones has.
const maxValue = 1 << 16

func (w *Writer) values(in []string) []string {
	out := make([]string, len(in))
	for i, v := range in {
		parts := strings.Split(v, composite)
		for _, p := range parts {
			// Blanks at the end stay: they fill a value up to its least length (X12.6 §3.5.1.4).
			w.w.value(fmt.Sprintf("element %d", i+1), p, 0, maxValue)
		}
		out[i] = strings.Join(parts, string([]byte{w.w.d.Component}))
	}
	return out
}

// End closes the open set with its SE.
func (w *Writer) End() {
	if w.segments == 0 {
		w.w.fail("SE", "", "closes no transaction set")
	}
	w.put("SE", strconv.Itoa(w.segments+1), w.ref)
	w.segments = 0
}

// Close writes the IEA and returns the interchange. One without groups is fine: it carries
// segments of the interchange level.
func (w *Writer) Close() ([]byte, error) {
	w.closeGroup()
	out := append(w.out, w.w.iea(&w.o, w.groups)...)
	if w.w.err != nil {
		return nil, w.w.err
	}
	return out, nil
}
