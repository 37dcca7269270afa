package cms

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// endOfContents closes an element of indefinite length (X.690 §8.1.5).
const endOfContents = "\x00\x00"

// Encrypt reads content from r and writes an EnvelopedData in a ContentInfo (RFC 5652 §6) for
// every certificate in to, with RSA PKCS #1 v1.5 key transport. With size >= 0, r must give exactly
// that many bytes and the output has definite lengths; with size < 0 it has indefinite ones.
// Errors: ErrUnsupported for a cipher that is unknown or a certificate without an RSA key; those
// of r and w, wrapped. What was written before an error is of no use.
func Encrypt(w io.Writer, r io.Reader, size int64, to []*x509.Certificate, c Cipher) error {
	if len(to) == 0 {
		return errors.New("encrypt: no recipient")
	}
	for _, spec := range cipherSpecs {
		if spec.cipher != c {
			continue
		}
		secret := make([]byte, spec.keyBytes+spec.ivLength)
		_, _ = rand.Read(secret) // Never fails: crypto/rand ends the process instead.
		key, iv := secret[:spec.keyBytes], secret[spec.keyBytes:]
		recipients, err := recipientInfos(to, key)
		if err != nil {
			return fmt.Errorf("encrypt: %w", err)
		}
		block, err := newBlock(c, key)
		if err != nil {
			return fmt.Errorf("encrypt: %w", err)
		}
		e := &cbcEncrypter{w: w, mode: cipher.NewCBCEncrypter(block, iv), buf: make([]byte, bufferSize), indefinite: size < 0} //nolint:gosec // G407: the vector is random, see above.
		err = e.envelope(r, size, recipients, append(element1(tagOID, oidBytes(oidData)), algorithmDER(spec.oid, element1(tagOctetString, iv))...))
		if err != nil {
			return fmt.Errorf("encrypt: %w", err)
		}
		return nil
	}
	return fmt.Errorf("encrypt: cipher %q: %w", c, ErrUnsupported)
}

// recipientInfos builds the SET OF KeyTransRecipientInfo, by issuer and serial number, which
// every product understands.
func recipientInfos(to []*x509.Certificate, key []byte) ([]byte, error) {
	all := make([][]byte, 0, len(to))
	for _, c := range to {
		public, ok := c.PublicKey.(*rsa.PublicKey)
		if !ok {
			return nil, fmt.Errorf("certificate of %s has no RSA key: %w", c.Subject, ErrUnsupported)
		}
		// RFC 4130 partners expect PKCS #1 v1.5; its weakness is on the side that decrypts.
		wrapped, err := rsa.EncryptPKCS1v15(rand.Reader, public, key) //nolint:staticcheck // SA1019: see above.
		if err != nil {
			return nil, fmt.Errorf("wrap the content key for %s: %w", c.Subject, err)
		}
		all = append(all, sequence([]byte{2, 1, 0}, issuerAndSerial(c),
			algorithmDER(oidRSA, []byte{5, 0}), element1(tagOctetString, wrapped)))
	}
	return setOf(0x31, all), nil
}

// cbcEncrypter writes an envelope around a stream that it encrypts in CBC mode.
type cbcEncrypter struct {
	w          io.Writer
	mode       cipher.BlockMode
	buf        []byte
	indefinite bool
}

func (e *cbcEncrypter) envelope(r io.Reader, size int64, recipients, info []byte) error {
	head, tail := &nested{indefinite: e.indefinite}, []byte(nil)
	cipherLength := int64(-1)
	if !e.indefinite {
		bs := int64(e.mode.BlockSize())
		cipherLength = (size/bs + 1) * bs
	}
	// From the outside in; the lengths are worked out from the inside out.
	head.add(0x30, element1(tagOID, oidBytes(oidEnvelopedData))) // ContentInfo
	head.add(0xa0, nil)                                          // content
	head.add(0x30, append([]byte{2, 1, 0}, recipients...))       // EnvelopedData, version 0
	head.add(0x30, info)                                         // EncryptedContentInfo
	prefix := head.bytes(contentTag(0x80, e.indefinite), cipherLength)
	if e.indefinite {
		tail = bytes.Repeat([]byte(endOfContents), 5)
	}
	if err := writeAll(e.w, prefix); err != nil {
		return err
	}
	if err := e.content(r, size); err != nil {
		return err
	}
	return writeAll(e.w, tail)
}

// contentTag makes a string tag constructed where its segments follow.
func contentTag(tag byte, indefinite bool) byte {
	if indefinite {
		return tag | 0x20
	}
	return tag
}

func (e *cbcEncrypter) content(r io.Reader, size int64) error {
	bs := e.mode.BlockSize()
	var total int64
	for last := false; !last; {
		// One block stays free for the padding.
		n, end, err := readFull(r, e.buf[:len(e.buf)-bs])
		if err != nil {
			return err
		}
		total += int64(n)
		if last = end; last {
			pad := bs - n%bs
			copy(e.buf[n:], bytes.Repeat([]byte{byte(pad)}, pad)) //nolint:gosec // G115: at most the block size, 16.
			n += pad
		}
		if err := checkSize(total, size, last); err != nil {
			return err
		}
		piece := e.buf[:n]
		e.mode.CryptBlocks(piece, piece)
		if e.indefinite {
			if err := writeAll(e.w, appendLength([]byte{tagOctetString}, int64(n))); err != nil {
				return err
			}
		}
		if err := writeAll(e.w, piece); err != nil {
			return err
		}
	}
	return nil
}

// readFull fills b unless the content ends before. Unlike io.ReadFull it keeps the end of the
// content apart from a source that broke off with io.ErrUnexpectedEOF.
func readFull(r io.Reader, b []byte) (n int, end bool, err error) {
	for idle := 0; n < len(b); {
		k, err := r.Read(b[n:])
		n += k
		if errors.Is(err, io.EOF) {
			return n, true, nil
		}
		if err == nil && k == 0 {
			if idle++; idle == 100 {
				err = io.ErrNoProgress
			}
		}
		if err != nil {
			return n, false, fmt.Errorf("read the content: %w", err)
		}
	}
	return n, false, nil
}

// checkSize compares the content so far with the announced size.
func checkSize(total, size int64, last bool) error {
	if size >= 0 && (total > size || last && total != size) {
		return fmt.Errorf("the content has %d bytes so far, announced were %d", total, size)
	}
	return nil
}

// nested builds the openings of elements that enclose each other and, innermost, a content that
// is streamed behind them.
type nested struct {
	indefinite bool
	tags       []byte
	before     [][]byte // what stands in each element before the next opening
}

func (n *nested) add(tag byte, before []byte) {
	n.tags = append(n.tags, tag)
	n.before = append(n.before, before)
}

// bytes returns the openings and the header of the content itself, of the given length. after
// holds the number of bytes that stand behind the content, from the innermost element outwards;
// what it does not name is 0.
func (n *nested) bytes(contentTag byte, length int64, after ...int64) []byte {
	if n.indefinite {
		var out []byte
		for i, tag := range n.tags {
			out = append(append(out, tag, 0x80), n.before[i]...)
		}
		return append(out, contentTag, 0x80)
	}
	out := appendLength([]byte{contentTag}, length)
	below := int64(len(out)) + length
	for i, v := range slices.Backward(n.tags) {
		below += int64(len(n.before[i]))
		if k := len(n.tags) - 1 - i; k < len(after) {
			below += after[k]
		}
		header := appendLength([]byte{v}, below)
		below += int64(len(header))
		out = append(append(header, n.before[i]...), out...)
	}
	return out
}

// element1 writes an element with a one-octet tag from its contents.
func element1(tag byte, contents ...[]byte) []byte {
	length := 0
	for _, c := range contents {
		length += len(c)
	}
	out := appendLength(append(make([]byte, 0, length+6), tag), int64(length))
	for _, c := range contents {
		out = append(out, c...)
	}
	return out
}

func sequence(contents ...[]byte) []byte { return element1(0x30, contents...) }

// setOf writes a SET OF in the order of DER (X.690 §11.6).
func setOf(tag byte, elements [][]byte) []byte {
	return element1(tag, sortedSet(elements)...)
}

// oidBytes returns the content octets of an OBJECT IDENTIFIER.
func oidBytes(dotted string) []byte {
	var b cryptobyte.Builder
	b.AddASN1ObjectIdentifier(oid(dotted))
	s := cryptobyte.String(b.BytesOrPanic()) // The constants are well-formed.
	var content cryptobyte.String
	s.ReadASN1(&content, cbasn1.OBJECT_IDENTIFIER)
	return content
}

// algorithmDER writes an AlgorithmIdentifier; nil params are absent.
func algorithmDER(dotted string, params []byte) []byte {
	return sequence(element1(tagOID, oidBytes(dotted)), params)
}

func issuerAndSerial(c *x509.Certificate) []byte {
	serial, err := asn1.Marshal(c.SerialNumber)
	if err != nil {
		// Only a nil serial number fails, and no parsed certificate has one.
		serial = []byte{2, 1, 0}
	}
	return sequence(c.RawIssuer, serial)
}
