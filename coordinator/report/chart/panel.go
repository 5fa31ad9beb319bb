package chart

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawing is a panel with its ranges and styles. It implements [plot.Plotter].
type drawing struct {
	*Panel
	letters letters
	x, y    extent
	styles  []style // of the series
}

func newDrawing(p *Panel, l letters, legend *legend) *drawing {
	d := &drawing{Panel: p, letters: l}
	var xs, ys []float64
	for i := range p.Series {
		s := &p.Series[i]
		d.styles = append(d.styles, legend.style(s.Label))
		for _, v := range s.Points {
			if !v.drawn() {
				continue
			}
			xs, ys = append(xs, v.X), append(ys, v.Y)
			if v.hasInterval() && (!p.Y.Log || v.Low > 0) {
				ys = append(ys, v.Low, v.High)
			} else if v.hasInterval() {
				ys = append(ys, v.High) // a logarithmic axis ends above an interval that contains zero
			}
		}
	}
	if len(ys) > 0 {
		for _, level := range p.Levels {
			if finite(level) {
				ys = append(ys, level)
			}
		}
	}
	d.x, d.y = newExtent(p.X, xs), newExtent(p.Y, ys)
	if p.Dodge && !d.x.log {
		pad := 0.04 * (d.x.high - d.x.low)
		d.x.low, d.x.high = d.x.low-pad, d.x.high+pad
	}
	if p.Diagonal {
		d.x = d.x.join(d.y)
		d.y = d.x
	}
	return d
}

// share gives the panels with data the same ranges.
func share(panels []*drawing, x, y bool) {
	var first *drawing
	for _, d := range panels {
		switch {
		case d.Empty():
		case first == nil:
			both := *d
			first = &both
		default:
			first.x, first.y = first.x.join(d.x), first.y.join(d.y)
		}
	}
	if first == nil {
		return
	}
	for _, d := range panels {
		if x && !d.Empty() {
			d.x = first.x
		}
		if y && !d.Empty() {
			d.y = first.y
		}
	}
}

// Empty reports whether the panel has no point to draw.
func (p *Panel) Empty() bool {
	for _, s := range p.Series {
		for _, v := range s.Points {
			if v.drawn() {
				return false
			}
		}
	}
	return true
}

// plot returns the panel with axes, labels and ticks.
func (d *drawing) plot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.TextHandler = d.letters.handler
	p.Legend.TextStyle = d.letters.style(tickSize, false)
	d.axis(&p.X, &d.X, d.x)
	d.axis(&p.Y, &d.Y, d.y)
	p.Add(d)
	return p
}

// axis prepares one axis.
func (d *drawing) axis(a *plot.Axis, of *Axis, e extent) {
	a.Min, a.Max = 0, 1 // the places in the extent
	a.Padding = 0
	a.Color, a.Width = ink(), axisWidth
	a.Label.Text, a.Label.Padding = clean(of.Label), 2
	label := a.Label.TextStyle
	a.Label.TextStyle = d.letters.style(labelSize, false)
	a.Label.TextStyle.XAlign, a.Label.TextStyle.YAlign = label.XAlign, label.YAlign
	tick := a.Tick.Label
	a.Tick.Label = d.letters.style(tickSize, false)
	a.Tick.Label.XAlign, a.Tick.Label.YAlign = tick.XAlign, tick.YAlign
	a.Tick.Length = tickLength
	a.Tick.LineStyle = draw.LineStyle{Color: ink(), Width: axisWidth}
	a.Tick.Marker = plot.TickerFunc(func(float64, float64) []plot.Tick {
		if d.Empty() {
			return nil
		}
		ticks := e.ticks(of)
		for i := range ticks {
			ticks[i].Value = e.place(ticks[i].Value)
		}
		return ticks
	})
}

// Plot implements [plot.Plotter].
func (d *drawing) Plot(c draw.Canvas, _ *plot.Plot) {
	if d.Title != "" {
		s := d.letters.style(labelSize, true)
		s.XAlign, s.YAlign = draw.XCenter, draw.YBottom
		c.FillText(s, vg.Point{X: c.Center().X, Y: c.Max.Y + 2}, d.Title)
	}
	if d.Empty() {
		s := d.letters.style(labelSize, false)
		s.Color, s.XAlign, s.YAlign = grey(), draw.XCenter, draw.YCenter
		c.FillText(s, c.Center(), "no data")
		return
	}
	d.references(&c)
	for i := range d.Series {
		d.areas(&c, &d.Series[i], d.styles[i])
	}
	for i := range d.Series {
		s, look := &d.Series[i], d.styles[i]
		switch s.Kind {
		case Curve:
			c.StrokeLines(look.line(), d.lines(&c, s)...)
		case Markers:
			shifted := d.dodge(c, i)
			c.StrokeLines(look.line(), d.lines(&shifted, s)...)
			d.intervals(&shifted, s, look)
			d.glyphs(&shifted, s, look, markerSize)
		case Dots:
			d.glyphs(&c, s, look, dotSize)
		case Steps:
			c.StrokeLines(look.line(), d.stairs(&c, s))
		}
	}
}

// dodge shifts the canvas of a series sideways, so that the bars of several series at one x are seen.
func (d *drawing) dodge(c draw.Canvas, series int) draw.Canvas {
	const most = 12
	n := len(d.Series)
	if !d.Dodge || n < 2 {
		return c
	}
	step := min(3, vg.Length(most)/vg.Length(n-1))
	shift := step * (vg.Length(series) - vg.Length(n-1)/2)
	return draw.Crop(c, shift, shift, 0, 0)
}

// references draws the diagonal and the levels.
func (d *drawing) references(c *draw.Canvas) {
	sty := draw.LineStyle{Color: grey(), Width: axisWidth, Dashes: []vg.Length{2, 2}}
	if d.Diagonal {
		c.StrokeLine2(sty, c.Min.X, c.Min.Y, c.Max.X, c.Max.Y)
	}
	for _, level := range d.Levels {
		if finite(level) && level >= d.y.low && level <= d.y.high {
			y := d.at(c, 0, level).Y
			c.StrokeLine2(sty, c.Min.X, y, c.Max.X, y)
		}
	}
}

// at is the place of a point on the canvas. Values outside of the ranges are placed at the border.
func (d *drawing) at(c *draw.Canvas, x, y float64) vg.Point {
	return vg.Point{X: c.X(d.x.place(x)), Y: c.Y(d.y.place(y))}
}

// place is the position of a value in the range, from 0 to 1.
func (e extent) place(v float64) float64 {
	v = e.clamp(v)
	if e.log {
		return math.Log(v/e.low) / math.Log(e.high/e.low)
	}
	return (v - e.low) / (e.high - e.low)
}

// runs are the parts of a series between points that are not drawn.
func (s *Series) runs() [][]Point {
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
		out[len(out)-1] = append(out[len(out)-1], p)
	}
	return out
}

func (d *drawing) lines(c *draw.Canvas, s *Series) [][]vg.Point {
	var out [][]vg.Point
	for _, run := range s.runs() {
		line := make([]vg.Point, len(run))
		for i, p := range run {
			line[i] = d.at(c, p.X, p.Y)
		}
		if len(line) > 1 {
			out = append(out, line)
		}
	}
	return out
}

// stairs is the outline of a histogram.
func (d *drawing) stairs(c *draw.Canvas, s *Series) []vg.Point {
	var out []vg.Point
	height := 0.0
	for _, run := range s.runs() {
		for _, p := range run {
			out = append(out, d.at(c, p.X, height), d.at(c, p.X, p.Y))
			height = p.Y
		}
	}
	return out
}

// areas fills bands and histograms.
func (d *drawing) areas(c *draw.Canvas, s *Series, look style) {
	switch s.Kind {
	case Steps:
		if outline := d.stairs(c, s); len(outline) > 2 {
			c.FillPolygon(look.translucent(0x24), outline)
		}
	case Curve:
		for _, run := range s.runs() {
			var upper, lower []vg.Point
			flush := func() {
				for i := len(lower) - 1; i >= 0; i-- {
					upper = append(upper, lower[i])
				}
				if len(upper) > 2 {
					c.FillPolygon(look.translucent(0x38), upper)
				}
				upper, lower = nil, nil
			}
			for _, p := range run {
				if !p.hasInterval() {
					flush()
					continue
				}
				upper, lower = append(upper, d.at(c, p.X, p.High)), append(lower, d.at(c, p.X, p.Low))
			}
			flush()
		}
	}
}

// intervals draws the bars of the points.
func (d *drawing) intervals(c *draw.Canvas, s *Series, look style) {
	const half = 2 // of the cap
	sty := draw.LineStyle{Color: look.color, Width: barWidth}
	for _, p := range s.Points {
		if !p.drawn() || !p.hasInterval() {
			continue
		}
		low, high := d.at(c, p.X, p.Low), d.at(c, p.X, p.High)
		c.StrokeLine2(sty, low.X, low.Y, high.X, high.Y)
		c.StrokeLine2(sty, low.X-half, low.Y, low.X+half, low.Y)
		c.StrokeLine2(sty, high.X-half, high.Y, high.X+half, high.Y)
	}
}

func (d *drawing) glyphs(c *draw.Canvas, s *Series, look style, radius vg.Length) {
	sty := draw.GlyphStyle{Color: look.color, Radius: radius, Shape: look.glyph}
	switch {
	case s.Kind == Dots && len(s.Points) <= 50:
		sty.Radius *= 1.4
	case s.Kind == Dots:
		sty.Color = look.translucent(0x90)
	}
	for _, p := range s.Points {
		if p.drawn() {
			c.DrawGlyphNoClip(sty, d.at(c, p.X, p.Y))
		}
	}
}
