package solver

import (
	"context"
	"math"
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
	if err != nil {
		t.Fatal(err)
	}
	photograph, err := raster.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if photograph, err = raster.Fit(photograph, raster.Resize, shape.Height, 8); err != nil {
		t.Fatal(err)
	}
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
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			draw, err := op.Encode(op.Draw(key))
			if err != nil {
				t.Fatal(err)
			}
			const sigma = 0.05
			y, err := f.Measure(context.Background(), photograph.Pix, draw, operator.Noise{Sigma: sigma}, key)
			if err != nil {
				t.Fatal(err)
			}
			settings := resolve(t, method.Request{Method: c.method, Preset: "natural", Task: c.task, Steps: c.steps})
			answers, err := newSolver(t, p, op, settings, 1, 0).Solve(context.Background(), []Problem{{Y: y, Draw: draw, Key: key}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			restored, degraded := decibel(answers[0].X, photograph.Pix), decibel(op.Baseline(y).Pix, photograph.Pix)
			if !(restored >= degraded+1) {
				t.Errorf("PSNR of %.1f dB, the degraded image has %.1f dB", restored, degraded)
			}
		})
	}
}

// decibel is the PSNR of images in [−1, 1].
func decibel(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := float64(max(-1, min(1, a[i]))-b[i]) / 2
		sum += d * d
	}
	return -10 * math.Log10(sum/float64(len(a)))
}
