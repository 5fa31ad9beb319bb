package onnx

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"ddiff/restore/onnx/onnxpb"
)

// ErrModel: the bytes are not a model that can be used; the message says why.
var ErrModel = errors.New("unusable ONNX model")

// Model is a model file that was read.
type Model struct {
	proto *onnxpb.ModelProto
}

// Port describes an input or output of a Model. A dimension is −1 where it is free.
type Port struct {
	Name  string
	DType DType
	Dims  []int
}

// ReadModel parses a model file. ErrModel wraps every refusal.
func ReadModel(data []byte) (*Model, error) {
	p := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("parse: %w: not an ONNX file, or cut short (%d bytes)", ErrModel, len(data))
	}
	if p.Graph == nil || len(p.Graph.Node) == 0 {
		return nil, fmt.Errorf("parse: %w: it holds no graph", ErrModel)
	}
	for _, t := range p.Graph.Initializer {
		if t.DataLocation == onnxpb.TensorProto_EXTERNAL {
			return nil, fmt.Errorf("read tensor %s: %w: its weights lie in another file", t.Name, ErrModel)
		}
	}
	return &Model{proto: p}, nil
}

// Opset is the version of the default operator set, 0 when the file names none.
func (m *Model) Opset() int {
	for _, o := range m.proto.OpsetImport {
		if o.Domain == "" || o.Domain == "ai.onnx" {
			return int(o.Version)
		}
	}
	return 0
}

// Metadata is the file's key-value metadata.
func (m *Model) Metadata() map[string]string {
	out := make(map[string]string, len(m.proto.MetadataProps))
	for _, e := range m.proto.MetadataProps {
		out[e.Key] = e.Value
	}
	return out
}

// SetMetadata replaces or adds entries.
func (m *Model) SetMetadata(entries map[string]string) {
	all := m.Metadata()
	for k, v := range entries {
		all[k] = v
	}
	m.proto.MetadataProps = nil
	for _, k := range sortedKeys(all) {
		m.proto.MetadataProps = append(m.proto.MetadataProps, &onnxpb.StringStringEntryProto{Key: k, Value: all[k]})
	}
}

// Marshal serialises the model.
func (m *Model) Marshal() ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m.proto)
}

// Inputs lists the inputs that a caller has to supply: those without an initialiser.
func (m *Model) Inputs() []Port {
	given := map[string]bool{}
	for _, t := range m.proto.Graph.Initializer {
		given[t.Name] = true
	}
	var out []Port
	for _, v := range m.proto.Graph.Input {
		if !given[v.Name] {
			out = append(out, port(v))
		}
	}
	return out
}

// Outputs lists the outputs.
func (m *Model) Outputs() []Port {
	var out []Port
	for _, v := range m.proto.Graph.Output {
		out = append(out, port(v))
	}
	return out
}

// Parameters is the number of elements in the initialisers.
func (m *Model) Parameters() int {
	n := 0
	for _, t := range m.proto.Graph.Initializer {
		k := 1
		for _, d := range t.Dims {
			k *= int(d)
		}
		n += k
	}
	return n
}

func port(v *onnxpb.ValueInfoProto) Port {
	t := v.GetType().GetTensorType()
	p := Port{Name: v.Name, DType: DType(t.GetElemType())}
	for _, d := range t.GetShape().GetDim() {
		n := -1
		if x, ok := d.Value.(*onnxpb.TensorShapeProto_Dimension_DimValue); ok {
			n = int(x.DimValue)
		}
		p.Dims = append(p.Dims, n)
	}
	return p
}

// Inline copies the model's graph into g, feeds its inputs by name and returns its outputs
// by name, with the dimensions that the caller states for them. Reverse mode does not pass
// through inlined nodes. The model's operator set must be g's.
func (g *Graph) Inline(m *Model, inputs map[string]Value, outputs map[string][]int) (map[string]Value, error) {
	if o := m.Opset(); o != g.opset {
		return nil, fmt.Errorf("inline model of operator set %d into a graph of %d: %w", o, g.opset, ErrModel)
	}
	if len(m.proto.Functions) > 0 {
		return nil, fmt.Errorf("inline model: %w: it defines functions of its own", ErrModel)
	}
	for _, o := range m.proto.OpsetImport {
		if o.Domain == "" || o.Domain == "ai.onnx" {
			continue
		}
		if old, ok := g.domains[o.Domain]; ok && old != o.Version {
			return nil, fmt.Errorf("inline model: %w: operator set %s in versions %d and %d", ErrModel, o.Domain, old, o.Version)
		}
		g.domains[o.Domain] = o.Version
	}
	r := renamer{prefix: g.fresh("m") + "/", bound: map[string]string{}}
	for _, p := range m.Inputs() {
		v, ok := inputs[p.Name]
		if !ok {
			return nil, fmt.Errorf("inline model: %w: nothing given for input %s", ErrModel, p.Name)
		}
		r.bound[p.Name] = v.Name
	}
	graph := m.proto.Graph
	for _, t := range graph.Initializer {
		c := &onnxpb.TensorProto{
			Dims: t.Dims, DataType: t.DataType, FloatData: t.FloatData, Int32Data: t.Int32Data,
			StringData: t.StringData, Int64Data: t.Int64Data, Name: r.name(t.Name), RawData: t.RawData,
			DoubleData: t.DoubleData, Uint64Data: t.Uint64Data,
		}
		g.inits = append(g.inits, c)
	}
	for _, n := range graph.Node {
		g.raw = append(g.raw, r.node(n))
	}
	out := map[string]Value{}
	for _, p := range m.Outputs() {
		if dims, ok := outputs[p.Name]; ok {
			out[p.Name] = Value{Name: r.name(p.Name), DType: p.DType, Dims: dims}
		}
	}
	for name := range outputs {
		if _, ok := out[name]; !ok {
			return nil, fmt.Errorf("inline model: %w: it has no output %s", ErrModel, name)
		}
	}
	return out, nil
}

// renamer gives the names of one inlined model a prefix, so that two copies don't clash.
type renamer struct {
	prefix string
	bound  map[string]string
}

func (r renamer) name(s string) string {
	if s == "" {
		return ""
	}
	if b, ok := r.bound[s]; ok {
		return b
	}
	return r.prefix + s
}

func (r renamer) names(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = r.name(s)
	}
	return out
}

func (r renamer) node(n *onnxpb.NodeProto) *onnxpb.NodeProto {
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

// graph renames a sub-graph in place; its nodes may use names of the graph around it.
func (r renamer) graph(g *onnxpb.GraphProto) {
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
