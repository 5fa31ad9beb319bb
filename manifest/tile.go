package manifest

import (
	"errors"
	"fmt"
	"strconv"
)

// The words that [Spec.Tile] accepts beside a number.
const (
	TileAuto = "auto"
	TileOff  = "off"
)

// The smallest and the largest tile, in pixels.
const (
	minTile = 16
	maxTile = 4096
)

// tiled reports whether the campaign divides images into tiles.
func (s *Spec) tiled() bool { return s.Tile != "" && s.Tile != TileOff }

// Tiles returns side and overlap of the tiles, for a prior whose size is auto and whose images have sides of a multiple. Both are 0 for a campaign
// without tiles. The error is the [FieldError] of the field that does not suit the prior.
func (s *Spec) Tiles(auto, multiple int) (tile, overlap int, err error) {
	if !s.tiled() {
		return 0, 0, nil
	}
	tile = auto
	if s.Tile != TileAuto {
		tile, _ = strconv.Atoi(s.Tile) // checkTile has checked it
	}
	off := func(field string, n int) error {
		near := max(1, (n+multiple/2)/multiple) * multiple
		return s.problem(field, fmt.Errorf("%d is not a multiple of %d, as the prior requires; use %d", n, multiple, near))
	}
	if tile%multiple != 0 {
		return 0, 0, off("tile", tile)
	}
	if s.Overlap == nil {
		quarter := (tile + 4*multiple - 1) / (4 * multiple) * multiple
		return tile, min(quarter, tile/2/multiple*multiple), nil
	}
	overlap = *s.Overlap
	switch {
	case overlap > tile/2:
		return 0, 0, s.problem("overlap", fmt.Errorf("%d is out of range, want 0 to %d, half of the tile", overlap, tile/2/multiple*multiple))
	case overlap%multiple != 0:
		return 0, 0, off("overlap", overlap)
	}
	return tile, overlap, nil
}

// tile checks the values whose range does not depend on the prior.
func (c *checker) tile(s *Spec) {
	if s.tiled() && s.Tile != TileAuto {
		if n, err := strconv.Atoi(s.Tile); err != nil || strconv.Itoa(n) != s.Tile {
			c.add("tile", fmt.Errorf("%q is neither auto nor off nor a number of pixels", clip(s.Tile)))
		} else {
			c.integer("tile", n, minTile, maxTile)
		}
	}
	switch {
	case s.Overlap == nil:
	case !s.tiled():
		c.add("overlap", errors.New("there are no tiles; set tile to auto or to a number of pixels, or remove overlap"))
	default:
		c.integer("overlap", *s.Overlap, 0, maxTile/2)
	}
}
