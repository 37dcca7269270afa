package edifact

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/edi"
)

// TestCorpus compares counts and verdicts with the index of a corpus of interchanges. The
// corpus is not part of the repository.
func TestCorpus(t *testing.T) {
	t.Parallel()
	shared := os.Getenv("EDIHUB_SHARED")
	if shared == "" {
		t.Skip("EDIHUB_SHARED does not name a folder with conformance/edi/index.tsv")
	}
	dir := filepath.Join(shared, "conformance", "edi")
	index, err := os.ReadFile(filepath.Join(dir, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(index))
	lines.Buffer(nil, 1<<20)
	total, agree := 0, 0
	for lines.Scan() {
		col := strings.Split(lines.Text(), "\t")
		if len(col) < 13 || col[4] != "edifact" {
			continue
		}
		total++
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(col[0])))
		if err != nil {
			t.Fatal(err)
		}
		got := corpusCounts(t, data)
		want := col[7:12]
		if want[4] == "no" { // how far a reader gets into a broken envelope is its own affair
			got, want = got[4:], want[4:]
		}
		if strings.Join(got, " ") == strings.Join(want, " ") {
			agree++
		} else {
			t.Errorf("%s: got %v, want %v (%s)", col[0], got, want, col[12])
		}
	}
	t.Logf("%d of %d agree", agree, total)
	if total == 0 {
		t.Error("the index names no files of this standard")
	}
}

// corpusCounts returns interchanges, groups, messages, segments and the verdict.
func corpusCounts(t *testing.T, data []byte) []string {
	t.Helper()
	ics, groups, messages, segments, valid := 0, 0, 0, 0, true
	sp := NewSplitter(bytes.NewReader(data), Limits{})
	for {
		ev, err := sp.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch ev.Kind {
		case edi.MessageEnd:
			valid = valid && !edi.HasFatal(ev.Message.Findings)
		case edi.GroupEnd:
			valid = valid && !edi.HasFatal(ev.Group.Findings)
		case edi.InterchangeEnd:
			ics++
			groups += ev.Interchange.Groups
			messages += ev.Interchange.Messages
			segments += ev.Interchange.Segments
			valid = valid && !edi.HasFatal(ev.Interchange.Findings)
		case edi.InterchangeBegin, edi.GroupBegin:
		}
	}
	verdict := "no"
	if valid && ics > 0 {
		verdict = "yes"
	}
	return []string{strconv.Itoa(ics), strconv.Itoa(groups), strconv.Itoa(messages), strconv.Itoa(segments), verdict}
}
