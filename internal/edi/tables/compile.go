package tables

import (
	"errors"
	"fmt"
	"math"

	"github.com/edihub/edihub/internal/edi"
)

// ErrNoMessage is returned by Compile for a message type that the directory does not have.
var ErrNoMessage = errors.New("no such message in the directory")

const (
	root = 0 // the node that holds all others
	none = -1
)

// node is a segment or group at its place.
type node struct {
	name      string // tag or name of the group
	parent    int
	sibling   int // the next in the same group, or none
	first     int // of a group: its first segment; of a segment none
	depth     int // of the root 0
	kind      int // of the segment, or of the segment that begins the group
	max       int32
	mandatory bool
}

// step is what a segment of some kind does from some place on when nothing is wrong.
type step struct {
	to int16 // place of the segment, or none
	// count is the depth of the counter that goes up: that of the segment when it stands there
	// again, that of its group when the group begins again; 0 when it is there for the first time.
	count int16
}

// Message is the table of one message type, ready for walking. It is immutable and safe for
// concurrent use.
type Message struct {
	standard edi.Standard
	ruleset  string
	typ      string
	nodes    []node
	kinds    []segment
	byTag    tagTable
	steps    []step // by place and kind
	trailer  int    // kind of the last segment: UNT or SE
	known    map[string]*SegmentDef
	services map[string]*SegmentDef
	slots    int // elements of all kinds together, for guidelines
}

// segment is a segment as the walk needs it.
type segment struct {
	tag       string
	slots     []slot
	notes     []Note
	mandatory uint64 // bits of mandatory elements
	watch     bool   // the standard looks at its values: HL, LS, LE
}

// slot is the place of an element or composite in a segment.
type slot struct {
	id        string
	parts     []part // one for an element that is not a composite
	composite bool
	unused    bool
	max       int32
	mandatory uint64 // bits of mandatory parts
	list      uint64 // bits of the parts that name the code list and its agency
}

// part is a simple data element at its place.
type part struct {
	id       string
	typ      Type
	min, max int32
	unused   bool
	plain    bool   // text of any length from 1 to short, without a code list
	short    uint32 // bytes that are not too many for the value
	set      *codeSet
}

// tagTable finds the kind of a tag.
type tagTable struct {
	keys  []uint32
	kinds []int16
	shift uint
}

func newTagTable(tags []string) tagTable {
	bits := uint(3)
	for 1<<bits < 4*len(tags) {
		bits++
	}
	t := tagTable{keys: make([]uint32, 1<<bits), kinds: make([]int16, 1<<bits), shift: 32 - bits}
	for k, tag := range tags {
		key := tagKey([]byte(tag))
		i := t.slot(key)
		t.keys[i], t.kinds[i] = key, int16(k) //nolint:gosec // G115: at most maxNodes kinds.
	}
	return t
}

// tagKey packs up to three characters; a longer or empty tag is 0.
func tagKey(tag []byte) uint32 {
	switch len(tag) {
	case 3:
		return uint32(tag[0])<<16 | uint32(tag[1])<<8 | uint32(tag[2])
	case 2:
		return uint32(tag[0])<<8 | uint32(tag[1])
	case 1:
		return uint32(tag[0])
	}
	return 0
}

// slot returns the place of a key, or the empty place where it would stand.
func (t *tagTable) slot(key uint32) uint32 {
	const factor = 0x9E3779B1
	i := key * factor >> t.shift
	for t.keys[i] != 0 && t.keys[i] != key {
		i = (i + 1) & uint32(len(t.keys)-1) //nolint:gosec // G115: a small table.
	}
	return i
}

// find returns the kind of a tag, or none.
func (t *tagTable) find(key uint32) int {
	i := t.slot(key)
	if key == 0 || t.keys[i] != key {
		return none
	}
	return int(t.kinds[i])
}

// watched are the segments whose values belong together over the whole set (X12.6).
var watched = map[string]bool{"HL": true, "LS": true, "LE": true}

// listElements name the code list that is used beside them, and who keeps it. A code of another
// list than the directory's cannot be looked up there.
var listElements = map[string]bool{"1131": true, "3055": true}

// Compile makes the table of one message type. Segments that the directory does not have come
// from services, the first one that has them.
func (d *Directory) Compile(typ string, services ...*Directory) (*Message, error) {
	nodes := d.messages[typ]
	if nodes == nil {
		return nil, fmt.Errorf("%s in %s: %w", typ, d.Name, ErrNoMessage)
	}
	m := &Message{standard: d.Standard, ruleset: d.Name, typ: typ, known: d.segments}
	c := compiler{m: m, dirs: append([]*Directory{d}, services...), kinds: map[string]int{}}
	m.nodes = append(m.nodes, node{name: typ, parent: none, sibling: none, first: none, kind: none, max: 1, mandatory: true})
	if err := c.add(nodes, root, 1); err != nil {
		return nil, err
	}
	if len(services) > 0 {
		m.services = services[0].segments
	}
	tags := make([]string, len(m.kinds))
	for i := range m.kinds {
		tags[i] = m.kinds[i].tag
		m.slots += len(m.kinds[i].slots)
	}
	m.byTag = newTagTable(tags)
	last := m.nodes[root].first
	for m.nodes[last].sibling != none {
		last = m.nodes[last].sibling
	}
	m.trailer = m.nodes[last].kind
	m.steps = make([]step, len(m.nodes)*len(m.kinds))
	for n := range m.nodes {
		if m.nodes[n].first != none && n != root {
			continue // nobody stands at a group
		}
		for k := range m.kinds {
			m.steps[n*len(m.kinds)+k] = m.first(n, k)
		}
	}
	return m, nil
}

// Type is the message type.
func (m *Message) Type() string { return m.typ }

// Ruleset names the directory.
func (m *Message) Ruleset() string { return m.ruleset }

type compiler struct {
	m     *Message
	dirs  []*Directory
	kinds map[string]int
}

// add appends the members of a group.
func (c *compiler) add(list []Node, parent, depth int) error {
	before := none
	for i := range list {
		def := &list[i]
		n := node{name: def.Name, parent: parent, sibling: none, first: none, depth: depth, max: math.MaxInt32, mandatory: def.Mandatory}
		if def.Max > 0 && def.Max < math.MaxInt32 {
			n.max = int32(def.Max) //nolint:gosec // G115: compared above.
		}
		tag := def.Name
		if len(def.Children) > 0 {
			tag = def.Children[0].Name
		}
		kind, err := c.kind(tag)
		if err != nil {
			return err
		}
		n.kind = kind
		at := len(c.m.nodes)
		c.m.nodes = append(c.m.nodes, n)
		if before == none {
			c.m.nodes[parent].first = at
		} else {
			c.m.nodes[before].sibling = at
		}
		before = at
		if len(def.Children) > 0 {
			if err := c.add(def.Children, at, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// kind returns the number of a segment among those of the message.
func (c *compiler) kind(tag string) (int, error) {
	if k, ok := c.kinds[tag]; ok {
		return k, nil
	}
	for _, d := range c.dirs {
		def := d.segments[tag]
		if def == nil {
			continue
		}
		k := len(c.m.kinds)
		c.kinds[tag] = k
		s := compileSegment(def)
		s.watch = d.Standard == edi.X12 && watched[tag]
		c.m.kinds = append(c.m.kinds, s)
		return k, nil
	}
	return 0, fmt.Errorf("message %s of %s: segment %s is not defined: %w", c.m.typ, c.m.ruleset, tag, ErrFormat)
}

func compileSegment(def *SegmentDef) segment {
	s := segment{tag: def.Tag, notes: def.Notes}
	for i, ref := range def.Refs {
		sl := slot{id: ref.ID, unused: ref.Unused, max: math.MaxInt32}
		if ref.Max > 0 && ref.Max < math.MaxInt32 {
			sl.max = int32(ref.Max) //nolint:gosec // G115: compared above.
		}
		if ref.Mandatory {
			s.mandatory |= 1 << i
		}
		if ref.composite == nil {
			sl.parts = []part{compilePart(ref.element, ref.Unused)}
		} else {
			sl.composite = true
			for j, p := range ref.composite.Parts {
				sl.parts = append(sl.parts, compilePart(p.element, p.Unused))
				if p.Mandatory {
					sl.mandatory |= 1 << j
				}
				if listElements[p.ID] {
					sl.list |= 1 << j
				}
			}
		}
		s.slots = append(s.slots, sl)
	}
	return s
}

func compilePart(e *Element, unused bool) part {
	p := part{id: e.ID, typ: e.Type, min: int32(e.Min), max: math.MaxInt32, unused: unused, set: e.set} //nolint:gosec // G115: lengths are small.
	if e.Max > 0 && e.Max < math.MaxInt32 {
		p.max = int32(e.Max) //nolint:gosec // G115: compared above.
	}
	p.plain = (p.typ == TypeAN || p.typ == TypeID) && p.min <= 1 && p.set == nil && !unused
	p.short = uint32(p.max) //nolint:gosec // G115: not negative.
	return p
}

// way is one way in which a segment may go on from a place.
type way struct {
	step
	missing []int // mandatory places that it leaves out
}

// ways lists how a segment of kind k may go on from place n, the nearest first: the same place
// again, then places behind it in the same group, then the group again, then the same outward.
// Without skip a mandatory place in between ends the search. counts tells which places and groups
// have been there often enough; without counts only those that may stand once have. over takes
// them nevertheless.
func (m *Message) ways(n, k int, counts *counters, skip, over bool) []way {
	var out []way
	var missing []int
	full := func(at int) bool {
		if over {
			return false
		}
		if counts == nil {
			return m.nodes[at].max <= 1
		}
		return counts[m.nodes[at].depth] >= m.nodes[at].max
	}
	take := func(to, count int) {
		out = append(out, way{step: step{to: int16(to), count: int16(count)}, missing: append([]int(nil), missing...)}) //nolint:gosec // G115: at most maxNodes.
	}
	at := n
	next := m.nodes[n].sibling
	if n == root {
		next = m.nodes[root].first
	} else if m.nodes[n].kind == k && !m.begins(n) && !full(n) {
		take(n, m.nodes[n].depth)
	}
	for {
		for s := next; s != none; s = m.nodes[s].sibling {
			if m.nodes[s].kind == k {
				to := s
				if m.nodes[s].first != none {
					to = m.nodes[s].first
				}
				take(to, 0)
			}
			if m.nodes[s].mandatory {
				if !skip {
					return out
				}
				missing = append(missing, s)
			}
		}
		if n == root {
			return out
		}
		g := m.nodes[at].parent
		if g == root {
			return out
		}
		if m.nodes[g].kind == k && !full(g) {
			take(m.nodes[g].first, m.nodes[g].depth)
		}
		at, next = g, m.nodes[g].sibling
	}
}

// first is the way that a valid message takes.
func (m *Message) first(n, k int) step {
	if w := m.ways(n, k, nil, false, false); len(w) > 0 {
		return w[0].step
	}
	return step{to: none}
}

// begins reports whether a place is the first of a group.
func (m *Message) begins(n int) bool {
	p := m.nodes[n].parent
	return p > root && m.nodes[p].first == n
}

// loop is the name of the innermost group around a place, as acknowledgements write it: X12 loops
// are named by the segment that begins them.
func (m *Message) loop(n int) string {
	g := m.nodes[n].parent
	if n == root || g == root || g == none {
		return ""
	}
	return m.groupName(g)
}

func (m *Message) groupName(g int) string {
	name := m.nodes[g].name
	if len(name) > 2 && name[:2] == "L_" {
		return m.kinds[m.nodes[g].kind].tag
	}
	return name
}
