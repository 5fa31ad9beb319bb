package job

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// Measure simulates y, or reads the stored y, and weighs its pixels.
func (s Loader) Measure(ctx context.Context, j *Job) error {
	if err := s.measure(ctx, j); err != nil {
		return err
	}
	return s.weigh(j)
}

func (s Loader) measure(ctx context.Context, j *Job) error {
	if j.Item.Measurement == nil {
		if j.truth == nil {
			return InputError("item %s has neither an image nor a measurement", j.Item.Name)
		}
		key, err := j.Item.MeasurementKey()
		if err != nil {
			return err
		}
		j.Problem.Y, err = s.Engine.Measure(ctx, j.Op, j.truth.Pix, j.Problem.Draw, j.noise(), noise.NewKey(key))
		return err
	}
	return s.Decode(ctx, *j.Item.Measurement, func(data []byte) error {
		name := j.Item.Measurement.Public()
		if !raster.IsNPY(data) {
			if err := j.readPicture(name, data); err != nil {
				return err
			}
			s.countGrey(j)
			return nil
		}
		if j.mirrored != nil {
			return InputError("read mask %s: its shape is %v, the image is %d×%d", j.Item.Mask.Public(), j.mirrored, j.Item.Width, j.Item.Height)
		}
		if err := j.readArray(name, data); err != nil {
			return err
		}
		if err := j.scaleMask(j.Op.Image.Width, j.Op.Image.Height); err != nil {
			return err
		}
		return j.checkRange(name)
	})
}

// countGrey scales the noise level of the method for a measurement whose channels are equal, as those of a grey picture: methods take the entries of y for
// independent, and C equal ones with the noise σ tell as much as C independent ones with the noise √C·σ.
func (s Loader) countGrey(j *Job) {
	if p, dims := j.Item.Picture, j.Op.Measurement; p != nil && p.Grey && len(dims) == 3 {
		j.Plan = s.Engine.ScaleNoise(j.Plan, j.noise().Level(), math.Sqrt(float64(dims[0])))
	}
}

// noise is that of the measurement.
func (j *Job) noise() operator.Noise {
	return operator.Noise{Sigma: j.Item.Sigma, Photons: j.Item.Photons}
}

// readArray decodes a stored y from a .npy file.
func (j *Job) readArray(path string, data []byte) error {
	y, err := raster.DecodeMeasurement(data)
	if err != nil {
		return fmt.Errorf("read measurement %s: %w", path, err)
	}
	if err := j.Op.CheckShape(y.Shape); err != nil {
		return InputError("read measurement %s: %w", path, err)
	}
	j.Problem.Y = y.Data
	return nil
}

// checkRange maps y from the item's range to that of the operator, and refuses values outside of it.
func (j *Job) checkRange(path string) error {
	stated := j.Item.MeasurementRange
	if stated != nil {
		if err := j.Op.Rescale(j.Problem.Y, operator.Range{Low: stated[0], High: stated[1]}); err != nil {
			return fmt.Errorf("read measurement %s: %w", path, err)
		}
	}
	err := j.Op.CheckRange(j.Problem.Y, j.Problem.Draw, j.noise(), stated != nil)
	var outside *operator.RangeError
	if !errors.As(err, &outside) {
		return err
	}
	remedy := "give the values of black and white with --measurement-range LOW,HIGH"
	switch {
	case j.Op.NotPicture:
		remedy = "give the values of A(x)"
	case stated != nil:
		remedy = fmt.Sprintf("after black and white at %g and %g; correct --measurement-range", stated[0], stated[1])
	case outside.Ambiguous:
		remedy = "give the values of black and white with --measurement-range 0,1 or --measurement-range -1,1"
	}
	return InputError("read measurement %s: %w: %s", path, err, remedy)
}

// readPicture decodes a picture as y: black is −1, white 1. A grey one may be y of one channel. A picture that is smaller than y is mirrored at its right and lower
// border, and the restored image is cropped accordingly.
func (j *Job) readPicture(path string, data []byte) error {
	if j.Op.NotPicture {
		return InputError("read measurement %s: the measurement of task %s is no picture; give the values of A(x) as .npy", path, j.Item.Task)
	}
	if j.Op.Stated != nil {
		return j.readStored(path, data)
	}
	p, orientation, err := j.decodePicture(data)
	if err != nil {
		return fmt.Errorf("read measurement %s: %w", path, err)
	}
	if err := j.checkOrientation(path, orientation); err != nil {
		return err
	}
	if r := j.Item.MeasurementRange; r != nil {
		p.Rescale(r[0], r[1])
	}
	dims := j.Op.Measurement
	seen, err := j.inChannels(path, p)
	if err != nil {
		return err
	}
	if len(dims) != 3 || dims[0] != seen.Channels {
		return InputError("read measurement %s: it is a picture with %d channels, the task needs a measurement of shape %v; give it as .npy", path, seen.Channels, dims)
	}
	w, h := seen.Width, seen.Height
	if j.draw != nil && j.drawSource() == nil {
		return InputError("read measurement %s: task %s needs the %s with which the picture was taken; give --%s, or the column %s of a list",
			path, j.Item.Task, j.draw.Name, j.draw.Name, j.draw.Name)
	}
	if m := j.mirrored; m != nil && !slices.Equal(m, []int{h, w}) {
		return InputError("read mask %s: it has %d×%d pixels, the measurement %s has %d×%d", j.Item.Mask.Public(), m[1], m[0], path, w, h)
	}
	if dims[1] < h || dims[1] >= 2*h || dims[2] < w || dims[2] >= 2*w || j.truth != nil && (dims[1] != h || dims[2] != w) {
		return InputError("read measurement %s: it has %d×%d pixels, the task needs %d×%d", path, w, h, dims[2], dims[1])
	}
	if err := j.scaleMask(w, h); err != nil {
		return err
	}
	j.Problem.Y = raster.Extend(seen, dims[2], dims[1]).Pix
	j.Item.Picture = &item.Picture{
		Width: j.Op.Image.Width * w / dims[2], Height: j.Op.Image.Height * h / dims[1], Grey: p.Grey, Bits: p.Bits,
	}
	j.noteOrientation(orientation)
	j.warnOf(p)
	if j.Original != nil {
		data = j.Original
	}
	j.lossy, j.quality = raster.IsLossy(data), qualityOf(data)
	return j.checkNumbers(path, p.Bits)
}

// inChannels returns the image of a measurement in its channels: in one, if the measurement has one. The restored picture is then as grey as the prior.
func (j *Job) inChannels(path string, p *raster.Picture) (*raster.Image, error) {
	if dims := j.Op.Measurement; len(dims) != 3 || dims[0] != 1 {
		return p.Image, nil
	}
	grey := j.Op.Image.Channels == 1
	switch {
	case !p.Grey && grey:
		return nil, InputError("read measurement %s: it is a colour picture, the prior is for grey ones; convert it to grey, or give a prior with channels: 3", path)
	case !p.Grey:
		return nil, InputError("read measurement %s: it is a colour picture, the task needs a grey one; convert it to grey", path)
	}
	p.Grey = grey
	return raster.InChannels(p.Image, 1)
}

// checkNumbers refuses a picture whose numbers do not lie between black and white: those of floating-point samples, or of a stated range.
func (j *Job) checkNumbers(path string, bits int) error {
	r := j.Item.MeasurementRange
	if r == nil && bits <= 16 {
		return nil
	}
	err := j.Op.CheckRange(j.Problem.Y, j.Problem.Draw, j.noise(), true)
	var outside *operator.RangeError
	switch {
	case !errors.As(err, &outside):
		return err
	case r != nil:
		return InputError("read measurement %s: %w: after black and white at the numbers %g and %g of the file; correct --measurement-range", path, err, r[0], r[1])
	}
	return InputError("read measurement %s: %w: of floating-point samples 0 is black and 1 is white; give their values of black and white with --measurement-range LOW,HIGH", path, err)
}

// warnOf notes the profile of a picture, and warns of what is lost of it.
func (j *Job) warnOf(p *raster.Picture) {
	if p.Alpha != nil {
		j.warn(photograph.WarnAlpha, "the measurement has transparent pixels: it was restored as it looks over white; restored.png of the results is opaque")
	}
	if p.CMYK {
		how := "to sRGB by its profile"
		if p.ByFormula {
			how = "to RGB without a profile: colours may differ"
		}
		j.warn(photograph.WarnProfile, "the measurement is in CMYK, and was converted "+how)
	}
	j.profile = p.Profile
	if !p.ProfileFits() && len(p.Profile) > 0 && !p.CMYK {
		j.warn(photograph.WarnProfile,
			"the measurement's ICC profile does not describe the channels of the restored picture; the restored picture has no profile")
	}
}

// turn crops an image of the item's size to the picture that was measured, and turns it upright.
func (j *Job) turn(img *raster.Image, w, h int) *raster.Image {
	p := j.Item.Picture
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
func (j *Job) scaleMask(w, h int) error {
	if !j.Op.ScalesMask() || j.Item.Image != nil {
		return nil
	}
	err := j.fitMask(w, h)
	if err == nil {
		j.mirrorMask()
		err = j.encodeDraw()
	}
	if err != nil && j.Item.Mask != nil {
		return fmt.Errorf("read %s: %w", j.Item.Mask.Public(), err)
	}
	return err
}

// fitMask scales a mask that does not have the size of the image to w×h pixels, if the task scales masks or the mask is that of the campaign's task
// and the measurement is simulated.
func (j *Job) fitMask(w, h int) (err error) {
	s := j.Op.Image
	scales := j.Op.ScalesMask() || j.Item.FromTask && j.Item.Measurement == nil && j.Item.Mask != nil
	if j.draw == nil || !scales || slices.Equal(j.draw.Dims, []int{s.Height, s.Width}) {
		return nil
	}
	j.draw, err = j.Op.ScaleMask(j.draw, w, h)
	return err
}

// mirrorMask mirrors a mask that is smaller than the image up to its size, as readPicture does with the measurement.
func (j *Job) mirrorMask() {
	d, s := j.draw, j.Op.Image
	if d == nil || d.Name != drawMask || j.Item.Measurement == nil || j.Item.Image != nil || len(d.Dims) != 2 || slices.Equal(d.Dims, []int{s.Height, s.Width}) {
		return
	}
	h, w := d.Dims[0], d.Dims[1]
	if h*w != len(d.Data) || s.Height < h || s.Height >= 2*h || s.Width < w || s.Width >= 2*w {
		return // it does not fit, which encodeDraw reports
	}
	j.mirrored = d.Dims
	whole := raster.Extend(&raster.Image{Channels: 1, Height: h, Width: w, Pix: d.Data}, s.Width, s.Height)
	j.draw = &operator.Draw{Name: d.Name, Dims: []int{s.Height, s.Width}, Data: whole.Pix}
}

// Picture is the form of the restored picture.
func (j *Job) Picture() raster.Picture {
	p := raster.Picture{Bits: max(8, j.bits), Profile: j.profile}
	if of := j.Item.Picture; of != nil {
		p.Grey, p.Bits = of.Grey, of.Bits
	}
	return p
}

// matchPicture makes the solution of a grey measurement grey: each pixel gets the mean of its channels.
func (j *Job) matchPicture() {
	if j.Item.Picture == nil || !j.Item.Picture.Grey {
		return
	}
	s := j.Op.Image
	n := s.Height * s.Width
	for i := range n {
		sum := float32(0)
		for c := range s.Channels {
			sum += j.Solution.X[c*n+i]
		}
		for c := range s.Channels {
			j.Solution.X[c*n+i] = sum / float32(s.Channels)
		}
	}
}

// Restored returns the solution as an image, without the border that the measurement was mirrored into.
func (j *Job) Restored() *raster.Image {
	s := j.Op.Image
	img := &raster.Image{Channels: s.Channels, Height: s.Height, Width: s.Width, Pix: j.kept()}
	w, h := j.Item.RestoredSize()
	return j.turn(img, w, h)
}

// kept returns the solution, with the observed pixels of the measurement if they are kept.
func (j *Job) kept() []float32 {
	if !j.Item.KeepObserved || !j.Op.Masked() || j.draw == nil || len(j.Problem.Y) != len(j.Solution.X) {
		return j.Solution.X
	}
	out := slices.Clone(j.Solution.X)
	for i, y := range j.Problem.Y {
		if j.draw.Data[i%len(j.draw.Data)] != 0 {
			out[i] = y
		}
	}
	return out
}

// shown is the measurement for people, without the border that it was mirrored into.
func (j *Job) shown() *raster.Image {
	y := j.Problem.Y
	if j.measured != nil {
		y = j.measured
	}
	img := j.Op.Picture(y)
	if p := j.Item.Picture; p != nil {
		return j.turn(img, p.Width*img.Width/j.Op.Image.Width, p.Height*img.Height/j.Op.Image.Height)
	}
	return img
}
