package app_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/edihub/edihub/internal/app/hubtest"
	"github.com/edihub/edihub/internal/as2"
)

func TestMain(m *testing.M) {
	if os.Getenv(hubDirVariable) != "" {
		os.Exit(hubMain()) // the process of a hub that a test kills
	}
	goleak.VerifyTestMain(m)
}

// keys of all tests of this package; a key takes long to make.
var keys hubtest.Keyring

// world is what the hub knows in these tests. ACME demands everything and must not be able to
// hurt, BETA may send plain text, GAMMA encrypts and does not sign. Every lane is ordered and
// blocks, so that an attack which killed a message would be seen by those behind it.
const world = `
own:
  - {id: hub, as2: {id: HUB, keys: [{cert: HUB.pem, key: HUB.key}]}, identifiers: ["edifact:ZZ:HUB", "x12:ZZ:HUB"]}
connections:
  - {id: acme-as2, as2: {id: ACME, own: hub, url: "http://${sink}/as2"}, certificates: [{file: ACME.pem}], retry: {first: 5ms, max: 10ms}}
  - {id: beta-as2, as2: {id: BETA, own: hub, url: "http://${sink}/as2", require: [], sign: none, encrypt: none, mdn: {signed: false}}, certificates: [{file: BETA.pem}]}
  - {id: gamma-as2, as2: {id: GAMMA, own: hub, url: "http://${sink}/as2", require: [encrypted], max_message: 64KiB}, certificates: [{file: GAMMA.pem}]}
  - {id: globex-as2, as2: {id: GLOBEX, own: hub, url: "http://${sink}/as2"}, certificates: [{file: GLOBEX.pem}], retry: {first: 5ms, max: 10ms}}
  - {id: erp, directory: {out: erp, name: "{type}_{id}"}}
partners:
  - {id: acme, connections: [acme-as2], identifiers: ["edifact:ZZ:ACME", "x12:ZZ:ACME", "peppol:0088:ACME"]}
  - {id: beta, connections: [beta-as2], identifiers: ["edifact:ZZ:BETA", "x12:ZZ:BETA", "peppol:0088:BETA"]}
  - {id: gamma, connections: [gamma-as2], identifiers: ["edifact:ZZ:GAMMA", "x12:ZZ:GAMMA"]}
  - {id: globex, connections: [globex-as2], identifiers: ["edifact:ZZ:GLOBEX", "x12:ZZ:GLOBEX", "peppol:0088:GLOBEX"]}
  - {id: erp, connections: [erp], identifiers: ["edifact:ZZ:ERP"]}
agreements:
  - {match: {}, acks: {contrl: {answer: never}, x12: {answer: never}, ubl: none}}
routes:
  - {match: {document: opaque, from: beta}, to: erp, envelope: none}
  - {match: {document: "ubl:*"}, to: globex, envelope: none}
  - {match: {to: [hub, globex]}, to: globex, envelope: new}
  - {match: {to: [acme]}, to: acme, envelope: new}
`

func newWorld(t *testing.T, change func(o *hubtest.Options)) *hubtest.Hub {
	t.Helper()
	o := hubtest.Options{Partners: []string{"ACME", "BETA", "GAMMA", "GLOBEX", "STRANGER"}, Records: world, Keys: &keys}
	if change != nil {
		change(&o)
	}
	return hubtest.New(t, o)
}

// edifactOrder is an order with its own number.
func edifactOrder(from, to string, n int, number string) []byte {
	return fmt.Appendf(nil, "UNB+UNOC:3+%s:ZZ+%s:ZZ+261130:1200+%d'UNH+1+ORDERS:D:96A:UN'BGM+220+%s+9'DTM+137:20261130:102'NAD+BY+5412345000013::9'LIN+1++4000862141404:EN'QTY+21:5'UNS+S'UNT+8+1'UNZ+1+%d'", from, to, n, number, n)
}

// x12Order is an order with its own number.
func x12Order(from, to string, n int, number string) []byte {
	return fmt.Appendf(nil, "ISA*00*          *00*          *ZZ*%-15s*ZZ*%-15s*261130*1200*U*00401*%09d*0*P*>~GS*PO*%s*%s*20261130*1200*%d*X*004010~ST*850*0001~BEG*00*SA*%s**20261130~PO1*1*5*EA*9.25**VN*W-1~CTT*1~SE*5*0001~GE*1*%d~IEA*1*%09d~", from, to, n, from, to, n, number, n, n)
}

// holding counts the deliveries, by any way, that hold a text.
func holding(h *hubtest.Hub, text string) int {
	n := 0
	for _, d := range h.Sink.All() {
		if bytes.Contains(d.Payload, []byte(text)) {
			n++
		}
	}
	for _, b := range h.Files("erp") {
		if bytes.Contains(b, []byte(text)) {
			n++
		}
	}
	return n
}

// freeLanes fails the test when a lane waits for anything.
func freeLanes(t *testing.T, h *hubtest.Hub) {
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

// transmissions under a Message-ID, from old to new.
func transmissions(h *hubtest.Hub, messageID string) []hubtest.Object {
	all := h.API().List("transmissions?message_id=" + strings.NewReplacer("<", "%3C", ">", "%3E").Replace(messageID))
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	return all
}

// as2Header are the headers of a message that asks for a signed MDN.
func as2Header(from, messageID, contentType string) http.Header {
	return http.Header{
		"AS2-Version": {"1.0"}, "AS2-From": {as2.QuoteName(from)}, "AS2-To": {"HUB"}, "Message-ID": {messageID}, "Content-Type": {contentType},
		"Disposition-Notification-To":      {"edi@partner.example"},
		"Disposition-Notification-Options": {"signed-receipt-protocol=optional, pkcs7-signature; signed-receipt-micalg=optional, sha-256"},
	}
}
