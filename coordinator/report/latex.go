package report

import (
	"io"
	"strings"
)

func writeLaTeX(w io.Writer, s Summary) error {
	var b strings.Builder
	b.WriteString("% needs \\usepackage{booktabs}\n")
	b.WriteString("\\begin{tabular}{ll" + strings.Repeat("r", len(tableHeader())-2) + "}\n\\toprule\n")
	b.WriteString("Task & Method & $n$ & PSNR & $\\pm$95\\,\\% & Baseline & Gain & SSIM & Residual & s/image \\\\\n\\midrule\n")
	marks := best(s)
	for i, r := range s.Rows {
		cells := tableCells(r, s.Oracle, "--")
		cells[0] = r.Label
		if i > 0 && s.Rows[i-1].Task == r.Task {
			cells[0] = ""
		} else if i > 0 && len(s.Comparisons) > 0 {
			b.WriteString("\\midrule\n")
		}
		for column, text := range cells {
			if column < 2 {
				text = escapeLaTeX(text)
			} else {
				text = latexNumber(text)
			}
			if marks[[2]int{i, column}] {
				text = "\\textbf{" + text + "}"
			}
			if column > 0 {
				b.WriteString(" & ")
			}
			b.WriteString(text)
		}
		b.WriteString(" \\\\\n")
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n\n")
	for _, note := range notes(s) {
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
