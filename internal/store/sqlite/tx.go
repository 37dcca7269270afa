package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// tx is the view of one request. It is used by the writer's goroutine alone.
type tx struct {
	w    *writer
	over bool
	// lanes has one value for each lane, whichever call found it.
	lanes map[int64]*store.Lane
	// locked has the work rows that this transaction may save, with the generation in the table.
	locked map[store.WorkKey]int64
}

// Errors of wrong use.
var (
	errNotLocked = errors.New("work row was not locked by this transaction")
	errSince     = errors.New("claim needs one time for each key")
	errNumber    = errors.New("control numbers run from start to limit, and fewer than that can be taken at once")
	errNoLane    = errors.New("lane was not locked by this transaction")
)

func (t *tx) conn() (*wconn, error) {
	if t.over {
		return nil, errFinished
	}
	return t.w.w, nil
}

// share returns the transaction's value of a lane.
func (t *tx) share(l *store.Lane) *store.Lane {
	if have := t.lanes[l.ID]; have != nil {
		return have
	}
	if t.lanes == nil {
		t.lanes = map[int64]*store.Lane{}
	}
	c := *l
	t.lanes[l.ID] = &c
	return &c
}

const laneColumns = "select id, stage, name, ordered, policy, next, tail, waiting, paused, profile from lane "

func readLane(row []driver.Value) store.Lane {
	return store.Lane{
		ID: integer(row[0]), Stage: store.Stage(integer(row[1])), Name: str(row[2]), Ordered: integer(row[3]) != 0, Policy: str(row[4]), //nolint:gosec // G115: written from a Stage.
		Next: integer(row[5]), Tail: integer(row[6]), Waiting: integer(row[7]), Paused: integer(row[8]) != 0, Profile: integer(row[9]),
	}
}

// Lanes implements store.Tx.
func (t *tx) Lanes(specs []store.LaneSpec) ([]*store.Lane, error) {
	w, err := t.conn()
	if err != nil {
		return nil, err
	}
	c := &t.w.lanes
	var miss []driver.Value
	for i := range specs {
		if _, ok := c.byName[laneName{specs[i].Stage, specs[i].Name}]; !ok {
			miss = append(miss, int64(specs[i].Stage), specs[i].Name)
		}
	}
	err = inList(miss, 2, func(n int, vals []driver.Value) error {
		return w.query(laneColumns+"where (stage, name) in (values "+tuples(n, 2)+")", func(row []driver.Value) error {
			c.learn(readLane(row))
			return nil
		}, vals...)
	})
	if err != nil {
		return nil, err
	}
	out := make([]*store.Lane, len(specs))
	for i := range specs {
		out[i] = t.share(t.lane(&specs[i]))
	}
	return out, nil
}

// lane finds or makes the lane of a spec.
func (t *tx) lane(s *store.LaneSpec) *store.Lane {
	c := &t.w.lanes
	id, ok := c.byName[laneName{s.Stage, s.Name}]
	if !ok {
		l := store.Lane{ID: c.next, Stage: s.Stage, Name: s.Name, Ordered: s.Ordered, Policy: s.Policy, Next: 1, Tail: 1}
		c.next++
		c.set(l)
		return &l
	}
	l := c.byID[id]
	if have := t.lanes[id]; have != nil {
		l = *have // what this transaction holds is newer than what it has saved
	}
	if l.Next == l.Tail && (l.Ordered != s.Ordered || l.Policy != s.Policy) {
		l.Ordered, l.Policy = s.Ordered, s.Policy
		kept := c.byID[id]
		kept.Ordered, kept.Policy = s.Ordered, s.Policy
		c.set(kept)
		if have := t.lanes[id]; have != nil {
			have.Ordered, have.Policy = s.Ordered, s.Policy
		}
	}
	return &l
}

// LanesByID implements store.Tx.
func (t *tx) LanesByID(ids []int64) ([]*store.Lane, error) {
	w, err := t.conn()
	if err != nil {
		return nil, err
	}
	c := &t.w.lanes
	var miss []driver.Value
	for _, id := range ids {
		if _, ok := c.byID[id]; !ok {
			miss = append(miss, id)
		}
	}
	err = inList(miss, 1, func(n int, vals []driver.Value) error {
		return w.query(laneColumns+"where id in ("+marks(n)+")", func(row []driver.Value) error {
			c.learn(readLane(row))
			return nil
		}, vals...)
	})
	if err != nil {
		return nil, err
	}
	out := make([]*store.Lane, len(ids))
	for i, id := range ids {
		if l, ok := c.byID[id]; ok {
			out[i] = t.share(&l)
		}
	}
	return out, nil
}

// SaveLanes implements store.Tx.
func (t *tx) SaveLanes(lanes []*store.Lane) error {
	if _, err := t.conn(); err != nil {
		return err
	}
	for _, l := range lanes {
		have, ok := t.w.lanes.byID[l.ID]
		if !ok || t.lanes[l.ID] == nil {
			return fmt.Errorf("save lane %d: %w", l.ID, errNoLane)
		}
		c := *l
		c.Stage, c.Name = have.Stage, have.Name
		t.w.lanes.set(c)
		*t.lanes[l.ID] = c
	}
	return nil
}

func (t *tx) lock(x *store.Work) {
	if t.locked == nil {
		t.locked = map[store.WorkKey]int64{}
	}
	t.locked[x.WorkKey] = x.Gen
}

// takeWork reads a row of data and handed, and locks it.
func (t *tx) takeWork(row []driver.Value) (*store.Work, error) {
	x, _, err := readWork(blob(row[0]), t.w.s.handedNow(integer(row[1])))
	if err != nil {
		return nil, err
	}
	t.lock(x)
	return x, nil
}

// Work implements store.Tx.
func (t *tx) Work(keys []store.WorkKey) ([]*store.Work, error) {
	w, err := t.conn()
	if err != nil {
		return nil, err
	}
	found := make(map[store.WorkKey]*store.Work, len(keys))
	err = byStage(keys, func(stage store.Stage, ids []driver.Value) error {
		return inList(ids, 1, func(n int, vals []driver.Value) error {
			return w.query("select data, handed from work where stage = "+stageText(stage)+" and id in ("+marks(n)+")", func(row []driver.Value) error {
				x, err := t.takeWork(row)
				if err == nil {
					found[x.WorkKey] = x
				}
				return err
			}, vals...)
		})
	})
	if err != nil {
		return nil, err
	}
	out := make([]*store.Work, len(keys))
	for i, k := range keys {
		out[i] = found[k]
	}
	return out, nil
}

// byStage calls each with the ids of every stage that occurs.
func byStage(keys []store.WorkKey, each func(stage store.Stage, ids []driver.Value) error) error {
	for _, stage := range store.Stages() {
		var ids []driver.Value
		for i := range keys {
			if keys[i].Stage == stage {
				ids = append(ids, keys[i].ID[:])
			}
		}
		if err := each(stage, ids); err != nil {
			return err
		}
	}
	return nil
}

// stageText is a constant for each stage, so that the statements stay few.
func stageText(s store.Stage) string {
	return [...]string{"0", "1", "2", "3", "4"}[s]
}

// InsertWork implements store.Tx.
func (t *tx) InsertWork(rows []*store.Work) ([]bool, error) {
	w, err := t.conn()
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(rows))
	if len(rows) == 0 {
		return out, nil
	}
	vals := make([]driver.Value, 0, len(rows)*len(workTable.cols))
	first := t.w.nonce
	for i, x := range rows {
		vals = t.w.s.appendWork(vals, x, first+int64(i))
	}
	t.w.nonce += int64(len(rows))
	n, err := w.insert(workTable, keepOld, vals)
	if err != nil {
		return nil, err
	}
	if n == int64(len(rows)) {
		for i, x := range rows {
			t.lock(x)
			out[i] = true
		}
		return out, nil
	}
	won := make(map[int64]bool, len(rows)) // nonces of the rows that are in the table
	keys := make([]store.WorkKey, len(rows))
	for i, x := range rows {
		keys[i] = x.WorkKey
	}
	err = byStage(keys, func(stage store.Stage, ids []driver.Value) error {
		return inList(ids, 1, func(n int, vals []driver.Value) error {
			return w.query("select data, handed from work where stage = "+stageText(stage)+" and id in ("+marks(n)+")", func(row []driver.Value) error {
				_, nonce, err := readWork(blob(row[0]), t.w.s.handedNow(integer(row[1])))
				won[nonce] = true
				return err
			}, vals...)
		})
	})
	if err != nil {
		return nil, err
	}
	for i, x := range rows {
		if out[i] = won[first+int64(i)]; out[i] {
			t.lock(x)
		}
	}
	return out, nil
}

// SaveWork implements store.Tx.
func (t *tx) SaveWork(rows []*store.Work) error {
	w, err := t.conn()
	if err != nil {
		return err
	}
	vals := make([]driver.Value, 0, len(rows)*len(workTable.cols))
	for _, x := range rows {
		if _, ok := t.locked[x.WorkKey]; !ok {
			return fmt.Errorf("save work %s %s: %w", x.Stage, x.ID, errNotLocked)
		}
		t.lock(x)
		vals = t.w.s.appendWork(vals, x, 0)
	}
	_, err = w.insert(workTable, putNew, vals)
	return err
}

// DeleteWork implements store.Tx.
func (t *tx) DeleteWork(rows []*store.Work) error {
	w, err := t.conn()
	if err != nil {
		return err
	}
	for _, stage := range store.Stages() {
		var known, unknown []driver.Value
		for _, x := range rows {
			if x.Stage != stage {
				continue
			}
			gen, ok := t.locked[x.WorkKey]
			switch {
			case !ok:
				unknown = append(unknown, x.ID[:], x.Gen)
			case gen == x.Gen:
				known = append(known, x.ID[:])
				delete(t.locked, x.WorkKey)
			}
		}
		err := inList(known, 1, func(n int, vals []driver.Value) error {
			return w.exec("delete from work where stage = "+stageText(stage)+" and id in ("+marks(n)+")", vals...)
		})
		if err != nil {
			return err
		}
		err = inList(unknown, 2, func(n int, vals []driver.Value) error {
			return w.exec("delete from work where stage = "+stageText(stage)+" and (id, gen) in (values "+tuples(n, 2)+")", vals...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) workRows(text string, vals ...driver.Value) ([]*store.Work, error) {
	w, err := t.conn()
	if err != nil {
		return nil, err
	}
	var out []*store.Work
	err = w.query(text, func(row []driver.Value) error {
		x, err := t.takeWork(row)
		out = append(out, x)
		return err
	}, vals...)
	return out, err
}

// Parked implements store.Tx.
func (t *tx) Parked(lane, from int64, n int) ([]*store.Work, error) {
	return t.workRows("select data, handed from work where state = 2 and lane = ? and seq >= ? order by seq limit ?", lane, from, int64(n))
}

// KeyBusy implements store.Tx.
func (t *tx) KeyBusy(lane int64, key string, before int64) (bool, error) {
	w, err := t.conn()
	if err != nil || key == "" {
		return false, err
	}
	found := false
	err = w.query("select 1 from work where busy = 1 and lane = ? and key = ? and seq < ? limit 1", func([]driver.Value) error {
		found = true
		return nil
	}, lane, key, before)
	return found, err
}

// NextKeyHeld implements store.Tx.
func (t *tx) NextKeyHeld(lane int64, key string) (*store.Work, error) {
	rows, err := t.workRows("select data, handed from work where busy = 1 and state = 5 and lane = ? and key = ? order by seq limit 1", lane, key)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

const settledKey = "select scope, hash, content, object, at from natural_key where scope = ? and hash = ?"

func readKey(row []driver.Value) (k store.NaturalKey) {
	k.Scope = store.Scope(integer(row[0])) //nolint:gosec // G115: written from a Scope.
	copy(k.Hash[:], blob(row[1]))
	copy(k.Content[:], blob(row[2]))
	copy(k.Object[:], blob(row[3]))
	k.At = fromNanos(integer(row[4]))
	return k
}

// Claim implements store.Tx. A key that is older than its since is taken over.
func (t *tx) Claim(keys []store.NaturalKey, since []time.Time) ([]*store.NaturalKey, error) {
	w, err := t.conn()
	if err != nil {
		return nil, err
	}
	if len(since) != len(keys) {
		return nil, errSince
	}
	out := make([]*store.NaturalKey, len(keys))
	for i := range keys {
		k := &keys[i]
		held, err := t.w.keys.find(w, keyName{k.Scope, k.Hash})
		if err != nil {
			return nil, err
		}
		if held != nil && !held.At.Before(since[i]) {
			out[i] = held
			continue
		}
		t.w.keys.put(k)
	}
	return out, nil
}

func appendKey(vals []driver.Value, k *store.NaturalKey) []driver.Value {
	return append(vals, int64(k.Scope), k.Hash[:], k.Content[:], k.Object[:], nanos(k.At))
}

// Number implements store.Tx. The next number of a sequence is kept in the transaction that
// takes it, so none is lost by a rollback. Where a block of n reaches over limit, its numbers
// are first, first+1, …, limit, 1, 2, …: the caller counts on with that wrap.
func (t *tx) Number(sequence string, start, limit, n int64) (int64, error) {
	w, err := t.conn()
	if err != nil {
		return 0, err
	}
	if n < 1 || limit < 1 || n > limit || start < 1 || start > limit {
		return 0, fmt.Errorf("sequence %s, start %d, limit %d, %d at once: %w", sequence, start, limit, n, errNumber)
	}
	c := &t.w.numbers
	if _, ok := c.next[sequence]; !ok {
		c.next[sequence] = 0 // 0: the sequence has not begun
		err := w.query("select next from number where sequence = ?", func(row []driver.Value) error {
			c.next[sequence] = integer(row[0])
			return nil
		}, sequence)
		if err != nil {
			delete(c.next, sequence)
			return 0, err
		}
	}
	first := c.next[sequence]
	if first == 0 {
		first = start
	}
	if first > limit {
		first = 1
	}
	c.set(sequence, (first-1+n)%limit+1)
	return first, nil
}

// SaveSetting implements store.Tx.
func (t *tx) SaveSetting(name string, value []byte) error {
	w, err := t.conn()
	if err != nil {
		return err
	}
	if value == nil {
		value = []byte{}
	}
	return w.exec("insert into setting (name, value) values (?, ?) on conflict (name) do update set value = excluded.value", name, value)
}

// AddEvents implements store.Tx.
func (t *tx) AddEvents(es []store.Event) error {
	if _, err := t.conn(); err != nil {
		return err
	}
	for i := range es {
		e := &es[i]
		t.w.events.vals = append(t.w.events.vals, kept(e.Object), t.w.nonce, nanos(e.At), e.Name, optional(e.Detail), optional(e.Who))
		t.w.nonce++
	}
	return nil
}

// SaveBody implements store.Tx.
func (t *tx) SaveBody(b *store.Body) error {
	if _, err := t.conn(); err != nil {
		return err
	}
	kind := bodyPlain
	switch {
	case b.Data == nil:
		kind = bodyFile
	case b.Packed:
		kind = bodyPacked
	}
	ref := b.Ref
	t.w.bodyRows.vals = append(t.w.bodyRows.vals, ref[:], b.Size, kind, b.Data)
	t.w.bodies = append(t.w.bodies, store.Body{Ref: ref, Plain: b.Plain})
	return nil
}

func optional(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func integer(v driver.Value) int64 {
	n, _ := v.(int64) // null reads as 0
	return n
}

func str(v driver.Value) string {
	s, _ := v.(string) // null reads as ""
	return s
}

func blob(v driver.Value) []byte {
	b, _ := v.([]byte) // null reads as nil
	return b
}

func idOf(v driver.Value) (id edi.ID) {
	copy(id[:], blob(v))
	return id
}
