package operator

import (
	"fmt"
	"slices"

	"ddiff/internal/failure"
)

// ErrRange: the values of a measurement do not lie in the range of the operator. The error is a [*RangeError].
var ErrRange = failure.New(failure.Input, "the measurement does not have the range of the task")

// Range is an interval of values.
type Range struct{ Low, High float64 }

// RangeError describes the values of a measurement.
type RangeError struct {
	Task string
	// Found is the interval of the values, Want that of the operator.
	Found, Want Range
	// Ambiguous: the values lie in Want and in [0, 1], so that zero may be mid-grey or black.
	Ambiguous bool
}

// Error states both intervals.
func (e *RangeError) Error() string {
	text := fmt.Sprintf("its values lie between %.4g and %.4g, the task %s needs %.4g to %.4g", e.Found.Low, e.Found.High, e.Task, e.Want.Low, e.Want.High)
	if e.Ambiguous {
		text += ", and zero may be black or mid-grey"
	}
	return text
}

// Unwrap returns ErrRange.
func (*RangeError) Unwrap() error { return ErrRange }

// overshoot is the share of a range by which values may exceed it: bicubic resampling has negative weights.
const overshoot = 0.25

// CheckRange returns a RangeError unless the observed entries of y lie in the operator's range, apart from noise of standard
// deviation sigma, that of photons and overshoot. Without stated, values that also lie in [0, 1] are ambiguous where the range is [−1, 1]. The
// range of a file's operator is unknown, and accepts all values. draw is the encoded mask or kernel.
//
// Noise of m entries is taken into account up to σ·√(2·ln m), about the expected maximum of normal noise. With N photons this holds below
// black. Above white, σ is that of an entry at the end of the overshoot, and 4·ln(m)/N is added, because the tail of small counts is longer.
func (o *Operator) CheckRange(y, draw []float32, n Noise, stated bool) error {
	r := o.expression.Range
	seen := o.Observed(y, draw)
	if r == nil || len(seen) == 0 {
		return nil
	}
	found := Range{float64(slices.Min(seen)), float64(slices.Max(seen))}
	below, above := n.extremes(len(seen))
	beyond := overshoot * (r.High - r.Low)
	e := &RangeError{Task: o.Task, Found: found, Want: *r}
	e.Ambiguous = !stated && *r == (Range{-1, 1}) && found.Low >= -below && found.High <= 1+above
	if e.Ambiguous || found.Low < r.Low-below-beyond || found.High > r.High+above+beyond {
		return e
	}
	return nil
}

// Rescale maps values in which black and white are from.Low and from.High to the operator's range, in place. It returns ErrParam
// for a task whose measurement has no black and white.
func (o *Operator) Rescale(y []float32, from Range) error {
	r := o.expression.Range
	if o.NotPicture || r == nil {
		return fmt.Errorf("task %s: %w measurement range: its measurement is no picture with black and white; give the values of A(x)", o.Task, ErrParam)
	}
	scale := (r.High - r.Low) / (from.High - from.Low)
	for i, v := range y {
		y[i] = float32(r.Low + (float64(v)-from.Low)*scale)
	}
	return nil
}

// PictureShape returns the shapes of the image and of its measurement for a picture that is a measurement. Each side of the
// measurement is the least one, not below that of the picture, at which the side of the image is a multiple of the given number:
// a smaller picture is mirrored up to there. Of a picture that is a measurement of one channel, the first channel counts. Errors wrap ErrTask, ErrParam, and ErrShape for a task whose measurement is no picture
// and for a picture that would have to grow to twice its side.
func (s Set) PictureShape(name string, params map[string]float64, picture Shape, multiple int) (image, measurement Shape, err error) {
	d, p, err := s.resolve(name, params)
	if err != nil {
		return image, measurement, err
	}
	if d.NotPicture {
		return image, measurement, fmt.Errorf("task %s: %w: its measurement is no picture; give the values of A(x) as .npy", name, ErrShape)
	}
	if d.Own != nil {
		return d.Own.pictureShape(name, p, picture, multiple)
	}
	sides := func(side int) (of, measured int, err error) {
		for n := side; n < 2*side; n++ {
			of := n
			if d.ImageSide != nil {
				of = d.ImageSide(n, p)
			}
			if of%multiple == 0 && of%2 == 0 && of >= smallestSide {
				return of, n, nil
			}
		}
		return 0, 0, fmt.Errorf("task %s: %w: a picture of %d×%d pixels is too small; the restored image has sides of multiples of %d", name, ErrShape, picture.Width, picture.Height, multiple)
	}
	image.Channels, measurement.Channels = picture.Channels, picture.Channels
	if d.Grey {
		measurement.Channels = 1
	}
	if image.Height, measurement.Height, err = sides(picture.Height); err == nil {
		image.Width, measurement.Width, err = sides(picture.Width)
	}
	if err != nil {
		return Shape{}, Shape{}, err
	}
	op, err := s.New(name, params, image)
	if err == nil && !slices.Equal(op.Measurement, measurement.Dims(1)[1:]) {
		err = fmt.Errorf("task %s: %w: no image has a measurement of %d×%d pixels", name, ErrShape, measurement.Width, measurement.Height)
	}
	return image, measurement, err
}
