package app_test

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/app/hubtest"
	"github.com/edihub/edihub/internal/app/peer"
	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/store"
)

// evilMark stands in everything that an attacker wants to get in and in nothing else.
const evilMark = "EVIL"

const (
	envelopedType = "application/pkcs7-mime; smime-type=enveloped-data"
	signedType    = `multipart/signed; protocol="application/pkcs7-signature"; micalg=sha-256; boundary="XX"`
)

func entity(contentType string, body []byte) []byte {
	return append([]byte("Content-Type: "+contentType+"\r\n\r\n"), body...)
}

func multipart(boundary string, parts ...[]byte) []byte {
	var b bytes.Buffer
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\r\n%s\r\n", boundary, p)
	}
	b.WriteString("--" + boundary + "--\r\n")
	return b.Bytes()
}

func signaturePart(der []byte) []byte {
	return []byte("Content-Type: application/pkcs7-signature\r\nContent-Transfer-Encoding: base64\r\n\r\n" + base64.StdEncoding.EncodeToString(der))
}

func signed(t *testing.T, who *peer.Identity, content []byte) []byte {
	t.Helper()
	der, err := cms.SignDetached(bytes.NewReader(content), *who.Signer(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return signaturePart(der)
}

// encrypted encrypts for the hub, which anybody can.
func encrypted(t *testing.T, to *peer.Identity, entity []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := cms.Encrypt(&b, bytes.NewReader(entity), int64(len(entity)), []*x509.Certificate{to.Certificate}, cms.AES256CBC); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// noSigners is a SignedData that nobody signed (RFC 5652 §5.1).
func noSigners(t *testing.T) []byte {
	t.Helper()
	type content struct{ Type asn1.ObjectIdentifier }
	type signedData struct {
		Version int
		Digests []asn1.RawValue `asn1:"set"`
		Content content
		Signers []asn1.RawValue `asn1:"set"`
	}
	type info struct {
		Type asn1.ObjectIdentifier
		Data signedData `asn1:"explicit,tag:0"`
	}
	pkcs7 := asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7}
	der, err := asn1.Marshal(info{append(slices.Clone(pkcs7), 2), signedData{Version: 1, Content: content{append(slices.Clone(pkcs7), 1)}}})
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// forgery is a message that an attacker makes who knows all names, all certificates, and one
// message of ACME with its signature.
type forgery struct {
	name  string
	plain bool // it goes without an envelope
	code  string
	make  func(t *testing.T, h *hubtest.Hub, good, bad []byte) (contentType string, body []byte)
}

// forgeries wrap or strip the signature, or sign with another key. good and bad are MIME parts.
func forgeries() []forgery {
	by := func(h *hubtest.Hub, name string) *peer.Identity { return h.Identity(name) }
	return []forgery{
		{name: "content before the signed part", code: as2.CodeDecryption, make: func(t *testing.T, h *hubtest.Hub, good, bad []byte) (string, []byte) {
			return signedType, multipart("XX", bad, good, signed(t, by(h, "ACME"), good))
		}},
		{name: "content behind the signed part", code: as2.CodeDecryption, make: func(t *testing.T, h *hubtest.Hub, good, bad []byte) (string, []byte) {
			return signedType, multipart("XX", good, bad, signed(t, by(h, "ACME"), good))
		}},
		{name: "content in place of the signed part", make: func(t *testing.T, h *hubtest.Hub, good, bad []byte) (string, []byte) {
			return signedType, multipart("XX", bad, signed(t, by(h, "ACME"), good))
		}},
		{name: "the signature first", make: func(t *testing.T, h *hubtest.Hub, good, bad []byte) (string, []byte) {
			return signedType, multipart("XX", signed(t, by(h, "ACME"), good), bad)
		}},
		{name: "the signed message inside multipart/mixed", make: func(t *testing.T, h *hubtest.Hub, good, bad []byte) (string, []byte) {
			return `multipart/mixed; boundary="MM"`, multipart("MM", bad, entity(signedType, multipart("XX", good, signed(t, by(h, "ACME"), good))))
		}},
		{name: "the signed message inside the signature of a stranger", make: func(t *testing.T, h *hubtest.Hub, good, bad []byte) (string, []byte) {
			inner := entity(strings.ReplaceAll(signedType, "XX", "YY"), multipart("YY", good, signed(t, by(h, "ACME"), good)))
			outer := entity(`multipart/mixed; boundary="MM"`, multipart("MM", bad, inner))
			return signedType, multipart("XX", outer, signed(t, by(h, "STRANGER"), outer))
		}},
		{name: "no signature at all", make: func(_ *testing.T, _ *hubtest.Hub, _, bad []byte) (string, []byte) {
			_, body, _ := bytes.Cut(bad, []byte("\r\n\r\n"))
			return "application/edifact", body
		}},
		{name: "an empty signature", make: func(_ *testing.T, _ *hubtest.Hub, _, bad []byte) (string, []byte) {
			return signedType, multipart("XX", bad, []byte("Content-Type: application/pkcs7-signature\r\n\r\n"))
		}},
		{name: "a signature without signers", make: func(t *testing.T, _ *hubtest.Hub, _, bad []byte) (string, []byte) {
			return signedType, multipart("XX", bad, signaturePart(noSigners(t)))
		}},
		{name: "a second boundary", make: func(t *testing.T, h *hubtest.Hub, good, bad []byte) (string, []byte) {
			s := signed(t, by(h, "ACME"), good)
			return signedType + `; boundary="ZZ"`, append(multipart("ZZ", bad, s), multipart("XX", good, s)...)
		}},
		{name: "a header changed in the signed part", make: func(t *testing.T, h *hubtest.Hub, good, _ []byte) (string, []byte) {
			return signedType, multipart("XX", bytes.Replace(good, []byte("Content-Type: application/edifact"), []byte("Content-Type: application/x-"+evilMark), 1), signed(t, by(h, "ACME"), good))
		}},
		{name: "one byte more", make: func(t *testing.T, h *hubtest.Hub, good, _ []byte) (string, []byte) {
			return signedType, multipart("XX", append(bytes.Clone(good), '!'), signed(t, by(h, "ACME"), good))
		}},
		{name: "signed and not encrypted", plain: true, make: func(t *testing.T, h *hubtest.Hub, _, bad []byte) (string, []byte) {
			return signedType, multipart("XX", bad, signed(t, by(h, "ACME"), bad))
		}},
		{name: "a stranger's key", make: func(t *testing.T, h *hubtest.Hub, _, bad []byte) (string, []byte) {
			return signedType, multipart("XX", bad, signed(t, by(h, "STRANGER"), bad))
		}},
		{name: "another partner's key", make: func(t *testing.T, h *hubtest.Hub, _, bad []byte) (string, []byte) {
			return signedType, multipart("XX", bad, signed(t, by(h, "BETA"), bad))
		}},
		{name: "our own key", make: func(t *testing.T, h *hubtest.Hub, _, bad []byte) (string, []byte) {
			return signedType, multipart("XX", bad, signed(t, by(h, "HUB"), bad))
		}},
		{name: "garbage in an envelope's clothes", plain: true, make: func(t *testing.T, _ *hubtest.Hub, _, _ []byte) (string, []byte) {
			b := make([]byte, 3000)
			if _, err := rand.Read(b); err != nil {
				t.Fatal(err)
			}
			return envelopedType, b
		}},
		{name: "garbage in a signature's clothes", plain: true, make: func(*testing.T, *hubtest.Hub, []byte, []byte) (string, []byte) {
			return signedType, []byte("--XX\r\n" + evilMark)
		}},
	}
}

// TestForgedMessages posts each forgery under ACME's name and Message-ID, before and after ACME's
// own message with that id: nothing of it is delivered, ACME's message is, and each forgery is
// there for an operator to see.
func TestForgedMessages(t *testing.T) {
	t.Parallel()
	h := newWorld(t, nil)
	api := h.API()
	for i, f := range forgeries() {
		t.Run(f.name, func(t *testing.T) {
			number := fmt.Sprintf("GOOD-%d-", i)
			payload := edifactOrder("ACME", "GLOBEX", i+1, number)
			good, bad := entity("application/edifact", payload), entity("application/edifact", edifactOrder("ACME", "GLOBEX", 1000+i, evilMark))
			contentType, body := f.make(t, h, good, bad)
			if !f.plain {
				contentType, body = envelopedType, encrypted(t, h.Own(), entity(contentType, body))
			}
			id := fmt.Sprintf("<forged-%d@acme>", i)
			forged := &hubtest.Request{Header: as2Header("ACME", id, contentType), Body: body}
			mine := h.Message(hubtest.Message{From: "ACME", MessageID: id, Payload: payload})

			refused := func(n int) string {
				t.Helper()
				a := h.Post(forged)
				if a.MDN == nil || !a.MDN.Signed || a.MDN.Outcome != as2.Negative || a.MDN.MIC != "" && !f.plain {
					t.Fatalf("HTTP %d, %+v, %v", a.Status, a.MDN, a.MDNError)
				}
				ts := transmissions(h, id)
				if len(ts) != n {
					t.Fatalf("%d transmissions are shown, want %d", len(ts), n)
				}
				last := ts[n-1]
				if s := last.Text("state"); s != store.StateRefused && s != store.StateQuarantined {
					t.Fatalf("the forgery is shown as %s", s)
				}
				if code := last.Text("code"); code == "" || f.code != "" && code != f.code {
					t.Fatalf("code %q, want %q", code, f.code)
				}
				if es := api.Events("transmissions", last.Text("id")); len(es) == 0 || es[0].Text("detail") != last.Text("code") {
					t.Fatalf("time line %v", es)
				}
				if got := api.Payload("transmissions", last.Text("id"), "wire"); !bytes.Equal(got, body) {
					t.Fatal("what travelled is not kept")
				}
				return last.Text("code") + " " + a.MDN.Disposition
			}
			first := refused(1)
			answer := h.Post(mine)
			answer.Positive(t)
			if again := refused(3); again != first {
				t.Errorf("first %s, then %s", first, again)
			}
			if again := h.Post(mine); !bytes.Equal(again.Body, answer.Body) {
				t.Error("the repeat got another answer")
			}
			h.Settle()
			if n := holding(h, number); n != 1 {
				t.Errorf("ACME's message was delivered %d times", n)
			}
			if n := holding(h, evilMark); n != 0 {
				t.Errorf("%d deliveries of the attacker", n)
			}
		})
	}
	freeLanes(t, h)
	if dead := api.List("deadletters"); len(dead) != 0 {
		t.Errorf("dead letters %v", dead)
	}
	if n := len(api.List("transmissions?state=refused")) + len(api.List("transmissions?state=quarantined")); n != 2*len(forgeries()) {
		t.Errorf("%d forgeries are shown, want %d", n, 2*len(forgeries()))
	}
}

// TestInAnothersName has ACME sign interchanges whose envelope names BETA: the transport is right,
// so the MDN is positive, but nothing goes on as BETA's until the records say that ACME may speak
// for BETA.
func TestInAnothersName(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(from, to string, n int, number string) []byte{"UNB": edifactOrder, "ISA": x12Order} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newWorld(t, nil)
			api := h.API()
			h.Send(hubtest.Message{From: "ACME", Payload: order("BETA", "GLOBEX", 1, evilMark)}).Positive(t)
			h.Settle()
			dead := api.List("deadletters")
			if len(dead) != 1 || dead[0].Text("code") != "SENDER_NOT_ON_CONNECTION" || dead[0].Text("stage") != "parser" || dead[0].Text("blocks_lane") != "false" {
				t.Fatalf("dead letters %v", dead)
			}
			ic := api.One("interchanges", dead[0].Text("object"))
			if ic.Text("state") != store.StateDead || ic.Text("code") != "SENDER_NOT_ON_CONNECTION" || ic.Text("connection") != "acme-as2" || ic.Text("sender") != "BETA" {
				t.Fatalf("interchange %v", ic)
			}
			if es := api.Events("interchanges", ic.Text("id")); !slices.ContainsFunc(es, func(e hubtest.Object) bool { return e.Text("event") == "dead" }) {
				t.Errorf("time line %v", es)
			}
			// Neither the one nor the other waits for it.
			h.Send(hubtest.Message{From: "ACME", Payload: order("ACME", "GLOBEX", 1, "GOOD-A")}).Positive(t)
			h.Send(hubtest.Message{From: "BETA", Payload: order("BETA", "GLOBEX", 1, "GOOD-B")}).Positive(t)
			h.Settle()
			if holding(h, "GOOD-A") != 1 || holding(h, "GOOD-B") != 1 || holding(h, evilMark) != 0 {
				t.Fatalf("delivered: %d of ACME, %d of BETA, %d of the attacker", holding(h, "GOOD-A"), holding(h, "GOOD-B"), holding(h, evilMark))
			}
			freeLanes(t, h)
			// A replay without mending dies again; with the record mended it goes on.
			api.Replay(dead[0].Text("id"))
			h.Settle()
			if again := api.List("deadletters"); len(again) != 1 || again[0].Text("code") != "SENDER_NOT_ON_CONNECTION" || holding(h, evilMark) != 0 {
				t.Fatalf("dead letters after a replay %v", again)
			}
			h.Mend(strings.Replace(world, "{id: beta, connections: [beta-as2]", "{id: beta, connections: [beta-as2, acme-as2]", 1))
			api.Replay(dead[0].Text("id"))
			h.Settle()
			if left := api.List("deadletters"); len(left) != 0 {
				t.Fatalf("dead letters %v", left)
			}
			// BETA's own interchange has used this control reference meanwhile, so it is a repeat
			// with other content: rejected, and never delivered beside it.
			if ic = api.One("interchanges", ic.Text("id")); ic.Text("state") != store.StateRejected || holding(h, evilMark) != 0 {
				t.Fatalf("interchange %v", ic)
			}
			h.Send(hubtest.Message{From: "ACME", Payload: order("BETA", "GLOBEX", 2, "GOOD-C")}).Positive(t)
			h.Settle()
			if holding(h, "GOOD-C") != 1 {
				t.Fatal("ACME cannot speak for BETA although the records say so")
			}
			freeLanes(t, h)
		})
	}
}

// TestReplayInAnothersNameOnceMended is the plain way: the record is mended and the replay
// delivers.
func TestReplayInAnothersNameOnceMended(t *testing.T) {
	t.Parallel()
	h := newWorld(t, nil)
	api := h.API()
	h.Send(hubtest.Message{From: "ACME", Payload: edifactOrder("BETA", "GLOBEX", 7, "HELD-1")}).Positive(t)
	h.Settle()
	dead := api.List("deadletters?code=SENDER_NOT_ON_CONNECTION")
	if len(dead) != 1 || holding(h, "HELD-1") != 0 {
		t.Fatalf("dead letters %v", dead)
	}
	h.Mend(strings.Replace(world, "{id: beta, connections: [beta-as2]", "{id: beta, connections: [beta-as2, acme-as2]", 1))
	api.Replay(dead[0].Text("id"))
	h.Settle()
	if holding(h, "HELD-1") != 1 || len(api.List("deadletters")) != 0 {
		t.Fatalf("delivered %d times, dead letters %v", holding(h, "HELD-1"), api.List("deadletters"))
	}
	freeLanes(t, h)
}

// TestOpaqueAgainUnderANewID replays a captured opaque file of BETA, who may send plain text,
// under a new Message-ID: a positive MDN for that id and no second effect.
func TestOpaqueAgainUnderANewID(t *testing.T) {
	t.Parallel()
	h := newWorld(t, nil)
	api := h.API()
	file := []byte("OPAQUE-1;no standard that we know;\n")
	for i := range 3 {
		h.Send(hubtest.Message{From: "BETA", MessageID: fmt.Sprintf("<opaque-%d@beta>", i), Media: "application/octet-stream", Payload: file, Unsigned: true, Unencrypted: true}).Positive(t)
	}
	h.Send(hubtest.Message{From: "BETA", Media: "application/octet-stream", Payload: []byte("OPAQUE-2;other\n"), Unsigned: true, Unencrypted: true}).Positive(t)
	h.Settle()
	if a, b := holding(h, "OPAQUE-1"), holding(h, "OPAQUE-2"); a != 1 || b != 1 {
		t.Fatalf("the file was delivered %d times, the other one %d times", a, b)
	}
	again := api.List("messages?state=duplicate")
	if len(again) != 2 || again[0].Text("code") != "DUPLICATE" {
		t.Fatalf("duplicates %v", again)
	}
	freeLanes(t, h)
	if dead := api.List("deadletters"); len(dead) != 0 {
		t.Errorf("dead letters %v", dead)
	}
}

// forgedMDN is an answer of GLOBEX's server, or of somebody in its place, that proves nothing.
type forgedMDN struct {
	name string
	code string
	make func(h *hubtest.Hub, d *hubtest.Delivered, old *hubtest.Delivered) (http.Header, []byte, error)
}

func forgedMDNs() []forgedMDN {
	by := func(name string) func(*hubtest.Hub, *hubtest.Delivered, *hubtest.Delivered) (http.Header, []byte, error) {
		return func(h *hubtest.Hub, d, _ *hubtest.Delivered) (http.Header, []byte, error) {
			return h.Sink.MDN(d, func(p *as2.MDNParams) { p.Signer = h.Identity(name).Signer() })
		}
	}
	return []forgedMDN{
		{"without a signature", "MDN_UNSIGNED", func(h *hubtest.Hub, d, _ *hubtest.Delivered) (http.Header, []byte, error) {
			return h.Sink.MDN(d, func(p *as2.MDNParams) { p.Signer = nil })
		}},
		{"a stranger's key", "MDN_SIGNATURE", by("STRANGER")},
		{"another partner's key", "MDN_SIGNATURE", by("ACME")},
		{"our own key", "MDN_SIGNATURE", by("HUB")},
		{"a refusal made positive after it was signed", "MDN_SIGNATURE", func(h *hubtest.Hub, d, _ *hubtest.Delivered) (http.Header, []byte, error) {
			header, body, err := h.Sink.MDN(d, func(p *as2.MDNParams) { p.Refusal = as2.RefuseDuplicate() })
			return header, bytes.Replace(body, []byte("processed/error: duplicate-document"), []byte("processed"), 1), err
		}},
		{"the MDN of the message before", "MDN_OTHER_MESSAGE", func(h *hubtest.Hub, _, old *hubtest.Delivered) (http.Header, []byte, error) {
			return h.Sink.MDN(old, nil)
		}},
		{"a web page", "MDN_MALFORMED", func(*hubtest.Hub, *hubtest.Delivered, *hubtest.Delivered) (http.Header, []byte, error) {
			return http.Header{"Content-Type": {"text/html"}}, []byte("<html>Welcome</html>"), nil
		}},
		{"our own message", "", func(_ *hubtest.Hub, d, _ *hubtest.Delivered) (http.Header, []byte, error) {
			return http.Header{"Content-Type": {d.Header.Get("Content-Type")}}, d.Wire, nil
		}},
	}
}

// TestForgedMDNs answers what the hub sends with receipts that prove nothing: the delivery is not
// delivered, shows why, and goes again under the same Message-ID until the real MDN comes; the
// next message of the lane follows.
func TestForgedMDNs(t *testing.T) {
	t.Parallel()
	h := newWorld(t, nil)
	api := h.API()
	n := 0
	next := func() string {
		n++
		number := fmt.Sprintf("MDN-%d-", n)
		h.Send(hubtest.Message{From: "ACME", Payload: edifactOrder("ACME", "GLOBEX", n, number)}).Positive(t)
		return number
	}
	next()
	h.Settle()
	for _, f := range forgedMDNs() {
		t.Run(f.name, func(t *testing.T) {
			before := h.Sink.All()
			looked := make(chan struct{})
			h.Sink.Answer(func(w http.ResponseWriter, r *http.Request, d *hubtest.Delivered) bool {
				if len(h.Sink.All()) > len(before)+1 {
					select {
					case <-looked:
					case <-r.Context().Done():
					}
					return false // the real one
				}
				header, body, err := f.make(h, d, before[len(before)-1])
				if err != nil {
					t.Error(err)
				}
				hubtest.Write(w, header, body)
				return true
			})
			number := next()
			h.Wait("the second try", func() bool { return len(h.Sink.All()) == len(before)+2 })
			ds := api.List("deliveries")
			code := ds[0].Text("code")
			if s := ds[0].Text("state"); s != store.StateSending && s != store.StateReady || !strings.HasPrefix(code, "MDN_") || f.code != "" && code != f.code {
				t.Errorf("shown as %s %s, want %s", s, code, f.code)
			}
			if ds[0].Text("detail") == "" || ds[0].Text("proof") != "" {
				t.Errorf("detail %q, proof %q", ds[0].Text("detail"), ds[0].Text("proof"))
			}
			if m := api.List("messages")[0]; m.Text("state") == store.StateDelivered {
				t.Errorf("message %v", m)
			}
			close(looked)
			h.Settle()
			got := h.Sink.All()[len(before):]
			if len(got) != 2 || got[0].MessageID != got[1].MessageID || !bytes.Contains(got[1].Payload, []byte(number)) {
				t.Fatalf("%d tries", len(got))
			}
			if d := api.One("deliveries", ds[0].Text("id")); d.Text("state") != store.StateDelivered || d.Text("proof") != "mdn" || d.Text("tries") != "2" {
				t.Errorf("delivery %v", d)
			}
			h.Sink.Answer(nil)
			behind := next()
			h.Settle()
			if holding(h, behind) != 1 {
				t.Error("the message behind it was not delivered")
			}
		})
	}
	freeLanes(t, h)
	if dead := api.List("deadletters"); len(dead) != 0 {
		t.Errorf("dead letters %v", dead)
	}
}

// TestPartnerHasOtherBytes has GLOBEX itself sign an MDN with another MIC, and one that refuses:
// those are the partner's own words, so the delivery has failed, and a person decides. The lanes of
// others go on; a replay sends it under a new Message-ID.
func TestPartnerHasOtherBytes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		code   string
		change func(p *as2.MDNParams)
	}{
		{"MDN_MIC_MISMATCH", func(p *as2.MDNParams) { p.MIC = base64.StdEncoding.EncodeToString(make([]byte, 32)) }},
		{"MDN_DECRYPTION_FAILED", func(p *as2.MDNParams) {
			p.Refusal = &as2.Refusal{Modifier: as2.DecryptionFailed, Text: "no key"}
		}},
	} {
		t.Run(tc.code, func(t *testing.T) {
			t.Parallel()
			h := newWorld(t, nil)
			api := h.API()
			h.Sink.Answer(func(w http.ResponseWriter, _ *http.Request, d *hubtest.Delivered) bool {
				if len(h.Sink.To("GLOBEX")) > 1 {
					return false
				}
				header, body, err := h.Sink.MDN(d, tc.change)
				if err != nil {
					t.Error(err)
				}
				hubtest.Write(w, header, body)
				return true
			})
			h.Send(hubtest.Message{From: "ACME", Payload: edifactOrder("ACME", "GLOBEX", 1, "FAILS")}).Positive(t)
			h.Settle()
			dead := api.List("deadletters")
			if len(dead) != 1 || dead[0].Text("code") != tc.code || dead[0].Text("stage") != "sender" {
				t.Fatalf("dead letters %v", dead)
			}
			d := api.One("deliveries", dead[0].Text("object"))
			if d.Text("state") != store.StateFailed || d.Text("code") != tc.code || d.Text("proof") != "" {
				t.Fatalf("delivery %v", d)
			}
			h.Send(hubtest.Message{From: "BETA", Payload: edifactOrder("BETA", "GLOBEX", 1, "OTHERS")}).Positive(t)
			h.Settle()
			if holding(h, "OTHERS") != 1 {
				t.Fatal("the lane of another was blocked")
			}
			api.Replay(dead[0].Text("id"))
			h.Settle()
			got := h.Sink.To("GLOBEX")
			if len(got) != 3 || got[0].MessageID == got[2].MessageID || api.One("deliveries", d.Text("id")).Text("state") != store.StateDelivered {
				t.Fatalf("%d requests, delivery %v", len(got), api.One("deliveries", d.Text("id")))
			}
			freeLanes(t, h)
		})
	}
}
