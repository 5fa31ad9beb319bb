// Package sheet draws labelled pictures of items in rows ([Sheet]): contact sheets, the mosaic of a report, the largest differences of a
// comparison. It owns their geometry and colours, and the reading of pictures.
package sheet

import (
	"context"
	"fmt"
	"slices"

	"ddiff/internal/report/entry"
	"ddiff/internal/report/result"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/report/table"
	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// Folder is before the keys of the contact sheets, which follow the names of the tasks.
const Folder = "sheets/"

// MaxRows bounds one contact sheet; the header gives the number of omitted items.
const MaxRows = 64

// File is the contact sheet of one task.
type File struct{ Task, Label, Key string }

// Keys gives each task a distinct key that is safe as a file name.
func Keys(tasks []string, known operator.Set) []File {
	used := make(sweep.FileNames)
	sheets := make([]File, 0, len(tasks))
	for _, task := range tasks {
		sheets = append(sheets, File{Task: task, Label: known.Label(task), Key: Folder + used.Unique(task, "-_") + ".png"})
	}
	return sheets
}

// Write draws and stores the contact sheet of one task with the first of its finished items. The sheet of a task without finished
// items has a heading only. lost has an error for each listed picture that could not be read.
func Write(ctx context.Context, store result.Files, file File, done []*entry.Entry, items int) (lost []error, err error) {
	s := &Sheet{Title: file.Label, Subtitle: sheetCounts(items, len(done))}
	done = done[:min(MaxRows, len(done))]
	truth := slices.ContainsFunc(done, func(e *entry.Entry) bool { return e.Has(item.FileTruth) })
	for _, e := range done {
		var pictures []Picture
		if truth {
			pictures = append(pictures, Of(store, e, item.FileTruth, "truth"))
		}
		pictures = append(pictures, Of(store, e, item.FileMeasurement, "measurement"), Of(store, e, item.FileRestored, "restored"))
		s.Rows = append(s.Rows, Row{Name: e.Name, Details: details(e), Items: [][]Picture{pictures}})
	}
	_, lost, err = s.Write(ctx, store, file.Key)
	return lost, err
}

// Of is the picture of a file of an item, blank if the item has none.
func Of(store result.Files, e *entry.Entry, file, caption string) Picture {
	if !e.Has(file) {
		return Picture{None: "no " + caption}
	}
	return Picture{Store: store, ID: e.ID, File: file, Caption: caption}
}

// sheetCounts is the line below the title.
func sheetCounts(items, done int) string {
	text := fmt.Sprintf("%d of %d items restored", done, items)
	if more := done - MaxRows; more > 0 {
		text += fmt.Sprintf("; the first %d are shown, %d more in %s", MaxRows, more, table.KeyCSV)
	}
	return text
}

// details are the lines below an item's name.
func details(e *entry.Entry) []string {
	out := []string{fmt.Sprintf("%s, run %d", e.Method, e.Run)}
	if after := e.Of(metric.NamePSNR); statistic.Defined(after) {
		psnr := "PSNR "
		if before := e.Of(entry.Baseline); statistic.Defined(before) {
			psnr += table.Decimal(before, 2) + " → "
		}
		out = append(out, psnr+table.Decimal(after, 2)+" dB")
	}
	for _, m := range metric.Builtin().Main() {
		if v := e.Of(m.Name); m.Name != metric.NamePSNR && statistic.Defined(v) {
			out = append(out, m.Title+" "+table.Decimal(v, m.Decimals))
		}
	}
	return out
}
