package validate

import (
	"context"
	"io"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/tables"
	"github.com/edihub/edihub/internal/edifact"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/x12"
)

// Checkers are those of every standard: EDIFACT messages and X12 sets are compared with their
// directory tables, UBL documents are judged by their rules, as far as the agreement asks for it.
func Checkers() map[edi.Standard][]Checker {
	return map[edi.Standard][]Checker{edi.EDIFACT: {edifactTables{}}, edi.X12: {x12Tables{}}, edi.UBL: {UBL{}}}
}

// settings are what an agreement says about tables. ok is false where it wants none.
func settings(a *partner.Agreement) (p *tables.Policy, g *tables.Guideline, ok bool) {
	v := &a.Validate
	switch v.Level {
	case "guideline":
		g = v.Rulebook
	case "tables":
	default:
		return nil, nil, false
	}
	return &tables.Policy{WarnOnly: v.WarnOnly, Severity: v.Severity}, g, true
}

func content(d *Document) io.Reader { return io.NewSectionReader(d.Content, 0, d.Content.Size()) }

type edifactTables struct{}

// Check implements Checker.
func (edifactTables) Check(ctx context.Context, d *Document) ([]edi.Finding, error) {
	policy, guideline, ok := settings(d.Agreement)
	if !ok {
		return nil, nil
	}
	env := &d.Interchange.Envelope
	return edifact.Check(ctx, content(d), env.Delimiters, &edifact.CheckOptions{
		Version: env.Version, ServiceUNA: env.ServiceUNA, Base: d.Message.Envelope.Offset, Policy: policy, Guideline: guideline,
	})
}

type x12Tables struct{}

// Check implements Checker.
func (x12Tables) Check(ctx context.Context, d *Document) ([]edi.Finding, error) {
	policy, guideline, ok := settings(d.Agreement)
	if !ok {
		return nil, nil
	}
	return x12.Check(ctx, content(d), d.Interchange.Envelope.Delimiters, &x12.CheckOptions{
		Version: d.Message.Envelope.Version, Base: d.Message.Envelope.Offset, Policy: policy, Guideline: guideline,
	})
}
