package report

import (
	"fmt"
	"math"

	"ddiff/manifest"
)

// Rule combines the runs of one measurement into one figure.
type Rule string

// The selection rules. They ignore failed and dead runs.
const (
	// RuleFirst selects the run with the lowest number. It is the default.
	RuleFirst Rule = "first"
	// RuleMean averages each figure over the runs.
	RuleMean Rule = "mean"
	// RuleMinResidual selects the run with the smallest residual, the best fit to the measurement. It needs no ground
	// truth.
	RuleMinResidual Rule = "min_residual"
	// RuleBestPSNR selects the run closest to the ground truth. It is an oracle, unusable in practice, so its figures
	// are marked and never ranked.
	RuleBestPSNR Rule = "best_psnr"
)

// ParseRule parses the name of a rule; the empty name is [RuleFirst]. The error wraps [ErrUnknownRule].
func ParseRule(name string) (Rule, error) {
	switch r := Rule(name); r {
	case "":
		return RuleFirst, nil
	case RuleFirst, RuleMean, RuleMinResidual, RuleBestPSNR:
		return r, nil
	default:
		return "", fmt.Errorf("select %q: %w; use %s, %s, %s or %s",
			name, ErrUnknownRule, RuleFirst, RuleMean, RuleMinResidual, RuleBestPSNR)
	}
}

// Oracle reports whether the rule uses the ground truth.
func (r Rule) Oracle() bool { return r == RuleBestPSNR }

// sentence describes the rule for people.
func (r Rule) sentence() string {
	switch r {
	case RuleMean:
		return "mean over the runs of each measurement"
	case RuleMinResidual:
		return "of each measurement the run with the smallest residual"
	case RuleBestPSNR:
		return "of each measurement the run with the highest PSNR"
	default:
		return "the first run of each measurement"
	}
}

// oracleNote is the footnote of figures that RuleBestPSNR selected.
const oracleNote = "selected by comparing the runs with the ground truth: an upper bound, not a ranking"

// scores are the figures of one measurement, NaN where undefined. The fields are exported for package gob.
type scores struct {
	PSNR, SSIM, Residual, Baseline, Seconds float64
}

func scoresOf(r *manifest.Result) scores {
	return scores{
		PSNR:     figure(r.Metrics.PSNR),
		SSIM:     figure(r.Metrics.SSIM),
		Residual: figure(r.Metrics.Residual),
		Baseline: figure(r.Metrics.BaselinePSNR),
		Seconds:  r.Seconds,
	}
}

// combine applies the rule to the runs of one measurement, at least one, in the order of their numbers. A rule that
// chooses among runs needs all of them, so its seconds are their sum.
func (r Rule) combine(runs []scores) scores {
	switch r {
	case RuleMean:
		return meanScores(runs)
	case RuleMinResidual:
		return choose(runs, func(s scores) float64 { return -s.Residual })
	case RuleBestPSNR:
		return choose(runs, func(s scores) float64 { return s.PSNR })
	default:
		return runs[0]
	}
}

// choose selects the run with the highest merit, in a tie the earlier run. It selects a run without merit (NaN) only if
// all runs lack merit.
func choose(runs []scores, merit func(scores) float64) scores {
	best := runs[0]
	var seconds float64
	for _, s := range runs {
		seconds += s.Seconds
		if m := merit(s); m > merit(best) || math.IsNaN(merit(best)) && !math.IsNaN(m) {
			best = s
		}
	}
	best.Seconds = seconds
	return best
}

func meanScores(runs []scores) scores {
	mean := func(get func(scores) float64) float64 {
		values := make([]float64, len(runs))
		for i, s := range runs {
			values[i] = get(s)
		}
		if e := estimate(values); e.N > 0 {
			return e.Mean
		}
		return math.NaN()
	}
	return scores{
		PSNR:     mean(func(s scores) float64 { return s.PSNR }),
		SSIM:     mean(func(s scores) float64 { return s.SSIM }),
		Residual: mean(func(s scores) float64 { return s.Residual }),
		Baseline: mean(func(s scores) float64 { return s.Baseline }),
		Seconds:  mean(func(s scores) float64 { return s.Seconds }),
	}
}
