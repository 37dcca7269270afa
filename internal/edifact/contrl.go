package edifact

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/ack"
	"github.com/edihub/edihub/internal/edi/scan"
)

// ContrlOptions say how a CONTRL is written. What the received interchange decides is not here:
// sender and receiver are swapped, the test flag is mirrored, and the delimiters are those that
// the partner uses.
type ContrlOptions struct {
	ControlRef string    // own 0020: 1 to 14 characters
	MessageRef string    // own 0062; default "1"
	Time       time.Time // S004 in the time's own zone; must be set
	// Syntax is S001. The default is that of the received interchange, with the next larger
	// character set (UNOB, then UNOC) where UNOA cannot carry what is quoted.
	Syntax    string
	OnReject  ack.OnReject
	UNA       bool   // write a UNA even where none is needed
	LineBreak string // written after each segment: "", "\n" or "\r\n"; not behind a terminator that is one
	// ApplicationRef and Agreement are 0026 and 0032 of our own UNB.
	ApplicationRef, Agreement string
}

// The limits of a CONTRL (ISO 9735-4, message CONTRL): UCS of one message, UCD of one UCS, and
// messages of one interchange or group.
const (
	maxUCS = 999
	maxUCD = 99
	maxUCM = 999_999
)

// ErrNotAnswerable says that no acknowledgement can or may be made: the interchange has no
// header, its header lacks what an answer has to quote, or it carries acknowledgements only.
var ErrNotAnswerable = errors.New("the interchange cannot be acknowledged")

// Contrl returns an interchange with the CONTRL that acknowledges or rejects a received one
// (ISO 9735-4). UCI says 4 where the interchange is rejected as a whole, else 7; groups and
// messages are listed where they are rejected, with what is wrong in them. What is not listed
// shares the answer of the level above.
//
// One error is told for each UCI, UCF and UCM, the first one; errors of UNH and UNT are told in
// UCM; UCS and UCD tell the others, up to 999 segments of a message and 99 errors of a segment.
// A rejected message that does not say its reference or type is called NOREF- and its number in
// the interchange. An error is ErrNotAnswerable, ack.ErrPending, or a *ValueError for a value of
// the envelope that cannot be written.
func Contrl(r *ack.Received, o *ContrlOptions) ([]byte, error) {
	j, err := r.Judge(o.OnReject)
	if err != nil {
		return nil, err
	}
	return contrl(r, o, func(c *contrlWriter) { c.body(j) })
}

// Receipt returns an interchange with a CONTRL of action 8: the interchange has arrived, and
// nothing is said about its content yet. Where the envelope itself is at fault it says 4 instead.
func Receipt(r *ack.Received, o *ContrlOptions) ([]byte, error) {
	return contrl(r, o, func(c *contrlWriter) {
		if edi.HasFatal(r.Interchange.Findings) {
			c.uci("4", r.Interchange.Findings)
			return
		}
		c.uci("8", nil)
	})
}

func contrl(r *ack.Received, o *ContrlOptions, body func(*contrlWriter)) ([]byte, error) {
	if r.Interchange.Standard != edi.EDIFACT || !r.Answerable() {
		return nil, ErrNotAnswerable
	}
	c := &contrlWriter{r: r, members: r.ByGroup()}
	if !c.header() {
		return nil, ErrNotAnswerable
	}
	var err error
	for _, syntax := range c.syntaxes(o.Syntax) {
		var out []byte
		if out, err = c.write(o, syntax, body); err == nil {
			return out, nil
		}
		var value *ValueError
		if !errors.As(err, &value) {
			return nil, err
		}
	}
	return nil, err
}

// contrlWriter writes one CONTRL.
type contrlWriter struct {
	r                *ack.Received
	members          map[int][]int // of r.Messages, by group
	version          int
	sender, receiver [4]string // S002 and S003 as they came
	w                *Writer
	lossy            bool // a value was left out that a larger character set would carry
}

// header takes S002 and S003 from the UNB that came. It reports whether UCI can quote them.
func (c *contrlWriter) header() bool {
	ic := &c.r.Interchange
	raw := ic.Header
	if ic.ServiceUNA && len(raw) > 3 {
		if i := bytes.Index(raw[3:], []byte("UNB")); i >= 0 {
			raw = raw[3+i:]
		}
	}
	var f scan.Fields
	f.Reset(bytes.TrimRight(raw, string([]byte{ic.Delimiters.Segment})), ic.Delimiters)
	most := [4]int{35, 4, 14, 35} // 0004, 0007, 0008, 0042
	for i := range most {
		c.sender[i] = clipTo(f.String(2, i+1), most[i])
		c.receiver[i] = clipTo(f.String(3, i+1), most[i])
	}
	_, v, _ := strings.Cut(ic.Version, ":")
	n, err := strconv.Atoi(v)
	switch {
	case err != nil || n < 1:
		n = 3
	case n > 4:
		n = 4
	}
	c.version = n
	if n < 4 {
		c.sender[3], c.receiver[3] = "", ""
	}
	return c.sender[0] != "" && c.receiver[0] != "" && strings.TrimSpace(ic.ControlRef) != ""
}

// syntaxes are the values of S001 to try, from the smallest character set.
func (c *contrlWriter) syntaxes(want string) []string {
	if want != "" {
		return []string{want}
	}
	identifier, _, _ := strings.Cut(c.r.Interchange.Version, ":")
	ids := []string{identifier}
	switch {
	case identifier == "UNOA":
		ids = []string{"UNOA", "UNOB", "UNOC"}
	case identifier == "UNOB":
		ids = []string{"UNOB", "UNOC"}
	case levelCharset(identifier) == nil:
		ids = []string{"UNOC"}
	}
	for i := range ids {
		ids[i] += ":" + strconv.Itoa(c.version)
	}
	return ids
}

func (c *contrlWriter) write(o *ContrlOptions, syntax string, body func(*contrlWriter)) ([]byte, error) {
	ic := &c.r.Interchange
	ref := o.MessageRef
	if ref == "" {
		ref = "1"
	}
	e := EnvelopeOptions{
		Syntax: syntax, ControlRef: o.ControlRef, Time: o.Time, Test: ic.Test, UNA: o.UNA, LineBreak: o.LineBreak,
		Sender: edi.Party{ID: c.receiver[0], Qualifier: c.receiver[1]}, SenderRouting: c.receiver[2], SenderSub: c.receiver[3],
		Receiver: edi.Party{ID: c.sender[0], Qualifier: c.sender[1]}, ReceiverRouting: c.sender[2], ReceiverSub: c.sender[3],
		ApplicationRef: o.ApplicationRef, Agreement: o.Agreement, Original: ic.Delimiters, quoted: true,
	}
	_, version, _ := strings.Cut(syntax, ":")
	c.version, _ = strconv.Atoi(version) // NewWriter refuses what is no number
	if c.version < 4 {
		e.Original.Repetition = 0
		e.SenderSub, e.ReceiverSub = "", ""
	}
	if d := ic.Delimiters.Segment; d == '\n' || d == '\r' {
		e.LineBreak = ""
	}
	w, err := newWriter(e)
	var value *ValueError
	if errors.As(err, &value) && value.Field == "delimiter" { // theirs cannot be used
		e.Original = defaults()
		w, err = newWriter(e)
	}
	if err != nil {
		return nil, err
	}
	c.w, c.lossy = w, false
	if c.version >= 4 {
		w.Begin(ref, "CONTRL", "4", "1", "UN")
	} else {
		w.Begin(ref, "CONTRL", "D", "3", "UN")
	}
	body(c)
	w.End()
	out, err := w.Close()
	if err == nil && c.lossy && o.Syntax == "" && !strings.HasPrefix(syntax, "UNOC") && (strings.HasPrefix(syntax, "UNOA") || strings.HasPrefix(syntax, "UNOB")) {
		return nil, &ValueError{"quoted value", "", "needs a larger character set"}
	}
	return out, err
}

// body writes UCI and what is below it.
func (c *contrlWriter) body(j *ack.Judgement) {
	action := "7"
	var own []edi.Finding
	if j.Interchange.Rejected {
		action = "4"
	}
	if j.Interchange.Own {
		own = c.r.Interchange.Findings
	}
	c.uci(action, own)
	c.messages(j, 0)
	for i := range c.r.Groups {
		c.group(j, i)
	}
}

func (c *contrlWriter) uci(action string, own []edi.Finding) {
	told := c.first(own, edi.ScopeInterchange)
	ref := clipTo(strings.TrimSpace(c.r.Interchange.ControlRef), 14)
	if _, bad := c.w.w.release(ref); bad != 0 {
		c.w.w.fail("control reference of the interchange", ref, "cannot be quoted in "+c.w.w.level)
	}
	c.w.Segment("UCI", append([][]string{
		{ref}, c.quoteAll(c.sender[:]), c.quoteAll(c.receiver[:]), {action},
	}, told...)...)
}

// group writes UCF where there is something to tell about a group (ISO 9735-4, SG3).
func (c *contrlWriter) group(j *ack.Judgement, i int) {
	g := &c.r.Groups[i]
	level := j.Groups[i]
	members := c.members[g.Position]
	inside := slices.ContainsFunc(members, func(k int) bool { return j.Messages[k].Own })
	// A group that is rejected with its interchange is implied.
	if !c.r.GroupAnswerable(i, members) || !inside && (!level.Rejected || j.Interchange.Rejected && !level.Own) {
		return
	}
	action := "7"
	var own []edi.Finding
	if level.Rejected {
		action = "4"
	}
	if level.Own {
		own = g.Findings
	}
	var f scan.Fields
	f.Reset(bytes.TrimRight(g.Header, string([]byte{c.r.Interchange.Delimiters.Segment})), c.r.Interchange.Delimiters)
	party := func(element int, instead [4]string) []string {
		p := []string{c.quote(f.String(element, 1), 35), c.quote(f.String(element, 2), 4)}
		if p[0] == "" && c.version < 4 { // S006 and S007 are mandatory until syntax 3.
			p = []string{c.quote(instead[0], 35), c.quote(instead[1], 4)}
		}
		return p
	}
	ref := c.named(g.ControlRef, g.Position)
	c.w.Segment("UCF", append([][]string{{ref}, party(2, c.sender), party(3, c.receiver), {action}}, c.first(own, edi.ScopeGroup)...)...)
	c.messages(j, g.Position)
}

// messages writes UCM for each message of a group that is itself the cause of a rejection.
func (c *contrlWriter) messages(j *ack.Judgement, group int) {
	n := 0
	for _, i := range c.members[group] {
		if !j.Messages[i].Own {
			continue
		}
		if n++; n > maxUCM {
			return
		}
		c.message(&c.r.Messages[i])
	}
}

// message writes UCM, UCS and UCD of one message.
func (c *contrlWriter) message(m *ack.Message) {
	var header, inner []edi.Finding
	for _, f := range m.Findings {
		rule, _ := edi.RuleOf(f.Rule)
		switch {
		case f.Severity != edi.Fatal:
		case rule.Scope < edi.ScopeSegment || f.Segment == "UNH" || f.Segment == "UNT" || f.Segment == "UNO" || f.Segment == "UNP":
			header = append(header, f)
		default:
			inner = append(inner, f)
		}
	}
	told := c.first(header, edi.ScopeMessage)
	below := faults(inner)
	if told == nil && len(below) == 0 {
		told = [][]string{{unspecified}}
	}
	if m.Type == "UNO" && c.version >= 4 { // A package is named by 0800.
		for len(told) < 3 {
			told = append(told, nil)
		}
		c.w.Segment("UCM", append(append([][]string{nil, nil, {"4"}}, told...), []string{c.quote(m.Ref, 35)})...)
	} else {
		c.w.Segment("UCM", append([][]string{{c.named(m.Ref, m.Position)}, c.identifier(m), {"4"}}, told...)...)
	}
	c.segments(below)
}

// identifier is S009 of a message.
func (c *contrlWriter) identifier(m *ack.Message) []string {
	v := strings.SplitN(m.Version, ":", 3)
	for len(v) < 3 {
		v = append(v, "")
	}
	agency := 2 // 0051
	if c.version >= 4 {
		agency = 3
	}
	s := []string{c.quote(m.Type, 6), c.quote(v[0], 3), c.quote(v[1], 3), c.quote(v[2], agency), c.quote(m.Association, 6)}
	for i, absent := range []string{"NONE", "0", "0", "0"} {
		if s[i] == "" {
			s[i] = absent
		}
	}
	return s
}

// unspecified is 0085 for a rejection that no finding explains.
const unspecified = "18"

// first tells the first fatal finding that has a code: 0085, the service segment (0013, 0135) and
// the element in it (S011).
func (c *contrlWriter) first(fs []edi.Finding, scope edi.Scope) [][]string {
	fatal := false
	for i := range fs {
		f := &fs[i]
		if f.Severity != edi.Fatal {
			continue
		}
		fatal = true
		rule, _ := edi.RuleOf(f.Rule)
		if rule.Codes.CONTRL == "" || rule.ID == edi.RuleFindingsLimit {
			continue
		}
		told := [][]string{{rule.Codes.CONTRL}}
		if !service(f.Segment, scope) {
			return told
		}
		told = append(told, []string{f.Segment})
		if f.Element > 0 {
			told = append(told, c.place(f))
		}
		return told
	}
	if fatal {
		return [][]string{{unspecified}}
	}
	return nil
}

// service reports whether a tag may stand in 0013 or 0135 of a level.
func service(tag string, scope edi.Scope) bool {
	switch scope {
	case edi.ScopeInterchange:
		return slices.Contains([]string{"UNA", "UNB", "UNZ", "UNG", "UNE", "UNH", "UNT", "UNO", "UNP"}, tag)
	case edi.ScopeGroup:
		return slices.Contains([]string{"UNG", "UNE", "UNH", "UNT"}, tag)
	default:
		return slices.Contains([]string{"UNH", "UNT", "UNO", "UNP"}, tag)
	}
}

// place is S011. The tag has position 1.
func (c *contrlWriter) place(f *edi.Finding) []string {
	const most = 999
	p := []string{strconv.Itoa(min(f.Element+1, most)), "", ""}
	if f.Component > 0 {
		p[1] = strconv.Itoa(min(f.Component, most))
	}
	if f.Repetition > 1 && c.version >= 4 { // 0136 is of syntax 4.
		p[2] = strconv.Itoa(f.Repetition)
	}
	return p
}

// fault is one UCS with its UCDs.
type fault struct {
	position int
	code     string
	inner    []*edi.Finding
}

// segments writes UCS and UCD.
func (c *contrlWriter) segments(list []fault) {
	for _, s := range list {
		told := [][]string{{strconv.Itoa(s.position)}}
		if s.code != "" {
			told = append(told, []string{s.code})
		}
		c.w.Segment("UCS", told...)
		for i, f := range s.inner {
			if i == maxUCD {
				break
			}
			rule, _ := edi.RuleOf(f.Rule)
			c.w.Segment("UCD", []string{rule.Codes.CONTRL}, c.place(f))
		}
	}
}

// maxPosition is the largest 0096.
const maxPosition = 999_999

// faults sorts findings into segments. Those of one place and code are one.
func faults(fs []edi.Finding) []fault {
	var list []fault
	for i := range fs {
		f := &fs[i]
		rule, _ := edi.RuleOf(f.Rule)
		at := f.Position.Segment
		if rule.Class == edi.ClassMissing && rule.Scope == edi.ScopeSegment {
			at-- // ISO 9735-4 0096: the segment before the missing one.
		}
		if rule.Codes.CONTRL == "" || at < 1 || at > maxPosition {
			continue
		}
		k := fault{position: at}
		if rule.Scope == edi.ScopeSegment {
			k.code = rule.Codes.CONTRL
		}
		n := slices.IndexFunc(list, func(x fault) bool { return x.position == k.position && x.code == k.code })
		if n < 0 {
			n = len(list)
			list = append(list, k)
		}
		if rule.Scope == edi.ScopeElement {
			list[n].inner = append(list[n].inner, f)
		}
	}
	slices.SortStableFunc(list, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.position, b.position), -cmp.Compare(len(a.code), len(b.code)))
	})
	return list[:min(len(list), maxUCS)]
}

// named quotes a reference, or makes a name for what has none.
func (c *contrlWriter) named(ref string, position int) string {
	if q := c.quote(ref, 14); q != "" {
		return q
	}
	return "NOREF-" + strconv.Itoa(position)
}

func (c *contrlWriter) quoteAll(vs []string) []string {
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = c.quote(v, 35)
	}
	return out
}

// quote takes a value of the received interchange, as bytes, without what cannot stand in ours.
// It is clipped to the length of its element: an answer must be valid itself.
func (c *contrlWriter) quote(v string, most int) string {
	v = strings.TrimRight(clipTo(v, most), " ")
	if _, bad := c.w.w.release(v); bad == 0 {
		return v
	}
	var b strings.Builder
	for i := range len(v) {
		if _, bad := c.w.w.release(v[i : i+1]); bad != 0 {
			c.lossy = true
			continue
		}
		b.WriteByte(v[i])
	}
	return strings.TrimRight(b.String(), " ")
}

// clipTo cuts a value to a number of bytes, and not inside a character of UTF-8.
func clipTo(v string, most int) string {
	if len(v) <= most {
		return v
	}
	cut := most
	for cut > 0 && utf8.ValidString(v) && !utf8.RuneStart(v[cut]) {
		cut--
	}
	return v[:cut]
}
