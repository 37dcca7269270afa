package parse

import (
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// CodeUsage is the code of what carries a test indicator that the agreement does not take, or
// lacks the one that it asks for.
const CodeUsage = "USAGE_NOT_AGREED"

// RuleUsage is the rule of the finding that says so.
const RuleUsage = "EDI-TEST-INDICATOR"

// usageOf is what an agreement takes at this moment: "production", "test" or "both". A partner
// whose status is testing may try production and test documents before its agreement says so.
func usageOf(reg *partner.Registry, ic *store.Interchange, a *partner.Agreement) string {
	if a.Usage != "production" {
		return a.Usage
	}
	for _, id := range []string{ic.From, ic.To} {
		if p := reg.Partner(id); p != nil && p.Status == partner.Testing {
			return "both"
		}
	}
	return a.Usage
}

// usage says what is wrong with the test indicator (UNB 0035, ISA15) under an agreement. A test
// that is taken for an order costs goods, and an order that is taken for a test is lost, so either
// is rejected and the sender is told. UBL and opaque documents carry no indicator.
func usage(reg *partner.Registry, ic *store.Interchange, a *partner.Agreement) (edi.Finding, bool) {
	f := edi.Finding{Rule: RuleUsage, Severity: edi.Fatal}
	f.Position.Segment, f.Offset = 1, ic.Envelope.Offset
	test, production := "1", ""
	switch ic.Envelope.Standard {
	case edi.EDIFACT: // ISO 9735-1 annex C, UNB 0035
		f.Segment, f.Element = "UNB", 11
	case edi.X12: // X12.5 ISA15
		f.Segment, f.Element, test, production = "ISA", 15, "T", "P"
	case edi.UBL, edi.Opaque:
		return f, false
	}
	switch takes := usageOf(reg, ic, a); {
	case takes == "production" && ic.Envelope.Test:
		f.Actual, f.Expected = test, production
		f.Message = "the interchange is marked as a test, and no test documents are agreed; send it without the test indicator, or agree on usage: test or both"
		return f, true
	case takes == "test" && !ic.Envelope.Test:
		f.Actual, f.Expected = production, test
		f.Message = "the interchange is not marked as a test, and only test documents are agreed; set the test indicator, or agree on usage: production or both"
		return f, true
	}
	return f, false
}

// usageOfMessage rejects a message whose agreement does not take its interchange's test indicator.
// The interchange falls as a whole where that is so of every message.
func (w *walker) usageOfMessage(m *store.Message) {
	if w.usages == nil {
		w.usages = map[string]*edi.Finding{}
	}
	f, known := w.usages[m.Envelope.Type]
	if !known {
		a := pipeline.Resolve(w.f.task.Registry, w.ic, &m.Envelope)
		if found, wrong := usage(w.f.task.Registry, w.ic, a); wrong {
			f = &found
		}
		w.usages[m.Envelope.Type] = f
	}
	if f != nil {
		m.State, m.Code = store.StateRejected, CodeUsage
		m.Findings = append(m.Findings, *f)
		if w.misuses++; w.misused == nil {
			w.misused = f
		}
	}
}
