package edifact

import (
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/edihub/edihub/internal/edi"
	"github.com/edihub/edihub/internal/edi/scan"
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
	set, part := charset(identifier), parts(identifier)
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

// CheckCharacters reads messages that are to be copied unchanged from an interchange of one
// syntax identifier into one of another, and finds the first character that the other cannot
// carry, or that would become another one there. nil is none. base is the place of the first byte
// in its file. An error is a failed read, an *edi.LimitError or that of ctx.
//
// It is for WriteEnvelope with another Syntax than that of the messages: the bytes are copied, so
// that what the sets do not share would arrive as something else.
func CheckCharacters(ctx context.Context, r io.Reader, d edi.Delimiters, from, to string, base int64) (*edi.Finding, error) {
	if from == to {
		return nil, nil //nolint:nilnil // no finding is a result.
	}
	set := charset(to)
	sc := scan.New(r, base, scan.Limits{}, scan.UNOPackage)
	sc.SetDelimiters(d)
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		seg, err := sc.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil //nolint:nilnil // no finding is a result.
		}
		if err != nil {
			return nil, err
		}
		for i, c := range seg.Raw {
			delimiter := c == d.Element || c == d.Component || c == d.Repetition || c == d.Release
			if delimiter && c != 0 || set != nil && set.Allows(c) && (c < utf8.RuneSelf || same(c, from, to)) {
				continue
			}
			return &edi.Finding{
				Rule: edi.RuleElementCharset, Severity: edi.Fatal, Segment: scan.Clip(tagOf(seg.Raw, d)), Actual: scan.Clip(seg.Raw[i : i+1]), Expected: to,
				Position: edi.Position{Segment: n, Offset: seg.Offset + int64(i)},
				Message:  "the message has a character of " + from + " that " + to + " cannot carry; name a syntax identifier that has it, such as " + from,
			}, nil
		}
	}
}

// same reports whether a byte above ASCII is the same character in both sets.
func same(c byte, from, to string) bool {
	a, b := parts(from), parts(to)
	return a != nil && b != nil && a.DecodeByte(c) == b.DecodeByte(c)
}

func tagOf(raw []byte, d edi.Delimiters) []byte {
	for i, c := range raw {
		if c == d.Element || c == d.Component {
			return raw[:i]
		}
	}
	return raw
}
