package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
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

// WriteTable writes one line per task and method. Notes below the table state how runs were combined, how many items
// have no figures and how the methods differ. Markdown and LaTeX print the best method of a task in bold, unless the
// ground truth selected the runs or the methods restored different measurements.
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

// tableHeader names the columns of [tableCells]; the first two hold text, the rest numbers.
func tableHeader() []string {
	return []string{
		"task", "method", "n", "PSNR", "±95%", "baseline", "gain", "SSIM", "residual", "s/image",
	}
}

// The columns with numbers.
const (
	columnImages = iota + 2
	columnPSNR
	columnHalf
	columnBaseline
	columnGain
	columnSSIM
	columnResidual
	columnSeconds
)

// tableCells are the texts of one row; missing stands for an undefined figure.
func tableCells(r Row, oracle bool, missing string) []string {
	cells := []string{
		0:              r.Task,
		1:              r.Method,
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
	if oracle {
		for _, column := range []int{columnPSNR, columnGain, columnSSIM, columnResidual} {
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

// best marks the cells in bold print by row and column: of each task with two or more comparable methods the highest PSNR
// and SSIM and the residual nearest to zero, ties included.
func best(s Summary) map[[2]int]bool {
	marks := make(map[[2]int]bool)
	if s.Oracle {
		return marks
	}
	refused := make(map[string]bool)
	for _, c := range s.Comparisons {
		refused[c.Task] = refused[c.Task] || c.Refused != "" || c.LeftOut > 0
	}
	for from := 0; from < len(s.Rows); {
		to := from
		for to < len(s.Rows) && s.Rows[to].Task == s.Rows[from].Task {
			to++
		}
		if to-from > 1 && !refused[s.Rows[from].Task] {
			markBest(marks, s.Rows, from, to, columnPSNR, func(r Row) (float64, int) { return r.PSNR.Mean, r.PSNR.N })
			markBest(marks, s.Rows, from, to, columnSSIM, func(r Row) (float64, int) { return r.SSIM.Mean, r.SSIM.N })
			markBest(marks, s.Rows, from, to, columnResidual, func(r Row) (float64, int) {
				return -math.Abs(r.Residual.Mean), r.Residual.N
			})
		}
		from = to
	}
	return marks
}

func markBest(marks map[[2]int]bool, rows []Row, from, to, column int, merit func(Row) (float64, int)) {
	top := math.Inf(-1)
	for _, r := range rows[from:to] {
		if m, n := merit(r); n > 0 {
			top = max(top, m)
		}
	}
	for i := from; i < to; i++ {
		if m, n := merit(rows[i]); n > 0 && m == top {
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
	out = append(out, fmt.Sprintf("Runs: %s (%s). ±95%%: half-width of the confidence interval of the mean PSNR over the images that have one.",
		s.Rule.sentence(), s.Rule))
	if s.Failed+s.Dead > 0 {
		out = append(out, fmt.Sprintf("%d of %d items have no figures: %d failed, %d dead.",
			s.Failed+s.Dead, s.Items, s.Failed, s.Dead))
	}
	for _, c := range s.Comparisons {
		out = append(out, comparisonSentence(c, s.Oracle))
	}
	return out
}

func comparisonSentence(c Comparison, oracle bool) string {
	if c.Refused != "" {
		return fmt.Sprintf("%s: %s and %s are not compared: %s.", c.Task, c.A, c.B, c.Refused)
	}
	text := fmt.Sprintf("%s: %s − %s = %s dB", c.Task, c.A, c.B, signed(c.Difference.Mean, 2))
	if oracle {
		text += "*"
	}
	if c.Difference.HalfWidth != nil {
		text += fmt.Sprintf(", 95%% interval [%s, %s]",
			signed(c.Difference.Mean-*c.Difference.HalfWidth, 2),
			signed(c.Difference.Mean+*c.Difference.HalfWidth, 2))
	}
	text += fmt.Sprintf(" (paired, n = %d", c.Difference.N)
	if c.LeftOut > 0 {
		text += fmt.Sprintf(", %d left out", c.LeftOut)
	}
	return text + ")."
}
