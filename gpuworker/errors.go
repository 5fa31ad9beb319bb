package gpuworker

import (
	"errors"
	"fmt"
	"time"
)

// Errors with which Worker.Run ends.
var (
	// ErrHung: a stage exceeded its limit, or did not end when its campaign was cancelled. The device may be unusable: a
	// new process should continue.
	ErrHung = errors.New("the worker hung")
	// ErrStuck: as ErrHung, and the stage still runs. The process must exit without closing the engine, the runtime and
	// the stores.
	ErrStuck = errors.New("a stage does not return")
)

// hangError is a stage that hung. It is an ErrHung.
type hangError struct {
	stage string
	took  time.Duration
	// limit is the limit of the stage; 0: the stage ignored an interruption for the time took.
	limit time.Duration
	// items is the number of items in the stage.
	items int
}

// inCompany reports whether an item hung in a stage with other items, which may be to blame.
func inCompany(err error) bool {
	var hang *hangError
	return errors.As(err, &hang) && hang.items > 1
}

func (e *hangError) Error() string {
	took := e.took.Round(time.Millisecond)
	if e.limit == 0 {
		return fmt.Sprintf("%v: stage %s did not end within %v after its interruption", ErrHung, e.stage, took)
	}
	return fmt.Sprintf("%v: stage %s took %v, its limit is %v", ErrHung, e.stage, took, e.limit)
}

// Is makes every hangError match ErrHung.
func (e *hangError) Is(target error) bool { return target == ErrHung }
