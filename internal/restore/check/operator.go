package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"ddiff/internal/hostmemory"
	"ddiff/internal/regular"
	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/raster"
	"ddiff/restore/operator"
)

// The kinds of files that Operator checks, the metadata entry ddiff.kind.
const (
	// KindOperator: y = A(x), or y = A(x; k) with a parameter k, see [operator.Load]. Files with an output y need no metadata.
	KindOperator = "operator"
	// KindMetric: the distance of x and y, one number per image. See [metric.OpenNetwork].
	KindMetric = "metric"
)

// OperatorOptions configure the check of an operator or a metric.
type OperatorOptions struct {
	// Size is the side of the square images in pixels, rounded up to ddiff.multiple_of. Default: the sides that the file fixes, or 256.
	Size int
	// Tolerance is the largest relative error of the gradient and of the adjoint. Default: 0.01.
	Tolerance float64
}

// OperatorParameter describes a parameter of an operator.
type OperatorParameter struct {
	Name    string  `json:"name"`
	Default float64 `json:"default"`
	Range   string  `json:"range"`
	Doc     string  `json:"doc,omitempty"`
}

// OperatorReport is the result of checking an operator, or a metric, which has the kind, the name and the vectors only.
type OperatorReport struct {
	Kind   string  `json:"kind"`
	File   string  `json:"file"`
	SHA256 string  `json:"sha256"`
	Name   string  `json:"name"`
	Image  []int   `json:"image,omitempty"`
	Output []int   `json:"output,omitempty"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Parameters are the numbers that a campaign may set.
	Parameters []OperatorParameter      `json:"parameters,omitempty"`
	Gradient   *operator.GradientReport `json:"gradient,omitempty"`
	// Adjoint is |⟨Ax, w⟩ − ⟨x, Aᵀw⟩| over the product of the norms, if the card declares A linear ("true"), or linear but for a constant ("affine"), which is
	// subtracted.
	Adjoint *float64   `json:"adjoint,omitempty"`
	Vectors *Agreement `json:"vectors,omitempty"`
	// MSPerCall is the median time of a call for one image, in milliseconds.
	MSPerCall float64  `json:"ms_per_call"`
	PeakMiB   float64  `json:"peak_mib"`
	Problems  []string `json:"problems,omitempty"`
}

// OK reports whether the check found no problem.
func (r *OperatorReport) OK() bool {
	return len(r.Problems) == 0 && (r.Vectors == nil || r.Vectors.OK)
}

// Operator checks the ONNX file of an operator or a metric. Errors are modelfile.ErrModel, ErrInterface, ErrVectors and
// ErrNotFinite; deviations are in the report.
func Operator(ctx context.Context, rt *onnxruntime.Runtime, file string, o OperatorOptions) (*OperatorReport, error) {
	data, err := modelfile.ReadFile(file)
	if err != nil {
		return nil, err
	}
	n, err := openNetwork(file)
	if err != nil {
		return nil, err
	}
	r := &OperatorReport{Kind: n.meta["ddiff.kind"], File: file, SHA256: regular.SHA256(data), Name: n.meta["ddiff.name"]}
	if _, ok := n.output("y"); ok && r.Kind == "" {
		r.Kind = KindOperator
	}
	switch r.Kind {
	case KindOperator:
		o.Tolerance = cmp.Or(o.Tolerance, 0.01)
		err = r.operator(ctx, rt, data, o, n.meta["ddiff.linear"])
	case KindMetric:
		err = r.metric(ctx, rt)
	default:
		err = fmt.Errorf("%s: %w: its metadata entry ddiff.kind is %q, want %s or %s", file, ErrInterface, r.Kind, KindOperator, KindMetric)
	}
	if err != nil {
		return nil, err
	}
	if r.Vectors, err = n.checkVectors(ctx, rt); err != nil {
		return nil, err
	}
	r.PeakMiB = float64(hostmemory.Peak() >> 20)
	return r, nil
}

// metric opens the network of a metric as a campaign does.
func (r *OperatorReport) metric(ctx context.Context, rt *onnxruntime.Runtime) error {
	m, err := metric.OpenNetwork(ctx, rt, r.File)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInterface, err)
	}
	return m.Close()
}

// load reads an operator as campaigns do, with the default parameters and for images of the wanted size.
func (r *OperatorReport) load(data []byte, size int) (*operator.Operator, error) {
	f, err := operator.Load(r.File, data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInterface, err)
	}
	for _, p := range f.Parameters {
		r.Parameters = append(r.Parameters, OperatorParameter{p.Name, p.Default, p.Range(), p.Doc})
	}
	s := f.Smallest(imageSize(size, 1))
	if size > 0 && f.FixesSize() && (s.Height != size || s.Width != size) {
		return nil, fmt.Errorf("%s: %w: it is for images of %d×%d pixels, and the size is %d; leave out --size", r.File, ErrInterface, s.Width, s.Height, size)
	}
	op, err := f.New(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", r.File, ErrInterface, err)
	}
	r.Image, r.Output = s.Dims(1), op.MeasurementDims(1)
	return op, nil
}

// operator checks range, gradient and, if the card declares the operator linear, the adjoint.
func (r *OperatorReport) operator(ctx context.Context, rt *onnxruntime.Runtime, data []byte, o OperatorOptions, linear string) error {
	op, err := r.load(data, o.Size)
	if err != nil {
		return err
	}
	err = op.CheckMemory(1)
	if err == nil {
		err = op.Own.Verify(ctx, rt)
	}
	if errors.Is(err, operator.ErrFile) { // it is not run again
		r.Problems = append(r.Problems, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	f, err := operator.NewGradient(rt, op)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", r.File, ErrInterface, err)
	}
	defer f.Close()
	key := noise.NewKey([32]byte([]byte("ddiff operator check: fixed seed.")[:32]))
	normal := func(size int, n uint32, std float64) []float32 { // the n-th array, equal in every check
		out := make([]float32, size)
		noise.Normal(out, key, noise.Operator, n, std)
		return out
	}
	x, w := smooth(r.Image), normal(op.MeasurementSize(), 1, 1)
	for i, v := range normal(len(x), 0, 0.05) {
		x[i] = 0.8*x[i] + v
	}
	draw, err := op.Encode(op.Draw(key))
	if err != nil {
		return fmt.Errorf("%s: %w: %w", r.File, ErrInterface, err)
	}
	evaluate := func(ctx context.Context, x, weights []float32) (y, gx []float32, err error) {
		if weights == nil {
			weights = w
		}
		if y, gx, err = f.Gradient(ctx, x, draw, weights); err != nil {
			return nil, nil, err
		}
		for _, values := range [][]float32{y, gx} {
			if at, ok := raster.Finite(values); !ok {
				return nil, nil, fmt.Errorf("%s: %w: value %d is %v", r.File, ErrNotFinite, at, values[at])
			}
		}
		return y, gx, nil
	}
	var times durations
	for range 3 {
		begin := time.Now()
		y, _, err := evaluate(ctx, x, nil)
		if err != nil {
			return err
		}
		times = append(times, time.Since(begin))
		r.Min, r.Max = float64(slices.Min(y)), float64(slices.Max(y))
	}
	r.MSPerCall = times.median()
	g, err := operator.CompareGradient(ctx, x, key, evaluate)
	if err != nil {
		return err
	}
	if r.Gradient = &g; !(g.Error <= o.Tolerance) {
		r.Problems = append(r.Problems, fmt.Sprintf("the gradient differs from finite differences by %.3g, more than %g", g.Error, o.Tolerance))
	}
	if linear != "true" && linear != "affine" {
		return nil
	}
	x = normal(len(x), 3, 1)
	constant := make([]float32, len(w))
	if linear == "affine" {
		y, _, err := evaluate(ctx, make([]float32, len(x)), w)
		if err != nil {
			return err
		}
		copy(constant, y)
	}
	y, gx, err := evaluate(ctx, x, w)
	if err != nil {
		return err
	}
	for i, c := range constant {
		y[i] -= c
	}
	scale := max(math.Sqrt(dot(y, y)*dot(w, w)), math.Sqrt(dot(x, x)*dot(gx, gx)), 1e-12)
	e := math.Abs(dot(y, w)-dot(x, gx)) / scale
	if r.Adjoint = &e; !(e <= o.Tolerance) {
		r.Problems = append(r.Problems, fmt.Sprintf("the card declares the operator linear, but ⟨Ax, w⟩ and ⟨x, Aᵀw⟩ differ by %.3g", e))
	}
	return nil
}
