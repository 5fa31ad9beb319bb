package report

import "errors"

var (
	// ErrIncomplete: [Write] wrote the report, but could not read an artifact that a result lists. The page and the
	// sheets mark the missing artifact.
	ErrIncomplete = errors.New("report lacks artifacts")

	// ErrUnknownRule: the selection rule is none of the four.
	ErrUnknownRule = errors.New("unknown selection rule")

	// ErrUnknownFormat: the table format is none of the three.
	ErrUnknownFormat = errors.New("unknown table format")
)
