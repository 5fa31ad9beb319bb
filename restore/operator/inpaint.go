package operator

import (
	"fmt"
	"math"

	"ddiff/internal/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/parameter"
)

// The tasks of filling in dropped pixels.
const (
	InpaintBox    = "inpaint_box"
	InpaintRandom = "inpaint_random"
	Inpaint       = "inpaint"
)

// inpaintOwn is y = m∘x with a mask from a file, which is scaled to the image.
func inpaintOwn() Definition {
	return Definition{
		Label: "Inpainting", Doc: "the pixels of a mask from a file dropped",
		Linear: true,
		Build: func(s Shape, _ map[string]float64) (Expression, error) {
			const drop = 0.5 // of the draw for checks of the operator
			e := inpaint(s, func(r *noise.Stream, m []float32) { scatter(r, m, drop) })
			e.Variable.Scaled = true
			return e, nil
		},
		SVD:   masked,
		Input: "mask", Required: true,
	}
}

// ScalesMask reports whether masks of other sizes are scaled, see [Operator.ScaleMask].
func (o *Operator) ScalesMask() bool {
	return o.expression.Variable != nil && o.expression.Variable.Scaled
}

// ScaleMask returns a mask for width×height pixels: each has the value of the mask's pixel that contains its centre. The mask's sides must
// have the ratio of width and height, up to rounding a side of either to whole pixels; otherwise the error wraps [ErrParam] and names
// both sizes.
func (o *Operator) ScaleMask(d *Draw, width, height int) (*Draw, error) {
	if len(d.Dims) != 2 || d.Dims[0] < 1 || d.Dims[1] < 1 || d.Dims[0]*d.Dims[1] != len(d.Data) {
		return nil, fmt.Errorf("task %s: %w mask: its shape is %v, want [rows, columns]", o.Task, ErrParam, d.Dims)
	}
	h, w := d.Dims[0], d.Dims[1]
	if h == height && w == width {
		return d, nil
	}
	// One pixel more or less on a side changes the product by the other image's other side.
	if off := w*height - h*width; max(off, -off) >= max(w, h, width, height) {
		return nil, fmt.Errorf("task %s: %w mask: it has %d×%d pixels, the image %d×%d; give a mask whose sides have the same ratio", o.Task, ErrParam, w, h, width, height)
	}
	out := &Draw{Name: d.Name, Dims: []int{height, width}, Data: make([]float32, height*width)}
	for i := range height {
		row := d.Data[(2*i+1)*h/(2*height)*w:][:w]
		for j := range width {
			out.Data[i*width+j] = row[(2*j+1)*w/(2*width)]
		}
	}
	return out, nil
}

func inpaintBox() Definition {
	return Definition{
		Label: "Inpainting (box)", Doc: "a square hole at a seeded position",
		Linear: true,
		Parameters: parameter.List{
			{Name: "size", Default: 128, Max: 256, Open: true, Unit: at256, Doc: "side of the hole"},
			{Name: "margin", Default: 16, Max: 128, Unit: at256, Doc: "least distance of the hole from the border"},
		},
		Build: func(s Shape, p map[string]float64) (Expression, error) {
			size, margin := int(math.Round(s.Length(p["size"]))), int(math.Round(s.Length(p["margin"])))
			if size < 1 || size+2*margin > min(s.Height, s.Width) {
				return Expression{}, fmt.Errorf("%w size, margin: a hole of %d with a margin of %d does not fit %d×%d",
					ErrParam, size, margin, s.Width, s.Height)
			}
			return inpaint(s, func(r *noise.Stream, m []float32) { box(r, m, s, size, margin) }), nil
		},
		SVD:   masked,
		Input: "mask",
	}
}

func inpaintRandom() Definition {
	return Definition{
		Label: "Inpainting (random)", Doc: "a share of the pixels dropped at seeded positions",
		Linear: true,
		Parameters: parameter.List{
			{Name: "drop", Default: 0.7, Max: 0.99, Open: true, Doc: "share of the pixels that are dropped"},
		},
		Build: func(s Shape, p map[string]float64) (Expression, error) {
			return inpaint(s, func(r *noise.Stream, m []float32) { scatter(r, m, p["drop"]) }), nil
		},
		SVD:   masked,
		Input: "mask",
	}
}

// masked is the decomposition of y = m∘x.
func masked(Shape, map[string]float64) (*SVD, error) {
	return diagonalSVD(func(_ *onnx.Graph, mask onnx.Value) onnx.Value { return mask }), nil
}

// inpaint is y = m∘x with one mask for all channels. Only observed pixels count in the data
// term. mask sets the observed pixels of a mask of zeros to 1.
func inpaint(s Shape, mask func(r *noise.Stream, m []float32)) Expression {
	return Expression{
		Forward: func(g *onnx.Graph, x, m onnx.Value) onnx.Value { return g.Mul(x, m) },
		Variable: &Variable{
			Dims: []int{1, s.Height, s.Width},
			Draw: func(r *noise.Stream) *Draw {
				d := &Draw{Name: "mask", Dims: []int{s.Height, s.Width}, Data: make([]float32, s.Height*s.Width)}
				mask(r, d.Data)
				return d
			},
			Check:  func(d *Draw) error { return checkMask(d, s) },
			Weight: true,
		},
	}
}

func checkMask(d *Draw, s Shape) error {
	if d.Name != "mask" || len(d.Dims) != 2 || d.Dims[0] != s.Height || d.Dims[1] != s.Width {
		return fmt.Errorf("%w mask: its shape is %v, the image is %d×%d", ErrParam, d.Dims, s.Width, s.Height)
	}
	observed := false
	for i, v := range d.Data {
		if v != 0 && v != 1 {
			return fmt.Errorf("%w mask: element %d is %g, only 0 (dropped) and 1 (observed) are allowed", ErrParam, i, v)
		}
		observed = observed || v == 1
	}
	if !observed {
		return fmt.Errorf("%w mask: no pixel is observed; a mask has 1 where the pixel is known", ErrParam)
	}
	return nil
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
