package spool

import (
	"fmt"
	"io"
	"sync"
)

// Defaults of Limits.
const (
	DefaultTotal      = 8 << 30
	DefaultPerPartner = 4 << 30
	DefaultPerSource  = 4 << 30
)

// Limits of a Meter in bytes that are in flight at the same time. A zero value means the
// default (8 GiB in all, 4 GiB for a partner and for a source address), a negative one switches
// the limit off.
type Limits struct {
	Total      int64
	PerPartner int64
	PerSource  int64
}

// Scope names the limit that a Meter ran into.
type Scope string

// The three scopes of a Meter.
const (
	ScopeTotal   Scope = "total"
	ScopePartner Scope = "partner"
	ScopeSource  Scope = "source"
)

// MeterError says which limit on bytes in flight was reached. It passes when others have
// finished; a receiver answers 503 (total) or 429 (partner, source) with Retry-After.
type MeterError struct {
	Scope Scope
	Key   string // the partner or source; empty with ScopeTotal
	Max   int64
	Used  int64
	Asked int64
}

// Error implements error.
func (e *MeterError) Error() string {
	who := string(e.Scope)
	if e.Key != "" {
		who += " " + e.Key
	}
	return fmt.Sprintf("too many bytes in flight (%s): %d in use, %d asked for, %d allowed", who, e.Used, e.Asked, e.Max)
}

// Meter counts the bytes that are in flight: in all, for each partner and for each source
// address. It holds an entry only for those that have bytes in flight. It is safe for concurrent
// use.
type Meter struct {
	limits Limits

	mu       sync.Mutex
	total    int64
	partners map[string]int64
	sources  map[string]int64
}

// NewMeter returns a Meter at zero.
func NewMeter(l Limits) *Meter {
	const off = 1<<63 - 1
	return &Meter{
		limits: Limits{
			Total:      limit(l.Total, DefaultTotal, off),
			PerPartner: limit(l.PerPartner, DefaultPerPartner, off),
			PerSource:  limit(l.PerSource, DefaultPerSource, off),
		},
		partners: map[string]int64{},
		sources:  map[string]int64{},
	}
}

// Reservation is a share of a Meter. It grows as bytes arrive and is released once, as a whole.
// It is safe for concurrent use.
type Reservation struct {
	meter           *Meter
	partner, source string
	held            int64 // guarded by meter.mu
	released        bool  // guarded by meter.mu
}

// Reserve takes n bytes (0 is allowed) for a partner and a source address. An empty partner or
// source is not counted in its scope. What counts as one source (an address, an IPv6 prefix) is
// the caller's choice. A refusal is a *MeterError and takes nothing; nil always wants a Release.
func (m *Meter) Reserve(partner, source string, n int64) (*Reservation, error) {
	r := &Reservation{meter: m, partner: partner, source: source}
	if err := r.Grow(n); err != nil {
		return nil, err
	}
	return r, nil
}

// Grow takes n bytes more. A refusal is a *MeterError, takes nothing and leaves what is held.
func (r *Reservation) Grow(n int64) error {
	if n < 0 {
		return fmt.Errorf("spool: reserve %d bytes", n)
	}
	m := r.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.released {
		return fmt.Errorf("spool: reserve %d bytes after release", n)
	}
	if n > m.limits.Total-m.total {
		return &MeterError{Scope: ScopeTotal, Max: m.limits.Total, Used: m.total, Asked: n}
	}
	if used := m.partners[r.partner]; r.partner != "" && n > m.limits.PerPartner-used {
		return &MeterError{Scope: ScopePartner, Key: r.partner, Max: m.limits.PerPartner, Used: used, Asked: n}
	}
	if used := m.sources[r.source]; r.source != "" && n > m.limits.PerSource-used {
		return &MeterError{Scope: ScopeSource, Key: r.source, Max: m.limits.PerSource, Used: used, Asked: n}
	}
	r.move(n)
	return nil
}

// Release gives back everything. Releasing twice is allowed.
func (r *Reservation) Release() {
	r.meter.mu.Lock()
	defer r.meter.mu.Unlock()
	if r.released {
		return
	}
	r.released = true
	r.move(-r.held)
}

func (r *Reservation) move(n int64) {
	if n == 0 {
		return
	}
	r.held += n
	r.meter.total += n
	shift(r.meter.partners, r.partner, n)
	shift(r.meter.sources, r.source, n)
}

func shift(m map[string]int64, key string, n int64) {
	if key == "" {
		return
	}
	if m[key] += n; m[key] == 0 {
		delete(m, key)
	}
}

// Held returns the bytes that the reservation holds.
func (r *Reservation) Held() int64 {
	r.meter.mu.Lock()
	defer r.meter.mu.Unlock()
	return r.held
}

// Used returns the bytes in flight in all.
func (m *Meter) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total
}

const growStep = 64 << 10

// Reader reads from src and grows the reservation before it hands out bytes that are not yet
// covered, in steps of 64 KiB (one byte at a time near a limit would cost a lock each). Bytes
// that were reserved beforehand are used up first. It fails with the *MeterError of Grow.
func (r *Reservation) Reader(src io.Reader) io.Reader {
	return &meteredReader{src: src, r: r, left: r.Held()}
}

type meteredReader struct {
	src    io.Reader
	r      *Reservation
	left   int64
	failed error // sticky: the bytes of the refused read are gone
}

func (m *meteredReader) Read(p []byte) (int, error) {
	if m.failed != nil {
		return 0, m.failed
	}
	n, err := m.src.Read(p)
	if short := int64(n) - m.left; short > 0 {
		step := (short + growStep - 1) / growStep * growStep
		if m.failed = m.r.Grow(step); m.failed != nil {
			return 0, m.failed
		}
		m.left += step
	}
	m.left -= int64(n)
	return n, err
}
