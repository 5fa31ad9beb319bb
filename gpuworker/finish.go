package gpuworker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"ddiff/internal/regular"
	"ddiff/internal/restore/job"
	"ddiff/restore/item"
	"ddiff/storage"
	"ddiff/telemetry"
)

// finish applies A to the restored image, scores it, and stores its artifacts and result.
func (e engineRestorer) finish(t *task) (*item.Result, error) {
	if t.assigned.cancelled() { // since the last step
		return nil, errCancelled
	}
	e.recordStage(t.ctx, t, telemetry.StageScore)
	err := e.stage(t, telemetry.StageScore, e.cfg.Limits.Finish, func(ctx context.Context) error { return t.Answer(ctx, t.assigned.Engine) })
	if err != nil {
		return nil, err
	}
	var res *item.Result
	err = e.stage(t, telemetry.StageWrite, e.cfg.Limits.Finish, func(ctx context.Context) (err error) {
		res, err = e.write(ctx, t)
		return err
	})
	if err == nil && t.Checkpoint != nil {
		e.deleteCheckpoint(t.ctx, t)
	}
	return res, err
}

// write stores the artifacts, and then the result, create-only. The first result is kept, and write returns it.
func (e engineRestorer) write(ctx context.Context, t *task) (*item.Result, error) {
	if res, err := t.findResult(ctx); err != nil || res != nil {
		return res, err
	}
	if err := t.assigned.checkDeleted(ctx); err != nil {
		return nil, err
	}
	res := e.result(t, item.OutcomeDone, "")
	if e.cfg.Log != nil {
		res.Log = e.cfg.Log.Lines(t.Item.ID, false)
	}
	picture, files, err := t.Encode(t.assigned.Engine, res, true)
	if err != nil {
		return nil, err
	}
	restored := job.Artifact{Name: item.FileRestored, Data: picture}
	for _, f := range append(files, restored) {
		t.written = max(t.written, len(f.Data))
	}
	for _, together := range [][]job.Artifact{files, {restored}} {
		staged, err := t.create(ctx, together)
		if err != nil {
			return nil, err
		}
		res.Replaces = append(res.Replaces, staged...)
	}
	err = t.createResult(ctx, res)
	if errors.Is(err, storage.ErrExists) {
		return t.readExisting(ctx)
	}
	if err == nil {
		err = t.replace(ctx, res)
	}
	if err != nil {
		return nil, err
	}
	return res, nil
}

// create creates files of the item together: each takes a round trip to the store. If one fails, the others are not given up: the server might
// execute their requests late. A file that another attempt has left, which may run still, stays; if the new one has other bytes, it is staged, and
// create returns its name.
func (t *task) create(ctx context.Context, files []job.Artifact) (staged []string, err error) {
	names := make([]string, len(files))
	var group errgroup.Group
	for i, f := range files {
		group.Go(func() error {
			key := item.Key(t.Item.ID, f.Name)
			err := t.assigned.Store.Create(ctx, key, f.Data)
			if errors.Is(err, storage.ErrExists) {
				if left, unread := t.assigned.Store.Get(ctx, key); unread == nil && bytes.Equal(left, f.Data) {
					return nil
				}
				names[i] = f.Name
				err = t.assigned.Store.Put(ctx, item.StagedKey(t.Item.ID, regular.SHA256(f.Data)), f.Data)
			}
			if err != nil {
				return fmt.Errorf("write %s: %w", f.Name, err)
			}
			return nil
		})
	}
	err = group.Wait()
	return slices.DeleteFunc(names, func(name string) bool { return name == "" }), err
}

// replace moves the staged files of a stored result over those that other attempts have left. Nothing else writes over a file, and only bytes that
// the first result names: a request of a stopped worker that arrives late changes nothing. If this worker dies here, the next one that finds the
// result continues.
func (t *task) replace(ctx context.Context, res *item.Result) error {
	for _, name := range res.Replaces {
		staged := item.StagedKey(t.Item.ID, res.Artifacts[name])
		data, err := t.assigned.Store.Get(ctx, staged)
		if errors.Is(err, storage.ErrNotFound) { // another worker has moved it
			continue
		}
		if err == nil {
			err = t.assigned.Store.Put(ctx, item.Key(t.Item.ID, name), data)
		}
		if err == nil {
			err = t.assigned.Store.Delete(ctx, staged)
		}
		if err != nil {
			return fmt.Errorf("replace %s of another attempt: %w", name, err)
		}
	}
	return nil
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

// readResult reads the stored result of an item, and sees to it that all files are those of the result.
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
	if err := t.replace(ctx, &res); err != nil {
		return nil, err
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
		runtime = job.RuntimeOf(t.assigned.Engine, t.Plan, t.Batch, c.cfg.Version)
	}
	return &item.Result{
		Schema: item.SchemaVersion, Item: t.Item.Public(), Outcome: o, Reason: reason, Runtime: runtime,
		Seconds: t.Seconds, Worker: c.cfg.Name, Pool: c.cfg.Pool, Attempt: t.lease.Attempt(),
		TraceID:  trace.SpanContextFromContext(t.ctx).TraceID().String(),
		Finished: c.cfg.Now().UTC(),
	}
}
