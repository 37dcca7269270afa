package sqlite

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

var errNot = errors.New("not this one")

// keyModel is what the claims of a history must add up to.
type keyModel map[keyName]store.NaturalKey

func (m keyModel) check(t *rapid.T, s *Store, run byte, since time.Time) {
	for scope := store.ScopeInterchange; scope <= store.ScopeContent; scope++ {
		for b := range 20 {
			name := keyName{scope, [32]byte{byte(b), run}}
			got, err := s.GetKey(ctx, name.scope, name.hash, since)
			want, ok := m[name]
			if !ok || want.At.Before(since) {
				if !errors.Is(err, store.ErrNotFound) {
					t.Fatalf("key %v: %v, %v; nobody has it", name, got, err)
				}
				continue
			}
			if err != nil || !cmp.Equal(*got, want) {
				t.Fatalf("key %v: %v, %v, want %v", name, got, err, want)
			}
		}
	}
}

// TestKeysMoveUnseen: however often keys move from the fresh ones into the table, requests fail and
// the store is opened again, each key is with the claim that holds it.
func TestKeysMoveUnseen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	reopen := func() *Store {
		s, err := Open(ctx, Options{Dir: dir, MinFree: -1})
		if err != nil {
			t.Fatal(err)
		}
		s.keys.from, s.keys.step = 6, 2
		return s
	}
	s := reopen()
	defer func() {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	run := byte(0) // the runs share the store, each with hashes of its own
	rapid.Check(t, func(t *rapid.T) {
		run++
		model := keyModel{}
		now := t0
		for range rapid.IntRange(3, 12).Draw(t, "steps") {
			now = now.Add(time.Minute)
			if rapid.IntRange(0, 40).Draw(t, "what") == 40 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = reopen()
			}
			since := now.Add(-time.Duration(rapid.IntRange(0, 30).Draw(t, "window")) * time.Minute)
			fails := rapid.IntRange(0, 4).Draw(t, "fails") == 0
			keys := make([]store.NaturalKey, rapid.IntRange(1, 5).Draw(t, "keys"))
			for i := range keys {
				keys[i] = store.NaturalKey{
					Scope: rapid.SampledFrom([]store.Scope{store.ScopeInterchange, store.ScopeContent}).Draw(t, "scope"),
					Hash:  [32]byte{byte(rapid.IntRange(0, 19).Draw(t, "hash")), run}, Content: [32]byte{1}, Object: edi.NewID(now), At: now,
				}
			}
			want := keyModel{}
			err := s.Update(ctx, func(tx store.Tx) error {
				for _, k := range keys {
					name := keyName{k.Scope, k.Hash}
					held, err := tx.Claim([]store.NaturalKey{k}, []time.Time{since})
					if err != nil {
						return err
					}
					old, taken := model[name]
					if mine, ok := want[name]; ok {
						old, taken = mine, true
					}
					taken = taken && !old.At.Before(since)
					if (held[0] != nil) != taken || taken && !cmp.Equal(*held[0], old) {
						return fmt.Errorf("claim of %v gave %v, want %v %v", name, held[0], taken, old)
					}
					if !taken {
						want[name] = k
					}
				}
				if fails {
					return errNot
				}
				return nil
			})
			if fails != errors.Is(err, errNot) || err != nil && !fails {
				t.Fatal(err)
			}
			if !fails {
				for name := range want {
					model[name] = want[name]
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "look") == 0 {
				model.check(t, s, run, now.Add(-15*time.Minute))
			}
		}
		model.check(t, s, run, now.Add(-15*time.Minute))
	})
}

func TestManyKeysMoveOver(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Dir: t.TempDir()})
	s.keys.from, s.keys.step = 200, 50
	for i := range 100 {
		keys, since := make([]store.NaturalKey, 10), make([]time.Time, 10)
		for j := range keys {
			keys[j] = store.NaturalKey{Scope: store.ScopeContent, Hash: [32]byte{byte(i), byte(j)}, Object: edi.NewID(t0), At: t0}
		}
		err := s.Update(ctx, func(tx store.Tx) error { _, err := tx.Claim(keys, since); return err })
		if err != nil {
			t.Fatal(err)
		}
	}
	var fresh, settled int
	if err := s.lists.QueryRow("select (select count(*) from fresh_key), (select count(*) from natural_key)").Scan(&fresh, &settled); err != nil {
		t.Fatal(err)
	}
	if fresh > 300 || settled < 700 || len(s.keys.committed) > 300 {
		t.Errorf("%d fresh keys (%d in memory), %d in the table", fresh, len(s.keys.committed), settled)
	}
}
