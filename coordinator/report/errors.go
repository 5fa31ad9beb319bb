package report

import "errors"

var (
	// ErrIncomplete: [Write] wrote the report, but could not read an artifact that a result lists. The page and the
	// sheets mark the missing artifact.
	ErrIncomplete = errors.New("report lacks artifacts")

	// ErrTemporary: the report needs a temporary file, which large campaigns do, and cannot write it.
	ErrTemporary = errors.New("temporary directory")

	// ErrUnknownRule: the selection rule is none of the four.
	ErrUnknownRule = errors.New("unknown selection rule")

	// ErrUnknownFormat: the table format is none of the three.
	ErrUnknownFormat = errors.New("unknown table format")
)
