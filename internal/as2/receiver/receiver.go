// Package receiver is the door for AS2: it takes messages over HTTP, judges them before and after
// their body was read, makes what is accepted durable, and answers with the MDN.
//
// The order is the promise. Names and size are judged from the headers, so that nothing is stored
// for those whom we do not know. What goes on is the byte range that a signature covers. The MDN
// is finished before the message is accepted and becomes durable in the accepting transaction, so
// that a repeat gets the same bytes; it leaves after the commit and never before. The Message-ID
// is claimed in that transaction too, with content that was verified: what is refused claims
// nothing and so blocks nothing.
//
// Asynchronous MDNs (Receipt-Delivery-Option, RFC 4130 §7.2) are not posted: a message that asks
// for one is processed as any other, and its MDN is the body of the answer to the request.
package receiver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/spool"
	"github.com/edihub/edihub/internal/store"
)

// The paths that are served. Either takes messages and MDNs.
const (
	Path    = "/as2"
	PathMDN = "/as2/mdn"
)

// Results that the Observer is told, one for each request.
const (
	ResultAccepted    = "accepted"
	ResultRepeated    = "repeated"
	ResultRefused     = "refused"
	ResultQuarantined = "quarantined"
	ResultHeld        = "held"
	ResultBadRequest  = "bad_request"  // no AS2 headers
	ResultUnknownPair = "unknown_pair" // nothing is stored
	ResultBusy        = "busy"         // too many bytes or requests at the same time
	ResultUnavailable = "unavailable"  // disk or store
	ResultTooSlow     = "too_slow"
	ResultCutOff      = "cut_off" // the body never came to its end
)

// Codes of transmissions that are refused here; those of package as2 come beside them.
const (
	CodeEmpty         = "EMPTY_PAYLOAD"
	CodeTooLarge      = "MESSAGE_TOO_LARGE"
	CodeContentCoding = "CONTENT_CODING"
	CodeRepeat        = "AS2_REPEAT"
	CodeAsyncMDN      = "ASYNC_MDN_UNSUPPORTED"
)

// Pipeline is what the receiver needs of the pipeline; *pipeline.Pipeline is one.
type Pipeline interface {
	Accept(ctx context.Context, a *pipeline.Arrival) error
	Keep(ctx context.Context, a *pipeline.Arrival) error
	Registry() *partner.Registry
}

// Store is what the receiver needs of the store; store.Store is one.
type Store interface {
	StageBody(ctx context.Context, src edi.Source) (*store.Body, error)
	GetTransmission(ctx context.Context, id edi.ID) (*store.Transmission, error)
}

// Observer is told what became of each request. The partner is the id of the connection, empty
// where it is not known. It must be quick and safe for concurrent use.
type Observer interface {
	Received(partner, result string)
}

// Limits of the receiver. A zero field has the default.
type Limits struct {
	Requests    int           // bodies being received at the same time; default 1,024; a partner may have a quarter, a source address half
	MinBodyRate int64         // bytes a second below which a body is cut off; default 1 KiB/s
	RateWindow  time.Duration // over which the rate is measured; default 10 s
	BodyTimeout time.Duration // until the body is complete; default 2 h
	Answer      time.Duration // until the answer is written; default 30 s
	Drain       time.Duration // for the rest of a body that nobody wants; default 5 s
	Store       time.Duration // until the store has taken a message; default 30 s, and a second for each MiB

	// What is refused under a partner's name costs space, and anybody can use the name. These
	// bound it for each connection and hour. Beyond those on bodies only the row is kept, beyond
	// the one on rows only the log tells.
	KeptRows   int   // rows; default 10,000
	KeptBodies int   // bodies; default 100
	KeptBytes  int64 // bytes of all of them; default 256 MiB
	KeptSize   int64 // bytes of one body; default 16 MiB
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.Requests, 1024)
	setDefault(&l.MinBodyRate, 1<<10)
	setDefault(&l.RateWindow, 10*time.Second)
	setDefault(&l.BodyTimeout, 2*time.Hour)
	setDefault(&l.Answer, 30*time.Second)
	setDefault(&l.Drain, 5*time.Second)
	setDefault(&l.Store, 30*time.Second)
	setDefault(&l.KeptRows, 10000)
	setDefault(&l.KeptBodies, 100)
	setDefault(&l.KeptBytes, 256<<20)
	setDefault(&l.KeptSize, 16<<20)
	return l
}

func setDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// DefaultWindow is how long a Message-ID is remembered.
const DefaultWindow = 30 * 24 * time.Hour

// Options of New. Pipeline, Store and Spool are required.
type Options struct {
	Pipeline   Pipeline
	Store      Store
	Spool      *spool.Spool
	Meter      *spool.Meter // bytes in flight; default: one with its own defaults
	Clock      clock.Clock  // default clock.System
	Log        *zap.Logger  // one event for each request, never payload; default none
	MaxMessage int64        // bytes on the wire where the connection says nothing; default 2 GiB
	Observer   Observer     // default none
	// Probe is called at named points ("before-mdn": all is durable and no byte of the answer has
	// left; "after-mdn"), so that a test can stop the process there.
	Probe   func(point string)
	Limits  Limits
	Window  time.Duration // how long a Message-ID is remembered; default 30 days
	Domain  string        // of our Message-IDs; default "edihub"
	Product string        // Reporting-UA of the MDN and Server of the answer; default "edihub"
	// Policy gives the algorithms and limits of CMS that hold for a connection; default: all.
	Policy func(c *partner.Connection) cms.Policy
}

type noObserver struct{}

func (noObserver) Received(string, string) {}

type receiver struct {
	Options
	requests *spool.Meter // counts requests, not bytes
	kept     budget
	turns    turns
	buffers  sync.Pool
	// wall is the machine's clock: deadlines of connections are the kernel's and follow no other.
	wall clock.Clock
}

// New returns the handler of both paths. It holds no goroutine.
func New(o Options) http.Handler {
	if o.Meter == nil {
		o.Meter = spool.NewMeter(spool.Limits{})
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Observer == nil {
		o.Observer = noObserver{}
	}
	if o.Probe == nil {
		o.Probe = func(string) {}
	}
	if o.Domain == "" {
		o.Domain = "edihub"
	}
	if o.Product == "" {
		o.Product = "edihub"
	}
	if o.Policy == nil {
		o.Policy = func(*partner.Connection) cms.Policy { return cms.Policy{} }
	}
	setDefault(&o.MaxMessage, spool.DefaultMax)
	setDefault(&o.Window, DefaultWindow)
	o.Limits = o.Limits.withDefaults()
	n := int64(o.Limits.Requests)
	return &receiver{
		Options:  o,
		requests: spool.NewMeter(spool.Limits{Total: n, PerPartner: max(1, n/4), PerSource: max(1, n/2)}),
		kept:     budget{limits: o.Limits},
		buffers:  sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }},
		wall:     clock.System{},
	}
}

// ServeHTTP implements http.Handler.
func (s *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{receiver: s, w: w, r: r, rc: http.NewResponseController(w), source: sourceOf(r.RemoteAddr), remote: remoteHost(r.RemoteAddr), at: s.Clock.Now()}
	defer x.panicked()
	// The deadlines of a kept connection are those of the request before.
	x.writeUntil(0)
	w.Header().Set("Server", s.Product)
	switch {
	case r.URL.Path != Path && r.URL.Path != PathMDN:
		x.text(http.StatusNotFound, "Nothing is here. AS2 messages go to "+Path+".")
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		x.text(http.StatusMethodNotAllowed, "This is an AS2 endpoint. Send messages with POST.")
		return
	}
	x.id = edi.NewID(x.at)
	x.run()
}

// panicked ends the connection of a request that made us panic, so that its sender sends again.
// net/http would do the same and log the value of the panic, which may hold payload.
func (x *exchange) panicked() {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
		x.Log.Error("as2_panic", zap.String("id", x.id.String()), zap.String("panic", pipeline.PanicText(v)), zap.Stack("stack"))
	}
	panic(http.ErrAbortHandler)
}

// exchange is one request on its way.
type exchange struct {
	*receiver
	w      http.ResponseWriter
	r      *http.Request
	rc     *http.ResponseController
	source string // what counts as one source
	remote string // address of the sender
	at     time.Time
	id     edi.ID // of the transmission

	head as2.Headers
	conn *partner.Connection
	own  *partner.Own
}

func (x *exchange) run() {
	var err error
	if x.head, err = as2.ParseHeaders(x.r.Header); err != nil {
		x.report(ResultBadRequest, "", zap.Error(err))
		x.unread()
		x.text(http.StatusBadRequest, "This is not an AS2 message: "+err.Error()+".")
		return
	}
	var known bool
	if x.conn, x.own, known = x.Pipeline.Registry().ConnectionByAS2(x.head.From, x.head.To); !known {
		x.unknownPair()
		return
	}
	if !x.judgeHeaders() {
		return
	}
	seat, ok := x.reserve(x.requests, 1)
	if !ok {
		return
	}
	defer seat.Release()
	bytes, ok := x.reserveBytes()
	if !ok {
		return
	}
	defer bytes.Release()
	wire := x.readBody(bytes)
	if wire == nil {
		return
	}
	defer wire.Close() //nolint:errcheck // Nothing can be done about a file that is unlinked already.
	if x.r.Context().Err() != nil {
		x.report(ResultCutOff, "")
		return // nobody waits for the answer, and nothing was promised
	}
	x.open(wire)
}

// slowestDisk is how fast a disk writes that is still taken to be working, in bytes a second.
const slowestDisk = 1 << 20

// storing is the context for writing a message of that size. The message is whole by then: a
// sender who goes away now will ask again and get the stored MDN, so his going away stops nothing.
func (x *exchange) storing(size int64) (context.Context, context.CancelFunc) {
	limit := x.Limits.Store + time.Duration(size/slowestDisk)*time.Second
	return context.WithTimeout(context.WithoutCancel(x.r.Context()), limit)
}

// maxBody is the limit for the body of this request, in bytes.
func (x *exchange) maxBody() int64 {
	if x.conn.AS2.MaxMessage > 0 {
		return x.conn.AS2.MaxMessage
	}
	return x.MaxMessage
}

// judgeHeaders refuses what the headers alone show. Nothing of the body was read.
func (x *exchange) judgeHeaders() bool {
	if x.r.ContentLength > x.maxBody() {
		x.tooLarge()
		return false
	}
	for _, v := range as2.Values(x.r.Header, "Content-Encoding") {
		for coding := range strings.SplitSeq(v, ",") {
			if coding = strings.Trim(coding, " \t"); coding == "" || strings.EqualFold(coding, "identity") {
				continue
			}
			x.unread()
			x.refuseHTTP(http.StatusUnsupportedMediaType, CodeContentCoding, "A content coding is not supported. Send the body without Content-Encoding.")
			return false
		}
	}
	return true
}

func (x *exchange) tooLarge() {
	x.unread()
	x.refuseHTTP(http.StatusRequestEntityTooLarge, CodeTooLarge, "The message is larger than the "+itoa(x.maxBody())+" bytes that are allowed.")
}

// reserve takes n of a meter, or answers that there is no room now.
func (x *exchange) reserve(m *spool.Meter, n int64) (*spool.Reservation, bool) {
	r, err := m.Reserve(x.conn.ID, x.source, n)
	if err != nil {
		x.busy(err)
		return nil, false
	}
	return r, true
}

// reserveBytes begins to count the bytes of the body. They are taken as they arrive, because a
// length that is only announced must not take the room of others; what could not fit now is
// refused at once.
func (x *exchange) reserveBytes() (*spool.Reservation, bool) {
	if x.r.ContentLength > 0 {
		whole, ok := x.reserve(x.Meter, x.r.ContentLength)
		if !ok {
			return nil, false
		}
		whole.Release()
	}
	return x.reserve(x.Meter, 0)
}

// remoteHost is the address without its port.
func remoteHost(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}

// sourceOf is what counts as one source: an IPv4 address, or the /64 of an IPv6 address, because
// a single host has all of it.
func sourceOf(remote string) string {
	host := remoteHost(remote)
	a, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if a = a.Unmap().WithZone(""); a.Is4() {
		return a.String()
	}
	p, err := a.Prefix(64)
	if err != nil {
		return a.String()
	}
	return p.String()
}

// report tells observer and log what became of the request: names and ids, never payload.
func (x *exchange) report(result, code string, more ...zap.Field) {
	connection := ""
	if x.conn != nil {
		connection = x.conn.ID
	}
	x.Observer.Received(connection, result)
	fields := []zap.Field{
		zap.String("result", result), zap.String("code", code), zap.String("connection", connection), zap.String("source", x.remote),
		zap.String("as2_from", x.head.From), zap.String("as2_to", x.head.To), zap.String("message_id", x.head.MessageID),
		zap.String("id", x.id.String()),
	}
	x.Log.Info("as2_received", append(fields, more...)...)
}
