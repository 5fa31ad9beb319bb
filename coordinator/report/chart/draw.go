package chart

import (
	"slices"
	"strings"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"ddiff/coordinator/report/sweep"
)

// Sizes of text, lines and space, in points.
const (
	labelSize = vg.Length(8)
	tickSize  = vg.Length(7)
	axisWidth = vg.Length(0.5)
	// border is around the chart, gap between panels and between the entries of the legend.
	border = vg.Length(3)
	gap    = vg.Length(10)
)

// drawing is a chart with the places of its parts.
type drawing struct {
	legend        []plot.Legend // its columns
	legendHeight  vg.Length
	panels        [][]*plot.Plot // by row, nil for a place that is not used
	width, height vg.Length
}

// drawing makes the plots of the panels and the legend.
func (c *Chart) drawing() *drawing {
	samples := c.samples()
	columns := min(max(1, c.Columns), len(c.Panels))
	d := &drawing{width: vg.Length(c.Width) * vg.Millimeter}
	each := (d.width - 2*border - vg.Length(columns-1)*gap) / vg.Length(columns)
	var x, y []extent
	shape := 0.72
	for i := range c.Panels {
		p := &c.Panels[i]
		xs, ys := p.values()
		x, y = append(x, p.X.extent(xs)), append(y, p.Y.extent(ys))
		if p.Diagonal {
			x[i] = x[i].join(y[i])
			y[i], shape = x[i], 0.97
		}
	}
	if columns == 1 && shape < 0.9 { // a chart with one panel per row is flatter
		shape = 0.62
	}
	share(x, c.ShareX)
	share(y, c.ShareY)
	for row := range slices.Chunk(c.Panels, columns) {
		plots := make([]*plot.Plot, columns)
		for i := range row {
			n := len(d.panels)*columns + i
			plots[i] = row[i].plot(x[n], y[n], samples)
			shorten(&plots[i].Title.Text, plots[i].Title.TextStyle, each)
			shorten(&plots[i].X.Label.Text, plots[i].X.Label.TextStyle, 0.8*each)
			shorten(&plots[i].Y.Label.Text, plots[i].Y.Label.TextStyle, each*vg.Length(shape))
		}
		d.panels = append(d.panels, plots)
	}
	d.layLegend(samples)
	d.height = vg.Length(len(d.panels))*(max(100, each*vg.Length(shape))+gap) - gap + d.legendHeight + 2*border
	// Five significant digits of the SVG's transform must state the height exactly.
	d.height = vg.Length(int(10*d.height)) / 10
	return d
}

// share gives all panels with data the same range.
func share(of []extent, wanted bool) {
	all := none
	for _, e := range of {
		if e != none {
			all = all.join(e)
		}
	}
	for i := range of {
		if wanted && of[i] != none {
			of[i] = all
		}
	}
}

// samples are the first series of each label, for the legend.
func (c *Chart) samples() []Series {
	var out []Series
	for _, p := range c.Panels {
		for _, s := range p.Series {
			if s.Label != "" && !slices.ContainsFunc(out, func(known Series) bool { return known.Label == s.Label }) {
				out = append(out, s)
			}
		}
	}
	return out
}

// layLegend divides the entries into as many columns as have room.
func (d *drawing) layLegend(samples []Series) {
	legend := plot.NewLegend()
	legend.TextStyle = textStyle(tickSize, false)
	legend.ThumbnailWidth, legend.Padding, legend.Left, legend.Top = 18, 2, true, true
	width, beside := d.width-2*border, legend.ThumbnailWidth+gap
	widest := vg.Length(0)
	for i := range samples {
		shorten(&samples[i].Label, legend.TextStyle, width-beside)
		widest = max(widest, legend.TextStyle.Width(samples[i].Label))
	}
	columns := max(1, int(width/(beside+widest)))
	rows := (len(samples) + columns - 1) / columns
	for i, s := range samples {
		if i%rows == 0 {
			d.legend = append(d.legend, legend)
		}
		last := &d.legend[len(d.legend)-1]
		last.Add(s.Label, s.thumbnails(styleOf(i))...)
		d.legendHeight = max(d.legendHeight, last.Rectangle(draw.Canvas{}).Size().Y+5)
	}
}

// draw draws the chart.
func (d *drawing) draw(on vg.CanvasSizer) {
	c := draw.New(on)
	c.SetColor(paper)
	c.Fill(c.Path())
	c = draw.Crop(c, border, -border, border, -border)
	each := (c.Max.X - c.Min.X) / vg.Length(max(1, len(d.legend)))
	for i := range d.legend {
		d.legend[i].Draw(draw.Crop(c, vg.Length(i)*each, 0, 0, 0))
	}
	c.Max.Y -= d.legendHeight
	tiles := draw.Tiles{Rows: len(d.panels), Cols: len(d.panels[0]), PadX: gap, PadY: gap, PadRight: 4}
	for r, canvases := range plot.Align(d.panels, tiles, c) {
		for i, canvas := range canvases {
			if d.panels[r][i] != nil {
				d.panels[r][i].Draw(canvas)
			}
		}
	}
}

// textStyle is Liberation Sans.
func textStyle(size vg.Length, bold bool) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = stdfont.WeightBold
	}
	return text.Style{Color: ink, Font: f, Handler: plot.DefaultTextHandler}
}

// shorten replaces what no file can hold, and cuts the text to the width.
func shorten(s *string, style text.Style, width vg.Length) {
	*s = sweep.Printable(*s)
	cut := []rune(*s)
	for len(cut) > 0 && style.Width(*s) > width {
		cut = cut[:len(cut)-1]
		*s = strings.TrimSpace(string(cut)) + "…"
	}
}
