// Package validate is the validator stage: it asks the checkers of a document's standard and
// turns their findings into a verdict. The checkers are the seam where tables and rules plug in.
package validate

import (
	"context"
	"io"
	"slices"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// CodeInvalid is the code of a message that its checkers refused.
const CodeInvalid = "MESSAGE_INVALID"

// Document is what a checker is given.
type Document struct {
	Message     *store.Message
	Interchange *store.Interchange
	Agreement   *partner.Agreement
	Content     edi.Source // the bytes of the message, UNH..UNT, ST..SE or the whole document
}

// Checker finds what is wrong with a document. It is pure, honours ctx, and is safe for
// concurrent use. An error is a failure to check, not a finding.
type Checker interface {
	Check(ctx context.Context, d *Document) ([]edi.Finding, error)
}

// New makes the validator stage with the checkers of each standard. A standard without checkers
// passes at the level of the envelope, which the parser has checked.
func New(checkers map[edi.Standard][]Checker) pipeline.Stage { return &stage{checkers} }

type stage struct{ checkers map[edi.Standard][]Checker }

// Handle implements pipeline.Stage.
func (s *stage) Handle(ctx context.Context, t *pipeline.Task) *pipeline.Outcome {
	m := *t.Message
	a := pipeline.Resolve(t.Registry, t.Interchange, &m.Envelope)
	findings, err := s.check(ctx, t, &m, a)
	if err != nil {
		return &pipeline.Outcome{Verdict: pipeline.Retry, Code: "CHECK_FAILED", Detail: err.Error(), Partner: m.From}
	}
	m.Findings = append(slices.Clone(m.Findings), findings...)
	m.Profile = t.Registry.Version()
	out := &pipeline.Outcome{Verdict: pipeline.Done, Partner: m.From}
	if edi.HasFatal(findings) && a.OnInvalid != "deliver" {
		if a.OnInvalid == "hold" {
			m.State, m.Code = store.StateDead, CodeInvalid
			return &pipeline.Outcome{
				Verdict: pipeline.Hold, Code: CodeInvalid, Detail: "the agreement holds invalid documents; look at the findings, then replay or discard", Partner: m.From,
				Write: pipeline.Write{SaveMessages: []*store.Message{&m}},
			}
		}
		m.Code = CodeInvalid // the state follows with the count of the interchange
		out.Write.SaveMessages = []*store.Message{&m}
		out.Write.End = []pipeline.End{{Messages: []edi.ID{m.ID}, State: store.StateRejected, Code: CodeInvalid}}
		out.Write.Events = []store.Event{{Object: m.ID, Name: "rejected", Detail: CodeInvalid}}
		if t.Interchange.Waits() {
			out.Write.Decide = []pipeline.Decide{pipeline.DecideFor(a, t.Interchange, 1)}
		}
		return out
	}
	m.State = store.StateValidated
	out.Write.SaveMessages = []*store.Message{&m}
	out.Write.Events = []store.Event{{Object: m.ID, Name: "validated"}}
	out.Emit = []pipeline.Emission{{
		Stage: store.Router, Kind: store.KindMessage, ID: m.ID,
		Lane: pipeline.MessageLane(store.Router, a, m.From, m.To, m.Interchange, &m.Envelope.Document),
		Key:  pipeline.HoldKey(a, &m.Envelope.Document),
	}}
	return out
}

func (s *stage) check(ctx context.Context, t *pipeline.Task, m *store.Message, a *partner.Agreement) ([]edi.Finding, error) {
	cs := s.checkers[m.Standard]
	if len(cs) == 0 || a.Validate.Level == "off" {
		return nil, nil
	}
	body, err := t.Open(t.Interchange.Body)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // Nothing was written.
	d := &Document{
		Message: m, Interchange: t.Interchange, Agreement: a,
		Content: io.NewSectionReader(body, m.Envelope.Offset, m.Envelope.Length),
	}
	var all []edi.Finding
	for _, c := range cs {
		fs, err := c.Check(ctx, d)
		if err != nil {
			return nil, err
		}
		all = append(all, fs...)
	}
	return all, nil
}
