package operator

import (
	"fmt"
	"math"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
)

// inpaint is y = m∘x with one mask for all channels; only observed pixels count in the
// data term.
type inpaint struct {
	shape Shape
	mask  func(s *noise.Stream, m []float32)
}

func inpaintBoxTask() task {
	return task{
		name: InpaintBox, about: "a square hole at a seeded position", masked: true,
		defaults: map[string]float64{"size": 128, "margin": 16},
		make: func(s Shape, p map[string]float64) (definition, error) {
			size, margin := int(math.Round(s.length(p["size"]))), int(math.Round(s.length(p["margin"])))
			if p["size"] <= 0 || p["margin"] < 0 || size < 1 || size+2*margin > min(s.Height, s.Width) {
				return nil, fmt.Errorf("%w size, margin: a hole of %d with a margin of %d does not fit %d×%d",
					ErrParam, size, margin, s.Width, s.Height)
			}
			return &inpaint{s, func(r *noise.Stream, m []float32) { box(r, m, s, size, margin) }}, nil
		},
	}
}

func inpaintRandomTask() task {
	return task{
		name: InpaintRandom, about: "a share of the pixels dropped at seeded positions", masked: true,
		defaults: map[string]float64{"drop": 0.7},
		make: func(s Shape, p map[string]float64) (definition, error) {
			if err := positive(p, "drop", 0.99); err != nil {
				return nil, err
			}
			return &inpaint{s, func(r *noise.Stream, m []float32) { scatter(r, m, p["drop"]) }}, nil
		},
	}
}

// box clears a square whose top-left corner is uniform within the margins.
func box(r *noise.Stream, m []float32, s Shape, size, margin int) {
	top := margin + r.Intn(s.Height-size-2*margin+1)
	left := margin + r.Intn(s.Width-size-2*margin+1)
	for i := range m {
		y, x := i/s.Width, i%s.Width
		if y < top || y >= top+size || x < left || x >= left+size {
			m[i] = 1
		}
	}
}

// scatter clears exactly round(drop·pixels) pixels.
func scatter(r *noise.Stream, m []float32, drop float64) {
	dropped := int(math.Round(drop * float64(len(m))))
	for i, p := range r.Permutation(len(m)) {
		if i >= dropped {
			m[p] = 1
		}
	}
}

func (o *inpaint) measurement() []int {
	return []int{o.shape.Channels, o.shape.Height, o.shape.Width}
}

func (o *inpaint) forward(g *onnx.Graph, x, p onnx.Value) onnx.Value { return g.Mul(x, p) }

func (o *inpaint) draw(r *noise.Stream) *Draw {
	d := &Draw{Name: "mask", Dims: []int{o.shape.Height, o.shape.Width}, Data: make([]float32, o.shape.Height*o.shape.Width)}
	o.mask(r, d.Data)
	return d
}

func (o *inpaint) check(d *Draw) error {
	if d.Name != "mask" || len(d.Dims) != 2 || d.Dims[0] != o.shape.Height || d.Dims[1] != o.shape.Width {
		return fmt.Errorf("%w mask: it is %v, the image is %d×%d", ErrParam, d.Dims, o.shape.Height, o.shape.Width)
	}
	for i, v := range d.Data {
		if v != 0 && v != 1 {
			return fmt.Errorf("%w mask: element %d is %g, only 0 (dropped) and 1 (observed) are allowed", ErrParam, i, v)
		}
	}
	return nil
}

func (o *inpaint) parameter() []int { return []int{1, o.shape.Height, o.shape.Width} }

func (o *inpaint) encode(d *Draw) []float32 { return d.Data }
