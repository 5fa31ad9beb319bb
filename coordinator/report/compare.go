package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
)

// Comparison is the mean difference in PSNR between two methods on one task, paired by image.
type Comparison struct {
	Task string `json:"task"`
	A    string `json:"a"`
	B    string `json:"b"`
	// Difference is the mean of PSNR(A) - PSNR(B) in dB over the same measurements, with the 95 % interval of a
	// paired t test.
	Difference Estimate `json:"difference,omitzero"`
	// LeftOut counts the measurements that lack a PSNR from either method.
	LeftOut int `json:"left_out,omitempty"`
	// Refused is the reason why the methods cannot be compared; Difference is zero then.
	Refused string `json:"refused,omitempty"`
}

// comparer pairs every two methods of each task. It takes measurements in order and holds 28 bytes for each
// measurement and method of one task at a time.
type comparer struct {
	methods []*pairing
	done    []Comparison
}

// pairing is the PSNR of each measurement that one method was to restore, NaN where it has none.
type pairing struct {
	task, method string
	targets      [][16]byte
	psnr         []float64
	byTarget     []int32 // indices of targets, sorted by target
}

func (c *comparer) add(m *measurement) {
	if len(c.methods) > 0 && c.methods[0].task != m.Task {
		c.compare()
	}
	last := len(c.methods) - 1
	if last < 0 || c.methods[last].method != m.Method {
		c.methods = append(c.methods, &pairing{task: m.Task, method: m.Method})
		last++
	}
	psnr := math.NaN()
	if len(m.runs) > 0 {
		psnr = m.combined.PSNR
	}
	p := c.methods[last]
	p.byTarget = append(p.byTarget, int32(len(p.targets)))
	p.targets = append(p.targets, [16]byte([]byte(m.Target)))
	p.psnr = append(p.psnr, psnr)
}

func (c *comparer) finish() []Comparison {
	c.compare()
	return c.done
}

// compare ends a task.
func (c *comparer) compare() {
	for _, p := range c.methods {
		slices.SortFunc(p.byTarget, func(i, j int32) int { return bytes.Compare(p.targets[i][:], p.targets[j][:]) })
	}
	for i, a := range c.methods {
		for _, b := range c.methods[i+1:] {
			c.done = append(c.done, comparePairings(a, b))
		}
	}
	c.methods = nil
}

// find returns the index of the target, or -1.
func (p *pairing) find(target [16]byte) int32 {
	at, ok := slices.BinarySearchFunc(p.byTarget, target, func(i int32, t [16]byte) int {
		return bytes.Compare(p.targets[i][:], t[:])
	})
	if !ok {
		return -1
	}
	return p.byTarget[at]
}

// repeats reports whether a target occurs more than once.
func (p *pairing) repeats() bool {
	for k := 1; k < len(p.byTarget); k++ {
		if p.targets[p.byTarget[k]] == p.targets[p.byTarget[k-1]] {
			return true
		}
	}
	return false
}

// comparePairings compares methods only if the campaign gave them the same measurements of the same images to restore.
// It counts given and not finished measurements, so that a method does not gain by failing.
func comparePairings(a, b *pairing) Comparison {
	c := Comparison{Task: a.task, A: a.method, B: b.method}
	for _, p := range []*pairing{a, b} {
		if p.repeats() {
			c.Refused = fmt.Sprintf("%s restored a measurement with several settings", p.method)
			return c
		}
	}
	differences := make([]float64, 0, len(a.targets))
	for i, target := range a.targets {
		if j := b.find(target); j >= 0 {
			differences = append(differences, a.psnr[i]-b.psnr[j])
		}
	}
	if shared := len(differences); shared < len(a.targets) || shared < len(b.targets) {
		c.Refused = fmt.Sprintf("different measurements: %d of %s, %d of %s, %d in common",
			len(a.targets), c.A, len(b.targets), c.B, shared)
		return c
	}
	c.Difference = estimate(differences)
	c.LeftOut = len(differences) - c.Difference.N
	if c.Difference.N == 0 {
		c.Refused = "no measurement has a PSNR from both methods"
	}
	return c
}
