package gpuworker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ddiff/manifest"
	"ddiff/restore/check"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
	"ddiff/storage"
)

// The checks of a preflight, in their order.
const (
	CheckPrior    = "prior card"
	CheckGradient = "operator gradient"
	CheckShapes   = "shapes"
	CheckMemory   = "memory"
	CheckSources  = "sources"
	CheckStore    = "store"
)

// decodePreflight reads the message of a preflight.
func (t *task) decodePreflight() error {
	if t.lease.Exhausted() {
		return errCrashed
	}
	t.preflight = &manifest.Preflight{}
	if err := json.Unmarshal(t.lease.Payload(), t.preflight); err != nil {
		return fmt.Errorf("read preflight: %w", err)
	}
	return nil
}

// preflight checks a campaign before its items are handed out, and answers. A check that
// fails is an answer, too; only a worker that drains gives the item back.
func (w *Worker) preflight(ctx context.Context, b batch) error {
	for i, t := range b.tasks {
		inner, stop := t.on.until(ctx)
		c, err := w.check(inner, t)
		stop()
		o := outcome{kind: done}
		switch {
		case t.on.cancelled():
			o = outcome{cancelled, errCancelled}
		case ctx.Err() != nil:
			return w.release(ctx, batch{b.tasks[i:]})
		case errors.Is(err, storage.ErrUnavailable) && !t.lease.Last():
			o = outcome{retry, err} // storage that is away says nothing about the campaign
		}
		t.checked = &c
		if err := w.settle(ctx, t, o, manifest.Result{}); err != nil {
			return errors.Join(err, w.release(ctx, batch{b.tasks[i+1:]}))
		}
	}
	return nil
}

// check runs the checks up to the first that fails, whose error it returns too.
func (w *Worker) check(ctx context.Context, t *task) (manifest.Checked, error) {
	c := manifest.Checked{Worker: w.cfg.Name}
	if w.cfg.Simulate != nil {
		c.Checks = []manifest.Check{{Name: "simulated", Found: "this worker computes nothing"}}
		return c, nil
	}
	p := &preflight{w: w, on: t.on, sample: t.preflight.Items}
	for _, check := range []struct {
		name string
		run  func(context.Context) (string, error)
	}{
		{CheckPrior, p.prior}, {CheckGradient, p.gradient}, {CheckShapes, p.shapes},
		{CheckMemory, p.memory}, {CheckSources, p.sources}, {CheckStore, p.store},
	} {
		end := w.leases.begin(w.cfg.StageLimit)
		found, err := check.run(ctx)
		end()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			c.Failed, c.Reason = check.name, oneLine(err)
			w.cfg.Logger.Error("the campaign did not pass a check", "campaign", t.on.Campaign, "check", check.name, "reason", err)
			return c, err
		}
		c.Checks = append(c.Checks, manifest.Check{Name: check.name, Found: found})
		w.cfg.Logger.Info("the campaign passed a check", "campaign", t.on.Campaign, "check", check.name, "found", found)
	}
	return c, nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// preflight is a campaign that is checked.
type preflight struct {
	w      *Worker
	on     *assigned
	sample []manifest.Item
	tasks  []*task // the sample, planned
}

// prior: the prior can be opened, and is the one that the items were made for.
func (p *preflight) prior(context.Context) (string, error) {
	switch {
	case p.on.Broken != nil:
		return "", p.on.Broken
	case len(p.sample) == 0:
		return "", errors.New("the preflight has no items; the coordinator has another version")
	}
	own := p.on.Engine.Prior()
	for _, it := range p.sample {
		if it.Prior != own.SHA256 {
			return "", fmt.Errorf("item %s is for the prior %.12s, the campaign names %.12s", it.Name, it.Prior, own.SHA256)
		}
	}
	return fmt.Sprintf("%s, %d channels, %d parameters, SHA-256 %.12s", own.Card.Name, own.Card.Channels, own.Parameters(), own.SHA256), nil
}

// gradient: what the solver follows is the gradient of A.
func (p *preflight) gradient(ctx context.Context) (string, error) {
	worst, seen := 0.0, map[string]bool{}
	for _, it := range p.sample {
		t := &task{item: it, on: p.on}
		if err := p.on.plan(t); err != nil {
			return "", err
		}
		p.tasks = append(p.tasks, t)
		key, err := json.Marshal([]any{t.op.Task, t.op.Params, t.op.Image})
		if err != nil {
			return "", err
		}
		if seen[string(key)] {
			continue
		}
		seen[string(key)] = true
		r, err := t.op.CheckGradient(ctx, p.on.Engine.Runtime())
		if err != nil {
			return "", fmt.Errorf("image of %d×%d: %w", t.op.Image.Width, t.op.Image.Height, err)
		}
		worst = max(worst, r.Error)
	}
	return fmt.Sprintf("%d operators, relative difference to finite differences at most %.1e", len(seen), worst), nil
}

// shapes: what the items need can be compiled, for one image and for a whole batch.
func (p *preflight) shapes(ctx context.Context) (string, error) {
	compiled := 0
	for _, t := range p.tasks {
		sizes := []int{1}
		if n := p.w.cfg.Tuner.Size(p.on.Campaign, t.workload(), p.on.Batch); n > 1 {
			sizes = append(sizes, n)
		}
		for _, n := range sizes {
			if err := ctx.Err(); err != nil {
				return "", err
			}
			_, err := p.on.Engine.Solver(t.plan, n)
			if n > 1 && outOfMemory(err) {
				p.w.cfg.Tuner.Exceeded(t.workload(), n)
				continue
			}
			if err != nil {
				return "", fmt.Errorf("compile %s at %d×%d for a batch of %d: %w", t.plan.Task, t.item.Width, t.item.Height, n, err)
			}
			compiled++
		}
	}
	return fmt.Sprintf("%d models compiled", compiled), nil
}

// errEnough ends a run after its first chunk.
var errEnough = errors.New("enough")

// memory: the largest item fits.
func (p *preflight) memory(ctx context.Context) (string, error) {
	largest := p.tasks[0]
	for _, t := range p.tasks {
		if t.op.Image.Size() > largest.op.Image.Size() {
			largest = t
		}
	}
	// A random mask or kernel is as large as one that is read.
	t := &task{item: largest.item, on: p.on, op: largest.op, plan: largest.plan, problem: solver.Problem{Key: largest.problem.Key}}
	if err := t.encodeDraw(); err != nil {
		return "", err
	}
	var err error
	e := p.on.Engine
	grey := make([]float32, t.op.Image.Size())
	if t.problem.Y, err = e.Measure(ctx, t.op, grey, t.problem.Draw, t.item.Sigma, t.problem.Key); err != nil {
		return "", err
	}
	s, err := e.Solver(t.plan, 1)
	if err != nil {
		return "", err
	}
	_, err = s.Solve(ctx, []solver.Problem{t.problem}, func(int) error { return errEnough })
	if err != nil && !errors.Is(err, errEnough) {
		return "", fmt.Errorf("solve %s at %d×%d: %w", t.plan.Task, t.item.Width, t.item.Height, err)
	}
	return fmt.Sprintf("%s at %d×%d, peak memory of the process %d MiB", t.plan.Task, t.item.Width, t.item.Height, check.PeakMiB()), nil
}

// sources: the files of an item of the sample can be read, and are those that it was made for.
// One damaged image among others is that item's affair.
func (p *preflight) sources(ctx context.Context) (string, error) {
	var first error
	for _, it := range p.sample {
		files, size, err := p.files(ctx, it)
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

// files reads the files of an item.
func (p *preflight) files(ctx context.Context, it manifest.Item) (n, size int, err error) {
	for _, s := range []*manifest.Source{it.Image, it.Measurement, it.Mask, it.Kernel} {
		if s == nil {
			continue
		}
		data, err := p.on.read(ctx, *s)
		if err != nil {
			return 0, 0, err
		}
		if s == it.Image {
			if _, err := raster.Decode(data, raster.Limits{}); err != nil {
				return 0, 0, fmt.Errorf("decode %s: %w", s.Path, err)
			}
		}
		n, size = n+1, size+len(data)
	}
	return n, size, nil
}

// store: results can be written, once.
func (p *preflight) store(ctx context.Context) (found string, err error) {
	key := "probes/" + rand.Text()
	if err := p.on.Store.Create(ctx, key, []byte(key)); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.on.Store.Delete(context.WithoutCancel(ctx), key)) }()
	if err := p.on.Store.Create(ctx, key, []byte("another")); !errors.Is(err, storage.ErrExists) {
		return "", errors.Join(errors.New("a second create of one key is not refused: results could be replaced"), err)
	}
	data, err := p.on.Store.Get(ctx, key)
	if err != nil {
		return "", err
	}
	if string(data) != key {
		return "", fmt.Errorf("%s was written, and other bytes were read", key)
	}
	return "an object was created once, read and deleted", nil
}
