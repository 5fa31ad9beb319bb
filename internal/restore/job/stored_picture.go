package job

import (
	"fmt"
	"maps"
	"slices"

	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// readStored is readPicture for a task whose parameters the file may state: y is tied to the grid of the file's pixels, so that not the measurement is
// turned upright, but the restored picture. A JPEG file has samples beyond its right and lower border, up to complete blocks, which are
// part of y.
func (j *Job) readStored(path string, data []byte) error {
	stated, err := j.Op.Stated(data)
	if err != nil {
		return InputError("read measurement %s: %w", path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(stated.Params)) {
		switch value, used := stated.Params[name], j.Op.Params[name]; {
		case stated.Inexact != "" && name == "quality":
			j.warn(photograph.WarnTables, fmt.Sprintf("%s, %g is in use", stated.Inexact, used))
		case stated.Inexact == "" && value != used:
			return InputError("read measurement %s: it has the %s %g, the item has %g", path, name, value, used)
		}
	}
	p, w, h, orientation, err := raster.DecodeStored(data)
	if err != nil {
		return fmt.Errorf("read measurement %s: %w", path, err)
	}
	dims := j.Op.Measurement
	seen, err := j.inChannels(path, p)
	if err != nil {
		return err
	}
	if len(dims) != 3 || dims[0] != seen.Channels || dims[1] < h || dims[1] >= 2*h || dims[2] < w || dims[2] >= 2*w ||
		j.truth != nil && (dims[1] != h || dims[2] != w) {
		return InputError("read measurement %s: it has %d×%d pixels, the task needs a measurement of shape %v", path, w, h, dims)
	}
	if err := j.checkOrientation(path, orientation); err != nil {
		return err
	}
	j.Problem.Y = raster.ExtendWhole(seen, dims[2], dims[1]).Pix
	j.Item.Picture = &item.Picture{Width: w, Height: h, Grey: p.Grey, Bits: p.Bits}
	j.noteOrientation(orientation)
	j.warnOf(p)
	return nil
}

// decodePicture decodes a picture, and returns the EXIF orientation that the restored picture gets: 1 for a task whose A is not tied to the
// grid of pixels, where the measurement has been turned upright.
func (j *Job) decodePicture(data []byte) (p *raster.Picture, orientation int, err error) {
	if !j.Op.Grid {
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
func (j *Job) checkOrientation(path string, orientation int) error {
	if j.truth == nil || orientation == 1 {
		return nil
	}
	return InputError("read measurement %s: it has the orientation %d in its EXIF data, and a true image beside it; turn it upright without loss, as with jpegtran", path, orientation)
}

// noteOrientation notes the EXIF orientation of a measurement that lies as in its file. The noted size is that of the upright picture.
func (j *Job) noteOrientation(orientation int) {
	if orientation == 1 {
		return
	}
	p := j.Item.Picture
	if p.Orientation = orientation; p.Transposed() {
		p.Width, p.Height = p.Height, p.Width
	}
}
