package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/store"
)

// compute loads what a stage needs, runs it, and runs the next hops at once where the outcome is
// a single document. Nil means that ctx ended.
func (p *Pipeline) compute(ctx context.Context, stage store.Stage, impl Stage, c *edi.Copy) *Outcome {
	t := p.task(stage, c.Kind, c.ID)
	if err := p.load(ctx, t); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, store.ErrNotFound) {
			// The gate drops this where the row is gone too.
			return &Outcome{Verdict: Dead, Code: "OBJECT_MISSING", Detail: err.Error(), Profile: t.Registry.Version(), Step: t.Step}
		}
		return &Outcome{Verdict: Retry, Code: "STORE_READ", Detail: err.Error(), Profile: t.Registry.Version(), Step: t.Step}
	}
	out := impl.Handle(ctx, t)
	if ctx.Err() != nil {
		out.release()
		return nil
	}
	out.Step = t.Step
	p.stamp(out, t.Registry.Version())
	p.fuse(ctx, t, out)
	return out
}

func (p *Pipeline) stamp(o *Outcome, version int64) {
	if o == nil {
		return
	}
	o.Profile = version
	for i := range o.Claims {
		p.stamp(o.Claims[i].Same, version)
		p.stamp(o.Claims[i].Other, version)
	}
}

func (p *Pipeline) task(stage store.Stage, kind store.Kind, id edi.ID) *Task {
	return &Task{
		Stage: stage, Kind: kind, ID: id, Registry: p.registry.Current(), Now: p.clock.Now(),
		Open:   func(ref store.Ref) (store.BodySource, error) { return p.store.OpenBody(p.background, ref) },
		Stored: func(id edi.ID) (*store.Interchange, error) { return p.store.GetInterchange(p.background, id) },
		MessagesOf: func(interchange edi.ID, after, n int) ([]*store.Message, error) {
			return p.store.ListMessagesOf(p.background, interchange, after, n)
		},
	}
}

// load reads the objects that the task is about.
func (p *Pipeline) load(ctx context.Context, t *Task) (err error) {
	switch t.Kind {
	case store.KindTransmission:
		if recent := p.recent.take(t.ID); recent != nil {
			t.Transmission = recent
			return nil
		}
		row, err := p.store.GetWork(ctx, store.WorkKey{Stage: t.Stage, ID: t.ID})
		if err != nil {
			return fmt.Errorf("work row: %w", err)
		}
		t.Step, t.Forced = row.Cursor, row.Forced
		if t.Transmission, err = p.store.GetTransmission(ctx, t.ID); err != nil {
			return fmt.Errorf("transmission %s: %w", t.ID, err)
		}
	case store.KindInterchange:
		row, err := p.store.GetWork(ctx, store.WorkKey{Stage: t.Stage, ID: t.ID})
		if err != nil {
			return fmt.Errorf("work row: %w", err)
		}
		t.Step, t.Forced = row.Cursor, row.Forced
		if t.Interchange, err = p.store.GetInterchange(ctx, t.ID); err != nil {
			return fmt.Errorf("interchange %s: %w", t.ID, err)
		}
		if t.Transmission, err = p.store.GetTransmission(ctx, t.Interchange.Transmission); err != nil {
			return fmt.Errorf("transmission %s: %w", t.Interchange.Transmission, err)
		}
	case store.KindMessage:
		if t.Message, err = p.store.GetMessage(ctx, t.ID); err != nil {
			return fmt.Errorf("message %s: %w", t.ID, err)
		}
		if t.Interchange, err = p.store.GetInterchange(ctx, t.Message.Interchange); err != nil {
			return fmt.Errorf("interchange %s: %w", t.Message.Interchange, err)
		}
	case store.KindDelivery:
		return fmt.Errorf("a delivery is no work of the %s", t.Stage)
	}
	return nil
}

// fuse computes the following hops of a single document at once (DESIGN §4). Whether they take
// effect in the same transaction is decided there. A hop that does not end well here is left to
// its own stage, where it is counted.
func (p *Pipeline) fuse(ctx context.Context, t *Task, out *Outcome) {
	if out.Verdict != Done || out.More != nil || len(out.Emit) != 1 {
		return
	}
	e := &out.Emit[0]
	if e.Kind != store.KindMessage || e.Key != "" || !p.runsFused(e.Stage) || e.Stage == store.Sender {
		return
	}
	next := p.task(e.Stage, e.Kind, e.ID)
	next.Registry, next.Now = t.Registry, t.Now
	next.Message, next.Interchange = messageIn(&out.Write, e.ID), t.Interchange
	if len(out.Write.Interchanges) == 1 {
		next.Interchange = out.Write.Interchanges[0]
	}
	if next.Message == nil || next.Interchange == nil {
		return
	}
	hop := p.tryHop(ctx, next)
	if hop == nil || hop.Verdict != Done || hop.More != nil || len(hop.Claims) > 0 {
		hop.release()
		return
	}
	hop.Profile = t.Registry.Version()
	p.fuse(ctx, next, hop)
	e.Fused = hop
}

func messageIn(w *Write, id edi.ID) *store.Message {
	for _, list := range [][]*store.Message{w.SaveMessages, w.Messages} {
		for _, m := range list {
			if m.ID == id {
				return m
			}
		}
	}
	return nil
}

// tryHop runs a hop under its own stage's time limit. Whatever goes wrong, its own stage runs it
// again and records it; a hop that hangs keeps a goroutine until it comes back, no worker.
func (p *Pipeline) tryHop(ctx context.Context, t *Task) *Outcome {
	w := p.pools[t.Stage]
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan *Outcome, 1)
	go func() {
		var out *Outcome
		defer func() {
			if recover() != nil {
				out = nil
			}
			done <- out
		}()
		out = w.impl.Handle(ctx, t)
	}()
	limit, stop := p.clock.NewTimer(w.timeout)
	defer stop()
	select {
	case out := <-done:
		return out
	case <-limit:
		return nil
	}
}

// Resolve finds the agreement for a message of an interchange.
func Resolve(r *partner.Registry, ic *store.Interchange, m *edi.Message) *partner.Agreement {
	sender, receiver := ic.Envelope.Identifiers()
	return r.Agreement(ic.From, ic.To, edi.DocumentType(ic.Envelope.Standard, m.Type), sender, receiver)
}
