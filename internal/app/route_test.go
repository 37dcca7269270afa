package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
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
  - {id: acme-as2, as2: {id: ACME, own: hub, url: "http://${sink}/as2", require: [], sign: none, encrypt: none, mdn: {signed: false}}, certificates: [{file: ACME.pem}]}
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

// TestPreserve: an interchange for two receivers arrives as two valid interchanges with control
// references of ours and the messages' bytes as they came. A receiver that was away is sent the
// same bytes again.
func TestPreserve(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, second string // what goes to GLOBEX
		erp, globex  string // documents
		headers      [2]string
		groups       [2]string
	}{
		{"edifact/orders-two-and-ordchg-one.edi", "edifact:ORDCHG", "PO-7001 PO-7002", "PC-7001-1", [2]string{"UNA:+.? 'UNB+UNOC:3+ACME:ZZ+HUB:ZZ+", "UNA:+.? 'UNB+UNOC:3+HUB:ZZ+GLOBEX:ZZ+"}, [2]string{}},
		{"x12/850-and-860-two-groups.x12", "x12:860", "PO-8001 PO-8002", "PO-8001", [2]string{"ISA*00*          *00*          *ZZ*ACME           *ZZ*HUB            *", "ISA*00*          *00*          *ZZ*HUB            *ZZ*GLOBEX         *"}, [2]string{"PO 004010 2", "PC 004010 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := routeHub(t, "split: preserve", fmt.Sprintf("  - {match: {document: %q}, to: globex}\n  - {match: {}, to: erp, control: {start: 70}}\n", c.second))
			away := true
			h.Sink.Answer(func(w http.ResponseWriter, _ *http.Request, d *hubtest.Delivered) bool {
				if d.To == "erp" && away {
					away = false
					w.WriteHeader(http.StatusServiceUnavailable)
					return true
				}
				return false
			})
			original := file(t, c.name)
			post(t, h, original)
			erp, globex := arrived(h, "erp"), arrived(h, "globex")
			if len(erp) != 2 || len(globex) != 1 || !bytes.Equal(erp[0], erp[1]) {
				t.Fatalf("the ERP was asked %d times, GLOBEX %d times: %q", len(erp), len(globex), erp)
			}
			source := readers(t, original)
			at := 0
			for i, b := range [][]byte{erp[0], globex[0]} {
				got := readers(t, b)
				if want := []string{c.erp, c.globex}[i]; got.numbers() != want || got.ic.Messages != len(got.messages) {
					t.Errorf("file %d holds %q, want %q", i, got.numbers(), want)
				}
				if !bytes.HasPrefix(b, []byte(c.headers[i])) || strings.TrimLeft(got.ic.ControlRef, "0") != []string{"70", "1"}[i] {
					t.Errorf("file %d begins %q, control reference %s", i, b[:min(90, len(b))], got.ic.ControlRef)
				}
				for _, m := range got.bytes {
					if !bytes.Equal(m, source.bytes[at]) {
						t.Errorf("message %d changed: %q, was %q", at+1, m, source.bytes[at])
					}
					at++
				}
				var groups []string
				for _, g := range got.groups {
					groups = append(groups, fmt.Sprintf("%s %s %d", g.FunctionID, g.Version, g.Messages))
				}
				if strings.Join(groups, ", ") != c.groups[i] {
					t.Errorf("file %d has the groups %q", i, groups)
				}
			}
			for _, d := range h.API().List("deliveries") {
				if d.Text("state") != "delivered" || !slices.ContainsFunc([][]byte{erp[0], globex[0]}, func(b []byte) bool {
					return bytes.Equal(b, h.API().Payload("deliveries", d.Text("id"), "content"))
				}) {
					t.Errorf("delivery %v: its payload is not what was sent", d)
				}
			}
		})
	}
}

// TestKeep: the original interchange goes along byte for byte where it is whole, and where it is
// not, the delivery says that a new envelope was written and why.
func TestKeep(t *testing.T) {
	t.Parallel()
	const one = "  - {match: {}, to: erp, envelope: keep}\n"
	for _, c := range []struct {
		name, file, split, routes, spoilt string
		files                             int
		kept                              bool
	}{
		{"edifact", "edifact/orders-two-and-ordchg-one.edi", "preserve", one, "", 1, true},
		{"x12", "x12/850-and-860-two-groups.x12", "preserve", one, "", 1, true},
		{"one message", "edifact/orders-one.edi", "messages", one, "", 1, true},
		{"one rejected by the parser", "edifact/unt-wrong-count-in-second.edi", "preserve", one, "", 1, false},
		{"one rejected by the validator", "edifact/orders-two-and-ordchg-one.edi", "preserve", one, "PO-7001", 1, false},
		{"two receivers", "edifact/orders-two-and-ordchg-one.edi", "preserve", "  - {match: {document: \"edifact:ORDCHG\"}, to: globex, envelope: keep}\n" + one, "", 2, false},
		{"split: messages", "x12/850-and-860-two-groups.x12", "messages", one, "", 3, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := routeHub(t, "split: "+c.split, c.routes, c.spoilt)
			original := file(t, c.file)
			post(t, h, original)
			files := append(arrived(h, "erp"), arrived(h, "globex")...)
			if len(files) != c.files {
				t.Fatalf("%d files, want %d", len(files), c.files)
			}
			for _, b := range files {
				if bytes.Equal(b, original) != c.kept {
					t.Errorf("kept is not %v: %q", c.kept, b)
				}
				readers(t, b) // also what was written anew is valid
			}
			for _, d := range h.API().List("deliveries") {
				told := strings.Contains(fmt.Sprint(h.API().Events("deliveries", d.Text("id"))), "envelope_fallback")
				if want := map[bool]string{true: "keep", false: "new"}[c.kept]; d.Text("envelope") != want || told == c.kept {
					t.Errorf("the API says envelope %s, fallback told: %v", d.Text("envelope"), told)
				}
			}
		})
	}
}

// TestThreeReceivers: with split: messages each message of one interchange goes its own way.
func TestThreeReceivers(t *testing.T) {
	t.Parallel()
	h := routeHub(t, "split: messages", "  - {match: {document: \"edifact:ORDERS\"}, to: erp}\n  - {match: {document: \"edifact:ORDCHG\"}, to: globex}\n  - {match: {document: \"edifact:INVOIC\"}, to: initech}\n")
	original := file(t, "edifact/orders-ordchg-invoic.edi")
	post(t, h, original)
	source := readers(t, original)
	for i, to := range []string{"erp", "globex", "initech"} {
		files := arrived(h, to)
		if len(files) != 1 {
			t.Fatalf("%s was given %d files", to, len(files))
		}
		got := readers(t, files[0])
		if len(got.messages) != 1 || !bytes.Equal(got.bytes[0], source.bytes[i]) || got.ic.ControlRef != "1" {
			t.Errorf("%s was given %q", to, files[0])
		}
	}
	if ic := h.API().List("interchanges")[0]; ic.Text("state") != "done" || ic.Text("open") != "0" {
		t.Errorf("the interchange is %v", ic)
	}
}

// TestControlNumbers: the numbers of one receiver have no gap and no repeat when interchanges of
// two standards come at the same time; each standard and level counts for itself. A delivery that
// was refused and is replayed leaves with the bytes that it had.
func TestControlNumbers(t *testing.T) {
	t.Parallel()
	h := routeHub(t, "ordering: {by: none}, on_poison: skip", "  - {match: {}, to: erp}\n")
	refused := ""
	h.Sink.Answer(func(w http.ResponseWriter, _ *http.Request, d *hubtest.Delivered) bool {
		if key := d.Header.Get("X-Edihub-Delivery"); refused == "" || refused == key && len(h.Sink.To("erp")) < 2 {
			refused = key
			w.WriteHeader(http.StatusBadRequest)
			return true
		}
		return false
	})
	const n = 8
	five, one := file(t, "x12/850-five-in-one-group.x12"), file(t, "edifact/orders-one.edi")
	errs := make(chan error, 2*n)
	for i := range n {
		number := fmt.Sprintf("%03d", 600+i)
		for _, b := range [][]byte{
			bytes.ReplaceAll(bytes.ReplaceAll(five, []byte("000000502"), []byte("000000"+number)), []byte("PO-801"), []byte("PO-"+number+"-")),
			bytes.ReplaceAll(bytes.ReplaceAll(one, []byte("ACME4712"), []byte("ACME"+number)), []byte("PO-7003"), []byte("PO-"+number)),
		} {
			r := h.Message(plain(b))
			go func() {
				a, err := h.TryPost(context.Background(), r)
				if err == nil && a.Status != http.StatusOK {
					err = fmt.Errorf("HTTP %d", a.Status)
				}
				errs <- err
			}()
		}
	}
	for range 2 * n {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	h.Settle()
	dead := h.API().List("deadletters")
	if len(dead) != 1 || dead[0].Text("code") != "HTTP_400" {
		t.Fatalf("dead letters %v", dead)
	}
	h.API().Replay(dead[0].Text("id"))
	h.Settle()

	bytesOf := map[string][]byte{} // by delivery
	keys := map[string]bool{}
	for _, d := range h.Sink.To("erp") {
		id := d.Header.Get("X-Edihub-Delivery")
		if b, again := bytesOf[id]; again && !bytes.Equal(b, d.Payload) {
			t.Errorf("delivery %s left as %q and as %q", id, b, d.Payload)
		}
		if bytesOf[id] = d.Payload; id == refused {
			keys[d.Header.Get("X-Edihub-Message-Id")] = true
		}
	}
	if len(keys) != 2 {
		t.Errorf("the replay of a refused delivery has the Message-IDs %v, want a new one", keys)
	}
	refs := map[string][]string{}
	for _, b := range bytesOf {
		r := readers(t, b)
		refs[string(r.ic.Standard)] = append(refs[string(r.ic.Standard)], r.ic.ControlRef)
		for _, g := range r.groups {
			refs["group"] = append(refs["group"], fmt.Sprintf("%09s", g.ControlRef))
		}
	}
	for what, count := range map[string]int{"x12": 5 * n, "group": 5 * n, "edifact": n} {
		var want []string
		for i := 1; i <= count; i++ {
			want = append(want, fmt.Sprintf(map[bool]string{true: "%d", false: "%09d"}[what == "edifact"], i))
		}
		if got := slices.Sorted(slices.Values(refs[what])); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("control references of %s: %v", what, got)
		}
	}
}

// TestBytesStay: what has no envelope of its own leaves as it came, and a message is not touched by
// the envelope around it.
func TestBytesStay(t *testing.T) {
	t.Parallel()
	h := routeHub(t, "split: messages", "  - {match: {document: opaque, from: acme}, to: globex, envelope: none}\n  - {match: {document: \"ubl:*\"}, to: initech, envelope: none}\n  - {match: {}, to: erp}\n")
	for _, c := range []struct{ to, name string }{
		{"globex", "opaque/price-list.csv"}, {"globex", "opaque/drawing.bin"}, {"globex", "opaque/unknown.xml"},
		{"initech", "ubl/invoice-minimal.xml"}, {"initech", "ubl/creditnote-minimal.xml"},
	} {
		post(t, h, file(t, c.name))
		files := arrived(h, c.to)
		if len(files) == 0 || !bytes.Equal(files[len(files)-1], file(t, c.name)) {
			t.Errorf("%s did not arrive as it is", c.name)
		}
		if d := h.API().List("deliveries")[0]; d.Text("envelope") != "none" || d.Text("state") != "delivered" {
			t.Errorf("%s: delivery %v", c.name, d)
		}
	}
	lines := file(t, "edifact/orders-lines-crlf.edi")
	post(t, h, lines)
	files := arrived(h, "erp")
	if len(files) != 1 || !bytes.Equal(readers(t, files[0]).bytes[0], readers(t, lines).bytes[0]) {
		t.Errorf("the ERP was given %q", files)
	}
}

// TestOurDelimiters: bytes that are replaced while a delivery is read are those that the receiver
// and the API see.
func TestOurDelimiters(t *testing.T) {
	t.Parallel()
	h := routeHub(t, "split: messages", `  - {match: {}, to: erp, x12: {version: "00401", element: "*", component: ">", segment: "~"}}`+"\n")
	original := file(t, "x12/850-own-delimiters.x12")
	post(t, h, original)
	files := arrived(h, "erp")
	if len(files) != 1 {
		t.Fatalf("%d files", len(files))
	}
	want := strings.NewReplacer("|", "*", "\n", "~").Replace(string(readers(t, original).bytes[0]))
	if got := readers(t, files[0]); string(got.bytes[0]) != want || bytes.ContainsAny(files[0], "|\n^") {
		t.Errorf("the ERP was given %q", files[0])
	}
	if d := h.API().List("deliveries")[0]; !bytes.Equal(h.API().Payload("deliveries", d.Text("id"), "content"), files[0]) {
		t.Error("the API shows other bytes")
	}
}

// TestNoRoute: the MDN is positive, the message a dead letter, and a route that is added later
// delivers it.
func TestNoRoute(t *testing.T) {
	t.Parallel()
	const before = "  - {match: {to: hub}, to: erp}\n"
	h := routeHub(t, "on_poison: skip", before)
	post(t, h, file(t, "edifact/orders-for-nobody.edi"))
	dead := h.API().List("deadletters")
	if len(dead) != 1 || dead[0].Text("code") != "NO_ROUTE" || dead[0].Text("stage") != "router" || dead[0].Text("partner") != "acme" {
		t.Fatalf("dead letters %v", dead)
	}
	h.Mend(fmt.Sprintf(routing, "on_poison: skip", before+"  - {match: {receiver: \"edifact:ZZ:NOBODY\"}, to: erp}\n"))
	h.API().Replay(dead[0].Text("id"))
	h.Settle()
	if len(arrived(h, "erp")) != 1 || states(h)["PO-7014"] != "delivered" {
		t.Errorf("%d files, %v", len(arrived(h, "erp")), states(h))
	}
}

// TestUsageAndStatus: what is not agreed is answered and not acted on; what goes to a suspended
// partner waits for it, and what comes from one is kept.
func TestUsageAndStatus(t *testing.T) {
	t.Parallel()
	const agreement, routes = "on_poison: skip", "  - {match: {}, to: globex}\n"
	with := func(who, status string) string {
		return strings.Replace(fmt.Sprintf(routing, agreement, routes), "{id: "+who+", connections", "{id: "+who+", status: "+status+", connections", 1)
	}
	h := routeHub(t, agreement, routes)
	post(t, h, file(t, "x12/850-marked-as-test.x12"))
	ic := h.API().List("interchanges")[0]
	if ic.Text("state") != "rejected" || ic.Text("code") != "USAGE_NOT_AGREED" || !strings.Contains(fmt.Sprint(ic["findings"]), "EDI-TEST-INDICATOR") || len(arrived(h, "globex")) != 0 {
		t.Fatalf("a test under usage: production: %v, %d files", ic, len(arrived(h, "globex")))
	}

	h.Mend(with("globex", "suspended"))
	h.Send(plain(file(t, "x12/850-one.x12"))).Disposition(t, false, "processed")
	h.Wait("the delivery to wait", func() bool {
		d := h.API().List("deliveries?state=ready")
		return len(d) == 1 && states(h)["PO-8003"] == "routed"
	})
	if len(arrived(h, "globex")) != 0 {
		t.Fatal("a suspended partner was sent something")
	}
	h.Mend(with("globex", "live"))
	h.Settle()
	if len(arrived(h, "globex")) != 1 {
		t.Fatalf("%d files after the partner is live again", len(arrived(h, "globex")))
	}

	h.Mend(with("acme", "suspended"))
	post(t, h, file(t, "edifact/orders-one.edi"))
	dead := h.API().List("deadletters")
	if len(dead) != 1 || dead[0].Text("code") != "PARTNER_NOT_ACTIVE" || len(arrived(h, "globex")) != 1 {
		t.Fatalf("from a suspended partner: %v", dead)
	}
	h.Mend(with("acme", "live"))
	h.API().Replay(dead[0].Text("id"))
	h.Settle()
	if len(arrived(h, "globex")) != 2 {
		t.Fatalf("%d files after the replay", len(arrived(h, "globex")))
	}
}

// TestDeliveryThatCannotBeBuilt: messages that waited for it are delivered once the route is
// mended and it is replayed, and end with it when it is given up.
func TestDeliveryThatCannotBeBuilt(t *testing.T) {
	t.Parallel()
	const agreement, bad = "split: preserve, on_poison: skip", "  - {match: {}, to: erp, x12: {element: \"|\"}}\n"
	for _, mend := range []bool{true, false} {
		h := routeHub(t, agreement, bad)
		post(t, h, file(t, "x12/850-with-a-bar-in-text.x12"))
		dead := h.API().List("deadletters")
		if len(dead) != 1 || dead[0].Text("code") != "TEXT_NOT_CARRIED" || states(h)["PO-8020"] != "batched" {
			t.Fatalf("%v, %v", dead, states(h))
		}
		want := "delivered"
		if mend {
			h.Mend(fmt.Sprintf(routing, agreement, "  - {match: {}, to: erp}\n"))
			h.API().Replay(dead[0].Text("id"))
		} else {
			want = "discarded TEXT_NOT_CARRIED"
			h.API().JSON("POST", "/v1/deadletters/"+dead[0].Text("id")+"/discard", map[string]string{"reason": "not needed"}, 200, nil)
		}
		h.Settle()
		ic := h.API().List("interchanges")[0]
		if states(h)["PO-8020"] != want || ic.Text("state") != "done" || ic.Text("open") != "0" {
			t.Errorf("mended %v: %v, the interchange is %s with %s open", mend, states(h), ic.Text("state"), ic.Text("open"))
		}
		noLaneWaits(t, h)
	}
}
