// Package page makes the page of a report from its parts: tables, the list of items, the mosaic, curves. What needs no script is in the template;
// style and script are in dist, which coordinator/serve/page builds from the components of the page of campaigns. A further section is a field of page
// and its part of the template.
package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"strconv"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/figure"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/report/sheet"
	"ddiff/coordinator/report/table"
	"ddiff/restore/item"
)

var (
	//go:embed report.html.tmpl
	pageTemplate string
	//go:embed dist/style.css
	pageStyle string
	//go:embed dist/script.js
	pageScript string
)

// ScriptSource names the page's script in a Content-Security-Policy, which then lets no other one run.
func ScriptSource() string {
	sum := sha256.Sum256([]byte(pageScript))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// page is the data of the template.
type page struct {
	Style  template.CSS
	Script template.JS

	Campaign  Campaign
	Facts     []fact
	Summary   aggregate.Summary
	Columns   []string // headings of the columns with text, without the task's
	Metrics   []string // headings of the columns after the fixed ones
	Rows      []tableRow
	Settings  []setting
	Notes     []string
	Published *table.Table
	Runs      *table.Table
	Sheets    []sheetLink
	// Figures are shown at once, MoreFigures on a click.
	Figures, MoreFigures []figure.File
	Links                []string
	Failures             []failure
	MoreFailed           int
	Mosaic               *Mosaic
	// Listed is the number of items in the page's table, Hidden the number of other finished items.
	Listed, Hidden int
	Data           pageData
	// Curves are the solver's curves of a selection of items by their row. The page parses them when they are needed.
	Curves map[string]*figure.Curves
}

// pageData is the input of the page's script; html/template escapes it.
type pageData struct {
	Items *Listing `json:"items"`
	// Pictures are the further pictures of an item, by its id.
	Pictures map[string][]PictureFile `json:"pictures"`
}

// maxFigures bounds the figures that the page shows at once.
const maxFigures = 6

type sheetLink struct{ Label, Path string }

// Parts are the files that the page refers to, made before it.
type Parts struct {
	List   *Listing
	Mosaic *Mosaic // nil without finished items
	Sheets []sheet.File
	// Figures are shown above the images, in this order.
	Figures []figure.File
	// Pictures are further pictures of an item, by its id. Each path is relative to the page.
	Pictures map[string][]PictureFile
}

// PictureFile is a picture of an item beside truth, measurement and restoration.
type PictureFile struct {
	Title string `json:"title"`
	Path  string `json:"path"`
}

type failure struct {
	Name, Task, Method string
	Run                int
	Outcome            item.Outcome
	Reason             string
}

// Write renders and stores index.html. lost has an error for each listed trace that could not be read.
func Write(
	ctx context.Context, store result.Files, campaign Campaign, summary aggregate.Summary, shown *Gallery, with Parts,
) (lost []error, err error) {
	curvesOf := make(map[string]*figure.Curves)
	var rows []int
	for _, e := range shown.Excerpt() {
		row := with.List.row(e)
		rows = append(rows, row)
		if !e.Has(item.FileTrace) {
			continue
		}
		c, err := figure.ReadCurves(ctx, store, e)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("write %s: %w", Key, ctx.Err())
		}
		if err != nil {
			lost = append(lost, err)
		} else if len(c.Step) > 0 {
			curvesOf[strconv.Itoa(row)] = c
		}
	}
	if to, ok := store.(pictureCopier); ok {
		missing, err := with.List.copyPictures(ctx, to, with.List.copied(rows, maxCopied))
		if err != nil {
			return nil, err
		}
		lost = append(lost, missing...)
	}
	if with.Pictures == nil {
		with.Pictures = map[string][]PictureFile{}
	}
	p := newPage(campaign, summary, shown, with)
	p.Curves = curvesOf
	out, err := renderPage(p)
	if err != nil {
		return nil, err
	}
	return lost, result.Put(ctx, store, Key, out)
}

// pictureCopier is a store to which the pictures of the page are copied.
type pictureCopier interface {
	CopyPicture(ctx context.Context, key string) error
}

func renderPage(p *page) ([]byte, error) {
	t, err := template.New(Key).Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse page template: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("render %s: %w", Key, err)
	}
	return out.Bytes(), nil
}

func newPage(campaign Campaign, summary aggregate.Summary, shown *Gallery, with Parts) *page {
	means := table.Of(summary, "–")
	metrics := slices.Index(means.Head, "s/image") + 1
	p := &page{
		Style:    template.CSS(pageStyle),
		Script:   template.JS(pageScript), //nolint:gosec // our own file
		Campaign: campaign,
		Facts:    campaignFacts(campaign, summary, with.List),
		Summary:  summary,
		Columns:  capitals(means.Head[1:means.Labels]),
		Metrics:  means.Head[metrics:],
		Rows:     tableRows(summary, means),
		Settings: tableSettings(summary),
		Notes:    means.Notes,
		Runs:     newRunsTable(summary, means),
		Figures:  with.Figures[:min(len(with.Figures), maxFigures)],
		Links:    []string{table.KeyCSV, table.KeySummaryJSON, table.KeySummaryMarkdown},
		Mosaic:   with.Mosaic,
		Listed:   len(with.List.ID),
		Hidden:   summary.Done - len(with.List.ID),
		Data:     pageData{Items: with.List, Pictures: with.Pictures},
	}
	if campaign.Published != nil {
		published := campaign.Published.Table(summary, "–")
		p.Published = &published
	}
	p.MoreFigures = with.Figures[len(p.Figures):]
	for _, s := range with.Sheets {
		p.Sheets = append(p.Sheets, sheetLink{s.Label, s.Key})
	}
	for _, e := range shown.failures {
		p.Failures = append(p.Failures, failure{
			Name: e.Name, Task: campaign.Tasks.Label(e.Task), Method: e.Method, Run: e.Run, Outcome: e.Outcome, Reason: e.Reason,
		})
	}
	p.MoreFailed = summary.Failed + summary.Dead - len(p.Failures)
	return p
}

// Key is the key of the page.
const Key = "index.html"
