package page

import (
	"context"
	"slices"

	"ddiff/coordinator/report/figure"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/report/sheet"
	"ddiff/coordinator/report/statistic"
	"ddiff/coordinator/report/table"
	"ddiff/restore/item"
	"ddiff/restore/metric"
)

// KeyMosaic is the key of the mosaic.
const KeyMosaic = "mosaic.png"

// The mosaic has a row for each task, up to maxMosaicTasks. A row has up to mosaicPictures pictures: of each item the measurement, one
// restoration for each approach, up to maxMosaicApproaches, and the truth.
const (
	maxMosaicTasks      = 12
	mosaicPictures      = 9
	maxMosaicApproaches = mosaicPictures - 2
)

// Mosaic is the stored mosaic.
type Mosaic struct {
	Key           string
	Width, Height int
	// More is the number of tasks without a row.
	More int
}

// mosaicRow has the items of one task, the lowest PSNR first.
type mosaicRow struct {
	label string
	// items has for each item its rows of the listing, one for each approach, -1 for none. The first approach has one.
	items [][]int
	// approaches are cells of the listing.
	approaches []int
}

// mosaicRows selects the items: of each task the first row of the table, and the first run of each image. The items are
// sorted by PSNR, without a truth by residual, and divided into equal parts; the middle one of each part is selected, with the
// restorations of its measurement by the other rows of the table.
func mosaicRows(l *Listing) []mosaicRow {
	type restoration struct{ measurement, cell int }
	restored := make(map[restoration]int) // the first run
	for row := range l.ID {
		key := restoration{l.Measurement[row], l.Cell[row]}
		if _, again := restored[key]; !again {
			restored[key] = row
		}
	}
	var rows []mosaicRow
	for first, cell := range l.Cells {
		if slices.ContainsFunc(l.Cells[:first], func(c cellView) bool { return c.Task == cell.Task }) {
			continue
		}
		r := mosaicRow{label: cell.Label, approaches: []int{first}}
		var all []int
		for row := range l.ID {
			if l.Cell[row] == first && (len(all) == 0 || l.Name[all[len(all)-1]] != l.Name[row]) {
				all = append(all, row)
			}
		}
		for c := first + 1; c < len(l.Cells) && len(r.approaches) < maxMosaicApproaches; c++ {
			solves := func(row int) bool {
				_, solved := restored[restoration{l.Measurement[row], c}]
				return solved
			}
			if l.Cells[c].Task == cell.Task && slices.ContainsFunc(all, solves) {
				r.approaches = append(r.approaches, c)
			}
		}
		slices.SortStableFunc(all, l.compareWorst)
		n := min(len(all), mosaicPictures/(len(r.approaches)+2))
		for k := range n {
			row := all[(2*k+1)*len(all)/(2*n)]
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

// compareWorst orders rows of the listing as [compareWorst] does entries.
func (l *Listing) compareWorst(a, b int) int {
	psnr, residual := l.Scores[metric.NamePSNR], l.Scores[metric.NameResidual]
	return compareScores(psnr[a], psnr[b], residual[a], residual[b])
}

// WriteMosaic draws and stores the mosaic of all tasks. It returns nil without finished items. lost has an error for each
// listed picture that could not be read.
func WriteMosaic(ctx context.Context, store result.Files, l *Listing) (file *Mosaic, lost []error, err error) {
	rows := mosaicRows(l)
	if len(rows) == 0 {
		return nil, nil, nil
	}
	more := max(0, len(rows)-maxMosaicTasks)
	rows = rows[:len(rows)-more]
	truth := slices.ContainsFunc(rows, func(r mosaicRow) bool {
		return slices.ContainsFunc(r.items, func(it []int) bool { return l.has(it[0], item.FileTruth) })
	})
	var s sheet.Sheet
	for _, r := range rows {
		row := sheet.Row{Name: r.label}
		for _, item := range r.items {
			row.Items = append(row.Items, l.mosaicPictures(store, r, item, truth))
		}
		s.Rows = append(s.Rows, row)
	}
	size, lost, err := s.Write(ctx, store, KeyMosaic)
	return &Mosaic{Key: KeyMosaic, Width: size.X, Height: size.Y, More: more}, lost, err
}

// mosaicPictures are those of an item: the measurement, a restoration for each approach, and the truth.
func (l *Listing) mosaicPictures(store result.Files, r mosaicRow, it []int, truth bool) []sheet.Picture {
	picture := func(row int, file, title string, score figure.Column) sheet.Picture {
		if !l.has(row, file) {
			return sheet.Picture{None: title}
		}
		caption := title
		if score != nil && statistic.Defined(score[row]) {
			caption = table.Decimal(score[row], 2) + " " + title
		}
		return sheet.Picture{Store: store, ID: l.ID[row], File: file, Caption: caption}
	}
	out := []sheet.Picture{picture(it[0], item.FileMeasurement, "measurement", l.Baseline)}
	for k, row := range it {
		c := l.Cells[r.approaches[k]]
		title := c.Method
		if slices.ContainsFunc(r.approaches, func(other int) bool { return other != r.approaches[k] && l.Cells[other].Method == c.Method }) {
			title += " " + c.Variant
		}
		if len(it) == 1 {
			title = "restored"
		}
		out = append(out, picture(row, item.FileRestored, title, l.Scores[metric.NamePSNR]))
	}
	if truth {
		out = append(out, picture(it[0], item.FileTruth, "truth", nil))
	}
	return out
}
