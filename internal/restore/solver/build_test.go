package solver

import (
	"errors"
	"math"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/operator"
)

// A run in float16 stays close to that in float32.
func TestPrecision(t *testing.T) {
	t.Parallel()
	op, p := newOperator(t, operator.GaussianDeblur, small), bundled(t)
	cfg := config(t, op.Task, 10)
	probs := problems(t, op, 1, 0.05)
	var answers [][]float32
	for _, precision := range onnxtest.Runtime(t).Precisions() {
		got := solve(t, compile(t, onnxtest.Runtime(t), newRun(t, p, op, cfg), 1, Build{Precision: precision}), probs)
		answers = append(answers, got[0].X)
	}
	if d := maxAbs(answers[0], answers[1]); d == 0 || !(d <= 2.0/255) {
		t.Errorf("float16 differs by %.2g, want more than nothing and at most one grey level", d)
	}
}

func TestBuild(t *testing.T) {
	t.Parallel()
	for field, b := range map[string]Build{
		"tiles":     {Tiles: -1},
		"precision": {Precision: "fp8"},
		"streams":   {Streams: -1},
	} {
		if err := b.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v does not name it", field, err)
		}
	}
	rt := onnxtest.Runtime(t).Threaded(3)
	for _, c := range []struct{ given, want Build }{
		{Build{}, Build{Precision: onnxruntime.FP32, Streams: 3}},
		{Build{Precision: onnxruntime.FP16, Streams: 8}, Build{Precision: onnxruntime.FP16, Streams: 8}},
	} {
		if got, err := c.given.Complete(rt); err != nil || got != c.want {
			t.Errorf("%+v: completed to %+v, %v; want %+v", c.given, got, err, c.want)
		}
	}
	if _, err := (Build{Precision: onnxruntime.BF16}).Complete(rt); !errors.Is(err, onnxruntime.ErrPrecision) || !strings.Contains(err.Error(), "bfloat16") {
		t.Errorf("the CPU accepts bfloat16: %v", err)
	}
}

// TestUnrolled: a provider without loops unrolls all inner iterations, CUDA few, the others none.
func TestUnrolled(t *testing.T) {
	t.Parallel()
	for provider, want := range map[string]int{
		onnxruntime.ProviderWebGPU: math.MaxInt, onnxruntime.ProviderCUDA: shortRepeat, onnxruntime.ProviderCPU: 0, onnxruntime.ProviderTensorRT: 0,
	} {
		if got := unrolled(provider); got != want {
			t.Errorf("%s: %d iterations, want %d", provider, got, want)
		}
	}
}
