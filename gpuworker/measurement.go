package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ddiff/manifest"
	"ddiff/restore/noise"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
)

// measure simulates y, or reads the stored y.
func (s loader) measure(ctx context.Context, t *task) error {
	if t.item.Measurement == nil {
		if t.truth == nil {
			return inputError("item %s has neither an image nor a measurement", t.item.Name)
		}
		key, err := t.item.MeasurementKey()
		if err != nil {
			return err
		}
		t.problem.Y, err = s.engine.Measure(ctx, t.op, t.truth.Pix, t.problem.Draw, t.noise(), noise.NewKey(key))
		return err
	}
	return s.decode(ctx, *t.item.Measurement, func(data []byte) error {
		name := t.item.Measurement.Public()
		if !raster.IsNPY(data) {
			if r := t.item.MeasurementRange; r != nil {
				return inputError("read measurement %s: it is a picture, in which black is -1 and white is 1, and not a .npy file with black and white at %g and %g; remove --measurement-range", name, r[0], r[1])
			}
			return t.readPicture(name, data)
		}
		if t.mirrored != nil {
			return inputError("read mask %s: its shape is %v, the image is %d×%d", t.item.Mask.Public(), t.mirrored, t.item.Width, t.item.Height)
		}
		if err := t.readArray(name, data); err != nil {
			return err
		}
		if err := t.scaleMask(t.op.Image.Width, t.op.Image.Height); err != nil {
			return err
		}
		return t.checkRange(name)
	})
}

// noise is that of the measurement.
func (t *task) noise() operator.Noise {
	return operator.Noise{Sigma: t.item.Sigma, Photons: t.item.Photons}
}

// readArray decodes a stored y from a .npy file.
func (t *task) readArray(path string, data []byte) error {
	y, err := raster.DecodeMeasurement(data)
	if err != nil {
		return fmt.Errorf("read measurement %s: %w", path, err)
	}
	if err := t.op.CheckShape(y.Shape); err != nil {
		return inputError("read measurement %s: %w", path, err)
	}
	t.problem.Y = y.Data
	return nil
}

// checkRange maps y from the item's range to that of the operator, and refuses values outside of it.
func (t *task) checkRange(path string) error {
	stated := t.item.MeasurementRange
	if stated != nil {
		if err := t.op.Rescale(t.problem.Y, operator.Range{Low: stated[0], High: stated[1]}); err != nil {
			return fmt.Errorf("read measurement %s: %w", path, err)
		}
	}
	err := t.op.CheckRange(t.problem.Y, t.problem.Draw, t.noise(), stated != nil)
	var outside *operator.RangeError
	if !errors.As(err, &outside) {
		return err
	}
	remedy := "give the values of black and white with --measurement-range LOW,HIGH"
	switch {
	case t.op.NotPicture:
		remedy = "give the values of A(x)"
	case stated != nil:
		remedy = fmt.Sprintf("after black and white at %g and %g; correct --measurement-range", stated[0], stated[1])
	case outside.Ambiguous:
		remedy = "give the values of black and white with --measurement-range 0,1 or --measurement-range -1,1"
	}
	return inputError("read measurement %s: %w: %s", path, err, remedy)
}

// readPicture decodes a picture as y: black is −1, white 1. A grey one may be y of one channel, whose restored picture has colours. A picture that is smaller than y is mirrored at its right and lower
// border, and the restored image is cropped accordingly.
func (t *task) readPicture(path string, data []byte) error {
	if t.op.NotPicture {
		return inputError("read measurement %s: the measurement of task %s is no picture; give the values of A(x) as .npy", path, t.item.Task)
	}
	if t.op.Stated != nil {
		return t.readStored(path, data)
	}
	p, orientation, err := t.decodePicture(data)
	if err != nil {
		return fmt.Errorf("read measurement %s: %w", path, err)
	}
	if err := t.checkOrientation(path, orientation); err != nil {
		return err
	}
	dims, seen := t.op.Measurement, p.Image
	if len(dims) == 3 && dims[0] == 1 {
		if !p.Grey {
			return inputError("read measurement %s: it is a colour picture, the task needs a grey one; convert it to grey", path)
		}
		seen, p.Grey = &raster.Image{Channels: 1, Height: seen.Height, Width: seen.Width, Pix: seen.Plane(0)}, false
	}
	if len(dims) != 3 || dims[0] != seen.Channels {
		return inputError("read measurement %s: it is a picture with %d channels, the task needs a measurement of shape %v; give it as .npy", path, seen.Channels, dims)
	}
	w, h := seen.Width, seen.Height
	if t.draw != nil && t.item.Mask == nil && t.item.Kernel == nil {
		return inputError("read measurement %s: task %s needs the %s with which the picture was taken; give --%s, or the column %s of a list",
			path, t.item.Task, t.draw.Name, t.draw.Name, t.draw.Name)
	}
	if m := t.mirrored; m != nil && !slices.Equal(m, []int{h, w}) {
		return inputError("read mask %s: it has %d×%d pixels, the measurement %s has %d×%d", t.item.Mask.Public(), m[1], m[0], path, w, h)
	}
	if dims[1] < h || dims[1] >= 2*h || dims[2] < w || dims[2] >= 2*w || t.truth != nil && (dims[1] != h || dims[2] != w) {
		return inputError("read measurement %s: it has %d×%d pixels, the task needs %d×%d", path, w, h, dims[2], dims[1])
	}
	if err := t.scaleMask(w, h); err != nil {
		return err
	}
	t.problem.Y = raster.Extend(seen, dims[2], dims[1]).Pix
	t.item.Picture = &manifest.Picture{
		Width: t.op.Image.Width * w / dims[2], Height: t.op.Image.Height * h / dims[1], Grey: p.Grey, Bits: p.Bits,
	}
	t.noteOrientation(orientation)
	t.warnOf(p)
	return nil
}

// warnOf notes the profile of a picture, and warns of what is lost of it.
func (t *task) warnOf(p *raster.Picture) {
	if p.Alpha {
		t.warnings = append(t.warnings, manifest.Warning{Code: manifest.WarnAlpha, Text: "the measurement's alpha channel was composited over white; the restored picture is opaque"})
	}
	t.profile = p.Profile
	if !p.ProfileFits() && len(p.Profile) > 0 {
		t.warnings = append(t.warnings, manifest.Warning{Code: manifest.WarnProfile, Text: "the measurement's ICC profile does not describe the channels of the restored picture; the restored picture has no profile"})
	}
}

// turn crops an image of the item's size to the picture that was measured, and turns it upright.
func (t *task) turn(img *raster.Image, w, h int) *raster.Image {
	p := t.item.Picture
	if p == nil || p.Orientation == 0 {
		return raster.Crop(img, w, h)
	}
	if p.Transposed() {
		w, h = h, w
	}
	return raster.Orient(raster.Crop(img, w, h), p.Orientation)
}

// scaleMask scales the mask of a measurement of w×h pixels to it, mirrors it as readPicture does with the measurement, and encodes it, for a
// task that scales masks and an item without an image.
func (t *task) scaleMask(w, h int) error {
	if !t.op.ScalesMask() || t.item.Image != nil {
		return nil
	}
	err := t.fitMask(w, h)
	if err == nil {
		t.mirrorMask()
		err = t.encodeDraw()
	}
	if err != nil && t.item.Mask != nil {
		return fmt.Errorf("read %s: %w", t.item.Mask.Public(), err)
	}
	return err
}

// fitMask scales a mask that does not have the size of the image to w×h pixels, if the task scales masks or the mask is that of the campaign's task
// and the measurement is simulated.
func (t *task) fitMask(w, h int) (err error) {
	s := t.op.Image
	scales := t.op.ScalesMask() || t.item.FromTask && t.item.Measurement == nil && t.item.Mask != nil
	if t.draw == nil || !scales || slices.Equal(t.draw.Dims, []int{s.Height, s.Width}) {
		return nil
	}
	t.draw, err = t.op.ScaleMask(t.draw, w, h)
	return err
}

// mirrorMask mirrors a mask that is smaller than the image up to its size, as readPicture does with the measurement.
func (t *task) mirrorMask() {
	d, s := t.draw, t.op.Image
	if d == nil || d.Name != drawMask || t.item.Measurement == nil || t.item.Image != nil || len(d.Dims) != 2 || slices.Equal(d.Dims, []int{s.Height, s.Width}) {
		return
	}
	h, w := d.Dims[0], d.Dims[1]
	if h*w != len(d.Data) || s.Height < h || s.Height >= 2*h || s.Width < w || s.Width >= 2*w {
		return // it does not fit, which encodeDraw reports
	}
	t.mirrored = d.Dims
	whole := raster.Extend(&raster.Image{Channels: 1, Height: h, Width: w, Pix: d.Data}, s.Width, s.Height)
	t.draw = &operator.Draw{Name: d.Name, Dims: []int{s.Height, s.Width}, Data: whole.Pix}
}

// picture is the form of the restored picture.
func (t *task) picture() raster.Picture {
	p := raster.Picture{Bits: 8, Profile: t.profile}
	if of := t.item.Picture; of != nil {
		p.Grey, p.Bits = of.Grey, of.Bits
	}
	return p
}

// matchPicture makes the solution of a grey measurement grey: each pixel gets the mean of its channels.
func (t *task) matchPicture() {
	if t.item.Picture == nil || !t.item.Picture.Grey {
		return
	}
	s := t.op.Image
	n := s.Height * s.Width
	for i := range n {
		sum := float32(0)
		for c := range s.Channels {
			sum += t.solution.X[c*n+i]
		}
		for c := range s.Channels {
			t.solution.X[c*n+i] = sum / float32(s.Channels)
		}
	}
}

// restored returns the solution as an image, without the border that the measurement was mirrored into.
func (t *task) restored() *raster.Image {
	s := t.op.Image
	img := &raster.Image{Channels: s.Channels, Height: s.Height, Width: s.Width, Pix: t.solution.X}
	w, h := t.item.RestoredSize()
	return t.turn(img, w, h)
}

// shown is the measurement for people, without the border that it was mirrored into.
func (t *task) shown() *raster.Image {
	img := t.op.Picture(t.problem.Y)
	if p := t.item.Picture; p != nil {
		return t.turn(img, p.Width*img.Width/t.op.Image.Width, p.Height*img.Height/t.op.Image.Height)
	}
	return img
}
