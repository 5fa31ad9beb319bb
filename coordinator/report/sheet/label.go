package sheet

import (
	"image"
	"image/color"
	"strings"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	"ddiff/coordinator/report/sweep"
)

// The built-in font is monospaced; lineHeight includes its descenders.
const (
	lineHeight = 13
	runeWidth  = 7
)

// drawLabel writes one line with its top left corner at (x, y) and cuts it to the width.
func drawLabel(dst draw.Image, x, y, width int, text string, ink color.Color) {
	face := basicfont.Face7x13
	d := font.Drawer{
		Dst:  dst,
		Src:  image.NewUniform(ink),
		Face: face,
		Dot:  fixed.P(x, y+face.Ascent),
	}
	d.DrawString(cutLabel(text, width))
}

// drawTitle writes one line at twice the size.
func drawTitle(dst draw.Image, x, y, width int, text string) {
	text = cutLabel(text, width/2)
	small := image.NewRGBA(image.Rect(0, 0, labelWidth(text), lineHeight))
	drawLabel(small, 0, 0, width, text, Ink)
	at := image.Rect(x, y, x+2*small.Bounds().Dx(), y+2*lineHeight)
	draw.NearestNeighbor.Scale(dst, at, small, small.Bounds(), draw.Over, nil)
}

func labelWidth(text string) int { return runeWidth * len([]rune(text)) }

// cutLabel shortens the text to the width and marks the cut with an ellipsis.
func cutLabel(text string, width int) string {
	runes := []rune(sweep.Printable(text))
	if n := width / runeWidth; len(runes) > n {
		return string(runes[:max(0, n-3)]) + "..."
	}
	return string(runes)
}

// wrapLabel breaks the text into at most the given number of lines.
func wrapLabel(text string, width, lines int) []string {
	runes := []rune(strings.TrimSpace(sweep.Printable(text)))
	n := width / runeWidth
	var out []string
	for len(runes) > n && len(out) < lines-1 {
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return append(out, cutLabel(string(runes), width))
}
