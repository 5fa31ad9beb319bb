package score

import (
	"context"
	"slices"

	"ddiff/manifest"
	"ddiff/restore/metric"
	"ddiff/restore/raster"
)

// Metric compares two pictures.
type Metric struct {
	// Head has the versioned id.
	Head manifest.ScoreHead
	// Compare returns the score of a restored image. An error that wraps [metric.ErrTooSmall] means that the metric does not
	// apply to the pictures.
	Compare func(ctx context.Context, truth, restored *raster.Image) (float64, error)
}

// Names returns the names of the metrics that need no file.
func Names() []string { return []string{"psnr", "ssim", "psnr_y", "haarpsi"} }

// Named returns a metric of [Names] for stored pictures, and false for another name. Version is that of the program.
func Named(name, version string) (Metric, bool) {
	at := slices.Index(Names(), name)
	if at < 0 {
		return Metric{}, false
	}
	own := []struct {
		id      string
		compare func(x, y *raster.Image) (float64, error)
	}{{metric.PSNRID, metric.PSNR}, {metric.SSIMID, metric.SSIM}, {metric.LumaID, metric.PSNRLuma}, {metric.HaarPSIID, metric.HaarPSI}}[at]
	return Metric{
		Head: manifest.ScoreHead{Metric: own.id + ":png", Version: version},
		Compare: func(_ context.Context, truth, restored *raster.Image) (float64, error) {
			return own.compare(truth, restored)
		},
	}, true
}

// solved returns the score of the same name that the worker computed, or nil.
func solved(r *manifest.Result, id string) *float64 {
	switch manifest.MetricName(id) {
	case "psnr":
		return r.Metrics.PSNR
	case "ssim":
		return r.Metrics.SSIM
	case "psnr_y":
		return r.Metrics.PSNRLuma
	case "haarpsi":
		return r.Metrics.HaarPSI
	}
	return nil
}
