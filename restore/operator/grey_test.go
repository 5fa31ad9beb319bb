package operator_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/restore/operator"
)

// measured is A(x) of one image.
func measured(t *testing.T, op *operator.Operator, x []float32) []float32 {
	t.Helper()
	y := make([]float32, op.MeasurementSize())
	out, _, _ := evaluate(t, op, 1, x, y, y, nil)
	return out
}

// wantClose compares values up to the rounding of float32.
func wantClose(t *testing.T, what string, got []float32, want func(i int) float64) {
	t.Helper()
	for i, v := range got {
		if w := want(i); !(math.Abs(float64(v)-w) <= 2e-6) {
			t.Fatalf("%s: value %d is %g, want %g", what, i, v, w)
		}
	}
}

// TestColorize: y is the mean of the colours with weights that are divided by their sum, and the baseline is grey.
func TestColorize(t *testing.T) {
	t.Parallel()
	shape := operator.Shape{Channels: 3, Height: 8, Width: 10}
	const n = 8 * 10
	for _, c := range []struct {
		params           map[string]float64
		red, green, blue float64
	}{
		{nil, 0.299, 0.587, 0.114},
		{map[string]float64{"red": 1, "green": 1, "blue": 1}, 1. / 3, 1. / 3, 1. / 3},
		{map[string]float64{"red": 0, "green": 0.5, "blue": 0}, 0, 1, 0},
		{map[string]float64{"red": 0.25, "green": 0.25, "blue": 0}, 0.5, 0.5, 0},
	} {
		op := operator.Build(t, operator.Colorize, c.params, shape)
		x := normal(shape.Size(), 3, 1)
		y := measured(t, op, x)
		wantClose(t, "grey", y, func(i int) float64 {
			return c.red*float64(x[i]) + c.green*float64(x[n+i]) + c.blue*float64(x[2*n+i])
		})
		b := op.Baseline(y)
		if b == nil || b.Channels != 3 || !slices.Equal(b.Pix, slices.Repeat(y, 3)) {
			t.Errorf("baseline %v", b)
		}
		if p := op.Picture(y); p.Channels != 1 || p.Height != 8 || p.Width != 10 {
			t.Errorf("picture of %d channels, %d×%d", p.Channels, p.Width, p.Height)
		}
		// Black stays black and white stays white.
		for _, v := range []float32{-1, 1} {
			wantClose(t, "extreme", measured(t, op, slices.Repeat([]float32{v}, shape.Size())), func(int) float64 { return float64(v) })
		}
	}
	_, err := operator.Builtin().New(operator.Colorize, map[string]float64{"red": 0, "green": 0, "blue": 0}, shape)
	if !errors.Is(err, operator.ErrParam) || !strings.Contains(err.Error(), "all weights are 0") {
		t.Errorf("without weights: %v", err)
	}
}

// patterns are the Bayer filters by the names of their first two rows, with 0 for red, 1 for green and 2 for blue.
var patterns = map[string]struct {
	row, column float64
	first       [4]int
}{
	"RGGB": {0, 0, [4]int{0, 1, 1, 2}}, "GRBG": {0, 1, [4]int{1, 0, 2, 1}},
	"GBRG": {1, 0, [4]int{1, 2, 0, 1}}, "BGGR": {1, 1, [4]int{2, 1, 1, 0}},
}

// TestDemosaic: each value is the pixel's sample of one colour. Bilinear interpolation keeps the samples, reproduces constant colours
// everywhere and linear ones away from the border.
func TestDemosaic(t *testing.T) {
	t.Parallel()
	const h, w = 8, 10
	shape := operator.Shape{Channels: 3, Height: h, Width: w}
	for name, p := range patterns {
		op := operator.Build(t, operator.Demosaic, map[string]float64{"red_row": p.row, "red_column": p.column}, shape)
		sample := func(i int) int { return p.first[i/w%2*2+i%w%2]*h*w + i }
		x := normal(shape.Size(), 5, 1)
		y := measured(t, op, x)
		wantClose(t, name, y, func(i int) float64 { return float64(x[sample(i)]) })
		b := op.Baseline(y)
		for i, v := range y {
			if b.Pix[sample(i)] != v {
				t.Errorf("%s: the sample %d becomes %g, want %g", name, i, b.Pix[sample(i)], v)
			}
		}
		ramp := make([]float32, shape.Size())
		for i := range ramp {
			c, row, column := i/(h*w), i/w%h, i%w
			ramp[i] = float32(0.3*float64(c) + 0.05*float64(row) - 0.02*float64(column))
		}
		b = op.Baseline(measured(t, op, ramp))
		for i, v := range b.Pix {
			row, column := i/w%h, i%w
			inside := row > 0 && row < h-1 && column > 0 && column < w-1
			if inside && !(math.Abs(float64(v-ramp[i])) <= 1e-6) {
				t.Errorf("%s: channel %d, row %d, column %d is %g, want %g", name, i/(h*w), row, column, v, ramp[i])
			}
		}
		flat := make([]float32, shape.Size())
		for i := range flat {
			flat[i] = float32(i/(h*w)) - 0.7
		}
		wantClose(t, name+", constant colours", op.Baseline(measured(t, op, flat)).Pix, func(i int) float64 { return float64(flat[i]) })
	}
	// The mean of the four red neighbours of the first blue pixel, and of the two of a green one.
	op := operator.Build(t, operator.Demosaic, nil, shape)
	y := make([]float32, h*w)
	y[0], y[2], y[2*w], y[2*w+2] = 1, 2, 4, 8
	b := op.Baseline(y)
	if b.Pix[w+1] != 3.75 || b.Pix[1] != 1.5 || b.Pix[w] != 2.5 {
		t.Errorf("red beside its samples: %g, %g, %g, want 3.75, 1.5, 2.5", b.Pix[w+1], b.Pix[1], b.Pix[w])
	}
}

// TestGreySVD: the decompositions hold for any weights and positions of red.
func TestGreySVD(t *testing.T) {
	t.Parallel()
	shape := operator.Shape{Channels: 3, Height: 8, Width: 12}
	for _, c := range []struct {
		task   string
		params map[string]float64
	}{
		{operator.Colorize, map[string]float64{"red": 1, "green": 0, "blue": 0}},
		{operator.Colorize, map[string]float64{"red": 0, "green": 0, "blue": 0.3}},
		{operator.Colorize, map[string]float64{"red": 1, "green": 1, "blue": 1}},
		{operator.Demosaic, map[string]float64{"red_row": 0, "red_column": 1}},
		{operator.Demosaic, map[string]float64{"red_row": 1, "red_column": 0}},
		{operator.Demosaic, map[string]float64{"red_row": 1, "red_column": 1}},
	} {
		op := operator.Build(t, c.task, c.params, shape)
		checkSVD(t, op)
	}
}

// TestArea: each value is the mean of a square, by matrices and by bands.
func TestArea(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ factor, h, w int }{{2, 8, 12}, {3, 12, 18}, {5, 20, 30}, {4, 8, 1028}} {
		shape := operator.Shape{Channels: 2, Height: c.h, Width: c.w}
		op := operator.Build(t, operator.SuperResolutionArea, map[string]float64{"factor": float64(c.factor)}, shape)
		x := normal(shape.Size(), 6, 1)
		h, w := c.h/c.factor, c.w/c.factor
		wantClose(t, "area", measured(t, op, x), func(i int) float64 {
			channel, row, column, sum := i/(h*w), i/w%h, i%w, 0.0
			for dr := range c.factor {
				for dc := range c.factor {
					sum += float64(x[(channel*c.h+row*c.factor+dr)*c.w+column*c.factor+dc])
				}
			}
			return sum / float64(c.factor*c.factor)
		})
	}
}

// TestFactors: every integer factor is allowed, and a side that is no multiple gets a size that is one.
func TestFactors(t *testing.T) {
	t.Parallel()
	for _, task := range []string{operator.SuperResolution, operator.SuperResolutionArea} {
		for _, factor := range []float64{2, 3, 5, 7, 16, 17, 31, 128} {
			side := 2 * int(factor)
			for side < 32 {
				side *= 2
			}
			op, err := operator.Builtin().New(task, map[string]float64{"factor": factor}, operator.Shape{Channels: 1, Height: side, Width: 2 * side})
			if err != nil {
				t.Errorf("%s, factor %g: %v", task, factor, err)
				continue
			}
			wantClose(t, task, measured(t, op, slices.Repeat([]float32{0.6}, op.Image.Size())), func(int) float64 { return 0.6 })
		}
		for _, c := range []struct {
			factor float64
			side   int
			want   string
		}{
			{3, 128, "128×128 is not a multiple of the factor 3; choose a size that is one, such as --fit center_crop --size 96"},
			{3, 256, "such as --fit center_crop --size 288"}, {7, 64, "such as --fit center_crop --size 224"}, {64, 32, "such as --fit center_crop --size 64"},
		} {
			_, err := operator.Builtin().New(task, map[string]float64{"factor": c.factor}, operator.Shape{Channels: 3, Height: c.side, Width: c.side})
			if !errors.Is(err, operator.ErrShape) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, factor %g, side %d: %v", task, c.factor, c.side, err)
			}
		}
	}
}
