package embedded

import (
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// Small images are solved in larger batches, unless a number is stated; images of their own size may be large.
func TestBatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider      string
		size          int
		fit           item.Fit
		stated        int
		items, pixels int
	}{
		{onnxruntime.ProviderCPU, 64, item.FitCenterCrop, 0, 16, 65536}, {onnxruntime.ProviderCPU, 65, item.FitCenterCrop, 0, 2, 0},
		{onnxruntime.ProviderOpenVINO, 64, item.FitPad, 0, 2, 0}, {onnxruntime.ProviderCPU, 64, item.FitCenterCrop, 3, 3, 0},
		{onnxruntime.ProviderCUDA, 256, item.FitCenterCrop, 0, 16, 1 << 20}, {onnxruntime.ProviderCUDA, 257, item.FitCenterCrop, 0, 4, 0},
		{onnxruntime.ProviderCUDA, 256, item.FitPad, 0, 4, 0}, {onnxruntime.ProviderCUDA, 256, item.FitCenterCrop, 3, 3, 0},
	} {
		items, pixels := batch(&manifest.Spec{Dataset: manifest.Dataset{Size: c.size, Fit: c.fit}, Batch: c.stated}, c.provider)
		if items != c.items || pixels != c.pixels {
			t.Errorf("%+v: %d images, %d pixels", c, items, pixels)
		}
	}
}
