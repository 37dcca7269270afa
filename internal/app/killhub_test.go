package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/edihub/edihub/internal/app"
	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/observe"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/pipeline/parse"
	"github.com/edihub/edihub/internal/store"
)

// The test binary runs itself again as the hub's process when these are set.
const (
	hubDirVariable  = "KILLTEST_HUB_DIR"  // holds partners.yaml, keys, data
	hubKillVariable = "KILLTEST_HUB_KILL" // an order that holds from the start on
)

// killChunk is how many messages the hubs of these tests take into one transaction of a split.
const killChunk = 3

// hubMain is a hub's process. It runs until SIGTERM like "edihub serve". Orders come line by line
// on standard input: "point n" lets the process kill itself at the n-th time that the named
// point is reached from then on. The end of standard input ends the process, so that none outlives
// its test.
func hubMain() int {
	if err := hubRun(os.Getenv(hubDirVariable), os.Getenv(hubKillVariable)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func hubRun(dir, order string) error {
	begin := time.Now()
	kill := &killSwitch{}
	kill.arm(order)
	cfg, _, err := config.Load(config.Options{Flags: map[string]string{
		"data": filepath.Join(dir, "data"), "as2.listen": "127.0.0.1:0", "admin.listen": "127.0.0.1:0",
		"partners_file": filepath.Join(dir, "partners.yaml"), "limits.min_free_disk": "1MiB",
		// A lease that nobody takes over at once would outlast every patience of a test.
		"lease": "1h",
	}})
	if err != nil {
		return err
	}
	log, err := observe.NewLogger("info", "json", os.Stderr)
	if err != nil {
		return err
	}
	hub, err := app.New(app.Options{Config: cfg, Log: log, Version: "test", Probe: kill.hit, Tune: func(o *pipeline.Options) {
		o.Sweep, o.RetryFirst, o.RetryMax = 50*time.Millisecond, time.Millisecond, 5*time.Millisecond
		o.Stages[store.Parser] = kill.stage(parse.New(parse.Options{ChunkMessages: killChunk}))
	}})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := hub.Start(ctx); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(hubReady{AS2: hub.AS2Addr(), Admin: hub.AdminAddr(), Took: time.Since(begin)}); err != nil {
		return err
	}
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			kill.arm(in.Text())
			if err := out.Encode("armed"); err != nil {
				os.Exit(3)
			}
		}
		os.Exit(3)
	}()
	<-ctx.Done()
	within, cancel := context.WithTimeout(context.Background(), 4500*time.Millisecond)
	defer cancel()
	return hub.Stop(within)
}

type hubReady struct {
	AS2   string        `json:"as2"`
	Admin string        `json:"admin"`
	Took  time.Duration `json:"took"` // from the start of main
}

// killSwitch kills its own process at a point.
type killSwitch struct {
	mu    sync.Mutex
	point string
	left  int
}

func (k *killSwitch) arm(order string) {
	point, n, _ := strings.Cut(order, " ")
	left, err := strconv.Atoi(n)
	if err != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.point, k.left = point, left
}

func (k *killSwitch) hit(point string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if point != k.point {
		return
	}
	if k.left--; k.left > 0 {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // the process is allowed to
	select {}
}

// stage adds the point "after-chunk", between two transactions of one split.
func (k *killSwitch) stage(impl pipeline.Stage) pipeline.Stage {
	var follow func(o *pipeline.Outcome)
	follow = func(o *pipeline.Outcome) {
		if o == nil {
			return
		}
		if more := o.More; more != nil {
			o.More = func(ctx context.Context) *pipeline.Outcome {
				k.hit("after-chunk")
				next := more(ctx)
				follow(next)
				return next
			}
		}
		for i := range o.Claims {
			follow(o.Claims[i].Same)
			follow(o.Claims[i].Other)
		}
	}
	return pipeline.StageFunc(func(ctx context.Context, t *pipeline.Task) *pipeline.Outcome {
		out := impl.Handle(ctx, t)
		follow(out)
		return out
	})
}

// hubProcess is a running hub's process as its parent sees it.
type hubProcess struct {
	hubReady
	cmd   *exec.Cmd
	in    io.WriteCloser
	ready bool // it said so
	// Took is from the start of the process, hubReady.Took from the start of its main.
	took  time.Duration
	armed chan struct{}
	done  chan struct{} // closed when it has ended and is reaped
}

// startHub starts a hub's process and returns when it is ready, or when it has ended before that.
// What it logs goes to hub.log.
func startHub(dir, order string) (*hubProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, "hub.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // The process has its own.
	p := &hubProcess{cmd: exec.Command(self), armed: make(chan struct{}), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), hubDirVariable+"="+dir, hubKillVariable+"="+order)
	p.cmd.Stderr = log
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	go func() {
		defer close(p.done)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if !p.ready && json.Unmarshal(lines.Bytes(), &p.hubReady) == nil {
				p.ready, p.took = true, time.Since(begin)
				close(ready)
				continue
			}
			p.armed <- struct{}{}
		}
		_ = p.cmd.Wait() // how it ended is in ProcessState
	}()
	limit := time.NewTimer(killPatience)
	defer limit.Stop()
	select {
	case <-ready:
	case <-p.done:
	case <-limit.C:
		p.kill()
		return nil, errors.New("the hub's process was not ready in time")
	}
	return p, nil
}

// arm gives an order and waits until it holds. False: the process has ended.
func (p *hubProcess) arm(order string) bool {
	if _, err := io.WriteString(p.in, order+"\n"); err != nil {
		<-p.done
		return false
	}
	select {
	case <-p.armed:
		return true
	case <-p.done:
		return false
	}
}

// kill kills the process from outside, and reaps it.
func (p *hubProcess) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

// ended tells how the process ended: "killed", "0" for a good end.
func (p *hubProcess) ended() string {
	st, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return "unknown"
	case st.Signaled() && st.Signal() == syscall.SIGKILL:
		return "killed"
	case st.Signaled():
		return st.Signal().String()
	}
	return strconv.Itoa(st.ExitStatus())
}
