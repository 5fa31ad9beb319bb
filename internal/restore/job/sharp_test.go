package job

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// TestSharp: in sharp photographs no pixel is taken for a dead one, also not with noise that reaches black and white, nor where much of a scene by day is beyond white.
func TestSharp(t *testing.T) {
	if testing.Short() {
		t.Skip("computes large images: make test-all")
	}
	t.Parallel()
	for _, folder := range []string{"images", "unseen"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", folder, "*.png"))
		if must(t, err); len(files) == 0 {
			t.Fatal("no photographs")
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			must(t, err)
			whole, err := raster.Decode(data)
			must(t, err)
			for _, side := range []int{32, 64, 128} {
				for _, exposure := range []float32{1, 1.4} {
					for _, sigma := range []float64{0.02, 0.05, 0.08, 0.094, 0.2} {
						img, err := raster.Fit(whole, "center_crop", side, 1)
						must(t, err)
						e := make([]float32, len(img.Pix))
						noise.Normal(e, noise.Key{1}, noise.Measurement, 0, sigma)
						for i := range e {
							img.Pix[i] = min(1, max(-1, exposure*(img.Pix[i]+1)-1+e[i]))
						}
						if night := strings.Contains(file, "hubble") || strings.Contains(file, "rocket"); exposure > 1 && (night || side == 32) {
							continue // stars and lamps are white alone
						}
						grey, err := raster.InChannels(img, 1)
						must(t, err)
						if found := found(t, grey, operator.Denoise, sigma); found > 0 {
							t.Errorf("%s in grey at %d, exposure %g, noise %g: %d pixels", filepath.Base(file), side, exposure, sigma, found)
						}
						for _, task := range []string{operator.Denoise, operator.Demosaic} {
							if found := found(t, img, task, sigma); found > 0 {
								t.Errorf("%s at %d, exposure %g, noise %g, %s: %d pixels", filepath.Base(file), side, exposure, sigma, task, found)
							}
						}
					}
				}
			}
		}
	}
}

// TestGreyHotPixels: the hot pixels of a grey picture are found with a prior of one channel as with one of three.
func TestGreyHotPixels(t *testing.T) {
	t.Parallel()
	const side, sigma, hot = 64, 0.02, 4
	img := raster.New(1, side, side)
	noise.Normal(img.Pix, noise.Key{1}, noise.Measurement, 0, sigma)
	for i := range img.Pix {
		img.Pix[i] += float32(i%side)/side - 0.5
	}
	for i := range hot {
		img.Plane(0)[(10+10*i)*side+7+13*i] = 1
	}
	for _, channels := range []int{1, 3} {
		img, err := raster.InChannels(img, channels)
		must(t, err)
		if n := found(t, img, operator.Denoise, sigma); n != hot {
			t.Errorf("%d channels: %d of %d are found", channels, n, hot)
		}
	}
}

// found is the number of pixels of the measurement of a picture, with a task, that count as dead.
func found(t *testing.T, img *raster.Image, task string, sigma float64) (n int) {
	t.Helper()
	side := img.Width
	op, err := operator.Builtin().New(task, nil, operator.Shape{Channels: img.Channels, Height: side, Width: side})
	must(t, err)
	j := &Job{Op: op, Item: item.Item{Task: task, Sigma: sigma}}
	for i := range op.MeasurementSize() {
		from := i
		if task == operator.Demosaic {
			from += [4]int{0, 1, 1, 2}[i/side%2*2+i%2] * side * side
		}
		j.Problem.Y = append(j.Problem.Y, img.Pix[from])
	}
	for _, bad := range j.outliers() {
		if bad {
			n++
		}
	}
	return n
}
