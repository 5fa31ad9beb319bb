package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

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

// Style colours text on a terminal. The zero value leaves text as it is.
type Style struct{ Colour bool }

// StyleOf colours text for w where that is a terminal and NO_COLOR is not set.
func StyleOf(w io.Writer) Style {
	return Style{TerminalWidth(w) > 0 && os.Getenv("NO_COLOR") == ""}
}

func (s Style) wrap(code, text string) string {
	if !s.Colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold returns bold text.
func (s Style) Bold(text string) string { return s.wrap("1", text) }

// Red returns red text.
func (s Style) Red(text string) string { return s.wrap("31", text) }

// Green returns green text.
func (s Style) Green(text string) string { return s.wrap("32", text) }

// StatusLine returns a function that replaces the status line of the terminal behind w; an empty line removes it. Without a terminal it
// does nothing.
func StatusLine(w io.Writer) func(line string) {
	if TerminalWidth(w) == 0 {
		return func(string) {}
	}
	return func(line string) {
		text := []rune(line)
		if most := TerminalWidth(w) - 1; len(text) > most { // a terminal may wrap after its last column
			text = append(text[:max(0, most-1)], '…')
		}
		fmt.Fprintf(w, "\r\x1b[K%s", string(text))
	}
}

// Output is standard output. It keeps its first error, so that the program can end with an error where a command ignores it.
type Output struct {
	file *os.File
	mu   sync.Mutex
	err  error
}

// NewOutput returns the output that is written to a file.
func NewOutput(file *os.File) *Output { return &Output{file: file} }

// Write writes to the file.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.file.Write(p)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// Fd returns the descriptor of the file, which may be a terminal.
func (o *Output) Fd() uintptr { return o.file.Fd() }

// Err returns the first error of a write.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
