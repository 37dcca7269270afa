package dial

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"sync/atomic"
)

// Kind says how a request failed.
type Kind int

// The kinds of failure. After Refused, Blocked and TLS the other side has seen no byte of the
// request; after Cut and Timeout see Error.Sent.
const (
	// OK: there is no error.
	OK Kind = iota
	// Refused: there was no connection: the name is unknown, nobody listens, no route, or
	// connecting took too long.
	Refused
	// Cut: the connection broke.
	Cut
	// Timeout: a time limit was over.
	Timeout
	// Blocked: the address is one that the policy keeps shut; the cause is a *BlockedError.
	Blocked
	// TLS: the handshake failed, for example because the certificate is not trusted.
	TLS
	// Canceled: the caller gave up.
	Canceled
)

// String returns the kind in a form that fits a stable code.
func (k Kind) String() string {
	return [...]string{"ok", "refused", "cut", "timeout", "blocked-address", "tls", "canceled"}[k]
}

// Error is a failed request.
type Error struct {
	Kind Kind
	// Sent says that a part of the request may have left: the other side may have acted on it.
	Sent bool
	Err  error
}

// Error implements error.
func (e *Error) Error() string { return e.Kind.String() + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Do sends a request with a client of this package. Its errors are *Error and know whether a
// part of the request may have left. The URL, which may hold secrets, is not in them.
func Do(client *http.Client, req *http.Request) (*http.Response, error) {
	var sent atomic.Bool
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		// The header is written before the body and may be flushed any time after this.
		WroteHeaderField: func(string, []string) { sent.Store(true) },
	})
	resp, err := client.Do(req.WithContext(ctx))
	if err == nil {
		return resp, nil
	}
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // There is an error already.
	}
	kind, maySent := classify(err)
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	var known *Error
	if errors.As(err, &known) {
		err = known.Err
	}
	return nil, &Error{Kind: kind, Sent: maySent && sent.Load(), Err: err}
}

// Classify tells the kind of any error that a client of this package returned, while asking or
// while reading the answer.
func Classify(err error) Kind {
	k, _ := classify(err)
	return k
}

// MayHaveArrived reports whether the other side may have acted on the request that ended in err.
// An error that is not from Do counts as sent unless its kind excludes it.
func MayHaveArrived(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.Sent
	}
	_, sent := classify(err)
	return sent
}

func classify(err error) (kind Kind, maySent bool) {
	if err == nil {
		return OK, false
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Kind, e.Sent
	}
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return Canceled, true
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return Timeout, true
	}
	return Cut, true
}
