package aggregate

import (
	"ddiff/internal/report/entry"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/metric"
)

// Paired is the mean difference of a figure between two groups of one problem, paired by measurement.
type Paired struct {
	// Difference is the mean of A - B over the same measurements, with its 95 % interval over images.
	Difference statistic.Estimate `json:"difference,omitzero"`
	// P is the two-sided p value of Wilcoxon's signed-rank test on the mean difference of each image; PHolm is adjusted
	// for all comparisons of a summary by Holm's method. Nil for fewer than two images, or without any difference.
	P     *float64 `json:"p,omitempty"`
	PHolm *float64 `json:"p_holm,omitempty"`
	// Suspect: at least half of the finished items of one side have warnings, so that the p values prove nothing.
	Suspect bool `json:"suspect,omitempty"`
	// LeftOut counts the measurements that lack the figure from either side.
	LeftOut int `json:"left_out,omitempty"`
}

// Compare compares a figure of two groups only if the campaigns gave them the same measurements of the same images to restore. It
// counts given and not finished measurements, so that an approach does not gain by failing. It returns the pairs with the figure on both sides. An error
// states how the measurements differ, with the names of the groups.
func Compare(a, b *entry.Group, figure, nameA, nameB string) (c Paired, pairs [][2]*entry.Measurement, err error) {
	c.Suspect = a.Suspect() || b.Suspect()
	all, lost, err := entry.Compared(a, b, nameA, nameB)
	if err != nil {
		return c, nil, err
	}
	c.LeftOut = lost
	var differences []float64
	var images []uint64
	for _, p := range all {
		d := p[0].Of(figure) - p[1].Of(figure)
		if !statistic.Defined(d) {
			c.LeftOut++
			continue
		}
		pairs, differences, images = append(pairs, p), append(differences, d), append(images, p[0].Image)
	}
	c.Difference = statistic.ClusterMean(differences, images)
	c.P = statistic.SignedRankOfImages(differences, images)
	return c, pairs, nil
}

// AdjustHolm adjusts the p values of n comparisons.
func AdjustHolm(n int, of func(i int) *Paired) {
	statistic.AdjustHolm(n, func(i int) (p *float64, adjusted **float64) { return of(i).P, &of(i).PHolm })
}

// Comparison is the mean difference in PSNR between two approaches to one problem, paired by measurement.
type Comparison struct {
	Task string `json:"task"`
	// Problem has the varying properties of the problem, such as "factor=2, σ 0.05".
	Problem string `json:"problem,omitempty"`
	// A and B are the methods, with the varying properties of the approach.
	A string `json:"a"`
	B string `json:"b"`
	Paired
	// Refused is the reason why the approaches cannot be compared; Difference is zero then.
	Refused string `json:"refused,omitempty"`

	// Of is the problem.
	Of sweep.Problem `json:"-"`
}

// maxPairs bounds the comparisons of one problem: of more approaches each is compared with the first.
const maxPairs = 45

// compare compares the approaches to each problem, pair by pair.
func compare(rows []Row, varying Varying) []Comparison {
	var out []Comparison
	for same := range sweep.Blocks(rows, func(r Row) sweep.Problem { return r.Problem }) {
		if !same[0].Resolved() {
			continue
		}
		for i := range same {
			for k := range same[i+1:] {
				if i == 0 || len(same)*(len(same)-1)/2 <= maxPairs {
					out = append(out, compareRows(&same[i], &same[i+1+k], varying))
				}
			}
		}
	}
	AdjustHolm(len(out), func(i int) *Paired { return &out[i].Paired })
	return out
}

// compareRows compares the PSNR of two approaches.
func compareRows(a, b *Row, varying Varying) Comparison {
	c := Comparison{
		Task: a.Task, Problem: varying.ProblemText(a), Of: a.Problem, A: varying.ApproachText(a), B: varying.ApproachText(b),
	}
	var err error
	if c.Paired, _, err = Compare(a.group, b.group, metric.NamePSNR, c.A, c.B); err != nil {
		c.Refused = err.Error()
	} else if c.Difference.N == 0 {
		c.Refused = "no measurement has a PSNR from both methods"
	}
	return c
}
