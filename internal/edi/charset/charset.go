// Package charset converts values of EDIFACT interchanges between the bytes of their character
// set and text. It never replaces what cannot be carried without saying so.
package charset

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
)

// kind tells how the bytes of a set make characters.
type kind uint8

const (
	eightBit kind = iota // one byte, one character, by a table
	levelA               // a part of ISO 646, without small letters
	levelB               // the same with them
	utf                  // UTF-8
	iso2022              // ISO 2022 code extension, as Japanese partners use it
)

// Set is a character set. The zero Set is that of Bytes.
type Set struct {
	name  string
	kind  kind
	table *charmap.Charmap
}

// Bytes reads each byte as the character of ISO 8859-1 with its number and refuses nothing. It is
// for what names no character set.
var Bytes = Set{name: "bytes", table: charmap.ISO8859_1}

// ByIdentifier returns the set of a syntax identifier (ISO 9735-1 annex A; UNOL is of the UN's
// code list 0001). UNOY is read as UTF-8, which is what is sent under this name: UCS-2 has NUL
// bytes, and no interchange of single-byte delimiters can be in it.
func ByIdentifier(syntax string) (Set, bool) {
	switch syntax {
	case "UNOA":
		return Set{name: syntax, kind: levelA}, true
	case "UNOB":
		return Set{name: syntax, kind: levelB}, true
	case "UNOW", "UNOY":
		return Set{name: syntax, kind: utf}, true
	case "UNOX":
		return Set{name: syntax, kind: iso2022}, true
	}
	tables := map[string]*charmap.Charmap{
		"UNOC": charmap.ISO8859_1, "UNOD": charmap.ISO8859_2, "UNOE": charmap.ISO8859_5, "UNOF": charmap.ISO8859_7,
		"UNOG": charmap.ISO8859_3, "UNOH": charmap.ISO8859_4, "UNOI": charmap.ISO8859_6, "UNOJ": charmap.ISO8859_8,
		"UNOK": charmap.ISO8859_9, "UNOL": charmap.ISO8859_15,
	}
	table, ok := tables[syntax]
	return Set{name: syntax, table: table}, ok
}

// Name is the syntax identifier.
func (s Set) Name() string { return s.name }

// ByteError says that a value has a byte that its character set does not have (CONTRL 0085: 21).
type ByteError struct {
	Set    string
	Offset int // bytes from the start of the value
	Byte   byte
}

// Error implements error.
func (e *ByteError) Error() string {
	return fmt.Sprintf("byte 0x%02X at %d is no character of %s; send only its characters, or name another syntax identifier", e.Byte, e.Offset, e.Set)
}

// RuneError says that a text has a character that a character set cannot carry.
type RuneError struct {
	Set    string
	Offset int // bytes of UTF-8 from the start of the text
	Rune   rune
}

// Error implements error.
func (e *RuneError) Error() string {
	return fmt.Sprintf("%q (%U) cannot be carried in %s; name a syntax identifier that has it", e.Rune, e.Rune, e.Set)
}

// Check returns the place of the first byte of a value that is not in the set, -1 when all are.
// Line breaks and tabs are in all sets but UNOA and UNOB; no other control character is in any.
func (s Set) Check(value []byte) int {
	switch s.kind {
	case utf:
		for i := 0; i < len(value); {
			if c := value[i]; c < utf8.RuneSelf {
				if control(c) {
					return i
				}
				i++
				continue
			}
			r, n := utf8.DecodeRune(value[i:])
			if r == utf8.RuneError && n <= 1 || r < 0xa0 {
				return i
			}
			i += n
		}
		return -1
	case iso2022:
		_, err := s.Decode(value)
		if bad, ok := err.(*ByteError); ok { //nolint:errorlint // Decode returns no other error.
			return bad.Offset
		}
		return -1
	}
	for i, c := range value {
		if !s.Has(c) {
			return i
		}
	}
	return -1
}

// control reports whether c is a control character other than a line break or tab.
func control(c byte) bool { return c < ' ' && c != '\r' && c != '\n' && c != '\t' || c == 0x7f }

// Has reports whether a set of single bytes has a byte.
func (s Set) Has(c byte) bool {
	switch {
	case s.name == Bytes.name || s.name == "":
		return true
	case s.kind == levelA || s.kind == levelB:
		switch {
		case c >= 'a' && c <= 'z':
			return s.kind == levelB
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			return true
		}
		return strings.IndexByte(" .,-()/='+:?!\"%&*;<>", c) >= 0
	case c < utf8.RuneSelf:
		return !control(c)
	case c < 0xa0: // ISO 8859 has nothing there; Windows code pages do
		return false
	}
	return s.table.DecodeByte(c) != utf8.RuneError
}

// Decode returns a value as text. The error is *ByteError.
func (s Set) Decode(value []byte) (string, error) {
	if s.kind == iso2022 {
		return s.decode2022(value)
	}
	if i := s.Check(value); i >= 0 {
		return "", &ByteError{Set: s.name, Offset: i, Byte: value[i]}
	}
	return s.Lenient(value), nil
}

// decode2022 finds the first byte that does not decode by the length of what does before it.
func (s Set) decode2022(value []byte) (string, error) {
	text, err := japanese.ISO2022JP.NewDecoder().Bytes(value)
	if err == nil && !strings.ContainsRune(string(text), utf8.RuneError) {
		for i, c := range value {
			if control(c) && c != 0x1b {
				return "", &ByteError{Set: s.name, Offset: i, Byte: c}
			}
		}
		return string(text), nil
	}
	for i := range value {
		part, err := japanese.ISO2022JP.NewDecoder().Bytes(value[:i+1])
		if err != nil || strings.ContainsRune(strings.TrimSuffix(string(part), string(utf8.RuneError)), utf8.RuneError) || i == len(value)-1 {
			return "", &ByteError{Set: s.name, Offset: i, Byte: value[i]}
		}
	}
	return "", nil
}

// Lenient returns a value as text for people: what is not in the set becomes U+FFFD, or the
// character of its number where the set is a part of ISO 646.
func (s Set) Lenient(value []byte) string {
	ascii := true
	for _, c := range value {
		if c >= utf8.RuneSelf || c == 0x1b {
			ascii = false
			break
		}
	}
	switch {
	case ascii:
		return string(value)
	case s.kind == utf:
		return strings.ToValidUTF8(string(value), string(utf8.RuneError))
	case s.kind == iso2022:
		text, _ := japanese.ISO2022JP.NewDecoder().Bytes(value) // errors have become U+FFFD
		return string(text)
	}
	table := s.table
	if table == nil {
		table = charmap.ISO8859_1
	}
	var b strings.Builder
	for _, c := range value {
		b.WriteRune(table.DecodeByte(c))
	}
	return b.String()
}

// Encode returns a text as bytes of the set. The error is *RuneError: nothing is ever replaced.
func (s Set) Encode(text string) ([]byte, error) {
	switch s.kind {
	case utf:
		if i := s.Check([]byte(text)); i >= 0 {
			r, _ := utf8.DecodeRuneInString(text[i:])
			return nil, &RuneError{Set: s.name, Offset: i, Rune: r}
		}
		return []byte(text), nil
	case iso2022:
		for i, r := range text {
			if r == utf8.RuneError || r < ' ' && control(byte(r)) { //nolint:gosec // G115: below a blank.
				return nil, &RuneError{Set: s.name, Offset: i, Rune: r}
			}
			if _, err := japanese.ISO2022JP.NewEncoder().String(string(r)); err != nil {
				return nil, &RuneError{Set: s.name, Offset: i, Rune: r}
			}
		}
		out, err := japanese.ISO2022JP.NewEncoder().Bytes([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", s.name, err)
		}
		return out, nil
	}
	out := make([]byte, 0, len(text))
	for i, r := range text {
		c, ok := byte(r), r < utf8.RuneSelf //nolint:gosec // G115: used only below 128.
		if !ok && s.table != nil {
			c, ok = s.table.EncodeRune(r)
		}
		if !ok || !s.Has(c) {
			return nil, &RuneError{Set: s.name, Offset: i, Rune: r}
		}
		out = append(out, c)
	}
	return out, nil
}
