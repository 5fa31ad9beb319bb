package chart

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// MaxSeries is the number of series that differ in colour, marker or dashes. Further series repeat the first.
const MaxSeries = 14

var (
	paper = color.White
	ink   = color.NRGBA{0x22, 0x22, 0x22, 0xff}
	grey  = color.NRGBA{0x88, 0x88, 0x88, 0xff}
	// palette has the colours of Okabe and Ito, without yellow, which is faint on white.
	palette = []color.NRGBA{
		{0x00, 0x72, 0xb2, 0xff}, // blue
		{0xd5, 0x5e, 0x00, 0xff}, // vermillion
		{0x00, 0x9e, 0x73, 0xff}, // bluish green
		{0xcc, 0x79, 0xa7, 0xff}, // reddish purple
		{0xe6, 0x9f, 0x00, 0xff}, // orange
		{0x56, 0xb4, 0xe9, 0xff}, // sky blue
		{0x00, 0x00, 0x00, 0xff}, // black
	}
)

// style is the appearance of one series.
type style struct {
	line  draw.LineStyle
	glyph draw.GlyphStyle
}

// styleOf returns the style of the series with this number.
func styleOf(n int) style {
	c := palette[n%len(palette)]
	return style{
		line:  draw.LineStyle{Color: c, Width: 1, Dashes: plotutil.Dashes(n)},
		glyph: draw.GlyphStyle{Color: c, Radius: 2.2, Shape: plotutil.Shape(n + 5)}, // the filled ones first
	}
}

// translucent is the colour of areas and dots.
func (s style) translucent(alpha uint8) color.Color {
	c := s.line.Color.(color.NRGBA)
	c.A = alpha
	return c
}

// plot returns the panel with axes, reference lines and series. The samples of the legend decide on the styles.
func (p *Panel) plot(x, y extent, samples []Series) *plot.Plot {
	out := plot.New()
	out.BackgroundColor = nil
	out.Title.Text, out.Title.TextStyle = p.Title, textStyle(labelSize, true)
	out.Title.TextStyle.XAlign, out.Title.TextStyle.YAlign = draw.XCenter, draw.YTop
	out.Legend.TextStyle = textStyle(tickSize, false)
	p.X.set(&out.X, x)
	p.Y.set(&out.Y, y)
	reference := draw.LineStyle{Color: grey, Width: axisWidth, Dashes: []vg.Length{2, 2}}
	if p.Diagonal {
		out.Add(&plotter.Function{F: func(x float64) float64 { return x }, Samples: 2, LineStyle: reference})
	}
	for _, level := range p.Levels {
		out.Add(&plotter.Function{F: func(float64) float64 { return y.clamp(level) }, Samples: 2, LineStyle: reference})
	}
	for i := range p.Series {
		s := &p.Series[i]
		shift := vg.Length(0)
		if p.Dodge && len(p.Series) > 1 {
			step := min(3, 12/vg.Length(len(p.Series)-1))
			shift = step * (vg.Length(i) - vg.Length(len(p.Series)-1)/2)
		}
		n := slices.IndexFunc(samples, func(sample Series) bool { return sample.Label == s.Label })
		for _, part := range s.plotters(styleOf(max(0, n)), x, y) {
			out.Add(shifted{part, shift})
		}
	}
	return out
}

// shifted draws a part of a series beside its place, so that the bars of several series at one x are seen.
type shifted struct {
	plot.Plotter
	by vg.Length
}

// Plot implements [plot.Plotter].
func (s shifted) Plot(c draw.Canvas, p *plot.Plot) { s.Plotter.Plot(draw.Crop(c, s.by, s.by, 0, 0), p) }

// runs are the parts of a series between points that are not drawn, moved into the ranges.
func (s *Series) runs(x, y extent) [][]Point {
	var out [][]Point
	open := false
	for _, p := range s.Points {
		if !p.drawn() {
			open = false
			continue
		}
		if !open {
			out = append(out, nil)
			open = true
		}
		if !p.hasInterval() {
			p.Low, p.High = p.Y, p.Y
		}
		p.X, p.Y, p.Low, p.High = x.clamp(p.X), y.clamp(p.Y), y.clamp(p.Low), y.clamp(p.High)
		out[len(out)-1] = append(out[len(out)-1], p)
	}
	return out
}

// plotters are the parts of a series.
func (s *Series) plotters(look style, x, y extent) []plot.Plotter {
	var areas, lines []plot.Plotter
	dots := &plotter.Scatter{GlyphStyle: look.glyph}
	bars := &plotter.YErrorBars{LineStyle: draw.LineStyle{Color: look.line.Color, Width: 0.7}, CapWidth: 4}
	for _, run := range s.runs(x, y) {
		line := &plotter.Line{LineStyle: look.line}
		var upper, lower plotter.XYs
		for _, p := range run {
			line.XYs = append(line.XYs, plotter.XY{X: p.X, Y: p.Y})
			upper, lower = append(upper, plotter.XY{X: p.X, Y: p.High}), append(lower, plotter.XY{X: p.X, Y: p.Low})
			if p.High > p.Low {
				bars.XYs = append(bars.XYs, plotter.XY{X: p.X, Y: p.Y})
				bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{p.Y - p.Low, p.High - p.Y})
			}
		}
		dots.XYs = append(dots.XYs, line.XYs...)
		slices.Reverse(lower)
		areas = append(areas, &plotter.Polygon{XYs: []plotter.XYs{append(upper, lower...)}, Color: look.translucent(0x38)})
		lines = append(lines, line)
	}
	switch s.Kind {
	case Curve:
		return append(areas, lines...)
	case Markers:
		return append(lines, bars, dots)
	case Dots:
		dots.Radius = 1.7
		if len(s.Points) > 50 {
			dots.Radius, dots.Color = 1.2, look.translucent(0x90)
		}
		return []plot.Plotter{dots}
	default:
		return lines
	}
}

// thumbnails are what the legend shows of a series.
func (s *Series) thumbnails(look style) []plot.Thumbnailer {
	line, dot := &plotter.Line{LineStyle: look.line}, &plotter.Scatter{GlyphStyle: look.glyph}
	switch s.Kind {
	case Markers:
		return []plot.Thumbnailer{line, dot}
	case Dots:
		return []plot.Thumbnailer{dot}
	default:
		return []plot.Thumbnailer{line}
	}
}

// Empty reports whether the panel has no point to draw.
func (p *Panel) Empty() bool {
	x, _ := p.values()
	return len(x) == 0
}

// values are those of the drawn points, with their intervals and the levels.
func (p *Panel) values() (x, y []float64) {
	for _, s := range p.Series {
		for _, v := range s.Points {
			if !v.drawn() {
				continue
			}
			x, y = append(x, v.X), append(y, v.Y)
			if v.hasInterval() {
				y = append(y, v.Low, v.High)
			}
		}
	}
	if len(x) > 0 {
		y = append(y, p.Levels...)
	}
	return x, y
}

// finite reports whether all values can be drawn.
func finite(values ...float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return !(math.Abs(v) <= largest) }) // also NaN
}
