package gpuworker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

const (
	// directions is the number of random directions in which a gradient is checked.
	directions = 3
	// gradientTolerance is the relative difference from finite differences that passes: in
	// float32, and at the kinks of clipping, they agree to a few thousandths.
	gradientTolerance = 0.02
	// gradientStep is the step of the differences, for images of about 1.
	gradientStep = 0.02
)

// errGradient: the graph's gradient is not that of A.
var errGradient = errors.New("the gradient is wrong")

// smooth is an image that stays clear of the ends of the range.
func smooth(n int, key noise.Key) []float32 {
	x := make([]float32, n)
	noise.Normal(x, key, noise.Start, 0, 1)
	for i, v := range x {
		x[i] = float32(0.4 * math.Tanh(float64(v)))
	}
	return x
}

// checkGradient compares Jᵀ·w of A, as the graph gives it, with central differences of
// ⟨w, A(x)⟩, in random directions d, and returns the largest relative difference. The weights
// w lie along the change of A, which keeps the sums well conditioned.
func checkGradient(ctx context.Context, rt *onnx.Runtime, op *operator.Operator) (float64, error) {
	m, err := newDerivative(rt, op)
	if err != nil {
		return 0, err
	}
	defer m.close()
	worst := 0.0
	for i := range directions {
		key := noise.NewKey(sha256.Sum256(fmt.Appendf(nil, "gradient %d", i)))
		x, d := smooth(op.Image.Size(), key), make([]float32, op.Image.Size())
		noise.Normal(d, key, noise.Step, 0, 1)
		for j, v := range d {
			d[j] = float32(math.Tanh(float64(v)))
		}
		if m.draw != nil {
			encoded, err := op.Encode(op.Draw(key))
			if err != nil {
				return 0, err
			}
			copy(m.draw.F32, encoded)
		}
		off, err := m.compare(ctx, x, d)
		if err != nil {
			return 0, err
		}
		worst = max(worst, off)
	}
	if !(worst <= gradientTolerance) {
		return worst, fmt.Errorf("%w: it differs from finite differences by %.2g, at most %g is allowed", errGradient, worst, gradientTolerance)
	}
	return worst, nil
}

// derivative is A and its vector-Jacobian product in one model.
type derivative struct {
	x, w, draw *onnx.Tensor // draw is nil without one
	in, out    []*onnx.Tensor
	session    *onnx.Session
}

func newDerivative(rt *onnx.Runtime, op *operator.Operator) (*derivative, error) {
	g := onnx.NewGraph(onnx.DefaultOpset)
	in := []onnx.Value{
		g.Input("x", onnx.Float, op.Image.Dims(1)...),
		g.Input("w", onnx.Float, op.MeasurementDims(1)...),
	}
	names := []string{"x", "w"}
	var draw onnx.Value
	if dims := op.ParameterDims(1); dims != nil {
		draw = g.Input("draw", onnx.Float, dims...)
		in, names = append(in, draw), append(names, "draw")
	}
	y := op.Forward(g, in[0], draw)
	j, err := g.Gradient(y, in[0], in[1])
	if err != nil {
		return nil, err
	}
	g.Output("y", y)
	g.Output("j", j)
	model, err := g.Marshal("gradient")
	if err != nil {
		return nil, err
	}
	d := &derivative{}
	if d.in, err = onnx.NewTensors(in...); err != nil {
		return nil, err
	}
	if d.out, err = onnx.NewTensors(y, j); err != nil {
		d.close()
		return nil, err
	}
	if d.session, err = rt.NewSession(model, names, []string{"y", "j"}); err != nil {
		d.close()
		return nil, err
	}
	d.x, d.w = d.in[0], d.in[1]
	if len(d.in) > 2 {
		d.draw = d.in[2]
	}
	return d, nil
}

func (d *derivative) close() {
	if d.session != nil {
		d.session.Close()
	}
	onnx.CloseTensors(d.in)
	onnx.CloseTensors(d.out)
}

// forward is A(x + h·dir).
func (d *derivative) forward(ctx context.Context, x, dir []float32, h float64) ([]float32, error) {
	for i := range x {
		d.x.F32[i] = x[i] + float32(h)*dir[i]
	}
	if err := d.session.Run(ctx, d.in, d.out); err != nil {
		return nil, err
	}
	return append([]float32(nil), d.out[0].F32...), nil
}

// compare gives the relative difference of the two derivatives along dir. The differences are
// taken with two steps and extrapolated (Richardson).
func (d *derivative) compare(ctx context.Context, x, dir []float32) (float64, error) {
	const h = gradientStep
	var at [4][]float32
	for i, step := range []float64{h, -h, h / 2, -h / 2} {
		var err error
		if at[i], err = d.forward(ctx, x, dir, step); err != nil {
			return 0, err
		}
	}
	for i := range d.w.F32 {
		d.w.F32[i] = (at[0][i] - at[1][i]) / (2 * h)
	}
	if _, err := d.forward(ctx, x, dir, 0); err != nil {
		return 0, err
	}
	wide := (dot(d.w.F32, at[0]) - dot(d.w.F32, at[1])) / (2 * h)
	narrow := (dot(d.w.F32, at[2]) - dot(d.w.F32, at[3])) / h
	want, got := (4*narrow-wide)/3, dot(d.out[1].F32, dir)
	if want == 0 && got == 0 {
		return 0, nil
	}
	return math.Abs(got-want) / math.Max(math.Abs(want), 1e-12), nil
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
