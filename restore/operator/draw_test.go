package operator_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"runtime"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/restore/operator"
)

// TestDrawsNeverChange: the draws of a key are part of the meaning of a seed. Masks are equal on every platform, kernels
// on processors whose math functions round as those of amd64.
func TestDrawsNeverChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		task   string
		params map[string]float64
		want   string
	}{
		{"inpaint_box", nil, "3b6b42e5ef4a7bac"},
		{"inpaint_random", nil, "21491e51ea6e8099"},
		{"motion_deblur", nil, "1ea634a78f402107"},
		{"motion_deblur", map[string]float64{"intensity": 1, "size": 31}, "56f9835730007ba3"},
		{"motion_deblur", map[string]float64{"intensity": 1, "size": 7}, "c633a0d0cedcecbb"}, // paths cross the border of the kernel
		{"motion_deblur", map[string]float64{"intensity": 0.1}, "ff5c1f481e745c2d"},
	} {
		if c.task == "motion_deblur" && runtime.GOARCH != "amd64" {
			continue
		}
		op := operator.Build(t, c.task, c.params, operator.Shape{Channels: 3, Height: 256, Width: 256})
		h := sha256.New()
		for i := range uint32(20) {
			must(t, binary.Write(h, binary.LittleEndian, op.Draw(noise.Key{i, 2, 3}).Data))
		}
		if got := hex.EncodeToString(h.Sum(nil))[:16]; got != c.want {
			t.Errorf("%s %v: digest %s, want %s: the meaning of seeds has changed", c.task, c.params, got, c.want)
		}
	}
}

// TestMotionKernels: kernels are centred on their path.
func TestMotionKernels(t *testing.T) {
	t.Parallel()
	for _, intensity := range []float64{0.1, 0.5, 1} {
		op := operator.Build(t, "motion_deblur", map[string]float64{"intensity": intensity}, operator.Shape{Channels: 3, Height: 256, Width: 256})
		for i := range uint32(50) {
			var row, col float64
			for k, v := range op.Draw(noise.Key{i}).Data {
				row, col = row+float64(k/61-30)*float64(v), col+float64(k%61-30)*float64(v)
			}
			if !(math.Hypot(row, col) <= 8) {
				t.Errorf("intensity %g, kernel %d: its centre is (%.1f, %.1f) pixels off", intensity, i, row, col)
			}
		}
	}
}
