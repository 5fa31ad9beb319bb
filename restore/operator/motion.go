package operator

import (
	"fmt"
	"math"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
)

// motion is the correlation of each channel with the item's kernel; the border is reflected
// without repeating the edge.
type motion struct {
	shape     Shape
	size      int
	intensity float64
	filter    *reflectFilter
}

func motionTask() task {
	return task{
		name: MotionDeblur, about: "blur along a seeded random path, reflecting border",
		defaults: map[string]float64{"size": 61, "intensity": 0.5},
		make:     func(s Shape, p map[string]float64) (definition, error) { return newMotion(s, p) },
	}
}

func newMotion(s Shape, p map[string]float64) (*motion, error) {
	if err := positive(p, "size", 256); err != nil {
		return nil, err
	}
	if err := positive(p, "intensity", 1); err != nil {
		return nil, err
	}
	size := s.odd(p["size"])
	if size/2 >= min(s.Height, s.Width) {
		return nil, fmt.Errorf("%w: a kernel of %d pixels is wider than the reflection of %d×%d", ErrShape, size, s.Width, s.Height)
	}
	return &motion{s, size, p["intensity"], newReflectFilter(s)}, nil
}

func (o *motion) measurement() []int {
	return []int{o.shape.Channels, o.shape.Height, o.shape.Width}
}

func (o *motion) forward(g *onnx.Graph, x, p onnx.Value) onnx.Value {
	return o.filter.apply(g, x, p)
}

func (o *motion) draw(r *noise.Stream) *Draw {
	return &Draw{Name: "kernel", Dims: []int{o.size, o.size}, Data: motionKernel(r, o.size, o.intensity)}
}

// check accepts any square kernel of odd size that fits the reflection: one that a user
// measured need not have the task's size.
func (o *motion) check(d *Draw) error {
	if d.Name != "kernel" || len(d.Dims) != 2 || d.Dims[0] != d.Dims[1] || d.Dims[0]%2 == 0 {
		return fmt.Errorf("%w kernel: its shape is %v, it must be square and odd", ErrParam, d.Dims)
	}
	if d.Dims[0]/2 >= min(o.shape.Height, o.shape.Width) {
		return fmt.Errorf("%w kernel: %d pixels are wider than the reflection of %d×%d", ErrParam, d.Dims[0], o.shape.Width, o.shape.Height)
	}
	sum := 0.0
	for _, v := range d.Data {
		sum += float64(v)
	}
	if !(math.Abs(sum-1) <= 1e-3) {
		return fmt.Errorf("%w kernel: its sum is %g, it must be 1", ErrParam, sum)
	}
	return nil
}

func (o *motion) parameter() []int { return o.filter.parameter() }

func (o *motion) encode(d *Draw) []float32 { return o.filter.encode(d.Data, d.Dims[0]) }
