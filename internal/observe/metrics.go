package observe

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// Bounds of label values. What comes beyond them is counted under "other", so that a stranger who
// sends under ever new names cannot fill the memory of hub and monitoring.
const (
	maxPartners = 2000
	maxCodes    = 200
	otherLabel  = "other"
	noneLabel   = "unknown"
)

// Metrics of the hub. It is told what happens (pipeline.Observer and the observer of the AS2
// receiver) and reads the depths of queues from what Watch names. It is safe for concurrent use.
type Metrics struct {
	prometheus.Gatherer // what the handler of the API serves
	registry            *prometheus.Registry

	handled    *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	died       *prometheus.CounterVec
	duplicates *prometheus.CounterVec
	deliveries *prometheus.CounterVec
	received   *prometheus.CounterVec

	partners, codes *bound
	watched         *watcher
}

var _ pipeline.Observer = (*Metrics)(nil)

// NewMetrics makes metrics in a registry of their own, with those of the Go runtime and the
// process beside them.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	reg := prometheus.NewRegistry()
	m := &Metrics{
		Gatherer: reg, registry: reg,
		handled: counter("edihub_stage_handled_total", "Messages that a stage has handled, by verdict.", "stage", "verdict"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "edihub_stage_duration_seconds", Help: "Time that a stage took for one message.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5, 30, 120, 600},
		}, []string{"stage"}),
		died:       counter("edihub_dead_letters_total", "Messages that became dead letters since the start, by code.", "stage", "code"),
		duplicates: counter("edihub_duplicates_total", "Duplicates that were recognised, by scope.", "scope"),
		deliveries: counter("edihub_deliveries_total", "Outcomes of attempts to deliver, by partner and state.", "partner", "state"),
		received:   counter("edihub_as2_received_total", "AS2 requests, by connection and result.", "partner", "result"),
		partners:   newBound(maxPartners),
		codes:      newBound(maxCodes),
		watched:    newWatcher(),
	}
	m.registry.MustRegister(m.handled, m.duration, m.died, m.duplicates, m.deliveries, m.received, m.watched,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Watch names what the gauges are read from, at most once in two seconds. It may be called again.
func (m *Metrics) Watch(s Sources) { m.watched.watch(s) }

// Registry is for programs that add metrics of their own.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Handler serves the metrics. One that cannot be read does not hide the others.
func (m *Metrics) Handler() http.Handler { return Handler(m) }

// Handler serves what g gathers. One metric that cannot be read does not hide the others.
func Handler(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4})
}

// Handled implements pipeline.Observer.
func (m *Metrics) Handled(s store.Stage, v pipeline.Verdict, took time.Duration) {
	m.handled.WithLabelValues(s.String(), v.String()).Inc()
	m.duration.WithLabelValues(s.String()).Observe(took.Seconds())
}

// Duplicate implements pipeline.Observer.
func (m *Metrics) Duplicate(scope store.Scope) { m.duplicates.WithLabelValues(scope.String()).Inc() }

// Delivery implements pipeline.Observer.
func (m *Metrics) Delivery(partner, state string) {
	m.deliveries.WithLabelValues(m.partners.label(partner), state).Inc()
}

// Dead implements pipeline.Observer.
func (m *Metrics) Dead(s store.Stage, code string) {
	m.died.WithLabelValues(s.String(), m.codes.label(code)).Inc()
}

// Received is told what became of an AS2 request; an empty partner is one that is not known.
func (m *Metrics) Received(partner, result string) {
	m.received.WithLabelValues(m.partners.label(partner), result).Inc()
}

// bound lets the first values through and folds those that come later.
type bound struct {
	limit int

	mu   sync.RWMutex
	seen map[string]struct{}
}

func newBound(limit int) *bound { return &bound{limit: limit, seen: make(map[string]struct{})} }

func (b *bound) label(v string) string {
	if v == "" {
		return noneLabel
	}
	b.mu.RLock()
	_, ok := b.seen[v]
	full := len(b.seen) >= b.limit
	b.mu.RUnlock()
	if ok {
		return v
	}
	if full {
		return otherLabel
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.seen[v]; !ok {
		if len(b.seen) >= b.limit {
			return otherLabel
		}
		b.seen[v] = struct{}{}
	}
	return v
}
