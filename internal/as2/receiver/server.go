package receiver

import (
	"crypto/tls"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// ServerOptions of the listener. A zero field has the default.
type ServerOptions struct {
	Addr          string        // host:port
	TLS           *tls.Config   // nil: plain HTTP
	HeaderTimeout time.Duration // until the headers of a request are complete; default 10 s
	IdleTimeout   time.Duration // of a kept connection; default 60 s
	MaxHeader     int           // bytes of the headers; default 64 KiB
	Log           *zap.Logger   // what the server itself has to say; default none
}

// Server returns the HTTP server for the handler of New. The time for a body is not bounded here
// but by the handler, which knows how fast it comes.
func Server(h http.Handler, o ServerOptions) *http.Server {
	setDefault(&o.HeaderTimeout, 10*time.Second)
	setDefault(&o.IdleTimeout, time.Minute)
	setDefault(&o.MaxHeader, 64<<10)
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	// HTTP/1.1 only: AS2 senders speak nothing else, and deadlines there belong to one request.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Addr:              o.Addr,
		Handler:           h,
		TLSConfig:         o.TLS,
		Protocols:         protocols,
		ReadHeaderTimeout: o.HeaderTimeout,
		IdleTimeout:       o.IdleTimeout,
		MaxHeaderBytes:    o.MaxHeader,
		ErrorLog:          zap.NewStdLog(o.Log),
	}
}
