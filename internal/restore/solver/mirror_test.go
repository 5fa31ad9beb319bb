package solver

import (
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// predicting replaces x, which starts as the measurement, by the prior's clean image, once in a step and twice in a part that repeats.
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
		t := l.Time / 4
		out = append(out, method.Step{Time: t, Times: map[string][]int{"later": {t / 2, t / 3}}, Scalars: map[string]float64{"first": first}})
	}
	return out, err
}

func (predicting) Step(b *method.Builder, _ method.Settings) method.Next {
	x := b.Add(b.State("x"), b.Mul(b.Residual(b.Mul(b.State("x"), b.Scalar(0))), b.Planned("first")))
	state := b.Repeat(2, "", []onnx.Value{b.Clean(x)}, func(b *method.Builder, i, _ onnx.Value, state []onnx.Value) []onnx.Value {
		return []onnx.Value{b.CleanAt(state[0], b.Moment("later", i))}
	})
	return method.Next{State: map[string]onnx.Value{"x": state[0]}}
}

// TestMirror compares each way of mirroring with evaluations of the network at images that Go mirrors.
func TestMirror(t *testing.T) {
	if testing.Short() {
		t.Skip("draws many samples: make test-all")
	}
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
	for word, ways := range map[string]func(step, i int) []int{ // of evaluation i of its list of times
		"none":      func(int, int) []int { return []int{0} },
		"alternate": func(step, i int) []int { return []int{(step + i) % 4} },
		"average":   func(int, int) []int { return []int{0, 1, 2, 3} },
	} {
		settings := method.Settings{Method: "predicting", Steps: steps}.With("mirror", parameter.Word(word))
		run := planRun(t, predicting{}, settings, p, op)
		want := slices.Clone(probs[0].Y)
		predict := func(time int, ways []int) {
			x := slices.Clone(want)
			clear(want)
			for _, way := range ways {
				copy(network.X.F32, mirrored(x, way))
				network.T.I64[0] = int64(time)
				must(t, network.Run(t.Context()))
				for k, v := range mirrored(network.Y.F32, way) {
					want[k] += v / float32(len(ways))
				}
			}
			for k, v := range want {
				want[k] = min(max(v, -1), 1)
			}
		}
		for step, st := range run.Steps {
			predict(st.Time, ways(step, 0))
			for i, time := range st.Times["later"] {
				predict(time, ways(step, i))
			}
		}
		if d := maxAbs(solve(t, compile(t, rt, run, 1, Build{}), probs)[0].X, want); !(d <= 1e-4) {
			t.Errorf("%s: the image differs by %.2g", word, d)
		}
		if cost, err := run.Cost(); err != nil || cost.Network != 3*len(ways(0, 0))*steps {
			t.Errorf("%s: cost %+v, %v", word, cost, err)
		}
	}
}
