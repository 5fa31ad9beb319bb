package storage

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxKeyBytes is the maximum length of a key.
	MaxKeyBytes = 512
	// MaxElementBytes is the maximum length of a key element, which is the limit of file systems for a name.
	MaxElementBytes = 255
)

// The reserved first elements, see the package comment.
const (
	tempElement  = ".tmp"
	stateElement = ".ddiff"
)

// CheckKey returns nil if key is valid: 1 to MaxKeyBytes bytes of UTF-8 without backslashes and control characters,
// consisting of elements joined by single slashes, none of them empty, "." or "..", the first of them not reserved.
// The error wraps ErrBadKey and names the violated rule.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: key is empty", ErrBadKey)
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

// CheckPrefix returns nil if prefix is empty or the beginning of a valid key. A prefix need not end at a slash. The
// error wraps ErrBadKey.
func CheckPrefix(prefix string) error {
	if prefix == "" || CheckKey(prefix) == nil {
		return nil
	}
	return CheckKey(prefix + "x")
}
