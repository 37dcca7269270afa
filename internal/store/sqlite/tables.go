package sqlite

import (
	"database/sql/driver"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// The tables that rows are inserted into by the dozen. The order of the columns is that of the
// functions below.
var (
	laneTable = &table{name: "lane", key: "id",
		cols: []string{"id", "stage", "name", "ordered", "policy", "next", "tail", "waiting", "paused", "profile"}}
	workTable = &table{name: "work", key: "stage, id",
		cols: []string{"stage", "id", "lane", "seq", "gen", "state", "busy", "key", "topic", "handed", "since", "wake", "died", "partner", "code", "data"}}
	keyTable = &table{name: "natural_key", key: "scope, hash",
		cols: []string{"scope", "hash", "content", "object", "at"}}
	freshTable = &table{name: "fresh_key", key: "n",
		cols: []string{"n", "scope", "hash", "content", "object", "at"}}
	numberTable = &table{name: "number", key: "sequence", cols: []string{"sequence", "next"}}
	bodyTable   = &table{name: "body", key: "hash", cols: []string{"hash", "size", "kind", "data"}}
	eventTable  = &table{name: "event", key: "object, n", cols: []string{"object", "n", "at", "name", "detail", "who"}}

	transmissionTable = &table{name: "transmission", key: "id",
		cols: []string{"id", "state", "sender", "receiver", "connection", "transport", "message_h", "at", "data"}}
	interchangeTable = &table{name: "interchange", key: "id",
		cols: []string{"id", "transmission", "position", "state", "open", "sender", "receiver", "standard", "test", "ref_h", "at", "data"}}
	messageTable = &table{name: "message", key: "id",
		cols: []string{"id", "interchange", "position", "state", "code", "sender", "receiver", "type", "test", "document_h", "order_h", "delivery", "at", "data"}}
	deliveryTable = &table{name: "delivery", key: "id",
		cols: []string{"id", "state", "sender", "receiver", "partner", "connection", "type", "ref_h", "at", "data"}}
)

// Kinds of bodies.
const (
	bodyPlain int64 = iota
	bodyPacked
	bodyFile
)

// busy says whether later rows of the same key must wait for this one: the lane went past it,
// and it is not through. A row that a person gave up is through.
func busy(w *store.Work) bool {
	return w.Key != "" && (w.Gap || w.State == store.KeyHeld) && w.State != store.Discarded
}

// appendWork adds the values of a row. The nonce tells an insert from the row that was there.
func (s *Store) appendWork(vals []driver.Value, w *store.Work, nonce int64) []driver.Value {
	var wake, died, partner, code any
	switch w.State {
	case store.Retry:
		wake = nanos(w.Due)
	case store.Leased:
		wake = nanos(w.Lease)
	case store.Dead, store.Discarded:
		died, partner, code = nanos(w.Died), w.Partner, w.Code
	case store.Ready, store.Parked, store.KeyHeld:
	}
	c := coder{buf: make([]byte, 0, 128)}
	codeWork(&c, w)
	c.int(&nonce)
	return append(vals, int64(w.Stage), w.ID[:], w.Lane, w.Seq, w.Gen, int64(w.State), flag(busy(w)), w.Key, w.Topic,
		s.handedNow(w.Handed), nanos(w.Since), wake, died, partner, code, c.buf)
}

// readWork reads data and handed: the one column that changes without its row.
func readWork(data []byte, handed int64) (w *store.Work, nonce int64, err error) {
	w = &store.Work{}
	c := coder{buf: data, reading: true}
	codeWork(&c, w)
	c.int(&nonce)
	w.Handed = handed
	if c.bad {
		err = errCodec
	}
	return w, nonce, err
}

// kept copies an id that is written after its call has returned: by then the caller may have
// changed what it handed over.
func kept(id edi.ID) []byte { return id[:] }

func transmissionVals(t *store.Transmission) []driver.Value {
	return []driver.Value{kept(t.ID), t.State, t.From, t.To, t.Connection, t.Transport, hashOf(t.MessageID), nanos(t.At), encode(t, codeTransmission)}
}

func interchangeVals(ic *store.Interchange) []driver.Value {
	return []driver.Value{
		kept(ic.ID), kept(ic.Transmission), int64(ic.Position), ic.State, int64(ic.Open), ic.From, ic.To, string(ic.Envelope.Standard),
		flag(ic.Envelope.Test), hashOf(ic.Envelope.ControlRef), nanos(ic.At), encode(ic, codeInterchange),
	}
}

func messageVals(m *store.Message) []driver.Value {
	return []driver.Value{
		kept(m.ID), kept(m.Interchange), int64(m.Envelope.Position), m.State, m.Code, m.From, m.To, m.Envelope.Type, flag(m.Test),
		hashOf(m.Envelope.Document.Number), hashOf(m.Envelope.Document.OrderNo), idOrNull(m.Delivery), nanos(m.At), encode(m, codeMessage),
	}
}

func idOrNull(id edi.ID) any {
	if id.IsZero() {
		return nil
	}
	return kept(id)
}

func deliveryVals(d *store.Delivery) []driver.Value {
	return []driver.Value{kept(d.ID), d.State, d.From, d.To, d.Partner, d.Connection, d.Type, hashOf(d.ControlRef), nanos(d.At), encode(d, codeDelivery)}
}
