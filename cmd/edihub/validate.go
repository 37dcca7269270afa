package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/edihub/edihub/internal/observe"
	"github.com/edihub/edihub/internal/peppol"
	"github.com/edihub/edihub/internal/verdict"
)

const (
	formatSVRL = "svrl"
	rulesAuto  = "auto"
	// structureRules is the set about the structure of UBL, which is no set of package peppol.
	structureRules = "ubl"
	// maxDocument is the size of the largest file that is read, in bytes.
	maxDocument = 256 << 20
)

// validation is one run of the command.
type validation struct {
	e       *environment
	format  string
	options peppol.Options
	colours bool
}

// checked is what came out of one file.
type checked struct {
	output   bytes.Buffer
	valid    bool
	unopened error
	fatal    int
	warnings int
}

func newValidateCommand(e *environment) *cobra.Command {
	var format, rules, list string
	cmd := &cobra.Command{
		Use: "validate [flags] FILE…", Short: "Check documents and say what is wrong with them, where, and what to change",
		Long: `Check EDIFACT, X12 and UBL files without a hub.

With --rules auto a UBL document is checked against the structure of UBL 2.1 and the rule sets that
its CustomizationID names (EN 16931 alone where it names none that is known). A list of sets
applies exactly these: ` + strings.Join(ruleNames(), ", ") + `.

Files are checked on all cores and reported in the order given; - is standard input.
Exit codes: 0 all valid; 1 one is not; 2 wrong use, or a file that cannot be opened.`,
		Example: `  edihub validate invoice.xml
  edihub validate --format json --rules en16931,peppol invoices/*.xml
  find in -name '*.xml' | edihub validate --files-from -`,
	}
	cmd.Flags().StringVar(&format, "format", formatText, "text, json (one object a line) or svrl")
	cmd.Flags().StringVar(&rules, "rules", rulesAuto, "auto, or rule sets separated by commas")
	cmd.Flags().StringVar(&list, "files-from", "", "file with the names of more files, one a line; - is standard input")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if format != formatText && format != formatJSON && format != formatSVRL {
			return fail(exitUsage, "--format %q is not known; allowed: text, json, svrl", format)
		}
		o, err := chooseRules(rules, e.now().UTC().Format("2006-01-02"))
		if err != nil {
			return err
		}
		files, err := e.fileNames(args, list)
		if err != nil {
			return err
		}
		v := &validation{e: e, format: format, options: o, colours: observe.IsTerminal(e.stdout) && e.getenv("NO_COLOR") == ""}
		return v.run(cmd.Context(), files)
	}
	return cmd
}

// ruleNames are the sets that --rules knows.
func ruleNames() []string {
	names := []string{structureRules}
	seen := map[string]bool{}
	for _, s := range peppol.Sets() {
		if !seen[s.ID] {
			seen[s.ID] = true
			names = append(names, s.ID)
		}
	}
	return names
}

// chooseRules reads --rules for a day.
func chooseRules(rules, day string) (peppol.Options, error) {
	if rules == rulesAuto {
		sets, _ := peppol.Choose(ruleNames(), day)
		return peppol.Options{Sets: sets, Structure: true}, nil
	}
	o := peppol.Options{Exactly: true}
	var names []string
	for name := range strings.SplitSeq(rules, ",") {
		name = strings.TrimSpace(name)
		names = append(names, name)
		o.Structure = o.Structure || name == structureRules
	}
	var unknown string
	if o.Sets, unknown = peppol.Choose(names, day); unknown != "" || rules == "" {
		return o, fail(exitUsage, "--rules: no rule set is called %q; there are auto, %s", unknown, strings.Join(ruleNames(), ", "))
	}
	return o, nil
}

// fileNames puts the names of the command line and of --files-from together.
func (e *environment) fileNames(args []string, list string) ([]string, error) {
	files := args
	if list != "" {
		var text []byte
		var err error
		if list == "-" {
			text, err = io.ReadAll(e.stdin)
		} else {
			text, err = os.ReadFile(list)
		}
		if err != nil {
			return nil, fail(exitUsage, "--files-from: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				files = append(files, line)
			}
		}
	}
	if len(files) == 0 {
		return nil, fail(exitUsage, "name a file, or several, or a list with --files-from")
	}
	return files, nil
}

// run checks the files on all cores and prints in their order.
func (v *validation) run(ctx context.Context, files []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type job struct {
		file string
		out  chan *checked
	}
	workers := min(runtime.GOMAXPROCS(0), len(files))
	work, turn := make(chan job), make(chan job, 4*workers)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for range workers {
		group.Go(func() {
			var room []byte
			for j := range work {
				var c *checked
				c, room = v.check(j.file, room)
				j.out <- c
			}
		})
	}
	group.Go(func() {
		defer close(turn)
		defer close(work)
		for _, f := range files {
			j := job{f, make(chan *checked, 1)}
			select {
			case turn <- j:
			case <-ctx.Done():
				return
			}
			work <- j // a worker is always there: they end with this channel
		}
	})
	p := printer{v: v, out: bufio.NewWriterSize(v.e.stdout, 64<<10), files: len(files)}
	p.begin()
	for j := range turn {
		if err := p.print(<-j.out); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return fail(exitBad, "stopped after %d of %d files", p.done, len(files))
	}
	return p.end()
}

// check reads a file into the room that is given, checks it and prints into memory.
func (v *validation) check(file string, room []byte) (*checked, []byte) {
	c := &checked{}
	doc, room, err := v.e.read(file, room)
	var r *verdict.Report
	switch {
	case errors.Is(err, errTooLarge):
		r = verdict.Unread(file, "FILE-LIMIT", fmt.Sprintf("The file is larger than %d bytes, which is the most that is read.", maxDocument))
	case err != nil:
		c.unopened = err
		r = verdict.Unread(file, "FILE-UNREADABLE", "The file cannot be read: "+err.Error()+".")
	default:
		r = verdict.Judge(file, doc, v.options, v.e.now)
	}
	c.valid = r.Valid
	c.fatal, c.warnings = r.Count()
	switch v.format {
	case formatJSON:
		if err := r.JSON(&c.output); err != nil {
			c.unopened = err
		}
	case formatSVRL:
		r.SVRL(&c.output)
	default:
		r.Text(&c.output, doc, v.colours)
	}
	return c, room
}

var errTooLarge = errors.New("the file is too large")

// read reads a whole file; - is standard input. The bytes are part of the room that it returns.
func (e *environment) read(file string, room []byte) (doc, next []byte, err error) {
	in := e.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, room, err //nolint:wrapcheck // It names the file.
		}
		defer f.Close() //nolint:errcheck // It was only read.
		in = f
	}
	if cap(room) == 0 {
		room = make([]byte, 0, 64<<10)
	}
	for room = room[:0]; ; {
		if len(room) == cap(room) {
			room = append(room, 0)[:len(room)]
		}
		n, err := in.Read(room[len(room):cap(room)])
		room = room[:len(room)+n]
		switch {
		case len(room) > maxDocument:
			return nil, nil, errTooLarge
		case errors.Is(err, io.EOF):
			const keep = 4 << 20 // bytes of room for the next file
			if cap(room) > keep {
				return room, nil, nil
			}
			return room, room, nil
		case err != nil:
			return nil, room, err //nolint:wrapcheck // It names the file.
		}
	}
}

// printer prints what was checked, in order.
type printer struct {
	v     *validation
	out   *bufio.Writer
	files int
	done  int

	invalid, fatal, warnings int
	unopened                 error
}

// begin opens the element around several SVRL reports.
func (p *printer) begin() {
	if p.v.format == formatSVRL {
		_, _ = p.out.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n") // print tells a broken output
		if p.files > 1 {
			_, _ = p.out.WriteString(`<reports xmlns="urn:edihub:reports">` + "\n")
		}
	}
}

func (p *printer) print(c *checked) error {
	p.done++
	p.fatal += c.fatal
	p.warnings += c.warnings
	if !c.valid {
		p.invalid++
	}
	if p.unopened == nil {
		p.unopened = c.unopened
	}
	if _, err := p.out.Write(c.output.Bytes()); err != nil {
		return fail(exitBad, "write to standard output: %w", err)
	}
	p.progress()
	return nil
}

// progress draws a bar on a terminal, where there is more than one file and the results go
// elsewhere.
func (p *printer) progress() {
	const width = 40
	if p.files < 20 || p.done%20 != 0 && p.done != p.files || !observe.IsTerminal(p.v.e.stderr) || observe.IsTerminal(p.v.e.stdout) {
		return
	}
	full := width * p.done / p.files
	bar := strings.Repeat("█", full) + strings.Repeat("░", width-full)
	end := ""
	if p.done == p.files {
		end = "\n"
	}
	_, _ = fmt.Fprintf(p.v.e.stderr, "\r%s %d of %d%s", bar, p.done, p.files, end) // nobody can be told
}

// end prints the summary and decides the exit code.
func (p *printer) end() error {
	if p.v.format == formatSVRL && p.files > 1 {
		_, _ = p.out.WriteString("</reports>\n") // Flush tells a broken output
	}
	if p.v.format == formatText && p.files > 1 {
		_, _ = fmt.Fprintf(p.out, "\n%d files: %d valid, %d not; %d fatal findings, %d warnings\n", p.files, p.files-p.invalid, p.invalid, p.fatal, p.warnings)
	}
	if err := p.out.Flush(); err != nil {
		return fail(exitBad, "write to standard output: %w", err)
	}
	switch {
	case p.unopened != nil:
		return fail(exitUsage, "%w", p.unopened)
	case p.invalid > 0:
		return &exitError{code: exitBad}
	}
	return nil
}
