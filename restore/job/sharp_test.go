package job

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/restore/item"
	"ddiff/restore/noise"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
)

// TestSharp: in sharp photographs no pixel is taken for a dead one, also not with noise that reaches black and white, nor where much of a scene by day is beyond white.
func TestSharp(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"images", "unseen"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "examples", folder, "*.png"))
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

// found is the number of pixels of the measurement of a picture, with a task, that count as dead.
func found(t *testing.T, img *raster.Image, task string, sigma float64) (n int) {
	t.Helper()
	side := img.Width
	op, err := operator.Builtin().New(task, nil, operator.Shape{Channels: 3, Height: side, Width: side})
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
