package job

import (
	"errors"
	"fmt"

	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
)

// score computes the metrics that apply to the item.
func (j *Job) score() (item.Metrics, error) {
	seen, applied := j.observed(j.Problem.Y), j.observed(j.applied)
	variance := j.noise().Variance(seen)
	scores, failed := item.Metrics{}, error(nil)
	if j.Item.Photons > 0 {
		scores[item.NoiseVariance] = variance
	}
	enter := func(name string) func(score float64, err error) {
		return func(score float64, err error) {
			switch {
			case err == nil:
				scores[name] = score
			case !metric.Inapplicable(err):
				failed = errors.Join(failed, fmt.Errorf("score %s: %w", name, err))
			}
		}
	}
	if j.truth != nil {
		j.baseline = j.Op.Baseline(j.Problem.Y)
		if err := metric.Check(j.truth, j.Restored()); err != nil {
			return nil, fmt.Errorf("score the restored image: %w", err)
		}
	}
	if j.baseline != nil {
		if err := metric.Check(j.truth, j.baseline); err != nil {
			return nil, fmt.Errorf("score the degraded image: %w", err)
		}
	}
	for _, m := range metric.Builtin() {
		switch {
		case m.Misfit != nil:
			enter(m.Name)(m.Misfit(seen, applied, variance))
		case j.truth != nil:
			enter(m.Name)(m.Compare(j.truth, j.Restored()))
			if m.Degraded && j.baseline != nil {
				enter(metric.Degraded(m.Name))(m.Compare(j.truth, j.baseline))
			}
		}
	}
	return scores, failed
}
