package directory

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
)

// given is what Accept was handed.
type given struct {
	name, content, key string
	claim              edi.ID
}

// rig is a polled directory with an Accept that a test steers.
type rig struct {
	t     *testing.T
	in    string
	clock *clock.Fake
	p     *Poller

	mu     sync.Mutex
	got    []given
	answer func(f *File) (Outcome, error)
}

func newRig(t *testing.T, change func(*PollerOptions)) *rig {
	t.Helper()
	r := &rig{t: t, in: t.TempDir(), clock: clock.NewFake(now), answer: func(*File) (Outcome, error) { return Outcome{}, nil }}
	r.p = r.poller(change)
	return r
}

// poller makes another one on the same directory, as after a restart.
func (r *rig) poller(change func(*PollerOptions)) *Poller {
	r.t.Helper()
	o := PollerOptions{
		Connection: "erp-files",
		Directory:  &partner.Directory{In: r.in},
		Accept:     r.accept,
		Clock:      r.clock,
	}
	if change != nil {
		change(&o)
	}
	p, err := NewPoller(o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(p.Close)
	return p
}

func (r *rig) accept(_ context.Context, f *File) (Outcome, error) {
	b, err := io.ReadAll(io.NewSectionReader(f.Content, 0, f.Content.Size()))
	if err != nil {
		r.t.Error(err)
	}
	if f.Size != int64(len(b)) || f.SHA256 != sha256.Sum256(b) || f.Connection != "erp-files" {
		r.t.Errorf("file %+v does not fit its %d bytes", f, len(b))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, given{f.Name, string(b), f.Key, f.Claim})
	return r.answer(f)
}

func (r *rig) put(name, content string) { r.t.Helper(); write(r.t, filepath.Join(r.in, name), content) }

// touch gives a file a time of its own, so that the order does not hang on the disk's clock.
func (r *rig) touch(name string, at time.Time) {
	r.t.Helper()
	if err := os.Chtimes(filepath.Join(r.in, name), at, at); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) poll() {
	r.t.Helper()
	if err := r.p.Poll(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// settle lets everything stand still long enough.
func (r *rig) settle() {
	r.t.Helper()
	r.poll()
	r.clock.Advance(DefaultStableFor)
	r.poll()
}

func (r *rig) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, g := range r.got {
		out = append(out, g.name)
	}
	return out
}

func (r *rig) wantNames(want ...string) {
	r.t.Helper()
	if got := r.names(); !slices.Equal(got, want) {
		r.t.Fatalf("handed over %q, want %q", got, want)
	}
}

func (r *rig) dir(name string) string { return filepath.Join(r.in, name) }

func TestFileIsTakenWhenItStandsStill(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.put("orders.edi", "half")
	r.poll()
	r.wantNames()
	r.clock.Advance(4 * time.Second)
	r.put("orders.edi", "half and more") // Grows: the time begins anew.
	r.poll()
	r.clock.Advance(4 * time.Second)
	r.poll()
	r.wantNames()
	r.touch("orders.edi", now.Add(time.Hour)) // Written again, same size.
	r.poll()
	r.clock.Advance(4999 * time.Millisecond)
	r.poll()
	r.wantNames()
	r.clock.Advance(time.Millisecond)
	r.poll()
	r.wantNames("orders.edi")
	if r.got[0].content != "half and more" {
		t.Errorf("content %q", r.got[0].content)
	}
	wantFiles(t, r.in, nil)
	wantFiles(t, r.dir(workFolder), nil)
	wantFiles(t, r.dir(doneFolder), map[string]string{"orders.edi": "half and more"})
	r.poll()
	r.wantNames("orders.edi")
}

func TestStableForIsAsSet(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *PollerOptions) { o.Directory.StableFor = time.Minute })
	r.put("a", "x")
	r.settle()
	r.wantNames()
	r.clock.Advance(time.Minute)
	r.poll()
	r.wantNames("a")
}

func TestAnnouncedFileIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.put("orders.edi", payload)
	r.touch("orders.edi", now)
	r.put("orders.edi.done", "")
	r.touch("orders.edi.done", now)
	r.put("empty.edi", "")
	r.touch("empty.edi", now.Add(-time.Second))
	r.put("empty.edi.done", "")
	r.put("lonely.done", "a file that is not there")
	r.poll()
	r.wantNames("empty.edi", "orders.edi")
	wantFiles(t, r.in, map[string]string{"lonely.done": "a file that is not there"})
	wantFiles(t, r.dir(doneFolder), map[string]string{"orders.edi": payload, "empty.edi": ""})
}

// TestOldAnnouncementIsNotBelieved: a mark that a crash left behind must not let half of the
// next file of that name through.
func TestOldAnnouncementIsNotBelieved(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.put("orders.edi.done", "")
	r.touch("orders.edi.done", now.Add(-time.Hour))
	r.put("orders.edi", payload)
	r.touch("orders.edi", now)
	r.poll()
	r.wantNames()
	r.clock.Advance(DefaultStableFor)
	r.poll()
	r.wantNames("orders.edi")
	wantFiles(t, r.in, nil)
}

func TestWhatIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret")
	if err := os.Symlink(secret, filepath.Join(r.in, "link.edi")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(r.in, "pipe.edi"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(r.in, "folder.edi"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".hidden", "a.tmp", "b.part", ".c.edi.done"} {
		r.put(name, "x")
	}
	r.put("empty.edi", "")
	r.put("taken.edi", "x")
	r.settle()
	r.wantNames("taken.edi")
	entries, err := os.ReadDir(r.in)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{".c.edi.done", ".hidden", "a.tmp", "b.part", "done", "empty.edi", "error", "folder.edi", "link.edi", "pipe.edi", "work"}
	if !slices.Equal(left, want) {
		t.Errorf("left alone: %q, want %q", left, want)
	}
}

func TestOldestFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for i, name := range []string{"c", "a", "d", "b"} {
		r.put(name, name)
		r.touch(name, now.Add(time.Duration(i)*time.Second))
	}
	r.put("e", "e")
	r.touch("e", now.Add(3*time.Second)) // As old as b: by name.
	r.settle()
	r.wantNames("c", "a", "d", "b", "e")
	claims := map[edi.ID]bool{}
	for _, g := range r.got {
		claims[g.claim] = true
	}
	if len(claims) != 5 {
		t.Errorf("%d claims for five files", len(claims))
	}
}

func TestMoreThanOneBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	var want []string
	for i := range batch + 10 {
		name := fmt.Sprintf("%04d", i)
		r.put(name, name)
		r.touch(name, now)
		want = append(want, name)
	}
	r.settle()
	r.wantNames(want...)
}

func TestRefusedFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.answer = func(*File) (Outcome, error) {
		return Outcome{Refused: true, Code: "UNKNOWN_CONTENT", Reason: "no reader\nunderstands it"}, nil
	}
	r.put("bad.edi", "secret payload")
	r.settle()
	r.wantNames("bad.edi")
	wantFiles(t, r.dir(doneFolder), nil)
	text, err := os.ReadFile(filepath.Join(r.dir(errorFolder), "bad.edi.error.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"file: bad.edi\n", "connection: erp-files\n", "code: UNKNOWN_CONTENT\n", "reason: no reader?understands it\n",
		"time: 2026-03-01T12:00:05Z\n", "size: 14 bytes\n", fmt.Sprintf("sha256: %x\n", sha256.Sum256([]byte("secret payload"))),
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the reason lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "secret") {
		t.Errorf("the reason shows the payload:\n%s", text)
	}
	wantFiles(t, r.dir(errorFolder), map[string]string{"bad.edi": "secret payload", "bad.edi.error.txt": string(text)})
}

// TestSameNameAgain: nothing in done/ or error/ is ever overwritten.
func TestSameNameAgain(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		r := newRig(t, nil)
		r.answer = func(*File) (Outcome, error) { return Outcome{Refused: refused, Code: "X", Reason: "y"}, nil }
		for _, content := range []string{"first", "second", "second"} {
			r.put("orders.edi", content)
			r.settle()
		}
		r.wantNames("orders.edi", "orders.edi", "orders.edi")
		folder, perFile := r.dir(doneFolder), 1
		if refused {
			folder, perFile = r.dir(errorFolder), 2
		}
		entries, err := os.ReadDir(folder)
		if err != nil || len(entries) != 3*perFile {
			t.Errorf("%v, %v; want %d", entries, err, 3*perFile)
		}
		for i, want := range []string{"first", "second", "second"} {
			name := "orders.edi"
			if i > 0 {
				name = "orders." + r.got[i].claim.String() + ".edi"
			}
			if b, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(b) != want {
				t.Errorf("%s: %q, %v; want %q", name, b, err, want)
			}
		}
		a, b, c := r.got[0], r.got[1], r.got[2]
		if a.key == b.key || b.key != c.key || b.claim == c.claim {
			t.Errorf("keys %s %s %s, claims %s %s: the key goes by content, the claim by arrival", a.key, b.key, c.key, b.claim, c.claim)
		}
	}
}

func TestPassingFailureKeepsTheFileAndTheOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	down := errors.New("store is down")
	r.answer = func(*File) (Outcome, error) { return Outcome{}, down }
	for i, name := range []string{"a", "b"} {
		r.put(name, name)
		r.touch(name, now.Add(time.Duration(i)*time.Second))
	}
	r.poll()
	r.clock.Advance(DefaultStableFor)
	if err := r.p.Poll(t.Context()); !errors.Is(err, down) {
		t.Fatalf("Poll = %v, want the error of Accept", err)
	}
	r.wantNames("a")
	entries, err := os.ReadDir(r.dir(workFolder))
	if err != nil || len(entries) != 3 { // The lock is the third.
		t.Fatalf("work/ holds %v, %v", entries, err)
	}
	// Pauses of 5, 10, 20 … seconds up to 5 minutes.
	tries := 1
	for _, seconds := range []int{5, 10, 20, 40, 80, 160, 300, 300} {
		pause := time.Duration(seconds) * time.Second
		r.clock.Advance(pause - time.Millisecond)
		r.poll()
		if n := len(r.names()); n != tries {
			t.Fatalf("%d tries before the pause of %v was over, want %d", n, pause, tries)
		}
		r.clock.Advance(time.Millisecond)
		if err := r.p.Poll(t.Context()); !errors.Is(err, down) {
			t.Fatalf("Poll = %v", err)
		}
		tries++
	}
	r.answer = func(*File) (Outcome, error) { return Outcome{}, nil }
	r.clock.Advance(DefaultRetryMax)
	r.poll()
	names := r.names()
	if got := names[tries:]; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("handed over %q at last, want a, then b", got)
	}
	for _, g := range r.got[:tries+1] {
		if g.claim != r.got[0].claim || g.key != r.got[0].key {
			t.Error("the same arrival came under another claim or key")
		}
	}
	wantFiles(t, r.dir(doneFolder), map[string]string{"a": "a", "b": "b"})
}

// TestRestartGoesOn: what a crash left in work/ comes again under its claim, before anything new.
func TestRestartGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.answer = func(*File) (Outcome, error) { return Outcome{}, errors.New("the process dies here") }
	r.put("first.edi", "1")
	r.poll()
	r.clock.Advance(DefaultStableFor)
	if err := r.p.Poll(t.Context()); err == nil {
		t.Fatal("no failure")
	}
	r.p.Close() // The system does so when a process ends.
	write(t, filepath.Join(r.dir(workFolder), "by-hand.edi"), "2")

	r.answer = func(*File) (Outcome, error) { return Outcome{}, nil }
	r.clock.Advance(-time.Hour) // The machine's clock may be wrong for a while.
	r.p = r.poller(nil)
	r.put("later.edi", "3")
	r.poll()
	r.clock.Advance(DefaultStableFor)
	r.poll()
	r.wantNames("first.edi", "first.edi", "by-hand.edi", "later.edi")
	if r.got[0].claim != r.got[1].claim || r.got[0].key != r.got[1].key {
		t.Error("the file came back under another claim or key")
	}
	wantFiles(t, r.dir(doneFolder), map[string]string{"first.edi": "1", "by-hand.edi": "2", "later.edi": "3"})
}

func TestLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *PollerOptions) { o.MaxSize = 10 })
	long := strings.Repeat("n", 240) + ".edi"
	r.put("fits", "1234567890")
	r.put("large", "12345678901")
	r.put(long, "x")
	for i, name := range []string{"fits", "large", long} {
		r.touch(name, now.Add(time.Duration(i)*time.Second))
	}
	r.settle()
	names := r.names()
	if len(names) != 2 || names[0] != "fits" || len(names[1]) > maxName || !strings.HasSuffix(names[1], ".edi") {
		t.Errorf("handed over %q", names)
	}
	text, err := os.ReadFile(filepath.Join(r.dir(errorFolder), "large.error.txt"))
	if err != nil || !strings.Contains(string(text), "code: "+CodeTooLarge) || !strings.Contains(string(text), "10 are allowed") {
		t.Errorf("reason %q, %v", text, err)
	}
}

// TestSymbolicLinkInWork is one that somebody put there by hand.
func TestSymbolicLinkInWork(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.poll()
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret")
	if err := os.Symlink(secret, filepath.Join(r.dir(workFolder), "link.edi")); err != nil {
		t.Fatal(err)
	}
	r.poll()
	r.wantNames()
	text, err := os.ReadFile(filepath.Join(r.dir(errorFolder), "link.edi.error.txt"))
	if err != nil || !strings.Contains(string(text), "code: "+CodeNotRegular) {
		t.Errorf("reason %q, %v", text, err)
	}
}

func TestPanicIsRefusedAfterThreeTimes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.answer = func(f *File) (Outcome, error) {
		if f.Name == "bad.edi" {
			panic("boom")
		}
		return Outcome{}, nil
	}
	for i, name := range []string{"bad.edi", "good.edi"} {
		r.put(name, name)
		r.touch(name, now.Add(time.Duration(i)*time.Second))
	}
	r.poll()
	r.clock.Advance(DefaultStableFor)
	for range maxPanics - 1 {
		if err := r.p.Poll(t.Context()); err == nil {
			t.Fatal("a panic was taken for success")
		}
		r.clock.Advance(time.Minute)
	}
	r.poll()
	r.wantNames("bad.edi", "bad.edi", "bad.edi", "good.edi")
	text, err := os.ReadFile(filepath.Join(r.dir(errorFolder), "bad.edi.error.txt"))
	if err != nil || !strings.Contains(string(text), "code: "+CodePanic) {
		t.Errorf("reason %q, %v", text, err)
	}
}

// TestWriterThatOnlyPaused changes the file while its hash is made.
func TestWriterThatOnlyPaused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "12345")
	f, info, err := openRegular(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	write(t, path, "1234567")
	file := &File{Name: "f", Size: info.Size(), ModTime: info.ModTime()}
	if err := file.measure(f); err == nil || !strings.Contains(err.Error(), "stable_for") {
		t.Errorf("measure = %v", err)
	}
}

func TestOnlyOnePollerWorks(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	second := r.poller(nil)
	r.poll() // The first one takes the lock.
	r.put("a", "x")
	for range 2 {
		if err := second.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.clock.Advance(DefaultStableFor)
	}
	r.wantNames()
	r.p.Close()
	for range 2 {
		if err := second.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.clock.Advance(DefaultStableFor)
	}
	r.wantNames("a")
}

func TestDirectoryThatGoesAway(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.poll()
	aside := r.in + "-aside"
	if err := os.Rename(r.in, aside); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.p.Poll(t.Context()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Poll = %v, want os.ErrNotExist", err)
		}
	}
	if _, err := os.Stat(r.in); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Poll made a directory that was not mounted: %v", err)
	}
	if err := os.Rename(aside, r.in); err != nil {
		t.Fatal(err)
	}
	r.put("a", "x")
	r.clock.Advance(DefaultRetryMax)
	r.settle()
	r.wantNames("a")
}

func TestSettings(t *testing.T) {
	t.Parallel()
	accept := func(context.Context, *File) (Outcome, error) { return Outcome{}, nil }
	for name, o := range map[string]PollerOptions{
		"no directory":    {Accept: accept},
		"no in directory": {Accept: accept, Directory: &partner.Directory{Out: "x"}},
		"nobody accepts":  {Directory: &partner.Directory{In: "x"}},
	} {
		if _, err := NewPoller(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	in := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(in, workFolder)); err != nil {
		t.Fatal(err)
	}
	p, err := NewPoller(PollerOptions{Directory: &partner.Directory{In: in}, Accept: accept})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err == nil {
		t.Error("Start took a symbolic link for work/")
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Errorf("Stop of what never started: %v", err)
	}
}

func TestStartAndStop(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	in := filepath.Join(r.in, "new", "folder")
	taken := make(chan string, 1)
	p := r.poller(func(o *PollerOptions) {
		o.Directory.In = in
		o.Accept = func(_ context.Context, f *File) (Outcome, error) { taken <- f.Name; return Outcome{}, nil }
	})
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err == nil {
		t.Error("started twice")
	}
	sleep := func() {
		if err := r.clock.AwaitWaiting(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	sleep()
	write(t, filepath.Join(in, "orders.edi"), payload)
	r.clock.Advance(DefaultInterval)
	sleep()
	r.clock.Advance(DefaultStableFor)
	if name := <-taken; name != "orders.edi" {
		t.Errorf("took %q", name)
	}
	sleep()
	wantFiles(t, filepath.Join(in, doneFolder), map[string]string{"orders.edi": payload})
	for range 2 {
		if err := p.Stop(t.Context()); err != nil {
			t.Errorf("Stop = %v", err)
		}
	}
	if n := r.clock.Waiting(); n != 0 {
		t.Errorf("%d timers are left", n)
	}
}

func TestStopLetsTheFileInHandFinish(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	begun, finish := make(chan struct{}), make(chan struct{})
	p := r.poller(func(o *PollerOptions) {
		o.Accept = func(ctx context.Context, _ *File) (Outcome, error) {
			close(begun)
			<-finish
			return Outcome{}, ctx.Err()
		}
	})
	for _, name := range []string{"a", "b"} {
		r.put(name, name)
		r.put(name+doneMark, "")
	}
	r.touch("a", now.Add(-time.Second))
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-begun
	stopped := make(chan error)
	go func() { stopped <- p.Stop(t.Context()) }()
	// Stop has closed quit when a second one finds it closed; it waits for the file.
	p.life.Lock()
	quit := p.quit
	p.life.Unlock()
	<-quit
	close(finish)
	if err := <-stopped; err != nil {
		t.Errorf("Stop = %v", err)
	}
	wantFiles(t, r.dir(doneFolder), map[string]string{"a": "a"})
}

func TestStopCancelsWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	begun := make(chan struct{})
	p := r.poller(func(o *PollerOptions) {
		o.Accept = func(ctx context.Context, _ *File) (Outcome, error) {
			close(begun)
			<-ctx.Done()
			return Outcome{}, ctx.Err()
		}
	})
	r.put("a", "a")
	r.put("a.done", "")
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Stop = %v, want context.Canceled", err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Errorf("Stop afterwards = %v", err)
	}
	entries, err := os.ReadDir(r.dir(workFolder))
	if err != nil || len(entries) != 2 {
		t.Errorf("work/ holds %v, %v; want the file and the lock", entries, err)
	}
}
