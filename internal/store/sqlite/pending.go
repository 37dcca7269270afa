package sqlite

import (
	"database/sql/driver"
	"slices"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// pending holds rows of a table that are to be written at the end of the transaction, so that
// the rows of all requests of a group share a few statements. What a request must see in the
// table is flushed before it looks.
type pending struct {
	t       *table
	rows    []pendingRow
	set     map[edi.ID]struct{} // of the rows that are not flushed
	flushed int                 // rows[:flushed] are in the table
	mark    int                 // rows[mark:] belong to the request that runs
	buf     []driver.Value
}

type pendingRow struct {
	id   edi.ID
	put  bool
	vals []driver.Value
}

func newPending(t *table) *pending { return &pending{t: t, set: map[edi.ID]struct{}{}} }

func (p *pending) has(id edi.ID) bool {
	_, ok := p.set[id]
	return ok
}

// add takes a row; put replaces the row that is there, else that one stays.
func (p *pending) add(id edi.ID, put bool, vals []driver.Value) {
	if p.has(id) && !put {
		return
	}
	p.rows = append(p.rows, pendingRow{id, put, vals})
	p.set[id] = struct{}{}
}

// flush writes what is pending, in the order in which it was added. Inserts and saves go apart,
// because an insert never wins over a save of the same row, whichever comes first.
func (p *pending) flush(w *wconn) error {
	if p.flushed == len(p.rows) {
		return nil
	}
	for _, put := range []bool{false, true} {
		p.buf = p.buf[:0]
		for _, r := range p.rows[p.flushed:] {
			if r.put == put {
				p.buf = append(p.buf, r.vals...)
			}
		}
		mode := keepOld
		if put {
			mode = putNew
		}
		if _, err := w.insert(p.t, mode, p.buf); err != nil {
			return err
		}
	}
	p.flushed = len(p.rows)
	clear(p.set)
	return nil
}

// keep ends a request that succeeded.
func (p *pending) keep() {
	if p.flushed > 0 {
		n := copy(p.rows, p.rows[p.flushed:])
		clear(p.rows[n:])
		p.rows, p.flushed = p.rows[:n], 0
	}
	p.mark = len(p.rows)
}

// undo takes back what the request added. Rows of earlier requests that it flushed were undone
// with its savepoint, so they are to be flushed again.
func (p *pending) undo() {
	clear(p.rows[p.mark:])
	p.rows, p.flushed = p.rows[:p.mark], 0
	clear(p.set)
	for _, r := range p.rows {
		p.set[r.id] = struct{}{}
	}
}

func (p *pending) forget() {
	clear(p.rows)
	p.rows, p.flushed, p.mark = p.rows[:0], 0, 0
	clear(p.set)
}

// buffer is pending for rows that no transaction reads.
type buffer struct {
	vals []driver.Value
	mark int
}

func (b *buffer) undo() {
	clear(b.vals[b.mark:])
	b.vals = b.vals[:b.mark]
}

func (b *buffer) forget() {
	clear(b.vals)
	b.vals, b.mark = b.vals[:0], 0
}

// mark remembers where the request that runs begins.
func (w *writer) mark() {
	for _, p := range w.pending {
		p.mark = len(p.rows)
	}
	w.events.mark = len(w.events.vals)
	w.bodyRows.mark = len(w.bodyRows.vals)
	w.bodyMark = len(w.bodies)
	w.lanes.undoLog = w.lanes.undoLog[:0]
	w.numbers.undoLog = w.numbers.undoLog[:0]
	w.keys.undoLog = w.keys.undoLog[:0]
}

// keep ends a request that succeeded.
func (w *writer) keep() {
	for _, p := range w.pending {
		p.keep()
	}
}

// undo takes the request back out of everything that is remembered outside of the database.
func (w *writer) undo() {
	for _, p := range w.pending {
		p.undo()
	}
	w.events.undo()
	w.bodyRows.undo()
	w.bodies = w.bodies[:w.bodyMark]
	w.lanes.undo()
	w.numbers.undo()
	w.keys.undo()
}

// forget empties everything: the transaction is gone.
func (w *writer) forget() {
	for _, p := range w.pending {
		p.forget()
	}
	w.events.forget()
	w.bodyRows.forget()
	w.bodies = w.bodies[:0]
	w.lanes.forget()
	w.numbers.forget()
	w.keys.forget()
}

// flushAll writes what is pending, ahead of the commit.
func (w *writer) flushAll() error {
	for _, p := range w.pending {
		if err := p.flush(w.w); err != nil {
			return err
		}
	}
	if _, err := w.w.insert(bodyTable, keepOld, w.bodyRows.vals); err != nil {
		return err
	}
	if _, err := w.w.insert(eventTable, keepOld, w.events.vals); err != nil {
		return err
	}
	if err := w.lanes.flush(w.w); err != nil {
		return err
	}
	if err := w.numbers.flush(w.w); err != nil {
		return err
	}
	return w.keys.flush(w.w)
}

// committed makes the state of the caches that of the database.
func (w *writer) committed() {
	for _, b := range w.bodies {
		if b.Plain != nil {
			w.s.cache.put(b.Ref, b.Plain)
		}
	}
	for _, p := range w.pending {
		p.forget()
	}
	w.events.forget()
	w.bodyRows.forget()
	clear(w.bodies)
	w.bodies = w.bodies[:0]
	w.lanes.committed()
	w.numbers.committed()
	w.keys.finished()
}

// laneName is what a lane is unique by.
type laneName struct {
	stage store.Stage
	name  string
}

// How many lanes and sequences the writer remembers; beyond, it begins anew.
const (
	cachedLanes   = 20_000
	cachedNumbers = 20_000
)

// laneCache remembers lanes, so that most transactions read none, and writes each changed lane
// once a commit. Only the writer changes lanes, so what it remembers is what is there.
type laneCache struct {
	byID    map[int64]store.Lane
	byName  map[laneName]int64
	dirty   map[int64]struct{}
	undoLog []laneUndo
	next    int64 // id of the next new lane
	limit   int   // how many to remember
	buf     []driver.Value
}

type laneUndo struct {
	id       int64
	old      store.Lane
	made     bool // it did not exist before
	wasDirty bool
}

// set changes a lane in the running request.
func (c *laneCache) set(l store.Lane) {
	old, ok := c.byID[l.ID]
	_, dirty := c.dirty[l.ID]
	c.undoLog = append(c.undoLog, laneUndo{id: l.ID, old: old, made: !ok, wasDirty: dirty})
	c.byID[l.ID] = l
	c.byName[laneName{l.Stage, l.Name}] = l.ID
	c.dirty[l.ID] = struct{}{}
}

// learn takes a lane as the database has it.
func (c *laneCache) learn(l store.Lane) {
	c.byID[l.ID] = l
	c.byName[laneName{l.Stage, l.Name}] = l.ID
}

func (c *laneCache) drop(id int64) {
	l := c.byID[id]
	delete(c.byName, laneName{l.Stage, l.Name})
	delete(c.byID, id)
	delete(c.dirty, id)
}

func (c *laneCache) undo() {
	for _, u := range slices.Backward(c.undoLog) {
		if u.made {
			c.drop(u.id)
			continue
		}
		c.byID[u.id] = u.old
		if !u.wasDirty {
			delete(c.dirty, u.id)
		}
	}
	c.undoLog = c.undoLog[:0]
}

func (c *laneCache) forget() {
	for id := range c.dirty {
		c.drop(id)
	}
	c.undoLog = c.undoLog[:0]
}

func (c *laneCache) flush(w *wconn) error {
	c.buf = c.buf[:0]
	for id := range c.dirty {
		l := c.byID[id]
		c.buf = append(c.buf, l.ID, int64(l.Stage), l.Name, flag(l.Ordered), l.Policy, l.Next, l.Tail, l.Waiting, flag(l.Paused), l.Profile)
	}
	_, err := w.insert(laneTable, putNew, c.buf)
	return err
}

func (c *laneCache) committed() {
	clear(c.dirty)
	c.undoLog = c.undoLog[:0]
	if len(c.byID) > c.limit {
		clear(c.byID)
		clear(c.byName)
	}
}

// numberCache is laneCache for control numbers.
type numberCache struct {
	next    map[string]int64
	dirty   map[string]struct{}
	undoLog []numberUndo
	buf     []driver.Value
}

type numberUndo struct {
	sequence string
	old      int64
	wasDirty bool
}

func (c *numberCache) set(sequence string, next int64) {
	_, dirty := c.dirty[sequence]
	c.undoLog = append(c.undoLog, numberUndo{sequence, c.next[sequence], dirty})
	c.next[sequence] = next
	c.dirty[sequence] = struct{}{}
}

func (c *numberCache) undo() {
	for _, u := range slices.Backward(c.undoLog) {
		c.next[u.sequence] = u.old
		if !u.wasDirty {
			delete(c.dirty, u.sequence)
		}
	}
	c.undoLog = c.undoLog[:0]
}

func (c *numberCache) forget() {
	for s := range c.dirty {
		delete(c.next, s)
	}
	clear(c.dirty)
	c.undoLog = c.undoLog[:0]
}

func (c *numberCache) flush(w *wconn) error {
	c.buf = c.buf[:0]
	for s := range c.dirty {
		c.buf = append(c.buf, s, c.next[s])
	}
	_, err := w.insert(numberTable, putNew, c.buf)
	return err
}

func (c *numberCache) committed() {
	clear(c.dirty)
	c.undoLog = c.undoLog[:0]
	if len(c.next) > cachedNumbers {
		clear(c.next)
	}
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
