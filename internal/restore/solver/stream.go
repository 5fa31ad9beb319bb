package solver

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
)

// newStream returns a solver that is not compiled.
func newStream(rt *onnxruntime.Runtime, run *method.Run, n int, build Build) *Solver {
	return &Solver{seed: maphash.MakeSeed(), run: run, build: build, n: n, rt: rt, in: map[string]*onnxruntime.Tensor{}}
}

// batchPart is the part of a batch whose steps one solver makes.
type batchPart struct {
	solver   *Solver
	first    int // its first image in the batch
	problems []Problem
	states   []State
	curves   []Curves
	made     int             // steps since the start
	drawing  *sync.WaitGroup // of the next step's noise
}

// divide divides a batch among the streams and loads the parts. Streams at the end may get none of a small batch.
func (s *Solver) divide(problems []Problem, states []State, curves []Curves) ([]batchPart, error) {
	if len(problems) == 0 || len(problems) > s.n || len(states) != len(problems) {
		return nil, fmt.Errorf("solve: %d problems and %d states for a batch of %d", len(problems), len(states), s.n)
	}
	for _, st := range states {
		if st.Step != states[0].Step {
			return nil, fmt.Errorf("solve: states after %d and %d steps in one batch", states[0].Step, st.Step)
		}
	}
	if curves == nil {
		curves = make([]Curves, len(problems))
	}
	streams := s.streams
	if len(streams) == 0 {
		streams = []*Solver{s}
	}
	var out []batchPart
	for first, i := 0, 0; first < len(problems); i++ {
		end := min(first+streams[i].n, len(problems))
		p := batchPart{solver: streams[i], first: first, problems: problems[first:end], states: states[first:end], curves: curves[first:end], made: states[0].Step, drawing: &sync.WaitGroup{}}
		if err := p.solver.load(p.problems, p.states, first); err != nil {
			return nil, err
		}
		out = append(out, p)
		first = end
	}
	return out, nil
}

// makeStep makes the step at.
func (p *batchPart) makeStep(ctx context.Context, at int) error {
	p.drawing.Wait()
	p.drawAhead(at + 1)
	err := p.solver.makeStep(ctx, at, p.first, p.curves)
	if err == nil {
		p.made = at + 1
	}
	return err
}

// unload copies the state after the last step. Without it, states and curves are those after the steps before first.
func (p *batchPart) unload(ctx context.Context, first int) error {
	if p.made == first {
		return nil
	}
	tensors, err := p.solver.readState(context.WithoutCancel(ctx))
	if err != nil {
		for i := range p.curves {
			p.curves[i].drop(p.made - first)
		}
		return err
	}
	return prior.Beside(len(p.states), func(i int) error {
		p.states[i].Step = p.made
		for k, t := range p.states[i].Tensors {
			copy(t.Data, tensors[k].F32[i*len(t.Data):])
		}
		return nil
	})
}
