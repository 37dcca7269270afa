package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// What is read of each object: the whole, and the columns that change on their own.
const (
	interchangeRow = "data, state, open"
	messageRow     = "data, state, code"
	deliveryRow    = "data"
)

func readInterchange(data []byte, state string, open int64) (*store.Interchange, error) {
	ic := &store.Interchange{}
	err := decode(data, ic, codeInterchange)
	ic.State, ic.Open = state, int(open)
	return ic, err
}

func readMessage(data []byte, state, code string) (*store.Message, error) {
	m := &store.Message{}
	err := decode(data, m, codeMessage)
	m.State, m.Code = state, code
	return m, err
}

func readDelivery(data []byte) (*store.Delivery, error) {
	d := &store.Delivery{}
	return d, decode(data, d, codeDelivery)
}

// scanner is the row of either kind of query.
type scanner interface{ Scan(dest ...any) error }

func scanTransmission(r scanner) (*store.Transmission, error) {
	var data sql.RawBytes
	if err := r.Scan(&data); err != nil {
		return nil, err
	}
	t := &store.Transmission{}
	return t, decode(data, t, codeTransmission)
}

func scanInterchange(r scanner) (*store.Interchange, error) {
	var data sql.RawBytes
	var state string
	var open int64
	if err := r.Scan(&data, &state, &open); err != nil {
		return nil, err
	}
	return readInterchange(data, state, open)
}

func scanMessage(r scanner) (*store.Message, error) {
	var data sql.RawBytes
	var state, code string
	if err := r.Scan(&data, &state, &code); err != nil {
		return nil, err
	}
	return readMessage(data, state, code)
}

func scanDelivery(r scanner) (*store.Delivery, error) {
	var data sql.RawBytes
	if err := r.Scan(&data); err != nil {
		return nil, err
	}
	return readDelivery(data)
}

func (s *Store) scanWork(r scanner) (*store.Work, error) {
	var data sql.RawBytes
	var handed int64
	if err := r.Scan(&data, &handed); err != nil {
		return nil, err
	}
	w, _, err := readWork(data, s.handedNow(handed))
	return w, err
}

func scanLane(r scanner) (*store.Lane, error) {
	l := &store.Lane{}
	return l, r.Scan(&l.ID, &l.Stage, &l.Name, &l.Ordered, &l.Policy, &l.Next, &l.Tail, &l.Waiting, &l.Paused, &l.Profile)
}

// point runs a short query with a statement that is kept. The context is looked at before it
// and not during it, because the driver starts a goroutine for each statement with a context
// that can end.
func point[T any](ctx context.Context, s *Store, text string, scan func(scanner) (T, error), args ...any) ([]T, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	st, err := s.statement(text) //nolint:sqlclosecheck // It is kept for the next call.
	if err != nil {
		return nil, err
	}
	rows, err := st.QueryContext(context.WithoutCancel(ctx), args...)
	return collect(s, rows, err, scan)
}

// long runs a query that may take its time; it ends with its context.
func long[T any](ctx context.Context, s *Store, text string, scan func(scanner) (T, error), args ...any) ([]T, error) {
	rows, err := s.lists.QueryContext(ctx, text, args...)
	return collect(s, rows, err, scan)
}

func collect[T any](s *Store, rows *sql.Rows, err error, scan func(scanner) (T, error)) ([]T, error) {
	if err != nil {
		return nil, s.readError(err)
	}
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			_ = rows.Close() // the first error is the one to tell
			return nil, s.readError(err)
		}
		out = append(out, v)
	}
	if err := rows.Err(); err != nil {
		return nil, s.readError(err)
	}
	return out, nil
}

func (s *Store) readError(err error) error {
	select {
	case <-s.closing:
		return errClosed
	default:
		return fmt.Errorf("sqlite read: %w", classify(err))
	}
}

// statement prepares a text once for the pool.
func (s *Store) statement(text string) (*sql.Stmt, error) {
	if st, ok := s.stmts.Load(text); ok {
		return st.(*sql.Stmt), nil //nolint:forcetypeassert // Only statements are stored.
	}
	st, err := s.points.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, s.readError(err)
	}
	if have, loaded := s.stmts.LoadOrStore(text, st); loaded {
		_ = st.Close()               //nolint:sqlclosecheck // Another goroutine was first.
		return have.(*sql.Stmt), nil //nolint:forcetypeassert // Only statements are stored.
	}
	return st, nil
}

// only returns the one value, or ErrNotFound.
func only[T any](vs []T, err error, what string) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	if len(vs) == 0 {
		return none, fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	return vs[0], nil
}

// GetTransmission implements store.Reader.
func (s *Store) GetTransmission(ctx context.Context, id edi.ID) (*store.Transmission, error) {
	vs, err := point(ctx, s, "select data from transmission where id = ?", scanTransmission, id[:])
	return only(vs, err, "transmission "+id.String())
}

// GetInterchange implements store.Reader.
func (s *Store) GetInterchange(ctx context.Context, id edi.ID) (*store.Interchange, error) {
	vs, err := point(ctx, s, "select "+interchangeRow+" from interchange where id = ?", scanInterchange, id[:])
	return only(vs, err, "interchange "+id.String())
}

// GetMessage implements store.Reader.
func (s *Store) GetMessage(ctx context.Context, id edi.ID) (*store.Message, error) {
	vs, err := point(ctx, s, "select "+messageRow+" from message where id = ?", scanMessage, id[:])
	return only(vs, err, "message "+id.String())
}

// GetDelivery implements store.Reader.
func (s *Store) GetDelivery(ctx context.Context, id edi.ID) (*store.Delivery, error) {
	vs, err := point(ctx, s, "select "+deliveryRow+" from delivery where id = ?", scanDelivery, id[:])
	return only(vs, err, "delivery "+id.String())
}

// GetWork implements store.Reader.
func (s *Store) GetWork(ctx context.Context, key store.WorkKey) (*store.Work, error) {
	vs, err := point(ctx, s, "select data, handed from work where stage = ? and id = ?", s.scanWork, int64(key.Stage), key.ID[:])
	return only(vs, err, "work "+key.Stage.String()+" "+key.ID.String())
}

// GetLane implements store.Reader.
func (s *Store) GetLane(ctx context.Context, id int64) (*store.Lane, error) {
	vs, err := point(ctx, s, laneColumns+"where id = ?", scanLane, id)
	return only(vs, err, fmt.Sprintf("lane %d", id))
}

// Events implements store.Reader. They come in the order in which they were added.
func (s *Store) Events(ctx context.Context, object edi.ID) ([]store.Event, error) {
	return point(ctx, s, "select at, name, coalesce(detail, ''), coalesce(who, '') from event where object = ? order by n", func(r scanner) (store.Event, error) {
		e := store.Event{Object: object}
		var at int64
		err := r.Scan(&at, &e.Name, &e.Detail, &e.Who)
		e.At = fromNanos(at)
		return e, err
	}, object[:])
}

// GetSetting implements store.Reader.
func (s *Store) GetSetting(ctx context.Context, name string) ([]byte, error) {
	vs, err := point(ctx, s, "select value from setting where name = ?", func(r scanner) ([]byte, error) {
		var v []byte
		err := r.Scan(&v)
		return v, err
	}, name)
	return only(vs, err, "setting "+name)
}

// Due implements store.Reader. A lease that a dead process of this data folder held has run out:
// Open made it so.
func (s *Store) Due(ctx context.Context, now time.Time, n int) ([]*store.Work, error) {
	return point(ctx, s, "select data, handed from work where wake <= ? order by wake limit ?", s.scanWork, nanos(now), n)
}

const turnsText = "with recursive at (lane) as (" +
	"select (select lane from work where state = 2 order by lane limit 1)" +
	" union all select (select lane from work where state = 2 and lane > at.lane order by lane limit 1) from at where at.lane is not null)" +
	" select w.data, w.handed from at cross join lane l on l.id = at.lane and l.paused = 0" +
	" cross join work w indexed by work_parked on w.state = 2 and w.lane = at.lane and w.seq <= iif(l.ordered, l.next, ?) limit ?"

// Turns implements store.Reader. The turn of an ordered lane has come to the rows with seq up to
// next, that of an unordered lane to all. It walks from one lane with parked rows to the next and
// trusts no counter.
func (s *Store) Turns(ctx context.Context, n int) ([]*store.Work, error) {
	return point(ctx, s, turnsText, s.scanWork, int64(math.MaxInt64), n)
}

const keysFreeText = "select w.data, w.handed from work w where w.state = 5 and not exists (" +
	"select 1 from work e where e.busy = 1 and e.lane = w.lane and e.key = w.key and e.seq < w.seq)" +
	" order by w.lane, w.seq limit ?"

// KeysFree implements store.Reader.
func (s *Store) KeysFree(ctx context.Context, n int) ([]*store.Work, error) {
	return point(ctx, s, keysFreeText, s.scanWork, n)
}

// Unhanded implements store.Reader.
func (s *Store) Unhanded(ctx context.Context, afterLane, afterSeq int64, n int) ([]*store.Work, error) {
	return point(ctx, s, "select data, handed from work where state = 1 and handed = 0 and (lane, seq) > (?, ?) order by lane, seq limit ?",
		s.scanWork, afterLane, afterSeq, n)
}

// Backlog implements store.Reader.
func (s *Store) Backlog(ctx context.Context, lane int64, n int) ([]*store.Work, error) {
	return point(ctx, s, "select data, handed from work where state = 1 and handed = 0 and lane = ? order by seq limit ?", s.scanWork, lane, n)
}

// Depths implements store.Reader. It reads every work row: about 2 µs for each. So that a large
// backlog does not cost more than a twentieth of a core, a count that took longer than depthsSlow
// is given again until twenty times as long has passed.
func (s *Store) Depths(ctx context.Context) ([]store.Depth, error) {
	s.depths.Lock()
	defer s.depths.Unlock()
	start := s.clock.Now()
	if start.Before(s.depths.until) {
		return slices.Clone(s.depths.last), nil
	}
	ds, err := long(ctx, s, "select stage, state, topic, count(*), min(since) from work group by stage, state, topic", func(r scanner) (store.Depth, error) {
		var d store.Depth
		var since int64
		err := r.Scan(&d.Stage, &d.State, &d.Topic, &d.Count, &since)
		d.Oldest = fromNanos(since)
		return d, err
	})
	if err != nil {
		return nil, err
	}
	s.depths.until = time.Time{}
	if end := s.clock.Now(); end.Sub(start) > depthsSlow {
		s.depths.last, s.depths.until = slices.Clone(ds), end.Add(20*end.Sub(start))
	}
	return ds, nil
}

// depthsSlow is how long a count may take before it is not made each time.
const depthsSlow = 50 * time.Millisecond
