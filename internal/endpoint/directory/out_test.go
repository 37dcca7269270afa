package directory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline/send"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const payload = "UNB+UNOA:3+ALPHA+BETA+260301:1200+R1'UNZ+0+R1'"

func delivery(out, content string) *send.Delivery {
	return &send.Delivery{
		ID:         id,
		Connection: &partner.Connection{ID: "erp-files", Directory: &partner.Directory{Out: out}},
		Payload:    bytes.NewReader([]byte(content)),
		Type:       "ORDERS", Sender: "ALPHA", Receiver: "BETA", ControlRef: "R1",
	}
}

const target = "ORDERS_ALPHA_R1_" + idText + ".edi"

// wantFiles checks the names in a directory, dot files too, and their content.
func wantFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range entries {
		if e.IsDir() || e.Name() == lockName {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Error(err)
		}
		got[e.Name()] = string(b)
	}
	if len(got) != len(want) {
		t.Errorf("%s holds %q, want %q", filepath.Base(dir), got, want)
	}
	for name, content := range want {
		if c, there := got[name]; !there || c != content {
			t.Errorf("%s in %s: %q (there: %v), want %q", name, filepath.Base(dir), c, there, content)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSendPutsAFile(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, content string
		mode, want    os.FileMode
	}{
		{"usual", payload, 0, 0o600},
		{"empty", "", 0, 0o600},
		{"large", strings.Repeat("x", 1<<20), 0, 0o600},
		{"for a group", payload, 0o640, 0o640},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			r := New(Options{FileMode: tc.mode}).Send(t.Context(), delivery(out, tc.content))
			if r.Status != send.Delivered || r.Proof != Proof || r.Code != "" || !strings.Contains(r.Detail, target) {
				t.Fatalf("%+v", r)
			}
			wantFiles(t, out, map[string]string{target: tc.content})
			info, err := os.Stat(filepath.Join(out, target))
			if err != nil || info.Mode() != tc.want {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
		})
	}
}

// TestSendTwiceIsOneFile is a crash between the rename and the record.
func TestSendTwiceIsOneFile(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	e := New(Options{})
	synced := 0
	e.files.syncDir = func(dir string) error { synced++; return syncDir(dir) }
	for range 3 {
		if r := e.Send(t.Context(), delivery(out, payload)); r.Status != send.Delivered || r.Proof != Proof {
			t.Fatalf("%+v", r)
		}
	}
	wantFiles(t, out, map[string]string{target: payload})
	if synced != 3 {
		t.Errorf("the directory was synced %d times for three proofs", synced)
	}
	d := delivery(out, payload)
	d.Generation = 1
	if r := e.Send(t.Context(), d); r.Status != send.Delivered {
		t.Fatalf("%+v", r)
	}
	wantFiles(t, out, map[string]string{target: payload, strings.Replace(target, ".edi", "-g1.edi", 1): payload})
}

func TestSendNeverOverwrites(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		there func(t *testing.T, path string)
	}{
		{"other content", func(t *testing.T, path string) { t.Helper(); write(t, path, "something else") }},
		{"same length", func(t *testing.T, path string) {
			t.Helper()
			write(t, path, strings.Replace(payload, "ALPHA", "OTHER", 1))
		}},
		{"a part of it", func(t *testing.T, path string) { t.Helper(); write(t, path, payload[:10]) }},
		{"empty", func(t *testing.T, path string) { t.Helper(); write(t, path, "") }},
		{"folder", func(t *testing.T, path string) {
			t.Helper()
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		{"symbolic link to the same content", func(t *testing.T, path string) {
			t.Helper()
			elsewhere := filepath.Join(t.TempDir(), "file")
			write(t, elsewhere, payload)
			if err := os.Symlink(elsewhere, path); err != nil {
				t.Fatal(err)
			}
		}},
		{"link to nowhere", func(t *testing.T, path string) {
			t.Helper()
			if err := os.Symlink(filepath.Join(t.TempDir(), "nowhere"), path); err != nil {
				t.Fatal(err)
			}
		}},
		{"pipe", func(t *testing.T, path string) {
			t.Helper()
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			path := filepath.Join(out, target)
			tc.there(t, path)
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			r := New(Options{}).Send(t.Context(), delivery(out, payload))
			if r.Status != send.Retry || r.Code != CodeTaken || !strings.Contains(r.Detail, target) {
				t.Errorf("%+v", r)
			}
			after, err := os.Lstat(path)
			if err != nil || !os.SameFile(before, after) || before.Size() != after.Size() {
				t.Errorf("the file that was there has changed: %v, %v", after, err)
			}
			entries, err := os.ReadDir(out)
			if err != nil || len(entries) != 1 {
				t.Errorf("left over: %v, %v", entries, err)
			}
		})
	}
}

func TestSendFailures(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "not-mounted")
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	fail := func(err error) func(io.Writer, io.Reader) (int64, error) {
		return func(io.Writer, io.Reader) (int64, error) { return 0, &os.PathError{Op: "write", Path: "x", Err: err} }
	}
	for _, tc := range []struct {
		name   string
		change func(e *Endpoint, d *send.Delivery)
		status send.Status
		code   string
	}{
		{"no settings", func(_ *Endpoint, d *send.Delivery) { d.Connection.Directory = nil }, send.Retry, CodeNotSet},
		{"in only", func(_ *Endpoint, d *send.Delivery) { d.Connection.Directory.Out = "" }, send.Retry, CodeNotSet},
		{"bad pattern", func(_ *Endpoint, d *send.Delivery) { d.Connection.Directory.Name = "{x}" }, send.Retry, CodePattern},
		{"not mounted", func(_ *Endpoint, d *send.Delivery) { d.Connection.Directory.Out = missing }, send.Retry, CodeMissing},
		{"not a directory", func(_ *Endpoint, d *send.Delivery) { d.Connection.Directory.Out = file }, send.Retry, CodeMissing},
		{"disk full", func(e *Endpoint, _ *send.Delivery) { e.files.copy = fail(syscall.ENOSPC) }, send.Retry, CodeFull},
		{"over quota", func(e *Endpoint, _ *send.Delivery) { e.files.copy = fail(syscall.EDQUOT) }, send.Retry, CodeFull},
		{"read-only", func(e *Endpoint, _ *send.Delivery) { e.files.copy = fail(syscall.EROFS) }, send.Retry, CodeDenied},
		{"no right", func(e *Endpoint, _ *send.Delivery) { e.files.copy = fail(syscall.EACCES) }, send.Retry, CodeDenied},
		{"broken disk", func(e *Endpoint, _ *send.Delivery) { e.files.copy = fail(syscall.EIO) }, send.Retry, CodeWrite},
		{"short write", func(e *Endpoint, _ *send.Delivery) {
			e.files.copy = func(w io.Writer, r io.Reader) (int64, error) { return io.CopyN(w, r, 5) }
		}, send.Retry, CodePayload},
		{"no safe rename", func(e *Endpoint, _ *send.Delivery) {
			e.files.rename = func(string, string) error { return errNoSafeRename }
		}, send.Retry, CodeNoRename},
		{"rename fails", func(e *Endpoint, _ *send.Delivery) {
			e.files.rename = func(string, string) error { return syscall.EIO }
		}, send.Retry, CodeWrite},
		{"unreadable payload", func(_ *Endpoint, d *send.Delivery) { d.Payload = brokenSource{} }, send.Retry, CodePayload},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			e, d := New(Options{}), delivery(out, payload)
			tc.change(e, d)
			r := e.Send(t.Context(), d)
			if r.Status != tc.status || r.Code != tc.code || r.Proof != "" || r.Detail == "" {
				t.Errorf("%+v, want %v, %s", r, tc.status, tc.code)
			}
			wantFiles(t, out, nil)
		})
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Send made a directory that was not there: %v", err)
	}
}

type brokenSource struct{}

func (brokenSource) Size() int64                       { return 10 }
func (brokenSource) ReadAt([]byte, int64) (int, error) { return 0, errors.New("store is broken") }

func TestSendStopsWithItsContext(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := New(Options{}).Send(ctx, delivery(out, payload)); r.Status != send.Retry || r.Code != CodeCanceled {
		t.Errorf("%+v", r)
	}
	wantFiles(t, out, nil)
}

// TestUnsyncedIsUnknown: the file is there, but nobody can say whether it stays.
func TestUnsyncedIsUnknown(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	e := New(Options{})
	e.files.syncDir = func(string) error { return syscall.EIO }
	for range 2 { // When it is new, and when it is there already.
		if r := e.Send(t.Context(), delivery(out, payload)); r.Status != send.Unknown || r.Code != CodeSync {
			t.Errorf("%+v", r)
		}
	}
	e.files.syncDir = syncDir
	if r := e.Send(t.Context(), delivery(out, payload)); r.Status != send.Delivered {
		t.Errorf("%+v", r)
	}
	wantFiles(t, out, map[string]string{target: payload})
}

// TestAnotherSenderWasFaster has the name taken between the look and the rename, as when a
// lease ran out and two nodes send the same delivery.
func TestAnotherSenderWasFaster(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]send.Status{payload: send.Delivered, "other": send.Retry} {
		out := t.TempDir()
		e := New(Options{})
		e.files.rename = func(from, to string) error {
			write(t, to, content)
			return renameNew(from, to)
		}
		if r := e.Send(t.Context(), delivery(out, payload)); r.Status != want {
			t.Errorf("%q is there: %+v", content, r)
		}
		wantFiles(t, out, map[string]string{target: content})
	}
}

func TestConcurrentSends(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	e := New(Options{})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			d := delivery(out, payload)
			d.Generation = i % 4
			if r := e.Send(t.Context(), d); r.Status != send.Delivered {
				t.Errorf("%+v", r)
			}
		})
	}
	wg.Wait()
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != 4 {
		t.Errorf("%v, %v; want four files", entries, err)
	}
}

func TestRenameNew(t *testing.T) {
	t.Parallel()
	for name, rename := range map[string]func(string, string) error{"rename": renameNew, "link": linkNew} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
			write(t, a, "1")
			write(t, b, "2")
			if err := rename(a, b); !errors.Is(err, os.ErrExist) {
				t.Errorf("onto another: %v, want os.ErrExist", err)
			}
			if err := rename(a, c); err != nil {
				t.Error(err)
			}
			if err := rename(a, filepath.Join(dir, "d")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("of nothing: %v, want os.ErrNotExist", err)
			}
			wantFiles(t, dir, map[string]string{"b": "2", "c": "1"})
		})
	}
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "erp", "in")
	c := clock.NewFake(time.Now())
	e := New(Options{Clock: c})
	dir := &partner.Directory{Out: out}
	if err := e.Prepare(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	write(t, filepath.Join(out, ".edihub-x-1.tmp"), "half")
	write(t, filepath.Join(out, ".other.tmp"), "not ours")
	write(t, filepath.Join(out, "orders.edi"), "whole")
	if err := e.Prepare(dir); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, out, map[string]string{".edihub-x-1.tmp": "half", ".other.tmp": "not ours", "orders.edi": "whole"})
	c.Advance(25 * time.Hour)
	if err := e.Prepare(dir); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, out, map[string]string{".other.tmp": "not ours", "orders.edi": "whole"})
	if err := e.Prepare(&partner.Directory{}); err != nil {
		t.Errorf("without an out directory: %v", err)
	}
	if err := e.Prepare(&partner.Directory{Out: filepath.Join(out, "orders.edi")}); err == nil {
		t.Error("took a file for a directory")
	}
}

// TestPrepareClearsOurOwnLeftovers of any age, and leaves what is being written or not ours.
func TestPrepareClearsOurOwnLeftovers(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	dir := &partner.Directory{Out: out}
	mine, running, theirs := edi.NewID(now), edi.NewID(now), edi.NewID(now)
	e := New(Options{Mine: func(id edi.ID) bool { return id == mine || id == running }})
	write(t, filepath.Join(out, ".edihub-"+mine.String()+"-1.tmp"), "half")
	write(t, filepath.Join(out, ".edihub-"+running.String()+"-1.tmp"), "half")
	write(t, filepath.Join(out, ".edihub-"+theirs.String()+"-1.tmp"), "theirs")
	reached, proceed, done := make(chan struct{}), make(chan struct{}), make(chan send.Result)
	e.options.Probe = func(point string) {
		if point == "before-rename" {
			close(reached)
			<-proceed
		}
	}
	d := delivery(out, "whole")
	d.ID = running
	go func() { done <- e.Send(context.Background(), d) }()
	<-reached
	if err := e.Prepare(dir); err != nil {
		t.Error(err)
	}
	close(proceed)
	if r := <-done; r.Status != send.Delivered {
		t.Errorf("the send that was running: %+v", r)
	}
	name, err := FileName(d.Connection.Directory.Name, d)
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, out, map[string]string{".edihub-" + theirs.String() + "-1.tmp": "theirs", name: "whole"})
	if len(e.live) != 0 {
		t.Errorf("still remembered: %v", e.live)
	}
}

func TestDetailIsOneLine(t *testing.T) {
	t.Parallel()
	got := oneLine("a\nb\x1b" + strings.Repeat("ä", 400))
	if n := len([]rune(got)); n != maxDetail || !strings.HasPrefix(got, "a?b?ä") || !strings.HasSuffix(got, "…") {
		t.Errorf("%d characters: %q", n, got)
	}
}

func BenchmarkSend(b *testing.B) {
	out := b.TempDir()
	e := New(Options{})
	content := strings.Repeat("x", 10<<10)
	for i := 0; b.Loop(); i++ {
		d := delivery(out, content)
		d.ID = edi.NewID(now)
		d.ControlRef = fmt.Sprint(i)
		if r := e.Send(b.Context(), d); r.Status != send.Delivered {
			b.Fatalf("%+v", r)
		}
	}
}
