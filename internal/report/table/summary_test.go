package table_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/table"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

func tableText(t *testing.T, s aggregate.Summary, format table.Format) string {
	t.Helper()
	var out bytes.Buffer
	reporttest.Must(t, table.Write(&out, s, format))
	return out.String()
}

func TestTableGolden(t *testing.T) {
	t.Parallel()
	for format, extension := range map[table.Format]string{table.FormatText: "txt", table.FormatMarkdown: "md", table.FormatLaTeX: "tex"} {
		for _, rule := range []selection.Rule{selection.First, selection.BestPSNR} {
			s := summaryOf(t, reporttest.TableResults(t), rule)
			reporttest.Golden(t, "table_"+string(rule)+"."+extension, []byte(tableText(t, s, format)))
		}
	}
}

func TestCSVGolden(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	reporttest.Must(t, table.WriteCSV(&out, reporttest.Stream(reporttest.TableResults(t)), nil))
	reporttest.Golden(t, "results.csv", out.Bytes())
}

func TestNothingIsBoldWithoutComparison(t *testing.T) {
	t.Parallel()
	score := reporttest.Scored(25, 20, 0.7, 0)
	s := summaryOf(t, []item.Result{
		reporttest.Result(t, "hdr", "a", "1.png", 0, score),
		reporttest.Result(t, "hdr", "b", "other.png", 0, score),
	}, selection.First)
	if text := tableText(t, s, table.FormatMarkdown); strings.Contains(text, "**") {
		t.Errorf("bold although the measurements differ:\n%s", text)
	}
}

// TestEqualFiguresAreBold: figures that are printed equal are both bold, the higher one of others alone.
func TestEqualFiguresAreBold(t *testing.T) {
	t.Parallel()
	results := []item.Result{
		reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(25.004, 20, 0.7004, 0)), reporttest.Result(t, "hdr", "dpir", "a", 0, reporttest.Scored(25.001, 20, 0.7006, 0)),
	}
	text := tableText(t, summaryOf(t, results, selection.First), table.FormatMarkdown)
	if strings.Count(text, "**25.00**") != 2 || strings.Count(text, "**0.701**") != 1 || strings.Contains(text, "**0.700**") {
		t.Errorf("PSNR 25.00 and 25.00, SSIM 0.700 and 0.701:\n%s", text)
	}
}

// A mean over fewer images than that of another row is not the best.
func TestFiguresOfFewerImagesAreNotBold(t *testing.T) {
	t.Parallel()
	s := summaryOf(t, []item.Result{
		reporttest.Result(t, "hdr", "a", "1.png", 0, reporttest.Scored(25, 20, 0.7, 0)), reporttest.Result(t, "hdr", "a", "2.png", 0, reporttest.Scored(25, 20, 0.7, 0)),
		reporttest.Result(t, "hdr", "b", "1.png", 0, reporttest.Scored(24, 20, 0.9, 0)),
		reporttest.Result(t, "hdr", "b", "2.png", 0, reporttest.Scored(24, 20, 0, 0), func(r *item.Result) { delete(r.Metrics, "ssim") }),
	}, selection.First)
	text := tableText(t, s, table.FormatMarkdown)
	if reporttest.Contains(t, text, "**25.00**", "0.900"); strings.Contains(text, "**0.900**") {
		t.Errorf("the SSIM of one image is bold beside that of two:\n%s", text)
	}
}

func TestWriteTableRefusesUnknownFormat(t *testing.T) {
	t.Parallel()
	if err := table.Write(&bytes.Buffer{}, aggregate.Summary{}, "word"); !errors.Is(err, table.ErrUnknownFormat) {
		t.Errorf("error = %v, want ErrUnknownFormat", err)
	}
}

func TestDecimalHasNoNegativeZero(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{-0.001: "0.00", 0: "0.00", -0.006: "-0.01", 2.345: "2.35"} {
		if got := table.Decimal(v, 2); got != want {
			t.Errorf("decimal(%g) = %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{-0.001: "-0.00", 0: "+0.00", 0.001: "+0.00", -0.006: "-0.01", 2.345: "+2.35"} {
		if got := table.Signed(v, 2); got != want {
			t.Errorf("signed(%g) = %s, want %s", v, got, want)
		}
	}
	half := 0.25
	if got := table.Interval(statistic.Estimate{N: 2, Mean: -0.251, HalfWidth: &half}, 2); got != "[-0.50, -0.00]" {
		t.Errorf("interval below zero = %s", got)
	}
}

// TestTableStatesFiguresOfFewerImages: one of three images has no truth, so that PSNR and SSIM are means of two.
func TestTableStatesFiguresOfFewerImages(t *testing.T) {
	t.Parallel()
	blind := func(r *item.Result) { r.Metrics = item.Metrics{"residual": 0.01} }
	results := []item.Result{
		reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 15, 0.5, 0)), reporttest.Result(t, "hdr", "ddiff", "b", 0, reporttest.Scored(22, 15, 0.5, 0)),
	}
	const note = "Means over fewer images"
	for _, format := range []table.Format{table.FormatText, table.FormatMarkdown, table.FormatLaTeX} {
		var whole, part bytes.Buffer
		reporttest.Must(t, table.Write(&whole, summaryOf(t, results, selection.First), format))
		reporttest.Must(t, table.Write(&part, summaryOf(t, append(results[:2:2], reporttest.Result(t, "hdr", "ddiff", "c", 0, blind)), selection.First), format))
		if strings.Contains(whole.String(), note) {
			t.Errorf("%s has the note without need:\n%s", format, &whole)
		}
		if want := note + ", because the others have no such figure: hdr ddiff: PSNR of 2, degraded of 2, SSIM of 2 of 3 images."; !strings.Contains(part.String(), want) {
			t.Errorf("%s lacks %q:\n%s", format, want, &part)
		}
	}
}

// An interrupted campaign says how much of it is missing, and marks the rows with fewer images than others of their problem.
func TestTableOfAnInterruptedCampaign(t *testing.T) {
	t.Parallel()
	results := []item.Result{
		reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 15, 0.5, 0)), reporttest.Result(t, "hdr", "ddiff", "b", 0, reporttest.Scored(22, 15, 0.5, 0)),
		reporttest.Result(t, "hdr", "dps", "a", 0, reporttest.Scored(19, 15, 0.5, 0)),
	}
	s := summaryOf(t, results, selection.First)
	s.Planned = 8
	reporttest.Contains(t, tableText(t, s, table.FormatMarkdown), "5 of 8 planned items have no outcome yet.", "| dps ‡ | 1 |", "| ddiff | 2 |", "‡ Fewer images")
	reporttest.Contains(t, tableText(t, s, table.FormatLaTeX), `dps \textdaggerdbl{} & 1 &`)
	whole := tableText(t, summaryOf(t, append(results, reporttest.Result(t, "hdr", "dps", "b", 0, reporttest.Scored(19, 15, 0.5, 0))), selection.First), table.FormatText)
	if strings.Contains(whole, "‡") || strings.Contains(whole, "planned") {
		t.Errorf("a complete campaign has the marks of an interrupted one:\n%s", whole)
	}
}

// TestNotesNameTheNoiseLevel: in a sweep over sigma, notes tell the rows of a task apart.
func TestNotesNameTheNoiseLevel(t *testing.T) {
	t.Parallel()
	var results []item.Result
	for _, sigma := range []float64{0.02, 0.1} {
		at := func(r *item.Result) { r.Item.Sigma = sigma }
		results = append(results, reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 15, 0.5, 0), at), reporttest.Result(t, "hdr", "ddiff", "b", 0, at,
			func(r *item.Result) { r.Metrics = item.Metrics{"residual": 0.01} }))
	}
	text := tableText(t, summaryOf(t, results, selection.First), table.FormatText)
	reporttest.Contains(t, text, "hdr, σ 0.02, ddiff: PSNR of 1, degraded of 1", "hdr, σ 0.1, ddiff: PSNR of 1, degraded of 1")
}

func summaryOf(t *testing.T, results []item.Result, rule selection.Rule) aggregate.Summary {
	t.Helper()
	s, err := aggregate.Summarize(reporttest.Stream(results), nil, rule, nil)
	reporttest.Must(t, err)
	return s
}

// costly gives a result a cost.
func costly(c item.Cost) func(*item.Result) {
	return func(r *item.Result) { r.Cost = c }
}

// The tables have the mean cost per image, of all runs where the rule chooses among them, and no column for what no row
// knows or uses.
func TestCostInTables(t *testing.T) {
	t.Parallel()
	network := item.Cost{Network: 100, Operator: 300}
	latent := item.Cost{Network: 10, NetworkBackward: 10, Operator: 20, Autoencoder: 11, AutoencoderBackward: 10}
	score := reporttest.Scored(25, 20, 0.7, 0.001)
	results := func(costs ...item.Cost) (out []item.Result) {
		for i, c := range costs {
			out = append(out, reporttest.Result(t, "hdr", "other", "a", i, score, costly(c)))
		}
		return out
	}
	for name, c := range map[string]struct {
		results []item.Result
		rule    selection.Rule
		columns string
		cells   string
	}{
		"pixels":  {results(network), selection.First, "network backward operator", "100 0 300"},
		"latents": {results(latent), selection.First, "network backward operator autoencoder its backward", "10 10 20 11 10"},
		"first":   {results(network, network), selection.First, "network backward operator", "100 0 300"},
		"mean":    {results(network, network), selection.Mean, "network backward operator", "100 0 300"},
		"chosen":  {results(network, network), selection.BestPSNR, "network backward operator", "200 0 600"},
		"unknown": {results(item.Cost{}), selection.First, "", ""},
		"partly":  {results(network, item.Cost{}), selection.BestPSNR, "", ""},
	} {
		s, err := aggregate.Summarize(reporttest.Stream(c.results), operator.Builtin(), c.rule, nil)
		reporttest.Must(t, err)
		shown := table.Of(s, "-")
		fixed := slices.IndexFunc(shown.Columns, func(c table.Column) bool { return c.Name == "time" }) + 1
		if got := strings.Join(headings(shown.Columns[fixed:]), " "); got != c.columns {
			t.Errorf("%s: columns %q, want %q", name, got, c.columns)
		}
		if got := texts(shown.Lines[0][fixed:]); got != c.cells {
			t.Errorf("%s: cells %q, want %q", name, got, c.cells)
		}
		if said := strings.Contains(strings.Join(table.Texts(shown.Notes), " "), "Per image: network counts"); said != (c.columns != "") {
			t.Errorf("%s: the note on the cost is there: %v", name, said)
		}
	}
}

// headings are the names of columns.
func headings(columns []table.Column) (out []string) {
	for _, c := range columns {
		out = append(out, c.Name)
	}
	return out
}

// texts joins the texts of cells.
func texts(cells []table.Cell) string {
	var out []string
	for _, c := range cells {
		out = append(out, c.Text)
	}
	return strings.Join(out, " ")
}
