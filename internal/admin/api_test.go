package admin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/spool"
	"github.com/edihub/edihub/internal/store"
)

func TestSubmitAndFollow(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	body := orders("A1", "ORDERS")
	a := r.do(Operator, "POST", "/v1/messages?from=acme&to=hub&file_name=po.edi", body, "Content-Type", "application/edifact")
	var s submitAnswer
	a.json(t, &s)
	if a.status != http.StatusAccepted || a.header.Get("Location") != "/v1/transmissions/"+s.Transmission.String() || s.Size != int64(len(body)) || s.Repeated {
		t.Fatalf("%d %s", a.status, a.body)
	}
	id := s.Transmission.String()
	m := r.message(id, "delivered")
	if m.Document.Number != "POA1" || m.From != "acme" || m.Type != "ORDERS" || m.Delivery.IsZero() {
		t.Errorf("message %+v", m)
	}

	var tr transmissionView
	r.do(Viewer, "GET", "/v1/transmissions/"+id, "").json(t, &tr)
	if tr.Transport != "http" || tr.Connection != "acme-http" || tr.Own != "hub" || tr.From != "acme" || tr.To != "hub" ||
		tr.FileName != "po.edi" || tr.Media != "application/edifact" || tr.Source == "" || tr.Parsing {
		t.Errorf("transmission %+v", tr)
	}
	var d deliveryView
	r.do(Viewer, "GET", "/v1/deliveries/"+m.Delivery.String(), "").json(t, &d)
	if d.State != "delivered" || d.Proof != "http-2xx" || d.Partner != "erp" || !slices.Equal(d.Messages, []edi.ID{m.ID}) || d.EndedAt == nil {
		t.Errorf("delivery %+v", d)
	}
	// Every link leads somewhere.
	for _, l := range []links{tr.Links, m.Links, d.Links, s.Links} {
		for name, path := range l {
			if got := r.do(Operator, "GET", path, ""); got.status != http.StatusOK {
				t.Errorf("link %s %s: %d %s", name, path, got.status, got.body)
			}
		}
	}
	var events page[eventView]
	r.do(Viewer, "GET", "/v1/transmissions/"+id+"/events", "").json(t, &events)
	if !slices.ContainsFunc(events.Items, func(e eventView) bool { return e.Event == "submitted" && e.Who != "" }) {
		t.Errorf("nobody is named for the submission: %+v", events.Items)
	}
}

func TestPayload(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	body := orders("B1", "ORDERS")
	id := r.submit(body)
	m := r.message(id, "delivered")
	message := body[strings.Index(body, "UNH"):strings.Index(body, "UNZ")]
	for path, want := range map[string]string{
		"transmissions/" + id + "/payload":                    body,
		"transmissions/" + id + "/payload?form=wire":          body,
		"interchanges/" + m.Interchange.String() + "/payload": body,
		"messages/" + m.ID.String() + "/payload?form=content": message,
		"deliveries/" + m.Delivery.String() + "/payload":      body,
	} {
		a := r.do(Operator, "GET", "/v1/"+path, "")
		if a.status != http.StatusOK || string(a.body) != want {
			t.Errorf("%s: %d %q, want %q", path, a.status, a.body, want)
		}
		for k, v := range map[string]string{
			"Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		} {
			if a.header.Get(k) != v {
				t.Errorf("%s: %s is %q", path, k, a.header.Get(k))
			}
		}
		if cd := a.header.Get("Content-Disposition"); !strings.HasPrefix(cd, `attachment; filename="`) {
			t.Errorf("%s: Content-Disposition %q", path, cd)
		}
	}
	part := r.do(Operator, "GET", "/v1/transmissions/"+id+"/payload", "", "Range", "bytes=0-2")
	if part.status != http.StatusPartialContent || string(part.body) != "UNB" {
		t.Errorf("range: %d %q", part.status, part.body)
	}
	r.do(Operator, "GET", "/v1/messages/"+m.ID.String()+"/payload?form=pretty", "").problem(t, http.StatusBadRequest, "FORM_UNSUPPORTED")
	r.do(Operator, "GET", "/v1/messages/"+m.ID.String()+"/payload?form=wire", "").problem(t, http.StatusBadRequest, "FORM_UNSUPPORTED")
	r.do(Operator, "GET", "/v1/messages/"+m.ID.String()+"/payload?form=raw", "").problem(t, http.StatusBadRequest, "FORM_UNKNOWN")
	r.do(Operator, "GET", "/v1/messages/"+someID+"/payload", "").problem(t, http.StatusNotFound, "NOT_FOUND")
	r.do(Operator, "GET", "/v1/messages/17/payload", "").problem(t, http.StatusBadRequest, "ID_INVALID")
	r.do(Viewer, "GET", "/v1/messages/"+m.ID.String()+"/payload", "").problem(t, http.StatusForbidden, "FORBIDDEN")
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	post := func(role Role, key, query, body string) (int, submitAnswer) {
		a := r.do(role, "POST", "/v1/messages?"+query, body, "Idempotency-Key", key)
		var s submitAnswer
		if a.status < 300 {
			a.json(t, &s)
		}
		return a.status, s
	}
	const q = "from=acme&to=hub"
	status, first := post(Operator, "k-1", q, orders("C1", "ORDERS"))
	if status != http.StatusAccepted {
		t.Fatalf("first: %d", status)
	}
	status, second := post(Operator, "k-1", q, orders("C1", "ORDERS"))
	if status != http.StatusOK || second.Transmission != first.Transmission || !second.Repeated {
		t.Errorf("second: %d %+v", status, second)
	}
	r.do(Operator, "POST", "/v1/messages?"+q, orders("C2", "ORDERS"), "Idempotency-Key", "k-1").problem(t, http.StatusConflict, "IDEMPOTENCY_KEY_REUSED")
	r.do(Operator, "POST", "/v1/messages?from=acme&to=erp", orders("C1", "ORDERS"), "Idempotency-Key", "k-1").problem(t, http.StatusConflict, "IDEMPOTENCY_KEY_REUSED")
	// Keys belong to the caller.
	if status, other := post(Admin, "k-1", q, orders("C3", "ORDERS")); status != http.StatusAccepted || other.Transmission == first.Transmission {
		t.Errorf("other caller: %d %+v", status, other)
	}
	for _, bad := range []string{strings.Repeat("x", maxKey+1), "bl\u00e4h"} {
		r.do(Operator, "POST", "/v1/messages?"+q, "x", "Idempotency-Key", bad).problem(t, http.StatusBadRequest, "IDEMPOTENCY_KEY_INVALID")
	}
	var p page[transmissionView]
	r.do(Viewer, "GET", "/v1/transmissions", "").json(t, &p)
	if len(p.Items) != 2 {
		t.Errorf("%d transmissions, want 2", len(p.Items))
	}
}

func TestSubmitRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.MaxBody = 100 })
	for name, c := range map[string]struct {
		query, body string
		status      int
		code        string
	}{
		"no parties":      {"", "x", 400, "PARAMETER_MISSING"},
		"no receiver":     {"from=acme", "x", 400, "PARAMETER_MISSING"},
		"unknown sender":  {"from=nobody&to=hub", "x", 422, "PARTNER_UNKNOWN"},
		"own as sender":   {"from=hub&to=acme", "x", 422, "PARTNER_UNKNOWN"},
		"unknown target":  {"from=acme&to=nobody", "x", 422, "PARTNER_UNKNOWN"},
		"suspended":       {"from=asleep&to=hub", "x", 422, "PARTNER_NOT_ACTIVE"},
		"empty":           {"from=acme&to=hub", "", 400, "BODY_MISSING"},
		"too large":       {"from=acme&to=hub", strings.Repeat("x", 101), 413, "TOO_LARGE"},
		"typing error":    {"from=acme&to=hub&tets=1", "x", 400, "PARAMETER_UNKNOWN"},
		"repeated":        {"from=acme&from=erp&to=hub", "x", 400, "PARAMETER_REPEATED"},
		"name with break": {"from=acme&to=hub&file_name=a%0Ab", "x", 400, "TEXT_INVALID"},
	} {
		t.Run(name, func(t *testing.T) {
			r.do(Operator, "POST", "/v1/messages?"+c.query, c.body).problem(t, c.status, c.code)
		})
	}
	// The length is not known beforehand.
	a := r.ask(r.tokens[Operator], "POST", "/v1/messages?from=acme&to=hub", io.MultiReader(strings.NewReader(strings.Repeat("x", 200))))
	a.problem(t, http.StatusRequestEntityTooLarge, "TOO_LARGE")
}

type fullSpool struct{}

func (fullSpool) NewScratch() (edi.Scratch, error) {
	return nil, &spool.DiskLowError{Dir: "/secret/place", Free: 1, MinFree: 2}
}

type brokenPipeline struct {
	Pipeline
	err error
}

func (b brokenPipeline) Accept(context.Context, *pipeline.Arrival) error { return b.err }

func TestSubmitWhenTheHubCannot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(o *Options)
		status int
		code   string
	}{
		"disk": {func(o *Options) { o.Spool = fullSpool{} }, 503, "DISK_LOW"},
		"store": {func(o *Options) {
			o.Pipeline = brokenPipeline{o.Pipeline, errors.Join(errors.New("at /secret/place"), store.ErrUnavailable)}
		}, 503, "STORE_UNAVAILABLE"},
		"other": {func(o *Options) { o.Pipeline = brokenPipeline{o.Pipeline, errors.New("at /secret/place")} }, 500, "INTERNAL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.change)
			a := r.do(Operator, "POST", "/v1/messages?from=acme&to=hub", orders("D1", "ORDERS"))
			a.problem(t, c.status, c.code)
			if bytes.Contains(a.body, []byte("secret")) {
				t.Errorf("the answer tells of the inside: %s", a.body)
			}
			if c.status == 503 && a.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		})
	}
}

func TestListsAndCursors(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, ref := range []string{"E1", "E2", "E3", "E4", "E5"} {
		r.message(r.submit(orders(ref, "ORDERS")), "delivered")
	}
	var docs []string
	path := "/v1/messages?limit=2"
	pages := 0
	for path != "" {
		var p page[messageView]
		r.do(Viewer, "GET", path, "").json(t, &p)
		pages++
		for _, m := range p.Items {
			docs = append(docs, m.Document.Number)
		}
		if path = ""; p.Next != "" {
			path = "/v1/messages?limit=2&cursor=" + p.Next
		}
	}
	if want := []string{"POE5", "POE4", "POE3", "POE2", "POE1"}; !slices.Equal(docs, want) || pages != 3 {
		t.Errorf("%d pages with %v, want %v", pages, docs, want)
	}
	for query, n := range map[string]int{
		"document_no=POE2": 1, "control_ref=E3": 1, "sender=acme": 5, "sender=erp": 0, "state=delivered": 5, "state=dead": 0, "type=ORDERS": 5,
		"test=true": 0, "test=false": 5, "since=2000-01-01": 5, "until=2000-01-01T00:00:00Z": 0,
	} {
		var p page[messageView]
		a := r.do(Viewer, "GET", "/v1/messages?"+query, "")
		a.json(t, &p)
		if len(p.Items) != n || p.Items == nil {
			t.Errorf("%s: %d items, want %d", query, len(p.Items), n)
		}
	}
	for query, code := range map[string]string{
		"limit=0": "PARAMETER_INVALID", "limit=1001": "PARAMETER_INVALID", "limit=x": "PARAMETER_INVALID", "cursor=zzz": "CURSOR_INVALID",
		"since=yesterday": "PARAMETER_INVALID", "test=maybe": "PARAMETER_INVALID", "interchange=1": "PARAMETER_INVALID", "ack=none": "PARAMETER_UNKNOWN",
		"state=a&state=b": "PARAMETER_REPEATED",
	} {
		r.do(Viewer, "GET", "/v1/messages?"+query, "").problem(t, http.StatusBadRequest, code)
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	id := r.submit(orders("F1", "INVOIC"))
	d := r.dead(1)[0]
	if d.Stage != "router" || d.Code != "NO_ROUTE" || d.Kind != "message" || d.State != "dead" || d.ID != "router."+d.Object.String() {
		t.Fatalf("dead letter %+v", d)
	}
	m := r.message(id, "dead")
	var one messageView
	r.do(Viewer, "GET", "/v1/messages/"+m.ID.String(), "").json(t, &one)
	if one.DeadLetter == nil || one.DeadLetter.ID != d.ID || one.Transmission.String() != id {
		t.Errorf("the message does not name its dead letter: %+v", one)
	}
	for _, path := range []string{d.ID, d.Object.String()} {
		var got deadView
		r.do(Viewer, "GET", "/v1/deadletters/"+path, "").json(t, &got)
		if got.ID != d.ID {
			t.Errorf("%s gives %+v", path, got)
		}
	}
	for _, q := range []string{"stage=router", "code=NO_ROUTE", "partner=acme", "stage=router&since=2000-01-01"} {
		var p page[deadView]
		if r.do(Viewer, "GET", "/v1/deadletters?"+q, "").json(t, &p); len(p.Items) != 1 {
			t.Errorf("%s finds %d", q, len(p.Items))
		}
	}
	for _, q := range []string{"stage=parser", "code=X", "partner=erp", "until=2000-01-01", "state=discarded"} {
		var p page[deadView]
		if r.do(Viewer, "GET", "/v1/deadletters?"+q, "").json(t, &p); len(p.Items) != 0 {
			t.Errorf("%s finds %d", q, len(p.Items))
		}
	}
	r.do(Viewer, "GET", "/v1/deadletters?stage=cook", "").problem(t, 400, "STAGE_UNKNOWN")
	r.do(Viewer, "GET", "/v1/deadletters/router."+someID, "").problem(t, 404, "NOT_FOUND")
	r.do(Viewer, "GET", "/v1/deadletters/cook."+someID, "").problem(t, 400, "STAGE_UNKNOWN")
	r.do(Operator, "POST", "/v1/deadletters/router."+someID+"/replay", "").problem(t, 404, "NOT_FOUND")

	// While the router stands still, what is replayed stays ready.
	if a := r.do(Operator, "PATCH", "/v1/stages/router", `{"paused":true}`); a.status != 200 {
		t.Fatalf("pause: %d %s", a.status, a.body)
	}
	var first, second replayAnswer
	r.do(Operator, "POST", "/v1/deadletters/"+d.ID+"/replay", `{"reason":"route added"}`).json(t, &first)
	r.do(Operator, "POST", "/v1/deadletters/"+d.ID+"/replay", "").json(t, &second)
	if !first.Replayed || second.Replayed || second.State != "ready" {
		t.Errorf("first %+v, second %+v", first, second)
	}
	r.do(Operator, "POST", "/v1/deadletters/"+d.ID+"/discard", `{"reason":"x"}`).problem(t, 409, "NOT_DEAD")
	r.do(Operator, "PATCH", "/v1/stages/router", `{"paused":false}`)
	r.dead(1) // there is no route yet

	r.do(Operator, "POST", "/v1/deadletters/"+d.ID+"/discard", `{}`).problem(t, 400, "REASON_MISSING")
	var gone, again discardAnswer
	r.do(Operator, "POST", "/v1/deadletters/"+d.ID+"/discard", `{"reason":"sent twice"}`).json(t, &gone)
	r.do(Operator, "POST", "/v1/deadletters/"+d.ID+"/discard", `{"reason":"sent twice"}`).json(t, &again)
	if !gone.Discarded || again.Discarded || again.State != "discarded" {
		t.Errorf("first %+v, second %+v", gone, again)
	}
	r.do(Operator, "POST", "/v1/deadletters/"+d.ID+"/replay", "").problem(t, 409, "DISCARDED")
	var p page[deadView]
	if r.do(Viewer, "GET", "/v1/deadletters?state=discarded", "").json(t, &p); len(p.Items) != 1 {
		t.Errorf("%d discarded", len(p.Items))
	}
	var events page[eventView]
	r.do(Viewer, "GET", "/v1/messages/"+m.ID.String()+"/events", "").json(t, &events)
	for _, want := range []eventView{{Event: "replayed", Detail: "route added"}, {Event: "discarded", Detail: "sent twice"}} {
		if !slices.ContainsFunc(events.Items, func(e eventView) bool { return e.Event == want.Event && e.Detail == want.Detail && e.Who != "" }) {
			t.Errorf("no event %+v in %+v", want, events.Items)
		}
	}
}

func TestReplayOfWhatWentThroughIsNoError(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	m := r.message(r.submit(orders("G1", "ORDERS")), "delivered")
	for _, id := range []string{m.ID.String(), "router." + m.ID.String()} {
		var a replayAnswer
		got := r.do(Operator, "POST", "/v1/deadletters/"+id+"/replay", "")
		got.json(t, &a)
		if got.status != 200 || a.Replayed || a.ID != id {
			t.Errorf("%s: %d %s", id, got.status, got.body)
		}
	}
}

func TestReplayByFilter(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, ref := range []string{"H1", "H2", "H3"} {
		r.submit(orders(ref, "INVOIC"))
	}
	r.dead(3)
	post := func(body string) (a replayManyAnswer) {
		t.Helper()
		got := r.do(Operator, "POST", "/v1/deadletters/replay", body)
		got.json(t, &a)
		if got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return a
	}
	if a := post(`{"filter":{"stage":"router"},"dry_run":true}`); !a.DryRun || a.Matched != 3 || len(a.Items) != 3 || a.Replayed != 0 {
		t.Errorf("dry run %+v", a)
	}
	if a := post(`{"filter":{"code":"OTHER"}}`); a.Matched != 0 || a.Replayed != 0 {
		t.Errorf("no match %+v", a)
	}
	r.do(Operator, "PATCH", "/v1/stages/router", `{"paused":true}`)
	if a := post(`{"filter":{"code":"NO_ROUTE"},"rate_per_s":1000,"limit":2,"reason":"mended"}`); a.Matched != 2 || a.Replayed != 2 || !a.More {
		t.Errorf("two of three %+v", a)
	}
	r.dead(1)
	if a := post(`{"filter":{},"rate_per_s":1000}`); a.Replayed != 1 || a.More {
		t.Errorf("the rest %+v", a)
	}
	for body, code := range map[string]string{
		`{"dry_run":true}`: "FILTER_MISSING", `{"filter":{"stage":"x"}}`: "STAGE_UNKNOWN", `{"filter":{},"rate_per_s":-1}`: "RATE_INVALID",
		`{"filter":{},"limit":99999}`: "LIMIT_INVALID", `{"filter":{"since":"x"}}`: "FILTER_INVALID", `{"filter":{"stages":"x"}}`: "BODY_INVALID",
		`{"filter":{}} {}`: "BODY_INVALID", ``: "BODY_MISSING", `[]`: "BODY_INVALID",
	} {
		r.do(Operator, "POST", "/v1/deadletters/replay", body).problem(t, 400, code)
	}
	var audit page[eventView]
	r.do(Admin, "GET", "/v1/audit", "").json(t, &audit)
	if !slices.ContainsFunc(audit.Items, func(e eventView) bool {
		return e.Event == "replayed_by_filter" && strings.Contains(e.Detail, "2 of 2") && strings.Contains(e.Detail, "mended") && e.Who != ""
	}) {
		t.Errorf("audit %+v", audit.Items)
	}
}

func TestStages(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	var p page[stageView]
	r.do(Viewer, "GET", "/v1/stages", "").json(t, &p)
	var names []string
	for _, s := range p.Items {
		names = append(names, s.Stage)
		if len(s.Nodes) != 1 || s.Nodes[0].Node != "node-1" || s.Total.Workers != s.Workers {
			t.Errorf("stage %+v", s)
		}
	}
	if !slices.Equal(names, []string{"parser", "validator", "router", "sender"}) {
		t.Errorf("stages %v", names)
	}
	a := r.do(Operator, "PATCH", "/v1/stages/validator", `{"workers":5,"min":1,"max":9,"paused":true,"reason":"calm"}`)
	var v stageView
	a.json(t, &v)
	if a.status != 200 || v.Workers != 5 || v.Min != 1 || v.Max != 9 || !v.Paused {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if raw, err := r.st.GetSetting(context.Background(), "stage.validator"); err != nil || !bytes.Contains(raw, []byte(`"workers":5`)) {
		t.Errorf("the change does not survive: %s %v", raw, err)
	}
	for body, code := range map[string]string{`{"worker":5}`: "BODY_INVALID", `{}`: "BODY_EMPTY", `{"workers":"5"}`: "BODY_INVALID", `{"workers":1.5}`: "BODY_INVALID"} {
		r.do(Operator, "PATCH", "/v1/stages/validator", body).problem(t, 400, code)
	}
	for _, body := range []string{`{"workers":-1}`, `{"workers":100000}`, `{"min":8,"max":2}`} {
		r.do(Operator, "PATCH", "/v1/stages/validator", body).problem(t, 422, "STAGE_SETTINGS")
	}
	r.do(Operator, "PATCH", "/v1/stages/cook", `{"workers":1}`).problem(t, 404, "STAGE_UNKNOWN")
	var audit page[eventView]
	r.do(Admin, "GET", "/v1/audit", "").json(t, &audit)
	if len(audit.Items) != 1 || audit.Items[0].Detail != "validator workers=5 min=1 max=9 paused=true calm" {
		t.Errorf("audit %+v", audit.Items)
	}
	var nodes page[nodeView]
	r.do(Viewer, "GET", "/v1/nodes", "").json(t, &nodes)
	if len(nodes.Items) != 1 || nodes.Items[0].Version != "v-test" || !nodes.Items[0].Self || len(nodes.Items[0].Stages) != 4 {
		t.Errorf("nodes %+v", nodes.Items)
	}
}

func TestMetricsEndpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.message(r.submit(orders("M1", "ORDERS")), "delivered")
	a := r.do(Viewer, "GET", "/metrics", "")
	for _, want := range []string{
		`edihub_stage_workers{stage="parser"}`, `edihub_store_up 1`, `edihub_broker_connected 1`, `edihub_outbox_messages 0`,
		`edihub_deliveries_total{partner="erp",state="delivered"} 1`,
	} {
		if !bytes.Contains(a.body, []byte(want)) {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	m := &rate{baseAt: start, lastAt: start}
	for _, c := range []struct {
		after time.Duration
		count int64
		want  float64
	}{
		{0, 0, 0}, {time.Second, 10, 10}, {10 * time.Second, 200, 20}, {20 * time.Second, 200, 0}, {22 * time.Second, 220, 20.0 / 12}, {30 * time.Second, 100, 0},
	} {
		if got := m.add(start.Add(c.after), c.count); got != c.want {
			t.Errorf("after %s with %d: %v, want %v", c.after, c.count, got, c.want)
		}
	}
}

func TestFileNames(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a.edi": ".edi", "a": ".bin", "": ".bin", "a.verylongext": ".bin", `x."/\`: ".___", "x.p7m": ".p7m",
	} {
		if got := extension(in); got != want {
			t.Errorf("extension(%q) is %q, want %q", in, got, want)
		}
	}
	if got := fileName("..", "/etc/", "\"\r\nx"); strings.ContainsAny(got, "/\"\r\n") || strings.HasPrefix(got, ".") {
		t.Errorf("name %q", got)
	}
}

func FuzzDecodeCursor(f *testing.F) {
	id := edi.NewID(time.Unix(1, 0))
	f.Add(encodeCursor(id))
	f.Add("")
	f.Add("MTo=")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := decodeCursor(s)
		if err != nil {
			return
		}
		// A cursor has one form: what is taken must be what would be given.
		if again, err := decodeCursor(encodeCursor(got)); err != nil || again != got {
			t.Errorf("%q became %s, then %s %v", s, got, again, err)
		}
	})
}
