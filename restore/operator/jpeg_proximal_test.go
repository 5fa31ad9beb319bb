package operator_test

import (
	"fmt"
	"math"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/raster"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// nearest is the proximal operator of an operator's own error.
func nearest(t *testing.T, op *operator.Operator, v, y []float32, weight float64) []float32 {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	in := []onnx.Value{
		g.Input("v", onnx.Float, op.Image.Dims(1)...), g.Input("y", onnx.Float, op.MeasurementDims(1)...), g.Input("weight", onnx.Float, 1),
	}
	x, ok := op.Proximal(g, in[0], in[1], func() onnx.Value { return in[2] })
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
		for _, quality := range []int{10, 50, 95, 100} {
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

// TestJPEGProximalWeight: flat blocks have one coefficient of each component, 8 times the level about 128. Chroma of four pixels counts four times, and
// where y is white the excess of the estimate counts as y.
func TestJPEGProximalWeight(t *testing.T) {
	t.Parallel()
	flat := func(level float64, n int) []float32 {
		pixels := make([]float32, n)
		for i := range pixels {
			pixels[i] = float32(level/127.5 - 1)
		}
		return pixels
	}
	unit := func(q float64) float64 { return 127.5 * 127.5 * 12 / (q*q + 1) } // the weight with which v and y count alike
	for _, c := range []struct{ quality, y, v, weight, want float64 }{
		{50, 128, 128, 1, 128},
		{50, 128, 129, unit(16), 128.5},                  // the mean
		{50, 128, 129, unit(16) / 3, 128.25},             // a quarter
		{50, 128, 140, 1e9, 128 + (0.4*16+0.3)/8},        // the border
		{50, 128, 100, 1e9, 128 - (0.4*16+0.3)/8},        // the other one
		{100, 100, 101, unit(1), 100 + 0.7/8},            // of a step of 1
		{100, 100.06, 100.06, 0, 100.06},                 // with a step of 1, y stays as it is
		{50, 255, 258, 1e9, 258}, {50, 255, 258, 0, 258}, // cut off: 258 is a multiple
		{50, 255, 250, 0, 256}, // the estimate does not exceed
		{50, 0, -2, 0, -2}, {50, 0, 4, 0, 0},
	} {
		op := jpegOperator(t, operator.Shape{Channels: 1, Height: 8, Width: 8}, int(c.quality), 0)
		for _, v := range nearest(t, op, flat(c.v, 64), flat(c.y, 64), c.weight) {
			if got := (float64(v) + 1) * 127.5; math.Abs(got-c.want) > 4e-3 {
				t.Fatalf("%+v: level %g", c, got)
			}
		}
	}
	// Colour: the blue channel of v differs by a level, Cb by 1/2 and Cr by less; luma by 0.114.
	for subsampling, factor := range []float64{1, 2, 4} {
		op := jpegOperator(t, operator.Shape{Channels: 3, Height: 16, Width: 16}, 50, subsampling)
		y := flat(128, 3*256)
		v := append(flat(128, 2*256), flat(129, 256)...)
		// The shares of the differences that stay; the steps are 16 and 17.
		w := unit(16)
		luma, chroma := 0.5, factor*w/unit(17)/(1+factor*w/unit(17))
		const r, g, b = 0.299, 0.587, 0.114
		dy, cb, cr := b*luma, 0.5*chroma, -b/(2-2*r)*chroma
		want := []float64{dy + (2-2*r)*cr, dy - b*(2-2*b)/g*cb - r*(2-2*r)/g*cr, dy + (2-2*b)*cb}
		for i, x := range nearest(t, op, v, y, w) {
			if got := (float64(x)+1)*127.5 - 128; math.Abs(got-want[i/256]) > 4e-3 {
				t.Fatalf("subsampling %d, channel %d: %g levels, want %g", subsampling, i/256, got, want[i/256])
			}
		}
	}
}
