package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"ddiff/restore/metric"
)

// labelColumn is a column of text.
type labelColumn struct {
	heading string
	of      func(r *Row) string
}

// labelColumns are the columns with text.
func labelColumns(v Varying) []labelColumn {
	sigma := func(r *Row) string {
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
		{true, labelColumn{"task", func(r *Row) string { return r.Task }}},
		{v.Params, labelColumn{"parameters", func(r *Row) string { return r.varyingParams }}},
		{v.Sigma, labelColumn{"sigma", sigma}},
		{v.Photons, labelColumn{"photons", func(r *Row) string { return r.photonsText() }}},
		{v.Size, labelColumn{"size", func(r *Row) string { return r.Size }}},
		{v.Prior, labelColumn{"prior", func(r *Row) string { return shortPrior(r.Prior) }}},
		{v.Preset, labelColumn{"preset", func(r *Row) string { return r.Preset }}},
		{true, labelColumn{"method", func(r *Row) string { return r.Method }}},
		{v.Settings, labelColumn{"settings", func(r *Row) string { return r.varyingSettings }}},
		{v.Precision, labelColumn{"precision", (*Row).precisionText}},
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
	text    func(e Estimate, missing string) string
	of      func(r *Row) Estimate
	// chosen: the rule for runs decides the figure.
	chosen bool
	// merit makes the best figure of a problem bold; nil for none.
	merit func(mean float64) float64
}

func figureColumns(s Summary) []figureColumn {
	decimals := func(n int) func(Estimate, string) string {
		return func(e Estimate, missing string) string { return mean(e, n, missing) }
	}
	half := func(e Estimate, missing string) string {
		if e.HalfWidth == nil {
			return missing
		}
		return decimal(*e.HalfWidth, 2)
	}
	itself := func(mean float64) float64 { return mean }
	toZero := func(mean float64) float64 { return -math.Abs(mean) }
	out := []figureColumn{
		{"n", nil, func(*Row) Estimate { return Estimate{} }, false, nil},
		{"PSNR", decimals(2), func(r *Row) Estimate { return r.PSNR }, true, itself},
		{"±95%", half, func(r *Row) Estimate { return r.PSNR }, false, nil},
		{"baseline", decimals(2), func(r *Row) Estimate { return r.Baseline }, false, nil},
		{"gain", gain, func(r *Row) Estimate { return r.Gain }, true, nil},
		{"SSIM", decimals(3), func(r *Row) Estimate { return r.SSIM }, true, itself},
		{"residual", decimals(4), func(r *Row) Estimate { return r.Residual }, true, toZero},
		{"s/image", decimals(2), func(r *Row) Estimate { return r.Seconds }, false, nil},
	}
	for _, name := range extraColumns(s) {
		out = append(out, figureColumn{name, decimals(4), func(r *Row) Estimate { return extraFigure(r, name) }, true, nil})
	}
	for _, k := range costColumns(s) {
		out = append(out, figureColumn{costHeadings[k], decimals(0), func(r *Row) Estimate { return r.Cost[costNames[k]] }, false, nil})
	}
	return out
}

// extraColumns are the metrics with columns after the fixed ones: those whose scores were computed after solving.
func extraColumns(s Summary) []string {
	return slices.DeleteFunc(slices.Clone(s.scoredLater), func(name string) bool { return name == "psnr" || name == "ssim" || name == "residual" })
}

// extraFigure is the estimate in one of the extraColumns.
func extraFigure(r *Row, name string) Estimate {
	switch name {
	case "psnr_y":
		return r.PSNRLuma
	case "haarpsi":
		return r.HaarPSI
	}
	return r.Metrics[name]
}

// TableOf returns one line per problem and approach; missing stands for an undefined figure. The first note states the units and what
// all rows share.
func TableOf(s Summary, missing string) Table {
	labels, figures := labelColumns(s.Varying), figureColumns(s)
	t := Table{Labels: len(labels), Notes: append([]string{sharedNote(s)}, notes(s)...)}
	for _, c := range labels {
		t.Head = append(t.Head, c.heading)
	}
	for _, c := range figures {
		t.Head = append(t.Head, c.heading)
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		var line []TableCell
		for _, c := range labels {
			line = append(line, TableCell{Text: cmp.Or(c.of(r), missing)})
		}
		for _, c := range figures {
			cell := TableCell{}
			if e := c.of(r); c.text == nil {
				cell.Text = strconv.Itoa(r.Images)
				cell.Value = cell.Text
			} else {
				cell.Text = c.text(e, missing)
				if e.N > 0 {
					cell.Value = exact(e.Mean)
				}
			}
			if c.chosen && r.marked(s.Oracle) && cell.Text != missing {
				cell.Text += "*"
			}
			line = append(line, cell)
		}
		t.Lines = append(t.Lines, line)
	}
	t.markBest(s, figures)
	return t
}

// markBest marks the figures in bold print: of each problem with two or more comparable approaches the highest PSNR and SSIM and the
// residual nearest to zero, ties included.
func (t *Table) markBest(s Summary, figures []figureColumn) {
	if s.Oracle {
		return
	}
	refused := make(map[Problem]bool)
	for _, c := range s.Comparisons {
		refused[c.problem] = refused[c.problem] || c.Refused != "" || c.LeftOut > 0
	}
	for from := 0; from < len(s.Rows); {
		to := from
		for to < len(s.Rows) && s.Rows[to].Problem == s.Rows[from].Problem {
			to++
		}
		for k, c := range figures {
			if to-from == 1 || refused[s.Rows[from].Problem] || c.merit == nil {
				continue
			}
			top := math.Inf(-1)
			for i := from; i < to; i++ {
				if e := c.of(&s.Rows[i]); e.N > 0 {
					top = max(top, c.merit(e.Mean))
				}
			}
			for i := from; i < to; i++ {
				e := c.of(&s.Rows[i])
				t.Lines[i][t.Labels+k].Best = e.N > 0 && c.merit(e.Mean) == top
			}
		}
		from = to
	}
}

// WriteTable writes one line per problem and approach, with a column for each varying property. Notes below the table state
// how runs were combined, how many items have no figures and how the approaches differ. Markdown and LaTeX print the best
// approach to a problem in bold, unless the ground truth selected the runs or the approaches restored different measurements.
//
// It returns an error that wraps [ErrUnknownFormat], or the error of w.
func WriteTable(w io.Writer, s Summary, format Format) error {
	t := TableOf(s, format.missing())
	if format == FormatLaTeX {
		t.typeset(s)
	}
	return t.Write(w, format, "table")
}

// typeset adapts a summary's table to LaTeX: headings as symbols, the tasks' names for people, rules between compared tasks.
func (t *Table) typeset(s Summary) {
	for i, h := range t.Head {
		switch h {
		case "n":
			h = "$n$"
		case "±95%":
			h = `$\pm$95\,\%`
		case "sigma":
			h = `$\sigma$`
		case "PSNR", "SSIM", "s/image":
		default:
			h = escapeLaTeX(strings.ToUpper(h[:1]) + h[1:])
		}
		t.Head[i] = h
	}
	for i := range s.Rows {
		t.Lines[i][0].Text = s.Rows[i].Label
		if i > 0 && s.Rows[i-1].Task == s.Rows[i].Task {
			t.Lines[i][0].Text = ""
		} else if i > 0 && len(s.Comparisons) > 0 {
			t.Rules = append(t.Rules, i)
		}
	}
	if s.Oracle {
		t.footnote = oracleNote
	}
}

func mean(e Estimate, decimals int, missing string) string {
	if e.N == 0 {
		return missing
	}
	return decimal(e.Mean, decimals)
}

// gain always has a sign.
func gain(e Estimate, missing string) string {
	if e.N == 0 {
		return missing
	}
	return signed(e.Mean, 2)
}

// decimal never prints a negative zero.
func decimal(v float64, decimals int) string {
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if s[0] == '-' {
		if rounded, err := strconv.ParseFloat(s, 64); err == nil && rounded == 0 {
			return s[1:]
		}
	}
	return s
}

func signed(v float64, decimals int) string {
	s := decimal(v, decimals)
	if s[0] != '-' {
		return "+" + s
	}
	return s
}

// notes are the sentences below a table.
func notes(s Summary) []string {
	var out []string
	if s.Oracle {
		out = append(out, "* "+oracleNote+".")
	}
	out = append(out, fmt.Sprintf("Runs: %s (%s). ±95%%: half-width of the confidence interval of the mean PSNR; n images, each one cluster.",
		s.Rule.sentence(), s.Rule))
	if s.Failed+s.Dead > 0 {
		out = append(out, fmt.Sprintf("%d of %d items have no figures: %d failed, %d dead.",
			s.Failed+s.Dead, s.Items, s.Failed, s.Dead))
	}
	out = append(out, warningNote(s)...)
	out = append(out, costNote(s)...)
	out = append(out, partialNote(s)...)
	out = append(out, precisionNote(s)...)
	if len(s.scoredLater) > 0 {
		var ids []string
		for _, name := range s.scoredLater {
			ids = append(ids, s.MetricIDs[name])
		}
		for _, from := range []struct {
			images    string
			unclipped bool
		}{{"the stored 8-bit pictures", false}, {"the stored unclipped images", true}} {
			some := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return metric.Unclipped(id) != from.unclipped })
			if len(some) > 0 {
				out = append(out, "Scores computed after solving, from "+from.images+": "+strings.Join(some, ", ")+".")
			}
		}
	}
	out = append(out, s.unscored...)
	out = append(out, tuningNotes(s.Rows, s.Varying)...)
	if s.Others > 0 {
		number := strconv.Itoa(s.Others)
		if s.MoreOthers {
			number = "at least " + number
		}
		out = append(out, "The output also holds "+number+" results of other campaigns; they are not in this report.")
	}
	for _, c := range s.Comparisons[:min(maxNotedPairs, len(s.Comparisons))] {
		out = append(out, comparisonSentence(c, s.Oracle))
	}
	if more := len(s.Comparisons) - maxNotedPairs; more > 0 {
		out = append(out, fmt.Sprintf("%d more comparisons are in %s.", more, KeySummaryJSON))
	}
	return out
}

// maxPartialRows bounds the rows that the note on partial figures names.
const maxPartialRows = 5

// partialNote names the figures that exist for some images of a row only, such as PSNR where some images have no truth.
func partialNote(s Summary) []string {
	var rows []string
	for i := range s.Rows {
		r := &s.Rows[i]
		var parts []string
		add := func(name string, e Estimate) {
			if e.N > 0 && e.N < r.Images {
				parts = append(parts, fmt.Sprintf("%s of %d", name, e.N))
			}
		}
		add("PSNR", r.PSNR)
		add("baseline", r.Baseline)
		add("SSIM", r.SSIM)
		add("residual", r.Residual)
		for _, name := range extraColumns(s) {
			add(name, extraFigure(r, name))
		}
		if len(parts) > 0 {
			rows = append(rows, fmt.Sprintf("%s: %s of %d images", s.Varying.rowName(r), strings.Join(parts, ", "), r.Images))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	text := "Means over fewer than n images, because the others have no such figure: " + strings.Join(rows[:min(len(rows), maxPartialRows)], "; ")
	if more := len(rows) - maxPartialRows; more > 0 {
		text += fmt.Sprintf("; and %d more rows", more)
	}
	return []string{text + "."}
}

// maxNotedPairs bounds the comparisons below a table.
const maxNotedPairs = 40

func comparisonSentence(c Comparison, oracle bool) string {
	where := c.Task
	if c.Problem != "" {
		where += ", " + c.Problem
	}
	if c.Refused != "" {
		return fmt.Sprintf("%s: %s and %s are not compared: %s.", where, c.A, c.B, c.Refused)
	}
	text := fmt.Sprintf("%s: %s − %s = %s dB", where, c.A, c.B, signed(c.Difference.Mean, 2))
	if oracle {
		text += "*"
	}
	if c.Difference.HalfWidth != nil {
		text += fmt.Sprintf(", 95%% interval [%s, %s]",
			signed(c.Difference.Mean-*c.Difference.HalfWidth, 2),
			signed(c.Difference.Mean+*c.Difference.HalfWidth, 2))
	}
	text += fmt.Sprintf(" (paired, n = %d", c.Difference.N)
	if c.PHolm != nil && !oracle {
		text += fmt.Sprintf(", Wilcoxon p = %s after Holm", strconv.FormatFloat(*c.PHolm, 'g', 2, 64))
	}
	if c.LeftOut > 0 {
		text += fmt.Sprintf(", %d left out", c.LeftOut)
	}
	return text + ")."
}
