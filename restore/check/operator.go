package check

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/raster"
)

// The kinds of files that Operator checks, the metadata entry ddiff.kind.
const (
	// KindOperator: y = A(x), or y = A(x; k) with a parameter k, and gx = Jᵀ·w for w in the
	// shape of y. Inputs x, w and perhaps k; outputs y and gx.
	KindOperator = "operator"
	// KindMetric: the distance of x and y, one number per image. Output distance.
	KindMetric = "metric"
)

// OperatorOptions configure the check of an operator or a metric.
type OperatorOptions struct {
	// Size is the side of the square images in pixels, rounded up to ddiff.multiple_of. Default: 256.
	Size int
	// Vectors is a folder or an .npz file of reference vectors. Default: VectorsPath, if it exists.
	Vectors string
	// Limits bound the deviation from the vectors. Default: DefaultLimits.
	Limits Limits
	// Tolerance is the largest relative error of the gradient and of the adjoint. Default: 0.01.
	Tolerance float64
}

// GradientReport compares gx with finite differences of A: ⟨gx, d⟩ with (φ(x+hd) − φ(x−hd))/2h, for φ = ⟨w, A⟩ and
// directions d that are one half gx and one half noise, each of length 1. A is evaluated in float32, φ and the
// differences in float64.
type GradientReport struct {
	// Error is the relative difference: the median over the directions of the minimum over h.
	Error float64 `json:"error"`
	// Step is the h of that median, in units of an image value.
	Step float64 `json:"step"`
	// Directions is the number of directions.
	Directions int `json:"directions"`
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

// OperatorReport is the result of checking an operator or a metric.
type OperatorReport struct {
	Kind     string          `json:"kind"`
	File     string          `json:"file"`
	SHA256   string          `json:"sha256"`
	Name     string          `json:"name"`
	Image    []int           `json:"image"`
	Output   []int           `json:"output"`
	Min      float64         `json:"min"`
	Max      float64         `json:"max"`
	Gradient *GradientReport `json:"gradient,omitempty"`
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

// Operator checks the ONNX file of an operator or a metric. Errors are onnx.ErrModel, ErrInterface, ErrVectors and
// ErrNotFinite; deviations are in the report.
func Operator(ctx context.Context, rt *onnx.Runtime, file string, o OperatorOptions) (*OperatorReport, error) {
	data, err := onnx.ReadFile(file)
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
	r := &OperatorReport{Kind: n.meta["ddiff.kind"], File: file, SHA256: digest(data), Name: n.meta["ddiff.name"], Image: c.x.Shape}
	switch r.Kind {
	case KindOperator:
		err = c.operator(ctx, rt, r)
	case KindMetric:
		err = c.metric(ctx, rt, r)
	default:
		return nil, fmt.Errorf("%s: %w: its metadata entry ddiff.kind is %q, want %s or %s", file, ErrInterface, r.Kind, KindOperator, KindMetric)
	}
	if err != nil {
		return nil, err
	}
	if r.Vectors, err = n.checkVectors(ctx, rt, o.Vectors, o.Limits); err != nil {
		return nil, err
	}
	r.PeakMiB = float64(PeakMiB())
	return r, nil
}

// inputs generates the image.
func (c *operatorCheck) inputs() error {
	n := c.network
	p, ok := n.input("x")
	if !ok || len(p.dims) != 4 {
		return fmt.Errorf("%s: %w: its inputs are %v, want an image batch x", n.file, ErrInterface, names(n.inputs))
	}
	multiple := 1
	if text := n.meta["ddiff.multiple_of"]; text != "" {
		var err error
		if multiple, err = strconv.Atoi(text); err != nil || multiple < 1 {
			return fmt.Errorf("%s: %w: ddiff.multiple_of is %q", n.file, ErrInterface, text)
		}
	}
	channels, err := strconv.Atoi(p.dims[1])
	if err != nil {
		return fmt.Errorf("%s: %w: the channels of x are %q, want a number", n.file, ErrInterface, p.dims[1])
	}
	size := imageSize(c.o.Size, multiple)
	shape := []int{1, channels, size, size}
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

// operator checks range, gradient and, if the card declares the operator linear, the adjoint.
func (c *operatorCheck) operator(ctx context.Context, rt *onnx.Runtime, r *OperatorReport) error {
	n := c.network
	lengths := map[string]int{}
	x, _ := n.input("x")
	if err := x.bind(c.x.Shape, lengths); err != nil {
		return fmt.Errorf("%s: %w: %w", n.file, ErrInterface, err)
	}
	y, ok := n.output("y")
	if !ok {
		return fmt.Errorf("%s: %w: its outputs are %v, want y and gx", n.file, ErrInterface, names(n.outputs))
	}
	shape, err := y.shape(lengths)
	if err != nil {
		return fmt.Errorf("%s: %w", n.file, err)
	}
	r.Output = shape
	for _, p := range n.inputs {
		switch p.name {
		case "x":
		case "w":
			c.in["w"] = &raster.Array{Shape: shape, Data: c.noise(product(shape), 1, 1)}
		default:
			dims, err := p.shape(lengths)
			if err != nil {
				return fmt.Errorf("%s: %w", n.file, err)
			}
			std := 1.0
			if s, err := strconv.ParseFloat(n.meta["ddiff.parameter_std"], 64); err == nil && s > 0 {
				std = s
			}
			c.in[p.name] = &raster.Array{Shape: dims, Data: c.noise(product(dims), 2, std)}
		}
	}
	_, hasW := n.input("w")
	_, hasGX := n.output("gx")
	if !hasW || !hasGX {
		return fmt.Errorf("%s: %w: an operator needs an input w and an output gx, its gradient; it has %v and %v", n.file, ErrInterface, names(n.inputs), names(n.outputs))
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
	if r.Gradient, err = c.gradient(ctx, run, got["gx"].Data); err != nil {
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

// steps of the finite differences, in units of an image value.
var steps = []float64{3e-2, 1e-2, 3e-3, 1e-3, 3e-4}

const directions = 5

// gradient compares gx with differences along some directions.
func (c *operatorCheck) gradient(ctx context.Context, run *runner, gx []float32) (*GradientReport, error) {
	length := math.Sqrt(dot(gx, gx))
	type least struct{ err, step float64 }
	var all []least
	count := math.Sqrt(float64(len(gx)))
	for i := range directions {
		// Root mean square 1/√2 for each half, so that h is in units of an image value.
		d := c.noise(len(gx), uint32(10+i), math.Sqrt(0.5))
		if length > 0 {
			for j := range d {
				d[j] += float32(math.Sqrt(0.5) * count / length * float64(gx[j]))
			}
		}
		want := dot(gx, d)
		best := least{err: math.Inf(1)}
		for _, h := range steps {
			up, err := c.phi(ctx, run, d, h)
			if err != nil {
				return nil, err
			}
			down, err := c.phi(ctx, run, d, -h)
			if err != nil {
				return nil, err
			}
			got := (up - down) / (2 * h)
			if e := math.Abs(got-want) / max(math.Abs(got), math.Abs(want), 1e-12); e < best.err {
				best = least{e, h}
			}
		}
		all = append(all, best)
	}
	slices.SortFunc(all, func(a, b least) int {
		if a.err < b.err {
			return -1
		}
		return 1
	})
	m := all[len(all)/2]
	return &GradientReport{Error: m.err, Step: m.step, Directions: directions}, nil
}

// phi is ⟨w, A(x + h·d)⟩.
func (c *operatorCheck) phi(ctx context.Context, run *runner, d []float32, h float64) (float64, error) {
	moved := &raster.Array{Shape: c.x.Shape, Data: make([]float32, len(d))}
	for i := range d {
		moved.Data[i] = float32(float64(c.x.Data[i]) + h*float64(d[i]))
	}
	run.set(map[string]*raster.Array{"x": moved})
	got, err := run.run(ctx)
	if err != nil {
		return 0, err
	}
	return dot(got["y"].Data, c.in["w"].Data), nil
}

// adjoint compares ⟨Ax, w⟩ with ⟨x, Aᵀw⟩.
func (c *operatorCheck) adjoint(ctx context.Context, run *runner) (float64, error) {
	x := &raster.Array{Shape: c.x.Shape, Data: c.noise(len(c.x.Data), 3, 1)}
	run.set(map[string]*raster.Array{"x": x})
	got, err := run.run(ctx)
	if err != nil {
		return 0, err
	}
	y, gx, w := got["y"].Data, got["gx"].Data, c.in["w"].Data
	scale := max(math.Sqrt(dot(y, y)*dot(w, w)), math.Sqrt(dot(x.Data, x.Data)*dot(gx, gx)), 1e-12)
	return math.Abs(dot(y, w)-dot(x.Data, gx)) / scale, nil
}
