package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"ddiff/manifest"
)

func tableText(t *testing.T, s Summary, format Format) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteTable(&out, s, format); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTableGolden(t *testing.T) {
	t.Parallel()
	for format, extension := range map[Format]string{FormatText: "txt", FormatMarkdown: "md", FormatLaTeX: "tex"} {
		for _, rule := range []Rule{RuleFirst, RuleBestPSNR} {
			s := summaryOf(t, tableResults(t), rule)
			golden(t, "table_"+string(rule)+"."+extension, []byte(tableText(t, s, format)))
		}
	}
}

func TestCSVGolden(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := WriteCSV(t.Context(), &out, stream(tableResults(t)), nil); err != nil {
		t.Fatal(err)
	}
	golden(t, "results.csv", out.Bytes())
}

func TestOracleIsMarkedAndNeverBold(t *testing.T) {
	t.Parallel()
	oracle := summaryOf(t, tableResults(t), RuleBestPSNR)
	fair := summaryOf(t, tableResults(t), RuleMinMisfit)
	for format, bold := range map[Format]string{FormatMarkdown: "**", FormatLaTeX: "\\textbf"} {
		if text := tableText(t, fair, format); !strings.Contains(text, bold) {
			t.Errorf("%s: the best method is not bold", format)
		}
		text := tableText(t, oracle, format)
		if strings.Contains(text, bold) {
			t.Errorf("%s: an oracle's figure is bold", format)
		}
		if !strings.Contains(text, "upper bound, not a ranking") {
			t.Errorf("%s: no footnote", format)
		}
	}
	if text := tableText(t, oracle, FormatText); !strings.Contains(text, "30.00*") {
		t.Errorf("no asterisk:\n%s", text)
	}
	if text := tableText(t, fair, FormatText); strings.Contains(text, "*") {
		t.Errorf("asterisk without oracle:\n%s", text)
	}
}

func TestNothingIsBoldWithoutComparison(t *testing.T) {
	t.Parallel()
	score := scored(25, 20, 0.7, 0)
	s := summaryOf(t, []manifest.Result{
		result(t, "hdr", "a", "1.png", 0, score),
		result(t, "hdr", "b", "other.png", 0, score),
	}, RuleFirst)
	if text := tableText(t, s, FormatMarkdown); strings.Contains(text, "**") {
		t.Errorf("bold although the measurements differ:\n%s", text)
	}
}

func TestTableEscapes(t *testing.T) {
	t.Parallel()
	hostile := "x|<b>*_`&\\\x1b[2J\n#%${}~^"
	s := summaryOf(t, []manifest.Result{
		result(t, hostile, hostile, "1.png", 0, scored(25, 20, 0.7, 0)),
		result(t, hostile, "plain", "other.png", 0, scored(25, 20, 0.7, 0)),
	}, RuleFirst)
	text := tableText(t, s, FormatText)
	if strings.ContainsRune(text, '\x1b') || strings.Count(text, "\n") != 6 {
		t.Errorf("text breaks:\n%q", text)
	}
	markdown := tableText(t, s, FormatMarkdown)
	if strings.Contains(markdown, "x|") || strings.Contains(markdown, "\x1b") || !strings.Contains(markdown, `x\|\<b\>`) {
		t.Errorf("markdown breaks:\n%s", markdown)
	}
	latex := tableText(t, s, FormatLaTeX)
	if !strings.Contains(latex, `x|\textless{}b\textgreater{}*\_`+"`"+`\&\textbackslash{}?[2J?\#\%\$\{\}\textasciitilde{}\textasciicircum{} &`) {
		t.Errorf("latex breaks:\n%s", latex)
	}
}

func TestWriteTableRefusesUnknownFormat(t *testing.T) {
	t.Parallel()
	if err := WriteTable(&bytes.Buffer{}, Summary{}, "word"); !errors.Is(err, ErrUnknownFormat) {
		t.Errorf("error = %v, want ErrUnknownFormat", err)
	}
}

func TestDecimalHasNoNegativeZero(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{-0.001: "0.00", 0: "0.00", -0.006: "-0.01", 2.345: "2.35"} {
		if got := decimal(v, 2); got != want {
			t.Errorf("decimal(%g) = %s, want %s", v, got, want)
		}
	}
	if got := signed(-0.001, 2); got != "+0.00" {
		t.Errorf("signed(-0.001) = %s", got)
	}
}

// TestTableStatesFiguresOfFewerImages: one of three images has no truth, so that PSNR and SSIM are means of two.
func TestTableStatesFiguresOfFewerImages(t *testing.T) {
	t.Parallel()
	blind := func(r *manifest.Result) { r.Metrics = manifest.Metrics{Residual: new(0.01)} }
	results := []manifest.Result{
		result(t, "hdr", "ddiff", "a", 0, scored(20, 15, 0.5, 0)), result(t, "hdr", "ddiff", "b", 0, scored(22, 15, 0.5, 0)),
	}
	const note = "Means over fewer than n images"
	for _, format := range []Format{FormatText, FormatMarkdown, FormatLaTeX} {
		var whole, part bytes.Buffer
		if err := WriteTable(&whole, summaryOf(t, results, RuleFirst), format); err != nil {
			t.Fatal(err)
		}
		if err := WriteTable(&part, summaryOf(t, append(results[:2:2], result(t, "hdr", "ddiff", "c", 0, blind)), RuleFirst), format); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(whole.String(), note) {
			t.Errorf("%s has the note without need:\n%s", format, &whole)
		}
		if want := note + ", because the others have no such figure: hdr ddiff: PSNR of 2, baseline of 2, SSIM of 2 of 3 images."; !strings.Contains(part.String(), want) {
			t.Errorf("%s lacks %q:\n%s", format, want, &part)
		}
	}
}

// TestNotesNameTheNoiseLevel: in a sweep over sigma, notes tell the rows of a task apart.
func TestNotesNameTheNoiseLevel(t *testing.T) {
	t.Parallel()
	var results []manifest.Result
	for _, sigma := range []float64{0.02, 0.1} {
		at := func(r *manifest.Result) { r.Item.Sigma = sigma }
		results = append(results, result(t, "hdr", "ddiff", "a", 0, scored(20, 15, 0.5, 0), at), result(t, "hdr", "ddiff", "b", 0, at,
			func(r *manifest.Result) { r.Metrics = manifest.Metrics{Residual: new(0.01)} }))
	}
	text := tableText(t, summaryOf(t, results, RuleFirst), FormatText)
	for _, want := range []string{"hdr, σ 0.02, ddiff: PSNR of 1", "hdr, σ 0.1, ddiff: PSNR of 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
}
