package peppol

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

// TestCorpus compares the verdict with that of the published rules, document by document. The
// corpus is not part of the repository.
func TestCorpus(t *testing.T) {
	t.Parallel()
	shared := os.Getenv("EDIHUB_SHARED")
	if shared == "" {
		t.Skip("EDIHUB_SHARED does not name a folder with conformance/en16931/expected.jsonl")
	}
	dir := filepath.Join(shared, "conformance", "en16931")
	index, err := os.ReadFile(filepath.Join(dir, "expected.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	cases, exact := 0, 0
	missing, extra := map[string]int{}, map[string]int{}
	example := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(index))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			File, Syntax    string
			EN16931, Peppol *[][2]string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(c.Syntax, "ubl") {
			continue
		}
		cases++
		doc, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(c.File)))
		if err != nil {
			t.Fatal(err)
		}
		v, err := Validate(doc, Options{Sets: Sets(), Exactly: true})
		if err != nil {
			t.Errorf("%s: %v", c.File, err)
			continue
		}
		same := true
		for set, want := range map[string]*[][2]string{"en16931": c.EN16931, "peppol": c.Peppol} {
			if want == nil {
				continue
			}
			w, h := map[string]bool{}, map[string]bool{}
			for _, x := range *want {
				w[x[0]+" "+x[1]] = true
			}
			for _, f := range v.Findings {
				if f.Ruleset == set {
					h[f.Rule+" "+string(f.Severity)] = true
				}
			}
			for x := range w {
				if !h[x] {
					missing[x]++
					example["missing "+x] = c.File
					same = false
				}
			}
			for x := range h {
				if !w[x] {
					extra[x]++
					example["extra "+x] = c.File
					same = false
				}
			}
		}
		if same {
			exact++
		}
	}
	for name, m := range map[string]map[string]int{"missing": missing, "extra": extra} {
		var ids []string
		for id := range m {
			ids = append(ids, id)
		}
		sort.Slice(ids, func(i, j int) bool { return m[ids[i]] > m[ids[j]] })
		for _, id := range ids {
			t.Errorf("%-7s %-35s %5d, as in %s", name, id, m[id], example[name+" "+id])
		}
	}
	t.Logf("%d of %d documents have the verdict of the published rules", exact, cases)
	if cases == 0 {
		t.Error("the index names no documents")
	}
}
