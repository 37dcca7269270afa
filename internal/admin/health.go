package admin

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	readyAnswer = 80 * time.Millisecond  // the answer must be out within 100 ms
	readyFresh  = 250 * time.Millisecond // how long a result is given again
	readyProbe  = 5 * time.Second        // when a probe gives up
)

// prober asks whether the hub is ready without waiting long for the answer. One probe runs at a time, however many ask.
type prober struct {
	ask func(ctx context.Context) []string
	now func() time.Time
	// wait bounds the answer. It is the machine's time: that of an answer is none of the business.
	wait time.Duration

	mu      sync.Mutex
	running chan struct{} // closed when the probe has ended; nil while none runs
	last    []string
	at      time.Time
}

// waitingFor returns what the hub waits for; nothing means ready.
func (p *prober) waitingFor(ctx context.Context) []string {
	p.mu.Lock()
	if p.running == nil {
		if !p.at.IsZero() && p.now().Sub(p.at) < readyFresh {
			defer p.mu.Unlock()
			return p.last
		}
		p.running = make(chan struct{})
		go p.probe(p.running) //nolint:gosec // G118: the probe outlives the request that began it; others wait for it too.
	}
	running := p.running
	p.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	select {
	case <-running:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.last
	case <-ctx.Done():
		return []string{"answer of the store"}
	}
}

func (p *prober) probe(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), readyProbe)
	defer cancel()
	got := p.ask(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.at, p.running = got, p.now(), nil
	close(done)
}

// healthz says that the process serves. It asks nothing, so nothing can hold it up.
func (a *api) healthz(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

type notReady struct {
	WaitingFor []string `json:"waiting_for"`
}

func (a *api) readyz(w http.ResponseWriter, r *http.Request) error {
	waiting := a.probe.waitingFor(r.Context())
	if len(waiting) == 0 {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
		return nil
	}
	writeJSON(w, http.StatusServiceUnavailable, notReady{WaitingFor: waiting})
	return nil
}

// isReady asks the hub, where it has an opinion, else the store.
func (a *api) isReady(ctx context.Context) []string {
	if a.Ready != nil {
		return a.Ready(ctx)
	}
	if err := a.Store.Ping(ctx); err != nil {
		return []string{"store"}
	}
	return nil
}
