package report

import (
	"fmt"
	"math"
)

// Comparison is the mean difference in PSNR of two methods on one task, image by image.
type Comparison struct {
	Task string `json:"task"`
	A    string `json:"a"`
	B    string `json:"b"`
	// Difference is the mean of PSNR(A) - PSNR(B) in dB over the same measurements, with
	// the 95 % interval of a paired t test.
	Difference Estimate `json:"difference,omitzero"`
	// LeftOut counts the measurements that lack a PSNR from either method.
	LeftOut int `json:"left_out,omitempty"`
	// Refused says why the methods cannot be compared; there is no difference then.
	Refused string `json:"refused,omitempty"`
}

// compareMethods pairs every two methods of each task. The cells come ordered by task.
func compareMethods(cells []*cell, rule Rule) []Comparison {
	var out []Comparison
	for i, a := range cells {
		for _, b := range cells[i+1:] {
			if a.row.Task == b.row.Task {
				out = append(out, compareCells(a, b, rule))
			}
		}
	}
	return out
}

// compareCells compares only methods that were asked to restore the same measurements of
// the same images: what they were asked for counts, not what they finished, so that a
// method gains nothing by failing.
func compareCells(a, b *cell, rule Rule) Comparison {
	c := Comparison{Task: a.row.Task, A: a.row.Method, B: b.row.Method}
	other := make(map[target]setting, len(b.settings))
	for _, key := range b.settings {
		other[key.target] = key
	}
	own := make(map[target]bool, len(a.settings))
	shared := 0
	for _, key := range a.settings {
		own[key.target] = true
		if _, ok := other[key.target]; ok {
			shared++
		}
	}
	switch {
	case len(own) < len(a.settings):
		c.Refused = fmt.Sprintf("%s restored a measurement with several settings", c.A)
		return c
	case len(other) < len(b.settings):
		c.Refused = fmt.Sprintf("%s restored a measurement with several settings", c.B)
		return c
	case shared < len(own) || shared < len(other):
		c.Refused = fmt.Sprintf("different measurements: %d of %s, %d of %s, %d in common",
			len(own), c.A, len(other), c.B, shared)
		return c
	}

	differences := make([]float64, 0, shared)
	for _, key := range a.settings {
		d := pairedPSNR(a.runs[key], b.runs[other[key.target]], rule)
		if math.IsNaN(d) {
			c.LeftOut++
		}
		differences = append(differences, d)
	}
	c.Difference = estimate(differences)
	if c.Difference.N == 0 {
		c.Refused = "no measurement has a PSNR from both methods"
	}
	return c
}

// pairedPSNR is NaN when either side has no finished run or no PSNR.
func pairedPSNR(a, b []scores, rule Rule) float64 {
	if len(a) == 0 || len(b) == 0 {
		return math.NaN()
	}
	return rule.combine(a).psnr - rule.combine(b).psnr
}
