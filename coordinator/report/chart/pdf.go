package chart

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"math"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"

	"ddiff/coordinator/report/sweep"
)

// PDF returns the chart as a PDF document of one page, with its font inside.
func (c *Chart) PDF() ([]byte, error) {
	d := c.drawing()
	canvas := newPDFCanvas(d.width, d.height)
	doc := canvas.doc
	doc.SetTitle(sweep.Printable(c.Title), true)
	doc.SetSubject(sweep.Printable(c.Description), true)
	d.draw(canvas)
	canvas.Pop()
	var out bytes.Buffer
	if err := doc.Output(&out); err != nil {
		return nil, fmt.Errorf("write PDF: %w", err)
	}
	return out.Bytes(), nil
}

// pdfCanvas draws on a page. The canvas of the library vgpdf knows the letters of one code page only, neither σ nor the sign −.
type pdfCanvas struct {
	doc           *fpdf.Fpdf
	width, height vg.Length
	stack         []pen // of each Push, the last is the present one
	fonts         map[string]bool
}

type pen struct {
	colour color.NRGBA
	width  vg.Length
}

func newPDFCanvas(width, height vg.Length) *pdfCanvas {
	doc := fpdf.NewCustom(&fpdf.InitType{UnitStr: "pt", Size: fpdf.SizeType{Wd: width.Points(), Ht: height.Points()}})
	// Equal charts give equal bytes.
	doc.SetCatalogSort(true)
	doc.SetCreationDate(time.Unix(0, 0).UTC())
	doc.SetModificationDate(time.Unix(0, 0).UTC())
	doc.AddPage()
	c := &pdfCanvas{doc: doc, width: width, height: height, stack: make([]pen, 1), fonts: map[string]bool{}}
	c.Push()
	c.Translate(vg.Point{Y: height}) // the document's y points down
	c.Scale(1, -1)
	vg.Initialize(c)
	return c
}

// Size implements [vg.CanvasSizer].
func (c *pdfCanvas) Size() (width, height vg.Length) { return c.width, c.height }

// SetLineWidth implements [vg.Canvas].
func (c *pdfCanvas) SetLineWidth(w vg.Length) {
	if c.pen().width = w; w > 0 {
		c.doc.SetLineWidth(w.Points())
	}
}

func (c *pdfCanvas) pen() *pen { return &c.stack[len(c.stack)-1] }

// SetLineDash implements [vg.Canvas].
func (c *pdfCanvas) SetLineDash(pattern []vg.Length, offset vg.Length) {
	dashes := make([]float64, len(pattern))
	for i, d := range pattern {
		dashes[i] = d.Points()
	}
	c.doc.SetDashPattern(dashes, offset.Points())
}

// SetColor implements [vg.Canvas].
func (c *pdfCanvas) SetColor(colour color.Color) {
	if colour == nil {
		colour = color.Black
	}
	v := color.NRGBAModel.Convert(colour).(color.NRGBA)
	c.pen().colour = v
	c.doc.SetFillColor(int(v.R), int(v.G), int(v.B))
	c.doc.SetDrawColor(int(v.R), int(v.G), int(v.B))
	c.doc.SetAlpha(float64(v.A)/math.MaxUint8, "Normal")
}

// Rotate implements [vg.Canvas].
func (c *pdfCanvas) Rotate(radians float64) { c.doc.TransformRotate(-radians*180/math.Pi, 0, 0) }

// Translate implements [vg.Canvas].
func (c *pdfCanvas) Translate(by vg.Point) { c.doc.TransformTranslate(by.X.Points(), by.Y.Points()) }

// Scale implements [vg.Canvas].
func (c *pdfCanvas) Scale(x, y float64) { c.doc.TransformScale(100*x, 100*y, 0, 0) }

// Push implements [vg.Canvas].
func (c *pdfCanvas) Push() {
	c.stack = append(c.stack, *c.pen())
	c.doc.TransformBegin()
}

// Pop implements [vg.Canvas].
func (c *pdfCanvas) Pop() {
	c.stack = c.stack[:len(c.stack)-1]
	c.doc.TransformEnd()
}

// Stroke implements [vg.Canvas]. A line of width 0, which is the thinnest one in a PDF, is none.
func (c *pdfCanvas) Stroke(p vg.Path) {
	if c.pen().width > 0 {
		c.path(p, "D")
	}
}

// Fill implements [vg.Canvas].
func (c *pdfCanvas) Fill(p vg.Path) { c.path(p, "F") }

func (c *pdfCanvas) path(p vg.Path, style string) {
	at := func(v vg.Point) (x, y float64) { return v.X.Points(), v.Y.Points() }
	for _, part := range p {
		x, y := at(part.Pos)
		switch part.Type {
		case vg.MoveComp:
			c.doc.MoveTo(x, y)
		case vg.LineComp:
			c.doc.LineTo(x, y)
		case vg.ArcComp:
			// Lines of at most 5 degrees: of a marker nobody sees them.
			n := max(1, math.Ceil(math.Abs(part.Angle)*36/math.Pi))
			for i := range int(n) + 1 {
				sin, cos := math.Sincos(part.Start + part.Angle*float64(i)/n)
				c.doc.LineTo(x+part.Radius.Points()*cos, y+part.Radius.Points()*sin)
			}
		case vg.CurveComp:
			control := part.Control
			if len(control) == 1 {
				control = append(control, control[0])
			}
			x0, y0 := at(control[0])
			x1, y1 := at(control[1])
			c.doc.CurveBezierCubicTo(x0, y0, x1, y1, x, y)
		case vg.CloseComp:
			c.doc.ClosePath()
		}
	}
	c.doc.DrawPath(style)
}

// FillString implements [vg.Canvas].
func (c *pdfCanvas) FillString(face font.Face, at vg.Point, text string) {
	name := face.Name()
	if !c.fonts[name] {
		var ttf bytes.Buffer
		if _, err := face.Face.WriteSourceTo(nil, &ttf); err != nil {
			c.doc.SetError(fmt.Errorf("font %s: %w", name, err))
			return
		}
		c.doc.AddUTF8FontFromBytes(name, "", ttf.Bytes())
		c.fonts[name] = true
	}
	c.doc.SetFont(name, "", face.Font.Size.Points())
	v := c.pen().colour
	c.doc.SetTextColor(int(v.R), int(v.G), int(v.B))
	c.Push()
	c.Translate(at)
	c.Scale(1, -1)
	c.doc.Text(0, 0, strings.Map(func(r rune) rune {
		if r > math.MaxUint16 { // which the font does not have either
			return '\uFFFD'
		}
		return r
	}, text))
	c.Pop()
}

// DrawImage implements [vg.Canvas]. No chart has images.
func (c *pdfCanvas) DrawImage(vg.Rectangle, image.Image) {
	c.doc.SetErrorf("a chart has no images")
}
