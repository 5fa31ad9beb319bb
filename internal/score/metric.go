package score

import (
	"context"
	"fmt"

	"ddiff/internal/report/result"
	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// Metric compares two pictures.
type Metric struct {
	// Head has the versioned id.
	Head result.ScoreHead
	// Unclipped: the restored image is restored.npy, which is neither clipped nor rounded, instead of restored.png. Items without it are skipped.
	Unclipped bool
	// Compare returns the score of a restored image. See [metric.Inapplicable].
	Compare func(ctx context.Context, truth, restored *raster.Image) (float64, error)
}

// restored is the file of the restored image that the metric compares.
func (m Metric) restored() string {
	if m.Unclipped {
		return item.FileUnclipped
	}
	return item.FileRestored
}

// Names returns the names of the metrics that need no file.
func Names() []string { return metric.Builtin().Comparing().Names() }

// UnclippedNames returns the ids of the metrics that need no file other than restored.npy.
func UnclippedNames() []string {
	var ids []string
	for _, m := range metric.Unclipped() {
		ids = append(ids, m.ID())
	}
	return ids
}

// Named returns a metric of [Names] for stored pictures, or of [UnclippedNames], and false for another name. Version is that of the program.
func Named(name, version string) (Metric, bool) {
	of := func(m metric.Metric, id string, unclipped bool) Metric {
		return Metric{
			Head: result.ScoreHead{Metric: id, Version: version}, Unclipped: unclipped,
			Compare: func(_ context.Context, truth, restored *raster.Image) (float64, error) {
				if err := metric.Check(truth, restored); err != nil {
					return 0, fmt.Errorf("%s: %w", m.Name, err)
				}
				return m.Compare(truth, restored)
			},
		}
	}
	if m, ok := metric.Builtin().Comparing().Find(name); ok {
		return of(m, m.ID()+":png", false), true
	}
	for _, m := range metric.Unclipped() {
		if m.ID() == name {
			return of(m, name, true), true
		}
	}
	return Metric{}, false
}
