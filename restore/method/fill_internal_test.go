package method

import (
	"math"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// TestFill: observed pixels keep their values, and a hole of a third of the side continues a slope with an error far below that of a constant. A picture
// of one observed pixel is flat.
func TestFill(t *testing.T) {
	t.Parallel()
	const height, width = 18, 27 // odd sides at some sizes
	sum, mask := make([]float32, height*width), make([]float32, height*width)
	slope := func(i int) float64 { return float64(i/width)/height - float64(i%width)/width }
	for i := range sum {
		if y, x := i/width, i%width; y < 6 || y >= 12 || x < 9 || x >= 18 {
			sum[i], mask[i] = float32(slope(i)), 1
		}
	}
	filled := func(sum, mask []float32) []float32 {
		g := onnx.NewGraph(onnx.DefaultOpset)
		s, m := g.Input("sum", onnx.Float, 1, 1, height, width), g.Input("mask", onnx.Float, 1, 1, height, width)
		b := &Builder{Graph: g}
		return onnxtest.Compute(t, g, []onnx.Value{s, m}, []onnx.Value{b.fill(s, m)}, sum, mask)[0]
	}
	var worst float64
	for i, v := range filled(sum, mask) {
		d := math.Abs(float64(v) - slope(i))
		if mask[i] == 1 && d > 1e-6 {
			t.Fatalf("the observed pixel %d is %g, want %g", i, v, sum[i])
		}
		worst = max(worst, d)
	}
	if worst > 0.12 {
		t.Errorf("the hole differs from the slope by %.3f", worst)
	}
	clear(sum)
	clear(mask)
	sum[40], mask[40] = 0.5, 1
	for i, v := range filled(sum, mask) {
		if math.Abs(float64(v)-0.5) > 1e-5 {
			t.Fatalf("pixel %d is %g beside one observed pixel of 0.5", i, v)
		}
	}
}

// Channels with samples at other pixels are filled apart: those of a flat colour behind a Bayer filter all become that colour.
func TestFillOfColours(t *testing.T) {
	t.Parallel()
	const height, width = 6, 5
	sum, weight := make([]float32, 3*height*width), make([]float32, 3*height*width)
	colour := []float32{-0.25, 0.5, 0.75}
	for i := range height * width {
		y, x := i/width, i%width
		c := (y%2 + x%2) * height * width // red in even rows and columns, blue in odd ones
		sum[c+i], weight[c+i] = colour[y%2+x%2], 1
	}
	g := onnx.NewGraph(onnx.DefaultOpset)
	s, w := g.Input("sum", onnx.Float, 1, 3, height, width), g.Input("weight", onnx.Float, 1, 3, height, width)
	b := &Builder{Graph: g}
	for i, v := range onnxtest.Compute(t, g, []onnx.Value{s, w}, []onnx.Value{b.fill(s, w)}, sum, weight)[0] {
		if want := colour[i/(height*width)]; math.Abs(float64(v-want)) > 1e-6 {
			t.Fatalf("value %d is %g, want %g", i, v, want)
		}
	}
}
