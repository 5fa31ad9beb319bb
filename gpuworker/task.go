package gpuworker

import (
	"cmp"
	"context"
	"errors"
	"time"

	"ddiff/internal/gpuworker/tuner"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/job"
	"ddiff/restore/item"
)

// task is a leased item in flight.
type task struct {
	job.Job

	lease    *queue.Lease
	assigned *assigned
	ctx      context.Context // with the trace of the item
	leased   time.Time
	starts   []attemptStart // of a suspect, the last one is this attempt's
	fault    error          // the device's failure that ended the worker
	written  int            // size of the largest file that was written last

	// preflight is set instead of item and the fields derived from it, see preflight.go.
	preflight *record.Preflight
	checked   *record.Checked
}

// withoutImages returns a copy of the task for tests of the environment.
func (t *task) withoutImages() *task {
	return &task{lease: t.lease, assigned: t.assigned, ctx: t.ctx, Job: job.Job{Item: t.Item}, preflight: t.preflight, written: t.written}
}

// name returns the item's name, or its id when the message could not be decoded.
func (t *task) name() string {
	return cmp.Or(t.Item.Name, t.lease.ID())
}

// workload returns the key of the item's throughput curve.
func (t *task) workload() tuner.Workload {
	e := t.assigned.Engine
	w := tuner.Workload{
		Prior: e.Prior().SHA256, Provider: e.RuntimeFor(t.Plan).Provider(), Build: e.Build(t.Plan), Image: t.Plan.Image,
	}
	if t.Plan.Divided() {
		w.Tiles = t.Plan.Tiles
	}
	if t.Plan.Own != nil {
		w.Operator = t.Plan.Own.SHA256
	}
	return w
}

// decode decodes the message of an item.
func (t *task) decode() error {
	var err error
	if t.Item, err = record.Decode[item.Item](t.lease.Payload()); errors.Is(err, item.ErrNewer) {
		return job.Unsupported(err)
	} else if err != nil {
		return job.InputError("read work item %s: %w", t.lease.ID(), err)
	}
	if t.Item.ID != t.lease.ID() {
		return job.InputError("read work item %s: its payload is item %q", t.lease.ID(), t.Item.ID)
	}
	return nil
}
