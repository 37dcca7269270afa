// Package dial is the one way out of the hub: every outgoing HTTP connection is made here. It
// judges the address that a name resolved to at the moment of connecting, follows no redirect,
// asks no proxy, bounds what it reads, and tells errors apart by what the other side may have
// seen.
package dial

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/partner"
)

// MaxAnswer is what ReadAnswer reads of an answer, in bytes.
const MaxAnswer = 64 << 10

// Resolver turns a host name into addresses. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Timeouts of a request. A zero value means the default, a negative one no timeout.
type Timeouts struct {
	Connect time.Duration // resolving and connecting; default 10 s
	TLS     time.Duration // handshake; default 10 s
	Header  time.Duration // from the last byte sent to the header of the answer; default 2 min
	Whole   time.Duration // the whole request with the body of the answer; default 10 min
}

func (t Timeouts) withDefaults() Timeouts {
	return Timeouts{
		Connect: orDefault(t.Connect, 10*time.Second),
		TLS:     orDefault(t.TLS, 10*time.Second),
		Header:  orDefault(t.Header, 2*time.Minute),
		Whole:   orDefault(t.Whole, 10*time.Minute),
	}
}

// orDefault maps a negative value to 0, which net/http takes as "no timeout".
func orDefault[T int | time.Duration](v, byDefault T) T {
	switch {
	case v == 0:
		return byDefault
	case v < 0:
		return 0
	}
	return v
}

// Policy says what one connection may do. Clients of the same policy share their connections.
type Policy struct {
	// AllowPrivate opens loopback and private addresses, also for names that resolve to them.
	AllowPrivate bool
	// Trusted says that the URL was written into a local file: a loopback or private address
	// that it names literally is meant.
	Trusted bool
	// ClientCert is shown to a server that asks for one.
	ClientCert *tls.Certificate
	// Pin makes Pinned the only trust: the server shows one of these certificates itself, or a
	// chain to one of them for the host's name. With an empty list every server is refused.
	Pin    bool
	Pinned []*x509.Certificate
	// RootCAs replaces the roots of the system; nil leaves them. Pin overrides it.
	RootCAs  *x509.CertPool
	Timeouts Timeouts
}

// PolicyFor returns the policy of a connection as its record says: trust in a literal address
// when the record comes from a local file, the partner's TLS certificates as the only trust when
// it has some, and our own TLS key of this time. own may be nil.
func PolicyFor(c *partner.Connection, own *partner.Own, now time.Time) Policy {
	p := Policy{AllowPrivate: c.AllowPrivate, Trusted: c.ManagedBy == partner.ManagedByFile}
	for _, cert := range c.Certificates {
		if !uses(cert.Use, partner.UseTLS) {
			continue
		}
		// A record whose certificates are all out of date must not fall back to the system's roots.
		p.Pin = true
		if within(now, cert.From, cert.Until) {
			p.Pinned = append(p.Pinned, cert.Certificate)
		}
	}
	if own == nil {
		return p
	}
	for _, k := range own.Keys {
		if uses(k.Use, partner.UseTLS) && within(now, k.From, k.Until) {
			p.ClientCert = &tls.Certificate{Certificate: [][]byte{k.Certificate.Raw}, PrivateKey: k.Private, Leaf: k.Certificate}
			break
		}
	}
	return p
}

func uses(list []partner.Use, u partner.Use) bool {
	return slices.Contains(list, u)
}

func within(now, from, until time.Time) bool {
	return (from.IsZero() || !now.Before(from)) && (until.IsZero() || !now.After(until))
}

// key names the transport of a policy. It goes by content, so that a reload of the same records
// keeps the connections.
func (p Policy) key() [sha256.Size]byte {
	h := sha256.New()
	// A pool has no stable content to hash; its identity stands for it.
	_, _ = fmt.Fprintf(h, "%t %t %t %p %v\n", p.AllowPrivate, p.Trusted, p.Pin, p.RootCAs, p.Timeouts)
	part := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	for _, c := range p.Pinned {
		part(c.Raw)
	}
	if p.ClientCert != nil {
		h.Write([]byte("client"))
		for _, c := range p.ClientCert.Certificate {
			part(c)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Options of a Dialer. A zero value means the default.
type Options struct {
	Clock    clock.Clock // default clock.System
	Resolver Resolver    // default net.DefaultResolver

	IdlePerHost int           // idle connections kept for one host; default 8
	MaxIdle     int           // idle connections kept for one policy; default 512
	MaxPerHost  int           // connections to one host at the same time; default 64
	IdleTimeout time.Duration // how long an idle connection is kept; default 60 s
	MaxPolicies int           // policies whose connections are kept; default 256
}

// Dialer makes clients. It is safe for concurrent use; one Dialer serves the whole hub.
type Dialer struct {
	options Options
	judge   judge

	mu         sync.Mutex
	transports map[[sha256.Size]byte]*entry
	turn       int64
	closed     bool
}

type entry struct {
	transport *http.Transport
	used      int64
}

// New returns a Dialer.
func New(o Options) *Dialer {
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	o.IdlePerHost = orDefault(o.IdlePerHost, 8)
	o.MaxIdle = orDefault(o.MaxIdle, 512)
	o.MaxPerHost = orDefault(o.MaxPerHost, 64)
	o.IdleTimeout = orDefault(o.IdleTimeout, time.Minute)
	o.MaxPolicies = max(1, orDefault(o.MaxPolicies, 256))
	return &Dialer{options: o, judge: newJudge(), transports: map[[sha256.Size]byte]*entry{}}
}

// Client returns a client for the policy. It is cheap: call it for each request.
func (d *Dialer) Client(p Policy) *http.Client {
	p.Timeouts = p.Timeouts.withDefaults()
	return &http.Client{
		Transport: d.transport(p),
		Timeout:   p.Timeouts.Whole,
		// A redirect is an answer: whoever may redirect could send a document anywhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close closes all idle connections. Clients stay usable, but keep no connections any more.
func (d *Dialer) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for k, e := range d.transports {
		e.transport.CloseIdleConnections()
		delete(d.transports, k)
	}
}

func (d *Dialer) transport(p Policy) *http.Transport {
	key := p.key()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn++
	if e, ok := d.transports[key]; ok {
		e.used = d.turn
		return e.transport
	}
	t := d.newTransport(p)
	if d.closed {
		t.DisableKeepAlives = true
		return t
	}
	if len(d.transports) >= d.options.MaxPolicies {
		d.evict()
	}
	d.transports[key] = &entry{transport: t, used: d.turn}
	return t
}

// evict drops the transport that was used least recently. Requests that are under way on it
// finish; their connections end by the idle timeout.
func (d *Dialer) evict() {
	var oldest [sha256.Size]byte
	var found *entry
	for k, e := range d.transports {
		if found == nil || e.used < found.used {
			oldest, found = k, e
		}
	}
	if found != nil {
		found.transport.CloseIdleConnections()
		delete(d.transports, oldest)
	}
}

func (d *Dialer) newTransport(p Policy) *http.Transport {
	// HTTP/1.1 only: what a broken connection may have delivered is clear there, and AS2 servers
	// speak nothing else.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	config := d.tlsConfig(p)
	return &http.Transport{
		Proxy: nil, // Never from the environment: the judge must see the real address.
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return d.connect(ctx, network, addr, p)
		},
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return d.connectTLS(ctx, network, addr, p, config)
		},
		Protocols:              protocols,
		DisableCompression:     true, // An answer is small, and inflating it would go round its limit.
		MaxIdleConns:           d.options.MaxIdle,
		MaxIdleConnsPerHost:    d.options.IdlePerHost,
		MaxConnsPerHost:        d.options.MaxPerHost,
		IdleConnTimeout:        d.options.IdleTimeout,
		ResponseHeaderTimeout:  p.Timeouts.Header,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: MaxAnswer,
		WriteBufferSize:        64 << 10,
	}
}

func (d *Dialer) tlsConfig(p Policy) *tls.Config {
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		RootCAs:            p.RootCAs,
		Time:               d.options.Clock.Now,
		ClientSessionCache: tls.NewLRUClientSessionCache(256),
	}
	if p.ClientCert != nil {
		c.Certificates = []tls.Certificate{*p.ClientCert}
	}
	if p.Pin {
		c.InsecureSkipVerify = true
		c.VerifyConnection = func(cs tls.ConnectionState) error { return verifyPinned(cs, p.Pinned, d.options.Clock.Now()) }
	}
	return c
}

// verifyPinned accepts one of the pinned certificates itself, whatever name it bears (many
// partners use a self-signed one without a usable name), or a chain to one for the host's name.
func verifyPinned(cs tls.ConnectionState, pinned []*x509.Certificate, now time.Time) error {
	if len(pinned) == 0 {
		return errors.New("the partner's record has no TLS certificate that is in use today: add one")
	}
	if len(cs.PeerCertificates) == 0 {
		return errors.New("the server showed no certificate")
	}
	leaf := cs.PeerCertificates[0]
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, c := range pinned {
		if c.Equal(leaf) {
			if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
				return x509.CertificateInvalidError{Cert: leaf, Reason: x509.Expired}
			}
			return nil
		}
		roots.AddCert(c)
	}
	for _, c := range cs.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{DNSName: cs.ServerName, Roots: roots, Intermediates: between, CurrentTime: now})
	return err
}

// maxAddresses bounds how many addresses of one name are tried.
const maxAddresses = 8

// connect resolves, judges each address, and connects to a judged address, never to the name:
// a second look-up could give another answer.
func (d *Dialer) connect(ctx context.Context, network, addr string, p Policy) (net.Conn, error) {
	if p.Timeouts.Connect > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Timeouts.Connect)
		defer cancel()
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &Error{Kind: Refused, Err: err}
	}
	addrs, literal, err := d.resolve(ctx, host)
	if err != nil {
		return nil, &Error{Kind: Refused, Err: fmt.Errorf("resolve %s: %w", host, err)}
	}
	good := make([]netip.Addr, 0, len(addrs))
	var blocked error
	for _, a := range addrs {
		if err := d.judge.permit(host, a, literal, p); err != nil {
			blocked = err
			continue
		}
		good = append(good, a)
	}
	if len(good) == 0 {
		return nil, &Error{Kind: Blocked, Err: blocked}
	}
	return d.connectAny(ctx, network, host, port, good, literal, p)
}

func (d *Dialer) resolve(ctx context.Context, host string) (addrs []netip.Addr, literal bool, err error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, true, nil
	}
	addrs, err = d.options.Resolver.LookupNetIP(ctx, "ip", host)
	if err == nil && len(addrs) == 0 {
		err = errors.New("no address")
	}
	return addrs, false, err
}

func (d *Dialer) connectAny(ctx context.Context, network, host, port string, addrs []netip.Addr, literal bool, p Policy) (net.Conn, error) {
	dialer := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true},
		// The socket's own address is judged once more: no way of reaching it goes round the judge.
		Control: func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return d.judge.permit(host, ap.Addr(), literal, p)
		},
	}
	addrs = addrs[:min(len(addrs), maxAddresses)]
	if p.Timeouts.Connect > 0 {
		// Each address gets its share, so that one that swallows packets does not take the time
		// of the others.
		dialer.Timeout = p.Timeouts.Connect / time.Duration(len(addrs))
	}
	var last error
	for _, a := range addrs {
		conn, err := dialer.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		last = err
		if ctx.Err() != nil {
			break
		}
	}
	var b *BlockedError
	if errors.As(last, &b) {
		return nil, &Error{Kind: Blocked, Err: last}
	}
	return nil, &Error{Kind: Refused, Err: last}
}

func (d *Dialer) connectTLS(ctx context.Context, network, addr string, p Policy, config *tls.Config) (net.Conn, error) {
	raw, err := d.connect(ctx, network, addr, p)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &Error{Kind: Refused, Err: err}
	}
	c := config.Clone()
	c.ServerName = host
	conn := tls.Client(raw, c)
	if p.Timeouts.TLS > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Timeouts.TLS)
		defer cancel()
	}
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // The handshake's error is the one to tell.
		return nil, &Error{Kind: TLS, Err: fmt.Errorf("TLS handshake with %s: %w", host, err)}
	}
	return conn, nil
}

// ReadAnswer reads up to MaxAnswer bytes of an answer and closes its body. truncated says that
// there was more. The bytes that came before an error are returned with it.
func ReadAnswer(resp *http.Response) (body []byte, truncated bool, err error) {
	body, err = io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	if len(body) > MaxAnswer {
		body, truncated = body[:MaxAnswer], true
	}
	if cerr := resp.Body.Close(); err == nil && cerr != nil {
		err = cerr
	}
	if err != nil {
		err = fmt.Errorf("read the answer: %w", err)
	}
	return body, truncated, err
}
