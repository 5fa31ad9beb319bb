package modelfile

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxpb"
)

// Domains of operations beside the standard, in version 1: those of ONNX Runtime, and those of onnxruntime/kernels.c.
const (
	contributed = "com.microsoft"
	own         = "ddiff"
)

// ChannelsLast returns a model for the CUDA provider, whose convolutions read and write images [N, H, W, C] (NhwcConv), and so do the simple operations between
// them. A group normalisation with its SiLU is one node, GroupNorm, and so is the sum of two branches, AddBias: both are kernels of this program, and add the biases of the
// convolutions before them. Other nodes stay as they are, between two transpositions.
//
// Weights of a normalisation that depend on the time have the shape [N, C], which GroupNorm does not read: a caller makes tables of them, see TimeValues.
func (m *Model) ChannelsLast() *Model {
	f := newFuser(m, m.outline(), m.assumedFacts())
	f.fuseAll((*affine).node, 2)
	normal := f.result().pruned()
	l := layout{fuser: newFuser(normal, normal.outline(), f.shapes), first: map[string]bool{}, last: map[string]string{}}
	for name := range l.consts {
		l.first[name] = true
	}
	for _, p := range m.Inputs() {
		l.first[p.Name] = true
	}
	for _, n := range normal.proto.Graph.Node {
		l.node(n)
	}
	for _, p := range m.Outputs() {
		l.asFirst(p.Name)
	}
	l.graph.Node = l.nodes
	out := m.withGraph(l.graph)
	out.proto.OpsetImport = slices.Clone(out.proto.OpsetImport)
	for _, domain := range []string{contributed, own} {
		if !slices.ContainsFunc(out.proto.OpsetImport, func(o *onnxpb.OperatorSetIdProto) bool { return o.Domain == domain }) {
			out.proto.OpsetImport = append(out.proto.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: domain, Version: 1})
		}
	}
	return out.withoutBiases()
}

// withoutBiases moves the biases of convolutions into the only node that reads one, if that is a GroupNorm or a sum of two images: each would be a kernel that reads
// and writes the image.
func (m *Model) withoutBiases() *Model {
	f := newFuser(m, m.outline(), nil)
	bias := func(image string) (conv *onnxpb.NodeProto, values []float32) {
		conv = f.producers[image]
		if conv == nil || conv.OpType != "NhwcConv" || len(conv.Input) < 3 || len(f.consumers[image]) != 1 {
			return nil, nil
		}
		return conv, f.floats(conv.Input[2])
	}
	dropped := map[*onnxpb.NodeProto]bool{} // convolutions without their bias
	var nodes []*onnxpb.NodeProto
	for _, n := range m.proto.Graph.Node {
		var images []string // to which a bias is added
		switch {
		case n.Domain == own:
			images = n.Input[:1]
		case n.OpType == "Add" && f.image[n.Input[0]] && f.image[n.Input[1]]:
			images = n.Input
		}
		var total []float32
		for _, name := range images {
			conv, values := bias(name)
			if values == nil || total != nil && len(total) != len(values) {
				continue
			}
			if total == nil {
				total = make([]float32, len(values))
			}
			for c, v := range values {
				total[c] += v
			}
			dropped[conv] = true
		}
		if total != nil {
			n = proto.CloneOf(n)
			n.Input = append(n.Input, (&affine{f: f, prefix: n.Output[0] + "/"}).floats("bias", total, len(total)))
			if n.OpType == "Add" {
				n.OpType, n.Domain = "AddBias", own
			}
		}
		nodes = append(nodes, n)
	}
	for i, n := range nodes {
		if dropped[n] {
			nodes[i] = proto.CloneOf(n)
			nodes[i].Input = nodes[i].Input[:2]
		}
	}
	f.graph.Node = nodes
	return m.withGraph(f.graph)
}

// node returns a normalisation of images as one node, with the SiLU behind it.
func (a *affine) node(x, out string, epsilon float32) []*onnxpb.NodeProto {
	c, activation := len(a.gamma), 0
	if activated := a.f.activation(out); activated != "" {
		out, activation = activated, 1
	}
	gamma, beta := a.floats("gamma", a.gamma, c), a.floats("beta", a.beta, c)
	if a.scale != "" {
		rows := a.ints("rows", -1, c)
		if a.f.consts[a.scale] != nil && a.f.consts[a.shift] != nil {
			rows = a.ints("row", c)
		}
		// They may have one number for several channels.
		ones := a.floats("ones", slices.Repeat([]float32{1}, c), 1, c, 1, 1)
		scale, shift := a.op("Reshape", "scale", a.op("Mul", "scales", a.scale, ones), rows), a.op("Reshape", "shift", a.op("Mul", "shifts", a.shift, ones), rows)
		gamma, beta = a.op("Mul", "scaled", gamma, scale), a.op("Add", "shifted", a.op("Mul", "rescaled", beta, scale), shift)
	}
	a.nodes = append(a.nodes, &onnxpb.NodeProto{
		OpType: "GroupNorm", Domain: own, Input: []string{x, gamma, beta}, Output: []string{out, a.prefix + "moments"},
		Attribute: infer.EncodeAttributes(map[string]any{"groups": a.groups, "epsilon": epsilon, "activation": activation}),
	})
	return a.nodes
}

// layout rewrites a model node by node. An image exists with channels first under its own name, with channels last under another, or both.
type layout struct {
	*fuser // its shapes are those of the source, whose names stay
	first  map[string]bool
	last   map[string]string
	nodes  []*onnxpb.NodeProto
}

var (
	// layoutUnary and layoutBinary are the operations that follow their inputs.
	layoutUnary  = words("Sigmoid Tanh Relu LeakyRelu Clip Identity Dropout Neg Exp Erf Gelu HardSigmoid Softplus Cast")
	layoutBinary = words("Add Sub Mul Div")

	toLast  = []int{0, 2, 3, 1}
	toFirst = []int{0, 3, 1, 2}
)

func (l *layout) add(n *onnxpb.NodeProto) { l.nodes = append(l.nodes, n) }

func (l *layout) transpose(in, out string, perm []int) {
	l.add(&onnxpb.NodeProto{OpType: "Transpose", Input: []string{in}, Output: []string{out}, Attribute: infer.EncodeAttributes(map[string]any{"perm": perm})})
}

func (l *layout) ints(name string, data ...int) string {
	return (&affine{f: l.fuser}).ints(name, data...)
}

// asFirst makes a value exist with channels first.
func (l *layout) asFirst(name string) {
	if last := l.last[name]; last != "" && !l.first[name] {
		l.transpose(last, name, toFirst)
	}
	l.first[name] = true
}

// asLast returns the name of a value with channels last. One of lower rank is one that broadcasts to an image.
func (l *layout) asLast(name string) string {
	if last := l.last[name]; last != "" {
		return last
	}
	from, last, rank := name, name+"/last", l.rank(name)
	switch {
	case rank == 0:
		return name
	case rank < 4:
		from = name + "/image"
		axes := []int{0, 1, 2}[:4-rank]
		l.add(&onnxpb.NodeProto{OpType: "Unsqueeze", Input: []string{name, l.ints(from+"/axes", axes...)}, Output: []string{from}})
	}
	l.transpose(from, last, toLast)
	l.last[name] = last
	return last
}

// node adds a node in its layout.
func (l *layout) node(n *onnxpb.NodeProto) {
	c := proto.CloneOf(n)
	var inputs []string // those with channels last
	switch {
	case n.Domain == own, l.widens(n):
		inputs = n.Input[:1]
	case len(n.Output) != 1 || !l.follows(n):
	case layoutUnary[n.OpType]:
		inputs = n.Input[:1]
	case layoutBinary[n.OpType]:
		inputs = n.Input
	case n.OpType == "Concat" && l.moveAxis(c):
		inputs = n.Input
	case (n.OpType == "Resize" || n.OpType == "Pad") && l.moveSizes(c):
		inputs = n.Input[:1]
	}
	if inputs == nil {
		for _, name := range slices.Concat(n.Input, Captured(n)) {
			l.asFirst(name)
		}
		for _, name := range n.Output {
			l.first[name] = true
		}
		l.add(c)
		return
	}
	for i, name := range n.Input {
		if i < len(inputs) {
			c.Input[i] = l.asLast(name)
		} else {
			l.asFirst(name)
		}
	}
	out := n.Output[0]
	l.last[out] = out + "/last"
	c.Output[0] = l.last[out]
	if n.OpType == "Conv" {
		c.OpType, c.Domain, c.Input[1] = "NhwcConv", contributed, l.weights(n.Input[1])
	}
	l.add(c)
}

// widens reports whether a node is a convolution that is worth two transpositions: not one of the colours of a picture.
func (l *layout) widens(n *onnxpb.NodeProto) bool {
	if n.OpType != "Conv" || n.Domain != "" || len(n.Input) < 2 {
		return false
	}
	d := l.dims(n.Input[1])
	group, stated := infer.DecodeAttributes(n.Attribute)["group"].(int)
	return len(d) == 4 && max(d[0], d[1]) > mostMixed && (!stated || group == 1)
}

// weights returns those of a convolution with the channels last.
func (l *layout) weights(name string) string {
	last := name + "/last"
	if l.last[name] == "" {
		l.transpose(name, last, toLast)
		l.last[name] = last
	}
	return last
}

// follows reports whether all inputs of a node have known ranks up to that of an image, and some exists with channels last.
func (l *layout) follows(n *onnxpb.NodeProto) bool {
	if n.Domain != "" {
		return false
	}
	follows := false
	for _, name := range n.Input {
		follows = follows || l.last[name] != "" && l.image[name]
		if rank := l.rank(name); name != "" && (rank < 0 || rank > 4) {
			return false
		}
	}
	return follows
}

// moveAxis changes the axis of a concatenation of images.
func (l *layout) moveAxis(n *onnxpb.NodeProto) bool {
	axis, ok := infer.DecodeAttributes(n.Attribute)["axis"].(int)
	if !ok || slices.ContainsFunc(n.Input, func(name string) bool { return l.rank(name) != 4 }) {
		return false
	}
	n.Attribute = infer.EncodeAttributes(map[string]any{"axis": slices.Index(toLast, infer.Axis(axis, 4))})
	return true
}

// moveSizes changes the scales of a Resize, or the widths of a Pad, which are constants by axis.
func (l *layout) moveSizes(n *onnxpb.NodeProto) bool {
	if l.rank(n.Input[0]) != 4 {
		return false
	}
	if n.OpType == "Pad" {
		widths := []int(nil)
		if len(n.Input) < 4 {
			widths = l.integers(n.Input[1])
		}
		if len(widths) != 8 {
			return false
		}
		n.Input[1] = l.ints(n.Output[0]+"/pads", append(moved(widths[:4]), moved(widths[4:])...)...)
		return true
	}
	if len(n.Input) != 3 || len(l.floats(n.Input[2])) != 4 {
		return false
	}
	n.Input[2] = (&affine{f: l.fuser}).floats(n.Output[0]+"/scales", moved(l.floats(n.Input[2])), 4)
	return true
}

// moved returns values by axis in the order of channels last.
func moved[T any](x []T) []T {
	out := make([]T, len(toLast))
	for i, from := range toLast {
		out[i] = x[from]
	}
	return out
}
