package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline/send"
	"github.com/edihub/edihub/internal/store"
)

func TestMessagesFlowInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	var want []string
	for i := 1; i <= 40; i++ {
		n := fmt.Sprintf("a-%d", i)
		want = append(want, n)
		r.accept(n, fmt.Sprintf("b-%d", i))
	}
	r.waitState(store.StateDelivered, append(want, "b-40")...)
	if got := r.sentOrder("a"); !slices.Equal(got, want) {
		t.Fatalf("sent %v", got)
	}
	r.until("no work is left", func() bool {
		ds, err := r.st.Depths(context.Background())
		return err == nil && len(ds) == 0
	})
}

func TestPoisonPanicsThreeTimesAndHurtsItselfOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.lane.Policy = string(partner.Skip)
	r.script["validator:a-2"] = "p"
	r.start()
	r.accept("a-1", "a-2", "a-3", "b-1")
	w := r.waitDead(1)[0]
	r.waitState(store.StateDelivered, "a-1", "a-3", "b-1")
	if w.Code != "STAGE_PANIC" || w.Crashes != 3 {
		t.Fatalf("dead with %s after %d crashes, want STAGE_PANIC after 3", w.Code, w.Crashes)
	}
	if got := r.messages()["a-2"]; got != store.StateDead {
		t.Fatalf("message is %s, want dead", got)
	}
	r.mu.Lock()
	r.script["validator:a-2"] = "o"
	r.mu.Unlock()
	r.replay(w)
	r.waitState(store.StateDelivered, "a-2")
}

func TestOverrunCountsAsCrashAndItsLateOutcomeIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.opt.Settings = map[store.Stage]StageSettings{store.Validator: {Workers: 1, Timeout: 30 * time.Millisecond}}
	r.lane.Policy = string(partner.Skip)
	hang := make(chan struct{})
	r.block["validator:a-1"] = hang
	r.start()
	r.accept("a-1", "a-2")
	w := r.waitDead(1)[0]
	if w.Code != "STAGE_TIMEOUT" {
		t.Fatalf("dead with %s, want STAGE_TIMEOUT", w.Code)
	}
	r.waitState(store.StateDelivered, "a-2") // by the worker that replaced the one that hangs
	r.unblock()
	r.until("the late workers have come back", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.tries["validator:a-1"] >= 3
	})
	// A message behind it in the same stage shows that the late outcomes have been through the gate.
	r.accept("a-3")
	r.waitState(store.StateDelivered, "a-3")
	if got := r.messages()["a-1"]; got != store.StateDead {
		t.Fatalf("a late outcome took effect: %s", got)
	}
	if len(r.dead()) != 1 {
		t.Fatal("the dead letter is gone")
	}
}

func TestScaleWhileRunning(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var now, most atomic.Int64
	gate := make(chan struct{})
	inner := r.opt.Stages[store.Validator]
	r.opt.Stages[store.Validator] = StageFunc(func(ctx context.Context, task *Task) *Outcome {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		rigObserver{r}.ping()
		<-gate
		now.Add(-1)
		return inner.Handle(ctx, task)
	})
	r.lane.Ordered = false
	// The parser is scaled to nobody while messages come in, so that nothing is fused.
	r.opt.Settings = map[store.Stage]StageSettings{store.Validator: {Workers: 2}, store.Parser: {Workers: 1}}
	r.start()
	ctx := context.Background()
	if err := r.p.Change(ctx, store.Validator, StageChange{Paused: ptr(true)}); err != nil {
		t.Fatal(err)
	}
	for i := range 64 {
		r.accept(fmt.Sprintf("a-%d", i))
	}
	r.until("all are parsed", func() bool { return len(r.messages()) == 64 })
	if most.Load() != 0 {
		t.Fatal("a paused stage works")
	}
	if err := r.p.Change(ctx, store.Validator, StageChange{Paused: ptr(false)}); err != nil {
		t.Fatal(err)
	}
	r.until("two work", func() bool { return now.Load() == 2 })
	if err := r.p.Change(ctx, store.Validator, StageChange{Workers: ptr(16), Max: ptr(64)}); err != nil {
		t.Fatal(err)
	}
	r.until("sixteen work", func() bool { return now.Load() == 16 })
	if err := r.p.Change(ctx, store.Validator, StageChange{Workers: ptr(1)}); err != nil {
		t.Fatal(err)
	}
	close(gate)
	r.until("all are delivered", func() bool {
		for _, s := range r.messages() {
			if s != store.StateDelivered {
				return false
			}
		}
		return true
	})
	if most.Load() != 16 {
		t.Fatalf("%d worked at once, want 16", most.Load())
	}
	if err := r.p.Change(ctx, store.Stage(9), StageChange{}); !errors.Is(err, ErrUnknownStage) {
		t.Fatalf("unknown stage: %v", err)
	}
	if err := r.p.Change(ctx, store.Parser, StageChange{Workers: ptr(MaxWorkers + 1)}); err == nil {
		t.Fatal("more workers than the limit were accepted")
	}
	r.stop()
	r.start()
	for _, s := range r.p.Stages(ctx) {
		if s.Stage == store.Validator && (s.Wanted != 1 || s.Max != 64) {
			t.Fatalf("after a restart: %+v", s)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestInFlightLimitAndStalledSends(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.lane.Ordered = false
	r.opt.Settings = map[store.Stage]StageSettings{store.Sender: {Workers: 2}}
	r.start()
	// Three hang: more than there are workers, fewer than the connection's limit.
	for _, n := range []string{"a-1", "a-2", "a-3"} {
		r.mu.Lock()
		r.block["send:"+n] = make(chan struct{})
		r.mu.Unlock()
		r.accept(n)
	}
	r.until("all three are in the air", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.sends["a-1"] == 1 && r.sends["a-2"] == 1 && r.sends["a-3"] == 1
	})
	r.accept("b-1", "b-2", "b-3")
	r.waitState(store.StateDelivered, "b-1", "b-2", "b-3")
	r.unblock()
	r.waitState(store.StateDelivered, "a-1", "a-2", "a-3")
	if n := r.p.InFlight()["out"]; n != 0 {
		t.Fatalf("%d sends are counted though none is in the air", n)
	}
}

func TestGracefulStopAndGoOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.script["validator:a-2"] = "d"
	r.answer = func(name string, try int) send.Result {
		if name == "b-1" && try < 3 {
			return send.Result{Status: send.Retry, Code: "HTTP_503"}
		}
		return send.Result{Status: send.Delivered, Proof: "mdn"}
	}
	r.start()
	r.accept("a-1", "a-2", "a-3", "b-1")
	r.waitDead(1)
	r.stop()
	r.start()
	r.waitState(store.StateDelivered, "a-1", "b-1")
	if got := r.messages()["a-3"]; got == store.StateDelivered {
		t.Fatal("a-3 passed the dead head of its lane")
	}
	r.mu.Lock()
	r.script["validator:a-2"] = "o"
	r.mu.Unlock()
	r.replay(r.waitDead(1)[0])
	r.waitState(store.StateDelivered, "a-2", "a-3")
	if got := r.sentOrder("a"); !slices.Equal(got, []string{"a-1", "a-2", "a-3"}) {
		t.Fatalf("sent %v", got)
	}
}

func TestSendCutByAStopKeepsItsMessageID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.block["send:a-1"] = make(chan struct{})
	r.start()
	r.accept("a-1")
	r.until("it is in the air", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.sends["a-1"] == 1
	})
	// A hard stop: the send is cut off, nobody knows whether it arrived.
	r.p.endCompute()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.p.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	r.closeAll()
	r.unblock()
	r.start()
	r.waitState(store.StateDelivered, "a-1")
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids["a-1"]) != 1 {
		t.Fatalf("Message-IDs %v, want one", r.ids["a-1"])
	}
}

func TestProcessDeathIsCountedAndRunsAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.lane.Policy = string(partner.Skip)
	r.opt.Settings = map[store.Stage]StageSettings{store.Parser: {Workers: 4, Paused: true}}
	r.start()
	r.accept("a-1", "b-1")
	row := r.row(store.Parser, "a-1")
	for i := 1; i <= 3; i++ {
		// The note that a dead process leaves behind.
		r.p.inhand.take(row.WorkKey)
		slots := r.p.inhand
		r.opt.Settings = map[store.Stage]StageSettings{store.Parser: {Workers: 4, Paused: true}}
		r.script["parser:a-1"] = "r"
		_ = slots
		r.stop()
		if i < 3 {
			r.script["parser:a-1"] = "p" // it fails while it runs alone
		}
		r.start()
		if i == 1 {
			r.until("it ran alone", func() bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				return r.tries["parser:a-1"] >= 1 && r.tries["parser:b-1"] == 0
			})
			r.until("its crashes are counted", func() bool { return r.row(store.Parser, "a-1").Crashes >= 2 })
			break
		}
	}
	r.p.inhand.take(row.WorkKey)
	r.stop()
	r.start()
	w := r.waitDead(1)[0]
	if w.ID != row.ID || w.Code != "PROCESS_CRASH" {
		t.Fatalf("dead: %+v", w)
	}
	if err := r.p.Change(context.Background(), store.Parser, StageChange{Paused: ptr(false)}); err != nil {
		t.Fatal(err)
	}
	r.waitState(store.StateDelivered, "b-1")
}
