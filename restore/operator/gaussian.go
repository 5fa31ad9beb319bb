package operator

import (
	"fmt"
	"math"

	"ddiff/restore/onnx"
)

// gaussian is y = L·x·Rᵀ, a separable Gaussian blur whose border is reflected without
// repeating the edge. Kernel and border are symmetric, so L maps even to even and odd to
// odd: it is applied as two half-sized matrices.
type gaussian struct {
	shape      Shape
	rows, cols *matrix
}

func gaussianTask() task {
	return task{
		name: GaussianDeblur, about: "Gaussian blur with a reflecting border",
		defaults: map[string]float64{"size": 61, "std": 3},
		make: func(s Shape, p map[string]float64) (definition, error) {
			if err := positive(p, "std", 64); err != nil {
				return nil, err
			}
			if err := positive(p, "size", 256); err != nil {
				return nil, err
			}
			k := gaussianTaps(s.odd(p["size"]), s.length(p["std"]))
			if len(k)/2 >= min(s.Height, s.Width) {
				return nil, fmt.Errorf("%w: a kernel of %d pixels is wider than the reflection of %d×%d", ErrShape, len(k), s.Width, s.Height)
			}
			return &gaussian{s, reflecting(s.Height, k), reflecting(s.Width, k)}, nil
		},
	}
}

// gaussianTaps is a unit impulse on size samples, filtered by a Gaussian that is truncated
// at 4 standard deviations (rounded) and normalised before the grid cuts it.
func gaussianTaps(size int, std float64) []float64 {
	radius := int(4*std + 0.5)
	taps := make([]float64, 2*radius+1)
	sum := 0.0
	for i := range taps {
		d := float64(i - radius)
		taps[i] = math.Exp(-d * d / (2 * std * std))
		sum += taps[i]
	}
	k := make([]float64, size)
	for i := range k {
		if j := i - size/2 + radius; j >= 0 && j < len(taps) {
			k[i] = taps[j] / sum
		}
	}
	return k
}

// reflecting is the filter k on n samples as a matrix.
func reflecting(n int, k []float64) *matrix {
	m := newMatrix(n, n)
	for i := range n {
		for a, w := range k {
			m.data[i*n+mirror(i+a-len(k)/2, n)] += float32(w)
		}
	}
	return m
}

func (o *gaussian) measurement() []int {
	return []int{o.shape.Channels, o.shape.Height, o.shape.Width}
}

func (o *gaussian) forward(g *onnx.Graph, x, _ onnx.Value) onnx.Value {
	return along(g, o.cols, along(g, o.rows, x, rowAxis), colAxis)
}
