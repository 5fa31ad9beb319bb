package statistic

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// The largest numbers of pairs for which signedRank sums the exact distribution: without ties and zeros, and with them.
const (
	maxExact     = 50
	maxExactTies = 13
)

// signedRank is the two-sided p value of Wilcoxon's signed-rank test that the differences are symmetric about zero. Zeros
// are left out, ties have their mean rank. The distribution is exact up to 50 differences, with ties or zeros up to 13;
// otherwise it is normal, with the correction for ties. NaN without a difference other than zero. The figures are those
// of scipy.stats.wilcoxon.
func signedRank(differences []float64) float64 {
	var d []float64
	for _, v := range differences {
		if v != 0 {
			d = append(d, v)
		}
	}
	n := len(d)
	if n == 0 {
		return math.NaN()
	}
	slices.SortFunc(d, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	doubled := make([]int, 0, n) // twice the ranks
	plus, ties := 0, 0.0
	for from := 0; from < n; {
		to := from
		for to < n && math.Abs(d[to]) == math.Abs(d[from]) {
			to++
		}
		for _, v := range d[from:to] {
			doubled = append(doubled, from+to+1)
			if v > 0 {
				plus += from + to + 1
			}
		}
		size := float64(to - from)
		ties += size*size*size - size
		from = to
	}
	total := n * (n + 1) // twice the sum of the ranks
	lower := min(plus, total-plus)
	if plain := ties == 0 && n == len(differences); plain && n <= maxExact || !plain && len(differences) <= maxExactTies {
		return exactSignedRank(doubled, lower)
	}
	variance := float64(total)*float64(2*n+1)/24 - ties/48
	return 2 * distuv.UnitNormal.CDF(float64(lower-total/2)/2/math.Sqrt(variance))
}

// exactSignedRank is twice P(W ≤ w), at most 1, where each rank is in the sum W with probability 1/2.
func exactSignedRank(ranks []int, w int) float64 {
	probability := make([]float64, w+1) // of the sums up to w
	probability[0] = 1
	for _, rank := range ranks {
		for s := w; s >= 0; s-- {
			probability[s] /= 2
			if s >= rank {
				probability[s] += probability[s-rank] / 2
			}
		}
	}
	var p float64
	for _, v := range probability {
		p += v
	}
	return min(1, 2*p)
}

// holm adjusts the p values of a family of tests (Holm 1979): the largest, over the smaller or equal values, of p times
// the number of values not smaller than it, at most 1.
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	adjusted := make([]float64, len(p))
	var running float64
	for k, i := range order {
		running = max(running, min(1, p[i]*float64(len(p)-k)))
		adjusted[i] = running
	}
	return adjusted
}

// SignedRankOfImages tests the mean difference of each image. Nil for fewer than two images, or without any difference.
func SignedRankOfImages(differences []float64, images []uint64) *float64 {
	all := clusters(differences, images)
	if len(all) < 2 {
		return nil
	}
	means := make([]float64, len(all))
	for i, c := range all {
		means[i] = c.mean
	}
	return Optional(signedRank(means))
}

// UnreachableNote is a sentence if none of a number of signed-rank tests of at most n differences can have a p value below 0.05 after Holm's
// method, otherwise "".
func UnreachableNote(tests, n int) string {
	const level = 0.05
	least := func(n int) float64 { return min(1, math.Ldexp(float64(tests), 1-n)) }
	if tests == 0 || least(n) < level {
		return ""
	}
	needed := n
	for least(needed) >= level {
		needed++
	}
	return fmt.Sprintf("No p value can be below %.2g here (n = %d, tests: %d), however large the differences: p does not mean that the methods are equal. "+
		"A p value below 0.05 needs at least %d images.", least(n), n, tests, needed)
}

// AdjustHolm sets the adjusted p values of n tests, of which get returns the p value, if there is one, and the place.
func AdjustHolm(n int, get func(i int) (p *float64, adjusted **float64)) {
	var values []float64
	var places []**float64
	for i := range n {
		if p, place := get(i); p != nil {
			values, places = append(values, *p), append(places, place)
		}
	}
	for i, p := range holm(values) {
		*places[i] = &p
	}
}
