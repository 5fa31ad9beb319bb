package solver

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
)

// The three forms are the same solver, also where the last call makes fewer steps.
func TestFormsAgree(t *testing.T) {
	t.Parallel()
	op, p := newOperator(t, operator.MotionDeblur, small), bundled(t)
	cfg := config(t, op.Task, 7)
	probs := problems(t, op, 2, 0.05)
	var want []Solution
	for _, build := range []Build{{Form: FormLoop, Chunk: 4}, {Form: FormUnrolled, Chunk: 4}, {Form: FormSingle}} {
		s := compile(t, onnxtest.Runtime(t), newRun(t, p, op, cfg), 2, build)
		got := solve(t, s, probs)
		if want == nil {
			want = got
		}
		for i := range got {
			if d := maxAbs(got[i].X, want[i].X); !(d <= 1e-4) {
				t.Errorf("%s: image %d differs by %.2g", build.Form, i, d)
			}
			for k, c := range want[i].Curves.Curves {
				name, c := c.Name, [2][]float64{got[i].Curves.Curves[k].Values, c.Values}
				if !slices.EqualFunc(c[0], c[1], func(a, b float64) bool { return math.Abs(a-b) <= 1e-4*math.Max(1, b) }) {
					t.Errorf("%s: image %d, %s: %v, want %v", build.Form, i, name, c[0], c[1])
				}
			}
		}
	}
}

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
		"form":      {Form: "spiral"},
		"chunk":     {Chunk: -1},
		"chunk: 2":  {Form: FormSingle, Chunk: 2},
		"precision": {Precision: "fp8"},
		"streams":   {Streams: -1},
	} {
		if err := b.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v does not name it", field, err)
		}
	}
	rt := onnxtest.Runtime(t).Threaded(3)
	for _, c := range []struct{ given, want Build }{
		{Build{}, Build{Form: FormLoop, Chunk: DefaultChunk, Precision: onnxruntime.FP32, Streams: 3}},
		{Build{Chunk: 3, Precision: onnxruntime.FP16}, Build{Form: FormLoop, Chunk: 3, Precision: onnxruntime.FP16, Streams: 3}},
		{Build{Form: FormSingle, Streams: 2}, Build{Form: FormSingle, Chunk: 1, Precision: onnxruntime.FP32, Streams: 2}},
		{Build{Form: FormSingle, Chunk: 1, Streams: 1}, Build{Form: FormSingle, Chunk: 1, Precision: onnxruntime.FP32, Streams: 1}},
		{Build{Form: FormUnrolled, Streams: 8}, Build{Form: FormUnrolled, Chunk: DefaultUnrolled, Precision: onnxruntime.FP32, Streams: 8}},
	} {
		if got, err := c.given.Complete(rt); err != nil || got != c.want {
			t.Errorf("%+v: completed to %+v, %v; want %+v", c.given, got, err, c.want)
		}
	}
	if _, err := (Build{Precision: onnxruntime.BF16}).Complete(rt); !errors.Is(err, onnxruntime.ErrPrecision) || !strings.Contains(err.Error(), "bfloat16") {
		t.Errorf("the CPU accepts bfloat16: %v", err)
	}
	for provider, want := range map[string]Form{
		onnxruntime.ProviderCPU: FormLoop, onnxruntime.ProviderCUDA: FormUnrolled, onnxruntime.ProviderWebGPU: FormUnrolled, onnxruntime.ProviderTensorRT: FormSingle,
	} {
		if got := defaultForm(provider); got != want {
			t.Errorf("%s: form %s, want %s", provider, got, want)
		}
	}
}
