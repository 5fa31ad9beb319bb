package solver

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
	"ddiff/restore/prior/randomnet"
)

// webGPU returns a runtime on WebGPU. A software adapter takes minutes for the tests of this file.
func webGPU(t *testing.T) *onnxruntime.Runtime {
	t.Helper()
	if testing.Short() {
		t.Skip("takes minutes on a software adapter")
	}
	return onnxtest.WebGPU(t)
}

// Every operator and its derivative give on WebGPU what they give on the CPU.
func TestWebGPUOperators(t *testing.T) {
	gpu := webGPU(t)
	for _, info := range operator.Builtin() {
		t.Run(info.Name, func(t *testing.T) {
			const n = 2
			op := newOperator(t, info.Name, small)
			g := onnx.NewGraph(onnx.DefaultOpset)
			x := g.Input("x", onnx.Float, op.Image.Dims(n)...)
			seed := g.Input("seed", onnx.Float, op.MeasurementDims(n)...)
			inputs := []onnx.Value{x, seed}
			var draws onnx.Value
			if dims := op.ParameterDims(n); dims != nil {
				draws = g.Input("draws", onnx.Float, dims...)
				inputs = append(inputs, draws)
			}
			a, err := op.Apply(g, x, draws)
			if err != nil {
				t.Fatal(err)
			}
			y := a.Y
			dx, err := a.Gradient(seed)
			if err != nil {
				t.Fatal(err)
			}
			g.Output("y", y)
			g.Output("dx", dx)
			outputs := []onnx.Value{{Name: "y", DType: onnx.Float, Dims: y.Dims}, {Name: "dx", DType: onnx.Float, Dims: dx.Dims}}
			fill := func(in []*onnxruntime.Tensor) {
				noise.Normal(in[1].F32, noise.Key{7}, noise.Measurement, 0, 1)
				for i := range n {
					copy(in[0].F32[i*op.Image.Size():], scene(op.Image, i))
					if len(in) > 2 {
						draw, err := op.Encode(op.Draw(noise.Key{uint32(i)}))
						if err != nil {
							t.Fatal(err)
						}
						copy(in[2].F32[i*len(draw):], draw)
					}
				}
			}
			want := evaluate(t, onnxtest.Runtime(t), g, inputs, outputs, fill)
			got := evaluate(t, gpu, g, inputs, outputs, fill)
			for i, v := range outputs {
				if d, scale := maxAbs(got[i], want[i]), maxAbs(want[i], make([]float32, len(want[i]))); !(d <= 1e-5*max(1, scale)) || scale == 0 {
					t.Errorf("%s differs by %.2g of %.2g", v.Name, d, scale)
				}
			}
		})
	}
}

func evaluate(t *testing.T, rt *onnxruntime.Runtime, g *onnx.Graph, inputs, outputs []onnx.Value, fill func([]*onnxruntime.Tensor)) [][]float32 {
	t.Helper()
	model, err := g.Marshal("test")
	if err != nil {
		t.Fatal(err)
	}
	var in, out []string
	for _, v := range inputs {
		in = append(in, v.Name)
	}
	for _, v := range outputs {
		out = append(out, v.Name)
	}
	s, err := rt.NewSession(model, in, out)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, err := onnxruntime.NewTensors(inputs...)
	if err != nil {
		t.Fatal(err)
	}
	defer onnxruntime.CloseTensors(x)
	fill(x)
	y, err := onnxruntime.NewTensors(outputs...)
	if err != nil {
		t.Fatal(err)
	}
	defer onnxruntime.CloseTensors(y)
	if err := s.Run(context.Background(), x, y); err != nil {
		t.Fatal(err)
	}
	var res [][]float32
	for _, v := range y {
		res = append(res, v.F32)
	}
	return res
}

// Whole runs of each task, with calls of four steps and a rest of two.
func TestWebGPURuns(t *testing.T) {
	gpu := webGPU(t)
	const n, size = 2, 32
	shape := operator.Shape{Channels: 3, Height: size, Width: size}
	p := gaussianPrior(t, n, shape, slices.Repeat([]float32{0.1}, shape.Size()))
	for _, info := range operator.Builtin() {
		t.Run(info.Name, func(t *testing.T) {
			op := newOperator(t, info.Name, shape)
			cfg := config(t, op.Task, 6)
			probs := problems(t, op, n, 0.05)
			want, err := newSolver(t, p, op, cfg, n, 0).Solve(context.Background(), probs, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := compile(t, gpu, newRun(t, p, op, cfg), n, Build{Chunk: 4})
			got, err := s.Solve(context.Background(), probs, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if d := maxAbs(got[i].X, want[i].X); !(d < 1e-3) {
					t.Errorf("image %d differs by %.2g", i, d)
				}
			}
		})
	}
}

// The bundled prior, two steps in one call.
func TestWebGPUBundled(t *testing.T) {
	gpu := webGPU(t)
	op := newOperator(t, operator.SuperResolution, operator.Shape{Channels: 3, Height: 64, Width: 64})
	cfg := config(t, op.Task, 2)
	p := bundled(t)
	probs := problems(t, op, 1, 0.05)
	want, err := newSolver(t, p, op, cfg, 1, 0).Solve(context.Background(), probs, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := compile(t, gpu, newRun(t, p, op, cfg), 1, Build{})
	got, err := s.Solve(context.Background(), probs, nil)
	if err != nil {
		t.Fatal(err)
	}
	// At the first step z is x_t over √ᾱ = 0.006: a difference of 10⁻⁴ in the prediction is
	// one of 0.02 in a pixel.
	if d := rms(got[0].X, want[0].X); !(d < 2e-3) {
		t.Errorf("differs by %.2g (root of the mean square), at most by %.2g", d, maxAbs(got[0].X, want[0].X))
	}
	if b := s.Build(); b.Form != FormUnrolled || b.Chunk != 2 {
		t.Errorf("built as %+v, want unrolled, two steps in a call", b)
	}
}

// A network of the published architecture, with attention, runs on the device as a whole.
func TestWebGPUAttention(t *testing.T) {
	gpu := webGPU(t)
	network, err := randomnet.New(randomnet.Small(32))
	if err != nil {
		t.Fatal(err)
	}
	data, err := network.ONNX()
	if err != nil {
		t.Fatal(err)
	}
	p, err := prior.Load("random.onnx", data)
	if err != nil {
		t.Fatal(err)
	}
	shape := operator.Shape{Channels: 3, Height: 32, Width: 32}
	op := newOperator(t, operator.HDR, shape)
	cfg := config(t, op.Task, 3)
	probs := problems(t, op, 2, 0.05)
	want, err := newSolver(t, p, op, cfg, 2, 0).Solve(context.Background(), probs, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := compile(t, gpu, newRun(t, p, op, cfg), 2, Build{Chunk: 2})
	got, err := s.Solve(context.Background(), probs, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if d := rms(got[i].X, want[i].X); !(d < 2e-3) {
			t.Errorf("image %d differs by %.2g (root of the mean square)", i, d)
		}
	}
}

func rms(a, b []float32) float64 {
	sum := 0.0
	for i, v := range a {
		sum += math.Pow(float64(v-b[i]), 2)
	}
	return math.Sqrt(sum / float64(len(a)))
}

// WebGPU has no Loop: the guard refuses it, by name.
func TestWebGPURefusesLoop(t *testing.T) {
	gpu := webGPU(t)
	op := newOperator(t, operator.InpaintBox, small)
	p := gaussianPrior(t, 1, small, slices.Repeat([]float32{0.1}, small.Size()))
	_, err := New(gpu, newRun(t, p, op, config(t, op.Task, 4)), 1, Build{Form: FormLoop})
	if !errors.Is(err, onnxruntime.ErrFallback) || !strings.Contains(err.Error(), "Loop ") {
		t.Errorf("error %v, want ErrFallback that names a Loop", err)
	}
}
