package app_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/app/hubtest"
	"github.com/edihub/edihub/internal/as2"
	"github.com/edihub/edihub/internal/store"
)

// openssl runs the command and returns its standard output.
func openssl(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("openssl", args...) //nolint:gosec // G204: the arguments are the test's.
	var out, problem bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &problem
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("openssl %s: %w\n%s\nthis test needs the openssl command (Debian: apt-get install openssl)", strings.Join(args, " "), err, problem.String())
	}
	return out.Bytes(), nil
}

// box is a folder in which OpenSSL works for the partners.
type box struct {
	h   *hubtest.Hub
	dir string
	n   int
}

// file writes a file with a name of its own and returns its path.
func (b *box) file(content []byte) (string, error) {
	b.n++
	p := filepath.Join(b.dir, fmt.Sprintf("file-%d", b.n))
	return p, os.WriteFile(p, content, 0o600)
}

func (b *box) pem(who string) string { return filepath.Join(b.h.Dir, who+".pem") }
func (b *box) key(who string) string { return filepath.Join(b.h.Dir, who+".key") }

// sign signs a MIME entity and returns multipart/signed as an entity with its header.
func (b *box) sign(command, who string, entity []byte, more ...string) ([]byte, error) {
	in, err := b.file(entity)
	if err != nil {
		return nil, err
	}
	return openssl(b.dir, append([]string{command, "-sign", "-binary", "-in", in, "-signer", b.pem(who), "-inkey", b.key(who), "-md", "sha256"}, more...)...)
}

// digest is the base64 SHA-256 of a content.
func (b *box) digest(content []byte) (string, error) {
	in, err := b.file(content)
	if err != nil {
		return "", err
	}
	sum, err := openssl(b.dir, "dgst", "-sha256", "-binary", in)
	return base64.StdEncoding.EncodeToString(sum), err
}

// verify checks multipart/signed with its header against one certificate and returns what is
// signed.
func (b *box) verify(who string, message []byte) ([]byte, error) {
	in, err := b.file(message)
	if err != nil {
		return nil, err
	}
	return openssl(b.dir, "cms", "-verify", "-in", in, "-CAfile", b.pem(who), "-purpose", "any")
}

// take splits a message into the header field that describes it, on one line, and its body.
func take(t *testing.T, message []byte) (contentType string, body []byte) {
	t.Helper()
	message = bytes.TrimPrefix(message, []byte("MIME-Version: 1.0\n"))
	message = bytes.TrimPrefix(message, []byte("MIME-Version: 1.0\r\n"))
	for _, gap := range []string{"\r\n\r\n", "\n\n"} {
		head, rest, ok := bytes.Cut(message, []byte(gap))
		if !ok {
			continue
		}
		v, ok := strings.CutPrefix(strings.Join(strings.Fields(string(head)), " "), "Content-Type: ")
		if !ok {
			t.Errorf("head %q", head)
		}
		return v, rest
	}
	t.Errorf("no head: %q", message)
	return "", nil
}

// TestOpenSSLSends has OpenSSL make ACME's messages in several ways; the hub delivers them, and
// its MDN is one that OpenSSL verifies, with the MIC that OpenSSL computes.
func TestOpenSSLSends(t *testing.T) {
	t.Parallel()
	h := newWorld(t, nil)
	for i, tc := range []struct {
		name    string
		command string
		sign    []string
		encrypt []string
		nested  bool // the signature holds the content
		oaep    bool
	}{
		{name: "cms, AES-256", command: "cms", sign: []string{"-crlfeol"}, encrypt: []string{"-aes-256-cbc"}},
		{name: "cms, AES-128, OAEP", command: "cms", sign: []string{"-crlfeol"}, encrypt: []string{"-aes-128-cbc"}, oaep: true},
		{name: "cms, streamed", command: "cms", sign: []string{"-crlfeol", "-stream"}, encrypt: []string{"-aes-256-cbc", "-stream"}},
		{name: "cms, attached", command: "cms", sign: []string{"-nodetach", "-outform", "DER"}, encrypt: []string{"-aes-256-cbc"}, nested: true},
		{name: "smime, 3DES", command: "smime", sign: []string{"-crlfeol"}, encrypt: []string{"-des3"}},
		{name: "smime, lines end in LF", command: "smime", encrypt: []string{"-aes-192-cbc"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &box{h: h, dir: t.TempDir()}
			number := fmt.Sprintf("OPENSSL-%d-", i)
			payload := edifactOrder("ACME", "GLOBEX", i+1, number)
			content := append([]byte("Content-Type: application/edifact\r\nContent-Transfer-Encoding: binary\r\n\r\n"), payload...)
			message, err := b.sign(tc.command, "ACME", content, tc.sign...)
			if err != nil {
				t.Fatal(err)
			}
			if tc.nested {
				message = entity("application/pkcs7-mime; smime-type=signed-data", message)
			}
			in, err := b.file(message)
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{tc.command, "-encrypt", "-binary", "-in", in, "-outform", "DER"}, tc.encrypt...)
			if tc.oaep {
				args = append(args, "-recip", b.pem("HUB"), "-keyopt", "rsa_padding_mode:oaep")
			} else {
				args = append(args, b.pem("HUB"))
			}
			body, err := openssl(b.dir, args...)
			if err != nil {
				t.Fatal(err)
			}
			a := h.Post(&hubtest.Request{Header: as2Header("ACME", fmt.Sprintf("<openssl-%d@acme>", i), envelopedType), Body: body})
			a.Positive(t)
			report, err := b.verify("HUB", entity(a.Header.Get("Content-Type"), a.Body))
			if err != nil {
				t.Fatal(err)
			}
			mic, err := b.digest(content)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{
				"Disposition: automatic-action/MDN-sent-automatically; processed\r\n",
				fmt.Sprintf("Original-Message-ID: <openssl-%d@acme>\r\n", i), "Received-Content-MIC: " + mic + ", sha-256\r\n",
			} {
				if !bytes.Contains(report, []byte(want)) {
					t.Errorf("%q is not in the MDN:\n%s", want, report)
				}
			}
			h.Settle()
			if holding(h, number) != 1 {
				t.Error("not delivered")
			}
			tr := transmissions(h, fmt.Sprintf("<openssl-%d@acme>", i))
			if len(tr) != 1 || tr[0].Text("signed") != "true" || tr[0].Text("encrypted") != "true" || tr[0].Text("mic") != mic+", sha-256" {
				t.Errorf("transmissions %v", tr)
			}
			if got := h.API().Payload("transmissions", tr[0].Text("id"), "content"); !bytes.Equal(got, payload) {
				t.Error("other bytes went on than were sent")
			}
		})
	}
	freeLanes(t, h)
}

// answerer is GLOBEX with nothing but OpenSSL.
type answerer struct {
	*box
	t *testing.T
}

// open decrypts and verifies what the hub sent and returns the entity that the hub signed.
func (a *answerer) open(d *hubtest.Delivered) ([]byte, error) {
	in, err := a.file(d.Wire)
	if err != nil {
		return nil, err
	}
	message, err := openssl(a.dir, "cms", "-decrypt", "-binary", "-inform", "DER", "-in", in, "-recip", a.pem("GLOBEX"), "-inkey", a.key("GLOBEX"))
	if err != nil {
		return nil, err
	}
	return a.verify("HUB", message)
}

// mdn is the signed MDN for a message.
func (a *answerer) mdn(d *hubtest.Delivered, disposition, mic, command string) (http.Header, []byte, error) {
	report := []byte("Content-Type: multipart/report; report-type=disposition-notification; boundary=\"RR\"\r\n\r\n" +
		"--RR\r\nContent-Type: text/plain\r\n\r\nThis is OpenSSL.\r\n" +
		"--RR\r\nContent-Type: message/disposition-notification\r\n\r\n" +
		"Final-Recipient: rfc822; GLOBEX\r\nOriginal-Message-ID: " + d.Header.Get("Message-ID") + "\r\n" +
		"Disposition: automatic-action/MDN-sent-automatically; " + disposition + "\r\nReceived-Content-MIC: " + mic + ", sha256\r\n\r\n--RR--\r\n")
	message, err := a.sign(command, "GLOBEX", report, "-crlfeol")
	if err != nil {
		return nil, nil, err
	}
	contentType, body := take(a.t, message)
	return http.Header{"Content-Type": {contentType}, "AS2-From": {"GLOBEX"}, "AS2-To": {"HUB"}, "Message-ID": {"<mdn@globex>"}}, body, nil
}

// TestOpenSSLReceives has OpenSSL decrypt and verify what the hub sends and sign the MDN: the
// delivery becomes delivered by it, and failed where it says so.
func TestOpenSSLReceives(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, settings, command, disposition string
		state, code                          string
	}{
		{"AES-256", "", "cms", "processed", store.StateDelivered, ""},
		{"3DES and SHA-512", ", sign: sha512, encrypt: 3des", "smime", "processed", store.StateDelivered, ""},
		{"AES-128 and a warning", ", encrypt: aes128-cbc", "cms", "processed/warning: duplicate-document", store.StateDelivered, ""},
		{"a refusal", "", "cms", "processed/error: unexpected-processing-error", store.StateFailed, "MDN_UNEXPECTED_PROCESSING_ERROR"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newWorld(t, func(o *hubtest.Options) {
				o.Records = strings.Replace(world, `{id: GLOBEX, own: hub, url: "http://${sink}/as2"`, `{id: GLOBEX, own: hub, url: "http://${sink}/as2"`+tc.settings, 1)
			})
			globex := &answerer{&box{h: h, dir: t.TempDir()}, t}
			h.Sink.Answer(func(w http.ResponseWriter, _ *http.Request, d *hubtest.Delivered) bool {
				content, err := globex.open(d)
				if err == nil && !bytes.Contains(content, []byte("BGM+220+TO-OPENSSL+9'")) {
					err = fmt.Errorf("content %q", content)
				}
				var mic string
				if err == nil {
					mic, err = globex.digest(content)
				}
				var header http.Header
				var body []byte
				if err == nil {
					header, body, err = globex.mdn(d, tc.disposition, mic, tc.command)
				}
				if err != nil {
					t.Error(err)
					w.WriteHeader(http.StatusBadRequest)
					return true
				}
				hubtest.Write(w, header, body)
				return true
			})
			h.Send(hubtest.Message{From: "ACME", Payload: edifactOrder("ACME", "GLOBEX", 1, "TO-OPENSSL")}).Positive(t)
			h.Settle()
			ds := h.API().List("deliveries")
			if len(ds) != 1 || ds[0].Text("state") != tc.state || ds[0].Text("code") != tc.code || ds[0].Text("tries") != "1" {
				t.Fatalf("deliveries %v", ds)
			}
			if proof := ds[0].Text("proof"); (proof == "mdn") != (tc.state == store.StateDelivered) {
				t.Errorf("proof %q", proof)
			}
			got := h.Sink.All()
			if len(got) != 1 || as2.NormalizeMessageID(got[0].MessageID) != as2.NormalizeMessageID(ds[0].Text("message_id")) {
				t.Errorf("%d requests", len(got))
			}
		})
	}
}
