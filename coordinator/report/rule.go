package report

import (
	"fmt"
	"math"

	"ddiff/manifest"
)

// Rule says how the runs of one measurement become one figure.
type Rule string

// The selection rules. Failed and dead runs never take part.
const (
	// RuleFirst takes the run with the lowest number. It is the default.
	RuleFirst Rule = "first"
	// RuleMean averages each figure over the runs.
	RuleMean Rule = "mean"
	// RuleMinResidual takes the run that explains the measurement best: the smallest
	// residual, which needs no ground truth.
	RuleMinResidual Rule = "min_residual"
	// RuleBestPSNR takes the run closest to the ground truth. It is an oracle: nobody who
	// lacks the truth can follow it, so its figures are marked and never ranked.
	RuleBestPSNR Rule = "best_psnr"
)

// ParseRule reads a rule's name; the empty name is [RuleFirst]. The error wraps
// [ErrUnknownRule].
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

// Oracle reports whether the rule looks at the ground truth.
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

// oracleNote is the footnote of every figure that RuleBestPSNR selected.
const oracleNote = "selected by comparing the runs with the ground truth: an upper bound, not a ranking"

// scores are the figures of one measurement; NaN where one is not defined.
type scores struct {
	psnr, ssim, residual, baseline, seconds float64
}

func scoresOf(r *manifest.Result) scores {
	return scores{
		psnr:     figure(r.Metrics.PSNR),
		ssim:     figure(r.Metrics.SSIM),
		residual: figure(r.Metrics.Residual),
		baseline: figure(r.Metrics.BaselinePSNR),
		seconds:  r.Seconds,
	}
}

// combine applies the rule to the runs of one measurement, in the order of their numbers;
// there is at least one. A rule that chooses after looking at several runs has paid for all
// of them, so its seconds are their sum.
func (r Rule) combine(runs []scores) scores {
	switch r {
	case RuleMean:
		return meanScores(runs)
	case RuleMinResidual:
		return choose(runs, func(s scores) float64 { return -s.residual })
	case RuleBestPSNR:
		return choose(runs, func(s scores) float64 { return s.psnr })
	default:
		return runs[0]
	}
}

// choose takes the run with the highest merit, the earlier one of equals; a run without
// merit (NaN) only when none has any.
func choose(runs []scores, merit func(scores) float64) scores {
	best := runs[0]
	var seconds float64
	for _, s := range runs {
		seconds += s.seconds
		if m := merit(s); m > merit(best) || math.IsNaN(merit(best)) && !math.IsNaN(m) {
			best = s
		}
	}
	best.seconds = seconds
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
		psnr:     mean(func(s scores) float64 { return s.psnr }),
		ssim:     mean(func(s scores) float64 { return s.ssim }),
		residual: mean(func(s scores) float64 { return s.residual }),
		baseline: mean(func(s scores) float64 { return s.baseline }),
		seconds:  mean(func(s scores) float64 { return s.seconds }),
	}
}
