package gpucheck

import (
	"context"
	"errors"
	"fmt"

	"ddiff/restore/noise"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
	"ddiff/restore/solver"
)

// speedTask is the task to time. Its operator is cheap, so that the network dominates.
const speedTask = operator.SuperResolution

// measureSpeed times both networks in all precisions and batch sizes. It records a batch that does not fit into memory
// and skips larger ones.
func measureSpeed(ctx context.Context, s *session, r *Report) error {
	for _, name := range []string{bundledNetwork, randomNetwork} {
		p, size, err := s.network(name)
		if err != nil {
			return err
		}
		for _, v := range s.variants {
			for _, n := range s.cfg.Batches {
				t, err := s.timeSolver(ctx, v, p, n, size)
				if r.unsupported(v, err) {
					break
				}
				t.Network, t.Precision, t.Size, t.Batch = name, v.name, size, n
				if errors.Is(err, onnxruntime.ErrMemory) {
					t.Error = err.Error()
					r.Speed = append(r.Speed, t)
					break
				}
				if err != nil {
					return fmt.Errorf("time network %s in %s, batch %d: %w", name, v.name, n, err)
				}
				r.Speed = append(r.Speed, t)
			}
		}
	}
	return nil
}

// timeSolver times the solver and, before and after it, the network alone: the machine's speed drifts.
func (s *session) timeSolver(ctx context.Context, v variant, p *prior.Prior, n, size int) (t Speed, err error) {
	milliseconds := func(call func() error) (float64, error) { return prior.Milliseconds(1, s.cfg.Measure, call) }
	net, err := v.compile(p, n, size)
	if err != nil {
		return t, err
	}
	defer net.Close()
	run := func() error { return net.Run(ctx) }
	before, err := milliseconds(run)
	if err != nil {
		return t, err
	}
	op, err := operator.Builtin().New(speedTask, nil, operator.Shape{Channels: p.Card.Channels, Height: size, Width: size})
	if err != nil {
		return t, err
	}
	solve, err := v.newSolver(p, op, s.cfg.Steps, n)
	if err != nil {
		return t, err
	}
	defer solve.Close()
	problems := make([]solver.Problem, n)
	for i := range problems {
		problems[i] = solver.Problem{Y: make([]float32, op.MeasurementSize()), Key: noise.Key{uint32(i)}}
	}
	whole, err := milliseconds(func() error {
		_, err := solve.Solve(ctx, problems, nil)
		return err
	})
	if err != nil {
		return t, err
	}
	after, err := milliseconds(run)
	if err != nil {
		return t, err
	}
	t.NetworkMS, t.StepMS = (before+after)/2, whole/float64(solve.Steps())
	t.Share = t.NetworkMS / t.StepMS
	t.MemoryMiB, err = memoryMiB(ctx, s.cfg.device())
	return t, err
}
