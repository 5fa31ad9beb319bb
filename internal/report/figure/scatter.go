package figure

import (
	"fmt"

	"ddiff/internal/report/chart"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/statistic"
	"ddiff/internal/restore/metric"
)

// pairs is the figure of PSNR against PSNR, a panel for each pair of approaches.
func (p *problemFigures) pairs() *statFigure {
	f := &statFigure{name: figurePairs + p.slug, Chart: chart.Chart{Title: p.label + ": PSNR of pairs of approaches on equal measurements"}}
	candidates := p.candidates()
	var points span
	sampledOnly := false
	for _, pair := range candidates {
		a, b := pair[0], pair[1]
		if len(f.Panels) == maxPanels {
			break
		}
		series := chart.Series{Kind: chart.Dots}
		for _, m := range entry.Pairs(a.dots(), b.dots()) {
			x, y := m[0].Of(metric.NamePSNR), m[1].Of(metric.NamePSNR)
			if statistic.Defined(x) && statistic.Defined(y) {
				series.Points = append(series.Points, dotOf(m[0], x, y))
			}
		}
		if len(series.Points) == 0 {
			continue
		}
		points.add(len(series.Points))
		sampledOnly = sampledOnly || max(len(a.measurements), len(b.measurements)) > maxDots
		f.Panels = append(f.Panels, chart.Panel{
			XName: "psnr " + a.label, X: chart.Axis{Label: a.label + " (dB)"},
			YName: "psnr " + b.label, Y: chart.Axis{Label: b.label + " (dB)"},
			Series: []chart.Series{series}, Diagonal: true,
		})
	}
	if len(f.Panels) == 1 {
		p := &f.Panels[0]
		p.X.Label, p.Y.Label = "PSNR of "+p.X.Label, "PSNR of "+p.Y.Label
	}
	f.notes = append(f.notes, "One point per measurement, n = "+points.text("measurement")+"; above the diagonal the vertical approach is better.",
		runsNote(p.rule))
	if sampledOnly {
		f.notes = append(f.notes, sampleNote(maxDots))
	}
	f.omit(len(candidates)-len(f.Panels), "further pair")
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
	f := &statFigure{name: figureResidual + p.slug, Chart: chart.Chart{
		Title: p.label + ": mean square residual over the variance of the noise against PSNR",
	}}
	panel := chart.Panel{
		XName: "psnr", X: chart.Axis{Label: "PSNR (dB)"},
		YName: "residual_ratio", Y: chart.Axis{Label: "residual / noise variance"}, Levels: []float64{1},
	}
	var ratios []float64
	var points span
	sampledOnly := false
	for _, c := range p.cells {
		s := chart.Series{Label: c.label, Kind: chart.Dots}
		for _, m := range c.dots() {
			psnr, ratio := m.Of(metric.NamePSNR), m.Of(entry.Ratio)
			if statistic.Defined(psnr) && statistic.Defined(ratio) {
				s.Points = append(s.Points, dotOf(m, psnr, ratio))
				ratios = append(ratios, ratio)
			}
		}
		points.add(len(s.Points))
		sampledOnly = sampledOnly || len(c.measurements) > maxDots
		panel.Series = append(panel.Series, s)
	}
	panel.Y.Log = logarithmic(ratios, 10)
	f.Panels = []chart.Panel{panel}
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
