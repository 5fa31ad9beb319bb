package gpuworker

import (
	"context"
	"errors"

	"ddiff/gpuworker/guard"
	"ddiff/restore/job"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
)

// errCancelled: the campaign was cancelled immediately.
var errCancelled = errors.New("the campaign is cancelled")

// errSuspended: the worker tests its environment before it starts another item.
var errSuspended = errors.New("the worker is suspended")

// kind is the class of an outcome.
type kind int

const (
	done      kind = iota // written: publish and acknowledge
	failed                // bad input: publish and acknowledge
	retried               // another error: retry later, or bury after the last attempt
	disputed              // perhaps the worker's fault: ask another worker; after a second opinion: failed, or buried
	faulted               // the worker's environment failed: return to the queue, without using the attempt
	suspended             // the worker is suspended: return to the queue
	released              // the worker drains: return to the queue
	refused               // this version of ddiff cannot process the item: leave it to other workers
	cancelled             // the campaign is cancelled: acknowledge without a result
)

// String returns the name of the kind in spans.
func (k kind) String() string {
	return [...]string{"done", "failed", "retried", "disputed", "faulted", "suspended", "released", "refused", "cancelled"}[k]
}

// outcome is the end of one attempt at one item.
type outcome struct {
	kind kind
	err  error
}

// outcomeOf classifies an error of any stage; ctx ends when the worker drains.
func outcomeOf(ctx context.Context, t *task, err error) outcome {
	switch {
	case err == nil:
		return outcome{kind: done}
	case t.assigned.cancelled():
		return outcome{cancelled, err}
	case errors.Is(err, guard.ErrHung):
		return outcome{retried, err}
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return outcome{released, err}
	case errors.Is(err, job.ErrUnsupported) && t.assigned.Refuse != nil:
		return outcome{refused, err}
	case errors.Is(err, errSuspended):
		return outcome{suspended, err}
	case errors.Is(err, job.ErrDigest), errors.Is(err, solver.ErrDiverged), errors.Is(err, raster.ErrNotFinite),
		errors.Is(err, raster.ErrBudget), errors.Is(err, job.ErrMemory):
		return outcome{disputed, err}
	case guard.Environmental(err):
		return outcome{faulted, err}
	case job.FromSource(err): // a file may be missing on this worker only
		return outcome{disputed, err}
	case inputFailure(err):
		return outcome{failed, err}
	}
	return outcome{retried, err}
}

// inputFailure reports whether the item's own data cannot be restored.
func inputFailure(err error) bool {
	return errors.Is(err, job.ErrInput) || errors.Is(err, job.ErrUnsupported) || errors.Is(err, job.ErrMemory) ||
		errors.Is(err, raster.ErrFormat) || errors.Is(err, raster.ErrTruncated) ||
		errors.Is(err, raster.ErrTooLarge) || errors.Is(err, raster.ErrBudget) || errors.Is(err, raster.ErrShape) || errors.Is(err, raster.ErrNotFinite) ||
		errors.Is(err, operator.ErrTask) || errors.Is(err, operator.ErrParam) || errors.Is(err, operator.ErrShape) ||
		errors.Is(err, method.ErrSetting) || errors.Is(err, solver.ErrConfig) || errors.Is(err, solver.ErrDiverged)
}
