package hubtest

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/app/peer"
	"github.com/edihub/edihub/internal/as2"
)

// Message is what a partner who works well posts: signed and encrypted, with a signed MDN asked
// for, unless it says otherwise.
type Message struct {
	From      string // AS2 name
	To        string // default the hub
	MessageID string // default one that was not used yet
	Media     string // default application/EDIFACT
	Filename  string
	Payload   []byte

	Signer      *peer.Identity // default that of From
	Unsigned    bool
	Unencrypted bool
	NoMDN       bool // no MDN is asked for
	UnsignedMDN bool // one without a signature is asked for
}

// Request is one POST, of any shape. Keys of Header are sent as they are spelled.
type Request struct {
	Path   string // default /as2
	Header http.Header
	Body   []byte
	// Chunked leaves the length untold.
	Chunked bool

	messageID string
	mic       func(alg string) string
}

// Clone returns a copy that can be spoilt.
func (r *Request) Clone() *Request {
	c := *r
	c.Header, c.Body = r.Header.Clone(), bytes.Clone(r.Body)
	return &c
}

// Message builds the bytes of a message; post them once or as often as needed.
func (h *Hub) Message(m Message) *Request {
	h.t.Helper()
	if m.To == "" {
		m.To = h.o.Own
	}
	if m.MessageID == "" {
		h.n++
		m.MessageID = fmt.Sprintf("<%d.%d@hubtest>", time.Now().UnixNano(), h.n)
	}
	if m.Media == "" {
		m.Media = "application/EDIFACT"
	}
	o := as2.BuildOptions{
		From: m.From, To: m.To, MessageID: m.MessageID, ContentType: m.Media, Filename: m.Filename, At: time.Now(),
		Receipt: as2.ReceiptRequest{Wanted: !m.NoMDN, Signed: !m.UnsignedMDN},
	}
	if !m.Unsigned {
		if m.Signer == nil {
			m.Signer = h.Identity(m.From)
		}
		o.Sign = m.Signer.Signer()
	}
	if !m.Unencrypted {
		o.Encrypt = []*x509.Certificate{h.Own().Certificate}
	}
	out, err := as2.Build(bytes.NewReader(m.Payload), o)
	if err != nil {
		h.t.Fatalf("build message: %v", err)
	}
	defer out.Close() //nolint:errcheck // In memory.
	body, err := io.ReadAll(io.NewSectionReader(out.Body, 0, out.Body.Size()))
	if err != nil {
		h.t.Fatalf("build message: %v", err)
	}
	return &Request{Header: out.Header, Body: body, messageID: m.MessageID, mic: out.MIC}
}

// Send builds a message and posts it.
func (h *Hub) Send(m Message) *Answer {
	h.t.Helper()
	return h.Post(h.Message(m))
}

// Post posts a request to the AS2 listener.
func (h *Hub) Post(r *Request) *Answer {
	h.t.Helper()
	a, err := h.TryPost(context.Background(), r)
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

// TryPost is Post for a request that may be cut off, and for other goroutines than the test's.
func (h *Hub) TryPost(ctx context.Context, r *Request) (*Answer, error) {
	path := r.Path
	if path == "" {
		path = "/as2"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+h.AS2Addr()+path, bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("post: %w", err)
	}
	maps.Copy(req.Header, r.Header)
	if r.Chunked {
		req.ContentLength = -1
	}
	resp, err := h.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("post: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // Only read.
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("post: read answer: %w", err)
	}
	a := &Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}
	a.MDN, a.MDNError = as2.ParseMDN(resp.Header, body, []*x509.Certificate{h.Own().Certificate}, false)
	if a.MDN != nil && r.mic != nil {
		var negative *as2.NegativeMDN
		if err := a.MDN.Check(r.messageID, r.mic); err != nil && !errors.As(err, &negative) {
			a.MDNError = err
		}
	}
	return a, nil
}

// Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// MDN is nil where the body is none. A signature in it is the hub's.
	MDN *as2.MDN
	// MDNError says why it is none, or that it does not answer the message: another Message-ID
	// or another MIC.
	MDNError error
}

// mode begins every Disposition of the hub.
const mode = "automatic-action/MDN-sent-automatically; "

// Positive fails the test unless the answer is a signed positive MDN for the message.
func (a *Answer) Positive(t testing.TB) {
	t.Helper()
	a.Disposition(t, true, "processed")
}

// Disposition fails the test unless the answer is an MDN with that disposition:
// "processed/error: decryption-failed".
func (a *Answer) Disposition(t testing.TB, signed bool, want string) {
	t.Helper()
	switch {
	case a.Status != http.StatusOK || a.MDN == nil || a.MDNError != nil:
		t.Fatalf("HTTP %d, no MDN for the message (%v): %q", a.Status, a.MDNError, a.Body)
	case a.MDN.Disposition != mode+want:
		t.Fatalf("Disposition %q, want %q\n%s", a.MDN.Disposition, mode+want, a.MDN.Text)
	case a.MDN.Signed != signed:
		t.Fatalf("the MDN is signed: %v, want %v", a.MDN.Signed, signed)
	}
}
