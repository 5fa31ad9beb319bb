package modelfile

import (
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxpb"
)

// halfHeavy are the operations that gain from float16. halfLight follow their inputs, which avoids conversions between
// heavy operations. Results of halfAfter continue in float16.
var (
	halfHeavy = words("Conv ConvTranspose Gemm MatMul NhwcConv")
	halfLight = words(`Add Sub Mul Div Clip Sigmoid Tanh Relu LeakyRelu Gelu HardSigmoid Reshape Flatten Squeeze Unsqueeze Transpose
		Expand Slice Split Concat Pad Tile Identity Dropout DepthToSpace SpaceToDepth Resize AveragePool MaxPool GroupNorm AddBias`)
	halfAfter = words("InstanceNormalization GroupNormalization")
	// halfFirst are the first inputs of an operation, of which the others stay in float32: scales, weights of a normalisation whose statistics are float32.
	halfFirst = map[string]int{"Resize": 1, "GroupNorm": 1, "AddBias": 2}
)

// largestHalf is the largest finite float16.
const largestHalf = 65504

// Half returns the model in mixed precision. Convolutions, products with weights and the simple operations between them
// compute in float16. Inputs and outputs, values that depend on the time only, normalisations, reductions, softmax and
// attention's products of activations, which overflow first, stay in float32, and so do operations with a weight outside
// the range of float16. The nodes that convert weights run once, when a session is made.
func (m *Model) Half() *Model {
	m.halfOnce.Do(func() { m.half = m.makeHalf() })
	return m.half
}

func (m *Model) makeHalf() *Model {
	h := halfRewriter{
		fuser: newFuser(m, nil, nil), types: map[string]infer.DType{}, full: map[string]string{}, half: map[string]string{}, constant: m.Constants(),
	}
	out := proto.CloneOf(m.proto)
	for _, t := range out.Graph.Initializer {
		h.full[t.Name] = t.Name
		h.types[t.Name] = infer.DType(t.DataType)
	}
	for _, p := range m.Inputs() {
		h.full[p.Name] = p.Name
		h.types[p.Name] = p.DType
	}
	for _, n := range m.proto.Graph.Node {
		h.node(n)
	}
	for _, p := range m.Outputs() {
		h.cast(p.Name, infer.Float)
	}
	out.Graph.Node, out.Graph.ValueInfo = h.nodes, nil
	return &Model{proto: out}
}

// halfRewriter rewrites a model node by node. A float value exists in float32 under its own name, in float16 under
// another, or both.
type halfRewriter struct {
	*fuser
	types    map[string]infer.DType // element types other than float
	full     map[string]string      // names of values in float32 or of other types
	half     map[string]string      // names of values in float16
	constant map[string]bool        // values that depend on weights only
	nodes    []*onnxpb.NodeProto
}

func (h *halfRewriter) float(name string) bool { return name != "" && h.types[name] == infer.Float }

// node adds a node in its precision.
func (h *halfRewriter) node(n *onnxpb.NodeProto) {
	c := proto.CloneOf(n)
	half := h.computesInHalf(n)
	for i, name := range c.Input {
		if first := halfFirst[n.OpType]; h.float(name) && (i < first || first == 0) {
			t := infer.Float
			if half {
				t = infer.Float16
			}
			c.Input[i] = h.cast(name, t)
		}
	}
	for _, name := range Captured(n) {
		if h.float(name) {
			h.cast(name, infer.Float)
		}
	}
	for i, name := range c.Output {
		h.types[name] = h.outputType(n, i)
		if half && name != "" && (i == 0 || n.OpType == "Split") {
			c.Output[i] = name + "/half"
			h.half[name] = c.Output[i]
		} else {
			h.full[name] = name
		}
	}
	h.nodes = append(h.nodes, c)
	if !half && halfAfter[n.OpType] && h.image[n.Output[0]] {
		h.cast(n.Output[0], infer.Float16)
	}
}

// computesInHalf reports whether a node computes in float16.
func (h *halfRewriter) computesInHalf(n *onnxpb.NodeProto) bool {
	if n.Domain != "" && n.Domain != contributed && n.Domain != own || len(n.Output) == 0 || !h.image[n.Output[0]] ||
		len(n.Input) == 0 || !h.float(n.Input[0]) || len(n.Output) > 1 && n.OpType != "Split" && n.Domain == "" {
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

// cast returns the name of a value in a precision, and adds the conversion if needed.
func (h *halfRewriter) cast(name string, t infer.DType) string {
	at, other := h.full, h.half
	as := name
	if t == infer.Float16 {
		at, other = h.half, h.full
		as = name + "/half"
	}
	if have, ok := at[name]; ok {
		return have
	}
	// The model stores the weights in float16 and widens them itself.
	if producer := h.producers[name]; t == infer.Float16 && producer != nil && producer.OpType == "Cast" && h.types[producer.Input[0]] == infer.Float16 {
		at[name] = producer.Input[0]
		return producer.Input[0]
	}
	h.nodes = append(h.nodes, &onnxpb.NodeProto{
		OpType: "Cast", Input: []string{other[name]}, Output: []string{as},
		Attribute: infer.EncodeAttributes(map[string]any{"to": int(t)}),
	})
	at[name] = as
	return as
}

// outputType returns the element type of output i of a node.
func (h *halfRewriter) outputType(n *onnxpb.NodeProto, i int) infer.DType {
	switch n.OpType {
	case "Shape", "Size", "ArgMax", "ArgMin", "NonZero":
		return infer.Int64
	case "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Not", "Xor", "IsNaN", "IsInf":
		return infer.Bool
	case "Where":
		return h.types[n.Input[1]]
	case "Loop":
		i++ // the body's first output is the condition
	}
	for _, a := range n.Attribute {
		switch {
		case a.Name == "to", a.Name == "dtype" && a.I != 0:
			return infer.DType(a.I)
		case a.Name == "value_int", a.Name == "value_ints":
			return infer.Int64
		case a.T != nil:
			return infer.DType(a.T.DataType)
		case a.G != nil && i < len(a.G.Output):
			return infer.DType(a.G.Output[i].GetType().GetTensorType().GetElemType())
		}
	}
	switch {
	case n.OpType == "TopK" && i == 1:
		return infer.Int64
	case len(n.Input) == 0 || n.Input[0] == "":
		return infer.Float
	}
	return h.types[n.Input[0]]
}

// Captured lists the names that a node's sub-graphs use, their own values included.
func Captured(n *onnxpb.NodeProto) []string {
	var out []string
	for _, g := range subGraphs(n) {
		for _, inner := range g.GetNode() {
			out = append(out, inner.Input...)
			out = append(out, Captured(inner)...)
		}
		for _, v := range g.GetOutput() {
			out = append(out, v.Name)
		}
	}
	return out
}

// HasHalf reports whether a graph, or one inside it, converts to float16. Weights that are only stored in it are no sign of it.
func HasHalf(g *onnxpb.GraphProto) bool {
	return slices.ContainsFunc(g.GetNode(), func(n *onnxpb.NodeProto) bool {
		half := slices.ContainsFunc(n.Attribute, func(a *onnxpb.AttributeProto) bool { return a.Name == "to" && a.I == int64(onnxpb.TensorProto_FLOAT16) })
		return n.OpType == "Cast" && half || slices.ContainsFunc(subGraphs(n), HasHalf)
	})
}

// Constants returns the values of the main graph that depend on weights and constants only.
func (m *Model) Constants() map[string]bool {
	out := map[string]bool{"": true}
	for _, t := range m.proto.Graph.Initializer {
		out[t.Name] = true
	}
	for _, n := range m.proto.Graph.Node {
		if len(Captured(n)) > 0 || random[n.OpType] {
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

var random = words("RandomNormal RandomUniform RandomNormalLike RandomUniformLike Multinomial Bernoulli")
