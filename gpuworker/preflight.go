package gpuworker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/gpuworker/tuner"
	"ddiff/internal/hostmemory"
	"ddiff/internal/record"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/storage"
)

// The checks of a preflight, in order.
const (
	CheckPrior    = "prior card"
	CheckGradient = "operator gradient"
	CheckShapes   = "shapes"
	CheckMemory   = "memory"
	CheckSources  = "sources"
	CheckStore    = "store"
)

// decodePreflight decodes the message of a preflight.
func (t *task) decodePreflight() error {
	if t.lease.Exhausted() {
		return errCrashed
	}
	p, err := record.Decode[record.Preflight](t.lease.Payload())
	if errors.Is(err, item.ErrNewer) {
		return job.Unsupported(err)
	}
	if err != nil {
		return fmt.Errorf("read preflight: %w", err)
	}
	t.preflight = &p
	return nil
}

// preflight checks a campaign before its items are published, and publishes the answer. A failed check is an answer too.
// A draining worker releases the preflight.
func (w *Worker) preflight(ctx context.Context, tasks []*task) error {
	for _, t := range tasks {
		inner, stop := t.assigned.withLifetime(ctx)
		c, err := w.restorer.check(inner, t)
		stop()
		o := outcome{kind: done}
		switch {
		case t.assigned.cancelled():
			o = outcome{kind: dropped, err: errCancelled}
		case errors.Is(err, guard.ErrHung):
			o = outcome{kind: retried, err: err}
		case ctx.Err() != nil:
			o = outcome{returned, drain, err}
		case errors.Is(err, job.ErrUnsupported) && t.assigned.Refuse != nil:
			o = outcome{returned, refusal, err}
		case (errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrAccess)) && t.lease.Marks().Faults < maxFaults:
			o = outcome{returned, fault, err} // an unavailable store and refused keys are no properties of the campaign
		case guard.Environmental(err):
			o = outcome{returned, doubt, err}
		}
		t.checked = &c
		if err := w.settle(ctx, t, o, nil); err != nil {
			return err
		}
	}
	return nil
}

// check implements restorer. Its solves run between two steps of the batch on the device.
func (e engineRestorer) check(ctx context.Context, t *task) (record.Checked, error) {
	c := record.Checked{Worker: e.cfg.Name}
	giveBack := sync.OnceFunc(e.interrupt())
	defer giveBack()
	p := &preflight{assigned: t.assigned, tuner: e.cfg.Tuner, sample: t.preflight.Items, attempt: t.lease.Attempt()}
	for _, check := range []struct {
		name string
		run  func(context.Context) (string, error)
	}{
		{CheckPrior, p.prior}, {CheckGradient, p.gradient}, {CheckShapes, p.shapes},
		{CheckMemory, p.memory}, {CheckSources, p.sources}, {CheckStore, p.store},
	} {
		if check.name == CheckSources { // this check and the next need no device
			giveBack()
		}
		limit := e.cfg.Limits.Compile + e.cfg.Limits.Solve
		a := e.watchdog.Begin(ctx, "preflight", limit, t)
		a.Next("preflight: "+check.name, limit, check.name == CheckMemory)
		found, err := check.run(a.Ctx)
		err = a.Wrap(err)
		a.End()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			c.Failed, c.Reason = check.name, oneLine(err)
			if ctx.Err() == nil && !errors.Is(err, guard.ErrHung) {
				e.cfg.Logger.Error("campaign failed a preflight check", "campaign", t.assigned.Campaign, "check", check.name, "reason", err)
			}
			return c, err
		}
		c.Checks = append(c.Checks, record.Check{Name: check.name, Found: found})
		e.cfg.Logger.Info("campaign passed a preflight check", "campaign", t.assigned.Campaign, "check", check.name, "found", found)
	}
	return c, nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// preflight is the preflight of one campaign.
type preflight struct {
	*assigned
	tuner  *tuner.Tuner
	sample []item.Item
	tasks  []*task // the sample with plans
	// attempt is the number of the attempt, from 1.
	attempt int
}

// prior checks that the prior is usable, and that the items name this prior.
func (p *preflight) prior(context.Context) (string, error) {
	switch {
	case p.EngineError != nil:
		return "", p.EngineError
	case len(p.sample) == 0:
		return "", errors.New("the preflight has no items; run the coordinator's version of ddiff")
	}
	own := p.Engine.Prior()
	for _, it := range p.sample {
		if it.Prior != own.SHA256 {
			return "", fmt.Errorf("item %s is for the prior %.12s, the campaign names %.12s", it.Name, it.Prior, own.SHA256)
		}
	}
	return fmt.Sprintf("%s, %d channels, %d parameters, SHA-256 %.12s", own.Card.Name, own.Card.Channels, own.Parameters(), own.SHA256), nil
}

// gradient compares the gradient of each operator with finite differences.
func (p *preflight) gradient(ctx context.Context) (string, error) {
	worst, seen := 0.0, map[string]bool{}
	var tooLarge error
	for _, it := range p.sample {
		t := &task{Job: job.Job{Item: it}, assigned: p.assigned}
		switch err := p.loader.Plan(&t.Job); {
		case errors.Is(err, job.ErrMemory):
			tooLarge = err // this item fails, or another worker restores it
			continue
		case err != nil:
			return "", err
		}
		p.tasks = append(p.tasks, t)
		key, err := json.Marshal([]any{t.Op.Task, t.Op.Params, t.Op.Image, t.Op.Own, t.Plan.Given})
		if err != nil {
			return "", err
		}
		if seen[string(key)] {
			continue
		}
		seen[string(key)] = true
		r, err := t.Op.CheckGradient(ctx, p.Engine.Runtime())
		if err != nil {
			return "", fmt.Errorf("image of %d×%d: %w", t.Op.Image.Width, t.Op.Image.Height, err)
		}
		worst = max(worst, r.Error)
	}
	if len(p.tasks) == 0 {
		return "", tooLarge
	}
	return fmt.Sprintf("%d operators, relative difference to finite differences at most %.1e", len(seen), worst), nil
}

// shapes compiles the models of the items, for one image and for a full batch.
func (p *preflight) shapes(ctx context.Context) (string, error) {
	compiled := 0
	for _, t := range p.tasks {
		sizes := []int{1}
		if n := p.tuner.Size(p.Campaign, t.workload(), p.Batch); n > 1 && !t.Plan.Divided() {
			sizes = append(sizes, n)
		}
		for _, n := range sizes {
			if err := ctx.Err(); err != nil {
				return "", err
			}
			err := (&job.Batch{Engine: p.Engine, Jobs: slices.Repeat([]*job.Job{&t.Job}, n)}).Compile(ctx)
			if n > 1 && errors.Is(err, onnxruntime.ErrMemory) {
				p.tuner.RecordOutOfMemory(t.workload(), n)
				continue
			}
			if err != nil {
				return "", fmt.Errorf("compile %s at %d×%d for a batch of %d: %w", t.Plan.Task, t.Item.Width, t.Item.Height, n, err)
			}
			compiled++
		}
	}
	return fmt.Sprintf("%d models compiled", compiled), nil
}

// memory makes one step of the largest item.
func (p *preflight) memory(ctx context.Context) (string, error) {
	largest := slices.MaxFunc(p.tasks, func(a, b *task) int { return cmp.Compare(a.Op.Image.Size(), b.Op.Image.Size()) })
	if err := p.loader.SolveStep(ctx, &largest.Job); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s at %d×%d, peak memory of the process %d MiB", largest.Plan.Task, largest.Item.Width, largest.Item.Height, hostmemory.Peak()>>20), nil
}

// sources reads the files of one item of the sample and verifies their digests. It passes if one item is readable: a
// damaged image affects its own item only. Each attempt begins with another image, because an image may have ended the
// worker of an earlier attempt.
func (p *preflight) sources(ctx context.Context) (string, error) {
	var first error
	for _, it := range p.rotated() {
		files, size, err := p.readFiles(ctx, it)
		if err == nil {
			return fmt.Sprintf("%d files, %d bytes", files, size), nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return "", first
}

// rotated returns the sample without the images that earlier attempts began with, and then those.
func (p *preflight) rotated() []item.Item {
	var names []string
	for _, it := range p.sample {
		if !slices.Contains(names, it.Name) {
			names = append(names, it.Name)
		}
	}
	isTried := func(it item.Item) bool {
		return slices.Contains(names[:max(0, min(p.attempt-1, len(names)))], it.Name)
	}
	next := slices.DeleteFunc(slices.Clone(p.sample), isTried)
	last := slices.DeleteFunc(slices.Clone(p.sample), func(it item.Item) bool { return !isTried(it) })
	return append(next, last...)
}

// readFiles reads the files of an item and returns their number and bytes.
func (p *preflight) readFiles(ctx context.Context, it item.Item) (n, size int, err error) {
	for _, s := range []*item.Source{it.Image, it.Measurement, it.Mask, it.Kernel} {
		if s == nil {
			continue
		}
		err := p.loader.Decode(ctx, *s, func(data []byte) error {
			n, size = n+1, size+len(data)
			if s != it.Image {
				return nil
			}
			if _, err := raster.Decode(data); err != nil {
				return fmt.Errorf("decode %s: %w", s.Public(), err)
			}
			return nil
		})
		if err != nil {
			return 0, 0, err
		}
	}
	return n, size, nil
}

// store tests the store of the results.
func (p *preflight) store(ctx context.Context) (string, error) {
	return "an object was created once, read and deleted", testStore(ctx, p.Store, minProbeBytes)
}
