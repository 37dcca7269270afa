// Package directory is the endpoint that exchanges files with an application through
// directories: deliveries are put into one, and another is polled for what the application
// sends.
package directory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline/send"
)

// Proof is what a file in its place counts as.
const Proof = "file"

// The codes of a Result. All but CodeSync are Retry: each passes when someone mends the
// directory, and until then nothing is there.
const (
	CodeNotSet   = "DIRECTORY_NOT_SET"    // the connection has no out directory
	CodePattern  = "DIRECTORY_PATTERN"    // the file name pattern is no good
	CodeMissing  = "DIRECTORY_MISSING"    // the directory is not there (not mounted?)
	CodeDenied   = "DIRECTORY_DENIED"     // no right to write
	CodeFull     = "DIRECTORY_FULL"       // no space left, or over quota
	CodeTaken    = "DIRECTORY_NAME_TAKEN" // another file has the name
	CodeNoRename = "DIRECTORY_NO_SAFE_RENAME"
	CodeWrite    = "DIRECTORY_WRITE" // any other failure to write
	CodeSync     = "DIRECTORY_SYNC"  // the file is there, but perhaps not after a power cut
	CodePayload  = "PAYLOAD_READ"    // our own store did not give the bytes
	CodeCanceled = "CANCELED"        // we stopped
)

const (
	tempPrefix = ".edihub-"
	tempSuffix = ".tmp"
	tempAge    = 24 * time.Hour
	maxDetail  = 300 // characters of Result.Detail
)

// Options of an Endpoint.
type Options struct {
	Clock clock.Clock // default clock.System
	// FileMode of delivered files; default 0600. Give the application's group the right to read
	// with 0640 and a set-group-id directory.
	FileMode os.FileMode
	// Mine reports whether a delivery is of the hub that this process alone runs. Its temporary
	// files that this endpoint is not writing are then what a dead process left behind. The
	// default knows none.
	Mine func(delivery edi.ID) bool
	// Probe is called at named points ("before-rename", "after-rename"), so that a test can stop
	// the process there.
	Probe func(point string)
}

// Endpoint puts deliveries into directories. It is safe for concurrent use.
type Endpoint struct {
	options Options
	files   fileSystem

	mu   sync.Mutex
	live map[string]bool // names of the temporary files that are being written
}

// fileSystem holds the steps that fail in ways that a test cannot bring about on a real disk.
type fileSystem struct {
	rename  func(from, to string) error
	syncDir func(dir string) error
	copy    func(dst io.Writer, src io.Reader) (int64, error)
}

// New returns an Endpoint.
func New(o Options) *Endpoint {
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.FileMode == 0 {
		o.FileMode = 0o600
	}
	if o.Probe == nil {
		o.Probe = func(string) {}
	}
	if o.Mine == nil {
		o.Mine = func(edi.ID) bool { return false }
	}
	return &Endpoint{options: o, files: fileSystem{rename: renameNew, syncDir: syncDir, copy: io.Copy}, live: map[string]bool{}}
}

var _ send.Endpoint = (*Endpoint)(nil)

// Prepare makes the out directory (0700) where it is missing and clears temporary files that a
// crash left: those of our own deliveries (Options.Mine) at once, others after a day, because
// another hub may be writing them. It is meant for the start of the hub: Send itself never makes
// a directory, because one that is missing then is most likely not mounted.
func (e *Endpoint) Prepare(dir *partner.Directory) error {
	if dir.Out == "" {
		return nil
	}
	if err := os.MkdirAll(dir.Out, 0o700); err != nil {
		return fmt.Errorf("make the out directory: %w", err)
	}
	left, err := e.leftovers(dir.Out)
	if err != nil {
		return fmt.Errorf("read the out directory: %w", err)
	}
	for _, name := range left {
		if err := os.Remove(filepath.Join(dir.Out, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("clear the out directory: %w", err)
		}
	}
	return nil
}

// leftovers lists the temporary files that nobody is writing any more.
func (e *Endpoint) leftovers(dir string) ([]string, error) {
	e.mu.Lock() // what begins later is not listed
	defer e.mu.Unlock()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	old := e.options.Clock.Now().Add(-tempAge)
	var names []string
	for _, entry := range entries {
		id, temp := parseTemp(entry.Name())
		if !temp || e.live[entry.Name()] || !entry.Type().IsRegular() {
			continue
		}
		if id != (edi.ID{}) && e.options.Mine(id) {
			names = append(names, entry.Name())
			continue
		}
		info, err := entry.Info()
		if err != nil || info.ModTime().After(old) {
			continue // It went away, or somebody is writing it.
		}
		names = append(names, entry.Name())
	}
	return names, nil
}

// parseTemp tells a temporary file, and whose it is where its name says so.
func parseTemp(name string) (edi.ID, bool) {
	middle, first := strings.CutPrefix(name, tempPrefix)
	middle, last := strings.CutSuffix(middle, tempSuffix)
	if !first || !last {
		return edi.ID{}, false
	}
	at := strings.LastIndexByte(middle, '-')
	id, err := edi.ParseID(middle[:max(0, at)])
	if err != nil {
		return edi.ID{}, true
	}
	return id, true
}

// begin makes a temporary file and remembers that it is being written; end forgets it.
func (e *Endpoint) begin(dir string, id edi.ID) (*os.File, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f, err := os.CreateTemp(dir, tempPrefix+id.String()+"-*"+tempSuffix) // CreateTemp uses mode 0600.
	if err == nil {
		e.live[filepath.Base(f.Name())] = true
	}
	return f, err
}

func (e *Endpoint) end(temp string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.live, filepath.Base(temp))
}

// Send implements send.Endpoint. The file appears under its name whole and durable, or not at
// all, and never replaces another. A repeat that finds its own file, byte for byte, is Delivered
// without a second one.
//
// When the application has taken the file away before a repeat (a crash after the rename, before
// the record), a second file of the same name appears: the application tells by {id}.
func (e *Endpoint) Send(ctx context.Context, d *send.Delivery) send.Result {
	dir := d.Connection.Directory
	if dir == nil || dir.Out == "" {
		return send.Result{Status: send.Retry, Code: CodeNotSet, Detail: oneLine("connection " + d.Connection.ID + " has no out directory: set directory.out")}
	}
	name, err := FileName(dir.Name, d)
	if err != nil {
		return send.Result{Status: send.Retry, Code: CodePattern, Detail: oneLine(err.Error())}
	}
	target := filepath.Join(dir.Out, name)
	switch there, err := e.compare(ctx, target, d); {
	case err != nil:
		return failed(err)
	case there == same:
		return e.settle(dir.Out, target)
	case there == other:
		return taken(name)
	}
	temp, err := e.write(ctx, dir.Out, d)
	if err != nil {
		return failed(err)
	}
	defer e.end(temp)
	e.options.Probe("before-rename")
	if err := e.files.rename(temp, target); err != nil {
		_ = os.Remove(temp) // What cannot be cleared now, Prepare clears later.
		return e.notRenamed(ctx, err, dir.Out, name, d)
	}
	e.options.Probe("after-rename")
	if err := e.files.syncDir(dir.Out); err != nil {
		return unsynced(err)
	}
	return send.Result{Status: send.Delivered, Proof: Proof, Detail: oneLine(target)}
}

// notRenamed looks again: another sender whose lease ran out may have put the same file there in
// the meantime.
func (e *Endpoint) notRenamed(ctx context.Context, err error, dir, name string, d *send.Delivery) send.Result {
	target := filepath.Join(dir, name)
	there, cmp := e.compare(ctx, target, d)
	switch {
	case cmp == nil && there == same:
		return e.settle(dir, target)
	case errors.Is(err, os.ErrExist):
		return taken(name)
	}
	return failed(err)
}

// settle makes sure of a file that is already in its place: whoever put it there may have
// crashed before it was durable.
func (e *Endpoint) settle(dir, target string) send.Result {
	f, _, err := openRegular(target)
	if err != nil {
		return failed(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return unsynced(err)
	}
	if err := e.files.syncDir(dir); err != nil {
		return unsynced(err)
	}
	return send.Result{Status: send.Delivered, Proof: Proof, Detail: oneLine(target + " was there already")}
}

type presence int

const (
	absent presence = iota
	same
	other
)

func (e *Endpoint) compare(ctx context.Context, target string, d *send.Delivery) (presence, error) {
	f, info, err := openRegular(target)
	switch {
	case errors.Is(err, os.ErrNotExist):
		// A missing directory looks the same; writing finds out.
		return absent, nil
	case errors.Is(err, errNotRegular), errors.Is(err, syscall.EACCES):
		return other, nil
	case err != nil:
		return absent, err
	}
	defer func() { _ = f.Close() }() // It was only read.
	if info.Size() != d.Payload.Size() {
		return other, nil
	}
	payload := &payloadReader{ctx: ctx, r: io.NewSectionReader(d.Payload, 0, d.Payload.Size())}
	eq, err := sameContent(f, payload)
	switch {
	case payload.err != nil:
		return absent, payload.err
	case err != nil:
		return absent, err
	case eq:
		return same, nil
	}
	return other, nil
}

// write puts the payload under a temporary name of the same directory, which is on the same file
// system, and makes it durable. The random part keeps two senders apart when a lease ran out.
func (e *Endpoint) write(ctx context.Context, dir string, d *send.Delivery) (path string, err error) {
	f, err := e.begin(dir, d.ID)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // The first error is the one to tell.
			_ = os.Remove(f.Name())
			e.end(f.Name())
		}
	}()
	payload := &payloadReader{ctx: ctx, r: io.NewSectionReader(d.Payload, 0, d.Payload.Size())}
	n, err := e.files.copy(f, payload)
	switch {
	case payload.err != nil:
		return "", payload.err
	case err != nil:
		return "", err
	case n != d.Payload.Size():
		return "", &payloadError{fmt.Errorf("%d of %d bytes: %w", n, d.Payload.Size(), io.ErrUnexpectedEOF)}
	}
	if e.options.FileMode != 0o600 {
		if err := f.Chmod(e.options.FileMode); err != nil {
			return "", err
		}
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	return f.Name(), nil
}

// payloadReader keeps apart what fails on our side, and stops when the context ends.
type payloadReader struct {
	ctx context.Context
	r   io.Reader
	err error
}

// payloadError is a failure of our own store.
type payloadError struct{ error }

func (e *payloadError) Unwrap() error { return e.error }

func (p *payloadReader) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		p.err = err
		return 0, err
	}
	n, err := p.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		p.err = &payloadError{fmt.Errorf("read the payload: %w", err)}
	}
	return n, err
}

func taken(name string) send.Result {
	return send.Result{
		Status: send.Retry, Code: CodeTaken,
		Detail: oneLine("another file is named " + name + ": move it away, or put {id} into the pattern of names"),
	}
}

func unsynced(err error) send.Result {
	return send.Result{Status: send.Unknown, Code: CodeSync, Detail: oneLine(err.Error())}
}

// failed names an error; nothing has got its name yet.
func failed(err error) send.Result {
	r := send.Result{Status: send.Retry, Code: CodeWrite, Detail: oneLine(err.Error())}
	var ours *payloadError
	switch {
	case errors.As(err, &ours):
		r.Code = CodePayload
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		r.Code = CodeCanceled
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		r.Code = CodeFull
	case errors.Is(err, errNoSafeRename):
		r.Code = CodeNoRename
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		r.Code = CodeMissing
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		r.Code = CodeDenied
	}
	return r
}

// oneLine makes a text fit for Result.Detail.
func oneLine(s string) string {
	out := make([]rune, 0, min(len(s), maxDetail))
	for _, c := range s {
		if len(out) == maxDetail {
			out[maxDetail-1] = '…'
			break
		}
		if !unicode.IsPrint(c) {
			c = '?'
		}
		out = append(out, c)
	}
	return string(out)
}
