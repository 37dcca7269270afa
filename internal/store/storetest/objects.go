package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

func finding(rule string) edi.Finding {
	return edi.Finding{
		Rule: rule, Severity: edi.Warning, Ruleset: "en16931", Location: "/Invoice", Segment: "BGM",
		Position: edi.Position{Segment: 2, Element: 1, Component: 3, Repetition: 1, Offset: 77, Line: 5},
		Terms:    []string{"BT-1", "BT-2"}, Message: "a message", Actual: "1", Expected: "2",
	}
}

func transmission(id edi.ID) *store.Transmission {
	return &store.Transmission{
		ID: id, Transport: "as2", Connection: "acme-as2", Own: "hub", From: "ACME AS2", To: "OURCO", MessageID: "<1@acme>", FileName: "a.edi",
		Media: "application/edifact", State: store.StateAccepted, Code: "C", Detail: "D", Signed: true, Encrypted: true, MIC: "abc=, sha-256",
		Content: hash32(1), Wire: hash32(2), WireSize: 10, Size: 9, Answer: []byte("MDN"), Source: "192.0.2.1:1", At: t0, WireHead: "Content-Type: a/b\r\n",
	}
}

func interchange(id, parent edi.ID) *store.Interchange {
	return &store.Interchange{
		ID: id, Transmission: parent, Position: 2, Connection: "acme-as2", Body: hash32(3), From: "acme", To: "hub", Role: "endpoint",
		Envelope: edi.Interchange{
			Standard: edi.EDIFACT, Sender: edi.Party{Qualifier: "14", ID: "1"}, Receiver: edi.Party{ID: "2"}, ControlRef: "REF1", Version: "UNOC:3",
			Charset: "ISO 8859-1", Test: true, AckRequest: true, Offset: 1, Length: 2, Segments: 3, Groups: 4, Messages: 5,
			Delimiters: edi.Delimiters{Component: ':', Element: '+', Decimal: '.', Release: '?', Repetition: '*', Segment: '\''},
			Header:     []byte("UNB"), ServiceUNA: true, Profile: "P", Custom: "C", Findings: []edi.Finding{finding("A")}, TrailerSeen: true,
		},
		Groups: []edi.Group{{Position: 1, FunctionID: "IN", Sender: "S", Receiver: "R", ControlRef: "7", Version: "004010", Offset: 8, Length: 9, Messages: 1, Header: []byte("GS"), Findings: []edi.Finding{finding("B")}}},
		State:  store.StateSplit, Code: "X", Findings: []edi.Finding{finding("C")}, Total: 3, Open: 2, Unrouted: 1, Preserve: true, Profile: 4, At: t0, OnReject: "group",
	}
}

func message(id, parent edi.ID, position int) *store.Message {
	return &store.Message{
		ID: id, Interchange: parent, Standard: edi.EDIFACT, From: "acme", To: "hub", State: store.StateParsed, Code: "Y",
		Envelope: edi.Message{
			Position: position, Group: 1, Type: "INVOIC", Version: "D:96A:UN", Ref: "9", Segments: 8, Offset: 7, Length: 6, FunctionID: "IN",
			Document: edi.Document{Number: "INV-1", Function: "9", Version: "2", OrderNo: "PO-1", Buyer: "b", Date: "20260814"}, Findings: []edi.Finding{finding("D")},
		},
		Findings: []edi.Finding{finding("E")}, Delivery: newID(), Profile: 5, At: t0, ControlRef: "REF1", Test: true,
	}
}

func delivery(id edi.ID) *store.Delivery {
	return &store.Delivery{
		ID: id, Connection: "erp-files", Partner: "erp", Own: "hub", State: store.StateReady, Code: "Z", Detail: "z", Envelope: "new", Standard: edi.X12,
		Type: "850", Sender: "S", Receiver: "R", ControlRef: "000000001", From: "acme", To: "hub",
		Pieces: []store.Piece{{Literal: []byte("ISA")}, {Body: hash32(4), Offset: 5, Length: 6, Translate: []byte("|*")}}, Size: 9, Messages: []edi.ID{newID(), newID()},
		Generation: 1, Tries: 2, Proof: "mdn", MIC: "m", Ack: "expected", Evidence: []byte("proof"), Profile: 6, At: t0, EndedAt: t0.Add(time.Second),
	}
}

var objectTests = map[string]func(*testing.T, *Env){
	"every field of a transmission comes back": func(t *testing.T, e *Env) {
		x := transmission(newID())
		update(t, e.Store, func(tx store.Tx) error { return tx.InsertTransmission(x) })
		equal(t, "inserted", get[*store.Transmission](t)(e.Store.GetTransmission(ctxOf(t), x.ID)), x)
		x.State, x.Detail, x.MessageID = store.StateHeld, "changed", "<2@acme>"
		update(t, e.Store, func(tx store.Tx) error { return tx.SaveTransmission(x) })
		equal(t, "saved", get[*store.Transmission](t)(e.Store.GetTransmission(ctxOf(t), x.ID)), x)
	},
	"every field of an interchange comes back": func(t *testing.T, e *Env) {
		x := interchange(newID(), newID())
		update(t, e.Store, func(tx store.Tx) error { return tx.InsertInterchange(x) })
		equal(t, "inserted", get[*store.Interchange](t)(e.Store.GetInterchange(ctxOf(t), x.ID)), x)
		x.State, x.Open, x.Unrouted, x.Envelope.ControlRef = store.StateDead, 7, 0, "REF2"
		update(t, e.Store, func(tx store.Tx) error {
			err := tx.SaveInterchange(x)
			got, err2 := tx.Interchange(x.ID)
			equal(t, "in the transaction", got, x)
			return errors.Join(err, err2)
		})
		equal(t, "saved", get[*store.Interchange](t)(e.Store.GetInterchange(ctxOf(t), x.ID)), x)
	},
	"every field of a message comes back": func(t *testing.T, e *Env) {
		x := message(newID(), newID(), 1)
		update(t, e.Store, func(tx store.Tx) error { return tx.InsertMessages([]*store.Message{x}) })
		equal(t, "inserted", get[*store.Message](t)(e.Store.GetMessage(ctxOf(t), x.ID)), x)
		x.State, x.Code, x.Envelope.Document.Number = store.StateRouted, "other", "INV-2"
		update(t, e.Store, func(tx store.Tx) error {
			err := tx.SaveMessages([]*store.Message{x})
			got, err2 := tx.Message(x.ID)
			equal(t, "in the transaction", got, x)
			return errors.Join(err, err2)
		})
		equal(t, "saved", get[*store.Message](t)(e.Store.GetMessage(ctxOf(t), x.ID)), x)
	},
	"every field of a delivery comes back": func(t *testing.T, e *Env) {
		x := delivery(newID())
		update(t, e.Store, func(tx store.Tx) error { return tx.InsertDelivery(x) })
		equal(t, "inserted", get[*store.Delivery](t)(e.Store.GetDelivery(ctxOf(t), x.ID)), x)
		x.State, x.Proof, x.Evidence = store.StateDelivered, "file", nil
		update(t, e.Store, func(tx store.Tx) error {
			err := tx.SaveDelivery(x)
			got, err2 := tx.Delivery(x.ID)
			equal(t, "in the transaction", got, x)
			return errors.Join(err, err2)
		})
		equal(t, "saved", get[*store.Delivery](t)(e.Store.GetDelivery(ctxOf(t), x.ID)), x)
	},
	"what there is not is not found": func(t *testing.T, e *Env) {
		ctx, id := ctxOf(t), newID()
		_, err := e.Store.GetTransmission(ctx, id)
		isErr(t, "transmission", err, store.ErrNotFound)
		_, err = e.Store.GetInterchange(ctx, id)
		isErr(t, "interchange", err, store.ErrNotFound)
		_, err = e.Store.GetMessage(ctx, id)
		isErr(t, "message", err, store.ErrNotFound)
		_, err = e.Store.GetDelivery(ctx, id)
		isErr(t, "delivery", err, store.ErrNotFound)
		_, err = e.Store.GetSetting(ctx, "none")
		isErr(t, "setting", err, store.ErrNotFound)
		es, err := e.Store.Events(ctx, id)
		if len(es) > 0 || err != nil {
			t.Errorf("events %v, %v", es, err)
		}
		update(t, e.Store, func(tx store.Tx) error {
			_, err := tx.Interchange(id)
			isErr(t, "interchange", err, store.ErrNotFound)
			_, err = tx.Message(id)
			isErr(t, "message", err, store.ErrNotFound)
			_, err = tx.Delivery(id)
			isErr(t, "delivery", err, store.ErrNotFound)
			isErr(t, "reopen", tx.Reopen(id, store.StateRouted), store.ErrNotFound)
			return nil
		})
	},
	"an insert leaves what is there": func(t *testing.T, e *Env) {
		ic := interchange(newID(), newID())
		m := message(newID(), ic.ID, 1)
		put := func(ref, state string) func(store.Tx) error {
			return func(tx store.Tx) error {
				ic, m := *ic, *m
				ic.Envelope.ControlRef, m.State = ref, state
				return errors.Join(tx.InsertInterchange(&ic), tx.InsertMessages([]*store.Message{&m, &m}))
			}
		}
		update(t, e.Store, put("first", "first"))
		update(t, e.Store, put("second", "second"))
		equal(t, "interchange", get[*store.Interchange](t)(e.Store.GetInterchange(ctxOf(t), ic.ID)).Envelope.ControlRef, "first")
		equal(t, "message", get[*store.Message](t)(e.Store.GetMessage(ctxOf(t), m.ID)).State, "first")
	},
	"a save after an insert wins, in one transaction and in one commit": func(t *testing.T, e *Env) {
		m := message(newID(), newID(), 1)
		save := func(state string) func(tx store.Tx) error {
			return func(tx store.Tx) error {
				m := *m
				m.State = state
				return tx.SaveMessages([]*store.Message{&m})
			}
		}
		errs := together(t, e.Store,
			func(tx store.Tx) error {
				return errors.Join(tx.InsertMessages([]*store.Message{m}), save("a")(tx), save("b")(tx))
			},
			func(tx store.Tx) error { return errors.Join(save("c")(tx), errWanted) })
		isErr(t, "first", errs[0], nil)
		isErr(t, "second", errs[1], errWanted)
		equal(t, "state", get[*store.Message](t)(e.Store.GetMessage(ctxOf(t), m.ID)).State, "b")
	},
	"messages of an interchange come by position": func(t *testing.T, e *Env) {
		parent := newID()
		var ms []*store.Message
		for _, p := range []int{3, 1, 2, 5} {
			ms = append(ms, message(newID(), parent, p))
		}
		positions := func(ms []*store.Message) (out []int) {
			for _, m := range ms {
				out = append(out, m.Envelope.Position)
			}
			return out
		}
		update(t, e.Store, func(tx store.Tx) error {
			err := tx.InsertMessages(append(ms, message(newID(), newID(), 4)))
			got, err2 := tx.MessagesOf(parent, 1, 2)
			equal(t, "in the transaction", positions(got), []int{2, 3})
			return errors.Join(err, err2)
		})
		equal(t, "read", positions(get[[]*store.Message](t)(e.Store.ListMessagesOf(ctxOf(t), parent, 2, 10))), []int{3, 5})
	},
	"events come in the order they were added": func(t *testing.T, e *Env) {
		id := newID()
		want := []store.Event{
			{Object: id, At: t0.Add(time.Hour), Name: "a", Detail: "d", Who: "ann"},
			{Object: id, At: t0, Name: "b"},
			{Object: id, At: t0, Name: "c"},
		}
		update(t, e.Store, func(tx store.Tx) error { return tx.AddEvents(want[:2]) })
		st := e.Restart(t)
		update(t, st, func(tx store.Tx) error { return tx.AddEvents([]store.Event{want[2], {Object: newID(), Name: "other"}}) })
		equal(t, "events", get[[]store.Event](t)(st.Events(ctxOf(t), id)), want)
	},
	"text is kept byte for byte": func(t *testing.T, e *Env) {
		const odd = "a\x00b'\"\xff\u00e9 "
		l := lane(t, e.Store, odd, true)
		equal(t, "lane", get[*store.Lane](t)(e.Store.GetLane(ctxOf(t), l.ID)).Name, odd)
		equal(t, "same lane", lane(t, e.Restart(t), odd, true).ID, l.ID)
	},
	"odd text is searched and kept": func(t *testing.T, e *Env) {
		const odd = "a\x00b'\"\xff\u00e9 "
		x := transmission(newID())
		x.MessageID, x.State, x.From = odd, odd, odd
		w := row(1, 1, store.KeyHeld)
		w.Key, w.Topic, w.Detail = odd, odd, odd
		insert(t, e.Store, w)
		update(t, e.Store, func(tx store.Tx) error {
			busy, err := tx.KeyBusy(1, odd, 9)
			equal(t, "busy", busy, true)
			return errors.Join(err, tx.InsertTransmission(x))
		})
		equal(t, "row", get[*store.Work](t)(e.Store.GetWork(ctxOf(t), w.WorkKey)), w)
		for _, f := range []store.Filter{{MessageID: odd}, {State: odd}, {Sender: odd}} {
			equal(t, "found", get[[]*store.Transmission](t)(e.Store.ListTransmissions(ctxOf(t), f)), []*store.Transmission{x})
		}
	},
	"a setting is replaced": func(t *testing.T, e *Env) {
		for _, v := range [][]byte{[]byte("a"), nil, []byte("b")} {
			update(t, e.Store, func(tx store.Tx) error { return tx.SaveSetting("s", v) })
			equal(t, "value", get[[]byte](t)(e.Store.GetSetting(ctxOf(t), "s")), v)
		}
	},
}

// split makes an interchange with n messages and returns their ids.
func split(t *testing.T, st store.Store, n int, state string) (*store.Interchange, []edi.ID) {
	t.Helper()
	ic := interchange(newID(), newID())
	ic.State, ic.Total, ic.Open = state, n, n
	var ids []edi.ID
	update(t, st, func(tx store.Tx) error {
		var ms []*store.Message
		for i := range n {
			m := message(newID(), ic.ID, i+1)
			ms, ids = append(ms, m), append(ids, m.ID)
		}
		return errors.Join(tx.InsertInterchange(ic), tx.InsertMessages(ms))
	})
	return ic, ids
}

// end ends messages and returns the interchanges that are done by it.
func end(t *testing.T, st store.Store, state string, ids ...edi.ID) (done []edi.ID) {
	t.Helper()
	update(t, st, func(tx store.Tx) (err error) {
		done, err = tx.EndMessages(ids, state, "CODE", t0)
		return err
	})
	return done
}

func counts(t *testing.T, st store.Store, id edi.ID) string {
	t.Helper()
	ic := get[*store.Interchange](t)(st.GetInterchange(ctxOf(t), id))
	return fmt.Sprint(ic.State, " ", ic.Open, "/", ic.Total)
}

var endTests = map[string]func(*testing.T, *Env){
	"the last end makes the interchange done, and no other": func(t *testing.T, e *Env) {
		ic, ids := split(t, e.Store, 3, store.StateSplit)
		equal(t, "first", end(t, e.Store, store.StateDelivered, ids[0]), nil)
		equal(t, "interchange", counts(t, e.Store, ic.ID), "split 2/3")
		equal(t, "last", end(t, e.Store, store.StateRejected, ids[1:]...), []edi.ID{ic.ID})
		equal(t, "interchange", counts(t, e.Store, ic.ID), "done 0/3")
		m := get[*store.Message](t)(e.Store.GetMessage(ctxOf(t), ids[1]))
		equal(t, "state and code", m.State+" "+m.Code, "rejected CODE")
	},
	"every terminal state counts, once": func(t *testing.T, e *Env) {
		for _, state := range []string{store.StateDelivered, store.StateRejected, store.StateDiscarded, store.StateDuplicate} {
			ic, ids := split(t, e.Store, 2, store.StateSplit)
			end(t, e.Store, state, ids[0], ids[0])
			equal(t, "again", end(t, e.Store, state, ids[0]), nil)
			equal(t, state, counts(t, e.Store, ic.ID), "split 1/2")
		}
	},
	"dead and held are no end": func(t *testing.T, e *Env) {
		ic, ids := split(t, e.Store, 1, store.StateSplit)
		for _, state := range []string{store.StateDead, store.StateHeld} {
			equal(t, state, end(t, e.Store, state, ids...), nil)
			equal(t, state, counts(t, e.Store, ic.ID), "split 1/1")
			equal(t, state, get[*store.Message](t)(e.Store.GetMessage(ctxOf(t), ids[0])).State, state)
		}
		equal(t, "delivered after all", end(t, e.Store, store.StateDelivered, ids...), []edi.ID{ic.ID})
		end(t, e.Store, store.StateDead, ids...)
		equal(t, "an end stays", get[*store.Message](t)(e.Store.GetMessage(ctxOf(t), ids[0])).State, store.StateDelivered)
	},
	"a proof is the last word": func(t *testing.T, e *Env) {
		ic, ids := split(t, e.Store, 2, store.StateSplit)
		end(t, e.Store, store.StateDiscarded, ids[0])
		end(t, e.Store, store.StateRejected, ids[0])
		equal(t, "first end", get[*store.Message](t)(e.Store.GetMessage(ctxOf(t), ids[0])).State, store.StateDiscarded)
		end(t, e.Store, store.StateDelivered, ids[0])
		end(t, e.Store, store.StateDiscarded, ids[0])
		equal(t, "proof", get[*store.Message](t)(e.Store.GetMessage(ctxOf(t), ids[0])).State, store.StateDelivered)
		equal(t, "counted once", counts(t, e.Store, ic.ID), "split 1/2")
	},
	"a staged interchange is counted down and not done": func(t *testing.T, e *Env) {
		ic, ids := split(t, e.Store, 1, store.StateStaged)
		equal(t, "end", end(t, e.Store, store.StateRejected, ids...), nil)
		equal(t, "interchange", counts(t, e.Store, ic.ID), "staged 0/1")
	},
	"messages of many interchanges at once": func(t *testing.T, e *Env) {
		var all, want []edi.ID
		for i := range 70 {
			ic, ids := split(t, e.Store, 2, store.StateSplit)
			all = append(all, ids[0])
			if i%2 == 0 {
				all, want = append(all, ids[1]), append(want, ic.ID)
			}
		}
		got := map[edi.ID]int{}
		for _, id := range end(t, e.Store, store.StateDelivered, all...) {
			got[id]++
		}
		for _, id := range want {
			if got[id] != 1 {
				t.Errorf("interchange %s was reported %d times", id, got[id])
			}
		}
		equal(t, "done", len(got), len(want))
	},
	"in the transaction that inserted them": func(t *testing.T, e *Env) {
		ic := interchange(newID(), newID())
		ic.Total, ic.Open = 1, 1
		m := message(newID(), ic.ID, 1)
		update(t, e.Store, func(tx store.Tx) error {
			err := errors.Join(tx.InsertInterchange(ic), tx.InsertMessages([]*store.Message{m}))
			done, err2 := tx.EndMessages([]edi.ID{m.ID}, store.StateRejected, "C", t0)
			equal(t, "done", done, []edi.ID{ic.ID})
			got, err3 := tx.Interchange(ic.ID)
			equal(t, "open", got.Open, 0)
			equal(t, "state", got.State, store.StateDone)
			return errors.Join(err, err2, err3)
		})
	},
	"reopen counts up what was counted down": func(t *testing.T, e *Env) {
		ic, ids := split(t, e.Store, 2, store.StateSplit)
		end(t, e.Store, store.StateDead, ids[0])
		end(t, e.Store, store.StateDiscarded, ids[1])
		reopen := func(id edi.ID) {
			update(t, e.Store, func(tx store.Tx) error { return tx.Reopen(id, store.StateRouted) })
		}
		reopen(ids[0])
		equal(t, "was dead", counts(t, e.Store, ic.ID), "split 1/2")
		m := get[*store.Message](t)(e.Store.GetMessage(ctxOf(t), ids[0]))
		equal(t, "message", m.State+m.Code, store.StateRouted)
		end(t, e.Store, store.StateDelivered, ids[0])
		equal(t, "all ended", counts(t, e.Store, ic.ID), "done 0/2")
		reopen(ids[1])
		equal(t, "was discarded", counts(t, e.Store, ic.ID), "split 1/2")
		equal(t, "done again", end(t, e.Store, store.StateDelivered, ids[1]), []edi.ID{ic.ID})
	},
	"an end is undone with its transaction": func(t *testing.T, e *Env) {
		ic, ids := split(t, e.Store, 1, store.StateSplit)
		errs := together(t, e.Store,
			func(tx store.Tx) error { return tx.SaveSetting("a", nil) },
			func(tx store.Tx) error {
				_, err := tx.EndMessages(ids, store.StateDelivered, "", t0)
				return errors.Join(err, errWanted)
			})
		isErr(t, "update", errs[1], errWanted)
		equal(t, "interchange", counts(t, e.Store, ic.ID), "split 1/1")
	},
}
