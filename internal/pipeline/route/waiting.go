package route

import (
	"context"
	"fmt"
	"strconv"

	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// pageMessages is how many messages of an interchange are read, and with split: messages routed,
// at once.
const pageMessages = 1000

// takeUp goes on with an interchange whose messages waited for each other: what falls with a
// rejected message is rejected, the rest is delivered.
func takeUp(t *pipeline.Task) *pipeline.Outcome {
	fall, err := falling(t)
	if err != nil {
		return unread(err)
	}
	if t.Interchange.Preserve {
		return assemble(t, fall)
	}
	// Positions run from 1 without a gap, so a step that has committed took a whole page.
	return releasePage(t, fall, int(t.Step)*pageMessages)
}

func unread(err error) *pipeline.Outcome {
	return &pipeline.Outcome{Verdict: pipeline.Retry, Code: "STORE_READ", Detail: err.Error()}
}

// eachPage hands over the messages of an interchange in their order.
func eachPage(t *pipeline.Task, f func([]*store.Message) error) error {
	for after := 0; ; {
		ms, err := t.MessagesOf(t.Interchange.ID, after, pageMessages)
		if err != nil || len(ms) == 0 {
			return err
		}
		if err := f(ms); err != nil {
			return err
		}
		after = ms[len(ms)-1].Envelope.Position
	}
}

// falling returns what says the code with which a message falls because another was rejected, ""
// for one that stays.
func falling(t *pipeline.Task) (func(*store.Message) string, error) {
	rule := t.Interchange.OnReject
	if rule == "" {
		return func(*store.Message) string { return "" }, nil
	}
	groups, rejected := map[int]bool{}, false
	err := eachPage(t, func(ms []*store.Message) error {
		for _, m := range ms {
			if m.State == store.StateRejected {
				groups[m.Envelope.Group], rejected = true, true
			}
		}
		return nil
	})
	return func(m *store.Message) string {
		switch {
		case rule == "interchange" && rejected:
			return pipeline.CodeInterchange
		case rule == "group" && m.Envelope.Group > 0 && groups[m.Envelope.Group]:
			return pipeline.CodeGroup
		}
		return ""
	}, err
}

// felled rejects messages that fall with another.
func felled(out *pipeline.Outcome, ic *store.Interchange, code string, ms []*store.Message) {
	if len(ms) == 0 {
		return
	}
	e := pipeline.End{State: store.StateRejected, Code: code}
	if code == pipeline.CodeInterchange {
		e.Interchange = ic.ID
	}
	for _, m := range ms {
		e.Messages = append(e.Messages, m.ID)
		out.Write.Events = append(out.Write.Events, store.Event{Object: m.ID, Name: "rejected", Detail: code + ": another message of it was rejected (on_reject: " + ic.OnReject + ")"})
	}
	out.Write.End = append(out.Write.End, e)
}

// releasePage routes a page of the messages one by one (split: messages).
func releasePage(t *pipeline.Task, fall func(*store.Message) string, after int) *pipeline.Outcome {
	ic := t.Interchange
	out := &pipeline.Outcome{Verdict: pipeline.Done, Partner: ic.From}
	ms, err := t.MessagesOf(ic.ID, after, pageMessages)
	if err != nil {
		return unread(err)
	}
	fell := map[string][]*store.Message{}
	for _, m := range ms {
		if m.State != store.StateBatched {
			continue
		}
		if code := fall(m); code != "" {
			fell[code] = append(fell[code], m)
			continue
		}
		c := *m
		if dead := routed(t, out, &c); dead != nil {
			return dead
		}
	}
	for code, ms := range fell {
		felled(out, ic, code, ms)
	}
	if len(ms) == pageMessages {
		out.More = func(context.Context) *pipeline.Outcome { return releasePage(t, fall, after+pageMessages) }
	}
	return out
}

// assemble builds the deliveries of an interchange with split: preserve: one for each endpoint
// and way of writing, with the messages in their order.
func assemble(t *pipeline.Task, fall func(*store.Message) string) *pipeline.Outcome {
	ic := t.Interchange
	out := &pipeline.Outcome{Verdict: pipeline.Done, Partner: ic.From}
	var batches []*batch
	byKey := map[string]*batch{}
	fell := map[string][]*store.Message{}
	total := 0
	var dead *pipeline.Outcome
	err := eachPage(t, func(ms []*store.Message) error {
		for _, m := range ms {
			if m.State != store.StateBatched || dead != nil {
				continue
			}
			if code := fall(m); code != "" {
				fell[code] = append(fell[code], m)
				continue
			}
			total++
			a := pipeline.Resolve(t.Registry, ic, &m.Envelope)
			d, code, detail := find(t.Registry, ic, m, a)
			if code != "" {
				dead = &pipeline.Outcome{Verdict: pipeline.Dead, Code: code, Detail: detail, Partner: ic.From}
				continue
			}
			b := byKey[d.key()]
			if b == nil {
				b = &batch{task: t, dest: d, ic: ic, agreement: a, now: t.Now, reg: t.Registry}
				byKey[d.key()] = b
				batches = append(batches, b)
			}
			if d.envelope != b.dest.envelope {
				b.mixed = true
			}
			c := *m
			b.messages = append(b.messages, &c)
		}
		return nil
	})
	switch {
	case err != nil:
		return unread(err)
	case dead != nil:
		return dead
	}
	for code, ms := range fell {
		felled(out, ic, code, ms)
	}
	for i, b := range batches {
		b.whole = len(batches) == 1 && total == ic.Total
		lane := pipeline.MessageLane(store.Sender, b.agreement, ic.From, ic.To, ic.ID, &b.messages[0].Envelope.Document)
		if err := b.put(out, ic.ID.Derive("delivery", int64(i)), lane, ""); err != nil {
			return unwritable(err, ic.From)
		}
	}
	return out
}

// key tells destinations apart that cannot share a delivery. Two routes to one endpoint that
// write alike share it.
func (d *destination) key() string {
	none := ""
	if d.envelope == "none" {
		none = "none"
	}
	return fmt.Sprintf("%q %q %s %s", d.connection.ID, d.to.ID, none, writing(d.route))
}

// writing is how a route wants a new envelope.
func writing(r *partner.Route) string {
	una := "original"
	if r.EDIFACT.UNA != nil {
		una = strconv.FormatBool(*r.EDIFACT.UNA)
	}
	return fmt.Sprintf("%s %s %q %q %d", r.EDIFACT.Syntax, una, r.EDIFACT.LineBreak, r.X12, r.Control.Start)
}
