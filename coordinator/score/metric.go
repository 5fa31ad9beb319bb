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
	// Unclipped: the restored image is restored.npy, which is neither clipped nor rounded, instead of restored.png. Items without it are skipped.
	Unclipped bool
	// Compare returns the score of a restored image. An error that wraps [metric.ErrTooSmall] or [metric.ErrUndefined] means that the metric
	// does not apply to the pictures.
	Compare func(ctx context.Context, truth, restored *raster.Image) (float64, error)
}

// restored is the file of the restored image that the metric compares.
func (m Metric) restored() string {
	if m.Unclipped {
		return manifest.FileUnclipped
	}
	return manifest.FileRestored
}

// Names returns the names of the metrics that need no file.
func Names() []string { return []string{"psnr", "ssim", "psnr_y", "haarpsi"} }

// UnclippedNames returns the ids of the metrics that need no file other than restored.npy.
func UnclippedNames() []string { return []string{metric.ReferenceRangeID, metric.Window5ID} }

// Named returns a metric of [Names] for stored pictures, or of [UnclippedNames], and false for another name. Version is that of the program.
func Named(name, version string) (Metric, bool) {
	if at := slices.Index(UnclippedNames(), name); at >= 0 {
		compare := []func(x, y *raster.Image) (float64, error){metric.PSNRReferenceRange, metric.SSIMWindow5}[at]
		return Metric{
			Head: manifest.ScoreHead{Metric: name, Version: version}, Unclipped: true,
			Compare: func(_ context.Context, truth, restored *raster.Image) (float64, error) {
				return compare(truth, restored)
			},
		}, true
	}
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
