package partner

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// The sizes of RSA keys that GenerateKey makes, in bits.
const (
	MinKeyBits = 2048
	MaxKeyBits = 8192
)

// GenerateKey makes an RSA key with a self-signed certificate for signing and encrypting S/MIME
// messages (RFC 8550 §4.4.2) from one time to another. The key is PKCS #8, both are PEM.
func GenerateKey(commonName string, bits int, from, until time.Time) (certPEM, keyPEM []byte, err error) {
	switch {
	case commonName == "":
		return nil, nil, errors.New("generate key: the common name is empty")
	case bits < MinKeyBits || bits > MaxKeyBits:
		return nil, nil, fmt.Errorf("generate key: %d bits: allowed are %d to %d", bits, MinKeyBits, MaxKeyBits)
	case !from.Before(until):
		return nil, nil, fmt.Errorf("generate key: the certificate would end (%s) before it begins (%s)", until.Format(time.DateOnly), from.Format(time.DateOnly))
	}
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, nil, fmt.Errorf("generate key: %w", err)
	}
	// RFC 5280 §4.1.2.2: positive, at most 20 octets. 127 random bits are unique enough.
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("generate key: serial number: %w", err)
	}
	serial.Add(serial, big.NewInt(1))
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             from.UTC(),
		NotAfter:              until.UTC(),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageDataEncipherment,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("generate key: certificate: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("generate key: %w", err)
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	return certPEM, keyPEM, nil
}
