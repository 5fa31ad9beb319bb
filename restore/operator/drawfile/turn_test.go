package drawfile_test

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ddiff/restore/operator"
	"ddiff/restore/operator/drawfile"
	"ddiff/restore/raster"
)

// path is a kernel of a hand that moves at random, of side k.
func path(r *rand.Rand, k int) *operator.Draw {
	d := &operator.Draw{Name: drawfile.Kernel, Dims: []int{k, k}, Data: make([]float32, k*k)}
	x, y, angle := float64(k)/4, float64(k)/4, r.Float64()*2*math.Pi
	for range 40 * k {
		angle += 0.15 * r.NormFloat64()
		x, y = x+0.05*math.Cos(angle), y+0.05*math.Sin(angle)
		if x < 0 || y < 0 || x > float64(k-1) || y > float64(k-1) {
			angle += math.Pi / 2
			x, y = min(max(x, 0), float64(k-1)), min(max(y, 0), float64(k-1))
		}
		d.Data[int(y)*k+int(x)]++
	}
	sum := float32(0)
	for _, v := range d.Data {
		sum += v
	}
	for i := range d.Data {
		d.Data[i] /= sum
	}
	return d
}

func turned(d *operator.Draw) *operator.Draw {
	out := slices.Clone(d.Data)
	slices.Reverse(out)
	return &operator.Draw{Name: d.Name, Dims: d.Dims, Data: out}
}

// blur correlates an image with a kernel, with a reflecting border, and adds noise.
func blur(r *rand.Rand, img *raster.Image, d *operator.Draw, sigma float64) *raster.Image {
	k := d.Dims[0]
	out := raster.New(img.Channels, img.Height, img.Width)
	mirror := func(i, n int) int {
		if i < 0 {
			i = -i
		}
		if i >= n {
			i = 2*n - 2 - i
		}
		return i
	}
	for c := range img.Channels {
		for y := range img.Height {
			for x := range img.Width {
				sum := 0.0
				for i, v := range d.Data {
					if v != 0 {
						sum += float64(v * img.Plane(c)[mirror(y+i/k-k/2, img.Height)*img.Width+mirror(x+i%k-k/2, img.Width)])
					}
				}
				out.Plane(c)[y*img.Width+x] = float32(sum + sigma*r.NormFloat64())
			}
		}
	}
	return out
}

// TestTurned: on photographs the right orientation of a kernel is told from the turned one.
func TestTurned(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("../../../examples/*/*.png") // with pages of text
	must(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	noticed, all := 0, 0
	for _, name := range names {
		data, err := os.ReadFile(name)
		must(t, err)
		img, err := raster.Decode(data)
		must(t, err)
		img, err = raster.Fit(img, raster.CenterCrop, 128, 8)
		must(t, err)
		for _, sigma := range []float64{0.01, 0.05} {
			for _, k := range []int{9, 21} {
				d := path(r, k)
				y := blur(r, img, d, sigma)
				ratio, other := drawfile.Turned(y, d, sigma), drawfile.Turned(y, turned(d), sigma)
				if all++; ratio > drawfile.TurnedRatio {
					t.Errorf("%s, noise %g: the ratio of a right kernel of %d pixels is %.3f", filepath.Base(name), sigma, k, ratio)
				}
				if other > drawfile.TurnedRatio {
					noticed++
				}
				if math.Abs(ratio*other-1) > 1e-6 && ratio != 1 {
					t.Errorf("the ratios %v and %v of a kernel and of the turned one are not reciprocal", ratio, other)
				}
			}
		}
	}
	if t.Logf("%d of %d turned kernels were noticed", noticed, all); 2*noticed < all {
		t.Errorf("%d of %d turned kernels were noticed, want half of them", noticed, all)
	}
}
