// Package admin is the operations API and the status page: what runs, what went through, what
// failed, and the levers to mend it. It decides who may do what and words the answers; the work
// itself is done by the pipeline and the store.
package admin

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/observe"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// Pipeline is what the API does with the running hub; *pipeline.Pipeline does it.
type Pipeline interface {
	Stages(ctx context.Context) []pipeline.StageStatus
	Change(ctx context.Context, s store.Stage, c pipeline.StageChange) error
	Replay(ctx context.Context, key store.WorkKey, who, reason string) error
	Discard(ctx context.Context, key store.WorkKey, who, reason string) error
	Accept(ctx context.Context, a *pipeline.Arrival) error
	InFlight() map[string]int
	OpenPieces(ps []store.Piece) (store.BodySource, error)
}

var _ Pipeline = (*pipeline.Pipeline)(nil)

// Spool makes room for a body that is being received; *spool.Spool does.
type Spool interface {
	NewScratch() (edi.Scratch, error)
}

// Defaults of Options.
const (
	DefaultMaxBody        = 2 << 30
	DefaultIdempotencyFor = 30 * 24 * time.Hour
)

// Options of the API. Pipeline, Store, Registry and Spool are required.
type Options struct {
	Pipeline Pipeline
	Store    store.Store
	Registry *partner.Holder
	Spool    Spool
	Clock    clock.Clock // the system's
	Log      *zap.Logger // none
	// Ready lists what the hub waits for; nothing means ready. It may be slow: the answer to a
	// probe does not wait for it. The default asks the store.
	Ready func(ctx context.Context) []string
	// Metrics are served at /metrics; nil: there are none.
	Metrics prometheus.Gatherer
	Version string
	Node    string // name of this node; default: the host's
	Profile string // engines, for the list of nodes; default "embedded"
	// Hosts are names that a Host header may carry, beside localhost and every address.
	Hosts   []string
	MaxBody int64 // bytes of a message that is submitted; default 2 GiB
	// IdempotencyFor is how long an Idempotency-Key is remembered; default 30 days.
	IdempotencyFor time.Duration
}

type api struct {
	Options
	router   chi.Router
	template *template.Template
	started  time.Time
	probe    *prober

	mu    sync.Mutex
	rates map[store.Stage]*rate
}

// New returns the handler of API and status page.
func New(o Options) (http.Handler, error) {
	a, err := newAPI(o)
	if err != nil {
		return nil, err
	}
	return a.router, nil
}

func newAPI(o Options) (*api, error) {
	if o.Pipeline == nil || o.Store == nil || o.Registry == nil || o.Spool == nil {
		return nil, errors.New("admin: pipeline, store, registry and spool are required")
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Node == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("admin: name of this node: %w", err)
		}
		o.Node = host
	}
	if o.Profile == "" {
		o.Profile = "embedded"
	}
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.IdempotencyFor <= 0 {
		o.IdempotencyFor = DefaultIdempotencyFor
	}
	a := &api{Options: o, started: o.Clock.Now(), rates: map[store.Stage]*rate{}}
	a.probe = &prober{ask: a.isReady, now: o.Clock.Now, wait: readyAnswer}
	var err error
	if a.template, err = pageTemplate(); err != nil {
		return nil, err
	}
	a.router = a.routes()
	return a, nil
}

// endpoint is a route with the role that it needs. There is no way to add a route without one.
type endpoint struct {
	method, path string
	role         Role
	handle       func(w http.ResponseWriter, r *http.Request) error
}

func (a *api) endpoints() []endpoint {
	es := []endpoint{
		{http.MethodGet, "/healthz", Public, a.healthz},
		{http.MethodGet, "/readyz", Public, a.readyz},
		{http.MethodGet, "/", Public, a.status},
		{http.MethodGet, "/metrics", Viewer, a.metrics},

		{http.MethodGet, "/v1/stages", Viewer, a.listStages},
		{http.MethodPatch, "/v1/stages/{stage}", Operator, a.changeStage},
		{http.MethodGet, "/v1/nodes", Viewer, a.listNodes},

		{http.MethodPost, "/v1/messages", Operator, a.submit},
		{http.MethodGet, "/v1/deadletters", Viewer, a.listDead},
		{http.MethodPost, "/v1/deadletters/replay", Operator, a.replayMany},
		{http.MethodGet, "/v1/deadletters/{id}", Viewer, a.showDead},
		{http.MethodPost, "/v1/deadletters/{id}/replay", Operator, a.replayDead},
		{http.MethodPost, "/v1/deadletters/{id}/discard", Operator, a.discardDead},

		{http.MethodPost, "/v1/tokens", Admin, a.createToken},
		{http.MethodDelete, "/v1/tokens/{id}", Admin, a.revokeToken},
		{http.MethodGet, "/v1/audit", Admin, a.listAudit},
	}
	for _, k := range a.kinds() {
		es = append(es,
			endpoint{http.MethodGet, "/v1/" + k.plural, Viewer, a.list(k)},
			endpoint{http.MethodGet, "/v1/" + k.plural + "/{id}", Viewer, a.show(k)},
			endpoint{http.MethodGet, "/v1/" + k.plural + "/{id}/payload", Operator, a.payload(k)},
			endpoint{http.MethodGet, "/v1/" + k.plural + "/{id}/events", Viewer, a.events(k)},
		)
	}
	return es
}

func (a *api) routes() chi.Router {
	m := chi.NewRouter()
	m.Use(harden, a.recoverPanic, a.bounds, a.checkHost)
	for _, e := range a.endpoints() {
		m.Method(e.method, e.path, a.guard(e))
	}
	// What is not there is found out by those who may look: everybody else hears of the token.
	m.NotFound(a.guard(endpoint{role: Viewer, handle: func(_ http.ResponseWriter, r *http.Request) error {
		return notFound("resource " + quoted(r.URL.Path))
	}}))
	m.MethodNotAllowed(a.guard(endpoint{role: Viewer, handle: func(_ http.ResponseWriter, r *http.Request) error {
		return problem(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", r.Method+" is not possible here")
	}}))
	return m
}

// guard lets a request through to its handler when its token has the role that is needed.
func (a *api) guard(e endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if e.role > Public {
			id, err := a.authenticate(r)
			if err == nil && id.role < e.role {
				err = problem(http.StatusForbidden, "FORBIDDEN", "this needs a token with the role "+e.role.String()+"; this one is "+id.role.String())
			}
			if err != nil {
				a.fail(w, r, err)
				return
			}
			r = r.WithContext(context.WithValue(r.Context(), whoKey{}, id))
		}
		// chi keeps path parameters in its own place.
		if c := chi.RouteContext(r.Context()); c != nil {
			for i, k := range c.URLParams.Keys {
				r.SetPathValue(k, c.URLParams.Values[i])
			}
		}
		if err := e.handle(w, r); err != nil {
			a.fail(w, r, err)
			return
		}
		if r.Method != http.MethodGet {
			a.Log.Info("admin_request", zap.String("method", r.Method), zap.String("route", routeOf(r)), zap.String("who", who(r).id))
		}
	}
}

// fail writes the problem that an error is. What the client is not told goes to the log.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler) // the client went away; whoever is there must not see an empty 200
	}
	p := asProblem(err)
	if p.Status >= http.StatusInternalServerError {
		a.Log.Error("admin_failed", zap.String("method", r.Method), zap.String("route", routeOf(r)), zap.Int("status", p.Status), zap.Error(err))
	}
	writeProblem(w, r, p)
}

// routeOf is the pattern of a request's route, which holds no ids.
func routeOf(r *http.Request) string {
	if c := chi.RouteContext(r.Context()); c != nil && c.RoutePattern() != "" {
		return c.RoutePattern()
	}
	return "none"
}

const (
	readTime  = 30 * time.Second
	writeTime = 60 * time.Second
)

// bounds limits the time of a request; handlers that take long lift it (unbounded).
func (a *api) bounds(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		now := time.Now() // deadlines of sockets are in the machine's time
		_ = c.SetReadDeadline(now.Add(readTime))
		_ = c.SetWriteDeadline(now.Add(writeTime))
		next.ServeHTTP(w, r)
	})
}

func unbounded(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{})
	_ = c.SetWriteDeadline(time.Time{})
}

func (a *api) metrics(w http.ResponseWriter, r *http.Request) error {
	if a.Metrics == nil {
		return notFound("metrics here")
	}
	observe.Handler(a.Metrics).ServeHTTP(w, r)
	return nil
}

// auditObject is the object under which changes are recorded that belong to no message.
func auditObject() edi.ID { return edi.ID{}.Derive("audit", 0) }

// audit records who changed what. The change has happened: a failure is logged and does not turn
// the answer into an error, which would make the client repeat the change.
func (a *api) audit(r *http.Request, object edi.ID, name, detail string) {
	e := store.Event{Object: object, At: a.Clock.Now(), Name: name, Detail: strings.TrimSpace(detail), Who: who(r).id}
	err := a.Store.Update(context.WithoutCancel(r.Context()), func(tx store.Tx) error { return tx.AddEvents([]store.Event{e}) })
	if err != nil {
		a.Log.Error("audit_failed", zap.String("event", name), zap.String("detail", e.Detail), zap.String("who", e.Who), zap.Error(err))
	}
}

func (a *api) listAudit(w http.ResponseWriter, r *http.Request) error {
	if err := noParams(r); err != nil {
		return err
	}
	es, err := a.Store.Events(r.Context(), auditObject())
	if err != nil {
		return fmt.Errorf("read audit: %w", err)
	}
	writeJSON(w, http.StatusOK, page[eventView]{Items: eventsShown(es)})
	return nil
}

// quoted shows a text of the client in a problem, cut short.
func quoted(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "…"
	}
	return fmt.Sprintf("%q", s)
}

// checkText bounds names and reasons of operators.
func checkText(name, s string) error {
	if len(s) > maxText {
		return badRequest("TEXT_TOO_LONG", "%s has %d bytes; at most %d are allowed", name, len(s), maxText)
	}
	for _, c := range s {
		if c < 0x20 || c == 0x7f {
			return badRequest("TEXT_INVALID", "%s holds a control character", name)
		}
	}
	return nil
}
