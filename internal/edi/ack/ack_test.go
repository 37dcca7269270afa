package ack

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edihub/edihub/internal/edi"
)

func fatal(rule string) []edi.Finding   { return []edi.Finding{{Rule: rule, Severity: edi.Fatal}} }
func warning(rule string) []edi.Finding { return []edi.Finding{{Rule: rule, Severity: edi.Warning}} }

// received has a group of two messages and one of a message.
func received() *Received {
	r := &Received{
		Interchange: edi.Interchange{Standard: edi.X12, Header: []byte("ISA"), Segments: 9, TrailerSeen: true},
		Groups:      []edi.Group{{Position: 1, FunctionID: "PO"}, {Position: 2, FunctionID: "IN"}},
	}
	for i, group := range []int{1, 1, 2} {
		r.Messages = append(r.Messages, Message{Message: edi.Message{Position: i + 1, Group: group, Type: "850", FunctionID: "PO"}, Verdict: Accepted})
	}
	return r
}

func TestJudge(t *testing.T) {
	t.Parallel()
	yes, own, noted := Level{Rejected: true}, Level{Rejected: true, Own: true}, Level{Noted: true}
	no := Level{}
	type want struct {
		interchange Level
		groups      []Level
		messages    []Level
		status      Status
	}
	for name, c := range map[string]struct {
		change func(*Received)
		on     OnReject
		want   want
	}{
		"all good":            {func(*Received) {}, "", want{no, []Level{no, no}, []Level{no, no, no}, AllAccepted}},
		"one message":         {func(r *Received) { r.Messages[1].Verdict = Rejected }, "", want{no, []Level{no, no}, []Level{no, own, no}, Partly}},
		"its group":           {func(r *Received) { r.Messages[1].Verdict = Rejected }, OnRejectGroup, want{no, []Level{yes, no}, []Level{yes, own, no}, Partly}},
		"its interchange":     {func(r *Received) { r.Messages[1].Verdict = Rejected }, OnRejectInterchange, want{yes, []Level{yes, yes}, []Level{yes, own, yes}, Refused}},
		"a group's envelope":  {func(r *Received) { r.Groups[1].Findings = fatal("EDI-GE-COUNT") }, "", want{no, []Level{no, own}, []Level{no, no, yes}, Partly}},
		"the envelope":        {func(r *Received) { r.Interchange.Findings = fatal("EDI-IEA-COUNT") }, "", want{own, []Level{yes, yes}, []Level{yes, yes, yes}, Refused}},
		"a warning":           {func(r *Received) { r.Messages[0].Findings = warning(edi.RuleElementCode) }, "", want{no, []Level{no, no}, []Level{noted, no, no}, WithErrors}},
		"no table":            {func(r *Received) { r.Messages[0].Findings = warning(edi.RuleMessageUnknown) }, "", want{no, []Level{no, no}, []Level{no, no, no}, AllAccepted}},
		"read in spite":       {func(r *Received) { r.Interchange.Findings = warning("EDI-BOM") }, "", want{no, []Level{no, no}, []Level{no, no, no}, AllAccepted}},
		"an envelope warning": {func(r *Received) { r.Groups[0].Findings = warning("EDI-GE-COUNT") }, "", want{no, []Level{noted, no}, []Level{no, no, no}, WithErrors}},
		"warnings do not stay": {func(r *Received) {
			r.Messages[0].Findings, r.Messages[1].Verdict = warning(edi.RuleElementCode), Rejected
		}, OnRejectGroup, want{no, []Level{yes, no}, []Level{yes, own, no}, Partly}},
		"acknowledgements have no say": {func(r *Received) { r.Messages[2].Type, r.Messages[2].Verdict = "997", Pending }, OnRejectInterchange,
			want{no, []Level{no, no}, []Level{no, no, no}, AllAccepted}},
	} {
		r := received()
		c.change(r)
		j, err := r.Judge(c.on)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&Judgement{c.want.interchange, c.want.groups, c.want.messages}, j); diff != "" || j.Status() != c.want.status {
			t.Errorf("%s: %s (-want +got)\n%s", name, j.Status(), diff)
		}
	}
	r := received()
	r.Messages[1].Verdict = Pending
	if _, err := r.Judge(""); !errors.Is(err, ErrPending) {
		t.Errorf("pending: %v", err)
	}
	if _, err := r.DueVerdict(&Policy{X12: Always}); !errors.Is(err, ErrPending) {
		t.Errorf("pending: %v", err)
	}
}

func TestAnswerable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Received)
		want   bool
	}{
		"orders":           {func(*Received) {}, true},
		"no header":        {func(r *Received) { r.Interchange.Header = nil }, false},
		"UBL":              {func(r *Received) { r.Interchange.Standard = edi.UBL }, false},
		"one is no answer": {func(r *Received) { r.Messages[0].FunctionID, r.Messages[1].Type = "FA", "999" }, true},
		"answers only": {func(r *Received) {
			r.Messages[0].FunctionID, r.Messages[1].Type, r.Messages[2].Type = "FA", "999", "997"
		}, false},
		"CONTRL only": {func(r *Received) {
			r.Interchange.Standard = edi.EDIFACT
			r.Messages = r.Messages[:1]
			r.Messages[0].Type = "CONTRL"
		}, false},
		"empty groups":       {func(r *Received) { r.Messages = nil }, true},
		"empty groups of FA": {func(r *Received) { r.Messages = nil; r.Groups[0].FunctionID, r.Groups[1].FunctionID = "FA", "FA" }, false},
		"nothing":            {func(r *Received) { r.Messages, r.Groups, r.Interchange.Segments = nil, nil, 2 }, true},
		"nothing, cut": {func(r *Received) {
			r.Messages, r.Groups, r.Interchange.Segments, r.Interchange.TrailerSeen = nil, nil, 1, false
		}, true},
		"a TA1": {func(r *Received) { r.Messages, r.Groups, r.Interchange.Segments = nil, nil, 3 }, false},
		"a TA1 with a wrong trailer": {func(r *Received) {
			r.Messages, r.Groups, r.Interchange.Segments, r.Interchange.Findings = nil, nil, 3, fatal("EDI-IEA-REF")
		}, false},
		"something else there": {func(r *Received) {
			r.Messages, r.Groups, r.Interchange.Segments, r.Interchange.Findings = nil, nil, 3, fatal("EDI-SEGMENT-OUTSIDE")
		}, true},
	} {
		r := received()
		c.change(r)
		if got := r.Answerable(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestDue(t *testing.T) {
	t.Parallel()
	envelopeFault := func(r *Received) { r.Interchange.Findings = fatal("EDI-IEA-COUNT") }
	rejected := func(r *Received) { r.Messages[0].Verdict = Rejected }
	asked := func(r *Received) { r.Interchange.AckRequest = true }
	edifact := func(change func(*Received)) func(*Received) {
		return func(r *Received) { r.Interchange.Standard = edi.EDIFACT; change(r) }
	}
	good := func(*Received) {}
	for name, c := range map[string]struct {
		change func(*Received)
		p      Policy
		want   Due
	}{
		"never":                            {good, Policy{TA1: Never}, Due{}},
		"always":                           {good, Policy{TA1: Always, X12: Always, Contrl: Always}, Due{TA1: true, Functional: true}},
		"not asked":                        {good, Policy{TA1: OnRequest, X12: OnRequest}, Due{}},
		"asked":                            {asked, Policy{TA1: OnRequest, X12: OnRequest}, Due{TA1: true, Functional: true}},
		"a refusal unasked":                {envelopeFault, Policy{TA1: OnRequest, X12: Always}, Due{TA1: true}},
		"a refusal that no TA1 tells":      {envelopeFault, Policy{TA1: Never, X12: Always}, Due{Functional: true}},
		"errors, none":                     {good, Policy{TA1: OnErrors, X12: OnErrors}, Due{}},
		"errors, some":                     {rejected, Policy{TA1: OnErrors, X12: OnErrors}, Due{Functional: true}},
		"receipt and answer":               {edifact(good), Policy{Receipt: Always, Contrl: Always}, Due{Receipt: true, Contrl: true}},
		"no receipt for a refused one":     {edifact(envelopeFault), Policy{Receipt: Always, Contrl: Always}, Due{Contrl: true}},
		"answer to errors only, good":      {edifact(good), Policy{Contrl: OnErrors}, Due{}},
		"answer to errors only, a refusal": {edifact(rejected), Policy{Contrl: OnErrors}, Due{Contrl: true}},
		"answers are not answered":         {func(r *Received) { r.Messages = r.Messages[:1]; r.Messages[0].Type = "997" }, Policy{TA1: Always, X12: Always}, Due{}},
		"a warning is an error to be told": {func(r *Received) { r.Messages[0].Findings = warning(edi.RuleElementCode) }, Policy{X12: OnErrors}, Due{Functional: true}},
	} {
		r := received()
		c.change(r)
		got := r.DueEnvelope(&c.p)
		after, err := r.DueVerdict(&c.p)
		if err != nil {
			t.Fatal(err)
		}
		got.Contrl, got.Functional = after.Contrl, after.Functional
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestFunctionalType(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"auto", "004010", "997"}, {"auto", "005010", "997"}, {"", "005010X222A1", "999"}, {"auto", "004010X098A1", "997"}, {"997", "005010X222A1", "997"},
		{"999", "004010", "999"}, {"auto", "006020X1", "999"}, {"auto", "", "997"}, {"auto", "004010VICS", "997"},
	} {
		if got := FunctionalType(c[0], c[1]); got != c[2] {
			t.Errorf("%s for %q is %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

func TestMessageStatus(t *testing.T) {
	t.Parallel()
	r := &Report{
		Kind: KindContrl, Status: Partly, Messages: []MessageReport{{Ref: "1", Status: Refused}},
		Groups: []GroupReport{{ControlRef: "G", Status: Refused}, {ControlRef: "H", Status: Partly, Messages: []MessageReport{{Ref: "1", Status: Refused}}}},
	}
	for _, c := range []struct {
		group, ref string
		want       Status
	}{
		{"", "1", Refused}, {"", "2", AllAccepted}, {"G", "1", Refused}, {"H", "1", Refused}, {"H", "2", AllAccepted}, {"I", "1", AllAccepted},
	} {
		if got := r.MessageStatus(c.group, c.ref); got != c.want {
			t.Errorf("%s/%s is %s, want %s", c.group, c.ref, got, c.want)
		}
	}
	x := &Report{Kind: Kind997, Status: AllAccepted, Groups: []GroupReport{{ControlRef: "7", Status: WithErrors}}}
	if a, b := x.MessageStatus("7", "0001"), x.MessageStatus("8", "0001"); a != AllAccepted || b != Unknown {
		t.Errorf("997: %s, %s", a, b)
	}
}

func TestIsAcknowledgement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    edi.Standard
		typ  string
		want bool
	}{
		{edi.EDIFACT, "CONTRL", true}, {edi.EDIFACT, "APERAK", false}, {edi.EDIFACT, "997", false}, {edi.X12, "997", true}, {edi.X12, "999", true},
		{edi.X12, "824", false}, {edi.X12, "CONTRL", false}, {edi.UBL, "CONTRL", false}, {edi.Opaque, "", false},
	} {
		if got := IsAcknowledgement(c.s, c.typ); got != c.want {
			t.Errorf("%s %s is %v", c.s, c.typ, got)
		}
	}
}
