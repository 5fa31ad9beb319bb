package gpuworker

import (
	"math"
	"testing"

	"ddiff/manifest"
	"ddiff/restore/operator"
)

// TestResidualCountsObservedPixels: the values of a measurement in dropped pixels, which may be anything, do not change
// the residual of inpainting.
func TestResidualCountsObservedPixels(t *testing.T) {
	t.Parallel()
	op, err := operator.Builtin().New(operator.InpaintRandom, nil, operator.Shape{Channels: 3, Height: 8, Width: 8})
	must(t, err)
	const sigma, off = 0.05, 0.1
	for name, hole := range map[string]float32{"zeros": 0, "ones": 1, "infinite": float32(math.Inf(1))} {
		tk := &task{item: manifest.Item{Sigma: sigma}, op: op}
		tk.problem.Draw = make([]float32, 64)
		tk.problem.Y, tk.applied = make([]float32, 192), make([]float32, 192)
		for i := range tk.problem.Y {
			if i%64 == 5 {
				tk.problem.Draw[5] = 1
				tk.problem.Y[i], tk.applied[i] = 0.5+off, 0.5
			} else {
				tk.problem.Y[i] = hole
			}
		}
		m, err := tk.score()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := off*off - sigma*sigma; !(math.Abs(*m.Residual-want) <= 1e-6) {
			t.Errorf("%s: residual %v, want %v", name, *m.Residual, want)
		}
	}
}
