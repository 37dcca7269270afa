package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/app/hubtest"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edifact"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/pipeline/validate"
	"github.com/edihub/edihub/internal/store"
	x12reader "github.com/edihub/edihub/internal/x12"
)

// routeKeys are those of the tests of routing.
var routeKeys hubtest.Keyring

// routing is a hub between ACME, who sends plain AS2, and receivers behind HTTP: the ERP, which is
// internal, and GLOBEX and INITECH, who are partners.
const routing = `
own:
  - {id: hub, as2: {id: HUB, keys: [{cert: HUB.pem, key: HUB.key}]}, identifiers: ["edifact:ZZ:HUB", "x12:ZZ:HUB", "peppol:0088:HUB"]}
connections:
  - {id: acme-as2, as2: {id: ACME, own: hub, url: "http://${sink}/as2", require: [], sign: none, encrypt: none, mdn: {signed: false}}}
  - {id: erp-http, http: {url: "http://${sink}/http/erp"}, retry: {first: 5ms, max: 10ms}}
  - {id: globex-http, http: {url: "http://${sink}/http/globex"}}
  - {id: initech-http, http: {url: "http://${sink}/http/initech"}}
partners:
  - {id: acme, connections: [acme-as2], identifiers: ["edifact:ZZ:ACME", "x12:ZZ:ACME", "peppol:0088:ACME"]}
  - {id: erp, connections: [erp-http]}
  - {id: globex, connections: [globex-http], identifiers: ["edifact:ZZ:GLOBEX", "x12:ZZ:GLOBEX"]}
  - {id: initech, connections: [initech-http], identifiers: ["edifact:14:5412345000044", "x12:01:INITECH"]}
agreements:
  - {match: {}, acks: {contrl: {answer: never}, x12: {answer: never}, ubl: none}, %s}
routes:
%s`

// routeHub starts a hub with one agreement and the routes given. A message whose document number
// ends in the word of spoilt does not pass the validator.
func routeHub(t *testing.T, agreement, routes string, spoilt ...string) *hubtest.Hub {
	t.Helper()
	return hubtest.New(t, hubtest.Options{
		Partners: []string{"ACME"}, Records: fmt.Sprintf(routing, agreement, routes), Keys: &routeKeys,
		Wrap: func(s store.Stage, impl pipeline.Stage) pipeline.Stage {
			if s != store.Validator {
				return impl
			}
			c := []validate.Checker{refuser(spoilt)}
			return validate.New(map[edi.Standard][]validate.Checker{edi.EDIFACT: c, edi.X12: c, edi.UBL: c})
		},
	})
}

// refuser finds documents with these numbers invalid.
type refuser []string

func (r refuser) Check(_ context.Context, d *validate.Document) ([]edi.Finding, error) {
	if !slices.Contains(r, d.Message.Envelope.Document.Number) {
		return nil, nil
	}
	return []edi.Finding{{Rule: "TEST-REFUSED", Severity: edi.Fatal, Message: "this test does not want it"}}, nil
}

// file reads a file of testdata.
func file(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// post sends a file from ACME and waits until all has come to its end.
func post(t *testing.T, h *hubtest.Hub, payload []byte) {
	t.Helper()
	h.Send(plain(payload)).Disposition(t, false, "processed")
	h.Settle()
}

func plain(payload []byte) hubtest.Message {
	return hubtest.Message{From: "ACME", Payload: payload, Unsigned: true, Unencrypted: true, UnsignedMDN: true, Media: "application/octet-stream"}
}

// read is a file as our own readers see it.
type read struct {
	ic       edi.Interchange
	groups   []edi.Group
	messages []edi.Message
	bytes    [][]byte // of each message
}

// readers reads a file with one interchange and fails the test for any finding.
func readers(t *testing.T, b []byte) *read {
	t.Helper()
	var s edi.Splitter = edifact.NewSplitter(bytes.NewReader(b), edifact.Limits{})
	if x12reader.Sniff(b) {
		s = x12reader.NewSplitter(bytes.NewReader(b), x12reader.Limits{})
	}
	r := &read{}
	var found []edi.Finding
	ends := 0
	for {
		ev, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("read %q: %v", b, err)
		}
		switch ev.Kind {
		case edi.GroupEnd:
			r.groups = append(r.groups, *ev.Group)
			found = append(found, ev.Group.Findings...)
		case edi.MessageEnd:
			r.messages = append(r.messages, *ev.Message)
			r.bytes = append(r.bytes, b[ev.Message.Offset:ev.Message.Offset+ev.Message.Length])
			found = append(found, ev.Message.Findings...)
		case edi.InterchangeEnd:
			ends++
			r.ic = *ev.Interchange
			found = append(found, ev.Interchange.Findings...)
		case edi.InterchangeBegin, edi.GroupBegin:
		}
	}
	if len(found) > 0 || ends != 1 || !r.ic.TrailerSeen {
		t.Fatalf("%d interchanges in %q with findings %v", ends, b, found)
	}
	return r
}

// numbers of the documents in a file.
func (r *read) numbers() string {
	var out []string
	for i := range r.messages {
		out = append(out, r.messages[i].Document.Number)
	}
	return strings.Join(out, " ")
}

// arrived are the files that a receiver behind HTTP was given.
func arrived(h *hubtest.Hub, name string) [][]byte {
	var out [][]byte
	for _, d := range h.Sink.To(name) {
		out = append(out, d.Payload)
	}
	return out
}

// states of all messages, by document number.
func states(h *hubtest.Hub) map[string]string {
	out := map[string]string{}
	for _, m := range h.API().List("messages") {
		out[m.Text("document.number")] = strings.TrimSpace(m.Text("state") + " " + m.Text("code"))
	}
	return out
}

// TestOnReject has each value of on_reject meet each of split, with a message that the validator
// rejects in the first of two groups, and one more interchange behind it.
func TestOnReject(t *testing.T) {
	t.Parallel()
	const ok, bad = "delivered", "rejected MESSAGE_INVALID"
	for _, c := range []struct {
		onReject, split string
		states          [3]string // PO-8001, PO-8002 (rejected) and the 860 in the other group
		files           string
		interchange     string
	}{
		{"message", "messages", [3]string{ok, bad, ok}, "PO-8001 | PO-8001 | PO-8003", "done"},
		{"message", "preserve", [3]string{ok, bad, ok}, "PO-8001 PO-8001 | PO-8003", "done"},
		{"group", "messages", [3]string{"rejected GROUP_INVALID", bad, ok}, "PO-8001 | PO-8003", "done"},
		{"group", "preserve", [3]string{"rejected GROUP_INVALID", bad, ok}, "PO-8001 | PO-8003", "done"},
		{"interchange", "messages", [3]string{"rejected INTERCHANGE_INVALID", bad, "rejected INTERCHANGE_INVALID"}, "PO-8003", "rejected INTERCHANGE_INVALID"},
		{"interchange", "preserve", [3]string{"rejected INTERCHANGE_INVALID", bad, "rejected INTERCHANGE_INVALID"}, "PO-8003", "rejected INTERCHANGE_INVALID"},
	} {
		t.Run(c.onReject+" "+c.split, func(t *testing.T) {
			t.Parallel()
			h := routeHub(t, "on_reject: "+c.onReject+", split: "+c.split, "  - {match: {}, to: erp}\n", "PO-8002")
			h.Send(plain(file(t, "x12/850-and-860-two-groups.x12"))).Disposition(t, false, "processed")
			post(t, h, file(t, "x12/850-one.x12"))

			got := map[string]string{} // the 860 changes an order that is in the file too
			for _, m := range h.API().List("messages") {
				got[m.Text("type")+m.Text("document.number")] = strings.TrimSpace(m.Text("state") + " " + m.Text("code"))
			}
			if now := [3]string{got["850PO-8001"], got["850PO-8002"], got["860PO-8001"]}; now != c.states || got["850PO-8003"] != ok {
				t.Errorf("states %q and %q, want %q", now, got["850PO-8003"], c.states)
			}
			var files []string
			for _, b := range arrived(h, "erp") {
				files = append(files, readers(t, b).numbers())
			}
			if strings.Join(files, " | ") != c.files {
				t.Errorf("the ERP was given %q, want %q", strings.Join(files, " | "), c.files)
			}
			ics := h.API().List("interchanges")
			first := ics[len(ics)-1]
			if now := strings.TrimSpace(first.Text("state") + " " + first.Text("code")); now != c.interchange || first.Text("open") != "0" {
				t.Errorf("the interchange is %q with %s open, want %q", now, first.Text("open"), c.interchange)
			}
			for _, m := range h.API().List("messages") {
				if m.Text("code") == "GROUP_INVALID" || m.Text("code") == "INTERCHANGE_INVALID" {
					if e := h.API().Events("messages", m.Text("id")); !strings.Contains(fmt.Sprint(e), "on_reject: "+c.onReject) {
						t.Errorf("the time line does not say why it fell: %v", e)
					}
				}
			}
			noLaneWaits(t, h)
		})
	}
}

// noLaneWaits fails the test when a lane has anything left.
func noLaneWaits(t *testing.T, h *hubtest.Hub) {
	t.Helper()
	lanes, err := h.Store().ListLanes(context.Background(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lanes {
		if l.Waiting != 0 || l.Next != l.Tail {
			t.Errorf("lane %s %s: next %d, tail %d, %d wait", l.Stage, l.Name, l.Next, l.Tail, l.Waiting)
		}
	}
}

// TestOnRejectWaitsForWhatIsHeld: a message that a person must look at has no verdict, so nothing
// that may fall with it leaves; giving it up is no rejection, and the others go on.
func TestOnRejectWaitsForWhatIsHeld(t *testing.T) {
	t.Parallel()
	for _, split := range []string{"messages", "preserve"} {
		t.Run(split, func(t *testing.T) {
			t.Parallel()
			h := routeHub(t, "on_reject: interchange, on_invalid: hold, on_poison: skip, split: "+split, "  - {match: {}, to: erp}\n", "PO-7002")
			post(t, h, file(t, "edifact/orders-two-and-ordchg-one.edi"))
			if got := states(h); got["PO-7001"] != "batched" || got["PC-7001-1"] != "batched" || got["PO-7002"] != "dead MESSAGE_INVALID" || len(arrived(h, "erp")) != 0 {
				t.Fatalf("%v, %d files", got, len(arrived(h, "erp")))
			}
			dead := h.API().List("deadletters")
			h.API().JSON("POST", "/v1/deadletters/"+dead[0].Text("id")+"/discard", map[string]string{"reason": "agreed by telephone"}, 200, nil)
			h.Settle()
			if got := states(h); got["PO-7001"] != "delivered" || got["PC-7001-1"] != "delivered" || got["PO-7002"] != "discarded MESSAGE_INVALID" {
				t.Fatalf("%v", got)
			}
		})
	}
}
