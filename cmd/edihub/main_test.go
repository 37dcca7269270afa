package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/edihub/edihub/internal/admin"
	"github.com/edihub/edihub/internal/app"
	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is what a run of the program left behind.
type result struct {
	code           int
	stdout, stderr string
}

// edihub runs the program with an environment that is the test's own.
func edihub(env []string, stdin string, args ...string) result {
	var out, errs bytes.Buffer
	code := run(context.Background(), args, env, strings.NewReader(stdin), &out, &errs)
	return result{code, out.String(), errs.String()}
}

func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit %d, want %d\nstdout: %s\nstderr: %s", r.code, code, r.stdout, r.stderr)
	}
	for _, s := range texts {
		if !strings.Contains(r.stdout+r.stderr, s) {
			t.Errorf("%q is missing in\nstdout: %s\nstderr: %s", s, r.stdout, r.stderr)
		}
	}
}

// objects reads one JSON object a line.
func objects[T any](t *testing.T, r result) []T {
	t.Helper()
	var out []T
	for line := range strings.Lines(r.stdout) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("line %q is no JSON object: %v", line, err)
		}
		out = append(out, v)
	}
	return out
}

const records = `
own:
  - {id: hub, identifiers: ["edifact:ZZ:HUB"]}
connections:
  - {id: acme-http, http: {url: "http://127.0.0.1:1/acme"}}
  - {id: erp-files, directory: {out: ./erp, name: "{type}_{control_ref}_{id}.edi"}}
partners:
  - {id: acme, connections: [acme-http], identifiers: ["edifact:ZZ:ACME"]}
  - {id: erp, connections: [erp-files]}
agreements:
  - {match: {}, ordering: {by: none}, on_poison: skip}
routes:
  - {match: {from: acme, document: "edifact:ORDERS"}, to: erp, envelope: keep}
`

func orders(ref, typ string) string {
	total := "UNT+5+1'"
	if typ == "INVOIC" {
		total = "MOA+77:1'UNT+6+1'"
	}
	return "UNB+UNOA:3+ACME:ZZ+HUB:ZZ+260101:1200+" + ref + "'UNH+1+" + typ + ":D:96A:UN'BGM+220+PO" + ref + "+9'DTM+137:20260101:102'UNS+S'" + total + "UNZ+1+" + ref + "'"
}

// hub is a whole hub in this process.
type hub struct {
	t   *testing.T
	dir string
	env []string
}

func startHub(t *testing.T) *hub {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "partners.yaml"), records)
	ok(t, os.Mkdir(filepath.Join(dir, "erp"), 0o700))
	data := filepath.Join(dir, "data")
	c, _, err := config.Load(config.Options{Flags: map[string]string{
		"data": data, "as2.listen": "127.0.0.1:0", "admin.listen": "127.0.0.1:0", "partners_file": filepath.Join(dir, "partners.yaml"),
		"limits.min_free_disk": "0",
	}})
	ok(t, err)
	h, err := app.New(app.Options{Config: c, Version: "test"})
	ok(t, err)
	ok(t, h.Start(context.Background()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		ok(t, h.Stop(ctx))
	})
	ok(t, admin.WriteURL(data, "http://"+h.AdminAddr()))
	return &hub{t: t, dir: dir, env: []string{"EDIHUB_DATA=" + data}}
}

func (h *hub) run(args ...string) result { return edihub(h.env, "", args...) }

func (h *hub) file(name, content string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	write(h.t, path, content)
	return path
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	ok(t, os.WriteFile(path, []byte(content), 0o600))
}

func TestSendWaitsForTheDelivery(t *testing.T) {
	t.Parallel()
	h := startHub(t)
	good := h.file("good.edi", orders("A1", "ORDERS"))
	r := h.run("send", "--from", "acme", "--to", "hub", "--wait", "30s", "--format", "json", good)
	r.want(t, 0)
	res := objects[sendResult](t, r)[0]
	if !res.Delivered || res.State != "delivered" || len(res.Messages) != 1 || res.Messages[0].Document != "POA1" || res.File != good {
		t.Errorf("result %+v", res)
	}
	files, err := filepath.Glob(filepath.Join(h.dir, "erp", "ORDERS_A1_*.edi"))
	ok(t, err)
	if len(files) != 1 {
		t.Fatalf("%d files were delivered", len(files))
	}
	b, err := os.ReadFile(files[0])
	ok(t, err)
	if string(b) != orders("A1", "ORDERS") {
		t.Errorf("delivered %q", b)
	}

	h.run("send", "--from", "acme", "--to", "hub", h.file("a2.edi", orders("A2", "ORDERS"))).want(t, 0, "transmission ", " accepted")
	key := []string{"send", "--from", "acme", "--to", "hub", "--idempotency-key", "k1", h.file("a3.edi", orders("A3", "ORDERS"))}
	h.run(key...).want(t, 0, "accepted")
	h.run(key...).want(t, 0, "repeated")
	edihub(h.env, orders("A4", "ORDERS"), "send", "--from", "acme", "--to", "hub", "--wait", "30s", "-").want(t, 0, "delivered", "POA4")

	t.Run("dead", func(t *testing.T) {
		r := h.run("send", "--from", "acme", "--to", "hub", "--wait", "30s", "--format", "json", h.file("dead.edi", orders("B1", "INVOIC")))
		r.want(t, 1)
		if res := objects[sendResult](t, r)[0]; res.Delivered || res.Messages[0].State != "dead" || res.Code != "NO_ROUTE" {
			t.Errorf("result %+v", res)
		}
	})
	t.Run("rejected", func(t *testing.T) {
		bad := strings.Replace(orders("B2", "ORDERS"), "UNT+5", "UNT+9", 1)
		h.run("send", "--from", "acme", "--to", "hub", "--wait", "30s", h.file("bad.edi", bad)).want(t, 1, "rejected")
	})
	t.Run("duplicate", func(t *testing.T) {
		h.run("send", "--from", "acme", "--to", "hub", "--wait", "30s", good).want(t, 1, "duplicate")
	})
	t.Run("nothing that anybody knows", func(t *testing.T) {
		stranger := strings.Replace(orders("B3", "ORDERS"), "ACME:ZZ", "WHO:ZZ", 1)
		h.run("send", "--from", "acme", "--to", "hub", "--wait", "30s", h.file("who.edi", stranger)).want(t, 1, "SENDER_NOT_ON_CONNECTION")
	})
	t.Run("not in time", func(t *testing.T) {
		h.run("stage", "pause", "router").want(t, 0)
		h.run("send", "--from", "acme", "--to", "hub", "--wait", "100ms", h.file("slow.edi", orders("B4", "ORDERS"))).want(t, 1, "WAIT_OVER")
		h.run("stage", "resume", "router").want(t, 0)
	})
}

func TestSendIsUsedWrongly(t *testing.T) {
	t.Parallel()
	h := startHub(t)
	f := h.file("a.edi", orders("A1", "ORDERS"))
	h.run("send", "--from", "acme", f).want(t, 2, "--to")
	h.run("send", "--from", "acme", "--to", "hub").want(t, 2, "arg")
	h.run("send", "--from", "acme", "--to", "hub", filepath.Join(h.dir, "none.edi")).want(t, 2, "none.edi")
	h.run("send", "--from", "acme", "--to", "hub", h.dir).want(t, 2, "not a file")
	h.run("send", "--from", "acme", "--to", "hub", "--wait", "-1s", f).want(t, 2)
	h.run("send", "--from", "nobody", "--to", "hub", f).want(t, 1, "PARTNER_UNKNOWN")
}

func TestObjects(t *testing.T) {
	t.Parallel()
	h := startHub(t)
	body := orders("C1", "ORDERS")
	h.run("send", "--from", "acme", "--to", "hub", "--wait", "30s", h.file("c.edi", body)).want(t, 0)

	h.run("message", "list").want(t, 0, "ID", "edifact:ORDERS", "POC1", "delivered")
	list := objects[messageItem](t, h.run("message", "list", "--document-no", "POC1", "--since", "1h", "--format", "json"))
	if len(list) != 1 || list[0].From != "acme" {
		t.Fatalf("list %+v", list)
	}
	id := list[0].ID
	if n := len(objects[messageItem](t, h.run("message", "list", "--state", "dead", "--format", "json"))); n != 0 {
		t.Errorf("%d dead", n)
	}
	h.run("message", "show", id).want(t, 0, id, "EVENT", "parsed", "routed", "delivered", "document.number")
	shown := objects[struct {
		ID     string      `json:"id"`
		Events []eventItem `json:"events"`
	}](t, h.run("message", "show", "--format", "json", id))
	if len(shown) != 1 || shown[0].ID != id || len(shown[0].Events) < 3 {
		t.Errorf("show %+v", shown)
	}
	r := h.run("message", "payload", id)
	r.want(t, 0)
	if r.stdout != body[strings.Index(body, "UNH"):strings.Index(body, "UNZ")] {
		t.Errorf("payload %q", r.stdout)
	}
	for _, o := range []string{"interchange", "delivery", "transmission"} {
		items := objects[struct {
			ID string `json:"id"`
		}](t, h.run(o, "list", "--format", "json"))
		if len(items) != 1 {
			t.Fatalf("%s: %d", o, len(items))
		}
		h.run(o, "list").want(t, 0, items[0].ID)
		h.run(o, "show", items[0].ID).want(t, 0, items[0].ID)
		out := filepath.Join(h.dir, o+".out")
		h.run(o, "payload", items[0].ID, "-o", out).want(t, 0)
		if b, err := os.ReadFile(out); err != nil || string(b) != body {
			t.Errorf("%s payload %q %v", o, b, err)
		}
		h.run(o, "payload", items[0].ID, "-o", out).want(t, 2, "exists")
	}
	h.run("message", "show", "01900000-0000-7000-8000-000000000009").want(t, 1, "NOT_FOUND")
	h.run("message", "show", "nonsense").want(t, 1, "ID_INVALID")
	h.run("message", "payload", id, "--form", "pretty").want(t, 1, "FORM_UNSUPPORTED")
	h.run("message", "list", "--since", "yesterday").want(t, 2, "not a time")
	h.run("message", "list", "--limit", "0").want(t, 2)
	h.run("message", "list", "--state", "").want(t, 2, "empty")
	h.run("message", "list", "--format", "yaml").want(t, 2, "yaml")
}

func TestDead(t *testing.T) {
	t.Parallel()
	h := startHub(t)
	for _, ref := range []string{"D1", "D2"} {
		h.run("send", "--from", "acme", "--to", "hub", "--wait", "30s", h.file(ref, orders(ref, "INVOIC"))).want(t, 1)
	}
	h.run("dead", "list").want(t, 0, "NO_ROUTE", "router.")
	items := objects[deadItem](t, h.run("dead", "list", "--stage", "router", "--code", "NO_ROUTE", "--partner", "acme", "--since", "1h", "--format", "json"))
	if len(items) != 2 {
		t.Fatalf("%d dead letters", len(items))
	}
	if n := len(objects[deadItem](t, h.run("dead", "list", "--limit", "1", "--format", "json"))); n != 1 {
		t.Errorf("the limit gives %d", n)
	}
	h.run("dead", "show", items[0].ID).want(t, 0, "NO_ROUTE", "EVENT")

	h.run("dead", "replay").want(t, 2, "--all")
	h.run("dead", "replay", items[0].ID, "--code", "X").want(t, 2, "not both")
	h.run("dead", "replay", "--all", "--code", "X").want(t, 2)
	if n := len(objects[deadItem](t, h.run("dead", "replay", "--code", "NO_ROUTE", "--dry-run", "--format", "json"))); n != 2 {
		t.Errorf("dry run names %d", n)
	}
	h.run("dead", "replay", "--code", "NO_ROUTE", "--dry-run").want(t, 0, "nothing was done")

	h.run("stage", "pause", "router").want(t, 0, "true")
	h.run("dead", "replay", items[0].ID, "--reason", "mended").want(t, 0, "replayed")
	h.run("dead", "replay", items[0].ID).want(t, 0, "no dead letter any more")
	r := h.run("dead", "replay", "--code", "NO_ROUTE", "--rate", "1000", "--format", "json")
	r.want(t, 0)
	if got := objects[replayManyResult](t, r)[0]; got.Matched != 1 || got.Replayed != 1 {
		t.Errorf("replay by filter %+v", got)
	}
	h.run("stage", "resume", "router").want(t, 0)
	h.run("send", "--from", "acme", "--to", "hub", "--wait", "30s", h.file("D3", orders("D3", "INVOIC"))).want(t, 1)
	if len(objects[deadItem](t, h.run("dead", "list", "--format", "json"))) == 0 {
		t.Fatal("no dead letter is left to discard")
	}
	h.run("dead", "discard", "--all").want(t, 2, "--reason")
	h.run("dead", "discard", "--all", "--dry-run").want(t, 0, "nothing was done")
	h.run("dead", "discard", items[0].ID, "--reason", "sent twice").want(t, 0)
	h.run("dead", "discard", items[0].ID, "--reason", "sent twice").want(t, 0, "before")
	h.run("dead", "discard", "--code", "OTHER", "--reason", "x").want(t, 0, "no dead letter matches")
	h.run("dead", "replay", items[0].ID).want(t, 1, "DISCARDED")
	if n := len(objects[deadItem](t, h.run("dead", "list", "--discarded", "--format", "json"))); n != 1 {
		t.Errorf("%d discarded", n)
	}
}

func TestStage(t *testing.T) {
	t.Parallel()
	h := startHub(t)
	h.run("stage", "list").want(t, 0, "STAGE", "parser", "validator", "router", "sender")
	if n := len(objects[stageItem](t, h.run("stage", "list", "--format", "json"))); n != 4 {
		t.Errorf("%d stages", n)
	}
	r := h.run("stage", "scale", "validator", "3", "--max", "6", "--format", "json")
	r.want(t, 0)
	if got := objects[stageItem](t, r)[0]; got.Workers != 3 || got.Max != 6 || got.Stage != "validator" {
		t.Errorf("scaled %+v", got)
	}
	h.run("stage", "scale", "validator", "many").want(t, 2, "many")
	h.run("stage", "scale", "cook", "3").want(t, 1, "STAGE_UNKNOWN")
	h.run("stage", "scale", "validator", "100000").want(t, 1, "STAGE_SETTINGS")
	h.run("stage").want(t, 2, "list, pause")
}

func TestHubIsNotThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "token"), "abc\n")
	gone := httptest.NewServer(http.NotFoundHandler())
	url := gone.URL
	gone.Close()
	edihub(nil, "", "stage", "list", "--admin-url", url, "--token-file", filepath.Join(dir, "token")).want(t, 3, "cannot be reached", url)
	edihub(nil, "", "stage", "list", "--data", dir).want(t, 2, "admin.token", "--token-file")
	edihub([]string{"EDIHUB_TOKEN=x"}, "", "stage", "list", "--admin-url", "http://edi.example.com").want(t, 2, "in the clear")
	edihub([]string{"EDIHUB_TOKEN=x"}, "", "stage", "list", "--admin-url", "http://user:pw@127.0.0.1").want(t, 2, "a password is refused")
}

func TestAnswersOfTheHubBecomeExitCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		media  string
		body   string
		code   int
		text   string
	}{
		"token":     {401, "application/problem+json", `{"status":401,"code":"UNAUTHORIZED","detail":"no valid token"}`, 2, "no valid token"},
		"role":      {403, "application/problem+json", `{"status":403,"code":"FORBIDDEN","detail":"needs operator"}`, 2, "FORBIDDEN"},
		"conflict":  {409, "application/problem+json", `{"status":409,"code":"X","detail":"no"}`, 1, "(409 X)"},
		"store":     {503, "application/problem+json", `{"status":503,"code":"STORE_UNAVAILABLE","detail":"later"}`, 3, "later"},
		"foreign":   {404, "text/html", `<h1>nginx</h1>`, 1, "does not look like an edihub"},
		"no JSON":   {200, "text/html", `<h1>login</h1>`, 3, "cannot be read"},
		"elsewhere": {302, "text/html", ``, 1, "does not look like an edihub"},
		"colours":   {409, "application/problem+json", `{"status":409,"code":"X","detail":"\u001b[31mred"}`, 1, "·[31mred"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := make(chan string, 4)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen <- r.Header.Get("Authorization")
				w.Header().Set("Content-Type", c.media)
				if c.status == 302 {
					w.Header().Set("Location", "/elsewhere")
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer s.Close()
			r := edihub([]string{"EDIHUB_TOKEN=tok", "EDIHUB_ADMIN_URL=" + s.URL}, "", "stage", "list")
			r.want(t, c.code, c.text)
			if r.stdout != "" {
				t.Errorf("standard output %q", r.stdout)
			}
			if got := <-seen; got != "Bearer tok" || len(seen) != 0 {
				t.Errorf("token %q, and %d more requests", got, len(seen))
			}
		})
	}
}

// latest is the version of the schema that this program writes.
var latest = strconv.Itoa(sqlite.SchemaVersion)

func TestUse(t *testing.T) {
	t.Parallel()
	edihub(nil, "", "--help").want(t, 0, "Exit codes", "dead", "keygen")
	edihub(nil, "").want(t, 0, "Usage")
	edihub(nil, "", "cook").want(t, 2, "cook")
	edihub(nil, "", "stage", "cook").want(t, 2)
	edihub(nil, "", "stage", "list", "--colour").want(t, 2, "--colour")
	edihub(nil, "", "stage", "list", "extra").want(t, 2)
	edihub(nil, "", "version").want(t, 0, "edihub ", "schema "+latest)
	v := objects[build](t, edihub(nil, "", "version", "--format", "json"))
	if len(v) != 1 || v[0].Go == "" || v[0].Version == "" {
		t.Errorf("version %+v", v)
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	root := newRootCommand(newEnvironment(nil, nil, nil, nil))
	for _, c := range root.Commands() {
		if c.Short == "" || c.Example == "" {
			t.Errorf("%s has no short text or no example", c.CommandPath())
		}
		for _, s := range c.Commands() {
			if s.Short == "" {
				t.Errorf("%s has no short text", s.CommandPath())
			}
		}
	}
}

func TestPointInTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]string{
		"2026-01-31T08:00:00Z": "2026-01-31T08:00:00Z", "2026-01-31": "2026-01-31T00:00:00Z", "24h": "2026-03-01T12:00:00Z", "90m": "2026-03-02T10:30:00Z",
		"7d": "2026-02-23T12:00:00Z", "2026-01-31T08:00:00+01:00": "2026-01-31T07:00:00Z",
	} {
		got, err := pointInTime(in, now)
		if err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%s is %s %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", "x", "-1h", "31.1.2026"} {
		if _, err := pointInTime(in, now); err == nil {
			t.Errorf("%q is a time", in)
		}
	}
}

func FuzzPointInTime(f *testing.F) {
	for _, s := range []string{"24h", "2026-01-31", "2026-01-31T08:00:00Z", "", "7d", "-1s"} {
		f.Add(s)
	}
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		if at, err := pointInTime(s, now); err != nil && !at.IsZero() {
			t.Errorf("%q gives both a time and an error", s)
		}
	})
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	if got := printable("a\x1b[2Jb\u202ec\tdé"); got != "a·[2Jb·c·dé" {
		t.Errorf("%q", got)
	}
	var b bytes.Buffer
	_, err := (&dotWriter{&b}).Write([]byte("a\x1b\x00é\n"))
	ok(t, err)
	if b.String() != "a....\n" {
		t.Errorf("%q", b.String())
	}
}
