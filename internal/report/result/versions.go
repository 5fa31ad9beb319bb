package result

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
)

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
		name := metric.NameOf(id)
		if other, twice := v.pinned[name]; twice && other != id {
			return v, fmt.Errorf("%w of %s: %s and %s; give one", ErrVersions, name, other, id)
		}
		v.pinned[name] = id
	}
	return v, nil
}

// Select yields the results without scores of other versions of the pinned metrics. Its last pair has an error that wraps
// [ErrVersions] if no result has a score of a pinned version.
func (v Versions) Select(results iter.Seq2[item.Result, error]) iter.Seq2[item.Result, error] {
	if len(v.pinned) == 0 {
		return results
	}
	return func(yield func(item.Result, error) bool) {
		found := make(map[string]bool)
		done := false
		for r, err := range results {
			if err == nil && r.Outcome == item.OutcomeDone {
				done = true
				v.apply(&r, found)
			}
			if !yield(r, err) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v.pinned)) {
			if done && !found[name] {
				yield(item.Result{}, fmt.Errorf("%w: no result has a score of %s; compute it with ddiff score", ErrVersions, v.pinned[name]))
				return
			}
		}
	}
}

func (v Versions) apply(r *item.Result, found map[string]bool) {
	r.Scores = slices.DeleteFunc(slices.Clone(r.Scores), func(s item.Score) bool {
		name := metric.NameOf(s.Metric)
		id, pinned := v.pinned[name]
		if pinned && id == s.Metric && s.Value != nil {
			found[name] = true
		}
		return pinned && id != s.Metric
	})
	r.Metrics = maps.Clone(r.Metrics)
	for name, id := range v.pinned {
		if _, scored := r.Metrics[name]; scored && r.MetricIDs[name] == id {
			found[name] = true
			continue
		}
		delete(r.Metrics, name)
		delete(r.Metrics, metric.Degraded(name)) // of the same version
	}
}

// OnlyScores drops the later scores of other metrics, on which a comparison of one metric does not depend; "" drops all.
func OnlyScores(results iter.Seq2[item.Result, error], name string) iter.Seq2[item.Result, error] {
	return func(yield func(item.Result, error) bool) {
		for r, err := range results {
			r.Scores = slices.DeleteFunc(slices.Clone(r.Scores), func(s item.Score) bool { return metric.NameOf(s.Metric) != name })
			if !yield(r, err) {
				return
			}
		}
	}
}
