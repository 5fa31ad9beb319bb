package solver

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// tiled divides the images of a run.
func tiled(t testing.TB, run *method.Run, tiling prior.Tiling) *method.Run {
	t.Helper()
	must(t, run.Tile(tiling))
	return run
}

// TestTiledCallsDoNotMatter: the result of an image in tiles depends neither on the tiles per call, nor on the other images of the batch, nor on
// an interruption after any step.
func TestTiledCallsDoNotMatter(t *testing.T) {
	t.Parallel()
	rt, p := onnxtest.Runtime(t), bundled(t)
	op := newOperator(t, operator.MotionDeblur, operator.Shape{Channels: 3, Height: 56, Width: 80})
	cfg, probs := config(t, op.Task, 5), problems(t, op, 2, 0.05)
	run := tiled(t, newRun(t, p, op, cfg), prior.Tiling{Side: 32, Overlap: 8})
	if run.Grid().Len() != 6 {
		t.Fatalf("%d tiles, want 6", run.Grid().Len())
	}
	want := solve(t, compile(t, rt, run, 2, Build{Tiles: 1}), probs)
	for _, tiles := range []int{5, 12, 99} {
		for i, got := range solve(t, compile(t, rt, run, 2, Build{Tiles: tiles}), probs) {
			if !slices.Equal(got.X, want[i].X) {
				t.Errorf("%d tiles per call: image %d differs by %.2g", tiles, i, maxAbs(got.X, want[i].X))
			}
		}
	}
	alone := compile(t, rt, run, 1, Build{})
	for i, prob := range probs {
		if got := solve(t, alone, []Problem{prob})[0]; !slices.Equal(got.X, want[i].X) {
			t.Errorf("image %d alone differs by %.2g", i, maxAbs(got.X, want[i].X))
		}
	}
	stop := errors.New("stop")
	states, curves := []State{alone.Start(probs[0].Key)}, make([]Curves, 1)
	for made := 1; made < 5; made++ {
		err := alone.Resume(context.Background(), probs[:1], states, curves, func(int) error { return stop })
		if !errors.Is(err, stop) || states[0].Step != made {
			t.Fatalf("after %d steps: state after %d, %v", made, states[0].Step, err)
		}
	}
	must(t, alone.Resume(context.Background(), probs[:1], states, curves, nil))
	if !slices.Equal(states[0].Image(), want[0].X) {
		t.Error("an interrupted run has another result")
	}
}

// TestOneTile: an image that one tile covers has the result of an image without tiles.
func TestOneTile(t *testing.T) {
	t.Parallel()
	rt, p := onnxtest.Runtime(t), bundled(t)
	op := newOperator(t, operator.GaussianDeblur, small)
	cfg, probs := config(t, op.Task, 6), problems(t, op, 1, 0.05)
	want := solve(t, compile(t, rt, newRun(t, p, op, cfg), 1, Build{}), probs)
	run := tiled(t, newRun(t, p, op, cfg), prior.Tiling{Side: 48, Overlap: 8})
	if got := solve(t, compile(t, rt, run, 1, Build{}), probs); run.Grid() != nil || !slices.Equal(got[0].X, want[0].X) {
		t.Error("an image that is not divided has another result")
	}
}

// localPrior is a score model of two convolutions: a pixel of its prediction depends on those at a distance of at most 2.
func localPrior(t testing.TB) *prior.Prior {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	v := g.Input("x", onnx.Float, -1, 3, -1, -1)
	time := g.Reshape(g.Mul(g.Cast(g.Input("t", onnx.Int64, -1), onnx.Float), g.Scalar(0.001)), -1, 1, 1, 1)
	for i, channels := range []int{8, 3} {
		weights := make([]float32, channels*v.Dims[1]*9)
		noise.Normal(weights, noise.Key{9}, noise.Start, uint32(i), 0.15)
		v = g.Apply("Conv", onnx.Float, []int{-1, channels, -1, -1}, map[string]any{"pads": []int{1, 1, 1, 1}, "dilations": []int{1, 1}}, v, g.Const(weights, channels, v.Dims[1], 3, 3))
		v = g.Apply("Tanh", onnx.Float, v.Dims, nil, v)
	}
	g.Output("eps", g.Add(v, time))
	data, err := g.Marshal("local")
	must(t, err)
	p, err := prior.Load("local.onnx", onnxtest.WithMetadata(t, data, map[string]string{
		"ddiff.card": "1", "ddiff.name": "local", "ddiff.prediction": "epsilon", "ddiff.schedule": linearSchedule, "ddiff.range": "-1..1",
		"ddiff.channels": "3", "ddiff.multiple_of": "4", "ddiff.learned_variance": "false", "ddiff.license": "Apache-2.0", "ddiff.size": "64",
	}))
	must(t, err)
	if p.Card.TileSide() != 64 {
		t.Errorf("a card with the size 64: tiles of %d", p.Card.TileSide())
	}
	return p
}

// TestLocalPrior: with a prior whose prediction is local, a result in tiles equals the result of the whole image within 1e-3; without overlap it does not. The radius is a
// quarter of the smaller overlap.
func TestLocalPrior(t *testing.T) {
	t.Parallel()
	rt, p := onnxtest.Runtime(t), localPrior(t)
	op := newOperator(t, operator.GaussianDeblur, operator.Shape{Channels: 3, Height: 64, Width: 88})
	cfg, probs := config(t, op.Task, 8), problems(t, op, 1, 0.05)
	want := solve(t, compile(t, rt, newRun(t, p, op, cfg), 1, Build{}), probs)[0]
	for overlap, equal := range map[int]bool{0: false, 8: true, 16: true} {
		run := tiled(t, newRun(t, p, op, cfg), prior.Tiling{Side: 32, Overlap: overlap})
		got := solve(t, compile(t, rt, run, 1, Build{}), probs)[0]
		if d := maxAbs(got.X, want.X); (d <= 1e-3) != equal {
			t.Errorf("overlap %d: differs from the whole image by %.2g", overlap, d)
		}
		norm, whole := got.Curves.Curve("data_norm"), want.Curves.Curve("data_norm")
		if d := math.Abs(norm[7]/whole[7] - 1); equal && d > 1e-3 {
			t.Errorf("overlap %d: the norm of the data term differs by %.2g", overlap, d)
		}
	}
}

// TestTiledCancellation: a cancellation ends a step between two tiles.
func TestTiledCancellation(t *testing.T) {
	t.Parallel()
	rt, p := onnxtest.Runtime(t), bundled(t)
	op := newOperator(t, operator.HDR, operator.Shape{Channels: 3, Height: 64, Width: 64})
	run := tiled(t, newRun(t, p, op, config(t, op.Task, 4)), prior.Tiling{Side: 32})
	s := compile(t, rt, run, 1, Build{})
	n, err := s.newNetwork()
	must(t, err)
	defer n.close()
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	cancel(cause)
	if err := n.predict(ctx, make([]float32, op.Image.Size()), func(float64) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("predicting tiles after a cancellation: %v", err)
	}
	if _, err := s.Solve(ctx, problems(t, op, 1, 0.05), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("solving after a cancellation: %v", err)
	}
}

// TestUndivided: exactly the methods whose step cannot be divided declare it, and a run of theirs refuses tiles.
func TestUndivided(t *testing.T) {
	t.Parallel()
	p, op := bundled(t), newOperator(t, operator.GaussianDeblur, operator.Shape{Channels: 3, Height: 64, Width: 64})
	opLatent := newOperator(t, operator.SuperResolution, operator.Shape{Channels: 3, Height: 8, Width: 8})
	latent, _ := latentCase(t, opLatent, 4)
	for _, m := range method.Builtin() {
		info := m.Info()
		if info.Latent {
			if info.Tiled() == nil {
				t.Errorf("%s works on latents and accepts tiles", info.Name)
			}
			run := planRun(t, m, resolve(t, method.Request{Method: info.Name, Preset: "ffhq", Task: opLatent.Task, Steps: 4}), latent, opLatent)
			if err := Divisible(run); (err == nil) != (info.Undivided == "") {
				t.Errorf("%s: divisible: %v, declared: %q", info.Name, err, info.Undivided)
			}
			continue
		}
		run := newRun(t, p, op, resolve(t, method.Request{Method: info.Name, Preset: "natural", Task: op.Task, Steps: 4}))
		divisible := Divisible(run)
		if (divisible == nil) != (info.Undivided == "") {
			t.Errorf("%s: divisible: %v, declared: %q", info.Name, divisible, info.Undivided)
		}
		if err := run.Tile(prior.Tiling{Side: 32}); (err == nil) != (divisible == nil) || err != nil && !errors.Is(err, method.ErrSetting) {
			t.Errorf("%s: tiles: %v", info.Name, err)
		}
		if err := run.Tile(prior.Tiling{Side: 64}); err != nil {
			t.Errorf("%s: one tile: %v", info.Name, err)
		}
	}
}
