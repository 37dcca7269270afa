package edifact

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/edihub/edihub/internal/edi"
)

// TestCorpusTables checks documents that were walked out of the tables by another program. They
// are not part of the repository. That program leaves out a mandatory composite when all of its
// components are conditional; nothing else may be found.
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
			if f.Rule == edi.RuleElementMissing && f.DataElement[0] == 'C' {
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
			found, err := Check(t.Context(), body, ev.Interchange.Delimiters, &CheckOptions{Version: ev.Interchange.Version, ServiceUNA: ev.Interchange.ServiceUNA, Base: m.Offset})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, found...)
		}
	}
}
