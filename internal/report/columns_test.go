package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"html"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ddiff/internal/report/comparison"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/table"
	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// TestEveryTableHasItsCellsUnderTheirHeadings reads each form of the means back and compares each number with the mean of the column of results.csv that
// its heading names. All figures of the results differ, so that no other column would do.
func TestEveryTableHasItsCellsUnderTheirHeadings(t *testing.T) {
	t.Parallel()
	var results []item.Result
	for ti, task := range []string{"super_resolution", "hdr", "phase_retrieval"} {
		for mi, method := range []string{"ddiff", "dps"} {
			for ni, name := range []string{"a", "b"} {
				x := float64(100*ti + 10*mi + ni)
				r := reporttest.Result(t, task, method, name, 0, reporttest.Scored(20+x/40, 15+x/50, 0.5+x/1000, 0.003+x/100000), reporttest.Later("lpips_vgg@1:aaaaaaaa", 0.1+x/2000))
				r.Metrics["sharpness"], r.Metrics["psnr_y"], r.Metrics["haarpsi"] = -3-x/60, 21+x/45, 0.3+x/1500
				for i, m := range metric.Builtin() { // also of one that was added
					if _, ok := r.Metrics[m.Name]; !ok {
						r.Metrics[m.Name] = 0.2 + float64(i)/10 + x/4000
					}
				}
				r.Cost = item.Cost{Network: 10 + int(x), NetworkBackward: 20 + int(x), Operator: 1000 + int(x)}
				results = append(results, r)
			}
		}
	}
	store := reporttest.NewMemory()
	summary, err := Write(t.Context(), store, testCampaign(), reporttest.Stream(results))
	reporttest.Must(t, err)
	want := csvMeans(t, store.Files[KeyCSV])
	written := func(format table.Format) string {
		var out bytes.Buffer
		reporttest.Must(t, table.Write(&out, summary, format))
		return out.String()
	}
	for form, lines := range map[string][][]string{
		"text": textCells(written(table.FormatText)), "Markdown": split(written(table.FormatMarkdown), `(?m)^\| (.*) \|$`, " | "),
		"LaTeX": split(written(table.FormatLaTeX), `(?m)^(.* & .*) \\\\$`, " & "), "summary.md": split(string(store.Files[KeySummaryMarkdown]), `(?m)^\| (.*) \|$`, " | "),
		"the page": htmlCells(string(store.Files[KeyPage]), 0), "the page on demand": htmlCells(string(store.Files[KeyPage]), 1),
	} {
		checkMeans(t, form, lines, want)
	}
}

// checkMeans compares the numbers of lines, of which the first has headings, with the means by task, method and column.
func checkMeans(t *testing.T, form string, lines [][]string, want map[string]float64) {
	t.Helper()
	ids := map[string]string{
		"PSNR": "psnr", "±95%": "±", `$\pm$95\,\%`: "±", "degraded": "baseline_psnr", "gain": "gain", "SSIM": "ssim", "sharpness": "sharpness", "residual": "residual",
		"lpips_vgg": "lpips_vgg", `lpips\_vgg`: "lpips_vgg", "time": "seconds", "Time (s)": "seconds", "network": "network", "backward": "network_backward", "operator": "operator", "images": "images", "$n$": "images",
	}
	if len(lines) != 7 {
		t.Fatalf("%s has %d lines, want headings and six rows: %q", form, len(lines), lines)
	}
	read, task := 0, ""
	for _, line := range lines[1:] {
		if len(line) != len(lines[0]) {
			t.Fatalf("%s has %d headings over %d cells: %q", form, len(lines[0]), len(line), line)
		}
		row := map[string]string{}
		for k, heading := range lines[0] {
			heading, _, _ = strings.Cut(heading, ", ") // the unit
			if id, known := ids[heading]; known {
				row[id] = line[k]
			} else if id, known := ids[strings.ToLower(heading[:1])+heading[1:]]; known {
				row[id] = line[k]
			} else {
				row[strings.ToLower(heading)] = line[k]
			}
		}
		if row["task"] != "" {
			task = row["task"]
		}
		for id, cell := range row {
			if id == "task" || id == "method" {
				continue
			}
			mean, half, _ := strings.Cut(cell, "±")
			key := taskID(task) + " " + row["method"] + " "
			checkNumber(t, form+": "+key+id, mean, want[key+id])
			if read++; half != "" {
				checkNumber(t, form+": ± "+key+id, half, want[key+"± "+id])
			}
		}
	}
	if read < 30 {
		t.Errorf("%s: only %d numbers were read", form, read)
	}
}

// taskID finds a task by its name or its label.
func taskID(text string) string {
	text = strings.ReplaceAll(text, `\_`, "_")
	for _, name := range operator.Builtin().Names() {
		if text == operator.Builtin().Label(name) {
			return name
		}
	}
	return text
}

// checkNumber compares a printed number with the exact one, to half of its last digit.
func checkNumber(t *testing.T, what, text string, want float64) {
	t.Helper()
	text = strings.TrimSpace(strings.NewReplacer("−", "-", "*", "", "$", "", "\\textbf{", "", "}", "").Replace(text))
	got, err := strconv.ParseFloat(text, 64)
	_, decimals, _ := strings.Cut(text, ".")
	if tolerance := 0.5000001*math.Pow(10, -float64(len(decimals))) + 1e-5*math.Abs(want); err != nil || !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %q, want %g", what, text, want)
	}
}

// csvMeans are the means of the columns of results.csv by "task method column", of two images each, with halves of their intervals as "± column".
func csvMeans(t *testing.T, data []byte) map[string]float64 {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	reporttest.Must(t, err)
	values := map[string][]float64{}
	at := func(name string) int { return slices.Index(rows[0], name) }
	for _, row := range rows[1:] {
		for k, id := range rows[0] {
			if v, err := strconv.ParseFloat(row[k], 64); err == nil {
				key := row[at("task")] + " " + row[at("method")] + " "
				values[key+id] = append(values[key+id], v)
			}
		}
	}
	out := map[string]float64{}
	for key, both := range values {
		cell, id := key[:strings.LastIndex(key, " ")+1], key[strings.LastIndex(key, " ")+1:]
		out[key] = (both[0] + both[1]) / 2
		half := 12.7062047 * math.Abs(both[0]-both[1]) / 2 // Student's quantile for two images, over the square root of two squared
		if out[cell+"± "+id] = half; id == "psnr" {
			out[cell+"±"] = half
		}
		out[cell+"images"] = float64(len(both))
	}
	return out
}

// split cuts the matching lines into cells, without the line below the headings of Markdown.
func split(text, line, between string) (out [][]string) {
	for _, m := range regexp.MustCompile(line).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], ":--") {
			out = append(out, strings.Split(strings.ReplaceAll(m[1], "**", ""), between))
		}
	}
	return out
}

// textCells are those of a table of text: headings and rows are the first lines.
func textCells(text string) (out [][]string) {
	for _, line := range strings.Split(text, "\n")[:7] {
		out = append(out, regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1))
	}
	return out
}

// htmlCells are the texts of the cells of a table of the page, without parameters below a task and without drawings.
func htmlCells(page string, table int) (out [][]string) {
	text := regexp.MustCompile(`(?s)<table.*?</table>`).FindAllString(page, -1)[table]
	text = regexp.MustCompile(`(?s)<small>.*?</small>|<td class="bar">.*?</td>|<caption>.*?</caption>`).ReplaceAllString(text, "")
	for _, row := range regexp.MustCompile(`(?s)<tr.*?</tr>`).FindAllString(text, -1) {
		var cells []string
		for _, m := range regexp.MustCompile(`(?s)<t[hd][^>]*>(.*?)</t[hd]>`).FindAllStringSubmatch(row, -1) {
			cells = append(cells, strings.TrimSpace(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[1], ""))))
		}
		out = append(out, cells)
	}
	return out
}

// TestComparisonHasItsCellsUnderTheirHeadings reads the table of ddiff compare back.
func TestComparisonHasItsCellsUnderTheirHeadings(t *testing.T) {
	t.Parallel()
	var sides [2][]item.Result
	for k := range sides {
		for i, psnr := range []float64{20, 23} {
			sides[k] = append(sides[k], reporttest.Result(t, "hdr", "ddiff", fmt.Sprint(i), 0, reporttest.Scored(psnr+float64(k*(2+i)), 15, 0.5, 0)))
		}
	}
	v, err := comparison.Compare(reporttest.Stream(sides[1]), reporttest.Stream(sides[0]), nil, selection.First, "")
	reporttest.Must(t, err)
	var out bytes.Buffer
	reporttest.Must(t, v.WriteText(&out, 0))
	lines := strings.Split(out.String(), "\n")
	headings, cells := regexp.MustCompile(` {2,}`).Split(lines[0], -1), regexp.MustCompile(` {2,}`).Split(lines[1], -1)
	want := map[string]string{"images": "2", "PSNR A": "24.00", "PSNR B": "21.50", "A - B": "+2.50", "95% interval": "[-3.85, +8.85]", "p": "0.5", "p (Holm)": "0.5"}
	for k, heading := range headings[1:] {
		if cells[k+1] != want[heading] {
			t.Errorf("%s is %s, want %s", heading, cells[k+1], want[heading])
		}
	}
	if len(headings) != 8 || len(cells) != 8 {
		t.Errorf("headings %q over cells %q", headings, cells)
	}
}
