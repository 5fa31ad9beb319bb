package onnx_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// A stage has no nodes that its outputs do not need, and a gradient subtracts instead of adding a negative.
func TestStageHasNoNeedlessNodes(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 4)
	parts := g.Split(x, 0, 2, 2)
	y := g.Mul(g.Add(parts[0], parts[1]), g.Minus(parts[0], parts[1]))
	g.Sqrt(y)
	d, err := g.Gradient(y, x, g.Const([]float32{1, 1}, 2))
	must(t, err)
	g.Output("d", d)
	stages, _, err := g.Stages("model")
	must(t, err)
	m, err := modelfile.ReadModel(stages[0].Model)
	must(t, err)
	var ops []string
	for _, n := range m.Proto().Graph.Node {
		ops = append(ops, n.OpType)
	}
	want := []string{"Split", "Add", "Sub", "Mul", "Mul", "Add", "Sub", "Concat", "Identity"}
	if slices.Sort(ops); !slices.Equal(ops, slices.Sorted(slices.Values(want))) {
		t.Errorf("the model has %v, want %v", ops, want)
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

// A conversion to bfloat16 and back rounds, and its gradient is that of the value.
func TestGradientOfBFloat16(t *testing.T) {
	t.Parallel()
	const bfloat16 onnx.DType = 16
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 3)
	y := g.Cast(g.Cast(x, bfloat16), onnx.Float)
	d, err := g.Gradient(y, x, g.Const([]float32{1, 2, 4}, 3))
	must(t, err)
	g.Output("d", d)
	got := onnxtest.Run(t, g, []onnx.Value{x}, []onnx.Value{{Name: "d", DType: onnx.Float, Dims: []int{3}}}, []float32{0, 2, -2})[0]
	if !slices.Equal(got, []float32{1, 2, 4}) {
		t.Errorf("derivative %v, want 1 2 4", got)
	}
}

// Curves of sensors with a vertical tangent at black have no derivative there, below it, and in J·v, which differentiates the gradient.
func TestVerticalTangent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		curve func(g *onnx.Graph, x onnx.Value) onnx.Value
		slope []float32 // at 0.25
	}{
		"square root": {func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Sqrt(x) }, []float32{1, 1}},
		"power": {func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Apply("Pow", onnx.Float, x.Dims, nil, x, g.Scalar(0.5))
		}, []float32{1, 1}},
		"powers": {func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Apply("Pow", onnx.Float, x.Dims, nil, x, g.Const([]float32{0.5, 1.5}, 2, 1))
		}, []float32{1, 0.75}},
	} {
		g := onnx.NewGraph(onnx.DefaultOpset)
		x, seed := g.Input("x", onnx.Float, 2, 3), g.Input("seed", onnx.Float, 2, 3)
		d, err := g.Gradient(c.curve(g, g.Clip(x, 0, 1)), x, seed)
		must(t, err)
		product, err := g.Gradient(d, seed, g.Expand(g.Scalar(1), 2, 3))
		must(t, err)
		g.Output("d", d)
		g.Output("product", product)
		outputs := []onnx.Value{{Name: "d", DType: onnx.Float, Dims: d.Dims}, {Name: "product", DType: onnx.Float, Dims: product.Dims}}
		want := []float32{0, 0, c.slope[0], 0, 0, c.slope[1]}
		for i, got := range onnxtest.Run(t, g, []onnx.Value{x, seed}, outputs, []float32{-1, 0, 0.25, -1, 0, 0.25}, []float32{1, 1, 1, 1, 1, 1}) {
			for k := range want {
				if !(math.Abs(float64(got[k]-want[k])) <= 1e-6) {
					t.Errorf("%s: %s is %v, want %v", name, outputs[i].Name, got, want)
					break
				}
			}
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
