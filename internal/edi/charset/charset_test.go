package charset

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func set(t testing.TB, id string) Set {
	t.Helper()
	s, ok := ByIdentifier(id)
	if !ok {
		t.Fatalf("%s is not known", id)
	}
	return s
}

func TestDecodeAndEncode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ id, bytes, text string }{
		{"UNOA", "ORDER 'A' (1)", "ORDER 'A' (1)"},
		{"UNOB", "Order <a>", "Order <a>"},
		{"UNOC", "S\xfcd Lager", "Süd Lager"},
		{"UNOD", "\xa3\xf3d\xbc", "Łódź"},
		{"UNOE", "\xbc\xde\xe1\xda\xd2\xd0", "Москва"},
		{"UNOF", "\xc1\xe8\xde\xed\xe1", "Αθήνα"},
		{"UNOG", "\xa1\xa9", "Ħİ"},
		{"UNOH", "\xd1\xbb", "Ņģ"},
		{"UNOI", "\xe3\xd1\xcd\xc8\xc7", "\u0643\u0631\u062d\u0628\u0627"},
		{"UNOJ", "\xf9\xec\xe5\xed", "שלום"},
		{"UNOK", "\xddstanbul \xfe", "İstanbul ş"},
		{"UNOL", "10 \xa4", "10 €"},
		{"UNOW", "S\xc3\xbcd \xe2\x82\xac", "Süd €"},
		{"UNOY", "S\xc3\xbcd", "Süd"},
		{"UNOX", "A \x1b$B4A\x1b(B", "A 漢"},
		{"UNOC", "A\r\nB\tC", "A\r\nB\tC"},
	} {
		s := set(t, c.id)
		text, err := s.Decode([]byte(c.bytes))
		if err != nil || text != c.text {
			t.Errorf("%s: decoded %q, %v; want %q", c.id, text, err, c.text)
		}
		back, err := s.Encode(c.text)
		if err != nil || string(back) != c.bytes {
			t.Errorf("%s: encoded %q, %v; want %q", c.id, back, err, c.bytes)
		}
		if i := s.Check([]byte(c.bytes)); i != -1 {
			t.Errorf("%s: byte %d is said to be outside", c.id, i)
		}
	}
}

func TestOutside(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id, bytes string
		at        int
	}{
		{"UNOA", "Order", 1}, {"UNOA", "A\r\nB", 1}, {"UNOB", "a\nb", 1}, {"UNOB", "a@b", 1}, {"UNOC", "A\x85B", 1}, {"UNOC", "A\x00", 1},
		{"UNOF", "A\xffB", 1}, {"UNOI", "\xa1", 0}, {"UNOW", "S\xfcd", 1}, {"UNOW", "A\xc2\x85", 1}, {"UNOY", "\xed\xa0\x80", 0}, {"UNOX", "A\xfc", 1}, {"UNOX", "A\x07", 1},
	} {
		s := set(t, c.id)
		if got := s.Check([]byte(c.bytes)); got != c.at {
			t.Errorf("%s %q: place %d, want %d", c.id, c.bytes, got, c.at)
		}
		_, err := s.Decode([]byte(c.bytes))
		var bad *ByteError
		if !errors.As(err, &bad) || bad.Offset != c.at || bad.Byte != c.bytes[c.at] || bad.Set != c.id {
			t.Errorf("%s %q: %v", c.id, c.bytes, err)
		}
	}
	for _, c := range []struct {
		id, text string
		at       int
		r        rune
	}{
		{"UNOA", "Ab", 1, 'b'}, {"UNOB", "a_", 1, '_'}, {"UNOC", "10 €", 3, '€'}, {"UNOC", "a?\u0394", 2, 'Δ'}, {"UNOD", "ü ñ", 3, 'ñ'}, {"UNOW", "a\x00", 1, 0}, {"UNOX", "a😀", 1, '😀'}, {"UNOX", "\x01", 0, 1},
	} {
		_, err := set(t, c.id).Encode(c.text)
		var bad *RuneError
		if !errors.As(err, &bad) || bad.Offset != c.at || bad.Rune != c.r {
			t.Errorf("%s %q: %v", c.id, c.text, err)
		}
	}
	if _, ok := ByIdentifier("UNOZ"); ok {
		t.Error("UNOZ is known")
	}
}

func TestLenient(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ id, bytes, want string }{
		{"UNOA", "S\xfcd", "Süd"}, {"UNOW", "S\xfcd", "S\ufffdd"}, {"UNOF", "\xff", "\ufffd"}, {"UNOC", "S\xfcd", "Süd"},
	} {
		if got := set(t, c.id).Lenient([]byte(c.bytes)); got != c.want {
			t.Errorf("%s: %q, want %q", c.id, got, c.want)
		}
	}
	if got := (Set{}).Lenient([]byte("\xfc")); got != "ü" || Bytes.Check([]byte("\x00\xff")) != -1 || (Set{}).Check([]byte("\x00\xff")) != -1 {
		t.Errorf("bytes: %q", got)
	}
}

// FuzzRoundTrip: what decodes encodes to the same bytes, and nothing becomes a question mark.
func FuzzRoundTrip(f *testing.F) {
	f.Add("UNOC", []byte("S\xfcd"))
	f.Add("UNOX", []byte("\x1b$B4A\x1b(B"))
	f.Add("UNOW", []byte("\xe2\x82\xac"))
	f.Fuzz(func(t *testing.T, id string, value []byte) {
		s, ok := ByIdentifier(id)
		if !ok {
			return
		}
		text, err := s.Decode(value)
		if (err == nil) != (s.Check(value) < 0) {
			t.Fatalf("Decode %v, Check %d", err, s.Check(value))
		}
		if err != nil {
			return
		}
		back, err := s.Encode(text)
		if err != nil {
			t.Fatalf("%q does not encode: %v", text, err)
		}
		if id != "UNOX" && !bytes.Equal(back, value) { // ISO 2022 has more than one way to shift
			t.Fatalf("%q became %q", value, back)
		}
		if strings.Count(text, "?") != bytes.Count(value, []byte("?")) && id != "UNOX" {
			t.Fatalf("%q decodes to %q", value, text)
		}
	})
}
