package gpucheck

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ddiff/restore/metric"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/prior"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
)

// compareTasks restores one photograph for each task on the CPU and on the device.
func compareTasks(ctx context.Context, s *session, r *Report) error {
	p, _, err := s.network(bundledNetwork)
	if err != nil {
		return err
	}
	var failures error
	for i, task := range s.cfg.Tasks {
		t, err := s.compareTask(ctx, p, task, s.cfg.Photographs[i%len(s.cfg.Photographs)], r)
		if err != nil {
			return fmt.Errorf("restore task %s: %w", task, err)
		}
		r.Tasks = append(r.Tasks, t)
		failures = errors.Join(failures,
			withinBound(t.StepMaxAbs, stepBound, task+": the difference after one step in float32"),
			withinBound(float64(t.GreyLevels), greyBound, task+": the difference in grey levels in float32"))
	}
	return failures
}

func (s *session) compareTask(ctx context.Context, p *prior.Prior, task, photograph string, r *Report) (t Task, err error) {
	m, err := measure(ctx, s.cpu, photograph, task, s.cfg.Size, s.cfg.Steps)
	if err != nil {
		return t, err
	}
	t = Task{Task: task, Photograph: m.name}
	want, err := m.solve(ctx, reference(s.cpu), p)
	if err != nil {
		return t, fmt.Errorf("on the CPU: %w", err)
	}
	if t.CPU, err = metric.PSNR(m.truth, want); err != nil {
		return t, err
	}
	for _, v := range s.variants {
		if v.name == fp32 {
			if t.StepMaxAbs, err = m.stepDifference(ctx, s.cpu, v, p); err != nil {
				return t, fmt.Errorf("one step: %w", err)
			}
		}
		got, err := m.solve(ctx, v, p)
		if r.unsupported(v, err) {
			continue
		}
		if err != nil {
			return t, fmt.Errorf("in %s: %w", v.name, err)
		}
		res := Result{Precision: v.name}
		if res.PSNR, err = metric.PSNR(m.truth, got); err != nil {
			return t, err
		}
		if res.PSNRToCPU, err = metric.PSNR(want, got); err != nil {
			return t, err
		}
		if v.name == fp32 {
			t.GreyLevels = greyLevels(want, got)
		}
		t.Results = append(t.Results, res)
	}
	return t, nil
}

// stepsCompared is the length of the run whose steps are compared. In a much shorter run a step is so large that it
// amplifies rounding.
const stepsCompared = 60

// stepDifference returns the largest difference of x_t and u after one step from equal states, at the beginning, the
// middle and the end of a run.
func (m measured) stepDifference(ctx context.Context, cpu *onnxruntime.Runtime, v variant, p *prior.Prior) (float64, error) {
	m.steps = stepsCompared
	var after [2][]solver.State
	for i, rt := range []*onnxruntime.Runtime{cpu, v.rt} {
		var err error
		if after[i], err = m.singleSteps(ctx, variant{fp32, rt, solver.Build{Chunk: 1}}, p); err != nil {
			return 0, err
		}
	}
	largest := 0.0
	for i, s := range after[0] {
		for k, t := range s.Tensors {
			if t.Name != "x" && t.Name != "u" {
				continue // for the curves only
			}
			largest = max(largest, maxAbs(t.Data, after[1][i].Tensors[k].Data))
		}
	}
	return largest, nil
}

// errOneStep ends a run after its first step.
var errOneStep = errors.New("one step is enough")

// singleSteps executes single steps from states as they occur on the way to the photograph.
func (m measured) singleSteps(ctx context.Context, v variant, p *prior.Prior) ([]solver.State, error) {
	s, err := v.newSolver(p, m.op, m.steps, 1)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var after []solver.State
	for _, step := range []int{0, s.Steps() / 2, s.Steps() - 1} {
		state := s.Start(m.problem.Key)
		state.Step = step
		t := (p.Schedule.Steps() - 1) * (s.Steps() - 1 - step) / (s.Steps() - 1)
		signal, noise := math.Sqrt(p.Schedule.AlphaBar[t]), math.Sqrt(1-p.Schedule.AlphaBar[t])
		for i, x := range state.Image() {
			state.Image()[i] = float32(signal*float64(m.truth.Pix[i]) + noise*float64(x))
		}
		states := []solver.State{state}
		err := s.Resume(ctx, []solver.Problem{m.problem}, states, nil, func(int) error { return errOneStep })
		if err != nil && !errors.Is(err, errOneStep) {
			return nil, err
		}
		after = append(after, states[0])
	}
	return after, nil
}

// solve restores as a worker does.
func (m measured) solve(ctx context.Context, v variant, p *prior.Prior) (*raster.Image, error) {
	s, err := v.newSolver(p, m.op, m.steps, 1)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	answers, err := s.Solve(ctx, []solver.Problem{m.problem}, nil)
	if err != nil {
		return nil, err
	}
	return &raster.Image{Channels: m.truth.Channels, Height: m.truth.Height, Width: m.truth.Width, Pix: answers[0].X}, nil
}

// greyLevels returns the largest difference of two images in 8-bit samples.
func greyLevels(x, y *raster.Image) int {
	largest := 0
	for i, v := range x.Pix {
		d := int(raster.To8(v)) - int(raster.To8(y.Pix[i]))
		largest = max(largest, d, -d)
	}
	return largest
}
