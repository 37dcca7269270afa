package verdict

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/peppol"
)

const document = `<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2" xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"><cbc:ID>1</cbc:ID></Invoice>`

// clock returns times that are one millisecond apart.
func clock() func() time.Time {
	at := time.Unix(0, 0)
	return func() time.Time {
		at = at.Add(time.Millisecond)
		return at
	}
}

// set is a rule set of one rule.
func set(check func(*peppol.Invoice, *peppol.Report)) peppol.Options {
	return peppol.Options{Exactly: true, Sets: []*peppol.Set{{ID: "own", Version: "7", Rules: []peppol.Rule{
		{ID: "OWN-1", Severity: edi.Warning, Terms: []string{"BT-1"}, Message: "The number is too small.", Document: check},
	}}}}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	fails := set(func(inv *peppol.Invoice, r *peppol.Report) { r.Differ(inv.Root, "1", "2") })
	r := Judge("a.xml", []byte(document), fails, clock())
	if !r.Valid || r.Standard != edi.UBL || r.Document != "Invoice" || len(r.Findings) != 1 || r.ElapsedUS != 1000 || len(r.Rulesets) != 1 || r.Rulesets[0] != (Ruleset{"own", "7"}) {
		t.Errorf("%+v", r)
	}
	// A rule that panics is a finding about this file.
	r = Judge("a.xml", []byte(document), set(func(*peppol.Invoice, *peppol.Report) { panic("lost") }), clock())
	if r.Valid || r.Standard != unknown || len(r.Findings) != 1 || r.Findings[0].Rule != "VALIDATOR-FAULT" || !strings.Contains(r.Findings[0].Message, "lost") || r.ElapsedUS != 1000 {
		t.Errorf("%+v", r)
	}
	edifact := "UNB+UNOA:3+A+B+260101:0000+1'UNH+1+ORDERS:D:96A:UN'BGM+220+1'UNT+9+1'UNZ+1+1'"
	if r = Judge("a.edi", []byte(edifact), fails, clock()); r.Standard != edi.EDIFACT || r.Document != "ORDERS" || len(r.Findings) == 0 {
		t.Errorf("%+v", r)
	}
	x12 := "ISA*00*          *00*          *ZZ*A              *ZZ*B              *260101*0000*U*00401*000000001*0*P*>~GS*PO*A*B*20260101*0000*1*X*004010~ST*850*0001~BEG*00*SA*1**20260101~SE*3*0001~GE*1*1~IEA*2*000000001~"
	if r = Judge("a.x12", []byte(x12), fails, clock()); r.Standard != edi.X12 || r.Document != "850" || len(r.Findings) == 0 {
		t.Errorf("%+v", r)
	}
	var b bytes.Buffer
	r.Text(&b, []byte(x12), false)
	if !strings.Contains(b.String(), "a.x12: ") || !strings.Contains(b.String(), r.Findings[0].Rule) {
		t.Error(b.String())
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	doc := []byte("<Invoice>\n\t<cbc:ID>" + "\x1b" + "</cbc:ID><!-- " + long + " --><u:Note>" + long + "</u:Note>\n</Invoice>\n")
	r := &Report{
		File: "a\x1b.xml", Standard: edi.UBL, Document: "Invoice", Rulesets: []Ruleset{{"own", "7"}}, Omitted: 3,
		Findings: []edi.Finding{
			{Rule: "R-1", Severity: edi.Warning, Location: "/Invoice/cbc:Note[1]", Position: edi.Position{Line: 2}, Message: "Wrong.", Actual: "a\nb", Expected: "c", Terms: []string{"BT-22"}},
			{Rule: "R-2", Severity: edi.Fatal, Segment: "BGM", Position: edi.Position{Segment: 2, Element: 1, Component: 3}, Message: "Wrong."},
			{Rule: "R-3", Severity: edi.Fatal, Position: edi.Position{Line: 1, Offset: 4}, Message: "Wrong."},
			{Rule: "R-4", Severity: edi.Fatal, Position: edi.Position{Line: 99}, Message: "Wrong."},
		},
	}
	var b bytes.Buffer
	r.Text(&b, doc, false)
	want := "a·.xml: not valid (Invoice, own 7), 3 fatal, 1 warning\n" +
		"  warning R-1 at /Invoice/cbc:Note[1], line 2\n    Wrong.\n    found a·b; expected c; BT-22\n" +
		"         2 | " + strings.Repeat("x", 33) + " --><u:Note>" + strings.Repeat("x", 75) + "\n" +
		"           | " + strings.Repeat(" ", 40) + "^^^^\n" +
		"  fatal R-2 at segment 2 (BGM), element 1, component 3\n    Wrong.\n" +
		"  fatal R-3, line 1\n    Wrong.\n         1 | <Invoice>\n           |     ^\n" +
		"  fatal R-4, line 99\n    Wrong.\n" +
		"  and 3 more of the same rules\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b.Reset()
	r.Text(&b, doc, true)
	if s := b.String(); !strings.Contains(s, red+"fatal"+plain) || !strings.Contains(s, yellow+"warning"+plain) || strings.ReplaceAll(strings.NewReplacer(red, "", yellow, "", green, "", bold, "", plain, "").Replace(s), "\x1b", "ESC") != want {
		t.Errorf("with colours: %q", s)
	}
}

func TestSVRL(t *testing.T) {
	t.Parallel()
	r := &Report{File: `a"&.xml`, Rulesets: []Ruleset{{"own", "7"}}, Findings: []edi.Finding{
		{Rule: "R-1", Ruleset: "own", Severity: edi.Fatal, Location: "/CreditNote/cbc:ID[1]", Message: "<wrong>.", Actual: "\x01", Expected: "b"},
		{Rule: "R-2", Severity: edi.Fatal, Message: "Unread."},
	}}
	var b bytes.Buffer
	r.SVRL(&b)
	for _, want := range []string{
		`document="a&#34;&amp;.xml" id="own"`, `location="/cn:CreditNote/cbc:ID[1]"`, "&lt;wrong&gt;. Found: \uFFFD. Expected: b.", `id="file"`, `id="R-2" flag="fatal" test="R-2" location="/"`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is missing in\n%s", want, b.String())
		}
	}
}
