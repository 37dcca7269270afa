package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/observe"
)

// The exit codes of CONTRACTS, Command line.
const (
	exitGood        = 0
	exitBad         = 1 // the input or the check is bad
	exitUsage       = 2 // wrong use, or a file that cannot be opened
	exitUnreachable = 3 // the hub or a service cannot be reached
)

// exitError ends the program with a code. Without an error nothing more is to be said.
type exitError struct {
	code int
	err  error
}

// Error implements error.
func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

// Unwrap gives the cause.
func (e *exitError) Unwrap() error { return e.err }

// fail makes an error that ends the program with a code.
func fail(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

// environment is what the program has of the world outside.
type environment struct {
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
	now            func() time.Time
	running        bool // the command line was understood
}

func newEnvironment(env []string, stdin io.Reader, stdout, stderr io.Writer) *environment {
	return &environment{environ: env, stdin: stdin, stdout: stdout, stderr: stderr, now: time.Now}
}

// getenv returns a variable, "" when it is not set.
func (e *environment) getenv(name string) string {
	for _, v := range slices.Backward(e.environ) { // the last one holds, as in a shell
		if k, v, ok := strings.Cut(v, "="); ok && k == name {
			return v
		}
	}
	return ""
}

// progress writes a line to standard error, on a terminal only.
func (e *environment) progress(format string, args ...any) {
	if observe.IsTerminal(e.stderr) {
		_, _ = fmt.Fprintf(e.stderr, format+"\n", args...) // nobody can be told
	}
}

// note writes a line for people to standard error.
func (e *environment) note(format string, args ...any) {
	_, _ = fmt.Fprintf(e.stderr, format+"\n", args...) // nobody can be told
}

// finish prints what went wrong and returns the exit code.
func (e *environment) finish(err error) int {
	if err == nil {
		return exitGood
	}
	code := exitUsage
	var ex *exitError
	var problems config.Problems
	var path *fs.PathError
	switch {
	case errors.As(err, &ex):
		code = ex.code
		if ex.err == nil {
			return code
		}
	case !e.running, errors.As(err, &problems), errors.As(err, &path):
	default:
		code = exitBad
	}
	_, _ = fmt.Fprintln(e.stderr, "edihub: "+printableLines(err.Error())) // nobody can be told
	if !e.running && ex == nil {
		_, _ = fmt.Fprintln(e.stderr, "Run edihub --help, or edihub COMMAND --help.")
	}
	return code
}

func newRootCommand(e *environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "edihub",
		Short: "An EDI hub: receives over AS2, validates, routes, delivers, and shows what it did",
		Long: `edihub receives EDI over AS2, HTTP and directories, checks it, routes it and delivers it with proof.

The commands below talk to a running hub. They find it, and the token that it wants, by --data
(default ./edihub-data) or by --admin-url and --token-file.

Exit codes: 0 good; 1 the input or the check is bad; 2 wrong use, or a file that cannot be opened;
3 the hub or a service cannot be reached.`,
		Example: `  edihub check --config edihub.yaml
  edihub send --from acme --to erp --wait 60s order.edi
  edihub message list --state rejected --since 24h
  edihub dead replay --code NO_ROUTE --dry-run`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		PersistentPreRun: func(*cobra.Command, []string) {
			e.running = true
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(e.stdin)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fail(exitUsage, "%w\nRun %s --help.", err, cmd.CommandPath())
	})
	root.AddCommand(commands(e)...)
	return root
}

// group makes a command that only holds others.
func group(use, short, long, example string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fail(exitUsage, "%s needs one of: %s", cmd.CommandPath(), strings.Join(names(cmd), ", "))
		},
	}
	c.AddCommand(subs...)
	return c
}

func names(cmd *cobra.Command) []string {
	var out []string
	for _, s := range cmd.Commands() {
		if s.IsAvailableCommand() {
			out = append(out, s.Name())
		}
	}
	return out
}

// configFlags gives a command --config and every setting of the hub as a flag.
type configFlags struct {
	e    *environment
	file string
	set  *pflag.FlagSet
	keys map[string]*string // by flag name
}

// shownSettings are the settings that the help lists; edihub check lists all.
func shownSettings() map[string]bool {
	return map[string]bool{
		"profile": true, "data": true, "as2-listen": true, "admin-listen": true, "partners-file": true, "log-level": true, "log-format": true,
	}
}

func addConfigFlags(cmd *cobra.Command, e *environment) *configFlags {
	f := &configFlags{e: e, set: cmd.Flags(), keys: map[string]*string{}}
	f.set.StringVar(&f.file, "config", e.getenv("EDIHUB_CONFIG"), "configuration file (EDIHUB_CONFIG); without one the defaults hold")
	shown := shownSettings()
	add := func(name, usage string) {
		v := new(string)
		f.keys[name] = v
		f.set.StringVar(v, name, "", usage)
		if !shown[name] {
			_ = f.set.MarkHidden(name) // the flag was just added
		}
	}
	for _, k := range config.Keys() {
		usage := k.Usage + " (" + k.Env + ")"
		if k.Default != "" {
			usage = fmt.Sprintf("%s (%s; default %s)", k.Usage, k.Env, k.Default)
		}
		add(k.Flag, usage)
		if k.Secret {
			add(k.Flag+"-file", "file that holds "+k.Name)
		}
	}
	return f
}

// load reads the configuration from flags, environment and file.
func (f *configFlags) load() (*config.Config, error) {
	given := map[string]string{}
	for name, v := range f.keys {
		if f.set.Changed(name) {
			given[name] = *v
		}
	}
	c, _, err := config.Load(config.Options{File: f.file, Env: f.e.environ, Flags: given})
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	return c, nil
}
