package metric

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ddiff/internal/restore/raster"
)

// TestAVX2: the code of the processor returns the bits of the reference, for all widths up to several groups of columns.
func TestAVX2(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for width := windowSize; width < windowSize+36; width++ {
		s, want := newSSIMScratch(windowSize+2, width), newSSIMScratch(windowSize+2, width)
		x, y := make([]float32, len(s.a)), make([]float32, len(s.a))
		for i := range x {
			x[i], y[i] = 3*random.Float32()-1.5, 3*random.Float32()-1.5
			want.a[i], want.b[i] = (clip(x[i])+clip(y[i]))/4, (clip(x[i])-clip(y[i]))/4
		}
		halves(s.a, s.b, x, y)
		if !slices.Equal(s.a, want.a) || !slices.Equal(s.b, want.b) {
			t.Fatalf("width %d: halves %v and %v, want %v and %v", width, s.a, s.b, want.a, want.b)
		}
		for top := range 3 {
			s.filterDown(top, s.filterDownFast(top))
			want.filterDown(top, 0)
			for q := range s.down {
				if !slices.Equal(s.down[q], want.down[q]) {
					t.Fatalf("width %d, row %d, sum %d: %v, want %v", width, top, q, s.down[q], want.down[q])
				}
			}
			s.compare(s.compareFast())
			want.compare(0)
			if !slices.Equal(s.similarity, want.similarity) {
				t.Fatalf("width %d, row %d: %v, want %v", width, top, s.similarity, want.similarity)
			}
		}
	}
}

// TestSquares: the code of the processor adds the squares in the order of the reference, also of more values than a call of it takes.
func TestSquares(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	values := make([]float32, 1<<16+45)
	for i := range values {
		values[i] = 3*random.Float32() - 1.5
	}
	for n := range 46 {
		for _, v := range [][]float32{values[n:][:n], values[n:]} {
			for _, mean := range []float64{0, 1. / 3} {
				var sums [4]float64
				for i, p := range v {
					at := i % 4
					if i >= len(v)/4*4 {
						at = 0
					}
					sums[at] += (float64(p) - mean) * (float64(p) - mean)
				}
				if got, want := squares(v, mean), (sums[0]+sums[1])+(sums[2]+sums[3]); got != want {
					t.Fatalf("%d values about %v: %v, want %v", len(v), mean, got, want)
				}
			}
		}
	}
}

// plainSSIM is SSIM by its definition, in float64.
func plainSSIM(x, y *raster.Image) float64 {
	var w [windowSize]float64
	whole := 0.0
	for i := range w {
		d := float64(i - windowSize/2)
		w[i] = math.Exp(-d * d / (2 * windowSigma * windowSigma))
		whole += w[i]
	}
	sum, positions := 0.0, 0
	for c := range x.Channels {
		for top := range x.Height - windowSize + 1 {
			for left := range x.Width - windowSize + 1 {
				var mx, my, xx, yy, xy float64
				for i, u := range w {
					for j, v := range w {
						weight, at := u*v/(whole*whole), (top+i)*x.Width+left+j
						p, q := unit(x.Plane(c)[at]), unit(y.Plane(c)[at])
						mx, my, xx, yy, xy = mx+weight*p, my+weight*q, xx+weight*p*p, yy+weight*q*q, xy+weight*p*q
					}
				}
				sum += (2*mx*my + c1) * (2*(xy-mx*my) + c2) / ((mx*mx + my*my + c1) * (xx - mx*mx + yy - my*my + c2))
				positions++
			}
		}
	}
	return sum / float64(positions)
}

// plainHaarPSI is HaarPSI by its definition, for images with even sides.
func plainHaarPSI(x, y *raster.Image) float64 {
	h, w := x.Height/2, x.Width/2
	plane := func(img *raster.Image, c int) func(i, j int) float64 {
		return func(i, j int) float64 {
			if i < 0 || j < 0 || i >= h || j >= w {
				return 0
			}
			sum := 0.0
			for k, weight := range yiq[c] {
				for _, at := range []int{2*i*img.Width + 2*j, 2*i*img.Width + 2*j + 1, (2*i+1)*img.Width + 2*j, (2*i+1)*img.Width + 2*j + 1} {
					sum += 255 * weight * unit(img.Plane(k)[at]) / 4
				}
			}
			return sum
		}
	}
	var sum, weights float64
	add := func(s, w float64) {
		sum += w / (1 + math.Exp(-haarAlpha*s))
		weights += w
	}
	for i := range h {
		for j := range w {
			both := 0.0
			for _, upper := range []bool{true, false} {
				haar := func(img *raster.Image, side int) float64 {
					sum := 0.0
					for k := 1 - side/2; k <= side/2; k++ {
						for l := 1 - side/2; l <= side/2; l++ {
							sign := 1.0
							if upper && k > 0 || !upper && l > 0 {
								sign = -1
							}
							sum += sign * plane(img, 0)(i+k, j+l)
						}
					}
					return math.Abs(sum) / float64(side)
				}
				weight := max(haar(x, 8), haar(y, 8))
				add((similar(haar(x, 2), haar(y, 2))+similar(haar(x, 4), haar(y, 4)))/2, weight)
				both += weight
			}
			colour := func(img *raster.Image, c int) float64 {
				p := plane(img, c)
				return math.Abs(p(i, j)+p(i, j+1)+p(i+1, j)+p(i+1, j+1)) / 4
			}
			add((similar(colour(x, 1), colour(y, 1))+similar(colour(x, 2), colour(y, 2)))/2, both/2)
		}
	}
	logit := math.Log((sum+epsilon)/(weights-sum)) / haarAlpha
	return logit * logit
}

// TestDefinitions compares the scores with those by their definitions, also where float32 could be too coarse: flat images with weak noise.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	const height, width = 48, 70
	photo := decode(t, "pooled_x.png")
	for _, level := range []float64{-1, -0.98, 0, 0.7, 1, math.NaN()} {
		for _, noise := range []float64{0.001, 0.01, 0.1, 0.5, 1.5} {
			x, y := raster.New(3, height, width), raster.New(3, height, width)
			for i := range x.Pix {
				v := level
				if math.IsNaN(v) { // a photograph
					c, row, column := i/(height*width), i/width%height, i%width
					v = float64(photo.Plane(c)[row*photo.Width+column])
				}
				x.Pix[i], y.Pix[i] = float32(v), float32(v+noise*random.NormFloat64())
			}
			t.Run(fmt.Sprint(level, noise), func(t *testing.T) {
				t.Parallel()
				mse, lumas := 0.0, 0.0
				for i, v := range x.Pix {
					d := unit(v) - unit(y.Pix[i])
					mse += d * d / float64(len(x.Pix))
				}
				for i := range height * width {
					d := 0.0
					for c, w := range yiq[0] {
						d += w * (unit(x.Plane(c)[i]) - unit(y.Plane(c)[i]))
					}
					lumas += d * d / (height * width)
				}
				for _, m := range []struct {
					name  string
					score func(x, y *raster.Image) (float64, error)
					want  float64
				}{
					{"PSNR", PSNR, -10 * math.Log10(mse+1e-8)}, {"luma PSNR", compareLuma, -10 * math.Log10(lumas+1e-8)},
					{"SSIM", compareSSIM, plainSSIM(x, y)}, {"HaarPSI", compareHaar, plainHaarPSI(x, y)},
				} {
					got, err := m.score(x, y)
					must(t, err)
					t.Logf("%s %.9f off by %.1e", m.name, got, got-m.want)
					if !(math.Abs(got-m.want) <= 1e-6) {
						t.Errorf("%s = %.9f, want %.9f", m.name, got, m.want)
					}
				}
			})
		}
	}
}
