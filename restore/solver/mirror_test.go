package solver

import (
	"slices"
	"testing"

	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
)

// predicting replaces x, which starts as the measurement, by the prior's clean image.
type predicting struct{}

func (predicting) Info() method.Info {
	return method.Info{
		Name: "predicting", Steps: 6, Parameters: parameter.List{method.Mirror()}, State: []method.Tensor{{Name: "x"}},
	}
}

func (predicting) Plan(s method.Settings, schedule prior.Schedule, _ operator.Shape) ([]method.Step, error) {
	levels, err := method.Levels(schedule, s.Steps)
	var out []method.Step
	for i, l := range levels {
		first := 0.0
		if i == 0 {
			first = 1
		}
		out = append(out, method.Step{Time: l.Time / 4, Scalars: map[string]float64{"first": first}})
	}
	return out, err
}

func (predicting) Step(b *method.Builder, _ method.Settings) method.Next {
	x := b.Add(b.State("x"), b.Mul(b.Residual(b.Mul(b.State("x"), b.Scalar(0))), b.Planned("first")))
	return method.Next{State: map[string]onnx.Value{"x": b.Clean(x)}}
}

// TestMirror compares each way of mirroring with evaluations of the network at images that Go mirrors, in each form of the model.
func TestMirror(t *testing.T) {
	t.Parallel()
	const steps = 6
	shape := operator.Shape{Channels: 3, Height: 16, Width: 24}
	op, p, rt := newOperator(t, operator.Denoise, shape), bundled(t), onnxtest.Runtime(t)
	network, err := p.Compile(rt, 1, shape.Height, shape.Width, onnxruntime.FP32)
	must(t, err)
	defer network.Close()
	probs := problems(t, op, 1, 0.3)
	// mirrored mirrors the rows if way has the bit 2, and the columns if it has the bit 1.
	mirrored := func(v []float32, way int) []float32 {
		out := slices.Clone(v)
		for first := 0; way&2 > 0 && first < len(out); first += shape.Height * shape.Width {
			for i := range shape.Height {
				copy(out[first+i*shape.Width:][:shape.Width], v[first+(shape.Height-1-i)*shape.Width:])
			}
		}
		for first := 0; way&1 > 0 && first < len(out); first += shape.Width {
			slices.Reverse(out[first : first+shape.Width])
		}
		return out
	}
	for word, ways := range map[string]func(step int) []int{
		"none":      func(int) []int { return []int{0} },
		"alternate": func(step int) []int { return []int{step % 4} },
		"average":   func(int) []int { return []int{0, 1, 2, 3} },
	} {
		settings := method.Settings{Method: "predicting", Steps: steps}
		if word != "none" {
			settings = settings.With("mirror", parameter.Word(word))
		}
		run := planRun(t, predicting{}, settings, p, op)
		want := slices.Clone(probs[0].Y)
		for i, st := range run.Steps {
			x := slices.Clone(want)
			clear(want)
			for _, way := range ways(i) {
				copy(network.X.F32, mirrored(x, way))
				network.T.I64[0] = int64(st.Time)
				must(t, network.Run(t.Context()))
				for k, v := range mirrored(network.Y.F32, way) {
					want[k] += v / float32(len(ways(i)))
				}
			}
			for k, v := range want {
				want[k] = min(max(v, -1), 1)
			}
		}
		for _, build := range []Build{{Form: FormLoop, Chunk: 4}, {Form: FormUnrolled, Chunk: 4}, {Form: FormSingle}} {
			got := solve(t, compile(t, rt, run, 1, build), probs)
			if d := maxAbs(got[0].X, want); !(d <= 1e-4) {
				t.Errorf("%s, %s: the image differs by %.2g", word, build.Form, d)
			}
		}
		cost, err := run.Cost()
		if n := len(ways(0)) * steps; err != nil || cost.Network != n || run.Info.Evaluations(settings) != n {
			t.Errorf("%s: cost %+v, %v, and %d evaluations, want %d", word, cost, err, run.Info.Evaluations(settings), n)
		}
	}
}
