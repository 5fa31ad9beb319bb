package gpuworker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"ddiff/gpuworker/tuner"
	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore"
	"ddiff/restore/method"
	"ddiff/restore/noise"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
	"ddiff/restore/tile"
)

// Names of draws, see [operator.Draw].
const (
	drawMask   = "mask"
	drawKernel = "kernel"
)

// task is a leased item in flight.
type task struct {
	lease    *queue.Lease
	assigned *assigned
	ctx      context.Context // with the trace of the item
	item     manifest.Item
	plan     restore.Plan
	leased   time.Time
	starts   []attemptStart // of a suspect, the last one is this attempt's
	fault    error          // the device's failure that ended the worker

	op         *operator.Operator
	truth      *raster.Image // nil when only a measurement exists
	draw       *operator.Draw
	problem    solver.Problem
	checkpoint *checkpoint // nil when the item starts from the beginning
	solution   solver.Solution
	applied    []float32 // A of the restored image
	warnings   []manifest.Warning
	profile    []byte // ICC profile of a measurement that is a picture
	mirrored   []int  // shape of a mask before it was mirrored with its measurement; nil: it was not
	seconds    float64
	cost       method.Cost
	batch      int
	claimed    atomic.Bool
	written    int    // size of the largest file that was written last
	end        string // outcome of an attempt that did not restore the item

	// preflight is set instead of item and the fields derived from it, see preflight.go.
	preflight *manifest.Preflight
	checked   *manifest.Checked
}

// withoutImages returns a copy of the task for tests of the environment.
func (t *task) withoutImages() *task {
	return &task{lease: t.lease, assigned: t.assigned, ctx: t.ctx, item: t.item, preflight: t.preflight, written: t.written}
}

// claim reports whether the caller may settle the item: it returns true once.
func (t *task) claim() bool { return t.claimed.CompareAndSwap(false, true) }

// name returns the item's name, or its id when the message could not be decoded.
func (t *task) name() string {
	return cmp.Or(t.item.Name, t.lease.ID())
}

// workload returns the key of the item's throughput curve.
func (t *task) workload() tuner.Workload {
	e, image := t.assigned.Engine, t.plan.Image
	rt := e.RuntimeFor(t.plan)
	return tuner.Workload{
		Prior: e.Prior().SHA256, Provider: rt.Provider(), Device: rt.Device(),
		Runtime: runtimeDigest(e, t.plan), Channels: image.Channels, Height: image.Height, Width: image.Width, Operator: ownDigest(t.plan),
	}
}

// ownDigest returns the digest of a plan's operator file, empty for a built-in operator.
func ownDigest(p restore.Plan) string {
	if p.Own == nil {
		return ""
	}
	return p.Own.SHA256
}

// runtimeDigest identifies the runtime settings that may affect speed.
func runtimeDigest(e *restore.Engine, p restore.Plan) string {
	rt := e.RuntimeFor(p)
	// Numbers and strings can be marshalled; the keys of maps are sorted.
	settings := []any{rt.Version(), rt.Threads(), rt.Settings(), e.Build(p)}
	if p.Divided() {
		settings = append(settings, p.Tiles)
	}
	data, _ := json.Marshal(settings)
	return regular.SHA256(data)[:12]
}

// loader loads and measures items. It needs neither queue nor store.
type loader struct {
	engine    *restore.Engine
	operators map[string]*operator.File // by SHA-256
	sources   sources
	budget    *raster.Budget // of decoding; nil: no limit
	memory    int64          // for solving, in bytes; 0: no limit
}

// decode decodes the message of an item.
func (t *task) decode() error {
	var err error
	if t.item, err = manifest.DecodeItem(t.lease.Payload()); errors.Is(err, manifest.ErrNewer) {
		return unsupported(err)
	} else if err != nil {
		return inputError("read work item %s: %w", t.lease.ID(), err)
	}
	if t.item.ID != t.lease.ID() {
		return inputError("read work item %s: its payload is item %q", t.lease.ID(), t.item.ID)
	}
	return nil
}

// plan derives the item's plan, operator and noise key. Items with equal plans may share a batch.
func (s loader) plan(t *task) error {
	if want := s.engine.Prior().SHA256; t.item.Prior != want {
		return fmt.Errorf("item %s needs the prior %.12s, this worker has %.12s", t.item.Name, t.item.Prior, want)
	}
	var settings method.Settings
	if err := json.Unmarshal(t.item.Solver, &settings); err != nil {
		return inputError("read solver settings of item %s: %w", t.item.Name, err)
	}
	t.plan = restore.Plan{
		Task: t.item.Task, Params: t.item.Params, Solver: settings,
		Image: operator.Shape{Channels: s.engine.Prior().Card.Channels, Height: t.item.Height, Width: t.item.Width},
		Given: t.item.OwnKernel,
		Tiles: tile.Tiling{Side: t.item.Tile, Overlap: t.item.Overlap},
	}
	if file := t.item.Operator; file != nil {
		if t.plan.Own = s.operators[file.SHA256]; t.plan.Own == nil {
			return inputError("item %s: the campaign has no operator file %s with the SHA-256 %.12s", t.item.Name, file.Public(), file.SHA256)
		}
	}
	var err error
	if t.plan.Precision, err = s.precision(&t.item); err != nil {
		return err
	}
	if err := s.engine.Supports(t.plan); err != nil {
		return unsupported(fmt.Errorf("item %s: %w", t.item.Name, err))
	}
	if err := t.item.CheckID(); err != nil {
		return unsupported(err)
	}
	if err := s.checkMemory(t); err != nil {
		return err
	}
	run, err := t.item.RunKey()
	if err != nil {
		return err
	}
	t.problem.Key = noise.NewKey(run)
	if t.op, err = s.engine.Operator(t.plan); err != nil {
		return err
	}
	if err := t.op.CheckNoise(t.noise()); err != nil {
		return inputError("item %s: %w", t.item.Name, err)
	}
	return nil
}

// fetch reads the item's files and fits the image to its working size.
func (s loader) fetch(ctx context.Context, t *task) error {
	if t.item.Image != nil {
		err := s.decode(ctx, *t.item.Image, func(data []byte) error { return s.decodeTruth(t, data) })
		if err != nil {
			return err
		}
	}
	return s.fetchDraw(ctx, t)
}

// decodeTruth decodes the image and fits it to its working size.
func (s loader) decodeTruth(t *task, data []byte) error {
	img, err := raster.Decode(data)
	if err != nil {
		return fmt.Errorf("decode %s: %w", t.item.Image.Public(), err)
	}
	size := min(t.item.Width, t.item.Height)
	if t.truth, err = raster.Fit(img, string(t.item.Fit), size, s.engine.Prior().Card.MultipleOf); err != nil {
		return fmt.Errorf("fit %s: %w", t.item.Image.Public(), err)
	}
	if t.truth.Width != t.item.Width || t.truth.Height != t.item.Height {
		return inputError("fit %s: its size is %d×%d, want %d×%d", t.item.Image.Public(), t.truth.Width, t.truth.Height, t.item.Width, t.item.Height)
	}
	return nil
}

// fetchDraw reads the mask or kernel of the item, or draws a random one.
func (s loader) fetchDraw(ctx context.Context, t *task) error {
	for _, given := range []struct {
		name   string
		source *manifest.Source
	}{{drawMask, t.item.Mask}, {drawKernel, t.item.Kernel}} {
		if given.source == nil {
			continue
		}
		err := s.decode(ctx, *given.source, func(data []byte) (err error) {
			if t.draw, err = operator.ReadDraw(given.name, data); err != nil {
				return fmt.Errorf("read %s %s: %w", given.name, given.source.Public(), err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if t.op.ScalesMask() && t.item.Measurement != nil && t.item.Image == nil {
		return nil // measure knows the size of the picture
	}
	t.mirrorMask()
	err := t.fitMask(t.op.Image.Width, t.op.Image.Height)
	if err == nil {
		err = t.encodeDraw()
	}
	for _, from := range []*manifest.Source{t.item.Mask, t.item.Kernel} {
		if err != nil && from != nil {
			return fmt.Errorf("read %s: %w", from.Public(), err)
		}
	}
	return err
}

// encodeDraw encodes the mask or kernel. It draws the item's random one if none was read.
func (t *task) encodeDraw() error {
	if t.draw == nil {
		key, err := t.item.OperatorKey()
		if err != nil {
			return err
		}
		if t.op.Required {
			return inputError("item %s: task %s needs a file with its mask or kernel", t.item.Name, t.item.Task)
		}
		t.draw = t.op.Draw(noise.NewKey(key))
	}
	var err error
	t.problem.Draw, err = t.op.Encode(t.draw)
	return err
}

// read reads a source and verifies its digest.
func (s loader) read(ctx context.Context, from manifest.Source) ([]byte, error) {
	data, err := s.sources.Get(ctx, from.Path)
	if err != nil {
		return nil, readError(ctx, from, err)
	}
	if got := regular.SHA256(data); got != from.SHA256 {
		return nil, digestError(from, got)
	}
	return data, nil
}

// digestError is the error of a source with another digest.
func digestError(from manifest.Source, got string) error {
	return fmt.Errorf("%w: read %s: its SHA-256 is %.12s, the campaign expects %.12s; submit the campaign again",
		errDigest, from.Public(), got, from.SHA256)
}

// refusedFile is the error of a file whose beginning shows that it cannot be used. Digest reads the complete file.
type refusedFile interface {
	error
	Digest(ctx context.Context) (string, error)
}

// readError classifies an error of reading a source. A refused file with the campaign's digest is refused by every worker.
func readError(ctx context.Context, from manifest.Source, err error) error {
	file, ok := errors.AsType[refusedFile](err)
	if !ok {
		return fmt.Errorf("read %s: %w", from.Public(), sourceError{err})
	}
	switch got, failed := file.Digest(ctx); {
	case failed != nil:
		return fmt.Errorf("read %s: %w", from.Public(), sourceError{failed})
	case got != from.SHA256:
		return digestError(from, got)
	}
	return fmt.Errorf("read %s: %w", from.Public(), err)
}

// decode reads a source and calls use, which decodes it, while its memory is reserved.
func (s loader) decode(ctx context.Context, from manifest.Source, use func(data []byte) error) error {
	data, err := s.read(ctx, from)
	if err != nil {
		return err
	}
	release, err := s.budget.Reserve(ctx, data)
	if err != nil {
		return fmt.Errorf("decode %s: %w", from.Public(), err)
	}
	defer release()
	return use(data)
}
