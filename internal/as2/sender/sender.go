// Package sender is the endpoint that sends deliveries over AS2 and judges the MDN that comes
// back. A delivery counts as received only by the partner's own MDN for it: for our Message-ID,
// with our MIC, signed by a certificate of the partner's record where a signed one was asked for.
// Whatever is less than that is never taken for a proof; it is told by its code and the same
// message goes again under the same Message-ID.
package sender

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/endpoint/dial"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline/send"
	"github.com/edihub/edihub/internal/spool"
)

// The proofs of a delivery.
const (
	ProofMDN  = "mdn"
	ProofHTTP = "http-2xx" // mdn.mode none
)

// The codes of a Result, beside "HTTP_" and the status of the answer, and "MDN_" and the modifier
// of a negative MDN (MDN_DECRYPTION_FAILED).
const (
	CodeRecord      = "AS2_RECORD"              // the connection has no AS2 settings or no identity of ours
	CodeKey         = "NO_KEY"                  // we have no key to sign with today
	CodeCertificate = "NO_CERTIFICATE"          // the partner's record lacks a certificate for today
	CodeCipher      = "CIPHER_UNSUPPORTED"      // the connection names a cipher that we do not write
	CodeCompression = "COMPRESSION_UNSUPPORTED" // the connection asks for compression
	CodeAsyncMDN    = "ASYNC_MDN_UNSUPPORTED"   // mdn.mode async
	CodeURL         = "HTTP_URL"                // the URL of the connection is no good
	CodeBuild       = "AS2_BUILD"               // the message could not be built
	CodePayload     = "PAYLOAD_READ"            // our own store did not give the bytes
	CodeDisk        = "DISK_LOW"                // no room to encrypt

	CodeRefused  = "CONNECT_REFUSED"   // no connection
	CodeCut      = "CONNECTION_CUT"    // the connection broke
	CodeTimeout  = "TIMEOUT"           // a time limit was over
	CodeBlocked  = "ADDRESS_BLOCKED"   // the address is kept shut
	CodeTLS      = "TLS"               // the handshake failed
	CodeCanceled = "CANCELED"          // we stopped
	CodeEarly    = "HTTP_EARLY_ANSWER" // a 2xx came before the whole body was sent

	CodeMissing   = "MDN_MISSING"       // a 2xx without a body
	CodeTooLarge  = "MDN_TOO_LARGE"     // the answer is longer than dial.MaxAnswer
	CodeMalformed = "MDN_MALFORMED"     // the answer is not an MDN
	CodeUnsigned  = "MDN_UNSIGNED"      // a signed one was asked for
	CodeSignature = "MDN_SIGNATURE"     // not this partner's signature
	CodeOther     = "MDN_OTHER_MESSAGE" // for another Message-ID
	CodePartner   = "MDN_OTHER_PARTNER" // unsigned, and it names another sender
	CodeMIC       = "MDN_MIC_MISMATCH"  // the partner has other bytes than we sent
)

// DefaultMaxRetryAfter is the longest Retry-After that is honoured unless Options say otherwise.
const DefaultMaxRetryAfter = time.Hour

// Options of New. Dial is required.
type Options struct {
	Dial  *dial.Dialer
	Spool *spool.Spool // for encrypted messages beyond 256 KiB; nil: memory
	Clock clock.Clock  // default clock.System
	Log   *zap.Logger  // one event for each attempt, never payload; default none
	// Probe is called at named points ("before-post", "after-answer"), so that a test can stop the
	// process there.
	Probe         func(point string)
	Timeouts      dial.Timeouts // default as in dial
	MaxRetryAfter time.Duration // default 1 h
	UserAgent     string        // default "edihub"
	// Policy gives the algorithms and limits that hold for the signature of an MDN; default: all.
	Policy func(c *partner.Connection) cms.Policy
}

type endpoint struct{ Options }

// New returns the endpoint. It is safe for concurrent use, holds no goroutine and never retries
// by itself.
func New(o Options) send.Endpoint {
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Probe == nil {
		o.Probe = func(string) {}
	}
	if o.MaxRetryAfter == 0 {
		o.MaxRetryAfter = DefaultMaxRetryAfter
	}
	if o.UserAgent == "" {
		o.UserAgent = "edihub"
	}
	if o.Policy == nil {
		o.Policy = func(*partner.Connection) cms.Policy { return cms.Policy{} }
	}
	return &endpoint{Options: o}
}

// Send implements send.Endpoint.
func (e *endpoint) Send(ctx context.Context, d *send.Delivery) send.Result {
	began := e.Clock.Now()
	r := e.send(ctx, d)
	r.Detail = oneLine(r.Detail)
	e.Log.Info("as2_sent",
		zap.String("delivery", d.ID.String()), zap.String("message_id", d.MessageID), zap.String("connection", d.Connection.ID),
		zap.String("status", statusName(r.Status)), zap.String("code", r.Code), zap.String("proof", r.Proof),
		zap.Int64("bytes", d.Payload.Size()), zap.Duration("took", e.Clock.Now().Sub(began)))
	return r
}

func statusName(s send.Status) string {
	switch s {
	case send.Delivered:
		return "delivered"
	case send.Pending:
		return "pending"
	case send.Retry:
		return "retry"
	case send.Failed:
		return "failed"
	case send.Unknown:
		return "unknown"
	}
	return "none"
}

func (e *endpoint) send(ctx context.Context, d *send.Delivery) send.Result {
	now := e.Clock.Now()
	options, problem := e.buildOptions(d, now)
	if problem != nil {
		return *problem
	}
	out, err := as2.Build(marked{d.Payload}, options)
	if err != nil {
		return notBuilt(err)
	}
	defer out.Close() //nolint:errcheck // Nothing can be done about a file that is unlinked already.
	return e.post(ctx, d, out, now)
}

// retry is a Result for what keeps us from sending at all. It is no failure of the delivery: it
// goes as soon as somebody has mended the record.
func retry(code, detail string) *send.Result {
	return &send.Result{Status: send.Retry, Code: code, Detail: detail}
}

func notBuilt(err error) send.Result {
	switch {
	case errors.Is(err, spool.ErrDiskLow):
		return *retry(CodeDisk, err.Error())
	case errors.Is(err, errPayload):
		return *retry(CodePayload, err.Error())
	}
	return *retry(CodeBuild, err.Error())
}

// buildOptions says how the connection wants its messages, or what keeps us from making one.
func (e *endpoint) buildOptions(d *send.Delivery, now time.Time) (as2.BuildOptions, *send.Result) {
	c := d.Connection
	switch {
	case c.AS2 == nil:
		return as2.BuildOptions{}, retry(CodeRecord, "connection "+c.ID+" has no as2 settings")
	case d.Own == nil || d.Own.AS2ID == "":
		return as2.BuildOptions{}, retry(CodeRecord, "connection "+c.ID+" has no identity of ours with an AS2 name; set as2.own")
	case c.AS2.MDN.Mode == "async":
		return as2.BuildOptions{}, retry(CodeAsyncMDN, "connection "+c.ID+" asks for asynchronous MDNs, which are not supported; set mdn.mode: sync (or none)")
	case c.AS2.Compress != "" && c.AS2.Compress != "none":
		return as2.BuildOptions{}, retry(CodeCompression, "connection "+c.ID+" asks for compression, which is not supported; set compress: none")
	}
	o := as2.BuildOptions{
		From: d.Own.AS2ID, To: c.AS2.ID, MessageID: d.MessageID, ContentType: media(d), Filename: filename(d),
		UserAgent: e.UserAgent, At: now, Receipt: receipt(c.AS2),
	}
	if e.Spool != nil {
		o.Scratch = e.Spool.NewScratch
	}
	if p := signing(&o, d, now); p != nil {
		return o, p
	}
	if p := encryption(&o, c, now); p != nil {
		return o, p
	}
	if o.Receipt.Signed && len(c.VerifyCerts(now)) == 0 {
		return o, retry(CodeCertificate, "connection "+c.ID+" asks for signed MDNs, but its record has no certificate with use sign that is valid today; add one")
	}
	return o, nil
}

func signing(o *as2.BuildOptions, d *send.Delivery, now time.Time) *send.Result {
	name := d.Connection.AS2.Sign
	if name == "" || name == "none" {
		return nil
	}
	digest, err := cms.ParseDigest(name)
	if err != nil {
		return retry(CodeBuild, err.Error())
	}
	k := d.Own.SigningKey(now)
	if k == nil {
		return retry(CodeKey, "connection "+d.Connection.ID+" signs, but own "+d.Own.ID+" has no key with use sign that is valid today; add one")
	}
	o.Sign = &cms.Signer{Certificate: k.Certificate, Key: k.Private, Digest: digest}
	return nil
}

func encryption(o *as2.BuildOptions, c *partner.Connection, now time.Time) *send.Result {
	if c.AS2.Encrypt == "" || c.AS2.Encrypt == "none" {
		return nil
	}
	cipher, err := cms.ParseCipher(c.AS2.Encrypt)
	if err != nil {
		return retry(CodeCipher, "connection "+c.ID+": "+err.Error())
	}
	cert := c.EncryptCert(now)
	if cert == nil {
		return retry(CodeCertificate, "connection "+c.ID+" encrypts, but its record has no certificate with use encrypt that is valid today; add one")
	}
	o.Cipher = cipher
	o.Encrypt = append(o.Encrypt, cert)
	return nil
}

// receipt asks for the MDN that the connection says. The MIC is asked for in the digest of our
// signature, where there is one.
func receipt(a *partner.AS2) as2.ReceiptRequest {
	r := as2.ReceiptRequest{Wanted: a.MDN.Mode != "none"}
	if !r.Wanted {
		return r
	}
	r.Signed = a.MDN.Signed
	switch a.Sign {
	case "sha1":
		r.MICAlgs = []string{"sha1"} // the spelling of RFC 4130; old partners know no other
	case "sha384":
		r.MICAlgs = []string{"sha-384"}
	case "sha512":
		r.MICAlgs = []string{"sha-512"}
	}
	return r
}

// media falls back to the type of plain bytes where a type would break the header.
func media(d *send.Delivery) string {
	for i := range len(d.Media) {
		if d.Media[i] < ' ' || d.Media[i] > '~' {
			return ""
		}
	}
	return d.Media
}

// filename is the name that the partner sees. It is a function of the delivery, because the MIC
// covers it: every retry has the same.
func filename(d *send.Delivery) string {
	extension := ".bin"
	switch d.Standard {
	case edi.EDIFACT, edi.X12:
		extension = ".edi"
	case edi.UBL:
		extension = ".xml"
	case edi.Opaque:
	}
	var parts []string
	for _, s := range []string{d.Type, d.ControlRef, d.ID.String()} {
		if s = strings.Map(plain, s); s != "" {
			parts = append(parts, s)
		}
	}
	return path.Base(as2.SafeFilename(strings.Join(parts, "_") + extension))
}

// plain keeps what every file system and every partner takes in a name.
func plain(r rune) rune {
	switch {
	case r >= '0' && r <= '9', r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r == '-', r == '.':
		return r
	}
	return -1
}

func (e *endpoint) post(ctx context.Context, d *send.Delivery, out *as2.Outbound, now time.Time) send.Result {
	body := &guarded{src: out.Body}
	req, err := newRequest(ctx, d.Connection.AS2.URL, out.Header, body)
	if err != nil {
		return *retry(CodeURL, "connection "+d.Connection.ID+": "+err.Error())
	}
	policy := dial.PolicyFor(d.Connection, d.Own, now)
	policy.Timeouts = e.Timeouts
	e.Probe("before-post")
	resp, err := dial.Do(e.Dial.Client(policy), req)
	if err != nil {
		_, unread := body.shut()
		return failure(err, unread)
	}
	answer, truncated, err := dial.ReadAnswer(resp)
	left, _ := body.shut()
	e.Probe("after-answer")
	a := answered{
		status: resp.StatusCode, header: resp.Header, body: answer, truncated: truncated, cut: err, unsent: left > 0,
		retryAfter: e.retryAfter(resp.Header.Get("Retry-After")),
	}
	return e.judge(d, out, a)
}

// newRequest makes the POST: with a Content-Length and never chunked as well.
func newRequest(ctx context.Context, url string, h http.Header, body *guarded) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil || (req.URL.Scheme != "http" && req.URL.Scheme != "https") || req.URL.Host == "" {
		return nil, errors.New("the URL is no good; it must begin with https:// or http:// and name a host") // the original quotes it, and it may hold a password
	}
	req.Header = h
	if req.ContentLength = body.src.Size(); req.ContentLength == 0 {
		req.Body = http.NoBody
		return req, nil
	}
	req.Body = body.reader()
	// A kept connection that the partner closed in the meantime is found out before a byte was
	// sent; net/http then begins again by itself.
	req.GetBody = func() (io.ReadCloser, error) { return body.reader(), nil }
	return req, nil
}
