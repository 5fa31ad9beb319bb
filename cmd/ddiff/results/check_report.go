package results

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"ddiff/internal/coordinator/gc"
	"ddiff/internal/redact"
	"ddiff/internal/regular"
	"ddiff/internal/report"
	"ddiff/internal/report/result"
	"ddiff/internal/report/table"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// reportRemedy is the remedy for a report that was changed.
const reportRemedy = "run the campaign again, which writes the report from the results"

// verifyReport compares the files of the report in an output with their digests and, if items says so, with the items; and the scores with theirs. It
// returns nil for an argument without both.
func verifyReport(ctx context.Context, arg string, items bool) (*output, error) {
	address, id := arg, ""
	if manifest.IsAddress(arg) {
		address, id = itemAddress(arg)
	} else if info, err := os.Stat(arg); err != nil || !info.IsDir() {
		return nil, nil //nolint:nilnil // an item, or nothing: the items have the error
	}
	if id != "" {
		return nil, nil //nolint:nilnil // an item has no report
	}
	opened, err := storage.Open(ctx, address, storage.Options{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", redact.Address(address), err)
	}
	defer opened.Close() //nolint:errcheck // nothing was written
	from := storeOrigin(opened.Store, address)
	from.show = func(key string) string { return storage.Locate(address, key) }
	o := &output{File: report.KeyDigests, from: from}
	found, err := o.checkReport(ctx, items)
	if err == nil {
		err = o.checkScores(ctx, opened.Store)
	}
	if err != nil || !found && len(o.Problems) == 0 {
		return nil, err
	}
	o.OK = len(o.Problems) == 0
	return o, nil
}

// checkReport checks a report, and reports whether there is one. Files are keys.
func (o *output) checkReport(ctx context.Context, items bool) (found bool, err error) {
	data, err := o.from.get(ctx, report.KeyDigests)
	if errors.Is(err, fs.ErrNotExist) {
		for _, key := range report.Keys() {
			if _, err := o.from.get(ctx, key); !errors.Is(err, fs.ErrNotExist) {
				o.addProblem(report.KeyDigests, "file", "is missing beside %s; %s", key, reportRemedy)
				return true, nil
			}
		}
		return false, nil // an interrupted campaign has no report
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", o.from.show(report.KeyDigests), err)
	}
	digests, err := report.ParseDigests(data)
	if err != nil {
		o.addProblem(report.KeyDigests, "file", "%v; %s", err, reportRemedy)
		return true, nil
	}
	for _, key := range slices.Sorted(maps.Keys(digests)) {
		data, err := o.from.get(ctx, key)
		switch {
		case ctx.Err() != nil:
			return true, ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
			o.addProblem(key, "file", "is missing; %s", reportRemedy)
		case err != nil:
			o.addProblem(key, "file", "cannot be read: %v", err)
		case regular.SHA256(data) != digests[key]:
			o.addProblem(key, "file", "has the SHA-256 %.12s, %s says %.12s: it was changed; %s", regular.SHA256(data), report.KeyDigests, digests[key], reportRemedy)
		case key == report.KeyCSV && items:
			o.checkRows(ctx, data)
		}
	}
	return true, ctx.Err()
}

// checkRows compares the rows of finished items in a results.csv with the results: each is there, and has the scores of the row.
func (o *output) checkRows(ctx context.Context, file []byte) {
	for row, err := range table.DoneRows(bytes.NewReader(file)) {
		if err != nil {
			o.addProblem(report.KeyCSV, "file", "%v; %s", err, reportRemedy)
			return
		}
		key := item.Key(row["item"], item.FileResult)
		data, err := o.from.get(ctx, key)
		if errors.Is(err, fs.ErrNotExist) {
			o.addProblem(key, "file", "is missing, and %s has image %s, task %s, as done; put the item's folder back, or run its campaign again", report.KeyCSV, row["image"], row["task"])
			continue
		}
		if err != nil {
			o.addProblem(key, "file", "cannot be read: %v", err)
			continue
		}
		r, err := item.DecodeResult(data)
		if err != nil || r.Item.ID != row["item"] || item.CheckResult(data) != nil {
			continue // a problem of the item
		}
		versions := strings.Split(row["metrics"], ";")
		for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
			stored := table.CSVFigure(r.Metrics[name])
			if was := row[name]; was != "" && was != stored && slices.Contains(versions, r.MetricIDs[name]) {
				o.addProblem(key, "metrics."+name, "is %s, %s says %s: the item was restored again since, or one was changed; %s", stored, report.KeyCSV, was, reportRemedy)
				break
			}
		}
	}
}

// checkScores compares the scores of ddiff score with the names of their files, which follow from their content.
func (o *output) checkScores(ctx context.Context, store source) error {
	for info, err := range store.List(ctx, result.ScoresFolder) {
		if err != nil {
			return fmt.Errorf("list %s: %w", o.from.show(result.ScoresFolder), err)
		}
		if !gc.IsOutputKey(info.Key) {
			continue
		}
		data, err := store.Get(ctx, info.Key)
		if err == nil {
			err = result.CheckScorePart(info.Key, data)
		}
		if err != nil {
			o.addProblem(info.Key, "file", "%v", err)
		}
	}
	return ctx.Err()
}
