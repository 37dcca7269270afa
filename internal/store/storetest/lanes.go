package storetest

import (
	"errors"
	"testing"

	"github.com/edihub/edihub/internal/store"
)

var laneTests = map[string]func(*testing.T, *Env){
	"missing lanes are made, in the order of the specs, equal ones share": func(t *testing.T, e *Env) {
		a := store.LaneSpec{Stage: store.Validator, Name: "a", Ordered: true, Policy: "block"}
		b := store.LaneSpec{Stage: store.Parser, Name: "a", Policy: "skip"} // the name is unique in its stage only
		update(t, e.Store, func(tx store.Tx) error {
			ls, err := tx.Lanes([]store.LaneSpec{a, b, a})
			if err != nil {
				return err
			}
			if ls[0] != ls[2] || ls[0] == ls[1] {
				t.Errorf("lanes %p %p %p", ls[0], ls[1], ls[2])
			}
			if ls[0].Next != ls[0].Tail || ls[0].ID == 0 || ls[0].ID == ls[1].ID {
				t.Errorf("new lanes %+v %+v", ls[0], ls[1])
			}
			equal(t, "a", *ls[0], store.Lane{ID: ls[0].ID, Stage: store.Validator, Name: "a", Ordered: true, Policy: "block", Next: ls[0].Next, Tail: ls[0].Tail})
			equal(t, "b", *ls[1], store.Lane{ID: ls[1].ID, Stage: store.Parser, Name: "a", Policy: "skip", Next: ls[1].Next, Tail: ls[1].Tail})
			return nil
		})
	},
	"what is saved comes back, by spec, by id and from readers": func(t *testing.T, e *Env) {
		l := lane(t, e.Store, "a", true)
		update(t, e.Store, func(tx store.Tx) error {
			ls, err := tx.LanesByID([]int64{l.ID})
			if err != nil {
				return err
			}
			ls[0].Next, ls[0].Tail, ls[0].Waiting, ls[0].Paused, ls[0].Profile = 5, 9, 2, true, 7
			l = ls[0]
			return tx.SaveLanes(ls)
		})
		want := *l
		update(t, e.Store, func(tx store.Tx) error {
			ls, err := tx.Lanes([]store.LaneSpec{{Stage: store.Validator, Name: "a", Ordered: true, Policy: "block"}})
			equal(t, "by spec", *ls[0], want)
			return err
		})
		equal(t, "read", *get[*store.Lane](t)(e.Store.GetLane(ctxOf(t), l.ID)), want)
	},
	"what is not saved is not kept": func(t *testing.T, e *Env) {
		l := lane(t, e.Store, "a", true)
		update(t, e.Store, func(tx store.Tx) error {
			ls, err := tx.LanesByID([]int64{l.ID})
			ls[0].Tail = 50
			return err
		})
		equal(t, "read", *get[*store.Lane](t)(e.Store.GetLane(ctxOf(t), l.ID)), *l)
		update(t, e.Store, func(tx store.Tx) error {
			ls, err := tx.LanesByID([]int64{l.ID})
			equal(t, "in the next transaction", *ls[0], *l)
			return err
		})
	},
	"one transaction has one value for a lane": func(t *testing.T, e *Env) {
		l := lane(t, e.Store, "a", true)
		update(t, e.Store, func(tx store.Tx) error {
			x, err := tx.LanesByID([]int64{l.ID, l.ID})
			if err != nil {
				return err
			}
			y, err := tx.Lanes([]store.LaneSpec{{Stage: store.Validator, Name: "a", Ordered: true, Policy: "skip"}})
			if x[0] != x[1] || x[0] != y[0] {
				t.Errorf("lanes %p %p %p", x[0], x[1], y[0])
			}
			equal(t, "policy", x[0].Policy, "skip")
			return errors.Join(err, tx.SaveLanes(x[:1]))
		})
		equal(t, "policy", get[*store.Lane](t)(e.Store.GetLane(ctxOf(t), l.ID)).Policy, "skip")
	},
	"unknown ids give nil": func(t *testing.T, e *Env) {
		l := lane(t, e.Store, "a", true)
		update(t, e.Store, func(tx store.Tx) error {
			ls, err := tx.LanesByID([]int64{l.ID + 100, l.ID})
			if ls[0] != nil || ls[1] == nil {
				t.Errorf("lanes %v", ls)
			}
			return err
		})
		_, err := e.Store.GetLane(ctxOf(t), l.ID+100)
		isErr(t, "read", err, store.ErrNotFound)
	},
	"policy and order follow the spec of an empty lane only": func(t *testing.T, e *Env) {
		l := lane(t, e.Store, "a", true)
		other := store.LaneSpec{Stage: store.Validator, Name: "a", Ordered: false, Policy: "hold-key"}
		update(t, e.Store, func(tx store.Tx) error {
			ls, err := tx.Lanes([]store.LaneSpec{other})
			equal(t, "policy", ls[0].Policy, "hold-key")
			equal(t, "order", ls[0].Ordered, false)
			ls[0].Tail++
			return errors.Join(err, tx.SaveLanes(ls))
		})
		update(t, e.Store, func(tx store.Tx) error {
			ls, err := tx.Lanes([]store.LaneSpec{{Stage: store.Validator, Name: "a", Ordered: true, Policy: "block"}})
			equal(t, "policy", ls[0].Policy, "hold-key")
			equal(t, "order", ls[0].Ordered, false)
			return err
		})
		equal(t, "policy", get[*store.Lane](t)(e.Store.GetLane(ctxOf(t), l.ID)).Policy, "hold-key")
	},
	"a change of policy is undone with its transaction": func(t *testing.T, e *Env) {
		l := lane(t, e.Store, "a", true)
		errs := together(t, e.Store,
			func(store.Tx) error { return nil },
			func(tx store.Tx) error {
				_, err := tx.Lanes([]store.LaneSpec{{Stage: store.Validator, Name: "a", Policy: "skip"}, {Stage: store.Validator, Name: "new"}})
				return errors.Join(err, errWanted)
			})
		isErr(t, "update", errs[1], errWanted)
		update(t, e.Store, func(tx store.Tx) error {
			ls, err := tx.LanesByID([]int64{l.ID})
			equal(t, "lane", *ls[0], *l)
			return err
		})
		equal(t, "lanes", len(get[[]*store.Lane](t)(e.Store.ListLanes(ctxOf(t), 0, 10))), 1)
	},
	"lists lanes by id": func(t *testing.T, e *Env) {
		var ids []int64
		for _, n := range []string{"a", "b", "c"} {
			ids = append(ids, lane(t, e.Store, n, true).ID)
		}
		ls := get[[]*store.Lane](t)(e.Store.ListLanes(ctxOf(t), ids[0], 1))
		if len(ls) != 1 || ls[0].ID != ids[1] {
			t.Errorf("page %v of %v", ls, ids)
		}
		ls = get[[]*store.Lane](t)(e.Store.ListLanes(ctxOf(t), ids[1], 10))
		if len(ls) != 1 || ls[0].Name != "c" {
			t.Errorf("page %v of %v", ls, ids)
		}
	},
	"many lanes at once": func(t *testing.T, e *Env) {
		specs := make([]store.LaneSpec, 300)
		for i := range specs {
			specs[i] = store.LaneSpec{Stage: store.Stages()[i%4], Name: string(rune('a' + i)), Ordered: true}
		}
		var ids []int64
		update(t, e.Store, func(tx store.Tx) error {
			ls, err := tx.Lanes(specs)
			for i, l := range ls {
				ids = append(ids, l.ID)
				equal(t, "name", l.Name, specs[i].Name)
			}
			return err
		})
		st := e.Restart(t)
		update(t, st, func(tx store.Tx) error {
			ls, err := tx.Lanes(specs)
			for i, l := range ls {
				equal(t, "id", l.ID, ids[i])
			}
			return err
		})
	},
}
