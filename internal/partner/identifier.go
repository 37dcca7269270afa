package partner

import (
	"fmt"
	"strings"

	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/edi"
)

const identifierRemedy = `write edifact:QUALIFIER:ID, edifact::ID where there is no qualifier, x12:QUALIFIER:ID, gs:ID or peppol:SCHEME:ID, for example "edifact:14:5412345000013"`

// ParseIdentifier reads a name-spaced identifier: "edifact:14:5412345000013", "edifact::ALPHA" or
// "edifact:ALPHA" (no qualifier), "x12:ZZ:ACME", "gs:ACME", "peppol:0088:5412345000013".
// Trailing blanks are dropped.
func ParseIdentifier(s string) (edi.Identifier, error) {
	space, rest, ok := strings.Cut(s, ":")
	if !ok {
		return "", fmt.Errorf("%q is not an identifier", s)
	}
	qualifier, id, two := strings.Cut(rest, ":")
	var out edi.Identifier
	switch space {
	case "edifact":
		if !two {
			qualifier, id = "", rest
		}
		out = edi.EDIFACTIdentifier(qualifier, id)
	case "x12":
		// X12.5 ISA05 and ISA07 are mandatory.
		if !two || strings.TrimSpace(qualifier) == "" {
			return "", fmt.Errorf("identifier %q has no qualifier", s)
		}
		out = edi.X12Identifier(qualifier, id)
	case "peppol":
		if !two || strings.TrimSpace(qualifier) == "" {
			return "", fmt.Errorf("identifier %q has no scheme", s)
		}
		out = edi.PeppolIdentifier(qualifier, id)
	case "gs":
		id = rest
		out = edi.GSIdentifier(rest)
	default:
		text := fmt.Sprintf("identifier %q has the unknown name space %q", s, space)
		if near := config.Nearest(space, []string{"edifact", "x12", "gs", "peppol"}); near != "" {
			text += fmt.Sprintf(" (did you mean %q?)", near)
		}
		return "", fmt.Errorf("%s", text)
	}
	if strings.TrimSpace(id) == "" {
		return "", fmt.Errorf("identifier %q is empty behind its name space", s)
	}
	return out, nil
}

// checkFileName refuses a pattern that the directory could not fill in.
func checkFileName(o *config.Object, pattern string) {
	const remedy = "allowed are {type}, {sender}, {receiver}, {control_ref} and {id}"
	if pattern == "" || strings.ContainsAny(pattern, "/\\\x00") || strings.HasPrefix(pattern, ".") {
		o.Fail("name", fmt.Sprintf("%q is not a pattern for file names", pattern), "no folders, and no dot at the start; "+remedy)
		return
	}
	rest := pattern
	for {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			return
		}
		end := strings.IndexByte(rest[open:], '}')
		if rest[open] == '}' || end < 0 {
			o.Fail("name", "a brace has no partner", remedy)
			return
		}
		switch name := rest[open+1 : open+end]; name {
		case "type", "sender", "receiver", "control_ref", "id":
		default:
			text := fmt.Sprintf("{%s} is not known", name)
			if near := config.Nearest(name, []string{"type", "sender", "receiver", "control_ref", "id"}); near != "" {
				text += fmt.Sprintf(", did you mean {%s}?", near)
			}
			o.Fail("name", text, remedy)
		}
		rest = rest[open+end+1:]
	}
}
