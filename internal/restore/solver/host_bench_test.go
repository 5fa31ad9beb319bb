package solver

import (
	"fmt"
	"syscall"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/operator"
)

// BenchmarkHostStep measures the CPU time of a step beside sessions and noise, see `make bench-host`: the sessions do nothing.
func BenchmarkHostStep(b *testing.B) {
	const steps = 30
	p, op := bundled(b), newOperator(b, operator.SuperResolution, operator.Shape{Channels: 3, Height: 256, Width: 256})
	for _, n := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprint("b", n), func(b *testing.B) {
			s, err := New(onnxtest.Runtime(b), newRun(b, p, op, config(b, op.Task, steps)), n, Build{Streams: 1})
			must(b, err)
			draws := s.draws
			defer func() {
				s.draws = draws
				must(b, s.Close())
			}()
			// Without noise: the difference from the CPU time of noise alone, of which there is fifty times as much, varied fourfold with the load of the machine.
			s.sess.idle, s.run.Info.Draws, s.draws = true, nil, [2][]*onnxruntime.Tensor{}
			probs, states := make([]Problem, n), make([]State, n)
			for i := range probs {
				probs[i] = Problem{Y: make([]float32, op.MeasurementSize()), Key: noise.Key{uint32(i)}}
				states[i] = s.Start(probs[i].Key)
			}
			before := cpuMilliseconds(b)
			for b.Loop() {
				for i := range states {
					states[i].Step = 0
				}
				must(b, s.Resume(b.Context(), probs, states, nil, nil))
			}
			b.ReportMetric((cpuMilliseconds(b)-before)/float64(b.N)/steps, "step_ms")
		})
	}
}

func cpuMilliseconds(b *testing.B) float64 {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}
