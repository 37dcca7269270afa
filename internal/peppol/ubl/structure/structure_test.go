package structure

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edihub/edihub/internal/peppol/ubl"
)

const namespace = "urn:oasis:names:specification:ubl:schema:xsd:"

// head and tail make a whole invoice of what stands between the issue date and the parties.
const (
	opening = `<Invoice xmlns="` + namespace + `Invoice-2" xmlns:cac="` + namespace + `CommonAggregateComponents-2" xmlns:cbc="` + namespace +
		`CommonBasicComponents-2" xmlns:ext="` + namespace + `CommonExtensionComponents-2" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="a b">`
	head    = opening + `<cbc:ID>1</cbc:ID><cbc:IssueDate>2026-01-31</cbc:IssueDate>`
	parties = `<cac:AccountingSupplierParty/><cac:AccountingCustomerParty/>`
	totals  = `<cac:LegalMonetaryTotal><cbc:PayableAmount currencyID="EUR">1</cbc:PayableAmount></cac:LegalMonetaryTotal>`
	lines   = `<cac:InvoiceLine><cbc:ID>1</cbc:ID><cbc:LineExtensionAmount currencyID="EUR">1.0</cbc:LineExtensionAmount><cac:Item/></cac:InvoiceLine>`
	tail    = parties + totals + lines + `</Invoice>`
)

func check(t *testing.T, doc string) []string {
	t.Helper()
	var p ubl.Parser
	tree, err := p.Parse([]byte(doc), ubl.Limits{})
	if err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	var found []string
	Check(tree, func(r *Rule, n ubl.Node, actual, expected string) {
		found = append(found, strings.TrimSpace(strings.TrimPrefix(r.ID, "UBL-STRUCT-")+" "+tree.Path(n)+" "+actual+" | "+expected))
	})
	return found
}

func TestStructure(t *testing.T) {
	t.Parallel()
	note := func(c string) string { return head + c + tail }
	for name, c := range map[string]struct {
		doc  string
		want []string
	}{
		"whole":                  {head + tail, nil},
		"foreign element":        {note(`<x:A xmlns:x="urn:x"><cbc:ID/></x:A>`), []string{"UNKNOWN /Invoice/x:A[1] x:A |"}},
		"element of elsewhere":   {note(`<cbc:Percent>1</cbc:Percent>`), []string{"UNKNOWN /Invoice/cbc:Percent[1] cbc:Percent |"}},
		"no namespace":           {note(`<Note xmlns="">x</Note>`), []string{"UNKNOWN /Invoice/Note[1] Note |"}},
		"order":                  {note(`<cbc:ProfileID>p</cbc:ProfileID>`), []string{"ORDER /Invoice/cbc:ProfileID[1] cbc:ProfileID | before cbc:IssueDate"}},
		"order of what is due":   {opening + `<cbc:IssueDate>2026-01-31</cbc:IssueDate><cbc:ID>1</cbc:ID>` + tail, []string{"ORDER /Invoice/cbc:ID[1] cbc:ID | before cbc:IssueDate"}},
		"repeated":               {note(`<cbc:DueDate>2026-02-28</cbc:DueDate><cbc:DueDate>2026-02-28</cbc:DueDate><cbc:DueDate>2026-02-28</cbc:DueDate>`), []string{"REPEATED /Invoice/cbc:DueDate[2] cbc:DueDate |"}},
		"many":                   {note(`<cbc:Note>a</cbc:Note><cbc:Note>b</cbc:Note><cbc:Note>c</cbc:Note>`), nil},
		"missing":                {opening + `<cbc:ID>1</cbc:ID>` + parties + totals + `</Invoice>`, []string{"MISSING /Invoice  | cbc:IssueDate", "MISSING /Invoice  | cac:InvoiceLine"}},
		"empty document":         {opening + `</Invoice>`, []string{"MISSING /Invoice  | cbc:ID", "MISSING /Invoice  | cbc:IssueDate", "MISSING /Invoice  | cac:AccountingSupplierParty", "MISSING /Invoice  | cac:AccountingCustomerParty", "MISSING /Invoice  | cac:LegalMonetaryTotal", "MISSING /Invoice  | cac:InvoiceLine"}},
		"text beside elements":   {note(`<cac:OrderReference>text<cbc:ID>1</cbc:ID></cac:OrderReference>`), []string{"CONTENT /Invoice/cac:OrderReference[1] text1 | elements only"}},
		"text for elements":      {note(`<cac:OrderReference>text</cac:OrderReference>`), []string{"CONTENT /Invoice/cac:OrderReference[1] text | elements only", "MISSING /Invoice/cac:OrderReference[1]  | cbc:ID"}},
		"elements for text":      {note(`<cbc:Note><cbc:ID>1</cbc:ID></cbc:Note>`), []string{"CONTENT /Invoice/cbc:Note[1] cbc:ID | a value"}},
		"attribute":              {note(`<cbc:Note schemeID="1">a</cbc:Note>`), []string{"ATTRIBUTE /Invoice/cbc:Note[1] schemeID |"}},
		"attribute of a group":   {note(`<cac:OrderReference id="7"><cbc:ID>1</cbc:ID></cac:OrderReference>`), []string{"ATTRIBUTE /Invoice/cac:OrderReference[1] id |"}},
		"attribute with prefix":  {note(`<cbc:Note xmlns:x="urn:x" x:languageID="en" languageID="en">a</cbc:Note>`), []string{"ATTRIBUTE /Invoice/cbc:Note[1] x:languageID |"}},
		"attribute missing":      {strings.Replace(head+tail, ` currencyID="EUR"`, "", 1), []string{"ATTRIBUTE-MISSING /Invoice/cac:LegalMonetaryTotal[1]/cbc:PayableAmount[1]  | currencyID"}},
		"value":                  {strings.Replace(head+tail, ">1.0<", ">1,0<", 1), []string{"VALUE /Invoice/cac:InvoiceLine[1]/cbc:LineExtensionAmount[1] 1,0 | a decimal number such as 12.50"}},
		"date":                   {strings.Replace(head+tail, "2026-01-31", "31.01.2026", 1), []string{"VALUE /Invoice/cbc:IssueDate[1] 31.01.2026 | a date such as 2026-03-31"}},
		"extension":              {opening + `<ext:UBLExtensions><ext:UBLExtension><ext:ExtensionContent><x:A xmlns:x="urn:x" q="1">text<cbc:ID/></x:A></ext:ExtensionContent></ext:UBLExtension></ext:UBLExtensions>` + strings.TrimPrefix(head, opening) + tail, nil},
		"extension of nothing":   {opening + `<ext:UBLExtensions><ext:UBLExtension><ext:ExtensionContent/></ext:UBLExtension></ext:UBLExtensions>` + strings.TrimPrefix(head, opening) + tail, []string{"MISSING /Invoice/ext:UBLExtensions[1]/ext:UBLExtension[1]/ext:ExtensionContent[1]  | an element of a namespace of your own"}},
		"comments are no mixing": {note(`<cac:OrderReference><!-- text --><?p text?><cbc:ID>1</cbc:ID>` + "\r\n" + `</cac:OrderReference>`), nil},
	} {
		if diff := cmp.Diff(c.want, check(t, c.doc)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		is        func(string) bool
		good, bad []string
	}{
		{isDecimal, []string{"0", "-1.5", "+.5", "5.", "007", "1234567890123456789012345.67"}, []string{"", ".", "-", "+-1", "1e3", "1,5", "1 0", "NaN", "INF", "0x1", "١"}},
		{isBoolean, []string{"true", "false", "0", "1"}, []string{"", "TRUE", "yes", "2"}},
		{isDate, []string{"2026-02-28", "2024-02-29", "2000-02-29", "2026-12-31Z", "2026-04-30+14:00", "-0044-03-15", "12026-01-01"}, []string{"", "2026-2-28", "2026-02-29", "1900-02-29", "2026-13-01", "2026-00-01", "2026-04-31", "2026-01-00", "20260101", "02026-01-01", "0000-01-01", "2026-01-01T00:00:00", "2026-01-01+14:01", "2026-01-01+1:00", "2026-01-01 "}},
		{isTime, []string{"00:00:00", "23:59:59", "24:00:00", "24:00:00.00", "12:30:00.125Z", "12:30:00-05:30"}, []string{"", "12:30", "24:00:01", "24:00:00.1", "12:60:00", "12:30:60", "12:30:00.", "1:30:00", "12:30:00+15:00", "25:00:00"}},
		{isBase64, []string{"", "VGVzdA==", "VGVz dDE=", "VGVz\n", "////", "++++"}, []string{"VGVzdA=", "VGVzdA", "VGV!", "=", "====", "VGVz=", "VGVzdB==", "VGVzdDF=", "VG=z"}},
	} {
		for _, s := range c.good {
			if !c.is(s) {
				t.Errorf("%q is refused", s)
			}
		}
		for _, s := range c.bad {
			if c.is(s) {
				t.Errorf("%q is taken", s)
			}
		}
	}
}

// TestEveryChild goes through the tables: each element is accepted where it stands in them.
func TestEveryChild(t *testing.T) {
	t.Parallel()
	kinds := 0
	for k := range ubl.Kinds() {
		kinds++
		last := map[ubl.Kind]bool{}
		for i, c := range ubl.TypeOf(k).Children() {
			if last[c.Kind] || place(ubl.TypeOf(k).Children(), 0, c.Kind) != i {
				t.Errorf("%s lists %s twice", k, c.Kind)
			}
			last[c.Kind] = true
			if ubl.TypeOf(c.Kind) == 0 {
				t.Errorf("%s has no type", c.Kind)
			}
		}
	}
	if kinds < 800 {
		t.Errorf("%d kinds", kinds)
	}
	for _, r := range Rules() {
		if r.ID == "" || !strings.HasSuffix(r.Message, ".") {
			t.Errorf("rule %+v", r)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	doc := []byte(head + parties + totals + strings.Repeat(lines, 1000) + "</Invoice>")
	var p ubl.Parser
	tree, err := p.Parse(doc, ubl.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		Check(tree, func(r *Rule, _ ubl.Node, _, _ string) { b.Fatal(r.ID) })
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(head + tail))
	f.Add([]byte(opening + `text<cbc:IssueDate>2026-02-30+99:99</cbc:IssueDate><cbc:Note><cbc:Note/></cbc:Note><ext:UBLExtensions/></Invoice>`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var p ubl.Parser
		tree, err := p.Parse(doc, ubl.Limits{})
		if err != nil {
			return
		}
		Check(tree, func(r *Rule, n ubl.Node, _, _ string) {
			if r.ID == "" || n < ubl.Root || n >= tree.Len() {
				t.Fatalf("%+v at %d", r, n)
			}
		})
	})
}
