package operator_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// decomposed lists the tasks with a singular value decomposition.
var decomposed = []string{
	operator.SuperResolution, operator.InpaintBox, operator.InpaintRandom, operator.GaussianDeblur, operator.Denoise, operator.Inpaint,
	operator.SuperResolutionArea, operator.Colorize, operator.Demosaic,
}

// On random vectors, in a graph: Uᵀ·A·x = S·Vᵀ·x, V is orthogonal, and Uᵀ keeps lengths.
func TestSVD(t *testing.T) {
	t.Parallel()
	for _, task := range decomposed {
		// 12×20 is reduced to 3×5.
		for _, shape := range []operator.Shape{{Channels: 3, Height: 12, Width: 20}, {Channels: 3, Height: 64, Width: 64}, {Channels: 1, Height: 96, Width: 128}} {
			t.Run(fmt.Sprint(task, shape), func(t *testing.T) {
				t.Parallel()
				shape := suited(task, shape)
				op := operator.Build(t, task, nil, shape)
				checkSVD(t, op)
			})
		}
	}
}

// checkSVD compares Uᵀ·A·x with S·Vᵀ·x for random images.
func checkSVD(t *testing.T, op *operator.Operator) {
	t.Helper()
	const n = 2
	d, err := op.SVD()
	must(t, err)
	shape := op.Image
	x, y, draws := normal(n*shape.Size(), 1, 1), normal(n*op.MeasurementSize(), 2, 1), encoded(t, op, n)
	g := onnx.NewGraph(onnx.DefaultOpset)
	in := []onnx.Value{g.Input("x", onnx.Float, shape.Dims(n)...), g.Input("y", onnx.Float, op.MeasurementDims(n)...)}
	data := [][]float32{x, y}
	var p onnx.Value
	if dims := op.ParameterDims(n); dims != nil {
		p = g.Input("p", onnx.Float, dims...)
		in, data = append(in, p), append(data, draws)
	}
	a, err := op.Apply(g, in[0], p)
	must(t, err)
	spectrum, values := d.Vt(g, in[0]), d.Values(g, p, 0)
	left := d.Ut(g, in[1])
	got := outputs(t, g, in, data, map[string]onnx.Value{
		"UtAx": d.Ut(g, a.Y), "SVtx": g.Mul(values, spectrum), "VVtx": d.V(g, spectrum),
		"Uty": left, "paired": g.Mul(left, d.Paired(g, p)), "VtVx": d.Vt(g, d.V(g, in[0])),
	})
	for name, c := range map[string]struct{ got, want []float32 }{
		"Uᵀ·A·x": {got["UtAx"], got["SVtx"]}, "V·Vᵀ·x": {got["VVtx"], x}, "Vᵀ·V·x": {got["VtVx"], x},
	} {
		if e := relative(c.got, c.want); !(e <= 1e-5) {
			t.Errorf("%s: relative difference %.2g", name, e)
		}
	}
	if norm, want := dot(got["Uty"], got["Uty"]), dot(y, y); !(math.Abs(norm-want) <= 1e-5*want) {
		t.Errorf("‖Uᵀ·y‖² is %g, ‖y‖² %g", norm, want)
	}
	if task := op.Task; task != operator.Inpaint && task != operator.InpaintBox && task != operator.InpaintRandom { // Uᵀ·y is y there
		if e := relative(got["paired"], got["Uty"]); e != 0 {
			t.Errorf("places without a pair have a coefficient of y: relative difference %.2g", e)
		}
	}
}

// outputs evaluates values of a graph.
func outputs(t *testing.T, g *onnx.Graph, in []onnx.Value, data [][]float32, want map[string]onnx.Value) map[string][]float32 {
	t.Helper()
	names, got := slices.Collect(maps.Keys(want)), map[string][]float32{}
	var values []onnx.Value
	for _, name := range names {
		values = append(values, want[name])
	}
	for i, v := range onnxtest.Compute(t, g, in, values, data...) {
		got[names[i]] = v
	}
	return got
}

// A singular value counts as zero if one of its factors is below the limit.
func TestSVDLimit(t *testing.T) {
	t.Parallel()
	shape := operator.Shape{Channels: 1, Height: 64, Width: 64}
	op := operator.Build(t, operator.GaussianDeblur, map[string]float64{"std": 12}, shape)
	d, err := op.SVD()
	must(t, err)
	const least = 0.03
	g := onnx.NewGraph(onnx.DefaultOpset)
	one := g.Input("one", onnx.Float, 1, 1, 1, 1)
	got := outputs(t, g, []onnx.Value{one}, [][]float32{{1}}, map[string]onnx.Value{
		"all": g.Mul(one, d.Values(g, onnx.Value{}, 0)), "large": g.Mul(one, d.Values(g, onnx.Value{}, least)),
	})
	zeros := 0
	for i, v := range got["all"] {
		large := got["large"][i]
		if large != 0 && large != v || large == 0 && !(v < least) || !(large <= 0) && !(v >= least*least) {
			t.Fatalf("singular value %g becomes %g", v, large)
		}
		if large == 0 {
			zeros++
		}
	}
	if zeros == 0 || zeros == len(got["all"]) {
		t.Errorf("%d of %d singular values are zero", zeros, len(got["all"]))
	}
}

// Each value of y belongs to one place of the spectrum.
func TestSVDPairs(t *testing.T) {
	t.Parallel()
	op := operator.Build(t, operator.SuperResolution, nil, operator.Shape{Channels: 1, Height: 16, Width: 24})
	d, err := op.SVD()
	must(t, err)
	g := onnx.NewGraph(onnx.DefaultOpset)
	one := g.Input("one", onnx.Float, 1, 1, 1, 1)
	pairs := 0
	for _, v := range outputs(t, g, []onnx.Value{one}, [][]float32{{1}}, map[string]onnx.Value{"pairs": g.Mul(one, d.Paired(g, onnx.Value{}))})["pairs"] {
		pairs += int(v)
	}
	if pairs != op.MeasurementSize() {
		t.Errorf("%d pairs for %d values", pairs, op.MeasurementSize())
	}
}

// Tasks without a decomposition, and images that are too large for one, are refused.
func TestSVDRefusals(t *testing.T) {
	t.Parallel()
	for _, name := range operator.Builtin().Names() {
		op := operator.Build(t, name, nil, operator.Shape{Channels: 3, Height: 32, Width: 32})
		want := slices.Contains(decomposed, name)
		if _, err := op.SVD(); (err == nil) != want || !want && !errors.Is(err, operator.ErrNoSVD) {
			t.Errorf("%s: %v", name, err)
		}
	}
	large := operator.Build(t, operator.SuperResolution, nil, operator.Shape{Channels: 1, Height: 64, Width: 2048})
	if _, err := large.SVD(); !errors.Is(err, operator.ErrShape) {
		t.Errorf("sides of 2048: %v", err)
	}
}
