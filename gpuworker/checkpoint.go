package gpuworker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"

	"ddiff/internal/restore/job"
	"ddiff/restore/item"
	"ddiff/storage"
)

func checkpointKey(id string) string { return item.CheckpointsFolder + id }

// encodeCheckpoint returns a SHA-256 and the encoded checkpoint. The checksum includes the item's ID: it reveals a state that a disk
// has changed or that belongs to another item. Nothing would distinguish the image restored from it from a correct one.
func encodeCheckpoint(c *job.Checkpoint, id string) ([]byte, error) {
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

// decodeCheckpoint is the inverse of encodeCheckpoint.
func decodeCheckpoint(data []byte, id string) (*job.Checkpoint, error) {
	if len(data) < sha256.Size || checksum(id, data[sha256.Size:]) != [sha256.Size]byte(data) {
		return nil, errors.New("wrong checksum")
	}
	c := new(job.Checkpoint)
	return c, gob.NewDecoder(bytes.NewReader(data[sha256.Size:])).Decode(c)
}

// storeCheckpoints stores what a draining worker has reached: the next one goes on from it. An error is logged only: the next worker then starts from the beginning.
func (e engineRestorer) storeCheckpoints(ctx context.Context, tasks []*task) {
	a := e.watchdog.Begin(context.WithoutCancel(ctx), "checkpoint", e.cfg.Limits.Finish, tasks...)
	defer a.End()
	for _, t := range tasks {
		if t.Reached == nil {
			continue
		}
		data, err := encodeCheckpoint(t.Reached, t.Item.ID)
		if err == nil {
			err = t.assigned.Store.Put(a.Ctx, checkpointKey(t.Item.ID), data)
		}
		if err != nil {
			e.log(t).Warn("could not store a checkpoint", "reason", err)
			continue
		}
		e.log(t).Info("stored a checkpoint", "step", t.Reached.State.Step)
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
	c, err := decodeCheckpoint(data, t.Item.ID)
	if err == nil {
		err = t.Resume(t.assigned.Engine, c)
	}
	if err != nil {
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
