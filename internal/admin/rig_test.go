package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/edihub/edihub/internal/broker/local"
	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/observe"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/pipeline/parse"
	"github.com/edihub/edihub/internal/pipeline/route"
	"github.com/edihub/edihub/internal/pipeline/send"
	"github.com/edihub/edihub/internal/pipeline/validate"
	"github.com/edihub/edihub/internal/spool"
	"github.com/edihub/edihub/internal/store"
	"github.com/edihub/edihub/internal/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

const records = `
own:
  - {id: hub, identifiers: ["edifact:ZZ:HUB"]}
connections:
  - {id: acme-http, http: {url: "http://127.0.0.1:1/acme", hmac_key: "S3CRET-HMAC-KEY"}}
  - {id: erp-http, http: {url: "http://127.0.0.1:1/erp"}}
partners:
  - {id: acme, connections: [acme-http], identifiers: ["edifact:ZZ:ACME"]}
  - {id: asleep, connections: [acme-http], status: suspended, identifiers: ["edifact:ZZ:ASLEEP"]}
  - {id: erp, connections: [erp-http]}
agreements:
  - {match: {}, ordering: {by: none}, on_poison: skip}
routes:
  - {match: {from: acme, document: "edifact:ORDERS"}, to: erp, envelope: keep}
`

// orders is an interchange with one message of a type. Only ORDERS has a route.
func orders(ref, typ string) string {
	return "UNB+UNOA:3+ACME:ZZ+HUB:ZZ+260101:1200+" + ref + "'UNH+1+" + typ + ":D:96A:UN'BGM+220+PO" + ref + "+9'UNT+3+1'UNZ+1+" + ref + "'"
}

// rig is the API over a real store and pipeline.
type rig struct {
	t      *testing.T
	dir    string
	st     store.Store
	p      *pipeline.Pipeline
	api    *api
	srv    *httptest.Server
	tokens map[Role]string
	turn   chan struct{}

	mu   sync.Mutex
	sent map[string][]byte // by delivery
}

func newRig(t *testing.T, change func(o *Options)) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), tokens: map[Role]string{}, turn: make(chan struct{}, 1), sent: map[string][]byte{}}
	st, err := sqlite.Open(context.Background(), sqlite.Options{Dir: r.dir, MinFree: -1})
	check(t, err)
	r.st = st
	reg, err := partner.Parse([]byte(records), r.dir, partner.LoadOptions{})
	check(t, err)
	holder := partner.NewHolder(reg.WithVersion(1))
	br := local.New(clock.System{})
	metrics := observe.NewMetrics()
	r.p = pipeline.New(pipeline.Options{
		Store: st, Broker: br, Registry: holder, Observer: rigObserver{r, metrics},
		Stages: map[store.Stage]pipeline.Stage{
			store.Parser: parse.New(parse.Options{}), store.Validator: validate.New(nil), store.Router: route.New(),
		},
		Endpoint: func(*partner.Connection) send.Endpoint { return rigEndpoint{r} },
		Dir:      r.dir, Sweep: 20 * time.Millisecond,
	})
	check(t, r.p.Start(context.Background()))
	sp, err := spool.New(filepath.Join(r.dir, "spool"), spool.Options{MinFree: -1})
	check(t, err)
	metrics.Watch(observe.Sources{Store: st, Stages: r.p.Stages, Connected: br.Connected})
	o := Options{Pipeline: r.p, Store: st, Registry: holder, Spool: sp, Metrics: metrics, Version: "v-test", Node: "node-1"}
	if change != nil {
		change(&o)
	}
	r.api, err = newAPI(o)
	check(t, err)
	r.srv = httptest.NewServer(r.api.router)
	for _, role := range []Role{Viewer, Operator, Admin} {
		tok := newToken()
		r.tokens[role] = tok
		saved := describeToken(tok, role, role.String(), "", time.Unix(1, 0))
		check(t, saveToken(context.Background(), st, &saved))
	}
	t.Cleanup(func() {
		r.srv.Close()
		http.DefaultClient.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		check(t, r.p.Stop(ctx))
		check(t, br.Close())
		check(t, st.Close())
	})
	return r
}

type rigObserver struct {
	r *rig
	m *observe.Metrics
}

func (o rigObserver) ping() {
	select {
	case o.r.turn <- struct{}{}:
	default:
	}
}

func (o rigObserver) Handled(s store.Stage, v pipeline.Verdict, d time.Duration) {
	o.m.Handled(s, v, d)
	o.ping()
}
func (o rigObserver) Duplicate(s store.Scope)      { o.m.Duplicate(s); o.ping() }
func (o rigObserver) Delivery(p, s string)         { o.m.Delivery(p, s); o.ping() }
func (o rigObserver) Dead(s store.Stage, c string) { o.m.Dead(s, c); o.ping() }

type rigEndpoint struct{ r *rig }

func (e rigEndpoint) Send(_ context.Context, d *send.Delivery) send.Result {
	b, err := io.ReadAll(io.NewSectionReader(d.Payload, 0, d.Payload.Size()))
	if err != nil {
		return send.Result{Status: send.Retry, Code: "READ", Detail: err.Error()}
	}
	e.r.mu.Lock()
	e.r.sent[d.ID.String()] = b
	e.r.mu.Unlock()
	return send.Result{Status: send.Delivered, Proof: "http-2xx"}
}

// until waits until cond holds; it looks again whenever the pipeline did something, and at times.
func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	over := time.NewTimer(patience)
	defer over.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-r.turn:
		case <-tick.C:
		case <-over.C:
			r.t.Fatalf("waited in vain until %s", what)
		}
	}
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request with the token of a role; Public sends none.
func (r *rig) do(role Role, method, path, body string, header ...string) answer {
	r.t.Helper()
	return r.ask(r.tokens[role], method, path, strings.NewReader(body), header...)
}

func (r *rig) ask(token, method, path string, body io.Reader, header ...string) answer {
	r.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, r.srv.URL+path, body)
	check(r.t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	check(r.t, err)
	defer res.Body.Close() //nolint:errcheck // It was only read.
	b, err := io.ReadAll(res.Body)
	check(r.t, err)
	return answer{res.StatusCode, res.Header, b}
}

func (a answer) json(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("answer %d is not the JSON expected: %v\n%s", a.status, err, a.body)
	}
}

// problem checks that the answer is a whole problem (RFC 9457) with a status and a code.
func (a answer) problem(t *testing.T, status int, code string) Problem {
	t.Helper()
	var p Problem
	if a.status != status {
		t.Fatalf("status %d, want %d %s\n%s", a.status, status, code, a.body)
	}
	if ct := a.header.Get("Content-Type"); ct != problemType {
		t.Fatalf("content type %q, want %q", ct, problemType)
	}
	a.json(t, &p)
	if p.Code != code || p.Status != status || p.Title == "" || p.Type == "" || p.Instance == "" {
		t.Fatalf("problem %+v, want status %d code %s and all members", p, status, code)
	}
	return p
}

// submit posts a payload and returns the transmission.
func (r *rig) submit(body string) string {
	r.t.Helper()
	a := r.do(Operator, "POST", "/v1/messages?from=acme&to=hub", body)
	if a.status != http.StatusAccepted {
		r.t.Fatalf("submit: %d %s", a.status, a.body)
	}
	var s submitAnswer
	a.json(r.t, &s)
	return s.Transmission.String()
}

// message waits until the one message of a transmission has a state, and returns it.
func (r *rig) message(transmission, state string) messageView {
	r.t.Helper()
	var v messageView
	r.until("a message of "+transmission+" is "+state, func() bool {
		var p page[messageView]
		r.do(Viewer, "GET", "/v1/messages?transmission="+transmission, "").json(r.t, &p)
		if len(p.Items) == 1 {
			v = p.Items[0]
		}
		return v.State == state
	})
	return v
}

// dead waits for n dead letters and returns them.
func (r *rig) dead(n int) []deadView {
	r.t.Helper()
	var p page[deadView]
	r.until("there are dead letters", func() bool {
		p = page[deadView]{}
		r.do(Viewer, "GET", "/v1/deadletters", "").json(r.t, &p)
		return len(p.Items) == n
	})
	return p.Items
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	check(t, err)
	return string(bytes.TrimSpace(b))
}
