package onnxruntime

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/restore/onnx"
)

// runProbe returns the results of the small network on fixed noise.
func runProbe(compile func(model []byte, inputs, outputs []string) (*Session, error)) ([]float32, error) {
	m, err := probeNetwork()
	if err != nil {
		return nil, err
	}
	g := onnx.NewGraph(m.Opset())
	x := g.Input("x", onnx.Float, 2, 3, 8, 8)
	out, err := g.Inline(m, map[string]onnx.Value{"x": x}, map[string][]int{"y": x.Dims})
	if err != nil {
		return nil, err
	}
	g.Output("y", out["y"])
	y := onnx.Value{Name: "y", DType: onnx.Float, Dims: x.Dims}
	data := normals(rand.New(rand.NewPCG(1, 2)), x.Size(), 1) //nolint:gosec // a fixed sample
	got, err := evaluate(context.Background(), compile, g, []onnx.Value{x}, []onnx.Value{y}, data)
	if err != nil {
		return nil, err
	}
	return got[0].F32, nil
}

// agree returns an error if results differ by more than a share of the largest.
func agree(got, want []float32, tolerance float64) error {
	var largest, difference float64
	for i, v := range want {
		largest = max(largest, math.Abs(float64(v)))
		difference = max(difference, math.Abs(float64(v-got[i])))
	}
	if !(difference <= tolerance*largest) {
		return fmt.Errorf("results differ by %.2g of at most %.2g", difference, largest)
	}
	return nil
}

func normals(r *rand.Rand, n int, scale float64) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(scale * r.NormFloat64())
	}
	return out
}

// probeNetwork has the operations of score networks: convolutions with stride, residuals, a group normalisation, an upsampling and a
// concatenation.
func probeNetwork() (*modelfile.Model, error) {
	const c = 32
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a fixed sample
	g := onnx.NewGraph(onnx.DefaultOpset)
	conv := func(x onnx.Value, out, size, stride int) onnx.Value {
		in := x.Dims[1]
		w := g.Const(normals(r, out*in*size*size, 1/math.Sqrt(float64(in*size*size))), out, in, size, size)
		pad := size / 2
		return g.Apply("Conv", onnx.Float, []int{x.Dims[0], out, x.Dims[2] / stride, x.Dims[3] / stride},
			map[string]any{"kernel_shape": []int{size, size}, "pads": []int{pad, pad, pad, pad}, "strides": []int{stride, stride}}, x, w, g.Const(normals(r, out, 1), out))
	}
	norm := func(x onnx.Value) onnx.Value {
		const groups = 4
		h := g.Reshape(x, x.Dims[0], groups, x.Size()/x.Dims[0]/groups)
		ones, zeros := g.Const(slices.Repeat([]float32{1}, groups), groups), g.Const(make([]float32, groups), groups)
		h = g.Reshape(g.Apply("InstanceNormalization", onnx.Float, h.Dims, nil, h, ones, zeros), x.Dims...)
		h = g.Add(g.Mul(h, g.Const(normals(r, c, 1), c, 1, 1)), g.Const(normals(r, c, 1), c, 1, 1))
		return g.Mul(h, g.Apply("Sigmoid", h.DType, h.Dims, nil, h))
	}
	x := g.Input("x", onnx.Float, 2, 3, 8, 8)
	h := conv(x, c, 3, 1)
	h = g.Add(conv(norm(h), c, 3, 1), h)
	small := conv(h, c, 3, 2)
	up := g.Apply("Resize", onnx.Float, h.Dims, map[string]any{
		"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor",
	}, small, onnx.Value{}, g.Const([]float32{1, 1, 2, 2}, 4))
	h = conv(norm(conv(g.Concat(1, conv(up, c, 3, 1), h), c, 1, 1)), 3, 3, 1)
	g.Output("y", g.Add(x, h))
	data, err := g.Marshal("probe")
	if err != nil {
		return nil, err
	}
	m, err := modelfile.ReadModel(data)
	if err != nil {
		return nil, err
	}
	m, _ = m.FuseGroupNorm()
	return m, nil
}
