package report

import (
	"cmp"
	"slices"

	"ddiff/manifest"
)

// maxItems bounds the items on the page; results.csv has all of them.
const maxItems = 200

// excerpt picks the items that the page shows from sorted results: all finished ones up to
// the limit; beyond it an equal share per task, half of it the worst, the rest the first.
// The order is kept.
func excerpt(results []manifest.Result, limit int) []manifest.Result {
	byTask := make(map[string][]int)
	var tasks []string
	done := 0
	for i := range results {
		if results[i].Outcome != manifest.OutcomeDone {
			continue
		}
		done++
		task := results[i].Item.Task
		if byTask[task] == nil {
			tasks = append(tasks, task)
		}
		byTask[task] = append(byTask[task], i)
	}
	keep := make(map[int]bool, min(done, limit))
	for n, task := range tasks {
		// What one task leaves of its share goes to those after it.
		share := (limit - len(keep)) / (len(tasks) - n)
		if done <= limit {
			share = done
		}
		pick(keep, results, byTask[task], share)
	}
	out := make([]manifest.Result, 0, len(keep))
	for i := range results {
		if keep[i] {
			out = append(out, results[i])
		}
	}
	return out
}

// pick marks share of the rows: the worst half, then the first that are left.
func pick(keep map[int]bool, results []manifest.Result, rows []int, share int) {
	worst := slices.Clone(rows)
	slices.SortStableFunc(worst, func(a, b int) int {
		return compareWorst(&results[a].Metrics, &results[b].Metrics)
	})
	for _, i := range worst[:min(share/2, len(worst))] {
		keep[i] = true
		share--
	}
	for _, i := range rows {
		if share <= 0 {
			return
		}
		if !keep[i] {
			keep[i] = true
			share--
		}
	}
}

// compareWorst puts the lower PSNR first; without a truth, the larger residual.
func compareWorst(a, b *manifest.Metrics) int {
	switch {
	case defined(a.PSNR) && defined(b.PSNR):
		return cmp.Compare(*a.PSNR, *b.PSNR)
	case defined(a.PSNR) != defined(b.PSNR):
		if defined(a.PSNR) {
			return -1
		}
		return 1
	case defined(a.Residual) && defined(b.Residual):
		return cmp.Compare(*b.Residual, *a.Residual)
	case defined(a.Residual) != defined(b.Residual):
		if defined(a.Residual) {
			return -1
		}
		return 1
	default:
		return 0
	}
}
