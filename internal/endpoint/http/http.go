// Package http is the endpoint that posts deliveries to an application over HTTP.
package http

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/endpoint/dial"
	"github.com/edihub/edihub/internal/pipeline/send"
)

// Proof is what a 2xx answer counts as.
const Proof = "http-2xx"

// The codes of a Result beside "HTTP_" and the status of the answer.
const (
	CodeURL      = "HTTP_URL"          // the URL of the connection is no good
	CodePayload  = "PAYLOAD_READ"      // our own store did not give the bytes
	CodeRefused  = "CONNECT_REFUSED"   // no connection
	CodeCut      = "CONNECTION_CUT"    // the connection broke
	CodeTimeout  = "TIMEOUT"           // a time limit was over
	CodeBlocked  = "ADDRESS_BLOCKED"   // the address is kept shut
	CodeTLS      = "TLS"               // the handshake failed
	CodeCanceled = "CANCELED"          // we stopped
	CodeEarly    = "HTTP_EARLY_ANSWER" // a 2xx came before the whole body was sent
)

// DefaultMaxRetryAfter is the longest Retry-After that is honoured unless Options say otherwise.
const DefaultMaxRetryAfter = time.Hour

const maxDetail = 200 // characters of Result.Detail

// Options of an Endpoint.
type Options struct {
	Dialer        *dial.Dialer  // required
	Clock         clock.Clock   // default clock.System
	Timeouts      dial.Timeouts // default as in dial
	MaxRetryAfter time.Duration // default 1 h
	UserAgent     string        // default "edihub"
}

// Endpoint posts deliveries. It is safe for concurrent use and never retries by itself.
type Endpoint struct{ options Options }

// New returns an Endpoint.
func New(o Options) *Endpoint {
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.MaxRetryAfter == 0 {
		o.MaxRetryAfter = DefaultMaxRetryAfter
	}
	if o.UserAgent == "" {
		o.UserAgent = "edihub"
	}
	return &Endpoint{options: o}
}

var _ send.Endpoint = (*Endpoint)(nil)

// IdempotencyKey is the key under which the application recognises a repeat: the delivery's id,
// the same for each retry. A resend "as new" is meant to be processed again, so from
// generation 1 on the generation is a part of it: "<id>-g1".
func IdempotencyKey(d *send.Delivery) string {
	if d.Generation <= 0 {
		return d.ID.String()
	}
	return d.ID.String() + "-g" + strconv.Itoa(d.Generation)
}

// Send implements send.Endpoint. A 2xx is Delivered; 408, 425, 429 and 5xx are Retry; another 4xx
// is Failed, and so is a redirect, which only a new URL can mend. Without an answer it is Retry as
// long as no byte of the request left, and Unknown after that.
func (e *Endpoint) Send(ctx context.Context, d *send.Delivery) send.Result {
	body := &countedBody{r: io.NewSectionReader(d.Payload, 0, d.Payload.Size()), size: d.Payload.Size()}
	req, result := e.request(ctx, d, body)
	if req == nil {
		return result
	}
	policy := dial.PolicyFor(d.Connection, d.Own, e.options.Clock.Now())
	policy.Timeouts = e.options.Timeouts
	resp, err := dial.Do(e.options.Dialer.Client(policy), req)
	if err != nil {
		_, unread := body.shut()
		return failure(err, unread)
	}
	// The status line is the proof; the body is read so that the connection can be used again.
	// What goes wrong from here on changes nothing.
	_, _, _ = dial.ReadAnswer(resp)
	left, _ := body.shut()
	return e.answer(resp, left)
}

func (e *Endpoint) request(ctx context.Context, d *send.Delivery, body *countedBody) (*http.Request, send.Result) {
	if d.Connection.HTTP == nil {
		return nil, send.Result{Status: send.Retry, Code: CodeURL, Detail: "connection " + d.Connection.ID + " has no http settings"}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.Connection.HTTP.URL, nil)
	if err == nil {
		err = config.CheckURL(d.Connection.HTTP.URL, "https", "http")
	} else {
		err = errNoURL // The original quotes the URL, which may hold a password.
	}
	if err != nil {
		return nil, send.Result{Status: send.Retry, Code: CodeURL, Detail: oneLine("URL of connection " + d.Connection.ID + ": " + err.Error())}
	}
	req.ContentLength = body.size
	req.Body = io.NopCloser(body)
	if body.size == 0 {
		req.Body = http.NoBody
	}
	e.headers(req.Header, d)
	if key := d.Connection.HTTP.HMACKey; !key.Empty() {
		sig, err := Sign(key.Reveal(), e.options.Clock.Now(), d.Payload)
		if err != nil {
			return nil, send.Result{Status: send.Retry, Code: CodePayload, Detail: oneLine(err.Error())}
		}
		req.Header.Set("X-Edihub-Signature", sig)
	}
	return req, send.Result{}
}

func (e *Endpoint) headers(h http.Header, d *send.Delivery) {
	h.Set("User-Agent", e.options.UserAgent)
	h.Set("Content-Type", media(d.Media))
	h.Set("Idempotency-Key", IdempotencyKey(d))
	h.Set("X-Edihub-Delivery", d.ID.String())
	for name, value := range map[string]string{
		"X-Edihub-Message-Id":  d.MessageID,
		"X-Edihub-Standard":    string(d.Standard),
		"X-Edihub-Type":        d.Type,
		"X-Edihub-Sender":      d.Sender,
		"X-Edihub-Receiver":    d.Receiver,
		"X-Edihub-Control-Ref": d.ControlRef,
	} {
		if value != "" {
			h.Set(name, headerValue(value))
		}
	}
}

// media falls back to the type of plain bytes where a type would break the header.
func media(m string) string {
	if m == "" || headerValue(m) != m {
		return "application/octet-stream"
	}
	return m
}

// headerValue percent-encodes what a header value cannot carry: control characters, bytes beyond
// ASCII, and the percent sign itself (RFC 3986 §2.1, RFC 9110 §5.5).
func headerValue(s string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' {
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Sign returns the value of X-Edihub-Signature, "t=<Unix seconds>,v1=<hex>": HMAC-SHA256 under
// the connection's key over the same seconds in decimal, a full stop, and the body. It reads the
// body once and holds none of it.
func Sign(key string, now time.Time, body edi.Source) (string, error) {
	t := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = io.WriteString(mac, t+".") // A hash never fails.
	if _, err := io.Copy(mac, io.NewSectionReader(body, 0, body.Size())); err != nil {
		return "", fmt.Errorf("sign the payload: %w", err)
	}
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil)), nil
}

// ErrSignature is returned by Verify.
var ErrSignature = errors.New("signature does not match")

// Verify checks a signature as an application does: the body is the one that was signed with the
// key, not longer ago than tolerance and not in the future by more than that.
func Verify(key, signature string, now time.Time, tolerance time.Duration, body edi.Source) error {
	t, _, _ := strings.Cut(strings.TrimPrefix(signature, "t="), ",")
	seconds, err := strconv.ParseInt(t, 10, 64)
	if err != nil {
		return ErrSignature
	}
	at := time.Unix(seconds, 0)
	if now.Sub(at).Abs() > tolerance {
		return fmt.Errorf("%w: signed at %s", ErrSignature, at.UTC().Format(time.RFC3339))
	}
	want, err := Sign(key, at, body)
	if err != nil {
		return err
	}
	if !hmac.Equal([]byte(want), []byte(signature)) {
		return ErrSignature
	}
	return nil
}

// answer turns the status line into a result.
func (e *Endpoint) answer(resp *http.Response, left int64) send.Result {
	r := send.Result{Code: "HTTP_" + strconv.Itoa(resp.StatusCode), Detail: oneLine("HTTP " + resp.Status)}
	switch code := resp.StatusCode; {
	case code >= 200 && code <= 299:
		if left > 0 {
			// Nobody can have taken what was not sent yet.
			r.Status, r.Code = send.Unknown, CodeEarly
			return r
		}
		return send.Result{Status: send.Delivered, Proof: Proof, Detail: r.Detail}
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500, code < 200:
		r.Status, r.After = send.Retry, e.retryAfter(resp.Header.Get("Retry-After"))
	case code >= 300 && code <= 399:
		r.Status = send.Failed
		r.Detail = oneLine(r.Detail + ": redirects are not followed, set the URL to the place that takes the data")
	default:
		r.Status = send.Failed
	}
	return r
}

// retryAfter reads RFC 9110 §10.2.3: seconds or a date. What it cannot read is 0.
func (e *Endpoint) retryAfter(v string) time.Duration {
	v = strings.TrimSpace(v)
	if v == "" {
		return 0
	}
	longest := e.options.MaxRetryAfter
	if strings.Trim(v, "0123456789") == "" {
		seconds, err := strconv.ParseInt(v, 10, 64)
		if err != nil || seconds > int64(longest/time.Second) {
			return longest // A number too large to read is too long to wait as well.
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return min(max(0, at.Sub(e.options.Clock.Now())), longest)
}

// failure turns an error without an answer into a result. unread says that our own payload could
// not be read.
func failure(err, unread error) send.Result {
	r := send.Result{Status: send.Retry, Detail: oneLine(err.Error())}
	if dial.MayHaveArrived(err) {
		r.Status = send.Unknown
	}
	switch dial.Classify(err) {
	case dial.Refused, dial.OK:
		r.Code = CodeRefused
	case dial.Cut:
		r.Code = CodeCut
	case dial.Timeout:
		r.Code = CodeTimeout
	case dial.Blocked:
		r.Code = CodeBlocked
	case dial.TLS:
		r.Code = CodeTLS
	case dial.Canceled:
		r.Code = CodeCanceled
	}
	if unread != nil {
		r.Code, r.Detail = CodePayload, oneLine(unread.Error())
	}
	return r
}

var errNoURL = errors.New("this is not a URL")

// oneLine makes a text fit for Result.Detail: printable, one line, at most 200 characters.
func oneLine(s string) string {
	out := make([]rune, 0, min(len(s), maxDetail))
	for _, c := range s {
		if len(out) == maxDetail {
			out[maxDetail-1] = '…'
			break
		}
		if !unicode.IsPrint(c) || c == unicode.ReplacementChar {
			c = '?'
		}
		out = append(out, c)
	}
	return string(out)
}

// errShut is what the transport reads once Send is over.
var errShut = errors.New("the request is over")

// countedBody is the payload on its way. The transport reads it in a goroutine of its own, which
// may outlive the answer; shut makes sure that the payload is left alone afterwards.
type countedBody struct {
	size int64

	mu   sync.Mutex
	r    io.Reader
	read int64
	err  error // of the payload
	over bool
}

func (b *countedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return 0, errShut
	}
	n, err := b.r.Read(p)
	b.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = fmt.Errorf("read the payload: %w", err)
	}
	return n, err
}

// shut ends reading and tells how much was not read, and what went wrong with the payload.
func (b *countedBody) shut() (left int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	return b.size - b.read, b.err
}
