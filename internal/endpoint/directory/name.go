package directory

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/edihub/edihub/internal/pipeline/send"
)

// DefaultPattern is the pattern of a connection that names none.
const DefaultPattern = "{type}_{sender}_{control_ref}_{id}.edi"

const (
	maxValue = 64  // bytes of one value in a name
	maxName  = 200 // bytes of a name; file systems allow 255
)

// ErrPattern is the error of a file name pattern that cannot be used. Partner records are refused
// for more than this, so that no delivery meets it.
var ErrPattern = errors.New("file name pattern")

// FileName returns the name of a delivery's file: always one plain name that every file system
// takes, whatever the envelope said. It is the same for each retry; a resend "as new" has its
// generation in {id}.
func FileName(pattern string, d *send.Delivery) (string, error) {
	id := d.ID.String()
	if d.Generation > 0 {
		id += "-g" + strconv.Itoa(d.Generation)
	}
	values := map[string]string{
		"type":        d.Type,
		"sender":      d.Sender,
		"receiver":    d.Receiver,
		"control_ref": d.ControlRef,
		"id":          id,
	}
	name, err := expand(pattern, func(key string) string { return cleanValue(values[key]) })
	if err != nil {
		return "", err
	}
	return cleanName(name), nil
}

func expand(pattern string, value func(key string) string) (string, error) {
	if pattern == "" {
		pattern = DefaultPattern
	}
	var b strings.Builder
	for rest := pattern; rest != ""; {
		text, after, found := strings.Cut(rest, "{")
		if strings.ContainsAny(text, `/\}`) {
			return "", fmt.Errorf("%w %q: a name may not hold /, \\ or a lone }", ErrPattern, pattern)
		}
		b.WriteString(text)
		if !found {
			break
		}
		key, tail, closed := strings.Cut(after, "}")
		switch {
		case !closed:
			return "", fmt.Errorf("%w %q: { without }", ErrPattern, pattern)
		case !known(key):
			return "", fmt.Errorf("%w %q: {%s} is unknown; use {type}, {sender}, {receiver}, {control_ref} or {id}", ErrPattern, pattern, key)
		}
		b.WriteString(value(key))
		rest = tail
	}
	return b.String(), nil
}

func known(key string) bool {
	switch key {
	case "type", "sender", "receiver", "control_ref", "id":
		return true
	}
	return false
}

// cleanValue keeps letters and digits of ASCII and a few marks; an envelope may hold anything.
func cleanValue(s string) string {
	s = strings.TrimRight(s, " ")
	if len(s) > maxValue {
		s = s[:maxValue]
	}
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			return c
		case strings.ContainsRune("-.+=@", c):
			return c
		}
		return '_'
	}, s)
}

// cleanName makes the whole name safe: what the values are made of is clean by now, but their
// sum and the operator's own text may not be.
func cleanName(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || strings.ContainsRune(`/\:*?"<>|`, c) {
			return '_'
		}
		return c
	}, strings.ToValidUTF8(s, "_"))
	// A leading dot hides the file; a trailing dot or blank is dropped by some file servers.
	if strings.HasPrefix(s, ".") {
		s = "_" + s[1:]
	}
	if trimmed := strings.TrimRight(s, ". "); trimmed != s {
		s = trimmed + strings.Repeat("_", len(s)-len(trimmed))
	}
	if s == "" {
		s = "_"
	}
	if reserved(s) {
		s = "_" + s
	}
	return shorten(s)
}

// reserved reports names that file servers for Windows take for devices, with any extension.
func reserved(name string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch stem = strings.TrimRight(stem, " "); stem {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	return len(stem) == 4 && (strings.HasPrefix(stem, "COM") || strings.HasPrefix(stem, "LPT")) && stem[3] >= '0' && stem[3] <= '9'
}

// shorten keeps two long names apart by a hash, and keeps the extension.
func shorten(s string) string {
	if len(s) <= maxName {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	ext := filepath.Ext(s)
	if len(ext) > 16 {
		ext = ""
	}
	tail := "-" + hex.EncodeToString(sum[:8]) + ext
	return strings.ToValidUTF8(s[:maxName-len(tail)], "") + tail
}
