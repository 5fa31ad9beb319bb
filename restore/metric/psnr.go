package metric

import (
	"fmt"
	"math"

	"ddiff/restore/raster"
)

// PSNRID is the id of [PSNR]. Version 1: both images clipped to [-1, 1] and mapped to [0, 1], all channels together,
// -10 log10(mse + 1e-8), in dB. The constant is piq's; it limits the score to 80 dB, the score of identical images.
const PSNRID = "psnr@1"

// PSNR returns the peak signal-to-noise ratio of two images of equal shape, in dB. It is symmetric. Errors are
// [ErrShape] and [raster.ErrNotFinite].
func PSNR(x, y *raster.Image) (float64, error) {
	if err := checkPair(x, y); err != nil {
		return 0, fmt.Errorf("psnr: %w", err)
	}
	sum := 0.0
	for i, v := range x.Pix {
		d := unit(v) - unit(y.Pix[i])
		sum += d * d
	}
	return -10 * math.Log10(sum/float64(len(x.Pix))+1e-8), nil
}

// LumaID is the id of [PSNRLuma]. Version 1: as [PSNR], on 0.299 R + 0.587 G + 0.114 B.
const LumaID = "psnr_y@1"

// PSNRLuma returns the peak signal-to-noise ratio of the luma of two images of equal shape with 1 or 3 channels, in dB. It is
// symmetric. Errors are [ErrShape] and [raster.ErrNotFinite].
func PSNRLuma(x, y *raster.Image) (float64, error) {
	if err := checkPair(x, y); err != nil {
		return 0, fmt.Errorf("psnr_y: %w", err)
	}
	if x.Channels != 1 && x.Channels != 3 {
		return 0, fmt.Errorf("psnr_y: image of %d channels, must be 1 or 3: %w", x.Channels, ErrShape)
	}
	sum, n := 0.0, x.Height*x.Width
	for i := range n {
		d := luma(x, i) - luma(y, i)
		sum += d * d
	}
	return -10 * math.Log10(sum/float64(n)+1e-8), nil
}

// unit clips v to [-1, 1] and maps it to [0, 1].
func unit(v float32) float64 { return (float64(min(1, max(-1, v))) + 1) / 2 }

// checkPair checks that two images are valid, finite and of equal shape.
func checkPair(x, y *raster.Image) error {
	for _, img := range []*raster.Image{x, y} {
		if err := img.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrShape, err)
		}
	}
	if x.Channels != y.Channels || x.Height != y.Height || x.Width != y.Width {
		return fmt.Errorf("compare %d channels of %dx%d pixels with %d of %dx%d: %w",
			x.Channels, x.Width, x.Height, y.Channels, y.Width, y.Height, ErrShape)
	}
	for k, img := range []*raster.Image{x, y} {
		if i, ok := raster.Finite(img.Pix); !ok {
			return fmt.Errorf("value %d of image %d is %v: %w", i, k+1, img.Pix[i], raster.ErrNotFinite)
		}
	}
	return nil
}
