package gpuworker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"

	"ddiff/restore/item"
	"ddiff/restore/parameter"
	"ddiff/restore/solver"
	"ddiff/storage"
)

// checkpoint is the state of an unfinished item. A draining worker stores it, and the next worker resumes from it. Key
// and content depend on the item alone, so that the resumed item has the result of an uninterrupted run.
type checkpoint struct {
	State  solver.State
	Curves solver.Curves
	// Precision is that of the steps so far.
	Precision parameter.Precision
	// Seconds are the item's share of the solver time of the steps so far.
	Seconds float64
}

// spent returns the solver time of earlier attempts at an item, in seconds.
func (t *task) spent() float64 {
	if t.checkpoint == nil {
		return 0
	}
	return t.checkpoint.Seconds
}

func checkpointKey(id string) string { return item.CheckpointsFolder + id }

// encode returns a SHA-256 and the encoded checkpoint. The checksum includes the item's ID: it reveals a state that a disk
// has changed or that belongs to another item. Nothing would distinguish the image restored from it from a correct one.
func (c checkpoint) encode(id string) ([]byte, error) {
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(c); err != nil {
		return nil, err
	}
	sum := checksum(id, body.Bytes())
	return append(sum[:], body.Bytes()...), nil
}

func checksum(id string, body []byte) [sha256.Size]byte {
	return sha256.Sum256(append([]byte(id), body...))
}

// readCheckpoint is the inverse of encode.
func readCheckpoint(data []byte, id string) (c checkpoint, err error) {
	if len(data) < sha256.Size || checksum(id, data[sha256.Size:]) != [sha256.Size]byte(data) {
		return c, errors.New("wrong checksum")
	}
	err = gob.NewDecoder(bytes.NewReader(data[sha256.Size:])).Decode(&c)
	return c, err
}

// decodeCheckpoint reads the checkpoint of an item. It returns an error when the checkpoint does not fit the item.
func decodeCheckpoint(data []byte, t *task) (*checkpoint, error) {
	c, err := readCheckpoint(data, t.Item.ID)
	if err != nil {
		return nil, err
	}
	run, err := t.assigned.Engine.Run(t.Plan)
	if err != nil {
		return nil, err
	}
	if !solver.Fits(run, c.State, c.Curves) {
		return nil, errors.New("the checkpoint belongs to another problem")
	}
	if now := t.assigned.Engine.Build(t.Plan).Precision; c.Precision != "" && c.Precision != now {
		return nil, fmt.Errorf("its steps were computed in %s, this worker computes in %s", c.Precision, now)
	}
	return &c, nil
}

// storeCheckpoints stores the states of a batch that was stopped after a step. An error is logged only: the next worker
// then starts from the beginning. Seconds is the solver time of this attempt, for each item.
func (e engineRestorer) storeCheckpoints(ctx context.Context, tasks []*task, states []solver.State, curves []solver.Curves, seconds float64) {
	a := e.watchdog.Begin(context.WithoutCancel(ctx), "checkpoint", e.cfg.Limits.Finish, tasks...)
	defer a.End()
	for i, t := range tasks {
		if states[i].Step == 0 {
			continue
		}
		data, err := checkpoint{states[i], curves[i], t.assigned.Engine.Build(t.Plan).Precision, t.spent() + seconds}.encode(t.Item.ID)
		if err == nil {
			err = t.assigned.Store.Put(a.Ctx, checkpointKey(t.Item.ID), data)
		}
		if err != nil {
			e.log(t).Warn("could not store a checkpoint", "reason", err)
			continue
		}
		e.log(t).Info("stored a checkpoint", "step", states[i].Step)
	}
}

// loadCheckpoint loads the checkpoint of an item, if there is one. It deletes a damaged checkpoint or one that does not
// fit; the item then starts from the beginning, as does one that keeps states, which a checkpoint lacks.
func (e engineRestorer) loadCheckpoint(ctx context.Context, t *task) error {
	if t.Item.KeepStates != "" {
		return nil
	}
	data, err := t.assigned.Store.Get(ctx, checkpointKey(t.Item.ID))
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	if t.checkpoint, err = decodeCheckpoint(data, t); err != nil {
		e.log(t).Warn("ignored a checkpoint that is damaged or does not fit", "reason", err)
		e.deleteCheckpoint(ctx, t)
	}
	return nil
}

func (e engineRestorer) deleteCheckpoint(ctx context.Context, t *task) {
	if err := t.assigned.Store.Delete(ctx, checkpointKey(t.Item.ID)); err != nil {
		e.log(t).Warn("could not delete a checkpoint", "reason", err)
	}
}
