package chart

import (
	"math"
	"strings"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// layout is a chart with the places of its parts.
type layout struct {
	legend        *legend
	rows, columns int
	panels        []*drawing
	width, height vg.Length
	legendHeight  vg.Length
	titleHeight   vg.Length // above each panel
}

// Space between panels and around the chart, in points.
const (
	panelGap = 10
	border   = 3
	// titleSpace is the height of a panel's title.
	titleSpace = 12
)

func (c *Chart) layout() *layout {
	letters := newLetters()
	l := &layout{legend: newLegend(c, letters), columns: min(max(1, c.Columns), len(c.Panels))}
	l.rows = (len(c.Panels) + l.columns - 1) / l.columns
	l.width = vg.Length(c.Width) * vg.Millimeter
	l.legendHeight = l.legend.height(l.width - 2*border)
	each := (l.width - 2*border - vg.Length(l.columns-1)*panelGap) / vg.Length(l.columns)
	shape := 0.72
	for i := range c.Panels {
		p := c.Panels[i]
		p.Title = cut(clean(p.Title), each, letters.style(labelSize, true).Width)
		measure := letters.style(labelSize, false).Width
		high := 0.6 * each
		if p.Diagonal {
			high = 0.8 * each
		}
		p.X.Label, p.Y.Label = cut(clean(p.X.Label), 0.8*each, measure), cut(clean(p.Y.Label), high, measure)
		if p.Title != "" {
			l.titleHeight = titleSpace
		}
		l.panels = append(l.panels, newDrawing(&p, letters, l.legend))
		if p.Diagonal {
			shape = 0.97
		}
	}
	share(l.panels, c.ShareX, c.ShareY)
	// A chart with one panel per row is flatter.
	if l.columns == 1 && shape < 0.9 {
		shape = 0.62
	}
	tall := max(100, each*vg.Length(shape))
	l.height = vg.Length(l.rows)*(tall+l.titleHeight) + vg.Length(l.rows-1)*panelGap + l.legendHeight + 2*border
	// Five significant digits of the SVG's transform must state the height exactly.
	l.height = vg.Length(math.Round(float64(l.height)*10) / 10)
	return l
}

// draw draws the chart.
func (l *layout) draw(on vg.CanvasSizer) {
	c := draw.New(on)
	c.SetColor(paper())
	c.Fill(c.Path())
	c = draw.Crop(c, border, -border, border, -border)
	l.legend.draw(c)
	c.Max.Y -= l.legendHeight
	grid := make([][]*plot.Plot, l.rows)
	for r := range grid {
		grid[r] = make([]*plot.Plot, l.columns)
		for i := range grid[r] {
			if n := r*l.columns + i; n < len(l.panels) {
				grid[r][i] = l.panels[n].plot()
			}
		}
	}
	tiles := draw.Tiles{Rows: l.rows, Cols: l.columns, PadX: panelGap, PadY: panelGap + l.titleHeight, PadTop: l.titleHeight, PadRight: 4}
	for r, canvases := range plot.Align(grid, tiles, c) {
		for i, canvas := range canvases {
			if grid[r][i] != nil {
				grid[r][i].Draw(canvas)
			}
		}
	}
}

// clean replaces line breaks, control characters and bytes that are no text: no file can hold them.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
