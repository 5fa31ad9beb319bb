package job

import (
	"context"
	"fmt"

	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// Stored holds the arrays beside a result, which replace the item's files. The caller has verified their digests.
type Stored struct {
	// Measurement is measurement.npy.
	Measurement []byte
	// Mask is mask.npy, Kernel is kernel.npy. They are used when the item names a mask or a kernel; a random one is drawn again.
	Mask, Kernel []byte
}

// Recomputed is the result of Recompute: that of a worker with the same arguments. Without the ground truth, its metrics are those without. Its artifacts
// have no restored picture, whose passport is another one.
type Recomputed struct {
	item.Result
	// Image is the restored image.
	Image *raster.Image
}

// Recompute restores one item in the same way as a worker, alone in its batch, and writes nothing. It reads the item's
// files from the sources and verifies their digests. With stored arrays it reads no files, and there is no ground truth.
// The engine's prior must be the item's; own has the item's operator file, if it names one. Recompute computes the identity
// again: it does not compare it with the item's.
func Recompute(ctx context.Context, engine *restore.Engine, from Sources, it item.Item, stored *Stored, own ...*operator.File) (*Recomputed, error) {
	if err := it.Identify(); err != nil {
		return nil, err
	}
	s, j := Loader{Engine: engine, Sources: from, Memory: SolveMemory(DefaultSolveShare), Operators: map[string]*operator.File{}}, &Job{Item: it}
	for _, f := range own {
		s.Operators[f.SHA256] = f
	}
	if err := s.load(ctx, j, stored); err != nil {
		return nil, err
	}
	if err := (&Batch{Engine: engine, Jobs: []*Job{j}}).Solve(ctx); err != nil {
		return nil, err
	}
	if err := j.Answer(ctx, engine); err != nil {
		return nil, err
	}
	out := &Recomputed{Image: j.Restored()}
	_, _, err := j.Encode(engine, &out.Result, true)
	delete(out.Artifacts, item.FileRestored)
	return out, err
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
		f, err := photograph.ReadDraw(name, data, item.DrawForm{}) // stored as it is used
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
