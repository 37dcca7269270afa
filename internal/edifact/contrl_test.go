package edifact

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
	"github.com/edihub/edihub/internal/edi/scan/scantest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// receive reads, splits and checks a file as the hub does.
func receive(t testing.TB, data []byte) []*ack.Received {
	t.Helper()
	all, err := ack.Collect(NewSplitter(bytes.NewReader(data), Limits{}), func(ic *edi.Interchange, m *edi.Message, _ *edi.Group) ([]edi.Finding, error) {
		return Check(t.Context(), io.NewSectionReader(bytes.NewReader(data), m.Offset, m.Length), ic.Delimiters,
			&CheckOptions{Version: ic.Version, ServiceUNA: ic.ServiceUNA, Base: m.Offset})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const (
	unb3 = "UNB+UNOC:3+ALPHA:ZZ:BACK+BETA:14+260301:1200+R1'"
	unb4 = "UNB+UNOC:4+ALPHA:ZZ:BACK:SUB+BETA:14+20260301:1200+R1'"
)

// order is an ORDERS message; insert stands behind its DTM.
func order(ref, insert string) string {
	body := "UNH+" + ref + "+ORDERS:D:96A:UN:EAN008'BGM+220+PO1+9'DTM+137:20260301:102'" + insert + "NAD+BY+5412345000013::9'LIN+1++4000862141404:EN'QTY+21:5'UNS+S'"
	return body + fmt.Sprintf("UNT+%d+%s'", strings.Count(body, "'")-strings.Count(body, "?'")+1, ref)
}

func interchange(unb string, messages ...string) string {
	return unb + strings.Join(messages, "") + fmt.Sprintf("UNZ+%d+R1'", len(messages))
}

func fault4(s string) string { return interchange(unb4, order("M1", s)) }
func fault3(s string) string { return interchange(unb3, order("M1", s)) }

// late adds a finding that is not the reader's to find.
func late(rule string) func(*ack.Received) {
	return func(r *ack.Received) {
		f := edi.Finding{Rule: rule, Severity: edi.Fatal}
		switch d, _ := edi.RuleOf(rule); d.Scope {
		case edi.ScopeInterchange:
			r.Interchange.Findings = append(r.Interchange.Findings, f)
		case edi.ScopeGroup:
			r.Groups[0].Findings = append(r.Groups[0].Findings, f)
		default:
			r.Messages[0].Findings = append(r.Messages[0].Findings, f)
			r.Messages[0].Verdict = ack.Rejected
		}
	}
}

const ung = "UNG+ORDERS+ALPHAX+BETAX:14+260301:1200+G1+UN+D:96A'"

type golden struct {
	name   string // what the file proves
	in     string
	change func(*ack.Received)
	o      func(*ContrlOptions)
	want   string // a part of the answer that makes the case
}

func goldens() []golden {
	bad := "DTM+137:20260301:102:X'" // a component too many
	on := func(v ack.OnReject) func(*ContrlOptions) { return func(o *ContrlOptions) { o.OnReject = v } }
	return []golden{
		{"accepted-v3", fault3(""), nil, nil, "UCI+R1+ALPHA:ZZ:BACK+BETA:14+7'UNT"},
		{"accepted-v4", fault4(""), nil, nil, "UCI+R1+ALPHA:ZZ:BACK:SUB+BETA:14+7'UNT"},
		{"accepted-syntax-1", interchange("UNB+UNOA:1+ALPHA+BETA+260301:1200+R1'", order("M1", "")), nil, nil, "UNB+UNOA:1+BETA+ALPHA+"},
		{"test-flag-mirrored", interchange("UNB+UNOC:3+ALPHA:ZZ+BETA:14+260301:1200+R1++++1++1'", order("M1", "")), nil, nil, "+C1++++++1'"},
		{"delimiters-mirrored", strings.NewReplacer("+", "*", ":", ";", "'", "~").Replace("UNA:+,! '" + fault3(bad)), nil, nil, "UNA;*,! ~UNB*UNOC;3*"},
		{"released-reference", strings.ReplaceAll(interchange(unb3, order("M?+1", bad)), "R1", "R?'1"), nil, nil, "UCM+M?+1+"},
		{"wider-character-set", interchange(strings.ReplaceAll(unb3, "UNOC", "UNOA"), order("m1", bad)), nil, nil, "UNB+UNOB:3"},

		{"code-13-element-missing", fault3("DTM+137'DTM'"), nil, nil, "UCS+5'UCD+13+2'"},
		{"code-13-segment-missing", interchange(unb3, "UNH+M1+ORDERS:D:96A:UN'DTM+137:20260301:102'UNS+S'UNT+4+M1'"), nil, nil, "UCS+1+13'"},
		{"code-16-components", fault3(bad), nil, nil, "UCD+16+2:4'"},
		{"code-16-elements", fault3("DTM+137:20260301:102+X'"), nil, nil, "UCD+16+3'"},
		{"code-39-too-long", fault3("FTX+AAIAAI'"), nil, nil, "UCD+39+2'"},
		{"code-40-too-short", fault4(""), shortValue, nil, "UCD+40+2:1'"},
		{"code-21-character", interchange(strings.ReplaceAll(unb3, "UNOC", "UNOA"), order("M1", "FTX+AAI+++small'")), nil, nil, "UCD+21+5:1'"},
		{"code-37-type", strings.Replace(fault3(""), "QTY+21:5", "QTY+21:5X", 1), nil, nil, "UCD+37+2:2'"},
		{"code-19-number", strings.Replace(fault3(""), "QTY+21:5", "QTY+21:1.2.3", 1), nil, nil, "UCD+19+2:2'"},
		{"code-38-digit-before-mark", strings.Replace(fault3(""), "QTY+21:5", "QTY+21:.5", 1), nil, nil, "UCD+38+2:2'"},
		{"code-12-value", fault3("FTX+QQQ'"), nil, nil, "UCD+12+2'"},
		{"code-35-segment-repeat", fault3(strings.Repeat("ALI+1'", 6)), nil, nil, "UCS+9+35'"},
		{"code-36-group-repeat", fault3(""), loopRepeat, nil, "UCS+6+36'"},
		{"code-35-element-repeat-v4", fault4(""), elementRepeat, nil, "UCD+35+4:1:3'"},
		{"code-15-segment-unknown", fault3("XYZ+1'"), nil, nil, "UCS+4+15'"},
		{"code-15-segment-not-in-set", fault3("AJT+1'"), nil, nil, "UCS+4+15'"},
		{"code-13-unt-missing", unb3 + strings.TrimSuffix(order("M1", ""), "UNT+8+M1'") + "UNZ+1+R1'", nil, nil, "+4+13+UNT'"},
		{"code-13-unz-missing", strings.TrimSuffix(fault3(""), "UNZ+1+R1'"), nil, nil, "+4+13+UNZ'"},
		{"code-28-unt", strings.Replace(fault3(""), "UNT+8+M1", "UNT+8+M2", 1), nil, nil, "+4+28+UNT+3'"},
		{"code-28-unz", strings.Replace(fault3(""), "UNZ+1+R1", "UNZ+1+R2", 1), nil, nil, "+4+28+UNZ+3'"},
		{"code-28-une", interchangeWith(ung, order("M1", ""), "UNE+1+G2'"), nil, nil, "UCF+G1+ALPHAX+BETAX:14+4+28+UNE+3'"},
		{"code-29-unt-v3", strings.Replace(fault3(""), "UNT+8", "UNT+9", 1), nil, nil, "+4+29+UNT+2'"},
		{"code-29-unt-v4", strings.Replace(fault4(""), "UNT+8", "UNT+9", 1), nil, nil, "+4+29+UNT+2'"},
		{"code-29-unz", strings.Replace(fault3(""), "UNZ+1", "UNZ+2", 1), nil, nil, "+4+29+UNZ+2'"},
		{"code-29-une", interchangeWith(ung, order("M1", ""), "UNE+2+G1'"), nil, nil, "+4+29+UNE+2'"},
		{"code-26-interchange", fault3(""), late(edi.RuleInterchangeDuplicate), nil, "+4+26'"},
		{"code-26-group", interchangeWith(ung, order("M1", ""), "UNE+1+G1'"), late(edi.RuleGroupDuplicate), nil, "UCF+G1+ALPHAX+BETAX:14+4+26'"},
		{"code-26-message", fault3(""), late(edi.RuleMessageDuplicate), nil, "+4+26'"},
		{"code-2-syntax-version", fault3(""), late(edi.RuleInterchangeVersion), nil, "+4+2'"},
		{"code-14-message-type", fault3(""), late(edi.RuleMessageUnknown), nil, "+4+14'"},
		{"code-14-group-version", interchangeWith(ung, order("M1", ""), "UNE+1+G1'"), late(edi.RuleGroupVersion), nil, "+4+14'"},
		{"code-23-sender-unknown", fault3(""), late(edi.RuleSenderUnknown), nil, "+4+23'"},
		{"code-7-recipient", fault3(""), late(edi.RuleRecipientOther), nil, "+4+7'"},
		{"code-25-test", fault3(""), late(edi.RuleUsage), nil, "+4+25'"},
		{"code-20-una", "UNA++.? '" + fault3(""), nil, nil, "+4+20+UNA'"},
		{"code-22-early-end", unb3 + "UNH+M1+ORDERS:D:96A:UN'BGM+2", nil, nil, "+4+13+UNZ'"},
		{"code-30-mixed", interchangeWith(order("M0", ""), ung, order("M1", ""), "UNE+1+G1'"), nil, nil, "+4+30+UNG'"},
		{"code-33-outside", unb3 + "BGM+220'" + order("M1", "") + "UNZ+1+R1'", nil, nil, "+4+33'"},
		{"code-18-unexplained", fault3(""), func(r *ack.Received) { r.Messages[0].Verdict = ack.Rejected }, nil, "+4+18'"},
		{"header-element-in-ucm", interchange(unb3, strings.Replace(order("M1", ""), "ORDERS:D", "ORDERS:DDDD", 1)), func(r *ack.Received) { headerFault(r) }, nil, "+4+39+UNH+3:2'"},

		{"one-bad-of-three", interchange(unb3, order("M1", ""), order("M2", bad), order("M3", "")), nil, nil, "+7'UCM+M2+ORDERS:D:96A:UN:EAN008+4'"},
		{"reject-interchange", interchange(unb3, order("M1", ""), order("M2", bad)), nil, on(ack.OnRejectInterchange), "+4'UCM+M2+"},
		{"reject-group", interchangeWith(ung, order("M1", ""), order("M2", bad), "UNE+2+G1'"), nil, on(ack.OnRejectGroup), "+7'UCF+G1+ALPHAX+BETAX:14+4'UCM+M2"},
		{"reject-message-in-group", interchangeWith(ung, order("M1", ""), order("M2", bad), "UNE+2+G1'"), nil, nil, "+7'UCF+G1+ALPHAX+BETAX:14+7'UCM+M2"},
		{"mixed-with-contrl", interchange(unb3, "UNH+C1+CONTRL:D:3:UN'UCI+X+BETA+ALPHA'UNT+3+C1'", order("M2", bad)), nil, nil, "BETA:14+7'UCM+M2"},
		{"no-reference", interchange(unb3, strings.Replace(strings.Replace(order("", ""), "UNT+8+", "UNT+8", 1), "UNT+8'", "UNT+8'", 1), order("M2", "")), nil, nil, "UCM+NOREF-1+"},
		{"package-v4", unb4 + "UNO+P1++1:1+3'abcUNP+4+P1'UNZ+1+R1'", nil, nil, "+4+29+UNP+2+P1'"},
		{"limits-ucd", fault3(""), manyElements, nil, "UCD"},
		{"limits-ucs", fault3(""), manySegments, nil, "UCS+999+15'UNT"},
	}
}

func interchangeWith(parts ...string) string {
	groups := 0
	for _, p := range parts {
		if strings.HasPrefix(p, "UNG") {
			groups++
		}
	}
	return unb3 + strings.Join(parts, "") + fmt.Sprintf("UNZ+%d+R1'", groups)
}

func shortValue(r *ack.Received) {
	reject(r, edi.Finding{Rule: edi.RuleElementShort, Position: edi.Position{Segment: 3, Element: 1, Component: 1}})
}

func loopRepeat(r *ack.Received) {
	reject(r, edi.Finding{Rule: edi.RuleLoopRepeat, Position: edi.Position{Segment: 6}})
}

func elementRepeat(r *ack.Received) {
	reject(r, edi.Finding{Rule: edi.RuleElementRepeat, Position: edi.Position{Segment: 4, Element: 3, Component: 1, Repetition: 3}})
}

func headerFault(r *ack.Received) {
	reject(r, edi.Finding{Rule: edi.RuleElementLong, Segment: "UNH", Position: edi.Position{Segment: 1, Element: 2, Component: 2}})
}

func manyElements(r *ack.Received) {
	for i := range 120 {
		reject(r, edi.Finding{Rule: edi.RuleElementCode, Position: edi.Position{Segment: 4, Element: i + 1}})
	}
}

func manySegments(r *ack.Received) {
	for i := range 1200 {
		reject(r, edi.Finding{Rule: edi.RuleSegmentUnknown, Position: edi.Position{Segment: i + 1}})
	}
}

func reject(r *ack.Received, f edi.Finding) {
	f.Severity = edi.Fatal
	r.Messages[0].Findings = append(r.Messages[0].Findings, f)
	r.Messages[0].Verdict = ack.Rejected
}

func contrlOptions() *ContrlOptions {
	return &ContrlOptions{ControlRef: "C1", Time: time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC)}
}

// TestContrlGolden compares CONTRL with testdata/acks. Each is read again, checked against our
// own tables and understood.
func TestContrlGolden(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, g := range goldens() {
		seen[g.name+".edi"] = true
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, []byte(g.in))[0]
			if g.change != nil {
				g.change(r)
			}
			o := contrlOptions()
			if g.o != nil {
				g.o(o)
			}
			out, err := Contrl(r, o)
			if err != nil {
				t.Fatal(err)
			}
			o.LineBreak = "\n"
			lines, err := Contrl(r, o)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, filepath.Join("testdata", "acks", g.name+".edi"), lines)
			if !bytes.Contains(out, []byte(g.want)) {
				t.Errorf("%q is not in\n%s", g.want, lines)
			}
			sound(t, r, out, o.OnReject)
			sound(t, r, lines, o.OnReject)
		})
	}
	files, err := os.ReadDir(filepath.Join("testdata", "acks"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !seen[f.Name()] && !strings.HasPrefix(f.Name(), "receipt-") {
			t.Errorf("testdata/acks/%s belongs to no case", f.Name())
		}
	}
}

func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
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

// sound checks what must hold for any CONTRL of ours: no finding of our reader or tables, one
// message, the parties swapped, and a reader that understands the verdict on each message.
func sound(t testing.TB, r *ack.Received, out []byte, on ack.OnReject) {
	t.Helper()
	again := receive(t, out)
	if len(again) != 1 || len(again[0].Messages) != 1 {
		t.Fatalf("not one message in one interchange:\n%s", out)
	}
	a := again[0]
	for _, f := range slices.Concat(a.Interchange.Findings, a.Messages[0].Findings) {
		t.Errorf("our own answer has %+v\n%s", f, out)
	}
	if a.Interchange.Test != r.Interchange.Test || a.Interchange.Sender.Qualifier != r.Interchange.Receiver.Qualifier {
		t.Errorf("sender or test flag: %+v", a.Interchange)
	}
	if a.Answerable() {
		t.Error("the answer would be answered")
	}
	m := a.Messages[0]
	report, err := ReadContrl(bytes.NewReader(out[m.Offset:m.Offset+m.Length]), a.Interchange.Delimiters)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	j, err := r.Judge(on)
	if err != nil {
		t.Fatal(err)
	}
	if (report.Status == ack.Refused) != j.Interchange.Rejected {
		t.Errorf("read as %s, judged %+v\n%s", report.Status, j, out)
	}
	told := 0
	for i := range r.Messages {
		if j.Messages[i].Own {
			told++
		}
	}
	listed := len(report.Messages)
	for _, g := range report.Groups {
		listed += len(g.Messages)
	}
	if listed != told {
		t.Errorf("%d messages are listed, %d were rejected by themselves\n%s", listed, told, out)
	}
}

func TestContrlTellsEachMessage(t *testing.T) {
	t.Parallel()
	bad := "DTM+137:20260301:102:X'"
	in := interchangeWith(ung, order("M1", ""), order("M2", bad), "UNE+2+G1'", strings.Replace(ung, "G1", "G2", 1), order("M3", ""), "UNE+1+G2'")
	r := receive(t, []byte(in))[0]
	for _, c := range []struct {
		on     ack.OnReject
		m1, m3 ack.Status
		whole  ack.Status
	}{
		{ack.OnRejectMessage, ack.AllAccepted, ack.AllAccepted, ack.Partly},
		{ack.OnRejectGroup, ack.Refused, ack.AllAccepted, ack.Partly},
		{ack.OnRejectInterchange, ack.Refused, ack.Refused, ack.Refused},
	} {
		o := contrlOptions()
		o.OnReject = c.on
		out, err := Contrl(r, o)
		if err != nil {
			t.Fatal(err)
		}
		report := readOne(t, out)
		if a, b, d := report.MessageStatus("G1", "M1"), report.MessageStatus("G1", "M2"), report.MessageStatus("G2", "M3"); a != c.m1 || b != ack.Refused || d != c.m3 || report.Status != c.whole {
			t.Errorf("%s: %s %s %s, whole %s\n%s", c.on, a, b, d, report.Status, out)
		}
		if report.ControlRef != "R1" || report.Sender != (edi.Party{ID: "ALPHA", Qualifier: "ZZ"}) || report.Receiver != (edi.Party{ID: "BETA", Qualifier: "14"}) {
			t.Errorf("speaks of %+v", report)
		}
	}
}

func readOne(t *testing.T, out []byte) *ack.Report {
	t.Helper()
	a := receive(t, out)[0]
	m := a.Messages[0]
	report, err := ReadContrl(bytes.NewReader(out[m.Offset:m.Offset+m.Length]), a.Interchange.Delimiters)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"receipt-8", fault3("XYZ'"), "+8'"},
		{"receipt-refused", strings.Replace(fault3(""), "UNZ+1", "UNZ+3", 1), "+4+29+UNZ+2'"},
	} {
		o := contrlOptions()
		o.LineBreak = "\n"
		out, err := Receipt(receive(t, []byte(c.in))[0], o)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, filepath.Join("testdata", "acks", c.name+".edi"), out)
		if !bytes.Contains(out, []byte(c.want)) || bytes.Contains(out, []byte("UCM")) {
			t.Errorf("%s: %s", c.name, out)
		}
		report := readOne(t, out)
		if want := map[bool]ack.Status{true: ack.Receipt, false: ack.Refused}[c.want == "+8'"]; report.Status != want {
			t.Errorf("%s: read as %s", c.name, report.Status)
		}
	}
}

func TestContrlRefuses(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"a CONTRL":     interchange(unb3, "UNH+1+CONTRL:D:3:UN'UCI+X+A+B+7'UNT+3+1'"),
		"no header":    order("M1", ""),
		"no reference": interchange(strings.Replace(unb3, "R1", "", 1), order("M1", "")),
		"no sender":    interchange(strings.Replace(unb3, "ALPHA:ZZ:BACK", "", 1), order("M1", "")),
	} {
		r := receive(t, []byte(in))[0]
		if out, err := Contrl(r, contrlOptions()); !errors.Is(err, ErrNotAnswerable) {
			t.Errorf("%s: %s, %v", name, out, err)
		}
		if out, err := Receipt(r, contrlOptions()); !errors.Is(err, ErrNotAnswerable) {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
	r := receive(t, []byte(fault3("")))[0]
	r.Messages[0].Verdict = ack.Pending
	if _, err := Contrl(r, contrlOptions()); !errors.Is(err, ack.ErrPending) {
		t.Errorf("pending: %v", err)
	}
	if _, err := Receipt(r, contrlOptions()); err != nil {
		t.Errorf("a receipt waits for no verdict: %v", err)
	}
	r = receive(t, []byte(fault3("")))[0]
	o := contrlOptions()
	o.ControlRef = ""
	var bad *ValueError
	if _, err := Contrl(r, o); !errors.As(err, &bad) || bad.Field != "control reference" {
		t.Errorf("no reference of our own: %v", err)
	}
	o = contrlOptions()
	o.Syntax = "UNOA:3"
	r.Interchange.Header = []byte(strings.Replace(unb3, "ALPHA", "alpha", 1))
	if _, err := Contrl(r, o); !errors.As(err, &bad) || !strings.Contains(bad.Error(), "UNOA cannot carry") {
		t.Errorf("small letters in UNOA: %v", err)
	}
}

func TestReadContrl(t *testing.T) {
	t.Parallel()
	text := "UNH+7+CONTRL:4:1:UN'UCI+R1+A:ZZ+B+7'UCM+M1+ORDERS:D:96A:UN+4+29+UNT+2'UCS+3+13'UCS+5'UCD+39+2:1'UCD+12+3:2:4'UCS+6+15'UCD+12+2'UCF+G1+X+Y+4+26'UCM++++++P9'UNT+9+7'"
	got, err := ReadContrl(strings.NewReader(text), defaults())
	if err != nil {
		t.Fatal(err)
	}
	at := func(s, e, c, r int) edi.Position {
		return edi.Position{Segment: s, Element: e, Component: c, Repetition: r}
	}
	want := &ack.Report{
		Kind: "contrl", Ref: "7", ControlRef: "R1", Sender: edi.Party{ID: "A", Qualifier: "ZZ"}, Receiver: edi.Party{ID: "B"}, Status: ack.Partly, Action: "7",
		Messages: []ack.MessageReport{{
			Type: "ORDERS", Version: "D:96A:UN", Ref: "M1", Status: ack.Refused, Action: "4", Error: ack.Error{Code: "29", Tag: "UNT", Position: at(0, 1, 0, 0)}, Codes: []string{"29"},
			Errors: []ack.Error{
				{Code: "13", Position: at(3, 0, 0, 0)}, {Code: "39", Position: at(5, 1, 1, 0)}, {Code: "12", Position: at(5, 2, 2, 4)},
				{Code: "15", Position: at(6, 0, 0, 0)}, {Code: "12", Position: at(6, 1, 0, 0)},
			},
		}},
		Groups: []ack.GroupReport{{
			ControlRef: "G1", Status: ack.Refused, Action: "4", Error: ack.Error{Code: "26"}, Codes: []string{"26"}, Included: -1, Received: -1, Accepted: -1,
			Messages: []ack.MessageReport{{Ref: "", Status: ack.Unknown}},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "UNH+1+ORDERS:D:96A:UN'UNT+2+1'", "UNH+1+CONTRL:D:3:UN'UNT+2+1'", "UCI+R+A+B+7'", "UNH+1+CONTRL:D:3:UN'UCM+1'UCI+R+A+B+7'", "UNH+1+CONTRL:D:3:UN'UCI+R+A+B+7'UCI+S+A+B+4'"} {
		if got, err := ReadContrl(strings.NewReader(bad), defaults()); !errors.Is(err, ErrNotContrl) {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
}

// TestContrlOfAnything answers interchanges with random values and findings: whatever came, the
// answer is valid, or there is a reason why there is none.
func TestContrlOfAnything(t *testing.T) {
	t.Parallel()
	rules := edi.Rules()
	value := rapid.StringMatching(`[A-Za-z0-9 ?:+'*.\x01\xe9ä-]{0,40}`)
	rapid.Check(t, func(rt *rapid.T) {
		d := defaults()
		version := rapid.SampledFrom([]string{"UNOA:1", "UNOA:2", "UNOA:3", "UNOB:3", "UNOC:3", "UNOC:4", "UNOW:4", "UNOY:4", "XXXX:9", ""}).Draw(rt, "version")
		if strings.HasSuffix(version, "4") {
			d.Repetition = '*'
		}
		esc := func(s string) string {
			return strings.NewReplacer("?", "??", "'", "?'", "+", "?+", ":", "?:", "*", "?*").Replace(s)
		}
		id := func(name string) string { return esc(value.Draw(rt, name)) }
		unb := "UNB+" + version + "+" + id("from") + ":" + id("fq") + ":" + id("back") + "+" + id("to") + ":" + id("tq") + "+260301:1200+R'"
		r := &ack.Received{Interchange: edi.Interchange{
			Standard: edi.EDIFACT, Version: version, ControlRef: value.Draw(rt, "ref"), Header: []byte(unb), Delimiters: d,
		}}
		finding := func() edi.Finding {
			rule := rapid.SampledFrom(rules).Draw(rt, "rule")
			return edi.Finding{
				Rule: rule.ID, Severity: rapid.SampledFrom([]edi.Severity{edi.Fatal, edi.Warning}).Draw(rt, "severity"),
				Segment:  rapid.SampledFrom([]string{"", "UNB", "UNZ", "UNH", "UNT", "UNG", "UNE", "UNO", "BGM", "X", "UNA"}).Draw(rt, "tag"),
				Position: edi.Position{Segment: rapid.IntRange(0, 9).Draw(rt, "seg"), Element: rapid.IntRange(0, 1200).Draw(rt, "el"), Component: rapid.IntRange(0, 20).Draw(rt, "comp"), Repetition: rapid.IntRange(0, 3).Draw(rt, "rep")},
			}
		}
		findings := func(most int) (fs []edi.Finding) {
			for range rapid.IntRange(0, most).Draw(rt, "n") {
				fs = append(fs, finding())
			}
			return fs
		}
		r.Interchange.Findings = findings(1)
		for g := range rapid.IntRange(0, 2).Draw(rt, "groups") {
			r.Groups = append(r.Groups, edi.Group{Position: g + 1, ControlRef: value.Draw(rt, "gref"), Header: []byte("UNG+ORDERS+" + id("gfrom") + "+" + id("gto") + "'"), Findings: findings(1)})
		}
		for m := range rapid.IntRange(0, 3).Draw(rt, "messages") {
			fs := findings(4)
			r.Messages = append(r.Messages, ack.Message{Verdict: ack.VerdictOf(fs), Message: edi.Message{
				Position: m + 1, Group: rapid.IntRange(0, len(r.Groups)).Draw(rt, "group"), Type: rapid.SampledFrom([]string{"ORDERS", "", "TOOLONGTYPE", "UNO"}).Draw(rt, "type"),
				Version: id("v"), Ref: value.Draw(rt, "mref"), Association: id("a"), Findings: fs,
			}})
		}
		on := rapid.SampledFrom([]ack.OnReject{"", ack.OnRejectMessage, ack.OnRejectGroup, ack.OnRejectInterchange}).Draw(rt, "on")
		o := contrlOptions()
		o.OnReject = on
		out, err := Contrl(r, o)
		var bad *ValueError
		switch {
		case err == nil:
			soundRapid(t, rt, r, out, on)
		case errors.Is(err, ErrNotAnswerable):
		case errors.As(err, &bad) && bad.Field != "value":
		default:
			rt.Fatalf("%v", err)
		}
	})
}

// soundRapid is sound without the comparison of qualifiers, which are clipped here.
func soundRapid(t *testing.T, rt *rapid.T, r *ack.Received, out []byte, on ack.OnReject) {
	t.Helper()
	a := receive(t, out)[0]
	for _, f := range slices.Concat(a.Interchange.Findings, a.Messages[0].Findings) {
		rt.Fatalf("our own answer has %+v\n%s", f, out)
	}
	m := a.Messages[0]
	report, err := ReadContrl(bytes.NewReader(out[m.Offset:m.Offset+m.Length]), a.Interchange.Delimiters)
	if err != nil {
		rt.Fatalf("%v\n%s", err, out)
	}
	j, err := r.Judge(on)
	if err != nil {
		rt.Fatal(err)
	}
	if (report.Status == ack.Refused) != j.Interchange.Rejected {
		rt.Fatalf("read as %s, judged %+v\n%s", report.Status, j, out)
	}
}

func FuzzReadContrl(f *testing.F) {
	f.Add([]byte("UNH+1+CONTRL:D:3:UN'UCI+R1+A:ZZ+B+7'UCM+M1+ORDERS:D:96A:UN+4'UCS+3+13'UCS+5'UCD+39+2:1'UNT+7+1'"))
	f.Add([]byte("UNH+1+CONTRL:4:1:UN'UCI+R1+A+B+4+29+UNZ+2'UCF+G1+++4'UCM+++4'UCD+1+1'UNT+3+1'"))
	f.Add([]byte("UNH+1+CONTRL'UCI'UCS'UCD'UCM'UCS+-1'UCD'"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ReadContrl(bytes.NewReader(data), defaults())
		if err != nil {
			return
		}
		n := len(r.Groups)
		count := func(ms []ack.MessageReport) {
			for _, m := range ms {
				n += 1 + len(m.Errors)
			}
		}
		count(r.Messages)
		for _, g := range r.Groups {
			count(g.Messages)
		}
		if n > MaxAckItems || n > bytes.Count(data, []byte("U")) || r.Kind != ack.KindContrl {
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
			out, err := Contrl(r, contrlOptions())
			if errors.Is(err, ErrNotAnswerable) {
				continue
			}
			var bad *ValueError
			if errors.As(err, &bad) && strings.ContainsAny(bad.Value, "\r\n") {
				t.Logf("%s: %v", filepath.Base(file), err) // lines were broken inside of the envelope's values
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", filepath.Base(file), err)
				continue
			}
			answers++
			sound(t, r, out, "")
		}
	}
	t.Logf("%d answers", answers)
	if answers == 0 {
		t.Error("nothing was answered")
	}
}

func TestWriter(t *testing.T) {
	t.Parallel()
	o := options()
	o.Syntax, o.LineBreak, o.ApplicationRef, o.Password, o.PasswordQualifier, o.Priority, o.Agreement = "UNOC:3", "\n", "INVOIC", "SECRET", "AA", "A", "DEAL"
	o.SenderRouting, o.Zone = "IN", time.FixedZone("", 3600)
	w, err := NewWriter(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Begin("1", "INVOIC", "D", "96A", "UN", "EAN008")
	w.Segment("BGM", []string{"380", "", ""}, []string{"A+B'?"}, nil)
	w.Segment("NAD", []string{"SU"}, nil, nil, []string{"Müller & Söhne"})
	w.End()
	out, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	want := "UNB+UNOC:3+4012345000009:14:IN+BETA+260301:1305+77+SECRET:AA+INVOIC+A++DEAL'\nUNH+1+INVOIC:D:96A:UN:EAN008'\nBGM+380+A?+B?'??'\nNAD+SU+++M\xfcller & S\xf6hne'\nUNT+4+1'\nUNZ+1+77'\n"
	if string(out) != want {
		t.Errorf("got\n%q, want\n%q", out, want)
	}
	for name, use := range map[string]func(*Writer){
		"a character that the set has not": func(w *Writer) {
			w.Begin("1", "INVOIC", "D", "96A", "UN")
			w.Segment("FTX", []string{"5 €"})
			w.End()
		},
		"a control character": func(w *Writer) {
			w.Begin("1", "INVOIC", "D", "96A", "UN")
			w.Segment("FTX", []string{"a\nb"})
			w.End()
		},
		"not UTF-8": func(w *Writer) {
			w.Begin("1", "INVOIC", "D", "96A", "UN")
			w.Segment("FTX", []string{"\xfc"})
			w.End()
		},
		"a bad tag": func(w *Writer) { w.Begin("1", "INVOIC", "D", "96A", "UN"); w.Segment("bgm"); w.End() },
		"a message inside": func(w *Writer) {
			w.Begin("1", "INVOIC", "D", "96A", "UN")
			w.Begin("2", "INVOIC", "D", "96A", "UN")
			w.End()
		},
		"an open message":   func(w *Writer) { w.Begin("1", "INVOIC", "D", "96A", "UN") },
		"no message":        func(*Writer) {},
		"a segment outside": func(w *Writer) { w.Segment("BGM") },
		"a UNT outside":     func(w *Writer) { w.End() },
		"half a type":       func(w *Writer) { w.Begin("1", "INVOIC"); w.End() },
	} {
		w, err := NewWriter(options())
		if err != nil {
			t.Fatal(err)
		}
		use(w)
		var bad *ValueError
		if out, err := w.Close(); !errors.As(err, &bad) {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}

// TestCharacterSets writes a letter of each part of ISO/IEC 8859 and reads its byte.
func TestCharacterSets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ syntax, text, want string }{
		{"UNOC:3", "é", "\xe9"}, {"UNOD:3", "ő", "\xf5"}, {"UNOE:3", "Ж", "\xb6"}, {"UNOF:3", "λ", "\xeb"}, {"UNOG:3", "ħ", "\xb1"},
		{"UNOH:3", "ķ", "\xf3"}, {"UNOI:3", "ش", "\xd4"}, {"UNOJ:3", "א", "\xe0"}, {"UNOK:3", "ş", "\xfe"}, {"UNOL:4", "€", "\xa4"}, {"UNOW:4", "€", "€"},
		{"UNOA:3", "A", "A"}, {"UNOB:3", "a", "a"},
		{"UNOA:3", "a", ""}, {"UNOB:3", "é", ""}, {"UNOC:3", "€", ""}, {"UNOD:3", "ñ", ""}, {"UNOW:4", "\u0085", ""}, {"UNOC:3", "\x7f", ""}, {"UNOC:3", "�", ""},
	} {
		o := options()
		o.Syntax, o.Sender.ID = c.syntax, c.text
		header, _, err := WriteEnvelope(o)
		var bad *ValueError
		switch {
		case c.want == "" && errors.As(err, &bad) && bad.Field == "sender id":
		case c.want != "" && err == nil && bytes.Contains(header, []byte("+"+c.want+":14+")):
		default:
			t.Errorf("%s %q: %q, %v", c.syntax, c.text, header, err)
		}
	}
}

// TestWriterRoundTrip writes what rapid makes up and reads the same values again.
func TestWriterRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(rapid.StringMatching(`[ -~äß]{1,30}`), 1, 5).Draw(rt, "values")
		w, err := NewWriter(options())
		if err != nil {
			rt.Fatal(err)
		}
		w.Begin("1", "INVOIC", "D", "96A", "UN")
		elements := make([][]string, len(values))
		for i, v := range values {
			elements[i] = []string{v + "x"}
		}
		w.Segment("FTX", elements...)
		w.End()
		out, err := w.Close()
		if err != nil {
			rt.Fatal(err)
		}
		events, err := scantest.Collect(NewSplitter(bytes.NewReader(out), Limits{}))
		if err != nil || len(scantest.Rules(events)) > 0 {
			rt.Fatalf("%v %v: %q", err, scantest.Rules(events), out)
		}
		var s splitter
		s.d = defaults()
		body := out[bytes.Index(out, []byte("'FTX"))+1:]
		s.f.Reset(firstSegment(body, s.d), s.d)
		for i, v := range values {
			want, _ := encode("UNOC", v+"x")
			if got := s.f.String(i+1, 1); got != want {
				rt.Fatalf("element %d is %q, not %q, in %q", i+1, got, want, out)
			}
		}
	})
}
