package syntax

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/peppol/ubl"
)

// TestCorpus compares the verdict with that of the published rules over the conformance corpus.
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
	ours := map[string]bool{}
	for _, r := range Rules() {
		ours[r.ID] = true
	}
	var p ubl.Parser
	cases, wrong := 0, 0
	for s := bufio.NewScanner(f); s.Scan(); {
		var c struct {
			File    string
			Syntax  string
			EN16931 [][2]string
		}
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(c.Syntax, "ubl") || c.EN16931 == nil {
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
		got := map[string]bool{}
		Check(tree, func(r *Rule, _ ubl.Node, _ string) { got[r.ID+" "+string(r.Severity)] = true })
		var missing, extra []string
		for _, w := range c.EN16931 {
			if ours[w[0]] && !got[w[0]+" "+w[1]] {
				missing = append(missing, w[0])
			}
			delete(got, w[0]+" "+w[1])
		}
		for g := range got {
			extra = append(extra, g)
		}
		sort.Strings(extra)
		if len(missing)+len(extra) > 0 {
			if wrong++; wrong < 30 {
				t.Errorf("%s: missing %v, too many %v", c.File, missing, extra)
			}
		}
	}
	if cases < 3000 {
		t.Errorf("only %d cases", cases)
	}
	t.Logf("%d cases, %d wrong", cases, wrong)
}
