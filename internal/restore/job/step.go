package job

import (
	"context"
	"errors"
	"fmt"

	"ddiff/internal/restore/solver"
)

// errFirstStep ends a run after its first step.
var errFirstStep = errors.New("the first step is made")

// SolveStep makes the first step of a planned item with a grey image.
func (s Loader) SolveStep(ctx context.Context, planned *Job) error {
	j := &Job{Item: planned.Item, Op: planned.Op, Plan: planned.Plan, Problem: solver.Problem{Key: planned.Problem.Key}}
	j.draw = j.Op.Draw(j.Problem.Key) // a random mask or kernel takes as much memory as that of a file
	if err := j.encodeDraw(); err != nil {
		return err
	}
	var err error
	grey := make([]float32, j.Op.Image.Size())
	if j.Problem.Y, err = s.Engine.Measure(ctx, j.Op, grey, j.Problem.Draw, j.noise(), j.Problem.Key); err != nil {
		return err
	}
	batch := Batch{Engine: s.Engine, Jobs: []*Job{j}, Step: func(int) error { return errFirstStep }}
	if err := batch.Solve(ctx); err != nil && !errors.Is(err, errFirstStep) {
		return fmt.Errorf("solve %s at %d×%d: %w", j.Plan.Task, j.Item.Width, j.Item.Height, err)
	}
	return nil
}
