package infer

import (
	"fmt"
	"slices"

	"ddiff/internal/failure"
	"ddiff/internal/restore/onnx/onnxpb"
)

// ErrShape: the type and dimensions of a value do not follow from those of the inputs.
var ErrShape = failure.New(failure.Prior, "shape is unknown")

// Limits for files of strangers, far above those of networks.
const (
	// mostPending limits the nodes that are inferred, and the values that are evaluated, inside each other: a goroutine that needs too
	// much stack ends the process.
	mostPending = 20_000
	// mostDims limits the dimensions of a value, which a Gather can double.
	mostDims = 64
	// mostElements limits the elements of all values of a graph that are evaluated.
	mostElements = 64 * largestLiteral
)

// Facts index what a graph knows of its values. Those of inlined nodes are inferred when a gradient needs them.
type Facts struct {
	outer     *Facts                         // of the graph around it, else nil
	nodes     map[string]*Node               // understood nodes by output
	types     map[string]Value               // known types by name
	claims    map[string]Value               // types that callers of Inline state for outputs
	tensors   map[string]*onnxpb.TensorProto // initializers by name
	producers map[string]*onnxpb.NodeProto   // nodes by output
	literals  map[string]*Literal            // evaluated values by name; nil: depends on data
	pending   map[*onnxpb.NodeProto]bool     // nodes being inferred
	failed    map[*onnxpb.NodeProto]error    // nodes that are not understood, with what the graph has
	depth     int                            // of the literals being evaluated
	elements  int                            // of the literals so far

	inferenceOf func(op string) inference // a field, because inferences look up values
}

// NewFacts knows nothing yet. outer has the facts of the graph around it, or is nil.
func NewFacts(outer *Facts) *Facts {
	return &Facts{
		outer: outer,
		nodes: map[string]*Node{}, types: map[string]Value{}, claims: map[string]Value{}, tensors: map[string]*onnxpb.TensorProto{},
		producers: map[string]*onnxpb.NodeProto{}, literals: map[string]*Literal{}, pending: map[*onnxpb.NodeProto]bool{},
		failed:      map[*onnxpb.NodeProto]error{},
		inferenceOf: inferenceOf,
	}
}

// Declare records the type of a value.
func (f *Facts) Declare(v Value) {
	f.types[v.Name] = v
	clear(f.failed)
}

// Claim records the type that a caller states for an output of an inlined model. Its dimensions may be free.
func (f *Facts) Claim(v Value) {
	f.claims[v.Name] = v
	clear(f.failed)
}

// Store records a constant under its name.
func (f *Facts) Store(t *onnxpb.TensorProto) {
	f.tensors[t.Name] = t
	clear(f.failed)
}

// Produce records which values a node computes.
func (f *Facts) Produce(n *onnxpb.NodeProto) {
	clear(f.failed)
	for _, out := range n.Output {
		if out != "" {
			f.producers[out] = n
		}
	}
}

// Record records a node whose types are known.
func (f *Facts) Record(n *Node) {
	for _, out := range n.Outputs {
		if out.Name != "" {
			f.nodes[out.Name] = n
		}
	}
}

// Producer returns the node that computes a value, in the graph or one around it. It returns nil for inputs and constants.
func (f *Facts) Producer(name string) *onnxpb.NodeProto {
	n, _ := f.find(name)
	return n
}

// find returns the node that computes a value, and its graph: f or one around it.
func (f *Facts) find(name string) (*onnxpb.NodeProto, *Facts) {
	for ; f != nil; f = f.outer {
		if n := f.producers[name]; n != nil {
			return n, f
		}
	}
	return nil, nil
}

// TypeOf returns the type and dimensions of a value of g or a graph around it.
func (f *Facts) TypeOf(name string) (Value, error) {
	for at := f; at != nil; at = at.outer {
		if v, ok := at.types[name]; ok {
			return v, nil
		}
		if t := at.tensors[name]; t != nil {
			return Value{Name: name, DType: DType(t.DataType), Dims: Ints(t.Dims)}, nil
		}
	}
	p, at := f.find(name)
	if p == nil {
		return Value{}, fmt.Errorf("value %q: %w: nothing defines it", name, ErrShape)
	}
	if _, err := at.Understand(p); err != nil {
		return Value{}, err
	}
	return at.types[name], nil
}

// Understand returns the record of a node, with the types of its inputs and outputs.
func (f *Facts) Understand(p *onnxpb.NodeProto) (*Node, error) {
	i := slices.IndexFunc(p.Output, func(out string) bool { return out != "" })
	_, f = f.find(p.Output[i])
	if n := f.nodes[p.Output[i]]; n != nil {
		return n, nil
	}
	if err := f.failed[p]; err != nil {
		return nil, err
	}
	n, err := f.understand(p)
	if err != nil {
		f.failed[p] = err
	}
	return n, err
}

// understand is Understand for a node of f itself that has no record.
func (f *Facts) understand(p *onnxpb.NodeProto) (*Node, error) {
	fail := func(err error) error { return fmt.Errorf("infer shape of %s %q: %w", p.OpType, NodeName(p), err) }
	switch {
	case f.pending[p]:
		return nil, fail(fmt.Errorf("%w: its inputs depend on its output", ErrShape))
	case len(f.pending) >= mostPending:
		return nil, fail(fmt.Errorf("%w: it depends on more than %d nodes that are not in order", ErrShape, mostPending))
	}
	infer := f.inferenceOf(p.OpType)
	if infer == nil || !Standard(p) {
		return nil, fail(ErrShape)
	}
	f.pending[p] = true
	defer delete(f.pending, p)
	n := &Node{Op: p.OpType, Name: NodeName(p), Attrs: DecodeAttributes(p.Attribute), Outputs: make([]Value, len(p.Output))}
	for _, in := range p.Input {
		var v Value
		if in != "" {
			var err error
			if v, err = f.TypeOf(in); err != nil {
				return nil, err
			}
			if len(v.Dims) > mostDims {
				return nil, fail(fmt.Errorf("%w: value %q has more than %d dimensions", ErrShape, in, mostDims))
			}
			if slices.ContainsFunc(v.Dims, func(d int) bool { return d < 0 }) {
				return nil, fail(fmt.Errorf("%w: value %q has a free dimension", ErrShape, in))
			}
		}
		n.Inputs = append(n.Inputs, v)
	}
	for i, out := range p.Output {
		n.Outputs[i].Name = out
	}
	if err := guarded(infer, f, n); err != nil {
		return nil, fail(err)
	}
	for _, v := range n.Outputs {
		if v.Name == "" {
			continue
		}
		if c, ok := f.claims[v.Name]; ok && !slices.Contains(c.Dims, -1) && !slices.Equal(c.Dims, v.Dims) {
			return nil, fail(fmt.Errorf("%w: its output has dimensions %v, not %v", ErrShape, v.Dims, c.Dims))
		}
		f.types[v.Name] = v
		f.nodes[v.Name] = n
	}
	return n, nil
}

// Infer sets the types and dimensions of a built node's outputs from those of its inputs, which may be free where the operation allows it.
func (f *Facts) Infer(n *Node) error {
	infer := f.inferenceOf(n.Op)
	if infer == nil {
		return ErrShape
	}
	return recovered(infer, f, n)
}

// recovered turns a fault of a node, such as an axis outside its input, into an error.
func recovered(infer inference, f *Facts, n *Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: the inputs do not fit: %v", ErrShape, r)
		}
	}()
	return infer(f, n)
}

// guarded is recovered for a node whose outputs have fixed dimensions.
func guarded(infer inference, f *Facts, n *Node) error {
	if err := recovered(infer, f, n); err != nil {
		return err
	}
	for _, v := range n.Outputs {
		if len(v.Dims) > mostDims {
			return fmt.Errorf("%w: an output has more than %d dimensions", ErrShape, mostDims)
		}
		if slices.ContainsFunc(v.Dims, func(d int) bool { return d < 0 }) {
			return fmt.Errorf("%w: the inputs do not fit: an output of %v", ErrShape, v.Dims)
		}
	}
	return nil
}

// An inference sets the types and dimensions of n's outputs from its inputs.
type inference func(f *Facts, n *Node) error

// inferenceOf returns the inference of an operation, nil for none.
func inferenceOf(op string) inference {
	for _, family := range []map[string]inference{elementwiseShapes, movedShapes, reducedShapes, networkShapes, sourceShapes} {
		if f := family[op]; f != nil {
			return f
		}
	}
	return nil
}

// set records the type of output i, if the node has it.
func (n *Node) set(i int, t DType, dims []int) {
	if i < len(n.Outputs) {
		n.Outputs[i].DType, n.Outputs[i].Dims = t, dims
	}
}

// returns records the type of the first output. It returns nil, as the inferences do that it ends.
func (n *Node) returns(t DType, dims []int) error {
	n.set(0, t, dims)
	return nil
}

// alone returns ErrShape if the node has an output beside the first.
func (n *Node) alone() error {
	if slices.ContainsFunc(n.Outputs[1:], func(v Value) bool { return v.Name != "" }) {
		return unknown("a further output")
	}
	return nil
}

// axesOf returns the axes of n from its second input or from the attribute, in [0, rank) and in order. ok is false if they depend
// on data; without any, axes is nil.
func (f *Facts) axesOf(n *Node, rank int) (axes []int, ok bool) {
	given := n.Integers("axes")
	if n.Has(1) {
		if given, ok = f.IntegersOf(n.Inputs[1]); !ok {
			return nil, false
		}
	}
	for _, a := range given {
		axes = append(axes, Axis(a, rank))
	}
	slices.Sort(axes)
	return axes, true
}

// unknown returns ErrShape for a shape that depends on data.
func unknown(part string) error { return fmt.Errorf("%w: %s depends on data", ErrShape, part) }

// misfit returns ErrShape for inputs that do not fit.
func misfit(n *Node) error {
	dims := make([][]int, len(n.Inputs))
	for i, in := range n.Inputs {
		dims[i] = in.Dims
	}
	return fmt.Errorf("%w: inputs %v do not fit", ErrShape, dims)
}
