package directory

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/edi"
)

const (
	doneMark  = ".done"
	claimMark = "~" // between claim and name in work/
	batch     = 256 // files claimed before they are handed over
	maxPanics = 3
)

// candidate is a file that may be taken.
type candidate struct {
	name      string
	info      os.FileInfo
	marked    bool // a "<name>.done" lies beside it
	announced bool // and is about this file
}

// claimReady moves what is ready to work/, the oldest first.
func (p *Poller) claimReady() (int, error) {
	ready, err := p.scan()
	if err != nil {
		return 0, err
	}
	slices.SortStableFunc(ready, func(a, b candidate) int {
		if c := a.info.ModTime().Compare(b.info.ModTime()); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	n := 0
	for _, c := range ready[:min(len(ready), batch)] {
		ok, err := p.claim(c)
		if err != nil {
			return n, err
		}
		if ok {
			n++
		}
	}
	if n == 0 {
		return 0, nil
	}
	// The claim's name must not change by a power cut once Accept has seen it.
	if err := syncDir(p.folder(workFolder)); err != nil {
		return n, fmt.Errorf("sync work/: %w", err)
	}
	return n, nil
}

// scan lists the files that stood still long enough or were announced.
func (p *Poller) scan() ([]candidate, error) {
	entries, err := os.ReadDir(p.in)
	if err != nil {
		return nil, fmt.Errorf("read the in directory: %w", err)
	}
	var files []candidate
	marks := map[string]time.Time{}
	for _, e := range entries {
		mark := strings.HasSuffix(e.Name(), doneMark)
		if !mark && ignored(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // It went away.
		}
		if mark {
			marks[strings.TrimSuffix(e.Name(), doneMark)] = info.ModTime()
			continue
		}
		files = append(files, candidate{name: e.Name(), info: info})
	}
	now := p.options.Clock.Now()
	stableFor := positive(p.options.Directory.StableFor, DefaultStableFor)
	seen := make(map[string]sighting, len(files))
	var ready []candidate
	for _, c := range files {
		s, known := p.seen[c.name]
		if !known || s.size != c.info.Size() || !s.modTime.Equal(c.info.ModTime()) {
			s = sighting{size: c.info.Size(), modTime: c.info.ModTime(), since: now}
		}
		seen[c.name] = s
		// A mark older than its file announced another file of that name.
		at, marked := marks[c.name]
		c.marked, c.announced = marked, marked && !at.Before(c.info.ModTime())
		if c.announced || c.info.Size() > 0 && now.Sub(s.since) >= stableFor {
			ready = append(ready, c)
		}
	}
	p.seen = seen
	return ready, nil
}

func ignored(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".part")
}

// claim moves one file to work/; false means that somebody else took it.
func (p *Poller) claim(c candidate) (bool, error) {
	err := renameNew(filepath.Join(p.in, c.name), filepath.Join(p.folder(workFolder), p.claimedName(c.name)))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("claim a file: %w", err)
	}
	delete(p.seen, c.name)
	if c.marked {
		if err := os.Remove(filepath.Join(p.in, c.name+doneMark)); err != nil && !errors.Is(err, os.ErrNotExist) {
			// It does no harm: a later file of that name will be younger.
			p.options.Logger.Warn("directory_mark_stays", zap.String("file", oneLine(c.name)), zap.Error(err))
		}
	}
	return true, nil
}

// claimedName begins with an id that rises with each claim, so that work/ keeps the order.
func (p *Poller) claimedName(name string) string {
	now := p.options.Clock.Now().Truncate(time.Millisecond)
	if !now.After(p.last) {
		now = p.last.Add(time.Millisecond)
	}
	p.last = now
	return edi.NewID(now).String() + claimMark + shorten(name)
}

// parseClaim takes the name of a file in work/ apart.
func parseClaim(entry string) (claim edi.ID, name string, ok bool) {
	text, name, found := strings.Cut(entry, claimMark)
	if !found || name == "" {
		return edi.ID{}, "", false
	}
	claim, err := edi.ParseID(text)
	return claim, name, err == nil
}

// drain hands over what lies in work/, the oldest claim first, until one has to wait.
func (p *Poller) drain(ctx context.Context, quit <-chan struct{}) error {
	work := p.folder(workFolder)
	entries, err := os.ReadDir(work)
	if err != nil {
		return fmt.Errorf("read work/: %w", err)
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || e.IsDir() {
			continue
		}
		claim, _, ok := parseClaim(name)
		if !ok {
			// Somebody put it here by hand.
			adopted := p.claimedName(name)
			if err := renameNew(filepath.Join(work, name), filepath.Join(work, adopted)); err != nil {
				return fmt.Errorf("claim a file in work/: %w", err)
			}
			names = append(names, adopted)
			continue
		}
		if t := claim.Time(); t.After(p.last) {
			p.last = t // Claims rise across restarts too.
		}
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if stopping(ctx, quit) {
			return nil
		}
		if err := p.handOver(ctx, name); err != nil {
			if ctx.Err() == nil {
				p.pause()
			}
			return err
		}
		p.failures = 0
	}
	return nil
}

// pause doubles with each failure in a row.
func (p *Poller) pause() {
	wait := p.options.RetryMax
	if p.failures < 30 {
		wait = min(wait, p.options.RetryFirst<<p.failures)
	}
	p.failures++
	p.until = p.options.Clock.Now().Add(wait)
}

// handOver gives one file of work/ to Accept and puts it where it belongs. An error leaves it.
func (p *Poller) handOver(ctx context.Context, entry string) error {
	claim, name, _ := parseClaim(entry)
	path := filepath.Join(p.folder(workFolder), entry)
	f, info, err := openRegular(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil // An operator took it away.
	case errors.Is(err, errNotRegular):
		return p.finish(path, name, claim, nil, Outcome{Refused: true, Code: CodeNotRegular, Reason: "only plain files are taken"})
	case err != nil:
		return fmt.Errorf("open a file in work/: %w", err)
	}
	defer func() { _ = f.Close() }() // It was only read.
	file := &File{Connection: p.options.Connection, Name: name, Path: path, Claim: claim, Size: info.Size(), ModTime: info.ModTime()}
	if file.Size > p.options.MaxSize {
		reason := fmt.Sprintf("the file has %d bytes, %d are allowed", file.Size, p.options.MaxSize)
		return p.finish(path, name, claim, file, Outcome{Refused: true, Code: CodeTooLarge, Reason: reason})
	}
	if err := file.measure(f); err != nil {
		return err
	}
	outcome, err := p.accept(ctx, file)
	if err != nil {
		return fmt.Errorf("take over %s: %w", oneLine(name), err)
	}
	return p.finish(path, name, claim, file, outcome)
}

// measure reads the file once for its hash, and notices a writer that had only paused.
func (f *File) measure(from *os.File) error {
	f.Content = io.NewSectionReader(from, 0, f.Size)
	h := sha256.New()
	n, err := io.Copy(h, io.NewSectionReader(from, 0, f.Size))
	if err != nil {
		return fmt.Errorf("read a file in work/: %w", err)
	}
	info, err := from.Stat()
	if err != nil {
		return fmt.Errorf("look at a file in work/: %w", err)
	}
	if n != f.Size || info.Size() != f.Size || !info.ModTime().Equal(f.ModTime) {
		return fmt.Errorf("%s is still being written: raise stable_for", oneLine(f.Name))
	}
	copy(f.SHA256[:], h.Sum(nil))
	f.Key = key(f.Connection, f.Name, f.SHA256)
	return nil
}

// key hashes the three parts with their lengths, so that no two lists of parts look alike.
func key(connection, name string, content [32]byte) string {
	h := sha256.New()
	for _, part := range []string{connection, name, string(content[:])} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return "dir:" + hex.EncodeToString(h.Sum(nil))
}

// accept calls Accept. A file that makes it panic comes again like after any failure, and is
// refused after three times: it must not stop those behind it for ever.
func (p *Poller) accept(ctx context.Context, f *File) (outcome Outcome, err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		p.panics[f.Claim]++
		p.options.Logger.Error("directory_accept_panic", zap.String("file", oneLine(f.Name)), zap.ByteString("stack", debug.Stack()))
		if p.panics[f.Claim] < maxPanics {
			err = errors.New("the hub failed on this file")
			return
		}
		outcome, err = Outcome{Refused: true, Code: CodePanic, Reason: "the hub failed on this file three times; see its log"}, nil
	}()
	return p.options.Accept(ctx, f)
}

// finish moves a file to done/ or error/. file is nil where there was nothing to read.
func (p *Poller) finish(path, name string, claim edi.ID, file *File, o Outcome) error {
	folder := doneFolder
	if o.Refused {
		folder = errorFolder
	}
	target, err := p.move(path, folder, name, claim)
	if err != nil {
		return fmt.Errorf("move a file to %s/: %w", folder, err)
	}
	delete(p.panics, claim)
	if !o.Refused {
		p.options.Logger.Info("directory_file_taken", zap.String("file", oneLine(name)), zap.Int64("bytes", file.Size), zap.String("claim", claim.String()))
		return nil
	}
	p.options.Logger.Warn("directory_file_refused", zap.String("file", oneLine(name)), zap.String("code", o.Code), zap.String("claim", claim.String()))
	if err := writeNew(target+".error.txt", p.report(name, claim, file, o)); err != nil {
		// The file is where it belongs and the reason is in the log: nothing to try again.
		p.options.Logger.Warn("directory_reason_not_written", zap.String("file", oneLine(name)), zap.Error(err))
	}
	return nil
}

func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// move never overwrites: a name that is taken gets the claim before its extension.
func (p *Poller) move(path, folder, name string, claim edi.ID) (string, error) {
	target := filepath.Join(p.folder(folder), name)
	_, err := os.Lstat(target + ".error.txt")
	if errors.Is(err, os.ErrNotExist) {
		if err = renameNew(path, target); err == nil || !errors.Is(err, os.ErrExist) {
			return target, err
		}
	}
	ext := filepath.Ext(name)
	target = filepath.Join(p.folder(folder), strings.TrimSuffix(name, ext)+"."+claim.String()+ext)
	return target, renameNew(path, target)
}

// report is the text beside a refused file.
func (p *Poller) report(name string, claim edi.ID, file *File, o Outcome) []byte {
	var b strings.Builder
	line := func(key, value string) { b.WriteString(key + ": " + oneLine(value) + "\n") }
	line("file", name)
	line("connection", p.options.Connection)
	line("code", o.Code)
	line("reason", o.Reason)
	line("time", p.options.Clock.Now().UTC().Format(time.RFC3339))
	line("claim", claim.String())
	if file != nil {
		line("size", fmt.Sprintf("%d bytes", file.Size))
	}
	if file != nil && file.Key != "" {
		line("sha256", hex.EncodeToString(file.SHA256[:]))
	}
	return []byte(b.String())
}
