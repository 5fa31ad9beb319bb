package solver

import (
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// TestWeights: the decomposition with weights of pixels is near conjugate gradients, which are exact, and far from all weights equal. Entries without weight change nothing but
// the start of the run.
func TestWeights(t *testing.T) {
	if testing.Short() {
		t.Skip("solves with many networks: make test-all")
	}
	t.Parallel()
	p := bundled(t)
	const side, std = 17, 1.0 // in pixels; parameters are in pixels at 256
	scale := 256 / float64(small.Height)
	gaussian, err := operator.Builtin().New(operator.GaussianDeblur, map[string]float64{"size": side * scale, "std": std * scale}, small)
	must(t, err)
	motion, err := operator.Builtin().New(operator.MotionDeblur, map[string]float64{"size": side * scale}, small)
	must(t, err)
	kernel, err := motion.Encode(gaussianKernel(side, std))
	must(t, err)
	problem := problems(t, gaussian, 1, 0.05)[0]
	weights := make([]float32, small.Height*small.Width)
	for i := range weights {
		weights[i] = [...]float32{1, 0.8, 1, 0, 0.9}[i%5]
		if weights[i] == 0 {
			for c := range small.Channels {
				problem.Y[c*len(weights)+i] = 0.5
			}
		}
	}
	answer := func(op *operator.Operator, draw, weights []float32) []float32 {
		settings := resolve(t, method.Request{Method: "ddiff", Preset: "natural", Task: op.Task, Steps: 6,
			Values: map[string]parameter.Value{"cg_steps": parameter.Number(60), "lambda": parameter.Number(30), "t_start": parameter.Number(300)}})
		run := newRun(t, p, op, settings)
		run.Weighted = weights != nil
		s := compile(t, onnxtest.Runtime(t), run, 1, Build{})
		return solve(t, s, []Problem{{Y: problem.Y, Draw: draw, Weights: weights, Key: problem.Key}})[0].X
	}
	want := answer(motion, kernel, weights)
	near, far := maxAbs(answer(gaussian, nil, weights), want), maxAbs(answer(gaussian, nil, nil), want)
	t.Logf("with weights %.3g, without %.3g", near, far)
	if !(near < far/5) {
		t.Errorf("the decomposition with weights differs by %.3g from conjugate gradients, that without weights by %.3g", near, far)
	}
	ones := make([]float32, len(weights))
	for i := range ones {
		ones[i] = 1
	}
	if d := maxAbs(answer(gaussian, nil, ones), answer(gaussian, nil, nil)); !(d < 1e-4) {
		t.Errorf("weights of 1 change the answer by %.3g", d)
	}
}
