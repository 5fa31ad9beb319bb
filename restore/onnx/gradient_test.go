package onnx_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxpb"
	"ddiff/restore/onnx/onnxtest"
)

// Each rule of reverse mode against central differences, in every argument that has one.
func TestGradientRules(t *testing.T) {
	t.Parallel()
	type build func(g *onnx.Graph, x onnx.Value) onnx.Value
	dims := []int{2, 3, 4, 6}
	other := func(g *onnx.Graph, seed uint32, dims ...int) onnx.Value {
		n := 1
		for _, d := range dims {
			n *= d
		}
		data := onnxtest.Random(n, seed)
		for i := range data {
			data[i] = 1.5 + float32(math.Tanh(float64(data[i])))
		}
		return g.Const(data, dims...)
	}
	positive := func(g *onnx.Graph, x onnx.Value) onnx.Value {
		return g.Add(g.Mul(g.Mul(x, x), g.Scalar(0.3)), g.Scalar(0.5))
	}
	for name, f := range map[string]build{
		"add":            func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Add(x, g.Mul(x, x)) },
		"add broadcast":  func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Add(g.Slice(x, 1, 0, 1), x) },
		"add lower rank": func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Mul(x, g.ReduceSum(g.Reshape(x, 24, 6), 0)) },
		"minus":          func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Minus(g.Slice(x, 0, 0, 1), g.Mul(x, x)) },
		"mul broadcast":  func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Mul(x, g.Slice(x, 2, 1, 2)) },
		"div left":       func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Div(x, other(g, 3, 1, 3, 1, 1)) },
		"div right":      func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Div(other(g, 3, 6), positive(g, x)) },
		"neg":            func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Neg(g.Mul(x, x)) },
		"pow":            func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Pow(positive(g, x), 2.2) },
		"sqrt":           func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Sqrt(positive(g, x)) },
		"clip":           func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Clip(g.Mul(x, g.Scalar(50)), -10, 20) },
		"matmul left":    func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.MatMul(other(g, 4, 5, 4), x) },
		"matmul right":   func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.MatMul(x, other(g, 4, 6, 7)) },
		"matmul both":    func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.MatMul(x, g.Transpose(x, 0, 1, 3, 2)) },
		"matmul broadcast": func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.MatMul(g.Slice(x, 0, 0, 1), g.Transpose(x, 0, 1, 3, 2))
		},
		"transpose": func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Mul(g.Transpose(x, 2, 0, 3, 1), other(g, 5, 4, 2, 6, 3))
		},
		"reshape": func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Mul(g.Reshape(x, 12, 12), other(g, 6, 12, 12)) },
		"slice":   func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Mul(g.Slice(x, 3, 2, 5), other(g, 7, 3)) },
		"reverse": func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Mul(g.Reverse(x, 3), other(g, 8, 6)) },
		"concat": func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Mul(g.Concat(1, x, g.Mul(x, x), x), other(g, 9, 9, 1, 1))
		},
		"reduce": func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.ReduceSum(g.Mul(x, x), 0, 2) },
		"unused": func(g *onnx.Graph, _ onnx.Value) onnx.Value { return other(g, 10, 3, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := onnx.NewGraph(onnx.DefaultOpset)
			x := g.Input("x", onnx.Float, dims...)
			y := f(g, x)
			seed := g.Input("seed", onnx.Float, y.Dims...)
			dx, err := g.Gradient(y, x, seed)
			must(t, err)
			g.Output("y", y)
			g.Output("dx", dx)
			outs := []onnx.Value{{Name: "y", DType: onnx.Float, Dims: y.Dims}, {Name: "dx", DType: onnx.Float, Dims: dx.Dims}}
			at, along, s := onnxtest.Random(x.Size(), 1), onnxtest.Random(x.Size(), 2), onnxtest.Random(y.Size(), 3)
			eval := func(h float64) ([]float32, []float32) {
				p := make([]float32, len(at))
				for i := range p {
					p[i] = at[i] + float32(h)*along[i]
				}
				r := onnxtest.Run(t, g, []onnx.Value{x, seed}, outs, p, s)
				return r[0], r[1]
			}
			const h = 1e-2
			up, _ := eval(h)
			down, _ := eval(-h)
			half, _ := eval(h / 2)
			halfDown, _ := eval(-h / 2)
			_, grad := eval(0)
			want, got, size := 0.0, 0.0, 0.0
			for i := range s {
				d1, d2 := float64(up[i]-down[i])/(2*h), float64(half[i]-halfDown[i])/h
				want += float64(s[i]) * (4*d2 - d1) / 3
				size += math.Abs(float64(s[i]) * d1)
			}
			for i := range grad {
				got += float64(grad[i]) * float64(along[i])
			}
			if !(math.Abs(got-want) <= 2e-3*size+1e-6) {
				t.Errorf("derivative %.6g, finite differences %.6g (scale %.3g)", got, want, size)
			}
		})
	}
}

// Swish is x·σ(α·x); ONNX Runtime may lack it, so the gradient is compared with the formula.
func TestGradientSwish(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(24)
	x := g.Input("x", onnx.Float, 3)
	y := g.Apply("Swish", onnx.Float, x.Dims, map[string]any{"alpha": float32(1.5)}, x)
	dx, err := g.Gradient(y, x, g.Const([]float32{1, 1, 1}, 3))
	must(t, err)
	g.Output("dx", dx)
	at := []float32{-1, 0.3, 2}
	got := onnxtest.Run(t, g, []onnx.Value{x}, []onnx.Value{{Name: "dx", DType: onnx.Float, Dims: x.Dims}}, at)[0]
	for i, v := range at {
		s := 1 / (1 + math.Exp(-1.5*float64(v)))
		if want := s + 1.5*float64(v)*s*(1-s); !(math.Abs(float64(got[i])-want) <= 1e-6) {
			t.Errorf("derivative %v at %v, want %v", got[i], v, want)
		}
	}
}

func TestGradientUnknownOperation(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 2, 4)
	y := g.Apply("Hardmax", onnx.Float, x.Dims, nil, x)
	if _, err := g.Gradient(y, x, g.Expand(g.Scalar(1), 2, 4)); !errors.Is(err, onnx.ErrNoGradient) {
		t.Errorf("error %v, want ErrNoGradient", err)
	}
}

// The modulus at the origin has the zero subgradient, not NaN.
func TestSqrtAtZero(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 3)
	y := g.Sqrt(g.Mul(x, x))
	d, err := g.Gradient(y, x, g.Const([]float32{1, 1, 1}, 3))
	must(t, err)
	g.Output("d", d)
	got := onnxtest.Run(t, g, []onnx.Value{x}, []onnx.Value{{Name: "d", DType: onnx.Float, Dims: []int{3}}}, []float32{0, 2, -2})[0]
	for i, want := range []float32{0, 1, -1} {
		if !(math.Abs(float64(got[i]-want)) <= 1e-6) {
			t.Errorf("derivative %v, want 0 1 -1", got)
		}
	}
}

// inlined returns the model y = 3x. With capture, the product lies in a Loop's body.
func inlined(t *testing.T, capture bool) *modelfile.Model {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 2)
	y := g.Mul(x, g.Scalar(3))
	if capture {
		// The body uses x by name only: no input of the Loop depends on it.
		final, _ := g.Loop(g.Ints(1), []onnx.Value{g.Const([]float32{0, 0}, 2)}, func(b *onnx.Graph, _ onnx.Value, s []onnx.Value) (next, collect []onnx.Value) {
			return []onnx.Value{b.Add(s[0], b.Mul(x, b.Scalar(3)))}, nil
		})
		y = final[0]
	}
	g.Output("y", y)
	data, err := g.Marshal("inner")
	must(t, err)
	m, err := modelfile.ReadModel(data)
	must(t, err)
	return m
}

// conditional returns the model y = x, whose If takes x in both branches by name.
func conditional(t *testing.T) *modelfile.Model {
	t.Helper()
	port := func(name string, dtype onnx.DType) *onnxpb.ValueInfoProto {
		return &onnxpb.ValueInfoProto{Name: name, Type: &onnxpb.TypeProto{TensorType: &onnxpb.TypeProto_Tensor{ElemType: int32(dtype)}}}
	}
	branch := func(name string) *onnxpb.AttributeProto {
		return &onnxpb.AttributeProto{Name: name, Type: onnxpb.AttributeProto_GRAPH, G: &onnxpb.GraphProto{
			Name: name, Output: []*onnxpb.ValueInfoProto{port(name+"_y", onnx.Float)},
			Node: []*onnxpb.NodeProto{{OpType: "Identity", Input: []string{"x"}, Output: []string{name + "_y"}}},
		}}
	}
	data, err := proto.Marshal(&onnxpb.ModelProto{
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: onnx.DefaultOpset}},
		Graph: &onnxpb.GraphProto{
			Input:       []*onnxpb.ValueInfoProto{port("x", onnx.Float)},
			Output:      []*onnxpb.ValueInfoProto{port("y", onnx.Float)},
			Initializer: []*onnxpb.TensorProto{{Name: "condition", DataType: int32(onnx.Bool), RawData: []byte{1}}},
			Node: []*onnxpb.NodeProto{{
				OpType: "If", Input: []string{"condition"}, Output: []string{"y"},
				Attribute: []*onnxpb.AttributeProto{branch("then_branch"), branch("else_branch")},
			}},
		},
	})
	must(t, err)
	m, err := modelfile.ReadModel(data)
	must(t, err)
	return m
}

// nodes returns a model from x to y with the given nodes and initializers.
func nodes(t *testing.T, inits []*onnxpb.TensorProto, nodes ...*onnxpb.NodeProto) *modelfile.Model {
	t.Helper()
	port := func(name string) []*onnxpb.ValueInfoProto {
		return []*onnxpb.ValueInfoProto{{Name: name, Type: &onnxpb.TypeProto{TensorType: &onnxpb.TypeProto_Tensor{ElemType: int32(onnx.Float)}}}}
	}
	data, err := proto.Marshal(&onnxpb.ModelProto{
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: onnx.DefaultOpset}},
		Graph:       &onnxpb.GraphProto{Input: port("x"), Output: port("y"), Initializer: inits, Node: nodes},
	})
	must(t, err)
	m, err := modelfile.ReadModel(data)
	must(t, err)
	return m
}

// An input with an initializer has a value of its own: Inline would ignore the given one.
func TestInlineRefusesInputWithInitializer(t *testing.T) {
	t.Parallel()
	m := nodes(t, []*onnxpb.TensorProto{{Name: "x", DataType: int32(onnx.Float), Dims: []int64{2}, FloatData: []float32{1, 2}}},
		&onnxpb.NodeProto{OpType: "Neg", Input: []string{"x"}, Output: []string{"y"}})
	g := onnx.NewGraph(onnx.DefaultOpset)
	_, err := g.Inline(m, map[string]onnx.Value{"x": g.Input("x", onnx.Float, 2)}, map[string][]int{"y": {2}})
	if !errors.Is(err, modelfile.ErrModel) || !strings.Contains(err.Error(), "no input x") {
		t.Errorf("error %v, want ErrModel that names the input", err)
	}
}

// Gradient returns ErrNoGradient wherever y depends on x through nodes that have no rule: a
// silent zero would remove the data term.
func TestGradientRefusesOpaqueNodes(t *testing.T) {
	t.Parallel()
	inline := func(t *testing.T, g *onnx.Graph, m *modelfile.Model, x onnx.Value) onnx.Value {
		out, err := g.Inline(m, map[string]onnx.Value{"x": x}, map[string][]int{"y": {2}})
		must(t, err)
		return out["y"]
	}
	loop := func(g *onnx.Graph, state onnx.Value, body func(b *onnx.Graph, s onnx.Value) onnx.Value) onnx.Value {
		final, _ := g.Loop(g.Ints(2), []onnx.Value{state}, func(b *onnx.Graph, _ onnx.Value, s []onnx.Value) (next, collect []onnx.Value) {
			return []onnx.Value{body(b, s[0])}, nil
		})
		return final[0]
	}
	for name, c := range map[string]struct {
		build func(t *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value
		node  string // the operation that the error names; empty: no error
	}{
		"inlined": {func(t *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value { return inline(t, g, inlined(t, false), x) }, ""},
		"inlined, no rule": {func(t *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Neg(inline(t, g, nodes(t, nil, &onnxpb.NodeProto{OpType: "Hardmax", Input: []string{"x"}, Output: []string{"y"}}), g.Neg(x)))
		}, "Hardmax"},
		"one path of two has no rule": {func(t *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Add(g.Mul(x, x), inline(t, g, nodes(t, nil, &onnxpb.NodeProto{OpType: "Hardmax", Input: []string{"x"}, Output: []string{"y"}}), x))
		}, "Hardmax"},
		"of another domain": {func(t *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value {
			return inline(t, g, nodes(t, nil, &onnxpb.NodeProto{OpType: "Neg", Domain: "com.example", Input: []string{"x"}, Output: []string{"y"}}), x)
		}, "Neg"},
		"depends on itself": {func(t *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value {
			return inline(t, g, nodes(t, nil, &onnxpb.NodeProto{OpType: "Add", Input: []string{"x", "y"}, Output: []string{"y"}}), x)
		}, "Add"},
		"shape depends on data": {func(t *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value {
			return inline(t, g, nodes(t, nil, &onnxpb.NodeProto{OpType: "NonZero", Input: []string{"x"}, Output: []string{"i"}},
				&onnxpb.NodeProto{OpType: "GatherND", Input: []string{"x", "i"}, Output: []string{"y"}}), x)
		}, "GatherND"},
		"inlined body captures x":             {func(t *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value { return inline(t, g, inlined(t, true), x) }, "Loop"},
		"branches of an inlined If capture x": {func(t *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value { return inline(t, g, conditional(t), x) }, "If"},
		"loop state": {func(_ *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value {
			return loop(g, x, func(b *onnx.Graph, s onnx.Value) onnx.Value { return b.Neg(s) })
		}, "Loop"},
		"loop body captures x": {func(_ *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value {
			return loop(g, g.Const([]float32{1, 2}, 2), func(b *onnx.Graph, s onnx.Value) onnx.Value { return b.Mul(s, x) })
		}, "Loop"},
		"loop body returns x": {func(_ *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value {
			return loop(g, g.Const([]float32{1, 2}, 2), func(*onnx.Graph, onnx.Value) onnx.Value { return x })
		}, "Loop"},
		"inlined in a loop body": {func(t *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value {
			return loop(g, g.Const([]float32{1, 2}, 2), func(b *onnx.Graph, s onnx.Value) onnx.Value { return b.Add(s, inline(t, b, inlined(t, false), x)) })
		}, "Loop"},
		"inlined, nodes in another order": {func(t *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value {
			return inline(t, g, nodes(t, nil, &onnxpb.NodeProto{OpType: "Hardmax", Input: []string{"t"}, Output: []string{"y"}},
				&onnxpb.NodeProto{OpType: "Neg", Input: []string{"x"}, Output: []string{"t"}}), x)
		}, "Hardmax"},
		"inlined beside the path": {func(t *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Add(g.Mul(x, x), inline(t, g, inlined(t, false), g.Const([]float32{1, 2}, 2)))
		}, ""},
		"inlined behind y": {func(t *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value {
			y := g.Mul(x, x)
			inline(t, g, inlined(t, false), y)
			return y
		}, ""},
		"independent": {func(t *testing.T, g *onnx.Graph, x onnx.Value) onnx.Value {
			inline(t, g, inlined(t, true), x)
			return inline(t, g, inlined(t, false), g.Const([]float32{1, 2}, 2))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := onnx.NewGraph(onnx.DefaultOpset)
			x := g.Input("x", onnx.Float, 2)
			_, err := g.Gradient(c.build(t, g, x), x, g.Const([]float32{1, 1}, 2))
			if c.node == "" {
				if err != nil {
					t.Error(err)
				}
			} else if !errors.Is(err, onnx.ErrNoGradient) || !strings.Contains(err.Error(), "differentiate "+c.node+" ") {
				t.Errorf("error %v, want ErrNoGradient that names %s", err, c.node)
			}
		})
	}
}

// In a loop body, x and the nodes between x and y may lie in the graph around it.
func TestGradientInLoopBody(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 2)
	square := g.Mul(x, x)
	var failure error
	final, _ := g.Loop(g.Ints(2), []onnx.Value{x}, func(b *onnx.Graph, _ onnx.Value, s []onnx.Value) (next, collect []onnx.Value) {
		d, err := b.Gradient(b.Mul(square, b.Scalar(5)), x, b.Const([]float32{1, 1}, 2))
		failure = err
		return []onnx.Value{b.Add(s[0], d)}, nil
	})
	if failure != nil {
		t.Fatal(failure)
	}
	g.Output("y", final[0])
	got := onnxtest.Run(t, g, []onnx.Value{x}, []onnx.Value{{Name: "y", DType: onnx.Float, Dims: []int{2}}}, []float32{3, -1})[0]
	if got[0] != 3+2*30 || got[1] != -1-2*10 { // x + 2·10x
		t.Errorf("got %v, want [63 -21]", got)
	}

	// The same through a model that the outer graph inlines: y = 3x, twice.
	model := inlined(t, false)
	g = onnx.NewGraph(onnx.DefaultOpset)
	x = g.Input("x", onnx.Float, 2)
	out, err := g.Inline(model, map[string]onnx.Value{"x": x}, map[string][]int{"y": {2}})
	must(t, err)
	final, _ = g.Loop(g.Ints(2), []onnx.Value{x}, func(b *onnx.Graph, _ onnx.Value, s []onnx.Value) (next, collect []onnx.Value) {
		d, err := b.Gradient(b.Mul(out["y"], s[0]), x, b.Const([]float32{1, 1}, 2))
		failure = err
		return []onnx.Value{d}, nil
	})
	if failure != nil {
		t.Fatal(failure)
	}
	g.Output("y", final[0])
	got = onnxtest.Run(t, g, []onnx.Value{x}, []onnx.Value{{Name: "y", DType: onnx.Float, Dims: []int{2}}}, []float32{3, -1})[0]
	if got[0] != 27 || got[1] != -9 { // 3·3x
		t.Errorf("got %v, want [27 -9]", got)
	}
}
