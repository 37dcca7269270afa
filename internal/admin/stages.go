package admin

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// rate turns a rising count into messages a second since the look before, where that is at least
// rateWindow ago.
type rate struct {
	baseAt, lastAt time.Time
	base, last     int64
}

const rateWindow = 5 * time.Second

func (m *rate) add(now time.Time, count int64) float64 {
	if now.Sub(m.lastAt) >= rateWindow {
		m.baseAt, m.base = m.lastAt, m.last
		m.lastAt, m.last = now, count
	}
	took := now.Sub(m.baseAt).Seconds()
	if took <= 0 || count < m.base {
		return 0
	}
	return float64(count-m.base) / took
}

func (a *api) rateOf(s store.Stage, count int64) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.rates[s]
	if m == nil {
		m = &rate{baseAt: a.started, lastAt: a.started}
		a.rates[s] = m
	}
	return float64(int64(m.add(a.Clock.Now(), count)*10+0.5)) / 10
}

// stageView is a pool over all nodes. Settings are per node.
type stageView struct {
	Stage    string          `json:"stage"`
	Workers  int             `json:"workers"`
	Min      int             `json:"min"`
	Max      int             `json:"max"`
	Paused   bool            `json:"paused"`
	TimeoutS float64         `json:"timeout_s"`
	Total    stageTotal      `json:"total"`
	Nodes    []stageNodeView `json:"nodes"`
}

type stageTotal struct {
	Workers   int     `json:"workers"` // wanted
	Alive     int     `json:"alive"`
	InFlight  int     `json:"in_flight"`
	Ready     int64   `json:"ready"`
	Parked    int64   `json:"parked"`
	Retry     int64   `json:"retry"`
	Leased    int64   `json:"leased"`
	KeyHeld   int64   `json:"keyheld"`
	Dead      int64   `json:"dead"`
	OldestAge float64 `json:"oldest_age_s"`
	Handled   int64   `json:"handled"`
	Rate      float64 `json:"rate_per_s"`
}

type stageNodeView struct {
	Node     string  `json:"node"`
	Workers  int     `json:"workers"` // wanted
	Alive    int     `json:"alive"`
	InFlight int     `json:"in_flight"`
	Queued   *int    `json:"queued"` // null: not known now
	Handled  int64   `json:"handled"`
	Rate     float64 `json:"rate_per_s"`
}

// stages collects the pools with the depths of the store.
func (a *api) stages(r *http.Request) ([]stageView, error) {
	depths, err := a.Store.Depths(r.Context())
	if err != nil {
		return nil, fmt.Errorf("depths: %w", err)
	}
	out := []stageView{}
	for _, s := range a.Pipeline.Stages(r.Context()) {
		per := a.rateOf(s.Stage, s.Handled)
		node := stageNodeView{Node: a.Node, Workers: s.Wanted, Alive: s.Alive, InFlight: s.Running, Handled: s.Handled, Rate: per}
		if s.Queued >= 0 {
			queued := s.Queued
			node.Queued = &queued
		}
		v := stageView{
			Stage: s.Stage.String(), Workers: s.Wanted, Min: s.Min, Max: s.Max, Paused: s.Paused, TimeoutS: s.Timeout.Seconds(),
			Total: stageTotal{Workers: s.Wanted, Alive: s.Alive, InFlight: s.Running, Handled: s.Handled, Rate: per},
			Nodes: []stageNodeView{node},
		}
		v.Total.addDepths(s.Stage, depths, a.Clock.Now())
		out = append(out, v)
	}
	return out, nil
}

func (t *stageTotal) addDepths(s store.Stage, depths []store.Depth, now time.Time) {
	for _, d := range depths {
		if d.Stage != s {
			continue
		}
		switch d.State {
		case store.Ready:
			t.Ready += d.Count
		case store.Parked:
			t.Parked += d.Count
		case store.Retry:
			t.Retry += d.Count
		case store.Leased:
			t.Leased += d.Count
		case store.KeyHeld:
			t.KeyHeld += d.Count
		case store.Dead:
			t.Dead += d.Count
			continue
		case store.Discarded:
			continue
		}
		if !d.Oldest.IsZero() {
			t.OldestAge = max(t.OldestAge, now.Sub(d.Oldest).Seconds())
		}
	}
}

func (a *api) listStages(w http.ResponseWriter, r *http.Request) error {
	if err := noParams(r); err != nil {
		return err
	}
	vs, err := a.stages(r)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, page[stageView]{Items: vs})
	return nil
}

// stageChange is the body of PATCH /v1/stages/{stage}.
type stageChange struct {
	Workers *int   `json:"workers"`
	Min     *int   `json:"min"`
	Max     *int   `json:"max"`
	Paused  *bool  `json:"paused"`
	Reason  string `json:"reason"`
}

func (c *stageChange) String() string {
	var b strings.Builder
	for _, f := range []struct {
		name string
		v    *int
	}{{"workers", c.Workers}, {"min", c.Min}, {"max", c.Max}} {
		if f.v != nil {
			fmt.Fprintf(&b, "%s=%d ", f.name, *f.v)
		}
	}
	if c.Paused != nil {
		fmt.Fprintf(&b, "paused=%t ", *c.Paused)
	}
	return b.String() + c.Reason
}

func (a *api) changeStage(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("stage")
	s, ok := store.ParseStage(name)
	if !ok {
		p := unknownStage(name)
		return problem(http.StatusNotFound, p.Code, p.Detail)
	}
	var in stageChange
	if err := readJSON(w, r, &in, false); err != nil {
		return err
	}
	if in.Workers == nil && in.Min == nil && in.Max == nil && in.Paused == nil {
		return badRequest("BODY_EMPTY", "nothing is to be changed; name workers, min, max or paused")
	}
	if err := checkText("reason", in.Reason); err != nil {
		return err
	}
	if err := checkChange(&in); err != nil {
		return err
	}
	err := a.Pipeline.Change(r.Context(), s, pipeline.StageChange{Workers: in.Workers, Min: in.Min, Max: in.Max, Paused: in.Paused})
	switch {
	case err == nil:
	case errors.Is(err, pipeline.ErrUnknownStage):
		return problem(http.StatusNotFound, "STAGE_NOT_HERE", "no node runs the stage "+s.String())
	case errors.Is(err, store.ErrUnavailable), r.Context().Err() != nil:
		return err
	default:
		// What the pipeline refuses are bounds that contradict each other.
		return problem(http.StatusUnprocessableEntity, "STAGE_SETTINGS", err.Error())
	}
	a.audit(r, auditObject(), "stage_changed", s.String()+" "+in.String())
	vs, err := a.stages(r)
	if err != nil {
		return err
	}
	for i := range vs {
		if vs[i].Stage == s.String() {
			writeJSON(w, http.StatusOK, vs[i])
			return nil
		}
	}
	return problem(http.StatusNotFound, "STAGE_NOT_HERE", "no node runs the stage "+s.String())
}

func checkChange(in *stageChange) error {
	for _, f := range []struct {
		name string
		v    *int
	}{{"workers", in.Workers}, {"min", in.Min}, {"max", in.Max}} {
		if f.v != nil && (*f.v < 0 || *f.v > pipeline.MaxWorkers) {
			return problem(http.StatusUnprocessableEntity, "STAGE_SETTINGS", fmt.Sprintf("%s must be 0 to %d", f.name, pipeline.MaxWorkers))
		}
	}
	return nil
}

// nodeView is one process of the hub.
type nodeView struct {
	Node     string         `json:"node"`
	Self     bool           `json:"self"` // it gave this answer
	Version  string         `json:"version,omitempty"`
	Profile  string         `json:"profile"`
	Started  time.Time      `json:"started_at"`
	Start    int64          `json:"start"` // number of this start of the hub
	Stages   []string       `json:"stages"`
	InFlight map[string]int `json:"in_flight"` // sends that run, by connection
	Leases   int64          `json:"leases"`    // deliveries that a sender has claimed
}

func (a *api) listNodes(w http.ResponseWriter, r *http.Request) error {
	if err := noParams(r); err != nil {
		return err
	}
	depths, err := a.Store.Depths(r.Context())
	if err != nil {
		return fmt.Errorf("depths: %w", err)
	}
	n := nodeView{
		Node: a.Node, Self: true, Version: a.Version, Profile: a.Profile, Started: a.started.UTC(), Start: a.Store.Boot(),
		Stages: []string{}, InFlight: a.Pipeline.InFlight(),
	}
	if n.InFlight == nil {
		n.InFlight = map[string]int{}
	}
	for _, s := range a.Pipeline.Stages(r.Context()) {
		n.Stages = append(n.Stages, s.Stage.String())
	}
	for _, d := range depths {
		if d.State == store.Leased {
			n.Leases += d.Count
		}
	}
	writeJSON(w, http.StatusOK, page[nodeView]{Items: []nodeView{n}})
	return nil
}
