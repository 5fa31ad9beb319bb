package check

import "errors"

var (
	// ErrVectors: reference vectors are missing, damaged or do not match the file.
	ErrVectors = errors.New("reference vectors")
	// ErrInterface: inputs, outputs or metadata do not match the kind of file.
	ErrInterface = errors.New("wrong interface")
	// ErrNotFinite: a model returns NaN or infinite values.
	ErrNotFinite = errors.New("values that are not finite")
)
