// Package hubtest is a rig for tests of a whole hub: it starts an app.Hub in a temporary folder
// with partner records of the test, partners with keys of their own who post to it, a server that
// receives what the hub delivers, and a client of its admin API. Tests wait for what the hub says
// it did and never for a time.
package hubtest

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/app"
	"github.com/edihub/edihub/internal/app/peer"
	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// Patience bounds every wait; what works needs a small part of it.
const Patience = 30 * time.Second

// Options of New. Own, Partners and Records say who the hub knows.
type Options struct {
	// Own is the AS2 name of the hub; default HUB.
	Own string
	// Partners are AS2 names. Each of them and the hub gets a key: <name>.pem and <name>.key
	// beside the records.
	Partners []string
	// Records is the partners file. Paths in it are relative to Hub.Dir; ${sink} stands for the
	// address (host:port) of the server that receives deliveries.
	Records string
	// Keys keeps identities for the next test, because making a key takes long; nil: fresh ones.
	Keys *Keyring
	// Flags set what the configuration has, by key: "as2.max_message".
	Flags map[string]string
	Log   *zap.Logger // none
	Clock clock.Clock // the system's
	// Tune is called behind the rig's own: sweeps each 5 ms, retries from 1 ms up to 5 ms.
	Tune func(o *pipeline.Options)
	// Wrap, Probe and FreeSpace are those of app.Options.
	Wrap      func(s store.Stage, impl pipeline.Stage) pipeline.Stage
	Probe     func(point string)
	FreeSpace func(dir string) (int64, error)
}

// Hub is a running hub with the world around it. It stops with the test.
type Hub struct {
	*app.Hub
	// Dir holds the records, the keys, and in "data" what the hub keeps.
	Dir string
	// Sink receives what the hub sends over AS2 and HTTP.
	Sink *Sink
	// HTTP is the client that posts; it keeps connections.
	HTTP *http.Client

	t       testing.TB
	o       Options
	ids     map[string]*peer.Identity
	changed signal
	running bool
	n       int
	parsed  map[edi.ID]bool // transmissions that the parser is through with
}

// New starts a hub.
func New(t testing.TB, o Options) *Hub {
	t.Helper()
	if o.Own == "" {
		o.Own = "HUB"
	}
	if o.Keys == nil {
		o.Keys = &Keyring{}
	}
	h := &Hub{
		Dir: t.TempDir(), t: t, o: o, ids: map[string]*peer.Identity{}, parsed: map[edi.ID]bool{},
		HTTP: &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}},
	}
	h.changed.c = make(chan struct{})
	for name, id := range o.Keys.Identities(t, append([]string{o.Own}, o.Partners...)...) {
		own := *id // the ring is shared by tests that run at the same time
		if err := own.WriteFiles(h.Dir); err != nil {
			t.Fatal(err)
		}
		h.ids[name] = &own
	}
	h.Sink = newSink(h)
	t.Cleanup(func() {
		h.Stop()
		h.Sink.close()
		h.HTTP.CloseIdleConnections()
	})
	h.WriteRecords(o.Records)
	h.Start()
	return h
}

// Start starts the hub again behind Stop, on the same data.
func (h *Hub) Start() {
	h.t.Helper()
	flags := map[string]string{
		"data": h.DataDir(), "as2.listen": "127.0.0.1:0", "admin.listen": "127.0.0.1:0",
		"partners_file": filepath.Join(h.Dir, "partners.yaml"), "limits.min_free_disk": "1MiB",
	}
	maps.Copy(flags, h.o.Flags)
	cfg, _, err := config.Load(config.Options{Flags: flags})
	if err != nil {
		h.t.Fatalf("configuration: %v", err)
	}
	h.Hub, err = app.New(app.Options{
		Config: cfg, Log: h.o.Log, Clock: h.o.Clock, Wrap: h.o.Wrap, Probe: h.o.Probe, FreeSpace: h.o.FreeSpace, Tune: h.tune, Version: "test",
	})
	if err != nil {
		h.t.Fatalf("new hub: %v", err)
	}
	if err := h.Hub.Start(context.Background()); err != nil {
		h.t.Fatalf("start hub: %v", err)
	}
	h.running = true
}

// Stop stops the hub; a second time it does nothing.
func (h *Hub) Stop() {
	h.t.Helper()
	if !h.running {
		return
	}
	h.running = false
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	h.HTTP.CloseIdleConnections()
	h.Sink.release()
	if err := h.Hub.Stop(ctx); err != nil {
		h.t.Errorf("stop hub: %v", err)
	}
}

func (h *Hub) tune(o *pipeline.Options) {
	o.Sweep, o.RetryFirst, o.RetryMax = 5*time.Millisecond, time.Millisecond, 5*time.Millisecond
	o.Observer = observer{next: o.Observer, changed: &h.changed}
	if h.o.Tune != nil {
		h.o.Tune(o)
	}
}

// DataDir is the data folder of the hub.
func (h *Hub) DataDir() string { return filepath.Join(h.Dir, "data") }

// Identity is the hub or a partner by AS2 name.
func (h *Hub) Identity(name string) *peer.Identity {
	h.t.Helper()
	id := h.ids[name]
	if id == nil {
		h.t.Fatalf("nobody is called %q", name)
	}
	return id
}

// Own is the hub's identity.
func (h *Hub) Own() *peer.Identity { return h.Identity(h.o.Own) }

// WriteRecords replaces the partners file; the hub reads it at its start and with Mend.
func (h *Hub) WriteRecords(records string) {
	h.t.Helper()
	text := strings.ReplaceAll(records, "${sink}", h.Sink.Addr)
	if err := os.WriteFile(filepath.Join(h.Dir, "partners.yaml"), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// Mend replaces the partners file and has the hub read it, as an operator would with SIGHUP.
func (h *Hub) Mend(records string) {
	h.t.Helper()
	h.WriteRecords(records)
	if err := h.Reload(context.Background()); err != nil {
		h.t.Fatalf("reload: %v", err)
	}
}

// Files reads the files that a connection with a directory has been given, by name. The folder
// is relative to Dir.
func (h *Hub) Files(folder string) map[string][]byte {
	h.t.Helper()
	out := map[string][]byte{}
	es, err := os.ReadDir(filepath.Join(h.Dir, folder))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range es {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue // what is being written has a name that begins with a dot
		}
		b, err := os.ReadFile(filepath.Join(h.Dir, folder, e.Name()))
		if err != nil {
			h.t.Fatal(err)
		}
		out[e.Name()] = b
	}
	return out
}

// Wait returns once done says true. It looks again whenever the hub or the sink has done
// something, and fails the test when Patience is over.
func (h *Hub) Wait(what string, done func() bool) {
	h.t.Helper()
	limit := time.NewTimer(Patience)
	defer limit.Stop()
	// What commits outside of a stage tells nobody; the tick is for that.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		c := h.changed.next()
		if done() {
			return
		}
		select {
		case <-c:
		case <-tick.C:
		case <-limit.C:
			h.t.Fatalf("waited %s for: %s\n%s", Patience, what, h.describe())
		}
	}
}

// Settle waits until nothing is in work any more: all that came in is delivered, rejected, a
// duplicate or dead. A row that waits for a retry is in work.
func (h *Hub) Settle() {
	h.t.Helper()
	h.Wait("everything to come to its end", func() bool { return h.settled() == "" })
}

// settled names an object that is in work, empty if there is none. It walks downstream: who is
// through a stage has left what it emitted.
func (h *Hub) settled() string {
	ctx, st := context.Background(), h.Store()
	open := func(s store.Stage, id edi.ID, state string) bool {
		switch state {
		case store.StateDelivered, store.StateRejected, store.StateDuplicate, store.StateDiscarded, store.StateDone:
			return false // nothing brings it back
		}
		row, err := st.GetWork(ctx, store.WorkKey{Stage: s, ID: id})
		return err == nil && row.State != store.Dead && row.State != store.Discarded
	}
	f := store.Filter{Limit: 10000}
	ts, err := st.ListTransmissions(ctx, f)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, t := range ts {
		if h.parsed[t.ID] {
			continue
		}
		if open(store.Parser, t.ID, "") {
			return "transmission " + t.ID.String()
		}
		if _, err := st.GetWork(ctx, store.WorkKey{Stage: store.Parser, ID: t.ID}); errors.Is(err, store.ErrNotFound) {
			h.parsed[t.ID] = true
		}
	}
	ics, err := st.ListInterchanges(ctx, f)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, ic := range ics {
		if open(store.Parser, ic.ID, ic.State) {
			return "interchange " + ic.ID.String()
		}
	}
	ms, err := st.ListMessages(ctx, f)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, s := range []store.Stage{store.Validator, store.Router} {
		for _, m := range ms {
			if open(s, m.ID, m.State) {
				return "message " + m.ID.String()
			}
		}
	}
	for _, ic := range ics {
		if open(store.Router, ic.ID, ic.State) {
			return "interchange " + ic.ID.String()
		}
	}
	ds, err := st.ListDeliveries(ctx, f)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, d := range ds {
		if open(store.Sender, d.ID, d.State) {
			return "delivery " + d.ID.String() + " " + d.State + " " + d.Code
		}
	}
	return ""
}

// describe tells where everything stands, for a test that failed.
func (h *Hub) describe() string {
	if !h.running {
		return "the hub does not run"
	}
	var b strings.Builder
	b.WriteString("in work: " + h.settled() + "\n")
	ctx, f := context.Background(), store.Filter{Limit: 50}
	line := func(words ...string) { b.WriteString(strings.Join(words, " ") + "\n") }
	if ts, err := h.Store().ListTransmissions(ctx, f); err == nil {
		for _, x := range ts {
			line("transmission", x.ID.String(), x.State, x.Code, x.MessageID, x.Detail)
		}
	}
	if ics, err := h.Store().ListInterchanges(ctx, f); err == nil {
		for _, x := range ics {
			line("interchange", x.ID.String(), x.State, x.Code, x.From, x.To)
		}
	}
	if ms, err := h.Store().ListMessages(ctx, f); err == nil {
		for _, x := range ms {
			line("message", x.ID.String(), x.State, x.Code, x.Envelope.Type)
		}
	}
	if ds, err := h.Store().ListDeliveries(ctx, f); err == nil {
		for _, x := range ds {
			line("delivery", x.ID.String(), x.State, x.Code, x.Connection, x.Detail)
		}
	}
	if ds, err := h.Store().ListDead(ctx, store.DeadFilter{Limit: 50}); err == nil {
		for _, x := range ds {
			line("dead", x.Stage.String(), x.ID.String(), x.Code, x.Detail)
		}
	}
	return b.String()
}

// signal wakes all who wait, as often as it is told.
type signal struct {
	mu sync.Mutex
	c  chan struct{}
}

func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.c
}

func (s *signal) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.c)
	s.c = make(chan struct{})
}

// observer passes on what it is told and wakes who waits.
type observer struct {
	next    pipeline.Observer
	changed *signal
}

func (o observer) Handled(s store.Stage, v pipeline.Verdict, took time.Duration) {
	o.next.Handled(s, v, took)
	o.changed.tell()
}

func (o observer) Duplicate(s store.Scope) {
	o.next.Duplicate(s)
	o.changed.tell()
}

func (o observer) Delivery(partner, state string) {
	o.next.Delivery(partner, state)
	o.changed.tell()
}

func (o observer) Dead(s store.Stage, code string) {
	o.next.Dead(s, code)
	o.changed.tell()
}
