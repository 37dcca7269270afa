package verdict

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/edihub/edihub/internal/edi"
)

// JSON appends the report as one object on one line.
func (r *Report) JSON(b *bytes.Buffer) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("report about %s: %w", r.File, err)
	}
	return nil
}

// The colours of a terminal.
const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	green  = "\x1b[32m"
	bold   = "\x1b[1m"
	plain  = "\x1b[0m"
)

// Text appends the report for people, with the lines of the document that the findings are about.
func (r *Report) Text(b *bytes.Buffer, doc []byte, colours bool) {
	paint := func(colour, s string) string {
		if !colours {
			return s
		}
		return colour + s + plain
	}
	what := []string{string(r.Standard)}
	if r.Document != "" {
		what = []string{r.Document}
	}
	for _, s := range r.Rulesets {
		what = append(what, s.ID+" "+s.Version)
	}
	fatal, warnings := r.Count()
	verdict := paint(green, "valid")
	if !r.Valid {
		verdict = paint(red, "not valid")
	}
	fmt.Fprintf(b, "%s: %s (%s)", paint(bold, printable(r.File)), verdict, printable(strings.Join(what, ", ")))
	if fatal+warnings > 0 {
		fmt.Fprintf(b, ", %d fatal, %s", fatal, count(warnings, "warning"))
	}
	b.WriteByte('\n')
	for i := range r.Findings {
		f := &r.Findings[i]
		colour := yellow
		if f.Severity == edi.Fatal {
			colour = red
		}
		fmt.Fprintf(b, "  %s %s%s\n", paint(colour, string(f.Severity)), paint(bold, f.Rule), place(f))
		fmt.Fprintf(b, "    %s\n", printable(f.Message))
		if s := values(f); s != "" {
			fmt.Fprintf(b, "    %s\n", s)
		}
		excerpt(b, doc, f, func(s string) string { return paint(colour, s) })
	}
	if r.Omitted > 0 {
		fmt.Fprintf(b, "  and %d more of the same rules\n", r.Omitted)
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// place says where a finding is.
func place(f *edi.Finding) string {
	var s string
	switch {
	case f.Location != "":
		s = " at " + printable(f.Location)
	case f.Segment != "":
		s = fmt.Sprintf(" at segment %d (%s)", f.Position.Segment, printable(f.Segment))
		if f.Element > 0 {
			s += fmt.Sprintf(", element %d", f.Element)
		}
		if f.Component > 0 {
			s += fmt.Sprintf(", component %d", f.Component)
		}
	}
	if f.Line > 0 {
		s += fmt.Sprintf(", line %d", f.Line)
	}
	return s
}

func values(f *edi.Finding) string {
	var out []string
	if f.Actual != "" {
		out = append(out, "found "+printable(f.Actual))
	}
	if f.Expected != "" {
		out = append(out, "expected "+printable(f.Expected))
	}
	if len(f.Terms) > 0 {
		out = append(out, strings.Join(f.Terms, " "))
	}
	return strings.Join(out, "; ")
}

// excerpt shows the line of a finding and marks the start tag that it is about, or else the
// place.
func excerpt(b *bytes.Buffer, doc []byte, f *edi.Finding, paint func(string) string) {
	if f.Line <= 0 {
		return
	}
	rest := doc
	for range f.Line - 1 {
		_, after, ok := bytes.Cut(rest, []byte{'\n'})
		if !ok {
			return
		}
		rest = after
	}
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	from, size := bytes.IndexFunc(line, func(r rune) bool { return !unicode.IsSpace(r) }), 1
	if from < 0 {
		return
	}
	at := len(doc) - len(rest)
	switch tag := lastStep(f.Location); {
	case f.Location == "" && int(f.Offset) >= at && int(f.Offset) < at+len(line):
		from = int(f.Offset) - at
	case tag != "" && bytes.Contains(line, []byte(tag)):
		from, size = bytes.Index(line, []byte(tag)), len(tag)
	}
	const before, most = 40, 120
	cut := max(0, from-before)
	shown := line[cut:min(len(line), cut+most)]
	text := printable(strings.ToValidUTF8(string(shown), "·"))
	blanks := len([]rune(printable(strings.ToValidUTF8(string(line[cut:from]), "·"))))
	fmt.Fprintf(b, "    %6d | %s\n           | %s%s\n", f.Line, text, strings.Repeat(" ", blanks), paint(strings.Repeat("^", min(size, most))))
}

// lastStep returns the beginning of the start tag that an XPath ends in.
func lastStep(location string) string {
	step := location[strings.LastIndexByte(location, '/')+1:]
	step, _, _ = strings.Cut(step, "[")
	if _, local, ok := strings.Cut(step, ":"); ok {
		return local // the document may use another prefix
	}
	return step
}

// printable replaces what is no character to look at: a document must not move the cursor of a
// terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == ' ' || unicode.IsPrint(r):
			return r
		}
		return '·'
	}, s)
}

// namespaces of the locations, by prefix.
var namespaces = [][2]string{
	{"inv", "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"},
	{"cn", "urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2"},
	{"cac", "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"},
	{"cbc", "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"},
	{"ext", "urn:oasis:names:specification:ubl:schema:xsd:CommonExtensionComponents-2"},
}

// SVRL appends the report as a schematron-output element (ISO/IEC 19757-3 Annex D): one active
// pattern for each rule set, and a failed assertion for each finding.
func (r *Report) SVRL(b *bytes.Buffer) {
	var title []string
	for _, s := range r.Rulesets {
		title = append(title, s.ID+" "+s.Version)
	}
	fmt.Fprintf(b, "<svrl:schematron-output xmlns:svrl=\"http://purl.oclc.org/dsdl/svrl\" title=\"%s\">\n", escape(strings.Join(title, ", ")))
	for _, n := range namespaces {
		fmt.Fprintf(b, "  <svrl:ns-prefix-in-attribute-values prefix=\"%s\" uri=\"%s\"/>\n", n[0], n[1])
	}
	sets := []string{}
	for _, s := range r.Rulesets {
		sets = append(sets, s.ID)
	}
	for i := range r.Findings { // those of no set that was asked for
		if s := r.Findings[i].Ruleset; !slices.Contains(sets, s) {
			sets = append(sets, s)
		}
	}
	for _, set := range sets {
		fmt.Fprintf(b, "  <svrl:active-pattern document=\"%s\" id=\"%s\"/>\n  <svrl:fired-rule context=\"/*\"/>\n", escape(r.File), escape(orFile(set)))
		for i := range r.Findings {
			f := &r.Findings[i]
			if f.Ruleset != set {
				continue
			}
			text := f.Message
			if f.Actual != "" {
				text += " Found: " + f.Actual + "."
			}
			if f.Expected != "" {
				text += " Expected: " + f.Expected + "."
			}
			fmt.Fprintf(b, "  <svrl:failed-assert id=\"%s\" flag=\"%s\" test=\"%s\" location=\"%s\">\n    <svrl:text>%s</svrl:text>\n  </svrl:failed-assert>\n",
				escape(f.Rule), escape(string(f.Severity)), escape(f.Rule), escape(qualified(f.Location)), escape(text))
		}
	}
	b.WriteString("</svrl:schematron-output>\n")
}

func orFile(set string) string {
	if set == "" {
		return "file"
	}
	return set
}

// qualified gives the document element of a location its prefix.
func qualified(location string) string {
	for name, prefix := range map[string]string{"/Invoice": "/inv:Invoice", "/CreditNote": "/cn:CreditNote"} {
		if rest, ok := strings.CutPrefix(location, name); ok && (rest == "" || rest[0] == '/') {
			return prefix + rest
		}
	}
	if location == "" {
		return "/"
	}
	return location
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // it writes to memory
	return b.String()
}
