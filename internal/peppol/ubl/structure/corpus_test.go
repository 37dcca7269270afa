package structure

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/peppol/ubl"
)

// TestCorpus compares the verdict with that of the UBL 2.1 schemas over the conformance corpus.
func TestCorpus(t *testing.T) {
	t.Parallel()
	shared := os.Getenv("EDIHUB_SHARED")
	if shared == "" {
		t.Skip("EDIHUB_SHARED names no folder with the conformance corpus")
	}
	root := filepath.Join(shared, "conformance/en16931")
	f, err := os.Open(filepath.Join(root, "expected.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var p ubl.Parser
	cases, wrong := 0, 0
	for s := bufio.NewScanner(f); s.Scan(); {
		var c struct {
			File     string
			Syntax   string
			XSDValid bool `json:"xsd_valid"`
		}
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(c.Syntax, "ubl") {
			continue
		}
		doc, err := os.ReadFile(filepath.Join(root, c.File))
		if err != nil {
			t.Fatal(err)
		}
		tree, err := p.Parse(doc, ubl.Limits{})
		if err != nil {
			t.Errorf("%s: %v", c.File, err)
			continue
		}
		cases++
		var found []string
		Check(tree, func(r *Rule, n ubl.Node, actual, expected string) {
			found = append(found, r.ID+" "+tree.Path(n)+" "+actual+" "+expected)
		})
		// What judged the corpus demands a unit at every quantity; UBL 2.1 leaves it optional.
		if !c.XSDValid && len(found) == 0 && quantityWithoutUnit(tree) {
			continue
		}
		if (len(found) == 0) != c.XSDValid {
			if wrong++; wrong < 40 {
				t.Errorf("%s: valid by the schema: %v; found %.300q", c.File, c.XSDValid, found)
			}
		}
	}
	if cases < 3000 {
		t.Errorf("only %d cases", cases)
	}
	t.Logf("%d cases, %d wrong", cases, wrong)
}

func quantityWithoutUnit(t *ubl.Tree) bool {
	for n := ubl.Root; n < t.Len(); n++ {
		if _, ok := t.Attr(n, ubl.UnitCode); !ok && ubl.TypeOf(t.Kind(n)) == ubl.QuantityType {
			return true
		}
	}
	return false
}
