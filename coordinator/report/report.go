package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"ddiff/manifest"
	"ddiff/restore/operator"
	"ddiff/storage"
)

// The keys of a report's tables.
const (
	KeyCSV             = "results.csv"
	KeySummaryJSON     = "summary.json"
	KeySummaryMarkdown = "summary.md"
)

// KeyPage is the key of the page.
const KeyPage = "index.html"

// KeyMosaic is the key of the mosaic.
const KeyMosaic = "mosaic.png"

// sheetFolder is before the keys of the contact sheets, which follow the names of the tasks.
const sheetFolder = "sheets/"

// Campaign describes the campaign on the page. The page omits empty fields.
type Campaign struct {
	Name   string
	Preset string
	// Prior and PriorLicence are the name and the licence of the score model.
	Prior        string
	PriorLicence string
	// Steps is the number of solver steps.
	Steps int
	Seed  uint64
	// Outputs are the addresses of the outputs of a report over several campaigns, whose settings differ; empty for the
	// report of one campaign.
	Outputs []string
	// Select combines the runs of one measurement into one figure; empty means first.
	Select Rule
	// Tasks order and label the tasks; empty means the built-in ones. Unknown tasks follow, by name.
	Tasks operator.Set
	// Published are figures of a publication to compare with; nil for none.
	Published *Published
	// Others is the number of results in the store that belong to other campaigns; MoreOthers: at least so many.
	Others     int
	MoreOthers bool
	// LeaveOut leaves out a metric that has several versions, with a note, instead of ending with ErrVersions.
	LeaveOut bool
	// Tunings say which settings were chosen on which images. Nil: no note about it.
	Tunings *Tunings
}

// Write stores the report of a campaign: results.csv, summary.json, summary.md, sheets/<task>.png, mosaic.png and
// index.html, the page last, so that its links work. A second call replaces the first report; contact sheets of the earlier report that the
// new one does not have are removed, if the store can list and delete. Write reads results once, in any order, and one
// picture at a time. It returns the stored summary.
//
// If a listed artifact cannot be read, Write completes the report without the artifact, returns the summary and an
// error that wraps [ErrIncomplete]. Other errors stop it: [ErrUnknownRule], errors of results, errors of Put.
func Write(ctx context.Context, store files, campaign Campaign, results iter.Seq2[manifest.Result, error]) (Summary, error) {
	rule, err := ParseRule(string(campaign.Select))
	if err != nil {
		return Summary{}, err
	}
	ordered, err := collect(results, campaign.Tasks, campaign.LeaveOut)
	if err != nil {
		return Summary{}, err
	}
	summary, lost, err := write(ctx, store, campaign, ordered, rule)
	if err := errors.Join(err, ordered.close()); err != nil {
		return Summary{}, err
	}
	return summary, incomplete(lost)
}

// write stores all files. lost has an error for each listed artifact that could not be read.
func write(
	ctx context.Context, store files, campaign Campaign, ordered *sorter, rule Rule,
) (summary Summary, lost []error, err error) {
	summary, err = summarize(ordered, campaign.Tasks, rule, campaign.Tunings)
	if err != nil {
		return summary, nil, err
	}
	summary.Others, summary.MoreOthers = campaign.Others, campaign.MoreOthers
	shown := &gallery{limit: maxItems}
	list := newListing(summary, ordered.columns.extra, maxListed)
	if err := storeCSV(ctx, store, ordered.columns, list.watch(shown.watch(ordered.all()))); err != nil {
		return summary, nil, err
	}
	runs, err := compareRuns(ctx, store, &summary, ordered)
	if err != nil {
		return summary, nil, err
	}
	lost = append(lost, runs.lost...)
	if err := writeSummary(ctx, store, summary); err != nil {
		return summary, nil, err
	}
	sheets := sheetKeys(shown.names(), campaign.Tasks)
	for i, s := range sheets {
		t := shown.tasks[i]
		missing, err := writeSheet(ctx, store, s, t.first, t.items, t.done)
		if err != nil {
			return summary, nil, err
		}
		lost = append(lost, missing...)
	}
	mosaic, missing, err := writeMosaic(ctx, store, list)
	if err != nil {
		return summary, nil, err
	}
	lost = append(lost, missing...)
	curved := make(map[string]bool)
	for _, e := range shown.excerpt() {
		curved[e.ID] = true
	}
	drawn, err := drawReport(ctx, store, summary, ordered.all(), curved)
	if err != nil {
		return summary, nil, err
	}
	lost = append(lost, drawn.lost...)
	missing, err = writePage(ctx, store, campaign, summary, shown, parts{
		list: list, mosaic: mosaic, sheets: sheets, figures: drawn.stored, curves: drawn.read, pictures: runs.pictures,
	})
	if err == nil {
		err = removeStale(ctx, store, campaign.Tasks, sheets, mosaic, runs.keys)
	}
	return summary, append(lost, missing...), err
}

// pruner is a store that can remove the pictures of an earlier report.
type pruner interface {
	List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error]
	Delete(ctx context.Context, key string) error
}

// removeStale removes the contact sheets, the mosaic and the pictures of runs that do not belong to this report, and no
// other file of their folders.
func removeStale(ctx context.Context, store files, known operator.Set, sheets []sheetFile, mosaic *mosaicFile, runs []string) error {
	p, ok := store.(pruner)
	if !ok {
		return nil
	}
	var stale []string
	for _, prefix := range []string{sheetFolder, KeyMosaic} {
		for info, err := range p.List(ctx, prefix) {
			if err != nil {
				return fmt.Errorf("list %s: %w", prefix, err)
			}
			current := slices.ContainsFunc(sheets, func(s sheetFile) bool { return s.Key == info.Key }) ||
				info.Key == KeyMosaic && mosaic != nil || slices.Contains(runs, info.Key)
			if !current && (info.Key == KeyMosaic || isSheet(info.Key, known)) {
				stale = append(stale, info.Key)
			}
		}
	}
	for _, key := range stale {
		if err := p.Delete(ctx, key); err != nil {
			return fmt.Errorf("remove %s of an earlier report: %w", key, err)
		}
	}
	return nil
}

// isSheet reports whether a report wrote the file: the contact sheet of a known task, or a picture of the runs of an item.
func isSheet(key string, known operator.Set) bool {
	if name, ok := strings.CutPrefix(key, runFolder); ok {
		id, file, _ := strings.Cut(name, "/")
		_, isID := parseIdentity(id)
		return isID && (file == "mean.png" || file == "deviation.png")
	}
	name, ok := strings.CutSuffix(strings.TrimPrefix(key, sheetFolder), ".png")
	return ok && slices.Contains(known.Names(), name)
}

// writeSummary stores the summary in both formats.
func writeSummary(ctx context.Context, store files, summary Summary) error {
	object, err := json.MarshalIndent(summary, "", "  ")
	if err != nil {
		return fmt.Errorf("encode summary: %w", err)
	}
	if err := put(ctx, store, KeySummaryJSON, append(object, '\n')); err != nil {
		return err
	}
	var markdown bytes.Buffer
	if err := WriteTable(&markdown, summary, FormatMarkdown); err != nil {
		return err
	}
	return put(ctx, store, KeySummaryMarkdown, markdown.Bytes())
}

func put(ctx context.Context, store files, key string, data []byte) error {
	if err := store.Put(ctx, key, data); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}

// incomplete joins the distinct errors into one of bounded length: several pictures may need one artifact. It returns nil
// without errors.
func incomplete(all []error) error {
	var lost []error
	known := make(map[string]bool)
	for _, err := range all {
		if text := err.Error(); !known[text] {
			known[text] = true
			lost = append(lost, err)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	const shown = 3
	err := errors.Join(lost[:min(shown, len(lost))]...)
	if more := len(lost) - shown; more > 0 {
		return fmt.Errorf("%w: %w\nand %d more", ErrIncomplete, err, more)
	}
	return fmt.Errorf("%w: %w", ErrIncomplete, err)
}

// sheetFile is the contact sheet of one task.
type sheetFile struct{ Task, Label, Key string }

// sheetKeys gives each task a distinct key that is safe as a file name.
func sheetKeys(tasks []string, known operator.Set) []sheetFile {
	used := make(map[string]bool)
	sheets := make([]sheetFile, 0, len(tasks))
	for _, task := range tasks {
		name := strings.Map(func(r rune) rune {
			switch {
			case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
				return r
			}
			return '_'
		}, task)
		unique := name
		for n := 2; used[unique] || unique == ""; n++ {
			unique = name + "_" + strconv.Itoa(n)
		}
		used[unique] = true
		sheets = append(sheets, sheetFile{Task: task, Label: known.Label(task), Key: sheetFolder + unique + ".png"})
	}
	return sheets
}
