package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

const hopBatch = 16 // messages in one Update

// hop writes what a message costs on its way: two keys, the four objects, two work rows in and
// one out, two lanes, two events.
func hop(tx store.Tx, serial int64, now time.Time) error {
	var keys []store.NaturalKey
	var since []time.Time
	var work, gone []*store.Work
	var msgs []*store.Message
	var events []store.Event
	lanes, err := tx.Lanes([]store.LaneSpec{
		{Stage: store.Parser, Name: "conn:acme", Ordered: true, Policy: "block"},
		{Stage: store.Sender, Name: "acme>hub/to:erp", Ordered: true, Policy: "block"},
	})
	if err != nil {
		return err
	}
	for i := range int64(hopBatch) {
		n := serial + i
		id := edi.NewID(now)
		no := strconv.FormatInt(n, 10)
		var hash [32]byte
		binary.BigEndian.PutUint64(hash[:], uint64(n))
		hash = sha256.Sum256(hash[:])
		t := &store.Transmission{
			ID: id, Transport: "as2", Connection: "acme-as2", Own: "hub", From: "ACME AS2", To: "OURCO", MessageID: "<" + id.String() + "@acme.example>",
			Media: "application/edifact", State: store.StateAccepted, Signed: true, Content: hash, Wire: hash, WireSize: 10_240, Size: 9_000,
			Answer: make([]byte, 900), Source: "192.0.2.1:50000", At: now,
		}
		ic := &store.Interchange{
			ID: id.Derive("interchange", 1), Transmission: id, Position: 1, Connection: "acme-as2", Body: hash, From: "acme", To: "hub", Role: "endpoint",
			Envelope: edi.Interchange{
				Standard: edi.EDIFACT, Sender: edi.Party{Qualifier: "14", ID: "5412345000013"}, Receiver: edi.Party{Qualifier: "14", ID: "5412345000020"},
				ControlRef: no, Version: "UNOC:3", Length: 9_000, Segments: 80, Messages: 1, Header: make([]byte, 70), TrailerSeen: true,
			},
			State: store.StateSplit, Total: 1, Open: 1, Profile: 1, At: now,
		}
		m := &store.Message{
			ID: ic.ID.Derive("message", 1), Interchange: ic.ID, Standard: edi.EDIFACT, From: "acme", To: "hub", State: store.StateRouted,
			Envelope: edi.Message{
				Position: 1, Type: "INVOIC", Version: "D:96A:UN", Ref: "1", Segments: 78, Offset: 70, Length: 8_900,
				Document: edi.Document{Number: "INV" + no, Function: "9", OrderNo: "PO" + no},
			},
			Profile: 1, At: now, ControlRef: no,
		}
		d := &store.Delivery{
			ID: m.ID.Derive("delivery", 1), Connection: "erp-files", Partner: "erp", Own: "hub", State: store.StateReady, Envelope: "new", Standard: edi.EDIFACT,
			Type: "INVOIC", Sender: "5412345000020", Receiver: "5412345000013", ControlRef: no, From: "acme", To: "hub",
			Pieces: []store.Piece{{Literal: make([]byte, 70)}, {Body: hash, Offset: 70, Length: 8_900}, {Literal: make([]byte, 20)}}, Size: 8_990,
			Messages: []edi.ID{m.ID}, Profile: 1, At: now,
		}
		m.Delivery = d.ID
		key2 := hash
		key2[0] ^= 0xff
		keys = append(keys, store.NaturalKey{Scope: store.ScopeAS2, Hash: hash, Content: hash, Object: id, At: now},
			store.NaturalKey{Scope: store.ScopeDocument, Hash: key2, Content: hash, Object: m.ID, At: now})
		since = append(since, time.Time{}, time.Time{})
		msgs = append(msgs, m)
		in := &store.Work{WorkKey: store.WorkKey{Stage: store.Parser, ID: id}, Kind: store.KindTransmission, Lane: lanes[0].ID, Seq: lanes[0].Tail, State: store.Ready, Since: now, Handed: 1}
		out := &store.Work{WorkKey: store.WorkKey{Stage: store.Sender, ID: d.ID}, Kind: store.KindDelivery, Lane: lanes[1].ID, Seq: lanes[1].Tail, State: store.Ready, Topic: "erp-files", Since: now, Handed: 1}
		lanes[0].Tail++
		lanes[0].Next++
		lanes[1].Tail++
		work = append(work, in, out)
		gone = append(gone, in)
		events = append(events, store.Event{Object: m.ID, At: now, Name: "parsed"}, store.Event{Object: m.ID, At: now, Name: "routed", Detail: "erp-files"})
		if err := tx.InsertTransmission(t); err != nil {
			return err
		}
		if err := tx.InsertInterchange(ic); err != nil {
			return err
		}
		if err := tx.InsertDelivery(d); err != nil {
			return err
		}
	}
	if _, err := tx.Claim(keys, since); err != nil {
		return err
	}
	if err := tx.InsertMessages(msgs); err != nil {
		return err
	}
	if _, err := tx.InsertWork(work); err != nil {
		return err
	}
	if err := tx.DeleteWork(gone); err != nil {
		return err
	}
	if err := tx.AddEvents(events); err != nil {
		return err
	}
	return tx.SaveLanes(lanes)
}

// BenchmarkHop says how many messages a second the store takes.
func BenchmarkHop(b *testing.B) {
	for _, callers := range []int{1, 4} {
		b.Run("callers="+strconv.Itoa(callers), func(b *testing.B) {
			s := openBench(b)
			var serial atomic.Int64
			before := s.statements.Load()
			start := time.Now()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for {
						n := serial.Add(hopBatch) - hopBatch
						if n >= int64(b.N) {
							return
						}
						if err := s.Update(context.Background(), func(tx store.Tx) error { return hop(tx, n, time.Now()) }); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			done := float64((b.N + hopBatch - 1) / hopBatch * hopBatch)
			b.ReportMetric(done/time.Since(start).Seconds(), "messages/s")
			b.ReportMetric(float64(s.statements.Load()-before)/done, "statements/message")
		})
	}
}

// BenchmarkHopRef is the yardstick of the same machine at the same durability: bare inserts of
// one row of 512 bytes, 16 in a commit.
func BenchmarkHopRef(b *testing.B) {
	s := openBench(b)
	if _, err := s.lists.Exec("pragma query_only(0)"); err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	c, err := s.lists.Conn(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for _, text := range []string{"pragma query_only(0)", "create table ref (id integer primary key, data blob)"} {
		if _, err := c.ExecContext(ctx, text); err != nil {
			b.Fatal(err)
		}
	}
	st, err := c.PrepareContext(ctx, "insert into ref (data) values (?)")
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	row := make([]byte, 512)
	b.ResetTimer()
	for n := 0; n < b.N; n += hopBatch {
		t, err := c.BeginTx(ctx, nil)
		if err != nil {
			b.Fatal(err)
		}
		for range hopBatch {
			if _, err := t.StmtContext(ctx, st).ExecContext(ctx, row); err != nil {
				b.Fatal(err)
			}
		}
		if err := t.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func openBench(b *testing.B) *Store {
	b.Helper()
	s, err := Open(context.Background(), Options{Dir: b.TempDir(), MinFree: -1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// fill100k makes 100,000 rows in 100 lanes: of each ten, seven are ready and handed over, two parked
// and one waits for a retry; 64 are leased.
func fill100k(b *testing.B, s *Store) {
	b.Helper()
	for n := 0; n < 100_000; n += 1000 {
		rows := make([]*store.Work, 1000)
		for i := range rows {
			k := n + i
			rows[i] = &store.Work{
				WorkKey: store.WorkKey{Stage: store.Stages()[k%4], ID: edi.NewID(t0.Add(time.Duration(k) * time.Millisecond))}, Lane: int64(k%100 + 1), Seq: int64(k),
				State: state(k / 4), Due: t0, Lease: t0.Add(24 * time.Hour), Since: t0, Handed: s.Boot(), Topic: "partner-" + strconv.Itoa(k%20),
			}
		}
		if err := s.Update(context.Background(), func(tx store.Tx) error { _, err := tx.InsertWork(rows); return err }); err != nil {
			b.Fatal(err)
		}
	}
}

func state(k int) store.WorkState {
	switch {
	case k < 64:
		return store.Leased
	case k%10 < 7:
		return store.Ready
	case k%10 < 9:
		return store.Parked
	}
	return store.Retry
}

// BenchmarkOpen is the start over 100,000 work rows after a crash: the copy's process is gone, so
// its leases and handed rows are taken over.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s, err := Open(context.Background(), Options{Dir: dir, MinFree: -1})
	if err != nil {
		b.Fatal(err)
	}
	fill100k(b, s)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		b.StopTimer()
		to := b.TempDir()
		data, err := os.ReadFile(filepath.Join(dir, fileName))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, fileName), data, fileMode)
		}
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		s, err := Open(context.Background(), Options{Dir: to, MinFree: -1})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkReads are the sweeper's and the console's looks at 100,000 rows, and a point read.
func BenchmarkReads(b *testing.B) {
	s := openBench(b)
	fill100k(b, s)
	ctx := context.Background()
	if err := s.Update(ctx, func(tx store.Tx) error { return hop(tx, 1, time.Now()) }); err != nil {
		b.Fatal(err)
	}
	ms, err := s.ListMessages(ctx, store.Filter{Limit: 1})
	if err != nil || len(ms) != 1 {
		b.Fatal(ms, err)
	}
	for name, read := range map[string]func() error{
		"Depths":   func() error { s.depths.until = time.Time{}; _, err := s.Depths(ctx); return err },
		"Turns":    func() error { _, err := s.Turns(ctx, 64); return err },
		"Due":      func() error { _, err := s.Due(ctx, t0.Add(-time.Hour), 64); return err },
		"KeysFree": func() error { _, err := s.KeysFree(ctx, 64); return err },
		"Unhanded": func() error { _, err := s.Unhanded(ctx, 0, 0, 64); return err },
		"Message":  func() error { _, err := s.GetMessage(ctx, ms[0].ID); return err },
		"Document": func() error { _, err := s.ListMessages(ctx, store.Filter{DocumentNo: "INV5"}); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
