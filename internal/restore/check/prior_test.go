package check_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"ddiff/internal/restore/check"
	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/restore/onnx"
)

func TestPriorStatistics(t *testing.T) {
	t.Parallel()
	r, err := check.Prior(t.Context(), onnxtest.Runtime(t), score(t, 0.5, nil), check.PriorOptions{Size: 33, Timesteps: []int{0, 500, 999}})
	must(t, err)
	if r.Shape != [4]int{1, 3, 40, 40} || r.Name != "tiny" || len(r.SHA256) != 64 || r.Vectors != nil || !(r.PeakMiB > 1) || len(r.Noise) != 3 {
		t.Errorf("report %+v", r)
	}
	// The network predicts half of √(1−ᾱ)·ε, which determines the standard deviation and the error.
	for _, n := range r.Noise {
		s := math.Sqrt(1 - n.AlphaBar)
		if !(math.Abs(n.Std-s/2) <= 0.02) || !(math.Abs(n.Mean) <= 0.03) || !(math.Abs(n.MSE-(1-s/2)*(1-s/2)) <= 0.03) {
			t.Errorf("t %d: mean %g, standard deviation %g, error %g with √(1−ᾱ) = %g", n.T, n.Mean, n.Std, n.MSE, s)
		}
	}
}

// TestBundledPrior: the bundled prior denoises a photograph and predicts the noise in pure noise.
func TestBundledPrior(t *testing.T) {
	if testing.Short() {
		t.Skip("computes with the bundled prior: make test-all")
	}
	t.Parallel()
	data, err := os.ReadFile("../../../examples/images/coffee.png")
	must(t, err)
	img, err := raster.Decode(data)
	must(t, err)
	img, err = raster.Fit(img, raster.CenterCrop, 64, 8)
	must(t, err)
	r, err := check.Prior(t.Context(), onnxtest.Runtime(t), prior.Bundled, check.PriorOptions{Size: 64, Images: []*raster.Image{img}, Timesteps: []int{100, 300, 900}})
	must(t, err)
	if len(r.Warnings) != 0 || len(r.Images) != 3 {
		t.Fatalf("report %+v", r)
	}
	if first, last := r.Images[0], r.Noise[2]; !(first.Denoised >= first.Noisy+6) || !(last.MSE <= 0.05) {
		t.Errorf("denoised from %.1f dB to %.1f dB; mean square error on noise %g", first.Noisy, first.Denoised, last.MSE)
	}
}

// TestWarnings: a network that predicts no noise in pure noise is untrained or predicts another quantity. Here that is
// the velocity or the image, both near 0 for pure noise with a zero image.
func TestWarnings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		share   float32
		changes map[string]string
		warn    bool
	}{
		"epsilon":                       {1, nil, false},
		"velocity with an epsilon card": {0, nil, true},
		"velocity":                      {0, map[string]string{"ddiff.prediction": "velocity"}, false},
		"sample":                        {0, map[string]string{"ddiff.prediction": "sample"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := check.Prior(t.Context(), onnxtest.Runtime(t), score(t, c.share, c.changes), check.PriorOptions{Size: 16, Timesteps: []int{999}})
			must(t, err)
			if (len(r.Warnings) > 0) != c.warn {
				t.Errorf("error %g, warnings %q", r.Noise[0].MSE, r.Warnings)
			}
		})
	}
}

func TestPriorVectors(t *testing.T) {
	t.Parallel()
	inputs := map[string]*raster.Array{"x": ramp(1, 2, 3, 8, 16), "t": {Shape: []int{2}, Data: []float32{5, 900}}}
	right := map[string]*raster.Array{"eps": ramp(0.5, 2, 3, 8, 16)}
	wrong := map[string]*raster.Array{"eps": ramp(0.502, 2, 3, 8, 16)}
	for name, c := range map[string]struct {
		outputs   map[string]*raster.Array
		precision string
		ok        bool
	}{
		"equal":                 {right, "float32", true},
		"different":             {wrong, "float32", false},
		"float16, within limit": {wrong, "float16", true}, // 20·log₁₀(2/0.004) ≈ 54 dB
		"float16, beyond limit": {map[string]*raster.Array{"eps": ramp(0.51, 2, 3, 8, 16)}, "float16", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := score(t, 0.5, nil)
			writeVectors(t, file, c.precision, inputs, c.outputs)
			r, err := check.Prior(t.Context(), onnxtest.Runtime(t), file, check.PriorOptions{Size: 8, Timesteps: []int{1}})
			must(t, err)
			if r.Vectors == nil || r.Vectors.OK != c.ok || r.Vectors.Precision != c.precision || r.Vectors.File == nil {
				t.Errorf("vectors %+v, want %v", r.Vectors, c.ok)
			}
		})
	}
}

func TestInvalidVectors(t *testing.T) {
	t.Parallel()
	good := map[string]*raster.Array{"x": ramp(1, 1, 3, 8, 8), "t": {Shape: []int{1}, Data: []float32{3}}}
	out := map[string]*raster.Array{"eps": ramp(0.5, 1, 3, 8, 8)}
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string)
		want   string
	}{
		"altered":  {func(t *testing.T, dir string) { flip(t, filepath.Join(dir, "eps.npy")) }, "eps.npy was altered"},
		"missing":  {func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "x.npy"))) }, "x.npy: no such file"},
		"no index": {func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "vectors.json"))) }, "vectors.json: no such file"},
		"no JSON": {func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "vectors.json"), []byte("["), 0o644))
		}, "vectors.json: "},
		"escape": {func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "vectors.json"), []byte(`{"precision": "float32", "inputs": {"x": "../x.npy"}}`), 0o644))
		}, "must name a file in the same folder"},
		"precision": {func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "vectors.json"), []byte(`{"precision": "int8"}`), 0o644))
		}, "precision is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := score(t, 0.5, nil)
			c.damage(t, writeVectors(t, file, "float32", good, out))
			_, err := check.Prior(t.Context(), onnxtest.Runtime(t), file, check.PriorOptions{Size: 8, Timesteps: []int{1}})
			wantError(t, err, check.ErrVectors, c.want)
		})
	}
	file := score(t, 0.5, nil)
	writeVectors(t, file, "float32", map[string]*raster.Array{"x": ramp(1, 1, 3, 8, 8)}, out)
	_, err := check.Prior(t.Context(), onnxtest.Runtime(t), file, check.PriorOptions{Size: 8, Timesteps: []int{1}})
	wantError(t, err, check.ErrVectors, "want the image batch, its times and one output")
}

func TestNotFinite(t *testing.T) {
	t.Parallel()
	rt := onnxtest.Runtime(t)
	_, err := check.Prior(t.Context(), rt, score(t, float32(math.Inf(1)), nil), check.PriorOptions{Size: 8, Timesteps: []int{4}})
	wantError(t, err, prior.ErrGraph, "NaN or infinite")
	// Infinite at time index 0 only.
	g := onnx.NewGraph(onnx.DefaultOpset)
	x, times := g.Input("x", onnx.Float, -1, 3, -1, -1), g.Input("t", onnx.Int64, -1)
	first := g.Reshape(g.Slice(g.Cast(onnx.Value{Name: times.Name, DType: onnx.Int64, Dims: []int{1}}, onnx.Float), 0, 0, 1), 1, 1, 1, 1)
	g.Output("eps", g.Div(x, first))
	_, err = check.Prior(t.Context(), rt, save(t, g, card), check.PriorOptions{Size: 8, Timesteps: []int{0}})
	wantError(t, err, check.ErrNotFinite, "at time index 0")
}

func TestInvalidPriors(t *testing.T) {
	t.Parallel()
	rt := onnxtest.Runtime(t)
	_, err := check.Prior(t.Context(), rt, filepath.Join(t.TempDir(), "no.onnx"), check.PriorOptions{})
	wantError(t, err, os.ErrNotExist)
	_, err = check.Prior(t.Context(), rt, score(t, 1, map[string]string{"ddiff.channels": "1"}), check.PriorOptions{})
	wantError(t, err, prior.ErrCard, "channels is 1")
	path := filepath.Join(t.TempDir(), "text.onnx")
	must(t, os.WriteFile(path, []byte("text"), 0o644))
	_, err = check.Prior(t.Context(), rt, path, check.PriorOptions{})
	wantError(t, err, modelfile.ErrModel, "not an ONNX file")
	_, err = check.Prior(t.Context(), rt, score(t, 1, nil), check.PriorOptions{Size: 8, Timesteps: []int{1000}})
	if err == nil {
		t.Error("no error for time index 1000 of 0..999")
	}
	_, err = check.Prior(t.Context(), rt, score(t, 1, nil), check.PriorOptions{Size: 8, Images: []*raster.Image{raster.New(3, 8, 16)}})
	if err == nil {
		t.Error("no error for an image of another size")
	}
}

func TestDeviate(t *testing.T) {
	t.Parallel()
	a := make([]float32, 1000)
	noise.Normal(a, noise.NewKey([32]byte{1}), noise.Step, 0, 1)
	if d := check.Deviate(a, a); d.MaxAbs != 0 || d.PSNR != 200 {
		t.Errorf("equal: %+v", d)
	}
	b := append([]float32(nil), a...)
	for i := range b {
		b[i] += 0.02
	}
	// The peak is 2 for unit variance: 20·log₁₀(2/0.02) = 40 dB.
	if d := check.Deviate(b, a); !(math.Abs(d.MaxAbs-0.02) <= 1e-6) || !(math.Abs(d.PSNR-40) <= 0.3) {
		t.Errorf("shifted by 0.02: %+v", d)
	}
}

// flip changes the last byte of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	data[len(data)-1] ^= 1
	must(t, os.WriteFile(path, data, 0o644))
}
