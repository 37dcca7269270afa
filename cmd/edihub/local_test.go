package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/store/sqlite"
)

func TestKeygen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "ourco")
	args := []string{"keygen", "--name", "OURCO", "--out", out, "--from", "2026-01-01", "--until", "2027-12-31", "--format", "json"}
	r := edihub(nil, "", args...)
	r.want(t, 0)
	res := objects[keygenResult](t, r)[0]
	pair, err := tls.LoadX509KeyPair(res.Certificate, res.Key)
	ok(t, err)
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	ok(t, err)
	if leaf.Subject.CommonName != "OURCO" || leaf.NotBefore.Format(time.DateOnly) != "2026-01-01" || leaf.NotAfter.Format(time.DateTime) != "2027-12-31 23:59:59" {
		t.Errorf("certificate %s %s %s", leaf.Subject, leaf.NotBefore, leaf.NotAfter)
	}
	st, err := os.Stat(res.Key)
	ok(t, err)
	if st.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %o", st.Mode().Perm())
	}
	before, err := os.ReadFile(res.Key)
	ok(t, err)
	edihub(nil, "", args...).want(t, 2, "exists already")
	ok(t, os.Remove(res.Certificate))
	edihub(nil, "", args...).want(t, 2, "exists already")
	after, err := os.ReadFile(res.Key)
	ok(t, err)
	if string(before) != string(after) {
		t.Error("the key was overwritten")
	}
	if strings.Contains(r.stdout+r.stderr, "PRIVATE KEY") {
		t.Error("the key was printed")
	}
	for _, bad := range [][]string{
		{"keygen"}, {"keygen", "--name", "X", "--bits", "512", "--out", filepath.Join(dir, "x")},
		{"keygen", "--name", "X", "--from", "2026-02-30"}, {"keygen", "--name", "X", "--from", "2026-02-02", "--until", "2026-01-01"},
		{"keygen", "--name", "X", "--out", filepath.Join(dir, "no", "folder")},
	} {
		edihub(nil, "", bad...).want(t, 2)
	}
}

// checkDir is a folder with a configuration and partner records.
func checkDir(t *testing.T, partners string) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "partners.yaml"), partners)
	file = filepath.Join(dir, "edihub.yaml")
	write(t, file, "data: ./data\nas2: {listen: \"127.0.0.1:0\", public_url: \"https://edi.example.com/as2\"}\nadmin: {listen: \"127.0.0.1:0\"}\nlimits: {min_free_disk: 0}\n"+
		"postgres: {url: \"postgres://u:hunter2@127.0.0.1/db\"}\n")
	return dir, file
}

func TestCheck(t *testing.T) {
	t.Parallel()
	dir, file := checkDir(t, records)
	r := edihub([]string{"EDIHUB_LEASE=30s"}, "", "check", "--config", file, "--log-level", "debug")
	r.want(t, 0, "SETTING", "edihub.yaml:1", "env EDIHUB_LEASE", "flag --log-level", "default", "1 own, 2 connections, 2 partners, 1 agreements, 1 routes", "0 problems")
	if strings.Contains(r.stdout+r.stderr, "hunter2") {
		t.Error("check shows a password")
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !os.IsNotExist(err) {
		t.Errorf("check made the data folder: %v", err)
	}
	kinds := map[string]int{}
	for line := range strings.Lines(edihub(nil, "", "check", "--config", file, "--format", "json").stdout) {
		var v struct {
			Kind   string `json:"kind"`
			Key    string `json:"key"`
			Status string `json:"status"`
		}
		ok(t, json.Unmarshal([]byte(line), &v))
		kinds[v.Kind]++
		if (v.Kind == "setting") == (v.Key == "") || (v.Kind == "check") == (v.Status == "") {
			t.Errorf("line %s", line)
		}
	}
	if kinds["setting"] < 40 || kinds["check"] < 5 {
		t.Errorf("lines %v", kinds)
	}
	if q := edihub(nil, "", "check", "--config", file, "--quiet"); strings.Contains(q.stdout, "SETTING") {
		t.Error("--quiet prints settings")
	}
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	_, file := checkDir(t, records)
	edihub(nil, "", "check", "--config", file, "--as2-listen", "192.0.2.1:8080").want(t, 1, "PROBLEM", "as2.listen")
	edihub(nil, "", "check", "--config", file, "--limits-min-free-disk", "1000000GiB").want(t, 1, "PROBLEM", "make room")
	edihub(nil, "", "check", "--config", file, "--admin-listen", "0.0.0.0:8081").want(t, 2, "admin.listen", "127.0.0.1")
	edihub(nil, "", "check", "--config", file+".none").want(t, 2, "edihub.yaml.none")
	edihub([]string{"EDIHUB_AS2_LISTN=x"}, "", "check", "--config", file).want(t, 0, "WARNING", "EDIHUB_AS2_LISTEN")

	dir, file := checkDir(t, strings.Replace(records, "partners:", "partnerz:", 1))
	edihub(nil, "", "check", "--config", file).want(t, 2, filepath.Join(dir, "partners.yaml")+":7", `"partners"`)
	write(t, file, "dataa: x\n")
	edihub(nil, "", "check", "--config", file).want(t, 2, "edihub.yaml:1", `"data"`)

	dir, file = checkDir(t, records)
	ok(t, os.Remove(filepath.Join(dir, "partners.yaml")))
	edihub(nil, "", "check", "--config", file).want(t, 0, "WARNING", "knows nobody")
	edihub(nil, "", "check", "--config", file, "--partners-file", filepath.Join(dir, "partners.yaml")).want(t, 2, "partners.yaml")

	// What an endpoint could not use is refused when it is read, with line and remedy.
	for connection, words := range map[string][]string{
		`{id: x, directory: {out: out, name: "{sendr}.edi"}}`: {"{sendr}", "did you mean {sender}?", "{control_ref}"},
		`{id: x, directory: {out: out, name: "../{id}.edi"}}`: {"no folders"},
		`{id: x, http: {url: "erp.example/edi"}}`:             {"scheme", "write for example https://"},
		`{id: x, http: {url: "https:///edi"}}`:                {"names no host", "write for example https://"},
		`{id: x, http: {}}`:                                   {"the URL is missing", "add url: https://"},
	} {
		at, bad := checkDir(t, strings.Replace(records, "connections:\n", "connections:\n  - "+connection+"\n", 1))
		edihub(nil, "", "check", "--config", bad).want(t, 2, append(words, filepath.Join(at, "partners.yaml")+":5")...)
	}

	write(t, filepath.Join(dir, "data"), "a file")
	edihub(nil, "", "check", "--config", file).want(t, 1, "not a folder")
}

func TestCheckOfARunningHub(t *testing.T) {
	t.Parallel()
	h := startHub(t)
	h.run("check", "--partners-file", filepath.Join(h.dir, "partners.yaml"), "--limits-min-free-disk", "0", "--as2-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0").
		want(t, 0, "schema version "+latest, "may be written")
	h.run("migrate", "--dry-run").want(t, 0, "nothing to do")
	h.run("migrate", "--to", "0", "--allow-data-loss").want(t, 1, "in use")
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	edihub(nil, "", "migrate", "--data", data, "--dry-run").want(t, 0, "0 would become "+latest)
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("a dry run made the data folder: %v", err)
	}
	r := edihub(nil, "", "migrate", "--data", data, "--format", "json")
	r.want(t, 0)
	if got := objects[migrateResult](t, r)[0]; got.From != 0 || got.To != sqlite.SchemaVersion {
		t.Errorf("result %+v", got)
	}
	edihub(nil, "", "migrate", "--data", data).want(t, 0, "nothing to do")
	edihub(nil, "", "migrate", "--data", data, "--to", "0").want(t, 2, "--allow-data-loss")
	edihub(nil, "", "migrate", "--data", data, "--to", "0", "--allow-data-loss").want(t, 0, latest+" became 0")
	edihub(nil, "", "migrate", "--data", data, "--to", "99").want(t, 2)
}
