package ubl

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/edi"
)

func TestBadInput(t *testing.T) {
	t.Parallel()
	whole := invoice("380", "")
	utf16 := []byte{0xff, 0xfe}
	for _, c := range whole {
		utf16 = append(utf16, byte(c), 0)
	}
	for name, c := range map[string]struct {
		in, rule string
		line     int
	}{
		"nothing":               {"", "EMPTY", 1},
		"white space":           {" \n\n ", "EMPTY", 3},
		"only a declaration":    {`<?xml version="1.0"?>`, "EMPTY", 1},
		"only a comment":        {"<!-- x -->\n", "EMPTY", 2},
		"UTF-16":                {string(utf16), "ENCODING", 1},
		"UTF-16 without mark":   {strings.ReplaceAll(whole, "", "\x00"), "ENCODING", 1},
		"other encoding":        {strings.Replace(whole, "UTF-8", "ISO-8859-1", 1), "ENCODING", 1},
		"unknown encoding":      {strings.Replace(whole, "UTF-8", "x-none", 1), "ENCODING", 1},
		"encoding that is none": {strings.Replace(whole, "INV", "INV\xe4", 1), "ENCODING", 6},
		"version 1.1":           {strings.Replace(whole, `"1.0"`, `"1.1"`, 1), "DECLARATION", 1},
		"declaration too late":  {"\n" + whole, "DECLARATION", 2},
		"document type":         {strings.Replace(whole, "<Invoice", `<!DOCTYPE x [<!ENTITY a "b">]><Invoice`, 1), "DTD", 3},
		"two documents":         {whole + whole[strings.Index(whole, "<Invoice"):], "OUTSIDE", 16},
		"text behind":           {whole + "x", "OUTSIDE", 16},
		"reference behind":      {whole + "&#32;", "OUTSIDE", 16},
		"section behind":        {whole + "<![CDATA[x]]>", "OUTSIDE", 16},
		"text before":           {"x" + whole, "OUTSIDE", 1},
	} {
		var p Parser
		_, err := p.Parse([]byte(c.in), Limits{})
		var bad *XMLError
		if !errors.As(err, &bad) || bad.Rule != "UBL-XML-"+c.rule || bad.Line != c.line || bad.Remedy == "" {
			t.Errorf("%s: got %v", name, err)
		}
		f := (&XMLError{Rule: "UBL-XML-" + c.rule}).Finding()
		if f.Severity != edi.Fatal || f.Ruleset != "ubl" {
			t.Errorf("%s: finding %+v", name, f)
		}
	}
	var p Parser
	for n := range len(whole) - 1 {
		if _, err := p.Parse([]byte(whole[:n]), Limits{}); err == nil {
			t.Fatalf("cut at %d: no error", n)
		}
	}
	for name, in := range map[string]string{
		"byte order mark": "\xef\xbb\xbf" + whole, "carriage returns": strings.ReplaceAll(whole, "\n", "\r\n"), "lower case": strings.Replace(whole, "UTF-8", "utf-8", 1),
		"instructions": strings.Replace(whole, "<cbc:ID>", "<?p a?><cbc:ID><?p b?>", 1) + "<?p c?>\n<!-- end -->\n",
	} {
		tree, err := p.Parse([]byte(in), Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := tree.Text(tree.Child(Root, CbcID)); got != "INV&1<2>" {
			t.Errorf("%s: ID %q", name, got)
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                  "",
		"a":                                 "a",
		" a\tb\nc ":                         " a\tb\nc ",
		"a\r\nb\rc\r":                       "a\nb\nc\n",
		"&amp;&lt;&gt;&apos;&quot;":         `&<>'"`,
		"&#65;&#x42;&#x1F600;":              "AB😀",
		"a<!-- b -->c<?d e?>f":              "acf",
		"<![CDATA[&amp;<b>]]>x<![CDATA[]]>": "&amp;<b>x",
		"<![CDATA[a\r\nb]]>":                "a\nb",
		"]] ]>":                             "]] ]>",
		"Grüße, Œuvre 😀":                    "Grüße, Œuvre 😀",
		"&#13;":                             "\r",
		"<!-- a > b -->1":                   "1",
	} {
		tree := parse(t, invoice("380", "<cbc:Note>"+in+"</cbc:Note>"))
		if got := tree.Text(tree.Child(Root, CbcNote)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		// The same below an element that should hold no elements, as its string value.
		tree = parse(t, invoice("380", `<cbc:Note a=">"><cbc:ID b='/>'/>`+in+`<cbc:ID>7</cbc:ID></cbc:Note>`))
		if got := tree.Text(tree.Child(Root, CbcNote)); got != want+"7" {
			t.Errorf("%q below elements: got %q, want %q", in, got, want+"7")
		}
	}
	for in, want := range map[string]string{
		"a": "a", "&amp;": "&", "a\nb\tc\r\nd": "a b c d", "&#10;": "\n", "'": "'", "ä]]>": "ä]]>", "": "",
	} {
		tree := parse(t, invoice("380", `<cbc:ID x="1" schemeID="`+in+`" schemeName = '"'/>`))
		n := tree.End(tree.Child(Root, CacInvoiceLine))
		if got, ok := tree.Attr(n, SchemeID); got != want || !ok {
			t.Errorf("attribute %q: got %q, %v", in, got, ok)
		}
		if kind, name, v := tree.AttrAt(n, 2); kind != SchemeName || name != "schemeName" || v != `"` || tree.Attrs(n) != 3 {
			t.Errorf("third attribute: %v, %s, %q", kind, name, v)
		}
	}
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	tree := parse(t, `<u:Invoice xmlns:u="`+invoiceNamespace+`" xmlns="`+basicNamespace+`" xmlns:longprefix="`+aggregateNamespace+`">`+
		`<ID>1</ID><ID xmlns="urn:x">2</ID><ID>3</ID><longprefix:InvoiceLine><x:ID xmlns:x="`+basicNamespace+`"/><x:ID xmlns:x="urn:x"/></longprefix:InvoiceLine>`+
		`<u:ID/><longprefix:ID/><b:Note xmlns:b="`+strings.Replace(basicNamespace, "urn", "&#117;rn", 1)+`"/></u:Invoice>`)
	want := "Invoice(cbc:ID=1 ID=2 cbc:ID=3 cac:InvoiceLine(cbc:ID= x:ID=) u:ID= longprefix:ID= cbc:Note=)"
	if got := dump(tree, Root); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	tree := parse(t, `<Invoice xmlns="`+invoiceNamespace+`"`+prefixes+`>`+"\n"+
		strings.Repeat(`<cac:InvoiceLine><cbc:ID/><cbc:Note/>`+"\n"+`<cbc:ID/><cac:Item><cbc:ID/></cac:Item></cac:InvoiceLine><x:A xmlns:x="urn:x"/>`+"\n", 3)+`</Invoice>`)
	var paths []string
	for n := Root; n < tree.Len(); n++ {
		paths = append(paths, fmt.Sprintf("%s:%d", tree.Path(n), tree.Line(n)))
	}
	want := []string{"/Invoice:1"}
	for i := 1; i <= 3; i++ {
		line := fmt.Sprintf("/Invoice/cac:InvoiceLine[%d]", i)
		want = append(want, fmt.Sprintf("%s:%d", line, 2*i), fmt.Sprintf("%s/cbc:ID[1]:%d", line, 2*i), fmt.Sprintf("%s/cbc:Note[1]:%d", line, 2*i),
			fmt.Sprintf("%s/cbc:ID[2]:%d", line, 2*i+1), fmt.Sprintf("%s/cac:Item[1]:%d", line, 2*i+1), fmt.Sprintf("%s/cac:Item[1]/cbc:ID[1]:%d", line, 2*i+1),
			fmt.Sprintf("/Invoice/x:A[%d]:%d", i, 2*i+1))
	}
	if got := strings.Join(paths, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	// Lines far behind the first block of the index.
	tree = parse(t, `<Invoice xmlns="`+invoiceNamespace+`"`+prefixes+`>`+strings.Repeat("\n", 3*lineBlock)+`<cbc:ID/></Invoice>`)
	if got := tree.Line(2); got != 3*lineBlock+1 {
		t.Errorf("line %d", got)
	}
}

func TestTreeLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in string
		l  Limits
	}{
		"max_bytes":      {invoice("380", ""), Limits{MaxBytes: 100}},
		"max_depth":      {invoice("380", strings.Repeat("<a>", 8)+strings.Repeat("</a>", 8)), Limits{MaxDepth: 8}},
		"max_attributes": {invoice("380", `<a b="" c="" d="" e="" f=""/>`), Limits{MaxAttributes: 4}},
		"max_elements":   {invoice("380", strings.Repeat("<a/>", 30)), Limits{MaxElements: 30}},
		"max_text":       {invoice("380", strings.Repeat("x", 200)), Limits{MaxText: 100}},
		"max_name":       {invoice("380", "<"+strings.Repeat("n", 300)+"/>"), Limits{}},
		"max_namespaces": {invoice("380", `<a xmlns:a="urn:a"><a xmlns:b="urn:b"><a xmlns:c="urn:c"/></a></a>`), Limits{MaxAttributes: 1}},
	} {
		var p Parser
		_, err := p.Parse([]byte(c.in), c.l)
		var limit *edi.LimitError
		if !errors.As(err, &limit) || limit.Limit != name && (name != "max_namespaces" || limit.Limit != "max_attributes") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestLarge reads a long value, many lines and much that is wrong in the same way.
func TestLarge(t *testing.T) {
	t.Parallel()
	var p Parser
	value := strings.Repeat("QUJD", 2<<20) // 8 MiB
	tree, err := p.Parse([]byte(invoice("380", "<cbc:Note>"+value+"</cbc:Note>")), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got := tree.Text(tree.Child(Root, CbcNote)); got != value {
		t.Errorf("%d bytes", len(got))
	}
	if _, err = p.Parse([]byte(invoice("380", "<cbc:Note>"+value+value+value+"</cbc:Note>")), Limits{MaxText: 16 << 20}); rule(err) != "LIMIT" {
		t.Errorf("24 MiB of text: got %v", err)
	}
	const lines = 50_000
	if tree, err = p.Parse([]byte(invoice("380", strings.Repeat("<cac:InvoiceLine><cbc:ID>1</cbc:ID></cac:InvoiceLine>\n", lines))), Limits{}); err != nil {
		t.Fatal(err)
	}
	if got := tree.Count(Root, CacInvoiceLine); got != lines+1 {
		t.Errorf("%d lines", got)
	}
	if got := tree.Path(tree.Len() - 1); got != fmt.Sprintf("/Invoice/cac:InvoiceLine[%d]/cbc:ID[1]", lines+1) {
		t.Error(got)
	}
	p.Release()
}

// TestNoAllocation shows that a parser that has its room reads without allocating.
func TestNoAllocation(t *testing.T) {
	in := []byte(invoice("380", strings.Repeat("<cac:InvoiceLine><cbc:ID schemeID='a'>1&amp;</cbc:ID></cac:InvoiceLine>", 100)))
	var p Parser
	if n := testing.AllocsPerRun(10, func() {
		if _, err := p.Parse(in, Limits{}); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// agree compares the tree with what the two other readers say: ReadHead's and encoding/xml, where
// they take the document.
func agree(t *testing.T, in []byte) {
	t.Helper()
	var p Parser
	tree, err := p.Parse(in, Limits{})
	_, msg, headErr := ReadHead(bytes.NewReader(in), Limits{})
	if (err == nil) != (headErr == nil) {
		t.Fatalf("the tree says %v, the head %v: %q", err, headErr, in)
	}
	if err != nil {
		return
	}
	id, number := tree.Child(Root, CbcID), ""
	if id != None && tree.First(id) == None {
		number = strings.TrimSpace(tree.Text(id))
	}
	if tree.Count(Root, CbcID) == 1 && tree.First(id) == None && msg.Document.Number != number {
		t.Fatalf("number %q in the tree, %q in the head: %q", number, msg.Document.Number, in)
	}
	n := None
	for d := xml.NewDecoder(bytes.NewReader(in)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil { // it is stricter about directives and versions, and does not know some names
			return
		}
		s, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		n++
		if n >= tree.Len() {
			t.Fatalf("encoding/xml finds an element %s more: %q", s.Name.Local, in)
		}
		if _, local, found := strings.Cut(tree.RawName(n), ":"); found && local != s.Name.Local || !found && tree.RawName(n) != s.Name.Local {
			t.Fatalf("element %d is %s, encoding/xml says %s: %q", n, tree.RawName(n), s.Name.Local, in)
		}
	}
	if n != tree.Len()-1 {
		t.Fatalf("%d elements, encoding/xml finds %d: %q", tree.Len()-1, n, in)
	}
	for n := Root; n < tree.Len(); n++ {
		if p := tree.Parent(n); p >= n || tree.End(n) <= n || tree.End(n) > tree.End(p) && p != None || tree.Path(n) == "" || tree.Line(n) < 1 {
			t.Fatalf("node %d is wrong: %q", n, in)
		}
		_ = tree.Text(n)
	}
}

// TestMutations changes documents at random, and compares the readers on each.
func TestMutations(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 11))
	seed := []byte(invoice("380", `<x:Other xmlns:x="urn:x" a="1"><x:Deep>7</x:Deep><![CDATA[c]]></x:Other><!-- c --><?p i?><cbc:Note languageID='en'>&lt;ä&#65;</cbc:Note>`))
	pieces := []string{"<", ">", "/", "&", ";", "\"", "'", "]]>", "<!--", "-->", "<![CDATA[", "<?", "?>", "=", " ", "\r\n", "\x00", "\xff", "ä", "\uffff", "xmlns:cbc=\"urn:y\"", "a:", ":", "</cbc:ID>", "<cbc:ID>", "&amp;", "&#x;", "<a/>"}
	accepted := 0
	for range 2000 {
		in := bytes.Clone(seed)
		for range 1 + r.IntN(3) {
			at := r.IntN(len(in))
			switch r.IntN(4) {
			case 0:
				in[at] = byte(r.IntN(256))
			case 1:
				in = append(in[:at], in[min(len(in), at+1+r.IntN(20)):]...)
			case 2:
				p := pieces[r.IntN(len(pieces))]
				in = append(in[:at:at], append([]byte(p), in[at:]...)...)
			default:
				from := r.IntN(len(in))
				p := bytes.Clone(in[from:min(len(in), from+r.IntN(60))])
				in = append(in[:at:at], append(p, in[at:]...)...)
			}
			if len(in) == 0 {
				break
			}
		}
		var p Parser
		if _, err := p.Parse(in, Limits{}); err == nil {
			accepted++
		}
		agree(t, in)
	}
	if accepted < 50 || accepted > 1950 {
		t.Errorf("%d of 2000 were accepted: the changes are not of both sorts", accepted)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range malformed {
		f.Add([]byte(invoice("380", c.in)))
	}
	f.Add([]byte(invoice("380", `<cbc:Note a=">"><cbc:ID b='/>'/>x<![CDATA[y]]></cbc:Note>`)))
	f.Fuzz(func(t *testing.T, in []byte) { agree(t, in) })
}

// TestPathsAgree compares paths that are counted out with those of numbered nodes.
func TestPathsAgree(t *testing.T) {
	t.Parallel()
	in := invoice("380", strings.Repeat(`<cac:InvoiceLine><cbc:ID/><x:A xmlns:x="urn:x"/><y:A xmlns:y="urn:y"/><cbc:ID/><cac:Item><cbc:ID/></cac:Item><x:A xmlns:x="urn:x"/></cac:InvoiceLine>`, 20))
	var one, all Parser
	numbered, err := all.Parse([]byte(in), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	numbered.number()
	for n := Root; n < numbered.Len(); n++ {
		tree, err := one.Parse([]byte(in), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := tree.Path(n), numbered.Path(n); got != want {
			t.Errorf("counted out %s, numbered %s", got, want)
		}
	}
}
