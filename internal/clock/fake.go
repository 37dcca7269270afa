package clock

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Fake is a clock for tests: it stands still until Advance moves it.
type Fake struct {
	mu      sync.Mutex
	now     time.Time
	timers  []*fakeTimer  // by time; those of the same time in the order of their making
	changed chan struct{} // closed and replaced whenever timers are added or go away
}

type fakeTimer struct {
	at time.Time
	c  chan time.Time
}

// NewFake returns a clock that stands at t.
func NewFake(t time.Time) *Fake { return &Fake{now: t, changed: make(chan struct{})} }

// Now implements Clock.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// After implements Clock.
func (f *Fake) After(d time.Duration) <-chan time.Time {
	c, _ := f.NewTimer(d)
	return c
}

// NewTimer implements Clock. As with the timers of package time, nothing is received once stop
// has returned.
func (f *Fake) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &fakeTimer{at: f.now.Add(d), c: make(chan time.Time, 1)}
	if d <= 0 {
		t.c <- f.now
		return t.c, func() { f.drop(t) }
	}
	i, _ := slices.BinarySearchFunc(f.timers, t, func(old, fresh *fakeTimer) int {
		if old.at.After(fresh.at) {
			return 1
		}
		return -1 // An equal one goes first: it was made first.
	})
	f.timers = slices.Insert(f.timers, i, t)
	f.tell()
	return t.c, func() { f.drop(t) }
}

func (f *Fake) drop(t *fakeTimer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-t.c: // It fired, and nobody has looked yet.
	default:
	}
	if i := slices.Index(f.timers, t); i >= 0 {
		f.timers = slices.Delete(f.timers, i, i+1)
		f.tell()
	}
}

func (f *Fake) tell() {
	if f.changed != nil { // A Fake that is not from NewFake.
		close(f.changed)
	}
	f.changed = make(chan struct{})
}

// Advance moves the clock and fires every timer whose time has come, the earliest first. Each
// channel receives the time at which its timer was due.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
	due := 0
	for due < len(f.timers) && !f.timers[due].at.After(f.now) {
		f.timers[due].c <- f.timers[due].at
		due++
	}
	if due > 0 {
		f.timers = slices.Delete(f.timers, 0, due)
		f.tell()
	}
}

// Waiting returns how many timers have not fired, so that a test can wait for a sleeper.
func (f *Fake) Waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.timers)
}

// AwaitWaiting returns as soon as at least n timers have not fired, so that a test can move the
// clock once everybody sleeps. It returns the error of ctx when that ends first.
func (f *Fake) AwaitWaiting(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		if f.changed == nil {
			f.changed = make(chan struct{})
		}
		enough, changed := len(f.timers) >= n, f.changed
		f.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
