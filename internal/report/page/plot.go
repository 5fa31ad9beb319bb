package page

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/report/table"
	"ddiff/restore/operator"
)

// plot has intervals below each other over one scale, in percent of its width.
type plot struct {
	Ticks []tick
	Rows  []strip
	// Left and Right say what is on either side of zero. Each: the rows have values of images, Binned: and bars of them.
	Left, Right  string
	Each, Binned bool
	// More is the number of rows that are left out.
	More int
}

// tick is a mark of a scale.
type tick struct {
	At, Text string
	Zero     bool
}

// strip is an interval, the mean in it, and the values of which it is the mean: each of a few, bars of many.
type strip struct {
	number
	Label, Detail, Title  string
	From, Low, Mean, High string // From is the degraded image; empty: none
	Each                  []string
	Bars                  []bar
	// Hollow: the interval has zero in it.
	Hollow bool
	order  float64
}

// bar is one of a histogram, in percent of the strip's width and height.
type bar struct{ X, Width, Y, Height string }

// The bounds of a plot, and the number of values from which a strip has bars.
const (
	maxStrips = 40
	manyEach  = 30
)

// scale maps values to percent.
type scale struct{ low, high float64 }

func (s scale) at(v float64) string {
	return fmt.Sprintf("%.2f%%", 100*(min(max(v, s.low), s.high)-s.low)/(s.high-s.low))
}

// newScale covers the values with some five steps of 1, 2 or 5 times a power of ten.
func newScale(values []float64, signed bool) (scale, []tick) {
	low, high := slices.Min(values), slices.Max(values)
	step := math.Pow(10, math.Floor(math.Log10(max(high-low, 1e-6)/4)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (high-low)/(factor*step) <= 5 {
			step *= factor
			break
		}
	}
	s := scale{step * math.Floor(low/step), step * math.Ceil(high/step)}
	decimals := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	var ticks []tick
	for k := 0; float64(k) <= (s.high-s.low)/step+0.5; k++ {
		v := s.low + float64(k)*step
		zero := math.Abs(v) < step/2
		e := statistic.Estimate{N: 1, Mean: v}
		if zero {
			e.Mean = 0
		}
		n := numberOf(e, decimals, signed && !zero)
		ticks = append(ticks, tick{s.at(v), n.Whole + n.Fraction, zero && signed})
	}
	return s, ticks
}

// place places the mean and the interval of a strip.
func (p *strip) place(s scale, e statistic.Estimate) {
	p.Mean, p.order = s.at(e.Mean), e.Mean
	if h := e.HalfWidth; h != nil {
		p.Low, p.High = s.at(e.Mean-*h), s.at(e.Mean+*h)
	}
}

// reach are the ends of intervals.
func reach(estimates ...statistic.Estimate) (out []float64) {
	for _, e := range estimates {
		half := 0.0
		if e.HalfWidth != nil {
			half = *e.HalfWidth
		}
		if e.N > 0 {
			out = append(out, e.Mean-half, e.Mean+half)
		}
	}
	return out
}

// degradedOf is the PSNR of the degraded images, without its interval.
func degradedOf(r *aggregate.Row) statistic.Estimate {
	e := r.Means[entry.Baseline]
	return statistic.Estimate{N: e.N, Mean: e.Mean}
}

// addRanges adds the range of PSNR to each line.
func (m *means) addRanges(s aggregate.Summary) {
	var values []float64
	for i := range s.Rows {
		values = append(values, reach(s.Rows[i].PSNR(), degradedOf(&s.Rows[i]))...)
	}
	if len(values) == 0 {
		return
	}
	over, ticks := newScale(values, false)
	m.Scale = ticks
	for i := range s.Rows {
		r := &s.Rows[i]
		m.Lines[i].Range = &strip{}
		if r.PSNR().N > 0 {
			m.Lines[i].Range.place(over, r.PSNR())
		}
		if from := degradedOf(r); from.N > 0 {
			m.Lines[i].Range.From = over.at(from.Mean)
		}
	}
}

// newGains are the gains of each row over the degraded image, the largest first; nil without any.
func newGains(s aggregate.Summary) *plot {
	gains := make([][]float64, len(s.Rows))
	values := []float64{0}
	for i := range s.Rows {
		for _, m := range s.Rows[i].Finished() {
			if v := m.Of(entry.Gain); statistic.Defined(v) {
				gains[i] = append(gains[i], min(max(v, -maxLevel), maxLevel))
			}
		}
		values = append(values, gains[i]...)
	}
	p := &plot{}
	variants := s.Variants()
	for i := range s.Rows {
		if e := s.Rows[i].Means[entry.Gain]; e.N > 0 {
			values = append(values, reach(e)...)
		}
	}
	over, ticks := newScale(append(values, 1e-3), true)
	p.Ticks = ticks
	for i := range s.Rows {
		r := &s.Rows[i]
		gain := r.Means[entry.Gain]
		if gain.N == 0 {
			continue
		}
		row := strip{Label: r.Label, Detail: detailOf(s, r, variants), number: numberOf(gain, 2, true)}
		row.place(over, gain)
		if all := gains[i]; len(all) >= manyEach {
			row.Bars, p.Binned = bars(all, over), true
		} else {
			for _, v := range all {
				row.Each = append(row.Each, over.at(v))
			}
			p.Each = p.Each || len(all) > 0
		}
		p.Rows = append(p.Rows, row)
	}
	return p.sorted()
}

// detailOf is what tells a row from the others of its task.
func detailOf(s aggregate.Summary, r *aggregate.Row, variants map[sweep.Cell]string) string {
	text := variants[r.Cell]
	if slices.ContainsFunc(s.Rows, func(other aggregate.Row) bool { return other.Method != r.Method }) {
		text = strings.TrimSuffix(r.Method+", "+text, ", ")
	}
	return text
}

// newPairs are the paired differences of the approaches to each problem, the largest first; nil without any.
func newPairs(s aggregate.Summary, tasks operator.Set) *plot {
	p := &plot{}
	values := []float64{0, 1e-3}
	names := make(map[[2]string]bool)
	for _, c := range s.Comparisons {
		values = append(values, reach(c.Difference)...)
		names[[2]string{c.A, c.B}] = true
	}
	over, ticks := newScale(values, true)
	p.Ticks = ticks
	for _, c := range s.Comparisons {
		d := c.Difference
		if d.N == 0 {
			continue
		}
		row := strip{Label: tasks.Label(c.Task), Detail: c.Problem, Title: table.ComparisonSentence(c, s.Oracle), number: numberOf(d, 2, true)}
		if p.Left, p.Right = c.B+" better", c.A+" better"; len(names) > 1 {
			row.Label += ": " + c.A + " − " + c.B
			p.Left, p.Right = "second better", "first better"
		}
		row.place(over, d)
		row.Hollow = d.HalfWidth == nil || math.Abs(d.Mean) <= *d.HalfWidth
		p.Rows = append(p.Rows, row)
	}
	return p.sorted()
}

// sorted sorts the rows by their means and leaves out the last ones of too many; nil without rows.
func (p *plot) sorted() *plot {
	if len(p.Rows) == 0 {
		return nil
	}
	slices.SortStableFunc(p.Rows, func(a, b strip) int {
		if a.order > b.order {
			return -1
		}
		if a.order < b.order {
			return 1
		}
		return 0
	})
	p.More = max(0, len(p.Rows)-maxStrips)
	p.Rows = p.Rows[:len(p.Rows)-p.More]
	var numbers []*number
	for i := range p.Rows {
		numbers = append(numbers, &p.Rows[i].number)
	}
	align(numbers)
	return p
}

// maxLevel is the largest magnitude of a drawn gain, in dB; larger values are drawn there.
const maxLevel = 1000

// bars are the histogram of many values. Their width is the smallest of 0.25, 0.5, 1, 2, 5, 10... dB with which the values fill at most 2·n^(1/3) of
// them (Rice's rule), at least 8 and at most 40.
func bars(values []float64, over scale) []bar {
	limit := min(max(8, int(math.Ceil(2*math.Cbrt(float64(len(values)))))), 40)
	bin := func(v, width float64) int { return int(math.Floor(v / width)) }
	width := 100.0
	for _, w := range []float64{50, 20, 10, 5, 2, 1, 0.5, 0.25} {
		if bin(slices.Max(values), w)-bin(slices.Min(values), w) < limit {
			width = w
		}
	}
	counts, most := make(map[int]int), 0
	for _, v := range values {
		counts[bin(v, width)]++
		most = max(most, counts[bin(v, width)])
	}
	var out []bar
	for b := bin(slices.Min(values), width); b <= bin(slices.Max(values), width); b++ {
		if counts[b] == 0 {
			continue
		}
		left, right := max(float64(b)*width, over.low), min(float64(b+1)*width, over.high)
		share := 45 * float64(counts[b]) / float64(most)
		out = append(out, bar{over.at(left), scale{0, over.high - over.low}.at(right - left), fmt.Sprintf("%.1f%%", 100-share), fmt.Sprintf("%.1f%%", share)})
	}
	return out
}
