package operator

import "fmt"

// channelsFirst is the remedy for an array [rows, columns, channels].
const channelsFirst = "; put the channels first, as numpy.moveaxis(y, 2, 0) does"

// mostChannels is the largest number of channels of a file that is recognised as [rows, columns, channels].
const mostChannels = 4

// channelsLast reports whether a shape is [rows, columns, channels].
func channelsLast(shape []int) bool {
	return len(shape) == 3 && shape[0] > mostChannels && shape[2] <= mostChannels
}

// maxRatio is the largest ratio of the sides of an image and of its measurement that a file's operator is tried with.
const maxRatio = 16

// FixesSize reports whether the file is for images of one size.
func (f *File) FixesSize() bool { return f.x.Dims[2] > 0 && f.x.Dims[3] > 0 }

// imageShape returns the shape of the image with a measurement of the given shape: the shape that the file fixes, or the
// first that fits among images with the sides of the measurement, multiples of them and parts of them.
func (f *File) imageShape(name string, p map[string]float64, measurement []int) (Shape, error) {
	var candidates []Shape
	if f.FixesSize() {
		candidates = []Shape{f.Smallest(1)}
	} else if len(measurement) == 3 {
		for k := 1; k <= maxRatio; k++ {
			candidates = append(candidates, Shape{f.x.Dims[1], k * measurement[1], k * measurement[2]},
				Shape{f.x.Dims[1], measurement[1] / k, measurement[2] / k})
		}
	}
	for _, s := range candidates {
		if op := f.sized(name, p, s); op != nil && op.CheckShape(measurement) == nil {
			return s, nil
		}
	}
	return Shape{}, f.unfit(name, p, fmt.Sprintf("a measurement of shape %v", measurement), channelsLast(measurement))
}

// pictureShape is [Set.PictureShape] for the file's operator, whose measurement has the picture's channels, or one. A side of the measurement is a multiple or a part of that of the
// image; a side that the file fixes may exceed that of the picture, which is mirrored.
func (f *File) pictureShape(name string, p map[string]float64, picture Shape, multiple int) (image, measurement Shape, err error) {
	if dims := f.y.Dims; len(dims) != 4 || dims[1] != 1 && dims[1] != picture.Channels {
		return image, measurement, fmt.Errorf("task %s: %w: the measurement of operator %s is %s, a picture has 1 or %d channels; give the values of A(x) as .npy",
			name, ErrShape, f.Path, f.y.Text(), picture.Channels)
	}
	for _, s := range f.imagesOf(picture, multiple) {
		op := f.sized(name, p, s)
		if op == nil {
			continue
		}
		y := Shape{op.Measurement[0], op.Measurement[1], op.Measurement[2]}
		if covers(y.Height, picture.Height) && covers(y.Width, picture.Width) {
			return s, y, nil
		}
	}
	return image, measurement, f.unfit(name, p, fmt.Sprintf("a picture of %d×%d pixels", picture.Width, picture.Height), false)
}

// covers reports whether a picture's side can be mirrored up to the side of a measurement.
func covers(side, picture int) bool { return picture <= side && side < 2*picture }

// imagesOf returns the shapes of images, with sides that are multiples of the given number, whose measurement a picture may be: for each
// ratio of image and measurement the least ones.
func (f *File) imagesOf(picture Shape, multiple int) (all []Shape) {
	if f.FixesSize() {
		if s := f.Smallest(1); s.Height%multiple == 0 && s.Width%multiple == 0 {
			return []Shape{s}
		}
		return nil
	}
	step := leastCommonMultiple(leastCommonMultiple(multiple, f.multipleOf), 2)
	// The least side of an image with a measurement of at least side pixels, for the ratio times/over.
	least := func(side, times, over int) int {
		of := (side*times + over - 1) / over
		of = (of + step - 1) / step * step
		for of*over%times != 0 {
			of += step
		}
		return of
	}
	for k := 1; k <= maxRatio; k++ {
		all = append(all, Shape{f.x.Dims[1], least(picture.Height, k, 1), least(picture.Width, k, 1)},
			Shape{f.x.Dims[1], least(picture.Height, 1, k), least(picture.Width, 1, k)})
	}
	return all
}

func leastCommonMultiple(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// sized returns the operator for images of a shape, or nil if the file does not take them.
func (f *File) sized(name string, p map[string]float64, s Shape) *Operator {
	if s.Height > maxSide || s.Width > maxSide {
		return nil
	}
	op, err := Set{f.Definition(name)}.New(name, p, s)
	if err != nil {
		return nil
	}
	return op
}

// unfit returns the error of a measurement that no image has.
func (f *File) unfit(name string, p map[string]float64, found string, last bool) error {
	err := fmt.Errorf("task %s: %w: no image has %s, or the operator does not fix its size", name, ErrShape, found)
	if f.FixesSize() {
		if op := f.sized(name, p, f.Smallest(1)); op != nil {
			err = fmt.Errorf("task %s: %w: operator %s is for images of %d×%d pixels with measurements of shape %v, got %s",
				name, ErrShape, f.Path, op.Image.Width, op.Image.Height, op.Measurement, found)
		}
	}
	if last {
		return fmt.Errorf("%w%s", err, channelsFirst)
	}
	return err
}
