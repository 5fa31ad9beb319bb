package main

import (
	"io"
	"os"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// lineEvery is the interval between two plain lines about progress.
const lineEvery = 5 * time.Second

// terminalWidth returns the number of columns of the terminal behind w, or 0 where w is no terminal.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 1 {
		return 80
	}
	return width
}

// style colours text on a terminal. The zero value leaves text as it is.
type style struct{ colour bool }

// styleOf colours text for w where that is a terminal and NO_COLOR is not set.
func styleOf(w io.Writer) style {
	return style{terminalWidth(w) > 0 && os.Getenv("NO_COLOR") == ""}
}

func (s style) wrap(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string { return s.wrap("1", text) }

func (s style) red(text string) string { return s.wrap("31", text) }

func (s style) green(text string) string { return s.wrap("32", text) }

// truncate shortens a text to a number of columns and marks the cut.
func truncate(text string, columns int) string {
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	if columns < 1 {
		return ""
	}
	return string([]rune(text)[:columns-1]) + "…"
}
