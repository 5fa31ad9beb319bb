package restore_test

import (
	"crypto/sha256"
	"os"
	"testing"

	"ddiff/restore"
	"ddiff/restore/method"
	"ddiff/restore/metric"
	"ddiff/restore/noise"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
)

// A short run of each method that needs the network's gradient or a chain gains over the degraded image, by these margins in dB.
func TestShortRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute of restoring: not in short mode")
	}
	e := engine(t)
	data, err := os.ReadFile("../examples/images/coffee.png")
	if err != nil {
		t.Fatal(err)
	}
	truth, err := raster.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if truth, err = raster.Fit(truth, raster.Resize, 64, 8); err != nil {
		t.Fatal(err)
	}
	op, err := operator.Builtin().New(operator.InpaintRandom, nil, operator.Shape{Channels: 3, Height: 64, Width: 64})
	if err != nil {
		t.Fatal(err)
	}
	key := noise.NewKey(sha256.Sum256([]byte("short runs")))
	draw, err := op.Encode(op.Draw(key))
	if err != nil {
		t.Fatal(err)
	}
	y, err := e.Measure(t.Context(), op, truth.Pix, draw, operator.Noise{Sigma: effectSigma}, key)
	if err != nil {
		t.Fatal(err)
	}
	baseline, err := metric.PSNR(truth, op.Baseline(y))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method string
		steps  int
		margin float64
	}{{"dps", 30, 5}, {"daps", 16, 5}, {"dmplug", 20, 3}} {
		cfg, err := method.Builtin().Resolve(method.Request{Method: c.method, Preset: "natural", Task: op.Task, Steps: c.steps}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.Solver(restore.Plan{Task: op.Task, Image: op.Image, Solver: cfg}, 1)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Solve(t.Context(), []solver.Problem{{Y: y, Draw: draw, Key: key}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		psnr, err := metric.PSNR(truth, &raster.Image{Channels: 3, Height: 64, Width: 64, Pix: got[0].X})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: degraded %.2f dB, restored %.2f dB in %d steps", c.method, baseline, psnr, c.steps)
		if !(psnr >= baseline+c.margin) {
			t.Errorf("%s: gain %.2f dB, want at least %.1f", c.method, psnr-baseline, c.margin)
		}
	}
}
