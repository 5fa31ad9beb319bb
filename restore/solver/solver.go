package solver

import (
	"context"
	"errors"
	"fmt"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
	"ddiff/restore/raster"
)

// ErrDiverged: the state is no longer finite; the step size is too large for the problem.
var ErrDiverged = errors.New("diverged")

// Problem is one image to restore.
type Problem struct {
	// Y is the measurement, of the operator's measurement shape.
	Y []float32
	// Draw is the encoded mask or kernel, nil for operators without.
	Draw []float32
	// Key draws x_T and the noise of the steps.
	Key noise.Key
}

// State is the state of one image between two steps; it is all that is needed to go on.
type State struct {
	// Step is the number of steps made.
	Step int
	// X is x_t, U the dual variable; XBefore and ZBefore are the last x and z, for the
	// curves. All have the image's shape.
	X, U, XBefore, ZBefore []float32
}

// Solution is one restored image.
type Solution struct {
	// X is the restored image; values may lie slightly outside [−1, 1].
	X []float32
	// Curves of the run, one entry per step made in this process.
	Curves Curves
}

// Curves are norms per step over one whole image, as the model computed them.
type Curves struct {
	Time                   []int
	Gamma                  []float64
	Data, Primal, Dual     []float64 // ‖y − A(z)‖, ‖x − z‖, ‖u‖ after the step
	DeltaX, DeltaZ, DeltaU []float64 // increments; the first is measured from zero
}

// Solver solves batches of one size for one operator, prior and configuration. It is used
// by one goroutine at a time.
type Solver struct {
	cfg    Config
	op     *operator.Operator
	prior  *prior.Prior
	build  Build
	n, k   int
	steps  []step
	table  [][scalars]float32
	rt     *onnx.Runtime
	in     map[string]*onnx.Tensor // what all calls read: state, y and draws
	state  []*onnx.Tensor          // x_next, u_next, x_last, z_last
	main   *call
	single *call // for the rest of a run that is no whole chunk, compiled when it is needed
}

// New builds and compiles the solver for batches of n images. Close it after use.
// onnx.ErrMemory: it does not fit, and a smaller batch may; onnx.ErrFallback: the GPU cannot
// do all of it.
func New(rt *onnx.Runtime, p *prior.Prior, op *operator.Operator, cfg Config, n int, build Build) (*Solver, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	build, err := build.Complete(rt)
	if err != nil {
		return nil, err
	}
	steps, err := plan(cfg, p.Schedule, op.Image)
	if err != nil {
		return nil, err
	}
	s := &Solver{
		cfg: cfg, op: op, prior: p, build: build, n: n, k: min(build.Chunk, len(steps)), steps: steps, rt: rt,
		in: map[string]*onnx.Tensor{},
	}
	for _, st := range steps {
		s.table = append(s.table, st.coefficients(cfg.Method, p.Card.Prediction))
	}
	if s.main, err = s.compile(build.Form, s.k); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Batch is the number of images that are solved together.
func (s *Solver) Batch() int { return s.n }

// Steps is the number of steps of a run.
func (s *Solver) Steps() int { return len(s.steps) }

// Build is how the solver was compiled, with nothing left out; Chunk is at most Steps.
func (s *Solver) Build() Build {
	b := s.build
	b.Chunk = s.k
	return b
}

// Close releases the runtime's memory.
func (s *Solver) Close() error {
	for _, t := range s.in {
		t.Close()
	}
	onnx.CloseTensors(s.state)
	return errors.Join(s.main.close(), s.single.close())
}

// Start is the state before the first step: x_T from the key's noise, the rest zero.
func (s *Solver) Start(key noise.Key) State {
	m := s.op.Image.Size()
	st := State{X: make([]float32, m), U: make([]float32, m), XBefore: make([]float32, m), ZBefore: make([]float32, m)}
	noise.Normal(st.X, key, noise.Start, 0, 1)
	return st
}

// Solve restores up to Batch problems from their starts. After every chunk progress, if not
// nil, is told the number of steps made; an error from it ends the run, as does the context.
func (s *Solver) Solve(ctx context.Context, problems []Problem, progress func(step int) error) ([]Solution, error) {
	states, curves := make([]State, len(problems)), make([]Curves, len(problems))
	for i, p := range problems {
		states[i] = s.Start(p.Key)
	}
	if err := s.Resume(ctx, problems, states, curves, progress); err != nil {
		return nil, err
	}
	solutions := make([]Solution, len(problems))
	for i := range solutions {
		solutions[i] = Solution{X: states[i].X, Curves: curves[i]}
	}
	return solutions, nil
}

// Resume goes on from given states, which must all have made the same number of steps, to
// the end; the answer is then the X of each state. States and curves are brought up to date
// at every chunk border. There the context and an error from progress end the run, and what
// was reached can be kept and resumed.
func (s *Solver) Resume(ctx context.Context, problems []Problem, states []State, curves []Curves, progress func(step int) error) error {
	if err := s.load(problems, states); err != nil {
		return err
	}
	first := states[0].Step
	ahead := s.drawAhead(problems, first)
	defer ahead.stop()
	for at := first; at < len(s.steps); at += s.k {
		count := min(s.k, len(s.steps)-at)
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.run(ctx, at, count, ahead.next(), curves); err != nil {
			return fmt.Errorf("steps %d to %d: %w", at+1, at+count, err)
		}
		s.unload(states, at+count)
		for i := range states {
			if _, ok := raster.Finite(states[i].X); !ok {
				return fmt.Errorf("steps %d to %d: image %d of the batch: %w: the step size gamma0 %g is too large", at+1, at+count, i+1, ErrDiverged, s.cfg.Gamma0)
			}
		}
		if progress != nil {
			if err := progress(at + count); err != nil {
				return err
			}
		}
	}
	return nil
}

// load checks the problems and copies them and the states to the model's inputs. Places of
// the batch that are not used repeat the first problem.
func (s *Solver) load(problems []Problem, states []State) error {
	if len(problems) == 0 || len(problems) > s.n || len(states) != len(problems) {
		return fmt.Errorf("solve: %d problems and %d states for a batch of %d", len(problems), len(states), s.n)
	}
	for i := range s.n {
		j := i
		if j >= len(problems) {
			j = 0
		}
		if states[j].Step != states[0].Step {
			return fmt.Errorf("solve: states after %d and %d steps in one batch", states[0].Step, states[j].Step)
		}
		for _, part := range []struct {
			name string
			data []float32
		}{
			{"x", states[j].X}, {"u", states[j].U}, {"x_before", states[j].XBefore}, {"z_before", states[j].ZBefore},
			{"y", problems[j].Y}, {"draws", problems[j].Draw},
		} {
			t, ok := s.in[part.name]
			if !ok {
				continue
			}
			size := len(t.F32) / s.n
			if len(part.data) != size {
				return fmt.Errorf("solve: problem %d: %s has %d elements, want %d", j+1, part.name, len(part.data), size)
			}
			copy(t.F32[i*size:], part.data)
		}
	}
	return nil
}

// record appends the norms of one image.
func (s *Solver) record(c *Curves, at, count int, norm func(curve, step int) float64) {
	for j := range count {
		c.Time = append(c.Time, s.steps[at+j].t)
		c.Gamma = append(c.Gamma, s.steps[at+j].gamma)
		c.Data = append(c.Data, norm(0, j))
		c.Primal = append(c.Primal, norm(1, j))
		c.Dual = append(c.Dual, norm(2, j))
		c.DeltaX = append(c.DeltaX, norm(3, j))
		c.DeltaZ = append(c.DeltaZ, norm(4, j))
		// u grows by x − z where there is a dual variable, and stays 0 elsewhere.
		deltaU := 0.0
		if s.cfg.Method.dual() {
			deltaU = norm(1, j)
		}
		c.DeltaU = append(c.DeltaU, deltaU)
	}
}

// unload copies the state after a chunk.
func (s *Solver) unload(states []State, made int) {
	m := s.op.Image.Size()
	for i := range states {
		st := &states[i]
		st.Step = made
		for k, dst := range [][]float32{st.X, st.U, st.XBefore, st.ZBefore} {
			copy(dst, s.state[k].F32[i*m:(i+1)*m])
		}
	}
}
