// Package scantest holds what the tests of the EDIFACT and X12 splitters share: it collects and
// prints events and checks what must hold for any input.
package scantest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/scan"
)

// New makes a splitter.
type New func(io.Reader) edi.Splitter

// Collect returns all events of a splitter.
func Collect(sp edi.Splitter) ([]edi.Event, error) {
	var events []edi.Event
	for {
		ev, err := sp.Next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, ev)
	}
}

// Dump prints events for a comparison.
func Dump(events []edi.Event, err error) string {
	out, e := json.Marshal(events)
	if e != nil {
		return e.Error()
	}
	return fmt.Sprintf("%s\n%v", out, err)
}

// Rules lists the rules of all findings in the order of the events: fatal ones as they are,
// warnings with a "w:" before them.
func Rules(events []edi.Event) []string {
	rules := []string{}
	add := func(fs []edi.Finding) {
		for _, f := range fs {
			if f.Severity == edi.Warning {
				rules = append(rules, "w:"+f.Rule)
			} else {
				rules = append(rules, f.Rule)
			}
		}
	}
	for _, ev := range events {
		switch ev.Kind {
		case edi.MessageEnd:
			add(ev.Message.Findings)
		case edi.GroupEnd:
			add(ev.Group.Findings)
		case edi.InterchangeEnd:
			add(ev.Interchange.Findings)
		case edi.InterchangeBegin, edi.GroupBegin:
		}
	}
	return rules
}

// Check verifies what holds for any input: events come in order and in pairs, ranges lie inside
// the file and their parent, siblings are disjoint and ordered, sums agree, an interchange
// without trailer or header is not valid, and each finding says what to change.
func Check(t testing.TB, data []byte, events []edi.Event) {
	t.Helper()
	c := checker{t: t, size: int64(len(data))}
	for _, ev := range events {
		c.event(ev)
	}
	if c.ic != nil || c.group != nil {
		t.Error("something is still open after the last event")
	}
}

type checker struct {
	t        testing.TB
	size     int64
	ic       *edi.Interchange
	group    *edi.Group
	messages []*edi.Message
	groups   int
	inGroup  int
	lastEnd  int64 // of the interchange before
	msgEnd   int64
	groupEnd int64
}

func (c *checker) event(ev edi.Event) {
	c.t.Helper()
	if ev.Interchange == nil {
		c.t.Fatal("an event without its interchange")
	}
	switch ev.Kind {
	case edi.InterchangeBegin:
		if c.ic != nil {
			c.t.Error("an interchange begins inside another one")
		}
		c.ic = ev.Interchange
		c.messages, c.groups = nil, 0
		c.msgEnd, c.groupEnd = c.ic.Offset, c.ic.Offset
		if c.ic.Offset < c.lastEnd {
			c.t.Errorf("interchange at %d overlaps the one before, which ends at %d", c.ic.Offset, c.lastEnd)
		}
	case edi.GroupBegin:
		if c.group != nil {
			c.t.Error("a group begins inside another one")
		}
		c.group = ev.Group
		c.groups++
		c.inGroup = 0
	case edi.MessageEnd:
		c.message(ev.Message)
	case edi.GroupEnd:
		g := ev.Group
		if c.group == nil || g.Position != c.group.Position || g.Offset != c.group.Offset {
			c.t.Fatal("a group ends that did not begin")
		}
		if g.Messages != c.inGroup {
			c.t.Errorf("group says %d messages, %d came", g.Messages, c.inGroup)
		}
		c.inside("group", g.Offset, g.Length, c.groupEnd)
		c.groupEnd = g.Offset + g.Length
		c.findings(g.Findings)
		c.group = nil
	case edi.InterchangeEnd:
		c.interchange(ev.Interchange)
	default:
		c.t.Errorf("unknown kind of event %d", ev.Kind)
	}
}

func (c *checker) message(m *edi.Message) {
	c.t.Helper()
	if c.ic == nil {
		c.t.Fatal("a message outside an interchange")
	}
	c.messages = append(c.messages, m)
	if m.Position != len(c.messages) {
		c.t.Errorf("message %d says position %d", len(c.messages), m.Position)
	}
	if c.group != nil {
		c.inGroup++
		if m.Group != c.group.Position {
			c.t.Errorf("message %d says group %d in group %d", m.Position, m.Group, c.group.Position)
		}
	} else if m.Group != 0 {
		c.t.Errorf("message %d says group %d outside groups", m.Position, m.Group)
	}
	if m.Segments < 1 {
		c.t.Errorf("message %d has %d segments", m.Position, m.Segments)
	}
	c.inside("message", m.Offset, m.Length, c.msgEnd)
	c.msgEnd = m.Offset + m.Length
	c.findings(m.Findings)
}

func (c *checker) interchange(ic *edi.Interchange) {
	c.t.Helper()
	if c.ic == nil || c.group != nil || ic.Offset != c.ic.Offset {
		c.t.Fatal("an interchange ends that did not begin, or with an open group")
	}
	sum := 0
	for _, m := range c.messages {
		sum += m.Segments
		if m.Offset+m.Length > ic.Offset+ic.Length {
			c.t.Errorf("message %d reaches beyond its interchange", m.Position)
		}
	}
	if ic.Messages != len(c.messages) || ic.Groups != c.groups || ic.Segments < sum {
		c.t.Errorf("interchange says %d messages, %d groups, %d segments; %d, %d, %d came", ic.Messages, ic.Groups, ic.Segments, len(c.messages), c.groups, sum)
	}
	c.inside("interchange", ic.Offset, ic.Length, c.lastEnd)
	c.lastEnd = ic.Offset + ic.Length
	c.findings(ic.Findings)
	if (!ic.TrailerSeen || len(ic.Header) == 0) && !edi.HasFatal(ic.Findings) {
		c.t.Error("an interchange without header or trailer has no fatal finding")
	}
	c.ic = nil
}

func (c *checker) inside(what string, offset, length, from int64) {
	c.t.Helper()
	if offset < from || length < 0 || offset+length > c.size {
		c.t.Errorf("%s at %d+%d lies not between %d and %d", what, offset, length, from, c.size)
	}
}

func (c *checker) findings(fs []edi.Finding) {
	c.t.Helper()
	for _, f := range fs {
		if f.Rule == "" || f.Message == "" || f.Severity != edi.Fatal && f.Severity != edi.Warning || f.Offset < 0 || f.Offset > c.size {
			c.t.Errorf("incomplete finding %+v", f)
		}
	}
}

// Chunks checks that the events do not depend on how the input arrives: byte by byte, with data
// and end together, and cut in two at every place.
func Chunks(t testing.TB, data []byte, open New) {
	t.Helper()
	want := Dump(Collect(open(bytes.NewReader(data))))
	if got := Dump(Collect(open(iotest.OneByteReader(bytes.NewReader(data))))); got != want {
		t.Errorf("byte by byte:\n%s\nwant:\n%s", got, want)
	}
	if got := Dump(Collect(open(iotest.DataErrReader(bytes.NewReader(data))))); got != want {
		t.Errorf("data with the end:\n%s\nwant:\n%s", got, want)
	}
	for i := 1; i < len(data); i++ {
		r := io.MultiReader(bytes.NewReader(data[:i]), bytes.NewReader(data[i:]))
		if got := Dump(Collect(open(r))); got != want {
			t.Fatalf("cut at %d:\n%s\nwant:\n%s", i, got, want)
		}
	}
}

// ragged reads pieces of random length, empty ones among them.
type ragged struct {
	data []byte
	r    *rand.Rand
	most int
}

func (r *ragged) Read(b []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), r.r.IntN(r.most+1))], r.data)
	r.data = r.data[n:]
	return n, nil
}

// Ragged checks that the events do not depend on how the input is cut: seed decides.
func Ragged(t testing.TB, data []byte, seed uint64, open New) {
	t.Helper()
	want := Dump(Collect(open(bytes.NewReader(data))))
	for _, most := range []int{1, 7, 200} {
		r := &ragged{data: data, r: rand.New(rand.NewPCG(seed, uint64(most))), most: most} //nolint:gosec // G404: a test wants the same cuts again.
		if got := Dump(Collect(open(r))); got != want {
			t.Errorf("in pieces of at most %d bytes, seed %d:\n%s\nwant:\n%s", most, seed, got, want)
		}
	}
}

// Walk reads segments for a visitor.
type Walk func(r io.Reader, visit func(*scan.Visit)) (bool, error)

// Identity checks that the segments, written again from their tokens with what stands between
// them, are the file, byte for byte.
func Identity(t testing.TB, data []byte, walk Walk) {
	t.Helper()
	var out []byte
	last := int64(0)
	_, err := walk(bytes.NewReader(data), func(v *scan.Visit) {
		if v.Offset < last || v.End < v.Offset+int64(len(v.Raw)) || v.End > int64(len(data)) {
			t.Fatalf("segment %q at %d to %d after %d in a file of %d", v.Raw, v.Offset, v.End, last, len(data))
		}
		out = append(out, data[last:v.Offset]...)
		out = appendTokens(out, v)
		rest := data[v.Offset+int64(len(v.Raw)) : v.End]
		if v.Binary == 0 && (v.Terminated && (len(rest) != 1 || rest[0] != v.Delimiters.Segment) || !v.Terminated && len(rest) > 0) {
			t.Fatalf("segment %q at %d is followed by %q", v.Raw, v.Offset, rest)
		}
		out = append(out, rest...)
		last = v.End
	})
	if err != nil {
		return // a limit; what came before it was checked
	}
	if out = append(out, data[last:]...); !bytes.Equal(out, data) {
		t.Errorf("written again: %q, want %q", out, data)
	}
}

// appendTokens writes a segment from its tokens.
func appendTokens(out []byte, v *scan.Visit) []byte {
	if len(v.Raw) >= 3 && string(v.Raw[:3]) == "UNA" && v.Depth == 0 {
		return append(out, v.Raw...) // it names the delimiters and is not split by them
	}
	for i, token := range scan.AppendTokens(nil, v.Raw, v.Delimiters) {
		if i > 0 {
			out = append(out, map[scan.Kind]byte{scan.Element: v.Delimiters.Element, scan.Component: v.Delimiters.Component, scan.Repetition: v.Delimiters.Repetition}[token.Kind])
		}
		out = append(out, v.Raw[token.Start:token.End]...)
	}
	return out
}

// Truncations checks the invariants for every beginning of the input, and that a cut-off
// interchange is not valid.
func Truncations(t testing.TB, data []byte, open New) {
	t.Helper()
	for i := range data {
		events, err := Collect(open(bytes.NewReader(data[:i])))
		if err != nil {
			t.Fatalf("cut at %d: %v", i, err)
		}
		Check(t, data[:i], events)
	}
}
