package job

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// Look finds what the bytes of a stored measurement tell before it is restored: the size of its image, parameters of A, and its noise level.
type Look struct {
	Operators operator.Set
	Card      *prior.Card
}

// Shape returns the shape of the image that belongs to a measurement of a task: an array, or a picture of any size.
func (l Look) Shape(task string, params map[string]float64, data []byte) (operator.Shape, error) {
	if raster.IsNPY(data) {
		y, err := raster.DecodeMeasurement(data)
		if err != nil {
			return operator.Shape{}, err
		}
		image, err := l.Operators.ImageShape(task, params, y.Shape)
		if m := l.Card.MultipleOf; err == nil && (image.Width%m != 0 || image.Height%m != 0) {
			err = fmt.Errorf("its image has %d×%d pixels, the prior needs multiples of %d; extend the measurement", image.Width, image.Height, m)
		}
		return l.suits(image, err)
	}
	probe := raster.ProbePicture
	if l.Operators.Known(task).Grid {
		probe = raster.ProbeStored
	}
	w, h, err := probe(data)
	if err != nil {
		return operator.Shape{}, err
	}
	image, _, err := l.Operators.PictureShape(task, params, operator.Shape{Channels: l.Card.Channels, Height: h, Width: w}, l.Card.MultipleOf)
	return l.suits(image, err)
}

// suits returns an error for an image whose channels are not the prior's.
func (l Look) suits(image operator.Shape, err error) (operator.Shape, error) {
	if err == nil && image.Channels != l.Card.Channels {
		err = fmt.Errorf("it has %d channels, the prior has %d", image.Channels, l.Card.Channels)
	}
	return image, err
}

// Stated has the operator parameters that the file of a measurement states. The zero value is that of a task whose files state none.
type Stated struct {
	params  map[string]float64
	guessed bool     // params are approximate, and other values replace them
	missing []string // parameters that must be given, because the file does not state them
}

// Stated reads the operator parameters that a measurement's file states.
func (l Look) Stated(task string, data []byte) (s Stated, err error) {
	read := l.Operators.Known(task).Stated
	if read == nil {
		return s, nil
	}
	file, err := read(data)
	if err != nil {
		return s, err
	}
	return Stated{params: file.Params, guessed: file.Inexact != "", missing: file.Missing}, nil
}

// Complete adds the stated parameters to those of a task, and returns a copy.
func (s Stated) Complete(given map[string]float64) (map[string]float64, error) {
	params := maps.Clone(given)
	for _, name := range s.missing {
		if _, ok := params[name]; !ok {
			return nil, fmt.Errorf("the measurement's file does not state the %s; give --param %s=VALUE, params of the campaign file or a column param.%s", name, name, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.params)) {
		value := s.params[name]
		given, ok := params[name]
		if ok && given != value && !s.guessed {
			return nil, fmt.Errorf("the measurement's file has the %s %g, and %g is given; remove %s", name, value, given, name)
		}
		if !ok {
			if params == nil {
				params = map[string]float64{}
			}
			params[name] = value
		}
	}
	return params, nil
}

// giveNumber is the remedy for a noise level that cannot be estimated.
const giveNumber = "give sigma as a number"

// Noisy is a measurement whose noise level is estimated.
type Noisy struct {
	Task   string
	Params map[string]float64
	// Own: the operator of the task is a file.
	Own bool
	// Width and Height are those of the image.
	Width, Height int
	// Measurement and Mask are the bytes of files; Mask is nil without one.
	Measurement, Mask []byte
	// Form is that of Mask.
	Form item.DrawForm
	// Range has the values of black and white, nil for those of the operator.
	Range *item.ValueRange
}

// Sigma estimates the noise level of a measurement, in units of y.
func (l Look) Sigma(n Noisy) (float64, error) {
	d := l.Operators.Known(n.Task)
	if reason := d.Unestimated(); reason != "" {
		return 0, fmt.Errorf("task %s: %s; %s", n.Task, reason, giveNumber)
	}
	y, err := l.noisy(n)
	if err != nil {
		return 0, fmt.Errorf("read the measurement: %w", err)
	}
	if d.Input == drawMask {
		if n.Mask == nil {
			return 0, fmt.Errorf("task %s: the mask of the measurement is missing; give it, or sigma as a number", n.Task)
		}
		f, err := photograph.ReadDraw(drawMask, n.Mask, n.Form)
		if err != nil {
			return 0, fmt.Errorf("read the mask: %w", err)
		}
		d := f.Draw
		op, err := l.operator(n)
		if err != nil {
			return 0, err
		}
		if op.ScalesMask() {
			if d, err = op.ScaleMask(d, y.Width, y.Height); err != nil {
				return 0, err
			}
		}
		if !slices.Equal(d.Dims, []int{y.Height, y.Width}) {
			return 0, fmt.Errorf("the mask has the shape %v, the measurement %d×%d; give a mask of its size", d.Dims, y.Height, y.Width)
		}
		y.Observed = d.Data
	}
	if d.Mosaic {
		y = y.Mosaic()
	}
	var level float64
	if raster.IsLossy(n.Measurement) && y.Observed == nil && !d.Mosaic {
		level, err = photograph.EstimateCompressed(y)
	} else if level = photograph.EstimateCorrelated(y); level == 0 {
		level, _, err = photograph.EstimateShot(y)
	}
	if err != nil {
		return 0, fmt.Errorf("%w; %s", err, giveNumber)
	}
	return level, nil
}

func (l Look) operator(n Noisy) (*operator.Operator, error) {
	return l.Operators.New(n.Task, n.Params, operator.Shape{Channels: l.Card.Channels, Height: n.Height, Width: n.Width})
}

// noisy returns a measurement in the range of its operator.
func (l Look) noisy(n Noisy) (y photograph.Noisy, err error) {
	if !raster.IsNPY(n.Measurement) {
		pic, err := raster.DecodePicture(n.Measurement)
		if err != nil {
			return y, err
		}
		levels := math.Exp2(float64(pic.Bits)) - 1
		if r := n.Range; r != nil {
			if pic.Rescale(r[0], r[1]); pic.Bits <= 16 {
				levels = r[1] - r[0]
			}
		}
		return photograph.Noisy{Channels: pic.Image.Channels, Height: pic.Image.Height, Width: pic.Image.Width, Pix: pic.Image.Pix, Step: 2 / levels}, nil
	}
	if n.Own {
		return y, errors.New("an array of an operator file may be no picture; " + giveNumber)
	}
	a, err := raster.DecodeMeasurement(n.Measurement)
	if err != nil {
		return y, err
	}
	op, err := l.operator(n)
	if err != nil {
		return y, err
	}
	if len(a.Shape) != 3 || !slices.Equal(a.Shape, op.Measurement) {
		return y, fmt.Errorf("its shape is %v, the task needs %v", a.Shape, op.Measurement)
	}
	if r := n.Range; r != nil {
		if err := op.Rescale(a.Data, operator.Range{Low: r[0], High: r[1]}); err != nil {
			return y, err
		}
	}
	return photograph.Noisy{Channels: a.Shape[0], Height: a.Shape[1], Width: a.Shape[2], Pix: a.Data}, nil
}
