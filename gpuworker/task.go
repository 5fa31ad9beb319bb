package gpuworker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"ddiff/gpuworker/job"
	"ddiff/gpuworker/tuner"
	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore"
	"ddiff/restore/method"
	"ddiff/restore/parameter"
)

// task is a leased item in flight.
type task struct {
	job.Job

	lease      *queue.Lease
	assigned   *assigned
	ctx        context.Context // with the trace of the item
	leased     time.Time
	checkpoint *checkpoint    // nil when the item starts from the beginning
	starts     []attemptStart // of a suspect, the last one is this attempt's
	fault      error          // the device's failure that ended the worker

	seconds float64
	cost    method.Cost
	batch   int
	written int    // size of the largest file that was written last
	end     string // outcome of an attempt that did not restore the item

	// preflight is set instead of item and the fields derived from it, see preflight.go.
	preflight *manifest.Preflight
	checked   *manifest.Checked
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
	e, image := t.assigned.Engine, t.Plan.Image
	rt := e.RuntimeFor(t.Plan)
	return tuner.Workload{
		Prior: e.Prior().SHA256, Provider: rt.Provider(), Device: rt.Device(),
		Runtime: runtimeDigest(e, t.Plan), Channels: image.Channels, Height: image.Height, Width: image.Width, Operator: ownDigest(t.Plan),
	}
}

// ownDigest returns the digest of a plan's operator file, empty for a built-in operator.
func ownDigest(p restore.Plan) string {
	if p.Own == nil {
		return ""
	}
	return p.Own.SHA256
}

// runtimeDigest identifies the runtime settings that may affect speed.
func runtimeDigest(e *restore.Engine, p restore.Plan) string {
	rt := e.RuntimeFor(p)
	build := e.Build(p)
	build.Precision = parameter.Precision(build.Precision.Short()) // as in the files of earlier versions
	settings := []any{rt.Version(), rt.Threads(), rt.Settings(), build}
	if p.Divided() {
		settings = append(settings, p.Tiles)
	}
	return digestOf(settings)
}

// digestOf returns a short digest of strings, numbers and maps, whose keys are sorted.
func digestOf(settings []any) string {
	data, _ := json.Marshal(settings)
	return regular.SHA256(data)[:12]
}

// decode decodes the message of an item.
func (t *task) decode() error {
	var err error
	if t.Item, err = manifest.DecodeItem(t.lease.Payload()); errors.Is(err, manifest.ErrNewer) {
		return job.Unsupported(err)
	} else if err != nil {
		return job.InputError("read work item %s: %w", t.lease.ID(), err)
	}
	if t.Item.ID != t.lease.ID() {
		return job.InputError("read work item %s: its payload is item %q", t.lease.ID(), t.Item.ID)
	}
	return nil
}
