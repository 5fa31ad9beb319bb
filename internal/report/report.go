package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/figure"
	"ddiff/internal/report/page"
	"ddiff/internal/report/result"
	"ddiff/internal/report/sheet"
	"ddiff/internal/report/table"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// Campaign describes the campaign on the page.
type Campaign = page.Campaign

// The keys of a report's files. The keys of the sheets follow the names of the tasks.
const (
	KeyCSV             = table.KeyCSV
	KeyPage            = page.Key
	KeyMosaic          = page.KeyMosaic
	KeySummaryJSON     = table.KeySummaryJSON
	KeySummaryMarkdown = table.KeySummaryMarkdown
	// FigureFolder is before the keys of the figures.
	FigureFolder = figure.Folder
	KeyCaptions  = figure.KeyCaptions
)

// Write stores the report of a campaign: results.csv, summary.json, summary.md, sheets/<task>.png, mosaic.png and
// index.html, the page last, so that its links work; then the digests of all of them, see [KeyDigests]. A second call replaces the first report and removes contact sheets that the
// new one does not have. Write reads results once, in any order, and one picture at a time. It returns the stored summary.
//
// If a listed artifact cannot be read, Write completes the report without the artifact, returns the summary and an
// error that wraps [result.ErrIncomplete]. Other errors stop it: [selection.ErrUnknownRule], errors of results, errors of Put.
func Write(ctx context.Context, store result.Files, campaign Campaign, results iter.Seq2[item.Result, error]) (aggregate.Summary, error) {
	set, err := entry.Collect(results, campaign.Tasks, campaign.Select, campaign.LeaveOut)
	if err != nil {
		return aggregate.Summary{}, err
	}
	store, digests := digest(store)
	summary, lost, err := write(ctx, store, campaign, set)
	if err == nil {
		err = putDigests(ctx, store, digests)
	}
	if err != nil {
		return aggregate.Summary{}, err
	}
	return summary, result.Incomplete(lost)
}

// write stores all files. lost has an error for each listed artifact that could not be read.
func write(ctx context.Context, store result.Files, campaign Campaign, set *entry.Set) (summary aggregate.Summary, lost []error, err error) {
	summary = aggregate.SummarizeEntries(set, campaign.Tasks, campaign.Tunings)
	summary.Planned = max(summary.Planned+campaign.Unfinished, campaign.Planned)
	shown := page.NewGallery(set.Entries, page.MaxItems)
	list := page.NewListing(summary, set.Columns.Names(), page.MaxListed)
	for _, e := range set.Entries {
		list.Add(e)
	}
	if err := table.StoreCSV(ctx, store, set); err != nil {
		return summary, nil, err
	}
	runs, err := compareRuns(ctx, store, &summary)
	if err != nil {
		return summary, nil, err
	}
	lost = append(lost, runs.lost...)
	if err := writeSummary(ctx, store, summary); err != nil {
		return summary, nil, err
	}
	sheets := sheet.Keys(shown.Names(), campaign.Tasks)
	for i, s := range sheets {
		t := shown.Tasks[i]
		missing, err := sheet.Write(ctx, store, s, t.Done, t.Items)
		if err != nil {
			return summary, nil, err
		}
		lost = append(lost, missing...)
	}
	mosaic, missing, err := page.WriteMosaic(ctx, store, list)
	if err != nil {
		return summary, nil, err
	}
	lost = append(lost, missing...)
	drawn, err := figure.Draw(ctx, store, FigureFolder, summary)
	if err != nil {
		return summary, nil, err
	}
	lost = append(lost, drawn.Lost...)
	missing, err = page.Write(ctx, store, campaign, summary, shown, page.Parts{
		List: list, Mosaic: mosaic, Sheets: sheets, Figures: drawn.Stored, Pictures: runs.pictures,
	})
	if err == nil {
		err = removeStale(ctx, store, campaign.Tasks, sheets, mosaic, runs.keys)
	}
	return summary, append(lost, missing...), err
}

// removeStale removes the contact sheets, the mosaic and the pictures of runs that do not belong to this report, and no
// other file of their folders.
func removeStale(ctx context.Context, store result.Files, known operator.Set, sheets []sheet.File, mosaic bool, runs []string) error {
	current := runs
	for _, s := range sheets {
		current = append(current, s.Key)
	}
	if mosaic {
		current = append(current, KeyMosaic)
	}
	var stale []string
	for _, prefix := range []string{sheet.Folder, KeyMosaic} {
		for info, err := range store.List(ctx, prefix) {
			if err != nil {
				return fmt.Errorf("list %s: %w", prefix, err)
			}
			if !slices.Contains(current, info.Key) && (info.Key == KeyMosaic || isSheet(info.Key, known)) {
				stale = append(stale, info.Key)
			}
		}
	}
	for _, key := range stale {
		if err := store.Delete(ctx, key); err != nil {
			return fmt.Errorf("remove %s of an earlier report: %w", key, err)
		}
	}
	return nil
}

// isSheet reports whether a report wrote the file: the contact sheet of a known task, or a picture of the runs of an item.
func isSheet(key string, known operator.Set) bool {
	if name, ok := strings.CutPrefix(key, runFolder); ok {
		id, file, _ := strings.Cut(name, "/")
		_, isID := item.ParseIdentity(id)
		return isID && (file == "mean.png" || file == "deviation.png")
	}
	name, ok := strings.CutSuffix(strings.TrimPrefix(key, sheet.Folder), ".png")
	return ok && slices.Contains(known.Names(), name)
}

// writeSummary stores the summary in both formats.
func writeSummary(ctx context.Context, store result.Files, summary aggregate.Summary) error {
	object, err := json.MarshalIndent(summary, "", "  ")
	if err != nil {
		return fmt.Errorf("encode summary: %w", err)
	}
	if err := result.Put(ctx, store, KeySummaryJSON, append(object, '\n')); err != nil {
		return err
	}
	var markdown bytes.Buffer
	if err := table.Write(&markdown, summary, table.FormatMarkdown); err != nil {
		return err
	}
	return result.Put(ctx, store, KeySummaryMarkdown, markdown.Bytes())
}
