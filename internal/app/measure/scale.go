package measure

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/edihub/edihub/internal/app"
	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// scaleHub is a hub in this process whose validator does what the caller wants before its own
// work. What comes in stops before the router, so that nothing but the validator is measured.
type scaleHub struct {
	*rig
	hub *app.Hub
}

// perFile is how many messages come in one interchange: more than one, so that each is validated
// by the validator's own workers and not on the way through the parser.
const perFile = 50

func newScaleHub(ctx context.Context, work func(ctx context.Context)) (*scaleHub, error) {
	r, err := newRig(ctx, rigOptions{split: "messages", envelope: "new"})
	if err != nil {
		return nil, err
	}
	s := &scaleHub{rig: r}
	cfg, _, err := config.Load(config.Options{Flags: map[string]string{
		"data": filepath.Join(r.dir, "data"), "as2.listen": "127.0.0.1:0", "admin.listen": "127.0.0.1:0", "partners_file": r.records(),
	}})
	if err == nil {
		s.hub, err = app.New(app.Options{Config: cfg, Wrap: func(stage store.Stage, impl pipeline.Stage) pipeline.Stage {
			if stage != store.Validator {
				return impl
			}
			return pipeline.StageFunc(func(ctx context.Context, t *pipeline.Task) *pipeline.Outcome {
				work(ctx)
				return impl.Handle(ctx, t)
			})
		}})
	}
	if err == nil {
		err = s.hub.Start(ctx)
	}
	if err != nil {
		r.close()
		return nil, fmt.Errorf("hub of the measurement: %w", err)
	}
	paused := true
	if err := s.hub.Pipeline().Change(ctx, store.Router, pipeline.StageChange{Paused: &paused}); err != nil {
		return nil, errors.Join(err, s.stop(ctx))
	}
	return s, nil
}

func (s *scaleHub) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.StopWithin)
	defer cancel()
	err := s.hub.Stop(ctx)
	s.close()
	return err
}

// fill posts at least n messages.
func (s *scaleHub) fill(ctx context.Context, n int) error {
	for done := 0; done < n; done += perFile {
		if err := s.post(ctx, s.hub.AS2Addr(), "application/EDIFACT", edifactFile(s.posts+1, perFile, 300, Good)); err != nil {
			return err
		}
	}
	return nil
}

// resize changes the validator's pool while it runs.
func (s *scaleHub) resize(ctx context.Context, workers int) error {
	if err := s.hub.Pipeline().Change(ctx, store.Validator, pipeline.StageChange{Workers: &workers}); err != nil {
		return fmt.Errorf("resize: %w", err)
	}
	return waitUntil(ctx, 5*time.Millisecond, func() (bool, error) {
		for _, st := range s.hub.Pipeline().Stages(ctx) {
			if st.Stage == store.Validator {
				return st.Alive == workers, nil
			}
		}
		return false, nil
	})
}

// ScaleTable measures the rate of a stage whose work waits 20 ms, with 1, 2, 4 and 8 workers. The
// pool is resized while it runs; the lanes are unordered.
func ScaleTable(ctx context.Context, window time.Duration) (_ *Table, err error) {
	const pause = 20 * time.Millisecond
	t := &Table{
		Title: fmt.Sprintf("a stage whose work waits %s, unordered, resized while it runs", pause),
		Head:  []string{"workers", "messages", "rate", "times that of one worker", "the most there can be"},
	}
	var handled atomic.Int64
	s, err := newScaleHub(ctx, func(ctx context.Context) {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		handled.Add(1)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	sizes := []int{1, 2, 4, 8}
	total := 0
	for _, n := range sizes {
		// What a window can take, and half as much again for the time between the windows.
		total += int(1.5*float64(window/pause))*n + perFile
	}
	if err := s.resize(ctx, 1); err != nil {
		return nil, err
	}
	if err := s.fill(ctx, total); err != nil {
		return nil, err
	}
	one := 0.0
	for _, n := range sizes {
		if err := s.resize(ctx, n); err != nil {
			return nil, err
		}
		// Begin and end with a message, so that no part of one is counted.
		begun, from, err := next(ctx, &handled)
		if err != nil {
			return nil, err
		}
		if err := sleep(ctx, window); err != nil {
			return nil, err
		}
		over, to, err := next(ctx, &handled)
		if err != nil {
			return nil, err
		}
		rate := float64(to-from) / over.Sub(begun).Seconds()
		if n == 1 {
			one = rate
		}
		most := float64(n) / pause.Seconds()
		t.add(n, to-from, fmt.Sprintf("%.1f/s", rate), fmt.Sprintf("%.2f", rate/one), fmt.Sprintf("%.0f/s", most))
		if rate < 0.9*float64(n)*one {
			t.broken("%d workers gave %.2f times the rate of one", n, rate/one)
		}
	}
	return t, nil
}

// next waits until the counter moves.
func next(ctx context.Context, n *atomic.Int64) (time.Time, int64, error) {
	before := n.Load()
	err := waitUntil(ctx, time.Millisecond, func() (bool, error) { return n.Load() != before, nil })
	return time.Now(), n.Load(), err
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
