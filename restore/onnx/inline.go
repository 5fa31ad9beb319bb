package onnx

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
)

// Inline copies the model's graph into g. inputs are g's values for the model's inputs; outputs are the requested outputs
// with their dimensions, nil if they do not matter. Copies of one model in g and the graphs around it share their weights. Gradient differentiates
// inlined nodes like built ones. Errors wrap ErrModel, for example if the operator sets of model and g differ.
func (g *Graph) Inline(m *modelfile.Model, inputs map[string]Value, outputs map[string][]int) (map[string]Value, error) {
	if g.half {
		m = m.Half()
	}
	r, err := g.inline(m, inputs)
	if err != nil {
		return nil, err
	}
	out := map[string]Value{}
	for _, p := range m.Outputs() {
		if dims, ok := outputs[p.Name]; ok {
			v := Value{Name: r.name(p.Name), DType: p.DType, Dims: dims}
			out[p.Name] = v
			if dims != nil {
				g.facts.Claim(v)
			}
		}
	}
	for name := range outputs {
		if _, ok := out[name]; !ok {
			return nil, fmt.Errorf("inline model: %w: it has no output %s", modelfile.ErrModel, name)
		}
	}
	return out, nil
}

// inline copies the model's graph and returns the names of its values.
func (g *Graph) inline(m *modelfile.Model, inputs map[string]Value) (*renamer, error) {
	if o := m.Opset(); o != g.opset {
		return nil, fmt.Errorf("inline model of operator set %d into a graph of %d: %w", o, g.opset, modelfile.ErrModel)
	}
	for _, o := range m.Proto().OpsetImport {
		if o.Domain == "" || o.Domain == "ai.onnx" {
			continue
		}
		if old, ok := g.domains[o.Domain]; ok && old != o.Version {
			return nil, fmt.Errorf("inline model: %w: operator set %s in versions %d and %d", modelfile.ErrModel, o.Domain, old, o.Version)
		}
		g.domains[o.Domain] = o.Version
	}
	r := &renamer{prefix: g.fresh("m") + "/", bound: map[string]string{}}
	for _, p := range m.Inputs() {
		v, ok := inputs[p.Name]
		if !ok {
			return nil, fmt.Errorf("inline model: %w: input %s is missing", modelfile.ErrModel, p.Name)
		}
		r.bound[p.Name] = v.Name
	}
	for name := range inputs {
		if _, ok := r.bound[name]; !ok {
			return nil, fmt.Errorf("inline model: %w: it has no input %s without a value of its own", modelfile.ErrModel, name)
		}
	}
	graph := m.Proto().Graph
	shared, again := g.prefixOf(m)
	if !again {
		shared = r.prefix
		g.weights[m] = shared
	}
	for _, t := range graph.Initializer {
		name := shared + t.Name
		r.bound[t.Name] = name
		if again {
			continue
		}
		g.store(&onnxpb.TensorProto{
			Dims: t.Dims, DataType: t.DataType, FloatData: t.FloatData, Int32Data: t.Int32Data,
			StringData: t.StringData, Int64Data: t.Int64Data, Name: name, RawData: t.RawData,
			DoubleData: t.DoubleData, Uint64Data: t.Uint64Data, DataLocation: t.DataLocation, ExternalData: t.ExternalData,
		})
	}
	// Copies also share the nodes that depend on weights only.
	constant := m.Constants()
	for _, n := range graph.Node {
		if len(n.Output) > 0 && constant[n.Output[0]] {
			for _, name := range n.Output {
				r.bound[name] = shared + name
			}
			if again {
				continue
			}
		}
		g.push(r.node(n))
	}
	return r, nil
}

// prefixOf returns the prefix of a model's weights, if g or a graph around it has them.
func (g *Graph) prefixOf(m *modelfile.Model) (prefix string, ok bool) {
	for ; g != nil && !ok; g = g.outer {
		prefix, ok = g.weights[m]
	}
	return prefix, ok
}

// renamer prefixes the names of an inlined model, so that copies do not clash. bound holds the names with another value.
type renamer struct {
	prefix string
	bound  map[string]string
}

func (r *renamer) name(s string) string {
	if s == "" {
		return ""
	}
	if b, ok := r.bound[s]; ok {
		return b
	}
	return r.prefix + s
}

func (r *renamer) names(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = r.name(s)
	}
	return out
}

func (r *renamer) node(n *onnxpb.NodeProto) *onnxpb.NodeProto {
	c := &onnxpb.NodeProto{
		Input: r.names(n.Input), Output: r.names(n.Output),
		OpType: n.OpType, Domain: n.Domain,
	}
	if n.Name != "" {
		c.Name = r.prefix + n.Name
	}
	for _, a := range n.Attribute {
		if a.G != nil || len(a.Graphs) > 0 {
			b := proto.CloneOf(a)
			if b.G != nil {
				r.graph(b.G)
			}
			for _, g := range b.Graphs {
				r.graph(g)
			}
			a = b
		}
		c.Attribute = append(c.Attribute, a)
	}
	return c
}

// graph renames a sub-graph in place, including its uses of outer names.
func (r *renamer) graph(g *onnxpb.GraphProto) {
	for _, t := range g.Initializer {
		t.Name = r.name(t.Name)
	}
	for _, v := range g.Input {
		v.Name = r.name(v.Name)
	}
	for _, v := range g.Output {
		v.Name = r.name(v.Name)
	}
	g.ValueInfo = nil
	for i, n := range g.Node {
		g.Node[i] = r.node(n)
	}
}
