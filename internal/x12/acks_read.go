package x12

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/ack"
	"github.com/edihub/edihub/internal/edi/scan"
)

// MaxAckItems is how many sets, errors and contexts of one acknowledgement are kept, together.
const MaxAckItems = 100_000

// ErrNotAck says that a set is no 997 or 999, or one that speaks of no group.
var ErrNotAck = errors.New("not a 997 or 999 that names a functional group")

// ReadAck reads one 997 or 999, ST to SE, as it came. It takes what is there: whether the set
// keeps to its table is the business of Check. An error is ErrNotAck, a failed read or an
// *edi.LimitError.
func ReadAck(r io.Reader, d edi.Delimiters) (*ack.Report, error) {
	a := ackReader{d: d, left: MaxAckItems}
	if err := scan.Each(r, d, a.segment); err != nil {
		return nil, err
	}
	if len(a.report.Groups) == 0 {
		return nil, ErrNotAck
	}
	a.flush()
	g := &a.report.Groups[0]
	a.report.Status, a.report.Action, a.report.Codes = g.Status, g.Action, g.Codes
	return &a.report, nil
}

type ackReader struct {
	d      edi.Delimiters
	f      scan.Fields
	report ack.Report
	left   int // how many items may still come
	open   ack.Error
	inAK3  bool
	used   bool // something of the open AK3 was kept
}

func (a *ackReader) text(element, component int) string {
	return strings.TrimRight(a.f.String(element, component), " ")
}

func (a *ackReader) segment(raw []byte) error {
	a.f.Reset(raw, a.d)
	tag := tagOf(raw, a.d)
	if a.report.Kind == "" {
		kind := a.text(1, 1)
		if tag != "ST" || kind != ack.Kind997 && kind != ack.Kind999 {
			return fmt.Errorf("%w: it begins with %q", ErrNotAck, scan.Clip(raw[:min(len(raw), 16)]))
		}
		a.report.Kind, a.report.Ref = kind, strings.Trim(a.f.String(2, 1), " ")
		return nil
	}
	if tag == "AK1" {
		if len(a.report.Groups) > 0 {
			return fmt.Errorf("%w: AK1 stands twice", ErrNotAck)
		}
		a.report.Groups = []ack.GroupReport{{FunctionID: a.text(1, 1), ControlRef: strings.Trim(a.f.String(2, 1), " "), Version: a.text(3, 1), Included: -1, Received: -1, Accepted: -1}}
		return nil
	}
	if len(a.report.Groups) == 0 {
		if tag == "SE" {
			return nil
		}
		return fmt.Errorf("%w: %s stands before AK1", ErrNotAck, scan.Clip([]byte(tag)))
	}
	a.below(tag)
	return nil
}

func (a *ackReader) below(tag string) {
	g := &a.report.Groups[0]
	switch tag {
	case "AK2":
		a.flush()
		if !a.take() {
			return
		}
		g.Messages = append(g.Messages, ack.MessageReport{Type: a.text(1, 1), Ref: strings.Trim(a.f.String(2, 1), " "), Version: a.text(3, 1)})
	case "AK3", "IK3":
		a.flush()
		a.open = ack.Error{Tag: a.text(1, 1), Position: edi.Position{Segment: number(a.text(2, 1))}, Loop: a.text(3, 1), Code: a.text(4, 1)}
		a.inAK3, a.used = len(g.Messages) > 0, false
	case "AK4", "IK4":
		if !a.inAK3 {
			return
		}
		if a.open.Code != inSegment && a.open.Code != "" {
			a.flush()
		}
		a.used = true
		e := ack.Error{
			Code: a.text(3, 1), Tag: a.open.Tag, Loop: a.open.Loop, DataElement: a.text(2, 1), Value: string(a.f.Whole(4)),
			Position: edi.Position{Segment: a.open.Position.Segment, Element: number(a.text(1, 1)), Component: number(a.text(1, 2)), Repetition: number(a.text(1, 3))},
		}
		a.keep(e)
	case "CTX":
		a.context()
	case "AK5", "IK5":
		a.flush()
		a.inAK3 = false
		if n := len(g.Messages); n > 0 && g.Messages[n-1].Action == "" {
			m := &g.Messages[n-1]
			m.Action, m.Status, m.Codes = a.text(1, 1), statusOf(a.text(1, 1)), a.codes(2)
		}
	case "AK9":
		a.flush()
		a.inAK3 = false
		g.Action, g.Status, g.Codes = a.text(1, 1), statusOf(a.text(1, 1)), a.codes(5)
		for i, n := range []*int{&g.Included, &g.Received, &g.Accepted} {
			if v, err := strconv.Atoi(a.text(i+2, 1)); err == nil && v >= 0 {
				*n = v
			}
		}
	}
}

// context keeps a CTX with the error before it; in front of any AK4 it belongs to the segment.
func (a *ackReader) context() {
	if !a.inAK3 {
		return
	}
	a.flush()
	ms := a.report.Groups[0].Messages
	m := &ms[len(ms)-1]
	if len(m.Errors) == 0 || !a.take() {
		return
	}
	var text []string
	for i := 1; i <= a.f.Elements(); i++ {
		text = append(text, string(a.f.Whole(i)))
	}
	e := &m.Errors[len(m.Errors)-1]
	e.Context = append(e.Context, strings.Join(text, "*"))
}

func (a *ackReader) codes(from int) []string {
	var list []string
	for i := range maxCodes {
		if c := a.text(from+i, 1); c != "" {
			list = append(list, c)
		}
	}
	return list
}

// flush keeps an open AK3 that nothing was kept of.
func (a *ackReader) flush() {
	if a.inAK3 && !a.used {
		a.used = true
		a.keep(a.open)
	}
}

func (a *ackReader) take() bool {
	if a.left == 0 {
		a.report.More = true
		return false
	}
	a.left--
	return true
}

func (a *ackReader) keep(e ack.Error) {
	ms := a.report.Groups[0].Messages
	if a.take() {
		m := &ms[len(ms)-1]
		m.Errors = append(m.Errors, e)
	}
}

// statusOf is what 715, 717 and TA104 say: M, W and X reject for reasons of security.
func statusOf(code string) ack.Status {
	switch code {
	case "A":
		return ack.AllAccepted
	case "E":
		return ack.WithErrors
	case "P":
		return ack.Partly
	case "R", "M", "W", "X":
		return ack.Refused
	}
	return ack.Unknown
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func tagOf(raw []byte, d edi.Delimiters) string {
	for i, c := range raw {
		if c == d.Element {
			return string(raw[:i])
		}
	}
	return string(raw)
}

// ReadTA1 reads the TA1 segments of one interchange, which r gives from its ISA on. It stops at
// the first group or the IEA. Sender and receiver of a report are those of the interchange that
// it speaks of. An error is a failed read or an *edi.LimitError.
func ReadTA1(r io.Reader) ([]*ack.Report, error) {
	s := &splitter{
		sc:    scan.New(r, 0, scan.Limits{}, scan.NoBinary),
		books: scan.NewBooks(scan.Names{Open: "ISA", Close: "IEA", GroupOpen: "GS", GroupClose: "GE", MsgOpen: "ST", MsgClose: "SE", GroupsRequired: true}, Limits{}),
		d:     edi.Delimiters{Element: '*', Component: '>', Segment: '~'},
	}
	ev, err := s.Next()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []*ack.Report
	for {
		seg, err := s.sc.Next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		switch tagOf(seg.Raw, s.d) {
		case "GS", "ST", "IEA", "ISA":
			return list, nil
		case "TA1":
			s.f.Reset(seg.Raw, s.d)
			rep := &ack.Report{
				Kind: ack.KindTA1, ControlRef: s.text(1), Date: s.text(2), Time: s.text(3), Action: s.text(4), Status: statusOf(s.text(4)),
				Sender: ev.Interchange.Receiver, Receiver: ev.Interchange.Sender,
			}
			if note := s.text(5); note != "" && note != "000" {
				rep.Code, rep.Codes = note, []string{note}
			}
			if len(list) == MaxAckItems {
				list[len(list)-1].More = true
				return list, nil
			}
			list = append(list, rep)
		}
	}
}
