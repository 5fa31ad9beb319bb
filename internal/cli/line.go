package cli

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"ddiff/restore/item"
)

// Limits of the text about an error.
const (
	maxLine  = 1000 // characters of a line
	MaxLines = 20   // lines of one error
)

// Printable returns a text for one line of a terminal: control characters, among them those that reverse the direction of
// text, are escaped as in Go. The middle of a text of more than maxLine characters becomes "...".
func Printable(text string) string {
	if len(text) > 16*maxLine { // bounds the work
		text = text[:8*maxLine] + text[len(text)-8*maxLine:]
	}
	runes := []rune(Escape(text, ""))
	if len(runes) <= maxLine {
		return string(runes)
	}
	const gap, end = "...", maxLine / 4
	return string(runes[:maxLine-end-len(gap)]) + gap + string(runes[len(runes)-end:])
}

// Escape escapes the control characters of a text, except those in keep. Escaped JSON is equal JSON.
func Escape(text, keep string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return (r < ' ' || r > '~') && !strings.ContainsRune(keep, r) }) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case strings.ContainsRune(keep, r):
			b.WriteString(text[:size])
		case unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp):
			quoted := fmt.Sprintf("%+q", r)
			if r == '\x7f' { // no escape of JSON
				quoted = `'\u007f'`
			}
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

// Fold is the same for names that a file system without a difference between upper and lower case confuses.
func Fold(name string) string { return strings.ToLower(strings.ToUpper(norm.NFC.String(name))) }

// OneLine is the text of an error in one line: semicolons separate joined errors.
func OneLine(err error) string { return Printable(strings.ReplaceAll(err.Error(), "\n", "; ")) }

// lines is the text of an error: one line for each joined error, at most MaxLines.
func lines(err error) string {
	all := []error{err}
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) && errors.Join(several.Unwrap()...).Error() == err.Error() {
		all = several.Unwrap()
	}
	var texts []string
	for _, one := range all[:min(len(all), MaxLines)] {
		texts = append(texts, OneLine(one))
	}
	if more := len(all) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "\n")
}

// ItemLine describes an item that is not restored.
func ItemLine(r item.Result) string {
	return Printable(fmt.Sprintf("%s (%s): %s", r.Item.Name, r.Item.Task, r.Reason))
}
