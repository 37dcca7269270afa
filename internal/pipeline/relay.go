package pipeline

import (
	"context"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/store"
)

// relay hands over what a crash or a full lane left behind, and sweeps the store each second:
// every waiting row has a condition that can be evaluated from the store alone, so nothing waits
// on a signal only (DESIGN §3, Sweeper).
type relay struct {
	p    *Pipeline
	bell chan struct{}

	mu    sync.Mutex
	lanes []int64 // lanes with rows beyond their window, in turn
	known map[int64]bool
	deep  map[int64]bool // lanes that had rows which nobody handed over when they were looked at
}

// sweepLimit bounds one look of the sweeper at each kind of waiting row.
const sweepLimit = 256

func newRelay(p *Pipeline) *relay {
	return &relay{p: p, bell: make(chan struct{}, 1), known: map[int64]bool{}, deep: map[int64]bool{}}
}

// lane says that the lane may have rows that nobody handed over.
func (r *relay) lane(id int64) {
	r.mu.Lock()
	r.deep[id] = true
	if !r.known[id] {
		r.known[id] = true
		r.lanes = append(r.lanes, id)
	}
	r.mu.Unlock()
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

// moved says that the lane went on: rows that were beyond its window may be within it now.
func (r *relay) moved(id int64) {
	r.mu.Lock()
	deep := r.deep[id]
	r.mu.Unlock()
	if deep {
		r.lane(id)
	}
}

// looked remembers what a look at the lane found.
func (r *relay) looked(id int64, rows int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rows == 0 {
		delete(r.deep, id)
		return
	}
	r.deep[id] = true
}

func (r *relay) next() (int64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lanes) == 0 {
		return 0, false
	}
	id := r.lanes[0]
	r.lanes = r.lanes[1:]
	delete(r.known, id)
	return id, true
}

func (r *relay) run(ctx context.Context) {
	r.sweepAll(ctx)
	tick, stop := r.p.clock.NewTimer(r.p.opt.Sweep)
	defer func() { stop() }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.bell:
			for {
				id, ok := r.next()
				if !ok || ctx.Err() != nil {
					break
				}
				r.backlog(ctx, id)
			}
		case <-tick:
			r.sweepAll(ctx)
			tick, stop = r.p.clock.NewTimer(r.p.opt.Sweep)
		}
	}
}

// sweepAll looks at each kind of waiting row until nothing more is due.
func (r *relay) sweepAll(ctx context.Context) {
	for ctx.Err() == nil && r.sweep(ctx) >= sweepLimit {
	}
}

// sweep evaluates the conditions once and returns the largest number of rows that one gave.
func (r *relay) sweep(ctx context.Context) int {
	most := 0
	take := func(what string, rows []*store.Work, err error, act func(context.Context, []*store.Work) error) {
		if err == nil && len(rows) > 0 {
			err = act(ctx, rows)
		}
		if err != nil {
			if ctx.Err() == nil {
				r.p.log.Warn("sweep_failed", zap.String("what", what), zap.Error(err))
			}
			return
		}
		most = max(most, len(rows))
	}
	rows, err := r.p.store.Due(ctx, r.p.clock.Now(), sweepLimit)
	take("due", rows, err, r.due)
	rows, err = r.p.store.Turns(ctx, sweepLimit)
	take("turn", rows, err, r.turns)
	rows, err = r.p.store.KeysFree(ctx, sweepLimit)
	take("key", rows, err, r.keys)
	r.unhanded(ctx)
	return most
}

// act runs f over fresh, locked rows.
func (r *relay) act(ctx context.Context, rows []*store.Work, f func(u *unit, row *store.Work) error) error {
	return r.p.update(ctx, func(u *unit) error {
		keys := make([]store.WorkKey, len(rows))
		for i, x := range rows {
			keys[i] = x.WorkKey
		}
		fresh, err := u.tx.Work(keys)
		if err != nil {
			return err
		}
		if err := u.lock(fresh, nil); err != nil {
			return err
		}
		for i, row := range fresh {
			if row == nil || row.Gen != rows[i].Gen || row.State != rows[i].State {
				continue // somebody was faster
			}
			if err := f(u, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// due wakes retries whose time has come, and takes back leases that ran out.
func (r *relay) due(ctx context.Context, rows []*store.Work) error {
	return r.act(ctx, rows, func(u *unit, row *store.Work) error {
		if row.State == store.Leased && r.p.sender != nil && r.p.sender.holds(row) {
			return nil // ours, and alive: the renewal is on its way
		}
		u.again(row)
		return nil
	})
}

// turns wakes parked rows whose turn has come though nobody woke them.
func (r *relay) turns(ctx context.Context, rows []*store.Work) error {
	return r.act(ctx, rows, func(u *unit, row *store.Work) error {
		l := u.lanes[row.Lane]
		if l.Paused || (l.Ordered && !row.Gap && row.Seq > l.Next) {
			return nil
		}
		l.Waiting = max(0, l.Waiting-1)
		u.touch(l)
		u.again(row)
		return nil
	})
}

func (r *relay) keys(ctx context.Context, rows []*store.Work) error {
	return r.act(ctx, rows, func(u *unit, row *store.Work) error {
		busy, err := u.tx.KeyBusy(row.Lane, row.Key, row.Seq)
		if err != nil {
			return err
		}
		if !busy {
			u.again(row)
		}
		return nil
	})
}

// unhanded hands over ready rows that nobody has, at most a window's worth of each lane.
func (r *relay) unhanded(ctx context.Context) {
	lane, seq := int64(0), int64(-1)
	for ctx.Err() == nil {
		rows, err := r.p.store.Unhanded(ctx, lane, seq, sweepLimit)
		if err != nil {
			if ctx.Err() == nil {
				r.p.log.Warn("sweep_failed", zap.String("what", "unhanded"), zap.Error(err))
			}
			return
		}
		if len(rows) == 0 {
			return
		}
		lanes := make([]int64, 0, 16)
		for _, w := range rows {
			lanes = append(lanes, w.Lane)
		}
		last := rows[len(rows)-1]
		for _, id := range slices.Compact(lanes) {
			r.backlog(ctx, id)
		}
		if last.Lane == lane {
			lane, seq = last.Lane+1, -1 // the lane's window is full; its rest comes in turn
			continue
		}
		lane, seq = last.Lane, last.Seq
	}
}

// backlog hands over the next rows of one lane, as far as its window reaches.
func (r *relay) backlog(ctx context.Context, lane int64) {
	rows, err := r.p.store.Backlog(ctx, lane, batchLimit)
	if err == nil {
		r.looked(lane, len(rows))
	}
	if err == nil && len(rows) > 0 {
		err = r.act(ctx, rows, func(u *unit, row *store.Work) error {
			l := u.lanes[row.Lane]
			if row.Handed == u.boot || (!row.Gap && row.Seq >= l.Next+laneWindow) {
				return nil
			}
			row.Handed = u.boot
			u.save = append(u.save, row)
			u.publish = append(u.publish, u.copyOf(row))
			u.backlog[row.Lane] = len(rows) == batchLimit
			return nil
		})
	}
	if err != nil && ctx.Err() == nil {
		r.p.log.Warn("sweep_failed", zap.String("what", "backlog"), zap.Error(err))
	}
}

// update runs f in a transaction of the runner's kind and hands over what it emitted.
func (p *Pipeline) update(ctx context.Context, f func(u *unit) error) error {
	var u *unit
	err := p.store.Update(ctx, func(tx store.Tx) error {
		u = newUnit(tx, p.clock.Now(), p.store.Boot())
		if err := f(u); err != nil {
			return err
		}
		return u.finish()
	})
	if err != nil {
		return err
	}
	p.after(u)
	return nil
}
