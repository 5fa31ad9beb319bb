package restore_test

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"

	"ddiff/internal/restore/job"
	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/solver"
	"ddiff/restore"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// photograph is one bundled picture with its measurement.
type photograph struct {
	truth   *raster.Image
	problem solver.Problem
}

const (
	effectSize  = 64
	effectSigma = 0.05
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newEngine opens an engine on the bundled prior until the end of a test.
func newEngine(t *testing.T, rt *onnxruntime.Runtime, cfg restore.Config) *restore.Engine {
	t.Helper()
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	e := restore.NewEngine(rt, p, cfg)
	t.Cleanup(func() { must(t, e.Close()) })
	return e
}

func engine(t *testing.T) *restore.Engine {
	t.Helper()
	return newEngine(t, onnxtest.Runtime(t), restore.Config{})
}

// rgb is the shape of a picture in colour.
func rgb(height, width int) operator.Shape {
	return operator.Shape{Channels: 3, Height: height, Width: width}
}

// resolve returns the settings of a request for the bundled prior.
func resolve(t *testing.T, r method.Request) method.Settings {
	t.Helper()
	cfg, err := method.Builtin().Resolve(r, 1000)
	must(t, err)
	return cfg
}

// readPhotograph reads a bundled picture at the size of a square.
func readPhotograph(t *testing.T, name string, size int) *raster.Image {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../examples/images", name))
	must(t, err)
	img, err := raster.Decode(data)
	must(t, err)
	img, err = raster.Fit(img, raster.Resize, size, 8)
	must(t, err)
	return img
}

// measured measures a picture with noise of the standard deviation sigma.
func measured(t *testing.T, e *restore.Engine, op *operator.Operator, img *raster.Image, drawOf func(noise.Key) *operator.Draw, sigma float64, seed string) photograph {
	t.Helper()
	key := noise.NewKey(sha256.Sum256([]byte(seed)))
	draw, err := op.Encode(drawOf(key))
	must(t, err)
	y, err := e.Measure(t.Context(), op, img.Pix, draw, operator.Noise{Sigma: sigma}, key)
	must(t, err)
	return photograph{img, solver.Problem{Y: y, Draw: draw, Key: key}}
}

// photographs measures the six bundled pictures at the size of the operator, a square.
func photographs(t *testing.T, e *restore.Engine, op *operator.Operator) []photograph {
	t.Helper()
	files, err := filepath.Glob("../examples/images/*.png")
	if err != nil || len(files) != 6 {
		t.Fatalf("%d photographs, error %v; want 6", len(files), err)
	}
	var out []photograph
	for _, f := range files {
		name := filepath.Base(f)
		out = append(out, measured(t, e, op, readPhotograph(t, name, op.Image.Height), op.Draw, effectSigma, name+op.Task))
	}
	return out
}

// restored solves all photographs and gives their mean PSNR and mean square of y − A(x).
func restored(t *testing.T, e *restore.Engine, op *operator.Operator, cfg method.Settings, photos []photograph, precision ...onnxruntime.Precision) (psnr, square float64) {
	t.Helper()
	plan := restore.Plan{Task: op.Task, Params: op.Params, Image: op.Image, Solver: cfg}
	for _, p := range precision {
		plan.Precision = p
	}
	batch := job.Batch{Engine: e}
	for _, p := range photos {
		batch.Jobs = append(batch.Jobs, &job.Job{Plan: plan, Problem: p.problem})
	}
	must(t, batch.Solve(t.Context()))
	for i, j := range batch.Jobs {
		a := j.Solution
		v, err := metric.PSNR(photos[i].truth, &raster.Image{Channels: 3, Height: op.Image.Height, Width: op.Image.Width, Pix: a.X})
		must(t, err)
		ax, err := e.Apply(context.Background(), op, a.X, photos[i].problem.Draw)
		must(t, err)
		r, err := metric.Residual(photos[i].problem.Y, ax, 0)
		must(t, err)
		psnr += v / float64(len(photos))
		square += r / float64(len(photos))
	}
	return psnr, square
}

func effectOperator(t *testing.T, task string) *operator.Operator {
	t.Helper()
	op, err := operator.Builtin().New(task, nil, rgb(effectSize, effectSize))
	must(t, err)
	return op
}

func natural(t *testing.T, task string, sigma float64) method.Settings {
	t.Helper()
	return resolve(t, method.Request{Method: "ddiff", Preset: "natural", Task: task, Sigma: &sigma})
}

// everySecond halves the time of a test.
func everySecond(photos []photograph) []photograph {
	return []photograph{photos[0], photos[2], photos[4]}
}

// With the bundled prior and the natural preset every task must gain over the degraded image
// itself, by these margins in dB (mean over astronaut, coffee and retina, 64×64, sigma 0.05). With gradient steps, where
// the reverse step keeps a share of the noise estimate, the dual variable matters: there DDiff
// must also beat its own variant without it, on one photograph.
func TestMargins(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute of restoring: not in short mode")
	}
	e := engine(t)
	for _, c := range []struct {
		task   string
		margin float64
		dual   bool
	}{
		{operator.SuperResolution, 1, false},
		{operator.InpaintBox, 5, false},
		{operator.InpaintRandom, 12, false},
		{operator.GaussianDeblur, 3, true},
		{operator.MotionDeblur, 3, false},
		{operator.NonlinearDeblur, 6, false},
		{operator.HDR, 5, true},
	} {
		t.Run(c.task, func(t *testing.T) {
			op, cfg := effectOperator(t, c.task), natural(t, c.task, effectSigma)
			if cfg.Steps > 250 {
				t.Fatalf("%d steps, at most 250 are allowed", cfg.Steps)
			}
			photos := everySecond(photographs(t, e, op))
			baseline := 0.0
			for _, p := range photos {
				v, err := metric.PSNR(p.truth, op.Baseline(p.problem.Y))
				must(t, err)
				baseline += v / float64(len(photos))
			}
			got, _ := restored(t, e, op, cfg, photos)
			t.Logf("degraded %.2f dB, restored %.2f dB in %d steps", baseline, got, cfg.Steps)
			if !(got >= baseline+c.margin) {
				t.Errorf("gain %.2f dB, want at least %.1f", got-baseline, c.margin)
			}
			if !c.dual {
				return
			}
			cfg = resolve(t, method.Request{Method: "ddiff", Preset: "gradient", Task: c.task})
			with, _ := restored(t, e, op, cfg, photos[:1])
			cfg = resolve(t, method.Request{Method: "ddiff_hqs", Preset: "gradient", Task: c.task})
			without, _ := restored(t, e, op, cfg, photos[:1])
			t.Logf("gradient steps %.2f dB, without the dual variable %.2f dB", with, without)
			if !(with >= without+10) {
				t.Errorf("the dual variable gains %.2f dB, want at least 10", with-without)
			}
		})
	}
	// The modulus has no picture to compare with: the answer must explain the measurement.
	t.Run(operator.PhaseRetrieval, func(t *testing.T) {
		op := effectOperator(t, operator.PhaseRetrieval)
		_, square := restored(t, e, op, natural(t, op.Task, effectSigma), everySecond(photographs(t, e, op)))
		t.Logf("mean square of y − A(x): %.5f, sigma² is %.5f", square, effectSigma*effectSigma)
		if !(square < 2*effectSigma*effectSigma) {
			t.Errorf("mean square of y − A(x) is %.5f, want below %.5f", square, 2*effectSigma*effectSigma)
		}
	})
}
