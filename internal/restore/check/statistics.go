package check

import (
	"fmt"
	"math"
	"slices"
	"time"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/raster"
)

// moments returns the mean and the standard deviation.
func moments(x []float32) (mean, std float64) {
	for _, v := range x {
		mean += float64(v)
	}
	mean /= float64(len(x))
	for _, v := range x {
		std += (float64(v) - mean) * (float64(v) - mean)
	}
	return mean, math.Sqrt(std / float64(len(x)))
}

func rms(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(max(len(x), 1)))
}

// meanSquare returns the mean square difference.
func meanSquare(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return sum / float64(len(a))
}

// dot returns the inner product, summed in float64.
func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// clippedPSNR returns the PSNR of values, clipped to [−1, 1], against an image, in dB, at most 80.
func clippedPSNR(image []float32, value func(i int) float64) float64 {
	sum := 0.0
	for i, want := range image {
		d := (max(-1, min(1, value(i))) - float64(want)) / 2
		sum += d * d
	}
	return -10 * math.Log10(sum/float64(len(image))+1e-8)
}

// durations are durations of calls.
type durations []time.Duration

// median returns the median in milliseconds, or 0 without calls.
func (d durations) median() float64 {
	if len(d) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2].Seconds() * 1000
}

// imageSize rounds a side in pixels, by default 256, up to a multiple.
func imageSize(size, multiple int) int {
	if size == 0 {
		size = 256
	}
	return (size + multiple - 1) / multiple * multiple
}

// checkImage checks that a photograph has the channels and the side of a check.
func checkImage(img *raster.Image, channels, side int) error {
	if img.Channels != channels || img.Height != side || img.Width != side {
		return fmt.Errorf("image of %d channels, %d×%d: want %d channels, %d×%d", img.Channels, img.Width, img.Height, channels, side, side)
	}
	return nil
}

// smooth returns a batch of images of slow waves in [−1, 1], different in each channel.
func smooth(shape []int) []float32 {
	out := make([]float32, 0, infer.Size(shape))
	h, w := float64(shape[2]), float64(shape[3])
	for i := range shape[0] * shape[1] {
		for y := range shape[2] {
			for x := range shape[3] {
				v := math.Sin(float64(i)+5*float64(y)/h) * math.Cos(float64(i)+7*float64(x)/w)
				out = append(out, float32(0.9*v))
			}
		}
	}
	return out
}
