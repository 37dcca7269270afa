package sender

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/clock"
	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/endpoint/dial"
	"github.com/edihub/edihub/internal/partner"
	"github.com/edihub/edihub/internal/pipeline/send"
	"github.com/edihub/edihub/internal/spool"
)

// opensslAnswer opens a message with OpenSSL and returns an MDN that OpenSSL signed.
func opensslAnswer(t *testing.T, dir string, r request) (contentType string, body, part []byte, err error) {
	acmeCert, acmeKey := acmeID().files(t)
	hubCert, _ := hubID().files(t)
	entity, err := openssl("cms", "-decrypt", "-binary", "-inform", "DER", "-in", writeFile(t, dir, "body", r.body), "-recip", acmeCert, "-inkey", acmeKey)
	if err != nil {
		return "", nil, nil, err
	}
	head, rest, ok := bytes.Cut(entity, []byte("\r\n\r\n"))
	if !ok || !bytes.Contains(head, []byte("multipart/signed")) {
		return "", nil, nil, errors.New("the decrypted entity is not multipart/signed")
	}
	_, mark, _ := strings.Cut(string(head), `boundary="`)
	mark = strings.TrimSuffix(mark, `"`)
	parts := bytes.Split(rest, []byte("--"+mark))
	part = bytes.TrimSuffix(bytes.TrimPrefix(parts[1], []byte("\r\n")), []byte("\r\n"))
	_, sig, _ := bytes.Cut(parts[2], []byte("\r\n\r\n"))
	armoured := "-----BEGIN CMS-----\n" + strings.ReplaceAll(strings.TrimSpace(string(sig)), "\r", "") + "\n-----END CMS-----\n"
	got, err := openssl("cms", "-verify", "-binary", "-inform", "PEM", "-in", writeFile(t, dir, "sig", []byte(armoured)),
		"-content", writeFile(t, dir, "part", part), "-noverify", "-nointern", "-certfile", hubCert)
	if err != nil {
		return "", nil, nil, err
	}
	sum := sha256.Sum256(got)
	report := "Content-Type: multipart/report; report-type=disposition-notification; boundary=\"R\"\r\n\r\n" +
		"--R\r\nContent-Type: text/plain\r\n\r\nfine\r\n--R\r\nContent-Type: message/disposition-notification\r\n\r\n" +
		"Final-Recipient: rfc822; ACME AS2\r\nOriginal-Message-ID: " + r.header.Get("Message-Id") + "\r\n" +
		"Disposition: automatic-action/MDN-sent-automatically; processed\r\n" +
		"Received-Content-MIC: " + base64.StdEncoding.EncodeToString(sum[:]) + ", sha-256\r\n\r\n--R--\r\n"
	p7s, err := openssl("cms", "-sign", "-binary", "-md", "sha256", "-in", writeFile(t, dir, "report", []byte(report)), "-signer", acmeCert, "-inkey", acmeKey, "-outform", "DER")
	if err != nil {
		return "", nil, nil, err
	}
	body = []byte("--S\r\n" + report + "\r\n--S\r\nContent-Type: application/pkcs7-signature\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
		base64.StdEncoding.EncodeToString(p7s) + "\r\n--S--\r\n")
	return `multipart/signed; protocol="application/pkcs7-signature"; micalg=sha-256; boundary="S"`, body, part, nil
}

// TestOpenSSLAsPartner has OpenSSL open and verify what we send and sign the MDN.
func TestOpenSSLAsPartner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var part, mdn []byte
	p := newPeer(t, func(w http.ResponseWriter, r request) {
		contentType, body, signed, err := opensslAnswer(t, dir, r)
		if err != nil {
			t.Error(err)
			return
		}
		part, mdn = signed, body
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body)
	})
	r := newRig(t, p.url, "", nil)
	res := r.send()
	want(t, res, send.Delivered, "")
	sum := sha256.Sum256(part)
	if res.Proof != ProofMDN || res.MIC != base64.StdEncoding.EncodeToString(sum[:])+", sha-256" || !bytes.HasSuffix(res.Evidence, mdn) {
		t.Errorf("result %s %q, evidence %d bytes", res.Proof, res.MIC, len(res.Evidence))
	}
	if !bytes.HasSuffix(part, []byte("\r\n\r\n"+invoice)) || !bytes.Contains(part, []byte("INVOIC_1a_"+deliveryID.String()+".edi")) {
		t.Errorf("signed part %q", part)
	}
	// The evidence stands by itself.
	head, body, _ := bytes.Cut(res.Evidence, []byte("\r\n\r\n"))
	h := http.Header{}
	for line := range strings.SplitSeq(string(head), "\r\n") {
		name, value, _ := strings.Cut(line, ": ")
		h.Set(name, value)
	}
	m, err := as2.ParseMDN(h, body, r.reg.Connection("acme-as2").VerifyCerts(time.Now()), true)
	check(t, err)
	if m.OriginalMessageID != messageID {
		t.Errorf("Original-Message-ID %q", m.OriginalMessageID)
	}
}

func TestWaysOfSending(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{
		"",
		"sign: none, encrypt: none, mdn: {signed: false}",
		"sign: sha1, encrypt: 3des",
		"sign: sha512, encrypt: none",
		"sign: sha384, encrypt: aes128-cbc",
		"sign: none, encrypt: aes192-cbc, mdn: {signed: false}",
		"mdn: {signed: false}",
	} {
		t.Run(settings, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, func(w http.ResponseWriter, r request) {
				h, body := mdnFor(t, r, nil)
				write(w, h, body)
			})
			r := newRig(t, p.url, settings, nil)
			res := r.send()
			want(t, res, send.Delivered, "")
			req := p.seen()[0]
			if req.length != int64(len(req.body)) || len(req.chunks) != 0 {
				t.Errorf("Content-Length %d of %d, Transfer-Encoding %v", req.length, len(req.body), req.chunks)
			}
			if req.header.Get("As2-From") != "OURCO" || req.header.Get("As2-To") != `"ACME AS2"` || req.header.Get("Message-Id") != messageID || req.header.Get("Accept-Encoding") != "" {
				t.Errorf("header %v", req.header)
			}
			_, o, err := open(req)
			check(t, err)
			got, err := io.ReadAll(io.NewSectionReader(o.Payload, 0, o.Payload.Size()))
			check(t, err)
			if string(got) != invoice {
				t.Errorf("payload %q", got)
			}
			c := r.reg.Connection("acme-as2").AS2
			if o.Signed != (c.Sign != "none") || o.Encrypted != (c.Encrypt != "none") {
				t.Errorf("signed %v, encrypted %v", o.Signed, o.Encrypted)
			}
			if res.MIC != o.MIC+", "+o.MICAlg {
				t.Errorf("MIC %q, the partner's %q, %q", res.MIC, o.MIC, o.MICAlg)
			}
		})
	}
}

// TestEveryRetryIsTheSameMessage sends three times: Message-ID and MIC must not change.
func TestEveryRetryIsTheSameMessage(t *testing.T) {
	t.Parallel()
	mics := map[string]bool{}
	p := newPeer(t, func(w http.ResponseWriter, r request) {
		_, o, err := open(r)
		if err != nil {
			t.Error(err)
			return
		}
		mics[r.header.Get("Message-Id")+o.MIC] = true
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	r := newRig(t, p.url, "", nil)
	for range 3 {
		want(t, r.send(), send.Retry, "HTTP_503")
	}
	if len(p.seen()) != 3 || len(mics) != 1 {
		t.Errorf("%d requests with %d ids and MICs", len(p.seen()), len(mics))
	}
}

// onlyFor leaves the partner's certificates one use.
func onlyFor(u partner.Use) func(d *send.Delivery) {
	return func(d *send.Delivery) {
		c := *d.Connection
		c.Certificates = nil
		for _, cert := range d.Connection.Certificates {
			cert.Use = []partner.Use{u}
			c.Certificates = append(c.Certificates, cert)
		}
		d.Connection = &c
	}
}

func TestRecordsThatCannotSend(t *testing.T) {
	t.Parallel()
	p := newPeer(t, good(t))
	old := "certificates: [{file: acme.pem, use: [sign, encrypt], from: 2020-01-01, until: 2021-01-01}]"
	for _, tc := range []struct {
		name, settings, more string
		change               func(d *send.Delivery)
		code, says           string
	}{
		{"no encryption certificate", "sign: none, mdn: {signed: false}", "", onlyFor(partner.UseSign), CodeCertificate, "use encrypt"},
		{"certificates are over", "", old, nil, CodeCertificate, "valid today"},
		{"no certificate for the MDN", "encrypt: none", "", onlyFor(partner.UseEncrypt), CodeCertificate, "use sign"},
		{"no key", "", "", func(d *send.Delivery) {
			own := *d.Own
			own.Keys = nil
			d.Own = &own
		}, CodeKey, "use sign"},
		{"no identity", "", "", func(d *send.Delivery) { d.Own = nil }, CodeRecord, "as2.own"},
		{"no AS2", "", "", func(d *send.Delivery) { d.Connection = &partner.Connection{ID: "x"} }, CodeRecord, "as2"},
		{"asynchronous MDN", "mdn: {mode: async}", "", nil, CodeAsyncMDN, "mdn.mode: sync"},
		{"compression", "compress: before", "", nil, CodeCompression, "compress: none"},
		{"cipher", "encrypt: aes256-gcm", "", nil, CodeCipher, "aes256-cbc"},
		{"bad URL", "", "", func(d *send.Delivery) {
			c := *d.Connection
			a := *c.AS2
			a.URL = "ftp://user:secret@127.0.0.1/"
			c.AS2 = &a
			d.Connection = &c
		}, CodeURL, "https://"},
		{"bad digest", "", "", func(d *send.Delivery) {
			c := *d.Connection
			a := *c.AS2
			a.Sign = "md5"
			c.AS2 = &a
			d.Connection = &c
		}, CodeBuild, "md5"},
		{"bad name", "", "", func(d *send.Delivery) {
			own := *d.Own
			own.AS2ID = "\x01"
			d.Own = &own
		}, CodeBuild, "AS2 name"},
		{"payload", "", "", func(d *send.Delivery) { d.Payload = failing{10} }, CodePayload, "broken"},
		{"payload, not signed", "sign: none, encrypt: none, mdn: {signed: false}", "", func(d *send.Delivery) { d.Payload = failing{10} }, CodePayload, "broken"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRigWith(t, recordsOf(t, p.url, tc.settings, tc.more), nil)
			d := r.delivery([]byte(invoice))
			if tc.change != nil {
				tc.change(d)
			}
			res := r.endpoint.Send(t.Context(), d)
			status := send.Retry
			if tc.name == "payload, not signed" {
				status = send.Unknown // the header may have left
			}
			want(t, res, status, tc.code)
			if !strings.Contains(res.Detail, tc.says) || strings.Contains(res.Detail, "secret") {
				t.Errorf("detail %q", res.Detail)
			}
		})
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		status int
		after  string
		want   send.Status
		wait   time.Duration
	}{
		{301, "", send.Failed, 0}, {307, "", send.Failed, 0},
		{400, "", send.Failed, 0}, {401, "", send.Failed, 0}, {403, "", send.Failed, 0}, {404, "", send.Failed, 0}, {413, "", send.Failed, 0},
		{408, "", send.Retry, 0}, {425, "", send.Retry, 0}, {429, "7", send.Retry, 7 * time.Second}, {429, "99999999999999999999", send.Retry, time.Hour},
		{500, "", send.Retry, 0}, {502, "x", send.Retry, 0}, {503, at.Add(time.Minute).Format(http.TimeFormat), send.Retry, time.Minute}, {504, "", send.Retry, 0},
	} {
		t.Run(http.StatusText(tc.status)+tc.after, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, func(w http.ResponseWriter, _ request) {
				if tc.after != "" {
					w.Header().Set("Retry-After", tc.after)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tc.status)
			})
			r := newRig(t, p.url, "encrypt: none, sign: none, mdn: {signed: false}", func(o *Options) { o.Clock = clock.NewFake(at) })
			res := r.send()
			want(t, res, tc.want, "HTTP_"+itoa(tc.status))
			if res.After != tc.wait {
				t.Errorf("After %v, want %v", res.After, tc.wait)
			}
			if n := len(p.seen()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func itoa(n int) string {
	return string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
}

func TestNoMDNWanted(t *testing.T) {
	t.Parallel()
	p := newPeer(t, func(w http.ResponseWriter, _ request) { w.WriteHeader(http.StatusAccepted) })
	r := newRig(t, p.url, "mdn: {mode: none}", nil)
	res := r.send()
	want(t, res, send.Delivered, "")
	if res.Proof != ProofHTTP || res.MIC == "" {
		t.Errorf("result %+v", res)
	}
	if h := p.seen()[0].header; h.Get("Disposition-Notification-To") != "" || h.Get("Disposition-Notification-Options") != "" {
		t.Error("an MDN was asked for")
	}
}

// TestEarlyAnswer has a partner say 200 before he has the message.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = c.Read(make([]byte, 100))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-over // the rest of the body is never read
		_ = c.Close()
	}()
	r := newRig(t, "http://"+l.Addr().String(), "sign: none, encrypt: none, mdn: {mode: none}", nil)
	res := r.endpoint.Send(t.Context(), r.delivery(make([]byte, 64<<20)))
	close(over)
	check(t, l.Close())
	<-done
	want(t, res, send.Unknown, CodeEarly)
}

func TestWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	nobody := "http://" + l.Addr().String()
	check(t, l.Close())
	hang := make(chan struct{})
	t.Run("cases", func(t *testing.T) {
		for _, tc := range []struct {
			name   string
			url    string
			answer func(w http.ResponseWriter, r request)
			ctx    func(t testing.TB) context.Context
			status send.Status
			code   string
		}{
			{"nobody listens", nobody, nil, nil, send.Retry, CodeRefused},
			{"cut after the body", "", func(w http.ResponseWriter, _ request) {
				c, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_ = c.Close()
			}, nil, send.Unknown, CodeCut},
			{"cut in the answer", "", func(w http.ResponseWriter, _ request) {
				c, b, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = b.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
				_ = b.Flush()
				_ = c.Close()
			}, nil, send.Unknown, CodeCut},
			{"no answer", "", func(http.ResponseWriter, request) { <-hang }, nil, send.Unknown, CodeTimeout},
			{"we stop", "", good(t), canceled, send.Retry, CodeCanceled},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				url := tc.url
				if url == "" {
					p := newPeer(t, tc.answer)
					url = p.url
					if tc.name == "no answer" {
						t.Cleanup(func() { close(hang) }) // before the peer closes
					}
				}
				r := newRig(t, url, "", func(o *Options) { o.Timeouts = dial.Timeouts{Header: 300 * time.Millisecond} })
				ctx := t.Context()
				if tc.ctx != nil {
					ctx = tc.ctx(t)
				}
				want(t, r.endpoint.Send(ctx, r.delivery([]byte(invoice))), tc.status, tc.code)
			})
		}
	})
}

func TestAddressThatIsShut(t *testing.T) {
	t.Parallel()
	p := newPeer(t, good(t))
	r := newRig(t, p.url, "", nil)
	d := r.delivery([]byte(invoice))
	c := *d.Connection
	c.ManagedBy = partner.ManagedByAPI
	d.Connection = &c
	want(t, r.endpoint.Send(t.Context(), d), send.Retry, CodeBlocked)
	if len(p.seen()) != 0 {
		t.Error("a request was made")
	}
}

// TestKeptConnectionThatWasClosed lets the partner close an idle connection between two sends.
func TestKeptConnectionThatWasClosed(t *testing.T) {
	t.Parallel()
	p := newPeer(t, func(w http.ResponseWriter, r request) {
		w.Header().Set("Connection", "close")
		good(t)(w, r)
	})
	r := newRig(t, p.url, "", nil)
	for range 3 {
		want(t, r.send(), send.Delivered, "")
	}
}

func TestLargeFileGoesThroughTheSpool(t *testing.T) {
	t.Parallel()
	p := newPeer(t, good(t))
	r := newRig(t, p.url, "", nil)
	payload := bytes.Repeat([]byte("LIN+1++4012345678901:SRV'\r\n"), 40000)
	want(t, r.endpoint.Send(t.Context(), r.delivery(payload)), send.Delivered, "")
	_, o, err := open(p.seen()[0])
	check(t, err)
	if o.Payload.Size() != int64(len(payload)) {
		t.Errorf("%d of %d bytes", o.Payload.Size(), len(payload))
	}
	if m, d := r.sp.Usage(); m != 0 || d != 0 {
		t.Errorf("the spool holds %d bytes in memory and %d on disk", m, d)
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	p := newPeer(t, good(t))
	r := newRig(t, p.url, "", func(o *Options) {
		var err error
		o.Spool, err = spool.New(t.TempDir(), spool.Options{MinFree: 1 << 30, Free: func(string) (int64, error) { return 0, nil }})
		check(t, err)
	})
	want(t, r.endpoint.Send(t.Context(), r.delivery(make([]byte, 1<<20))), send.Retry, CodeDisk)
}

func TestProbePoints(t *testing.T) {
	t.Parallel()
	var points []string
	p := newPeer(t, good(t))
	r := newRig(t, p.url, "", func(o *Options) { o.Probe = func(s string) { points = append(points, s) } })
	want(t, r.send(), send.Delivered, "")
	if strings.Join(points, " ") != "before-post after-answer" {
		t.Errorf("points %v", points)
	}
}

func TestModifierCode(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"decryption-failed": "MDN_DECRYPTION_FAILED", "": "MDN_NEGATIVE", "unsupported MIC-algorithms": "MDN_UNSUPPORTED_MIC_ALGORITHMS",
		"  --x ": "MDN_X", "ä": "MDN_NEGATIVE", strings.Repeat("a", 100): "MDN_" + strings.Repeat("A", 48),
	} {
		if got := modifierCode(in); got != want {
			t.Errorf("modifierCode(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFilename(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		d    send.Delivery
		want string
	}{
		{send.Delivery{ID: deliveryID, Standard: edi.UBL, Type: "Invoice"}, "Invoice_" + deliveryID.String() + ".xml"},
		{send.Delivery{ID: deliveryID, Standard: edi.X12, Type: "850", ControlRef: "../0001 "}, "850_..0001_" + deliveryID.String() + ".edi"},
		{send.Delivery{ID: deliveryID, Standard: edi.Opaque}, deliveryID.String() + ".bin"},
	} {
		if got := filename(&tc.d); got != tc.want {
			t.Errorf("filename = %q, want %q", got, tc.want)
		}
	}
}

func FuzzModifierCode(f *testing.F) {
	f.Add("decryption-failed")
	f.Add("a/b:c\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := modifierCode(s)
		if !strings.HasPrefix(got, "MDN_") || len(got) > 60 || strings.Trim(got, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
			t.Errorf("modifierCode(%q) = %q", s, got)
		}
	})
}
