package modelfile_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxtest"
)

// layers builds small networks whose results are compared in both layouts.
type layers struct {
	*onnx.Graph
	seed uint32
}

// model returns the network with the output y.
func (l *layers) model(t *testing.T, y onnx.Value) *modelfile.Model {
	t.Helper()
	l.Output("y", y)
	return onnxtest.Parse(t, l.Graph)
}

func (l *layers) weights(dims ...int) onnx.Value {
	l.seed++
	return l.Const(onnxtest.Random(onnx.Value{Dims: dims}.Size(), l.seed), dims...)
}

func (l *layers) conv(x onnx.Value, out, size, stride int) onnx.Value {
	p := size / 2
	w := l.weights(out, x.Dims[1], size, size)
	dims := []int{x.Dims[0], out, (x.Dims[2]+2*p-size)/stride + 1, (x.Dims[3]+2*p-size)/stride + 1}
	return l.Apply("Conv", onnx.Float, dims, map[string]any{"pads": []int{p, p, p, p}, "strides": []int{stride, stride}}, x, w, l.weights(out))
}

func (l *layers) resize(x onnx.Value, high, wide int, mode, nearest string) onnx.Value {
	return l.Apply("Resize", onnx.Float, []int{x.Dims[0], x.Dims[1], high * x.Dims[2], wide * x.Dims[3]},
		map[string]any{"mode": "nearest", "coordinate_transformation_mode": mode, "nearest_mode": nearest},
		x, onnx.Value{}, l.Const([]float32{1, 1, float32(high), float32(wide)}, 4))
}

func (l *layers) op(op string, x onnx.Value, more ...onnx.Value) onnx.Value {
	return l.Apply(op, onnx.Float, x.Dims, nil, append([]onnx.Value{x}, more...)...)
}

// mean is that of the last dimension of a value of rank 3.
func (l *layers) mean(x onnx.Value) onnx.Value {
	return l.Apply("ReduceMean", onnx.Float, []int{x.Dims[0], x.Dims[1], 1}, map[string]any{"axes": []int{2}, "keepdims": 1}, x)
}

func (l *layers) grouped(x onnx.Value, groups int) onnx.Value {
	return l.Reshape(x, x.Dims[0], groups, x.Size()/x.Dims[0]/groups)
}

// Each rule of the blocked layout, and each form that a rule refuses or that needs a value in its own layout again, gives the results of
// the plain network.
func TestBlockedRules(t *testing.T) {
	t.Parallel()
	const asymmetric, floor = "asymmetric", "floor"
	networks := map[string]struct {
		nodes string // operations of ONNX Runtime's layout
		build func(l *layers, x onnx.Value) onnx.Value
	}{
		"few output channels":     {"2 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value { return l.conv(l.conv(x, 32, 3, 1), 5, 3, 1) }},
		"channels in half blocks": {"2 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value { return l.conv(l.conv(x, 20, 3, 1), 36, 3, 1) }},
		"channels by twos":        {"2 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value { return l.conv(l.conv(x, 34, 3, 1), 32, 3, 1) }},
		"few channels between": {"3 Conv 2 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			return l.conv(l.conv(l.conv(x, 32, 3, 1), 5, 3, 1), 32, 3, 1)
		}},
		"few channels twice": {"2 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value { return l.conv(l.conv(l.conv(x, 32, 3, 1), 4, 3, 1), 4, 3, 1) }},
		"strides":            {"2 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value { return l.conv(l.conv(x, 32, 3, 2), 48, 1, 2) }},
		"residuals": {"3 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			a := l.conv(x, 32, 3, 1)
			b := l.Add(l.conv(a, 32, 3, 1), a)
			return l.Add(b, l.conv(b, 32, 1, 1))
		}},
		"two convolutions": {"2 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			return l.Add(l.conv(x, 32, 3, 1), l.conv(x, 32, 1, 1))
		}},
		"doubled": {"1 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value { a := l.conv(x, 32, 3, 1); return l.Add(a, a) }},
		"sum of an earlier result": {"2 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			a := l.conv(x, 32, 3, 1)
			b := l.op("Sigmoid", a)
			c := l.Mul(l.conv(a, 32, 3, 1), b)
			return l.Add(l.Add(c, a), b)
		}},
		"sums with plain images": {"1 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			a := l.conv(x, 32, 3, 1)
			return l.Add(a, l.op("Softsign", a))
		}},
		"activations": {"13 Conv 2 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			a := l.conv(x, 32, 3, 1)
			for _, op := range []string{"Sigmoid", "Tanh", "Relu", "Neg", "LeakyRelu", "Elu", "Erf", "Softplus", "HardSigmoid", "HardSwish", "Identity"} {
				a = l.Minus(l.op(op, l.op("Sigmoid", l.conv(a, 32, 1, 1))), l.op("Sigmoid", a))
			}
			return l.Div(a, l.Add(l.Exp(a), l.conv(x, 32, 1, 1)))
		}},
		"slope and offset": {"5 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			a := l.conv(x, 32, 3, 1)
			a = l.Add(l.Mul(a, l.weights(32, 1, 1)), l.weights(1, 32, 1, 1))
			a = l.Add(l.Mul(l.weights(x.Dims[0], 32, 1, 1), a), l.weights(x.Dims[0], 32, 1, 1))
			return l.Mul(l.Add(a, l.weights(x.Dims[0], 32, 1, 1)), l.weights(32, 1, 1))
		}},
		"slope for two": {"3 Conv 2 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			a := l.Mul(l.conv(x, 32, 3, 1), l.weights(32, 1, 1))
			return l.Mul(l.Add(a, l.weights(32, 1, 1)), l.op("Softsign", a))
		}},
		"one number": {"1 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			return l.Add(l.Mul(l.conv(x, 32, 3, 1), l.Scalar(2)), l.Const([]float32{3}, 1, 1, 1, 1))
		}},
		"numbers by row": {"1 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			a := l.conv(x, 32, 3, 1)
			return l.Add(l.Mul(a, l.weights(a.Dims[2], 1)), l.weights(a.Dims[3]))
		}},
		"small images": {"4 Conv 1 ReorderInput 3 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value { // [N, C, 1, 1] is also one number per channel
			a := l.conv(x, 32, 3, 1)
			b := l.Apply("GlobalAveragePool", onnx.Float, []int{x.Dims[0], 32, 1, 1}, nil, a)
			b = l.Add(l.conv(b, 32, 1, 1), b)
			return l.Mul(a, l.op("Sigmoid", b))
		}},
		"statistics": {"2 Conv 1 GlobalAveragePool", func(l *layers, x onnx.Value) onnx.Value {
			a := l.conv(x, 48, 3, 1)
			g := l.grouped(a, 8)
			return l.Concat(2, l.mean(g), l.mean(l.Mul(g, g)))
		}},
		"statistics and groups": {"2 Conv 1 GlobalAveragePool 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			g := l.grouped(l.conv(x, 48, 3, 1), 8)
			s := l.Mul(g, g)
			return l.Minus(l.Minus(l.Add(g, s), l.mean(g)), l.mean(s))
		}},
		"two groupings": {"2 Conv 1 GlobalAveragePool", func(l *layers, x onnx.Value) onnx.Value {
			a := l.conv(x, 48, 3, 1)
			g, h := l.grouped(a, 8), l.grouped(a, 16)
			return l.Concat(1, l.mean(g), l.mean(h), l.mean(l.Mul(g, g)), l.mean(l.Mul(h, h)))
		}},
		"product of groups": {"2 Conv 2 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			g := l.grouped(l.conv(x, 48, 3, 1), 8)
			return l.mean(l.Mul(g, l.grouped(l.conv(x, 48, 3, 1), 8)))
		}},
		"rows in groups": {"1 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value { // groups do not divide the channels
			return l.mean(l.grouped(l.conv(x, 32, 3, 1), 64))
		}},
		"concatenation": {"3 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			a, b := l.conv(x, 32, 3, 1), l.conv(x, 16, 3, 1)
			return l.Concat(1, l.conv(l.Concat(1, b, a, l.op("Sigmoid", b)), 16, 3, 1), x)
		}},
		"concatenation of rows": {"2 Conv 1 ReorderInput 2 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			a := l.conv(x, 32, 3, 1)
			return l.conv(l.Concat(2, a, a), 16, 3, 1)
		}},
		"upsampling before a convolution": {"3 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			return l.conv(l.conv(l.resize(l.conv(x, 32, 3, 1), 2, 2, asymmetric, floor), 48, 3, 1), 8, 1, 1)
		}},
		"upsampling for two": {"2 Conv 1 ReorderOutput 1 Upsample", func(l *layers, x onnx.Value) onnx.Value {
			u := l.resize(l.conv(x, 32, 3, 1), 2, 2, asymmetric, floor)
			return l.Add(l.conv(u, 32, 3, 1), l.op("Sigmoid", u))
		}},
		"upsampling before a stride": {"2 Conv 1 ReorderOutput 1 Upsample", func(l *layers, x onnx.Value) onnx.Value {
			return l.conv(l.resize(l.conv(x, 32, 3, 1), 2, 2, asymmetric, floor), 32, 3, 2)
		}},
		"upsampling before a pixel": {"2 Conv 1 ReorderOutput 1 Upsample", func(l *layers, x onnx.Value) onnx.Value {
			return l.conv(l.resize(l.conv(x, 32, 3, 1), 2, 2, asymmetric, floor), 32, 1, 1)
		}},
		"upsampling before few channels": {"2 Conv 1 ReorderOutput 1 Upsample", func(l *layers, x onnx.Value) onnx.Value {
			return l.conv(l.resize(l.conv(x, 32, 3, 1), 2, 2, asymmetric, floor), 12, 3, 1)
		}},
		"upsampling alone": {"1 Conv 1 ReorderOutput 1 Upsample", func(l *layers, x onnx.Value) onnx.Value {
			return l.resize(l.conv(x, 32, 3, 1), 2, 2, asymmetric, floor)
		}},
		"upsampling by 3 and 2": {"2 Conv 1 ReorderOutput 1 Upsample", func(l *layers, x onnx.Value) onnx.Value {
			return l.conv(l.resize(l.conv(x, 32, 3, 1), 3, 2, asymmetric, floor), 16, 3, 1)
		}},
		"upsampling by other pixels": {"2 Conv 1 ReorderInput 2 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			return l.conv(l.resize(l.conv(x, 32, 3, 1), 3, 3, asymmetric, "ceil"), 16, 3, 1)
		}},
		"pools": {"2 AveragePool 1 Conv 1 MaxPool 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			a := l.conv(x, 32, 3, 1)
			half := []int{x.Dims[0], 32, x.Dims[2] / 2, x.Dims[3] / 2}
			two := map[string]any{"kernel_shape": []int{2, 2}, "strides": []int{2, 2}}
			three := map[string]any{"kernel_shape": []int{3, 3}, "strides": []int{2, 2}, "pads": []int{1, 1, 1, 1}, "count_include_pad": 1}
			return l.Concat(1, l.Apply("AveragePool", onnx.Float, half, two, a), l.Apply("MaxPool", onnx.Float, half, two, a),
				l.Apply("AveragePool", onnx.Float, half, three, a))
		}},
		"groups of channels": {"1 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			a := l.conv(x, 32, 3, 1)
			return l.Apply("Conv", onnx.Float, a.Dims, map[string]any{"group": 4, "pads": []int{1, 1, 1, 1}}, a, l.weights(32, 8, 3, 3))
		}},
		"without offset": {"2 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			a := l.conv(x, 32, 3, 1)
			return l.Apply("Conv", onnx.Float, a.Dims, map[string]any{"dilations": []int{2, 2}, "pads": []int{2, 2, 2, 2}}, a, l.weights(32, 32, 3, 3))
		}},
		"computed weights": {"1 Conv 1 ReorderOutput", func(l *layers, x onnx.Value) onnx.Value {
			a := l.conv(x, 32, 3, 1)
			return l.Apply("Conv", onnx.Float, a.Dims, nil, a, l.op("Sigmoid", l.weights(32, 32, 1, 1)))
		}},
	}
	rt := onnxtest.Runtime(t)
	if rt.Block() == 0 {
		t.Skip("the library has no blocked layout on this processor")
	}
	for name, c := range networks {
		for _, n := range []int{1, 3} {
			g := onnx.NewGraph(onnx.DefaultOpset)
			l := &layers{Graph: g}
			x := g.Input("x", onnx.Float, n, 3, 6, 10)
			y := c.build(l, x)
			m := l.model(t, y)
			want, _ := inNetwork(t, m, x, y, 0)
			got, nodes := inNetwork(t, m, x, y, rt.Block())
			if nodes != c.nodes {
				t.Errorf("%s, batch %d: %s, want %s", name, n, nodes, c.nodes)
			}
			_, largest := farthest(want, want)
			if i := slices.IndexFunc(got, func(v float32) bool { return !(math.Abs(float64(v)) <= 10*largest) }); i >= 0 {
				t.Errorf("%s, batch %d: element %d is %v", name, n, i, got[i])
			}
			for i := range want {
				if d := math.Abs(float64(want[i] - got[i])); !(d <= 2e-6*largest) {
					t.Errorf("%s, batch %d: element %d is %v, want %v", name, n, i, got[i], want[i])
					break
				}
			}
		}
	}
}

// inNetwork returns the results of a network for fixed noise in a layout, and the operations of ONNX Runtime's layout by number.
func inNetwork(t *testing.T, m *modelfile.Model, x, y onnx.Value, block int) (results []float32, nodes string) {
	t.Helper()
	g := onnx.NewGraph(m.Opset())
	g.Block(block)
	in := g.Input("x", onnx.Float, x.Dims...)
	out, err := g.InlineNetwork(m, map[string]onnx.Value{"x": in}, map[string][]int{"y": y.Dims})
	must(t, err)
	g.Output("y", out["y"])
	counts := map[string]int{}
	for _, n := range onnxtest.Parse(t, g).Proto().Graph.Node {
		if n.Domain == "com.microsoft.nchwc" {
			counts[n.OpType]++
		}
	}
	for _, op := range slices.Sorted(maps.Keys(counts)) {
		nodes += fmt.Sprintf(" %d %s", counts[op], op)
	}
	return onnxtest.Run(t, g, []onnx.Value{in}, []onnx.Value{{Name: "y", DType: onnx.Float, Dims: y.Dims}}, onnxtest.Random(x.Size(), 9))[0], strings.TrimSpace(nodes)
}

// The statistics of a large image, whose mean is far from zero, keep their digits.
func TestBlockedLargeImage(t *testing.T) {
	t.Parallel()
	rt := onnxtest.Runtime(t)
	if rt.Block() == 0 {
		t.Skip("the library has no blocked layout on this processor")
	}
	const side, channels = 768, 16
	g := onnx.NewGraph(onnx.DefaultOpset)
	l := &layers{Graph: g}
	x := g.Input("x", onnx.Float, 1, 1, side, side)
	ones, offset := make([]float32, channels), make([]float32, channels)
	for i := range ones {
		ones[i], offset[i] = 1, 10
	}
	h := l.Apply("Conv", onnx.Float, []int{1, channels, side, side}, nil, x, l.Const(ones, channels, 1, 1, 1), l.Const(offset, channels))
	grouped := l.grouped(h, 2)
	y := l.Concat(1, l.mean(grouped), l.mean(l.Mul(grouped, grouped)))
	got, nodes := inNetwork(t, l.model(t, y), x, y, rt.Block())
	if nodes != "2 Conv 1 GlobalAveragePool" {
		t.Errorf("%s", nodes)
	}
	var mean, square float64
	for _, v := range onnxtest.Random(x.Size(), 9) {
		z := float64(v + 10)
		mean += z / side / side
		square += z * z / side / side
	}
	for i, want := range []float64{mean, mean, square, square} {
		if d := math.Abs(float64(got[i])/want - 1); !(d <= 2e-6) {
			t.Errorf("statistic %d is %v instead of %v: relative error %.2g", i, got[i], want, d)
		}
	}
}
