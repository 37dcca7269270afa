package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const goodInvoice = `<?xml version="1.0" encoding="UTF-8"?>
<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"
  xmlns:cac="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"
  xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2">
  <cbc:CustomizationID>urn:cen.eu:en16931:2017#compliant#urn:fdc:peppol.eu:2017:poacc:billing:3.0</cbc:CustomizationID>
  <cbc:ProfileID>urn:fdc:peppol.eu:2017:poacc:billing:01:1.0</cbc:ProfileID>
  <cbc:ID>R-77</cbc:ID>
  <cbc:IssueDate>2026-10-01</cbc:IssueDate>
  <cbc:DueDate>2026-10-31</cbc:DueDate>
  <cbc:InvoiceTypeCode>380</cbc:InvoiceTypeCode>
  <cbc:DocumentCurrencyCode>EUR</cbc:DocumentCurrencyCode>
  <cbc:BuyerReference>Department 4</cbc:BuyerReference>
  <cac:AccountingSupplierParty><cac:Party>
    <cbc:EndpointID schemeID="9915">b</cbc:EndpointID>
    <cac:PostalAddress><cac:Country><cbc:IdentificationCode>AT</cbc:IdentificationCode></cac:Country></cac:PostalAddress>
    <cac:PartyTaxScheme><cbc:CompanyID>ATU12345678</cbc:CompanyID><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:PartyTaxScheme>
    <cac:PartyLegalEntity><cbc:RegistrationName>Tischlerei</cbc:RegistrationName></cac:PartyLegalEntity>
  </cac:Party></cac:AccountingSupplierParty>
  <cac:AccountingCustomerParty><cac:Party>
    <cbc:EndpointID schemeID="9915">c</cbc:EndpointID>
    <cac:PostalAddress><cac:Country><cbc:IdentificationCode>AT</cbc:IdentificationCode></cac:Country></cac:PostalAddress>
    <cac:PartyLegalEntity><cbc:RegistrationName>Gasthof</cbc:RegistrationName></cac:PartyLegalEntity>
  </cac:Party></cac:AccountingCustomerParty>
  <cac:TaxTotal><cbc:TaxAmount currencyID="EUR">20.00</cbc:TaxAmount>
    <cac:TaxSubtotal><cbc:TaxableAmount currencyID="EUR">100.00</cbc:TaxableAmount><cbc:TaxAmount currencyID="EUR">20.00</cbc:TaxAmount>
      <cac:TaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>20</cbc:Percent><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:TaxCategory></cac:TaxSubtotal>
  </cac:TaxTotal>
  <cac:LegalMonetaryTotal>
    <cbc:LineExtensionAmount currencyID="EUR">100.00</cbc:LineExtensionAmount>
    <cbc:TaxExclusiveAmount currencyID="EUR">100.00</cbc:TaxExclusiveAmount>
    <cbc:TaxInclusiveAmount currencyID="EUR">120.00</cbc:TaxInclusiveAmount>
    <cbc:PayableAmount currencyID="EUR">120.00</cbc:PayableAmount>
  </cac:LegalMonetaryTotal>
  <cac:InvoiceLine><cbc:ID>1</cbc:ID><cbc:InvoicedQuantity unitCode="C62">2</cbc:InvoicedQuantity>
    <cbc:LineExtensionAmount currencyID="EUR">100.00</cbc:LineExtensionAmount>
    <cac:Item><cbc:Name>Table</cbc:Name>
      <cac:ClassifiedTaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>20</cbc:Percent><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:ClassifiedTaxCategory></cac:Item>
    <cac:Price><cbc:PriceAmount currencyID="EUR">50</cbc:PriceAmount></cac:Price>
  </cac:InvoiceLine>
</Invoice>
`

// badInvoice has a wrong total, and an element that UBL does not know.
var badInvoice = strings.NewReplacer(">120.00</cbc:TaxInclusiveAmount>", ">121.00</cbc:TaxInclusiveAmount>", "<cbc:DueDate>2026-10-31</cbc:DueDate>", "<cbc:Term>30</cbc:Term>").Replace(goodInvoice)

type validated struct {
	File, Standard, Document, Customization string
	Valid                                   bool
	Rulesets                                []struct{ ID, Version string }
	Findings                                []struct {
		Rule, Severity, Ruleset, Location, Message, Actual, Expected string
		Line                                                         int
	}
	Elapsed *int64 `json:"elapsed_us"`
}

func (v *validated) rules() string {
	var out []string
	for _, f := range v.Findings {
		out = append(out, f.Ruleset+"/"+f.Rule)
	}
	return strings.Join(out, " ")
}

// folder writes files and returns the folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestValidateJSON(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"good.xml": goodInvoice, "bad.xml": badInvoice, "cut.xml": goodInvoice[:2000], "empty": "", "text.txt": "hello", "order.xml": "<Order/>",
		"cii.xml": `<rsm:CrossIndustryInvoice xmlns:rsm="urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100"/>`,
		"a.edi":   "UNB+UNOA:3+A+B+260101:0000+1'UNH+1+ORDERS:D:96A:UN'BGM+220+1'UNT+3+1'UNZ+1+1'", "b.edi": "UNB+UNOA:3+A+B+260101:0000+1'UNH+1+ORDERS:D:96A:UN'BGM+220+1'UNT+3+1'UNZ+1+2'",
	})
	names := []string{"good.xml", "bad.xml", "cut.xml", "empty", "nowhere", "text.txt", "order.xml", "cii.xml", "a.edi", "b.edi"}
	var args []string
	for _, n := range names {
		args = append(args, filepath.Join(dir, n))
	}
	r := edihub(nil, "", append([]string{"validate", "--format", "json"}, args...)...)
	r.want(t, exitUsage, "no such file")
	got := objects[validated](t, r)
	if len(got) != len(names) {
		t.Fatalf("%d objects for %d files", len(got), len(names))
	}
	for i, want := range []struct {
		standard, rules string
		valid           bool
	}{
		{"ubl", "", true},
		{"ubl", "ubl/UBL-STRUCT-UNKNOWN en16931/BR-CO-15 en16931/BR-CO-16", false},
		{"ubl", "ubl/UBL-XML-TRUNCATED", false},
		{"unknown", "ubl/UBL-XML-EMPTY", false},
		{"unknown", "/FILE-UNREADABLE", false},
		{"unknown", "ubl/UBL-XML-OUTSIDE", false},
		{"unknown", "/UNKNOWN-CONTENT", false},
		{"cii", "/CII-NOT-CHECKED", false},
		{"edifact", "", true},
		{"edifact", got[9].rules(), false},
	} {
		v := got[i]
		if v.File != args[i] || v.Standard != want.standard || v.rules() != want.rules || v.Valid != want.valid || v.Findings == nil || v.Rulesets == nil || v.Elapsed == nil {
			t.Errorf("%s: %+v", names[i], v)
		}
	}
	bad := got[1]
	if f := bad.Findings[1]; bad.Document != "Invoice" || len(bad.Rulesets) != 3 || f.Line != 31 || f.Location != "/Invoice/cac:LegalMonetaryTotal[1]/cbc:TaxInclusiveAmount[1]" ||
		f.Actual != "121.00" || f.Expected != "120.00" || f.Severity != "fatal" {
		t.Errorf("bad.xml: %+v", bad)
	}
}

func TestValidateRules(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"good.xml": strings.Replace(goodInvoice, "#compliant#urn:fdc:peppol.eu:2017:poacc:billing:3.0", "", 1), "bad.xml": badInvoice})
	for _, c := range []struct {
		file, flag, sets, findings string
		code                       int
	}{
		{"good.xml", "auto", "ubl en16931", "", exitGood},
		{"good.xml", "peppol", "peppol", "peppol/PEPPOL-EN16931-R004", exitBad},
		{"good.xml", "peppol, en16931", "en16931 peppol", "peppol/PEPPOL-EN16931-R004", exitBad},
		{"bad.xml", "ubl", "ubl", "ubl/UBL-STRUCT-UNKNOWN", exitBad},
		{"bad.xml", "en16931", "en16931", "en16931/BR-CO-15 en16931/BR-CO-16", exitBad},
	} {
		r := edihub(nil, "", "validate", "--format", "json", "--rules", c.flag, filepath.Join(dir, c.file))
		r.want(t, c.code)
		v := objects[validated](t, r)[0]
		var sets []string
		for _, s := range v.Rulesets {
			sets = append(sets, s.ID)
		}
		if strings.Join(sets, " ") != c.sets || v.rules() != c.findings {
			t.Errorf("%s with %s: sets %v, findings %s", c.file, c.flag, sets, v.rules())
		}
	}
	edihub(nil, "", "validate", "--rules", "en16931,xrechnung", "x").want(t, exitUsage, `"xrechnung"`, "en16931", "peppol", "ubl")
	edihub(nil, "", "validate", "--rules", "", "x").want(t, exitUsage, "no rule set")
	edihub(nil, "", "validate", "--format", "yaml", "x").want(t, exitUsage, "text, json, svrl")
	edihub(nil, "", "validate").want(t, exitUsage, "--files-from")
}

func TestValidateText(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"good.xml": goodInvoice, "bad.xml": badInvoice, "esc.xml": strings.Replace(goodInvoice, "</Invoice>", "\x1b[31m</Invoice>", 1)})
	r := edihub(nil, "", "validate", filepath.Join(dir, "good.xml"), filepath.Join(dir, "bad.xml"), filepath.Join(dir, "esc.xml"))
	r.want(t, exitBad, "good.xml: valid (Invoice, ubl 2.1, en16931 1.3.16, peppol 3.0.21)\n", "3 fatal, 0 warnings", "found 121.00; expected 120.00; BT-112",
		"        31 |     <cbc:TaxInclusiveAmount currencyID=\"EUR\">121.00</cbc:TaxInclusiveAmount>\n"+
			"           |          ^^^^^^^^^^^^^^^^^^\n", "UBL-XML-CHARACTER", "3 files: 1 valid, 2 not; 4 fatal findings, 0 warnings")
	if strings.Contains(r.stdout, "\x1b") {
		t.Error("a control character reached the output")
	}
}

func TestValidateSVRL(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"bad.xml": badInvoice, "good.xml": goodInvoice})
	for files, reports := range map[string]int{"bad.xml": 1, "good.xml bad.xml": 2} {
		args := []string{"validate", "--format", "svrl"}
		for f := range strings.FieldsSeq(files) {
			args = append(args, filepath.Join(dir, f))
		}
		r := edihub(nil, "", args...)
		r.want(t, exitBad, `location="/inv:Invoice/cac:LegalMonetaryTotal[1]/cbc:TaxInclusiveAmount[1]"`, `id="BR-CO-15" flag="fatal"`)
		count := 0
		for d := xml.NewDecoder(strings.NewReader(r.stdout)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in %s", err, r.stdout)
			}
			if s, ok := token.(xml.StartElement); ok && s.Name.Local == "schematron-output" && s.Name.Space == "http://purl.oclc.org/dsdl/svrl" {
				count++
			}
		}
		if count != reports {
			t.Errorf("%d reports for %s", count, files)
		}
	}
}

func TestValidateMany(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	var list strings.Builder
	dir := t.TempDir()
	for i := range 100 {
		name := strconv.Itoa(i) + ".xml"
		files[name] = strings.Replace(goodInvoice, ">R-77<", ">"+strconv.Itoa(i)+"<", 1)
		if i%10 == 3 {
			files[name] = badInvoice
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		list.WriteString(filepath.Join(dir, name) + "\r\n\n")
	}
	r := edihub(nil, list.String(), "validate", "--format", "json", "--files-from", "-")
	r.want(t, exitBad)
	for i, v := range objects[validated](t, r) {
		if v.File != filepath.Join(dir, strconv.Itoa(i)+".xml") || v.Valid != (i%10 != 3) {
			t.Errorf("object %d: %+v", i, v)
		}
	}
	edihub(nil, goodInvoice, "validate", "-").want(t, exitGood, "-: valid")
	edihub(nil, "", "validate", "--files-from", filepath.Join(dir, "nowhere")).want(t, exitUsage, "nowhere")
}
