package tables

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/edihub/edihub/internal/edi"
)

// The compact form is text, one record a line, fields separated by single blanks, lines that
// begin with # are ignored:
//
//	standard edifact | x12
//	directory D.96A
//	e 1001 an..3 1 10 100              element: representation, then its codes if it has a list
//	e 98 ID/2/3                        X12: type, least and most characters; 0 is no limit
//	c C002 1001? 1131? 3055? 1000?     composite
//	s BGM C002? 1004? 1225? 4343?      segment; behind | stand relational notes: s N1 98! … | R0203
//	m INVOIC UNH! BGM! … SG1?99(RFF! DTM?5) … UNT!
//
// A mark follows each name: ! mandatory, ? conditional, - not used. In segments and messages a
// number may follow it: how often it may stand there; 0 is no limit, no number is once. A group
// has its members in parentheses, the segment that begins it first.
const formatDoc = "see docs/guidelines.md, Directories"

// Limits of a directory: beyond them it is refused.
const (
	maxSlots      = 64 // elements of a segment, components of a composite
	maxDepth      = 12 // groups within groups
	maxNodes      = 4096
	maxTag        = 3
	maxCodeLength = 64
)

// ErrFormat is what every *FormatError is.
var ErrFormat = errors.New("directory cannot be read")

// FormatError says what is wrong with a directory and where.
type FormatError struct {
	Line int
	Text string
}

// Error implements error.
func (e *FormatError) Error() string {
	return "line " + strconv.Itoa(e.Line) + ": " + e.Text + " (" + formatDoc + ")"
}

// Unwrap makes it an ErrFormat.
func (e *FormatError) Unwrap() error { return ErrFormat }

// Type is the representation of a data element.
type Type uint8

// The types.
const (
	TypeAN    Type = iota + 1 // ISO 9735-1 an; X12.6 AN
	TypeA                     // ISO 9735-1 a
	TypeN                     // ISO 9735-1 n
	TypeID                    // X12.6 ID
	TypeN0                    // X12.6 N0 to N9: a decimal point is implied
	TypeR                     // X12.6 R: a decimal point is written
	TypeDT                    // X12.6 DT
	TypeTM                    // X12.6 TM
	TypeB                     // X12.6 B
	TypeFixed                 // text of fixed width that may be all blank: ISA02 and ISA04
)

// Element is a data element of a directory.
type Element struct {
	ID       string
	Type     Type
	Min, Max int // characters; Max 0 is no limit
	Codes    []string
	set      *codeSet
	index    int
}

// Ref is an element or composite at its place.
type Ref struct {
	ID        string
	Mandatory bool
	Unused    bool
	Max       int // repetitions; 0 is no limit
	element   *Element
	composite *Composite
}

// Composite is a composite data element.
type Composite struct {
	ID    string
	Parts []Ref
}

// NoteKind is a kind of relational note.
type NoteKind uint8

// The kinds: X12.6 P, R, E, C, L; ISO 9735-1 annex D1 to D7.
const (
	NoteAll       NoteKind = iota + 1 // P, D2: all or none
	NoteAny                           // R, D3: at least one
	NoteMostOne                       // E, D4: at most one
	NoteFirstAll                      // C, D5: the first needs all others
	NoteFirstAny                      // L, D6: the first needs one of the others
	NoteOne                           // D1: exactly one
	NoteFirstNone                     // D7: the first forbids the others
)

// Note is a relational note of a segment.
type Note struct {
	Text  string // as it stands in the directory: "P0304"
	Kind  NoteKind
	First uint64 // bit of the first element
	Mask  uint64 // bits of all elements, the first one of the segment is bit 0
}

// SegmentDef is a segment of a directory.
type SegmentDef struct {
	Tag   string
	Refs  []Ref
	Notes []Note
}

// Node is a segment or group at its place in a message. Groups have Children.
type Node struct {
	Name      string
	Mandatory bool
	Max       int // 0 is no limit
	Children  []Node
}

// Directory is a set of tables of one version. It is immutable once read.
type Directory struct {
	Standard   edi.Standard
	Name       string
	elements   map[string]*Element
	composites map[string]*Composite
	segments   map[string]*SegmentDef
	messages   map[string][]Node
	order      []string // message types as they stand
}

// Messages lists the message types in the order of the file.
func (d *Directory) Messages() []string { return append([]string(nil), d.order...) }

// Has reports whether the directory has a message type.
func (d *Directory) Has(typ string) bool { return d.messages[typ] != nil }

// Nodes returns the members of a message, nil when there is none of that type. They belong to the
// directory.
func (d *Directory) Nodes(typ string) []Node { return d.messages[typ] }

// Composite returns a composite by its number, nil when there is none.
func (d *Directory) Composite(id string) *Composite { return d.composites[id] }

// Element returns an element by its number, nil when there is none.
func (d *Directory) Element(id string) *Element { return d.elements[id] }

// Segment returns a segment by its tag, nil when there is none.
func (d *Directory) Segment(tag string) *SegmentDef { return d.segments[tag] }

// Read reads a directory in the compact form.
func Read(text string) (*Directory, error) {
	d := &Directory{
		elements: make(map[string]*Element), composites: make(map[string]*Composite),
		segments: make(map[string]*SegmentDef), messages: make(map[string][]Node),
	}
	r := reader{d: d}
	for line := range strings.SplitSeq(text, "\n") {
		r.line++
		line = strings.TrimRight(line, "\r ")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := r.record(line); err != nil {
			return nil, err
		}
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return d, nil
}

// reader reads the records of a directory.
type reader struct {
	d         *Directory
	line      int
	elements  int
	resolving []pending
}

// pending is a list of references that is resolved when all records were read.
type pending struct {
	line int
	what string
	refs []Ref
	part bool // parts of a composite are elements
}

func (r *reader) fail(format string, args ...any) error {
	return &FormatError{Line: r.line, Text: fmt.Sprintf(format, args...)}
}

func (r *reader) record(line string) error {
	f := strings.Split(line, " ")
	if len(f) < 2 || f[1] == "" {
		return r.fail("%q has no value", f[0])
	}
	switch f[0] {
	case "standard":
		r.d.Standard = edi.Standard(f[1])
		if r.d.Standard != edi.EDIFACT && r.d.Standard != edi.X12 {
			return r.fail("unknown standard %q", f[1])
		}
		return nil
	case "directory":
		r.d.Name = f[1]
		return nil
	case "e":
		return r.element(f[1:])
	case "c":
		return r.composite(f[1:])
	case "s":
		return r.segment(f[1:])
	case "m":
		return r.message(f[1:])
	}
	return r.fail("unknown record %q", f[0])
}

func (r *reader) element(f []string) error {
	if len(f) < 2 {
		return r.fail("element %s has no representation", f[0])
	}
	if r.d.elements[f[0]] != nil {
		return r.fail("element %s stands twice", f[0])
	}
	e := &Element{ID: f[0], Codes: f[2:], index: r.elements}
	r.elements++
	if !e.represent(f[1]) {
		return r.fail("element %s: %q is no representation", f[0], f[1])
	}
	for _, c := range e.Codes {
		if c == "" || len(c) > maxCodeLength {
			return r.fail("element %s: a code is empty or longer than %d bytes", f[0], maxCodeLength)
		}
	}
	if len(e.Codes) > 0 {
		e.set = newCodeSet(e.Codes)
	}
	r.d.elements[e.ID] = e
	return nil
}

// represent reads "an..35", "n6", "AN/1/30".
func (e *Element) represent(s string) bool {
	if typ, rest, ok := strings.Cut(s, "/"); ok {
		low, high, two := strings.Cut(rest, "/")
		var err1, err2 error
		e.Min, err1 = strconv.Atoi(low)
		e.Max, err2 = strconv.Atoi(high)
		if !two || err1 != nil || err2 != nil || e.Min < 0 || e.Max != 0 && e.Max < e.Min {
			return false
		}
		switch {
		case typ == "AN":
			e.Type = TypeAN
		case typ == "ID":
			e.Type = TypeID
		case typ == "DT":
			e.Type = TypeDT
		case typ == "TM":
			e.Type = TypeTM
		case typ == "B":
			e.Type = TypeB
		case typ == "FX":
			e.Type = TypeFixed
		case len(typ) == 2 && typ[0] == 'N' && typ[1] >= '0' && typ[1] <= '9':
			e.Type = TypeN0
		case typ == "R" || len(typ) == 2 && typ[0] == 'R' && typ[1] >= '0' && typ[1] <= '9':
			e.Type = TypeR
		}
		return e.Type != 0
	}
	switch {
	case strings.HasPrefix(s, "an"):
		e.Type, s = TypeAN, s[2:]
	case strings.HasPrefix(s, "a"):
		e.Type, s = TypeA, s[1:]
	case strings.HasPrefix(s, "n"):
		e.Type, s = TypeN, s[1:]
	default:
		return false
	}
	variable := strings.HasPrefix(s, "..")
	n, err := strconv.Atoi(strings.TrimPrefix(s, ".."))
	if err != nil || n < 1 {
		return false
	}
	e.Min, e.Max = 1, n
	if !variable {
		e.Min = n
	}
	return true
}

// name cuts "UNH!", "DTM?35" into its parts.
func (r *reader) name(s string) (name string, mark byte, most int, err error) {
	i := strings.IndexAny(s, "!?-")
	if i < 1 {
		return "", 0, 0, r.fail("%q has no name with a mark !, ? or -", s)
	}
	most = 1
	if s[i+1:] != "" {
		if most, err = strconv.Atoi(s[i+1:]); err != nil || most < 0 {
			return "", 0, 0, r.fail("%q does not end with a number", s)
		}
	}
	return s[:i], s[i], most, nil
}

func (r *reader) refs(what string, f []string, part bool) ([]Ref, error) {
	if len(f) > maxSlots {
		return nil, r.fail("%s has more than %d places", what, maxSlots)
	}
	refs := make([]Ref, 0, len(f))
	for _, s := range f {
		id, mark, most, err := r.name(s)
		if err != nil {
			return nil, err
		}
		refs = append(refs, Ref{ID: id, Mandatory: mark == '!', Unused: mark == '-', Max: most})
	}
	r.resolving = append(r.resolving, pending{line: r.line, what: what, refs: refs, part: part})
	return refs, nil
}

func (r *reader) composite(f []string) error {
	if r.d.composites[f[0]] != nil {
		return r.fail("composite %s stands twice", f[0])
	}
	parts, err := r.refs("composite "+f[0], f[1:], true)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return r.fail("composite %s has no parts", f[0])
	}
	r.d.composites[f[0]] = &Composite{ID: f[0], Parts: parts}
	return nil
}

func (r *reader) segment(f []string) error {
	tag := f[0]
	if len(tag) > maxTag || tag == "|" || r.d.segments[tag] != nil {
		return r.fail("segment %s stands twice or has a tag of more than %d characters", tag, maxTag)
	}
	var notes []string
	for i, s := range f {
		if s == "|" {
			f, notes = f[:i], f[i+1:]
			break
		}
	}
	refs, err := r.refs("segment "+tag, f[1:], false)
	if err != nil {
		return err
	}
	def := &SegmentDef{Tag: tag, Refs: refs}
	for _, n := range notes {
		note, ok := parseNote(n, len(refs))
		if !ok {
			return r.fail("segment %s: %q is no note", tag, n)
		}
		def.Notes = append(def.Notes, note)
	}
	r.d.segments[tag] = def
	return nil
}

var noteKinds = map[string]NoteKind{
	"P": NoteAll, "R": NoteAny, "E": NoteMostOne, "C": NoteFirstAll, "L": NoteFirstAny,
	"D1:": NoteOne, "D2:": NoteAll, "D3:": NoteAny, "D4:": NoteMostOne, "D5:": NoteFirstAll, "D6:": NoteFirstAny, "D7:": NoteFirstNone,
}

// parseNote reads "P0304" or "D5:0102".
func parseNote(s string, elements int) (Note, bool) {
	n := Note{Text: s}
	digits := s
	for _, size := range []int{3, 1} {
		if len(s) > size && noteKinds[s[:size]] != 0 {
			n.Kind, digits = noteKinds[s[:size]], s[size:]
			break
		}
	}
	if n.Kind == 0 || len(digits) < 4 || len(digits)%2 != 0 {
		return n, false
	}
	for i := 0; i < len(digits); i += 2 {
		e, err := strconv.Atoi(digits[i : i+2])
		if err != nil || e < 1 || e > elements {
			return n, false
		}
		bit := uint64(1) << (e - 1)
		if i == 0 {
			n.First = bit
		}
		n.Mask |= bit
	}
	return n, true
}

func (r *reader) message(f []string) error {
	typ := f[0]
	if r.d.messages[typ] != nil {
		return r.fail("message %s stands twice", typ)
	}
	var count int
	nodes, rest, err := r.nodes(f[1:], 1, &count)
	if err != nil {
		return err
	}
	if len(rest) > 0 || len(nodes) == 0 {
		return r.fail("message %s: parentheses do not match, or it is empty", typ)
	}
	r.d.messages[typ] = nodes
	r.d.order = append(r.d.order, typ)
	return nil
}

// nodes reads members until the list or their group ends. A closing parenthesis is part of the
// last member: "DTM?5))".
func (r *reader) nodes(f []string, depth int, count *int) (nodes []Node, rest []string, err error) {
	if depth >= maxDepth {
		return nil, nil, r.fail("groups are nested deeper than %d", maxDepth)
	}
	for len(f) > 0 {
		s := f[0]
		if *count++; *count > maxNodes {
			return nil, nil, r.fail("a message has more than %d places", maxNodes)
		}
		if head, first, group := strings.Cut(s, "("); group {
			name, mark, most, err := r.name(head)
			if err != nil {
				return nil, nil, err
			}
			f[0] = first
			var children []Node
			children, f, err = r.nodes(f, depth+1, count)
			if err != nil {
				return nil, nil, err
			}
			if len(children) == 0 || len(children[0].Children) > 0 || len(f) == 0 || f[0] == "" || f[0][0] != ')' {
				return nil, nil, r.fail("group %s has no first segment or no end", name)
			}
			// A group begins with its first segment, exactly once.
			children[0].Mandatory, children[0].Max = true, 1
			nodes = append(nodes, Node{Name: name, Mandatory: mark == '!', Max: most, Children: children})
			f[0] = f[0][1:]
			switch {
			case f[0] == "":
				f = f[1:]
			case f[0][0] == ')':
				return nodes, f, nil
			default:
				return nil, nil, r.fail("%q stands behind the end of group %s", f[0], name)
			}
			continue
		}
		closing := strings.IndexByte(s, ')')
		if closing >= 0 {
			s, f[0] = s[:closing], s[closing:]
		} else {
			f = f[1:]
		}
		name, mark, most, err := r.name(s)
		if err != nil {
			return nil, nil, err
		}
		if len(name) > maxTag {
			return nil, nil, r.fail("the tag %q has more than %d characters", name, maxTag)
		}
		nodes = append(nodes, Node{Name: name, Mandatory: mark == '!', Max: most})
		if closing >= 0 {
			return nodes, f, nil
		}
	}
	return nodes, nil, nil
}

// finish resolves references. Segments of a message may come from another directory, so they are
// resolved when the message is compiled.
func (r *reader) finish() error {
	if r.d.Standard == "" || r.d.Name == "" {
		return r.fail("the records standard and directory are missing")
	}
	for _, p := range r.resolving {
		for i := range p.refs {
			ref := &p.refs[i]
			ref.element = r.d.elements[ref.ID]
			if ref.element == nil && !p.part {
				ref.composite = r.d.composites[ref.ID]
			}
			if ref.element == nil && ref.composite == nil {
				return &FormatError{Line: p.line, Text: p.what + ": " + ref.ID + " is not defined"}
			}
		}
	}
	return nil
}
