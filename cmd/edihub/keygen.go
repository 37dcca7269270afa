package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/edihub/edihub/internal/partner"
)

type keygenResult struct {
	Certificate string    `json:"certificate"`
	Key         string    `json:"key"`
	Subject     string    `json:"subject"`
	Bits        int       `json:"bits"`
	NotBefore   time.Time `json:"not_before"`
	NotAfter    time.Time `json:"not_after"`
	Fingerprint string    `json:"fingerprint"` // SHA-256, hex
}

func newKeygenCommand(e *environment) *cobra.Command {
	var name, out, from, until, format string
	var bits int
	cmd := &cobra.Command{
		Use:   "keygen --name NAME [--out PREFIX]",
		Short: "Make an RSA key with a self-signed certificate for AS2",
		Long: `Writes PREFIX.key (only you may read it) and PREFIX.pem, the certificate that your partners need.
Files that exist are never overwritten.`,
		Example: `  edihub keygen --name OURCO --out keys/ourco-2026
  edihub keygen --name OURCO --bits 3072 --from 2026-07-01 --until 2028-06-30`,
		Args: cobra.NoArgs,
	}
	fl := cmd.Flags()
	fl.StringVar(&name, "name", "", "common name in the certificate")
	fl.StringVar(&out, "out", "", "path of both files without extension; default: the name")
	fl.IntVar(&bits, "bits", 2048, fmt.Sprintf("size of the key, %d to %d; larger ones sign more slowly", partner.MinKeyBits, partner.MaxKeyBits))
	fl.StringVar(&from, "from", "", "first day, for example 2026-01-01; default: today")
	fl.StringVar(&until, "until", "", "last day; default: three years after the first")
	formatFlag(cmd, &format)
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := checkFormat(format); err != nil {
			return err
		}
		if name == "" {
			return fail(exitUsage, "keygen needs --name")
		}
		begin, end, err := validity(from, until, e.now())
		if err != nil {
			return err
		}
		if out == "" {
			out = fileNameOf(name)
		}
		res, err := writeKey(name, out, bits, begin, end)
		if err != nil {
			return err
		}
		if format == formatJSON {
			return e.printJSON(res)
		}
		return e.printf("certificate  %s\nkey          %s\nfingerprint  %s (SHA-256)\nvalid        %s to %s\n",
			res.Certificate, res.Key, res.Fingerprint, res.NotBefore.Format(time.DateOnly), res.NotAfter.Format(time.DateOnly))
	}
	return cmd
}

func validity(from, until string, now time.Time) (begin, end time.Time, err error) {
	begin = now.UTC().Truncate(24 * time.Hour)
	if from != "" {
		if begin, err = time.Parse(time.DateOnly, from); err != nil {
			return begin, end, fail(exitUsage, "--from %q is not a day such as 2026-01-01", from)
		}
	}
	end = begin.AddDate(3, 0, 0)
	if until != "" {
		if end, err = time.Parse(time.DateOnly, until); err != nil {
			return begin, end, fail(exitUsage, "--until %q is not a day such as 2028-12-31", until)
		}
		end = end.Add(24*time.Hour - time.Second) // the last day counts
	}
	if !begin.Before(end) {
		return begin, end, fail(exitUsage, "the certificate would end before it begins")
	}
	return begin, end, nil
}

func fileNameOf(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, name)
}

func writeKey(name, out string, bits int, begin, end time.Time) (*keygenResult, error) {
	res := &keygenResult{Certificate: out + ".pem", Key: out + ".key", Subject: "CN=" + name, Bits: bits, NotBefore: begin, NotAfter: end}
	for _, path := range []string{res.Key, res.Certificate} {
		if _, err := os.Lstat(path); err == nil {
			return nil, fail(exitUsage, "%s exists already; choose another --out", path)
		}
	}
	cert, key, err := partner.GenerateKey(name, bits, begin, end)
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	block, _ := pem.Decode(cert)
	if block == nil {
		return nil, fail(exitBad, "the certificate that was made cannot be read")
	}
	sum := sha256.Sum256(block.Bytes)
	res.Fingerprint = hex.EncodeToString(sum[:])
	if err := createFile(res.Key, key, 0o600); err != nil {
		return nil, err
	}
	if err := createFile(res.Certificate, cert, 0o644); err != nil {
		return nil, errors.Join(err, os.Remove(res.Key))
	}
	return res, nil
}

// createFile writes a file that was not there before.
func createFile(path string, content []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fail(exitUsage, "%w", err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fail(exitBad, "write %s: %w", path, err)
	}
	return nil
}
