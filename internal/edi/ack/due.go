package ack

import (
	"strings"

	"github.com/edihub/edihub/internal/edi"
)

// When says when an answer is sent.
type When string

// The choices of an agreement's acks. The empty one is Never.
const (
	Always    When = "always"
	OnRequest When = "on-request" // UNB 0031, ISA14
	OnErrors  When = "errors"
	Never     When = "never"
)

// The types of a functional acknowledgement of X12. TypeAuto takes that of the group's version.
const (
	TypeAuto = "auto"
	Type997  = "997"
	Type999  = "999"
)

// Policy is what an agreement says about acknowledgements.
type Policy struct {
	Receipt  When // CONTRL with action 8
	Contrl   When // CONTRL with action 7 or 4
	TA1      When // OnRequest also tells a rejection unasked
	X12      When // 997 or 999
	OnReject OnReject
}

// Due lists the answers that are to be sent.
type Due struct {
	Receipt    bool // at once: the envelope alone
	TA1        bool // at once: the envelope alone
	Contrl     bool // after the last verdict
	Functional bool // after the last verdict
}

// DueEnvelope says what the envelope alone calls for, before any message has a verdict: a
// receipt (CONTRL action 8) or TA1. An interchange whose envelope is refused gets no receipt:
// CONTRL tells the refusal.
func (r *Received) DueEnvelope(p *Policy) Due {
	if !r.Answerable() {
		return Due{}
	}
	e := envelope(r.Interchange.Findings)
	switch r.Interchange.Standard {
	case edi.EDIFACT:
		return Due{Receipt: !e.Rejected && r.when(p.Receipt, e.Noted)}
	case edi.X12:
		return Due{TA1: r.when(p.TA1, e.Rejected || e.Noted) || p.TA1 == OnRequest && e.Rejected}
	case edi.UBL, edi.Opaque:
	}
	return Due{}
}

// DueVerdict says what is to be sent after the last verdict. An interchange that a TA1 refuses
// gets no 997 or 999: its groups were not looked at. The error is ErrPending.
func (r *Received) DueVerdict(p *Policy) (Due, error) {
	if !r.Answerable() {
		return Due{}, nil
	}
	j, err := r.Judge(p.OnReject)
	if err != nil {
		return Due{}, err
	}
	bad := j.Status() != AllAccepted
	switch r.Interchange.Standard {
	case edi.EDIFACT:
		return Due{Contrl: r.when(p.Contrl, bad)}, nil
	case edi.X12:
		told := j.Interchange.Own && r.DueEnvelope(p).TA1
		return Due{Functional: len(r.Groups) > 0 && !told && r.when(p.X12, bad)}, nil
	case edi.UBL, edi.Opaque:
	}
	return Due{}, nil
}

func (r *Received) when(w When, bad bool) bool {
	switch w {
	case Always:
		return true
	case OnRequest:
		return r.Interchange.AckRequest
	case OnErrors:
		return bad
	case Never:
	}
	return false
}

// FunctionalType is the acknowledgement of a group: the one that is asked for, or with TypeAuto
// 999 for a version that names an implementation guide ("005010X222A1") and 997 for all others. A
// group gets one of them, never both.
func FunctionalType(want, version string) string {
	switch want {
	case Type997, Type999:
		return want
	}
	const directory = 6
	if len(version) > directory && version[directory] == 'X' && strings.Compare(version, "005010") >= 0 {
		return Type999
	}
	return Type997
}
