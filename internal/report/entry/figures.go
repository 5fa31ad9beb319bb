package entry

import (
	"maps"
	"math"
	"slices"

	"ddiff/internal/report/selection"
	"ddiff/internal/report/statistic"
	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
)

// The figures of an item beside its scores, which have the names of their metrics.
const (
	Seconds  = "seconds"
	Baseline = "baseline_" + metric.NamePSNR // the PSNR of the degraded image
	Gain     = "gain"                        // the PSNR minus that
	// Ratio is the mean square residual over the variance of the noise, whose expectation under the truth is 1. Undefined without noise.
	Ratio = "residual_ratio"
)

// CostNames are the figures that count the kinds of work in an [item.Cost].
func CostNames() []string {
	return []string{"network", "network_backward", "operator", "autoencoder", "autoencoder_backward"}
}

// costs are the counts by [CostNames], which are undefined for the unknown cost.
func costs(c item.Cost) []float64 {
	out := []float64{float64(c.Network), float64(c.NetworkBackward), float64(c.Operator), float64(c.Autoencoder), float64(c.AutoencoderBackward)}
	if c == (item.Cost{}) {
		for k := range out {
			out[k] = math.NaN()
		}
	}
	return out
}

// Figures are the figures of a row by their names.
type Figures struct {
	place  map[string]int // of a name among the values; rows share it
	values []float64      // NaN: undefined
}

// NewFigures returns figures of one row.
func NewFigures(of map[string]float64) Figures {
	f := Figures{place: make(map[string]int)}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		f.place[name] = len(f.values)
		f.values = append(f.values, of[name])
	}
	return f
}

// Of returns a figure, NaN for an undefined one.
func (f *Figures) Of(name string) float64 {
	if k, known := f.place[name]; known && f.values != nil {
		return f.values[k]
	}
	if name == Gain {
		return f.Of(metric.NamePSNR) - f.Of(Baseline)
	}
	return math.NaN()
}

// Combine combines the finished runs of one measurement, in the order of their numbers, by a rule: the row of the run with the highest merit, in a tie of the
// earlier one, with the means of the defined figures if that is the rule. A rule that chooses among runs needs all of them, so its seconds and its cost are
// their sums. A run without merit is chosen only if all runs lack merit.
func Combine(rule selection.Rule, runs []*Entry) *Entry {
	best := runs[0]
	most, chooses := selection.Merit(rule, best.Of)
	for _, e := range runs[1:] {
		if merit, _ := selection.Merit(rule, e.Of); chooses && (merit > most || math.IsNaN(most) && !math.IsNaN(merit)) {
			best, most = e, merit
		}
	}
	if len(runs) == 1 || !chooses && rule != selection.Mean {
		return best
	}
	out := *best
	out.values = slices.Clone(best.values)
	for name, k := range best.place {
		if !chooses || name == Seconds || slices.Contains(CostNames(), name) {
			out.values[k] = total(runs, name, !chooses)
		}
	}
	return &out
}

// total is the sum of a figure over runs, or the mean of its defined values.
func total(runs []*Entry, name string, mean bool) float64 {
	sum, n := 0.0, 0.0
	for _, e := range runs {
		if v := e.Of(name); !mean || statistic.Defined(v) {
			sum, n = sum+v, n+1
		}
	}
	if mean {
		return sum / n
	}
	return sum
}
