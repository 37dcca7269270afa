package parse

import (
	"context"
	"errors"
	"io"
	"maps"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/idempotency"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// split walks through a file of interchanges. Each step is one transaction: an interchange, or a
// chunk of a large one. The steps depend on the bytes alone, so that a restart goes on at the
// step after the last that committed.
func (f *file) split(ctx context.Context, s edi.Splitter) *pipeline.Outcome {
	w := &walker{f: f, splitter: s, skip: f.task.Step}
	return w.next(ctx)
}

type walker struct {
	f        *file
	splitter edi.Splitter
	skip     int64
	ahead    *edi.Event // read, not used
	aheadErr error      // what reading ahead met
	over     bool       // the file has ended

	n       int // interchanges so far
	ic      *store.Interchange
	icCode  string // why the interchange is dead as a whole
	detail  string
	groups  []edi.Group
	pending []*store.Message
	chunked bool
	chunks  int
	count   int                     // messages of the interchange so far
	faulty  int                     // of them with a fatal finding
	badGrps map[int]string          // groups with a fatal finding
	usages  map[string]*edi.Finding // by message type, nil where its test indicator is agreed
	misuses int                     // messages whose test indicator is not agreed
	misused *edi.Finding            // that of the first of them

	finish func(ctx context.Context) *pipeline.Outcome // the rest of a chunked interchange
}

// next computes the next step that has not committed, nil when ctx has ended. Where all of them
// have, because only the look behind the last one failed, nothing is left to do.
func (w *walker) next(ctx context.Context) *pipeline.Outcome {
	w.f.within(ctx)
	for {
		out := w.step(ctx)
		if out == nil {
			return nil
		}
		if out.Verdict != pipeline.Done {
			w.f.release()
			return out
		}
		more := w.finish != nil || !w.atEnd()
		if w.skip > 0 {
			w.skip--
			if more {
				continue
			}
			out = &pipeline.Outcome{Verdict: pipeline.Done, Partner: out.Partner}
		}
		out.Release = w.f.release
		if more {
			w.followed(out)
			for i := range out.Claims {
				w.followed(out.Claims[i].Same)
				w.followed(out.Claims[i].Other)
			}
		}
		return out
	}
}

// followed says that a step comes after this one. An alternative that brought its own
// continuation comes back to the walker when that has ended.
func (w *walker) followed(out *pipeline.Outcome) {
	if out == nil || out.Verdict != pipeline.Done {
		return
	}
	if out.More == nil {
		out.More = w.next
	}
	out.Release = w.f.release
}

// atEnd looks one event ahead.
func (w *walker) atEnd() bool {
	if w.over {
		return true
	}
	if w.ahead != nil || w.aheadErr != nil {
		return false
	}
	ev, err := w.splitter.Next()
	switch {
	case errors.Is(err, io.EOF):
		w.over = true
	case err != nil:
		w.aheadErr = err
	default:
		w.ahead = &ev
	}
	return w.over
}

func (w *walker) event() (edi.Event, error) {
	if w.ahead != nil {
		ev := *w.ahead
		w.ahead = nil
		return ev, nil
	}
	if w.aheadErr != nil {
		return edi.Event{}, w.aheadErr
	}
	return w.splitter.Next()
}

// step runs to the next point at which a transaction is due.
func (w *walker) step(ctx context.Context) *pipeline.Outcome {
	if w.finish != nil {
		return w.finish(ctx)
	}
	for {
		ev, err := w.event()
		if err != nil {
			return w.broken(ctx, err)
		}
		switch ev.Kind {
		case edi.InterchangeBegin:
			w.begin(ev.Interchange)
		case edi.GroupBegin:
			w.groups = append(w.groups, *ev.Group)
		case edi.GroupEnd:
			w.groupEnd(ev.Group)
		case edi.MessageEnd:
			if w.message(ev.Message) {
				return w.chunk()
			}
		case edi.InterchangeEnd:
			return w.end(ctx, ev.Interchange)
		}
	}
}

// broken ends the file at an error of reading, or at a limit.
func (w *walker) broken(ctx context.Context, err error) *pipeline.Outcome {
	if ctx.Err() != nil {
		w.f.release()
		return nil
	}
	var limit *edi.LimitError
	switch {
	case errors.As(err, &limit):
		w.over = true
		if w.ic == nil {
			return &pipeline.Outcome{Verdict: pipeline.Dead, Code: "LIMIT", Detail: err.Error()}
		}
		env := w.ic.Envelope
		env.Offset -= w.f.base
		env.Length = w.f.src.Size() - env.Offset
		env.Findings = append(env.Findings, edi.Finding{
			Rule: "EDI-LIMIT", Severity: edi.Fatal, Position: edi.Position{Offset: limit.Offset},
			Message: err.Error() + "; raise the limit or send smaller interchanges",
		})
		return w.end(ctx, &env)
	case errors.Is(err, io.EOF):
		// A splitter that found nothing at all in what looked like an interchange.
		w.over = true
		return &pipeline.Outcome{Verdict: pipeline.Dead, Code: CodeUnknownContent, Detail: "the file begins like an interchange and holds none"}
	}
	return &pipeline.Outcome{Verdict: pipeline.Retry, Code: "STORE_READ", Detail: err.Error()}
}

func (w *walker) begin(env *edi.Interchange) {
	w.n++
	w.ic = w.f.interchange(w.n, env)
	w.icCode, w.detail = w.f.party(w.ic)
	w.groups, w.pending, w.chunked, w.chunks, w.count, w.faulty, w.badGrps = nil, nil, false, 0, 0, 0, nil
	w.usages, w.misuses, w.misused = nil, 0, nil
}

func (w *walker) groupEnd(g *edi.Group) {
	if n := len(w.groups); n > 0 {
		w.groups[n-1] = *g
	}
	if edi.HasFatal(g.Findings) {
		if w.badGrps == nil {
			w.badGrps = map[int]string{}
		}
		w.badGrps[g.Position] = CodeGroup
	}
}

// message takes one message; true means that a chunk is full.
func (w *walker) message(m *edi.Message) bool {
	w.count++
	if w.icCode != "" {
		return false // the interchange is dead: it is split when it is replayed
	}
	e := *m
	e.Offset += w.f.base
	e.Position = w.count
	row := w.f.message(w.ic, &e)
	if edi.HasFatal(e.Findings) {
		row.State, row.Code = store.StateRejected, CodeMessage
	} else {
		w.usageOfMessage(row)
	}
	if row.State == store.StateRejected {
		w.faulty++
	}
	w.pending = append(w.pending, row)
	return len(w.pending) >= w.f.stage.o.ChunkMessages
}

// chunk commits what was split so far. It stays staged: nothing of it goes on before the trailers
// of group and interchange have been checked (DESIGN §3, Splits).
func (w *walker) chunk() *pipeline.Outcome {
	out := &pipeline.Outcome{Verdict: pipeline.Done, Partner: w.ic.From}
	if w.chunks == 0 {
		staged := *w.ic
		staged.State = store.StateStaged
		w.f.put(&out.Write, &staged)
	}
	w.chunked = true
	w.chunks++
	out.Write.Messages = w.pending
	w.pending = nil
	return out
}

// agreement of the interchange as a whole: that of its first message.
func (w *walker) agreement(first *store.Message) *partner.Agreement {
	m := edi.Message{}
	if first != nil {
		m = first.Envelope
	}
	return pipeline.Resolve(w.f.task.Registry, w.ic, &m)
}

// end decides about an interchange whose trailer (or end) has been read.
func (w *walker) end(ctx context.Context, env *edi.Interchange) *pipeline.Outcome {
	ic := w.ic
	offset := ic.Envelope.Offset
	ic.Envelope = *env
	ic.Envelope.Offset = offset
	ic.Envelope.Messages = w.count
	ic.Findings, ic.Groups, ic.Total = env.Findings, w.groups, w.count
	w.ic = nil
	if w.icCode != "" {
		return w.f.dead(ic, w.icCode, w.detail)
	}
	if w.chunked {
		return w.endChunked(ctx, ic)
	}
	var first *store.Message
	if len(w.pending) > 0 {
		first = w.pending[0]
	}
	a := w.agreementOf(ic, first)
	return w.whole(ic, a)
}

func (w *walker) agreementOf(ic *store.Interchange, first *store.Message) *partner.Agreement {
	w.ic = ic
	a := w.agreement(first)
	w.ic = nil
	return a
}

// refused says why the interchange is rejected as a whole, "" where it is not.
func (w *walker) refused(ic *store.Interchange, a *partner.Agreement) string {
	if a.Validate.TrailerErrors == "warn" {
		for i := range ic.Findings {
			switch ic.Findings[i].Rule {
			case "EDI-UNZ-COUNT", "EDI-UNZ-REF", "EDI-IEA-COUNT", "EDI-IEA-REF":
				ic.Findings[i].Severity = edi.Warning
			}
		}
	}
	if edi.HasFatal(ic.Findings) {
		return CodeEnvelope
	}
	if w.misused != nil && w.misuses == w.count {
		ic.Findings = append(ic.Findings, *w.misused)
		return CodeUsage
	}
	if a.OnReject == "interchange" && (w.faulty > 0 || len(w.badGrps) > 0) {
		return CodeInterchange
	}
	return ""
}

// judge sets a message's state by its group and the agreement.
func (w *walker) judge(m *store.Message, badGroups map[int]string) {
	if code, bad := badGroups[m.Envelope.Group]; bad && m.Envelope.Group > 0 {
		m.State, m.Code = store.StateRejected, code
	}
}

// rejectedGroups are the groups that fall as a whole: those with a broken trailer, and with
// on_reject: group those with a broken message.
func (w *walker) rejectedGroups(a *partner.Agreement, ms []*store.Message) map[int]string {
	bad := map[int]string{}
	maps.Copy(bad, w.badGrps)
	if a.OnReject == "group" {
		for _, m := range ms {
			if m.State == store.StateRejected && m.Envelope.Group > 0 {
				bad[m.Envelope.Group] = CodeGroup
			}
		}
	}
	return bad
}

// whole is an interchange that fits into one transaction.
func (w *walker) whole(ic *store.Interchange, a *partner.Agreement) *pipeline.Outcome {
	ms := w.pending
	w.pending = nil
	out := &pipeline.Outcome{Verdict: pipeline.Done, Partner: ic.From}
	w.f.put(&out.Write, ic)
	out.Write.Messages = ms
	if code := w.refused(ic, a); code != "" {
		ic.State, ic.Code = store.StateRejected, code
		for _, m := range ms {
			if m.State != store.StateRejected {
				m.State, m.Code = store.StateRejected, code
			}
		}
		return out
	}
	bad := w.rejectedGroups(a, ms)
	open := 0
	for _, m := range ms {
		w.judge(m, bad)
		if m.State != store.StateRejected {
			open++
		}
	}
	w.accept(ic, a, open)
	for _, m := range ms {
		if m.State != store.StateRejected {
			emit(out, pipeline.Resolve(w.f.task.Registry, ic, &m.Envelope), ic, m)
		}
	}
	content, err := w.f.content(ic)
	if err != nil {
		return &pipeline.Outcome{Verdict: pipeline.Retry, Code: "STORE_READ", Detail: err.Error()}
	}
	out.Claims = w.f.claim(ic, &a.Duplicates.Interchange, store.ScopeInterchange, idempotency.Interchange(&ic.Envelope), content,
		func(state, code string, hold bool) *pipeline.Outcome {
			c := *ic
			c.State, c.Code, c.Open, c.Unrouted = state, code, 0, 0
			if hold {
				return w.f.dead(&c, code, "held because the same control reference came before; replay to let it through")
			}
			alt := &pipeline.Outcome{Verdict: pipeline.Done, Partner: c.From}
			w.f.put(&alt.Write, &c)
			for _, m := range ms {
				d := *m
				d.State, d.Code = state, code
				alt.Write.Messages = append(alt.Write.Messages, &d)
			}
			return alt
		})
	return out
}

// accept sets what an interchange counts down.
func (w *walker) accept(ic *store.Interchange, a *partner.Agreement, open int) {
	ic.State, ic.Open = store.StateSplit, open
	if open == 0 {
		ic.State = store.StateDone
		if ic.Total > 0 {
			ic.State, ic.Code = store.StateRejected, CodeMessage // every message of it fell
		}
	}
	waits(ic, a, open)
}

// waits sets whether the messages of an interchange wait for each other, and for how many. All
// interchanges of an agreement do or none, also one with a single message, because what does not
// wait would overtake what does.
func waits(ic *store.Interchange, a *partner.Agreement, open int) {
	ic.Preserve, ic.OnReject, ic.Unrouted = false, "", 0
	if a == nil {
		return
	}
	ic.Preserve = a.Split == "preserve"
	if a.OnReject != "message" {
		ic.OnReject = a.OnReject
	}
	if ic.Waits() {
		ic.Unrouted = open
	}
}

// endChunked is the end of an interchange whose messages are staged: the last chunk, the decision
// in one small transaction, then page by page the release (or the rejection) of its messages. A
// restart after the decision goes on with the release.
func (w *walker) endChunked(ctx context.Context, ic *store.Interchange) *pipeline.Outcome {
	w.finish = func(context.Context) *pipeline.Outcome { return w.decide(ic) }
	if len(w.pending) > 0 {
		w.ic = ic
		out := w.chunk()
		w.ic = nil
		return out
	}
	return w.finish(ctx)
}

func (w *walker) decide(ic *store.Interchange) *pipeline.Outcome {
	first, err := w.f.messagesOf(ic, 0, 1)
	if err != nil {
		return &pipeline.Outcome{Verdict: pipeline.Retry, Code: "STORE_READ", Detail: err.Error()}
	}
	var a *partner.Agreement
	if len(first) > 0 {
		a = w.agreementOf(ic, first[0])
	} else {
		// A resumed split computes steps that have committed only to skip them, or the store is
		// behind: the default agreement decides nothing that is not decided again.
		a = w.agreementOf(ic, nil)
	}
	out := &pipeline.Outcome{Verdict: pipeline.Done, Partner: ic.From}
	if code := w.refused(ic, a); code != "" {
		ic.State, ic.Code, ic.Open = store.StateRejected, code, 0
		out.Write.SaveInterchanges = []*store.Interchange{ic}
		w.finish = w.pages(ic, nil)
		return out
	}
	bad := map[int]string{}
	open := 0
	if err := w.eachPage(ic, func(ms []*store.Message) {
		maps.Copy(bad, w.rejectedGroups(a, ms))
	}); err != nil {
		return &pipeline.Outcome{Verdict: pipeline.Retry, Code: "STORE_READ", Detail: err.Error()}
	}
	if len(bad) == 0 {
		open = ic.Total - w.faulty
	} else if err := w.eachPage(ic, func(ms []*store.Message) {
		for _, m := range ms {
			if w.judge(m, bad); m.State != store.StateRejected {
				open++
			}
		}
	}); err != nil {
		return &pipeline.Outcome{Verdict: pipeline.Retry, Code: "STORE_READ", Detail: err.Error()}
	}
	w.accept(ic, a, open)
	out.Write.SaveInterchanges = []*store.Interchange{ic}
	content, err := w.f.content(ic)
	if err != nil {
		return &pipeline.Outcome{Verdict: pipeline.Retry, Code: "STORE_READ", Detail: err.Error()}
	}
	out.Claims = w.f.claim(ic, &a.Duplicates.Interchange, store.ScopeInterchange, idempotency.Interchange(&ic.Envelope), content,
		func(state, code string, hold bool) *pipeline.Outcome {
			c := *ic
			c.State, c.Code, c.Open, c.Unrouted = state, code, 0, 0
			alt := &pipeline.Outcome{Verdict: pipeline.Done, Partner: c.From, Write: pipeline.Write{SaveInterchanges: []*store.Interchange{&c}}}
			if hold {
				alt.Write.Born = []*store.Work{{WorkKey: store.WorkKey{Stage: store.Parser, ID: c.ID}, Kind: store.KindInterchange, Code: code, Partner: c.From,
					Detail: "held because the same control reference came before; replay to let it through"}}
			}
			return alt
		})
	w.finish = w.pages(ic, bad)
	return out
}

func endAll(out *pipeline.Outcome, ms []*store.Message, state, code string) {
	for _, m := range ms {
		if m.State != store.StateRejected {
			m.State, m.Code = state, code
			out.Write.SaveMessages = append(out.Write.SaveMessages, m)
		}
	}
}

// pages walks through the staged messages, a transaction a page. What happens to them is what
// the decision in the store says, whichever of its alternatives took effect: a restart behind the
// decision must not decide again. The step behind the last page hands back to the walker.
func (w *walker) pages(ic *store.Interchange, badGroups map[int]string) func(ctx context.Context) *pipeline.Outcome {
	after := 0
	var decided *store.Interchange
	return func(context.Context) *pipeline.Outcome {
		if decided == nil {
			d, err := w.f.task.Stored(ic.ID)
			if err != nil {
				return &pipeline.Outcome{Verdict: pipeline.Retry, Code: "STORE_READ", Detail: err.Error()}
			}
			decided = d
		}
		ms, err := w.f.messagesOf(ic, after, w.f.stage.o.ChunkMessages)
		if err != nil {
			return &pipeline.Outcome{Verdict: pipeline.Retry, Code: "STORE_READ", Detail: err.Error()}
		}
		out := &pipeline.Outcome{Verdict: pipeline.Done, Partner: ic.From}
		if len(ms) > 0 {
			after = ms[len(ms)-1].Envelope.Position
			switch decided.State {
			case store.StateSplit, store.StateDone:
				w.releasePage(out, ic, ms, badGroups)
			case store.StateRejected, store.StateDuplicate:
				endAll(out, ms, decided.State, decided.Code)
			default: // held: the messages wait with their interchange
			}
		}
		if after >= ic.Total || len(ms) == 0 {
			w.finish = nil
		}
		return out
	}
}

// releasePage sends the messages of a page on their way, and marks those that fall with their
// group. The latter are not in the count of open messages.
func (w *walker) releasePage(out *pipeline.Outcome, ic *store.Interchange, ms []*store.Message, badGroups map[int]string) {
	for _, m := range ms {
		was := m.State
		w.judge(m, badGroups)
		switch {
		case m.State != store.StateRejected:
			emit(out, pipeline.Resolve(w.f.task.Registry, ic, &m.Envelope), ic, m)
		case was != store.StateRejected:
			out.Write.SaveMessages = append(out.Write.SaveMessages, m)
		}
	}
}

func (w *walker) eachPage(ic *store.Interchange, f func([]*store.Message)) error {
	for after := 0; ; {
		ms, err := w.f.messagesOf(ic, after, w.f.stage.o.ChunkMessages)
		if err != nil || len(ms) == 0 {
			return err
		}
		f(ms)
		after = ms[len(ms)-1].Envelope.Position
	}
}

func (f *file) messagesOf(ic *store.Interchange, after, n int) ([]*store.Message, error) {
	return f.task.MessagesOf(ic.ID, after, n)
}
