package as2

import (
	"bytes"
	"compress/zlib"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/cms"
	"github.com/edihub/edihub/internal/edi"
)

// opensslSign signs a MIME part with OpenSSL.
func opensslSign(t testing.TB, dir string, who identity, part []byte, args ...string) []byte {
	t.Helper()
	cert, key := who.files(t, dir)
	in := writeFile(t, dir, "part", part)
	return openssl(t, append([]string{"cms", "-sign", "-binary", "-outform", "DER", "-in", in, "-signer", cert, "-inkey", key}, args...)...)
}

func opensslEncrypt(t testing.TB, dir string, who identity, entity []byte, args ...string) []byte {
	t.Helper()
	cert, _ := who.files(t, dir)
	in := writeFile(t, dir, "entity", entity)
	return openssl(t, append(append([]string{"cms", "-encrypt", "-binary", "-outform", "DER", "-in", in}, args...), cert)...)
}

func demand(signed, encrypted bool) OpenOptions {
	return OpenOptions{Decrypt: hub().recipients(), Verify: acme().certs(), RequireSigned: signed, RequireEncrypted: encrypted}
}

// What OpenSSL signs and encrypts we open, and the MIC is over the bytes that travelled, for
// every class of bytes.
func TestOpenWhatOpenSSLMade(t *testing.T) {
	t.Parallel()
	for name, payload := range payloads() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			part := signedPart(payload)
			signed := append([]byte("Content-Type: "+multipartSigned+"\r\n\r\n"),
				wrap(testBoundary, part, sigPart(opensslSign(t, dir, acme(), part, "-md", "sha256")))...)
			_, signedBody, _ := bytes.Cut(signed, []byte("\r\n\r\n"))
			both := opensslEncrypt(t, dir, hub(), signed, "-aes-256-cbc")
			base64Body := []byte(base64.StdEncoding.EncodeToString(both))
			for form, c := range map[string]struct {
				in                Inbound
				signed, encrypted bool
				mic               string
			}{
				"plain":             {inbound("application/edifact", "", payload), false, false, mic256(payload)},
				"signed":            {inbound(multipartSigned, "", signedBody), true, false, mic256(part)},
				"encrypted":         {inbound(envelopedType, "binary", opensslEncrypt(t, dir, hub(), part, "-des3")), false, true, mic256(part)},
				"encrypted, stream": {inbound(envelopedType, "binary", opensslEncrypt(t, dir, hub(), part, "-aes-128-cbc", "-stream")), false, true, mic256(part)},
				"opaque":            {inbound("application/pkcs7-mime; smime-type=signed-data", "", opensslSign(t, dir, acme(), part, "-nodetach", "-md", "sha256")), true, false, mic256(part)},
				// All four combinations of what the header says and what the body is.
				"both, raw":              {inbound(envelopedType, "binary", both), true, true, mic256(part)},
				"both, raw as base64":    {inbound(envelopedType, "base64", both), true, true, mic256(part)},
				"both, base64":           {inbound("application/x-pkcs7-mime", "base64", base64Body), true, true, mic256(part)},
				"both, base64 as binary": {inbound(envelopedType, "binary", base64Body), true, true, mic256(part)},
			} {
				o, err := Open(c.in, demand(c.signed, c.encrypted))
				if err != nil {
					t.Errorf("%s: %v (%v)", form, err, errors.Unwrap(err))
					continue
				}
				if got := content(t, o.Payload); !bytes.Equal(got, payload) {
					t.Errorf("%s: the payload is %q, want %q", form, got, payload)
				}
				if o.Signed != c.signed || o.Encrypted != c.encrypted || o.MIC != c.mic || o.MICAlg != "sha-256" {
					t.Errorf("%s: signed %v, encrypted %v, MIC %s %s; want %s", form, o.Signed, o.Encrypted, o.MIC, o.MICAlg, c.mic)
				}
				if o.Signed && !o.SignerCert.Equal(acme().cert) {
					t.Errorf("%s: the signer is %v", form, o.SignerCert.Subject)
				}
				if form != "plain" && o.Filename.Safe != "a.edi" {
					t.Errorf("%s: the file name is %+v", form, o.Filename)
				}
				check(t, o.Close())
			}
		})
	}
}

// The MIC uses what was asked for in its spelling, else the digest of the signature.
func TestMICAlgorithm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	part := signedPart([]byte("x"))
	body := wrap(testBoundary, part, sigPart(opensslSign(t, dir, acme(), part, "-md", "sha512")))
	for asked, want := range map[string]string{
		"":                                      "sha-512",
		"signed-receipt-micalg=optional, SHA-1": "SHA-1",
		"signed-receipt-micalg=optional, md5, sha384":     "sha384",
		"signed-receipt-micalg=optional, md5":             "sha-512",
		"signed-receipt-micalg=required, sha-256, sha512": "sha-256",
	} {
		in := inbound(multipartSigned, "", body)
		in.Headers.Options = ParseReceiptOptions(asked)
		o, err := Open(in, demand(true, false))
		check(t, err)
		d, err := cms.ParseDigest(want)
		check(t, err)
		if o.MICAlg != want || o.MIC != micHash(d.Hash(), part) {
			t.Errorf("%q: %s %s", asked, o.MICAlg, o.MIC)
		}
	}
	in := inbound(multipartSigned, "", body)
	in.Headers.Options = ParseReceiptOptions("signed-receipt-micalg=required, md5")
	if r := refusalOf(t, in, demand(true, false)); r.Modifier != UnsupportedMICAlgorithms ||
		r.Disposition() != "automatic-action/MDN-sent-automatically; failed/Failure: unsupported MIC-algorithms" {
		t.Errorf("%v", r)
	}
}

// refusalOf opens a message that must be refused and checks that nothing of it is left.
func refusalOf(t testing.TB, in Inbound, o OpenOptions) *Refusal {
	t.Helper()
	var c counted
	o.Scratch = c.new
	got, err := Open(in, o)
	if got != nil {
		t.Fatalf("something was delivered: %q", content(t, got.Payload))
	}
	var r *Refusal
	if !errors.As(err, &r) {
		t.Fatalf("not a refusal: %v", err)
	}
	if n := c.open.Load(); n != 0 {
		t.Fatalf("%d scratch files are left", n)
	}
	if r.Text == "" || r.Code == "" {
		t.Fatalf("a refusal says what is wrong: %+v", r)
	}
	return r
}

// cmsCompressed is a CompressedData (RFC 3274) made by hand.
func cmsCompressed(t testing.TB, entity []byte) []byte {
	t.Helper()
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	_, err := w.Write(entity)
	check(t, err)
	check(t, w.Close())
	type alg struct{ OID asn1.ObjectIdentifier }
	type encap struct {
		Type    asn1.ObjectIdentifier
		Content []byte `asn1:"explicit,tag:0"`
	}
	type data struct {
		Version int
		Alg     alg
		Content encap
	}
	der, err := asn1.Marshal(struct {
		Type    asn1.ObjectIdentifier
		Content data `asn1:"explicit,tag:0"`
	}{
		asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 1, 9},
		data{0, alg{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 3, 8}}, encap{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}, z.Bytes()}},
	})
	check(t, err)
	return der
}

func opensslMany(t testing.TB, part []byte, who ...identity) []byte {
	t.Helper()
	dir := t.TempDir()
	args := []string{"cms", "-sign", "-binary", "-outform", "DER", "-in", writeFile(t, dir, "part", part)}
	for _, w := range who {
		cert, key := w.files(t, dir)
		args = append(args, "-signer", cert, "-inkey", key)
	}
	return openssl(t, args...)
}

func opaqueSigned(t testing.TB, who identity, part []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	check(t, cms.SignAttached(&b, bytes.NewReader(part), int64(len(part)), *who.signer(), testTime))
	return b.Bytes()
}

// wrapping is one way to wrap, strip or forge a signature.
type wrapping struct {
	name        string
	contentType string
	body        []byte
	modifier    string
	code        string
}

func wrappings(t testing.TB) []wrapping {
	good := signedPart([]byte("GOOD"))
	evil := signedPart([]byte("EVIL"))
	sig := sigPart(sign(t, acme(), good))
	forged := sigPart(sign(t, attacker(), evil))
	signedEntity := append([]byte("Content-Type: "+multipartSigned+"\r\n\r\n"), wrap(testBoundary, good, sig)...)
	mixed := append([]byte("Content-Type: multipart/mixed; boundary=IN\r\n\r\n"), wrap("IN", good, evil)...)
	envelope := encryptFor(t, hub(), good)
	pkcs7 := func(der []byte, smime string) []byte {
		return append([]byte("Content-Type: application/pkcs7-mime; smime-type="+smime+"\r\n\r\n"), der...)
	}
	inOther := func(outer, boundary string, parts ...[]byte) (string, []byte) {
		return outer + "; boundary=" + boundary, wrap(boundary, parts...)
	}
	mixedType, mixedBody := inOther("multipart/mixed", "OUT", evil, signedEntity)
	relatedType, relatedBody := inOther("multipart/related", "OUT", signedEntity, evil)
	opaque := opaqueSigned(t, acme(), good)
	opaqueChanged := bytes.Replace(opaque, []byte("GOOD"), []byte("EVIL"), 1)
	certsOnly := func() []byte {
		cert, _ := acme().files(t, t.TempDir())
		return openssl(t, "crl2pkcs7", "-nocrl", "-certfile", cert, "-outform", "DER")
	}()
	nestedSame := append([]byte("Content-Type: "+multipartSigned+"\r\n\r\n"), wrap("INNER", evil, forged)...)
	wrapped := func(part []byte) []byte { return wrap(testBoundary, part, sigPart(sign(t, acme(), part))) }
	twice := strings.Replace(multipartSigned, "boundary=", `boundary="OTHER"; boundary=`, 1)

	return []wrapping{
		{"stripped to the payload", "application/edifact", []byte("GOOD"), InsufficientMessageSecurity, CodeNotSigned},
		{"outer type replaced", "application/edifact", wrap(testBoundary, good, sig), InsufficientMessageSecurity, CodeNotSigned},
		{"signature part removed", multipartSigned, wrap(testBoundary, good), AuthenticationFailed, CodeSignedStructure},
		{"payload replaced", multipartSigned, wrap(testBoundary, evil, sig), IntegrityCheckFailed, CodeIntegrity},
		{"header of the part changed", multipartSigned, wrap(testBoundary, bytes.Replace(good, []byte("a.edi"), []byte("b.edi"), 1), sig), IntegrityCheckFailed, CodeIntegrity},
		{"part put in front", multipartSigned, wrap(testBoundary, evil, good, sig), IntegrityCheckFailed, CodeSignedStructure},
		{"part put between", multipartSigned, wrap(testBoundary, good, evil, sig), IntegrityCheckFailed, CodeSignedStructure},
		{"part put behind", multipartSigned, wrap(testBoundary, good, sig, evil), IntegrityCheckFailed, CodeSignedStructure},
		{"two signed pairs", multipartSigned, wrap(testBoundary, good, sig, evil, forged), IntegrityCheckFailed, CodeSignedStructure},
		{"parts swapped", multipartSigned, wrap(testBoundary, sig, good), AuthenticationFailed, CodeSignedStructure},
		{"signature of another type", multipartSigned, wrap(testBoundary, good, bytes.Replace(sig, []byte("pkcs7-signature"), []byte("octet-stream"), 1)), AuthenticationFailed, CodeSignedStructure},
		{"signature is no base64", multipartSigned, wrap(testBoundary, good, []byte("Content-Type: application/pkcs7-signature\r\n\r\n!!!")), AuthenticationFailed, CodeSignedStructure},
		{"signature is empty", multipartSigned, wrap(testBoundary, good, []byte("Content-Type: application/pkcs7-signature\r\n\r\n")), AuthenticationFailed, CodeSignedStructure},
		{"signature is no CMS", multipartSigned, wrap(testBoundary, good, sigPart([]byte("0123456789"))), AuthenticationFailed, CodeAuthentication},
		{"signature without a signer", multipartSigned, wrap(testBoundary, good, sigPart(certsOnly)), AuthenticationFailed, CodeAuthentication},
		{"signed by someone else, certificate embedded", multipartSigned, wrap(testBoundary, evil, forged), AuthenticationFailed, CodeAuthentication},
		{"signed by the partner and someone else", multipartSigned, wrap(testBoundary, good, sigPart(opensslMany(t, good, acme(), attacker()))), AuthenticationFailed, CodeAuthentication},
		{"signed by someone else and the partner", multipartSigned, wrap(testBoundary, good, sigPart(opensslMany(t, good, attacker(), acme()))), AuthenticationFailed, CodeAuthentication},
		{"signature of another message", multipartSigned, wrap(testBoundary, good, sigPart(sign(t, acme(), signedPart([]byte("other"))))), IntegrityCheckFailed, CodeIntegrity},
		{"signature that holds other content", multipartSigned, wrap(testBoundary, evil, sigPart(opaque)), IntegrityCheckFailed, CodeIntegrity},
		{"signed message beside a file", mixedType, mixedBody, UnsupportedFormat, CodeMultipart},
		{"file behind a signed message", relatedType, relatedBody, UnsupportedFormat, CodeMultipart},
		{"signed part wrapped with another", multipartSigned, wrap(testBoundary, mixed, sig), IntegrityCheckFailed, CodeIntegrity},
		{"two files, signed by the partner", multipartSigned, wrapped(mixed), UnsupportedFormat, CodeMultipart},
		{"signed inside signed", multipartSigned, wrapped(nestedSame), UnsupportedFormat, CodeNesting},
		{"opaque inside signed", multipartSigned, wrapped(pkcs7(opaqueSigned(t, attacker(), evil), "signed-data")), UnsupportedFormat, CodeNesting},
		{"encrypted inside signed", multipartSigned, wrapped(pkcs7(envelope, "enveloped-data")), UnsupportedFormat, CodeNesting},
		{"signature inside signed", multipartSigned, wrapped(forged), UnsupportedFormat, CodeFormat},
		{"opaque by someone else", "application/pkcs7-mime; smime-type=signed-data", opaqueSigned(t, attacker(), evil), AuthenticationFailed, CodeAuthentication},
		{"opaque with changed content", "application/pkcs7-mime; smime-type=signed-data", opaqueChanged, IntegrityCheckFailed, CodeIntegrity},
		{"opaque without a signer", "application/pkcs7-mime; smime-type=signed-data", certsOnly, AuthenticationFailed, CodeAuthentication},
		{"opaque that is none", "application/pkcs7-mime; smime-type=signed-data", []byte("GOOD"), AuthenticationFailed, CodeAuthentication},
		{"detached where opaque belongs", "application/pkcs7-mime; smime-type=signed-data", sign(t, acme(), good), AuthenticationFailed, CodeAuthentication},
		{"detached signature alone", "application/pkcs7-signature", sign(t, acme(), good), UnsupportedFormat, CodeFormat},
		{"boundary named twice", twice, wrap(testBoundary, good, sig), UnexpectedProcessingError, CodeMIME},
		{"boundary missing", "multipart/signed; protocol=\"application/pkcs7-signature\"", wrap(testBoundary, good, sig), UnexpectedProcessingError, CodeMIME},
		{"boundary of another", strings.Replace(multipartSigned, testBoundary, "OTHER", 1), wrap(testBoundary, good, sig), UnexpectedProcessingError, CodeMIME},
		{"closing boundary missing", multipartSigned, bytes.TrimSuffix(wrap(testBoundary, good, sig), []byte("--"+testBoundary+"--\r\n")), UnexpectedProcessingError, CodeMIME},
		{"another protocol", strings.Replace(multipartSigned, "application/pkcs7-signature", "application/pgp-signature", 1), wrap(testBoundary, good, sig), UnsupportedFormat, CodeFormat},
		{"part with two types", multipartSigned, wrapped([]byte("Content-Type: application/edifact\r\nContent-Type: text/plain\r\n\r\nx")), UnexpectedProcessingError, CodeMIME},
		{"compressed", "application/pkcs7-mime; smime-type=compressed-data", cmsCompressed(t, good), UnsupportedFormat, CodeCompressed},
		{"compressed inside signed", multipartSigned, wrapped(pkcs7(cmsCompressed(t, good), "compressed-data")), UnsupportedFormat, CodeCompressed},
		{"report in place of a message", "multipart/report; boundary=X", wrap("X", good), UnsupportedFormat, CodeMultipart},
	}
}

// Each way to wrap, strip or forge a signature is refused in its own words, also when a signature
// is not even demanded where there is one, and nothing is delivered.
func TestSignatureWrapping(t *testing.T) {
	t.Parallel()
	for _, w := range wrappings(t) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := refusalOf(t, inbound(w.contentType, "", w.body), demand(true, false))
			if r.Modifier != w.modifier || r.Code != w.code {
				t.Errorf("refused as %s %s (%v), want %s %s", r.Modifier, r.Code, r, w.modifier, w.code)
			}
			if r.Code != CodeNotSigned {
				again := refusalOf(t, inbound(w.contentType, "", w.body), demand(false, false))
				if again.Error() != r.Error() {
					t.Errorf("not demanded: %v", again)
				}
			}
			// Encryption is demanded before anything is verified.
			early := refusalOf(t, inbound(w.contentType, "", w.body), demand(true, true))
			if r.Code == CodeIntegrity && early.Code != CodeNotEncrypted {
				t.Errorf("with encryption demanded: %v", early)
			}
		})
	}
}

// Inside an encrypted message everything that is wrong before a signature vouches for it has one
// answer; only a signature that can be read and does not hold has its own.
func TestEncryptedFaultsLookAlike(t *testing.T) {
	t.Parallel()
	one := errEncrypted(nil)
	for _, w := range wrappings(t) {
		entity := append([]byte("Content-Type: "+w.contentType+"\r\n\r\n"), w.body...)
		r := refusalOf(t, inbound(envelopedType, "", encryptFor(t, hub(), entity)), demand(true, true))
		switch {
		case w.name == "signature is no CMS" || w.name == "signature without a signer" || w.name == "opaque that is none" ||
			w.name == "opaque without a signer" || w.name == "detached where opaque belongs":
			// One of the two, by what can be read of it.
			if r.Modifier != DecryptionFailed && r.Modifier != AuthenticationFailed {
				t.Errorf("%s: %v", w.name, r)
			}
		case slices.Contains([]string{CodeNotSigned, CodeIntegrity, CodeAuthentication}, w.code),
			strings.Contains(w.name, "signed by the partner"), strings.Contains(w.name, "inside signed"), w.name == "part with two types":
			if r.Modifier != w.modifier || r.Code != w.code {
				t.Errorf("%s: %v, want %s", w.name, r, w.modifier)
			}
		default:
			if r.Error() != one.Error() || r.Code != one.Code || r.Disposition() != one.Disposition() {
				t.Errorf("%s: %v, want the one answer", w.name, r)
			}
		}
	}
	good := signedPart([]byte("GOOD"))
	sig := sigPart(sign(t, acme(), good))
	entity := append([]byte("Content-Type: "+multipartSigned+"\r\n\r\n"), wrap(testBoundary, good, sig)...)
	envelope := encryptFor(t, hub(), entity)
	flip := func(at int) []byte {
		b := bytes.Clone(envelope)
		b[at] ^= 1
		return b
	}
	for name, c := range map[string]struct {
		body []byte
		keys []cms.Recipient
	}{
		"for another key":         {encryptFor(t, attacker(), entity), hub().recipients()},
		"no key":                  {envelope, nil},
		"last byte (padding)":     {flip(len(envelope) - 1), hub().recipients()},
		"block before (padding)":  {flip(len(envelope) - 17), hub().recipients()},
		"cut off":                 {envelope[:len(envelope)-16], hub().recipients()},
		"not CMS":                 {[]byte("GOOD"), hub().recipients()},
		"empty":                   {nil, hub().recipients()},
		"empty inside":            {encryptFor(t, hub(), nil), hub().recipients()},
		"no headers inside":       {encryptFor(t, hub(), []byte("\r\nGOOD")), hub().recipients()},
		"no end of headers":       {encryptFor(t, hub(), []byte("Content-Type: a/b\r\n")), hub().recipients()},
		"bytes inside":            {encryptFor(t, hub(), bytes.Repeat([]byte{0xaa, 0x0a, 0x00}, 99)), hub().recipients()},
		"changed type":            {encryptFor(t, hub(), bytes.Replace(entity, []byte("multipart/signed"), []byte("xxltipart/signed"), 1)), hub().recipients()},
		"encrypted twice":         {encryptFor(t, hub(), append([]byte("Content-Type: application/pkcs7-mime\r\n\r\n"), envelope...)), hub().recipients()},
		"blocks put behind":       {encryptFor(t, hub(), append(bytes.Clone(entity), "more than blanks"...)), hub().recipients()},
		"compressed":              {encryptFor(t, hub(), append([]byte("Content-Type: application/pkcs7-mime\r\n\r\n"), cmsCompressed(t, good)...)), hub().recipients()},
		"limits":                  {encryptFor(t, hub(), []byte("A: "+strings.Repeat("x", 70<<10)+"\r\n\r\n")), hub().recipients()},
		"multipart without a cut": {encryptFor(t, hub(), []byte("Content-Type: "+multipartSigned+"\r\n\r\nx")), hub().recipients()},
	} {
		o := demand(true, true)
		o.Decrypt = c.keys
		r := refusalOf(t, inbound(envelopedType, "", c.body), o)
		if r.Error() != one.Error() || r.Code != one.Code {
			t.Errorf("%s: %v (%v), want the one answer", name, r, errors.Unwrap(r))
		}
	}
}

// Only the verified range is delivered, whatever stands around it.
func TestOnlyVerifiedBytesGoOn(t *testing.T) {
	t.Parallel()
	part := signedPart([]byte("GOOD\r\n"))
	sig := sign(t, acme(), part)
	body := wrap(testBoundary, part, sigPart(sig))
	lf := []byte("--BOUND\n" + string(part) + "\n--BOUND\nContent-Type: application/x-pkcs7-signature\n\n" +
		base64.StdEncoding.EncodeToString(sig) + "\n--BOUND--")
	binary := wrap(testBoundary, part, append([]byte("Content-Type: application/pkcs7-signature\r\nContent-Transfer-Encoding: base64\r\n\r\n"), sig...))
	withBreak := signedPart([]byte("GOOD\r\n\r\n"))
	without := signedPart([]byte("GOOD"))
	for name, c := range map[string]struct {
		body    []byte
		payload string
		mic     []byte
		notes   int
	}{
		"as it should be":               {body, "GOOD\r\n", part, 0},
		"preamble":                      {append([]byte("EVIL\r\n\r\n"), body...), "GOOD\r\n", part, 0},
		"epilogue":                      {append(bytes.Clone(body), "EVIL\r\n--BOUND\r\n\r\nEVIL\r\n--BOUND--\r\n"...), "GOOD\r\n", part, 0},
		"no last line end":              {bytes.TrimSuffix(body, []byte("\r\n")), "GOOD\r\n", part, 0},
		"bare LF around":                {lf, "GOOD\r\n", part, 0},
		"binary signature":              {binary, "GOOD\r\n", part, 0},
		"signed with the break behind":  {wrap(testBoundary, part, sigPart(sign(t, acme(), withBreak))), "GOOD\r\n\r\n", withBreak, 1},
		"signed without the last break": {wrap(testBoundary, part, sigPart(sign(t, acme(), without))), "GOOD", without, 1},
	} {
		o, err := Open(inbound(multipartSigned, "", c.body), demand(true, false))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := string(content(t, o.Payload)); got != c.payload || o.MIC != mic256(c.mic) || len(o.Notes) != c.notes {
			t.Errorf("%s: %q, MIC %s, notes %q", name, got, o.MIC, o.Notes)
		}
	}
	// Without certificates on record a signature proves nothing.
	o := demand(true, false)
	o.Verify = nil
	if r := refusalOf(t, inbound(multipartSigned, "", body), o); r.Modifier != AuthenticationFailed {
		t.Errorf("no certificate: %v", r)
	}
	// A certificate of two that are valid is enough.
	o.Verify = append(attacker().certs(), acme().cert)
	opened, err := Open(inbound(multipartSigned, "", body), o)
	check(t, err)
	if !opened.SignerCert.Equal(acme().cert) {
		t.Error("the wrong signer")
	}
	// The body of the request as a whole in base64.
	opened, err = Open(inbound(multipartSigned, "base64", []byte(base64.StdEncoding.EncodeToString(body))), demand(true, false))
	check(t, err)
	if got := string(content(t, opened.Payload)); got != "GOOD\r\n" || opened.MIC != mic256(part) {
		t.Errorf("base64 as a whole: %q", got)
	}
}

func TestTransferEncodingOfThePayload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		encoding, body, payload string
		notes                   int
	}{
		"base64":               {"base64", "R09P\r\nRA==\r\n", "GOOD", 0},
		"base64, blanks":       {"BASE64", " R09P RA== ", "GOOD", 0},
		"base64 that is none":  {"base64", "UNB+UNOA:3'", "UNB+UNOA:3'", 1},
		"quoted-printable":     {"quoted-printable", "G=4FOD=\r\n!", "GOOD!", 0},
		"7bit keeps the lines": {"7bit", "a\nb\r\n", "a\nb\r\n", 0},
		"unknown":              {"x-none", "GOOD", "GOOD", 1},
		"empty base64":         {"base64", "", "", 0},
	} {
		part := []byte("Content-Type: application/edifact\r\nContent-Transfer-Encoding: " + c.encoding + "\r\n\r\n" + c.body)
		in := inbound(multipartSigned, "", wrap(testBoundary, part, sigPart(sign(t, acme(), part))))
		o, err := Open(in, demand(true, false))
		check(t, err)
		if got := string(content(t, o.Payload)); got != c.payload || len(o.Notes) != c.notes || o.MIC != mic256(part) {
			t.Errorf("%s: %q, %q, MIC %s", name, got, o.Notes, o.MIC)
		}
	}
}

// Wherever a signed and encrypted message is cut off, it is refused and nothing goes on.
func TestTruncation(t *testing.T) {
	t.Parallel()
	ours := newIdentity("small-hub", 1024, 11)
	theirs := newIdentity("small-acme", 1024, 12)
	build := func(encrypt bool) []byte {
		o := BuildOptions{From: "A", To: "B", MessageID: "1@a", At: testTime, Sign: theirs.signer()}
		if encrypt {
			o.Encrypt = ours.certs()
		}
		out, err := Build(strings.NewReader("UNB+UNOA:3+A+B+261130:1200+1'UNZ+0+1'"), o)
		check(t, err)
		return content(t, out.Body)
	}
	opts := OpenOptions{Decrypt: ours.recipients(), Verify: theirs.certs()}
	encrypted := build(true)
	for n := range encrypted {
		if r := refusalOf(t, inbound(envelopedType, "", encrypted[:n]), opts); r.Modifier != DecryptionFailed {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(encrypted), r)
		}
	}
	signed := build(false)
	m := `multipart/signed; boundary="` + boundaryOf("1@a", "signed") + `"`
	if _, err := Open(inbound(m, "", signed), opts); err != nil {
		t.Fatal(err)
	}
	for n := range len(signed) - 2 { // the last line break may be missing
		refusalOf(t, inbound(m, "", signed[:n]), opts)
	}
}

func TestLimitsAndDepth(t *testing.T) {
	t.Parallel()
	part := signedPart([]byte("x"))
	body := wrap(testBoundary, part, sigPart(sign(t, acme(), part)))
	for name, l := range map[string]Limits{
		"depth":         {Depth: 1},
		"signature":     {Signature: 100},
		"header bytes":  {HeaderBytes: 20},
		"header fields": {HeaderFields: 1},
		"parts":         {Parts: 1},
	} {
		o := demand(true, false)
		o.Limits = l
		if r := refusalOf(t, inbound(multipartSigned, "", body), o); r.Code != CodeMIMELimit {
			t.Errorf("%s: %v", name, r)
		}
	}
}

var errDisk = errors.New("the disk is full")

type badScratch struct{ memory }

func (*badScratch) Write([]byte) (int, error) { return 0, errDisk }

type badSource struct{ edi.Source }

func (b badSource) ReadAt(p []byte, off int64) (int, error) {
	const good = 200 // bytes that can be read
	if off+int64(len(p)) <= good {
		return b.Source.ReadAt(p, off)
	}
	n, _ := b.Source.ReadAt(p[:max(0, good-off)], off)
	return n, errDisk
}

// A failure of ours is never told to the sender as a fault of the message.
func TestOwnFailuresAreNoRefusals(t *testing.T) {
	t.Parallel()
	part := signedPart(bytes.Repeat([]byte("x"), 1000))
	signed := wrap(testBoundary, part, sigPart(sign(t, acme(), part)))
	envelope := encryptFor(t, hub(), part)
	encoded := []byte(base64.StdEncoding.EncodeToString(envelope))
	for name, c := range map[string]struct {
		in      Inbound
		scratch edi.NewScratch
	}{
		"no scratch":            {inbound(envelopedType, "", envelope), func() (edi.Scratch, error) { return nil, errDisk }},
		"scratch full":          {inbound(envelopedType, "", envelope), func() (edi.Scratch, error) { return &badScratch{}, nil }},
		"scratch full, opaque":  {inbound("application/pkcs7-mime", "", opaqueSigned(t, acme(), part)), func() (edi.Scratch, error) { return &badScratch{}, nil }},
		"scratch full, payload": {inbound("text/plain", "base64", encoded), func() (edi.Scratch, error) { return &badScratch{}, nil }},
		"body, encrypted":       {inbound(envelopedType, "", envelope), nil},
		"body, encoded":         {inbound(envelopedType, "", encoded), nil},
		"body, signed":          {inbound(multipartSigned, "", signed), nil},
		"body, plain":           {inbound("text/plain", "", part), nil},
		"body, base64":          {inbound("text/plain", "base64", encoded), nil},
	} {
		if c.scratch == nil {
			c.in.Body = badSource{c.in.Body}
		}
		o := demand(false, false)
		o.Scratch = c.scratch
		got, err := Open(c.in, o)
		var r *Refusal
		if got != nil || err == nil || errors.As(err, &r) || !errors.Is(err, errDisk) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// pattern is a large file that takes no memory.
type pattern struct{ size int64 }

func (p pattern) Size() int64 { return p.size }

func (p pattern) ReadAt(b []byte, off int64) (int, error) {
	if off >= p.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), p.size-off))
	for i := range b[:n] {
		b[i] = "LIN+1++4000862141404:SRV'\n"[(off+int64(i))%26]
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Memory does not grow with the message: 32 MiB, signed and encrypted, are built and opened with
// less than 8 MiB of allocations in all, each way.
func TestStreamingMemory(t *testing.T) {
	const size = 32 << 20
	scratch := &counted{dir: t.TempDir()}
	allocated := func(what string, f func()) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		n := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d KiB allocated", what, n>>10)
		if n > 8<<20 {
			t.Errorf("%s allocated %d MiB", what, n>>20)
		}
	}
	hub()
	acme()
	var out *Outbound
	allocated("building", func() {
		var err error
		out, err = Build(pattern{size}, BuildOptions{
			From: "ACME AS2", To: "OURCO", MessageID: "big@acme", At: testTime, Filename: "big.edi",
			Sign: acme().signer(), Encrypt: hub().certs(), Scratch: scratch.new,
		})
		check(t, err)
	})
	var opened *Opened
	in := received(t, out)
	allocated("opening", func() {
		o := demand(true, true)
		o.Scratch = scratch.new
		var err error
		opened, err = Open(in, o)
		check(t, err)
	})
	if opened.Payload.Size() != size || opened.MIC != out.MIC("sha256") {
		t.Errorf("%d bytes, MIC %s", opened.Payload.Size(), opened.MIC)
	}
	tail := make([]byte, 100)
	want := make([]byte, 100)
	_, err := opened.Payload.ReadAt(tail, size-100)
	check(t, err)
	_, _ = pattern{size}.ReadAt(want, size-100)
	if !bytes.Equal(tail, want) {
		t.Error("the end differs")
	}
	check(t, opened.Close())
	check(t, out.Close())
	if n := scratch.open.Load(); n != 0 {
		t.Errorf("%d scratch files are left", n)
	}
}

func FuzzOpen(f *testing.F) {
	part := signedPart([]byte("UNB+UNOA:3'"))
	der, err := cms.SignDetached(bytes.NewReader(part), *acme().signer(), testTime)
	if err != nil {
		f.Fatal(err)
	}
	body := wrap(testBoundary, part, sigPart(der))
	f.Add(multipartSigned, "", body)
	f.Add("application/edifact", "base64", []byte("R09PRA=="))
	f.Add(envelopedType, "binary", encryptFor(f, hub(), append([]byte("Content-Type: "+multipartSigned+"\r\n\r\n"), body...)))
	f.Add("application/pkcs7-mime; smime-type=signed-data", "", opaqueSigned(f, acme(), part))
	f.Add("multipart/mixed; boundary=B", "", []byte("--B\r\n\r\nx\r\n--B--"))
	f.Fuzz(func(t *testing.T, contentType, encoding string, b []byte) {
		var c counted
		o := demand(false, false)
		o.Scratch = c.new
		opened, err := Open(inbound(contentType, encoding, b), o)
		if err != nil {
			var r *Refusal
			if opened != nil || !errors.As(err, &r) {
				t.Fatalf("%v, %v", opened, err)
			}
		} else {
			if opened.Signed && !opened.SignerCert.Equal(acme().cert) {
				t.Fatal("signed by nobody")
			}
			if opened.Payload.Size() > int64(len(b)) {
				t.Fatal("the payload is larger than the message")
			}
			if opened.Signed && !bytes.Contains(part, content(t, opened.Payload)) {
				t.Fatalf("%q was delivered, which nobody signed", content(t, opened.Payload))
			}
			check(t, opened.Close())
		}
		if n := c.open.Load(); n != 0 {
			t.Fatalf("%d scratch files are left", n)
		}
		_ = IsMDN(MIMEHeaders{ContentType: contentType}, bytes.NewReader(b))
	})
}

func ExampleRefusal_Disposition() {
	fmt.Println(RefusePair().Disposition())
	// Output: automatic-action/MDN-sent-automatically; processed/error: authentication-failed
}
