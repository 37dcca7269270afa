package config

import (
	"fmt"
	"io"
)

// Mask is what every Secret prints.
const Mask = "***"

// Secret is a value that must never be shown. It prints as *** in every form of fmt, JSON,
// YAML and text; only Reveal gives the value. Two Secrets are compared with Equal.
type Secret struct {
	// A pointer, because fmt walks through unexported fields of an outer struct without
	// calling their methods: it then prints an address instead of the value.
	value *string
}

// NewSecret wraps a value.
func NewSecret(v string) Secret {
	if v == "" {
		return Secret{}
	}
	return Secret{value: &v}
}

// Reveal returns the value, for the one place that uses it.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Empty reports whether there is no value.
func (s Secret) Empty() bool { return s.value == nil }

// Equal reports whether both hold the same value.
func (s Secret) Equal(t Secret) bool { return s.Reveal() == t.Reveal() }

// String implements fmt.Stringer.
func (s Secret) String() string { return Mask }

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return Mask }

// Format implements fmt.Formatter, because a verb such as %d would otherwise walk into the
// struct.
func (s Secret) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, Mask) // a fmt.State keeps its own errors
}

// MarshalText implements encoding.TextMarshaler, which JSON and YAML use too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(Mask), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Secret) UnmarshalText(b []byte) error {
	*s = NewSecret(string(b))
	return nil
}
