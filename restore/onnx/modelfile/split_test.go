package modelfile_test

import (
	"errors"
	"slices"
	"testing"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxtest"
)

// TestSplit: the parts have what they need, and what both need is computed once.
func TestSplit(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x, w := g.Input("x", onnx.Float, 4), g.Input("w", onnx.Float, 4)
	g.Input("unused", onnx.Float, 4)
	weights := g.Const([]float32{1, 2, 3, 4}, 4)
	h := g.Exp(g.Mul(x, weights))
	g.Output("y", g.Mul(h, h))
	g.Output("gx", g.Mul(g.Mul(w, h), weights))
	m := onnxtest.Parse(t, g)
	first, rest, crossing, err := m.Split("y", "gx")
	must(t, err)
	for _, part := range []*modelfile.Model{first, rest} {
		if err := part.Sound(); err != nil {
			t.Error(err)
		}
	}
	names := func(ports []modelfile.Port) (out []string) {
		for _, p := range ports {
			out = append(out, p.Name)
		}
		return out
	}
	if !slices.Equal(crossing, []string{h.Name, weights.Name}) {
		t.Errorf("crossing %v, want the weights and %s", crossing, h.Name)
	}
	if in := names(first.Inputs()); !slices.Equal(in, []string{"x"}) {
		t.Errorf("inputs of the first part %v", in)
	}
	if in := names(rest.Inputs()); !slices.Equal(in, append([]string{"w"}, crossing...)) {
		t.Errorf("inputs of the rest %v", in)
	}
	if out := names(first.Outputs()); !slices.Equal(out, append([]string{"y"}, crossing...)) {
		t.Errorf("outputs of the first part %v", out)
	}
	if a, b := len(first.Proto().Graph.Node), len(rest.Proto().Graph.Node); a != 4 || b != 3 {
		t.Errorf("%d and %d nodes, want 4 and 3", a, b)
	}
	if a, b := first.Parameters(), rest.Parameters(); a != 4 || b != 0 {
		t.Errorf("%d and %d weights, want 4 and 0", a, b)
	}
	alone, none, crossing, err := m.Split("gx")
	if err != nil || none != nil || crossing != nil || !slices.Equal(names(alone.Inputs()), []string{"x", "w"}) {
		t.Errorf("gx alone: inputs %v, rest %v, %v", names(alone.Inputs()), none, err)
	}
	if _, _, _, err := m.Split("y", "z"); !errors.Is(err, modelfile.ErrModel) {
		t.Errorf("error %v for an output that does not exist", err)
	}
}
