package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// deadView is what the API shows of a dead letter. Its id is stage and object, because an object
// can die at one stage after another.
type deadView struct {
	ID      string    `json:"id"` // "<stage>.<uuid>"
	Stage   string    `json:"stage"`
	Object  edi.ID    `json:"object"`
	Kind    string    `json:"kind"`
	State   string    `json:"state"` // dead | discarded, of others what the work row says
	Code    string    `json:"code"`
	Detail  string    `json:"detail,omitempty"`
	Partner string    `json:"partner,omitempty"`
	Queue   string    `json:"connection,omitempty"` // of a sender
	Tries   int       `json:"tries"`
	Crashes int       `json:"crashes"`
	Lane    int64     `json:"lane"`
	Blocks  bool      `json:"blocks_lane"`
	Since   time.Time `json:"since"`
	Died    time.Time `json:"died_at"`
	Links   links     `json:"links,omitempty"`
}

func deadID(k store.WorkKey) string { return k.Stage.String() + "." + k.ID.String() }

func plural(k store.Kind) string {
	if k == store.KindDelivery {
		return "deliveries"
	}
	return k.String() + "s"
}

func deadShown(w *store.Work) deadView {
	id := deadID(w.WorkKey)
	return deadView{
		ID: id, Stage: w.Stage.String(), Object: w.ID, Kind: w.Kind.String(), State: w.State.String(), Code: w.Code, Detail: w.Detail,
		Partner: w.Partner, Queue: w.Topic, Tries: w.Tries, Crashes: w.Crashes, Lane: w.Lane, Blocks: w.State == store.Dead && !w.Gap,
		Since: w.Since.UTC(), Died: w.Died.UTC(),
		Links: links{"self": "/v1/deadletters/" + id, "object": "/v1/" + plural(w.Kind) + "/" + w.ID.String()},
	}
}

// deadQuery reads the filters of the dead letters from a query.
func deadQuery(r *http.Request) (store.DeadFilter, error) {
	p := &params{r: r}
	f := store.DeadFilter{
		Partner: p.text("partner"), Code: p.text("code"), Since: p.time("since"), Until: p.time("until"), Limit: p.limit(), Before: p.cursor(),
	}
	stage, err := stageFilter(p.text("stage"))
	if err != nil {
		p.fail(err)
	}
	f.Stage = stage
	switch v := p.text("state"); v {
	case "", "dead":
	case "discarded":
		f.Discarded = true
	default:
		p.fail(badRequest("PARAMETER_INVALID", "state=%s is not known; allowed: dead, discarded", quoted(v)))
	}
	return f, p.done()
}

func stageFilter(name string) (store.Stage, error) {
	if name == "" {
		return 0, nil
	}
	s, ok := store.ParseStage(name)
	if !ok {
		return 0, unknownStage(name)
	}
	return s, nil
}

func unknownStage(name string) *Problem {
	var names []string
	for _, s := range store.Stages() {
		names = append(names, s.String())
	}
	return badRequest("STAGE_UNKNOWN", "stage %s is not known; allowed: %s", quoted(name), strings.Join(names, ", "))
}

func (a *api) listDead(w http.ResponseWriter, r *http.Request) error {
	f, err := deadQuery(r)
	if err != nil {
		return err
	}
	limit := f.Limit
	f.Limit++
	rows, err := a.Store.ListDead(r.Context(), f)
	if err != nil {
		return fmt.Errorf("list dead letters: %w", err)
	}
	// Rows of one object stay on one page: the cursor names an object.
	n := min(limit, len(rows))
	for n > 0 && n < len(rows) && rows[n].ID == rows[n-1].ID {
		n++
	}
	writeJSON(w, http.StatusOK, cut(rows, n, func(k *store.Work) edi.ID { return k.ID }, deadShown))
	return nil
}

// deadRow finds the work row that the path names: "<stage>.<uuid>", or the UUID alone where it is
// dead at one stage only.
func (a *api) deadRow(r *http.Request) (*store.Work, store.WorkKey, error) {
	raw := r.PathValue("id")
	name, text, hasStage := strings.Cut(raw, ".")
	if !hasStage {
		text = raw
	}
	id, err := edi.ParseID(text)
	if err != nil {
		return nil, store.WorkKey{}, badRequest("ID_INVALID", "%s is not the id of a dead letter: <stage>.<uuid> is expected", quoted(raw))
	}
	stages := store.Stages()
	if hasStage {
		s, ok := store.ParseStage(name)
		if !ok {
			return nil, store.WorkKey{}, unknownStage(name)
		}
		stages = []store.Stage{s}
	}
	var found []*store.Work
	for _, s := range stages {
		row, err := a.Store.GetWork(r.Context(), store.WorkKey{Stage: s, ID: id})
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return nil, store.WorkKey{}, fmt.Errorf("dead letter %s: %w", raw, err)
		}
		if hasStage || row.State == store.Dead || row.State == store.Discarded {
			found = append(found, row)
		}
	}
	switch len(found) {
	case 0:
		key := store.WorkKey{ID: id}
		if hasStage {
			key.Stage = stages[0]
		}
		return nil, key, nil
	case 1:
		return found[0], found[0].WorkKey, nil
	}
	var ids []string
	for _, row := range found {
		ids = append(ids, deadID(row.WorkKey))
	}
	return nil, store.WorkKey{}, problem(http.StatusConflict, "ID_AMBIGUOUS", "there is more than one dead letter of that object: "+strings.Join(ids, ", "))
}

func (a *api) showDead(w http.ResponseWriter, r *http.Request) error {
	if err := noParams(r); err != nil {
		return err
	}
	row, _, err := a.deadRow(r)
	if err != nil {
		return err
	}
	if row == nil || (row.State != store.Dead && row.State != store.Discarded) {
		return notFound("dead letter " + quoted(r.PathValue("id")) + describeGone(row))
	}
	writeJSON(w, http.StatusOK, deadShown(row))
	return nil
}

func describeGone(row *store.Work) string {
	if row == nil {
		return ""
	}
	return "; its work is " + row.State.String()
}

type replayRequest struct {
	Reason string `json:"reason"`
}

type replayAnswer struct {
	ID       string `json:"id"`
	Replayed bool   `json:"replayed"`
	State    string `json:"state"` // of the work: ready, or what it is by now
}

func (a *api) replayDead(w http.ResponseWriter, r *http.Request) error {
	var in replayRequest
	if err := readJSON(w, r, &in, true); err != nil {
		return err
	}
	if err := checkText("reason", in.Reason); err != nil {
		return err
	}
	row, key, err := a.deadRow(r)
	if err != nil {
		return err
	}
	if row == nil || row.State != store.Dead {
		return a.replayedBefore(w, r, row, key)
	}
	err = a.Pipeline.Replay(r.Context(), key, who(r).id, in.Reason)
	if errors.Is(err, pipeline.ErrNotDead) { // somebody was quicker
		row, err = a.Store.GetWork(r.Context(), key)
		if err != nil && !isNotFound(err) {
			return fmt.Errorf("replay: %w", err)
		}
		return a.replayedBefore(w, r, row, key)
	}
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, replayAnswer{ID: deadID(key), Replayed: true, State: store.Ready.String()})
	return nil
}

// replayedBefore answers a replay of what is no dead letter (any more): the second replay of one
// is no error.
func (a *api) replayedBefore(w http.ResponseWriter, r *http.Request, row *store.Work, key store.WorkKey) error {
	switch {
	case row != nil && row.State == store.Discarded:
		return problem(http.StatusConflict, "DISCARDED", "this dead letter was discarded; nothing brings it back")
	case row != nil:
		writeJSON(w, http.StatusOK, replayAnswer{ID: deadID(key), State: row.State.String()})
		return nil
	}
	known, err := a.knows(r.Context(), key.ID)
	if err != nil {
		return err
	}
	if !known {
		return notFound("dead letter " + quoted(r.PathValue("id")))
	}
	writeJSON(w, http.StatusOK, replayAnswer{ID: r.PathValue("id"), State: "done"})
	return nil
}

// knows reports whether any object has the id.
func (a *api) knows(ctx context.Context, id edi.ID) (bool, error) {
	for _, k := range a.kinds() {
		_, err := k.show(ctx, id)
		if err == nil {
			return true, nil
		}
		if !isNotFound(err) {
			return false, fmt.Errorf("look for object %s: %w", id, err)
		}
	}
	return false, nil
}

type discardAnswer struct {
	ID        string `json:"id"`
	Discarded bool   `json:"discarded"` // false: it was before
	State     string `json:"state"`
}

func (a *api) discardDead(w http.ResponseWriter, r *http.Request) error {
	var in replayRequest
	if err := readJSON(w, r, &in, false); err != nil {
		return err
	}
	if err := checkText("reason", in.Reason); err != nil {
		return err
	}
	if strings.TrimSpace(in.Reason) == "" {
		return badRequest("REASON_MISSING", "a reason is needed: what is discarded never has an effect")
	}
	row, key, err := a.deadRow(r)
	if err != nil {
		return err
	}
	if row == nil {
		return notFound("dead letter " + quoted(r.PathValue("id")))
	}
	if row.State == store.Dead {
		err = a.Pipeline.Discard(r.Context(), key, who(r).id, in.Reason)
		switch {
		case err == nil:
			writeJSON(w, http.StatusOK, discardAnswer{ID: deadID(key), Discarded: true, State: store.Discarded.String()})
			return nil
		case !errors.Is(err, pipeline.ErrNotDead):
			return err
		}
		if row, err = a.Store.GetWork(r.Context(), key); err != nil {
			return fmt.Errorf("discard: %w", err)
		}
	}
	if row.State != store.Discarded {
		return problem(http.StatusConflict, "NOT_DEAD", "this is no dead letter any more; its work is "+row.State.String())
	}
	writeJSON(w, http.StatusOK, discardAnswer{ID: deadID(key), State: row.State.String()})
	return nil
}

// replayFilter is the filter of POST /v1/deadletters/replay.
type replayFilter struct {
	Stage   string `json:"stage"`
	Partner string `json:"partner"`
	Code    string `json:"code"`
	Since   string `json:"since"`
	Until   string `json:"until"`
}

type replayManyRequest struct {
	Filter *replayFilter `json:"filter"`
	DryRun bool          `json:"dry_run"`
	Rate   float64       `json:"rate_per_s"`
	Limit  int           `json:"limit"`
	Reason string        `json:"reason"`
}

// Bounds of a replay by filter.
const (
	defaultReplayRate = 50
	minReplayRate     = 0.01
	maxReplayRate     = 10_000
	maxReplay         = 10_000
	shownOfDryRun     = 100
	shownFailures     = 100
)

type replayFailure struct {
	ID     string `json:"id"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

type replayManyAnswer struct {
	DryRun   bool            `json:"dry_run"`
	Matched  int             `json:"matched"`
	More     bool            `json:"more"` // the limit left some out
	Replayed int             `json:"replayed"`
	Skipped  int             `json:"skipped"` // were no dead letters any more
	Failed   int             `json:"failed"`
	Failures []replayFailure `json:"failures,omitempty"`
	Items    []deadView      `json:"items,omitempty"` // of a dry run, the first 100
}

func (in *replayManyRequest) filter() (store.DeadFilter, error) {
	var f store.DeadFilter
	if in.Filter == nil {
		return f, badRequest("FILTER_MISSING", `a filter is needed; {"filter":{}} means all dead letters`)
	}
	if in.Rate == 0 {
		in.Rate = defaultReplayRate
	}
	if in.Rate < minReplayRate || in.Rate > maxReplayRate {
		return f, badRequest("RATE_INVALID", "rate_per_s must be %g to %d", minReplayRate, maxReplayRate)
	}
	if in.Limit < 0 || in.Limit > maxReplay {
		return f, badRequest("LIMIT_INVALID", "limit must be 1 to %d", maxReplay)
	}
	if in.Limit == 0 {
		in.Limit = maxReplay
	}
	if err := checkText("reason", in.Reason); err != nil {
		return f, err
	}
	stage, err := stageFilter(in.Filter.Stage)
	if err != nil {
		return f, err
	}
	f.Stage, f.Partner, f.Code = stage, in.Filter.Partner, in.Filter.Code
	for _, t := range []struct {
		name, text string
		to         *time.Time
	}{{"since", in.Filter.Since, &f.Since}, {"until", in.Filter.Until, &f.Until}} {
		if t.text == "" {
			continue
		}
		if *t.to, err = parseTime(t.text); err != nil {
			return f, badRequest("FILTER_INVALID", "%s %s is not a time; write for example 2026-01-31T08:00:00Z", t.name, quoted(t.text))
		}
	}
	return f, nil
}

func (a *api) replayMany(w http.ResponseWriter, r *http.Request) error {
	var in replayManyRequest
	if err := readJSON(w, r, &in, false); err != nil {
		return err
	}
	f, err := in.filter()
	if err != nil {
		return err
	}
	rows, more, err := a.collectDead(r.Context(), f, in.Limit)
	if err != nil {
		return err
	}
	out := replayManyAnswer{DryRun: in.DryRun, Matched: len(rows), More: more}
	if in.DryRun {
		for _, row := range rows[:min(len(rows), shownOfDryRun)] {
			out.Items = append(out.Items, deadShown(row))
		}
		writeJSON(w, http.StatusOK, out)
		return nil
	}
	unbounded(w) // thousands at a modest rate take minutes
	slices.Reverse(rows)
	if err := a.replayAll(r, rows, &in, &out); err != nil {
		return err
	}
	a.audit(r, auditObject(), "replayed_by_filter", fmt.Sprintf("%d of %d; stage=%s partner=%s code=%s %s", out.Replayed, out.Matched, in.Filter.Stage, in.Filter.Partner, in.Filter.Code, in.Reason))
	writeJSON(w, http.StatusOK, out)
	return nil
}

// collectDead takes what there is before the first replay, so that a letter which dies again is
// not replayed again. The result runs from new to old.
func (a *api) collectDead(ctx context.Context, f store.DeadFilter, limit int) (rows []*store.Work, more bool, err error) {
	for {
		f.Limit = min(maxLimit, limit+1-len(rows))
		part, err := a.Store.ListDead(ctx, f)
		if err != nil {
			return nil, false, fmt.Errorf("collect dead letters: %w", err)
		}
		rows = append(rows, part...)
		if len(rows) > limit {
			return rows[:limit], true, nil
		}
		if len(part) < f.Limit {
			return rows, false, nil
		}
		f.Before = part[len(part)-1].ID
	}
}

// replayAll replays in the order of age, at the rate that was asked for. It ends early with the
// request; what was replayed stays so.
func (a *api) replayAll(r *http.Request, rows []*store.Work, in *replayManyRequest, out *replayManyAnswer) error {
	ctx := r.Context()
	step := time.Duration(float64(time.Second) / in.Rate)
	start := a.Clock.Now()
	for i, row := range rows {
		if wait := start.Add(time.Duration(i) * step).Sub(a.Clock.Now()); wait > 0 {
			c, stop := a.Clock.NewTimer(wait)
			select {
			case <-c:
			case <-ctx.Done():
				stop()
				a.audit(r, auditObject(), "replay_by_filter_cut", fmt.Sprintf("%d of %d; the client went away", out.Replayed, out.Matched))
				return ctx.Err()
			}
			stop()
		}
		err := a.Pipeline.Replay(ctx, row.WorkKey, who(r).id, in.Reason)
		switch {
		case err == nil:
			out.Replayed++
		case errors.Is(err, pipeline.ErrNotDead):
			out.Skipped++
		default:
			out.Failed++
			p := asProblem(err)
			if p.Status >= http.StatusInternalServerError {
				a.Log.Error("replay_failed", zap.String("id", deadID(row.WorkKey)), zap.Error(err))
			}
			if len(out.Failures) < shownFailures {
				out.Failures = append(out.Failures, replayFailure{ID: deadID(row.WorkKey), Code: p.Code, Detail: p.Detail})
			}
		}
	}
	return nil
}
