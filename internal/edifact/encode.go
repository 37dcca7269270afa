package edifact

import (
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/edihub/edihub/internal/edi"
)

// parts is the part of ISO/IEC 8859 of a syntax identifier (ISO 9735-1 annex A). nil stands for
// one whose characters are ASCII or UTF-8.
func parts(identifier string) *charmap.Charmap {
	switch identifier {
	case "UNOC":
		return charmap.ISO8859_1
	case "UNOD":
		return charmap.ISO8859_2
	case "UNOE":
		return charmap.ISO8859_5
	case "UNOF":
		return charmap.ISO8859_7
	case "UNOG":
		return charmap.ISO8859_3
	case "UNOH":
		return charmap.ISO8859_4
	case "UNOI":
		return charmap.ISO8859_6
	case "UNOJ":
		return charmap.ISO8859_8
	case "UNOK":
		return charmap.ISO8859_9
	case "UNOL":
		return charmap.ISO8859_15
	}
	return nil
}

// encode writes UTF-8 text in the character set of a syntax identifier. bad is the first
// character that the set does not have; nothing is replaced.
func encode(identifier, text string) (out, bad string) {
	set, part := levelCharset(identifier), parts(identifier)
	if set == nil {
		return "", text
	}
	b := make([]byte, 0, len(text))
	for i, r := range text {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			if _, size = utf8.DecodeRuneInString(text[i:]); size == 1 {
				return "", text[i : i+1]
			}
		}
		char := text[i : i+size]
		switch {
		case r < utf8.RuneSelf || set.UTF8:
			b = append(b, char...)
			if r < utf8.RuneSelf && !set.Allows(char[0]) || r >= 0x80 && r < 0xa0 {
				return "", char
			}
			continue
		case part == nil:
			return "", char
		}
		c, ok := part.EncodeRune(r)
		if !ok || !set.Allows(c) {
			return "", char
		}
		b = append(b, c)
	}
	return string(b), ""
}

// tagOf is the tag of a segment, without explicit nesting.
func tagOf(raw []byte, d edi.Delimiters) []byte {
	for i, c := range raw {
		if c == d.Element || c == d.Component {
			return raw[:i]
		}
	}
	return raw
}
