package onnx

import (
	"errors"
	"fmt"
	"slices"

	"ddiff/restore/onnx/onnxpb"
)

// ErrShape: the type and dimensions of a value do not follow from those of the inputs.
var ErrShape = errors.New("shape is unknown")

// facts index what a graph knows of its values. Those of inlined nodes are inferred when a gradient needs them.
type facts struct {
	outer     *facts                         // of the graph around it, else nil
	nodes     map[string]*node               // understood nodes by output
	types     map[string]Value               // known types by name
	claims    map[string]Value               // types that callers of Inline state for outputs
	tensors   map[string]*onnxpb.TensorProto // initializers by name
	producers map[string]*onnxpb.NodeProto   // nodes by output
	literals  map[string]*literal            // evaluated values by name; nil: depends on data
	pending   map[*onnxpb.NodeProto]bool     // nodes being inferred

	inferenceOf func(op string) inference // a field, because inferences look up values
}

// newFacts knows nothing yet. outer has the facts of the graph around it, or is nil.
func newFacts(outer *facts) *facts {
	return &facts{
		outer: outer,
		nodes: map[string]*node{}, types: map[string]Value{}, claims: map[string]Value{}, tensors: map[string]*onnxpb.TensorProto{},
		producers: map[string]*onnxpb.NodeProto{}, literals: map[string]*literal{}, pending: map[*onnxpb.NodeProto]bool{},
		inferenceOf: inferenceOf,
	}
}

// declare records the type of a value.
func (f *facts) declare(v Value) { f.types[v.Name] = v }

// claim records the type that a caller states for an output of an inlined model. Its dimensions may be free.
func (f *facts) claim(v Value) { f.claims[v.Name] = v }

// store records a constant under its name.
func (f *facts) store(t *onnxpb.TensorProto) { f.tensors[t.Name] = t }

// produce records which values a node computes.
func (f *facts) produce(n *onnxpb.NodeProto) {
	for _, out := range n.Output {
		f.producers[out] = n
	}
}

// record records a node whose types are known.
func (f *facts) record(n *node) {
	for _, out := range n.outputs {
		if out.Name != "" {
			f.nodes[out.Name] = n
		}
	}
}

// producer returns the node that computes a value, in the graph or one around it. It returns nil for inputs and constants.
func (f *facts) producer(name string) *onnxpb.NodeProto {
	n, _ := f.find(name)
	return n
}

// find returns the node that computes a value, and its graph: f or one around it.
func (f *facts) find(name string) (*onnxpb.NodeProto, *facts) {
	for ; f != nil; f = f.outer {
		if n := f.producers[name]; n != nil {
			return n, f
		}
	}
	return nil, nil
}

// typeOf returns the type and dimensions of a value of g or a graph around it.
func (f *facts) typeOf(name string) (Value, error) {
	for at := f; at != nil; at = at.outer {
		if v, ok := at.types[name]; ok {
			return v, nil
		}
		if t := at.tensors[name]; t != nil {
			return Value{Name: name, DType: DType(t.DataType), Dims: ints(t.Dims)}, nil
		}
	}
	p, at := f.find(name)
	if p == nil {
		return Value{}, fmt.Errorf("value %q: %w: nothing defines it", name, ErrShape)
	}
	if _, err := at.understand(p); err != nil {
		return Value{}, err
	}
	return at.types[name], nil
}

// understand returns the record of a node, with the types of its inputs and outputs.
func (f *facts) understand(p *onnxpb.NodeProto) (*node, error) {
	i := slices.IndexFunc(p.Output, func(out string) bool { return out != "" })
	_, f = f.find(p.Output[i])
	if n := f.nodes[p.Output[i]]; n != nil {
		return n, nil
	}
	fail := func(err error) error { return fmt.Errorf("infer shape of %s %q: %w", p.OpType, nameOf(p), err) }
	if f.pending[p] {
		return nil, fail(fmt.Errorf("%w: its inputs depend on its output", ErrShape))
	}
	infer := f.inferenceOf(p.OpType)
	if infer == nil || !standard(p) {
		return nil, fail(ErrShape)
	}
	f.pending[p] = true
	defer delete(f.pending, p)
	n := &node{op: p.OpType, name: nameOf(p), attrs: typed(p.Attribute), outputs: make([]Value, len(p.Output))}
	for _, in := range p.Input {
		var v Value
		if in != "" {
			var err error
			if v, err = f.typeOf(in); err != nil {
				return nil, err
			}
			if slices.ContainsFunc(v.Dims, func(d int) bool { return d < 0 }) {
				return nil, fail(fmt.Errorf("%w: value %q has a free dimension", ErrShape, in))
			}
		}
		n.inputs = append(n.inputs, v)
	}
	for i, out := range p.Output {
		n.outputs[i].Name = out
	}
	if err := guarded(infer, f, n); err != nil {
		return nil, fail(err)
	}
	for _, v := range n.outputs {
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

// guarded turns a fault of a node, such as an axis outside its input, into an error.
func guarded(infer inference, f *facts, n *node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: the inputs do not fit: %v", ErrShape, r)
		}
	}()
	if err := infer(f, n); err != nil {
		return err
	}
	for _, v := range n.outputs {
		if slices.ContainsFunc(v.Dims, func(d int) bool { return d < 0 }) {
			return fmt.Errorf("%w: the inputs do not fit: an output of %v", ErrShape, v.Dims)
		}
	}
	return nil
}

// An inference sets the types and dimensions of n's outputs from its inputs.
type inference func(f *facts, n *node) error

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
func (n *node) set(i int, t DType, dims []int) {
	if i < len(n.outputs) {
		n.outputs[i].DType, n.outputs[i].Dims = t, dims
	}
}

// axesOf returns the axes of n from input k or from the attribute, in [0, rank) and in order. ok is false if they depend
// on data; without any, axes is nil.
func (f *facts) axesOf(n *node, k, rank int) (axes []int, ok bool) {
	given := n.integers("axes")
	if n.has(k) {
		if given, ok = f.integersOf(n.inputs[k]); !ok {
			return nil, false
		}
	}
	for _, a := range given {
		axes = append(axes, axis(a, rank))
	}
	slices.Sort(axes)
	return axes, true
}

// unknown returns ErrShape for a shape that depends on data.
func unknown(part string) error { return fmt.Errorf("%w: %s depends on data", ErrShape, part) }

// misfit returns ErrShape for inputs that do not fit.
func misfit(n *node) error {
	dims := make([][]int, len(n.inputs))
	for i, in := range n.inputs {
		dims[i] = in.Dims
	}
	return fmt.Errorf("%w: inputs %v do not fit", ErrShape, dims)
}
