package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write puts a file into a fresh folder and returns its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, yaml string, env ...string) *Config {
	t.Helper()
	c, _, err := Load(Options{File: write(t, "edihub.yaml", yaml), Env: env})
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

func setting(t *testing.T, c *Config, key string) Setting {
	t.Helper()
	for _, s := range c.Effective() {
		if s.Key == key {
			return s
		}
	}
	t.Fatalf("Effective has no key %s", key)
	return Setting{}
}

func mustContain(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("missing %q in:\n%s", p, text)
		}
	}
}
