package loadtest

import (
	"bytes"
	"fmt"
	"strings"
)

// kind of a generated document.
type kind uint8

const (
	invoic kind = iota
	order850
	ubl
)

// flaw is how a document is broken on purpose.
type flaw uint8

const (
	sound      flaw = iota
	noTrailer       // no UNZ or IEA; UBL: cut off
	wrongCount      // UNT or SE counts one too many; UBL: the total with VAT is wrong
	unknownTo       // a receiver that nobody knows
	boom            // the validator panics
)

// flawsInTurn is how many flaws there are; poison takes them in turn.
const flawsInTurn = 4

// panicMark in a document's number makes the load test's validator panic.
const panicMark = "BOOM"

// document is one business document with its own number and its serial in the lane.
type document struct {
	kind   kind
	flaw   flaw
	lane   int // sender and receiver
	serial int
	number string
	ref    int
}

func newDocument(k kind, f flaw, lane, serial int) document {
	d := document{kind: k, flaw: f, lane: lane, serial: serial, ref: serial, number: fmt.Sprintf("LT-%d-%d", lane, serial)}
	if f == boom {
		d.number += "-" + panicMark
	}
	return d
}

// span is the byte range of a document in its file.
type span struct{ from, to int }

const issued = "20261130"

func senderID(lane int) string   { return fmt.Sprintf("LTS%d", lane) }
func receiverID(lane int) string { return fmt.Sprintf("LTR%d", lane) }

func (d *document) to() string {
	if d.flaw == unknownTo {
		return "LTNOBODY"
	}
	return receiverID(d.lane)
}

// interchange puts documents, all of the first one's kind, into one file of about size bytes a
// document.
func interchange(docs []document, size int) ([]byte, []span) {
	switch docs[0].kind {
	case invoic:
		return edifactFile(docs, size)
	case order850:
		return x12File(docs, size)
	case ubl:
	}
	return ublFile(docs[0], size)
}

func edifactFile(docs []document, size int) ([]byte, []span) {
	var b bytes.Buffer
	first := docs[0]
	fmt.Fprintf(&b, "UNB+UNOC:3+%s:ZZ+%s:ZZ+261130:1200+%d'", senderID(first.lane), first.to(), first.ref)
	var spans []span
	for i := range docs {
		from := b.Len()
		d := &docs[i]
		segments := 0
		seg := func(format string, a ...any) {
			segments++
			fmt.Fprintf(&b, format+"'", a...)
		}
		seg("UNH+%d+INVOIC:D:96A:UN", i+1)
		seg("BGM+380+%s+9", d.number)
		seg("DTM+137:%s:102", issued)
		seg("FTX+AAI+++SERIAL %d", d.serial)
		seg("RFF+ON:PO-%s", d.number)
		seg("NAD+BY+5412345000013::9")
		seg("NAD+SU+5412345000020::9")
		seg("CUX+2:EUR:4")
		lines := 0
		for b.Len()-from < size-160 || lines == 0 {
			lines++
			seg("LIN+%d++4000862141404:EN", lines)
			seg("IMD+F++:::ARTICLE %d OF THE LOAD TEST", lines)
			seg("QTY+47:5")
			seg("MOA+203:50")
			seg("PRI+AAA:10")
		}
		seg("UNS+S")
		seg("MOA+77:%d", 50*lines)
		seg("MOA+79:%d", 50*lines)
		seg("TAX+7+VAT+++:::0+Z")
		count := segments + 1
		if d.flaw == wrongCount {
			count++
		}
		seg("UNT+%d+%d", count, i+1)
		spans = append(spans, span{from, b.Len()})
	}
	if first.flaw != noTrailer {
		fmt.Fprintf(&b, "UNZ+%d+%d'", len(docs), first.ref)
	}
	return b.Bytes(), spans
}

func x12File(docs []document, size int) ([]byte, []span) {
	var b bytes.Buffer
	first := docs[0]
	fmt.Fprintf(&b, "ISA*00*          *00*          *ZZ*%-15s*ZZ*%-15s*261130*1200*U*00401*%09d*0*P*>~", senderID(first.lane), first.to(), first.ref)
	fmt.Fprintf(&b, "GS*PO*%s*%s*20261130*1200*%d*X*004010~", senderID(first.lane), first.to(), first.ref)
	var spans []span
	for i := range docs {
		from := b.Len()
		d := &docs[i]
		segments := 0
		seg := func(format string, a ...any) {
			segments++
			fmt.Fprintf(&b, format+"~", a...)
		}
		seg("ST*850*%04d", i+1)
		seg("BEG*00*SA*%s**%s", d.number, issued)
		seg("REF*ZZ*SERIAL %d", d.serial)
		seg("N1*BY*LOAD TEST BUYER*92*%s", senderID(d.lane))
		seg("N1*SE*LOAD TEST SELLER*92*%s", receiverID(d.lane))
		lines := 0
		for b.Len()-from < size-60 || lines == 0 {
			lines++
			seg("PO1*%d*5*EA*9.25**VN*W-%d", lines, lines)
			seg("PID*F****ARTICLE %d OF THE LOAD TEST", lines)
		}
		seg("CTT*%d", lines)
		count := segments + 1
		if d.flaw == wrongCount {
			count++
		}
		seg("SE*%d*%04d", count, i+1)
		spans = append(spans, span{from, b.Len()})
	}
	fmt.Fprintf(&b, "GE*%d*%d~", len(docs), first.ref)
	if first.flaw != noTrailer {
		fmt.Fprintf(&b, "IEA*1*%09d~", first.ref)
	}
	return b.Bytes(), spans
}

func ublFile(d document, size int) ([]byte, []span) {
	party := func(role, id, name string) string {
		return fmt.Sprintf(`<cac:Accounting%sParty><cac:Party><cbc:EndpointID schemeID="9930">%s</cbc:EndpointID><cac:PostalAddress><cac:Country><cbc:IdentificationCode>BE</cbc:IdentificationCode></cac:Country></cac:PostalAddress><cac:PartyTaxScheme><cbc:CompanyID>BE0123456789</cbc:CompanyID><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:PartyTaxScheme><cac:PartyLegalEntity><cbc:RegistrationName>%s</cbc:RegistrationName></cac:PartyLegalEntity></cac:Party></cac:Accounting%sParty>`, role, id, name, role)
	}
	var lines strings.Builder
	n := 0
	for n == 0 || lines.Len() < size-2600 {
		n++
		fmt.Fprintf(&lines, `<cac:InvoiceLine><cbc:ID>%d</cbc:ID><cbc:InvoicedQuantity unitCode="EA">5</cbc:InvoicedQuantity><cbc:LineExtensionAmount currencyID="EUR">50.00</cbc:LineExtensionAmount><cac:Item><cbc:Name>Article %d of the load test</cbc:Name><cac:ClassifiedTaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>20</cbc:Percent><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:ClassifiedTaxCategory></cac:Item><cac:Price><cbc:PriceAmount currencyID="EUR">10.00</cbc:PriceAmount></cac:Price></cac:InvoiceLine>`, n, n)
	}
	net, tax := 50*n, 10*n
	gross := net + tax
	if d.flaw == wrongCount {
		gross++
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>
<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2" xmlns:cac="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2" xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"><cbc:CustomizationID>urn:cen.eu:en16931:2017#compliant#urn:fdc:peppol.eu:2017:poacc:billing:3.0</cbc:CustomizationID><cbc:ProfileID>urn:fdc:peppol.eu:2017:poacc:billing:01:1.0</cbc:ProfileID><cbc:ID>%s</cbc:ID><cbc:IssueDate>2026-11-30</cbc:IssueDate><cbc:DueDate>2026-12-30</cbc:DueDate><cbc:InvoiceTypeCode>380</cbc:InvoiceTypeCode><cbc:Note>SERIAL %d</cbc:Note><cbc:DocumentCurrencyCode>EUR</cbc:DocumentCurrencyCode><cbc:BuyerReference>PO-%s</cbc:BuyerReference>`, d.number, d.serial, d.number)
	b.WriteString(party("Supplier", senderID(d.lane), "Load test seller"))
	b.WriteString(party("Customer", d.to(), "Load test buyer"))
	fmt.Fprintf(&b, `<cac:PaymentMeans><cbc:PaymentMeansCode>30</cbc:PaymentMeansCode><cac:PayeeFinancialAccount><cbc:ID>BE68539007547034</cbc:ID></cac:PayeeFinancialAccount></cac:PaymentMeans><cac:TaxTotal><cbc:TaxAmount currencyID="EUR">%d.00</cbc:TaxAmount><cac:TaxSubtotal><cbc:TaxableAmount currencyID="EUR">%d.00</cbc:TaxableAmount><cbc:TaxAmount currencyID="EUR">%d.00</cbc:TaxAmount><cac:TaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>20</cbc:Percent><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:TaxCategory></cac:TaxSubtotal></cac:TaxTotal>`, tax, net, tax)
	fmt.Fprintf(&b, `<cac:LegalMonetaryTotal><cbc:LineExtensionAmount currencyID="EUR">%d.00</cbc:LineExtensionAmount><cbc:TaxExclusiveAmount currencyID="EUR">%d.00</cbc:TaxExclusiveAmount><cbc:TaxInclusiveAmount currencyID="EUR">%d.00</cbc:TaxInclusiveAmount><cbc:PayableAmount currencyID="EUR">%d.00</cbc:PayableAmount></cac:LegalMonetaryTotal>`, net, net, gross, net+tax)
	b.WriteString(lines.String())
	b.WriteString("</Invoice>\n")
	out := b.Bytes()
	if d.flaw == noTrailer {
		out = out[:len(out)-40]
	}
	return out, []span{{0, len(out)}}
}

// media is the MIME type of a kind (RFC 1767).
func (k kind) media() string {
	switch k {
	case invoic:
		return "application/EDIFACT"
	case order850:
		return "application/EDI-X12"
	case ubl:
	}
	return "application/xml"
}
