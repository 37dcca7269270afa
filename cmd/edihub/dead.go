package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

// deadItem is a dead letter as the API shows it.
type deadItem struct {
	ID      string    `json:"id"`
	Stage   string    `json:"stage"`
	Object  string    `json:"object"`
	Kind    string    `json:"kind"`
	State   string    `json:"state"`
	Code    string    `json:"code"`
	Detail  string    `json:"detail"`
	Partner string    `json:"partner"`
	Died    time.Time `json:"died_at"`
}

// allDead is the limit of replay and discard by filter, the same that the API has.
const allDead = 10_000

func newDeadCommand(e *environment) *cobra.Command {
	return group("dead", "Dead letters: what your operators must mend",
		`What the hub could not process waits as a dead letter: look at it, mend the cause (a partner record, a
route, a certificate), and replay it. Replay starts at the stage that failed. What is discarded never
has an effect.`,
		`  edihub dead list --stage router --since 24h
  edihub dead show router.01900000-0000-7000-8000-000000000000
  edihub dead replay --code NO_ROUTE --dry-run
  edihub dead replay --code NO_ROUTE --reason "route added"
  edihub dead discard router.01900000-0000-7000-8000-000000000000 --reason "sent twice by ACME"`,
		newDeadList(e), newDeadShow(e), newDeadReplay(e), newDeadDiscard(e))
}

func newDeadList(e *environment) *cobra.Command {
	var discarded bool
	cmd := &cobra.Command{Use: "list", Short: "List dead letters, the newest first", Args: cobra.NoArgs}
	f := addClientFlags(cmd, e)
	filters := deadFilters(cmd, defaultListLimit)
	cmd.Flags().BoolVar(&discarded, "discarded", false, "those that were discarded")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q, err := filters.values(e.now())
		if err != nil {
			return err
		}
		if discarded {
			q.Set("state", "discarded")
		}
		c, err := f.connect()
		if err != nil {
			return err
		}
		defer c.close()
		if f.format == formatJSON {
			return c.list(cmd.Context(), "/v1/deadletters", q, filters.limit, e.printRaw)
		}
		items, err := c.dead(cmd.Context(), q, filters.limit)
		if err != nil {
			return err
		}
		return e.deadTable(items)
	}
	return cmd
}

func (c *client) dead(ctx context.Context, q url.Values, limit int) ([]deadItem, error) {
	var out []deadItem
	err := c.list(ctx, "/v1/deadletters", q, limit, func(raw json.RawMessage) error {
		var d deadItem
		if err := json.Unmarshal(raw, &d); err != nil {
			return fail(exitUnreachable, "the answer of the hub cannot be read: %w", err)
		}
		out = append(out, d)
		return nil
	})
	return out, err
}

func (e *environment) deadTable(items []deadItem) error {
	t := newTable("ID", "DIED", "KIND", "PARTNER", "CODE", "DETAIL")
	for _, d := range items {
		t.row(d.ID, shortTime(d.Died), d.Kind, d.Partner, d.Code, cutText(d.Detail, 80))
	}
	return t.print(e)
}

func newDeadShow(e *environment) *cobra.Command {
	cmd := &cobra.Command{Use: "show ID", Short: "Show one dead letter with the time line of its object", Args: cobra.ExactArgs(1)}
	f := addClientFlags(cmd, e)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := f.connect()
		if err != nil {
			return err
		}
		defer c.close()
		var v map[string]json.RawMessage
		if err := c.get(cmd.Context(), "/v1/deadletters/"+url.PathEscape(args[0]), nil, &v); err != nil {
			return err
		}
		if f.format == formatJSON {
			return e.printJSON(v)
		}
		var l struct {
			Object string `json:"object"`
		}
		if err := json.Unmarshal(v["links"], &l); err != nil {
			return fail(exitUnreachable, "the answer of the hub cannot be read: %w", err)
		}
		events, err := c.events(cmd.Context(), l.Object)
		if err != nil {
			return err
		}
		return e.showObject(v, events)
	}
	return cmd
}

// manyFlags are what replay and discard share: ids, or filters.
type manyFlags struct {
	e       *environment
	client  *clientFlags
	filters *filterFlags
	all     bool
	dryRun  bool
	reason  string
}

func addManyFlags(cmd *cobra.Command, e *environment, verb string) *manyFlags {
	m := &manyFlags{e: e, client: addClientFlags(cmd, e), filters: deadFilters(cmd, allDead)}
	cmd.Flags().BoolVar(&m.all, "all", false, verb+" every dead letter")
	cmd.Flags().BoolVar(&m.dryRun, "dry-run", false, "show which, and do nothing")
	cmd.Flags().StringVar(&m.reason, "reason", "", "why, for the record")
	return m
}

// check says whether ids and filters go together.
func (m *manyFlags) check(ids []string) error {
	switch {
	case len(ids) > 0 && (m.filters.given() || m.all):
		return fail(exitUsage, "give ids or filters, not both")
	case len(ids) == 0 && !m.filters.given() && !m.all:
		return fail(exitUsage, "name dead letters by id or by filter, or say --all")
	case m.all && m.filters.given():
		return fail(exitUsage, "--all and a filter contradict each other")
	case m.filters.limit > allDead:
		return fail(exitUsage, "--limit must be at most %d", allDead)
	}
	return nil
}

// preview lists what would be done.
func (m *manyFlags) preview(ctx context.Context, c *client, ids []string, q url.Values) error {
	var items []deadItem
	for _, id := range ids {
		var d deadItem
		if err := c.get(ctx, "/v1/deadletters/"+url.PathEscape(id), nil, &d); err != nil {
			return err
		}
		items = append(items, d)
	}
	if len(ids) == 0 {
		var err error
		if items, err = c.dead(ctx, q, m.filters.limit); err != nil {
			return err
		}
	}
	if m.client.format == formatJSON {
		for i := range items {
			if err := m.e.printJSON(&items[i]); err != nil {
				return err
			}
		}
		return nil
	}
	m.e.note("dry run: %d dead letters, nothing was done", len(items))
	return m.e.deadTable(items)
}

type replayResult struct {
	ID       string `json:"id"`
	Replayed bool   `json:"replayed"`
	State    string `json:"state"`
}

type replayManyResult struct {
	DryRun   bool `json:"dry_run"`
	Matched  int  `json:"matched"`
	More     bool `json:"more"`
	Replayed int  `json:"replayed"`
	Skipped  int  `json:"skipped"`
	Failed   int  `json:"failed"`
	Failures []struct {
		ID     string `json:"id"`
		Code   string `json:"code"`
		Detail string `json:"detail"`
	} `json:"failures,omitempty"`
}

func newDeadReplay(e *environment) *cobra.Command {
	var rate float64
	cmd := &cobra.Command{
		Use: "replay [ID…]", Short: "Replay dead letters, by id or by filter, the oldest first",
		Long: "Replays from the stage that failed. A second replay of the same dead letter does nothing.",
	}
	m := addManyFlags(cmd, e, "replay")
	cmd.Flags().Float64Var(&rate, "rate", 50, "by filter: at most so many a second")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		if err := m.check(ids); err != nil {
			return err
		}
		if rate <= 0 {
			return fail(exitUsage, "--rate must be above 0")
		}
		q, err := m.filters.values(e.now())
		if err != nil {
			return err
		}
		c, err := m.client.connect()
		if err != nil {
			return err
		}
		defer c.close()
		if m.dryRun {
			return m.preview(cmd.Context(), c, ids, q)
		}
		if len(ids) > 0 {
			return m.replayEach(cmd.Context(), c, ids)
		}
		return m.replayFiltered(cmd.Context(), c, q, rate)
	}
	return cmd
}

func (m *manyFlags) replayEach(ctx context.Context, c *client, ids []string) error {
	for _, id := range ids {
		var r replayResult
		path := "/v1/deadletters/" + url.PathEscape(id) + "/replay"
		if err := c.call(ctx, answerTimeout, http.MethodPost, path, nil, map[string]string{"reason": m.reason}, &r); err != nil {
			return err
		}
		if m.client.format == formatJSON {
			if err := m.e.printJSON(&r); err != nil {
				return err
			}
			continue
		}
		what := "replayed"
		if !r.Replayed {
			what = "is no dead letter any more; its work is " + r.State
		}
		if err := m.e.printf("%s %s\n", printable(r.ID), what); err != nil {
			return err
		}
	}
	return nil
}

func (m *manyFlags) replayFiltered(ctx context.Context, c *client, q url.Values, rate float64) error {
	filter := map[string]string{}
	for k := range q {
		filter[k] = q.Get(k)
	}
	in := map[string]any{"filter": filter, "rate_per_s": rate, "limit": m.filters.limit, "reason": m.reason}
	// The hub answers when it is through: as long as the rate says, and some.
	timeout := answerTimeout + time.Duration(float64(m.filters.limit)/rate*1.5*float64(time.Second))
	var r replayManyResult
	if err := c.call(ctx, timeout, http.MethodPost, "/v1/deadletters/replay", nil, in, &r); err != nil {
		return err
	}
	if m.client.format == formatJSON {
		if err := m.e.printJSON(&r); err != nil {
			return err
		}
	} else {
		if err := m.e.printf("%d replayed of %d, %d were no dead letters any more, %d failed\n", r.Replayed, r.Matched, r.Skipped, r.Failed); err != nil {
			return err
		}
		for _, f := range r.Failures {
			m.e.note("%s %s: %s", printable(f.ID), f.Code, printable(f.Detail))
		}
		if r.More {
			m.e.note("there are more; run the command again")
		}
	}
	if r.Failed > 0 {
		return &exitError{code: exitBad}
	}
	return nil
}

func newDeadDiscard(e *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "discard [ID…] --reason TEXT", Short: "Give dead letters up: they never have an effect",
		Long: "Discards by id or by filter. The lane of a discarded message goes on. Nothing brings it back.",
	}
	m := addManyFlags(cmd, e, "discard")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		if err := m.check(ids); err != nil {
			return err
		}
		if m.reason == "" && !m.dryRun {
			return fail(exitUsage, "discard needs --reason")
		}
		q, err := m.filters.values(e.now())
		if err != nil {
			return err
		}
		c, err := m.client.connect()
		if err != nil {
			return err
		}
		defer c.close()
		if m.dryRun {
			return m.preview(cmd.Context(), c, ids, q)
		}
		if len(ids) == 0 {
			items, err := c.dead(cmd.Context(), q, m.filters.limit)
			if err != nil {
				return err
			}
			for _, d := range items {
				ids = append(ids, d.ID)
			}
		}
		return m.discardEach(cmd.Context(), c, ids)
	}
	return cmd
}

func (m *manyFlags) discardEach(ctx context.Context, c *client, ids []string) error {
	done := 0
	for _, id := range ids {
		var r struct {
			ID        string `json:"id"`
			Discarded bool   `json:"discarded"`
			State     string `json:"state"`
		}
		path := "/v1/deadletters/" + url.PathEscape(id) + "/discard"
		if err := c.call(ctx, answerTimeout, http.MethodPost, path, nil, map[string]string{"reason": m.reason}, &r); err != nil {
			if done > 0 {
				m.e.note("%d were discarded before this", done)
			}
			return err
		}
		done++
		if m.client.format == formatJSON {
			if err := m.e.printJSON(&r); err != nil {
				return err
			}
			continue
		}
		what := "discarded"
		if !r.Discarded {
			what = "was discarded before"
		}
		if err := m.e.printf("%s %s\n", printable(r.ID), what); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		m.e.note("no dead letter matches")
	}
	return nil
}
