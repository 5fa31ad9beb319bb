package operator

import (
	"fmt"
	"math"

	"ddiff/internal/restore/axis"
	"ddiff/internal/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/parameter"
)

// MotionDeblur is the task of undoing motion blur.
const MotionDeblur = "motion_deblur"

// motionDeblur correlates each channel with the item's kernel. The border is reflected without
// repeating the edge.
func motionDeblur() Definition {
	d := kernelBlur()
	d.Label, d.Doc = "Motion deblurring", "blur along a seeded random path, reflecting border"
	d.Parameters = motionParameters(61)
	d.Build = func(s Shape, p map[string]float64) (Expression, error) {
		return kernelExpression(s, p["size"], p["intensity"])
	}
	return d
}

// kernelBlur has the properties of operators that correlate each channel with a kernel.
func kernelBlur() Definition {
	return Definition{Linear: true, Dense: 1.5, Long: true, Blur: true, Local: true, Input: "kernel"}
}

// kernelExpression correlates each channel with a kernel per item. Draws have the given size and intensity.
func kernelExpression(s Shape, size, intensity float64) (Expression, error) {
	filter, v, err := newMotion(s, size, intensity)
	if err != nil {
		return Expression{}, err
	}
	return Expression{Forward: filter.Apply, Variable: v, Spectrum: filter.Spectrum()}, nil
}

func motionParameters(size float64) parameter.List {
	return parameter.List{
		{Name: "size", Default: size, Max: 256, Open: true, Unit: at256, Doc: "side of the kernel"},
		{Name: "intensity", Default: 0.5, Max: 1, Open: true, Doc: "length and curvature of the path"},
	}
}

// kernelFilter correlates images with an encoded kernel per item. The border is reflected without repeating the edge.
type kernelFilter interface {
	Apply(g *onnx.Graph, x, kernels onnx.Value) onnx.Value
	Encode(kernel []float32, size int) []float32
	Dims() []int
	// Spectrum is the number of values of the spectrum of a channel, 0 for filters of matrices.
	Spectrum() int
}

// newMotion makes the filter and the kernels of motion blur, whose side is in pixels at 256.
func newMotion(s Shape, side, intensity float64) (kernelFilter, *Variable, error) {
	size := s.odd(side)
	if err := fitsReflection(size, s, ErrShape); err != nil {
		return nil, nil, err
	}
	var filter kernelFilter
	long := max(s.Height, s.Width) > axis.MaxDense
	if long {
		filter = axis.NewFourierFilter(s.Height, s.Width, size/2)
	} else {
		filter = axis.NewReflectFilter(s.Height, s.Width)
	}
	return filter, &Variable{
		Dims: filter.Dims(),
		Draw: func(r *noise.Stream) *Draw {
			return &Draw{Name: "kernel", Dims: []int{size, size}, Data: motionKernel(r, size, intensity)}
		},
		Check: func(d *Draw) error {
			if err := checkKernel(d, s); err != nil || !long || d.Dims[0] <= size {
				return err
			}
			return fmt.Errorf("%w kernel: it has %d pixels, the parameter size permits %d in an image of %d×%d; set size to %d or more", ErrParam,
				d.Dims[0], size, s.Width, s.Height, int(math.Ceil(float64(d.Dims[0])*256/float64(min(s.Height, s.Width)))))
		},
		Encode: func(d *Draw) []float32 { return filter.Encode(d.Data, d.Dims[0]) },
	}, nil
}

// checkKernel accepts any square kernel of odd size that fits the reflection: a measured kernel
// need not have the task's size.
func checkKernel(d *Draw, s Shape) error {
	if d.Name != "kernel" || len(d.Dims) != 2 || d.Dims[0] != d.Dims[1] || d.Dims[0]%2 == 0 {
		return fmt.Errorf("%w kernel: its shape is %v, it must be square and odd; pad it with zeros", ErrParam, d.Dims)
	}
	if err := fitsReflection(d.Dims[0], s, ErrParam); err != nil {
		return err
	}
	sum := 0.0
	for _, v := range d.Data {
		sum += float64(v)
	}
	if sum == 0 {
		return fmt.Errorf("%w kernel: its sum is 0, it must be 1: a kernel is bright where the light went", ErrParam)
	}
	if !(math.Abs(sum-1) <= 1e-3) {
		return fmt.Errorf("%w kernel: its sum is %g, it must be 1; divide it by its sum", ErrParam, sum)
	}
	return nil
}
