package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/store"
)

// fullRow has every field set.
func fullRow(lane, handed int64) *store.Work {
	return &store.Work{
		WorkKey: store.WorkKey{Stage: store.Sender, ID: newID()}, Kind: store.KindDelivery, Lane: lane, Seq: 3, Gen: 4, State: store.Dead, Gap: true,
		Key: "PO-1", Topic: "acme-as2", Tries: 5, Crashes: 2, Cursor: 6, Due: t0.Add(1), Since: t0.Add(2), Owner: "node-1", Epoch: 7, Lease: t0.Add(3),
		Handed: handed, Code: "NO_ROUTE", Detail: "nobody wants it", Partner: "acme", Died: t0.Add(4), Forced: true,
	}
}

var workTests = map[string]func(*testing.T, *Env){
	"every field comes back": func(t *testing.T, e *Env) {
		w := fullRow(1, e.Store.Boot())
		insert(t, e.Store, w)
		equal(t, "read", get[*store.Work](t)(e.Store.GetWork(ctxOf(t), w.WorkKey)), w)
		w.State, w.Tries, w.Detail, w.Gen = store.Retry, 99, "other", 5
		update(t, e.Store, func(tx store.Tx) error {
			if _, err := tx.Work([]store.WorkKey{w.WorkKey}); err != nil {
				return err
			}
			return tx.SaveWork([]*store.Work{w})
		})
		equal(t, "saved", get[*store.Work](t)(e.Store.GetWork(ctxOf(t), w.WorkKey)), w)
	},
	"missing rows are nil": func(t *testing.T, e *Env) {
		w := row(1, 1, store.Ready)
		insert(t, e.Store, w)
		other := store.WorkKey{Stage: store.Router, ID: w.ID} // a row is of a stage
		update(t, e.Store, func(tx store.Tx) error {
			rows, err := tx.Work([]store.WorkKey{other, w.WorkKey, {Stage: store.Parser, ID: newID()}})
			if err != nil {
				return err
			}
			if len(rows) != 3 || rows[0] != nil || rows[1] == nil || rows[2] != nil {
				t.Errorf("rows %v", rows)
			}
			equal(t, "row", rows[1], w)
			return nil
		})
		_, err := e.Store.GetWork(ctxOf(t), other)
		isErr(t, "read", err, store.ErrNotFound)
	},
	"a row that exists stays as it is and is reported": func(t *testing.T, e *Env) {
		w := row(1, 1, store.Ready)
		insert(t, e.Store, w)
		same, again, fresh := *w, *w, row(1, 2, store.Ready)
		again.Detail = "again"
		update(t, e.Store, func(tx store.Tx) error {
			ok, err := tx.InsertWork([]*store.Work{fresh, &same, &again})
			equal(t, "inserted", ok, []bool{true, false, false})
			return err
		})
		equal(t, "row", get[*store.Work](t)(e.Store.GetWork(ctxOf(t), w.WorkKey)), w)
	},
	"only locked rows can be saved": func(t *testing.T, e *Env) {
		w := row(1, 1, store.Ready)
		insert(t, e.Store, w)
		err := e.Store.Update(ctxOf(t), func(tx store.Tx) error { return tx.SaveWork([]*store.Work{w}) })
		if err == nil {
			t.Error("a row was saved that the transaction had not locked")
		}
		err = e.Store.Update(ctxOf(t), func(tx store.Tx) error {
			_, err := tx.Work([]store.WorkKey{w.WorkKey})
			return errors.Join(err, tx.DeleteWork([]*store.Work{w}), tx.SaveWork([]*store.Work{w}))
		})
		if err == nil {
			t.Error("a row was saved that the transaction had removed")
		}
		x := row(1, 2, store.Ready)
		update(t, e.Store, func(tx store.Tx) error {
			_, err := tx.InsertWork([]*store.Work{x})
			return errors.Join(err, tx.SaveWork([]*store.Work{x})) // an insert locks
		})
	},
	"a row is removed in the named generation only": func(t *testing.T, e *Env) {
		a, b, c, d := row(1, 1, store.Ready), row(1, 2, store.Ready), row(1, 3, store.Ready), row(1, 4, store.Ready)
		for _, w := range []*store.Work{a, b, c, d} {
			w.Gen = 5
		}
		insert(t, e.Store, a, b, c, d)
		update(t, e.Store, func(tx store.Tx) error {
			// a and b are locked, c and d are not.
			if _, err := tx.Work([]store.WorkKey{a.WorkKey, b.WorkKey}); err != nil {
				return err
			}
			b.Gen, d.Gen = 4, 6
			return tx.DeleteWork([]*store.Work{a, b, c, d})
		})
		rows := get[[]*store.Work](t)(e.Store.Unhanded(ctxOf(t), 0, 0, 10))
		equal(t, "left", seqs(rows), []int64{2, 4})
	},
	"a saved generation is the one to remove": func(t *testing.T, e *Env) {
		w := row(1, 1, store.Ready)
		insert(t, e.Store, w)
		update(t, e.Store, func(tx store.Tx) error {
			rows, err := tx.Work([]store.WorkKey{w.WorkKey})
			if err != nil {
				return err
			}
			old := *rows[0]
			rows[0].Gen++
			return errors.Join(tx.SaveWork(rows), tx.DeleteWork([]*store.Work{&old}))
		})
		equal(t, "generation", get[*store.Work](t)(e.Store.GetWork(ctxOf(t), w.WorkKey)).Gen, 1)
	},
	"parked rows of a lane come in order, from a sequence on": func(t *testing.T, e *Env) {
		insert(t, e.Store, row(1, 5, store.Parked), row(1, 3, store.Parked), row(1, 2, store.Ready), row(1, 4, store.Parked), row(2, 1, store.Parked), row(1, 1, store.Parked))
		update(t, e.Store, func(tx store.Tx) error {
			rows, err := tx.Parked(1, 2, 2)
			equal(t, "rows", seqs(rows), []int64{3, 4})
			if err != nil {
				return err
			}
			rows[0].State = store.Ready
			return tx.SaveWork(rows[:1]) // they are locked
		})
		update(t, e.Store, func(tx store.Tx) error {
			rows, err := tx.Parked(1, 1, 10)
			equal(t, "rows", seqs(rows), []int64{1, 4, 5})
			return err
		})
	},
	"a key is busy while a row the lane went past is not through": func(t *testing.T, e *Env) {
		gap, held, gone, plain := row(1, 1, store.Dead), row(1, 3, store.KeyHeld), row(1, 2, store.Discarded), row(1, 4, store.Ready)
		gap.Key, gap.Gap = "K", true
		held.Key, held.Gap = "K", true
		gone.Key, gone.Gap = "L", true
		plain.Key = "M" // the lane has not gone past it
		insert(t, e.Store, gap, held, gone, plain)
		update(t, e.Store, func(tx store.Tx) error {
			for _, c := range []struct {
				lane   int64
				key    string
				before int64
				want   bool
			}{
				{1, "K", 1, false},
				{1, "K", 2, true},
				{1, "K", 9, true},
				{2, "K", 9, false},
				{1, "L", 9, false}, // a discarded row is through
				{1, "M", 9, false},
				{1, "", 9, false},
			} {
				busy, err := tx.KeyBusy(c.lane, c.key, c.before)
				if err != nil {
					return err
				}
				if busy != c.want {
					t.Errorf("key %q of lane %d before %d: busy is %v", c.key, c.lane, c.before, busy)
				}
			}
			// Run again: no longer held, and still in the way of what comes behind it.
			x, err := tx.NextKeyHeld(1, "K")
			if err != nil || x == nil || x.Seq != 3 {
				t.Errorf("held row %v, %v", x, err)
				return err
			}
			x.State = store.Ready
			if err := tx.SaveWork([]*store.Work{x}); err != nil {
				return err
			}
			if _, err := tx.Work([]store.WorkKey{gap.WorkKey}); err != nil {
				return err
			}
			if err := tx.DeleteWork([]*store.Work{gap}); err != nil {
				return err
			}
			busy, err := tx.KeyBusy(1, "K", 9)
			equal(t, "busy behind the row that runs again", busy, true)
			return err
		})
	},
	"the first held row of a key": func(t *testing.T, e *Env) {
		a, b, c := row(1, 7, store.KeyHeld), row(1, 5, store.KeyHeld), row(1, 6, store.KeyHeld)
		a.Key, b.Key, c.Key = "K", "K", "L"
		insert(t, e.Store, a, b, c)
		update(t, e.Store, func(tx store.Tx) error {
			w, err := tx.NextKeyHeld(1, "K")
			equal(t, "row", w, b)
			if w, err := tx.NextKeyHeld(1, "none"); w != nil || err != nil {
				t.Errorf("held row %v, %v", w, err)
			}
			return err
		})
	},
	"many rows at once": func(t *testing.T, e *Env) {
		rows := make([]*store.Work, 203)
		keys := make([]store.WorkKey, len(rows))
		for i := range rows {
			rows[i] = row(1, int64(i)+1, store.Ready)
			keys[i] = rows[i].WorkKey
		}
		insert(t, e.Store, rows...)
		update(t, e.Store, func(tx store.Tx) error {
			got, err := tx.Work(keys)
			if err != nil {
				return err
			}
			equal(t, "rows", got, rows)
			for _, w := range got {
				w.Gen++
			}
			if err := tx.SaveWork(got); err != nil {
				return err
			}
			return tx.DeleteWork(got[:150])
		})
		left := get[[]*store.Work](t)(e.Store.Unhanded(ctxOf(t), 0, 0, 1000))
		equal(t, "left", len(left), 53)
		update(t, e.Store, func(tx store.Tx) error { // not locked: by their generation
			return tx.DeleteWork(left)
		})
		equal(t, "left", len(get[[]*store.Work](t)(e.Store.Unhanded(ctxOf(t), 0, 0, 1000))), 0)
	},
	"no rows are no work": func(t *testing.T, e *Env) {
		update(t, e.Store, func(tx store.Tx) error {
			_, err1 := tx.Work(nil)
			_, err2 := tx.InsertWork(nil)
			_, err3 := tx.Claim(nil, nil)
			_, err4 := tx.Lanes(nil)
			_, err5 := tx.LanesByID(nil)
			_, err6 := tx.EndMessages(nil, store.StateDelivered, "", t0)
			return errors.Join(err1, err2, err3, err4, err5, err6, tx.SaveWork(nil), tx.DeleteWork(nil), tx.SaveLanes(nil), tx.AddEvents(nil),
				tx.InsertMessages(nil), tx.SaveMessages(nil))
		})
	},
}

var sweepTests = map[string]func(*testing.T, *Env){
	"due are retries and leases whose time has come": func(t *testing.T, e *Env) {
		a, b, c, d, x := row(1, 1, store.Retry), row(1, 2, store.Retry), row(1, 3, store.Leased), row(1, 4, store.Leased), row(1, 5, store.Ready)
		a.Due, b.Due = t0.Add(2*time.Second), t0.Add(time.Hour)
		c.Lease, d.Lease = t0.Add(time.Second), t0.Add(time.Hour)
		x.Due = t0 // a row that does not wait any more
		insert(t, e.Store, a, b, c, d, x)
		ctx := ctxOf(t)
		equal(t, "none", len(get[[]*store.Work](t)(e.Store.Due(ctx, t0, 10))), 0)
		equal(t, "the first", seqs(get[[]*store.Work](t)(e.Store.Due(ctx, t0.Add(time.Minute), 1))), []int64{3})
		equal(t, "both", seqs(get[[]*store.Work](t)(e.Store.Due(ctx, t0.Add(2*time.Second), 10))), []int64{3, 1})
		equal(t, "all", len(get[[]*store.Work](t)(e.Store.Due(ctx, t0.Add(2*time.Hour), 10))), 4)
	},
	"turns are parked rows whose lane has come to them": func(t *testing.T, e *Env) {
		var ids []int64
		update(t, e.Store, func(tx store.Tx) error {
			ls, err := tx.Lanes([]store.LaneSpec{
				{Stage: store.Validator, Name: "come", Ordered: true}, {Stage: store.Validator, Name: "paused", Ordered: true},
				{Stage: store.Validator, Name: "not yet", Ordered: true}, {Stage: store.Validator, Name: "unordered"},
			})
			if err != nil {
				return err
			}
			for _, l := range ls {
				ids = append(ids, l.ID)
				l.Next, l.Tail = 4, 10
			}
			ls[1].Paused = true
			return tx.SaveLanes(ls)
		})
		insert(t, e.Store,
			row(ids[0], 4, store.Parked), row(ids[0], 5, store.Parked),
			row(ids[1], 4, store.Parked), row(ids[2], 6, store.Parked), row(ids[2], 4, store.Ready),
			row(ids[3], 8, store.Parked))
		ctx := ctxOf(t)
		rows := get[[]*store.Work](t)(e.Store.Turns(ctx, 10))
		got := map[int64]int64{}
		for _, r := range rows {
			got[r.Lane] = r.Seq
		}
		equal(t, "turns", got, map[int64]int64{ids[0]: 4, ids[3]: 8})
		equal(t, "at most n", len(get[[]*store.Work](t)(e.Store.Turns(ctx, 1))), 1)
		update(t, e.Store, func(tx store.Tx) error {
			ls, err := tx.LanesByID([]int64{ids[1]})
			ls[0].Paused = false
			return errors.Join(err, tx.SaveLanes(ls))
		})
		equal(t, "with the pause lifted", len(get[[]*store.Work](t)(e.Store.Turns(ctx, 10))), 3)
	},
	"free keys are those with nothing before them": func(t *testing.T, e *Env) {
		gap, a, b, c := row(1, 1, store.Dead), row(1, 2, store.KeyHeld), row(1, 3, store.KeyHeld), row(1, 4, store.KeyHeld)
		gap.Key, gap.Gap = "K", true
		a.Key, b.Key, c.Key = "K", "L", "L"
		insert(t, e.Store, gap, a, b, c)
		equal(t, "free", seqs(get[[]*store.Work](t)(e.Store.KeysFree(ctxOf(t), 10))), []int64{3})
		update(t, e.Store, func(tx store.Tx) error {
			rows, err := tx.Work([]store.WorkKey{gap.WorkKey})
			rows[0].State = store.Discarded
			return errors.Join(err, tx.SaveWork(rows))
		})
		equal(t, "free", seqs(get[[]*store.Work](t)(e.Store.KeysFree(ctxOf(t), 10))), []int64{2, 3})
		equal(t, "at most n", len(get[[]*store.Work](t)(e.Store.KeysFree(ctxOf(t), 1))), 1)
	},
	"unhanded rows come by lane and sequence, behind a place": func(t *testing.T, e *Env) {
		handed := row(1, 2, store.Ready)
		handed.Handed = 1
		insert(t, e.Store, row(2, 1, store.Ready), row(1, 3, store.Ready), row(1, 1, store.Ready), handed, row(1, 4, store.Parked), row(2, 9, store.Ready))
		ctx := ctxOf(t)
		place := func(rows []*store.Work) (out [][2]int64) {
			for _, r := range rows {
				out = append(out, [2]int64{r.Lane, r.Seq})
			}
			return out
		}
		equal(t, "all", place(get[[]*store.Work](t)(e.Store.Unhanded(ctx, 0, 0, 10))), [][2]int64{{1, 1}, {1, 3}, {2, 1}, {2, 9}})
		equal(t, "page", place(get[[]*store.Work](t)(e.Store.Unhanded(ctx, 1, 1, 2))), [][2]int64{{1, 3}, {2, 1}})
		equal(t, "backlog", place(get[[]*store.Work](t)(e.Store.Backlog(ctx, 2, 10))), [][2]int64{{2, 1}, {2, 9}})
		equal(t, "backlog page", place(get[[]*store.Work](t)(e.Store.Backlog(ctx, 1, 1))), [][2]int64{{1, 1}})
		update(t, e.Store, func(tx store.Tx) error {
			rows, err := tx.Work([]store.WorkKey{handed.WorkKey, row(1, 1, 0).WorkKey})
			rows[0].Handed = 0
			return errors.Join(err, tx.SaveWork(rows[:1]))
		})
		equal(t, "given back", place(get[[]*store.Work](t)(e.Store.Backlog(ctx, 1, 10))), [][2]int64{{1, 1}, {1, 2}, {1, 3}})
	},
	"depths count by stage, state and topic": func(t *testing.T, e *Env) {
		a, b, c, d := row(1, 1, store.Ready), row(1, 2, store.Ready), row(1, 3, store.Parked), row(1, 4, store.Ready)
		a.Since = t0.Add(time.Minute)
		d.Stage, d.Topic = store.Sender, "acme"
		insert(t, e.Store, a, b, c, d)
		got := map[store.Depth]bool{}
		for _, x := range get[[]store.Depth](t)(e.Store.Depths(ctxOf(t))) {
			x.Oldest = x.Oldest.UTC()
			got[x] = true
		}
		equal(t, "depths", got, map[store.Depth]bool{
			{Stage: store.Validator, State: store.Ready, Count: 2, Oldest: t0}:             true,
			{Stage: store.Validator, State: store.Parked, Count: 1, Oldest: t0}:            true,
			{Stage: store.Sender, State: store.Ready, Topic: "acme", Count: 1, Oldest: t0}: true,
		})
	},
}
