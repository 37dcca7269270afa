package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// Arrival is something that came in, verified as far as its transport can, not yet durable.
type Arrival struct {
	Transmission *store.Transmission
	Content      *store.Body
	Wire         *store.Body // nil where it equals the content
	// Key is the natural key of the arrival (AS2 Message-ID, Idempotency-Key, file), claimed only
	// with its acceptance; nil for none.
	Key   *store.NaturalKey
	Since time.Time // older claims of Key do not count
}

// RepeatError says that the arrival's key is taken. Same tells a repeat from another content
// under the same key.
type RepeatError struct {
	Same  bool
	First edi.ID // the transmission that holds the key
}

// Error implements error.
func (e *RepeatError) Error() string {
	if e.Same {
		return "repeat of transmission " + e.First.String()
	}
	return "transmission " + e.First.String() + " has the same key and other content"
}

// Accept makes an arrival durable and hands it to the parser, in one transaction: key, bodies,
// transmission, work row. When it returns nil a positive answer may leave (DESIGN G1). A
// *RepeatError means that nothing was written.
func (p *Pipeline) Accept(ctx context.Context, a *Arrival) error {
	t := a.Transmission
	lane := ParserLane(p.registry.Current(), t.Connection)
	p.probe("before-intake")
	err := p.update(ctx, func(u *unit) error {
		if a.Key != nil {
			taken, err := u.tx.Claim([]store.NaturalKey{*a.Key}, []time.Time{a.Since})
			if err != nil {
				return fmt.Errorf("claim arrival: %w", err)
			}
			if h := taken[0]; h != nil {
				return &RepeatError{Same: h.Content == a.Key.Content, First: h.Object}
			}
		}
		if err := saveBodies(u.tx, a.Content, a.Wire); err != nil {
			return err
		}
		if err := u.tx.InsertTransmission(t); err != nil {
			return fmt.Errorf("insert transmission: %w", err)
		}
		u.events = append(u.events, store.Event{Object: t.ID, At: u.now, Name: "accepted", Detail: t.Transport})
		p.recent.put(t)
		return u.emit(&Emission{Stage: store.Parser, Kind: store.KindTransmission, ID: t.ID, Lane: lane})
	})
	if err != nil {
		p.recent.take(t.ID)
		var r *RepeatError
		if errors.As(err, &r) {
			p.obs.Duplicate(scopeOf(a.Key))
			return r
		}
		return fmt.Errorf("accept transmission: %w", err)
	}
	p.probe("after-intake")
	return nil
}

func scopeOf(k *store.NaturalKey) store.Scope {
	if k == nil {
		return 0
	}
	return k.Scope
}

// Keep records a transmission that goes no further (refused, quarantined, repeated, held), with
// its bodies where there are any.
func (p *Pipeline) Keep(ctx context.Context, a *Arrival) error {
	t := a.Transmission
	err := p.store.Update(ctx, func(tx store.Tx) error {
		if err := saveBodies(tx, a.Content, a.Wire); err != nil {
			return err
		}
		if err := tx.InsertTransmission(t); err != nil {
			return fmt.Errorf("insert transmission: %w", err)
		}
		return tx.AddEvents([]store.Event{{Object: t.ID, At: p.clock.Now(), Name: t.State, Detail: t.Code}})
	})
	if err != nil {
		return fmt.Errorf("keep transmission: %w", err)
	}
	return nil
}

func saveBodies(tx store.Tx, bodies ...*store.Body) error {
	for _, b := range bodies {
		if b == nil {
			continue
		}
		if err := tx.SaveBody(b); err != nil {
			return fmt.Errorf("save body: %w", err)
		}
	}
	return nil
}
