// Package cms reads and writes the Cryptographic Message Syntax (RFC 5652) as AS2 and OFTP2 use
// it: EnvelopedData with RSA key transport and CBC ciphers, SignedData detached and attached. It
// works on streams in bounded memory, takes its policy as a value per call, and trusts nothing
// but the certificates and keys it is handed: certificates inside a message are never trusted.
package cms

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	// The digests register themselves for crypto.Hash.
	_ "crypto/sha1" //nolint:gosec // G505: partners still sign with SHA-1; Policy.Digests decides.
	_ "crypto/sha256"
	_ "crypto/sha512"
)

// The sentinels that callers decide on; test with errors.Is.
var (
	// ErrDecryption is the one answer to everything that goes wrong with an encrypted message once
	// its recipients were read: no key of ours, a wrong key, bad padding, a broken structure behind
	// the key. Decrypt returns it bare, so that an attacker who may send messages and see the
	// answers learns nothing about the plaintext (RFC 3218 §2.3).
	ErrDecryption = errors.New("the message cannot be decrypted")
	// ErrSignature says that a signature or a message digest is wrong: the content or the
	// signature was changed, or another key signed.
	ErrSignature = errors.New("the signature does not match the content")
	// ErrNoSigner says that no certificate handed in belongs to a signer of the message.
	ErrNoSigner = errors.New("no known certificate matches the signer")
	// ErrUnsupported names an algorithm or content type that is unknown or refused by the policy.
	ErrUnsupported = errors.New("unsupported by this hub or refused by its policy")
	// ErrMalformed says that the bytes are not the CMS structure that was expected.
	ErrMalformed = errors.New("malformed CMS structure")
	// ErrLimit says that the message is beyond a limit of the Policy.
	ErrLimit = errors.New("beyond a limit")
)

// Cipher names a content-encryption algorithm. The values are those of the configuration.
type Cipher string

// The content ciphers.
const (
	TripleDES Cipher = "3des"       // des-ede3-cbc
	AES128CBC Cipher = "aes128-cbc" // RFC 3565
	AES192CBC Cipher = "aes192-cbc"
	AES256CBC Cipher = "aes256-cbc"
)

// ParseCipher reads the name of a cipher in any case and in the usual spellings:
// "aes256-cbc", "AES-256-CBC", "aes256_cbc", "3des", "des-ede3-cbc", "tripledes".
// Other names give an error that wraps ErrUnsupported.
func ParseCipher(name string) (Cipher, error) {
	switch compact(name) {
	case "3des", "desede3cbc", "desede3", "tripledes", "des3":
		return TripleDES, nil
	case "aes128cbc", "aes128":
		return AES128CBC, nil
	case "aes192cbc", "aes192":
		return AES192CBC, nil
	case "aes256cbc", "aes256":
		return AES256CBC, nil
	}
	return "", fmt.Errorf("cipher %q: %w; use 3des, aes128-cbc, aes192-cbc or aes256-cbc", name, ErrUnsupported)
}

// Digest names a message-digest algorithm. The values are those of the configuration.
type Digest string

// The digests.
const (
	SHA1   Digest = "sha1"
	SHA256 Digest = "sha256"
	SHA384 Digest = "sha384"
	SHA512 Digest = "sha512"
)

// ParseDigest reads the name of a digest in any case, with or without a hyphen (RFC 5751 §3.4.3.2
// writes sha-256, RFC 3851 wrote sha256). Other names give an error that wraps ErrUnsupported.
func ParseDigest(name string) (Digest, error) {
	switch compact(name) {
	case "sha1":
		return SHA1, nil
	case "sha256":
		return SHA256, nil
	case "sha384":
		return SHA384, nil
	case "sha512":
		return SHA512, nil
	}
	return "", fmt.Errorf("digest %q: %w; use sha1, sha256, sha384 or sha512", name, ErrUnsupported)
}

// Hash returns the hash function, or 0 for a Digest that is none of the constants.
func (d Digest) Hash() crypto.Hash {
	switch d {
	case SHA1:
		return crypto.SHA1
	case SHA256:
		return crypto.SHA256
	case SHA384:
		return crypto.SHA384
	case SHA512:
		return crypto.SHA512
	}
	return 0
}

func compact(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}

// Recipient is a certificate of ours with its private key. Key is an *rsa.PrivateKey or something
// that behaves like one, such as a key in a hardware module.
type Recipient struct {
	Certificate *x509.Certificate
	Key         crypto.Decrypter
}

// Signer is who signs. Certificate and Chain travel in the signature. Key is an RSA key (PKCS #1
// v1.5) or an ECDSA key.
type Signer struct {
	Certificate *x509.Certificate
	Key         crypto.Signer
	Digest      Digest // default SHA256
	Chain       []*x509.Certificate
}

// The defaults of Policy.
const (
	DefaultMinRSABits    = 1024
	DefaultMaxDepth      = 24
	DefaultMaxDecoded    = 4 << 30
	DefaultMaxSigners    = 8
	DefaultMaxRecipients = 128
	DefaultMaxStructure  = 1 << 20
	DefaultMaxTrailing   = 64 << 10
)

// Policy says what is accepted. The zero value is usable: every algorithm of this package and the
// default limits.
type Policy struct {
	// Ciphers that Decrypt accepts; empty means all.
	Ciphers []Cipher
	// Digests that verification accepts; empty means all, SHA-1 included, because many partners
	// still sign with it.
	Digests []Digest
	// MinRSABits is the smallest modulus of a signer's RSA key, in bits. The default of 1024 is
	// what crypto/rsa itself refuses to go below; set 2048 for partners that can do it.
	MinRSABits int
	// MaxDepth is how deep elements may nest.
	MaxDepth int
	// MaxDecoded is the most content, in bytes, that is written to the caller's writer.
	MaxDecoded int64
	// MaxSigners is the most SignerInfos in one signature.
	MaxSigners int
	// MaxRecipients is the most RecipientInfos in one envelope.
	MaxRecipients int
	// MaxStructure is the most bytes of a message that are held in memory: everything but
	// the content, revocation lists and what is skipped.
	MaxStructure int64
	// MaxTrailing is the most bytes behind the outer structure that are tolerated.
	MaxTrailing int64
}

func (p Policy) withDefaults() Policy {
	if p.MinRSABits == 0 {
		p.MinRSABits = DefaultMinRSABits
	}
	if p.MaxDepth == 0 {
		p.MaxDepth = DefaultMaxDepth
	}
	if p.MaxDecoded == 0 {
		p.MaxDecoded = DefaultMaxDecoded
	}
	if p.MaxSigners == 0 {
		p.MaxSigners = DefaultMaxSigners
	}
	if p.MaxRecipients == 0 {
		p.MaxRecipients = DefaultMaxRecipients
	}
	if p.MaxStructure == 0 {
		p.MaxStructure = DefaultMaxStructure
	}
	if p.MaxTrailing == 0 {
		p.MaxTrailing = DefaultMaxTrailing
	}
	return p
}

func (p Policy) allowsCipher(c Cipher) bool {
	return len(p.Ciphers) == 0 || slices.Contains(p.Ciphers, c)
}

func (p Policy) allowsDigest(d Digest) bool {
	return len(p.Digests) == 0 || slices.Contains(p.Digests, d)
}

// EnvelopeInfo tells about an envelope. It is filled as far as reading came, also beside an error,
// for logs and the operator's view; it must not shape the answer to the sender.
type EnvelopeInfo struct {
	// Cipher is empty where Algorithm is none of ours.
	Cipher Cipher
	// Algorithm is the dotted object identifier of the content cipher.
	Algorithm string
	// KeyTransport is "rsa-pkcs1v15", "rsa-oaep", or the dotted object identifier of another one.
	KeyTransport string
	// ContentType is the dotted object identifier of what was encrypted, usually id-data.
	ContentType string
	// Recipient is the certificate of ours whose key was used; nil if none matched.
	Recipient *x509.Certificate
	// Recipients is the number of RecipientInfos.
	Recipients int
	// Bytes is the length of the plaintext written.
	Bytes int64
	// Trailing is the number of bytes behind the outer structure.
	Trailing int64
}

// SignatureInfo tells about a signature. It is filled as far as reading came, also beside an
// error; only with a nil error are its signers verified.
type SignatureInfo struct {
	// Digest is that of the first signer: what a MIC uses when nobody asked for another one.
	Digest Digest
	// Signers are in the order of the message.
	Signers []SignerDetails
	// ContentType is the dotted object identifier of what was signed, usually id-data.
	ContentType string
	// Bytes is the length of the signed content.
	Bytes int64
	// Trailing is the number of bytes behind the outer structure.
	Trailing int64
}

// SignerDetails tells about one SignerInfo.
type SignerDetails struct {
	// Certificate is the trusted certificate that the signature was verified with.
	Certificate *x509.Certificate
	// Digest is the algorithm of the message digest.
	Digest Digest
	// Algorithm is "rsa-pkcs1v15", "rsa-pss" or "ecdsa".
	Algorithm string
	// SigningTime is the signer's claim; zero if absent. It is not checked.
	SigningTime time.Time
	// ContentDigest is the digest of the content as computed here.
	ContentDigest []byte
}
