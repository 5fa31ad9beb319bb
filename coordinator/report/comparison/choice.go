package comparison

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/statistic"
	"ddiff/coordinator/report/sweep"
	"ddiff/coordinator/report/table"
	"ddiff/manifest"
	"ddiff/restore/operator"
)

// Choices measures the selection rules on results with several runs per measurement: how often each rule picks a good
// run among Of runs.
type Choices struct {
	// Of is the number of runs from which a rule chooses.
	Of int `json:"of"`
	// Within defines a good run: its PSNR is at most Within dB below the highest PSNR among all runs of its measurement.
	Within float64       `json:"within"`
	Groups []ChoiceGroup `json:"groups"`
}

// ChoiceGroup has the rules on one problem and approach.
type ChoiceGroup struct {
	sweep.Problem
	sweep.Approach
	// Runs is the number of finished runs of all measurements that count.
	Runs int `json:"runs"`
	// LeftOut counts the measurements with fewer than Of finished runs, or without a PSNR.
	LeftOut int            `json:"left_out,omitempty"`
	Rules   []RuleChoice   `json:"rules"`
	samples []choiceSample // one per measurement
}

// RuleChoice has the figures of one rule, as means over measurements with intervals over images.
type RuleChoice struct {
	Rule   selection.Rule `json:"rule"`
	Oracle bool           `json:"oracle,omitempty"`
	// Good is the probability, between 0 and 1, that the rule picks a good run among Of runs; GoodGain is its difference to
	// that of a single run. The mean picks no run.
	Good     statistic.Estimate `json:"good,omitzero"`
	GoodGain statistic.Estimate `json:"good_gain,omitzero"`
	// PSNR is the expected PSNR of the picked run in dB; Gain is its difference to a single run.
	PSNR statistic.Estimate `json:"psnr,omitzero"`
	Gain statistic.Estimate `json:"gain,omitzero"`
}

// choiceSample has the exact figures of one measurement, by the index of the rule in [selection.Rules].
type choiceSample struct {
	image      uint64
	good, psnr []float64
}

// Choose measures the selection rules. Each figure is exact over all choices of "of" runs among the runs of a measurement,
// which count as exchangeable: they differ by the solver's noise alone, so that the first run is any run. The error wraps
// [ErrNotComparable] if no measurement has so many finished runs with a PSNR.
func Choose(results iter.Seq2[manifest.Result, error], tasks operator.Set, of int, within float64) (c *Choices, err error) {
	if of < 1 || !(within >= 0) || math.IsInf(within, 0) {
		return nil, fmt.Errorf("choose among %d runs, good within %g dB: want at least 1 run and a finite number from 0", of, within)
	}
	ordered, err := entry.Collect(result.OnlyScores(results, ""), tasks, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ordered.Close()) }()
	c = &Choices{Of: of, Within: within}
	measured := 0
	for m, err := range entry.Measurements(ordered.All(), selection.First) {
		if err != nil {
			return nil, err
		}
		if m.Copy || !m.Cell().Resolved() {
			continue
		}
		if n := len(c.Groups); n == 0 || c.Groups[n-1].Problem != m.Problem || c.Groups[n-1].Approach != m.Approach {
			c.Groups = append(c.Groups, ChoiceGroup{Problem: m.Problem, Approach: m.Approach})
		}
		g := &c.Groups[len(c.Groups)-1]
		if len(m.Runs) < of || slices.ContainsFunc(m.Runs, func(s selection.Scores) bool { return !statistic.Defined(s.PSNR) }) {
			g.LeftOut++
			continue
		}
		g.Runs += len(m.Runs)
		g.samples = append(g.samples, c.sample(m))
		measured++
	}
	if measured == 0 {
		return nil, fmt.Errorf("%w: no measurement has %d finished runs with a PSNR; run more, or choose among fewer", ErrNotComparable, of)
	}
	for i := range c.Groups {
		c.Groups[i].estimate()
	}
	return c, nil
}

// sample computes the figures of one measurement.
func (c *Choices) sample(m *entry.Measurement) choiceSample {
	s := choiceSample{image: m.Image}
	threshold := selection.BestPSNR.Combine(m.Runs).PSNR - c.Within
	for _, r := range selection.Rules() {
		good, psnr := math.NaN(), math.NaN()
		if r.Decides(m.Runs) {
			good, psnr = 0, 0
			ranked, chances := r.Chances(m.Runs, c.Of)
			for i, run := range ranked {
				psnr += chances[i] * run.PSNR
				if run.PSNR >= threshold {
					good += chances[i]
				}
			}
		}
		if r == selection.Mean {
			good = math.NaN()
		}
		s.good, s.psnr = append(s.good, good), append(s.psnr, psnr)
	}
	return s
}

// estimate computes the means over measurements.
func (g *ChoiceGroup) estimate() {
	first := slices.Index(selection.Rules(), selection.First)
	images := make([]uint64, len(g.samples))
	for i, s := range g.samples {
		images[i] = s.image
	}
	over := func(value func(s choiceSample) float64) statistic.Estimate {
		values := make([]float64, len(g.samples))
		for i, s := range g.samples {
			values[i] = value(s)
		}
		return statistic.ClusterMean(values, images)
	}
	g.Rules = []RuleChoice{}
	for k, r := range selection.Rules() {
		g.Rules = append(g.Rules, RuleChoice{
			Rule: r, Oracle: r.Oracle(),
			Good:     over(func(s choiceSample) float64 { return s.good[k] }),
			GoodGain: over(func(s choiceSample) float64 { return s.good[k] - s.good[first] }),
			PSNR:     over(func(s choiceSample) float64 { return s.psnr[k] }),
			Gain:     over(func(s choiceSample) float64 { return s.psnr[k] - s.psnr[first] }),
		})
	}
}

// WriteText writes a table for each problem and approach, and the definitions.
func (c *Choices) WriteText(w io.Writer) error {
	out := table.NewWriter(w, table.Texts)
	for _, g := range c.Groups {
		fmt.Fprintf(out, "%s, %s %s: %d runs of %d measurements", sweep.Printable(g.Describe()), sweep.Printable(g.Method), sweep.Printable(g.Settings), g.Runs, len(g.samples))
		if g.LeftOut > 0 {
			fmt.Fprintf(out, "; left out for fewer than %d finished runs or no PSNR: %d", c.Of, g.LeftOut)
		}
		fmt.Fprintln(out, ".")
		if len(g.samples) == 0 {
			continue
		}
		fmt.Fprintln(out, "rule\tn\tgood run\t±95%\t- first\t±95%\tPSNR\t±95%\t- first\t±95%")
		for _, r := range g.Rules {
			mark := ""
			if r.Oracle {
				mark = "*"
			}
			fmt.Fprintf(out, "%s%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Rule, mark, r.PSNR.N, table.Mean(r.Good, 3, "-"), table.Half(r.Good, 3, "-"),
				table.SignedMean(r.GoodGain, 3, "-"), table.Half(r.GoodGain, 3, "-"), table.Mean(r.PSNR, 2, "-"), table.Half(r.PSNR, 2, "-"), table.SignedMean(r.Gain, 2, "-"), table.Half(r.Gain, 2, "-"))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "good run: probability that the rule picks a run within %s dB of the highest PSNR among all runs of the measurement.\n"+
		"PSNR: of the picked run. - first: difference to a single run.\n"+
		"Each rule chooses among %d runs; the figures are exact over all choices of %d among the runs of a measurement. Runs are\n"+
		"exchangeable, so that first is any run. n images, each one cluster of the intervals.\n"+
		"* %s.\n", strconv.FormatFloat(c.Within, 'g', -1, 64), c.Of, c.Of, selection.OracleNote)
	return out.Flush()
}
