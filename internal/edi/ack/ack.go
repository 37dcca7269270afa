// Package ack holds what the acknowledgements of EDIFACT and X12 share: the verdict on a received
// interchange from its messages upwards, which answers are due, and what an acknowledgement of a
// partner says. How an answer is written and read is the business of the packages of the two
// standards.
package ack

import (
	"errors"

	"github.com/edihub/edihub/internal/edi"
)

// Verdict is what a check decided about one message.
type Verdict uint8

// The verdicts. A message that died inside the hub has none: the answer waits for it.
const (
	Pending Verdict = iota
	Accepted
	Rejected
)

// Message is a message of a received interchange with its verdict. Its Findings are all there are
// about it: those of the splitter and those of the tables.
type Message struct {
	edi.Message
	Verdict Verdict
}

// VerdictOf is the verdict that findings alone give.
func VerdictOf(fs []edi.Finding) Verdict {
	if edi.HasFatal(fs) {
		return Rejected
	}
	return Accepted
}

// Received is a whole received interchange, which one acknowledgement answers.
type Received struct {
	// Interchange is as its end gave it: its Findings are those of the envelope, and of keys and
	// partners.
	Interchange edi.Interchange
	// Groups are the functional groups in their order.
	Groups []edi.Group
	// Messages are all messages in their order; Message.Group is the position of their group.
	Messages []Message
}

// OnReject says what a rejected message takes with it.
type OnReject string

// The choices of an agreement's on_reject. The empty one is OnRejectMessage.
const (
	OnRejectMessage     OnReject = "message"
	OnRejectGroup       OnReject = "group"
	OnRejectInterchange OnReject = "interchange"
)

// ErrPending says that a message has no verdict yet, so that nothing can be answered.
var ErrPending = errors.New("a message has no verdict yet, so the answer has to wait")

// Level is the judgement on an interchange, a group or a message.
type Level struct {
	// Rejected says that this level and all below it are rejected.
	Rejected bool
	// Own says that the cause is at this level itself: a fatal finding of an envelope, or the
	// message's own verdict.
	Own bool
	// Noted says that it is accepted although findings are to be told.
	Noted bool
}

// Judgement is the verdict on a whole interchange.
type Judgement struct {
	Interchange Level
	Groups      []Level // beside Received.Groups
	Messages    []Level // beside Received.Messages
}

// Status of the whole: what a list of interchanges shows.
func (j *Judgement) Status() Status {
	if j.Interchange.Rejected {
		return Refused
	}
	rejected, noted := 0, j.Interchange.Noted
	for _, m := range j.Messages {
		if m.Rejected {
			rejected++
		}
		noted = noted || m.Noted
	}
	for _, g := range j.Groups {
		noted = noted || g.Noted
	}
	switch {
	case rejected > 0 && rejected == len(j.Messages):
		return Refused
	case rejected > 0:
		return Partly
	case noted:
		return WithErrors
	}
	return AllAccepted
}

// Judge decides level by level. A level is rejected when its envelope has a fatal finding, when
// the level above is, or when a message in it is and the agreement lets that reach so far; a
// message outside of any group takes no group with it. Acknowledgements among the messages have
// no say and no verdict. The error is ErrPending.
func (r *Received) Judge(on OnReject) (*Judgement, error) {
	j := &Judgement{Groups: make([]Level, len(r.Groups)), Messages: make([]Level, len(r.Messages))}
	j.Interchange = envelope(r.Interchange.Findings)
	group := make(map[int]int, len(r.Groups)) // position to index
	for i := range r.Groups {
		j.Groups[i] = envelope(r.Groups[i].Findings)
		group[r.Groups[i].Position] = i
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		if r.acknowledges(m) {
			continue
		}
		switch m.Verdict {
		case Rejected:
			j.Messages[i] = Level{Rejected: true, Own: true}
		case Accepted:
			j.Messages[i] = Level{Noted: tells(m.Findings)}
			continue
		case Pending:
			return nil, ErrPending
		}
		g, grouped := group[m.Group]
		if on == OnRejectInterchange {
			j.Interchange.Rejected = true
		} else if on == OnRejectGroup && grouped {
			j.Groups[g].Rejected = true
		}
	}
	for i := range j.Groups {
		j.Groups[i].inherit(j.Interchange)
	}
	for i := range j.Messages {
		if r.acknowledges(&r.Messages[i]) {
			continue
		}
		j.Messages[i].inherit(j.Interchange)
		if g, ok := group[r.Messages[i].Group]; ok {
			j.Messages[i].inherit(j.Groups[g])
		}
	}
	j.Interchange.settle()
	for i := range j.Groups {
		j.Groups[i].settle()
	}
	return j, nil
}

func envelope(fs []edi.Finding) Level {
	fatal := edi.HasFatal(fs)
	return Level{Rejected: fatal, Own: fatal, Noted: tells(fs)}
}

func (l *Level) inherit(above Level) {
	l.Rejected = l.Rejected || above.Rejected
	l.settle()
}

func (l *Level) settle() { l.Noted = l.Noted && !l.Rejected }

func tells(fs []edi.Finding) bool {
	for i := range fs {
		if Tell(&fs[i]) {
			return true
		}
	}
	return false
}

// Tell reports whether an acknowledgement speaks of a finding. What was read in spite of a flaw
// is not answered, nor what could not be checked for want of a table: that is not the sender's
// fault.
func Tell(f *edi.Finding) bool {
	if f.Severity == edi.Fatal {
		return true
	}
	r, ok := edi.RuleOf(f.Rule)
	if !ok {
		return false
	}
	switch r.Class {
	case edi.ClassLenient, edi.ClassUnsupported, edi.ClassMore:
		return false
	default:
		return r.Codes != edi.Codes{}
	}
}

// IsAcknowledgement reports whether a message type is an acknowledgement: those are never
// acknowledged themselves (ISO 9735-4, X12.5 GS01 FA), else two hubs would answer each other for
// ever.
func IsAcknowledgement(s edi.Standard, typ string) bool {
	switch s {
	case edi.EDIFACT:
		return typ == "CONTRL"
	case edi.X12:
		return typ == "997" || typ == "999"
	case edi.UBL, edi.Opaque:
	}
	return false
}

// functionalAcknowledgement is GS01 of groups that hold acknowledgements.
const functionalAcknowledgement = "FA"

func (r *Received) acknowledges(m *Message) bool {
	return IsAcknowledgement(r.Interchange.Standard, m.Type) || r.Interchange.Standard == edi.X12 && m.FunctionID == functionalAcknowledgement
}

// Acknowledges reports whether the message at an index of Messages is an acknowledgement: answers
// pass over it.
func (r *Received) Acknowledges(i int) bool { return r.acknowledges(&r.Messages[i]) }

// ByGroup lists the indexes of Messages by the position of their group; 0 is "in none".
func (r *Received) ByGroup() map[int][]int {
	by := make(map[int][]int, len(r.Groups))
	for i := range r.Messages {
		g := r.Messages[i].Group
		by[g] = append(by[g], i)
	}
	return by
}

// GroupAnswerable reports whether the group at an index of Groups, with these of Messages, is to
// be acknowledged: not when it holds nothing but acknowledgements.
func (r *Received) GroupAnswerable(i int, members []int) bool {
	if r.Interchange.Standard == edi.X12 && r.Groups[i].FunctionID == functionalAcknowledgement {
		return false
	}
	for _, k := range members {
		if !r.Acknowledges(k) {
			return true
		}
	}
	return len(members) == 0
}

// Answerable reports whether the interchange may be acknowledged at all: it has a header, and it
// is not one that carries acknowledgements only, be they messages or TA1 segments.
func (r *Received) Answerable() bool {
	ic := &r.Interchange
	if len(ic.Header) == 0 || ic.Standard != edi.EDIFACT && ic.Standard != edi.X12 {
		return false
	}
	if len(r.Messages) == 0 {
		for i := range r.Groups {
			if r.GroupAnswerable(i, nil) {
				return true
			}
		}
		return len(r.Groups) == 0 && !r.onlyTA1()
	}
	for i := range r.Messages {
		if !r.acknowledges(&r.Messages[i]) {
			return true
		}
	}
	return false
}

// onlyTA1 reports whether an interchange without groups has segments that may stand there. The
// splitter reports all others.
func (r *Received) onlyTA1() bool {
	segments := 1
	if r.Interchange.TrailerSeen {
		segments++
	}
	if r.Interchange.Standard != edi.X12 || r.Interchange.Segments <= segments {
		return false
	}
	for i := range r.Interchange.Findings {
		if r.Interchange.Findings[i].Rule == "EDI-SEGMENT-OUTSIDE" {
			return false
		}
	}
	return true
}
