package operator_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/restore/operator"
)

// TestCheckRange accepts values of A(x) with noise, and refuses other units.
func TestCheckRange(t *testing.T) {
	t.Parallel()
	ramp := func(low, high float32, n int) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = low + (high-low)*float32(i)/float32(n-1)
		}
		return out
	}
	shape := operator.Shape{Channels: 3, Height: 16, Width: 16}
	for _, c := range []struct {
		task      string
		low, high float32
		sigma     float64
		stated    bool
		want      string // empty: accepted
	}{
		{"hdr", -1, 1, 0, false, ""},
		{"hdr", -1.2, 1.2, 0.05, false, ""},
		{"hdr", -0.3, 0.9, 0.05, false, ""},
		{"hdr", 0, 1, 0, false, "black or mid-grey"},
		{"hdr", -0.1, 1.1, 0.05, false, "black or mid-grey"},
		{"hdr", 0.2, 0.4, 0.05, false, "black or mid-grey"},
		{"hdr", 0, 1, 0, true, ""},
		{"hdr", 0, 255, 0.05, false, "between 0 and 255, the task hdr needs -1 to 1"},
		{"hdr", 0, 255, 0.05, true, "between 0 and 255"},
		{"hdr", -1, 2, 0.05, false, "between -1 and 2"},
		{"hdr", -4, 4, 1, false, ""},
		{"phase_retrieval", 0, 12, 0.05, false, ""},
		{"phase_retrieval", -0.1, 3, 0.05, false, ""},
		{"phase_retrieval", 0, 3000, 0.05, false, "0 to 10.67"},
	} {
		op := operator.Build(t, c.task, nil, shape)
		err := op.CheckRange(ramp(c.low, c.high, op.MeasurementSize()), nil, operator.Noise{Sigma: c.sigma}, c.stated)
		if errors.Is(err, operator.ErrRange) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %g to %g, sigma %g: %v", c.task, c.low, c.high, c.sigma, err)
		}
	}
}

// TestCheckRangeOfPhotons: the values may exceed black by the expected maximum of normal noise, and white by that of the counts too, beside a
// quarter of the range.
func TestCheckRangeOfPhotons(t *testing.T) {
	t.Parallel()
	op := operator.Build(t, "denoise", nil, operator.Shape{Channels: 3, Height: 16, Width: 16})
	m := float64(op.MeasurementSize())
	for _, n := range []operator.Noise{{Sigma: 0.1}, {Photons: 30}, {Sigma: 0.1, Photons: 30}, {Sigma: 0.3, Photons: 1000}} {
		below := n.Sigma * math.Sqrt(2*math.Log(m))
		above := below
		if n.Photons > 0 {
			above = math.Sqrt((n.Sigma*n.Sigma+4*1.25/n.Photons)*2*math.Log(m)) + 4*math.Log(m)/n.Photons
		}
		for _, c := range []struct {
			low, high float64
			ok        bool
		}{{-1.499 - below, 1.499 + above, true}, {-1.501 - below, 1, false}, {-1, 1.501 + above, false}} {
			y := make([]float32, op.MeasurementSize())
			y[0], y[1] = float32(c.low), float32(c.high)
			if err := op.CheckRange(y, nil, n, true); (err == nil) != c.ok {
				t.Errorf("%+v, from %g to %g: %v", n, c.low, c.high, err)
			}
		}
	}
}

// TestCheckRangeOfObserved: dropped pixels count for nothing.
func TestCheckRangeOfObserved(t *testing.T) {
	t.Parallel()
	op := operator.Build(t, "inpaint_random", nil, operator.Shape{Channels: 3, Height: 8, Width: 8})
	y, mask := make([]float32, 192), make([]float32, 64)
	y[0], y[1], y[2], mask[0], mask[1] = -1, 1, 200, 1, 1
	if err := op.CheckRange(y, mask, operator.Noise{}, false); err != nil {
		t.Error(err)
	}
	mask[2] = 1
	if err := op.CheckRange(y, mask, operator.Noise{}, false); !errors.Is(err, operator.ErrRange) {
		t.Error(err)
	}
}

// TestRescale maps black and white to the range, and refuses moduli.
func TestRescale(t *testing.T) {
	t.Parallel()
	shape := operator.Shape{Channels: 3, Height: 8, Width: 8}
	op := operator.Build(t, "hdr", nil, shape)
	y := []float32{0, 255, 127.5}
	if err := op.Rescale(y, operator.Range{Low: 0, High: 255}); err != nil || y[0] != -1 || y[1] != 1 || math.Abs(float64(y[2])) > 1e-6 {
		t.Errorf("%v, %v", y, err)
	}
	for _, from := range []operator.Range{{Low: 16, High: 236}, {Low: 236, High: 16}, {Low: -3, High: 5}} {
		y := []float32{float32(from.Low), float32(from.High), float32(from.Low + (from.High-from.Low)/4)}
		if err := op.Rescale(y, from); err != nil || !slices.Equal(y, []float32{-1, 1, -0.5}) {
			t.Errorf("black, white and a dark grey of %v: %v, %v", from, y, err)
		}
	}
	op = operator.Build(t, "phase_retrieval", nil, shape)
	if err := op.Rescale(y, operator.Range{Low: 0, High: 255}); !errors.Is(err, operator.ErrParam) {
		t.Error(err)
	}
}

// TestPictureShape finds the least image that suits a prior.
func TestPictureShape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		task           string
		factor         float64
		w, h           int
		imageW, imageH int // 0: refused
		yW, yH         int
	}{
		{"hdr", 0, 16, 24, 16, 24, 16, 24},
		{"hdr", 0, 17, 23, 24, 24, 24, 24},
		{"super_resolution", 4, 16, 9, 64, 40, 16, 10},
		{"super_resolution", 3, 17, 8, 72, 24, 24, 8},
		{"super_resolution", 4, 2, 2, 8, 8, 2, 2},
		{"super_resolution_area", 3, 17, 8, 72, 24, 24, 8},
		{"hdr", 0, 1, 1, 0, 0, 0, 0},
		{"hdr", 0, 4, 16, 0, 0, 0, 0},
		{"phase_retrieval", 0, 16, 16, 0, 0, 0, 0},
	} {
		params := map[string]float64{}
		if c.factor > 0 {
			params["factor"] = c.factor
		}
		image, y, err := operator.Builtin().PictureShape(c.task, params, operator.Shape{Channels: 3, Height: c.h, Width: c.w}, 8)
		if c.imageW == 0 {
			if !errors.Is(err, operator.ErrShape) {
				t.Errorf("%s, %d×%d: %v", c.task, c.w, c.h, err)
			}
			continue
		}
		want, wantY := operator.Shape{Channels: 3, Height: c.imageH, Width: c.imageW}, operator.Shape{Channels: 3, Height: c.yH, Width: c.yW}
		if err != nil || image != want || y != wantY {
			t.Errorf("%s, %d×%d: %v, %v, %v", c.task, c.w, c.h, image, y, err)
		}
	}
}
