package as2

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime/quotedprintable"
	"strings"

	"github.com/edihub/edihub/internal/edi"
)

// derSequence is the first byte of every CMS structure in BER or DER. Its base64 form begins
// with "M", so that the body itself says which of the two it is, whatever a header says.
const derSequence = 0x30

// rawCMS reads a CMS structure that may be base64 or binary.
func rawCMS(src edi.Source) (io.Reader, error) {
	first := make([]byte, 1)
	if _, err := readAt(src, first, 0); err != nil {
		return nil, err
	}
	if first[0] == derSequence {
		return reader(src), nil
	}
	return base64Reader(reader(src)), nil
}

// base64Reader decodes base64 and passes over blanks and line breaks (RFC 2045 §6.8).
func base64Reader(r io.Reader) io.Reader {
	return base64.NewDecoder(base64.StdEncoding, &noBlanks{r: r})
}

// noBlanks drops blanks and tabs; the decoder of the standard library drops CR and LF itself.
type noBlanks struct{ r io.Reader }

func (n *noBlanks) Read(p []byte) (int, error) {
	for {
		got, err := n.r.Read(p)
		kept := 0
		for _, c := range p[:got] {
			if c != ' ' && c != '\t' {
				p[kept] = c
				kept++
			}
		}
		if kept > 0 || err != nil || len(p) == 0 {
			return kept, err
		}
	}
}

// decodeTransfer undoes the Content-Transfer-Encoding of a payload into a Scratch. A body that is
// not in the encoding that its header names is delivered as it is, with a note: some senders
// announce base64 and send the file itself. RFC 4130 §5.2.1: an absent encoding means binary.
func (op *opener) decodeTransfer(body edi.Source, encoding string) (edi.Source, string, error) {
	var decoder func(io.Reader) io.Reader
	switch strings.ToLower(encoding) {
	case "base64":
		decoder = base64Reader
	case "quoted-printable":
		decoder = func(r io.Reader) io.Reader { return quotedprintable.NewReader(r) }
	case "", "binary", "8bit", "7bit":
		return body, "", nil
	default:
		return body, "the Content-Transfer-Encoding is unknown; the content is taken as it is", nil
	}
	if body.Size() == 0 {
		return body, "", nil
	}
	out, err := op.scratch()
	if err != nil {
		return nil, "", err
	}
	src := &watchedSource{Source: body}
	_, err = io.Copy(out, decoder(reader(src)))
	if local := errors.Join(src.err, out.err); local != nil {
		return nil, "", local
	}
	if err != nil {
		return body, "the content is not in its Content-Transfer-Encoding; it is taken as it is", nil //nolint:nilerr // What cannot be decoded is a warning.
	}
	return out, "", nil
}

// base64Lines writes base64 in lines of 76 characters that end in CRLF (RFC 2045 §6.8).
func base64Lines(der []byte) []byte {
	text := base64.StdEncoding.EncodeToString(der)
	var b bytes.Buffer
	b.Grow(len(text) + len(text)/38 + 2)
	for len(text) > 0 {
		n := min(76, len(text))
		b.WriteString(text[:n])
		b.WriteString("\r\n")
		text = text[n:]
	}
	return b.Bytes()
}
