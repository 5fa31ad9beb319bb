package metric

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ddiff/internal/restore/raster"
)

// Unclipped lists the versions of metrics that compare images which are neither clipped nor rounded. Workers do not compute them.
func Unclipped() Set {
	return Set{
		{Name: NamePSNR, Version: "reference_range", Compare: psnrReferenceRange},
		{Name: NameSSIM, Version: "window5", Minimum: uniformSize, Compare: ssimWindow5},
	}
}

// IsUnclipped reports whether the metric with a versioned id compares images that are not clipped.
func IsUnclipped(id string) bool {
	return strings.Contains(id, unclippedVersion+":") || slices.ContainsFunc(Unclipped(), func(m Metric) bool { return m.ID() == id })
}

// psnrReferenceRange returns the peak signal-to-noise ratio of an image in dB as scikit-image computes it with the range of the reference:
// 10 log10(range²/mse), over all channels, without clipping. range is the difference of the largest and the smallest value of the
// reference. The error is [ErrUndefined] for equal images and for a reference of one value.
func psnrReferenceRange(reference, x *raster.Image) (float64, error) {
	span, err := valueRange(reference)
	if err != nil {
		return 0, fmt.Errorf("psnr: %w", err)
	}
	sum := 0.0
	for i, v := range reference.Pix {
		d := float64(v) - float64(x.Pix[i])
		sum += d * d
	}
	if sum == 0 {
		return 0, fmt.Errorf("psnr: the images are equal: %w", ErrUndefined)
	}
	return 10 * math.Log10(span*span*float64(len(x.Pix))/sum), nil
}

const (
	uniformSize = 5
	uniformArea = uniformSize * uniformSize
)

// ssimWindow5 returns the structural similarity of an image as scikit-image computes it with a window of 5 pixels and the range of the
// reference, without clipping: 5x5 windows of equal weights that lie inside the image, variances and covariance with n − 1, k1 = 0.01, k2 =
// 0.03; mean over the windows of a channel, then over the channels. Errors are those of [psnrReferenceRange], but equal images have the
// score 1, and [ErrTooSmall] below 5 pixels.
func ssimWindow5(reference, x *raster.Image) (float64, error) {
	span, err := valueRange(reference)
	if err != nil {
		return 0, fmt.Errorf("ssim: %w", err)
	}
	if min(x.Height, x.Width) < uniformSize {
		return 0, fmt.Errorf("ssim: image of %dx%d pixels, must be at least %dx%d: %w", x.Width, x.Height, uniformSize, uniformSize, ErrTooSmall)
	}
	sum := 0.0
	for c := range x.Channels {
		sum += uniformSSIM(reference.Plane(c), x.Plane(c), x.Width, span)
	}
	return sum / float64(x.Channels), nil
}

// uniformSSIM returns the mean similarity of two planes with rows of the given width.
func uniformSSIM(reference, other []float32, width int, span float64) float64 {
	const sample = float64(uniformArea) / (uniformArea - 1)
	k1, k2 := 0.01*0.01*span*span, 0.03*0.03*span*span
	sum, windows := 0.0, 0
	// Sums over the rows of a window, by column: of x, y, x², y² and xy.
	var columns [5][]float64
	for q := range columns {
		columns[q] = make([]float64, width)
	}
	for top := 0; (top+uniformSize)*width <= len(reference); top++ {
		for q := range columns {
			clear(columns[q])
		}
		for at := range uniformSize * width {
			x, y := float64(reference[top*width+at]), float64(other[top*width+at])
			for q, v := range [5]float64{x, y, x * x, y * y, x * y} {
				columns[q][at%width] += v
			}
		}
		for left := range width - uniformSize + 1 {
			var mean [5]float64
			for q := range columns {
				for _, v := range columns[q][left : left+uniformSize] {
					mean[q] += v / uniformArea
				}
			}
			mx, my := mean[0], mean[1]
			vx, vy, vxy := sample*(mean[2]-mx*mx), sample*(mean[3]-my*my), sample*(mean[4]-mx*my)
			sum += (2*mx*my + k1) * (2*vxy + k2) / ((mx*mx + my*my + k1) * (vx + vy + k2))
			windows++
		}
	}
	return sum / float64(windows)
}

// valueRange returns the range of the reference, which is positive.
func valueRange(reference *raster.Image) (float64, error) {
	span := float64(slices.Max(reference.Pix)) - float64(slices.Min(reference.Pix))
	if span == 0 {
		return 0, fmt.Errorf("the reference has one value: %w", ErrUndefined)
	}
	return span, nil
}
