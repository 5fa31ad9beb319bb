package gpuworker

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"ddiff/internal/regular"
	"ddiff/internal/retry"
	"ddiff/restore/item"
	"ddiff/restore/job"
	"ddiff/storage"
	"ddiff/telemetry"
)

// finish applies A to the restored image, scores it, and stores its artifacts and result.
func (e engineRestorer) finish(t *task) (*item.Result, error) {
	if t.assigned.cancelled() { // since the last step
		return nil, errCancelled
	}
	e.recordStage(t.ctx, t, telemetry.StageScore)
	var scores item.Metrics
	err := e.stage(t, telemetry.StageScore, e.cfg.Limits.Finish, func(ctx context.Context) (err error) {
		if err := t.Solved(ctx, t.assigned.Engine, t.solution); err != nil {
			return err
		}
		if scores, err = t.Score(); err == nil {
			t.Warn(t.assigned.Engine, scores)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var res *item.Result
	err = e.stage(t, telemetry.StageWrite, e.cfg.Limits.Finish, func(ctx context.Context) (err error) {
		res, err = e.write(ctx, t, scores)
		return err
	})
	if err == nil && t.checkpoint != nil {
		e.deleteCheckpoint(t.ctx, t)
	}
	return res, err
}

// write stores the artifacts, and then the result, create-only. Two workers that finish the same item write the same
// keys. The first result is kept, and write returns it.
func (e engineRestorer) write(ctx context.Context, t *task, m item.Metrics) (*item.Result, error) {
	// Artifacts of an existing result must not be replaced: its digests describe the bytes of the other worker.
	if res, err := t.findResult(ctx); err != nil || res != nil {
		return res, err
	}
	res := e.result(t, item.OutcomeDone, "")
	res.Batch, res.Cost = t.batch, item.Cost(t.cost)
	if e.cfg.Log != nil {
		res.Log = e.cfg.Log.Lines(t.Item.ID, false)
	}
	files, err := t.Artifacts()
	if err != nil {
		return nil, err
	}
	picture, err := t.Record(res, m, files)
	if err != nil {
		return nil, err
	}
	restored := job.Artifact{Name: item.FileRestored, Data: picture}
	for _, f := range append(files, restored) {
		t.written = max(t.written, len(f.Data))
	}
	existing, err := t.putAll(ctx, files)
	if err == nil && existing == nil {
		existing, err = t.put(ctx, restored)
	}
	if err == nil && existing == nil {
		err = t.createResult(ctx, res)
		if errors.Is(err, storage.ErrExists) {
			existing, err = t.readExisting(ctx)
		}
	}
	switch {
	case existing != nil: // a file of this worker that was not written is not needed then
		return existing, e.writeBack(ctx, t, existing)
	case err != nil:
		return nil, err
	}
	return res, nil
}

// putAll puts files of the item together: each takes a round trip to the store. If one fails, the others are not given up: the server might execute their requests late.
func (t *task) putAll(ctx context.Context, files []job.Artifact) (existing *item.Result, err error) {
	found := make([]*item.Result, len(files))
	var group errgroup.Group
	for i, f := range files {
		group.Go(func() (err error) {
			found[i], err = t.put(ctx, f)
			return err
		})
	}
	err = group.Wait()
	return cmp.Or(found...), err
}

// put writes a file of the item. It creates the file, and replaces only one that another attempt has left: a request of a worker that gave up,
// which the server executes late, then replaces no file of the attempt with the result. If there is a result by then, because this process was
// stopped for longer than its lease, put returns it and replaces nothing.
func (t *task) put(ctx context.Context, f job.Artifact) (existing *item.Result, err error) {
	key := item.Key(t.Item.ID, f.Name)
	err = t.assigned.Store.Create(ctx, key, f.Data)
	if errors.Is(err, storage.ErrExists) {
		before, unread := t.assigned.Store.Get(ctx, key)
		if existing, err = t.findResult(ctx); err != nil || existing != nil {
			return existing, err
		}
		if unread == nil {
			t.replacing.Lock()
			t.replaced = append(t.replaced, job.Artifact{Name: f.Name, Data: before})
			t.replacing.Unlock()
		}
		err = t.assigned.Store.Put(ctx, key, f.Data)
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", f.Name, err)
	}
	return nil, nil
}

// createResult writes result.json unless it exists (storage.ErrExists).
func (t *task) createResult(ctx context.Context, res *item.Result) error {
	data, err := item.EncodeResult(res)
	if err == nil {
		err = t.assigned.Store.Create(ctx, item.Key(t.Item.ID, item.FileResult), data)
	}
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// writeBack writes the files of a result that another worker created while this worker wrote its files, and replaced those. It outlasts an
// outage of the store: no other attempt has these files.
func (c *core) writeBack(ctx context.Context, t *task, res *item.Result) error {
	delays := retry.NewBackOff(c.cfg.ProbePause, 30*c.cfg.ProbePause)
	for _, f := range t.replaced {
		if regular.SHA256(f.Data) != res.Artifacts[f.Name] {
			continue
		}
		for {
			err := t.assigned.Store.Put(ctx, item.Key(t.Item.ID, f.Name), f.Data)
			if err == nil {
				break
			}
			if !errors.Is(err, storage.ErrUnavailable) || retry.Sleep(ctx, delays.NextBackOff()) != nil {
				return fmt.Errorf("write %s: %w", f.Name, err)
			}
		}
	}
	return nil
}

// readResult reads the stored result of an item.
func (t *task) readResult(ctx context.Context) (*item.Result, error) {
	key := item.Key(t.Item.ID, item.FileResult)
	data, err := t.assigned.Store.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read existing result: %w", err)
	}
	res, err := item.DecodeResult(data)
	if err != nil {
		return nil, fmt.Errorf("read existing result %s: %w; move the item's folder away and run again", key, err)
	}
	return &res, nil
}

// readExisting is readResult after the store has refused another result. A store that does not return the existing one is
// a failure of the environment.
func (t *task) readExisting(ctx context.Context) (*item.Result, error) {
	res, err := t.readResult(ctx)
	if errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("%w: the store has a result and does not return it: %w", storage.ErrUnavailable, err)
	}
	return res, err
}

// findResult is readResult, but returns nil when there is no result.
func (t *task) findResult(ctx context.Context) (*item.Result, error) {
	res, err := t.readResult(ctx)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	return res, err
}

// result returns a result with the fields that all outcomes have.
func (c *core) result(t *task, o item.Outcome, reason string) *item.Result {
	runtime := item.Runtime{Version: c.cfg.Version}
	if t.assigned.Engine != nil {
		runtime = job.RuntimeOf(t.assigned.Engine, t.Plan, t.batch, c.cfg.Version)
	}
	return &item.Result{
		Schema: item.SchemaVersion, Item: t.Item.Public(), Outcome: o, Reason: reason, Runtime: runtime,
		Seconds: t.seconds, Worker: c.cfg.Name, Pool: c.cfg.Pool, Attempt: t.lease.Attempt(),
		TraceID:  trace.SpanContextFromContext(t.ctx).TraceID().String(),
		Finished: c.cfg.Now().UTC(),
	}
}
