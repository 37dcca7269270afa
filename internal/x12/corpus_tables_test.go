package x12

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/tables"
)

// TestCorpusTables checks documents that were walked out of the tables by another program. They
// are not part of the repository. That program fills numbers of type R8 and R9 with letters,
// leaves out C04002, reads the relational notes of segments with composites in another way, and
// makes up HL02; nothing else may be found.
func TestCorpusTables(t *testing.T) {
	t.Parallel()
	shared := os.Getenv("EDIHUB_SHARED")
	if shared == "" {
		t.Skip("EDIHUB_SHARED does not name a folder with conformance/edi/generated")
	}
	files, err := filepath.Glob(filepath.Join(shared, "conformance", "edi", "generated", "*.edi"))
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !Sniff(data) {
			continue
		}
		total++
		for _, f := range checkFile(t, data) {
			switch {
			case f.Rule == edi.RuleElementType && strings.ContainsAny(f.Actual, "ABCDEFGHIJ"),
				f.Rule == edi.RuleComponentMissing && f.DataElement == "127",
				f.Rule == edi.RuleElementCondition && withComposite(f.Segment), f.Rule == edi.RuleElementExclusion && withComposite(f.Segment),
				f.Rule == edi.RuleHLParent:
				continue
			}
			t.Errorf("%s: %+v", filepath.Base(file), f)
		}
	}
	t.Logf("%d files", total)
	if total == 0 {
		t.Error("no file of this standard")
	}
}

// withComposite reports whether a segment of 004010 has a composite.
func withComposite(tag string) bool {
	d, err := library.Directory("004010")
	return err == nil && slices.ContainsFunc(d.Segment(tag).Refs, func(r tables.Ref) bool { return len(r.ID) == 4 && r.ID[0] == 'C' })
}

// checkFile splits a file and checks each message.
func checkFile(t testing.TB, data []byte) []edi.Finding {
	t.Helper()
	var all []edi.Finding
	sp := NewSplitter(bytes.NewReader(data), Limits{})
	for {
		ev, err := sp.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == edi.MessageEnd {
			m := ev.Message
			body := io.NewSectionReader(bytes.NewReader(data), m.Offset, m.Length)
			found, err := Check(t.Context(), body, ev.Interchange.Delimiters, &CheckOptions{Version: m.Version, Base: m.Offset})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, found...)
		}
	}
}
