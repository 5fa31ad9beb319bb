package chart

import (
	"image/color"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// MaxSeries is the number of series that differ in colour, marker or dashes. Further series repeat the first.
const MaxSeries = 14

// Sizes of text, lines and markers.
const (
	labelSize  = 8 * vg.Length(1) // points
	tickSize   = 7
	lineWidth  = 1
	axisWidth  = 0.5
	barWidth   = 0.7
	markerSize = 2.2 // radius
	dotSize    = 1.2
	tickLength = 2.5
)

func paper() color.Color { return color.White }
func ink() color.Color   { return color.NRGBA{0x22, 0x22, 0x22, 0xff} }
func grey() color.Color  { return color.NRGBA{0x88, 0x88, 0x88, 0xff} }

// colors are those of Okabe and Ito, without yellow, which is faint on white.
func colors() []color.NRGBA {
	return []color.NRGBA{
		{0x00, 0x72, 0xb2, 0xff}, // blue
		{0xd5, 0x5e, 0x00, 0xff}, // vermillion
		{0x00, 0x9e, 0x73, 0xff}, // bluish green
		{0xcc, 0x79, 0xa7, 0xff}, // reddish purple
		{0xe6, 0x9f, 0x00, 0xff}, // orange
		{0x56, 0xb4, 0xe9, 0xff}, // sky blue
		{0x00, 0x00, 0x00, 0xff}, // black
	}
}

// style is the appearance of one series.
type style struct {
	color  color.NRGBA
	dashes []vg.Length
	glyph  draw.GlyphDrawer
}

// styleOf returns the style of the series with this number.
func styleOf(n int) style {
	palette := colors()
	dashes := [][]vg.Length{nil, {4, 1.5}, {1, 1.2}, {4, 1.2, 1, 1.2}, {6, 1.5}, {2, 1}, {5, 1, 1, 1, 1, 1}}
	glyphs := []draw.GlyphDrawer{
		draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, diamond{}, draw.CrossGlyph{}, draw.PlusGlyph{}, draw.RingGlyph{},
	}
	round := n / len(palette)
	return style{
		color:  palette[n%len(palette)],
		dashes: dashes[(n+round)%len(dashes)],
		glyph:  glyphs[(n+3*round)%len(glyphs)],
	}
}

func (s style) line() draw.LineStyle {
	return draw.LineStyle{Color: s.color, Width: lineWidth, Dashes: s.dashes}
}

// translucent is the colour of areas and dots.
func (s style) translucent(alpha uint8) color.Color {
	c := s.color
	c.A = alpha
	return c
}

// diamond is a filled square on its corner.
type diamond struct{}

// DrawGlyph implements [draw.GlyphDrawer].
func (diamond) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	r := sty.Radius * 1.25
	var p vg.Path
	p.Move(vg.Point{X: at.X, Y: at.Y + r})
	p.Line(vg.Point{X: at.X + r, Y: at.Y})
	p.Line(vg.Point{X: at.X, Y: at.Y - r})
	p.Line(vg.Point{X: at.X - r, Y: at.Y})
	p.Close()
	c.SetColor(sty.Color)
	c.Fill(p)
}

// letters sets text in Liberation Sans.
type letters struct{ handler text.Handler }

func newLetters() letters {
	return letters{text.Plain{Fonts: font.NewCache(liberation.Collection())}}
}

func (l letters) style(size vg.Length, bold bool) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = stdfont.WeightBold
	}
	return text.Style{Color: ink(), Font: f, Handler: l.handler}
}
