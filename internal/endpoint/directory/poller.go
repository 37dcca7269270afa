package directory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
)

// Defaults of PollerOptions.
const (
	DefaultInterval   = time.Second
	DefaultStableFor  = 5 * time.Second
	DefaultMaxSize    = 2 << 30
	DefaultRetryFirst = 5 * time.Second
	DefaultRetryMax   = 5 * time.Minute
)

// The folders inside the polled directory.
const (
	workFolder  = "work"
	doneFolder  = "done"
	errorFolder = "error"
	lockName    = ".lock"
)

// The codes with which a Poller itself refuses a file.
const (
	CodeTooLarge   = "FILE_TOO_LARGE"
	CodeNotRegular = "FILE_NOT_REGULAR"
	CodePanic      = "ACCEPT_PANIC"
)

// File is what a Poller hands over. Its content may be read until Accept returns.
type File struct {
	Connection string
	Name       string // as the application named it; a very long name is shortened
	Path       string // where it lies now, in work/
	// Claim names this arrival: it stays the same when the file is handed over again, also after
	// a restart, and another file of the same name has another one.
	Claim edi.ID
	// Key is made of connection, name and content: the same for every file of that name and
	// content, whenever it comes.
	Key     string
	SHA256  [32]byte
	Size    int64 // bytes
	ModTime time.Time
	Content edi.Source
}

// Outcome of a file that needs no further try.
type Outcome struct {
	Refused bool   // it goes to error/, else to done/
	Code    string // with Refused: a stable code
	Reason  string // with Refused: one line for a person, without payload
}

// AcceptFunc takes a file over: when it returns an Outcome the content is durable, or refused for
// good. An error is a passing failure (store, disk): the file stays in work/ and comes again,
// and so does every file behind it, in their order.
//
// It may be called again for a file that it has already taken (a crash before the file was
// moved), so it must recognise Claim or Key.
type AcceptFunc func(ctx context.Context, f *File) (Outcome, error)

// PollerOptions set up a Poller. A zero value means the default.
type PollerOptions struct {
	Connection string             // id, for File and the log
	Directory  *partner.Directory // In is required; StableFor
	Accept     AcceptFunc         // required
	Clock      clock.Clock        // default clock.System

	Interval   time.Duration // between two looks; default 1 s
	MaxSize    int64         // bytes of a file; default 2 GiB
	RetryFirst time.Duration // pause after a passing failure, doubled each time; default 5 s
	RetryMax   time.Duration // longest pause; default 5 min

	Logger *zap.Logger // default: none
}

// Poller takes files out of a directory. A file is taken when it has stood still for StableFor,
// or at once when a file "<name>.done" that is not older announces it. It is claimed by a move
// to work/, handed to Accept, and moved to done/ or error/ (there "<name>.error.txt" says why).
// Nothing is ever overwritten or deleted but the announcement of a file that was taken.
//
// Names that begin with a dot or end in .tmp, .part or .done, folders, symbolic links and other
// special files are left alone, and so are empty files unless announced: many programs make a
// file first and fill it later.
//
// Only one Poller works on a directory at a time, over all processes: the others wait for its
// lock on work/.lock and go on when it ends.
type Poller struct {
	options PollerOptions
	in      string

	round sync.Mutex // one look at a time; guards what follows
	lock  *os.File
	seen  map[string]sighting
	last  time.Time // of the newest claim
	// pause is over at; failures counts those since the last success.
	until    time.Time
	failures int
	panics   map[edi.ID]int

	life   sync.Mutex // guards what follows
	quit   chan struct{}
	done   chan struct{}
	cancel context.CancelFunc
}

// sighting is what a file looked like, and since when.
type sighting struct {
	size    int64
	modTime time.Time
	since   time.Time
}

// NewPoller returns a Poller that does not run yet.
func NewPoller(o PollerOptions) (*Poller, error) {
	if o.Directory == nil || o.Directory.In == "" {
		return nil, fmt.Errorf("connection %s: no in directory is set", o.Connection)
	}
	if o.Accept == nil {
		return nil, fmt.Errorf("connection %s: nobody takes the files", o.Connection)
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	o.Logger = o.Logger.With(zap.String("connection", o.Connection))
	o.Interval = positive(o.Interval, DefaultInterval)
	o.RetryFirst = positive(o.RetryFirst, DefaultRetryFirst)
	o.RetryMax = max(o.RetryFirst, positive(o.RetryMax, DefaultRetryMax))
	o.MaxSize = positive(o.MaxSize, DefaultMaxSize)
	return &Poller{options: o, in: o.Directory.In, seen: map[string]sighting{}, panics: map[edi.ID]int{}}, nil
}

func positive[T int64 | time.Duration](v, byDefault T) T {
	if v <= 0 {
		return byDefault
	}
	return v
}

func (p *Poller) folder(name string) string { return filepath.Join(p.in, name) }

// Start makes the folders (0700) and begins to look, the first time at once. It does not block.
// A Poller starts once.
func (p *Poller) Start(ctx context.Context) error {
	p.life.Lock()
	defer p.life.Unlock()
	if p.quit != nil {
		return errors.New("directory poller: started twice")
	}
	if err := os.MkdirAll(p.in, 0o700); err != nil {
		return fmt.Errorf("make the in directory: %w", err)
	}
	if err := p.makeFolders(); err != nil {
		return err
	}
	p.quit, p.done = make(chan struct{}), make(chan struct{})
	ctx, p.cancel = context.WithCancel(ctx)
	go p.run(ctx, p.quit, p.done)
	return nil
}

// Stop lets the file in hand finish and ends the Poller. When ctx ends first, Accept's context is
// cancelled and Stop returns the error of ctx. Stopping twice, or what was never started, is
// allowed.
func (p *Poller) Stop(ctx context.Context) error {
	p.life.Lock()
	quit, done, cancel := p.quit, p.done, p.cancel
	if quit != nil {
		select {
		case <-quit:
		default:
			close(quit)
		}
	}
	p.life.Unlock()
	if quit == nil {
		return nil
	}
	defer cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the directory poller: %w", ctx.Err())
	}
}

func (p *Poller) run(ctx context.Context, quit, done chan struct{}) {
	defer close(done)
	defer p.unlock()
	told := ""
	for {
		err := p.poll(ctx, quit)
		switch {
		case err == nil:
			told = ""
		case ctx.Err() == nil && err.Error() != told:
			// One line for a trouble that lasts, not one each second.
			told = err.Error()
			p.options.Logger.Warn("directory_poll_failed", zap.Error(err))
		}
		timer, stop := p.options.Clock.NewTimer(p.options.Interval)
		select {
		case <-timer:
		case <-quit:
			stop()
			return
		case <-ctx.Done():
			stop()
			return
		}
	}
}

// Poll looks once: it goes on with what lies in work/, claims what is ready, and hands it over.
// The error says why the look ended early. Close gives back the lock that it takes.
func (p *Poller) Poll(ctx context.Context) error { return p.poll(ctx, nil) }

// Close gives back the lock on the directory; Stop does so too.
func (p *Poller) Close() { p.unlock() }

func (p *Poller) poll(ctx context.Context, quit <-chan struct{}) error {
	p.round.Lock()
	defer p.round.Unlock()
	if p.lock == nil {
		if err := p.makeFolders(); err != nil {
			return err
		}
		if ours, err := p.takeLock(); err != nil || !ours {
			return err
		}
	}
	if p.options.Clock.Now().Before(p.until) {
		return nil
	}
	err := p.look(ctx, quit)
	if errors.Is(err, os.ErrNotExist) {
		// The directory went away; the lock is worth nothing when another comes in its place.
		p.dropLock()
	}
	return err
}

func (p *Poller) look(ctx context.Context, quit <-chan struct{}) error {
	for {
		if err := p.drain(ctx, quit); err != nil || stopping(ctx, quit) {
			return err
		}
		n, err := p.claimReady()
		if n == 0 || err != nil {
			return err
		}
	}
}

func stopping(ctx context.Context, quit <-chan struct{}) bool {
	select {
	case <-quit: // A nil channel never answers.
		return true
	default:
		return ctx.Err() != nil
	}
}

func (p *Poller) makeFolders() error {
	for _, name := range []string{workFolder, doneFolder, errorFolder} {
		dir := p.folder(name)
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("make a folder of the in directory: %w", err)
		}
		info, err := os.Lstat(dir)
		if err != nil {
			return fmt.Errorf("look at a folder of the in directory: %w", err)
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a folder: move it away", dir)
		}
	}
	return nil
}

// takeLock reports whether the directory is ours. The system gives a lock back when its process
// ends, however it ends.
func (p *Poller) takeLock() (bool, error) {
	f, err := os.OpenFile(filepath.Join(p.folder(workFolder), lockName), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return false, fmt.Errorf("lock the in directory: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return false, f.Close()
	case errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EOPNOTSUPP):
		p.options.Logger.Warn("directory_without_locks", zap.String("remedy", "let one hub only poll this directory"))
	case err != nil:
		return false, errors.Join(fmt.Errorf("lock the in directory: %w", err), f.Close())
	}
	p.lock = f
	return true, nil
}

func (p *Poller) unlock() {
	p.round.Lock()
	defer p.round.Unlock()
	p.dropLock()
}

func (p *Poller) dropLock() {
	if p.lock != nil {
		_ = p.lock.Close() // Closing gives the lock back; there is nothing to lose in it.
		p.lock = nil
	}
}
