package solver

import (
	"errors"
	"slices"
	"testing"

	"ddiff/restore/operator"
)

// TestKeeps: states that are kept change no bit of the result, and are those of an undisturbed run; an error of progress may come between.
func TestKeeps(t *testing.T) {
	t.Parallel()
	const steps = 5
	op := newOperator(t, operator.GaussianDeblur, small)
	s := newSolver(t, bundled(t), op, config(t, op.Task, steps), 2)
	probs := problems(t, op, 2, 0.05)
	want := solve(t, s, probs)
	at := func(step int) bool { return step == 0 || step == 2 || step == 3 || step == steps }
	got, err := s.SolveKeeping(t.Context(), probs, at, nil)
	must(t, err)
	for i, x := range got {
		if !slices.Equal(x.X, want[i].X) || !slices.Equal(x.Curves.Time, want[i].Curves.Time) {
			t.Errorf("image %d has other bits", i)
		}
		if !slices.Equal(x.Kept.Steps, []int{0, 2, 3, steps}) || !slices.Equal(x.Kept.Images[0], s.Start(probs[i].Key).Image()) || !slices.Equal(x.Kept.Images[3], x.X) {
			t.Errorf("image %d: the states after %v are wrong", i, x.Kept.Steps)
		}
	}
	stop := errors.New("stop")
	states, kept := []State{s.Start(probs[0].Key), s.Start(probs[1].Key)}, make([]Kept, 2)
	err = s.ResumeKeeping(t.Context(), probs, states, nil, at, kept, func(step int) error {
		if step == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || !slices.Equal(kept[0].Steps, []int{0}) {
		t.Fatalf("%v, %v", err, kept[0].Steps)
	}
	must(t, s.ResumeKeeping(t.Context(), probs, states, nil, at, kept, nil))
	for i := range kept {
		if !slices.Equal(kept[i].Steps, got[i].Kept.Steps) || !slices.EqualFunc(kept[i].Images, got[i].Kept.Images, slices.Equal) {
			t.Errorf("image %d: other states after an interruption", i)
		}
	}
}
