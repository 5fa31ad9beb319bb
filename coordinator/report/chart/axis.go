package chart

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"
)

// extent is the range of one axis.
type extent struct {
	low, high float64
	log       bool
}

// none is the range of an axis without points.
var none = extent{low: 0, high: 1}

// maxDecades bounds a logarithmic axis; smaller values are drawn at its lower end.
const maxDecades = 8

// extent covers the values, with a margin.
func (a *Axis) extent(values []float64) extent {
	if len(values) == 0 {
		return none
	}
	low, high, positive := values[0], values[0], math.Inf(1)
	for _, v := range values {
		low, high = min(low, v), max(high, v)
		if v > 0 {
			positive = min(positive, v)
		}
	}
	if a.Log && high > 0 && !math.IsInf(positive, 1) {
		low = max(positive, high*math.Pow10(-maxDecades))
		pad := math.Pow(high/low, 0.04)
		if high == low {
			pad = 1.2
		}
		return extent{low / pad, high * pad, true}
	}
	if a.Zero {
		low, high = min(low, 0), max(high, 0)
	}
	pad := 0.04 * (high - low)
	if pad < 1e-9*math.Abs(high) || pad < 1/largest {
		pad = max(1, 0.01*math.Abs(high))
	}
	if !a.Zero || low < 0 {
		low -= pad
	}
	return extent{low: low, high: high + pad}
}

// join covers both ranges.
func (e extent) join(other extent) extent {
	if e == none {
		return other
	}
	return extent{min(e.low, other.low), max(e.high, other.high), e.log && other.log}
}

// clamp moves a value into the range.
func (e extent) clamp(v float64) float64 { return min(max(v, e.low), e.high) }

// set prepares the axis of a plot.
func (a *Axis) set(to *plot.Axis, e extent) {
	to.Min, to.Max, to.Padding = e.low, e.high, 0
	if e.log {
		to.Scale = plot.LogScale{}
	}
	to.Color, to.Width = ink, axisWidth
	to.Label.Text, to.Label.Padding = a.Label, 2
	label, tick := to.Label.TextStyle, to.Tick.Label
	to.Label.TextStyle, to.Tick.Label = textStyle(labelSize, false), textStyle(tickSize, false)
	to.Label.TextStyle.XAlign, to.Label.TextStyle.YAlign = label.XAlign, label.YAlign
	to.Tick.Label.XAlign, to.Tick.Label.YAlign = tick.XAlign, tick.YAlign
	to.Tick.Length, to.Tick.LineStyle = 2.5, draw.LineStyle{Color: ink, Width: axisWidth}
	to.Tick.Marker = plot.ConstantTicks(a.ticks(e))
}

// ticks are the marks of the axis: the wanted values, or round ones.
func (a *Axis) ticks(e extent) []plot.Tick {
	var out []plot.Tick
	add := func(v float64, labelled bool) {
		tick := plot.Tick{Value: v}
		if labelled {
			// The sum with zero has no negative zero.
			tick.Label = strings.ReplaceAll(strconv.FormatFloat(v+0, 'g', 5, 64), "-", "−")
		}
		if v >= e.low && v <= e.high {
			out = append(out, tick)
		}
	}
	for _, v := range a.Ticks {
		add(v, true)
	}
	switch {
	case len(out) > 0:
	case e.log: // the powers of ten, with 2 and 5 times these if the range is short
		for decade := math.Pow10(int(math.Floor(math.Log10(e.low)))); decade <= e.high; decade *= 10 {
			for m := 1.0; m < 10; m++ {
				add(m*decade, m == 1 || e.high < 100*e.low && (m == 2 || m == 5))
			}
		}
	default: // three to nine multiples of 1, 2 or 5 times a power of ten
		raw := (e.high - e.low) / 8
		step := math.Pow10(int(math.Floor(math.Log10(raw))))
		for _, m := range []float64{2, 2.5, 2} { // 2, 5 and 10 in all
			if step < raw {
				step *= m
			}
		}
		for i := math.Ceil(e.low / step); i*step <= e.high; i++ {
			add(i*step, true)
		}
	}
	return out
}
