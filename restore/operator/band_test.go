package operator

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
)

// evaluate computes f of one value.
func evaluate(t *testing.T, v []float32, dims []int, f func(g *onnx.Graph, v onnx.Value) onnx.Value) []float32 {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, dims...)
	y := f(g, x)
	g.Output("y", y)
	model, err := g.Marshal("test")
	if err != nil {
		t.Fatal(err)
	}
	s, err := onnxtest.Runtime(t).NewSession(model, []string{"x"}, []string{"y"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tensors, err := onnxruntime.NewTensors(x, y)
	if err != nil {
		t.Fatal(err)
	}
	defer onnxruntime.CloseTensors(tensors)
	copy(tensors[0].F32, v)
	if err := s.Run(t.Context(), tensors[:1], tensors[1:]); err != nil {
		t.Fatal(err)
	}
	return append([]float32(nil), tensors[1].F32...)
}

// TestBand: a band equals its matrix, and the adjoint its transpose, for bands that are narrower and wider than a block and at the border.
func TestBand(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*band{
		"narrow blur": reflecting(333, gaussianTaps(13, 1.5)),
		"wide blur":   reflecting(333, gaussianTaps(301, 60)),
		"one block":   reflecting(40, gaussianTaps(13, 1.5)),
		"smaller":     bicubicDown(720, 4),
		"larger":      bicubicUp(90, 4),
	} {
		for _, axis := range []int{rowAxis, colAxis} {
			for _, m := range []*band{b, b.transposed()} {
				dims := []int{1, 2, 6, 6}
				dims[axis] = m.cols
				v := make([]float32, 12*m.cols)
				noise.Normal(v, noise.Key{5}, noise.Start, 0, 1)
				got := evaluate(t, v, dims, func(g *onnx.Graph, x onnx.Value) onnx.Value { return m.apply(g, x, axis) })
				want := evaluate(t, v, dims, func(g *onnx.Graph, x onnx.Value) onnx.Value { return along(g, m.dense(), x, axis) })
				for i := range want {
					if math.Abs(float64(got[i]-want[i])) > 1e-5 {
						t.Fatalf("%s, axis %d: element %d is %g, want %g", name, axis, i, got[i], want[i])
					}
				}
			}
		}
		transposed, dense := b.transposed().dense(), b.dense().transposed()
		for i := range dense.data {
			if transposed.data[i] != dense.data[i] {
				t.Fatalf("%s: the transposed band differs at element %d", name, i)
			}
		}
	}
}

// TestLongOperators: operators of long images have the gradient of finite differences and the adjoint, and contain no constant that
// grows with the square of the side.
func TestLongOperators(t *testing.T) {
	t.Parallel()
	rt := onnxtest.Runtime(t)
	for _, task := range []string{GaussianDeblur, SuperResolution, MotionDeblur, NonlinearDeblur} {
		shape := Shape{Channels: 1, Height: 16, Width: 1056}
		op, err := Builtin().New(task, map[string]float64{}, shape)
		if err != nil {
			t.Fatal(err)
		}
		if linear := task == GaussianDeblur || task == SuperResolution; (op.expression.Adjoint != nil) != linear {
			t.Errorf("%s: an adjoint: %v", task, !linear)
		}
		if r, err := op.CheckGradient(t.Context(), rt); err != nil {
			t.Errorf("%s: %v, %+v", task, err, r)
		}
		model, _, _, err := op.model(1, true)
		if err != nil {
			t.Fatal(err)
		}
		if len(model) > 1<<20 {
			t.Errorf("%s: the model has %d bytes, matrices alone have %d", task, len(model), 4*1056*1056)
		}
		if task == NonlinearDeblur {
			continue
		}
		draw, err := op.Encode(op.Draw(noise.Key{8}))
		if err != nil {
			t.Fatal(err)
		}
		f, err := newForward(rt, op, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		x, w := make([]float32, shape.Size()), make([]float32, op.MeasurementSize())
		noise.Normal(x, noise.Key{1}, noise.Start, 0, 1)
		noise.Normal(w, noise.Key{2}, noise.Start, 0, 1)
		if err := f.run(t.Context(), x, draw, w); err != nil {
			t.Fatal(err)
		}
		if a, b := dot(f.outputs[0].F32, w), dot(x, f.outputs[1].F32); math.Abs(a-b) > 1e-3*max(1, math.Abs(a)) {
			t.Errorf("%s: ⟨Ax, w⟩ is %g, ⟨x, Aᵀw⟩ is %g", task, a, b)
		}
		f.Close()
	}
}

// TestFourierFilter: both filters are the same map, for kernels up to the radius.
func TestFourierFilter(t *testing.T) {
	t.Parallel()
	s := Shape{Channels: 2, Height: 30, Width: 44}
	exact, filter := newReflectFilter(s), newFourierFilter(s, 7)
	x := make([]float32, 2*s.Size())
	noise.Normal(x, noise.Key{3}, noise.Start, 0, 1)
	for _, size := range []int{1, 5, 15} {
		kernel := make([]float32, size*size)
		noise.Normal(kernel, noise.Key{4}, noise.Start, uint32(size), 1/float64(size))
		run := func(f kernelFilter) []float32 {
			encoded := f.encode(kernel, size)
			other := f.encode(make([]float32, size*size), size) // of the second image
			return evaluate(t, x, s.Dims(2), func(g *onnx.Graph, x onnx.Value) onnx.Value {
				return f.apply(g, x, g.Const(append(append([]float32(nil), encoded...), other...), append([]int{2}, f.dims()...)...))
			})
		}
		got, want := run(filter), run(exact)
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-4 {
				t.Fatalf("kernel of %d: element %d is %g, want %g", size, i, got[i], want[i])
			}
		}
	}
}

// TestFactors: the lengths of transforms are little above the need, and both matrices are small.
func TestFactors(t *testing.T) {
	t.Parallel()
	for _, n := range []int{17, 30, 1100, 3714, 4714, 9999, 12000} {
		p1, p2 := factors(n)
		if p := p1 * p2; p < n || float64(p) > 1.1*float64(n)+2 || p2 > 3*p1+3 {
			t.Errorf("%d: %d·%d", n, p1, p2)
		}
	}
	// No other two numbers of nearly equal size take fewer products. The product of 30 powers has no prime factors but 2, 3 and 5.
	smooth := func(m int) bool {
		return new(big.Int).Mod(new(big.Int).Exp(big.NewInt(30), big.NewInt(30), nil), big.NewInt(int64(m))).Sign() == 0
	}
	for n := 1; n <= 400; n++ {
		p1, p2 := factors(n)
		if p1*p2 < n || !smooth(p1) || !smooth(p2) {
			t.Errorf("%d: %d·%d", n, p1, p2)
		}
		for a := 1; a <= 40; a++ {
			for b := a; b <= 2*a+3; b++ {
				if smooth(a) && smooth(b) && a*b >= n && a*b*(a+b) < p1*p2*(p1+p2) {
					t.Errorf("%d: %d·%d takes fewer products than %d·%d", n, a, b, p1, p2)
				}
			}
		}
	}
}

// TestSpectrum: the memory of a filter in the frequency domain has two values for each pixel of the extended image; a filter of
// matrices needs none.
func TestSpectrum(t *testing.T) {
	t.Parallel()
	for width, limits := range map[int][2]int{1056: {2 * 64 * 1056, 3 * 64 * 1056}, 128: {}} {
		op, err := Builtin().New(MotionDeblur, map[string]float64{"size": 32}, Shape{Channels: 3, Height: 64, Width: width})
		if err != nil {
			t.Fatal(err)
		}
		if n := op.Spectrum(); n < limits[0] || n > limits[1] {
			t.Errorf("%d×64 pixels: %d values, want from %d to %d", width, n, limits[0], limits[1])
		}
	}
}

// TestLongKernels: a long image takes kernels up to the parameter size, and one line names the value for a larger one.
func TestLongKernels(t *testing.T) {
	t.Parallel()
	op, err := Builtin().New(MotionDeblur, map[string]float64{"size": 32}, Shape{Channels: 3, Height: 64, Width: 1056})
	if err != nil {
		t.Fatal(err)
	}
	flat := func(size int) *Draw {
		d := &Draw{Name: "kernel", Dims: []int{size, size}, Data: make([]float32, size*size)}
		d.Data[0] = 1
		return d
	}
	if _, err := op.Encode(flat(9)); err != nil {
		t.Errorf("a kernel of 9 pixels: %v", err)
	}
	_, err = op.Encode(flat(11))
	if !errors.Is(err, ErrParam) || !strings.Contains(err.Error(), "kernel: it has 11 pixels, the parameter size permits 9 in an image of 1056×64; set size to 44 or more") {
		t.Errorf("a kernel of 11 pixels: %v", err)
	}
	if op, err = Builtin().New(MotionDeblur, map[string]float64{"size": 44}, op.Image); err != nil {
		t.Fatal(err)
	}
	if _, err := op.Encode(flat(11)); err != nil {
		t.Errorf("a kernel of 11 pixels with size 44: %v", err)
	}
}
