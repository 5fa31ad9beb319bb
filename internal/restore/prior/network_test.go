package prior_test

import (
	"math"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
)

// In bfloat16 the rounding errors of a prediction do not change the brightness of the image, which a solver would change more with each step. x_t is a
// picture of bright tiles with the noise of two times. With a linear estimate in bfloat16 the mean changed by 9e-4 and 2.4e-3.
func TestBfloat16Brightness(t *testing.T) {
	rt := onnxtest.OpenVINO(t)
	if !rt.Computes(onnxruntime.BF16) {
		t.Skip("this CPU has no products in bfloat16")
	}
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	const side = 64
	exact, err := p.Compile(onnxtest.Runtime(t), 1, side, side, onnxruntime.FP32)
	must(t, err)
	defer exact.Close()
	rounded, err := p.Compile(rt, 1, side, side, onnxruntime.BF16)
	must(t, err)
	defer rounded.Close()
	for _, at := range []int64{20, 100} {
		abar := p.Schedule.AlphaBar[at]
		noise.Normal(exact.X.F32, noise.Key{1}, noise.Start, uint32(at), math.Sqrt(1-abar))
		for i := range exact.X.F32 {
			x, y := i%side, i/side%side
			exact.X.F32[i] += float32(math.Sqrt(abar) * (0.3 + 0.6*float64((x/5+y/7)%2)))
		}
		copy(rounded.X.F32, exact.X.F32)
		exact.T.I64[0], rounded.T.I64[0] = at, at
		must(t, exact.Run(t.Context()))
		must(t, rounded.Run(t.Context()))
		change := 0.0
		for i, want := range exact.Y.F32 {
			change += float64(rounded.Y.F32[i]-want) / float64(len(exact.Y.F32))
		}
		if !(math.Abs(change) <= 2e-4) {
			t.Errorf("time %d: the mean changes by %.2g", at, change)
		}
	}
}
