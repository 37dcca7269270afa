package as2

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/edihub/edihub/internal/cms"
)

// answered are the headers of a message that an MDN answers.
func answered() Headers {
	return Headers{From: "ACME AS2", To: "OURCO", MessageID: "<Order 7@acme>", ReceiptTo: "edi@acme"}
}

func mdnParams() MDNParams {
	return MDNParams{
		Answers: answered(), MIC: mic256([]byte("x")), MICAlg: "sha-256",
		MessageID: "<mdn-1@ourco>", At: testTime, Product: "edihub/1",
	}
}

// ours is what the sender of the answered message knows of its MIC.
func ours(alg string) string {
	d, err := cms.ParseDigest(alg)
	if err != nil {
		return ""
	}
	return micHash(d.Hash(), []byte("x"))
}

// Our signed MDN is verified by OpenSSL, and what it verified is the report.
func TestMDNVerifiedByOpenSSL(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*MDNParams){
		"positive": func(*MDNParams) {},
		"negative": func(p *MDNParams) { p.Refusal = errEncrypted(nil); p.MIC = "" },
		"sha1": func(p *MDNParams) {
			p.Signer.Digest, p.MICAlg, p.MIC = cms.SHA1, "SHA1", ours("sha1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := mdnParams()
			p.Signer = hub().signer()
			change(&p)
			h, body, err := BuildMDN(p)
			check(t, err)
			ct := h["Content-Type"][0]
			mt, params, err := parseMediaType(ct)
			check(t, err)
			if mt != "multipart/signed" || params["protocol"] != "application/pkcs7-signature" {
				t.Fatalf("Content-Type %s", ct)
			}
			// Cut without our own splitter.
			chunks := bytes.Split(body, []byte("--"+params["boundary"]))
			if len(chunks) != 4 {
				t.Fatalf("%d chunks", len(chunks))
			}
			part := bytes.TrimSuffix(bytes.TrimPrefix(chunks[1], []byte("\r\n")), []byte("\r\n"))
			_, encoded, _ := bytes.Cut(chunks[2], []byte("\r\n\r\n"))
			sig, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(string(encoded), "\r\n", ""))
			check(t, err)
			cert, _ := hub().files(t, dir)
			verified := openssl(t, "cms", "-verify", "-binary", "-inform", "DER", "-in", writeFile(t, dir, "sig", sig),
				"-content", writeFile(t, dir, "content", part), "-CAfile", cert, "-purpose", "any")
			if !bytes.Equal(verified, part) {
				t.Error("OpenSSL verified something else")
			}
			// OpenSSL's own S/MIME reader takes the whole message too.
			whole := append([]byte("MIME-Version: 1.0\r\nContent-Type: "+ct+"\r\n\r\n"), body...)
			openssl(t, "cms", "-verify", "-in", writeFile(t, dir, "whole", whole), "-CAfile", cert, "-purpose", "any")

			m, err := ParseMDN(h, body, hub().certs(), true)
			check(t, err)
			if !m.Signed || !m.Signer.Equal(hub().cert) || m.OriginalMessageID != answered().MessageID {
				t.Errorf("%+v", m)
			}
			err = m.Check("Order 7@acme", ours)
			if (p.Refusal == nil) != (err == nil) {
				t.Errorf("Check: %v", err)
			}
		})
	}
}

func TestMDNBytes(t *testing.T) {
	t.Parallel()
	p := mdnParams()
	h, body, err := BuildMDN(p)
	check(t, err)
	for key, want := range map[string]string{
		"AS2-From": "OURCO", "AS2-To": `"ACME AS2"`, "AS2-Version": "1.0", "Message-ID": "<mdn-1@ourco>",
		"MIME-Version": "1.0", "Date": "Mon, 30 Nov 2026 12:00:00 GMT",
	} {
		if got := h[key]; len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	for _, line := range []string{
		"Reporting-UA: edihub/1\r\n",
		"Original-Recipient: rfc822; OURCO\r\n",
		"Final-Recipient: rfc822; OURCO\r\n",
		"Original-Message-ID: <Order 7@acme>\r\n",
		"Disposition: automatic-action/MDN-sent-automatically; processed\r\n",
		"Received-Content-MIC: " + mic256([]byte("x")) + ", sha-256\r\n",
	} {
		if !bytes.Contains(body, []byte("\r\n"+line)) {
			t.Errorf("%q is missing in:\n%s", line, body)
		}
	}
	if again := func() []byte { _, b, _ := BuildMDN(p); return b }(); !bytes.Equal(again, body) {
		t.Error("the same MDN has other bytes")
	}
	p.Refusal = refuse(UnexpectedProcessingError, "X", "Broken\r\nX-Evil: ä", nil)
	p.Signer = hub().signer()
	p.Answers.MessageID = strings.Repeat("i", MaxMessageID)
	h, body, err = BuildMDN(p)
	check(t, err)
	for key, vs := range h {
		for _, v := range vs {
			if strings.ContainsAny(v, "\r\n") || strings.HasPrefix(key, "Content-Type") && strings.HasPrefix(v, `"`) {
				t.Errorf("%s is not one line: %q", key, v)
			}
		}
	}
	if !bytes.Contains(body, []byte("\r\nOriginal-Message-ID: "+p.Answers.MessageID+"\r\n")) {
		t.Error("a long Message-ID is folded or cut")
	}
	if bytes.Contains(body, []byte("\r\nX-Evil")) || !bytes.Contains(body, []byte("Broken  X-Evil: ?")) {
		t.Error("the text of a refusal made a line of its own")
	}
	if strings.Contains(strings.ReplaceAll(string(body), "\r\n", ""), "\n") {
		t.Error("a bare line feed")
	}
}

func TestBuildMDNRefusesNonsense(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*MDNParams){
		"no MIC":             func(p *MDNParams) { p.MIC = "" },
		"unknown algorithm":  func(p *MDNParams) { p.MICAlg = "md5" },
		"no id":              func(p *MDNParams) { p.MessageID = "" },
		"no original id":     func(p *MDNParams) { p.Answers.MessageID = "" },
		"line in the id":     func(p *MDNParams) { p.Answers.MessageID = "<a>\r\nX: y" },
		"line in a name":     func(p *MDNParams) { p.Answers.From = "A\r\nX: y" },
		"no name":            func(p *MDNParams) { p.Answers.To = "" },
		"signer without key": func(p *MDNParams) { p.Signer = &cms.Signer{Certificate: hub().cert, Digest: "md5", Key: hub().key} },
	} {
		p := mdnParams()
		change(&p)
		if _, b, err := BuildMDN(p); err == nil || b != nil {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

// report is an MDN as other products write it; head and fields may be changed.
func foreignReport(fields string) []byte {
	return []byte("--R\r\nContent-Type: text/plain\r\n\r\nhello\r\n--R\r\nContent-Type: message/disposition-notification\r\n\r\n" +
		fields + "\r\n--R--\r\n")
}

const foreignType = "multipart/report; report-type=disposition-notification; boundary=R"

func foreignFields(disposition, mic string) string {
	return "Reporting-UA: x\r\nOriginal-Message-ID: <Order 7@acme>\r\nFinal-Recipient: rfc822; OURCO\r\nDisposition: " +
		disposition + "\r\nReceived-Content-MIC: " + mic + "\r\n"
}

const processed = "automatic-action/MDN-sent-automatically; processed"

// An MDN that OpenSSL signed is read, in its S/MIME form and in the forms of others.
func TestMDNSignedByOpenSSL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	part := append([]byte("Content-Type: "+foreignType+"\r\n\r\n"), foreignReport(foreignFields(processed, ours("sha1")+", SHA1"))...)
	cert, key := acme().files(t, dir)
	smime := openssl(t, "cms", "-sign", "-binary", "-md", "sha256", "-signer", cert, "-inkey", key, "-in", writeFile(t, dir, "part", part))
	// The S/MIME output is a header block and its body.
	head, bodyAt, err := readHeader(bytes.NewReader(smime), Limits{}.withDefaults())
	check(t, err)
	shorter := part[:len(part)-2] // libas2 signs without the last line break
	for name, c := range map[string]struct {
		contentType string
		body        []byte
		notes       int
	}{
		"S/MIME":           {head.get("Content-Type"), smime[bodyAt:], 0},
		"DER in parts":     {multipartSigned, wrap(testBoundary, part, sigPart(opensslSign(t, dir, acme(), part, "-md", "sha1"))), 0},
		"without break":    {multipartSigned, wrap(testBoundary, part, sigPart(opensslSign(t, dir, acme(), shorter))), 1},
		"opaque":           {"application/pkcs7-mime; smime-type=signed-data", opensslSign(t, dir, acme(), part, "-nodetach"), 0},
		"without embedded": {multipartSigned, wrap(testBoundary, part, sigPart(opensslSign(t, dir, acme(), part, "-nocerts"))), 0},
		"no attributes":    {multipartSigned, wrap(testBoundary, part, sigPart(opensslSign(t, dir, acme(), part, "-noattr"))), 0},
	} {
		h := httpHeader("Content-Type", c.contentType, "As2-From", `"ACME AS2"`, "As2-To", "OURCO", "Message-Id", "<m@acme>")
		m, err := ParseMDN(h, c.body, acme().certs(), true)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !m.Signed || !m.Signer.Equal(acme().cert) || len(m.Notes) != c.notes || m.Text != "hello" ||
			m.From != "ACME AS2" || m.To != "OURCO" || m.MessageID != "<m@acme>" {
			t.Errorf("%s: %+v", name, m)
		}
		if err := m.Check("<Order 7@acme>", ours); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMDNSpellings(t *testing.T) {
	t.Parallel()
	good := foreignFields(processed, ours("sha256")+", sha-256")
	b64 := base64.StdEncoding.EncodeToString([]byte(good))
	for name, c := range map[string]struct {
		body []byte
		ok   bool
	}{
		"as it should be":        {foreignReport(good), true},
		"SHA-256":                {foreignReport(foreignFields(processed, ours("sha256")+", SHA-256")), true},
		"sha256":                 {foreignReport(foreignFields(processed, ours("sha256")+",sha256")), true},
		"no algorithm":           {foreignReport(foreignFields(processed, ours("sha1"))), true},
		"Received-content-MIC":   {foreignReport(strings.Replace(good, "Received-Content-MIC", "Received-content-MIC", 1)), true},
		"lower case":             {foreignReport(strings.Replace(good, "Original-Message-ID", "original-message-id", 1)), true},
		"no brackets":            {foreignReport(strings.Replace(good, "<Order 7@acme>", "Order 7@acme", 1)), true},
		"folded":                 {foreignReport(strings.Replace(good, "automatic-action/MDN-sent-automatically; ", "automatic-action/MDN-sent-automatically;\r\n\t", 1)), true},
		"empty lines":            {foreignReport("\r\n" + strings.Replace(good, "Disposition:", "\r\nDisposition:", 1)), true},
		"bare LF":                {[]byte(strings.ReplaceAll(string(foreignReport(good)), "\r\n", "\n")), true},
		"base64 part":            {[]byte(strings.Replace(string(foreignReport(b64)), "notification\r\n", "notification\r\nContent-Transfer-Encoding: base64\r\n", 1)), true},
		"announced, not encoded": {[]byte(strings.Replace(string(foreignReport(good)), "notification\r\n", "notification\r\nContent-Transfer-Encoding: base64\r\n", 1)), true},
		"unknown algorithm":      {foreignReport(foreignFields(processed, ours("sha256")+", md5")), false},
		"MIC is no base64":       {foreignReport(foreignFields(processed, "!!, sha-256")), false},
		"MIC is empty":           {foreignReport(foreignFields(processed, ", sha-256")), false},
	} {
		m, err := ParseMDN(httpHeader("Content-Type", foreignType), c.body, nil, false)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := m.Check("<Order 7@acme>", ours); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		contentType string
		body        []byte
	}{
		"another type":         {"text/html", []byte("<html>502</html>")},
		"no type":              {"", foreignReport(good)},
		"no notification":      {foreignType, wrap("R", []byte("Content-Type: text/plain\r\n\r\nok"))},
		"two notifications":    {foreignType, append(bytes.TrimSuffix(foreignReport(good), []byte("--R--\r\n")), foreignReport(good)...)},
		"no Disposition":       {foreignType, foreignReport("Original-Message-ID: <a>\r\n")},
		"two Dispositions":     {foreignType, foreignReport(good + "Disposition: x; failed\r\n")},
		"two MICs":             {foreignType, foreignReport(good + "Received-content-MIC: x, sha1\r\n")},
		"two ids":              {foreignType, foreignReport(good + "Original-Message-ID: <b>\r\n")},
		"cut off":              {foreignType, bytes.TrimSuffix(foreignReport(good), []byte("--R--\r\n"))},
		"no boundary":          {"multipart/report", foreignReport(good)},
		"a huge part":          {foreignType, foreignReport(good + "X: " + strings.Repeat("x", 100<<10))},
		"signed, no boundary":  {multipartSigned, foreignReport(good)},
		"signed is no report":  {multipartSigned, wrap(testBoundary, signedPart([]byte(good)), sigPart(sign(t, acme(), signedPart([]byte(good)))))},
		"Content-Type differs": {"text/plain\x00", foreignReport(good)},
	} {
		m, err := ParseMDN(httpHeader("Content-Type", c.contentType), c.body, acme().certs(), false)
		if m != nil || !errors.Is(err, ErrMDNMalformed) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}

// Forged MDNs never prove a delivery.
func TestForgedMDN(t *testing.T) {
	t.Parallel()
	good := foreignFields(processed, ours("sha256")+", sha-256")
	positive := append([]byte("Content-Type: "+foreignType+"\r\n\r\n"), foreignReport(good)...)
	negative := append([]byte("Content-Type: "+foreignType+"\r\n\r\n"),
		foreignReport(foreignFields(processed+"/error: decryption-failed", ours("sha256")+", sha-256"))...)
	replaced := func(old, with string) []byte { return bytes.Replace(positive, []byte(old), []byte(with), 1) }
	signedBy := func(who identity, part []byte) []byte { return wrap(testBoundary, part, sigPart(sign(t, who, part))) }
	negSig := sigPart(sign(t, acme(), negative))
	mixed := append([]byte("Content-Type: multipart/mixed; boundary=M\r\n\r\n"), wrap("M", positive, append([]byte("Content-Type: "+multipartSigned+"\r\n\r\n"), signedBy(acme(), negative)...))...)

	for name, c := range map[string]struct {
		contentType string
		body        []byte
		want        error
	}{
		"unsigned":                      {foreignType, foreignReport(good), ErrMDNUnsigned},
		"signed by another key":         {multipartSigned, signedBy(attacker(), positive), ErrMDNSignature},
		"changed after signing":         {multipartSigned, wrap(testBoundary, positive, negSig), ErrMDNSignature},
		"signature of a message":        {multipartSigned, wrap(testBoundary, positive, sigPart(sign(t, acme(), signedPart(nil)))), ErrMDNSignature},
		"signature missing":             {multipartSigned, wrap(testBoundary, positive), ErrMDNSignature},
		"signed by two, one unknown":    {multipartSigned, wrap(testBoundary, positive, sigPart(opensslMany(t, positive, acme(), attacker()))), ErrMDNSignature},
		"answers another message":       {multipartSigned, signedBy(acme(), replaced("<Order 7@acme>", "<Order 8@acme>")), ErrMDNOther},
		"names no message":              {multipartSigned, signedBy(acme(), replaced("Original-Message-ID: <Order 7@acme>\r\n", "")), ErrMDNOther},
		"wrong MIC":                     {multipartSigned, signedBy(acme(), replaced(ours("sha256"), mic256([]byte("y")))), ErrMDNMIC},
		"no MIC":                        {multipartSigned, signedBy(acme(), replaced("Received-Content-MIC", "X-MIC")), ErrMDNMIC},
		"MIC of another algorithm":      {multipartSigned, signedBy(acme(), replaced("sha-256", "sha-1")), ErrMDNMIC},
		"positive in the preamble":      {multipartSigned, append(bytes.Clone(positive), append([]byte("\r\n"), signedBy(acme(), negative)...)...), errNegative},
		"positive in the epilogue":      {multipartSigned, append(signedBy(acme(), negative), signedBy(attacker(), positive)...), errNegative},
		"positive part in front":        {multipartSigned, wrap(testBoundary, positive, negative, negSig), ErrMDNSignature},
		"positive part behind":          {multipartSigned, wrap(testBoundary, negative, negSig, positive), ErrMDNSignature},
		"positive beside signed":        {"multipart/mixed; boundary=M", mixed, ErrMDNMalformed},
		"positive around signed":        {foreignType, append(bytes.TrimSuffix(foreignReport(good), []byte("--R--\r\n")), wrap("R", append([]byte("Content-Type: "+multipartSigned+"\r\n\r\n"), signedBy(acme(), negative)...))...), ErrMDNUnsigned},
		"signed inside signed":          {multipartSigned, signedBy(acme(), append([]byte("Content-Type: multipart/signed; boundary=IN\r\n\r\n"), wrap("IN", positive, sigPart(sign(t, attacker(), positive)))...)), ErrMDNMalformed},
		"opaque by another key":         {"application/pkcs7-mime", opaqueSigned(t, attacker(), positive), ErrMDNSignature},
		"positive words in the text":    {multipartSigned, signedBy(acme(), bytes.Replace(negative, []byte("hello"), []byte("Disposition: "+processed), 1)), errNegative},
		"negative, signed as it should": {multipartSigned, signedBy(acme(), negative), errNegative},
	} {
		m, err := ParseMDN(httpHeader("Content-Type", c.contentType), c.body, acme().certs(), true)
		if err == nil {
			err = m.Check("<Order 7@acme>", ours)
		}
		var n *NegativeMDN
		if errors.As(err, &n) && n.Modifier == "decryption-failed" {
			err = errNegative
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	// Where no signature was asked for, a wrong one still counts against the MDN.
	if _, err := ParseMDN(httpHeader("Content-Type", multipartSigned), signedBy(attacker(), positive), acme().certs(), false); !errors.Is(err, ErrMDNSignature) {
		t.Errorf("%v", err)
	}
	// Without any certificate it counts as unsigned.
	m, err := ParseMDN(httpHeader("Content-Type", multipartSigned), signedBy(acme(), positive), nil, false)
	if err != nil || m.Signed || m.Signer != nil || len(m.Notes) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := ParseMDN(httpHeader("Content-Type", multipartSigned), signedBy(acme(), positive), nil, true); !errors.Is(err, ErrMDNSignature) {
		t.Errorf("%v", err)
	}
	if _, err := ParseMDNWith(httpHeader("Content-Type", multipartSigned), signedBy(acme(), positive), acme().certs(), true,
		cms.Policy{Digests: []cms.Digest{cms.SHA512}}); !errors.Is(err, ErrMDNSignature) {
		t.Errorf("a digest that the policy refuses: %v", err)
	}
}

var errNegative = errors.New("negative")

func TestClassifyDisposition(t *testing.T) {
	t.Parallel()
	const mode = "automatic-action/MDN-sent-automatically"
	for v, want := range map[string]struct {
		o        Outcome
		modifier string
	}{
		mode + "; processed":                             {Positive, ""},
		mode + ";processed":                              {Positive, ""},
		mode + "; Processed":                             {Positive, ""},
		mode + "; processed/":                            {Positive, ""},
		"AUTOMATIC; PROCESSED  ":                         {Positive, ""},
		"manual-action/MDN-sent-manually; processed":     {Positive, ""},
		"processed":                                      {Positive, ""},
		mode + "; processed/warning: duplicate-document": {PositiveWithWarning, "duplicate-document"},
		mode + "; processed/Warning: authentication-failed, processing continued": {PositiveWithWarning, "authentication-failed, processing continued"},
		mode + "; processed/error: decryption-failed":                             {Negative, "decryption-failed"},
		mode + "; processed/Error: authentication-failed":                         {Negative, "authentication-failed"},
		mode + "; processed/error":                                                {Negative, "error"},
		mode + "; processed/failure: x":                                           {Negative, "x"},
		mode + "; processed/something: x":                                         {Negative, "x"},
		mode + "; processed error: integrity-check-failed":                        {Negative, "integrity-check-failed"},
		mode + "; processed, error: x":                                            {Negative, "x"},
		mode + "; processed; error: x":                                            {Negative, "x"},
		mode + "; processedx":                                                     {Negative, ""},
		mode + "; failed/Failure: unsupported format":                             {Negative, "unsupported format"},
		mode + "; failed/Failure: unsupported MIC-algorithms":                     {Negative, "unsupported MIC-algorithms"},
		mode + "; failed":                                                         {Negative, ""},
		mode + "; displayed":                                                      {Negative, ""},
		mode + "; deleted":                                                        {Negative, ""},
		mode + ";":                                                                {Negative, ""},
		mode:                                                                      {Negative, "MDN-sent-automatically"},
		"":                                                                        {Negative, ""},
		"; processed/error: insufficient-message-security":                        {Negative, "insufficient-message-security"},
		mode + "; not processed":                                                  {Negative, "processed"},
		refuse(UnsupportedMICAlgorithms, "", "", nil).Disposition():               {Negative, "unsupported MIC-algorithms"},
		refuse(InsufficientMessageSecurity, "", "", nil).Disposition():            {Negative, "insufficient-message-security"},
		RefuseDuplicate().Disposition():                                           {Negative, "duplicate-document"},
		MDNParams{Warning: "duplicate-document"}.disposition():                    {PositiveWithWarning, "duplicate-document"},
		MDNParams{}.disposition():                                                 {Positive, ""},
		MDNParams{Refusal: RefusePair(), Warning: "duplicate-document"}.disposition(): {Negative, "authentication-failed"},
	} {
		if o, modifier := ClassifyDisposition(v); o != want.o || modifier != want.modifier {
			t.Errorf("%q: %d %q, want %d %q", v, o, modifier, want.o, want.modifier)
		}
	}
}

func TestIsMDN(t *testing.T) {
	t.Parallel()
	report := append([]byte("Content-Type: "+foreignType+"\r\n\r\n"), foreignReport("x: y\r\n")...)
	long := signedPart(bytes.Repeat([]byte("x\r\n"), 100<<10))
	for name, c := range map[string]struct {
		contentType string
		body        []byte
		want        bool
	}{
		"report":         {foreignType, foreignReport(""), true},
		"signed report":  {multipartSigned, wrap(testBoundary, report, sigPart([]byte("x"))), true},
		"signed message": {multipartSigned, wrap(testBoundary, long, sigPart([]byte("x"))), false},
		"encrypted":      {envelopedType, []byte{0x30}, false},
		"plain":          {"application/edifact", []byte("UNB"), false},
		"broken":         {"multipart/signed; boundary=a; boundary=b", nil, false},
		"no boundary":    {"multipart/signed", report, false},
	} {
		if got := IsMDN(MIMEHeaders{ContentType: c.contentType}, bytes.NewReader(c.body)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzParseMDN(f *testing.F) {
	good := foreignReport(foreignFields(processed, ours("sha256")+", sha-256"))
	part := append([]byte("Content-Type: "+foreignType+"\r\n\r\n"), good...)
	f.Add(foreignType, good)
	f.Add(multipartSigned, wrap(testBoundary, part, sigPart(sign(f, acme(), part))))
	f.Add(multipartSigned, wrap(testBoundary, part, sigPart(sign(f, attacker(), part))))
	f.Add("application/pkcs7-mime", opaqueSigned(f, acme(), part))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		h := http.Header{"Content-Type": {contentType}}
		m, err := ParseMDN(h, body, acme().certs(), true)
		if err != nil {
			if m != nil || !errors.Is(err, ErrMDNMalformed) && !errors.Is(err, ErrMDNUnsigned) && !errors.Is(err, ErrMDNSignature) {
				t.Fatalf("%v, %v", m, err)
			}
		} else if !m.Signed || !m.Signer.Equal(acme().cert) || m.Check("<Order 7@acme>", ours) != nil {
			t.Fatalf("the partner signed one MDN only, and it is not this one: %+v", m)
		}
		if m, err := ParseMDN(h, body, nil, false); err == nil {
			_ = m.Check(m.OriginalMessageID, ours)
		}
	})
}
