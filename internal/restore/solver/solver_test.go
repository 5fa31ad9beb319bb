package solver

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

var small = operator.Shape{Channels: 3, Height: 32, Width: 48}

// An image comes out the same alone, in any place of a batch, and beside an empty place: with the bundled network for one task, with a small one for
// the others.
func TestBatchDoesNotMatter(t *testing.T) {
	t.Parallel()
	for _, info := range operator.Builtin() {
		t.Run(info.Name, func(t *testing.T) {
			t.Parallel()
			op, p := newOperator(t, info.Name, small), localPrior(t)
			if info.Name == operator.SuperResolution {
				p = bundled(t)
			}
			cfg := config(t, op.Task, 12)
			probs := problems(t, op, 3, 0.05)
			four, one := newSolver(t, p, op, cfg, 4), newSolver(t, p, op, cfg, 1)
			together := solve(t, four, probs)
			for i := range probs {
				alone := solve(t, one, probs[i:i+1])
				// One grey level of 8 bits is 2/255.
				if d := maxAbs(alone[0].X, together[i].X); !(d <= 1.0/255) {
					t.Errorf("image %d differs by %.2g", i, d)
				}
			}
		})
	}
}

// A zero residual has no gradient, not an infinite one.
func TestZeroResidual(t *testing.T) {
	t.Parallel()
	shape := operator.Shape{Channels: 1, Height: 8, Width: 8}
	variance := slices.Repeat([]float32{0.1}, shape.Size())
	p := gaussianPrior(t, 1, shape, variance)
	op := newOperator(t, operator.GaussianDeblur, shape)
	for _, gradient := range []string{method.GradientNorm, method.GradientSquared} {
		cfg := with(config(t, op.Task, 2), "gamma0", 1, "a", 1, "b", 1, "t0", 999, "sigma_rule", "full", "gradient", gradient)
		s := newSolver(t, p, op, cfg, 1)
		zero := make([]float32, shape.Size())
		states := []State{s.Start(noise.Key{})}
		clear(states[0].Image())
		must(t, s.Resume(context.Background(), []Problem{{Y: zero}}, states, make([]Curves, 1), nil))
		if d := maxAbs(states[0].Image(), zero); d != 0 {
			t.Errorf("%s: moved by %g from the solution", gradient, d)
		}
	}
}

func TestDivergenceIsNamed(t *testing.T) {
	t.Parallel()
	op := newOperator(t, operator.GaussianDeblur, small)
	cfg := with(config(t, op.Task, 20), "gradient", method.GradientSquared, "gamma0", 1e6)
	s := newSolver(t, bundled(t), op, cfg, 1)
	_, err := s.Solve(context.Background(), problems(t, op, 1, 0.05), nil)
	if !errors.Is(err, ErrDiverged) || !strings.HasPrefix(err.Error(), "step 3: diverged: ") {
		t.Errorf("error %v, want ErrDiverged in step 3", err)
	}
}

// A state that is not finite names its image and the step, also where no curve shows it.
func TestDivergedStateIsNamed(t *testing.T) {
	t.Parallel()
	op := newOperator(t, operator.HDR, small)
	run := planRun(t, twoDraws{}, method.Settings{Method: twoDraws{}.Info().Name, Steps: 4}, bundled(t), op)
	s := compile(t, onnxtest.Runtime(t), run, 2, Build{})
	probs := problems(t, op, 2, 0.05)
	states := []State{s.Start(probs[0].Key), s.Start(probs[1].Key)}
	states[1].Tensors[1].Data[7] = float32(math.Inf(1))
	err := s.Resume(t.Context(), probs, states, make([]Curves, 2), nil)
	if want := "step 1: image 2 of the batch: diverged: "; !errors.Is(err, ErrDiverged) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	probs, states = probs[:1], states[:1]
	states[0] = s.Start(probs[0].Key)
	states[0].Step = 3
	states[0].Tensors[1].Data[7] = float32(math.Inf(1))
	err = s.Resume(t.Context(), probs, states, make([]Curves, 1), nil)
	if want := "step 4: image 1 of the batch: diverged: "; !errors.Is(err, ErrDiverged) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// Values whose squares overflow are refused by name, not by a broken file later.
func TestExtremeMeasurement(t *testing.T) {
	t.Parallel()
	op := newOperator(t, operator.HDR, small)
	s := newSolver(t, bundled(t), op, config(t, op.Task, 20), 1)
	p := problems(t, op, 1, 0.05)
	p[0].Y[7] = 3e38
	if _, err := s.Solve(context.Background(), p, nil); !errors.Is(err, ErrDiverged) {
		t.Errorf("error %v, want ErrDiverged", err)
	}
}
