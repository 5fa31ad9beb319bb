package chart

import (
	"math"
	"slices"
)

// Width is the width of a chart in millimetres.
type Width float64

// The widths of common two-column layouts.
const (
	OneColumn  Width = 82
	TwoColumns Width = 174
)

// Chart is one figure.
type Chart struct {
	// Title and Description are the accessible name and description of the SVG; they are not drawn.
	Title       string
	Description string
	Width       Width
	// Columns is the number of panels beside each other; zero means one.
	Columns int
	// ShareY gives all panels the same range of that axis.
	ShareY bool
	// Panels has at least one panel.
	Panels []Panel
}

// Panel is one pair of axes with its series.
type Panel struct {
	// Title is drawn above the panel.
	Title string
	X, Y  Axis
	// XName and YName name the quantities in the data of the chart.
	XName, YName string
	// Series are drawn in order. Series of one label, in any panel, have the same colour, marker and dashes.
	Series []Series
	// Diagonal draws the line y = x, and gives both axes the same range.
	Diagonal bool
	// Dodge moves the series apart sideways, by at most 6 points, so that bars at one x do not hide each other.
	Dodge bool
	// Levels are the y values of horizontal reference lines.
	Levels []float64
}

// Axis describes one axis. Its range follows from the points.
type Axis struct {
	// Label is drawn beside the axis.
	Label string
	// Log requests a logarithmic scale. The axis is linear if a value is not positive.
	Log bool
	// Zero includes zero in the range of a linear axis.
	Zero bool
	// Ticks are the values with a label. Empty means round values.
	Ticks []float64
}

// Kind is the way in which a series is drawn.
type Kind int

// The kinds of series.
const (
	// Curve is a line with a band from Low to High.
	Curve Kind = iota
	// Markers is a line with a marker at each point and a bar from Low to High.
	Markers
	// Dots are points without a line.
	Dots
)

// Series is a list of points.
type Series struct {
	// Label names the series in the legend. A series without a label is not in the legend.
	Label  string
	Kind   Kind
	Points []Point
}

// largest is the largest magnitude that is drawn: ranges of larger numbers overflow.
const largest = 1e100

// Point is one value. A point with an X or Y that is NaN, infinite or beyond ±1e100 is not drawn and interrupts a line. Low
// and High are the ends of an interval of Y; a point without an interval has NaN. The other fields are not drawn.
type Point struct {
	X, Y, Low, High float64
	// N is the number of images behind the point; Item and Image name the item of a point of one item.
	N           int
	Item, Image string
}

// At returns a point without an interval.
func At(x, y float64) Point { return Point{X: x, Y: y, Low: math.NaN(), High: math.NaN()} }

func (p Point) drawn() bool { return finite(p.X, p.Y) }

func (p Point) hasInterval() bool { return finite(p.Low, p.High) }

// finite reports whether all values can be drawn.
func finite(values ...float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return !(math.Abs(v) <= largest) }) // also NaN
}

// Empty reports whether the panel has no point to draw.
func (p *Panel) Empty() bool {
	x, _ := p.values()
	return len(x) == 0
}

// values are those of the drawn points, with their intervals and the levels.
func (p *Panel) values() (x, y []float64) {
	for _, s := range p.Series {
		for _, v := range s.Points {
			if !v.drawn() {
				continue
			}
			x, y = append(x, v.X), append(y, v.Y)
			if v.hasInterval() {
				y = append(y, v.Low, v.High)
			}
		}
	}
	if len(x) > 0 {
		y = append(y, p.Levels...)
	}
	return x, y
}
