package solver

import (
	"context"
	"fmt"
	"testing"
	"time"

	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
)

// BenchmarkForms times a step with the bundled prior in each form.
func BenchmarkForms(b *testing.B) {
	for _, n := range []int{1, 4} {
		b.Run(fmt.Sprintf("cpu/batch=%d", n), func(b *testing.B) {
			timeForms(b, onnxtest.Runtime(b), 128, n, 20, []Build{
				{Form: FormLoop, Chunk: 10}, {Form: FormLoop, Chunk: 4}, {Form: FormUnrolled, Chunk: 10},
				{Form: FormUnrolled, Chunk: 4}, {Form: FormSingle},
			})
		})
	}
	b.Run("webgpu/batch=1", func(b *testing.B) {
		timeForms(b, onnxtest.WebGPU(b), 64, 1, 4, []Build{
			{Form: FormUnrolled, Chunk: 4}, {Form: FormUnrolled, Chunk: 2}, {Form: FormSingle},
		})
	})
}

// timeForms alternates the forms, so that other load on the machine affects all of them, and reports the best time of each.
func timeForms(b *testing.B, rt *onnxruntime.Runtime, size, n, steps int, builds []Build) {
	op := newOperator(b, operator.GaussianDeblur, operator.Shape{Channels: 3, Height: size, Width: size})
	cfg, p, probs := config(b, op.Task, steps), bundled(b), problems(b, op, n, 0.05)
	best := make([]time.Duration, len(builds))
	var solvers []*Solver
	for _, build := range builds {
		begin := time.Now()
		s := compile(b, rt, newRun(b, p, op, cfg), n, build)
		b.Logf("%s K=%d: compiled in %v", build.Form, s.Build().Chunk, time.Since(begin).Round(time.Millisecond))
		solvers = append(solvers, s)
	}
	for b.Loop() {
		for i, s := range solvers {
			begin := time.Now()
			if _, err := s.Solve(context.Background(), probs, nil); err != nil {
				b.Fatal(err)
			}
			if d := time.Since(begin); best[i] == 0 || d < best[i] {
				best[i] = d
			}
		}
	}
	for i, s := range solvers {
		b.ReportMetric(float64(best[i].Microseconds())/1000/float64(steps), fmt.Sprintf("ms/step:%s-%d", s.Build().Form, s.Build().Chunk))
	}
	b.ReportMetric(0, "ns/op")
}
