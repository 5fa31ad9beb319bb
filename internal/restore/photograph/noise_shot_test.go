package photograph_test

import (
	"math"
	"path/filepath"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/photograph"
)

// TestShot: the level of the noise of photons is that of its mean variance, and white noise stays white.
func TestShot(t *testing.T) {
	if testing.Short() {
		t.Skip("estimates many levels: make test-all")
	}
	t.Parallel()
	for _, path := range bundled(t) {
		for _, photons := range []float64{0, 40, 200} {
			const sigma = 0.02
			p, key := loaded(t, path, 128), noise.NewKey([32]byte{7})
			mean := 0.0
			for i, v := range p.Pix {
				if mean += float64(v+1) / 2 / float64(len(p.Pix)); photons > 0 {
					p.Pix[i] = float32(2*noise.Poisson(photons*float64(v+1)/2, key, noise.Photons, uint32(i))/photons - 1)
				}
			}
			p = stored(noisy(p, sigma, 7))
			level, shot, err := photograph.EstimateShot(p)
			if err != nil {
				t.Fatal(err)
			}
			white, err := photograph.EstimateNoise(p)
			if err != nil {
				t.Fatal(err)
			}
			want := sigma
			if photons > 0 {
				want = math.Sqrt(sigma*sigma + 4*mean/photons)
			}
			if shot != (photons > 0) || !(level > 0.9*want && level < 1.4*want) {
				t.Errorf("%s photons=%g: level %.3g, want %.3g; shot=%v", filepath.Base(path), photons, level, want, shot)
			}
			t.Logf("%s photons=%g: %.2f of the level, the estimate for white noise %.2f, shot=%v", filepath.Base(path), photons, level/want, white/want, shot)
		}
	}
}
