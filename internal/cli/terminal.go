package cli

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// LineEvery is the interval between two plain lines about progress.
const LineEvery = 5 * time.Second

// TerminalWidth returns the number of columns of the terminal behind w, or 0 where w is no terminal.
func TerminalWidth(w io.Writer) int {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 1 {
		return 80
	}
	return width
}

// ReadSecret reads a line, which a terminal does not show.
func ReadSecret(in io.Reader) (string, error) {
	if f, ok := in.(interface{ Fd() uintptr }); ok && term.IsTerminal(int(f.Fd())) {
		line, err := term.ReadPassword(int(f.Fd()))
		return string(line), err
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return line, err
}

// Style colours text on a terminal. The zero value leaves text as it is.
type Style struct{ mark string }

// StyleOf colours text for w where that is an [Output] on a terminal and NO_COLOR is not set.
func StyleOf(w io.Writer) Style {
	out, ok := w.(*Output)
	if !ok || TerminalWidth(w) == 0 || os.Getenv("NO_COLOR") != "" {
		return Style{}
	}
	return Style{out.mark}
}

func (s Style) wrap(code, text string) string {
	if s.mark == "" {
		return text
	}
	return s.mark + code + "m" + text + s.mark + "0m"
}

// Bold returns bold text.
func (s Style) Bold(text string) string { return s.wrap("1", text) }

// Red returns red text.
func (s Style) Red(text string) string { return s.wrap("31", text) }

// Green returns green text.
func (s Style) Green(text string) string { return s.wrap("32", text) }

// Clear returns what clears the screen, or nothing where text is not coloured.
func (s Style) Clear() string {
	if s.mark == "" {
		return ""
	}
	return s.mark + "H" + s.mark + "J"
}

// StatusLine returns a function that replaces the status line of the terminal behind w; an empty line removes it. Without an [Output] on
// a terminal it does nothing.
func StatusLine(w io.Writer) func(line string) {
	out, ok := w.(*Output)
	if !ok || TerminalWidth(w) == 0 {
		return func(string) {}
	}
	return func(line string) {
		text := []rune(Escape(line, ""))
		if most := TerminalWidth(w) - 1; len(text) > most { // a terminal may wrap after its last column
			text = append(text[:max(0, most-1)], '…')
		}
		out.put("\r\x1b[K" + string(text))
	}
}

// Output is standard output or standard error: the one place through which all text of commands passes. It escapes control characters,
// except line ends, tabs, and the colours of a [Style] and a [StatusLine]: names and reasons come from other machines. It keeps its
// first error, so that the program can end with an error where a command ignores it.
type Output struct {
	file *os.File
	mark string // stands for "\x1b[" in text of a Style; nobody else knows it

	mu   sync.Mutex
	tail string // the first bytes of a character
	err  error
}

// NewOutput returns the output that is written to a file.
func NewOutput(file *os.File) *Output { return &Output{file: file, mark: "\x1b" + rand.Text() + "["} }

// Raw returns the writer of bytes that are no text: the file of an Output, or out itself.
func Raw(out io.Writer) io.Writer {
	if o, ok := out.(*Output); ok {
		return o.file
	}
	return out
}

// Write implements io.Writer. Bytes of a character that p does not end are written with the next call.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := o.tail + string(p)
	whole := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if at := len(text) - i; utf8.RuneStart(text[at]) {
			if !utf8.FullRuneInString(text[at:]) {
				whole = at
			}
			break
		}
	}
	text, o.tail = text[:whole], text[whole:]
	parts := strings.Split(text, o.mark)
	for i := range parts {
		parts[i] = Escape(parts[i], "\n\t")
	}
	if err := o.writeLocked(strings.Join(parts, "\x1b[")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// put writes text of this program as it is.
func (o *Output) put(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writeLocked(text) //nolint:errcheck // Err has the error
}

func (o *Output) writeLocked(text string) error {
	_, err := o.file.WriteString(text)
	if err != nil && o.err == nil {
		o.err = err
	}
	return err
}

// Fd returns the descriptor of the file, which may be a terminal.
func (o *Output) Fd() uintptr { return o.file.Fd() }

// Err returns the first error of a write.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
