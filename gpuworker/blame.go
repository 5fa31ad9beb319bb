package gpuworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ddiff/internal/queue"
	"ddiff/storage"
	"ddiff/telemetry"
)

// attemptStart records that a worker started a suspect alone. A worker cannot report its own death by a signal: a start
// that no answer has withdrawn is the evidence against the item.
type attemptStart struct {
	Worker  string `json:"worker"`
	Round   int    `json:"round,omitempty"`
	Attempt int    `json:"attempt"`
	// Ended is the number of workers that had ended before, see [Config.Ended]; -1 if it is not known.
	Ended int       `json:"ended"`
	At    time.Time `json:"at"`
	// Stage is the last stage that began, see the Stage constants of package telemetry.
	Stage string `json:"stage"`
}

// crashError: the item has ended all workers that ran it alone.
type crashError struct{ starts []attemptStart }

func (e crashError) Error() string {
	ends := make([]string, len(e.starts))
	for i, s := range e.starts {
		ends[i] = fmt.Sprintf("%s (attempt %d, began %s, last stage %s, no answer: killed by a signal, crashed or hung)",
			s.Worker, s.Attempt, s.At.Format(time.RFC3339), s.Stage)
	}
	return fmt.Sprintf("the item ended %d workers that held no other item: %s", len(ends), strings.Join(ends, "; "))
}

// startsKey is the storage key of the starts of an item that have no answer. Workers may write and delete checkpoints.
func startsKey(id string) string { return checkpointKey(id) + ".starts" }

// readStarts returns the starts of an item in its present round.
func (t *task) readStarts(ctx context.Context) ([]attemptStart, error) {
	data, err := t.assigned.Store.Get(ctx, startsKey(t.Item.ID))
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read earlier starts: %w", err)
	}
	var all, present []attemptStart
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, nil //nolint:nilerr // a damaged record is no evidence
	}
	for _, s := range all {
		if s.Round == t.lease.Round() {
			present = append(present, s)
		}
	}
	return present, nil
}

// writeStarts stores the starts of an item. Without starts it deletes the record.
func (t *task) writeStarts(ctx context.Context, starts []attemptStart) error {
	if len(starts) == 0 {
		return t.assigned.Store.Delete(ctx, startsKey(t.Item.ID))
	}
	data, err := json.Marshal(starts)
	if err != nil {
		return err
	}
	return t.assigned.Store.Put(ctx, startsKey(t.Item.ID), data)
}

// proof returns the number of starts without an answer that prove that an item ends its workers, when ended workers have ended so far:
// one less than the attempts, because the first attempt shares a batch, and at least one. Workers that are preempted or killed for lack of
// memory end with any item: if more of the others have ended since the first start than of the item's own, or their number is not known,
// the proof takes several times as many.
func proof(starts []attemptStart, attempts, ended int) int {
	least := max(1, attempts-1)
	if len(starts) < least {
		return least
	}
	others := ended - starts[0].Ended - len(starts)
	if ended < 0 || starts[0].Ended < 0 || ended < starts[0].Ended || others > len(starts) { // fewer ends: another leader counts anew
		return queue.Deliveries(attempts)
	}
	return least
}

// ended returns Config.Ended: -1 if it is not known, and 0 without a cluster.
func (c *core) ended(ctx context.Context, t *task) int {
	if c.cfg.Ended == nil {
		return 0
	}
	n, err := c.cfg.Ended(ctx, t.assigned.Campaign)
	if err != nil {
		c.log(t).Debug("could not read how many workers have ended", "reason", err)
		return -1
	}
	return n
}

// recordStart records the start of a suspect. It returns a crashError when no attempts are left and the item has ended
// enough workers alone, see proof. An item that only lost attempts in the company of others gets another attempt.
func (c *core) recordStart(ctx context.Context, t *task) error {
	if !suspect(t.lease) {
		return nil
	}
	starts, err := t.readStarts(ctx)
	if err != nil {
		return err
	}
	ended := c.ended(ctx, t)
	if t.lease.Exhausted() && len(starts) >= proof(starts, t.lease.MaxAttempts(), ended) {
		return crashError{starts}
	}
	starts = append(starts, attemptStart{
		Worker: c.cfg.Name, Round: t.lease.Round(), Attempt: t.lease.Attempt(), Ended: ended, At: c.cfg.Now().UTC(), Stage: telemetry.StageFetch,
	})
	t.starts = starts
	if err := t.writeStarts(ctx, t.starts); err != nil {
		return fmt.Errorf("record the start of a suspect: %w", err)
	}
	return nil
}

// recordStage updates the stage of a recorded start. An error is logged only.
func (c *core) recordStage(ctx context.Context, t *task, stage string) {
	if len(t.starts) == 0 {
		return
	}
	t.starts[len(t.starts)-1].Stage = stage
	if err := t.writeStarts(ctx, t.starts); err != nil {
		c.log(t).Warn("could not record a stage", "stage", stage, "reason", err)
	}
}

// withdrawStart removes the record of this attempt, which has an answer. A settled item needs no record at all.
func (c *core) withdrawStart(ctx context.Context, t *task, settled bool) {
	if !suspect(t.lease) || t.Item.ID == "" {
		return
	}
	var left []attemptStart
	if !settled && len(t.starts) > 0 {
		left = t.starts[:len(t.starts)-1]
	} else if !settled {
		return
	}
	t.starts = nil
	if err := t.writeStarts(ctx, left); err != nil {
		c.log(t).Warn("could not remove the record of a start", "reason", err)
	}
}
