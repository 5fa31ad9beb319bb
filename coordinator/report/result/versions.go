package result

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"ddiff/manifest"
)

// BuiltinMetrics are the columns of the scores that workers compute, with the versions of results that name none.
func BuiltinMetrics() map[string]string {
	return map[string]string{"psnr": "psnr@1", "ssim": "ssim@1", "residual": "residual@1", "psnr_y": "psnr_y@1", "haarpsi": "haarpsi@1"}
}

// MetricField returns the score of a worker in the column, or nil for another column.
func MetricField(m *manifest.Metrics, column string) **float64 {
	return map[string]**float64{"psnr": &m.PSNR, "ssim": &m.SSIM, "residual": &m.Residual, "psnr_y": &m.PSNRLuma, "haarpsi": &m.HaarPSI}[column]
}

// SolvedID returns the version of the worker's score in a column.
func SolvedID(r *manifest.Result, column string) string {
	if id := r.MetricIDs[column]; id != "" {
		return id
	}
	return BuiltinMetrics()[column]
}

// Versions pins the versions of metrics: a table has one version of each. The zero value pins none.
type Versions struct {
	pinned map[string]string
}

// ParseVersions reads versioned ids such as psnr@1 and lpips_vgg@1:1f2e3d4c, at most one for each metric. The error wraps
// [ErrVersions].
func ParseVersions(ids []string) (Versions, error) {
	v := Versions{pinned: make(map[string]string)}
	for _, id := range ids {
		if err := checkMetricID(id); err != nil {
			return v, fmt.Errorf("%w: %w", ErrVersions, err)
		}
		name := manifest.MetricName(id)
		if other, twice := v.pinned[name]; twice && other != id {
			return v, fmt.Errorf("%w of %s: %s and %s; give one", ErrVersions, name, other, id)
		}
		v.pinned[name] = id
	}
	return v, nil
}

// Select yields the results without scores of other versions of the pinned metrics. Its last pair has an error that wraps
// [ErrVersions] if no result has a score of a pinned version.
func (v Versions) Select(results iter.Seq2[manifest.Result, error]) iter.Seq2[manifest.Result, error] {
	if len(v.pinned) == 0 {
		return results
	}
	return func(yield func(manifest.Result, error) bool) {
		found := make(map[string]bool)
		done := false
		for r, err := range results {
			if err == nil && r.Outcome == manifest.OutcomeDone {
				done = true
				v.apply(&r, found)
			}
			if !yield(r, err) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v.pinned)) {
			if done && !found[name] {
				yield(manifest.Result{}, fmt.Errorf("%w: no result has a score of %s; compute it with ddiff score", ErrVersions, v.pinned[name]))
				return
			}
		}
	}
}

func (v Versions) apply(r *manifest.Result, found map[string]bool) {
	r.Scores = slices.DeleteFunc(slices.Clone(r.Scores), func(s manifest.Score) bool {
		name := manifest.MetricName(s.Metric)
		id, pinned := v.pinned[name]
		if pinned && id == s.Metric && s.Value != nil {
			found[name] = true
		}
		return pinned && id != s.Metric
	})
	for name, id := range v.pinned {
		field := MetricField(&r.Metrics, name)
		switch {
		case field == nil || *field == nil:
		case SolvedID(r, name) == id:
			found[name] = true
		default:
			*field = nil
			if name == "psnr" { // its baseline is of the same version
				r.Metrics.BaselinePSNR = nil
			}
		}
	}
}

// OnlyScores drops the later scores of other metrics, on which a comparison of one metric does not depend; "" drops all.
func OnlyScores(results iter.Seq2[manifest.Result, error], metric string) iter.Seq2[manifest.Result, error] {
	return func(yield func(manifest.Result, error) bool) {
		for r, err := range results {
			r.Scores = slices.DeleteFunc(slices.Clone(r.Scores), func(s manifest.Score) bool { return manifest.MetricName(s.Metric) != metric })
			if !yield(r, err) {
				return
			}
		}
	}
}
