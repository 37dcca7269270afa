package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/broker"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline/send"
	"github.com/edihub/edihub/internal/store"
)

// runLimit is how many deliveries of an ordered lane one claim takes. They leave one after another,
// each after the proof of the one before, without a transaction in between.
const runLimit = 16

// sender is the pool of the sender stage. Sending has an outside effect, so a delivery is claimed
// first (leased, with an epoch), then sent outside of any transaction, then recorded. One
// goroutine (loop) owns the state; sends run beside it.
type sender struct {
	p        *Pipeline
	timeout  time.Duration
	consumer broker.Consumer

	in      chan []broker.Delivery
	room    chan int
	results chan *flight
	stalls  chan *flight
	settled chan *round
	cmds    chan func()
	stop    <-chan struct{} // closed when nothing more may take off
	done    chan struct{}

	// Owned by the loop.
	pending  []*flight           // taken, not claimed
	lanes    map[int64][]*flight // ordered lanes: who has the turn, and who waits in memory
	flying   map[store.WorkKey]*flight
	answered []*flight // to be recorded
	slots    int       // sends that count against the workers
	runs     int       // runs in the air
	asking   bool
	busy     bool // a transaction runs
	stopping bool
	paused   bool
	want     int

	mu    sync.Mutex
	conns map[string]int          // claimed or flying per connection, for Allow
	held  map[store.WorkKey]int64 // epoch of what is in flight, for the sweeper

	stats poolStats
}

// flight is one delivery on its way.
type flight struct {
	d        broker.Delivery
	delivery *store.Delivery
	conn     *partner.Connection
	epoch    int64
	result   send.Result
	slot     bool
	cut      bool // the hub stopped before an answer came
	away     bool // in a transaction or in the air: not to be given back
	unsent   bool // one before it in its run brought no proof, so it never left

	// run has the deliveries of one lane that were claimed together, this one first.
	run  []*flight
	lead *flight // the first of its run
}

func newFlight(d broker.Delivery) *flight {
	f := &flight{d: d}
	f.lead, f.run = f, []*flight{f}
	return f
}

// ends reports whether the flight is the last of its run.
func (f *flight) ends() bool { return f.lead.run[len(f.lead.run)-1] == f }

// round is one transaction of the sender: records first, then claims.
type round struct {
	records []*flight
	claims  []*flight       // the first of each run
	granted map[*flight]int // how many of the run
	err     error
}

func newSender(p *Pipeline, s StageSettings) *sender {
	return &sender{
		p: p, timeout: s.Timeout, want: s.Workers, paused: s.Paused,
		in: make(chan []broker.Delivery), room: make(chan int, 1), results: make(chan *flight, 4096), stalls: make(chan *flight, 4096),
		settled: make(chan *round, 1), cmds: make(chan func()), done: make(chan struct{}),
		lanes: map[int64][]*flight{}, flying: map[store.WorkKey]*flight{}, conns: map[string]int{}, held: map[store.WorkKey]int64{},
	}
}

func (s *sender) start(ctx context.Context) error {
	c, err := s.p.broker.Subscribe(ctx, broker.Subscription{Stage: store.Sender, Allow: s.allow})
	if err != nil {
		return fmt.Errorf("subscribe sender: %w", err)
	}
	s.consumer, s.stop = c, ctx.Done()
	go s.collect(ctx)
	go s.loop(ctx)
	return nil
}

// allow keeps the in_flight limit of a connection; copies of a lane that is busy may be taken
// beyond it, they wait in memory.
func (s *sender) allow(topic string) int {
	c := s.p.registry.Current().Connection(topic)
	limit := 4
	if c != nil && c.InFlight > 0 {
		limit = c.InFlight
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return limit - s.conns[topic]
}

// holds reports whether the lease of the row is ours and alive.
func (s *sender) holds(row *store.Work) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[row.WorkKey] == row.Epoch && row.Owner == s.owner()
}

func (s *sender) owner() string { return strconv.FormatInt(s.p.store.Boot(), 10) }

func (s *sender) collect(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-s.room:
			ds, err := s.consumer.Receive(ctx, n, 0)
			if err != nil {
				if ctx.Err() != nil || errors.Is(err, broker.ErrClosed) {
					return
				}
				s.p.log.Warn("receive_failed", zap.String("stage", "sender"), zap.Error(err))
				if !s.p.pause(ctx, time.Second) {
					return
				}
			}
			select {
			case s.in <- ds:
			case <-ctx.Done():
				s.consumer.Return(ds)
				return
			}
		}
	}
}

func (s *sender) off() bool { return s.paused || s.want == 0 }

func (s *sender) loop(ctx context.Context) {
	defer close(s.done)
	every := s.p.opt.Lease / 3
	tick, stop := s.p.clock.NewTimer(every)
	defer func() { stop() }()
	stopped := ctx.Done()
	for {
		s.stats.want.Store(int64(s.want))
		s.stats.alive.Store(int64(s.want))
		s.stats.running.Store(int64(s.runs))
		s.stats.paused.Store(s.paused)
		if !s.stopping && !s.off() && !s.asking && s.waiting() < 2*batchLimit {
			s.asking = true
			s.room <- batchLimit
		}
		s.transact()
		if s.stopping && !s.busy && len(s.flying) == 0 && len(s.answered) == 0 {
			s.end()
			return
		}
		select {
		case <-stopped:
			stopped = nil
			s.stopping = true
			s.returnWaiting()
		case ds := <-s.in:
			s.asking = false
			s.accept(ds)
		case f := <-s.results:
			s.landed(f)
			s.drain()
		case f := <-s.stalls:
			s.stall(f)
		case r := <-s.settled:
			s.settle(r)
		case f := <-s.cmds:
			f()
		case <-tick:
			s.renew()
			tick, stop = s.p.clock.NewTimer(every)
		}
	}
}

func (s *sender) drain() {
	for {
		select {
		case f := <-s.results:
			s.landed(f)
		default:
			return
		}
	}
}

// waiting counts what was taken and is not in the air.
func (s *sender) waiting() int { return len(s.pending) }

func (s *sender) accept(ds []broker.Delivery) {
	var back []broker.Delivery
	for _, d := range ds {
		if s.stopping || s.off() {
			back = append(back, d)
			continue
		}
		f := newFlight(d)
		if d.Free {
			s.pending = append(s.pending, f)
			s.reserve(d.Topic, 1)
			continue
		}
		q := s.lanes[d.Lane]
		if len(q) == 0 {
			s.pending = append(s.pending, f)
			s.reserve(d.Topic, 1)
		}
		at := len(q)
		for at > 1 && q[at-1].d.Seq > d.Seq { // the first has the turn and stays first
			at--
		}
		s.lanes[d.Lane] = slices.Insert(q, at, f)
	}
	if len(back) > 0 {
		s.consumer.Return(back)
	}
}

func (s *sender) reserve(topic string, n int) {
	s.mu.Lock()
	s.conns[topic] += n
	if s.conns[topic] <= 0 {
		delete(s.conns, topic)
	}
	s.mu.Unlock()
	if n < 0 && s.consumer != nil {
		s.consumer.Poke()
	}
}

// runOf finds what may be claimed together with the first of an ordered lane: what waits in memory
// directly behind it.
func (s *sender) runOf(f *flight) []*flight {
	run := []*flight{f}
	if f.d.Free {
		return run
	}
	for _, next := range s.lanes[f.d.Lane] {
		if next == f {
			continue
		}
		if len(run) == runLimit || next.d.Seq != run[len(run)-1].d.Seq+1 || next.d.Topic != f.d.Topic {
			break
		}
		run = append(run, next)
	}
	return run
}

// laneGoesOn gives the turn to the next of the lane that waits in memory.
func (s *sender) laneGoesOn(f *flight) {
	if f.d.Free {
		return
	}
	q := s.lanes[f.d.Lane]
	if len(q) == 0 || q[0] != f {
		return
	}
	q = q[1:]
	if len(q) == 0 {
		delete(s.lanes, f.d.Lane)
		return
	}
	s.lanes[f.d.Lane] = q
	s.pending = append(s.pending, q[0])
	s.reserve(q[0].d.Topic, 1)
}

// transact starts the next transaction: everything that was answered, and claims for the free
// slots. A lane's next delivery is claimed in the transaction that records the one before.
func (s *sender) transact() {
	if s.busy {
		return
	}
	r := &round{granted: map[*flight]int{}}
	r.records = s.answered
	if len(r.records) > batchLimit {
		r.records = r.records[:batchLimit]
	}
	s.answered = s.answered[len(r.records):]
	for _, f := range r.records {
		if f.ends() {
			s.laneGoesOn(f.lead)
		}
	}
	free := s.want - s.slots
	if !s.stopping && !s.paused {
		for len(s.pending) > 0 && len(r.claims) < min(free, batchLimit) {
			r.claims = append(r.claims, s.pending[0])
			s.pending = s.pending[1:]
		}
	}
	if len(r.records) == 0 && len(r.claims) == 0 {
		return
	}
	for _, f := range r.claims {
		f.slot = true
		s.slots++
		f.run = s.runOf(f)
		for _, next := range f.run {
			next.lead, next.away = f, true
		}
	}
	s.busy = true
	go s.runRound(r)
}

func (s *sender) runRound(r *round) {
	wait := 50 * time.Millisecond
	for {
		r.err = s.once(r)
		if r.err == nil {
			break
		}
		s.p.log.Warn("store_waits", zap.String("stage", "sender"), zap.Error(r.err))
		if !s.p.pause(s.p.background, wait) {
			break
		}
		wait = min(2*wait, 2*time.Second)
	}
	s.settled <- r
}

func (s *sender) once(r *round) error {
	for _, lead := range r.claims {
		for _, f := range lead.run {
			if err := s.load(f); err != nil {
				return err
			}
		}
	}
	err := s.p.update(s.p.background, func(u *unit) error {
		clear(r.granted)
		return s.apply(u, r)
	})
	if err != nil {
		return fmt.Errorf("record %d and claim %d sends: %w", len(r.records), len(r.claims), err)
	}
	return nil
}

// load reads what is to be sent, unless it was made a moment ago.
func (s *sender) load(f *flight) error {
	if f.delivery != nil {
		return nil
	}
	if f.delivery = s.p.recent.takeDelivery(f.d.ID); f.delivery != nil {
		return nil
	}
	d, err := s.p.store.GetDelivery(s.p.background, f.d.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("read delivery: %w", err)
	}
	f.delivery = d
	return nil
}

func (s *sender) apply(u *unit, r *round) error {
	ds := make([]broker.Delivery, 0, len(r.records)+len(r.claims))
	for _, f := range r.records {
		ds = append(ds, f.d)
	}
	at := make([]int, len(r.claims)) // where the rows of each run begin
	for i, lead := range r.claims {
		at[i] = len(ds)
		for _, f := range lead.run {
			ds = append(ds, f.d)
		}
	}
	rows, err := u.rowsOf(ds)
	if err != nil {
		return err
	}
	if err := u.lock(rows, nil); err != nil {
		return err
	}
	for i, f := range r.records {
		if err := s.record(u, f, rows[i]); err != nil {
			return err
		}
	}
	claims := make([]int, len(r.claims))
	for i := range claims {
		claims[i] = i
	}
	slices.SortStableFunc(claims, func(a, b int) int {
		x, y := r.claims[a].d, r.claims[b].d
		return cmp.Or(cmp.Compare(x.Lane, y.Lane), cmp.Compare(x.Seq, y.Seq))
	})
	taken := map[store.WorkKey]bool{}
	for _, i := range claims {
		if r.granted[r.claims[i]], err = s.claimRun(u, r.claims[i].run, rows[at[i]:], taken); err != nil {
			return err
		}
	}
	return nil
}

// claimRun claims the first of a run through the gate, and those behind it as long as each could
// take its turn directly after the one before. It returns how many were claimed.
func (s *sender) claimRun(u *unit, run []*flight, rows []*store.Work, taken map[store.WorkKey]bool) (int, error) {
	for i, f := range run {
		key := store.WorkKey{Stage: f.d.Stage, ID: f.d.ID}
		if taken[key] {
			return i, nil // a second copy of a row that this transaction gave away
		}
		if i == 0 {
			ok, err := s.claim(u, f, rows[0])
			if err != nil || !ok {
				return 0, err
			}
		} else {
			if !follows(u, rows[i-1], rows[i], run[i-1], f) {
				return i, nil
			}
			s.lease(u, f, rows[i])
			f.conn = run[0].conn
		}
		taken[key] = true
	}
	return len(run), nil
}

// follows reports whether the row may be claimed behind the one before it: it needs nothing but
// that one's proof.
func follows(u *unit, before, row *store.Work, last, f *flight) bool {
	if row == nil || row.Gen != f.d.Gen || row.State != store.Ready || row.Gap || before.Gap || row.Epoch > 0 || f.delivery == nil {
		return false // what was on its way before goes through the gate alone
	}
	l := u.lanes[row.Lane]
	return row.Lane == before.Lane && l.Ordered && l.Policy != string(partner.HoldKey) &&
		row.Seq == before.Seq+1 && row.Topic == before.Topic && f.delivery.Partner == last.delivery.Partner
}

// lease gives the row to this process for a while.
func (s *sender) lease(u *unit, f *flight, row *store.Work) {
	row.State, row.Owner, row.Lease = store.Leased, s.owner(), u.now.Add(s.p.opt.Lease)
	row.Epoch++
	f.epoch = row.Epoch
	u.save = append(u.save, row)
}

// claim takes the row through the gate and leases it. The lane does not move: it moves when the
// send is answered.
func (s *sender) claim(u *unit, f *flight, row *store.Work) (bool, error) {
	p, err := u.gate(row, f.d.Gen)
	if err != nil || p != passGo {
		return false, err
	}
	reg := s.p.registry.Current()
	f.conn = reg.Connection(row.Topic)
	if f.delivery == nil {
		u.die(row, "OBJECT_MISSING", "the delivery of this row is gone", "")
		return false, nil
	}
	if f.conn == nil {
		u.die(row, "NO_CONNECTION", "connection "+row.Topic+" is not in the partner records; add it and replay", f.delivery.Partner)
		return false, s.messagesDied(u, f.delivery, "NO_CONNECTION")
	}
	if pt := reg.Partner(f.delivery.Partner); pt != nil && pt.Status == partner.Suspended {
		u.later(row, u.now.Add(s.p.opt.RetryFirst), "PARTNER_SUSPENDED", "the partner is suspended")
		return false, nil
	}
	if row.Epoch > 0 {
		// It was on its way before; a proof may have come that could not move the lane then.
		d, err := u.tx.Delivery(f.d.ID)
		if err != nil {
			return false, fmt.Errorf("claim send: %w", err)
		}
		if f.delivery = d; d.State == store.StateDelivered {
			u.through(row)
			return false, nil
		}
	}
	s.lease(u, f, row)
	return true, nil
}

// record writes down what the receiver said. A proof counts in every epoch, a failure only in
// its own (DESIGN §3, Sending).
func (s *sender) record(u *unit, f *flight, row *store.Work) error {
	positive := f.result.Status == send.Delivered
	current := row != nil && row.State == store.Leased && row.Epoch == f.epoch && row.Owner == s.owner()
	if !positive && !current {
		return nil
	}
	if f.cut || f.unsent {
		// The hub stops, and the next one sends it again under the same Message-ID; or it never left.
		u.again(row)
		return nil
	}
	if !positive && early(u, row) {
		u.again(row) // the policy of its lane may act only when its turn has come
		return nil
	}
	d, err := u.tx.Delivery(f.d.ID)
	if err != nil {
		return fmt.Errorf("record send: %w", err)
	}
	if d.State == store.StateDelivered {
		return nil
	}
	d.Tries++
	d.Code, d.Detail = f.result.Code, f.result.Detail
	switch f.result.Status {
	case send.Delivered:
		return s.delivered(u, f, row, d)
	case send.Failed:
		d.State, d.EndedAt = store.StateFailed, u.now
		u.die(row, cmp.Or(f.result.Code, "SEND_FAILED"), f.result.Detail, d.Partner)
		s.p.obs.Dead(store.Sender, row.Code)
		if err := s.messagesDied(u, d, row.Code); err != nil {
			return err
		}
	default: // Retry, Unknown, Pending
		row.Tries++
		if err := s.again(u, f, row, d); err != nil {
			return err
		}
	}
	s.p.obs.Delivery(d.Partner, d.State)
	if len(f.result.Evidence) > 0 {
		d.Evidence = f.result.Evidence
	}
	if err := u.tx.SaveDelivery(d); err != nil {
		return fmt.Errorf("record send: %w", err)
	}
	return nil
}

// early reports whether a row before this one is not through. It can be so only when that one was
// taken away from us while both were on their way.
func early(u *unit, row *store.Work) bool {
	l := u.lanes[row.Lane]
	return l.Ordered && !row.Gap && row.Seq > l.Next
}

func (s *sender) delivered(u *unit, f *flight, row *store.Work, d *store.Delivery) error {
	d.State, d.Proof, d.MIC, d.EndedAt = store.StateDelivered, f.result.Proof, f.result.MIC, u.now
	d.Evidence = f.result.Evidence
	if err := u.tx.SaveDelivery(d); err != nil {
		return fmt.Errorf("record proof: %w", err)
	}
	u.ends = append(u.ends, End{Messages: d.Messages, State: store.StateDelivered})
	for _, id := range d.Messages {
		u.events = append(u.events, store.Event{Object: id, At: u.now, Name: "delivered", Detail: d.Proof})
	}
	u.events = append(u.events, store.Event{Object: d.ID, At: u.now, Name: "delivered", Detail: d.Proof})
	s.p.obs.Delivery(d.Partner, d.State)
	if row == nil {
		return nil
	}
	l := u.lanes[row.Lane]
	if early(u, row) {
		// One before it is not through: it was taken away from us on its way. This row keeps its
		// place in the lane, and ends there when its turn comes.
		if row.State == store.Leased {
			row.Owner, row.Lease = "", time.Time{}
			u.park(row, l)
		}
		return nil
	}
	if row.State == store.Parked {
		l.Waiting = max(0, l.Waiting-1)
	}
	u.through(row)
	return nil
}

// again sets a delivery aside until its next try, or ends it when its time is over.
func (s *sender) again(u *unit, f *flight, row *store.Work, d *store.Delivery) error {
	r := f.conn.Retry
	limit, first, most := cmp.Or(r.For, 72*time.Hour), cmp.Or(r.First, 30*time.Second), cmp.Or(r.Max, 15*time.Minute)
	if u.now.Sub(row.Since) >= limit {
		code := "RETRY_EXHAUSTED"
		d.State = store.StateFailed
		if f.result.Status != send.Retry {
			code, d.State = "SEND_UNKNOWN", store.StateUnknown
		}
		d.EndedAt = u.now
		u.die(row, code, "no proof within "+limit.String()+"; last answer "+f.result.Code+" "+f.result.Detail, d.Partner)
		return s.messagesDied(u, d, code)
	}
	wait := s.p.backoff(row.Tries, first, most)
	if f.result.After > 0 {
		wait = min(max(wait, f.result.After), 24*time.Hour)
	}
	u.later(row, u.now.Add(wait), cmp.Or(f.result.Code, "SEND_RETRY"), f.result.Detail)
	return nil
}

func (s *sender) messagesDied(u *unit, d *store.Delivery, code string) error {
	for _, id := range d.Messages {
		m, err := u.tx.Message(id)
		if err != nil {
			return fmt.Errorf("mark message dead: %w", err)
		}
		m.State, m.Code = store.StateDead, code
		u.oldMsg[id] = m
	}
	return nil
}

// settle acts on a finished transaction: copies are acknowledged, claimed deliveries take off.
func (s *sender) settle(r *round) {
	s.busy = false
	for _, f := range r.records {
		s.gone(f)
		s.p.probe("after-record")
	}
	var acks, back []broker.Delivery
	for _, f := range r.claims {
		n := r.granted[f]
		if r.err != nil {
			n = 0
		}
		s.takeOff(f, n)
		switch {
		case n > 0:
			for _, next := range f.run {
				acks = append(acks, next.d)
			}
		default:
			if r.err != nil {
				back = append(back, f.d)
			} else {
				acks = append(acks, f.d) // stale, parked or dead: the store has the row
			}
			s.freeSlot(f)
			s.reserve(f.d.Topic, -1)
			s.laneGoesOn(f)
		}
	}
	s.consumer.Ack(acks)
	if len(back) > 0 {
		s.consumer.Return(back)
	}
	for _, f := range r.claims {
		if r.err == nil && r.granted[f] > 0 {
			go s.fly(f.run)
		}
	}
}

// takeOff enters the n first of a run in the books; those behind wait in the lane again.
func (s *sender) takeOff(f *flight, n int) {
	for _, next := range f.run[max(n, 1):] {
		next.lead, next.away = next, false
	}
	f.run = f.run[:max(n, 1)]
	if f.away = n > 0; f.away {
		s.runs++
	}
	if n > 1 {
		s.lanes[f.d.Lane] = slices.DeleteFunc(s.lanes[f.d.Lane], func(x *flight) bool { return x != f && x.lead == f })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range f.run[:n] {
		key := store.WorkKey{Stage: x.d.Stage, ID: x.d.ID}
		s.flying[key] = x
		s.held[key] = x.epoch
	}
}

func (s *sender) freeSlot(f *flight) {
	if f.slot {
		f.slot = false
		s.slots--
	}
}

// gone takes a flight out of the books once it is recorded.
func (s *sender) gone(f *flight) {
	key := store.WorkKey{Stage: f.d.Stage, ID: f.d.ID}
	if s.flying[key] == f {
		delete(s.flying, key)
		s.mu.Lock()
		delete(s.held, key)
		s.mu.Unlock()
	}
	if !f.unsent {
		s.stats.handled.Add(1)
	}
	if f.ends() {
		s.runs--
		s.reserve(f.d.Topic, -1)
	}
}

func (s *sender) landed(f *flight) {
	if f.ends() {
		s.freeSlot(f.lead)
	}
	s.answered = append(s.answered, f)
}

// stall frees the worker of a send that takes long: a partner who hangs holds a goroutine and
// one of its own in_flight places, but no worker that the others need.
func (s *sender) stall(f *flight) {
	if s.flying[store.WorkKey{Stage: f.d.Stage, ID: f.d.ID}] == f {
		s.freeSlot(f.lead)
	}
}

// fly sends a run, each after the proof of the one before. It runs beside the loop and touches
// nothing of it. A run is cut short when the hub stops or the stage is paused.
func (s *sender) fly(run []*flight) {
	going := true
	for i, f := range run {
		if i > 0 && going {
			select {
			case <-s.stop:
				going = false
			default:
				going = !s.stats.paused.Load()
			}
		}
		if going {
			s.one(f)
			going = f.result.Status == send.Delivered
		} else {
			f.unsent = true
		}
		select {
		case s.results <- f:
		case <-s.done:
		}
	}
}

func (s *sender) one(f *flight) {
	ctx, cancel := context.WithTimeout(s.p.computing, s.timeout)
	defer cancel()
	stalled, stop := s.p.clock.NewTimer(s.p.opt.Stall)
	answered := make(chan struct{})
	go func() {
		defer stop()
		select {
		case <-stalled:
			select {
			case s.stalls <- f:
			case <-s.done:
			}
		case <-answered:
		}
	}()
	s.p.probe("before-send")
	f.result = s.attempt(ctx, f)
	close(answered)
	s.p.probe("after-send")
	if f.result.Status != send.Delivered && f.result.Status != send.Failed && s.p.computing.Err() != nil {
		f.cut = true
	}
}

func (s *sender) attempt(ctx context.Context, f *flight) (res send.Result) {
	defer func() {
		if r := recover(); r != nil {
			s.p.log.Error("send_panic", zap.String("id", f.d.ID.String()), zap.String("panic", PanicText(r)), zap.Stack("stack"))
			res = send.Result{Status: send.Unknown, Code: "STAGE_PANIC", Detail: "the sender panicked: " + PanicText(r)}
		}
	}()
	ep := s.p.opt.Endpoint(f.conn)
	if ep == nil {
		return send.Result{Status: send.Retry, Code: "NO_ENDPOINT", Detail: "connection " + f.conn.ID + " cannot send"}
	}
	payload, err := s.p.OpenPieces(f.delivery.Pieces)
	if err != nil {
		return send.Result{Status: send.Retry, Code: "STORE_READ", Detail: err.Error()}
	}
	defer payload.Close() //nolint:errcheck // Nothing was written.
	return ep.Send(ctx, SendDelivery(f.delivery, f.conn, s.p.registry.Current(), payload))
}

// SendDelivery is a stored delivery as an endpoint sees it.
func SendDelivery(d *store.Delivery, c *partner.Connection, reg *partner.Registry, payload edi.Source) *send.Delivery {
	return &send.Delivery{
		ID: d.ID, Generation: d.Generation, MessageID: d.MessageID(""), Connection: c, Own: reg.Own(d.Own),
		Payload: payload, Standard: d.Standard, Media: mediaType(d.Standard),
		Type: d.Type, Sender: d.Sender, Receiver: d.Receiver, ControlRef: d.ControlRef,
	}
}

// mediaType is the MIME type that a standard travels under (RFC 1767 for EDI).
func mediaType(s edi.Standard) string {
	switch s {
	case edi.EDIFACT:
		return "application/EDIFACT"
	case edi.X12:
		return "application/EDI-X12"
	case edi.UBL:
		return "application/xml"
	case edi.Opaque:
	}
	return "application/octet-stream"
}

// renew prolongs the leases of what is in flight, in one transaction.
func (s *sender) renew() {
	if len(s.flying) == 0 {
		return
	}
	type lease struct {
		key   store.WorkKey
		epoch int64
	}
	var ls []lease
	for k, f := range s.flying {
		ls = append(ls, lease{k, f.epoch})
	}
	owner := s.owner()
	go func() {
		err := s.p.store.Update(s.p.background, func(tx store.Tx) error {
			keys := make([]store.WorkKey, len(ls))
			for i := range ls {
				keys[i] = ls[i].key
			}
			rows, err := tx.Work(keys)
			if err != nil {
				return err
			}
			var save []*store.Work
			for i, r := range rows {
				if r != nil && r.State == store.Leased && r.Epoch == ls[i].epoch && r.Owner == owner {
					r.Lease = s.p.clock.Now().Add(s.p.opt.Lease)
					save = append(save, r)
				}
			}
			return tx.SaveWork(save)
		})
		if err != nil && s.p.background.Err() == nil {
			s.p.log.Warn("lease_renewal_failed", zap.Error(err))
		}
	}()
}

// returnWaiting gives back what was taken and not claimed.
func (s *sender) returnWaiting() {
	var back []broker.Delivery
	for _, f := range s.pending {
		if f.d.Free {
			back = append(back, f.d)
		}
	}
	for _, q := range s.lanes {
		for _, f := range q {
			if !f.away {
				back = append(back, f.d)
			}
		}
	}
	s.pending = nil
	s.lanes = map[int64][]*flight{}
	s.consumer.Return(back)
}

func (s *sender) end() {
	s.returnWaiting()
	if err := s.consumer.Close(); err != nil {
		s.p.log.Warn("consumer_close", zap.String("stage", "sender"), zap.Error(err))
	}
}

// inFlight counts sends per connection, for the API.
func (s *sender) inFlight() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.conns)
}
