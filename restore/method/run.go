package method

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"ddiff/internal/restore/prior"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// Run is a method with settings, planned for one prior and operator.
type Run struct {
	Info     Info
	Settings Settings
	Steps    []Step
	Prior    *prior.Prior
	Operator *operator.Operator
	// Weighted: each pixel of y has a weight in the data term, an input of the steps. Set it before they are built.
	Weighted bool

	method  Method
	columns map[string]column
	width   int
	rows    [][]float32
	grid    *prior.Grid
	counts  []int // tensors of each draw, 0 for one without Draw.Count
	cost    func() (Cost, error)
}

// NewRun checks the settings and plans the steps. The error wraps ErrSetting for wrong settings.
func NewRun(m Method, s Settings, p *prior.Prior, op *operator.Operator) (*Run, error) {
	r := &Run{Info: m.Info(), Settings: s, Prior: p, Operator: op, method: m}
	if err := s.Check(r.Info, p.Schedule.Steps()); err != nil {
		return nil, err
	}
	if err := r.Info.serves(op.Definition); err != nil {
		return nil, err
	}
	if err := r.Info.Suits(&p.Card); err != nil {
		return nil, fmt.Errorf("%w method: %w", ErrSetting, err)
	}
	if err := r.Info.Admits(s, &p.Card); err != nil {
		return nil, err
	}
	var err error
	if r.Steps, err = Planned(m, s, p.Schedule, op.Image); err != nil {
		return nil, err
	}
	if len(r.Steps) == 0 || len(r.Info.State) == 0 {
		return nil, fmt.Errorf("method %s: %d steps with %d state tensors", r.Info.Name, len(r.Steps), len(r.Info.State))
	}
	if r.counts, err = r.Info.counts(s); err != nil {
		return nil, err
	}
	r.cost = sync.OnceValues(r.count)
	r.Info.Curves = slices.DeleteFunc(slices.Clone(r.Info.Curves), func(c Curve) bool {
		_, planned := r.Steps[0].Scalars[c.Scalar]
		return c.Scalar != "" && !planned
	})
	noisy := map[int]bool{}
	for i, st := range r.Steps {
		row, err := r.row(i, st)
		if err == nil && slices.ContainsFunc(slices.Collect(maps.Values(st.Std)), func(std float64) bool { return std > 0 }) {
			if noisy[st.Time] {
				err = fmt.Errorf("an earlier step adds the noise of time %d", st.Time)
			}
			noisy[st.Time] = true
		}
		if err != nil {
			return nil, fmt.Errorf("method %s: step %d: %w", r.Info.Name, i+1, err)
		}
		r.rows = append(r.rows, row)
	}
	return r, nil
}

// Row returns the planned numbers of a step as the graph reads them. All rows have the same length.
func (r *Run) Row(step int) []float32 { return r.rows[step] }

// StateDims returns the shapes of the state tensors for n images, in declared order.
func (r *Run) StateDims(n int) [][]int {
	var out [][]int
	for _, t := range r.Info.State {
		if t.Pixels != nil && t.Pixels(r.Settings) {
			out = append(out, r.Operator.Image.Dims(n))
		} else {
			out = append(out, r.SpaceDims(n))
		}
	}
	return out
}

// SpaceDims returns the shape of n images in the prior's space.
func (r *Run) SpaceDims(n int) []int { return r.Prior.Space().Dims(r.Operator.Image.Dims(n)) }

// DrawDims returns the shape of a draw for n images: that of the prior's space, after the number of tensors for a draw with
// [Draw.Count].
func (r *Run) DrawDims(draw, n int) []int {
	if c := r.counts[draw]; c > 0 {
		return append([]int{c}, r.SpaceDims(n)...)
	}
	return r.SpaceDims(n)
}

// Computed lists the curves that the graph of a step computes.
func (r *Run) Computed() []string {
	var out []string
	for _, c := range r.Info.Curves {
		if c.Scalar == "" {
			out = append(out, c.Name)
		}
	}
	return out
}

// The names of the inputs of a step, beside those of [StateInput] and [DrawInput].
const (
	InputMeasurement = "y"
	InputMask        = "draws"   // the batch of encoded masks or kernels; absent without them
	InputWeights     = "weights" // the square roots of the weights of the pixels of y, for all channels; absent unless [Run.Weighted]
	InputTime        = "time"    // the time index, int64 [1]
	InputScalars     = "scalars" // a row of [Run.Row]
)

// StateInput is the name of the input of a state tensor.
func StateInput(name string) string { return "state " + name }

// DrawInput is the name of the input of a draw, of the shape of [Run.DrawDims].
func DrawInput(name string) string { return "draw " + name }

// StepGraph is one step in a graph.
type StepGraph struct {
	// Inputs are those that the step adds to the graph.
	Inputs []onnx.Value
	// State and Curves are the next state and the computed curves, in declared order.
	State, Curves []onnx.Value

	costs map[string]Cost // by the flags of [Builder.When]
}

// Build adds one step of n images to a graph. unroll is the largest number of iterations that [Builder.Repeat] builds one after the other. Build
// returns an error for a tensor or curve that is missing, not declared or of a wrong shape.
func (r *Run) Build(g *onnx.Graph, n, unroll int) (s StepGraph, err error) {
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case graphError:
			err = fault.error
		default:
			panic(fault)
		}
	}()
	b := &Builder{Graph: g, run: r, tally: &tally{costs: map[string]Cost{}}, times: 1}
	b.in, s.Inputs = r.inputs(g, n, unroll)
	next := r.method.Step(b, r.Settings)
	// named returns a value of the step by its name.
	named := func(kind, name string, from map[string]onnx.Value, dims []int) onnx.Value {
		v, ok := from[name]
		switch {
		case !ok:
			b.fail("the step leaves out %s %q", kind, name)
		case v.DType != onnx.Float || !slices.Equal(v.Dims, dims):
			b.fail("%s %q has shape %v after the step, want float32 of shape %v", kind, name, v.Dims, dims)
		}
		return v
	}
	for i, t := range r.Info.State {
		s.State = append(s.State, named("state tensor", t.Name, next.State, b.in.state[i].Dims))
	}
	for _, name := range r.Computed() {
		s.Curves = append(s.Curves, named("curve", name, next.Curves, []int{n}))
	}
	if len(next.State) != len(s.State) || len(next.Curves) != len(s.Curves) {
		b.fail("the step returns undeclared tensors or curves")
	}
	s.costs = b.tally.costs
	return s, nil
}

// inputs adds the inputs of a step of n images to a graph.
func (r *Run) inputs(g *onnx.Graph, n, unroll int) (in inputs, all []onnx.Value) {
	input := func(name string, t onnx.DType, dims ...int) onnx.Value {
		v := g.Input(name, t, dims...)
		all = append(all, v)
		return v
	}
	in.unroll = unroll
	for i, dims := range r.StateDims(n) {
		in.state = append(in.state, input(StateInput(r.Info.State[i].Name), onnx.Float, dims...))
	}
	in.measurement = input(InputMeasurement, onnx.Float, r.Operator.ShortDims(n)...)
	if d := r.Operator.ParameterDims(n); d != nil {
		in.mask = input(InputMask, onnx.Float, d...)
	}
	if r.Weighted {
		in.weights = input(InputWeights, onnx.Float, r.Operator.WeightDims(n)...)
	}
	in.time = input(InputTime, onnx.Int64, 1)
	in.scalars = input(InputScalars, onnx.Float, r.width)
	for i, d := range r.Info.Draws {
		in.draws = append(in.draws, input(DrawInput(d.Name), onnx.Float, r.DrawDims(i, n)...))
	}
	return in, all
}
