package metric

import (
	"errors"

	"ddiff/internal/failure"
)

var (
	// ErrShape: two inputs differ in size, or an input is empty.
	ErrShape = errors.New("shape mismatch")
	// ErrTooSmall: an image is smaller than the window of the metric.
	ErrTooSmall = errors.New("image smaller than the window")
	// ErrUndefined: the metric has no score of these images, as of their number of channels.
	ErrUndefined = errors.New("undefined score")
	// ErrNetwork: a file is not the network of a metric, or its network returns no number.
	ErrNetwork = failure.New(failure.Prior, "not a metric")
)
