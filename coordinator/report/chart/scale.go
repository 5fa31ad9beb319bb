package chart

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// extent is the range of one axis.
type extent struct {
	low, high float64
	log       bool
}

// maxDecades bounds a logarithmic axis; smaller values are drawn at its lower end.
const maxDecades = 8

// newExtent covers the finite values.
func newExtent(a Axis, values []float64) extent {
	e := extent{low: math.Inf(1), high: math.Inf(-1), log: a.Log && len(values) > 0}
	for _, v := range values {
		e.low, e.high = min(e.low, v), max(e.high, v)
	}
	if len(values) == 0 {
		return extent{low: 0, high: 1}
	}
	if e.low <= 0 {
		e.log = false
	}
	if e.log {
		e.low = max(e.low, e.high*math.Pow10(-maxDecades))
		pad := math.Pow(e.high/e.low, 0.04)
		if e.high == e.low {
			pad = 1.2
		}
		return extent{e.low / pad, e.high * pad, true}
	}
	lowest := e.low
	if a.Zero {
		e.low, e.high = min(e.low, 0), max(e.high, 0)
	}
	pad := 0.04 * (e.high - e.low)
	if pad == 0 || e.low+pad == e.low {
		pad = max(1, 0.01*math.Abs(e.high))
	}
	if !a.Zero || lowest < 0 {
		e.low -= pad
	}
	e.high += pad
	return e
}

// join covers both ranges.
func (e extent) join(other extent) extent {
	return extent{min(e.low, other.low), max(e.high, other.high), e.log && other.log}
}

// clamp moves a value into the range.
func (e extent) clamp(v float64) float64 { return min(max(v, e.low), e.high) }

// ticks are the marks of an axis in the range.
func (e extent) ticks(a *Axis) []plot.Tick {
	var out []plot.Tick
	for _, v := range a.Ticks {
		if v >= e.low && v <= e.high {
			out = append(out, plot.Tick{Value: v, Label: number(v)})
		}
	}
	switch {
	case len(out) > 0:
		return out
	case e.log:
		return e.logTicks()
	}
	return e.linearTicks(a.Integers)
}

// linearTicks are three to nine multiples of 1, 2 or 5 times a power of ten.
func (e extent) linearTicks(integers bool) []plot.Tick {
	const most = 8
	raw := (e.high - e.low) / most
	step := math.Pow10(int(math.Floor(math.Log10(raw))))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*step >= raw {
			step *= m
			break
		}
	}
	if integers {
		step = max(1, step)
	}
	var out []plot.Tick
	for i := math.Ceil(e.low / step); i*step <= e.high && len(out) <= most; i++ {
		v := i * step
		out = append(out, plot.Tick{Value: v, Label: number(v)})
	}
	return out
}

// logTicks are the powers of ten, with 2 and 5 times these if the range is short, and unlabelled ticks between them.
func (e extent) logTicks() []plot.Tick {
	decades := math.Log10(e.high / e.low)
	every := max(1, int(math.Ceil(decades/6)))
	var out []plot.Tick
	for k := int(math.Floor(math.Log10(e.low))); k <= int(math.Ceil(math.Log10(e.high))); k++ {
		for m := 1; m < 10; m++ {
			v := float64(m) * math.Pow10(k)
			if v < e.low || v > e.high {
				continue
			}
			t := plot.Tick{Value: v}
			if m == 1 && k%every == 0 || decades < 2 && (m == 2 || m == 5) || decades < 0.7 {
				t.Label = number(v)
			}
			if every == 1 || m == 1 {
				out = append(out, t)
			}
		}
	}
	labels := 0
	for _, t := range out {
		if t.Label != "" {
			labels++
		}
	}
	if labels < 2 {
		linear := extent{low: e.low, high: e.high}
		return linear.linearTicks(false)
	}
	return out
}

// number formats a tick's value, with a minus sign instead of a hyphen.
func number(v float64) string {
	if v == 0 {
		return "0"
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64) // without the error of a multiplication
	s := strconv.FormatFloat(math.Abs(v), 'f', -1, 64)
	if len(s) > 6 {
		s = strconv.FormatFloat(math.Abs(v), 'g', 3, 64)
	}
	if v < 0 {
		return "−" + s
	}
	return s
}
