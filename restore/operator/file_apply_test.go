package operator

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/modelfile"
)

// sized returns a file of images of free sides without a network. y are the rows and the columns of its measurement.
func sized(y ...string) *File {
	return &File{
		Path: "own.onnx", multipleOf: 1,
		x: modelfile.Port{Name: "x", Dims: []int{-1, 3, -1, -1}, DimNames: []string{"N", "", "H", "W"}},
		y: modelfile.Port{Name: "y", Dims: []int{-1, 3, -1, -1}, DimNames: append([]string{"N", ""}, y...)},
	}
}

// TestFileImageShape: sides of measurements that are parts and multiples of those of the image, up to the limits.
func TestFileImageShape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rows, cols    string
		height, width int // of the measurement
		want          Shape
	}{
		{"H", "W", 10, 16, Shape{3, 10, 16}},
		{"H/2", "W/2", 6, 10, Shape{3, 12, 20}},
		{"H/16", "W/16", 2, 3, Shape{3, 32, 48}},
		{"H/17", "W/17", 2, 4, Shape{}},
		{"H*3", "W*3", 24, 36, Shape{3, 8, 12}},
		{"W", "H", 10, 16, Shape{}},
		{"H*2", "W*2", 8, 8, Shape{}}, // the image is too small
		{"H", "W", maxSide, maxSide, Shape{3, maxSide, maxSide}},
		{"H", "W", maxSide + 2, maxSide, Shape{}},
		{"H", "W", maxSide, maxSide + 2, Shape{}},
	} {
		got, err := sized(c.rows, c.cols).imageShape("own", nil, []int{3, c.height, c.width})
		if want := c.want == (Shape{}); got != c.want || errors.Is(err, ErrShape) != want || (err != nil) != want {
			t.Errorf("measurement %s×%s of %d×%d: image %v, error %v, want %v", c.rows, c.cols, c.height, c.width, got, err, c.want)
		}
	}
}

// TestFileMeasurementLimit: a measurement of the largest number of elements is allowed.
func TestFileMeasurementLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dims  []int
		valid bool
	}{
		{[]int{1, maxElements}, true},
		{[]int{1, 2, maxElements / 2}, true},
		{[]int{1, 1, 1}, true},
		{[]int{1, maxElements + 1}, false},
		{[]int{1, 2, maxElements/2 + 1}, false},
		{[]int{1, 1 << 62, 4}, false}, // the product overflows to 0
		{[]int{1, 4, 0}, false},
	} {
		dims, err := sized().itemShape(modelfile.Port{Name: "y", Dims: c.dims, DimNames: make([]string, len(c.dims))}, nil)
		if c.valid && (err != nil || !slices.Equal(dims, c.dims[1:])) || !c.valid && !errors.Is(err, ErrShape) {
			t.Errorf("%v: shape %v, error %v", c.dims, dims, err)
		}
	}
}

// TestFileKernelShape: a kernel may have further leading axes of length 1.
func TestFileKernelShape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		needs, has []int
		valid      bool
	}{
		{[]int{4, 1, 2}, []int{1, 1, 4, 1, 2}, true},
		{[]int{1, 4}, []int{4}, true},
		{[]int{1, 1}, []int{1}, true},
		{[]int{4, 1}, []int{4}, false},
		{[]int{4}, []int{5}, false},
	} {
		err := sized().variable(c.needs).Check(&Draw{Name: "kernel", Dims: c.has})
		if c.valid && err != nil || !c.valid && !errors.Is(err, ErrParam) {
			t.Errorf("kernel %v for %v: %v", c.has, c.needs, err)
		}
	}
}

// TestFileMultiple: the range of ddiff.multiple_of.
func TestFileMultiple(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 1, "1": 1, "64": 64, "4096": 4096, "0": 0, "4097": 0, "-8": 0, "8.0": 0} {
		f := sized()
		err := f.readMultiple(map[string]string{cardPrefix + "multiple_of": text})
		if want == 0 && (err == nil || !strings.Contains(err.Error(), "want a number from 1 to 4096")) || want > 0 && (err != nil || f.multipleOf != want) {
			t.Errorf("%q: %d, error %v, want %d", text, f.multipleOf, err, want)
		}
	}
}

// TestFileDeviation: the standard deviation of a kernel is a positive number, by default 1.
func TestFileDeviation(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{"": 1, "1.2": 1.2, "1e-9": 1e-9, "0": 0, "-1": 0, "nan": 0, "inf": 0, "one": 0} {
		f := sized()
		f.draw = &modelfile.Port{Name: "k"}
		err := f.readDraw(map[string]string{cardPrefix + "parameter_std": text})
		if want == 0 && (err == nil || !strings.Contains(err.Error(), "want a number above 0")) || want > 0 && (err != nil || f.std != want) {
			t.Errorf("%q: %g, error %v, want %g", text, f.std, err, want)
		}
	}
}
