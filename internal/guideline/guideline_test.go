package guideline

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edifact"
	"github.com/edihub/edihub/internal/x12"
)

const orders = `guideline: acme-orders
standard: edifact
directories: [D.96A]
messages:
  - type: ORDERS
    segments:
      - path: BGM
        elements:
          - {element: 1, component: 1, codes: ["220", "105"]}
          - {element: 2, require: true, max: 10}
      - {path: ALI, forbid: true}
      - path: SG2
        require: true
        max: 3
        elements:
          - {element: 1, codes: [BY, SU, DP]}
          - {element: 2, component: 1, require: true, min: 13, max: 13}
          - {element: 4, forbid: true}
      - {path: SG2/SG5/COM, require: true}
      - {path: SG25/QTY, require: true, max: 1}
`

func check(t *testing.T, f *File, body string) []string {
	t.Helper()
	d := edi.Delimiters{Component: ':', Element: '+', Decimal: '.', Release: '?', Segment: '\''}
	found, err := edifact.Check(t.Context(), strings.NewReader(body), d, &edifact.CheckOptions{Version: "UNOC:3", Guideline: f.Guideline})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, x := range found {
		if x.Ruleset != f.Name && x.Ruleset != "D.96A" && x.Ruleset != "D.97X" {
			t.Errorf("ruleset of %+v", x)
		}
		out = append(out, strings.TrimPrefix(x.Rule, "EDI-GUIDELINE-")+" "+x.Segment+" "+x.Loop)
	}
	return out
}

func TestGuideline(t *testing.T) {
	t.Parallel()
	f, err := Parse("acme.yaml", "", []byte(orders))
	if err != nil {
		t.Fatal(err)
	}
	const (
		head  = "UNH+1+ORDERS:D:96A:UN'"
		begin = "BGM+220+PO1'DTM+137:20260301:102'"
		party = "NAD+BY+5412345000013::9'CTA+PD'COM+1:TE'"
		rest  = "LIN+1'QTY+21:5'UNS+S'UNT+1+1'"
	)
	for _, c := range []struct{ name, body, want string }{
		{"what it allows", head + begin + party + rest, ""},
		{"code", head + "BGM+221+PO1'DTM+137'" + party + rest, "ELEMENT-CODE BGM "},
		{"length", head + "BGM+220+PO123456789'DTM+137'" + party + rest, "ELEMENT-LENGTH BGM "},
		{"element missing", head + "BGM+220'DTM+137'" + party + rest, "ELEMENT-MISSING BGM "},
		{"segment not used", head + "BGM+220+1'DTM+137'ALI'" + party + rest, "SEGMENT-UNUSED ALI "},
		{"group missing", head + begin + rest, "LOOP-MISSING NAD SG2"},
		{"group too often", head + begin + party + party + party + party + rest, "LOOP-REPEAT NAD SG2"},
		{"component too short", head + begin + "NAD+BY+54'" + rest, "ELEMENT-LENGTH NAD SG2"},
		{"component missing", head + begin + "NAD+BY+::9'" + rest, "ELEMENT-MISSING NAD SG2;EDI-COMPONENT-MISSING NAD SG2"},
		{"element not used", head + begin + "NAD+BY+5412345000013++X'" + rest, "ELEMENT-UNUSED NAD SG2"},
		{"inner segment missing", head + begin + "NAD+BY+5412345000013'CTA+PD'" + rest, "SEGMENT-MISSING COM SG5"},
		{"segment missing at the end of a group", head + begin + party + "LIN+1'LIN+2'QTY+21:5'UNS+S'UNT+1+1'", "SEGMENT-MISSING QTY SG25"},
		{"segment too often", head + begin + party + "LIN+1'QTY+21:5'QTY+1:1'QTY+1:1'UNS+S'UNT+1+1'", "SEGMENT-REPEAT QTY SG25"},
		{"another type", "UNH+1+INVOIC:D:96A:UN'BGM+380'DTM+137'UNS+S'MOA+77:1'UNT+1+1'", "OTHER  "},
		{"another directory", "UNH+1+ORDERS:D:01B:UN'BGM+220'DTM+137:1:102'UNS+S'UNT+1+1'", "OTHER  "},
	} {
		got := check(t, f, c.body)
		want := strings.Split(c.want, ";")
		if c.want == "" {
			want = nil
		}
		ok := len(got) == len(want)
		for _, w := range want {
			ok = ok && strings.Contains(strings.Join(got, ";"), w)
		}
		if !ok {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

const own = `standard edifact
directory D.97X
e 1001 an..3 1 2
e 1004 an..35
s BGM 1001! 1004?
m MYMSG UNH! BGM! SG1?9(RFF! DTM?2) UNT!
`

func TestTablesOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "own.tbl", own+"e 1154 an..35\ne 2380 an..35\ns RFF 1154!\ns DTM 2380!\n")
	f, err := Load(write(t, dir, "g.yaml", "guideline: mine\nstandard: edifact\ntables: [own.tbl]\nmessages: [{type: MYMSG, segments: [{path: SG1/DTM, require: true}]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := check(t, f, "UNH+1+MYMSG:D:97X:UN'BGM+1+X'RFF+A'UNT+4+1'"); len(got) != 1 || got[0] != "SEGMENT-MISSING DTM SG1" {
		t.Errorf("%q", got)
	}
	if got := check(t, f, "UNH+1+MYMSG:D:97X:UN'BGM+3+X'UNT+3+1'"); len(got) != 1 || got[0] != "EDI-ELEMENT-CODE BGM " {
		t.Errorf("%q", got)
	}
	if len(f.Parts) != 2 {
		t.Errorf("%d parts", len(f.Parts))
	}
}

func TestX12Guideline(t *testing.T) {
	t.Parallel()
	f, err := Parse("g.yaml", "", []byte("guideline: g\nstandard: x12\nmessages: [{type: '850', segments: [{path: PO1/PID, forbid: true}, {path: N1/N3, require: true}, {path: BEG, elements: [{element: 2, codes: [SA]}]}]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	d := edi.Delimiters{Component: '>', Element: '*', Segment: '~'}
	found, err := x12.Check(t.Context(), strings.NewReader("ST*850*0001~BEG*00*NE*1**20260301~N1*BY*A~PO1*1~PID*F****X~SE*6*0001~"), d, &x12.CheckOptions{Version: "004010", Guideline: f.Guideline})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range found {
		got = append(got, x.Rule+" "+x.Segment+" "+x.Loop)
	}
	if want := "EDI-GUIDELINE-ELEMENT-CODE BEG ;EDI-GUIDELINE-SEGMENT-MISSING N3 N1;EDI-GUIDELINE-SEGMENT-UNUSED PID PID"; strings.Join(got, ";") != want {
		t.Errorf("%q", got)
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProblems(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "bad.tbl", "standard edifact\ndirectory D.X\ns BGM 9999!\n")
	write(t, dir, "x.tbl", "standard x12\ndirectory 009999\n")
	write(t, dir, "open.tbl", "standard edifact\ndirectory D.X\nm A UNH! ZZZ! UNT!\n")
	const head = "guideline: g\nstandard: edifact\n"
	for name, c := range map[string]struct {
		text string
		line int
		key  string
		want string
	}{
		"no name":                  {"standard: edifact\nmessages: [{type: ORDERS}]\n", 1, "guideline", "missing"},
		"no standard":              {"guideline: g\n", 1, "standard", "missing"},
		"unknown key":              {head + "mesages: []\n", 3, "mesages", "messages"},
		"nothing":                  {head, 1, "messages", "says nothing"},
		"unknown type":             {head + "messages:\n  - {type: ORDER}\n", 4, "messages[0].type", "no table"},
		"unknown directory":        {head + "directories: [D.99Z]\nmessages: [{type: ORDERS}]\n", 3, "directories", "D.99Z"},
		"unknown path":             {head + "messages:\n  - type: ORDERS\n    segments:\n      - {path: SG2/XXX}\n", 6, "messages[0].segments[0].path", "SG2/XXX"},
		"path into a segment":      {head + "messages:\n  - type: ORDERS\n    segments:\n      - {path: BGM/DTM}\n", 6, "messages[0].segments[0].path", "nothing inside"},
		"mandatory forbidden":      {head + "messages:\n  - type: ORDERS\n    segments:\n      - {path: BGM, forbid: true}\n", 6, "messages[0].segments[0].path", "mandatory"},
		"more than the table":      {head + "messages:\n  - type: ORDERS\n    segments:\n      - {path: BGM, max: 2}\n", 6, "messages[0].segments[0].path", "at most 1"},
		"forbidden and required":   {head + "messages:\n  - type: ORDERS\n    segments:\n      - {path: ALI, forbid: true, require: true}\n", 6, "messages[0].segments[0].forbid", "cannot be"},
		"unknown element":          {head + "messages:\n  - type: ORDERS\n    segments:\n      - path: BGM\n        elements:\n          - {element: 9, require: true}\n", 8, "messages[0].segments[0].elements[0].element", "elements 1 to"},
		"unknown component":        {head + "messages:\n  - type: ORDERS\n    segments:\n      - path: BGM\n        elements:\n          - {element: 1, component: 9}\n", 8, "messages[0].segments[0].elements[0].element", "components"},
		"codes of a composite":     {head + "messages:\n  - type: ORDERS\n    segments:\n      - path: BGM\n        elements:\n          - {element: 1, codes: [A]}\n", 8, "messages[0].segments[0].elements[0].element", "name the component"},
		"mandatory element":        {head + "messages:\n  - type: ORDERS\n    segments:\n      - path: SG2\n        elements:\n          - {element: 1, forbid: true}\n", 8, "messages[0].segments[0].elements[0].element", "mandatory"},
		"lengths":                  {head + "messages:\n  - type: ORDERS\n    segments:\n      - path: SG2\n        elements:\n          - {element: 1, min: 3, max: 2}\n", 8, "messages[0].segments[0].elements[0].element", "fit nothing"},
		"type twice":               {head + "messages: [{type: ORDERS}, {type: ORDERS}]\n", 3, "messages[1].type", "twice"},
		"no table file":            {head + "tables: [none.tbl]\n", 3, "tables", "none.tbl"},
		"bad table file":           {head + "tables: [bad.tbl]\n", 3, "tables", "line 3"},
		"table of another":         {head + "tables: [x.tbl]\n", 3, "tables", "x12"},
		"table with open segments": {head + "tables: [open.tbl]\n", 3, "tables", "ZZZ"},
	} {
		_, err := Parse("g.yaml", dir, []byte(c.text))
		var ps config.Problems
		if !errors.As(err, &ps) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p := ps[0]
		if p.Line != c.line || p.Key != c.key || !strings.Contains(p.Text+p.Remedy, c.want) || p.Remedy == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Load(filepath.Join(dir, "absent.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(orders))
	f.Add([]byte("guideline: g\nstandard: x12\nmessages: [{type: '850', segments: [{path: PO1#2}]}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := Parse("g.yaml", t.TempDir(), data)
		if (g == nil) == (err == nil) {
			t.Errorf("%v, %v", g, err)
		}
	})
}
