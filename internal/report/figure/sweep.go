package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/chart"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/metric"
)

// The properties of a row that sweeps name by themselves.
const (
	propertySigma   = "sigma"
	propertyPhotons = "photons"
	propertySteps   = "steps"
	// propertySharpen is the parameter that trades PSNR for sharpness.
	propertySharpen = "sharpen"
	// propertySize differs from the parameter size of operators.
	propertySize      = "image_size"
	propertyPrior     = "prior"
	propertyPrecision = "precision"
	// propertyNoise is the setting whose default is the noise level of the measurement.
	propertyNoise = "noise_std"
)

// sweepAxis is a quantity against which a sweep figure shows the PSNR.
type sweepAxis struct {
	// name is that of the figure's file and of the column x_name.
	name, label string
	// property is the assignment that may differ between the points of one line.
	property string
	// value returns the quantity of a row, NaN if it has none.
	value func(r *aggregate.Row) float64
	// given reports that the campaign sets the quantity, so that its values are the ticks, and a line needs two of them.
	given bool
}

// sweepFigures are the figures of PSNR against each quantity that varies in a task: the noise level, numeric parameters and
// settings, seconds, network evaluations and sharpness. evaluations are the means per image.
func sweepFigures(s aggregate.Summary, evaluations map[sweep.Cell]float64) []*statFigure {
	var out []*statFigure
	for same := range sweep.Blocks(s.Rows, func(r aggregate.Row) string { return r.Task }) {
		rows := finishedRows(same)
		for _, axis := range sweepAxes(rows, evaluations) {
			if f := sweepFigure(s, rows, axis); f != nil {
				out = append(out, f)
			}
		}
	}
	return out
}

// finishedRows are the rows with a PSNR.
func finishedRows(rows []aggregate.Row) []*aggregate.Row {
	var out []*aggregate.Row
	for i := range rows {
		if rows[i].Resolved() && rows[i].PSNR().N > 0 {
			out = append(out, &rows[i])
		}
	}
	return out
}

// problemAssignments and approachAssignments are the properties of a row, without task and method.
func problemAssignments(r *aggregate.Row) []string {
	list := append(sweep.Assignments(r.Params), propertySigma+"="+r.Sigma.String(), propertySize+"="+r.Size)
	if r.Photons > 0 {
		list = append(list, propertyPhotons+"="+sweep.Exact(r.Photons))
	}
	return list
}

func approachAssignments(r *aggregate.Row) []string {
	list := append(sweep.Assignments(r.Settings), propertyPrior+"="+sweep.ShortPrior(r.Prior))
	if r.Precision != "" {
		list = append(list, propertyPrecision+"="+string(r.Precision))
	}
	return list
}

// assigned returns the number that the list assigns to the name, NaN without one.
func assigned(list []string, name string) float64 {
	for _, a := range list {
		if n, v, ok := strings.Cut(a, "="); ok && n == name {
			if f, err := strconv.ParseFloat(v, 64); err == nil && !math.IsInf(f, 0) {
				return f
			}
		}
	}
	return math.NaN()
}

// without is the list without the assignments of names.
func without(list []string, names ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(list), func(a string) bool {
		name, _, _ := strings.Cut(a, "=")
		return slices.Contains(names, name)
	}), ";")
}

// sweepAxes are the quantities that may vary between the rows of one task.
func sweepAxes(rows []*aggregate.Row, evaluations map[sweep.Cell]float64) []sweepAxis {
	var out []sweepAxis
	var names []string
	for _, r := range rows {
		for _, a := range slices.Concat(problemAssignments(r), approachAssignments(r)) {
			if name, _, ok := strings.Cut(a, "="); ok && !slices.Contains(names, name) && name != propertyPrior && name != propertySize {
				names = append(names, name)
			}
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		rank := func(s string) int { return 2 - slices.Index([]string{propertySteps, propertySigma}, s) }
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
	label := map[string]string{propertySigma: "noise level σ", propertyPhotons: "photons of a white pixel", propertySteps: "solver steps"}
	for _, name := range names {
		out = append(out, sweepAxis{name: name, label: cmp.Or(label[name], name), property: name, given: true, value: func(r *aggregate.Row) float64 {
			return assigned(slices.Concat(problemAssignments(r), approachAssignments(r)), name)
		}})
	}
	differ := false
	for _, r := range rows {
		n := evaluations[r.Cell]
		differ = differ || n != assigned(approachAssignments(r), propertySteps)
	}
	if differ { // otherwise the figure against the steps shows the same
		out = append(out, sweepAxis{name: "evaluations", label: "network evaluations per image", property: propertySteps, value: func(r *aggregate.Row) float64 {
			if n, known := evaluations[r.Cell]; known {
				return n
			}
			return math.NaN()
		}})
	}
	return append(out, sweepAxis{name: "seconds", label: "solver time per image (s)", property: propertySteps, value: func(r *aggregate.Row) float64 {
		return meanOf(r.Means[entry.Seconds])
	}}, sweepAxis{name: metric.NameSharpness, label: "sharpness (dB, 0: the truth's)", property: propertySharpen, value: func(r *aggregate.Row) float64 {
		return meanOf(r.Means[metric.NameSharpness])
	}})
}

// meanOf is the mean of an estimate, NaN without values.
func meanOf(e statistic.Estimate) float64 {
	if e.N == 0 {
		return math.NaN()
	}
	return e.Mean
}

// sweepLine is one line of a sweep figure: rows that differ in one property only.
type sweepLine struct {
	problem, approach string // without the property
	method            string
	rows              []*aggregate.Row
}

// sweepLines groups the rows, in order of appearance. The setting noise_std may vary along a line over the noise, as it does by default, unless the rows
// have several of one noise level.
func sweepLines(rows []*aggregate.Row, axis sweepAxis) []*sweepLine {
	if axis.property != propertySigma && axis.property != propertyPhotons {
		return linesWithout(rows, axis, axis.property)
	}
	var lines []*sweepLine
	for _, l := range linesWithout(rows, axis, axis.property, propertyNoise) {
		if l.repeats() {
			lines = append(lines, linesWithout(l.rows, axis, axis.property)...)
		} else {
			lines = append(lines, l)
		}
	}
	return lines
}

// linesWithout groups the rows that differ in properties alone.
func linesWithout(rows []*aggregate.Row, axis sweepAxis, properties ...string) []*sweepLine {
	var lines []*sweepLine
	for _, r := range rows {
		if !statistic.Defined(axis.value(r)) {
			continue
		}
		problem, approach := without(problemAssignments(r), properties...), without(approachAssignments(r), properties...)
		i := slices.IndexFunc(lines, func(l *sweepLine) bool {
			return l.problem == problem && l.approach == approach && l.method == r.Method
		})
		if i < 0 {
			i = len(lines)
			lines = append(lines, &sweepLine{problem: problem, approach: approach, method: r.Method})
		}
		lines[i].rows = append(lines[i].rows, r)
	}
	return lines
}

// repeats reports whether two rows of the line differ in noise_std alone.
func (l *sweepLine) repeats() bool {
	seen := make(map[string]bool)
	for _, r := range l.rows {
		rest := without(slices.Concat(problemAssignments(r), approachAssignments(r)), propertyNoise)
		if seen[rest] {
			return true
		}
		seen[rest] = true
	}
	return false
}

// sweepFigure returns nil if the quantity does not vary.
func sweepFigure(s aggregate.Summary, rows []*aggregate.Row, axis sweepAxis) *statFigure {
	lines := sweepLines(rows, axis)
	single := 0
	if axis.given {
		all := len(lines)
		lines = slices.DeleteFunc(lines, func(l *sweepLine) bool { return !l.varies(axis) })
		single = all - len(lines)
	}
	panels := panelsOf(lines)
	if !axis.given {
		panels = slices.DeleteFunc(panels, func(p []*sweepLine) bool { return len(p) == 1 && len(p[0].rows) == 1 })
	}
	if len(panels) == 0 {
		return nil
	}
	task := rows[0]
	f := &statFigure{name: figureSweep + axis.name + "_" + task.Task, Chart: chart.Chart{
		Title: task.Label + ": PSNR against " + axis.label, ShareY: true,
	}}
	shown := panels[:min(maxPanels, len(panels))]
	labels, titles := lineLabels(shown), panelTitles(shown)
	hidden, images, failed := 0, span{}, 0
	for i, of := range shown {
		p := chart.Panel{
			Title: titles[i], XName: axis.name, X: chart.Axis{Label: axis.label, Zero: !axis.given},
			YName: "psnr", Y: chart.Axis{Label: "PSNR (dB)"}, Dodge: axis.given,
		}
		var xs []float64
		for _, l := range of[:min(maxLines, len(of))] {
			line := chart.Series{Label: labels[l], Kind: chart.Markers, Points: l.points(axis)}
			for _, v := range line.Points {
				xs = append(xs, v.X)
				images.add(v.N)
			}
			for _, r := range l.rows {
				failed += r.Failed + r.Dead
			}
			p.Series = append(p.Series, line)
		}
		if axis.name == "seconds" && !s.Rule.Oracle() {
			p.Series = append(p.Series, front(of, axis))
		}
		hidden += max(0, len(of)-maxLines)
		p.X.Log = axis.name != metric.NameSharpness && logarithmic(xs, 8) // decibels have a meaningful zero
		if axis.given {
			p.X.Ticks = fewTicks(xs, p.X.Log)
		}
		f.Panels = append(f.Panels, p)
	}
	f.notes = append(f.notes,
		fmt.Sprintf("Points: means over measurements; bars: 95 %% confidence intervals of the means, each image one cluster; n = %s per point.", images.text("image")),
		runsNote(s.Rule))
	if axis.name == "seconds" {
		f.notes = append(f.notes, "The time is a mean over measurements, on the machines of the campaign.")
		if !s.Rule.Oracle() {
			f.notes = append(f.notes, "Pareto front: the points without another one that takes no more time and has a PSNR as high.")
		}
	}
	if failed > 0 {
		f.notes = append(f.notes, plural(failed, "item")+" failed and not in the means.")
	}
	if single > 0 {
		f.notes = append(f.notes, "Not drawn: "+plural(single, "line")+" with one value of "+axis.name+".")
	}
	f.omit(hidden, "further line")
	f.omit(len(panels)-len(shown), "further problem")
	return f
}

// varies reports whether the line has two values of the quantity.
func (l *sweepLine) varies(axis sweepAxis) bool {
	return slices.ContainsFunc(l.rows, func(r *aggregate.Row) bool { return axis.value(r) != axis.value(l.rows[0]) })
}

// points are the rows of the line in the order of the quantity.
func (l *sweepLine) points(axis sweepAxis) []chart.Point {
	var out []chart.Point
	for _, r := range l.rows {
		out = append(out, interval(axis.value(r), r.PSNR()))
	}
	slices.SortStableFunc(out, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
	return out
}

// front is the line of the points that no other point beats: none takes at most their time and has at least their PSNR.
func front(lines []*sweepLine, axis sweepAxis) chart.Series {
	var all []chart.Point
	for _, l := range lines {
		for _, p := range l.points(axis) {
			if statistic.Defined(p.Y) {
				all = append(all, chart.At(p.X, p.Y))
			}
		}
	}
	slices.SortFunc(all, func(a, b chart.Point) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(b.Y, a.Y)) })
	out := chart.Series{Label: "Pareto front", Kind: chart.Markers}
	best := math.Inf(-1)
	for _, p := range all {
		if p.Y > best {
			out.Points, best = append(out.Points, p), p.Y
		}
	}
	return out
}

// interval is a mean with its confidence interval at x.
func interval(x float64, e statistic.Estimate) chart.Point {
	p := chart.At(x, e.Mean)
	p.N = e.N
	if e.N == 0 {
		p.Y = math.NaN()
	} else if e.HalfWidth != nil {
		p.Low, p.High = e.Mean-*e.HalfWidth, e.Mean+*e.HalfWidth
	}
	return p
}

// panelsOf divides the lines by problem, in order of appearance.
func panelsOf(lines []*sweepLine) [][]*sweepLine {
	var out [][]*sweepLine
	for _, l := range lines {
		i := slices.IndexFunc(out, func(p []*sweepLine) bool { return p[0].problem == l.problem })
		if i < 0 {
			i = len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], l)
	}
	return out
}

// panelTitles are the properties in which the problems differ.
func panelTitles(panels [][]*sweepLine) []string {
	lists := make([]string, len(panels))
	for i, p := range panels {
		lists[i] = p[0].problem
	}
	titles, _ := sweep.VaryingAssignments(lists)
	for i, t := range titles {
		titles[i] = strings.ReplaceAll(t, propertySigma+"=", "σ=")
	}
	return titles
}

// lineLabels are the methods, with the settings in which the lines of one method differ.
func lineLabels(panels [][]*sweepLine) map[*sweepLine]string {
	methods := make(map[string][]*sweepLine)
	for _, p := range panels {
		for _, l := range p {
			methods[l.method] = append(methods[l.method], l)
		}
	}
	out := make(map[*sweepLine]string)
	for method, lines := range methods {
		lists := make([]string, len(lines))
		for i, l := range lines {
			lists[i] = l.approach
		}
		varying, _ := sweep.VaryingAssignments(lists)
		for i, l := range lines {
			out[l] = strings.TrimSpace(method + " " + varying[i])
		}
	}
	return out
}

// logarithmic reports whether the values are positive and span at least the factor.
func logarithmic(values []float64, factor float64) bool {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if statistic.Defined(v) && !math.IsInf(v, 0) {
			low, high = min(low, v), max(high, v)
		}
	}
	return low > 0 && high >= factor*low
}

// fewTicks returns the distinct values if they have room on an axis.
func fewTicks(values []float64, log bool) []float64 {
	values = slices.Compact(slices.Sorted(slices.Values(values)))
	if len(values) < 2 || len(values) > 8 {
		return nil
	}
	place := func(v float64) float64 {
		if log {
			return math.Log(v)
		}
		return v
	}
	low, high := place(values[0]), place(values[len(values)-1])
	const room = 1.0 / 9
	for i := 1; i < len(values); i++ {
		if place(values[i])-place(values[i-1]) < room*(high-low) {
			return nil
		}
	}
	return values
}

// runsNote states the rule that combined the runs.
func runsNote(rule selection.Rule) string {
	return fmt.Sprintf("Runs: %s (%s).", rule.Sentence(), rule)
}

// span is the range of a count.
type span struct {
	low, high int
	any       bool
}

func (s *span) add(n int) {
	if !s.any {
		s.low, s.high, s.any = n, n, true
	}
	s.low, s.high = min(s.low, n), max(s.high, n)
}

// text states the range with its unit.
func (s span) text(unit string) string {
	text := plural(s.high, unit)
	if s.low != s.high {
		text = strconv.Itoa(s.low) + " to " + text
	}
	return text
}
