package as2

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseHeaders(t *testing.T) {
	t.Parallel()
	h := httpHeader(
		"As2-From", `"ACME \"AS2\" \\ x"`,
		"As2-To", "OURCO",
		"As2-Version", "1.2",
		"Message-Id", " <A b.C@acme> ",
		"Subject", "orders",
		"Content-Type", "application/pkcs7-mime; smime-type=enveloped-data",
		"Content-Transfer-Encoding", "base64",
		"Content-Disposition", "attachment",
		"Disposition-Notification-To", "edi@acme",
		"Disposition-Notification-Options", "signed-receipt-protocol=optional, pkcs7-signature; signed-receipt-micalg=required, md5, SHA-256, sha1",
		"Receipt-Delivery-Option", "https://acme.example/mdn?a=b",
		"User-Agent", "x",
	)
	got, err := ParseHeaders(h)
	check(t, err)
	want := Headers{
		From: `ACME "AS2" \ x`, To: "OURCO", Version: "1.2", MessageID: "<A b.C@acme>", Subject: "orders", UserAgent: "x",
		MIME: MIMEHeaders{
			ContentType:      "application/pkcs7-mime; smime-type=enveloped-data",
			TransferEncoding: "base64", ContentDisposition: "attachment",
		},
		ReceiptTo: "edi@acme", ReceiptURL: "https://acme.example/mdn?a=b",
		Options: ReceiptOptions{Signed: true, Protocols: []string{"pkcs7-signature"}, MICRequired: true, MICAlgs: []string{"md5", "SHA-256", "sha1"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if !got.WantsMDN() || !got.WantsAsync() || !got.WantsSigned() {
		t.Error("an asynchronous signed MDN was asked for")
	}
	if alg := got.Options.MICAlg(); alg != "SHA-256" {
		t.Errorf("MIC algorithm %q, want the first supported one as spelled", alg)
	}
}

func TestParseHeadersRefuses(t *testing.T) {
	t.Parallel()
	good := func() http.Header { return httpHeader("AS2-From", "A", "AS2-To", "B", "Message-ID", "<1@a>") }
	if _, err := ParseHeaders(good()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(http.Header)
		field  string
	}{
		"no AS2-From":           {func(h http.Header) { delete(h, "AS2-From") }, "AS2-From"},
		"no AS2-To":             {func(h http.Header) { delete(h, "AS2-To") }, "AS2-To"},
		"no Message-ID":         {func(h http.Header) { delete(h, "Message-ID") }, "Message-ID"},
		"empty brackets":        {func(h http.Header) { h["Message-ID"] = []string{"<>"} }, "Message-ID"},
		"long Message-ID":       {func(h http.Header) { h["Message-ID"] = []string{strings.Repeat("x", 999)} }, "Message-ID"},
		"line in Message-ID":    {func(h http.Header) { h["Message-ID"] = []string{"<1@a>\r\nX: y"} }, "Message-ID"},
		"8-bit Message-ID":      {func(h http.Header) { h["Message-ID"] = []string{"<\xfc@a>"} }, "Message-ID"},
		"two senders":           {func(h http.Header) { h["As2-From"] = []string{"C"} }, "AS2-From"},
		"two Message-IDs":       {func(h http.Header) { h["Message-ID"] = []string{"<1@a>", "<2@a>"} }, "Message-ID"},
		"two Content-Types":     {func(h http.Header) { h["Content-Type"] = []string{"text/plain", "text/html"} }, "Content-Type"},
		"quote not closed":      {func(h http.Header) { h["AS2-To"] = []string{`"B`} }, "AS2-To"},
		"quote inside":          {func(h http.Header) { h["AS2-To"] = []string{`"B"C"`} }, "AS2-To"},
		"empty name":            {func(h http.Header) { h["AS2-To"] = []string{`""`} }, "AS2-To"},
		"long name":             {func(h http.Header) { h["AS2-To"] = []string{strings.Repeat("n", 129)} }, "AS2-To"},
		"8-bit name":            {func(h http.Header) { h["AS2-To"] = []string{"K\xc3\xb6ln"} }, "AS2-To"},
		"control in async URL":  {func(h http.Header) { h["Receipt-Delivery-Option"] = []string{"http://a\r\nX: y"} }, "Receipt-Delivery-Option"},
		"control in media type": {func(h http.Header) { h["Content-Type"] = []string{"text/plain\x00"} }, "Content-Type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := good()
			c.change(h)
			_, err := ParseHeaders(h)
			var he *HeaderError
			if !errors.As(err, &he) || he.Field != c.field || he.Problem == "" {
				t.Errorf("got %v, want a HeaderError about %s", err, c.field)
			}
		})
	}
}

func TestMessageIDKeepsItsBytes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 998)
	for _, id := range []string{"<a@b>", "a@b", "<no-at-sign>", "a@b>", "<a b@c>", long} {
		h, err := ParseHeaders(httpHeader("AS2-From", "A", "AS2-To", "B", "Message-Id", id))
		check(t, err)
		if h.MessageID != id {
			t.Errorf("%q became %q", id, h.MessageID)
		}
	}
	for _, id := range []string{"<a@b>", "a@b", " <a@b> ", "a@b>", "<a@b", "< a@b >"} {
		if n := NormalizeMessageID(id); n != "a@b" {
			t.Errorf("%q compares as %q", id, n)
		}
		if b := BracketMessageID(id); b != "<a@b>" {
			t.Errorf("%q is sent as %q", id, b)
		}
	}
	if NormalizeMessageID("<A@b>") == NormalizeMessageID("<a@b>") {
		t.Error("Message-IDs differ in case")
	}
}

func TestNamesRoundTrip(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]string{
		"OURCO":     "OURCO",
		"ACME AS2":  `"ACME AS2"`,
		`A"B`:       `"A\"B"`,
		`A\B`:       `"A\\B"`,
		" lead":     `" lead"`,
		"a;b,c=d@e": "a;b,c=d@e",
		`"`:         `"\""`,
	} {
		if q := QuoteName(name); q != written {
			t.Errorf("QuoteName(%q) = %s, want %s", name, q, written)
		}
		back, err := UnquoteName(written)
		if err != nil || back != name {
			t.Errorf("UnquoteName(%s) = %q, %v", written, back, err)
		}
	}
	// libas2 does not quote names with blanks.
	if n, err := UnquoteName("ACME AS2"); err != nil || n != "ACME AS2" {
		t.Errorf("%q, %v", n, err)
	}
}

func TestReceiptOptions(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]ReceiptOptions{
		"": {},
		"signed-receipt-protocol=optional, pkcs7-signature; signed-receipt-micalg=optional, sha1, md5": {
			Signed: true, Protocols: []string{"pkcs7-signature"}, MICAlgs: []string{"sha1", "md5"},
		},
		"SIGNED-RECEIPT-MICALG=Required,SHA256;Signed-Receipt-Protocol=REQUIRED,PKCS7-Signature": {
			Signed: true, ProtocolRequired: true, Protocols: []string{"PKCS7-Signature"}, MICRequired: true, MICAlgs: []string{"SHA256"},
		},
		"signed-receipt-protocol=pkcs7-signature":                          {Signed: true, Protocols: []string{"pkcs7-signature"}},
		"signed-receipt-micalg=optional, sha-256":                          {Signed: true, MICAlgs: []string{"sha-256"}},
		"signed-receipt-protocol=optional, pkcs7-signature, sha1":          {Signed: true, Protocols: []string{"pkcs7-signature", "sha1"}},
		"signed-receipt-protocol=optional, pgp":                            {Protocols: []string{"pgp"}},
		" ; ;; signed-receipt-micalg ; =x; foo=required, bar":              {},
		`signed-receipt-protocol="optional", "pkcs7-signature"`:            {Signed: true, Protocols: []string{"pkcs7-signature"}},
		`foo=", signed; signed-receipt-protocol=optional, pkcs7-signature`: {Signed: true, Protocols: []string{"pkcs7-signature"}},
	} {
		if got := ParseReceiptOptions(v); !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n got %+v\nwant %+v", v, got, want)
		}
	}
	for v, modifier := range map[string]string{
		"signed-receipt-micalg=required, md5, ripemd160": UnsupportedMICAlgorithms,
		"signed-receipt-micalg=optional, md5":            "",
		"signed-receipt-micalg=required, md5, sha1":      "",
		"signed-receipt-micalg=required":                 "",
		"signed-receipt-protocol=required, pgp":          UnsupportedFormat,
		"signed-receipt-protocol=optional, pgp":          "",
	} {
		r := ParseReceiptOptions(v).Refusal()
		switch {
		case modifier == "" && r != nil:
			t.Errorf("%q is refused: %v", v, r)
		case modifier != "" && (r == nil || r.Modifier != modifier):
			t.Errorf("%q: got %v, want %s", v, r, modifier)
		}
	}
}

func FuzzParseHeaders(f *testing.F) {
	f.Add("A", "B", "<1@a>", "signed-receipt-protocol=optional, pkcs7-signature; signed-receipt-micalg=optional, sha1", "text/plain; name=x")
	f.Add(`"A \"B\""`, `"`, "\r\n", `signed-receipt-micalg="`, `a/b; boundary="`)
	f.Fuzz(func(t *testing.T, from, to, id, options, contentType string) {
		h, err := ParseHeaders(httpHeader("AS2-From", from, "AS2-To", to, "Message-ID", id,
			"Disposition-Notification-Options", options, "Content-Type", contentType))
		_, _, _ = parseMediaType(contentType)
		if err != nil {
			var he *HeaderError
			if !errors.As(err, &he) {
				t.Fatalf("not a HeaderError: %v", err)
			}
			return
		}
		for _, v := range []string{h.From, h.To, h.MessageID, h.Options.MICAlg()} {
			if strings.ContainsAny(v, "\r\n\x00") {
				t.Fatalf("a line break got through: %q", v)
			}
		}
		back, err := UnquoteName(QuoteName(h.From))
		if err != nil || back != h.From {
			t.Fatalf("%q is written as %s and read as %q, %v", h.From, QuoteName(h.From), back, err)
		}
	})
}
