package tables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"sync"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/scan"
)

// Options say how one message is checked.
type Options struct {
	Delimiters edi.Delimiters
	// Base is the place of the message in its file, in bytes: offsets are counted from there.
	Base int64
	// Charset of the values; nil checks none.
	Charset *Charset
	// Marks are the decimal marks of numbers of type n; 0 is none.
	Marks [2]byte
	// Binary says which segments carry a length of binary data.
	Binary scan.Binary
	// Policy decides on severities; nil keeps the defaults.
	Policy *Policy
	// Guideline narrows the table; nil is none. It must be of the same Message.
	Guideline *Overlay
	// MaxFindings is the longest list; 0 is DefaultMaxFindings.
	MaxFindings int
	// MaxSegmentBytes is the largest segment, in bytes; 0 is scan.DefaultMaxSegmentBytes.
	MaxSegmentBytes int
	// Watch looks at segments whose values belong together; nil looks at none.
	Watch Watcher
}

// Watcher looks at the values of HL, LS and LE. add adds a finding at an element.
type Watcher interface {
	// Segment is called with each such segment and its number: ST is 1.
	Segment(tag string, segment int, value func(element int) []byte, add Adder)
	// End is called once behind the last segment.
	End(add Adder)
}

// Adder adds a finding. One without the number of a segment is about the segment at hand.
type Adder func(f edi.Finding)

// ctxEvery is after how many segments the context is asked.
const ctxEvery = 1024

// Check walks once through the message in r and returns what is wrong with it. Memory is bounded
// by the largest segment and the list of findings. Check is safe for concurrent use. An error is
// a failed read, an *edi.LimitError or that of ctx.
func (m *Message) Check(ctx context.Context, r io.Reader, o *Options) ([]edi.Finding, error) {
	x := runs.Get().(*run) //nolint:forcetypeassert // The pool holds nothing else.
	defer runs.Put(x)
	x.reset(m, o)
	stopped, err := x.all(ctx, r)
	if err != nil {
		return nil, err
	}
	return x.found.Take(stopped), nil
}

// CheckBy is Check as a guideline narrows the table; nil is none. A message that the guideline says
// nothing about is told so, ahead of what the table says.
func (m *Message) CheckBy(ctx context.Context, r io.Reader, o *Options, g *Guideline) ([]edi.Finding, error) {
	if g == nil {
		return m.Check(ctx, r, o)
	}
	overlay, ok := g.For(m)
	if !ok {
		found, err := m.Check(ctx, r, o)
		return prepend(found, o.Policy, noGuideline(g, m.Type(), o.Base)), err
	}
	o.Guideline = overlay
	return m.Check(ctx, r, o)
}

// Alone is the list of a message that cannot be checked, for the reason that f tells.
func (o *Options) Alone(f edi.Finding) []edi.Finding {
	c := newCollector(o.Policy, o.MaxFindings)
	c.Add(f)
	return c.Take(false)
}

// Peek reads the first bytes of a message, n at most, and gives back a reader that begins with them
// again.
func Peek(r io.Reader, n int) (head []byte, all io.Reader, err error) {
	head = make([]byte, n)
	n, err = io.ReadFull(r, head)
	head = head[:n]
	switch {
	case err == nil:
		return head, io.MultiReader(bytes.NewReader(head), r), nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return head, bytes.NewReader(head), nil
	}
	return nil, nil, err
}

// runs keeps what a check needs besides the tables, for the next one. Nothing of a message
// survives in it.
var runs = sync.Pool{New: func() any {
	x := &run{sc: scan.New(nil, 0, scan.Limits{}, scan.NoBinary), found: Collector{cache: make(map[string]edi.Severity)}}
	x.report = x.fault
	x.value1 = x.elementValue
	x.adder = x.watched
	return x
}}

// run is one check.
type run struct {
	m     *Message
	o     *Options
	sc    *scan.Scanner
	walk  walker
	found Collector
	utf8  bool
	marks [2]byte
	bad   [256]bool

	seg      *scan.Segment
	tokens   []scan.Token
	number1  int // of the segment at hand: UNH or ST is 1
	kind     int
	place    int
	trailing bool // a separator at the end was reported
	room     []byte
	misses   []miss

	from string // ruleset of the findings at hand where it is not the directory

	report func(fault)
	value1 func(int) []byte
	adder  Adder
}

// miss is a code that its list does not have, until the agency of the list is known.
type miss struct {
	token, component int
}

func (r *run) reset(m *Message, o *Options) {
	r.m, r.o = m, o
	policy := o.Policy
	if policy == nil {
		policy = &Policy{}
	}
	r.found.reset(policy, o.MaxFindings)
	r.walk.reset(m, r.report)
	r.marks = o.Marks
	r.utf8 = o.Charset != nil && o.Charset.UTF8
	r.number1, r.trailing = 0, false
	d := o.Delimiters
	if o.Charset != nil {
		r.bad = o.Charset.with(d.Component, d.Element, d.Release, d.Repetition)
	}
}

func (r *run) all(ctx context.Context, in io.Reader) (stopped bool, err error) {
	r.sc.Reset(in, r.o.Base, scan.Limits{MaxSegmentBytes: r.o.MaxSegmentBytes}, r.o.Binary)
	defer r.sc.Reset(nil, 0, scan.Limits{}, scan.NoBinary)
	r.sc.SetDelimiters(r.o.Delimiters)
	for {
		seg, tokens, err := r.sc.NextTokens()
		if err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return false, fmt.Errorf("check message: %w", err)
		}
		if len(seg.Raw) == 0 {
			continue
		}
		r.number1++
		if r.number1%ctxEvery == 0 {
			if err := ctx.Err(); err != nil {
				return false, fmt.Errorf("check message: %w", err)
			}
		}
		r.seg, r.tokens = seg, tokens
		r.segment()
		if r.found.Full() {
			return true, nil
		}
	}
	r.walk.end()
	if r.o.Watch != nil {
		r.o.Watch.End(r.adder)
	}
	return false, ctx.Err()
}

// segment checks the segment at hand.
func (r *run) segment() {
	tag := r.seg.Raw[r.tokens[0].Start:r.tokens[0].End]
	kind := r.m.byTag.find(tagKey(tag))
	r.kind = kind
	if kind == none {
		r.strange(tag)
		return
	}
	from := r.walk.now.pos
	r.walk.next(kind, r.number1, r.seg.Offset)
	r.place = r.walk.where()
	if r.m.nodes[r.place].kind != kind {
		r.place = none // it has no place, so nothing is known about what is around it
	}
	var guide *guideSegment
	if r.o.Guideline != nil {
		guide = r.o.Guideline.placed(r, from)
	}
	s := &r.m.kinds[kind]
	if r.o.Charset != nil && !r.good(r.seg.Raw) {
		r.characters(s)
	}
	r.elements(s, guide)
	if s.watch && r.o.Watch != nil {
		r.o.Watch.Segment(s.tag, r.number1, r.value1, r.adder)
	}
}

// strange reports a segment that the message does not have.
func (r *run) strange(tag []byte) {
	rule, text := edi.RuleSegmentUnknown, "no segment of the directory has this tag; remove the segment or correct the tag"
	if r.m.known[string(tag)] != nil || r.m.services[string(tag)] != nil {
		rule, text = edi.RuleSegmentNotInTable, "the message type "+r.m.typ+" has no such segment; remove it"
	}
	r.add(rule, edi.Finding{Segment: clip(tag), Position: edi.Position{Offset: r.seg.Offset}, Message: text})
	if r.o.Charset != nil && !r.good(r.seg.Raw) {
		r.characters(nil)
	}
}

// elements walks over the tokens of a segment.
func (r *run) elements(s *segment, guide *guideSegment) {
	raw, tokens := r.seg.Raw, r.tokens
	var present, parts uint64
	element, component, repetition := -1, 0, 1
	many := false
	var sl *slot
	for i := 1; i < len(tokens); i++ {
		t := &tokens[i]
		switch t.Kind {
		case scan.Element:
			if sl != nil && sl.composite && parts != 0 {
				r.composite(sl, parts, element, repetition, guide)
			}
			element++
			component, repetition, parts = 0, 1, 0
			sl = nil
			if element < len(s.slots) {
				sl = &s.slots[element]
			}
		case scan.Component:
			component++
		case scan.Repetition:
			if sl != nil && sl.composite && parts != 0 {
				r.composite(sl, parts, element, repetition, guide)
			}
			repetition++
			component, parts = 0, 0
		}
		if t.Start == t.End || raw[t.End-1] == ' ' && len(trim(raw[t.Start:t.End])) == 0 && !fixed(sl) {
			continue
		}
		switch {
		case sl == nil:
			if !many {
				many = true
				r.at(edi.RuleElementsMany, element, none, repetition, i, "", strconv.Itoa(len(s.slots)),
					"the segment has more elements than its table; remove what follows element "+strconv.Itoa(len(s.slots)))
			}
			continue
		case component >= len(sl.parts):
			if component == len(sl.parts) || parts>>63 == 0 {
				parts |= 1 << 63 // told once
				r.at(edi.RuleComponentsMany, element, component, repetition, i, sl.id, strconv.Itoa(len(sl.parts)),
					"the element has more components than its table; remove what follows component "+strconv.Itoa(len(sl.parts)))
			}
			continue
		}
		present |= 1 << element
		parts |= 1 << component
		if p := &sl.parts[component]; p.plain && guide == nil && repetition == 1 && !t.Released && t.End-t.Start <= p.short {
			continue // any text that is not too long
		}
		if component == 0 && repetition == int(sl.max)+1 {
			r.at(edi.RuleElementRepeat, element, none, repetition, i, sl.id, strconv.Itoa(int(sl.max)), "the element is repeated more often than its table allows; remove the repetitions beyond")
		}
		r.one(sl, element, component, repetition, i, guide)
	}
	if sl != nil && sl.composite && parts != 0 {
		r.composite(sl, parts, element, repetition, guide)
	}
	if r.seg.Binary > 0 && r.seg.BinaryElement > 0 && r.seg.BinaryElement < maxSlots {
		present |= 1 << r.seg.BinaryElement // the data follows its length
	}
	if s.mandatory&^present != 0 {
		r.missing(s, s.mandatory&^present)
	}
	if len(s.notes) > 0 {
		r.notes(s, present)
	}
	if guide != nil {
		guide.end(r, s, present)
	}
	if last := &tokens[len(tokens)-1]; last.Start == last.End && len(tokens) > 1 && !r.trailing && r.seg.Binary == 0 {
		r.trailing = true
		r.at(edi.RuleTrailing, element, none, 0, none, "", "", "a separator stands at the end of the segment behind the last value; leave out separators that nothing follows (told once a message)")
	}
}

func fixed(sl *slot) bool { return sl != nil && sl.parts[0].typ == TypeFixed }

// one checks the value of token i.
func (r *run) one(sl *slot, element, component, repetition, i int, guide *guideSegment) {
	t := &r.tokens[i]
	v := r.seg.Raw[t.Start:t.End]
	if t.Released {
		v = r.unescape(v)
	}
	p := &sl.parts[component]
	if p.unused {
		r.at(edi.RuleElementUnused, element, r.componentOf(sl, component), repetition, i, p.id, "", "the table does not use this element; leave it empty")
		return
	}
	f := r.value(p, v)
	if f == flawCode && sl.list != 0 && sl.list>>component&1 == 0 {
		r.misses = append(r.misses, miss{token: i, component: component})
		f = fine
	}
	if f != fine {
		r.flaw(f, sl, p, element, component, repetition, i)
	}
	if guide != nil {
		guide.value(r, sl, element, component, repetition, i, v)
	}
}

func (r *run) componentOf(sl *slot, component int) int {
	if sl.composite {
		return component
	}
	return none
}

// composite checks a composite behind its last component.
func (r *run) composite(sl *slot, parts uint64, element, repetition int, guide *guideSegment) {
	if len(r.misses) > 0 {
		if parts&sl.list == 0 || r.ownList(sl, element, repetition) {
			for _, x := range r.misses {
				r.flaw(flawCode, sl, &sl.parts[x.component], element, x.component, repetition, x.token)
			}
		}
		r.misses = r.misses[:0]
	}
	for gone := sl.mandatory &^ parts; gone != 0; gone &= gone - 1 {
		c := bits.TrailingZeros64(gone)
		r.at(edi.RuleComponentMissing, element, c, repetition, none, sl.parts[c].id, "", "the component is mandatory where its composite is used; send it or leave out the whole composite")
	}
	if guide != nil {
		guide.composite(r, sl, element, repetition, parts)
	}
}

// ownList reports whether a composite names the United Nations as keeper of its code list and no
// list of its own, so that the directory's list holds.
func (r *run) ownList(sl *slot, element, repetition int) bool {
	const un = "6"
	for i, p := range sl.parts {
		v := r.token(element, i, repetition)
		if p.id == "1131" && len(v) > 0 || p.id == "3055" && len(v) > 0 && string(trim(v)) != un {
			return false
		}
	}
	return true
}

// token returns the bytes of a component as they stand.
func (r *run) token(element, component, repetition int) []byte {
	e, c, n := -1, 0, 1
	for i := 1; i < len(r.tokens); i++ {
		switch r.tokens[i].Kind {
		case scan.Element:
			e, c, n = e+1, 0, 1
		case scan.Component:
			c++
		case scan.Repetition:
			c, n = 0, n+1
		}
		if e == element && c == component && n == repetition {
			return r.seg.Raw[r.tokens[i].Start:r.tokens[i].End]
		}
		if e > element {
			return nil
		}
	}
	return nil
}

// unescape drops release characters; the result is valid until the next call.
func (r *run) unescape(v []byte) []byte {
	r.room = r.room[:0]
	for i := 0; i < len(v); i++ {
		if v[i] == r.o.Delimiters.Release && i+1 < len(v) {
			i++
		}
		r.room = append(r.room, v[i])
	}
	return r.room
}

// missing reports mandatory elements that are not there.
func (r *run) missing(s *segment, gone uint64) {
	for ; gone != 0; gone &= gone - 1 {
		e := bits.TrailingZeros64(gone)
		r.at(edi.RuleElementMissing, e, none, 0, none, s.slots[e].id, "", "the element is mandatory in "+s.tag+"; send it")
	}
}

// notes checks the relational notes of a segment (X12.6 §3.7.2.2, ISO 9735-1 annex D).
func (r *run) notes(s *segment, present uint64) {
	for i := range s.notes {
		n := &s.notes[i]
		have := present & n.Mask
		others := n.Mask &^ n.First
		var gone uint64
		surplus := false
		switch n.Kind {
		case NoteAll:
			if have != 0 {
				gone = n.Mask &^ have
			}
		case NoteAny:
			if have == 0 {
				gone = n.First
			}
		case NoteMostOne:
			surplus = have&(have-1) != 0
		case NoteOne:
			if have == 0 {
				gone = n.First
			}
			surplus = have&(have-1) != 0
		case NoteFirstAll:
			if have&n.First != 0 {
				gone = others &^ have
			}
		case NoteFirstAny:
			if have&n.First != 0 && have&others == 0 {
				gone = others & -others
			}
		case NoteFirstNone:
			surplus = have&n.First != 0 && have&others != 0
		}
		switch {
		case gone != 0:
			e := bits.TrailingZeros64(gone)
			r.at(edi.RuleElementCondition, e, none, 0, none, s.slots[e].id, n.Text, "note "+n.Text+" of "+s.tag+" wants this element beside the others; send it or leave out the others")
		case surplus:
			second := have & (have - 1)
			e := bits.TrailingZeros64(second)
			r.at(edi.RuleElementExclusion, e, none, 0, r.tokenAt(e), s.slots[e].id, n.Text, "note "+n.Text+" of "+s.tag+" excludes this element beside the others; send one of them")
		}
	}
}

// tokenAt is the first token of an element, or none.
func (r *run) tokenAt(element int) int {
	for i := 1; i < len(r.tokens); i++ {
		if r.tokens[i].Kind == scan.Element {
			if element == 0 {
				return i
			}
			element--
		}
	}
	return none
}

// characters reports values with bytes outside of the character set.
func (r *run) characters(s *segment) {
	element, component, repetition := -1, 0, 1
	for i := range r.tokens {
		t := &r.tokens[i]
		switch {
		case i == 0:
		case t.Kind == scan.Element:
			element++
			component, repetition = 0, 1
		case t.Kind == scan.Component:
			component++
		case t.Kind == scan.Repetition:
			component = 0
			repetition++
		}
		v := r.seg.Raw[t.Start:t.End]
		if r.good(v) {
			continue
		}
		id := ""
		c := component
		if s != nil && element >= 0 && element < len(s.slots) {
			sl := &s.slots[element]
			if c = r.componentOf(sl, component); component < len(sl.parts) {
				id = sl.parts[component].id
			}
		}
		r.at(edi.RuleElementCharset, element, c, repetition, i, id, r.o.Charset.Name, "a character is not in the character set "+r.o.Charset.Name+" of the interchange; replace it or name another character set")
	}
}

// elementValue is the value of an element, from 1, without release characters.
func (r *run) elementValue(element int) []byte {
	i := r.tokenAt(element - 1)
	if i < 0 {
		return nil
	}
	t := &r.tokens[i]
	if t.Released {
		return scan.Unescape(r.seg.Raw[t.Start:t.End], r.o.Delimiters.Release)
	}
	return trim(r.seg.Raw[t.Start:t.End])
}

// clip keeps a reported value short, without a mark: acknowledgements repeat it.
func clip(v []byte) string {
	if len(v) > edi.MaxActual {
		v = v[:edi.MaxActual]
	}
	return string(v)
}

// watched adds a finding of the Watcher.
func (r *run) watched(f edi.Finding) {
	if f.Position.Segment == 0 {
		f.Segment = r.m.kinds[r.kind].tag
		f.Offset = r.seg.Offset
		if sl := r.m.kinds[r.kind].slots; f.Element > 0 && f.Element <= len(sl) {
			f.DataElement = sl[f.Element-1].id
		}
		r.add(f.Rule, f)
		return
	}
	f.Ruleset = r.m.ruleset
	if k := r.m.byTag.find(tagKey([]byte(f.Segment))); k != none && f.Element > 0 && f.Element <= len(r.m.kinds[k].slots) {
		f.DataElement = r.m.kinds[k].slots[f.Element-1].id
	}
	r.found.Add(f)
}

// add adds a finding at the segment at hand.
func (r *run) add(rule string, f edi.Finding) {
	severity, ok := r.found.severity(rule)
	if !ok {
		return
	}
	f.Rule, f.Severity = rule, severity
	if f.Ruleset == "" {
		f.Ruleset = r.m.ruleset
	}
	f.Position.Segment = r.number1
	if f.Loop == "" && r.place > none && r.kind != none {
		f.Loop = r.m.loop(r.place)
	}
	r.found.put(f)
}

// at adds a finding at an element, from 0, and token; none is the whole element or segment.
func (r *run) at(rule string, element, component, repetition, token int, id, expected, message string) {
	f := edi.Finding{Ruleset: r.from, DataElement: id, Expected: expected, Message: message}
	f.Segment = clip(r.seg.Raw[r.tokens[0].Start:r.tokens[0].End])
	f.Element, f.Component = element+1, component+1
	if r.o.Delimiters.Repetition != 0 {
		f.Repetition = repetition
	}
	f.Offset = r.seg.Offset
	if token >= 0 {
		t := &r.tokens[token]
		f.Offset += int64(t.Start)
		f.Actual = clip(bytes.Clone(scan.Unescape(r.seg.Raw[t.Start:t.End], r.o.Delimiters.Release)))
	}
	r.add(rule, f)
}

// flaw reports what is wrong with the value of token i.
func (r *run) flaw(f flaw, sl *slot, p *part, element, component, repetition, i int) {
	var rule, expected, message string
	switch f {
	case flawShort:
		rule, expected, message = edi.RuleElementShort, "at least "+strconv.Itoa(int(p.min)), "the value is too short; fill it up"
	case flawLong:
		rule, expected, message = edi.RuleElementLong, "at most "+strconv.Itoa(int(p.max)), "the value is too long; shorten it"
	case flawType:
		rule, message = edi.RuleElementType, "a character does not belong to the type of the element; numbers have digits only, alphabetic text has no digits"
	case flawNumber:
		rule, message = edi.RuleElementNumber, "the number is in no notation that the standard knows; write digits with a minus before them and one decimal mark among them where it is allowed"
	case flawDigit:
		rule, message = edi.RuleElementDigit, "a digit is missing before the decimal mark; write 0 there"
	case flawDate:
		rule, message = edi.RuleElementDate, "this is no date; write year, month and day as digits"
	case flawTime:
		rule, message = edi.RuleElementTime, "this is no time; write hours, minutes and seconds as digits"
	case flawCode:
		rule, message = edi.RuleElementCode, "the code list of data element "+p.id+" has no such code; use one of the list, or name another list beside it"
	case fine:
		return
	}
	r.at(rule, element, r.componentOf(sl, component), repetition, i, p.id, expected, message)
}

// fault reports what is wrong with the place of a segment.
func (r *run) fault(f fault) {
	var rule, text string
	tag := r.m.kinds[f.kind].tag
	expected := ""
	switch f.rule {
	case faultOrder:
		rule, text = edi.RuleSegmentOrder, "the segment stands at a place where the message type does not have it; put it into the order of the table or remove it"
	case faultUnexpected:
		rule, text = edi.RuleSegmentUnexpected, "the segment belongs into a group that has not begun here; send the first segment of its group before it or remove it"
	case faultMissing:
		rule, text = edi.RuleSegmentMissing, tag+" is mandatory before this segment; send it"
	case faultRepeat:
		rule, text = edi.RuleSegmentRepeat, "the segment stands here more often than the table allows; remove what is beyond"
		expected = strconv.Itoa(int(r.m.nodes[f.at].max))
	case faultLoopRepeat:
		rule, text = edi.RuleLoopRepeat, "the group stands here more often than the table allows; remove what is beyond"
		expected = strconv.Itoa(int(r.m.nodes[f.at].max))
	}
	severity, ok := r.found.severity(rule)
	if !ok {
		return
	}
	loop := ""
	if f.at != none {
		if loop = r.m.loop(f.at); r.m.nodes[f.at].first != none {
			loop = r.m.groupName(f.at)
		}
	}
	r.found.put(edi.Finding{
		Rule: rule, Severity: severity, Ruleset: r.m.ruleset, Segment: tag, Loop: loop, Expected: expected, Message: text,
		Position: edi.Position{Segment: f.segment, Offset: f.offset},
	})
}
