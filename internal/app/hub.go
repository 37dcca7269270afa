// Package app wires a hub from its configuration and runs it: Start, Stop, Reload. It owns the
// order in which parts start and stop and nothing else.
package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/admin"
	"github.com/edihub/edihub/internal/as2/receiver"
	"github.com/edihub/edihub/internal/as2/sender"
	"github.com/edihub/edihub/internal/broker"
	"github.com/edihub/edihub/internal/broker/local"
	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/endpoint/dial"
	"github.com/edihub/edihub/internal/endpoint/directory"
	httpendpoint "github.com/edihub/edihub/internal/endpoint/http"
	"github.com/edihub/edihub/internal/observe"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/pipeline/parse"
	"github.com/edihub/edihub/internal/pipeline/route"
	"github.com/edihub/edihub/internal/pipeline/send"
	"github.com/edihub/edihub/internal/pipeline/validate"
	"github.com/edihub/edihub/internal/spool"
	"github.com/edihub/edihub/internal/store"
	"github.com/edihub/edihub/internal/store/sqlite"
)

// ErrProfile is returned for a profile that this program does not carry yet.
var ErrProfile = errors.New("only the embedded profile is in this program; set profile: embedded")

// StopWithin is how long a program gives Stop: a hub that is told to end has ended within 5 s,
// half a second of which is for the process around it.
const StopWithin = 4500 * time.Millisecond

// Options of a Hub. Config is required.
type Options struct {
	Config *config.Config
	// Registry is used instead of the partners file.
	Registry *partner.Registry
	Log      *zap.Logger // none
	Clock    clock.Clock // the system's
	Version  string
	// Wrap may put something around a stage; the load test and tests do.
	Wrap func(s store.Stage, impl pipeline.Stage) pipeline.Stage
	// Probe is called at named points, so that a test can stop the process there.
	Probe func(point string)
	// Tune changes what the configuration does not show; tests shorten pauses with it.
	Tune func(o *pipeline.Options)
	// FreeSpace tells the free bytes of the disk that holds a folder; the default asks the
	// system. Tests fill the disk with it.
	FreeSpace func(dir string) (int64, error)
}

// Hub is a whole hub in one process.
type Hub struct {
	opt      Options
	cfg      *config.Config
	log      *zap.Logger
	clock    clock.Clock
	registry *partner.Holder
	metrics  *observe.Metrics

	store    store.Store
	broker   broker.Broker
	pipeline *pipeline.Pipeline
	spool    *spool.Spool
	dialer   *dial.Dialer
	ends     endpoints

	as2Listener, adminListener net.Listener
	certificates               []*listenerTLS

	mu      sync.Mutex
	stops   []func(ctx context.Context) error // run from the last to the first
	pollers map[string]*directory.Poller
	ready   bool
	wg      sync.WaitGroup
}

type endpoints struct {
	as2, http send.Endpoint
	directory *directory.Endpoint
}

// New makes a hub from its configuration and reads the partner records.
func New(o Options) (*Hub, error) {
	if o.Config.Profile != config.Embedded {
		return nil, fmt.Errorf("profile %s: %w", o.Config.Profile, ErrProfile)
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	h := &Hub{opt: o, cfg: o.Config, log: o.Log, clock: o.Clock, pollers: map[string]*directory.Poller{}}
	reg, err := h.readRegistry()
	if err != nil {
		return nil, err
	}
	h.registry = partner.NewHolder(reg)
	return h, nil
}

func (h *Hub) readRegistry() (*partner.Registry, error) {
	if h.opt.Registry != nil {
		return h.opt.Registry, nil
	}
	if h.cfg.PartnersFile == "" {
		return partner.Empty(), nil
	}
	reg, err := partner.Load(h.cfg.PartnersFile, partner.LoadOptions{Now: h.clock.Now()})
	if errors.Is(err, fs.ErrNotExist) && h.cfg.Origins().IsDefault("partners_file") {
		return partner.Empty(), nil // a first start without any records
	}
	if err != nil {
		return nil, fmt.Errorf("partner records: %w", err)
	}
	return reg, nil
}

// Start opens the store, the listeners and the pipeline. When it returns nil the hub takes
// messages. What had started is stopped again when a later part fails.
func (h *Hub) Start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{h.openStore, h.startPipeline, h.startAS2, h.startAdmin, h.startPollers} {
		if err := step(ctx); err != nil {
			return errors.Join(err, h.Stop(context.WithoutCancel(ctx)))
		}
	}
	h.mu.Lock()
	h.ready = true
	h.mu.Unlock()
	return nil
}

func (h *Hub) atStop(f func(ctx context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stops = append(h.stops, f)
}

func (h *Hub) openStore(ctx context.Context) error {
	if err := os.MkdirAll(h.cfg.Data, 0o700); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	so := sqlite.Options{Dir: h.cfg.Data, Clock: h.clock, Log: h.log, MinFree: h.cfg.Limits.MinFreeDisk}
	if free := h.opt.FreeSpace; free != nil {
		so.FreeSpace = func(dir string) (uint64, error) {
			n, err := free(dir)
			return uint64(max(0, n)), err
		}
	}
	st, err := sqlite.Open(ctx, so)
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	h.store = st
	h.atStop(func(context.Context) error { return st.Close() })
	h.broker = local.New(h.clock)
	h.atStop(func(context.Context) error { return h.broker.Close() })
	sp, err := spool.New(filepath.Join(h.cfg.Data, "spool"), spool.Options{MinFree: h.cfg.Limits.MinFreeDisk, Max: h.cfg.AS2.MaxMessage, Free: h.opt.FreeSpace})
	if err != nil {
		return fmt.Errorf("open spool: %w", err)
	}
	h.spool = sp
	return h.versionRegistry(ctx, h.registry.Current())
}

func (h *Hub) startPipeline(ctx context.Context) error {
	h.dialer = dial.New(dial.Options{Clock: h.clock})
	h.atStop(func(context.Context) error { h.dialer.Close(); return nil })
	h.ends = endpoints{
		as2:       sender.New(sender.Options{Dial: h.dialer, Spool: h.spool, Clock: h.clock, Log: h.log, Probe: h.opt.Probe}),
		directory: directory.New(directory.Options{Clock: h.clock, Mine: h.isOurs, Probe: h.opt.Probe}),
		http:      httpendpoint.New(httpendpoint.Options{Dialer: h.dialer, Clock: h.clock}),
	}
	stages := map[store.Stage]pipeline.Stage{
		store.Parser: parse.New(parse.Options{}), store.Validator: validate.New(validate.Checkers()), store.Router: route.New(),
	}
	if h.opt.Wrap != nil {
		for s, impl := range stages {
			stages[s] = h.opt.Wrap(s, impl)
		}
	}
	h.metrics = observe.NewMetrics()
	o := pipeline.Options{
		Store: h.store, Broker: h.broker, Registry: h.registry, Clock: h.clock, Log: h.log, Observer: h.metrics,
		Stages: stages, Settings: settings(h.cfg), Endpoint: h.endpoint, Dir: h.cfg.Data, Lease: h.cfg.Lease, Probe: h.opt.Probe,
	}
	if h.opt.Tune != nil {
		h.opt.Tune(&o)
	}
	h.pipeline = pipeline.New(o)
	if err := h.pipeline.Start(ctx); err != nil {
		return fmt.Errorf("start pipeline: %w", err)
	}
	h.atStop(h.pipeline.Stop)
	h.metrics.Watch(observe.Sources{Store: h.store, Stages: h.pipeline.Stages, Connected: h.broker.Connected, Clock: h.clock})
	return nil
}

// isOurs reports whether a delivery is in the store, which no other process has open.
func (h *Hub) isOurs(delivery edi.ID) bool {
	_, err := h.store.GetDelivery(context.Background(), delivery)
	return err == nil
}

func settings(c *config.Config) map[store.Stage]pipeline.StageSettings {
	of := func(s config.Stage) pipeline.StageSettings {
		return pipeline.StageSettings{Workers: s.Workers, Min: s.Min, Max: s.Max, Timeout: s.Timeout}
	}
	return map[store.Stage]pipeline.StageSettings{
		store.Parser: of(c.Stages.Parser), store.Validator: of(c.Stages.Validator), store.Router: of(c.Stages.Router), store.Sender: of(c.Stages.Sender),
	}
}

// endpoint picks what sends over a connection.
func (h *Hub) endpoint(c *partner.Connection) send.Endpoint {
	switch {
	case c.AS2 != nil:
		return h.ends.as2
	case c.Directory != nil && c.Directory.Out != "":
		return h.ends.directory
	case c.HTTP != nil:
		return h.ends.http
	}
	return nil
}

func (h *Hub) startAS2(context.Context) error {
	l := &h.cfg.Limits
	handler := receiver.New(receiver.Options{
		Pipeline: h.pipeline, Store: h.store, Spool: h.spool,
		Meter: spool.NewMeter(spool.Limits{PerPartner: l.InFlightPartner, PerSource: l.InFlightSource, Total: l.InFlightTotal}),
		Clock: h.clock, Log: h.log, MaxMessage: h.cfg.AS2.MaxMessage, Observer: h.metrics, Probe: h.opt.Probe,
		Limits: receiver.Limits{Requests: l.Requests, MinBodyRate: l.MinBodyRate, BodyTimeout: l.BodyTimeout},
	})
	tlsConfig, err := h.listenerTLS(h.cfg.AS2.TLS)
	if err != nil {
		return fmt.Errorf("as2 listener: %w", err)
	}
	srv := receiver.Server(handler, receiver.ServerOptions{
		Addr: h.cfg.AS2.Listen, TLS: tlsConfig, HeaderTimeout: l.HeaderTimeout, IdleTimeout: l.IdleTimeout, MaxHeader: int(l.MaxHeader), Log: h.log,
	})
	h.as2Listener, err = h.serve(srv, h.cfg.AS2.Listen, "as2")
	return err
}

func (h *Hub) startAdmin(ctx context.Context) error {
	tlsConfig, err := h.listenerTLS(h.cfg.Admin.TLS)
	if err != nil {
		return fmt.Errorf("admin listener: %w", err)
	}
	if err := admin.CheckListen(h.cfg.Admin.Listen, tlsConfig != nil, h.cfg.Admin.Insecure); err != nil {
		return fmt.Errorf("admin listener: %w", err)
	}
	if _, err := admin.EnsureToken(ctx, h.store, h.cfg.Data, h.clock.Now()); err != nil {
		return fmt.Errorf("admin token: %w", err)
	}
	handler, err := admin.New(admin.Options{
		Pipeline: h.pipeline, Store: h.store, Registry: h.registry, Spool: h.spool, Clock: h.clock, Log: h.log,
		Ready: h.waitingFor, Metrics: h.metrics, Version: h.opt.Version, Hosts: h.cfg.Admin.Hosts,
		MaxBody: h.cfg.AS2.MaxMessage, Profile: string(h.cfg.Profile),
	})
	if err != nil {
		return fmt.Errorf("admin API: %w", err)
	}
	srv := admin.Server(handler, admin.ServerOptions{Addr: h.cfg.Admin.Listen, TLS: tlsConfig, Log: h.log})
	if h.adminListener, err = h.serve(srv, h.cfg.Admin.Listen, "admin"); err != nil {
		return err
	}
	scheme := "http://"
	if tlsConfig != nil {
		scheme = "https://"
	}
	if err := admin.WriteURL(h.cfg.Data, scheme+h.AdminAddr()); err != nil {
		return fmt.Errorf("admin listener: %w", err)
	}
	return nil
}

func (h *Hub) listenerTLS(files config.TLS) (*tls.Config, error) {
	t, err := newListenerTLS(files)
	if err != nil {
		return nil, err
	}
	h.certificates = append(h.certificates, t)
	return t.config()
}

// serve listens and serves until Stop, which first lets requests in hand finish.
func (h *Hub) serve(srv *http.Server, addr, name string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s listener: %w", name, err)
	}
	h.wg.Go(func() {
		var err error
		if srv.TLSConfig != nil {
			err = srv.ServeTLS(ln, "", "")
		} else {
			err = srv.Serve(ln)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			h.log.Error("listener_ended", zap.String("listener", name), zap.Error(err))
		}
	})
	h.atStop(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			return srv.Close() // requests that do not end: their partner posts again
		}
		return nil
	})
	return ln, nil
}

// Stop ends the hub: not ready, listeners closed, what is in hand finished or given back, the
// store closed. It may be called twice.
func (h *Hub) Stop(ctx context.Context) error {
	h.mu.Lock()
	h.ready = false
	stops := h.stops
	h.stops = nil
	h.mu.Unlock()
	var err error
	for _, stop := range slices.Backward(stops) {
		err = errors.Join(err, stop(ctx))
	}
	h.wg.Wait()
	return err
}

// waitingFor lists what the hub waits for; nothing means ready.
func (h *Hub) waitingFor(ctx context.Context) []string {
	h.mu.Lock()
	ready := h.ready
	h.mu.Unlock()
	var out []string
	if !ready {
		out = append(out, "start")
	}
	if err := h.store.Ping(ctx); err != nil {
		out = append(out, "store")
	}
	if !h.broker.Connected() {
		out = append(out, "broker")
	}
	return out
}

// AS2Addr is the address of the AS2 listener, once started.
func (h *Hub) AS2Addr() string { return h.as2Listener.Addr().String() }

// AdminAddr is the address of the admin listener, once started.
func (h *Hub) AdminAddr() string { return h.adminListener.Addr().String() }

// Pipeline is for programs that run a hub inside: the demo, the load test, tests.
func (h *Hub) Pipeline() *pipeline.Pipeline { return h.pipeline }

// Store is the hub's store, for the same.
func (h *Hub) Store() store.Store { return h.store }

// Registry holds the partner records.
func (h *Hub) Registry() *partner.Holder { return h.registry }
