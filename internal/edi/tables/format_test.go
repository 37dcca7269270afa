package tables

import (
	"errors"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/scan"
)

const small = `# a directory
standard edifact
directory D.1
e 1 an..3 A BB LONGERTHANEIGHT
e 2 n..3
e 3 a2
c C1 1! 2?
s UNH 1?
s AAA 1! 2? 3? C1?2 | D1:0203
s BBB 1? 2? 3- | D7:0102 D5:0201
s CCC 1? 2? 3? | D2:0102 D3:010203 D4:0203
s DDD 1? 2? | D6:0102
s EEE 1?
s UNT 1?
m MSG UNH! AAA!2 G1?3(BBB! CCC?0 G2?(DDD! AAA?)) G3!(EEE!) UNT!
`

func read(t *testing.T, text string) *Directory {
	t.Helper()
	d, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRead(t *testing.T) {
	t.Parallel()
	d := read(t, small)
	n := d.Nodes("MSG")
	if d.Name != "D.1" || len(n) != 5 || n[1].Max != 2 || n[2].Children[1].Max != 0 || n[2].Children[2].Children[1].Name != "AAA" || !n[3].Mandatory || n[3].Children[0].Max != 1 {
		t.Errorf("%+v", n)
	}
	e := d.Element("1")
	if e.Min != 1 || e.Max != 3 || len(e.Codes) != 3 || d.Element("3").Min != 2 || d.Segment("AAA").Refs[3].Max != 2 || !d.Segment("BBB").Refs[2].Unused {
		t.Errorf("%+v", e)
	}
	for code, want := range map[string]bool{"A": true, "BB": true, "LONGERTHANEIGHT": true, "B": false, "": false, "LONGERTHANEIGHTX": false, "CCCCCCCC": false} {
		if e.set.has([]byte(code)) != want {
			t.Errorf("code %q", code)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	const head = "standard edifact\ndirectory D.1\n"
	for name, c := range map[string]struct {
		text string
		line int
		want string
	}{
		"no head":            {"e 1 an..3\n", 2, "missing"},
		"standard":           {"standard ubl\n", 1, "ubl"},
		"record":             {head + "x 1\n", 3, "unknown record"},
		"no value":           {head + "e\n", 3, "no value"},
		"no representation":  {head + "e 1\n", 3, "no representation"},
		"bad representation": {head + "e 1 q..3\n", 3, "q..3"},
		"bad X12 lengths":    {head + "e 1 AN/3/2\n", 3, "AN/3/2"},
		"element twice":      {head + "e 1 n1\ne 1 n1\n", 4, "twice"},
		"empty code":         {head + "e 1 an..3 A  B\n", 3, "empty"},
		"no mark":            {head + "e 1 n1\ns AAA 1\n", 4, "mark"},
		"bad number":         {head + "e 1 n1\ns AAA 1?x\n", 4, "number"},
		"undefined":          {head + "s AAA 7?\n", 3, "7 is not defined"},
		"composite inside":   {head + "e 1 n1\nc C1 1?\nc C2 C1?\n", 5, "C1 is not defined"},
		"empty composite":    {head + "c C1\n", 3, "no parts"},
		"segment twice":      {head + "e 1 n1\ns AAA 1?\ns AAA 1?\n", 5, "twice"},
		"no tag":             {head + "s | P0102\n", 3, "3 characters"},
		"long tag":           {head + "e 1 n1\ns AAAA 1?\n", 4, "3 characters"},
		"note":               {head + "e 1 n1\ns AAA 1? | P0109\n", 4, "no note"},
		"note kind":          {head + "e 1 n1\ns AAA 1? | X0101\n", 4, "no note"},
		"message twice":      {head + "m A AAA!\nm A AAA!\n", 4, "twice"},
		"open group":         {head + "m A G?(AAA!\n", 3, "no end"},
		"closed twice":       {head + "m A AAA!)\n", 3, "parentheses"},
		"empty group":        {head + "m A G?()\n", 3, "no name"},
		"group first":        {head + "m A G?(H?(AAA!))\n", 3, "no first segment"},
		"behind a group":     {head + "m A G?(AAA!)x BBB?\n", 3, "behind"},
		"too deep":           {head + "m A " + strings.Repeat("G?(AAA! ", 20) + strings.Repeat(")", 20) + "\n", 3, "nested"},
		"too many elements":  {head + "e 1 n1\ns AAA" + strings.Repeat(" 1?", 65) + "\n", 4, "64"},
	} {
		_, err := Read(c.text)
		var f *FormatError
		if !errors.As(err, &f) || !errors.Is(err, ErrFormat) || f.Line != c.line || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := read(t, head+"m A AAA!\n").Compile("A"); !errors.Is(err, ErrFormat) {
		t.Errorf("%v", err)
	}
	if _, err := read(t, small).Compile("B"); !errors.Is(err, ErrNoMessage) {
		t.Errorf("%v", err)
	}
}

// TestNotes: the dependency notes of ISO 9735-1 annex D.
func TestNotes(t *testing.T) {
	t.Parallel()
	m, err := read(t, small).Compile("MSG")
	if err != nil {
		t.Fatal(err)
	}
	for middle, want := range map[string]string{
		"AAA+A+1'":      "",
		"AAA+A++XX'":    "",
		"AAA+A'":        "EDI-ELEMENT-CONDITION 2", // D1: one of 2 and 3
		"AAA+A+1+XX'":   "EDI-ELEMENT-EXCLUSION 3",
		"BBB+A'":        "",
		"BBB+A+1'":      "EDI-ELEMENT-EXCLUSION 2", // D7: 1 excludes 2
		"BBB++1'":       "EDI-ELEMENT-CONDITION 1", // D5: 2 needs 1
		"BBB+A++XX'":    "EDI-ELEMENT-UNUSED 3",
		"BBB'CCC+A+1'":  "",
		"BBB'CCC'":      "EDI-ELEMENT-CONDITION 1", // D3: one at least
		"BBB'CCC+A'":    "EDI-ELEMENT-CONDITION 2", // D2: both or none
		"BBB'DDD+A+1'":  "",
		"BBB'DDD+A'":    "EDI-ELEMENT-CONDITION 2", // D6: 1 needs 2
		"BBB'DDD++1'":   "",
		"AAA+A+1+++A'":  "EDI-ELEMENTS-MANY 5",
		"AAA+A+1++A:1'": "",
	} {
		body := "UNH'"
		if !strings.HasPrefix(middle, "AAA") {
			body += "AAA+A+1'"
		}
		found, err := m.Check(t.Context(), strings.NewReader(body+middle+"EEE'UNT'"), &Options{
			Delimiters: edi.Delimiters{Component: ':', Element: '+', Release: '?', Segment: '\''}, Binary: scan.NoBinary,
			Policy: &Policy{Severity: map[string]string{edi.RuleTrailing: "off", edi.RuleElementCondition: "warning"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			got = append(got, f.Rule+" "+string(rune('0'+f.Element)))
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%s: %q, want %q", middle, got, want)
		}
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	p := Policy{WarnOnly: []string{"code", "unused"}, Severity: map[string]string{"EDI-SEGMENT-ORDER": "off", "EDI-ELEMENT-UNUSED": "fatal", "EDI-MESSAGE-UNKNOWN": "fatal"}}
	for id, want := range map[string]edi.Severity{
		edi.RuleElementCode: edi.Warning, edi.RuleElementLong: edi.Fatal, edi.RuleSegmentOrder: "", edi.RuleElementUnused: edi.Fatal,
		edi.RuleGuidelineSegmentUnused: edi.Warning, edi.RuleMessageUnknown: edi.Fatal, edi.RuleDirectoryUnknown: edi.Warning,
	} {
		r, _ := edi.RuleOf(id)
		if got := p.Of(&r); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(small)
	f.Add("standard edifact\ndirectory 1\ns |\n")
	f.Add("standard x12\ndirectory 1\ne 1 R9/1/9\ns A 1!0 | P0101\nm 1 A!\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Read(text)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		for _, typ := range d.Messages() {
			m, err := d.Compile(typ)
			if err != nil {
				continue
			}
			if _, err := m.Check(t.Context(), strings.NewReader("UNH'A+1'B'A'UNT'"), &Options{Delimiters: edi.Delimiters{Element: '+', Segment: '\''}}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
