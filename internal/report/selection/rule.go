// Package selection has the rules by which the runs of one measurement become one row. A further [Rule] is one constant of package manifest with
// its sentence, and its merit here.
package selection

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"ddiff/internal/failure"
	"ddiff/internal/restore/metric"
	"ddiff/manifest"
)

// ErrUnknownRule: the selection rule is none of [manifest.Selections].
var ErrUnknownRule = failure.New(failure.Input, "unknown selection rule")

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

// Merit is the figure by which a rule chooses among runs, the highest first, of which of has the figures by their names; ok is false for a rule that does
// not choose.
func Merit(r Rule, of func(name string) float64) (merit float64, ok bool) {
	switch r {
	case ClosestToNoise:
		return -math.Abs(of(metric.NameResidual)), true
	case MinMisfit:
		return -of(metric.NameResidual), true
	case BestPSNR:
		return of(metric.NamePSNR), true
	case BestSSIM:
		return of(metric.NameSSIM), true
	default:
		return 0, false
	}
}
