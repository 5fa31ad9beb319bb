package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"ddiff/manifest"
)

// The keys of a report's files; the sheets are named by [Write].
const (
	KeyCSV             = "results.csv"
	KeyPage            = "index.html"
	KeySummaryJSON     = "summary.json"
	KeySummaryMarkdown = "summary.md"
	sheetFolder        = "sheets/"
)

// Campaign is what the report says about the campaign as a whole. Empty fields are left out.
type Campaign struct {
	Name   string
	Preset string
	// Prior and PriorLicence name the score model and the terms of its use.
	Prior        string
	PriorLicence string
	// Steps is the number of solver steps.
	Steps int
	// Sigma is the standard deviation of the measurement noise, in units of y.
	Sigma float64
	Seed  uint64
	// Select says how runs of one measurement become one figure; empty means first.
	Select Rule
	// Started and Finished bound the campaign; they are shown in UTC.
	Started  time.Time
	Finished time.Time
}

// Write makes the report of a campaign and stores it: results.csv, summary.json,
// summary.md, sheets/<task>.png and index.html, the page last, so that what it links to is
// there. A second call replaces the first report. Pictures are read one at a time.
//
// It reads results once and returns the summary that it wrote, also with ErrIncomplete.
//
// When an artifact that a result names cannot be read, the report is finished without it and
// the error wraps [ErrIncomplete]. Other errors, such as those of Put, end the work.
func Write(ctx context.Context, store files, campaign Campaign, results iter.Seq2[manifest.Result, error]) (Summary, error) {
	all, err := collect(results)
	if err != nil {
		return Summary{}, err
	}
	ordered := sorted(all)
	summary, err := summarize(ordered, campaign.Select)
	if err != nil {
		return Summary{}, err
	}
	if err := writeTables(ctx, store, ordered, summary); err != nil {
		return Summary{}, err
	}

	var missing []error
	sheets := sheetKeys(tasksOf(ordered))
	for _, s := range sheets {
		lost, err := writeSheet(ctx, store, s, ordered)
		if err != nil {
			return Summary{}, err
		}
		missing = append(missing, lost...)
	}
	lost, err := writePage(ctx, store, campaign, summary, ordered, sheets)
	if err != nil {
		return Summary{}, err
	}
	missing = append(missing, lost...)
	return summary, incomplete(missing)
}

// collect reads the whole stream.
func collect(results iter.Seq2[manifest.Result, error]) ([]manifest.Result, error) {
	var all []manifest.Result
	for r, err := range results {
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// writeTables stores the files that hold numbers.
func writeTables(ctx context.Context, store files, ordered []manifest.Result, summary Summary) error {
	var table bytes.Buffer
	if err := WriteCSV(&table, ordered); err != nil {
		return err
	}
	var markdown bytes.Buffer
	if err := WriteTable(&markdown, summary, FormatMarkdown); err != nil {
		return err
	}
	object, err := json.MarshalIndent(summary, "", "  ")
	if err != nil {
		return fmt.Errorf("encode summary: %w", err)
	}
	for _, file := range []struct {
		key  string
		data []byte
	}{
		{KeyCSV, table.Bytes()},
		{KeySummaryJSON, append(object, '\n')},
		{KeySummaryMarkdown, markdown.Bytes()},
	} {
		if err := put(ctx, store, file.key, file.data); err != nil {
			return err
		}
	}
	return nil
}

func put(ctx context.Context, store files, key string, data []byte) error {
	if err := store.Put(ctx, key, data); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}

// incomplete joins what could not be read into one error of bounded length, or nil.
func incomplete(missing []error) error {
	if len(missing) == 0 {
		return nil
	}
	const shown = 3
	err := errors.Join(missing[:min(shown, len(missing))]...)
	if more := len(missing) - shown; more > 0 {
		return fmt.Errorf("%w: %w\nand %d more", ErrIncomplete, err, more)
	}
	return fmt.Errorf("%w: %w", ErrIncomplete, err)
}

// sheetFile is the contact sheet of one task.
type sheetFile struct {
	Task string
	Key  string
}

// sheetKeys gives each task a key that is safe as a file name and differs from the others.
func sheetKeys(tasks []string) []sheetFile {
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
		sheets = append(sheets, sheetFile{Task: task, Key: sheetFolder + unique + ".png"})
	}
	return sheets
}
