package operator_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/restore/operator"
)

// TestImageShape: the shape of a measurement determines that of its image.
func TestImageShape(t *testing.T) {
	t.Parallel()
	set := operator.Builtin()
	for _, name := range set.Names() {
		for _, image := range append(shapes, operator.Shape{Channels: 3, Height: 256, Width: 272}) {
			image = suited(name, image)
			op, err := set.New(name, nil, image)
			must(t, err)
			if got, err := set.ImageShape(name, nil, op.Measurement); err != nil || got != image {
				t.Errorf("%s: image %v of a measurement %v, want %v, error %v", name, got, op.Measurement, image, err)
			}
			if n := op.MeasurementSize(); n != op.Measurement[0]*op.Measurement[1]*op.Measurement[2] {
				t.Errorf("%s: a measurement %v has %d entries", name, op.Measurement, n)
			}
		}
	}
	for _, c := range []struct {
		task        string
		params      map[string]float64
		measurement []int
		image       operator.Shape
		cause       error
	}{
		{"super_resolution", map[string]float64{"factor": 8}, []int{3, 4, 6}, operator.Shape{Channels: 3, Height: 32, Width: 48}, nil},
		{"phase_retrieval", nil, []int{3, 96, 120}, operator.Shape{Channels: 3, Height: 64, Width: 80}, nil},
		{"phase_retrieval", map[string]float64{"oversample": 8}, []int{1, 24, 48}, operator.Shape{Channels: 1, Height: 8, Width: 16}, nil},
		{"phase_retrieval", map[string]float64{"oversample": 1}, []int{1, 10, 20}, operator.Shape{Channels: 1, Height: 8, Width: 16}, nil},
		{"phase_retrieval", map[string]float64{"oversample": 1}, []int{1, 20, 10}, operator.Shape{Channels: 1, Height: 16, Width: 8}, nil},
		{"phase_retrieval", nil, []int{3, 384, 384}, operator.Shape{Channels: 3, Height: 256, Width: 256}, nil},
		{"colorize", nil, []int{1, 64, 48}, operator.Shape{Channels: 3, Height: 64, Width: 48}, nil},
		{"demosaic", nil, []int{1, 64, 48}, operator.Shape{Channels: 3, Height: 64, Width: 48}, nil},
		{"colorize", nil, []int{3, 64, 48}, operator.Shape{}, operator.ErrShape},
		{"demosaic", nil, []int{2, 64, 48}, operator.Shape{}, operator.ErrShape},
		{"super_resolution_area", map[string]float64{"factor": 3}, []int{3, 8, 16}, operator.Shape{Channels: 3, Height: 24, Width: 48}, nil},
		{"super_resolution", map[string]float64{"factor": 256}, []int{3, 1, 1}, operator.Shape{Channels: 3, Height: 256, Width: 256}, nil},
		{"phase_retrieval", nil, []int{3, 385, 384}, operator.Shape{}, operator.ErrShape},
		{"phase_retrieval", nil, []int{3, 16, 12}, operator.Shape{}, operator.ErrShape}, // sides 8, 10, 12, … have measurements of sides 12, 14, 18, …
		{"hdr", nil, []int{3, 65, 64}, operator.Shape{}, operator.ErrShape},
		{"hdr", nil, []int{64, 64}, operator.Shape{}, operator.ErrShape},
		{"hdr", map[string]float64{"gain": 2}, []int{3, 64, 64}, operator.Shape{}, operator.ErrParam},
		{"sharpen", nil, []int{3, 64, 64}, operator.Shape{}, operator.ErrTask},
	} {
		if got, err := set.ImageShape(c.task, c.params, c.measurement); got != c.image || !errors.Is(err, c.cause) {
			t.Errorf("%s %v: image %v of a measurement %v, want %v; error %v, want %v", c.task, c.params, got, c.measurement, c.image, err, c.cause)
		}
	}
}

// TestImageSizes: the limits of the sides.
func TestImageSizes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		task                    string
		channels, height, width int
		valid                   bool
	}{
		{"hdr", 1, 8, 8, true},
		{"hdr", 1, 6, 8, false},
		{"hdr", 1, 8, 6, false},
		{"hdr", 1, 9, 8, false},
		{"hdr", 1, 8, 9, false},
		{"hdr", 0, 8, 8, false},
		{"hdr", 1, 20000, 20000, true}, // without matrices
		{"super_resolution", 1, 66, 64, false},
		{"super_resolution", 1, 64, 66, false},
		{"gaussian_deblur", 1, 14190, 8, true}, // without matrices of 14190² elements
		{"super_resolution", 1, 8, 20000, true},
		{"phase_retrieval", 1, 8194, 8192, false},
		{"phase_retrieval", 1, 8192, 8194, false},
		{"motion_deblur", 1, 64, 20000, true},
		{"colorize", 1, 64, 64, false},
		{"demosaic", 1, 64, 64, false},
		{"demosaic", 3, 20000, 20000, true},
	} {
		_, err := operator.Builtin().New(c.task, nil, operator.Shape{Channels: c.channels, Height: c.height, Width: c.width})
		if c.valid && err != nil || !c.valid && !errors.Is(err, operator.ErrShape) {
			t.Errorf("%s of %d×%d with %d channels: error %v", c.task, c.width, c.height, c.channels, err)
		}
	}
	for _, c := range []struct {
		task          string
		height, width int
		want          float64
	}{
		{"gaussian_deblur", 1024, 512, 1024*1024 + 512*512}, {"gaussian_deblur", 1026, 512, 0}, {"gaussian_deblur", 512, 1026, 0},
		{"super_resolution", 64, 128, 0.5 * (64*64 + 128*128)}, {"phase_retrieval", 2048, 64, 1.5 * (2048*2048 + 64*64)}, {"sharpen", 64, 64, 0},
	} {
		if got := operator.Builtin().Known(c.task).Constants(operator.Shape{Channels: 3, Height: c.height, Width: c.width}); got != c.want {
			t.Errorf("%s of %d×%d has matrices of %g elements, want %g", c.task, c.width, c.height, got, c.want)
		}
	}
}

// TestLargestImage: matrices of exactly the largest number of elements are allowed.
func TestLargestImage(t *testing.T) {
	t.Parallel()
	set := operator.Set{{Name: "dense", Dense: 1.5, Build: func(operator.Shape, map[string]float64) (operator.Expression, error) {
		return operator.Expression{}, nil
	}}}
	if _, err := set.New("dense", nil, operator.Shape{Channels: 3, Height: 8192, Width: 8192}); err != nil {
		t.Errorf("8192×8192: %v", err)
	}
	_, err := set.New("dense", nil, operator.Shape{Channels: 3, Height: 8192, Width: 8194})
	if !errors.Is(err, operator.ErrShape) || !strings.Contains(err.Error(), "8194×8192 needs constant matrices of 201 million elements, at most 201 million are allowed") {
		t.Errorf("8194×8192: %v", err)
	}
}

// TestLengths: lengths are those of an image of 256 pixels, by its shorter side.
func TestLengths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ height, width, hole, kernel int }{
		{256, 256, 128, 61}, {128, 256, 64, 31}, {512, 256, 128, 61}, {64, 64, 32, 15}, {128, 128, 64, 31}, {512, 512, 256, 123}, {24, 24, 12, 5},
	} {
		shape := operator.Shape{Channels: 1, Height: c.height, Width: c.width}
		box := operator.Build(t, "inpaint_box", nil, shape)
		hole := 0
		for _, v := range box.Draw([3]uint32{1}).Data {
			if v == 0 {
				hole++
			}
		}
		if hole != c.hole*c.hole {
			t.Errorf("%v: a hole of %d pixels, want %d×%d", shape, hole, c.hole, c.hole)
		}
		motion := operator.Build(t, "motion_deblur", nil, shape)
		if d := motion.Draw([3]uint32{1}); !slices.Equal(d.Dims, []int{c.kernel, c.kernel}) {
			t.Errorf("%v: a kernel of %v, want %d", shape, d.Dims, c.kernel)
		}
	}
}

// TestHoleThatFits: a hole with its margins may fill the image, and must not be larger.
func TestHoleThatFits(t *testing.T) {
	t.Parallel()
	shape := operator.Shape{Channels: 1, Height: 256, Width: 512}
	op := operator.Build(t, "inpaint_box", map[string]float64{"size": 156, "margin": 50}, shape)
	for i := range uint32(20) {
		top, left, bottom, right, hole := 256, 512, -1, -1, 0
		for k, v := range op.Draw([3]uint32{i}).Data {
			if v == 0 {
				hole++
				top, bottom = min(top, k/512), max(bottom, k/512)
				left, right = min(left, k%512), max(right, k%512)
			}
		}
		if hole != 156*156 || top != 50 || bottom != 205 || left < 50 || right != left+155 || right > 461 {
			t.Errorf("draw %d: a hole of %d pixels from (%d, %d) to (%d, %d)", i, hole, top, left, bottom, right)
		}
	}
	if _, err := operator.Builtin().New("inpaint_box", map[string]float64{"size": 157, "margin": 50}, shape); !errors.Is(err, operator.ErrParam) {
		t.Errorf("hole of 157 pixels: error %v, want ErrParam", err)
	}
	if _, err := operator.Builtin().New("inpaint_box", map[string]float64{"size": 0.4}, shape); !errors.Is(err, operator.ErrParam) {
		t.Errorf("hole without pixels: error %v, want ErrParam", err)
	}
	if _, err := operator.Builtin().New("inpaint_box", map[string]float64{"size": 1, "margin": 0}, shape); err != nil {
		t.Errorf("hole of one pixel: %v", err)
	}
}

// TestEncodeRefuses: masks and kernels from files that do not fit.
func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	shape := operator.Shape{Channels: 3, Height: 8, Width: 10}
	mask := operator.Build(t, "inpaint_random", nil, shape)
	kernel := operator.Build(t, "motion_deblur", map[string]float64{"size": 96}, shape)
	ones := func(n int) []float32 { return slices.Repeat([]float32{1}, n) }
	// point is a kernel with one weight.
	point := func(n int, v float32) []float32 {
		k := make([]float32, n)
		k[n/2] = v
		return k
	}
	half := ones(80)
	half[7] = 0.5
	one := make([]float32, 80)
	one[79] = 1
	for name, c := range map[string]struct {
		op    *operator.Operator
		draw  *operator.Draw
		words string // empty: it is accepted
	}{
		"mask":             {mask, &operator.Draw{Name: "mask", Dims: []int{8, 10}, Data: ones(80)}, ""},
		"one pixel":        {mask, &operator.Draw{Name: "mask", Dims: []int{8, 10}, Data: one}, ""},
		"no mask":          {mask, nil, "the mask or kernel is missing"},
		"kernel as mask":   {mask, &operator.Draw{Name: "kernel", Dims: []int{8, 10}, Data: ones(80)}, "mask"},
		"mask of 3 axes":   {mask, &operator.Draw{Name: "mask", Dims: []int{1, 8, 10}, Data: ones(80)}, "its shape is [1 8 10], the image is 10×8"},
		"turned mask":      {mask, &operator.Draw{Name: "mask", Dims: []int{10, 8}, Data: ones(80)}, "its shape is [10 8], the image is 10×8"},
		"short mask":       {mask, &operator.Draw{Name: "mask", Dims: []int{7, 10}, Data: ones(70)}, "its shape is [7 10]"},
		"narrow mask":      {mask, &operator.Draw{Name: "mask", Dims: []int{8, 9}, Data: ones(72)}, "its shape is [8 9]"},
		"soft mask":        {mask, &operator.Draw{Name: "mask", Dims: []int{8, 10}, Data: half}, "element 7 is 0.5"},
		"empty mask":       {mask, &operator.Draw{Name: "mask", Dims: []int{8, 10}, Data: make([]float32, 80)}, "no pixel is observed"},
		"kernel":           {kernel, &operator.Draw{Name: "kernel", Dims: []int{3, 3}, Data: point(9, 1)}, ""},
		"largest kernel":   {kernel, &operator.Draw{Name: "kernel", Dims: []int{15, 15}, Data: point(225, 1)}, ""},
		"too large kernel": {kernel, &operator.Draw{Name: "kernel", Dims: []int{17, 17}, Data: point(289, 1)}, "17 pixels is wider than the reflection of 10×8"},
		"mask as kernel":   {kernel, &operator.Draw{Name: "mask", Dims: []int{3, 3}, Data: point(9, 1)}, "kernel"},
		"kernel of 1 axis": {kernel, &operator.Draw{Name: "kernel", Dims: []int{3}, Data: point(3, 1)}, "it must be square and odd"},
		"oblong kernel":    {kernel, &operator.Draw{Name: "kernel", Dims: []int{3, 5}, Data: point(15, 1)}, "it must be square and odd"},
		"even kernel":      {kernel, &operator.Draw{Name: "kernel", Dims: []int{4, 4}, Data: point(16, 1)}, "it must be square and odd"},
		"light kernel":     {kernel, &operator.Draw{Name: "kernel", Dims: []int{3, 3}, Data: point(9, 0.998)}, "it must be 1"},
		"heavy kernel":     {kernel, &operator.Draw{Name: "kernel", Dims: []int{3, 3}, Data: point(9, 1.002)}, "it must be 1"},
		"NaN":              {kernel, &operator.Draw{Name: "kernel", Dims: []int{3, 3}, Data: point(9, float32(math.NaN()))}, "it must be 1"},
	} {
		encoded, err := c.op.Encode(c.draw)
		if c.words == "" {
			if n := c.op.ParameterDims(1); err != nil || len(encoded) != n[1]*n[2]*n[3] {
				t.Errorf("%s: %d elements, error %v", name, len(encoded), err)
			}
			continue
		}
		if !errors.Is(err, operator.ErrParam) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: error %v, want ErrParam with %q", name, err, c.words)
		}
	}
}

// TestKernelsThatFit: kernels up to twice the shorter side fit the reflection.
func TestKernelsThatFit(t *testing.T) {
	t.Parallel()
	shape := operator.Shape{Channels: 1, Height: 256, Width: 256}
	for _, task := range []string{"gaussian_deblur", "motion_deblur", "nonlinear_deblur"} {
		if _, err := operator.Builtin().New(task, map[string]float64{"size": 256}, shape); err != nil {
			t.Errorf("%s: %v", task, err)
		}
	}
}

// TestBaseline: the picture that a restoration has to beat.
func TestBaseline(t *testing.T) {
	t.Parallel()
	shape := operator.Shape{Channels: 2, Height: 16, Width: 32}
	for task, want := range map[string]func(y []float32) []float32{
		"hdr": func(y []float32) []float32 {
			out := make([]float32, len(y))
			for i, v := range y {
				out[i] = v / 2
			}
			return out
		},
		"inpaint_random":  func(y []float32) []float32 { return y },
		"gaussian_deblur": func(y []float32) []float32 { return y },
		"phase_retrieval": nil,
	} {
		op := operator.Build(t, task, nil, shape)
		y := normal(op.MeasurementSize(), 4, 1)
		b := op.Baseline(y)
		if want == nil {
			if b != nil {
				t.Errorf("%s: a baseline of %d×%d", task, b.Width, b.Height)
			}
			continue
		}
		if b == nil || b.Channels != 2 || b.Height != 16 || b.Width != 32 || !slices.Equal(b.Pix, want(y)) {
			t.Errorf("%s: baseline %v", task, b)
		}
	}
}

// TestEnlargement: bicubic enlargement with Keys' kernel reproduces ramps away from the border, and constants up to it.
func TestEnlargement(t *testing.T) {
	t.Parallel()
	const factor = 4
	op := operator.Build(t, "super_resolution", nil, operator.Shape{Channels: 2, Height: 32, Width: 48})
	h, w := 8, 12
	y := make([]float32, 2*h*w)
	for i := range h * w {
		y[i] = float32(0.1*float64(i/w) - 0.05*float64(i%w))
		y[h*w+i] = 0.7
	}
	b := op.Baseline(y)
	if b == nil || b.Channels != 2 || b.Height != 32 || b.Width != 48 {
		t.Fatalf("baseline %v", b)
	}
	for i := range 32 * 48 {
		row, col := (float64(i/48)+0.5)/factor-0.5, (float64(i%48)+0.5)/factor-0.5
		inside := row >= 1 && row <= float64(h-2) && col >= 1 && col <= float64(w-2)
		if want := 0.1*row - 0.05*col; inside && !(math.Abs(float64(b.Pix[i])-want) <= 1e-6) {
			t.Errorf("row %d, column %d: %g, want %g", i/48, i%48, b.Pix[i], want)
		}
		if v := b.Pix[32*48+i]; !(math.Abs(float64(v)-0.7) <= 1e-6) {
			t.Errorf("row %d, column %d: %g of a constant 0.7", i/48, i%48, v)
		}
	}
	// The border is mirrored with its edge repeated: the first row is between those of the first two samples.
	edge := make([]float32, 2*h*w)
	for i := range w {
		edge[i] = 1
	}
	// Keys' kernel at distances 0.375, 0.625 and 1.625 of samples 0, −1 (equal to 0) and 1, −2 (equal to 1).
	keys := func(x float64) float64 {
		if x <= 1 {
			return 1.5*x*x*x - 2.5*x*x + 1
		}
		return -0.5*x*x*x + 2.5*x*x - 4*x + 2
	}
	if got, want := float64(op.Baseline(edge).Pix[20]), keys(0.375)+keys(0.625); !(math.Abs(got-want) <= 1e-6) {
		t.Errorf("first row of an edge: %g, want %g", got, want)
	}
}

// TestPictures: a spectrum is shown on a logarithmic scale, any other measurement as it is.
func TestPictures(t *testing.T) {
	t.Parallel()
	shape := operator.Shape{Channels: 1, Height: 16, Width: 16}
	op := operator.Build(t, "phase_retrieval", nil, shape)
	y := make([]float32, op.MeasurementSize())
	y[0], y[1], y[2] = 5, 0.5, -1 // a noisy modulus may be negative
	p := op.Picture(y)
	if p.Channels != 1 || p.Height != 24 || p.Width != 24 {
		t.Fatalf("picture of %d×%d", p.Width, p.Height)
	}
	for i, want := range []float64{1, 2*math.Log(11)/math.Log(101) - 1, -1, -1} {
		if !(math.Abs(float64(p.Pix[i])-want) <= 1e-6) {
			t.Errorf("value %g is shown as %g, want %g", y[i], p.Pix[i], want)
		}
	}
	if p := op.Picture(make([]float32, len(y))); p.Pix[0] != -1 {
		t.Errorf("a spectrum of zeros is shown as %g", p.Pix[0])
	}
}

// TestObserved: the data term uses the observed entries of each channel.
func TestObserved(t *testing.T) {
	t.Parallel()
	shape := operator.Shape{Channels: 2, Height: 8, Width: 8}
	op := operator.Build(t, "inpaint_random", nil, shape)
	mask, y := make([]float32, 64), normal(128, 1, 1)
	mask[3], mask[60] = 1, 1
	if got, want := op.Observed(y, mask), []float32{y[3], y[60], y[67], y[124]}; !slices.Equal(got, want) {
		t.Errorf("observed %v, want %v", got, want)
	}
	blur := operator.Build(t, "motion_deblur", nil, shape)
	if got := blur.Observed(y, make([]float32, 256)); !slices.Equal(got, y) {
		t.Error("a blur observes all entries")
	}
}

// TestPaper: the tasks of the paper's tables come first.
func TestPaper(t *testing.T) {
	t.Parallel()
	want := []string{
		"super_resolution", "inpaint_box", "inpaint_random", "gaussian_deblur", "motion_deblur", "phase_retrieval", "nonlinear_deblur", "hdr",
	}
	if got := operator.Builtin().Sensitive(); !slices.Equal(got, []string{operator.PhaseRetrieval}) {
		t.Errorf("sensitive tasks: %v", got)
	}
	if got := operator.Paper().Names(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for i, name := range want {
		if got := operator.Builtin().Known(name).Linear; got != (i < 5) {
			t.Errorf("%s: linear is %v", name, got)
		}
	}
	all := operator.Builtin().Names()
	if !slices.Equal(all[:len(want)], want) || !slices.Contains(all[len(want):], operator.Denoise) {
		t.Errorf("all tasks: %v", all)
	}
}
