package guard

import (
	"cmp"
	"fmt"
	"time"

	"ddiff/restore/solver"
)

const (
	// chunkFactor is the ratio of a chunk's limit to the measured duration of chunks. A machine under load slows down by
	// less.
	chunkFactor = 20
	// chunkFloor is the ratio of Limits.Solve to the least limit of a chunk after a measured chunk.
	chunkFloor = 10
	// maxImages is the number of images of a batch up to which the limit of an unmeasured chunk grows.
	maxImages = 8
)

// Limits are the longest durations of the stages of a worker. A stage that exceeds its limit has hung: it is interrupted,
// the attempt at its items counts, and the worker ends with ErrHung. The time while the process is suspended does not count.
type Limits struct {
	// Prepare limits reading an item's files, and measuring, beside the wait for a chunk of the solver on the same device.
	// Default: 30 min.
	Prepare time.Duration
	// Compile limits the compilation of a model, for which TensorRT needs many minutes. Default: 30 min.
	Compile time.Duration
	// Solve limits a chunk of steps whose duration is unknown, for each image of the batch, for at most eight images.
	// Default: 15 min. When the tuner has measured the workload, the limit is at least 20 times the expected duration.
	// After the first chunk of a batch, the limit of a chunk is 20 times the longest one so far, at least a tenth of
	// Solve.
	Solve time.Duration
	// Finish limits scoring and storing a result, and settling the item. Default: 30 min.
	Finish time.Duration
	// Drain is the time for a chunk to end after the worker begins to drain. Then the chunk is interrupted. Default: 5 s.
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
		Prepare: cmp.Or(l.Prepare, 30*time.Minute), Compile: cmp.Or(l.Compile, 30*time.Minute),
		Solve: cmp.Or(l.Solve, 15*time.Minute), Finish: cmp.Or(l.Finish, 30*time.Minute),
		Drain: cmp.Or(l.Drain, 5*time.Second), Stop: cmp.Or(l.Stop, 10*time.Second),
	}
}

// Measure returns the limit of measuring. A call of the runtime may wait for a chunk of the solver, which has a limit of its
// own.
func (l Limits) Measure() time.Duration { return l.Prepare + maxImages*l.Solve }

// FirstChunk returns the limit of the first chunk of a batch, of which expected is the duration, or 0.
func (l Limits) FirstChunk(images int, expected time.Duration) time.Duration {
	return max(l.Solve*time.Duration(min(images, maxImages)), chunkFactor*expected)
}

// FirstStep returns the limit of the first step of an image in tiles, of which expected is the duration, or 0. An image has as long for a step in
// ten tiles as for ten steps.
func (l Limits) FirstStep(tiles int, expected time.Duration) time.Duration {
	return max(l.Solve*time.Duration(1+tiles/solver.DefaultChunk), chunkFactor*expected)
}

// NextChunk returns the limit of another chunk after the longest one.
func (l Limits) NextChunk(longest time.Duration) time.Duration {
	return max(l.Solve/chunkFloor, chunkFactor*longest)
}
