package testbed

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"ddiff/coordinator/report/statistic"
)

// gridScores are the PSNR of one task and method: for each cell those of the photographs, in the order of images.
type gridScores map[int]map[string]float64

// ablationScores are the grids by task and method.
type ablationScores map[[2]string]gridScores

// readTable reads a CSV file with # comments into one map per line.
func readTable(r io.Reader) ([]map[string]string, error) {
	in := csv.NewReader(r)
	in.Comment = '#'
	all, err := in.ReadAll()
	if err != nil || len(all) == 0 {
		return nil, cmp.Or(err, io.ErrUnexpectedEOF)
	}
	var out []map[string]string
	for _, cells := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = cells[i]
		}
		out = append(out, row)
	}
	return out, nil
}

// read reads results.csv. It returns an error if a cell of the grid lacks a photograph.
func (o ablationOptions) read(r io.Reader) (ablationScores, error) {
	rows, err := readTable(r)
	if err != nil {
		return nil, err
	}
	scores, images := ablationScores{}, map[string]bool{}
	for _, row := range rows {
		key := [2]string{row["task"], row["method"]}
		settings := strings.Split(row["settings"], ";")
		at := slices.IndexFunc(o.cells(key[0], key[1]), func(c knob) bool {
			return !slices.ContainsFunc(c, func(a string) bool { return !slices.Contains(settings, a) })
		})
		if at < 0 || !strings.HasPrefix(row["size"], fmt.Sprintf("%dx%d", o.size, o.size)) {
			continue // of another grid in the same output
		}
		psnr, err := strconv.ParseFloat(row["psnr"], 64)
		if err != nil {
			return nil, fmt.Errorf("%s, %s, %s, %s: %s %s", row["task"], row["method"], row["settings"], row["image"], row["outcome"], row["reason"])
		}
		if scores[key] == nil {
			scores[key] = gridScores{}
		}
		if scores[key][at] == nil {
			scores[key][at] = map[string]float64{}
		}
		scores[key][at][row["image"]] = psnr
		images[row["image"]] = true
	}
	for _, task := range o.tasks {
		for _, method := range ablationMethods() {
			for at, c := range o.cells(task, method) {
				if n := len(scores[[2]string{task, method}][at]); n != len(images) || n < 3 {
					return nil, fmt.Errorf("%s, %s, %s: %d of %d photographs, want all and at least 3", task, method, strings.Join(c, " "), n, len(images))
				}
			}
		}
	}
	return scores, nil
}

// choose returns the cell with the highest mean PSNR on the other photographs, in a tie the earlier one.
func (g gridScores) choose(without string) int {
	best, at := math.Inf(-1), 0
	for _, c := range slices.Sorted(maps.Keys(g)) {
		sum := 0.0
		for _, image := range slices.Sorted(maps.Keys(g[c])) {
			if image != without {
				sum += g[c][image]
			}
		}
		if sum > best {
			best, at = sum, c
		}
	}
	return at
}

// tested is a method on one task: per photograph, in natural order of their names.
type tested struct {
	method string
	// psnr is that with the cell chosen on the other photographs, cells are these cells.
	psnr  []float64
	cells []int
	// plain is the PSNR with the cell that was chosen for DDiff.
	plain []float64
}

// test takes each photograph as the test image once.
func (o ablationOptions) test(scores ablationScores, task string) []tested {
	var out []tested
	dual := scores[[2]string{task, "ddiff"}]
	for _, method := range ablationMethods() {
		g := scores[[2]string{task, method}]
		r := tested{method: method}
		for _, image := range slices.Sorted(maps.Keys(g[0])) {
			at := g.choose(image)
			r.cells = append(r.cells, at)
			r.psnr = append(r.psnr, g[at][image])
			r.plain = append(r.plain, g[o.like(task, method, dual.choose(image))][image])
		}
		out = append(out, r)
	}
	return out
}

// like returns the cell of a method with the settings of a cell of DDiff: the same gamma0, and the same rule of the noise, or
// b = 1 without noise.
func (o ablationOptions) like(task, method string, at int) int {
	of := o.cells(task, "ddiff")[at]
	return slices.IndexFunc(o.cells(task, method), func(c knob) bool {
		return c[0] == of[0] && c[1] == of[1] && (len(c) == 2 || slices.Equal(c, of))
	})
}

// interval returns the mean and half its 95 % interval.
func interval(x []float64) (mean, half float64) {
	e := statistic.Mean(x)
	return e.Mean, statistic.Value(e.HalfWidth)
}

// ranking lists the methods by their mean PSNR, the highest first.
func ranking(results []tested) []string {
	sorted := slices.Clone(results)
	slices.SortStableFunc(sorted, func(a, b tested) int { return cmp.Compare(stat.Mean(b.psnr, nil), stat.Mean(a.psnr, nil)) })
	var out []string
	for _, r := range sorted {
		out = append(out, r.method)
	}
	return out
}

// publishedPlaces reads the order of the methods by their published PSNR, for each task.
func publishedPlaces(r io.Reader) (map[string][]string, error) {
	rows, err := readTable(r)
	if err != nil {
		return nil, fmt.Errorf("read published figures: %w", err)
	}
	results := map[string][]tested{}
	for _, row := range rows {
		psnr, err := strconv.ParseFloat(row["psnr"], 64)
		if err != nil {
			return nil, fmt.Errorf("read published figures: %s, %s: %w", row["task"], row["method"], err)
		}
		results[row["task"]] = append(results[row["task"]], tested{method: row["method"], psnr: []float64{psnr}})
	}
	places := map[string][]string{}
	for task, r := range results {
		places[task] = ranking(r)
	}
	return places, nil
}

// write prints the tables and the last line.
func (o ablationOptions) write(scores ablationScores, places map[string][]string) error {
	var table, order, border strings.Builder
	images, inOrder, first := 0, 0, 0
	for _, task := range o.tasks {
		results := o.test(scores, task)
		images = len(results[0].psnr)
		for _, r := range results {
			mean, half := interval(r.psnr)
			difference := "|"
			if r.method != "ddiff" {
				d := make([]float64, images)
				for i := range d {
					d[i] = results[0].psnr[i] - r.psnr[i]
				}
				m, h := interval(d)
				difference = fmt.Sprintf("%+.2f ± %.2f |", m, h)
			}
			chosen, atBorder := o.describe(task, r)
			fmt.Fprintf(&table, "| %s | %s | %.2f ± %.2f | %s %.2f | %s |\n", task, r.method, mean, half, difference, stat.Mean(r.plain, nil), chosen)
			if atBorder {
				fmt.Fprintf(&border, "- %s, %s: gamma0 at the border of the grid\n", task, r.method)
			}
		}
		ours := ranking(results)
		word := "no"
		if slices.Equal(ours, places[task]) {
			word = "yes"
			inOrder++
		}
		if ours[0] == places[task][0] {
			first++
		}
		fmt.Fprintf(&order, "| %s | %s | %s | %s |\n", task, strings.Join(ours, " > "), strings.Join(places[task], " > "), word)
	}
	_, err := fmt.Fprintf(o.stdout, "%d photographs, %dx%d, %d network evaluations, %d cells per task and method; settings chosen on the other %d photographs\n\n"+
		"| task | method | PSNR | ddiff − method | with ddiff's settings | chosen (photographs) |\n|---|---|---|---|---|---|\n%s\n"+
		"| task | order here | order in Table 2 | same |\n|---|---|---|---|\n%s\n%s\nfirst_place_as_published=%d of=%d\ntasks_in_order=%d of=%d\n",
		images, o.size, o.size, o.steps, len(o.cells(o.tasks[0], "ddiff")), images-1, table.String(), order.String(), border.String(),
		first, len(o.tasks), inOrder, len(o.tasks))
	return err
}

// describe lists the chosen cells with the number of photographs for which each was chosen.
func (o ablationOptions) describe(task string, r tested) (text string, atBorder bool) {
	count := map[int]int{}
	for _, at := range r.cells {
		count[at]++
	}
	cells := o.cells(task, r.method)
	var parts []string
	for _, at := range slices.Sorted(maps.Keys(count)) {
		c := cells[at]
		if len(c) == 4 {
			c = knob{c[0], c[2], c[3]} // b is 1
		}
		parts = append(parts, fmt.Sprintf("%s (%d)", strings.Join(c, " "), count[at]))
		g := at % len(o.gamma0)
		atBorder = atBorder || g == 0 || g == len(o.gamma0)-1
	}
	return strings.Join(parts, ", "), atBorder
}
