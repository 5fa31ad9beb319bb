package solver

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// streamed returns a solver of three images in two streams, and one in a single stream.
func streamed(t *testing.T, task string) (parts, whole *Solver, probs []Problem) {
	t.Helper()
	shape := operator.Shape{Channels: 3, Height: 16, Width: 16}
	p, op := bundled(t), newOperator(t, task, shape)
	run := newRun(t, p, op, config(t, task, 8))
	rt := onnxtest.Runtime(t).Threaded(2)
	parts = compile(t, rt, run, 3, Build{})
	whole = compile(t, rt, run, 3, Build{Streams: 1})
	if len(parts.streams) != 2 || len(whole.streams) != 0 {
		t.Fatalf("%d and %d streams", len(parts.streams), len(whole.streams))
	}
	return parts, whole, problems(t, op, 3, 0.05)
}

// Streams return the images and curves of one session, in the order of the problems, also for a batch that is not full.
func TestStreamsSolve(t *testing.T) {
	for _, task := range []string{operator.InpaintRandom, operator.MotionDeblur} {
		parts, whole, probs := streamed(t, task)
		for n := 1; n <= 3; n++ {
			var made [2][]int
			got, err := parts.Solve(t.Context(), probs[:n], func(step int) error { made[0] = append(made[0], step); return nil })
			must(t, err)
			want, err := whole.Solve(t.Context(), probs[:n], func(step int) error { made[1] = append(made[1], step); return nil })
			must(t, err)
			if len(made[0]) != 8 || made[0][7] != 8 || len(made[1]) != 8 {
				t.Errorf("progress after steps %v and %v", made[0], made[1])
			}
			for i := range want {
				if d := maxAbs(got[i].X, want[i].X); d > 1e-3 {
					t.Errorf("%s, image %d of %d: %v from that of one session", task, i+1, n, d)
				}
				if len(got[i].Curves.Time) != 8 || len(got[i].Curves.Curves) != len(want[i].Curves.Curves) {
					t.Errorf("%s, image %d of %d: curves %v", task, i+1, n, got[i].Curves)
				}
			}
		}
	}
}

// A run in streams stops after a step, and another solver resumes it.
func TestStreamsResume(t *testing.T) {
	parts, whole, probs := streamed(t, operator.InpaintRandom)
	want := solve(t, whole, probs)
	states, curves := make([]State, 3), make([]Curves, 3)
	for i, p := range probs {
		states[i] = parts.Start(p.Key)
	}
	stop := errors.New("stop")
	if err := parts.Resume(t.Context(), probs, states, curves, func(step int) error {
		if step == 3 {
			return stop
		}
		return nil
	}); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	for i := range states {
		if states[i].Step != 3 || len(curves[i].Time) != 3 {
			t.Errorf("image %d stopped after %d steps with curves of %d", i+1, states[i].Step, len(curves[i].Time))
		}
	}
	states[1].Step = 2
	if err := parts.Resume(t.Context(), probs, states, curves, nil); err == nil || !strings.Contains(err.Error(), "after 3 and 2 steps") {
		t.Errorf("states after different steps: %v", err)
	}
	states[1].Step = 3
	if err := parts.Resume(t.Context(), probs[:2], states, curves, nil); err == nil {
		t.Error("two problems with three states are accepted")
	}
	again := []State{states[0].Clone(), states[1].Clone(), states[2].Clone()}
	must(t, parts.Resume(t.Context(), probs, states, curves, nil))
	if err := parts.Resume(t.Context(), probs, again, nil, nil); err != nil || maxAbs(again[2].Image(), states[2].Image()) > 1e-3 {
		t.Errorf("without curves: %v", err)
	}
	for i := range want {
		if d := maxAbs(states[i].Image(), want[i].X); d > 1e-3 {
			t.Errorf("image %d: %v from an undisturbed run", i+1, d)
		}
	}
}

// An error names the image by its place in the batch, and the end of the context ends all streams.
func TestStreamsFail(t *testing.T) {
	parts, _, probs := streamed(t, operator.InpaintRandom)
	for i := range probs[2].Y {
		probs[2].Y[i] = float32(math.Inf(1))
	}
	if _, err := parts.Solve(t.Context(), probs, nil); !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "step 1") {
		t.Errorf("infinite measurement in the second stream: %v", err)
	}
	if _, err := parts.Solve(t.Context(), probs[:2], nil); err != nil {
		t.Errorf("the next batch: %v", err)
	}
	short := append(slices.Clone(probs[:2]), Problem{Y: probs[2].Y[:5], Draw: probs[2].Draw, Key: probs[2].Key})
	if _, err := parts.Solve(t.Context(), short, nil); err == nil || !strings.Contains(err.Error(), "problem 3: y has 5 elements") {
		t.Errorf("a short measurement in the second stream: %v", err)
	}
	states := []State{parts.Start(probs[0].Key), parts.Start(probs[1].Key), {}}
	if err := parts.Resume(t.Context(), probs, states, nil, nil); err == nil || !strings.Contains(err.Error(), "problem 3: 0 state tensors") {
		t.Errorf("a state without tensors in the second stream: %v", err)
	}
	states[2] = parts.Start(probs[2].Key)
	states[2].Tensors[0].Name = "other"
	if err := parts.Resume(t.Context(), probs, states, nil, nil); err == nil || !strings.Contains(err.Error(), "problem 3: method ddiff has no") {
		t.Errorf("another tensor in the second stream: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := parts.Solve(ctx, probs[:2], func(int) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// Models of streams are built at the same time, also those with gradients through the network: through the bundled one for DPS, through a small one for
// the others.
func TestStreamsOfMethods(t *testing.T) {
	op := newOperator(t, operator.SuperResolution, operator.Shape{Channels: 3, Height: 16, Width: 16})
	probs := problems(t, op, 2, 0.05)
	for _, m := range method.Builtin() {
		if m.Info().Latent {
			continue
		}
		p := localPrior(t)
		if m.Info().Name == "dps" {
			p = bundled(t)
		}
		s := compile(t, onnxtest.Runtime(t).Threaded(2), newRun(t, p, op, resolve(t, method.Request{Method: m.Info().Name, Preset: "natural", Task: op.Task, Steps: 2})), 2, Build{})
		if len(s.streams) != 2 {
			t.Errorf("%s: %d streams", m.Info().Name, len(s.streams))
		}
		if got, err := s.Solve(t.Context(), probs, nil); err != nil || len(got) != 2 {
			t.Errorf("%s: %v", m.Info().Name, err)
		}
	}
}
