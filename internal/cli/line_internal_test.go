package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"

	"ddiff/manifest"
)

// TestPrintable: no text moves the cursor, reverses the direction of text or floods a terminal.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain: ü 日本 \"quoted\" \\": "plain: ü 日本 \"quoted\" \\",
		"a\x1b[2Jb\nc\td\r":         `a\x1b[2Jb\nc\td\r`,
		"a\u202eb\u2066c\u2028":     `a\u202eb\u2066c\u2028`,
		"a\u009b\x7f\xff\x00":       `a\u009b\x7f\xff\x00`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("printable(%q) = %q, want %q", text, got, want)
		}
	}
	for _, n := range []int{maxLine, maxLine + 1, 50 << 20} {
		got := Printable(strings.Repeat("a", n-9) + ": remedy!")
		if want := min(n, maxLine); utf8.RuneCountInString(got) != want || !strings.HasSuffix(got, ": remedy!") || strings.Contains(got, "...") != (n > maxLine) {
			t.Errorf("%d characters become %d: %.20s...", n, len(got), got)
		}
	}
	if got := Printable(strings.Repeat("\x1b", 50<<20)); len(got) != maxLine {
		t.Errorf("control characters become %d bytes", len(got))
	}
}

// TestEscaped: a table has no control characters but line ends and tabs.
func TestEscaped(t *testing.T) {
	const text = "name\tPSNR\nü日\x1b[2J\r\u202e\u009b\xff\t1.0\n"
	const want = "name\tPSNR\nü日\\x1b[2J\\r\\u202e\\u009b\\xff\t1.0\n"
	var b strings.Builder
	if n, err := Escaped(&b).Write([]byte(text)); n != len(text) || err != nil || b.String() != want {
		t.Fatalf("%d, %v, %q, want %q", n, err, b.String(), want)
	}
}

// TestLines: joined errors are lines, and a newline in a name or in an error below a wrapper is none.
func TestLines(t *testing.T) {
	name := &fs.PathError{Op: "open", Path: "a\nb", Err: fs.ErrNotExist}
	joined := errors.Join(errors.New("one"), name)
	var flood []error
	for range 80_000 {
		flood = append(flood, errors.New("key"))
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{name, `open a; b: file does not exist`},
		{joined, "one\n" + `open a; b: file does not exist`},
		{Usage(errors.Join(errors.New("one"), name)), "one\n" + `open a; b: file does not exist`},
		{fmt.Errorf("submit: %w", joined), `submit: one; open a; b: file does not exist`},
		{fmt.Errorf("%w: %w", ErrPrior, fmt.Errorf("x: %w", joined)), `prior: x: one; open a; b: file does not exist`},
		{errors.Join(flood...), strings.Repeat("key\n", MaxLines) + "and 79980 more"},
	} {
		if got := Message(c.err); got != c.want {
			t.Errorf("%q\nwant %q", got, c.want)
		}
	}
	failed := manifest.Result{Item: manifest.Item{Name: "x", Task: "hdr"}, Reason: "a\nb"}
	if got := ItemLine(failed); got != `x (hdr): a\nb` {
		t.Errorf("the line of an item is %q", got)
	}
}
