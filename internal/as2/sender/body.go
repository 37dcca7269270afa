package sender

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/edihub/edihub/internal/edi"
)

// errShut is what the transport reads once Send is over.
var errShut = errors.New("the request is over")

// errPayload marks what our own store did not give.
var errPayload = errors.New("the payload cannot be read")

// marked is the payload, with errPayload in the errors of reading it.
type marked struct{ edi.Source }

// ReadAt implements io.ReaderAt.
func (m marked) ReadAt(p []byte, off int64) (int, error) {
	n, err := m.Source.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", errPayload, err)
	}
	return n, err
}

// guarded is the body on its way. The transport reads it in a goroutine of its own, which may
// outlive the answer; shut makes sure that the source is left alone afterwards.
type guarded struct {
	src edi.Source

	mu   sync.Mutex
	turn int   // readers before the last one get nothing any more
	read int64 // by the last reader
	err  error // of the source
	over bool
}

// reader begins at the start.
func (g *guarded) reader() io.ReadCloser {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turn++
	g.read = 0
	return &guardedReader{g: g, turn: g.turn}
}

type guardedReader struct {
	g    *guarded
	turn int
}

// Read implements io.Reader.
func (r *guardedReader) Read(p []byte) (int, error) {
	g := r.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over || r.turn != g.turn {
		return 0, errShut
	}
	left := g.src.Size() - g.read
	if left <= 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > left {
		p = p[:left]
	}
	n, err := g.src.ReadAt(p, g.read)
	g.read += int64(n)
	switch {
	case err == nil || n == len(p) && errors.Is(err, io.EOF):
		return n, nil
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	g.err = fmt.Errorf("read the message: %w", err)
	return n, g.err
}

// Close implements io.Closer.
func (r *guardedReader) Close() error { return nil }

// shut ends reading and tells how much was not read, and what went wrong with the source.
func (g *guarded) shut() (left int64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	return g.src.Size() - g.read, g.err
}
