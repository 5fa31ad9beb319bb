package job

import (
	"os"
	"path/filepath"
	"testing"

	"ddiff/restore/item"
	"ddiff/restore/noise"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
)

// TestSharp: in sharp photographs no pixel is taken for a dead one.
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
				img, err := raster.Fit(whole, "center_crop", side, 1)
				must(t, err)
				e := make([]float32, len(img.Pix))
				noise.Normal(e, noise.Key{1}, noise.Measurement, 0, 0.02)
				for i := range e {
					img.Pix[i] = min(1, max(-1, img.Pix[i]+e[i]))
				}
				for _, task := range []string{operator.Denoise, operator.Demosaic} {
					op, err := operator.Builtin().New(task, nil, operator.Shape{Channels: 3, Height: side, Width: side})
					must(t, err)
					j := &Job{Op: op, Item: item.Item{Task: task}}
					for i := range op.MeasurementSize() {
						from := i
						if task == operator.Demosaic {
							from += [4]int{0, 1, 1, 2}[i/side%2*2+i%2] * side * side
						}
						j.Problem.Y = append(j.Problem.Y, img.Pix[from])
					}
					found := 0
					for _, bad := range j.outliers() {
						if bad {
							found++
						}
					}
					if found > 0 {
						t.Errorf("%s at %d, %s: %d pixels", filepath.Base(file), side, task, found)
					}
				}
			}
		}
	}
}
