package table

import (
	"errors"
)

// ErrUnknownFormat: the table format is none of the three.
var ErrUnknownFormat = errors.New("unknown table format")
