package as2

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/edihub/edihub/internal/cms"
)

const dispositionMode = "automatic-action/MDN-sent-automatically"

// version is what we announce in AS2-Version. 1.1 would promise compression (RFC 4130 §6.1).
const version = "1.0"

// RefusePair is the refusal of a message whose AS2-From and AS2-To we do not know as a pair. Its
// text is constant: it tells nobody which names exist.
func RefusePair() *Refusal {
	return refuse(AuthenticationFailed, CodeAuthentication,
		"The pair of AS2-From and AS2-To is not known here. Check both names and ask us for a connection.", nil)
}

// RefuseDuplicate is the refusal of a Message-ID that was accepted with other content.
func RefuseDuplicate() *Refusal {
	return refuse(DuplicateDocument, CodeDuplicate,
		"A message with this Message-ID was accepted before with other content. Send new content under a new Message-ID.", nil)
}

// MDNParams describe an MDN to be built.
type MDNParams struct {
	Answers   Headers     // of the message that is answered
	Refusal   *Refusal    // nil: the message was processed
	Warning   string      // "processed/warning: …" where not empty and nothing is refused
	MIC       string      // base64; needed unless the message is refused
	MICAlg    string      // in the spelling that was asked for
	Signer    *cms.Signer // nil: the MDN is not signed
	MessageID string      // of the MDN
	At        time.Time
	Product   string // Reporting-UA
}

// BuildMDN builds a disposition notification (RFC 8098, RFC 4130 §7.4) as the header and body of
// an HTTP response, or of a request for an asynchronous one. The keys of the header are spelled as
// the standards do ("AS2-From") and every value is one line, because proxies refuse folded ones.
// The Original-Message-ID is that of the message byte for byte.
func BuildMDN(p MDNParams) (http.Header, []byte, error) {
	if err := p.check(); err != nil {
		return nil, nil, fmt.Errorf("build MDN: %w", err)
	}
	inner := boundaryOf(p.MessageID, "report")
	contentType := `multipart/report; report-type=disposition-notification; boundary="` + inner + `"`
	body := p.report(inner)
	if p.Signer != nil {
		entity := append([]byte("Content-Type: "+contentType+"\r\n\r\n"), body...)
		der, err := cms.SignDetached(bytes.NewReader(entity), *p.Signer, p.At)
		if err != nil {
			return nil, nil, fmt.Errorf("build MDN: sign: %w", err)
		}
		outer := boundaryOf(p.MessageID, "signed")
		contentType = signedContentType(outer, p.micalg())
		var b bytes.Buffer
		b.WriteString("--" + outer + "\r\n")
		b.Write(entity)
		b.Write(signatureTail(outer, der))
		body = b.Bytes()
	}
	h := http.Header{
		"AS2-Version":  {version},
		"AS2-From":     {QuoteName(p.Answers.To)},
		"AS2-To":       {QuoteName(p.Answers.From)},
		"Message-ID":   {BracketMessageID(p.MessageID)},
		"Date":         {p.At.UTC().Format(http.TimeFormat)},
		"Subject":      {"Message disposition notification"},
		"MIME-Version": {"1.0"},
		"Content-Type": {contentType},
	}
	return h, body, nil
}

func (p MDNParams) check() error {
	if err := checkMessageID(p.Answers.MessageID); err != nil {
		return err
	}
	if err := checkMessageID(p.MessageID); err != nil {
		return err
	}
	for _, name := range []string{p.Answers.From, p.Answers.To} {
		if _, err := UnquoteName(QuoteName(name)); err != nil {
			return fmt.Errorf("AS2 name %q %w", name, err)
		}
	}
	if p.Refusal == nil && (p.MIC == "" || !SupportedMIC(p.MICAlg)) {
		return errors.New("a positive answer needs a MIC and its algorithm")
	}
	return nil
}

// micalg names the digest of the signature, in the sender's spelling where it is the same one.
func (p MDNParams) micalg() string {
	d := p.Signer.Digest
	if d == "" {
		d = cms.SHA256
	}
	if asked, err := cms.ParseDigest(p.MICAlg); err == nil && asked == d {
		return p.MICAlg
	}
	return micName(d)
}

func (p MDNParams) disposition() string {
	switch {
	case p.Refusal != nil:
		return p.Refusal.Disposition()
	case p.Warning != "":
		return dispositionMode + "; processed/warning: " + asciiLine(p.Warning)
	}
	return dispositionMode + "; processed"
}

// report writes the body of multipart/report: a text for people and the fields for programs.
func (p MDNParams) report(boundary string) []byte {
	var b bytes.Buffer
	b.WriteString("--" + boundary + "\r\nContent-Type: text/plain; charset=us-ascii\r\nContent-Transfer-Encoding: 7bit\r\n\r\n")
	b.WriteString(p.text())
	b.WriteString("\r\n--" + boundary + "\r\nContent-Type: message/disposition-notification\r\nContent-Transfer-Encoding: 7bit\r\n\r\n")
	line := func(name, value string) { b.WriteString(name + ": " + value + "\r\n") }
	if p.Product != "" {
		line("Reporting-UA", asciiLine(p.Product))
	}
	// RFC 4130 §7.4.3: the recipient is the AS2 name of the message's AS2-To.
	line("Original-Recipient", "rfc822; "+QuoteName(p.Answers.To))
	line("Final-Recipient", "rfc822; "+QuoteName(p.Answers.To))
	line("Original-Message-ID", p.Answers.MessageID)
	line("Disposition", p.disposition())
	if p.MIC != "" {
		line("Received-Content-MIC", p.MIC+", "+asciiLine(p.MICAlg))
	}
	b.WriteString("\r\n--" + boundary + "--\r\n")
	return b.Bytes()
}

// text tells a person what became of the message and what to do.
func (p MDNParams) text() string {
	var b strings.Builder
	head := "The message " + p.Answers.MessageID + " from " + asciiLine(QuoteName(p.Answers.From)) +
		" to " + asciiLine(QuoteName(p.Answers.To))
	switch {
	case p.Refusal != nil:
		b.WriteString(head + " was NOT accepted.\r\n")
		b.WriteString("Reason: " + asciiLine(p.Refusal.Modifier) + ".\r\n")
		b.WriteString(asciiLine(p.Refusal.Text) + "\r\n")
		b.WriteString("Nothing of it was processed. Mend the cause and send it again.\r\n")
	case p.Warning != "":
		b.WriteString(head + " was received and accepted.\r\n")
		b.WriteString("Note: " + asciiLine(p.Warning) + ".\r\nNothing needs to be done.\r\n")
	default:
		b.WriteString(head + " was received, opened and stored.\r\n")
		b.WriteString("This says nothing about the content of the documents in it; they are answered on their own.\r\n")
	}
	return b.String()
}

// asciiLine makes one line of printable ASCII of a text.
func asciiLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ' || r == 0x7f:
			return ' '
		case r > '~':
			return '?'
		}
		return r
	}, s)
}

// boundaryOf derives a boundary from a Message-ID, so that the same message always has the same
// bytes. The id is not known before its content, so content cannot hold the boundary on purpose.
func boundaryOf(messageID, purpose string) string {
	sum := sha256.Sum256([]byte(purpose + "\x00" + NormalizeMessageID(messageID)))
	return "=_" + purpose + "_" + hex.EncodeToString(sum[:16])
}

func signedContentType(boundary, micalg string) string {
	return `multipart/signed; protocol="application/pkcs7-signature"; micalg=` + asciiLine(micalg) + `; boundary="` + boundary + `"`
}

// signatureTail is what follows the content in multipart/signed.
func signatureTail(boundary string, der []byte) []byte {
	var b bytes.Buffer
	b.WriteString("\r\n--" + boundary + "\r\n")
	b.WriteString("Content-Type: application/pkcs7-signature; name=\"smime.p7s\"\r\n")
	b.WriteString("Content-Transfer-Encoding: base64\r\n")
	b.WriteString("Content-Disposition: attachment; filename=\"smime.p7s\"\r\n\r\n")
	b.Write(base64Lines(der))
	b.WriteString("--" + boundary + "--\r\n")
	return b.Bytes()
}
