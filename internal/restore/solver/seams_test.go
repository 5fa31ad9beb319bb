package solver

import (
	"errors"
	"math"
	"slices"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/operator"
)

// textured is a picture with fine structure in all directions.
func textured(s operator.Shape) []float32 {
	out := make([]float32, s.Size())
	rough := make([]float32, len(out))
	noise.Normal(rough, noise.Key{3, 1}, noise.Operator, 0, 0.15)
	for i := range out {
		y, x := float64(i/s.Width%s.Height), float64(i%s.Width)
		v := 0.35*math.Sin(x*y/170) + 0.2*math.Sin(0.7*x+0.3*y) + float64(rough[i])
		out[i] = float32(max(-0.95, min(0.95, v)))
	}
	return out
}

// graded is a smooth picture.
func graded(s operator.Shape) []float32 {
	out := make([]float32, s.Size())
	for i := range out {
		y, x := float64(i/s.Width%s.Height)/float64(s.Height), float64(i%s.Width)/float64(s.Width)
		out[i] = float32(0.7*math.Sin(2*x+y) - 0.4*y)
	}
	return out
}

// seams is the mean step of the error image x − truth across the given positions along both axes, divided by the mean step elsewhere. Edges of the truth
// do not count, and without visible borders the ratio is near 1.
func seams(x, truth []float32, s operator.Shape, at []int) float64 {
	var sum, count [2]float64
	step := func(i, j int, border bool) {
		k := 0
		if border {
			k = 1
		}
		sum[k] += math.Abs(float64(x[i]-truth[i]) - float64(x[j]-truth[j]))
		count[k]++
	}
	for i := range x {
		if y := i / s.Width % s.Height; y > 0 {
			step(i, i-s.Width, slices.Contains(at, y))
		}
		if c := i % s.Width; c > 0 {
			step(i, i-1, slices.Contains(at, c))
		}
	}
	return sum[1] / count[1] / (sum[0] / count[0])
}

// separately restores the tiles of a measurement one by one, as images of their own, and puts them together.
func separately(t *testing.T, p *prior.Prior, g *prior.Grid, y []float32, key noise.Key, steps int) []float32 {
	t.Helper()
	op, err := operator.Builtin().New(operator.GaussianDeblur, map[string]float64{"std": 6, "size": 122}, operator.Shape{Channels: 3, Height: g.TileHeight(), Width: g.TileWidth()})
	must(t, err)
	s := compile(t, onnxtest.Runtime(t), newRun(t, p, op, config(t, op.Task, steps)), 1, Build{})
	out := make([]float32, len(y))
	for k := range g.Len() {
		part := make([]float32, op.Image.Size())
		g.Cut(part, y, k)
		key[2] = uint32(k)
		g.Fuse(out, solve(t, s, []Problem{{Y: part, Key: key}})[0].X, k)
	}
	return out
}

// TestSeams: the step of the error across borders of tiles, and where tiles overlap, is as large as elsewhere, on a smooth and a textured picture.
// Predictions of tiles without overlap, and tiles that are restored one by one, have steps that are one and a half times as large on the textured picture and
// several times as large on the smooth one.
func TestSeams(t *testing.T) {
	t.Parallel()
	const steps = 5
	var shared []int // from the start of each tile to the end of the one before
	for at := 16; at <= 48; at++ {
		shared = append(shared, at)
	}
	rt, p, key := onnxtest.Runtime(t), bundled(t), noise.Key{7, 42}
	op := newOperator(t, operator.GaussianDeblur, operator.Shape{Channels: 3, Height: 64, Width: 64})
	for name, truth := range map[string][]float32{"smooth": graded(op.Image), "textured": textured(op.Image)} {
		f, err := operator.NewForward(rt, op)
		must(t, err)
		y, err := f.Measure(t.Context(), truth, nil, operator.Noise{Sigma: 0.05}, key)
		must(t, errors.Join(err, f.Close()))
		fused := func(overlap int) (x []float32, g *prior.Grid) {
			run := tiled(t, newRun(t, p, op, config(t, op.Task, steps)), prior.Tiling{Side: 32, Overlap: overlap})
			return solve(t, compile(t, rt, run, 1, Build{}), []Problem{{Y: y, Key: key}})[0].X, run.Grid()
		}
		x, _ := fused(8) // a quarter: along an axis, tiles from 0 to 32, 16 to 48 and 32 to 64
		borders, overlaps := seams(x, truth, op.Image, []int{16, 32, 48}), seams(x, truth, op.Image, shared)
		if max(borders, overlaps) > 1.25 {
			t.Errorf("%s: the step is %.2f times as large at borders and %.2f times as large in overlaps as elsewhere", name, borders, overlaps)
		}
		x, g := fused(0)
		apart := seams(separately(t, p, g, y, key, steps), truth, op.Image, []int{32})
		if hard := seams(x, truth, op.Image, []int{32}); min(hard, apart) < 1.4 {
			t.Errorf("%s: without overlap %.2f, separately %.2f: the statistic does not see borders", name, hard, apart)
		}
	}
}
