package restore_test

import (
	"testing"

	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/noise"
	"ddiff/restore/operator"
)

// TestOtherTasks restores two bundled photographs at 64×64 with the preset natural, whose settings for these tasks were chosen on
// other photographs: every task must gain over the degraded image by these margins in dB.
func TestOtherTasks(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute of restoring: not in short mode")
	}
	e := engine(t)
	pair := []string{"astronaut", "coffee"}
	for _, c := range []struct {
		task   string
		params map[string]float64
		sigma  float64
		margin float64
		photos []string
	}{
		{operator.Denoise, nil, 0.05, 1.6, pair},
		{operator.Denoise, nil, 0.2, 4.5, pair},
		{operator.JPEG, map[string]float64{"quality": 10}, 0, 1.5, pair},
		{operator.JPEG, map[string]float64{"quality": 95}, 0, 1, pair},
		{operator.SuperResolutionArea, nil, 0.05, 0.3, []string{"chelsea", "rocket"}},
		{operator.Colorize, nil, 0.02, 0.05, pair}, // begins with the grey image: little gain, and no loss on dark pictures
		{operator.Demosaic, nil, 0.02, 5, pair},
		{operator.Inpaint, nil, 0.02, 7.8, pair},
	} {
		t.Run(c.task, func(t *testing.T) {
			op, err := operator.Builtin().New(c.task, c.params, rgb(64, 64))
			must(t, err)
			var photos []photograph
			var baseline float64
			drawOf := op.Draw
			if c.task == operator.Inpaint {
				drawOf = func(noise.Key) *operator.Draw { return holes(64) }
			}
			for _, name := range c.photos {
				p := measured(t, e, op, readPhotograph(t, name+".png", 64), drawOf, c.sigma, name+c.task)
				v, err := metric.PSNR(p.truth, op.Baseline(p.problem.Y))
				must(t, err)
				baseline += v / 2
				photos = append(photos, p)
			}
			cfg := natural(t, c.task, c.sigma)
			if cfg.Steps > 100 {
				t.Errorf("%d steps, at most 100 are allowed", cfg.Steps)
			}
			got, _ := restored(t, e, op, cfg, photos)
			t.Logf("sigma %g: degraded %.2f dB, restored %.2f dB in %d steps", c.sigma, baseline, got, cfg.Steps)
			if !(got >= baseline+c.margin) {
				t.Errorf("gain %.2f dB, want at least %.1f", got-baseline, c.margin)
			}
		})
	}
}

// holes is a mask of size×size pixels without a box, a fold and rows of dashes as of letters: 20 % of the pixels.
func holes(size int) *operator.Draw {
	d := &operator.Draw{Name: "mask", Dims: []int{size, size}, Data: make([]float32, size*size)}
	for i := range d.Data {
		y, x := i/size, i%size
		box := y >= size/8 && y < size/3 && x >= size/2 && x < 3*size/4
		fold := (x+2*y)%(2*size) < 3
		text := y > size/2 && y%12 < 6 && (x*5+y*3)%11 < 3
		if !box && !fold && !text {
			d.Data[i] = 1
		}
	}
	return d
}
