package inspect

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/peppol/ubl"
)

// ciiNamespace is that of a UN/CEFACT Cross Industry Invoice, version D16B and its successors.
const ciiNamespace = "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100"

// sniffCII reports whether a file begins like a CrossIndustryInvoice.
func sniffCII(prefix []byte) bool {
	i := bytes.Index(prefix, []byte("CrossIndustryInvoice"))
	if i < 1 || !bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(prefix, []byte("\xef\xbb\xbf")), " \t\r\n"), []byte("<")) {
		return false
	}
	open := bytes.LastIndexByte(prefix[:i], '<')
	return open >= 0 && bytes.IndexByte(prefix[open:i], ' ') < 0 && prefix[open+1] != '!' && bytes.Contains(prefix, []byte(ciiNamespace))
}

const (
	ciiMaxDepth = 100
	ciiMaxBytes = 256 << 20
)

// paths of the values, by local names. The first of several counts.
const (
	ciiGuideline = "ExchangedDocumentContext/GuidelineSpecifiedDocumentContextParameter/ID"
	ciiProcess   = "ExchangedDocumentContext/BusinessProcessSpecifiedDocumentContextParameter/ID"
	ciiNumber    = "ExchangedDocument/ID"
	ciiType      = "ExchangedDocument/TypeCode"
	ciiDate      = "ExchangedDocument/IssueDateTime/DateTimeString"
	ciiAgreement = "SupplyChainTradeTransaction/ApplicableHeaderTradeAgreement/"
	ciiOrder     = ciiAgreement + "BuyerOrderReferencedDocument/IssuerAssignedID"
	ciiEndpoint  = "/URIUniversalCommunication/URIID"
)

// cii reads a CrossIndustryInvoice to its end.
func (rep *Report) cii(r io.Reader, l ubl.Limits) error {
	most := l.MaxBytes
	if most <= 0 {
		most = ciiMaxBytes
	}
	c := &counter{r: io.LimitReader(r, most+1)}
	values, err := ciiValues(c)
	ic := edi.Interchange{
		Sender:   edi.Party{ID: values[ciiAgreement+"SellerTradeParty"+ciiEndpoint], Qualifier: values[ciiAgreement+"SellerTradeParty"+ciiEndpoint+"@"]},
		Receiver: edi.Party{ID: values[ciiAgreement+"BuyerTradeParty"+ciiEndpoint], Qualifier: values[ciiAgreement+"BuyerTradeParty"+ciiEndpoint+"@"]},
		Version:  values[ciiGuideline],
	}
	m := edi.Message{Type: "CrossIndustryInvoice", Version: values[ciiGuideline], Ref: values[ciiNumber], Document: edi.Document{
		Number: values[ciiNumber], Function: values[ciiType], Date: values[ciiDate], OrderNo: values[ciiOrder],
	}}
	var bad *ciiError
	switch {
	case c.n > most:
		m.Findings = append(m.Findings, edi.Finding{
			Rule: "CII-XML-LIMIT", Severity: edi.Fatal, Ruleset: StandardCII, Position: edi.Position{Offset: most},
			Message: fmt.Sprintf("the document is larger than %d bytes; send attachments apart from it", most),
		})
	case errors.As(err, &bad):
		m.Findings = append(m.Findings, edi.Finding{
			Rule: "CII-XML", Severity: edi.Fatal, Ruleset: StandardCII, Position: edi.Position{Line: bad.line, Offset: bad.offset},
			Message: bad.reason + "; send well-formed XML without a document type declaration",
		})
	case err != nil:
		return err
	}
	rep.document(&ic, &m, c.n)
	return nil
}

// ciiError is what is wrong with the XML.
type ciiError struct {
	line   int
	offset int64
	reason string
}

func (e *ciiError) Error() string { return e.reason }

// ciiValues returns the texts by path. With a *ciiError it returns what stood before the error.
func ciiValues(r io.Reader) (map[string]string, error) {
	wanted := map[string]bool{ciiGuideline: true, ciiProcess: true, ciiNumber: true, ciiType: true, ciiDate: true, ciiOrder: true}
	for _, p := range []string{"SellerTradeParty", "BuyerTradeParty"} {
		wanted[ciiAgreement+p+ciiEndpoint] = true
	}
	values := map[string]string{}
	d := xml.NewDecoder(r)
	var path []string
	var text strings.Builder
	fail := func(reason string) error {
		line, _ := d.InputPos()
		return &ciiError{line: line, offset: d.InputOffset(), reason: reason}
	}
	for {
		token, err := d.Token()
		var syntax *xml.SyntaxError
		switch {
		case errors.Is(err, io.EOF) && len(path) == 0:
			return values, nil
		case errors.As(err, &syntax):
			return values, fail("the document is no well-formed XML: " + syntax.Msg)
		case err != nil:
			return values, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if path = append(path, t.Name.Local); len(path) > ciiMaxDepth {
				return values, fail(fmt.Sprintf("elements are nested deeper than %d", ciiMaxDepth))
			}
			text.Reset()
			if at := strings.Join(path[1:], "/"); wanted[at] {
				for _, a := range t.Attr {
					if _, known := values[at+"@"]; a.Name.Local == "schemeID" && !known {
						values[at+"@"] = a.Value
					}
				}
			}
		case xml.EndElement:
			if at := strings.Join(path[1:], "/"); wanted[at] {
				if _, known := values[at]; !known {
					values[at] = strings.TrimSpace(text.String())
				}
			}
			path = path[:len(path)-1]
			text.Reset()
		case xml.CharData:
			const most = 1 << 10 // more than any of the values; attachments are not kept
			if text.Len() < most {
				text.Write(t[:min(len(t), most)])
			}
		case xml.Directive:
			return values, fail("the document has a document type declaration")
		}
	}
}
