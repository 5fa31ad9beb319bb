package embedded

import (
	"testing"

	"ddiff/manifest"
)

// Small images are solved in larger batches; images of their own size may be large.
func TestBatchOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size int
		fit  manifest.Fit
		want int
	}{{64, manifest.FitCenterCrop, 16}, {65, manifest.FitCenterCrop, 4}, {64, manifest.FitPad, 4}} {
		if got := batchOf(manifest.Dataset{Size: c.size, Fit: c.fit}); got != c.want {
			t.Errorf("%s to %d pixels: %d images, want %d", c.fit, c.size, got, c.want)
		}
	}
}
