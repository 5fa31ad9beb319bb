package report

import "errors"

var (
	// ErrIncomplete is wrapped by the error of [Write] when the report was written, but an
	// artifact that a result names could not be read; the page and the sheets mark the place.
	ErrIncomplete = errors.New("report lacks artifacts")

	// ErrUnknownRule is wrapped when a selection rule is none of the four.
	ErrUnknownRule = errors.New("unknown selection rule")

	// ErrUnknownFormat is wrapped when a table format is none of the three.
	ErrUnknownFormat = errors.New("unknown table format")
)
