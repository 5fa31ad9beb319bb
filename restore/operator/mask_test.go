package operator_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ddiff/restore/operator"
)

// own is the task inpaint for images of w×h pixels.
func own(t *testing.T, w, h int) *operator.Operator {
	t.Helper()
	op := operator.Build(t, operator.Inpaint, nil, operator.Shape{Channels: 3, Height: h, Width: w})
	return op
}

// maskOf is a mask of w×h pixels of which f observes some.
func maskOf(w, h int, f func(row, column int) bool) *operator.Draw {
	d := &operator.Draw{Name: "mask", Dims: []int{h, w}, Data: make([]float32, w*h)}
	for i := range d.Data {
		if f(i/w, i%w) {
			d.Data[i] = 1
		}
	}
	return d
}

// TestScaleMask: a pixel is observed if the mask's pixel at its centre is, for larger and smaller masks.
func TestScaleMask(t *testing.T) {
	t.Parallel()
	op := own(t, 16, 8)
	if !op.ScalesMask() || !op.Required {
		t.Errorf("inpaint scales masks: %v, needs one: %v", op.ScalesMask(), op.Required)
	}
	for _, size := range [][2]int{{16, 8}, {8, 4}, {2, 1}, {4, 2}, {48, 24}, {17, 8}, {17, 9}, {18, 8}, {1600, 803}, {5, 2}} {
		w, h := size[0], size[1]
		given := maskOf(w, h, func(row, column int) bool { return (row*7+column*3)%5 < 2 })
		d, err := op.ScaleMask(given, 16, 8)
		if err != nil {
			t.Errorf("%d×%d: %v", w, h, err)
			continue
		}
		if !slices.Equal(d.Dims, []int{8, 16}) || d.Name != "mask" {
			t.Fatalf("%d×%d: %s of %v", w, h, d.Name, d.Dims)
		}
		for i, v := range d.Data {
			row := int((float64(i/16) + 0.5) / 8 * float64(h))
			column := int((float64(i%16) + 0.5) / 16 * float64(w))
			if want := given.Data[row*w+column]; v != want {
				t.Errorf("%d×%d: row %d, column %d is %g, want %g", w, h, i/16, i%16, v, want)
			}
		}
	}
}

// TestScaleMaskRefusals: a mask of another ratio is refused with both sizes, and one that loses its observed pixels says so.
func TestScaleMaskRefusals(t *testing.T) {
	t.Parallel()
	op := own(t, 16, 8)
	all := func(int, int) bool { return true }
	for _, size := range [][2]int{{8, 8}, {8, 16}, {1600, 900}, {20, 8}, {16, 9}, {16, 16}} {
		_, err := op.ScaleMask(maskOf(size[0], size[1], all), 16, 8)
		if !errors.Is(err, operator.ErrParam) || !strings.Contains(err.Error(), "pixels, the image 16×8; give a mask whose sides have the same ratio") {
			t.Errorf("%v: %v", size, err)
		}
	}
	for _, d := range []*operator.Draw{{Name: "mask", Dims: []int{2}, Data: []float32{1, 1}}, {Name: "mask", Dims: []int{0, 0}}, {Name: "mask", Dims: []int{8, 16}, Data: []float32{1}}} {
		if _, err := op.ScaleMask(d, 16, 8); !errors.Is(err, operator.ErrParam) {
			t.Errorf("shape %v: %v", d.Dims, err)
		}
	}
	// The only observed row of a larger mask lies between the centres.
	thin, err := op.ScaleMask(maskOf(64, 32, func(row, _ int) bool { return row == 0 }), 16, 8)
	must(t, err)
	if _, err := op.Encode(thin); !errors.Is(err, operator.ErrParam) || !strings.Contains(err.Error(), "no pixel is observed") {
		t.Errorf("without an observed pixel: %v", err)
	}
	for _, task := range []string{operator.InpaintBox, operator.InpaintRandom, operator.MotionDeblur, operator.HDR} {
		op := operator.Build(t, task, nil, operator.Shape{Channels: 3, Height: 256, Width: 256})
		if op.ScalesMask() || op.Required {
			t.Errorf("%s: scales masks %v, needs a file %v", task, op.ScalesMask(), op.Required)
		}
	}
}
