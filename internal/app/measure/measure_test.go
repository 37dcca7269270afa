package measure

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/edihub/edihub/internal/store"
)

// built is the static program, made once for all tests of the package.
type built struct {
	once sync.Once
	dir  string
	err  error
}

func (b *built) make() {
	if b.dir, b.err = os.MkdirTemp("", "edihub-built-"); b.err != nil {
		return
	}
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.path(), "../../../cmd/edihub") //nolint:gosec // G204: of this repository.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.err = errors.Join(err, errors.New(string(out)))
	}
}

func (b *built) path() string { return filepath.Join(b.dir, "edihub") }

// program is built when the first test asks for it.
var program built

func binary(t *testing.T) string {
	t.Helper()
	program.once.Do(program.make)
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.path()
}

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if program.dir != "" {
			_ = os.RemoveAll(program.dir) // a temporary folder
		}
		os.Exit(code)
	}))
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A pool of n workers has n messages in hand at once and no more, also after it was resized while
// it ran. No rate is looked at: a busy machine does not make it fail.
func TestAsManyAreBusyAsThereAreWorkers(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	came, release := make(chan struct{}, 1024), make(chan struct{})
	s, err := newScaleHub(ctx, func(ctx context.Context) {
		came <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := s.resize(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.fill(ctx, 100); err != nil {
		t.Fatal(err)
	}
	busy := 0
	for _, workers := range []int{1, 2, 4, 8} {
		if err := s.resize(ctx, workers); err != nil {
			t.Fatal(err)
		}
		for ; busy < workers; busy++ {
			select {
			case <-came:
			case <-ctx.Done():
				t.Fatalf("with %d workers only %d messages were in hand at once", workers, busy)
			}
		}
		// All workers hold a message now, so nobody is left to take one more.
		if n := running(ctx, s); n != workers || len(came) != 0 {
			t.Errorf("with %d workers %d messages are in hand, and %d more were begun", workers, n, len(came))
		}
	}
	close(release)
}

func running(ctx context.Context, s *scaleHub) int {
	for _, st := range s.hub.Pipeline().Stages(ctx) {
		if st.Stage == store.Validator {
			return st.Running
		}
	}
	return -1
}

// generousPeak is a bound of resident memory that no busy machine breaks and that a hub which
// keeps a whole interchange of this size in memory, message by message, does.
const generousPeak = MemoryLimit

// A large interchange with a wrong trailer: chunks were committed before the trailer was read, and
// none of their messages goes on.
func TestNothingOfALargeInterchangeWithAWrongTrailerIsReleased(t *testing.T) {
	t.Parallel()
	for _, o := range []LargeOptions{
		{Fault: WrongUNZ, Messages: 3500},
		{Fault: WrongIEA, Messages: 3500},
		{Fault: Good, Messages: 3500, Split: "preserve"},
		{Fault: Good, Messages: 1200, Split: "messages"},
	} {
		t.Run(strings.TrimSpace(string(o.Fault)+" "+o.Split), func(t *testing.T) {
			t.Parallel()
			o.Binary, o.Size = binary(t), 400
			res, err := Large(within(t), o)
			if err != nil {
				t.Fatal(err)
			}
			if why := res.Judge(o.Fault, o.Messages); why != "" {
				t.Error(why)
			}
			if res.Peak > generousPeak {
				t.Errorf("the hub took %d MB for %d messages", res.Peak>>20, o.Messages)
			}
		})
	}
}

// The judgement must see what it is for.
func TestJudge(t *testing.T) {
	t.Parallel()
	all := func(state string, n int) map[string]int { return map[string]int{state: n} }
	for name, c := range map[string]struct {
		res   LargeResult
		fault Fault
		good  bool
	}{
		"rejected":            {LargeResult{States: all(store.StateRejected, 9)}, WrongUNZ, true},
		"delivered":           {LargeResult{States: all(store.StateDelivered, 9), Arrived: 9, Deliveries: 9}, Good, true},
		"one has no end":      {LargeResult{States: map[string]int{store.StateRejected: 8, store.StateParsed: 1}}, WrongUNZ, false},
		"one is missing":      {LargeResult{States: all(store.StateRejected, 8)}, WrongIEA, false},
		"one was released":    {LargeResult{States: all(store.StateRejected, 9), Arrived: 1}, WrongUNZ, false},
		"a delivery was made": {LargeResult{States: all(store.StateRejected, 9), Deliveries: 1}, WrongUNZ, false},
		"one came twice":      {LargeResult{States: all(store.StateDelivered, 9), Arrived: 9, Strange: 1}, Good, false},
		"one did not arrive":  {LargeResult{States: all(store.StateDelivered, 9), Arrived: 8}, Good, false},
	} {
		if why := c.res.Judge(c.fault, 9); (why == "") != c.good {
			t.Errorf("%s: judged %q", name, why)
		}
	}
}

// coldStart bounds a start by the order of magnitude: the promise is 1 s, on a machine of its own.
const coldStart = 20 * time.Second

func TestReadyAgainAfterAStopAndAKill(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	table, err := StartTable(ctx, binary(t), 1, 1500)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 5 {
		t.Fatalf("%d kinds of starts were measured: %v", len(table.Rows), table.Rows)
	}
	for _, row := range table.Rows {
		d, err := time.ParseDuration(strings.ReplaceAll(row[1], " ", ""))
		if err != nil || d <= 0 || d > coldStart {
			t.Errorf("%s: ready after %s", row[0], row[1])
		}
	}
}

func TestTheProgramNeedsNothingOfItsMachine(t *testing.T) {
	t.Parallel()
	if err := CheckStatic(binary(t)); err != nil {
		t.Error(err)
	}
	_, err := Empty(within(t), binary(t))
	if errors.Is(err, ErrNotAllowed) {
		t.Logf("not run in an empty root folder: %v", err)
		return
	}
	if err != nil {
		t.Error(err)
	}
}

// A program that the dynamic linker starts must be told apart from a static one. The C compiler,
// which the race detector needs, and the shell are such on the systems that tests run on.
func TestCheckStaticSeesADynamicProgram(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("cc")
	if err != nil {
		path = "/bin/sh"
	}
	if err := CheckStatic(path); !errors.Is(err, errDynamic) {
		t.Errorf("%s: %v", path, err)
	}
	if err := CheckStatic("measure_test.go"); err == nil || errors.Is(err, errDynamic) {
		t.Errorf("a text was read as a program: %v", err)
	}
}

func TestAProgramThatDoesNotStart(t *testing.T) {
	t.Parallel()
	_, err := startChild(within(t), binary(t), filepath.Join(t.TempDir(), "data"), nil, "--profile", "none")
	if !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), "profile") {
		t.Errorf("the error is %v", err)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	table := &Table{Title: "title", Head: []string{"a", "b"}, Notes: []string{"a note"}}
	table.add("x", 1.5)
	table.broken("%d too many", 2)
	var b strings.Builder
	if err := table.Print(&b); err != nil {
		t.Fatal(err)
	}
	if want := "title\n\n  a  b\n  x  1.50\n\n  a note\n  BROKEN: 2 too many\n\n"; b.String() != want {
		t.Errorf("printed %q, want %q", b.String(), want)
	}
	if got := median([]time.Duration{5, 1, 3}); got != 3 {
		t.Errorf("the median is %d", got)
	}
}
