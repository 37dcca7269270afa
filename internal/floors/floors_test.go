package floors_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/edihub/edihub/"

// floorOf is the table of docs/architecture.md. The most specific name wins.
var floorOf = map[string]int{
	"cmd/edihub":            6,
	"internal/app":          5,
	"internal/app/demo":     5,
	"internal/app/loadtest": 5,
	"internal/app/measure":  5,
	"internal/admin":        4,
	"internal/as2/receiver": 4,
	"internal/as2/sender":   4,
	"internal/endpoint":     4,
	"internal/pipeline":     3,
	"internal/broker/local": 2,
	"internal/store/sqlite": 2,
	"internal/broker":       1,
	"internal/store":        1,
	"internal/idempotency":  1,
	"internal/partner":      1,
	"internal/guideline":    1,
	"internal/spool":        1,
	"internal/verdict":      1,
	"internal/edi":          0,
	"internal/edifact":      0,
	"internal/x12":          0,
	"internal/peppol":       0,
	"internal/cms":          0,
	"internal/as2":          0,
	"internal/edi/scan":     0,
	"internal/edi/charset":  0,
	"internal/inspect":      1,
	"internal/edi/tables":   0,
	"internal/edi/ack":      0,
	"migrations":            1,
}

// free packages may be imported from floor 1 up. Each stays below what it serves.
var free = []string{"internal/config", "internal/observe", "internal/clock"}

// tools stand outside of the program.
var tools = []string{"internal/floors", "internal/tools"}

// sameFloor are imports on one floor that DESIGN §5 allows beside a parent folder's package.
var sameFloor = map[string][]string{
	"internal/as2":               {"internal/cms"},
	"internal/edi/tables":        {"internal/edi/scan"},
	"internal/edifact":           {"internal/edi/charset", "internal/edi/scan", "internal/edi/tables", "internal/edi/ack"},
	"internal/x12":               {"internal/edi/scan", "internal/edi/tables", "internal/edi/ack"},
	"internal/peppol":            {"internal/peppol/ubl", "internal/peppol/ubl/structure", "internal/peppol/ubl/syntax", "internal/peppol/codes"},
	"internal/peppol/ubl/syntax": {"internal/peppol/codes"},
	"internal/peppol/sbdh":       {"internal/peppol/ubl"},
	"internal/idempotency":       {"internal/store"},
	"internal/partner":           {"internal/store", "internal/guideline"},
	"internal/store/storetest":   {"internal/store"},
	"internal/as2/sender":        {"internal/endpoint/dial"},
	"internal/endpoint/http":     {"internal/endpoint/dial"},
	"internal/app/demo":          {"internal/app", "internal/app/peer"},
	"internal/app/hubtest":       {"internal/app", "internal/app/peer"},
	"internal/app/loadtest":      {"internal/app", "internal/app/peer"},
	"internal/app/measure":       {"internal/app", "internal/app/peer", "internal/app/loadtest"},
	"internal/pipeline":          {"internal/pipeline/send"},
}

// drivers are the only packages that may know their library.
var drivers = map[string]string{
	"modernc.org/sqlite":                  "internal/store/sqlite",
	"github.com/rabbitmq/amqp091-go":      "internal/broker/rabbit",
	"github.com/jackc/pgx/v5":             "internal/store/postgres",
	"github.com/spf13/cobra":              "cmd/edihub",
	"github.com/go-chi/chi/v5":            "internal/admin",
	"github.com/pressly/goose/v3":         "internal/store/sqlite",
	"github.com/prometheus/client_golang": "internal/observe",
}

type pkg struct {
	ImportPath string
	Doc        string
	Imports    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports", module+"...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, stderr.String())
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 15 {
		t.Fatalf("go list found %d packages: the test looks at the wrong place", len(all))
	}
	return all
}

// floor finds the floor of a package by its own name or that of the nearest parent folder.
func floor(name string) (int, bool) {
	for n := name; n != "." && n != "/"; n = path.Dir(n) {
		if f, ok := floorOf[n]; ok {
			return f, true
		}
	}
	return 0, false
}

func under(name string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") })
}

func TestFloors(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if under(name, tools) {
			continue
		}
		if p.Doc == "" {
			t.Errorf("%s has no package comment", name)
		}
		own, ok := floor(name)
		if !ok && !under(name, free) {
			t.Errorf("%s stands on no floor: add it to the table", name)
			continue
		}
		for _, imp := range p.Imports {
			for lib, owner := range drivers {
				if (imp == lib || strings.HasPrefix(imp, lib+"/")) && !strings.HasPrefix(name, owner) && !strings.HasSuffix(name, "test") {
					if lib == "github.com/prometheus/client_golang" && name == "internal/admin" {
						continue // serves what observe gathers
					}
					t.Errorf("%s imports %s, which only %s may know", name, imp, owner)
				}
			}
			if !strings.HasPrefix(imp, module) {
				continue
			}
			judge(t, name, strings.TrimPrefix(imp, module), own)
		}
	}
}

func judge(t *testing.T, name, imp string, own int) {
	t.Helper()
	if under(imp, free) {
		if own < 1 && !under(name, free) {
			t.Errorf("%s on floor 0 imports %s", name, imp)
		}
		return
	}
	other, _ := floor(imp)
	switch {
	case under(name, free):
		if name == "internal/observe" && other <= 3 {
			return // metrics are told by the pipeline's own types
		}
		t.Errorf("%s imports %s, but everything may import it", name, imp)
	case other < own:
	case other == own && imp == "internal/edi": // all of floor 0 import the shared values
	case other == own && strings.HasPrefix(name, imp+"/"): // the parent folder's package
	case other == own && slices.Contains(sameFloor[name], imp):
	default:
		t.Errorf("%s (floor %d) imports %s (floor %d)", name, own, imp, other)
	}
}
