package tune

import "errors"

var (
	// ErrSides: the images cannot be divided as the split asks: an image is on both sides, a pattern matches no image, or a
	// side has too few images.
	ErrSides = errors.New("split")

	// ErrNoFigure: an image has no value of the objective, such as PSNR without a truth.
	ErrNoFigure = errors.New("objective is undefined")

	// ErrRecord: a stored record of a tuning cannot be read.
	ErrRecord = errors.New("tuning record")
)
