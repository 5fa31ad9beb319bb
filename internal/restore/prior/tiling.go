package prior

import (
	"fmt"

	"ddiff/internal/failure"
)

// ErrTiling: the side of the tiles or their overlap is out of range.
var ErrTiling = failure.New(failure.Input, "tiles")

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

// Validate returns ErrTiling for values that are out of range for a prior whose images have sides of a multiple. Campaigns and flags are
// checked before, with a message for each field.
func (t Tiling) Validate(multiple int) error {
	if t == (Tiling{}) || t.Side >= MinSide && t.Side%multiple == 0 && t.Overlap >= 0 && t.Overlap <= t.Side/2 && t.Overlap%multiple == 0 {
		return nil
	}
	return fmt.Errorf("%w of %d pixels that share %d: the side must be at least %d, the shared pixels at most half of it, both multiples of %d",
		ErrTiling, t.Side, t.Overlap, MinSide, multiple)
}

// Divides reports whether an image has more than one tile.
func (t Tiling) Divides(height, width int) bool {
	return t.Side > 0 && (height > t.Side || width > t.Side)
}
