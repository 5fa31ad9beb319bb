package queue

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The streams and the first tokens of their subjects.
const (
	workStream   = "DDIFF_WORK"
	resultStream = "DDIFF_RESULT"
	boardBucket  = "DDIFF_BOARD"
	boardStream  = "KV_" + boardBucket

	workSubject   = "ddiff.work"
	resultSubject = "ddiff.result"
	boardSubject  = "$KV." + boardBucket
	// noticeSubject is the first part of the subjects on which the server announces changes of the board; the key follows.
	noticeSubject = "ddiff.board"
	// requestSubject is that of requests to the leader.
	requestSubject = "ddiff.request"
)

const (
	// MaxNameBytes is the size limit of a campaign's or class's name.
	MaxNameBytes = 64
	// MaxIDBytes is the size limit of an item's id.
	MaxIDBytes = 256
	// MaxPayloadBytes is the size limit of an item's payload.
	MaxPayloadBytes = 512 << 10
)

// Token turns a name into one token of a subject or a key: letters, digits, "-" and "_" stay, any other byte becomes
// "=" and two hex digits. Different names have different tokens.
func Token(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

func untoken(token string) (string, error) {
	head, rest, found := strings.Cut(token, "=")
	var b strings.Builder
	b.WriteString(head)
	for found {
		if len(rest) < 2 {
			return "", fmt.Errorf("%w: token %q ends early", ErrBadName, token)
		}
		c, err := hex.DecodeString(rest[:2])
		if err != nil {
			return "", fmt.Errorf("%w: token %q: %w", ErrBadName, token, err)
		}
		b.Write(c)
		head, rest, found = strings.Cut(rest[2:], "=")
		b.WriteString(head)
	}
	return b.String(), nil
}

// token is Token for a campaign or a class; the result is also a valid consumer name.
func token(field, name string) (string, error) {
	if name == "" || len(name) > MaxNameBytes {
		return "", fmt.Errorf("%w: %s %q has %d bytes, the limits are 1 and %d", ErrBadName, field, name, len(name), MaxNameBytes)
	}
	return Token(name), nil
}

// checkID returns an error when id is not a valid header value.
func checkID(id string) error {
	if id == "" || len(id) > MaxIDBytes {
		return fmt.Errorf("%w: id %q has %d bytes, the limits are 1 and %d", ErrBadName, id, len(id), MaxIDBytes)
	}
	if !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) || strings.TrimSpace(id) != id {
		return fmt.Errorf("%w: id %q has control characters, leading or trailing space, or is not UTF-8", ErrBadName, id)
	}
	return nil
}
