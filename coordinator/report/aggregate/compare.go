package aggregate

import (
	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/statistic"
	"ddiff/coordinator/report/sweep"
)

// Comparison is the mean difference in PSNR between two approaches to one problem, paired by measurement.
type Comparison struct {
	Task string `json:"task"`
	// Problem has the varying properties of the problem, such as "factor=2, σ 0.05".
	Problem string `json:"problem,omitempty"`
	// A and B are the methods, with the varying properties of the approach.
	A string `json:"a"`
	B string `json:"b"`
	// Difference is the mean of PSNR(A) - PSNR(B) in dB over the same measurements, with its 95 % interval over images.
	Difference statistic.Estimate `json:"difference,omitzero"`
	// P is the two-sided p value of Wilcoxon's signed-rank test on the mean difference of each image; PHolm is adjusted
	// for all comparisons of the summary by Holm's method. Nil for fewer than two images, or without any difference.
	P     *float64 `json:"p,omitempty"`
	PHolm *float64 `json:"p_holm,omitempty"`
	// Suspect: one of the rows is suspect, so that the p values prove nothing; see [Row.Suspect].
	Suspect bool `json:"suspect,omitempty"`
	// LeftOut counts the measurements that lack a PSNR from either approach.
	LeftOut int `json:"left_out,omitempty"`
	// Refused is the reason why the approaches cannot be compared; Difference is zero then.
	Refused string `json:"refused,omitempty"`

	// Of is the problem.
	Of sweep.Problem `json:"-"`
}

// maxPairs bounds the comparisons of one problem: of more approaches each is compared with the first.
const maxPairs = 45

// compare compares the approaches to each problem, pair by pair.
func compare(cells []*cell, varying Varying) []Comparison {
	var out []Comparison
	for same := range sweep.Blocks(cells, func(c *cell) sweep.Problem { return c.row.Problem }) {
		if !same[0].row.Cell().Resolved() {
			continue
		}
		for i, a := range same {
			for _, b := range same[i+1:] {
				if i == 0 || len(same)*(len(same)-1)/2 <= maxPairs {
					out = append(out, compareCells(a, b, varying))
				}
			}
		}
	}
	statistic.AdjustHolm(len(out), func(i int) (p *float64, adjusted **float64) { return out[i].P, &out[i].PHolm })
	return out
}

// compareCells compares approaches only if the campaign gave them the same measurements of the same images to restore. It
// counts given and not finished measurements, so that an approach does not gain by failing.
func compareCells(a, b *cell, varying Varying) Comparison {
	c := Comparison{
		Task: a.row.Task, Problem: varying.ProblemText(&a.row), Of: a.row.Problem,
		A: varying.ApproachText(&a.row), B: varying.ApproachText(&b.row), Suspect: a.row.Suspect() || b.row.Suspect(),
	}
	pairs, lost, err := entry.Compared(a.group, b.group, c.A, c.B)
	if err != nil {
		c.Refused = err.Error()
		return c
	}
	c.LeftOut = lost
	var differences []float64
	var images []uint64
	for _, p := range pairs {
		d := p[0].Combined.PSNR() - p[1].Combined.PSNR()
		if !statistic.Defined(d) {
			c.LeftOut++
		}
		differences, images = append(differences, d), append(images, p[0].Image)
	}
	c.Difference = statistic.ClusterMean(differences, images)
	if c.Difference.N == 0 {
		c.Refused = "no measurement has a PSNR from both methods"
	}
	c.P = statistic.SignedRankOfImages(differences, images)
	return c
}
