package modelfile

import (
	"fmt"
	"maps"
	"slices"

	"ddiff/restore/onnx/onnxpb"
)

// Split divides a model at an output. first computes this output alone, from the inputs that it needs. rest computes the
// wanted outputs; it is nil if there are none. Values that both need are computed once: crossing names them, they are
// further outputs of first and inputs of rest. Errors wrap ErrModel.
func (m *Model) Split(output string, wanted ...string) (first, rest *Model, crossing []string, err error) {
	g := m.proto.Graph
	ports := map[string]*onnxpb.ValueInfoProto{}
	for _, v := range g.Output {
		ports[v.Name] = v
	}
	for _, name := range append([]string{output}, wanted...) {
		if ports[name] == nil {
			return nil, nil, nil, fmt.Errorf("split model: %w: it has no output %s", ErrModel, name)
		}
	}
	first = m.part([]string{output}, nil)
	first.proto.Graph.Output = []*onnxpb.ValueInfoProto{ports[output]}
	if len(wanted) == 0 {
		return first, nil, nil, nil
	}
	computed := first.computed()
	rest = m.part(wanted, computed)
	for _, name := range wanted {
		rest.proto.Graph.Output = append(rest.proto.Graph.Output, ports[name])
	}
	for _, v := range rest.proto.Graph.Input {
		if computed[v.Name] {
			crossing = append(crossing, v.Name)
			if v.Name != output {
				first.proto.Graph.Output = append(first.proto.Graph.Output, v)
			}
		}
	}
	return first, rest, crossing, nil
}

// part returns a model of the nodes, weights and inputs on which the named values depend, without outputs, see Reduce.
func (m *Model) part(names []string, given map[string]bool) *Model {
	return &Model{proto: &onnxpb.ModelProto{
		IrVersion: m.proto.IrVersion, Graph: Reduce(m.proto.Graph, names, given), OpsetImport: m.proto.OpsetImport,
	}}
}

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
