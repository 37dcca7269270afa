package parse_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/pipeline/parse"
	"github.com/edihub/edihub/internal/store"
)

// desk plays the runner for a pure stage: it applies outcomes to maps and follows splits.
type desk struct {
	t        *testing.T
	reg      *partner.Registry
	body     []byte
	ics      map[edi.ID]*store.Interchange
	ms       map[edi.ID]*store.Message
	keys     map[[32]byte]store.NaturalKey
	emitted  []string // references of messages that went on, in order
	born     []*store.Work
	steps    []*pipeline.Outcome
	staged   int // largest number of emissions seen while an interchange was staged
	opens    int
	chunk    int
	existing *store.Interchange
}

const records = `
own:
  - {id: hub, identifiers: ["edifact:ZZ:HUB", "x12:ZZ:HUB", "peppol:0088:HUB"]}
connections:
  - {id: acme-http, http: {url: "http://127.0.0.1:1/"}}
  - {id: erp-http, http: {url: "http://127.0.0.1:1/"}}
partners:
  - {id: acme, connections: [acme-http], identifiers: ["edifact:ZZ:ACME", "x12:ZZ:ACME", "peppol:0088:ACME"]}
  - {id: draft, connections: [%s], status: draft, identifiers: ["edifact:ZZ:DRAFT"]}
  - {id: erp, connections: [erp-http]}
%s
routes:
  - {match: {document: ["edifact:*", "x12:*", "ubl:*"]}, to: erp}
%s`

func newDesk(t *testing.T, agreements, routes string) *desk {
	t.Helper()
	reg, err := partner.Parse([]byte(fmt.Sprintf(records, "erp-http", agreements, routes)), t.TempDir(), partner.LoadOptions{Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return &desk{t: t, reg: reg, ics: map[edi.ID]*store.Interchange{}, ms: map[edi.ID]*store.Message{}, keys: map[[32]byte]store.NaturalKey{}}
}

// records puts the draft partner on another connection.
func (d *desk) records(t *testing.T, connection string) {
	t.Helper()
	reg, err := partner.Parse([]byte(fmt.Sprintf(records, connection, "", "")), t.TempDir(), partner.LoadOptions{Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.reg.Routes()) > 1 {
		reg, err = partner.Parse([]byte(fmt.Sprintf(records, connection, "", "  - {match: {document: opaque, from: acme}, to: erp, envelope: none}\n")), t.TempDir(), partner.LoadOptions{Now: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
	}
	d.reg = reg
}

type memory struct {
	*bytes.Reader
	d *desk
}

func (m memory) Close() error {
	m.d.opens--
	return nil
}

func (d *desk) task(step int64) *pipeline.Task {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tr := &store.Transmission{ID: edi.NewID(at), Transport: "as2", Connection: "acme-http", Own: "hub", Content: sha256.Sum256(d.body), At: at}
	copy(tr.ID[6:], bytes.Repeat([]byte{1}, 10)) // the same file has the same id, also when it is resumed
	return &pipeline.Task{
		Stage: store.Parser, Kind: store.KindTransmission, ID: tr.ID, Transmission: tr, Registry: d.reg, Now: at, Step: step, Interchange: d.existing,
		Open: func(store.Ref) (store.BodySource, error) {
			d.opens++
			return memory{bytes.NewReader(d.body), d}, nil
		},
		Stored: func(id edi.ID) (*store.Interchange, error) {
			if ic := d.ics[id]; ic != nil {
				c := *ic
				return &c, nil
			}
			return nil, store.ErrNotFound
		},
		MessagesOf: func(ic edi.ID, after, n int) ([]*store.Message, error) {
			var out []*store.Message
			for _, m := range d.ms {
				if m.Interchange == ic && m.Envelope.Position > after {
					c := *m
					out = append(out, &c)
				}
			}
			slices.SortFunc(out, func(a, b *store.Message) int { return a.Envelope.Position - b.Envelope.Position })
			return out[:min(n, len(out))], nil
		},
	}
}

// run parses a file from the given step on, at most steps of them (0: all).
func (d *desk) run(file string, from int64, steps int) *desk {
	d.t.Helper()
	d.body = []byte(file)
	stage := parse.New(parse.Options{ChunkMessages: d.chunk})
	out := stage.Handle(context.Background(), d.task(from))
	for n := 1; ; n++ {
		d.steps = append(d.steps, out)
		done := d.apply(out)
		if done.More == nil || (steps > 0 && n >= steps) {
			break
		}
		out = done.More(context.Background())
	}
	if out.Release != nil {
		out.Release()
	}
	if d.opens != 0 {
		d.t.Errorf("%d bodies stay open", d.opens)
	}
	return d
}

func (d *desk) apply(o *pipeline.Outcome) *pipeline.Outcome {
	d.t.Helper()
	for _, c := range o.Claims {
		if held, ok := d.keys[c.Key.Hash]; ok && held.Object != c.Key.Object {
			alt := c.Other
			if held.Content == c.Key.Content {
				alt = c.Same
			}
			return d.apply(alt)
		}
		d.keys[c.Key.Hash] = c.Key
	}
	for _, ic := range o.Write.Interchanges {
		if d.ics[ic.ID] == nil {
			c := *ic
			d.ics[ic.ID] = &c
		}
	}
	for _, ic := range o.Write.SaveInterchanges {
		c := *ic
		d.ics[ic.ID] = &c
	}
	for _, m := range o.Write.Messages {
		if d.ms[m.ID] == nil {
			c := *m
			d.ms[m.ID] = &c
		}
	}
	for _, m := range o.Write.SaveMessages {
		c := *m
		d.ms[m.ID] = &c
	}
	d.born = append(d.born, o.Write.Born...)
	for _, e := range o.Emit {
		d.emitted = append(d.emitted, d.ms[e.ID].Envelope.Ref)
		if ic := d.ics[d.ms[e.ID].Interchange]; ic.State == store.StateStaged {
			d.staged++
		}
	}
	return o
}

func (d *desk) only() *store.Interchange {
	d.t.Helper()
	if len(d.ics) != 1 {
		d.t.Fatalf("%d interchanges, want one", len(d.ics))
	}
	for _, ic := range d.ics {
		return ic
	}
	return nil
}

func (d *desk) states() string {
	var out []string
	for _, m := range d.ms {
		out = append(out, m.Envelope.Ref+" "+m.State)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func orders(ref string, count int) string {
	return fmt.Sprintf("UNH+%s+ORDERS:D:96A:UN'BGM+220+PO%s+9'DTM+137:20261130:102'UNS+S'UNT+%d+%s'", ref, ref, count, ref)
}

func unb(sender, ref, messages string, count int) string {
	return fmt.Sprintf("UNB+UNOC:3+%s:ZZ+HUB:ZZ+261130:1200+%s'%sUNZ+%d+%s'", sender, ref, messages, count, ref)
}

func many(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		b.WriteString(orders(fmt.Sprint(i), 5))
	}
	return b.String()
}

func set850(ref string, count int) string {
	return fmt.Sprintf("ST*850*%s~BEG*00*SA*PO%s**20261130~CTT*0~SE*%d*%s~", ref, ref, count, ref)
}

func isa(sets string, inGroup, groups int) string {
	return fmt.Sprintf("ISA*00*          *00*          *ZZ*ACME           *ZZ*HUB            *261130*1200*U*00401*000000007*0*P*>~GS*PO*ACME*HUB*20261130*1200*7*X*004010~%sGE*%d*7~IEA*%d*000000007~", sets, inGroup, groups)
}

func invoice(extra string) string {
	return `<?xml version="1.0"?><Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2" xmlns:cac="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2" xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"><cbc:ID>INV1</cbc:ID><cac:AccountingSupplierParty><cac:Party><cbc:EndpointID schemeID="0088">ACME</cbc:EndpointID></cac:Party></cac:AccountingSupplierParty><cac:AccountingCustomerParty><cac:Party><cbc:EndpointID schemeID="0088">HUB</cbc:EndpointID></cac:Party></cac:AccountingCustomerParty>` + extra + `</Invoice>`
}

func TestParse(t *testing.T) {
	t.Parallel()
	opaque := "  - {match: {document: opaque, from: acme}, to: erp, envelope: none}\n"
	for _, c := range []struct {
		name, agreements, routes, file string
		state, code, messages          string
		emitted                        string
		born                           string
		draft                          bool // a second partner, who is a draft, shares the connection
	}{
		{name: "a good order goes on", file: unb("ACME", "R1", orders("1", 5), 1), state: "split", messages: "1 parsed", emitted: "1"},
		{name: "a wrong UNZ count releases nothing", file: unb("ACME", "R1", orders("1", 5)+orders("2", 5), 3), state: "rejected", code: "ENVELOPE_INVALID", messages: "1 rejected, 2 rejected"},
		{name: "trailer_errors: warn lets it through", agreements: "agreements: [{match: {}, validate: {trailer_errors: warn}}]", file: unb("ACME", "R1", orders("1", 5), 3), state: "split", messages: "1 parsed", emitted: "1"},
		{name: "no UNZ releases nothing", file: strings.TrimSuffix(unb("ACME", "R1", orders("1", 5), 1), "UNZ+1+R1'"), state: "rejected", code: "ENVELOPE_INVALID", messages: "1 rejected"},
		{name: "a wrong UNT count hurts its message only", file: unb("ACME", "R1", orders("1", 5)+orders("2", 9)+orders("3", 5), 3), state: "split", messages: "1 parsed, 2 rejected, 3 parsed", emitted: "1 3"},
		{name: "on_reject: interchange takes the others along", agreements: "agreements: [{match: {}, on_reject: interchange}]", file: unb("ACME", "R1", orders("1", 5)+orders("2", 9), 2), state: "rejected", code: "INTERCHANGE_INVALID", messages: "1 rejected, 2 rejected"},
		{name: "every message broken is a rejected interchange", file: unb("ACME", "R1", orders("1", 9), 1), state: "rejected", code: "MESSAGE_INVALID", messages: "1 rejected"},
		{name: "another's UNB is dead beside the lane", file: unb("MALLORY", "R1", orders("1", 5), 1), state: "dead", code: "SENDER_NOT_ON_CONNECTION", born: "SENDER_NOT_ON_CONNECTION"},
		{name: "a draft partner waits", draft: true, file: unb("DRAFT", "R1", orders("1", 5), 1), state: "dead", code: "PARTNER_NOT_ACTIVE", born: "PARTNER_NOT_ACTIVE"},
		{name: "an unknown receiver is the router's matter", file: strings.Replace(unb("ACME", "R1", orders("1", 5), 1), "HUB:ZZ", "NOBODY:ZZ", 1), state: "split", messages: "1 parsed", emitted: "1"},
		{name: "X12 goes on", file: isa(set850("0001", 4)+set850("0002", 4), 2, 1), state: "split", messages: "0001 parsed, 0002 parsed", emitted: "0001 0002"},
		{name: "a wrong GE count rejects its group", file: isa(set850("0001", 4), 5, 1), state: "rejected", code: "MESSAGE_INVALID", messages: "0001 rejected"},
		{name: "a wrong IEA count rejects the interchange", file: isa(set850("0001", 4), 1, 5), state: "rejected", code: "ENVELOPE_INVALID", messages: "0001 rejected"},
		{name: "on_reject: group", agreements: "agreements: [{match: {}, on_reject: group}]", file: isa(set850("0001", 4)+set850("0002", 9), 2, 1), state: "rejected", code: "MESSAGE_INVALID", messages: "0001 rejected, 0002 rejected"},
		{name: "UBL goes on", file: invoice(""), state: "split", messages: " parsed", emitted: ""},
		{name: "UBL cut off is rejected", file: strings.TrimSuffix(invoice(""), "</Invoice>"), state: "rejected", code: "MESSAGE_INVALID", messages: " rejected"},
		{name: "UBL with an entity is rejected", file: strings.Replace(invoice("<cbc:Note>&x;</cbc:Note>"), `"1.0"?>`, `"1.0"?><!DOCTYPE x [<!ENTITY x "y">]>`, 1), state: "dead", code: "UNKNOWN_CONTENT", born: "UNKNOWN_CONTENT"},
		{name: "UBL of 10,000 levels is rejected", file: invoice(strings.Repeat("<cac:Item>", 10000) + strings.Repeat("</cac:Item>", 10000)), state: "rejected", code: "MESSAGE_INVALID", messages: " rejected"},
		{name: "garbage is dead", file: "garbage \x00\xff", state: "dead", code: "UNKNOWN_CONTENT", born: "UNKNOWN_CONTENT"},
		{name: "garbage of a shared connection is dead", draft: true, file: "garbage", state: "dead", code: "UNKNOWN_CONTENT", born: "UNKNOWN_CONTENT"},
		{name: "opaque of a shared connection is nobody's", draft: true, routes: opaque, file: "%PDF-1.7 \x00", state: "dead", code: "SENDER_NOT_ON_CONNECTION", born: "SENDER_NOT_ON_CONNECTION"},
		{name: "opaque where a route names it", routes: opaque, file: "%PDF-1.7 \x00", state: "split", messages: " parsed", emitted: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, c.agreements, c.routes)
			if c.draft {
				d.records(t, "acme-http")
			}
			d.run(c.file, 0, 0)
			ic := d.only()
			if ic.State != c.state || ic.Code != c.code {
				t.Errorf("interchange is %s %q, want %s %q; findings %v", ic.State, ic.Code, c.state, c.code, ic.Findings)
			}
			if got := d.states(); got != c.messages {
				t.Errorf("messages %q, want %q", got, c.messages)
			}
			if got := strings.Join(d.emitted, " "); got != c.emitted {
				t.Errorf("went on: %q, want %q", got, c.emitted)
			}
			var born []string
			for _, w := range d.born {
				born = append(born, w.Code)
			}
			if got := strings.Join(born, " "); got != c.born {
				t.Errorf("dead letters %q, want %q", got, c.born)
			}
		})
	}
}

func TestSeveralInterchangesOfAFileAreStepsOfTheirOwn(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "", "").run(unb("ACME", "R1", orders("1", 5), 1)+"\r\n"+unb("MALLORY", "R2", orders("2", 5), 1)+unb("ACME", "R3", orders("3", 5), 1), 0, 0)
	if len(d.ics) != 3 || len(d.steps) != 3 {
		t.Fatalf("%d interchanges in %d steps", len(d.ics), len(d.steps))
	}
	if got := strings.Join(d.emitted, " "); got != "1 3" {
		t.Fatalf("went on: %q", got)
	}
	if len(d.born) != 1 {
		t.Fatalf("%d dead letters, want that of MALLORY", len(d.born))
	}
}

func TestLargeInterchangeIsStagedUntilItsTrailer(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "", "")
	d.chunk = 3
	d.run(unb("ACME", "R1", many(10), 10), 0, 0)
	ic := d.only()
	if ic.State != store.StateSplit || ic.Open != 10 || ic.Total != 10 {
		t.Fatalf("interchange %s open %d of %d", ic.State, ic.Open, ic.Total)
	}
	if d.staged != 0 {
		t.Fatalf("%d messages went on before the trailer was checked", d.staged)
	}
	if got := strings.Join(d.emitted, " "); got != "1 2 3 4 5 6 7 8 9 10" {
		t.Fatalf("went on: %q", got)
	}
	bad := newDesk(t, "", "")
	bad.chunk = 3
	bad.run(unb("ACME", "R1", many(10), 11), 0, 0)
	if ic := bad.only(); ic.State != store.StateRejected || len(bad.emitted) != 0 {
		t.Fatalf("a wrong count: %s, %d went on", ic.State, len(bad.emitted))
	}
	for _, m := range bad.ms {
		if m.State != store.StateRejected {
			t.Fatalf("message %s is %s", m.Envelope.Ref, m.State)
		}
	}
}

// Every step may be the last before the process dies: what is resumed there ends the same.
func TestSplitResumesAtEachStep(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"good":        unb("ACME", "R1", many(8), 8) + unb("ACME", "R2", many(2), 2),
		"wrong count": unb("ACME", "R1", many(8), 9) + unb("ACME", "R2", many(2), 2),
		"one broken":  unb("ACME", "R1", many(4)+orders("5", 9)+orders("6", 5), 6),
	}
	for name, file := range files {
		whole := newDesk(t, "", "")
		whole.chunk = 3
		whole.run(file, 0, 0)
		for stop := 1; stop < len(whole.steps); stop++ {
			d := newDesk(t, "", "")
			d.chunk = 3
			d.run(file, 0, stop)
			d.run(file, int64(stop), 0)
			if d.states() != whole.states() || !slices.Equal(d.emitted, whole.emitted) {
				t.Errorf("%s resumed at step %d of %d: %q %v, want %q %v", name, stop, len(whole.steps), d.states(), d.emitted, whole.states(), whole.emitted)
			}
		}
	}
}

// TestStepsHaveContextsOfTheirOwn ends the context of each step before the next one begins, as the
// runner does; the file is longer than what a splitter reads at once.
func TestStepsHaveContextsOfTheirOwn(t *testing.T) {
	d := newDesk(t, "", "")
	d.chunk = 1000
	d.body = []byte(unb("ACME", "R1", many(6001), 6001))
	ctx, cancel := context.WithCancel(context.Background())
	out := parse.New(parse.Options{ChunkMessages: d.chunk}).Handle(ctx, d.task(0))
	steps := 1
	for ; ; steps++ {
		if out.Verdict != pipeline.Done {
			t.Fatalf("step %d: %v %s %s", steps, out.Verdict, out.Code, out.Detail)
		}
		d.apply(out)
		cancel()
		if out.More == nil {
			break
		}
		ctx, cancel = context.WithCancel(context.Background())
		out = out.More(ctx)
	}
	if steps != 15 || len(d.emitted) != 6001 { // 7 chunks, the decision, 7 pages
		t.Errorf("%d steps, %d messages released", steps, len(d.emitted))
	}
}

// TestNothingIsLeftWhenAllStepsHaveCommitted: the process ended, or reading ahead failed, between
// the commit of the last step and the end of the work row.
func TestNothingIsLeftWhenAllStepsHaveCommitted(t *testing.T) {
	for _, file := range []string{unb("ACME", "R1", many(5), 5), unb("ACME", "R1", many(2), 2) + unb("ACME", "R2", many(1), 1), unb("ACME", "R1", many(1), 1)} {
		d := newDesk(t, "", "")
		d.chunk = 2
		d.run(file, 0, 0)
		all, emitted := int64(len(d.steps)), len(d.emitted)
		d.run(file, all, 0)
		last := d.steps[len(d.steps)-1]
		if last.Verdict != pipeline.Done || last.More != nil || len(d.steps) != int(all)+1 || len(d.emitted) != emitted || len(last.Write.Messages)+len(last.Write.SaveMessages)+len(last.Claims) != 0 {
			t.Errorf("after %d steps: %d steps more, %d of %d messages released again", all, len(d.steps)-int(all), len(d.emitted)-emitted, emitted)
		}
	}
}

func TestDuplicateInterchanges(t *testing.T) {
	t.Parallel()
	first := unb("ACME", "R1", many(7), 7)
	other := strings.Replace(first, "PO3", "POX", 1)
	for _, chunk := range []int{3, 100} {
		for name, c := range map[string]struct {
			agreements, file, state, code string
		}{
			"same content":              {file: first, state: store.StateDuplicate, code: "DUPLICATE"},
			"other content":             {file: other, state: store.StateRejected, code: "DUPLICATE_CONTROL_REFERENCE_DIFFERENT_CONTENT"},
			"other content, held":       {agreements: "agreements: [{match: {}, duplicates: {interchange: {other: hold}}}]", file: other, state: store.StateDead, code: "DUPLICATE_CONTROL_REFERENCE_DIFFERENT_CONTENT"},
			"same content, not checked": {agreements: "agreements: [{match: {}, duplicates: {interchange: {same: off, other: off}}}]", file: first, state: store.StateSplit},
		} {
			t.Run(fmt.Sprintf("%s, chunks of %d", name, chunk), func(t *testing.T) {
				t.Parallel()
				d := newDesk(t, c.agreements, "")
				d.chunk = chunk
				d.run(first, 0, 0)
				keys := d.keys
				again := newDesk(t, c.agreements, "")
				again.chunk = chunk
				for h, k := range keys {
					k.Object = edi.ID{9} // of another transmission
					again.keys[h] = k
				}
				again.run(c.file, 0, 0)
				ic := again.only()
				if ic.State != c.state || ic.Code != c.code {
					t.Fatalf("%s %q, want %s %q", ic.State, ic.Code, c.state, c.code)
				}
				if on := len(again.emitted) > 0; on != (c.state == store.StateSplit) {
					t.Fatalf("%d messages went on", len(again.emitted))
				}
				if c.state == store.StateDead && len(again.born) != 1 {
					t.Fatal("what is held has no dead letter")
				}
			})
		}
	}
}

func TestReplayOfADeadInterchangeSplitsItsRange(t *testing.T) {
	t.Parallel()
	file := unb("ACME", "R1", orders("1", 5), 1) + unb("NEWCO", "R2", orders("2", 5), 1)
	d := newDesk(t, "", "").run(file, 0, 0)
	var dead *store.Interchange
	for _, ic := range d.ics {
		if ic.State == store.StateDead {
			dead = ic
		}
	}
	if dead == nil {
		t.Fatal("no dead interchange")
	}
	mended, err := partner.Parse([]byte(strings.Replace(fmt.Sprintf(records, "erp-http", "", ""), `"edifact:ZZ:ACME"`, `"edifact:ZZ:ACME", "edifact:ZZ:NEWCO"`, 1)), t.TempDir(), partner.LoadOptions{Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	d.reg, d.existing, d.emitted = mended, dead, nil
	d.run(file, 0, 0)
	if got := strings.Join(d.emitted, " "); got != "2" {
		t.Fatalf("went on: %q, want the message of NEWCO only", got)
	}
	m := d.ms[dead.ID.Derive("message", 1)]
	if got := file[m.Envelope.Offset : m.Envelope.Offset+m.Envelope.Length]; got != orders("2", 5) {
		t.Fatalf("its range is %q", got)
	}
}
