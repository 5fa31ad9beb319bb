package score

import (
	"context"

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

// measure is a metric that needs no file.
type measure struct {
	name, id  string
	unclipped bool
	compare   func(truth, restored *raster.Image) (float64, error)
	solved    func(m manifest.Metrics) *float64 // the score that the worker computed
}

func measures() []measure {
	none := func(manifest.Metrics) *float64 { return nil }
	return []measure{
		{"psnr", metric.PSNRID, false, metric.PSNR, func(m manifest.Metrics) *float64 { return m.PSNR }},
		{"ssim", metric.SSIMID, false, metric.SSIM, func(m manifest.Metrics) *float64 { return m.SSIM }},
		{"psnr_y", metric.LumaID, false, metric.PSNRLuma, func(m manifest.Metrics) *float64 { return m.PSNRLuma }},
		{"haarpsi", metric.HaarPSIID, false, metric.HaarPSI, func(m manifest.Metrics) *float64 { return m.HaarPSI }},
		{metric.ReferenceRangeID, metric.ReferenceRangeID, true, metric.PSNRReferenceRange, none},
		{metric.Window5ID, metric.Window5ID, true, metric.SSIMWindow5, none},
	}
}

// Names returns the names of the metrics that need no file.
func Names() []string { return namesOf(false) }

// UnclippedNames returns the ids of the metrics that need no file other than restored.npy.
func UnclippedNames() []string { return namesOf(true) }

func namesOf(unclipped bool) (names []string) {
	for _, m := range measures() {
		if m.unclipped == unclipped {
			names = append(names, m.name)
		}
	}
	return names
}

// Named returns a metric of [Names] for stored pictures, or of [UnclippedNames], and false for another name. Version is that of the program.
func Named(name, version string) (Metric, bool) {
	for _, m := range measures() {
		if m.name != name {
			continue
		}
		id := m.id
		if !m.unclipped {
			id += ":png"
		}
		return Metric{
			Head: manifest.ScoreHead{Metric: id, Version: version}, Unclipped: m.unclipped,
			Compare: func(_ context.Context, truth, restored *raster.Image) (float64, error) {
				return m.compare(truth, restored)
			},
		}, true
	}
	return Metric{}, false
}

// solved returns the score of the same name that the worker computed, or nil.
func solved(r *manifest.Result, id string) *float64 {
	for _, m := range measures() {
		if m.name == manifest.MetricName(id) {
			return m.solved(r.Metrics)
		}
	}
	return nil
}
