package route_test

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
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edifact"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/pipeline/route"
	"github.com/edihub/edihub/internal/store"
	"github.com/edihub/edihub/internal/x12"
)

var now = time.Date(2026, 12, 1, 8, 30, 0, 0, time.UTC)

const records = `
own:
  - {id: hub, identifiers: ["edifact:ZZ:HUB", "edifact:14:5412345000020", "x12:ZZ:HUB", "peppol:0088:HUB"]}
  - {id: branch, as2: {id: BRANCH}, identifiers: ["edifact:ZZ:BRANCH", "x12:ZZ:BRANCH"]}
connections:
  - {id: acme-http, http: {url: "http://127.0.0.1:1/"}}
  - {id: erp-files, directory: {out: out}}
  - {id: globex-http, http: {url: "http://127.0.0.1:1/"}}
  - {id: initech-as2, as2: {id: INITECH, own: branch, url: "http://127.0.0.1:1/", require: [], sign: none, encrypt: none, mdn: {mode: none}}}
partners:
  - {id: acme, connections: [acme-http], identifiers: ["edifact:ZZ:ACME", "x12:ZZ:ACME", "peppol:0088:ACME"]}
  - {id: erp, connections: [erp-files]}
  - {id: globex, connections: [globex-http], identifiers: ["edifact:ZZ:GLOBEX", "edifact:14:5412345000037", "x12:ZZ:GLOBEX"]}
  - {id: initech, connections: [initech-as2], identifiers: ["edifact:ZZ:INITECH", "x12:01:INITECH"]}
  - {id: someday, connections: [globex-http], status: draft, identifiers: ["edifact:ZZ:SOMEDAY"]}
  - {id: paused, connections: [globex-http], status: suspended, identifiers: ["edifact:ZZ:PAUSED"]}
%s
routes:
%s`

func registry(t *testing.T, agreements, routes string) *partner.Registry {
	t.Helper()
	reg, err := partner.Parse(fmt.Appendf(nil, records, agreements, routes), t.TempDir(), partner.LoadOptions{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// desk has one file on it, read as the parser reads it, and routes its messages.
type desk struct {
	t     *testing.T
	reg   *partner.Registry
	body  []byte
	ic    *store.Interchange
	ms    []*store.Message
	opens int
	next  int64 // control number
}

func (d *desk) id(n int) edi.ID {
	return edi.ID{1, 0x95, 0x50, 0x7c, byte(n >> 8), byte(n), 0x70, 1, 0x80, 2, 3, 4, 5, 6, 7, 8}
}

// put puts a file on the desk; an XML or opaque file is one message.
func put(t *testing.T, reg *partner.Registry, body []byte) *desk {
	t.Helper()
	d := &desk{t: t, reg: reg, body: body, next: 1}
	d.ic = &store.Interchange{ID: d.id(0), Transmission: d.id(1), Body: store.Ref{1}, State: store.StateSplit, At: now}
	var s edi.Splitter
	switch {
	case edifact.Sniff(body):
		s = edifact.NewSplitter(bytes.NewReader(body), edifact.Limits{})
	case x12.Sniff(body):
		s = x12.NewSplitter(bytes.NewReader(body), x12.Limits{})
	default:
		d.ic.Envelope = edi.Interchange{Standard: edi.Opaque, Length: int64(len(body)), Messages: 1}
		d.add(edi.Message{Type: "opaque", Length: int64(len(body))})
		d.found("acme", "hub")
		return d
	}
	for {
		ev, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch ev.Kind {
		case edi.MessageEnd:
			d.add(*ev.Message)
		case edi.InterchangeEnd:
			d.ic.Envelope = *ev.Interchange
		case edi.InterchangeBegin, edi.GroupBegin, edi.GroupEnd:
		}
	}
	sender, receiver := d.ic.Envelope.Identifiers()
	from, _, _ := reg.PartyByIdentifier(sender)
	to, own, ok := reg.PartyByIdentifier(receiver)
	if !ok {
		to = string(receiver)
	}
	d.found(from, to)
	if d.ic.Role = "transparent"; own {
		d.ic.Role = "endpoint"
	}
	return d
}

func (d *desk) add(m edi.Message) {
	m.Position = len(d.ms) + 1
	d.ms = append(d.ms, &store.Message{ID: d.id(10 + len(d.ms)), Interchange: d.ic.ID, Envelope: m, State: store.StateValidated, At: now})
}

func (d *desk) found(from, to string) {
	d.ic.From, d.ic.To, d.ic.Total, d.ic.Open = from, to, len(d.ms), len(d.ms)
	for _, m := range d.ms {
		m.From, m.To, m.Standard = from, to, d.ic.Envelope.Standard
	}
}

type memory struct {
	*bytes.Reader
	d *desk
}

func (m memory) Close() error { m.d.opens--; return nil }

func (d *desk) task(kind store.Kind, m *store.Message) *pipeline.Task {
	return &pipeline.Task{
		Stage: store.Router, Kind: kind, Message: m, Interchange: d.ic, Registry: d.reg, Now: now,
		Open: func(store.Ref) (store.BodySource, error) { d.opens++; return memory{bytes.NewReader(d.body), d}, nil },
		MessagesOf: func(_ edi.ID, after, n int) ([]*store.Message, error) {
			return d.ms[min(after, len(d.ms)):min(after+n, len(d.ms))], nil
		},
	}
}

// one routes one message.
func (d *desk) one(i int) *pipeline.Outcome {
	d.t.Helper()
	out := route.New().Handle(context.Background(), d.task(store.KindMessage, d.ms[i]))
	if d.opens != 0 {
		d.t.Errorf("%d bodies stay open", d.opens)
	}
	return out
}

// together routes an interchange whose messages waited.
func (d *desk) together() *pipeline.Outcome {
	d.t.Helper()
	for _, m := range d.ms {
		if m.State == store.StateValidated {
			m.State = store.StateBatched
		}
	}
	return route.New().Handle(context.Background(), d.task(store.KindInterchange, nil))
}

// seal gives a delivery its numbers and returns it with its bytes.
func (d *desk) seal(p *pipeline.DeliveryPlan) (*store.Delivery, []byte) {
	d.t.Helper()
	numbers := make([]int64, len(p.Numbers))
	for i := range numbers {
		numbers[i] = max(d.next, p.Numbers[i].Start)
	}
	d.next++
	if err := p.Seal(p.Delivery, numbers); err != nil {
		d.t.Fatal(err)
	}
	var b []byte
	for _, piece := range p.Delivery.Pieces {
		if piece.Body.IsZero() {
			b = append(b, piece.Literal...)
			continue
		}
		part := slices.Clone(d.body[piece.Offset : piece.Offset+piece.Length])
		for at, c := range part {
			for i := 0; i < len(piece.Translate); i += 2 {
				if c == piece.Translate[i] {
					part[at] = piece.Translate[i+1]
				}
			}
		}
		b = append(b, part...)
	}
	if int64(len(b)) != p.Delivery.Size {
		d.t.Errorf("the delivery has %d bytes and says %d", len(b), p.Delivery.Size)
	}
	return p.Delivery, b
}

// delivered routes the first message, which must work.
func (d *desk) delivered() (*store.Delivery, []byte) {
	d.t.Helper()
	out := d.one(0)
	if out.Verdict != pipeline.Done || len(out.Write.Deliveries) != 1 {
		d.t.Fatalf("%s %s: %s", out.Verdict, out.Code, out.Detail)
	}
	return d.seal(out.Write.Deliveries[0])
}

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func edifactTo(to string) []byte {
	return []byte("UNB+UNOC:3+ACME:ZZ+" + to + "+261130:0915+1'UNH+1+ORDERS:D:96A:UN'BGM+220+PO-1+9'UNT+3+1'UNZ+1+1'")
}

// TestWhichRoute: the first match wins, keys are ANDed, values ORed.
func TestWhichRoute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, routes string
		file         string // of testdata; empty: an order from ACME to HUB
		to           string // partner, or the code of the dead letter
	}{
		{"the first match wins", `- {match: {from: acme}, to: globex}
  - {match: {}, to: erp}`, "", "globex"},
		{"the order of the file counts", `- {match: {}, to: erp}
  - {match: {from: acme}, to: globex}`, "", "erp"},
		{"an empty match matches all", `- {match: {}, to: initech}`, "", "initech"},
		{"keys are ANDed: one of two holds", `- {match: {from: acme, to: globex}, to: globex}
  - {match: {}, to: erp}`, "", "erp"},
		{"keys are ANDed: both hold", `- {match: {from: acme, to: hub}, to: globex}
  - {match: {}, to: erp}`, "", "globex"},
		{"values are ORed", `- {match: {from: [globex, acme], document: ["x12:850", "edifact:ORDERS"]}, to: initech}`, "", "initech"},
		{"no value of a list holds", `- {match: {from: [globex, initech]}, to: initech}`, "", "NO_ROUTE"},
		{"from by the sender's identifier", `- {match: {sender: "edifact:ZZ:ACME"}, to: globex}`, "", "globex"},
		{"another sender's identifier", `- {match: {sender: "edifact:ZZ:GLOBEX"}, to: globex}`, "", "NO_ROUTE"},
		{"the receiver's identifier", `- {match: {receiver: ["edifact:14:1", "edifact:ZZ:HUB"]}, to: globex}`, "", "globex"},
		{"a receiver nobody knows is named by a route", `- {match: {receiver: "edifact:ZZ:NOBODY"}, to: initech}`, "edifact/orders-for-nobody.edi", "initech"},
		{"a receiver nobody knows and no route names", `- {match: {to: [hub, globex]}, to: erp}`, "edifact/orders-for-nobody.edi", "NO_ROUTE"},
		{"to is found by the identifier", `- {match: {to: globex}, to: globex}`, "edifact/orders-for-a-partner.edi", "globex"},
		{"a document type", `- {match: {document: "edifact:INVOIC"}, to: globex}
  - {match: {document: "edifact:ORDERS"}, to: erp}`, "", "erp"},
		{"all documents of a standard", `- {match: {document: "x12:*"}, to: globex}
  - {match: {document: "edifact:*"}, to: erp}`, "", "erp"},
		{"an X12 set", `- {match: {document: "edifact:*"}, to: globex}
  - {match: {document: "x12:850"}, to: erp}`, "x12/850-one.x12", "erp"},
		{"no route at all", `[]`, "", "NO_ROUTE"},
		{"opaque by its name", `- {match: {document: opaque, from: acme}, to: erp, envelope: none}`, "opaque/drawing.bin", "erp"},
		{"opaque is no EDIFACT", `- {match: {document: "edifact:*"}, to: erp}`, "opaque/drawing.bin", "NO_ROUTE"},
		{"a draft is sent nothing", `- {match: {}, to: someday}`, "", "PARTNER_NOT_ACTIVE"},
		{"what goes to a suspended partner waits at the sender", `- {match: {}, to: paused}`, "", "paused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := edifactTo("HUB:ZZ")
			if c.file != "" {
				body = fixture(t, c.file)
			}
			d := put(t, registry(t, "", "  "+c.routes), body)
			out := d.one(0)
			if out.Verdict == pipeline.Dead {
				if out.Code != c.to || !strings.Contains(out.Detail, "replay") || out.Partner != "acme" || len(out.Write.Deliveries)+len(out.Emit) != 0 {
					t.Errorf("%+v, want %s", out, c.to)
				}
				return
			}
			if len(out.Write.Deliveries) != 1 || out.Write.Deliveries[0].Delivery.Partner != c.to {
				t.Fatalf("%s %s %s, want %s", out.Verdict, out.Code, out.Detail, c.to)
			}
			if len(out.Emit) != 1 || out.Emit[0].Topic != out.Write.Deliveries[0].Delivery.Connection || out.Write.SaveMessages[0].State != store.StateRouted {
				t.Errorf("emissions %+v, messages %+v", out.Emit, out.Write.SaveMessages)
			}
		})
	}
}

// TestConnectionGone: the records may lose what a route needs after they were read.
func TestConnectionGone(t *testing.T) {
	t.Parallel()
	_, err := partner.Parse([]byte(strings.Replace(fmt.Sprintf(records, "", "  - {match: {}, to: someday}"), "{id: someday, connections: [globex-http], ", "{id: someday, ", 1)), t.TempDir(), partner.LoadOptions{Now: now})
	if err == nil || !strings.Contains(err.Error(), "has no connection to send by") {
		t.Errorf("a route to a partner without a connection: %v", err)
	}
}

// TestWhoItIsFrom: towards an internal endpoint sender and recipient stay those of the original,
// towards a partner they are ours and the partner's, and between partners the envelope is theirs.
func TestWhoItIsFrom(t *testing.T) {
	t.Parallel()
	const all = "  - {match: {}, to: "
	for _, c := range []struct {
		name, agreements, routes string
		body                     []byte
		header                   string // what UNB or ISA must hold
		envelope, own            string
	}{
		{"internal keeps both", "", all + "erp}", edifactTo("HUB:ZZ"), "+ACME:ZZ+HUB:ZZ+", "new", "hub"},
		{"a partner gets ours and its own", "", all + "globex}", edifactTo("HUB:ZZ"), "+HUB:ZZ+GLOBEX:ZZ+", "new", "hub"},
		{"over AS2 the connection's own identity speaks", "", all + "initech}", edifactTo("HUB:ZZ"), "+BRANCH:ZZ+INITECH:ZZ+", "new", "branch"},
		{"X12 likewise", "", all + "initech}", fixture(t, "x12/850-one.x12"), "*ZZ*BRANCH         *01*INITECH        *", "new", "branch"},
		{"the receiver's identifier that was named is kept", "agreements: [{match: {}, role: endpoint}]", all + "globex}", edifactTo("5412345000037:14"), "+HUB:ZZ+5412345000037:14+", "new", "hub"},
		{"between partners the envelope is theirs", "", all + "globex}", fixture(t, "edifact/orders-for-a-partner.edi"), "+ACME:ZZ+GLOBEX:ZZ+261130:0915+ACME4719'", "keep", "hub"},
		{"an agreement makes us the endpoint", "agreements: [{match: {}, role: endpoint}]", all + "globex}", fixture(t, "edifact/orders-for-a-partner.edi"), "+HUB:ZZ+GLOBEX:ZZ+261201:0830+1'", "new", "hub"},
		{"an agreement makes us transparent", "agreements: [{match: {}, role: transparent}]", all + "globex}", edifactTo("GLOBEX:ZZ"), "+ACME:ZZ+GLOBEX:ZZ+", "keep", "hub"},
		{"a third party is no recipient to be transparent to", "", all + "initech}", fixture(t, "edifact/orders-for-a-partner.edi"), "+BRANCH:ZZ+INITECH:ZZ+", "new", "branch"},
		{"keep one message", "", all + "erp, envelope: keep}", fixture(t, "edifact/orders-one.edi"), "+ACME4712'", "keep", "hub"},
		{"none is no choice for EDIFACT", "", all + "erp, envelope: none}", edifactTo("HUB:ZZ"), "UNB+UNOC:3+ACME:ZZ+HUB:ZZ+", "new", "hub"},
		{"opaque has none", "", "  - {match: {document: opaque}, to: erp, envelope: none}", fixture(t, "opaque/price-list.csv"), "article;price", "none", "hub"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			del, b := put(t, registry(t, c.agreements, c.routes), c.body).delivered()
			first, _, _ := bytes.Cut(b, []byte("UNH"))
			if !strings.Contains(string(first), c.header) || del.Envelope != c.envelope || del.Own != c.own {
				t.Errorf("%s for %s: %q", del.Envelope, del.Own, first)
			}
			if c.envelope != "new" && !bytes.Equal(b, c.body) {
				t.Errorf("the original did not go along: %q", b)
			}
		})
	}
}

// TestWriting has each setting of a route change what it says and nothing else.
func TestWriting(t *testing.T) {
	t.Parallel()
	umlauts := fixture(t, "edifact/orders-with-umlauts.edi")
	sets := func(b []byte) string {
		s := string(b)
		return s[strings.Index(s, "ST*"):strings.Index(s, "GE*")]
	}
	orders, bars := fixture(t, "x12/850-one.x12"), fixture(t, "x12/850-own-delimiters.x12")
	v4 := []byte("UNB+UNOC:4+ACME:ZZ+HUB:ZZ+20261130:0915+1'UNH+1+ORDERS:D:96A:UN'BGM+220+PO?*1+9'UNT+3+1'UNZ+1+1'")
	for _, c := range []struct {
		name, settings string
		body           []byte
		want           []string // in the file that leaves
		not            []string
	}{
		{"nothing set: all is the original's", "", fixture(t, "edifact/orders-own-delimiters.edi"), []string{"UNA;|.? ~UNB|UNOC;3|ACME;ZZ|HUB;ZZ|261201;0830|1~UNH|1|ORDERS;D;96A;UN~", "~UNZ|1|1~"}, nil},
		{"nothing set: no UNA where there was none", "", edifactTo("HUB:ZZ"), []string{"UNB+UNOC:3+"}, []string{"UNA"}},
		{"nothing set: the test indicator goes along", "", fixture(t, "edifact/orders-marked-as-test.edi"), []string{"+1++++++1'UNH"}, nil},
		{"una: true", "edifact: {una: true}", edifactTo("HUB:ZZ"), []string{"UNA:+.? 'UNB+"}, nil},
		{"una: false", "edifact: {una: false}", fixture(t, "edifact/orders-one.edi"), []string{"UNB+UNOC:3"}, []string{"UNA"}},
		{"una: false where the delimiters need one", "edifact: {una: false}", fixture(t, "edifact/orders-own-delimiters.edi"), []string{"UNA;|.? ~UNB|"}, nil},
		{"line_break: lf", "edifact: {line_break: lf}", edifactTo("HUB:ZZ"), []string{"+1'\nUNH+1+", "UNT+3+1'UNZ+1+1'\n"}, []string{"\r"}},
		{"line_break: crlf", "edifact: {line_break: crlf, una: true}", edifactTo("HUB:ZZ"), []string{"'\r\nUNB+UNOC", "+1'\r\nUNH+1+", "UNZ+1+1'\r\n"}, nil},
		{"line_break: none", "edifact: {line_break: none}", edifactTo("HUB:ZZ"), []string{"'UNH+1+"}, []string{"\n", "\r"}},
		{"syntax: the same letter", `edifact: {syntax: "UNOC:3"}`, umlauts, []string{"UNB+UNOC:3+", "Caf\xe9"}, nil},
		{"syntax: ASCII text goes anywhere", `edifact: {syntax: "UNOD:3"}`, edifactTo("HUB:ZZ"), []string{"UNB+UNOD:3+"}, nil},
		{"syntax: capitals go into UNOA", `edifact: {syntax: "UNOA:2"}`, edifactTo("HUB:ZZ"), []string{"UNB+UNOA:2+"}, nil},
		{"syntax: UNOA with an accent is Latin 1", `edifact: {syntax: "UNOC:3"}`, bytes.Replace(umlauts, []byte("UNOC"), []byte("UNOA"), 1), []string{"UNB+UNOC:3+", "Caf\xe9"}, nil},
		{"syntax: version 3 of what is released only", `edifact: {syntax: "UNOC:3"}`, v4, []string{"UNB+UNOC:3+", ":ZZ+261201:0830+", "PO?*1"}, []string{"UNA"}},
		{"syntax: version 4 of version 3", `edifact: {syntax: "UNOC:4"}`, edifactTo("HUB:ZZ"), []string{"UNB+UNOC:4+", "+20261201:0830+"}, nil},
		{"control.start", "control: {start: 500}", edifactTo("HUB:ZZ"), []string{"+500'UNH", "UNZ+1+500'"}, nil},
		{"control.start in X12", "control: {start: 500}", orders, []string{"*000000500*", "GS*PO*ACME*HUB*20261201*0830*500*X*004010~", "GE*1*500~IEA*1*000000500~"}, nil},
		{"X12, nothing set", "", orders, []string{"*U*00401*000000001*0*P*>~GS*PO*", sets(orders)}, nil},
		{"X12, nothing set: the test indicator goes along", "", fixture(t, "x12/850-marked-as-test.x12"), []string{"*0*T*>~"}, nil},
		{"X12, nothing set: the original's delimiters", "", bars, []string{"ISA|00|", "|P|^\nGS|PO|", "\nIEA|1|000000001\n"}, []string{"*", "~"}},
		{"x12.version", `x12: {version: "00501"}`, orders, []string{"*U*00501*000000001*"}, nil},
		{"x12.version below 00402 where no repetition is used", `x12: {version: "00401"}`, fixture(t, "x12/850-repetition-00501.x12"), []string{"*U*00401*", "*X*005010~"}, []string{"^"}},
		{"x12.element and segment", `x12: {element: "*", segment: "~"}`, bars, []string{"ISA*00*", "*P*^~GS*PO*", sets([]byte(strings.NewReplacer("|", "*", "\n", "~").Replace(string(bars))))}, []string{"|", "\n"}},
		{"x12.component", `x12: {component: ":"}`, orders, []string{"*P*:~", sets(orders)}, []string{">"}},
		{"x12 delimiters that the original has already", `x12: {element: "*", component: ">", segment: "~"}`, orders, []string{sets(orders)}, nil},
		{"x12 delimiters exchanged", `x12: {element: ">", component: "*"}`, orders, []string{"ISA>00>", ">P>*~", strings.ReplaceAll(sets(orders), "*", ">")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			settings := c.settings
			if settings != "" {
				settings = ", " + settings
			}
			_, b := put(t, registry(t, "", "  - {match: {}, to: erp, envelope: new"+settings+"}"), c.body).delivered()
			for _, w := range c.want {
				if !strings.Contains(string(b), w) {
					t.Errorf("%q is not in %q", w, b)
				}
			}
			for _, w := range c.not {
				if strings.Contains(string(b), w) {
					t.Errorf("%q is in %q", w, b)
				}
			}
			again := put(t, registry(t, "", "  - {match: {}, to: erp}"), b)
			if len(again.ms) != 1 || edi.HasFatal(again.ic.Envelope.Findings) || edi.HasFatal(again.ms[0].Envelope.Findings) {
				t.Errorf("our own reader finds %v %v in %q", again.ic.Envelope.Findings, again.ms, b)
			}
		})
	}
}

// TestNotWritten: what the envelope that a route asks for cannot carry is a dead letter that says
// where and what to do, never a file that means something else.
func TestNotWritten(t *testing.T) {
	t.Parallel()
	orders := fixture(t, "x12/850-one.x12")
	v4 := []byte("UNB+UNOC:4+ACME:ZZ+HUB:ZZ+20261130:0915+1'UNH+1+ORDERS:D:96A:UN'BGM+220+PO1*PO2+9'UNT+3+1'UNZ+1+1'")
	bin := bytes.Replace(orders, []byte("CTT*1~"), []byte("BIN*3*a*b~CTT*1~"), 1)
	for _, c := range []struct {
		name, settings string
		body           []byte
		code           string
		detail         []string
	}{
		{"an accent into UNOA", `edifact: {syntax: "UNOA:3"}`, fixture(t, "edifact/orders-with-umlauts.edi"), "TEXT_NOT_CARRIED", []string{"message 1, byte ", "in UNOA"}},
		{"an accent into UNOD", `edifact: {syntax: "UNOD:3"}`, fixture(t, "edifact/orders-with-umlauts.edi"), "TEXT_NOT_CARRIED", []string{"0xFC", "UNOD", "UNOC"}},
		{"small letters into UNOA", `edifact: {syntax: "UNOA:3"}`, []byte("UNB+UNOB:1+ACME:ZZ+HUB:ZZ+261130:0915+1'UNH+1+ORDERS:D:96A:UN'BGM+220+po1+9'UNT+3+1'UNZ+1+1'"), "TEXT_NOT_CARRIED", []string{"byte 70", "0x70"}},
		{"a repetition into syntax 3", `edifact: {syntax: "UNOC:3"}`, v4, "TEXT_NOT_CARRIED", []string{"byte 75", "repetition"}},
		{"a multi-byte syntax", `edifact: {syntax: "UNOY:4"}`, edifactTo("HUB:ZZ"), "ENVELOPE_NOT_WRITTEN", []string{"more than one byte"}},
		{"a delimiter that the text holds", `x12: {element: "|"}`, fixture(t, "x12/850-with-a-bar-in-text.x12"), "TEXT_NOT_CARRIED", []string{`'|'`, "element"}},
		{"a delimiter that separates something else", `x12: {element: ">"}`, orders, "ENVELOPE_NOT_WRITTEN", []string{"given twice"}},
		{"a repetition into 00401", `x12: {version: "00401"}`, bytes.Replace(fixture(t, "x12/850-repetition-00501.x12"), []byte("PO-8004"), []byte("PO^8004"), 1), "TEXT_NOT_CARRIED", []string{"repetition", "00402"}},
		{"delimiters around binary data", `x12: {element: "|"}`, bin, "TEXT_NOT_CARRIED", []string{"BIN"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := put(t, registry(t, "", "  - {match: {}, to: erp, "+c.settings+"}"), c.body)
			for _, out := range []*pipeline.Outcome{d.one(0), func() *pipeline.Outcome { d.ic.Preserve = true; return d.together() }()} {
				if out.Verdict != pipeline.Dead || out.Code != c.code || !strings.Contains(out.Detail, "replay") {
					t.Fatalf("%s %s %q", out.Verdict, out.Code, out.Detail)
				}
				for _, w := range c.detail {
					if !strings.Contains(out.Detail, w) {
						t.Errorf("%q is not in %q", w, out.Detail)
					}
				}
			}
		})
	}
}

// TestStoreAway: a body that cannot be read now is tried again; it is nobody's fault.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	d := put(t, registry(t, "", `  - {match: {}, to: erp, edifact: {syntax: "UNOA:3"}}`), edifactTo("HUB:ZZ"))
	task := d.task(store.KindMessage, d.ms[0])
	task.Open = func(store.Ref) (store.BodySource, error) { return nil, errors.New("away") }
	if out := route.New().Handle(context.Background(), task); out.Verdict != pipeline.Retry || out.Code != "STORE_READ" {
		t.Errorf("%s %s", out.Verdict, out.Code)
	}
	d.ic.Preserve = true
	task = d.task(store.KindInterchange, nil)
	task.MessagesOf = func(edi.ID, int, int) ([]*store.Message, error) { return nil, errors.New("away") }
	if out := route.New().Handle(context.Background(), task); out.Verdict != pipeline.Retry {
		t.Errorf("%s %s", out.Verdict, out.Code)
	}
}
