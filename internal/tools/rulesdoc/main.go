// Command rulesdoc writes the table of rules in docs/findings.md from internal/edi.
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/edihub/edihub/internal/edi"
)

const (
	begin = "<!-- rules begin -->\n"
	end   = "<!-- rules end -->\n"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rulesdoc FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "rulesdoc:", err)
		os.Exit(1)
	}
}

func write(path string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	from, to := bytes.Index(old, []byte(begin)), bytes.Index(old, []byte(end))
	if from < 0 || to < from {
		return fmt.Errorf("%s has no place for the rules: put the lines %q and %q there", path, begin, end)
	}
	var b bytes.Buffer
	b.Write(old[:from+len(begin)])
	b.WriteString("| rule | class | scope | severity | 0085 | 997, TA1 | 999 |\n|---|---|---|---|---|---|---|\n")
	for _, r := range edi.Rules() {
		b.WriteString(r.Row() + "\n")
	}
	b.Write(old[to:])
	if bytes.Equal(old, b.Bytes()) {
		return nil
	}
	return os.WriteFile(path, b.Bytes(), 0o644) //nolint:gosec // G306: documentation.
}
