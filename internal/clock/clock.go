// Package clock is the hub's only source of time, so that tests can hold and move it.
package clock

import "time"

// Clock tells the time and makes timers.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// After returns a channel that receives once, d from now.
	After(d time.Duration) <-chan time.Time
	// NewTimer is After with a way to stop it; stopping twice is allowed.
	NewTimer(d time.Duration) (c <-chan time.Time, stop func())
}

// System is the clock of the machine.
type System struct{}

// Now implements Clock.
func (System) Now() time.Time { return time.Now() }

// After implements Clock.
func (System) After(d time.Duration) <-chan time.Time { return time.After(d) }

// NewTimer implements Clock.
func (System) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
