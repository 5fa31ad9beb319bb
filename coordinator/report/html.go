package report

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"ddiff/manifest"
)

var (
	//go:embed report.html.tmpl
	pageTemplate string
	//go:embed style.css
	pageStyle string
	//go:embed script
	pageScripts embed.FS
)

// pageScript joins the files of the page's script, which share one scope.
func pageScript() (template.JS, error) {
	var out strings.Builder
	out.WriteString("\"use strict\";\n(() => {\n")
	for _, name := range []string{"page", "tables", "curves", "cards", "viewer", "start"} {
		text, err := pageScripts.ReadFile("script/" + name + ".js")
		if err != nil {
			return "", fmt.Errorf("read script of the page: %w", err)
		}
		out.Write(text)
		out.WriteByte('\n')
	}
	out.WriteString("})();\n")
	return template.JS(out.String()), nil //nolint:gosec // our own files
}

// page is the data of the template.
type page struct {
	Style  template.CSS
	Script template.JS

	Campaign  Campaign
	Facts     []fact
	Summary   Summary
	Columns   []string // headings of the columns with text, without the task's
	Metrics   []string // headings of the columns after the fixed ones
	Rows      []tableRow
	Settings  []setting
	Notes     []string
	Published *Table
	Runs      *runsTable
	Sheets    []sheetLink
	// Figures are shown at once, MoreFigures on a click.
	Figures, MoreFigures []figureFile
	Links                []string
	Tasks                []option
	Methods              []string
	Failures             []failure
	MoreFailed           int
	Mosaic               *mosaicFile
	Variants             []string
	// Listed is the number of items in the page's table, Hidden the number of other finished items.
	Listed, Hidden int
	Data           pageData
	// Curves are the solver's curves of a selection of items by their row. The page parses them when they are needed.
	Curves map[string]*curves
}

// pageData is the input of the page's script; html/template escapes it.
type pageData struct {
	Items *listing `json:"items"`
	// Pictures are the further pictures of an item, by its id.
	Pictures map[string][]pictureFile `json:"pictures"`
}

// maxFigures bounds the figures that the page shows at once.
const maxFigures = 6

// option is one choice of a filter.
type option struct{ Value, Label string }

type sheetLink struct{ Label, Path string }

// parts are the files that the page refers to, made before it.
type parts struct {
	list   *listing
	mosaic *mosaicFile // nil without finished items
	sheets []sheetFile
	// figures are shown above the images, in this order.
	figures []figureFile
	// pictures are further pictures of an item, by its id. Each path is relative to the page.
	pictures map[string][]pictureFile
	// curves are those that the figures have read, by the item's id; nil for a trace that could not be read.
	curves map[string]*curves
}

// figureFile is a statistical figure, stored as figures/NAME.svg, NAME.png and NAME.csv, its data. SVG, PNG and CSV are its
// keys.
type figureFile struct {
	Name, Caption, SVG, PNG, CSV string
	// Wide is set for figures of two columns, which get a row of their own on the page.
	Wide bool
}

// pictureFile is a picture of an item beside truth, measurement and restoration.
type pictureFile struct {
	Title string `json:"title"`
	Path  string `json:"path"`
}

type failure struct {
	Name, Task, Method string
	Run                int
	Outcome            manifest.Outcome
	Reason             string
}

// writePage renders and stores index.html. lost has an error for each listed trace that could not be read.
func writePage(
	ctx context.Context, store files, campaign Campaign, summary Summary, shown *gallery, with parts,
) (lost []error, err error) {
	curvesOf := make(map[string]*curves)
	var rows []int
	for _, e := range shown.excerpt() {
		row := with.list.row(e)
		rows = append(rows, row)
		if !e.has(manifest.FileTrace) {
			continue
		}
		c, known := with.curves[e.ID]
		var unreadable error
		if !known {
			c, unreadable = readCurves(ctx, store, e)
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("write %s: %w", KeyPage, ctx.Err())
		}
		if unreadable != nil {
			lost = append(lost, unreadable)
		} else if c != nil && len(c.Step) > 0 {
			curvesOf[strconv.Itoa(row)] = c
		}
	}
	if to, ok := store.(pictureCopier); ok {
		missing, err := with.list.copyPictures(ctx, to, with.list.copied(rows, maxCopied))
		if err != nil {
			return nil, err
		}
		lost = append(lost, missing...)
	}
	if with.pictures == nil {
		with.pictures = map[string][]pictureFile{}
	}
	p := newPage(campaign, summary, shown, with)
	p.Curves = curvesOf
	out, err := renderPage(p)
	if err != nil {
		return nil, err
	}
	return lost, put(ctx, store, KeyPage, out)
}

// pictureCopier is a store to which the pictures of the page are copied.
type pictureCopier interface {
	copyPicture(ctx context.Context, key string) error
}

func renderPage(p *page) ([]byte, error) {
	script, err := pageScript()
	if err != nil {
		return nil, err
	}
	p.Script = script
	t, err := template.New(KeyPage).Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse page template: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("render %s: %w", KeyPage, err)
	}
	return out.Bytes(), nil
}

func newPage(campaign Campaign, summary Summary, shown *gallery, with parts) *page {
	table := TableOf(summary, "–")
	metrics := slices.Index(table.Head, "s/image") + 1
	p := &page{
		Style:    template.CSS(pageStyle),
		Campaign: campaign,
		Facts:    campaignFacts(campaign, summary, with.list),
		Summary:  summary,
		Columns:  capitals(table.Head[1:table.Labels]),
		Metrics:  table.Head[metrics:],
		Rows:     tableRows(summary, table),
		Settings: tableSettings(summary),
		Notes:    table.Notes[1:],
		Runs:     newRunsTable(summary, table),
		Figures:  with.figures[:min(len(with.figures), maxFigures)],
		Links:    []string{KeyCSV, KeySummaryJSON, KeySummaryMarkdown},
		Mosaic:   with.mosaic,
		Listed:   len(with.list.ID),
		Hidden:   summary.Done - len(with.list.ID),
		Data:     pageData{Items: with.list, Pictures: with.pictures},
	}
	if campaign.Published != nil {
		published := campaign.Published.table(summary, "–")
		p.Published = &published
	}
	p.MoreFigures = with.figures[len(p.Figures):]
	for _, s := range with.sheets {
		p.Sheets = append(p.Sheets, sheetLink{s.Label, s.Key})
		p.Tasks = append(p.Tasks, option{s.Task, s.Label})
	}
	seen := make(map[string]bool)
	for _, r := range summary.Rows {
		if !seen[r.Method] {
			seen[r.Method] = true
			p.Methods = append(p.Methods, r.Method)
		}
	}
	for _, c := range with.list.Cells {
		if c.Variant != "" && !slices.Contains(p.Variants, c.Variant) {
			p.Variants = append(p.Variants, c.Variant)
		}
	}
	for _, e := range shown.failures {
		p.Failures = append(p.Failures, failure{
			Name: e.Name, Task: campaign.Tasks.Label(e.Task), Method: e.Method, Run: e.Run, Outcome: e.Outcome, Reason: e.Reason,
		})
	}
	p.MoreFailed = summary.Failed + summary.Dead - len(p.Failures)
	return p
}
