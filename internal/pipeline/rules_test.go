package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/broker"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline/send"
	"github.com/edihub/edihub/internal/store"
)

// The tests of this file drive the transaction by hand: the pools do not run, so each decides on
// the exact order in which outcomes come. Each is named for a rule of DESIGN §3 and fails when
// that rule is taken out (see ruleproof).

// taken is a copy as a consumer would have got it.
func taken(row *store.Work) broker.Delivery {
	return broker.Delivery{Copy: edi.Copy{Stage: row.Stage, ID: row.ID, Kind: row.Kind, Lane: row.Lane, Seq: row.Seq, Gen: row.Gen, Topic: row.Topic}}
}

// rows are the work rows of a stage, by the name of what they are about.
func (r *rig) rows(stage store.Stage) map[string]*store.Work {
	r.t.Helper()
	out := map[string]*store.Work{}
	get := func(id edi.ID, name string) {
		w, err := r.st.GetWork(context.Background(), store.WorkKey{Stage: stage, ID: id})
		if err == nil {
			out[name] = w
		} else if !errors.Is(err, store.ErrNotFound) {
			r.t.Fatalf("work of %s: %v", name, err)
		}
	}
	switch stage {
	case store.Parser:
		ts, err := r.st.ListTransmissions(context.Background(), store.Filter{Limit: 1000})
		if err != nil {
			r.t.Fatal(err)
		}
		for _, x := range ts {
			get(x.ID, x.MessageID)
		}
	case store.Sender:
		ds, err := r.st.ListDeliveries(context.Background(), store.Filter{Limit: 1000})
		if err != nil {
			r.t.Fatal(err)
		}
		for _, x := range ds {
			get(x.ID, x.Type)
		}
	default:
		ms, err := r.st.ListMessages(context.Background(), store.Filter{Limit: 1000})
		if err != nil {
			r.t.Fatal(err)
		}
		for _, x := range ms {
			get(x.ID, x.Envelope.Document.Number)
		}
	}
	return out
}

func (r *rig) row(stage store.Stage, name string) *store.Work {
	r.t.Helper()
	w := r.rows(stage)[name]
	if w == nil {
		r.t.Fatalf("%s has no work of %s", stage, name)
	}
	return w
}

// compute runs the stage for a row as it stands now.
func (r *rig) computeJob(w *store.Work) *job {
	r.t.Helper()
	j := &job{d: taken(w)}
	j.out = r.p.compute(context.Background(), w.Stage, r.opt.Stages[w.Stage], &j.d.Copy)
	if j.out == nil {
		r.t.Fatalf("no outcome of %s", w.ID)
	}
	return j
}

// commit runs one batch and returns the fates.
func (r *rig) commit(jobs ...*job) []fate {
	r.t.Helper()
	f, err := (&committer{r.p}).commit(context.Background(), jobs)
	if err != nil {
		r.t.Fatalf("commit: %v", err)
	}
	return f
}

// do computes and commits rows of a stage by name, in one batch.
func (r *rig) do(stage store.Stage, names ...string) []fate {
	r.t.Helper()
	rows := r.rows(stage)
	var jobs []*job
	for _, n := range names {
		if rows[n] == nil {
			r.t.Fatalf("%s has no work of %s", stage, n)
		}
		jobs = append(jobs, r.computeJob(rows[n]))
	}
	return r.commit(jobs...)
}

func (r *rig) wantRow(stage store.Stage, name string, state store.WorkState) *store.Work {
	r.t.Helper()
	w := r.row(stage, name)
	if w.State != state {
		r.t.Fatalf("%s of %s is %s, want %s", stage, name, w.State, state)
	}
	return w
}

func (r *rig) wantGone(stage store.Stage, name string) {
	r.t.Helper()
	if w := r.rows(stage)[name]; w != nil {
		r.t.Fatalf("%s of %s is still there: %s", stage, name, w.State)
	}
}

// byHand opens a rig whose pools do not run, with messages a-1 … a-n before the validator.
func byHand(t *testing.T, n int, setup func(*rig)) *rig {
	t.Helper()
	r := newRig(t)
	if setup != nil {
		setup(r)
	}
	r.open()
	for i := 1; i <= n; i++ {
		name := fmt.Sprintf("a-%d", i)
		r.accept(name)
		r.do(store.Parser, name)
	}
	return r
}

func wantFates(t *testing.T, got []fate, want ...fate) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("fates %v, want %v", got, want)
	}
}

func TestRuleGateParksWhatIsEarly(t *testing.T) {
	t.Parallel()
	r := byHand(t, 3, nil)
	wantFates(t, r.do(store.Validator, "a-2"), fateWaits)
	r.wantRow(store.Validator, "a-2", store.Parked)
	wantFates(t, r.do(store.Validator, "a-1"), fateDone)
	r.wantGone(store.Validator, "a-1")
	if w := r.wantRow(store.Validator, "a-2", store.Ready); w.Gen != 1 {
		t.Fatalf("woken in generation %d, want 1", w.Gen)
	}
}

func TestRuleWakeIsContiguousAndBounded(t *testing.T) {
	t.Parallel()
	r := byHand(t, 70, nil)
	var names []string
	for i := 2; i <= 70; i++ {
		if i != 40 {
			names = append(names, fmt.Sprintf("a-%d", i))
		}
	}
	r.do(store.Validator, names...)
	r.do(store.Validator, "a-1")
	r.wantRow(store.Validator, "a-39", store.Ready)
	r.wantRow(store.Validator, "a-41", store.Parked)
	for i := 2; i <= 40; i++ {
		r.do(store.Validator, fmt.Sprintf("a-%d", i))
	}
	r.wantRow(store.Validator, "a-41", store.Ready)
	r.wantRow(store.Validator, "a-70", store.Ready)
}

func TestRuleStaleCopyRunsNoDeadLetterAndBurnsNoTry(t *testing.T) {
	t.Parallel()
	r := byHand(t, 1, func(r *rig) { r.script["validator:a-1"] = "dro" })
	first := r.row(store.Validator, "a-1")
	wantFates(t, r.commit(r.computeJob(first)), fateWaits)
	dead := r.wantRow(store.Validator, "a-1", store.Dead)
	// A duplicate of the first copy says "retry"; nobody replayed the dead letter.
	dup := r.computeJob(first)
	wantFates(t, r.commit(dup), fateStale)
	r.wantRow(store.Validator, "a-1", store.Dead)
	r.replay(dead)
	again := r.wantRow(store.Validator, "a-1", store.Ready)
	// Ready again, in a new generation: the old copy must neither run nor count.
	wantFates(t, r.commit(dup), fateStale)
	if w := r.wantRow(store.Validator, "a-1", store.Ready); w.Tries != 0 || w.Gen != again.Gen {
		t.Fatalf("the stale copy burnt a try: %+v", w)
	}
	wantFates(t, r.do(store.Validator, "a-1"), fateDone)
	wantFates(t, r.commit(dup), fateStale)
}

func TestRuleBatchParksBehindTheFirstNotDone(t *testing.T) {
	t.Parallel()
	r := byHand(t, 3, func(r *rig) { r.script["validator:a-2"] = "ro" })
	r.accept("b-1")
	r.do(store.Parser, "b-1")
	wantFates(t, r.do(store.Validator, "a-1", "a-2", "a-3", "b-1"), fateDone, fateWaits, fateWaits, fateDone)
	r.wantRow(store.Validator, "a-2", store.Retry)
	r.wantRow(store.Validator, "a-3", store.Parked)
	r.p.relay.sweepAll(context.Background())
	r.until("the retry is due", func() bool {
		r.p.relay.sweepAll(context.Background())
		return r.row(store.Validator, "a-2").State == store.Ready
	})
	wantFates(t, r.do(store.Validator, "a-2"), fateDone)
	r.wantRow(store.Validator, "a-3", store.Ready)
}

func TestRuleFailedBatchGoesOneByOne(t *testing.T) {
	t.Parallel()
	r := byHand(t, 2, nil)
	r.accept("b-1", "c-1")
	r.do(store.Parser, "b-1")
	r.do(store.Parser, "c-1")
	rows := r.rows(store.Validator)
	bad := r.computeJob(rows["a-2"])
	// It emits a row that exists already, which the store refuses.
	bad.out.Emit = append(bad.out.Emit, Emission{Stage: store.Validator, Kind: store.KindMessage, ID: rows["c-1"].ID, Lane: r.spec(store.Validator, "c")})
	wantFates(t, r.commit(r.computeJob(rows["a-1"]), bad, r.computeJob(rows["b-1"])), fateDone, fateWaits, fateDone)
	if w := r.wantRow(store.Validator, "a-2", store.Dead); w.Code != "STORE_REFUSED" {
		t.Fatalf("code %s, want STORE_REFUSED", w.Code)
	}
}

func TestRuleDeadHeadBlocks(t *testing.T) {
	t.Parallel()
	r := byHand(t, 2, func(r *rig) { r.script["validator:a-1"] = "do" })
	r.do(store.Validator, "a-1")
	wantFates(t, r.do(store.Validator, "a-2"), fateWaits)
	r.p.relay.sweepAll(context.Background())
	r.wantRow(store.Validator, "a-2", store.Parked)
	r.replay(r.row(store.Validator, "a-1"))
	wantFates(t, r.do(store.Validator, "a-1"), fateDone)
	r.wantRow(store.Validator, "a-2", store.Ready)
}

func TestRuleSkipRecordsItsGapAndWakes(t *testing.T) {
	t.Parallel()
	r := byHand(t, 3, func(r *rig) {
		r.lane.Policy = string(partner.Skip)
		r.script["validator:a-1"] = "do"
	})
	r.do(store.Validator, "a-2") // early: parks
	r.do(store.Validator, "a-1")
	if w := r.wantRow(store.Validator, "a-1", store.Dead); !w.Gap {
		t.Fatal("the lane went on and recorded no gap")
	}
	r.wantRow(store.Validator, "a-2", store.Ready)
	wantFates(t, r.do(store.Validator, "a-2", "a-3"), fateDone, fateDone)
	r.replay(r.row(store.Validator, "a-1"))
	wantFates(t, r.do(store.Validator, "a-1"), fateDone)
	r.accept("a-4")
	r.do(store.Parser, "a-4")
	wantFates(t, r.do(store.Validator, "a-4"), fateDone) // the replay moved no gate
}

func TestRuleReplayTwiceHasOneEffect(t *testing.T) {
	t.Parallel()
	r := byHand(t, 1, func(r *rig) { r.script["validator:a-1"] = "do" })
	r.do(store.Validator, "a-1")
	w := r.row(store.Validator, "a-1")
	r.replay(w)
	if err := r.p.Replay(context.Background(), w.WorkKey, "test", ""); !errors.Is(err, ErrNotDead) {
		t.Fatalf("second replay: %v, want ErrNotDead", err)
	}
	one, two := r.computeJob(r.row(store.Validator, "a-1")), r.computeJob(r.row(store.Validator, "a-1"))
	wantFates(t, r.commit(one, two), fateDone, fateStale)
	wantFates(t, r.commit(two), fateStale)
}

func TestRuleDiscardWakesTheNext(t *testing.T) {
	t.Parallel()
	r := byHand(t, 2, func(r *rig) { r.script["validator:a-1"] = "d" })
	r.do(store.Validator, "a-1")
	r.do(store.Validator, "a-2")
	r.wantRow(store.Validator, "a-2", store.Parked)
	if err := r.p.Discard(context.Background(), r.row(store.Validator, "a-1").WorkKey, "test", "no use"); err != nil {
		t.Fatal(err)
	}
	r.wantRow(store.Validator, "a-2", store.Ready)
	wantFates(t, r.do(store.Validator, "a-2"), fateDone)
	if got := r.messages()["a-1"]; got != store.StateDiscarded {
		t.Fatalf("message is %s, want discarded", got)
	}
}

// keyed gives messages a-1 … the key k, but those whose serial is in other.
func keyed(other ...string) func(string) string {
	return func(name string) string {
		if slices.Contains(other, name) {
			return "other"
		}
		return "k"
	}
}

func TestRuleHoldKeyHoldsItsKeyOnly(t *testing.T) {
	t.Parallel()
	r := byHand(t, 5, func(r *rig) {
		r.lane.Policy = string(partner.HoldKey)
		r.keyOf = keyed("a-3")
		r.script["validator:a-1"] = "do"
	})
	wantFates(t, r.do(store.Validator, "a-1", "a-2", "a-3", "a-4"), fateWaits, fateWaits, fateDone, fateWaits)
	r.wantRow(store.Validator, "a-2", store.KeyHeld)
	r.wantRow(store.Validator, "a-4", store.KeyHeld)
	r.p.relay.sweepAll(context.Background())
	r.wantRow(store.Validator, "a-2", store.KeyHeld)
	r.replay(r.row(store.Validator, "a-1"))
	wantFates(t, r.do(store.Validator, "a-1"), fateDone)
	// The chain: a-2 runs, a-4 waits for it, and so does a-5, which comes by the gate.
	r.wantRow(store.Validator, "a-2", store.Ready)
	r.wantRow(store.Validator, "a-4", store.KeyHeld)
	wantFates(t, r.do(store.Validator, "a-5"), fateWaits)
	r.wantRow(store.Validator, "a-5", store.KeyHeld)
	for _, n := range []string{"a-2", "a-4", "a-5"} {
		r.wantRow(store.Validator, n, store.Ready)
		wantFates(t, r.do(store.Validator, n), fateDone)
	}
}

func TestRuleHoldKeyWithoutKeyBlocks(t *testing.T) {
	t.Parallel()
	r := byHand(t, 2, func(r *rig) {
		r.lane.Policy = string(partner.HoldKey)
		r.script["validator:a-1"] = "d"
	})
	wantFates(t, r.do(store.Validator, "a-1", "a-2"), fateWaits, fateWaits)
	r.wantRow(store.Validator, "a-2", store.Parked)
}

func TestRuleEachHopTakesASequenceOfItsOwn(t *testing.T) {
	t.Parallel()
	r := byHand(t, 3, func(r *rig) { r.script["validator:a-1"] = "x" })
	wantFates(t, r.do(store.Validator, "a-1", "a-2", "a-3"), fateDone, fateDone, fateDone)
	// a-1 was rejected and never came to the router: a-2 is its first.
	wantFates(t, r.do(store.Router, "a-2"), fateDone)
	wantFates(t, r.do(store.Router, "a-3"), fateDone)
	if got := r.messages()["a-1"]; got != store.StateRejected {
		t.Fatalf("a-1 is %s, want rejected", got)
	}
}

func TestRuleOlderRecordsAreComputedAgain(t *testing.T) {
	t.Parallel()
	r := byHand(t, 2, nil)
	old := r.computeJob(r.row(store.Validator, "a-2"))
	r.reg.Swap(r.reg.Current().WithVersion(2))
	wantFates(t, r.do(store.Validator, "a-1"), fateDone)
	wantFates(t, r.commit(old), fateAgain)
	r.wantRow(store.Validator, "a-2", store.Ready)
	wantFates(t, r.do(store.Validator, "a-2"), fateDone)
}

func TestRuleClaimIsTakenWithTheEffect(t *testing.T) {
	t.Parallel()
	r := byHand(t, 3, nil)
	claim := func(j *job, content byte, same, other *Outcome) *job {
		m := r.messageID(j)
		j.out.Claims = []Claim{{Key: store.NaturalKey{Scope: store.ScopeInterchange, Hash: [32]byte{1}, Content: [32]byte{content}, Object: m, At: time.Now()}, Same: same, Other: other}}
		return j
	}
	end := func(state string, j *job) *Outcome {
		return &Outcome{Verdict: Done, Profile: 1, Write: Write{End: []End{{Messages: []edi.ID{r.messageID(j)}, State: state}}}}
	}
	one, two, three := r.computeJob(r.row(store.Validator, "a-1")), r.computeJob(r.row(store.Validator, "a-2")), r.computeJob(r.row(store.Validator, "a-3"))
	claim(one, 1, end("duplicate", one), end("rejected", one))
	claim(two, 1, end("duplicate", two), end("rejected", two))
	claim(three, 9, end("duplicate", three), end("rejected", three))
	wantFates(t, r.commit(one, two, three), fateDone, fateDone, fateDone)
	got := r.messages()
	if got["a-1"] != store.StateValidated || got["a-2"] != store.StateDuplicate || got["a-3"] != store.StateRejected {
		t.Fatalf("states %v", got)
	}
	if w := r.rows(store.Router); len(w) != 1 || w["a-1"] == nil {
		t.Fatalf("the duplicates went on: %v", w)
	}
}

func (r *rig) messageID(j *job) edi.ID { return j.d.ID }

func TestRuleEffectFailsClaimIsFree(t *testing.T) {
	t.Parallel()
	r := byHand(t, 2, nil)
	rows := r.rows(store.Validator)
	bad := r.computeJob(rows["a-1"])
	key := store.NaturalKey{Scope: store.ScopeInterchange, Hash: [32]byte{7}, Content: [32]byte{1}, Object: bad.d.ID, At: time.Now()}
	bad.out.Claims = []Claim{{Key: key, Same: &Outcome{Verdict: Done, Profile: 1}, Other: &Outcome{Verdict: Done, Profile: 1}}}
	bad.out.Emit = append(bad.out.Emit, Emission{Stage: store.Validator, Kind: store.KindMessage, ID: rows["a-2"].ID, Lane: r.spec(store.Validator, "z")})
	wantFates(t, r.commit(bad), fateWaits)
	if _, err := r.st.GetKey(context.Background(), key.Scope, key.Hash, time.Time{}); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("the key of a refused effect is taken: %v", err)
	}
}

func TestRuleChunkCommitsOnce(t *testing.T) {
	t.Parallel()
	r := byHand(t, 1, nil)
	row := r.row(store.Validator, "a-1")
	chunk := func(step int64, emit string, more bool) *job {
		o := &Outcome{Verdict: Done, Profile: 1, Step: step, Emit: []Emission{{Stage: store.Router, Kind: store.KindMessage, ID: row.ID.Derive(emit, 1), Lane: r.spec(store.Router, "a")}}}
		if more {
			o.More = func(context.Context) *Outcome { return nil }
		}
		return &job{d: taken(row), out: o}
	}
	wantFates(t, r.commit(chunk(0, "one", true)), fateFollow)
	wantFates(t, r.commit(chunk(0, "one", true)), fateStale) // another copy of the same row, behind
	r.wantRow(store.Validator, "a-1", store.Ready)
	wantFates(t, r.commit(chunk(1, "two", false)), fateDone)
	r.wantGone(store.Validator, "a-1")
}

func TestRuleRefusedChunkIsADeadLetterToo(t *testing.T) {
	t.Parallel()
	r := byHand(t, 2, nil)
	row, other := r.row(store.Validator, "a-1"), r.row(store.Validator, "a-2")
	first := &Outcome{Verdict: Done, Profile: 1, More: func(context.Context) *Outcome { return nil }}
	wantFates(t, r.commit(&job{d: taken(row), out: first}), fateFollow)
	refused := &Outcome{Verdict: Done, Profile: 1, Step: 1, Emit: []Emission{{Stage: store.Validator, Kind: store.KindMessage, ID: other.ID, Lane: r.spec(store.Validator, "z")}}}
	wantFates(t, r.commit(&job{d: taken(row), out: refused}), fateWaits)
	if w := r.wantRow(store.Validator, "a-1", store.Dead); w.Code != "STORE_REFUSED" {
		t.Fatalf("code %s, want STORE_REFUSED", w.Code)
	}
}

func TestRuleSweeperWakesWhatNobodyWoke(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cases := map[string]func(row *store.Work, l *store.Lane){
		"its turn has come": func(w *store.Work, l *store.Lane) { w.State = store.Parked; l.Waiting++ },
		"its time has come": func(w *store.Work, _ *store.Lane) { w.State, w.Due = store.Retry, time.Now().Add(-time.Second) },
		"its lease is over": func(w *store.Work, _ *store.Lane) {
			w.State, w.Owner, w.Lease = store.Leased, "elsewhere", time.Now().Add(-time.Second)
		},
		"its key is free":     func(w *store.Work, _ *store.Lane) { w.State, w.Gap, w.Key = store.KeyHeld, true, "k" },
		"nobody handed it":    func(w *store.Work, _ *store.Lane) { w.Handed = 0 },
		"its pause is lifted": func(w *store.Work, l *store.Lane) { w.State = store.Parked; l.Waiting++ },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := byHand(t, 1, nil)
			row := r.row(store.Validator, "a-1")
			err := r.st.Update(ctx, func(tx store.Tx) error {
				ws, err := tx.Work([]store.WorkKey{row.WorkKey})
				if err != nil {
					return err
				}
				ls, err := tx.LanesByID([]int64{row.Lane})
				if err != nil {
					return err
				}
				change(ws[0], ls[0])
				if err := tx.SaveWork(ws); err != nil {
					return err
				}
				return tx.SaveLanes(ls)
			})
			if err != nil {
				t.Fatal(err)
			}
			before := r.queued(store.Validator)
			r.p.relay.sweepAll(ctx)
			r.until(name, func() bool {
				for id, ok := r.p.relay.next(); ok; id, ok = r.p.relay.next() {
					r.p.relay.backlog(ctx, id)
				}
				return r.queued(store.Validator) > before
			})
			if w := r.row(store.Validator, "a-1"); w.State != store.Ready || w.Handed == 0 {
				t.Fatalf("the row is %s, handed %d", w.State, w.Handed)
			}
		})
	}
}

func (r *rig) queued(s store.Stage) int {
	r.t.Helper()
	d, err := r.opt.Broker.Depth(context.Background(), s)
	if err != nil {
		r.t.Fatal(err)
	}
	return d.Ready
}

func TestRuleHandsOverAWindowOfALane(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.open()
	const n = laneWindow + 40
	for i := 1; i <= n; i++ {
		r.accept(fmt.Sprintf("a-%d", i))
	}
	if got := r.queued(store.Parser); got != laneWindow {
		t.Fatalf("%d copies of one lane are in the broker, want %d", got, laneWindow)
	}
	c, err := r.opt.Broker.Subscribe(context.Background(), broker.Subscription{Stage: store.Parser})
	if err != nil {
		t.Fatal(err)
	}
	var got []broker.Delivery
	for len(got) < n {
		ds, err := c.Receive(context.Background(), 64, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			j := &job{d: d}
			j.out = r.p.compute(context.Background(), d.Stage, r.opt.Stages[d.Stage], &d.Copy)
			wantFates(t, r.commit(j), fateDone)
		}
		c.Ack(ds)
		got = append(got, ds...)
		for id, ok := r.p.relay.next(); ok; id, ok = r.p.relay.next() {
			r.p.relay.backlog(context.Background(), id)
		}
	}
	for i, d := range got {
		if d.Seq != got[0].Seq+int64(i) {
			t.Fatalf("copy %d has sequence %d", i, d.Seq)
		}
	}
}

func TestRuleRepeatIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.open()
	r.accept("a-1")
	var rep *RepeatError
	if err := r.tryAccept("a-1"); !errors.As(err, &rep) || !rep.Same {
		t.Fatalf("second accept: %v, want a repeat of the same", err)
	}
	if got := r.queued(store.Parser); got != 1 {
		t.Fatalf("%d copies, want 1", got)
	}
	if ts, err := r.st.ListTransmissions(context.Background(), store.Filter{Limit: 10}); err != nil || len(ts) != 1 {
		t.Fatalf("%d transmissions %v, want 1", len(ts), err)
	}
}

// Sending, by hand: rounds of records and claims.

func (r *rig) toSender(n int) {
	r.t.Helper()
	for i := 1; i <= n; i++ {
		name := fmt.Sprintf("a-%d", i)
		r.do(store.Validator, name)
		r.do(store.Router, name)
	}
	r.p.sender = newSender(r.p, r.p.settings[store.Sender])
}

func (r *rig) claim(name string) (*flight, bool) {
	r.t.Helper()
	run, n := r.claimRun(name)
	return run[0], n == 1
}

// claimRun claims what a lane has in memory with one call, and returns how many were granted.
func (r *rig) claimRun(names ...string) ([]*flight, int) {
	r.t.Helper()
	var run []*flight
	for _, name := range names {
		run = append(run, newFlight(taken(r.row(store.Sender, name))))
		run[len(run)-1].lead = run[0]
	}
	run[0].run = run
	rd := &round{claims: []*flight{run[0]}, granted: map[*flight]int{}}
	if err := r.p.sender.once(rd); err != nil {
		r.t.Fatalf("claim %v: %v", names, err)
	}
	return run, rd.granted[run[0]]
}

func (r *rig) record(f *flight, status send.Status) {
	r.t.Helper()
	f.result = send.Result{Status: status, Proof: "mdn", Code: "SCRIPT"}
	if err := r.p.sender.once(&round{records: []*flight{f}, granted: map[*flight]int{}}); err != nil {
		r.t.Fatalf("record: %v", err)
	}
}

func (r *rig) delivery(name string) *store.Delivery {
	r.t.Helper()
	ds, err := r.st.ListDeliveries(context.Background(), store.Filter{Limit: 1000})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, d := range ds {
		if d.Type == name {
			return d
		}
	}
	r.t.Fatalf("no delivery of %s", name)
	return nil
}

func TestRuleOneSendAtATimeInAnOrderedLane(t *testing.T) {
	t.Parallel()
	r := byHand(t, 2, nil)
	r.toSender(2)
	one, ok := r.claim("a-1")
	if !ok {
		t.Fatal("the head was not claimed")
	}
	if _, ok := r.claim("a-2"); ok {
		t.Fatal("the second was claimed while the first is in the air")
	}
	r.record(one, send.Retry)
	r.until("the retry is due", func() bool {
		r.p.relay.sweepAll(context.Background())
		return r.row(store.Sender, "a-1").State == store.Ready
	})
	r.wantRow(store.Sender, "a-2", store.Parked)
	one, ok = r.claim("a-1")
	if !ok {
		t.Fatal("not claimed again")
	}
	r.record(one, send.Delivered)
	r.wantGone(store.Sender, "a-1")
	r.wantRow(store.Sender, "a-2", store.Ready)
}

func TestRuleRunGoesOnBehindAProofOnly(t *testing.T) {
	t.Parallel()
	r := byHand(t, 4, nil)
	r.toSender(4)
	run, n := r.claimRun("a-1", "a-2", "a-3")
	if n != 3 {
		t.Fatalf("%d of a run of three were claimed", n)
	}
	if _, ok := r.claim("a-4"); ok {
		t.Fatal("the one behind the run was claimed")
	}
	r.record(run[0], send.Delivered)
	r.wantGone(store.Sender, "a-1")
	r.wantRow(store.Sender, "a-4", store.Parked)
	run[2].unsent = true
	r.record(run[1], send.Retry)
	r.record(run[2], 0)
	if w := r.wantRow(store.Sender, "a-3", store.Ready); w.Tries != 0 {
		t.Fatalf("a delivery that never left counts %d tries", w.Tries)
	}
	if _, ok := r.claim("a-3"); ok {
		t.Fatal("the third was claimed before the second is through")
	}
	r.until("the retry is due", func() bool {
		r.p.relay.sweepAll(context.Background())
		return r.row(store.Sender, "a-2").State == store.Ready
	})
	for i, name := range []string{"a-2", "a-3", "a-4"} {
		f, ok := r.claim(name)
		if !ok {
			t.Fatalf("%s was not claimed in its turn", name)
		}
		r.record(f, send.Delivered)
		r.wantGone(store.Sender, name)
		if got := r.messages()[name]; got != store.StateDelivered {
			t.Fatalf("message %d is %s", i+2, got)
		}
	}
}

func TestRuleRunIsOfOneLaneWithoutGaps(t *testing.T) {
	t.Parallel()
	r := byHand(t, 4, nil)
	r.toSender(4)
	if _, n := r.claimRun("a-1", "a-3"); n != 1 {
		t.Fatalf("%d were claimed over a gap in the sequence", n)
	}
	r.expire("a-1")
	// What was on its way before may have arrived: it goes through the gate alone.
	if _, n := r.claimRun("a-1", "a-2"); n != 2 {
		t.Fatalf("%d of a run were claimed", n)
	}
	r.expire("a-1")
	r.expire("a-2")
	if _, n := r.claimRun("a-1", "a-2"); n != 1 {
		t.Fatalf("%d were claimed though the second had been on its way before", n)
	}
}

func TestRuleWhatIsAheadOfItsTurnMovesNoLane(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]send.Status{"proof": send.Delivered, "failure": send.Failed, "retry": send.Retry} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := byHand(t, 3, nil)
			r.toSender(3)
			run, n := r.claimRun("a-1", "a-2")
			if n != 2 {
				t.Fatalf("%d of a run of two were claimed", n)
			}
			r.expire("a-1") // taken away while both are on their way
			r.record(run[1], status)
			if w := r.row(store.Sender, "a-2"); w.State == store.Dead || w.State == store.Retry {
				t.Fatalf("the second is %s before its turn", w.State)
			}
			first, ok := r.claim("a-1")
			if !ok {
				t.Fatal("the first lost its turn")
			}
			r.record(first, send.Delivered)
			r.wantGone(store.Sender, "a-1")
			second, ok := r.claim("a-2")
			if ok != (status != send.Delivered) {
				t.Fatalf("claimed again: %v", ok)
			}
			if ok {
				r.record(second, send.Delivered)
			}
			r.wantGone(store.Sender, "a-2")
			if got := r.messages()["a-2"]; got != store.StateDelivered {
				t.Fatalf("message is %s", got)
			}
			if _, ok := r.claim("a-3"); !ok {
				t.Fatal("the lane did not go on")
			}
		})
	}
}

func TestRuleFailureCountsInItsEpochOnly(t *testing.T) {
	t.Parallel()
	r := byHand(t, 1, nil)
	r.toSender(1)
	old, _ := r.claim("a-1")
	r.expire("a-1")
	fresh, ok := r.claim("a-1")
	if !ok || fresh.epoch != old.epoch+1 {
		t.Fatalf("not claimed again: %v, epoch %d after %d", ok, fresh.epoch, old.epoch)
	}
	r.record(old, send.Failed)
	r.wantRow(store.Sender, "a-1", store.Leased)
	if d := r.delivery("a-1"); d.State != store.StateReady {
		t.Fatalf("an old epoch's failure made it %s", d.State)
	}
	r.record(fresh, send.Delivered)
	if d := r.delivery("a-1"); d.State != store.StateDelivered {
		t.Fatalf("delivery is %s", d.State)
	}
}

// expire lets the lease of a delivery run out and the sweeper take it back.
func (r *rig) expire(name string) {
	r.t.Helper()
	row := r.row(store.Sender, name)
	err := r.st.Update(context.Background(), func(tx store.Tx) error {
		ws, err := tx.Work([]store.WorkKey{row.WorkKey})
		if err != nil {
			return err
		}
		ws[0].Lease = time.Now().Add(-time.Second)
		return tx.SaveWork(ws)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.p.relay.sweepAll(context.Background())
	r.wantRow(store.Sender, name, store.Ready)
}

func TestRuleProofCountsAlways(t *testing.T) {
	t.Parallel()
	t.Run("in an old epoch", func(t *testing.T) {
		t.Parallel()
		r := byHand(t, 2, nil)
		r.toSender(2)
		old, _ := r.claim("a-1")
		r.expire("a-1")
		r.record(old, send.Delivered)
		r.wantGone(store.Sender, "a-1")
		if d := r.delivery("a-1"); d.State != store.StateDelivered {
			t.Fatalf("the proof was thrown away: %s", d.State)
		}
		if _, ok := r.claim("a-2"); !ok {
			t.Fatal("the lane did not go on")
		}
	})
	t.Run("after dead", func(t *testing.T) {
		t.Parallel()
		r := byHand(t, 2, nil)
		r.toSender(2)
		old, _ := r.claim("a-1")
		r.expire("a-1")
		fresh, _ := r.claim("a-1")
		r.record(fresh, send.Failed)
		r.wantRow(store.Sender, "a-1", store.Dead)
		r.record(old, send.Delivered)
		r.wantGone(store.Sender, "a-1")
		if got := r.messages()["a-1"]; got != store.StateDelivered {
			t.Fatalf("message is %s, want delivered", got)
		}
		if _, ok := r.claim("a-2"); !ok {
			t.Fatal("the lane did not go on")
		}
	})
}

func TestRuleMessageIDFollowsTheGeneration(t *testing.T) {
	t.Parallel()
	r := byHand(t, 1, nil)
	r.toSender(1)
	id := func() string { return r.delivery("a-1").MessageID("") }
	first := id()
	f, _ := r.claim("a-1")
	r.record(f, send.Unknown)
	r.until("due", func() bool {
		r.p.relay.sweepAll(context.Background())
		return r.row(store.Sender, "a-1").State == store.Ready
	})
	if id() != first {
		t.Fatal("an unknown answer began a new Message-ID")
	}
	f, _ = r.claim("a-1")
	r.record(f, send.Failed)
	w := r.wantRow(store.Sender, "a-1", store.Dead)
	if d := r.delivery("a-1"); d.State != store.StateFailed {
		t.Fatalf("delivery is %s, want failed", d.State)
	}
	r.replay(w)
	if id() == first {
		t.Fatal("the replay of a refused delivery kept its Message-ID, which the partner takes for a repeat")
	}
}

func TestRuleRetriesEndAfterTheirTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status      send.Status
		code, state string
	}{{send.Retry, "RETRY_EXHAUSTED", store.StateFailed}, {send.Unknown, "SEND_UNKNOWN", store.StateUnknown}} {
		r := byHand(t, 1, nil)
		r.toSender(1)
		f, _ := r.claim("a-1")
		conn := *f.conn
		conn.Retry.For = time.Nanosecond
		f.conn = &conn
		r.record(f, c.status)
		if w := r.wantRow(store.Sender, "a-1", store.Dead); w.Code != c.code {
			t.Errorf("code %s, want %s", w.Code, c.code)
		}
		if d := r.delivery("a-1"); d.State != c.state {
			t.Errorf("delivery is %s, want %s", d.State, c.state)
		}
	}
}

func TestRuleAcknowledgeBehindTheEffect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var order []string
	r.opt.Probe = func(point string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		order = append(order, point)
	}
	r.start()
	r.accept("a-1")
	r.waitState(store.StateDelivered, "a-1")
	r.mu.Lock()
	defer r.mu.Unlock()
	text := strings.Join(order, " ")
	for i, p := range order {
		if p == "after-ack" && !slices.Contains(order[:i], "after-commit") {
			t.Fatalf("acknowledged before the commit: %s", text)
		}
		if p == "after-send" && !slices.Contains(order[:i], "before-send") {
			t.Fatalf("order of probes: %s", text)
		}
	}
}
