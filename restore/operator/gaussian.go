package operator

import (
	"fmt"
	"math"

	"ddiff/internal/restore/axis"
	"ddiff/restore/parameter"
)

// GaussianDeblur is the task of undoing a Gaussian blur.
const GaussianDeblur = "gaussian_deblur"

// gaussianDeblur is y = L·x·Rᵀ, a separable Gaussian blur whose border is reflected without
// repeating the edge.
func gaussianDeblur() Definition {
	return Definition{
		Label: "Gaussian deblurring", Doc: "Gaussian blur with a reflecting border",
		Linear: true,
		Parameters: parameter.List{
			{Name: "size", Default: 61, Max: 256, Open: true, Unit: at256, Doc: "side of the kernel"},
			{Name: "std", Default: 3, Max: 64, Open: true, Unit: at256, Doc: "standard deviation of the blur"},
		},
		Dense: 1, Long: true, Blur: true, Width: "std", Local: true,
		Input: "kernel", Given: gaussianDeblurGiven(),
		Build: func(s Shape, p map[string]float64) (Expression, error) {
			rows, cols, err := gaussianBlur(s, p)
			if err != nil {
				return Expression{}, err
			}
			a := axis.NewSeparable(rows, cols)
			return Expression{Forward: a.Forward, Adjoint: a.Adjoint()}, nil
		},
		SVD: func(s Shape, p map[string]float64) (*SVD, error) {
			rows, cols, err := gaussianBlur(s, p)
			if err != nil {
				return nil, err
			}
			return bandSVD(rows, cols)
		},
	}
}

// gaussianDeblurGiven correlates each channel with the kernel of a file, which need not be a Gaussian. It has no singular value
// decomposition, because a kernel does not separate in general. The draw serves checks of the operator only.
func gaussianDeblurGiven() *Definition {
	const intensity = 0.5 // of the draw
	d := kernelBlur()
	d.Name, d.Label, d.Doc = GaussianDeblur, "Gaussian deblurring", "blur with the kernel of a file, reflecting border"
	d.Parameters = parameter.List{
		{Name: "size", Default: 61, Max: 256, Open: true, Unit: at256, Doc: "largest side of the kernel in images longer than 1024 pixels"},
	}
	d.Required, d.given = true, true
	d.Build = func(s Shape, p map[string]float64) (Expression, error) {
		return kernelExpression(s, p["size"], intensity)
	}
	return &d
}

// gaussianBlur returns the blur along the axes.
func gaussianBlur(s Shape, p map[string]float64) (rows, cols *axis.Band, err error) {
	k := gaussianKernel(s.odd(p["size"]), s.Length(p["std"]))
	if err := fitsReflection(len(k), s, ErrShape); err != nil {
		return nil, nil, err
	}
	return reflecting(s.Height, k), reflecting(s.Width, k), nil
}

// fitsReflection returns the cause for a kernel that is wider than the reflection of an image.
func fitsReflection(size int, s Shape, cause error) error {
	if size/2 >= min(s.Height, s.Width) {
		return fmt.Errorf("%w: a kernel of %d pixels is wider than the reflection of %d×%d", cause, size, s.Width, s.Height)
	}
	return nil
}

// gaussianTaps samples a Gaussian up to 4 standard deviations (rounded), with the sum 1.
func gaussianTaps(std float64) []float64 {
	radius := int(4*std + 0.5)
	taps := make([]float64, 2*radius+1)
	sum := 0.0
	for i := range taps {
		d := float64(i - radius)
		taps[i] = math.Exp(-d * d / (2 * std * std))
		sum += taps[i]
	}
	for i := range taps {
		taps[i] /= sum
	}
	return taps
}

// gaussianKernel is gaussianTaps on an odd number of points. Weights beyond them are mirrored with the edge repeated, as in the code of DPS, in which
// SciPy filters an impulse.
func gaussianKernel(size int, std float64) []float64 {
	k, taps := make([]float64, size), gaussianTaps(std)
	for i, w := range taps {
		k[mirrorRepeat(i+size/2-len(taps)/2, size)] += w
	}
	return k
}

// reflecting is the filter k on n samples.
func reflecting(n int, k []float64) *axis.Band {
	return axis.NewBand(n, n, func(i int, add func(int, float32)) {
		for a, w := range k {
			add(mirror(i+a-len(k)/2, n), float32(w))
		}
	})
}
