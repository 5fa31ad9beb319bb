package picture_test

import (
	"slices"
	"testing"

	"ddiff/restore/item"
	"ddiff/restore/operator"
	"ddiff/restore/picture"
)

// TestDeadPixels: with a hundredth of dead and hot pixels a blurred picture is restored nearly as well as without, and one without loses nothing.
func TestDeadPixels(t *testing.T) {
	cfg := config(t)
	s, err := picture.Open(t.Context(), cfg)
	must(t, err)
	defer func() { must(t, s.Close()) }()
	mean := map[float64]float64{}
	images := []string{"astronaut", "chelsea", "coffee", "rocket"}
	for _, image := range images {
		for _, dead := range []float64{0, 0.01} {
			d := degraded{image: image, task: operator.GaussianDeblur, width: 6, noise: 0.02, dead: dead, statedStd: 6, sigma: 0.02}
			p, truth, seen := d.picture(t)
			for _, res := range s.Restore(t.Context(), p) {
				must(t, res.Err)
				warned := slices.ContainsFunc(res.Warnings, func(w item.Warning) bool { return w.Code == item.WarnPixels })
				if warned != (dead > 0) {
					t.Errorf("%v: %+v", d, res.Warnings)
				}
				mean[dead] += psnr(t, truth, res.Image) / float64(len(images))
				t.Logf("%v: %.2f dB, the picture %.2f: %s", d, psnr(t, truth, res.Image), psnr(t, truth, seen), item.WarningCodes(res.Warnings))
			}
		}
	}
	if mean[0.01] < mean[0]-0.5 {
		t.Errorf("%.2f dB with dead pixels, %.2f without", mean[0.01], mean[0])
	}
}
