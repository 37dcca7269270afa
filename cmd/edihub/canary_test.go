package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/config"
)

// canary stands in every secret and must come out of nothing. It begins with digits, because what
// stands behind a colon in a URL may be taken for a port.
const canary = "31415C4N4RY"

func noCanary(t *testing.T, what string, r result) {
	t.Helper()
	for _, mark := range []string{"C4N4RY", "31415"} {
		if strings.Contains(r.stdout+r.stderr, mark) {
			t.Errorf("%s shows the secret:\nstdout: %s\nstderr: %s", what, r.stdout, r.stderr)
		}
	}
}

// secretValues are what operators write into a setting that holds a URL with a password, well and
// badly.
func secretValues(scheme string) map[string]string {
	return map[string]string{
		"good":               scheme + "://user:" + canary + "@127.0.0.1:1/db",
		"away from loopback": scheme + "://user:" + canary + "@db.example.com:1/db",
		"good in a query":    scheme + "://127.0.0.1:1/db?password=" + canary,
		"no URL":             canary,
		"another scheme":     "mysql://user:" + canary + "@127.0.0.1/db",
		"bad port":           scheme + "://user:" + canary + "@127.0.0.1:x/db",
		"bad escape":         scheme + "://user:" + canary + "%zz@127.0.0.1/db",
		"a slash inside":     scheme + "://user:31415/C4N4RY@db.example.com/db",
		"a question mark":    scheme + "://user:31415?C4N4RY@db.example.com/db",
		"a hash":             scheme + "://user:31415#C4N4RY@db.example.com/db",
		"two at signs":       scheme + "://user:" + canary + "@" + canary + "@127.0.0.1:1/db",
		"a line end":         scheme + "://user:" + canary + "\t@127.0.0.1/db",
		"no host":            scheme + "://user:" + canary + "@/db",
		"no slashes":         scheme + ":user:" + canary + "@127.0.0.1/db",
	}
}

// TestSettingsShowNoSecret puts a canary into each setting that is a secret, by each way that it
// can come, well and badly written: it is in nothing that check and serve print. A setting that
// becomes a secret later is covered by itself.
func TestSettingsShowNoSecret(t *testing.T) {
	t.Parallel()
	secrets := 0
	for _, k := range config.Keys() {
		if !k.Secret {
			continue
		}
		secrets++
		scheme := "postgres"
		if strings.HasPrefix(k.Name, "rabbitmq") {
			scheme = "amqp"
		}
		dir := t.TempDir()
		for name, value := range secretValues(scheme) {
			file := filepath.Join(dir, "secret")
			writeTest(t, file, value)
			block, key, _ := strings.Cut(k.Name, ".")
			yaml := filepath.Join(dir, "edihub.yaml")
			base := []string{"--data", filepath.Join(dir, "data"), "--profile", "full", "--as2-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}
			for way, in := range map[string]struct {
				text      string
				env, args []string
			}{
				"file":       {text: fmt.Sprintf("%s: {%s: %q}\n", block, key, value)},
				"file, list": {text: fmt.Sprintf("%s: {%s: [%q]}\n", block, key, value)},
				"file, map":  {text: fmt.Sprintf("%s: {%s: {%q: %q}}\n", block, key, value, value)},
				"file, cut":  {text: fmt.Sprintf("%s: {%s: %q\n", block, key, value)},
				"file, tab":  {text: fmt.Sprintf("%s:\n  %s: %s: %s\n", block, key, value, value)},
				"file, name": {text: fmt.Sprintf("%s: {%sx: %q}\n", block, key, value)},
				"file, mask": {text: fmt.Sprintf("%s: {%s: %q, %s_file: secret}\n", block, key, value, key)},
				"file _file": {text: fmt.Sprintf("%s: {%s_file: secret}\n", block, key)},
				"env":        {env: []string{k.Env + "=" + value}},
				"env _FILE":  {env: []string{k.Env + "_FILE=" + file}},
				"flag":       {args: []string{"--" + k.Flag, value}},
				"flag -file": {args: []string{"--" + k.Flag + "-file", file}},
			} {
				args := base
				if in.text != "" {
					writeTest(t, yaml, in.text)
					args = append([]string{"--config", yaml}, base...)
				}
				args = append(args, in.args...)
				commands := [][]string{{"check"}}
				if way == "env" || way == "file" {
					commands = append(commands, []string{"check", "--format", "json"}, []string{"serve", "--log-level", "debug"})
				}
				for _, command := range commands {
					noCanary(t, fmt.Sprintf("%s of %s (%s, %s)", command[0], k.Name, name, way), edihub(in.env, "", append(command, args...)...))
				}
			}
		}
	}
	if secrets < 3 {
		t.Errorf("%d settings are secrets: the test looks at the wrong place", secrets)
	}
}

// TestRecordsShowNoSecret breaks partner records around their secrets, and the keys that they and
// the listeners name.
func TestRecordsShowNoSecret(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"good":             `{url: "https://erp.example/edi", hmac_key: "` + canary + `"}`,
		"good, by file":    `{url: "https://erp.example/edi", hmac_key_file: secret}`,
		"both":             `{url: "https://erp.example/edi", hmac_key: "` + canary + `", hmac_key_file: secret}`,
		"as a list":        `{url: "https://erp.example/edi", hmac_key: ["` + canary + `"]}`,
		"as a block":       `{url: "https://erp.example/edi", hmac_key: {x: "` + canary + `"}}`,
		"misspelt":         `{url: "https://erp.example/edi", hmac_kay: "` + canary + `"}`,
		"cut off":          `{url: "https://erp.example/edi", hmac_key: "` + canary + `"`,
		"password in URL":  `{url: "https://user:` + canary + `@erp.example/edi"}`,
		"slash in it":      `{url: "https://user:31415/C4N4RY@erp.example/edi"}`,
		"large port":       `{url: "https://user:31415926/C4N4RY@erp.example/edi"}`,
		"bad URL":          `{url: "https://user:` + canary + `%zz@erp.example/edi"}`,
		"a scheme of mine": `{url: "ftp://user:` + canary + `@erp.example/edi"}`,
	} {
		dir := t.TempDir()
		writeTest(t, filepath.Join(dir, "secret"), canary)
		writeTest(t, filepath.Join(dir, "partners.yaml"), "own:\n  - {id: hub}\nconnections:\n  - {id: erp, http: "+text+"}\npartners:\n  - {id: erp, connections: [erp]}\n")
		for _, command := range [][]string{{"check"}, {"check", "--format", "json"}} {
			noCanary(t, name, edihub(nil, "", append(command, "--partners-file", filepath.Join(dir, "partners.yaml"), "--data", filepath.Join(dir, "data"), "--admin-listen", "127.0.0.1:0", "--as2-listen", "127.0.0.1:0")...))
		}
	}
	dir := t.TempDir()
	cert := filepath.Join(dir, "hub.pem")
	if r := edihub(nil, "", "keygen", "--name", "HUB", "--out", filepath.Join(dir, "hub")); r.code != exitGood {
		t.Fatalf("keygen: %s", r.stderr)
	}
	for name, key := range map[string]string{
		"not PEM":       canary,
		"not a key":     "-----BEGIN PRIVATE KEY-----\n" + canary + "\n-----END PRIVATE KEY-----\n",
		"not base64":    "-----BEGIN PRIVATE KEY-----\n!" + canary + "!\n-----END PRIVATE KEY-----\n",
		"no end":        "-----BEGIN PRIVATE KEY-----\n" + canary,
		"with a header": "-----BEGIN PRIVATE KEY-----\nProc-Type: " + canary + "\n\nAAAA\n-----END PRIVATE KEY-----\n",
	} {
		writeTest(t, filepath.Join(dir, "bad.key"), key)
		writeTest(t, filepath.Join(dir, "partners.yaml"), "own:\n  - {id: hub, as2: {id: HUB, keys: [{cert: hub.pem, key: bad.key}]}}\n")
		base := []string{"--data", filepath.Join(dir, "data"), "--admin-listen", "127.0.0.1:0", "--as2-listen", "127.0.0.1:0"}
		for _, more := range [][]string{
			{"--partners-file", filepath.Join(dir, "partners.yaml")},
			{"--as2-tls-cert", cert, "--as2-tls-key", filepath.Join(dir, "bad.key")},
			{"--admin-tls-cert", cert, "--admin-tls-key", filepath.Join(dir, "bad.key")},
			{"--admin-tls-cert", filepath.Join(dir, "bad.key"), "--admin-tls-key", filepath.Join(dir, "bad.key")},
			{"--as2-tls-cert", cert, "--as2-tls-key", filepath.Join(dir, "bad.key"), "--as2-tls-client-ca", filepath.Join(dir, "bad.key")},
		} {
			for _, command := range [][]string{{"check"}, {"check", "--format", "json"}, {"serve", "--log-level", "debug"}} {
				r := edihub(nil, "", append(append(command, base...), more...)...)
				if r.code == exitGood {
					t.Errorf("%s: %s takes a bad key", name, command[0])
				}
				noCanary(t, name, r)
			}
		}
	}
}

// TestClientsShowNoSecret gives the commands that talk to a hub a token and a password, and a hub
// that answers badly.
func TestClientsShowNoSecret(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "deadletters"):
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		case strings.Contains(r.URL.Path, "stages"):
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer srv.Close()
	dir := t.TempDir()
	good := canary + strings.Repeat("x", 43-len(canary))
	for name, token := range map[string]string{"short": canary, "good": good, "two lines": canary + "\n" + canary, "control": canary + "\x01", "words": "Bearer " + canary} {
		file := filepath.Join(dir, "token")
		writeTest(t, file, token)
		for _, in := range []struct{ env, args []string }{
			{env: []string{"EDIHUB_TOKEN=" + token}},
			{env: []string{"EDIHUB_TOKEN_FILE=" + file}},
			{args: []string{"--token-file", file}},
		} {
			for _, url := range []string{srv.URL, "http://127.0.0.1:1"} {
				for _, command := range [][]string{{"stage", "list"}, {"message", "list"}, {"dead", "list"}, {"delivery", "list", "--format", "json"}} {
					noCanary(t, name, edihub(in.env, "", append(append(command, "--admin-url", url), in.args...)...))
				}
			}
		}
	}
	for _, url := range []string{
		"http://user:" + canary + "@127.0.0.1:1", "http://user:31415/C4N4RY@127.0.0.1", "http://user:" + canary + "%zz@127.0.0.1", "ftp://user:" + canary + "@127.0.0.1",
	} {
		for _, args := range [][]string{{"stage", "list"}, {"stage", "list", "--help"}, {"stage", "list", "--nothing"}} {
			noCanary(t, "EDIHUB_ADMIN_URL", edihub([]string{"EDIHUB_ADMIN_URL=" + url, "EDIHUB_TOKEN=" + good}, "", args...))
		}
		noCanary(t, "--admin-url", edihub([]string{"EDIHUB_TOKEN=" + good}, "", "stage", "list", "--admin-url", url))
	}
}

func writeTest(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
