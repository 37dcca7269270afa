package clock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/edihub/edihub/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var (
	_ clock.Clock = clock.System{}
	_ clock.Clock = (*clock.Fake)(nil)
)

func TestSystemFollowsTheMachine(t *testing.T) {
	t.Parallel()
	var c clock.System
	before := time.Now()
	if now := c.Now(); now.Before(before) || now.Sub(before) > time.Minute {
		t.Errorf("Now() = %v at %v", now, before)
	}
	<-c.After(time.Microsecond)
	timer, stop := c.NewTimer(time.Microsecond)
	<-timer
	stop()
	never, stop := c.NewTimer(time.Hour)
	stop()
	stop()
	select {
	case <-never:
		t.Error("a stopped timer fired")
	default:
	}
}

func TestFakeStandsStill(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(start)
	if a, b := c.Now(), c.Now(); !a.Equal(start) || !b.Equal(start) {
		t.Fatalf("Now() = %v, then %v; want %v", a, b, start)
	}
	c.Advance(90 * time.Second)
	if got, want := c.Now(), start.Add(90*time.Second); !got.Equal(want) {
		t.Fatalf("Now() after Advance = %v, want %v", got, want)
	}
}

func received(c <-chan time.Time) (time.Time, bool) {
	select {
	case at := <-c:
		return at, true
	default:
		return time.Time{}, false
	}
}

func TestFakeTimers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		wait    time.Duration
		advance []time.Duration
		fires   bool
		at      time.Duration
	}{
		{"not yet", 10 * time.Second, []time.Duration{9 * time.Second}, false, 0},
		{"exactly", 10 * time.Second, []time.Duration{10 * time.Second}, true, 10 * time.Second},
		{"in steps", 10 * time.Second, []time.Duration{4 * time.Second, 6 * time.Second}, true, 10 * time.Second},
		{"late, with the time it was due", 10 * time.Second, []time.Duration{time.Hour}, true, 10 * time.Second},
		{"zero fires at once", 0, nil, true, 0},
		{"negative fires at once", -time.Second, nil, true, 0},
		{"backwards does not fire", time.Second, []time.Duration{-time.Hour}, false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := clock.NewFake(start)
			timer := c.After(tc.wait)
			for _, d := range tc.advance {
				c.Advance(d)
			}
			at, fired := received(timer)
			if fired != tc.fires {
				t.Fatalf("fired = %v, want %v", fired, tc.fires)
			}
			if fired && !at.Equal(start.Add(tc.at)) {
				t.Errorf("received %v, want start + %v", at, tc.at)
			}
			if _, again := received(timer); again {
				t.Error("fired twice")
			}
		})
	}
}

func TestFakeStop(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(start)
	stopped, stop := c.NewTimer(time.Second)
	kept, _ := c.NewTimer(time.Second)
	late, stopLate := c.NewTimer(time.Second)
	atOnce, stopAtOnce := c.NewTimer(0)
	stop()
	stop()
	stopAtOnce()
	if n := c.Waiting(); n != 2 {
		t.Fatalf("Waiting() = %d after one of three was stopped, want 2", n)
	}
	c.Advance(time.Second)
	stopLate()
	for name, timer := range map[string]<-chan time.Time{"before": stopped, "after it was due": late, "of no time": atOnce} {
		if _, fired := received(timer); fired {
			t.Errorf("a timer that was stopped (%s) gave a time", name)
		}
	}
	if _, fired := received(kept); !fired {
		t.Error("stopping one timer stopped another")
	}
	if n := c.Waiting(); n != 0 {
		t.Errorf("Waiting() = %d at the end", n)
	}
}

// TestFakeKeepsTimersByTime makes timers out of order: a late one that was made first must not
// hold up those behind it.
func TestFakeKeepsTimersByTime(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(start)
	var timers []<-chan time.Time
	for _, seconds := range []int{3, 1, 2, 1} {
		timers = append(timers, c.After(time.Duration(seconds)*time.Second))
	}
	c.Advance(2 * time.Second)
	for i, want := range []bool{false, true, true, true} {
		if _, fired := received(timers[i]); fired != want {
			t.Errorf("timer %d fired = %v, want %v", i, fired, want)
		}
	}
	if n := c.Waiting(); n != 1 {
		t.Errorf("Waiting() = %d, want 1", n)
	}
}

// TestFakeWakesASleeper has a loop that makes a new timer after each one.
func TestFakeWakesASleeper(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(start)
	const rounds = 5
	var woken []time.Time
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range rounds {
			<-c.After(time.Minute)
			woken = append(woken, c.Now())
		}
	}()
	for range rounds {
		if err := c.AwaitWaiting(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		c.Advance(time.Minute)
	}
	<-done
	for i, at := range woken {
		if want := start.Add(time.Duration(i+1) * time.Minute); !at.Equal(want) {
			t.Errorf("round %d at %v, want %v", i, at, want)
		}
	}
}

func TestAwaitWaitingHonoursItsContext(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(start)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.AwaitWaiting(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("AwaitWaiting = %v, want context.Canceled", err)
	}
	if err := c.AwaitWaiting(ctx, 0); err != nil {
		t.Errorf("AwaitWaiting for nobody = %v", err)
	}
}

func TestFakeIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(start)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 100 {
				timer, stop := c.NewTimer(time.Duration(i) * time.Second)
				c.Advance(time.Second)
				_ = c.Waiting()
				received(timer)
				stop()
			}
		})
	}
	wg.Wait()
	if n := c.Waiting(); n != 0 {
		t.Errorf("Waiting() = %d after every timer was stopped", n)
	}
	if got, want := c.Now(), start.Add(800*time.Second); !got.Equal(want) {
		t.Errorf("Now() = %v, want %v: an Advance was lost", got, want)
	}
}
