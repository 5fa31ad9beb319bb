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

// checkpoint is the state of a half-solved item, stored by a draining worker for the next one. Key and content depend on the
// item alone, so a resumed run has the result of an undisturbed one.
type checkpoint struct {
	State  solver.State
	Curves solver.Curves
}

func checkpointKey(id string) string { return "checkpoints/" + id }

// encode returns a SHA-256 followed by the encoded checkpoint. Without the digest, a state damaged on disk would give a wrong
// image unnoticed.
func (c checkpoint) encode() ([]byte, error) {
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(c); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body.Bytes())
	return append(sum[:], body.Bytes()...), nil
}

// decodeCheckpoint decodes the bytes of encode and checks that the state belongs to the task's item.
func decodeCheckpoint(data []byte, t *task) (*checkpoint, error) {
	if len(data) < sha256.Size || sha256.Sum256(data[sha256.Size:]) != [sha256.Size]byte(data) {
		return nil, errors.New("wrong checksum")
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
		return nil, errors.New("the checkpoint belongs to another problem")
	}
	return &c, nil
}

// copy returns state and curves. The solver works in place, and the items of a failed batch are retried from their
// checkpoints.
func (c *checkpoint) copy() (solver.State, solver.Curves) { return c.State.Clone(), c.Curves.Clone() }

// storeCheckpoints stores the states of a batch that stopped after a chunk. It logs errors: an item without a checkpoint
// starts over.
func (w *Worker) storeCheckpoints(ctx context.Context, b batch, states []solver.State, curves []solver.Curves) {
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
			w.cfg.Logger.Warn("could not store a checkpoint", "item", t.name(), "reason", err)
			continue
		}
		w.cfg.Logger.Info("stored a checkpoint", "item", t.name(), "step", states[i].Step)
	}
}

// loadCheckpoint reads the checkpoint of an item. It deletes a damaged checkpoint and one of another problem: the item then
// starts over.
func (w *Worker) loadCheckpoint(ctx context.Context, t *task) error {
	data, err := t.on.Store.Get(ctx, checkpointKey(t.item.ID))
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	if t.resumed, err = decodeCheckpoint(data, t); err != nil {
		w.cfg.Logger.Warn("ignored a damaged checkpoint", "item", t.name(), "reason", err)
		w.deleteCheckpoint(ctx, t)
	}
	return nil
}

// deleteCheckpoint deletes the checkpoint of an item that is finished or starts over.
func (w *Worker) deleteCheckpoint(ctx context.Context, t *task) {
	if err := t.on.Store.Delete(ctx, checkpointKey(t.item.ID)); err != nil {
		w.cfg.Logger.Warn("could not delete a checkpoint", "item", t.name(), "reason", err)
	}
}
