package storage

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxKeyBytes is the longest key.
	MaxKeyBytes = 512
	// MaxElementBytes is the longest part of a key between two slashes, the limit that
	// file systems put on a name.
	MaxElementBytes = 255
)

// The first elements that no key may have, see the package comment.
const (
	tempElement  = ".tmp"
	stateElement = ".ddiff"
)

// CheckKey reports whether key may name an object: 1 to MaxKeyBytes bytes of UTF-8, made of
// elements joined by single slashes, none of them empty, "." or "..", without backslashes
// and control characters, and not below a reserved first element. The error wraps ErrBadKey
// and says which rule is broken.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty", ErrBadKey)
	case len(key) > MaxKeyBytes:
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrBadKey, len(key), MaxKeyBytes)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w %q: not UTF-8", ErrBadKey, key)
	}
	for _, r := range key {
		if r == '\\' || unicode.IsControl(r) {
			return fmt.Errorf("%w %q: character %q is not allowed", ErrBadKey, key, r)
		}
	}
	first := true
	for element := range strings.SplitSeq(key, "/") {
		switch {
		case element == "", element == ".", element == "..":
			return fmt.Errorf("%w %q: element %q is not allowed", ErrBadKey, key, element)
		case len(element) > MaxElementBytes:
			return fmt.Errorf("%w %q: an element of %d bytes, at most %d are allowed",
				ErrBadKey, key, len(element), MaxElementBytes)
		case first && (element == tempElement || element == stateElement):
			return fmt.Errorf("%w %q: element %q is reserved", ErrBadKey, key, element)
		}
		first = false
	}
	return nil
}

// CheckPrefix reports whether prefix may be listed: it is empty, or some valid key begins
// with it. A prefix is cut from the key's text, it need not end at a slash. The error wraps
// ErrBadKey.
func CheckPrefix(prefix string) error {
	if prefix == "" || CheckKey(prefix) == nil {
		return nil
	}
	return CheckKey(prefix + "x")
}
