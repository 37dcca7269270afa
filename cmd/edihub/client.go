package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/edihub/edihub/internal/admin"
)

const (
	defaultData     = "./edihub-data"
	defaultAdminURL = "http://127.0.0.1:8081"
	maxAnswer       = 64 << 20 // bytes of a JSON answer
	connectTimeout  = 5 * time.Second
	answerTimeout   = 30 * time.Second
)

// clientFlags say where the hub is and who asks.
type clientFlags struct {
	e         *environment
	adminURL  string
	tokenFile string
	data      string
	caFile    string
	insecure  bool
	format    string
}

// addClientFlags gives a command what it needs to talk to a hub.
func addClientFlags(cmd *cobra.Command, e *environment) *clientFlags {
	f := &clientFlags{e: e}
	fl := cmd.Flags()
	fl.StringVar(&f.adminURL, "admin-url", "", "URL of the admin listener (EDIHUB_ADMIN_URL); default: from the data folder, else "+defaultAdminURL)
	fl.StringVar(&f.tokenFile, "token-file", e.getenv("EDIHUB_TOKEN_FILE"), "file with the token; EDIHUB_TOKEN holds the token itself; default: "+admin.TokenFile+" in the data folder")
	data := e.getenv("EDIHUB_DATA")
	if data == "" {
		data = defaultData
	}
	fl.StringVar(&f.data, "data", data, "data folder of the hub (EDIHUB_DATA), where URL and token are found")
	fl.StringVar(&f.caFile, "ca-file", "", "PEM file with the authority of the admin listener's certificate")
	fl.BoolVar(&f.insecure, "insecure", false, "send the token over plain HTTP to another machine")
	formatFlag(cmd, &f.format)
	return f
}

// client talks to the API of a hub.
type client struct {
	e     *environment
	base  *url.URL
	token string
	http  *http.Client
}

// connect finds the hub and the token. It does not talk to the hub yet.
func (f *clientFlags) connect() (*client, error) {
	if err := checkFormat(f.format); err != nil {
		return nil, err
	}
	raw := f.adminURL
	if raw == "" {
		// Not the flag's default, which the help would show.
		raw = f.e.getenv("EDIHUB_ADMIN_URL")
	}
	if raw == "" {
		b, err := os.ReadFile(filepath.Join(f.data, admin.URLFile))
		switch {
		case err == nil:
			raw = strings.TrimSpace(string(b))
		case errors.Is(err, fs.ErrNotExist):
			raw = defaultAdminURL
		default:
			return nil, fail(exitUsage, "find the hub: %w", err)
		}
	}
	if strings.Contains(raw, "@") {
		// It is not shown, because what stands before the @ is most likely a password.
		return nil, fail(exitUsage, "--admin-url with a user or a password is refused; write a URL such as %s, and the token into EDIHUB_TOKEN or --token-file", defaultAdminURL)
	}
	base, err := url.Parse(raw)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" || base.User != nil {
		return nil, fail(exitUsage, "--admin-url %q is not a URL such as %s", raw, defaultAdminURL)
	}
	if base.Scheme == "http" && !loopback(base.Hostname()) && !f.insecure {
		return nil, fail(exitUsage, "the token would travel to %s in the clear; use https, or say --insecure", base.Host)
	}
	token, err := f.token()
	if err != nil {
		return nil, err
	}
	transport, err := f.transport()
	if err != nil {
		return nil, err
	}
	return &client{e: f.e, base: base, token: token, http: &http.Client{
		Transport: transport,
		// The token is for this address and no other.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func (f *clientFlags) token() (string, error) {
	if f.tokenFile == "" {
		if t := strings.TrimSpace(f.e.getenv("EDIHUB_TOKEN")); t != "" {
			return t, nil
		}
	}
	path := f.tokenFile
	if path == "" {
		path = filepath.Join(f.data, admin.TokenFile)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fail(exitUsage, "read the token: %w; name its file with --token-file, or the data folder of the hub with --data", err)
	}
	t := strings.TrimSpace(string(b))
	if t == "" || strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fail(exitUsage, "%s does not hold a token", path)
	}
	return t, nil
}

func (f *clientFlags) transport() (*http.Transport, error) {
	t := &http.Transport{
		Proxy:               nil, // a proxy would see the token
		DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout: connectTimeout,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}
	if f.caFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(f.caFile)
	if err != nil {
		return nil, fail(exitUsage, "read --ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fail(exitUsage, "--ca-file %s holds no certificate", f.caFile)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}

// close gives connections back.
func (c *client) close() { c.http.CloseIdleConnections() }

// apiError is a problem of the API.
type apiError struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
}

// Error implements error.
func (p *apiError) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	return fmt.Sprintf("%s (%d %s)", text, p.Status, p.Code)
}

// exit is the exit code that a refusal of the hub becomes.
func (p *apiError) exit() int {
	switch {
	case p.Status == http.StatusUnauthorized, p.Status == http.StatusForbidden, p.Status == http.StatusMisdirectedRequest:
		return exitUsage
	case p.Status >= http.StatusInternalServerError:
		return exitUnreachable
	}
	return exitBad
}

// request sends one request and returns an answer with a good status; the caller closes it.
func (c *client) request(ctx context.Context, method, path string, query url.Values, header http.Header, body io.Reader) (*http.Response, error) {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, fail(exitUsage, "request: %w", err)
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept", "application/json, application/problem+json")
	res, err := c.http.Do(req)
	if err != nil {
		var cause *url.Error
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return nil, fail(exitUnreachable, "the hub at %s cannot be reached: %w; is it running, and is --admin-url or --data right?", c.base.Redacted(), err)
	}
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close() //nolint:errcheck // Its status is the answer.
	p := &apiError{Status: res.StatusCode, Title: http.StatusText(res.StatusCode), Code: "HTTP"}
	if mt, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); mt == "application/problem+json" {
		if err := json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(p); err != nil {
			p.Detail = "the hub refused without saying why"
		}
		p.Status = res.StatusCode
	} else {
		p.Detail = "what answers at " + c.base.Redacted() + " does not look like an edihub"
	}
	return nil, &exitError{code: p.exit(), err: p}
}

// call sends JSON (nil: nothing) and reads JSON into out. It gives up after timeout.
func (c *client) call(ctx context.Context, timeout time.Duration, method, path string, query url.Values, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var body io.Reader
	header := http.Header{}
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("request: %w", err)
		}
		body = bytes.NewReader(raw)
		header.Set("Content-Type", "application/json")
	}
	res, err := c.request(ctx, method, path, query, header, body)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // It was only read.
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(out); err != nil {
		return fail(exitUnreachable, "the answer of the hub cannot be read: %w", err)
	}
	return nil
}

// get reads JSON.
func (c *client) get(ctx context.Context, path string, query url.Values, out any) error {
	return c.call(ctx, answerTimeout, http.MethodGet, path, query, nil, out)
}

// list walks through the pages of a list, at most limit items.
func (c *client) list(ctx context.Context, path string, query url.Values, limit int, each func(raw json.RawMessage) error) error {
	const page = 500
	q := url.Values{}
	maps.Copy(q, query)
	for n := 0; n < limit; {
		q.Set("limit", strconv.Itoa(min(page, limit-n)))
		var p struct {
			Items []json.RawMessage `json:"items"`
			Next  string            `json:"next_cursor"`
		}
		if err := c.get(ctx, path, q, &p); err != nil {
			return err
		}
		for _, raw := range p.Items {
			if n == limit {
				break
			}
			n++
			if err := each(raw); err != nil {
				return err
			}
		}
		if p.Next == "" {
			return nil
		}
		q.Set("cursor", p.Next)
	}
	return nil
}
