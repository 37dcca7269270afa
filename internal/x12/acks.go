package x12

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/ack"
	"github.com/edihub/edihub/internal/edi/scan"
)

// AckOptions say which acknowledgements of an interchange are written, and how. What the received
// interchange decides is not here: sender and receiver are swapped, the usage is mirrored, and
// the delimiters are those that the partner uses.
type AckOptions struct {
	ControlRef string    // own ISA13: 1 to 9 digits
	GroupRef   int64     // own GS06 of the first group, 1 to 999,999,999; the others follow it
	Time       time.Time // ISA09, ISA10, GS04, GS05 in the time's own zone; must be set
	// TA1 writes a TA1 before the groups; Functional writes a 997 or 999 for each group.
	TA1, Functional bool
	Type            string // ack.TypeAuto (default), ack.Type997 or ack.Type999
	// AcceptedLoops lists accepted sets too (AK2 with AK5 A).
	AcceptedLoops bool
	OnReject      ack.OnReject
	// LineBreak is written after each segment: "", "\n" or "\r\n". It is left out where the
	// segment terminator is a line break itself.
	LineBreak string
}

// The limits of an acknowledgement: segments told of one set, and errors of one segment (X12.20,
// loops AK3 and AK4).
const (
	maxAK3 = 999
	maxAK4 = 99
)

// ErrNotAnswerable says that no acknowledgement can or may be made: the interchange has no
// header, carries acknowledgements only, or there is nothing that was asked for.
var ErrNotAnswerable = errors.New("the interchange cannot be acknowledged")

// guide999 is GS08 and ST03 of a 999.
const guide999 = "005010X231A1"

// kind is what the acknowledgements in one functional group of ours share.
type kind struct{ typ, version, sender, receiver string }

// answer is a functional group of ours: 997s or 999s for groups of one pair of parties.
type answer struct {
	kind
	groups []int // indexes of Received.Groups
}

// answers sorts the received groups into groups of ours.
func answers(r *ack.Received, o *AckOptions) []answer {
	if !o.Functional {
		return nil
	}
	var list []answer
	by := r.ByGroup()
	seen := make(map[kind]int)
	for i := range r.Groups {
		g := &r.Groups[i]
		if !r.GroupAnswerable(i, by[g.Position]) {
			continue
		}
		k := kind{typ: ack.FunctionalType(o.Type, g.Version), version: guide999, sender: g.Receiver, receiver: g.Sender}
		if k.typ == ack.Type997 {
			k.version = directoryOf(g.Version)
		}
		n, ok := seen[k]
		if !ok {
			n = len(list)
			seen[k] = n
			list = append(list, answer{kind: k})
		}
		list[n].groups = append(list[n].groups, i)
	}
	return list
}

// directoryOf is the version of a 997: that of the group it answers.
func directoryOf(version string) string {
	if len(version) >= directoryLength && allDigits(version[:directoryLength]) {
		return version[:directoryLength]
	}
	return "004010"
}

// AckGroups is how many functional groups Acknowledge writes, and with it how many group
// references it uses: one for each kind of acknowledgement, version and pair of GS02 and GS03.
func AckGroups(r *ack.Received, o *AckOptions) int { return len(answers(r, o)) }

// Acknowledge returns an interchange with the acknowledgements of a received one: a TA1, one 997
// or 999 for each functional group, or both. Groups of acknowledgements are passed over, and so
// are sets outside of any group, which a TA1 tells with note 022.
//
// A set is listed (AK2) when it is rejected by itself or accepted with errors, and with
// AcceptedLoops when it is accepted; one that is rejected with its group shares the answer of the
// group. Up to 999 segments and 99 errors of each are told. What an answer quotes is clipped to
// its element and filled up with blanks; a bad value is told only where no delimiter is in it. An
// error is ErrNotAnswerable, ack.ErrPending, or a *ValueError for a value of the envelope that
// cannot be written.
func Acknowledge(r *ack.Received, o *AckOptions) ([]byte, error) {
	if r.Interchange.Standard != edi.X12 || !r.Answerable() {
		return nil, ErrNotAnswerable
	}
	list := answers(r, o)
	if len(list) == 0 && !o.TA1 {
		return nil, ErrNotAnswerable
	}
	w, err := newAckWriter(r, o, list)
	if err != nil {
		return nil, err
	}
	if o.TA1 {
		w.ta1(o.Time)
	}
	if len(list) > 0 {
		if w.j, err = r.Judge(o.OnReject); err != nil {
			return nil, err
		}
	}
	const most = 999_999_999
	ref := o.GroupRef
	for _, a := range list {
		ic := &r.Interchange
		w.w.Group(GroupOptions{
			FunctionID: "FA", ControlRef: strconv.FormatInt(ref, 10), Version: a.version,
			Sender: w.party(a.sender, ic.Receiver.ID), Receiver: w.party(a.receiver, ic.Sender.ID),
		})
		if ref++; ref > most {
			ref = 1
		}
		w.typ = a.typ
		for i, g := range a.groups {
			w.group(g, i+1)
		}
	}
	return w.w.Close()
}

// ackWriter writes acknowledgements of one interchange.
type ackWriter struct {
	r       *ack.Received
	members map[int][]int // of r.Messages, by group
	o       *AckOptions
	w       *Writer
	j       *ack.Judgement
	typ     string
}

func newAckWriter(r *ack.Received, o *AckOptions, list []answer) (*ackWriter, error) {
	ic := &r.Interchange
	e := EnvelopeOptions{
		Version: ic.Version, ControlRef: o.ControlRef, Time: o.Time, Test: ic.Test, LineBreak: o.LineBreak,
		Sender: ic.Receiver, Receiver: ic.Sender, Delimiters: ic.Delimiters,
	}
	if len(e.Version) != 5 || !allDigits(e.Version) {
		e.Version = "00401"
	}
	if e.Version < "00501" && slices.ContainsFunc(list, func(a answer) bool { return a.typ == ack.Type999 }) {
		e.Version = "00501"
	}
	e.Delimiters.Release = 0
	for _, fallback := range []bool{false, true} {
		if fallback { // theirs cannot be used
			e.Delimiters = edi.Delimiters{}
		}
		e.Delimiters.Repetition = repetition(e.Version, e.Delimiters)
		if e.LineBreak = o.LineBreak; e.Delimiters.Segment == '\n' || e.Delimiters.Segment == '\r' {
			e.LineBreak = ""
		}
		w, err := NewWriter(e)
		var bad *ValueError
		if errors.As(err, &bad) && bad.Field == "delimiter" && !fallback {
			continue
		}
		if err != nil {
			return nil, err
		}
		return &ackWriter{r: r, members: r.ByGroup(), o: o, w: w}, nil
	}
	return nil, ErrNotAnswerable // not reached: the default delimiters can be used
}

// repetition is ISA11 of our own: theirs, or a character that is free, from 00402 on.
func repetition(version string, d edi.Delimiters) byte {
	if version < "00402" || d.Repetition != 0 {
		if version < "00402" {
			return 0
		}
		return d.Repetition
	}
	for _, c := range []byte("^!|%") {
		if c != d.Element && c != d.Component && c != d.Segment {
			return c
		}
	}
	return 0
}

// party is GS02 or GS03: that of the group swapped, or that of the interchange where it cannot
// be written.
func (w *ackWriter) party(id, otherwise string) string {
	if q := w.quote(id, 0, 15); len(q) >= 2 {
		return q
	}
	q := w.quote(otherwise, 0, 15)
	if len(q) < 2 {
		q += strings.Repeat("0", 2-len(q))
	}
	return q
}

// ta1 writes the TA1: TA101 to TA103 name the interchange by ISA13, ISA09 and ISA10.
func (w *ackWriter) ta1(now time.Time) {
	ic := &w.r.Interchange
	day, clock := now.Format("060102"), now.Format("1504")
	var f scan.Fields
	f.Reset(bytes.TrimRight(ic.Header, string([]byte{ic.Delimiters.Segment})), edi.Delimiters{Element: ic.Delimiters.Element})
	if v := f.String(9, 1); len(v) == 6 && allDigits(v) {
		day = v
	}
	if v := f.String(10, 1); len(v) == 4 && allDigits(v) {
		clock = v
	}
	ref := strings.TrimSpace(ic.ControlRef)
	if !allDigits(ref) || len(ref) > 9 {
		ref = ""
	}
	ref = strings.Repeat("0", 9-len(ref)) + ref
	action, note := w.note()
	w.w.Interchange("TA1", ref, day, clock, action, note)
}

// note is TA104 and TA105.
func (w *ackWriter) note() (action, note string) {
	action, note = "A", "000"
	for i := range w.r.Interchange.Findings {
		f := &w.r.Interchange.Findings[i]
		if !ack.Tell(f) || action == "E" && f.Severity == edi.Warning {
			continue
		}
		code := "024" // invalid interchange content: what no rule tells better
		if rule, ok := edi.RuleOf(f.Rule); ok && rule.Scope == edi.ScopeInterchange && rule.Codes.X12Error != "" {
			code = rule.Codes.X12Error
		}
		if f.Rule == "EDI-ISA-DELIMITER" && f.Element == 16 {
			code = "027" // the component separator; 004 is the segment terminator
		}
		if f.Severity == edi.Fatal {
			return "R", code
		}
		action, note = "E", code
	}
	if action == "A" {
		for i := range w.r.Messages {
			if w.r.Messages[i].Group == 0 {
				return "E", "022"
			}
		}
	}
	return action, note
}

// group writes one 997 or 999.
func (w *ackWriter) group(i, number int) {
	g := &w.r.Groups[i]
	level := w.j.Groups[i]
	ref := strconv.Itoa(number)
	ref = strings.Repeat("0", max(0, 4-len(ref))) + ref
	guide, version := "", ""
	if w.typ == ack.Type999 {
		guide, version = guide999, w.quote(g.Version, 0, 12)
	}
	w.w.Begin(w.typ, ref, guide)
	control := strings.TrimSpace(g.ControlRef)
	if !allDigits(control) || control == "" || len(control) > 9 {
		control = "0"
	}
	w.w.Segment("AK1", w.mandatory(g.FunctionID, 2, 2), control, version)
	accepted, noted, rejected := 0, level.Noted, 0
	for _, k := range w.members[g.Position] {
		m := &w.r.Messages[k]
		if w.r.Acknowledges(k) {
			continue
		}
		l := w.j.Messages[k]
		if l.Rejected {
			rejected++
		} else {
			accepted++
			noted = noted || l.Noted
		}
		if l.Own || l.Noted || w.o.AcceptedLoops && !l.Rejected {
			w.set(m, l)
		}
	}
	status := "A"
	switch {
	case level.Rejected || rejected > 0 && accepted == 0:
		status, accepted = "R", 0
	case rejected > 0:
		status = "P"
	case noted:
		status = "E"
	}
	elements := []string{status, included(g), strconv.Itoa(min(g.Messages, maxSets)), strconv.Itoa(min(accepted, maxSets))}
	w.w.Segment("AK9", append(elements, w.codes(g.Findings, edi.ScopeGroup)...)...)
	w.w.End()
}

// included is AK902: the number of sets that the GE claims.
func included(g *edi.Group) string {
	for i := range g.Findings {
		f := &g.Findings[i]
		if v := strings.TrimSpace(f.Actual); f.Rule == "EDI-GE-COUNT" && v != "" && len(v) <= 6 && allDigits(v) {
			return v
		}
	}
	return strconv.Itoa(min(g.Messages, maxSets))
}

// maxCodes is how many codes AK5 and AK9 hold.
const maxCodes = 5

// codes are those of the findings of one level, each once. Fatal ones come first.
func (w *ackWriter) codes(fs []edi.Finding, scope edi.Scope) []string {
	var list []string
	for _, severity := range []edi.Severity{edi.Fatal, edi.Warning} {
		for i := range fs {
			f := &fs[i]
			rule, _ := edi.RuleOf(f.Rule)
			if f.Severity != severity || !ack.Tell(f) || rule.Scope != scope {
				continue
			}
			if c := w.code(&rule); c != "" && !slices.Contains(list, c) && len(list) < maxCodes {
				list = append(list, c)
			}
		}
	}
	return list
}

// code is that of a rule in the acknowledgement that is written.
func (w *ackWriter) code(rule *edi.Rule) string {
	if w.typ == ack.Type999 {
		return rule.IK()
	}
	return rule.Codes.X12Error
}

// set writes AK2 to AK5, or AK2 to IK5.
func (w *ackWriter) set(m *ack.Message, l ack.Level) {
	segment, element, end := "AK3", "AK4", "AK5"
	guide := ""
	if w.typ == ack.Type999 {
		segment, element, end = "IK3", "IK4", "IK5"
		if len(m.Version) > directoryLength {
			guide = w.quote(m.Version, 0, 35)
		}
	}
	w.w.Segment("AK2", w.mandatory(m.Type, 3, 3), w.mandatory(m.Ref, 4, 9), guide)
	plain, implementation := false, false
	for _, s := range w.faults(m.Findings) {
		w.w.Segment(segment, w.tag(s.tag), strconv.Itoa(s.position), w.loop(s.loop), s.code)
		for i, f := range s.inner {
			if i == maxAK4 {
				break
			}
			rule, _ := edi.RuleOf(f.Rule)
			w.w.Segment(element, w.place(f), w.number(f.DataElement), w.code(&rule), w.value(f.Actual))
			w.context(s, f)
		}
		plain = plain || s.plain
		implementation = implementation || s.implementation
	}
	codes := w.codes(m.Findings, edi.ScopeMessage)
	if other := slices.ContainsFunc(m.Findings, w.elsewhere); (plain || other || l.Rejected && len(codes) == 0 && !implementation) && !slices.Contains(codes, "5") && len(codes) < maxCodes {
		codes = append(codes, "5")
	}
	if implementation && len(codes) < maxCodes {
		codes = append(codes, "I5")
	}
	status := "A"
	switch {
	case l.Rejected:
		status = "R"
	case l.Noted:
		status = "E"
	}
	w.w.Segment(end, append([]string{status}, codes...)...)
}

// elsewhere reports whether a finding of a set speaks of a level above it: an early end of the
// file, for instance.
func (w *ackWriter) elsewhere(f edi.Finding) bool {
	rule, _ := edi.RuleOf(f.Rule)
	return f.Severity == edi.Fatal && (rule.Scope == edi.ScopeInterchange || rule.Scope == edi.ScopeGroup)
}

// fault is one AK3 with its AK4s.
type fault struct {
	position              int
	tag, loop, code       string
	plain, implementation bool
	inner                 []*edi.Finding
}

// inSegment is AK304 of a segment whose elements have errors.
const inSegment = "8"

// faults sorts findings into segments; those of one place, tag and code are one.
func (w *ackWriter) faults(fs []edi.Finding) []fault {
	const maxPosition = 999_999 // 719
	var list []fault
	for i := range fs {
		f := &fs[i]
		rule, _ := edi.RuleOf(f.Rule)
		code := w.code(&rule)
		at := f.Position.Segment
		if rule.Scope < edi.ScopeSegment || code == "" || !ack.Tell(f) || at < 1 || at > maxPosition {
			continue
		}
		k := fault{position: at, tag: f.Segment, loop: f.Loop, code: code}
		if rule.Scope == edi.ScopeElement {
			k.code = inSegment
		}
		n := slices.IndexFunc(list, func(x fault) bool { return x.position == k.position && x.code == k.code && x.tag == k.tag })
		if n < 0 {
			n = len(list)
			list = append(list, k)
		}
		if rule.Scope == edi.ScopeElement {
			list[n].inner = append(list[n].inner, f)
		}
		if code[0] == 'I' {
			list[n].implementation = true
		} else {
			list[n].plain = true
		}
	}
	slices.SortStableFunc(list, func(a, b fault) int { return cmp.Compare(a.position, b.position) })
	return list[:min(len(list), maxAK3)]
}

// place is C030: element, component and, in a 999, repetition.
func (w *ackWriter) place(f *edi.Finding) string {
	const most = 99
	parts := []string{strconv.Itoa(min(f.Element, most)), "", ""}
	if f.Component > 0 {
		parts[1] = strconv.Itoa(min(f.Component, most))
	}
	if f.Repetition > 1 && w.typ == ack.Type999 {
		parts[2] = strconv.Itoa(f.Repetition)
	}
	return Composite(parts...)
}

// context writes the CTX that names what a relational note makes of other elements: the first one
// of the note that is not the one told.
func (w *ackWriter) context(s fault, f *edi.Finding) {
	if w.typ != ack.Type999 || f.Rule != edi.RuleElementCondition && f.Rule != edi.RuleElementExclusion || len(f.Expected) < 5 {
		return
	}
	note := f.Expected[1:]
	for len(note) >= 2 && allDigits(note[:2]) {
		if n, _ := strconv.Atoi(note[:2]); n > 0 && n != f.Element {
			w.w.Segment("CTX", "SITUATIONAL TRIGGER", w.tag(s.tag), strconv.Itoa(s.position), w.loop(s.loop), strconv.Itoa(n))
			return
		}
		note = note[2:]
	}
}

// number is a data element number: those of composites are none.
func (w *ackWriter) number(id string) string {
	if len(id) > 4 || !allDigits(id) {
		return ""
	}
	return id
}

// loop is AK303.
func (w *ackWriter) loop(id string) string {
	if q := w.quote(id, 0, 4); q == id {
		return q
	}
	return ""
}

// unquotable stands in AK301, which is mandatory, for a tag of the partner's that no segment
// identifier (X12.6) can hold.
const unquotable = "XXX"

// tag is AK301.
func (w *ackWriter) tag(tag string) string {
	if q := w.quote(tag, 2, 3); q != "" {
		return q
	}
	return unquotable
}

// value is AK404, a copy of the bad value: nothing where it cannot be written as it came.
func (w *ackWriter) value(v string) string {
	v = strings.TrimRight(v, " ")
	if q := w.quote(v, 0, edi.MaxActual); q == v {
		return q
	}
	return ""
}

// mandatory quotes a value that must be there; zeros stand for one that is not.
func (w *ackWriter) mandatory(v string, least, most int) string {
	if q := w.quote(v, least, most); q != "" {
		return q
	}
	return strings.Repeat("0", least)
}

// quote takes a value without the characters that cannot be written, cut to the most and filled
// up with blanks to the least number of characters.
func (w *ackWriter) quote(v string, least, most int) string {
	d := w.w.w.d
	var b strings.Builder
	for i := range len(v) {
		c := v[i]
		if b.Len() == most {
			break
		}
		if c >= ' ' && c <= '~' && c != d.Element && c != d.Component && c != d.Segment && c != d.Repetition {
			b.WriteByte(c)
		}
	}
	q := strings.TrimRight(b.String(), " ")
	if q != "" && len(q) < least {
		q += strings.Repeat(" ", least-len(q))
	}
	return q
}
