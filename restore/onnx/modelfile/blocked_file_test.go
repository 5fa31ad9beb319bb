package modelfile_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxpb"
	"ddiff/restore/onnx/onnxtest"
)

// editedModel is a small network with residuals and a change to its file. Its nodes are, in order: two convolutions, an
// activation without a rule, the sum of both convolutions, a copy of it, the sum of all, the output.
func editedModel(t *testing.T, edit func(p *onnxpb.ModelProto, nodes []*onnxpb.NodeProto)) (m *modelfile.Model, x, y onnx.Value) {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	l := &layers{Graph: g}
	x = g.Input("x", onnx.Float, 2, 3, 6, 10)
	a := l.conv(x, 32, 3, 1)
	b := l.conv(a, 32, 3, 1)
	s := l.op("Softsign", a)
	sum := l.Add(b, a)
	y = l.Add(l.op("Neg", sum), s)
	g.Output("y", y)
	p := proto.CloneOf(onnxtest.Parse(t, g).Proto())
	edit(p, p.Graph.Node)
	data, err := proto.Marshal(p)
	must(t, err)
	m, err = modelfile.ReadModel(data)
	must(t, err)
	return m, x, y
}

// rename changes a name everywhere in the main graph.
func rename(p *onnxpb.ModelProto, from, to string) {
	change := func(names []string) {
		for i, name := range names {
			if name == from {
				names[i] = to
			}
		}
	}
	for _, n := range p.Graph.Node {
		change(n.Input)
		change(n.Output)
	}
	for _, w := range p.Graph.Initializer {
		if w.Name == from {
			w.Name = to
		}
	}
}

// branch makes a node an If whose branches read a value of the graph around them.
func branch(p *onnxpb.ModelProto, n *onnxpb.NodeProto, value string) {
	p.Graph.Initializer = append(p.Graph.Initializer, &onnxpb.TensorProto{Name: "yes", DataType: int32(onnx.Bool), RawData: []byte{1}})
	n.OpType, n.Input, n.Attribute = "If", []string{"yes"}, nil
	for name, op := range map[string]string{"then_branch": "Neg", "else_branch": "Tanh"} {
		n.Attribute = append(n.Attribute, &onnxpb.AttributeProto{Name: name, Type: onnxpb.AttributeProto_GRAPH, G: &onnxpb.GraphProto{
			Name: op, Node: []*onnxpb.NodeProto{{OpType: op, Input: []string{value}, Output: []string{"of " + op}}},
			Output: []*onnxpb.ValueInfoProto{{Name: "of " + op, Type: &onnxpb.TypeProto{TensorType: &onnxpb.TypeProto_Tensor{ElemType: int32(onnx.Float)}}}},
		}})
	}
}

// The forms of a file that do not change what the network computes do not matter to the blocked layout.
func TestBlockedFiles(t *testing.T) {
	t.Parallel()
	block := onnxtest.Runtime(t).Block()
	if block == 0 {
		t.Skip("the library has no blocked layout on this processor")
	}
	for name, edit := range map[string]func(p *onnxpb.ModelProto, nodes []*onnxpb.NodeProto){
		"weights are inputs too": func(p *onnxpb.ModelProto, _ []*onnxpb.NodeProto) {
			for _, w := range p.Graph.Initializer {
				p.Graph.Input = append(p.Graph.Input, &onnxpb.ValueInfoProto{
					Name: w.Name, Type: &onnxpb.TypeProto{TensorType: &onnxpb.TypeProto_Tensor{ElemType: w.DataType}},
				})
			}
		},
		"a value with a name of the layout": func(p *onnxpb.ModelProto, nodes []*onnxpb.NodeProto) {
			rename(p, nodes[2].Output[0], nodes[0].Output[0]+"@blocked")
		},
		"weights with a name of the layout": func(p *onnxpb.ModelProto, nodes []*onnxpb.NodeProto) {
			rename(p, nodes[1].Input[1], nodes[1].Output[0]+"@kernel")
			// A computed copy keeps the weights of the file.
			copied := &onnxpb.NodeProto{OpType: "Identity", Input: []string{nodes[1].Input[1]}, Output: []string{"copy"}}
			again := proto.CloneOf(nodes[1])
			again.Name, again.Input[1], again.Output[0] = "", "copy", nodes[2].Output[0]
			p.Graph.Node[2] = again
			p.Graph.Node = append([]*onnxpb.NodeProto{copied}, p.Graph.Node...)
		},
		"a node with the name of another value": func(_ *onnxpb.ModelProto, nodes []*onnxpb.NodeProto) {
			nodes[0].Name, nodes[2].Name = "first", nodes[0].Output[0]
		},
		"a branch before the sum": func(p *onnxpb.ModelProto, nodes []*onnxpb.NodeProto) { branch(p, nodes[2], nodes[1].Output[0]) },
		"a branch after the sum":  func(p *onnxpb.ModelProto, nodes []*onnxpb.NodeProto) { branch(p, nodes[4], nodes[1].Output[0]) },
		"weights are nodes": func(p *onnxpb.ModelProto, nodes []*onnxpb.NodeProto) {
			p.Graph.Node = nil
			for _, w := range p.Graph.Initializer {
				p.Graph.Node = append(p.Graph.Node, &onnxpb.NodeProto{OpType: "Constant", Output: []string{w.Name}, Attribute: []*onnxpb.AttributeProto{
					{Name: "value", Type: onnxpb.AttributeProto_TENSOR, T: w},
				}})
			}
			p.Graph.Initializer, p.Graph.Node = nil, append(p.Graph.Node, nodes...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, x, y := editedModel(t, edit)
			want, _ := inNetwork(t, m, x, y, 0)
			got, nodes := inNetwork(t, m, x, y, block)
			if nodes == "" {
				t.Error("nothing is in the blocked layout")
			}
			if difference, largest := farthest(want, got); !(difference <= 2e-6*largest) {
				t.Errorf("results differ by %.2g of at most %.2g", difference, largest)
			}
		})
	}
}

// Files that the library refuses pass, so that the library states why.
func TestBlockedInvalid(t *testing.T) {
	t.Parallel()
	inline := func(edit func(p *onnxpb.ModelProto, nodes []*onnxpb.NodeProto)) {
		m, x, y := editedModel(t, edit)
		g := onnx.NewGraph(m.Opset())
		g.Block(8)
		in := g.Input("x", onnx.Float, x.Dims...)
		if _, err := g.InlineNetwork(m, map[string]onnx.Value{"x": in}, map[string][]int{"y": y.Dims}); err != nil {
			t.Error(err)
		}
	}
	for _, op := range []string{"Conv", "Add", "Mul", "Sub", "Sigmoid", "Reshape", "ReduceMean", "Concat", "Resize", "AveragePool"} {
		for inputs := range 2 {
			inline(func(_ *onnxpb.ModelProto, nodes []*onnxpb.NodeProto) {
				nodes[4].OpType, nodes[4].Input = op, nodes[4].Input[:inputs]
			})
		}
	}
	inline(func(p *onnxpb.ModelProto, nodes []*onnxpb.NodeProto) { // weights from a Cast of nothing
		p.Graph.Node = append([]*onnxpb.NodeProto{{OpType: "Cast", Output: []string{"w"}, Attribute: []*onnxpb.AttributeProto{
			{Name: "to", Type: onnxpb.AttributeProto_INT, I: int64(onnx.Float)},
		}}}, nodes...)
		nodes[1].Input[1] = "w"
	})
	inline(func(_ *onnxpb.ModelProto, nodes []*onnxpb.NodeProto) { // images of two sizes
		nodes[0].Attribute, nodes[1].Attribute = nodes[1].Attribute, nil
		nodes[3].OpType, nodes[3].Attribute = "Concat", []*onnxpb.AttributeProto{{Name: "axis", Type: onnxpb.AttributeProto_INT, I: 1}}
	})
	inline(func(_ *onnxpb.ModelProto, nodes []*onnxpb.NodeProto) {
		nodes[1].Attribute = append(nodes[1].Attribute, &onnxpb.AttributeProto{Name: "pad", Type: onnxpb.AttributeProto_TENSOR, T: &onnxpb.TensorProto{}})
	})
}
