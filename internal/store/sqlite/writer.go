package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/edihub/edihub/internal/store"
)

// Limits of one group commit. A group is what queued up while the last one was written, and what
// comes within gatherTime where the last one had company: then more is on its way, and a commit
// costs the same for few as for many. Whoever writes alone is never made to wait.
const (
	groupRequests = 128
	groupTime     = 8 * time.Millisecond
	gatherTime    = 2 * time.Millisecond
	gatherRecent  = 10 * time.Millisecond // how long a group tells something about the next
)

// errClosed is what a closed store answers.
var errClosed = fmt.Errorf("%w: the store is closed", store.ErrUnavailable)

// errFinished: a transaction was used after its function had returned.
var errFinished = errors.New("transaction used after its end")

// request is an Update in the writer's queue.
type request struct {
	fn   func(tx store.Tx) error
	job  func(w *wconn) error // work between transactions, instead of fn
	err  error
	done chan struct{}
	// state decides between the writer, who starts, and a caller, who gives up.
	state atomic.Int32
}

const (
	waiting int32 = iota
	started
	abandoned
)

// submit hands a request to the writer and waits for its end. A caller may give up as long as
// the writer has not started it.
func (s *Store) submit(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	r.done = make(chan struct{})
	select {
	case s.queue <- r:
	case <-s.closing:
		return errClosed
	case <-ctx.Done():
		return fmt.Errorf("update: %w", ctx.Err())
	}
	select {
	case <-r.done:
		return r.err
	case <-s.dead:
		return r.fate()
	case <-ctx.Done():
	}
	if r.state.CompareAndSwap(waiting, abandoned) {
		return fmt.Errorf("update: %w", ctx.Err())
	}
	select {
	case <-r.done: // it runs: its end is near, and the caller must know which it was
		return r.err
	case <-s.dead:
		return r.fate()
	}
}

// fate is what became of a request by the time the writer ended.
func (r *request) fate() error {
	select {
	case <-r.done:
		return r.err
	default:
		return errClosed
	}
}

// Update implements store.Store.
func (s *Store) Update(ctx context.Context, fn func(tx store.Tx) error) error {
	return s.submit(ctx, &request{fn: fn})
}

// writer is the state of the one goroutine that writes.
type writer struct {
	s *Store
	w *wconn

	lanes    laneCache
	numbers  numberCache
	keys     *keyCache
	pending  []*pending
	tables   struct{ transmission, interchange, message, delivery *pending }
	events   buffer
	bodyRows buffer
	bodies   []store.Body // what the cache takes after the commit
	bodyMark int
	nonce    int64
	logTried int64 // size of the log at the last call for a checkpoint

	company time.Time // when the last group of two or more ended

	open      bool // a transaction is running
	savepoint bool // the request that runs has a savepoint
	first     bool // the request that runs is the first of its transaction
}

// loop serves the queue until it closes.
func (w *writer) loop() {
	for {
		select {
		case r := <-w.s.queue:
			w.gather()
			w.group(r)
		case <-w.s.closing:
			w.drain()
			return
		}
	}
}

// gather lets others queue up behind the first of a group. It waits by the machine's own clock,
// because what it waits for is other goroutines' work and not a time that means something.
func (w *writer) gather() {
	if time.Since(w.company) > gatherRecent {
		return
	}
	t := time.NewTimer(gatherTime)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.s.closing:
	}
}

// drain runs what was queued before the store closed.
func (w *writer) drain() {
	for {
		select {
		case r := <-w.s.queue:
			w.group(r)
		default:
			return
		}
	}
}

// group runs requests as one transaction, from first on to whatever waits.
func (w *writer) group(first *request) {
	var ran []*request
	start := w.s.clock.Now()
	for r := first; r != nil; r = w.next(len(ran), start) {
		if !r.state.CompareAndSwap(waiting, started) {
			continue
		}
		if r.job != nil {
			// A job stands between transactions.
			w.finish(ran)
			ran = nil
			r.err = r.job(w.w)
			w.w.broken = nil
			close(r.done)
			continue
		}
		if err := w.begin(); err != nil {
			r.err = err
			close(r.done)
			w.abort(ran, err)
			ran = nil
			continue
		}
		w.first = len(ran) == 0
		r.err = w.one(r.fn)
		switch {
		case w.w.broken != nil:
			err := w.w.broken
			if r.err == nil {
				r.err = err
			}
			close(r.done)
			w.abort(ran, err)
			ran = nil
		case r.err != nil:
			close(r.done)
		default:
			ran = append(ran, r)
		}
	}
	w.finish(ran)
}

// next takes a request that waits, if the group may still grow.
func (w *writer) next(n int, start time.Time) *request {
	if n >= groupRequests || w.s.clock.Now().Sub(start) >= groupTime {
		return nil
	}
	select {
	case r := <-w.s.queue:
		return r
	default:
		return nil
	}
}

func (w *writer) begin() error {
	if w.open {
		return nil
	}
	if err := w.s.checkSpace(); err != nil {
		return err
	}
	if err := w.w.control("begin immediate"); err != nil {
		w.w.broken = nil
		return err
	}
	w.open = true
	return nil
}

// one runs a request. The first of a transaction needs no savepoint: when it fails, the whole
// transaction is rolled back, which is nothing but this request.
func (w *writer) one(fn func(tx store.Tx) error) error {
	w.mark()
	w.savepoint = false
	w.w.before = w.save
	if w.first {
		w.w.before = nil
	}
	t := &tx{w: w}
	err := guard(t, fn)
	t.over = true
	w.w.before = nil
	if w.w.broken != nil {
		return err
	}
	if err == nil {
		w.keep()
		if w.savepoint {
			// Should the release fail, then the transaction is broken and all of it fails.
			err = w.w.control("release request")
		}
		return err
	}
	w.undo()
	switch {
	case w.first:
		w.rollback()
	case w.savepoint:
		if e := w.w.control("rollback to request"); e == nil {
			_ = w.w.control("release request") // a failure is remembered in broken, which fails the group
		}
	}
	return err
}

// save opens the savepoint of the request that runs, ahead of its first write.
func (w *writer) save() error {
	if w.savepoint {
		return nil
	}
	w.savepoint = true
	return w.w.control("savepoint request")
}

// guard turns a panic of fn into its error.
func guard(t *tx, fn func(tx store.Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("update panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(t)
}

// finish commits, and tells the requests.
func (w *writer) finish(ran []*request) {
	if len(ran) == 0 {
		// What ran failed. An open transaction is empty, but it must not stay open.
		if w.open {
			w.rollback()
		}
		return
	}
	err := w.flushAll()
	if err == nil {
		err = w.w.control("commit")
	}
	if err != nil {
		if !errors.Is(err, store.ErrUnavailable) {
			err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
		w.abort(ran, err)
		return
	}
	w.open = false
	w.committed()
	w.s.commits.Add(1)
	w.s.statements.Store(w.w.count)
	for _, r := range ran {
		close(r.done)
	}
	if len(ran) > 1 {
		w.company = time.Now()
	}
	w.watchLog()
}

// abort gives up the transaction with all that ran in it.
func (w *writer) abort(ran []*request, err error) {
	w.rollback()
	if !errors.Is(err, store.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	for _, r := range ran {
		r.err = err
		close(r.done)
	}
}

// rollback ends the transaction and forgets what was remembered of it.
func (w *writer) rollback() {
	if w.open {
		// It fails when SQLite has rolled back already; either way there is no transaction after it.
		_ = w.w.control("rollback")
	}
	w.open = false
	w.w.broken = nil
	w.forget()
}
