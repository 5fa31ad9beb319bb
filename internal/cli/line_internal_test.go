package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ddiff/restore/item"
)

// TestPrintable: no text moves the cursor, reverses the direction of text or floods a terminal.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain: ü 日本 \"quoted\" \\": "plain: ü 日本 \"quoted\" \\",
		"a\x1b[2Jb\nc\td\r":         `a\x1b[2Jb\nc\td\r`,
		"a\u202eb\u2066c\u2028":     `a\u202eb\u2066c\u2028`,
		"a\u009b\x7f\xff\x00":       `a\u009b\u007f\xff\x00`,
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

// TestOutput: text of commands has no control characters but line ends, tabs, and those of the program's own colours and status line.
func TestOutput(t *testing.T) {
	const text = "name\tPSNR\nü日\x1b[2J\r\u202e\u009b\x7f\xff\t1.0\n"
	const want = "name\tPSNR\nü日\\x1b[2J\\r\\u202e\\u009b\\u007f\\xff\t1.0\n"
	for size := 1; size <= len(text); size++ { // of one write: a buffer may divide a character
		file, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		out := NewOutput(file)
		for part := range slices.Chunk([]byte(text), size) {
			if n, err := out.Write(part); n != len(part) || err != nil {
				t.Fatalf("%d of %d bytes, error %v", n, len(part), err)
			}
		}
		if got, err := os.ReadFile(file.Name()); string(got) != want || err != nil {
			t.Fatalf("in parts of %d: %q, %v, want %q", size, got, err, want)
		}
		red := Style{out.mark}.Red("a\x1b[1mb")
		if _, err := out.Write([]byte(red)); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(file.Name()); string(got) != want+"\x1b[31ma\\x1b[1mb\x1b[0m" {
			t.Fatalf("coloured text: %q", got)
		}
	}
}

// TestAttackTerminal: no string of a record has a control character; the record itself is as it was.
func TestAttackTerminal(t *testing.T) {
	type inner struct {
		Text  string
		Names map[string][]string
		Any   any
		Raw   []byte
		At    time.Time
	}
	type record struct {
		inner *inner //nolint:unused // Clean must leave out what is not exported
		Inner *inner
		More  []inner
	}
	const bad, good = "a\nb\x1b\t", `a\nb\x1b\t`
	in := record{Inner: &inner{Text: bad, Names: map[string][]string{bad: {bad}}, Any: bad, Raw: []byte(bad), At: time.Unix(7, 0)}, More: []inner{{Text: bad}}}
	got := Clean(in)
	want := record{Inner: &inner{Text: good, Names: map[string][]string{good: {good}}, Any: good, Raw: []byte(bad), At: time.Unix(7, 0)}, More: []inner{{Text: good}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if in.Inner.Text != bad || in.More[0].Text != bad {
		t.Errorf("the record has changed: %+v", in)
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
	failed := item.Result{Item: item.Item{Name: "x", Task: "hdr"}, Reason: "a\nb"}
	if got := ItemLine(failed); got != `x (hdr): a\nb` {
		t.Errorf("the line of an item is %q", got)
	}
}
