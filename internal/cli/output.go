package cli

import (
	"os"
	"sync"
)

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

// Columns returns the number of columns of a terminal, 0 for another file.
func (o *Output) Columns() int { return TerminalWidth(o) }

// Err returns the first error of a write.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
