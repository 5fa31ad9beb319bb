package gpucheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
	"ddiff/restore/solver"
)

// speedTask is the task that is timed: its operator is cheap, so that the network counts.
const speedTask = operator.SuperResolution

// measureSpeed times both networks in all precisions and batch sizes. A batch that does not
// fit is recorded, and larger ones are left out.
func measureSpeed(ctx context.Context, b *bench, r *Report) error {
	for _, name := range []string{bundledNetwork, randomNetwork} {
		p, size, err := b.network(name)
		if err != nil {
			return err
		}
		for _, v := range b.variants {
			for _, n := range b.cfg.Batches {
				s, err := b.timing(ctx, v, p, n, size)
				if r.lack(v, err) {
					break
				}
				s.Network, s.Precision, s.Size, s.Batch = name, v.name, size, n
				if errors.Is(err, onnx.ErrMemory) {
					s.Error = err.Error()
					r.Speed = append(r.Speed, s)
					break
				}
				if err != nil {
					return fmt.Errorf("network %s in %s, batch %d: %w", name, v.name, n, err)
				}
				r.Speed = append(r.Speed, s)
			}
		}
	}
	return nil
}

func (b *bench) timing(ctx context.Context, v variant, p *prior.Prior, n, size int) (t Speed, err error) {
	net, err := newBareNetwork(v, p, n, size)
	if err != nil {
		return t, err
	}
	defer net.close()
	once := func() error { return net.run(ctx) }
	before, err := b.milliseconds(once)
	if err != nil {
		return t, err
	}
	op, err := operator.Builtin().New(speedTask, nil, operator.Shape{Channels: p.Card.Channels, Height: size, Width: size})
	if err != nil {
		return t, err
	}
	config, err := solver.Preset(solver.PresetNatural, speedTask)
	if err != nil {
		return t, err
	}
	config.Steps = b.cfg.Steps
	s, err := solver.New(v.rt, p, op, config, n, v.build)
	if err != nil {
		return t, err
	}
	defer s.Close()
	problems := make([]solver.Problem, n)
	for i := range problems {
		problems[i] = solver.Problem{Y: make([]float32, op.MeasurementSize()), Key: noise.Key{uint32(i)}}
	}
	run, err := b.milliseconds(func() error {
		_, err := s.Solve(ctx, problems, nil)
		return err
	})
	if err != nil {
		return t, err
	}
	// A machine's speed drifts: the network is timed on both sides of the solver.
	after, err := b.milliseconds(once)
	if err != nil {
		return t, err
	}
	t.NetworkMS, t.StepMS = (before+after)/2, run/float64(s.Steps())
	t.Share = t.NetworkMS / t.StepMS
	t.BytesPerStep = bytesPerStep(op, s.Build(), n)
	t.MemoryMiB, err = b.memory(ctx)
	return t, err
}

// milliseconds of one call, after one that does not count.
func (b *bench) milliseconds(call func() error) (float64, error) {
	if err := call(); err != nil {
		return 0, err
	}
	begin, calls := time.Now(), 0
	for time.Since(begin) < b.cfg.Measure || calls == 0 {
		if err := call(); err != nil {
			return 0, err
		}
		calls++
	}
	return time.Since(begin).Seconds() * 1000 / float64(calls), nil
}

// stepRow is about what one step takes besides images: its index, scalars and norms.
const stepRow = 64

// bytesPerStep is what the tensors of a solver's call hold, for each of its steps: four state
// images each way, the measurement, and the noise of every step.
func bytesPerStep(op *operator.Operator, b solver.Build, n int) int {
	image := 4 * n * op.Image.Size()
	draws := 0
	if dims := op.ParameterDims(n); dims != nil {
		draws = 4
		for _, d := range dims {
			draws *= d
		}
	}
	call := 8*image + 4*n*op.MeasurementSize() + draws + b.Chunk*(image+stepRow)
	return call / b.Chunk
}
