package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/solver"
	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/parameter"
)

// Batch solves jobs of equal plans and equal progress together. The caller has the device while Solve runs, except within Yield.
type Batch struct {
	Engine *restore.Engine
	Jobs   []*Job
	// Now is the clock. Default: time.Now.
	Now func() time.Time

	// Begin is called when the solver is compiled, and again when it is compiled after Yield. Optional.
	Begin func(Course)
	// Step is called after every step with the number of steps made. An error ends Solve, unless no step is left; ErrYield calls Yield. Optional.
	Step func(step int) error
	// Tile is called within a step with its share that was made. Optional.
	Tile func(share float64)
	// Yield lets others use the device and the engine after a step that returned ErrYield, and returns when they have. An error ends Solve.
	Yield func() error

	course   Course
	problems []solver.Problem
	states   []solver.State
	kept     []solver.Kept
}

// ErrYield is returned by Batch.Step for others that wait for the device.
var ErrYield = errors.New("others wait for the device")

// Course tells what a batch is about to do.
type Course struct {
	// Done of Steps steps were made before.
	Done, Steps int
	// Tiles is the number of tiles of an image, 1 for images that are not divided.
	Tiles int
	// Cost is that of a whole run of one image.
	Cost method.Cost
	// Curves are those of each job, which every step extends.
	Curves []solver.Curves
}

// Checkpoint is the state of a job between two steps. It depends on the job's item alone, so that a job that goes on from it has the result of an undisturbed one.
type Checkpoint struct {
	State  solver.State
	Curves solver.Curves
	// Precision is that of the steps so far.
	Precision parameter.Precision
	// Seconds are the job's share of the solver time of the steps so far.
	Seconds float64
}

// Resume makes Solve go on from a checkpoint of the planned job. It returns an error if the checkpoint does not fit.
func (j *Job) Resume(e *restore.Engine, from *Checkpoint) error {
	run, err := e.Run(j.Plan)
	if err != nil {
		return err
	}
	if !solver.Fits(run, from.State, from.Curves) {
		return errors.New("the checkpoint belongs to another problem")
	}
	if now := e.Build(j.Plan).Precision; from.Precision != "" && from.Precision != now {
		return fmt.Errorf("its steps were computed in %s, this worker computes in %s", from.Precision, now)
	}
	j.Checkpoint = from
	return nil
}

// Compile compiles the solver, which Solve of a batch of this size and plan then finds.
func (b *Batch) Compile(ctx context.Context) error {
	_, err := b.solver(ctx)
	return err
}

func (b *Batch) solver(ctx context.Context) (*solver.Solver, error) {
	return b.Engine.Solver(ctx, b.Jobs[0].Plan, len(b.Jobs))
}

// Solve solves the measured jobs from their starts or checkpoints, which stay: a failed batch may be solved again. Each job then has its Solution, or after an error
// what it has Reached, and what the solver took. The end of the context ends a step. Errors are those of [restore.Engine.Solver] and of the solver, and those of
// Step and Yield.
func (b *Batch) Solve(ctx context.Context) error {
	s, err := b.solver(ctx)
	if err != nil {
		return err
	}
	cost, err := s.Cost()
	if err != nil {
		return err
	}
	at, err := item.KeptStates(b.Jobs[0].Item.KeepStates)
	if err != nil {
		return err
	}
	n, now := len(b.Jobs), b.Now
	if now == nil {
		now = time.Now
	}
	b.problems, b.states, b.kept = make([]solver.Problem, n), make([]solver.State, n), make([]solver.Kept, n)
	b.course = Course{Steps: s.Steps(), Tiles: s.Tiles(), Cost: cost, Curves: make([]solver.Curves, n)}
	_ = prior.Beside(n, func(i int) error {
		j := b.Jobs[i]
		if b.problems[i] = j.Problem; j.Checkpoint == nil {
			b.states[i] = s.Start(j.Problem.Key)
		} else { // the solver works in place
			b.states[i], b.course.Curves[i] = j.Checkpoint.State.Clone(), j.Checkpoint.Curves.Clone()
		}
		return nil
	})
	b.course.Done = b.states[0].Step
	begin := now()
	answers, err := b.solve(ctx, s, at)
	seconds := now().Sub(begin).Seconds() / float64(n)
	for i, j := range b.Jobs {
		j.Reached, j.Seconds = nil, seconds
		if j.Checkpoint != nil {
			j.Seconds += j.Checkpoint.Seconds
		}
		switch {
		case err == nil:
			j.Solution, j.Batch, j.Cost = solver.Solution{X: answers[i], Curves: b.course.Curves[i], Kept: b.kept[i]}, n, item.Cost(cost)
		case b.states[i].Step > 0 && at == nil: // a checkpoint lacks the states that are kept
			j.Reached = &Checkpoint{b.states[i], b.course.Curves[i], b.Engine.Build(j.Plan).Precision, j.Seconds}
		}
	}
	return err
}

// solve makes the steps that are left, and returns the answers.
func (b *Batch) solve(ctx context.Context, s *solver.Solver, at func(step int) bool) ([][]float32, error) {
	step := func(made int) error {
		if b.Step == nil {
			return nil
		}
		if err := b.Step(made); made < b.course.Steps {
			return err
		}
		return nil
	}
	for {
		if b.Begin != nil {
			b.Begin(b.course)
		}
		s.Watch(b.Tile)
		err := s.ResumeKeeping(ctx, b.problems, b.states, b.course.Curves, at, b.kept, step)
		s.Watch(nil)
		if err == nil {
			return s.Answers(ctx, b.states)
		}
		if errors.Is(err, ErrYield) {
			err = b.Yield()
		}
		if err != nil {
			return nil, err
		}
		if s, err = b.solver(ctx); err != nil { // others may have used or closed the former one
			return nil, err
		}
	}
}
