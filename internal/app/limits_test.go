package app_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/edihub/edihub/internal/app/hubtest"
)

// metric reads one sample of /metrics, 0 where it is not there.
func metric(t *testing.T, h *hubtest.Hub, name string) float64 {
	t.Helper()
	r := h.API().Call(http.MethodGet, "/metrics", nil)
	if r.Status != http.StatusOK {
		t.Fatalf("metrics: HTTP %d", r.Status)
	}
	for line := range strings.Lines(string(r.Body)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			var v float64
			if _, err := fmt.Sscan(rest, &v); err != nil {
				t.Fatalf("metrics: %q: %v", line, err)
			}
			return v
		}
	}
	return 0
}

// openFiles counts the files of the process in a folder, unlinked ones too.
func openFiles(t *testing.T, folder string) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, fd := range fds {
		// A file that was closed meanwhile has no name any more.
		if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(name, folder+string(filepath.Separator)) {
			n++
		}
	}
	return n
}

// TestUploadsThatNeverEnd announces 50 times 2 GiB under ACME's name, sends a little of it, and
// waits. ACME and BETA deliver meanwhile, and when the uploads break off nothing of them is left.
func TestUploadsThatNeverEnd(t *testing.T) {
	t.Parallel()
	const uploads = 50
	h := newWorld(t, nil)
	spool := filepath.Join(h.DataDir(), "spool")
	conns := make([]net.Conn, uploads)
	var wg sync.WaitGroup
	for i := range conns {
		c, err := net.Dial("tcp", h.AS2Addr())
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = c
		defer c.Close() //nolint:errcheck // It is closed below unless the test fails.
		wg.Go(func() {
			var b bytes.Buffer
			fmt.Fprintf(&b, "POST /as2 HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n", int64(2)<<30)
			if err := as2Header("ACME", fmt.Sprintf("<big-%d@acme>", i), envelopedType).Write(&b); err != nil {
				t.Error(err)
			}
			b.WriteString("\r\n")
			// Beyond what stays in memory, so that there is a file.
			b.Write(bytes.Repeat([]byte{0x30}, 300<<10))
			if _, err := c.Write(b.Bytes()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	h.Wait("a file of each upload", func() bool { return openFiles(t, spool) == uploads })
	for i, from := range []string{"BETA", "ACME"} {
		h.Send(hubtest.Message{From: from, Payload: edifactOrder(from, "GLOBEX", i+1, "MEANWHILE-"+from)}).Positive(t)
	}
	h.Settle()
	for _, from := range []string{"BETA", "ACME"} {
		if holding(h, "MEANWHILE-"+from) != 1 {
			t.Errorf("%s was not delivered", from)
		}
	}
	if n := openFiles(t, spool); n != uploads {
		t.Errorf("%d of %d uploads go on", n, uploads)
	}
	for _, c := range conns {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	h.Wait("the uploads to end", func() bool {
		return metric(t, h, `edihub_as2_received_total{partner="acme-as2",result="cut_off"}`) == uploads
	})
	h.Wait("their files to go", func() bool { return openFiles(t, spool) == 0 })
	left, err := os.ReadDir(spool)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 0 {
		t.Errorf("%d files are left in the spool", len(left))
	}
	if n := len(h.API().List("transmissions")); n != 2 {
		t.Errorf("%d transmissions are kept, want 2", n)
	}
}

// unavailable fails the test unless the answer is a 503 that asks for a repeat and holds no MDN.
func unavailable(t *testing.T, a *hubtest.Answer) {
	t.Helper()
	if a.Status != http.StatusServiceUnavailable || a.MDN != nil || a.Header.Get("Retry-After") == "" {
		t.Fatalf("HTTP %d, MDN %v, Retry-After %q: %s", a.Status, a.MDN, a.Header.Get("Retry-After"), a.Body)
	}
}

// TestFullDisk takes the room away: what comes is answered with 503 and is not kept, also where
// the room goes between the body and the store. Once there is room again, the repeat under the
// same Message-ID is accepted, and all is delivered once.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	var free, looks, full atomic.Int64
	free.Store(2 << 30)
	h := newWorld(t, func(o *hubtest.Options) {
		o.Flags = map[string]string{"limits.min_free_disk": "1GiB"}
		o.FreeSpace = func(dir string) (int64, error) {
			looks.Add(1)
			spool := filepath.Base(dir) == "spool"
			if full.Load() == 1 && !spool || full.Load() == 2 && spool {
				return 0, nil
			}
			return free.Load(), nil
		}
	})
	api := h.API()
	mine := h.Message(hubtest.Message{From: "ACME", MessageID: "<disk-1@acme>", Payload: edifactOrder("ACME", "GLOBEX", 1, "DISK-1")})
	large := h.Message(hubtest.Message{From: "ACME", MessageID: "<disk-2@acme>", Payload: append(edifactOrder("ACME", "GLOBEX", 2, "DISK-2"), bytes.Repeat([]byte("\r\n"), 1<<20)...)})
	for name, fill := range map[string]func(on bool){
		"below the limit": func(on bool) {
			if free.Store(2 << 30); on {
				free.Store(1<<30 - 1)
			}
		},
		"the store's disk full": func(on bool) {
			if full.Store(0); on {
				full.Store(1)
			}
		},
		"the spool's disk full": func(on bool) {
			if full.Store(0); on {
				full.Store(2)
			}
		},
	} {
		fill(true)
		for _, r := range []*hubtest.Request{mine, large} {
			unavailable(t, h.Post(r))
		}
		if n := len(api.List("transmissions")); n != 0 {
			t.Fatalf("%s: %d transmissions are kept", name, n)
		}
		// Who only looks is served.
		if r := api.Call(http.MethodGet, "/v1/messages", nil); r.Status != http.StatusOK {
			t.Errorf("%s: the list of messages: HTTP %d", name, r.Status)
		}
		if r := api.Call(http.MethodPost, "/v1/messages?from=acme&to=globex", edifactOrder("ACME", "GLOBEX", 3, "DISK-3")); r.Status != http.StatusServiceUnavailable {
			t.Errorf("%s: a submission: HTTP %d", name, r.Status)
		}
		fill(false)
	}
	for _, r := range []*hubtest.Request{mine, large, mine, large} {
		h.Post(r).Positive(t)
	}
	h.Settle()
	for _, number := range []string{"DISK-1", "DISK-2"} {
		if n := holding(h, number); n != 1 {
			t.Errorf("%s was delivered %d times", number, n)
		}
	}
	if n := len(api.List("transmissions?state=repeated")); n != 2 {
		t.Errorf("%d repeats are recognised, want 2", n)
	}
	if looks.Load() == 0 || holding(h, "DISK-3") != 0 {
		t.Error("nobody looked at the disk")
	}
	freeLanes(t, h)
}

// TestFullDiskMidway fills the disk while messages are between the stages: nothing is lost and
// nothing dies, and with room again all of them are delivered once.
func TestFullDiskMidway(t *testing.T) {
	t.Parallel()
	var free atomic.Int64
	free.Store(2 << 30)
	h := newWorld(t, func(o *hubtest.Options) {
		o.Flags = map[string]string{"limits.min_free_disk": "1GiB"}
		o.FreeSpace = func(string) (int64, error) { return free.Load(), nil }
	})
	h.Sink.Answer(func(http.ResponseWriter, *http.Request, *hubtest.Delivered) bool {
		free.Store(0) // the proof of this delivery finds the disk full
		return false
	})
	h.Send(hubtest.Message{From: "ACME", Payload: edifactOrder("ACME", "GLOBEX", 1, "MID-1")}).Positive(t)
	h.Wait("the first to be sent", func() bool { return holding(h, "MID-1") > 0 })
	unavailable(t, h.Send(hubtest.Message{From: "ACME", MessageID: "<mid-2@acme>", Payload: edifactOrder("ACME", "GLOBEX", 2, "MID-2")}))
	h.Sink.Answer(nil)
	free.Store(2 << 30)
	h.Send(hubtest.Message{From: "ACME", MessageID: "<mid-2@acme>", Payload: edifactOrder("ACME", "GLOBEX", 2, "MID-2")}).Positive(t)
	h.Settle()
	ids := map[string]bool{}
	for _, d := range h.Sink.To("GLOBEX") {
		ids[d.MessageID] = true
	}
	if len(ids) != 2 || holding(h, "MID-2") != 1 {
		t.Errorf("%d messages were sent", len(ids))
	}
	if ms := h.API().List("messages?state=delivered"); len(ms) != 2 {
		t.Errorf("messages %v", h.API().List("messages"))
	}
	freeLanes(t, h)
}

// TestLockedDatabase has another one hold the database's lock for writing: 503 and no MDN; the
// repeat is accepted when it lets go, and delivered once.
func TestLockedDatabase(t *testing.T) {
	t.Parallel()
	h := newWorld(t, nil)
	ctx := context.Background()
	mine := h.Message(hubtest.Message{From: "ACME", MessageID: "<locked@acme>", Payload: edifactOrder("ACME", "GLOBEX", 1, "LOCKED-1")})
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.DataDir(), "edihub.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // It was only locked.
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // It was only locked.
	if _, err := conn.ExecContext(ctx, "begin immediate"); err != nil {
		t.Fatal(err)
	}
	unavailable(t, h.Post(mine))
	if r := h.API().Call(http.MethodGet, "/v1/transmissions", nil); r.Status != http.StatusOK || bytes.Contains(r.Body, []byte("locked@acme")) {
		t.Errorf("HTTP %d: %s", r.Status, r.Body)
	}
	if _, err := conn.ExecContext(ctx, "rollback"); err != nil {
		t.Fatal(err)
	}
	h.Post(mine).Positive(t)
	h.Post(mine).Positive(t)
	h.Settle()
	if n := holding(h, "LOCKED-1"); n != 1 {
		t.Errorf("delivered %d times", n)
	}
	if n := len(h.API().List("transmissions?state=accepted")); n != 1 {
		t.Errorf("%d accepted transmissions", n)
	}
	freeLanes(t, h)
}
