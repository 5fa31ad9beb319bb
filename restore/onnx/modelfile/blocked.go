package modelfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"ddiff/restore/onnx/infer"
	"ddiff/restore/onnx/onnxpb"
)

// BlockedDomain has ONNX Runtime's operations on the blocked layout of its CPU provider, NCHWc.
const BlockedDomain = "com.microsoft.nchwc"

// Blocked returns the model with images in the blocked layout between its convolutions, for inputs with the dimensions of the given
// values and for a number of channels per block. It returns the model itself if nothing of it gains. Nodes whose dimensions
// are unknown stay as they are. The inputs and outputs of the model are those of the source.
func (m *Model) Blocked(channels int, inputs map[string]infer.Value) *Model {
	return newBlocker(m, m.facts(inputs), channels).rewrite()
}

// blocker rewrites a model node by node. A value exists in its own layout under its own name, in the blocked layout as a view, or
// both.
type blocker struct {
	*fuser
	channelsPerBlock int
	mark             string // no name of a value or a node has it
	plain            map[string]bool
	views            map[string]*view
	inits            map[string]bool // names of added constants
	weights          []*onnxpb.TensorProto
	nodes            []*onnxpb.NodeProto
}

// kind is what a view says of a value.
type kind int

const (
	viewImage   kind = iota // the value, [N, C, H, W], is in the layout under the view's name
	viewPadded              // the same, but C is no multiple of the block: further channels are zero
	viewScaled              // the value is the image of times slope
	viewGroups              // it is the image with the channels of a group in one dimension, [N, groups, C/groups·H·W]
	viewSquares             // it is the square of such a value
	viewUpsized             // it is the image with each pixel repeated 2×2
)

// view describes a value in terms of an image in the blocked layout. All but images are not computed until a node needs them.
type view struct {
	kind  kind
	name  string            // of an image in the rewritten model
	dims  []int             // of the value in its own layout
	of    string            // the value that is the image of the other kinds
	slope string            // of viewScaled: one number per channel
	node  *onnxpb.NodeProto // of viewGroups and viewSquares: the node of the file
	conv  *onnxpb.NodeProto // the convolution that computed an image, until it adds another image
}

func newBlocker(m *Model, shapes *infer.Facts, channelsPerBlock int) *blocker {
	b := &blocker{
		fuser: newFuser(m, nil, shapes), channelsPerBlock: channelsPerBlock,
		plain: map[string]bool{}, views: map[string]*view{}, inits: map[string]bool{},
	}
	for _, t := range m.proto.Graph.Initializer {
		b.plain[t.Name] = true
	}
	for _, p := range m.Inputs() {
		b.plain[p.Name] = true
	}
	names := slices.Concat(slices.Sorted(maps.Keys(b.plain)), slices.Sorted(maps.Keys(b.producers)))
	for _, n := range m.proto.Graph.Node {
		names = append(names, n.Name)
	}
	for b.mark = "@"; slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, b.mark) }); {
		b.mark += "@"
	}
	return b
}

// rewrite returns the rewritten model, or the model itself if nothing of it gains.
func (b *blocker) rewrite() *Model {
	for _, n := range b.model.proto.Graph.Node {
		missing := func(in string) bool { return in != "" && !b.plain[in] && b.views[in] == nil }
		if slices.ContainsFunc(n.Input, missing) || slices.ContainsFunc(Captured(n), func(in string) bool { return b.producers[in] != nil && missing(in) }) {
			return b.model // its nodes are not in order
		}
		if !infer.Standard(n) || len(n.Output) != 1 || !b.node(n) {
			b.keep(n)
		}
	}
	for _, p := range b.model.Outputs() {
		b.restore(p.Name)
	}
	if len(b.views) == 0 {
		return b.model
	}
	source := b.model.proto
	imports := slices.DeleteFunc(slices.Clone(source.OpsetImport), func(o *onnxpb.OperatorSetIdProto) bool { return o.Domain == BlockedDomain })
	// Weights that are not used any more must not remain as inputs.
	inputs := slices.DeleteFunc(slices.Clone(source.Graph.Input), func(v *onnxpb.ValueInfoProto) bool { return b.consts[v.Name] != nil })
	all := &Model{proto: &onnxpb.ModelProto{
		IrVersion:   source.IrVersion,
		OpsetImport: append(imports, &onnxpb.OperatorSetIdProto{Domain: BlockedDomain, Version: 1}),
		Graph:       &onnxpb.GraphProto{Name: source.Graph.Name, Initializer: slices.Concat(source.Graph.Initializer, b.weights), Node: b.nodes},
	}}
	var outputs []string
	for _, p := range b.model.Outputs() {
		outputs = append(outputs, p.Name)
	}
	out := all.part(outputs, nil)
	out.proto.MetadataProps, out.proto.Graph.Input, out.proto.Graph.Output = source.MetadataProps, inputs, source.Graph.Output
	return out
}

// node adds a node in the blocked layout, and reports whether it can.
func (b *blocker) node(n *onnxpb.NodeProto) bool {
	tensor := func(a *onnxpb.AttributeProto) bool { return a.Type == onnxpb.AttributeProto_TENSOR }
	if two := n.OpType == "Conv" || n.OpType == "Add" || n.OpType == "Mul"; len(n.Input) == 0 || len(n.Input) == 1 && two || slices.ContainsFunc(n.Attribute, tensor) {
		return false // the library refuses it
	}
	switch n.OpType {
	case "Conv":
		return b.convolution(n)
	case "Add":
		return b.shift(n) || b.sum(n) || b.binary(n)
	case "Mul":
		return b.square(n) || b.scale(n) || b.binary(n)
	case "Sub", "Div":
		return b.binary(n)
	case "Sigmoid", "Relu", "LeakyRelu", "Elu", "Tanh", "Gelu", "HardSigmoid", "HardSwish", "Softplus", "Erf", "Identity", "Neg":
		return b.unary(n)
	case "Reshape":
		return b.group(n)
	case "ReduceMean":
		return b.statistic(n)
	case "Concat":
		return b.concat(n)
	case "Resize":
		return b.resize(n)
	case "AveragePool", "MaxPool":
		return b.pool(n)
	}
	return false
}

// keep adds a node as it is.
func (b *blocker) keep(n *onnxpb.NodeProto) {
	for _, in := range slices.Concat(n.Input, Captured(n)) {
		b.restore(in)
	}
	b.nodes = append(b.nodes, n)
	for _, out := range n.Output {
		b.plain[out] = true
	}
}

// restore makes a value available in its own layout.
func (b *blocker) restore(name string) {
	v := b.views[name]
	if b.plain[name] || v == nil {
		return
	}
	b.plain[name] = true
	switch v.kind {
	case viewImage, viewPadded, viewScaled, viewUpsized:
		b.emit(BlockedDomain, "ReorderOutput", name, []string{b.computed(name)}, map[string]any{"channels": v.dims[1]})
	case viewGroups, viewSquares:
		for _, in := range v.node.Input {
			b.restore(in)
		}
		b.nodes = append(b.nodes, v.node)
	}
}

// computed returns the name of a view's image in the blocked layout, and computes it if that was delayed.
func (b *blocker) computed(name string) string {
	v := b.views[name]
	switch v.kind {
	case viewScaled:
		b.affine(name, v.of, v.slope, "")
	case viewUpsized:
		b.upsample(name, v.of, 2, 2)
	}
	return b.views[name].name
}

// add records that a value is in the blocked layout.
func (b *blocker) add(name string, dims []int) *view {
	v := &view{kind: viewImage, name: b.blockedName(name), dims: dims}
	if dims[1]%b.channelsPerBlock != 0 {
		v.kind = viewPadded
	}
	b.views[name] = v
	return v
}

// part names something of a value. No value and no node of the model has the name.
func (b *blocker) part(name, part string) string { return name + b.mark + part }

func (b *blocker) blockedName(name string) string { return b.part(name, "blocked") }

// imageOf returns the view of a value that is, or can be computed as, an image of whole blocks. Otherwise it returns nil.
func (b *blocker) imageOf(name string) *view {
	v := b.views[name]
	if v == nil || v.kind == viewGroups || v.kind == viewSquares || v.kind == viewPadded {
		return nil
	}
	b.computed(name)
	return b.views[name]
}

// emit adds a node with one output.
func (b *blocker) emit(domain, op, out string, inputs []string, attrs map[string]any) *onnxpb.NodeProto {
	n := &onnxpb.NodeProto{
		Domain: domain, OpType: op, Name: b.part(out, op), Input: inputs, Output: []string{out}, Attribute: infer.EncodeAttributes(attrs),
	}
	b.nodes = append(b.nodes, n)
	return n
}

// reshape adds a reshape to known dimensions and returns out.
func (b *blocker) reshape(out, in string, dims ...int) string {
	b.emit("", "Reshape", out, []string{in, b.integers(dims...)}, nil)
	return out
}

// integers adds a constant of integers, once.
func (b *blocker) integers(data ...int) string {
	return b.constant(b.part("", fmt.Sprint(data)), infer.Int64, func() []byte { return infer.IntBytes(data) }, len(data))
}

// constant adds a constant unless one has the name.
func (b *blocker) constant(name string, t infer.DType, raw func() []byte, dims ...int) string {
	if !b.inits[name] {
		b.inits[name], b.plain[name] = true, true
		b.weights = append(b.weights, &onnxpb.TensorProto{Name: name, DataType: int32(t), Dims: infer.Int64s(dims), RawData: raw()})
	}
	return name
}

// dims returns the dimensions of a float value, nil if they are unknown.
func (b *blocker) dims(name string) []int {
	if name == "" {
		return nil
	}
	v, err := b.shapes.TypeOf(name)
	if err != nil || v.DType != infer.Float || slices.Contains(v.Dims, -1) || slices.Contains(v.Dims, 0) {
		return nil
	}
	return append([]int{}, v.Dims...)
}

// literal returns the elements of a small value that does not depend on data.
func (b *blocker) literal(name string) *infer.Literal {
	l, ok := b.shapes.LiteralOf(name)
	if !ok {
		return nil
	}
	return &l
}

// copied returns a node with other inputs and another output.
func copied(n *onnxpb.NodeProto, out string, inputs ...string) *onnxpb.NodeProto {
	c := proto.CloneOf(n)
	c.Input, c.Output = inputs, []string{out}
	return c
}
