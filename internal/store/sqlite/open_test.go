package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/store"
)

var ctx = context.Background()

func set(name, value string) func(store.Tx) error {
	return func(tx store.Tx) error { return tx.SaveSetting(name, []byte(value)) }
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Mode().Perm()
}

func TestASecondHubIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	_, err := Open(ctx, Options{Dir: dir, MinFree: -1})
	if !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) {
		t.Errorf("error is %v", err)
	}
	if err := Migrate(ctx, dir, SchemaVersion); !errors.Is(err, store.ErrInUse) {
		t.Errorf("migrate: error is %v", err)
	}
	if err := s.Update(ctx, set("a", "b")); err != nil {
		t.Errorf("the first hub was disturbed: %v", err)
	}
}

func TestFolderAndFilesArePrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{Dir: dir})
	b, err := s.StageBody(ctx, bytes.NewReader(make([]byte, inlineBody+1)))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{
		dir: 0o700, filepath.Join(dir, "bodies"): 0o700, filepath.Dir(s.path(b.Ref)): 0o700, s.path(b.Ref): 0o600,
		filepath.Join(dir, "lock"): 0o600, filepath.Join(dir, fileName): 0o600, filepath.Join(dir, fileName+"-wal"): 0o600,
	} {
		if got := mode(t, path); got != want {
			t.Errorf("%s has mode %v, want %v", path, got, want)
		}
	}
}

func TestSettingsOfTheConnections(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Dir: t.TempDir()})
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "page_size": strconv.Itoa(pageSize), "query_only": "1", "foreign_keys": "0"} {
		var got string
		if err := s.points.QueryRow("pragma " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, want %q (%v)", pragma, got, want, err)
		}
	}
	err := s.submit(ctx, &request{job: func(w *wconn) error {
		return w.query("pragma synchronous", func(row []driver.Value) error {
			if integer(row[0]) != 2 {
				t.Errorf("the writer has synchronous %v", row[0])
			}
			return nil
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMigrateUpAndDown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if v, err := Version(ctx, dir); v != 0 || err != nil {
		t.Fatalf("version %d, %v", v, err)
	}
	for _, target := range []int64{SchemaVersion, 0, SchemaVersion} {
		if err := Migrate(ctx, dir, target); err != nil {
			t.Fatalf("to %d: %v", target, err)
		}
		if v, err := Version(ctx, dir); v != target || err != nil {
			t.Fatalf("version %d, %v, want %d", v, err, target)
		}
	}
	for _, target := range []int64{-1, SchemaVersion + 1} {
		if err := Migrate(ctx, dir, target); !errors.Is(err, errTarget) {
			t.Errorf("to %d: %v", target, err)
		}
	}
	s := open(t, Options{Dir: dir})
	if err := s.Ping(ctx); err != nil {
		t.Error(err)
	}
}

func TestANewerDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := open(t, Options{Dir: dir}).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("insert into goose_db_version (version_id, is_applied) values (?, 1)", SchemaVersion+1); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(ctx, Options{Dir: dir, MinFree: -1})
	var v *VersionError
	if !errors.As(err, &v) || v.Database != SchemaVersion+1 || v.Program != SchemaVersion || !strings.Contains(err.Error(), "newer") {
		t.Errorf("error is %v", err)
	}
	// The refusal gave the lock back.
	if err := Migrate(ctx, dir, SchemaVersion); !errors.As(err, &v) {
		t.Errorf("error is %v", err)
	}
}

func TestWritesStopBeforeTheDiskIsFull(t *testing.T) {
	t.Parallel()
	var free atomic.Uint64
	free.Store(2000)
	s := open(t, Options{Dir: t.TempDir(), MinFree: 1000, FreeSpace: func(string) (uint64, error) { return free.Load(), nil }})
	if err := s.Update(ctx, set("a", "1")); err != nil {
		t.Fatal(err)
	}
	free.Store(999)
	ran := false
	err := s.Update(ctx, func(store.Tx) error { ran = true; return nil })
	if !errors.Is(err, store.ErrUnavailable) || ran {
		t.Errorf("error is %v, ran %v", err, ran)
	}
	if err := s.Ping(ctx); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("ping: %v", err)
	}
	if _, err := s.StageBody(ctx, bytes.NewReader(make([]byte, inlineBody+1))); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("stage: %v", err)
	}
	if v, err := s.GetSetting(ctx, "a"); err != nil || string(v) != "1" {
		t.Errorf("reads go on: %q, %v", v, err)
	}
	free.Store(1000)
	if err := s.Ping(ctx); err != nil {
		t.Errorf("with space again: %v", err)
	}
}

func TestFreeSpaceOfTheSystem(t *testing.T) {
	t.Parallel()
	if n, err := freeSpace(t.TempDir()); err != nil || n == 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := freeSpace(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that is not there has space")
	}
}

// limitPages lets the database grow by n pages and no more.
func limitPages(t *testing.T, s *Store, n int64) {
	t.Helper()
	err := s.submit(ctx, &request{job: func(w *wconn) error {
		var have int64
		if err := w.query("pragma page_count", func(row []driver.Value) error { have = integer(row[0]); return nil }); err != nil {
			return err
		}
		return w.control("pragma max_page_count = " + strconv.FormatInt(have+n, 10))
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b) // it never fails
	return b
}

func TestAFullDatabaseFailsTheWholeGroupAndRecovers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fill func(tx store.Tx) error
	}{
		"in fn": {func(tx store.Tx) error { return tx.SaveSetting("big", noise(1<<20)) }},
		"in commit": {func(tx store.Tx) error {
			return tx.SaveBody(&store.Body{Ref: store.Ref{1}, Size: 1 << 20, Data: noise(1 << 20)})
		}},
		"swallowed": {func(tx store.Tx) error { _ = tx.SaveSetting("big", noise(1<<20)); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{Dir: t.TempDir()})
			spec := []store.LaneSpec{{Stage: store.Parser, Name: "a", Ordered: true}}
			step := func(tx store.Tx) error {
				ls, err := tx.Lanes(spec)
				if err != nil {
					return err
				}
				ls[0].Tail++
				_, err = tx.Number("n", 1, 99, 1)
				return errors.Join(err, tx.SaveLanes(ls))
			}
			if err := s.Update(ctx, step); err != nil {
				t.Fatal(err)
			}
			limitPages(t, s, 20)
			errs := make([]error, 2)
			hold, begun := make(chan struct{}), make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				errs[0] = s.Update(ctx, func(tx store.Tx) error { close(begun); <-hold; return step(tx) })
			})
			<-begun
			wg.Go(func() { errs[1] = s.Update(ctx, c.fill) })
			for len(s.queue) == 0 {
				runtime.Gosched()
			}
			close(hold)
			wg.Wait()
			// They share a commit unless the group's time was up in between.
			if !errors.Is(errs[1], store.ErrUnavailable) {
				t.Errorf("the one that fills it: %v", errs[1])
			}
			taken := int64(2)
			if errs[0] != nil {
				taken = 1
				if !errors.Is(errs[0], store.ErrUnavailable) {
					t.Errorf("its neighbour: %v", errs[0])
				}
			}
			if _, err := s.GetSetting(ctx, "big"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a part is there: %v", err)
			}
			limitPages(t, s, 1_000_000)
			err := s.Update(ctx, func(tx store.Tx) error {
				ls, err := tx.Lanes(spec)
				if err != nil {
					return err
				}
				if ls[0].Tail != 1+taken {
					t.Errorf("tail is %d, want %d", ls[0].Tail, 1+taken)
				}
				if n, err := tx.Number("n", 1, 99, 1); n != 1+taken || err != nil {
					t.Errorf("number is %d (%v), want %d", n, err, 1+taken)
				}
				return c.fill(tx)
			})
			if err != nil {
				t.Errorf("with space again: %v", err)
			}
		})
	}
}

func TestWaitingUpdatesShareACommit(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Dir: t.TempDir(), Clock: clock.NewFake(t0)}) // a clock that stands still never ends a group
	hold, begun := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Update(ctx, func(store.Tx) error { close(begun); <-hold; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-begun
	before := s.commits.Load()
	const more = groupRequests + 36
	for i := range more {
		wg.Go(func() {
			if err := s.Update(ctx, set("s"+strconv.Itoa(i), "v")); err != nil {
				t.Error(err)
			}
		})
	}
	for len(s.queue) < more {
		runtime.Gosched()
	}
	close(hold)
	wg.Wait()
	if n := s.commits.Load() - before; n != 2 { // a full group and the rest
		t.Errorf("%d updates took %d commits", more+1, n)
	}
}

func TestCloseRunsWhatWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	var wg sync.WaitGroup
	var mu sync.Mutex
	var good []string
	started := make(chan struct{}, 1000)
	for i := range 200 {
		wg.Go(func() {
			started <- struct{}{}
			name := "s" + strconv.Itoa(i)
			switch err := s.Update(ctx, set(name, "v")); {
			case err == nil:
				mu.Lock()
				good = append(good, name)
				mu.Unlock()
			case !errors.Is(err, store.ErrUnavailable):
				t.Error(err)
			}
		})
	}
	<-started
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	s = open(t, Options{Dir: dir})
	for _, name := range good {
		if _, err := s.GetSetting(ctx, name); err != nil {
			t.Errorf("%s was committed: %v", name, err)
		}
	}
}

func TestTheLogIsCopiedAndBegunAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	logBytes := func() int64 {
		st, err := os.Stat(filepath.Join(dir, fileName+"-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	body := noise(inlineBody)
	for i := range 120 {
		err := s.Update(ctx, func(tx store.Tx) error {
			return tx.SaveBody(&store.Body{Ref: store.Ref{byte(i), 1}, Size: inlineBody, Data: body})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if logBytes() < keptLog {
		t.Fatalf("the log has %d bytes", logBytes())
	}
	if err := s.checkpoint(0); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(ctx, set("a", "b")); err != nil {
		t.Fatal(err)
	}
	if n := logBytes(); n > keptLog {
		t.Errorf("the log has %d bytes after a checkpoint", n)
	}
	if err := s.checkpoint(alarmLog + 1); err != nil {
		t.Errorf("restart: %v", err)
	}
}

func TestALongLogCallsForACheckpoint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, fileName+"-wal")
	s := newStore(Options{Dir: dir})
	w := &writer{s: s}
	w.watchLog() // there is none
	for _, c := range []struct {
		size int64
		want bool
	}{{checkpointLog - 1, false}, {checkpointLog, true}, {checkpointLog + logStep - 1, false}, {checkpointLog + logStep, true}, {100, false}, {checkpointLog, true}} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, c.size); err != nil {
			t.Fatal(err)
		}
		w.watchLog()
		got := false
		select {
		case <-s.logSize:
			got = true
		default:
		}
		if got != c.want {
			t.Errorf("%d bytes: call is %v", c.size, got)
		}
	}
}

func TestFilesWithoutARowAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := clock.NewFake(time.Now())
	s := open(t, Options{Dir: dir, Clock: c})
	var bodies []*store.Body
	for i := range 3 {
		b, err := s.StageBody(ctx, bytes.NewReader(noise(inlineBody+1+i)))
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, b)
	}
	if err := s.Update(ctx, func(tx store.Tx) error { return tx.SaveBody(bodies[0]) }); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "bodies", "note.txt")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.sweepBodies() // they are young
	c.Advance(orphanAge + time.Minute)
	if _, err := s.StageBody(ctx, bytes.NewReader(noise(inlineBody+2))); err != nil { // makes the second young again
		t.Fatal(err)
	}
	s.sweepBodies()
	for i, want := range []bool{true, true, false} {
		if _, err := os.Stat(s.path(bodies[i].Ref)); (err == nil) != want {
			t.Errorf("body %d: %v", i, err)
		}
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a foreign file was removed: %v", err)
	}
}

func TestUnfinishedFilesAreRemovedAtOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	temp := filepath.Join(dir, "bodies", "tmp", "body-1")
	if err := os.MkdirAll(filepath.Dir(temp), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(temp, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, Options{Dir: dir})
	if _, err := os.Stat(temp); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}

func TestDamagedBodiesAreNoticed(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Dir: t.TempDir(), CacheBytes: -1})
	file, err := s.StageBody(ctx, bytes.NewReader(noise(inlineBody+1)))
	if err != nil {
		t.Fatal(err)
	}
	bad := &store.Body{Ref: store.Ref{1}, Size: 10, Data: []byte("no zstd"), Packed: true}
	short := &store.Body{Ref: store.Ref{2}, Size: 10, Data: []byte("short")}
	gone := &store.Body{Ref: store.Ref{3}, Size: 10}
	err = s.Update(ctx, func(tx store.Tx) error {
		return errors.Join(tx.SaveBody(file), tx.SaveBody(bad), tx.SaveBody(short), tx.SaveBody(gone))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(s.path(file.Ref), 5); err != nil {
		t.Fatal(err)
	}
	for _, b := range []*store.Body{file, bad, short, gone} {
		if _, err := s.OpenBody(ctx, b.Ref); !errors.Is(err, errBody) {
			t.Errorf("%s: %v", b.Ref, err)
		}
	}
}

// zeros is a large source without memory.
type zeros int64

func (z zeros) Size() int64 { return int64(z) }
func (z zeros) ReadAt(p []byte, off int64) (int, error) {
	n := min(int64(len(p)), int64(z)-off)
	clear(p[:n])
	if n < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

func TestALargeBodyIsNotHeldInMemory(t *testing.T) { //nolint:paralleltest // It measures the memory of the process.
	s := open(t, Options{Dir: t.TempDir()})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b, err := s.StageBody(ctx, zeros(32<<20))
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("32 MiB took %d bytes of memory", n)
	}
	if b.Data != nil || b.Plain != nil || b.Size != 32<<20 {
		t.Errorf("body has size %d, data %d, plain %d", b.Size, len(b.Data), len(b.Plain))
	}
}

func TestBodyCacheKeepsItsBound(t *testing.T) {
	t.Parallel()
	c := newBodyCache(10 * (1000 + overhead))
	for i := range 100 {
		c.put(store.Ref{byte(i)}, make([]byte, 1000))
		c.put(store.Ref{byte(i)}, make([]byte, 1000)) // it is there
		c.get(store.Ref{0})                           // the first one stays in use
	}
	if len(c.items) != 10 || c.order.Len() != 10 || c.used != c.limit {
		t.Errorf("%d items, %d bytes", len(c.items), c.used)
	}
	if _, ok := c.get(store.Ref{0}); !ok {
		t.Error("the one in use was dropped")
	}
	if _, ok := c.get(store.Ref{50}); ok {
		t.Error("an old one was kept")
	}
	c.put(store.Ref{200}, make([]byte, c.limit))
	if _, ok := c.get(store.Ref{200}); ok || len(c.items) != 10 {
		t.Error("one that is too large was kept, or emptied the cache")
	}
}

func TestTheLaneCacheKeepsItsBound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newStore(Options{Dir: dir, MinFree: -1})
	if err := errors.Join(s.folders(), migrate(ctx, dir, latest)); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.write, err = openDB(dir, 1, readerPages, false); err != nil {
		t.Fatal(err)
	}
	w, err := s.recover(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w.lanes.limit = 3
	if err := s.startWriter(ctx, w); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	ids := map[string]int64{}
	for range 2 {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			err := s.Update(ctx, func(tx store.Tx) error {
				ls, err := tx.Lanes([]store.LaneSpec{{Stage: store.Router, Name: name}})
				if err != nil {
					return err
				}
				if id := ids[name]; id != 0 && id != ls[0].ID {
					t.Errorf("lane %s was %d and is %d", name, id, ls[0].ID)
				}
				ids[name] = ls[0].ID
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.submit(ctx, &request{job: func(*wconn) error {
		if n := len(w.lanes.byID); n > 3 {
			t.Errorf("%d lanes are remembered", n)
		}
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
}

const childDir = "EDIHUB_TEST_STORE_CHILD"

// TestKilledChild is the process that TestNothingCommittedIsLostByAKill kills.
func TestKilledChild(t *testing.T) { //nolint:paralleltest // It is a process of its own.
	dir := os.Getenv(childDir)
	if dir == "" {
		return // the parent starts it with the folder in the environment
	}
	s := open(t, Options{Dir: dir})
	var wg sync.WaitGroup
	var serial atomic.Int64
	var mu sync.Mutex
	for range 4 {
		wg.Go(func() {
			for {
				n := serial.Add(1)
				id := edi.NewID(t0)
				large, err := s.StageBody(ctx, bytes.NewReader(binaryBody(n)))
				if err == nil {
					err = s.Update(ctx, func(tx store.Tx) error {
						ls, err := tx.Lanes([]store.LaneSpec{{Stage: store.Parser, Name: "a", Ordered: true}})
						if err != nil {
							return err
						}
						w := &store.Work{WorkKey: store.WorkKey{Stage: store.Parser, ID: id}, Lane: ls[0].ID, Seq: ls[0].Tail, State: store.Ready, Handed: s.Boot()}
						ls[0].Tail++
						_, err = tx.InsertWork([]*store.Work{w})
						return errors.Join(err, tx.SaveLanes(ls), tx.SaveBody(large), tx.InsertTransmission(&store.Transmission{ID: id, At: t0}))
					})
				}
				if err != nil {
					fmt.Println("error", err)
					return
				}
				mu.Lock()
				fmt.Println("committed", id, large.Ref)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// binaryBody is large, and other content for each n.
func binaryBody(n int64) []byte {
	b := make([]byte, inlineBody+1)
	copy(b, strconv.FormatInt(n, 10))
	return b
}

func TestNothingCommittedIsLostByAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$") //nolint:gosec // G204: the test itself.
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var committed [][2]string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) == 3 && f[0] == "committed" {
			committed = append(committed, [2]string{f[1], f[2]})
		} else if len(f) > 0 && f[0] == "error" {
			t.Error(lines.Text())
		}
		if len(committed) == 60 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	if len(committed) < 60 {
		t.Fatalf("the child committed %d times", len(committed))
	}
	s := open(t, Options{Dir: dir})
	if s.Boot() != 2 {
		t.Errorf("start %d", s.Boot())
	}
	for _, c := range committed {
		id, err := edi.ParseID(c[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.GetTransmission(ctx, id); err != nil {
			t.Error(err)
		}
		if _, err := s.GetWork(ctx, store.WorkKey{Stage: store.Parser, ID: id}); err != nil {
			t.Error(err)
		}
		var ref store.Ref
		if err := ref.UnmarshalText([]byte(c[1])); err != nil {
			t.Fatal(err)
		}
		b, err := s.OpenBody(ctx, ref)
		if err != nil {
			t.Error(err)
			continue
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	rows, err := s.Unhanded(ctx, 0, 0, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		if r.Seq != int64(i)+1 {
			t.Fatalf("row %d has sequence %d", i, r.Seq)
		}
	}
	if len(rows) < len(committed) {
		t.Errorf("%d rows of %d", len(rows), len(committed))
	}
	var check string
	if err := s.lists.QueryRow("pragma integrity_check").Scan(&check); err != nil || check != "ok" {
		t.Errorf("integrity: %s, %v", check, err)
	}
}

func TestNoSweepOrSearchWalksATable(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Dir: t.TempDir()})
	for _, text := range []string{
		laneColumns + "where (stage, name) in (values " + tuples(4, 2) + ")",
		"select data, handed from work where stage = 1 and id in (" + marks(4) + ")",
		"delete from work where stage = 1 and (id, gen) in (values " + tuples(4, 2) + ")",
		"select data, handed from work where state = 2 and lane = ? and seq >= ? order by seq limit ?",
		"select 1 from work where busy = 1 and lane = ? and key = ? and seq < ? limit 1",
		"select data, handed from work where wake <= ? order by wake limit ?",
		turnsText, keysFreeText,
		"select data, handed from work where state = 1 and handed = 0 and (lane, seq) > (?, ?) order by lane, seq limit ?",
		"select data from message where " + byDocument + " order by +id desc limit ?",
		"select data from message where " + byOrder + " order by +id desc limit ?",
		"select data from delivery where " + byOutRef + " order by +id desc limit ?",
		"select data from interchange where " + byInRef + " order by +id desc limit ?",
		"select data from message where interchange in (select i.id from interchange i where i.transmission in (select id from transmission where " + byMessageID + ")) order by +id desc limit ?",
		"select data from message where state = ? and id < ? order by id desc limit ?",
	} {
		rows, err := s.lists.Query("explain query plan "+text, make([]any, strings.Count(text, "?"))...)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for rows.Next() {
			var a, b, c int
			var detail string
			if err := rows.Scan(&a, &b, &c, &detail); err != nil {
				t.Fatal(err)
			}
			for _, table := range []string{"work", "w", "e", "lane", "l", "message", "interchange", "i", "transmission", "delivery", "t"} {
				if detail == "SCAN "+table {
					t.Errorf("%s\n  %s", text, detail)
				}
			}
			if strings.Contains(detail, "ORDER BY") && !strings.Contains(text, "+id") {
				t.Errorf("%s\n  sorts: %s", text, detail)
			}
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatAnotherStartHandedOverIsUnhanded(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Dir: t.TempDir()})
	w := &store.Work{WorkKey: store.WorkKey{Stage: store.Parser, ID: edi.NewID(t0)}, Lane: 1, State: store.Ready, Handed: s.Boot()}
	err := s.Update(ctx, func(tx store.Tx) error { _, err := tx.InsertWork([]*store.Work{w}); return err })
	if err != nil {
		t.Fatal(err)
	}
	// As a take-over finds it that has not come to it yet.
	err = s.submit(ctx, &request{job: func(c *wconn) error { return c.exec("update work set handed = 77") }})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.GetWork(ctx, w.WorkKey); err != nil || got.Handed != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	err = s.Update(ctx, func(tx store.Tx) error {
		rows, err := tx.Work([]store.WorkKey{w.WorkKey})
		if err != nil {
			return err
		}
		if rows[0].Handed != 0 {
			t.Errorf("locked: %+v", rows[0])
		}
		rows[0].Handed = 77
		return tx.SaveWork(rows)
	})
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := s.Backlog(ctx, 1, 10); err != nil || len(rows) != 1 {
		t.Errorf("%v, %v", rows, err)
	}
}

func TestACallerMayGiveUpInTheQueue(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Dir: t.TempDir()})
	hold, begun := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Update(ctx, func(store.Tx) error { close(begun); <-hold; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-begun
	c, cancel := context.WithCancel(ctx)
	got := make(chan error)
	ran := false
	go func() { got <- s.Update(c, func(store.Tx) error { ran = true; return nil }) }()
	for len(s.queue) == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) { // while the writer is held
		t.Errorf("error is %v", err)
	}
	close(hold)
	wg.Wait()
	if err := s.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	if ran {
		t.Error("it ran though its caller had gone")
	}
}

func TestATakeOverGoesThroughAllRows(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Dir: t.TempDir()})
	for _, n := range []int{0, 1, 3, 9} { // rows more, over all stages
		rows := make([]*store.Work, n)
		for i := range rows {
			rows[i] = &store.Work{WorkKey: store.WorkKey{Stage: store.Stages()[i%4], ID: edi.NewID(t0)}, Lane: 1, Seq: int64(i), State: store.Ready, Handed: s.Boot()}
		}
		parked := &store.Work{WorkKey: store.WorkKey{Stage: store.Parser, ID: edi.NewID(t0)}, Lane: 1, State: store.Parked, Handed: s.Boot()}
		var before int
		err := s.Update(ctx, func(tx store.Tx) error { _, err := tx.InsertWork(append(rows, parked)); return err })
		if err != nil {
			t.Fatal(err)
		}
		if have, err := s.Unhanded(ctx, 0, -1, 100); err != nil {
			t.Fatal(err)
		} else {
			before = len(have)
		}
		same := takeOver{boot: s.Boot(), rows: 3}
		next := takeOver{boot: s.Boot() + 1, rows: 3}
		for _, c := range []*takeOver{&same, &next} {
			for !c.done {
				if err := s.submit(ctx, &request{job: c.step}); err != nil {
					t.Fatal(err)
				}
			}
			have, err := s.Unhanded(ctx, 0, -1, 100)
			if err != nil {
				t.Fatal(err)
			}
			want := before
			if c == &next {
				want += n
			}
			if len(have) != want {
				t.Errorf("%d rows more, start %d: %d are unhanded, want %d", n, c.boot, len(have), want)
			}
		}
	}
}

func TestAMessageIDNamesItsDelivery(t *testing.T) {
	t.Parallel()
	id := edi.NewID(t0)
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{"<" + id.String() + "@edi.example>", true}, {"<" + id.String() + "-g2@edi.example>", true}, {id.String(), true},
		{"<1@x>", false}, {"", false}, {"<" + strings.Repeat("z", 36) + "@x>", false},
	} {
		got, ok := deliveryOf(c.text)
		if ok != c.ok || (ok && got != id) {
			t.Errorf("%s: %s, %v", c.text, got, ok)
		}
	}
}
