package solver

import (
	"errors"
	"math"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// A run on OpenVINO differs from that of the CPU provider by rounding in float32, and in bfloat16 by 40 dB or less: operators,
// data term and dual variable stay float32. Gaussian deblurring has the bundled network, the other tasks a small one.
func TestOpenVINO(t *testing.T) {
	rt := onnxtest.OpenVINO(t)
	for _, task := range []string{operator.InpaintBox, operator.GaussianDeblur, operator.MotionDeblur, operator.HDR} {
		t.Run(task, func(t *testing.T) {
			op, p := newOperator(t, task, small), localPrior(t)
			if task == operator.GaussianDeblur {
				p = bundled(t)
			}
			probs := problems(t, op, 2, 0.05)
			cfg := config(t, op.Task, 6)
			answers := func(rt *onnxruntime.Runtime, build Build) []Solution {
				s := compile(t, rt, newRun(t, p, op, cfg), 2, build)
				got := solve(t, s, probs)
				return got
			}
			want := answers(onnxtest.Runtime(t), Build{})
			for _, precision := range rt.Precisions() {
				for i, got := range answers(rt, Build{Precision: precision}) {
					largest, db := maxAbs(got.X, want[i].X), decibels(got.X, want[i].X)
					if precision == onnxruntime.FP32 && !(largest <= 1e-4) {
						t.Errorf("%s: image %d differs by %.2g", precision, i, largest)
					}
					if precision == onnxruntime.BF16 && (!(db >= 40) || largest == 0) {
						t.Errorf("%s: image %d differs by %.2g, %.1f dB", precision, i, largest, db)
					}
				}
			}
		})
	}
}

// Streams on OpenVINO return the images of one session on the CPU provider, in the order of the problems, and solve again beside each other.
func TestOpenVINOStreams(t *testing.T) {
	rt := onnxtest.OpenVINO(t).Threaded(2)
	p, op := localPrior(t), newOperator(t, operator.SuperResolution, operator.Shape{Channels: 3, Height: 64, Width: 96}) // whose batches are divided
	run, probs := newRun(t, p, op, config(t, op.Task, 3)), problems(t, op, 3, 0.05)
	parts := compile(t, rt, run, 3, Build{})
	if len(parts.streams) != 2 || parts.streams[0].n != 2 || parts.streams[1].n != 1 {
		t.Fatalf("streams %v", parts.streams)
	}
	want := solve(t, compile(t, onnxtest.Runtime(t), run, 3, Build{Streams: 1}), probs)
	for range 2 {
		got := solve(t, parts, probs)
		wantImages(t, got, want, 1e-3)
	}
}

// decibels is the PSNR of images in [−1, 1].
func decibels(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i] - b[i])
		sum += d * d
	}
	return 10 * math.Log10(4*float64(len(a))/sum)
}

// evaluated is a method whose step evaluates the network in one of several ways.
type evaluated struct{ way string }

const (
	once           = "once"
	twice          = "twice"
	inLoop         = "in a loop"
	differentiated = "differentiated"
)

func (evaluated) Info() method.Info {
	return method.Info{Name: "evaluated", Steps: 3, State: []method.Tensor{{Name: "x", Noise: true}}}
}

func (evaluated) Plan(s method.Settings, schedule prior.Schedule, _ operator.Shape) ([]method.Step, error) {
	levels, err := method.Levels(schedule, s.Steps)
	var out []method.Step
	for _, l := range levels {
		out = append(out, method.Step{Time: l.Time})
	}
	return out, err
}

func (m evaluated) Step(b *method.Builder, _ method.Settings) method.Next {
	x := b.State("x")
	z := b.Clean(x)
	switch m.way {
	case twice:
		z = b.Clean(b.Mul(b.Add(x, z), b.Scalar(0.5)))
	case differentiated:
		z = b.Gradient(z, x, z)
	case inLoop:
		z = b.Repeat(3, "", []onnx.Value{z}, func(b *method.Builder, _, _ onnx.Value, state []onnx.Value) []onnx.Value {
			return []onnx.Value{b.Clean(state[0])}
		})[0]
	}
	return method.Next{State: map[string]onnx.Value{"x": b.Mul(b.Add(x, z), b.Scalar(0.5))}}
}

// A step may evaluate the network several times. One that differentiates the network, or has it in a loop, cannot be divided:
// the error names the method and the remedy.
func TestOpenVINOSteps(t *testing.T) {
	rt := onnxtest.OpenVINO(t)
	op, p := newOperator(t, operator.GaussianDeblur, small), localPrior(t)
	for way, divides := range map[string]bool{once: true, twice: true, inLoop: false, differentiated: false} {
		t.Run(way, func(t *testing.T) {
			run := planRun(t, evaluated{way}, method.Settings{Method: "evaluated", Steps: 3}, p, op)
			s, err := New(rt, run, 2, Build{})
			if !divides {
				if !errors.Is(err, onnxruntime.ErrFallback) || !errors.Is(err, onnx.ErrDivide) ||
					!strings.Contains(err.Error(), "method evaluated") || !strings.HasSuffix(err.Error(), "use --device cpu") {
					t.Errorf("error %v", err)
				}
				return
			}
			must(t, err)
			defer s.Close()
			probs := problems(t, op, 2, 0.05)
			got := solve(t, s, probs)
			want := solve(t, compile(t, onnxtest.Runtime(t), run, 2, Build{}), probs)
			wantImages(t, got, want, 1e-4)
		})
	}
}
