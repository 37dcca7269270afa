package admin

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/pipeline"
)

// ServerOptions of the admin listener. A zero field has the default.
type ServerOptions struct {
	Addr          string        // host:port
	TLS           *tls.Config   // nil: plain HTTP
	HeaderTimeout time.Duration // until the headers of a request are complete; default 10 s
	IdleTimeout   time.Duration // of a kept connection; default 60 s
	MaxHeader     int           // bytes of the headers; default 64 KiB
	Log           *zap.Logger   // what the server itself has to say; default none
}

// Server returns the HTTP server for the handler of New. The handler bounds the time of bodies.
func Server(h http.Handler, o ServerOptions) *http.Server {
	if o.HeaderTimeout <= 0 {
		o.HeaderTimeout = 10 * time.Second
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = time.Minute
	}
	if o.MaxHeader <= 0 {
		o.MaxHeader = 64 << 10
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	protocols := new(http.Protocols) // deadlines of HTTP/1.1 belong to one request
	protocols.SetHTTP1(true)
	return &http.Server{
		Addr: o.Addr, Handler: h, TLSConfig: o.TLS, Protocols: protocols,
		ReadHeaderTimeout: o.HeaderTimeout, IdleTimeout: o.IdleTimeout, MaxHeaderBytes: o.MaxHeader,
		ErrorLog: zap.NewStdLog(o.Log),
	}
}

// ErrListen is returned for an address on which tokens would travel in the clear.
var ErrListen = errors.New("the admin listener would be reachable from other machines without TLS")

// CheckListen refuses an address away from loopback without TLS, unless that is meant.
func CheckListen(listen string, hasTLS, insecure bool) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("admin.listen %q is not host:port: %w", listen, err)
	}
	if hasTLS || insecure || isLoopback(host) {
		return nil
	}
	return fmt.Errorf("%w: %q; listen on 127.0.0.1, set admin.tls.cert and admin.tls.key, or say admin.insecure: true", ErrListen, listen)
}

// isLoopback counts literal addresses and the name that RFC 6761 §6.3 reserves.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// hostAllowed reports whether a request may name this host. A page of a stranger can point its
// own name at this machine (DNS rebinding), and then it sends that name. It cannot do so with an
// address, so every address is taken.
func hostAllowed(hostport string, names []string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(host, "]"), "["), ".")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	for _, n := range names {
		if n != "" && strings.EqualFold(host, strings.TrimSuffix(n, ".")) {
			return true
		}
	}
	return false
}

// checkHost is the guard against DNS rebinding. Health checks are free of it: probes name hosts
// as they like, and there is nothing to find.
func (a *api) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" && r.URL.Path != "/readyz" && !hostAllowed(r.Host, a.Hosts) {
			writeProblem(w, r, problem(http.StatusMisdirectedRequest, "HOST_NOT_ALLOWED",
				"the host name "+quoted(r.Host)+" is not one of this listener; add it to admin.hosts"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// harden sets headers that keep a browser from doing more with an answer than showing it.
func harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		next.ServeHTTP(w, r)
	})
}

// recoverPanic turns a panic into a 500 without detail.
func (a *api) recoverPanic(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &tracked{ResponseWriter: w}
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(v)
			}
			a.Log.Error("admin_panic", zap.String("method", r.Method), zap.String("route", routeOf(r)), zap.String("panic", pipeline.PanicText(v)), zap.Stack("stack"))
			if t.started {
				panic(http.ErrAbortHandler) // the client must not take half an answer for a whole one
			}
			writeProblem(w, r, asProblem(errInternal))
		}()
		next.ServeHTTP(t, r)
	})
}

var errInternal = errors.New("internal")

// tracked knows whether an answer has begun.
type tracked struct {
	http.ResponseWriter
	started bool
}

func (t *tracked) WriteHeader(status int) {
	t.started = true
	t.ResponseWriter.WriteHeader(status)
}

func (t *tracked) Write(b []byte) (int, error) {
	t.started = true
	return t.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (t *tracked) Unwrap() http.ResponseWriter { return t.ResponseWriter }
