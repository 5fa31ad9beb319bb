package solver

import (
	"testing"

	"ddiff/internal/restore/haar"
	"ddiff/internal/restore/prior"
)

// linearPrior writes and opens the bundle of a linear first stage with Gaussian latents.
func linearPrior(t testing.TB, stage linearStage, variance []float32) *prior.Prior {
	t.Helper()
	dir := t.TempDir()
	must(t, stage.write(dir, variance))
	p, err := prior.Open(dir)
	must(t, err)
	return p
}

// product returns the product of two dense matrices.
func product(a, b [][]float64) [][]float64 {
	out := make([][]float64, len(a))
	for i := range a {
		out[i] = make([]float64, len(b[0]))
		for k, v := range a[i] {
			for j, w := range b[k] {
				out[i][j] += v * w
			}
		}
	}
	return out
}

// transpose returns the transpose of a dense matrix.
func transpose(a [][]float64) [][]float64 {
	out := make([][]float64, len(a[0]))
	for j := range out {
		out[j] = make([]float64, len(a))
		for i := range a {
			out[j][i] = a[i][j]
		}
	}
	return out
}

// apply returns a matrix times a vector.
func apply(a [][]float64, x []float64) []float64 {
	out := make([]float64, len(a))
	for i, row := range a {
		for j, v := range row {
			out[i] += v * x[j]
		}
	}
	return out
}

// haarPrior writes and opens the bundled prior between two Haar transforms.
func haarPrior(t testing.TB) *prior.Prior {
	t.Helper()
	data, err := prior.Read(prior.Bundled)
	must(t, err)
	dir := t.TempDir()
	must(t, haar.Write(dir, data, haar.Config{}))
	p, err := prior.Open(dir)
	must(t, err)
	return p
}
