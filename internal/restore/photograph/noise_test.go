package photograph_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
)

// loaded reads one of the bundled photographs at a size.
func loaded(t *testing.T, path string, size int) photograph.Noisy {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	img, err := raster.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if img, err = raster.Fit(img, "center_crop", size, 8); err != nil {
		t.Fatal(err)
	}
	return photograph.Noisy{Channels: img.Channels, Height: img.Height, Width: img.Width, Pix: img.Pix}
}

func bundled(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../../examples/images/*.png")
	if err != nil || len(paths) != 6 {
		t.Fatalf("%d photographs, %v", len(paths), err)
	}
	return paths
}

// noisy adds white noise.
func noisy(p photograph.Noisy, sigma float64, seed byte) photograph.Noisy {
	e := make([]float32, len(p.Pix))
	noise.Normal(e, noise.NewKey([32]byte{seed}), noise.Measurement, 0, sigma)
	for i, v := range p.Pix {
		e[i] += v
	}
	p.Pix = e
	return p
}

// stored is a picture in a file of 8 bits.
func stored(p photograph.Noisy) photograph.Noisy {
	pix := make([]float32, len(p.Pix))
	for i, v := range p.Pix {
		pix[i] = float32(math.Round(255*float64(min(max(v, -1), 1)+1)/2)/255*2 - 1)
	}
	p.Pix, p.Step = pix, 2.0/255
	return p
}

// greyed is the green channel in all channels, as of a grey file.
func greyed(p photograph.Noisy) photograph.Noisy {
	n := p.Height * p.Width
	green := p.Pix[n : 2*n]
	p.Pix = append(append(append([]float32(nil), green...), green...), green...)
	return p
}

func greyStored(p photograph.Noisy) photograph.Noisy { return stored(greyed(p)) }

// softened is the mean over 5×5 pixels, twice; the border is repeated.
func softened(p photograph.Noisy) photograph.Noisy {
	const radius = 2
	for range 2 {
		out := make([]float32, len(p.Pix))
		for i := range out {
			c, y, x := i/(p.Height*p.Width), i/p.Width%p.Height, i%p.Width
			for k := range (2*radius + 1) * (2*radius + 1) {
				v := min(max(y+k/(2*radius+1)-radius, 0), p.Height-1)
				u := min(max(x+k%(2*radius+1)-radius, 0), p.Width-1)
				out[i] += p.Pix[(c*p.Height+v)*p.Width+u] / ((2*radius + 1) * (2*radius + 1))
			}
		}
		p.Pix = out
	}
	return p
}

// TestPhotographs measures the estimate over the true level on the bundled photographs, and bounds the error so that a factor of
// 1.3 is noticed. docs/data/noise-level.csv has the log of
//
//	go test ./internal/restore/photograph -run TestPhotographs -v
func TestPhotographs(t *testing.T) {
	t.Parallel()
	same := func(p photograph.Noisy) photograph.Noisy { return p }
	type bounds struct{ lo, hi float64 }
	fine := []bounds{{0.9, 1.2}, {0.85, 1.1}, {0.95, 1.05}, {0.95, 1.05}, {0.95, 1.05}}
	for _, c := range []struct {
		kind          string
		before, after func(photograph.Noisy) photograph.Noisy
		size          int
		want          []bounds // for each level
		refused       []string // by level and name
	}{
		{"colour", same, same, 32, []bounds{{0.9, 2}, {0.95, 1.3}, {0.9, 1.1}, {0.9, 1.1}, {0.9, 1.1}}, nil},
		{"colour", same, same, 64, []bounds{{0.9, 1.8}, {0.9, 1.3}, {0.9, 1.1}, {0.9, 1.1}, {0.9, 1.1}}, nil},
		{"colour", same, same, 128, fine, nil},
		{"blurred", softened, same, 64, []bounds{{0.9, 1.1}, {0.85, 1.1}, {0.9, 1.1}, {0.95, 1.05}, {0.95, 1.05}}, nil},
		{"blurred", softened, same, 128, []bounds{{0.9, 1.05}, {0.95, 1.05}, {0.95, 1.05}, {0.95, 1.05}, {0.95, 1.05}}, nil},
		{"colour, 8 bits", same, stored, 64, []bounds{{0.9, 1.9}, {0.9, 1.3}, {0.9, 1.1}, {0.9, 1.1}, {0.9, 1.1}}, []string{"0.1 hubble_deep_field", "0.2 hubble_deep_field"}},
		{"colour, 8 bits", same, stored, 128, fine, []string{"0.2 hubble_deep_field"}},
		{"colour, 8 bits", same, stored, 256, []bounds{{1, 1.3}, {1, 1.1}, {0.95, 1.05}, {0.74, 1.05}, {0.9, 1.05}}, nil},
		{"blurred, 8 bits", softened, stored, 128, []bounds{{0.88, 1.05}, {0.95, 1.05}, {0.95, 1.05}, {0.9, 1.05}, {0.85, 1.05}}, nil},
		{"grey, 8 bits", same, greyStored, 64, []bounds{{0.8, 2.5}, {0.8, 1.6}, {0.9, 1.2}, {0.95, 1.1}, {0.9, 1.05}}, []string{"0.2 hubble_deep_field"}},
		{"grey, 8 bits", same, greyStored, 128, []bounds{{0.9, 1.7}, {0.9, 1.35}, {0.95, 1.15}, {0.9, 1.05}, {0.9, 1.05}}, nil},
	} {
		t.Run(fmt.Sprintf("%s %d", c.kind, c.size), func(t *testing.T) {
			t.Parallel()
			var refused []string
			paths := bundled(t)
			pictures := make([]photograph.Noisy, len(paths))
			for i, path := range paths {
				pictures[i] = c.before(loaded(t, path, c.size))
			}
			for level, sigma := range []float64{0.01, 0.02, 0.05, 0.1, 0.2} {
				line, lo, hi := "", math.Inf(1), 0.0
				for i, path := range paths {
					p := noisy(pictures[i], sigma, byte(i))
					got, err := photograph.EstimateNoise(c.after(p))
					if errors.Is(err, photograph.ErrFewPatches) {
						refused = append(refused, fmt.Sprintf("%g %s", sigma, strings.TrimSuffix(filepath.Base(path), ".png")))
						line += " - |"
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					line += fmt.Sprintf(" %.2f |", got/sigma)
					lo, hi = min(lo, got/sigma), max(hi, got/sigma)
				}
				t.Logf("| %s | %d | %.2f |%s", c.kind, c.size, sigma, line)
				if want := c.want[level]; lo < want.lo || hi > want.hi {
					t.Errorf("at %g the estimates are %.3f to %.3f times the noise, want %g to %g", sigma, lo, hi, want.lo, want.hi)
				}
			}
			if !slices.Equal(refused, c.refused) {
				t.Errorf("without an estimate: %q, want %q", refused, c.refused)
			}
		})
	}
}

// flat is a constant picture.
func flat(channels, height, width int) photograph.Noisy {
	return photograph.Noisy{Channels: channels, Height: height, Width: width, Pix: slices.Repeat([]float32{0.25}, channels*height*width)}
}

func estimate(t *testing.T, p photograph.Noisy) float64 {
	t.Helper()
	got, err := photograph.EstimateNoise(p)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestPureNoise: on a constant picture the estimate is exact but for the spread of a sample, and of three digits.
func TestPureNoise(t *testing.T) {
	t.Parallel()
	for _, channels := range []int{1, 3, 4} {
		for _, sigma := range []float64{1e-4, 0.003, 0.05, 0.6} {
			p := noisy(flat(channels, 96, 80), sigma, 3)
			got := estimate(t, p)
			if math.Abs(got/sigma-1) > 0.03 {
				t.Errorf("%d channels: %g becomes %g", channels, sigma, got)
			}
			if text := strconv.FormatFloat(got, 'g', -1, 64); len(strings.TrimLeft(strings.ReplaceAll(strings.Split(text, "e")[0], ".", ""), "0")) > 3 {
				t.Errorf("%s has more than three digits", text)
			}
			if again := estimate(t, p); again != got {
				t.Errorf("the second estimate is %v, the first %v", again, got)
			}
		}
	}
}

// TestMonotone: more noise has a higher estimate.
func TestMonotone(t *testing.T) {
	if testing.Short() {
		t.Skip("estimates many levels: make test-all")
	}
	t.Parallel()
	p := loaded(t, bundled(t)[2], 96)
	last := -1.0
	for _, sigma := range []float64{0, 0.01, 0.015, 0.02, 0.03, 0.05, 0.08, 0.13, 0.2, 0.3} {
		got := estimate(t, noisy(p, sigma, 5))
		if got <= last {
			t.Errorf("%g becomes %g, a lower level %g", sigma, got, last)
		}
		last = got
	}
}

// TestConstant: without noise the estimate is 0, or that of rounding.
func TestConstant(t *testing.T) {
	t.Parallel()
	p := flat(3, 40, 40)
	if got := estimate(t, p); got > 1e-6 {
		t.Errorf("a constant picture has %g", got)
	}
	p.Step = 2.0 / 255
	if got := estimate(t, p); got != 0.00226 {
		t.Errorf("a constant picture of 8 bits has %g, want 0.00226, that of rounding", got)
	}
}

// TestUnobserved: the values of holes do not matter, and patches with holes do not count.
func TestUnobserved(t *testing.T) {
	t.Parallel()
	const size, sigma = 64, 0.05
	p := noisy(loaded(t, bundled(t)[1], size), sigma, 9)
	p.Observed = slices.Repeat([]float32{1}, size*size)
	whole := estimate(t, p)
	for y := 20; y < 44; y++ {
		for x := 16; x < 40; x++ {
			p.Observed[y*size+x] = 0
		}
	}
	holes := estimate(t, p)
	if math.Abs(holes/sigma-1) > 0.1 || holes == whole {
		t.Errorf("with a hole the estimate is %g, without %g", holes, whole)
	}
	for i, v := range p.Observed {
		for c := range 3 {
			if v == 0 {
				p.Pix[c*size*size+i] = float32(i%7) - 3
			}
		}
	}
	if got := estimate(t, p); got != holes {
		t.Errorf("other values in the hole change the estimate from %g to %g", holes, got)
	}
	for i := range p.Observed {
		p.Observed[i] = float32(i % 3 % 2)
	}
	if _, err := photograph.EstimateNoise(p); !errors.Is(err, photograph.ErrFewPatches) {
		t.Errorf("without a complete patch: %v", err)
	}
}

// TestClipped: black and white areas, in which noise is cut off, do not count.
func TestClipped(t *testing.T) {
	t.Parallel()
	const size, sigma = 96, 0.1
	p := flat(3, size, size)
	for i := range p.Pix {
		if i%size < size/2 {
			p.Pix[i] = []float32{-1, 1}[i/size/(size/2)%2]
		}
	}
	if got := estimate(t, stored(noisy(p, sigma, 1))); math.Abs(got/sigma-1) > 0.05 {
		t.Errorf("%g beside black and white, want %g", got, sigma)
	}
}

// TestMosaic: the samples of a Bayer filter count by colour. Taken as one grey picture, they have the noise and the colours.
func TestMosaic(t *testing.T) {
	t.Parallel()
	const size, sigma = 128, 0.03
	p := loaded(t, bundled(t)[2], size)
	mosaic := photograph.Noisy{Channels: 1, Height: size + 1, Width: size + 1, Pix: make([]float32, (size+1)*(size+1))}
	for y := range size {
		for x := range size {
			mosaic.Pix[y*(size+1)+x] = p.Pix[((y%2+x%2)*size+y)*size+x] // red, green, green, blue
		}
	}
	mosaic = noisy(mosaic, sigma, 4)
	samples := mosaic.Mosaic()
	if samples.Channels != 4 || samples.Height != size/2 || samples.Width != size/2 || samples.Pix[1] != mosaic.Pix[2] || samples.Pix[size*size/4] != mosaic.Pix[1] {
		t.Fatalf("the samples have %d channels of %d×%d", samples.Channels, samples.Width, samples.Height)
	}
	if got := estimate(t, samples); math.Abs(got/sigma-1) > 0.1 {
		t.Errorf("%g, want %g", got, sigma)
	}
}

// TestLarge: a picture with more patches than are read has the same accuracy, and takes no longer.
func TestLarge(t *testing.T) {
	t.Parallel()
	p := noisy(flat(3, 700, 900), 0.04, 2)
	for i := range p.Pix {
		p.Pix[i] += 0.3 * float32(math.Sin(float64(i%900)/9)*math.Cos(float64(i/900%700)/7))
	}
	if got := estimate(t, p); math.Abs(got/0.04-1) > 0.02 {
		t.Errorf("%g, want 0.04", got)
	}
}

// TestBad: small, empty and damaged pictures have errors.
func TestBad(t *testing.T) {
	t.Parallel()
	damaged := func(v float64) photograph.Noisy {
		p := noisy(flat(1, 64, 64), 0.1, 1)
		p.Pix[77] = float32(v)
		return p
	}
	few := photograph.ErrFewPatches
	for name, c := range map[string]struct {
		p    photograph.Noisy
		want error
	}{
		"one pixel":   {flat(3, 1, 1), few},
		"too small":   {noisy(flat(3, 22, 22), 0.1, 1), few}, // 361 patches, 384 are needed
		"narrow":      {flat(3, 500, 3), few},
		"white":       {photograph.Noisy{Channels: 1, Height: 50, Width: 50, Pix: slices.Repeat([]float32{1}, 2500)}, few},
		"NaN":         {damaged(math.NaN()), photograph.ErrNotFinite},
		"infinite":    {damaged(math.Inf(-1)), photograph.ErrNotFinite},
		"too short":   {photograph.Noisy{Channels: 1, Height: 50, Width: 50, Pix: make([]float32, 2499)}, nil},
		"other mask":  {photograph.Noisy{Channels: 1, Height: 9, Width: 9, Pix: make([]float32, 81), Observed: make([]float32, 80)}, nil},
		"no channels": {photograph.Noisy{Height: 9, Width: 9}, nil},
	} {
		if got, err := photograph.EstimateNoise(c.p); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %g, %v, want %v", name, got, err, c.want)
		}
	}
	if got := estimate(t, noisy(flat(3, 23, 23), 0.1, 1)); math.Abs(got/0.1-1) > 0.2 {
		t.Errorf("the smallest picture has %g, want 0.1", got)
	}
}
