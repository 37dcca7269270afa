// Package demo runs a hub with two demo partners who post real AS2 to it, signed and encrypted,
// so that a newcomer sees messages flow.
package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/app"
	"github.com/edihub/edihub/internal/app/peer"
	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/partner"
)

// Options of Run.
type Options struct {
	Pause time.Duration // between two posts; default 2 s
	Posts int           // 0: until ctx ends
	Log   *zap.Logger
	Clock clock.Clock                   // the system's
	Say   func(format string, a ...any) // one line for a person
}

// deliveredWithin is how long the demo waits for an order to arrive.
const deliveredWithin = 30 * time.Second

// records of the demo: acme sends, globex receives, and the other way round.
const records = `
own:
  - {id: hub, as2: {id: DEMOHUB, keys: [{cert: %[1]q, key: %[2]q}]}, identifiers: ["edifact:ZZ:DEMOHUB", "x12:ZZ:DEMOHUB"]}
connections:
  - {id: acme-as2, as2: {id: ACME, own: hub, url: "http://%[5]s/as2", mdn: {mode: sync, signed: true}}, certificates: [{file: %[3]q}]}
  - {id: globex-as2, as2: {id: GLOBEX, own: hub, url: "http://%[5]s/as2", mdn: {mode: sync, signed: true}}, certificates: [{file: %[4]q}]}
partners:
  - {id: acme, connections: [acme-as2], identifiers: ["edifact:ZZ:ACME", "x12:ZZ:ACME"]}
  - {id: globex, connections: [globex-as2], identifiers: ["edifact:ZZ:GLOBEX", "x12:ZZ:GLOBEX"]}
routes:
  - {match: {from: acme}, to: globex, envelope: new}
  - {match: {from: globex}, to: acme, envelope: new}
`

// Run runs the demo until ctx ends or all posts were delivered.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Pause <= 0 {
		o.Pause = 2 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	now := o.Clock.Now()
	dir, err := os.MkdirTemp("", "edihub-demo-")
	if err != nil {
		return fmt.Errorf("temporary folder: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // A temporary folder.
	ids := map[string]*peer.Identity{}
	for _, name := range []string{"DEMOHUB", "ACME", "GLOBEX"} {
		id, err := peer.NewIdentity(name, now)
		if err != nil {
			return err
		}
		if err := id.WriteFiles(dir); err != nil {
			return err
		}
		ids[name] = id
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the partners: %w", err)
	}
	security := peer.Security{Sign: true, Encrypt: true}
	arrived := make(chan *peer.Received, 64)
	sink := &http.Server{ReadHeaderTimeout: 10 * time.Second, ErrorLog: zap.NewStdLog(o.Log), Handler: &peer.Sink{
		Hub: ids["DEMOHUB"], Receivers: map[string]*peer.Identity{"ACME": ids["ACME"], "GLOBEX": ids["GLOBEX"]}, Security: security, Now: o.Clock.Now,
		Take: func(ctx context.Context, m *peer.Received) error {
			select {
			case arrived <- m:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}}
	go func() { _ = sink.Serve(ln) }()
	defer sink.Close() //nolint:errcheck // Ends with the demo.
	reg, err := partner.Parse(fmt.Appendf(nil, records, ids["DEMOHUB"].CertFile, ids["DEMOHUB"].KeyFile, ids["ACME"].CertFile, ids["GLOBEX"].CertFile, ln.Addr()), dir, partner.LoadOptions{Now: now})
	if err != nil {
		return fmt.Errorf("demo records: %w", err)
	}
	cfg, _, err := config.Load(config.Options{Flags: map[string]string{"data": filepath.Join(dir, "data"), "as2.listen": "127.0.0.1:0", "admin.listen": "127.0.0.1:0"}})
	if err != nil {
		return fmt.Errorf("demo configuration: %w", err)
	}
	hub, err := app.New(app.Options{Config: cfg, Registry: reg, Log: o.Log, Clock: o.Clock})
	if err != nil {
		return err
	}
	if err := hub.Start(ctx); err != nil {
		return err
	}
	o.Say("console  http://%s/", hub.AdminAddr())
	o.Say("as2      http://%s/as2", hub.AS2Addr())
	o.Say("data     %s  (edihub message list --data %s)", cfg.Data, cfg.Data)
	err = post(ctx, &o, hub, ids, security, arrived)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.StopWithin)
	defer cancel()
	return errors.Join(err, hub.Stop(stop))
}

func post(ctx context.Context, o *Options, hub *app.Hub, ids map[string]*peer.Identity, security peer.Security, arrived chan *peer.Received) error {
	client := &http.Client{Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	for n := 1; o.Posts == 0 || n <= o.Posts; n++ {
		from, to := "ACME", "GLOBEX"
		if n%2 == 0 {
			from, to = to, from
		}
		payload := order(from, to, n)
		wire, err := peer.Prepare(&peer.Message{
			URL: "http://" + hub.AS2Addr() + "/as2", From: ids[from], To: ids["DEMOHUB"], MessageID: fmt.Sprintf("<demo-%d@%s>", n, from),
			Media: "application/EDIFACT", Payload: payload, Security: security, At: o.Clock.Now(),
		})
		if err != nil {
			return err
		}
		began := o.Clock.Now()
		a, err := wire.Post(ctx, client)
		if ctx.Err() != nil {
			return nil // the demo was ended
		}
		if err != nil {
			return err
		}
		if a.MDN == nil || a.MDN.Outcome != as2.Positive {
			return fmt.Errorf("the hub answered order %d with HTTP %d and no positive MDN", n, a.Status)
		}
		o.Say("order %-4d %s -> %s   signed MDN after %s", n, from, to, o.Clock.Now().Sub(began).Round(time.Millisecond))
		if err := await(ctx, o, n, began, arrived); err != nil {
			return err
		}
		if n == o.Posts || !o.wait(ctx, o.Pause) {
			return nil
		}
	}
	return nil
}

// await waits for the delivery of the nth order, or for the end of the demo.
func await(ctx context.Context, o *Options, n int, began time.Time, arrived <-chan *peer.Received) error {
	late, stop := o.Clock.NewTimer(deliveredWithin)
	defer stop()
	select {
	case m := <-arrived:
		o.Say("           delivered to %s as %s, %d bytes, after %s", m.To, m.MessageID, len(m.Payload), o.Clock.Now().Sub(began).Round(time.Millisecond))
	case <-late:
		return fmt.Errorf("order %d was not delivered within %s", n, deliveredWithin)
	case <-ctx.Done():
	}
	return nil
}

// wait pauses; false means that the demo was ended.
func (o *Options) wait(ctx context.Context, d time.Duration) bool {
	over, stop := o.Clock.NewTimer(d)
	defer stop()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

func order(from, to string, n int) []byte {
	return fmt.Appendf(nil, "UNB+UNOC:3+%s:ZZ+DEMOHUB:ZZ+261130:1200+%d'UNH+1+ORDERS:D:96A:UN'BGM+220+PO-%s-%d+9'DTM+137:20261130:102'NAD+BY+5412345000013::9'NAD+SU+5412345000020::9++%s'LIN+1++4000862141404:EN'QTY+21:5'UNS+S'UNT+9+1'UNZ+1+%d'", from, n, from, n, to, n)
}
