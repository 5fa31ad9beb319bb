package onnx

import (
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"ddiff/restore/onnx/onnxpb"
)

// halfHeavy are the operations worth float16; halfLight follow their inputs, so that a value
// is not converted between two of the former.
var (
	halfHeavy = map[string]bool{"Conv": true, "ConvTranspose": true, "Gemm": true, "MatMul": true}
	halfLight = map[string]bool{
		"Add": true, "Sub": true, "Mul": true, "Div": true, "Clip": true,
		"Sigmoid": true, "Tanh": true, "Relu": true, "LeakyRelu": true, "Gelu": true, "HardSigmoid": true,
		"Reshape": true, "Flatten": true, "Squeeze": true, "Unsqueeze": true, "Transpose": true, "Expand": true,
		"Slice": true, "Split": true, "Concat": true, "Pad": true, "Tile": true, "Identity": true, "Dropout": true,
		"DepthToSpace": true, "SpaceToDepth": true, "Resize": true, "AveragePool": true, "MaxPool": true,
	}
)

// largestHalf is the largest finite float16.
const largestHalf = 65504

// Half is the model in mixed precision: convolutions, and products with weights, compute in
// float16, as do the simple operations between them. In float32 stay inputs and outputs,
// everything that depends on the time alone, normalisations, reductions, softmax and
// attention's products of activations, which overflow float16 first. A weight that
// float16 cannot hold keeps its operation in float32.
//
// Weights are converted by nodes that the runtime evaluates when a session is made.
func (m *Model) Half() *Model {
	if m.half != nil {
		return m.half
	}
	h := halver{
		fuser: newFuser(m), types: map[string]DType{}, full: map[string]string{}, half: map[string]string{}, constant: m.constants(),
	}
	out := proto.CloneOf(m.proto)
	for _, t := range out.Graph.Initializer {
		h.full[t.Name] = t.Name
		h.types[t.Name] = DType(t.DataType)
	}
	for _, p := range m.Inputs() {
		h.full[p.Name] = p.Name
		h.types[p.Name] = p.DType
	}
	for _, n := range m.proto.Graph.Node {
		h.node(n)
	}
	for _, p := range m.Outputs() {
		h.need(p.Name, Float)
	}
	out.Graph.Node, out.Graph.ValueInfo = h.nodes, nil
	m.half = &Model{proto: out}
	return m.half
}

// halver rewrites the nodes one by one. A float value of the model is there in float32 under
// its own name, in float16 under another, or both.
type halver struct {
	*fuser
	types    map[string]DType  // element types, where they are not float
	full     map[string]string // the values that are there in float32, and all others
	half     map[string]string // the names in float16
	constant map[string]bool   // values that depend on weights only
	nodes    []*onnxpb.NodeProto
}

func (h *halver) float(name string) bool { return name != "" && h.types[name] == Float }

// node adds one node of the model, in the precision that is its own.
func (h *halver) node(n *onnxpb.NodeProto) {
	c := proto.CloneOf(n)
	half := h.wants(n)
	for i, name := range c.Input {
		if h.float(name) && (n.OpType != "Resize" || i == 0) { // its scales are float32
			t := Float
			if half {
				t = Float16
			}
			c.Input[i] = h.need(name, t)
		}
	}
	for _, name := range captured(n) {
		if h.float(name) {
			h.need(name, Float)
		}
	}
	for i, name := range c.Output {
		h.types[name] = h.outputType(n, i)
		if half && name != "" {
			c.Output[i] = name + "/half"
			h.half[name] = c.Output[i]
		} else {
			h.full[name] = name
		}
	}
	h.nodes = append(h.nodes, c)
	if h.model.normalised[n.Output[0]] {
		h.need(n.Output[0], Float16) // what follows a normalisation goes on in float16
	}
}

// wants tells whether a node computes in float16.
func (h *halver) wants(n *onnxpb.NodeProto) bool {
	if n.Domain != "" || len(n.Output) == 0 || !h.image[n.Output[0]] || h.model.precise[n.Output[0]] ||
		len(n.Input) == 0 || !h.float(n.Input[0]) || len(n.Output) > 1 && n.OpType != "Split" {
		return false
	}
	follows, weighted := false, n.OpType != "MatMul"
	for _, name := range n.Input {
		follows = follows || h.half[name] != "" && !h.constant[name]
		weighted = weighted || h.constant[name]
		for _, x := range h.floats(name) {
			if math.Abs(float64(x)) > largestHalf {
				return false
			}
		}
	}
	return halfHeavy[n.OpType] && weighted || halfLight[n.OpType] && follows
}

// need gives the name of a value in a precision, and converts it if it is not there.
func (h *halver) need(name string, t DType) string {
	at, other := h.full, h.half
	as := name
	if t == Float16 {
		at, other = h.half, h.full
		as = name + "/half"
	}
	if have, ok := at[name]; ok {
		return have
	}
	// Weights that are stored in float16 and widened by a node of the model.
	if maker := h.makers[name]; t == Float16 && maker != nil && maker.OpType == "Cast" && h.types[maker.Input[0]] == Float16 {
		at[name] = maker.Input[0]
		return maker.Input[0]
	}
	h.nodes = append(h.nodes, &onnxpb.NodeProto{
		OpType: "Cast", Input: []string{other[name]}, Output: []string{as},
		Attribute: attributes(map[string]any{"to": int(t)}),
	})
	at[name] = as
	return as
}

// outputType is the element type of an output of a node.
func (h *halver) outputType(n *onnxpb.NodeProto, i int) DType {
	switch n.OpType {
	case "Shape", "Size", "ArgMax", "ArgMin", "NonZero":
		return Int64
	case "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Not", "Xor", "IsNaN", "IsInf":
		return Bool
	case "Where":
		return h.types[n.Input[1]]
	case "Loop":
		i++ // the body's first output is the condition
	}
	for _, a := range n.Attribute {
		switch {
		case a.Name == "to", a.Name == "dtype" && a.I != 0:
			return DType(a.I)
		case a.Name == "value_int", a.Name == "value_ints":
			return Int64
		case a.T != nil:
			return DType(a.T.DataType)
		case a.G != nil && i < len(a.G.Output):
			return DType(a.G.Output[i].GetType().GetTensorType().GetElemType())
		}
	}
	switch {
	case n.OpType == "TopK" && i == 1:
		return Int64
	case len(n.Input) == 0 || n.Input[0] == "":
		return Float
	}
	return h.types[n.Input[0]]
}

// captured lists what the sub-graphs of a node use, their own values included.
func captured(n *onnxpb.NodeProto) []string {
	var out []string
	for _, a := range n.Attribute {
		for _, g := range append(slices.Clone(a.Graphs), a.G) {
			for _, inner := range g.GetNode() {
				out = append(out, inner.Input...)
				out = append(out, captured(inner)...)
			}
			for _, v := range g.GetOutput() {
				out = append(out, v.Name)
			}
		}
	}
	return out
}

// constants are the values of the main graph that depend on weights and constants only.
func (m *Model) constants() map[string]bool {
	out := map[string]bool{"": true}
	for _, t := range m.proto.Graph.Initializer {
		out[t.Name] = true
	}
	for _, n := range m.proto.Graph.Node {
		if len(captured(n)) > 0 || random[n.OpType] {
			continue
		}
		if !slices.ContainsFunc(n.Input, func(in string) bool { return !out[in] }) {
			for _, name := range n.Output {
				out[name] = true
			}
		}
	}
	return out
}

var random = map[string]bool{
	"RandomNormal": true, "RandomUniform": true, "RandomNormalLike": true, "RandomUniformLike": true,
	"Multinomial": true, "Bernoulli": true,
}
