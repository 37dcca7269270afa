package observe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// depths is a store that counts how often it is asked.
type depths struct {
	depths []store.Depth
	dead   []*store.Work
	err    error
	asked  int
	listed int
}

func (d *depths) Depths(context.Context) ([]store.Depth, error) {
	d.asked++
	return d.depths, d.err
}

func (d *depths) ListDead(_ context.Context, f store.DeadFilter) ([]*store.Work, error) {
	d.listed++
	var out []*store.Work
	for _, w := range d.dead {
		if w.Stage == f.Stage && len(out) < f.Limit {
			out = append(out, w)
		}
	}
	return out, nil
}

func letter(s store.Stage, code string) *store.Work {
	return &store.Work{WorkKey: store.WorkKey{Stage: s, ID: edi.NewID(time.Unix(1, 0))}, State: store.Dead, Code: code}
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("metrics: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func has(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains(text, l+"\n") {
			t.Errorf("missing: %s", l)
		}
	}
}

func TestCounters(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	m.Handled(store.Validator, pipeline.Done, 2*time.Millisecond)
	m.Handled(store.Validator, pipeline.Retry, time.Second)
	m.Duplicate(store.ScopeInterchange)
	m.Delivery("acme", "delivered")
	m.Dead(store.Router, "NO_ROUTE")
	m.Received("acme-as2", "accepted")
	m.Received("", "unknown_pair")
	has(t, scrape(t, m),
		`edihub_stage_handled_total{stage="validator",verdict="done"} 1`,
		`edihub_stage_handled_total{stage="validator",verdict="retry"} 1`,
		`edihub_stage_duration_seconds_count{stage="validator"} 2`,
		`edihub_stage_duration_seconds_bucket{stage="validator",le="0.005"} 1`,
		`edihub_duplicates_total{scope="interchange"} 1`,
		`edihub_deliveries_total{partner="acme",state="delivered"} 1`,
		`edihub_dead_letters_total{code="NO_ROUTE",stage="router"} 1`,
		`edihub_as2_received_total{partner="acme-as2",result="accepted"} 1`,
		`edihub_as2_received_total{partner="unknown",result="unknown_pair"} 1`,
	)
}

func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	for i := range maxPartners + 50 {
		m.Received(fmt.Sprintf("p%d", i), "refused")
	}
	for i := range maxCodes + 7 {
		m.Dead(store.Parser, fmt.Sprintf("C%d", i))
	}
	text := scrape(t, m)
	has(t, text, `edihub_as2_received_total{partner="other",result="refused"} 50`, `edihub_dead_letters_total{code="other",stage="parser"} 7`)
	if n := strings.Count(text, "edihub_as2_received_total{"); n != maxPartners+1 {
		t.Errorf("%d series", n)
	}
	m.Received("p1", "refused") // who is known stays known
	has(t, scrape(t, m), `edihub_as2_received_total{partner="p1",result="refused"} 2`)
}

func TestGauges(t *testing.T) {
	t.Parallel()
	fake := clock.NewFake(time.Unix(1000, 0))
	st := &depths{
		depths: []store.Depth{
			{Stage: store.Parser, State: store.Ready, Count: 7, Oldest: time.Unix(990, 0)},
			{Stage: store.Parser, State: store.Parked, Count: 2, Oldest: time.Unix(980, 0)},
			{Stage: store.Validator, State: store.Ready, Count: 1, Oldest: time.Unix(999, 0)},
			{Stage: store.Sender, State: store.Retry, Topic: "acme-as2", Count: 4, Oldest: time.Unix(995, 0)},
			{Stage: store.Router, State: store.Dead, Count: 3, Oldest: time.Unix(1, 0)},
			{Stage: store.Router, State: store.Discarded, Count: 9, Oldest: time.Unix(1, 0)},
		},
		dead: []*store.Work{letter(store.Router, "NO_ROUTE"), letter(store.Router, "NO_ROUTE")},
	}
	m := NewMetrics()
	if text := scrape(t, m); strings.Contains(text, "edihub_store_up") {
		t.Error("a store that nobody named is up")
	}
	m.Watch(Sources{
		Store: st, Clock: fake, Connected: func() bool { return true },
		Stages: func(context.Context) []pipeline.StageStatus {
			return []pipeline.StageStatus{{Stage: store.Parser, Alive: 8, Queued: 3, Running: 2}, {Stage: store.Validator, Alive: 4, Queued: -1}}
		},
	})
	text := scrape(t, m)
	has(t, text,
		`edihub_queue_messages{queue="edi.in.raw",state="ready"} 7`,
		`edihub_queue_messages{queue="edi.in.raw",state="parked"} 2`,
		`edihub_queue_messages{queue="edi.in.tx",state="ready"} 1`,
		`edihub_queue_messages{queue="edi.out.partner.acme-as2",state="retry"} 4`,
		`edihub_queue_messages{queue="edi.dead",state="dead"} 3`,
		`edihub_queue_oldest_age_seconds{queue="edi.in.raw"} 20`,
		`edihub_queue_oldest_age_seconds{queue="edi.out.partner.acme-as2"} 5`,
		`edihub_stage_workers{stage="parser"} 8`,
		`edihub_dead_letters{code="NO_ROUTE",stage="router"} 2`,
		`edihub_dead_letters{code="other",stage="router"} 1`,
		`edihub_outbox_messages 3`,
		`edihub_broker_connected 1`,
		`edihub_store_up 1`,
	)
	if strings.Contains(text, "discarded") {
		t.Error("discarded rows wait for nobody")
	}
}

func TestTheStoreIsAskedSeldom(t *testing.T) {
	t.Parallel()
	fake := clock.NewFake(time.Unix(1000, 0))
	st := &depths{depths: []store.Depth{{Stage: store.Router, State: store.Dead, Count: 1}}, dead: []*store.Work{letter(store.Router, "A")}}
	m := NewMetrics()
	m.Watch(Sources{Store: st, Clock: fake})
	for range 10 {
		scrape(t, m)
	}
	if st.asked != 1 || st.listed != 1 {
		t.Errorf("asked %d and listed %d times at once", st.asked, st.listed)
	}
	fake.Advance(refreshAfter)
	scrape(t, m)
	if st.asked != 2 || st.listed != 1 {
		t.Errorf("asked %d, listed %d: codes are read again only when their number changes", st.asked, st.listed)
	}
	st.depths[0].Count = 2
	fake.Advance(refreshAfter)
	has(t, scrape(t, m), `edihub_dead_letters{code="other",stage="router"} 1`)
	if st.listed != 2 {
		t.Errorf("listed %d times after a change", st.listed)
	}
}

func TestStoreDown(t *testing.T) {
	t.Parallel()
	st := &depths{err: errors.New("gone"), depths: []store.Depth{{Stage: store.Parser, State: store.Ready, Count: 1}}}
	m := NewMetrics()
	m.Watch(Sources{Store: st, Connected: func() bool { return false }})
	text := scrape(t, m)
	has(t, text, `edihub_store_up 0`, `edihub_broker_connected 0`)
	if strings.Contains(text, "edihub_queue_messages{") || strings.Contains(text, "edihub_outbox_messages ") {
		t.Error("numbers of a store that does not answer")
	}
}
