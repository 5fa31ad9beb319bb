package page

import (
	"context"
	"slices"

	"ddiff/internal/report/entry"
	"ddiff/internal/report/result"
	"ddiff/internal/report/sheet"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/table"
	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
)

// KeyMosaic is the key of the mosaic.
const KeyMosaic = "mosaic.png"

// The mosaic has a row for each task, up to maxMosaicTasks. A row has up to mosaicPictures pictures: of each item the measurement, one
// restoration for each approach, up to maxApproaches, and the truth.
const (
	maxMosaicTasks = 12
	mosaicPictures = 9
	maxApproaches  = mosaicPictures - 2
)

// problemRow has the measurements of one row of the table, the lowest PSNR first, without a truth the largest residual.
type problemRow struct {
	label string
	// items has for each measurement its rows of the listing, one for each approach, -1 for none. The first approach has one.
	items [][]int
	// approaches are cells of the listing.
	approaches []int
}

// problemRows have the first run of each image, with the restorations of its measurement by up to maxApproaches other rows of the table. A row of the
// table that is an approach of an earlier one has none of its own; perTask: only the first row of each task has.
func problemRows(l *Listing, perTask bool) []problemRow {
	type restoration struct{ measurement, cell int }
	restored := make(map[restoration]int) // the first run
	for row := range l.ID {
		key := restoration{l.Measurement[row], l.Cell[row]}
		if _, again := restored[key]; !again {
			restored[key] = row
		}
	}
	of := make([][]int, len(l.Cells))
	for row := range l.ID {
		c := l.Cell[row]
		if n := len(of[c]); n == 0 || l.Name[of[c][n-1]] != l.Name[row] {
			of[c] = append(of[c], row)
		}
	}
	taken := make(map[int]bool)
	var rows []problemRow
	for first, cell := range l.Cells {
		earlier := func(c cellView) bool { return c.Task == cell.Task }
		if taken[first] || perTask && slices.ContainsFunc(l.Cells[:first], earlier) {
			continue
		}
		r := problemRow{label: cell.Label, approaches: []int{first}}
		all := of[first]
		for c := first + 1; c < len(l.Cells); c++ {
			solves := func(row int) bool {
				_, solved := restored[restoration{l.Measurement[row], c}]
				return solved
			}
			if l.Cells[c].Task == cell.Task && slices.ContainsFunc(all, solves) {
				if taken[c] = true; len(r.approaches) < maxApproaches {
					r.approaches = append(r.approaches, c)
				}
			}
		}
		slices.SortStableFunc(all, func(a, b int) int { return compareWorst(l.entries[a], l.entries[b]) })
		for _, row := range all {
			item := []int{row}
			for _, c := range r.approaches[1:] {
				other, known := restored[restoration{l.Measurement[row], c}]
				if !known {
					other = -1
				}
				item = append(item, other)
			}
			r.items = append(r.items, item)
		}
		rows = append(rows, r)
	}
	return rows
}

// parts divides the items into equal parts and returns the middle one of each.
func (r *problemRow) parts() [][]int {
	n := min(len(r.items), mosaicPictures/(len(r.approaches)+2))
	var out [][]int
	for k := range n {
		out = append(out, r.items[(2*k+1)*len(r.items)/(2*n)])
	}
	return out
}

// title names an approach beside the others.
func (r *problemRow) title(l *Listing, k int) string {
	c := l.Cells[r.approaches[k]]
	if len(r.approaches) == 1 {
		return "restored"
	}
	if slices.ContainsFunc(r.approaches, func(other int) bool { return other != r.approaches[k] && l.Cells[other].Method == c.Method }) {
		return c.Method + " " + c.Variant
	}
	return c.Method
}

// WriteMosaic draws and stores the mosaic of all tasks. stored is false without finished items. lost has an error for each
// listed picture that could not be read.
func WriteMosaic(ctx context.Context, store result.Files, l *Listing) (stored bool, lost []error, err error) {
	rows := problemRows(l, true)
	if len(rows) == 0 {
		return false, nil, nil
	}
	rows = rows[:min(len(rows), maxMosaicTasks)]
	truth := slices.ContainsFunc(rows, func(r problemRow) bool {
		return slices.ContainsFunc(r.items, func(it []int) bool { return l.has(it[0], item.FileTruth) })
	})
	var s sheet.Sheet
	for _, r := range rows {
		row := sheet.Row{Name: r.label}
		for _, item := range r.parts() {
			row.Items = append(row.Items, l.mosaicPictures(store, r, item, truth))
		}
		s.Rows = append(s.Rows, row)
	}
	_, lost, err = s.Write(ctx, store, KeyMosaic)
	return true, lost, err
}

// mosaicPictures are those of an item: the measurement, a restoration for each approach, and the truth.
func (l *Listing) mosaicPictures(store result.Files, r problemRow, it []int, truth bool) []sheet.Picture {
	picture := func(row int, file, title, score string) sheet.Picture {
		if !l.has(row, file) {
			return sheet.Picture{None: title}
		}
		caption := title
		if v := l.of(row, score); statistic.Defined(v) {
			caption = table.Decimal(v, 2) + " " + title
		}
		return sheet.Picture{Store: store, ID: l.ID[row], File: file, Caption: caption}
	}
	out := []sheet.Picture{picture(it[0], item.FileMeasurement, "measurement", entry.Baseline)}
	for k, row := range it {
		out = append(out, picture(row, item.FileRestored, r.title(l, k), metric.NamePSNR))
	}
	if truth {
		out = append(out, picture(it[0], item.FileTruth, "truth", ""))
	}
	return out
}
