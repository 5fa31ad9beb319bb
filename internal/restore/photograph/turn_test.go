package photograph_test

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore/operator"
)

// path is a kernel of a hand that moves at random, of side k.
func path(r *rand.Rand, k int) *operator.Draw {
	d := &operator.Draw{Name: photograph.Kernel, Dims: []int{k, k}, Data: make([]float32, k*k)}
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

// TestTurned: on photographs the right orientation of a kernel is told from the turned one, and the right length from twice as much.
func TestTurned(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("../../../examples/*/*.png") // with pages of text
	must(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	var all, noticed, told, long int
	for _, name := range names {
		data, err := os.ReadFile(name)
		must(t, err)
		img, err := raster.Decode(data)
		must(t, err)
		img, err = raster.Fit(img, raster.CenterCrop, 96, 8)
		must(t, err)
		for _, sigma := range []float64{0.01, 0.05} {
			for _, k := range []int{7, 11} {
				d := path(r, k)
				y := blur(r, img, d, sigma)
				right, wrong := photograph.Turned(y, d, sigma), photograph.Turned(y, turned(d), sigma)
				least := photograph.LeastTurned(sigma)
				if all++; right >= least {
					t.Errorf("%s, noise %g: a right kernel of %d pixels is turned by %.2f", filepath.Base(name), sigma, k, right)
				}
				if right <= -least {
					told++
				}
				if wrong >= least {
					noticed++
				}
				if even := photograph.Turned(y, box(4, 5), sigma); !math.IsInf(even, -1) {
					t.Errorf("a box has an orientation: %v", even)
				}
				if math.Abs(right+wrong) > 1e-6 {
					t.Errorf("%v and %v of a kernel and of the turned one are not opposite", right, wrong)
				}
				if v := photograph.Long(y, d); v >= photograph.LeastLong {
					t.Errorf("%s, noise %g: a right kernel of %d pixels is too long by %.2f", filepath.Base(name), sigma, k, v)
				}
				if photograph.Long(y, doubled(d)) >= photograph.LeastLong {
					long++
				}
			}
		}
	}
	if t.Logf("kernels=%d turned_noticed=%d told=%d long_noticed=%d", all, noticed, told, long); noticed*4 < all*3 || told*4 < all*3 || long*10 < all*9 {
		t.Error("fewer were noticed than three quarters of the turned ones, or nine tenths of the long ones")
	}
}

// box is an even kernel in a frame of odd sides.
func box(n, side int) *operator.Draw {
	d := &operator.Draw{Name: photograph.Kernel, Dims: []int{side, side}, Data: make([]float32, side*side)}
	for i := range n * n {
		d.Data[i/n*side+i%n] = 1 / float32(n*n)
	}
	return d
}

// doubled is a kernel of twice the length.
func doubled(d *operator.Draw) *operator.Draw {
	k := d.Dims[0]
	out := &operator.Draw{Name: d.Name, Dims: []int{2*k - 1, 2*k - 1}, Data: make([]float32, (2*k-1)*(2*k-1))}
	sum := float32(0)
	for i := range out.Data { // interpolated
		y, x := i/(2*k-1), i%(2*k-1)
		for a := y / 2; a <= (y+1)/2; a++ {
			for b := x / 2; b <= (x+1)/2; b++ {
				out.Data[i] += d.Data[a*k+b] / float32((1+y%2)*(1+x%2))
			}
		}
		sum += out.Data[i]
	}
	for i := range out.Data {
		out.Data[i] /= sum
	}
	return out
}
