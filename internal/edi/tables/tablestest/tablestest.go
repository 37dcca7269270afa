// Package tablestest makes messages out of directory tables, for tests: valid ones, and the same
// with one change.
package tablestest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/tables"
)

// Segment is a segment of a made message: its elements, and their components. Place is where the
// table has it: the names of the groups and the tag, with the number of the place in its group.
type Segment struct {
	Tag      string
	Elements [][]string
	Place    string
	// Mandatory says that the table wants this place; Begins that it begins a group.
	Mandatory, Begins bool
	Max               int
}

// Text writes the segment.
func (s *Segment) Text(d edi.Delimiters) string {
	out := make([]string, 0, len(s.Elements)+1)
	out = append(out, s.Tag)
	for _, e := range s.Elements {
		c := make([]string, len(e))
		for i, v := range e {
			c[i] = escape(v, d)
		}
		out = append(out, strings.TrimRight(strings.Join(c, string([]byte{d.Component})), string([]byte{d.Component})))
	}
	return strings.TrimRight(strings.Join(out, string([]byte{d.Element})), string([]byte{d.Element})) + string([]byte{d.Segment})
}

func escape(v string, d edi.Delimiters) string {
	if d.Release == 0 {
		return v
	}
	var b strings.Builder
	for _, c := range []byte(v) {
		if c == d.Release || c == d.Component || c == d.Element || c == d.Segment || c == d.Repetition && c != 0 {
			b.WriteByte(d.Release)
		}
		b.WriteByte(c)
	}
	return b.String()
}

// Text writes segments.
func Text(segments []Segment, d edi.Delimiters) []byte {
	var b strings.Builder
	for i := range segments {
		b.WriteString(segments[i].Text(d))
	}
	return []byte(b.String())
}

// Maker makes messages of one directory. The same seed makes the same messages.
type Maker struct {
	Directory *tables.Directory
	Services  []*tables.Directory
	// Header is the second and later elements of UNH, or ST; the reference is made.
	Header func(typ string) [][]string

	r     *rand.Rand
	hl    int
	lines int
}

// Seed begins anew.
func (m *Maker) Seed(n uint64) { m.r = rand.New(rand.NewPCG(n, 17)) } //nolint:gosec // G404: tests want the same numbers again.

// Message makes a message of a type. wide is the share of conditional segments, groups and
// elements that are there, 0 to 1.
func (m *Maker) Message(typ string, wide float64) []Segment {
	m.hl, m.lines = 0, 0
	out := m.group(m.Directory.Nodes(typ), typ, wide, false)
	first, last := &out[0], &out[len(out)-1]
	first.Elements = m.Header(typ)
	ref := "0001"
	if first.Tag == "UNH" {
		first.Elements = append([][]string{{ref}}, first.Elements...)
	} else {
		first.Elements = append([][]string{{typ}, {ref}}, first.Elements...)
	}
	last.Elements = [][]string{{strconv.Itoa(len(out))}, {ref}}
	return out
}

// group makes the members of a group.
func (m *Maker) group(list []tables.Node, path string, wide float64, inside bool) []Segment {
	const enough = 400 // segments
	var out []Segment
	ls := false
	seen := map[string]bool{}
	for i := range list {
		n := &list[i]
		take := n.Mandatory || m.r.Float64() < wide && m.lines < enough
		if n.Name == "LS" {
			ls = take
		}
		if n.Name == "LE" {
			take = ls
		}
		// Two places of one tag in a row cannot be told apart when the first one is left out.
		tag := n.Name
		if len(n.Children) > 0 {
			tag = n.Children[0].Name
		}
		if !take || seen[tag] && !n.Mandatory {
			continue
		}
		seen[tag] = true
		place := path + "/" + n.Name + "#" + strconv.Itoa(i)
		times := 1
		if n.Max != 1 && m.r.Float64() < wide/4 {
			times = 2
		}
		for range times {
			if len(n.Children) > 0 {
				out = append(out, m.group(n.Children, place, wide*0.7, true)...)
				continue
			}
			m.lines++
			out = append(out, Segment{Tag: n.Name, Place: place, Mandatory: n.Mandatory, Begins: inside && i == 0, Max: n.Max, Elements: m.elements(n.Name, wide)})
		}
	}
	return out
}

func (m *Maker) def(tag string) (*tables.SegmentDef, *tables.Directory) {
	for _, d := range append([]*tables.Directory{m.Directory}, m.Services...) {
		if s := d.Segment(tag); s != nil {
			return s, d
		}
	}
	panic("no segment " + tag)
}

// elements fills a segment so that its notes hold.
func (m *Maker) elements(tag string, wide float64) [][]string {
	def, dir := m.def(tag)
	var have uint64
	for i, r := range def.Refs {
		if r.Mandatory || m.r.Float64() < wide && !r.Unused {
			have |= 1 << i
		}
	}
	if fewer := settle(def, have); holds(def, fewer) {
		have = fewer
	} else if have = settle(def, 0); !holds(def, have) {
		have = m.search(def)
	}
	out := make([][]string, len(def.Refs))
	for i, r := range def.Refs {
		if have>>i&1 == 0 {
			continue
		}
		c := dir.Composite(r.ID)
		if c == nil {
			out[i] = []string{m.value(dir.Element(r.ID))}
			continue
		}
		out[i] = make([]string, len(c.Parts))
		any := false
		for j, p := range c.Parts {
			// The agency of a code list would make codes beside it unknown.
			if p.Mandatory || m.r.Float64() < wide && !p.Unused && p.ID != "1131" && p.ID != "3055" {
				out[i][j], any = m.value(dir.Element(p.ID)), true
			}
		}
		if !any {
			out[i][0] = m.value(dir.Element(c.Parts[0].ID))
		}
	}
	switch tag {
	case "HL":
		m.hl++
		out[0] = []string{strconv.Itoa(m.hl)}
		out[1], out[3] = nil, nil
	case "LS", "LE":
		out[0] = []string{"L1"}
	}
	return out
}

// search tries combinations of elements until the notes hold.
func (m *Maker) search(def *tables.SegmentDef) uint64 {
	var mandatory uint64
	for i, r := range def.Refs {
		if r.Mandatory {
			mandatory |= 1 << i
		}
	}
	for range 100_000 {
		if have := m.r.Uint64()&m.r.Uint64()&(1<<len(def.Refs)-1) | mandatory; holds(def, have) {
			return have
		}
	}
	panic("the notes of " + def.Tag + " cannot hold")
}

// holds reports whether all notes of a segment hold.
func holds(def *tables.SegmentDef, have uint64) bool {
	for _, n := range def.Notes {
		x := have & n.Mask
		others := x &^ n.First
		first := x&n.First != 0
		several := x&(x-1) != 0
		good := true
		switch n.Kind {
		case tables.NoteAll:
			good = x == 0 || x == n.Mask
		case tables.NoteAny:
			good = x != 0
		case tables.NoteMostOne:
			good = !several
		case tables.NoteOne:
			good = x != 0 && !several
		case tables.NoteFirstAll:
			good = !first || x == n.Mask
		case tables.NoteFirstAny:
			good = !first || others != 0
		case tables.NoteFirstNone:
			good = !first || others == 0
		}
		if !good {
			return false
		}
	}
	return true
}

// settle adds and removes elements until all notes hold.
func settle(def *tables.SegmentDef, have uint64) uint64 {
	var mandatory uint64
	for i, r := range def.Refs {
		if r.Mandatory {
			mandatory |= 1 << i
		}
	}
	for range 8 {
		before := have
		for _, n := range def.Notes {
			switch n.Kind {
			case tables.NoteAll:
				if have&n.Mask != 0 {
					have |= n.Mask
				}
			case tables.NoteAny:
				if have&n.Mask == 0 {
					have |= n.First
				}
			case tables.NoteFirstAll:
				if have&n.First != 0 {
					have |= n.Mask
				}
			case tables.NoteFirstAny:
				if have&n.First != 0 && have&(n.Mask&^n.First) == 0 {
					others := n.Mask &^ n.First
					have |= others & -others
				}
			case tables.NoteMostOne, tables.NoteOne, tables.NoteFirstNone:
				if x := have & n.Mask; x&(x-1) != 0 {
					have = have&^n.Mask | x&-x
				}
			}
		}
		if have |= mandatory; have == before {
			break
		}
	}
	return have
}

// value makes a value of an element.
func (m *Maker) value(e *tables.Element) string {
	if len(e.Codes) > 0 {
		return e.Codes[m.r.IntN(len(e.Codes))]
	}
	most := e.Max
	if most == 0 || most > e.Min+12 {
		most = e.Min + 12
	}
	n := e.Min + m.r.IntN(most-e.Min+1)
	n = max(n, 1)
	pick := func(set string) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = set[m.r.IntN(len(set))]
		}
		return string(b)
	}
	switch e.Type {
	case tables.TypeN, tables.TypeN0, tables.TypeR:
		return pick("123456789")
	case tables.TypeA:
		return pick("ABCDEFGHIJ")
	case tables.TypeDT:
		return "20260301"[8-max(6, min(8, e.Max)):]
	case tables.TypeTM:
		return "1200"
	case tables.TypeAN, tables.TypeID, tables.TypeB, tables.TypeFixed:
	}
	return pick("ABCDEFGHIJ0123456789")
}

// Change is one change to a valid message.
type Change struct {
	Name     string
	Segments []Segment
	At       int // number of the segment that was touched; UNH or ST is 1
	Element  int // from 1, where a value was touched
	Rule     string
	Tag      string // that the finding is about
}

// Changes makes the changes whose finding is certain: one for each kind where the message offers a
// place.
func (m *Maker) Changes(valid []Segment) []Change {
	var out []Change
	last := len(valid) - 1
	count := map[string]int{}
	for i := range valid {
		count[valid[i].Place]++
	}
	if i := m.any(valid[1:last], func(s *Segment) bool { return s.Mandatory && !s.Begins && count[s.Place] == 1 }); i >= 0 {
		out = append(out, Change{"drop", slices.Delete(slices.Clone(valid), i+1, i+2), i + 2, 0, edi.RuleSegmentMissing, valid[i+1].Tag})
	}
	i := 1 + m.r.IntN(last)
	out = append(out, Change{"unknown", slices.Insert(slices.Clone(valid), i, Segment{Tag: "ZQX", Elements: [][]string{{"1"}}}), i + 1, 0, edi.RuleSegmentUnknown, "ZQX"})
	for range 40 {
		i := 1 + m.r.IntN(last)
		c := m.inValue(valid, i)
		if c.Name != "" {
			out = append(out, c)
			break
		}
	}
	return out
}

// any returns a random place where ok holds, or -1.
func (m *Maker) any(list []Segment, ok func(s *Segment) bool) int {
	var all []int
	for i := range list {
		if ok(&list[i]) {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return -1
	}
	return all[m.r.IntN(len(all))]
}

// inValue spoils a value of segment i.
func (m *Maker) inValue(valid []Segment, i int) Change {
	def, dir := m.def(valid[i].Tag)
	if valid[i].Tag == "HL" || valid[i].Tag == "LS" || valid[i].Tag == "LE" || i == len(valid)-1 {
		return Change{}
	}
	for e, r := range def.Refs {
		if e >= len(valid[i].Elements) || len(valid[i].Elements[e]) == 0 || valid[i].Elements[e][0] == "" {
			continue
		}
		id := r.ID
		if c := dir.Composite(id); c != nil {
			id = c.Parts[0].ID
		}
		el := dir.Element(id)
		value, rule := "", ""
		switch {
		case len(el.Codes) > 0 && m.r.IntN(2) == 0:
			value, rule = strings.Repeat("Z", el.Max), edi.RuleElementCode
			if el.Type == tables.TypeN || slices.Contains(el.Codes, value) {
				continue
			}
		case el.Max > 0 && el.Max < 200 && el.Type != tables.TypeDT && el.Type != tables.TypeTM && el.Type != tables.TypeFixed:
			digit := "7"
			if el.Type == tables.TypeA {
				digit = "X"
			}
			value, rule = strings.Repeat(digit, el.Max+1), edi.RuleElementLong
		default:
			continue
		}
		changed := slices.Clone(valid)
		changed[i].Elements = slices.Clone(valid[i].Elements)
		changed[i].Elements[e] = slices.Clone(valid[i].Elements[e])
		changed[i].Elements[e][0] = value
		return Change{fmt.Sprintf("value %s", rule), changed, i + 1, e + 1, rule, valid[i].Tag}
	}
	return Change{}
}

// Moves makes changes that leave more than one explanation: a segment twice, at a wrong place,
// or without the first of its group. At least one finding and no flood of them is what can be
// asked for. At is the first segment that differs.
func (m *Maker) Moves(valid []Segment) []Change {
	last := len(valid) - 1
	if last < 3 {
		return nil
	}
	var out []Change
	i, j := 1+m.r.IntN(last-1), 1+m.r.IntN(last-1)
	moved := valid[i]
	rest := slices.Delete(slices.Clone(valid), i, i+1)
	out = append(out, Change{"move", slices.Insert(rest, j, moved), min(i, j) + 1, 0, "", moved.Tag})
	k := 1 + m.r.IntN(last-1)
	out = append(out, Change{"twice", slices.Insert(slices.Clone(valid), k, valid[k]), k + 1, 0, "", valid[k].Tag})
	n := m.r.IntN(last-1) + 1
	out = append(out, Change{"stray", slices.Insert(slices.Clone(valid), n, valid[1+m.r.IntN(last-1)]), n + 1, 0, "", ""})
	return out
}
