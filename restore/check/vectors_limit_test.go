package check_test

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"

	"ddiff/restore/check"
	"ddiff/restore/raster"
)

// TestVectorsLimit: arrays are refused by their size together, also of a small archive.
func TestVectorsLimit(t *testing.T) {
	t.Parallel()
	zeros := &raster.Array{Shape: []int{int(check.MaxVectorBytes/8) + 1}}
	zeros.Data = make([]float32, zeros.Shape[0])
	model := filepath.Join(t.TempDir(), "m.onnx")
	dir := writeVectors(t, model, "fp32", map[string]*raster.Array{"a": zeros}, map[string]*raster.Array{"b": zeros})
	archive := filepath.Join(t.TempDir(), "v.npz")
	f, err := os.Create(archive)
	must(t, err)
	z := zip.NewWriter(f)
	for _, name := range []string{"a.npy", "b.npy"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		w, err := z.Create(name)
		must(t, err)
		_, err = w.Write(data)
		must(t, err)
	}
	must(t, z.Close())
	must(t, f.Close())
	for _, path := range []string{archive, dir} {
		_, err := check.ReadVectors(path, []string{"b"})
		wantError(t, err, check.ErrVectors, "b.npy: the arrays together exceed 256 MiB")
	}
}
