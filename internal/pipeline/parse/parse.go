// Package parse is the parser stage: it finds out what a file is, splits it by byte ranges, checks
// the envelopes, and says whose documents they are.
package parse

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edifact"
	"github.com/edihub/edihub/internal/idempotency"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/peppol/ubl"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
	"github.com/edihub/edihub/internal/x12"
)

// Codes of the parser.
const (
	CodeSenderNotOnConnection = "SENDER_NOT_ON_CONNECTION"
	CodeUnknownContent        = "UNKNOWN_CONTENT"
	CodePartnerNotActive      = "PARTNER_NOT_ACTIVE"
	CodeEnvelope              = "ENVELOPE_INVALID"
	CodeMessage               = "MESSAGE_INVALID"
	CodeDuplicate             = "DUPLICATE"
	CodeDuplicateOther        = "DUPLICATE_CONTROL_REFERENCE_DIFFERENT_CONTENT"
	CodeGroup                 = pipeline.CodeGroup
	CodeInterchange           = pipeline.CodeInterchange
)

// Options of the stage; zero values take the readers' defaults.
type Options struct {
	EDIFACT edifact.Limits
	X12     x12.Limits
	UBL     ubl.Limits
	// ChunkMessages is how many messages one transaction takes; default 1,000.
	ChunkMessages int
}

// New makes the parser stage.
func New(o Options) pipeline.Stage {
	if o.ChunkMessages <= 0 {
		o.ChunkMessages = 1000
	}
	return &stage{o}
}

type stage struct{ o Options }

// sniffBytes is how much of a file tells what it is.
const sniffBytes = 1024

// Handle implements pipeline.Stage. The task is a transmission, or an interchange of one that
// was dead and is replayed.
func (s *stage) Handle(ctx context.Context, t *pipeline.Task) *pipeline.Outcome {
	body, err := t.Open(t.Transmission.Content)
	if err != nil {
		return &pipeline.Outcome{Verdict: pipeline.Retry, Code: "STORE_READ", Detail: err.Error()}
	}
	f := &file{stage: s, task: t, body: body, src: io.NewSectionReader(body, 0, body.Size())}
	if t.Interchange != nil {
		f.base = t.Interchange.Envelope.Offset
		if n := t.Interchange.Envelope.Length; n > 0 && f.base+n <= body.Size() {
			f.src = io.NewSectionReader(body, f.base, n)
		}
	}
	prefix := make([]byte, min(sniffBytes, f.src.Size()))
	if _, err := f.src.ReadAt(prefix, 0); err != nil && !errors.Is(err, io.EOF) {
		return f.failed(err)
	}
	switch {
	case edifact.Sniff(prefix):
		return f.split(ctx, edifact.NewSplitter(f.reader(ctx), s.o.EDIFACT))
	case x12.Sniff(prefix):
		return f.split(ctx, x12.NewSplitter(f.reader(ctx), s.o.X12))
	}
	out := f.single(ctx, prefix)
	f.release()
	return out
}

// file is one transmission, or a part of it, on its way through the parser.
type file struct {
	stage *stage
	task  *pipeline.Task
	body  store.BodySource
	src   *io.SectionReader
	base  int64 // where src begins in the body
	in    *ctxReader
}

// reader reads src and ends when ctx does, so that a time limit is honoured in a large file. A
// split goes on under the context of its next step (within).
func (f *file) reader(ctx context.Context) io.Reader {
	f.in = &ctxReader{ctx: ctx, r: io.NewSectionReader(f.src, 0, f.src.Size())}
	return f.in
}

// within lets the reader end with the context of a step: that of the step before has ended.
func (f *file) within(ctx context.Context) { f.in.ctx = ctx }

type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *ctxReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}

func (f *file) release() { _ = f.body.Close() }

func (f *file) failed(err error) *pipeline.Outcome {
	f.release()
	return &pipeline.Outcome{Verdict: pipeline.Retry, Code: "STORE_READ", Detail: err.Error()}
}

// party says who sent an interchange: the connection was proved by the transport, and the
// envelope's sender must be bound to it (DESIGN G8).
func (f *file) party(ic *store.Interchange) (code, detail string) {
	t, reg := f.task, f.task.Registry
	sender, receiver := ic.Envelope.Identifiers()
	only := f.only()
	switch {
	case ic.Envelope.Sender.ID == "" && (ic.Envelope.Standard == edi.UBL || ic.Envelope.Standard == edi.Opaque):
		// Nothing in the document says who sent it; the connection does, where it is one partner's.
		if only == nil {
			return CodeSenderNotOnConnection, "the document names no sender and connection " + t.Transmission.Connection + " carries more than one partner"
		}
		ic.From = only.ID
	default:
		p, ok := reg.BoundTo(t.Transmission.Connection, sender)
		if !ok {
			ic.From = string(sender)
			return CodeSenderNotOnConnection, "sender " + string(sender) + " is not bound to connection " + t.Transmission.Connection + "; bind it in the partner records and replay"
		}
		ic.From = p.ID
	}
	if p := reg.Partner(ic.From); p != nil && (p.Status == partner.Draft || p.Status == partner.Suspended) {
		return CodePartnerNotActive, "partner " + p.ID + " is " + string(p.Status) + "; set it live and replay"
	}
	ic.Role = string(partner.Transparent)
	switch {
	case ic.Envelope.Receiver.ID == "" && ic.Envelope.Standard != edi.EDIFACT && ic.Envelope.Standard != edi.X12:
		ic.To, ic.Role = t.Transmission.Own, string(partner.Endpoint)
		if t.Transmission.To != "" && t.Transmission.Transport == "http" {
			ic.To = t.Transmission.To
		}
	default:
		id, own, ok := reg.PartyByIdentifier(receiver)
		switch {
		case ok:
			ic.To = id
			if own {
				ic.Role = string(partner.Endpoint)
			}
		default:
			ic.To = string(receiver) // the router has no route for it, unless one names it
		}
	}
	return "", ""
}

// only is the one partner of the connection, or the one that a POST named.
func (f *file) only() *partner.Partner {
	t := f.task
	ps := t.Registry.PartnersOf(t.Transmission.Connection)
	if t.Transmission.Transport == "http" && t.Transmission.From != "" {
		for _, p := range ps {
			if p.ID == t.Transmission.From {
				return p
			}
		}
		return nil
	}
	if len(ps) == 1 {
		return ps[0]
	}
	return nil
}

// interchange makes the row of the n-th interchange of the file, or takes the one that is
// replayed.
func (f *file) interchange(n int, env *edi.Interchange) *store.Interchange {
	t := f.task
	e := *env
	e.Offset += f.base
	if t.Interchange != nil {
		ic := *t.Interchange
		ic.Envelope, ic.Findings, ic.Code, ic.State = e, nil, "", "received"
		ic.Total, ic.Open = 0, 0
		waits(&ic, nil, 0)
		ic.Profile = t.Registry.Version()
		return &ic
	}
	return &store.Interchange{
		ID: t.Transmission.ID.Derive("interchange", int64(n)), Transmission: t.Transmission.ID, Position: n,
		Connection: t.Transmission.Connection, Body: t.Transmission.Content, Envelope: e, State: "received",
		Profile: t.Registry.Version(), At: t.Transmission.At,
	}
}

// put adds the interchange to what an outcome writes.
func (f *file) put(w *pipeline.Write, ic *store.Interchange) {
	if f.task.Interchange != nil {
		w.SaveInterchanges = append(w.SaveInterchanges, ic)
		return
	}
	w.Interchanges = append(w.Interchanges, ic)
}

// dead is the end of an interchange that no agreement covers: a dead letter of its own beside the
// file, so that the lane goes on.
func (f *file) dead(ic *store.Interchange, code, detail string) *pipeline.Outcome {
	if f.task.Interchange != nil {
		ic.State, ic.Code = store.StateDead, code
		return &pipeline.Outcome{Verdict: pipeline.Dead, Code: code, Detail: detail, Partner: ic.From, Write: pipeline.Write{SaveInterchanges: []*store.Interchange{ic}}}
	}
	ic.State, ic.Code = store.StateDead, code
	return &pipeline.Outcome{Verdict: pipeline.Done, Partner: ic.From, Write: pipeline.Write{
		Interchanges: []*store.Interchange{ic},
		Born: []*store.Work{{
			WorkKey: store.WorkKey{Stage: store.Parser, ID: ic.ID}, Kind: store.KindInterchange,
			Code: code, Detail: detail, Partner: ic.From,
		}},
	}}
}

// content hashes the bytes of an interchange.
func (f *file) content(ic *store.Interchange) ([32]byte, error) {
	if ic.Envelope.Offset == 0 && ic.Envelope.Length == f.body.Size() {
		return ic.Body, nil // the reference is that hash
	}
	h := sha256.New()
	if _, err := io.CopyBuffer(h, io.NewSectionReader(f.body, ic.Envelope.Offset, ic.Envelope.Length), make([]byte, 8<<10)); err != nil {
		return [32]byte{}, fmt.Errorf("hash interchange: %w", err)
	}
	return [32]byte(h.Sum(nil)), nil
}

// claim is the duplicate check of an accepted interchange, nil where the agreement wants none.
// same and other build the alternatives.
func (f *file) claim(ic *store.Interchange, w *partner.Window, scope store.Scope, key, content [32]byte, end func(state, code string, hold bool) *pipeline.Outcome) []pipeline.Claim {
	if f.task.Forced || (w.Same == "off" && w.Other == "off") {
		return nil
	}
	act := func(action, code string) *pipeline.Outcome {
		switch action {
		case "reject":
			return end(store.StateRejected, code, false)
		case "hold":
			return end(store.StateDead, code, true)
		case "off":
			return nil
		}
		return end(store.StateDuplicate, CodeDuplicate, false)
	}
	return []pipeline.Claim{{
		Key:   store.NaturalKey{Scope: scope, Hash: key, Content: content, Object: ic.ID, At: f.task.Now},
		Since: f.task.Now.Add(-w.Window),
		Same:  act(w.Same, CodeDuplicate),
		Other: act(w.Other, CodeDuplicateOther),
	}}
}

// single handles what is one document: a UBL document, or an opaque file.
func (f *file) single(ctx context.Context, prefix []byte) *pipeline.Outcome {
	env := edi.Interchange{Standard: edi.Opaque, Length: f.src.Size(), Messages: 1}
	msg := edi.Message{Position: 1, Type: string(edi.Opaque), Length: f.src.Size()}
	if ubl.Sniff(prefix) {
		head, doc, err := ubl.ReadHead(f.reader(ctx), f.stage.o.UBL)
		var bad *ubl.XMLError
		switch {
		case err == nil:
			env, msg = head, doc
		case errors.As(err, &bad) && head.Standard == edi.UBL:
			env, msg = head, doc
			msg.Findings = append(msg.Findings, bad.Finding())
		case errors.As(err, &bad), errors.Is(err, ubl.ErrNotUBL):
			// Not ours to judge: it is delivered where a route names opaque files.
		default:
			return &pipeline.Outcome{Verdict: pipeline.Retry, Code: "STORE_READ", Detail: err.Error()}
		}
	}
	env.Offset, env.Length, msg.Position = 0, f.src.Size(), 1
	msg.Offset, msg.Length, env.Messages = f.base, f.src.Size(), 1
	ic := f.interchange(1, &env)
	code, detail := f.party(ic)
	broken := edi.HasFatal(msg.Findings)
	if env.Standard == edi.Opaque && !f.routed(ic) {
		return f.dead(ic, CodeUnknownContent, "neither EDIFACT nor X12 nor UBL, and no route names opaque files of this sender; add a route with document: opaque and replay")
	}
	if code != "" && (!broken || ic.Envelope.Sender.ID != "") {
		return f.dead(ic, code, detail)
	}
	a := pipeline.Resolve(f.task.Registry, ic, &msg)
	m := f.message(ic, &msg)
	out := &pipeline.Outcome{Verdict: pipeline.Done, Partner: ic.From}
	f.put(&out.Write, ic)
	ic.Total = 1
	if broken {
		reject(ic, m)
		out.Write.Messages = []*store.Message{m}
		return out
	}
	end := func(state, code string, hold bool) *pipeline.Outcome {
		if hold {
			c := *ic
			return f.dead(&c, code, "held because of an earlier document; replay to let it through")
		}
		c, d := *ic, *m
		c.State, c.Code, c.Open, c.Unrouted = state, code, 0, 0
		d.State, d.Code = state, code
		alt := &pipeline.Outcome{Verdict: pipeline.Done, Partner: ic.From, Write: pipeline.Write{Messages: []*store.Message{&d}}}
		f.put(&alt.Write, &c)
		return alt
	}
	out.Claims = f.claim(ic, &a.Duplicates.Content, store.ScopeContent,
		idempotency.Content(ic.Connection, f.task.Transmission.Own, ic.Body), ic.Body, end)
	ic.State, ic.Open = store.StateSplit, 1
	waits(ic, a, 1)
	out.Write.Messages = []*store.Message{m}
	emit(out, a, ic, m)
	return out
}

// routed reports whether a route names opaque files of this sender, or of one of those who may
// have sent it.
func (f *file) routed(ic *store.Interchange) bool {
	senders := []string{ic.From}
	if ic.From == "" {
		senders = nil
		for _, p := range f.task.Registry.PartnersOf(f.task.Transmission.Connection) {
			senders = append(senders, p.ID)
		}
	}
	for _, from := range senders {
		r, ok := f.task.Registry.Route(partner.RouteQuery{From: from, To: ic.To, Document: string(edi.Opaque), Standard: edi.Opaque})
		if ok && slices.Contains(r.Match.Document, string(edi.Opaque)) {
			return true
		}
	}
	return false
}

func (f *file) message(ic *store.Interchange, m *edi.Message) *store.Message {
	e := *m
	return &store.Message{
		ID: ic.ID.Derive("message", int64(m.Position)), Interchange: ic.ID, Envelope: e, Standard: ic.Envelope.Standard,
		From: ic.From, To: ic.To, State: store.StateParsed, Findings: e.Findings, Profile: ic.Profile, At: ic.At,
		ControlRef: ic.Envelope.ControlRef, Test: ic.Envelope.Test,
	}
}

func reject(ic *store.Interchange, ms ...*store.Message) {
	ic.State, ic.Code, ic.Open = store.StateRejected, CodeMessage, 0
	for _, m := range ms {
		m.State, m.Code = store.StateRejected, CodeMessage
	}
}

// emit sends a message on its way to the validator.
func emit(out *pipeline.Outcome, a *partner.Agreement, ic *store.Interchange, m *store.Message) {
	out.Write.Events = append(out.Write.Events, store.Event{Object: m.ID, Name: "parsed"})
	out.Emit = append(out.Emit, pipeline.Emission{
		Stage: store.Validator, Kind: store.KindMessage, ID: m.ID,
		Lane: pipeline.MessageLane(store.Validator, a, ic.From, ic.To, ic.ID, &m.Envelope.Document),
		Key:  pipeline.HoldKey(a, &m.Envelope.Document),
	})
}
