package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/edihub/edihub/internal/store"
)

// Numbers of fresh keys.
const (
	settleFrom  = 8192 // begin to move over
	settleSlice = 512  // move in one commit
)

// keyName is what a natural key is unique by.
type keyName struct {
	scope store.Scope
	hash  [32]byte
}

// freshKey is a key that stands in fresh_key, under its number.
type freshKey struct {
	key store.NaturalKey
	n   int64
}

// keyCache knows the fresh keys: those of the running transaction, which only the writer sees,
// and the committed ones. A key that is in neither is looked up in natural_key. The newest claim of
// a key is the one that counts, so memory is asked before the table.
type keyCache struct {
	mu        sync.RWMutex
	committed map[keyName]freshKey // the writer changes it, readers read it

	// Owned by the writer.
	running map[keyName]freshKey
	undoLog []keyUndo
	next    int64 // number of the next fresh key
	moving  []freshKey
	moved   int // of moving, committed
	slice   int // of moving, in the running transaction
	from    int // so many fresh keys begin to move
	step    int // so many move in one commit
	buf     []driver.Value
}

type keyUndo struct {
	name keyName
	old  freshKey
	had  bool
}

func newKeyCache() *keyCache {
	return &keyCache{committed: map[keyName]freshKey{}, running: map[keyName]freshKey{}, next: 1, from: settleFrom, step: settleSlice}
}

// load reads what is fresh when the store opens.
func (c *keyCache) load(ctx context.Context, t *sql.Tx) error {
	rows, err := t.QueryContext(ctx, "select scope, hash, content, object, at, n from fresh_key order by n")
	if err != nil {
		return fmt.Errorf("read fresh keys: %w", classify(err))
	}
	defer rows.Close() //nolint:errcheck // Err below tells what went wrong.
	for rows.Next() {
		var n int64
		k, err := scanKey(rows, &n)
		if err != nil {
			return fmt.Errorf("read fresh keys: %w", classify(err))
		}
		c.committed[keyName{k.Scope, k.Hash}] = freshKey{*k, n}
		c.next = n + 1
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read fresh keys: %w", classify(err))
	}
	return nil
}

// scanKey reads a key, and the columns behind it.
func scanKey(r scanner, behind ...any) (*store.NaturalKey, error) {
	var scope, at int64
	var hash, content, object sql.RawBytes
	if err := r.Scan(append([]any{&scope, &hash, &content, &object, &at}, behind...)...); err != nil {
		return nil, err
	}
	k := readKey([]driver.Value{scope, []byte(hash), []byte(content), []byte(object), at})
	return &k, nil
}

// find returns the key as the running transaction has it, or nil.
func (c *keyCache) find(w *wconn, name keyName) (*store.NaturalKey, error) {
	if f, ok := c.running[name]; ok {
		return &f.key, nil
	}
	// Only the writer changes committed, so it may read it without the lock.
	if f, ok := c.committed[name]; ok {
		return &f.key, nil
	}
	var found *store.NaturalKey
	err := w.query(settledKey, func(row []driver.Value) error {
		k := readKey(row)
		found = &k
		return nil
	}, int64(name.scope), name.hash[:])
	return found, err
}

// put claims a key in the running request.
func (c *keyCache) put(k *store.NaturalKey) {
	name := keyName{k.Scope, k.Hash}
	old, had := c.running[name]
	c.undoLog = append(c.undoLog, keyUndo{name, old, had})
	c.running[name] = freshKey{*k, c.next}
	c.next++
}

func (c *keyCache) undo() {
	for _, u := range slices.Backward(c.undoLog) {
		if u.had {
			c.running[u.name] = u.old
		} else {
			delete(c.running, u.name)
		}
	}
	c.undoLog = c.undoLog[:0]
}

func (c *keyCache) forget() {
	clear(c.running)
	c.undoLog = c.undoLog[:0]
	c.slice = 0
}

// flush writes the keys of the transaction and moves a slice of the fresh ones over.
func (c *keyCache) flush(w *wconn) error {
	c.buf = c.buf[:0]
	for name := range c.running {
		f := c.running[name]
		c.buf = appendKey(append(c.buf, f.n), &f.key)
	}
	if _, err := w.insert(freshTable, putNew, c.buf); err != nil {
		return err
	}
	return c.settle(w)
}

func (c *keyCache) settle(w *wconn) error {
	if len(c.moving) == 0 {
		if len(c.committed) < c.from {
			return nil
		}
		c.gather()
	}
	part := c.moving[c.moved:min(c.moved+c.step, len(c.moving))]
	c.buf = c.buf[:0]
	for i := range part {
		c.buf = appendKey(c.buf, &part[i].key)
	}
	if _, err := w.insert(keyTable, putNew, c.buf); err != nil {
		return err
	}
	c.slice = len(part)
	if c.moved+c.slice < len(c.moving) {
		return nil
	}
	last := int64(0)
	for i := range c.moving {
		last = max(last, c.moving[i].n)
	}
	return w.exec("delete from fresh_key where n <= ?", last)
}

// gather takes what is fresh now, in the order of the table that it moves to.
func (c *keyCache) gather() {
	c.moving, c.moved = make([]freshKey, 0, len(c.committed)), 0
	for name := range c.committed {
		c.moving = append(c.moving, c.committed[name])
	}
	slices.SortFunc(c.moving, func(a, b freshKey) int {
		return cmp.Or(cmp.Compare(a.key.Scope, b.key.Scope), bytes.Compare(a.key.Hash[:], b.key.Hash[:]))
	})
}

// finished makes what the transaction wrote the committed state.
func (c *keyCache) finished() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.running {
		c.committed[name] = c.running[name]
	}
	clear(c.running)
	c.undoLog = c.undoLog[:0]
	c.moved += c.slice
	c.slice = 0
	if len(c.moving) == 0 || c.moved < len(c.moving) {
		return
	}
	for i := range c.moving {
		f := &c.moving[i]
		name := keyName{f.key.Scope, f.key.Hash}
		if c.committed[name].n == f.n { // else it was claimed anew meanwhile
			delete(c.committed, name)
		}
	}
	c.moving, c.moved = nil, 0
}

// GetKey implements store.Reader. A key that is older than since is not found.
func (s *Store) GetKey(ctx context.Context, scope store.Scope, hash [32]byte, since time.Time) (*store.NaturalKey, error) {
	s.keys.mu.RLock()
	f, ok := s.keys.committed[keyName{scope, hash}]
	s.keys.mu.RUnlock()
	vs, err := []*store.NaturalKey{&f.key}, error(nil)
	if !ok {
		vs, err = point(ctx, s, settledKey, func(r scanner) (*store.NaturalKey, error) { return scanKey(r) }, int64(scope), hash[:])
	}
	if err == nil && len(vs) > 0 && vs[0].At.Before(since) {
		vs = nil
	}
	return only(vs, err, scope.String()+" key")
}
