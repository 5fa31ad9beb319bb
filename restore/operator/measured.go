package operator

import (
	"fmt"
	"slices"
)

// ImageShape is the inverse of Operator.Measurement: the image that a stored measurement of
// the given shape [C, h, w] belongs to.
func ImageShape(name string, params map[string]float64, measurement []int) (Shape, error) {
	p, err := Parameters(name, params)
	if err != nil {
		return Shape{}, err
	}
	if len(measurement) != 3 {
		return Shape{}, fmt.Errorf("task %s: %w: a measurement of shape %v, want [channels, rows, columns]", name, ErrShape, measurement)
	}
	c, h, w := measurement[0], measurement[1], measurement[2]
	switch name {
	case SuperResolution:
		f := int(p["factor"])
		h, w = h*f, w*f
	case PhaseRetrieval:
		// h = H + 2·⌊H·oversample/8⌋; H is even, so the first that fits is the one.
		h, w = unpadded(h, p["oversample"]), unpadded(w, p["oversample"])
	}
	s := Shape{Channels: c, Height: h, Width: w}
	op, err := New(name, params, s)
	if err != nil {
		return Shape{}, err
	}
	if !slices.Equal(op.Measurement, measurement) {
		return Shape{}, fmt.Errorf("task %s: %w: no image has a measurement of shape %v", name, ErrShape, measurement)
	}
	return s, nil
}

func unpadded(m int, oversample float64) int {
	for n := 2; n <= m; n += 2 {
		if n+2*int(float64(n)*oversample/8) == m {
			return n
		}
	}
	return m
}
