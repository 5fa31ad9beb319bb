package chart

import (
	"fmt"
	"slices"
	"strings"
)

// Lengths in points: border is around the chart, gap between panels and between the columns of the legend, beside between an axis and its labels,
// sample that of a series in the legend.
const (
	border = 3.0
	gap    = 10.0
	beside = 4.5
	sample = 18.0
)

// frame is the place of a panel's points, with the ranges of its axes and their marks.
type frame struct {
	cell                     struct{ left, top, right, bottom float64 } // with labels
	left, top, right, bottom float64
	x, y                     extent
	xTicks, yTicks           []tick
}

func (f *frame) atX(v float64) float64 { return f.left + f.x.share(v)*(f.right-f.left) }
func (f *frame) atY(v float64) float64 { return f.bottom - f.y.share(v)*(f.bottom-f.top) }

// SVG returns the chart as an SVG document.
func (c *Chart) SVG() []byte {
	var body document
	samples := c.samples()
	width := float64(c.Width) * 72 / 25.4
	height := body.legend(samples, width-2*border) + border
	frames := c.frames(width, &height)
	for i := range frames {
		body.panel(&c.Panels[i], &frames[i], samples)
	}
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%.2fmm" height="%.2fmm" viewBox="0 0 %s %s" role="img" %s font-family="'Liberation Sans',Arial,Helvetica,sans-serif" font-size="%g">
<title>%s</title>
<desc>%s</desc>
%s
<rect class="paper" width="100%%" height="100%%" fill="#ffffff"/>
%s</svg>
`, float64(c.Width), height/72*25.4, number(width), number(height), ink, tickSize, escape(c.Title), escape(c.Description), style, body.String())
}

// samples are the first series of each label. Their places are the numbers of the colours, markers and dashes.
func (c *Chart) samples() []Series {
	var out []Series
	for _, p := range c.Panels {
		for _, s := range p.Series {
			if s.Label != "" && place(out, s) < 0 {
				out = append(out, s)
			}
		}
	}
	return out
}

func place(samples []Series, of Series) int {
	return slices.IndexFunc(samples, func(s Series) bool { return s.Label == of.Label })
}

// legend draws the samples in as many columns as have room, and returns its height.
func (d *document) legend(samples []Series, width float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	texts, each := make([]string, len(samples)), 0.0
	for i, s := range samples {
		texts[i] = shorten(s.Label, tickSize, width-sample-4)
		each = max(each, sample+4+widthOf(texts[i], tickSize)+gap)
	}
	columns := max(1, int((width+gap)/each))
	rows := (len(samples) + columns - 1) / columns
	for i, label := range texts {
		x, y := border+float64(i/rows)*each, border+float64(i%rows)*(tickSize+3)+tickSize
		d.open(colours(i))
		if samples[i].Kind != Dots {
			d.line(path('M', x, y-2.5)+path('h', sample), 1, dashed(i))
		}
		if samples[i].Kind != Curve {
			d.area(marker(i, x+sample/2, y-2.5, 2.2), "")
		}
		d.end()
		d.text(x+sample+4, y, "start", label, "")
	}
	return float64(rows)*(tickSize+3) + 5
}

// frames places the panels below a height, to which it adds theirs.
func (c *Chart) frames(width float64, height *float64) []frame {
	columns := min(max(1, c.Columns), len(c.Panels))
	each := (width - 2*border - float64(columns-1)*gap) / float64(columns)
	frames, shape := c.ranges()
	if columns == 1 && shape < 0.9 { // a chart with one panel per row is flatter
		shape = 0.62
	}
	high := max(100, each*shape)
	above, below := 0.0, beside+tickSize
	for _, p := range c.Panels {
		if p.Title != "" {
			above = labelSize + 5
		}
		if p.X.Label != "" {
			below = beside + tickSize + labelSize + 5
		}
	}
	margins := make([]float64, columns) // axes below each other begin at one place
	for i := range frames {
		f, p := &frames[i], &c.Panels[i]
		f.cell.top = *height + float64(i/columns)*(high+gap)
		f.cell.bottom = f.cell.top + high
		f.top, f.bottom = f.cell.top+above, f.cell.bottom-below
		f.yTicks = p.Y.ticks(f.y, (f.bottom-f.top)/15)
		f.yTicks = thin(f.yTicks, func(t tick) float64 { return f.atY(t.at) }, func(tick) float64 { return tickSize + 1 })
		margin := 0.0
		for _, t := range f.yTicks {
			margin = max(margin, widthOf(t.label, tickSize)+beside)
		}
		if p.Y.Label != "" {
			margin += labelSize + 4
		}
		margins[i%columns] = max(margins[i%columns], margin)
	}
	for i := range frames {
		f := &frames[i]
		f.cell.left = border + float64(i%columns)*(each+gap)
		f.cell.right = f.cell.left + each
		f.left, f.right = f.cell.left+margins[i%columns], f.cell.right-6
		f.xTicks = c.Panels[i].X.ticks(f.x, (f.right-f.left)/28)
		f.xTicks = thin(f.xTicks, func(t tick) float64 { return f.atX(t.at) }, func(t tick) float64 { return widthOf(t.label, tickSize) + 3 })
	}
	*height += float64((len(frames)-1)/columns)*(high+gap) + high + border
	return frames
}

// ranges are frames with the ranges of their axes, and the height of a panel over its width.
func (c *Chart) ranges() (frames []frame, shape float64) {
	frames, shape = make([]frame, len(c.Panels)), 0.72
	all := none
	for i := range c.Panels {
		f, p := &frames[i], &c.Panels[i]
		x, y := p.values()
		f.x, f.y = p.X.extent(x), p.Y.extent(y)
		if p.Diagonal {
			f.x = f.x.join(f.y)
			f.y, shape = f.x, 0.97
		}
		all = all.join(f.y)
	}
	for i := range frames {
		if c.ShareY && frames[i].y != none {
			frames[i].y = all
		}
	}
	return frames, shape
}

// panel draws axes, reference lines and series.
func (d *document) panel(p *Panel, f *frame, samples []Series) {
	title, at := fit(p.Title, 1.08*labelSize, (f.left+f.right)/2, f.cell.left, f.cell.right)
	d.text(at, f.top-5, "middle", title, fmt.Sprintf(` font-size="%g" font-weight="bold"`, labelSize))
	d.axes(p, f)
	d.open(grey)
	reference := ""
	if p.Diagonal {
		reference = path('M', f.left, f.bottom) + path('L', f.right, f.top)
	}
	for _, level := range p.Levels {
		reference += path('M', f.left, f.atY(level)) + path('H', f.right)
	}
	d.line(reference, 0.7, ` stroke-dasharray="2 2"`)
	d.end()
	for i := range p.Series {
		s := &p.Series[i]
		shift := 0.0
		if p.Dodge && len(p.Series) > 1 {
			step := min(3, 12/float64(len(p.Series)-1))
			shift = step * (float64(i) - float64(len(p.Series)-1)/2)
		}
		d.series(s, f, max(0, place(samples, *s)), shift)
	}
}

// axes draws the axes with their marks and labels, and faint lines from the labels.
func (d *document) axes(p *Panel, f *frame) {
	var marks, lines string
	for _, t := range f.xTicks {
		x := f.atX(t.at)
		marks += path('M', x, f.bottom) + path('v', 2.5)
		if t.label != "" {
			lines += path('M', x, f.bottom) + path('V', f.top)
			d.text(x, f.bottom+beside+tickSize-1, "middle", t.label, "")
		}
	}
	for _, t := range f.yTicks {
		y := f.atY(t.at)
		marks += path('M', f.left, y) + path('h', -2.5)
		if t.label != "" {
			lines += path('M', f.left, y) + path('H', f.right)
			d.text(f.left-beside, y+0.35*tickSize, "end", t.label, "")
		}
	}
	d.line(lines, 0.4, ` stroke-opacity="0.15"`)
	d.line(path('M', f.left, f.top)+path('V', f.bottom)+path('H', f.right)+marks, 0.5, "")
	size := fmt.Sprintf(` font-size="%g"`, labelSize)
	label, at := fit(p.X.Label, labelSize, (f.left+f.right)/2, f.cell.left+labelSize+4, f.cell.right)
	d.text(at, f.bottom+beside+tickSize+labelSize+1, "middle", label, size)
	label, at = fit(p.Y.Label, labelSize, (f.top+f.bottom)/2, f.top, f.cell.bottom)
	x := f.cell.left + labelSize
	d.text(x, at, "middle", label, size+fmt.Sprintf(` transform="rotate(-90 %s %s)"`, number(x), number(at)))
}

// placed is a point on the paper.
type placed struct{ x, y, low, high float64 }

// runs are the parts of a series between points that are not drawn.
func (s *Series) runs(f *frame, shift float64) [][]placed {
	var out [][]placed
	open := false
	for _, p := range s.Points {
		if !p.drawn() {
			open = false
			continue
		}
		if !open {
			out, open = append(out, nil), true
		}
		if !p.hasInterval() {
			p.Low, p.High = p.Y, p.Y
		}
		last := &out[len(out)-1]
		*last = append(*last, placed{f.atX(p.X) + shift, f.atY(p.Y), f.atY(p.Low), f.atY(p.High)})
	}
	return out
}

// series draws a series in the look of a number, moved sideways.
func (d *document) series(s *Series, f *frame, look int, shift float64) {
	d.open(colours(look))
	defer d.end()
	var bands, line, bars, marks strings.Builder
	for _, run := range s.runs(f, shift) {
		command, back := byte('M'), ""
		for _, p := range run {
			line.WriteString(path(command, p.x, p.y))
			bands.WriteString(path(command, p.x, p.high))
			back = path('L', p.x, p.low) + back
			command = 'L'
			if p.high != p.low {
				bars.WriteString(path('M', p.x, p.low) + path('V', p.high) + path('M', p.x-2, p.low) + path('h', 4) + path('M', p.x-2, p.high) + path('h', 4))
			}
			switch {
			case s.Kind == Markers:
				marks.WriteString(marker(look, p.x, p.y, 2.2))
			case s.Kind == Dots && len(s.Points) > 50: // each has an element, so that many at one place are darker
				d.area(marker(look, p.x, p.y, 1.2), ` fill-opacity="0.56"`)
			case s.Kind == Dots:
				marks.WriteString(marker(look, p.x, p.y, 1.7))
			}
		}
		bands.WriteString(back + "z")
	}
	switch s.Kind {
	case Curve:
		d.area(bands.String(), ` fill-opacity="0.2"`)
		d.line(line.String(), 1, dashed(look))
	case Markers:
		d.line(line.String(), 1, dashed(look))
		d.line(bars.String(), 0.7, "")
	}
	d.area(marks.String(), "")
}
