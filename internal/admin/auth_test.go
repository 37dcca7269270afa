package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/edihub/edihub/internal/store/sqlite"
)

const someID = "01900000-0000-7000-8000-000000000001"

// needs says which role each route needs. A route that is missing here fails the test, so that
// nobody opens one by accident.
func needs() map[string]Role {
	m := map[string]Role{
		"GET /healthz": Public, "GET /readyz": Public, "GET /": Public,
		"GET /metrics":   Viewer,
		"GET /v1/stages": Viewer, "PATCH /v1/stages/{stage}": Operator, "GET /v1/nodes": Viewer,
		"POST /v1/messages":   Operator,
		"GET /v1/deadletters": Viewer, "GET /v1/deadletters/{id}": Viewer,
		"POST /v1/deadletters/replay": Operator, "POST /v1/deadletters/{id}/replay": Operator, "POST /v1/deadletters/{id}/discard": Operator,
		"POST /v1/tokens": Admin, "DELETE /v1/tokens/{id}": Admin, "GET /v1/audit": Admin,
	}
	for _, o := range []string{"transmissions", "interchanges", "messages", "deliveries"} {
		m["GET /v1/"+o] = Viewer
		m["GET /v1/"+o+"/{id}"] = Viewer
		m["GET /v1/"+o+"/{id}/events"] = Viewer
		m["GET /v1/"+o+"/{id}/payload"] = Operator
	}
	return m
}

type walked struct{ method, pattern, path string }

func (r *rig) walk() []walked {
	r.t.Helper()
	var out []walked
	err := chi.Walk(r.api.router, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		path := strings.NewReplacer("{id}", someID, "{stage}", "parser").Replace(pattern)
		out = append(out, walked{method, pattern, path})
		return nil
	})
	check(r.t, err)
	return out
}

func TestRolesAndRoutes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.api.probe.wait = patience
	want := needs()
	seen := 0
	for _, w := range r.walk() {
		need, ok := want[w.method+" "+w.pattern]
		if !ok {
			t.Errorf("%s %s is not in the table of this test", w.method, w.pattern)
			continue
		}
		seen++
		bad := map[string]string{"none": "", "short": "abc", "unknown": newToken(), "shape": strings.Repeat("!", tokenLength)}
		for name, token := range bad {
			a := r.ask(token, w.method, w.path, nil)
			if need == Public {
				if w.pattern != "/" && a.status != http.StatusOK {
					t.Errorf("%s %s with token %s: %d, want 200", w.method, w.path, name, a.status)
				}
				continue
			}
			a.problem(t, http.StatusUnauthorized, "UNAUTHORIZED")
			if a.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s: no WWW-Authenticate", w.method, w.path)
			}
		}
		for _, have := range []Role{Viewer, Operator, Admin} {
			a := r.do(have, w.method, w.path, "")
			if have < need {
				a.problem(t, http.StatusForbidden, "FORBIDDEN")
			} else if a.status == http.StatusUnauthorized || a.status == http.StatusForbidden || a.status >= 500 {
				t.Errorf("%s %s as %s: %d %s", w.method, w.path, have, a.status, a.body)
			}
		}
	}
	if seen != len(want) {
		t.Errorf("%d routes, the table has %d", seen, len(want))
	}
}

func TestUnknownPathsAreDeniedFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, path := range []string{"/v1/secret", "/v2", "/admin.token", "/v1/stages/"} {
		r.do(Public, "GET", path, "").problem(t, http.StatusUnauthorized, "UNAUTHORIZED")
		r.do(Viewer, "GET", path, "").problem(t, http.StatusNotFound, "NOT_FOUND")
	}
	r.do(Public, "PUT", "/v1/stages", "").problem(t, http.StatusUnauthorized, "UNAUTHORIZED")
	r.do(Viewer, "PUT", "/v1/stages", "").problem(t, http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED")
}

func TestTokenIsTakenFromTheHeaderOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	tok := r.tokens[Admin]
	r.ask("", "GET", "/v1/stages?token="+tok+"&access_token="+tok, nil).problem(t, http.StatusUnauthorized, "UNAUTHORIZED")
	r.ask("", "GET", "/v1/stages", nil, "Cookie", "token="+tok).problem(t, http.StatusUnauthorized, "UNAUTHORIZED")
	r.ask("", "GET", "/v1/stages", nil, "Authorization", "Basic "+tok).problem(t, http.StatusUnauthorized, "UNAUTHORIZED")
	if a := r.ask("", "GET", "/v1/stages", nil, "Authorization", "bearer "+tok); a.status != http.StatusOK {
		t.Errorf("the scheme is not case sensitive (RFC 9110 §11.1): %d", a.status)
	}
}

func TestTokensAreMadeAndRevoked(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	a := r.do(Admin, "POST", "/v1/tokens", `{"role":"operator","name":"night shift"}`)
	if a.status != http.StatusCreated {
		t.Fatalf("%d %s", a.status, a.body)
	}
	var made tokenView
	a.json(t, &made)
	if !wellFormed(made.Token) || made.Role != "operator" || made.By == "" {
		t.Fatalf("token %+v", made)
	}
	if got := r.ask(made.Token, "GET", "/v1/stages", nil); got.status != http.StatusOK {
		t.Fatalf("the new token is refused: %d", got.status)
	}
	r.ask(made.Token, "POST", "/v1/tokens", strings.NewReader(`{"role":"admin"}`)).problem(t, http.StatusForbidden, "FORBIDDEN")
	for range 2 { // a second time changes nothing
		a := r.do(Admin, "DELETE", "/v1/tokens/"+made.ID, "")
		var v tokenView
		a.json(t, &v)
		if a.status != http.StatusOK || !v.Revoked || v.Token != "" {
			t.Fatalf("revoke: %d %s", a.status, a.body)
		}
	}
	r.ask(made.Token, "GET", "/v1/stages", nil).problem(t, http.StatusUnauthorized, "UNAUTHORIZED")
	r.do(Admin, "DELETE", "/v1/tokens/0011223344556677", "").problem(t, http.StatusNotFound, "NOT_FOUND")
	r.do(Admin, "POST", "/v1/tokens", `{"role":"root"}`).problem(t, http.StatusBadRequest, "ROLE_UNKNOWN")
	r.do(Admin, "POST", "/v1/tokens", `{"role":"viewer","rôle":1}`).problem(t, http.StatusBadRequest, "BODY_INVALID")

	var audit page[eventView]
	r.do(Admin, "GET", "/v1/audit", "").json(t, &audit)
	if len(audit.Items) != 2 || audit.Items[0].Event != "token_created" || audit.Items[1].Event != "token_revoked" || audit.Items[0].Who == "" {
		t.Errorf("audit %+v", audit.Items)
	}
}

// TestSecretsStayInside reads everything that can be read and looks for what must not be there.
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.api.probe.wait = patience
	tr := r.submit(orders("S1", "ORDERS"))
	m := r.message(tr, "delivered")
	r.submit(orders("S2", "INVOIC"))
	d := r.dead(1)[0]
	secrets := []string{"S3CRET-HMAC-KEY"}
	for _, tok := range r.tokens {
		sum := sha256.Sum256([]byte(tok))
		secrets = append(secrets, tok, hex.EncodeToString(sum[:]))
	}
	ids := map[string]string{
		"transmissions": tr, "interchanges": m.Interchange.String(), "messages": m.ID.String(), "deliveries": m.Delivery.String(), "deadletters": d.ID,
	}
	read := 0
	for _, w := range r.walk() {
		if w.method != http.MethodGet || strings.HasSuffix(w.pattern, "/payload") {
			continue
		}
		path := w.path
		for name, id := range ids {
			if strings.HasPrefix(path, "/v1/"+name+"/") {
				path = strings.Replace(path, someID, id, 1)
			}
		}
		a := r.do(Admin, "GET", path, "")
		if a.status != http.StatusOK {
			t.Errorf("GET %s: %d %s", path, a.status, a.body)
		}
		read++
		for _, s := range secrets {
			if bytes.Contains(a.body, []byte(s)) {
				t.Errorf("GET %s shows a secret", path)
			}
		}
		if strings.HasPrefix(path, "/v1/") && strings.Contains(string(a.body), "BGM+220") {
			t.Errorf("GET %s shows payload", path)
		}
	}
	if read < 15 {
		t.Errorf("%d routes were read", read)
	}
}

func TestEnsureToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx := context.Background()
	st, err := sqlite.Open(ctx, sqlite.Options{Dir: dir, MinFree: -1})
	check(t, err)
	defer st.Close() //nolint:errcheck // The test is over.
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	path, err := EnsureToken(ctx, st, dir, now)
	check(t, err)
	if path != filepath.Join(dir, TokenFile) {
		t.Errorf("path %s", path)
	}
	first := readFile(t, path)
	mode := func() os.FileMode {
		info, err := os.Stat(path)
		check(t, err)
		return info.Mode().Perm()
	}
	if !wellFormed(first) || mode() != 0o600 {
		t.Errorf("token %q mode %o", first, mode())
	}
	saved := describeToken(first, Admin, "", "", now)
	have, err := loadToken(ctx, st, saved.ID)
	check(t, err)
	if have == nil || have.SHA256 != saved.SHA256 || have.Role != "admin" {
		t.Fatalf("saved %+v", have)
	}
	raw, err := st.GetSetting(ctx, settingName+saved.ID)
	check(t, err)
	if bytes.Contains(raw, []byte(first)) {
		t.Error("the store holds the token itself")
	}

	check(t, os.Chmod(path, 0o644))
	_, err = EnsureToken(ctx, st, dir, now)
	check(t, err)
	if second := readFile(t, path); second != first || mode() != 0o600 {
		t.Errorf("the second start changed the token, or left it readable (%o)", mode())
	}

	have.Revoked = true
	check(t, saveToken(ctx, st, have))
	_, err = EnsureToken(ctx, st, dir, now)
	check(t, err)
	if third := readFile(t, path); third == first || !wellFormed(third) {
		t.Error("a revoked token stayed in the file")
	}

	check(t, os.WriteFile(path, []byte("rubbish"), 0o600))
	if _, err := EnsureToken(ctx, st, dir, now); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("a file that holds no token: %v", err)
	}
}

func TestParseRole(t *testing.T) {
	t.Parallel()
	for _, r := range []Role{Viewer, Operator, Admin} {
		if got, ok := ParseRole(r.String()); !ok || got != r {
			t.Errorf("%s became %s %t", r, got, ok)
		}
	}
	for _, s := range []string{"", "public", "root", "Admin"} {
		if r, ok := ParseRole(s); ok {
			t.Errorf("%q is role %s", s, r)
		}
	}
}
