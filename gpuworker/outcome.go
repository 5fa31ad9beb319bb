package gpuworker

import (
	"context"
	"errors"
	"fmt"

	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
)

// ErrInput: the item's own data cannot be restored; another attempt would not help.
var ErrInput = errors.New("input")

// errCancelled: the campaign is to stop at once.
var errCancelled = errors.New("the campaign is cancelled")

// kind is what becomes of an item.
type kind int

const (
	done      kind = iota // written: acknowledge
	failed                // the input is at fault: report and acknowledge
	retry                 // something else is at fault: try again later, or bury
	released              // the worker is draining: give back at once
	cancelled             // the campaign was cancelled: acknowledge, and report nothing
)

func (k kind) String() string {
	return [...]string{"done", "failed", "retry", "released", "cancelled"}[k]
}

// outcome is how one attempt at one item ended.
type outcome struct {
	kind kind
	err  error
}

// outcomeOf classifies an error of any stage; ctx ends when the worker drains.
func outcomeOf(ctx context.Context, t *task, err error) outcome {
	switch {
	case err == nil:
		return outcome{kind: done}
	case t.on.cancelled():
		return outcome{cancelled, err}
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return outcome{released, err}
	case errors.Is(err, ErrInput),
		errors.Is(err, raster.ErrFormat), errors.Is(err, raster.ErrTruncated),
		errors.Is(err, raster.ErrTooLarge), errors.Is(err, raster.ErrShape), errors.Is(err, raster.ErrNotFinite),
		errors.Is(err, operator.ErrTask), errors.Is(err, operator.ErrParam), errors.Is(err, operator.ErrShape),
		errors.Is(err, method.ErrSetting), errors.Is(err, solver.ErrConfig), errors.Is(err, solver.ErrDiverged):
		return outcome{failed, err}
	}
	return outcome{retry, err}
}

// inputError marks an error as the input's fault.
func inputError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInput, fmt.Errorf(format, args...))
}
