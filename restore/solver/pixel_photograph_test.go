package solver

import (
	"context"
	"os"
	"testing"

	"ddiff/restore/method"
	"ddiff/restore/noise"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
)

// Short runs of the methods on a bundled photograph at 64×64 are better than the degraded image.
func TestPixelMethodsRestorePhotograph(t *testing.T) {
	t.Parallel()
	shape := operator.Shape{Channels: 3, Height: 64, Width: 64}
	data, err := os.ReadFile("../../examples/images/chelsea.png")
	must(t, err)
	photograph, err := raster.Decode(data)
	must(t, err)
	photograph, err = raster.Fit(photograph, raster.Resize, shape.Height, 8)
	must(t, err)
	for _, c := range []struct {
		method, task string
		steps        int // 0: those of the preset
	}{
		{"ddrm", operator.GaussianDeblur, 20},
		{"ddrm", operator.InpaintRandom, 20},
		{"reddiff", operator.InpaintRandom, 40},
		{"reddiff", operator.MotionDeblur, 40},
		{"dcdp", operator.GaussianDeblur, 0},
		{"dcdp", operator.InpaintRandom, 0},
		{"diffpir", operator.GaussianDeblur, 0},
		{"diffpir", operator.MotionDeblur, 20},
	} {
		t.Run(c.method+" "+c.task, func(t *testing.T) {
			t.Parallel()
			p, op, key := bundled(t), newOperator(t, c.task, shape), noise.Key{4, 2}
			f, err := operator.NewForward(onnxtest.Runtime(t), op)
			must(t, err)
			defer f.Close()
			draw := encoded(t, op, key)
			const sigma = 0.05
			y, err := f.Measure(context.Background(), photograph.Pix, draw, operator.Noise{Sigma: sigma}, key)
			must(t, err)
			settings := resolve(t, method.Request{Method: c.method, Preset: "natural", Task: c.task, Steps: c.steps})
			answers := solve(t, newSolver(t, p, op, settings, 1), []Problem{{Y: y, Draw: draw, Key: key}})
			restored, degraded := decibels(answers[0].X, photograph.Pix), decibels(op.Baseline(y).Pix, photograph.Pix)
			if !(restored >= degraded+1) {
				t.Errorf("PSNR of %.1f dB, the degraded image has %.1f dB", restored, degraded)
			}
		})
	}
}
