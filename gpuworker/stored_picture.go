package gpuworker

import (
	"fmt"
	"maps"
	"slices"

	"ddiff/manifest"
	"ddiff/restore/raster"
)

// readStored is readPicture for a task whose parameters the file may state: y is tied to the grid of the file's pixels, so that not the measurement is
// turned upright, but the restored picture. A JPEG file has samples beyond its right and lower border, up to complete blocks, which are
// part of y.
func (t *task) readStored(path string, data []byte) error {
	stated, err := t.op.Stated(data)
	if err != nil {
		return inputError("read measurement %s: %w", path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(stated.Params)) {
		switch value, used := stated.Params[name], t.op.Params[name]; {
		case stated.Inexact != "" && name == "quality":
			t.warnings = append(t.warnings, manifest.Warning{Code: manifest.WarnTables, Text: fmt.Sprintf("%s, %g is in use", stated.Inexact, used)})
		case stated.Inexact == "" && value != used:
			return inputError("read measurement %s: it has the %s %g, the item has %g", path, name, value, used)
		}
	}
	p, w, h, orientation, err := raster.DecodeStored(data)
	if err != nil {
		return fmt.Errorf("read measurement %s: %w", path, err)
	}
	dims := t.op.Measurement
	if len(dims) != 3 || dims[0] != p.Image.Channels || dims[1] < h || dims[1] >= 2*h || dims[2] < w || dims[2] >= 2*w ||
		t.truth != nil && (dims[1] != h || dims[2] != w) {
		return inputError("read measurement %s: it has %d×%d pixels, the task needs a measurement of shape %v", path, w, h, dims)
	}
	if t.truth != nil && orientation != 1 {
		return inputError("read measurement %s: it has the orientation %d in its EXIF data, and a true image beside it; turn it upright without loss, as with jpegtran", path, orientation)
	}
	t.problem.Y = raster.ExtendWhole(p.Image, dims[2], dims[1]).Pix
	t.item.Picture = &manifest.Picture{Width: w, Height: h, Grey: p.Grey, Bits: p.Bits}
	if orientation != 1 {
		t.item.Picture.Orientation = orientation
	}
	if t.item.Picture.Transposed() {
		t.item.Picture.Width, t.item.Picture.Height = h, w
	}
	t.warnOf(p)
	return nil
}
