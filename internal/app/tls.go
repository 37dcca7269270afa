package app

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/edihub/edihub/internal/config"
)

// listenerTLS is the TLS of one listener. Its certificate can be read again while it serves.
type listenerTLS struct {
	files   config.TLS
	current atomic.Pointer[tls.Certificate]
}

func newListenerTLS(files config.TLS) (*listenerTLS, error) {
	t := &listenerTLS{files: files}
	if !files.Enabled() {
		return t, nil
	}
	return t, t.reload()
}

func (t *listenerTLS) reload() error {
	if !t.files.Enabled() {
		return nil
	}
	c, err := tls.LoadX509KeyPair(t.files.Cert, t.files.Key)
	if err != nil {
		return fmt.Errorf("read certificate and key: %w", err)
	}
	t.current.Store(&c)
	return nil
}

// config is nil for plain HTTP.
func (t *listenerTLS) config() (*tls.Config, error) {
	if !t.files.Enabled() {
		return nil, nil //nolint:nilnil // Nil is the word of net/http for plain HTTP.
	}
	c := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return t.current.Load(), nil },
	}
	if t.files.ClientCA != "" {
		pem, err := os.ReadFile(t.files.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("read client CA: %w", err)
		}
		c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("client CA file holds no certificate")
		}
	}
	return c, nil
}
