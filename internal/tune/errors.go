package tune

import (
	"ddiff/internal/failure"
)

var (
	// ErrSides: the images cannot be divided as the split asks: an image is on both sides, a pattern matches no image, or a
	// side has too few images.
	ErrSides = failure.New(failure.Input, "split")

	// ErrNoFigure: an image has no value of the objective, such as PSNR without a truth.
	ErrNoFigure = failure.New(failure.Input, "objective is undefined")

	// ErrRecord: a stored record of a tuning cannot be read.
	ErrRecord = failure.New(failure.Input, "tuning record")
)
