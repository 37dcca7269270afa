package validate

import (
	"bytes"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/guideline"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/store"
)

// document makes what the stage hands to a checker.
func document(standard edi.Standard, version, body string, v partner.Validate) *Document {
	d := edi.Delimiters{Component: ':', Element: '+', Decimal: '.', Release: '?', Segment: '\''}
	if standard == edi.X12 {
		d = edi.Delimiters{Component: '>', Element: '*', Segment: '~'}
	}
	return &Document{
		Message:     &store.Message{Envelope: edi.Message{Version: version, Offset: 100}},
		Interchange: &store.Interchange{Envelope: edi.Interchange{Standard: standard, Version: "UNOC:3", Delimiters: d}},
		Agreement:   &partner.Agreement{Validate: v},
		Content:     bytes.NewReader([]byte(body)),
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	g, err := guideline.Parse("g.yaml", "", []byte("guideline: g\nstandard: edifact\nmessages: [{type: ORDERS, segments: [{path: ALI, forbid: true}]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	const orders = "UNH+1+ORDERS:D:96A:UN'BGM+ZZZ+PO1+9'DTM+137:20260301:102'ALI+DE'UNS+S'UNT+6+1'"
	const sets = "ST*850*0001~BEG*00*SA*TOO LONG A NUMBER FOR BEG03 SURELY**20260301~PO1*1~XXX*1~SE*5*0001~"
	for _, c := range []struct {
		name     string
		standard edi.Standard
		body     string
		v        partner.Validate
		want     string
	}{
		{"envelope", edi.EDIFACT, orders, partner.Validate{Level: "envelope"}, ""},
		{"off", edi.X12, sets, partner.Validate{Level: "off"}, ""},
		{"tables", edi.EDIFACT, orders, partner.Validate{Level: "tables", Rulebook: g.Guideline}, "EDI-ELEMENT-CODE fatal"},
		{"warn_only", edi.EDIFACT, orders, partner.Validate{Level: "tables", WarnOnly: []string{"code", "length"}}, "EDI-ELEMENT-CODE warning"},
		{"severity has the last word", edi.EDIFACT, orders, partner.Validate{Level: "tables", WarnOnly: []string{"code"}, Severity: map[string]string{"EDI-ELEMENT-CODE": "fatal"}}, "EDI-ELEMENT-CODE fatal"},
		{"off by rule", edi.EDIFACT, orders, partner.Validate{Level: "tables", Severity: map[string]string{"EDI-ELEMENT-CODE": "off"}}, ""},
		{"guideline", edi.EDIFACT, orders, partner.Validate{Level: "guideline", WarnOnly: []string{"unused"}, Rulebook: g.Guideline}, "EDI-ELEMENT-CODE fatal, EDI-GUIDELINE-SEGMENT-UNUSED warning"},
		{"X12", edi.X12, sets, partner.Validate{Level: "tables", WarnOnly: []string{"length"}}, "EDI-ELEMENT-LONG warning, EDI-SEGMENT-UNKNOWN fatal"},
	} {
		version := "D:96A:UN"
		if c.standard == edi.X12 {
			version = "004010"
		}
		var got []string
		for _, checker := range Checkers()[c.standard] {
			found, err := checker.Check(t.Context(), document(c.standard, version, c.body, c.v))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				got = append(got, f.Rule+" "+string(f.Severity))
				if f.Offset < 100 {
					t.Errorf("%s: offset %d is not that of the file", c.name, f.Offset)
				}
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
