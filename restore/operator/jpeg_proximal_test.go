package operator_test

import (
	"fmt"
	"math"
	"testing"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
)

// nearest is the proximal operator of an operator's own error.
func nearest(t *testing.T, op *operator.Operator, v, y []float32, weight float64) []float32 {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	in := []onnx.Value{
		g.Input("v", onnx.Float, op.Image.Dims(1)...), g.Input("y", onnx.Float, op.MeasurementDims(1)...), g.Input("weight", onnx.Float, 1),
	}
	x, ok := op.Proximal(g, in[0], in[1], in[2])
	if !ok {
		t.Fatal("no proximal operator")
	}
	return onnxtest.Compute(t, g, in, []onnx.Value{x}, v, y, []float32{float32(weight)})[0]
}

// TestJPEGProximal: y is a fixed point, a weight of 0 leads to y where all of it is known and little is saturated, and an image far from y returns to its cells.
func TestJPEGProximal(t *testing.T) {
	t.Parallel()
	picture := decodeFile(t, "testdata/jpeg/astronaut.png")
	for _, channels := range []int{1, 3} {
		x := &raster.Image{Channels: channels, Height: picture.Height, Width: picture.Width, Pix: picture.Pix[:channels*picture.Height*picture.Width]}
		shape := operator.Shape{Channels: channels, Height: x.Height, Width: x.Width}
		for _, quality := range []int{10, 50, 95} {
			for _, subsampling := range []int{0, 1, 2} {
				t.Run(fmt.Sprintf("%d channels/%d/%d", channels, quality, subsampling), func(t *testing.T) {
					t.Parallel()
					op, y := jpegOperator(t, shape, quality, subsampling), compress(t, x, quality, subsampling)
					if d := rmsLevels(nearest(t, op, y, y, 1e3), y); !(d <= 0.6) {
						t.Errorf("y moves by %.2f levels", d)
					}
					if d := rmsLevels(nearest(t, op, x.Pix, y, 0), y); subsampling == 0 && !(d <= 2) {
						t.Errorf("%.2f levels from y with a weight of 0", d)
					}
					far := normal(len(y), 7, 0.1)
					for i := range far {
						far[i] += x.Pix[i]
					}
					back := &raster.Image{Channels: channels, Height: x.Height, Width: x.Width, Pix: nearest(t, op, far, y, 1e9)}
					before := rmsLevels(compress(t, &raster.Image{Channels: channels, Height: x.Height, Width: x.Width, Pix: far}, quality, subsampling), y)
					if d := rmsLevels(compress(t, back, quality, subsampling), y); !(d <= 3 && d < before/3) {
						t.Errorf("A of the nearest image is %.2f levels from y, before %.2f", d, before)
					}
				})
			}
		}
	}
}

// TestJPEGProximalWeight: flat blocks at quality 50 have one coefficient, 8 times the level about 128, with a step of 16.
func TestJPEGProximalWeight(t *testing.T) {
	t.Parallel()
	op := jpegOperator(t, operator.Shape{Channels: 1, Height: 8, Width: 8}, 50, 0)
	flat := func(level float64) []float32 {
		pixels := make([]float32, 64)
		for i := range pixels {
			pixels[i] = float32(level/127.5 - 1)
		}
		return pixels
	}
	unit := 127.5 * 127.5 * 12 / (16*16 + 1) // the weight with which v and y count alike
	for _, c := range []struct{ v, weight, want float64 }{
		{128, 1, 128},                   // y
		{129, unit, 128.5},              // the mean
		{129, unit / 3, 128.25},         // a quarter
		{140, 1e9, 128 + 0.4*2 + 0.3/8}, // the border: 0.4 of a step and 0.3 levels of the coefficient
		{100, 1e9, 128 - 0.4*2 - 0.3/8},
	} {
		for _, v := range nearest(t, op, flat(c.v), flat(128), c.weight) {
			if got := (float64(v) + 1) * 127.5; math.Abs(got-c.want) > 2e-3 {
				t.Fatalf("%+v: level %g", c, got)
			}
		}
	}
}
