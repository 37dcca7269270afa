// Package verdict tells what the hub's checks say about one file, whatever its standard, and
// prints it: as JSON, as text for people, and as SVRL.
package verdict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edifact"
	"github.com/edihub/edihub/internal/peppol"
	"github.com/edihub/edihub/internal/peppol/ubl"
	"github.com/edihub/edihub/internal/x12"
)

// The standards of a report beside those of edi.Standard.
const (
	cii     edi.Standard = "cii"
	unknown edi.Standard = "unknown"
)

// Ruleset is a rule set that was applied.
type Ruleset struct {
	ID      string `json:"id"`
	Version string `json:"version"`
}

// Report is what is said about one file.
type Report struct {
	File          string        `json:"file"`
	Standard      edi.Standard  `json:"standard"` // edifact, x12, ubl, cii or unknown
	Document      string        `json:"document,omitempty"`
	Customization string        `json:"customization,omitempty"`
	Valid         bool          `json:"valid"` // no fatal finding
	Rulesets      []Ruleset     `json:"rulesets"`
	Findings      []edi.Finding `json:"findings"`
	Omitted       int           `json:"omitted,omitempty"` // findings of rules that had enough of them
	ElapsedUS     int64         `json:"elapsed_us"`
}

// Judge checks a document. It never fails: what cannot be read is a finding, and so is a fault
// of the checks themselves. now is asked at the beginning and at the end.
func Judge(file string, doc []byte, o peppol.Options, now func() time.Time) (r *Report) {
	start := now()
	defer func() {
		if p := recover(); p != nil {
			r = Unread(file, "VALIDATOR-FAULT", fmt.Sprintf("The checks failed on this file (%v); keep it and report the fault.", p))
		}
		r.ElapsedUS = now().Sub(start).Microseconds()
	}()
	switch {
	case edifact.Sniff(doc):
		return interchange(file, edi.EDIFACT, edifact.NewSplitter(bytes.NewReader(doc), edifact.Limits{}))
	case x12.Sniff(doc):
		return interchange(file, edi.X12, x12.NewSplitter(bytes.NewReader(doc), x12.Limits{}))
	}
	return invoice(file, doc, o)
}

// Unread is the report about a file of which nothing can be said but one finding.
func Unread(file, rule, message string) *Report {
	return &Report{
		File: file, Standard: unknown, Rulesets: []Ruleset{},
		Findings: []edi.Finding{{Rule: rule, Severity: edi.Fatal, Message: message}},
	}
}

// invoice judges a document that is neither EDIFACT nor X12.
func invoice(file string, doc []byte, o peppol.Options) *Report {
	r := &Report{File: file, Standard: edi.UBL, Rulesets: []Ruleset{}, Findings: []edi.Finding{}}
	v, err := peppol.Validate(doc, o)
	var bad *ubl.XMLError
	switch {
	case errors.As(err, &bad):
		if !ubl.Sniff(doc) {
			r.Standard = unknown
		}
		r.Findings = append(r.Findings, bad.Finding())
		return r
	case err != nil && bytes.Contains(doc[:min(len(doc), 4096)], []byte("CrossIndustryInvoice")):
		r.Standard = cii
		r.Findings = append(r.Findings, edi.Finding{
			Rule: "CII-NOT-CHECKED", Severity: edi.Fatal, Message: "The document is a Cross Industry Invoice, which is not checked yet; send UBL.",
		})
		return r
	case err != nil:
		r.Standard = unknown
		r.Findings = append(r.Findings, edi.Finding{
			Rule: "UNKNOWN-CONTENT", Severity: edi.Fatal, Message: "The document is neither EDIFACT nor X12 nor a UBL 2.1 Invoice or CreditNote; check what was sent.",
		})
		return r
	}
	r.Document, r.Customization, r.Valid, r.Omitted = v.Document, v.Customization, v.Valid(), v.Omitted
	if o.Structure {
		r.Rulesets = append(r.Rulesets, Ruleset{"ubl", "2.1"})
	}
	for _, s := range v.Sets {
		r.Rulesets = append(r.Rulesets, Ruleset{s.ID, s.Version})
	}
	r.Findings = append(r.Findings, v.Findings...)
	return r
}

// interchange judges the envelope of a file of interchanges.
func interchange(file string, standard edi.Standard, s edi.Splitter) *Report {
	r := &Report{File: file, Standard: standard, Rulesets: []Ruleset{}, Findings: []edi.Finding{}}
	for {
		ev, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			f := edi.Finding{Rule: "EDI-LIMIT", Severity: edi.Fatal, Message: "The file cannot be read to its end: " + err.Error() + "."}
			var l *edi.LimitError
			if errors.As(err, &l) {
				f.Offset = l.Offset
			}
			r.Findings = append(r.Findings, f)
			break
		}
		switch ev.Kind {
		case edi.MessageEnd:
			r.Document = ev.Message.Type
			r.Findings = append(r.Findings, ev.Message.Findings...)
		case edi.GroupEnd:
			r.Findings = append(r.Findings, ev.Group.Findings...)
		case edi.InterchangeEnd:
			r.Findings = append(r.Findings, ev.Interchange.Findings...)
		}
	}
	r.Valid = !edi.HasFatal(r.Findings)
	return r
}

// Count returns the number of fatal findings and of warnings.
func (r *Report) Count() (fatal, warnings int) {
	for i := range r.Findings {
		if r.Findings[i].Severity == edi.Fatal {
			fatal++
		} else {
			warnings++
		}
	}
	return fatal, warnings
}
