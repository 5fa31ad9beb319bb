package onnx

import (
	"fmt"
	"slices"

	"ddiff/restore/onnx/infer"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxpb"
)

// Types returns the types and dimensions of the values of a model's main graph by name, for inputs of the given dimensions.
// Inputs with fixed dimensions need no entry. Values whose shape depends on data, or on an operation that ddiff does not
// know, are missing. It runs nothing. Errors wrap ErrModel.
func Types(m *modelfile.Model, inputs map[string][]int) (map[string]Value, error) {
	g, at, err := alone(m, inputs)
	if err != nil {
		return nil, err
	}
	out := map[string]Value{}
	add := func(name string) {
		if v, err := g.facts.TypeOf(at(name)); err == nil && name != "" {
			v.Name = name
			out[name] = v
		}
	}
	for _, v := range m.Proto().Graph.Input {
		add(v.Name)
	}
	for _, n := range m.Proto().Graph.Node {
		for _, name := range n.Output {
			add(name)
		}
	}
	return out, nil
}

// Depends reports whether Gradient differentiates y by x: y is x, or a path of nodes with a derivative leads from x to y.
func (g *Graph) Depends(y, x Value) bool {
	_, active := g.between(x, y)
	return active[y.Name]
}

// Differentiable returns nil if Gradient can differentiate an output of a model by an input, for inputs of the given
// dimensions. Inputs with fixed dimensions need no entry. Otherwise it returns ErrNoGradient, which names the operation
// and its node, or ErrModel. It runs nothing.
func Differentiable(m *modelfile.Model, output, input string, inputs map[string][]int) error {
	g, at, err := alone(m, inputs)
	if err != nil {
		return err
	}
	for _, name := range []string{output, input} {
		if at(name) == "" {
			return fmt.Errorf("differentiate model: %w: it has no value %q", modelfile.ErrModel, name)
		}
	}
	x, err := g.facts.TypeOf(at(input))
	if err != nil {
		return fmt.Errorf("differentiate model: %w: %w", ErrNoGradient, err)
	}
	// The error of a missing rule comes before that of a shape behind it.
	if err := g.ruled(first(g.between(x, Value{Name: at(output)}))); err != nil {
		return err
	}
	y, err := g.facts.TypeOf(at(output))
	if err != nil {
		return fmt.Errorf("differentiate model: %w: %w", ErrNoGradient, err)
	}
	_, err = g.Gradient(y, x, g.zeros(y.DType, y.Dims))
	return err
}

func first[A, B any](a A, _ B) A { return a }

// alone inlines a model into a graph of its own. at returns the name of a value of the model in this graph, or "".
func alone(m *modelfile.Model, inputs map[string][]int) (g *Graph, at func(name string) string, err error) {
	if o := m.Opset(); o < MinOpset || o > MaxOpset {
		return nil, nil, fmt.Errorf("read model: %w: operator set %d is outside %d..%d", modelfile.ErrModel, o, MinOpset, MaxOpset)
	}
	g = NewGraph(m.Opset())
	values := map[string]Value{}
	for _, p := range m.Inputs() {
		dims := inputs[p.Name]
		if dims == nil {
			dims = p.Dims
		}
		if slices.ContainsFunc(dims, func(d int) bool { return d < 0 }) {
			return nil, nil, fmt.Errorf("read model: %w: the dimensions of input %s are not given", modelfile.ErrModel, p.Name)
		}
		values[p.Name] = g.Input(g.fresh("input"), p.DType, dims...)
	}
	known := map[string]bool{}
	for _, n := range m.Proto().Graph.Node {
		for _, out := range n.Output {
			known[out] = out != ""
		}
	}
	r, err := g.inline(m, values)
	if err != nil {
		return nil, nil, err
	}
	return g, func(name string) string {
		if known[name] || r.bound[name] != "" {
			return r.name(name)
		}
		return ""
	}, nil
}

// ruled returns ErrNoGradient for the first node without a rule.
func (g *Graph) ruled(nodes []*onnxpb.NodeProto) error {
	for _, p := range nodes {
		if ruleOf(p.OpType) == nil || !infer.Standard(p) {
			return undifferentiated(p, ErrNoGradient)
		}
	}
	return nil
}

// undifferentiated states the node that has no gradient.
func undifferentiated(p *onnxpb.NodeProto, err error) error {
	return fmt.Errorf("differentiate %s %q: %w", p.OpType, infer.NodeName(p), err)
}
