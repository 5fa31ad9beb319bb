package results

import (
	"testing"

	"ddiff/restore/raster"
)

// TestEqual16: equal 8-bit samples may differ in 16 bits; a grey image equals itself in three channels.
func TestEqual16(t *testing.T) {
	t.Parallel()
	a, b := raster.New(1, 1, 2), raster.New(3, 1, 2)
	if !equal16(a, b) {
		t.Error("equal images differ")
	}
	b.Pix[4] = 1. / 32767
	if n, err := levels(a, b); err != nil || n != 0 || equal16(a, b) {
		t.Errorf("%d levels, %v; a step of 16 bits is not seen", n, err)
	}
}
