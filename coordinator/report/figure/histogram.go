package figure

import (
	"fmt"
	"math"

	"ddiff/coordinator/report/chart"
	"ddiff/coordinator/report/statistic"
)

// fineBin is the width of the bins in which a histogram counts, in dB. All drawn bins are multiples of it.
const fineBin = 0.25

// maxLevel is the largest magnitude of a histogram's value, in dB; larger values count there.
const maxLevel = 1000

// histogram counts values in dB. Its memory does not depend on their number.
type histogram struct {
	n    int
	bins map[int]int // by floor(value/fineBin)
}

func (h *histogram) add(v float64) {
	if !statistic.Defined(v) {
		return
	}
	if h.bins == nil {
		h.bins = make(map[int]int)
	}
	h.n++
	h.bins[int(math.Floor(min(max(v, -maxLevel), maxLevel)/fineBin))]++
}

// fineRange is the range of the bins of all histograms, empty if low > high.
func fineRange(of []*histogram) (low, high int) {
	low, high = math.MaxInt, math.MinInt
	for _, h := range of {
		for b := range h.bins {
			low, high = min(low, b), max(high, b)
		}
	}
	return low, high
}

// binWidth is the number of fine bins in a drawn bin: the smallest of 0.25, 0.5, 1, 2, 5, 10... dB with which the values fill
// at most 2·n^(1/3) bins (Rice's rule, n of the largest histogram), at least 8 and at most 40.
func binWidth(of []*histogram) int {
	most := 0
	for _, h := range of {
		most = max(most, h.n)
	}
	limit := min(max(8, int(math.Ceil(2*math.Cbrt(float64(most))))), 40)
	low, high := fineRange(of)
	widths := []int{1, 2, 4, 8, 20, 40, 80, 200, 400, 800, 2000, 4000, 8000}
	for _, w := range widths {
		if floorDivide(high, w)-floorDivide(low, w) < limit {
			return w
		}
	}
	return widths[len(widths)-1]
}

func floorDivide(a, b int) int { return int(math.Floor(float64(a) / float64(b))) }

// steps are the drawn bins, from the first to the last with a value: a point for the lower edge of each, and one of height
// zero at the upper end.
func (h *histogram) steps(width int) []chart.Point {
	coarse := make(map[int]int)
	for b, n := range h.bins {
		coarse[floorDivide(b, width)] += n
	}
	var out []chart.Point
	at := func(bin, n int) {
		out = append(out, chart.At(float64(bin*width)*fineBin, float64(n)))
	}
	low, high := fineRange([]*histogram{h})
	first, last := floorDivide(low, width), floorDivide(high, width)
	for b := first; b <= last; b++ {
		at(b, coarse[b])
	}
	at(last+1, 0)
	return out
}

// maxOverlaid bounds the histograms in one panel; more approaches have a panel each.
const maxOverlaid = 3

// distribution is the figure of the histograms of one quantity.
func (p *problemFigures) distribution(name, label string, of func(c *problemCell) *histogram) *statFigure {
	f := &statFigure{
		name:  figureHistogram + name + "_" + p.slug,
		Chart: chart.Chart{Title: p.label + ": distribution of " + label + " over measurements", Width: chart.OneColumn, ShareX: true, ShareY: true},
	}
	var all []*histogram
	var cells []*problemCell
	for _, c := range p.cells {
		if h := of(c); h.n > 0 {
			all, cells = append(all, h), append(cells, c)
		}
	}
	if len(all) == 0 {
		return f
	}
	bin := binWidth(all)
	var counts span
	missing := false
	for i, c := range cells {
		panel := chart.Panel{
			XName: name, X: chart.Axis{Label: label + " (dB)"},
			YName: "measurements", Y: chart.Axis{Label: "measurements", Zero: true, Integers: true},
		}
		if len(cells) > maxOverlaid {
			panel.Title = c.label
		}
		if i == 0 || len(cells) > maxOverlaid {
			f.Panels = append(f.Panels, panel)
		}
		last := &f.Panels[len(f.Panels)-1]
		line := chart.Series{Kind: chart.Steps, Points: all[i].steps(bin)}
		if len(cells) <= maxOverlaid {
			line.Label = c.label
		}
		last.Series = append(last.Series, line)
		counts.add(all[i].n)
		missing = missing || all[i].n < c.row.Measurements
	}
	if len(f.Panels) > 1 {
		f.Width, f.Columns = chart.TwoColumns, 3
	}
	f.notes = []string{
		fmt.Sprintf("Bins of %g dB, n = %s per approach.", float64(bin)*fineBin, counts.text("measurement")), runsNote(p.rule),
	}
	if missing {
		f.notes = append(f.notes, "Measurements without the figure are not counted.")
	}
	return f
}

func (p *problemFigures) histograms() []*statFigure {
	return []*statFigure{
		p.distribution("psnr", "PSNR", func(c *problemCell) *histogram { return &c.psnr }),
		p.distribution("gain", "gain", func(c *problemCell) *histogram { return &c.gain }),
	}
}
