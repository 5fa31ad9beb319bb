package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/published"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/table"
	"ddiff/restore/item"
)

const publishedFile = `# A. Uthor: A paper.
# Table 1.
table,data,images,size,sigma,prior,preset,steps,runs,select,task,method,psnr,psnr_half,residual,remark
1,faces,2,128x128,0.05,big,ffhq,100,1,,hdr,ddiff,27.500,0.4,0.0040,
1,faces,2,128x128,0.05,big,,,,,hdr,DAPS | x,28.10,,0.005,
1,faces,2,128x128,0.05,big,ffhq,100,2,best_psnr,phase_retrieval,ddiff,30,,,best of two
1,faces,2,128x128,0.05,big,,,,,denoise,DPS,9,,,
`

func parsePublished(t *testing.T, text string) *published.Figures {
	t.Helper()
	p, err := published.Parse("paper.csv", strings.NewReader(text))
	reporttest.Must(t, err)
	return p
}

// publishedSummary has two images of HDR, solved by two methods, and one image of phase retrieval with two runs.
func publishedSummary(t *testing.T, rule selection.Rule, change ...func(*item.Result)) aggregate.Summary {
	t.Helper()
	ffhq := func(r *item.Result) { r.Item.Preset = "ffhq" }
	var results []item.Result
	for i, name := range []string{"1.png", "2.png"} {
		for _, method := range []string{"ddiff", "toy"} {
			results = append(results, reporttest.Result(t, "hdr", method, name, 0, append(change, ffhq, reporttest.Scored(26+2*float64(i), 20, 0.8, 0.002))...))
		}
		for run := range 2 {
			results = append(results, reporttest.Result(t, "phase_retrieval", "ddiff", name, run, append(change, ffhq, reporttest.Scored(20+float64(run), 0, 0.5, 0))...))
		}
	}
	return summaryOf(t, results, rule)
}

func compared(t *testing.T, s aggregate.Summary, p *published.Figures, format table.Format) string {
	t.Helper()
	var out bytes.Buffer
	reporttest.Must(t, published.Write(&out, s, p, format))
	return out.String()
}

// Equal circumstances leave only the data and the prior, which no program can check.
func TestPublishedSaysWhatIsComparable(t *testing.T) {
	t.Parallel()
	p := parsePublished(t, publishedFile)
	equal := compared(t, publishedSummary(t, selection.BestPSNR), p, table.FormatText)
	if !strings.Contains(equal, "Comparable, if the images are those of faces and the prior abababab is the big, which ddiff cannot check.") {
		t.Errorf("equal circumstances:\n%s", equal)
	}
	p.Priors = map[string]string{strings.Repeat("ab", 32): "bundled"}
	if text := compared(t, publishedSummary(t, selection.BestPSNR), p, table.FormatText); !strings.Contains(text, "NOT COMPARABLE, because of prior. ") {
		t.Errorf("the bundled prior:\n%s", text)
	}
	p.Priors = nil
	// The versions of the metrics that both have must agree; the digest of a network is not compared.
	for metrics, want := range map[string]string{
		"psnr@1 ssim@1": "", "ssim@1 lpips_alex@1": "metrics", "psnr@reference_range ssim@1": "metrics", "lpips_vgg@1_unclipped": "metrics", "lpips_vgg@1": "",
	} {
		versions := parsePublished(t, strings.NewReplacer(",select,", ",select,metrics,", ",1,,hdr", ",1,,"+metrics+",hdr", ",,,hdr", ",,,,hdr",
			",best_psnr,", ",best_psnr,,", ",,,denoise", ",,,,denoise").Replace(publishedFile))
		s := publishedSummary(t, selection.BestPSNR, reporttest.Later("lpips_vgg@1:aaaaaaaa", 0.1))
		text := compared(t, s, versions, table.FormatText)
		if got := strings.Contains(text, "NOT COMPARABLE, because of metrics. "); got != (want != "") {
			t.Errorf("metrics %s:\n%s", metrics, text)
		}
		if want != "" && !strings.Contains(text, "metrics lpips_vgg@1 psnr@1 ssim@1") {
			t.Errorf("metrics %s: ours are not named:\n%s", metrics, text)
		}
	}
	for what, change := range map[string]func(*item.Result){
		"size":   func(r *item.Result) { r.Item.Width, r.Item.Height = 32, 32 },
		"sigma":  func(r *item.Result) { r.Item.Sigma = 0.1 },
		"steps":  func(r *item.Result) { r.Item.Solver = json.RawMessage(`{"steps":3}`) },
		"preset": func(r *item.Result) { r.Item.Preset = "natural" },
	} {
		last := func(r *item.Result) { change(r) }
		s := publishedSummary(t, selection.BestPSNR, last)
		if what == "preset" { // publishedSummary sets it after the change
			for i := range s.Rows {
				s.Rows[i].Preset = "natural"
			}
		}
		text := compared(t, s, p, table.FormatText)
		if !strings.Contains(text, "NOT COMPARABLE, because of "+what+". ") || !strings.Contains(text, "Theirs: images 2, size 128x128") {
			t.Errorf("another %s:\n%s", what, text)
		}
	}
	if text := compared(t, publishedSummary(t, selection.First), p, table.FormatText); !strings.Contains(text, "NOT COMPARABLE, because of select. ") {
		t.Errorf("another rule:\n%s", text)
	}
	one := summaryOf(t, []item.Result{reporttest.Result(t, "hdr", "ddiff", "1.png", 0, reporttest.Scored(26, 20, 0.8, 0.002))}, selection.First)
	if text := compared(t, one, p, table.FormatText); !strings.Contains(text, "NOT COMPARABLE, because of images, preset. ") {
		t.Errorf("one image without a preset:\n%s", text)
	}
	alone := summaryOf(t, []item.Result{reporttest.Result(t, "hdr", "toy", "1.png", 0, reporttest.Scored(26, 20, 0.8, 0.002))}, selection.First)
	if text := compared(t, alone, p, table.FormatText); !strings.Contains(text, "No method of these results has published figures.") {
		t.Errorf("no pair:\n%s", text)
	}
}

// The lines are ours with theirs, ours alone and theirs alone, with the digits of the publication.
func TestPublishedLines(t *testing.T) {
	t.Parallel()
	p := parsePublished(t, publishedFile)
	s := publishedSummary(t, selection.BestPSNR)
	text := compared(t, s, p, table.FormatText)
	var got []string
	for line := range strings.Lines(text) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{
		"task method images PSNR PSNR theirs difference residual residual theirs difference",
		"hdr ddiff 2 27.00 ±12.71 27.500 ±0.4 -0.50 0.0020 ±0.0000 0.0040 -0.0020",
		"hdr toy 2 27.00 ±12.71 - - 0.0020 ±0.0000 - -",
		"hdr DAPS | x - - 28.10 - - 0.005 -",
		"phase_retrieval ddiff 2 21.00 ±0.00* 30 -9.00* 0.0000 ±0.0000* - -",
		"phase_retrieval: best of two.",
		"1 further tasks of the publication are not in these results.",
		"± is half the 95 % interval of the mean. Source: A. Uthor: A paper. Table 1.",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no line %q in\n%s", want, strings.Join(got, "\n"))
		}
	}
	for format, wants := range map[table.Format][]string{
		table.FormatMarkdown: {"| hdr | DAPS \\| x | – |", "| hdr | ddiff | 2 | 27.00 ±12.71 | 27.500 ±0.4 | -0.50 |"},
		table.FormatLaTeX:    {`hdr & ddiff & 2 & $27.00 \pm 12.71$ & $27.500 \pm 0.4$ & $-0.50$ &`, `$21.00 \pm 0.00^{*}$ & 30 & $-9.00^{*}$`, "\\midrule"},
	} {
		for _, want := range wants {
			if text := compared(t, s, p, format); !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", format, want, text)
			}
		}
	}
	lines := strings.Split(compared(t, s, p, table.FormatMarkdown), "\n")
	head := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "| task | method |") })
	columns := strings.Count(lines[head], "|") - 1
	if want := "| :-- | :-- |" + strings.Repeat(" --: |", columns-2); lines[head+1] != want {
		t.Errorf("alignment %q, want %q", lines[head+1], want)
	}
	if want := "{ll" + strings.Repeat("r", columns-2) + "}"; !strings.Contains(compared(t, s, p, table.FormatLaTeX), want) {
		t.Errorf("LaTeX lacks %q", want)
	}
	if err := published.Write(&bytes.Buffer{}, s, p, "word"); !errors.Is(err, table.ErrUnknownFormat) {
		t.Errorf("format word: %v", err)
	}
}

// TestPublishedVariants: rows that differ in their settings are told apart by them.
func TestPublishedVariants(t *testing.T) {
	t.Parallel()
	p := parsePublished(t, "task,method,psnr\nhdr,ddiff,27.5\n")
	var results []item.Result
	for _, settings := range []string{`{"steps":2}`, `{"steps":3}`} {
		results = append(results, reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 10, 0.5, 0), reporttest.With(0.05, settings)))
	}
	text := compared(t, summaryOf(t, results, selection.First), p, table.FormatMarkdown)
	reporttest.Contains(t, text, "| hdr | ddiff | steps=2 | 1 |", "| hdr | ddiff | steps=3 | 1 |")
}

// LPIPS is compared if the results have it with one network.
func TestPublishedLPIPS(t *testing.T) {
	t.Parallel()
	p := parsePublished(t, "task,method,lpips\nhdr,ddiff,0.129\n")
	s := publishedSummary(t, selection.First)
	row := &s.Rows[slices.IndexFunc(s.Rows, func(r aggregate.Row) bool { return r.Task == "hdr" && r.Method == "ddiff" })]
	row.Means = map[string]statistic.Estimate{"lpips_vgg": {N: 2, Mean: 0.2}, "other": {N: 2, Mean: 9}}
	if text := compared(t, s, p, table.FormatMarkdown); !strings.Contains(text, "| 0.200 | 0.129 | +0.071 |") {
		t.Errorf("one network:\n%s", text)
	}
	row.Means["lpips_alex"] = statistic.Estimate{N: 2, Mean: 0.1}
	if text := compared(t, s, p, table.FormatMarkdown); strings.Contains(text, "0.200") || !strings.Contains(text, "LPIPS: these results have none, or those of several") {
		t.Errorf("two networks:\n%s", text)
	}
}

func TestParsePublishedRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                           "paper.csv is empty; it needs a line",
		"# only\n":                                   "paper.csv is empty; it needs a line",
		"task,method,psnr\n":                         "paper.csv has no row",
		"task,psnr\n":                                `has no column "method"`,
		"task,method,psn\nhdr,a,1\n":                 `column "psn" is unknown; use table, task`,
		"task,method,task\nhdr,a,hdr\n":              `column "task" is repeated`,
		"task,method,psnr\nhdr,a,x\n":                `line 2: psnr: "x" is not a number`,
		"task,method,psnr\nhdr,a,NaN\n":              `line 2: psnr: "NaN" is not a number`,
		"task,method,images\nhdr,a,ten\n":            `line 2: images: "ten" is not a number`,
		"task,method\nhdr,\n":                        "line 2: task or method is empty",
		"task,method\nhdr,a\n\nhdr,a\n":              "line 4: repeats task hdr and method a",
		"task,method\nhdr\n":                         "wrong number of fields",
		"task,method\n\"hdr,a\n":                     "paper.csv: ",
		"#" + strings.Repeat("x", published.MaxSize): "larger than 1 MiB",
	} {
		_, err := published.Parse("paper.csv", strings.NewReader(text))
		if !errors.Is(err, published.ErrPublished) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v, want one line with %q", text, err, want)
		}
	}
}
