package table_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/table"
	"ddiff/restore/item"
)

// TestLayout: a table has the chosen numbers, and methods as lines if that is asked for, each number where it belongs.
func TestLayout(t *testing.T) {
	t.Parallel()
	scored := func(task, method, image string, psnr, ssim, sigma float64) item.Result {
		return reporttest.Result(t, task, method, image, 0, reporttest.Scored(psnr, 15, ssim, 0), func(r *item.Result) { r.Item.Sigma = sigma })
	}
	results := []item.Result{
		scored("hdr", "ddiff", "a", 20, 0.5, 0.02), scored("hdr", "ddiff", "b", 22, 0.7, 0.02), scored("hdr", "dps", "a", 23, 0.4, 0.02),
		scored("hdr", "ddiff", "a", 18, 0.3, 0.1), scored("motion_deblur", "dps", "a", 25, 0.8, 0.1),
	}
	s := summaryOf(t, results, selection.First)
	lines := func(l table.Layout, format table.Format) []string {
		var out bytes.Buffer
		reporttest.Must(t, l.Write(&out, s, format))
		var rows []string
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| :") || strings.Contains(line, " & ") {
				rows = append(rows, strings.TrimSpace(line))
			}
		}
		return rows
	}
	for _, c := range []struct {
		layout table.Layout
		format table.Format
		want   []string
	}{
		{table.Layout{Columns: []string{"ssim", "PSNR"}}, table.FormatMarkdown, []string{
			"| task | σ | method | SSIM | PSNR |", "| motion\\_deblur | 0.1 | dps | 0.800 | 25.00 |", "| hdr | 0.02 | ddiff | 0.600 | 21.00 |",
			"| hdr | 0.02 | dps ‡ | 0.400 | 23.00 |", "| hdr | 0.1 | ddiff | 0.300 | 18.00 |",
		}},
		{table.Layout{Methods: true, Columns: []string{"psnr"}}, table.FormatMarkdown, []string{
			"| method | motion\\_deblur σ 0.1 PSNR | hdr σ 0.02 PSNR | hdr σ 0.1 PSNR |", "| dps | 25.00 | 23.00 ‡ | – |", "| ddiff | – | 21.00 | 18.00 |",
		}},
		{table.Layout{Methods: true, Columns: []string{"psnr"}}, table.FormatLaTeX, []string{
			`Method & Motion deblurring $\sigma$ 0.1 PSNR & High dynamic range $\sigma$ 0.02 PSNR & High dynamic range $\sigma$ 0.1 PSNR \\`,
			`dps & 25.00 & 23.00 \textdaggerdbl{} & -- \\`, `ddiff & -- & 21.00 & 18.00 \\`,
		}},
	} {
		if got := lines(c.layout, c.format); !slices.Equal(got, c.want) {
			t.Errorf("%+v:\n%s\nwant\n%s", c.layout, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	if n := len(lines(table.Layout{Methods: true}, table.FormatMarkdown)[0]); n != len(lines(table.Layout{Methods: true, Columns: []string{"PSNR", "SSIM"}}, table.FormatMarkdown)[0]) {
		t.Error("methods as lines have not PSNR and SSIM")
	}
	err := table.Layout{Columns: []string{"beauty"}}.Write(&bytes.Buffer{}, s, table.FormatText)
	if !errors.Is(err, table.ErrColumn) || !strings.Contains(err.Error(), `"beauty": want some of images, PSNR, `) {
		t.Errorf("error %v", err)
	}
}
