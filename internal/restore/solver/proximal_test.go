package solver

import (
	"errors"
	"math"
	"testing"

	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// gaussianKernel is a Gaussian as a kernel of motion_deblur.
func gaussianKernel(side int, std float64) *operator.Draw {
	d := &operator.Draw{Name: "kernel", Dims: []int{side, side}, Data: make([]float32, side*side)}
	var sum float64
	for i := range d.Data {
		y, x := float64(i/side-side/2), float64(i%side-side/2)
		v := math.Exp(-(y*y + x*x) / (2 * std * std))
		d.Data[i] = float32(v)
		sum += v
	}
	for i := range d.Data {
		d.Data[i] /= float32(sum)
	}
	return d
}

// TestProximalStep: conjugate gradients for a kernel that was drawn give the images of the decomposition of the same kernel. Fewer iterations
// than convergence needs do not.
func TestProximalStep(t *testing.T) {
	t.Parallel()
	p := bundled(t)
	const side, std = 17, 2.0 // in pixels; parameters are in pixels at 256
	scale := 256 / float64(small.Height)
	gaussian, err := operator.Builtin().New(operator.GaussianDeblur, map[string]float64{"size": side * scale, "std": std * scale}, small)
	must(t, err)
	motion, err := operator.Builtin().New(operator.MotionDeblur, map[string]float64{"size": side * scale}, small)
	must(t, err)
	problem := problems(t, gaussian, 1, 0.05)[0]
	answer := func(op *operator.Operator, draw []float32, iterations float64) []float32 {
		settings := resolve(t, method.Request{Method: "ddiff", Preset: "natural", Task: op.Task, Steps: 4,
			Values: map[string]parameter.Value{"cg_steps": parameter.Number(iterations), "lambda": parameter.Number(30),
				"t_start": parameter.Number(500)}}) // the rows begin at different times
		return solve(t, newSolver(t, p, op, settings, 1), []Problem{{Y: problem.Y, Draw: draw, Key: problem.Key}})[0].X
	}
	kernel, err := motion.Encode(gaussianKernel(side, std))
	must(t, err)
	want := answer(gaussian, nil, 5)
	if d := maxAbs(answer(motion, kernel, 60), want); !(d <= 1e-3) {
		t.Errorf("60 iterations differ by %.2g from the decomposition", d)
	}
	if d := maxAbs(answer(motion, kernel, 1), want); !(d > 1e-2) {
		t.Errorf("one iteration differs by %.2g from the decomposition, too little for this test", d)
	}
}

// TestProximalStepOfLongImage: conjugate gradients stand in for the decomposition where an image is too long for it.
func TestProximalStepOfLongImage(t *testing.T) {
	t.Parallel()
	op, err := operator.Builtin().New(operator.SuperResolution, map[string]float64{"factor": 2}, operator.Shape{Channels: 3, Height: 8, Width: 1032})
	must(t, err)
	if _, err := op.SVD(); !errors.Is(err, operator.ErrShape) {
		t.Fatalf("a decomposition, %v: too short for this test", err)
	}
	probs := problems(t, op, 1, 0.01)
	for _, name := range []string{"ddiff", "dpir", "diffpir"} {
		settings := resolve(t, method.Request{Method: name, Preset: "natural", Task: op.Task, Sigma: new(0.01), Steps: 10,
			Values: map[string]parameter.Value{"cg_steps": parameter.Number(5)}})
		got := solve(t, newSolver(t, bundled(t), op, settings, 1), probs)[0].X
		if d := maxAbs(got, scene(op.Image, 0)); !(d < 0.6) { // black or white would be 1 off
			t.Errorf("%s: the largest error is %.2g", name, d)
		}
	}
}

// TestStartOfLongImage: a run that begins late begins with A⁺·y there too, by conjugate gradients.
func TestStartOfLongImage(t *testing.T) {
	t.Parallel()
	const sigma = 0.2
	var errors [2]float64 // root mean square of an image that has a decomposition, and of one that is too long
	for i, width := range []int{1024, 1032} {
		op, err := operator.Builtin().New(operator.SuperResolution, map[string]float64{"factor": 8}, operator.Shape{Channels: 3, Height: 16, Width: width})
		must(t, err)
		settings := resolve(t, method.Request{Method: "ddiff", Preset: "natural", Task: op.Task, Sigma: new(sigma)})
		got := solve(t, newSolver(t, bundled(t), op, settings, 1), problems(t, op, 1, sigma))[0].X
		errors[i] = rms(got, scene(op.Image, 0))
	}
	if !(errors[1] < 1.2*errors[0]) {
		t.Errorf("the error is %.3f, %.3f with a decomposition", errors[1], errors[0])
	}
}

// TestProximalStepOfNonlinear: steps of Gauss and Newton do not diverge where a nonlinear operator has hardly any noise, and more iterations of
// conjugate gradients do not harm. They do with a J that does not fit Jᵀ.
func TestProximalStepOfNonlinear(t *testing.T) {
	t.Parallel()
	const sigma = 0.005
	op, err := operator.Builtin().New(operator.NonlinearDeblur, nil, small)
	must(t, err)
	probs := problems(t, op, 6, sigma)
	for _, iterations := range []float64{5, 40} {
		settings := resolve(t, method.Request{Method: "diffpir", Preset: "natural", Task: op.Task, Sigma: new(sigma), Steps: 20,
			Values: map[string]parameter.Value{"cg_steps": parameter.Number(iterations)}})
		for i, got := range solve(t, newSolver(t, bundled(t), op, settings, len(probs)), probs) {
			var square float64
			for k, truth := range scene(op.Image, i) {
				square += math.Pow(float64(got.X[k]-truth), 2)
			}
			if rms := math.Sqrt(square / float64(len(got.X))); !(rms < 0.1) { // scene 4 had 0.53 with 5
				t.Errorf("scene %d, %g iterations: root mean square error %.3f", i, iterations, rms)
			}
		}
	}
}

// TestProximalStepOfFile: an operator file with an operation whose gradient adds to places gives the images of the same operator without it.
func TestProximalStepOfFile(t *testing.T) {
	t.Parallel()
	dims := []int{1, small.Channels, small.Height, small.Width}
	answer := func(before func(g *onnx.Graph, x onnx.Value) onnx.Value) []float32 {
		g := onnx.NewGraph(17)
		x := before(g, g.Input("x", onnx.Float, dims...))
		g.Output("y", g.Add(x, g.Mul(x, g.Mul(x, x))))
		data, err := g.Marshal("cubic")
		must(t, err)
		f, err := operator.Load("cubic.onnx", data)
		must(t, err)
		op, err := operator.Set{f.Definition("cubic")}.New("cubic", nil, small)
		must(t, err)
		settings := resolve(t, method.Request{Method: "ddiff", Preset: "natural", Task: op.Task, Steps: 4, Values: map[string]parameter.Value{"data_step": parameter.Word("exact")}})
		probs := problems(t, op, 1, 0.05)
		return solve(t, newSolver(t, bundled(t), op, settings, 1), probs)[0].X
	}
	want := answer(func(_ *onnx.Graph, x onnx.Value) onnx.Value { return x })
	got := answer(func(g *onnx.Graph, x onnx.Value) onnx.Value { // the largest of one value
		return g.Apply("MaxPool", onnx.Float, dims, map[string]any{"kernel_shape": []int{1, 1}}, x)
	})
	if d := maxAbs(got, want); !(d <= 1e-6) {
		t.Errorf("the answers differ by %.2g", d)
	}
}
