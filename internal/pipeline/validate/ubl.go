package validate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/peppol"
	"github.com/edihub/edihub/internal/peppol/ubl"
)

// UBL judges UBL invoices and credit notes by the rule sets that the agreement names, in the
// versions that are valid on the day when the interchange arrived: a document is judged alike
// however often it is processed. The whole document is read into memory; limits bound it.
type UBL struct {
	Limits ubl.Limits
}

// Check implements Checker.
func (c UBL) Check(_ context.Context, d *Document) ([]edi.Finding, error) {
	if d.Agreement.Validate.Level == "envelope" {
		return nil, nil
	}
	o := peppol.Options{Severities: d.Agreement.Validate.Severity, Limits: c.Limits}
	var err error
	if o.Sets, o.Structure, err = ruleSets(d); err != nil || o.Sets == nil && !o.Structure {
		return nil, err
	}
	o.Exactly = o.Sets == nil // nothing to choose from
	doc := make([]byte, d.Content.Size())
	if _, err := io.ReadFull(io.NewSectionReader(d.Content, 0, int64(len(doc))), doc); err != nil {
		return nil, fmt.Errorf("read document: %w", err)
	}
	v, err := peppol.Validate(doc, o)
	var bad *ubl.XMLError
	switch {
	case errors.As(err, &bad):
		return []edi.Finding{bad.Finding()}, nil
	case errors.Is(err, ubl.ErrNotUBL):
		return []edi.Finding{{Rule: "UBL-XML-ROOT", Severity: edi.Fatal, Ruleset: "ubl", Message: "The document is no UBL 2.1 Invoice or CreditNote."}}, nil
	case err != nil:
		return nil, fmt.Errorf("judge document: %w", err)
	}
	return v.Findings, nil
}

// ruleSets returns the sets to choose from, and whether the structure is judged as well.
func ruleSets(d *Document) (sets []*peppol.Set, structure bool, err error) {
	names := slices.Clone(d.Agreement.Validate.Rules)
	auto := slices.Contains(names, "auto")
	structure = auto || slices.Contains(names, "ubl")
	names = slices.DeleteFunc(names, func(n string) bool { return n == "auto" || n == "ubl" })
	if auto {
		for _, s := range peppol.Sets() {
			names = append(names, s.ID)
		}
	}
	if len(names) == 0 {
		return nil, structure, nil
	}
	names = append(names, peppol.Core) // what the others are based on
	var at time.Time
	if d.Interchange != nil {
		at = d.Interchange.At
	}
	sets, unknown := peppol.Choose(names, at.UTC().Format(time.DateOnly))
	if unknown != "" {
		return nil, false, fmt.Errorf("the agreement names the rule set %s, which this program does not have", unknown)
	}
	return sets, structure, nil
}
