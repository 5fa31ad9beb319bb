package figure

import (
	"fmt"
	"math"
	"slices"

	"ddiff/coordinator/report/chart"
	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/statistic"
)

// maxLevel is the largest magnitude of a histogram's value, in dB; larger values count there.
const maxLevel = 1000

// histogram are defined values in dB.
type histogram []float64

func (h *histogram) add(v float64) {
	if statistic.Defined(v) {
		*h = append(*h, min(max(v, -maxLevel), maxLevel))
	}
}

// binOf is the number of the bin of a value.
func binOf(v, width float64) int { return int(math.Floor(v / width)) }

// binWidth is the width of the bins in dB: the smallest of 0.25, 0.5, 1, 2, 5, 10... with which the values fill at most 2·n^(1/3) bins
// (Rice's rule, n of the largest histogram), at least 8 and at most 40.
func binWidth(of []histogram) float64 {
	most, low, high := 0, math.Inf(1), math.Inf(-1)
	for _, h := range of {
		most, low, high = max(most, len(h)), min(low, slices.Min(h)), max(high, slices.Max(h))
	}
	limit := min(max(8, int(math.Ceil(2*math.Cbrt(float64(most))))), 40)
	widths := []float64{0.25, 0.5, 1, 2, 5, 10, 20, 50, 100}
	for _, w := range widths {
		if binOf(high, w)-binOf(low, w) < limit {
			return w
		}
	}
	return widths[len(widths)-1]
}

// steps are the drawn bins, from the first to the last with a value: a point for the lower edge of each, and one of height
// zero at the upper end.
func (h histogram) steps(width float64) []chart.Point {
	counts := make(map[int]int)
	for _, v := range h {
		counts[binOf(v, width)]++
	}
	var out []chart.Point
	for b := binOf(slices.Min(h), width); b <= binOf(slices.Max(h), width)+1; b++ {
		out = append(out, chart.At(float64(b)*width, float64(counts[b])))
	}
	return out
}

// maxOverlaid bounds the histograms in one panel; more approaches have a panel each.
const maxOverlaid = 3

// distribution is the figure of the histograms of one quantity.
func (p *problemFigures) distribution(name, label string, of func(s *selection.Scores) float64) *statFigure {
	f := &statFigure{
		name:  figureHistogram + name + "_" + p.slug,
		Chart: chart.Chart{Title: p.label + ": distribution of " + label + " over measurements", ShareX: true, ShareY: true},
	}
	var all []histogram
	var cells []*problemCell
	for _, c := range p.cells {
		var h histogram
		for _, m := range c.measurements {
			h.add(of(&m.Combined))
		}
		if len(h) > 0 {
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
		counts.add(len(all[i]))
		missing = missing || len(all[i]) < c.row.Measurements
	}
	f.notes = []string{
		fmt.Sprintf("Bins of %g dB, n = %s per approach.", bin, counts.text("measurement")), runsNote(p.rule),
	}
	if missing {
		f.notes = append(f.notes, "Measurements without the figure are not counted.")
	}
	return f
}

func (p *problemFigures) histograms() []*statFigure {
	return []*statFigure{
		p.distribution("psnr", "PSNR", (*selection.Scores).PSNR),
		p.distribution("gain", "gain", (*selection.Scores).Gain),
	}
}
