package onnx_test

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// vectors are a network's inputs, the vector w of the result's shape and gx = Jᵀ·w by PyTorch, from NAME.json.
type vectors struct {
	Arrays map[string]struct {
		Dims []int  `json:"dims"`
		Type string `json:"type"`
		Data []byte `json:"data"`
	} `json:"arrays"`
}

// gradientVectors reads the network and the vectors of tools/gradient_vectors.py with the name.
func gradientVectors(t *testing.T, name string) (*modelfile.Model, vectors) {
	t.Helper()
	base := filepath.Join("testdata", "gradients", name)
	packed, err := os.Open(base + ".onnx.gz")
	must(t, err)
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	must(t, err)
	data, err := io.ReadAll(unpacked)
	must(t, err)
	m, err := modelfile.ReadModel(data)
	must(t, err)
	text, err := os.ReadFile(base + ".json")
	must(t, err)
	var v vectors
	must(t, json.Unmarshal(text, &v))
	return m, v
}

// Gradients through networks as PyTorch exports them, at several operator sets and with free shapes, equal autograd's.
func TestGradientVectors(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/gradients/*.onnx.gz")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d networks, want 20 or more (%v)", len(files), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".onnx.gz")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rel := vectorError(t, name, false)
			if !(rel <= 1e-4) {
				t.Errorf("relative error %.2g, want 1e-4 or less", rel)
				return
			}
			gradients.recordGraph(rel)
		})
	}
}

// In mixed precision, the error is that of float16.
func TestGradientHalf(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"vq_decoder_17", "adm_unet_16", "attention_17", "convolutions_16"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if rel := vectorError(t, name, true); !(rel > 1e-5 && rel <= 5e-3) {
				t.Errorf("relative error %.2g, want 1e-5 to 5e-3", rel)
			}
		})
	}
}

// vectorError returns the relative error of the gradient through a stored network.
func vectorError(t *testing.T, name string, half bool) float64 {
	t.Helper()
	m, v := gradientVectors(t, name)
	g := onnx.NewGraph(m.Opset())
	g.Half(half)
	inputs := map[string]onnx.Value{}
	var order []onnx.Value
	for _, p := range m.Inputs() {
		inputs[p.Name] = g.Input(p.Name, p.DType, v.Arrays[p.Name].Dims...)
		order = append(order, inputs[p.Name])
	}
	w := g.Input("w", onnx.Float, v.Arrays["w"].Dims...)
	order = append(order, w)
	out, err := g.Inline(m, inputs, map[string][]int{"y": w.Dims})
	must(t, err)
	gx, err := g.Gradient(out["y"], inputs["x"], w)
	must(t, err)
	g.Output("gx", gx)
	e := newEvaluation(t, g, order, onnx.Value{Name: "gx", DType: onnx.Float, Dims: gx.Dims})
	for i, in := range order {
		fill(e.in[i], v.Arrays[in.Name].Data)
	}
	return relativeError(e.run()[0], floats(v.Arrays["gx"].Data))
}

// Gradients through networks of diffusers, as the older and the newer exporter write them, agree with differences.
func TestGradientForeignNetworks(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../internal/restore/prior/testdata/attention_*.onnx")
	if err != nil || len(files) != 6 {
		t.Fatalf("%d networks, want 6 (%v)", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(f)
			must(t, err)
			m, err := modelfile.ReadModel(data)
			must(t, err)
			dims := []int{1, 3, 16, 16}
			if strings.Contains(f, "free") {
				dims = []int{2, 3, 16, 24}
			}
			g := onnx.NewGraph(m.Opset())
			x, time := g.Input("x", onnx.Float, dims...), g.Input("t", onnx.Int64, dims[0])
			out, err := g.Inline(m, map[string]onnx.Value{"x": x, "t": time}, map[string][]int{"z": dims})
			must(t, err)
			seed := g.Input("seed", onnx.Float, dims...)
			dx, err := g.Gradient(out["z"], x, seed)
			must(t, err)
			g.Output("y", out["z"])
			g.Output("dx", dx)
			e := newEvaluation(t, g, []onnx.Value{x, seed, time}, onnx.Value{Name: "y", DType: onnx.Float, Dims: dims},
				onnx.Value{Name: "dx", DType: onnx.Float, Dims: dims})
			for i := range e.in[2].I64 {
				e.in[2].I64[i] = int64(300 + 100*i)
			}
			rel := e.compareDifferences(onnxtest.Random(x.Size(), 1), x.Size())
			if !(rel <= 1e-3) {
				t.Errorf("relative error %.2g of the derivative, want 1e-3 or less", rel)
				return
			}
			gradients.recordGraph(rel)
		})
	}
}

// fill decodes an array into an input.
func fill(x *onnxruntime.Tensor, raw []byte) {
	if len(x.F32) > 0 {
		copy(x.F32, floats(raw))
		return
	}
	for i := range x.I64 {
		x.I64[i] = int64(binary.LittleEndian.Uint64(raw[8*i:])) //nolint:gosec // two's complement
	}
}

// floats decodes little-endian numbers.
func floats(raw []byte) []float32 {
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

// relativeError is the length of the difference over the length of want.
func relativeError(got, want []float32) float64 {
	difference, length := 0.0, 0.0
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		difference, length = difference+d*d, length+float64(w)*float64(w)
	}
	return math.Sqrt(difference / length)
}
