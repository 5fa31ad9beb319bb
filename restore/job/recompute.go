package job

import (
	"context"
	"fmt"

	"ddiff/internal/regular"
	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/restore/operator"
	"ddiff/restore/operator/drawfile"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
)

// Stored holds the arrays beside a result, which replace the item's files. The caller has verified their digests.
type Stored struct {
	// Measurement is measurement.npy.
	Measurement []byte
	// Mask is mask.npy, Kernel is kernel.npy. They are used when the item names a mask or a kernel; a random one is drawn again.
	Mask, Kernel []byte
}

// Recomputed is the result of Recompute.
type Recomputed struct {
	// Image is the restored image.
	Image *raster.Image
	// Metrics are its scores. Without a ground truth only the residual is set.
	Metrics item.Metrics
	// Artifacts maps the names of the files that a worker would write, except for image and result, to their SHA-256.
	Artifacts map[string]string
}

// Recompute restores one item in the same way as a worker, alone in its batch, and writes nothing. It reads the item's
// files from the sources and verifies their digests. With stored arrays it reads no files, and there is no ground truth.
// The engine's prior must be the item's; own has the item's operator file, if it names one. Recompute computes the identity
// again: it does not compare it with the item's.
func Recompute(
	ctx context.Context, engine *restore.Engine, from Sources, item item.Item, stored *Stored, own ...*operator.File,
) (*Recomputed, error) {
	if err := item.Identify(); err != nil {
		return nil, err
	}
	s, j := Loader{Engine: engine, Sources: from, Memory: SolveMemory(DefaultSolveShare), Operators: map[string]*operator.File{}}, &Job{Item: item}
	for _, f := range own {
		s.Operators[f.SHA256] = f
	}
	if err := s.load(ctx, j, stored); err != nil {
		return nil, err
	}
	sv, err := engine.Solver(ctx, j.Plan, 1)
	if err != nil {
		return nil, err
	}
	solutions, err := sv.Solve(ctx, []solver.Problem{j.Problem}, nil)
	if err != nil {
		return nil, err
	}
	if err := j.Solved(ctx, engine, solutions[0]); err != nil {
		return nil, err
	}
	out := &Recomputed{Image: j.Restored(), Artifacts: map[string]string{}}
	if out.Metrics, err = j.Score(); err != nil {
		return nil, err
	}
	files, err := j.Artifacts()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		out.Artifacts[f.Name] = regular.SHA256(f.Data)
	}
	return out, nil
}

// load prepares an item for the solver.
func (s Loader) load(ctx context.Context, j *Job, stored *Stored) error {
	if err := s.Plan(j); err != nil {
		return err
	}
	if stored == nil {
		if err := s.Fetch(ctx, j); err != nil {
			return err
		}
		return s.Measure(ctx, j)
	}
	for name, data := range map[string][]byte{drawKernel: stored.Kernel, drawMask: stored.Mask} {
		if name == drawKernel && j.Item.Kernel == nil || name == drawMask && j.Item.Mask == nil {
			continue
		}
		f, err := drawfile.Read(name, data)
		if err != nil {
			return fmt.Errorf("read stored mask or kernel: %w", err)
		}
		j.use(f.Draw)
	}
	if err := j.encodeDraw(); err != nil {
		return err
	}
	s.countGrey(j)
	if err := j.readArray(item.FileData, stored.Measurement); err != nil {
		return err
	}
	return s.weigh(j)
}
