package gpuworker

import (
	"context"
	"fmt"

	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
)

// Stored are the arrays beside a result, in place of an item's files. The caller has checked
// that they are the item's.
type Stored struct {
	// Measurement is measurement.npy.
	Measurement []byte
	// Draw is mask.npy or kernel.npy. It is used when the item names a mask or a kernel; a
	// random one is drawn again.
	Draw []byte
}

// Recomputed is an item that was restored once more.
type Recomputed struct {
	// Image is the answer.
	Image *raster.Image
	// Metrics are its scores; only the residual when there was no truth to read.
	Metrics manifest.Metrics
	// Artifacts maps the names of the files that a worker would write, other than the image
	// and the result, to their SHA-256.
	Artifacts map[string]string
}

// Recompute restores one item through the stages of a worker, alone in its batch, and writes
// nothing. Its files are read from the sources, and held against their digests; with stored
// arrays no file is read, and there is no truth. The engine's prior must be the item's.
func Recompute(ctx context.Context, engine *restore.Engine, from sources, item manifest.Item, stored *Stored) (*Recomputed, error) {
	s, t := stages{engine, from}, &task{item: item}
	if err := s.setUp(ctx, t, stored); err != nil {
		return nil, err
	}
	sv, err := engine.Solver(t.plan, 1)
	if err != nil {
		return nil, err
	}
	solutions, err := sv.Solve(ctx, []solver.Problem{t.problem}, nil)
	if err != nil {
		return nil, err
	}
	t.solution = solutions[0]
	if t.applied, err = engine.Apply(ctx, t.op, t.solution.X, t.problem.Draw); err != nil {
		return nil, err
	}
	out := &Recomputed{Image: t.restored(), Artifacts: map[string]string{}}
	if out.Metrics, err = t.score(); err != nil {
		return nil, err
	}
	files, err := t.artifacts()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		out.Artifacts[f.name] = digest(f.data)
	}
	return out, nil
}

// setUp takes an item up to the point where the device is needed.
func (s stages) setUp(ctx context.Context, t *task, stored *Stored) error {
	if err := s.plan(t); err != nil {
		return err
	}
	if stored == nil {
		if err := s.fetch(ctx, t); err != nil {
			return err
		}
		return s.measure(ctx, t)
	}
	var err error
	switch {
	case t.item.Kernel != nil:
		t.draw, err = readDraw(drawKernel, stored.Draw)
	case t.item.Mask != nil:
		t.draw, err = readDraw(drawMask, stored.Draw)
	}
	if err != nil {
		return fmt.Errorf("read stored mask or kernel: %w", err)
	}
	if err := t.encodeDraw(); err != nil {
		return err
	}
	return t.readMeasurement(manifest.FileData, stored.Measurement)
}
