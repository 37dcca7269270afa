package edifact

import (
	"fmt"
	"testing"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/ack"
)

// large is an interchange of 10,000 messages in 5,000 groups, of which one in ten has an error.
func large() *ack.Received {
	r := &ack.Received{Interchange: edi.Interchange{Standard: edi.EDIFACT, Header: []byte(unb3), Delimiters: defaults(), ControlRef: "R1", Version: "UNOC:3"}}
	for g := range 5_000 {
		r.Groups = append(r.Groups, edi.Group{Position: g + 1, ControlRef: fmt.Sprint(g + 1), Header: []byte(ung), Messages: 2})
		for range 2 {
			n := len(r.Messages) + 1
			m := ack.Message{Verdict: ack.Accepted, Message: edi.Message{Position: n, Group: g + 1, Type: "ORDERS", Version: "D:96A:UN", Ref: fmt.Sprint(n)}}
			if n%10 == 0 {
				m.Verdict = ack.Rejected
				m.Findings = []edi.Finding{{Rule: edi.RuleElementCode, Severity: edi.Fatal, Position: edi.Position{Segment: 4, Element: 1}}}
			}
			r.Messages = append(r.Messages, m)
		}
	}
	return r
}

func BenchmarkContrl(b *testing.B) {
	r := large()
	o := contrlOptions()
	for b.Loop() {
		if _, err := Contrl(r, o); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(r.Messages))*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// TestContrlOfALargeInterchange keeps the work in proportion to the number of messages and groups.
func TestContrlOfALargeInterchange(t *testing.T) {
	t.Parallel()
	out, err := Contrl(large(), contrlOptions())
	if err != nil {
		t.Fatal(err)
	}
	report := readOne(t, out)
	if len(report.Groups) != 1000 || report.Status != ack.Partly {
		t.Errorf("%d groups, %s", len(report.Groups), report.Status)
	}
}
