package onnx_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

func TestLoop(t *testing.T) {
	t.Parallel()
	for _, opset := range []int{onnx.MinOpset, onnx.DefaultOpset, 18, 21} {
		g := onnx.NewGraph(opset)
		x := g.Input("x", onnx.Float, 2)
		table := g.Input("table", onnx.Float, 4, 2)
		// x ← 2x + table[i], collecting ‖x‖ before each step; the constant 2 is in the body.
		final, curves := g.Loop(g.Ints(3), []onnx.Value{x}, func(b *onnx.Graph, i onnx.Value, s []onnx.Value) (next, collect []onnx.Value) {
			n := b.Norm(b.Reshape(s[0], 1, 2))
			return []onnx.Value{b.Add(b.Mul(s[0], b.Scalar(2)), b.Gather(table, i))}, []onnx.Value{n}
		})
		g.Output("y", final[0])
		g.Output("n", curves[0])
		got := onnxtest.Run(t, g, []onnx.Value{x, table}, []onnx.Value{
			{Name: "y", DType: onnx.Float, Dims: []int{2}}, {Name: "n", DType: onnx.Float, Dims: []int{3, 1}},
		}, []float32{3, 4}, []float32{1, 0, 0, 1, 1, 1, 99, 99})
		if got[0][0] != 29 || got[0][1] != 35 {
			t.Errorf("opset %d: state %v, want [29 35]", opset, got[0])
		}
		if got[1][0] != 5 {
			t.Errorf("opset %d: norms %v, want 5 first", opset, got[1])
		}
	}
}

// Two copies of an inlined model have separate values.
func TestInlineTwice(t *testing.T) {
	t.Parallel()
	inner := onnx.NewGraph(onnx.DefaultOpset)
	in := inner.Input("x", onnx.Float, 2)
	inner.Output("y", inner.Add(inner.Mul(in, inner.Scalar(3)), inner.Scalar(1)))
	data, err := inner.Marshal("inner")
	must(t, err)
	m, err := modelfile.ReadModel(data)
	must(t, err)
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 2)
	v := x
	for range 2 {
		out, err := g.Inline(m, map[string]onnx.Value{"x": v}, map[string][]int{"y": {2}})
		must(t, err)
		v = out["y"]
	}
	g.Output("z", v)
	got := onnxtest.Run(t, g, []onnx.Value{x}, []onnx.Value{{Name: "z", DType: onnx.Float, Dims: []int{2}}}, []float32{1, -1})[0]
	if got[0] != 13 || got[1] != -5 {
		t.Errorf("got %v, want [13 -5]", got)
	}
	for name, f := range map[string]func() error{
		"missing input": func() error { _, err := g.Inline(m, nil, nil); return err },
		"unknown output": func() error {
			_, err := g.Inline(m, map[string]onnx.Value{"x": v}, map[string][]int{"q": {2}})
			return err
		},
		"operator set": func() error {
			_, err := onnx.NewGraph(18).Inline(m, map[string]onnx.Value{"x": v}, nil)
			return err
		},
	} {
		if err := f(); !errors.Is(err, modelfile.ErrModel) {
			t.Errorf("%s: error %v, want ErrModel", name, err)
		}
	}
}

func TestMarshalIsDeterministic(t *testing.T) {
	t.Parallel()
	build := func() []byte {
		g := onnx.NewGraph(onnx.DefaultOpset)
		x := g.Input("x", onnx.Float, 4, 6)
		g.Output("y", g.Norm(g.Transpose(g.Reshape(x, 2, 3, 4), 1, 0, 2)))
		b, err := g.Marshal("m")
		must(t, err)
		return b
	}
	first := build()
	for range 5 {
		if !bytes.Equal(first, build()) {
			t.Fatal("equal graphs have different bytes")
		}
	}
}

func TestShapeMistakesPanic(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(onnx.DefaultOpset)
	a, b := g.Input("a", onnx.Float, 2, 3), g.Input("b", onnx.Float, 2, 4)
	for name, f := range map[string]func(){
		"Add":       func() { g.Add(a, b) },
		"MatMul":    func() { g.MatMul(a, b) },
		"Reshape":   func() { g.Reshape(a, 7) },
		"Slice":     func() { g.Slice(a, 1, 2, 9) },
		"Transpose": func() { g.Transpose(a, 0) },
		"Const":     func() { g.Const([]float32{1}, 2) },
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.HasPrefix(r.(string), "onnx: ") {
					t.Errorf("%s: recovered %v, want a message of this package", name, r)
				}
			}()
			f()
		}()
	}
}
