package peppol

import (
	"slices"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/edi"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	old := &Set{ID: "peppol", Version: "3.0.20", ValidFrom: "2026-02-23"}
	now := &Set{ID: "peppol", Version: "3.0.21", ValidFrom: "2026-08-17"}
	next := &Set{ID: "peppol", Version: "3.0.22", ValidFrom: "2027-02-22"}
	ground := &Set{ID: Core, Version: "1.3.16", ValidFrom: "2026-05-11"}
	for _, all := range [][]*Set{{ground, old, now, next}, {next, now, old, ground}} {
		for day, want := range map[string]string{
			"2025-01-01": "3.0.20", "2026-02-23": "3.0.20", "2026-08-16": "3.0.20", "2026-08-17": "3.0.21", "2027-02-21": "3.0.21", "2027-02-22": "3.0.22", "2030-01-01": "3.0.22",
		} {
			sets, unknown := choose(all, []string{"peppol", structureSet}, day)
			if unknown != "" || len(sets) != 1 || sets[0].Version != want {
				t.Errorf("%s: %v %q, want %s", day, sets, unknown, want)
			}
		}
	}
	if sets, unknown := Choose([]string{"peppol", "en16931"}, "2026-10-01"); unknown != "" || len(sets) != 2 || sets[0].ID != Core {
		t.Errorf("sets %v, unknown %q: the base goes first", sets, unknown)
	}
	if _, unknown := Choose([]string{"en16931", "xrechnung"}, "2026-10-01"); unknown != "xrechnung" {
		t.Errorf("unknown %q", unknown)
	}
}

// TestNextSeason makes a further version of a set as docs/rules.md says: one rule goes, one comes,
// and neither engine nor other sets know of it.
func TestNextSeason(t *testing.T) {
	t.Parallel()
	next := *bis3()
	next.Version, next.ValidFrom = "3.0.22", "2027-02-22"
	next.Rules = append(slices.DeleteFunc(slices.Clone(next.Rules), func(u Rule) bool { return u.ID == "PEPPOL-EN16931-R003" }),
		document("PEPPOL-EN16931-R999", "BT-9", "The invoice has no due date.", func(inv *Invoice, _ *Report) bool { return inv.Due.Exists() }))
	doc := base(t).edit(t, "-cbc:BuyerReference", "-cac:OrderReference", "-cbc:DueDate").bytes()
	for day, want := range map[string]string{"2026-12-01": "PEPPOL-EN16931-R003", "2027-03-01": "PEPPOL-EN16931-R999"} {
		sets, _ := choose([]*Set{en16931(), bis3(), &next}, []string{Core, "peppol"}, day)
		v, err := Validate(doc, Options{Sets: sets})
		if err != nil || len(v.Findings) != 1 || v.Findings[0].Rule != want {
			t.Errorf("%s: %v %v, want %s", day, v.Findings, err, want)
		}
	}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	for customization, want := range map[string]string{
		billing:                   "en16931 peppol",
		" " + billing + "\n":      "en16931 peppol",
		billing + "#conformant#x": "en16931 peppol",
		"urn:cen.eu:en16931:2017": "en16931",
		billing + "1":             "en16931 unknown",
		"urn:cen.eu:en16931:2017#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0": "en16931 unknown",
		"": "en16931 unknown",
	} {
		v, err := Validate(base(t).edit(t, "cbc:CustomizationID="+customization).bytes(), Options{Sets: Sets()})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range v.Sets {
			got = append(got, s.ID)
		}
		for _, f := range v.Findings {
			if f.Rule == "CUSTOMIZATION_UNKNOWN" {
				got = append(got, "unknown")
				if f.Severity != edi.Warning || f.Ruleset != structureSet || f.Location != "/Invoice/cbc:CustomizationID[1]" {
					t.Errorf("finding %+v", f)
				}
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: %s, want %s", customization, s, want)
		}
	}
}

func TestSeveritiesAndLimit(t *testing.T) {
	t.Parallel()
	doc := manyLines(t, 300)
	for _, l := range doc.kids {
		if l.name == "cac:InvoiceLine" {
			l.edit(t, "-cac:Item/cbc:Name", "cbc:InvoicedQuantity@unitCode=nothing")
		}
	}
	judge := func(o Options) *Verdict {
		o.Sets, o.Exactly = Sets(), true
		v, err := Validate(doc.bytes(), o)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	count := func(v *Verdict, rule string, severity edi.Severity) (n int) {
		for _, f := range v.Findings {
			if f.Rule == rule && f.Severity == severity {
				n++
			}
		}
		return n
	}
	for _, rule := range []string{"BR-25", "BR-CL-23", "PEPPOL-EN16931-R130"} {
		v := judge(Options{})
		if n := count(v, rule, edi.Fatal); n != DefaultPerRule || v.Valid() {
			t.Errorf("%s: %d findings", rule, n)
		}
		if v.Omitted != 3*200 {
			t.Errorf("%s: %d omitted", rule, v.Omitted)
		}
		if n := count(judge(Options{PerRule: 1000}), rule, edi.Fatal); n != 300 {
			t.Errorf("%s: %d findings of 300", rule, n)
		}
		if n := count(judge(Options{Severities: Severities{rule: "warning"}}), rule, edi.Warning); n != DefaultPerRule {
			t.Errorf("%s: %d warnings", rule, n)
		}
		if v := judge(Options{Severities: Severities{rule: Off}}); count(v, rule, edi.Fatal)+count(v, rule, edi.Warning) != 0 || v.Omitted != 2*200 {
			t.Errorf("%s is off, findings %d, omitted %d", rule, len(v.Findings), v.Omitted)
		}
	}
}

// TestLocations pins where findings point to.
func TestLocations(t *testing.T) {
	t.Parallel()
	d := base(t).edit(t, lineTwo+"cbc:LineExtensionAmount=600.03", total+"cbc:TaxInclusiveAmount=1140.5", "-cbc:ID")
	want := map[string]string{
		"BR-02":               "/Invoice",
		"PEPPOL-EN16931-R120": "/Invoice/cac:InvoiceLine[2]",
		"BR-CO-15":            "/Invoice/cac:LegalMonetaryTotal[1]/cbc:TaxInclusiveAmount[1]",
	}
	lines := strings.Split(string(d.bytes()), "\n")
	for _, f := range both(t, d.bytes()).Findings {
		if w, ok := want[f.Rule]; ok {
			delete(want, f.Rule)
			name := f.Location[strings.LastIndexByte(f.Location, '/')+1:]
			name, _, _ = strings.Cut(name, "[")
			if f.Location != w || !strings.Contains(lines[f.Line-1], "<"+name) {
				t.Errorf("%s at %s, line %d: %s", f.Rule, f.Location, f.Line, lines[f.Line-1])
			}
		}
		if f.Rule == "BR-CO-15" && (f.Actual != "1140.5" || f.Expected != "1140.00" || !slices.Equal(f.Terms, []string{"BT-112", "BT-109", "BT-110"})) {
			t.Errorf("finding %+v", f)
		}
	}
	if len(want) > 0 {
		t.Errorf("not reported: %v", want)
	}
}

// TestUnreadableValues has the documents on which the reference stops: the value is a finding,
// once, and rules that do not need it are judged.
func TestUnreadableValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edits []string
		want  string
	}{
		"decimal": {[]string{total + "cbc:PayableAmount=1,040.00"}, "VALUE-DECIMAL"},
		"date":    {[]string{"cac:InvoicePeriod/cbc:EndDate=30.09.2026"}, "VALUE-DATE"},
		"boolean": {[]string{low + "cbc:ChargeIndicator=no"}, "VALUE-BOOLEAN"},
		"name":    {[]string{"2" + seller + "cac:PartyLegalEntity/cbc:RegistrationName"}, "VALUE-REPEATED"},
		"number":  {[]string{"2cbc:ID"}, "VALUE-REPEATED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := both(t, base(t).edit(t, append(c.edits, "-cbc:BuyerReference", "-cac:OrderReference")...).bytes())
			values, others := 0, false
			for _, f := range v.Findings {
				if strings.HasPrefix(f.Rule, "VALUE-") {
					values++
					if f.Rule != c.want || f.Severity != edi.Fatal || f.Ruleset != structureSet || f.Location == "" {
						t.Errorf("finding %+v", f)
					}
				}
				others = others || f.Rule == "PEPPOL-EN16931-R003"
			}
			if values != 1 || !others {
				t.Errorf("%d findings about the value, other rules judged: %v", values, others)
			}
		})
	}
}

func TestWorkspaceIsClean(t *testing.T) {
	t.Parallel()
	clean := len(both(t, base(t).bytes()).Findings)
	for range 20 { // documents of other shapes between must leave nothing behind
		both(t, manyLines(t, 5).edit(t, lineOne+"cbc:LineExtensionAmount=1").bytes())
		both(t, creditNote(t).edit(t, "-cac:TaxTotal").bytes())
		if n := len(both(t, base(t).bytes()).Findings); n != clean {
			t.Fatalf("%d findings, alone %d", n, clean)
		}
	}
}
