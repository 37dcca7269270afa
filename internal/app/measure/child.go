package measure

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/edihub/edihub/internal/admin"
)

// child is the real program in a process of its own.
type child struct {
	cmd   *exec.Cmd
	data  string
	as2   string
	admin string
	ready time.Duration // from exec to the ready line
	ended chan error
	errs  *tail
}

// tail keeps the last bytes that were written, for the message of an error.
type tail struct {
	mu sync.Mutex
	b  bytes.Buffer
}

const tailBytes = 4 << 10

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	t.b.Write(b[max(0, len(b)-tailBytes):])
	if over := t.b.Len() - tailBytes; over > 0 {
		t.b.Next(over)
	}
	return n, nil
}

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// startChild runs `edihub serve` and waits until it is ready. attr may be nil.
func startChild(ctx context.Context, binary, data string, attr *syscall.SysProcAttr, args ...string) (*child, error) {
	argv := append([]string{"serve", "--data", data, "--as2-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-level", "warn"}, args...)
	c := &child{data: data, ended: make(chan error, 1), errs: &tail{}}
	c.cmd = exec.CommandContext(context.WithoutCancel(ctx), binary, argv...) //nolint:gosec // G204: the program that is measured.
	c.cmd.SysProcAttr = attr
	c.cmd.Env = []string{} // nothing of the caller's
	c.cmd.Stderr = c.errs
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	began := time.Now()
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	lines := make(chan string, 1)
	go func() {
		first := bufio.NewReader(out)
		line, _ := first.ReadString('\n') // a program that ends early leaves an empty line
		lines <- line
		_, _ = io.Copy(io.Discard, first) // until the program ends
		c.ended <- c.cmd.Wait()
	}()
	select {
	case line := <-lines:
		c.ready = time.Since(began)
		var ready struct {
			Event string `json:"event"`
			AS2   string `json:"as2"`
			Admin string `json:"admin"`
		}
		if err := json.Unmarshal([]byte(line), &ready); err != nil || ready.Event != "ready" {
			_ = c.kill() // it may have ended, and then all that it said is there
			return nil, fmt.Errorf("%w: %q: %s", ErrNotReady, line, c.errs)
		}
		c.as2, c.admin = ready.AS2, ready.Admin
		return c, nil
	case <-ctx.Done():
		_ = c.kill() // the error of ctx says enough
		return nil, fmt.Errorf("%w: %w", ErrNotReady, context.Cause(ctx))
	}
}

// kill ends the program as a power cut would.
func (c *child) kill() error {
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill: %w", err)
	}
	var exit *exec.ExitError // it was killed, or had ended before
	if err := <-c.ended; err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("kill: %w", err)
	}
	return nil
}

// stop ends the program as an operator does; it must end well within 5 s.
func (c *child) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	select {
	case err := <-c.ended:
		if err != nil {
			return fmt.Errorf("after SIGTERM: %w: %s", err, c.errs)
		}
		return nil
	case <-time.After(10 * time.Second):
		_ = c.kill() // the error below says why
		return fmt.Errorf("%w: it did not end within 10 s of SIGTERM", errEnded)
	}
}

// peak is the largest resident size that the program had so far, in bytes: VmHWM of Linux.
func (c *child) peak() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("peak memory: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		rest, ok := strings.CutPrefix(line, "VmHWM:")
		if !ok {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("peak memory: %w", err)
		}
		return kb << 10, nil
	}
	return 0, fmt.Errorf("peak memory: %w", os.ErrNotExist)
}

// get asks the operations API.
func (c *child) get(ctx context.Context, client *http.Client, path string, query url.Values, into any) error {
	token, err := os.ReadFile(filepath.Join(c.data, admin.TokenFile))
	if err != nil {
		return fmt.Errorf("token: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.admin+path+"?"+query.Encode(), nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", path, err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask %s: %w", path, err)
	}
	defer resp.Body.Close() //nolint:errcheck // Only read.
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ask %s: HTTP %d: %w", path, resp.StatusCode, os.ErrInvalid)
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("ask %s: %w", path, err)
	}
	return nil
}

// object is what the measurements read of interchanges and messages.
type object struct {
	State string `json:"state"`
	Code  string `json:"code"`
}

type objects struct {
	Items []object `json:"items"`
	Next  string   `json:"next_cursor"`
}

// states counts the objects of a list by state.
func (c *child) states(ctx context.Context, client *http.Client, path string) (map[string]int, error) {
	out := map[string]int{}
	query := url.Values{"limit": {"1000"}}
	for {
		var page objects
		if err := c.get(ctx, client, path, query, &page); err != nil {
			return nil, err
		}
		for _, o := range page.Items {
			out[o.State]++
		}
		if page.Next == "" {
			return out, nil
		}
		query.Set("cursor", page.Next)
	}
}

// has reports whether there is an object in that state.
func (c *child) has(ctx context.Context, client *http.Client, path, state string) (bool, error) {
	var page objects
	err := c.get(ctx, client, path, url.Values{"limit": {"1"}, "state": {state}}, &page)
	return len(page.Items) > 0, err
}
