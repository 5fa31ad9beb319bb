package check_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/restore/check"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/raster"
	"ddiff/restore/onnx"
)

var operatorCard = map[string]string{"ddiff.kind": "operator", "ddiff.name": "tiny", "ddiff.license": "CC0-1.0", "ddiff.multiple_of": "4", "ddiff.linear": "false"}

func with(base map[string]string, changes ...string) map[string]string {
	out := maps.Clone(base)
	for i := 0; i < len(changes); i += 2 {
		out[changes[i]] = changes[i+1]
	}
	return out
}

// operatorFile writes an operator.
func operatorFile(t *testing.T, forward func(g *onnx.Graph, x onnx.Value) onnx.Value, metadata map[string]string) string {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	g.Output("y", forward(g, g.Input("x", onnx.Float, 1, 3, 16, 16)))
	return save(t, g, metadata)
}

func crop(g *onnx.Graph, x onnx.Value) onnx.Value {
	return g.Mul(g.Slice(x, 3, 2, 10), g.Scalar(1.5))
}

func shifted(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Add(crop(g, x), g.Scalar(0.5)) }

func curve(g *onnx.Graph, x onnx.Value) onnx.Value {
	return g.Clip(g.Mul(g.Exp(x), x), -1, 1.2)
}

// stairs is x in steps of a thousandth, which count as constant.
func stairs(g *onnx.Graph, x onnx.Value) onnx.Value {
	return g.Mul(g.Apply("Floor", onnx.Float, x.Dims, nil, g.Mul(x, g.Scalar(1e3))), g.Scalar(1e-3))
}

// noisy is x with noise that differs from call to call.
func noisy(g *onnx.Graph, x onnx.Value) onnx.Value {
	return g.Add(x, g.Apply("RandomNormalLike", onnx.Float, x.Dims, nil, g.Const(make([]float32, x.Size()), x.Dims...)))
}

func TestOperator(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		forward func(g *onnx.Graph, x onnx.Value) onnx.Value
		linear  string
		problem string
	}{
		"linear":                        {crop, "true", ""},
		"not linear":                    {curve, "false", ""},
		"wrong gradient":                {stairs, "false", "the gradient differs from finite differences"},
		"declared linear":               {curve, "true", "the card declares the operator linear"},
		"affine":                        {shifted, "affine", ""},
		"not linear but for a constant": {curve, "affine", "the card declares the operator linear"},
		"with a constant":               {shifted, "true", "the card declares the operator linear"},
		"with noise":                    {noisy, "false", "or on chance"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := operatorFile(t, c.forward, with(operatorCard, "ddiff.linear", c.linear))
			r, err := check.Operator(t.Context(), onnxtest.Runtime(t), file, check.OperatorOptions{Size: 16})
			must(t, err)
			if r.OK() != (c.problem == "") || c.problem != "" && !strings.Contains(strings.Join(r.Problems, "; "), c.problem) {
				t.Errorf("gradient %+v, problems %q", r.Gradient, r.Problems)
			}
			if c.problem == "" && !(r.Gradient.Error <= 5e-3) {
				t.Errorf("gradient %+v", r.Gradient)
			}
			if (r.Adjoint != nil) != (c.linear != "false") || (r.Min < r.Max) == (r.Gradient == nil) || len(r.SHA256) != 64 {
				t.Errorf("report %+v", r)
			}
		})
	}
}

// writeCropVectors writes vectors of crop in float32, with an error of y, and returns their directory.
func writeCropVectors(t *testing.T, file string, fault float32) string {
	t.Helper()
	x := ramp(1, 1, 3, 16, 16)
	y := &raster.Array{Shape: []int{1, 3, 16, 8}}
	for row := range 48 {
		for _, v := range x.Data[16*row+2 : 16*row+10] {
			y.Data = append(y.Data, 1.5*v+fault)
		}
	}
	return writeVectors(t, file, "float32", map[string]*raster.Array{"x": x}, map[string]*raster.Array{"y": y})
}

func TestOperatorVectors(t *testing.T) {
	t.Parallel()
	file := operatorFile(t, crop, operatorCard)
	writeCropVectors(t, file, 0)
	r, err := check.Operator(t.Context(), onnxtest.Runtime(t), file, check.OperatorOptions{Size: 16})
	must(t, err)
	if r.Vectors == nil || !r.Vectors.OK || !(r.Vectors.MaxAbs <= 1e-6) {
		t.Errorf("vectors %+v", r.Vectors)
	}
}

// metricFile writes a metric with metadata.
func metricFile(t *testing.T, metadata map[string]string) string {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x, y := g.Input("x", onnx.Float, -1, 3, -1, -1), g.Input("y", onnx.Float, -1, 3, -1, -1)
	d := g.Minus(x, y)
	g.Output("distance", g.Reshape(g.ReduceSum(g.Mul(d, d), 1, 2, 3), -1))
	return save(t, g, metadata)
}

func TestMetric(t *testing.T) {
	t.Parallel()
	card := map[string]string{"ddiff.kind": "metric", "ddiff.metric": "squares", "ddiff.metric_version": "1", "ddiff.min_size": "1", "ddiff.range": "-1..1"}
	file := metricFile(t, card)
	writeVectors(t, file, "float32", map[string]*raster.Array{"x": ramp(1, 1, 3, 2, 2), "y": ramp(0, 1, 3, 2, 2)},
		map[string]*raster.Array{"distance": {Shape: []int{1}, Data: []float32{4}}})
	r, err := check.Operator(t.Context(), onnxtest.Runtime(t), file, check.OperatorOptions{})
	must(t, err)
	if r.Kind != check.KindMetric || r.Vectors == nil || r.OK() { // the distance is not 4
		t.Errorf("report %+v, vectors %+v", r, r.Vectors)
	}
	_, err = check.Operator(t.Context(), onnxtest.Runtime(t), metricFile(t, with(card, "ddiff.metric", "")), check.OperatorOptions{})
	wantError(t, err, check.ErrInterface, "ddiff.metric is")
}

func TestInvalidOperators(t *testing.T) {
	t.Parallel()
	rt := onnxtest.Runtime(t)
	file := func(build func(g *onnx.Graph), metadata map[string]string) string {
		g := onnx.NewGraph(onnx.DefaultOpset)
		build(g)
		return save(t, g, metadata)
	}
	image := func(g *onnx.Graph, name string) onnx.Value { return g.Input(name, onnx.Float, 1, 3, 16, 16) }
	for name, c := range map[string]struct {
		file string
		want string
	}{
		"no kind": {file(func(g *onnx.Graph) { g.Output("z", g.Neg(image(g, "x"))) }, nil), "ddiff.kind is \"\", want operator or metric"},
		"no rule": {file(func(g *onnx.Graph) {
			x := image(g, "x")
			g.Output("y", g.Apply("Hardmax", onnx.Float, x.Dims, nil, x))
		}, operatorCard), "Hardmax"},
		"no x":       {file(func(g *onnx.Graph) { g.Output("y", g.Neg(image(g, "image"))) }, operatorCard), "want an image batch x"},
		"no y":       {file(func(g *onnx.Graph) { g.Output("z", g.Neg(image(g, "x"))) }, operatorCard), "want y"},
		"other size": {operatorFile(t, crop, with(operatorCard, "ddiff.multiple_of", "32")), "multiples of 32"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := check.Operator(t.Context(), rt, c.file, check.OperatorOptions{Size: 16})
			wantError(t, err, check.ErrInterface, c.file, c.want)
		})
	}
	_, err := check.Operator(t.Context(), rt, filepath.Join(t.TempDir(), "no.onnx"), check.OperatorOptions{})
	wantError(t, err, os.ErrNotExist)
}
