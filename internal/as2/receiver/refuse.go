package receiver

import (
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/store"
)

// unknownPair answers names that we do not know as a pair. Nothing is stored and nothing is
// signed, and the body is not read: whoever guesses names gets no work out of us.
func (x *exchange) unknownPair() {
	refusal := as2.RefusePair()
	x.report(ResultUnknownPair, refusal.Code)
	x.unread()
	if !x.head.WantsMDN() {
		x.text(http.StatusForbidden, refusal.Text)
		return
	}
	p := x.mdnParams(x.id)
	p.Refusal = refusal
	answer, err := buildAnswer(p)
	if err != nil {
		x.Log.Error("as2_mdn_failed", zap.Error(err))
		x.text(http.StatusForbidden, refusal.Text)
		return
	}
	x.sendAnswer(answer)
}

// refuse keeps a message that is the sender's fault and says so in the words of the MDN. What is
// weaker than the connection demands is quarantined, for an operator may want to see it. o is set
// where the message could be opened.
func (x *exchange) refuse(refusal *as2.Refusal, o *as2.Opened, wire edi.Source) {
	answer, err := x.mdn(refusal, o)
	if err != nil {
		x.unavailable("mdn", err)
		return
	}
	state, result := store.StateRefused, ResultRefused
	if refusal.Modifier == as2.InsufficientMessageSecurity {
		state, result = store.StateQuarantined, ResultQuarantined
	}
	t := x.transmission(state, refusal.Code, x.detail(refusal))
	if o != nil {
		opened(t, o)
	}
	t.Answer = answer
	if err := x.keep(t, wire); err != nil {
		x.unavailable("keep", err)
		return
	}
	more := []zap.Field{zap.Int64("bytes", wire.Size())}
	if cause := refusal.Unwrap(); cause != nil {
		more = append(more, zap.NamedError("cause", cause))
	}
	x.report(result, refusal.Code, more...)
	x.negative(refusal, answer)
}

// detail is for the operator: beside what the sender is told, what was found, and what we lack
// ourselves. None of it shapes the answer.
func (x *exchange) detail(refusal *as2.Refusal) string {
	const most = 500
	s := refusal.Text
	if cause := refusal.Unwrap(); cause != nil {
		s += " Found: " + cause.Error() + "."
	}
	switch {
	case refusal.Modifier == as2.DecryptionFailed && len(x.own.DecryptKeys(x.at)) == 0:
		s += " Own " + x.own.ID + " has no key with use decrypt that is valid today: add one."
	case refusal.Modifier == as2.AuthenticationFailed && len(x.conn.VerifyCerts(x.at)) == 0:
		s += " Connection " + x.conn.ID + " has no certificate with use sign that is valid today: add one."
	}
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// keep records a refused message with what travelled, as far as the budget of the connection
// goes: anybody can use a partner's name, so what it costs us is bounded.
func (x *exchange) keep(t *store.Transmission, wire edi.Source) error {
	if !x.kept.row(x.conn.ID, x.at) {
		return nil
	}
	a := &pipeline.Arrival{Transmission: t}
	if wire != nil {
		t.WireSize = wire.Size()
	}
	ctx, cancel := x.storing(x.Limits.KeptSize)
	defer cancel()
	switch {
	case wire == nil || t.WireSize == 0:
	case x.kept.body(x.conn.ID, x.at, t.WireSize):
		body, err := x.Store.StageBody(ctx, wire)
		if err != nil {
			return err
		}
		a.Wire, t.Wire, t.WireHead = body, body.Ref, x.wireHead()
	default:
		t.Answer = nil
	}
	return x.Pipeline.Keep(ctx, a)
}

// negative sends the MDN of a refusal, or where none was asked for an HTTP status that no sender
// takes for a success.
func (x *exchange) negative(refusal *as2.Refusal, answer []byte) {
	if len(answer) > 0 {
		x.sendAnswer(answer)
		return
	}
	status := http.StatusBadRequest
	switch refusal.Modifier {
	case as2.AuthenticationFailed, as2.InsufficientMessageSecurity:
		status = http.StatusForbidden
	case as2.DuplicateDocument:
		status = http.StatusConflict
	}
	x.Probe("before-mdn")
	x.text(status, refusal.Modifier+": "+refusal.Text)
	x.Probe("after-mdn")
}

// refuseHTTP refuses what HTTP itself has an answer for, and records it.
func (x *exchange) refuseHTTP(status int, code, text string) {
	t := x.transmission(store.StateRefused, code, text)
	t.WireSize = max(0, x.r.ContentLength)
	if err := x.keep(t, nil); err != nil {
		x.Log.Error("as2_not_recorded", zap.String("id", x.id.String()), zap.String("code", code), zap.Error(err))
	}
	x.report(ResultRefused, code)
	x.text(status, text)
}

// asyncMDN refuses an MDN that is not the answer to a request of ours. An MDN is never answered
// with an MDN (RFC 8098 §2.1).
func (x *exchange) asyncMDN(wire edi.Source) {
	const text = "Asynchronous MDNs are not taken here. Return the MDN in the answer to the message."
	t := x.transmission(store.StateRefused, CodeAsyncMDN, text)
	if err := x.keep(t, wire); err != nil {
		x.unavailable("keep", err)
		return
	}
	x.report(ResultRefused, CodeAsyncMDN)
	x.text(http.StatusUnprocessableEntity, text)
}
