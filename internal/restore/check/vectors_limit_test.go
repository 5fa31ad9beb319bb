package check_test

import (
	"testing"

	"ddiff/internal/restore/check"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/raster"
)

// TestVectorsLimit: arrays are refused by their size together.
func TestVectorsLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("computes many vectors: make test-all")
	}
	t.Parallel()
	zeros := &raster.Array{Shape: []int{int(check.MaxVectorBytes/8) + 1}}
	zeros.Data = make([]float32, zeros.Shape[0])
	file := score(t, 0.5, nil)
	writeVectors(t, file, "float32", map[string]*raster.Array{"a": zeros}, map[string]*raster.Array{"b": zeros})
	_, err := check.Prior(t.Context(), onnxtest.Runtime(t), file, check.PriorOptions{Size: 8, Timesteps: []int{1}})
	wantError(t, err, check.ErrVectors, "b.npy: the arrays together exceed 256 MiB")
}
