package partner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/config"
)

// TestGuidelines: agreements share the guideline that they name, its content is part of the
// registry's hash, and its problems are told with their own file and line.
func TestGuidelines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "g.yaml")
	guideline := "guideline: acme\nstandard: edifact\nmessages:\n  - type: ORDERS\n    segments: [{path: ALI, forbid: true}]\n"
	save := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(guideline)
	records := `own: [{id: hub, identifiers: ["edifact:ZZ:HUB"]}]
defaults: {validate: {guideline: g.yaml, level: guideline}}
agreements:
  - {match: {document: "edifact:ORDERS"}}
  - {match: {document: "edifact:INVOIC"}, validate: {guideline: g.yaml}}
  - {match: {document: "edifact:DESADV"}, validate: {level: tables, guideline: ""}}
`
	load := func() (*Registry, error) { return Parse([]byte(records), dir, LoadOptions{}) }
	r, err := load()
	if err != nil {
		t.Fatal(err)
	}
	a := r.Agreements()
	if g := a[0].Validate.Rulebook; g == nil || g.Name != "acme" || a[1].Validate.Rulebook != g || a[2].Validate.Rulebook != nil {
		t.Errorf("%+v", a)
	}
	if a[0].Validate.Guideline != "g.yaml" || a[2].Validate.Guideline != "" {
		t.Errorf("names %q and %q", a[0].Validate.Guideline, a[2].Validate.Guideline)
	}
	save(guideline + "      - {path: IMD, forbid: true}\n")
	if _, err := load(); err == nil {
		t.Error("a broken guideline was taken")
	}
	save(strings.Replace(guideline, "ALI", "IMD", 1))
	other, err := load()
	if err != nil || other.Hash() == r.Hash() {
		t.Errorf("the hash does not show the change: %v", err)
	}
	save(strings.Replace(guideline, "ALI", "XXX", 1))
	_, err = load()
	var ps config.Problems
	if !errors.As(err, &ps) || len(ps) != 1 || ps[0].File != file || ps[0].Line != 5 || ps[0].Key != "messages[0].segments[0].path" {
		t.Errorf("%v", err)
	}
}
