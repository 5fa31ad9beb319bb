package figure

import (
	"fmt"

	"ddiff/coordinator/report/chart"
	"ddiff/coordinator/report/statistic"
	"ddiff/coordinator/report/table"
)

// pairs is the figure of PSNR against PSNR, a panel for each pair of approaches.
func (p *problemFigures) pairs() *statFigure {
	f := &statFigure{name: figurePairs + p.slug, title: p.label + ": PSNR of pairs of approaches on equal measurements", width: chart.OneColumn}
	candidates := p.candidates()
	var points span
	sampledOnly := false
	for _, pair := range candidates {
		a, b := pair[0], pair[1]
		if len(f.panels) == maxPanels {
			break
		}
		series := statSeries{kind: chart.Dots}
		for _, v := range a.sample.chosen {
			if other := b.sample.find(v.key); other != nil && statistic.Defined(v.psnr) && statistic.Defined(other.psnr) {
				series.points = append(series.points, statPoint{Point: chart.At(v.psnr, other.psnr), item: v.item, image: v.name})
			}
		}
		if len(series.points) == 0 {
			continue
		}
		points.add(len(series.points))
		sampledOnly = sampledOnly || a.sample.isPartial() || b.sample.isPartial()
		f.panels = append(f.panels, statPanel{
			x: "psnr " + table.CSVText(a.label), y: "psnr " + table.CSVText(b.label), series: []statSeries{series},
			Panel: chart.Panel{X: chart.Axis{Label: a.label + " (dB)"}, Y: chart.Axis{Label: b.label + " (dB)"}, Diagonal: true},
		})
	}
	if len(f.panels) == 1 {
		p := &f.panels[0]
		p.X.Label, p.Y.Label = "PSNR of "+p.X.Label, "PSNR of "+p.Y.Label
	} else {
		f.width, f.columns = chart.TwoColumns, min(3, len(f.panels))
	}
	f.notes = append(f.notes, "One point per measurement, n = "+points.text("measurement")+"; above the diagonal the vertical approach is better.",
		runsNote(p.rule))
	if sampledOnly {
		f.notes = append(f.notes, sampleNote(maxDots))
	}
	if more := len(candidates) - len(f.panels); more > 0 {
		f.notes = append(f.notes, "Not drawn: "+plural(more, "further pair")+".")
	}
	return f
}

// candidates are the pairs of approaches, those of two methods with equal varying settings first.
func (p *problemFigures) candidates() [][2]*problemCell {
	var like, other [][2]*problemCell
	for i, a := range p.cells {
		for _, b := range p.cells[i+1:] {
			if a.row.Method != b.row.Method && a.row.VaryingSettings == b.row.VaryingSettings {
				like = append(like, [2]*problemCell{a, b})
			} else {
				other = append(other, [2]*problemCell{a, b})
			}
		}
	}
	return append(like, other...)
}

// residuals is the figure of the residual ratio against the PSNR.
func (p *problemFigures) residuals() *statFigure {
	f := &statFigure{name: figureResidual + p.slug, title: p.label + ": mean square residual over the variance of the noise against PSNR", width: chart.OneColumn}
	panel := statPanel{x: "psnr", y: "residual_ratio", Panel: chart.Panel{
		X: chart.Axis{Label: "PSNR (dB)"}, Y: chart.Axis{Label: "mean square residual / noise variance"}, Levels: []float64{1},
	}}
	var ratios []float64
	var points span
	sampledOnly := false
	for _, c := range p.cells {
		s := statSeries{label: c.label, kind: chart.Dots}
		for _, v := range c.sample.chosen {
			if statistic.Defined(v.psnr) && statistic.Defined(v.ratio) {
				s.points = append(s.points, statPoint{Point: chart.At(v.psnr, v.ratio), item: v.item, image: v.name})
				ratios = append(ratios, v.ratio)
			}
		}
		points.add(len(s.points))
		sampledOnly = sampledOnly || c.sample.isPartial()
		panel.series = append(panel.series, s)
	}
	panel.Y.Log = logarithmic(ratios, 10)
	f.panels = []statPanel{panel}
	f.notes = append(f.notes, "One point per measurement, n = "+points.text("measurement")+
		" per approach; the line is the ratio 1 that noise alone gives.", runsNote(p.rule))
	if sampledOnly {
		f.notes = append(f.notes, sampleNote(maxDots))
	}
	return f
}

// sampleNote states that a figure shows a sample.
func sampleNote(n int) string {
	return fmt.Sprintf("A random sample of %d measurements of each approach, the same where they restored the same.", n)
}
