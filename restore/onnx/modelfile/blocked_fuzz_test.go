package modelfile_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxtest"
)

// fuzzBlocked is the number of random networks.
const fuzzBlocked = 200

// blockedFuzzer builds one random network of images [N, C, H, W]. Most operations have a rule of the blocked layout, some have none.
type blockedFuzzer struct {
	*onnx.Graph
	*rand.Rand
	images []onnx.Value
	used   []string // operations, for messages
}

// weights adds a normal constant with the given deviation.
func (f *blockedFuzzer) weights(deviation float64, dims ...int) onnx.Value {
	data := make([]float32, onnx.Value{Dims: dims}.Size())
	for i := range data {
		data[i] = float32(deviation * f.NormFloat64())
	}
	return f.Const(data, dims...)
}

// one returns an element.
func one[T any](f *blockedFuzzer, of ...T) T { return of[f.IntN(len(of))] }

// pick returns an image, mostly a late one.
func (f *blockedFuzzer) pick() onnx.Value {
	return f.images[max(f.IntN(len(f.images)), f.IntN(len(f.images)))]
}

// alike returns an image with the dimensions of x, often x, and in all dimensions but the channels if channels differ.
func (f *blockedFuzzer) alike(x onnx.Value, channels bool) onnx.Value {
	var found []onnx.Value
	for _, v := range f.images {
		if v.Dims[2] == x.Dims[2] && v.Dims[3] == x.Dims[3] && (channels || v.Dims[1] == x.Dims[1]) {
			found = append(found, v)
		}
	}
	return one(f, found...)
}

func (f *blockedFuzzer) op(op string, dims []int, attrs map[string]any, inputs ...onnx.Value) onnx.Value {
	f.used = append(f.used, fmt.Sprint(op, attrs, " ", inputs, "->", dims))
	return f.Apply(op, onnx.Float, dims, attrs, inputs...)
}

// convolution has any number of channels, margins that differ, and attributes in all their forms.
func (f *blockedFuzzer) convolution() onnx.Value {
	x := f.pick()
	out := one(f, 1, 3, 4, 5, 8, 8, 12, 16, 16, 16, 20, 24, 32, 36, 40)
	if f.IntN(3) == 0 {
		out = x.Dims[1]
	}
	high, wide := one(f, 1, 3, 3, 3, 2), one(f, 1, 3, 3, 3, 2)
	group := 1
	if x.Dims[1]%4 == 0 && out%4 == 0 && f.IntN(8) == 0 {
		group = 4
	}
	stride, dilation := one(f, 1, 1, 1, 2), one(f, 1, 1, 1, 2)
	attrs := map[string]any{"strides": []int{stride, stride}, "dilations": []int{dilation, dilation}, "group": group}
	if f.IntN(2) == 0 {
		attrs["kernel_shape"] = []int{high, wide}
	}
	length := func(size, kernel, pads int) int { return (size + pads - dilation*(kernel-1) - 1 + stride) / stride }
	var h, w int
	switch {
	case f.IntN(6) == 0 && dilation == 1:
		attrs["auto_pad"] = one(f, "SAME_UPPER", "SAME_LOWER")
		h, w = (x.Dims[2]+stride-1)/stride, (x.Dims[3]+stride-1)/stride
	case f.IntN(6) == 0:
		pads := []int{f.IntN(3), f.IntN(3), 1 + f.IntN(2), 1 + f.IntN(2)}
		attrs["pads"] = pads
		h, w = length(x.Dims[2], high, pads[0]+pads[2]), length(x.Dims[3], wide, pads[1]+pads[3])
	default:
		pads := []int{dilation * (high - 1) / 2, dilation * (wide - 1) / 2}
		attrs["pads"] = slices.Concat(pads, pads)
		h, w = length(x.Dims[2], high, 2*pads[0]), length(x.Dims[3], wide, 2*pads[1])
	}
	if h < 1 || w < 1 {
		return x
	}
	inputs := []onnx.Value{x, f.weights(1/math.Sqrt(float64(x.Dims[1]/group*high*wide)), out, x.Dims[1]/group, high, wide)}
	if f.IntN(3) > 0 {
		inputs = append(inputs, f.weights(1, out))
	}
	return f.op("Conv", []int{x.Dims[0], out, h, w}, attrs, inputs...)
}

// channelwise multiplies by or adds one number per channel, per channel and image, or one number.
func (f *blockedFuzzer) channelwise() onnx.Value {
	x := f.pick()
	c := x.Dims[1]
	v := f.weights(1, one(f, []int{c, 1, 1}, []int{1, c, 1, 1}, []int{x.Dims[0], c, 1, 1}, []int{}, []int{1}, []int{1, 1, 1, 1}, []int{1, x.Dims[3]})...)
	in := []onnx.Value{x, v}
	if f.IntN(2) == 0 {
		slices.Reverse(in)
	}
	y := f.op(one(f, "Mul", "Mul", "Add", "Add", "Sub"), x.Dims, nil, in...)
	if f.IntN(2) == 0 {
		y = f.op("Add", x.Dims, nil, y, f.weights(1, one(f, []int{c, 1, 1}, []int{x.Dims[0], c, 1, 1})...))
	}
	return y
}

func (f *blockedFuzzer) reduce(x onnx.Value) onnx.Value {
	dims, attrs := []int{x.Dims[0], x.Dims[1], 1}, map[string]any{"keepdims": 1}
	last := one(f, 2, -1)
	if f.Opset() >= 18 {
		return f.op("ReduceMean", dims, attrs, x, f.Ints(last))
	}
	attrs["axes"] = []int{last}
	return f.op("ReduceMean", dims, attrs, x)
}

// normalised is a group normalisation as FuseGroupNorm writes it, sometimes with another consumer of its parts.
func (f *blockedFuzzer) normalised() onnx.Value {
	x := f.pick()
	n, c := x.Dims[0], x.Dims[1]
	groups := 1
	for _, g := range []int{2, 4, 8} {
		if c%g == 0 && f.IntN(2) == 0 {
			groups = g
		}
	}
	if x.Dims[2]*x.Dims[3] < 2 {
		return x
	}
	r := f.Reshape(x, n, groups, x.Size()/n/groups)
	mean, squares := f.reduce(r), f.Mul(r, r)
	variance := f.Minus(f.reduce(squares), f.Mul(mean, mean))
	if f.IntN(4) == 0 {
		f.images = append(f.images, f.Reshape(one(f, r, squares), x.Dims...))
	}
	slope := f.Div(f.weights(1, 1, groups, c/groups), f.op("Sqrt", mean.Dims, nil, f.Add(f.op("Relu", mean.Dims, nil, variance), f.Scalar(1))))
	offset := f.Minus(f.weights(1, 1, groups, c/groups), f.Mul(mean, slope))
	slope, offset = f.Reshape(slope, n, c, 1, 1), f.Reshape(offset, n, c, 1, 1)
	y := f.op("Mul", x.Dims, nil, x, slope)
	return f.op("Add", x.Dims, nil, one(f, []onnx.Value{y, offset}, []onnx.Value{offset, y})...)
}

// upsampled repeats pixels, by scales or sizes, mostly in the form of PyTorch's exporter.
func (f *blockedFuzzer) upsampled() onnx.Value {
	x := f.pick()
	scales := one(f, []int{2, 2}, []int{2, 2}, []int{2, 2}, []int{1, 2}, []int{3, 3}, []int{3, 2})
	dims := []int{x.Dims[0], x.Dims[1], scales[0] * x.Dims[2], scales[1] * x.Dims[3]}
	if dims[2] > 20 || dims[3] > 24 {
		return x
	}
	attrs := map[string]any{"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
	if f.IntN(4) == 0 {
		attrs["coordinate_transformation_mode"], attrs["nearest_mode"] = "half_pixel", "round_prefer_floor"
	}
	if f.IntN(2) == 0 {
		return f.op("Resize", dims, attrs, x, onnx.Value{}, onnx.Value{}, f.Ints(dims...))
	}
	return f.op("Resize", dims, attrs, x, onnx.Value{}, f.Const([]float32{1, 1, float32(scales[0]), float32(scales[1])}, 4))
}

func (f *blockedFuzzer) pooled() onnx.Value {
	x := f.pick()
	size, stride, pad := 2+f.IntN(2), 1+f.IntN(2), f.IntN(2)
	op := one(f, "AveragePool", "MaxPool")
	attrs := map[string]any{"kernel_shape": []int{size, size}, "strides": []int{stride, stride}, "pads": []int{pad, pad, pad, pad}}
	if op == "AveragePool" && f.IntN(2) == 0 {
		attrs["count_include_pad"] = 1
	}
	dims := []int{x.Dims[0], x.Dims[1], (x.Dims[2]+2*pad-size)/stride + 1, (x.Dims[3]+2*pad-size)/stride + 1}
	if x.Dims[2]+2*pad < size || x.Dims[3]+2*pad < size {
		return x
	}
	return f.op(op, dims, attrs, x)
}

// step adds an operation.
func (f *blockedFuzzer) step() {
	var y onnx.Value
	switch f.IntN(14) {
	case 0, 1, 2, 3:
		y = f.convolution()
	case 4, 5:
		x := f.pick()
		y = f.op(one(f, "Add", "Add", "Add", "Sub", "Mul"), x.Dims, nil, x, f.alike(x, false))
	case 6:
		x := f.pick()
		y = f.op(one(f, "Sigmoid", "Tanh", "Relu", "Identity", "Neg", "Softsign", "Erf", "LeakyRelu"), x.Dims, nil, x)
	case 7, 8:
		y = f.channelwise()
	case 9, 10:
		y = f.normalised()
	case 11:
		y = f.upsampled()
	case 12:
		x := f.pick()
		z := f.alike(x, true)
		y = f.op("Concat", []int{x.Dims[0], x.Dims[1] + z.Dims[1], x.Dims[2], x.Dims[3]}, map[string]any{"axis": one(f, 1, -3)}, x, z)
	case 13:
		y = f.pooled()
	}
	f.images = append(f.images, y)
}

// Random networks have the same results in the blocked layout as without. Both are in one graph.
func TestBlockedFuzz(t *testing.T) {
	t.Parallel()
	block := onnxtest.Runtime(t).Block()
	if block == 0 {
		t.Skip("the library has no blocked layout on this processor")
	}
	worst := 0.0
	for seed := range uint64(fuzzBlocked) {
		f := &blockedFuzzer{
			Graph: onnx.NewGraph([]int{13, 17, 18, 21, 22}[seed%5]), Rand: rand.New(rand.NewPCG(seed, 15)), //nolint:gosec // a seeded generator
		}
		m, x, outputs := f.network(t)
		g := onnx.NewGraph(m.Opset())
		in := g.Input("x", onnx.Float, x.Dims...)
		var out []onnx.Value
		for _, b := range []int{0, block} {
			g.Block(b)
			y, err := g.InlineNetwork(m, map[string]onnx.Value{"x": in}, outputs)
			must(t, err)
			for i := range len(outputs) {
				v := y[fmt.Sprint("y", i)]
				v.Name = fmt.Sprintf("y%d_%d", i, b)
				g.Output(v.Name, y[fmt.Sprint("y", i)])
				out = append(out, v)
			}
		}
		results := onnxtest.Run(t, g, []onnx.Value{in}, out, onnxtest.Random(x.Size(), uint32(seed))) //nolint:gosec // small
		for i, want := range results[:len(outputs)] {
			difference, largest := farthest(want, results[len(outputs)+i])
			worst = max(worst, difference/max(largest, 1e-9))
			if !(difference <= 1e-5*largest) {
				t.Errorf("network %d, output %d: results differ by %.2g of at most %.2g; operations %v", seed, i, difference, largest, f.used)
			}
		}
	}
	t.Logf("largest difference %.2g", worst)
}

// network returns a network of the input x, and the dimensions of its outputs: the last images.
func (f *blockedFuzzer) network(t *testing.T) (m *modelfile.Model, x onnx.Value, outputs map[string][]int) {
	t.Helper()
	x = f.Input("x", onnx.Float, 1+f.IntN(3), one(f, 1, 3, 8, 12, 20), 1+f.IntN(9), 2+f.IntN(9))
	f.images = []onnx.Value{x}
	for range 4 + f.IntN(14) {
		f.step()
	}
	outputs = map[string][]int{}
	for i, v := range f.images[max(1, len(f.images)-4):] {
		name := fmt.Sprint("y", i)
		f.Output(name, v)
		outputs[name] = v.Dims
	}
	return onnxtest.Parse(t, f.Graph), x, outputs
}
