package check_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/raster"
	"ddiff/restore/onnx"
)

var card = map[string]string{
	"ddiff.card": "1", "ddiff.name": "tiny", "ddiff.prediction": "epsilon", "ddiff.schedule": "linear:1e-4:0.02:1000",
	"ddiff.range": "-1..1", "ddiff.channels": "3", "ddiff.multiple_of": "8", "ddiff.learned_variance": "false",
	"ddiff.license": "CC0-1.0",
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// save writes a graph with metadata to a file in a new folder.
func save(t *testing.T, g *onnx.Graph, metadata map[string]string) string {
	t.Helper()
	return saveAs(t, filepath.Join(t.TempDir(), "m.onnx"), g, metadata)
}

func saveAs(t *testing.T, path string, g *onnx.Graph, metadata map[string]string) string {
	t.Helper()
	data, err := g.Marshal("test")
	must(t, err)
	must(t, os.WriteFile(path, onnxtest.WithMetadata(t, data, metadata), 0o644))
	return path
}

// score writes a network that predicts share·x as noise.
func score(t *testing.T, share float32, changes map[string]string) string {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, -1, 3, -1, -1)
	g.Input("t", onnx.Int64, -1)
	g.Output("eps", g.Mul(x, g.Scalar(share)))
	all := maps.Clone(card)
	maps.Copy(all, changes)
	return save(t, g, all)
}

// writeVectors writes a folder of vectors beside a model.
func writeVectors(t *testing.T, model, precision string, inputs, outputs map[string]*raster.Array) string {
	t.Helper()
	dir := strings.TrimSuffix(model, ".onnx") + ".vectors"
	must(t, os.MkdirAll(dir, 0o755))
	index := map[string]any{"precision": precision}
	sums := map[string]string{}
	for part, arrays := range map[string]map[string]*raster.Array{"inputs": inputs, "outputs": outputs} {
		files := map[string]string{}
		for name, a := range arrays {
			data, err := raster.EncodeNPY(a.Shape, a.Data)
			must(t, err)
			sum := sha256.Sum256(data)
			files[name], sums[name+".npy"] = name+".npy", hex.EncodeToString(sum[:])
			must(t, os.WriteFile(filepath.Join(dir, name+".npy"), data, 0o644))
		}
		index[part] = files
	}
	index["sha256"] = sums
	data, err := json.Marshal(index)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "vectors.json"), data, 0o644))
	return dir
}

// ramp returns an array of increasing values in [−1, 1], times a factor.
func ramp(factor float32, shape ...int) *raster.Array {
	n := 1
	for _, d := range shape {
		n *= d
	}
	a := &raster.Array{Shape: shape, Data: make([]float32, n)}
	for i := range a.Data {
		a.Data[i] = factor * (2*float32(i)/float32(n) - 1)
	}
	return a
}

func wantError(t *testing.T, err, kind error, parts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("error %v, want %v", err, kind)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q lacks %q", err, p)
		}
	}
}
