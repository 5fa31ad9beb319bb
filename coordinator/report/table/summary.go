package table

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/statistic"
	"ddiff/coordinator/report/sweep"
	"ddiff/restore/metric"
)

// Suspect marks a row of which at least half of the items have warnings.
const Suspect = " †"

// fewer marks a row with fewer images than another row of its problem.
const fewer = " ‡"

// labelColumn is a column of text.
type labelColumn struct {
	heading string
	of      func(r *aggregate.Row) string
}

// labelColumns are the columns with text.
func labelColumns(v aggregate.Varying) []labelColumn {
	sigma := func(r *aggregate.Row) string {
		if r.Size == "" {
			return ""
		}
		return r.Sigma.String()
	}
	var out []labelColumn
	for _, c := range []struct {
		shown bool
		labelColumn
	}{
		{true, labelColumn{"task", func(r *aggregate.Row) string { return r.Task }}},
		{v.Params, labelColumn{"parameters", func(r *aggregate.Row) string { return r.VaryingParams }}},
		{v.Sigma, labelColumn{"sigma", sigma}},
		{v.Photons, labelColumn{"photons", func(r *aggregate.Row) string { return r.PhotonsText() }}},
		{v.Size, labelColumn{"size", func(r *aggregate.Row) string { return r.Size }}},
		{v.Prior, labelColumn{"prior", func(r *aggregate.Row) string { return sweep.ShortPrior(r.Prior) }}},
		{v.Preset, labelColumn{"preset", func(r *aggregate.Row) string { return r.Preset }}},
		{true, labelColumn{"method", func(r *aggregate.Row) string { return r.Method }}},
		{v.Settings, labelColumn{"settings", func(r *aggregate.Row) string { return r.VaryingSettings }}},
		{v.Precision, labelColumn{"precision", (*aggregate.Row).PrecisionText}},
	} {
		if c.shown {
			out = append(out, c.labelColumn)
		}
	}
	return out
}

// figureColumn is a column of numbers.
type figureColumn struct {
	heading string
	text    func(e statistic.Estimate, missing string) string
	of      func(r *aggregate.Row) statistic.Estimate
	// chosen: the rule for runs decides the figure.
	chosen bool
	// merit makes the best figure of a problem bold; nil for none.
	merit func(mean float64) float64
}

func figureColumns(s aggregate.Summary, metrics metric.Set) []figureColumn {
	decimals := func(n int) func(statistic.Estimate, string) string {
		return func(e statistic.Estimate, missing string) string { return Mean(e, n, missing) }
	}
	half := func(e statistic.Estimate, missing string) string { return Half(e, 2, missing) }
	gain := func(e statistic.Estimate, missing string) string { return SignedMean(e, 2, missing) }
	out := []figureColumn{{"n", nil, func(*aggregate.Row) statistic.Estimate { return statistic.Estimate{} }, false, nil}}
	for _, m := range metrics {
		c := figureColumn{m.Title, decimals(m.Decimals), func(r *aggregate.Row) statistic.Estimate { return r.Metrics[m.Name] }, true, nil}
		if m.Better == metric.Higher || m.Better == metric.Lower { // the mean of distances to zero on both sides of it says nothing
			c.merit = m.Merit
		}
		if out = append(out, c); m.Name == metric.NamePSNR {
			out = append(out,
				figureColumn{"±95%", half, (*aggregate.Row).PSNR, false, nil},
				figureColumn{"baseline", decimals(2), func(r *aggregate.Row) statistic.Estimate { return r.Baseline }, false, nil},
				figureColumn{"gain", gain, func(r *aggregate.Row) statistic.Estimate { return r.Gain }, true, nil})
		}
	}
	out = append(out, figureColumn{"s/image", decimals(2), func(r *aggregate.Row) statistic.Estimate { return r.Seconds }, false, nil})
	for _, k := range costColumns(s) {
		out = append(out, figureColumn{costHeadings[k], decimals(0), func(r *aggregate.Row) statistic.Estimate { return r.Cost[selection.CostNames[k]] }, false, nil})
	}
	return out
}

// shownMetrics are the metrics with a column: the main ones, and those whose scores were computed after solving.
func shownMetrics(s aggregate.Summary) metric.Set {
	shown := metric.Builtin().Main()
	for _, name := range s.ScoredLater {
		if _, main := shown.Find(name); !main {
			shown = append(shown, metric.Describe(name))
		}
	}
	return shown
}

// Of returns one line per problem and approach; missing stands for an undefined figure. The first note states the units and what
// all rows share.
func Of(s aggregate.Summary, missing string) Table { return tableOf(s, shownMetrics(s), missing) }

func tableOf(s aggregate.Summary, metrics metric.Set, missing string) Table {
	labels, figures := labelColumns(s.Varying), figureColumns(s, metrics)
	t := Table{Labels: len(labels), Notes: append([]string{sharedNote(s)}, notes(s)...)}
	for _, c := range labels {
		t.Head = append(t.Head, c.heading)
	}
	for _, c := range figures {
		t.Head = append(t.Head, c.heading)
	}
	most := mostImages(s.Rows)
	for i := range s.Rows {
		r := &s.Rows[i]
		var line []Cell
		for _, c := range labels {
			cell := Cell{Text: cmp.Or(c.of(r), missing)}
			if c.heading == "method" && r.Suspect() {
				cell.Text += Suspect
			}
			if c.heading == "method" && r.Images < most[r.Problem] {
				cell.Text += fewer
			}
			line = append(line, cell)
		}
		for _, c := range figures {
			cell := Cell{}
			if e := c.of(r); c.text == nil {
				cell.Text = strconv.Itoa(r.Images)
				cell.Value = cell.Text
			} else {
				cell.Text = c.text(e, missing)
				if e.N > 0 {
					cell.Value = sweep.Exact(e.Mean)
				}
			}
			if c.chosen && r.Marked(s.Oracle) && cell.Text != missing {
				cell.Text += "*"
			}
			line = append(line, cell)
		}
		t.Lines = append(t.Lines, line)
	}
	t.markBest(s, figures)
	return t
}

// mostImages is the largest number of images of a row, by problem.
func mostImages(rows []aggregate.Row) map[sweep.Problem]int {
	most := make(map[sweep.Problem]int)
	for i := range rows {
		most[rows[i].Problem] = max(most[rows[i].Problem], rows[i].Images)
	}
	return most
}

// markBest marks the figures in bold print: of each problem with two or more comparable approaches the highest PSNR and SSIM, ties of the
// printed figures included. A problem with a suspect row has none, nor has a figure that the rows have for different numbers of images.
func (t *Table) markBest(s aggregate.Summary, figures []figureColumn) {
	if s.Oracle {
		return
	}
	refused := make(map[sweep.Problem]bool)
	for i := range s.Rows {
		r := &s.Rows[i]
		refused[r.Problem] = refused[r.Problem] || r.Suspect()
	}
	for _, c := range s.Comparisons {
		refused[c.Of] = refused[c.Of] || c.Refused != "" || c.LeftOut > 0
	}
	lines := t.Lines
	for rows := range sweep.Blocks(s.Rows, func(r aggregate.Row) sweep.Problem { return r.Problem }) {
		for k, c := range figures {
			if len(rows) == 1 || refused[rows[0].Problem] || c.merit == nil {
				continue
			}
			best, first := statistic.Estimate{}, c.of(&rows[0])
			if slices.ContainsFunc(rows, func(r aggregate.Row) bool {
				e := c.of(&r)
				return e.N != first.N || e.Measurements != first.Measurements
			}) {
				continue
			}
			for i := range rows {
				if e := c.of(&rows[i]); e.N > 0 && (best.N == 0 || c.merit(e.Mean) > c.merit(best.Mean)) {
					best = e
				}
			}
			for i := range rows {
				e := c.of(&rows[i])
				lines[i][t.Labels+k].Best = e.N > 0 && c.text(e, "") == c.text(best, "")
			}
		}
		lines = lines[len(rows):]
	}
}

// Write writes one line per problem and approach, with a column for each varying property. Notes below the table state
// how runs were combined, how many items have no figures and how the approaches differ. Markdown and LaTeX print the best
// approach to a problem in bold, unless the ground truth selected the runs or the approaches restored different measurements.
//
// It returns an error that wraps [ErrUnknownFormat], or the error of w.
func Write(w io.Writer, s aggregate.Summary, format Format) error {
	return Layout{}.Write(w, s, format)
}

// typeset adapts a summary's table to LaTeX: σ as a symbol, the tasks' names for people, rules between compared tasks, unless each line
// repeats its task.
func (t *Table) typeset(s aggregate.Summary, repeats bool) {
	for i, h := range t.Head {
		switch h {
		case "sigma":
			t.Head[i] = "σ"
		case "", "n", "±95%", "PSNR", "SSIM", "s/image":
		default:
			if h[0] < utf8.RuneSelf { // the names of others begin with anything
				t.Head[i] = strings.ToUpper(h[:1]) + h[1:]
			}
		}
	}
	for i := range s.Rows {
		t.Lines[i][0].Text = s.Rows[i].Label
		if repeats {
			continue
		}
		if i > 0 && s.Rows[i-1].Task == s.Rows[i].Task {
			t.Lines[i][0].Text = ""
		} else if i > 0 && len(s.Comparisons) > 0 {
			t.Rules = append(t.Rules, i)
		}
	}
	if s.Oracle {
		t.footnote = selection.OracleNote
	}
}

// costHeadings are the headings of tables.
var costHeadings = [selection.CostKinds]string{"network", "backward", "operator", "autoencoder", "its backward"}

// costColumns are the indices of the kinds of work that have a column in a table: none if no row has a known cost, and those of
// an autoencoder only if a row uses one.
func costColumns(s aggregate.Summary) []int {
	var out []int
	for k, name := range selection.CostNames {
		if slices.ContainsFunc(s.Rows, func(r aggregate.Row) bool { return r.Cost[name].N > 0 && (k < 3 || r.Cost[name].Mean > 0) }) {
			out = append(out, k)
		}
	}
	return out
}
