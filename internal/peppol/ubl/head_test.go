package ubl

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/edihub/edihub/internal/edi"
)

const prefixes = ` xmlns:cac="` + aggregateNamespace + `" xmlns:cbc="` + basicNamespace + `"`

// invoice returns an Invoice with a type code and something more at its end.
func invoice(code, more string) string {
	return `<?xml version="1.0" encoding="UTF-8"?>
<!-- a comment -->
<Invoice xmlns="` + invoiceNamespace + `"` + prefixes + `>
 <cbc:CustomizationID>urn:custom#x</cbc:CustomizationID>
 <cbc:ProfileID> urn:profile </cbc:ProfileID>
 <cbc:ID>INV&amp;&#x31;<![CDATA[<2>]]></cbc:ID>
 <cbc:IssueDate>2026-03-01</cbc:IssueDate>
 <cbc:InvoiceTypeCode>` + code + `</cbc:InvoiceTypeCode>
 <cac:OrderReference><cbc:ID>PO77</cbc:ID></cac:OrderReference>
 <cac:AccountingSupplierParty><cac:Party><cbc:EndpointID schemeID="0088">4012345000009</cbc:EndpointID>
  <cac:PartyIdentification><cbc:ID>SUP</cbc:ID></cac:PartyIdentification></cac:Party></cac:AccountingSupplierParty>
 <cac:AccountingCustomerParty><cac:Party><cbc:EndpointID schemeID='0192'>987654325</cbc:EndpointID>
  <cac:PartyIdentification><cbc:ID>BUY</cbc:ID></cac:PartyIdentification></cac:Party></cac:AccountingCustomerParty>
 <cac:InvoiceLine><cbc:ID>1</cbc:ID><cac:OrderLineReference><cac:OrderReference><cbc:ID>X</cbc:ID></cac:OrderReference></cac:OrderLineReference></cac:InvoiceLine>
` + more + `</Invoice>
`
}

func TestReadHead(t *testing.T) {
	t.Parallel()
	in := invoice("380", "")
	ic, msg, err := ReadHead(strings.NewReader(in), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	supplier, customer := edi.Party{Qualifier: "0088", ID: "4012345000009"}, edi.Party{Qualifier: "0192", ID: "987654325"}
	want := edi.Interchange{
		Standard: edi.UBL, Sender: supplier, Receiver: customer, Version: "2.1", Charset: "UTF-8", Length: int64(len(in)), Messages: 1,
		Profile: "urn:profile", Custom: "urn:custom#x", TrailerSeen: true,
	}
	if diff := cmp.Diff(want, ic); diff != "" {
		t.Errorf("interchange (-want +got):\n%s", diff)
	}
	wantMsg := edi.Message{
		Position: 1, Type: "Invoice", Version: "urn:custom#x", Length: int64(len(in)),
		Document: edi.Document{Number: "INV&1<2>", Function: "380", OrderNo: "PO77", Buyer: "BUY", Date: "2026-03-01"},
	}
	if diff := cmp.Diff(wantMsg, msg); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	for _, code := range []string{"389", "261"} {
		if ic, _, err = ReadHead(strings.NewReader(invoice(code, "")), Limits{}); err != nil || ic.Sender != customer || ic.Receiver != supplier {
			t.Errorf("self-billing %s: %+v to %+v, %v", code, ic.Sender, ic.Receiver, err)
		}
	}
}

func TestReadHeadOtherForms(t *testing.T) {
	t.Parallel()
	credit := `<u:CreditNote xmlns:u="` + creditNoteNamespace + `" xmlns:b="` + basicNamespace + `" xmlns="` + aggregateNamespace + `">` +
		`<b:ID>C1</b:ID><b:CreditNoteTypeCode>381</b:CreditNoteTypeCode><AccountingCustomerParty><Party><b:EndpointID schemeID="9930">DE1</b:EndpointID></Party></AccountingCustomerParty></u:CreditNote>`
	ic, msg, err := ReadHead(strings.NewReader("\xef\xbb\xbf"+credit), Limits{})
	if err != nil || msg.Type != "CreditNote" || msg.Document.Number != "C1" || msg.Document.Function != "381" || msg.Document.Buyer != "DE1" || ic.Receiver.ID != "DE1" {
		t.Errorf("prefixed: %+v, %+v, %v", ic, msg, err)
	}
	// The same prefix for another namespace is another element.
	other := strings.Replace(invoice("380", ""), basicNamespace, "urn:other", 1)
	if _, msg, err = ReadHead(strings.NewReader(other), Limits{}); err != nil || msg.Document.Number != "" {
		t.Errorf("other namespace: %+v, %v", msg, err)
	}
	for _, in := range []string{
		"<Invoice/>", `<Invoice xmlns="urn:other"/>`, `<Order xmlns="` + invoiceNamespace + `"/>`, `<CreditNote xmlns="` + invoiceNamespace + `"/>`,
		`<StandardBusinessDocument xmlns="http://www.unece.org/cefact/namespaces/StandardBusinessDocumentHeader"/>`,
	} {
		if _, _, err := ReadHead(strings.NewReader(in), Limits{}); !errors.Is(err, ErrNotUBL) {
			t.Errorf("%s: got %v", in, err)
		}
	}
}

// malformed are contents of a document that must be refused, with their rule.
var malformed = []struct{ rule, in string }{
	{"DUPLICATE-ATTRIBUTE", `<a b="1" b="2"/>`},
	{"DUPLICATE-ATTRIBUTE", `<a xmlns:p="urn:x" xmlns:q="urn:x" p:b="1" q:b="2"/>`},
	{"DUPLICATE-ATTRIBUTE", `<a xmlns:p="urn:x" xmlns:p="urn:x"/>`},
	{"PREFIX", `<p:a/>`},
	{"PREFIX", `<a p:b="1"/>`},
	{"PREFIX", `<a><b xmlns:p="urn:x"/><p:c/></a>`},
	{"PREFIX", `<xmlns:a/>`},
	{"NAMESPACE", `<a xmlns:p=""/>`},
	{"NAMESPACE", `<a xmlns:xml="urn:x"/>`},
	{"NAMESPACE", `<a xmlns:p="http://www.w3.org/XML/1998/namespace"/>`},
	{"NAMESPACE", `<a xmlns="http://www.w3.org/2000/xmlns/"/>`},
	{"NAME", `<:a/>`}, {"NAME", `<a:/>`}, {"NAME", `<a:b:c/>`}, {"NAME", `<1a/>`}, {"NAME", `< a/>`}, {"NAME", `<a / >`}, {"NAME", `<a p:1="x"/>`},
	{"ATTRIBUTE", `<a b/>`}, {"ATTRIBUTE", `<a b=c/>`}, {"ATTRIBUTE", `<a b= />`},
	{"TAG", `<a b="1"c="2"/>`}, {"TAG", `<a b="<"/>`}, {"TAG", `<a <b/>`},
	{"REFERENCE", `<a b="&nbsp;"/>`}, {"REFERENCE", `<a b="&"/>`}, {"REFERENCE", `<a>&nbsp;</a>`}, {"REFERENCE", `<a>&#0;</a>`},
	{"REFERENCE", `<a>&#xD800;</a>`}, {"REFERENCE", `<a>&#x110000;</a>`}, {"REFERENCE", `<a>&#;</a>`}, {"REFERENCE", `<a>&#x;</a>`}, {"REFERENCE", `<a>A & B</a>`},
	{"TEXT", `<a>]]></a>`},
	{"CHARACTER", "<a>\x00</a>"}, {"CHARACTER", "<a>\x1b</a>"}, {"CHARACTER", "<a b=\"\x01\"/>"}, {"CHARACTER", "<a>\ufffe</a>"}, {"CHARACTER", "<!-- \x02 -->"}, {"CHARACTER", "<a><![CDATA[\x03]]></a>"},
	{"ENCODING", "<a>M\xfcller</a>"}, {"ENCODING", "<a b=\"M\xfcller\"/>"}, {"ENCODING", "<a>\xed\xa0\x80</a>"},
	{"END-TAG", `</b>`}, {"END-TAG", `<a></b>`}, {"END-TAG", `<a><b></a></b>`},
	{"COMMENT", `<!-- a -- b -->`}, {"COMMENT", `<!-- a --->`},
	{"INSTRUCTION", `<? x?>`}, {"INSTRUCTION", `<?a:b x?>`}, {"DECLARATION", `<?xml version="1.0"?>`}, {"DECLARATION", `<?XML x?>`},
	{"DTD", `<!DOCTYPE a>`}, {"MARKUP", `<!ENTITY a "b">`}, {"MARKUP", `<!x>`},
}

func rule(err error) string {
	var bad *XMLError
	if errors.As(err, &bad) {
		return strings.TrimPrefix(bad.Rule, "UBL-XML-")
	}
	return ""
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	for _, c := range malformed {
		in := invoice("380", c.in)
		_, _, err := ReadHead(strings.NewReader(in), Limits{})
		if rule(err) != c.rule {
			t.Errorf("%s: got %v, want %s", c.in, err, c.rule)
			continue
		}
		if _, _, again := ReadHead(iotest.OneByteReader(strings.NewReader(in)), Limits{}); again.Error() != err.Error() {
			t.Errorf("%s: byte by byte %v, at once %v", c.in, again, err)
		}
	}
	whole := invoice("380", "")
	for _, c := range []struct{ rule, in string }{
		{"EMPTY", ""}, {"EMPTY", "  \n"}, {"EMPTY", "<!-- x -->"},
		{"OUTSIDE", "x" + whole[strings.Index(whole, "<Invoice"):]},
		{"OUTSIDE", whole + "x"}, {"OUTSIDE", whole + "<a/>"}, {"OUTSIDE", whole + "<![CDATA[x]]>"}, {"OUTSIDE", whole + "&amp;"}, {"END-TAG", whole + "</Invoice>"},
		{"DTD", `<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>` + whole[strings.Index(whole, "<Invoice"):]},
		{"ENCODING", "\xff\xfe<\x00I\x00"}, {"ENCODING", "\xfe\xff\x00<\x00I"}, {"ENCODING", "<\x00I\x00"},
		{"ENCODING", `<?xml version="1.0" encoding="ISO-8859-1"?>` + whole[strings.Index(whole, "<Invoice"):]},
		{"DECLARATION", " " + whole}, {"DECLARATION", `<?xml version="1.1"?><a/>`}, {"DECLARATION", `<?xml encoding="UTF-8"?><a/>`}, {"DECLARATION", `<?xml version="1.0" standalone="maybe"?><a/>`},
		{"DECLARATION", `<?xml version="1.0"encoding="UTF-8"?><a/>`}, {"DECLARATION", `<?xml version=1.0?><a/>`},
	} {
		if _, _, err := ReadHead(strings.NewReader(c.in), Limits{}); rule(err) != c.rule {
			t.Errorf("%.60q: got %v, want %s", c.in, err, c.rule)
		}
	}
	for _, ok := range []string{
		`<a b="&lt;&#10;&#x20AC;" c='"'>]] &gt; &quot;&apos;</a>`, "<a\n\tb = '1'\r\n/>", `<a></a >`, "<\u00e9l\u00e9ment/>", `<?target data?>`, `<!---->`,
		`<a xml:lang="en"/>`, `<a xmlns=""><b/></a>`, "<a>\U0001f600</a>", `<a xmlns:p="urn:x"><p:b p:c="1" c="2"/></a>`, `<a><![CDATA[ ]] > & < ]]></a>`,
	} {
		if _, _, err := ReadHead(strings.NewReader(invoice("380", ok)), Limits{}); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
}

func TestPosition(t *testing.T) {
	t.Parallel()
	in := invoice("380", strings.Repeat("<cbc:Note>x</cbc:Note>\n", 5000)+"  <p:a/>\n")
	_, _, err := ReadHead(strings.NewReader(in), Limits{})
	var bad *XMLError
	if !errors.As(err, &bad) {
		t.Fatal(err)
	}
	at := strings.Index(in, "p:a")
	if want := 1 + strings.Count(in[:at], "\n"); bad.Line != want || bad.Column != 4 || bad.Offset != int64(at) {
		t.Errorf("got line %d, column %d, byte %d; want %d, 4, %d", bad.Line, bad.Column, bad.Offset, want, at)
	}
	f := bad.Finding()
	if f.Rule != "UBL-XML-PREFIX" || f.Severity != edi.Fatal || f.Line != bad.Line || f.Offset != bad.Offset || !strings.Contains(f.Message, "; ") {
		t.Errorf("finding %+v", f)
	}
}

func TestTruncated(t *testing.T) {
	t.Parallel()
	in := invoice("380", `<a b="x">&amp;<![CDATA[x]]><!-- c --><?p i?></a>`)
	end := strings.LastIndex(in, "</Invoice>") + len("</Invoice>")
	for i := range end {
		_, _, err := ReadHead(strings.NewReader(in[:i]), Limits{})
		if rule(err) == "" {
			t.Fatalf("cut at %d: %v", i, err)
		}
		if _, _, err = ReadHead(io.MultiReader(strings.NewReader(in[:i]), iotest.ErrReader(io.ErrClosedPipe)), Limits{}); !errors.Is(err, io.ErrClosedPipe) {
			t.Fatalf("failed read at %d: %v", i, err)
		}
	}
	want, wantMsg, err := ReadHead(strings.NewReader(in), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(in) {
		ic, msg, err := ReadHead(io.MultiReader(strings.NewReader(in[:i]), strings.NewReader(in[i:])), Limits{})
		if err != nil || !cmp.Equal(ic, want) || !cmp.Equal(msg, wantMsg) {
			t.Fatalf("in two parts at %d: %+v, %+v, %v", i, ic, msg, err)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, more string
		l          Limits
	}{
		{"max_depth", strings.Repeat("<a>", 200) + strings.Repeat("</a>", 200), Limits{}},
		{"max_attributes", "<a b='1' c='2' d='3' e='4'/>", Limits{MaxAttributes: 3}},
		{"max_text", "<a>" + strings.Repeat("x", 3000) + "</a>", Limits{MaxText: 2000}},
		{"max_text", "<a><![CDATA[" + strings.Repeat("x", 3000) + "]]></a>", Limits{MaxText: 2000}},
		{"max_text", "<!--" + strings.Repeat("x", 100_000) + "-->", Limits{MaxText: 2000}},
		{"max_elements", strings.Repeat("<a/>", 100), Limits{MaxElements: 50}},
		{"max_name", "<" + strings.Repeat("a", 300) + "/>", Limits{}},
		{"max_bytes", strings.Repeat("<a>some text</a>", 10_000), Limits{MaxBytes: 50_000}},
		{"max_tag", "<a b='" + strings.Repeat("x", 2<<20) + "'/>", Limits{}},
	} {
		_, _, err := ReadHead(strings.NewReader(invoice("380", c.more)), c.l)
		var limit *edi.LimitError
		if rule(err) != "LIMIT" || !errors.As(err, &limit) || limit.Limit != c.name {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

func TestSniff(t *testing.T) {
	t.Parallel()
	whole := invoice("380", "")
	for in, want := range map[string]bool{
		whole: true, "\xef\xbb\xbf \n" + whole[strings.Index(whole, "<Invoice"):]: true, `<x:CreditNote xmlns:x="` + creditNoteNamespace + `"/>`: true,
		"<?xml version='1.0'?><Invoice xmlns='urn:oas": true, "<!-- <Order> --><Invoice": true,
		`<Invoice xmlns="urn:other">`: false, "<Order/>": false, "UNB+UNOA": false, "": false, "<?xml": false, "<": false,
		`<CreditNote xmlns="` + invoiceNamespace + `">`: false,
	} {
		if got := Sniff([]byte(in)); got != want {
			t.Errorf("Sniff(%.60q) = %v", in, got)
		}
	}
}

func FuzzUBL(f *testing.F) {
	for _, c := range malformed {
		f.Add([]byte(invoice("380", c.in)))
	}
	f.Add([]byte(invoice("389", `<a b="&lt;&#10;" c='"'>]] &gt;</a>`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := Limits{MaxText: 4096, MaxElements: 500}
		ic, msg, err := ReadHead(bytes.NewReader(data), l)
		half := len(data) / 2
		ic2, msg2, err2 := ReadHead(io.MultiReader(bytes.NewReader(data[:half]), bytes.NewReader(data[half:])), l)
		if (err == nil) != (err2 == nil) || err == nil && (!cmp.Equal(ic, ic2) || !cmp.Equal(msg, msg2)) {
			t.Fatalf("at once: %v; in two halves: %v", err, err2)
		}
		var bad *XMLError
		if errors.As(err, &bad) && (bad.Line < 1 || bad.Column < 1 || bad.Offset < 0 || bad.Offset > int64(len(data)) || bad.Remedy == "") {
			t.Fatalf("incomplete error %+v", bad)
		}
		if err != nil {
			return
		}
		if ic.Length != int64(len(data)) || msg.Length != ic.Length || msg.Type == "" {
			t.Fatalf("range of %d bytes: %+v, %+v", len(data), ic, msg)
		}
		// What is accepted here is well-formed for a second reader too. It knows other name
		// characters beyond ASCII, from an older edition of XML.
		if bytes.ContainsFunc(data, func(r rune) bool { return r >= 0x80 }) {
			return
		}
		d := xml.NewDecoder(bytes.NewReader(data))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				t.Fatalf("encoding/xml refuses: %v", err)
			}
		}
	})
}

func BenchmarkReadHead(b *testing.B) {
	line := `<cac:InvoiceLine><cbc:ID>1</cbc:ID><cbc:InvoicedQuantity unitCode="C62">7</cbc:InvoicedQuantity><cbc:LineExtensionAmount currencyID="EUR">2800</cbc:LineExtensionAmount><cac:Item><cbc:Name>Garden chair</cbc:Name></cac:Item></cac:InvoiceLine>` + "\n"
	for _, lines := range []int{25, 5000} {
		data := []byte(invoice("380", strings.Repeat(line, lines)))
		b.Run(strconv.Itoa(len(data)/1000)+"kB", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := ReadHead(bytes.NewReader(data), Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
