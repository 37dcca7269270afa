package receiver

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/spool"
)

const (
	retryAfter = "30" // seconds
	crlf       = "\r\n"
)

// text answers with one line for a person.
func (x *exchange) text(status int, line string) {
	h := x.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	body := line + "\n"
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.writeUntil(x.Limits.Answer)
	x.w.WriteHeader(status)
	_, _ = x.w.Write([]byte(body)) // The sender went away; he has no answer then and knows it.
}

// busy answers that too much is in flight (429 for one partner or source, 503 in all).
func (x *exchange) busy(err error) {
	x.unread()
	status := http.StatusTooManyRequests
	var full *spool.MeterError
	if errors.As(err, &full) && full.Scope == spool.ScopeTotal {
		status = http.StatusServiceUnavailable
	}
	x.report(ResultBusy, "", zap.Error(err))
	x.w.Header().Set("Retry-After", retryAfter)
	x.text(status, "Too much is being received at the moment. Send the message again later under the same Message-ID.")
}

// unavailable answers that we cannot take the message now. No MDN goes out: neither a positive
// one, because nothing is durable, nor a negative one, because nothing is wrong with the message.
func (x *exchange) unavailable(what string, err error) {
	x.report(ResultUnavailable, "", zap.String("what", what), zap.Error(err))
	x.w.Header().Set("Retry-After", retryAfter)
	x.text(http.StatusServiceUnavailable, "The message cannot be stored at the moment. Send it again later under the same Message-ID.")
}

// mdnParams begins the description of an MDN for this message.
func (x *exchange) mdnParams(id edi.ID) as2.MDNParams {
	return as2.MDNParams{Answers: x.head, MessageID: "<mdn-" + id.String() + "@" + x.Domain + ">", At: x.at, Product: x.Product}
}

// mdn builds the MDN that was asked for, as bytes to be stored and sent: head and body. It is nil
// where none was asked for.
func (x *exchange) mdn(refusal *as2.Refusal, o *as2.Opened) ([]byte, error) {
	if !x.head.WantsMDN() {
		return nil, nil
	}
	p := x.mdnParams(x.id)
	p.Refusal = refusal
	if o != nil {
		p.MIC, p.MICAlg = o.MIC, o.MICAlg
	}
	if x.head.WantsSigned() {
		p.Signer = x.signer()
	}
	return buildAnswer(p)
}

// signer is our newest key that signs now, nil where there is none. The digest is the first of
// those the sender asked for that we know, else SHA-256.
func (x *exchange) signer() *cms.Signer {
	k := x.own.SigningKey(x.at)
	if k == nil {
		return nil
	}
	d, err := cms.ParseDigest(x.head.Options.MICAlg())
	if err != nil {
		d = cms.SHA256
	}
	return &cms.Signer{Certificate: k.Certificate, Key: k.Private, Digest: d}
}

// buildAnswer is an MDN in the form in which it is stored: the header fields of the HTTP answer
// sorted by name, an empty line, the body.
func buildAnswer(p as2.MDNParams) ([]byte, error) {
	h, body, err := as2.BuildMDN(p)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range h[name] {
			b.WriteString(name + ": " + v + crlf)
		}
	}
	b.WriteString(crlf)
	b.Write(body)
	return b.Bytes(), nil
}

// ErrAnswer is returned by ParseAnswer.
var ErrAnswer = errors.New("not a stored answer")

// ParseAnswer takes a stored answer (store.Transmission.Answer) apart again: the header fields,
// spelled as they were, and the body.
func ParseAnswer(answer []byte) (http.Header, []byte, error) {
	head, body, ok := bytes.Cut(answer, []byte(crlf+crlf))
	if !ok {
		return nil, nil, fmt.Errorf("%w: the empty line is missing", ErrAnswer)
	}
	h := http.Header{}
	for line := range strings.SplitSeq(string(head), crlf) {
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			return nil, nil, fmt.Errorf("%w: a header field without a colon", ErrAnswer)
		}
		h[name] = append(h[name], value)
	}
	return h, body, nil
}

// sendAnswer writes a stored answer, or an empty 200 where there is none. All that it tells is
// durable by now.
func (x *exchange) sendAnswer(answer []byte) {
	x.Probe("before-mdn")
	defer x.Probe("after-mdn")
	x.writeUntil(x.Limits.Answer)
	if len(answer) == 0 {
		x.w.Header().Set("Content-Length", "0")
		x.w.WriteHeader(http.StatusOK)
		return
	}
	h, body, err := ParseAnswer(answer)
	if err != nil {
		// The message is safe; only its receipt is not to be had, so the sender must not take
		// the answer for one.
		x.Log.Error("as2_answer_unreadable", zap.String("id", x.id.String()), zap.Error(err))
		x.w.Header().Set("Retry-After", retryAfter)
		x.text(http.StatusServiceUnavailable, "The MDN cannot be given at the moment. Send the message again later under the same Message-ID.")
		return
	}
	// as spelled, not canonical
	maps.Copy(x.w.Header(), h)
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(http.StatusOK)
	_, _ = x.w.Write(body) // The sender went away; his repeat gets the same bytes.
}
