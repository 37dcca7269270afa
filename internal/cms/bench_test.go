package cms

import (
	"bytes"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"fmt"
	"io"
	"testing"
	"time"
)

// BenchmarkReceive10K does what the receipt of a signed and encrypted AS2 message of 10 KB costs
// here: decrypt, verify, sign the MDN. In the same loop it does the bare operations of the
// standard library that cannot be avoided, and reports ratio = ours / bare: 1 is the ceiling.
func BenchmarkReceive10K(b *testing.B) {
	content := sample(10 << 10)
	sig, err := SignDetached(bytes.NewReader(content), partner.signer(SHA256), signingTime)
	if err != nil {
		b.Fatal(err)
	}
	wire := encrypted(b, content, AES256CBC, true, own)
	keys, trusted := []Recipient{own.recipient()}, certs(partner)
	mdn := sample(500)
	bare := newBareReceive(b, content)
	var ours, floor time.Duration
	var out bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		out.Reset()
		if _, err := Decrypt(bytes.NewReader(wire), &out, keys, Policy{}); err != nil {
			b.Fatal(err)
		}
		if _, err := VerifyDetached(sig, bytes.NewReader(out.Bytes()), trusted, Policy{}); err != nil {
			b.Fatal(err)
		}
		if _, err := SignDetached(bytes.NewReader(mdn), own.signer(SHA256), signingTime); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		bare.run(b, mdn)
		ours += middle.Sub(start)
		floor += time.Since(middle)
	}
	n := float64(b.N)
	b.ReportMetric(float64(ours.Nanoseconds())/n, "ours-ns/op")
	b.ReportMetric(float64(floor.Nanoseconds())/n, "bare-ns/op")
	b.ReportMetric(float64(ours)/float64(floor), "ratio")
}

// bareReceive holds the inputs of the bare operations.
type bareReceive struct {
	wrapped, iv, ciphertext, signature, plain []byte
}

func newBareReceive(b *testing.B, content []byte) *bareReceive {
	b.Helper()
	r := &bareReceive{iv: make([]byte, 16), ciphertext: bytes.Clone(content), plain: make([]byte, len(content))}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	var err error
	if r.wrapped, err = rsa.EncryptPKCS1v15(rand.Reader, own.cert.PublicKey.(*rsa.PublicKey), key); err != nil { //nolint:staticcheck // SA1019: AS2 uses it.
		b.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		b.Fatal(err)
	}
	cipher.NewCBCEncrypter(block, r.iv).CryptBlocks(r.ciphertext, r.ciphertext)
	digest := sha256.Sum256(content)
	if r.signature, err = partner.key.Sign(rand.Reader, digest[:], crypto.SHA256); err != nil {
		b.Fatal(err)
	}
	return r
}

func (r *bareReceive) run(b *testing.B, mdn []byte) {
	key := make([]byte, 32)
	if err := rsa.DecryptPKCS1v15SessionKey(rand.Reader, own.key.(*rsa.PrivateKey), r.wrapped, key); err != nil { //nolint:staticcheck // SA1019: AS2 uses it.
		b.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		b.Fatal(err)
	}
	cipher.NewCBCDecrypter(block, r.iv).CryptBlocks(r.plain, r.ciphertext)
	digest := sha256.Sum256(r.plain)
	if err := rsa.VerifyPKCS1v15(partner.cert.PublicKey.(*rsa.PublicKey), crypto.SHA256, digest[:], r.signature); err != nil {
		b.Fatal(err)
	}
	digest = sha256.Sum256(mdn)
	if _, err := own.key.Sign(rand.Reader, digest[:], crypto.SHA256); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStream measures the throughput of large content.
func BenchmarkStream(b *testing.B) {
	const size = 16 << 20
	for _, c := range []Cipher{AES256CBC, TripleDES} {
		for _, definite := range []bool{true, false} {
			wire := encrypted(b, make([]byte, size), c, definite, own)
			b.Run(fmt.Sprintf("decrypt/%s/definite=%t", c, definite), func(b *testing.B) {
				b.SetBytes(size)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Decrypt(bytes.NewReader(wire), io.Discard, []Recipient{own.recipient()}, Policy{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("encrypt/%s", c), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if err := Encrypt(io.Discard, &repeated{size}, size, certs(own), c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	content := bytes.NewReader(make([]byte, size))
	sig, err := SignDetached(&repeated{size}, partner.signer(SHA256), signingTime)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("verify/sha256", func(b *testing.B) {
		b.SetBytes(size)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := VerifyDetached(sig, content, certs(partner), Policy{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
