package tables_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/tables"
	"github.com/edihub/edihub/internal/edi/tables/tablestest"
	"github.com/edihub/edihub/internal/edifact"
	"github.com/edihub/edihub/internal/x12"
)

var (
	edifactDelimiters = edi.Delimiters{Component: ':', Element: '+', Decimal: '.', Release: '?', Segment: '\''}
	x12Delimiters     = edi.Delimiters{Component: '>', Element: '*', Segment: '~'}
)

// suite is a directory with what is needed to make and check its messages.
type suite struct {
	maker *tablestest.Maker
	d     edi.Delimiters
	check func(data []byte) ([]edi.Finding, error)
}

func directory(t testing.TB, l *tables.Library, name string) *tables.Directory {
	t.Helper()
	d, err := l.Directory(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// suites are all directories of both standards.
func suites(t testing.TB) map[string]*suite {
	t.Helper()
	out := map[string]*suite{}
	add := func(name, version string, header func(typ string) [][]string, service string) {
		m := &tablestest.Maker{Directory: directory(t, edifact.Library(), name), Header: header}
		if service != name {
			m.Services = []*tables.Directory{directory(t, edifact.Library(), service)}
		}
		d := edifactDelimiters
		if version == "UNOC:4" {
			d.Repetition = '*'
		}
		out[name] = &suite{maker: m, d: d, check: func(data []byte) ([]edi.Finding, error) {
			return edifact.Check(context.Background(), bytes.NewReader(data), d, &edifact.CheckOptions{Version: version})
		}}
	}
	for _, name := range edifact.Directories() {
		release := name[2:]
		service, version := "service.3", "UNOC:3"
		if name == "D.20B" {
			service, version = "service.4", "UNOC:4"
		}
		add(name, version, func(typ string) [][]string { return [][]string{{typ, "D", release, "UN"}} }, service)
	}
	for n, v := range map[string]string{"service.1": "UNOB:1", "service.2": "UNOB:2", "service.3": "UNOC:3", "service.4": "UNOC:4"} {
		add(n, v, func(typ string) [][]string { return [][]string{{typ, "2", "2", "UN"}} }, n)
	}
	for _, name := range x12.Directories() {
		out[name] = &suite{
			maker: &tablestest.Maker{Directory: directory(t, x12.Library(), name), Header: func(string) [][]string { return nil }},
			d:     x12Delimiters,
			check: func(data []byte) ([]edi.Finding, error) {
				return x12.Check(context.Background(), bytes.NewReader(data), x12Delimiters, &x12.CheckOptions{Version: name})
			},
		}
	}
	return out
}

// each calls f with messages of all types of all directories, narrow and wide.
func each(t *testing.T, f func(t *testing.T, s *suite, typ string, valid []tablestest.Segment)) {
	for name, s := range suites(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, typ := range s.maker.Directory.Messages() {
				if strings.HasPrefix(typ, "UN") {
					continue
				}
				for seed, wide := range []float64{0, 0.3, 0.6, 0.9} {
					s.maker.Seed(uint64(seed)) //nolint:gosec // G115: small.
					f(t, s, typ, s.maker.Message(typ, wide))
				}
			}
		})
	}
}

func (s *suite) mustCheck(t *testing.T, segments []tablestest.Segment) []edi.Finding {
	t.Helper()
	found, err := s.check(tablestest.Text(segments, s.d))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func brief(fs []edi.Finding) []string {
	var out []string
	for _, f := range fs {
		out = append(out, f.Rule+" "+f.Segment+" "+f.Loop+" "+f.DataElement+" "+f.Actual)
	}
	return out
}

func TestMadeMessagesAreValid(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *suite, typ string, valid []tablestest.Segment) {
		t.Helper()
		if found := s.mustCheck(t, valid); len(found) > 0 {
			t.Errorf("%s: %q\n%s", typ, brief(found), tablestest.Text(valid, s.d))
		}
	})
}

// TestOneChange makes one change to a valid message: exactly that is found, at its place.
func TestOneChange(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *suite, typ string, valid []tablestest.Segment) {
		t.Helper()
		for _, c := range s.maker.Changes(valid) {
			found := s.mustCheck(t, c.Segments)
			if len(found) != 1 || found[0].Rule != c.Rule || found[0].Position.Segment != c.At || found[0].Segment != c.Tag || found[0].Element != c.Element {
				t.Errorf("%s: %s at %d of %s: %q at %+v\n%s", typ, c.Name, c.At, c.Tag, brief(found), found, tablestest.Text(c.Segments, s.d))
			}
		}
	})
}

// TestMoves: a segment at a wrong place is nearly always found as one fault, and never as a flood.
func TestMoves(t *testing.T) {
	t.Parallel()
	for name, s := range suites(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			total, single, several := 0, 0, 0
			for _, typ := range s.maker.Directory.Messages() {
				if strings.HasPrefix(typ, "UN") {
					continue
				}
				for seed, wide := range []float64{0, 0.3, 0.6, 0.9} {
					s.maker.Seed(uint64(seed)) //nolint:gosec // G115: small.
					valid := s.maker.Message(typ, wide)
					for range 3 {
						for _, c := range s.maker.Moves(valid) {
							found := s.mustCheck(t, c.Segments)
							switch {
							case len(found) == 0: // the table allows it there too
								continue
							case len(found) == 1:
								single++
							case len(found) > 2:
								several++
							}
							total++
							if len(found) > 15 || found[0].Position.Segment < c.At-16 {
								t.Errorf("%s: %s at %d of %s: %q\n%s", typ, c.Name, c.At, c.Tag, brief(found), tablestest.Text(c.Segments, s.d))
							}
						}
					}
				}
			}
			t.Logf("%d changes: %d are one fault, %d are more than two", total, single, several)
			if single*100 < total*80 || several*100 > total*2 {
				t.Errorf("of %d changes %d are one fault and %d are more than two", total, single, several)
			}
		})
	}
}
