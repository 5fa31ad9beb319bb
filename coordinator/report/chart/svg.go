package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// SVG returns the chart as an SVG document.
func (c *Chart) SVG() ([]byte, error) {
	l := c.layout()
	canvas := &svgCanvas{Canvas: vgsvg.NewWith(vgsvg.UseWH(l.width, l.height))}
	l.draw(canvas)
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("write SVG: %w", err)
	}
	// The library's header has neither a title nor a size in millimetres.
	_, body, found := bytes.Cut(out.Bytes(), []byte("xlink\">\n"))
	if !found {
		return nil, errors.New("write SVG: no header")
	}
	var doc bytes.Buffer
	fmt.Fprintf(&doc, `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%.2fmm" height="%.2fmm" viewBox="0 0 %.5g %.5g" role="img">
<title>%s</title>
<desc>%s</desc>
`, l.width/vg.Millimeter, l.height/vg.Millimeter, l.width.Points(), l.height.Points(), escape(c.Title), escape(c.Description))
	const (
		library   = `style="font-family:Liberation Sans;font-variant:normal;`
		fallbacks = `style="font-family:'Liberation Sans',Arial,Helvetica,sans-serif;`
	)
	texts := bytes.Split(bytes.ReplaceAll(body, []byte(library), []byte(fallbacks)), []byte("<text "))
	for i, part := range texts {
		if i > 0 {
			fmt.Fprintf(&doc, `<text textLength="%.5g" lengthAdjust="spacingAndGlyphs" `, canvas.widths[i-1].Points())
		}
		doc.Write(part)
	}
	return doc.Bytes(), nil
}

// svgCanvas notes the width of each text, so that another font takes the same space.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString implements [vg.Canvas].
func (c *svgCanvas) FillString(f font.Face, at vg.Point, text string) {
	c.widths = append(c.widths, f.Width(text))
	c.Canvas.FillString(f, at, text)
}

// escape prepares a text for XML.
func escape(s string) string {
	var out bytes.Buffer
	xml.EscapeText(&out, []byte(clean(s))) //nolint:errcheck // a buffer accepts everything
	return out.String()
}
