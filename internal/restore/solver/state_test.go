package solver

import (
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// TestFits: only a state of the run's own tensors, with curves up to its step and steps left, fits.
func TestFits(t *testing.T) {
	t.Parallel()
	op, p := newOperator(t, operator.HDR, small), bundled(t)
	run := newRun(t, p, op, config(t, op.Task, 3))
	state := func(step int) State {
		st := State{Step: step}
		for i, tensor := range run.Info.State {
			n := 1
			for _, d := range run.StateDims(1)[i] {
				n *= d
			}
			st.Tensors = append(st.Tensors, Tensor{tensor.Name, make([]float32, n)})
		}
		return st
	}
	curves := func(step int) Curves {
		c := Curves{Time: make([]int, step)}
		for _, curve := range run.Info.Curves {
			c.Curves = append(c.Curves, Curve{curve.Name, make([]float64, step)})
		}
		return c
	}
	for name, c := range map[string]struct {
		state  State
		curves Curves
		want   bool
	}{
		"start":               {state(0), Curves{}, true},
		"start with curves":   {state(0), curves(0), true},
		"after two steps":     {state(2), curves(2), true},
		"end":                 {state(3), curves(3), false},
		"before the start":    {State{Step: -1, Tensors: state(0).Tensors}, Curves{}, false},
		"times missing":       {state(2), Curves{Time: make([]int, 1), Curves: curves(2).Curves}, false},
		"curves missing":      {state(2), Curves{Time: make([]int, 2)}, false},
		"curve too short":     {state(2), Curves{Time: make([]int, 2), Curves: curves(1).Curves}, false},
		"curve of other name": {state(2), func() Curves { c := curves(2); c.Curves[0].Name = "other"; return c }(), false},
		"no tensors":          {State{Step: 2}, curves(2), false},
		"tensor missing":      {State{Step: 2, Tensors: state(2).Tensors[1:]}, curves(2), false},
		"tensor too much":     {State{Step: 2, Tensors: append(state(2).Tensors, Tensor{Name: "z"})}, curves(2), false},
		"tensor too short": {func() State {
			s := state(2)
			s.Tensors[0].Data = s.Tensors[0].Data[1:]
			return s
		}(), curves(2), false},
		"tensor of other name": {func() State {
			s := state(2)
			last := len(s.Tensors) - 1
			s.Tensors[last].Name = "other"
			return s
		}(), curves(2), false},
	} {
		if got := Fits(run, c.state, c.curves); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if (State{}).Image() != nil {
		t.Error("a state without tensors has an image")
	}
	c := curves(2)
	c.Curves[0].Values[1] = 4
	if got := c.Curve(c.Curves[0].Name); !slices.Equal(got, []float64{0, 4}) {
		t.Errorf("curve %v", got)
	}
	if got := c.Curve("other"); got != nil {
		t.Errorf("unknown curve %v", got)
	}
	copied := c.Clone()
	copied.Time[0], copied.Curves[0].Values[1] = 7, 7
	if c.Time[0] != 0 || c.Curves[0].Values[1] != 4 {
		t.Error("a change of a copy changes the original")
	}
}

// TestRefusedProblems: problems and states that do not fit the solver are refused before any step.
func TestRefusedProblems(t *testing.T) {
	t.Parallel()
	op, p := newOperator(t, operator.InpaintRandom, small), bundled(t)
	s := newSolver(t, p, op, config(t, op.Task, 4), 2)
	if s.n != 2 || s.Steps() != 4 {
		t.Errorf("batch %d, %d steps", s.n, s.Steps())
	}
	good := problems(t, op, 1, 0.05)[0]
	start := func() State { return s.Start(noise.Key{1}) }
	change := func(f func(p *Problem)) Problem { p := good; f(&p); return p }
	for _, c := range []struct {
		words    string
		problems []Problem
		states   []State
	}{
		{"0 problems and 0 states for a batch of 2", nil, nil},
		{"3 problems and 3 states for a batch of 2", []Problem{good, good, good}, []State{start(), start(), start()}},
		{"1 problems and 2 states for a batch of 2", []Problem{good}, []State{start(), start()}},
		{"states after 0 and 1 steps in one batch", []Problem{good, good}, []State{start(), {Step: 1, Tensors: start().Tensors}}},
		{"problem 2: 0 state tensors, want ", []Problem{good, good}, []State{start(), {}}},
		{"problem 1: y has 5 elements, want 4608", []Problem{change(func(p *Problem) { p.Y = p.Y[:5] })}, []State{start()}},
		{"problem 1: draws has 0 elements, want 1536", []Problem{change(func(p *Problem) { p.Draw = nil })}, []State{start()}},
		{"has no state other", []Problem{good}, []State{func() State { st := start(); st.Tensors[0].Name = "other"; return st }()}},
	} {
		err := s.Resume(t.Context(), c.problems, c.states, make([]Curves, len(c.states)), nil)
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("error %v, want %q", err, c.words)
		}
	}
}

// TestUnusedPlaces: a place of the batch without a problem repeats the first one, without noise of its own.
func TestUnusedPlaces(t *testing.T) {
	t.Parallel()
	op, p := newOperator(t, operator.HDR, small), bundled(t)
	run := planRun(t, twoDraws{}, method.Settings{Method: twoDraws{}.Info().Name, Steps: 4}, p, op)
	s := compile(t, onnxtest.Runtime(t), run, 3, Build{Streams: 1})
	probs := problems(t, op, 2, 0.05)
	states := []State{s.Start(probs[0].Key), s.Start(probs[1].Key)}
	must(t, s.load(probs, states, 0))
	y, n := s.in[method.InputMeasurement].F32, len(probs[0].Y)
	for i, want := range [][]float32{probs[0].Y, probs[1].Y, probs[0].Y} {
		if !slices.Equal(y[i*n:(i+1)*n], want) {
			t.Errorf("place %d does not have its measurement", i+1)
		}
	}
	size := infer.Size(run.SpaceDims(1))
	name, noisy := s.run.Info.Draws[0].Name, 0
	for j, st := range s.run.Steps {
		buf := slices.Repeat([]float32{7}, 3*size)
		s.drawStep(buf, 0, probs, j)
		if st.Std[name] != 0 {
			noisy++
		}
		for i := range 3 {
			got := buf[i*size : (i+1)*size]
			want := make([]float32, size)
			if i < len(probs) && st.Std[name] != 0 {
				noise.Normal(want, probs[i].Key, noise.Step, uint32(st.Time), st.Std[name])
			}
			if !slices.Equal(got, want) {
				t.Errorf("step %d, place %d: wrong noise", j+1, i+1)
			}
		}
	}
	if noisy == 0 {
		t.Error("no step adds noise")
	}
}
