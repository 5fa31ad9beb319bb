package onnx

import (
	"errors"
	"fmt"
	"slices"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
)

// ErrDivide: a graph evaluates its network where only one session can compute it: in a loop, or differentiated.
var ErrDivide = errors.New("the network cannot be computed on its own in a step")

// networkOp is the node of an evaluation. It has no gradient, and no file contains it.
const networkOp = "Network"

// evaluation is one evaluation of a network by another session.
type evaluation struct {
	x, t, y Value
}

// Divide makes Evaluate possible: other sessions compute the score network, see Runtime.Divides and Stages.
func (g *Graph) Divide(on bool) { g.divided = on }

// Divided reports whether other sessions compute the score network.
func (g *Graph) Divided() bool { return g.divided }

// Evaluate adds an evaluation of the score network at x and the time index t, int64 [1], that another session computes. dims
// are the dimensions of its output. It returns ErrDivide in a sub-graph. Gradient through the evaluation returns ErrNoGradient.
func (g *Graph) Evaluate(x, t Value, dims []int) (Value, error) {
	if g.outer != nil {
		return Value{}, fmt.Errorf("%w: it is inside a loop", ErrDivide)
	}
	y := g.Apply(networkOp, Float, dims, nil, x, t)
	g.evaluations = append(g.evaluations, evaluation{x, t, y})
	return y, nil
}

// Stage is one part of a divided graph, a model of its own.
type Stage struct {
	Model []byte
	// Inputs are inputs of the graph, and the results of evaluations of earlier stages.
	Inputs []Value
	// Outputs are the arguments x and t of the evaluation that follows the stage, or those of the graph.
	Outputs []Value
}

// Stages serialises a graph: of a divided one a stage before each evaluation, in order, and the rest. Stages with a value in common
// compute it again. results are the outputs of the evaluations. A stage has no nodes and inputs that its outputs do not need, which runtimes would compute.
func (g *Graph) Stages(name string) (stages []Stage, results []Value, err error) {
	for _, e := range g.evaluations {
		results = append(results, e.y)
	}
	outputs := g.outputs
	defer func() { g.outputs = outputs }()
	for i := range len(results) + 1 {
		g.outputs = outputs
		if i < len(results) {
			g.outputs = []Value{g.identity(g.evaluations[i].x), g.identity(g.evaluations[i].t)}
		}
		p := g.proto(name)
		inputs, err := g.reduce(p, results[:i])
		if err != nil {
			return nil, nil, err
		}
		model, err := g.marshal(name, p)
		if err != nil {
			return nil, nil, err
		}
		stages = append(stages, Stage{model, inputs, g.outputs})
	}
	return stages, results, nil
}

// reduce reduces p to what its outputs need and declares the inputs that remain: inputs of the graph, and known results.
func (g *Graph) reduce(p *onnxpb.GraphProto, known []Value) ([]Value, error) {
	var outputs []string
	for _, o := range p.Output {
		outputs = append(outputs, o.Name)
	}
	given := map[string]bool{}
	for _, v := range known {
		given[v.Name] = true
	}
	part := modelfile.Reduce(p, outputs, given)
	if slices.ContainsFunc(part.Node, func(n *onnxpb.NodeProto) bool { return n.OpType == networkOp && n.Domain == "" }) {
		return nil, fmt.Errorf("%w: an evaluation needs the result of a later one", ErrDivide)
	}
	needed := map[string]bool{}
	for _, v := range part.Input {
		needed[v.Name] = true
	}
	p.Node, p.Initializer = part.Node, part.Initializer
	p.Input = nil
	var inputs []Value
	for _, v := range slices.Concat(g.inputs, known) {
		if needed[v.Name] {
			inputs = append(inputs, v)
			p.Input = append(p.Input, valueInfo(v))
		}
	}
	return inputs, nil
}
