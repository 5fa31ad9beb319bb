package operator

import (
	"errors"
	"fmt"
	"slices"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/raster"
	"ddiff/restore/onnx"
)

// Operator is A for one task, one set of parameters and one image shape. Make it with [Set.New].
type Operator struct {
	// Task is the name, Params the complete parameters with defaults filled in.
	Task   string
	Params map[string]float64
	// Image and Measurement are the shapes of x and y for one item.
	Image       Shape
	Measurement []int
	// Definition is that of the task; for an operator of an item with a file it is [Definition.Given].
	Definition

	expression Expression
	svd        func() (*SVD, error)
	bytes      func() (float64, error)
}

// Bytes estimates the memory in bytes for A and its gradient at one image, if no value gives way to another, see [onnx.Graph.Bytes]. The error names
// a node whose size is unknown.
func (o *Operator) Bytes() (float64, error) { return o.bytes() }

func (o *Operator) countBytes() (float64, error) {
	g, _, _, err := o.graph(1, true)
	if err != nil {
		return 0, err
	}
	return g.Bytes()
}

// MeasurementSize is the number of entries of y for one item.
func (o *Operator) MeasurementSize() int { return infer.Size(o.Measurement) }

// MeasurementDims is the shape of y for n items.
func (o *Operator) MeasurementDims(n int) []int { return append([]int{n}, o.Measurement...) }

// Spectrum is the number of values of the spectrum of one channel, see [Expression.Spectrum].
func (o *Operator) Spectrum() int { return o.expression.Spectrum }

// Copies is the number of copies of the image that the operator needs in memory, see [Expression.Copies].
func (o *Operator) Copies() int { return o.expression.Copies }

// ParameterDims is the shape of the encoded draws of n items, nil for a task without draws.
func (o *Operator) ParameterDims(n int) []int {
	if v := o.expression.Variable; v != nil {
		return append([]int{n}, v.Dims...)
	}
	return nil
}

// Draw makes the item's mask or kernel from its key; nil for a task without draws.
func (o *Operator) Draw(key noise.Key) *Draw {
	if v := o.expression.Variable; v != nil {
		return v.Draw(noise.NewStream(key, noise.Operator))
	}
	return nil
}

// Encode turns a draw into the input of the expression; nil for a task without draws. It
// returns ErrParam for a missing draw, for one that the task does not use, and for one that does not fit the operator.
func (o *Operator) Encode(d *Draw) ([]float32, error) {
	v := o.expression.Variable
	if v == nil && d != nil {
		return nil, fmt.Errorf("task %s: %w %s: the operator uses none", o.Task, ErrParam, d.Name)
	}
	if v == nil {
		return nil, nil
	}
	if d == nil {
		return nil, fmt.Errorf("task %s: %w: the mask or kernel is missing", o.Task, ErrParam)
	}
	if err := v.Check(d); err != nil {
		return nil, fmt.Errorf("task %s: %w", o.Task, err)
	}
	if v.Encode == nil {
		return d.Data, nil
	}
	return v.Encode(d), nil
}

// CheckShape returns an error unless an array has the shape of y for one item. Leading dimensions of length 1 do not count.
func (o *Operator) CheckShape(found []int) error {
	if slices.Equal(significant(found), significant(o.Measurement)) {
		return nil
	}
	text := fmt.Sprintf("its shape is %v, the task needs %v", found, o.Measurement)
	if len(found) == 3 && slices.Equal([]int{found[2], found[0], found[1]}, o.Measurement) {
		text += channelsFirst
	}
	return errors.New(text)
}

// Applied is A(x) in a graph.
type Applied struct {
	// Y is A(x), [N, Measurement...].
	Y onnx.Value
	// gradient builds Jᵀ·seed, recover is [Expression.Recover] at x.
	gradient func(seed onnx.Value) (onnx.Value, error)
	recover  func(seed, r onnx.Value, limit float32) onnx.Value
}

// Gradient builds the vector-Jacobian product Jᵀ·seed at x, for a seed in the shape of Y. It returns [onnx.ErrNoGradient]
// for an operation without a rule.
func (a Applied) Gradient(seed onnx.Value) (onnx.Value, error) { return a.gradient(seed) }

// Recover is Gradient, and passes the seed also at saturated entries of Y whose residual r = y − Y leads back into the range by more
// than limit, in units of y. It is Gradient for an operator without [Expression.Recover].
func (a Applied) Recover(seed, r onnx.Value, limit float32) (onnx.Value, error) {
	if a.recover == nil {
		return a.gradient(seed)
	}
	return a.recover(seed, r, limit), nil
}

// Apply builds A(x) for a batch x [N, C, H, W]; draws is the batch of encoded draws. It returns ErrFile for an operator file
// that g cannot contain.
func (o *Operator) Apply(g *onnx.Graph, x, draws onnx.Value) (Applied, error) {
	var y onnx.Value
	if file := o.expression.file; file != nil {
		var err error
		if y, err = file.apply(g, x, draws); err != nil {
			return Applied{}, err
		}
	} else {
		y = o.expression.Forward(g, x, draws)
	}
	a := Applied{Y: y, gradient: func(seed onnx.Value) (onnx.Value, error) { return g.Gradient(y, x, seed) }}
	if adjoint := o.expression.Adjoint; adjoint != nil {
		a.gradient = func(seed onnx.Value) (onnx.Value, error) { return adjoint(g, seed, draws), nil }
	}
	if back := o.expression.Recover; back != nil {
		a.recover = func(seed, r onnx.Value, limit float32) onnx.Value { return back(g, x, seed, r, limit) }
	}
	return a, nil
}

// ApplyShort is Apply in the coordinates of [Expression.Short], in which steps compute.
func (o *Operator) ApplyShort(g *onnx.Graph, x, draws onnx.Value) (Applied, error) {
	short := o.expression.Short
	if short == nil {
		return o.Apply(g, x, draws)
	}
	y := short.Forward(g, x, draws)
	return Applied{Y: y, gradient: func(seed onnx.Value) (onnx.Value, error) { return g.Gradient(y, x, seed) }}, nil
}

// ShortDims is the shape of n measurements in the coordinates of [Expression.Short].
func (o *Operator) ShortDims(n int) []int {
	if short := o.expression.Short; short != nil {
		return append([]int{n}, short.Dims...)
	}
	return o.MeasurementDims(n)
}

// Short returns a measurement in the coordinates of [Expression.Short].
func (o *Operator) Short(y []float32) []float32 {
	if short := o.expression.Short; short != nil {
		return short.Of(y)
	}
	return y
}

// Proximal is [Expression.Proximal]; ok: there is one. Only then it calls weight, which may add numbers of the settings to the graph.
func (o *Operator) Proximal(g *onnx.Graph, v, y onnx.Value, weight func() onnx.Value) (x onnx.Value, ok bool) {
	if o.expression.Proximal == nil {
		return onnx.Value{}, false
	}
	return o.expression.Proximal(g, v, y, weight()), true
}

// Inverse is [Expression.Inverse]; ok: there is one.
func (o *Operator) Inverse(g *onnx.Graph, y onnx.Value) (x onnx.Value, ok bool) {
	if o.expression.Inverse == nil {
		return onnx.Value{}, false
	}
	return o.expression.Inverse(g, y), true
}

// Masked reports whether a mask says which entries of y are observed.
func (o *Operator) Masked() bool { return o.expression.Variable != nil && o.expression.Variable.Weight }

// Weighted applies the data term's weights to a residual in the shape of y: unobserved
// pixels of an inpainting task do not count. Other tasks have no weights.
func (o *Operator) Weighted(g *onnx.Graph, r, draws onnx.Value) onnx.Value {
	if o.Masked() {
		return g.Mul(r, draws)
	}
	return r
}

// WeightDims is the shape of the weights of the pixels of y for n items, which all channels share.
func (o *Operator) WeightDims(n int) []int { return []int{n, 1, o.Measurement[1], o.Measurement[2]} }

// Observed returns the entries of v, in the shape of y, that the data term uses; draw is the encoded mask or kernel. Only
// inpainting drops entries: v itself is returned otherwise.
func (o *Operator) Observed(v, draw []float32) []float32 {
	if !o.Masked() {
		return v
	}
	out := make([]float32, 0, len(v))
	for i, e := range v {
		if draw[i%len(draw)] != 0 { // the same mask for all channels
			out = append(out, e)
		}
	}
	return out
}

// Baseline is the degraded image, which a restoration has to beat: y where it has the image's
// shape, its bicubic enlargement for super-resolution, and nil where y is not an image (phase
// retrieval).
func (o *Operator) Baseline(y []float32) *raster.Image {
	if b := o.expression.Baseline; b != nil {
		y = b(y)
	} else if !slices.Equal(o.Measurement, o.Image.Dims(1)[1:]) {
		return nil
	}
	return &raster.Image{Channels: o.Image.Channels, Height: o.Image.Height, Width: o.Image.Width, Pix: y}
}

// Picture shows y to people: y itself where it is an image, else a rendering.
func (o *Operator) Picture(y []float32) *raster.Image {
	if o.expression.file != nil {
		return arrange(y, o.Measurement)
	}
	if p := o.expression.Picture; p != nil {
		y = p(y)
	}
	return &raster.Image{Channels: o.Measurement[0], Height: o.Measurement[1], Width: o.Measurement[2], Pix: y}
}
