// Package route is the router stage: it decides what leaves the hub, for whom, and in which
// envelope (DESIGN §1, What leaves the hub).
package route

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edifact"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
	"github.com/edihub/edihub/internal/x12"
)

// Codes of the router.
const (
	CodeNoRoute      = "NO_ROUTE"
	CodeNoConnection = "NO_CONNECTION"
	CodeEnvelope     = "ENVELOPE_NOT_WRITTEN"
	CodeNotActive    = "PARTNER_NOT_ACTIVE"
	CodeText         = "TEXT_NOT_CARRIED"
)

// X12Limit is the largest control number of X12 (ISA13, nine digits); EDIFACT references are
// kept to the same width, which every partner takes.
const X12Limit = 999_999_999

// New makes the router stage.
func New() pipeline.Stage { return stage{} }

type stage struct{}

// Handle implements pipeline.Stage. A message is routed; an interchange whose messages wait for
// each other is taken up once each of them has its decision.
func (s stage) Handle(_ context.Context, t *pipeline.Task) *pipeline.Outcome {
	if t.Kind == store.KindInterchange {
		return takeUp(t)
	}
	m := *t.Message
	out := &pipeline.Outcome{Verdict: pipeline.Done, Partner: m.From}
	if t.Interchange.Waits() {
		a := pipeline.Resolve(t.Registry, t.Interchange, &m.Envelope)
		if _, code, detail := find(t.Registry, t.Interchange, &m, a); code != "" {
			return &pipeline.Outcome{Verdict: pipeline.Dead, Code: code, Detail: detail, Partner: m.From}
		}
		m.Profile, m.State = t.Registry.Version(), store.StateBatched
		out.Write.SaveMessages = []*store.Message{&m}
		out.Write.Events = []store.Event{{Object: m.ID, Name: "batched", Detail: "waits for the other messages of its interchange"}}
		out.Write.Decide = []pipeline.Decide{pipeline.DecideFor(a, t.Interchange, 1)}
		return out
	}
	if dead := routed(t, out, &m); dead != nil {
		return dead
	}
	return out
}

// routed adds the delivery of one message to an outcome; what keeps it from being delivered is
// an outcome of its own.
func routed(t *pipeline.Task, out *pipeline.Outcome, m *store.Message) (dead *pipeline.Outcome) {
	a := pipeline.Resolve(t.Registry, t.Interchange, &m.Envelope)
	d, code, detail := find(t.Registry, t.Interchange, m, a)
	if code != "" {
		return &pipeline.Outcome{Verdict: pipeline.Dead, Code: code, Detail: detail, Partner: m.From}
	}
	m.Profile = t.Registry.Version()
	b := &batch{task: t, dest: d, messages: []*store.Message{m}, ic: t.Interchange, agreement: a, now: t.Now, reg: t.Registry}
	lane := pipeline.MessageLane(store.Sender, a, m.From, m.To, m.Interchange, &m.Envelope.Document)
	if err := b.put(out, m.ID.Derive("delivery", 0), lane, pipeline.HoldKey(a, &m.Envelope.Document)); err != nil {
		return unwritable(err, m.From)
	}
	return nil
}

// unwritable is the end of what no envelope can carry, for example an identifier that the
// character set of the syntax lacks.
func unwritable(err error, from string) *pipeline.Outcome {
	var text *TextError
	var read *readError
	switch {
	case errors.As(err, &text):
		return &pipeline.Outcome{Verdict: pipeline.Dead, Code: CodeText, Detail: err.Error() + "; change the route and replay", Partner: from}
	case errors.As(err, &read):
		return unread(err)
	}
	return &pipeline.Outcome{Verdict: pipeline.Dead, Code: CodeEnvelope, Detail: err.Error() + "; change the route or the partner's identifiers and replay", Partner: from}
}

// destination is what a route gave.
type destination struct {
	route      *partner.Route
	to         *partner.Partner
	connection *partner.Connection
	envelope   string
}

func find(reg *partner.Registry, ic *store.Interchange, m *store.Message, a *partner.Agreement) (d destination, code, detail string) {
	sender, receiver := ic.Envelope.Identifiers()
	doc := edi.DocumentType(m.Standard, m.Envelope.Type)
	r, ok := reg.Route(partner.RouteQuery{From: ic.From, To: ic.To, Sender: sender, Receiver: receiver, Document: doc, Standard: m.Standard})
	if !ok {
		return d, CodeNoRoute, fmt.Sprintf("no route for %s from %s to %s; add one and replay", doc, ic.From, ic.To)
	}
	to := reg.Partner(r.To)
	if to == nil || len(to.Connections) == 0 || reg.Connection(to.Connections[0]) == nil {
		return d, CodeNoConnection, fmt.Sprintf("the route leads to %s, who has no connection to send by; add one and replay", r.To)
	}
	if to.Status == partner.Draft { // a suspended partner's deliveries wait at the sender
		return d, CodeNotActive, fmt.Sprintf("the route leads to %s, who is a draft; set the partner testing or live and replay", r.To)
	}
	d = destination{route: r, to: to, connection: reg.Connection(to.Connections[0]), envelope: r.Envelope}
	role := ic.Role
	if a.Role != "" {
		role = string(a.Role) // an agreement may say otherwise than the recipient (DESIGN §1, Role)
	}
	switch {
	case m.Standard == edi.UBL || m.Standard == edi.Opaque:
		d.envelope = "none"
	case role == string(partner.Transparent) && to.ID == ic.To:
		d.envelope = "keep" // between partners the envelope is theirs
	case d.envelope == "" || d.envelope == "none":
		d.envelope = "new"
	}
	return d, "", ""
}

// batch is a delivery in the making.
type batch struct {
	task      *pipeline.Task
	dest      destination
	messages  []*store.Message
	ic        *store.Interchange
	agreement *partner.Agreement
	now       time.Time
	reg       *partner.Registry
	whole     bool // every message of the interchange, none rejected, is here
	mixed     bool // its routes do not agree on the envelope
	carried   carriage
}

// put adds the delivery, the messages' new state and the sender's work to an outcome.
// The error says why no envelope can be written.
func (b *batch) put(out *pipeline.Outcome, id edi.ID, lane store.LaneSpec, key string) error {
	first := b.messages[0]
	d := &store.Delivery{
		ID: id, Connection: b.dest.connection.ID, Partner: b.dest.to.ID, State: store.StateReady, Envelope: b.dest.envelope,
		Standard: first.Standard, Type: first.Envelope.Type, From: b.ic.From, To: b.ic.To,
		Sender: b.ic.Envelope.Sender.ID, Receiver: b.ic.Envelope.Receiver.ID, Ack: "none",
		Profile: b.reg.Version(), At: b.now, Own: b.own(),
	}
	for _, m := range b.messages {
		m.State, m.Delivery = store.StateRouted, id
		d.Messages = append(d.Messages, m.ID)
		out.Write.SaveMessages = append(out.Write.SaveMessages, m)
		out.Write.Events = append(out.Write.Events, store.Event{Object: m.ID, Name: "routed", Detail: "to " + d.Partner})
	}
	b.whole = b.whole || (len(b.messages) == 1 && b.ic.Total == 1)
	if why := b.cannotKeep(); why != "" && (d.Envelope == "keep" || b.mixed) {
		d.Envelope = "new"
		out.Write.Events = append(out.Write.Events, store.Event{
			Object: id, Name: "envelope_fallback", Detail: "envelope: keep was asked for; a new envelope was written, because " + why,
		})
	}
	if d.Envelope == "new" {
		if err := b.carry(); err != nil {
			return err
		}
	}
	p := b.plan(d)
	if err := rehearse(p); err != nil {
		return err
	}
	out.Write.Deliveries = append(out.Write.Deliveries, p)
	out.Emit = append(out.Emit, pipeline.Emission{
		Stage: store.Sender, Kind: store.KindDelivery, ID: id, Topic: d.Connection,
		Lane: pipeline.OutLane(lane, d.Connection), Key: key,
	})
	return nil
}

// cannotKeep says why the original envelope cannot go along, "" where it can.
func (b *batch) cannotKeep() string {
	switch {
	case b.mixed:
		return "the routes of its messages do not all ask for it"
	case !b.whole:
		return "not every message of the interchange goes to this receiver in this delivery"
	}
	return ""
}

// rehearse seals a copy with the largest numbers, so that an envelope which cannot be written is
// a dead letter of its own and never makes a transaction fail.
func rehearse(p *pipeline.DeliveryPlan) error {
	numbers := make([]int64, len(p.Numbers))
	for i := range numbers {
		numbers[i] = X12Limit
	}
	d := *p.Delivery
	d.Pieces = nil
	return p.Seal(&d, numbers)
}

// own is the identity in whose name it leaves.
func (b *batch) own() string {
	if as2 := b.dest.connection.AS2; as2 != nil {
		return as2.Own
	}
	if b.reg.Own(b.ic.To) != nil {
		return b.ic.To
	}
	if os := b.reg.Owns(); len(os) > 0 {
		return os[0].ID
	}
	return ""
}

// plan says which control numbers the delivery needs and how they complete it.
func (b *batch) plan(d *store.Delivery) *pipeline.DeliveryPlan {
	ic := b.ic
	switch d.Envelope {
	case "keep":
		d.ControlRef = ic.Envelope.ControlRef
		return sealed(d, []store.Piece{{Body: ic.Body, Offset: ic.Envelope.Offset, Length: ic.Envelope.Length}})
	case "none":
		d.ControlRef = ic.Envelope.ControlRef
		return sealed(d, []store.Piece{b.piece(b.messages[0])})
	}
	start := max(1, b.dest.route.Control.Start)
	base := d.Own + ">" + d.Partner + ":" + string(d.Standard)
	p := &pipeline.DeliveryPlan{Delivery: d, Numbers: []pipeline.Sequence{{Name: base + ":interchange", Start: start, Limit: X12Limit, Count: 1}}}
	sender, receiver := b.parties()
	d.Sender, d.Receiver = sender.ID, receiver.ID
	if d.Standard == edi.X12 {
		groups := groupsOf(b.messages)
		p.Numbers = append(p.Numbers, pipeline.Sequence{Name: base + ":group", Start: start, Limit: X12Limit, Count: int64(len(groups))})
		p.Seal = func(d *store.Delivery, n []int64) error { return b.sealX12(d, groups, sender, receiver, n) }
		return p
	}
	p.Seal = func(d *store.Delivery, n []int64) error { return b.sealEDIFACT(d, sender, receiver, n[0]) }
	return p
}

func sealed(d *store.Delivery, pieces []store.Piece) *pipeline.DeliveryPlan {
	d.Pieces = pieces
	for i := range pieces {
		d.Size += pieces[i].Size()
	}
	return &pipeline.DeliveryPlan{Delivery: d, Seal: func(*store.Delivery, []int64) error { return nil }}
}

func (b *batch) piece(m *store.Message) store.Piece {
	return store.Piece{Body: b.ic.Body, Offset: m.Envelope.Offset, Length: m.Envelope.Length, Translate: b.carried.translate}
}

// parties of the new envelope: towards an internal endpoint those of the original; towards a
// partner our own identifier and the partner's.
func (b *batch) parties() (sender, receiver edi.Party) {
	env := &b.ic.Envelope
	sender, receiver = env.Sender, env.Receiver
	if b.reg.IsInternal(b.dest.to) {
		return sender, receiver
	}
	space := string(env.Standard) + ":"
	if own := b.reg.Own(b.own()); own != nil {
		if p, ok := partyIn(own.Identifiers, space, ""); ok {
			sender = p
		}
	}
	_, named := env.Identifiers()
	if p, ok := partyIn(b.dest.to.Identifiers, space, named); ok {
		receiver = p
	}
	return sender, receiver
}

// partyIn picks an identifier of the name space: the one that is named, else the first.
func partyIn(ids []edi.Identifier, space string, named edi.Identifier) (edi.Party, bool) {
	var found edi.Identifier
	for _, id := range ids {
		if !strings.HasPrefix(string(id), space) {
			continue
		}
		if id == named || found == "" {
			found = id
		}
	}
	if found == "" {
		return edi.Party{}, false
	}
	q, id, ok := strings.Cut(strings.TrimPrefix(string(found), space), ":")
	if !ok {
		return edi.Party{ID: q}, true
	}
	return edi.Party{Qualifier: q, ID: id}, true
}

func (b *batch) sealEDIFACT(d *store.Delivery, sender, receiver edi.Party, number int64) error {
	w := b.dest.route.EDIFACT
	una := b.ic.Envelope.ServiceUNA
	if w.UNA != nil {
		una = *w.UNA
	}
	d.ControlRef = strconv.FormatInt(number, 10)
	header, trailer, err := edifact.WriteEnvelope(edifact.EnvelopeOptions{
		Syntax: b.syntax(), Sender: sender, Receiver: receiver, ControlRef: d.ControlRef, Time: b.now, Test: b.ic.Envelope.Test,
		Messages: len(b.messages), UNA: una, Original: b.carried.delimiters, LineBreak: lineBreak(w.LineBreak),
	})
	if err != nil {
		return fmt.Errorf("%s: %w", CodeEnvelope, err)
	}
	d.Pieces = append(d.Pieces[:0], store.Piece{Literal: header})
	for _, m := range b.messages {
		d.Pieces = append(d.Pieces, b.piece(m))
	}
	d.Pieces = append(d.Pieces, store.Piece{Literal: trailer})
	d.Size = size(d.Pieces)
	return nil
}

func lineBreak(s string) string {
	switch s {
	case "lf":
		return "\n"
	case "crlf":
		return "\r\n"
	}
	return ""
}

func size(ps []store.Piece) (n int64) {
	for i := range ps {
		n += ps[i].Size()
	}
	return n
}

// group is a run of transaction sets that share GS01 and GS08.
type group struct {
	function, version string
	sets              []*store.Message
}

func groupsOf(ms []*store.Message) []group {
	var gs []group
	for _, m := range ms {
		n := len(gs)
		if n == 0 || gs[n-1].function != m.Envelope.FunctionID || gs[n-1].version != m.Envelope.Version {
			gs = append(gs, group{function: m.Envelope.FunctionID, version: m.Envelope.Version})
			n++
		}
		gs[n-1].sets = append(gs[n-1].sets, m)
	}
	return gs
}

func (b *batch) sealX12(d *store.Delivery, groups []group, sender, receiver edi.Party, n []int64) error {
	d.ControlRef = fmt.Sprintf("%09d", n[0])
	o := x12.EnvelopeOptions{
		Version: b.version(), Sender: sender, Receiver: receiver, ControlRef: d.ControlRef, Time: b.now,
		Test: b.ic.Envelope.Test, Original: b.carried.delimiters,
	}
	for i, g := range groups {
		number := n[1] + int64(i)
		if number > X12Limit {
			number -= X12Limit
		}
		o.Groups = append(o.Groups, x12.GroupOptions{
			FunctionID: g.function, Version: g.version, Sets: len(g.sets), ControlRef: strconv.FormatInt(number, 10),
		})
	}
	env, err := x12.WriteEnvelope(o)
	if err != nil {
		return fmt.Errorf("%s: %w", CodeEnvelope, err)
	}
	d.Pieces = append(d.Pieces[:0], store.Piece{Literal: env.Header})
	for i, g := range groups {
		d.Pieces = append(d.Pieces, store.Piece{Literal: env.Groups[i].Open})
		for _, m := range g.sets {
			d.Pieces = append(d.Pieces, b.piece(m))
		}
		d.Pieces = append(d.Pieces, store.Piece{Literal: env.Groups[i].Close})
	}
	d.Pieces = append(d.Pieces, store.Piece{Literal: env.Trailer})
	d.Size = size(d.Pieces)
	return nil
}
