package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/inspect"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		write(t, path, content)
		return path
	}
	good := file("good.edi", orders("R1", "ORDERS"))
	bad := file("bad.edi", strings.Replace(orders("R2", "ORDERS"), "UNT+5", "UNT+7", 1))
	text := file("note.txt", "hello")
	many := file("many.edi", "UNB+UNOA:3+A+B+260101:1200+X'"+manyOrders(61)+"UNZ+61+X'")
	for _, c := range []struct {
		name  string
		args  []string
		stdin string
		code  int
		want  []string
	}{
		{"good", []string{good}, "", 0, []string{"edifact, envelope good", "ACME (ZZ) → HUB (ZZ)", "MESSAGE  TYPE", "ORDERS  D:96A:UN  1          POR1"}},
		{"standard input", []string{"-"}, orders("R1", "ORDERS"), 0, []string{"-: edifact, envelope good"}},
		{"bad", []string{bad}, "", 1, []string{"envelope NOT good", "fatal   EDI-UNT-COUNT at UNT, segment 5, element 1, byte", `is "7", expected "5"`}},
		{"unknown", []string{text}, "", 1, []string{"note.txt: not known", "EDI-UNKNOWN"}},
		{"a file that is not there, the others go on", []string{filepath.Join(dir, "no.edi"), good}, "", 2, []string{"no.edi", "good.edi: edifact, envelope good"}},
		{"a folder", []string{dir}, "", 2, []string{"is a folder"}},
		{"no file", nil, "", 2, []string{"requires at least 1 arg"}},
		{"strange format", []string{"--format", "xml", good}, "", 2, []string{"allowed: text, json"}},
		{"pretty", []string{"--pretty", good}, "", 0, []string{"\n  UNH+1+ORDERS:D:96A:UN'\n    BGM+220+POR1+9'\n"}},
		{"pretty and bad", []string{"--pretty", bad}, "", 1, []string{"UNT+7+1'", "not good"}},
		{"pretty text", []string{"--pretty", text}, "", 1, []string{"neither EDIFACT nor X12"}},
		{"pretty json", []string{"--pretty", "--format", "json", good}, "", 2, []string{"leave out"}},
		{"many", []string{many}, "", 0, []string{"… 11 more messages; --all lists them"}},
		{"help", []string{"--help"}, "", 0, []string{"edihub inspect --format json *.edi", "Exit code"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			edihub(nil, c.stdin, append([]string{"inspect"}, c.args...)...).want(t, c.code, c.want...)
		})
	}
	if r := edihub(nil, "", "inspect", "--all", many); strings.Contains(r.stdout, "more messages") || strings.Count(r.stdout, "ORDERS") != 61 {
		t.Errorf("--all: %s", r.stdout)
	}
	reports := objects[inspect.Report](t, edihub(nil, "", "inspect", "--format", "json", good, bad, text))
	if len(reports) != 3 || reports[0].File != good || !reports[0].ValidEnvelope || reports[1].ValidEnvelope || reports[2].Standard != "unknown" {
		t.Errorf("got %+v", reports)
	}
}

// manyOrders writes n small messages.
func manyOrders(n int) string {
	var b strings.Builder
	for i := range n {
		ref := string(rune('A'+i/26)) + string(rune('A'+i%26))
		b.WriteString("UNH+" + ref + "+ORDERS:D:96A:UN'UNT+2+" + ref + "'")
	}
	return b.String()
}
