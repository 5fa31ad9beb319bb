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
	if err := t.checkOrientation(path, orientation); err != nil {
		return err
	}
	t.problem.Y = raster.ExtendWhole(p.Image, dims[2], dims[1]).Pix
	t.item.Picture = &manifest.Picture{Width: w, Height: h, Grey: p.Grey, Bits: p.Bits}
	t.noteOrientation(orientation)
	t.warnOf(p)
	return nil
}

// decodePicture decodes a picture, and returns the EXIF orientation that the restored picture gets: 1 for a task whose A is not tied to the
// grid of pixels, where the measurement has been turned upright.
func (t *task) decodePicture(data []byte) (p *raster.Picture, orientation int, err error) {
	if !t.op.Grid {
		p, err = raster.DecodePicture(data)
		return p, 1, err
	}
	p, w, h, orientation, err := raster.DecodeStored(data)
	if err == nil {
		p.Image = raster.Crop(p.Image, w, h)
	}
	return p, orientation, err
}

// checkOrientation refuses a measurement that lies otherwise than the true image beside it.
func (t *task) checkOrientation(path string, orientation int) error {
	if t.truth == nil || orientation == 1 {
		return nil
	}
	return inputError("read measurement %s: it has the orientation %d in its EXIF data, and a true image beside it; turn it upright without loss, as with jpegtran", path, orientation)
}

// noteOrientation notes the EXIF orientation of a measurement that lies as in its file. The noted size is that of the upright picture.
func (t *task) noteOrientation(orientation int) {
	if orientation == 1 {
		return
	}
	p := t.item.Picture
	if p.Orientation = orientation; p.Transposed() {
		p.Width, p.Height = p.Height, p.Width
	}
}
