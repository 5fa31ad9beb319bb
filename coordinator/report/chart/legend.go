package chart

import (
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// legend lists the labels of all panels, in rows above them.
type legend struct {
	letters letters
	labels  []string
	kinds   []Kind
}

func newLegend(c *Chart, l letters) *legend {
	g := &legend{letters: l}
	for i := range c.Panels {
		for _, s := range c.Panels[i].Series {
			if s.Label != "" && !slices.Contains(g.labels, s.Label) {
				g.labels = append(g.labels, s.Label)
				g.kinds = append(g.kinds, s.Kind)
			}
		}
	}
	return g
}

// style is that of a series with the label.
func (g *legend) style(label string) style { return styleOf(max(0, slices.Index(g.labels, label))) }

// Sizes of the legend's entries, in points.
const (
	swatch      = 18 // width of the sample
	swatchGap   = 3
	entryGap    = 10
	entryHeight = 11
)

// rows places the entries in rows of the width.
func (g *legend) rows(width vg.Length) [][]int {
	var out [][]int
	var used vg.Length
	for i := range g.labels {
		w := g.entryWidth(i, width)
		if len(out) == 0 || used+entryGap+w > width {
			out = append(out, nil)
			used = -entryGap
		}
		out[len(out)-1] = append(out[len(out)-1], i)
		used += entryGap + w
	}
	return out
}

func (g *legend) entryWidth(i int, width vg.Length) vg.Length {
	return swatch + swatchGap + g.letters.style(tickSize, false).Width(g.text(i, width))
}

// text is the label, cut to the width.
func (g *legend) text(i int, width vg.Length) string {
	sty := g.letters.style(tickSize, false)
	return cut(clean(g.labels[i]), width-swatch-swatchGap, sty.Width)
}

func (g *legend) height(width vg.Length) vg.Length {
	rows := g.rows(width)
	if len(rows) == 0 {
		return 0
	}
	return vg.Length(len(rows))*entryHeight + 3
}

// draw places the legend at the top of the canvas.
func (g *legend) draw(c draw.Canvas) {
	width := c.Max.X - c.Min.X
	sty := g.letters.style(tickSize, false)
	sty.YAlign = draw.YCenter
	for n, row := range g.rows(width) {
		x, y := c.Min.X, c.Max.Y-(vg.Length(n)+0.5)*entryHeight
		for _, i := range row {
			g.sample(&c, i, x, y)
			c.FillText(sty, vg.Point{X: x + swatch + swatchGap, Y: y}, g.text(i, width))
			x += g.entryWidth(i, width) + entryGap
		}
	}
}

// sample draws a piece of the series.
func (g *legend) sample(c *draw.Canvas, i int, x, y vg.Length) {
	look := styleOf(i)
	middle := vg.Point{X: x + swatch/2, Y: y}
	if g.kinds[i] != Dots {
		c.StrokeLine2(look.line(), x, y, x+swatch, y)
	}
	if g.kinds[i] == Markers || g.kinds[i] == Dots {
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: look.color, Radius: markerSize, Shape: look.glyph}, middle)
	}
}

// cut shortens a text to the width and marks the cut.
func cut(text string, width vg.Length, measure func(string) vg.Length) string {
	if measure(text) <= width {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && measure(string(runes)+"…") > width {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}
