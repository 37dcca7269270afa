package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/app/peer"
)

// killRounds is how much these tests do: 1, or what EDIHUB_CHAOS_ROUNDS says.
func killRounds(t *testing.T) int {
	t.Helper()
	v := os.Getenv("EDIHUB_CHAOS_ROUNDS")
	if v == "" {
		return 1
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("EDIHUB_CHAOS_ROUNDS=%q is not a number of rounds", v)
	}
	return n
}

// killHits are the hits of a point at which a process dies; with more rounds there are more.
func killHits(rounds int, hits ...int) []int {
	if rounds > 1 {
		hits = append(hits, 2, 4, 6)
	}
	slices.Sort(hits)
	return slices.Compact(hits)
}

// killCell is one kill of the matrix.
type killCell struct {
	point string
	hit   int
	// then is where the next process dies while it takes over, "point n"; mostly it lives.
	then string
}

func (c killCell) String() string {
	s := c.point + "/" + strconv.Itoa(c.hit)
	if c.then != "" {
		s += "/then " + c.then
	}
	return s
}

// killMost is how many messages a test sends at most until the process dies.
const killMost = 80

// run sends messages until the process has died where the cell says, and one more.
func (w *killWorld) run(c killCell, send func(i int), last func()) {
	w.t.Helper()
	before, want := w.deaths(), 1
	if c.then != "" {
		want = 2
	}
	w.order(c.point+" "+strconv.Itoa(c.hit), c.then)
	sent := 0
	for ; w.deaths() == before; sent++ {
		if sent >= killMost {
			w.t.Fatalf("%s: the process lives after %d messages", c, sent)
		}
		if sent%4 == 3 {
			// The next transactions cannot share one with those before.
			w.must("the end of what was sent, or of the process", func() (bool, error) {
				if w.deaths() > before {
					return true, nil
				}
				return w.settled()
			})
			continue
		}
		send(sent)
	}
	w.must("the second death", func() (bool, error) { return w.deaths() >= before+want, nil })
	last()
	w.settle()
	if n := w.deaths(); n != before+want {
		w.t.Fatalf("%s: the process died %d times", c, n-before)
	}
}

// killPad makes every third message so long that its body is a file of its own.
func killPad(i int) int {
	if i%3 == 1 {
		return 80 << 10
	}
	return 0
}

// matrix runs cells one after another against the same hub, whose history grows.
func (w *killWorld) matrix(cells []killCell, send func(i int), last func()) {
	t := w.t
	begin := time.Now()
	for i, c := range cells {
		ok := t.Run(c.String(), func(t *testing.T) {
			w.t = t
			w.run(c, send, last)
		})
		w.t = t
		if !ok {
			return // the hub's history is not sound any more
		}
		if (i+1)%10 == 0 {
			t.Logf("%d of %d kills, %s", i+1, len(cells), time.Since(begin).Round(time.Millisecond))
		}
	}
	w.finish()
	w.report()
}

// report tells how quick a hub is ready after a kill.
func (w *killWorld) report() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.ready) == 0 {
		return
	}
	var in []time.Duration
	for _, r := range w.ready {
		in = append(in, r.Took)
	}
	w.t.Logf("%d starts after a kill: ready %s after the start of main, %s after the start of the process; the first delivery %s after that; receivers dropped %d repeats",
		len(in), spread(in), spread(w.took), spread(w.resumed), w.again)
}

func spread(ds []time.Duration) string {
	if len(ds) == 0 {
		return "(none)"
	}
	ds = slices.Sorted(slices.Values(ds))
	return fmt.Sprintf("%s (median; slowest %s)", ds[len(ds)/2].Round(time.Millisecond), ds[len(ds)-1].Round(time.Millisecond))
}

// TestKillAS2 kills the hub at every point of the way from one AS2 partner to another.
func TestKillAS2(t *testing.T) {
	t.Parallel()
	rounds := killRounds(t)
	var cells []killCell
	for _, p := range []string{
		"before-intake", "after-intake", "before-mdn", "after-mdn", "before-tx", "in-tx", "after-commit", "after-ack",
		"before-send", "before-post", "after-answer", "after-send", "after-record",
	} {
		for _, n := range killHits(rounds, 1, 3) {
			cells = append(cells, killCell{point: p, hit: n})
		}
	}
	cells = append(cells, []killCell{
		{point: "after-intake", hit: 1, then: "in-tx 1"},
		{point: "before-tx", hit: 1, then: "after-commit 1"},
		{point: "before-send", hit: 1, then: "after-answer 1"},
		{point: "after-answer", hit: 1, then: "after-answer 1"},
	}...)
	w, l := newKillWorld(t), &killLane{from: "ACME", to: "GLOBEX"}
	w.matrix(cells, func(i int) { w.send(l, 1, killPad(i)) }, func() { w.send(l, 1, 0) })
}

// TestKillDirectory kills it where a file takes another way than an AS2 message: out of the hub,
// and into it.
func TestKillDirectory(t *testing.T) {
	t.Parallel()
	rounds := killRounds(t)
	var cells []killCell
	for _, p := range []string{"before-send", "before-rename", "after-rename", "after-send", "after-record"} {
		for _, n := range killHits(rounds, 1, 3) {
			cells = append(cells, killCell{point: p, hit: n})
		}
	}
	w := newKillWorld(t)
	out, in := &killLane{from: "BETA", to: "ERP"}, &killLane{from: "SHOP", to: "GLOBEX"}
	w.matrix(cells, func(i int) { w.send(out, 1, killPad(i)) }, func() { w.send(out, 1, 0) })
	if !t.Failed() {
		w.matrix([]killCell{{point: "before-intake", hit: 1}, {point: "after-intake", hit: 1}, {point: "after-commit", hit: 2}}, func(int) { w.drop(in) }, func() { w.drop(in) })
	}
}

// TestKillSplit kills it between the transactions of one large interchange: 4 chunks, the decision
// and 4 pages of released messages.
func TestKillSplit(t *testing.T) {
	t.Parallel()
	var cells []killCell
	for _, n := range killHits(killRounds(t), 1, 3, 5, 8) {
		cells = append(cells, killCell{point: "after-chunk", hit: n})
	}
	for _, n := range killHits(killRounds(t), 2, 5, 6) {
		cells = append(cells, killCell{point: "in-tx", hit: n})
	}
	cells = append(cells, killCell{point: "after-commit", hit: 4}, killCell{point: "before-tx", hit: 2, then: "after-chunk 2"}, killCell{point: "after-chunk", hit: 4, then: "after-chunk 1"})
	w, l := newKillWorld(t), &killLane{from: "ACME", to: "GLOBEX"}
	w.matrix(cells, func(int) { w.send(l, 3*killChunk+2, 0) }, func() { w.send(l, 1, 0) })
}

// TestKillAtRandom kills it again and again, at points and out of the blue, while three partners
// send.
func TestKillAtRandom(t *testing.T) {
	t.Parallel()
	rounds := killRounds(t)
	first := uint64(1)
	if v := os.Getenv("EDIHUB_CHAOS_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("EDIHUB_CHAOS_SEED=%q is not a number", v)
		}
		first = n
	} else if rounds > 1 {
		first = uint64(time.Now().Unix()) //nolint:gosec // G115: the time is behind 1970.
	}
	for i := range rounds {
		seed := first + uint64(i) //nolint:gosec // G115: i is small.
		ok := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := newKillWorld(t)
			begin := time.Now()
			kills := w.atRandom(rand.New(rand.NewPCG(seed, 0))) //nolint:gosec // G404: it chooses where to kill.
			w.report()
			t.Logf("round %d of %d: %d kills, %d documents in %s", i+1, rounds, kills, len(w.docs), time.Since(begin).Round(time.Millisecond))
		})
		if !ok {
			return
		}
	}
}

// atRandom is one round; it returns the number of kills.
func (w *killWorld) atRandom(r *rand.Rand) int {
	w.t.Helper()
	points := []string{
		"before-intake", "after-intake", "before-mdn", "after-mdn", "before-tx", "in-tx", "after-commit", "after-ack", "after-chunk",
		"before-send", "before-post", "after-answer", "before-rename", "after-rename", "after-send", "after-record",
	}
	enough, stop := context.WithCancel(w.ctx)
	var senders sync.WaitGroup
	defer func() {
		stop()
		senders.Wait()
	}()
	for i, l := range []*killLane{{from: "ACME", to: "GLOBEX"}, {from: "BETA", to: "GLOBEX"}, {from: "BETA", to: "ERP"}, {from: "ACME", to: "INITECH"}} {
		mine := rand.New(rand.NewPCG(r.Uint64(), uint64(i))) //nolint:gosec // G404,G115: as above.
		senders.Go(func() {
			for enough.Err() == nil {
				n, pad := 1, 0
				switch mine.IntN(8) {
				case 0:
					n = 2 + mine.IntN(4*killChunk)
				case 1:
					pad = 80 << 10
				}
				p, err := w.prepare(l, n, pad)
				if err == nil {
					err = w.post(p)
				}
				if err != nil {
					w.fail(fmt.Errorf("%s to %s: %w", l.from, l.to, err))
					return
				}
			}
		})
	}
	kills := 5 + r.IntN(6)
	for range kills {
		before := w.deaths()
		if r.IntN(3) > 0 {
			w.order(points[r.IntN(len(points))]+" "+strconv.Itoa(1+r.IntN(8)), "")
		} else {
			w.outOfTheBlue(r.IntN(40))
		}
		w.must("the next death", func() (bool, error) { return w.deaths() > before, nil })
	}
	stop()
	senders.Wait()
	w.finish()
	return kills
}

// outOfTheBlue kills the process from outside, once n more things have happened.
func (w *killWorld) outOfTheBlue(n int) {
	w.t.Helper()
	p, err := w.hub(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	count := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.posts) + len(w.arrived)
	}
	until := count() + n
	w.must("traffic", func() (bool, error) { return count() >= until, nil })
	p.kill()
}

// TestKillTerm stops the hub with SIGTERM while partners send and one of its sends hangs: it ends
// well within 5 s, and nothing is lost.
func TestKillTerm(t *testing.T) {
	t.Parallel()
	w := newKillWorld(t)
	for round := range 2 {
		release := make(chan struct{})
		if round == 1 {
			w.mu.Lock()
			w.hold = func(r *peer.Received) <-chan struct{} {
				if r.To == "INITECH" {
					return release
				}
				return nil
			}
			w.mu.Unlock()
		}
		enough, stop := context.WithCancel(w.ctx)
		var senders sync.WaitGroup
		for _, to := range []string{"GLOBEX", "INITECH", "ERP"} {
			l := &killLane{from: "ACME", to: to, serial: 1000 * round}
			senders.Go(func() {
				for enough.Err() == nil {
					p, err := w.prepare(l, 1, 0)
					if err == nil {
						err = w.post(p)
					}
					if err != nil {
						w.fail(err)
						return
					}
				}
			})
		}
		traffic := func(n int) {
			w.mu.Lock()
			until := len(w.posts) + n
			w.mu.Unlock()
			w.must("traffic", func() (bool, error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				return len(w.posts) >= until, nil
			})
		}
		traffic(15)
		end, took := w.terminate()
		t.Logf("SIGTERM: ended with %s after %s", end, took.Round(time.Millisecond))
		if end != "0" || took > 5*time.Second {
			t.Errorf("SIGTERM: ended with %s after %s", end, took)
		}
		close(release)
		traffic(15)
		stop()
		senders.Wait()
		w.finish()
	}
	for _, end := range w.ends {
		if end != "0" {
			t.Errorf("a process ended with %s", end)
		}
	}
}
