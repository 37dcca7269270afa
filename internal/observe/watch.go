package observe

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

const (
	refreshAfter = 2 * time.Second  // between two looks at the store
	codesAfter   = 30 * time.Second // between two looks at the codes of dead letters whose number did not change
	queryTimeout = 3 * time.Second
	deadScan     = 1000 // dead letters that are counted by code; the rest counts as "other"
	maxTopics    = 2000 // queues of senders
)

// DepthReader is the part of the store that the gauges are read from.
type DepthReader interface {
	Depths(ctx context.Context) ([]store.Depth, error)
	ListDead(ctx context.Context, f store.DeadFilter) ([]*store.Work, error)
}

// Sources of the gauges. A nil one leaves its metrics out.
type Sources struct {
	Store     DepthReader
	Stages    func(ctx context.Context) []pipeline.StageStatus
	Connected func() bool // to the broker
	Clock     clock.Clock // the system's
}

type deadKey struct{ stage, code string }

type queueKey struct{ queue, state string }

// reading is what one look found.
type reading struct {
	storeUp   bool
	connected bool
	queues    map[queueKey]int64
	oldest    map[string]time.Time
	outbox    int64
	workers   map[string]int
	dead      map[deadKey]int64
}

// watcher is a collector that looks at most every two seconds, however many scrape it.
type watcher struct {
	queueMessages, queueAge, stageWorkers, deadLetters, outbox, brokerUp, storeUp *prometheus.Desc

	mu       sync.Mutex
	src      Sources
	set      bool
	now      reading
	at       time.Time
	deadSum  map[store.Stage]int64 // when the codes were read
	codes    map[deadKey]int64
	codesAt  time.Time
	topics   *bound
	codeName *bound
}

func newWatcher() *watcher {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &watcher{
		queueMessages: desc("edihub_queue_messages", "Work rows by queue and state.", "queue", "state"),
		queueAge:      desc("edihub_queue_oldest_age_seconds", "Age of the oldest work row of a queue that waits to be handled.", "queue"),
		stageWorkers:  desc("edihub_stage_workers", "Workers alive on this node, by stage.", "stage"),
		deadLetters:   desc("edihub_dead_letters", "Dead letters that wait for a person, by stage and code.", "stage", "code"),
		outbox:        desc("edihub_outbox_messages", "Work rows that are ready and that no queue or worker of this node holds."),
		brokerUp:      desc("edihub_broker_connected", "1 while the broker can be published to."),
		storeUp:       desc("edihub_store_up", "1 while the store answers."),
		topics:        newBound(maxTopics),
		codeName:      newBound(maxCodes),
	}
}

func (w *watcher) watch(s Sources) {
	if s.Clock == nil {
		s.Clock = clock.System{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.src, w.set, w.at, w.codesAt = s, true, time.Time{}, time.Time{}
}

// Describe implements prometheus.Collector.
func (w *watcher) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{w.queueMessages, w.queueAge, w.stageWorkers, w.deadLetters, w.outbox, w.brokerUp, w.storeUp} {
		c <- d
	}
}

// Collect implements prometheus.Collector.
func (w *watcher) Collect(c chan<- prometheus.Metric) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.set {
		return
	}
	now := w.src.Clock.Now()
	if w.at.IsZero() || now.Sub(w.at) >= refreshAfter {
		w.now = w.look(now)
		w.at = now
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	r := &w.now
	if w.src.Store != nil {
		gauge(w.storeUp, truth(r.storeUp))
	}
	if w.src.Connected != nil {
		gauge(w.brokerUp, truth(r.connected))
	}
	for s, n := range r.workers {
		gauge(w.stageWorkers, float64(n), s)
	}
	if !r.storeUp {
		return // numbers of the past would look like those of now
	}
	for k, n := range r.queues {
		gauge(w.queueMessages, float64(n), k.queue, k.state)
	}
	for q, t := range r.oldest {
		gauge(w.queueAge, max(0, now.Sub(t).Seconds()), q)
	}
	for k, n := range r.dead {
		gauge(w.deadLetters, float64(n), k.stage, k.code)
	}
	gauge(w.outbox, float64(r.outbox))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (w *watcher) look(now time.Time) reading {
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	r := reading{queues: map[queueKey]int64{}, oldest: map[string]time.Time{}, workers: map[string]int{}}
	if w.src.Connected != nil {
		r.connected = w.src.Connected()
	}
	var held int64
	if w.src.Stages != nil {
		for _, s := range w.src.Stages(ctx) {
			r.workers[s.Stage.String()] = s.Alive
			held += int64(max(0, s.Queued) + s.Running)
		}
	}
	if w.src.Store == nil {
		return r
	}
	depths, err := w.src.Store.Depths(ctx)
	if err != nil {
		return r
	}
	r.storeUp = true
	dead := map[store.Stage]int64{}
	var ready int64
	for _, d := range depths {
		switch d.State {
		case store.Discarded:
			continue
		case store.Dead:
			dead[d.Stage] += d.Count
			r.queues[queueKey{"edi.dead", d.State.String()}] += d.Count
			continue
		case store.Ready:
			ready += d.Count
		default:
		}
		q := w.queue(d.Stage, d.Topic)
		r.queues[queueKey{q, d.State.String()}] += d.Count
		if old, ok := r.oldest[q]; !d.Oldest.IsZero() && (!ok || d.Oldest.Before(old)) {
			r.oldest[q] = d.Oldest
		}
	}
	r.outbox = max(0, ready-held)
	r.dead = w.deadByCode(ctx, now, dead)
	return r
}

// queue is the name of the queue that a work row's copies travel in (CONTRACTS, Queues).
func (w *watcher) queue(s store.Stage, topic string) string {
	switch s {
	case store.Parser:
		return "edi.in.raw"
	case store.Validator:
		if topic == "peppol" {
			return "peppol.in.validate"
		}
		return "edi.in.tx"
	case store.Router:
		return "edi.route"
	case store.Sender:
		return "edi.out.partner." + w.topics.label(topic)
	}
	return s.String()
}

// deadByCode counts dead letters by code. The store counts them by stage only, so the newest are
// looked at, and not more often than their number changes.
func (w *watcher) deadByCode(ctx context.Context, now time.Time, sum map[store.Stage]int64) map[deadKey]int64 {
	if w.codes != nil && now.Sub(w.codesAt) < codesAfter && sameCounts(w.deadSum, sum) {
		return w.codes
	}
	out := map[deadKey]int64{}
	left := make(map[store.Stage]int64, len(sum))
	for s, n := range sum {
		left[s] = n
		rows, err := w.src.Store.ListDead(ctx, store.DeadFilter{Stage: s, Limit: deadScan})
		if err != nil {
			rows = nil
		}
		for _, row := range rows {
			if left[s] == 0 {
				break // it died after the count
			}
			left[s]--
			out[deadKey{s.String(), w.codeName.label(row.Code)}]++
		}
	}
	for s, n := range left {
		if n > 0 {
			out[deadKey{s.String(), otherLabel}] += n
		}
	}
	w.codes, w.codesAt, w.deadSum = out, now, sum
	return out
}

func sameCounts(a, b map[store.Stage]int64) bool {
	if len(a) != len(b) {
		return false
	}
	for k, n := range a {
		if b[k] != n {
			return false
		}
	}
	return true
}
