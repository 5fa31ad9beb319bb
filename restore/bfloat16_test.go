package restore_test

import (
	"math"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore"
	"ddiff/restore/operator"
)

// Restorations with the network in bfloat16 are as good as those in float32: the PSNR of an image differs by at most 0.1 dB,
// and the mean of a task by at most 0.05 dB. Photographs at 64×64, the settings of the preset natural; of HDR, which takes the
// most steps, one.
func TestBfloat16Quality(t *testing.T) {
	other := onnxtest.OpenVINO(t)
	if !other.Computes(onnxruntime.BF16) {
		t.Skip("this CPU has no products in bfloat16")
	}
	const image, mean = 0.1, 0.05
	tasks := []string{operator.SuperResolution, operator.InpaintBox, operator.GaussianDeblur, operator.HDR}
	exact := engine(t)
	rounded := restore.NewEngine(other, exact.Prior(), restore.Config{})
	t.Cleanup(func() { must(t, rounded.Close()) })
	for _, task := range tasks {
		t.Run(task, func(t *testing.T) {
			op, cfg, sum := effectOperator(t, task), natural(t, task, effectSigma), 0.0
			photos := photographs(t, exact, op)[:3]
			if task == operator.HDR { // its settings have the most steps by far
				photos = photos[:1]
			}
			for i := range photos {
				want, _ := restored(t, exact, op, cfg, photos[i:i+1])
				got, _ := restored(t, rounded, op, cfg, photos[i:i+1], onnxruntime.BF16)
				if d := math.Abs(got - want); d > image {
					t.Errorf("photograph %d: %.3f dB in bfloat16, %.3f dB in float32", i, got, want)
				}
				sum += got - want
			}
			if d := sum / float64(len(photos)); math.Abs(d) > mean {
				t.Errorf("the mean differs by %.3f dB", d)
			}
			t.Logf("the mean differs by %+.4f dB", sum/float64(len(photos)))
		})
	}
}
