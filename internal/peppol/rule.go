package peppol

import (
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/peppol/ubl"
	"github.com/edihub/edihub/internal/peppol/ubl/syntax"
)

// Rule is one rule of a rule set. Exactly one of Document and Line is set.
type Rule struct {
	ID       string
	Severity edi.Severity
	Terms    []string // BT and BG terms of EN 16931-1 that it is about
	Message  string   // one line
	Family   string   // where its code stands

	// Document is called once. It reports where the rule fails.
	Document func(*Invoice, *Report)
	// Line is called for each line, in document order, and reports whether the rule holds.
	Line func(*Invoice, *Line, *Report) bool
}

// warning returns the rule with the severity of a warning.
func (u Rule) warning() Rule {
	u.Severity = edi.Warning
	return u
}

// family marks rules with the place of their code.
func family(name string, rules ...Rule) []Rule {
	for i := range rules {
		rules[i].Family = name
	}
	return rules
}

// document makes a rule that is judged once and reported at the document element.
func document(id, terms, message string, holds func(*Invoice, *Report) bool) Rule {
	return whole(id, terms, message, func(inv *Invoice, r *Report) {
		if !holds(inv, r) {
			r.Fail(inv.Root)
		}
	})
}

// whole makes a rule that reports for itself.
func whole(id, terms, message string, check func(*Invoice, *Report)) Rule {
	return Rule{ID: id, Severity: edi.Fatal, Terms: fields(terms), Message: message, Document: check}
}

// perLine makes a rule that is judged for each line.
func perLine(id, terms, message string, holds func(*Invoice, *Line, *Report) bool) Rule {
	return Rule{ID: id, Severity: edi.Fatal, Terms: fields(terms), Message: message, Line: holds}
}

// element is a part of the invoice that a rule is judged for.
type element[T any] interface {
	*T
	node() Node
}

// each makes a rule that is judged for each part of a list that is chosen.
func each[T any, P element[T]](id, terms, message string, list func(*Invoice) []T, chosen func(P) bool, holds func(*Invoice, P, *Report) bool) Rule {
	return whole(id, terms, message, func(inv *Invoice, r *Report) {
		parts := list(inv)
		for i := range parts {
			p := P(&parts[i])
			if chosen != nil && !chosen(p) {
				continue
			}
			r.fresh()
			if !holds(inv, p, r) {
				r.Fail(p.node())
			}
		}
	})
}

func fields(s string) []string {
	var out []string
	for s != "" {
		i := 0
		for i < len(s) && s[i] != ' ' {
			i++
		}
		if i > 0 {
			out = append(out, s[:i])
		}
		if i == len(s) {
			break
		}
		s = s[i+1:]
	}
	return out
}

// Set is one version of a rule set.
type Set struct {
	ID        string // as agreements and findings name it
	Version   string
	ValidFrom string // the first day on which senders may use it, YYYY-MM-DD
	Base      string // the set that this one adds to, which applies too; "" for none
	// Claims reports whether a document with this CustomizationID says that it obeys the set.
	Claims func(customization string) bool
	Rules  []Rule
	Syntax *Syntax // nil for none
}

// Syntax are rules of a set about the elements of the document rather than about the invoice.
type Syntax struct {
	Rules []syntax.Rule
	Check func(t *ubl.Tree, emit syntax.Emit)
}

// Severities changes the severity of rules: rule id to "fatal", "warning" or "off". It is how an
// agreement is more lenient or stricter than the sets.
type Severities map[string]string

// Off is the severity of a rule that is not reported.
const Off = "off"

// DefaultPerRule is how many findings of one rule a report holds unless told otherwise. A
// document of a hundred thousand lines that all lack the same thing needs no hundred thousand
// findings.
const DefaultPerRule = 100

// Report collects the findings about one document. The zero value is ready.
type Report struct {
	Severities Severities
	PerRule    int // findings of one rule at most; 0 is DefaultPerRule

	findings []edi.Finding
	source   Source
	set      string
	rule     *Rule
	count    int // findings of the rule
	omitted  int
	broken   bool // a value that the rule needs cannot be read
	values   map[Node]bool
	spoiled  [4]int // findings of each of valueRules
}

// Findings returns what was found, in the order of sets and rules, and by place within a rule.
func (r *Report) Findings() []edi.Finding { return r.findings }

// Omitted returns how many findings were dropped because their rule had enough.
func (r *Report) Omitted() int { return r.omitted }

// begin makes u the rule that Fail speaks of.
func (r *Report) begin(set string, u *Rule) {
	r.set, r.rule, r.count, r.broken = set, u, 0, false
}

// fresh begins with the next element of the same rule.
func (r *Report) fresh() { r.broken = false }

// Fail reports that the rule fails at an element. A rule that needs a value which cannot be read
// says nothing: the value itself is reported.
func (r *Report) Fail(n Node) { r.Differ(n, "", "") }

// Differ reports that the rule fails at an element, with what stands there and what should.
func (r *Report) Differ(n Node, actual, expected string) {
	if r.broken {
		return
	}
	r.add(r.set, r.rule, &r.count, n, actual, expected)
}

func (r *Report) add(set string, u *Rule, count *int, n Node, actual, expected string) {
	severity := u.Severity
	if s, ok := r.Severities[u.ID]; ok {
		if s == Off {
			return
		}
		severity = edi.Severity(s)
	}
	limit := r.PerRule
	if limit <= 0 {
		limit = DefaultPerRule
	}
	*count++
	if *count > limit {
		r.omitted++
		return
	}
	f := edi.Finding{
		Rule: u.ID, Severity: severity, Ruleset: set, Terms: u.Terms, Message: u.Message, Actual: actual, Expected: expected,
	}
	if r.source != nil && n != 0 {
		f.Location, f.Line = r.source.Path(n), r.source.Line(n)
	}
	r.findings = append(r.findings, f)
}

// The rules about values that other rules cannot be judged without. The reference stops at such
// a value; here it is a finding and the other rules go on.
var valueRules = family("valueRules",
	Rule{ID: "VALUE-DECIMAL", Severity: edi.Fatal, Message: "The value is no decimal number; write digits with a point and no exponent."},
	Rule{ID: "VALUE-DATE", Severity: edi.Fatal, Message: "The value is no date; write YYYY-MM-DD."},
	Rule{ID: "VALUE-BOOLEAN", Severity: edi.Fatal, Message: "The value is no boolean; write true or false."},
	Rule{ID: "VALUE-REPEATED", Severity: edi.Fatal, Message: "The element stands more than once where one value is needed; keep one."},
)

// Indexes of valueRules.
const (
	badDecimal = iota
	badDate
	badBoolean
	badRepeated
)

// structureSet is the set of findings about the document's structure.
const structureSet = "ubl"

// spoil reports a value that cannot be read and silences the rule at this element.
func (r *Report) spoil(n Node, which int) {
	r.broken = true
	if r.values == nil {
		r.values = map[Node]bool{}
	}
	if r.values[n] {
		return
	}
	r.values[n] = true
	r.add(structureSet, &valueRules[which], &r.spoiled[which], n, "", "")
}

// single reports whether a field is one value or absent.
func (r *Report) single(f *Field) bool {
	if f.Repeated {
		r.spoil(f.Node, badRepeated)
		return false
	}
	return true
}

// decimal returns the value of a number as a cast to xs:decimal would; it is not ok for an absent
// one and, with a finding, for a malformed one.
func (r *Report) decimal(n *Number) (Decimal, bool) {
	if n.Node == 0 || !r.single(&n.Field) {
		return Decimal{}, false
	}
	if !n.OK {
		r.spoil(n.Node, badDecimal)
	}
	return n.Value, n.OK
}

// sign returns -1, 0 or 1 as a comparison of the text with the number 0 would see it, in
// xs:double; it is not ok for an absent or malformed number, and for NaN.
func (r *Report) sign(n *Number) (int, bool) {
	if n.Node == 0 {
		return 0, false
	}
	if n.OK {
		return n.Value.Sign(), true
	}
	f, ok := parseDouble(n.Text)
	switch {
	case !ok:
		r.spoil(n.Node, badDecimal)
	case f < 0:
		return -1, true
	case f > 0:
		return 1, true
	case f == 0:
		return 0, true
	}
	return 0, false
}

// date returns the days of an xs:date; see parseDate.
func (r *Report) date(f *Field) (moment, bool) {
	if f.Node == 0 || !r.single(f) {
		return moment{}, false
	}
	d, ok := parseDate(f.Text)
	if !ok {
		r.spoil(f.Node, badDate)
	}
	return d, ok
}
