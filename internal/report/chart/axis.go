package chart

import (
	"math"
	"slices"
	"strconv"
	"strings"
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
	low, high, positive := slices.Min(values), slices.Max(values), math.Inf(1)
	for _, v := range values {
		if v > 0 {
			positive = min(positive, v)
		}
	}
	if a.Log && high > 0 {
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
	switch {
	case e == none:
		return other
	case other == none:
		return e
	}
	return extent{min(e.low, other.low), max(e.high, other.high), e.log && other.log}
}

// share is the place of a value, from 0 at the lower end to 1; a value beyond the range is at its end.
func (e extent) share(v float64) float64 {
	v = min(max(v, e.low), e.high)
	if e.log {
		return math.Log(v/e.low) / math.Log(e.high/e.low)
	}
	return (v - e.low) / (e.high - e.low)
}

// tick is a mark of an axis. The label of a minor one is left out first.
type tick struct {
	at    float64
	label string
	minor bool
}

// ticks are the marks of the axis, of which some most have labels: the wanted values, or round ones.
func (a *Axis) ticks(e extent, most float64) []tick {
	var out []tick
	add := func(v float64, labelled, minor bool) {
		t := tick{at: v, minor: minor}
		if labelled {
			t.label = strings.ReplaceAll(strconv.FormatFloat(v+0, 'g', 5, 64), "-", "−") // the sum with zero has no negative zero
		}
		if v >= e.low && v <= e.high {
			out = append(out, t)
		}
	}
	for _, v := range a.Ticks {
		add(v, true, false)
	}
	switch {
	case len(out) > 0:
	case e.log: // the powers of ten, with 2 and 5 times these if the range is short
		for decade := math.Floor(math.Log10(e.low)); decade <= math.Log10(e.high); decade++ {
			for m := 1.0; m < 10; m++ {
				add(m*math.Pow10(int(decade)), m == 1 || e.high < 100*e.low && (m == 2 || m == 5), m != 1)
			}
		}
	default: // multiples of 1, 2 or 5 times a power of ten
		raw := (e.high - e.low) / min(max(2, most), 8)
		step := math.Pow10(int(math.Floor(math.Log10(raw))))
		for _, m := range []float64{2, 2.5, 2} { // 2, 5 and 10 in all
			if step < raw*(1-1e-9) {
				step *= m
			}
		}
		for i := math.Ceil(e.low / step); i*step <= e.high; i++ {
			add(i*step, true, false)
		}
	}
	return out
}

// thin removes the labels that would touch another one, minor ones first. place and size are the middle and the extent of a tick's label.
func thin(ticks []tick, place, size func(tick) float64) []tick {
	var placed []tick
	for _, minor := range []bool{false, true} {
		for i, t := range ticks {
			if t.minor != minor || t.label == "" {
				continue
			}
			if slices.ContainsFunc(placed, func(o tick) bool { return math.Abs(place(t)-place(o)) < (size(t)+size(o))/2 }) {
				ticks[i].label = ""
			} else {
				placed = append(placed, t)
			}
		}
	}
	return ticks
}
