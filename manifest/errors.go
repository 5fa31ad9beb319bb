package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What is wrong with a dataset as a whole. They end the iteration of [Rows]; the wrapping
// error names the path and the remedy. The problem of a single row is never one of these.
var (
	// ErrNoDataset: nothing that can be read as a dataset is at dataset.path.
	ErrNoDataset = errors.New("no dataset there")
	// ErrEmptyDataset: the dataset exists and has no row.
	ErrEmptyDataset = errors.New("dataset has no rows")
	// ErrBadList: a CSV or JSONL list cannot be read as one: its header is wrong, or a line
	// is longer than 1 MiB.
	ErrBadList = errors.New("not a usable list")
)

// FieldError is one problem at one place of a file that a person wrote. It prints as one
// line, `campaign.yaml:7: steps: want an integer, got "many"`.
type FieldError struct {
	// File is the file as the person named it. Empty for a spec that was made in code.
	File string
	// Line counts from 1. Zero means that the line is not known.
	Line int
	// Field is the path of the field, as in "dataset.size" or "tasks[1].sigma". Empty
	// means the file as a whole.
	Field string
	// Err says what is wrong and what to write instead.
	Err error
}

// Error puts the known parts in front of the problem. It is one line, whatever characters a
// file name has.
func (e *FieldError) Error() string {
	var b strings.Builder
	switch {
	case e.File != "" && e.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", e.File, e.Line)
	case e.File != "":
		fmt.Fprintf(&b, "%s: ", e.File)
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Err.Error())
	return printable(b.String())
}

// Unwrap gives access to the cause, such as [io/fs.ErrNotExist].
func (e *FieldError) Unwrap() error { return e.Err }

// joinByLine joins problems in the order of their lines, so that they read like the file.
func joinByLine(problems []*FieldError) error {
	slices.SortStableFunc(problems, func(a, b *FieldError) int { return cmp.Compare(a.Line, b.Line) })
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}
