package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// ErrNotDead is returned when there is no dead letter of that name (any more).
var ErrNotDead = errors.New("no such dead letter")

// ErrUnknownStage is returned for a stage that this node does not run.
var ErrUnknownStage = errors.New("no such stage here")

// Replay makes a dead letter ready again, from the stage at which it died. It is idempotent: the
// second call finds no dead letter. A delivery that the receiver refused begins a new
// Message-ID; one whose answer is not known keeps its own.
func (p *Pipeline) Replay(ctx context.Context, key store.WorkKey, who, reason string) error {
	err := p.update(ctx, func(u *unit) error {
		row, err := u.deadRow(key)
		if err != nil {
			return err
		}
		if err := u.revive(row); err != nil {
			return err
		}
		row.Tries, row.Crashes, row.Since = 0, 0, u.now
		row.Code, row.Detail = "", ""
		u.again(row)
		u.events = append(u.events, store.Event{Object: row.ID, At: u.now, Name: "replayed", Detail: reason, Who: who})
		return nil
	})
	if err != nil {
		return fmt.Errorf("replay %s %s: %w", key.Stage, key.ID, err)
	}
	return nil
}

// Discard gives a dead letter up: it has no effect for ever, and its lane goes on.
func (p *Pipeline) Discard(ctx context.Context, key store.WorkKey, who, reason string) error {
	err := p.update(ctx, func(u *unit) error {
		row, err := u.deadRow(key)
		if err != nil {
			return err
		}
		row.State = store.Discarded
		u.save = append(u.save, row)
		if !row.Gap {
			row.Gap = true
			u.advance(u.lanes[row.Lane])
		}
		if row.Key != "" {
			u.freed = append(u.freed, freedKey{row.Lane, row.Key})
		}
		u.events = append(u.events, store.Event{Object: row.ID, At: u.now, Name: "discarded", Detail: reason, Who: who})
		return p.objectDiscarded(u, row)
	})
	if err != nil {
		return fmt.Errorf("discard %s %s: %w", key.Stage, key.ID, err)
	}
	return nil
}

func (u *unit) deadRow(key store.WorkKey) (*store.Work, error) {
	rows, err := u.tx.Work([]store.WorkKey{key})
	if err != nil {
		return nil, err
	}
	if rows[0] == nil || rows[0].State != store.Dead {
		return nil, ErrNotDead
	}
	if err := u.lock(rows, nil); err != nil {
		return nil, err
	}
	return rows[0], nil
}

// revive sets the object of a dead row back to where it was before the stage that failed.
func (u *unit) revive(row *store.Work) error {
	before := map[store.Stage]string{
		store.Parser: store.StateParsed, store.Validator: store.StateParsed, store.Router: store.StateValidated, store.Sender: store.StateRouted,
	}[row.Stage]
	switch row.Kind {
	case store.KindMessage:
		return u.tx.Reopen(row.ID, before)
	case store.KindInterchange:
		ic, err := u.tx.Interchange(row.ID)
		if err != nil {
			return err
		}
		if ic.State == store.StateDead {
			ic.State = "received"
		}
		ic.Code = ""
		return u.tx.SaveInterchange(ic)
	case store.KindDelivery:
		d, err := u.tx.Delivery(row.ID)
		if err != nil {
			return err
		}
		if d.State == store.StateFailed && d.Code != "RETRY_EXHAUSTED" {
			d.Generation++ // only what the receiver refused begins a new Message-ID
		}
		d.State, d.Code, d.Detail, d.EndedAt = store.StateReady, "", "", time.Time{}
		if err := u.tx.SaveDelivery(d); err != nil {
			return err
		}
		for _, id := range d.Messages {
			if err := u.tx.Reopen(id, before); err != nil {
				return err
			}
		}
	case store.KindTransmission:
	}
	return nil
}

func (p *Pipeline) objectDiscarded(u *unit, row *store.Work) error {
	switch row.Kind {
	case store.KindMessage:
		u.ends = append(u.ends, End{Messages: []edi.ID{row.ID}, State: store.StateDiscarded, Code: row.Code})
		m, err := u.tx.Message(row.ID)
		if err != nil {
			return err
		}
		ic, err := u.tx.Interchange(m.Interchange)
		if err != nil {
			return err
		}
		if ic.Unrouted > 0 { // the others of the interchange no longer wait for it
			a := Resolve(p.registry.Current(), ic, &m.Envelope)
			u.decides = append(u.decides, DecideFor(a, ic, 1))
		}
	case store.KindInterchange:
		ic, err := u.tx.Interchange(row.ID)
		if err != nil {
			return err
		}
		if ic.State == store.StateDead {
			ic.State = store.StateDiscarded
		}
		u.oldIC[ic.ID] = ic
		if row.Stage == store.Router {
			return u.discardWaiting(ic, row.Code)
		}
	case store.KindDelivery:
		d, err := u.tx.Delivery(row.ID)
		if err != nil {
			return err
		}
		u.ends = append(u.ends, End{Messages: d.Messages, State: store.StateDiscarded, Code: row.Code})
	case store.KindTransmission:
	}
	return nil
}

// discardWaiting gives up the messages that waited for the deliveries of their interchange.
func (u *unit) discardWaiting(ic *store.Interchange, code string) error {
	const page = 1000
	for after := 0; ; {
		ms, err := u.tx.MessagesOf(ic.ID, after, page)
		if err != nil || len(ms) == 0 {
			return err
		}
		e := End{State: store.StateDiscarded, Code: code}
		for _, m := range ms {
			if m.State == store.StateBatched {
				e.Messages = append(e.Messages, m.ID)
			}
		}
		u.ends = append(u.ends, e)
		after = ms[len(ms)-1].Envelope.Position
	}
}

// StageStatus is what the API shows of a pool.
type StageStatus struct {
	Stage   store.Stage
	Wanted  int
	Alive   int
	Min     int
	Max     int
	Paused  bool
	Running int // in the hands of workers
	Queued  int // in the broker
	Handled int64
	Timeout time.Duration
}

// Stages returns the pools of this node in rank order.
func (p *Pipeline) Stages(ctx context.Context) []StageStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []StageStatus
	for _, s := range store.Stages() {
		st := p.stats(s)
		if st == nil {
			continue
		}
		d, err := p.broker.Depth(ctx, s)
		if err != nil {
			d.Ready = -1 // not known now
		}
		set := p.settings[s]
		out = append(out, StageStatus{
			Stage: s, Wanted: set.Workers, Alive: int(st.alive.Load()), Min: set.Min, Max: set.Max, Paused: set.Paused,
			Running: int(st.running.Load()), Queued: d.Ready, Handled: st.handled.Load(), Timeout: set.Timeout,
		})
	}
	return out
}

func (p *Pipeline) stats(s store.Stage) *poolStats {
	if s == store.Sender {
		if p.sender == nil {
			return nil
		}
		return &p.sender.stats
	}
	if w := p.pools[s]; w != nil {
		return &w.stats
	}
	return nil
}

// StageChange is a wish of an operator; nil fields stay.
type StageChange struct {
	Workers, Min, Max *int
	Paused            *bool
}

// MaxWorkers bounds the pool of one stage on one node.
const MaxWorkers = 1024

// Change resizes or pauses a pool while it runs. It takes effect at once and survives restarts.
func (p *Pipeline) Change(ctx context.Context, s store.Stage, c StageChange) error {
	p.mu.Lock()
	if p.stats(s) == nil {
		p.mu.Unlock()
		return ErrUnknownStage
	}
	set := p.settings[s]
	if c.Min != nil {
		set.Min = *c.Min
	}
	if c.Max != nil {
		set.Max = *c.Max
	}
	if c.Workers != nil {
		set.Workers = *c.Workers
	}
	if c.Paused != nil {
		set.Paused = *c.Paused
	}
	if set.Workers < 0 || set.Workers > MaxWorkers || set.Min < 0 || set.Max < set.Min || set.Max > MaxWorkers {
		p.mu.Unlock()
		return fmt.Errorf("workers must be 0 to %d, min 0 or more, max between min and %d", MaxWorkers, MaxWorkers)
	}
	p.settings[s] = set
	p.mu.Unlock()
	raw, err := json.Marshal(savedSettings{Workers: set.Workers, Min: set.Min, Max: set.Max, Paused: set.Paused})
	if err != nil {
		return fmt.Errorf("change %s: %w", s, err)
	}
	if err := p.store.Update(ctx, func(tx store.Tx) error { return tx.SaveSetting("stage."+s.String(), raw) }); err != nil {
		return fmt.Errorf("change %s: %w", s, err)
	}
	p.applyChange(ctx, s, set)
	return nil
}

type savedSettings struct {
	Workers int  `json:"workers"`
	Min     int  `json:"min"`
	Max     int  `json:"max"`
	Paused  bool `json:"paused"`
}

func (p *Pipeline) applyChange(ctx context.Context, s store.Stage, set StageSettings) {
	if s == store.Sender {
		do(ctx, p.sender.cmds, p.sender.done, func() { p.sender.want, p.sender.paused = set.Workers, set.Paused })
		return
	}
	w := p.pools[s]
	do(ctx, w.cmds, w.done, func() { w.want, w.paused = set.Workers, set.Paused })
}

// do runs f in a loop and waits until it was taken.
func do(ctx context.Context, cmds chan func(), done chan struct{}, f func()) {
	ran := make(chan struct{})
	select {
	case cmds <- func() { f(); close(ran) }:
		<-ran
	case <-done:
	case <-ctx.Done(): // the loop takes the settings when it starts
	}
}

// loadSettings takes what operators set before over what the configuration says.
func (p *Pipeline) loadSettings(ctx context.Context) error {
	for _, s := range store.Stages() {
		raw, err := p.store.GetSetting(ctx, "stage."+s.String())
		if errors.Is(err, store.ErrNotFound) || (err == nil && len(raw) == 0) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read settings of %s: %w", s, err)
		}
		var v savedSettings
		if err := json.Unmarshal(raw, &v); err != nil {
			return fmt.Errorf("read settings of %s: %w", s, err)
		}
		set := p.settings[s]
		set.Workers, set.Min, set.Max, set.Paused = v.Workers, v.Min, v.Max, v.Paused
		p.settings[s] = set
	}
	return nil
}

// InFlight counts the sends per connection.
func (p *Pipeline) InFlight() map[string]int {
	if p.sender == nil {
		return nil
	}
	return p.sender.inFlight()
}
