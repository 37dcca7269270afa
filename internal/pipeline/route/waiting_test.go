package route_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/pipeline/route"
	"github.com/edihub/edihub/internal/store"
)

// told is what an outcome delivers: for each delivery the receiver, the envelope and the numbers
// of its documents, with a star where the envelope could not be kept.
func told(d *desk, out *pipeline.Outcome) string {
	var all []string
	for _, p := range out.Write.Deliveries {
		star := ""
		for _, e := range out.Write.Events {
			if e.Object == p.Delivery.ID && e.Name == "envelope_fallback" {
				star = "*"
			}
		}
		line := p.Delivery.Partner + " " + p.Delivery.Envelope + star
		for _, id := range p.Delivery.Messages {
			for _, m := range d.ms {
				if m.ID == id {
					line += " " + m.Envelope.Document.Number
				}
			}
		}
		all = append(all, line)
	}
	return strings.Join(all, "; ")
}

// TestPreserve: which messages of an interchange leave together, and whether the original
// envelope goes along.
func TestPreserve(t *testing.T) {
	t.Parallel()
	edifact, x12 := "edifact/orders-two-and-ordchg-one.edi", "x12/850-and-860-two-groups.x12"
	for _, c := range []struct {
		name, file, routes string
		rejected           string // document number
		onReject           string
		want               string
	}{
		{"one receiver", edifact, "- {match: {}, to: erp}", "", "", "erp new PO-7001 PO-7002 PC-7001-1"},
		{"one receiver keeps the envelope", edifact, "- {match: {}, to: erp, envelope: keep}", "", "", "erp keep PO-7001 PO-7002 PC-7001-1"},
		{"two receivers by document", edifact, "- {match: {document: \"edifact:ORDCHG\"}, to: globex}\n  - {match: {}, to: erp}", "", "", "erp new PO-7001 PO-7002; globex new PC-7001-1"},
		{"two receivers cannot keep it", edifact, "- {match: {document: \"edifact:ORDCHG\"}, to: globex, envelope: keep}\n  - {match: {}, to: erp, envelope: keep}", "", "", "erp new* PO-7001 PO-7002; globex new* PC-7001-1"},
		{"one rejected cannot keep it", edifact, "- {match: {}, to: erp, envelope: keep}", "PO-7002", "", "erp new* PO-7001 PC-7001-1"},
		{"two routes that write alike share a delivery", edifact, "- {match: {document: \"edifact:ORDCHG\"}, to: erp, edifact: {una: true}}\n  - {match: {}, to: erp, edifact: {una: true}}", "", "", "erp new PO-7001 PO-7002 PC-7001-1"},
		{"two routes that write in two ways do not", edifact, "- {match: {document: \"edifact:ORDCHG\"}, to: erp, edifact: {una: false}}\n  - {match: {}, to: erp, edifact: {una: true}}", "", "", "erp new PO-7001 PO-7002; erp new PC-7001-1"},
		{"two routes of which one keeps", edifact, "- {match: {document: \"edifact:ORDCHG\"}, to: erp, envelope: keep}\n  - {match: {}, to: erp}", "", "", "erp new* PO-7001 PO-7002 PC-7001-1"},
		{"X12, two receivers by document", x12, "- {match: {document: \"x12:860\"}, to: globex}\n  - {match: {}, to: erp}", "", "", "erp new PO-8001 PO-8002; globex new PO-8001"},
		{"X12, one receiver keeps the envelope", x12, "- {match: {}, to: erp, envelope: keep}", "", "", "erp keep PO-8001 PO-8002 PO-8001"},
		{"X12, a group falls", x12, "- {match: {}, to: erp, envelope: keep}", "PO-8002", "group", "erp new* PO-8001"},
		{"X12, the interchange falls", x12, "- {match: {}, to: erp, envelope: keep}", "PO-8002", "interchange", ""},
		{"EDIFACT groups fall likewise", "edifact/groups-orders-and-ordchg.edi", "- {match: {}, to: erp}", "PO-7017", "group", "erp new PC-7016-1"},
		{"without groups on_reject: group takes nothing", edifact, "- {match: {}, to: erp}", "PO-7002", "group", "erp new PO-7001 PC-7001-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := put(t, registry(t, "", "  "+c.routes), fixture(t, c.file))
			d.ic.Preserve, d.ic.OnReject = true, c.onReject
			for _, m := range d.ms {
				if m.Envelope.Document.Number == c.rejected && m.Envelope.Type != "860" {
					m.State, m.Code = store.StateRejected, "MESSAGE_INVALID"
				}
			}
			out := d.together()
			if got := told(d, out); out.Verdict != pipeline.Done || got != c.want {
				t.Errorf("%s %s: %q, want %q", out.Verdict, out.Detail, got, c.want)
			}
			if len(out.Emit) != len(out.Write.Deliveries) {
				t.Errorf("%d deliveries and %d rows for them", len(out.Write.Deliveries), len(out.Emit))
			}
			if c.onReject == "interchange" && (len(out.Write.End) != 1 || out.Write.End[0].Interchange != d.ic.ID || len(out.Write.End[0].Messages) != 2) {
				t.Errorf("ends %+v", out.Write.End)
			}
			for _, p := range out.Write.Deliveries {
				if del, b := d.seal(p); del.Envelope == "keep" && string(b) != string(d.body) {
					t.Errorf("kept %q", b)
				}
			}
		})
	}
}

// TestGroupsFollowTheMessages: a new X12 envelope has a group for each run of sets that share
// GS01 and GS08, with numbers of our own.
func TestGroupsFollowTheMessages(t *testing.T) {
	t.Parallel()
	d := put(t, registry(t, "", "  - {match: {}, to: erp, control: {start: 41}}"), fixture(t, "x12/850-and-860-two-groups.x12"))
	d.ic.Preserve = true
	d.ms[0].Envelope.Version = "004010VICS" // GS08 of its group
	_, b := d.seal(d.together().Write.Deliveries[0])
	again := put(t, d.reg, b)
	for _, w := range []string{
		"GS*PO*ACME*HUB*20261201*0830*41*X*004010VICS~ST*850*0001~", "GE*1*41~GS*PO*ACME*HUB*20261201*0830*42*X*004010~ST*850*0002~",
		"GE*1*42~GS*PC*ACME*HUB*20261201*0830*43*X*004010~ST*860*0003~", "GE*1*43~IEA*3*000000041~",
	} {
		if !strings.Contains(string(b), w) {
			t.Errorf("%q is not in %q", w, b)
		}
	}
	if len(again.ms) != 3 || edi.HasFatal(again.ic.Envelope.Findings) {
		t.Errorf("our reader finds %v", again.ic.Envelope.Findings)
	}
}

// TestWaitsForItsTurn: a message of an interchange that waits is not delivered by itself, and one
// without a route is a dead letter before the others build on it.
func TestWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	for _, rule := range []store.Interchange{{Preserve: true}, {OnReject: "group"}, {OnReject: "interchange"}} {
		d := put(t, registry(t, "", "  - {match: {document: \"edifact:ORDERS\"}, to: erp}"), fixture(t, "edifact/orders-two-and-ordchg-one.edi"))
		d.ic.Preserve, d.ic.OnReject = rule.Preserve, rule.OnReject
		out := d.one(0)
		if len(out.Write.Deliveries)+len(out.Emit) != 0 || len(out.Write.Decide) != 1 || out.Write.SaveMessages[0].State != store.StateBatched {
			t.Errorf("%+v: %+v", rule, out)
		}
		if out := d.one(2); out.Verdict != pipeline.Dead || out.Code != route.CodeNoRoute || len(out.Write.Decide) != 0 {
			t.Errorf("%+v: without a route: %+v", rule, out)
		}
	}
}

// TestManyWaiting: messages that waited and leave one by one are routed a page a transaction, each
// once, also when the process dies after any page.
func TestManyWaiting(t *testing.T) {
	t.Parallel()
	const n = 2345
	var b strings.Builder
	fmt.Fprintf(&b, "UNB+UNOC:3+ACME:ZZ+HUB:ZZ+261130:0915+1'")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "UNH+%d+ORDERS:D:96A:UN'BGM+220+PO-%d+9'UNT+3+%d'", i, i, i)
	}
	fmt.Fprintf(&b, "UNZ+%d+1'", n)
	for _, from := range []int64{0, 1, 2} {
		d := put(t, registry(t, "", "  - {match: {}, to: erp}"), []byte(b.String()))
		d.ic.OnReject = "group"
		for _, m := range d.ms {
			m.State = store.StateBatched
		}
		task := d.task(store.KindInterchange, nil)
		task.Step = from
		seen := map[edi.ID]bool{}
		out := route.New().Handle(context.Background(), task)
		steps := int64(1)
		for ; ; steps++ {
			if len(out.Write.Deliveries) > 1000 {
				t.Fatalf("%d deliveries in one transaction", len(out.Write.Deliveries))
			}
			for _, p := range out.Write.Deliveries {
				seen[p.Delivery.Messages[0]] = true
			}
			if out.More == nil {
				break
			}
			out = out.More(context.Background())
		}
		if want := n - int(from)*1000; len(seen) != want || steps != 3-from {
			t.Errorf("from step %d: %d messages in %d steps, want %d", from, len(seen), steps, want)
		}
	}
}
