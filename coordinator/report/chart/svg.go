package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"

	"ddiff/coordinator/report/sweep"
)

// SVG returns the chart as an SVG document.
func (c *Chart) SVG() ([]byte, error) {
	d := c.drawing()
	canvas := vgsvg.NewWith(vgsvg.UseWH(d.width, d.height))
	d.draw(canvas)
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("write SVG: %w", err)
	}
	// The library's header has neither a title nor a size in millimetres, and its texts no fonts beside the first.
	_, body, found := bytes.Cut(out.Bytes(), []byte("xlink\">\n"))
	if !found {
		return nil, errors.New("write SVG: no header")
	}
	body = bytes.ReplaceAll(body, []byte("font-family:Liberation Sans;font-variant:normal;"),
		[]byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
	var doc bytes.Buffer
	fmt.Fprintf(&doc, `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%.2fmm" height="%.2fmm" viewBox="0 0 %.5g %.5g" role="img">
<title>%s</title>
<desc>%s</desc>
%s`, d.width/vg.Millimeter, d.height/vg.Millimeter, d.width.Points(), d.height.Points(), escape(c.Title), escape(c.Description), body)
	return doc.Bytes(), nil
}

// escape prepares a text for XML.
func escape(s string) string {
	var out bytes.Buffer
	xml.EscapeText(&out, []byte(sweep.Printable(s))) //nolint:errcheck // a buffer accepts everything
	return out.String()
}
