package edifact

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

// MaxAckItems is how many groups, messages and errors of one acknowledgement are kept, together.
const MaxAckItems = 100_000

// ErrNotContrl says that a message is no CONTRL, or one that speaks of no interchange.
var ErrNotContrl = errors.New("not a CONTRL message that names an interchange")

// ReadContrl reads one CONTRL message of any syntax version, UNH to UNT, as it came. It takes what
// is there: whether the message keeps to its table is the business of Check. An error is
// ErrNotContrl, a failed read or an *edi.LimitError.
func ReadContrl(r io.Reader, d edi.Delimiters) (*ack.Report, error) {
	c := contrlReader{d: d, left: MaxAckItems}
	if err := scan.Each(r, d, c.segment); err != nil {
		return nil, err
	}
	if c.report.Kind == "" || !c.uci {
		return nil, ErrNotContrl
	}
	c.settle()
	return &c.report, nil
}

type contrlReader struct {
	d      edi.Delimiters
	f      scan.Fields
	report ack.Report
	uci    bool
	group  bool
	left   int // how many items may still come
	ucs    ack.Error
	inUCS  bool
	used   bool // the open UCS has been kept, by itself or with a UCD
}

func (c *contrlReader) text(element, component int) string {
	return strings.TrimRight(c.f.String(element, component), " ")
}

func (c *contrlReader) segment(raw []byte) error {
	tag := string(tagOf(raw, c.d))
	c.f.Reset(raw, c.d)
	if c.report.Kind == "" {
		if tag != "UNH" || c.text(2, 1) != "CONTRL" {
			return fmt.Errorf("%w: it begins with %q", ErrNotContrl, scan.Clip(raw[:min(len(raw), 16)]))
		}
		c.report.Kind, c.report.Ref = ack.KindContrl, c.text(1, 1)
		return nil
	}
	switch tag {
	case "UCI":
		if c.uci { // A second one speaks of nothing that could be told apart.
			return fmt.Errorf("%w: UCI stands twice", ErrNotContrl)
		}
		c.uci = true
		r := &c.report
		r.ControlRef = strings.Trim(c.f.String(1, 1), " ")
		r.Sender, r.Receiver = c.party(2), c.party(3)
		r.Action, r.Status = c.text(4, 1), status(c.text(4, 1))
		r.Error, r.Codes = c.told(5)
	case "UCF", "UCM", "UCS", "UCD":
		if !c.uci {
			return fmt.Errorf("%w: %s stands before UCI", ErrNotContrl, tag)
		}
		c.below(tag)
	}
	return nil
}

func (c *contrlReader) below(tag string) {
	if tag != "UCD" {
		c.flush()
		c.inUCS = false
	}
	if c.left == 0 {
		c.report.More = true
		return
	}
	switch tag {
	case "UCF":
		c.left--
		g := ack.GroupReport{ControlRef: c.text(1, 1), Action: c.text(4, 1), Status: status(c.text(4, 1)), Included: -1, Received: -1, Accepted: -1}
		g.Error, g.Codes = c.told(5)
		c.report.Groups = append(c.report.Groups, g)
		c.group = true
	case "UCM":
		c.left--
		m := ack.MessageReport{Ref: c.text(1, 1), Type: c.text(2, 1), Action: c.text(3, 1), Status: status(c.text(3, 1))}
		version := []string{c.text(2, 2), c.text(2, 3), c.text(2, 4)}
		m.Version = strings.TrimRight(strings.Join(version, ":"), ":")
		m.Error, m.Codes = c.told(4)
		if m.Ref == "" {
			m.Ref = c.text(7, 1) // 0800 of a package
		}
		ms := c.messages()
		*ms = append(*ms, m)
	case "UCS":
		if len(*c.messages()) == 0 {
			return
		}
		c.ucs = ack.Error{Code: c.text(2, 1), Position: edi.Position{Segment: number(c.text(1, 1))}}
		c.inUCS, c.used = true, false
	case "UCD":
		if !c.inUCS {
			return
		}
		if c.ucs.Code != "" {
			c.flush()
		}
		c.used = true
		e := ack.Error{Code: c.text(1, 1), Position: c.place(2)}
		e.Position.Segment = c.ucs.Position.Segment
		c.keep(e)
	}
}

// flush keeps an open UCS that nothing was kept of.
func (c *contrlReader) flush() {
	if c.inUCS && !c.used {
		c.used = true
		c.keep(c.ucs)
	}
}

func (c *contrlReader) keep(e ack.Error) {
	ms := *c.messages()
	if c.left == 0 || len(ms) == 0 {
		c.report.More = true
		return
	}
	c.left--
	m := &ms[len(ms)-1]
	m.Errors = append(m.Errors, e)
}

// messages is where the next UCM belongs.
func (c *contrlReader) messages() *[]ack.MessageReport {
	if c.group && len(c.report.Groups) > 0 {
		return &c.report.Groups[len(c.report.Groups)-1].Messages
	}
	return &c.report.Messages
}

func (c *contrlReader) party(element int) edi.Party {
	return edi.Party{ID: c.text(element, 1), Qualifier: c.text(element, 2)}
}

// told reads 0085, the service segment and S011, which follow one another.
func (c *contrlReader) told(element int) (ack.Error, []string) {
	e := ack.Error{Code: c.text(element, 1), Tag: c.text(element+1, 1), Position: c.place(element + 2)}
	if e.Code == "" {
		return e, nil
	}
	return e, []string{e.Code}
}

// place reads S011, whose tag has position 1.
func (c *contrlReader) place(element int) edi.Position {
	return edi.Position{Element: max(number(c.text(element, 1))-1, 0), Component: number(c.text(element, 2)), Repetition: number(c.text(element, 3))}
}

// settle ends the report: an acceptance with something rejected below it is partial.
func (c *contrlReader) settle() {
	c.flush()
	refused := func(ms []ack.MessageReport) bool {
		for i := range ms {
			if ms[i].Status == ack.Refused {
				return true
			}
		}
		return false
	}
	below := refused(c.report.Messages)
	for i := range c.report.Groups {
		g := &c.report.Groups[i]
		if g.Status == ack.AllAccepted && refused(g.Messages) {
			g.Status = ack.Partly
		}
		below = below || g.Status == ack.Refused || g.Status == ack.Partly
	}
	if c.report.Status == ack.AllAccepted && below {
		c.report.Status = ack.Partly
	}
}

// status is what 0083 says.
func status(action string) ack.Status {
	switch action {
	case "7":
		return ack.AllAccepted
	case "4":
		return ack.Refused
	case "8":
		return ack.Receipt
	}
	return ack.Unknown
}

// number reads digits; what is none is 0.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
