// Package job has the way of an item to its restored image, in three stages. [Loader] prepares: it plans the item, reads its files, and simulates or reads its
// measurement. [Batch] solves jobs of equal plans, and [Parts] what is left of a failed batch. [Job.Answer] and [Job.Encode] finish: they score the solution, warn of
// doubtful ones and encode the files beside a result. The package knows neither queue nor store, and a [Job] depends on nothing but its item. A new kind of input
// belongs to measurement.go, a new score to score.go, a new warning to warnings.go; an error that decides what becomes of an item is in errors.go.
package job

import (
	"context"
	"encoding/json"
	"fmt"

	"ddiff/internal/regular"
	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/solver"
	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// Names of draws, see [operator.Draw].
const (
	drawMask   = photograph.Mask
	drawKernel = photograph.Kernel
)

// Job is one item on its way: [Loader.Plan], [Loader.Fetch] and [Loader.Measure] prepare it, [Batch.Solve] solves it, and [Job.Answer] and [Job.Encode]
// finish it. The zero value with an Item is ready for Plan.
type Job struct {
	Item    item.Item
	Plan    restore.Plan
	Op      *operator.Operator // A
	Problem solver.Problem
	// Original is the file of which the measurement is a part, and whose compression it has; nil for a whole picture.
	Original []byte
	// Warnings are those so far.
	Warnings []item.Warning

	// Checkpoint is where Solve begins; nil: at the start. Resume sets it.
	Checkpoint *Checkpoint
	// Reached is the state after the last step of a failed Solve; nil before the first step, and where states are kept.
	Reached *Checkpoint
	// Solution is that of Solve, Batch the number of jobs that were solved together, Cost that of the whole run. Seconds are the job's share of the time of Solve,
	// also after an error, with those of the Checkpoint. Metrics are those of Answer.
	Solution solver.Solution
	Batch    int
	Cost     item.Cost
	Seconds  float64
	Metrics  item.Metrics

	truth     *raster.Image // nil when only a measurement exists
	file      []byte        // of the truth, where it contains nothing but the pixels of the working size; else nil
	bits      int           // per sample of the truth's file, 8 or 16; 0 without one
	draw      *operator.Draw
	mask      *operator.Draw // of the pixels of y, for a task whose draw is none
	measured  []float32      // y before lost pixels were filled; nil: none were
	applied   []float32      // A of the restored image
	baseline  *raster.Image  // of a scored item with a truth, see operator.Baseline
	profile   []byte         // ICC profile of a measurement that is a picture
	quality   float64        // of the compression of a measurement that is a picture, 100 without loss
	lossy     bool           // the measurement is a file with lossy compression, apart from those of the task jpeg
	doubted   bool           // Doubt has looked at the solution
	tried     Tried          // the doubts that led to this restoration; where it is not restored again, its own
	drawDoubt string         // why the file of a mask or kernel is probably not what it was given as; empty: it is
	mirrored  []int          // shape of a mask before it was mirrored with its measurement; nil: it was not
}

// Answer applies A to the solution, and scores it.
func (j *Job) Answer(ctx context.Context, e *restore.Engine) (err error) {
	j.matchPicture()
	if j.applied, err = e.Apply(ctx, j.Op, j.Solution.X, j.Problem.Draw); err == nil {
		j.Metrics, err = j.score()
	}
	return err
}

// Sources reads the files of datasets.
type Sources interface {
	Get(ctx context.Context, path string) ([]byte, error)
}

// Loader plans, loads and measures the items of a campaign.
type Loader struct {
	Engine *restore.Engine
	// Operators are the campaign's operator files by their SHA-256.
	Operators map[string]*operator.File
	Sources   Sources
	// Verified: Sources has compared the files with the digests of the items.
	Verified bool
	// Budget limits the memory of decoding; nil: no limit.
	Budget *raster.Budget
	// Memory limits the estimated memory for solving, in bytes; 0: no limit.
	Memory int64
}

// Plan derives the item's plan, operator and noise key. Items with equal plans may share a batch.
func (s Loader) Plan(j *Job) error {
	if want := s.Engine.Prior().SHA256; j.Item.Prior != want {
		return fmt.Errorf("item %s needs the prior %.12s, this worker has %.12s", j.Item.Name, j.Item.Prior, want)
	}
	var settings method.Settings
	if err := json.Unmarshal(j.Item.Solver, &settings); err != nil {
		return InputError("read solver settings of item %s: %w", j.Item.Name, err)
	}
	j.Plan = restore.Plan{
		Task: j.Item.Task, Params: j.Item.Params, Solver: settings,
		Image: operator.Shape{Channels: s.Engine.Prior().Card.Channels, Height: j.Item.Height, Width: j.Item.Width},
		Given: j.Item.OwnKernel,
		Tiles: prior.Tiling{Side: j.Item.Tile, Overlap: j.Item.Overlap},
	}
	if file := j.Item.Operator; file != nil {
		if j.Plan.Own = s.Operators[file.SHA256]; j.Plan.Own == nil {
			return InputError("item %s: the campaign has no operator file %s with the SHA-256 %.12s", j.Item.Name, file.Public(), file.SHA256)
		}
	}
	var err error
	if j.Plan.Precision, err = s.precision(&j.Item); err != nil {
		return err
	}
	if err := item.CheckStates(j.Item.KeepStates, settings.Steps, j.Item.Height*j.Item.Width*s.Engine.Prior().Card.Channels); err != nil {
		return InputError("item %s: %w", j.Item.Name, err)
	}
	if err := s.Engine.Supports(j.Plan); err != nil {
		return Unsupported(fmt.Errorf("item %s: %w", j.Item.Name, err))
	}
	if err := s.Engine.Prior().Takes(j.Item.Height, j.Item.Width, j.Item.Tile); err != nil {
		return InputError("item %s: %w", j.Item.Name, err)
	}
	if err := j.Item.CheckID(); err != nil {
		return Unsupported(err)
	}
	if err := s.checkMemory(j); err != nil {
		return err
	}
	run, err := j.Item.RunKey()
	if err != nil {
		return err
	}
	j.Problem.Key = noise.NewKey(run)
	if j.Op, err = s.Engine.Operator(j.Plan); err != nil {
		return err
	}
	if err := j.Op.CheckNoise(j.noise()); err != nil {
		return InputError("item %s: %w", j.Item.Name, err)
	}
	return nil
}

// Fetch reads the item's files and fits the image to its working size.
func (s Loader) Fetch(ctx context.Context, j *Job) error {
	if j.Item.Image != nil {
		err := s.Decode(ctx, *j.Item.Image, func(data []byte) error { return s.decodeTruth(j, data) })
		if err != nil {
			return err
		}
	}
	return s.fetchDraw(ctx, j)
}

// decodeTruth decodes the image and fits it to its working size.
func (s Loader) decodeTruth(j *Job, data []byte) error {
	img, err := raster.Decode(data)
	if err != nil {
		return fmt.Errorf("decode %s: %w", j.Item.Image.Public(), err)
	}
	if img.Width == j.Item.Width && img.Height == j.Item.Height && img.Channels == j.Op.Image.Channels && raster.IsPlain(data) {
		j.file = data
	}
	if img, err = raster.InChannels(img, j.Op.Image.Channels); err != nil {
		return fmt.Errorf("decode %s: %w", j.Item.Image.Public(), err)
	}
	_, j.bits = raster.Samples(data)
	size := min(j.Item.Width, j.Item.Height)
	if j.truth, err = raster.Fit(img, string(j.Item.Fit), size, s.Engine.Prior().Card.MultipleOf); err != nil {
		return fmt.Errorf("fit %s: %w", j.Item.Image.Public(), err)
	}
	if j.truth.Width != j.Item.Width || j.truth.Height != j.Item.Height {
		return InputError("fit %s: its size is %d×%d, want %d×%d", j.Item.Image.Public(), j.truth.Width, j.truth.Height, j.Item.Width, j.Item.Height)
	}
	return nil
}

// fetchDraw reads the mask or kernel of the item, or draws a random one.
func (s Loader) fetchDraw(ctx context.Context, j *Job) error {
	for _, given := range []struct {
		name   string
		source *item.Source
	}{{drawMask, j.Item.Mask}, {drawKernel, j.Item.Kernel}} {
		if given.source == nil {
			continue
		}
		err := s.Decode(ctx, *given.source, func(data []byte) error {
			f, err := photograph.ReadDraw(given.name, data, j.Item.DrawForm)
			if err != nil {
				return fmt.Errorf("read %s %s: %w", given.name, given.source.Public(), err)
			}
			j.use(f.Draw)
			j.warnDraw(given.name, f)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if j.Op.ScalesMask() && j.Item.Measurement != nil && j.Item.Image == nil {
		return nil // measure knows the size of the picture
	}
	j.mirrorMask()
	err := j.fitMask(j.Op.Image.Width, j.Op.Image.Height)
	if err == nil {
		err = j.encodeDraw()
	}
	if from := j.drawSource(); err != nil && from != nil {
		return fmt.Errorf("read %s: %w", from.Public(), err)
	}
	return err
}

// use makes the mask or kernel of a file that of the operator, or the mask that of the pixels of y.
func (j *Job) use(d *operator.Draw) {
	if d.Name == drawMask && j.Op.Input != drawMask {
		j.mask = d
		return
	}
	j.draw = d
}

// maskDraw is the mask of an item with the file of one.
func (j *Job) maskDraw() *operator.Draw {
	if j.mask != nil {
		return j.mask
	}
	return j.draw
}

// drawSource is the file of the operator's mask or kernel, nil for one without.
func (j *Job) drawSource() *item.Source {
	if j.draw != nil && j.draw.Name == drawMask {
		return j.Item.Mask
	}
	return j.Item.Kernel
}

// encodeDraw encodes the mask or kernel. It draws the item's random one if none was read.
func (j *Job) encodeDraw() error {
	if j.draw == nil {
		key, err := j.Item.OperatorKey()
		if err != nil {
			return err
		}
		if j.Op.Required {
			return InputError("item %s: task %s needs a file with its mask or kernel", j.Item.Name, j.Item.Task)
		}
		j.draw = j.Op.Draw(noise.NewKey(key))
	}
	var err error
	j.Problem.Draw, err = j.Op.Encode(j.draw)
	return err
}

// Read reads a source and verifies its digest.
func (s Loader) Read(ctx context.Context, from item.Source) ([]byte, error) {
	data, err := s.Sources.Get(ctx, from.Path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from.Public(), SourceError{err})
	}
	if s.Verified {
		return data, nil
	}
	if got := regular.SHA256(data); got != from.SHA256 {
		return nil, fmt.Errorf("%w: read %s: its SHA-256 is %.12s, the campaign expects %.12s; submit the campaign again under another name",
			ErrDigest, from.Public(), got, from.SHA256)
	}
	return data, nil
}

// Decode reads a source and calls use, which decodes it, while its memory is reserved.
func (s Loader) Decode(ctx context.Context, from item.Source, use func(data []byte) error) error {
	data, err := s.Read(ctx, from)
	if err != nil {
		return err
	}
	release, err := s.Budget.Reserve(ctx, data)
	if err != nil {
		return fmt.Errorf("decode %s: %w", from.Public(), err)
	}
	defer release()
	return use(data)
}
