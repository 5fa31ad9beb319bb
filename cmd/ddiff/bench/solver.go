package bench

import (
	"context"
	"time"

	"ddiff/internal/cli/embedded"
	"ddiff/restore"
	"ddiff/restore/method"
	"ddiff/restore/noise"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
	"ddiff/restore/solver"
)

// plan returns the plan of a task. Campaigns use the solver that is compiled for it.
func (o benchOptions) plan(e embedded.Machine, task string, precision onnxruntime.Precision) (restore.Plan, error) {
	sigma := 0.05
	settings, err := method.Builtin().Resolve(method.Request{
		Method: "ddiff", Preset: "gradient", Task: task, Sigma: &sigma, Steps: o.steps,
	}, e.Prior.Schedule.Steps())
	if err != nil {
		return restore.Plan{}, err
	}
	params, err := operator.Builtin().Parameters(task, nil)
	return restore.Plan{
		Task: task, Params: params, Solver: settings, Precision: precision,
		Image: operator.Shape{Channels: e.Prior.Card.Channels, Height: o.size, Width: o.size},
	}, err
}

// timeSolver returns the milliseconds of a step of the solver alone, for a batch of n without a queue, storage, scores and pictures. It is
// the median over the calls of a run but the first, unless that one makes all steps; ddiff_torch.bench measures PyTorch in this way.
func (o benchOptions) timeSolver(ctx context.Context, on *station, precision onnxruntime.Precision) (float64, error) {
	e, n := on.machine, on.batch
	plan, err := o.plan(e, on.name, precision)
	if err != nil {
		return 0, err
	}
	s, err := e.Engine.Solver(plan, n)
	if err != nil {
		return 0, err
	}
	op, err := e.Engine.Operator(plan)
	if err != nil {
		return 0, err
	}
	var problems []solver.Problem
	for i := range n {
		key := noise.Key{uint32(i)}
		p := solver.Problem{Y: make([]float32, op.MeasurementSize()), Key: key}
		noise.Normal(p.Y, key, noise.Operator, 0, 0.5)
		if p.Draw, err = op.Encode(op.Draw(key)); err != nil {
			return 0, err
		}
		problems = append(problems, p)
	}
	ends, steps := []time.Time{time.Now()}, []int{0} // of calls
	_, err = s.Solve(ctx, problems, func(step int) error {
		ends, steps = append(ends, time.Now()), append(steps, step)
		return nil
	})
	if err != nil {
		return 0, err
	}
	if len(ends) > 2 {
		ends, steps = ends[1:], steps[1:]
	}
	var sample []float64
	for i := range ends[1:] {
		sample = append(sample, ends[i+1].Sub(ends[i]).Seconds()*1000/float64(steps[i+1]-steps[i]))
	}
	return spreadOf(sample).median, nil
}
