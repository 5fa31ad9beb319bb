package aggregate

import (
	"bytes"
	"fmt"
	"math"
	"slices"

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

// paired is the PSNR of a measurement that one approach was to restore, NaN where it has none.
type paired struct {
	target [16]byte
	image  uint64
	psnr   float64
}

// pairing has the measurements of one approach, 32 bytes each.
type pairing []paired

func (p *pairing) add(m *entry.Measurement) {
	psnr := math.NaN()
	if len(m.Runs) > 0 {
		psnr = m.Combined.PSNR
	}
	*p = append(*p, paired{[16]byte([]byte(m.Measurement)), m.Image, psnr})
}

func comparePaired(a, b paired) int { return bytes.Compare(a.target[:], b.target[:]) }

// addPairings gives a pairing to each cell of a task with several approaches to one problem.
func addPairings(cells []*cell) {
	approaches := make(map[sweep.Problem]int)
	tasks := make(map[string]bool)
	for _, c := range cells {
		approaches[c.row.Problem]++
		tasks[c.row.Task] = tasks[c.row.Task] || approaches[c.row.Problem] > 1
	}
	for _, c := range cells {
		if tasks[c.row.Task] {
			c.pairing = &pairing{}
		}
	}
}

// compare compares the approaches to each problem, pair by pair.
func compare(cells []*cell, varying Varying) []Comparison {
	var out []Comparison
	for from := 0; from < len(cells); {
		to := from
		for to < len(cells) && cells[to].row.Problem == cells[from].row.Problem {
			to++
		}
		if same := cells[from:to]; len(same) > 1 && cells[from].row.Cell().Resolved() {
			for _, c := range same {
				slices.SortFunc(*c.pairing, comparePaired)
			}
			for i, a := range same {
				for _, b := range same[i+1:] {
					if i == 0 || len(same)*(len(same)-1)/2 <= maxPairs {
						out = append(out, compareCells(a, b, varying))
					}
				}
			}
		}
		from = to
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
	p, q := *a.pairing, *b.pairing
	var differences []float64
	var images []uint64
	for _, m := range p {
		if j, shared := slices.BinarySearchFunc(q, m, comparePaired); shared {
			differences, images = append(differences, m.psnr-q[j].psnr), append(images, m.image)
		}
	}
	if shared := len(differences); shared < len(p) || shared < len(q) {
		c.Refused = fmt.Sprintf("different measurements: %d of %s, %d of %s, %d in common",
			len(p), c.A, len(q), c.B, shared)
		return c
	}
	c.Difference = statistic.ClusterMean(differences, images)
	for _, d := range differences {
		if !statistic.Defined(d) {
			c.LeftOut++
		}
	}
	if c.Difference.N == 0 {
		c.Refused = "no measurement has a PSNR from both methods"
	}
	c.P = statistic.SignedRankOfImages(differences, images)
	return c
}
