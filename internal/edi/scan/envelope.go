package scan

import (
	"bytes"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/edihub/edihub/internal/edi"
)

// Names are the tags of the service segments of a standard.
type Names struct {
	Open, Close           string // UNB and UNZ, or ISA and IEA
	GroupOpen, GroupClose string // UNG and UNE, or GS and GE
	MsgOpen, MsgClose     string // UNH and UNT, or ST and SE
	GroupsRequired        bool   // each message stands in a group (X12)
}

// Trailer is a segment that closes something, as it was read.
type Trailer struct {
	Tag        string
	Count, Ref []byte // unescaped
	At         At
}

// At is the place of a segment.
type At struct{ Offset, End int64 }

// Books keep the open interchange, group and message of a file, check trailers against what was
// counted, and queue the events. All counts compare as numbers and all references as strings
// without the blanks around them (ISO 9735-1 §9, X12.5 IEA01, IEA02).
type Books struct {
	names Names
	l     Limits
	queue []edi.Event
	taken int
	total int // interchanges so far

	open     bool
	headless bool
	ic       edi.Interchange
	icShown  *edi.Interchange
	icFound  collector
	last     int64 // place after the last segment

	groupOpen  bool
	group      edi.Group
	groupShown *edi.Group
	groupFound collector

	msgOpen  bool
	pack     bool  // the open message is a package: an object between UNO and UNP
	object   int64 // its length
	msg      edi.Message
	msgFound collector

	icRefs, groupRefs, msgRefs seen // references of the file, of the interchange, and of its messages
}

// NewBooks returns empty books.
func NewBooks(n Names, l Limits) *Books { return &Books{names: n, l: l.WithDefaults()} }

// Event takes the next event off the queue.
func (b *Books) Event() (edi.Event, bool) {
	if b.taken == len(b.queue) {
		b.queue, b.taken = b.queue[:0], 0
		return edi.Event{}, false
	}
	ev := b.queue[b.taken]
	b.queue[b.taken] = edi.Event{}
	b.taken++
	return ev, true
}

// Open reports whether an interchange is open.
func (b *Books) Open() bool { return b.open }

// Headless reports whether the open interchange has no header.
func (b *Books) Headless() bool { return b.headless }

// MessageOpen reports whether a message is open.
func (b *Books) MessageOpen() bool { return b.msgOpen }

// GroupOpen reports whether a group is open.
func (b *Books) GroupOpen() bool { return b.groupOpen }

// Group is the open group; without one it is empty.
func (b *Books) Group() edi.Group {
	if !b.groupOpen {
		return edi.Group{}
	}
	return b.group
}

// Message is the open message.
func (b *Books) Message() *edi.Message { return &b.msg }

// Interchange is the open interchange.
func (b *Books) Interchange() *edi.Interchange { return &b.ic }

func (b *Books) limit(name string, have, most int, at At) error {
	if have <= most {
		return nil
	}
	return &edi.LimitError{Limit: name, Max: int64(most), Offset: at.Offset}
}

// Segment counts a segment of the open interchange (and message).
func (b *Books) Segment(at At) error {
	b.ic.Segments++
	b.last = at.End
	if b.msgOpen {
		b.msg.Segments++
	}
	return b.limit("max_segments", b.ic.Segments, b.l.MaxSegments, at)
}

// Room is how many more segments the open interchange may have.
func (b *Books) Room() int { return max(b.l.MaxSegments-b.ic.Segments, 0) }

// Plain counts n segments of the open message that were passed unseen; end is the place behind
// the last one. There must be Room for them.
func (b *Books) Plain(n int, end int64) {
	b.ic.Segments += n
	b.msg.Segments += n
	b.last = end
}

// OpenInterchange opens an interchange whose header (UNB, ISA) stands at `at`. headless says
// that there was no header.
func (b *Books) OpenInterchange(ic edi.Interchange, at At, headless bool, found ...edi.Finding) error {
	b.total++
	if err := b.limit("max_interchanges", b.total, b.l.MaxInterchanges, at); err != nil {
		return err
	}
	b.open, b.headless, b.ic = true, headless, ic
	b.icFound = collector{max: b.l.MaxFindings}
	b.icFound.add(found...)
	b.groupRefs, b.msgRefs = seen{}, seen{}
	if !headless && b.icRefs.again(ic.Sender.Qualifier, ic.Sender.ID, ic.Receiver.Qualifier, ic.Receiver.ID, ic.ControlRef) {
		b.icFound.add(b.repeated(b.names.Open, ic.ControlRef, at, 0, "an interchange of this file between the same parties"))
	}
	b.last = at.End
	if !headless {
		b.ic.Segments = 1
	}
	shown := b.ic
	shown.Findings = slices.Clone(b.icFound.list)
	b.icShown = &shown
	b.queue = append(b.queue, edi.Event{Kind: edi.InterchangeBegin, Interchange: b.icShown})
	return nil
}

// OpenGroup opens a group; one that is still open is cut off.
func (b *Books) OpenGroup(g edi.Group, at At, found ...edi.Finding) error {
	b.cutGroup(b.names.GroupOpen, at)
	b.ic.Groups++
	b.ic.Segments++
	b.last = at.End
	if err := b.limit("max_groups", b.ic.Groups, b.l.MaxGroups, at); err != nil {
		return err
	}
	g.Position = b.ic.Groups
	g.Offset = at.Offset
	b.groupOpen, b.group = true, g
	b.groupFound = collector{max: b.l.MaxFindings}
	b.groupFound.add(found...)
	if b.groupRefs.again(g.FunctionID, g.ControlRef) {
		b.groupFound.add(b.repeated(b.names.GroupOpen, g.ControlRef, at, 0, "a group of this interchange"))
	}
	if !b.names.GroupsRequired && b.ic.Groups == 1 && b.ic.Messages > 0 {
		b.groupFound.add(edi.Finding{
			Rule: "EDI-" + b.names.GroupOpen + "-MIXED", Severity: edi.Fatal, Segment: b.names.GroupOpen,
			Position: edi.Position{Offset: at.Offset},
			Message:  "a group begins after messages that stand in no group; put all messages of the interchange into groups, or none",
		})
	}
	shown := b.group
	shown.Findings = slices.Clone(b.groupFound.list)
	b.groupShown = &shown
	b.queue = append(b.queue, edi.Event{Kind: edi.GroupBegin, Interchange: b.icShown, Group: b.groupShown})
	return nil
}

// OpenMessage opens a message; one that is still open is cut off.
func (b *Books) OpenMessage(m edi.Message, at At) error {
	b.cutMessage(b.names.MsgOpen, at)
	b.ic.Messages++
	b.ic.Segments++
	b.last = at.End
	if err := b.limit("max_messages", b.ic.Messages, b.l.MaxMessages, at); err != nil {
		return err
	}
	m.Position = b.ic.Messages
	m.Offset = at.Offset
	m.Segments = 1
	b.msgFound = collector{max: b.l.MaxFindings}
	if b.groupOpen {
		b.group.Messages++
		m.Group = b.group.Position
		m.FunctionID = b.group.FunctionID
	} else if b.names.GroupsRequired && !b.headless || b.ic.Groups > 0 {
		b.msgFound.add(edi.Finding{
			Rule: "EDI-" + b.names.MsgOpen + "-OUTSIDE-GROUP", Severity: edi.Fatal, Segment: b.names.MsgOpen,
			Position: edi.Position{Segment: 1, Offset: at.Offset},
			Message:  "the message stands outside a functional group; put it between " + b.names.GroupOpen + " and " + b.names.GroupClose,
		})
	}
	if b.msgRefs.again(strconv.Itoa(m.Group), m.Ref) {
		b.msgFound.add(b.repeated(b.names.MsgOpen, m.Ref, at, 1, "a message before it"))
	}
	b.msgOpen, b.pack, b.msg = true, false, m
	return nil
}

// OpenPackage opens a package, which counts as a message (ISO 9735-8). object is the length of
// what stands behind the UNO, negative when it is not known.
func (b *Books) OpenPackage(m edi.Message, at At, object int64) error {
	err := b.OpenMessage(m, at)
	b.pack, b.object = true, object
	return err
}

// PackageOpen reports whether the open message is a package.
func (b *Books) PackageOpen() bool { return b.msgOpen && b.pack }

// msgTags are the tags that open and close the open message.
func (b *Books) msgTags() (opening, closing string) {
	if b.pack {
		return "UNO", "UNP"
	}
	return b.names.MsgOpen, b.names.MsgClose
}

// AddInterchange adds a finding to the open interchange.
func (b *Books) AddInterchange(f edi.Finding) { b.icFound.add(f) }

// Add adds a finding to the innermost that is open. Inside a message it stands at
// the segment counted last unless it says otherwise.
func (b *Books) Add(f edi.Finding) {
	switch {
	case b.msgOpen:
		if f.Position.Segment == 0 {
			f.Position.Segment = b.msg.Segments
		}
		b.msgFound.add(f)
	case b.groupOpen:
		b.groupFound.add(f)
	default:
		b.icFound.add(f)
	}
}

// NoTerminator records that a line break stands where the terminator of a segment should be.
// counted says that the segment opened what it stands in.
func (b *Books) NoTerminator(tag string, at At, counted bool) {
	f := edi.Finding{
		Rule: "EDI-NO-TERMINATOR", Severity: edi.Fatal, Segment: tag, Position: edi.Position{Offset: at.End},
		Message: "a line break and another segment stand where the terminator of " + tag + " should be; end each segment with the terminator",
	}
	if b.msgOpen && !counted {
		f.Position.Segment = b.msg.Segments + 1
	}
	b.Add(f)
}

// repeated is the remark on a reference that came before. It is a warning: whether a repeat is
// refused is the agreement's affair, and references are remembered in bounded number.
func (b *Books) repeated(tag, ref string, at At, segment int, where string) edi.Finding {
	return edi.Finding{
		Rule: "EDI-" + tag + "-DUPLICATE", Severity: edi.Warning, Segment: tag, Position: edi.Position{Segment: segment, Offset: at.Offset},
		Actual: clip([]byte(ref)), Message: "the reference in " + tag + " is that of " + where + " too; give each one a reference of its own",
	}
}

// Unterminated records that the input ended inside the segment that comes next.
func (b *Books) Unterminated(tag string, at At) {
	f := edi.Finding{
		Rule: "EDI-NO-TERMINATOR", Severity: edi.Fatal, Segment: tag, Position: edi.Position{Offset: at.Offset},
		Message: "the file ends inside a segment; end the last segment with the terminator too",
	}
	if b.msgOpen {
		f.Position.Segment = b.msg.Segments + 1
	}
	b.Add(f)
}

// BadLength records that the length of binary data in the segment counted last was not believed.
func (b *Books) BadLength(tag string, seg *Segment) {
	b.Add(edi.Finding{
		Rule: "EDI-" + tag + "-LENGTH", Severity: edi.Fatal, Segment: tag,
		Position: edi.Position{Element: seg.BinaryElement, Offset: seg.Offset},
		Message:  "the length of the binary data is not usable: " + string(seg.BinaryError) + "; write the exact number of its bytes",
	})
}

// Wrapped is the remark on a header (without terminator) with a line break inside, nothing where it has none: a mail
// program or a mainframe has broken the lines. The envelope is read as it was meant, and the
// finding is fatal: messages are forwarded unchanged, and nobody can tell which breaks are data.
func Wrapped(tag string, raw []byte, at int64) []edi.Finding {
	i := bytes.IndexAny(raw, "\r\n")
	if i < 0 {
		return nil
	}
	return []edi.Finding{{
		Rule: "EDI-WRAPPED", Severity: edi.Fatal, Segment: tag, Position: edi.Position{Offset: at + int64(i)},
		Message: "a line break stands inside the " + tag + ", as if something had wrapped the lines, and values would be delivered with such breaks in them; send the file without wrapping",
	}}
}

// Unwrap returns a segment without line breaks, for the booking of a wrapped interchange: a break
// may stand inside a tag or a count.
func Unwrap(raw []byte) []byte {
	if bytes.IndexAny(raw, "\r\n") < 0 {
		return raw
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte("\r"), nil), []byte("\n"), nil)
}

// Outside records a segment that belongs to no message.
func (b *Books) Outside(tag string, at At) {
	b.Add(edi.Finding{
		Rule: "EDI-SEGMENT-OUTSIDE", Severity: edi.Fatal, Segment: tag, Position: edi.Position{Offset: at.Offset},
		Message: "the segment stands outside a message; put it between " + b.names.MsgOpen + " and " + b.names.MsgClose + " or remove it",
	})
}

// CloseMessage closes the open message with its trailer. The trailer counts as a segment.
func (b *Books) CloseMessage(t Trailer) error {
	if b.msgOpen && b.pack {
		b.cutMessage(t.Tag, t.At)
	}
	err := b.Segment(t.At)
	if !b.msgOpen {
		b.stray(t, b.names.MsgOpen)
		return err
	}
	b.checkCount(&b.msgFound, t, int64(b.msg.Segments), b.msg.Segments, "segments from "+b.names.MsgOpen+" to "+t.Tag)
	b.checkRef(&b.msgFound, t, b.msg.Ref, b.names.MsgOpen, b.msg.Segments)
	b.endMessage(t.At.End)
	return err
}

// ClosePackage closes the open package with its UNP, whose count is the length of the object.
func (b *Books) ClosePackage(t Trailer) error {
	err := b.Segment(t.At)
	if !b.PackageOpen() {
		b.stray(t, "UNO")
		return err
	}
	if b.object >= 0 {
		b.checkCount(&b.msgFound, t, b.object, b.msg.Segments, "bytes between UNO and UNP")
	}
	b.checkRef(&b.msgFound, t, b.msg.Ref, "UNO", b.msg.Segments)
	b.endMessage(t.At.End)
	return err
}

// CloseGroup closes the open group with its trailer.
func (b *Books) CloseGroup(t Trailer) error {
	b.cutMessage(t.Tag, t.At)
	err := b.Segment(t.At)
	if !b.groupOpen {
		b.stray(t, b.names.GroupOpen)
		return err
	}
	b.checkCount(&b.groupFound, t, int64(b.group.Messages), 0, "messages of the group")
	b.checkRef(&b.groupFound, t, b.group.ControlRef, b.names.GroupOpen, 0)
	b.endGroup(t.At.End)
	return err
}

// CloseInterchange closes the interchange with its trailer.
func (b *Books) CloseInterchange(t Trailer) error {
	b.cutGroup(t.Tag, t.At)
	err := b.Segment(t.At)
	b.ic.TrailerSeen = true
	if !b.headless {
		want, what := b.ic.Groups, "functional groups"
		if want == 0 && !b.names.GroupsRequired {
			want, what = b.ic.Messages, "messages"
		}
		b.checkCount(&b.icFound, t, int64(want), 0, what+" of the interchange")
		b.checkRef(&b.icFound, t, b.ic.ControlRef, b.names.Open, 0)
	}
	b.endInterchange(t.At.End)
	return err
}

// CutInterchange ends the interchange without a trailer: at the end of the file (by is empty)
// or because the segment `by` begins another one.
func (b *Books) CutInterchange(by string, at At) {
	b.cutGroup(by, at)
	if !b.headless {
		b.icFound.add(b.missing("EDI-NO-TRAILER", b.names.Open, b.names.Close, by, at, 0))
	}
	b.endInterchange(b.last)
}

func (b *Books) missing(rule, open, want, by string, at At, segment int) edi.Finding {
	where := "the file ends"
	if by != "" {
		where = by + " comes"
	}
	return edi.Finding{
		Rule: rule, Severity: edi.Fatal, Segment: want, Position: edi.Position{Segment: segment, Offset: at.Offset},
		Message: where + " before the " + want + " that closes the " + open + "; send the whole document with its trailer",
	}
}

func (b *Books) cutMessage(by string, at At) {
	if !b.msgOpen {
		return
	}
	opening, closing := b.msgTags()
	b.msgFound.add(b.missing("EDI-"+closing+"-MISSING", opening, closing, by, at, b.msg.Segments+1))
	b.endMessage(b.last)
}

func (b *Books) cutGroup(by string, at At) {
	b.cutMessage(by, at)
	if !b.groupOpen {
		return
	}
	b.groupFound.add(b.missing("EDI-"+b.names.GroupClose+"-MISSING", b.names.GroupOpen, b.names.GroupClose, by, at, 0))
	b.endGroup(b.last)
}

func (b *Books) endMessage(end int64) {
	m := b.msg
	m.Length = end - m.Offset
	m.Findings = b.msgFound.take()
	b.msgOpen = false
	ev := edi.Event{Kind: edi.MessageEnd, Interchange: b.icShown, Message: &m}
	if b.groupOpen {
		ev.Group = b.groupShown
	}
	b.queue = append(b.queue, ev)
}

func (b *Books) endGroup(end int64) {
	g := b.group
	g.Length = end - g.Offset
	g.Findings = b.groupFound.take()
	b.groupOpen = false
	b.queue = append(b.queue, edi.Event{Kind: edi.GroupEnd, Interchange: b.icShown, Group: &g})
}

func (b *Books) endInterchange(end int64) {
	ic := b.ic
	ic.Length = end - ic.Offset
	ic.Findings = b.icFound.take()
	b.open = false
	b.queue = append(b.queue, edi.Event{Kind: edi.InterchangeEnd, Interchange: &ic})
}

func (b *Books) stray(t Trailer, open string) {
	b.Add(edi.Finding{
		Rule: "EDI-" + t.Tag + "-STRAY", Severity: edi.Fatal, Segment: t.Tag, Position: edi.Position{Offset: t.At.Offset},
		Message: t.Tag + " closes nothing: no " + open + " is open; remove it or send the " + open + " before it",
	})
}

func (b *Books) checkCount(c *collector, t Trailer, want int64, segment int, what string) {
	if n, ok := number(t.Count); ok && n == want {
		return
	}
	c.add(edi.Finding{
		Rule: "EDI-" + t.Tag + "-COUNT", Severity: edi.Fatal, Segment: t.Tag,
		Position: edi.Position{Segment: segment, Element: 1, Offset: t.At.Offset},
		Actual:   clip(t.Count), Expected: strconv.FormatInt(want, 10),
		Message: "the count in " + t.Tag + " is not the number of " + what + "; write " + strconv.FormatInt(want, 10) + " or send what is missing",
	})
}

func (b *Books) checkRef(c *collector, t Trailer, want, open string, segment int) {
	if string(bytes.Trim(t.Ref, " ")) == strings.Trim(want, " ") {
		return
	}
	c.add(edi.Finding{
		Rule: "EDI-" + t.Tag + "-REF", Severity: edi.Fatal, Segment: t.Tag,
		Position: edi.Position{Segment: segment, Element: 2, Offset: t.At.Offset},
		Actual:   clip(t.Ref), Expected: want,
		Message: "the reference in " + t.Tag + " is not that of its " + open + "; repeat the reference of the " + open + " there",
	})
}

// number reads a count. Leading zeros and blanks around it do not matter.
func number(b []byte) (int64, bool) {
	b = bytes.Trim(b, " ")
	if len(b) == 0 || len(b) > 18 {
		b = bytes.TrimLeft(b, "0")
		if len(b) == 0 || len(b) > 18 {
			return 0, false
		}
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// clip keeps a reported value short.
func clip(b []byte) string {
	const most = 80
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}

// Clip returns a value for a report: at most 80 bytes of it.
func Clip(b []byte) string { return clip(b) }

// maxSeen is how many references are remembered.
const maxSeen = 100_000

// seen remembers references by their hash. An accidental meeting of two hashes costs a warning.
type seen struct{ hashes map[uint64]struct{} }

// again reports whether the same values came before.
func (s *seen) again(values ...string) bool {
	h := fnv.New64a()
	for _, v := range values {
		_, _ = h.Write([]byte(strings.TrimRight(v, " "))) // a hash takes everything
		_, _ = h.Write([]byte{0})
	}
	sum := h.Sum64()
	if _, ok := s.hashes[sum]; ok {
		return true
	}
	if s.hashes == nil {
		s.hashes = map[uint64]struct{}{}
	}
	if len(s.hashes) < maxSeen {
		s.hashes[sum] = struct{}{}
	}
	return false
}

// collector keeps a bounded list of findings.
type collector struct {
	list    []edi.Finding
	max     int
	dropped int
	fatal   bool // one of the dropped was fatal
}

func (c *collector) add(fs ...edi.Finding) {
	for _, f := range fs {
		if len(c.list) < c.max {
			c.list = append(c.list, f)
			continue
		}
		c.dropped++
		c.fatal = c.fatal || f.Severity == edi.Fatal
	}
}

// take returns the findings. When some were dropped a last one says how many; it is fatal when
// one of them was.
func (c *collector) take() []edi.Finding {
	if c.dropped > 0 {
		f := edi.Finding{
			Rule: "EDI-FINDINGS-LIMIT", Severity: edi.Warning, Actual: strconv.Itoa(c.max + c.dropped), Expected: strconv.Itoa(c.max),
			Message: strconv.Itoa(c.dropped) + " more findings were left out; mend the ones listed and check again",
		}
		if c.fatal {
			f.Severity = edi.Fatal
		}
		c.list = append(c.list, f)
	}
	return c.list
}

// Depth is how deep the next data segment stands.
func (b *Books) Depth() int {
	n := 0
	for _, open := range []bool{b.open, b.groupOpen, b.msgOpen} {
		if open {
			n++
		}
	}
	return n
}
