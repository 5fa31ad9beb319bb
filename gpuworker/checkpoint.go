package gpuworker

import (
	"bytes"
	"context"
	"crypto/sha256"
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

// encode gives the checkpoint's bytes: a SHA-256 and what it is of. A state that a disk has
// changed would otherwise be solved on, to an image that nothing tells from a right one.
func (c checkpoint) encode() ([]byte, error) {
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(c); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body.Bytes())
	return append(sum[:], body.Bytes()...), nil
}

// decodeCheckpoint reads what encode wrote, and makes sure that it fits the item.
func decodeCheckpoint(data []byte, t *task) (*checkpoint, error) {
	if len(data) < sha256.Size || sha256.Sum256(data[sha256.Size:]) != [sha256.Size]byte(data) {
		return nil, errors.New("its checksum is wrong")
	}
	var c checkpoint
	if err := gob.NewDecoder(bytes.NewReader(data[sha256.Size:])).Decode(&c); err != nil {
		return nil, err
	}
	run, err := t.on.Engine.Run(t.plan)
	if err != nil {
		return nil, err
	}
	if !solver.Fits(run, c.State, c.Curves) {
		return nil, errors.New("it belongs to another problem")
	}
	return &c, nil
}

// begin returns a copy of state and curves. The solver works in place, and a batch that fails is retried item by item from
// the checkpoint.
func (c *checkpoint) begin() (solver.State, solver.Curves) { return c.State.Clone(), c.Curves.Clone() }

// save writes the states of a batch that was stopped after a chunk. Without a checkpoint the
// next worker starts over, so an error is only worth a warning.
func (w *Worker) save(ctx context.Context, b batch, states []solver.State, curves []solver.Curves) {
	ctx = context.WithoutCancel(ctx)
	for i, t := range b.tasks {
		if states[i].Step == 0 {
			continue
		}
		data, err := checkpoint{states[i], curves[i]}.encode()
		if err == nil {
			err = t.on.Store.Put(ctx, checkpointKey(t.item.ID), data)
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
	data, err := t.on.Store.Get(ctx, checkpointKey(t.item.ID))
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	if t.begun, err = decodeCheckpoint(data, t); err != nil {
		w.cfg.Logger.Warn("passed over a damaged checkpoint", "item", t.name(), "reason", err)
		w.forget(ctx, t)
	}
	return nil
}

// forget removes the checkpoint of an item that is finished, or begins anew.
func (w *Worker) forget(ctx context.Context, t *task) {
	if err := t.on.Store.Delete(ctx, checkpointKey(t.item.ID)); err != nil {
		w.cfg.Logger.Warn("could not remove a checkpoint", "item", t.name(), "reason", err)
	}
}
