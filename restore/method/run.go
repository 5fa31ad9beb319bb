package method

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
	"ddiff/restore/tile"
)

// Run is a method with settings, planned for one prior and operator.
type Run struct {
	Info     Info
	Settings Settings
	Steps    []Step
	Prior    *prior.Prior
	Operator *operator.Operator

	method  Method
	columns map[string]column
	width   int
	rows    [][]float32
	grid    *tile.Grid
	counts  []int // tensors of each draw, 0 for one without Draw.Count
	cost    func() (Cost, error)
}

// NewRun checks the settings and plans the steps. The error wraps ErrSetting for wrong settings.
func NewRun(m Method, s Settings, p *prior.Prior, op *operator.Operator) (*Run, error) {
	r := &Run{Info: m.Info(), Settings: s, Prior: p, Operator: op, method: m}
	if err := r.Info.check(); err != nil {
		return nil, fmt.Errorf("method %q: %w", r.Info.Name, err)
	}
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
	for _, c := range r.Info.Curves {
		if _, ok := r.Steps[0].Scalars[c.Scalar]; c.Scalar != "" && !ok {
			return nil, fmt.Errorf("method %s: curve %q: no scalar %q", r.Info.Name, c.Name, c.Scalar)
		}
	}
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

// Build adds one step to a graph. The next state and the computed curves are in declared order. It returns an error for a
// tensor or curve that is missing, not declared or of a wrong shape.
func (r *Run) Build(g *onnx.Graph, in Inputs) (state, curves []onnx.Value, err error) {
	state, curves, _, err = r.buildStep(g, in)
	return state, curves, err
}

// buildStep is Build, and returns the costs of the step by the flags of [Builder.When].
func (r *Run) buildStep(g *onnx.Graph, in Inputs) (state, curves []onnx.Value, costs map[string]Cost, err error) {
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case failure:
			state, curves, costs, err = nil, nil, nil, fault.error
		default:
			panic(fault)
		}
	}()
	b := &Builder{Graph: g, run: r, in: in, tally: &tally{costs: map[string]Cost{}}, times: 1}
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
		state = append(state, named("state tensor", t.Name, next.State, in.State[i].Dims))
	}
	for _, name := range r.Computed() {
		curves = append(curves, named("curve", name, next.Curves, in.State[0].Dims[:1]))
	}
	if len(next.State) != len(state) || len(next.Curves) != len(curves) {
		b.fail("the step returns undeclared tensors or curves")
	}
	return state, curves, b.tally.costs, nil
}
