package solver

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"ddiff/restore/operator"
)

// BenchmarkStepWithoutNetwork times a step with a Gaussian prior in place of the score network. Compare it with the time
// of the network.
func BenchmarkStepWithoutNetwork(b *testing.B) {
	shape := operator.Shape{Channels: 3, Height: 256, Width: 256}
	for _, info := range operator.Builtin() {
		for _, n := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/batch=%d", info.Name, n), func(b *testing.B) {
				p := gaussianPrior(b, n, shape, slices.Repeat([]float32{0.1}, shape.Size()))
				op := newOperator(b, info.Name, shape)
				cfg := with(config(b, info.Name, 50), "t0", 0)
				s := newSolver(b, p, op, cfg, n)
				probs := problems(b, op, n, 0.05)
				for b.Loop() {
					if _, err := s.Solve(context.Background(), probs, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N*cfg.Steps), "ms/step")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
