package app_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/admin"
	"github.com/edihub/edihub/internal/app/hubtest"
	"github.com/edihub/edihub/internal/app/peer"
	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/store"
)

// killPatience bounds every wait; what works needs a small part of it.
const killPatience = 60 * time.Second

// killRecords is what the hubs of these tests know: three partners who send (SHOP through a
// directory), two who receive over AS2, and an application that gets files.
const killRecords = `
own:
  - {id: hub, as2: {id: HUB, keys: [{cert: HUB.pem, key: HUB.key}]}, identifiers: ["edifact:ZZ:HUB"]}
connections:
  - {id: acme, as2: {id: ACME, own: hub, url: "http://${sink}/as2", require: [signed], encrypt: none}, certificates: [{file: ACME.pem}]}
  - {id: beta, as2: {id: BETA, own: hub, url: "http://${sink}/as2", require: [signed], encrypt: none}, certificates: [{file: BETA.pem}]}
  - {id: globex, as2: {id: GLOBEX, own: hub, url: "http://${sink}/as2", require: [], sign: none, encrypt: none, mdn: {signed: false}}, certificates: [{file: GLOBEX.pem}], retry: {first: 5ms, max: 20ms}}
  - {id: initech, as2: {id: INITECH, own: hub, url: "http://${sink}/as2", require: [], sign: none, encrypt: none, mdn: {signed: false}}, certificates: [{file: INITECH.pem}], retry: {first: 5ms, max: 20ms}}
  - {id: erp, directory: {out: erp, name: "{control_ref}.edi"}, retry: {first: 5ms, max: 20ms}}
  - {id: shop, directory: {in: shop}}
partners:
  - {id: acme, connections: [acme], identifiers: ["edifact:ZZ:ACME"]}
  - {id: beta, connections: [beta], identifiers: ["edifact:ZZ:BETA"]}
  - {id: shop, connections: [shop], identifiers: ["edifact:ZZ:SHOP"]}
  - {id: globex, connections: [globex], identifiers: ["edifact:ZZ:GLOBEX"]}
  - {id: initech, connections: [initech], identifiers: ["edifact:ZZ:INITECH"]}
  - {id: erp, connections: [erp], identifiers: ["edifact:ZZ:ERP"]}
agreements:
  - {match: {}, role: endpoint, split: messages, ordering: {by: partner}, acks: {contrl: {answer: never}, ubl: none}}
routes:
  - {match: {to: globex}, to: globex, envelope: new}
  - {match: {to: initech}, to: initech, envelope: new}
  - {match: {to: erp}, to: erp, envelope: new}
`

// killWorld is a hub in a process of its own that is started again whenever it dies, and the
// partners around it.
type killWorld struct {
	t    *testing.T
	dir  string
	ids  map[string]*peer.Identity
	http *http.Client
	srv  *http.Server
	ctx  context.Context //nolint:containedctx // It ends with the test.
	fail context.CancelCauseFunc
	all  sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and made anew whenever something happened
	proc    *hubProcess   // nil while there is none
	next    string        // the order for the next process
	stop    bool          // no next process
	ends    []string      // how the processes ended
	ready   []hubReady    // of the processes that came so far, the first left out
	took    []time.Duration
	readyAt time.Time                              // of the process that runs, until something arrived from it
	resumed []time.Duration                        // from there to the first arrival
	hold    func(r *peer.Received) <-chan struct{} // what an answer waits for

	docs    map[string][]byte // UNH..UNT by document number
	checked killMark
	posts   []*killPost // accepted
	seen    map[string]*killArrival
	arrived []*killArrival // first arrivals, in order
	again   int            // repeats that a receiver dropped
}

// killMark is up to where the API was looked at.
type killMark struct {
	at    time.Time
	docs  map[string]bool
	posts int
}

// killPost is an AS2 message on its way to the hub.
type killPost struct {
	messageID string
	wire      *peer.Wire
	numbers   []string
	answer    []byte // of the first positive MDN
	tries     int
}

// killArrival is what a receiver took under one Message-ID.
type killArrival struct {
	to, messageID string
	payload       []byte
	numbers       []string
}

func newKillWorld(t *testing.T) *killWorld {
	t.Helper()
	w := &killWorld{
		t: t, dir: t.TempDir(), ids: map[string]*peer.Identity{}, changed: make(chan struct{}),
		docs: map[string][]byte{}, seen: map[string]*killArrival{},
	}
	w.ctx, w.fail = context.WithCancelCause(context.Background())
	for name, id := range keys.Identities(t, "HUB", "ACME", "BETA", "GLOBEX", "INITECH") {
		own := *id
		if err := own.WriteFiles(w.dir); err != nil {
			t.Fatal(err)
		}
		w.ids[name] = &own
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sink := &peer.Sink{Hub: w.ids["HUB"], Receivers: w.ids, Now: time.Now, Take: w.take}
	w.srv = &http.Server{Handler: sink, ReadHeaderTimeout: killPatience}
	w.all.Go(func() { _ = w.srv.Serve(ln) }) // until close
	records := strings.ReplaceAll(killRecords, "${sink}", ln.Addr().String())
	if err := os.WriteFile(filepath.Join(w.dir, "partners.yaml"), []byte(records), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(w.dir, "shop"), 0o700); err != nil {
		t.Fatal(err)
	}
	// The partners know the hub by a name. A connection waits until the hub listens.
	w.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		p, err := w.hub(ctx)
		if err != nil {
			return nil, err
		}
		to := p.AS2
		if strings.HasPrefix(addr, "localhost:") {
			to = p.Admin
		}
		return (&net.Dialer{}).DialContext(ctx, network, to)
	}}}
	w.all.Go(w.supervise)
	t.Cleanup(w.close)
	return w
}

// close ends the process that runs, and every goroutine.
func (w *killWorld) close() {
	w.mu.Lock()
	w.stop = true
	p := w.proc
	w.mu.Unlock()
	if p != nil {
		p.kill()
	}
	w.fail(errors.New("the test has ended"))
	_ = w.srv.Close() // nobody answers any more
	w.all.Wait()
	log, err := os.ReadFile(filepath.Join(w.dir, "hub.log"))
	if err != nil {
		w.t.Error(err)
	}
	for _, word := range []string{"DATA RACE", "panic:", `"level":"error"`} {
		if at := bytes.Index(log, []byte(word)); at >= 0 {
			w.t.Errorf("a hub's process logged:\n%s", log[max(0, at-200):min(len(log), at+3000)])
		}
	}
	if w.t.Failed() {
		w.t.Logf("the end of hub.log:\n%s", log[max(0, len(log)-6000):])
	}
}

// supervise keeps one process running until close.
func (w *killWorld) supervise() {
	for first := true; ; first = false {
		w.mu.Lock()
		order, stop := w.next, w.stop
		w.next = ""
		w.mu.Unlock()
		if stop {
			return
		}
		p, err := startHub(w.dir, order)
		if err != nil {
			w.fail(fmt.Errorf("start the hub: %w", err))
			return
		}
		w.mu.Lock()
		if p.ready {
			w.proc = p
			if !first {
				w.ready, w.took, w.readyAt = append(w.ready, p.hubReady), append(w.took, p.took), time.Now()
			}
		}
		stop = w.stop
		w.mu.Unlock()
		w.tell()
		if stop {
			p.kill()
		}
		<-p.done
		w.mu.Lock()
		w.proc = nil
		w.ends = append(w.ends, p.ended())
		w.mu.Unlock()
		w.tell()
		if end := p.ended(); end != "killed" && end != "0" {
			w.fail(fmt.Errorf("the hub's process ended with %s, see hub.log", end))
			return
		}
	}
}

func (w *killWorld) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *killWorld) isChanged() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// wait returns once done says true, or with an error when something failed.
func (w *killWorld) wait(ctx context.Context, what string, done func() (bool, error)) error {
	limit := time.NewTimer(killPatience)
	defer limit.Stop()
	tick := time.NewTicker(15 * time.Millisecond) // what the hub does by itself tells nobody here
	defer tick.Stop()
	why := error(nil)
	for {
		c := w.isChanged()
		ok, err := done()
		if ok {
			return nil
		}
		if err != nil {
			why = err
		}
		select {
		case <-c:
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-w.ctx.Done():
			return context.Cause(w.ctx)
		case <-limit.C:
			return fmt.Errorf("waited %s for %s (%w)", killPatience, what, why)
		}
	}
}

// must is wait for the test's own goroutine.
func (w *killWorld) must(what string, done func() (bool, error)) {
	w.t.Helper()
	if err := w.wait(w.ctx, what, done); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

// hub waits for a process that is ready.
func (w *killWorld) hub(ctx context.Context) (*hubProcess, error) {
	var p *hubProcess
	err := w.wait(ctx, "a hub", func() (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		p = w.proc
		return p != nil, nil
	})
	return p, err
}

func (w *killWorld) deaths() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ends)
}

// order gives the process that runs an order, and the next one another.
func (w *killWorld) order(now, next string) {
	w.t.Helper()
	w.mu.Lock()
	w.next = next
	w.mu.Unlock()
	p, err := w.hub(w.ctx)
	if err != nil || !p.arm(now) {
		w.t.Fatalf("the hub does not take orders: %v", err)
	}
}

// terminate asks the process to stop, and returns how it ended and how long that took.
func (w *killWorld) terminate() (string, time.Duration) {
	w.t.Helper()
	p, err := w.hub(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	begin := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		w.t.Fatal(err)
	}
	select {
	case <-p.done:
	case <-time.After(killPatience):
		w.t.Fatal("SIGTERM did not end the process")
	}
	return p.ended(), time.Since(begin)
}

// take is what a receiver does: he drops a Message-ID that he has, and keeps everything else.
func (w *killWorld) take(ctx context.Context, r *peer.Received) error {
	w.mu.Lock()
	hold := w.hold
	w.mu.Unlock()
	if hold != nil {
		if c := hold(r); c != nil {
			select {
			case <-c:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	defer w.tell()
	w.mu.Lock()
	defer w.mu.Unlock()
	if have := w.seen[r.MessageID]; have != nil {
		w.again++
		if have.to != r.To || !bytes.Equal(have.payload, r.Payload) {
			w.fail(fmt.Errorf("message %s came again with other content", r.MessageID))
		}
		return nil
	}
	a := &killArrival{to: r.To, messageID: r.MessageID, payload: r.Payload, numbers: numbersIn(r.Payload)}
	w.seen[r.MessageID] = a
	if !w.readyAt.IsZero() {
		w.resumed, w.readyAt = append(w.resumed, time.Since(w.readyAt)), time.Time{}
	}
	w.arrived = append(w.arrived, a)
	return nil
}

var killNumber = regexp.MustCompile(`BGM\+220\+(K-[A-Z]+-[A-Z]+-[0-9]+)\+9'`)

func numbersIn(payload []byte) []string {
	var out []string
	for _, m := range killNumber.FindAllSubmatch(payload, -1) {
		out = append(out, string(m[1]))
	}
	return out
}

// killLane is a sender and a receiver with the serial of what was sent last.
type killLane struct {
	from, to string
	serial   int
}

// interchange makes the next n documents of a lane; pad makes them long.
func (w *killWorld) interchange(l *killLane, n, pad int) ([]byte, []string) {
	var b bytes.Buffer
	ref := l.serial + 1
	fmt.Fprintf(&b, "UNB+UNOC:3+%s:ZZ+%s:ZZ+261130:1200+%d'", l.from, l.to, ref)
	var numbers []string
	for i := range n {
		l.serial++
		number := fmt.Sprintf("K-%s-%s-%d", l.from, l.to, l.serial)
		from, lines := b.Len(), 1+pad/24
		fmt.Fprintf(&b, "UNH+%d+ORDERS:D:96A:UN'BGM+220+%s+9'DTM+137:20261130:102'NAD+BY+5412345000013::9'", i+1, number)
		for j := range lines {
			fmt.Fprintf(&b, "LIN+%06d'QTY+21:%05d'", j+1, j)
		}
		fmt.Fprintf(&b, "UNS+S'UNT+%d+%d'", 6+2*lines, i+1)
		w.mu.Lock()
		w.docs[number] = bytes.Clone(b.Bytes()[from:])
		w.mu.Unlock()
		numbers = append(numbers, number)
	}
	fmt.Fprintf(&b, "UNZ+%d+%d'", n, ref)
	return b.Bytes(), numbers
}

// prepare builds the next AS2 message of a lane.
func (w *killWorld) prepare(l *killLane, n, pad int) (*killPost, error) {
	payload, numbers := w.interchange(l, n, pad)
	p := &killPost{messageID: fmt.Sprintf("<%s-%s-%d@killtest>", l.from, l.to, l.serial), numbers: numbers}
	var err error
	p.wire, err = peer.Prepare(&peer.Message{
		URL: "http://hub.example/as2", From: w.ids[l.from], To: w.ids["HUB"], MessageID: p.messageID, Media: "application/EDIFACT",
		Payload: payload, Security: peer.Security{Sign: true}, At: time.Now(),
	})
	return p, err
}

// post sends a message like a partner: the same bytes again for as long as no answer comes.
func (w *killWorld) post(p *killPost) error {
	err := w.wait(w.ctx, "an MDN for "+p.messageID, func() (bool, error) {
		p.tries++
		a, err := p.wire.Post(w.ctx, w.http)
		switch {
		case err != nil:
			return false, err
		case a.Status == http.StatusServiceUnavailable:
			return false, errors.New("HTTP 503")
		case a.MDN == nil || a.MDN.Outcome != as2.Positive:
			w.fail(fmt.Errorf("HTTP %d for %s, no positive MDN: %q", a.Status, p.messageID, a.Body))
			return false, nil
		}
		p.answer = a.Body
		return true, nil
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.posts = append(w.posts, p)
	w.mu.Unlock()
	w.tell()
	return nil
}

// send is prepare and post for the test's own goroutine.
func (w *killWorld) send(l *killLane, n, pad int) *killPost {
	w.t.Helper()
	p, err := w.prepare(l, n, pad)
	if err == nil {
		err = w.post(p)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// drop puts a file into the directory of SHOP, and says that it is whole.
func (w *killWorld) drop(l *killLane) {
	w.t.Helper()
	payload, _ := w.interchange(l, 1, 0)
	// Files of the same age are taken in the order of their names.
	path := filepath.Join(w.dir, "shop", fmt.Sprintf("%06d.edi", l.serial))
	if err := errors.Join(os.WriteFile(path, payload, 0o600), os.WriteFile(path+".done", nil, 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

// get reads JSON of the admin API.
func (w *killWorld) get(path string, v any) error {
	body, err := w.read(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, v)
}

// read reads the admin API. While no hub runs it waits for one.
func (w *killWorld) read(path string) ([]byte, error) {
	token, err := os.ReadFile(filepath.Join(w.dir, "data", admin.TokenFile))
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := w.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // Only read.
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: HTTP %d: %s", path, resp.StatusCode, body)
	}
	return body, err
}

// list reads all pages of a list of the admin API, as far as it came behind a time.
func (w *killWorld) list(what string, since time.Time) ([]hubtest.Object, error) {
	var all []hubtest.Object
	for cursor := ""; ; {
		var page struct {
			Items []hubtest.Object `json:"items"`
			Next  string           `json:"next_cursor"`
		}
		if err := w.get("/v1/"+what+"?limit=1000&since="+since.UTC().Format(time.RFC3339Nano)+cursor, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all, nil
		}
		cursor = "&cursor=" + url.QueryEscape(page.Next)
	}
}

// finish is settle for the whole history, and for the bodies that are kept.
func (w *killWorld) finish() {
	w.t.Helper()
	w.checked = killMark{}
	w.settle()
	w.checkBodies()
}

// settled reports whether nothing is in work any more, and if not, what is.
func (w *killWorld) settled() (bool, error) {
	if left, err := filepath.Glob(filepath.Join(w.dir, "shop", "*.edi")); err != nil || len(left) > 0 {
		return false, fmt.Errorf("not taken: %v %w", left, err)
	}
	var stages struct{ Items []hubtest.Object }
	if err := w.get("/v1/stages", &stages); err != nil {
		return false, err
	}
	for _, s := range stages.Items {
		for _, state := range []string{"ready", "parked", "retry", "leased", "keyheld"} {
			if n := s.Text("total." + state); n != "0" {
				return false, fmt.Errorf("%s: %s rows are %s", s.Text("stage"), n, state)
			}
		}
	}
	return len(stages.Items) == 4, fmt.Errorf("%d stages", len(stages.Items))
}

// settle waits until nothing is in work and checks what the kills must not have changed. Of what
// the API shows it looks at what is new.
func (w *killWorld) settle() {
	w.t.Helper()
	w.must("everything to come to its end", w.settled)
	w.repeat()
	w.checkArrivals()
	w.checkObjects(w.checked)
	w.checkLeftovers()
	w.mu.Lock()
	w.checked = killMark{at: time.Now(), docs: map[string]bool{}, posts: len(w.posts)}
	for number := range w.docs {
		w.checked.docs[number] = true
	}
	w.mu.Unlock()
	if err := context.Cause(w.ctx); err != nil {
		w.t.Fatal(err)
	}
}

// repeat posts the newest accepted messages again: the answer must be the same bytes.
func (w *killWorld) repeat() {
	w.t.Helper()
	w.mu.Lock()
	posts := slices.Clone(w.posts[max(0, len(w.posts)-6):])
	w.mu.Unlock()
	for _, p := range posts {
		a, err := p.wire.Post(w.ctx, w.http)
		if err != nil || a.MDN == nil {
			w.t.Fatalf("repeat of %s: %v", p.messageID, err)
		}
		if !bytes.Equal(a.Body, p.answer) {
			w.t.Errorf("the repeat of %s has another MDN:\n%q\n%q", p.messageID, p.answer, a.Body)
		}
	}
}

// checkArrivals looks at what the receivers have: every document once, whole, in its order.
func (w *killWorld) checkArrivals() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	under := map[string]string{} // document number → Message-ID or file
	last := map[string]int{}     // lane → serial
	take := func(name string, payload []byte, numbers []string) {
		if len(numbers) != 1 {
			w.t.Errorf("%s holds %d documents", name, len(numbers))
			return
		}
		number := numbers[0]
		if other, ok := under[number]; ok {
			w.t.Errorf("%s came twice: in %s and in %s", number, other, name)
		}
		under[number] = name
		if !bytes.Contains(payload, w.docs[number]) || !bytes.HasSuffix(bytes.TrimSpace(payload), []byte("'")) || !bytes.Contains(payload, []byte("'UNZ+1+")) {
			w.t.Errorf("%s in %s is not whole", number, name)
		}
		at := strings.LastIndexByte(number, '-')
		serial, err := strconv.Atoi(number[at+1:])
		if err != nil || serial <= last[number[:at]] {
			w.t.Errorf("%s came behind serial %d", number, last[number[:at]])
		}
		last[number[:at]] = serial
	}
	for _, a := range w.arrived {
		take(a.messageID, a.payload, a.numbers)
	}
	// Files have no time of arrival, but a number that rises in the order of the lane.
	for _, name := range w.files("erp") {
		b, err := os.ReadFile(filepath.Join(w.dir, "erp", name))
		if err != nil {
			w.t.Fatal(err)
		}
		take(name, b, numbersIn(b))
	}
	for number := range w.docs {
		if under[number] == "" {
			w.t.Errorf("%s is lost", number)
		}
	}
	if len(under) != len(w.docs) {
		w.t.Errorf("%d documents arrived, %d were sent", len(under), len(w.docs))
	}
}

// files lists a folder by the numbers that its names are.
func (w *killWorld) files(folder string) []string {
	es, err := os.ReadDir(filepath.Join(w.dir, folder))
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range es {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		x, _ := strconv.Atoi(strings.TrimSuffix(a, ".edi"))
		y, _ := strconv.Atoi(strings.TrimSuffix(b, ".edi"))
		return x - y
	})
	return names
}

// checkObjects looks at what the API shows: one object each, all of them at their end.
func (w *killWorld) checkObjects(m killMark) {
	w.t.Helper()
	lists := map[string][]hubtest.Object{}
	for _, what := range []string{"transmissions", "interchanges", "messages", "deliveries", "deadletters"} {
		l, err := w.list(what, m.at)
		if err != nil {
			w.t.Fatal(err)
		}
		lists[what] = l
	}
	for _, d := range lists["deadletters"] {
		w.t.Errorf("dead letter: %v", d)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	accepted := map[string]int{}
	for _, o := range lists["transmissions"] {
		switch o.Text("state") {
		case store.StateAccepted:
			accepted[o.Text("message_id")]++
		case store.StateRepeated:
		default:
			w.t.Errorf("transmission %s is %s %s", o.Text("id"), o.Text("state"), o.Text("code"))
		}
	}
	for _, p := range w.posts[m.posts:] {
		if accepted[p.messageID] != 1 {
			w.t.Errorf("%s was accepted %d times", p.messageID, accepted[p.messageID])
		}
	}
	refs := map[string]bool{}
	for _, o := range lists["interchanges"] {
		ref := o.Text("sender") + " " + o.Text("receiver") + " " + o.Text("control_ref")
		if refs[ref] || o.Text("state") != store.StateDone || o.Text("open") != "0" {
			w.t.Errorf("interchange %s: %s %s, %s open; a second one: %v", ref, o.Text("state"), o.Text("code"), o.Text("open"), refs[ref])
		}
		refs[ref] = true
	}
	seen := map[string]bool{}
	for _, o := range lists["messages"] {
		number := o.Text("document.number")
		if seen[number] || m.docs[number] || w.docs[number] == nil || o.Text("state") != store.StateDelivered {
			w.t.Errorf("message %s (%s): %s %s; a second one: %v", o.Text("id"), number, o.Text("state"), o.Text("code"), seen[number])
		}
		seen[number] = true
	}
	if want := len(w.docs) - len(m.docs); len(seen) != want || len(lists["deliveries"]) != want {
		w.t.Errorf("%d messages and %d deliveries of %d documents", len(seen), len(lists["deliveries"]), want)
	}
	carried := map[string]bool{}
	for _, o := range lists["deliveries"] {
		ms, _ := o["messages"].([]any)
		if len(ms) != 1 || carried[fmt.Sprint(ms)] || o.Text("state") != store.StateDelivered || o.Text("generation") != "0" {
			w.t.Errorf("delivery %s of %v: %s %s, generation %s", o.Text("id"), ms, o.Text("state"), o.Text("code"), o.Text("generation"))
		}
		carried[fmt.Sprint(ms)] = true
		if a := w.seen[o.Text("message_id")]; o.Text("connection") != "erp" && a == nil {
			w.t.Errorf("delivery %s is delivered, and nobody has %s", o.Text("id"), o.Text("message_id"))
		}
	}
}

// checkLeftovers looks for what a process began and did not finish.
func (w *killWorld) checkLeftovers() {
	w.t.Helper()
	for _, folder := range []string{"erp", "data/spool", "data/bodies/tmp", "shop/work", "shop/error"} {
		es, err := os.ReadDir(filepath.Join(w.dir, folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.t.Fatal(err)
		}
		for _, e := range es {
			if e.Name() != ".lock" && (folder != "erp" || strings.HasPrefix(e.Name(), ".")) {
				w.t.Errorf("%s is left in %s", e.Name(), folder)
			}
		}
	}
}

// checkBodies looks whether every file with a body belongs to a transmission and bears the hash of
// its content.
func (w *killWorld) checkBodies() {
	w.t.Helper()
	known := map[string]bool{}
	ts, err := w.list("transmissions", time.Time{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range ts {
		if n, err := strconv.Atoi(o.Text("wire_size")); o.Text("state") != store.StateAccepted || err == nil && n <= 64<<10 {
			continue
		}
		for _, form := range []string{"wire", "content"} {
			b, err := w.read("/v1/transmissions/" + o.Text("id") + "/payload?form=" + form)
			if err != nil {
				w.t.Fatal(err)
			}
			known[fmt.Sprintf("%x", sha256.Sum256(b))] = true
		}
	}
	err = filepath.WalkDir(filepath.Join(w.dir, "data", "bodies"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !known[e.Name()] {
			w.t.Errorf("body %s belongs to nothing", e.Name())
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
}
