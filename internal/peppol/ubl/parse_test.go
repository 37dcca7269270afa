package ubl

import (
	"errors"
	"strings"
	"testing"
)

func parse(t *testing.T, in string) *Tree {
	t.Helper()
	var p Parser
	tree, err := p.Parse([]byte(in), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// dump writes a tree as nested parentheses, with texts, attributes and paths left out.
func dump(t *Tree, n Node) string {
	s := t.Kind(n).String()
	if t.Kind(n) == Foreign {
		s = t.RawName(n)
	}
	if t.First(n) == None {
		return s + "=" + t.Text(n)
	}
	var in []string
	for c := t.First(n); c != None; c = t.Next(c) {
		in = append(in, dump(t, c))
	}
	return s + "(" + strings.Join(in, " ") + ")"
}

func TestParse(t *testing.T) {
	t.Parallel()
	tree := parse(t, invoice("380", `<x:Other xmlns:x="urn:x" a="1"><x:Deep>7</x:Deep></x:Other><cbc:Note/>`))
	want := "Invoice(cbc:CustomizationID=urn:custom#x cbc:ProfileID= urn:profile  cbc:ID=INV&1<2> cbc:IssueDate=2026-03-01 cbc:InvoiceTypeCode=380 " +
		"cac:OrderReference(cbc:ID=PO77) " +
		"cac:AccountingSupplierParty(cac:Party(cbc:EndpointID=4012345000009 cac:PartyIdentification(cbc:ID=SUP))) " +
		"cac:AccountingCustomerParty(cac:Party(cbc:EndpointID=987654325 cac:PartyIdentification(cbc:ID=BUY))) " +
		"cac:InvoiceLine(cbc:ID=1 cac:OrderLineReference(cac:OrderReference(cbc:ID=X))) x:Other(x:Deep=7) cbc:Note=)"
	if got := dump(tree, Root); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	party := tree.Child(tree.Child(Root, CacAccountingSupplierParty), CacParty)
	endpoint := tree.Child(party, CbcEndpointID)
	if v, ok := tree.Attr(endpoint, SchemeID); v != "0088" || !ok {
		t.Errorf("schemeID %q, %v", v, ok)
	}
	if _, ok := tree.Attr(endpoint, ListID); ok {
		t.Error("listID is there")
	}
	if got := tree.Path(endpoint); got != "/Invoice/cac:AccountingSupplierParty[1]/cac:Party[1]/cbc:EndpointID[1]" {
		t.Error(got)
	}
	if got := tree.Line(endpoint); got != 10 {
		t.Errorf("line %d", got)
	}
	if !tree.Within(endpoint, CacAccountingSupplierParty) || tree.Within(endpoint, CacAccountingCustomerParty) {
		t.Error("ancestors")
	}
}

func TestMalformedTree(t *testing.T) {
	t.Parallel()
	var p Parser
	for _, c := range malformed {
		_, err := p.Parse([]byte(invoice("380", c.in)), Limits{})
		if rule(err) != c.rule {
			t.Errorf("%s: got %v, want %s", c.in, err, c.rule)
		}
	}
	for _, in := range []string{"<Invoice/>", `<Invoice xmlns="urn:other"/>`, `<CreditNote xmlns="` + invoiceNamespace + `"/>`} {
		if _, err := p.Parse([]byte(in), Limits{}); !errors.Is(err, ErrNotUBL) {
			t.Errorf("%s: got %v", in, err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	line := `
    <cac:InvoiceLine>
        <cbc:ID>1</cbc:ID>
        <cbc:InvoicedQuantity unitCode="C62">7</cbc:InvoicedQuantity>
        <cbc:LineExtensionAmount currencyID="EUR">2800</cbc:LineExtensionAmount>
        <cac:Item>
            <cbc:Name>Garden chair</cbc:Name>
        </cac:Item>
    </cac:InvoiceLine>`
	for _, c := range []struct {
		name  string
		lines int
	}{{"9kB", 22}, {"1.4MB", 3600}} {
		data := []byte(invoice("380", strings.Repeat(line, c.lines)))
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			var p Parser
			for b.Loop() {
				if _, err := p.Parse(data, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
