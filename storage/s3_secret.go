package storage

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a string that only Reveal returns. Every verb of package fmt, slog and the JSON and text encodings print
// "[redacted]" instead, or nothing for an empty Secret.
type Secret struct {
	// A pointer: fmt does not call methods of unexported fields and prints the address instead of the string.
	value *string
}

var (
	_ fmt.Formatter  = Secret{}
	_ slog.LogValuer = Secret{}
)

// NewSecret returns a Secret with a value.
func NewSecret(value string) Secret { return Secret{value: &value} }

// Reveal returns the value.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// Format implements fmt.Formatter for all verbs.
func (s Secret) Format(f fmt.State, _ rune) {
	io.WriteString(f, s.String()) //nolint:errcheck // fmt ignores it
}

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler, which package encoding/json uses too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
