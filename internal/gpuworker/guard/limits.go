package guard

import (
	"cmp"
	"fmt"
	"time"
)

const (
	// stepFactor is the ratio of a step's limit to the measured duration of steps. A machine under load slows down by
	// less, and few methods have steps that take longer than others.
	stepFactor = 100
	// stepFloor is the ratio of Limits.Solve to the least limit of a step after a measured step.
	stepFloor = 10
	// maxImages is the number of images of a batch up to which the limit of an unmeasured step grows.
	maxImages = 8
	// tilesInStep is the number of tiles that have as long as a step.
	tilesInStep = 10
)

// The defaults of [Limits] that the help of commands states.
const (
	DefaultSolve = 15 * time.Minute
	DefaultStage = 30 * time.Minute // of Prepare, Compile and Finish
)

// Limits are the longest durations of the stages of a worker. A stage that exceeds its limit has hung: it is interrupted,
// the attempt at its items counts, and the worker ends with ErrHung. The time while the process is suspended does not count.
type Limits struct {
	// Prepare limits reading an item's files, and measuring. Default: 30 min.
	Prepare time.Duration
	// Compile limits the compilation of a model, for which TensorRT needs many minutes. Default: 30 min.
	Compile time.Duration
	// Solve limits a step whose duration is unknown, for each image of the batch, for at most eight images.
	// Default: 15 min. When the tuner has measured the workload, the limit is at least 100 times the expected duration.
	// After the first step of a batch, the limit of a step is 100 times the longest one so far, at least a tenth of
	// Solve.
	Solve time.Duration
	// Finish limits scoring and storing a result, and settling the item. Default: 30 min.
	Finish time.Duration
	// Drain is the time for a step to end after the worker begins to drain. Then the step is interrupted. Default: 5 s.
	Drain time.Duration
	// Stop is the time for an interrupted stage to return. Then the worker ends with ErrStuck. Default: 10 s.
	Stop time.Duration
}

// Validate names the first field that is out of range.
func (l Limits) Validate() error {
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"Prepare", l.Prepare}, {"Compile", l.Compile}, {"Solve", l.Solve}, {"Finish", l.Finish}, {"Drain", l.Drain}, {"Stop", l.Stop},
	} {
		if f.value < 0 {
			return fmt.Errorf("%s: %v is negative", f.name, f.value)
		}
	}
	return nil
}

// WithDefaults returns l with every zero field set to its default.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Prepare: cmp.Or(l.Prepare, DefaultStage), Compile: cmp.Or(l.Compile, DefaultStage),
		Solve: cmp.Or(l.Solve, DefaultSolve), Finish: cmp.Or(l.Finish, DefaultStage),
		Drain: cmp.Or(l.Drain, 5*time.Second), Stop: cmp.Or(l.Stop, 10*time.Second),
	}
}

// FirstStep returns the limit of the first step of a batch of images, or of one image in several tiles, of which expected is the duration, or 0.
func (l Limits) FirstStep(images, tiles int, expected time.Duration) time.Duration {
	times := min(images, maxImages)
	if tiles > 1 {
		times = 1 + tiles/tilesInStep
	}
	return max(l.Solve*time.Duration(times), stepFactor*expected)
}

// NextStep returns the limit of another step after the longest one.
func (l Limits) NextStep(longest time.Duration) time.Duration {
	return max(l.Solve/stepFloor, stepFactor*longest)
}
