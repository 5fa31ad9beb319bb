package operator_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/raster"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// evaluate runs A(v), Jᵀ(v)·seed and the gradient of ‖W(y − A(v))‖ in one model.
func evaluate(t *testing.T, op *operator.Operator, n int, v, seed, y, draws []float32) (av, vjp, grad []float32) {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	in := []onnx.Value{
		g.Input("v", onnx.Float, op.Image.Dims(n)...),
		g.Input("seed", onnx.Float, op.MeasurementDims(n)...),
		g.Input("y", onnx.Float, op.MeasurementDims(n)...),
	}
	var p onnx.Value
	data := [][]float32{v, seed, y}
	if dims := op.ParameterDims(n); dims != nil {
		p = g.Input("p", onnx.Float, dims...)
		in = append(in, p)
		data = append(data, draws)
	}
	applied, err := op.Apply(g, in[0], p)
	must(t, err)
	a := applied.Y
	j, err := applied.Gradient(in[1])
	must(t, err)
	r := op.Weighted(g, g.Minus(in[2], a), p)
	norm := g.Norm(r)
	shape := append([]int{n}, 1, 1, 1)
	unit := g.Neg(g.Div(op.Weighted(g, r, p), g.Max(g.Reshape(norm, shape...), g.Scalar(1e-12))))
	d, err := applied.Gradient(unit)
	must(t, err)
	res := onnxtest.Compute(t, g, in, []onnx.Value{a, j, d}, data...)
	return res[0], res[1], res[2]
}

func readNPY(t *testing.T, dir, name string) *raster.Array {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name+".npy"))
	if os.IsNotExist(err) {
		return nil
	}
	must(t, err)
	a, err := raster.DecodeNPY(data)
	must(t, err)
	return a
}

func relative(got, want []float32) float64 {
	num, den := 0.0, 0.0
	for i := range want {
		d := float64(got[i]) - float64(want[i])
		num += d * d
		den += float64(want[i]) * float64(want[i])
	}
	return math.Sqrt(num / max(den, 1e-30))
}

// The vectors of tools/ddiff_torch/vectors.py, made with PyTorch from the definitions.
func TestAgainstTorch(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("testdata/*_*")
	if err != nil || len(dirs) < 12 {
		t.Fatalf("reference vectors: %d found, error %v", len(dirs), err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join(dir, "case.json"))
			must(t, err)
			var c struct {
				Task   string
				Params map[string]float64
			}
			must(t, json.Unmarshal(raw, &c))
			v := readNPY(t, dir, "v")
			n, shape := v.Shape[0], operator.Shape{Channels: v.Shape[1], Height: v.Shape[2], Width: v.Shape[3]}
			if c.Task == "inpaint" {
				c.Task = operator.InpaintRandom
			}
			// The script states lengths in pixels of the case, campaigns for 256 pixels.
			for _, name := range []string{"std", "size"} {
				if x, ok := c.Params[name]; ok {
					c.Params[name] = x * 256 / float64(min(shape.Height, shape.Width))
				}
			}
			op := operator.Build(t, c.Task, c.Params, shape)
			var draws []float32
			for _, name := range []string{"mask", "kernel"} {
				a := readNPY(t, dir, name)
				if a == nil {
					continue
				}
				h, w := a.Shape[2], a.Shape[3]
				for i := range n {
					p, err := op.Encode(&operator.Draw{Name: name, Dims: []int{h, w}, Data: a.Data[i*h*w : (i+1)*h*w]})
					must(t, err)
					draws = append(draws, p...)
				}
			}
			yn := readNPY(t, dir, "yn").Data
			seed := make([]float32, len(yn))
			if w := readNPY(t, dir, "w"); w != nil {
				seed = w.Data
			}
			av, vjp, grad := evaluate(t, op, n, v.Data, seed, yn, draws)
			if e := relative(av, readNPY(t, dir, "Av").Data); !(e <= 2e-6) {
				t.Errorf("A(v): relative difference %.2g", e)
			}
			if e := relative(grad, readNPY(t, dir, "grad").Data); !(e <= 1e-4) {
				t.Errorf("gradient of the norm: relative difference %.2g", e)
			}
			if want := readNPY(t, dir, "ATw"); want != nil {
				if e := relative(vjp, want.Data); !(e <= 2e-6) {
					t.Errorf("adjoint: relative difference %.2g", e)
				}
			}
			if x := readNPY(t, dir, "x"); x != nil {
				y, _, _ := evaluate(t, op, n, x.Data, seed, yn, draws)
				if e := relative(y, readNPY(t, dir, "y").Data); !(e <= 2e-6) {
					t.Errorf("A(x): relative difference %.2g", e)
				}
			}
		})
	}
}

func normal(n int, seed uint32, std float64) []float32 {
	x := make([]float32, n)
	noise.Normal(x, noise.Key{seed, 77}, noise.Measurement, 0, std)
	return x
}

func dot(a, b []float32) float64 {
	s := 0.0
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

var shapes = []operator.Shape{{Channels: 3, Height: 64, Width: 64}, {Channels: 3, Height: 48, Width: 80}, {Channels: 1, Height: 128, Width: 96}}

// suited returns a shape with the channels of a task: red, green and blue for the tasks whose measurement is grey.
func suited(task string, s operator.Shape) operator.Shape {
	for _, d := range operator.Builtin() {
		if d.Name == task && d.Grey {
			s.Channels = 3
		}
	}
	return s
}

// encoded draws for n items of an operator.
func encoded(t *testing.T, op *operator.Operator, n int) []float32 {
	t.Helper()
	var out []float32
	for i := range n {
		p, err := op.Encode(op.Draw(noise.Key{uint32(i + 1)}))
		must(t, err)
		out = append(out, p...)
	}
	return out
}

// The gradient of every task agrees with finite differences. Kinks of clipping are compared with
// PyTorch's derivative in TestAgainstTorch.
func TestFiniteDifferences(t *testing.T) {
	t.Parallel()
	for _, d := range operator.Builtin() {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			for _, shape := range shapes {
				op := operator.Build(t, d.Name, nil, suited(d.Name, shape))
				r, err := op.CheckGradient(t.Context(), onnxtest.Runtime(t))
				if err != nil || !(r.Error <= 2e-3) || !(r.Step > 0) || r.Directions != 5 {
					t.Errorf("%v: %+v, %v", shape, r, err)
				}
			}
		})
	}
}

// CompareGradient finds a gradient of the wrong size, direction or sign.
func TestCompareGradientFindsMistakes(t *testing.T) {
	t.Parallel()
	x := normal(500, 1, 1)
	for name, c := range map[string]struct {
		change func(i int, v float32) float32
		least  float64
	}{
		"size":     {func(_ int, v float32) float32 { return 1.05 * v }, 0.04},
		"sign":     {func(_ int, v float32) float32 { return -v }, 0.5},
		"half":     {func(i int, v float32) float32 { return float32(i%2) * v }, 0.3},
		"position": {func(i int, _ float32) float32 { return x[(i+1)%len(x)] }, 0.3},
		"zero":     {func(int, float32) float32 { return 0 }, 0.5},
		"NaN":      {func(int, float32) float32 { return float32(math.NaN()) }, 0.5},
		"none":     {func(_ int, v float32) float32 { return v }, 0},
	} {
		r, err := operator.CompareGradient(t.Context(), x, noise.Key{1}, func(_ context.Context, x, w []float32) (y, gx []float32, err error) {
			y, gx = make([]float32, len(x)), make([]float32, len(x))
			for i, v := range x { // y = tanh(x)
				y[i] = float32(math.Tanh(float64(v)))
				if w != nil {
					gx[i] = c.change(i, float32(float64(w[i])/math.Pow(math.Cosh(float64(v)), 2)))
				}
			}
			return y, gx, nil
		})
		if err != nil || !(r.Error >= c.least) || c.least == 0 && !(r.Error <= 1e-3) {
			t.Errorf("%s: %+v, %v, want an error of at least %g", name, r, err, c.least)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	of := func(channels, height int) operator.Shape {
		return operator.Shape{Channels: channels, Height: height, Width: 64}
	}
	one := func(name string, v float64) map[string]float64 { return map[string]float64{name: v} }
	for _, c := range []struct {
		task   string
		params map[string]float64
		shape  operator.Shape
		want   string
	}{
		{"sharpen", nil, of(3, 64), "unknown task"},
		{"hdr", one("scal", 2), of(3, 64), "scal: the parameters are [scale]"},
		{"hdr", nil, of(3, 63), "must be even"},
		{"super_resolution", one("factor", 2.5), of(3, 64), "factor"},
		{"inpaint_box", one("size", 250), of(3, 64), "does not fit"},
		{"gaussian_deblur", one("std", math.NaN()), of(3, 64), "std"},
		{"colorize", nil, of(1, 8), "images have 1 channels, the task needs red, green and blue"},
		{"demosaic", nil, of(4, 8), "images have 4 channels"},
		{"demosaic", one("red_row", 2), of(3, 8), "red_row"},
		{"demosaic", one("red_column", 0.5), of(3, 8), "red_column"},
		{"colorize", one("red", -0.1), of(3, 8), "red"},
		{"jpeg", one("quality", 0), of(3, 16), "quality"},
		{"jpeg", one("quality", 101), of(3, 16), "101"},
		{"jpeg", one("quality", 10.5), of(3, 16), "10.5"},
		{"jpeg", one("subsampling", 3), of(3, 16), "subsampling"},
		{"jpeg", nil, of(2, 16), "2 channels"},
		{"jpeg", nil, of(3, 15), "even"},
	} {
		if _, err := operator.Builtin().New(c.task, c.params, c.shape); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %v: error %v, want one with %q", c.task, c.params, err, c.want)
		}
	}
}
