// Package loadtest starts a hub of its own, partners that send to it and receivers that it
// delivers to, and proves the result message by message: nothing lost, nothing twice, nothing out
// of order, no byte altered, and each poison at the end that it must have.
package loadtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/app"
	"github.com/edihub/edihub/internal/app/peer"
	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/store"
)

// Options of a run.
type Options struct {
	Messages       int
	Partners       int
	Senders        int
	PerInterchange int
	Mix            string // "invoic=34,850=33,ubl=33"
	Security       string // none | signed | signed+encrypted
	Ordering       string // none | partner
	Intake         string // as2 | http | directory
	Size           int    // bytes of a document, about
	Duplicates     float64
	Poison         float64
	SinkDelay      time.Duration
	Hang           int     // receivers that take and never answer, the first of them
	Rate           float64 // messages a second; 0: as fast as they go
	Timeout        time.Duration
	Seed           uint64
	Progress       func(done, all int) // told now and then
	Log            *zap.Logger
	Workers        map[store.Stage]int // 0: the default
}

// Result is what CONTRACTS, loadtest, prints.
type Result struct {
	Submitted            int      `json:"submitted"`
	Refused              int      `json:"refused"`
	Accepted             int      `json:"accepted"`
	Delivered            int      `json:"delivered"`
	Rejected             int      `json:"rejected"`
	Dead                 int      `json:"dead"`
	DuplicatesRecognised int      `json:"duplicates_recognised"`
	Lost                 int      `json:"lost"`
	Duplicated           int      `json:"duplicated"`
	OutOfOrder           int      `json:"out_of_order"`
	Altered              int      `json:"altered"`
	UnexpectedEnd        int      `json:"unexpected_end"`
	Overlaps             int      `json:"overlaps"`
	Acks                 Acks     `json:"acks"`
	ElapsedS             float64  `json:"elapsed_s"`
	MessagesPerS         float64  `json:"messages_per_s"`
	LatencyMS            Latency  `json:"latency_ms"`
	CPUS                 float64  `json:"cpu_s"`
	RSSMB                int64    `json:"rss_mb"`
	Profile              string   `json:"profile"`
	Security             string   `json:"security"`
	Mix                  string   `json:"mix"`
	Ordering             string   `json:"ordering"`
	Intake               string   `json:"intake"`
	TimedOut             bool     `json:"timed_out,omitempty"`
	PerLane              []int    `json:"per_lane,omitempty"`
	Problems             []string `json:"problems,omitempty"`
	// Lanes has what each receiver got, for programs that run a load test.
	Lanes []Lane `json:"-"`
}

// Lane is one sender and its receiver.
type Lane struct {
	Delivered int           // documents that arrived
	Last      time.Duration // from the first post of the run to the last of those
}

// Acks counts acknowledgements.
type Acks struct {
	Expected int `json:"expected"`
	Right    int `json:"right"`
}

// Latency from the post of a message to its proof in the store, in milliseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Good reports whether the run proved what it is for. A run of which the hub took nothing proves
// nothing.
func (r *Result) Good() bool {
	return r.Accepted > 0 && r.Lost == 0 && r.Duplicated == 0 && r.OutOfOrder == 0 && r.Altered == 0 && r.UnexpectedEnd == 0 && r.Acks.Right == r.Acks.Expected && !r.TimedOut
}

// Defaults fills what was not said.
func (o *Options) Defaults() error {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&o.Messages, 1000)
	set(&o.Partners, 10)
	set(&o.Senders, 8)
	set(&o.PerInterchange, 1)
	set(&o.Size, 10<<10)
	if o.Mix == "" {
		o.Mix = "invoic=34,850=33,ubl=33"
	}
	if o.Security == "" {
		o.Security = "none"
	}
	if o.Ordering == "" {
		o.Ordering = "partner"
	}
	if o.Intake == "" {
		o.Intake = IntakeAS2
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Minute
	}
	if o.Progress == nil {
		o.Progress = func(int, int) {}
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	switch {
	case o.Security != "none" && o.Security != "signed" && o.Security != "signed+encrypted":
		return fmt.Errorf("--security %q: use none, signed or signed+encrypted", o.Security)
	case o.Ordering != "none" && o.Ordering != "partner":
		return fmt.Errorf("--ordering %q: use none or partner", o.Ordering)
	case o.Intake != IntakeAS2 && o.Intake != IntakeHTTP && o.Intake != IntakeDirectory:
		return fmt.Errorf("--intake %q: use as2, http or directory", o.Intake)
	case o.Duplicates < 0 || o.Duplicates > 100 || o.Poison < 0 || o.Poison > 100:
		return errors.New("--duplicates and --poison are percentages, 0 to 100")
	case o.Partners > 1000 || o.Senders > 1000:
		return errors.New("--partners and --senders go up to 1000")
	}
	_, err := mixOf(o.Mix)
	return err
}

// mixOf reads shares of kinds.
func mixOf(s string) ([]kind, error) {
	var out []kind
	for part := range strings.SplitSeq(s, ",") {
		name, share, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(share)
		if err != nil || n < 0 || n > 1000 {
			return nil, fmt.Errorf("--mix %q: shares look like invoic=34,850=33,ubl=33", s)
		}
		k, ok := map[string]kind{"invoic": invoic, "850": order850, "ubl": ubl}[strings.TrimSpace(name)]
		if !ok {
			return nil, fmt.Errorf("--mix %q: the kinds are invoic, 850 and ubl", s)
		}
		for range n {
			out = append(out, k)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--mix %q has no documents", s)
	}
	return out, nil
}

// run is the state of a load test.
type run struct {
	o        Options
	mix      []kind
	dir      string
	hub      *app.Hub
	self     *peer.Identity
	senders  []*peer.Identity
	security peer.Security
	url      string
	client   *http.Client
	intake   intake
	proof    *proof

	posted  atomic.Int64
	planned int
	begun   time.Time
	tokens  chan struct{}
}

// Run runs the load test. An error is a failure of the test itself; look at Result.Good for what
// it found.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.Defaults(); err != nil {
		return nil, err
	}
	mix, err := mixOf(o.Mix)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "edihub-loadtest-")
	if err != nil {
		return nil, fmt.Errorf("temporary folder: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // A temporary folder.
	r := &run{o: o, mix: mix, dir: dir, security: peer.Security{Sign: o.Security != "none", Encrypt: o.Security == "signed+encrypted"}}
	r.proof = newProof(r)
	sink, err := r.setUp(ctx)
	if err != nil {
		return nil, err
	}
	defer sink.Close() //nolint:errcheck // Ends with the process.
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	before := cpuSeconds()
	err = r.post(ctx)
	if err == nil {
		err = r.proof.settle(ctx)
	}
	timedOut := errors.Is(err, context.DeadlineExceeded)
	if err != nil && !timedOut {
		return nil, errors.Join(err, r.hub.Stop(context.WithoutCancel(ctx)))
	}
	res, perr := r.proof.result(context.WithoutCancel(ctx))
	if perr == nil {
		res.TimedOut = timedOut
		res.CPUS = round(cpuSeconds() - before)
		res.RSSMB = peakRSS()
	}
	r.proof.release()
	stopCtx, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer stop()
	return res, errors.Join(perr, r.hub.Stop(stopCtx))
}

func round(v float64) float64 { return float64(int64(v*10+0.5)) / 10 }

func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// peakRSS is the largest resident size of the process so far, in MB.
func peakRSS() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss / 1024
}

// setUp makes identities and records, and starts the receivers and the hub.
func (r *run) setUp(ctx context.Context) (*http.Server, error) {
	now := time.Now()
	ids, err := identities(2*r.o.Partners+1, r.security.Sign || r.security.Encrypt, now)
	if err != nil {
		return nil, err
	}
	r.self = ids[0]
	r.senders = ids[1 : 1+r.o.Partners]
	receivers := map[string]*peer.Identity{}
	for _, id := range ids[1+r.o.Partners:] {
		receivers[id.AS2ID] = id
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for receivers: %w", err)
	}
	sink := &http.Server{
		Handler:           &peer.Sink{Hub: r.self, Receivers: receivers, Security: r.security, Now: time.Now, Take: r.proof.take},
		ReadHeaderTimeout: 10 * time.Second, ErrorLog: zap.NewStdLog(r.o.Log),
	}
	go func() { _ = sink.Serve(ln) }()
	reg, err := r.records(ids, ln.Addr().String(), now)
	if err != nil {
		return nil, errors.Join(err, sink.Close())
	}
	cfg, err := r.config()
	if err != nil {
		return nil, errors.Join(err, sink.Close())
	}
	r.hub, err = app.New(app.Options{Config: cfg, Registry: reg, Log: r.o.Log, Wrap: r.proof.wrap})
	if err != nil {
		return nil, errors.Join(err, sink.Close())
	}
	if err := r.hub.Start(ctx); err != nil {
		return nil, errors.Join(err, sink.Close())
	}
	r.url = "http://" + r.hub.AS2Addr() + "/as2"
	r.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * r.o.Senders, DisableCompression: true}}
	if r.intake, err = r.newIntake(); err != nil {
		return nil, errors.Join(err, r.hub.Stop(context.WithoutCancel(ctx)), sink.Close())
	}
	return sink, nil
}

func (r *run) config() (*config.Config, error) {
	flags := map[string]string{
		"data": filepath.Join(r.dir, "data"), "as2.listen": "127.0.0.1:0", "admin.listen": "127.0.0.1:0",
	}
	for s, n := range r.o.Workers {
		if n > 0 {
			flags["stages."+s.String()+".workers"] = strconv.Itoa(n)
		}
	}
	cfg, _, err := config.Load(config.Options{Flags: flags})
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return cfg, nil
}

// identities makes n of them; keys only where they are used, on all cores.
func identities(n int, keys bool, now time.Time) ([]*peer.Identity, error) {
	names := func(i int) string {
		p := (n - 1) / 2
		switch {
		case i == 0:
			return "LTHUB"
		case i <= p:
			return senderID(i)
		}
		return receiverID(i - p)
	}
	out := make([]*peer.Identity, n)
	if !keys {
		for i := range out {
			out[i] = &peer.Identity{AS2ID: names(i)}
		}
		return out, nil
	}
	var wg sync.WaitGroup
	errs := make([]error, n)
	slots := make(chan struct{}, 4)
	for i := range out {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; wg.Done() }()
			out[i], errs[i] = peer.NewIdentity(names(i), now)
		}()
	}
	wg.Wait()
	return out, errors.Join(errs...)
}

// records writes the partner records of the run: sender i writes to receiver i.
func (r *run) records(ids []*peer.Identity, sink string, now time.Time) (*partner.Registry, error) {
	var b strings.Builder
	sec := r.security
	for _, id := range ids {
		if id.Key != nil {
			if err := id.WriteFiles(r.dir); err != nil {
				return nil, err
			}
		}
	}
	keys := ""
	if ids[0].Key != nil {
		keys = fmt.Sprintf(`, keys: [{cert: %q, key: %q}]`, ids[0].CertFile, ids[0].KeyFile)
	}
	fmt.Fprintf(&b, "own:\n  - {id: hub, as2: {id: LTHUB%s}, identifiers: [\"edifact:ZZ:LTHUB\", \"x12:ZZ:LTHUB\", \"peppol:9930:LTHUB\"]}\nconnections:\n", keys)
	require, sign, encrypt := "[]", "none", "none"
	switch {
	case sec.Sign && sec.Encrypt:
		require, sign, encrypt = "[signed, encrypted]", "sha256", "aes256-cbc"
	case sec.Sign:
		require, sign = "[signed]", "sha256"
	}
	for _, id := range ids[1:] {
		certs := ""
		if id.Key != nil {
			certs = fmt.Sprintf(", certificates: [{file: %q}]", id.CertFile)
		}
		fmt.Fprintf(&b, "  - {id: c-%s, as2: {id: %s, own: hub, url: \"http://%s/as2\", sign: %s, encrypt: %s, require: %s, mdn: {mode: sync, signed: %v}}%s, in_flight: 4, retry: {first: 200ms, max: 2s}}\n",
			id.AS2ID, id.AS2ID, sink, sign, encrypt, require, sec.Sign, certs)
	}
	from := "c-"
	if r.o.Intake == IntakeDirectory {
		from = "d-"
		for i := 1; i <= r.o.Partners; i++ {
			fmt.Fprintf(&b, "  - {id: d-%s, directory: {in: %q}}\n", senderID(i), r.inFolder(i))
		}
	}
	b.WriteString("partners:\n")
	for i, id := range ids[1:] {
		way := "c-"
		if i < r.o.Partners {
			way = from
		}
		fmt.Fprintf(&b, "  - {id: p-%s, connections: [%s%s], identifiers: [\"edifact:ZZ:%s\", \"x12:ZZ:%s\", \"peppol:9930:%s\"]}\n", id.AS2ID, way, id.AS2ID, id.AS2ID, id.AS2ID, id.AS2ID)
	}
	fmt.Fprintf(&b, "agreements:\n  - {match: {}, role: endpoint, split: messages, on_poison: skip, acks: {ubl: none}, ordering: {by: %s}}\nroutes:\n", r.o.Ordering)
	for i := 1; i <= r.o.Partners; i++ {
		fmt.Fprintf(&b, "  - {match: {from: p-%s, to: p-%s, document: [\"edifact:*\", \"x12:*\"]}, to: p-%s, envelope: new}\n", senderID(i), receiverID(i), receiverID(i))
		fmt.Fprintf(&b, "  - {match: {from: p-%s, to: p-%s, document: [\"ubl:*\"]}, to: p-%s, envelope: none}\n", senderID(i), receiverID(i), receiverID(i))
	}
	reg, err := partner.Parse([]byte(b.String()), r.dir, partner.LoadOptions{Now: now})
	if err != nil {
		return nil, fmt.Errorf("records of the load test: %w", err)
	}
	return reg, nil
}

// plan is everything that one lane posts, in order.
type plan struct {
	lane    int
	files   []file
	n       int // files posted
	posts   int // posts under a Message-ID of their own
	repeats []repeat
}

// file is one post.
type file struct {
	docs  []document
	again bool // comes again later
	same  bool // then as the same AS2 message, else under a new Message-ID
}

// plans shares the messages over the lanes; everything is a function of the seed.
func (r *run) plans() []plan {
	rnd := rand.New(rand.NewPCG(r.o.Seed, 42)) //nolint:gosec // G404: a repeatable test.
	ps := make([]plan, r.o.Partners)
	serial := make([]int, r.o.Partners+1)
	for i := range ps {
		ps[i].lane = i + 1
	}
	poison, nextFlaw, nextSame := int(float64(r.o.Messages)*r.o.Poison/100+0.5), 0, 0
	bad := map[int]bool{}
	for len(bad) < poison {
		bad[rnd.IntN(r.o.Messages)] = true
	}
	repeats := int(float64(r.o.Messages)*r.o.Duplicates/100 + 0.5)
	for i := 0; i < r.o.Messages; {
		p := &ps[(i/r.o.PerInterchange)%r.o.Partners]
		k := r.mix[rnd.IntN(len(r.mix))]
		n := min(r.o.PerInterchange, r.o.Messages-i)
		if k == ubl {
			n = 1
		}
		f := file{}
		for j := range n {
			fl := sound
			if bad[i+j] && n == 1 {
				fl = flaw(1 + nextFlaw%flawsInTurn)
				nextFlaw++
			}
			serial[p.lane]++
			f.docs = append(f.docs, newDocument(k, fl, p.lane, serial[p.lane]))
		}
		i += n
		p.files = append(p.files, f)
	}
	// Only good ones come again.
	for repeats > 0 {
		more := false
		for _, at := range rnd.Perm(len(ps)) {
			fs := ps[at].files
			if len(fs) == 0 || repeats == 0 {
				continue
			}
			f := &fs[rnd.IntN(len(fs))]
			if f.again || f.docs[0].flaw != sound {
				more = more || len(fs) > repeats
				continue
			}
			f.again, f.same = true, nextSame%2 == 0
			nextSame++
			repeats--
			more = true
		}
		if !more {
			break
		}
	}
	return ps
}

// post lets the senders post: each partner one after another, the senders share the partners.
func (r *run) post(ctx context.Context) error {
	ps := r.plans()
	for i := range ps {
		r.planned += len(ps[i].files)
	}
	r.begun = time.Now()
	stopRate := r.pace(ctx)
	defer stopRate()
	next := make(chan *plan, len(ps))
	for i := range ps {
		next <- &ps[i]
	}
	var wg sync.WaitGroup
	errs := make(chan error, r.o.Senders)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for range r.o.Senders {
		wg.Go(func() {
			if err := r.sender(ctx, next, len(ps)); err != nil {
				errs <- err
				cancel(err)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			continue
		}
		return err
	}
	return nil
}

// pace hands out tokens at the rate that was asked for.
func (r *run) pace(ctx context.Context) func() {
	if r.o.Rate <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	r.tokens = make(chan struct{}, 1)
	tick := time.NewTicker(time.Duration(float64(time.Second) / r.o.Rate))
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				select {
				case r.tokens <- struct{}{}:
				default:
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return cancel
}

// sender takes turns over the partners: it posts one file of a partner and puts it back.
func (r *run) sender(ctx context.Context, next chan *plan, _ int) error {
	for {
		var p *plan
		select {
		case p = <-next:
		default:
			return nil // the others have the rest in hand
		}
		for {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if len(p.files) == 0 {
				break
			}
			f := p.files[0]
			p.files = p.files[1:]
			if err := r.postFile(ctx, p, &f); err != nil {
				return err
			}
			if len(next) > 0 { // more partners than senders: let the next one have its turn
				next <- p
				break
			}
		}
	}
}
