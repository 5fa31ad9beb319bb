package embedded

import (
	"testing"

	"ddiff/manifest"
)

// Small images are solved in larger batches, unless a number is stated; images of their own size may be large.
func TestBatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size          int
		fit           manifest.Fit
		stated        int
		items, pixels int
	}{{64, manifest.FitCenterCrop, 0, 16, 65536}, {65, manifest.FitCenterCrop, 0, 4, 0}, {64, manifest.FitPad, 0, 4, 0}, {64, manifest.FitCenterCrop, 3, 3, 0}} {
		items, pixels := batch(&manifest.Spec{Dataset: manifest.Dataset{Size: c.size, Fit: c.fit}, Batch: c.stated})
		if items != c.items || pixels != c.pixels {
			t.Errorf("%+v: %d images, %d pixels", c, items, pixels)
		}
	}
}
