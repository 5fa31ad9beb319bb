package gpucheck

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"

	"ddiff/internal/regular"
	"ddiff/restore/method"
	"ddiff/restore/noise"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
)

// sigma is the standard deviation of the measurement noise, the default of campaigns.
const sigma = 0.05

// measured is a photograph with its measurement.
type measured struct {
	name    string
	truth   *raster.Image
	op      *operator.Operator
	steps   int
	problem solver.Problem
}

// measure simulates the measurement of a photograph for a task. It runs on the CPU, so that CPU and device solve equal
// problems.
func measure(ctx context.Context, cpu *onnxruntime.Runtime, path, task string, size, steps int) (m measured, err error) {
	m.name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	var img *raster.Image
	data, err := regular.Read(path, raster.MaxBytes)
	if err == nil {
		img, err = raster.Decode(data)
	}
	if err == nil {
		m.truth, err = raster.Fit(img, raster.Resize, size, 8)
	}
	if err != nil {
		return m, fmt.Errorf("read photograph %s: %w", path, err)
	}
	if m.op, err = operator.Builtin().New(task, nil, operator.Shape{Channels: m.truth.Channels, Height: size, Width: size}); err != nil {
		return m, err
	}
	m.steps = steps
	m.problem.Key = noise.NewKey(sha256.Sum256([]byte("gpu-check " + m.name + " " + task)))
	if m.problem.Draw, err = m.op.Encode(m.op.Draw(m.problem.Key)); err != nil {
		return m, err
	}
	f, err := operator.NewForward(cpu, m.op)
	if err != nil {
		return m, err
	}
	defer f.Close()
	m.problem.Y, err = f.Measure(ctx, m.truth.Pix, m.problem.Draw, operator.Noise{Sigma: sigma}, m.problem.Key)
	return m, err
}

// newSolver compiles DDiff with the preset natural for batches of n images. Close it after use.
func (v variant) newSolver(p *prior.Prior, op *operator.Operator, steps, n int) (*solver.Solver, error) {
	ddiff := method.DDiff()
	request := method.Request{Method: ddiff.Info().Name, Preset: "natural", Task: op.Task, Steps: steps}
	settings, err := method.Builtin().Resolve(request, p.Schedule.Steps())
	if err != nil {
		return nil, err
	}
	run, err := method.NewRun(ddiff, settings, p, op)
	if err != nil {
		return nil, err
	}
	return solver.New(v.rt, run, n, v.build)
}
