package metric

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"

	"ddiff/internal/restore/raster"
)

// readArray reads an array [3, rows, columns] of testdata.
func readArray(t testing.TB, name string) *raster.Image {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	must(t, err)
	a, err := raster.DecodeNPY(data)
	must(t, err)
	return &raster.Image{Channels: a.Shape[0], Height: a.Shape[1], Width: a.Shape[2], Pix: a.Data}
}

// TestAgreesWithScikitImage compares with the scores of tools/metric_vectors.py --unclipped, in double and in single precision.
func TestAgreesWithScikitImage(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/scikit_image.json")
	must(t, err)
	var vectors struct {
		Cases []struct {
			Name       string
			PSNR, SSIM float64
			PSNR32     float64 `json:"psnr_float32"`
			SSIM32     float64 `json:"ssim_float32"`
		}
	}
	must(t, json.Unmarshal(data, &vectors))
	if len(vectors.Cases) != 2 {
		t.Fatalf("%d cases, want 2", len(vectors.Cases))
	}
	for _, tt := range vectors.Cases {
		x, y := readArray(t, tt.Name+"_x.npy"), readArray(t, tt.Name+"_y.npy")
		for _, m := range []struct {
			name           string
			score          func(x, y *raster.Image) (float64, error)
			double, single float64
		}{{"PSNR", psnrReferenceRange, tt.PSNR, tt.PSNR32}, {"SSIM", ssimWindow5, tt.SSIM, tt.SSIM32}} {
			got, err := m.score(x, y)
			if err != nil || !(math.Abs(got-m.double) <= 1e-9) || !(math.Abs(got-m.single) <= 1e-5) {
				t.Errorf("%s: %s = %.10f, %v; scikit-image has %.10f, in single precision %.10f", tt.Name, m.name, got, err, m.double, m.single)
			}
		}
	}
}

func TestReferenceRangeKnown(t *testing.T) {
	t.Parallel()
	// A reference from -1 to 0.5: range 1.5. Every value is 0.15 too high, beyond the range of pictures.
	x, y := raster.New(3, 6, 5), raster.New(3, 6, 5)
	for i := range x.Pix {
		x.Pix[i] = []float32{-1, 0.5, 0}[i%3]
		y.Pix[i] = x.Pix[i] + 0.15
	}
	if got, err := psnrReferenceRange(x, y); err != nil || !(math.Abs(got-20) <= 1e-5) {
		t.Errorf("%v dB, %v; want 20", got, err)
	}
	if got, err := ssimWindow5(x, x); err != nil || !(math.Abs(got-1) <= 1e-12) {
		t.Errorf("an image with itself: %v, %v", got, err)
	}
	for _, tt := range []struct {
		name       string
		x, y       *raster.Image
		psnr, ssim error
	}{
		{"equal images", x, x, ErrUndefined, nil},
		{"flat reference", constant(3, 6, 5, 0.2), x, ErrUndefined, ErrUndefined},
		{"four columns", raster.Crop(x, 4, 6), raster.Crop(y, 4, 6), nil, ErrTooSmall},
	} {
		if _, err := psnrReferenceRange(tt.x, tt.y); !errors.Is(err, tt.psnr) {
			t.Errorf("%s: PSNR error %v, want %v", tt.name, err, tt.psnr)
		}
		if _, err := ssimWindow5(tt.x, tt.y); !errors.Is(err, tt.ssim) {
			t.Errorf("%s: SSIM error %v, want %v", tt.name, err, tt.ssim)
		}
	}
}
