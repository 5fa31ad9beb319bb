package check

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"ddiff/internal/regular"
	"ddiff/restore/noise"
	"ddiff/restore/onnx/infer"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
)

// The kinds of files that Operator checks, the metadata entry ddiff.kind.
const (
	// KindOperator: y = A(x), or y = A(x; k) with a parameter k, and perhaps gx = Jᵀ·w for w in the shape of y. See
	// [operator.Load]. Files with an output y need no metadata.
	KindOperator = "operator"
	// KindMetric: the distance of x and y, one number per image. Output distance.
	KindMetric = "metric"
)

// OperatorOptions configure the check of an operator or a metric.
type OperatorOptions struct {
	// Size is the side of the square images in pixels, rounded up to ddiff.multiple_of. Default: the sides that the file fixes, or 256.
	Size int
	// Tolerance is the largest relative error of the gradient and of the adjoint. Default: 0.01.
	Tolerance float64
}

// MetricReport holds the properties of a distance.
type MetricReport struct {
	// Same is the distance of an image from itself.
	Same float64 `json:"same"`
	// Asymmetry is the largest relative difference of d(x, y) and d(y, x).
	Asymmetry float64 `json:"asymmetry"`
	// Distances are between an image and the image with noise of increasing strength.
	Distances []float64 `json:"distances"`
}

// OperatorParameter describes a parameter of an operator.
type OperatorParameter struct {
	Name    string  `json:"name"`
	Default float64 `json:"default"`
	Range   string  `json:"range"`
	Doc     string  `json:"doc,omitempty"`
}

// OperatorReport is the result of checking an operator or a metric.
type OperatorReport struct {
	Kind   string  `json:"kind"`
	File   string  `json:"file"`
	SHA256 string  `json:"sha256"`
	Name   string  `json:"name"`
	Image  []int   `json:"image"`
	Output []int   `json:"output"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Parameters are the numbers that a campaign may set.
	Parameters []OperatorParameter `json:"parameters,omitempty"`
	// Differentiates: the file has the gradient as an output. Otherwise it comes by reverse mode.
	Differentiates bool                     `json:"differentiates"`
	Gradient       *operator.GradientReport `json:"gradient,omitempty"`
	// Adjoint is |⟨Ax, w⟩ − ⟨x, Aᵀw⟩| over the product of the norms, if the card declares A linear.
	Adjoint *float64      `json:"adjoint,omitempty"`
	Metric  *MetricReport `json:"metric,omitempty"`
	Vectors *Agreement    `json:"vectors,omitempty"`
	// MSPerCall is the median time of a call for one image, in milliseconds.
	MSPerCall float64  `json:"ms_per_call"`
	PeakMiB   float64  `json:"peak_mib"`
	Problems  []string `json:"problems,omitempty"`
}

// OK reports whether the check found no problem.
func (r *OperatorReport) OK() bool {
	return len(r.Problems) == 0 && (r.Vectors == nil || r.Vectors.OK)
}

// operatorCheck holds an operator or a metric and its inputs.
type operatorCheck struct {
	network *network
	o       OperatorOptions
	x       *raster.Array
	in      map[string]*raster.Array
	key     noise.Key
}

// Operator checks the ONNX file of an operator or a metric. Errors are modelfile.ErrModel, ErrInterface, ErrVectors and
// ErrNotFinite; deviations are in the report.
func Operator(ctx context.Context, rt *onnxruntime.Runtime, file string, o OperatorOptions) (*OperatorReport, error) {
	data, err := modelfile.ReadFile(file)
	if err != nil {
		return nil, err
	}
	n, err := newNetwork(file, data)
	if err != nil {
		return nil, err
	}
	if o.Tolerance == 0 {
		o.Tolerance = 0.01
	}
	c := &operatorCheck{network: n, o: o, in: map[string]*raster.Array{}, key: noise.NewKey([32]byte([]byte("ddiff operator check: fixed seed.")[:32]))}
	if err := c.inputs(); err != nil {
		return nil, err
	}
	if _, ok := n.output("y"); ok && n.meta["ddiff.kind"] == "" {
		n.meta["ddiff.kind"] = KindOperator
	}
	r := &OperatorReport{Kind: n.meta["ddiff.kind"], File: file, SHA256: regular.SHA256(data), Name: n.meta["ddiff.name"], Image: c.x.Shape}
	switch r.Kind {
	case KindOperator:
		if err = c.differentiate(data, r); err == nil {
			err = c.operator(ctx, rt, r)
			c.network = n
		}
	case KindMetric:
		err = c.metric(ctx, rt, r)
	default:
		return nil, fmt.Errorf("%s: %w: its metadata entry ddiff.kind is %q, want %s or %s", file, ErrInterface, r.Kind, KindOperator, KindMetric)
	}
	if err != nil {
		return nil, err
	}
	if r.Vectors, err = n.checkVectors(ctx, rt); err != nil {
		return nil, err
	}
	r.PeakMiB = float64(PeakMiB())
	return r, nil
}

// inputs generates the image.
func (c *operatorCheck) inputs() error {
	n := c.network
	p, ok := n.input("x")
	if !ok || len(p.Dims) != 4 {
		return fmt.Errorf("%s: %w: its inputs are %v, want an image batch x", n.file, ErrInterface, names(n.inputs))
	}
	multiple := 1
	if text := n.meta["ddiff.multiple_of"]; text != "" {
		var err error
		if multiple, err = strconv.Atoi(text); err != nil || multiple < 1 {
			return fmt.Errorf("%s: %w: ddiff.multiple_of is %q", n.file, ErrInterface, text)
		}
	}
	channels := p.Dims[1]
	if channels < 1 {
		return fmt.Errorf("%s: %w: the channels of x are %q, want a number", n.file, ErrInterface, p.Dim(1))
	}
	size := imageSize(c.o.Size, multiple)
	shape := []int{1, channels, size, size}
	for i, fixed := range p.Dims[2:] {
		switch {
		case fixed < 0:
		case fixed%multiple != 0:
			return fmt.Errorf("%s: %w: its images x are %s, and ddiff.multiple_of wants multiples of %d", n.file, ErrInterface, p.Text(), multiple)
		case c.o.Size != 0 && size != fixed:
			return fmt.Errorf("%s: %w: its images x are %s, and the size is %d; leave out --size", n.file, ErrInterface, p.Text(), size)
		default:
			shape[2+i] = fixed
		}
	}
	c.x = &raster.Array{Shape: shape, Data: smooth(shape)}
	grain := c.noise(len(c.x.Data), 0, 0.05)
	for i := range c.x.Data {
		c.x.Data[i] = 0.8*c.x.Data[i] + grain[i]
	}
	c.in["x"] = c.x
	return nil
}

// noise returns the n-th array of normal deviates, equal in every check.
func (c *operatorCheck) noise(size int, n uint32, std float64) []float32 {
	out := make([]float32, size)
	noise.Normal(out, c.key, noise.Operator, n, std)
	return out
}

// differentiate reads the file as campaigns do. The check goes on with the operator and its gradient, with the default
// parameters, in place of the file.
func (c *operatorCheck) differentiate(data []byte, r *OperatorReport) error {
	f, err := operator.Load(c.network.file, data)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInterface, err)
	}
	s := operator.Shape{Channels: c.x.Shape[1], Height: c.x.Shape[2], Width: c.x.Shape[3]}
	if data, err = f.WithGradient(s); err != nil {
		return fmt.Errorf("%s: %w: %w", c.network.file, ErrInterface, err)
	}
	for _, p := range f.Parameters {
		r.Parameters = append(r.Parameters, OperatorParameter{p.Name, p.Default, p.Range(), p.Doc})
	}
	r.Differentiates = f.Differentiates
	n, err := newNetwork(c.network.file, data)
	if err != nil {
		return err
	}
	n.meta = c.network.meta
	c.network = n
	return nil
}

// operator checks range, gradient and, if the card declares the operator linear, the adjoint.
func (c *operatorCheck) operator(ctx context.Context, rt *onnxruntime.Runtime, r *OperatorReport) error {
	n := c.network
	lengths := map[string]int{}
	x, _ := n.input("x")
	if err := x.Bind(c.x.Shape, lengths); err != nil {
		return fmt.Errorf("%s: %w: %w", n.file, ErrInterface, err)
	}
	y, ok := n.output("y")
	if !ok {
		return fmt.Errorf("%s: %w: its outputs are %v, want y and gx", n.file, ErrInterface, names(n.outputs))
	}
	shape, err := y.Shape(lengths)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", n.file, ErrInterface, err)
	}
	r.Output = shape
	for _, p := range n.inputs {
		switch p.Name {
		case "x":
		case "w":
			c.in["w"] = &raster.Array{Shape: shape, Data: c.noise(infer.Size(shape), 1, 1)}
		default:
			dims, err := p.Shape(lengths)
			if err != nil {
				return fmt.Errorf("%s: %w: %w", n.file, ErrInterface, err)
			}
			std := 1.0
			if s, err := strconv.ParseFloat(n.meta["ddiff.parameter_std"], 64); err == nil && s > 0 {
				std = s
			}
			c.in[p.Name] = &raster.Array{Shape: dims, Data: c.noise(infer.Size(dims), 2, std)}
		}
	}
	run, err := n.open(rt, c.in, []string{"y", "gx"}, nil)
	if err != nil {
		return err
	}
	defer run.close()
	got, times, err := c.times(ctx, run)
	if err != nil {
		return err
	}
	r.MSPerCall = times.median()
	if !slices.Equal(got["gx"].Shape, c.x.Shape) {
		return fmt.Errorf("%s: %w: gx has the shape %v, x has %v", n.file, ErrInterface, got["gx"].Shape, c.x.Shape)
	}
	r.Min, r.Max = float64(slices.Min(got["y"].Data)), float64(slices.Max(got["y"].Data))
	if r.Gradient, err = c.gradient(ctx, run); err != nil {
		return err
	}
	if !(r.Gradient.Error <= c.o.Tolerance) {
		r.Problems = append(r.Problems, fmt.Sprintf("the gradient differs from finite differences by %.3g, more than %g", r.Gradient.Error, c.o.Tolerance))
	}
	if n.meta["ddiff.linear"] == "true" {
		e, err := c.adjoint(ctx, run)
		if err != nil {
			return err
		}
		r.Adjoint = &e
		if !(e <= c.o.Tolerance) {
			r.Problems = append(r.Problems, fmt.Sprintf("the card declares the operator linear, but ⟨Ax, w⟩ and ⟨x, Aᵀw⟩ differ by %.3g", e))
		}
	}
	return nil
}

// times runs three times and returns the last results with the duration of each call.
func (c *operatorCheck) times(ctx context.Context, run *runner) (got map[string]*raster.Array, d durations, err error) {
	for range 3 {
		begin := time.Now()
		if got, err = run.run(ctx); err != nil {
			return nil, nil, err
		}
		d = append(d, time.Since(begin))
	}
	return got, d, nil
}

// gradient compares gx with finite differences.
func (c *operatorCheck) gradient(ctx context.Context, run *runner) (*operator.GradientReport, error) {
	r, err := operator.CompareGradient(ctx, c.x.Data, c.key, func(ctx context.Context, x, w []float32) (y, gx []float32, err error) {
		in := map[string]*raster.Array{"x": {Shape: c.x.Shape, Data: x}}
		if w != nil {
			in["w"] = &raster.Array{Shape: c.in["w"].Shape, Data: w}
		}
		run.set(in)
		got, err := run.run(ctx)
		if err != nil {
			return nil, nil, err
		}
		return got["y"].Data, got["gx"].Data, nil
	})
	return &r, err
}

// adjoint compares ⟨Ax, w⟩ with ⟨x, Aᵀw⟩.
func (c *operatorCheck) adjoint(ctx context.Context, run *runner) (float64, error) {
	x := &raster.Array{Shape: c.x.Shape, Data: c.noise(len(c.x.Data), 3, 1)}
	run.set(map[string]*raster.Array{"x": x, "w": c.in["w"]})
	got, err := run.run(ctx)
	if err != nil {
		return 0, err
	}
	y, gx, w := got["y"].Data, got["gx"].Data, c.in["w"].Data
	scale := max(math.Sqrt(dot(y, y)*dot(w, w)), math.Sqrt(dot(x.Data, x.Data)*dot(gx, gx)), 1e-12)
	return math.Abs(dot(y, w)-dot(x.Data, gx)) / scale, nil
}
