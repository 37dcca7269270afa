package hubtest_test

import (
	"bytes"
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/edihub/edihub/internal/app/hubtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const records = `
own:
  - {id: hub, as2: {id: HUB, keys: [{cert: HUB.pem, key: HUB.key}]}, identifiers: ["edifact:ZZ:HUB"]}
connections:
  - {id: acme, as2: {id: ACME, own: hub, url: "http://${sink}/as2"}, certificates: [{file: ACME.pem}], retry: {first: 5ms, max: 5ms}}
  - {id: globex, as2: {id: GLOBEX, own: hub, url: "http://${sink}/as2"}, certificates: [{file: GLOBEX.pem}], retry: {first: 5ms, max: 5ms}}
  - {id: web, http: {url: "http://${sink}/http/web"}}
  - {id: files, directory: {out: out, name: "{control_ref}.edi"}}
partners:
  - {id: acme, connections: [acme], identifiers: ["edifact:ZZ:ACME"]}
  - {id: globex, connections: [globex], identifiers: ["edifact:ZZ:GLOBEX"]}
  - {id: web, connections: [web], identifiers: ["edifact:ZZ:WEB"]}
  - {id: files, connections: [files], identifiers: ["edifact:ZZ:FILES"]}
routes:
  - {match: {from: acme, to: globex}, to: globex, envelope: new}
  - {match: {from: acme, to: web}, to: web, envelope: new}
  - {match: {from: acme, to: files}, to: files, envelope: new}
`

func order(to, number string) []byte {
	return []byte("UNB+UNOC:3+ACME:ZZ+" + to + ":ZZ+261130:1200+" + number + "'UNH+1+ORDERS:D:96A:UN'BGM+220+PO-" + number + "+9'DTM+137:20261130:102'UNS+S'UNT+5+1'UNZ+1+" + number + "'")
}

// TestThereAndBack sends one message by each way out, mends the records for one that had none, and
// starts the hub again.
func TestThereAndBack(t *testing.T) {
	h := hubtest.New(t, hubtest.Options{Partners: []string{"ACME", "GLOBEX"}, Records: records})
	for i, to := range []string{"GLOBEX", "WEB", "FILES", "NOBODY"} {
		h.Send(hubtest.Message{From: "ACME", Payload: order(to, string(rune('1'+i)))}).Positive(t)
	}
	h.Settle()
	got := h.Sink.To("GLOBEX")
	if len(got) != 1 || !got[0].Signed || !got[0].Encrypted || !bytes.Contains(got[0].Payload, []byte("BGM+220+PO-1+9'")) {
		t.Fatalf("GLOBEX was sent %+v", got)
	}
	if got := h.Sink.To("web"); len(got) != 1 || !bytes.Contains(got[0].Payload, []byte("PO-2")) {
		t.Fatalf("web was sent %+v", got)
	}
	if got := h.Files("out"); len(got) != 1 {
		t.Fatalf("files %v", got)
	}
	api := h.API()
	dead := api.List("deadletters")
	if len(dead) != 1 || dead[0].Text("code") != "NO_ROUTE" {
		t.Fatalf("dead letters %v", dead)
	}
	h.Mend(records + `  - {match: {from: acme, receiver: "edifact:ZZ:NOBODY"}, to: files, envelope: new}` + "\n")
	api.Replay(dead[0].Text("id"))
	h.Settle()
	if len(h.Files("out")) != 2 || len(api.List("messages?state=delivered")) != 4 {
		t.Fatalf("files %v, messages %v", h.Files("out"), api.List("messages"))
	}

	h.Stop()
	h.Start()
	h.Send(hubtest.Message{From: "ACME", Payload: order("GLOBEX", "9")}).Positive(t)
	h.Settle()
	if len(h.Sink.To("GLOBEX")) != 2 {
		t.Fatal("nothing is delivered after a restart")
	}
}

// TestAnswersOfTheTest lets the test answer in the partner's place, first wrongly, then with
// nothing at all until the hub stops.
func TestAnswersOfTheTest(t *testing.T) {
	keys := &hubtest.Keyring{}
	h := hubtest.New(t, hubtest.Options{Partners: []string{"ACME", "GLOBEX"}, Records: records, Keys: keys})
	h.Sink.Answer(func(w http.ResponseWriter, _ *http.Request, d *hubtest.Delivered) bool {
		if len(h.Sink.To("GLOBEX")) > 1 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	h.Send(hubtest.Message{From: "ACME", Payload: order("GLOBEX", "1")}).Positive(t)
	h.Settle()
	if got := h.Sink.To("GLOBEX"); len(got) != 2 || got[0].MessageID != got[1].MessageID {
		t.Fatalf("%d requests", len(got))
	}
	h.Sink.Answer(func(_ http.ResponseWriter, r *http.Request, _ *hubtest.Delivered) bool {
		select {
		case <-h.Sink.Released():
		case <-r.Context().Done():
		}
		return true
	})
	h.Send(hubtest.Message{From: "ACME", Payload: order("GLOBEX", "2")}).Positive(t)
	h.Wait("the second to be sent", func() bool { return len(h.Sink.To("GLOBEX")) == 3 })
	viewer := h.API().As("viewer")
	if r := viewer.Call(http.MethodPost, "/v1/tokens", map[string]string{"role": "admin"}); r.Status != http.StatusForbidden {
		t.Fatalf("a viewer makes tokens: HTTP %d", r.Status)
	}
	if again := keys.Identities(t, "HUB"); again["HUB"].Certificate != h.Own().Certificate {
		t.Fatal("the ring made another key")
	}
}
