package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/edihub/edihub/internal/observe"
)

// object is one kind of object for list, show and payload.
type object struct {
	e            *environment
	name, plural string
	head         []string
	row          func(raw json.RawMessage) ([]string, error)
}

func newMessageCommand(e *environment) *cobra.Command {
	o := &object{
		e: e, name: "message", plural: "messages",
		head: []string{"ID", "AT", "TYPE", "DOCUMENT", "FROM", "TO", "STATE", "CODE"},
		row: func(raw json.RawMessage) ([]string, error) {
			var v messageItem
			if err := json.Unmarshal(raw, &v); err != nil {
				return nil, err
			}
			return []string{v.ID, shortTime(v.At), v.Standard + ":" + v.Type, v.Document.Number, v.From, v.To, v.State, v.Code}, nil
		},
	}
	return o.command("Messages: what went through, with its time line",
		"A message is one EDIFACT message, X12 transaction set, UBL document or opaque file.",
		`  edihub message list --state rejected --since 24h
  edihub message list --document-no 4711
  edihub message show 01900000-0000-7000-8000-000000000000
  edihub message payload 01900000-0000-7000-8000-000000000000 > order.edi`)
}

func newInterchangeCommand(e *environment) *cobra.Command {
	o := &object{
		e: e, name: "interchange", plural: "interchanges",
		head: []string{"ID", "AT", "STANDARD", "CONTROL-REF", "FROM", "TO", "MESSAGES", "OPEN", "STATE", "CODE"},
		row: func(raw json.RawMessage) ([]string, error) {
			var v interchangeItem
			if err := json.Unmarshal(raw, &v); err != nil {
				return nil, err
			}
			return []string{v.ID, shortTime(v.At), v.Standard, v.ControlRef, v.From, v.To, strconv.Itoa(v.Messages), strconv.Itoa(v.Open), v.State, v.Code}, nil
		},
	}
	return o.command("Interchanges: UNB..UNZ, ISA..IEA, or one XML document", "",
		`  edihub interchange list --control-ref 000000042
  edihub interchange show ID`)
}

func newDeliveryCommand(e *environment) *cobra.Command {
	o := &object{
		e: e, name: "delivery", plural: "deliveries",
		head: []string{"ID", "AT", "TYPE", "PARTNER", "CONTROL-REF", "STATE", "PROOF", "ACK", "TRIES", "CODE"},
		row: func(raw json.RawMessage) ([]string, error) {
			var v deliveryItem
			if err := json.Unmarshal(raw, &v); err != nil {
				return nil, err
			}
			return []string{v.ID, shortTime(v.At), v.Standard + ":" + v.Type, v.Partner, v.ControlRef, v.State, v.Proof, v.Ack, strconv.Itoa(v.Tries), v.Code}, nil
		},
	}
	return o.command("Deliveries: files for one endpoint, with proof and acknowledgement", "",
		`  edihub delivery list --state unknown
  edihub delivery list --receiver acme --since 7d
  edihub delivery payload ID -o sent.edi`)
}

func newTransmissionCommand(e *environment) *cobra.Command {
	o := &object{
		e: e, name: "transmission", plural: "transmissions",
		head: []string{"ID", "AT", "TRANSPORT", "CONNECTION", "FROM", "TO", "SIZE", "STATE", "CODE"},
		row: func(raw json.RawMessage) ([]string, error) {
			var v transmissionItem
			if err := json.Unmarshal(raw, &v); err != nil {
				return nil, err
			}
			return []string{v.ID, shortTime(v.At), v.Transport, v.Connection, v.From, v.To, strconv.FormatInt(v.Size, 10), v.State, v.Code}, nil
		},
	}
	return o.command("Transmissions: AS2 messages, files and POSTs as they came in", "",
		`  edihub transmission list --state quarantined
  edihub transmission payload ID --form wire -o raw.p7m`)
}

type messageItem struct {
	ID       string    `json:"id"`
	At       time.Time `json:"at"`
	Standard string    `json:"standard"`
	Type     string    `json:"type"`
	From     string    `json:"from"`
	To       string    `json:"to"`
	State    string    `json:"state"`
	Code     string    `json:"code"`
	Document struct {
		Number string `json:"number"`
	} `json:"document"`
	Findings []findingItem `json:"findings"`
}

type findingItem struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Segment  string `json:"segment"`
	Location string `json:"location"`
	Message  string `json:"message"`
}

type interchangeItem struct {
	ID         string        `json:"id"`
	At         time.Time     `json:"at"`
	Standard   string        `json:"standard"`
	ControlRef string        `json:"control_ref"`
	From       string        `json:"from"`
	To         string        `json:"to"`
	Messages   int           `json:"messages"`
	Open       int           `json:"open"`
	State      string        `json:"state"`
	Code       string        `json:"code"`
	Findings   []findingItem `json:"findings"`
	DeadLetter *deadItem     `json:"dead_letter"`
}

type deliveryItem struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at"`
	Standard   string    `json:"standard"`
	Type       string    `json:"type"`
	Partner    string    `json:"partner"`
	ControlRef string    `json:"control_ref"`
	State      string    `json:"state"`
	Proof      string    `json:"proof"`
	Ack        string    `json:"ack"`
	Tries      int       `json:"tries"`
	Code       string    `json:"code"`
	Detail     string    `json:"detail"`
}

type transmissionItem struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at"`
	Transport  string    `json:"transport"`
	Connection string    `json:"connection"`
	From       string    `json:"from"`
	To         string    `json:"to"`
	Size       int64     `json:"size"`
	State      string    `json:"state"`
	Code       string    `json:"code"`
	Parsing    bool      `json:"parsing"`
	DeadLetter *deadItem `json:"dead_letter"`
}

func (o *object) command(short, long, example string) *cobra.Command {
	return group(o.name, short, long, example, o.list(), o.show(), o.payload())
}

func (o *object) list() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List " + o.plural + ", the newest first", Args: cobra.NoArgs}
	f := addClientFlags(cmd, o.e)
	filters := objectFilters(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q, err := filters.values(o.e.now())
		if err != nil {
			return err
		}
		c, err := f.connect()
		if err != nil {
			return err
		}
		defer c.close()
		if f.format == formatJSON {
			return c.list(cmd.Context(), "/v1/"+o.plural, q, filters.limit, o.e.printRaw)
		}
		t := newTable(o.head...)
		err = c.list(cmd.Context(), "/v1/"+o.plural, q, filters.limit, func(raw json.RawMessage) error {
			cells, err := o.row(raw)
			if err != nil {
				return fail(exitUnreachable, "the answer of the hub cannot be read: %w", err)
			}
			t.row(cells...)
			return nil
		})
		if err != nil {
			return err
		}
		return t.print(o.e)
	}
	return cmd
}

type eventItem struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	Detail string    `json:"detail"`
	Who    string    `json:"who"`
}

func (o *object) show() *cobra.Command {
	cmd := &cobra.Command{Use: "show ID", Short: "Show one " + o.name + " with its findings and its time line", Args: cobra.ExactArgs(1)}
	f := addClientFlags(cmd, o.e)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := f.connect()
		if err != nil {
			return err
		}
		defer c.close()
		path := "/v1/" + o.plural + "/" + url.PathEscape(args[0])
		var v map[string]json.RawMessage
		if err := c.get(cmd.Context(), path, nil, &v); err != nil {
			return err
		}
		events, err := c.events(cmd.Context(), path)
		if err != nil {
			return err
		}
		if f.format == formatJSON {
			raw, err := json.Marshal(events)
			if err != nil {
				return fmt.Errorf("show: %w", err)
			}
			v["events"] = raw
			return o.e.printJSON(v)
		}
		return o.e.showObject(v, events)
	}
	return cmd
}

func (c *client) events(ctx context.Context, path string) ([]eventItem, error) {
	var p struct {
		Items []eventItem `json:"items"`
	}
	if err := c.get(ctx, path+"/events", nil, &p); err != nil {
		return nil, err
	}
	return p.Items, nil
}

// showObject prints the plain fields, then findings, then the time line.
func (e *environment) showObject(v map[string]json.RawMessage, events []eventItem) error {
	if err := e.fields(v); err != nil {
		return err
	}
	var findings []findingItem
	if raw, ok := v["findings"]; ok {
		if err := json.Unmarshal(raw, &findings); err != nil {
			return fail(exitUnreachable, "the answer of the hub cannot be read: %w", err)
		}
	}
	if len(findings) > 0 {
		if err := e.printf("\n"); err != nil {
			return err
		}
		t := newTable("SEVERITY", "RULE", "WHERE", "FINDING")
		for _, x := range findings {
			t.row(x.Severity, x.Rule, x.Segment+x.Location, x.Message)
		}
		if err := t.print(e); err != nil {
			return err
		}
	}
	if len(events) == 0 {
		return nil
	}
	if err := e.printf("\n"); err != nil {
		return err
	}
	t := newTable("AT", "AFTER", "EVENT", "DETAIL", "WHO")
	for _, x := range events {
		t.row(x.At.UTC().Format("2006-01-02T15:04:05.000Z"), x.At.Sub(events[0].At).Round(time.Millisecond).String(), x.Event, x.Detail, x.Who)
	}
	return t.print(e)
}

// fields prints what is neither a list nor a link, in the order of the alphabet with the id first.
func (e *environment) fields(v map[string]json.RawMessage) error {
	t := newTable("FIELD", "VALUE")
	for _, name := range sortedFields(v) {
		switch text := strings.TrimSpace(string(v[name])); {
		case name == "links", name == "findings", name == "groups", text == "", text == `""`, text == "null":
		case text[0] == '"':
			var s string
			if err := json.Unmarshal(v[name], &s); err != nil {
				return fail(exitUnreachable, "the answer of the hub cannot be read: %w", err)
			}
			t.row(name, s)
		case text[0] == '{':
			var sub map[string]json.RawMessage
			if err := json.Unmarshal(v[name], &sub); err != nil {
				return fail(exitUnreachable, "the answer of the hub cannot be read: %w", err)
			}
			for _, k := range sortedFields(sub) {
				if k != "links" {
					t.row(name+"."+k, strings.Trim(string(sub[k]), `"`))
				}
			}
		default:
			t.row(name, text)
		}
	}
	return t.print(e)
}

func (o *object) payload() *cobra.Command {
	var form, out string
	cmd := &cobra.Command{
		Use: "payload ID", Short: "Write the bytes of one " + o.name + " to standard output or a file", Args: cobra.ExactArgs(1),
		Long: "Writes the bytes unchanged. On a terminal, what is no printable character is shown as a dot; use -o or a pipe for the bytes.",
	}
	f := addClientFlags(cmd, o.e)
	cmd.Flags().StringVar(&form, "form", "content", "content: what was opened and verified; wire: what travelled (transmissions)")
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to write; it must not exist")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := f.connect()
		if err != nil {
			return err
		}
		defer c.close()
		res, err := c.request(cmd.Context(), http.MethodGet, "/v1/"+o.plural+"/"+url.PathEscape(args[0])+"/payload", url.Values{"form": {form}}, nil, nil)
		if err != nil {
			return err
		}
		defer res.Body.Close() //nolint:errcheck // It was only read.
		return o.e.savePayload(res.Body, out)
	}
	return cmd
}

func (e *environment) savePayload(src io.Reader, out string) (err error) {
	to := e.stdout
	switch {
	case out != "":
		f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fail(exitUsage, "write payload: %w", err)
		}
		n, err := io.Copy(f, src)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return fail(exitUnreachable, "write payload: %d bytes were written: %w", n, err)
		}
		return nil
	case observe.IsTerminal(to):
		to = &dotWriter{to: to}
	}
	if _, err := io.Copy(to, src); err != nil {
		return fail(exitUnreachable, "write payload: %w", err)
	}
	return nil
}

// dotWriter shows bytes that a terminal would obey as dots.
type dotWriter struct{ to io.Writer }

func (w *dotWriter) Write(b []byte) (int, error) {
	c := make([]byte, len(b))
	for i, x := range b {
		if (x < 0x20 && x != '\n' && x != '\t') || x >= 0x7f {
			x = '.'
		}
		c[i] = x
	}
	return w.to.Write(c)
}
