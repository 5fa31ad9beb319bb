// Package selection combines the runs of one measurement into one set of scores. A further [Rule] is one constant of package manifest with
// its sentence, and its merit here.
package selection

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"unique"

	"ddiff/coordinator/report/statistic"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/metric"
)

// ErrUnknownRule: the selection rule is none of [manifest.Selections].
var ErrUnknownRule = errors.New("unknown selection rule")

// Rule combines the runs of one measurement into one figure.
type Rule = manifest.Selection

// The rules.
const (
	First          = manifest.SelectFirst
	Mean           = manifest.SelectMean
	ClosestToNoise = manifest.SelectClosestToNoise
	MinMisfit      = manifest.SelectMinMisfit
	BestPSNR       = manifest.SelectBestPSNR
	BestSSIM       = manifest.SelectBestSSIM
)

// Parse checks a rule; the empty one is [First]. The error wraps [ErrUnknownRule].
func Parse(r Rule) (Rule, error) {
	r = cmp.Or(r, First)
	if !slices.Contains(manifest.Selections(), r) {
		return "", fmt.Errorf("select %q: %w; use one of %v", r, ErrUnknownRule, manifest.Selections())
	}
	return r, nil
}

// OracleNote is the footnote of figures that an oracle selected.
const OracleNote = "selected by comparing the runs with the ground truth: an upper bound, not a ranking"

// Scores are the figures of one measurement.
type Scores struct {
	// Metrics has the scores of the columns of tables.
	item.Metrics
	// Seconds and Cost are NaN where undefined. Cost is by index in [CostNames].
	Seconds float64
	Cost    [CostKinds]float64
}

// ScoresOf returns the scores of a result.
func ScoresOf(r *item.Result) Scores {
	s := Scores{Metrics: make(item.Metrics, len(r.Metrics)), Seconds: r.Seconds, Cost: costOf(r.Cost)}
	for name, v := range r.Metrics {
		if !math.IsInf(v, 0) {
			s.Metrics[unique.Make(name).Value()] = v // results share the names
		}
	}
	return s
}

// PSNR is in dB, NaN without one.
func (s *Scores) PSNR() float64 { return s.Of(metric.NamePSNR) }

// Baseline is the PSNR of the degraded image in dB, NaN without one.
func (s *Scores) Baseline() float64 { return s.Of(metric.Degraded(metric.NamePSNR)) }

// Gain is the difference of PSNR and Baseline.
func (s *Scores) Gain() float64 { return s.PSNR() - s.Baseline() }

// Combine applies a rule to the finished runs of one measurement, in the order of their numbers. A rule that chooses among runs
// needs all of them, so its seconds and its cost are their sums. All scores of no run are undefined.
func Combine(r Rule, runs []Scores) Scores {
	if len(runs) == 0 {
		return Scores{Seconds: math.NaN(), Cost: costOf(item.Cost{})}
	}
	if r == Mean {
		return meanScores(runs)
	}
	out := runs[Chosen(r, runs)]
	if meritOf(r) != nil {
		out.Seconds, out.Cost = 0, [CostKinds]float64{}
		for _, s := range runs {
			out.Seconds += s.Seconds
			for k, v := range s.Cost {
				out.Cost[k] += v
			}
		}
	}
	return out
}

// Chosen is the index of the run with the highest merit, in a tie the earlier run; 0 for a rule that does not choose. It is a run without merit
// (NaN) only if all runs lack merit.
func Chosen(r Rule, runs []Scores) int {
	best, merit := 0, meritOf(r)
	for i := range runs {
		if merit != nil && better(merit(runs[i]), merit(runs[best])) {
			best = i
		}
	}
	return best
}

// meritOf returns the figure by which a rule chooses among runs, the highest first; nil if it does not choose.
func meritOf(r Rule) func(Scores) float64 {
	switch r {
	case ClosestToNoise:
		return func(s Scores) float64 { return -math.Abs(s.Of(metric.NameResidual)) }
	case MinMisfit:
		return func(s Scores) float64 { return -s.Of(metric.NameResidual) }
	case BestPSNR:
		return func(s Scores) float64 { return s.PSNR() }
	case BestSSIM:
		return func(s Scores) float64 { return s.Of(metric.NameSSIM) }
	default:
		return nil
	}
}

// better reports whether a rule prefers the merit a to b. NaN, the merit of an undefined figure, is last.
func better(a, b float64) bool { return a > b || math.IsNaN(b) && !math.IsNaN(a) }

// meanScores averages the defined values of each figure; without one it is undefined.
func meanScores(runs []Scores) Scores {
	mean := func(of func(s *Scores) float64) float64 {
		sum, n := 0.0, 0.0
		for i := range runs {
			if v := of(&runs[i]); statistic.Defined(v) {
				sum, n = sum+v, n+1
			}
		}
		return sum / n
	}
	out := Scores{Metrics: item.Metrics{}, Seconds: mean(func(s *Scores) float64 { return s.Seconds })}
	for k := range out.Cost {
		out.Cost[k] = mean(func(s *Scores) float64 { return s.Cost[k] })
	}
	for i := range runs {
		for name := range runs[i].Metrics {
			out.Metrics[name] = mean(func(s *Scores) float64 { return s.Of(name) })
		}
	}
	return out
}

// CostKinds is the number of kinds of work in a [item.Cost].
const CostKinds = 5

// CostNames are the columns of results.csv and the keys of costs in summary.json.
var CostNames = [CostKinds]string{"network", "network_backward", "operator", "autoencoder", "autoencoder_backward"}

// costOf returns a cost as figures by the index in [CostNames], which are undefined for the unknown one.
func costOf(c item.Cost) (out [CostKinds]float64) {
	for k, n := range []int{c.Network, c.NetworkBackward, c.Operator, c.Autoencoder, c.AutoencoderBackward} {
		out[k] = float64(n)
		if c == (item.Cost{}) {
			out[k] = math.NaN()
		}
	}
	return out
}

// CombineResults combines the results of the runs of a measurement. ok is false if no run is done.
func CombineResults(rule Rule, runs []item.Result) (s Scores, ok bool) {
	var done []Scores
	for i := range runs {
		if runs[i].Outcome == item.OutcomeDone {
			done = append(done, ScoresOf(&runs[i]))
		}
	}
	return Combine(rule, done), len(done) > 0
}
