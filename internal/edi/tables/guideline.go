package tables

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/edihub/edihub/internal/edi"
)

// SegmentRule narrows one place of a message.
type SegmentRule struct {
	// Path names the place: the groups around it by their name or the tag that begins them, then
	// the tag: "BGM", "SG2/NAD", "PO1/N1/REF". "DTM#2" is the second place of that tag there. A
	// path that ends with a group or with the segment that begins one means the whole group.
	Path string
	// Forbid refuses the segment or group; Require wants it at least once where its group stands.
	Forbid, Require bool
	// Max is how often it may stand there; 0 leaves the table's number.
	Max int
	// Elements narrow its values.
	Elements []ElementRule
}

// ElementRule narrows an element or component.
type ElementRule struct {
	Element         int // from 1
	Component       int // from 1; 0 is the whole element
	Forbid, Require bool
	Codes           []string // the only values that are allowed; none allows all of the table
	Min, Max        int      // characters; 0 leaves the table's number
}

// RuleError says which rule does not fit the table.
type RuleError struct {
	Rule    int // from 0
	Element int // from 0; -1 is the rule itself
	Text    string
}

// Error implements error.
func (e *RuleError) Error() string { return e.Text }

// Overlay is a guideline made for one Message. It is immutable and safe for concurrent use.
type Overlay struct {
	m       *Message
	name    string
	nodes   []guideNode
	require bool
}

type guideNode struct {
	forbid, require bool
	max             int32
	segment         *guideSegment
}

// guideSegment holds the element rules of one place.
type guideSegment struct {
	name            string
	forbid, require uint64 // bits of elements
	slots           []guideSlot
}

type guideSlot struct {
	require uint64 // bits of components
	parts   []guidePart
}

type guidePart struct {
	forbid   bool
	set      *codeSet
	min, max int32 // 0 is none
}

// Narrow makes an overlay of rules. name is what findings call the guideline. An error is a
// *RuleError.
func (m *Message) Narrow(name string, rules []SegmentRule) (*Overlay, error) {
	o := &Overlay{m: m, name: name, nodes: make([]guideNode, len(m.nodes))}
	for i := range rules {
		rule := &rules[i]
		n, err := m.resolve(rule.Path)
		if err != nil {
			return nil, &RuleError{Rule: i, Element: -1, Text: err.Error()}
		}
		leaf := n
		if m.nodes[n].first != none {
			leaf = m.nodes[n].first
		}
		g := &o.nodes[n]
		if rule.Forbid && m.nodes[n].mandatory {
			return nil, &RuleError{Rule: i, Element: -1, Text: fmt.Sprintf("%s is mandatory in the table and cannot be forbidden", rule.Path)}
		}
		if rule.Max < 0 || rule.Max > int(m.nodes[n].max) {
			return nil, &RuleError{Rule: i, Element: -1, Text: fmt.Sprintf("%s stands at most %d times in the table", rule.Path, m.nodes[n].max)}
		}
		g.forbid = g.forbid || rule.Forbid
		g.require = g.require || rule.Require
		o.require = o.require || rule.Require
		if rule.Max > 0 {
			g.max = int32(rule.Max) //nolint:gosec // G115: compared above.
		}
		for j := range rule.Elements {
			if err := o.element(leaf, &rule.Elements[j]); err != nil {
				return nil, &RuleError{Rule: i, Element: j, Text: err.Error()}
			}
		}
	}
	return o, nil
}

// Message is the table that the overlay was made for.
func (o *Overlay) Message() *Message { return o.m }

// resolve finds the place that a path names.
func (m *Message) resolve(path string) (int, error) {
	at := root
	steps := strings.Split(path, "/")
	for i, s := range steps {
		if m.nodes[at].first == none {
			return 0, fmt.Errorf("%s is a segment and has nothing inside", strings.Join(steps[:i], "/"))
		}
		name, nth := s, 1
		if head, number, ok := strings.Cut(s, "#"); ok {
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 {
				return 0, fmt.Errorf("%q does not end with a number from 1", s)
			}
			name, nth = head, n
		}
		found := none
		var all []string
		for c := m.nodes[at].first; c != none; c = m.nodes[c].sibling {
			tag := m.kinds[m.nodes[c].kind].tag
			if m.nodes[c].name == name || tag == name {
				if nth--; nth == 0 {
					found = c
					break
				}
			}
			all = append(all, m.nodes[c].name)
		}
		if found == none {
			return 0, fmt.Errorf("%s has no %q; it has %s", m.typ, path, strings.Join(all, " "))
		}
		// The segment that begins a group stands for the group.
		if m.begins(found) && i == len(steps)-1 {
			found = at
		}
		at = found
	}
	return at, nil
}

// element adds an element rule to a place.
func (o *Overlay) element(n int, rule *ElementRule) error {
	s := &o.m.kinds[o.m.nodes[n].kind]
	if rule.Element < 1 || rule.Element > len(s.slots) {
		return fmt.Errorf("%s has elements 1 to %d", s.tag, len(s.slots))
	}
	e := rule.Element - 1
	sl := &s.slots[e]
	if rule.Component < 0 || rule.Component > len(sl.parts) || rule.Component > 0 && !sl.composite {
		return fmt.Errorf("element %d of %s has %d components", rule.Element, s.tag, len(sl.parts))
	}
	g := o.nodes[n].segment
	if g == nil {
		g = &guideSegment{name: o.name, slots: make([]guideSlot, len(s.slots))}
		for i := range g.slots {
			g.slots[i].parts = make([]guidePart, len(s.slots[i].parts))
		}
		o.nodes[n].segment = g
	}
	c := max(rule.Component-1, 0)
	whole := rule.Component == 0
	switch {
	case rule.Forbid && whole && s.mandatory>>e&1 == 1, rule.Forbid && !whole && sl.mandatory>>c&1 == 1:
		return fmt.Errorf("element %d of %s is mandatory in the table and cannot be forbidden", rule.Element, s.tag)
	case whole && sl.composite && (len(rule.Codes) > 0 || rule.Min > 0 || rule.Max > 0):
		return fmt.Errorf("element %d of %s is a composite; name the component", rule.Element, s.tag)
	case rule.Min < 0 || rule.Max < 0 || rule.Max > 0 && rule.Max < rule.Min || rule.Max > math.MaxInt32:
		return fmt.Errorf("the lengths %d to %d fit nothing", rule.Min, rule.Max)
	}
	switch {
	case whole && rule.Forbid:
		g.forbid |= 1 << e
	case rule.Forbid:
		g.slots[e].parts[c].forbid = true
	}
	switch {
	case whole && rule.Require:
		g.require |= 1 << e
	case rule.Require:
		g.slots[e].require |= 1 << c
	}
	p := &g.slots[e].parts[c]
	if len(rule.Codes) > 0 {
		p.set = newCodeSet(rule.Codes)
	}
	if rule.Min > 0 {
		p.min = int32(rule.Min) //nolint:gosec // G115: compared above.
	}
	if rule.Max > 0 {
		p.max = int32(rule.Max) //nolint:gosec // G115: compared above.
	}
	return nil
}

// placed looks at the place that the segment at hand took, and at what was left out on the way
// from the place before. It returns the rules of its elements.
func (o *Overlay) placed(r *run, from int) *guideSegment {
	n := r.place
	if n == none {
		return nil
	}
	g := o.nodes[n].segment
	if len(r.walk.guesses) > 0 {
		return g // the place is not sure yet
	}
	if o.require {
		o.passed(r, from, n)
	}
	o.often(r, n, edi.RuleGuidelineSegmentUnused, edi.RuleGuidelineSegmentRepeat, "segment")
	if r.m.begins(n) {
		o.often(r, r.m.nodes[n].parent, edi.RuleGuidelineSegmentUnused, edi.RuleGuidelineLoopRepeat, "group")
	}
	return g
}

// often checks whether a place may be used, and how often.
func (o *Overlay) often(r *run, n int, unused, repeat, what string) {
	g := &o.nodes[n]
	count := r.walk.now.counts[r.m.nodes[n].depth]
	switch {
	case g.forbid:
		o.tell(r, unused, n, "", "the guideline "+o.name+" does not use this "+what+"; leave it out")
	case g.max > 0 && count == g.max+1:
		o.tell(r, repeat, n, strconv.Itoa(int(g.max)), "the guideline "+o.name+" allows fewer of this "+what+"; remove what is beyond")
	}
}

func (o *Overlay) tell(r *run, rule string, n int, expected, message string) {
	loop := r.m.loop(n)
	if r.m.nodes[n].first != none {
		loop = r.m.groupName(n)
	}
	r.add(rule, edi.Finding{
		Ruleset: o.name, Segment: r.m.kinds[r.m.nodes[n].kind].tag, Loop: loop, Expected: expected, Message: message,
		Position: edi.Position{Offset: r.seg.Offset},
	})
}

// passed reports required places between two others.
func (o *Overlay) passed(r *run, from, to int) {
	m := r.m
	if from == to && !m.begins(to) {
		return
	}
	next := m.nodes[from].sibling
	if from == root {
		next = m.nodes[root].first
	}
	at := from
	for {
		for s := next; s != none; s = m.nodes[s].sibling {
			if s == to || m.nodes[s].first == to {
				return
			}
			if !o.nodes[s].require {
				continue
			}
			rule := edi.RuleGuidelineSegmentMissing
			if m.nodes[s].first != none {
				rule = edi.RuleGuidelineLoopMissing
			}
			o.tell(r, rule, s, "", "the guideline "+o.name+" requires "+m.kinds[m.nodes[s].kind].tag+" before this segment; send it")
		}
		if from == root {
			return
		}
		g := m.nodes[at].parent
		if g == root || m.nodes[g].first == to {
			return
		}
		at, next = g, m.nodes[g].sibling
	}
}

// value checks a value against the guideline.
func (g *guideSegment) value(r *run, sl *slot, element, component, repetition, i int, v []byte) {
	p := &g.slots[element].parts[component]
	tell := func(rule, expected, message string) {
		r.guided(g.name, rule, element, r.componentOf(sl, component), repetition, i, sl.parts[component].id, expected, message)
	}
	switch {
	case p.forbid:
		tell(edi.RuleGuidelineElementUnused, "", "the guideline "+g.name+" does not use this component; leave it empty")
		return
	case p.set != nil && !p.set.has(trim(v)):
		tell(edi.RuleGuidelineElementCode, "", "the guideline "+g.name+" does not allow this code here; use one that it names")
		return
	case p.max == 0 && p.min == 0:
		return
	}
	limits := part{typ: TypeAN, min: p.min, max: p.max}
	if limits.max == 0 {
		limits.max = math.MaxInt32
	}
	switch r.length(&limits, v) {
	case flawShort:
		tell(edi.RuleGuidelineElementLength, "at least "+strconv.Itoa(int(p.min)), "the value is shorter than the guideline "+g.name+" allows; fill it up")
	case flawLong:
		tell(edi.RuleGuidelineElementLength, "at most "+strconv.Itoa(int(p.max)), "the value is longer than the guideline "+g.name+" allows; shorten it")
	}
}

// composite checks which components are there.
func (g *guideSegment) composite(r *run, sl *slot, element, repetition int, parts uint64) {
	for gone := g.slots[element].require &^ parts; gone != 0; gone &= gone - 1 {
		c := bits.TrailingZeros64(gone)
		r.guided(g.name, edi.RuleGuidelineElementMissing, element, c, repetition, none, sl.parts[c].id, "", "the guideline "+g.name+" requires this component; send it")
	}
}

// end checks which elements are there.
func (g *guideSegment) end(r *run, s *segment, present uint64) {
	for extra := g.forbid & present; extra != 0; extra &= extra - 1 {
		e := bits.TrailingZeros64(extra)
		r.guided(g.name, edi.RuleGuidelineElementUnused, e, none, 0, r.tokenAt(e), s.slots[e].id, "", "the guideline "+g.name+" does not use this element; leave it empty")
	}
	// What the table wants already is reported by its own rule.
	for gone := g.require &^ present &^ s.mandatory; gone != 0; gone &= gone - 1 {
		e := bits.TrailingZeros64(gone)
		r.guided(g.name, edi.RuleGuidelineElementMissing, e, none, 0, none, s.slots[e].id, "", "the guideline "+g.name+" requires this element; send it")
	}
}

// guided is at for a guideline.
func (r *run) guided(name, rule string, element, component, repetition, token int, id, expected, message string) {
	r.from = name
	r.at(rule, element, component, repetition, token, id, expected, message)
	r.from = ""
}

// Guideline is what an operator says about some message types, with tables of their own if need
// be. It is immutable and safe for concurrent use once Seal was called.
type Guideline struct {
	Name string
	// Messages are the rules by message type.
	Messages map[string][]SegmentRule
	// Directories, when there are any, are the only ones that the guideline is for.
	Directories []string
	// Tables take the place of the program's where they have the message type.
	Tables []*Directory

	mu       sync.Mutex
	overlays map[*Message]*Overlay
	own      map[string]*Message
	services func(name string) (*Directory, error)
}

// Seal prepares the guideline for use. services finds the directories with service segments.
func (g *Guideline) Seal(services func(name string) (*Directory, error)) {
	g.services = services
	g.overlays = make(map[*Message]*Overlay)
	g.own = make(map[string]*Message)
}

// For returns the guideline's overlay for a message. It is false where the guideline says nothing
// about the message type or the directory.
func (g *Guideline) For(m *Message) (*Overlay, bool) {
	rules, ok := g.Messages[m.typ]
	if !ok || len(g.Directories) > 0 && !slices.Contains(g.Directories, m.ruleset) {
		return nil, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	o, ok := g.overlays[m]
	if !ok {
		var err error
		if o, err = m.Narrow(g.Name, rules); err != nil {
			o = nil // another version of the table has no such place
		}
		g.overlays[m] = o
	}
	return o, o != nil
}

// Table returns the guideline's own table of a message type, nil where it has none.
func (g *Guideline) Table(directory, typ string, services ...string) *Message {
	for _, d := range g.Tables {
		if d.Name != directory || !d.Has(typ) {
			continue
		}
		key := strings.Join(append([]string{directory, typ}, services...), " ")
		g.mu.Lock()
		defer g.mu.Unlock()
		m, ok := g.own[key]
		if !ok {
			var more []*Directory
			for _, s := range services {
				if x, err := g.services(s); err == nil {
					more = append(more, x)
				}
			}
			m, _ = d.Compile(typ, more...) // Seal's caller has compiled it once
			g.own[key] = m
		}
		return m
	}
	return nil
}

// noGuideline is the finding for a message that a guideline says nothing about.
func noGuideline(g *Guideline, typ string, base int64) edi.Finding {
	return edi.Finding{
		Rule: edi.RuleGuidelineOther, Ruleset: g.Name, Actual: typ, Position: edi.Position{Segment: 1, Offset: base},
		Message: "the guideline " + g.Name + " says nothing about this message type and directory, so only the tables were asked; add it to the guideline, or set this rule to off",
	}
}

// prepend puts a finding before others, with the severity that the policy gives it.
func prepend(list []edi.Finding, p *Policy, f edi.Finding) []edi.Finding {
	rule, _ := edi.RuleOf(f.Rule)
	if f.Severity = p.Of(&rule); f.Severity == "" {
		return list
	}
	return append([]edi.Finding{f}, list...)
}
