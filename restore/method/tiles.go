package method

import (
	"fmt"

	"ddiff/restore/tile"
)

// Tiled returns ErrSetting, with the reason, if a method cannot restore images in tiles.
func (i Info) Tiled() error {
	reason := i.Undivided
	if i.Latent {
		reason = "works on latents"
	}
	if reason == "" {
		return nil
	}
	return fmt.Errorf("%w method: %s cannot restore images in tiles: it %s; remove tile, or choose another method", ErrSetting, i.Name, reason)
}

// Tile makes the network of the run predict in tiles, which are fused at every evaluation. All other parts of a step work on the whole image.
// Images of one tile are not divided. It returns ErrSetting for a method that cannot do it, and tile.ErrTiling.
func (r *Run) Tile(t tile.Tiling) error {
	multiple := r.Prior.Card.MultipleOf
	if err := t.Validate(multiple); err != nil {
		return err
	}
	if image := r.Operator.Image; t.Divides(image.Height, image.Width) {
		if err := r.Info.Tiled(); err != nil {
			return err
		}
		var err error
		r.grid, err = tile.New(t, image.Height, image.Width, multiple)
		return err
	}
	return nil
}

// Grid is the division of the images into tiles, nil for images that are not divided.
func (r *Run) Grid() *tile.Grid { return r.grid }
