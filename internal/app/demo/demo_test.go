package demo

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listener is what a person at the terminal sees.
type listener struct {
	mu    sync.Mutex
	lines []string
	said  chan string // each line, as long as somebody has room for it
}

func newListener() *listener { return &listener{said: make(chan string, 64)} }

func (l *listener) say(format string, a ...any) {
	line := fmt.Sprintf(format, a...)
	l.mu.Lock()
	l.lines = append(l.lines, line)
	l.mu.Unlock()
	select {
	case l.said <- line:
	default:
	}
}

func (l *listener) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// waitFor returns the next line that contains text.
func (l *listener) waitFor(t *testing.T, text string) string {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case line := <-l.said:
			if strings.Contains(line, text) {
				return line
			}
		case <-late:
			t.Fatalf("nothing was said about %q: %q", text, l.lines)
		}
	}
}

// ownTemp gives the demo a temporary folder that the test can look into.
func ownTemp(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return dir
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("the demo left %s behind", filepath.Join(dir, left[0].Name()))
	}
}

func TestOrdersFlowBothWays(t *testing.T) {
	dir := ownTemp(t)
	l := newListener()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := Run(ctx, Options{Posts: 4, Pause: time.Nanosecond, Say: l.say}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"signed MDN": 4, "delivered to": 4, "ACME -> GLOBEX": 2, "GLOBEX -> ACME": 2, "delivered to GLOBEX as <": 2, "delivered to ACME as <": 2,
	} {
		if got := l.count(text); got != want {
			t.Errorf("%q was said %d times, want %d: %q", text, got, want, l.lines)
		}
	}
	wantEmpty(t, dir)
}

func TestEndsWhenItIsTold(t *testing.T) {
	dir := ownTemp(t)
	l := newListener()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, Options{Pause: time.Hour, Say: l.say}) }()
	console := strings.TrimSpace(strings.TrimPrefix(l.waitFor(t, "console"), "console"))
	l.waitFor(t, "delivered to")
	resp, err := http.Get(console + "healthz") //nolint:noctx // A hub of this process.
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("healthz answered %d, %v", resp.StatusCode, err)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel() // in the middle of the pause
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended by its user the demo returned %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the demo did not end")
	}
	addr := strings.TrimSuffix(strings.TrimPrefix(console, "http://"), "/")
	if c, err := net.Dial("tcp", addr); err == nil { //nolint:noctx // A loopback address that refuses at once.
		_ = c.Close()
		t.Errorf("%s still answers", addr)
	}
	wantEmpty(t, dir)
}

// Two demos at once take ports and folders of their own.
func TestTwoAtOnce(t *testing.T) {
	dir := ownTemp(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	errs := make(chan error, 2)
	var heard [2]*listener
	for i := range heard {
		heard[i] = newListener()
		go func() { errs <- Run(ctx, Options{Posts: 2, Pause: time.Nanosecond, Say: heard[i].say}) }()
	}
	for range heard {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for i, l := range heard {
		if n := l.count("delivered to"); n != 2 {
			t.Errorf("demo %d delivered %d orders: %q", i, n, l.lines)
		}
	}
	wantEmpty(t, dir)
}
