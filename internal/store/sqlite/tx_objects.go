package sqlite

import (
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// InsertTransmission implements store.Tx.
func (t *tx) InsertTransmission(x *store.Transmission) error {
	return t.add(t.w.tables.transmission, x.ID, false, transmissionVals(x))
}

// SaveTransmission implements store.Tx.
func (t *tx) SaveTransmission(x *store.Transmission) error {
	return t.add(t.w.tables.transmission, x.ID, true, transmissionVals(x))
}

// InsertInterchange implements store.Tx.
func (t *tx) InsertInterchange(ic *store.Interchange) error {
	return t.add(t.w.tables.interchange, ic.ID, false, interchangeVals(ic))
}

// SaveInterchange implements store.Tx.
func (t *tx) SaveInterchange(ic *store.Interchange) error {
	return t.add(t.w.tables.interchange, ic.ID, true, interchangeVals(ic))
}

// InsertMessages implements store.Tx.
func (t *tx) InsertMessages(ms []*store.Message) error {
	for _, m := range ms {
		if err := t.add(t.w.tables.message, m.ID, false, messageVals(m)); err != nil {
			return err
		}
	}
	return nil
}

// SaveMessages implements store.Tx.
func (t *tx) SaveMessages(ms []*store.Message) error {
	for _, m := range ms {
		if err := t.add(t.w.tables.message, m.ID, true, messageVals(m)); err != nil {
			return err
		}
	}
	return nil
}

// InsertDelivery implements store.Tx.
func (t *tx) InsertDelivery(d *store.Delivery) error {
	return t.add(t.w.tables.delivery, d.ID, false, deliveryVals(d))
}

// SaveDelivery implements store.Tx.
func (t *tx) SaveDelivery(d *store.Delivery) error {
	return t.add(t.w.tables.delivery, d.ID, true, deliveryVals(d))
}

func (t *tx) add(p *pending, id edi.ID, put bool, vals []driver.Value) error {
	if _, err := t.conn(); err != nil {
		return err
	}
	p.add(id, put, vals)
	return nil
}

// see flushes a table before it is read.
func (t *tx) see(p *pending) (*wconn, error) {
	w, err := t.conn()
	if err != nil {
		return nil, err
	}
	return w, p.flush(w)
}

// Interchange implements store.Tx.
func (t *tx) Interchange(id edi.ID) (*store.Interchange, error) {
	w, err := t.see(t.w.tables.interchange)
	if err != nil {
		return nil, err
	}
	var out *store.Interchange
	err = w.query("select "+interchangeRow+" from interchange where id = ?", func(row []driver.Value) (err error) {
		out, err = readInterchange(blob(row[0]), str(row[1]), integer(row[2]))
		return err
	}, id[:])
	return found(out, err, "interchange", id)
}

// Message implements store.Tx.
func (t *tx) Message(id edi.ID) (*store.Message, error) {
	w, err := t.see(t.w.tables.message)
	if err != nil {
		return nil, err
	}
	var out *store.Message
	err = w.query("select "+messageRow+" from message where id = ?", func(row []driver.Value) (err error) {
		out, err = readMessage(blob(row[0]), str(row[1]), str(row[2]))
		return err
	}, id[:])
	return found(out, err, "message", id)
}

// MessagesOf implements store.Tx.
func (t *tx) MessagesOf(interchange edi.ID, after, n int) ([]*store.Message, error) {
	w, err := t.see(t.w.tables.message)
	if err != nil {
		return nil, err
	}
	var out []*store.Message
	err = w.query("select "+messageRow+" from message where interchange = ? and position > ? order by position limit ?", func(row []driver.Value) error {
		m, err := readMessage(blob(row[0]), str(row[1]), str(row[2]))
		out = append(out, m)
		return err
	}, interchange[:], int64(after), int64(n))
	return out, err
}

// Delivery implements store.Tx.
func (t *tx) Delivery(id edi.ID) (*store.Delivery, error) {
	w, err := t.see(t.w.tables.delivery)
	if err != nil {
		return nil, err
	}
	var out *store.Delivery
	err = w.query("select "+deliveryRow+" from delivery where id = ?", func(row []driver.Value) (err error) {
		out, err = readDelivery(blob(row[0]))
		return err
	}, id[:])
	return found(out, err, "delivery", id)
}

// found turns no row into ErrNotFound.
func found[T any](v *T, err error, kind string, id edi.ID) (*T, error) {
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, id, err)
	}
	if v == nil {
		return nil, fmt.Errorf("%s %s: %w", kind, id, store.ErrNotFound)
	}
	return v, nil
}

// terminal says whether a message in this state has ended. A dead or held message has not: a
// person will decide.
func terminal(state string) bool {
	switch state {
	case store.StateDelivered, store.StateRejected, store.StateDiscarded, store.StateDuplicate:
		return true
	}
	return false
}

// EndMessages implements store.Tx. A message that has ended keeps its state, but that delivered
// takes the place of any other end: the receiver's proof is the last word. Only the first end is
// counted.
func (t *tx) EndMessages(ids []edi.ID, state, code string, _ time.Time) ([]edi.ID, error) {
	w, err := t.see(t.w.tables.message)
	if err != nil {
		return nil, err
	}
	var change []driver.Value
	ended := map[edi.ID]int64{}
	var order []edi.ID
	vals := make([]driver.Value, len(ids))
	for i := range ids {
		vals[i] = ids[i][:]
	}
	err = inList(vals, 1, func(n int, vals []driver.Value) error {
		return w.query("select id, interchange, state from message where id in ("+marks(n)+")", func(row []driver.Value) error {
			old := str(row[2])
			if terminal(old) && (state != store.StateDelivered || old == state) {
				return nil
			}
			change = append(change, blob(row[0]))
			if terminal(state) && !terminal(old) {
				ic := idOf(row[1])
				if ended[ic] == 0 {
					order = append(order, ic)
				}
				ended[ic]++
			}
			return nil
		}, vals...)
	})
	if err != nil {
		return nil, err
	}
	err = inList(change, 1, func(n int, vals []driver.Value) error {
		return w.exec("update message set state = ?, code = ? where id in ("+marks(n)+")", append([]driver.Value{state, code}, vals...)...)
	})
	if err != nil {
		return nil, err
	}
	return t.countDown(order, ended)
}

// countDown takes ended messages off their interchanges and returns those that are done by it.
func (t *tx) countDown(order []edi.ID, ended map[edi.ID]int64) ([]edi.ID, error) {
	if len(order) == 0 {
		return nil, nil
	}
	w, err := t.see(t.w.tables.interchange)
	if err != nil {
		return nil, err
	}
	vals := make([]driver.Value, 0, 2*len(order))
	for i := range order {
		vals = append(vals, order[i][:], ended[order[i]])
	}
	var done []edi.ID
	err = inList(vals, 2, func(n int, vals []driver.Value) error {
		return w.write("update interchange set open = max(0, open - v.column2),"+
			" state = case when state = 'split' and open <= v.column2 then 'done' else state end"+
			" from (values "+tuples(n, 2)+") as v where interchange.id = v.column1 returning id, open, state",
			func(row []driver.Value) error {
				if integer(row[1]) == 0 && str(row[2]) == store.StateDone {
					done = append(done, idOf(row[0]))
				}
				return nil
			}, vals...)
	})
	return done, err
}

// Reopen implements store.Tx. An interchange that was done waits for its message again.
func (t *tx) Reopen(id edi.ID, state string) error {
	w, err := t.see(t.w.tables.message)
	if err != nil {
		return err
	}
	var old string
	var ic *edi.ID
	err = w.query("select interchange, state from message where id = ?", func(row []driver.Value) error {
		parent := idOf(row[0])
		ic, old = &parent, str(row[1])
		return nil
	}, id[:])
	if _, err := found(ic, err, "message", id); err != nil {
		return err
	}
	if err := w.exec("update message set state = ?, code = '' where id = ?", state, id[:]); err != nil {
		return err
	}
	if !terminal(old) || terminal(state) {
		return nil
	}
	if _, err := t.see(t.w.tables.interchange); err != nil {
		return err
	}
	return w.exec("update interchange set open = open + 1, state = case when state = 'done' then 'split' else state end where id = ?", ic[:])
}
