package storage

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted is what is shown in place of a Secret.
const redacted = "[redacted]"

// Secret is a string that does not show itself: every verb of package fmt, slog and the
// JSON and text encodings give "[redacted]" in its place, or nothing for an empty one. Only
// Reveal returns it.
type Secret struct {
	// A pointer, so that the address and not the string is printed where fmt may not call
	// methods: in an unexported field of another struct.
	value *string
}

var (
	_ fmt.Formatter  = Secret{}
	_ slog.LogValuer = Secret{}
)

// NewSecret returns a Secret that holds value.
func NewSecret(value string) Secret { return Secret{value: &value} }

// Reveal returns the string itself.
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
	io.WriteString(f, s.String()) //nolint:errcheck // fmt ignores it as well
}

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler, which package encoding/json uses too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
