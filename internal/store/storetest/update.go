package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

var errWanted = errors.New("wanted")

// everything writes to each kind of table in one transaction.
func everything(tx store.Tx, n int) error {
	id := idAt(n)
	ls, err := tx.Lanes([]store.LaneSpec{{Stage: store.Parser, Name: fmt.Sprint("lane ", n)}})
	if err != nil {
		return err
	}
	ls[0].Tail = 77
	_, err = tx.InsertWork([]*store.Work{{WorkKey: store.WorkKey{Stage: store.Parser, ID: id}, Lane: ls[0].ID, State: store.Ready}})
	if err != nil {
		return err
	}
	if _, err := tx.Claim([]store.NaturalKey{{Scope: store.ScopeAPI, Hash: hash32(byte(n)), Object: id, At: t0}}, []time.Time{{}}); err != nil {
		return err
	}
	if _, err := tx.Number(fmt.Sprint("seq ", n), 1, 99, 5); err != nil {
		return err
	}
	return errors.Join(
		tx.SaveLanes(ls),
		tx.InsertTransmission(&store.Transmission{ID: id, At: t0}),
		tx.InsertInterchange(&store.Interchange{ID: id, At: t0}),
		tx.InsertMessages([]*store.Message{{ID: id, Interchange: id, At: t0}}),
		tx.InsertDelivery(&store.Delivery{ID: id, At: t0}),
		tx.AddEvents([]store.Event{{Object: id, At: t0, Name: "made"}}),
		tx.SaveSetting(fmt.Sprint("setting ", n), []byte("v")),
		tx.SaveBody(&store.Body{Ref: hash32(byte(n)), Size: 1, Data: []byte("b"), Plain: []byte("b")}),
	)
}

// present says which parts of everything are there.
func present(t *testing.T, st store.Store, n int) []string {
	t.Helper()
	ctx := ctxOf(t)
	id := idAtLike(t, st, n)
	var out []string
	note := func(name string, err error) {
		t.Helper()
		switch {
		case err == nil:
			out = append(out, name)
		case !errors.Is(err, store.ErrNotFound):
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := st.GetSetting(ctx, fmt.Sprint("setting ", n))
	note("setting", err)
	b, err := st.OpenBody(ctx, hash32(byte(n)))
	note("body", err)
	if err == nil {
		note("body closed", b.Close())
	}
	k, err := st.GetKey(ctx, store.ScopeAPI, hash32(byte(n)), time.Time{})
	note("key", err)
	if err == nil {
		id = k.Object
	}
	ls, err := st.ListLanes(ctx, 0, 1000)
	if err != nil {
		t.Errorf("lanes: %v", err)
	}
	for _, l := range ls {
		if l.Name == fmt.Sprint("lane ", n) && l.Tail == 77 {
			out = append(out, "lane")
		}
	}
	if id.IsZero() {
		return out
	}
	_, err = st.GetTransmission(ctx, id)
	note("transmission", err)
	_, err = st.GetInterchange(ctx, id)
	note("interchange", err)
	_, err = st.GetMessage(ctx, id)
	note("message", err)
	_, err = st.GetDelivery(ctx, id)
	note("delivery", err)
	_, err = st.GetWork(ctx, store.WorkKey{Stage: store.Parser, ID: id})
	note("work", err)
	es, err := st.Events(ctx, id)
	if err == nil && len(es) == 0 {
		err = store.ErrNotFound
	}
	note("event", err)
	return out
}

// idAtLike finds the transmission of n by its time, for objects whose key is not there.
func idAtLike(t *testing.T, st store.Store, n int) edi.ID {
	t.Helper()
	ts, err := st.ListTransmissions(ctxOf(t), store.Filter{Limit: 1000})
	if err != nil {
		t.Errorf("transmissions: %v", err)
	}
	for _, x := range ts {
		if x.ID.Time().Equal(idAt(n).Time()) {
			return x.ID
		}
	}
	return edi.ID{}
}

var allParts = []string{"setting", "body", "body closed", "key", "lane", "transmission", "interchange", "message", "delivery", "work", "event"}

// together runs the functions so that they wait in the queue at the same time: the first holds
// the writer until the others are queued.
func together(t *testing.T, st store.Store, fns ...func(tx store.Tx) error) []error {
	t.Helper()
	hold, begun := make(chan struct{}), make(chan struct{})
	errs := make([]error, len(fns))
	var wg, queued sync.WaitGroup
	ctx := ctxOf(t)
	wg.Go(func() {
		if err := st.Update(ctx, func(store.Tx) error { close(begun); <-hold; return nil }); err != nil {
			t.Errorf("holder: %v", err)
		}
	})
	<-begun
	for i, fn := range fns {
		queued.Add(1)
		wg.Go(func() {
			queued.Done()
			errs[i] = st.Update(ctx, fn)
		})
	}
	queued.Wait()
	close(hold)
	wg.Wait()
	return errs
}

var updateTests = map[string]func(*testing.T, *Env){
	"is all there when it returns nil": func(t *testing.T, e *Env) {
		update(t, e.Store, func(tx store.Tx) error { return everything(tx, 1) })
		equal(t, "parts", present(t, e.Store, 1), allParts)
	},
	"an error of fn undoes fn": func(t *testing.T, e *Env) {
		err := e.Store.Update(ctxOf(t), func(tx store.Tx) error { return errors.Join(everything(tx, 1), errWanted) })
		isErr(t, "update", err, errWanted)
		equal(t, "parts", present(t, e.Store, 1), nil)
		// What it would have taken is free again.
		update(t, e.Store, func(tx store.Tx) error {
			held, err := tx.Claim([]store.NaturalKey{{Scope: store.ScopeAPI, Hash: hash32(1)}}, []time.Time{{}})
			if err == nil && held[0] != nil {
				t.Errorf("key is held by %v", held[0])
			}
			return err
		})
	},
	"an error of fn undoes fn alone": func(t *testing.T, e *Env) {
		errs := together(t, e.Store,
			func(tx store.Tx) error { return everything(tx, 1) },
			func(tx store.Tx) error { return errors.Join(everything(tx, 2), errWanted) },
			func(tx store.Tx) error { return everything(tx, 3) },
			func(tx store.Tx) error { _ = everything(tx, 4); panic("four") },
			func(tx store.Tx) error { return everything(tx, 5) },
		)
		for i, err := range errs {
			if good := i%2 == 0; good != (err == nil) {
				t.Errorf("update %d: %v", i+1, err)
			}
		}
		isErr(t, "second", errs[1], errWanted)
		for n := 1; n <= 5; n++ {
			want := allParts
			if n%2 == 0 {
				want = nil
			}
			equal(t, fmt.Sprint("parts of ", n), present(t, e.Store, n), want)
		}
	},
	"a panic of fn is its error": func(t *testing.T, e *Env) {
		err := e.Store.Update(ctxOf(t), func(store.Tx) error { panic("stage broke") })
		if err == nil || !strings.Contains(err.Error(), "stage broke") {
			t.Errorf("error is %v", err)
		}
		update(t, e.Store, func(tx store.Tx) error { return everything(tx, 1) })
		equal(t, "parts", present(t, e.Store, 1), allParts)
	},
	"reads what the same transaction wrote before": func(t *testing.T, e *Env) {
		update(t, e.Store, func(tx store.Tx) error {
			if err := everything(tx, 1); err != nil {
				return err
			}
			if _, err := tx.Interchange(newID()); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("unknown interchange: %v", err)
			}
			return nil
		})
	},
	"what was handed over may be used again": func(t *testing.T, e *Env) {
		var tr store.Transmission
		var ic store.Interchange
		var m store.Message
		var d store.Delivery
		var b store.Body
		es := make([]store.Event, 1)
		var ids []edi.ID
		update(t, e.Store, func(tx store.Tx) error {
			for n := range 3 {
				id := idAt(n)
				ids = append(ids, id)
				tr.ID, ic.ID, ic.Transmission, m.ID, m.Interchange, d.ID, m.Delivery = id, id, id, id, id, id, id
				b = store.Body{Ref: hash32(byte(n)), Size: 1, Data: []byte{byte(n)}, Plain: []byte{byte(n)}}
				es[0] = store.Event{Object: id, Name: "made"}
				err := errors.Join(tx.InsertTransmission(&tr), tx.InsertInterchange(&ic), tx.InsertMessages([]*store.Message{&m}),
					tx.InsertDelivery(&d), tx.AddEvents(es), tx.SaveBody(&b))
				if err != nil {
					return err
				}
			}
			return nil
		})
		ctx := ctxOf(t)
		for n, id := range ids {
			equal(t, "transmission", get[*store.Transmission](t)(e.Store.GetTransmission(ctx, id)).ID, id)
			equal(t, "interchange", get[*store.Interchange](t)(e.Store.GetInterchange(ctx, id)).Transmission, id)
			equal(t, "message", len(get[[]*store.Message](t)(e.Store.ListMessagesOf(ctx, id, -1, 9))), 1)
			equal(t, "delivery", get[*store.Delivery](t)(e.Store.GetDelivery(ctx, id)).ID, id)
			equal(t, "events", len(get[[]store.Event](t)(e.Store.Events(ctx, id))), 1)
			read(t, e.Store, hash32(byte(n)), []byte{byte(n)})
		}
	},
	"what one that fails has looked at stays": func(t *testing.T, e *Env) {
		// Looking may write what requests before it have left to be written; undoing the one must not
		// undo the others, in whatever order they run.
		var fns []func(tx store.Tx) error
		var ids []edi.ID
		for range 8 {
			id := newID()
			ids = append(ids, id)
			fns = append(fns,
				func(tx store.Tx) error {
					return tx.SaveMessages([]*store.Message{{ID: id, Interchange: id, State: store.StateRouted, At: t0}})
				},
				func(tx store.Tx) error {
					_, err := tx.MessagesOf(id, 0, 1)
					return errors.Join(err, tx.SaveMessages([]*store.Message{{ID: id, State: "wrong"}}), errWanted)
				})
		}
		for i, err := range together(t, e.Store, fns...) {
			isErr(t, "update", err, []error{nil, errWanted}[i%2])
		}
		for _, id := range ids {
			equal(t, "state", get[*store.Message](t)(e.Store.GetMessage(ctxOf(t), id)).State, store.StateRouted)
		}
	},
	"a context that is over is honoured before it starts": func(t *testing.T, e *Env) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		err := e.Store.Update(ctx, func(store.Tx) error { t.Error("it ran"); return nil })
		isErr(t, "update", err, context.Canceled)
	},
	"a context that ends while it waits is honoured": func(t *testing.T, e *Env) {
		hold, begun := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = e.Store.Update(context.Background(), func(store.Tx) error { close(begun); <-hold; return nil })
		})
		<-begun
		ctx, cancel := context.WithCancel(context.Background())
		got := make(chan error)
		var ran atomic.Bool
		go func() { got <- e.Store.Update(ctx, func(store.Tx) error { ran.Store(true); return nil }) }()
		cancel()
		isErr(t, "update", <-got, context.Canceled)
		close(hold)
		wg.Wait()
		update(t, e.Store, func(store.Tx) error { return nil })
		if ran.Load() {
			t.Error("it ran though its caller had gone")
		}
	},
	"a context that ends while it runs does not stop it": func(t *testing.T, e *Env) {
		ctx, cancel := context.WithCancel(context.Background())
		err := e.Store.Update(ctx, func(tx store.Tx) error { cancel(); return everything(tx, 1) })
		isErr(t, "update", err, nil)
		equal(t, "parts", present(t, e.Store, 1), allParts)
	},
	"a transaction is over when fn returns": func(t *testing.T, e *Env) {
		var kept store.Tx
		update(t, e.Store, func(tx store.Tx) error { kept = tx; return nil })
		if err := kept.SaveSetting("late", nil); err == nil {
			t.Error("a finished transaction took a write")
		}
	},
	"many callers lose and mix nothing": func(t *testing.T, e *Env) {
		const callers, each = 8, 25
		var wg sync.WaitGroup
		var failed atomic.Int64
		ctx := ctxOf(t)
		for c := range callers {
			wg.Go(func() {
				for i := range each {
					err := e.Store.Update(ctx, func(tx store.Tx) error {
						ls, err := tx.Lanes([]store.LaneSpec{{Stage: store.Parser, Name: "shared", Ordered: true}})
						if err != nil {
							return err
						}
						w := &store.Work{WorkKey: store.WorkKey{Stage: store.Parser, ID: edi.NewID(t0)}, Lane: ls[0].ID, Seq: ls[0].Tail, State: store.Ready}
						ls[0].Tail++
						if _, err := tx.InsertWork([]*store.Work{w}); err != nil {
							return err
						}
						if _, err := tx.Number("shared", 1, 1_000_000, 1); err != nil {
							return err
						}
						if err := tx.SaveLanes(ls); err != nil {
							return err
						}
						if (c+i)%5 == 0 {
							return errWanted
						}
						return nil
					})
					if errors.Is(err, errWanted) {
						failed.Add(1)
					} else if err != nil {
						t.Errorf("update: %v", err)
					}
				}
			})
		}
		wg.Wait()
		good := callers*each - failed.Load()
		rows := get[[]*store.Work](t)(e.Store.Unhanded(ctx, 0, 0, 1000))
		equal(t, "rows", int64(len(rows)), good)
		for i, r := range rows {
			if r.Seq != int64(i)+1 {
				t.Fatalf("row %d has sequence %d: the lane has a gap", i, r.Seq)
			}
		}
		update(t, e.Store, func(tx store.Tx) error {
			n, err := tx.Number("shared", 1, 1_000_000, 1)
			equal(t, "next number", n, good+1)
			return err
		})
	},
	"ping says that a write succeeds": func(t *testing.T, e *Env) {
		isErr(t, "ping", e.Store.Ping(ctxOf(t)), nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		isErr(t, "ping", e.Store.Ping(ctx), context.Canceled)
	},
	"a closed store is unavailable": func(t *testing.T, e *Env) {
		if err := e.Store.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		isErr(t, "second close", e.Store.Close(), nil)
		isErr(t, "update", e.Store.Update(ctxOf(t), func(store.Tx) error { return nil }), store.ErrUnavailable)
		isErr(t, "ping", e.Store.Ping(ctxOf(t)), store.ErrUnavailable)
		_, err := e.Store.GetMessage(ctxOf(t), newID())
		isErr(t, "read", err, store.ErrUnavailable)
	},
}
