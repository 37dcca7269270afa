// Package pipeline moves messages from intake to delivery. Stages compute outcomes and know
// nothing of transactions; the runner in this package owns the promises: one effect, order where
// it is asked for, acknowledgement behind the effect and never before.
//
// Who does what: intake.go makes an arrival durable; pool.go computes outcomes in parallel;
// commit.go and unit.go are the transaction (gate, claims, effects, emission, wake); sender.go
// claims, sends and records; relay.go sweeps what waits; ops.go is what operators do.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/broker"
	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline/send"
	"github.com/edihub/edihub/internal/store"
)

// StageSettings of a pool. Workers is per node.
type StageSettings struct {
	Workers int
	Min     int
	Max     int
	Paused  bool
	Timeout time.Duration // for one message; an overrun counts as a crash
}

// Observer is told what happens, for metrics. It must be quick and safe for concurrent use.
type Observer interface {
	Handled(stage store.Stage, v Verdict, took time.Duration)
	Duplicate(scope store.Scope)
	Delivery(partner, state string)
	Dead(stage store.Stage, code string)
}

// Options of a Pipeline. Zero values take the defaults that are named.
type Options struct {
	Store    store.Store
	Broker   broker.Broker
	Registry *partner.Holder
	Clock    clock.Clock // the system's
	Log      *zap.Logger // none
	Observer Observer    // none
	Stages   map[store.Stage]Stage
	Settings map[store.Stage]StageSettings // 8 workers, 60 s; sender 16 workers, 10 min
	// Endpoint returns what sends over a connection, nil when nothing can.
	Endpoint func(c *partner.Connection) send.Endpoint
	// Dir holds the note of messages in hand.
	Dir string
	// Lease is how long a sender may be silent before its send is given to another.
	Lease time.Duration // 20 s
	// Stall is how long a send may take before it no longer counts against the pool's workers,
	// so that partners who hang leave the workers to the others.
	Stall time.Duration // 1 s
	// Retries of the stages; senders follow their connection.
	RetryFor, RetryFirst, RetryMax time.Duration // 72 h, 30 s, 15 min
	// Sweep is how often the store is searched for what waits.
	Sweep time.Duration // 1 s
	// Probe is called at named points, so that a test can stop the process there.
	Probe func(point string)
}

// Pipeline is a running hub without its edges.
type Pipeline struct {
	opt      Options
	store    store.Store
	broker   broker.Broker
	registry *partner.Holder
	clock    clock.Clock
	log      *zap.Logger
	obs      Observer

	background context.Context // for the store, until the very end
	endAll     context.CancelFunc
	computing  context.Context // for stages and sends; cancelled by a hard stop
	endCompute context.CancelFunc

	inhand  *inHand
	pools   map[store.Stage]*pool
	sender  *sender
	relay   *relay
	recent  *recent
	running atomic.Bool

	mu       sync.Mutex
	settings map[store.Stage]StageSettings
	stopPool context.CancelFunc
	started  bool
	wg       sync.WaitGroup
}

// DefaultSettings are the pools of CONTRACTS, Configuration.
func DefaultSettings() map[store.Stage]StageSettings {
	return map[store.Stage]StageSettings{
		store.Parser:    {Workers: 8, Min: 2, Max: 32, Timeout: 60 * time.Second},
		store.Validator: {Workers: 8, Min: 2, Max: 32, Timeout: 60 * time.Second},
		store.Router:    {Workers: 2, Min: 2, Max: 32, Timeout: 60 * time.Second},
		store.Sender:    {Workers: 16, Min: 2, Max: 64, Timeout: 10 * time.Minute},
	}
}

type noObserver struct{}

func (noObserver) Handled(store.Stage, Verdict, time.Duration) {}
func (noObserver) Duplicate(store.Scope)                       {}
func (noObserver) Delivery(string, string)                     {}
func (noObserver) Dead(store.Stage, string)                    {}

// New makes a pipeline; Start sets it going.
func New(o Options) *Pipeline {
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Observer == nil {
		o.Observer = noObserver{}
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&o.Lease, 20*time.Second)
	def(&o.Stall, time.Second)
	def(&o.RetryFor, 72*time.Hour)
	def(&o.RetryFirst, 30*time.Second)
	def(&o.RetryMax, 15*time.Minute)
	def(&o.Sweep, time.Second)
	settings := DefaultSettings()
	for s, v := range o.Settings {
		have := settings[s]
		if v.Workers > 0 {
			have.Workers = v.Workers
		}
		if v.Min > 0 {
			have.Min = v.Min
		}
		if v.Max > 0 {
			have.Max = v.Max
		}
		if v.Timeout > 0 {
			have.Timeout = v.Timeout
		}
		have.Paused = v.Paused
		settings[s] = have
	}
	p := &Pipeline{
		opt: o, store: o.Store, broker: o.Broker, registry: o.Registry, clock: o.Clock, log: o.Log, obs: o.Observer,
		settings: settings, pools: map[store.Stage]*pool{},
	}
	p.background, p.endAll = context.WithCancel(context.Background())
	p.computing, p.endCompute = context.WithCancel(context.Background())
	p.relay = newRelay(p)
	p.recent = newRecent(1024)
	return p
}

// Start begins to work. Messages that were in hand when the process died run alone first, in
// the background; Start does not wait for them.
func (p *Pipeline) Start(ctx context.Context) error {
	if err := p.loadSettings(ctx); err != nil {
		return err
	}
	ih, suspects, err := openInHand(filepath.Join(p.opt.Dir, "inhand"))
	if err != nil {
		return err
	}
	p.inhand = ih
	if err := p.countCrash(ctx, suspects); err != nil {
		return err
	}
	if err := ih.settle(); err != nil {
		return err
	}
	for s, impl := range p.opt.Stages {
		p.pools[s] = newPool(p, s, impl, p.settings[s])
	}
	if p.opt.Endpoint != nil {
		p.sender = newSender(p, p.settings[store.Sender])
	}
	poolCtx, stop := context.WithCancel(p.background)
	p.mu.Lock()
	p.stopPool, p.started = stop, true
	p.mu.Unlock()
	p.wg.Go(func() {
		p.quarantine(poolCtx, suspects)
		p.startPools(poolCtx)
	})
	return nil
}

func (p *Pipeline) startPools(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	for _, w := range p.pools {
		if err := w.start(ctx); err != nil {
			p.log.Error("pool_start", zap.Error(err))
		}
	}
	if p.sender != nil {
		if err := p.sender.start(ctx); err != nil {
			p.log.Error("sender_start", zap.Error(err))
		}
	}
	p.running.Store(true)
	p.relay.run(ctx) // until the end
}

// Stop finishes or gives back what is in hand. It returns when all is done, or when ctx ends and
// the rest was cut off; nothing is lost either way.
func (p *Pipeline) Stop(ctx context.Context) error {
	p.mu.Lock()
	if !p.started {
		p.mu.Unlock()
		p.endAll()
		return nil
	}
	p.started = false
	stop := p.stopPool
	p.mu.Unlock()
	p.running.Store(false)
	stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.wg.Wait()
		for _, w := range p.pools {
			if w.consumer != nil {
				<-w.done
				w.workers.Wait()
			}
		}
		if p.sender != nil && p.sender.consumer != nil {
			<-p.sender.done
		}
	}()
	var err error
	soft, cancel := p.clock.NewTimer(2 * time.Second)
	defer cancel()
	select {
	case <-done:
	case <-soft:
		p.endCompute() // stages and sends honour their context
		select {
		case <-done:
		case <-ctx.Done():
			err = errors.New("stopped before everything in hand was finished; it goes on at the next start")
		}
	case <-ctx.Done():
		err = errors.New("stopped before everything in hand was finished; it goes on at the next start")
	}
	p.endCompute()
	p.endAll()
	if p.inhand != nil {
		if cerr := p.inhand.close(); cerr != nil && err == nil {
			err = fmt.Errorf("close messages in hand: %w", cerr)
		}
	}
	return err
}

// countCrash writes down that the process died with these in hand.
func (p *Pipeline) countCrash(ctx context.Context, suspects []store.WorkKey) error {
	if len(suspects) == 0 {
		return nil
	}
	err := p.store.Update(ctx, func(tx store.Tx) error {
		u := newUnit(tx, p.clock.Now(), p.store.Boot())
		rows, err := tx.Work(suspects)
		if err != nil {
			return err
		}
		if err := u.lock(rows, nil); err != nil {
			return err
		}
		for _, r := range rows {
			if r == nil || r.State != store.Ready {
				continue
			}
			r.Crashes++
			if r.Crashes >= crashLimit {
				u.die(r, "PROCESS_CRASH", "the process died three times while this message was in hand", "")
				if err := u.objectDied(r, "PROCESS_CRASH"); err != nil {
					return err
				}
				continue
			}
			r.Handed = p.store.Boot() // quarantine has it, the relay must not hand it over
			u.save = append(u.save, r)
		}
		return u.finish()
	})
	if err != nil {
		return fmt.Errorf("count crash: %w", err)
	}
	return nil
}

// quarantine runs suspects alone, one after another, before anything else runs.
func (p *Pipeline) quarantine(ctx context.Context, suspects []store.WorkKey) {
	for _, k := range suspects {
		if ctx.Err() != nil {
			return
		}
		row, err := p.store.GetWork(ctx, k)
		if err != nil || row.State != store.Ready {
			continue
		}
		w := p.pools[k.Stage]
		if w == nil {
			p.republish(row)
			continue
		}
		p.log.Warn("runs_alone", zap.String("stage", k.Stage.String()), zap.String("id", k.ID.String()), zap.Int("crashes", row.Crashes))
		w.alone(ctx, row)
	}
}

func (p *Pipeline) republish(row *store.Work) {
	p.publish([]edi.Copy{{Stage: row.Stage, ID: row.ID, Kind: row.Kind, Lane: row.Lane, Seq: row.Seq, Gen: row.Gen, Topic: row.Topic, Crashes: row.Crashes}})
}

// alone computes and commits one row while nothing else runs. A row whose turn has not come
// parks; a chunked split is left to the pool once its first chunk has survived.
func (w *pool) alone(ctx context.Context, row *store.Work) {
	d := broker.Delivery{Copy: edi.Copy{Stage: row.Stage, ID: row.ID, Kind: row.Kind, Lane: row.Lane, Seq: row.Seq, Gen: row.Gen, Topic: row.Topic}}
	j := &job{d: d}
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		w.run(j, nil)
	}()
	limit, stop := w.p.clock.NewTimer(w.timeout)
	defer stop()
	select {
	case <-ran:
	case <-limit:
		j = &job{d: d, out: &Outcome{Verdict: Dead, crash: true, Code: "STAGE_TIMEOUT", Detail: fmt.Sprintf("the %s did not finish within %s", w.stage, w.timeout)}}
	case <-ctx.Done():
		return
	}
	if j.out == nil {
		return
	}
	fates, err := w.commit.commit(ctx, []*job{j})
	if err != nil {
		w.p.log.Warn("store_waits", zap.String("stage", w.stage.String()), zap.Error(err))
		return
	}
	j.out.release()
	if fates[0] == fateFollow || fates[0] == fateAgain {
		if now, err := w.p.store.GetWork(ctx, row.WorkKey); err == nil {
			w.p.republish(now)
		}
	}
}

// runsFused reports whether a hop of the stage may be taken in the transaction of the one
// before: this node runs the stage and it is not paused.
func (p *Pipeline) runsFused(s store.Stage) bool {
	w := p.pools[s]
	return w != nil && p.running.Load() && !w.stats.paused.Load() && w.stats.want.Load() > 0
}

func (p *Pipeline) probe(point string) {
	if p.opt.Probe != nil {
		p.opt.Probe(point)
	}
}

// pause waits; false means that ctx has ended.
func (p *Pipeline) pause(ctx context.Context, d time.Duration) bool {
	c, stop := p.clock.NewTimer(d)
	defer stop()
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}

// backoff doubles from first up to limit, with up to a quarter of jitter so that what failed
// together does not come again together.
func (p *Pipeline) backoff(tries int, first, limit time.Duration) time.Duration {
	d := first
	for i := 1; i < tries && d < limit; i++ {
		d *= 2
	}
	d = min(d, limit)
	if d <= 0 {
		return 0
	}
	return d - time.Duration(rand.Int64N(int64(d)/4+1)) //nolint:gosec // G404: jitter is no secret.
}

// Registry returns the partner records of this moment.
func (p *Pipeline) Registry() *partner.Registry { return p.registry.Current() }
