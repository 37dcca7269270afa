// Command measure prints what internal/app/measure shows of the whole hub, one table each, and
// ends with 1 when a promise was broken. It needs the built program: make measure.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/edihub/edihub/internal/app/measure"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run() error {
	binary := flag.String("binary", "bin/edihub", "the program")
	only := flag.String("only", "", "some of scale,hang,large,start,empty; none for all")
	messages := flag.Int("messages", 50_000, "messages of the large interchange")
	size := flag.Int("size", 600, "bytes of each of them")
	limit := flag.Duration("timeout", 20*time.Minute, "end after this time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	steps := []struct {
		name  string
		table func() (*measure.Table, error)
	}{
		{"scale", func() (*measure.Table, error) { return measure.ScaleTable(ctx, 2*time.Second) }},
		{"hang", func() (*measure.Table, error) { return measure.HangTable(ctx, 4000) }},
		{"large", func() (*measure.Table, error) { return measure.LargeTable(ctx, *binary, *messages, *size) }},
		{"start", func() (*measure.Table, error) { return measure.StartTable(ctx, *binary, 5, 50_000) }},
		{"empty", func() (*measure.Table, error) { return measure.EmptyTable(ctx, *binary) }},
	}
	wanted := strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	for _, w := range wanted {
		if !slices.ContainsFunc(steps, func(s struct {
			name  string
			table func() (*measure.Table, error)
		}) bool {
			return s.name == w
		}) {
			return fmt.Errorf("-only %s is not known", w)
		}
	}
	passed, failed := 0, 0
	for _, s := range steps {
		if len(wanted) > 0 && !slices.Contains(wanted, s.name) {
			continue
		}
		t, err := s.table()
		if t != nil {
			if perr := t.Print(os.Stdout); perr != nil {
				return perr
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if len(t.Broken) > 0 {
			failed++
			continue
		}
		passed++
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		return fmt.Errorf("%d of the promises did not hold", failed)
	}
	return nil
}
