package guard

import (
	"errors"
	"fmt"
	"time"

	"ddiff/internal/failure"
)

// Errors with which a worker ends.
var (
	// ErrHung: a stage exceeded its limit, or did not end when its campaign was cancelled. The device may be unusable: a
	// new process should continue.
	ErrHung = failure.New(failure.Hung, "the worker hung")
	// ErrStuck: as ErrHung, and the stage still runs. The process must exit without closing the engine, the runtime and
	// the stores.
	ErrStuck = errors.New("a stage does not return")
)

// HangError is a stage that hung. It is an ErrHung.
type HangError struct {
	Stage string
	Took  time.Duration
	// Limit is the limit of the stage; 0: the stage ignored an interruption for the time Took.
	Limit time.Duration
	// Items is the number of items in the stage.
	Items int
}

// InCompany reports whether an item hung in a stage with other items, which may be to blame.
func InCompany(err error) bool {
	var hang *HangError
	return errors.As(err, &hang) && hang.Items > 1
}

func (e *HangError) Error() string {
	took := e.Took.Round(time.Millisecond)
	if e.Limit == 0 {
		return fmt.Sprintf("%v: stage %s did not end within %v after its interruption", ErrHung, e.Stage, took)
	}
	return fmt.Sprintf("%v: stage %s took %v, its limit is %v", ErrHung, e.Stage, took, e.Limit)
}

// Unwrap returns ErrHung.
func (e *HangError) Unwrap() error { return ErrHung }
