package solver

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Kept are images of a run between its steps: x_t of most methods, decoded where the prior is latent. They are not clipped.
type Kept struct {
	Steps  []int // that were made, 0 for the start
	Images [][]float32
}

// errKeep stops a run after a step whose state is kept.
var errKeep = errors.New("a state is kept")

// ResumeKeeping is Resume that adds the images after the steps of which at reports true to kept, one for each problem. A nil at keeps none. After an error of
// progress it may be called again, with the same kept.
func (s *Solver) ResumeKeeping(ctx context.Context, problems []Problem, states []State, curves []Curves, at func(step int) bool, kept []Kept, progress func(step int) error) error {
	if at == nil {
		return s.Resume(ctx, problems, states, curves, progress)
	}
	keep := func() error {
		step := states[0].Step
		if !at(step) || len(kept[0].Steps) > 0 && kept[0].Steps[len(kept[0].Steps)-1] == step {
			return nil
		}
		images, err := s.Answers(ctx, states)
		if err != nil {
			return err
		}
		for i, x := range images {
			kept[i].Steps, kept[i].Images = append(kept[i].Steps, step), append(kept[i].Images, slices.Clone(x))
		}
		return nil
	}
	for {
		if err := keep(); err != nil {
			return err
		}
		made := 0
		err := s.Resume(ctx, problems, states, curves, func(step int) error {
			if made = step; progress != nil {
				if err := progress(step); err != nil {
					return err
				}
			}
			if at(step) && step < s.Steps() {
				return errKeep
			}
			return nil
		})
		switch {
		case err == nil:
			return keep()
		case !errors.Is(err, errKeep):
			return err
		case states[0].Step != made:
			return fmt.Errorf("keep the state after step %d: the device does not return it", made)
		}
	}
}
