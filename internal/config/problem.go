package config

import (
	"fmt"
	"sort"
	"strings"
)

// Problem is one thing that is wrong with a configuration, where it stands, and what to do.
type Problem struct {
	File   string // as it was named; "environment" or "flags" where no file is to blame
	Line   int    // from 1; 0 is unknown
	Column int    // from 1; 0 is unknown
	Key    string // dotted path, for example "as2.listen" or "connections[0].as2.url"
	Text   string // what is wrong; never holds a secret
	Remedy string // what to write instead
}

// Error implements error: "file:line:column: key: text; remedy".
func (p Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
			if p.Column > 0 {
				fmt.Fprintf(&b, ":%d", p.Column)
			}
		}
		b.WriteString(": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key)
		b.WriteString(": ")
	}
	b.WriteString(p.Text)
	if p.Remedy != "" {
		b.WriteString("; ")
		b.WriteString(p.Remedy)
	}
	return b.String()
}

// Problems is the error that Load returns: all that is wrong, in the order of the lines. A
// command that gets one ends with exit code 2.
type Problems []Problem

// Error implements error, one problem a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Sorted returns the problems ordered by file, line and column.
func (ps Problems) Sorted() Problems {
	out := append(Problems(nil), ps...)
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if a.File != b.File {
			return a.File < b.File
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
	return out
}

// Err returns the sorted problems as an error, nil when there is none.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps.Sorted()
}

// Warning is something that works but that an operator should know of.
type Warning struct {
	Code   string `json:"code"` // stable, for example "REQUIRE_WEAK"
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Object string `json:"object,omitempty"` // what it is about, for example "connection acme-as2"
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// String is one line for a person.
func (w Warning) String() string {
	s := w.Code + ": "
	if w.Object != "" {
		s += w.Object + ": "
	}
	s += w.Text
	if w.Remedy != "" {
		s += "; " + w.Remedy
	}
	return s
}
