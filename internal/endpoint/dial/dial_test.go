package dial_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/endpoint/dial"
	"github.com/edihub/edihub/internal/partner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var open = dial.Policy{AllowPrivate: true}

func newDialer(t *testing.T, o dial.Options) *dial.Dialer {
	t.Helper()
	d := dial.New(o)
	t.Cleanup(d.Close)
	return d
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

func post(ctx context.Context, t *testing.T, c *http.Client, url string, body io.Reader) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return dial.Do(c, req)
}

func mustPost(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	resp, err := post(t.Context(), t, c, url, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := dial.ReadAnswer(resp)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// wantError checks the kind, whether bytes may have left, and the two short ways to both.
func wantError(t *testing.T, err error, kind dial.Kind, sent bool) {
	t.Helper()
	var e *dial.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T), want a *dial.Error", err, err)
	}
	if e.Kind != kind || e.Sent != sent {
		t.Fatalf("kind %v, sent %v (%v); want %v, %v", e.Kind, e.Sent, err, kind, sent)
	}
	if dial.Classify(err) != kind || dial.MayHaveArrived(err) != sent {
		t.Errorf("Classify %v, MayHaveArrived %v", dial.Classify(err), dial.MayHaveArrived(err))
	}
}

// resolver answers in turn, and again with the last answer.
type resolver struct {
	mu      sync.Mutex
	answers [][]netip.Addr
	asked   []string
}

func (r *resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, host)
	if len(r.answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	a := r.answers[0]
	if len(r.answers) > 1 {
		r.answers = r.answers[1:]
	}
	return a, nil
}

func addrs(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func port(t *testing.T, s *httptest.Server) string {
	t.Helper()
	_, p, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNamesAreJudgedByWhatTheyResolveTo(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { hits.Add(1); ok(w, r) })
	for _, tc := range []struct {
		name    string
		host    string
		answer  []netip.Addr
		policy  dial.Policy
		kind    dial.Kind
		reaches bool
	}{
		{"name to loopback", "partner.example", addrs("127.0.0.1"), dial.Policy{}, dial.Blocked, false},
		{"name to loopback in a local file", "partner.example", addrs("127.0.0.1"), dial.Policy{Trusted: true}, dial.Blocked, false},
		{"name to loopback, allowed", "partner.example", addrs("127.0.0.1"), open, dial.OK, true},
		{"name to mapped loopback", "partner.example", addrs("::ffff:127.0.0.1"), dial.Policy{}, dial.Blocked, false},
		{"old spelling of loopback is a name", "127.1", addrs("127.0.0.1"), dial.Policy{Trusted: true}, dial.Blocked, false},
		{"metadata, allowed or not", "metadata.example", addrs("169.254.169.254"), open, dial.Blocked, false},
		{"the blocked one of two is left out", "partner.example", addrs("169.254.169.254", "127.0.0.1"), open, dial.OK, true},
		{"literal loopback from the API", "127.0.0.1", nil, dial.Policy{}, dial.Blocked, false},
		{"literal loopback in a local file", "127.0.0.1", nil, dial.Policy{Trusted: true}, dial.OK, true},
		{"literal mapped loopback from the API", "[::ffff:127.0.0.1]", nil, dial.Policy{}, dial.Blocked, false},
		{"unknown name", "nobody.example", nil, dial.Policy{}, dial.Refused, false},
		{"name without an address", "empty.example", []netip.Addr{}, dial.Policy{}, dial.Refused, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := hits.Load()
			res := &resolver{}
			if tc.answer != nil {
				res.answers = [][]netip.Addr{tc.answer}
			}
			d := newDialer(t, dial.Options{Resolver: res})
			resp, err := post(t.Context(), t, d.Client(tc.policy), "http://"+tc.host+":"+port(t, s), strings.NewReader("x"))
			if tc.reaches {
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := dial.ReadAnswer(resp); err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, tc.kind, false)
			if hits.Load() != before {
				t.Error("the request arrived")
			}
			var blocked *dial.BlockedError
			if errors.As(err, &blocked) != (tc.kind == dial.Blocked) {
				t.Errorf("cause of %v", err)
			}
		})
	}
}

// TestRebinding has a name that changes after it was judged: the connection must go to the
// address that was judged, and the next one is judged anew.
func TestRebinding(t *testing.T) {
	t.Parallel()
	s := serve(t, ok)
	res := &resolver{answers: [][]netip.Addr{addrs("127.0.0.1"), addrs("169.254.169.254")}}
	d := newDialer(t, dial.Options{Resolver: res, IdlePerHost: -1})
	client := d.Client(open)
	client.Transport.(*http.Transport).DisableKeepAlives = true
	url := "http://partner.example:" + port(t, s)
	if _, body := mustPost(t, client, url); body != "ok" {
		t.Fatalf("answer %q", body)
	}
	if len(res.asked) != 1 {
		t.Errorf("asked %v: a second look-up may answer otherwise", res.asked)
	}
	_, err := post(t.Context(), t, client, url, strings.NewReader("x"))
	wantError(t, err, dial.Blocked, false)
}

func TestDeadAddressesAreTriedInTurn(t *testing.T) {
	t.Parallel()
	s := serve(t, ok)
	// Nobody listens on the port of the server on these.
	res := &resolver{answers: [][]netip.Addr{addrs("127.0.0.2", "127.0.0.3", "127.0.0.1")}}
	d := newDialer(t, dial.Options{Resolver: res})
	if _, body := mustPost(t, d.Client(open), "http://partner.example:"+port(t, s)); body != "ok" {
		t.Errorf("answer %q", body)
	}
}

func TestRedirectIsAnAnswer(t *testing.T) {
	t.Parallel()
	var followed atomic.Bool
	target := serve(t, func(http.ResponseWriter, *http.Request) { followed.Store(true) })
	d := newDialer(t, dial.Options{})
	for _, code := range []int{301, 302, 303, 307, 308} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target.URL, code) })
		resp, _ := mustPost(t, d.Client(open), s.URL)
		if resp.StatusCode != code || resp.Header.Get("Location") != target.URL {
			t.Errorf("status %d with Location %q, want %d as it came", resp.StatusCode, resp.Header.Get("Location"), code)
		}
	}
	if followed.Load() {
		t.Error("a redirect was followed")
	}
}

func TestProxyOfTheEnvironmentIsNotAsked(t *testing.T) {
	var asked atomic.Bool
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { asked.Store(true) })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	t.Setenv("NO_PROXY", "")
	s := serve(t, ok)
	// net/http never asks a proxy for a loopback address, so the host is a name here.
	d := newDialer(t, dial.Options{Resolver: &resolver{answers: [][]netip.Addr{addrs("127.0.0.1")}}})
	client := d.Client(open)
	if _, body := mustPost(t, client, "http://partner.example:"+port(t, s)); body != "ok" || asked.Load() {
		t.Errorf("answer %q, proxy asked: %v", body, asked.Load())
	}
	if client.Transport.(*http.Transport).Proxy != nil {
		t.Error("the transport has a proxy function")
	}
}

func TestReadAnswer(t *testing.T) {
	t.Parallel()
	d := newDialer(t, dial.Options{})
	for _, tc := range []struct {
		size, want int
		truncated  bool
	}{
		{0, 0, false},
		{dial.MaxAnswer, dial.MaxAnswer, false},
		{dial.MaxAnswer + 1, dial.MaxAnswer, true},
		{8 << 20, dial.MaxAnswer, true},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, tc.size)) })
		resp, err := post(t.Context(), t, d.Client(open), s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, truncated, err := dial.ReadAnswer(resp)
		if len(b) != tc.want || truncated != tc.truncated || err != nil {
			t.Errorf("%d bytes: read %d, truncated %v, %v", tc.size, len(b), truncated, err)
		}
	}
	cut := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	})
	resp, err := post(t.Context(), t, d.Client(open), cut.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := dial.ReadAnswer(resp)
	if string(b) != "half" || err == nil || dial.Classify(err) != dial.Cut {
		t.Errorf("a cut answer: %q, %v", b, err)
	}
}

func TestHeaderOfTheAnswerIsBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Big", strings.Repeat("x", 2*dial.MaxAnswer))
	})
	d := newDialer(t, dial.Options{})
	_, err := post(t.Context(), t, d.Client(open), s.URL, nil)
	wantError(t, err, dial.Cut, true)
}

func TestFailures(t *testing.T) {
	t.Parallel()
	d := newDialer(t, dial.Options{})

	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		url := "http://" + l.Addr().String()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = post(t.Context(), t, d.Client(open), url+"/?token=secret", nil)
		wantError(t, err, dial.Refused, false)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the URL: %v", err)
		}
	})

	t.Run("cut after the request", func(t *testing.T) {
		t.Parallel()
		s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		})
		_, err := post(t.Context(), t, d.Client(open), s.URL, strings.NewReader("x"))
		wantError(t, err, dial.Cut, true)
	})

	t.Run("no HTTP", func(t *testing.T) {
		t.Parallel()
		url := talk(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, "220 mail.example ESMTP\r\n")
		})
		_, err := post(t.Context(), t, d.Client(open), url, strings.NewReader("x"))
		wantError(t, err, dial.Cut, true)
	})

	t.Run("hangs until the caller gives up", func(t *testing.T) {
		t.Parallel()
		arrived, url := hang(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		_, err := post(ctx, t, d.Client(open), url, strings.NewReader("x"))
		wantError(t, err, dial.Canceled, true)
	})

	t.Run("hangs until the header is overdue", func(t *testing.T) {
		t.Parallel()
		_, url := hang(t)
		p := open
		p.Timeouts.Header = 20 * time.Millisecond
		_, err := post(t.Context(), t, d.Client(p), url, strings.NewReader("x"))
		wantError(t, err, dial.Timeout, true)
	})

	t.Run("hangs until the whole is overdue", func(t *testing.T) {
		t.Parallel()
		_, url := hang(t)
		p := open
		p.Timeouts.Whole = 500 * time.Millisecond
		_, err := post(t.Context(), t, d.Client(p), url, strings.NewReader("x"))
		wantError(t, err, dial.Timeout, true)
	})

	t.Run("never begins TLS", func(t *testing.T) {
		t.Parallel()
		done := t.Context().Done()
		url := talk(t, func(net.Conn) { <-done })
		p := open
		p.Timeouts.TLS = 20 * time.Millisecond
		_, err := post(t.Context(), t, d.Client(p), "https"+strings.TrimPrefix(url, "http"), strings.NewReader("x"))
		wantError(t, err, dial.TLS, false)
	})

	t.Run("resolving takes too long", func(t *testing.T) {
		t.Parallel()
		slow := newDialer(t, dial.Options{Resolver: slowResolver{}})
		p := open
		p.Timeouts.Connect = 10 * time.Millisecond
		_, err := post(t.Context(), t, slow.Client(p), "http://partner.example", strings.NewReader("x"))
		wantError(t, err, dial.Refused, false)
	})

	t.Run("given up before there is a connection", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		slow := newDialer(t, dial.Options{Resolver: slowResolver{asked: cancel}})
		_, err := post(ctx, t, slow.Client(open), "http://partner.example", strings.NewReader("x"))
		wantError(t, err, dial.Canceled, false)
	})
}

type slowResolver struct{ asked func() }

func (r slowResolver) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	if r.asked != nil {
		r.asked()
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// hang is a server that takes a request and never answers.
func hang(t *testing.T) (arrived <-chan struct{}, url string) {
	t.Helper()
	c := make(chan struct{}, 8)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c <- struct{}{}
		<-r.Context().Done()
	})
	return c, s.URL
}

// talk is a server on a bare connection.
func talk(t *testing.T, f func(net.Conn)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { defer func() { _ = c.Close() }(); f(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return "http://" + l.Addr().String()
}

func TestErrorsFromElsewhere(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  error
		kind dial.Kind
		sent bool
	}{
		{nil, dial.OK, false},
		{io.ErrUnexpectedEOF, dial.Cut, true},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), dial.Timeout, true},
		{context.Canceled, dial.Canceled, true},
		{fmt.Errorf("send: %w", &dial.Error{Kind: dial.TLS, Err: io.EOF}), dial.TLS, false},
		{&dial.Error{Kind: dial.Timeout, Sent: true, Err: io.EOF}, dial.Timeout, true},
	} {
		if k, s := dial.Classify(tc.err), dial.MayHaveArrived(tc.err); k != tc.kind || s != tc.sent {
			t.Errorf("%v: %v, %v; want %v, %v", tc.err, k, s, tc.kind, tc.sent)
		}
	}
}

func TestConnectionsAreKeptByContentOfThePolicy(t *testing.T) {
	t.Parallel()
	var fresh atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(ok))
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			fresh.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	d := newDialer(t, dial.Options{MaxPolicies: 2})
	for range 5 {
		mustPost(t, d.Client(open), s.URL)
	}
	if n := fresh.Load(); n != 1 {
		t.Errorf("%d connections for five requests, want 1", n)
	}
	other := dial.Policy{Trusted: true}
	mustPost(t, d.Client(other), s.URL)
	if n := fresh.Load(); n != 2 {
		t.Errorf("%d connections: another policy must not use those of the first", n)
	}
	third := dial.Policy{Trusted: true, AllowPrivate: true}
	mustPost(t, d.Client(third), s.URL) // Drops the first.
	mustPost(t, d.Client(other), s.URL)
	mustPost(t, d.Client(open), s.URL)
	if n := fresh.Load(); n != 4 {
		t.Errorf("%d connections, want 4: the policy used least recently goes first", n)
	}
	d.Close()
	mustPost(t, d.Client(open), s.URL)
	mustPost(t, d.Client(open), s.URL)
	if n := fresh.Load(); n != 6 {
		t.Errorf("%d connections, want 6: a closed Dialer keeps none", n)
	}
}

// identity is a self-signed certificate, valid around testTime.
func identity(t *testing.T, name string, ca bool) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	return sign(t, name, ca, nil, nil)
}

func sign(t *testing.T, name string, ca bool, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: testTime.AddDate(-1, 0, 0), NotAfter: testTime.AddDate(1, 0, 0),
		IsCA: ca, BasicConstraintsValid: true, DNSNames: []string{name},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if parent == nil {
		parent, parentKey = tmpl, key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

var testTime = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

func serveTLS(t *testing.T, c *tls.Config, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.TLS = c
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // Failed handshakes are what is tested.
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestTrustInServers(t *testing.T) {
	t.Parallel()
	root, rootKey := identity(t, "Partner Root", true)
	leaf, leafKey := sign(t, "partner.example", false, root, rootKey)
	self, selfKey := identity(t, "no usable name", false)
	stranger, _ := identity(t, "partner.example", true)
	roots := x509.NewCertPool()
	roots.AddCert(root)
	byRoot := tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: leafKey}
	bySelf := tls.Certificate{Certificate: [][]byte{self.Raw}, PrivateKey: selfKey}
	pin := func(c ...*x509.Certificate) dial.Policy {
		return dial.Policy{AllowPrivate: true, Pin: true, Pinned: c}
	}
	for _, tc := range []struct {
		name   string
		server tls.Certificate
		host   string
		now    time.Time
		policy dial.Policy
		good   bool
	}{
		{"the system's roots do not know it", byRoot, "partner.example", testTime, open, false},
		{"own roots", byRoot, "partner.example", testTime, dial.Policy{AllowPrivate: true, RootCAs: roots}, true},
		{"own roots, another name", byRoot, "other.example", testTime, dial.Policy{AllowPrivate: true, RootCAs: roots}, false},
		{"own roots, out of date", byRoot, "partner.example", testTime.AddDate(2, 0, 0), dial.Policy{AllowPrivate: true, RootCAs: roots}, false},
		{"pinned itself, whatever its name", bySelf, "partner.example", testTime, pin(stranger, self), true},
		{"pinned itself, out of date", bySelf, "partner.example", testTime.AddDate(2, 0, 0), pin(self), false},
		{"pinned root", byRoot, "partner.example", testTime, pin(root), true},
		{"pinned root, another name", byRoot, "other.example", testTime, pin(root), false},
		{"another is pinned", bySelf, "partner.example", testTime, pin(stranger), false},
		{"none is pinned", bySelf, "partner.example", testTime, pin(), false},
		{"pinned root overrides own roots", byRoot, "partner.example", testTime, dial.Policy{AllowPrivate: true, Pin: true, Pinned: []*x509.Certificate{stranger}, RootCAs: roots}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{tc.server}, MinVersion: tls.VersionTLS12}, ok)
			d := newDialer(t, dial.Options{
				Clock:    clock.NewFake(tc.now),
				Resolver: &resolver{answers: [][]netip.Addr{addrs("127.0.0.1")}},
			})
			resp, err := post(t.Context(), t, d.Client(tc.policy), "https://"+tc.host+":"+port(t, s), strings.NewReader("x"))
			if !tc.good {
				wantError(t, err, dial.TLS, false)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := dial.ReadAnswer(resp); err != nil {
				t.Error(err)
			}
			if resp.TLS == nil {
				t.Error("the answer does not know its TLS state")
			}
		})
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	cert, key := identity(t, "partner.example", false)
	s := serveTLS(t, &tls.Config{ //nolint:gosec // G402: the old version is what is tested.
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}},
		MinVersion:   tls.VersionTLS10, MaxVersion: tls.VersionTLS11,
	}, ok)
	d := newDialer(t, dial.Options{Clock: clock.NewFake(testTime)})
	p := dial.Policy{Trusted: true, Pin: true, Pinned: []*x509.Certificate{cert}}
	_, err := post(t.Context(), t, d.Client(p), s.URL, strings.NewReader("x"))
	wantError(t, err, dial.TLS, false)
}

func TestPolicyForAConnection(t *testing.T) {
	t.Parallel()
	mine, mineKey := identity(t, "we", false)
	old, oldKey := identity(t, "we before", false)
	server, serverKey := identity(t, "partner", false)
	own := &partner.Own{ID: "hub", Keys: []partner.Key{
		{Certificate: server, Private: serverKey, Use: []partner.Use{partner.UseSign}},
		{Certificate: old, Private: oldKey, Until: testTime.Add(-time.Hour), Use: []partner.Use{partner.UseTLS}},
		{Certificate: mine, Private: mineKey, From: testTime, Use: []partner.Use{partner.UseSign, partner.UseTLS}},
	}}
	c := &partner.Connection{ID: "acme", ManagedBy: "file", Certificates: []partner.Certificate{
		{Certificate: mine, Use: []partner.Use{partner.UseEncrypt}},
		{Certificate: server, Until: testTime, Use: []partner.Use{partner.UseTLS}},
	}}
	p := dial.PolicyFor(c, own, testTime)
	if !p.Trusted || p.AllowPrivate || !p.Pin || len(p.Pinned) != 1 || !p.Pinned[0].Equal(server) {
		t.Errorf("policy %+v", p)
	}
	if p.ClientCert == nil || !bytes.Equal(p.ClientCert.Certificate[0], mine.Raw) {
		t.Error("the client certificate is not the one in use")
	}
	if p := dial.PolicyFor(c, nil, testTime.Add(time.Second)); !p.Pin || len(p.Pinned) != 0 || p.ClientCert != nil {
		t.Errorf("a partner whose TLS certificate ran out: %+v; must trust nobody", p)
	}
	bare := &partner.Connection{ID: "x", ManagedBy: "api", AllowPrivate: true}
	if p := dial.PolicyFor(bare, &partner.Own{}, testTime); p.Trusted || !p.AllowPrivate || p.Pin || p.ClientCert != nil {
		t.Errorf("policy %+v", p)
	}

	// The whole way: the server asks for a client certificate and is itself pinned.
	shown := make(chan string, 1)
	s := serveTLS(t, &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{server.Raw}, PrivateKey: serverKey}},
		ClientAuth:   tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12,
	}, func(_ http.ResponseWriter, r *http.Request) { shown <- r.TLS.PeerCertificates[0].Subject.CommonName })
	d := newDialer(t, dial.Options{Clock: clock.NewFake(testTime)})
	mustPost(t, d.Client(p), s.URL)
	if name := <-shown; name != "we" {
		t.Errorf("showed the certificate of %q", name)
	}
}

func TestManyAtATime(t *testing.T) {
	t.Parallel()
	s := serve(t, ok)
	d := newDialer(t, dial.Options{MaxPerHost: 4})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 5 {
				resp, err := post(t.Context(), t, d.Client(open), s.URL, strings.NewReader("x"))
				if err != nil {
					t.Error(err)
					return
				}
				if _, _, err := dial.ReadAnswer(resp); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
