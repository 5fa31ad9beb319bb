package modelfile

import (
	"maps"
	"slices"

	"ddiff/internal/restore/onnx/onnxpb"
)

// Reduce returns the nodes, weights and inputs of a graph on which the named values depend, without outputs. Values in given,
// and only those, become inputs without a type.
func Reduce(g *onnxpb.GraphProto, names []string, given map[string]bool) *onnxpb.GraphProto {
	made := map[string]*onnxpb.NodeProto{}
	for _, n := range g.Node {
		for _, out := range n.Output {
			made[out] = n
		}
	}
	needed := map[string]bool{"": true}
	for todo := slices.Clone(names); len(todo) > 0; {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if needed[name] {
			continue
		}
		needed[name] = true
		if n := made[name]; n != nil && !given[name] {
			todo = append(append(todo, n.Input...), Captured(n)...)
		}
	}
	out := &onnxpb.GraphProto{Name: g.Name}
	for _, n := range g.Node {
		if slices.ContainsFunc(n.Output, func(name string) bool { return name != "" && needed[name] && !given[name] }) {
			out.Node = append(out.Node, n)
		}
	}
	for _, t := range g.Initializer {
		if needed[t.Name] && !given[t.Name] {
			out.Initializer = append(out.Initializer, t)
		}
	}
	for _, v := range g.Input {
		if needed[v.Name] && !given[v.Name] {
			out.Input = append(out.Input, v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if needed[name] {
			out.Input = append(out.Input, &onnxpb.ValueInfoProto{Name: name})
		}
	}
	return out
}

// Pruned returns the model with the named outputs, without the nodes and weights that they do not need.
func (m *Model) Pruned(outputs ...string) *Model {
	g := Reduce(m.proto.Graph, outputs, nil)
	g.Input = m.proto.Graph.Input
	for _, v := range m.proto.Graph.Output {
		if slices.Contains(outputs, v.Name) {
			g.Output = append(g.Output, v)
		}
	}
	return m.withGraph(g)
}

// pruned is Pruned for all outputs.
func (m *Model) pruned() *Model {
	var outputs []string
	for _, p := range m.Outputs() {
		outputs = append(outputs, p.Name)
	}
	return m.Pruned(outputs...)
}

// computed returns the values that the model's nodes and weights define.
func (m *Model) computed() map[string]bool {
	out := map[string]bool{}
	for _, t := range m.proto.Graph.Initializer {
		out[t.Name] = true
	}
	for _, n := range m.proto.Graph.Node {
		for _, name := range n.Output {
			if name != "" {
				out[name] = true
			}
		}
	}
	return out
}
