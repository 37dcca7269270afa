package edi

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	t.Parallel()
	all := Rules()
	seen := map[string]bool{}
	for i, r := range all {
		if seen[r.ID] || i > 0 && all[i-1].ID >= r.ID {
			t.Errorf("%s stands twice or out of order", r.ID)
		}
		seen[r.ID] = true
		if !strings.HasPrefix(r.ID, "EDI-") || r.Class == ClassNone || r.Scope == 0 || r.Severity != Fatal && r.Severity != Warning {
			t.Errorf("%+v is not complete", r)
		}
		if got, ok := RuleOf(r.ID); !ok || got != r {
			t.Errorf("RuleOf(%s) is %+v, %v", r.ID, got, ok)
		}
		if r.Severity == Fatal && r.Codes == (Codes{}) {
			t.Errorf("%s is fatal and no acknowledgement can tell it", r.ID)
		}
		if strings.Contains(r.Class.String(), "-") || r.Scope.String() == "unknown" {
			t.Errorf("%s: class %s, scope %s", r.ID, r.Class, r.Scope)
		}
	}
	if r, ok := RuleOf("BR-CO-15"); ok || r.Class != ClassNone || r.Severity != Fatal {
		t.Errorf("BR-CO-15 is %+v, %v", r, ok)
	}
}

// TestCodesAreInTheirLists keeps each code inside the code list of the element that carries it.
func TestCodesAreInTheirLists(t *testing.T) {
	t.Parallel()
	contrl := regexp.MustCompile(`^(2|7|1[2-9]|2[0-9]|3[0-9]|40)?$`) // ISO 9735-4 0085, as far as syntax 3 has it
	x12 := map[Scope]*regexp.Regexp{
		ScopeInterchange: regexp.MustCompile(`^(0[0-3][0-9])?$`),                // X12.5 I18
		ScopeGroup:       regexp.MustCompile(`^([1-9]|1[0-9]|2[0-6])?$`),        // X12.3 716
		ScopeMessage:     regexp.MustCompile(`^([1-9]|1[0-9]|2[0-7]|I5|I6)?$`),  // X12.3 718, 618
		ScopeSegment:     regexp.MustCompile(`^([1-8]|I4|I6|I7|I8|I9)?$`),       // X12.3 720, 620
		ScopeElement:     regexp.MustCompile(`^([1-9]|1[0-3]|I6|I9|I1[0-3])?$`), // X12.3 723, 621
	}
	for _, r := range Rules() {
		if !contrl.MatchString(r.Codes.CONTRL) {
			t.Errorf("%s: 0085 has no %q", r.ID, r.Codes.CONTRL)
		}
		if !x12[r.Scope].MatchString(r.Codes.X12Error) || !x12[r.Scope].MatchString(r.IK()) {
			t.Errorf("%s: no X12 code list of a %s has %q or %q", r.ID, r.Scope, r.Codes.X12Error, r.IK())
		}
		if r.Scope == ScopeElement && regexp.MustCompile(`^1[1-9]`).MatchString(r.Codes.X12Error) {
			t.Errorf("%s: 723 of 004010 ends at 10", r.ID)
		}
	}
}

// TestFindingsDocument keeps docs/findings.md in step; `make generate` writes its table.
func TestFindingsDocument(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	for _, r := range Rules() {
		if !slices.Contains(lines, r.Row()) {
			t.Errorf("docs/findings.md lacks the row (run make generate)\n%s", r.Row())
		}
	}
}
