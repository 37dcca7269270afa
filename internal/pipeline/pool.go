package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/broker"
	"github.com/edihub/edihub/internal/store"
)

// batchLimit is how many outcomes go into one transaction.
const batchLimit = 64

// pool is the competing workers of a pure stage, with the collector that feeds them and the
// committer that makes their outcomes true. One goroutine (loop) owns its state.
type pool struct {
	p       *Pipeline
	stage   store.Stage
	impl    Stage
	timeout time.Duration
	commit  committer

	work    chan *job     // to the workers
	fin     chan *job     // from the workers
	quit    chan struct{} // one token ends one worker
	room    chan int      // asks the collector for that many copies
	in      chan []broker.Delivery
	cmds    chan func()   // runs in the loop
	done    chan struct{} // closed when the loop has ended
	settled chan settled  // a commit has ended
	workers sync.WaitGroup

	// Owned by the loop.
	hand       map[int64][]*held // per lane, by sequence
	inHand     int
	asking     bool
	committing bool
	stopping   bool
	paused     bool
	want       int
	alive      int

	stats    poolStats
	consumer broker.Consumer
}

// held is a job between its arrival and its commit.
type held struct {
	j        *job
	finished bool
	overrun  bool         // owned by the loop
	replaced atomic.Bool  // the same, for the worker
	begun    atomic.Int64 // unix nanoseconds, 0 until a worker has it
	more     func(ctx context.Context) *Outcome
}

type settled struct {
	batch []*held
	fates []fate
}

type poolStats struct {
	want, alive, running atomic.Int64
	paused               atomic.Bool
	handled              atomic.Int64
}

func newPool(p *Pipeline, stage store.Stage, impl Stage, s StageSettings) *pool {
	return &pool{
		p: p, stage: stage, impl: impl, timeout: s.Timeout, commit: committer{p},
		work: make(chan *job, 4096), fin: make(chan *job, 4096), quit: make(chan struct{}, 1024),
		room: make(chan int, 1), in: make(chan []broker.Delivery), cmds: make(chan func()), done: make(chan struct{}),
		settled: make(chan settled, 1),
		hand:    map[int64][]*held{}, want: s.Workers, paused: s.Paused,
	}
}

// start subscribes and runs the loop until ctx ends.
func (w *pool) start(ctx context.Context) error {
	c, err := w.p.broker.Subscribe(ctx, broker.Subscription{Stage: w.stage})
	if err != nil {
		return fmt.Errorf("subscribe %s: %w", w.stage, err)
	}
	w.consumer = c
	go w.collect(ctx)
	go w.loop(ctx)
	return nil
}

// collect receives as many copies as the loop has room for.
func (w *pool) collect(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-w.room:
			ds, err := w.consumer.Receive(ctx, n, 0)
			if err != nil {
				if ctx.Err() != nil || errors.Is(err, broker.ErrClosed) {
					return
				}
				w.p.log.Warn("receive_failed", zap.String("stage", w.stage.String()), zap.Error(err))
				if !w.p.pause(ctx, time.Second) {
					return
				}
			}
			select {
			case w.in <- ds:
			case <-ctx.Done():
				w.consumer.Return(ds)
				return
			}
		}
	}
}

// limit is how many copies may be in hand: enough for a full batch while the next is computed.
func (w *pool) limit() int { return max(2*batchLimit, 4*w.want) }

func (w *pool) loop(ctx context.Context) {
	defer close(w.done)
	tick, stop := w.p.clock.NewTimer(w.watchEvery())
	defer func() { stop() }()
	stopped := ctx.Done()
	for {
		w.scale()
		if !w.stopping && !w.off() && !w.asking && w.inHand < w.limit() {
			w.asking = true
			w.room <- w.limit() - w.inHand
		}
		w.dispatchCommit()
		if w.stopping && w.idle() {
			w.end()
			return
		}
		select {
		case <-stopped:
			stopped = nil
			w.stopping = true
			w.giveBack()
		case ds := <-w.in:
			w.asking = false
			w.accept(ds)
		case j := <-w.fin:
			w.finished(j)
			w.drain()
		case s := <-w.settled:
			w.settle(s)
		case f := <-w.cmds:
			f()
		case <-tick:
			w.watch()
			tick, stop = w.p.clock.NewTimer(w.watchEvery())
		}
	}
}

func (w *pool) watchEvery() time.Duration {
	return min(250*time.Millisecond, max(w.timeout/4, time.Millisecond))
}

func (w *pool) drain() {
	for {
		select {
		case j := <-w.fin:
			w.finished(j)
		default:
			return
		}
	}
}

// off reports whether the pool takes nothing: paused, or scaled to nobody.
func (w *pool) off() bool { return w.paused || w.want == 0 }

// scale starts or ends workers until as many are alive as wanted.
func (w *pool) scale() {
	want := w.want
	if w.stopping {
		return
	}
	for w.alive < want {
		w.alive++
		w.workers.Add(1)
		go w.worker()
	}
	for w.alive > want {
		w.alive--
		w.quit <- struct{}{}
	}
	w.stats.want.Store(int64(w.want))
	w.stats.alive.Store(int64(w.alive))
	w.stats.paused.Store(w.paused)
}

func (w *pool) accept(ds []broker.Delivery) {
	for _, d := range ds {
		if w.stopping || w.off() {
			w.consumer.Return([]broker.Delivery{d})
			continue
		}
		h := &held{j: &job{d: d}}
		h.j.h = h
		w.add(h)
		w.inHand++
		w.work <- h.j
	}
}

// add keeps the lane's jobs in sequence, so that outcomes take effect in order however the
// workers finish.
func (w *pool) add(h *held) {
	lane := w.hand[h.j.d.Lane]
	at := len(lane)
	for at > 0 && lane[at-1].j.d.Seq > h.j.d.Seq {
		at--
	}
	w.hand[h.j.d.Lane] = slices.Insert(lane, at, h)
}

func (w *pool) drop(h *held) {
	lane := w.hand[h.j.d.Lane]
	if i := slices.Index(lane, h); i >= 0 {
		lane = slices.Delete(lane, i, i+1)
		w.inHand--
	}
	if len(lane) == 0 {
		delete(w.hand, h.j.d.Lane)
		return
	}
	w.hand[h.j.d.Lane] = lane
}

func (w *pool) finished(j *job) {
	h := j.h
	if h.overrun {
		// Its worker was replaced and its crash is recorded; the gate refuses what it says now.
		j.out.release()
		late := &held{j: &job{d: j.d, out: j.out}, finished: true, overrun: true}
		late.j.h = late
		w.add(late)
		w.inHand++
		return
	}
	if j.out == nil { // cut off by a hard stop
		w.consumer.Return([]broker.Delivery{j.d})
		w.drop(h)
		return
	}
	h.finished = true
}

// dispatchCommit sends the next batch to the store while the workers go on.
func (w *pool) dispatchCommit() {
	if w.committing {
		return
	}
	var batch []*held
	for _, lane := range w.hand {
		for _, h := range lane {
			if len(batch) >= batchLimit {
				break
			}
			if !h.finished {
				if h.j.d.Free {
					continue
				}
				break // those behind wait for their turn
			}
			batch = append(batch, h)
		}
	}
	if len(batch) == 0 {
		return
	}
	w.committing = true
	go w.runCommit(batch)
}

func (w *pool) runCommit(batch []*held) {
	jobs := make([]*job, len(batch))
	for i, h := range batch {
		jobs[i] = h.j
	}
	wait := 50 * time.Millisecond
	for {
		fates, err := w.commit.commit(w.p.background, jobs)
		if err == nil {
			w.settled <- settled{batch, fates}
			return
		}
		// The store is away. Nothing happened; consumers pause, they do not give back.
		w.p.log.Warn("store_waits", zap.String("stage", w.stage.String()), zap.Error(err))
		if !w.p.pause(w.p.background, wait) {
			w.settled <- settled{batch, nil}
			return
		}
		wait = min(2*wait, 2*time.Second)
	}
}

func (w *pool) settle(s settled) {
	w.committing = false
	var acks, back []broker.Delivery
	for i, h := range s.batch {
		f := fate(0)
		if s.fates != nil {
			f = s.fates[i]
		}
		switch f {
		case fateAgain, fateFollow:
			h.finished = false
			h.begun.Store(0)
			h.more = nil
			if f == fateFollow {
				h.more = h.j.out.More
			} else {
				h.j.out.release()
			}
			if w.stopping {
				h.j.out.release()
				back = append(back, h.j.d)
				w.drop(h)
				continue
			}
			w.work <- h.j
		case fateDone, fateStale, fateWaits:
			if !h.overrun {
				w.p.obs.Handled(w.stage, h.j.out.Verdict, h.j.took)
				w.stats.handled.Add(1)
			}
			h.j.out.release()
			acks = append(acks, h.j.d)
			w.drop(h)
		default: // the store never came back before the end
			h.j.out.release()
			back = append(back, h.j.d)
			w.drop(h)
		}
	}
	if len(acks) > 0 {
		w.consumer.Ack(acks)
		w.p.probe("after-ack")
	}
	if len(back) > 0 {
		w.consumer.Return(back)
	}
}

// watch counts a worker that overran its time limit as crashed and replaces it.
func (w *pool) watch() {
	now := w.p.clock.Now().UnixNano()
	for _, lane := range w.hand {
		for _, h := range slices.Clone(lane) {
			begun := h.begun.Load()
			if h.finished || h.overrun || begun == 0 || now-begun < int64(w.timeout) {
				continue
			}
			h.overrun = true
			h.replaced.Store(true)
			w.workers.Add(1)
			go w.worker() // the one that hangs ends when it comes back
			crash := &held{j: &job{d: h.j.d, out: &Outcome{
				Verdict: Dead, crash: true, Code: "STAGE_TIMEOUT",
				Detail: fmt.Sprintf("the %s did not finish within %s", w.stage, w.timeout),
			}, took: w.timeout}, finished: true}
			crash.j.h = crash
			w.drop(h)
			w.add(crash)
			w.inHand++
		}
	}
}

// giveBack returns copies that no worker has begun.
func (w *pool) giveBack() {
	for {
		select {
		case j := <-w.work:
			w.consumer.Return([]broker.Delivery{j.d})
			w.drop(j.h)
		default:
			return
		}
	}
}

func (w *pool) idle() bool { return !w.committing && w.inHand == 0 }

func (w *pool) end() {
	close(w.work) // workers end
	if err := w.consumer.Close(); err != nil {
		w.p.log.Warn("consumer_close", zap.String("stage", w.stage.String()), zap.Error(err))
	}
}

func (w *pool) worker() {
	defer w.workers.Done()
	for {
		select {
		case <-w.quit:
			return
		default:
		}
		select {
		case <-w.quit:
			return
		case j, ok := <-w.work:
			if !ok {
				return
			}
			h := j.h
			h.begun.Store(w.p.clock.Now().UnixNano())
			w.stats.running.Add(1)
			w.run(j, h.more)
			w.stats.running.Add(-1)
			select {
			case w.fin <- j:
			case <-w.done:
				return
			}
			if h.replaced.Load() {
				return // a replacement has taken this worker's place
			}
		}
	}
}

// run computes the outcome of one job. A panic of the stage is an outcome too.
func (w *pool) run(j *job, more func(context.Context) *Outcome) {
	start := w.p.clock.Now()
	slot := w.p.inhand.take(store.WorkKey{Stage: j.d.Stage, ID: j.d.ID})
	ctx, cancel := context.WithCancel(w.p.computing)
	defer func() {
		cancel()
		w.p.inhand.done(slot)
		if r := recover(); r != nil {
			j.out = panicked(w.stage, r)
			w.p.log.Error("stage_panic", zap.String("stage", w.stage.String()), zap.String("id", j.d.ID.String()), zap.String("panic", PanicText(r)), zap.Stack("stack"))
		}
		j.took = w.p.clock.Now().Sub(start)
	}()
	if more != nil {
		before := j.out
		j.out = more(ctx)
		if j.out == nil {
			before.release()
			return
		}
		j.out.Step = before.Step + 1
		w.p.stamp(j.out, before.Profile)
		return
	}
	j.out = w.p.compute(ctx, w.stage, w.impl, &j.d.Copy)
}

func panicked(s store.Stage, r any) *Outcome {
	return &Outcome{Verdict: Dead, crash: true, Code: "STAGE_PANIC", Detail: fmt.Sprintf("the %s panicked: %s", s, PanicText(r))}
}

// PanicText names a panic for a log without its value, which could hold payload; what the runtime
// itself says (index out of range) is safe.
func PanicText(r any) string {
	if e, ok := r.(runtime.Error); ok {
		return e.Error()
	}
	return fmt.Sprintf("%T", r)
}
