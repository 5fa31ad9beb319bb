package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ddiff/internal/failure"
)

// Errors of a whole dataset. They end the iteration of [Rows]; the wrapping error names the path and
// the remedy. The error of a single row never wraps them.
var (
	// ErrNoDataset: dataset.path holds no readable dataset.
	ErrNoDataset = failure.New(failure.Usage, "no dataset there")
	// ErrEmptyDataset: the dataset exists but has no row.
	ErrEmptyDataset = failure.New(failure.Usage, "dataset has no rows")
	// ErrEmptyFile: the file has no bytes. [CheckFile] returns it.
	ErrEmptyFile = failure.New(failure.Input, "is an empty file")
	// ErrBadList: a list has a wrong header, or a line longer than 1 MiB.
	ErrBadList = failure.New(failure.Usage, "not a usable list")
)

// FieldError is one error at one place of a file. It prints as one line:
// `campaign.yaml:7: steps: want an integer, got "many"`.
type FieldError struct {
	// File is the name that the user gave. Empty for a spec that was built in code.
	File string
	// Line counts from 1. Zero: unknown.
	Line int
	// Field is the path of the field, as in "dataset.size" or "tasks[1].sigma". Empty: the file.
	Field string
	// Err states the error and the remedy.
	Err error
}

// Class returns failure.Usage: a field of a person's file is wrong.
func (*FieldError) Class() failure.Class { return failure.Usage }

// Error joins the known parts and Err. It is one line, even if the file name has control characters.
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

// Unwrap returns the cause, such as [io/fs.ErrNotExist].
func (e *FieldError) Unwrap() error { return e.Err }

// joinByLine joins problems in the order of their lines. The cells of a sweep come from the same lines: the same problem of
// one line counts once, by the first task that has it.
func joinByLine(problems []*FieldError) error {
	slices.SortStableFunc(problems, func(a, b *FieldError) int { return cmp.Compare(a.Line, b.Line) })
	type place struct {
		line        int
		field, text string
	}
	seen := make(map[place]bool)
	var errs []error
	for _, p := range problems {
		at := place{p.Line, p.Field, p.Err.Error()}
		if _, inTask, ok := strings.Cut(p.Field, "]."); ok && p.Line > 0 {
			at.field = inTask
		}
		if !seen[at] {
			seen[at] = true
			errs = append(errs, p)
		}
	}
	return errors.Join(errs...)
}
