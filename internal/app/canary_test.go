package app_test

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/edihub/edihub/internal/admin"
	"github.com/edihub/edihub/internal/app/hubtest"
	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/observe"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/spool"
	"github.com/edihub/edihub/internal/store"
)

// canaries are texts that must not come out, by what they are.
type canaries map[string]string

// in names those that a text holds.
func (c canaries) in(text []byte) (out []string) {
	for name, v := range c {
		if bytes.Contains(text, []byte(v)) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// lockedBuffer takes the log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) all() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.b.Bytes())
}

// secretPaths finds what is secret by its type in a type of the records or the configuration.
func secretPaths(t reflect.Type, path string, seen map[reflect.Type]bool, found func(path string, f reflect.StructField)) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] || !strings.HasPrefix(t.PkgPath(), "github.com/edihub/") {
		return
	}
	seen[t] = true
	defer delete(seen, t)
	for f := range t.Fields() {
		at := path + "." + f.Name
		found(at, f)
		secretPaths(f.Type, at, seen, found)
	}
}

func isSecret(t reflect.Type) bool {
	return t == reflect.TypeFor[config.Secret]() || t == reflect.TypeFor[[]config.Secret]() || t == reflect.TypeFor[crypto.Signer]() || t == reflect.TypeFor[crypto.PrivateKey]()
}

// TestEverySecretIsKnown fails when a secret is added that the canaries below do not hold, and
// when something that sounds like a secret has a type that prints.
func TestEverySecretIsKnown(t *testing.T) {
	t.Parallel()
	var got []string
	sounds := regexp.MustCompile(`(?i)password|passwd|secret|token|credential|hmac|private|passphrase`)
	for _, typ := range []reflect.Type{
		reflect.TypeFor[config.Config](), reflect.TypeFor[partner.Own](), reflect.TypeFor[partner.Connection](), reflect.TypeFor[partner.Partner](),
		reflect.TypeFor[partner.Agreement](), reflect.TypeFor[partner.Route](),
	} {
		secretPaths(typ, typ.Name(), map[reflect.Type]bool{}, func(path string, f reflect.StructField) {
			switch {
			case isSecret(f.Type):
				got = append(got, path)
			case sounds.MatchString(f.Name) && f.Type.Kind() != reflect.Bool:
				t.Errorf("%s sounds like a secret and is a %s: make it a config.Secret", path, f.Type)
			}
		})
	}
	want := []string{"Config.Postgres.URL", "Config.RabbitMQ.URL", "Config.RabbitMQ.MoreURLs", "Own.Keys.Private", "Connection.HTTP.HMACKey"}
	if !slices.Equal(got, want) {
		t.Errorf("the secrets are %v; give each a canary in TestNothingShowsASecret, then name it here", got)
	}
	n := 0
	for _, k := range config.Keys() {
		if k.Secret {
			n++
		}
	}
	if n != 3 {
		t.Errorf("%d settings are secrets and 3 fields are", n)
	}
}

// secretRoutes lead to the HTTP connections whose keys are canaries.
const secretRoutes = `
  - {match: {to: web}, to: web, envelope: new}
  - {match: {to: web2}, to: web2, envelope: new}
`

// TestNothingShowsASecret runs a hub whose every secret is a canary, moves messages that hold one
// too, and lets everything go wrong that can: no log line at level debug, no answer of the API to
// any role, no metric and no error shows any.
func TestNothingShowsASecret(t *testing.T) {
	t.Parallel()
	secrets := canaries{}
	flags := map[string]string{}
	for i, k := range config.Keys() {
		if !k.Secret {
			continue
		}
		v := fmt.Sprintf("C4N4RY-SETTING-%d", i)
		secrets[k.Name] = v
		scheme, _, _ := strings.Cut(k.Name, ".")
		flags[k.Name] = map[string]string{"postgres": "postgres", "rabbitmq": "amqp"}[scheme] + "://user:" + v + "@127.0.0.1:1/db"
	}
	secrets["hmac key"], secrets["hmac key of a file"] = "C4N4RY-HMAC-1-"+strings.Repeat("x", 32), "C4N4RY-HMAC-2-"+strings.Repeat("y", 32)
	payload := canaries{"payload": "C4N4RY-PAYLOAD"}

	records := strings.Replace(world, "partners:\n", `  - {id: web, http: {url: "http://${sink}/http/web", hmac_key: "`+secrets["hmac key"]+`"}, retry: {first: 5ms, max: 10ms}}
  - {id: web2, http: {url: "http://127.0.0.1:1/http/web", hmac_key_file: web2.key}, retry: {for: 20ms, first: 5ms, max: 10ms}}
partners:
  - {id: web, connections: [web], identifiers: ["edifact:ZZ:WEB"]}
  - {id: web2, connections: [web2], identifiers: ["edifact:ZZ:WEB2"]}
`, 1) + secretRoutes
	var log lockedBuffer
	logger, err := observe.NewLogger("debug", "json", &log)
	if err != nil {
		t.Fatal(err)
	}
	h := newWorld(t, func(o *hubtest.Options) {
		o.Log, o.Flags = logger, flags
		o.Records = strings.ReplaceAll(records, ", hmac_key_file: web2.key", "") // until the file is there
		o.Wrap = func(s store.Stage, impl pipeline.Stage) pipeline.Stage {
			return pipeline.StageFunc(func(ctx context.Context, task *pipeline.Task) *pipeline.Outcome {
				if s == store.Validator && task.Message.Envelope.Document.Number == "PANICS" {
					var none map[string]int
					none["x"] = 1
				}
				return impl.Handle(ctx, task)
			})
		}
	})
	if err := os.WriteFile(filepath.Join(h.Dir, "web2.key"), []byte(secrets["hmac key of a file"]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Mend(records)
	for _, o := range h.Registry().Current().Connections() {
		if o.HTTP != nil && o.HTTP.HMACKey.Empty() {
			t.Fatalf("connection %s has no canary", o.ID)
		}
	}
	keysOf(t, h, secrets)
	roles := map[string]*hubtest.API{"admin": h.API(), "operator": h.API().As("operator"), "viewer": h.API().As("viewer")}
	for name, a := range roles {
		secrets["token of "+name] = a.Token
	}
	nobody := *roles["admin"]
	nobody.Token = ""
	stranger := nobody
	stranger.Token = "C4N4RY-TOKEN-" + strings.Repeat("z", 30)
	secrets["token that is none"] = stranger.Token
	roles["nobody"], roles["stranger"] = &nobody, &stranger

	goWrong(t, h, payload["payload"])
	failures := spoilRecords(h, records, secrets)
	answers := walk(t, h, roles)

	for _, f := range failures {
		if found := append(secrets.in([]byte(f)), payload.in([]byte(f))...); found != nil {
			t.Errorf("an error shows %v: %s", found, f)
		}
	}
	seen := 0
	for _, a := range answers {
		if found := secrets.in(a.body); found != nil {
			t.Errorf("%s shows %v: %s", a.what, found, a.body)
		}
		if found := payload.in(a.body); found != nil {
			seen++
			if !a.payload {
				t.Errorf("%s shows %v: %s", a.what, found, a.body)
			}
		}
	}
	h.Stop()
	for line := range bytes.Lines(log.all()) {
		if found := append(secrets.in(line), payload.in(line)...); found != nil {
			t.Errorf("the log shows %v: %s", found, line)
		}
	}
	// The test must have looked at something.
	for _, event := range []string{"as2_received", "as2_sent", "stage_panic", "payload_read", "admin_request"} {
		if !bytes.Contains(log.all(), []byte(`"event":"`+event+`"`)) {
			t.Errorf("the log has no %s", event)
		}
	}
	if seen == 0 || len(failures) < 6 || len(answers) < 100 {
		t.Errorf("%d answers with a payload, %d errors, %d answers", seen, len(failures), len(answers))
	}
}

// keysOf adds each line of each private key that holds something private.
func keysOf(t *testing.T, h *hubtest.Hub, secrets canaries) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(h.Dir, "*.key"))
	if err != nil || len(files) < 2 {
		t.Fatalf("keys %v, %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(b), "\n")
		if len(lines) < 10 {
			continue // not PEM
		}
		// The first seven lines hold the modulus, which is in the certificate too.
		for i, l := range lines[8:] {
			if len(l) == 64 {
				secrets[fmt.Sprintf("%s, line %d", filepath.Base(f), i+9)] = l
			}
		}
	}
}

// goWrong moves messages with a text in a place that is nothing but content, well and badly.
func goWrong(t *testing.T, h *hubtest.Hub, mark string) {
	t.Helper()
	with := func(b []byte) []byte {
		b = bytes.Replace(b, []byte("UNS+S'"), []byte("FTX+AAI+++"+mark+"'UNS+S'"), 1)
		return bytes.Replace(b, []byte("UNT+8+"), []byte("UNT+9+"), 1)
	}
	h.Sink.Answer(func(w http.ResponseWriter, r *http.Request, d *hubtest.Delivered) bool {
		switch {
		case r.URL.Path == "/http/web" && len(h.Sink.To("web")) == 1:
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write(d.Wire) // a server that shows what it could not take
			return true
		case bytes.Contains(d.Payload, []byte("BOUNCES")):
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(d.Payload)
			return true
		}
		return false
	})
	good := with(edifactOrder("ACME", "GLOBEX", 1, "GOOD"))
	for _, p := range [][]byte{
		good,
		with(edifactOrder("ACME", "WEB", 2, "WEB")),
		with(edifactOrder("ACME", "WEB2", 3, "UNREACHED")),
		with(edifactOrder("ACME", "NOBODY", 4, "NOROUTE")),
		with(edifactOrder("BETA", "GLOBEX", 5, "ANOTHER")),
		bytes.Replace(with(edifactOrder("ACME", "GLOBEX", 6, "COUNT")), []byte("UNT+9+"), []byte("UNT+7+"), 1),
		with(edifactOrder("ACME", "GLOBEX", 7, "CUT"))[:190],
		[]byte("garbage " + mark),
		ubl("", "XML", "<cbc:Note>"+mark+"</cbc:Note><cbc:Note>&"+mark+";</cbc:Note>"),
		ubl("<!DOCTYPE x [<!ENTITY a \""+mark+"\">]>", "DTD", ""),
		with(edifactOrder("GAMMA", "GLOBEX", 8, "NOT-GAMMA")),
	} {
		h.Send(hubtest.Message{From: "ACME", Payload: p}).Positive(t)
	}
	h.Send(hubtest.Message{From: "ACME", Payload: good, Signer: h.Identity("STRANGER")}).Disposition(t, true, "processed/error: authentication-failed")
	h.Send(hubtest.Message{From: "ACME", Payload: good, Unencrypted: true}).Disposition(t, true, "processed/error: insufficient-message-security")
	plain := h.Message(hubtest.Message{From: "BETA", Payload: good, Unencrypted: true})
	plain.Body = plain.Body[:len(plain.Body)/3]
	h.Post(plain)
	plain = h.Message(hubtest.Message{From: "BETA", Payload: good, Unsigned: true, Unencrypted: true})
	plain.Header["AS2-From"] = []string{"NOBODY"}
	h.Post(plain)
	h.Send(hubtest.Message{From: "BETA", Payload: with(edifactOrder("BETA", "GLOBEX", 9, "PANICS"))}).Positive(t)
	h.Send(hubtest.Message{From: "GAMMA", Payload: with(edifactOrder("GAMMA", "GLOBEX", 10, "BOUNCES"))}).Positive(t)
	h.Settle()
	if holding(h, mark) == 0 {
		t.Fatal("nothing was delivered")
	}
}

// spoilRecords has the hub read records that are broken around their secrets; it keeps the old
// ones and says why.
func spoilRecords(h *hubtest.Hub, records string, secrets canaries) []string {
	var out []string
	hmac := secrets["hmac key"]
	for from, to := range map[string]string{
		`hmac_key: "` + hmac + `"`:          `hmac_key: ["` + hmac + `"]`,
		`hmac_key: "` + hmac:                `hmac_kay: "` + hmac,
		`hmac_key_file: web2.key`:           `hmac_key_file: web2.key, hmac_key: "` + hmac + `"`,
		`"http://127.0.0.1:1/http/web"`:     `"http://user:` + hmac + `@127.0.0.1:1/"`,
		`HUB.key}]`:                         `web2.key}]`,
		`cert: HUB.pem`:                     `cert: HUB.key`,
		`key: HUB.key`:                      `key: ACME.key`,
		`identifiers: ["edifact:ZZ:WEB2"]}`: `identifiers: ["edifact:ZZ:WEB2"]`,
	} {
		h.WriteRecords(strings.Replace(records, from, to, 1))
		if err := h.Reload(context.Background()); err != nil {
			out = append(out, fmt.Sprintf("%v %+v", err, err))
		}
	}
	h.WriteRecords(records)
	return out
}

// answer of the API to be looked at.
type answer struct {
	what    string
	payload bool // this one may show what partners wrote
	body    []byte
}

// walk calls every route of the API in each role, with the id of every object where it takes
// one, and with bodies that it refuses.
func walk(t *testing.T, h *hubtest.Hub, roles map[string]*hubtest.API) []answer {
	t.Helper()
	sp, err := spool.New(t.TempDir(), spool.Options{MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	// A handler of the same kind as the hub's own, for its list of routes.
	handler, err := admin.New(admin.Options{Pipeline: h.Pipeline(), Store: h.Store(), Registry: h.Registry(), Spool: sp})
	if err != nil {
		t.Fatal(err)
	}
	routes, ok := handler.(chi.Routes)
	if !ok {
		t.Fatal("the API does not tell its routes")
	}
	ids := map[string][]string{}
	for _, kind := range []string{"transmissions", "interchanges", "messages", "deliveries", "deadletters"} {
		for _, o := range roles["admin"].List(kind) {
			ids[kind] = append(ids[kind], o.Text("id"))
		}
		if len(ids[kind]) == 0 {
			t.Fatalf("no %s to look at", kind)
		}
	}
	var out []answer
	call := func(role, method, path string, in any) {
		r := roles[role].Call(method, path, in)
		head, err := json.Marshal(r.Header)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, answer{
			what: role + " " + method + " " + path, payload: strings.Contains(path, "/payload") && (role == "operator" || role == "admin"),
			body: append(append(head, '\n'), r.Body...),
		})
	}
	one := func(method, route string) {
		paths := []string{route}
		switch {
		case strings.Contains(route, "{id}"):
			kind := strings.Split(route, "/")[2]
			paths = nil
			for _, id := range append(slices.Clone(ids[kind]), "nothing", "0197f0f0-0000-7000-8000-000000000000") {
				paths = append(paths, strings.Replace(route, "{id}", id, 1))
			}
			if method != http.MethodGet {
				paths = paths[max(0, len(paths)-3):]
			}
		case strings.Contains(route, "{stage}"):
			paths = []string{strings.Replace(route, "{stage}", "parser", 1)}
		}
		for _, p := range paths {
			for _, role := range []string{"nobody", "stranger", "viewer", "operator", "admin"} {
				if method == http.MethodGet {
					call(role, method, p, nil)
					if strings.HasSuffix(p, "/payload") {
						call(role, method, p+"?form=wire", nil)
					}
					continue
				}
				for _, in := range []any{nil, []byte("{"), map[string]any{}, map[string]any{"nothing": 1}} {
					call(role, method, p, in)
				}
			}
		}
	}
	n := 0
	err = chi.Walk(routes, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		n++
		one(method, route)
		return nil
	})
	if err != nil || n < 20 {
		t.Fatalf("%d routes, %v", n, err)
	}
	call("admin", http.MethodGet, "/v1/nothing", nil)
	call("viewer", http.MethodGet, "/v1/messages?nothing=1", nil)
	return out
}
