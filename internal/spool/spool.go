// Package spool keeps content that is on its way: small bodies in memory, larger ones in a
// temporary file, and it counts the bytes that are in flight.
package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/edihub/edihub/internal/edi"
)

// Defaults of Options.
const (
	DefaultMemoryLimit = 256 << 10
	DefaultMinFree     = 1 << 30
	DefaultMax         = 2 << 30
)

const (
	pattern    = "edihub-spool-*"
	checkEvery = 16 << 20 // bytes written to disk between two looks at the free space
)

// The reasons for which a Spool refuses. Test with errors.Is.
var (
	// ErrDiskLow: the file system of the spool is nearly full. It passes by itself or when an
	// operator makes room; a receiver answers 503.
	ErrDiskLow = errors.New("disk nearly full")
	// ErrTooLarge: the content is beyond Options.Max. A *TooLargeError says how large it may be.
	ErrTooLarge = errors.New("content too large")
)

// TooLargeError is ErrTooLarge with the limit.
type TooLargeError struct{ Max int64 }

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("content is larger than the %d bytes that are allowed", e.Max)
}

// Is makes the error an ErrTooLarge.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// DiskLowError is ErrDiskLow with the figures, in bytes.
type DiskLowError struct {
	Dir     string
	Free    int64
	MinFree int64
}

// Error implements error.
func (e *DiskLowError) Error() string {
	return fmt.Sprintf("%s has %d bytes free and at least %d must stay free: make room or lower the limit", e.Dir, e.Free, e.MinFree)
}

// Is makes the error an ErrDiskLow.
func (e *DiskLowError) Is(target error) bool { return target == ErrDiskLow }

// Options of a Spool. A zero value means the default, a negative one switches the limit off.
type Options struct {
	MemoryLimit int64 // bytes of one Scratch that stay in memory; default 256 KiB, negative: none
	MinFree     int64 // bytes that must stay free on the file system; default 1 GiB
	Max         int64 // bytes that one Scratch may hold; default 2 GiB

	// Free tells the free bytes of the file system that holds dir. The default asks the system.
	Free func(dir string) (int64, error)
}

// Spool makes Scratches. It is safe for concurrent use.
type Spool struct {
	dir         string
	memoryLimit int64
	minFree     int64
	free        func(string) (int64, error)

	max, memory, disk atomic.Int64
}

// New returns a Spool that puts its files into dir, which is made (0700) if it is not there.
//
// A file is unlinked as soon as it is open, so a crash leaves nothing behind: the system gives
// the space back when the process ends. Only a crash in between those two calls leaves an empty
// file; New removes those.
func New(dir string, o Options) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the spool directory: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, fmt.Errorf("look into the spool directory: %w", err)
	}
	for _, name := range left {
		// Another process may be between its two calls; it does not miss the name.
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("clear the spool directory: %w", err)
		}
	}
	s := &Spool{
		dir:         dir,
		memoryLimit: limit(o.MemoryLimit, DefaultMemoryLimit, 0),
		minFree:     limit(o.MinFree, DefaultMinFree, 0),
		free:        o.Free,
	}
	s.SetMax(o.Max)
	if s.free == nil {
		s.free = freeBytes
	}
	return s, nil
}

func limit(v, byDefault, off int64) int64 {
	switch {
	case v == 0:
		return byDefault
	case v < 0:
		return off
	}
	return v
}

// SetMax changes Options.Max from now on, also for Scratches that are being written: a connection
// that is added while the hub runs may take larger messages than any before.
func (s *Spool) SetMax(n int64) { s.max.Store(limit(n, DefaultMax, 1<<63-1)) }

// NewScratch returns an empty Scratch. It refuses with ErrDiskLow when the disk is nearly full,
// even for content that would fit into memory: whatever is accepted has to be stored afterwards.
//
// The Scratch is written by one goroutine; once it is written, any number may read it.
func (s *Spool) NewScratch() (edi.Scratch, error) {
	if err := s.room(); err != nil {
		return nil, err
	}
	return &scratch{spool: s}, nil
}

// Usage returns the bytes that open Scratches hold in memory and on disk.
func (s *Spool) Usage() (memory, disk int64) { return s.memory.Load(), s.disk.Load() }

func (s *Spool) room() error {
	if s.minFree == 0 {
		return nil
	}
	free, err := s.free(s.dir)
	if err != nil {
		return fmt.Errorf("free space of the spool: %w", err)
	}
	if free < s.minFree {
		return &DiskLowError{Dir: s.dir, Free: free, MinFree: s.minFree}
	}
	return nil
}

func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	// Bavail leaves out what is reserved for root. The sizes of the fields differ by system.
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:gosec,unconvert // G115: no file system has 8 EiB free.
}

// scratch holds content in mem until that is beyond the limit; from then on mem is the write
// buffer in front of the file.
type scratch struct {
	spool *Spool

	mu      sync.RWMutex
	mem     []byte
	file    *os.File
	inFile  int64 // bytes in the file; mem follows them
	checked int64 // inFile at the last look at the free space
	closed  bool
	failed  error // a failed write to the file; the content is not whole any more
}

// Write implements io.Writer. It fails with ErrTooLarge or ErrDiskLow.
func (c *scratch) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, os.ErrClosed
	}
	if c.failed != nil {
		return 0, c.failed
	}
	if most := c.spool.max.Load(); int64(len(p)) > most-c.size() {
		return 0, &TooLargeError{Max: most}
	}
	if int64(len(c.mem)+len(p)) <= c.spool.memoryLimit {
		c.keep(p)
		return len(p), nil
	}
	if err := c.spill(p); err != nil {
		c.failed = err
		return 0, err
	}
	return len(p), nil
}

func (c *scratch) keep(p []byte) {
	c.mem = append(c.mem, p...)
	c.spool.memory.Add(int64(len(p)))
}

// spill empties the buffer into the file; p follows at once where it is itself a bufferful.
func (c *scratch) spill(p []byte) error {
	if c.file == nil {
		if err := c.create(); err != nil {
			return err
		}
	}
	if err := c.flush(); err != nil {
		return err
	}
	if int64(len(p)) < c.spool.memoryLimit {
		c.keep(p)
		return nil
	}
	return c.toFile(p)
}

func (c *scratch) create() error {
	if err := c.spool.room(); err != nil {
		return err
	}
	f, err := os.CreateTemp(c.spool.dir, pattern) // CreateTemp uses mode 0600.
	if err != nil {
		return c.diskError("open a spool file", err)
	}
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
		_ = f.Close() // The first error is the one to tell.
		return fmt.Errorf("unlink a spool file: %w", err)
	}
	c.file = f
	return nil
}

func (c *scratch) flush() error {
	if len(c.mem) == 0 {
		return nil
	}
	if err := c.toFile(c.mem); err != nil {
		return err
	}
	c.spool.memory.Add(-int64(len(c.mem)))
	c.mem = c.mem[:0]
	return nil
}

func (c *scratch) toFile(p []byte) error {
	if c.inFile-c.checked >= checkEvery {
		if err := c.spool.room(); err != nil {
			return err
		}
		c.checked = c.inFile
	}
	n, err := c.file.WriteAt(p, c.inFile)
	if err != nil {
		return c.diskError("write a spool file", err)
	}
	c.inFile += int64(n)
	c.spool.disk.Add(int64(n))
	return nil
}

func (c *scratch) diskError(doing string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%s: %w: %w", doing, ErrDiskLow, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// ReadAt implements io.ReaderAt.
func (c *scratch) ReadAt(p []byte, off int64) (int, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	switch {
	case c.closed:
		return 0, os.ErrClosed
	case c.failed != nil:
		return 0, c.failed
	case off < 0:
		return 0, errors.New("spool: negative offset")
	}
	n := 0
	if off < c.inFile {
		want := p[:min(int64(len(p)), c.inFile-off)]
		got, err := c.file.ReadAt(want, off)
		n = got
		if got < len(want) {
			// The file was truncated or the disk failed: io.EOF here would look like a short body.
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return n, fmt.Errorf("read a spool file: %w", err)
		}
	}
	if n < len(p) {
		if at := off + int64(n) - c.inFile; at < int64(len(c.mem)) {
			n += copy(p[n:], c.mem[at:])
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Size returns the bytes written so far.
func (c *scratch) Size() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.size()
}

func (c *scratch) size() int64 { return c.inFile + int64(len(c.mem)) }

// Close gives back memory and disk space. Closing twice is allowed.
func (c *scratch) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	c.spool.memory.Add(-int64(len(c.mem)))
	c.spool.disk.Add(-c.inFile)
	c.mem = nil
	if c.file == nil {
		return nil
	}
	if err := c.file.Close(); err != nil {
		return fmt.Errorf("close a spool file: %w", err)
	}
	return nil
}
