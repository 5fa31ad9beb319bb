package prior_test

import (
	"testing"

	"ddiff/internal/restore/prior"
)

// The values of the network grow with the pixels. A height that the network does not take has none.
func TestValues(t *testing.T) {
	t.Parallel()
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	small, large := p.Values(256, 128), p.Values(512, 512)
	if perPixel := large / (512 * 512); perPixel < 2500 || perPixel > 2900 {
		t.Errorf("%g values per pixel, want about 2700", perPixel)
	}
	if ratio := large / small; ratio < 7.5 || ratio > 8 {
		t.Errorf("8 times the pixels have %g times the values", ratio)
	}
	if again := p.Values(256, 128); again != small {
		t.Errorf("%g values, at first %g", again, small)
	}
	if bad := p.Values(-1, 64); bad != 0 {
		t.Errorf("%g values at the height -1", bad)
	}
}
