package operator_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/operator"
)

// given is the set with the operator of gaussian_deblur for items that have a kernel.
func given(t *testing.T) operator.Set {
	t.Helper()
	d, err := operator.Builtin().Definition(operator.GaussianDeblur, true)
	must(t, err)
	return operator.Set{d}
}

// lopsided is a kernel without any symmetry that sums to 1.
func lopsided(size int) *operator.Draw {
	d := &operator.Draw{Name: "kernel", Dims: []int{size, size}, Data: make([]float32, size*size)}
	stream, sum := noise.NewStream(noise.Key{uint32(size)}, noise.Operator), 0.0
	weights := make([]float64, size*size)
	for i := range weights {
		weights[i] = float64(1+stream.Intn(1000)) * float64(1+i) // heavier at the lower right
		sum += weights[i]
	}
	for i, w := range weights {
		d.Data[i] = float32(w / sum)
	}
	return d
}

// correlated is the direct sum y[i, j] = Σ k[a, b]·x[i + a − r, j + b − r] with a border reflected without its edge, in float64.
func correlated(x []float32, s operator.Shape, k *operator.Draw, at func(visit func(c, i, j int, y float64))) func(visit func(c, i, j int, y float64)) {
	size := k.Dims[0]
	mirror := func(i, n int) int {
		if i < 0 {
			i = -i
		}
		if i >= n {
			i = 2*(n-1) - i
		}
		return i
	}
	return func(visit func(c, i, j int, y float64)) {
		at(func(c, i, j int, _ float64) {
			y := 0.0
			for a := range size {
				for b := range size {
					row, col := mirror(i+a-size/2, s.Height), mirror(j+b-size/2, s.Width)
					y += float64(k.Data[a*size+b]) * float64(x[(c*s.Height+row)*s.Width+col])
				}
			}
			visit(c, i, j, y)
		})
	}
}

// TestGivenKernel: gaussian_deblur with a kernel is the direct correlation, below and above 1024 pixels, where the transforms differ.
func TestGivenKernel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shape operator.Shape
		size  int
		every int // entries that are compared
	}{
		{operator.Shape{Channels: 3, Height: 24, Width: 40}, 1, 1},
		{operator.Shape{Channels: 3, Height: 24, Width: 40}, 9, 1},
		{operator.Shape{Channels: 1, Height: 16, Width: 14}, 27, 1}, // the widest reflection
		{operator.Shape{Channels: 2, Height: 36, Width: 1030}, 7, 1},
		{operator.Shape{Channels: 1, Height: 1032, Width: 48}, 11, 7},
	} {
		t.Run(fmt.Sprint(c.shape, c.size), func(t *testing.T) {
			t.Parallel()
			op, err := given(t).New(operator.GaussianDeblur, nil, c.shape)
			must(t, err)
			k := lopsided(c.size)
			draw, err := op.Encode(k)
			must(t, err)
			f := operator.Forwards(t, op)
			x := normal(c.shape.Size(), 3, 1)
			y, err := f.Apply(t.Context(), x, draw)
			must(t, err)
			worst, n := 0.0, 0
			correlated(x, c.shape, k, func(visit func(c, i, j int, y float64)) {
				for i := 0; i < len(y); i += c.every {
					visit(i/(c.shape.Height*c.shape.Width), i/c.shape.Width%c.shape.Height, i%c.shape.Width, 0)
				}
			})(func(ch, i, j int, want float64) {
				worst = max(worst, math.Abs(want-float64(y[(ch*c.shape.Height+i)*c.shape.Width+j])))
				n++
			})
			if !(worst <= 2e-5) || n < 200 {
				t.Errorf("%d entries differ from the direct sum by %.2g", n, worst)
			}
			if r, err := op.CheckGradient(t.Context(), onnxtest.Runtime(t)); c.size < 11 && (err != nil || !(r.Error <= 2e-3)) {
				t.Errorf("gradient: %+v, %v", r, err)
			}
		})
	}
}

// TestKernelOrientation pins what a kernel from a file means, for all tasks that accept one: the weight at the row a and the column b of
// the kernel belongs to the pixel that lies a − r below and b − r right of that of y. A point of light therefore becomes the kernel turned
// by 180°, and a measured point spread function has to be turned before it is given.
func TestKernelOrientation(t *testing.T) {
	t.Parallel()
	shape, at := operator.Shape{Channels: 1, Height: 32, Width: 32}, 16
	k := &operator.Draw{Name: "kernel", Dims: []int{3, 3}, Data: []float32{0, 0, 0, 0, 0.25, 0, 0, 0, 0.75}} // centre, and lower right
	for name, set := range map[string]operator.Set{operator.GaussianDeblur: given(t), operator.MotionDeblur: nil, operator.NonlinearDeblur: nil} {
		for _, shape := range []operator.Shape{shape, {Channels: 1, Height: 1026, Width: 32}} {
			op, err := set.New(name, nil, shape)
			must(t, err)
			draw, err := op.Encode(k)
			must(t, err)
			x := slices.Repeat([]float32{-1}, shape.Size()) // black
			f := operator.Forwards(t, op)
			dark, err := f.Apply(t.Context(), x, draw)
			must(t, err)
			x[at*shape.Width+at] = 0
			y, err := f.Apply(t.Context(), x, draw)
			must(t, err)
			var lit []int
			for i := range y {
				if y[i]-dark[i] > 0.02 {
					lit = append(lit, i)
				}
			}
			// The pixel up and left of the point sees it with the weight at the lower right.
			if want := []int{(at-1)*shape.Width + at - 1, at*shape.Width + at}; !slices.Equal(lit, want) || !(y[want[0]] > y[want[1]]) {
				t.Errorf("%s at %v: light at %v, want %v with the first brighter", name, shape, lit, want)
			}
		}
	}
}

// TestGivenDefinition: the operator of items with a kernel has no decomposition and no standard deviation, and that of the others no draw.
func TestGivenDefinition(t *testing.T) {
	t.Parallel()
	all, set := operator.Builtin(), given(t)
	shape := operator.Shape{Channels: 3, Height: 16, Width: 16}
	for _, d := range all {
		if (d.Given != nil) != (d.Name == operator.GaussianDeblur) {
			t.Errorf("%s: its kernel is optional: %v", d.Name, d.Given != nil)
		}
		same, err := all.Definition(d.Name, true)
		if err != nil || same.IsGiven() != (d.Name == operator.GaussianDeblur) || d.IsGiven() {
			t.Errorf("%s: %+v, %v", d.Name, same, err)
		}
	}
	if _, err := all.Definition("sharpen", true); !errors.Is(err, operator.ErrTask) {
		t.Errorf("an unknown task: error %v", err)
	}
	if set[0].SVD != nil || !set.Known(operator.GaussianDeblur).Linear {
		t.Error("the properties of the operator with a kernel")
	}
	if _, err := set.Parameters(operator.GaussianDeblur, map[string]float64{"std": 3}); !errors.Is(err, operator.ErrParam) {
		t.Errorf("the standard deviation of a given kernel: error %v", err)
	}
	plain, err := all.New(operator.GaussianDeblur, nil, shape)
	must(t, err)
	if _, err := plain.Encode(lopsided(3)); !errors.Is(err, operator.ErrParam) || plain.ParameterDims(1) != nil {
		t.Errorf("a kernel for the Gaussian operator: error %v", err)
	}
	own, err := set.New(operator.GaussianDeblur, nil, shape)
	must(t, err)
	if _, err := own.SVD(); !errors.Is(err, operator.ErrNoSVD) {
		t.Errorf("decomposition: error %v", err)
	}
	if !own.Required {
		t.Error("the kernel may be missing")
	}
	for name, d := range map[string]*operator.Draw{
		"none": nil, "even": {Name: "kernel", Dims: []int{2, 2}, Data: []float32{1, 0, 0, 0}}, "oblong": {Name: "kernel", Dims: []int{1, 3}, Data: []float32{0, 1, 0}},
		"zero": {Name: "kernel", Dims: []int{3, 3}, Data: make([]float32, 9)}, "NaN": {Name: "kernel", Dims: []int{1, 1}, Data: []float32{float32(math.NaN())}},
		"wide": lopsided(33), "mask": {Name: "mask", Dims: []int{1, 1}, Data: []float32{1}},
	} {
		if _, err := own.Encode(d); !errors.Is(err, operator.ErrParam) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
