package as2

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"mime"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxFilename is the longest sanitised file name in bytes; every usual file system takes it.
const maxFilename = 200

// Filename is the name that the sender gave a file.
type Filename struct {
	Original string // as it travelled, control characters removed; for display and records
	Decoded  string // RFC 2047 and RFC 2231 undone
	Safe     string // Decoded, made fit for a folder: no path, no reserved name; "" if nothing is left
}

// filenameOf reads the file name of a MIME entity: filename of Content-Disposition (RFC 2183
// §2.3), else name of Content-Type. A broken header gives an empty name, never an error, because
// the name is only a courtesy.
func filenameOf(m MIMEHeaders) Filename {
	for _, at := range []struct{ value, param string }{
		{m.ContentDisposition, "filename"},
		{m.ContentType, "name"},
	} {
		_, params, err := parseMediaType(at.value)
		if err != nil {
			continue
		}
		if f, ok := paramName(params, at.param); ok {
			f.Safe = SafeFilename(f.Decoded)
			return f
		}
	}
	return Filename{}
}

// paramName prefers the RFC 2231 form of a parameter (RFC 6266 §4.3).
func paramName(params map[string]string, name string) (Filename, bool) {
	if raw, ok := params[name+"*"]; ok {
		if decoded, ok := extended(raw); ok {
			return Filename{Original: printable(raw), Decoded: decoded}, true
		}
	}
	if raw, decoded, ok := continued(params, name); ok {
		return Filename{Original: printable(raw), Decoded: decoded}, true
	}
	raw, ok := params[name]
	if !ok {
		return Filename{}, false
	}
	return Filename{Original: printable(raw), Decoded: decodeWords(raw)}, true
}

// extended decodes charset'language'percent-encoded (RFC 2231 §4).
func extended(raw string) (string, bool) {
	charset, rest, ok := strings.Cut(raw, "'")
	if !ok {
		return "", false
	}
	_, text, ok := strings.Cut(rest, "'")
	if !ok {
		return "", false
	}
	return decodeCharset(charset, unpercent(text))
}

// continued joins name*0, name*1*, … (RFC 2231 §3 and §4.1).
func continued(params map[string]string, name string) (raw, decoded string, ok bool) {
	charset := ""
	var text []byte
	var all strings.Builder
	for i := 0; ; i++ {
		key := name + "*" + strconv.Itoa(i)
		if v, there := params[key+"*"]; there {
			all.WriteString(v)
			if i == 0 {
				var rest string
				if charset, rest, there = strings.Cut(v, "'"); !there {
					return "", "", false
				}
				if _, v, there = strings.Cut(rest, "'"); !there {
					return "", "", false
				}
			}
			text = append(text, unpercent(v)...)
			continue
		}
		v, there := params[key]
		if !there {
			break
		}
		all.WriteString(v)
		text = append(text, v...)
	}
	if all.Len() == 0 {
		return "", "", false
	}
	decoded, ok = decodeCharset(charset, text)
	return all.String(), decoded, ok
}

func unpercent(s string) []byte {
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if b, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				out = append(out, b[0])
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return out
}

// decodeWords decodes RFC 2047 words, which do not belong into a parameter but are sent there.
// Bytes beyond ASCII that are not UTF-8 are read as ISO-8859-1.
func decodeWords(raw string) string {
	if !utf8.ValidString(raw) {
		raw = latin1([]byte(raw))
	}
	if !strings.Contains(raw, "=?") {
		return raw
	}
	d := mime.WordDecoder{CharsetReader: func(charset string, input io.Reader) (io.Reader, error) {
		b, err := io.ReadAll(input)
		if err != nil {
			return nil, err
		}
		s, ok := decodeCharset(charset, b)
		if !ok {
			return nil, fmt.Errorf("unknown character set %q", charset)
		}
		return bytes.NewReader([]byte(s)), nil
	}}
	out, err := d.DecodeHeader(raw)
	if err != nil {
		return raw
	}
	return out
}

// SafeFilename makes a name fit to be created in a folder of any operating system: the last
// element of a path, without control and format characters and without characters and names
// that some system reserves, at most 200 bytes. It may be empty, and it may stand there already:
// never overwrite.
func SafeFilename(name string) string {
	name = strings.ToValidUTF8(name, "_")
	name = path.Base("/" + strings.ReplaceAll(name, `\`, "/"))
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r): // line breaks, bidirectional overrides
			return -1
		case strings.ContainsRune(`<>:"|?*/`, r), r == utf8.RuneError:
			return '_'
		}
		return r
	}, name)
	name = strings.TrimRight(strings.TrimLeft(name, ". "), ". ")
	stem, _, _ := strings.Cut(name, ".")
	if reservedName(strings.TrimRight(stem, " ")) {
		name = "_" + name
	}
	if len(name) > maxFilename {
		ext := path.Ext(name)
		if len(ext) > 20 {
			ext = ""
		}
		cut := maxFilename - len(ext)
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = strings.TrimRight(name[:cut], ". ") + ext
	}
	return name
}

// reservedName reports whether Windows takes a name for a device.
func reservedName(stem string) bool {
	switch s := strings.ToUpper(stem); s {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	default:
		return len(s) == 4 && (strings.HasPrefix(s, "COM") || strings.HasPrefix(s, "LPT")) && s[3] >= '0' && s[3] <= '9'
	}
}

// dispositionHeader writes Content-Disposition for a file name: plain where it is ASCII, else
// with the RFC 5987 form beside an ASCII fall-back. It is one line.
func dispositionHeader(name string) string {
	name = SafeFilename(name)
	if name == "" {
		return "attachment"
	}
	ascii := strings.Map(func(r rune) rune {
		if r > '~' {
			return '_'
		}
		return r
	}, name)
	out := `attachment; filename="` + ascii + `"` // SafeFilename left no quote and no backslash
	if ascii != name {
		out += "; filename*=UTF-8''" + percent(name)
	}
	return out
}

// percent writes all but the attr-char of RFC 5987 §3.2.1 as %XX.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$&+-.^_`|~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}
