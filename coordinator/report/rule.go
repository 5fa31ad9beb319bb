package report

import (
	"fmt"
	"math"
	"slices"

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
	// RuleClosestToNoise selects the run whose mean square residual is closest to σ², its expectation under the truth.
	RuleClosestToNoise Rule = "closest_to_noise"
	// RuleMinMisfit selects the run with the smallest mean square residual, as the literature on phase retrieval does.
	// It prefers overfitting: a run below σ² explains noise.
	RuleMinMisfit Rule = "min_misfit"
	// RuleBestPSNR and RuleBestSSIM select the run closest to the ground truth. They are oracles, unusable in practice,
	// so their figures are marked and never ranked.
	RuleBestPSNR Rule = "best_psnr"
	RuleBestSSIM Rule = "best_ssim"

	// ruleMinResidual is the name of RuleMinMisfit in stored campaigns of earlier versions.
	ruleMinResidual Rule = "min_residual"
)

// Rules returns all rules, the default first.
func Rules() []Rule {
	return []Rule{RuleFirst, RuleMean, RuleClosestToNoise, RuleMinMisfit, RuleBestPSNR, RuleBestSSIM}
}

// ParseRule parses the name of a rule; the empty name is [RuleFirst]. The error wraps [ErrUnknownRule].
func ParseRule(name string) (Rule, error) {
	switch r := Rule(name); {
	case r == "":
		return RuleFirst, nil
	case r == ruleMinResidual:
		return RuleMinMisfit, nil
	case slices.Contains(Rules(), r):
		return r, nil
	}
	return "", fmt.Errorf("select %q: %w; use one of %v", name, ErrUnknownRule, Rules())
}

// Oracle reports whether the rule uses the ground truth.
func (r Rule) Oracle() bool { return r == RuleBestPSNR || r == RuleBestSSIM }

// sentence describes the rule for people.
func (r Rule) sentence() string {
	switch r {
	case RuleMean:
		return "mean over the runs of each measurement"
	case RuleClosestToNoise:
		return "of each measurement the run whose mean square residual is closest to σ²"
	case RuleMinMisfit:
		return "of each measurement the run with the smallest mean square residual"
	case RuleBestPSNR:
		return "of each measurement the run with the highest PSNR"
	case RuleBestSSIM:
		return "of each measurement the run with the highest SSIM"
	default:
		return "the first run of each measurement"
	}
}

// oracleNote is the footnote of figures that an oracle selected.
const oracleNote = "selected by comparing the runs with the ground truth: an upper bound, not a ranking"

// scores are the figures of one measurement, NaN where undefined. The fields are exported for package gob.
type scores struct {
	PSNR, SSIM, Residual, Baseline, Seconds, PSNRLuma, HaarPSI float64
	// Cost is by index in costNames.
	Cost [costKinds]float64
	// Extra are the scores of the further columns.
	Extra []float64
}

func scoresOf(r *manifest.Result) scores {
	return scores{
		PSNR:     figure(r.Metrics.PSNR),
		SSIM:     figure(r.Metrics.SSIM),
		Residual: figure(r.Metrics.Residual),
		Baseline: figure(r.Metrics.BaselinePSNR),
		Seconds:  r.Seconds,
		PSNRLuma: figure(r.Metrics.PSNRLuma),
		HaarPSI:  figure(r.Metrics.HaarPSI),
		Cost:     costOf(r.Cost),
	}
}

// combine applies the rule to the runs of one measurement, at least one, in the order of their numbers. A rule that
// chooses among runs needs all of them, so its seconds and its cost are their sums.
func (r Rule) combine(runs []scores) scores {
	if r == RuleMean {
		return meanScores(runs)
	}
	if merit := r.merit(); merit != nil {
		return choose(runs, merit)
	}
	return runs[0]
}

// merit returns the figure by which the rule chooses among runs, the highest first; nil if it does not choose.
func (r Rule) merit() func(scores) float64 {
	switch r {
	case RuleClosestToNoise:
		return func(s scores) float64 { return -math.Abs(s.Residual) }
	case RuleMinMisfit:
		return func(s scores) float64 { return -s.Residual }
	case RuleBestPSNR:
		return func(s scores) float64 { return s.PSNR }
	case RuleBestSSIM:
		return func(s scores) float64 { return s.SSIM }
	default:
		return nil
	}
}

// better reports whether a rule prefers the merit a to b. NaN, the merit of an undefined figure, is last.
func better(a, b float64) bool { return a > b || math.IsNaN(b) && !math.IsNaN(a) }

// choose selects the run with the highest merit, in a tie the earlier run. It selects a run without merit (NaN) only if
// all runs lack merit.
func choose(runs []scores, merit func(scores) float64) scores {
	best := runs[0]
	var seconds float64
	var cost [costKinds]float64
	for _, s := range runs {
		seconds += s.Seconds
		for k, v := range s.Cost {
			cost[k] += v
		}
		if better(merit(s), merit(best)) {
			best = s
		}
	}
	best.Seconds, best.Cost = seconds, cost
	return best
}

func meanScores(runs []scores) scores {
	mean := func(get func(scores) float64) float64 {
		n, sum := 0, 0.0
		for _, s := range runs {
			if v := get(s); defined(v) {
				n, sum = n+1, sum+v
			}
		}
		return sum / float64(n) // NaN without a defined value
	}
	out := scores{
		PSNR:     mean(func(s scores) float64 { return s.PSNR }),
		SSIM:     mean(func(s scores) float64 { return s.SSIM }),
		Residual: mean(func(s scores) float64 { return s.Residual }),
		Baseline: mean(func(s scores) float64 { return s.Baseline }),
		Seconds:  mean(func(s scores) float64 { return s.Seconds }),
		PSNRLuma: mean(func(s scores) float64 { return s.PSNRLuma }),
		HaarPSI:  mean(func(s scores) float64 { return s.HaarPSI }),
	}
	for k := range out.Cost {
		out.Cost[k] = mean(func(s scores) float64 { return s.Cost[k] })
	}
	for i := range runs[0].Extra {
		out.Extra = append(out.Extra, mean(func(s scores) float64 { return s.Extra[i] }))
	}
	return out
}

// chances returns the runs and the probability that the rule picks each of them, over all choices of k runs. Among n
// runs, ranked from the best, the rule picks run i if the choice has it and none before it: C(n-1-i, k-1) of C(n, k)
// choices. It returns no run if the rule has nothing to choose by.
func (r Rule) chances(runs []scores, k int) (ranked []scores, chances []float64) {
	n := len(runs)
	chances = make([]float64, n)
	merit := r.merit()
	if merit == nil {
		for i := range chances {
			chances[i] = 1 / float64(n)
		}
		return runs, chances
	}
	if !slices.ContainsFunc(runs, func(s scores) bool { return defined(merit(s)) }) {
		return nil, nil
	}
	ranked = slices.Clone(runs)
	slices.SortStableFunc(ranked, func(a, b scores) int {
		switch x, y := merit(a), merit(b); {
		case better(x, y):
			return -1
		case better(y, x):
			return 1
		}
		return 0
	})
	// C(n-1, k-1) / C(n, k) = k/n, and each next one is smaller by (n-i-k)/(n-1-i).
	chance := float64(k) / float64(n)
	for i := 0; i+k <= n; i++ {
		chances[i] = chance
		if i+k < n {
			chance *= float64(n-i-k) / float64(n-1-i)
		}
	}
	return ranked, chances
}
