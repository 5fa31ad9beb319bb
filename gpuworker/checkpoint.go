package gpuworker

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"

	"ddiff/restore/solver"
	"ddiff/storage"
)

// checkpoint is a half-solved item, written when a worker drains and read by the next one.
// Its key depends on the item alone, and so does its content: whoever goes on comes to the
// result of an undisturbed run.
type checkpoint struct {
	State  solver.State
	Curves solver.Curves
}

func checkpointKey(id string) string { return "checkpoints/" + id }

// save writes the states of a batch that was stopped after a chunk. Without a checkpoint the
// next worker starts over, so an error is only worth a warning.
func (w *Worker) save(ctx context.Context, b batch, states []solver.State, curves []solver.Curves) {
	ctx = context.WithoutCancel(ctx)
	for i, t := range b.tasks {
		if states[i].Step == 0 {
			continue
		}
		var buf bytes.Buffer
		err := gob.NewEncoder(&buf).Encode(checkpoint{states[i], curves[i]})
		if err == nil {
			err = w.cfg.Store.Put(ctx, checkpointKey(t.item.ID), buf.Bytes())
		}
		if err != nil {
			w.cfg.Logger.Warn("could not keep the state of a half-solved item", "item", t.name(), "reason", err)
			continue
		}
		w.cfg.Logger.Info("kept the state of a half-solved item", "item", t.name(), "step", states[i].Step)
	}
}

// load finds the state from which an item goes on. A checkpoint that cannot be read, or does
// not fit, is passed over: the item starts from the beginning.
func (w *Worker) load(ctx context.Context, t *task) error {
	data, err := w.cfg.Store.Get(ctx, checkpointKey(t.item.ID))
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	var c checkpoint
	size := t.op.Image.Size()
	err = gob.NewDecoder(bytes.NewReader(data)).Decode(&c)
	if err != nil || len(c.State.X) != size || len(c.State.U) != size || len(c.State.XBefore) != size ||
		len(c.State.ZBefore) != size || len(c.Curves.Time) != c.State.Step || c.State.Step >= t.plan.Solver.Steps {
		w.cfg.Logger.Warn("passed over a damaged checkpoint", "item", t.name(), "reason", err)
		return nil
	}
	t.begun = &c
	return nil
}

// forget removes the checkpoint of a finished item.
func (w *Worker) forget(ctx context.Context, t *task) {
	if t.begun == nil {
		return
	}
	if err := w.cfg.Store.Delete(ctx, checkpointKey(t.item.ID)); err != nil {
		w.cfg.Logger.Warn("could not remove a checkpoint", "item", t.name(), "reason", err)
	}
}
