package testbed

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat"
)

// timedCell is a method at one number of evaluations, with its means over the images of a task.
type timedCell struct {
	evaluations         int
	psnr, seconds       float64
	psnrs, secondsOfAll []float64
}

// timedCells groups the rows of results.csv by task and method. The cells of a method are sorted by evaluations.
func timedCells(rows []map[string]string) (map[string]map[string][]*timedCell, error) {
	cells := map[string]map[string][]*timedCell{}
	for _, row := range rows {
		var values [3]float64
		for i, column := range []string{"network", "psnr", "seconds"} {
			v, err := strconv.ParseFloat(row[column], 64)
			if err != nil {
				return nil, fmt.Errorf("%s, %s, %s: %s is %q: %s %s", row["task"], row["method"], row["image"], column, row[column], row["outcome"], row["reason"])
			}
			values[i] = v
		}
		if cells[row["task"]] == nil {
			cells[row["task"]] = map[string][]*timedCell{}
		}
		byMethod, n := cells[row["task"]], int(values[0])
		at := slices.IndexFunc(byMethod[row["method"]], func(c *timedCell) bool { return c.evaluations == n })
		if at < 0 {
			at = len(byMethod[row["method"]])
			byMethod[row["method"]] = append(byMethod[row["method"]], &timedCell{evaluations: n})
		}
		c := byMethod[row["method"]][at]
		c.psnrs, c.secondsOfAll = append(c.psnrs, values[1]), append(c.secondsOfAll, values[2])
	}
	for _, byMethod := range cells {
		for _, of := range byMethod {
			slices.SortFunc(of, func(a, b *timedCell) int { return cmp.Compare(a.evaluations, b.evaluations) })
			for _, c := range of {
				c.psnr, c.seconds = stat.Mean(c.psnrs, nil), stat.Mean(c.secondsOfAll, nil)
			}
		}
	}
	return cells, nil
}

// writeTimes writes a table of the campaign examples/methods/time.yaml: for each task and each number of evaluations of daps, the fewest
// evaluations with which the mean PSNR of ddiff is at least that of daps, and the share of daps's time that they take.
func writeTimes(w io.Writer, rows []map[string]string) error {
	cells, err := timedCells(rows)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "task\tdaps: evaluations\tPSNR\tseconds\tddiff: evaluations\tPSNR\tseconds\tshare of the time")
	for _, task := range slices.Sorted(maps.Keys(cells)) {
		for _, daps := range cells[task]["daps"] {
			fmt.Fprintf(out, "%s\t%d\t%.2f\t%.2f\t", task, daps.evaluations, daps.psnr, daps.seconds)
			ours := cells[task]["ddiff"]
			at := slices.IndexFunc(ours, func(c *timedCell) bool { return c.psnr >= daps.psnr })
			if at < 0 {
				best := slices.MaxFunc(ours, func(a, b *timedCell) int { return cmp.Compare(a.psnr, b.psnr) })
				fmt.Fprintf(out, "not reached\t%.2f at most, %d\t\t\n", best.psnr, best.evaluations)
				continue
			}
			c := ours[at]
			fmt.Fprintf(out, "%d\t%.2f\t%.2f\t%.2f\n", c.evaluations, c.psnr, c.seconds, c.seconds/daps.seconds)
		}
	}
	return out.Flush()
}
