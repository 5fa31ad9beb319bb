package job

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// TestOtherFilter: a mosaic with the red samples beside the stated place has a warning, and one with the stated filter has none.
func TestOtherFilter(t *testing.T) {
	t.Parallel()
	const side = 64
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", "*", "*.png"))
	must(t, err)
	found := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		whole, err := raster.Decode(data)
		must(t, err)
		img, err := raster.Fit(whole, "center_crop", side, 1)
		must(t, err)
		for pattern := range 4 {
			op, err := operator.Builtin().New(operator.Demosaic, map[string]float64{"red_row": float64(pattern / 2), "red_column": float64(pattern % 2)},
				operator.Shape{Channels: 3, Height: side, Width: side})
			must(t, err)
			j := &Job{Op: op, Item: item.Item{Task: operator.Demosaic, Measurement: &item.Source{}}}
			for i := range side * side {
				j.Problem.Y = append(j.Problem.Y, img.Pix[[4]int{0, 1, 1, 2}[i/side%2*2+i%2]*side*side+i])
			}
			w := j.warnFilter()
			switch beside := pattern == 1 || pattern == 2; {
			case !beside && w != nil:
				t.Errorf("%s, filter %d: %+v", filepath.Base(file), pattern, w)
			case beside && w != nil:
				found++
				if w.Code != photograph.WarnOperator || !strings.Contains(w.Text, "one of the two is likely to be wrong") {
					t.Errorf("warning %+v", w)
				}
			}
			if j.Item.Measurement = nil; j.warnFilter() != nil {
				t.Error("a simulated mosaic has a warning")
			}
		}
	}
	// The others are without colours: pages, a photograph in grey, the night sky.
	if found < 16 {
		t.Errorf("%d of %d other filters are found", found, 2*len(files))
	}

	// Stripes along a diagonal, in grey.
	op, err := operator.Builtin().New(operator.Demosaic, nil, operator.Shape{Channels: 3, Height: side, Width: side})
	must(t, err)
	j := &Job{Op: op, Item: item.Item{Task: operator.Demosaic, Measurement: &item.Source{}}}
	for i := range side * side {
		j.Problem.Y = append(j.Problem.Y, float32((i/side-i%side+side)/4%2))
	}
	if w := j.warnFilter(); w != nil {
		t.Errorf("stripes: %+v", w)
	}
}
