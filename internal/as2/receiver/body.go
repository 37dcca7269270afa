package receiver

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/spool"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// readUntil sets the deadline for reading; the zero time takes it away. A connection that has no
// deadlines (a test's recorder) has none to keep either.
func (x *exchange) readUntil(at time.Time) { _ = x.rc.SetReadDeadline(at) }

// writeUntil bounds what is written, d from now; 0 takes the bound away.
func (x *exchange) writeUntil(d time.Duration) {
	var at time.Time
	if d > 0 {
		at = x.wall.Now().Add(d)
	}
	_ = x.rc.SetWriteDeadline(at)
}

// unread bounds how long the server may wait for the rest of a body that nobody wants.
func (x *exchange) unread() { x.readUntil(x.wall.Now().Add(x.Limits.Drain)) }

// watched is the body of a request under watch: each window of time must bring its share of
// bytes, else the connection's deadline ends the read.
type watched struct {
	x      *exchange
	share  int64 // bytes of a window
	got    int64 // in this window
	end    time.Time
	failed error // of the connection, to tell it from failures of our own
}

func (x *exchange) watch() *watched {
	b := &watched{x: x, share: max(1, int64(float64(x.Limits.MinBodyRate)*x.Limits.RateWindow.Seconds())), end: x.wall.Now().Add(x.Limits.BodyTimeout)}
	b.nextWindow()
	return b
}

func (b *watched) nextWindow() {
	b.got = 0
	at := b.x.wall.Now().Add(b.x.Limits.RateWindow)
	if at.After(b.end) {
		at = b.end
	}
	b.x.readUntil(at)
}

func (b *watched) Read(p []byte) (int, error) {
	n, err := b.x.r.Body.Read(p)
	if b.got += int64(n); b.got >= b.share && err == nil {
		b.nextWindow()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed = err
	}
	return n, err
}

// readBody takes the body into scratch space, or answers why not and returns nil.
func (x *exchange) readBody(bytes *spool.Reservation) edi.Scratch {
	wire, err := x.Spool.NewScratch()
	if err != nil {
		x.unread()
		x.unavailable("spool", err)
		return nil
	}
	body, limit := x.watch(), x.maxBody()
	buffer, _ := x.buffers.Get().(*[]byte)
	n, err := io.CopyBuffer(onlyWriter{wire}, io.LimitReader(bytes.Reader(body), limit+1), *buffer)
	x.buffers.Put(buffer)
	if err == nil && n <= limit {
		x.readUntil(time.Time{})
		return wire
	}
	_ = wire.Close() // Its file is unlinked already, and there is something else to tell.
	var full *spool.MeterError
	switch {
	case err == nil || errors.Is(err, spool.ErrTooLarge):
		x.tooLarge()
	case errors.As(err, &full):
		x.unread()
		x.busy(full)
	case body.failed == nil:
		x.unread()
		x.unavailable("spool", err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		x.report(ResultTooSlow, "", zap.Int64("bytes", n))
		x.w.Header().Set("Connection", "close")
		x.text(http.StatusRequestTimeout, "The body came too slowly. Send at least "+itoa(x.Limits.MinBodyRate)+" bytes a second.")
	default:
		x.report(ResultCutOff, "", zap.Int64("bytes", n), zap.Error(err))
		x.w.Header().Set("Connection", "close")
		x.text(http.StatusBadRequest, "The body ended before it was complete. Send the message again.")
	}
	return nil
}

// onlyWriter hides every other method, so that the copy uses the buffer it is given.
type onlyWriter struct{ io.Writer }
