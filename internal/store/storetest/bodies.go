package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

// contents of every kind: empty, small, small that does not shrink, around a size where drivers
// change their ways, large.
func contents() map[string][]byte {
	noise := make([]byte, 300<<10)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(noise) // it never fails
	text := bytes.Repeat([]byte("UNH+1+INVOIC:D:96A:UN'"), 20_000)
	return map[string][]byte{
		"empty": {}, "one byte": {7}, "text": text[:10_000], "noise": noise[:10_000],
		"64 KiB": text[:64<<10], "64 KiB and one": text[:64<<10+1], "large text": text, "large noise": noise,
	}
}

// stage makes a body and saves it.
func stage(t *testing.T, st store.Store, content []byte) *store.Body {
	t.Helper()
	b := get[*store.Body](t)(st.StageBody(ctxOf(t), bytes.NewReader(content)))
	update(t, st, func(tx store.Tx) error { return tx.SaveBody(b) })
	return b
}

// read reads a body in full and in a part.
func read(t *testing.T, st store.Store, ref store.Ref, want []byte) {
	t.Helper()
	src := get[store.BodySource](t)(st.OpenBody(ctxOf(t), ref))
	if src.Size() != int64(len(want)) {
		t.Errorf("size is %d, want %d", src.Size(), len(want))
	}
	got := get[[]byte](t)(io.ReadAll(io.NewSectionReader(src, 0, src.Size())))
	if !bytes.Equal(got, want) {
		t.Errorf("content differs: %d bytes, want %d", len(got), len(want))
	}
	if len(want) > 10 {
		part := make([]byte, 5)
		if _, err := src.ReadAt(part, int64(len(want))-5); (err != nil && !errors.Is(err, io.EOF)) || !bytes.Equal(part, want[len(want)-5:]) {
			t.Errorf("part %x, %v", part, err)
		}
	}
	if err := src.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// brokenSource ends before its size.
type brokenSource struct{ size int64 }

func (b brokenSource) Size() int64 { return b.size }
func (b brokenSource) ReadAt(p []byte, off int64) (int, error) {
	if end := b.size / 2; off+int64(len(p)) > end {
		return int(max(0, end-off)), io.ErrUnexpectedEOF
	}
	return len(p), nil
}

var bodyTests = map[string]func(*testing.T, *Env){
	"every content comes back, also in the next process": func(t *testing.T, e *Env) {
		refs := map[string]store.Ref{}
		for name, c := range contents() {
			b := stage(t, e.Store, c)
			equal(t, name+": ref", b.Ref, sha256.Sum256(c))
			equal(t, name+": size", b.Size, int64(len(c)))
			read(t, e.Store, b.Ref, c)
			refs[name] = b.Ref
		}
		st := e.Restart(t)
		for name, c := range contents() {
			read(t, st, refs[name], c)
			read(t, st, refs[name], c) // and from a cache
		}
	},
	"what shrinks is stored small": func(t *testing.T, e *Env) {
		b := get[*store.Body](t)(e.Store.StageBody(ctxOf(t), bytes.NewReader(contents()["text"])))
		if !b.Packed || len(b.Data) > 1000 {
			t.Errorf("10,000 bytes of repeated text take %d bytes, packed %v", len(b.Data), b.Packed)
		}
		b = get[*store.Body](t)(e.Store.StageBody(ctxOf(t), bytes.NewReader(contents()["noise"])))
		if b.Packed {
			t.Error("noise is packed")
		}
	},
	"a body that was not saved is not there": func(t *testing.T, e *Env) {
		for name, c := range contents() {
			b := get[*store.Body](t)(e.Store.StageBody(ctxOf(t), bytes.NewReader(c)))
			_, err := e.Store.OpenBody(ctxOf(t), b.Ref)
			isErr(t, name, err, store.ErrNotFound)
			err = e.Store.Update(ctxOf(t), func(tx store.Tx) error { return errors.Join(tx.SaveBody(b), errWanted) })
			isErr(t, name, err, errWanted)
			_, err = e.Store.OpenBody(ctxOf(t), b.Ref)
			isErr(t, name, err, store.ErrNotFound)
		}
	},
	"the same content twice is one body": func(t *testing.T, e *Env) {
		for _, c := range contents() {
			a, b := stage(t, e.Store, c), stage(t, e.Store, c)
			equal(t, "ref", a.Ref, b.Ref)
			read(t, e.Store, a.Ref, c)
		}
	},
	"a source that breaks off is an error of its own": func(t *testing.T, e *Env) {
		for _, size := range []int64{1000, 1 << 20} {
			_, err := e.Store.StageBody(ctxOf(t), brokenSource{size})
			isErr(t, "stage", err, io.ErrUnexpectedEOF)
			if errors.Is(err, store.ErrUnavailable) {
				t.Errorf("the store is blamed: %v", err)
			}
		}
	},
	"staging ends with its context": func(t *testing.T, e *Env) {
		for _, size := range []int64{10, 1 << 20} {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, err := e.Store.StageBody(ctx, bytes.NewReader(make([]byte, size)))
			isErr(t, "stage", err, context.Canceled)
		}
	},
}

var restartTests = map[string]func(*testing.T, *Env){
	"the number of the start rises": func(t *testing.T, e *Env) {
		first := e.Store.Boot()
		if second := e.Restart(t).Boot(); first < 1 || second <= first {
			t.Errorf("starts %d, %d", first, second)
		}
	},
	"after a crash all that was committed is there": func(t *testing.T, e *Env) {
		update(t, e.Store, func(tx store.Tx) error { return everything(tx, 1) })
		isErr(t, "update", e.Store.Update(ctxOf(t), func(tx store.Tx) error { return errors.Join(everything(tx, 2), errWanted) }), errWanted)
		large := contents()["large text"]
		b := stage(t, e.Store, large)
		boot := e.Store.Boot()
		st := e.Crash(t)
		if st.Boot() <= boot {
			t.Errorf("start %d after start %d", st.Boot(), boot)
		}
		equal(t, "committed", present(t, st, 1), allParts)
		equal(t, "not committed", present(t, st, 2), nil)
		read(t, st, b.Ref, large)
		update(t, st, func(tx store.Tx) error {
			n, err := tx.Number("seq 1", 1, 99, 1)
			equal(t, "next number", n, 6)
			return err
		})
	},
	"leases of a dead process have run out": func(t *testing.T, e *Env) {
		w := row(1, 1, store.Leased)
		w.Owner, w.Lease = "old", t0.Add(24*time.Hour)
		insert(t, e.Store, w)
		equal(t, "before", len(get[[]*store.Work](t)(e.Store.Due(ctxOf(t), t0, 10))), 0)
		st := e.Crash(t)
		rows := get[[]*store.Work](t)(st.Due(ctxOf(t), t0, 10))
		equal(t, "after", rows, []*store.Work{w})
		// A lease of this process counts again.
		update(t, st, func(tx store.Tx) error {
			rows, err := tx.Work([]store.WorkKey{w.WorkKey})
			rows[0].Owner = "new"
			return errors.Join(err, tx.SaveWork(rows))
		})
		equal(t, "leased anew", len(get[[]*store.Work](t)(st.Due(ctxOf(t), t0, 10))), 0)
	},
	"rows that a dead process handed over are unhanded": func(t *testing.T, e *Env) {
		a, b, c := row(1, 1, store.Ready), row(1, 2, store.Ready), row(1, 3, store.Parked)
		a.Handed, c.Handed = e.Store.Boot(), e.Store.Boot()
		insert(t, e.Store, a, b, c)
		equal(t, "before", seqs(get[[]*store.Work](t)(e.Store.Unhanded(ctxOf(t), 0, 0, 10))), []int64{2})
		st := e.Crash(t)
		rows := get[[]*store.Work](t)(st.Unhanded(ctxOf(t), 0, 0, 10))
		equal(t, "after", seqs(rows), []int64{1, 2})
		equal(t, "handed", rows[0].Handed, int64(0))
		update(t, st, func(tx store.Tx) error {
			rows, err := tx.Work([]store.WorkKey{a.WorkKey})
			equal(t, "locked", rows[0].Handed, int64(0))
			return err
		})
	},
	"new lanes and ids do not meet old ones": func(t *testing.T, e *Env) {
		a := lane(t, e.Store, "a", true)
		st := e.Crash(t)
		b := lane(t, st, "b", true)
		if a.ID == b.ID {
			t.Errorf("lanes a and b are both %d", a.ID)
		}
		equal(t, "a", *lane(t, st, "a", true), *a)
	},
}

var _ edi.Source = brokenSource{}
