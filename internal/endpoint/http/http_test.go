package http_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/endpoint/dial"
	endpoint "github.com/edihub/edihub/internal/endpoint/http"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline/send"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const payload = "UNB+UNOA:3+SENDER+RECEIVER+260301:1200+REF1'UNZ+0+REF1'"

func newEndpoint(t *testing.T, o endpoint.Options) *endpoint.Endpoint {
	t.Helper()
	d := dial.New(dial.Options{})
	t.Cleanup(d.Close)
	o.Dialer, o.Clock = d, clock.NewFake(now)
	return endpoint.New(o)
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func delivery(url string) *send.Delivery {
	return &send.Delivery{
		ID:         edi.NewID(now),
		MessageID:  "<m1@hub>",
		Connection: &partner.Connection{ID: "erp-http", ManagedBy: "file", HTTP: &partner.HTTP{URL: url}},
		Payload:    bytes.NewReader([]byte(payload)),
		Standard:   edi.EDIFACT,
		Media:      "application/edifact",
		Type:       "ORDERS",
		Sender:     "SENDER",
		Receiver:   "RECEIVER",
		ControlRef: "REF1",
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, endpoint.Options{})
	for _, tc := range []struct {
		status int
		want   send.Status
		code   string
		proof  string
	}{
		{200, send.Delivered, "", endpoint.Proof},
		{201, send.Delivered, "", endpoint.Proof},
		{202, send.Delivered, "", endpoint.Proof},
		{204, send.Delivered, "", endpoint.Proof},
		{299, send.Delivered, "", endpoint.Proof},
		{301, send.Failed, "HTTP_301", ""},
		{302, send.Failed, "HTTP_302", ""},
		{307, send.Failed, "HTTP_307", ""},
		{400, send.Failed, "HTTP_400", ""},
		{401, send.Failed, "HTTP_401", ""},
		{403, send.Failed, "HTTP_403", ""},
		{404, send.Failed, "HTTP_404", ""},
		{408, send.Retry, "HTTP_408", ""},
		{405, send.Failed, "HTTP_405", ""},
		{409, send.Failed, "HTTP_409", ""},
		{413, send.Failed, "HTTP_413", ""},
		{418, send.Failed, "HTTP_418", ""},
		{422, send.Failed, "HTTP_422", ""},
		{425, send.Retry, "HTTP_425", ""},
		{429, send.Retry, "HTTP_429", ""},
		{451, send.Failed, "HTTP_451", ""},
		{499, send.Failed, "HTTP_499", ""},
		{500, send.Retry, "HTTP_500", ""},
		{503, send.Retry, "HTTP_503", ""},
		{599, send.Retry, "HTTP_599", ""},
	} {
		t.Run(fmt.Sprint(tc.status), func(t *testing.T) {
			t.Parallel()
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("Location", "http://elsewhere.example/")
				w.WriteHeader(tc.status)
				_, _ = w.Write(body) // An answer that shows the payload.
			})
			r := e.Send(t.Context(), delivery(url))
			if r.Status != tc.want || r.Code != tc.code || r.Proof != tc.proof || r.After != 0 {
				t.Errorf("%+v, want status %v, code %q, proof %q", r, tc.want, tc.code, tc.proof)
			}
			if !strings.HasPrefix(r.Detail, fmt.Sprintf("HTTP %d", tc.status)) || strings.Contains(r.Detail, "UNB") {
				t.Errorf("detail %q, want the status line only", r.Detail)
			}
			if len(r.Evidence) != 0 {
				t.Errorf("evidence %q", r.Evidence)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, endpoint.Options{})
	const key = "correct horse"
	for _, tc := range []struct {
		name    string
		change  func(*send.Delivery)
		headers map[string]string
		body    string
	}{
		{"usual", func(*send.Delivery) {}, map[string]string{
			"Content-Type": "application/edifact", "User-Agent": "edihub",
			"X-Edihub-Standard": "edifact", "X-Edihub-Type": "ORDERS", "X-Edihub-Sender": "SENDER",
			"X-Edihub-Receiver": "RECEIVER", "X-Edihub-Control-Ref": "REF1", "X-Edihub-Message-Id": "<m1@hub>",
		}, payload},
		{"no media type", func(d *send.Delivery) { d.Media = "" }, map[string]string{"Content-Type": "application/octet-stream"}, payload},
		{"media type that breaks the header", func(d *send.Delivery) { d.Media = "text/plain\r\nX-Evil: 1" }, map[string]string{"Content-Type": "application/octet-stream", "X-Evil": ""}, payload},
		{"values that break headers", func(d *send.Delivery) { d.Sender, d.ControlRef, d.Type = "A\r\nX-Evil: 1", "50%", "É" },
			map[string]string{"X-Edihub-Sender": "A%0D%0AX-Evil: 1", "X-Edihub-Control-Ref": "50%25", "X-Edihub-Type": "%C3%89", "X-Evil": ""}, payload},
		{"nothing known", func(d *send.Delivery) { d.Type, d.Sender = "", "" }, map[string]string{"X-Edihub-Type": "", "X-Edihub-Sender": ""}, payload},
		{"empty payload", func(d *send.Delivery) { d.Payload = bytes.NewReader(nil) }, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			type got struct {
				h      http.Header
				method string
				body   []byte
				length int64
			}
			seen := make(chan got, 1)
			url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				seen <- got{r.Header, r.Method, b, r.ContentLength}
			})
			d := delivery(url)
			d.Connection.HTTP.HMACKey = config.NewSecret(key)
			tc.change(d)
			if r := e.Send(t.Context(), d); r.Status != send.Delivered {
				t.Fatalf("%+v", r)
			}
			g := <-seen
			if g.method != http.MethodPost || string(g.body) != tc.body || g.length != int64(len(tc.body)) {
				t.Errorf("%s with %d bytes (length %d), want POST with %d", g.method, len(g.body), g.length, len(tc.body))
			}
			for name, want := range tc.headers {
				if v := g.h.Get(name); v != want {
					t.Errorf("%s: %q, want %q", name, v, want)
				}
			}
			if v := g.h.Get("X-Edihub-Delivery"); v != d.ID.String() {
				t.Errorf("X-Edihub-Delivery: %q", v)
			}
			if v := g.h.Get("Idempotency-Key"); v != d.ID.String() {
				t.Errorf("Idempotency-Key: %q", v)
			}
			if err := endpoint.Verify(key, g.h.Get("X-Edihub-Signature"), now, time.Minute, bytes.NewReader(g.body)); err != nil {
				t.Errorf("signature %q: %v", g.h.Get("X-Edihub-Signature"), err)
			}
		})
	}
}

func TestNoSignatureWithoutAKey(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, endpoint.Options{})
	signature := make(chan []string, 1)
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { signature <- r.Header["X-Edihub-Signature"] })
	if r := e.Send(t.Context(), delivery(url)); r.Status != send.Delivered {
		t.Fatalf("%+v", r)
	}
	if s := <-signature; s != nil {
		t.Errorf("signature %q without a key", s)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	d := delivery("")
	first := endpoint.IdempotencyKey(d)
	if again := endpoint.IdempotencyKey(d); first != d.ID.String() || again != first {
		t.Errorf("keys of a delivery and its retry: %q, %q", first, again)
	}
	d.Generation = 2
	if got := endpoint.IdempotencyKey(d); got != first+"-g2" {
		t.Errorf("key of a resend: %q", got)
	}
}

// TestSignatureVector was computed with: printf '1700000000.hello' | openssl dgst -sha256 -hmac key.
func TestSignatureVector(t *testing.T) {
	t.Parallel()
	got, err := endpoint.Sign("key", time.Unix(1700000000, 0), strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "t=1700000000,v1=4d583a269f4f276a3fa80ff31b5a01879a848096983222a17893d198418939aa"; got != want {
		t.Errorf("Sign = %q, want %q", got, want)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	good, err := endpoint.Sign("key", now, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, key, signature, body string
		at                         time.Time
		good                       bool
	}{
		{"right", "key", good, "body", now, true},
		{"a little later", "key", good, "body", now.Add(time.Minute), true},
		{"too late", "key", good, "body", now.Add(61 * time.Second), false},
		{"from the future", "key", good, "body", now.Add(-61 * time.Second), false},
		{"other key", "other", good, "body", now, false},
		{"other body", "key", good, "Body", now, false},
		{"other time", "key", strings.Replace(good, "t=1", "t=2", 1), "body", now, false},
		{"empty", "key", "", "body", now, false},
		{"nonsense", "key", "t=x,v1=y", "body", now, false},
		{"cut", "key", good[:len(good)-1], "body", now, false},
	} {
		err := endpoint.Verify(tc.key, tc.signature, tc.at, time.Minute, strings.NewReader(tc.body))
		if (err == nil) != tc.good || err != nil && !errors.Is(err, endpoint.ErrSignature) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, endpoint.Options{MaxRetryAfter: 10 * time.Minute})
	for _, tc := range []struct {
		header string
		want   time.Duration
	}{
		{"", 0},
		{"0", 0},
		{"120", 2 * time.Minute},
		{" 120 ", 2 * time.Minute},
		{"601", 10 * time.Minute},
		{"99999999999999999999999", 10 * time.Minute},
		{"-5", 0},
		{"1.5", 0},
		{"soon", 0},
		{now.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second},
		{now.Add(-time.Hour).Format(http.TimeFormat), 0},
		{now.Add(time.Hour).Format(http.TimeFormat), 10 * time.Minute},
		{now.Add(time.Minute).Format(time.RFC850), time.Minute},
	} {
		for _, status := range []int{429, 503} {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if tc.header != "" {
					w.Header().Set("Retry-After", tc.header)
				}
				w.WriteHeader(status)
			})
			if r := e.Send(t.Context(), delivery(url)); r.Status != send.Retry || r.After != tc.want {
				t.Errorf("%d, Retry-After %q: %v, after %v; want %v", status, tc.header, r.Status, r.After, tc.want)
			}
		}
	}
}

// raw answers each connection with a text of its own, as no sane server would.
func raw(t *testing.T, answer string) string {
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
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				buf := make([]byte, 64<<10)
				for all := ""; !strings.HasSuffix(all, payload); {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					all += string(buf[:n])
				}
				_, _ = io.WriteString(c, answer)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return "http://" + l.Addr().String()
}

func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, endpoint.Options{})
	for _, tc := range []struct {
		name, answer string
		status       send.Status
		code         string
	}{
		{"status line with controls", "HTTP/1.1 500 a\x1b[31mb\x00c\r\nContent-Length: 0\r\n\r\n", send.Retry, "HTTP_500"},
		{"endless status line", "HTTP/1.1 500 " + strings.Repeat("long ", 1000) + "\r\nContent-Length: 0\r\n\r\n", send.Retry, "HTTP_500"},
		{"2xx whose body is cut", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", send.Delivered, ""},
		{"2xx with a huge body", "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 1000000), send.Delivered, ""},
		{"no HTTP", "hello\r\n", send.Unknown, endpoint.CodeCut},
		{"nothing", "", send.Unknown, endpoint.CodeCut},
		{"cut in the header", "HTTP/1.1 200 OK\r\nContent-Le", send.Unknown, endpoint.CodeCut},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := e.Send(t.Context(), delivery(raw(t, tc.answer)))
			if r.Status != tc.status || r.Code != tc.code {
				t.Errorf("%+v, want status %v, code %q", r, tc.status, tc.code)
			}
			if n := len([]rune(r.Detail)); n > 200 || strings.ContainsAny(r.Detail, "\x00\x1b\r\n") {
				t.Errorf("detail of %d characters: %q", n, r.Detail)
			}
		})
	}
}

// slowSource is a payload that is read step by step.
type slowSource struct {
	size int64
	at   func(off int64) error
}

func (s *slowSource) Size() int64 { return s.size }

func (s *slowSource) ReadAt(p []byte, off int64) (int, error) {
	if err := s.at(off); err != nil {
		return 0, err
	}
	n := min(int64(len(p)), s.size-off)
	if n <= 0 {
		return 0, io.EOF
	}
	return int(n), nil
}

func TestFailures(t *testing.T) {
	t.Parallel()

	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		s := httptest.NewServer(nil)
		s.Close()
		r := newEndpoint(t, endpoint.Options{}).Send(t.Context(), delivery(s.URL))
		if r.Status != send.Retry || r.Code != endpoint.CodeRefused {
			t.Errorf("%+v", r)
		}
	})

	t.Run("address kept shut", func(t *testing.T) {
		t.Parallel()
		arrived := false
		d := delivery(serve(t, func(http.ResponseWriter, *http.Request) { arrived = true }))
		d.Connection.ManagedBy = "api"
		r := newEndpoint(t, endpoint.Options{}).Send(t.Context(), d)
		if r.Status != send.Retry || r.Code != endpoint.CodeBlocked || arrived || !strings.Contains(r.Detail, "allow_private") {
			t.Errorf("%+v, arrived %v", r, arrived)
		}
	})

	t.Run("certificate not trusted", func(t *testing.T) {
		t.Parallel()
		s := httptest.NewUnstartedServer(nil)
		s.Config.ErrorLog = quiet()
		s.StartTLS()
		t.Cleanup(s.Close)
		r := newEndpoint(t, endpoint.Options{}).Send(t.Context(), delivery(s.URL))
		if r.Status != send.Retry || r.Code != endpoint.CodeTLS {
			t.Errorf("%+v", r)
		}
	})

	t.Run("hangs until the time is over", func(t *testing.T) {
		t.Parallel()
		url := serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body); <-r.Context().Done() })
		e := newEndpoint(t, endpoint.Options{Timeouts: dial.Timeouts{Header: 20 * time.Millisecond}})
		r := e.Send(t.Context(), delivery(url))
		if r.Status != send.Unknown || r.Code != endpoint.CodeTimeout {
			t.Errorf("%+v", r)
		}
	})

	t.Run("we stop while it hangs", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			cancel()
			<-r.Context().Done()
		})
		r := newEndpoint(t, endpoint.Options{}).Send(ctx, delivery(url))
		if r.Status != send.Unknown || r.Code != endpoint.CodeCanceled {
			t.Errorf("%+v", r)
		}
	})

	t.Run("we stop before it begins", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := newEndpoint(t, endpoint.Options{}).Send(ctx, delivery(serve(t, nil)))
		if r.Status != send.Retry || r.Code != endpoint.CodeCanceled {
			t.Errorf("%+v", r)
		}
	})

	t.Run("our payload cannot be read", func(t *testing.T) {
		t.Parallel()
		d := delivery(serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }))
		d.Payload = &slowSource{size: 1 << 20, at: func(off int64) error {
			if off > 0 {
				return errors.New("disk is broken")
			}
			return nil
		}}
		r := newEndpoint(t, endpoint.Options{}).Send(t.Context(), d)
		if r.Code != endpoint.CodePayload || r.Status != send.Unknown || !strings.Contains(r.Detail, "disk is broken") {
			t.Errorf("%+v", r)
		}
		d.Connection.HTTP.HMACKey = config.NewSecret("key")
		r = newEndpoint(t, endpoint.Options{}).Send(t.Context(), d)
		if r.Code != endpoint.CodePayload || r.Status != send.Retry {
			t.Errorf("while signing: %+v", r)
		}
	})

	t.Run("2xx before the body was sent", func(t *testing.T) {
		t.Parallel()
		over := make(chan struct{})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1024))
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			<-over
			_ = c.Close()
		})
		t.Cleanup(func() { _ = l.Close(); wg.Wait() })
		d := delivery("http://" + l.Addr().String())
		// More than the buffers between the two hold.
		d.Payload = &slowSource{size: 1 << 30, at: func(int64) error {
			select {
			case <-over:
				t.Error("the payload was read after Send")
			default:
			}
			return nil
		}}
		r := newEndpoint(t, endpoint.Options{}).Send(t.Context(), d)
		close(over)
		if r.Status != send.Unknown || r.Code != endpoint.CodeEarly || r.Proof != "" {
			t.Errorf("%+v", r)
		}
	})
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func TestSettings(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, endpoint.Options{})
	for url, good := range map[string]bool{
		"https://erp.example/edi": true, "http://10.0.0.1:8080": true,
		"": false, "erp.example": false, "ftp://erp.example": false, "https://": false,
		"http://user:secret@host:bad port/": false, "http://[::1": false, "file:///etc/passwd": false,
	} {
		if err := config.CheckURL(url, "https", "http"); (err == nil) != good {
			t.Errorf("CheckURL(%q) = %v", url, err)
		}
		if good {
			continue
		}
		r := e.Send(t.Context(), delivery(url))
		if r.Status != send.Retry || r.Code != endpoint.CodeURL || strings.Contains(r.Detail, "secret") || r.Detail == "" {
			t.Errorf("%q: %+v", url, r)
		}
	}
	d := delivery("")
	d.Connection.HTTP = nil
	if r := e.Send(t.Context(), d); r.Status != send.Retry || r.Code != endpoint.CodeURL {
		t.Errorf("without settings: %+v", r)
	}
}

// TestRetrySendsTheSame has a server that fails once: both requests must look alike, except for
// their times.
func TestRetrySendsTheSame(t *testing.T) {
	t.Parallel()
	type got struct{ key, body string }
	seen := make(chan got, 2)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen <- got{r.Header.Get("Idempotency-Key"), string(b)}
		if len(seen) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	e, d := newEndpoint(t, endpoint.Options{}), delivery(url)
	if r := e.Send(t.Context(), d); r.Status != send.Retry {
		t.Fatalf("%+v", r)
	}
	if r := e.Send(t.Context(), d); r.Status != send.Delivered {
		t.Fatalf("%+v", r)
	}
	if a, b := <-seen, <-seen; a != b || a.body != payload {
		t.Errorf("first %+v, then %+v", a, b)
	}
}

func TestConcurrentSends(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen[r.Header.Get("Idempotency-Key")+string(b)]++
	})
	e := newEndpoint(t, endpoint.Options{})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if r := e.Send(t.Context(), delivery(url)); r.Status != send.Delivered {
				t.Errorf("%+v", r)
			}
		})
	}
	wg.Wait()
	if len(seen) != 16 {
		t.Errorf("%d different deliveries arrived, want 16", len(seen))
	}
}
