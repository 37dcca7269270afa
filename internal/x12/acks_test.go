package x12

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/ack"
)

var update = flag.Bool("update", false, "write the golden files anew")

// receive reads, splits and checks a file as the hub does.
func receive(t testing.TB, data []byte) []*ack.Received {
	t.Helper()
	all, err := ack.Collect(NewSplitter(bytes.NewReader(data), Limits{}), func(ic *edi.Interchange, m *edi.Message, _ *edi.Group) ([]edi.Finding, error) {
		return Check(t.Context(), io.NewSectionReader(bytes.NewReader(data), m.Offset, m.Length), ic.Delimiters, &CheckOptions{Version: m.Version, Base: m.Offset})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const (
	isa4  = "ISA*00*          *00*          *ZZ*ALPHA          *01*BETA           *260301*1200*U*00401*000000042*0*T*>~"
	isa5  = "ISA*00*          *00*          *ZZ*ALPHA          *01*BETA           *260301*1200*^*00501*000000042*0*P*:~"
	gs850 = "GS*PO*ALPHAG*BETAG*20260301*1200*7*X*004010~"
	good  = "CUR*BY*USD~"
)

// order850 is an 850; insert stands behind its BEG.
func order850(ref, insert string) string {
	body := "ST*850*" + ref + "~BEG*00*SA*PO77**20260301~" + insert + "PO1*1*5*EA*9.25**VN*W-1~CTT*1~"
	return body + fmt.Sprintf("SE*%d*%s~", strings.Count(body, "~")+1, ref)
}

func groupOf(sets ...string) string {
	return gs850 + strings.Join(sets, "") + fmt.Sprintf("GE*%d*7~", len(sets))
}

func interchange(isa string, groups ...string) string {
	return isa + strings.Join(groups, "") + fmt.Sprintf("IEA*%d*000000042~", len(groups))
}

func with(insert string) string { return interchange(isa4, groupOf(order850("0001", insert))) }

// add adds a finding that is not the reader's to find, or that the tables at hand cannot have.
func add(f edi.Finding) func(*ack.Received) {
	return func(r *ack.Received) {
		f := f
		if f.Severity == "" {
			f.Severity = edi.Fatal
		}
		switch d, _ := edi.RuleOf(f.Rule); d.Scope {
		case edi.ScopeInterchange:
			r.Interchange.Findings = append(r.Interchange.Findings, f)
		case edi.ScopeGroup:
			r.Groups[0].Findings = append(r.Groups[0].Findings, f)
		default:
			r.Messages[0].Findings = append(r.Messages[0].Findings, f)
			r.Messages[0].Verdict = ack.VerdictOf(r.Messages[0].Findings)
		}
	}
}

func rule(id string) func(*ack.Received) { return add(edi.Finding{Rule: id}) }

// at is a finding at segment 3, element 2.
func at(id string) func(*ack.Received) {
	return add(edi.Finding{Rule: id, Segment: "CUR", Position: edi.Position{Segment: 3, Element: 2}, DataElement: "100", Actual: "USD"})
}

type golden struct {
	name   string // what the file proves
	in     string
	change func(*ack.Received)
	o      func(*AckOptions)
	want   string // a part of the answer that makes the case
}

func as997(o *AckOptions) { o.Functional, o.Type = true, ack.Type997 }
func as999(o *AckOptions) { o.Functional, o.Type = true, ack.Type999 }
func asTA1(o *AckOptions) { o.TA1 = true }

func both(name, in string, change func(*ack.Received), old, implementation string) []golden {
	return []golden{{"997-" + name, in, change, as997, old}, {"999-" + name, in, change, as999, implementation}}
}

func goldens() []golden {
	bad := "CUR*BY*USDX~"
	reject := func(v ack.OnReject) func(*AckOptions) {
		return func(o *AckOptions) { as997(o); o.OnReject = v }
	}
	loops := func(o *AckOptions) { as997(o); o.AcceptedLoops = true }
	count := strings.Replace(with(""), "GE*1*7", "GE*2*7", 1)
	warning := add(edi.Finding{Rule: edi.RuleElementCode, Severity: edi.Warning, Segment: "CUR", Position: edi.Position{Segment: 3, Element: 2}, DataElement: "100", Actual: "USD"})
	list := slices.Concat(
		both("accepted", with(good), nil, "~AK1*PO*7~AK9*A*1*1*1~", "~AK1*PO*7*004010~AK9*A*1*1*1~"),
		both("mandatory-element-1", with("CUR**USD~"), nil, "AK3*CUR*3**8~AK4*1*98*1~AK5*R*5~AK9*R*1*1*0~", "IK3*CUR*3**8~IK4*1*98*1~IK5*R*5~AK9*R*1*1*0~"),
		both("relational-note-2", with("PER*BD*JOE*TE~"), nil, "AK4*4*364*2~", "IK4*4*364*2~CTX*SITUATIONAL TRIGGER*PER*3**3~"),
		both("too-many-elements-3", with("CTB*OR***************1~"), nil, "**3", "**3"),
		both("too-many-components-3", with("CUR*BY>X*USD~"), nil, "*3*", "*13*"),
		both("too-short-4", with("CUR*BY*US~"), nil, "AK4*2*100*4*US~", "IK4*2*100*4*US~"),
		both("too-long-5", with(bad), nil, "AK4*2*100*5*USDX~", "IK4*2*100*5*USDX~"),
		both("invalid-character-6", with("CUR*BY*US\x01~"), nil, "AK4*2*100*6~", "IK4*2*100*6~"),
		both("code-value-7", with(good), at(edi.RuleElementCode), "AK4*2*100*7*USD~", "IK4*2*100*7*USD~"),
		both("guide-code-I6", with(good), at(edi.RuleGuidelineElementCode), "AK4*2*100*7*USD~AK5*R*5~", "IK4*2*100*I6*USD~IK5*R*I5~"),
		both("date-8", strings.Replace(with(""), "PO77**20260301", "PO77**20260231", 1), nil, "AK4*5*373*8*20260231~", "IK4*5*373*8*20260231~"),
		both("time-9", with("DTM*002*20260301*2560~"), nil, "AK4*3*337*9*2560~", "IK4*3*337*9*2560~"),
		both("exclusion-10", with(good), add(edi.Finding{Rule: edi.RuleElementExclusion, Segment: "CUR", Position: edi.Position{Segment: 3, Element: 3}, DataElement: "280", Actual: "1", Expected: "E0203"}),
			"AK4*3*280*10*1~", "IK4*3*280*10*1~CTX*SITUATIONAL TRIGGER*CUR*3**2~"),
		both("element-repeat-12", with(good), add(edi.Finding{Rule: edi.RuleElementRepeat, Segment: "CUR", Position: edi.Position{Segment: 3, Element: 2, Component: 1, Repetition: 4}}), "AK4*2>1**3~", "IK4*2>1>4**12~"),
		both("unused-element-I10", with(good), at(edi.RuleGuidelineElementUnused), "AK4*2*100*3*USD~", "IK4*2*100*I10*USD~"),
		both("guide-element-missing-I9", with(good), at(edi.RuleGuidelineElementMissing), "AK4*2*100*1*USD~", "IK4*2*100*I9*USD~"),
		both("unknown-segment-1", with("QQQ*1~"), nil, "AK3*QQQ*3**1~", "IK3*QQQ*3**1~"),
		both("segment-not-in-set-6", with("BIG*20260301*I1~"), nil, "AK3*BIG*3**6~", "IK3*BIG*3**6~"),
		both("unexpected-segment-2", with(good), add(edi.Finding{Rule: edi.RuleSegmentUnexpected, Segment: "CUR", Position: edi.Position{Segment: 3}}), "AK3*CUR*3**2~", "IK3*CUR*3**2~"),
		both("segment-missing-3", interchange(isa4, groupOf("ST*850*0001~PO1*1*5*EA*9.25**VN*W-1~SE*3*0001~")), nil, "AK3*BEG*2**3~", "IK3*BEG*2**3~"),
		both("guide-segment-unused-I4", with(good), add(edi.Finding{Rule: edi.RuleGuidelineSegmentUnused, Segment: "CUR", Position: edi.Position{Segment: 3}}), "AK3*CUR*3**2~", "IK3*CUR*3**I4~IK5*R*I5~"),
		both("guide-segment-missing-I8", with(good), add(edi.Finding{Rule: edi.RuleGuidelineSegmentMissing, Segment: "REF", Position: edi.Position{Segment: 4}}), "AK3*REF*4**3~", "IK3*REF*4**I8~"),
		both("guide-loop-missing-I7", with(good), add(edi.Finding{Rule: edi.RuleGuidelineLoopMissing, Segment: "N1", Loop: "N1", Position: edi.Position{Segment: 4}}), "AK3*N1*4*N1*3~", "IK3*N1*4*N1*I7~"),
		both("segment-over-max-5", with(strings.Repeat(good, 2)), nil, "AK3*CUR*4**5~", "IK3*CUR*4**5~"),
		both("loop-over-max-4", with(good), add(edi.Finding{Rule: edi.RuleLoopRepeat, Segment: "N1", Loop: "N1", Position: edi.Position{Segment: 4}}), "AK3*N1*4*N1*4~", "IK3*N1*4*N1*4~"),
		both("wrong-order-7", with(good), add(edi.Finding{Rule: edi.RuleSegmentOrder, Segment: "CUR", Position: edi.Position{Segment: 3}}), "AK3*CUR*3**7~", "IK3*CUR*3**7~"),
		both("se-missing-2", isa4+gs850+strings.TrimSuffix(order850("0001", good), "SE*6*0001~")+"GE*1*7~IEA*1*000000042~", nil, "AK5*R*2~", "IK5*R*2~"),
		both("se-reference-3", strings.Replace(with(good), "SE*6*0001", "SE*6*0002", 1), nil, "AK5*R*3~", "IK5*R*3~"),
		both("se-count-4", strings.Replace(with(good), "SE*6", "SE*11", 1), nil, "AK2*850*0001~AK5*R*4~AK9*R*1*1*0~", "IK5*R*4~AK9*R*1*1*0~"),
		both("set-duplicate-23", with(good), rule(edi.RuleMessageDuplicate), "AK5*R*23~", "IK5*R*23~"),
		both("set-unsupported-1", with(good), rule(edi.RuleMessageUnknown), "AK5*R*1~", "IK5*R*1~"),
		both("unexplained", with(good), func(r *ack.Received) { r.Messages[0].Verdict = ack.Rejected }, "AK5*R*5~", "IK5*R*5~"),
		both("ge-missing-3", isa4+gs850+order850("0001", good)+"IEA*1*000000042~", nil, "AK9*R*1*1*0*3~", "AK9*R*1*1*0*3~"),
		both("ge-reference-4", strings.Replace(with(good), "GE*1*7", "GE*1*8", 1), nil, "AK9*R*1*1*0*4~", "AK9*R*1*1*0*4~"),
		both("ge-count-5", count, nil, "AK9*R*2*1*0*5~", "AK9*R*2*1*0*5~"),
		both("group-duplicate-19", with(good), rule(edi.RuleGroupDuplicate), "AK9*R*1*1*0*19~", "AK9*R*1*1*0*19~"),
		both("group-version-2", with(good), rule(edi.RuleGroupVersion), "AK9*R*1*1*0*2~", "AK9*R*1*1*0*2~"),
		both("group-type-1", with(good), rule(edi.RuleGroupType), "AK9*R*1*1*0*1~", "AK9*R*1*1*0*1~"),
		both("with-errors-E", with(good), warning, "AK4*2*100*7*USD~AK5*E*5~AK9*E*1*1*1~", "IK4*2*100*7*USD~IK5*E*5~AK9*E*1*1*1~"),
		both("partly-P", interchange(isa4, groupOf(order850("0001", good), order850("0002", bad), order850("0003", good))), nil, "AK2*850*0002~AK3*CUR*3**8~AK4*2*100*5*USDX~AK5*R*5~AK9*P*3*3*2~", "IK5*R*5~AK9*P*3*3*2~"),
		both("limit-of-segments", with(good), many(edi.RuleSegmentUnknown), "AK3*QQQ*999**1~AK5", "IK3*QQQ*999**1~IK5"),
		both("limit-of-errors", with(good), many(edi.RuleElementCode), "AK4*99**7~AK5", "IK4*99**7~IK5"),
	)
	return append(list, []golden{
		{"997-accepted-loops", interchange(isa4, groupOf(order850("0001", good), order850("0002", bad))), nil, loops, "AK2*850*0001~AK5*A~AK2*850*0002~"},
		{"997-reject-group", interchange(isa4, groupOf(order850("0001", good), order850("0002", bad))), nil, reject(ack.OnRejectGroup), "AK9*R*2*2*0~"},
		{"997-reject-interchange", interchange(isa4, groupOf(order850("0001", good)), strings.ReplaceAll(groupOf(order850("0002", bad)), "*7", "*8")), nil, reject(ack.OnRejectInterchange), "AK1*PO*7~AK9*R*1*1*0~"},
		{"997-two-groups", interchange(isa4, groupOf(order850("0001", good)), strings.ReplaceAll(groupOf(order850("0002", bad)), "*7", "*8")), nil, as997, "AK1*PO*7~AK9*A*1*1*1~SE*4*0001~ST*997*0002~AK1*PO*8~"},
		{"997-passes-over-FA", interchange(isa4, groupOf(order850("0001", good)), strings.ReplaceAll(strings.ReplaceAll(groupOf("ST*997*0009~AK1*PO*1~SE*3*0009~"), "*7", "*8"), "GS*PO", "GS*FA")), nil, as997, "AK9*A*1*1*1~SE*4*0001~GE*1*"},
		{"997-delimiters-mirrored", strings.NewReplacer("*", "|", ">", "^", "~", "\n").Replace(with(bad)), nil, as997, "AK4|2|100|5|USDX\n"},
		{"997-version-005010", strings.ReplaceAll(interchange(isa5, groupOf(order850("0001", ""))), "004010", "005010"), nil, as997, "X*005010~ST*997*0001~"},
		{"999-auto-guide", strings.ReplaceAll(interchange(isa5, groupOf(order850("0001", ""))), "004010", "005010X222A1"), nil, func(o *AckOptions) { o.Functional = true }, "ST*999*0001*005010X231A1~AK1*PO*7*005010X222A1~"},
		{"997-short-reference", interchange(isa4, groupOf(order850("1", ""))), nil, as997, "AK2*850*1   ~"},

		{"ta1-accepted-000", with(good), nil, asTA1, "TA1*000000042*260301*1200*A*000~IEA*0*"},
		{"ta1-reference-001", strings.Replace(with(good), "IEA*1*000000042", "IEA*1*000000043", 1), nil, asTA1, "*R*001~"},
		{"ta1-version-003", with(good), rule(edi.RuleInterchangeVersion), asTA1, "*R*003~"},
		{"ta1-terminator-004", with(good), add(edi.Finding{Rule: "EDI-ISA-DELIMITER"}), asTA1, "*R*004~"},
		{"ta1-sender-006", with(good), rule(edi.RuleSenderUnknown), asTA1, "*R*006~"},
		{"ta1-receiver-009", with(good), rule(edi.RuleRecipientOther), asTA1, "*R*009~"},
		{"ta1-usage-020", with(good), rule(edi.RuleUsage), asTA1, "*R*020~"},
		{"ta1-count-021", strings.Replace(with(good), "IEA*1", "IEA*3", 1), nil, asTA1, "*R*021~"},
		{"ta1-structure-022", isa4 + "BEG*00~" + groupOf(order850("0001", "")) + "IEA*1*000000042~", nil, asTA1, "*R*022~"},
		{"ta1-early-end-023", strings.TrimSuffix(with(good), "IEA*1*000000042~"), nil, asTA1, "*R*023~"},
		{"ta1-duplicate-025", with(good), rule(edi.RuleInterchangeDuplicate), asTA1, "*R*025~"},
		{"ta1-component-separator-027", strings.Replace(with(good), "*T*>~", "*T* ~", 1), nil, asTA1, "*R*027~"},
		{"ta1-with-errors-E", with(good), add(edi.Finding{Rule: "EDI-IEA-COUNT", Severity: edi.Warning}), asTA1, "*E*021~"},
		{"ta1-set-outside-groups-E", interchange(isa4) + "", func(r *ack.Received) {
			r.Messages = append(r.Messages, ack.Message{Message: edi.Message{Position: 1, Type: "850"}, Verdict: ack.Rejected})
		}, asTA1, "*E*022~"},
		{"ta1-with-997", with(bad), nil, func(o *AckOptions) { as997(o); o.TA1 = true }, "*A*000~GS*FA*BETAG*ALPHAG*20260301*1205*5*X*004010~"},
	}...)
}

func many(id string) func(*ack.Received) {
	return func(r *ack.Received) {
		for i := range 1200 {
			f := edi.Finding{Rule: id, Severity: edi.Fatal, Segment: "QQQ", Position: edi.Position{Segment: i + 1}}
			if id == edi.RuleElementCode {
				f.Position = edi.Position{Segment: 3, Element: i + 1}
			}
			r.Messages[0].Findings = append(r.Messages[0].Findings, f)
		}
		r.Messages[0].Verdict = ack.Rejected
	}
}

func ackOptions() *AckOptions {
	return &AckOptions{ControlRef: "9", GroupRef: 5, Time: time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC)}
}

// TestAckGolden compares acknowledgements with testdata/acks. Each is read again, checked against
// our own tables and understood.
func TestAckGolden(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, g := range goldens() {
		if seen[g.name+".edi"] {
			t.Errorf("%s stands twice", g.name)
		}
		seen[g.name+".edi"] = true
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, []byte(g.in))[0]
			if g.change != nil {
				g.change(r)
			}
			o := ackOptions()
			g.o(o)
			out, err := Acknowledge(r, o)
			if err != nil {
				t.Fatal(err)
			}
			o.LineBreak = "\n"
			file, err := Acknowledge(r, o)
			if err != nil {
				t.Fatal(err)
			}
			sound(t, r, file, o)
			compare(t, filepath.Join("testdata", "acks", g.name+".edi"), file)
			if !bytes.Contains(out, []byte(g.want)) {
				t.Errorf("%q is not in\n%s", g.want, file)
			}
			sound(t, r, out, o)
		})
	}
	files, err := os.ReadDir(filepath.Join("testdata", "acks"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !seen[f.Name()] {
			t.Errorf("testdata/acks/%s belongs to no case", f.Name())
		}
	}
}

func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// tester is what testing.T and rapid.T share.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// again reads the acknowledgements of an interchange of ours: no finding of our reader or tables
// is allowed.
func again(t testing.TB, e tester, out []byte) (*ack.Received, []*ack.Report) {
	e.Helper()
	all := receive(t, out)
	if len(all) != 1 {
		e.Fatalf("not one interchange:\n%s", out)
	}
	a := all[0]
	found := slices.Clone(a.Interchange.Findings)
	for _, g := range a.Groups {
		found = append(found, g.Findings...)
	}
	reports, err := ReadTA1(bytes.NewReader(out))
	if err != nil {
		e.Fatalf("%v", err)
	}
	for _, m := range a.Messages {
		found = append(found, m.Findings...)
		rep, err := ReadAck(bytes.NewReader(out[m.Offset:m.Offset+m.Length]), a.Interchange.Delimiters)
		if err != nil {
			e.Fatalf("%v\n%s", err, out)
		}
		reports = append(reports, rep)
	}
	for _, f := range found {
		if f.Rule != edi.RuleDirectoryUnknown {
			e.Errorf("our own answer has %+v\n%s", f, out)
		}
	}
	if a.Answerable() {
		e.Errorf("the answer would be answered:\n%s", out)
	}
	return a, reports
}

// sound checks what must hold for any acknowledgement of ours: it is valid, parties are swapped,
// the usage is mirrored, and readers understand the verdict on each group and set.
func sound(t testing.TB, r *ack.Received, out []byte, o *AckOptions) {
	t.Helper()
	a, reports := again(t, t, out)
	if a.Interchange.Test != r.Interchange.Test || a.Interchange.Sender != r.Interchange.Receiver || a.Interchange.Receiver != r.Interchange.Sender || a.Interchange.AckRequest {
		t.Errorf("envelope: %+v", a.Interchange)
	}
	understood(t, r, reports, o, out)
}

func understood(e tester, r *ack.Received, reports []*ack.Report, o *AckOptions, out []byte) {
	e.Helper()
	if o.TA1 {
		if len(reports) == 0 || reports[0].Kind != ack.KindTA1 || (reports[0].Status == ack.Refused) != edi.HasFatal(r.Interchange.Findings) || reports[0].Sender != r.Interchange.Sender {
			e.Fatalf("the TA1 is read as %+v\n%s", reports, out)
		}
		reports = reports[1:]
	}
	if !o.Functional {
		return
	}
	j, err := r.Judge(o.OnReject)
	if err != nil {
		e.Fatalf("%v", err)
	}
	n := 0
	for _, l := range answers(r, o) {
		for _, i := range l.groups {
			if n == len(reports) {
				e.Fatalf("group %d is not answered\n%s", i+1, out)
			}
			rep := reports[n]
			n++
			g := rep.Groups[0]
			accepted := 0
			for k := range r.Messages {
				if r.Messages[k].Group == r.Groups[i].Position && !r.Acknowledges(k) && !j.Messages[k].Rejected {
					accepted++
				}
			}
			if j.Groups[i].Rejected != (g.Status == ack.Refused) && accepted > 0 || g.Accepted != accepted || g.Received != r.Groups[i].Messages || rep.Kind != l.typ {
				e.Errorf("group %d is read as %+v, judged %+v with %d accepted\n%s", i+1, g, j.Groups[i], accepted, out)
			}
		}
	}
	if n != len(reports) {
		e.Errorf("%d answers for %d groups\n%s", len(reports), n, out)
	}
}

func TestAckTellsEachSet(t *testing.T) {
	t.Parallel()
	in := interchange(isa4, groupOf(order850("0001", good), order850("0002", "CUR*BY*USDX~")))
	r := receive(t, []byte(in))[0]
	for _, typ := range []string{ack.Type997, ack.Type999} {
		o := ackOptions()
		o.Functional, o.Type = true, typ
		out, err := Acknowledge(r, o)
		if err != nil {
			t.Fatal(err)
		}
		_, reports := again(t, t, out)
		if a, b := reports[0].MessageStatus("7", "0001"), reports[0].MessageStatus("7", "0002"); a != ack.AllAccepted || b != ack.Refused || reports[0].Status != ack.Partly {
			t.Errorf("%s: %s, %s, group %s", typ, a, b, reports[0].Status)
		}
		want := []ack.Error{{Code: "5", Tag: "CUR", DataElement: "100", Value: "USDX", Position: edi.Position{Segment: 3, Element: 2}}}
		if diff := cmp.Diff(want, reports[0].Groups[0].Messages[0].Errors); diff != "" {
			t.Errorf("%s (-want +got):\n%s", typ, diff)
		}
	}
}

func TestAckRefuses(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"a 997":     interchange(isa4, strings.Replace(groupOf("ST*997*0009~AK1*PO*1~AK9*A*1*1*1~SE*4*0009~"), "GS*PO", "GS*FA", 1)),
		"a TA1":     isa4 + "TA1*000000001*260301*1200*A*000~IEA*0*000000042~",
		"no header": order850("0001", ""),
	} {
		o := ackOptions()
		o.TA1, o.Functional = true, true
		if out, err := Acknowledge(receive(t, []byte(in))[0], o); !errors.Is(err, ErrNotAnswerable) {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
	r := receive(t, []byte(with("")))[0]
	if _, err := Acknowledge(r, ackOptions()); !errors.Is(err, ErrNotAnswerable) {
		t.Errorf("nothing asked for: %v", err)
	}
	r.Messages[0].Verdict = ack.Pending
	o := ackOptions()
	o.TA1 = true
	if _, err := Acknowledge(r, o); err != nil {
		t.Errorf("a TA1 waits for no verdict: %v", err)
	}
	o.Functional = true
	if _, err := Acknowledge(r, o); !errors.Is(err, ack.ErrPending) {
		t.Errorf("pending: %v", err)
	}
	r = receive(t, []byte(with("")))[0]
	o.ControlRef = "X"
	var bad *ValueError
	if _, err := Acknowledge(r, o); !errors.As(err, &bad) || bad.Field != "ISA13 control reference" {
		t.Errorf("a reference of letters: %v", err)
	}
}

func TestAckGroups(t *testing.T) {
	t.Parallel()
	second := strings.ReplaceAll(strings.ReplaceAll(groupOf(order850("0002", "")), "*7", "*8"), "ALPHAG", "OTHER")
	third := strings.ReplaceAll(strings.ReplaceAll(groupOf(order850("0003", "")), "*7", "*9"), "004010", "005010X222A1")
	r := receive(t, []byte(interchange(isa5, groupOf(order850("0001", "")), second, third)))[0]
	o := ackOptions()
	o.Functional, o.GroupRef = true, 999_999_999
	if n := AckGroups(r, o); n != 3 {
		t.Errorf("%d groups", n)
	}
	out, err := Acknowledge(r, o)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := again(t, t, out)
	var refs []string
	for _, g := range a.Groups {
		refs = append(refs, g.Sender+">"+g.Receiver+" "+g.Version+" "+g.ControlRef)
	}
	if diff := cmp.Diff([]string{"BETAG>ALPHAG 004010 999999999", "BETAG>OTHER 004010 1", "BETAG>ALPHAG 005010X231A1 2"}, refs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadAck(t *testing.T) {
	t.Parallel()
	d := edi.Delimiters{Element: '*', Component: ':', Repetition: '^', Segment: '~'}
	text := "ST*999*0003*005010X231A1~AK1*HC*28*005010X222A1~AK2*837*0001*005010X222A1~IK3*CLM*22**8~CTX*CLM01:123~IK4*2:1:3*782*1*A:B~CTX*SITUATIONAL TRIGGER*CLM*22**5~IK3*NM1*30*2010*3~IK5*R*5*I5~AK2*837*0002~IK5*A~AK9*P*2*2*1*5*4~SE*12*0003~"
	got, err := ReadAck(strings.NewReader(text), d)
	if err != nil {
		t.Fatal(err)
	}
	want := &ack.Report{Kind: "999", Ref: "0003", Status: ack.Partly, Action: "P", Codes: []string{"5", "4"}, Groups: []ack.GroupReport{{
		FunctionID: "HC", ControlRef: "28", Version: "005010X222A1", Status: ack.Partly, Action: "P", Codes: []string{"5", "4"}, Included: 2, Received: 2, Accepted: 1,
		Messages: []ack.MessageReport{
			{Type: "837", Ref: "0001", Version: "005010X222A1", Status: ack.Refused, Action: "R", Codes: []string{"5", "I5"}, Errors: []ack.Error{
				{Code: "8", Tag: "CLM", Position: edi.Position{Segment: 22}, Context: []string{"CLM01:123"}},
				{Code: "1", Tag: "CLM", Position: edi.Position{Segment: 22, Element: 2, Component: 1, Repetition: 3}, DataElement: "782", Value: "A:B", Context: []string{"SITUATIONAL TRIGGER*CLM*22**5"}},
				{Code: "3", Tag: "NM1", Position: edi.Position{Segment: 30}, Loop: "2010"},
			}},
			{Type: "837", Ref: "0002", Status: ack.AllAccepted, Action: "A"},
		},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "ST*850*0001~SE*2*0001~", "ST*997*0001~SE*2*0001~", "AK1*PO*1~", "ST*997*1~AK9*A~AK1*PO*1~", "ST*997*1~AK1*PO*1~AK1*PO*2~"} {
		if got, err := ReadAck(strings.NewReader(bad), d); !errors.Is(err, ErrNotAck) {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
}

func TestReadTA1(t *testing.T) {
	t.Parallel()
	got, err := ReadTA1(strings.NewReader(isa4 + "TA1*000000007*260228*0900*R*025~TA1*000000008*260228*0901*A*000~TA1*000000009*260228*0901*E*014~IEA*0*000000042~TA1*000000010*260228*0901*A*000~"))
	if err != nil {
		t.Fatal(err)
	}
	sender, receiver := edi.Party{Qualifier: "01", ID: "BETA"}, edi.Party{Qualifier: "ZZ", ID: "ALPHA"}
	want := []*ack.Report{
		{Kind: "ta1", ControlRef: "000000007", Sender: sender, Receiver: receiver, Date: "260228", Time: "0900", Status: ack.Refused, Action: "R", Codes: []string{"025"}, Error: ack.Error{Code: "025"}},
		{Kind: "ta1", ControlRef: "000000008", Sender: sender, Receiver: receiver, Date: "260228", Time: "0901", Status: ack.AllAccepted, Action: "A"},
		{Kind: "ta1", ControlRef: "000000009", Sender: sender, Receiver: receiver, Date: "260228", Time: "0901", Status: ack.WithErrors, Action: "E", Codes: []string{"014"}, Error: ack.Error{Code: "014"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, none := range []string{"", with(""), isa4, "TA1*1~"} {
		if got, err := ReadTA1(strings.NewReader(none)); err != nil || len(got) > 0 && none != "TA1*1~" {
			t.Errorf("%q: %+v, %v", none, got, err)
		}
	}
}

// TestAckOfAnything answers interchanges with random values and findings: whatever came, the
// answer is valid, or there is a reason why there is none.
func TestAckOfAnything(t *testing.T) {
	t.Parallel()
	rules := edi.Rules()
	value := rapid.StringMatching(`[A-Za-z0-9 *~>^:\x01\xe9-]{0,20}`)
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string) string { return value.Draw(rt, name) }
		r := &ack.Received{Interchange: edi.Interchange{
			Standard: edi.X12, Header: []byte(isa4), ControlRef: rapid.SampledFrom([]string{"000000001", "1", "X", "", "1234567890"}).Draw(rt, "ref"),
			Sender: edi.Party{Qualifier: "ZZ", ID: "ALPHA"}, Receiver: edi.Party{Qualifier: "01", ID: "BETA"},
			Version:    rapid.SampledFrom([]string{"00401", "00501", "00200", "", "ABCDE", "00704"}).Draw(rt, "version"),
			Delimiters: rapid.SampledFrom([]edi.Delimiters{{Element: '*', Component: '>', Segment: '~'}, {Element: '|', Component: ':', Segment: '\n', Repetition: '^'}, {Element: '*', Component: ' ', Segment: '*'}, {}, {Element: '^', Component: '!', Segment: '|', Release: '?'}}).Draw(rt, "delimiters"),
		}}
		findings := func(most int) (fs []edi.Finding) {
			for range rapid.IntRange(0, most).Draw(rt, "n") {
				d := rapid.SampledFrom(rules).Draw(rt, "rule")
				fs = append(fs, edi.Finding{
					Rule: d.ID, Severity: rapid.SampledFrom([]edi.Severity{edi.Fatal, edi.Warning}).Draw(rt, "severity"), Segment: draw("tag"), Loop: draw("loop"),
					DataElement: rapid.SampledFrom([]string{"98", "C040", "", "12345"}).Draw(rt, "number"), Actual: draw("actual"), Expected: rapid.SampledFrom([]string{"P0304", "R01", "", "C020304", "Pxx"}).Draw(rt, "expected"),
					Position: edi.Position{Segment: rapid.IntRange(0, 9).Draw(rt, "seg"), Element: rapid.IntRange(0, 120).Draw(rt, "el"), Component: rapid.IntRange(0, 120).Draw(rt, "comp"), Repetition: rapid.IntRange(0, 3).Draw(rt, "rep")},
				})
			}
			return fs
		}
		r.Interchange.Findings = findings(1)
		for g := range rapid.IntRange(1, 3).Draw(rt, "groups") {
			r.Groups = append(r.Groups, edi.Group{
				Position: g + 1, FunctionID: draw("function"), Sender: draw("gs02"), Receiver: draw("gs03"), ControlRef: rapid.SampledFrom([]string{"7", "", "X", "12345678901"}).Draw(rt, "gs06"),
				Version: rapid.SampledFrom([]string{"004010", "005010", "005010X222A1", "", "004010VICS~"}).Draw(rt, "gs08"), Findings: findings(1),
			})
		}
		for m := range rapid.IntRange(0, 4).Draw(rt, "messages") {
			fs := findings(4)
			g := rapid.IntRange(1, len(r.Groups)).Draw(rt, "group")
			r.Groups[g-1].Messages++
			r.Messages = append(r.Messages, ack.Message{Verdict: ack.VerdictOf(fs), Message: edi.Message{
				Position: m + 1, Group: g, Type: draw("type"), Version: draw("st03"), Ref: draw("st02"), Findings: fs, FunctionID: r.Groups[g-1].FunctionID,
			}})
		}
		o := ackOptions()
		o.TA1, o.Functional, o.AcceptedLoops = rapid.Bool().Draw(rt, "ta1"), true, rapid.Bool().Draw(rt, "loops")
		o.Type = rapid.SampledFrom([]string{"", "auto", "997", "999"}).Draw(rt, "type")
		o.OnReject = rapid.SampledFrom([]ack.OnReject{"", ack.OnRejectMessage, ack.OnRejectGroup, ack.OnRejectInterchange}).Draw(rt, "on")
		out, err := Acknowledge(r, o)
		if err != nil {
			rt.Fatalf("%v", err)
		}
		_, reports := again(t, rt, out)
		understood(rt, r, reports, o, out)
	})
}

func FuzzReadAck(f *testing.F) {
	f.Add([]byte("ST*999*0003~AK1*HC*28~AK2*837*0001~IK3*CLM*22**8~CTX*CLM01:123~IK4*2:1:3*782*1*A~IK5*R*5~AK9*P*2*2*1~SE*9*0003~"))
	f.Add([]byte("ST*997*0001~AK1*PO*7~AK2*850*0001~AK3*CUR*3**8~AK4*2*100*5*X~AK5*R*5~AK9*R*1*1*0~SE*8*0001~"))
	f.Add([]byte(isa4 + "TA1*000000007*260228*0900*R*025~IEA*0*000000042~"))
	d := edi.Delimiters{Element: '*', Component: ':', Repetition: '^', Segment: '~'}
	f.Fuzz(func(t *testing.T, data []byte) {
		if list, err := ReadTA1(bytes.NewReader(data)); err == nil && len(list) > bytes.Count(data, []byte("TA1")) {
			t.Errorf("%d reports", len(list))
		}
		r, err := ReadAck(bytes.NewReader(data), d)
		if err != nil {
			return
		}
		n := 0
		for _, m := range r.Groups[0].Messages {
			n += 1 + len(m.Errors)
			for _, e := range m.Errors {
				n += len(e.Context)
			}
		}
		if len(r.Groups) != 1 || n > MaxAckItems || n > bytes.Count(data, []byte("~"))+1 {
			t.Errorf("%d items: %+v", n, r)
		}
	})
}

// TestCorpusAcks answers every document of a folder beside the repository.
func TestCorpusAcks(t *testing.T) {
	t.Parallel()
	shared := os.Getenv("EDIHUB_SHARED")
	if shared == "" {
		t.Skip("EDIHUB_SHARED does not name a folder with conformance/edi")
	}
	files, err := filepath.Glob(filepath.Join(shared, "conformance", "edi", "*", "*.edi"))
	if err != nil {
		t.Fatal(err)
	}
	answers := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !Sniff(data) {
			continue
		}
		for _, r := range receive(t, data) {
			o := ackOptions()
			o.TA1, o.Functional = true, true
			out, err := Acknowledge(r, o)
			if errors.Is(err, ErrNotAnswerable) {
				continue
			}
			if err != nil {
				t.Logf("%s: %v", filepath.Base(file), err)
				continue
			}
			answers++
			_, reports := again(t, t, out)
			understood(t, r, reports, o, out)
		}
	}
	t.Logf("%d answers", answers)
	if answers == 0 {
		t.Error("nothing was answered")
	}
}

func TestWriter(t *testing.T) {
	t.Parallel()
	base := EnvelopeOptions{
		Sender: edi.Party{Qualifier: "ZZ", ID: "US"}, Receiver: edi.Party{Qualifier: "01", ID: "THEM"}, ControlRef: "12", Time: time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC),
	}
	o := base
	o.AuthorizationQualifier, o.Authorization, o.SecurityQualifier, o.Security, o.Usage, o.Standards, o.Zone, o.AckRequest = "03", "AUTH", "01", "SECRET", "I", "T", time.FixedZone("", -7200), true
	w, err := NewWriter(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Group(GroupOptions{FunctionID: "IN", ControlRef: "3", Version: "004010", Agency: "T"})
	w.Begin("810", "0001", "")
	w.Segment("BIG", "20260301", "I1", "")
	w.Segment("SLN", "1", Composite("A", "B", ""))
	w.End()
	out, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	want := "ISA*03*AUTH      *01*SECRET    *ZZ*US             *01*THEM           *260301*1005*T*00401*000000012*1*I*>~GS*IN*US*THEM*20260301*1005*3*T*004010~ST*810*0001~BIG*20260301*I1~SLN*1*A>B~SE*4*0001~GE*1*3~IEA*1*000000012~"
	if string(out) != want {
		t.Errorf("got\n%s, want\n%s", out, want)
	}
	group := GroupOptions{FunctionID: "IN", ControlRef: "3", Version: "004010"}
	for name, use := range map[string]func(*Writer){
		"a delimiter":            func(w *Writer) { w.Group(group); w.Begin("810", "0001", ""); w.Segment("BIG", "A*B"); w.End() },
		"no ASCII":               func(w *Writer) { w.Group(group); w.Begin("810", "0001", ""); w.Segment("BIG", "é"); w.End() },
		"a short reference":      func(w *Writer) { w.Group(group); w.Begin("810", "1", ""); w.End() },
		"an open set":            func(w *Writer) { w.Group(group); w.Begin("810", "0001", "") },
		"a set inside":           func(w *Writer) { w.Group(group); w.Begin("810", "0001", ""); w.Begin("810", "0002", ""); w.End() },
		"a set without group":    func(w *Writer) { w.Begin("810", "0001", "") },
		"a segment without set":  func(w *Writer) { w.Group(group); w.Segment("BIG") },
		"an empty group":         func(w *Writer) { w.Group(group) },
		"a bad tag":              func(w *Writer) { w.Group(group); w.Begin("810", "0001", ""); w.Segment("big"); w.End() },
		"a TA1 behind the group": func(w *Writer) { w.Group(group); w.Begin("810", "0001", ""); w.End(); w.Interchange("TA1") },
	} {
		w, err := NewWriter(base)
		if err != nil {
			t.Fatal(err)
		}
		use(w)
		var bad *ValueError
		if out, err := w.Close(); !errors.As(err, &bad) {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
	for field, change := range map[string]func(*EnvelopeOptions){
		"ISA15 usage":                   func(o *EnvelopeOptions) { o.Usage = "X" },
		"ISA11 standards identifier":    func(o *EnvelopeOptions) { o.Standards = "u" },
		"ISA02 authorization":           func(o *EnvelopeOptions) { o.Authorization = "12345678901" },
		"ISA01 authorization qualifier": func(o *EnvelopeOptions) { o.AuthorizationQualifier = "1" },
		"ISA06 sender id":               func(o *EnvelopeOptions) { o.Basic, o.Sender.ID = true, "us" },
	} {
		o := base
		change(&o)
		_, err := NewWriter(o)
		var bad *ValueError
		if !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
