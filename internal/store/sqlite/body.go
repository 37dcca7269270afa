package sqlite

import (
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

const (
	// inlineBody is the size up to which content lies in the database.
	inlineBody = 64 << 10
	// orphanAge is how old a file without a row must be to be removed.
	orphanAge = time.Hour
	// copyChunk is how much of a large body is in memory while it is staged.
	copyChunk = 256 << 10
	// sweepFiles bounds how many files one start of the program looks at.
	sweepFiles = 100_000

	dirMode  = 0o700
	fileMode = 0o600
)

// errBody: what is stored is not what was saved.
var errBody = errors.New("stored body is damaged")

// newPacker makes the two sides of zstd. Both are safe for concurrent use.
func newPacker() (*zstd.Encoder, *zstd.Decoder, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2),
		zstd.WithWindowSize(inlineBody), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, nil, fmt.Errorf("zstd: %w", err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(1<<20))
	if err != nil {
		return nil, nil, fmt.Errorf("zstd: %w", err)
	}
	return enc, dec, nil
}

// StageBody implements store.Store.
func (s *Store) StageBody(ctx context.Context, src edi.Source) (*store.Body, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("stage body: %w", err)
	}
	if src.Size() <= inlineBody {
		plain := make([]byte, src.Size())
		if n, err := src.ReadAt(plain, 0); n < len(plain) {
			return nil, fmt.Errorf("stage body: read %d of %d bytes: %w", n, len(plain), err)
		}
		b := &store.Body{Ref: sha256.Sum256(plain), Size: int64(len(plain)), Data: plain, Plain: plain}
		if packed := s.packer.EncodeAll(plain, make([]byte, 0, len(plain)/2+64)); len(packed) < len(plain)*9/10 {
			b.Data, b.Packed = packed, true
		}
		return b, nil
	}
	if err := s.checkSpace(); err != nil {
		return nil, err
	}
	return s.stageFile(ctx, src)
}

// stageFile writes content under a name of its own, makes it durable, and gives it the name of
// its hash.
func (s *Store) stageFile(ctx context.Context, src edi.Source) (_ *store.Body, err error) {
	f, err := os.CreateTemp(filepath.Join(s.dir, "bodies", "tmp"), "body-*") // made with mode 0600
	if err != nil {
		return nil, fmt.Errorf("stage body: %w: %w", store.ErrUnavailable, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()           // its content is given up
			_ = os.Remove(f.Name()) // and if that fails, the next Open removes it
		}
	}()
	h := sha256.New()
	w := &ctxWriter{ctx: ctx, w: io.MultiWriter(f, h)}
	n, err := io.CopyBuffer(w, io.NewSectionReader(src, 0, src.Size()), make([]byte, copyChunk))
	if err == nil && n != src.Size() {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, s.fileError(err)
	}
	if err = f.Sync(); err != nil {
		return nil, s.fileError(err)
	}
	if err = f.Close(); err != nil {
		return nil, s.fileError(err)
	}
	b := &store.Body{Size: n}
	h.Sum(b.Ref[:0])
	if err = s.place(f.Name(), b.Ref); err != nil {
		return nil, s.fileError(err)
	}
	return b, nil
}

// fileError marks what a full or broken disk says. What the source or the context say stays.
func (s *Store) fileError(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	if errors.As(err, &p) && strings.HasPrefix(p.Path, s.dir) || errors.As(err, &l) {
		return fmt.Errorf("stage body: %w: %w", store.ErrUnavailable, err)
	}
	return fmt.Errorf("stage body: %w", err)
}

// ctxWriter ends a copy with its context.
type ctxWriter struct {
	ctx context.Context //nolint:containedctx // It lives as long as one call.
	w   io.Writer
}

func (w *ctxWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}

// path of a body's file: two levels of folders keep each of them small.
func (s *Store) path(ref store.Ref) string {
	h := ref.String()
	return filepath.Join(s.dir, "bodies", h[:2], h[2:4], h)
}

// place moves a finished file to its name, durably. The file that is there already has the same
// content; it is made young again, so that nobody takes it for an orphan.
func (s *Store) place(temp string, ref store.Ref) error {
	path := s.path(ref)
	s.files.Lock()
	defer s.files.Unlock()
	now := s.clock.Now()
	if err := os.Chtimes(path, now, now); err == nil {
		return os.Remove(temp)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	for _, d := range []string{dir, filepath.Dir(dir), filepath.Join(s.dir, "bodies")} {
		if err := syncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		_ = d.Close() // the first error is the one to tell
		return err
	}
	return d.Close()
}

// memory is a body in memory.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// file is a body on disk.
type file struct {
	f    *os.File
	size int64
}

func (f *file) ReadAt(p []byte, off int64) (int, error) { return f.f.ReadAt(p, off) }
func (f *file) Size() int64                             { return f.size }
func (f *file) Close() error                            { return f.f.Close() }

// OpenBody implements store.Store. The hash is not checked again; the size is.
func (s *Store) OpenBody(ctx context.Context, ref store.Ref) (store.BodySource, error) {
	if plain, ok := s.cache.get(ref); ok {
		return memory{bytes.NewReader(plain)}, nil
	}
	type row struct {
		size, kind int64
		data       []byte
	}
	vs, err := point(ctx, s, "select size, kind, data from body where hash = ?", func(r scanner) (row, error) {
		var x row
		err := r.Scan(&x.size, &x.kind, &x.data)
		return x, err
	}, ref[:])
	x, err := only(vs, err, "body "+ref.String())
	if err != nil {
		return nil, err
	}
	plain := x.data
	switch x.kind {
	case bodyFile:
		return s.openFile(ref, x.size)
	case bodyPacked:
		if plain, err = s.unpacker.DecodeAll(x.data, make([]byte, 0, min(x.size, inlineBody))); err != nil {
			return nil, fmt.Errorf("body %s: %w: %w", ref, errBody, err)
		}
	}
	if int64(len(plain)) != x.size {
		return nil, fmt.Errorf("body %s: %w: it has %d bytes, not %d", ref, errBody, len(plain), x.size)
	}
	s.cache.put(ref, plain)
	return memory{bytes.NewReader(plain)}, nil
}

func (s *Store) openFile(ref store.Ref, size int64) (store.BodySource, error) {
	f, err := os.Open(s.path(ref))
	if err != nil {
		return nil, fmt.Errorf("body %s: %w: %w", ref, errBody, err)
	}
	st, err := f.Stat()
	if err != nil {
		_ = f.Close() // the first error is the one to tell
		return nil, fmt.Errorf("body %s: %w", ref, err)
	}
	if st.Size() != size {
		_ = f.Close() // the next error is the one to tell
		return nil, fmt.Errorf("body %s: %w: its file has %d bytes, not %d", ref, errBody, st.Size(), size)
	}
	return &file{f, size}, nil
}

// sweepBodies removes files that no row names and that are older than orphanAge: what a crash
// left between the file and the commit. It stops when the store closes.
func (s *Store) sweepBodies() {
	root := filepath.Join(s.dir, "bodies")
	seen, removed := 0, 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		select {
		case <-s.closing:
			return filepath.SkipAll
		default:
		}
		if err != nil {
			return err
		}
		if e.IsDir() {
			if path == filepath.Join(root, "tmp") {
				return filepath.SkipDir
			}
			return nil
		}
		if seen++; seen > sweepFiles {
			return filepath.SkipAll
		}
		gone, err := s.sweepBody(path, e)
		if gone {
			removed++
		}
		return err
	})
	if err != nil && !errors.Is(err, store.ErrUnavailable) {
		s.log.Warn("body_sweep_failed", zap.Error(err))
	}
	if removed > 0 {
		s.log.Info("bodies_without_row_removed", zap.Int("files", removed))
	}
}

func (s *Store) sweepBody(path string, e fs.DirEntry) (bool, error) {
	var ref store.Ref
	if ref.UnmarshalText([]byte(e.Name())) != nil || !s.old(path) {
		return false, nil
	}
	vs, err := point(context.Background(), s, "select 1 from body where hash = ?", func(r scanner) (int, error) {
		var one int
		err := r.Scan(&one)
		return one, err
	}, ref[:])
	if err != nil || len(vs) > 0 {
		return false, err
	}
	s.files.Lock()
	defer s.files.Unlock()
	if !s.old(path) { // staged again meanwhile
		return false, nil
	}
	return true, os.Remove(path)
}

func (s *Store) old(path string) bool {
	st, err := os.Stat(path)
	return err == nil && s.clock.Now().Sub(st.ModTime()) > orphanAge
}

// bodyCache keeps small bodies that were just written or read, up to a number of bytes.
type bodyCache struct {
	mu    sync.Mutex
	limit int64
	used  int64
	items map[store.Ref]*list.Element
	order *list.List // the newest in front
}

type cached struct {
	ref   store.Ref
	plain []byte
}

// overhead is what an entry costs beside its content.
const overhead = 200

func newBodyCache(limit int64) *bodyCache {
	return &bodyCache{limit: limit, items: map[store.Ref]*list.Element{}, order: list.New()}
}

func (c *bodyCache) get(ref store.Ref) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[ref]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).plain, true //nolint:forcetypeassert // Only *cached is stored.
}

func (c *bodyCache) put(ref store.Ref, plain []byte) {
	size := int64(len(plain)) + overhead
	if size > c.limit {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.items[ref]; ok {
		c.order.MoveToFront(e)
		return
	}
	c.items[ref] = c.order.PushFront(&cached{ref, plain})
	c.used += size
	for c.used > c.limit {
		e := c.order.Back()
		old := c.order.Remove(e).(*cached) //nolint:forcetypeassert // Only *cached is stored.
		delete(c.items, old.ref)
		c.used -= int64(len(old.plain)) + overhead
	}
}
