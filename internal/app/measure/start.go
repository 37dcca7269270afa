package measure

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ReadyLimit is how long a cold start of the embedded profile may take (DESIGN §8).
const ReadyLimit = time.Second

// StartTable measures the time from exec to the ready line, the median of some starts each.
func StartTable(ctx context.Context, binary string, rounds, history int) (*Table, error) {
	t := &Table{
		Title: fmt.Sprintf("cold start of the real program: from exec to ready, median of %d", rounds),
		Head:  []string{"data folder", "median", "fastest", "slowest"},
	}
	r, err := newRig(ctx, rigOptions{split: "preserve", envelope: "keep", hold: true})
	if err != nil {
		return nil, err
	}
	defer r.close()
	show := func(name string, ds []time.Duration) {
		least, most := ds[0], ds[0]
		for _, d := range ds {
			least, most = min(least, d), max(most, d)
		}
		t.add(name, ms(median(ds)), ms(least), ms(most))
		if median(ds) > ReadyLimit {
			t.broken("%s: ready after %s", name, ms(median(ds)))
		}
	}
	ds, err := r.starts(ctx, binary, rounds, func(i int) string { return filepath.Join(r.dir, fmt.Sprint("empty-", i)) }, nil)
	if err != nil {
		return t, err
	}
	show("empty", ds)
	data := filepath.Join(r.dir, "data")
	old := func(int) string { return data }
	if err := r.makeHistory(ctx, binary, data, history); err != nil {
		return t, err
	}
	if ds, err = r.starts(ctx, binary, rounds, old, nil); err != nil {
		return t, err
	}
	show(fmt.Sprintf("history of %d messages", history), ds)
	idle := func(context.Context, *child) error { return nil }
	if ds, err = r.starts(ctx, binary, rounds, func(i int) string { return filepath.Join(r.dir, fmt.Sprint("empty-", i)) }, idle); err != nil {
		return t, err
	}
	show("empty, after SIGKILL", ds)
	if ds, err = r.starts(ctx, binary, rounds, old, idle); err != nil {
		return t, err
	}
	show(fmt.Sprintf("history of %d messages, after SIGKILL", history), ds)
	busy := func(ctx context.Context, c *child) error {
		return r.post(ctx, c.as2, "application/EDIFACT", edifactFile(100000+r.posts, 5000, 300, Good))
	}
	if ds, err = r.starts(ctx, binary, rounds, old, busy); err != nil {
		return t, err
	}
	show("the same, killed behind the MDN for 5,000 messages", ds)
	return t, nil
}

// starts measures some starts. With work, the program is started, given the work, and killed, and
// the start after that is measured.
func (r *rig) starts(ctx context.Context, binary string, rounds int, data func(i int) string, work func(ctx context.Context, c *child) error) ([]time.Duration, error) {
	var out []time.Duration
	for i := range rounds {
		if work != nil {
			c, err := startChild(ctx, binary, data(i), nil, "--partners-file", r.records())
			if err != nil {
				return nil, err
			}
			if err := errors.Join(work(ctx, c), c.kill()); err != nil {
				return nil, err
			}
		}
		c, err := startChild(ctx, binary, data(i), nil, "--partners-file", r.records())
		if err != nil {
			return nil, err
		}
		out = append(out, c.ready)
		if err := c.stop(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// makeHistory lets a hub take messages and bring them to their end.
func (r *rig) makeHistory(ctx context.Context, binary, data string, messages int) error {
	const most = 5000
	c, err := startChild(ctx, binary, data, nil, "--partners-file", r.records())
	if err != nil {
		return err
	}
	for done := 0; done < messages; done += most {
		// A wrong trailer ends them all without a delivery.
		if err := r.post(ctx, c.as2, "application/EDIFACT", edifactFile(r.posts+1, min(most, messages-done), 300, WrongUNZ)); err != nil {
			return errors.Join(err, c.kill())
		}
	}
	if err := r.ended(ctx, c); err != nil {
		return errors.Join(err, c.kill())
	}
	return c.stop()
}

// CheckStatic reports what a program needs from its machine to start: an interpreter (the dynamic
// linker) or shared libraries. A static one needs nothing.
func CheckStatic(binary string) error {
	f, err := elf.Open(binary)
	if err != nil {
		return fmt.Errorf("read %s: %w", binary, err)
	}
	defer f.Close() //nolint:errcheck // Only read.
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s has an INTERP segment: %w", binary, errDynamic)
		}
	}
	libs, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("read %s: %w", binary, err)
	}
	if len(libs) > 0 {
		return fmt.Errorf("%s needs %v: %w", binary, libs, errDynamic)
	}
	return nil
}

// EmptyTable runs the program on a machine that has nothing but the program.
func EmptyTable(ctx context.Context, binary string) (*Table, error) {
	t := &Table{Title: "the program in an empty root folder", Head: []string{"what", "result"}}
	if err := CheckStatic(binary); err != nil {
		t.broken("%v", err)
	} else {
		t.add("linked", "statically: no interpreter, no shared library")
	}
	ready, err := Empty(ctx, binary)
	switch {
	case errors.Is(err, ErrNotAllowed):
		t.Notes = append(t.Notes, "not run in an empty root folder: "+err.Error())
	case err != nil:
		return t, err
	default:
		t.add("ready", ms(ready))
		t.add("GET /readyz", "200")
		t.add("SIGTERM", "exit 0")
	}
	return t, nil
}

// Empty starts the program in a root folder in which there is nothing but the program and an
// empty data folder, asks whether it is ready, and stops it. It returns ErrNotAllowed where this
// user may do that neither as root nor in a user namespace.
func Empty(ctx context.Context, binary string) (time.Duration, error) {
	root, err := os.MkdirTemp("", "edihub-empty-")
	if err != nil {
		return 0, fmt.Errorf("temporary folder: %w", err)
	}
	defer os.RemoveAll(root) //nolint:errcheck // A temporary folder.
	b, err := os.ReadFile(binary)
	if err != nil {
		return 0, fmt.Errorf("read program: %w", err)
	}
	if err := os.WriteFile(filepath.Join(root, "edihub"), b, 0o700); err != nil { //nolint:gosec // G306: a program.
		return 0, fmt.Errorf("copy program: %w", err)
	}
	attr := &syscall.SysProcAttr{Chroot: root}
	if uid := os.Geteuid(); uid != 0 {
		attr.Cloneflags = syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	c, err := startChild(ctx, "/edihub", "/data", attr)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
		return 0, fmt.Errorf("%w: %w", ErrNotAllowed, err)
	}
	if err != nil {
		return 0, err
	}
	if err := c.askReady(ctx); err != nil {
		return 0, errors.Join(err, c.kill())
	}
	return c.ready, c.stop()
}

func (c *child) askReady(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.admin+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("ask whether it is ready: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask whether it is ready: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // Only the status counts.
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: HTTP %d", ErrNotReady, resp.StatusCode)
	}
	return nil
}
