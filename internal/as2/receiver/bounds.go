package receiver

import (
	"context"
	"sync"
	"time"
)

// budget bounds what is kept of refused messages, for each connection and hour.
type budget struct {
	limits Limits

	mu    sync.Mutex
	spent map[string]*spending
}

type spending struct {
	since  time.Time
	rows   int
	bodies int
	bytes  int64
}

// of returns what a connection spent in this hour. There is never more than one entry for each
// connection of the records.
func (b *budget) of(connection string, now time.Time) *spending {
	s := b.spent[connection]
	if s == nil || now.Sub(s.since) >= time.Hour || now.Before(s.since) {
		s = &spending{since: now}
		if b.spent == nil {
			b.spent = map[string]*spending{}
		}
		b.spent[connection] = s
	}
	return s
}

// row reports whether one more refused message may be recorded.
func (b *budget) row(connection string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.of(connection, now)
	if s.rows >= b.limits.KeptRows {
		return false
	}
	s.rows++
	return true
}

// body reports whether one more body of that size may be kept.
func (b *budget) body(connection string, now time.Time, size int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.of(connection, now)
	if size > b.limits.KeptSize || s.bodies >= b.limits.KeptBodies || size > b.limits.KeptBytes-s.bytes {
		return false
	}
	s.bodies++
	s.bytes += size
	return true
}

// turns lets only one message with the same key be accepted at a time on this node, so that the
// second finds what the first has committed. Between nodes the store does the same.
type turns struct {
	mu   sync.Mutex
	busy map[[32]byte]chan struct{}
}

// take waits for the turn; the caller gives it back with the function that it gets.
func (t *turns) take(ctx context.Context, key [32]byte) (release func(), err error) {
	for {
		t.mu.Lock()
		wait, taken := t.busy[key]
		if !taken {
			if t.busy == nil {
				t.busy = map[[32]byte]chan struct{}{}
			}
			mine := make(chan struct{})
			t.busy[key] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.busy, key)
				t.mu.Unlock()
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
