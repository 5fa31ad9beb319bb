package operator

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/restore/onnx"
)

const (
	// maxSide is the largest side of an image of a campaign, in pixels.
	maxSide = 4096
	// maxElements is the largest number of elements of one measurement or kernel, 256 MiB.
	maxElements = 1 << 26
)

// Definition returns the task of the file under a name.
func (f *File) Definition(name string) Definition {
	d := Definition{Name: name, Label: name, Doc: f.Doc, Parameters: f.Parameters, Own: f, Build: f.build}
	if f.draw != nil {
		d.Input = "kernel"
	}
	return d
}

// fileExpression is a file's operator for images of one shape.
type fileExpression struct {
	file        *File
	params      map[string]float64
	measurement []int
}

// build checks the shape and returns the expression for it.
func (f *File) build(s Shape, p map[string]float64) (Expression, error) {
	if s.Height%f.multipleOf != 0 || s.Width%f.multipleOf != 0 {
		return Expression{}, fmt.Errorf("%w: %d×%d, operator %s needs sides that are multiples of %d", ErrShape, s.Width, s.Height, f.Path, f.multipleOf)
	}
	lengths := map[string]int{}
	dims := s.Dims(1)
	if err := f.x.Bind(dims, lengths); err != nil {
		return Expression{}, fmt.Errorf("%w: operator %s is for images x %s, got %v", ErrShape, f.Path, f.x.Text(), dims)
	}
	y, err := f.itemShape(f.y, lengths)
	if err != nil {
		return Expression{}, err
	}
	e := Expression{Measurement: y, file: &fileExpression{f, p, y}}
	if f.draw != nil {
		kernel, err := f.itemShape(*f.draw, lengths)
		if err != nil {
			return Expression{}, err
		}
		e.Variable = f.variable(kernel)
	}
	return e, nil
}

// itemShape is the shape of a port's values for one item.
func (f *File) itemShape(p modelfile.Port, lengths map[string]int) ([]int, error) {
	shape := modelfile.Port{Name: p.Name, Dims: p.Dims[1:], DimNames: p.DimNames[1:]}
	dims, err := shape.Shape(lengths)
	if err != nil {
		return nil, fmt.Errorf("%w: operator %s: %w; name it after a dimension of x %s, as in H/4 or W*2, or export fixed sizes",
			ErrShape, f.Path, err, f.x.Text())
	}
	size := 1
	for _, d := range dims {
		if size *= d; d < 1 || d > maxElements || size > maxElements {
			return nil, fmt.Errorf("%w: operator %s: %s has the shape %v for one image, at most %d elements are allowed",
				ErrShape, f.Path, p.Name, dims, maxElements)
		}
	}
	return dims, nil
}

// variable is the kernel: independent normal entries, or an array of a list.
func (f *File) variable(dims []int) *Variable {
	return &Variable{
		Dims: dims,
		Draw: func(r *noise.Stream) *Draw {
			d := &Draw{Name: "kernel", Dims: dims, Data: make([]float32, infer.Size(dims))}
			r.Normal(d.Data, f.std)
			return d
		},
		Check: func(d *Draw) error {
			if d.Name != "kernel" || !slices.Equal(significant(d.Dims), significant(dims)) {
				return fmt.Errorf("%w kernel: its shape is %v, operator %s needs %v in a .npy file", ErrParam, d.Dims, f.Path, dims)
			}
			return nil
		},
	}
}

// significant returns a shape without leading ones.
func significant(dims []int) []int {
	for len(dims) > 0 && dims[0] == 1 {
		dims = dims[1:]
	}
	return dims
}

// apply builds A(x). A file for one image at a time is copied for each image.
func (e *fileExpression) apply(g *onnx.Graph, x, draws onnx.Value) (onnx.Value, error) {
	n := x.Dims[0]
	if e.file.x.Dims[0] != 1 || n == 1 {
		return e.inline(g, x, draws)
	}
	ys := make([]onnx.Value, n)
	for i := range ys {
		var draw onnx.Value
		if e.file.draw != nil {
			draw = g.Slice(draws, 0, i, i+1)
		}
		var err error
		if ys[i], err = e.inline(g, g.Slice(x, 0, i, i+1), draw); err != nil {
			return onnx.Value{}, err
		}
	}
	return g.Concat(0, ys...), nil
}

// inline copies the file's graph once, in float32.
func (e *fileExpression) inline(g *onnx.Graph, x, draws onnx.Value) (onnx.Value, error) {
	defer g.Half(g.Half(false))
	f := e.file
	inputs := map[string]onnx.Value{portImage: x}
	if f.draw != nil {
		inputs[f.draw.Name] = draws
	}
	for _, p := range f.scalars {
		inputs[p.Name] = g.Const([]float32{float32(e.params[p.Name])}, p.Dims...)
	}
	var out map[string]onnx.Value
	m, err := f.inOpset(g.Opset())
	if err == nil {
		out, err = g.Inline(m, inputs, map[string][]int{portY: append([]int{x.Dims[0]}, e.measurement...)})
	}
	if err != nil {
		return onnx.Value{}, fmt.Errorf("operator %s: %w", f.Path, err)
	}
	return out[portY], nil
}

// opset returns the operator set of a graph that contains only the operator.
func (o *Operator) opset() int {
	if o.Own != nil {
		return o.Own.opset
	}
	return onnx.DefaultOpset
}

// Smallest returns the smallest shape of an image that the file takes, at least least pixels a side if it is free.
func (f *File) Smallest(least int) Shape {
	side := int(math.Ceil(float64(least)/float64(f.multipleOf))) * f.multipleOf
	s := Shape{f.x.Dims[1], side, side}
	if f.x.Dims[2] > 0 {
		s.Height = f.x.Dims[2]
	}
	if f.x.Dims[3] > 0 {
		s.Width = f.x.Dims[3]
	}
	return s
}

// New returns the operator with the default parameters for one shape.
func (f *File) New(s Shape) (*Operator, error) {
	const name = "own"
	return Set{f.Definition(name)}.New(name, nil, s)
}

// inferOutput sets the free sizes of y in a file for images of one size: exporters leave names of their own there, as "Addy_dim_1".
func (f *File) inferOutput() {
	if !f.FixesSize() {
		return
	}
	inputs := map[string][]int{portImage: f.Smallest(1).Dims(1)}
	if f.draw != nil {
		inputs[f.draw.Name] = append([]int{1}, f.draw.Dims[1:]...)
	}
	types, err := f.model.Types(inputs)
	y := types[portY].Dims
	if err != nil || len(y) != len(f.y.Dims) {
		return
	}
	for i, n := range f.y.Dims[1:] {
		if n < 0 {
			f.y.Dims[1+i] = y[1+i]
		}
	}
}

// checkGraph returns [onnx.ErrNoGradient] if the gradient of y has an operation without a rule, and ErrFile if the file does not suit its
// smallest image.
func (f *File) checkGraph() error {
	op, err := f.New(f.Smallest(8))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	g := onnx.NewGraph(f.opset)
	x := g.Input("x", onnx.Float, op.Image.Dims(1)...)
	var draw onnx.Value
	if dims := op.ParameterDims(1); dims != nil {
		draw = g.Input("draw", onnx.Float, dims...)
	}
	a, err := op.Apply(g, x, draw)
	if err != nil {
		return err
	}
	_, err = a.Gradient(g.Input("w", onnx.Float, op.MeasurementDims(1)...))
	if errors.Is(err, infer.ErrShape) { // its memory too is unknown
		err = fmt.Errorf("%w; export it with fixed sizes, and without operations whose size depends on values", err)
	}
	return err
}
