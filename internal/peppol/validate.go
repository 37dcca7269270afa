package peppol

import (
	"strings"
	"sync"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/peppol/ubl"
	"github.com/edihub/edihub/internal/peppol/ubl/structure"
	"github.com/edihub/edihub/internal/peppol/ubl/syntax"
)

// Options say how Validate judges a document.
type Options struct {
	// Sets are the rule sets to choose from, with those that they are based on.
	Sets []*Set
	// Exactly applies all Sets, whatever the document says that it obeys. Otherwise those apply
	// which claim the document, and EN 16931 alone where none does.
	Exactly bool
	// Structure judges the document by the structure of UBL 2.1 too: the set "ubl".
	Structure  bool
	Severities Severities
	PerRule    int // findings of one rule at most; 0 is DefaultPerRule
	Limits     ubl.Limits
}

// Verdict is what Validate found out.
type Verdict struct {
	Document      string // Invoice or CreditNote
	Customization string // BT-24, normalised
	Profile       string // BT-23, normalised
	Sets          []*Set // that were applied
	Findings      []edi.Finding
	Omitted       int // findings beyond PerRule
}

// Valid reports whether there is no fatal finding.
func (v *Verdict) Valid() bool { return !edi.HasFatal(v.Findings) }

// workspace is the memory of one validation.
type workspace struct {
	parser  ubl.Parser
	invoice Invoice
}

// roomy is the number of lines beyond which a workspace is not kept: one huge document must not
// hold its memory for ever.
const roomy = 20_000

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// Validate reads a UBL invoice or credit note and judges it. An error is an *ubl.XMLError or
// ubl.ErrNotUBL: there is no document to judge. It may be called at the same time by many; the
// verdict holds no part of doc.
func Validate(doc []byte, o Options) (*Verdict, error) {
	w := workspaces.Get().(*workspace) //nolint:forcetypeassert // The pool has nothing else.
	defer func() {
		if cap(w.invoice.Lines) < roomy {
			w.invoice.reset()
			w.parser.Release()
			workspaces.Put(w)
		}
	}()
	t, err := w.parser.Parse(doc, o.Limits)
	if err != nil {
		return nil, err
	}
	fill(&w.invoice, t)
	return judge(&w.invoice, t, o), nil
}

// judge applies the sets to an invoice and to the document that it was read from.
func judge(inv *Invoice, t *ubl.Tree, o Options) *Verdict {
	v := &Verdict{
		Document: "Invoice", Customization: strings.Clone(inv.Customization.Norm()), Profile: strings.Clone(inv.Profile.Norm()), Sets: o.Sets,
	}
	if inv.CreditNote {
		v.Document = "CreditNote"
	}
	r := &Report{Severities: o.Severities, PerRule: o.PerRule, source: inv.Source}
	if !o.Exactly {
		var known bool
		if v.Sets, known = claimed(o.Sets, v.Customization); !known {
			r.begin(structureSet, &unknownCustomization)
			r.Differ(inv.at(&inv.Customization), inv.Customization.Text, "")
		}
	}
	r.readable(inv)
	if o.Structure {
		r.applyStructure(t)
	}
	for _, s := range v.Sets {
		r.apply(s, inv)
		r.applySyntax(s, t)
	}
	v.Findings, v.Omitted = r.findings, r.omitted
	for i := range v.Findings { // what stands in the document is gone with it
		v.Findings[i].Actual, v.Findings[i].Expected = brief(v.Findings[i].Actual), brief(v.Findings[i].Expected)
	}
	return v
}

// brief copies a value; of long ones, such as an attachment, only the beginning.
func brief(s string) string {
	const limit = 200
	if len(s) > limit {
		s = head(s[:limit], limit) + "…"
	}
	return strings.ToValidUTF8(strings.Clone(s), "")
}

// readable reports indicators that are neither true nor false: most rules about allowances and
// charges cannot be judged for them.
func (r *Report) readable(inv *Invoice) {
	for i := range inv.Charges {
		if c := &inv.Charges[i]; c.Indicator.Exists() && c.Kind == UnknownKind {
			r.spoil(c.Indicator.Node, badBoolean)
		}
	}
}

// apply judges the rules of a set.
func (r *Report) apply(s *Set, inv *Invoice) {
	perLine := 0
	for i := range s.Rules {
		u := &s.Rules[i]
		if u.Line != nil {
			perLine++
			continue
		}
		r.begin(s.ID, u)
		u.Document(inv, r)
	}
	if perLine == 0 {
		return
	}
	rules, counts := make([]*Rule, 0, perLine), make([]int, perLine)
	for i := range s.Rules {
		if s.Rules[i].Line != nil {
			rules = append(rules, &s.Rules[i])
		}
	}
	for i := range inv.Lines { // all rules of a line while it is at hand
		l := &inv.Lines[i]
		for j, u := range rules {
			r.set, r.rule, r.count, r.broken = s.ID, u, counts[j], false
			if !u.Line(inv, l, r) {
				r.Fail(l.Node)
			}
			counts[j] = r.count
		}
	}
}

// applyStructure judges the document by the structure of UBL 2.1.
func (r *Report) applyStructure(t *ubl.Tree) {
	var counts map[*structure.Rule]*int
	structure.Check(t, func(u *structure.Rule, n ubl.Node, actual, expected string) {
		if counts == nil {
			counts = map[*structure.Rule]*int{}
		}
		if counts[u] == nil {
			counts[u] = new(int)
		}
		r.add(structureSet, &Rule{ID: u.ID, Severity: u.Severity, Message: u.Message}, counts[u], n, actual, expected)
	})
}

// applySyntax judges the rules of a set about elements.
func (r *Report) applySyntax(s *Set, t *ubl.Tree) {
	if s.Syntax == nil {
		return
	}
	var counts map[*syntax.Rule]*int
	s.Syntax.Check(t, func(u *syntax.Rule, n ubl.Node, actual string) {
		if counts == nil {
			counts = map[*syntax.Rule]*int{}
		}
		if counts[u] == nil {
			counts[u] = new(int)
		}
		r.add(s.ID, &Rule{ID: u.ID, Severity: u.Severity, Terms: u.Terms, Message: u.Message}, counts[u], n, actual, "")
	})
}
