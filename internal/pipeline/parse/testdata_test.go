package parse_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// row of the table in testdata/README.md.
type row struct{ verdict, usedBy string }

func readme(t *testing.T, root string) map[string]row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "testdata", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]row{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || !strings.Contains(cells[1], "/") {
			continue
		}
		out[strings.Trim(cells[1], " `")] = row{verdict: strings.Trim(cells[3], " `"), usedBy: strings.Trim(cells[4], " `")}
	}
	return out
}

// TestTestdata holds every file of testdata against its line in the README: what the parser says
// of it, and that the test named there exists and names the file.
func TestTestdata(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	listed := readme(t, root)
	used := regexp.MustCompile(`^(\S+_test\.go) (Test\w+)$`)
	err := filepath.WalkDir(filepath.Join(root, "testdata"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "README.md" {
			return err
		}
		name, err := filepath.Rel(filepath.Join(root, "testdata"), path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		want, ok := listed[name]
		delete(listed, name)
		if !ok {
			t.Errorf("testdata/README.md does not list %s", name)
			return nil
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		d := newDesk(t, "", "  - {match: {document: opaque, from: acme}, to: erp, envelope: none}\n").run(string(body), 0, 0)
		ic := d.only()
		got := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %d of %d", ic.Envelope.Standard, ic.State, ic.Code, len(d.emitted), ic.Total)), " ")
		if got != want.verdict {
			t.Errorf("%s: %q, the README says %q; findings %v", name, got, want.verdict, ic.Findings)
		}
		m := used.FindStringSubmatch(want.usedBy)
		if m == nil {
			t.Errorf("%s: %q does not name a test", name, want.usedBy)
			return nil
		}
		code, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m[1])))
		if err != nil {
			return err
		}
		if !strings.Contains(string(code), "func "+m[2]+"(") || (m[2] != "TestTestdata" && !strings.Contains(string(code), name)) {
			t.Errorf("%s: %s does not use it", name, want.usedBy)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range listed {
		t.Errorf("testdata/README.md lists %s, which is not there", name)
	}
}
