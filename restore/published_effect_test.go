package restore_test

import (
	"testing"

	"ddiff/internal/restore/metric"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// A short run of each method on pixels beside DDiff gains over the degraded image, by these margins in dB.
func TestShortRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute of restoring: not in short mode")
	}
	e := engine(t)
	op := effectOperator(t, operator.InpaintRandom)
	p := measured(t, e, op, readPhotograph(t, "coffee.png", effectSize), op.Draw, effectSigma, "short runs")
	baseline, err := metric.PSNR(p.truth, op.Baseline(p.problem.Y))
	must(t, err)
	for _, c := range []struct {
		method string
		steps  int
		margin float64
	}{{"dps", 30, 5}, {"daps", 16, 5}, {"dmplug", 20, 3}, {"ddrm", 20, 5}, {"reddiff", 40, 5}, {"dcdp", 10, 5}, {"diffpir", 20, 5}} {
		cfg := resolve(t, method.Request{Method: c.method, Preset: "natural", Task: op.Task, Steps: c.steps})
		psnr, _ := restored(t, e, op, cfg, []photograph{p})
		t.Logf("%s: degraded %.2f dB, restored %.2f dB in %d steps", c.method, baseline, psnr, c.steps)
		if !(psnr >= baseline+c.margin) {
			t.Errorf("%s: gain %.2f dB, want at least %.1f", c.method, psnr-baseline, c.margin)
		}
	}
}
