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

// Format is a text format of the summary's table.
type Format string

// The formats of [WriteTable].
const (
	// FormatText is aligned plain text for a terminal.
	FormatText Format = "text"
	// FormatMarkdown is a GitHub-flavoured pipe table.
	FormatMarkdown Format = "markdown"
	// FormatLaTeX is a tabular environment; it needs the booktabs package.
	FormatLaTeX Format = "latex"
)

// WriteTable writes one line per problem and approach, with a column for each varying property. Notes below the table state
// how runs were combined, how many items have no figures and how the approaches differ. Markdown and LaTeX print the best
// approach to a problem in bold, unless the ground truth selected the runs or the approaches restored different measurements.
//
// It returns an error that wraps [ErrUnknownFormat], or the error of w.
func WriteTable(w io.Writer, s Summary, format Format) error {
	var err error
	switch format {
	case FormatText:
		err = writeText(w, s)
	case FormatMarkdown:
		err = writeMarkdown(w, s)
	case FormatLaTeX:
		err = writeLaTeX(w, s)
	default:
		return fmt.Errorf("write table as %q: %w; use %s, %s or %s",
			format, ErrUnknownFormat, FormatText, FormatMarkdown, FormatLaTeX)
	}
	if err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// labelColumns returns the headings of the columns with text.
func labelColumns(v Varying) []string {
	columns := []string{"task"}
	for _, c := range []struct {
		shown bool
		name  string
	}{
		{v.Params, "parameters"}, {v.Sigma, "sigma"}, {v.Photons, "photons"}, {v.Size, "size"}, {v.Prior, "prior"}, {v.Preset, "preset"},
		{true, "method"}, {v.Settings, "settings"}, {v.Precision, "precision"},
	} {
		if c.shown {
			columns = append(columns, c.name)
		}
	}
	return columns
}

// labelCells are the texts of a row below labelColumns.
func labelCells(v Varying, r *Row, missing string) []string {
	cells := []string{r.Task}
	sigma := missing
	if r.Size != "" {
		sigma = r.Sigma.String()
	}
	for _, c := range []struct {
		shown bool
		text  string
	}{
		{v.Params, r.varyingParams}, {v.Sigma, sigma}, {v.Photons, r.photonsText()}, {v.Size, r.Size}, {v.Prior, shortPrior(r.Prior)}, {v.Preset, r.Preset},
		{true, r.Method}, {v.Settings, r.varyingSettings}, {v.Precision, r.precisionText()},
	} {
		if c.shown {
			cells = append(cells, cmp.Or(c.text, missing))
		}
	}
	return cells
}

// figureColumns returns the headings of the columns with numbers.
func figureColumns(s Summary) []string {
	return slices.Concat([]string{"n", "PSNR", "±95%", "baseline", "gain", "SSIM", "residual", "s/image"}, s.extraColumns(), s.costHeadings())
}

// extraColumns are the metrics with columns after the fixed ones: those whose scores were computed after solving.
func (s *Summary) extraColumns() []string {
	return slices.DeleteFunc(slices.Clone(s.scoredLater), func(name string) bool { return name == "psnr" || name == "ssim" || name == "residual" })
}

// extraFigure is the estimate in one of the extraColumns.
func (r *Row) extraFigure(name string) Estimate {
	switch name {
	case "psnr_y":
		return r.PSNRLuma
	case "haarpsi":
		return r.HaarPSI
	}
	return r.Metrics[name]
}

// The columns with numbers.
const (
	columnImages = iota
	columnPSNR
	columnHalf
	columnBaseline
	columnGain
	columnSSIM
	columnResidual
	columnSeconds
)

// figureCells are the texts of a row below figureColumns; missing stands for an undefined figure.
func figureCells(s Summary, r *Row, missing string) []string {
	cells := []string{
		columnImages:   strconv.Itoa(r.Images),
		columnPSNR:     mean(r.PSNR, 2, missing),
		columnHalf:     missing,
		columnBaseline: mean(r.Baseline, 2, missing),
		columnGain:     gain(r.Gain, missing),
		columnSSIM:     mean(r.SSIM, 3, missing),
		columnResidual: mean(r.Residual, 4, missing),
		columnSeconds:  mean(r.Seconds, 2, missing),
	}
	if r.PSNR.HalfWidth != nil {
		cells[columnHalf] = decimal(*r.PSNR.HalfWidth, 2)
	}
	chosen := []int{columnPSNR, columnGain, columnSSIM, columnResidual}
	for _, name := range s.extraColumns() {
		chosen = append(chosen, len(cells))
		cells = append(cells, mean(r.extraFigure(name), 4, missing))
	}
	for _, k := range s.costColumns() {
		cells = append(cells, mean(r.Cost[costNames[k]], 0, missing))
	}
	if r.marked(s.Oracle) {
		for _, column := range chosen {
			if cells[column] != missing {
				cells[column] += "*"
			}
		}
	}
	return cells
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

// best marks the cells in bold print by row and column: of each problem with two or more comparable approaches the highest
// PSNR and SSIM and the residual nearest to zero, ties included.
func best(s Summary) map[[2]int]bool {
	marks := make(map[[2]int]bool)
	if s.Oracle {
		return marks
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
		if to-from > 1 && !refused[s.Rows[from].Problem] {
			markBest(marks, s.Rows, from, to, columnPSNR, func(r *Row) (float64, int) { return r.PSNR.Mean, r.PSNR.N })
			markBest(marks, s.Rows, from, to, columnSSIM, func(r *Row) (float64, int) { return r.SSIM.Mean, r.SSIM.N })
			markBest(marks, s.Rows, from, to, columnResidual, func(r *Row) (float64, int) {
				return -math.Abs(r.Residual.Mean), r.Residual.N
			})
		}
		from = to
	}
	return marks
}

func markBest(marks map[[2]int]bool, rows []Row, from, to, column int, merit func(*Row) (float64, int)) {
	top := math.Inf(-1)
	for i := from; i < to; i++ {
		if m, n := merit(&rows[i]); n > 0 {
			top = max(top, m)
		}
	}
	for i := from; i < to; i++ {
		if m, n := merit(&rows[i]); n > 0 && m == top {
			marks[[2]int{i, column}] = true
		}
	}
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
		for _, name := range s.extraColumns() {
			add(name, r.extraFigure(name))
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
