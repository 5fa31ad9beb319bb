package gpuworker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"ddiff/gpuworker/guard"
	"ddiff/manifest"
	"ddiff/restore/solver"
)

const (
	// minProbeBytes and maxProbeBytes limit the object that a test writes. It is as large as the last failed write, so
	// that a disk with space for a few bytes fails the test.
	minProbeBytes = 1 << 10
	maxProbeBytes = 16 << 20
)

// test tests the environment of a failed item: store, with sources the files of the dataset, and a solve of one chunk.
func (w *Worker) test(ctx context.Context, t *task, sources bool) error {
	a := w.watchdog.Begin(ctx, "probe", w.cfg.Limits.Compile)
	defer a.End()
	if err := testStore(a.Ctx, t); err != nil {
		return a.Wrap(fmt.Errorf("store: %w", err))
	}
	if sources {
		if err := w.testSources(a.Ctx, t); err != nil {
			return a.Wrap(err)
		}
	}
	return a.Wrap(w.restorer.probe(a.Ctx, t, w.breaker.LastGood(t.assigned.Campaign)))
}

// testStore writes, reads and deletes an object below the campaign's results.
func testStore(ctx context.Context, t *task) (err error) {
	key := "probes/" + rand.Text()
	data := bytes.Repeat([]byte(key), 1+min(max(t.written, minProbeBytes), maxProbeBytes)/len(key))
	defer func() { err = errors.Join(err, t.assigned.Store.Delete(context.WithoutCancel(ctx), key)) }()
	if err := t.assigned.Store.Put(ctx, key, data); err != nil {
		return err
	}
	read, err := t.assigned.Store.Get(ctx, key)
	if err == nil && !bytes.Equal(read, data) {
		err = fmt.Errorf("read %s: the bytes differ from the written ones", key)
	}
	return err
}

// testSources reads the files of the campaign's last good item, or of the failed item. Only failures of the environment
// are errors: a missing or damaged file concerns its item.
func (w *Worker) testSources(ctx context.Context, t *task) error {
	it := cmp.Or(w.breaker.LastGood(t.assigned.Campaign), t.sample())
	for _, s := range []*manifest.Source{it.Image, it.Measurement, it.Mask, it.Kernel} {
		if s == nil || t.assigned.Sources == nil {
			continue
		}
		if _, err := t.assigned.read(ctx, *s); err != nil && guard.Environmental(err) {
			return err
		}
	}
	return nil
}

// sample returns the item, or an item of the preflight.
func (t *task) sample() *manifest.Item {
	if t.preflight != nil && len(t.preflight.Items) > 0 {
		return &t.preflight.Items[0]
	}
	return &t.item
}

// probe implements restorer. It solves one chunk of the last good item, or of the failed item, whose divergence may be
// its own.
func (e engineRestorer) probe(ctx context.Context, failed *task, good *manifest.Item) error {
	t := &task{item: *cmp.Or(good, failed.sample()), assigned: failed.assigned}
	if t.assigned.Engine == nil || t.item.ID == "" {
		return nil
	}
	if err := t.assigned.plan(t); err != nil {
		return nil //nolint:nilerr // the item is at fault
	}
	err := t.assigned.solveChunk(ctx, t)
	if good == nil && errors.Is(err, solver.ErrDiverged) {
		return nil
	}
	return err
}

// probe implements restorer.
func (s *simulator) probe(context.Context, *task, *manifest.Item) error { return nil }

// errFirstChunk ends a run after its first chunk.
var errFirstChunk = errors.New("the first chunk is complete")

// solveChunk solves one chunk of a planned item with a grey image.
func (a *assigned) solveChunk(ctx context.Context, planned *task) error {
	t := &task{item: planned.item, assigned: a, op: planned.op, plan: planned.plan, problem: solver.Problem{Key: planned.problem.Key}}
	t.draw = t.op.Draw(t.problem.Key) // a random mask or kernel takes as much memory as that of a file
	if err := t.encodeDraw(); err != nil {
		return err
	}
	var err error
	grey := make([]float32, t.op.Image.Size())
	if t.problem.Y, err = a.Engine.Measure(ctx, t.op, grey, t.problem.Draw, t.noise(), t.problem.Key); err != nil {
		return err
	}
	s, err := a.Engine.Solver(t.plan, 1)
	if err != nil {
		return err
	}
	_, err = s.Solve(ctx, []solver.Problem{t.problem}, func(int) error { return errFirstChunk })
	if errors.Is(err, errFirstChunk) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("solve %s at %d×%d: %w", t.plan.Task, t.item.Width, t.item.Height, err)
	}
	return nil
}
