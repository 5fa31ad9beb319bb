package gpuworker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/solver"
	"ddiff/restore/item"
	"ddiff/storage"
)

const (
	// minProbeBytes and maxProbeBytes limit the object that a test writes. It is as large as the last failed write, so
	// that a disk with space for a few bytes fails the test.
	minProbeBytes = 1 << 10
	maxProbeBytes = 16 << 20
)

// test tests the environment of a failed item: store, with sources the files of the dataset, and one step of a solve.
func (w *Worker) test(ctx context.Context, t *task, sources bool) error {
	defer w.interrupt()()
	a := w.watchdog.Begin(ctx, "probe", w.cfg.Limits.Compile)
	defer a.End()
	if err := testStore(a.Ctx, t.assigned.Store, t.written); err != nil {
		return a.Wrap(fmt.Errorf("store: %w", err))
	}
	if sources {
		if err := w.testSources(a.Ctx, t); err != nil {
			return a.Wrap(err)
		}
	}
	return a.Wrap(w.restorer.probe(a.Ctx, t, w.breaker.LastGood(t.assigned.Campaign)))
}

// testStore checks that a store creates, reads and deletes an object of about a size, and refuses to create it twice.
func testStore(ctx context.Context, s store, size int) (err error) {
	key := "probes/" + rand.Text()
	data := bytes.Repeat([]byte(key), 1+min(max(size, minProbeBytes), maxProbeBytes)/len(key))
	defer func() { err = errors.Join(err, s.Delete(context.WithoutCancel(ctx), key)) }()
	if err := s.Create(ctx, key, data); err != nil {
		return err
	}
	if err := s.Create(ctx, key, []byte("another")); !errors.Is(err, storage.ErrExists) {
		return errors.Join(errors.New("the store accepts a second create of one key: results could be replaced"), err)
	}
	read, err := s.Get(ctx, key)
	if err == nil && !bytes.Equal(read, data) {
		err = fmt.Errorf("read %s: the bytes differ from the written ones", key)
	}
	return err
}

// testSources reads the files of the campaign's last good item, or of the failed item. Only failures of the environment
// are errors: a missing or damaged file concerns its item.
func (w *Worker) testSources(ctx context.Context, t *task) error {
	it := cmp.Or(w.breaker.LastGood(t.assigned.Campaign), t.sample())
	for _, s := range []*item.Source{it.Image, it.Measurement, it.Mask, it.Kernel} {
		if s == nil || t.assigned.Sources == nil {
			continue
		}
		if _, err := t.assigned.loader.Read(ctx, *s); err != nil && guard.Environmental(err) {
			return err
		}
	}
	return nil
}

// sample returns the item, or an item of the preflight.
func (t *task) sample() *item.Item {
	if t.preflight != nil && len(t.preflight.Items) > 0 {
		return &t.preflight.Items[0]
	}
	return &t.Item
}

// probe implements restorer. It makes one step of the last good item, or of the failed item, whose divergence may be
// its own.
func (e engineRestorer) probe(ctx context.Context, failed *task, good *item.Item) error {
	t := &task{Job: job.Job{Item: *cmp.Or(good, failed.sample())}, assigned: failed.assigned}
	if t.assigned.Engine == nil || t.Item.ID == "" {
		return nil
	}
	if err := t.assigned.loader.Plan(&t.Job); err != nil {
		return nil //nolint:nilerr // the item is at fault
	}
	err := t.assigned.loader.SolveStep(ctx, &t.Job)
	if good == nil && errors.Is(err, solver.ErrDiverged) {
		return nil
	}
	return err
}

// probe implements restorer.
func (s *simulator) probe(context.Context, *task, *item.Item) error { return nil }
