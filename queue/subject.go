package queue

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The streams and the first tokens of their subjects.
const (
	workStream   = "DDIFF_WORK"
	deadStream   = "DDIFF_DEAD"
	resultStream = "DDIFF_RESULT"

	workSubject   = "ddiff.work"
	deadSubject   = "ddiff.dead"
	resultSubject = "ddiff.result"
)

const (
	// MaxNameBytes is the longest campaign and the longest class.
	MaxNameBytes = 64
	// MaxIDBytes is the longest id of an item.
	MaxIDBytes = 256
)

// token turns a campaign or a class into one token of a subject, which is a valid name of a
// consumer too: letters, digits, "-" and "_" stay, any other byte becomes "=" and two hex
// digits. Different names give different tokens.
func token(field, name string) (string, error) {
	if name == "" || len(name) > MaxNameBytes {
		return "", fmt.Errorf("%w: %s %q has %d bytes, 1 to %d are allowed", ErrBadName, field, name, len(name), MaxNameBytes)
	}
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String(), nil
}

// checkID reports whether id can travel in a header.
func checkID(id string) error {
	if id == "" || len(id) > MaxIDBytes {
		return fmt.Errorf("%w: id %q has %d bytes, 1 to %d are allowed", ErrBadName, id, len(id), MaxIDBytes)
	}
	if !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) || strings.TrimSpace(id) != id {
		return fmt.Errorf("%w: id %q has control characters, space at an end, or is not UTF-8", ErrBadName, id)
	}
	return nil
}
