package parse_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline/parse"
	"github.com/edihub/edihub/internal/store"
)

// withStatus gives the sender another status and the agreements that follow.
func withStatus(t *testing.T, status, agreements string) *desk {
	t.Helper()
	text := strings.Replace(fmt.Sprintf(records, "erp-http", agreements, ""), "{id: acme, connections", "{id: acme, status: "+status+", connections", 1)
	reg, err := partner.Parse([]byte(text), t.TempDir(), partner.LoadOptions{Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, "", "")
	d.reg = reg
	return d
}

func marked(edifact string) string { return strings.Replace(edifact, "+R1'UNH", "+R1++++++1'UNH", 1) }

func invoic(ref string) string {
	return strings.Replace(orders(ref, 5), "ORDERS", "INVOIC", 1)
}

// TestUsage has each usage meet both indicators in both standards, and the status of the partner.
func TestUsage(t *testing.T) {
	t.Parallel()
	edifact := unb("ACME", "R1", orders("1", 5), 1)
	x12 := isa(set850("0001", 4), 1, 1)
	files := map[string]string{
		"edifact production": edifact, "edifact test": marked(edifact),
		"x12 production": x12, "x12 test": strings.Replace(x12, "*0*P*>", "*0*T*>", 1),
	}
	for _, c := range []struct {
		status, usage    string
		production, test bool // taken
	}{
		{"live", "", true, false}, // the default is production
		{"live", "production", true, false},
		{"live", "test", false, true},
		{"live", "both", true, true},
		{"testing", "", true, true}, // it is being tried out
		{"testing", "test", false, true},
		{"testing", "both", true, true},
	} {
		for name, file := range files {
			t.Run(c.status+" "+c.usage+" "+name, func(t *testing.T) {
				t.Parallel()
				agreements := ""
				if c.usage != "" {
					agreements = "agreements: [{match: {}, usage: " + c.usage + "}]"
				}
				for _, chunk := range []int{1, 100} {
					d := withStatus(t, c.status, agreements)
					d.chunk = chunk
					d.run(file, 0, 0)
					ic := d.only()
					taken := c.production
					if strings.HasSuffix(name, "test") {
						taken = c.test
					}
					if taken {
						if ic.State != store.StateSplit || len(d.emitted) != 1 {
							t.Errorf("chunks of %d: %s %s, want it to go on; %v", chunk, ic.State, ic.Code, ic.Findings)
						}
						continue
					}
					if ic.State != store.StateRejected || ic.Code != parse.CodeUsage || len(d.emitted) != 0 {
						t.Fatalf("chunks of %d: %s %s, %d went on", chunk, ic.State, ic.Code, len(d.emitted))
					}
					f := ic.Findings[len(ic.Findings)-1]
					want := edi.Finding{Segment: "UNB"}
					if want.Element = 11; strings.HasPrefix(name, "x12") {
						want.Segment, want.Element = "ISA", 15
					}
					if f.Rule != parse.RuleUsage || f.Severity != edi.Fatal || f.Segment != want.Segment || f.Element != want.Element || f.Actual == f.Expected || !strings.Contains(f.Message, "agree on usage") {
						t.Errorf("finding %+v", f)
					}
					for _, m := range d.ms {
						if m.State != store.StateRejected || m.Code != parse.CodeUsage {
							t.Errorf("message %s %s", m.State, m.Code)
						}
					}
				}
			})
		}
	}
}

// TestUsageOfOneDocumentType: invoices are tried out while orders are live. What fits neither way
// is rejected with its own finding; the rest of the interchange follows on_reject.
func TestUsageOfOneDocumentType(t *testing.T) {
	t.Parallel()
	for onReject, want := range map[string]string{
		"message":     "1 parsed, 2 rejected, 3 parsed",
		"interchange": "1 rejected, 2 rejected, 3 rejected",
	} {
		agreements := "agreements: [{match: {document: \"edifact:INVOIC\"}, usage: test, on_reject: " + onReject + "}, {match: {}, on_reject: " + onReject + "}]"
		d := newDesk(t, agreements, "").run(unb("ACME", "R1", orders("1", 5)+invoic("2")+orders("3", 5), 3), 0, 0)
		if got := d.states(); got != want {
			t.Errorf("on_reject: %s: %q, want %q", onReject, got, want)
		}
		for _, m := range d.ms {
			if m.Envelope.Ref == "2" && (m.Code != parse.CodeUsage || !edi.HasFatal(m.Findings)) {
				t.Errorf("message 2: %s %v", m.Code, m.Findings)
			}
		}
	}
	d := newDesk(t, "agreements: [{match: {document: \"edifact:INVOIC\"}, usage: test}]", "").run(unb("ACME", "R1", invoic("1")+orders("2", 5), 2), 0, 0)
	if got := d.states(); got != "1 rejected, 2 parsed" {
		t.Errorf("the invoice first: %q", got)
	}
	d = newDesk(t, "agreements: [{match: {document: \"edifact:INVOIC\"}, usage: test}]", "").run(marked(unb("ACME", "R1", invoic("1"), 1)), 0, 0)
	if d.only().State != store.StateSplit {
		t.Errorf("a test invoice under usage: test is %s", d.only().State)
	}
}

// TestUsageKnowsNoIndicatorInXML: UBL carries none, so no usage refuses it.
func TestUsageKnowsNoIndicatorInXML(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"production", "test", "both"} {
		d := newDesk(t, "agreements: [{match: {}, usage: "+u+"}]", "").run(invoice(""), 0, 0)
		if d.only().State != store.StateSplit {
			t.Errorf("usage: %s: %s", u, d.only().State)
		}
	}
}

// TestStatusOfTheSender: who does not take part is heard, kept and not acted on.
func TestStatusOfTheSender(t *testing.T) {
	t.Parallel()
	for status, active := range map[string]bool{"draft": false, "testing": true, "live": true, "suspended": false} {
		for name, file := range map[string]string{"edifact": unb("ACME", "R1", orders("1", 5), 1), "x12": isa(set850("0001", 4), 1, 1), "ubl": invoice("")} {
			d := withStatus(t, status, "").run(file, 0, 0)
			ic := d.only()
			switch {
			case active && (ic.State != store.StateSplit || len(d.born) != 0):
				t.Errorf("%s from a partner who is %s: %s %s", name, status, ic.State, ic.Code)
			case !active && (ic.State != store.StateDead || ic.Code != parse.CodePartnerNotActive || len(d.born) != 1 || !strings.Contains(d.born[0].Detail, "set it live and replay")):
				t.Errorf("%s from a partner who is %s: %s %s, %d dead letters", name, status, ic.State, ic.Code, len(d.born))
			}
		}
	}
}
