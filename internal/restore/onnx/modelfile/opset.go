package modelfile

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxpb"
)

// Convert returns the model in another operator set from MinOpset to MaxOpset. It knows the operations that image operators
// use; it returns ErrModel, with the node, for an operation that the other set lacks, that means something else there, or
// that it does not know.
func (m *Model) Convert(opset int) (*Model, error) {
	from := m.Opset()
	if from == opset {
		return m, nil
	}
	p := proto.CloneOf(&onnxpb.ModelProto{IrVersion: m.proto.IrVersion, OpsetImport: m.proto.OpsetImport})
	for _, o := range p.OpsetImport {
		if o.Domain == "" || o.Domain == "ai.onnx" {
			o.Version = int64(opset)
		}
	}
	c := converter{from: from, to: opset, taken: m.computed(), values: m.facts(nil)}
	nodes, err := c.nodes(m.proto.Graph.Node)
	if err != nil {
		return nil, err
	}
	g := m.proto.Graph
	p.Graph = &onnxpb.GraphProto{
		Name: g.Name, Input: g.Input, Output: g.Output, Node: nodes, Initializer: slices.Concat(g.Initializer, c.constants),
	}
	return &Model{proto: p}, nil
}

// stableOps are the operations with the same meaning for float tensors in all operator sets from MinOpset to MaxOpset: later
// versions only accept more types. reduced are those whose axes became an input in set 18.
var (
	stableOps = words(`Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool Cast Ceil Clip Concat Constant
		ConstantOfShape Conv ConvTranspose Cos Cosh CumSum DepthToSpace Div Einsum Elu Equal Erf Exp Expand Flatten Floor Gather
		GatherElements GatherND Gemm GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual HardSigmoid Identity
		InstanceNormalization LeakyRelu Less LessOrEqual Log LogSoftmax MatMul Max MaxPool Min Mod Mul Neg Not Or PRelu Pad Pow
		Range Reciprocal ReduceSum Relu Reshape Resize Round ScatterElements ScatterND Selu Shape Sigmoid Sign Sin Sinh Size
		Slice Softmax Softplus Softsign SpaceToDepth Sqrt Squeeze Sub Sum Tan Tanh Tile TopK Transpose Unsqueeze Where Xor`)
	reduced = words("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare")
	// since has the set that introduced an operation which is stable from then on.
	since = map[string]int{"Trilu": 14, "HardSwish": 14, "LayerNormalization": 17, "Mish": 18, "Gelu": 20}
	// laterAttributes has the sets that introduced attributes of stable operations.
	laterAttributes = map[string]map[string]int{
		"Reshape": {"allowzero": 14}, "Shape": {"start": 15, "end": 15}, "AveragePool": {"dilations": 19}, "Cast": {"saturate": 19},
		"Resize":          {"antialias": 18, "axes": 18, "keep_aspect_ratio_policy": 18},
		"ScatterElements": {"reduction": 16}, "ScatterND": {"reduction": 16},
	}
)

func words(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(text) {
		out[w] = true
	}
	return out
}

// axesAsInput is the set in which reductions take their axes as an input, Split the number of its outputs, and Pad axes.
const axesAsInput = 18

// converter converts nodes between two operator sets.
type converter struct {
	from, to  int
	taken     map[string]bool
	values    *infer.Facts
	constants []*onnxpb.TensorProto
}

func (c *converter) nodes(in []*onnxpb.NodeProto) ([]*onnxpb.NodeProto, error) {
	out := make([]*onnxpb.NodeProto, len(in))
	for i, n := range in {
		var err error
		if out[i], err = c.node(n); err != nil {
			return nil, fmt.Errorf("convert node %s from operator set %d to %d: %w: %w", nodeName(n), c.from, c.to, ErrModel, err)
		}
	}
	return out, nil
}

func (c *converter) node(n *onnxpb.NodeProto) (*onnxpb.NodeProto, error) {
	first, known := since[n.OpType]
	switch {
	case n.Domain != "" && n.Domain != "ai.onnx":
		return n, nil
	case len(Captured(n)) > 0:
		return nil, fmt.Errorf("it has a graph of its own; export the model with the operator set %d", c.to)
	case known && c.to < first:
		return nil, fmt.Errorf("it is new in set %d", first)
	case reduced[n.OpType]:
		return c.reduction(n)
	case n.OpType == "Split":
		return c.split(n), nil
	case !known && !stableOps[n.OpType]:
		return nil, fmt.Errorf("its meaning may differ; export the model with the operator set %d", c.to)
	case n.OpType == "Pad" && len(n.Input) > 3 && c.to < axesAsInput:
		return nil, fmt.Errorf("it names axes, which are new in set %d", axesAsInput)
	}
	for _, a := range n.Attribute {
		if first := laterAttributes[n.OpType][a.Name]; c.to < first {
			return nil, fmt.Errorf("its attribute %s is new in set %d; export the model with the operator set %d", a.Name, first, c.to)
		}
	}
	return n, nil
}

// reduction moves the axes of a reduction to an input, or from a constant to an attribute.
func (c *converter) reduction(n *onnxpb.NodeProto) (*onnxpb.NodeProto, error) {
	if (c.from < axesAsInput) == (c.to < axesAsInput) {
		return n, nil
	}
	out := proto.CloneOf(n)
	if c.to >= axesAsInput {
		i := slices.IndexFunc(out.Attribute, func(a *onnxpb.AttributeProto) bool { return a.Name == "axes" })
		if i < 0 {
			return out, nil
		}
		name := c.fresh(n.Output[0] + "/axes")
		axes := infer.Ints(out.Attribute[i].Ints)
		c.constants = append(c.constants, &onnxpb.TensorProto{
			Name: name, DataType: int32(infer.Int64), Dims: []int64{int64(len(axes))}, RawData: infer.IntBytes(axes),
		})
		out.Attribute = slices.Delete(out.Attribute, i, i+1)
		out.Input = append(out.Input[:1:1], name)
		return out, nil
	}
	noop := func(a *onnxpb.AttributeProto) bool { return a.Name == "noop_with_empty_axes" }
	if i := slices.IndexFunc(out.Attribute, noop); i >= 0 && out.Attribute[i].I != 0 && !has(out, 1) {
		return nil, fmt.Errorf("it reduces no axes, which is new in set %d; export the model with the operator set %d", axesAsInput, c.to)
	}
	out.Attribute = slices.DeleteFunc(out.Attribute, noop)
	if has(out, 1) {
		axes, ok := c.values.IntegersOf(infer.Value{Name: out.Input[1]})
		if !ok || len(axes) == 0 {
			return nil, fmt.Errorf("its axes are not constant, which is new in set %d; export the model with the operator set %d", axesAsInput, c.to)
		}
		out.Attribute = append(out.Attribute, infer.EncodeAttributes(map[string]any{"axes": axes})...)
	}
	out.Input = out.Input[:1]
	return out, nil
}

// split adds or removes the number of outputs of a division into equal parts.
func (c *converter) split(n *onnxpb.NodeProto) *onnxpb.NodeProto {
	out := proto.CloneOf(n)
	out.Attribute = slices.DeleteFunc(out.Attribute, func(a *onnxpb.AttributeProto) bool { return a.Name == "num_outputs" })
	if c.to >= axesAsInput && (len(n.Input) < 2 || n.Input[1] == "") {
		out.Attribute = append(out.Attribute, infer.EncodeAttributes(map[string]any{"num_outputs": len(n.Output)})...)
	}
	return out
}

// nodeName describes a node in messages.
func nodeName(n *onnxpb.NodeProto) string { return fmt.Sprintf("%q (%s)", n.Name, n.OpType) }

func (c *converter) fresh(name string) string {
	for c.taken[name] {
		name += "_"
	}
	c.taken[name] = true
	return name
}
