package metric

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"

	"ddiff/internal/restore/raster"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// decode reads an image of testdata.
func decode(t testing.TB, name string) *raster.Image {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	must(t, err)
	img, err := raster.Decode(data)
	must(t, err)
	return img
}

// TestAgreesWithPiq compares with the scores from tools/metric_vectors.py.
func TestAgreesWithPiq(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/piq.json")
	must(t, err)
	var vectors struct {
		Cases []struct {
			Name       string
			X, Y       string
			PSNR, SSIM float64
			PSNRY      float64 `json:"psnr_y"`
			HaarPSI    *float64
		}
	}
	must(t, json.Unmarshal(data, &vectors))
	if len(vectors.Cases) < 7 {
		t.Fatalf("%d cases, want at least 7", len(vectors.Cases))
	}
	for _, tt := range vectors.Cases {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			x, y := decode(t, tt.X), decode(t, tt.Y)
			for _, m := range []struct {
				name      string
				score     func(x, y *raster.Image) (float64, error)
				want, tol float64
			}{{"PSNR", PSNR, tt.PSNR, 1e-4}, {"SSIM", compareSSIM, tt.SSIM, 1e-6}, {"PSNRLuma", compareLuma, tt.PSNRY, 1e-4}, {"HaarPSI", compareHaar, figure(tt.HaarPSI), 1e-6}} {
				got, err := m.score(x, y)
				if math.IsNaN(m.want) {
					if !errors.Is(err, ErrTooSmall) {
						t.Errorf("%s of a small image: error %v, want ErrTooSmall", m.name, err)
					}
					continue
				}
				must(t, err)
				if !(math.Abs(got-m.want) <= m.tol) {
					t.Errorf("%s = %.8f, want piq's %.8f", m.name, got, m.want)
				}
				if swapped, _ := m.score(y, x); !(math.Abs(swapped-got) <= 1e-12) {
					t.Errorf("%s = %v, arguments swapped %v", m.name, got, swapped)
				}
			}
		})
	}
}

func figure(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// constant returns an image of one level.
func constant(channels, height, width int, level float32) *raster.Image {
	img := raster.New(channels, height, width)
	for i := range img.Pix {
		img.Pix[i] = level
	}
	return img
}

func TestPSNRKnown(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		x, y float32
		want float64
	}{
		{"black against white", -1, 1, -10 * math.Log10(1+1e-8)},
		{"a tenth apart", 0, 0.2, 20}, // 0.1 on [0, 1]
		{"equal", 0.3, 0.3, 80},
		{"clipped", 1, 7, 80},
	}
	for _, tt := range tests {
		got, err := PSNR(constant(3, 4, 5, tt.x), constant(3, 4, 5, tt.y))
		if err != nil || !(math.Abs(got-tt.want) <= 1e-4) {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}

// TestSSIMKnown uses flat images, whose similarity depends on the means only.
func TestSSIMKnown(t *testing.T) {
	t.Parallel()
	luminance := func(a, b float64) float64 { return (2*a*b + c1) / (a*a + b*b + c1) }
	for _, size := range [][2]int{{11, 11}, {20, 300}, {400, 384}, {1030, 641}} {
		got, err := compareSSIM(constant(1, size[0], size[1], -0.5), constant(1, size[0], size[1], 0.2))
		if want := luminance(0.25, 0.6); err != nil || !(math.Abs(got-want) <= 1e-6) {
			t.Errorf("%v: %v, %v; want %v", size, got, err, want)
		}
	}
	// The score is the mean over the channels.
	x, y := constant(3, 16, 16, 0), constant(3, 16, 16, 0)
	copy(y.Plane(2), constant(1, 16, 16, 1).Pix)
	got, err := compareSSIM(x, y)
	if want := (2 + luminance(0.5, 1)) / 3; err != nil || !(math.Abs(got-want) <= 1e-7) {
		t.Errorf("one channel differs: %v, %v; want %v", got, err, want)
	}
}

func TestBlockSize(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]int{
		{64, 64, 1}, {256, 4000, 1}, {383, 500, 1}, {384, 500, 2}, {500, 384, 2}, {640, 640, 2}, {641, 641, 3}, {1024, 2048, 4},
	} {
		if got := blockSize(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%dx%d: %d, want %d", tt[1], tt[0], got, tt[2])
		}
	}
}

func TestInvalidInputs(t *testing.T) {
	t.Parallel()
	good := constant(3, 12, 12, 0)
	broken := constant(3, 12, 12, 0)
	broken.Pix[100] = float32(math.NaN())
	short := constant(3, 12, 12, 0)
	short.Pix = short.Pix[:10]
	tests := []struct {
		name string
		x, y *raster.Image
		want error
	}{
		{"other width", good, constant(3, 12, 13, 0), ErrShape},
		{"other channels", good, constant(1, 12, 12, 0), ErrShape},
		{"short buffer", short, good, ErrShape},
		{"no pixels", constant(3, 0, 0, 0), constant(3, 0, 0, 0), ErrShape},
		{"NaN", good, broken, raster.ErrNotFinite},
		{"sound", good, good, nil},
	}
	for _, tt := range tests {
		if err := Check(tt.x, tt.y); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if _, err := compareSSIM(constant(3, 30, 10, 0), constant(3, 30, 10, 0)); !errors.Is(err, ErrTooSmall) {
		t.Errorf("smaller than the window: %v", err)
	}
}

func TestResidual(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	tests := []struct {
		name     string
		y, ax    []float32
		variance float64
		want     float64
		err      error
	}{
		{"exact, no noise", []float32{1, 2}, []float32{1, 2}, 0, 0, nil},
		{"fits the noise", []float32{1, 2}, []float32{1, 2}, 0.25, -0.25, nil},
		{"misses", []float32{0, 0, 4, 0}, []float32{0, 2, 0, 0}, 1, 4, nil},
		{"lengths differ", []float32{1}, []float32{1, 2}, 0, 0, ErrShape},
		{"empty", nil, nil, 0, 0, ErrShape},
		{"NaN", []float32{1, nan}, []float32{1, 2}, 0, 0, raster.ErrNotFinite},
		{"infinite variance", []float32{1}, []float32{1}, math.Inf(1), 0, raster.ErrNotFinite},
	}
	for _, tt := range tests {
		got, err := Residual(tt.y, tt.ax, tt.variance)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, got, err, tt.want, tt.err)
		}
	}
}

// TestHaarPSIOfGreyImages: an image of three equal channels has no chroma, so its score follows from that of one channel.
func TestHaarPSIOfGreyImages(t *testing.T) {
	t.Parallel()
	grey := func(name string) (one, three *raster.Image) {
		img := decode(t, name)
		one, three = raster.New(1, img.Height, img.Width), raster.New(3, img.Height, img.Width)
		copy(one.Pix, img.Plane(0))
		for c := range 3 {
			copy(three.Plane(c), img.Plane(0))
		}
		return one, three
	}
	x1, x3 := grey("pooled_x.png")
	y1, y3 := grey("pooled_y.png")
	one, err := compareHaar(x1, y1)
	must(t, err)
	three, err := compareHaar(x3, y3)
	must(t, err)
	sigmoid := func(s float64) float64 { return 1 / (1 + math.Exp(-haarAlpha*s)) }
	// The chroma adds a third of the weights, with similarity 1.
	if got, want := sigmoid(math.Sqrt(three)), (2*sigmoid(math.Sqrt(one))+sigmoid(1))/3; !(math.Abs(got-want) <= 1e-9) || !(one <= 0.99) {
		t.Errorf("scores %v of one channel and %v of three, want a mean similarity of %v, is %v", one, three, want, got)
	}
	luma1, err := compareLuma(x1, y1)
	must(t, err)
	if luma3, err := compareLuma(x3, y3); err != nil || !(math.Abs(luma1-luma3) <= 1e-6) {
		t.Errorf("luma of one channel has %v dB, of three %v, %v", luma1, luma3, err)
	}
}

func TestHaarPSIKnown(t *testing.T) {
	t.Parallel()
	photo := decode(t, "pooled_x.png")
	for name, img := range map[string]*raster.Image{
		"photo": photo, "black": constant(3, 16, 16, -1), "grey": constant(1, 17, 16, 0.3), "white": constant(3, 16, 19, 1),
	} {
		if got, err := compareHaar(img, img); err != nil || !(math.Abs(got-1) <= 1e-9) {
			t.Errorf("%s with itself: %v, %v", name, got, err)
		}
	}
	for _, c := range []struct {
		name string
		img  *raster.Image
		want error
	}{
		{"15 rows", constant(3, 15, 16, 0), ErrTooSmall},
		{"15 columns", constant(3, 16, 15, 0), ErrTooSmall},
		{"two channels", constant(2, 16, 16, 0), ErrUndefined},
		{"four channels", constant(4, 16, 16, 0), ErrUndefined},
	} {
		if _, err := compareHaar(c.img, c.img); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	for _, channels := range []int{2, 4} {
		img := constant(channels, 16, 16, 0)
		if _, err := compareLuma(img, img); !errors.Is(err, ErrUndefined) {
			t.Errorf("luma of %d channels: %v, want ErrUndefined", channels, err)
		}
	}
}
