// Package storetest is the specification of store.Store: a suite that every driver passes. Each
// test names the promise it holds a driver to.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// Env is a store under test and the ways to start it again.
type Env struct {
	Store store.Store
	// Restart closes the store and opens the same data as the next process would.
	Restart func(t *testing.T) store.Store
	// Crash opens what a process that ended now, without Close, would find.
	Crash func(t *testing.T) store.Store
}

// Fresh makes an empty store. It registers its own clean-up.
type Fresh func(t *testing.T) *Env

// Run runs the suite.
func Run(t *testing.T, fresh Fresh) {
	groups := map[string]map[string]func(*testing.T, *Env){
		"update": updateTests, "lanes": laneTests, "work": workTests, "sweeps": sweepTests, "keys": keyTests, "numbers": numberTests,
		"objects": objectTests, "ends": endTests, "lists": listTests, "bodies": bodyTests, "restart": restartTests,
	}
	for group, tests := range groups {
		t.Run(group, func(t *testing.T) {
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(t, fresh(t))
				})
			}
		})
	}
}

// t0 is the time of the suite's objects.
var t0 = time.Date(2026, 8, 14, 9, 30, 0, 123_456_789, time.UTC)

func newID() edi.ID { return edi.NewID(t0) }

// idAt gives ids that sort by n.
func idAt(n int) edi.ID { return edi.NewID(t0.Add(time.Duration(n) * time.Millisecond)) }

// hash32 is an array that begins with n.
func hash32(n byte) (h [32]byte) {
	h[0] = n
	return h
}

func ctxOf(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// update runs fn, which must succeed.
func update(t *testing.T, st store.Store, fn func(tx store.Tx) error) {
	t.Helper()
	if err := st.Update(ctxOf(t), fn); err != nil {
		t.Fatalf("update: %v", err)
	}
}

// get is the value of a call that must succeed.
func get[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		return v
	}
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func isErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !cmp.Equal(got, want, cmpopts.EquateErrors()) {
		t.Errorf("%s: error is %v, want %v", what, got, want)
	}
}

// lane makes a lane of a name and returns its id.
func lane(t *testing.T, st store.Store, name string, ordered bool) *store.Lane {
	t.Helper()
	var l *store.Lane
	update(t, st, func(tx store.Tx) error {
		ls, err := tx.Lanes([]store.LaneSpec{{Stage: store.Validator, Name: name, Ordered: ordered, Policy: "block"}})
		if err == nil {
			l = ls[0]
		}
		return err
	})
	return l
}

// row is a work row of the validator.
func row(lane, seq int64, state store.WorkState) *store.Work {
	return &store.Work{
		WorkKey: store.WorkKey{Stage: store.Validator, ID: idAt(int(seq))}, Kind: store.KindMessage, Lane: lane, Seq: seq, State: state, Since: t0,
	}
}

// insert adds rows, which must all be new.
func insert(t *testing.T, st store.Store, rows ...*store.Work) {
	t.Helper()
	update(t, st, func(tx store.Tx) error {
		fresh, err := tx.InsertWork(rows)
		for _, ok := range fresh {
			if !ok {
				t.Errorf("row was there already")
			}
		}
		return err
	})
}

func seqs(rows []*store.Work) []int64 {
	out := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = r.Seq
	}
	return out
}
