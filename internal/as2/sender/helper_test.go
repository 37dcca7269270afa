package sender

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/endpoint/dial"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline/send"
	"github.com/edihub/edihub/internal/spool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// identity is a key with its certificate.
type identity struct {
	certPEM, keyPEM []byte
	cert            *x509.Certificate
	key             *rsa.PrivateKey
}

func newIdentity(name string) identity {
	now := time.Now()
	certPEM, keyPEM, err := partner.GenerateKey(name, 2048, now.AddDate(0, 0, -1), now.AddDate(1, 0, 0))
	if err != nil {
		panic(err)
	}
	block, _ := pem.Decode(certPEM)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		panic(err)
	}
	block, _ = pem.Decode(keyPEM)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		panic(err)
	}
	return identity{certPEM, keyPEM, cert, key.(*rsa.PrivateKey)}
}

var (
	hubID    = sync.OnceValue(func() identity { return newIdentity("hub") })
	acmeID   = sync.OnceValue(func() identity { return newIdentity("acme") })
	stranger = sync.OnceValue(func() identity { return newIdentity("stranger") })
)

func (i identity) signer() *cms.Signer {
	return &cms.Signer{Certificate: i.cert, Key: i.key, Digest: cms.SHA256}
}

func (i identity) files(t testing.TB) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	return writeFile(t, dir, "cert.pem", i.certPEM), writeFile(t, dir, "key.pem", i.keyPEM)
}

func writeFile(t testing.TB, dir, name string, b []byte) string {
	t.Helper()
	p := filepath.Join(dir, name)
	check(t, os.WriteFile(p, b, 0o600))
	return p
}

// openssl runs OpenSSL and returns its standard output.
func openssl(args ...string) ([]byte, error) {
	cmd := exec.Command("openssl", args...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return nil, errors.New("openssl " + strings.Join(args, " ") + ": " + err.Error() + "\n" + problem.String() +
			"\nthese tests need the openssl command (Debian: apt-get install openssl)")
	}
	return out.Bytes(), nil
}

// peer is a partner's server on loopback.
type peer struct {
	url string

	mu       sync.Mutex
	requests []request
}

type request struct {
	header http.Header
	length int64
	chunks []string // Transfer-Encoding
	body   []byte
}

func (p *peer) seen() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]request(nil), p.requests...)
}

// newPeer starts a partner that answers with a function.
func newPeer(t testing.TB, answer func(w http.ResponseWriter, r request)) *peer {
	t.Helper()
	p := &peer{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		req := request{r.Header.Clone(), r.ContentLength, r.TransferEncoding, body}
		p.mu.Lock()
		p.requests = append(p.requests, req)
		p.mu.Unlock()
		answer(w, req)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	p.url = "http://" + l.Addr().String() + "/as2"
	t.Cleanup(func() {
		_ = srv.Close()
		<-done
	})
	return p
}

// recordsOf parses records with one connection; settings are lines of its as2 block.
func recordsOf(t testing.TB, url, settings, more string) *partner.Registry {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, "hub.pem", hubID().certPEM)
	writeFile(t, dir, "hub.key", hubID().keyPEM)
	writeFile(t, dir, "acme.pem", acmeID().certPEM)
	if settings != "" {
		settings = ", " + settings
	}
	if more == "" {
		more = "certificates: [{file: acme.pem, use: [sign, encrypt]}]"
	}
	reg, err := partner.Parse([]byte(`
own:
  - id: hub
    as2: {id: "OURCO", keys: [{cert: hub.pem, key: hub.key, use: [sign, decrypt]}]}
connections:
  - id: acme-as2
    as2: {id: "ACME AS2", own: hub, url: "`+url+`"`+settings+`}
    `+more+`
partners:
  - {id: acme, connections: [acme-as2], identifiers: ["edifact:14:5412345000013"]}
`), dir, partner.LoadOptions{})
	check(t, err)
	return reg
}

// rig is a sender with a connection to a peer.
type rig struct {
	t        testing.TB
	endpoint send.Endpoint
	reg      *partner.Registry
	sp       *spool.Spool
	dialer   *dial.Dialer
}

func newRig(t testing.TB, url, settings string, change func(o *Options)) *rig {
	t.Helper()
	return newRigWith(t, recordsOf(t, url, settings, ""), change)
}

func newRigWith(t testing.TB, reg *partner.Registry, change func(o *Options)) *rig {
	t.Helper()
	sp, err := spool.New(t.TempDir(), spool.Options{MinFree: -1})
	check(t, err)
	d := dial.New(dial.Options{})
	t.Cleanup(d.Close)
	o := Options{Dial: d, Spool: sp}
	if change != nil {
		change(&o)
	}
	return &rig{t: t, endpoint: New(o), reg: reg, sp: o.Spool, dialer: d}
}

var deliveryID = edi.NewID(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

const (
	messageID = "<0195-1@edihub>"
	invoice   = "UNB+UNOA:3+5412345000020:14+5412345000013:14+261130:1200+1'\r\nUNZ+0+1'\r\n"
)

func (r *rig) delivery(payload []byte) *send.Delivery {
	c := r.reg.Connection("acme-as2")
	return &send.Delivery{
		ID: deliveryID, MessageID: messageID, Connection: c, Own: r.reg.Own("hub"), Payload: bytes.NewReader(payload),
		Standard: edi.EDIFACT, Media: "application/EDIFACT", Type: "INVOIC", ControlRef: "1/a",
	}
}

func (r *rig) send() send.Result {
	r.t.Helper()
	return r.endpoint.Send(r.t.Context(), r.delivery([]byte(invoice)))
}

// open is what a partner who works well does with a request.
func open(r request) (as2.Headers, *as2.Opened, error) {
	h, err := as2.ParseHeaders(r.header)
	if err != nil {
		return h, nil, err
	}
	o, err := as2.Open(as2.Inbound{Headers: h, Body: bytes.NewReader(r.body)}, as2.OpenOptions{
		Decrypt: []cms.Recipient{{Certificate: acmeID().cert, Key: acmeID().key}}, Verify: []*x509.Certificate{hubID().cert},
	})
	return h, o, err
}

// mdnFor builds the MDN of acme for a request; change may spoil it.
func mdnFor(t testing.TB, r request, change func(p *as2.MDNParams)) (http.Header, []byte) {
	t.Helper()
	h, o, err := open(r)
	if err != nil {
		t.Errorf("open: %v", err)
		return nil, nil
	}
	p := as2.MDNParams{Answers: h, MIC: o.MIC, MICAlg: o.MICAlg, MessageID: "<m@acme>", At: time.Now(), Product: "peer"}
	if h.WantsSigned() {
		p.Signer = acmeID().signer()
	}
	if change != nil {
		change(&p)
	}
	header, body, err := as2.BuildMDN(p)
	if err != nil {
		t.Errorf("build MDN: %v", err)
	}
	return header, body
}

func write(w http.ResponseWriter, h http.Header, body []byte) {
	maps.Copy(w.Header(), h)
	_, _ = w.Write(body)
}

// good answers every message with its MDN.
func good(t testing.TB) func(w http.ResponseWriter, r request) {
	return func(w http.ResponseWriter, r request) {
		h, body := mdnFor(t, r, nil)
		write(w, h, body)
	}
}

func want(t testing.TB, r send.Result, status send.Status, code string) {
	t.Helper()
	if r.Status != status || r.Code != code {
		t.Errorf("result %s %s (%s), want %s %s", statusName(r.Status), r.Code, r.Detail, statusName(status), code)
	}
	if status != send.Delivered && r.Proof != "" {
		t.Errorf("a proof %q of what was not delivered", r.Proof)
	}
	if status != send.Delivered && r.Detail == "" {
		t.Error("no detail for a person")
	}
	if strings.ContainsAny(r.Detail, "\r\n") || len(r.Evidence) > maxEvidence {
		t.Errorf("detail %q, %d bytes of evidence", r.Detail, len(r.Evidence))
	}
}

// failing is a payload that cannot be read.
type failing struct{ size int64 }

func (f failing) Size() int64                     { return f.size }
func (failing) ReadAt([]byte, int64) (int, error) { return 0, errors.New("the disk is broken") }
func canceled(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func hubCerts() []*x509.Certificate { return []*x509.Certificate{hubID().cert} }
