// Package mlr writes Peppol message level responses: what the receiver of an invoice tells its
// sender about the verdict of the rules. A response is a pure function of the findings.
package mlr

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/beevik/etree"

	"github.com/edihub/edihub/internal/edi"
)

// The identifiers of Peppol BIS Message Level Response 3.0.
const (
	Customization = "urn:fdc:peppol.eu:poacc:trns:mlr:3"
	Profile       = "urn:fdc:peppol.eu:poacc:bis:mlr:3"
	namespace     = "urn:oasis:names:specification:ubl:schema:xsd:ApplicationResponse-2"
)

// Code is the answer as a whole (UNCL 4343, the part that Peppol uses).
type Code string

// The answers.
const (
	Acknowledged Code = "AB" // received, not judged
	Accepted     Code = "AP" // no fatal finding
	Rejected     Code = "RE"
)

// MaxLines is how many findings one response tells at most. A sender mends the first of a
// thousand alike.
const MaxLines = 100

// Response is what a message level response says.
type Response struct {
	ID         string    // of the response
	At         time.Time // written in UTC
	Sender     edi.Party // who judged: the receiver of the document
	Receiver   edi.Party // who sent the document
	Document   string    // identifier of the document, as its sender named it
	TypeCode   string    // BT-3, "" where it is not known
	Version    string    // of the document, "" for none
	Code       Code
	Findings   []edi.Finding
	Suppressed int // findings that the report left out
}

// ErrIncomplete is returned for a response that lacks what the BIS asks for.
var ErrIncomplete = errors.New("the response lacks its identifier, a party with its scheme, the document or the code")

// For returns the code that findings lead to.
func For(findings []edi.Finding) Code {
	if edi.HasFatal(findings) {
		return Rejected
	}
	return Accepted
}

// Build writes the response as XML. Findings beyond MaxLines are counted in its description.
func Build(r *Response) ([]byte, error) {
	if r.ID == "" || r.Document == "" || r.Code == "" || r.Sender.ID == "" || r.Sender.Qualifier == "" || r.Receiver.ID == "" || r.Receiver.Qualifier == "" {
		return nil, ErrIncomplete
	}
	doc := etree.NewDocument()
	doc.CreateProcInst("xml", `version="1.0" encoding="UTF-8"`)
	root := doc.CreateElement("ApplicationResponse")
	root.CreateAttr("xmlns", namespace)
	root.CreateAttr("xmlns:cac", "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2")
	root.CreateAttr("xmlns:cbc", "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2")
	at := r.At.UTC()
	text(root, "cbc:CustomizationID", Customization)
	text(root, "cbc:ProfileID", Profile)
	text(root, "cbc:ID", r.ID)
	text(root, "cbc:IssueDate", at.Format(time.DateOnly))
	text(root, "cbc:IssueTime", at.Format("15:04:05Z"))
	party(root, "cac:SenderParty", r.Sender)
	party(root, "cac:ReceiverParty", r.Receiver)
	answer := root.CreateElement("cac:DocumentResponse")
	response := answer.CreateElement("cac:Response")
	text(response, "cbc:ResponseCode", string(r.Code))
	text(response, "cbc:Description", r.summary())
	reference := answer.CreateElement("cac:DocumentReference")
	text(reference, "cbc:ID", r.Document)
	text(reference, "cbc:DocumentTypeCode", r.TypeCode)
	text(reference, "cbc:VersionID", r.Version)
	lines := 0
	for _, severity := range []edi.Severity{edi.Fatal, edi.Warning} { // what must be mended goes first
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Severity == severity && lines < MaxLines {
				lines++
				line(answer, f)
			}
		}
	}
	doc.Indent(2)
	out, err := doc.WriteToBytes()
	if err != nil {
		return nil, fmt.Errorf("write response: %w", err)
	}
	return out, nil
}

// text adds an element with a value; an empty one is left out, since Peppol allows none.
func text(e *etree.Element, name, value string) {
	if value = strings.TrimSpace(printable(value)); value != "" {
		e.CreateElement(name).SetText(value)
	}
}

// printable drops what XML 1.0 cannot hold.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\t' && c != '\n' || c == 0xfffe || c == 0xffff || c == '\uFFFD' {
			return -1
		}
		return c
	}, s)
}

func party(e *etree.Element, name string, p edi.Party) {
	id := e.CreateElement(name).CreateElement("cbc:EndpointID")
	id.CreateAttr("schemeID", p.Qualifier)
	id.SetText(p.ID)
}

// summary says the answer in one sentence.
func (r *Response) summary() string {
	fatal := 0
	for i := range r.Findings {
		if r.Findings[i].Severity == edi.Fatal {
			fatal++
		}
	}
	s := fmt.Sprintf("Errors: %d, warnings: %d.", fatal, len(r.Findings)-fatal)
	if more := max(0, len(r.Findings)-MaxLines) + r.Suppressed; more > 0 {
		s += fmt.Sprintf(" Not listed: %d.", more)
	}
	return s
}

// line adds one finding. The place is an XPath, NA where there is none.
func line(e *etree.Element, f *edi.Finding) {
	response := e.CreateElement("cac:LineResponse")
	place := f.Location
	if place == "" {
		place = "NA"
	}
	text(response.CreateElement("cac:LineReference"), "cbc:LineID", place)
	what := response.CreateElement("cac:Response")
	description := "[" + f.Rule + "] " + f.Message
	if f.Actual != "" {
		description += " Found: " + f.Actual + "."
	}
	if f.Expected != "" {
		description += " Expected: " + f.Expected + "."
	}
	text(what, "cbc:Description", description)
	text(what.CreateElement("cac:Status"), "cbc:StatusReasonCode", reason(f))
}

// reason returns the kind of a finding: BV and BW for rules, fatal and not; SV for XML and the
// structure of UBL.
func reason(f *edi.Finding) string {
	switch {
	case f.Severity == edi.Warning:
		return "BW"
	case f.Ruleset == "ubl":
		return "SV"
	}
	return "BV"
}
