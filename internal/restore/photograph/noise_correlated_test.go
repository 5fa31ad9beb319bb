package photograph_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/restore/photograph"
)

// shared is a picture with noise of which each pixel has a part of that of its neighbours, as after a bilinear enlargement by 2.
func shared(p photograph.Noisy, sigma float64, seed byte) photograph.Noisy {
	e := noisy(photograph.Noisy{Pix: make([]float32, len(p.Pix))}, sigma, seed).Pix
	pix := make([]float32, len(p.Pix))
	for i, v := range p.Pix {
		pix[i] = v + (e[i]+e[(i+1)%len(e)]+e[(i+p.Width)%len(e)]+e[(i+p.Width+1)%len(e)])/2
	}
	p.Pix = pix
	return p
}

// demosaiced is a picture of the samples of a camera, with noise, between which colours are interpolated bilinearly.
func demosaiced(p photograph.Noisy, sigma float64, seed byte) photograph.Noisy {
	e, n, pix := noisy(photograph.Noisy{Pix: make([]float32, p.Height*p.Width)}, sigma, seed).Pix, p.Height*p.Width, make([]float32, len(p.Pix))
	for i := range pix {
		c, y, x := i/n, i%n/p.Width, i%p.Width
		sum, weights := float32(0), float32(0)
		for k := range 9 {
			v, u := y+k/3-1, x+k%3-1
			if v < 0 || u < 0 || v >= p.Height || u >= p.Width || v%2+u%2 != c {
				continue
			}
			w := []float32{4, 2, 1}[abs(v-y)+abs(u-x)]
			if c == 1 && v == y && u == x {
				w = 1e6 // green is known
			}
			sum, weights = sum+w*(p.Pix[c*n+v*p.Width+u]+e[v*p.Width+u]), weights+w
		}
		pix[i] = sum / weights
	}
	p.Pix = pix
	return p
}

func abs(i int) int { return max(i, -i) }

// TestCorrelated: noise that neighbours share is found in most photographs, with a level of 1 to 2 times that of all frequencies, where the artefacts of small demosaiced
// pictures do not count too; neither white noise nor content is taken for it.
func TestCorrelated(t *testing.T) {
	if testing.Short() {
		t.Skip("estimates many levels: make test-all")
	}
	t.Parallel()
	same := func(p photograph.Noisy, _ float64, _ byte) photograph.Noisy { return p }
	soft := func(p photograph.Noisy, sigma float64, seed byte) photograph.Noisy {
		return noisy(softened(p), sigma, seed)
	}
	var files []string
	for _, folder := range []string{"images", "unseen", "pages"} {
		paths, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", folder, "*.png"))
		if err != nil || len(paths) < 4 {
			t.Fatalf("%d pictures, %v", len(paths), err)
		}
		files = append(files, paths...)
	}
	kinds := []struct {
		name    string
		degrade func(p photograph.Noisy, sigma float64, seed byte) photograph.Noisy
		sigmas  []float64
	}{
		{"no noise", same, []float64{0}},
		{"white", noisy, []float64{0.01, 0.03, 0.08}},
		{"blurred, white", soft, []float64{0.01, 0.03, 0.08}},
		{"shared", shared, []float64{0.03, 0.08}},
		{"demosaiced", demosaiced, []float64{0.03, 0.08}},
	}
	for size, most := range map[int]float64{64: 3.2, 128: 2} {
		found, all := map[string]int{}, map[string]int{}
		for i, path := range files {
			page := strings.Contains(path, "pages")
			p := loaded(t, path, size)
			for _, k := range kinds {
				for _, sigma := range k.sigmas {
					got := photograph.EstimateCorrelated(stored(k.degrade(p, sigma, byte(i))))
					correlated := k.name == "shared" || k.name == "demosaiced"
					if page && correlated { // black text on white, whose noise is clipped
						continue
					}
					key := fmt.Sprintf("%s %g", k.name, sigma)
					if all[key]++; got > 0 {
						found[key]++
						t.Logf("%s %s %d: %.2f times %g", k.name, filepath.Base(path), size, got/sigma, sigma)
					}
					if got > 0 && (!correlated || got < sigma || got > most*sigma) {
						t.Errorf("%s %s %d sigma=%g: %g", k.name, filepath.Base(path), size, sigma, got)
					}
				}
			}
		}
		for key, n := range all {
			t.Logf("size=%d %s: %d of %d", size, key, found[key], n)
		}
		for _, key := range []string{"shared 0.08", "demosaiced 0.03", "demosaiced 0.08"} {
			if found[key] < all[key]-1 {
				t.Errorf("size %d, %s: found in %d of %d photographs", size, key, found[key], all[key])
			}
		}
	}
	p := stored(shared(flat(3, 64, 64), 0.05, 1))
	if got := photograph.EstimateCorrelated(p); got < 0.07 || got > 0.1 {
		t.Errorf("of a constant picture: %g", got)
	}
	for name, p := range map[string]photograph.Noisy{"grey": greyed(p), "small": stored(shared(flat(3, 24, 24), 0.05, 1)), "of one channel": stored(shared(flat(1, 64, 64), 0.05, 1))} {
		if got := photograph.EstimateCorrelated(p); got != 0 {
			t.Errorf("of a %s picture: %g", name, got)
		}
	}
}
