package report

import (
	"io"
	"slices"
	"strings"
)

func writeLaTeX(w io.Writer, s Summary) error {
	var b strings.Builder
	b.WriteString("% needs \\usepackage{booktabs}\n")
	labels, figures := labelColumns(s.Varying), figureColumns(s)
	headings := slices.Concat(labels, figures)
	for i, h := range headings {
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
		headings[i] = h
	}
	b.WriteString("\\begin{tabular}{" + strings.Repeat("l", len(labels)) + strings.Repeat("r", len(figures)) + "}\n\\toprule\n")
	b.WriteString(strings.Join(headings, " & ") + " \\\\\n\\midrule\n")
	marks := best(s)
	for i := range s.Rows {
		r := &s.Rows[i]
		cells := labelCells(s.Varying, r, "--")
		cells[0] = r.Label
		if i > 0 && s.Rows[i-1].Task == r.Task {
			cells[0] = ""
		} else if i > 0 && len(s.Comparisons) > 0 {
			b.WriteString("\\midrule\n")
		}
		for k, text := range cells {
			if text != "--" {
				cells[k] = escapeLaTeX(text)
			}
		}
		for column, text := range figureCells(s, r, "--") {
			text = latexNumber(text)
			if marks[[2]int{i, column}] {
				text = "\\textbf{" + text + "}"
			}
			cells = append(cells, text)
		}
		b.WriteString(strings.Join(cells, " & ") + " \\\\\n")
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n\n")
	for _, note := range append([]string{sharedNote(s)}, notes(s)...) {
		b.WriteString("% " + printable(note) + "\n")
	}
	if s.Oracle {
		b.WriteString("\n{\\footnotesize $^{*}$ " + escapeLaTeX(oracleNote) + ".}\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// latexNumber typesets signs in math mode and the oracle's asterisk as a superscript.
func latexNumber(s string) string {
	number, oracle := strings.CutSuffix(s, "*")
	if oracle {
		return "$" + number + "^{*}$"
	}
	if number != "--" && strings.ContainsAny(number, "+-") {
		return "$" + number + "$"
	}
	return number
}

// escapeLaTeX escapes a name so that LaTeX prints it literally.
func escapeLaTeX(s string) string {
	return strings.NewReplacer(
		`\`, `\textbackslash{}`, `~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`,
		`&`, `\&`, `%`, `\%`, `$`, `\$`, `#`, `\#`, `_`, `\_`, `{`, `\{`, `}`, `\}`,
		`<`, `\textless{}`, `>`, `\textgreater{}`,
	).Replace(printable(s))
}
