package receiver

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
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
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline"
	"github.com/edihub/edihub/internal/spool"
	"github.com/edihub/edihub/internal/store"
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
	name            string
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
	return identity{name: name, certPEM: certPEM, keyPEM: keyPEM, cert: cert, key: key.(*rsa.PrivateKey)}
}

var (
	hubID    = sync.OnceValue(func() identity { return newIdentity("hub") })
	acmeID   = sync.OnceValue(func() identity { return newIdentity("acme") })
	betaID   = sync.OnceValue(func() identity { return newIdentity("beta") })
	stranger = sync.OnceValue(func() identity { return newIdentity("stranger") })
)

func (i identity) signer() *cms.Signer {
	return &cms.Signer{Certificate: i.cert, Key: i.key, Digest: cms.SHA256}
}

// files writes certificate and key for OpenSSL.
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
func openssl(t testing.TB, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("openssl", args...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		t.Fatalf("openssl %s: %v\n%s\nthese tests need the openssl command (Debian: apt-get install openssl)", strings.Join(args, " "), err, problem.String())
	}
	return out.Bytes()
}

// memoryStore is pipeline and store in memory: the natural key is claimed with the acceptance.
type memoryStore struct {
	reg *partner.Registry

	mu            sync.Mutex
	transmissions map[edi.ID]*store.Transmission
	order         []edi.ID
	bodies        map[store.Ref][]byte
	keys          map[[32]byte]store.NaturalKey
	accepted      int
	hidden        bool // GetTransmission sees nothing: another node has not committed yet
	failStage     error
	failAccept    error
	failKeep      error
	accepting     func() // called inside Accept, before anything is taken
}

func newMemoryStore(reg *partner.Registry) *memoryStore {
	return &memoryStore{
		reg: reg, transmissions: map[edi.ID]*store.Transmission{}, bodies: map[store.Ref][]byte{}, keys: map[[32]byte]store.NaturalKey{},
	}
}

func (m *memoryStore) Registry() *partner.Registry { return m.reg }

func (m *memoryStore) StageBody(_ context.Context, src edi.Source) (*store.Body, error) {
	m.mu.Lock()
	err := m.failStage
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.NewSectionReader(src, 0, src.Size()))
	if err != nil {
		return nil, err
	}
	return &store.Body{Ref: sha256.Sum256(b), Size: int64(len(b)), Data: b}, nil
}

func (m *memoryStore) Accept(_ context.Context, a *pipeline.Arrival) error {
	m.mu.Lock()
	f := m.accepting
	m.mu.Unlock()
	if f != nil {
		f()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failAccept != nil {
		return fmt.Errorf("accept transmission: %w", m.failAccept)
	}
	if a.Key != nil {
		if have, ok := m.keys[a.Key.Hash]; ok && !have.At.Before(a.Since) {
			return &pipeline.RepeatError{Same: have.Content == a.Key.Content, First: have.Object}
		}
		m.keys[a.Key.Hash] = *a.Key
	}
	m.accepted++
	m.put(a)
	return nil
}

func (m *memoryStore) Keep(_ context.Context, a *pipeline.Arrival) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failKeep != nil {
		return fmt.Errorf("keep transmission: %w", m.failKeep)
	}
	m.put(a)
	return nil
}

func (m *memoryStore) put(a *pipeline.Arrival) {
	for _, b := range []*store.Body{a.Content, a.Wire} {
		if b != nil {
			m.bodies[b.Ref] = b.Data
		}
	}
	c := *a.Transmission
	m.transmissions[c.ID] = &c
	m.order = append(m.order, c.ID)
}

func (m *memoryStore) GetTransmission(_ context.Context, id edi.ID) (*store.Transmission, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.transmissions[id]
	if !ok || m.hidden {
		return nil, fmt.Errorf("transmission %s: %w", id, store.ErrNotFound)
	}
	c := *t
	return &c, nil
}

// set changes a field under the lock.
func (m *memoryStore) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// all returns the transmissions in the order in which they were kept.
func (m *memoryStore) all() []*store.Transmission {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*store.Transmission
	for _, id := range m.order {
		c := *m.transmissions[id]
		out = append(out, &c)
	}
	return out
}

func (m *memoryStore) body(ref store.Ref) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bodies[ref]
}

func (m *memoryStore) acceptedCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.accepted
}

// tally counts results.
type tally struct {
	mu   sync.Mutex
	seen []string
	more chan struct{} // receives after each
}

func (o *tally) Received(partner, result string) {
	o.mu.Lock()
	o.seen = append(o.seen, partner+" "+result)
	o.mu.Unlock()
	if o.more != nil {
		o.more <- struct{}{}
	}
}

func (o *tally) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.seen) == 0 {
		return ""
	}
	return o.seen[len(o.seen)-1]
}

func (o *tally) count(s string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, x := range o.seen {
		if x == s {
			n++
		}
	}
	return n
}

// hub is a listener on loopback over a memory store.
type hub struct {
	t        testing.TB
	st       *memoryStore
	spoolDir string
	sp       *spool.Spool
	meter    *spool.Meter
	seen     *tally
	url      string
	addr     string
	client   *http.Client
	srv      *http.Server
}

const partnersYAML = `
own:
  - id: hub
    as2: {id: "OURCO", keys: [{cert: hub.pem, key: hub.key, use: [sign, decrypt]}]}
    identifiers: ["edifact:14:5412345000020"]
connections:
  - id: acme-as2
    as2: {id: "ACME AS2", own: hub, url: "http://127.0.0.1:1/as2"}
    certificates: [{file: acme.pem, use: [sign, encrypt]}]
  - id: beta-as2
    as2: {id: "BETA", own: hub, url: "http://127.0.0.1:1/as2", require: [], sign: none, encrypt: none, mdn: {signed: false}}
    certificates: [{file: beta.pem, use: [sign, encrypt]}]
  - id: gamma-as2
    as2: {id: "GAMMA", own: hub, url: "http://127.0.0.1:1/as2", require: [encrypted], encrypt: none, sign: none, mdn: {signed: false}, max_message: 4096}
partners:
  - {id: acme, connections: [acme-as2], identifiers: ["edifact:14:5412345000013"]}
  - {id: beta, connections: [beta-as2], identifiers: ["edifact:14:5412345000037"]}
  - {id: gamma, connections: [gamma-as2], identifiers: ["edifact:14:5412345000044"]}
routes:
  - {match: {}, to: beta}
`

func registry(t testing.TB) *partner.Registry {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, "hub.pem", hubID().certPEM)
	writeFile(t, dir, "hub.key", hubID().keyPEM)
	writeFile(t, dir, "acme.pem", acmeID().certPEM)
	writeFile(t, dir, "beta.pem", betaID().certPEM)
	reg, err := partner.Parse([]byte(partnersYAML), dir, partner.LoadOptions{})
	check(t, err)
	return reg
}

// newHub starts a listener; change may set options before it does.
func newHub(t testing.TB, change func(h *hub, o *Options)) *hub {
	t.Helper()
	h := &hub{t: t, st: newMemoryStore(registry(t)), spoolDir: t.TempDir(), seen: &tally{}}
	var err error
	h.sp, err = spool.New(h.spoolDir, spool.Options{MinFree: -1})
	check(t, err)
	h.meter = spool.NewMeter(spool.Limits{})
	o := Options{Pipeline: h.st, Store: h.st, Spool: h.sp, Meter: h.meter, Observer: h.seen}
	if change != nil {
		change(h, &o)
	}
	h.sp, h.meter = o.Spool, o.Meter
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	srv := Server(New(o), ServerOptions{})
	h.srv = srv
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // It ends with the server.
	}()
	tr := &http.Transport{DisableCompression: true}
	h.client = &http.Client{Transport: tr}
	h.addr = l.Addr().String()
	h.url = "http://" + h.addr
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		_ = srv.Close()
		<-done
	})
	return h
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// post sends a body with header fields given as "Name: value".
func (h *hub) post(body []byte, fields ...string) answer {
	h.t.Helper()
	a, err := h.try(Path, bytes.NewReader(body), fields...)
	check(h.t, err)
	return a
}

func (h *hub) try(path string, body io.Reader, fields ...string) (answer, error) {
	req, err := http.NewRequest(http.MethodPost, h.url+path, body)
	if err != nil {
		return answer{}, err
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		req.Header[name] = append(req.Header[name], value)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, b}, err
}

const (
	askSigned = "Disposition-Notification-Options: signed-receipt-protocol=optional, pkcs7-signature; signed-receipt-micalg=optional, sha-256"
	askMDN    = "Disposition-Notification-To: edi@partner.example"
	toUs      = "AS2-To: OURCO"
	fromAcme  = `AS2-From: "ACME AS2"`
	fromBeta  = "AS2-From: BETA"
)

// from gives the names and the id of a message.
func from(name, id string) []string {
	return []string{"AS2-From: " + as2.QuoteName(name), toUs, "Message-ID: " + id, "AS2-Version: 1.0"}
}

// sent builds a message with package as2, as a partner who works well would.
func sent(t testing.TB, who identity, name, id string, payload []byte, change func(*as2.BuildOptions)) (body []byte, fields []string) {
	t.Helper()
	o := as2.BuildOptions{
		From: name, To: "OURCO", MessageID: id, ContentType: "application/edifact", Filename: "orders.edi", At: time.Now(),
		Sign: who.signer(), Encrypt: []*x509.Certificate{hubID().cert},
		Receipt: as2.ReceiptRequest{Wanted: true, Signed: true},
	}
	if change != nil {
		change(&o)
	}
	out, err := as2.Build(bytes.NewReader(payload), o)
	check(t, err)
	defer out.Close()
	body, err = io.ReadAll(io.NewSectionReader(out.Body, 0, out.Body.Size()))
	check(t, err)
	for name, vs := range out.Header {
		for _, v := range vs {
			fields = append(fields, name+": "+v)
		}
	}
	return body, fields
}

func (h *hub) send(who identity, name, id string, payload []byte, change func(*as2.BuildOptions)) answer {
	h.t.Helper()
	body, fields := sent(h.t, who, name, id, payload, change)
	return h.post(body, fields...)
}

// mdn reads an MDN of ours as the partner does.
func (a answer) mdn(t testing.TB, signed bool) *as2.MDN {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("status %d, body %q; want an MDN", a.status, a.body)
	}
	m, err := as2.ParseMDN(a.header, a.body, []*x509.Certificate{hubID().cert}, signed)
	if err != nil {
		t.Fatalf("MDN: %v\n%s", err, a.body)
	}
	if m.Signed != signed {
		t.Fatalf("the MDN is signed: %v, want %v", m.Signed, signed)
	}
	return m
}

func wantDisposition(t testing.TB, m *as2.MDN, want string) {
	t.Helper()
	const mode = "automatic-action/MDN-sent-automatically; "
	if m.Disposition != mode+want {
		t.Errorf("Disposition %q, want %q", m.Disposition, mode+want)
	}
}

// only returns the one transmission that there must be.
func (h *hub) only() *store.Transmission {
	h.t.Helper()
	all := h.st.all()
	if len(all) != 1 {
		h.t.Fatalf("%d transmissions are kept, want 1: %+v", len(all), all)
	}
	return all[0]
}

func (h *hub) newest() *store.Transmission {
	h.t.Helper()
	all := h.st.all()
	if len(all) == 0 {
		h.t.Fatal("no transmission is kept")
	}
	return all[len(all)-1]
}

// nothingLeft checks that no spool, no bytes in flight and no file are left.
// It stops the listener first, because an answer arrives before its handler has cleaned up.
func (h *hub) nothingLeft() {
	h.t.Helper()
	h.drained()
	if n := h.meter.Used(); n != 0 {
		h.t.Errorf("%d bytes are in flight still", n)
	}
	if m, d := h.sp.Usage(); m != 0 || d != 0 {
		h.t.Errorf("the spool holds %d bytes in memory and %d on disk", m, d)
	}
	left, err := os.ReadDir(h.spoolDir)
	check(h.t, err)
	if len(left) != 0 {
		h.t.Errorf("%d files are left in the spool directory", len(left))
	}
}

func mic256(b []byte) string {
	sum := sha256.Sum256(b)
	return base64.StdEncoding.EncodeToString(sum[:])
}

const orders = "UNB+UNOA:3+5412345000013:14+5412345000020:14+261130:1200+1'\r\nUNH+1+ORDERS:D:96A:UN'\r\nBGM+220+4711+9'\r\nUNT+3+1'\r\nUNZ+1+1'\r\n"

// drained waits until no handler runs any more: the server waits for them when it shuts down.
func (h *hub) drained() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	h.client.CloseIdleConnections()
	check(h.t, h.srv.Shutdown(ctx))
}
