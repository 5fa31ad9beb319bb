package modelfile

import (
	"fmt"
	"slices"

	"ddiff/internal/restore/onnx/infer"
)

// Types returns the types and dimensions of the values of a model's main graph by name, for inputs of the given dimensions.
// Inputs with fixed dimensions need no entry. Values whose shape depends on data, or on an operation that ddiff does not
// know, are missing. It runs nothing. Errors wrap ErrModel.
func (m *Model) Types(inputs map[string][]int) (map[string]infer.Value, error) {
	given := map[string]infer.Value{}
	for _, p := range m.Inputs() {
		dims := inputs[p.Name]
		if dims == nil {
			dims = p.Dims
		}
		if slices.ContainsFunc(dims, func(d int) bool { return d < 0 }) {
			return nil, fmt.Errorf("read model: %w: the dimensions of input %s are not given", ErrModel, p.Name)
		}
		given[p.Name] = infer.Value{DType: p.DType, Dims: dims}
	}
	facts := m.facts(given)
	var names []string
	for _, v := range m.proto.Graph.Input {
		names = append(names, v.Name)
	}
	for _, n := range m.proto.Graph.Node {
		names = append(names, n.Output...)
	}
	out := map[string]infer.Value{}
	for _, name := range names {
		if v, err := facts.TypeOf(name); err == nil && name != "" {
			out[name] = v
		}
	}
	return out, nil
}

// facts returns what the model's graph states of its values, for inputs with the types of the given values.
func (m *Model) facts(inputs map[string]infer.Value) *infer.Facts {
	f := infer.NewFacts(nil)
	for name, v := range inputs {
		f.Declare(infer.Value{Name: name, DType: v.DType, Dims: v.Dims})
	}
	for _, t := range m.proto.Graph.Initializer {
		f.Store(t)
	}
	for _, n := range m.proto.Graph.Node {
		f.Produce(n)
	}
	return f
}
