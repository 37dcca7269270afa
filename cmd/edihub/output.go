package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
)

// The formats of --format.
const (
	formatText = "text"
	formatJSON = "json"
)

// formatFlag adds --format to a command.
func formatFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "format", formatText, "text, or json: one object a line")
}

func checkFormat(f string) error {
	if f != formatText && f != formatJSON {
		return fail(exitUsage, "--format %q is not known; allowed: text, json", f)
	}
	return nil
}

// printJSON prints one object on one line.
func (e *environment) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return e.write(b.Bytes())
}

// printRaw prints an object of the API on one line.
func (e *environment) printRaw(raw json.RawMessage) error {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return fail(exitBad, "the hub answered something that is no JSON: %w", err)
	}
	b.WriteByte('\n')
	return e.write(b.Bytes())
}

func (e *environment) write(b []byte) error {
	if _, err := e.stdout.Write(b); err != nil {
		return fail(exitBad, "write to standard output: %w", err)
	}
	return nil
}

func (e *environment) printf(format string, args ...any) error {
	return e.write(fmt.Appendf(nil, format, args...))
}

// table aligns columns. Cells come from strangers too, so what a terminal would obey is removed.
type table struct {
	b bytes.Buffer
	w *tabwriter.Writer
}

func newTable(head ...string) *table {
	t := &table{}
	t.w = tabwriter.NewWriter(&t.b, 0, 4, 2, ' ', 0)
	t.row(head...)
	return t
}

func (t *table) row(cells ...string) {
	shown := make([]string, len(cells))
	for i, c := range cells {
		if shown[i] = printable(c); c == "" {
			shown[i] = "-"
		}
	}
	_, _ = io.WriteString(t.w, strings.Join(shown, "\t")+"\n") // it writes to memory
}

func (t *table) print(e *environment) error {
	_ = t.w.Flush() // it writes to memory
	var out bytes.Buffer
	for line := range strings.Lines(t.b.String()) {
		out.WriteString(strings.TrimRight(line, " \n"))
		out.WriteByte('\n')
	}
	return e.write(out.Bytes())
}

// printable replaces what is no character to look at: a partner's text must not move the cursor
// of an operator's terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || unicode.IsPrint(r) {
			return r
		}
		return '·'
	}, s)
}

func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// shortTime is a time for tables, UTC.
func shortTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

// cutText shortens a text for a table.
func cutText(s string, most int) string {
	rs := []rune(s)
	if len(rs) <= most {
		return s
	}
	return string(rs[:most-1]) + "…"
}
