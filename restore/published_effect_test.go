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
	must(t, err)
	truth, err := raster.Decode(data)
	must(t, err)
	truth, err = raster.Fit(truth, raster.Resize, 64, 8)
	must(t, err)
	op, err := operator.Builtin().New(operator.InpaintRandom, nil, operator.Shape{Channels: 3, Height: 64, Width: 64})
	must(t, err)
	key := noise.NewKey(sha256.Sum256([]byte("short runs")))
	draw, err := op.Encode(op.Draw(key))
	must(t, err)
	y, err := e.Measure(t.Context(), op, truth.Pix, draw, operator.Noise{Sigma: effectSigma}, key)
	must(t, err)
	baseline, err := metric.PSNR(truth, op.Baseline(y))
	must(t, err)
	for _, c := range []struct {
		method string
		steps  int
		margin float64
	}{{"dps", 30, 5}, {"daps", 16, 5}, {"dmplug", 20, 3}} {
		cfg, err := method.Builtin().Resolve(method.Request{Method: c.method, Preset: "natural", Task: op.Task, Steps: c.steps}, 1000)
		must(t, err)
		s, err := e.Solver(restore.Plan{Task: op.Task, Image: op.Image, Solver: cfg}, 1)
		must(t, err)
		got, err := s.Solve(t.Context(), []solver.Problem{{Y: y, Draw: draw, Key: key}}, nil)
		must(t, err)
		psnr, err := metric.PSNR(truth, &raster.Image{Channels: 3, Height: 64, Width: 64, Pix: got[0].X})
		must(t, err)
		t.Logf("%s: degraded %.2f dB, restored %.2f dB in %d steps", c.method, baseline, psnr, c.steps)
		if !(psnr >= baseline+c.margin) {
			t.Errorf("%s: gain %.2f dB, want at least %.1f", c.method, psnr-baseline, c.margin)
		}
	}
}
