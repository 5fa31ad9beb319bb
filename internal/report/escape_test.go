package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"ddiff/internal/report/published"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/table"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// hostileNames are commands of LaTeX, Markdown, HTML, spreadsheets and terminals, and honest names that pdfLaTeX lacks.
var hostileNames = []string{
	`\input{x}`, `\write18{touch x}`, `^^5cinput{x}`, "$x_1$", "100% {", "} #1 & ~", `a\\`, `"q"`, "[3em]", "*", "a|b`c`", "<script>alert(1)</script>", "=cmd|' /C calc'!A0", "@SUM(1)", "\t=1",
	"# head", "- list", "1. list", "[x](javascript:y)", "![x](y)", "&lt;", "two\nlines", "x\x1b[2Jy", "\u202etxt", "σ ≤ 0.1 − 2", "e\u0301",
}

// hostileTexts have every hostile name as a task, a method, a parameter, a setting, a preset, a metric and an image, in every format: by its name.
func hostileTexts(t *testing.T) map[string]string {
	t.Helper()
	var results []item.Result
	for i, name := range hostileNames {
		for _, method := range []string{name, "plain"} {
			results = append(results, reporttest.Result(t, name, method, name, 0, reporttest.Scored(20+float64(i), 19, 0.5, 0), func(r *item.Result) {
				r.Item.Params, r.Item.Preset = map[string]float64{name: float64(i)}, name
			}, reporttest.Later(name+"@1", 0.5)))
		}
	}
	s := summaryOf(t, results, selection.First)
	p, err := published.Parse("paper.csv", strings.NewReader("# \\input{x}\ntask,method,psnr,remark\n$x_1$,plain,0x1_0p-2,\\input{x}\na_b,\\input{x},1,\n"))
	reporttest.Must(t, err)
	out := make(map[string]string)
	write := func(name string, format table.Format, to func(w *bytes.Buffer) error) {
		var text bytes.Buffer
		reporttest.Must(t, to(&text))
		out[string(format)+" "+name] = text.String()
	}
	for _, format := range []table.Format{table.FormatText, table.FormatMarkdown, table.FormatLaTeX} {
		write("rows", format, func(w *bytes.Buffer) error { return table.Write(w, s, format) })
		write("by method", format, func(w *bytes.Buffer) error {
			return table.Layout{Methods: true, Columns: append([]string{"images", "PSNR", "±95%"}, hostileNames[0], hostileNames[9])}.Write(w, s, format)
		})
		write("published", format, func(w *bytes.Buffer) error { return published.Write(w, s, p, format) })
	}
	results[0].Item.Name = "＝1+1"
	write("items", "csv", func(w *bytes.Buffer) error { return table.WriteCSV(w, reporttest.Stream(results), nil) })
	if err := table.WriteParquet(&bytes.Buffer{}, reporttest.Stream(results), nil); err == nil || !strings.Contains(err.Error(), "cannot be the name of a column") {
		t.Errorf("Parquet with hostile columns: %v", err)
	}
	return out
}

// TestHostileTables: no name of others has an effect in a table, whatever its format and layout.
func TestHostileTables(t *testing.T) {
	t.Parallel()
	for name, text := range hostileTexts(t) {
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%s has control characters:\n%q", name, text)
		}
		switch format, _, _ := strings.Cut(name, " "); format {
		case "markdown":
			if bare := regexp.MustCompile(`\\[[:punct:]]`).ReplaceAllString(text, ""); regexp.MustCompile("[`<>~#$!&\\[\\]]|(?m)^[-+]|^\\d+[.)]").MatchString(bare) {
				t.Errorf("%s has marks:\n%s", name, bare)
			}
		case "latex":
			if err := checkLaTeX(text); err != nil {
				t.Errorf("%s: %v:\n%s", name, err, text)
			}
			compileLaTeX(t, name, text)
		case "csv":
			rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
			reporttest.Must(t, err)
			for _, cell := range slices.Concat(rows...) {
				if strings.HasPrefix(cell, "=") || strings.HasPrefix(cell, "@") || strings.HasPrefix(cell, "＝") {
					t.Errorf("%s has the formula %s", name, cell)
				}
			}
		}
	}
}

// TestLaTeXOfHonestNames: tasks that differ in a parameter whose name has an underscore make a table that LaTeX sets.
func TestLaTeXOfHonestNames(t *testing.T) {
	t.Parallel()
	var results []item.Result
	for column := range 2 {
		results = append(results, reporttest.Result(t, operator.Demosaic, "ddiff", "a.png", 0, reporttest.Scored(30, 20, 0.8, 0), func(r *item.Result) {
			r.Item.Params = map[string]float64{"red_column": float64(column)}
		}))
	}
	var out bytes.Buffer
	reporttest.Must(t, table.Layout{Methods: true, Columns: []string{"PSNR"}}.Write(&out, summaryOf(t, results, selection.First), table.FormatLaTeX))
	if want := `Method & Demosaicing red\_column=0 PSNR & Demosaicing red\_column=1 PSNR \\`; !strings.Contains(out.String(), want) {
		t.Errorf("no line %s in\n%s", want, &out)
	}
	reporttest.Must(t, checkLaTeX(out.String()))
	compileLaTeX(t, "demosaic", out.String())
}

// compileLaTeX sets a table, where pdfLaTeX and booktabs are installed. [checkLaTeX] reads it everywhere.
func compileLaTeX(t *testing.T, name, text string) {
	t.Helper()
	program, err := exec.LookPath("pdflatex")
	if err != nil || exec.CommandContext(t.Context(), "kpsewhich", "booktabs.sty").Run() != nil {
		return
	}
	dir := t.TempDir()
	document := "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n" + text + "\\end{document}\n"
	reporttest.Must(t, os.WriteFile(filepath.Join(dir, "paper.tex"), []byte(document), 0o600))
	reporttest.Must(t, os.WriteFile(filepath.Join(dir, "x.tex"), []byte(`\errmessage{a name was read as a command}`), 0o600))
	command := exec.CommandContext(t.Context(), program, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex")
	command.Dir = dir
	if said, err := command.CombinedOutput(); err != nil {
		t.Errorf("%s: %v:\n%s\n%s", name, err, said, document)
	}
}

// latexToken matches a token of LaTeX.
var latexToken = regexp.MustCompile(`(?m)%.*\n|\\[a-zA-Z]+|\\.|[{}$&^_#~]|\n|[^\\{}$&^_#~%\n]+`)

// latexCommands are the commands of a table.
var latexCommands = strings.Fields(`\begin \end \toprule \midrule \bottomrule \textbf \footnotesize \pm \sigma \gamma \lambda \mu \leq \geq \infty
	\textbackslash \textasciitilde \textasciicircum \textasciigrave \textbar \char \textdagger \textdaggerdbl \textless \textgreater
	\\ \& \% \$ \# \_ \{ \} \,`)

// checkLaTeX checks that a table has the commands of the program and no others, closes what it opens, and has equally many cells in each line.
func checkLaTeX(text string) error {
	depth, cells, width, math := 0, 0, 0, false
	before, after := "\n", ""
	for _, token := range latexToken.FindAllString(text, -1) {
		switch {
		case token == "\n" || token[0] == '%' && strings.HasSuffix(before, "\n"):
			before = token
			continue // a line end is a space after a command, too
		case token == "{":
			depth++
		case token == "}":
			depth--
		case token == "$":
			math = !math
		case token == "&":
			cells++
		case token == `\\`:
			if width == 0 {
				width = cells
			}
			if cells != width {
				return fmt.Errorf("a line has %d cells, the first %d", cells+1, width+1)
			}
			cells = 0
		case token == "^" && math:
		case token[0] == '\\' && !slices.Contains(latexCommands, token), strings.ContainsAny(token[:1], "%^_#~"):
			return fmt.Errorf("%q after %q", token, after)
		case slices.Contains([]string{`\\`, `\toprule`, `\midrule`, `\bottomrule`}, after) && strings.ContainsAny(token[:1], "[*"):
			return fmt.Errorf("%q belongs to the command before it", token)
		}
		if depth < 0 || (token == `\\` || token == "&") && (depth != 0 || math) {
			return fmt.Errorf("a group or a formula is open at %q after %q", token, after)
		}
		before, after = token, token
	}
	if depth != 0 || math {
		return errors.New("a group or a formula is open at the end")
	}
	return nil
}
