package check

import "errors"

var (
	// ErrVectors: reference vectors are missing, damaged or belong to another file.
	ErrVectors = errors.New("reference vectors")
	// ErrInterface: the inputs or outputs are not those of the kind of file.
	ErrInterface = errors.New("wrong interface")
	// ErrNotFinite: a model gives NaN or infinite values.
	ErrNotFinite = errors.New("values that are not finite")
	// ErrBundle: the card of a bundle is wrong, or its parts do not fit each other.
	ErrBundle = errors.New("bundle")
)
