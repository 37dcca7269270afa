package hubtest

import (
	"bytes"
	"crypto/x509"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edihub/edihub/internal/app/peer"
	"github.com/edihub/edihub/internal/as2"
)

// Delivered is one request of the hub to a partner, as often as it was made.
type Delivered struct {
	To        string // AS2 name, or what stands behind /http/ in the URL
	MessageID string
	Payload   []byte
	Filename  string
	Header    http.Header // of the request
	Wire      []byte      // its body
	Signed    bool        // by the hub's key
	Encrypted bool
	// Headers and MIC are what an MDN needs; of AS2 only.
	Headers     as2.Headers
	MIC, MICAlg string
	// Problem says why an AS2 message could not be opened; it is answered with 400.
	Problem error
}

// Sink is the server of all partners: AS2 for whoever AS2-To names at /as2, plain HTTP at
// /http/<name>. It opens every AS2 message with the key of its receiver and answers with the
// receiver's signed MDN, unless Answer says otherwise.
type Sink struct {
	Addr string // host:port

	h    *Hub
	srv  *http.Server
	done chan struct{}

	mu       sync.Mutex
	got      []*Delivered
	answer   func(w http.ResponseWriter, r *http.Request, d *Delivered) bool
	released chan struct{}
}

func newSink(h *Hub) *Sink {
	h.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	s := &Sink{Addr: ln.Addr().String(), h: h, done: make(chan struct{}), released: make(chan struct{})}
	s.srv = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: Patience}
	go func() {
		defer close(s.done)
		_ = s.srv.Serve(ln) // until close
	}()
	return s
}

// Answer has f answer the requests from now on. Where it returns false the sink answers as
// always; nil: it always does. The request's context ends when the hub goes away.
func (s *Sink) Answer(f func(w http.ResponseWriter, r *http.Request, d *Delivered) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// Released is closed when the hub stops or the test ends; an answer that hangs waits for it.
func (s *Sink) Released() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.released
}

// All returns the requests in the order of their arrival.
func (s *Sink) All() []*Delivered {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// To returns the requests to one receiver.
func (s *Sink) To(name string) []*Delivered {
	var out []*Delivered
	for _, d := range s.All() {
		if d.To == name {
			out = append(out, d)
		}
	}
	return out
}

// MDN builds the receiver's MDN for a message; change may spoil it.
func (s *Sink) MDN(d *Delivered, change func(p *as2.MDNParams)) (http.Header, []byte, error) {
	p := as2.MDNParams{
		Answers: d.Headers, MIC: d.MIC, MICAlg: d.MICAlg, At: time.Now(), Product: "hubtest",
		MessageID: "<mdn-" + as2.NormalizeMessageID(d.MessageID) + ">",
	}
	if id := s.h.ids[d.To]; id != nil && d.Headers.WantsSigned() {
		p.Signer = id.Signer()
	}
	if change != nil {
		change(&p)
	}
	return as2.BuildMDN(p)
}

// Write answers with a header and a body as they are.
func Write(w http.ResponseWriter, h http.Header, body []byte) {
	maps.Copy(w.Header(), h)
	_, _ = w.Write(body) // who went away asks again
}

func (s *Sink) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the hub went away
	}
	d := &Delivered{Header: r.Header.Clone(), Wire: body, Payload: body}
	if name, ok := strings.CutPrefix(r.URL.Path, "/http/"); ok {
		d.To = name
	} else {
		s.open(d)
	}
	s.mu.Lock()
	s.got = append(s.got, d)
	answer := s.answer
	s.mu.Unlock()
	defer s.h.changed.tell()
	switch {
	case answer != nil && answer(w, r, d):
	case d.Problem != nil:
		http.Error(w, d.Problem.Error(), http.StatusBadRequest)
	case d.Headers.To == "" || !d.Headers.WantsMDN():
	default:
		h, mdn, err := s.MDN(d, nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		Write(w, h, mdn)
	}
}

// open undoes what protects a message, with the key of whoever it is for.
func (s *Sink) open(d *Delivered) {
	d.Payload = nil
	if d.Headers, d.Problem = as2.ParseHeaders(d.Header); d.Problem != nil {
		return
	}
	d.To, d.MessageID = d.Headers.To, d.Headers.MessageID
	o := as2.OpenOptions{}
	if id := s.h.ids[d.To]; id != nil {
		o.Decrypt, o.Verify = id.Recipients(), []*x509.Certificate{s.own().Certificate}
	}
	opened, err := as2.Open(as2.Inbound{Headers: d.Headers, Body: bytes.NewReader(d.Wire)}, o)
	if err != nil {
		d.Problem = err
		return
	}
	defer opened.Close() //nolint:errcheck // In memory.
	d.Signed, d.Encrypted, d.MIC, d.MICAlg, d.Filename = opened.Signed, opened.Encrypted, opened.MIC, opened.MICAlg, opened.Filename.Safe
	d.Payload, d.Problem = io.ReadAll(io.NewSectionReader(opened.Payload, 0, opened.Payload.Size()))
}

func (s *Sink) own() *peer.Identity { return s.h.ids[s.h.o.Own] }

// release ends answers that hang.
func (s *Sink) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.released)
	s.released = make(chan struct{})
}

func (s *Sink) close() {
	s.release()
	_ = s.srv.Close() // the test ends
	<-s.done
}
