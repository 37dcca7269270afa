package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

func TestCheckListen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen             string
		tls, insecure, bad bool
	}{
		{"127.0.0.1:8081", false, false, false},
		{"[::1]:8081", false, false, false},
		{"localhost:0", false, false, false},
		{"[::ffff:127.0.0.1]:1", false, false, false},
		{":8081", false, false, true},
		{"0.0.0.0:8081", false, false, true},
		{"10.0.0.5:8081", false, false, true},
		{"localhost.example.com:8081", false, false, true},
		{"0.0.0.0:8081", true, false, false},
		{"0.0.0.0:8081", false, true, false},
		{"8081", false, true, true},
	} {
		err := CheckListen(c.listen, c.tls, c.insecure)
		if (err != nil) != c.bad {
			t.Errorf("%s tls=%t insecure=%t: %v", c.listen, c.tls, c.insecure, err)
		}
		if err != nil && c.listen != "8081" && !errors.Is(err, ErrListen) {
			t.Errorf("%s: %v is not ErrListen", c.listen, err)
		}
	}
}

func TestHostAgainstRebinding(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Hosts = []string{"edihub.example.com"} })
	for host, allowed := range map[string]bool{
		"localhost:8081": true, "127.0.0.1": true, "[::1]:8081": true, "10.1.2.3:8081": true, "edihub.example.com": true,
		"EDIHUB.example.com.:443": true, "evil.example": false, "edihub.example.com.evil.example": false, "127.0.0.1.evil.example": false,
	} {
		a := r.do(Viewer, "GET", "/v1/stages", "", "Host", host)
		if !allowed {
			a.problem(t, http.StatusMisdirectedRequest, "HOST_NOT_ALLOWED")
		} else if a.status != http.StatusOK {
			t.Errorf("host %s: %d", host, a.status)
		}
		if a := r.do(Public, "GET", "/healthz", "", "Host", host); a.status != http.StatusOK {
			t.Errorf("healthz with host %s: %d", host, a.status)
		}
	}
}

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, path := range []string{"/", "/healthz", "/v1/stages", "/v1/nothing"} {
		a := r.do(Viewer, "GET", path, "")
		if a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Cache-Control") != "no-store" ||
			!strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %v", path, a.header)
		}
		if a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s lets other sites read it", path)
		}
	}
}

// hung is a store that answers nothing until it is released.
type hung struct {
	store.Store
	release chan struct{}
}

func (h *hung) Ping(ctx context.Context) error {
	select {
	case <-h.release:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *hung) GetSetting(ctx context.Context, name string) ([]byte, error) {
	if err := h.Ping(ctx); err != nil {
		return nil, err
	}
	return h.Store.GetSetting(ctx, name)
}

func TestHealthWhileTheStoreHangs(t *testing.T) {
	t.Parallel()
	h := &hung{release: make(chan struct{})}
	r := newRig(t, func(o *Options) {
		h.Store = o.Store
		o.Store = h
	})
	defer close(h.release)
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		best := time.Hour
		for range 5 { // a busy machine may be slow once
			start := time.Now()
			a := r.do(Public, "GET", path, "")
			best = min(best, time.Since(start))
			if a.status != want {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
			if path == "/readyz" {
				var n notReady
				a.json(t, &n)
				if len(n.WaitingFor) == 0 {
					t.Errorf("readyz does not say what it waits for: %s", a.body)
				}
			}
		}
		if best >= 100*time.Millisecond {
			t.Errorf("%s took %s", path, best)
		}
	}
}

func TestReadyNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	waiting := []string{"broker", "migrations"}
	r := newRig(t, func(o *Options) { o.Ready = func(context.Context) []string { return waiting } })
	r.api.probe.wait = patience // a busy machine may be slow; the time is not what is tested here
	a := r.do(Public, "GET", "/readyz", "")
	var n notReady
	a.json(t, &n)
	if a.status != http.StatusServiceUnavailable || !slices.Equal(n.WaitingFor, waiting) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := r.do(Public, "GET", "/", ""); a.status != http.StatusOK || !strings.Contains(string(a.body), "broker, migrations") {
		t.Errorf("status page: %d %s", a.status, a.body)
	}
}

func TestProberAsksOnceForMany(t *testing.T) {
	t.Parallel()
	fake := clock.NewFake(time.Unix(0, 0))
	asked := make(chan struct{}, 100)
	p := &prober{wait: patience, now: fake.Now, ask: func(context.Context) []string { asked <- struct{}{}; return []string{"store"} }}
	for range 10 {
		if got := p.waitingFor(context.Background()); !slices.Equal(got, []string{"store"}) {
			t.Fatalf("waiting for %v", got)
		}
	}
	if n := len(asked); n != 1 {
		t.Errorf("asked %d times within the time that an answer is fresh", n)
	}
	fake.Advance(readyFresh)
	p.waitingFor(context.Background())
	if n := len(asked); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
}

type panicking struct{ Pipeline }

func (panicking) Stages(context.Context) []pipeline.StageStatus {
	panic("password=hunter2")
}

func TestPanicBecomesAProblemWithoutDetail(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.DebugLevel)
	r := newRig(t, func(o *Options) { o.Pipeline, o.Log = panicking{o.Pipeline}, zap.New(core) })
	a := r.do(Viewer, "GET", "/v1/stages", "")
	a.problem(t, http.StatusInternalServerError, "INTERNAL")
	if strings.Contains(string(a.body), "hunter2") || strings.Contains(string(a.body), "goroutine") {
		t.Errorf("the answer tells what happened inside: %s", a.body)
	}
	seen := logs.FilterMessage("admin_panic").All()
	if len(seen) != 1 || seen[0].ContextMap()["panic"] != "string" || strings.Contains(fmt.Sprint(seen[0].ContextMap()), "hunter2") {
		t.Errorf("the log tells the value of the panic, or nothing: %v", seen)
	}
}

func TestServerHasTimeouts(t *testing.T) {
	t.Parallel()
	s := Server(http.NotFoundHandler(), ServerOptions{Addr: "127.0.0.1:0"})
	if s.ReadHeaderTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 || s.ErrorLog == nil {
		t.Errorf("%+v", s)
	}
}

func TestStatusPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.api.probe.wait = patience
	r.message(r.submit(orders("P1", "ORDERS")), "delivered")
	open := string(r.do(Public, "GET", "/", "").body)
	closed := string(r.do(Viewer, "GET", "/", "").body)
	if !strings.Contains(open, "Ready") || strings.Contains(open, "<table>") {
		t.Errorf("without a token: %s", open)
	}
	if !strings.Contains(closed, "<td>validator</td>") {
		t.Errorf("with a token: %s", closed)
	}
	for _, s := range []string{"acme", "ACME", "P1"} {
		if strings.Contains(open+closed, s) {
			t.Errorf("the page names %s", s)
		}
	}
	r.ask("wrong", "GET", "/", nil).problem(t, http.StatusUnauthorized, "UNAUTHORIZED")
}

func TestNewWantsItsParts(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{}); err == nil {
		t.Error("an API without parts was made")
	}
}

func TestProblemIsNotChangedByWriting(t *testing.T) {
	t.Parallel()
	p := notFound("x")
	w := httptest.NewRecorder()
	writeProblem(w, httptest.NewRequest(http.MethodGet, "/v1/a?token=b", nil), p)
	if p.Instance != "" || strings.Contains(w.Body.String(), "token=b") || w.Code != http.StatusNotFound {
		t.Errorf("%+v %s", p, w.Body)
	}
}
