package sender

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/endpoint/dial"
	"github.com/edihub/edihub/internal/pipeline/send"
)

const (
	maxDetail   = 500      // characters of Result.Detail
	maxEvidence = 64 << 10 // bytes of Result.Evidence
)

// answered is what came back for a request.
type answered struct {
	status     int
	header     http.Header
	body       []byte
	truncated  bool
	cut        error // reading the body failed
	unsent     bool  // a part of our body was never read
	retryAfter time.Duration
}

// judge turns an answer into a result (CONTRACTS, Sending).
func (e *endpoint) judge(d *send.Delivery, out *as2.Outbound, a answered) send.Result {
	r := send.Result{Code: "HTTP_" + strconv.Itoa(a.status), Detail: "the partner answered HTTP " + strconv.Itoa(a.status) + " " + http.StatusText(a.status)}
	switch {
	case a.status >= 200 && a.status <= 299:
		return e.judge2xx(d, out, a)
	case a.status == http.StatusRequestTimeout, a.status == http.StatusTooEarly, a.status == http.StatusTooManyRequests, a.status >= 500:
		r.Status, r.After = send.Retry, a.retryAfter
	case a.status >= 300 && a.status <= 399:
		r.Status = send.Failed
		r.Detail += "; redirects are not followed, set the URL to the place that takes the data"
	default:
		r.Status = send.Failed
	}
	return r
}

// judge2xx is for answers that say success. Only an MDN proves it, unless none was asked for.
func (e *endpoint) judge2xx(d *send.Delivery, out *as2.Outbound, a answered) send.Result {
	none := d.Connection.AS2.MDN.Mode == "none"
	switch {
	case none && a.unsent:
		// Nobody can have taken what was not sent yet.
		return send.Result{Status: send.Unknown, Code: CodeEarly, Detail: "the partner answered before the whole message was sent"}
	case none:
		return send.Result{Status: send.Delivered, Proof: ProofHTTP, MIC: micText(out, ""), Detail: "HTTP " + strconv.Itoa(a.status)}
	case a.cut != nil:
		return send.Result{Status: send.Unknown, Code: cutCode(a.cut), Detail: a.cut.Error()}
	case a.truncated:
		return send.Result{Status: send.Unknown, Code: CodeTooLarge, Detail: "the answer is longer than " + strconv.Itoa(dial.MaxAnswer) + " bytes and cannot be an MDN"}
	case len(bytes.TrimSpace(a.body)) == 0:
		return send.Result{Status: send.Unknown, Code: CodeMissing, Detail: "the partner answered HTTP " + strconv.Itoa(a.status) + " without the MDN that was asked for"}
	}
	return e.judgeMDN(d, out, a)
}

// judgeMDN decides whether the answer is the proof. A result that is not Delivered has the answer
// as evidence beside it, so that a person can look at what came.
func (e *endpoint) judgeMDN(d *send.Delivery, out *as2.Outbound, a answered) send.Result {
	c := d.Connection
	verify := c.VerifyCerts(e.Clock.Now())
	r := send.Result{Status: send.Unknown, Evidence: evidence(a), MIC: micText(out, "")}
	m, err := as2.ParseMDNWith(a.header, a.body, verify, c.AS2.MDN.Signed, e.Policy(c))
	switch {
	case errors.Is(err, as2.ErrMDNUnsigned):
		r.Code, r.Detail = CodeUnsigned, err.Error()+unproved(a, verify)
		return r
	case errors.Is(err, as2.ErrMDNSignature):
		r.Code, r.Detail = CodeSignature, err.Error()
		return r
	case err != nil:
		r.Code, r.Detail = CodeMalformed, "the answer cannot be read as an MDN: "+err.Error()
		return r
	case !m.Signed && m.From != "" && m.From != c.AS2.ID:
		r.Code, r.Detail = CodePartner, "the MDN is not signed and comes from "+m.From+" instead of "+c.AS2.ID
		return r
	}
	r.MIC = micText(out, m.MICAlg)
	err = m.Check(d.MessageID, out.MIC)
	var negative *as2.NegativeMDN
	switch {
	case err == nil:
		r.Status, r.Proof, r.Detail = send.Delivered, ProofMDN, m.Disposition
	case errors.As(err, &negative):
		r.Status, r.Code = send.Failed, modifierCode(negative.Modifier)
		r.Detail = negative.Error()
		if negative.Text != "" {
			r.Detail += ": " + negative.Text
		}
	case errors.Is(err, as2.ErrMDNMIC):
		r.Code, r.Detail = CodeMIC, err.Error()
		if m.Signed {
			// The partner himself says that he has other bytes; sending them again changes nothing.
			r.Status = send.Failed
		}
	default:
		r.Code, r.Detail = CodeOther, err.Error()
	}
	return r
}

// unproved tells a person what an MDN says that proves nothing, because that is often the cause:
// who does not know our names cannot sign for us.
func unproved(a answered, verify []*x509.Certificate) string {
	m, err := as2.ParseMDN(a.header, a.body, verify, false)
	if err != nil {
		return ""
	}
	return "; it says: " + m.Disposition
}

// modifierCode makes a stable code of a disposition modifier: "decryption-failed" is
// MDN_DECRYPTION_FAILED. A modifier may be any text, so it is cut.
func modifierCode(modifier string) string {
	const most = 48
	var b strings.Builder
	for _, r := range strings.ToUpper(modifier) {
		if b.Len() >= most {
			break
		}
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if s := b.String(); s != "" && !strings.HasSuffix(s, "_") {
			b.WriteByte('_')
		}
	}
	return "MDN_" + cmp.Or(strings.TrimSuffix(b.String(), "_"), "NEGATIVE")
}

// micText is our MIC as it is recorded, in the algorithm that the MDN names where we know it.
func micText(out *as2.Outbound, alg string) string {
	if alg != "" {
		if mic := out.MIC(alg); mic != "" {
			return mic + ", " + alg
		}
	}
	return out.MIC("sha-256") + ", sha-256"
}

// evidence is the answer in a form that can be verified by itself: the header fields that
// describe it, then the body as it came.
func evidence(a answered) []byte {
	var b bytes.Buffer
	for _, name := range []string{
		"AS2-From", "AS2-To", "AS2-Version", "Message-ID", "Date", "Subject", "MIME-Version",
		"Content-Type", "Content-Transfer-Encoding", "Content-Disposition",
	} {
		for _, v := range as2.Values(a.header, name) {
			b.WriteString(name + ": " + v + "\r\n")
		}
	}
	b.WriteString("\r\n")
	b.Write(a.body)
	if b.Len() > maxEvidence {
		return a.body[:min(len(a.body), maxEvidence)]
	}
	return b.Bytes()
}

func cutCode(err error) string {
	switch dial.Classify(err) {
	case dial.Timeout:
		return CodeTimeout
	case dial.Canceled:
		return CodeCanceled
	case dial.OK, dial.Refused, dial.Cut, dial.Blocked, dial.TLS:
	}
	return CodeCut
}

// failure turns an error without an answer into a result. unread says that our own payload could
// not be read.
func failure(err, unread error) send.Result {
	r := send.Result{Status: send.Retry, Detail: err.Error()}
	if dial.MayHaveArrived(err) {
		r.Status = send.Unknown
	}
	switch dial.Classify(err) {
	case dial.Refused, dial.OK:
		r.Code = CodeRefused
	case dial.Cut:
		r.Code = CodeCut
	case dial.Timeout:
		r.Code = CodeTimeout
	case dial.Blocked:
		r.Code = CodeBlocked
	case dial.TLS:
		r.Code = CodeTLS
	case dial.Canceled:
		r.Code = CodeCanceled
	}
	if unread != nil {
		r.Code, r.Detail = CodePayload, unread.Error()
	}
	return r
}

// retryAfter reads RFC 9110 §10.2.3: seconds or a date. What it cannot read is 0.
func (e *endpoint) retryAfter(v string) time.Duration {
	v = strings.TrimSpace(v)
	if v == "" {
		return 0
	}
	if strings.Trim(v, "0123456789") == "" {
		seconds, err := strconv.ParseInt(v, 10, 64)
		if err != nil || seconds > int64(e.MaxRetryAfter/time.Second) {
			return e.MaxRetryAfter // A number too large to read is too long to wait as well.
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return min(max(0, at.Sub(e.Clock.Now())), e.MaxRetryAfter)
}

// oneLine makes a text fit for Result.Detail: printable, one line.
func oneLine(s string) string {
	out := make([]rune, 0, min(len(s), maxDetail))
	for _, c := range s {
		if len(out) == maxDetail {
			out[maxDetail-1] = '…'
			break
		}
		switch {
		case unicode.IsSpace(c):
			c = ' '
		case !unicode.IsPrint(c) || c == unicode.ReplacementChar:
			c = '?'
		}
		out = append(out, c)
	}
	return string(out)
}
