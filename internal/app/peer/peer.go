// Package peer is a trading partner in a box: it posts AS2 messages and judges the MDN, and it
// receives AS2 messages and answers them. The demo and the load test run hubs against it.
package peer

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/partner"
)

// Identity is an AS2 name with its key.
type Identity struct {
	AS2ID       string
	Certificate *x509.Certificate
	Key         crypto.Signer
	// CertFile and KeyFile are where WriteFiles put them.
	CertFile, KeyFile string
	certPEM, keyPEM   []byte
}

// NewIdentity makes a key of RSA with 2,048 bits and a certificate for it.
func NewIdentity(as2ID string, now time.Time) (*Identity, error) {
	certPEM, keyPEM, err := partner.GenerateKey(as2ID, 2048, now.Add(-time.Hour), now.AddDate(2, 0, 0))
	if err != nil {
		return nil, fmt.Errorf("key of %s: %w", as2ID, err)
	}
	cb, _ := pem.Decode(certPEM)
	kb, _ := pem.Decode(keyPEM)
	if cb == nil || kb == nil {
		return nil, fmt.Errorf("key of %s: no PEM", as2ID)
	}
	cert, err := x509.ParseCertificate(cb.Bytes)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", as2ID, err)
	}
	key, err := x509.ParsePKCS8PrivateKey(kb.Bytes)
	if err != nil {
		return nil, fmt.Errorf("key of %s: %w", as2ID, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("key of %s cannot sign", as2ID)
	}
	return &Identity{AS2ID: as2ID, Certificate: cert, Key: signer, certPEM: certPEM, keyPEM: keyPEM}, nil
}

// WriteFiles puts certificate and key into a folder, for partner records to name.
func (id *Identity) WriteFiles(dir string) error {
	id.CertFile, id.KeyFile = filepath.Join(dir, id.AS2ID+".pem"), filepath.Join(dir, id.AS2ID+".key")
	if err := os.WriteFile(id.CertFile, id.certPEM, 0o600); err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	if err := os.WriteFile(id.KeyFile, id.keyPEM, 0o600); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	return nil
}

// Recipients is the key in the form in which messages are opened with it.
func (id *Identity) Recipients() []cms.Recipient {
	d, ok := id.Key.(crypto.Decrypter)
	if !ok {
		return nil
	}
	return []cms.Recipient{{Certificate: id.Certificate, Key: d}}
}

// Signer is the key in the form in which messages are signed with it.
func (id *Identity) Signer() *cms.Signer {
	return &cms.Signer{Certificate: id.Certificate, Key: id.Key, Digest: "sha256"}
}

// Security of what travels.
type Security struct {
	Sign, Encrypt bool
}

// Message is what a partner posts.
type Message struct {
	URL       string
	From      *Identity
	To        *Identity // the hub; its certificate is needed where something is signed or encrypted
	MessageID string
	Media     string
	Filename  string
	Payload   []byte
	Security  Security
	At        time.Time
}

// Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte   // as it travelled
	MDN    *as2.MDN // nil where none could be read
}

// Wire is a message ready to be posted, once or again with the same bytes.
type Wire struct {
	url    string
	header http.Header
	body   []byte
	m      *Message
	mic    func(alg string) string
}

// Prepare builds the bytes of a message.
func Prepare(m *Message) (*Wire, error) {
	o := as2.BuildOptions{
		From: m.From.AS2ID, To: m.To.AS2ID, MessageID: m.MessageID, ContentType: m.Media, Filename: m.Filename, At: m.At,
		Receipt: as2.ReceiptRequest{Wanted: true, Signed: m.Security.Sign},
	}
	if m.Security.Sign {
		o.Sign = m.From.Signer()
	}
	if m.Security.Encrypt {
		o.Encrypt = []*x509.Certificate{m.To.Certificate}
	}
	out, err := as2.Build(bytes.NewReader(m.Payload), o)
	if err != nil {
		return nil, fmt.Errorf("build message: %w", err)
	}
	defer out.Close() //nolint:errcheck // In memory.
	body := make([]byte, out.Body.Size())
	if _, err := out.Body.ReadAt(body, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("build message: %w", err)
	}
	return &Wire{url: m.URL, header: out.Header, body: body, m: m, mic: out.MIC}, nil
}

// Post sends the bytes and reads the answer. An MDN is judged: it must be for this message, with
// our MIC, and signed by the hub where a signed one was asked for; else MDN is nil and the error
// says why. A refusal is no error: look at MDN.Outcome.
func (w *Wire) Post(ctx context.Context, c *http.Client) (*Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(w.body))
	if err != nil {
		return nil, fmt.Errorf("post message: %w", err)
	}
	req.Header = w.header.Clone()
	resp, err := c.Do(req)
	if err != nil {
		return nil, fmt.Errorf("post message: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // Only read.
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	a := &Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}
	if resp.StatusCode != http.StatusOK || len(body) == 0 {
		return a, nil
	}
	var certs []*x509.Certificate
	if w.m.Security.Sign {
		certs = []*x509.Certificate{w.m.To.Certificate}
	}
	mdn, err := as2.ParseMDN(resp.Header, body, certs, w.m.Security.Sign)
	if err != nil {
		return a, fmt.Errorf("read MDN: %w", err)
	}
	var negative *as2.NegativeMDN
	if err := mdn.Check(w.m.MessageID, w.mic); err != nil && !errors.As(err, &negative) {
		return a, fmt.Errorf("judge MDN: %w", err)
	}
	a.MDN = mdn
	return a, nil
}

// Received is a message that a receiver took.
type Received struct {
	From, To  string
	MessageID string
	Payload   []byte
	Filename  string
}

// Sink answers for any number of receivers behind one URL, told apart by AS2-To.
type Sink struct {
	Hub       *Identity
	Receivers map[string]*Identity // by AS2 name
	Security  Security
	Now       func() time.Time
	// Take is called with each message that opened, before the MDN leaves. An error refuses it.
	Take func(ctx context.Context, m *Received) error
}

// ServeHTTP implements http.Handler.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, err := as2.ParseHeaders(r.Header)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id := s.Receivers[h.To]
	if id == nil {
		http.Error(w, "unknown receiver", http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return // the sender went away
	}
	o := as2.OpenOptions{RequireSigned: s.Security.Sign, RequireEncrypted: s.Security.Encrypt}
	if s.Security.Sign || s.Security.Encrypt {
		o.Decrypt, o.Verify = id.Recipients(), []*x509.Certificate{s.Hub.Certificate}
	}
	p := as2.MDNParams{Answers: h, MessageID: "<mdn-" + as2.NormalizeMessageID(h.MessageID) + ">", At: s.Now(), Product: "edihub peer"}
	if h.WantsSigned() {
		p.Signer = id.Signer()
	}
	opened, err := as2.Open(as2.Inbound{Headers: h, Body: bytes.NewReader(body)}, o)
	switch {
	case err == nil:
		defer opened.Close() //nolint:errcheck // In memory.
		p.MIC, p.MICAlg = opened.MIC, opened.MICAlg
		err = s.take(r.Context(), h, opened)
	case errors.As(err, &p.Refusal):
		err = nil
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	header, mdn, err := as2.BuildMDN(p)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	maps.Copy(w.Header(), header)
	_, _ = w.Write(mdn) // a sender that went away posts again
}

func (s *Sink) take(ctx context.Context, h as2.Headers, o *as2.Opened) error {
	payload := make([]byte, o.Payload.Size())
	if _, err := o.Payload.ReadAt(payload, 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read payload: %w", err)
	}
	return s.Take(ctx, &Received{From: h.From, To: h.To, MessageID: h.MessageID, Payload: payload, Filename: o.Filename.Safe})
}
