package check

import (
	"ddiff/internal/failure"
)

var (
	// ErrVectors: reference vectors are missing, damaged or do not match the file.
	ErrVectors = failure.New(failure.Prior, "reference vectors")
	// ErrInterface: inputs, outputs or metadata do not match the kind of file.
	ErrInterface = failure.New(failure.Prior, "wrong interface")
	// ErrNotFinite: a model returns NaN or infinite values.
	ErrNotFinite = failure.New(failure.Prior, "values that are not finite")
)
