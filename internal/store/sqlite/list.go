package sqlite

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// defaultLimit is the length of a list whose filter names none.
const defaultLimit = 100

// where builds a condition from constant fragments; values go into placeholders only.
type where struct {
	conds []string
	args  []any
	// narrow: a condition finds few rows by an index. Without one, the list is walked from new to
	// old.
	narrow bool
}

func (w *where) add(cond string, args ...any) {
	w.conds = append(w.conds, cond)
	w.args = append(w.args, args...)
}

// find is add for a condition with an index.
func (w *where) find(cond string, args ...any) {
	w.narrow = true
	w.add(cond, args...)
}

func (w *where) text(cond, value string) {
	if value != "" {
		w.add(cond, value)
	}
}

// hash looks a text up by its search key.
func (w *where) hash(cond, value string) {
	if value != "" {
		w.find(cond, hashOf(value))
	}
}

// Searches by a hash, through an index in buckets.
var (
	byMessageID = inBuckets("transmission", "transmission_message", "message_h")
	byInRef     = inBuckets("interchange", "interchange_ref", "ref_h")
	byDocument  = inBuckets("message", "message_document", "document_h")
	byOrder     = inBuckets("message", "message_order", "order_h")
	byOutRef    = inBuckets("delivery", "delivery_ref", "ref_h")
)

// inBuckets is the condition that finds the rows of a table with a hash: their numbers, from the
// newest bucket of 256 rows to the oldest (migration 2).
func inBuckets(table, index, hash string) string {
	return "n in (with recursive bucket(k) as (select coalesce(max(n), 0) >> 8 from " + table +
		" union all select k - 1 from bucket where k > 0) select t.n from bucket cross join " + table +
		" t indexed by " + index + " where t.n >> 8 = bucket.k and t." + hash + " = ?)"
}

func (w *where) id(cond string, id edi.ID) {
	if !id.IsZero() {
		w.find(cond, id[:])
	}
}

func (w *where) between(since, until time.Time) {
	if !since.IsZero() {
		w.add("at >= ?", nanos(since))
	}
	if !until.IsZero() {
		w.add("at < ?", nanos(until))
	}
}

func (w *where) test(cond string, test *bool) {
	if test != nil {
		w.add(cond, flag(*test))
	}
}

// page is the query for what stands before an id, from new to old.
func (w *where) page(columns, from string, before edi.ID, limit int) (string, []any) {
	// A plus sign keeps SQLite from walking the ids where an index finds the rows.
	id := "id"
	if w.narrow {
		id = "+id"
	}
	conds, args := w.conds, w.args
	if !before.IsZero() {
		conds = append(slices.Clip(conds), id+" < ?")
		args = append(slices.Clip(args), before[:])
	}
	text := "select " + columns + " from " + from
	if len(conds) > 0 {
		text += " where " + strings.Join(conds, " and ")
	}
	return text + " order by " + id + " desc limit ?", append(slices.Clip(args), limit)
}

// pages collects up to the filter's limit of what keep takes. Search keys are hashes, so a value
// that was found is compared again.
func pages[T any](ctx context.Context, s *Store, w *where, columns, from string, f *store.Filter,
	scan func(scanner) (*T, error), id func(*T) edi.ID, keep func(*T) (bool, error),
) ([]*T, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	var out []*T
	for before := f.Before; ; {
		text, args := w.page(columns, from, before, limit)
		part, err := long(ctx, s, text, scan, args...)
		if err != nil {
			return nil, err
		}
		for _, v := range part {
			ok, err := keep(v)
			if err != nil {
				return nil, err
			}
			if ok && len(out) < limit {
				out = append(out, v)
			}
		}
		if len(part) < limit || len(out) == limit {
			return out, nil
		}
		before = id(part[len(part)-1])
	}
}

func equal(want, have string) bool { return want == "" || want == have }

// ListTransmissions implements store.Reader. Sender is the name that the transmission carries or
// its connection, Type its transport; the numbers of its documents are found through its
// interchanges.
func (s *Store) ListTransmissions(ctx context.Context, f store.Filter) ([]*store.Transmission, error) {
	w := &where{}
	w.hash(byMessageID, f.MessageID)
	w.hash("id in (select transmission from interchange where "+byInRef+")", f.ControlRef)
	w.hash("id in (select i.transmission from interchange i where i.id in (select interchange from message where "+byDocument+"))", f.DocumentNo)
	w.hash("id in (select i.transmission from interchange i where i.id in (select interchange from message where "+byOrder+"))", f.OrderNo)
	w.id("id in (select transmission from interchange where id = ?)", f.Interchange)
	w.id("id = ?", f.Parent)
	if f.Sender != "" {
		w.add("(sender = ? or connection = ?)", f.Sender, f.Sender)
	}
	w.text("receiver = ?", f.Receiver)
	w.text("transport = ?", f.Type)
	w.text("state = ?", f.State)
	w.between(f.Since, f.Until)
	w.test("exists (select 1 from interchange i where i.transmission = transmission.id and i.test = ?)", f.Test)
	return pages(ctx, s, w, "data", "transmission", &f, scanTransmission,
		func(t *store.Transmission) edi.ID { return t.ID },
		func(t *store.Transmission) (bool, error) { return equal(f.MessageID, t.MessageID), nil })
}

// ListInterchanges implements store.Reader. Type is the standard or the type of one of its
// messages.
func (s *Store) ListInterchanges(ctx context.Context, f store.Filter) ([]*store.Interchange, error) {
	w := &where{}
	w.hash(byInRef, f.ControlRef)
	w.hash("transmission in (select id from transmission where "+byMessageID+")", f.MessageID)
	w.hash("id in (select interchange from message where "+byDocument+")", f.DocumentNo)
	w.hash("id in (select interchange from message where "+byOrder+")", f.OrderNo)
	w.id("id = ?", f.Interchange)
	w.id("transmission = ?", f.Parent)
	w.text("sender = ?", f.Sender)
	w.text("receiver = ?", f.Receiver)
	if f.Type != "" {
		w.add("(standard = ? or exists (select 1 from message m where m.interchange = interchange.id and m.type = ?))", f.Type, f.Type)
	}
	w.text("state = ?", f.State)
	w.between(f.Since, f.Until)
	w.test("test = ?", f.Test)
	return pages(ctx, s, w, interchangeRow, "interchange", &f, scanInterchange,
		func(ic *store.Interchange) edi.ID { return ic.ID },
		func(ic *store.Interchange) (bool, error) { return equal(f.ControlRef, ic.Envelope.ControlRef), nil })
}

// ListMessages implements store.Reader.
func (s *Store) ListMessages(ctx context.Context, f store.Filter) ([]*store.Message, error) {
	w := &where{}
	w.hash(byDocument, f.DocumentNo)
	w.hash(byOrder, f.OrderNo)
	w.hash("interchange in (select id from interchange where "+byInRef+")", f.ControlRef)
	w.hash("interchange in (select i.id from interchange i where i.transmission in (select id from transmission where "+byMessageID+"))", f.MessageID)
	w.id("interchange = ?", f.Interchange)
	w.id("interchange in (select id from interchange where transmission = ?)", f.Parent)
	w.text("sender = ?", f.Sender)
	w.text("receiver = ?", f.Receiver)
	w.text("type = ?", f.Type)
	w.text("state = ?", f.State)
	w.between(f.Since, f.Until)
	w.test("test = ?", f.Test)
	return pages(ctx, s, w, messageRow, "message", &f, scanMessage,
		func(m *store.Message) edi.ID { return m.ID },
		func(m *store.Message) (bool, error) {
			return equal(f.DocumentNo, m.Envelope.Document.Number) && equal(f.OrderNo, m.Envelope.Document.OrderNo), nil
		})
}

// ListMessagesOf implements store.Reader.
func (s *Store) ListMessagesOf(ctx context.Context, interchange edi.ID, after, n int) ([]*store.Message, error) {
	return point(ctx, s, "select "+messageRow+" from message where interchange = ? and position > ? order by position limit ?",
		scanMessage, interchange[:], after, n)
}

// ListDeliveries implements store.Reader. A Message-ID names its delivery (Delivery.MessageID).
// Receiver is the partner that is sent to or the one that the messages are for. Documents,
// interchange and transmission find the newest delivery of their messages.
func (s *Store) ListDeliveries(ctx context.Context, f store.Filter) ([]*store.Delivery, error) {
	w := &where{}
	w.hash(byOutRef, f.ControlRef)
	if f.MessageID != "" {
		id, ok := deliveryOf(f.MessageID)
		if !ok {
			return nil, nil
		}
		w.id("id = ?", id)
	}
	w.hash("id in (select delivery from message where "+byDocument+")", f.DocumentNo)
	w.hash("id in (select delivery from message where "+byOrder+")", f.OrderNo)
	w.id("id in (select delivery from message where interchange = ?)", f.Interchange)
	w.id("id in (select m.delivery from message m where m.interchange in (select id from interchange where transmission = ?))", f.Parent)
	w.text("sender = ?", f.Sender)
	if f.Receiver != "" {
		w.add("(receiver = ? or partner = ?)", f.Receiver, f.Receiver)
	}
	w.text("type = ?", f.Type)
	w.text("state = ?", f.State)
	w.between(f.Since, f.Until)
	return pages(ctx, s, w, deliveryRow, "delivery", &f, scanDelivery,
		func(d *store.Delivery) edi.ID { return d.ID },
		func(d *store.Delivery) (bool, error) {
			if !equal(f.ControlRef, d.ControlRef) {
				return false, nil
			}
			return s.deliveryTest(ctx, d, f.Test)
		})
}

// deliveryTest looks at the delivery's first message for what the delivery itself does not say.
// A delivery without messages, an acknowledgement, is no test.
func (s *Store) deliveryTest(ctx context.Context, d *store.Delivery, test *bool) (bool, error) {
	if test == nil {
		return true, nil
	}
	if len(d.Messages) == 0 {
		return !*test, nil
	}
	found, err := point(ctx, s, "select test from message where id = ?", func(r scanner) (bool, error) {
		var b bool
		err := r.Scan(&b)
		return b, err
	}, d.Messages[0][:])
	if err != nil {
		return false, err
	}
	return (len(found) > 0 && found[0]) == *test, nil
}

// deliveryOf finds the delivery in a Message-ID of ours: <uuid[-gN]@domain>.
func deliveryOf(messageID string) (edi.ID, bool) {
	s := strings.TrimPrefix(messageID, "<")
	if len(s) < 36 {
		return edi.ID{}, false
	}
	id, err := edi.ParseID(s[:36])
	return id, err == nil
}

// ListLanes implements store.Reader: up to n lanes with an id behind after.
func (s *Store) ListLanes(ctx context.Context, after int64, n int) ([]*store.Lane, error) {
	return point(ctx, s, laneColumns+"where id > ? order by id limit ?", scanLane, after, n)
}

// siblings is how many rows of other stages can share the id of a dead letter.
const siblings = 3

// ListDead implements store.Reader: the dead letters, or the discarded ones in their place.
// Since and Until are times of death. Rows of one id in several stages stay on one page, so it
// may be longer than the limit by three.
func (s *Store) ListDead(ctx context.Context, f store.DeadFilter) ([]*store.Work, error) {
	w := &where{}
	w.add("died is not null")
	if f.Discarded {
		w.add("state = 7")
	} else {
		w.add("state = 6")
	}
	if f.Stage != 0 {
		w.add("stage = ?", int64(f.Stage))
	}
	w.text("partner = ?", f.Partner)
	w.text("code = ?", f.Code)
	if !f.Since.IsZero() {
		w.add("died >= ?", nanos(f.Since))
	}
	if !f.Until.IsZero() {
		w.add("died < ?", nanos(f.Until))
	}
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	text, args := w.page("data, handed", "work indexed by work_died", f.Before, limit+siblings)
	rows, err := long(ctx, s, text, s.scanWork, args...)
	if err != nil || len(rows) <= limit {
		return rows, err
	}
	n := limit
	for n < len(rows) && rows[n].ID == rows[limit-1].ID {
		n++
	}
	return rows[:n], nil
}
