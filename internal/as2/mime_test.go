package as2

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestSplitMultipart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   string
		closed bool
		parts  []string // each as content|content with the line break
	}{
		"CRLF":                 {"--B\r\none\r\n--B\r\ntwo\r\n\r\n--B--\r\n", true, []string{"one|one\r\n", "two\r\n|two\r\n\r\n"}},
		"LF":                   {"--B\none\n--B\ntwo\n--B--\n", true, []string{"one|one\n", "two|two\n"}},
		"CR stays":             {"--B\r\none\r\r\n--B--", true, []string{"one\r|one\r\r\n"}},
		"preamble, epilogue":   {"pre\r\n--B\r\none\r\n--B--\r\npost\r\n--B\r\nx\r\n--B--\r\n", true, []string{"one|one\r\n"}},
		"padding":              {"--B \t\r\none\r\n--B--  \r\n", true, []string{"one|one\r\n"}},
		"longer words":         {"--B\r\n--BX\r\n--B-\r\nx--B\r\n--B x\r\n--B--\r\n", true, []string{"--BX\r\n--B-\r\nx--B\r\n--B x|--BX\r\n--B-\r\nx--B\r\n--B x\r\n"}},
		"empty part":           {"--B\r\n--B\r\n\r\n--B--", true, []string{"|", "|\r\n"}},
		"no end":               {"--B\r\none\r\n--B\r\ntwo", false, []string{"one|one\r\n"}},
		"no boundary":          {"one\r\ntwo", false, nil},
		"only the closing one": {"--B--", true, nil},
		"empty":                {"", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := splitMultipart(strings.NewReader(c.body), "B", 10)
			check(t, err)
			if m.closed != c.closed {
				t.Errorf("closed is %v", m.closed)
			}
			var got []string
			for _, p := range m.parts() {
				got = append(got, c.body[p.from:p.to]+"|"+c.body[p.from:p.withBreak])
			}
			if strings.Join(got, "¦") != strings.Join(c.parts, "¦") {
				t.Errorf("got %q, want %q", got, c.parts)
			}
		})
	}
}

// The search works in a buffer of 64 KiB; a delimiter must be found wherever it falls.
func TestSplitMultipartAcrossBuffers(t *testing.T) {
	t.Parallel()
	const boundary = "=_a_boundary_of_some_length"
	for at := 64<<10 - 60; at < 64<<10+20; at++ {
		first := bytes.Repeat([]byte("x"), at)
		copy(first[at-8:], "\r\n--=_a_") // a delimiter that begins and does not go on
		body := wrap(boundary, first, []byte("second"), bytes.Repeat([]byte("\r\n--"), 40<<10))
		m, err := splitMultipart(bytes.NewReader(body), boundary, 10)
		check(t, err)
		parts := m.parts()
		if !m.closed || len(parts) != 3 {
			t.Fatalf("at %d: %d parts, closed %v", at, len(parts), m.closed)
		}
		if got := body[parts[0].from:parts[0].to]; !bytes.Equal(got, first) {
			t.Fatalf("at %d: the first part has %d bytes", at, len(got))
		}
		if got := body[parts[1].from:parts[1].to]; string(got) != "second" {
			t.Fatalf("at %d: the second part is %q", at, got)
		}
	}
}

func TestMIMELimits(t *testing.T) {
	t.Parallel()
	many := bytes.Repeat([]byte("--B\r\nx\r\n"), 20)
	if _, err := splitMultipart(bytes.NewReader(many), "B", 16); !errors.Is(err, errMIMELimit) {
		t.Errorf("20 parts: %v", err)
	}
	l := Limits{HeaderBytes: 100, HeaderFields: 3}.withDefaults()
	for name, c := range map[string]struct {
		entity string
		want   error
	}{
		"fits":           {"A: b\r\nC: d\r\nE: f\r\n\r\nbody", nil},
		"fields":         {"A: b\r\nC: d\r\nE: f\r\nG: h\r\n\r\n", errMIMELimit},
		"bytes":          {"A: " + strings.Repeat("x", 200) + "\r\n\r\n", errMIMELimit},
		"no end":         {"A: b\r\n", errMIME},
		"nothing":        {"", errMIME},
		"no colon":       {"A b\r\n\r\n", errMIME},
		"continuation":   {" A: b\r\n\r\n", errMIME},
		"NUL":            {"A: b\x00\r\n\r\n", errMIME},
		"lone CR":        {"A: b\rC: d\r\n\r\n", errMIME},
		"twice":          {"Content-Type: a/b\r\ncontent-type: c/d\r\n\r\n", errMIME},
		"twice, blank":   {"Content-Type: a/b\r\ncontent-type : c/d\r\n\r\n", errMIME},
		"no headers":     {"\r\nbody", nil},
		"bare LF":        {"A: b\n\nbody", nil},
		"folded":         {"A: b\r\n\tc\r\n  d\r\n\r\nbody", nil},
		"name of blanks": {"  : b\r\n\r\n", errMIME},
	} {
		h, at, err := readHeader(strings.NewReader(c.entity), l)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if c.want == nil && c.entity[at:] != "body" {
			t.Errorf("%s: the body begins at %d", name, at)
		}
		if name == "folded" && h.get("a") != "b c d" {
			t.Errorf("unfolded to %q", h.get("a"))
		}
	}
}

func TestParseMediaType(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]string{
		`Multipart/Signed; boundary="a;b=c"; micalg=SHA-1`: "multipart/signed boundary=a;b=c",
		"multipart/signed;boundary=abc":                    "multipart/signed boundary=abc",
		"multipart/signed; BOUNDARY = \"a\\\"b\" ;":        `multipart/signed boundary=a"b`,
		"multipart/signed; boundary=abc (comment)":         "multipart/signed boundary=abc",
		`multipart/signed; boundary="abc`:                  "multipart/signed boundary=abc",
		"text/plain":                                       "text/plain boundary=",
		"":                                                 " boundary=",
		`multipart/mixed; boundary="C:\x"`:                 `multipart/mixed boundary=C:\x`,
	} {
		mt, params, err := parseMediaType(v)
		if got := mt + " boundary=" + params["boundary"]; err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", v, got, err, want)
		}
	}
	for _, v := range []string{
		"multipart/signed; boundary=a; boundary=b",
		`"multipart/signed; boundary=a"`,
		"multipart/signed boundary=a",
	} {
		if _, _, err := parseMediaType(v); !errors.Is(err, errMIME) {
			t.Errorf("%q: %v", v, err)
		}
	}
}

func TestFilename(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		disposition, contentType string
		decoded, safe            string
	}{
		"plain":              {`attachment; filename="orders 1.edi"`, "", "orders 1.edi", "orders 1.edi"},
		"no quotes":          {`attachment; filename=a.edi`, "", "a.edi", "a.edi"},
		"name of type":       {"", `application/edifact; name="b.edi"`, "b.edi", "b.edi"},
		"filename first":     {`attachment; filename=a.edi`, `x/y; name=b.edi`, "a.edi", "a.edi"},
		"RFC 2047 Q":         {`attachment; filename="=?UTF-8?Q?Bestell=C3=BCng.edi?="`, "", "Bestellüng.edi", "Bestellüng.edi"},
		"RFC 2047 B, split":  {`attachment; filename="=?UTF-8?B?w6TDtg==?= =?UTF-8?B?w7wuZWRp?="`, "", "äöü.edi", "äöü.edi"},
		"RFC 2047 latin 2":   {`attachment; filename="=?ISO-8859-2?Q?=B3=F3d=BC.edi?="`, "", "łódź.edi", "łódź.edi"},
		"RFC 2047 unknown":   {`attachment; filename="=?x-none?Q?a?="`, "", "=?x-none?Q?a?=", "=_x-none_Q_a_="},
		"RFC 2231":           {`attachment; filename*=UTF-8''%C3%A4%20b.edi; filename=fallback`, "", "ä b.edi", "ä b.edi"},
		"RFC 2231 latin 1":   {`attachment; filename*=iso-8859-1'de'%E4.edi`, "", "ä.edi", "ä.edi"},
		"RFC 2231 split":     {`attachment; filename*0*=UTF-8''%C3%A4; filename*1="b.edi"`, "", "äb.edi", "äb.edi"},
		"RFC 2231 broken":    {`attachment; filename*=%C3; filename=ok.edi`, "", "ok.edi", "ok.edi"},
		"raw 8-bit":          {"attachment; filename=\"\xe4.edi\"", "", "ä.edi", "ä.edi"},
		"path":               {`attachment; filename="../../etc/passwd"`, "", "../../etc/passwd", "passwd"},
		"Windows path":       {`attachment; filename="C:\temp\a.edi"`, "", `C:\temp\a.edi`, "a.edi"},
		"only dots":          {`attachment; filename=".."`, "", "..", ""},
		"hidden":             {`attachment; filename=".profile"`, "", ".profile", "profile"},
		"reserved":           {`attachment; filename="nul.edi"`, "", "nul.edi", "_nul.edi"},
		"reserved port":      {`attachment; filename="COM1"`, "", "COM1", "_COM1"},
		"quote and pipe":     {`attachment; filename="a\"b|c?.edi"`, "", `a"b|c?.edi`, "a_b_c_.edi"},
		"control":            {`attachment; filename*=UTF-8''a%0D%0Ab%00.edi`, "", "a\r\nb\x00.edi", "ab.edi"},
		"bidi":               {`attachment; filename*=UTF-8''a%E2%80%AEide.exe`, "", "a\u202eide.exe", "aide.exe"},
		"end in dot":         {`attachment; filename="a.edi. ."`, "", "a.edi. .", "a.edi"},
		"nothing":            {"attachment", "text/plain", "", ""},
		"broken":             {"attachment; filename=a; filename=b", "text/plain", "", ""},
		"stops at the path ": {`attachment; filename="dir/"`, "", "dir/", "dir"},
	} {
		f := filenameOf(MIMEHeaders{ContentDisposition: c.disposition, ContentType: c.contentType})
		if f.Decoded != c.decoded || f.Safe != c.safe {
			t.Errorf("%s: %q, %q; want %q, %q", name, f.Decoded, f.Safe, c.decoded, c.safe)
		}
	}
	long := SafeFilename(strings.Repeat("ä", 300) + ".edi")
	if len(long) > maxFilename || !strings.HasSuffix(long, "ä.edi") {
		t.Errorf("%d bytes, %q", len(long), long)
	}
	// What we write, we read.
	for _, name := range []string{"a.edi", "Bestellung 7 äöü łódź.edi", "100%.edi", "it's.edi"} {
		f := filenameOf(MIMEHeaders{ContentDisposition: dispositionHeader(name)})
		if f.Safe != name {
			t.Errorf("%q is written as %s and read as %q", name, dispositionHeader(name), f.Safe)
		}
	}
}
