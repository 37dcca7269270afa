// Package sqlite keeps the hub's durable state in one SQLite file and a folder of large bodies,
// for a hub that is one process. Its one job is to implement store.Store: one goroutine writes,
// and the requests that queue up while it commits share the next commit.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/store"
)

// Defaults of Options, and sizes.
const (
	DefaultCacheBytes = 64 << 20
	DefaultMinFree    = 1 << 30

	fileName    = "edihub.db"
	pageSize    = 4096     // larger pages were measured slower: a commit writes whole pages
	writerPages = 24 << 10 // KiB of page cache of the writer
	readerPages = 4 << 10  // KiB of page cache of each reader
	pointConns  = 2        // for short reads
	listConns   = 2        // for lists and counts
	queueLength = 256
	busyTimeout = 5 * time.Second
)

// Options of Open. The zero value of each but Dir means the default.
type Options struct {
	// Dir is the data folder; it is made with mode 0700, and an existing one is tightened.
	Dir string
	// Clock tells the time; by default that of the machine.
	Clock clock.Clock
	// Log takes what an operator should know of the store's own work; by default nothing.
	Log *zap.Logger
	// CacheBytes bounds the memory for small bodies that were just written or read (64 MiB). A
	// negative value keeps none.
	CacheBytes int64
	// MinFree is the free space in bytes below which the store takes no writes (1 GiB). A negative
	// value asks for none.
	MinFree int64
	// FreeSpace returns the free bytes at a path; by default it asks the system.
	FreeSpace func(dir string) (uint64, error)
}

// Store is the embedded store.
type Store struct {
	dir      string
	clock    clock.Clock
	log      *zap.Logger
	minFree  int64
	space    func(dir string) (uint64, error)
	boot     int64
	lock     *os.File
	points   *sql.DB
	lists    *sql.DB
	write    *sql.DB
	stmts    sync.Map // text to *sql.Stmt of points
	cache    *bodyCache
	keys     *keyCache
	packer   *zstd.Encoder
	unpacker *zstd.Decoder
	files    sync.Mutex // the names of body files

	queue      chan *request
	closing    chan struct{}
	dead       chan struct{} // closed when the writer has ended
	background sync.WaitGroup
	closeOnce  sync.Once
	closeErr   error

	depths struct {
		sync.Mutex
		last  []store.Depth
		until time.Time
	}

	commits    atomic.Int64
	statements atomic.Int64
	logSize    chan int64 // bytes of the write-ahead log, when it is time for a checkpoint
}

var _ store.Store = (*Store)(nil)

// Open opens the store in a folder, makes it when there is none, and brings its schema up to
// date. It returns store.ErrInUse when another process has it, and a *VersionError when the
// database was written by a newer program.
func Open(ctx context.Context, o Options) (_ *Store, err error) {
	s := newStore(o)
	defer func() {
		if err != nil {
			_ = s.release() // the first error is the one to tell
		}
	}()
	if err := s.folders(); err != nil {
		return nil, err
	}
	if s.lock, err = lockFolder(s.dir); err != nil {
		return nil, err
	}
	if err := emptyFolder(filepath.Join(s.dir, "bodies", "tmp")); err != nil {
		return nil, fmt.Errorf("remove unfinished bodies: %w", err)
	}
	if err := migrate(ctx, s.dir, latest); err != nil {
		return nil, err
	}
	if s.packer, s.unpacker, err = newPacker(); err != nil {
		return nil, err
	}
	if s.write, err = openDB(s.dir, 1, writerPages, false); err != nil {
		return nil, err
	}
	w, err := s.recover(ctx)
	if err != nil {
		return nil, err
	}
	if s.points, err = openDB(s.dir, pointConns, readerPages, true); err != nil {
		return nil, err
	}
	if s.lists, err = openDB(s.dir, listConns, readerPages, true); err != nil {
		return nil, err
	}
	if err := s.startWriter(ctx, w); err != nil {
		return nil, err
	}
	if err := s.takeOver(ctx); err != nil {
		_ = s.Close() // the first error is the one to tell
		return nil, err
	}
	s.background.Go(s.sweepBodies)
	s.background.Go(s.checkpoints)
	return s, nil
}

func newStore(o Options) *Store {
	s := &Store{
		dir: o.Dir, clock: o.Clock, log: o.Log, minFree: o.MinFree, space: o.FreeSpace,
		queue: make(chan *request, queueLength), closing: make(chan struct{}), dead: make(chan struct{}), logSize: make(chan int64, 1),
	}
	if s.clock == nil {
		s.clock = clock.System{}
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	if s.minFree == 0 {
		s.minFree = DefaultMinFree
	}
	if s.space == nil {
		s.space = freeSpace
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	s.cache, s.keys = newBodyCache(o.CacheBytes), newKeyCache()
	if abs, err := filepath.Abs(s.dir); err == nil {
		s.dir = abs
	}
	return s
}

// folders makes the data folder, or tightens the one that is there: what lies in it is the
// business of its partners.
func (s *Store) folders() error {
	for _, d := range []string{s.dir, filepath.Join(s.dir, "bodies"), filepath.Join(s.dir, "bodies", "tmp")} {
		if err := os.MkdirAll(d, dirMode); err != nil {
			return fmt.Errorf("data folder: %w", err)
		}
	}
	st, err := os.Stat(s.dir)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		s.log.Warn("data_folder_tightened", zap.String("dir", s.dir), zap.String("was", st.Mode().Perm().String()))
		if err := os.Chmod(s.dir, dirMode); err != nil {
			return fmt.Errorf("data folder: %w", err)
		}
	}
	return nil
}

func emptyFolder(dir string) error {
	es, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range es {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// lockFolder takes the folder for this process. The lock goes with the process, however it ends.
func lockFolder(dir string) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		b := make([]byte, 20)
		n, _ := f.ReadAt(b, 0) // it only names the holder
		_ = f.Close()          // the next error is the one to tell
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: process %s holds %s", store.ErrInUse, string(b[:n]), path)
		}
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	if err := f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
		if err != nil {
			_ = f.Close() // the next error is the one to tell
			return nil, fmt.Errorf("lock data folder: %w", err)
		}
	}
	return f, nil
}

// openDB opens a pool. Foreign keys are off: rows are written with their parents in one
// transaction, and children may come first.
func openDB(dir string, conns, cacheKiB int, readOnly bool) (*sql.DB, error) {
	q := url.Values{}
	for _, p := range []string{
		"page_size(" + strconv.Itoa(pageSize) + ")",
		"synchronous(full)",
		"busy_timeout(" + strconv.FormatInt(busyTimeout.Milliseconds(), 10) + ")",
		"foreign_keys(0)",
		"temp_store(memory)",
		"cache_size(-" + strconv.Itoa(cacheKiB) + ")",
		"wal_autocheckpoint(0)", // see checkpoints
		"journal_size_limit(" + strconv.Itoa(keptLog) + ")",
	} {
		q.Add("_pragma", p)
	}
	if readOnly {
		q.Add("_pragma", "query_only(1)")
	}
	// The driver runs the list above in the order of the alphabet and this behind it: the size of a
	// page is fixed once the journal mode has been set.
	q.Set("_journal_mode", "WAL")
	q.Set("_error_rc", "1")
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.Join(dir, fileName)}).EscapedPath(), RawQuery: q.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// recover counts this start and takes over what the process before left behind.
func (s *Store) recover(ctx context.Context) (*writer, error) {
	w := &writer{s: s, keys: s.keys}
	w.tables.transmission = newPending(transmissionTable)
	w.tables.interchange = newPending(interchangeTable)
	w.tables.message = newPending(messageTable)
	w.tables.delivery = newPending(deliveryTable)
	w.pending = []*pending{w.tables.transmission, w.tables.interchange, w.tables.message, w.tables.delivery}
	w.lanes = laneCache{byID: map[int64]store.Lane{}, byName: map[laneName]int64{}, dirty: map[int64]struct{}{}, limit: cachedLanes}
	w.numbers = numberCache{next: map[string]int64{}, dirty: map[string]struct{}{}}

	t, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", classify(err))
	}
	defer func() { _ = t.Rollback() }() // after the commit it has nothing to do
	err = t.QueryRowContext(ctx, "insert into setting (name, value) values ('boot', 1)"+
		" on conflict (name) do update set value = value + 1 returning value").Scan(&s.boot)
	if err != nil {
		return nil, fmt.Errorf("count start: %w", classify(err))
	}
	if err := t.QueryRowContext(ctx, "select coalesce(max(id), 0) + 1 from lane").Scan(&w.lanes.next); err != nil {
		return nil, fmt.Errorf("count lanes: %w", classify(err))
	}
	if err := s.keys.load(ctx, t); err != nil {
		return nil, err
	}
	// The leases of this folder were held by a process that is dead, else its lock would be there:
	// they have run out.
	if _, err := t.ExecContext(ctx, "update work set wake = 0 where wake is not null and state = 4"); err != nil {
		return nil, fmt.Errorf("take over leases: %w", classify(err))
	}
	if err := t.Commit(); err != nil {
		return nil, fmt.Errorf("open database: %w", classify(err))
	}
	w.nonce = s.boot<<40 + 1 // rises over all starts
	return w, nil
}

// startWriter runs the writer inside of Raw, where the driver's own connection may be used.
func (s *Store) startWriter(ctx context.Context, w *writer) error {
	c, err := s.write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("open database: %w", classify(err))
	}
	go func() {
		defer close(s.dead)
		err := c.Raw(func(dc any) error {
			w.w = &wconn{dc: dc.(driver.ConnPrepareContext), stmts: map[string]driver.Stmt{}, multi: map[multiKey]driver.Stmt{}} //nolint:forcetypeassert // The driver has it.
			defer w.w.close()
			w.loop()
			return nil
		})
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			s.log.Error("store_writer_ended", zap.Error(err))
		}
	}()
	return nil
}

// checkSpace refuses writes while the disk is nearly full: a database that fills the disk takes
// everything else on it down.
func (s *Store) checkSpace() error {
	if s.minFree < 0 {
		return nil
	}
	free, err := s.space(s.dir)
	if err != nil {
		return fmt.Errorf("%w: free space: %w", store.ErrUnavailable, err)
	}
	if free < uint64(s.minFree) {
		return fmt.Errorf("%w: %d bytes free at %s, %d wanted; make room or lower the limit", store.ErrUnavailable, free, s.dir, s.minFree)
	}
	return nil
}

func freeSpace(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	if st.Bsize <= 0 || st.Bavail > math.MaxUint64/uint64(st.Bsize) {
		return math.MaxUint64, nil
	}
	return st.Bavail * uint64(st.Bsize), nil
}

// Boot implements store.Store.
func (s *Store) Boot() int64 { return s.boot }

// Ping implements store.Store: it commits a write.
func (s *Store) Ping(ctx context.Context) error {
	err := s.Update(ctx, func(t store.Tx) error {
		return t.SaveSetting("ping", strconv.AppendInt(nil, s.clock.Now().UnixNano(), 10))
	})
	if err != nil {
		return fmt.Errorf("ping store: %w", err)
	}
	return nil
}

// Close implements store.Store. Updates that wait are run, later ones get ErrUnavailable. Open
// bodies stay readable.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		<-s.dead
		s.background.Wait()
		s.closeErr = s.release()
	})
	return s.closeErr
}

// release gives back what Open took, in reverse order.
func (s *Store) release() error {
	var errs []error
	for _, db := range []*sql.DB{s.lists, s.points, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.packer != nil {
		errs = append(errs, s.packer.Close())
		s.unpacker.Close()
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}
