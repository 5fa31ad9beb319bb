package modelfile

import (
	"fmt"
	"slices"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxpb"
)

// FuseGroupNorm returns a model for OpenVINO, in which group normalisations in PyTorch's export forms (a reshape to groups,
// InstanceNormalization, a reshape back, scale and shift per channel; or one node GroupNormalization; often a second scale and shift that
// depend on the time only) are statistics of the channels and one multiplication and one addition over the image, and the number of
// normalisations. With none it returns m. The models share weights and nodes. Other providers are no faster with it.
//
// With mean m and mean square q of a group, y = x·a + b has
//
//	a = γ/√(q − m² + ε),  b = β − m·a,  and after (1+s), t:  a·(1+s),  b·(1+s) + t
//
// This reads and writes the image twice instead of seven times. q − m² loses digits if |m| is much larger than the
// deviation: at 30 times, the relative error of the result is about 3·10⁻⁵. See affine.build for the statistics of the channels.
//
// A SiLU that follows is a quotient of polynomials, see silu: OpenVINO's sigmoid takes twice as long as the rest of the normalisation.
// A model with normalisations also has its mixes of colours rewritten, see mix, which do not count.
//
// Shapes inside a graph are unknown. The form implies them for exports of PyTorch; a caller compares the two models once.
func (m *Model) FuseGroupNorm() (*Model, int) {
	f := newFuser(m, m.outline(), m.assumedFacts())
	f.fuseAll((*affine).build, 1)
	if f.count == 0 {
		return m, 0
	}
	for _, n := range m.proto.Graph.Node {
		if n.Domain == "" && n.OpType == "Conv" {
			f.mix(n)
		}
	}
	return f.result(), f.count
}

// outline returns the model's graph without its nodes.
func (m *Model) outline() *onnxpb.GraphProto {
	g := m.proto.Graph
	return &onnxpb.GraphProto{Name: g.Name, Initializer: slices.Clone(g.Initializer), Input: g.Input, Output: g.Output}
}

// with returns the model with another graph.
func (m *Model) withGraph(g *onnxpb.GraphProto) *Model {
	return &Model{proto: &onnxpb.ModelProto{
		IrVersion: m.proto.IrVersion, OpsetImport: m.proto.OpsetImport, MetadataProps: m.proto.MetadataProps, Graph: g,
	}}
}

// result returns the model with its replaced nodes.
func (f *fuser) result() *Model {
	for _, n := range f.model.proto.Graph.Node {
		if r, ok := f.replaced[n]; ok {
			f.graph.Node = append(f.graph.Node, r...)
		} else if !f.dropped[n] {
			f.graph.Node = append(f.graph.Node, n)
		}
	}
	return f.model.withGraph(f.graph)
}

// fuser indexes the producer and the consumers of each value of a graph.
type fuser struct {
	model     *Model             // the source
	graph     *onnxpb.GraphProto // of the result
	producers map[string]*onnxpb.NodeProto
	consumers map[string][]*onnxpb.NodeProto
	consts    map[string]*onnxpb.TensorProto
	image     map[string]bool // values that depend on the image input, not on its shape alone
	shapes    *infer.Facts    // of the source; nil for a rewrite that needs none
	dropped   map[*onnxpb.NodeProto]bool
	replaced  map[*onnxpb.NodeProto][]*onnxpb.NodeProto
	count     int

	write func(a *affine, x, out string, epsilon float32) []*onnxpb.NodeProto // replaces a normalisation
	least int                                                                 // dimensions of its image behind the channel
}

func newFuser(m *Model, result *onnxpb.GraphProto, shapes *infer.Facts) *fuser {
	f := &fuser{
		model: m, graph: result, shapes: shapes, producers: map[string]*onnxpb.NodeProto{},
		consumers: map[string][]*onnxpb.NodeProto{}, consts: map[string]*onnxpb.TensorProto{}, image: map[string]bool{},
		dropped: map[*onnxpb.NodeProto]bool{}, replaced: map[*onnxpb.NodeProto][]*onnxpb.NodeProto{},
	}
	for _, t := range m.proto.Graph.Initializer {
		f.consts[t.Name] = t
	}
	for _, p := range m.Inputs() {
		f.image[p.Name] = len(p.Dims) == 4
	}
	for _, n := range m.proto.Graph.Node {
		for _, in := range slices.Concat(n.Input, Captured(n)) {
			f.consumers[in] = append(f.consumers[in], n)
		}
		for _, out := range n.Output {
			f.producers[out] = n
			for _, in := range slices.Concat(n.Input, Captured(n)) {
				f.image[out] = f.image[out] || f.image[in] && n.OpType != "Shape" && n.OpType != "Size"
			}
			if n.OpType == "Constant" && len(n.Attribute) == 1 && n.Attribute[0].T != nil {
				f.consts[out] = n.Attribute[0].T
			}
		}
	}
	// Outputs of the graph must stay.
	for _, p := range m.Outputs() {
		f.consumers[p.Name] = append(f.consumers[p.Name], nil)
	}
	return f
}

// next returns the only consumer of a value if it is an operation of the given kind, else nil.
func (f *fuser) next(value, op string) *onnxpb.NodeProto {
	r := f.consumers[value]
	if len(r) != 1 || r[0] == nil || r[0].OpType != op || !infer.Standard(r[0]) || len(r[0].Output) != 1 {
		return nil
	}
	return r[0]
}

// other returns the other input of a binary node.
func other(n *onnxpb.NodeProto, value string) string {
	if n.Input[0] == value {
		return n.Input[1]
	}
	return n.Input[0]
}

// channels returns the elements of a float constant of one value per channel, with shape [C, 1, ...] or [1, C, 1, ...],
// and the number of dimensions of the image behind the channel: two, or one in attention blocks.
func (f *fuser) channels(name string) (values []float32, spatial int) {
	t, ok := f.consts[name]
	if !ok {
		return nil, 0
	}
	dims := t.Dims
	if len(dims) > 1 && dims[0] == 1 && dims[1] > 1 {
		dims = dims[1:]
	}
	values, spatial = f.floats(name), len(dims)-1
	if len(values) < 2 || spatial < f.least || spatial > 2 || dims[0] != int64(len(values)) {
		return nil, 0
	}
	return values, spatial
}

// toGroups reports whether a reshape gives the shape [batch, groups, rest], as far as the graph states it.
func (f *fuser) toGroups(reshape *onnxpb.NodeProto, groups int) bool {
	if _, ok := f.consts[reshape.Input[1]]; !ok {
		return true // computed
	}
	dims := f.integers(reshape.Input[1])
	return len(dims) >= 3 && dims[1] == groups && dims[0] != -1
}

func all(x []float32, want float32) bool {
	for _, v := range x {
		if v != want {
			return false
		}
	}
	return len(x) > 0
}

// fuseAll rewrites all normalisations of images with at least so many dimensions behind the channel. write returns what replaces one.
func (f *fuser) fuseAll(write func(a *affine, x, out string, epsilon float32) []*onnxpb.NodeProto, least int) {
	f.write, f.least = write, least
	for _, n := range f.model.proto.Graph.Node {
		switch {
		case n.Domain != "":
		case n.OpType == "InstanceNormalization":
			f.fuse(n)
		case n.OpType == "GroupNormalization":
			f.fuseNode(n)
		}
	}
}

// fuse rewrites one normalisation if its surroundings match PyTorch's export form.
func (f *fuser) fuse(norm *onnxpb.NodeProto) {
	groups, zero := f.floats(norm.Input[1]), f.floats(norm.Input[2])
	split := f.producers[norm.Input[0]]
	merge := f.next(norm.Output[0], "Reshape")
	if !all(groups, 1) || !all(zero, 0) || split == nil || split.OpType != "Reshape" || !infer.Standard(split) || merge == nil ||
		len(f.consumers[split.Output[0]]) != 1 || !f.toGroups(split, len(groups)) {
		return
	}
	scale := f.next(merge.Output[0], "Mul")
	if scale == nil {
		return
	}
	shift := f.next(scale.Output[0], "Add")
	if shift == nil {
		return
	}
	gamma, spatial := f.channels(other(scale, merge.Output[0]))
	beta, same := f.channels(other(shift, scale.Output[0]))
	if len(gamma) == 0 || len(gamma) != len(beta) || spatial != same || len(gamma)%len(groups) != 0 {
		return
	}
	g := affine{
		f: f, prefix: fmt.Sprintf("groupnorm_%d_", f.count), groups: len(groups), spatial: spatial, gamma: gamma, beta: beta,
	}
	for _, n := range []*onnxpb.NodeProto{split, norm, merge, scale, shift} {
		f.dropped[n] = true
	}
	f.replace(g, split.Input[0], norm, shift)
}

// replace rewrites the normalisation of x whose last node is last, with a scale and a shift behind it that depend on the time only. A normalisation that
// itself depends on the time only keeps what is behind it.
func (f *fuser) replace(g affine, x string, norm, last *onnxpb.NodeProto) {
	if s := f.next(last.Output[0], "Mul"); f.image[x] && f.byTime(g, s, last.Output[0]) {
		if t := f.next(s.Output[0], "Add"); f.byTime(g, t, s.Output[0]) {
			g.scale, g.shift = other(s, last.Output[0]), other(t, s.Output[0])
			last = t
			f.dropped[s] = true
		}
	}
	epsilon := float32(1e-5)
	for _, a := range norm.Attribute {
		if a.Name == "epsilon" {
			epsilon = a.F
		}
	}
	f.replaced[last] = f.write(&g, x, last.Output[0], epsilon)
	f.count++
}

// byTime reports whether a binary node, which may be nil, combines a value with one that depends on the time only and, as far as the graph states it, has
// one number per channel or fewer. A node that belongs to another normalisation does not count.
func (f *fuser) byTime(g affine, n *onnxpb.NodeProto, value string) bool {
	if n == nil || len(n.Input) != 2 || f.dropped[n] || f.replaced[n] != nil || f.image[other(n, value)] {
		return false
	}
	by, dims := other(n, value), g.spatial+2
	t, ok := f.consts[by]
	if !ok {
		return f.rank(by) <= dims
	}
	for i, d := range t.Dims {
		if i += dims - len(t.Dims); d != 1 && i != 0 && (i != 1 || d != int64(len(g.gamma))) {
			return false
		}
	}
	return true
}

// affine builds the replacement of one normalisation.
type affine struct {
	f            *fuser
	prefix       string
	groups       int
	spatial      int // dimensions of the image behind the channel
	gamma, beta  []float32
	scale, shift string // that depend on the time; empty: none
	nodes        []*onnxpb.NodeProto
}

func (a *affine) add(op, out string, inputs []string, attrs ...*onnxpb.AttributeProto) string {
	a.nodes = append(a.nodes, &onnxpb.NodeProto{OpType: op, Input: inputs, Output: []string{out}, Attribute: attrs})
	return out
}

func (a *affine) op(op, out string, inputs ...string) string { return a.add(op, a.prefix+out, inputs) }

func (a *affine) constant(name string, t infer.DType, raw []byte, dims ...int) string {
	name = a.prefix + name
	g := a.f.graph
	g.Initializer = append(g.Initializer, &onnxpb.TensorProto{Name: name, DataType: int32(t), Dims: infer.Int64s(dims), RawData: raw})
	return name
}

func (a *affine) floats(name string, data []float32, dims ...int) string {
	return a.constant(name, infer.Float, infer.FloatBytes(data), dims...)
}

func (a *affine) ints(name string, data ...int) string {
	return a.constant(name, infer.Int64, infer.IntBytes(data), len(data))
}

// reduce adds a reduction over dimensions, which remain with length 1.
func (a *affine) reduce(op, out, in string, axes ...int) string {
	attrs := infer.EncodeAttributes(map[string]any{"keepdims": 1})
	if a.f.model.Opset() >= 18 {
		return a.add(op, a.prefix+out, []string{in, a.ints(out+"_axes", axes...)}, attrs...)
	}
	return a.add(op, a.prefix+out, []string{in}, append(attrs, infer.EncodeAttributes(map[string]any{"axes": axes})...)...)
}

// moments returns mean and mean square of the groups of x [N, C, ...], or of other axes of its pixels, with shape [N, groups, 1]. Mean and norm are those
// of each channel; groups combine these few values. A reduction by group reshapes the image, for which OpenVINO moves the channels to the front and back; a
// reduction by channel reads channels-last images as they are, and ReduceL2 squares while it reads.
func (a *affine) moments(x, groups string, axes ...int) (mean, square string) {
	mean, norm := a.reduce("ReduceMean", "channel_mean", x, axes...), a.reduce("ReduceL2", "channel_norm", x, axes...)
	// The sizes are constants once the shapes are known. Their ratio is the number of pixels.
	pixels := a.add("Cast", a.prefix+"pixels", []string{a.op("Div", "ratio", a.op("Size", "size", x), a.op("Size", "channels", mean))},
		infer.EncodeAttributes(map[string]any{"to": int(infer.Float)})...)
	mean = a.reduce("ReduceMean", "mean", a.op("Reshape", "means", mean, groups), 2)
	norm = a.op("Reshape", "norms", norm, groups)
	return mean, a.op("Div", "square", a.reduce("ReduceMean", "total", a.op("Mul", "totals", norm, norm), 2), pixels)
}

// line returns slope and offset by group and channel, from mean and mean square of the groups, and gamma and beta.
func (a *affine) line(mean, square, gamma, beta string, epsilon float32) (slope, offset string) {
	variance := a.op("Sub", "variance", square, a.op("Mul", "mean2", mean, mean))
	// In a constant group, rounding may leave a tiny negative number.
	variance = a.op("Max", "variance0", variance, a.floats("zero", []float32{0}))
	deviation := a.op("Sqrt", "deviation", a.op("Add", "guarded", variance, a.floats("epsilon", []float32{epsilon})))
	slope = a.op("Div", "slope", gamma, deviation)
	return slope, a.op("Sub", "offset", beta, a.op("Mul", "moved", mean, slope))
}
