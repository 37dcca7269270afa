// Package measure shows what is promised of the whole hub: that a stage grows with its workers,
// that partners who hang hold up nobody else, that a large interchange with a wrong trailer
// releases nothing and takes bounded memory, how fast the program is ready, and that it runs on a
// machine that has nothing but the program. Everything is on loopback and ends by itself.
package measure

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/edihub/edihub/internal/app/peer"
	"github.com/edihub/edihub/internal/as2"
)

// Table is one measurement as a person reads it.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
	Notes []string // below the table
	// Broken lists what is not as promised; nothing means that the promise held.
	Broken []string
}

func (t *Table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		switch v := c.(type) {
		case float64:
			row[i] = fmt.Sprintf("%.2f", v)
		default:
			row[i] = fmt.Sprint(v)
		}
	}
	t.Rows = append(t.Rows, row)
}

func (t *Table) broken(format string, a ...any) {
	t.Broken = append(t.Broken, fmt.Sprintf(format, a...))
}

// Print writes the table.
func (t *Table) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", t.Title)
	cols := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range slices.Concat([][]string{t.Head}, t.Rows) {
		_, _ = fmt.Fprintf(cols, "  %s\n", strings.Join(row, "\t"))
	}
	if err := cols.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	for _, n := range t.Notes {
		fmt.Fprintf(&b, "\n  %s", n)
	}
	for _, n := range t.Broken {
		fmt.Fprintf(&b, "\n  BROKEN: %s", n)
	}
	if len(t.Notes)+len(t.Broken) > 0 {
		b.WriteString("\n")
	}
	if _, err := fmt.Fprintln(w, b.String()); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}

// The names in the records of all measurements.
const (
	hubName      = "MHUB"
	senderName   = "MSENDER"
	receiverName = "MRECEIVER"
)

// rig is a folder with partner records, one sender whose messages the caller posts, and one
// receiver that counts.
type rig struct {
	dir      string
	hub      *peer.Identity
	sender   *peer.Identity
	receiver *receiver
	security peer.Security // of what comes in
	client   *http.Client
	sink     *http.Server
	posts    int
}

// rigOptions are what differs between measurements.
type rigOptions struct {
	secured  bool   // what comes in is signed and encrypted
	split    string // messages | preserve
	envelope string // new | keep
	hold     bool   // the receiver takes and does not answer before the end
}

// receiver counts what arrives.
type receiver struct {
	arrived chan *peer.Received
	end     chan struct{} // closed with the rig
	hold    bool
}

func (r *receiver) take(ctx context.Context, m *peer.Received) error {
	if r.hold {
		select {
		case <-r.end:
			return errEnded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case r.arrived <- m:
		return nil
	case <-r.end:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

func newRig(ctx context.Context, o rigOptions) (*rig, error) {
	dir, err := os.MkdirTemp("", "edihub-measure-")
	if err != nil {
		return nil, fmt.Errorf("temporary folder: %w", err)
	}
	r := &rig{
		dir: dir, security: peer.Security{Sign: o.secured, Encrypt: o.secured},
		receiver: &receiver{arrived: make(chan *peer.Received, 1024), end: make(chan struct{}), hold: o.hold},
		client:   &http.Client{Transport: &http.Transport{DisableCompression: true}},
	}
	if err := r.setUp(ctx, o); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *rig) setUp(ctx context.Context, o rigOptions) error {
	now := time.Now()
	for name, id := range map[string]**peer.Identity{hubName: &r.hub, senderName: &r.sender} {
		made, err := peer.NewIdentity(name, now)
		if err != nil {
			return err
		}
		if err := made.WriteFiles(r.dir); err != nil {
			return err
		}
		*id = made
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the receiver: %w", err)
	}
	r.sink = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: &peer.Sink{
		Hub: r.hub, Receivers: map[string]*peer.Identity{receiverName: {AS2ID: receiverName}}, Now: time.Now, Take: r.receiver.take,
	}}
	go func() { _ = r.sink.Serve(ln) }()
	require := "[]"
	if o.secured {
		require = "[signed, encrypted]"
	}
	records := fmt.Sprintf(`
own:
  - {id: hub, as2: {id: %[1]s, keys: [{cert: %[4]q, key: %[5]q}]}, identifiers: ["edifact:ZZ:%[1]s", "x12:ZZ:%[1]s"]}
connections:
  - {id: c-in, as2: {id: %[2]s, own: hub, url: "http://127.0.0.1:1/", require: %[7]s, mdn: {mode: sync, signed: %[8]v}}, certificates: [{file: %[6]q}]}
  - {id: c-out, as2: {id: %[3]s, own: hub, url: "http://%[9]s/", sign: none, encrypt: none, require: [], mdn: {mode: sync, signed: false}}, in_flight: 16}
partners:
  - {id: sender, connections: [c-in], identifiers: ["edifact:ZZ:%[2]s", "x12:ZZ:%[2]s"]}
  - {id: receiver, connections: [c-out], identifiers: ["edifact:ZZ:%[3]s", "x12:ZZ:%[3]s"]}
agreements:
  - {match: {}, role: endpoint, split: %[10]s, ordering: {by: none}}
routes:
  - {match: {from: sender}, to: receiver, envelope: %[11]s}
`, hubName, senderName, receiverName, r.hub.CertFile, r.hub.KeyFile, r.sender.CertFile, require, o.secured, ln.Addr(), o.split, o.envelope)
	if err := os.WriteFile(r.records(), []byte(records), 0o600); err != nil {
		return fmt.Errorf("partner records: %w", err)
	}
	return nil
}

func (r *rig) records() string { return filepath.Join(r.dir, "partners.yaml") }

func (r *rig) close() {
	close(r.receiver.end)
	if r.sink != nil {
		_ = r.sink.Close() // only a listener of this process
	}
	r.client.CloseIdleConnections()
	_ = os.RemoveAll(r.dir) // a temporary folder
}

// post sends a file to a hub and wants a positive MDN.
func (r *rig) post(ctx context.Context, as2Addr, media string, payload []byte) error {
	r.posts++
	wire, err := peer.Prepare(&peer.Message{
		URL: "http://" + as2Addr + "/as2", From: r.sender, To: r.hub, MessageID: fmt.Sprintf("<measure-%d@%s>", r.posts, senderName),
		Media: media, Payload: payload, Security: r.security, At: time.Now(),
	})
	if err != nil {
		return err
	}
	a, err := wire.Post(ctx, r.client)
	if err != nil {
		return err
	}
	if a.MDN == nil || a.MDN.Outcome != as2.Positive {
		return fmt.Errorf("post %d: %w: HTTP %d", r.posts, errNoMDN, a.Status)
	}
	return nil
}

// waitUntil asks again and again, as long as ctx allows.
func waitUntil(ctx context.Context, every time.Duration, good func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ok, err := good()
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func median(ds []time.Duration) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(ds))
	return s[len(s)/2]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.0f ms", float64(d.Microseconds())/1000) }
