package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// library is three transmissions with all that came of them; the objects of each differ in every
// filter.
type library struct {
	tr [3]*store.Transmission
	ic [3]*store.Interchange
	ms [3]*store.Message
	de [3]*store.Delivery
}

func shelve(t *testing.T, st store.Store) *library {
	t.Helper()
	l := &library{}
	update(t, st, func(tx store.Tx) error {
		for i, s := range []string{"0", "1", "2"} {
			at := t0.Add(time.Duration(i) * time.Hour)
			tr := transmission(edi.NewID(at))
			tr.MessageID, tr.State, tr.From, tr.To, tr.Connection, tr.Transport, tr.At = "<"+s+"@x>", "state"+s, "from"+s, "to"+s, "conn"+s, "transport"+s, at
			ic := interchange(tr.ID.Derive("i", 1), tr.ID)
			ic.Envelope.ControlRef, ic.State, ic.From, ic.To, ic.At, ic.Envelope.Standard, ic.Envelope.Test = "ref"+s, "state"+s, "from"+s, "to"+s, at, edi.Standard("std"+s), i == 1
			m := message(ic.ID.Derive("m", 1), ic.ID, 1)
			m.ControlRef, m.State, m.From, m.To, m.At, m.Envelope.Type, m.Test = "ref"+s, "state"+s, "from"+s, "to"+s, at, "type"+s, i == 1
			m.Envelope.Document.Number, m.Envelope.Document.OrderNo = "doc"+s, "order"+s
			d := delivery(m.ID.Derive("d", 1))
			d.ControlRef, d.State, d.From, d.To, d.At, d.Type, d.Messages = "out"+s, "state"+s, "from"+s, "to"+s, at, "type"+s, []edi.ID{m.ID}
			d.Partner = "partner" + s
			m.Delivery = d.ID
			l.tr[i], l.ic[i], l.ms[i], l.de[i] = tr, ic, m, d
			err := errors.Join(tx.InsertTransmission(tr), tx.InsertInterchange(ic), tx.InsertMessages([]*store.Message{m}), tx.InsertDelivery(d))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return l
}

// lists runs a filter over all four lists and returns the numbers of what was found.
func lists(t *testing.T, st store.Store, l *library, f store.Filter) (tr, ic, ms, de []int) {
	t.Helper()
	ctx := ctxOf(t)
	index := func(id edi.ID, of func(i int) edi.ID) int {
		for i := range 3 {
			if of(i) == id {
				return i
			}
		}
		return -1
	}
	for _, x := range get[[]*store.Transmission](t)(st.ListTransmissions(ctx, f)) {
		i := index(x.ID, func(i int) edi.ID { return l.tr[i].ID })
		equal(t, "transmission", x, l.tr[i])
		tr = append(tr, i)
	}
	for _, x := range get[[]*store.Interchange](t)(st.ListInterchanges(ctx, f)) {
		i := index(x.ID, func(i int) edi.ID { return l.ic[i].ID })
		equal(t, "interchange", x, l.ic[i])
		ic = append(ic, i)
	}
	for _, x := range get[[]*store.Message](t)(st.ListMessages(ctx, f)) {
		i := index(x.ID, func(i int) edi.ID { return l.ms[i].ID })
		equal(t, "message", x, l.ms[i])
		ms = append(ms, i)
	}
	for _, x := range get[[]*store.Delivery](t)(st.ListDeliveries(ctx, f)) {
		i := index(x.ID, func(i int) edi.ID { return l.de[i].ID })
		equal(t, "delivery", x, l.de[i])
		de = append(de, i)
	}
	return tr, ic, ms, de
}

var listTests = map[string]func(*testing.T, *Env){
	"empty filters match all, from new to old": func(t *testing.T, e *Env) {
		l := shelve(t, e.Store)
		tr, ic, ms, de := lists(t, e.Store, l, store.Filter{})
		for _, got := range [][]int{tr, ic, ms, de} {
			equal(t, "order", got, []int{2, 1, 0})
		}
	},
	"each filter finds its object in every list": func(t *testing.T, e *Env) {
		l := shelve(t, e.Store)
		yes, no := true, false
		one := []int{1}
		for name, c := range map[string]struct {
			f              store.Filter
			tr, ic, ms, de []int
		}{
			"document number": {store.Filter{DocumentNo: "doc1"}, one, one, one, one},
			"order number":    {store.Filter{OrderNo: "order1"}, one, one, one, one},
			"state":           {store.Filter{State: "state1"}, one, one, one, one},
			"sender":          {store.Filter{Sender: "from1"}, one, one, one, one},
			"receiver":        {store.Filter{Receiver: "to1"}, one, one, one, one},
			"sent to":         {store.Filter{Receiver: "partner1"}, nil, nil, nil, one},
			"connection":      {store.Filter{Sender: "conn1"}, one, nil, nil, nil},
			"type":            {store.Filter{Type: "type1"}, nil, one, one, one},
			"standard":        {store.Filter{Type: "std1"}, nil, one, nil, nil},
			"transport":       {store.Filter{Type: "transport1"}, one, nil, nil, nil},
			"control ref":     {store.Filter{ControlRef: "ref1"}, one, one, one, nil},
			"control ref out": {store.Filter{ControlRef: "out1"}, nil, nil, nil, one},
			"message id":      {store.Filter{MessageID: "<1@x>"}, one, one, one, nil},
			"message id out":  {store.Filter{MessageID: l.de[1].MessageID("hub")}, nil, nil, nil, one},
			"interchange":     {store.Filter{Interchange: l.ic[1].ID}, one, one, one, one},
			"transmission":    {store.Filter{Parent: l.tr[1].ID}, one, one, one, one},
			"test":            {store.Filter{Test: &yes}, one, one, one, one},
			"no test":         {store.Filter{Test: &no}, []int{2, 0}, []int{2, 0}, []int{2, 0}, []int{2, 0}},
			"since":           {store.Filter{Since: t0.Add(time.Hour)}, []int{2, 1}, []int{2, 1}, []int{2, 1}, []int{2, 1}},
			"until":           {store.Filter{Until: t0.Add(time.Hour)}, []int{0}, []int{0}, []int{0}, []int{0}},
			"two that agree":  {store.Filter{DocumentNo: "doc1", State: "state1"}, one, one, one, one},
			"two that do not": {store.Filter{DocumentNo: "doc1", State: "state2"}, nil, nil, nil, nil},
			"nothing":         {store.Filter{OrderNo: "none"}, nil, nil, nil, nil},
		} {
			tr, ic, ms, de := lists(t, e.Store, l, c.f)
			equal(t, name+": transmissions", tr, c.tr)
			equal(t, name+": interchanges", ic, c.ic)
			equal(t, name+": messages", ms, c.ms)
			equal(t, name+": deliveries", de, c.de)
		}
	},
	"pages follow their cursor": func(t *testing.T, e *Env) {
		l := shelve(t, e.Store)
		tr, _, _, _ := lists(t, e.Store, l, store.Filter{Limit: 2})
		equal(t, "first page", tr, []int{2, 1})
		tr, _, _, _ = lists(t, e.Store, l, store.Filter{Limit: 2, Before: l.tr[1].ID})
		equal(t, "second page", tr, []int{0})
		_, ic, _, _ := lists(t, e.Store, l, store.Filter{Limit: 2, Before: l.ic[1].ID})
		_, _, ms, _ := lists(t, e.Store, l, store.Filter{Limit: 2, Before: l.ms[1].ID, State: "state0"})
		_, _, _, de := lists(t, e.Store, l, store.Filter{Limit: 2, Before: l.de[1].ID, Receiver: "to0"})
		for _, got := range [][]int{ic, ms, de} {
			equal(t, "second page", got, []int{0})
		}
		no := false // what is left out by a look at another object does not shorten a page
		_, _, _, de = lists(t, e.Store, l, store.Filter{Limit: 2, Test: &no})
		equal(t, "page", de, []int{2, 0})
	},
	"a change is found under its new value": func(t *testing.T, e *Env) {
		l := shelve(t, e.Store)
		l.ms[0].Envelope.Document.Number, l.ms[0].State = "doc9", "state9"
		update(t, e.Store, func(tx store.Tx) error { return tx.SaveMessages(l.ms[:1]) })
		for f, want := range map[*store.Filter][]int{{DocumentNo: "doc0"}: nil, {DocumentNo: "doc9"}: {0}, {State: "state0"}: nil, {State: "state9"}: {0}} {
			_, _, ms, _ := lists(t, e.Store, l, store.Filter{DocumentNo: f.DocumentNo})
			if f.State != "" {
				_, _, ms, _ = lists(t, e.Store, l, store.Filter{State: f.State})
			}
			equal(t, f.DocumentNo+f.State, ms, want)
		}
	},
	"text of a partner is text": func(t *testing.T, e *Env) {
		l := shelve(t, e.Store)
		for _, s := range []string{"' or 1=1 --", "%", "?", "state1' or '1'='1"} {
			tr, ic, ms, de := lists(t, e.Store, l, store.Filter{State: s})
			equal(t, s, len(tr)+len(ic)+len(ms)+len(de), 0)
			tr, ic, ms, de = lists(t, e.Store, l, store.Filter{MessageID: s, ControlRef: s})
			equal(t, s, len(tr)+len(ic)+len(ms)+len(de), 0)
		}
	},
	"dead letters by stage, partner, code and time": func(t *testing.T, e *Env) {
		dead := func(n int64, stage store.Stage, partner, code string, state store.WorkState) *store.Work {
			w := row(1, n, state)
			w.Stage, w.Partner, w.Code, w.Died = stage, partner, code, t0.Add(time.Duration(n)*time.Hour)
			return w
		}
		insert(t, e.Store,
			dead(1, store.Parser, "acme", "A", store.Dead), dead(2, store.Router, "acme", "B", store.Dead), dead(3, store.Router, "beta", "A", store.Dead),
			dead(4, store.Router, "beta", "A", store.Discarded), row(1, 5, store.Ready))
		for name, c := range map[string]struct {
			f    store.DeadFilter
			want []int64
		}{
			"all":       {store.DeadFilter{}, []int64{3, 2, 1}},
			"stage":     {store.DeadFilter{Stage: store.Router}, []int64{3, 2}},
			"partner":   {store.DeadFilter{Partner: "acme"}, []int64{2, 1}},
			"code":      {store.DeadFilter{Code: "A"}, []int64{3, 1}},
			"since":     {store.DeadFilter{Since: t0.Add(2 * time.Hour)}, []int64{3, 2}},
			"until":     {store.DeadFilter{Until: t0.Add(2 * time.Hour)}, []int64{1}},
			"discarded": {store.DeadFilter{Discarded: true}, []int64{4}},
			"limit":     {store.DeadFilter{Limit: 1}, []int64{3}},
			"several":   {store.DeadFilter{Stage: store.Router, Partner: "beta", Code: "A"}, []int64{3}},
		} {
			equal(t, name, seqs(get[[]*store.Work](t)(e.Store.ListDead(ctxOf(t), c.f))), c.want)
		}
		rows := get[[]*store.Work](t)(e.Store.ListDead(ctxOf(t), store.DeadFilter{Limit: 1}))
		equal(t, "next page", seqs(get[[]*store.Work](t)(e.Store.ListDead(ctxOf(t), store.DeadFilter{Limit: 1, Before: rows[0].ID}))), []int64{2})
		update(t, e.Store, func(tx store.Tx) error {
			rows, err := tx.Work([]store.WorkKey{rows[0].WorkKey})
			rows[0].State, rows[0].Died = store.Ready, time.Time{}
			return errors.Join(err, tx.SaveWork(rows))
		})
		equal(t, "after a replay", seqs(get[[]*store.Work](t)(e.Store.ListDead(ctxOf(t), store.DeadFilter{}))), []int64{2, 1})
	},
	"a page of dead letters does not part the stages of an id": func(t *testing.T, e *Env) {
		a := row(1, 1, store.Dead)
		b := *a
		b.Stage, b.Seq = store.Router, 2
		insert(t, e.Store, a, &b)
		equal(t, "page", len(get[[]*store.Work](t)(e.Store.ListDead(ctxOf(t), store.DeadFilter{Limit: 1}))), 2)
	},
}
