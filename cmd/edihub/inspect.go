package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/inspect"
)

type inspectOptions struct {
	format      string
	pretty, all bool
}

func newInspectCommand(e *environment) *cobra.Command {
	var o inspectOptions
	cmd := &cobra.Command{
		Use:   "inspect FILE…",
		Short: "Show envelope and structure of EDIFACT, X12, UBL and CII files",
		Long: `Shows what each file is and what its envelopes say: interchanges, groups, messages, their places in
the file, and what is wrong with them. It judges the envelopes only, not what the documents mean.
FILE "-" is standard input. No hub is needed.

With --pretty it prints one segment a line, in as many levels as the envelope has.

Exit code 0: every envelope is good; 1: one is not, or a file is nothing that is known; 2: a file
cannot be opened (the others are shown).`,
		Example: `  edihub inspect order.edi
  edihub inspect --format json *.edi | jq .messages
  edihub inspect --pretty invoice.edi | less
  gunzip -c batch.edi.gz | edihub inspect -`,
		Args: cobra.MinimumNArgs(1),
	}
	formatFlag(cmd, &o.format)
	cmd.Flags().BoolVar(&o.pretty, "pretty", false, "print one segment a line")
	cmd.Flags().BoolVar(&o.all, "all", false, "list every message, not only the first 50 of an interchange and those with findings")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := checkFormat(o.format); err != nil {
			return err
		}
		if o.pretty && o.format == formatJSON {
			return fail(exitUsage, "--pretty prints text; leave out --format json")
		}
		return e.inspectFiles(&o, args)
	}
	return cmd
}

// inspectFiles shows every file that can be opened. The worst of them gives the exit code.
func (e *environment) inspectFiles(o *inspectOptions, files []string) error {
	code := exitGood
	for i, name := range files {
		if i > 0 && o.format == formatText {
			if err := e.printf("\n"); err != nil {
				return err
			}
		}
		good, err := e.inspectFile(o, name)
		var path *os.PathError
		var ex *exitError
		switch {
		case errors.As(err, &ex):
			return err // standard output is closed, or the like
		case errors.As(err, &path):
			e.note("edihub: %s", printable(err.Error()))
			code = exitUsage
		case err != nil:
			e.note("edihub: %s: %s", printable(name), printable(err.Error()))
			code = max(code, exitBad)
		case !good:
			code = max(code, exitBad)
		}
	}
	if code != exitGood {
		return &exitError{code: code}
	}
	return nil
}

func (e *environment) inspectFile(o *inspectOptions, name string) (good bool, err error) {
	r := e.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return false, err
		}
		defer f.Close() //nolint:errcheck // It was only read.
		if st, err := f.Stat(); err == nil && st.IsDir() {
			return false, &os.PathError{Op: "read", Path: name, Err: errors.New("is a folder; name the files in it")}
		}
		r = f
	}
	if o.pretty {
		return e.prettyFile(name, r)
	}
	rep, err := inspect.Read(name, r, inspect.Options{})
	if err != nil {
		return false, err
	}
	if o.format == formatJSON {
		return rep.ValidEnvelope, e.printJSON(rep)
	}
	return rep.ValidEnvelope, e.printReport(rep, o.all)
}

// prettyFile prints the segments of a file and then says what is wrong.
func (e *environment) prettyFile(name string, r io.Reader) (bool, error) {
	w := bufio.NewWriterSize(e.stdout, 64<<10)
	good, err := inspect.Pretty(r, inspect.Options{}, w)
	if ferr := w.Flush(); ferr != nil {
		return false, fail(exitBad, "write to standard output: %w", ferr)
	}
	var limit *edi.LimitError
	switch {
	case errors.Is(err, inspect.ErrNotSegments), errors.As(err, &limit):
		e.note("edihub: %s: %v", printable(name), err)
		return false, nil
	case err != nil:
		return false, err
	case !good:
		e.note("edihub: %s: the envelope is not good; without --pretty inspect says why", printable(name))
	}
	return good, nil
}

// shownMessages is how many messages of an interchange are listed without --all.
const shownMessages = 50

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// printReport prints a report as a tree.
func (e *environment) printReport(rep *inspect.Report, all bool) error {
	verdict := "envelope good"
	if !rep.ValidEnvelope {
		verdict = "envelope NOT good"
	}
	head := fmt.Sprintf("%s: %s, %s", printable(rep.File), rep.Standard, verdict)
	if rep.Standard == inspect.StandardUnknown {
		head = printable(rep.File) + ": not known"
	}
	if n := len(rep.Interchanges); n > 0 {
		head += fmt.Sprintf(", %s, %s, %s, %s", plural(n, "interchange"), plural(rep.Groups, "group"), plural(rep.Messages, "message"), plural(rep.Segments, "segment"))
	}
	if err := e.printf("%s\n", head); err != nil {
		return err
	}
	for i := range rep.Interchanges {
		if err := e.printInterchange(i+1, &rep.Interchanges[i], all); err != nil {
			return err
		}
	}
	return e.printFindings("  ", rep.Findings)
}

func party(id, qualifier string) string {
	switch {
	case id == "":
		return "?"
	case qualifier == "":
		return id
	}
	return id + " (" + qualifier + ")"
}

// joinSet joins what is not empty.
func joinSet(values ...string) string {
	var out []string
	for _, v := range values {
		if v != "" {
			out = append(out, v)
		}
	}
	return strings.Join(out, ", ")
}

func (e *environment) printInterchange(n int, ic *inspect.Interchange, all bool) error {
	test := ""
	if ic.Test {
		test = "TEST"
	}
	ref := ic.ControlRef
	if ref != "" {
		ref = " " + ref
	}
	err := e.printf("  interchange %d%s: %s → %s\n    %s\n", n, printable(ref), printable(party(ic.Sender, ic.SenderQualifier)), printable(party(ic.Receiver, ic.ReceiverQualifier)),
		printable(joinSet(ic.Version, ic.Charset, test, plural(ic.Segments, "segment"), fmt.Sprintf("bytes %d to %d", ic.Offset, ic.Offset+ic.Length))))
	if err != nil {
		return err
	}
	if err := e.printFindings("    ", ic.Findings); err != nil {
		return err
	}
	if len(ic.GroupList) > 0 {
		t := newTable("    GROUP", "FUNCTION", "REFERENCE", "VERSION", "SENDER", "RECEIVER", "MESSAGES", "OFFSET", "LENGTH")
		for i, g := range ic.GroupList {
			if i >= shownMessages && !all {
				break
			}
			t.row("    "+strconv.Itoa(i+1), g.FunctionID, g.ControlRef, g.Version, g.Sender, g.Receiver, strconv.Itoa(g.Messages), strconv.FormatInt(g.Offset, 10), strconv.FormatInt(g.Length, 10))
		}
		if err := t.print(e); err != nil {
			return err
		}
	}
	return e.printMessages(ic, all)
}

func (e *environment) printMessages(ic *inspect.Interchange, all bool) error {
	if len(ic.Messages) == 0 {
		return nil
	}
	t := newTable("    MESSAGE", "TYPE", "VERSION", "REFERENCE", "DOCUMENT", "SEGMENTS", "OFFSET", "LENGTH", "FINDINGS")
	left := 0
	for i := range ic.Messages {
		m := &ic.Messages[i]
		if i >= shownMessages && !all && len(m.Findings) == 0 {
			left++
			continue
		}
		document, found := "", ""
		if m.Document != nil {
			document = m.Document.Number
		}
		if len(m.Findings) > 0 {
			found = strconv.Itoa(len(m.Findings))
		}
		t.row("    "+strconv.Itoa(i+1), m.Type, cutText(m.Version, 48), m.Ref, document, strconv.Itoa(m.Segments), strconv.FormatInt(m.Offset, 10), strconv.FormatInt(m.Length, 10), found)
	}
	if err := t.print(e); err != nil {
		return err
	}
	if left > 0 {
		if err := e.printf("    … %s; --all lists them\n", plural(left, "more message")); err != nil {
			return err
		}
	}
	for i := range ic.Messages {
		m := &ic.Messages[i]
		if len(m.Findings) == 0 {
			continue
		}
		if err := e.printf("    message %d (%s %s):\n", i+1, printable(m.Type), printable(m.Ref)); err != nil {
			return err
		}
		if err := e.printFindings("      ", m.Findings); err != nil {
			return err
		}
	}
	return nil
}

// printFindings prints a finding a line: severity, rule, place, text.
func (e *environment) printFindings(indent string, fs []edi.Finding) error {
	for i := range fs {
		f := &fs[i]
		var at []string
		if f.Line > 0 {
			at = append(at, fmt.Sprintf("line %d", f.Line))
		}
		if f.Segment != "" {
			at = append(at, f.Segment)
		}
		if f.Position.Segment > 0 {
			at = append(at, fmt.Sprintf("segment %d", f.Position.Segment))
		}
		if f.Element > 0 {
			at = append(at, fmt.Sprintf("element %d", f.Element))
		}
		if f.Component > 0 {
			at = append(at, fmt.Sprintf("component %d", f.Component))
		}
		at = append(at, fmt.Sprintf("byte %d", f.Offset))
		text := f.Message
		if f.Actual != "" || f.Expected != "" {
			text += fmt.Sprintf(" (is %q, expected %q)", f.Actual, f.Expected)
		}
		if err := e.printf("%s%-7s %s at %s: %s\n", indent, f.Severity, f.Rule, printable(strings.Join(at, ", ")), printable(text)); err != nil {
			return err
		}
	}
	return nil
}
