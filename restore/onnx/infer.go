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
	nodes     map[string]*node               // understood nodes by output
	types     map[string]Value               // known types by name
	claims    map[string]Value               // types that callers of Inline state for outputs
	tensors   map[string]*onnxpb.TensorProto // initializers by name
	producers map[string]*onnxpb.NodeProto   // nodes by output
	literals  map[string]*literal            // evaluated values by name; nil: depends on data
	pending   map[*onnxpb.NodeProto]bool     // nodes being inferred

	inferenceOf func(op string) inference // a field, because inferences look up values
}

func newFacts() facts {
	return facts{
		nodes: map[string]*node{}, types: map[string]Value{}, claims: map[string]Value{}, tensors: map[string]*onnxpb.TensorProto{},
		producers: map[string]*onnxpb.NodeProto{}, literals: map[string]*literal{}, pending: map[*onnxpb.NodeProto]bool{},
		inferenceOf: inferenceOf,
	}
}

// producer returns the node that computes a value, and its graph: g or one around it. It returns nil for inputs and
// constants.
func (g *Graph) producer(name string) (*onnxpb.NodeProto, *Graph) {
	for ; g != nil; g = g.outer {
		if n := g.producers[name]; n != nil {
			return n, g
		}
	}
	return nil, nil
}

// typeOf returns the type and dimensions of a value of g or a graph around it.
func (g *Graph) typeOf(name string) (Value, error) {
	for at := g; at != nil; at = at.outer {
		if v, ok := at.types[name]; ok {
			return v, nil
		}
		if t := at.tensors[name]; t != nil {
			return Value{Name: name, DType: DType(t.DataType), Dims: ints(t.Dims)}, nil
		}
	}
	p, at := g.producer(name)
	if p == nil {
		return Value{}, fmt.Errorf("value %q: %w: nothing defines it", name, ErrShape)
	}
	if _, err := at.understand(p); err != nil {
		return Value{}, err
	}
	return at.types[name], nil
}

// understand returns the record of a node, with the types of its inputs and outputs.
func (g *Graph) understand(p *onnxpb.NodeProto) (*node, error) {
	i := slices.IndexFunc(p.Output, func(out string) bool { return out != "" })
	_, g = g.producer(p.Output[i])
	if n := g.nodes[p.Output[i]]; n != nil {
		return n, nil
	}
	fail := func(err error) error { return fmt.Errorf("infer shape of %s %q: %w", p.OpType, nameOf(p), err) }
	if g.pending[p] {
		return nil, fail(fmt.Errorf("%w: its inputs depend on its output", ErrShape))
	}
	infer := g.inferenceOf(p.OpType)
	if infer == nil || !standard(p) {
		return nil, fail(ErrShape)
	}
	g.pending[p] = true
	defer delete(g.pending, p)
	n := &node{op: p.OpType, name: nameOf(p), attrs: typed(p.Attribute), outputs: make([]Value, len(p.Output))}
	for _, in := range p.Input {
		var v Value
		if in != "" {
			var err error
			if v, err = g.typeOf(in); err != nil {
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
	if err := guarded(infer, g, n); err != nil {
		return nil, fail(err)
	}
	for _, v := range n.outputs {
		if v.Name == "" {
			continue
		}
		if c, ok := g.claims[v.Name]; ok && !slices.Contains(c.Dims, -1) && !slices.Equal(c.Dims, v.Dims) {
			return nil, fail(fmt.Errorf("%w: its output has dimensions %v, not %v", ErrShape, v.Dims, c.Dims))
		}
		g.types[v.Name] = v
		g.nodes[v.Name] = n
	}
	return n, nil
}

// guarded turns a fault of a node, such as an axis outside its input, into an error.
func guarded(infer inference, g *Graph, n *node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: the inputs do not fit: %v", ErrShape, r)
		}
	}()
	if err := infer(g, n); err != nil {
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
type inference func(g *Graph, n *node) error

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
func (g *Graph) axesOf(n *node, k, rank int) (axes []int, ok bool) {
	given := n.integers("axes")
	if n.has(k) {
		if given, ok = g.integersOf(n.inputs[k]); !ok {
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
