package gpuworker

import (
	"context"
	"fmt"

	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
)

// Stored holds the arrays beside a result, which replace the item's files. The caller has verified their digests.
type Stored struct {
	// Measurement is measurement.npy.
	Measurement []byte
	// Draw is mask.npy or kernel.npy. It is used when the item names a mask or a kernel; a random one is drawn again.
	Draw []byte
}

// Recomputed is the result of Recompute.
type Recomputed struct {
	// Image is the restored image.
	Image *raster.Image
	// Metrics are its scores. Without a ground truth only the residual is set.
	Metrics manifest.Metrics
	// Artifacts maps the names of the files that a worker would write, except for image and result, to their SHA-256.
	Artifacts map[string]string
}

// Recompute restores one item in the same way as a worker, alone in its batch, and writes nothing. It reads the item's
// files from the sources and verifies their digests. With stored arrays it reads no files, and there is no ground truth.
// The engine's prior must be the item's; own has the item's operator file, if it names one. Recompute computes the identity
// again: it does not compare it with the item's.
func Recompute(
	ctx context.Context, engine *restore.Engine, from sources, item manifest.Item, stored *Stored, own ...*operator.File,
) (*Recomputed, error) {
	if err := item.Identify(); err != nil {
		return nil, err
	}
	s, t := loader{engine: engine, sources: from, memory: solveMemory(machineMemory(), DefaultSolveShare), operators: map[string]*operator.File{}}, &task{item: item}
	for _, f := range own {
		s.operators[f.SHA256] = f
	}
	if err := s.load(ctx, t, stored); err != nil {
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
	t.matchPicture()
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
		out.Artifacts[f.name] = regular.SHA256(f.data)
	}
	return out, nil
}

// load prepares an item for the solver.
func (s loader) load(ctx context.Context, t *task, stored *Stored) error {
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
		t.draw, err = operator.ReadDraw(drawKernel, stored.Draw)
	case t.item.Mask != nil:
		t.draw, err = operator.ReadDraw(drawMask, stored.Draw)
	}
	if err != nil {
		return fmt.Errorf("read stored mask or kernel: %w", err)
	}
	if err := t.encodeDraw(); err != nil {
		return err
	}
	return t.readArray(manifest.FileData, stored.Measurement)
}
