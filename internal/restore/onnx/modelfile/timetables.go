package modelfile

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxpb"
)

// TimeValues lists the float values of a score model that depend on the time input alone, perhaps on the shape of the image, and that nodes of the
// image read: scales and shifts of blocks, for example. The returned model has its inputs, and these values as its outputs. With none it is nil.
func (m *Model) TimeValues() ([]string, *Model) {
	f, timed := newFuser(m, nil, nil), map[string]bool{}
	time := m.time().Name
	var names []string
	for _, n := range m.proto.Graph.Node {
		if len(n.Output) == 0 {
			continue
		}
		for _, name := range n.Input {
			by := timed[name] || name == time
			for _, out := range n.Output {
				timed[out] = timed[out] || by && n.OpType != "Shape" && n.OpType != "Size"
			}
			if timed[name] && !f.image[name] && f.image[n.Output[0]] && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	g := Reduce(m.proto.Graph, names, nil)
	g.Input = m.proto.Graph.Input
	for _, name := range names {
		g.Output = append(g.Output, &onnxpb.ValueInfoProto{Name: name, Type: &onnxpb.TypeProto{TensorType: &onnxpb.TypeProto_Tensor{ElemType: int32(infer.Float)}}})
	}
	return names, m.withGraph(g)
}

// time returns the time input of a score model.
func (m *Model) time() Port {
	for _, p := range m.Inputs() {
		if len(p.Dims) != 4 {
			return p
		}
	}
	return Port{}
}

// Table has the values of one name at all times, with the time as the first dimension.
type Table struct {
	Dims []int
	Data []float32
}

// WithTables returns a model that reads the values of TimeValues from tables, for batches whose images have one time, and without the nodes that computed
// them. The time index is that of the first image.
func (m *Model) WithTables(tables map[string]Table) (*Model, error) {
	f := newFuser(m, nil, nil)
	time := m.time()
	a := affine{f: &fuser{graph: m.outline()}, prefix: "table_"}
	index := time.Name
	if time.DType != infer.Int64 {
		index = a.add("Cast", "table_times", []string{index}, infer.EncodeAttributes(map[string]any{"to": int(infer.Int64)})...)
	}
	// A value is one row that broadcasts over the batch, or a row for each image. GroupNorm reads the tables itself.
	indices := map[string]string{"/row": a.op("Gather", "first", index, a.ints("zeros", 0)), "/rows": index}
	for name, t := range tables {
		if len(t.Dims) == 0 || infer.Size(t.Dims) != len(t.Data) {
			return nil, fmt.Errorf("table of %s: %w: %d values for the shape %v", name, ErrModel, len(t.Data), t.Dims)
		}
	}
	made := map[string]bool{}
	for _, n := range m.proto.Graph.Node {
		c := proto.CloneOf(n)
		for i, name := range n.Input {
			t, ok := tables[name]
			if !ok || len(n.Output) == 0 || !f.image[n.Output[0]] {
				continue
			}
			if !made[name] {
				a.f.graph.Initializer = append(a.f.graph.Initializer, &onnxpb.TensorProto{
					Name: name + "/table", DataType: int32(infer.Float), Dims: infer.Int64s(t.Dims), RawData: infer.FloatBytes(t.Data),
				})
				made[name] = true
			}
			if n.Domain == own {
				c.Input[i] = name + "/table"
				if c.Input = append(c.Input, "", "")[:5]; c.Input[4] == "" {
					c.Input[4] = index
				}
				continue
			}
			shape := "/rows"
			if layoutBinary[n.OpType] {
				shape = "/row"
			}
			c.Input[i] = name + shape
			if made[name+shape] {
				continue
			}
			made[name+shape] = true
			a.op("Gather", "", name+"/table", indices[shape])
			a.nodes[len(a.nodes)-1].Output[0] = name + shape
		}
		a.nodes = append(a.nodes, c)
	}
	a.f.graph.Node = a.nodes
	return m.withGraph(a.f.graph).pruned(), nil
}
