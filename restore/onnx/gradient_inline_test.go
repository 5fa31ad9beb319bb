package onnx_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// Forms of look-ups and moves that a rule does not cover are refused by name.
func TestGradientRefusesMoves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opset int
		build func(g *onnx.Graph, x onnx.Value) onnx.Value
		want  string
	}{
		"limits of Clip": {17, func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Apply("Clip", onnx.Float, x.Dims, nil, x, g.Reshape(g.ReduceSum(x, 0)))
		}, "variable limits"},
		"multiplying ScatterND": {16, func(g *onnx.Graph, x onnx.Value) onnx.Value {
			at := g.Reshape(g.Ints(1), 1, 1)
			return g.Apply("ScatterND", onnx.Float, x.Dims, map[string]any{"reduction": "mul"}, x, at, g.Const([]float32{1}, 1))
		}, "reduction mul"},
		"GatherElements without ScatterElements that adds": {13, func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Apply("GatherElements", onnx.Float, x.Dims, nil, x, g.Ints(0, 0, 1))
		}, "operator set 13"},
		"wide reflection": {17, func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Apply("Pad", onnx.Float, []int{9}, map[string]any{"mode": "reflect"}, x, g.Ints(3, 3))
		}, "mode reflect"},
		"training": {17, func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Apply("Dropout", onnx.Float, x.Dims, nil, x, g.Scalar(0.5), g.Cast(g.Scalar(1), onnx.Bool))
		}, "training mode"},
	} {
		g := onnx.NewGraph(c.opset)
		x := g.Input("x", onnx.Float, 3)
		y := c.build(g, x)
		if _, err := g.Gradient(y, x, y); !errors.Is(err, onnx.ErrNoGradient) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want ErrNoGradient with %q", name, err, c.want)
		}
	}
}

// A caller of Inline that states another shape than the model's gets an error, not a wrong gradient.
func TestGradientOfWrongClaim(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 2)
	out, err := g.Inline(inlined(t, false), map[string]onnx.Value{"x": x}, map[string][]int{"y": {3}})
	must(t, err)
	_, err = g.Gradient(out["y"], x, g.Const([]float32{1, 1, 1}, 3))
	if !errors.Is(err, infer.ErrShape) || !strings.Contains(err.Error(), "[2], not [3]") {
		t.Errorf("error %v, want ErrShape with both shapes", err)
	}
}

// The gradient through a model in mixed precision is that of the model in float32, to the precision of float16.
func TestGradientOfHalf(t *testing.T) {
	t.Parallel()
	inner := onnx.NewGraph(onnx.DefaultOpset)
	in := inner.Input("x", onnx.Float, 2, 3, 6, 6)
	h := inner.Apply("Conv", onnx.Float, []int{2, 4, 6, 6}, map[string]any{"pads": []int{1, 1, 1, 1}}, in, inner.Const(onnxtest.Random(4*27, 1), 4, 3, 3, 3))
	h = inner.Mul(h, inner.Apply("Sigmoid", onnx.Float, h.Dims, nil, h))
	h = inner.Apply("LeakyRelu", onnx.Float, h.Dims, map[string]any{"alpha": float32(0.2)}, h)
	inner.Output("y", inner.MatMul(inner.Reshape(h, 2, 144), inner.Const(onnxtest.Random(144*3, 2), 144, 3)))
	model := onnxtest.Parse(t, inner)
	gradient := func(half bool) []float32 {
		g := onnx.NewGraph(onnx.DefaultOpset)
		x, seed := g.Input("x", onnx.Float, in.Dims...), g.Input("seed", onnx.Float, 2, 3)
		g.Half(half)
		out, err := g.Inline(model, map[string]onnx.Value{"x": x}, map[string][]int{"y": {2, 3}})
		must(t, err)
		dx, err := g.Gradient(out["y"], x, seed)
		must(t, err)
		g.Output("dx", dx)
		return onnxtest.Run(t, g, []onnx.Value{x, seed}, []onnx.Value{{Name: "dx", DType: onnx.Float, Dims: in.Dims}}, onnxtest.Random(in.Size(), 3), onnxtest.Random(6, 4))[0]
	}
	full, mixed := gradient(false), gradient(true)
	distance, size := 0.0, 0.0
	for i := range full {
		distance, size = distance+math.Pow(float64(full[i]-mixed[i]), 2), size+math.Pow(float64(full[i]), 2)
	}
	if rel := math.Sqrt(distance / size); !(rel > 1e-6 && rel < 5e-3) {
		t.Errorf("relative distance %.2g, want a rounding to float16", rel)
	}
}
