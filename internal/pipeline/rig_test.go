package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/broker/local"
	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline/send"
	"github.com/edihub/edihub/internal/store"
	"github.com/edihub/edihub/internal/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests; what works needs a small part of it.
var patience = patienceFrom(os.Getenv("EDIHUB_TEST_PATIENCE"))

func patienceFrom(v string) time.Duration {
	if d, err := time.ParseDuration(v); err == nil {
		return d // a proof that a test fails need not wait for long
	}
	return 60 * time.Second
}

// rig is a pipeline over a real store with stages and an endpoint that follow a script. The
// control number that the router's delivery gets shows the order in which effects committed.
type rig struct {
	t    *testing.T
	dir  string
	opt  Options
	st   store.Store
	p    *Pipeline
	reg  *partner.Holder
	lane store.LaneSpec // ordering and policy of the message lanes

	mu     sync.Mutex
	change *sync.Cond
	script map[string]string // "stage:message" → one letter a try; the last repeats
	tries  map[string]int
	sent   []string // messages in the order in which the partner first saw them
	ids    map[string][]string
	sends  map[string]int
	answer func(name string, try int) send.Result
	seen   []string // stage runs, in order of their end
	block  map[string]chan struct{}
	keyOf  func(name string) string
	n      int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{
		t: t, dir: t.TempDir(), reg: partner.NewHolder(testRegistry(t, "block")),
		lane:   store.LaneSpec{Ordered: true, Policy: string(partner.Block)},
		script: map[string]string{}, tries: map[string]int{}, ids: map[string][]string{}, sends: map[string]int{}, block: map[string]chan struct{}{},
		keyOf: func(string) string { return "" },
	}
	r.change = sync.NewCond(&r.mu)
	r.answer = func(string, int) send.Result { return send.Result{Status: send.Delivered, Proof: "mdn"} }
	r.opt = Options{
		Registry: r.reg, Clock: clock.System{}, Log: zap.NewNop(), Observer: rigObserver{r},
		Stages: map[store.Stage]Stage{
			store.Parser: StageFunc(r.parse), store.Validator: StageFunc(r.validate), store.Router: StageFunc(r.route),
		},
		Endpoint: func(*partner.Connection) send.Endpoint { return rigEndpoint{r} },
		Dir:      r.dir, RetryFirst: time.Millisecond, RetryMax: 2 * time.Millisecond, Sweep: 5 * time.Millisecond, Lease: 500 * time.Millisecond,
		Stall: 20 * time.Millisecond,
	}
	t.Cleanup(func() { r.stop() })
	return r
}

// testRegistry knows one identity, an endpoint "out", and the partners a, b and c, each behind a
// connection of its own name.
func testRegistry(t *testing.T, policy string) *partner.Registry {
	t.Helper()
	reg, err := partner.Parse([]byte(`
own:
  - {id: hub, identifiers: ["edifact:ZZ:HUB"]}
connections:
  - {id: out, http: {url: "http://127.0.0.1:1/"}, in_flight: 64, retry: {first: 1ms, max: 2ms}}
  - {id: a, http: {url: "http://127.0.0.1:1/"}}
  - {id: b, http: {url: "http://127.0.0.1:1/"}}
  - {id: c, http: {url: "http://127.0.0.1:1/"}}
partners:
  - {id: out, connections: [out], identifiers: ["edifact:ZZ:OUT"]}
  - {id: a, connections: [a], identifiers: ["edifact:ZZ:A"]}
  - {id: b, connections: [b], identifiers: ["edifact:ZZ:B"]}
  - {id: c, connections: [c], identifiers: ["edifact:ZZ:C"]}
agreements:
  - {match: {}, on_poison: `+policy+`}
`), t.TempDir(), partner.LoadOptions{Now: time.Now()})
	if err != nil {
		t.Fatalf("registry: %v", err)
	}
	return reg.WithVersion(1)
}

type rigObserver struct{ r *rig }

func (o rigObserver) ping() {
	o.r.mu.Lock()
	o.r.change.Broadcast()
	o.r.mu.Unlock()
}
func (o rigObserver) Handled(store.Stage, Verdict, time.Duration) { o.ping() }
func (o rigObserver) Duplicate(store.Scope)                       { o.ping() }
func (o rigObserver) Delivery(string, string)                     { o.ping() }
func (o rigObserver) Dead(store.Stage, string)                    { o.ping() }

// start opens the store and runs a pipeline over it.
func (r *rig) start() {
	r.t.Helper()
	r.open()
	if err := r.p.Start(context.Background()); err != nil {
		r.t.Fatalf("start: %v", err)
	}
}

// open makes the pipeline without running it.
func (r *rig) open() {
	r.t.Helper()
	st, err := sqlite.Open(context.Background(), sqlite.Options{Dir: r.dir, Clock: r.opt.Clock, MinFree: -1})
	if err != nil {
		r.t.Fatalf("open store: %v", err)
	}
	r.st = st
	r.opt.Store, r.opt.Broker = st, local.New(clock.System{})
	r.p = New(r.opt)
}

// stop ends the pipeline gracefully.
func (r *rig) stop() {
	r.t.Helper()
	if r.p == nil {
		return
	}
	r.unblock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.p.Stop(ctx); err != nil {
		r.t.Errorf("stop: %v", err)
	}
	r.closeAll()
}

func (r *rig) closeAll() {
	if err := r.opt.Broker.Close(); err != nil {
		r.t.Errorf("close broker: %v", err)
	}
	if err := r.st.Close(); err != nil {
		r.t.Errorf("close store: %v", err)
	}
	r.p = nil
}

// crash cuts everything off where it stands: outcomes that were not committed are lost, sends
// that were not recorded stay claimed.
func (r *rig) crash() {
	r.t.Helper()
	r.p.endCompute()
	r.p.endAll()
	r.stop()
}

func (r *rig) unblock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, c := range r.block {
		close(c)
		delete(r.block, k)
	}
}

// act takes the next letter of the script: o ok, r retry, d dead, x rejected, p panic, h hold.
func (r *rig) act(stage store.Stage, name string) byte {
	r.mu.Lock()
	key := stage.String() + ":" + name
	s := r.script[key]
	n := r.tries[key]
	r.tries[key]++
	r.seen = append(r.seen, key)
	blocked := r.block[key]
	r.mu.Unlock()
	if blocked != nil {
		<-blocked
	}
	if s == "" {
		return 'o'
	}
	return s[min(n, len(s)-1)]
}

func (r *rig) verdict(stage store.Stage, name string, done *Outcome) *Outcome {
	switch r.act(stage, name) {
	case 'r':
		return &Outcome{Verdict: Retry, Code: "SCRIPT"}
	case 'd':
		return &Outcome{Verdict: Dead, Code: "SCRIPT"}
	case 'h':
		return &Outcome{Verdict: Hold, Code: "SCRIPT"}
	case 'p':
		panic("scripted")
	case 'x':
		done.Emit = nil
		return done
	}
	return done
}

// name of what a task is about: "<origin>-<serial>".
func (r *rig) parse(_ context.Context, t *Task) *Outcome {
	name := t.Transmission.MessageID
	origin, _, _ := strings.Cut(name, "-")
	ic := &store.Interchange{ID: t.ID.Derive("interchange", 1), Transmission: t.ID, From: origin, To: "hub", State: store.StateSplit, Total: 1, Open: 1, Body: t.Transmission.Content, At: t.Now}
	m := &store.Message{ID: ic.ID.Derive("message", 1), Interchange: ic.ID, From: origin, To: "hub", State: store.StateParsed, At: t.Now, Standard: edi.Opaque}
	m.Envelope.Document.Number = name
	m.Envelope.Position = 1
	return r.verdict(store.Parser, name, &Outcome{
		Verdict: Done, Write: Write{Interchanges: []*store.Interchange{ic}, Messages: []*store.Message{m}},
		Emit: []Emission{{Stage: store.Validator, Kind: store.KindMessage, ID: m.ID, Lane: r.spec(store.Validator, origin), Key: r.keyOf(name)}},
	})
}

func (r *rig) spec(s store.Stage, origin string) store.LaneSpec {
	l := r.lane
	l.Stage, l.Name = s, origin+">hub"
	return l
}

func (r *rig) validate(_ context.Context, t *Task) *Outcome {
	m := *t.Message
	name := m.Envelope.Document.Number
	m.State = store.StateValidated
	out := &Outcome{
		Verdict: Done, Write: Write{SaveMessages: []*store.Message{&m}},
		Emit: []Emission{{Stage: store.Router, Kind: store.KindMessage, ID: m.ID, Lane: r.spec(store.Router, m.From), Key: r.keyOf(name)}},
	}
	if o := r.verdict(store.Validator, name, out); o != out || len(o.Emit) > 0 {
		return o
	}
	out.Write.End = []End{{Messages: []edi.ID{m.ID}, State: store.StateRejected}}
	return out
}

func (r *rig) route(_ context.Context, t *Task) *Outcome {
	m := *t.Message
	name := m.Envelope.Document.Number
	m.State = store.StateRouted
	d := &store.Delivery{ID: m.ID.Derive("delivery", 0), Connection: "out", Partner: "out", State: store.StateReady, Messages: []edi.ID{m.ID}, Type: name, At: t.Now, From: m.From}
	m.Delivery = d.ID
	return r.verdict(store.Router, name, &Outcome{
		Verdict: Done,
		Write: Write{
			SaveMessages: []*store.Message{&m},
			Deliveries: []*DeliveryPlan{{Delivery: d, Numbers: []Sequence{{Name: m.From, Start: 1, Limit: controlWrap, Count: 1}}, Seal: func(d *store.Delivery, n []int64) error {
				d.ControlRef = fmt.Sprint(n[0])
				d.Pieces = []store.Piece{{Literal: []byte(name)}}
				d.Size = int64(len(name))
				return nil
			}}},
		},
		Emit: []Emission{{Stage: store.Sender, Kind: store.KindDelivery, ID: d.ID, Topic: "out", Lane: r.spec(store.Sender, m.From), Key: r.keyOf(name)}},
	})
}

type rigEndpoint struct{ r *rig }

func (e rigEndpoint) Send(ctx context.Context, d *send.Delivery) send.Result {
	r := e.r
	payload, err := io.ReadAll(io.NewSectionReader(d.Payload, 0, d.Payload.Size()))
	if err != nil {
		return send.Result{Status: send.Retry, Code: "READ"}
	}
	name := string(payload)
	if ctx.Err() != nil {
		return send.Result{Status: send.Unknown, Code: "CUT"}
	}
	r.mu.Lock()
	r.sends[name]++
	try := r.sends[name]
	known := false
	for _, id := range r.ids[name] {
		known = known || id == d.MessageID
	}
	if !known {
		r.ids[name] = append(r.ids[name], d.MessageID)
	}
	blocked := r.block["send:"+name]
	answer := r.answer
	r.mu.Unlock()
	if blocked != nil {
		select {
		case <-blocked:
		case <-ctx.Done():
			return send.Result{Status: send.Unknown, Code: "CUT"}
		}
	}
	res := answer(name, try)
	r.mu.Lock()
	defer r.mu.Unlock()
	if res.Status != send.Retry && !slices.Contains(r.sent, name) { // refused before the partner saw it
		r.sent = append(r.sent, name)
	}
	return res
}

// accept brings messages in, one after another.
func (r *rig) accept(names ...string) {
	r.t.Helper()
	for _, n := range names {
		if err := r.tryAccept(n); err != nil {
			r.t.Fatalf("accept %s: %v", n, err)
		}
	}
}

func (r *rig) tryAccept(name string) error {
	origin, _, _ := strings.Cut(name, "-")
	body, err := r.st.StageBody(context.Background(), bytes.NewReader([]byte(name)))
	if err != nil {
		return err
	}
	now := r.opt.Clock.Now()
	id := edi.NewID(now)
	return r.p.Accept(context.Background(), &Arrival{
		Transmission: &store.Transmission{ID: id, Transport: "as2", Connection: origin, MessageID: name, State: store.StateAccepted, Content: body.Ref, At: now},
		Content:      body, Key: &store.NaturalKey{Scope: store.ScopeAS2, Hash: body.Ref, Content: body.Ref, Object: id, At: now},
	})
}

// until waits for a condition, which is looked at after each thing that happens.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.AfterFunc(0, func() {})
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			r.t.Fatalf("%s did not come true; %s", what, r.report())
		}
		r.mu.Lock()
		tick.Stop()
		// The observer pings; the timer is the net for what nobody is told of.
		tick = time.AfterFunc(10*time.Millisecond, func() { rigObserver{r}.ping() })
		r.change.Wait()
		r.mu.Unlock()
	}
}

func (r *rig) report() string {
	var b strings.Builder
	ds, _ := r.st.Depths(context.Background())
	for _, d := range ds {
		fmt.Fprintf(&b, "%s %s %d; ", d.Stage, d.State, d.Count)
	}
	ls, _ := r.st.ListLanes(context.Background(), 0, 100)
	for _, l := range ls {
		fmt.Fprintf(&b, "[%s %s next %d tail %d waiting %d]", l.Stage, l.Name, l.Next, l.Tail, l.Waiting)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(&b, " sent %v tries %v", r.sent, r.tries)
	return b.String()
}

// messages returns state by name.
func (r *rig) messages() map[string]string {
	r.t.Helper()
	out := map[string]string{}
	var before edi.ID
	for {
		ms, err := r.st.ListMessages(context.Background(), store.Filter{Limit: 200, Before: before})
		if err != nil {
			r.t.Fatalf("list messages: %v", err)
		}
		if len(ms) == 0 {
			return out
		}
		for _, m := range ms {
			out[m.Envelope.Document.Number] = m.State
		}
		before = ms[len(ms)-1].ID
	}
}

func (r *rig) waitState(state string, names ...string) {
	r.t.Helper()
	r.until(fmt.Sprintf("%v are %s", names, state), func() bool {
		have := r.messages()
		for _, n := range names {
			if have[n] != state {
				return false
			}
		}
		return true
	})
}

// dead lists the dead letters, the oldest first.
func (r *rig) dead() []*store.Work {
	r.t.Helper()
	ws, err := r.st.ListDead(context.Background(), store.DeadFilter{Limit: 1000})
	if err != nil {
		r.t.Fatalf("list dead: %v", err)
	}
	return ws
}

func (r *rig) waitDead(n int) []*store.Work {
	r.t.Helper()
	r.until(fmt.Sprintf("%d dead letters", n), func() bool { return len(r.dead()) == n })
	return r.dead()
}

func (r *rig) replay(w *store.Work) {
	r.t.Helper()
	if err := r.p.Replay(context.Background(), w.WorkKey, "test", "test"); err != nil {
		r.t.Fatalf("replay: %v", err)
	}
}

// numbers returns the order in which the router's effects of an origin committed.
func (r *rig) numbers(origin string) map[string]int {
	r.t.Helper()
	out := map[string]int{}
	var before edi.ID
	for {
		ds, err := r.st.ListDeliveries(context.Background(), store.Filter{Limit: 200, Before: before})
		if err != nil {
			r.t.Fatalf("list deliveries: %v", err)
		}
		if len(ds) == 0 {
			return out
		}
		for _, d := range ds {
			if d.From != origin {
				continue
			}
			n := 0
			if _, err := fmt.Sscan(d.ControlRef, &n); err != nil {
				r.t.Fatalf("control ref %q: %v", d.ControlRef, err)
			}
			if _, twice := out[d.Type]; twice {
				r.t.Errorf("two deliveries of %s", d.Type)
			}
			out[d.Type] = n
		}
		before = ds[len(ds)-1].ID
	}
}

func (r *rig) sentOrder(origin string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, n := range r.sent {
		if strings.HasPrefix(n, origin+"-") {
			out = append(out, n)
		}
	}
	return out
}
