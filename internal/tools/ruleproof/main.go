// Command ruleproof takes the rules of the runner out of the source, one at a time, and runs the
// test that guards each: the test must fail. A rule whose test passes without it is not guarded,
// and the command ends with 1. The source on disk stays as it is; the compiler sees an overlay.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// mutation replaces one piece of a file. The piece must occur exactly once.
type mutation struct {
	rule string // of DESIGN §3
	file string
	old  string
	new  string
	test string // name, or expression, of the tests that must fail
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "ruleproof:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "ruleproof")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // A temporary folder.
	if err := find(); err != nil {
		return err
	}
	if err := control(); err != nil {
		return err
	}
	guarded, failed := 0, 0
	for i := range mutations {
		m := &mutations[i]
		why, err := prove(dir, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.rule, err)
		}
		if why != "" {
			failed++
			fmt.Printf("NOT GUARDED  %-58s %s\n", m.rule, why)
			continue
		}
		guarded++
		fmt.Printf("guarded      %-58s %s\n", m.rule, m.test)
	}
	fmt.Printf("%d passed, %d failed\n", guarded, failed)
	if failed > 0 {
		return errors.New("some rules have no test that fails without them")
	}
	return nil
}

// find looks for the piece of each rule before anything runs: a rule that moved is told at once.
func find() error {
	var errs []error
	for i := range mutations {
		m := &mutations[i]
		source, err := os.ReadFile(m.file)
		if err != nil {
			return err
		}
		if n := strings.Count(string(source), m.old); n != 1 {
			errs = append(errs, fmt.Errorf("%s: the piece to take out of %s occurs %d times, want once", m.rule, m.file, n))
		}
	}
	return errors.Join(errs...)
}

// guardedPackage holds the rules and their tests.
const guardedPackage = "./internal/pipeline"

// patience bounds the waits of the tests: what must not come true is not waited for.
const patience = "EDIHUB_TEST_PATIENCE=10s"

// control runs the tests with every rule in place: they must pass under the same patience, or
// their failure without a rule would prove nothing.
func control() error {
	names := make([]string, 0, len(mutations))
	for i := range mutations {
		names = append(names, mutations[i].test)
	}
	cmd := exec.Command("go", "test", "-count=1", "-timeout", "120s", "-run", "^("+strings.Join(names, "|")+")$", guardedPackage)
	cmd.Env = append(os.Environ(), patience)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the tests fail with every rule in place: %w\n%s", err, out)
	}
	return nil
}

// prove runs the test without the rule; an empty answer means that it failed as it must.
func prove(dir string, m *mutation) (string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600); err != nil {
		return "", err
	}
	abs, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	raw, err := json.Marshal(map[string]map[string]string{"Replace": {abs: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, raw, 0o600); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout", "60s", "-overlay", overlay, "-run", "^("+m.test+")$", guardedPackage)
	cmd.Env = append(os.Environ(), patience)
	out, err := cmd.CombinedOutput()
	text := string(out)
	switch {
	case err == nil && strings.Contains(text, "no tests to run"):
		return "", fmt.Errorf("there is no test %s", m.test)
	case err == nil:
		return "the test passes without the rule", nil
	case strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]"):
		return "", fmt.Errorf("the program without the rule does not build:\n%s", text)
	case strings.Contains(text, "--- FAIL") || strings.Contains(text, "panic:") || strings.Contains(text, "test timed out"):
		return "", nil
	}
	return "", fmt.Errorf("the test ended otherwise than expected:\n%s", text)
}
