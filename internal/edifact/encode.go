package edifact

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/charset"
)

// encode writes UTF-8 text in the character set of a syntax identifier. bad is the first
// character that the set does not have; nothing is replaced.
func encode(identifier, text string) (out, bad string) {
	if levelCharset(identifier) == nil {
		return "", text
	}
	set, _ := charset.ByIdentifier(identifier)
	// The sets of files have line breaks and tabs, those of values do not.
	line := strings.IndexAny(text, "\t\r\n")
	if line < 0 {
		line = len(text)
	}
	b, err := set.Encode(text[:line])
	var no *charset.RuneError
	if errors.As(err, &no) {
		line = no.Offset
	}
	if line < len(text) {
		_, size := utf8.DecodeRuneInString(text[line:])
		return "", text[line : line+size]
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
