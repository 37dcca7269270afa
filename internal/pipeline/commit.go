package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/broker"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// job is a copy in the hands of a pool.
type job struct {
	d     broker.Delivery
	h     *held
	out   *Outcome
	took  time.Duration
	tried int // commits that failed with this job alone
}

// fate says what became of a job in a commit.
type fate uint8

const (
	fateDone   fate = iota + 1 // acknowledge
	fateStale                  // acknowledge and forget
	fateWaits                  // parked, retry, dead, or in a new generation: acknowledge
	fateAgain                  // computed with older records than the lane has seen: compute again
	fateFollow                 // a chunk has committed, the next one follows
)

// committer is the runner: it owns the promises G1 to G4. A batch of outcomes becomes one
// transaction; copies are acknowledged behind it and never before.
type committer struct {
	p *Pipeline
}

// commit runs the batch. On ErrUnavailable nothing happened and the caller waits; every other
// failure is dealt with message by message.
func (c *committer) commit(ctx context.Context, jobs []*job) ([]fate, error) {
	fates, err := c.once(ctx, jobs)
	if err == nil || errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
		return fates, err
	}
	if len(jobs) > 1 {
		// One of them makes the transaction fail. One by one, so that its neighbours are through.
		fates = make([]fate, len(jobs))
		for _, i := range c.order(jobs) {
			one, err := c.commit(ctx, jobs[i:i+1])
			if err != nil {
				return nil, err
			}
			fates[i] = one[0]
		}
		return fates, nil
	}
	j := jobs[0]
	j.tried++
	c.p.log.Warn("effect_refused", zap.String("stage", j.d.Stage.String()), zap.String("id", j.d.ID.String()), zap.Error(err))
	j.out.release()
	j.out = &Outcome{Verdict: Dead, Code: "STORE_REFUSED", Detail: "the store refused the effect of this message: " + err.Error(), Profile: j.out.Profile, Step: j.out.Step, Partner: j.out.Partner}
	if j.tried > 1 {
		return nil, fmt.Errorf("set %s aside: %w", j.d.ID, err)
	}
	return c.commit(ctx, jobs)
}

// order is the order in which a batch takes effect: by (stage rank, lane), in a lane by sequence.
func (c *committer) order(jobs []*job) []int {
	idx := make([]int, len(jobs))
	for i := range idx {
		idx[i] = i
	}
	slices.SortStableFunc(idx, func(a, b int) int {
		x, y := &jobs[a].d, &jobs[b].d
		return cmp.Or(cmp.Compare(x.Stage, y.Stage), cmp.Compare(x.Lane, y.Lane), cmp.Compare(x.Seq, y.Seq))
	})
	return idx
}

func (c *committer) once(ctx context.Context, jobs []*job) ([]fate, error) {
	fates := make([]fate, len(jobs))
	var u *unit
	c.p.probe("before-tx")
	err := c.p.store.Update(ctx, func(tx store.Tx) error {
		u = newUnit(tx, c.p.clock.Now(), c.p.store.Boot())
		u.runs = c.p.runsFused
		return c.apply(u, jobs, fates)
	})
	if err != nil {
		return nil, fmt.Errorf("commit %d outcomes: %w", len(jobs), err)
	}
	c.p.probe("after-commit")
	c.p.after(u)
	return fates, nil
}

// apply is the transaction.
func (c *committer) apply(u *unit, jobs []*job, fates []fate) error {
	order := c.order(jobs)
	ds := make([]broker.Delivery, len(jobs))
	for i := range jobs {
		ds[i] = jobs[i].d
	}
	rows, err := u.rowsOf(ds)
	if err != nil {
		return err
	}
	var specs []store.LaneSpec
	for _, j := range jobs {
		specs = appendSpecs(specs, j.out)
	}
	if err := u.lock(rows, specs); err != nil {
		return err
	}
	seen := map[store.WorkKey]bool{}
	for _, i := range order {
		key := store.WorkKey{Stage: jobs[i].d.Stage, ID: jobs[i].d.ID}
		if seen[key] {
			fates[i] = fateStale // a second copy of the same row in one batch
			continue
		}
		seen[key] = true
		if fates[i], err = c.step(u, jobs[i], rows[i]); err != nil {
			return err
		}
	}
	if err := u.finish(); err != nil {
		return err
	}
	c.p.probe("in-tx")
	return nil
}

func appendSpecs(specs []store.LaneSpec, o *Outcome) []store.LaneSpec {
	if o == nil {
		return specs
	}
	for i := range o.Emit {
		specs = append(specs, o.Emit[i].Lane)
		specs = appendSpecs(specs, o.Emit[i].Fused)
	}
	for i := range o.Claims {
		specs = appendSpecs(specs, o.Claims[i].Same)
		specs = appendSpecs(specs, o.Claims[i].Other)
	}
	return specs
}

// step takes one job through its gate and applies its verdict.
func (c *committer) step(u *unit, j *job, row *store.Work) (fate, error) {
	p, err := u.gate(row, j.d.Gen)
	if err != nil {
		return 0, err
	}
	switch p {
	case passStale:
		return fateStale, nil
	case passWait:
		return fateWaits, nil
	case passGo:
	}
	out := j.out
	l := u.lanes[row.Lane]
	if !out.crash {
		if out.Profile < l.Profile {
			return fateAgain, nil // the lane has already seen newer partner records
		}
		if out.Profile > l.Profile {
			l.Profile = out.Profile
			u.touch(l)
		}
		if out.Step != row.Cursor {
			return fateStale, nil // another copy is ahead with this split
		}
	}
	if out, err = c.claim(u, out); err != nil {
		return 0, err
	}
	return c.verdict(u, row, l, out)
}

// claim takes the natural keys of an outcome, or turns to its alternative.
func (c *committer) claim(u *unit, out *Outcome) (*Outcome, error) {
	for i := range out.Claims {
		cl := &out.Claims[i]
		taken, err := u.tx.Claim([]store.NaturalKey{cl.Key}, []time.Time{cl.Since})
		if err != nil {
			return nil, fmt.Errorf("claim key: %w", err)
		}
		held := taken[0]
		if held == nil || held.Object == cl.Key.Object {
			continue // free, or ours since an earlier run
		}
		alt := cl.Other
		if held.Content == cl.Key.Content {
			alt = cl.Same
		}
		if alt == nil {
			continue // the agreement does not mind
		}
		c.p.obs.Duplicate(cl.Key.Scope)
		return alt, nil
	}
	return out, nil
}

func (c *committer) verdict(u *unit, row *store.Work, l *store.Lane, out *Outcome) (fate, error) {
	switch {
	case out.crash:
		row.Crashes++
		if row.Crashes < crashLimit {
			u.again(row)
			return fateWaits, nil
		}
		u.die(row, out.Code, out.Detail, out.Partner)
		return fateWaits, u.objectDied(row, out.Code)
	case out.Verdict == Done:
		for _, w := range out.Write.Born {
			u.born(w, l)
		}
		if err := u.effects(out); err != nil {
			return 0, err
		}
		if out.More != nil {
			row.Cursor++
			u.save = append(u.save, row)
			return fateFollow, nil
		}
		u.through(row)
		return fateDone, nil
	case out.Verdict == Retry, out.Verdict == Hold && out.After > 0:
		row.Tries++
		if out.Verdict == Retry && u.now.Sub(row.Since) >= c.p.opt.RetryFor {
			u.die(row, "RETRY_EXHAUSTED", out.Code+": "+out.Detail, out.Partner)
			return fateWaits, u.objectDied(row, "RETRY_EXHAUSTED")
		}
		wait := out.After
		if wait <= 0 {
			wait = c.p.backoff(row.Tries, c.p.opt.RetryFirst, c.p.opt.RetryMax)
		}
		u.later(row, u.now.Add(wait), out.Code, out.Detail)
		return fateWaits, nil
	default: // Dead, or Hold for a person
		row.Tries++
		u.die(row, out.Code, out.Detail, out.Partner)
		if err := u.effects(&Outcome{Write: out.Write}); err != nil {
			return 0, err
		}
		return fateWaits, u.objectDied(row, out.Code)
	}
}

// objectDied shows on the object itself that its work is dead.
func (u *unit) objectDied(row *store.Work, code string) error {
	switch row.Kind {
	case store.KindMessage:
		m := u.oldMsg[row.ID]
		if m == nil {
			var err error
			if m, err = u.tx.Message(row.ID); err != nil {
				return fmt.Errorf("mark message dead: %w", err)
			}
		}
		m.State, m.Code = store.StateDead, code
		u.oldMsg[m.ID] = m
	case store.KindInterchange:
		ic := u.oldIC[row.ID]
		if ic == nil {
			var err error
			if ic, err = u.tx.Interchange(row.ID); err != nil {
				return fmt.Errorf("mark interchange dead: %w", err)
			}
		}
		if ic.State != store.StateSplit { // its messages live on; only building the delivery died
			ic.State = store.StateDead
		}
		ic.Code = code
		u.oldIC[ic.ID] = ic
	case store.KindTransmission, store.KindDelivery:
		// A transmission stays accepted: its bytes are safe and answered. A delivery's state is set
		// by the sender, who knows what the receiver said.
	}
	return nil
}

// after hands what a committed transaction emitted to the broker.
func (p *Pipeline) after(u *unit) {
	for _, d := range u.made {
		p.recent.putDelivery(d)
	}
	if len(u.publish) > 0 {
		p.publish(u.publish)
	}
	for id := range u.backlog {
		p.relay.lane(id)
	}
	for id := range u.moved {
		p.relay.moved(id)
	}
}

func (p *Pipeline) publish(copies []edi.Copy) {
	// A failure loses nothing: the rows stay, and the sweeper hands them over again.
	if err := p.broker.Publish(p.background, copies); err != nil && !errors.Is(err, broker.ErrClosed) {
		p.log.Warn("publish_failed", zap.Int("copies", len(copies)), zap.Error(err))
	}
}

func (o *Outcome) release() {
	if o != nil && o.Release != nil {
		o.Release()
	}
}
