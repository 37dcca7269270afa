// Package as2 is AS2 (RFC 4130) as bytes in and bytes out, without a network: it reads the
// headers of a request, opens what is encrypted and signed, computes the MIC, builds and reads
// disposition notifications (MDN, RFC 8098), and builds messages to be sent. Whatever is hashed
// or signed is a byte range of what travelled; nothing is ever serialised again.
package as2

import (
	"errors"
	"io"
	"slices"

	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/edi"
)

// The disposition modifiers that a Refusal carries (RFC 4130 §7.5). All but the last two are
// errors of a message that was processed; those two are failures.
const (
	DecryptionFailed            = "decryption-failed"
	AuthenticationFailed        = "authentication-failed"
	IntegrityCheckFailed        = "integrity-check-failed"
	InsufficientMessageSecurity = "insufficient-message-security"
	UnexpectedProcessingError   = "unexpected-processing-error"
	DuplicateDocument           = "duplicate-document"
	UnsupportedFormat           = "unsupported format"
	UnsupportedMICAlgorithms    = "unsupported MIC-algorithms"
)

// Codes of refusals: stable words for logs, states and the API.
const (
	CodeDecryption      = "DECRYPTION_FAILED"
	CodeAuthentication  = "AUTHENTICATION_FAILED"
	CodeIntegrity       = "INTEGRITY_CHECK_FAILED"
	CodeNotSigned       = "NOT_SIGNED"
	CodeNotEncrypted    = "NOT_ENCRYPTED"
	CodeMIME            = "MIME_MALFORMED"
	CodeMIMELimit       = "MIME_LIMIT"
	CodeSignedStructure = "SIGNED_STRUCTURE"
	CodeNesting         = "NESTING_UNSUPPORTED"
	CodeCompressed      = "COMPRESSION_UNSUPPORTED"
	CodeMultipart       = "MULTIPART_UNSUPPORTED"
	CodeFormat          = "FORMAT_UNSUPPORTED"
	CodeMICAlgorithm    = "MIC_ALGORITHM_UNSUPPORTED"
	CodeReceiptProtocol = "RECEIPT_PROTOCOL_UNSUPPORTED"
	CodeDuplicate       = "DUPLICATE_DOCUMENT"
)

// Refusal says that a message is refused, in the words of its MDN. It is an error of the message,
// not of the hub: what fails for a reason of our own (a full disk) is another kind of error.
type Refusal struct {
	Modifier string // one of the modifiers above
	Text     string // one line for the sender: what is wrong and what to do
	Code     string // one of the codes above, or one of the caller

	cause error
}

// Error implements error.
func (r *Refusal) Error() string { return r.Modifier + ": " + r.Text }

// Unwrap returns what was found, for the operator's log. It must never shape the answer to the
// sender: for what was encrypted it would tell an attacker about the plaintext.
func (r *Refusal) Unwrap() error { return r.cause }

// Disposition returns the value of the MDN's Disposition field for this refusal.
func (r *Refusal) Disposition() string {
	switch r.Modifier {
	case UnsupportedFormat, UnsupportedMICAlgorithms:
		// RFC 4130 §7.5.3 has these two as failures.
		return dispositionMode + "; failed/Failure: " + r.Modifier
	}
	return dispositionMode + "; processed/error: " + r.Modifier
}

func refuse(modifier, code, text string, cause error) *Refusal {
	return &Refusal{Modifier: modifier, Code: code, Text: text, cause: cause}
}

// errEncrypted is the one answer to everything that is wrong inside an encrypted message before
// a signature vouched for it. Padding, structure and MIME look the same, so that changed
// ciphertext cannot be used to ask questions about the plaintext (RFC 3218 §2.3).
func errEncrypted(cause error) *Refusal {
	return refuse(DecryptionFailed, CodeDecryption,
		"The message could not be decrypted. Check that it was encrypted for our current certificate and holds one complete MIME entity, not compressed.", cause)
}

// Limits of the MIME reader. A zero field has the default.
type Limits struct {
	HeaderBytes  int // of one header block; default 64 KiB
	HeaderFields int // of one header block; default 200
	Parts        int // of one multipart body; default 16
	Depth        int // layers of encryption, signature and content; default 4
	Signature    int // bytes of a detached signature as it travels; default 1 MiB
}

func (l Limits) withDefaults() Limits {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.HeaderBytes, 64<<10)
	def(&l.HeaderFields, 200)
	def(&l.Parts, 16)
	def(&l.Depth, 4)
	def(&l.Signature, 1<<20)
	return l
}

// The micalg names that we write where nobody asked for a spelling. RFC 5751 §3.4.3.2 writes
// sha-256; for SHA-1 old partners know only the spelling of RFC 4130.
func micName(d cms.Digest) string {
	switch d {
	case cms.SHA1:
		return "sha1"
	case cms.SHA384:
		return "sha-384"
	case cms.SHA512:
		return "sha-512"
	case cms.SHA256:
	}
	return "sha-256"
}

// SupportedMIC reports whether we can compute a MIC of that name, in any spelling.
func SupportedMIC(alg string) bool {
	_, err := cms.ParseDigest(alg)
	return err == nil
}

// section returns a byte range of src.
func section(src edi.Source, from, to int64) *io.SectionReader {
	return io.NewSectionReader(src, from, to-from)
}

// reader reads src from the start.
func reader(src edi.Source) io.Reader { return io.NewSectionReader(src, 0, src.Size()) }

// memory is a Scratch in memory, for callers that gave none.
type memory struct{ b []byte }

func newMemory() (edi.Scratch, error) { return &memory{}, nil }

func (m *memory) Write(p []byte) (int, error) {
	if cap(m.b)-len(m.b) < len(p) {
		m.b = slices.Grow(m.b, len(p))
	}
	m.b = append(m.b, p...)
	return len(p), nil
}

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("as2: negative offset")
	}
	if off >= int64(len(m.b)) {
		return 0, io.EOF
	}
	n := copy(p, m.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m *memory) Size() int64 { return int64(len(m.b)) }

func (m *memory) Close() error {
	m.b = nil
	return nil
}

// watched notes failures of our own storage, so that they are not taken for faults of the message.
type watched struct {
	edi.Scratch
	err error
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Scratch.Write(p)
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, err
}

// watchedSource is watched for reading.
type watchedSource struct {
	edi.Source
	err error
}

func (w *watchedSource) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.Source.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) && w.err == nil {
		w.err = err
	}
	return n, err
}
