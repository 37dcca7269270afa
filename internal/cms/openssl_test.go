package cms

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// openssl runs the openssl program, the independent implementation of these tests. Without it
// the tests fail: an interoperability test that does not run proves nothing.
func openssl(t *testing.T, args ...string) []byte {
	t.Helper()
	program, err := exec.LookPath("openssl")
	if err != nil {
		t.Fatal("the openssl program (3.0 or newer) is needed for these tests; install it: apt-get install openssl, apk add openssl, or brew install openssl")
	}
	var out, problems bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("openssl %s: %v\n%s", strings.Join(args, " "), err, problems.String())
	}
	return out.Bytes()
}

func file(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDecryptOpenSSL(t *testing.T) {
	t.Parallel()
	content := sample(100_003)
	in := file(t, "content", content)
	names := map[Cipher]string{TripleDES: "-des3", AES128CBC: "-aes128", AES192CBC: "-aes192", AES256CBC: "-aes256"}
	for c, name := range names {
		for _, stream := range []bool{false, true} {
			for _, keyID := range []bool{false, true} {
				args := []string{"cms", "-encrypt", "-binary", "-in", in, "-outform", "DER", name}
				if stream {
					args = append(args, "-stream", "-indef")
				}
				if keyID {
					args = append(args, "-keyid")
				}
				args = append(args, partner.certFile, own.certFile)
				t.Run(fmt.Sprintf("%s stream=%t keyid=%t", c, stream, keyID), func(t *testing.T) {
					t.Parallel()
					der := openssl(t, args...)
					got, info := decrypted(t, der, Policy{}, attacker.recipient(), own.recipient())
					if !bytes.Equal(got, content) || info.Cipher != c || info.Recipient != own.cert || info.Recipients != 2 {
						t.Errorf("%d bytes, info = %+v", len(got), info)
					}
				})
			}
		}
	}
}

func TestDecryptOpenSSLOAEP(t *testing.T) {
	t.Parallel()
	content := sample(1000)
	in := file(t, "content", content)
	hashes := []string{"sha1", "sha224", "sha256", "sha384", "sha512"}
	for i, h := range hashes {
		for _, mgf := range []string{h, hashes[(i+1)%len(hashes)], "sha1"} {
			t.Run(h+" mgf "+mgf, func(t *testing.T) {
				t.Parallel()
				der := openssl(t, "cms", "-encrypt", "-binary", "-in", in, "-outform", "DER", "-aes256", "-recip", own.certFile,
					"-keyopt", "rsa_padding_mode:oaep", "-keyopt", "rsa_oaep_md:"+h, "-keyopt", "rsa_mgf1_md:"+mgf)
				got, info := decrypted(t, der, Policy{}, own.recipient())
				if !bytes.Equal(got, content) || info.KeyTransport != "rsa-oaep" {
					t.Errorf("%d bytes, info = %+v", len(got), info)
				}
			})
		}
	}
	t.Run("label", func(t *testing.T) {
		t.Parallel()
		der := openssl(t, "cms", "-encrypt", "-binary", "-in", in, "-outform", "DER", "-aes128", "-recip", own.certFile,
			"-keyopt", "rsa_padding_mode:oaep", "-keyopt", "rsa_oaep_md:sha256", "-keyopt", "rsa_oaep_label:0102ff")
		if got, _ := decrypted(t, der, Policy{}, own.recipient()); !bytes.Equal(got, content) {
			t.Errorf("%d bytes", len(got))
		}
	})
}

func TestEncryptOpenSSL(t *testing.T) {
	t.Parallel()
	for _, c := range allCiphers {
		for _, definite := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s definite=%t", c, definite), func(t *testing.T) {
				t.Parallel()
				for _, n := range []int{0, 16, 100_003} {
					content := sample(n)
					in := file(t, "message", encrypted(t, content, c, definite, partner, own))
					got := openssl(t, "cms", "-decrypt", "-binary", "-in", in, "-inform", "DER", "-recip", own.certFile, "-inkey", own.keyFile)
					if !bytes.Equal(got, content) {
						t.Errorf("%d bytes come back as %d other ones", n, len(got))
					}
				}
			})
		}
	}
}

func TestVerifyOpenSSL(t *testing.T) {
	t.Parallel()
	content := sample(50_001)
	in := file(t, "content", content)
	type variant struct {
		name    string
		options []string
		digest  Digest
		signer  party
		scheme  string
	}
	var variants []variant
	for _, d := range allDigests {
		for _, option := range []string{"", "-keyid", "-noattr", "-nocerts", "-nosmimecap"} {
			variants = append(variants, variant{string(d) + option, strings.Fields(option), d, partner, schemePKCS1})
		}
		pss := []string{"-keyopt", "rsa_padding_mode:pss", "-keyopt", "rsa_pss_saltlen:-1"}
		variants = append(variants, variant{string(d) + " pss", pss, d, partner, schemePSS},
			variant{string(d) + " ec", nil, d, partnerEC, schemeECDSA})
	}
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			args := []string{"cms", "-sign", "-binary", "-in", in, "-outform", "DER", "-md", string(v.digest), "-signer", v.signer.certFile, "-inkey", v.signer.keyFile}
			args = append(args, v.options...)
			check := func(info SignatureInfo, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				if s := info.Signers[0]; info.Digest != v.digest || s.Certificate != v.signer.cert || s.Algorithm != v.scheme || len(info.Signers) != 1 {
					t.Errorf("info = %+v", info)
				}
				if hasTime := !info.Signers[0].SigningTime.IsZero(); hasTime == strings.Contains(v.name, "noattr") {
					t.Errorf("signing time %s", info.Signers[0].SigningTime)
				}
			}
			check(VerifyDetached(openssl(t, args...), bytes.NewReader(content), certs(own, v.signer), Policy{}))
			forms := [][]string{{"-nodetach"}, {"-nodetach", "-stream", "-indef"}}
			if v.scheme == schemePSS {
				// OpenSSL 3.0 cannot write PSS in streaming mode ("illegal zero content").
				forms = forms[:1]
			}
			for _, form := range forms {
				var out bytes.Buffer
				check(VerifyAttached(bytes.NewReader(openssl(t, append(args, form...)...)), &out, certs(own, v.signer), Policy{}))
				if !bytes.Equal(out.Bytes(), content) {
					t.Errorf("%v: %d bytes of content differ", form, out.Len())
				}
			}
		})
	}
}

func TestVerifyOpenSSLTwoSigners(t *testing.T) {
	t.Parallel()
	content := sample(1000)
	sig := openssl(t, "cms", "-sign", "-binary", "-in", file(t, "content", content), "-outform", "DER", "-md", "sha256",
		"-signer", partner.certFile, "-inkey", partner.keyFile, "-signer", attacker.certFile, "-inkey", attacker.keyFile)
	info, err := VerifyDetached(sig, bytes.NewReader(content), certs(partner, attacker), Policy{})
	if err != nil || len(info.Signers) != 2 {
		t.Errorf("with both certificates: %v, %+v", err, info)
	}
	_, err = VerifyDetached(sig, bytes.NewReader(content), certs(partner), Policy{})
	wantError(t, err, ErrNoSigner)
}

func TestSignOpenSSL(t *testing.T) {
	t.Parallel()
	content := sample(50_001)
	in := file(t, "content", content)
	for _, p := range []party{partner, partnerEC} {
		for _, d := range allDigests {
			t.Run(fmt.Sprintf("%T %s", p.key, d), func(t *testing.T) {
				t.Parallel()
				sig, err := SignDetached(bytes.NewReader(content), p.signer(d), signingTime)
				if err != nil {
					t.Fatal(err)
				}
				verify := []string{"cms", "-verify", "-binary", "-inform", "DER", "-purpose", "any", "-CAfile", p.certFile, "-in"}
				got := openssl(t, append(verify, file(t, "signature", sig), "-content", in)...)
				if !bytes.Equal(got, content) {
					t.Errorf("detached: %d bytes come out", len(got))
				}
				for _, size := range []int64{int64(len(content)), -1} {
					var message bytes.Buffer
					if err := SignAttached(&message, bytes.NewReader(content), size, p.signer(d), signingTime); err != nil {
						t.Fatal(err)
					}
					if got := openssl(t, append(verify, file(t, "message", message.Bytes()))...); !bytes.Equal(got, content) {
						t.Errorf("attached, size %d: %d bytes come out", size, len(got))
					}
				}
				printed := string(openssl(t, "cms", "-cmsout", "-print", "-noout", "-inform", "DER", "-in", file(t, "signature", sig)))
				for _, want := range []string{"contentType", "messageDigest", "signingTime", "S/MIME Capabilities", "Nov 30 12:34:56 2026 GMT"} {
					if !strings.Contains(printed, want) {
						t.Errorf("openssl does not see %q", want)
					}
				}
			})
		}
	}
}
