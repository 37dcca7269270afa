package tables

import (
	"slices"
	"strconv"

	"github.com/edihub/edihub/internal/edi"
)

// DefaultMaxFindings is how many findings of one message are kept.
const DefaultMaxFindings = 100

// Policy says how severe the findings of an agreement are. The zero value keeps the defaults of
// the rules.
type Policy struct {
	// WarnOnly lists classes whose fatal findings are warnings: "code", "length", "unused".
	WarnOnly []string
	// Severity sets single rules to "fatal", "warning" or "off"; it has the last word.
	Severity map[string]string
}

// Of returns the severity of a rule; it is empty for one that is switched off.
func (p *Policy) Of(rule *edi.Rule) edi.Severity {
	switch p.Severity[rule.ID] {
	case "fatal":
		return edi.Fatal
	case "warning":
		return edi.Warning
	case "off":
		return ""
	}
	if rule.Severity == edi.Fatal && slices.Contains(p.WarnOnly, rule.Class.String()) {
		return edi.Warning
	}
	return rule.Severity
}

// Collector keeps the findings of one message, at most a number of them. Fatal ones push out
// warnings. It is not safe for concurrent use.
type Collector struct {
	policy  *Policy
	most    int
	list    []edi.Finding
	fatal   int // fatal ones in the list
	dropped int
	lost    bool // a fatal one was dropped
	cache   map[string]edi.Severity
}

// newCollector returns an empty one; most 0 means DefaultMaxFindings.
func newCollector(p *Policy, most int) *Collector {
	c := &Collector{cache: make(map[string]edi.Severity)}
	c.reset(p, most)
	return c
}

func (c *Collector) reset(p *Policy, most int) {
	if most <= 0 {
		most = DefaultMaxFindings
	}
	clear(c.cache)
	*c = Collector{policy: p, most: most, cache: c.cache}
}

// Full reports whether nothing that comes could change the verdict or the list.
func (c *Collector) Full() bool { return c.fatal >= c.most }

// severity is that of a rule under the policy, and whether a finding of it would be listed.
func (c *Collector) severity(rule string) (edi.Severity, bool) {
	s, ok := c.cache[rule]
	if !ok {
		r, _ := edi.RuleOf(rule)
		s = c.policy.Of(&r)
		c.cache[rule] = s
	}
	if s == "" {
		return s, false
	}
	if len(c.list) < c.most || s == edi.Fatal && c.fatal < c.most {
		return s, true
	}
	c.dropped++
	c.lost = c.lost || s == edi.Fatal
	return s, false
}

// Add adds a finding whose severity follows from the policy.
func (c *Collector) Add(f edi.Finding) {
	if s, ok := c.severity(f.Rule); ok {
		f.Severity = s
		c.put(f)
	}
}

// put adds a finding that severity let through.
func (c *Collector) put(f edi.Finding) {
	if len(c.list) >= c.most { // fatal, and there is a warning
		for i := len(c.list) - 1; i >= 0; i-- {
			if c.list[i].Severity == edi.Warning {
				c.list = slices.Delete(c.list, i, i+1)
				c.dropped++
				break
			}
		}
	}
	if f.Severity == edi.Fatal {
		c.fatal++
	}
	c.list = append(c.list, f)
}

// Take returns the findings in the order of the document. When some were left out a last one
// says so.
func (c *Collector) Take(stopped bool) []edi.Finding {
	list := c.list
	c.list = nil
	slices.SortStableFunc(list, func(a, b edi.Finding) int {
		if a.Position.Segment != b.Position.Segment {
			return a.Position.Segment - b.Position.Segment
		}
		return a.Element - b.Element
	})
	if c.dropped == 0 && !stopped {
		return list
	}
	f := edi.Finding{
		Rule: edi.RuleFindingsLimit, Severity: edi.Warning, Expected: strconv.Itoa(c.most),
		Message: strconv.Itoa(c.dropped) + " more findings were left out; mend the ones listed and check again",
	}
	if stopped {
		f.Message = "the list is full and the rest of the message was not checked; mend what is listed and check again"
	}
	if c.lost || stopped {
		f.Severity = edi.Fatal
	}
	return append(list, f)
}
