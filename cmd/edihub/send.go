package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

type sendOptions struct {
	from, to, key string
	wait          time.Duration
}

// sendResult is the JSON that send prints.
type sendResult struct {
	File         string        `json:"file"`
	Transmission string        `json:"transmission_id"`
	Repeated     bool          `json:"repeated"`
	Waited       bool          `json:"waited"`
	Delivered    bool          `json:"delivered"`
	State        string        `json:"state"`
	Code         string        `json:"code,omitempty"`
	Detail       string        `json:"detail,omitempty"`
	Messages     []sentMessage `json:"messages"`
	Ms           int64         `json:"ms"`
}

type sentMessage struct {
	ID       string        `json:"id"`
	Type     string        `json:"type"`
	Document string        `json:"document,omitempty"`
	State    string        `json:"state"`
	Code     string        `json:"code,omitempty"`
	Findings []findingItem `json:"findings"`
}

func newSendCommand(e *environment) *cobra.Command {
	var o sendOptions
	cmd := &cobra.Command{
		Use:   "send --from PARTNER --to PARTNER FILE",
		Short: "Submit a file to a running hub",
		Long: `Submits a file as if the partner --from had sent it over its first connection. FILE "-" is standard
input.

Without --wait the command ends when the hub has the file durably. With --wait it ends 0 only when
every message of the file is delivered, and 1 when one is not, or not in time. A second send with the
same --idempotency-key and the same file has no second effect.`,
		Example: `  edihub send --from acme --to erp order.edi
  edihub send --from acme --to erp --wait 60s --format json order.edi
  gunzip -c batch.edi.gz | edihub send --from acme --to erp --idempotency-key batch-17 -`,
		Args: cobra.ExactArgs(1),
	}
	f := addClientFlags(cmd, e)
	cmd.Flags().StringVar(&o.from, "from", "", "id of the partner who sends")
	cmd.Flags().StringVar(&o.to, "to", "", "id of the partner or own identity that receives")
	cmd.Flags().StringVar(&o.key, "idempotency-key", "", "name of this submission; the same name again has no second effect")
	cmd.Flags().DurationVar(&o.wait, "wait", 0, "wait so long for the delivery")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.from == "" || o.to == "" {
			return fail(exitUsage, "send needs --from and --to")
		}
		if o.wait < 0 {
			return fail(exitUsage, "--wait must not be negative")
		}
		c, err := f.connect()
		if err != nil {
			return err
		}
		defer c.close()
		res, err := e.send(cmd.Context(), c, &o, args[0])
		if err != nil {
			return err
		}
		return e.report(res, f.format)
	}
	return cmd
}

func (e *environment) send(ctx context.Context, c *client, o *sendOptions, file string) (*sendResult, error) {
	start := e.now()
	src, name := e.stdin, ""
	if file != "-" {
		fh, err := os.Open(file)
		if err != nil {
			return nil, fail(exitUsage, "%w", err)
		}
		defer fh.Close() //nolint:errcheck // It was only read.
		if st, err := fh.Stat(); err != nil || !st.Mode().IsRegular() {
			return nil, fail(exitUsage, "%s is not a file", file)
		}
		src, name = fh, filepath.Base(file)
	}
	res, err := c.submit(ctx, o, src, name)
	if err != nil {
		return nil, err
	}
	res.File = file
	if o.wait > 0 {
		if err := c.follow(ctx, res, o.wait); err != nil {
			return nil, err
		}
	}
	res.Ms = e.now().Sub(start).Milliseconds()
	return res, nil
}

func (c *client) submit(ctx context.Context, o *sendOptions, src io.Reader, name string) (*sendResult, error) {
	q := url.Values{"from": {o.from}, "to": {o.to}}
	if name != "" {
		q.Set("file_name", printable(name))
	}
	media := mime.TypeByExtension(filepath.Ext(name))
	if media == "" {
		media = "application/octet-stream"
	}
	h := http.Header{"Content-Type": {media}}
	if o.key != "" {
		h.Set("Idempotency-Key", o.key)
	}
	// NopCloser: the file is closed by whoever opened it.
	res, err := c.request(ctx, http.MethodPost, "/v1/messages", q, h, io.NopCloser(src))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // It was only read.
	out := &sendResult{Messages: []sentMessage{}}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(out); err != nil {
		return nil, fail(exitUnreachable, "the answer of the hub cannot be read: %w", err)
	}
	return out, nil
}

// resting reports whether a message goes no further without a person.
func resting(state string) bool {
	return slices.Contains([]string{"delivered", "rejected", "duplicate", "dead", "discarded", "held"}, state)
}

// follow waits until everything of the transmission has come to rest.
func (c *client) follow(ctx context.Context, res *sendResult, wait time.Duration) error {
	res.Waited = true
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	pause := 50 * time.Millisecond
	seen := map[string]string{}
	start := c.e.now()
	for {
		rest, err := c.look(ctx, res, func(id, what, state string) {
			if seen[id] != state {
				seen[id] = state
				c.e.progress("%8s  %s %s", c.e.now().Sub(start).Round(10*time.Millisecond), printable(what), state)
			}
		})
		if err != nil || rest {
			return err
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-deadline.C:
			again.Stop()
			res.Code, res.Detail = "WAIT_OVER", "not delivered within "+wait.String()+"; it goes on"
			return c.explain(ctx, res)
		case <-ctx.Done():
			again.Stop()
			return fail(exitBad, "interrupted; transmission %s goes on", res.Transmission)
		}
		pause = min(pause*3/2, 500*time.Millisecond)
	}
}

// explain says what a delivery that is not through waits for.
func (c *client) explain(ctx context.Context, res *sendResult) error {
	var p struct {
		Items []deliveryItem `json:"items"`
	}
	if err := c.get(ctx, "/v1/deliveries", url.Values{"transmission": {res.Transmission}}, &p); err != nil {
		return err
	}
	for _, d := range p.Items {
		if d.State != "delivered" && d.Code != "" {
			res.Detail += fmt.Sprintf("; delivery %s is %s: %s %s", d.ID, d.State, d.Code, d.Detail)
			return nil
		}
	}
	return nil
}

// look reads the state of everything that came from the transmission. It reports true when all
// of it has come to rest.
func (c *client) look(ctx context.Context, res *sendResult, tell func(id, what, state string)) (bool, error) {
	const all = 1 << 30
	id := res.Transmission
	var t transmissionItem
	if err := c.get(ctx, "/v1/transmissions/"+url.PathEscape(id), nil, &t); err != nil {
		return false, err
	}
	res.State, res.Code, res.Detail = t.State, t.Code, ""
	tell(id, "transmission "+id, t.State)
	if d := t.DeadLetter; d != nil {
		res.State, res.Code, res.Detail = "dead", d.Code, d.Detail
		return true, nil
	}
	if t.Parsing {
		return false, nil
	}
	var ics []interchangeItem
	parent := url.Values{"transmission": {id}}
	err := c.list(ctx, "/v1/interchanges", parent, all, func(raw json.RawMessage) error {
		ics = append(ics, interchangeItem{})
		return json.Unmarshal(raw, &ics[len(ics)-1])
	})
	if err != nil {
		return false, err
	}
	res.Messages = res.Messages[:0]
	err = c.list(ctx, "/v1/messages", parent, all, func(raw json.RawMessage) error {
		var m messageItem
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		tell(m.ID, "message "+m.ID+" "+m.Type, m.State)
		res.Messages = append(res.Messages, sentMessage{ID: m.ID, Type: m.Type, Document: m.Document.Number, State: m.State, Code: m.Code, Findings: m.Findings})
		return nil
	})
	if err != nil {
		return false, err
	}
	slices.Reverse(res.Messages) // the order of the file
	return res.judge(ics), nil
}

// judge reports whether everything has come to rest, and whether it was delivered.
func (res *sendResult) judge(ics []interchangeItem) bool {
	want := 0
	rejected := false
	for _, ic := range ics {
		switch ic.State {
		case "received", "staged":
			return false
		case "rejected", "duplicate", "dead", "discarded":
			rejected = true
			res.State, res.Code = ic.State, ic.Code
			if len(ic.Findings) > 0 {
				res.Detail = ic.Findings[0].Message
			}
		}
		want += ic.Messages
	}
	if len(ics) == 0 {
		return false
	}
	delivered := 0
	for _, m := range res.Messages {
		if !resting(m.State) {
			return false
		}
		if m.State == "delivered" {
			delivered++
			continue
		}
		res.State, res.Code = m.State, m.Code
	}
	if !rejected && len(res.Messages) < want {
		return false
	}
	res.Delivered = !rejected && delivered > 0 && delivered == len(res.Messages)
	if res.Delivered {
		res.State = "delivered"
	}
	return true
}

// report prints the result; its error is the exit code.
func (e *environment) report(res *sendResult, format string) error {
	if format == formatJSON {
		if err := e.printJSON(res); err != nil {
			return err
		}
	} else if err := e.reportText(res); err != nil {
		return err
	}
	if res.Waited && !res.Delivered {
		return &exitError{code: exitBad}
	}
	return nil
}

func (e *environment) reportText(res *sendResult) error {
	what := "accepted"
	if res.Repeated {
		what = "repeated"
	}
	if res.Waited {
		what = res.State
	}
	line := fmt.Sprintf("transmission %s %s", res.Transmission, what)
	if res.Code != "" {
		line += " " + res.Code
	}
	if res.Detail != "" {
		line += ": " + res.Detail
	}
	if err := e.printf("%s\n", printable(line)); err != nil || len(res.Messages) == 0 {
		return err
	}
	t := newTable("MESSAGE", "TYPE", "DOCUMENT", "STATE", "CODE", "FIRST FINDING")
	for _, m := range res.Messages {
		first := ""
		if len(m.Findings) > 0 {
			first = m.Findings[0].Rule + " " + m.Findings[0].Message
		}
		t.row(m.ID, m.Type, m.Document, m.State, m.Code, cutText(first, 100))
	}
	return t.print(e)
}
