package tile

import (
	"errors"
	"fmt"
)

// ErrTiling: the side of the tiles or their overlap is out of range. The message names the field and a valid value.
var ErrTiling = errors.New("tiles")

// Tiling is the size of tiles in pixels. The zero value stands for the whole image as one tile.
type Tiling struct {
	// Side is the side of the square tiles, a multiple of the prior's granularity. An image that is shorter along an axis has
	// tiles of its own length there.
	Side int
	// Overlap is the least number of pixels that neighbours share along an axis, a multiple of the prior's granularity from 0
	// to half of Side. With 0 the tiles are not fused: edges between them become visible.
	Overlap int
}

// MinSide is the smallest side of tiles.
const MinSide = 16

// Validate returns ErrTiling for values that are out of range for a prior whose images have sides of a multiple.
func (t Tiling) Validate(multiple int) error {
	switch {
	case t == Tiling{}:
		return nil
	case t.Side < MinSide:
		return fmt.Errorf("%w tile: a side of %d is out of range, want at least %d", ErrTiling, t.Side, MinSide)
	case t.Side%multiple != 0:
		return fmt.Errorf("%w tile: %d is not a multiple of %d, as the prior requires; use %d", ErrTiling, t.Side, multiple, nearest(t.Side, multiple))
	case t.Overlap < 0 || t.Overlap > t.Side/2:
		return fmt.Errorf("%w overlap: %d is out of range, want 0 to %d, half of the tile", ErrTiling, t.Overlap, t.Side/2/multiple*multiple)
	case t.Overlap%multiple != 0:
		return fmt.Errorf("%w overlap: %d is not a multiple of %d, as the prior requires; use %d", ErrTiling, t.Overlap, multiple, nearest(t.Overlap, multiple))
	}
	return nil
}

// nearest returns the multiple next to n, at least one.
func nearest(n, multiple int) int { return max(1, (n+multiple/2)/multiple) * multiple }

// Divides reports whether an image has more than one tile.
func (t Tiling) Divides(height, width int) bool {
	return t.Side > 0 && (height > t.Side || width > t.Side)
}
