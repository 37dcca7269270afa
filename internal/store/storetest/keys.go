package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/store"
)

func key(n byte, content byte) store.NaturalKey {
	return store.NaturalKey{Scope: store.ScopeInterchange, Hash: hash32(n), Content: hash32(content), Object: newID(), At: t0}
}

// claim claims keys with the same since and returns what holds them.
func claim(t *testing.T, st store.Store, since time.Time, keys ...store.NaturalKey) (held []*store.NaturalKey) {
	t.Helper()
	update(t, st, func(tx store.Tx) (err error) {
		at := make([]time.Time, len(keys))
		for i := range at {
			at[i] = since
		}
		held, err = tx.Claim(keys, at)
		return err
	})
	return held
}

var keyTests = map[string]func(*testing.T, *Env){
	"a free key is taken, a taken one says what holds it": func(t *testing.T, e *Env) {
		a, b := key(1, 10), key(2, 20)
		equal(t, "first", claim(t, e.Store, time.Time{}, a), []*store.NaturalKey{nil})
		other := key(1, 11)
		held := claim(t, e.Store, time.Time{}, other, b)
		equal(t, "second", held, []*store.NaturalKey{&a, nil})
		equal(t, "read", *get[*store.NaturalKey](t)(e.Store.GetKey(ctxOf(t), a.Scope, a.Hash, time.Time{})), a)
	},
	"the same claim again finds itself": func(t *testing.T, e *Env) {
		a := key(1, 10)
		claim(t, e.Store, time.Time{}, a)
		equal(t, "again", claim(t, e.Store, time.Time{}, a), []*store.NaturalKey{&a})
	},
	"of equal keys in one call the first wins": func(t *testing.T, e *Env) {
		a, b := key(1, 10), key(1, 11)
		equal(t, "claim", claim(t, e.Store, time.Time{}, a, b), []*store.NaturalKey{nil, &a})
	},
	"a key is of its scope": func(t *testing.T, e *Env) {
		a := key(1, 10)
		b := a
		b.Scope = store.ScopeDocument
		equal(t, "claim", claim(t, e.Store, time.Time{}, a, b), []*store.NaturalKey{nil, nil})
	},
	"a key older than since is taken over": func(t *testing.T, e *Env) {
		a := key(1, 10)
		claim(t, e.Store, time.Time{}, a)
		b := key(1, 11)
		b.At = t0.Add(time.Hour)
		equal(t, "at its very age", claim(t, e.Store, t0, b), []*store.NaturalKey{&a})
		_, err := e.Store.GetKey(ctxOf(t), a.Scope, a.Hash, t0.Add(1))
		isErr(t, "read", err, store.ErrNotFound)
		equal(t, "older", claim(t, e.Store, t0.Add(1), b), []*store.NaturalKey{nil})
		equal(t, "read", *get[*store.NaturalKey](t)(e.Store.GetKey(ctxOf(t), a.Scope, a.Hash, t0)), b)
	},
	"a claim is undone with its transaction": func(t *testing.T, e *Env) {
		errs := together(t, e.Store,
			func(tx store.Tx) error { return tx.SaveSetting("a", nil) },
			func(tx store.Tx) error {
				_, err := tx.Claim([]store.NaturalKey{key(1, 10)}, []time.Time{{}})
				return errors.Join(err, errWanted)
			})
		isErr(t, "update", errs[1], errWanted)
		equal(t, "claim", claim(t, e.Store, time.Time{}, key(1, 11)), []*store.NaturalKey{nil})
	},
	"an unknown key is not found": func(t *testing.T, e *Env) {
		_, err := e.Store.GetKey(ctxOf(t), store.ScopeAS2, hash32(1), time.Time{})
		isErr(t, "read", err, store.ErrNotFound)
	},
	"each key has its time": func(t *testing.T, e *Env) {
		err := e.Store.Update(ctxOf(t), func(tx store.Tx) error {
			_, err := tx.Claim([]store.NaturalKey{key(1, 1)}, nil)
			return err
		})
		if err == nil {
			t.Error("a claim without times was taken")
		}
	},
	"many keys at once": func(t *testing.T, e *Env) {
		var keys []store.NaturalKey
		for i := range byte(100) {
			keys = append(keys, key(i, i))
		}
		claim(t, e.Store, time.Time{}, keys[10:20]...)
		held := claim(t, e.Store, time.Time{}, keys...)
		for i, h := range held {
			if (h != nil) != (i >= 10 && i < 20) {
				t.Errorf("key %d is held by %v", i, h)
			}
		}
	},
}

// take takes numbers in a transaction of its own.
func take(t *testing.T, st store.Store, start, limit, n int64) (first int64) {
	t.Helper()
	update(t, st, func(tx store.Tx) (err error) {
		first, err = tx.Number("own/acme/interchange", start, limit, n)
		return err
	})
	return first
}

var numberTests = map[string]func(*testing.T, *Env){
	"run from start without a gap": func(t *testing.T, e *Env) {
		equal(t, "first", take(t, e.Store, 100, 999, 1), 100)
		equal(t, "second", take(t, e.Store, 100, 999, 3), 101)
		equal(t, "third", take(t, e.Store, 100, 999, 1), 104)
		equal(t, "after a restart", take(t, e.Restart(t), 100, 999, 1), 105)
	},
	"begin at 1 after the limit": func(t *testing.T, e *Env) {
		take(t, e.Store, 9, 10, 1)
		equal(t, "limit", take(t, e.Store, 9, 10, 1), 10)
		equal(t, "behind it", take(t, e.Store, 9, 10, 1), 1)
	},
	"a block counts on over the limit": func(t *testing.T, e *Env) {
		take(t, e.Store, 8, 10, 1)
		equal(t, "9, 10, 1, 2", take(t, e.Store, 8, 10, 4), 9)
		equal(t, "behind the block", take(t, e.Store, 8, 10, 1), 3)
	},
	"a block that ends at the limit": func(t *testing.T, e *Env) {
		equal(t, "all", take(t, e.Store, 1, 5, 5), 1)
		equal(t, "again", take(t, e.Store, 1, 5, 5), 1)
	},
	"a limit that was lowered": func(t *testing.T, e *Env) {
		take(t, e.Store, 500, 999, 1)
		equal(t, "number", take(t, e.Store, 1, 99, 1), 1)
	},
	"are not lost by a rollback": func(t *testing.T, e *Env) {
		take(t, e.Store, 1, 99, 1)
		fail := func(tx store.Tx) error {
			n, err := tx.Number("own/acme/interchange", 1, 99, 7)
			equal(t, "number", n, 2)
			return errors.Join(err, errWanted)
		}
		errs := together(t, e.Store, fail, fail)
		isErr(t, "update", errs[0], errWanted)
		isErr(t, "update", errs[1], errWanted)
		equal(t, "number", take(t, e.Store, 1, 99, 1), 2)
	},
	"sequences are apart": func(t *testing.T, e *Env) {
		take(t, e.Store, 5, 99, 1)
		update(t, e.Store, func(tx store.Tx) error {
			n, err := tx.Number("other", 1, 99, 1)
			equal(t, "number", n, 1)
			return err
		})
	},
	"nonsense is refused": func(t *testing.T, e *Env) {
		for _, c := range [][3]int64{{1, 10, 0}, {1, 10, 11}, {0, 10, 1}, {11, 10, 1}, {1, 0, 1}} {
			err := e.Store.Update(ctxOf(t), func(tx store.Tx) error {
				_, err := tx.Number("s", c[0], c[1], c[2])
				return err
			})
			if err == nil {
				t.Errorf("start %d, limit %d, n %d was taken", c[0], c[1], c[2])
			}
		}
	},
}
