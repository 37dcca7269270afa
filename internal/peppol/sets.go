package peppol

import (
	"slices"
	"strings"
	"sync"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/peppol/ubl/syntax"
)

// Core is the id of the set that every other one is based on.
const Core = "en16931"

// core is the CustomizationID of a document that obeys EN 16931 and nothing more.
const core = "urn:cen.eu:en16931:2017"

// en16931 is EN 16931-1 bound to UBL as published by CEN/TC 434 and the European Commission.
var en16931 = sync.OnceValue(func() *Set {
	return &Set{
		ID: Core, Version: "1.3.16", ValidFrom: "2026-04-10",
		Claims: func(customization string) bool { return customization == core },
		Rules: slices.Concat(documentRules(), partyRules(), referenceRules(), paymentRules(), chargeRules(), lineRules(), totalRules(),
			breakdownRules(), decimalRules(), vatRules()),
		Syntax: &Syntax{Rules: syntax.Rules(), Check: syntax.Check},
	}
})

// bis3 is Peppol BIS Billing 3.0.
var bis3 = sync.OnceValue(func() *Set {
	return &Set{
		ID: "peppol", Version: "3.0.21", ValidFrom: "2026-08-17", Base: Core,
		Claims: func(customization string) bool {
			rest, ok := strings.CutPrefix(customization, billing)
			return ok && (rest == "" || rest[0] == '#' || rest[0] == ':')
		},
		Rules: slices.Concat(bisDocumentRules(), bisLineRules(), bisCodeRules(), schemeRules(), norwegianRules(), danishRules(), italianRules(),
			swedishRules(), greekRules(), icelandicRules(), dutchRules(), germanRules()),
	}
})

// Sets returns every version of every rule set that the program has; a season brings a further
// one. The order is that in which they are applied.
func Sets() []*Set { return []*Set{en16931(), bis3()} }

// Choose returns the newest version of the set of each name that is valid on a day (YYYY-MM-DD),
// in the order in which they are applied; where none is valid yet, the oldest. It returns the
// first name that no set has. The name of the structure set is taken and has no Set.
func Choose(names []string, day string) (sets []*Set, unknown string) {
	return choose(Sets(), names, day)
}

func choose(all []*Set, names []string, day string) (sets []*Set, unknown string) {
	for _, name := range names {
		if name != structureSet && !slices.ContainsFunc(all, func(s *Set) bool { return s.ID == name }) {
			return nil, name
		}
	}
	best := map[string]*Set{}
	for _, s := range all {
		if have := best[s.ID]; slices.Contains(names, s.ID) && (have == nil || s.better(have, day)) {
			best[s.ID] = s
		}
	}
	for _, s := range all {
		if best[s.ID] == s {
			sets = append(sets, s)
		}
	}
	return sets, ""
}

// better reports whether s rather than t applies on a day.
func (s *Set) better(t *Set, day string) bool {
	if valid := s.ValidFrom <= day; valid != (t.ValidFrom <= day) {
		return valid
	} else if valid {
		return s.ValidFrom > t.ValidFrom
	}
	return s.ValidFrom < t.ValidFrom
}

// unknownCustomization is the rule about a document that says of itself what no set claims.
var unknownCustomization = Rule{
	ID: "CUSTOMIZATION_UNKNOWN", Severity: edi.Warning, Terms: []string{"BT-24"}, Family: "claimed",
	Message: "No rule set claims this CustomizationID; only the rules of EN 16931 were applied.",
}

// claimed returns those of the sets that the document says it obeys, with the sets that they are
// based on. Where none of them claims it, that is EN 16931 alone. It is not known where no set of
// the program claims it.
func claimed(sets []*Set, customization string) (out []*Set, known bool) {
	apply := map[string]bool{}
	for _, s := range sets {
		if s.Claims(customization) {
			apply[s.ID] = true
			if s.Base != "" {
				apply[s.Base] = true
			}
		}
	}
	if len(apply) == 0 {
		apply[Core] = true
	}
	for _, s := range sets {
		if apply[s.ID] {
			out = append(out, s)
		}
	}
	return out, slices.ContainsFunc(Sets(), func(s *Set) bool { return s.Claims(customization) })
}
